"""Rounds, put together from the events of a journal: what was decided, and what was told of it later.

The events alone are enough: neither the books nor the code of the policy is needed, so this works for journals whose
first segments were dropped, too. Only what is still open is kept in memory, as in the bandit itself.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from paceline.errors import PacelineError
from paceline.kernels.state import GUARD
from paceline.live import old_formats
from paceline.live.config import policy_in_file
from paceline.live.events import Add, Ask, Cancel, Event, Expire, Set, Tell, read
from paceline.live.reading import NONSENSE, Part, events_in, senseless
from paceline.live.segments import FORMAT, Header
from paceline.policies import PolicyLike
from paceline.policies.python_policy import PythonPolicy
from paceline.problems.resources import UNNAMED

REFUSED = PythonPolicy.reasons[GUARD]  # the words of the guard, which are the same for all policies


@dataclass(slots=True)
class Round:
    """A decision and its outcome, as far as it is known."""

    number: int
    time: float | None  # in seconds, if it was written down
    arm: str | None  # None if it was sat out
    reason: str
    propensity: float | None
    key: str | None
    reward: float | None
    costs: list[float | None]
    told: float | None = None  # when the last news came
    is_expired: bool = False
    is_over: bool = False  # nothing more is to come of it

    @property
    def is_known(self) -> bool:
        """Whether all of it was told."""
        return self.reward is not None and None not in self.costs


class Rounds:
    """The rounds of a journal while its events are read, and what the numbers in the events stand for.

    A policy of the user's that is not given is known by its name only: its reasons are numbers then.
    """

    def __init__(self, policy: PolicyLike | None = None) -> None:
        self.given = policy
        self.fit = old_formats.as_it_is  # what reason and tag of a decision in an earlier format are today
        self.number = 0
        self.policy = "not known"
        self.arms: list[str] = []
        self.open: dict[int, Round] = {}
        self.last: Round | None = None  # that an event was about, if it is here
        self.expired: OrderedDict[int, None] = OrderedDict()

    def begin(self, header: Header) -> None:
        """A segment begins. Its header has all that came before it, but for what is open."""
        settings = old_formats.settings_of_today(header.format, header.settings)
        self.has_times = header.format >= FORMAT
        budget = settings["budget"]
        self.is_unnamed = not isinstance(budget, dict)
        self.resources: tuple[str, ...] = (UNNAMED,) if self.is_unnamed else tuple(budget)
        self.worker: str | None = settings.get("worker")
        self.remember: int = settings["remember"]
        self.silence: float | None = settings.get("silence")
        self.arms = list(header.arms)
        self.number = header.rounds
        self.use_policy(settings["policy"])

    def use_policy(self, written: dict[str, Any]) -> None:
        """What the decisions to come are explained by."""
        self.policy = written["name"]
        try:
            policy = policy_in_file(written, self.given)
        except PacelineError:
            self.reasons: tuple[str, ...] = (REFUSED,)
            self.tag_is_arm = False
        else:
            self.reasons, self.tag_is_arm = policy.reasons, policy.tag_is_arm

    # What numbers stand for.

    def reader(self, format: int) -> Callable[[Any], Event]:
        """What makes events of the lines of a segment in that format."""
        if format >= FORMAT:
            return read
        return old_formats.reader_of(format, self.slot_of, self.fit)

    def slot_of(self, name: str) -> int:
        """The slot of the arm that has a name now."""
        return len(self.arms) - 1 - self.arms[::-1].index(name)

    def seconds(self, time: int) -> float | None:
        """The time of an event; earlier versions did not write it down."""
        return time / 1000.0 if self.has_times else None

    def id_of(self, number: int) -> int | str:
        """The id of a decision as the user knows it."""
        return number if self.worker is None else f"{self.worker}-{number}"

    def reason_of(self, reason: int) -> str:
        """Why, in the words of the policy."""
        return self.reasons[reason] if 0 <= reason < len(self.reasons) else f"reason {reason} of {self.policy}"

    def other_of(self, event: Ask) -> str | None:
        """The arm that a decision is about besides the one that is pulled."""
        is_arm = 0 <= event.tag < len(self.arms) and (self.tag_is_arm or event.reason == GUARD)
        return self.arms[event.tag] if is_arm else None

    def by_name(self, amounts: Sequence[float | None]) -> Any:
        """Amounts by resource, those that are known; of one resource without a name the amount itself."""
        if self.is_unnamed:
            return amounts[0]
        pairs = zip(self.resources, amounts, strict=True)
        return {name: amount for name, amount in pairs if amount is not None} or None

    # What happens.

    def take(self, event: Event) -> list[Round]:
        """Let an event happen; gives the rounds of which nothing more is to come."""
        match event:
            case Ask():
                return self.ask(event)
            case Tell():
                return self.tell(event)
            case Cancel(id=number):
                self.last = self.open.get(number)
                return self.ended(number)
            case Expire():
                return [ended for number in event.ids for ended in self.expire(number, event.time)]
            case Add():
                self.arms.append(event.name)
            case Set():
                self.silence = event.settings.get("silence", self.silence)
                if "policy" in event.settings:
                    self.use_policy(event.settings["policy"])
        return []

    def ask(self, event: Ask) -> list[Round]:
        """A round begins; without a pull it is over at once."""
        slot, reason, _, time, _, facts, propensity = event
        self.number += 1
        arm = self.arms[slot] if slot >= 0 else None
        key = None if facts is None else facts.key
        unknown: list[float | None] = [None] * len(self.resources)
        begun = Round(self.number, self.seconds(time), arm, self.reason_of(reason), propensity, key, None, unknown)
        self.last = begun
        if arm is None:
            begun.is_over = True
            return [begun]
        self.open[self.number] = begun
        return []

    def tell(self, event: Tell) -> list[Round]:
        """News of a round, unless it began before the first segment that is there."""
        number, reward, costs, time, _ = event
        self.last = told = self.open.get(number)
        if told is None:
            return []
        told.told = self.seconds(time)
        told.reward = reward if told.reward is None else told.reward
        told.costs = [new if known is None else known for known, new in zip(told.costs, costs, strict=True)]
        if told.is_expired:
            self.keep_silent(told)
        return self.ended(number) if told.is_known else []

    def expire(self, number: int, time: int) -> list[Round]:
        """A round is not waited for any more; so many of them can still be told something."""
        expired = self.open.get(number)
        if expired is None:
            return []
        self.keep_silent(expired)
        if expired.is_known:
            expired.told = self.seconds(time)
            return self.ended(number)
        expired.is_expired = True
        self.expired[number] = None
        return self.ended(next(iter(self.expired))) if len(self.expired) > self.remember else []

    def keep_silent(self, expired: Round) -> None:
        """With all costs but no reward, silence may stand for a reward."""
        if expired.reward is None and None not in expired.costs:
            expired.reward = self.silence

    def ended(self, number: int) -> list[Round]:
        """Nothing more is to come of a round."""
        self.expired.pop(number, None)
        ended = self.open.pop(number, None)
        if ended is None:
            return []
        ended.is_over = True
        return [ended]


def follow(parts: Iterable[Part], rounds: Rounds) -> Iterator[tuple[int, Event, list[Round]]]:
    """The events of a journal with the numbers of their lines, each when it has happened, and the rounds it ended."""
    segment = 0
    for part in parts:
        header, place, found = part
        line = header.before.lines + 1
        try:
            if header.segment != segment:
                rounds.begin(header)
            segment = header.segment
        except NONSENSE as error:
            raise senseless(place, line, error) from error
        for line, event in events_in(found, rounds.reader(header.format), place):
            try:
                over = rounds.take(event)
            except NONSENSE as error:
                raise senseless(place, line, error) from error
            yield line, event, over

"""The books of a live bandit: decisions, reservations and what has been told. No files, no locks, no clock on the wall.

Everything that can happen is an event, and `Ledger.apply` is the one place where an event changes the books. The same
events in the same order give the same books, bit for bit: that is how a journal is read back. Events have passed their
checks (requests.py) before they come here, so applying one cannot fail.

A decision is the one event that the books write themselves: `decide` lets the policy choose and books its choice in one
call of compiled code, because a second call would take as long as the first. What is left of it is in `begin`, for
decisions made now and read from a journal alike.

Amounts come in tuples with an entry per resource.
"""

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from paceline.calls import check_choice
from paceline.errors import InvalidPolicy
from paceline.interrupts import signals_held
from paceline.kernels.budget import line_units
from paceline.kernels.jit import plain_throughout
from paceline.kernels.state import GUARD, SKIP
from paceline.live import answers, changes, events, income, outcomes
from paceline.live.arms import ArmSet, Lineup
from paceline.live.config import Config
from paceline.live.deadlines import Deadlines
from paceline.live.decision import Decision, make
from paceline.live.events import Ask, Costs, Event, Facts, Failed, Opened, write_ask, write_usual_ask
from paceline.live.late_rewards import Ended, LateRewards, can_correct
from paceline.live.latest import Latest
from paceline.live.layers import Layers, View
from paceline.live.pulls import Outcome, Pull, Pulls, Row, Told, Units, as_pull, is_expired
from paceline.live.shelves import Shelves
from paceline.live.sums import no_sums
from paceline.live.timed_income import TimedIncome
from paceline.live.turnout import Turnout
from paceline.policies import PolicyLike
from paceline.policies.rules import is_ours
from paceline.undo import keep, put_back

Choice = tuple[int, int, int]  # slot (or place), reason, tag
Note = Callable[[str], None]  # writes an event down


FEW = 1000  # pulls that are copied at once when somebody looks through them
MANY = 10_000  # pulls that are too many for one dictionary: to copy it when it is full would take too long
MOST_NUMBERS = 10_000  # ids that are kept at hand
MERGE_AT_ONCE = 1000  # changes made meanwhile that one call works into the others: many more than come between two

line_of = plain_throughout(line_units)


class Ledger:
    """The state of a live bandit and everything that can happen to it."""

    # What every round looks at stands apart: Python is slower with the attributes of an object that has more than
    # thirty, or of which a copy was made. The others are found as usual.
    __slots__ = (
        "__dict__",
        "arm_set",
        "currencies",
        "deadlines",
        "facts",
        "has_own_id",
        "is_notable",
        "is_single",
        "is_unnamed",
        "is_unusual",
        "lasting",
        "max_reward",
        "may_fail",
        "may_wait",
        "next_stop",
        "pending",
        "policy_since",
        "remembered",
        "rounds",
        "scales",
        "seen",
        "settled",
        "situations",
        "tag_is_arm",
        "told",
        "turnout",
    )

    def __init__(self, config: Config) -> None:
        count = len(config.resources)
        self.arm_set = ArmSet(config)
        self.currencies = [resource.currency for resource in config.resources]
        self.scales = [resource.scale for resource in config.resources]
        self.is_single = count == 1
        self.is_unnamed = config.is_unnamed
        self.unknown: Costs = (None,) * count
        self.no_units: Units = (0,) * count
        self.rounds = 0
        self.pending: Pulls | Shelves | Layers = Pulls()
        self.settled: Latest[int, Outcome] = Latest()
        self.expired_pulls: OrderedDict[int, None] = OrderedDict()  # and not settled since, the longest ago first
        self.answers: Latest[str, Decision] = Latest()  # by the key of the request
        self.deadlines = Deadlines()
        self.kept_back = 0  # pulls that are told, but pending until their window is over
        self.policy_since = 0  # the last round before the present policy
        self.session: str | None = None  # of a picture: what a policy in plain Python has learned
        self.told = 0  # outcomes that the engine was told of
        self.reports: dict[str, Any] = {}  # of others, by their name
        self.foreign = no_sums(config.policy, len(config.arms), count)  # what they add up to
        self.rolled = [0] * count  # units that were spent before the books were rolled over
        self.overrun = [0] * count  # units told above the largest costs
        self.turnout = Turnout(len(config.arms))
        self.timed = TimedIncome(config)
        self.late: LateRewards | None = None  # where silence stands for a reward once the usual window is over
        self.ended: tuple[Ended, ...] = ()  # windows before it, of which pulls are open
        self.is_notable = False  # whether there is something to be said: a mistake, or
        self.is_marked = False  # whether rounds were counted since somebody looked
        self.given_policy: PolicyLike | None = None  # in which a policy of the user's that a journal names can be found
        self.digest = ""  # of the policy's code, as a journal has noted it last
        self.mistake: InvalidPolicy | None = None  # that the last refusal was for
        self.seen = self.arm_set.lineup  # the arms that the last decision was about, and
        self.facts: Facts | None = None  # what was true of the request
        self.numbers: dict[str, int] = {}  # of decisions by their ids, as far as at hand: else they are read off
        self.use(config)
        self.renew_window()
        self.renew_stop()

    def use(self, config: Config) -> None:
        """Take over settings; those that are needed all the time are kept at hand."""
        policy = config.policy
        self.config = config
        self.tag_is_arm, self.situations = policy.tag_is_arm, policy.reasons
        self.max_reward, self.remembered = config.max_reward, config.remember
        self.lasting = None if config.expires is None else milliseconds(config.expires)
        self.may_fail = not is_ours(policy)
        self.is_random = policy.propensity(True, True, 1, 1) is not None
        self.has_own_id = config.worker is not None
        self.has_more_to_say = self.has_own_id or self.is_random  # than the usual decision
        self.id_begins = "" if config.worker is None else f"{config.worker}-"
        self.may_be_silent = config.silence is not None

    def renew_window(self) -> None:
        """Begin to correct rewards for their delay, or, with other settings, begin anew with what may be reported."""
        config, late = self.config, self.late
        is_on = config.silence is not None and self.lasting is not None and can_correct(config.policy)
        wanted = (self.lasting, (config.silence or 0.0) / self.max_reward) if is_on else None
        if late is not None and wanted != (late.window, late.silence):
            self.ended = (*self.ended, Ended(late.since, self.rounds, late.window))
            for slot in range(len(self.arm_set.names)):
                self.arm_set.add_rewards(slot, late.only_aged(slot))
                self.arm_set.renew_beliefs(slot)
            late = None
        if late is None and wanted is not None:
            late = LateRewards(wanted[0] or 0, wanted[1], len(self.arm_set.names), self.rounds)
            self.arm_set.get_ready_for_parts()
        self.late = late
        self.forget_ended()
        self.is_special = self.may_fail or self.timed.is_on or late is not None
        self.is_unusual = self.is_special or self.is_random or not self.tag_is_arm

    def forget_ended(self) -> None:
        """Forget the windows that have ended and have no open pulls any more; the first pull has the lowest number."""
        if self.ended and not isinstance(self.pending, Layers):  # in which it may take long to find the first
            oldest = next(iter(self.pending), None)
            kept = [ended for ended in self.ended if oldest is not None and oldest <= ended.until > ended.since]
            self.ended = tuple(kept)
        self.may_wait = self.may_be_silent or bool(self.ended)

    def marked(self, number: int, row: Row) -> Pull:
        """A pull that is pending, marked if nothing more is learned of its reward because its window has ended."""
        pull = as_pull(row)
        place = bisect_left(self.ended, number, key=Ended.last)
        if place < len(self.ended) and self.ended[place].has(number, pull):
            told = pull.told or Told(None, self.unknown, self.no_units, False)
            return pull._replace(told=told._replace(learned=True))
        return pull

    def apply(self, event: Event) -> None:
        """Let an event happen."""
        APPLY[type(event)](self, event)

    # Rounds.

    def open_round(self, time: int, facts: Facts | None) -> Lineup:
        """What comes before a decision that is not as usual: income by the clock, and the arms that it is about."""
        self.pass_time(time)
        if self.timed.is_on:
            income.accrue(self, time)
        if facts is not None and not is_usual(facts):
            self.seen = self.arm_set.narrow(facts)
        return self.seen

    def pass_time(self, time: int) -> None:
        """Let the pulls whose rewards may come late grow older."""
        late = self.late
        if late is not None and late.cell != late.cell_of(time):
            with signals_held():
                for slot in late.advance(time):
                    self.renew_rewards(slot)

    def renew_rewards(self, slot: int) -> None:
        """Bring what is known of an arm's rewards up to date with their delays, and what the policy believes."""
        assert self.late is not None
        self.arm_set.add_rewards(slot, self.late.renewed(slot))
        self.arm_set.renew_beliefs(slot)

    def decide(self, time: int, facts: Facts | None = None) -> Choice:
        """Begin a round and let the policy choose. The choice is to be written down, and given to `begin`.

        If the code of a user's policy raises an error, the round has not begun.
        """
        if self.rounds >= self.next_stop:
            self.stop_by()
        arm_set = self.arm_set
        self.seen, self.facts = arm_set.lineup, facts
        if self.is_special or facts is not None:
            return self.in_slots(*self.ask_specially(time, facts))
        arm, reason, tag = arm_set.calls.ask(arm_set.params, arm_set.playing)
        return self.in_slots(arm, reason, tag)

    def decide_and_begin(
        self, time: int, deadline: int | None, facts: Facts | None = None, note: Note | None = None
    ) -> Decision:
        """A round: the policy chooses, its choice is written down with ``note``, if given, and booked.

        The usual pull is all here, since four calls of functions would take a fifth of its time.
        """
        if self.is_unusual or facts is not None or self.rounds >= self.next_stop:
            choice = self.decide(time, facts)
            return self.note_and_begin(choice, time, deadline, facts, note)
        arm_set = self.arm_set
        self.seen, self.facts = arm_set.lineup, None
        ask, slot_at = arm_set.calls.ask, arm_set.slot_at  # what is called as a method is looked for in the class first
        arm, reason, tag = ask(arm_set.params, arm_set.playing)
        slot = slot_at[arm]
        if slot < 0:
            return self.note_and_begin(self.in_slots(arm, reason, tag), time, deadline, None, note)
        number, name_at, situation = self.rounds + 1, arm_set.name_at, self.situations[reason]
        tag = slot_at[tag]
        if note is not None:
            note(write_usual_ask(slot, reason, tag, time, deadline))
        reserved, largest = arm_set.reserves[slot], arm_set.max_costs[slot]
        self.pending[number] = slot, reason, tag, reserved, largest, time, deadline, None  # the fields of a Pull
        if deadline is not None:
            self.deadlines.push(deadline, number, self.pending)
        counts = self.turnout.counts[slot]
        counts[situation] = counts.get(situation, 0) + 1
        self.rounds = number
        id: Any = number
        if self.has_own_id:
            id = f"{self.id_begins}{number}{arm_set.id_ends[slot]}"
            self.numbers[id] = number
        return make(Decision, (id, name_at[slot], situation, name_at[tag], None, None, None, None))

    def note_and_begin(
        self, choice: Choice, time: int, deadline: int | None, facts: Facts | None, note: Note | None
    ) -> Decision:
        """Write a choice down, and book it."""
        slot, reason, tag = choice
        if note is not None:
            likely = answers.propensity(self, slot, reason, tag) if self.is_random else None
            note(write_ask(slot, reason, tag, time, deadline if slot >= 0 else None, facts, likely))
        return self.begin(slot, reason, tag, time, deadline, facts)

    def ask_specially(self, time: int, facts: Facts | None) -> Choice:
        """The policy's choice where something is not as usual; arms are called by their places."""
        lineup = self.open_round(time, facts)
        kept = keep(lineup.storage) if self.may_fail else None
        try:
            choice = lineup.calls.ask(lineup.params, lineup.storage)
        except BaseException:
            if kept is not None:
                with signals_held():
                    put_back(lineup.storage, kept)
            raise
        finally:
            if lineup is not self.arm_set.lineup:
                self.arm_set.widen(lineup)
        return choice

    def in_slots(self, arm: int, reason: int, tag: int) -> Choice:
        """A choice with slots for the numbers by which the policy calls the arms."""
        slot_at = self.seen[4]
        if reason == GUARD:
            self.mistake = self.find_mistake()
            self.is_notable = self.is_notable or self.mistake is not None
            return slot_at[arm], reason, slot_at[tag]
        return slot_at[arm], reason, slot_at[tag] if self.tag_is_arm else tag

    def find_mistake(self) -> InvalidPolicy | None:
        """What the policy did that it must not do; such a choice comes as a refusal of the guard, and is forgiven."""
        storage = self.seen.storage
        try:
            check_choice(self.config.policy, storage, self.seen.params)
        except InvalidPolicy as mistake:
            storage.tally["fault"] = storage.tally["faulty"] = 0
            return mistake
        return None

    def follow(self, event: Ask) -> None:
        """Begin a round with a decision that was made earlier, as a journal tells it."""
        slot, reason, tag, time, deadline, facts, _ = event
        if self.rounds >= self.next_stop:
            self.stop_by()
        arm_set = self.arm_set
        self.seen = lineup = arm_set.lineup
        place_of: Any = arm_set.places
        if self.is_special or facts is not None:
            lineup = self.open_round(time, facts)
        if lineup is not arm_set.lineup:
            place_of = dict(zip(lineup.slot_at, [*range(len(lineup.slots) + 1), SKIP], strict=True))
        place = place_of[tag] if self.tag_is_arm or reason == GUARD else tag
        arm_set.follow(lineup, place_of[slot], reason, place)
        if lineup is not arm_set.lineup:
            arm_set.widen(lineup)
        self.begin(slot, reason, tag, time, deadline, facts)

    def fail_again(self, event: Failed) -> None:
        """Let the policy fail as a journal tells it: one in plain Python may have drawn or noted something.

        Its code may have been edited since, and not fail any more: the round has not begun all the same.
        """
        if self.rounds >= self.next_stop:
            self.stop_by()
        self.seen = self.arm_set.lineup
        lineup = self.open_round(event.time, event.facts)
        kept = keep(lineup.storage)
        with suppress(Exception):
            lineup.calls.ask(lineup.params, lineup.storage)
        put_back(lineup.storage, kept)
        if lineup is not self.arm_set.lineup:
            self.arm_set.widen(lineup)

    def begin(
        self, slot: int, reason: int, tag: int, time: int, deadline: int | None = None, facts: Facts | None = None
    ) -> Decision:
        """Book a decision; a pull stays open, with its largest costs reserved (the engine has seen to the amounts).

        The number of the round is changed last: if this is cut short, it can be done again.
        """
        number, arm_set = self.rounds + 1, self.arm_set
        if slot >= 0:
            reserved, largest = arm_set.reserves[slot], arm_set.max_costs[slot]
            if facts is not None:
                reserved, largest = self.reserved_for(slot, facts)
            pull = slot, reason, tag, reserved, largest, time, deadline, None
            if self.late is None:
                self.pending[number] = pull
            else:
                self.wait_for_reward(number, as_pull(pull))
            if deadline is not None:
                self.deadlines.push(deadline, number, self.pending)
        decision = answers.answer(self, number, slot, reason, tag)
        if facts is not None and facts.key is not None:
            kept = decision._replace(id=answers.without_slot(decision.id))
            self.answers.keep(facts.key, kept, max(self.remembered, 1))
        counts = self.turnout.counts[slot]
        counts[decision[2]] = counts.get(decision[2], 0) + 1
        self.rounds = number
        return decision

    def wait_for_reward(self, number: int, pull: Pull) -> None:
        """A pull whose reward may come late is pending, and counts from now on: both or nothing."""
        assert self.late is not None
        with signals_held():
            self.pending.put(number, pull)
            if self.late.has(number, pull):
                self.late.count(pull)
                self.arm_set.add_rewards(pull.slot, self.late.renewed(pull.slot))

    def reserved_for(self, slot: int, facts: Facts) -> tuple[Units, tuple[float, ...]]:
        """What is set aside for a pull of an arm, given what is true of the request, and its largest costs."""
        largest = dict(facts.largest).get(slot, self.arm_set.max_costs[slot])
        return self.arm_set.units_of(largest), largest

    # Looking.

    def view_pending(self) -> View:
        """The pulls that are not settled, as they are at this moment, to look through while the books go on."""
        if isinstance(self.pending, Pulls) and len(self.pending) <= FEW:
            return View([self.pending.copy()])
        if not isinstance(self.pending, Layers):
            self.pending = Layers(self.pending)
        return self.pending.view()

    def count_awaited(self) -> int:
        """How many pulls wait for news: neither told nor expired."""
        return len(self.pending) - len(self.expired_pulls) - self.kept_back

    def has_round_open(self) -> bool:
        """Whether the engine has begun a round that is not in the books."""
        return int(self.arm_set.books.tally.t) > self.rounds

    def line(self, d: int) -> int:
        """Units of a resource that have come in, but for those that were rolled over."""
        return int(line_of(self.arm_set.books, d))

    def headroom(self, d: int) -> int:
        """Units of a resource that may still be spent."""
        books = self.arm_set.books
        return self.line(d) - int(books.spent[d]) - int(books.reserved[d])

    def id_of(self, number: int, slot: int) -> Any:
        """The id of a decision for an arm, as the user knows it."""
        return f"{self.id_begins}{number}{self.arm_set.id_ends[slot]}" if self.has_own_id else number

    # Every so many rounds.

    def stop_by(self) -> None:
        """Count how many rounds were sat out lately, tidy up, and roll the books over before numbers get too large."""
        self.turnout.mark(self.rounds)
        self.is_marked = self.is_notable = True
        if isinstance(self.pending, Layers):
            self.pending = self.pending.merged(MERGE_AT_ONCE)
        elif isinstance(self.pending, Pulls) and len(self.pending) > MANY:
            self.pending = Shelves(self.pending)
        elif isinstance(self.pending, Shelves) and len(self.pending) < MANY // 4:
            self.pending = Pulls(self.pending.items())
        if len(self.numbers) > MOST_NUMBERS:  # the others are read off; to look for those that are settled takes longer
            self.numbers = {}
        if self.ended:
            self.forget_ended()
        if self.rounds >= self.next_roll:
            income.roll_over(self)
        self.renew_stop()

    def renew_stop(self) -> None:
        """When to stop by again."""
        self.next_roll = income.last_countable_round(self)
        self.next_stop = min(self.next_roll, self.turnout.next_mark())

    def due(self, now: int, most: int) -> tuple[int, ...]:
        """Up to so many decisions whose deadline has passed and that have not expired yet."""
        found = self.deadlines.due(now, self.pending, most)
        return tuple([number for number in found if not is_expired(self.pending[number])])

    def note_opening(self, event: Opened) -> None:
        """A program went on with a journal, with this code; nothing else changes."""
        self.digest = event.digest


APPLY: dict[type[Event], Callable[[Ledger, Any], None]] = {
    events.Ask: Ledger.follow,
    events.Failed: Ledger.fail_again,
    events.Tell: outcomes.take_in,
    events.Cancel: outcomes.cancel,
    events.Expire: outcomes.expire,
    events.Credit: income.credit,
    events.Pace: income.pace,
    events.Add: changes.add_arm,
    events.SetStatus: changes.set_status,
    events.Observe: changes.observe,
    events.Merge: changes.merge_reports,
    events.Set: changes.change_settings,
    events.Opened: Ledger.note_opening,
}


def is_usual(facts: Facts) -> bool:
    """Whether a request is about all arms in play at their usual largest costs."""
    return facts.slots is None and not facts.largest


def milliseconds(seconds: float) -> int:
    """A time span in whole milliseconds, at least one."""
    return max(round(seconds * 1000.0), 1)

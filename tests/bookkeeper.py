"""The books of a live bandit a second time, slow and obvious, and ways to look at one from outside.

Amounts are exact here: fractions in the user's own unit, and nothing is rounded.
"""

import json
import math
import os
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice
from random import Random
from typing import Any

import pytest
from scipy import optimize, special

from paceline import (
    Bandit,
    Conflict,
    InvalidValue,
    Lagrangian,
    OnePhase,
    PacelineError,
    PrimalDual,
    PrimalDualBwK,
    QueuePacer,
    SkipFirst,
    SlidingWindowUCB,
    ThompsonLP,
    UCBBwK,
    UCBSimplex,
    UnknownName,
)
from paceline.live import snapshot
from paceline.live.journal import unlock
from paceline.policies import POLICIES as EVERY_POLICY
from paceline.policies import make_policy

# Those whose learners need a horizon.
OF_A_GAME = [name for name, policy in EVERY_POLICY.items() if issubclass(policy, Lagrangian | PrimalDualBwK)]

# Every policy that can run live, with the parameters that it needs for it.
NEEDED = {
    "one-phase": OnePhase(horizon=200),
    "primal-dual": PrimalDual(horizon=300),
    "queue": QueuePacer(slater=0.1),
    "skip-first": SkipFirst(horizon=200),
    "sw-ucb": SlidingWindowUCB(horizon=200, window=20),
    "thompson-lp": ThompsonLP(horizon=200),
    "ucb-bwk": UCBBwK(horizon=200),
    "ucb-simplex": UCBSimplex(lam=1),
    **{name: make_policy(name, horizon=200) for name in OF_A_GAME},
}
POLICIES = {name: NEEDED.get(name, name) for name, policy in EVERY_POLICY.items() if not policy.told_truth}

# Those of them that can do with several resources, of which one is a battery.
FOR_SEVERAL = {
    name: policy
    for name, policy in POLICIES.items()
    if EVERY_POLICY[name].resources is None and EVERY_POLICY[name].refillable
}

# Two resources for arms a, b and c: one with a line of its own, one that is a battery.
SEVERAL = {
    "budget": {"money": 0.3, "energy": 0.1},
    "max_cost": {"money": {"a": 0.2, "b": 1.0, "c": 0.5}, "energy": 0.4},
    "start": {"energy": 1.5},
    "cap": {"energy": 2.0},
    "max_refill": {"energy": 0.25},
}

NEWS, KNOWN = "news", "known"  # what may become of a call that is not refused
OPEN, SETTLED, CANCELLED = "open", "settled", "cancelled"


@dataclass
class Line:
    """What comes in of a resource."""

    budget: Fraction
    start: Fraction = Fraction(0)
    cap: Fraction | None = None
    hourly: Fraction = Fraction(0)
    scale: Fraction = Fraction(1)
    came: Fraction = field(init=False)  # so far, less what was lost above the cap
    held: Fraction = Fraction(0)  # credits for the rounds to come,
    held_rounds: int = 0  # and for how many of these
    roundings: int = 3  # of the start stock, of what the budget and of what the clock brings

    def __post_init__(self) -> None:
        self.came = self.start

    @property
    def unit(self) -> Fraction:
        """What a bandit rounds to: the smallest power of two of which the scale is at most 2**32."""
        unit = Fraction(1)
        while self.scale > unit * 2**32:
            unit *= 2
        while self.scale <= unit * 2**31:
            unit /= 2
        return unit

    def slack(self, rounds: int) -> Fraction:
        """How much less than it is the line may be by rounding: units, and 2**-31 units in each round."""
        return self.unit * (self.roundings + Fraction(rounds, 2**31))

    def move(self, amount: float, over: int = 0) -> None:
        """Income besides the budget, or money that leaves."""
        self.roundings += 1
        if over:
            self.held += Fraction(amount)
            self.held_rounds = max(self.held_rounds, over)
        else:
            self.came += Fraction(amount)

    def begin_round(self) -> None:
        self.came += self.budget
        if self.held_rounds:
            part = self.held / self.held_rounds
            self.came += part
            self.held -= part
            self.held_rounds -= 1
            self.roundings += 1

    def change(self, budget: float | None = None, hourly: float | None = None) -> None:
        """Other income from now on; what has come in by now counts to a whole unit."""
        self.budget = self.budget if budget is None else Fraction(budget)
        self.hourly = self.hourly if hourly is None else Fraction(hourly)
        self.roundings += 2


@dataclass
class Pull:
    """A decision with an arm. Amounts have an entry per resource."""

    arm: str
    slot: int  # arms may have the same name, one after the other
    largest: list[Fraction]
    asked: int  # milliseconds
    deadline: int | None
    costs: list[float | None]
    reward: float | None = None
    expired: bool = False
    learned: bool = False  # whether its reward is, or counts as such
    fate: str = OPEN

    @property
    def told_all(self) -> bool:
        return self.reward is not None and None not in self.costs

    def charged(self, d: int) -> Fraction:
        """What counts as spent for it: its cost if that is known, its largest cost once nobody waits for it."""
        if self.fate == CANCELLED:
            return Fraction(0)
        if self.costs[d] is not None:
            return Fraction(self.costs[d])
        return self.largest[d] if self.expired else Fraction(0)

    def reserved(self, d: int) -> Fraction:
        """What is set aside for it."""
        return self.largest[d] if self.fate == OPEN and self.costs[d] is None and not self.expired else Fraction(0)

    def overrun(self, d: int) -> Fraction:
        """What it has cost above its largest cost."""
        return max(self.charged(d) - self.largest[d], Fraction(0))


class Books:
    """What a bandit was asked and told. Times are in milliseconds."""

    def __init__(
        self, lines: list[Line], remember: int, silence: float | None = None, has_period: bool = False
    ) -> None:
        self.window: int | None = None  # milliseconds, where rewards are corrected for their delay; for decisions
        self.window_since = 0  # after this one
        self.lines = lines
        self.remember = remember
        self.silence = silence
        self.has_period = has_period
        self.rounds = 0
        self.last: int | None = None  # the latest time at which it was seen what the clock has brought
        self.pulls: dict[int, Pull] = {}
        self.ended: list[int] = []  # settled or cancelled, in this order
        self.expired_pulls: list[int] = []  # expired and not settled since
        self.forgotten: set[int] = set()
        self.answers: dict[str, Any] = {}  # by key
        self.observed: dict[int, list[tuple[float, list[float]]]] = {}  # by slot
        self.reported: dict[str, dict[str, list[tuple[float, list[float]]]]] = {}  # by owner and name of the arm

    def income(self, d: int) -> Fraction:
        """What came in of a resource so far and was not lost."""
        return self.lines[d].came

    def charged(self, d: int) -> Fraction:
        """What is spent of a resource."""
        return sum((pull.charged(d) for pull in self.pulls.values()), Fraction(0))

    def reserved(self, d: int) -> Fraction:
        """What is set aside of it; with what is spent it must never be above the income."""
        return sum((pull.reserved(d) for pull in self.pulls.values()), Fraction(0))

    def overrun(self, d: int) -> Fraction:
        """What pulls have cost above their largest costs: only that may be spent above the income."""
        return sum((pull.overrun(d) for pull in self.pulls.values()), Fraction(0))

    def headroom(self, d: int) -> Fraction:
        return self.income(d) - self.charged(d) - self.reserved(d)

    def overflow(self) -> None:
        """Lose what is in stock above a cap."""
        for d, line in enumerate(self.lines):
            if line.cap is not None:
                line.came -= max(self.income(d) - self.charged(d) - line.cap, Fraction(0))

    @property
    def pending(self) -> dict[int, str]:
        return {
            number: pull.arm
            for number, pull in self.pulls.items()
            if pull.fate == OPEN and number not in self.forgotten
        }

    @property
    def kept_back(self) -> set[int]:
        """Decisions of which all is told, but that end with their window."""
        return {number for number in self.pending if self.pulls[number].told_all}

    def known_pulls(self, slot: int) -> int:
        """How many pulls of an arm all is known of, here or from elsewhere."""
        settled = [pull for pull in self.pulls.values() if pull.slot == slot and pull.fate == SETTLED]
        return len(settled) + len(self.observed.get(slot, []))

    def learn_from_others(self, owner: str, outcomes: dict[str, list[tuple[float, list[float]]]]) -> None:
        """What another bandit has reported of arms by name, in place of what it did before."""
        self.reported[owner] = outcomes

    def reported_of(self, name: str) -> list[tuple[float, list[float]]]:
        return [outcome for outcomes in self.reported.values() for outcome in outcomes.get(name, [])]

    @property
    def earned(self) -> float:
        return sum(pull.reward for pull in self.pulls.values() if pull.fate == SETTLED)

    def told_of(self, slot: int, name: str) -> tuple[list[float], list[list[float]]]:
        """All rewards that were told of an arm, and all costs by resource, whatever else is known of the pulls."""
        pulls = [pull for pull in self.pulls.values() if pull.slot == slot and pull.fate != CANCELLED]
        learned = [pull.reward if pull.learned or pull.fate == SETTLED else None for pull in pulls]
        told = [(reward, pull.costs) for reward, pull in zip(learned, pulls, strict=True)]
        told += self.observed.get(slot, []) + self.reported_of(name)
        costs = [[costs[d] for _, costs in told if costs[d] is not None] for d in range(len(self.lines))]
        return [reward for reward, _ in told if reward is not None], costs

    # What must become of a call: NEWS, KNOWN, or the kind of error.

    def known_to(self, number: int) -> bool:
        return number in self.pulls and number not in self.forgotten

    def on_tell(self, number: int, reward: float | None, costs: list[float | None]) -> str | type[PacelineError]:
        if reward is None and not any(cost is not None for cost in costs):
            return InvalidValue
        if not self.known_to(number):
            return UnknownName
        pull = self.pulls[number]
        if pull.fate == CANCELLED:
            return Conflict
        pairs = [(reward, pull.reward), *zip(costs, pull.costs, strict=True)]
        if any(None not in pair and pair[0] != pair[1] for pair in pairs):
            return Conflict
        return NEWS if any(given is not None and known is None for given, known in pairs) else KNOWN

    def on_cancel(self, number: int) -> str | type[PacelineError]:
        if not self.known_to(number):
            return UnknownName
        pull = self.pulls[number]
        if pull.fate == CANCELLED:
            return KNOWN
        return NEWS if pull.reward is None and not any(cost is not None for cost in pull.costs) else Conflict

    def on_expire(self, number: int) -> str | type[PacelineError]:
        if not self.known_to(number):
            return UnknownName
        pull = self.pulls[number]
        return NEWS if pull.fate == OPEN and not pull.expired else KNOWN

    # What happens.

    @property
    def is_timed(self) -> bool:
        return self.has_period or any(line.hourly for line in self.lines)

    def pass_time(self, now: int) -> None:
        """Take in what the clock has brought; one that was set back brings nothing until it has caught up."""
        elapsed = 0 if self.last is None else max(now - self.last, 0)
        self.last = now if self.last is None else self.last + elapsed
        for line in self.lines:
            line.came += line.hourly * elapsed / 3_600_000
        self.overflow()

    def ask(self, number: int, now: int, pull: Pull | None) -> None:
        """A round, and the decision that was made in it: a pull is paid for before it is made, whatever it costs."""
        self.rounds += 1
        assert number == self.rounds
        if self.is_timed:
            self.pass_time(now)
        for line in self.lines:
            line.begin_round()
        self.overflow()
        if pull is not None:
            assert all(most <= self.headroom(d) for d, most in enumerate(pull.largest))
            self.pulls[number] = pull

    def keep_answer(self, key: str, decision: Any) -> None:
        self.answers[key] = decision
        if len(self.answers) > max(self.remember, 1):
            del self.answers[next(iter(self.answers))]

    def move(self, amounts: list[float | None], over: int = 0) -> None:
        """Money that comes, or leaves where it is below 0."""
        for line, amount in zip(self.lines, amounts, strict=True):
            if amount is not None:
                line.move(amount, over)
        self.overflow()

    def change_income(
        self,
        now: int,
        budgets: list[float | None] | None = None,
        hourly: list[float | None] | None = None,
        has_period: bool | None = None,
    ) -> None:
        """Other income from now on; income by the clock begins with a round."""
        if self.is_timed and self.rounds:
            self.pass_time(now)
        nothing = [None] * len(self.lines)
        for line, budget, rate in zip(self.lines, budgets or nothing, hourly or nothing, strict=True):
            line.change(budget, rate)
        self.has_period = self.has_period if has_period is None else has_period
        if not self.is_timed:
            self.last = None
        elif self.rounds and self.last is None:
            self.last = now

    def tell(self, number: int, reward: float | None, costs: list[float | None]) -> None:
        pull = self.pulls[number]
        pull.costs = [known if given is None else given for given, known in zip(costs, pull.costs, strict=True)]
        is_kept_back = self.is_kept_back(number)
        if reward is not None:
            pull.learned = pull.learned or (pull.reward is None and not is_kept_back)
            pull.reward = reward
        elif pull.expired and pull.reward is None and None not in pull.costs:
            pull.reward = self.silence
        if pull.told_all and (pull.expired or not is_kept_back):
            self.end(number, SETTLED)
        self.overflow()

    def is_corrected(self, number: int) -> bool:
        """Whether the reward of a decision is corrected for its delay: it has the usual window."""
        pull = self.pulls[number]
        is_usual = self.window is not None and pull.deadline == pull.asked + self.window
        return is_usual and number > self.window_since and not pull.expired

    def is_kept_back(self, number: int) -> bool:
        """Whether a reward is learned only when the window is over, as silence would be."""
        pull = self.pulls[number]
        may_be_silent = self.silence is not None and pull.deadline is not None
        return may_be_silent and not pull.learned and not self.is_corrected(number)

    def change_window(self, window: int | None, silence: float | None) -> None:
        """Another window, or another reward that silence stands for: pulls on their way are not corrected any more."""
        if (window, silence) != (self.window, self.silence) and (window is not None or self.window is not None):
            for number in self.pending:
                if self.is_corrected(number):
                    self.pulls[number].learned = True
            self.window_since = self.rounds
        self.window, self.silence = window, silence

    def observe(self, slot: int, reward: float, costs: list[float]) -> None:
        self.observed.setdefault(slot, []).append((reward, costs))

    def cancel(self, number: int) -> None:
        self.end(number, CANCELLED)
        self.overflow()

    def end(self, number: int, fate: str) -> None:
        self.pulls[number].fate = fate
        self.expired_pulls = [other for other in self.expired_pulls if other != number]
        self.ended.append(number)
        if len(self.ended) > self.remember:
            self.forgotten.add(self.ended.pop(0))

    def expire(self, number: int) -> None:
        pull = self.pulls[number]
        reward = self.silence if pull.reward is None else pull.reward
        if None not in pull.costs and reward is not None:
            pull.reward = reward
            self.end(number, SETTLED)
            return
        if self.is_corrected(number):
            pull.learned = False
        pull.expired = True
        self.expired_pulls.append(number)
        if len(self.expired_pulls) > self.remember:
            self.forgotten.add(self.expired_pulls.pop(0))

    def past_deadline(self, now: int) -> list[int]:
        """Decisions that are not settled and whose time is up, in this order; some may have expired before."""
        late = [
            (self.pulls[number].deadline, number)
            for number in self.pending
            if self.pulls[number].deadline is not None and self.pulls[number].deadline <= now
        ]
        return [number for _, number in sorted(late)]

    def due(self, now: int) -> list[int]:
        """What calls at that time must expire first, in its order."""
        return [number for number in self.past_deadline(now) if not self.pulls[number].expired]


# Looking at a bandit.


def state_of(bandit: Bandit) -> dict[str, Any]:
    """All that it would save."""
    return json.loads("".join(snapshot.pieces(snapshot.describe_ledger(bandit._ledger))))


@contextmanager
def unchanged(bandit: Bandit) -> Iterator[None]:
    """The bandit and its journal are the same afterwards."""
    journal = bandit._journal
    before = state_of(bandit), journal and journal.path.read_bytes()
    yield
    assert (state_of(bandit), journal and journal.path.read_bytes()) == before


@contextmanager
def refused(bandit: Bandit, error: type[PacelineError], message: str = "") -> Iterator[None]:
    """The calls inside raise this very error, in one line with this beginning, and change nothing."""
    with unchanged(bandit):
        with pytest.raises(error) as caught:
            yield
        assert type(caught.value) is error
        assert str(caught.value).startswith(message)
        assert "\n" not in str(caught.value)


def abandon(bandit: Bandit) -> None:
    """What the death of its process does to a bandit: the system closes the journal, and nobody tidies up."""
    bandit._keeper.finish()  # a snapshot that is not finished leaves nothing behind either
    unlock(bandit._journal._file)  # this process lives on: what it is just starting has the file open for a moment
    os.close(bandit._journal._file)
    bandit._journal._file = -1


def in_order(bandit: Bandit, amounts: Any) -> list[float]:
    """Amounts of a bandit as a list with an entry per resource, whether they have names or not."""
    return list(bandit._ledger.config.in_order("amounts", amounts))


def keeps_the_promise(bandit: Bandit) -> bool:
    """As the user can see it, in floats."""
    with bandit._lock:  # many properties, one moment
        seen = (in_order(bandit, each) for each in (bandit.spent, bandit.reserved, bandit.credited, bandit.headroom))
    return all(spent + kept <= line and left >= 0.0 for spent, kept, line, left in zip(*seen, strict=True))


# A life without chance: the same steps for bandits in the same state, whoever drives them.


def reward_of(number: int) -> float:
    return number * 0.37 % 1.0


def cost_of(number: int) -> float:
    return number * 0.61 % 1.0 * 0.2


def costs_of(bandit: Bandit, number: int, first_alone: bool = False) -> Any:
    """The costs of a decision, as `tell` wants them; energy now and then comes back."""
    names = bandit._ledger.config.names
    if bandit._ledger.is_unnamed:
        return cost_of(number)
    costs = {name: cost_of(number + place) for place, name in enumerate(names[:1] if first_alone else names)}
    return {name: cost - 0.1 if name == "energy" else cost for name, cost in costs.items()}


def steps(bandit: Bandit, seed: int = 0) -> Iterator[tuple[Any, ...]]:
    """Ask on and on; tell late, in parts and out of order, cancel, expire, credit, pause: what was done, step by step.

    Its arms must be a, b and c, with largest costs of 0.2 or more.
    """
    chance = Random(seed)
    grant = 0.25 if bandit._ledger.is_unnamed else {bandit._ledger.config.names[0]: 0.25}
    while True:
        decision = bandit.ask()
        yield "ask", decision.id, decision.arm
        waiting = list(bandit.pending)
        while waiting and chance.random() < 0.6:
            number = waiting.pop(chance.randrange(len(waiting)))
            yield news(bandit, number, chance.random() < 0.5)
        if chance.random() < 0.1:
            bandit.credit(grant)
            yield "credit", grant
        if chance.random() < 0.2:
            how, arm = chance.choice(["pause", "resume", "resume"]), chance.choice("abc")
            getattr(bandit, how)(arm)
            yield how, arm


def news(bandit: Bandit, number: int, in_full: bool) -> tuple[Any, ...]:
    """What becomes of a decision is a matter of its number."""
    reward = reward_of(number)
    if number % 7 == 0:
        bandit.cancel(number)
        return "cancel", number
    if in_full or number % 7 > 3:
        costs = costs_of(bandit, number)
        bandit.tell(number, reward, costs)
        return "tell", number, reward, costs
    if number % 7 == 1:
        bandit.expire(number)
        return "expire", number
    part = {"reward": reward} if number % 7 == 2 else {"cost": costs_of(bandit, number, first_alone=True)}
    bandit.tell(number, **part)
    return "tell", number, part.get("reward"), part.get("cost")


def live(bandit: Bandit, count: int, seed: int = 0) -> list[tuple[Any, ...]]:
    """So many steps."""
    return list(islice(steps(bandit, seed), count))


SEED = 11


def policy_of(given):
    return make_policy(given) if isinstance(given, str) else given


def assert_same_books(bandit, game):
    """What a bandit knows is what the simulator's storage has, to the last bit."""
    state = state_of(bandit)
    for entry in ("pulls", "reward_sum", "reward_squares", "cost_sum", "cost_squares"):
        assert [arm[entry] for arm in state["arms"]] == getattr(game.state.arms, entry).tolist()
    assert state["memory"] == {name: array.tolist() for name, array in game.storage.memory._asdict().items()}
    assert state["record"] == {name: game.state.record[name].item() for name in game.state.record.dtype.names}
    assert state["amounts"] == {name: getattr(game.books, name).tolist() for name in snapshot.AMOUNTS}
    assert state["shown"] == {name: getattr(game.state, name).tolist() for name in snapshot.SHOWN}
    assert state["tally"] == {name: game.books.tally[name].item() for name in game.books.tally.dtype.names}


def naive_interval(outcomes, most):
    """Maurer and Pontil's empirical Bernstein bound at 0.025 / (n (n + 1)), cut to the means that no bet rules out."""
    n = len(outcomes)
    shares = [outcome / most for outcome in outcomes]
    x = math.log(2 * 2 * n * (n + 1) / 0.025)
    radius = math.sqrt(2 * statistics.variance(shares) * x / n) + 7 * x / (3 * (n - 1))
    mean, total = statistics.fmean(shares), sum(shares)

    def wealth(p):  # of one whose bets on the other means are spread as a Beta(1/2, 1/2) is, less what is needed
        ours = special.xlogy(total, p) + special.xlog1py(n - total, -p)
        return special.betaln(total + 0.5, n - total + 0.5) - special.betaln(0.5, 0.5) - ours - math.log(40)

    low = optimize.brentq(wealth, 1e-300, mean, xtol=1e-13) if wealth(1e-300) > 0 else 0
    high = optimize.brentq(wealth, mean, 1 - 1e-16, xtol=1e-13) if wealth(1 - 1e-16) > 0 else 1
    return most * mean, most * max(mean - radius, low), most * min(mean + radius, high)

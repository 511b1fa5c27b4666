"""The books of a live bandit a second time, slow and obvious, and ways to look at one from outside.

Amounts are exact here: fractions in the user's own unit, and nothing is rounded.
"""

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

from paceline import (
    Bandit,
    Conflict,
    InvalidValue,
    OnePhase,
    PacelineError,
    PrimalDual,
    SkipFirst,
    ThompsonLP,
    UCBSimplex,
    UnknownName,
)
from paceline.live import snapshot
from paceline.policies import POLICIES as EVERY_POLICY
from paceline.policies import make_policy

# Every policy that can run live, with the parameters that it needs for it.
NEEDED = {
    "one-phase": OnePhase(horizon=200),
    "primal-dual": PrimalDual(horizon=300),
    "skip-first": SkipFirst(horizon=200),
    "thompson-lp": ThompsonLP(horizon=200),
    "ucb-simplex": UCBSimplex(lam=1),
}
POLICIES = {name: NEEDED.get(name, name) for name, policy in EVERY_POLICY.items() if not policy.told_truth}

# Those of them that can do with several resources.
FOR_SEVERAL = {name: policy for name, policy in POLICIES.items() if EVERY_POLICY[name].resources is None}

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
    credits: list[Fraction] = field(default_factory=list)
    held: Fraction = Fraction(0)  # credits for the rounds to come,
    held_rounds: int = 0  # and for how many of these
    lost: Fraction = Fraction(0)  # above the cap

    def credit(self, amount: float, over: int) -> None:
        if over:
            self.held += Fraction(amount)
            self.held_rounds = max(self.held_rounds, over)
        else:
            self.credits.append(Fraction(amount))

    def begin_round(self) -> None:
        if self.held_rounds:
            part = self.held / self.held_rounds
            self.credits.append(part)
            self.held -= part
            self.held_rounds -= 1


@dataclass
class Pull:
    """A decision with an arm. Amounts have an entry per resource."""

    arm: str
    largest: list[Fraction]
    deadline: float | None
    costs: list[float | None]
    reward: float | None = None
    expired: bool = False
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


class Books:
    """What a bandit was asked and told."""

    def __init__(self, lines: list[Line], remember: int, silence: float | None = None) -> None:
        self.lines = lines
        self.remember = remember
        self.silence = silence
        self.rounds = 0
        self.pulls: dict[int, Pull] = {}
        self.ended: list[int] = []  # settled or cancelled, in this order
        self.expired_pulls: list[int] = []  # expired and not settled since
        self.forgotten: set[int] = set()

    def income(self, d: int) -> Fraction:
        """What came in of a resource so far and was not lost."""
        line = self.lines[d]
        return line.start + line.budget * self.rounds + sum(line.credits) - line.lost

    def charged(self, d: int) -> Fraction:
        """What is spent of a resource."""
        return sum((pull.charged(d) for pull in self.pulls.values()), Fraction(0))

    def reserved(self, d: int) -> Fraction:
        """What is set aside of it; with what is spent it must never be above the income."""
        return sum((pull.reserved(d) for pull in self.pulls.values()), Fraction(0))

    def overflow(self) -> None:
        """Lose what is in stock above a cap."""
        for d, line in enumerate(self.lines):
            if line.cap is not None:
                line.lost += max(self.income(d) - self.charged(d) - line.cap, Fraction(0))

    @property
    def pending(self) -> dict[int, str]:
        return {
            number: pull.arm
            for number, pull in self.pulls.items()
            if pull.fate == OPEN and number not in self.forgotten
        }

    def outcomes_of(self, arm: str) -> list[tuple[float, list[float]]]:
        return [(pull.reward, pull.costs) for pull in self.pulls.values() if pull.arm == arm and pull.fate == SETTLED]

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

    def ask(self, number: int, arm: str | None, largest: list[float], deadline: float | None) -> None:
        self.rounds += 1
        assert number == self.rounds
        for line in self.lines:
            line.begin_round()
        self.overflow()
        if arm is not None:
            self.pulls[number] = Pull(arm, [Fraction(most) for most in largest], deadline, [None] * len(self.lines))

    def credit(self, amounts: list[float | None], over: int) -> None:
        for line, amount in zip(self.lines, amounts, strict=True):
            if amount is not None:
                line.credit(amount, over)
        self.overflow()

    def tell(self, number: int, reward: float | None, costs: list[float | None]) -> None:
        pull = self.pulls[number]
        pull.costs = [known if given is None else given for given, known in zip(costs, pull.costs, strict=True)]
        if reward is not None:
            pull.reward = reward
        elif pull.expired and pull.reward is None and None not in pull.costs:
            pull.reward = self.silence
        if pull.told_all:
            self.end(number, SETTLED)
        self.overflow()

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
        if None not in pull.costs and self.silence is not None:
            self.tell(number, self.silence, pull.costs)
            return
        pull.expired = True
        self.expired_pulls.append(number)
        if len(self.expired_pulls) > self.remember:
            self.forgotten.add(self.expired_pulls.pop(0))

    def due(self, now: float) -> list[int]:
        """What a call at that time must expire first, in its order."""
        late = [
            (pull.deadline, number)
            for number, pull in self.pulls.items()
            if pull.deadline is not None and pull.deadline <= now and self.on_expire(number) == NEWS
        ]
        return [number for _, number in sorted(late)]


# Looking at a bandit.


def state_of(bandit: Bandit) -> dict[str, Any]:
    """All that it would save."""
    return snapshot.describe_ledger(bandit._ledger)


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
    """Maurer and Pontil's empirical Bernstein bound at 0.05 / (n (n + 1)), both sides."""
    n = len(outcomes)
    shares = [outcome / most for outcome in outcomes]
    x = math.log(2 * 2 * n * (n + 1) / 0.05)
    radius = math.sqrt(2 * statistics.variance(shares) * x / n) + 7 * x / (3 * (n - 1))
    mean = statistics.fmean(shares)
    return most * mean, most * max(mean - radius, 0), most * min(mean + radius, 1)

"""The books of a live bandit a second time, slow and obvious, and ways to look at one from outside.

Money is exact here: amounts are fractions in the user's currency, and nothing is rounded.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from random import Random
from typing import Any

import pytest

from paceline import Bandit, Conflict, InvalidValue, OnePhase, PacelineError, PrimalDual, UCBSimplex, UnknownName
from paceline.live import snapshot

# Every policy that can run live.
POLICIES = {
    "thompson": "thompson",
    "optimistic": "optimistic",
    "suak": "suak",
    "one-phase": OnePhase(horizon=200),
    "primal-dual": PrimalDual(horizon=300),
    "ucb-simplex": UCBSimplex(lam=1),
    "uniform": "uniform",
}

NEWS, KNOWN = "news", "known"  # what may become of a call that is not refused
OPEN, SETTLED, CANCELLED = "open", "settled", "cancelled"


@dataclass
class Pull:
    """A decision with an arm."""

    arm: str
    largest: Fraction
    deadline: float | None
    reward: float | None = None
    cost: float | None = None
    expired: bool = False
    fate: str = OPEN

    @property
    def owed(self) -> Fraction:
        """What must be kept for it: its cost if that is known, its largest cost if not, nothing if it never was."""
        if self.fate == CANCELLED:
            return Fraction(0)
        return self.largest if self.cost is None else Fraction(self.cost)


class Books:
    """What a bandit was asked and told."""

    def __init__(self, budget: float, remember: int, silence: float | None = None) -> None:
        self.budget = Fraction(budget)
        self.remember = remember
        self.silence = silence
        self.rounds = 0
        self.credits: list[Fraction] = []
        self.held = Fraction(0)  # credits for the rounds to come,
        self.held_rounds = 0  # and for how many of these
        self.pulls: dict[int, Pull] = {}
        self.ended: list[int] = []  # settled or cancelled, in this order
        self.expired_pulls: list[int] = []  # expired and not settled since
        self.forgotten: set[int] = set()

    @property
    def income(self) -> Fraction:
        return self.budget * self.rounds + sum(self.credits)

    @property
    def owed(self) -> Fraction:
        """Costs told so far and the largest costs of those that are not known: must never be above the income."""
        return sum((pull.owed for pull in self.pulls.values()), Fraction(0))

    @property
    def reserved(self) -> Fraction:
        """The part of it that may yet come back without news of a cost that was charged."""
        waiting = (pull for pull in self.pulls.values() if pull.fate == OPEN and pull.cost is None)
        return sum((pull.largest for pull in waiting if not pull.expired), Fraction(0))

    @property
    def pending(self) -> dict[int, str]:
        return {
            number: pull.arm
            for number, pull in self.pulls.items()
            if pull.fate == OPEN and number not in self.forgotten
        }

    def outcomes_of(self, arm: str) -> list[tuple[float, float]]:
        return [(pull.reward, pull.cost) for pull in self.pulls.values() if pull.arm == arm and pull.fate == SETTLED]

    # What must become of a call: NEWS, KNOWN, or the kind of error.

    def known_to(self, number: int) -> bool:
        return number in self.pulls and number not in self.forgotten

    def on_tell(self, number: int, reward: float | None, cost: float | None) -> str | type[PacelineError]:
        if reward is None and cost is None:
            return InvalidValue
        if not self.known_to(number):
            return UnknownName
        pull = self.pulls[number]
        if pull.fate == CANCELLED:
            return Conflict
        pairs = [(reward, pull.reward), (cost, pull.cost)]
        if any(None not in pair and pair[0] != pair[1] for pair in pairs):
            return Conflict
        return NEWS if any(given is not None and known is None for given, known in pairs) else KNOWN

    def on_cancel(self, number: int) -> str | type[PacelineError]:
        if not self.known_to(number):
            return UnknownName
        pull = self.pulls[number]
        if pull.fate == CANCELLED:
            return KNOWN
        return NEWS if pull.reward is None and pull.cost is None else Conflict

    def on_expire(self, number: int) -> str | type[PacelineError]:
        if not self.known_to(number):
            return UnknownName
        pull = self.pulls[number]
        return NEWS if pull.fate == OPEN and not pull.expired else KNOWN

    # What happens.

    def ask(self, number: int, arm: str | None, largest: float | None, deadline: float | None) -> None:
        self.rounds += 1
        assert number == self.rounds
        if self.held_rounds:
            part = self.held / self.held_rounds
            self.credits.append(part)
            self.held -= part
            self.held_rounds -= 1
        if arm is not None:
            self.pulls[number] = Pull(arm, Fraction(largest), deadline)

    def credit(self, amount: float, over: int) -> None:
        if over:
            self.held += Fraction(amount)
            self.held_rounds = max(self.held_rounds, over)
        else:
            self.credits.append(Fraction(amount))

    def tell(self, number: int, reward: float | None, cost: float | None) -> None:
        pull = self.pulls[number]
        if cost is not None:
            pull.cost = cost
        if reward is not None:
            pull.reward = reward
        if pull.reward is not None and pull.cost is not None:
            self.end(number, SETTLED)

    def cancel(self, number: int) -> None:
        self.end(number, CANCELLED)

    def end(self, number: int, fate: str) -> None:
        self.pulls[number].fate = fate
        self.expired_pulls = [other for other in self.expired_pulls if other != number]
        self.ended.append(number)
        if len(self.ended) > self.remember:
            self.forgotten.add(self.ended.pop(0))

    def expire(self, number: int) -> None:
        pull = self.pulls[number]
        if pull.cost is not None and self.silence is not None:
            self.tell(number, self.silence, None)
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


def keeps_the_promise(bandit: Bandit) -> bool:
    """As the user can see it, in floats."""
    with bandit._lock:  # many properties, one moment
        return bandit.spent + bandit.reserved <= bandit.credited and bandit.headroom >= 0.0


# A life without chance: the same steps for bandits in the same state, whoever drives them.


def reward_of(number: int) -> float:
    return number * 0.37 % 1.0


def cost_of(number: int) -> float:
    return number * 0.61 % 1.0 * 0.2


def steps(bandit: Bandit, seed: int = 0) -> Iterator[tuple[Any, ...]]:
    """Ask on and on; tell late, in parts and out of order, cancel, expire, credit, pause: what was done, step by step.

    Its arms must be a, b and c, with largest costs of 0.2 or more.
    """
    chance = Random(seed)
    while True:
        decision = bandit.ask()
        yield "ask", decision.id, decision.arm
        waiting = list(bandit.pending)
        while waiting and chance.random() < 0.6:
            number = waiting.pop(chance.randrange(len(waiting)))
            yield news(bandit, number, chance.random() < 0.5)
        if chance.random() < 0.1:
            bandit.credit(0.25)
            yield "credit", 0.25
        if chance.random() < 0.2:
            how, arm = chance.choice(["pause", "resume", "resume"]), chance.choice("abc")
            getattr(bandit, how)(arm)
            yield how, arm


def news(bandit: Bandit, number: int, in_full: bool) -> tuple[Any, ...]:
    """What becomes of a decision is a matter of its number."""
    reward, cost = reward_of(number), cost_of(number)
    if number % 7 == 0:
        bandit.cancel(number)
        return "cancel", number
    if in_full or number % 7 > 3:
        bandit.tell(number, reward, cost)
        return "tell", number, reward, cost
    if number % 7 == 1:
        bandit.expire(number)
        return "expire", number
    part = {"reward": reward} if number % 7 == 2 else {"cost": cost}
    bandit.tell(number, **part)
    return "tell", number, part.get("reward"), part.get("cost")


def live(bandit: Bandit, count: int, seed: int = 0) -> list[tuple[Any, ...]]:
    """So many steps."""
    return list(islice(steps(bandit, seed), count))

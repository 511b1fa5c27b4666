"""The form of a policy.

A policy is written once, as two to four plain functions, and serves the simulator, the live object and the replay of
a log.

    choose(params, state) -> Decision(arm, reason, tag)     decides; changes nothing but state.scratch
    learn(params, state, decision, reward, cost)            takes in what a round brought; may change memory and record
    commit(params, state, decision)                         optional: a round begins with this decision; may change them
    renew(params, state, arm)                               optional: a part of an outcome is known; may change them

``choose`` is called in every round, also when no pull can be paid for: what it wants then is not carried out, but a
null arm that it wants is not counted as a skip. ``commit`` is called right after it, with what is done; ``learn`` once
for every round, with the decision of that round, however late the news is. A round without a pull is told at once, with
a reward and costs of 0. ``cost`` has one entry per resource.

The cost of a pull may be known long before its reward, or after it. What is known is in ``state.arms`` at once, and
``learn`` comes with the last news of the pull. ``renew`` is called with all news before that one, once the estimates
have it: for a policy that keeps beliefs which follow from the estimates. Where all of an outcome comes at once, as it
does without late news, it is never called.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from paceline.errors import InvalidPolicy, InvalidValue, UnknownParameter
from paceline.kernels.budget import UNITS, split_rate
from paceline.kernels.random import GENERATOR
from paceline.kernels.state import GUARD, NO_RECORD, Decision, NoMemory, State, Storage, books_in, new_storage, state_in
from paceline.objects import described_object, in_words
from paceline.problems.problem import Problem
from paceline.text_modules import FromText

Floats = npt.NDArray[np.float64]

# The reason with which the engine tells of a pull that was made elsewhere (`Bandit.observe`). A policy that must tell
# such news from that of its own rounds gives this reason to none of its decisions.
ELSEWHERE = GUARD + 1


@dataclass(frozen=True)
class Setting:
    """What is known before the first round. Tuples have an entry per resource."""

    arms: int
    rates: tuple[float, ...]
    rounds: int | None = None
    problem: Problem | None = None  # the truth; for the oracle alone
    max_costs: Sequence[Sequence[float]] | Floats | None = None  # of the arms, by resource; 1 unless given
    start: tuple[float, ...] = ()  # stock before the first round; 0 unless given
    caps: tuple[float, ...] = ()  # the most that can be in stock; no limit unless given
    refills: tuple[bool, ...] = ()  # whether costs can be below 0; no unless given
    stop: bool = False  # whether the run ends when a stock does not cover every arm's largest cost
    seed: int = 0  # of the policy's own draws, with
    stream: int = 0

    @property
    def resources(self) -> int:
        """How many there are."""
        return len(self.rates)

    def generator(self) -> np.random.Generator:
        """A source of randomness for a plain-Python policy, the same for the same seed and stream.

        Its words are those of blocks that nothing else is drawn from (see kernels/random.py).
        """
        key, counter = np.array([self.seed, self.stream], np.uint64), np.array([0, 0, GENERATOR, 0], np.uint64)
        return np.random.Generator(np.random.Philox(counter=counter, key=key))

    @property
    def stocks(self) -> tuple[float, ...]:
        """The start stock of each resource."""
        return self.start or (0.0,) * self.resources

    @property
    def scales(self) -> tuple[float, ...]:
        """The largest cost that any arm can have in each resource; 1 where none of them costs anything."""
        if self.max_costs is None or self.arms == 0:
            return (1.0,) * self.resources
        return tuple(float(largest) or 1.0 for largest in np.max(np.asarray(self.max_costs), axis=0))

    def seen_by(self, policy: "Policy") -> "Setting":
        """What a policy is told: the truth only if it is an oracle."""
        return self if policy.told_truth else replace(self, problem=None)

    @property
    def lows(self) -> tuple[float, ...]:
        """The smallest possible cost in each resource: 0, or -1 where pulls may refill it."""
        return tuple(-1.0 if refill else 0.0 for refill in self.refills) or (0.0,) * self.resources


class Policy(FromText):
    """Base of all policies: a frozen dataclass whose fields are the parameters a user may set.

    A subclass sets the class attributes below, and `params` and `new_memory` where its functions need them.

    ``name``        what it is called in tables and on the command line.
    ``reasons``     why a round went as it did; number 0 is the guard's refusal.
    ``choose``      see the text of policies/policy.py; likewise ``learn``, ``commit`` and ``renew``.
    ``record``      the dtype of the scalars that it keeps, if it keeps any.
    ``resources``   1 if it can do with one resource only.
    ``refillable``  false if it can do only where no pull refills a resource, see `check_refills`.
    ``tag_is_arm``  whether a tag is the number of an arm (or K, or SKIP): then it is shown by name, and follows the arm
                    when others come and go.
    ``told_truth``  whether it is told the true problem: for an oracle, which no bandit can be.
    ``by_chance``   the number of the reason that stands for a decision left to chance, if it has one (`propensity`).
    ``allocates``   whether its functions make new arrays, or call functions of NumPy that do. Without, a round is about
                    a third faster.
    ``adds_up``     whether all that it knows follows from sums over outcomes: the estimates, and `own_sums`. Then
                    bandits can learn together (`Bandit.merge`).
    """

    name: ClassVar[str]
    reasons: ClassVar[tuple[str, ...]]
    record: ClassVar[np.dtype[Any]] = NO_RECORD
    resources: ClassVar[int | None] = None
    refillable: ClassVar[bool] = True
    tag_is_arm: ClassVar[bool] = False
    told_truth: ClassVar[bool] = False
    by_chance: ClassVar[int | None] = None
    adds_up: ClassVar[bool] = False
    allocates: ClassVar[bool] = True
    choose: ClassVar[Callable[..., Decision]]
    learn: ClassVar[Callable[..., None]]
    commit: ClassVar[Callable[..., None]]
    renew: ClassVar[Callable[..., None]]

    def propensity(self, is_pull: bool, is_wanted: bool, affordable: int, arms: int) -> float | None:
        """The probability of a decision, where the policy leaves some of them to chance in a known way; else None.

        ``is_pull`` says whether an arm is pulled, ``is_wanted`` whether the policy wanted just that before chance had
        its say (its tag then is the arm), ``affordable`` how many of the ``arms`` in play could have been paid for.
        """
        return None

    def own_sums(self, resources: int) -> Mapping[str, tuple[str, int]]:
        """Sums of its own, by name: the array of its memory that has them in a row per arm, and the column."""
        return {}

    def without_own_sum(self, name: str, pulls: int, reward: float, costs: Floats) -> float:
        """What to take for one of its `own_sums` that another's report does not have, given the sums that it has."""
        return 0.0

    def __new__(cls, /, **parameters: object) -> "Policy":
        check_declared(cls)
        known: list[str] = [field.name for field in fields(cls)] if is_dataclass(cls) else []
        for name, value in parameters.items():
            if name not in known:
                takes = ", ".join(known) or "no parameters"
                raise UnknownParameter(f"{cls.name} takes {takes}; got {name}={value!r}")
        return super().__new__(cls)

    def __repr__(self) -> str:
        return described_object(self)

    def params(self, setting: Setting) -> tuple[Any, ...]:
        """The numbers that the policy's functions get: a NamedTuple of its own."""
        raise NotImplementedError

    def new_memory(self, arms: int, resources: int) -> Any:
        """The arrays that the policy wants to remember, as a NamedTuple, as they are before the first round.

        When arms come and go, entries along every axis that is as long as there are arms (or one longer, for the null
        arm) follow their arms.
        """
        return NoMemory(np.zeros(0))

    def check_resources(self, resources: int) -> None:
        """Refuse more resources than the policy can deal with."""
        if self.resources is not None and resources > self.resources:
            raise InvalidValue(f"{self.name} works with one resource only, got {resources}")

    def check_refills(self, setting: Setting) -> None:
        """Refuse refills that the policy cannot deal with; for the ``params`` of one that cannot."""
        if not self.refillable and any(setting.refills):
            raise InvalidValue(f"{self.name} works with costs of at least 0 only, got a resource that pulls may refill")

    def new_storage(self, setting: Setting, seed: int, stream: int) -> Storage:
        """Books and state before the first round."""
        count = setting.resources
        self.check_resources(count)
        memory = self.new_memory(setting.arms, count)
        if not hasattr(memory, "_fields") or not all(isinstance(part, np.ndarray) for part in memory):
            where = f"{type(self).__name__}.new_memory"
            raise InvalidPolicy(f"{where} must give a NamedTuple of arrays, got {in_words(memory)}")
        storage = new_storage(setting.arms, count, memory, self.record)
        books, state = books_in(storage), state_in(storage)
        max_costs = np.ones((setting.arms, count)) if setting.max_costs is None else np.asarray(setting.max_costs)
        books.largest[:] = np.ceil(np.maximum(max_costs, 0.0) * UNITS)
        state.largest[:] = books.largest / UNITS  # as live: what is seen is what the guard compares with
        # A run that stops is over once a stock, which nothing refills, is short of some arm: no pull is admitted then.
        books.least[:] = books.largest.max(axis=0) if setting.stop else books.largest.min(axis=0, initial=UNITS)
        for d, rate in enumerate(setting.rates):
            books.rate[d], books.rate_part[d] = split_rate(rate)
            state.rate[d] = rate
        for d, stock in enumerate(setting.start):
            books.start[d] = math.floor(stock * UNITS)
            if stock > 0.0 and setting.rates[d] == 0.0 and setting.rounds is not None:
                books.tally.rounds = setting.rounds
                state.rate[d] = min(stock / setting.rounds, 1.0)
        for d, cap in enumerate(setting.caps):
            if cap < math.inf:
                books.cap[d] = math.floor(cap * UNITS)
                state.cap[d] = cap
        state.clock.seed, state.clock.stream = seed, stream
        books.tally.seed, books.tally.stream = seed, stream
        return storage


def check_declared(policy: type[Policy]) -> None:
    """Refuse a class whose name or number of resources cannot be right."""
    name, resources = getattr(policy, "name", None), policy.resources
    if not isinstance(name, str) or not name:
        raise InvalidPolicy(f"{policy.__name__}.name must be a text that is not empty, got {name!r}")
    if resources is not None and (not isinstance(resources, int) or resources < 1):
        rule = "None or the number of resources that it can do with"
        raise InvalidPolicy(f"{policy.__name__}.resources must be {rule}, got {resources!r}")


def learn_nothing(params: Any, state: State, decision: Decision, reward: float, cost: Floats) -> None:
    """For policies whose only knowledge is the estimates."""


def commit_nothing(params: Any, state: State, decision: Decision) -> None:
    """For policies to which a decision alone is no news: nearly all."""


def renew_nothing(params: Any, state: State, arm: int) -> None:
    """For policies that keep nothing which follows from the estimates."""


Policy.commit = staticmethod(commit_nothing)
Policy.renew = staticmethod(renew_nothing)

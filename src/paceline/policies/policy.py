"""The form of a policy.

A policy is written once, as two plain functions, and serves the simulator, the live object and the replay of a log.

    choose(params, state) -> (arm, event, partner)      decides; changes nothing but state.scratch
    learn(params, state, arm, event, partner, reward, cost)      takes in what a round brought; may change state.memory

``arm`` is 0 .. K-1 for a pull, K for the null arm, `SKIP` for a round given up by a rule of the policy. ``event`` is an
index into the policy's ``events``: why the round went as it did; event 0 is always the guard's refusal. ``partner`` is
the other arm of the base that was chosen from, or `SKIP`. ``choose`` is called only when the guard lets some pull be
paid for; ``learn`` is called for every round, with the event the engine or ``choose`` gave it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from paceline.errors import UnknownParameter
from paceline.kernels.budget import Clock, Limits, new_clock, new_limits
from paceline.kernels.estimates import Estimates, no_estimates
from paceline.problems.problem import Problem

SKIP = -1
GUARD = 0  # the event of a round that the guard refused

NO_MEMORY = np.dtype((np.record, [("nothing", np.int64)]))


class Scratch(NamedTuple):
    """Room for one optimistic (or sampled) problem per round, so that no round allocates."""

    rewards: npt.NDArray[np.float64]
    costs: npt.NDArray[np.float64]


class State(NamedTuple):
    """All that a policy may look at. It owns ``memory`` and ``table``; the rest belongs to the engine."""

    clock: Clock
    limits: Limits
    arms: Estimates
    memory: Any  # a record of the policy's own dtype
    table: npt.NDArray[np.float64]  # as long as the policy asks for
    scratch: Scratch

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle records inside arrays: NumPy drops assignments to a record that owns its memory."""
        return restore_state, (np.array([self.clock]), self.limits, self.arms, np.array([self.memory]), *self[4:])


def restore_state(clock: Any, limits: Limits, arms: Estimates, memory: Any, table: Any, scratch: Scratch) -> State:
    """A state from its pickled parts."""
    return State(clock[0], limits, arms, memory[0], table, scratch)


@dataclass(frozen=True)
class Setting:
    """What is known before the first round."""

    arms: int
    budget: float
    rounds: int | None = None
    problem: Problem | None = None  # the truth; for the oracle alone
    max_costs: Sequence[float] | None = None  # of the arms; 1 unless given


class Policy:
    """Base of all policies: a frozen dataclass whose fields are the parameters a user may set.

    A subclass sets the class attributes below, and `params` where its functions need numbers.
    """

    name: ClassVar[str]
    events: ClassVar[tuple[str, ...]]
    memory: ClassVar[np.dtype[Any]] = NO_MEMORY
    choose: ClassVar[Callable[..., tuple[int, int, int]]]
    learn: ClassVar[Callable[..., None]]

    def __new__(cls, /, **parameters: object) -> "Policy":
        known = [field.name for field in fields(cls)]  # type: ignore[arg-type]
        for name, value in parameters.items():
            if name not in known:
                takes = ", ".join(known) or "no parameters"
                raise UnknownParameter(f"{cls.name} takes {takes}; got {name}={value!r}")
        return super().__new__(cls)

    def params(self, setting: Setting) -> tuple[Any, ...]:
        """The numbers that the policy's functions get: a NamedTuple of its own."""
        raise NotImplementedError

    def new_table(self, arms: int) -> npt.NDArray[np.float64]:
        """The floats that the policy wants to remember besides its record, as they are before the first round."""
        return np.zeros(0)

    def layout(self, arms: int, kept: Sequence[int]) -> npt.NDArray[np.int64]:
        """The places in a table for ``arms`` arms that a table for the arms ``kept`` (rising) alone would hold.

        This holds for tables with the same number of entries for each arm, one arm after the other.
        """
        return np.arange(self.new_table(arms).size).reshape(arms, -1)[list(kept)].ravel()

    def new_state(self, setting: Setting, seed: int, stream: int) -> State:
        """The state before the first round."""
        limits = new_limits([1.0] * setting.arms if setting.max_costs is None else setting.max_costs)
        clock = new_clock(setting.budget, seed, stream)
        clock.least_units = limits.units.min(initial=clock.least_units)
        return State(
            clock=clock,
            limits=limits,
            arms=no_estimates(setting.arms),
            memory=np.zeros(1, self.memory)[0],
            table=self.new_table(setting.arms),
            scratch=Scratch(np.zeros(setting.arms), np.zeros(setting.arms)),
        )


def learn_nothing(params: Any, state: State, arm: int, event: int, partner: int, reward: float, cost: float) -> None:
    """For policies whose only knowledge is the estimates."""

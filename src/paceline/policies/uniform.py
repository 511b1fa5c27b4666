"""Uniform: any arm, with equal probability. The floor."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from paceline.kernels.random import decision_uniform
from paceline.kernels.state import Decision, State
from paceline.policies.policy import Policy, Setting, learn_nothing

ANY = 1


class Params(NamedTuple):
    """Nothing to set; kernels take a non-empty tuple."""

    arms: int


def choose(params: Params, state: State) -> Decision:
    """Arm floor(u K)."""
    clock = state.clock
    arm = int(decision_uniform(clock.seed, clock.stream, clock.t) * params.arms)
    return Decision(arm, ANY, arm)


@dataclass(frozen=True, kw_only=True)
class Uniform(Policy):
    """Pull one of the K arms with probability 1/K each whenever the guard allows it; it learns nothing.

    Every live decision has its ``propensity``: 1/K for an arm, and for sitting out the share of arms that are too dear.
    The floor of every comparison: its regret is linear, and only the guard keeps it within the budget.

    >>> Uniform()
    Uniform()
    """

    name = "uniform"
    allocates, tag_is_arm = False, True
    reasons = ("headroom below the largest cost", "any arm")
    choose = staticmethod(choose)
    adds_up = True
    learn = staticmethod(learn_nothing)

    def params(self, setting: Setting) -> tuple[Any, ...]:
        return Params(setting.arms)

    def propensity(self, is_pull: bool, is_wanted: bool, affordable: int, arms: int) -> float | None:
        return 1.0 / arms if is_pull else 1.0 - affordable / max(arms, 1)

"""Skip first: sit out a stretch of rounds, then let a policy for a total budget play. The second naive approach."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from paceline import checks
from paceline.kernels.state import SKIP, Decision, State
from paceline.policies import one_phase
from paceline.policies.one_phase import WithHorizon
from paceline.policies.policy import Setting, learn_nothing

STRETCH = 3  # after the reasons of One Phase


class Params(NamedTuple):
    """Numbers for the kernels."""

    skipped: int  # the last round of the stretch
    base: one_phase.Params


def choose(params: Params, state: State) -> Decision:
    """Nothing until the stretch is over, then One Phase."""
    if state.clock.t <= params.skipped:
        return Decision(SKIP, STRETCH, SKIP)
    return one_phase.one_phase(params.base, state)


@dataclass(frozen=True, kw_only=True)
class SkipFirst(WithHorizon):
    """Skip the first  ceil(stretch sqrt(K T))  rounds, then play One Phase with the budget that is left.

    The second of the two naive ways in which the paper (section 1.1) would make a policy for a total budget keep an
    anytime constraint: what is saved in the first rounds is to cover all that the policy later spends ahead of the
    line. (The first is to skip where the line is near, which is `OnePhase` behind the guard.) One Phase is the policy
    that the paper takes for its naive approach.

    How long the stretch must be: Bernasconi, Castiglioni, Celli ("No-regret is not enough!", 2024, Corollary 8.2)
    bound what is spent above the line by O(sqrt(K T)), so the paper says that at least O(sqrt(K T)) rounds must be
    skipped. ``stretch`` is the constant in that O, which nobody gives; 1 by default. It is o(T), as it must be. The
    guard refuses what the stretch does not cover. With One Phase that is much: it plans with costs that are too low and
    with all that is left, the savings included (see docs/policies.md).

    Guarantee: the anytime constraint, by the guard, on every path. Regret of the order sqrt(K T) at least: the rounds
    of the stretch earn nothing. It needs the horizon.

    >>> SkipFirst(stretch=2)
    SkipFirst(a=3.0, horizon=None, stretch=2)
    >>> SkipFirst().skipped(arms=3, horizon=500_000)
    1225
    """

    stretch: float = 1.0

    name = "skip-first"
    allocates, tag_is_arm = False, True
    reasons = (*one_phase.OnePhase.reasons, "in the first stretch, which is skipped")
    choose = staticmethod(choose)
    adds_up = True
    learn = staticmethod(learn_nothing)

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.real("stretch of skip-first", self.stretch, 0)

    def skipped(self, arms: int, horizon: int) -> int:
        """How many rounds are skipped."""
        return math.ceil(self.stretch * math.sqrt(arms * horizon))

    def params(self, setting: Setting) -> tuple[Any, ...]:
        program = self.radii(setting)
        base = one_phase.Params(program, True)
        return Params(self.skipped(setting.arms, program.horizon), base)

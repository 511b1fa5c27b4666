"""One Phase: the optimistic linear program (optimism.py) at the remaining budget rate."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from paceline import checks
from paceline.errors import InvalidValue
from paceline.kernels.estimates import first_unpulled
from paceline.kernels.jit import kernel
from paceline.kernels.state import Decision, State
from paceline.policies import optimism
from paceline.policies.long_run import stock_per_round
from paceline.policies.optimism import MIX, draw_from_mix, optimistic_program
from paceline.policies.policy import Policy, Setting, learn_nothing

FIRST_PULL = 1


class Params(NamedTuple):
    """Numbers for the kernels."""

    program: optimism.Params
    time_row: bool


@kernel
def best_ratio(state: State) -> int:
    """The arm with the most reward per cost in the scratch arrays: all there is to the program without a row for time.

    Where a cost is 0 the program has no bound. Of such arms the one with the highest reward counts as the best, and of
    equals the one with the fewest pulls.
    """
    rewards, costs, pulls = state.scratch.rewards, state.scratch.costs[0], state.arms.pulls
    best = 0
    for i in range(1, rewards.size):
        # Ratios are compared as products: a cost may be 0. Two costs of 0 leave the rewards to compare.
        free = costs[i] == 0.0 and costs[best] == 0.0
        gain = rewards[i] - rewards[best] if free else rewards[i] * costs[best] - rewards[best] * costs[i]
        if gain > 0.0 or (gain == 0.0 and pulls[i] < pulls[best]):
            best = i
    return best


@kernel
def one_phase(params: Params, state: State) -> Decision:
    """Each arm once, then an arm of the optimistic mix."""
    untried = first_unpulled(state.arms)
    if untried >= 0:
        return Decision(untried, FIRST_PULL, untried)
    optimistic_program(params.program, state, state.arms)
    if params.time_row:
        return draw_from_mix(params.program, state, state.resources)
    arm = best_ratio(state)
    return Decision(arm, MIX, arm)


def choose(params: Params, state: State) -> Decision:
    """The same, for the engine."""
    return one_phase(params, state)


def horizon_of(name: str, given: int | None, setting: Setting) -> int:
    """The horizon that a policy was given, or else the number of rounds of the run."""
    horizon = setting.rounds if given is None else given
    if horizon is None:
        raise InvalidValue(f"{name} must be given a horizon, such as horizon=1000000, got none")
    return horizon


@dataclass(frozen=True, kw_only=True)
class WithHorizon(Policy):
    """A policy with radii sqrt(a log T / n_i), where T is ``horizon`` or else the number of rounds of the run."""

    a: float = 3.0
    horizon: int | None = None

    def __post_init__(self) -> None:
        checks.real(f"a of {self.name}", self.a, 0, above_low=True)
        if self.horizon is not None:
            checks.rounds(f"horizon of {self.name}", self.horizon)

    def params(self, setting: Setting) -> tuple[Any, ...]:
        return self.radii(setting)

    def radii(self, setting: Setting) -> optimism.Params:
        """The numbers of the optimistic program."""
        horizon = horizon_of(self.name, self.horizon, setting)
        root, stock = math.sqrt(self.a * math.log(horizon)), stock_per_round(setting, 0)
        return optimism.Params(horizon, root, setting.lows, stock)


@dataclass(frozen=True, kw_only=True)
class OnePhase(WithHorizon):
    """Solve the program with optimistic rewards and costs at the remaining budget rate, draw an arm from its solution.

    After one pull of each arm, each round t:  max (m_i + e_i).pi  subject to  (r_i - e_i).pi <= (c T - S_c) / (T - t
    + 1) on the simplex with a null arm, with  e_i = sqrt(a log T / n_i)  and both bounds cut to [0, 1].

    Reference: Li, Sun, Ye, "The symmetry between arms and knapsacks" (ICML 2021), One Phase; behind the guard it is the
    paper's One Phase Skip (its Algorithm 1).

    Guarantee: none is known; its authors leave the regret open. It needs the horizon.

    Second-hand: the program printed in the paper has no row for time, and without it the answer is the arm of best
    ratio, another algorithm; the row is kept here through the null arm and the rate per round. a = 3 is the paper's
    radius, a = 2 the other common choice; where SUAK overtakes One Phase hangs on it.

    ``time_row=False`` is Algorithm 1 as printed:  max (m_i + e_i).pi  subject to  (r_i - e_i).pi <= c T - S_c,
    pi >= 0,  which pulls the arm with the largest  (m_i + e_i) / (r_i - e_i).  While cost bounds are 0 that program
    has no bound; then the arm with the highest reward bound is pulled, of equals the one with the fewest pulls. For
    one resource only.

    >>> OnePhase(a=2)
    OnePhase(a=2, horizon=None, time_row=True)
    """

    time_row: bool = True

    name = "one-phase"
    allocates, tag_is_arm = False, True
    reasons = ("headroom below the largest cost", "first pull of an arm", "drawn from the optimistic mix")
    choose = staticmethod(choose)
    adds_up = True
    learn = staticmethod(learn_nothing)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.time_row, bool):
            raise InvalidValue(f"time_row of one-phase must be true or false, got {self.time_row!r}")

    def check_resources(self, resources: int) -> None:
        super().check_resources(resources)
        if resources > 1 and not self.time_row:
            raise InvalidValue(f"one-phase without a row for time works with one resource only, got {resources}")

    def params(self, setting: Setting) -> tuple[Any, ...]:
        return Params(self.radii(setting), self.time_row)

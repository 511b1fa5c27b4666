"""Control Budget: the optimal base, spent faster or slower as each headroom is above or below a threshold."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paceline import checks
from paceline.errors import InvalidValue
from paceline.kernels.estimates import first_unpulled
from paceline.kernels.jit import kernel
from paceline.kernels.lp import new_program, solve_in_python, solve_program
from paceline.kernels.random import decision_uniform
from paceline.kernels.state import Decision, State, program_in, steering_in
from paceline.policies import optimism
from paceline.policies.long_run import stock_per_round
from paceline.policies.one_phase import horizon_of
from paceline.policies.optimism import optimistic_program, rate_to_plan_with
from paceline.policies.policy import Policy, Setting, learn_nothing

FIRST_PULL, CONTROLLED = 1, 2
MEANS = ("known", "learned")
LOGARITHMS = ("T-t", "t")

Floats = npt.NDArray[np.float64]


class Base(NamedTuple):
    """A base as lp.py has it: members, their amounts, and what each gains per unit of a rate."""

    basis: npt.NDArray[np.int64]
    amounts: Floats
    inverse: Floats


class Params(NamedTuple):
    """Numbers for the kernels."""

    buffer: float
    horizon: int  # 0 where the threshold grows with log t
    is_known: bool
    known: Base  # the optimal base, of means that are known
    program: optimism.Params  # of means that are learned


@kernel
def threshold(params: Params, state: State) -> float:
    """The headroom that a resource should have: C log(T - t), or C log t."""
    left = max(params.horizon - state.clock.t, 1) if params.horizon > 0 else state.clock.t
    return params.buffer * math.log(left)


@kernel
def room(state: State, d: int) -> float:
    """The headroom to compare with it; of a stock without income that on the line which leads from it to 0."""
    return float(state.headroom[d] - state.planned[d])


@kernel
def is_in(basis: npt.NDArray[np.int64], member: int) -> bool:
    """Whether a member is in a base."""
    found = False
    for r in range(basis.size):
        found = found or basis[r] == member
    return found


@kernel
def directions(state: State, base: Base, bar: float, out: Floats, resources: tuple[int, ...]) -> None:
    """For each member of a base what it gains per unit g: spend g less of each binding resource that is short, g more
    of each that is not.
    """
    arms = state.arms.pulls.size
    for r in range(len(resources) + 1):
        out[r] = 0.0
    for d in range(len(resources)):
        if not is_in(base.basis, arms + 1 + d):
            sign = -1.0 if room(state, d) < bar else 1.0
            for r in range(len(resources) + 1):
                out[r] += sign * base.inverse[d, r]


@kernel
def longest_step(state: State, base: Base, bar: float, gains: Floats, resources: tuple[int, ...]) -> float:
    """The largest g that leaves no arm a negative share, and to each short resource that does not bind at least g / 2.

    0 where no share moves.
    """
    arms, step = state.arms.pulls.size, math.inf
    for r in range(len(resources) + 1):
        member, gain = base.basis[r], gains[r]
        if member > arms:
            gain = gain - 0.5 if room(state, member - arms - 1) < bar else 0.0
        if gain < 0.0:
            step = min(step, base.amounts[r] / -gain)
    return step if step < math.inf else 0.0


@kernel
def draw_member(state: State, base: Base, gains: Floats, step: float, resources: tuple[int, ...]) -> int:
    """An arm, or the null arm, drawn from the mix so far along; by rising numbers, so that the base's order is none."""
    arms = state.arms.pulls.size
    u = decision_uniform(state.clock.seed, state.clock.stream, state.clock.t)
    drawn = -1
    for _ in range(len(resources) + 1):
        following, row = arms + 1, -1
        for r in range(len(resources) + 1):
            if drawn < base.basis[r] < following:
                following, row = base.basis[r], r
        if row < 0:  # rounding: the last one
            break
        drawn = following
        u -= max(base.amounts[row] + step * gains[row], 0.0)
        if u < 0.0:
            break
    return drawn


@kernel
def control(params: Params, state: State, base: Base) -> Decision:
    """An arm of a base, drawn from the mix that the headroom calls for."""
    bar, gains = threshold(params, state), steering_in(state.scratch, state.resources).owed
    directions(state, base, bar, gains, state.resources)
    step = longest_step(state, base, bar, gains, state.resources)
    arm = draw_member(state, base, gains, step, state.resources)
    return Decision(arm, CONTROLLED, arm)


@kernel
def learned_base(params: Params, state: State, resources: tuple[int, ...]) -> Base:
    """The base of the optimistic program."""
    scratch = state.scratch
    program, rates = program_in(scratch, resources), steering_in(scratch, resources).needed
    optimistic_program(params.program, state, state.arms)
    for d in range(len(resources)):
        rates[d] = rate_to_plan_with(params.program, state, d)
    for r in range(len(resources) + 1):
        program.last[r] = scratch.rewards.size
    solve_program(scratch.rewards, scratch.costs, rates, program, resources)
    return Base(program.basis, program.amounts, program.inverse)


def choose(params: Params, state: State) -> Decision:
    """The optimal base, or that of the optimistic program, under control."""
    if params.is_known:
        return control(params, state, params.known)
    untried = first_unpulled(state.arms)
    if untried >= 0:
        return Decision(untried, FIRST_PULL, untried)
    return control(params, state, learned_base(params, state, state.resources))


@dataclass(frozen=True, kw_only=True)
class ControlBudget(Policy):
    """Play the optimal base so that each headroom keeps to a threshold that shrinks towards the end.

    Let pi be the optimal mix with its arms and its binding resources. In round t, with  tau = C log(T - t)  (C is
    ``buffer``), let s_d be -1 for a binding resource whose headroom is below tau, else +1. Take the largest g for which
    the mix of the same arms that spends  c_d + g s_d  of each binding resource is a mix, and leaves at least g / 2 per
    round to each resource that does not bind and is below tau. Draw an arm from it. With one resource and a base of
    two arms that is: the cheap arm below tau, the expensive arm above.

    ``means="known"`` is the published rule, told the true means: a ceiling for several resources beside `Oracle`.
    ``means="learned"`` is ours: the same rule on the base of the optimistic program with radius sqrt(a log t / n).
    ``log="t"`` has the threshold C log t, which needs no horizon.

    Reference: Kumar, Kleinberg, "Non-monotonic resource utilization in the bandits with knapsacks problem" (NeurIPS
    2022). The model is the one here: a stock that income and pulls may refill, and only the null arm where it is short.
    Their guard asks for a headroom of 1 in every resource; ours for the largest cost of the arm.

    Guarantee, with means known: the regret does not grow with T, if C >= 6 / gamma^2, where gamma is, for one resource,
    the smallest distance of a mean cost from the rate (the null arm counts), in general  sigma_min min(delta_support,
    delta_slack) / (4 D).  On the paper's 3 arms that is C = 150, where C = 5 does better by far. A mean cost at the
    rate makes it sqrt(T). Nothing is proved of the rule with learned means.

    Not here: their Explore Then Control Budget, which must be told gamma. It pulls the arms in turn until the base is
    identified, which on the paper's 3 arms takes more than 10^7 pulls of each. One theorem of the text asks for
    C >= 6 / gamma; the other, and the authors' code, have the square.

    >>> ControlBudget(buffer=150)
    ControlBudget(buffer=150, means='known', log='T-t', a=2.0, horizon=None)
    """

    buffer: float = 5.0
    means: str = "known"
    log: str = "T-t"
    a: float = 2.0
    horizon: int | None = None

    name = "control-budget"
    allocates, tag_is_arm = False, True
    reasons = (
        "headroom below the largest cost",
        "first pull of an arm",
        "drawn from the mix that the headroom calls for",
    )
    choose = staticmethod(choose)
    learn = staticmethod(learn_nothing)

    def __post_init__(self) -> None:
        checks.real(f"buffer of {self.name}", self.buffer, 0)
        checks.one_of(f"means of {self.name}", self.means, MEANS)
        checks.one_of(f"log of {self.name}", self.log, LOGARITHMS)
        checks.real(f"a of {self.name}", self.a, 0, above_low=True)
        if self.horizon is not None:
            checks.rounds(f"horizon of {self.name}", self.horizon)

    @property
    def told_truth(self) -> bool:  # type: ignore[override]  # of an object: only one with known means is an oracle
        """Whether it is told the true problem."""
        return self.means == "known"

    def params(self, setting: Setting) -> tuple[Any, ...]:
        if self.told_truth and (setting.problem is None or np.isnan(setting.problem.reward_means).any()):
            rule = "must be given the true problem (without, as live, only means='learned' can run)"
            raise InvalidValue(f"{self.name} {rule}, got none")
        horizon = horizon_of(self.name, self.horizon, setting) if self.log == "T-t" else 0
        rounds = horizon or setting.rounds or 0
        program = optimism.Params(0, math.sqrt(self.a), setting.lows, stock_per_round(setting, rounds), is_growing=True)
        return Params(self.buffer, horizon, self.told_truth, self.known_base(setting, rounds), program)

    def known_base(self, setting: Setting, rounds: int) -> Base:
        """The optimal base, a start stock being spread over the rounds; none where the means must be learned."""
        program, problem = new_program(setting.arms, setting.resources), setting.problem
        if self.told_truth and problem is not None:
            rates = np.array(problem.rates) + (np.array(problem.stocks) / rounds if rounds else 0.0)
            costs = np.ascontiguousarray(problem.consumption_means.T)
            solve_in_python(problem.reward_means, costs, rates, program, tuple(range(setting.resources)))
        return Base(program.basis, program.amounts, program.inverse)

"""Primal Dual: round robin until the optimal base is identified, then the optimistic program on it."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from paceline.kernels.estimates import lower, upper
from paceline.kernels.hull import best_mix
from paceline.kernels.jit import kernel
from paceline.kernels.lp import solve_program
from paceline.kernels.state import Decision, State, program_in
from paceline.policies.one_phase import WithHorizon
from paceline.policies.optimism import Params, draw_from_mix, optimistic_program

ROUND_ROBIN = 1
NO_ARM = NO_RESOURCE = -1

Floats = npt.NDArray[np.float64]


RECORD = np.dtype(
    (
        np.record,
        [
            ("next_arm", np.int64),  # of the round robin
            ("identified", np.int64),  # |I| + |J'|
            ("identified_at", np.int64),  # the round in which phase 1 ended, 0 before
        ],
    )
)


class Memory(NamedTuple):
    """Which arms are known to belong to the optimal base (set I)."""

    in_base: npt.NDArray[np.bool_]


@kernel
def value_in_scratch(state: State, resources: tuple[int, ...]) -> float:
    """The value at rate c of the program in the scratch arrays."""
    rewards = state.scratch.rewards
    if len(resources) > 1:
        program = program_in(state.scratch, resources)
        solve_program(rewards, state.scratch.costs, state.rate, program, resources)
        value = program.prices[len(resources)]
        for d in range(len(resources)):
            value += program.prices[d] * state.rate[d]
        return float(value)
    expensive, cheap, weight = best_mix(rewards, state.scratch.costs[0], state.rate[0])
    expensive_reward = rewards[expensive] if expensive < rewards.size else 0.0
    cheap_reward = rewards[cheap] if cheap < rewards.size else 0.0
    return weight * expensive_reward + (1.0 - weight) * cheap_reward


@kernel
def highest_cost(params: Params, state: State, arm: int, d: int) -> float:
    """UCB of a mean cost."""
    return upper(state.arms.cost_mean[arm, d], (1.0 - params.lows[d]) * params.root * state.arms.width[arm])


@kernel
def lowest_value(params: Params, state: State) -> float:
    """LCB of the optimum: low rewards, high costs."""
    arms = state.arms
    for i in range(arms.pulls.size):
        radius = params.root * arms.width[i]
        state.scratch.rewards[i] = lower(arms.reward_mean[i], radius)
        for d in range(len(state.resources)):
            state.scratch.costs[d, i] = highest_cost(params, state, i, d)
    return value_in_scratch(state, state.resources)


@kernel
def highest_value(params: Params, state: State, without: int, leftover: int) -> float:
    """UCB of the optimum without an arm, or with the leftover of a resource taken off; time is number D.

    A leftover  b - C.pi  (c - rho.pi of cost, 1 - sum of pi of time) is taken off the objective by adding C to the
    rewards and subtracting b from the value.
    """
    optimistic_program(params, state, state.arms)
    rewards, time = state.scratch.rewards, len(state.resources)
    taken_off = 0.0
    if 0 <= leftover < time:
        for i in range(rewards.size):
            rewards[i] += highest_cost(params, state, i, leftover)
        taken_off = state.rate[leftover]
    elif leftover == time:
        for i in range(rewards.size):
            rewards[i] += 1.0
        taken_off = 1.0
    if without != NO_ARM:
        rewards[without] = -1.0  # never better than the null arm
    return value_in_scratch(state, state.resources) - taken_off


def choose(params: Params, state: State) -> Decision:
    """The next arm of the round robin; once the base is identified, an arm of the optimistic mix on it."""
    in_base = state.memory.in_base
    if state.record.identified_at == 0:
        arm = state.record.next_arm % in_base.size
        return Decision(arm, ROUND_ROBIN, arm)
    optimistic_program(params, state, state.arms)
    for i in range(in_base.size):
        if not in_base[i]:
            state.scratch.rewards[i] = -1.0
    return draw_from_mix(params, state, state.resources)


def learn(params: Params, state: State, decision: Decision, reward: float, cost: Floats) -> None:
    """At the end of each sweep over the arms see which of them, and which resource, can now be told."""
    record, in_base = state.record, state.memory.in_base
    if decision.reason != ROUND_ROBIN:
        return
    record.next_arm = (decision.arm + 1) % in_base.size
    if record.next_arm != 0:
        return
    bar = lowest_value(params, state)
    if bar <= 0.0:  # no arm is sure to be worth anything yet, and an optimum without an arm is never below 0
        return
    record.identified = 0
    for i in range(in_base.size):
        if highest_value(params, state, i, NO_RESOURCE) < bar:
            in_base[i] = True
        if in_base[i]:
            record.identified += 1
    time = len(state.resources)
    for resource in range(time + 1):
        if highest_value(params, state, NO_ARM, resource) < bar:
            record.identified += 1
    if record.identified >= time + 1:
        record.identified_at = state.clock.t


@dataclass(frozen=True, kw_only=True)
class PrimalDual(WithHorizon):
    """Pull the arms in turn until the optimal base stands out, then solve the optimistic program on that base alone.

    Phase 1, at the end of each sweep, with radius sqrt(a log T / n_i): arm i belongs to the base (set I) when UCB(OPT
    without i) < LCB(OPT); a resource j of cost and time is not binding (set J') when UCB(OPT with the leftover of j
    taken off) < LCB(OPT). LCB(OPT) has low rewards and high costs, UCB the reverse. It ends when
    |I| + |J'| = D + 1, which is 2 with one resource. Phase 2 is One Phase restricted to I.

    Reference: Li, Sun, Ye, "The symmetry between arms and knapsacks" (ICML 2021), the two-phase algorithm; behind the
    guard it is the paper's Primal Dual Skip.

    Guarantee: O(log T) for a total budget and a unique, non-degenerate optimum. Under the anytime guard nothing is
    proved. On the paper's two problems phase 1 does not end within the horizon: the curve is round robin and skips.

    Second-hand: the constant a and the test for J'. It needs the horizon.

    >>> PrimalDual()
    PrimalDual(a=3.0, horizon=None)
    """

    name = "primal-dual"
    allocates, tag_is_arm = False, True
    reasons = ("headroom below the largest cost", "round robin", "drawn from the optimistic mix of the base")
    record = RECORD
    choose = staticmethod(choose)
    learn = staticmethod(learn)

    def new_memory(self, arms: int, resources: int) -> Memory:
        return Memory(np.zeros(arms, np.bool_))

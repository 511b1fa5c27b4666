"""Oracle: knows the true distributions and paces the optimal base. The ceiling."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paceline.errors import InvalidValue
from paceline.kernels.jit import kernel
from paceline.kernels.state import Decision, State
from paceline.kernels.steering import buffer as lundberg_buffer
from paceline.policies.edge import cheaper_neighbour, is_on_edge, pace_on_edge
from paceline.policies.pacing import PACED, REASONS, room_beside
from paceline.policies.policy import Policy, Setting, learn_nothing
from paceline.policies.steering import BaseMemory, commit_base, no_base, steer_base

Floats = npt.NDArray[np.float64]


class Params(NamedTuple):
    """The truth. With one resource: the optimal base, and the headroom that its expensive arm needs."""

    expensive: int
    cheap: int
    reserve: float  # reserve + buffer log t
    buffer: float
    rewards: Floats  # (K,), the true means
    costs: Floats  # (D, K)
    variances: Floats  # (K, D), of the costs


@kernel
def fill_truth(params: Params, state: State) -> None:
    """The true means into the scratch arrays."""
    for i in range(params.rewards.size):
        state.scratch.rewards[i] = params.rewards[i]
        for d in range(len(state.resources)):
            state.scratch.costs[d, i] = params.costs[d, i]


@kernel
def edge_arm(params: Params, state: State, arm: int) -> int:
    """The arm to pull if this one costs just the rate, as far as matters so far; else -1."""
    if arm < params.rewards.size:
        spread = params.variances[arm, 0]
        if is_on_edge(state, state.rate[0] - params.costs[0, arm], spread):
            fill_truth(params, state)
            cheaper = cheaper_neighbour(state, arm)
            low = state.largest[arm, 0]
            if cheaper < params.rewards.size:
                drift = state.rate[0] - params.costs[0, cheaper]
                low += state.largest[cheaper, 0] - state.rate[0]
                low += lundberg_buffer(params.variances[cheaper, 0], drift, state.clock.t)
            return pace_on_edge(state, arm, cheaper, low, spread)
    return -1


@kernel
def choose_for(params: Params, state: State, resources: tuple[int, ...]) -> Decision:
    """`choose`; the number of resources is a constant for the compiler, which drops the other branch."""
    if len(resources) > 1:
        fill_truth(params, state)
        return steer_base(state, params.variances)
    for arm in (params.cheap, params.expensive):
        due = edge_arm(params, state, arm)
        if due >= 0:
            return Decision(due, PACED, arm)
    needed = max(params.reserve + params.buffer * math.log(state.clock.t), state.planned[0])
    if room_beside(state, params.cheap) >= needed:
        return Decision(params.expensive, PACED, params.cheap)
    return Decision(params.cheap, PACED, params.expensive)


def choose(params: Params, state: State) -> Decision:
    """The arm of the optimal base that the headroom lets be pulled."""
    return choose_for(params, state, state.resources)


@dataclass(frozen=True, kw_only=True)
class Oracle(Policy):
    """Pull the expensive arm j of the optimal base when  h(t) >= 2 - c + B log t,  else the cheap arm k.

    (Where largest costs m below 1 are known, 2 is m_j + m_k; and less than m_j would only be refused.) A pull of j
    leaves at least  1 + B log t  whatever it costs. From there on k is pulled, and the headroom climbs by  c - rho_k  a
    round on average, with the variance v_k of the cost of k. The chance that it falls by x on the way is about  exp(-2
    x (c - rho_k) / v_k)  (the Lundberg exponent of a random walk), so  B = v_k / (2 (c - rho_k))  makes a guard skip in
    round t about 1/t likely: O(log T) rounds lost to skips and O(log T) budget unspent. With the null arm as k there is
    nothing to fear: j is pulled whenever the guard allows it. An arm that costs just c has no drift that could bring
    the headroom back: it is kept between its neighbours on the hull (edge.py).

    With several resources it steers the optimal base as the Thompson pacer steers the drawn one.

    It is the ceiling of a comparison, not a policy for use: it is told the truth that the others must learn.

    >>> Oracle()
    Oracle()
    """

    name = "oracle"
    allocates, tag_is_arm, told_truth = False, True, True
    reasons = REASONS
    choose = staticmethod(choose)
    commit = staticmethod(commit_base)
    learn = staticmethod(learn_nothing)

    def params(self, setting: Setting) -> tuple[Any, ...]:
        problem = setting.problem
        if problem is None or np.isnan(problem.reward_means).any():
            raise InvalidValue("oracle must be given the true problem (without, as live, it cannot run), got none")
        costs = np.array(problem.consumption_means.T, order="C")
        variances = np.array([[cost.variance for cost in side] for side in problem.consumptions]).T.copy()
        best = problem.optimum_over(setting.rounds or 1)
        expensive, cheap = best.base[0], best.base[-1]
        largest = (*problem.most[0], 0.0)
        reserve, buffer = largest[expensive], 0.0
        if expensive != cheap and cheap < problem.arms:
            cost, rate = problem.consumptions[0][cheap], problem.rates[0]
            reserve = max(largest[expensive] + largest[cheap] - rate, largest[expensive])
            buffer = cost.variance / (2.0 * (rate - cost.mean)) if rate > cost.mean else 0.0
        return Params(expensive, cheap, reserve, buffer, problem.reward_means.copy(), costs, variances)

    def new_memory(self, arms: int, resources: int) -> BaseMemory:
        return no_base(arms, resources)

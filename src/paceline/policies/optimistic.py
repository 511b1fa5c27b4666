"""The optimistic pacer: variance-aware confidence ellipses, deterministic given the data."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paceline import checks
from paceline.kernels.estimates import cost_variance, first_unpulled, reward_variance
from paceline.kernels.hull import best_mix
from paceline.kernels.jit import kernel
from paceline.kernels.state import Decision, State, program_in
from paceline.policies.pacing import REASONS, base_price, fill_means, pace
from paceline.policies.policy import Policy, Setting
from paceline.policies.steering import (
    BaseMemory,
    commit_base,
    learn_base,
    no_base,
    renew_base,
    solve_scratch,
    steer_base,
)

FIRST_PULL = len(REASONS)

Floats = npt.NDArray[np.float64]


class Params(NamedTuple):
    """Numbers for the kernels."""

    caution: float
    lows: tuple[float, ...]  # the smallest cost in each resource: 0, or -1 where pulls may refill it


@kernel
def empirical_price(state: State) -> float:
    """What a unit of budget is worth if every arm is what it seems to be."""
    arms, costs = state.arms, state.scratch.costs[0]
    for i in range(costs.size):
        costs[i] = arms.cost_mean[i, 0]
    expensive, cheap, _ = best_mix(arms.reward_mean, costs, state.rate[0])
    return base_price(arms.reward_mean, costs, expensive, cheap)


@kernel
def most_promising(params: Params, state: State, price: float) -> None:
    """Into the scratch arrays: the point of each arm's confidence ellipse that is worth most at the price."""
    arms = state.arms
    log_t = math.log(state.clock.t)
    for i in range(arms.pulls.size):
        pulls = arms.pulls[i]
        reward_spread, cost_spread = reward_variance(arms, i), cost_variance(arms, i, 0)
        joint = reward_spread + price * price * cost_spread
        reach = math.sqrt(2.0 * log_t / (pulls * joint)) if joint > 0.0 else 0.0
        unseen = params.caution * log_t / pulls
        state.scratch.rewards[i] = min(arms.reward_mean[i] + reach * reward_spread + unseen, 1.0)
        state.scratch.costs[0, i] = max(arms.cost_mean[i, 0] - reach * price * cost_spread - unseen, params.lows[0])


@kernel
def most_promising_of_several(params: Params, state: State) -> None:
    """`most_promising` for several resources, at the prices of the program that was solved last."""
    arms, scratch = state.arms, state.scratch
    prices = program_in(scratch, state.resources).prices
    log_t = math.log(state.clock.t)
    for i in range(arms.pulls.size):
        pulls = arms.pulls[i]
        reward_spread = reward_variance(arms, i)
        joint = reward_spread
        for d in range(len(state.resources)):
            joint += prices[d] * prices[d] * cost_variance(arms, i, d)
        reach = math.sqrt(2.0 * log_t / (pulls * joint)) if joint > 0.0 else 0.0
        unseen = params.caution * log_t / pulls
        scratch.rewards[i] = min(arms.reward_mean[i] + reach * reward_spread + unseen, 1.0)
        for d in range(len(state.resources)):
            lowest = arms.cost_mean[i, d] - reach * prices[d] * cost_variance(arms, i, d) - unseen
            scratch.costs[d, i] = max(lowest, params.lows[d])


@kernel
def choose_for(params: Params, state: State, resources: tuple[int, ...]) -> Decision:
    """`choose`; the number of resources is a constant for the compiler, which drops the other branch."""
    untried = first_unpulled(state.arms)
    if untried >= 0:
        return Decision(untried, FIRST_PULL, untried)
    if len(resources) == 1:
        most_promising(params, state, empirical_price(state))
        expensive, cheap, _ = best_mix(state.scratch.rewards, state.scratch.costs[0], state.rate[0])
        return pace(state, expensive, cheap)
    fill_means(state)
    solve_scratch(state, state.rate)
    most_promising_of_several(params, state)
    return steer_base(state, state.memory.spreads)


def choose(params: Params, state: State) -> Decision:
    """Each arm once, then the best base of the most promising points, paced by the headroom."""
    return choose_for(params, state, state.resources)


@dataclass(frozen=True, kw_only=True)
class OptimisticPacer(Policy):
    """Give each arm the benefit of the doubt that its variance leaves, take the best base, keep a buffer of headroom.

    Each round t, with n_i pulls of arm i, empirical means m_i, r_i and variances u_i, w_i of its rewards and costs:

    1. lam is the price of budget if every arm is what it seems to be (the best base for the empirical means).
    2. Each arm stands at the point of its confidence ellipse that is worth most at that price,
           m_i + s_i u_i + a log t / n_i   and   r_i - s_i lam w_i - a log t / n_i,
           s_i = sqrt(2 log t / (n_i (u_i + lam^2 w_i))),   a = ``caution``,
       so that its value m - lam r is raised by  sqrt(2 (u_i + lam^2 w_i) log t / n_i)  and a term of lower order.
    3. Take the best base (j, k) of these points at rate c; pull j if the headroom is at least  2 - c + B,  else k,
       with the buffer of the Thompson pacer (pacing.py).

    It is deterministic: the same history gives the same decision. For people who may not randomise.

    Guarantee: the anytime constraint, by the guard, on every path. The regret is sketched, not proved. By Bernstein's
    inequality the value m - lam r of an arm exceeds its raised value with probability about 1/t (a = 1/3 is the
    constant of Bernstein's inequality for outcomes in [0, 1]); while no bound fails, an arm with gap g is pulled only
    until 2 (u + lam^2 w) log t / n < g^2, that is O((u + lam^2 w) log T / g^2) times, and each pull loses g
    (Audibert, Munos, Szepesvari, "Exploration-exploitation tradeoff using variance estimates in multi-armed bandits",
    2009). Guard skips and unspent budget add O(log T) by the argument in pacing.py.

    >>> OptimisticPacer()
    OptimisticPacer(caution=0.3333333333333333)
    """

    caution: float = 1.0 / 3.0

    name = "optimistic"
    allocates, tag_is_arm = False, True
    reasons = (*REASONS, "first pull of an arm")
    choose = staticmethod(choose)
    commit = staticmethod(commit_base)
    adds_up = True
    learn = staticmethod(learn_base)
    renew = staticmethod(renew_base)

    def __post_init__(self) -> None:
        checks.real("caution of optimistic", self.caution, 0)

    def params(self, setting: Setting) -> tuple[Any, ...]:
        return Params(float(self.caution), setting.lows)

    def new_memory(self, arms: int, resources: int) -> BaseMemory:
        return no_base(arms, resources)

"""Pacing: which arm of a base the headroom lets be pulled. Shared by the policies of our own."""

import math

import numpy as np
import numpy.typing as npt

from paceline.kernels.estimates import known_costs
from paceline.kernels.jit import kernel
from paceline.kernels.state import SKIP, Decision, State

Floats = npt.NDArray[np.float64]

SINGLE, PACED, STAND_IN = 1, 2, 3
REASONS = (
    "headroom below the largest cost",
    "a base of one arm",
    "base, pacing",
    "stands in while the headroom is short of a more expensive arm",
)


@kernel
def affords(state: State, arm: int) -> bool:
    """Whether the headroom covers the largest cost of an arm, in every resource: the guard will let it be pulled."""
    for d in range(len(state.resources)):
        if state.headroom[d] < state.largest[arm, d]:
            return False
    return True


@kernel
def room_beside(state: State, cheap: int) -> float:
    """The headroom that decides whether an expensive arm is due: the outlook; beside the null arm, which needs none
    and loses nothing, what may be spent now.
    """
    return float(state.headroom[0] if cheap == state.arms.pulls.size else state.outlook[0])


@kernel
def fit_stock(state: State, d: int, needed: float, largest: float) -> float:
    """The headroom that is needed, in view of what a stock can hold and has to last for.

    A stock with a cap is kept half full at most, between running over and being short of a pull; else an arm that needs
    more than the cap would never be due. A start stock without income is drawn down evenly.
    """
    return float(max(min(needed, 0.5 * (state.cap[d] + largest)), state.planned[d]))


@kernel
def needed_with_doubt(state: State, expensive: int, cheap: int, doubt: float) -> float:
    """The headroom that a pull of the expensive arm j needs:  m_j + m_k - c + B,  or m_j when the cheap arm k is null.

    Here m is the largest cost of an arm (1 unless a smaller one is known). A pull of j then leaves at least  m_k + B
    whatever it costs. From there the cheap arm is pulled, and the headroom is a random walk with drift  d = c - rho
    and variance v, those of its cost. It falls by B before it climbs with probability about  exp(-2 d B / v)
    (Lundberg's exponent), so  B = v / (2 d) log(1 + t d^2 / v)  makes a refusal by the guard in round t about
    v / (d^2 t)  likely: O(log t) rounds are lost to the guard and O(log t) money stays unspent. While  t d^2 < v  the
    drift cannot be told from chance and the walk would not have come back anyway; there B is small, and 0 in the limit
    d = 0, where no buffer helps.

    To the empirical variance of n costs  ``doubt`` / n  is added.
    """
    arms, largest, rate = state.arms, state.largest, state.rate[0]
    if cheap == arms.pulls.size:
        return fit_stock(state, 0, largest[expensive, 0], largest[expensive, 0])
    known, mean = known_costs(arms, cheap, 0), arms.cost_mean[cheap, 0]
    drift = rate - mean
    squares = max(known.squares - known.number * mean * mean, 0.0) + doubt  # n v
    buffer = 0.0
    if drift > 0.0 and known.number > 0.0 and squares > 0.0:
        reach = squares / (known.number * drift)  # v / d
        buffer = 0.5 * reach * math.log1p(state.clock.t * drift / reach)
    return fit_stock(state, 0, largest[expensive, 0] + largest[cheap, 0] - rate + buffer, largest[expensive, 0])


@kernel
def needed_headroom(state: State, expensive: int, cheap: int) -> float:
    """The same, the doubt being the largest variance of a cost in [0, 1]."""
    return needed_with_doubt(state, expensive, cheap, 0.25)


@kernel
def pace(state: State, expensive: int, cheap: int) -> Decision:
    """The expensive arm of a base when the headroom allows, else the cheap one; the tag is the other arm of the base.

    Where largest costs differ the headroom may be short of the arm that is due and yet cover another. Then the best of
    those stands in, at the means in the scratch arrays and the price of the base, if it is worth its cost. It may cost
    more than comes in: a policy that draws has another base in the next round, and with `thompson` to leave such arms
    out was measured to gain on `inventory` and `small-budget-unequal`, and to lose on `llm`, `bidding` and `start`.
    """
    arm, reason, other = expensive, SINGLE, expensive
    if expensive != cheap:
        reason = PACED
        if room_beside(state, cheap) >= needed_headroom(state, expensive, cheap):
            other = cheap
        else:
            arm = cheap
    if arm == state.arms.pulls.size or affords(state, arm):
        return Decision(arm, reason, other)
    price = base_price(state.scratch.rewards, state.scratch.costs[0], expensive, cheap)
    return Decision(best_affordable(state, price, math.inf), STAND_IN, arm)


@kernel
def base_price(rewards: Floats, costs: Floats, expensive: int, cheap: int) -> float:
    """What a unit of budget is worth to a base of arms with these means."""
    if expensive == cheap:
        return 0.0
    reward, cost = (rewards[cheap], costs[cheap]) if cheap < rewards.size else (0.0, 0.0)
    return float((rewards[expensive] - reward) / (costs[expensive] - cost))


@kernel
def fill_means(state: State) -> None:
    """The empirical means into the scratch arrays."""
    for i in range(state.arms.pulls.size):
        state.scratch.rewards[i] = state.arms.reward_mean[i]
        for d in range(len(state.resources)):
            state.scratch.costs[d, i] = state.arms.cost_mean[i, d]


@kernel
def best_affordable(state: State, price: float, most: float) -> int:
    """The arm worth most at the price among those that the headroom covers and that cost less than ``most`` on average;
    -1 if none is worth its cost.
    """
    rewards, costs = state.scratch.rewards, state.scratch.costs[0]
    best, best_value = SKIP, 0.0
    for i in range(rewards.size):
        value = rewards[i] - price * costs[i]
        if value > best_value and costs[i] < most and affords(state, i):
            best, best_value = i, value
    return best

"""Pacing: which arm of a base the headroom lets be pulled. Shared by the policies of our own."""

import math

import numpy as np
import numpy.typing as npt

from paceline.kernels.budget import Clock, Limits, covers
from paceline.kernels.estimates import Estimates, variance
from paceline.kernels.jit import kernel
from paceline.policies.policy import State

Floats = npt.NDArray[np.float64]

SINGLE, PACED, STAND_IN = 1, 2, 3
EVENTS = (
    "headroom below the largest cost",
    "a base of one arm",
    "base, pacing",
    "stands in while the headroom is short of a more expensive arm",
)


@kernel
def needed_headroom(clock: Clock, arms: Estimates, limits: Limits, expensive: int, cheap: int) -> float:
    """The headroom that a pull of the expensive arm j needs:  m_j + m_k - c + B,  or m_j when the cheap arm k is null.

    Here m is the largest cost of an arm (1 unless a smaller one is known). A pull of j then leaves at least  m_k + B
    whatever it costs. From there the cheap arm is pulled, and the headroom is a random walk with drift  d = c - rho
    and variance v, those of its cost. It falls by B before it climbs with probability about  exp(-2 d B / v)
    (Lundberg's exponent), so  B = v / (2 d) log(1 + t d^2 / v)  makes a refusal by the guard in round t about
    v / (d^2 t)  likely: O(log t) rounds are lost to the guard and O(log t) money stays unspent. While  t d^2 < v  the
    drift cannot be told from chance and the walk would not have come back anyway; there B is small, and 0 in the limit
    d = 0, where no buffer helps.
    """
    if cheap == arms.pulls.size:
        return float(limits.costs[expensive])
    pulls = arms.pulls[cheap]
    drift = clock.budget - arms.cost_mean[cheap]
    buffer = 0.0
    if drift > 0.0 and pulls > 0:
        spread = variance(arms.cost_squares[cheap], arms.cost_mean[cheap], pulls) + 0.25 / pulls
        buffer = spread / (2.0 * drift) * math.log1p(clock.t * drift * drift / spread)
    return float(limits.costs[expensive] + limits.costs[cheap] - clock.budget + buffer)


@kernel
def arm_to_pull(state: State, expensive: int, cheap: int) -> tuple[int, int, int]:
    """The expensive arm of a base when the headroom allows, else the cheap one: (arm, event, partner).

    Where largest costs differ the headroom may be short of the arm that is due and yet cover another. Then the best of
    those stands in, at the means in the scratch arrays and the price of the base, if it is worth its cost.
    """
    arm, event, partner = expensive, SINGLE, expensive
    if expensive != cheap:
        event = PACED
        if state.clock.headroom >= needed_headroom(state.clock, state.arms, state.limits, expensive, cheap):
            partner = cheap
        else:
            arm = cheap
    count = state.arms.pulls.size
    if arm == count or covers(state.clock, state.limits, arm):
        return arm, event, partner
    return best_covered(state, base_price(state.scratch.rewards, state.scratch.costs, expensive, cheap)), STAND_IN, arm


@kernel
def base_price(rewards: Floats, costs: Floats, expensive: int, cheap: int) -> float:
    """What a unit of budget is worth to a base of arms with these means."""
    if expensive == cheap:
        return 0.0
    reward, cost = (rewards[cheap], costs[cheap]) if cheap < rewards.size else (0.0, 0.0)
    return float((rewards[expensive] - reward) / (costs[expensive] - cost))


@kernel
def best_covered(state: State, price: float) -> int:
    """The arm worth most at the price among those that the headroom covers, or the null arm."""
    rewards, costs = state.scratch.rewards, state.scratch.costs
    best, best_value = rewards.size, 0.0
    for i in range(rewards.size):
        value = rewards[i] - price * costs[i]
        if value > best_value and covers(state.clock, state.limits, i):
            best, best_value = i, value
    return best

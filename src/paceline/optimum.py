"""The best mix of arms at a budget rate: its value, price and gaps, read off the upper concave hull.

The linear program  max mu.pi  subject to  rho.pi <= c,  pi in the simplex over K arms and the null arm  has at most two
arms in its solution. Its value is the height at c of the upper concave hull of the points (rho_i, mu_i) and (0, 0), so
one bridge of the hull is all there is to find.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paceline.jit import kernel, plain

Floats = npt.NDArray[np.float64]


@kernel
def best_mix(rewards: Floats, costs: Floats, rate: float) -> tuple[int, int, float]:
    """The best base at ``rate``: (dear arm, cheap arm, weight of the dear arm); the null arm has number K.

    A base of one arm comes back as (arm, arm, 1). Where several bases are best it is one of them, always the same for
    the same input; of twins the one with the lower number.

    At a price per unit of cost, arm i is worth  mu_i - price * rho_i.  Take the best arm on either side of the rate,
    let the slope of the line through the two be the new price, and repeat until the pair stays. No arm of the new
    pair lies below the old line, so its height at the rate never falls: a simplex method that moves both arms at
    once, each step one pass over the arms. Two to four steps are usual, for 8 arms as for 512.
    """
    arms = rewards.size
    cheap, cheap_reward, cheap_cost = arms, 0.0, 0.0
    dear, dear_reward, dear_cost = -1, -math.inf, 0.0
    price = 0.0
    for _ in range(arms + 2):  # the bound matters only should rounding make two arms take turns
        # An arm makes way for a better one only: at a tie the pair must not go round in circles.
        left, left_value = cheap, cheap_reward - price * cheap_cost
        right, right_value = dear, dear_reward - price * dear_cost
        for i in range(arms):
            value = rewards[i] - price * costs[i]
            if costs[i] <= rate:
                if value > left_value:
                    left, left_value = i, value
            elif value > right_value:
                right, right_value = i, value
        if left_value < 0.0:
            left = arms
        if left == cheap and right == dear and price > 0.0:
            break
        cheap, dear = left, right
        cheap_reward = rewards[cheap] if cheap < arms else 0.0
        cheap_cost = costs[cheap] if cheap < arms else 0.0
        if dear < 0 or rewards[dear] <= cheap_reward:  # only at price 0: the best arm of all is affordable
            return cheap, cheap, 1.0
        dear_reward, dear_cost = rewards[dear], costs[dear]
        price = (dear_reward - cheap_reward) / (dear_cost - cheap_cost)
    if cheap_cost >= rate:
        return cheap, cheap, 1.0
    return dear, cheap, (rate - cheap_cost) / (dear_cost - cheap_cost)


@dataclass(frozen=True, eq=False)
class Optimum:
    """The solution of the linear program and its dual.

    ``value``  r*, the best expected reward per round.
    ``mix``    K + 1 weights, the null arm last.
    ``price``  lambda* >= 0, what one more unit of budget per round would earn.
    ``level``  y* with  y* + lambda* c = r*:  what a round is worth once its budget is paid for.
    ``gaps``   y* - mu_i + lambda* rho_i >= 0  for each arm: what a pull of it loses; 0 for the arms of the mix.
    ``case``   1: the arm of highest reward is affordable; 2: one arm and the null arm; 3: two arms, or one whose
               cost is just the budget.
    ``base``   the arms of the mix, the dearer first; number K is the null arm.
    """

    value: float
    mix: Floats
    price: float
    level: float
    gaps: Floats
    case: int
    base: tuple[int, ...]


def solve(rewards: Floats, costs: Floats, budget: float) -> Optimum:
    """The optimum of a problem with the given mean rewards and costs.

    >>> best = solve(np.array([0.45, 0.7, 0.8]), np.array([0.3, 0.75, 0.8]), 0.5)
    >>> round(best.value, 12), round(best.price, 12), best.case, best.base
    (0.59, 0.7, 3, (2, 0))
    """
    arms = rewards.size
    with_null_rewards, with_null_costs = np.append(rewards, 0.0), np.append(costs, 0.0)
    dear, cheap, weight = plain(best_mix)(rewards, costs, budget)
    mix = np.zeros(arms + 1)
    mix[cheap] = 1.0 - weight
    mix[dear] += weight
    base = (dear,) if dear == cheap else (dear, cheap)
    value = float(mix @ with_null_rewards)
    if dear != cheap:
        rise = with_null_rewards[dear] - with_null_rewards[cheap]
        price = float(rise / (with_null_costs[dear] - with_null_costs[cheap]))
    elif with_null_costs[cheap] < budget:
        price = 0.0
    else:
        # One arm whose cost is just the budget: any slope of the hull at this corner solves the dual. The slope to the
        # right is what one more unit of budget would earn.
        dearer = costs > budget
        slopes = (rewards[dearer] - value) / (costs[dearer] - budget)
        price = max(0.0, float(slopes.max(initial=0.0)))
    level = value - price * budget
    gaps = np.maximum(level - rewards + price * costs, 0.0)
    gaps[[arm for arm in base if arm < arms]] = 0.0
    affordable = len(base) == 1 and with_null_rewards[cheap] >= rewards.max()
    case = 1 if affordable else 2 if cheap == arms else 3
    return Optimum(value, mix, price, level, gaps, case, base)

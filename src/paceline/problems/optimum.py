"""The best mix of arms at a budget rate: its value, price and gaps."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paceline.kernels.hull import best_mix
from paceline.kernels.jit import plain

Floats = npt.NDArray[np.float64]


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
    ``base``   the arms of the mix, the more expensive first; number K is the null arm.
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
    expensive, cheap, weight = plain(best_mix)(rewards, costs, budget)
    mix = np.zeros(arms + 1)
    mix[cheap] = 1.0 - weight
    mix[expensive] += weight
    base = (expensive,) if expensive == cheap else (expensive, cheap)
    value = float(mix @ with_null_rewards)
    if expensive != cheap:
        rise = with_null_rewards[expensive] - with_null_rewards[cheap]
        price = float(rise / (with_null_costs[expensive] - with_null_costs[cheap]))
    elif with_null_costs[cheap] < budget:
        price = 0.0
    else:
        # One arm whose cost is just the budget: any slope of the hull at this corner solves the dual. The slope to the
        # right is what one more unit of budget would earn.
        beyond = costs > budget
        slopes = (rewards[beyond] - value) / (costs[beyond] - budget)
        price = max(0.0, float(slopes.max(initial=0.0)))
    level = value - price * budget
    gaps = np.maximum(level - rewards + price * costs, 0.0)
    gaps[[arm for arm in base if arm < arms]] = 0.0
    affordable = len(base) == 1 and with_null_rewards[cheap] >= rewards.max()
    case = 1 if affordable else 2 if cheap == arms else 3
    return Optimum(value, mix, price, level, gaps, case, base)

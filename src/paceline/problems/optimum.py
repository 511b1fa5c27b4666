"""The best mix of arms at the budget rates: its value, prices and gaps."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paceline.errors import InvalidValue
from paceline.kernels.hull import best_mix
from paceline.kernels.jit import plain
from paceline.kernels.lp import solve_means

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Optimum:
    """The solution of the linear program and its dual.

    ``value``   r*, the best expected reward per round.
    ``mix``     K + 1 weights, the null arm last.
    ``prices``  lambda* >= 0 for each resource: what one more unit of it per round would earn.
    ``level``   y* with  y* + lambda*.c = r*:  what a round is worth once its budget is paid for.
    ``gaps``    y* - mu_i + lambda*.rho_i >= 0  for each arm: what a pull of it loses; 0 for the arms of the mix.
    ``case``    1: the arm of highest reward is affordable; 2: the null arm is in the mix; 3: a mix of arms alone, or
                one arm whose cost is just the budget.
    ``base``    the arms of the mix, with one resource the more expensive first; number K is the null arm.
    """

    value: float
    mix: Floats
    prices: Floats
    level: float
    gaps: Floats
    case: int
    base: tuple[int, ...]

    def __post_init__(self) -> None:
        for array in (self.mix, self.prices, self.gaps):
            array.flags.writeable = False

    @property
    def price(self) -> float:
        """The price of a problem with one resource."""
        if self.prices.size != 1:
            raise InvalidValue(f"price is for one resource; with {self.prices.size} of them see prices")
        return float(self.prices[0])


def solve(rewards: Floats, costs: Floats, budget: float) -> Optimum:
    """The optimum of a problem with one resource and the given mean rewards and costs.

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
    return Optimum(value, mix, np.array([price]), level, gaps, case, base)


def solve_several(rewards: Floats, costs: Floats, rates: Floats) -> Optimum:
    """The optimum with mean rewards (K,), mean costs (K, D) and rates (D,).

    >>> money, energy = [0.3, 0.75, 0.8], [0.2, 0.1, 0.6]
    >>> best = solve_several(np.array([0.45, 0.7, 0.8]), np.array([money, energy]).T, np.array([0.5, 0.25]))
    >>> round(best.value, 12), best.base, best.prices.round(12).tolist()
    (0.574456521739, (0, 1, 2), [0.586956521739, 0.141304347826])
    """
    if np.isnan(rewards).any() or np.isnan(costs).any():
        return unknown_optimum(rewards.size, rates.size)
    if rates.size == 1:
        return solve(rewards, np.ascontiguousarray(costs[:, 0]), float(rates[0]))
    best = solve_means(rewards, costs, rates)
    affordable = len(best.base) == 1 and best.base[0] < rewards.size and rewards[best.base[0]] >= rewards.max()
    case = 1 if affordable else 2 if rewards.size in best.base else 3
    return Optimum(best.value, best.mix, best.prices, best.level, best.gaps, case, best.base)


def unknown_optimum(arms: int, resources: int) -> Optimum:
    """The optimum of a world whose means nobody knows: not numbers."""
    nothing = np.full(arms, np.nan)
    return Optimum(np.nan, np.full(arms + 1, np.nan), np.full(resources, np.nan), np.nan, nothing, 0, ())

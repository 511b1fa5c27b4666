"""What a bandit knows of an arm, with intervals that hold at all times at once."""

import math
from typing import Any, NamedTuple

from paceline.kernels.estimates import Estimates, variance
from paceline.kernels.jit import plain
from paceline.live.config import Config
from paceline.live.resource import Resource

ERROR = 0.05  # the chance that an interval is ever wrong


class Interval(NamedTuple):
    """A mean and bounds on the true one."""

    mean: float
    low: float
    high: float


class ArmEstimate(NamedTuple):
    """What is known of an arm, in the user's units."""

    status: str  # active, paused or retired
    pulls: int
    reward: Interval
    cost: Any  # an interval; where resources have names, one for each of them by name


def interval(total: float, squares: float, pulls: int, most: float, low: float = 0.0) -> Interval:
    """An empirical Bernstein interval for the mean of outcomes in [low, 1], times ``most``, cut to where means can be.

    With n outcomes of variance v (the unbiased one), w = 1 - low and  x = log(4 n (n + 1) / 0.05),

        mean +- (sqrt(2 v x / n) + 7 w x / (3 (n - 1)))

    fails with probability at most  0.05 / (n (n + 1))  for one n (Maurer and Pontil, "Empirical Bernstein bounds and
    sample variance penalization", COLT 2009, Theorem 4, both sides), hence at most 0.05 for all n together: it stays
    valid although the policy decides when to pull and the reader when to look. Such intervals are wide at first.

    >>> interval(0.0, 0.0, 0, 2.0)
    Interval(mean=0.0, low=0.0, high=2.0)
    """
    if pulls < 2:
        return Interval(most * total, most * low, most)
    mean = min(total / pulls, 1.0)
    spread = plain(variance)(squares, mean, pulls) * pulls / (pulls - 1)
    x = math.log(4.0 * pulls * (pulls + 1) / ERROR)
    radius = math.sqrt(2.0 * spread * x / pulls) + 7.0 * (1.0 - low) * x / (3.0 * (pulls - 1))
    return Interval(most * mean, most * max(mean - radius, low), most * min(mean + radius, 1.0))


def cost_interval(arms: Estimates, slot: int, d: int, resource: Resource, max_cost: float) -> Interval:
    """What is known of the cost of an arm in one resource."""
    total, squares = float(arms.cost_sum[slot, d]), float(arms.cost_squares[slot, d])
    low = resource.least_cost / resource.scale
    cost = interval(total, squares, int(arms.pulls[slot]), resource.scale, low)
    return Interval(min(cost.mean, max_cost), cost.low, min(cost.high, max_cost))  # rounding may have passed it


def arm_estimate(arms: Estimates, slot: int, status: str, max_costs: tuple[float, ...], config: Config) -> ArmEstimate:
    """The estimate of one arm."""
    pulls = int(arms.pulls[slot])
    total, squares = float(arms.reward_sum[slot]), float(arms.reward_squares[slot])
    pairs = enumerate(zip(config.resources, max_costs, strict=True))
    costs = [cost_interval(arms, slot, d, resource, most) for d, (resource, most) in pairs]
    return ArmEstimate(status, pulls, interval(total, squares, pulls, config.max_reward), config.by_name(costs))

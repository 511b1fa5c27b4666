"""What a bandit knows of an arm, with intervals that hold at all times at once."""

import math
from typing import NamedTuple

from paceline.kernels.estimates import Estimates, variance
from paceline.kernels.jit import plain

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
    cost: Interval


def interval(total: float, squares: float, pulls: int, most: float) -> Interval:
    """An empirical Bernstein interval for the mean of outcomes in [0, 1], times ``most``, cut to [0, most].

    With n outcomes of variance v (the unbiased one) and  x = log(4 n (n + 1) / 0.05),

        mean +- (sqrt(2 v x / n) + 7 x / (3 (n - 1)))

    fails with probability at most  0.05 / (n (n + 1))  for one n (Maurer and Pontil, "Empirical Bernstein bounds and
    sample variance penalization", COLT 2009, Theorem 4, both sides), hence at most 0.05 for all n together: it stays
    valid although the policy decides when to pull and the reader when to look. Such intervals are wide at first.

    >>> interval(0.0, 0.0, 0, 2.0)
    Interval(mean=0.0, low=0.0, high=2.0)
    """
    if pulls < 2:
        return Interval(most * total, 0.0, most)
    mean = min(total / pulls, 1.0)
    spread = plain(variance)(squares, mean, pulls) * pulls / (pulls - 1)
    x = math.log(4.0 * pulls * (pulls + 1) / ERROR)
    radius = math.sqrt(2.0 * spread * x / pulls) + 7.0 * x / (3.0 * (pulls - 1))
    return Interval(most * mean, most * max(mean - radius, 0.0), most * min(mean + radius, 1.0))


def arm_estimate(
    arms: Estimates, slot: int, status: str, max_reward: float, scale: float, max_cost: float
) -> ArmEstimate:
    """The estimate of one arm."""
    pulls = int(arms.pulls[slot])
    cost = interval(float(arms.cost_sum[slot]), float(arms.cost_squares[slot]), pulls, scale)
    return ArmEstimate(
        status,
        pulls,
        interval(float(arms.reward_sum[slot]), float(arms.reward_squares[slot]), pulls, max_reward),
        Interval(min(cost.mean, max_cost), cost.low, min(cost.high, max_cost)),  # rounding may have passed it
    )

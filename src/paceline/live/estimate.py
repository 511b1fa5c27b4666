"""What a bandit knows of an arm, with intervals that hold at all times at once."""

import math
from typing import Any, NamedTuple

from paceline.kernels.estimates import Estimates, Known, known_costs, known_rewards, variance
from paceline.kernels.jit import plain
from paceline.live.config import Config
from paceline.live.late_rewards import LateRewards
from paceline.live.resource import Resource

ERROR = 0.05  # the chance that an interval is ever wrong


class Interval(NamedTuple):
    """A mean and bounds on the true one."""

    mean: float
    low: float
    high: float


class ArmEstimate(NamedTuple):
    """What is known of an arm, in the user's units. Costs count as soon as they are told, and so do rewards.

    Where silence may stand for a reward, all rewards count at the same age: when the window is over.
    """

    status: str  # active, paused or retired
    pulls: int  # of which all is known
    reward: Interval
    cost: Any  # an interval; where resources have names, one for each of them by name


def interval(known: Known, most: float, low: float = 0.0) -> Interval:
    """An empirical Bernstein interval for the mean of outcomes in [low, 1], times ``most``, cut to where means can be.

    With n outcomes of variance v (the unbiased one), w = 1 - low and  x = log(4 n (n + 1) / 0.05),

        mean +- (sqrt(2 v x / n) + 7 w x / (3 (n - 1)))

    fails with probability at most  0.05 / (n (n + 1))  for one n (Maurer and Pontil, "Empirical Bernstein bounds and
    sample variance penalization", COLT 2009, Theorem 4, both sides), hence at most 0.05 for all n together: it stays
    valid although the policy decides when to pull and the reader when to look. Such intervals are wide at first.

    >>> interval(Known(0.0, 0.0, 0.0), 2.0)
    Interval(mean=0.0, low=0.0, high=2.0)
    """
    count, total, squares = map(float, known)
    mean = min(max(total / max(count, 1.0), low), 1.0)  # a sum of which parts were taken out may have passed it
    if count < 2:
        return Interval(most * mean, most * low, most)
    spread = plain(variance)(squares, mean, count) * count / (count - 1)
    x = math.log(4.0 * count * (count + 1) / ERROR)
    radius = math.sqrt(2.0 * spread * x / count) + 7.0 * (1.0 - low) * x / (3.0 * (count - 1))
    return Interval(most * mean, most * max(mean - radius, low), most * min(mean + radius, 1.0))


def cost_interval(arms: Estimates, slot: int, d: int, resource: Resource, max_cost: float) -> Interval:
    """What is known of the cost of an arm in one resource."""
    cost = interval(plain(known_costs)(arms, slot, d), resource.scale, resource.least_cost / resource.scale)
    return Interval(*(min(bound, max_cost) for bound in cost))  # it may have been larger before, or overrun


def arm_estimate(
    arms: Estimates,
    slot: int,
    status: str,
    max_costs: tuple[float, ...],
    config: Config,
    late: LateRewards | None = None,
) -> ArmEstimate:
    """The estimate of one arm."""
    rewards, pulls = plain(known_rewards)(arms, slot), int(arms.pulls[slot])
    if late is not None:
        rewards = late.reported(rewards, slot)
        pulls = round(rewards.number)
    reward = interval(rewards, config.max_reward)
    pairs = enumerate(zip(config.resources, max_costs, strict=True))
    costs = [cost_interval(arms, slot, d, resource, most) for d, (resource, most) in pairs]
    return ArmEstimate(status, pulls, reward, config.by_name(costs))

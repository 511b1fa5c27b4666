"""What a bandit knows of an arm, with intervals that hold at all times at once."""

import math
from typing import Any, NamedTuple

from paceline.kernels.estimates import Estimates, Known, known_costs, known_rewards, variance
from paceline.kernels.jit import plain
from paceline.live.config import Config
from paceline.live.late_rewards import LateRewards
from paceline.live.resource import Resource

ERROR = 0.05  # the chance that an interval is ever wrong
BISECTIONS = 40


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
    """Bounds for the mean of outcomes in [low, 1], times ``most``: the narrower of two, each wrong with 0.025 at most.

    They stay valid although the policy decides when to pull and the reader when to look: 0.05 is the chance that the
    interval is wrong at any time at all. `mixture_bounds` are narrow where outcomes are few or rare, `bernstein_bounds`
    where they vary little.

    >>> interval(Known(0.0, 0.0, 0.0), 2.0)
    Interval(mean=0.0, low=0.0, high=2.0)
    >>> rare = interval(Known(10_000.0, 10.0, 10.0), 1.0)
    >>> round(rare.low, 5), round(rare.high, 5)
    (0.00019, 0.00292)
    """
    count, width = float(known[0]), 1.0 - low
    if count <= 0.0:
        return Interval(0.0, most * low, most)
    # In shares of the way from low to 1. A sum of which parts were taken out may have passed the ends.
    mean = min(max((float(known[1]) / count - low) / width, 0.0), 1.0)
    spread = plain(variance)(float(known[2]), float(known[1]) / count, count) / (width * width)
    bounds = mixture_bounds(mean, count), bernstein_bounds(mean, spread, count)
    lower, upper = max(bound[0] for bound in bounds), min(bound[1] for bound in bounds)
    return Interval(*(most * (low + width * share) for share in (mean, min(lower, mean), max(upper, mean))))


def mixture_bounds(mean: float, count: float) -> tuple[float, float]:
    """Bounds by a bet on every other mean, for outcomes in [0, 1].

    With sum S of n outcomes,  M(p) = B(S + 1/2, n - S + 1/2) / (pi p^S (1 - p)^(n - S)),  B the Beta function, is the
    wealth of one who bets against the mean p with all others at once. If p is true, it is a supermartingale that begins
    at 1, so that it ever reaches 1 / 0.025 with probability 0.025 at most (Ville). The bounds are where it does.
    (Robbins, "Statistical methods related to the law of the iterated logarithm", Annals of Mathematical Statistics
    1970; Howard, Ramdas, McAuliffe, Sekhon, "Time-uniform, nonparametric, nonasymptotic confidence sequences", Annals
    of Statistics 2021. That it holds for all outcomes in [0, 1], not for zeros and ones alone, is convexity.)
    """
    total, rest = mean * count, (1.0 - mean) * count
    wealth = math.lgamma(total + 0.5) + math.lgamma(rest + 0.5) - math.lgamma(count + 1.0) - math.log(math.pi)

    def is_out(p: float) -> bool:
        with_sum = total * math.log(p) if total > 0.0 else 0.0
        with_rest = rest * math.log(1.0 - p) if rest > 0.0 else 0.0
        return wealth - with_sum - with_rest >= math.log(2.0 / ERROR)

    lower, upper = 0.0, 1.0  # out, or the end of the scale
    inner_lower = inner_upper = mean
    for _ in range(BISECTIONS):
        middle = 0.5 * (lower + inner_lower)
        lower, inner_lower = (middle, inner_lower) if middle > 0.0 and is_out(middle) else (lower, middle)
        middle = 0.5 * (upper + inner_upper)
        upper, inner_upper = (middle, inner_upper) if middle < 1.0 and is_out(middle) else (upper, middle)
    return lower, upper


def bernstein_bounds(mean: float, spread: float, count: float) -> tuple[float, float]:
    """Empirical Bernstein bounds for outcomes in [0, 1], all n together.

    With n outcomes of variance v (the unbiased one) and  x = log(8 n (n + 1) / 0.05),

        mean +- (sqrt(2 v x / n) + 7 x / (3 (n - 1)))

    fails with probability at most  0.025 / (n (n + 1))  for one n (Maurer and Pontil, "Empirical Bernstein bounds and
    sample variance penalization", COLT 2009, Theorem 4, both sides), hence at most 0.025 for all n together.
    """
    if count < 2.0:
        return 0.0, 1.0
    x = math.log(8.0 * count * (count + 1.0) / ERROR)
    radius = math.sqrt(2.0 * spread * x / (count - 1.0)) + 7.0 * x / (3.0 * (count - 1.0))
    return mean - radius, mean + radius


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

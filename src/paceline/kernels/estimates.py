"""What is known of the arms: counts, sums, squares, means and the width of confidence intervals."""

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paceline.kernels.jit import kernel

Floats = npt.NDArray[np.float64]

NUMBER, TOTAL, SQUARES = range(3)  # rows of what is known


class Estimates(NamedTuple):
    """Arrays with one row per arm; those of costs have a column per resource.

    ``pulls`` and the sums are over the pulls of which all is known. ``reward_known`` and ``cost_known`` are over all
    that is known, also the cost of a pull whose reward is still to come, and the other way round; so are the means.
    Where nothing is late the two agree to the bit.

    Means and widths follow from counts and sums; they are kept because a round changes one arm and reads all of them.
    An arm of which nothing is known has means 0 and an infinite width.
    """

    pulls: npt.NDArray[np.int64]  # of which all is known
    reward_sum: Floats
    reward_squares: Floats
    reward_mean: Floats
    width: Floats  # 1 / sqrt(pulls): a radius sqrt(x / pulls) is sqrt(x) * width
    cost_sum: Floats  # (K, D), and so on
    cost_squares: Floats
    cost_mean: Floats
    reward_known: Floats  # (3, K) of all rewards that are known: number, sum, squares
    cost_known: Floats  # (3, K, D)


class Known(NamedTuple):
    """Number, sum and sum of squares of all rewards, or costs, of an arm that are known."""

    number: float
    total: float
    squares: float


@kernel
def observe(arms: Estimates, resources: Any, arm: int, reward: float, cost: Floats) -> None:
    """Take in an outcome of an arm that is told as a whole."""
    add_reward(arms, arm, reward)
    for d in range(len(resources)):
        add_cost(arms, arm, d, cost[d])
    count_pull(arms, resources, arm, reward, cost)


@kernel
def observe_part(arms: Estimates, resources: Any, arm: int, reward: float, cost: Floats) -> None:
    """Take in a part of an outcome ahead of the rest; what is not a number is not told now."""
    if not math.isnan(reward):
        add_reward(arms, arm, reward)
    for d in range(len(resources)):
        if not math.isnan(cost[d]):
            add_cost(arms, arm, d, cost[d])


@kernel
def observe_rest(arms: Estimates, resources: Any, arm: int, reward: float, cost: Floats, ahead: int) -> None:
    """Take in the rest of an outcome, given as a whole.

    ``ahead`` has a bit for each part that was taken in ahead: 1 for the reward, 2 for the first cost, 4 for the second,
    and so on.
    """
    if ahead & 1 == 0:
        add_reward(arms, arm, reward)
    for d in range(len(resources)):
        if (ahead >> (d + 1)) & 1 == 0:
            add_cost(arms, arm, d, cost[d])
    count_pull(arms, resources, arm, reward, cost)


@kernel
def add_reward(arms: Estimates, arm: int, reward: float) -> None:
    """One more reward is known."""
    known = arms.reward_known
    known[NUMBER, arm] += 1.0
    known[TOTAL, arm] += reward
    known[SQUARES, arm] += reward * reward
    arms.reward_mean[arm] = known[TOTAL, arm] / known[NUMBER, arm]


@kernel
def add_cost(arms: Estimates, arm: int, d: int, cost: float) -> None:
    """One more cost in one resource is known."""
    known = arms.cost_known
    known[NUMBER, arm, d] += 1.0
    known[TOTAL, arm, d] += cost
    known[SQUARES, arm, d] += cost * cost
    arms.cost_mean[arm, d] = known[TOTAL, arm, d] / known[NUMBER, arm, d]


@kernel
def count_pull(arms: Estimates, resources: Any, arm: int, reward: float, cost: Floats) -> None:
    """All of one more pull is known."""
    arms.pulls[arm] += 1
    arms.reward_sum[arm] += reward
    arms.reward_squares[arm] += reward * reward
    for d in range(len(resources)):
        arms.cost_sum[arm, d] += cost[d]
        arms.cost_squares[arm, d] += cost[d] * cost[d]
    arms.width[arm] = 1.0 / math.sqrt(arms.pulls[arm])


@kernel
def known_rewards(arms: Estimates, arm: int) -> Known:
    """All rewards of an arm that are known, whether its costs are or not."""
    known = arms.reward_known
    return Known(known[NUMBER, arm], known[TOTAL, arm], known[SQUARES, arm])


@kernel
def known_costs(arms: Estimates, arm: int, d: int) -> Known:
    """All costs of an arm in one resource that are known, whether its reward is or not."""
    known = arms.cost_known
    return Known(known[NUMBER, arm, d], known[TOTAL, arm, d], known[SQUARES, arm, d])


@kernel
def reward_variance(arms: Estimates, arm: int) -> float:
    """Empirical variance of all rewards of an arm that are known."""
    known = known_rewards(arms, arm)
    return variance(known.squares, arms.reward_mean[arm], known.number)


@kernel
def cost_variance(arms: Estimates, arm: int, d: int) -> float:
    """Empirical variance of all costs of an arm in one resource that are known."""
    known = known_costs(arms, arm, d)
    return variance(known.squares, arms.cost_mean[arm, d], known.number)


@kernel
def first_unpulled(arms: Estimates) -> int:
    """The first arm without a pull, or -1."""
    for arm in range(arms.pulls.size):
        if arms.pulls[arm] == 0:
            return arm
    return -1


@kernel
def variance(sum_of_squares: float, mean: float, count: float) -> float:
    """Empirical variance, 0 where nothing is known; rounding cannot make it negative."""
    return max(sum_of_squares / count - mean * mean, 0.0) if count > 0 else 0.0


@kernel
def upper(mean: float, radius: float) -> float:
    """Upper confidence bound, projected to [0, 1]."""
    return min(mean + radius, 1.0)


@kernel
def lower(mean: float, radius: float) -> float:
    """Lower confidence bound, projected to [0, 1]."""
    return max(mean - radius, 0.0)

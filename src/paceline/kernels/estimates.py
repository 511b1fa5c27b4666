"""What is known of the arms: counts, sums, squares, means and the width of confidence intervals."""

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paceline.kernels.jit import kernel

Floats = npt.NDArray[np.float64]


class Estimates(NamedTuple):
    """Arrays with one row per arm; those of costs have a column per resource.

    Means and widths follow from counts and sums; they are kept because a round changes one arm and reads all of them.
    An arm never pulled has means 0 and an infinite width.
    """

    pulls: npt.NDArray[np.int64]  # whose outcome is known
    reward_sum: Floats
    reward_squares: Floats
    reward_mean: Floats
    width: Floats  # 1 / sqrt(pulls): a radius sqrt(x / pulls) is sqrt(x) * width
    cost_sum: Floats  # (K, D), and so on
    cost_squares: Floats
    cost_mean: Floats


@kernel
def observe(arms: Estimates, resources: Any, arm: int, reward: float, cost: Floats) -> None:
    """Take in one outcome of one arm."""
    arms.pulls[arm] += 1
    pulls = arms.pulls[arm]
    arms.reward_sum[arm] += reward
    arms.reward_squares[arm] += reward * reward
    arms.reward_mean[arm] = arms.reward_sum[arm] / pulls
    for d in range(len(resources)):
        arms.cost_sum[arm, d] += cost[d]
        arms.cost_squares[arm, d] += cost[d] * cost[d]
        arms.cost_mean[arm, d] = arms.cost_sum[arm, d] / pulls
    arms.width[arm] = 1.0 / math.sqrt(pulls)


@kernel
def first_unpulled(arms: Estimates) -> int:
    """The first arm without a pull, or -1."""
    for arm in range(arms.pulls.size):
        if arms.pulls[arm] == 0:
            return arm
    return -1


@kernel
def variance(sum_of_squares: float, mean: float, pulls: int) -> float:
    """Empirical variance, 0 for an arm never pulled; rounding cannot make it negative."""
    return max(sum_of_squares / pulls - mean * mean, 0.0) if pulls > 0 else 0.0


@kernel
def upper(mean: float, radius: float) -> float:
    """Upper confidence bound, projected to [0, 1]."""
    return min(mean + radius, 1.0)


@kernel
def lower(mean: float, radius: float) -> float:
    """Lower confidence bound, projected to [0, 1]."""
    return max(mean - radius, 0.0)

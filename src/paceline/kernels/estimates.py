"""What is known of the arms: counts, sums, squares, means and the width of confidence intervals."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from paceline.kernels.jit import kernel

Floats = npt.NDArray[np.float64]


class Estimates(NamedTuple):
    """Arrays with one entry per arm.

    Means and widths follow from counts and sums; they are kept because a round changes one arm and reads all of them.
    An arm never pulled has means 0 and an infinite width.
    """

    pulls: npt.NDArray[np.int64]
    reward_sum: Floats
    cost_sum: Floats
    reward_squares: Floats
    cost_squares: Floats
    reward_mean: Floats
    cost_mean: Floats
    width: Floats  # 1 / sqrt(pulls): a radius sqrt(x / pulls) is sqrt(x) * width


def no_estimates(arms: int) -> Estimates:
    """Before the first pull."""
    return Estimates(
        pulls=np.zeros(arms, np.int64),
        reward_sum=np.zeros(arms),
        cost_sum=np.zeros(arms),
        reward_squares=np.zeros(arms),
        cost_squares=np.zeros(arms),
        reward_mean=np.zeros(arms),
        cost_mean=np.zeros(arms),
        width=np.full(arms, math.inf),
    )


@kernel
def observe(arms: Estimates, arm: int, reward: float, cost: float) -> None:
    """Take in one outcome of one arm."""
    arms.pulls[arm] += 1
    arms.reward_sum[arm] += reward
    arms.cost_sum[arm] += cost
    arms.reward_squares[arm] += reward * reward
    arms.cost_squares[arm] += cost * cost
    pulls = arms.pulls[arm]
    arms.reward_mean[arm] = arms.reward_sum[arm] / pulls
    arms.cost_mean[arm] = arms.cost_sum[arm] / pulls
    arms.width[arm] = 1.0 / math.sqrt(pulls)


@kernel
def first_unpulled(arms: Estimates) -> int:
    """The first arm without a pull, or -1."""
    for arm in range(arms.pulls.size):
        if arms.pulls[arm] == 0:
            return arm
    return -1


@kernel
def mean_cost(arms: Estimates, arm: int) -> float:
    """Empirical mean cost; the null arm, numbered after the last, costs nothing."""
    return arms.cost_mean[arm] if arm < arms.pulls.size else 0.0


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

"""Many outcomes of one arm at a time, for tests of what the world deals out."""

import numpy as np
from scipy import stats

from paceline.kernels.jit import kernel
from paceline.problems.problem import Problem
from paceline.worlds.stationary import outcome, world_of

FALSE_ALARM = 1e-9  # of each statistical test that uses it, if its seed were random
STANDARD_ERRORS = stats.norm.isf(FALSE_ALARM / 2)


@kernel
def fill(world, seed, stream, arm, rewards, costs):
    """The outcomes of the first pulls of an arm."""
    for count in range(rewards.size):
        rewards[count], costs[count] = outcome(world, seed, stream, arm, count)


def pulls_of(
    problem: Problem, size: int, arm: int = 0, seed: int = 1, stream: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Rewards and costs of the first pulls of an arm."""
    rewards, costs = np.empty(size), np.empty(size)
    fill(world_of(problem), np.uint64(seed), np.uint64(stream), arm, rewards, costs)
    return rewards, costs


def assert_distribution(sample, law):
    """The Dvoretzky-Kiefer-Wolfowitz bound on the distance of the distribution functions; then two moments."""
    points = np.unique(sample)
    # Nearer to 0 or 1 the floats are too coarse to tell values apart that the continuous law does.
    points = points[(points > 1e-12) & (points < 1 - 1e-12)]
    empirical = np.searchsorted(np.sort(sample), points, side="right") / sample.size
    distance = np.abs(empirical - law.cdf(points)).max(initial=0.0)
    assert distance <= np.sqrt(np.log(2 / FALSE_ALARM) / (2 * sample.size))

    mean, variance, _, excess_kurtosis = (float(moment) for moment in law.stats("mvsk"))
    squares = (sample - mean) ** 2
    assert abs(sample.mean() - mean) <= STANDARD_ERRORS * np.sqrt(variance / sample.size)
    assert abs(squares.mean() - variance) <= STANDARD_ERRORS * variance * np.sqrt((excess_kurtosis + 2) / sample.size)

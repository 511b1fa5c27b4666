"""Many outcomes of one arm at a time, and all of them from Python, for tests of what the world deals out."""

import numpy as np
from scipy import stats

from paceline.kernels.jit import bind
from paceline.kernels.outcomes import outcome
from paceline.kernels.state import CLOCK
from paceline.problems.problem import Problem
from paceline.worlds.python_world import PythonWorld
from paceline.worlds.stationary import world_of

FALSE_ALARM = 1e-9  # of each statistical test that uses it, if its seed were random
STANDARD_ERRORS = stats.norm.isf(FALSE_ALARM / 2)


def fill(draws, clock, arm, rewards, costs):
    """The outcomes of the first pulls of an arm."""
    for count in range(rewards.size):
        rewards[count] = outcome(draws, clock[0], arm, count, costs[count])


bound_fill = bind(fill, "many pulls", counted=False)


def clock_of(seed: int, stream: int) -> np.ndarray:
    """The key of a trial's random numbers."""
    clock = np.zeros(1, CLOCK)
    clock["seed"], clock["stream"] = seed, stream
    return clock


def pulls_of_several(
    problem: Problem, size: int, arm: int = 0, seed: int = 1, stream: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Rewards of the first pulls of an arm, and their costs, a column per resource."""
    rewards, costs = np.empty(size), np.empty((size, len(problem.resources)))
    bound_fill(world_of(problem).data, clock_of(seed, stream), arm, rewards, costs)
    return rewards, costs


def pulls_of(
    problem: Problem, size: int, arm: int = 0, seed: int = 1, stream: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Rewards and costs of the first pulls of an arm of a problem with one resource."""
    rewards, costs = pulls_of_several(problem, size, arm, seed, stream)
    (cost,) = costs.T.copy()
    return rewards, cost


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


class Mirror(PythonWorld):
    """What a problem yields, drawn from Python."""

    def __init__(self, problem):
        self.problem = problem

    def reset(self, seed, stream):
        self.draws = self.problem.sample(seed, stream)

    def outcome(self, t, arm, count):
        return self.draws.pull(arm)

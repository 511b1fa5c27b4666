"""Many outcomes of one arm at a time, for tests of what the world deals out."""

import numpy as np

from paceline.jit import kernel
from paceline.outcomes import outcome, world_of
from paceline.problem import Problem


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

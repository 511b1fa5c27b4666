"""The world of a simulation: the outcome of the n-th pull of an arm, the same whichever policy pulls it."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from paceline.distributions import Bernoulli, Beta, Constant, Distribution, Empirical
from paceline.draw import OUTCOME, Word, beta_above_one, beta_below_one, block, uniform
from paceline.jit import kernel
from paceline.problem import Problem

CONSTANT, BERNOULLI, BETA_ABOVE_ONE, BETA_BELOW_ONE, EMPIRICAL = range(5)
REWARD, COST = 0, 1
COLUMNS = 5


class World(NamedTuple):
    """A problem as arrays: for rewards (row 0) and costs (row 1) of each arm the kind of draw and its constants."""

    kind: npt.NDArray[np.int64]  # (2, K)
    shape: npt.NDArray[np.float64]  # (2, K, COLUMNS), the meaning of a column depends on the kind
    observed: npt.NDArray[np.float64]  # all observed values of Empirical distributions, one after the other


def world_of(problem: Problem) -> World:
    """The arrays of a problem, with the constants of every sampler worked out."""
    kind = np.zeros((2, problem.arms), np.int64)
    shape = np.zeros((2, problem.arms, COLUMNS))
    observed: list[float] = []
    for side, distributions in ((REWARD, problem.rewards), (COST, problem.costs)):
        for arm, distribution in enumerate(distributions):
            kind[side, arm], constants = sampler(distribution, observed)
            shape[side, arm, : len(constants)] = constants
    return World(kind, shape, np.array(observed))


def sampler(distribution: Distribution, observed: list[float]) -> tuple[int, Sequence[float]]:
    """The kind of draw and its constants; observed values are appended to the common list."""
    match distribution:
        case Constant(value):
            return CONSTANT, (value,)
        case Bernoulli(mean):
            return BERNOULLI, (mean,)
        case Beta(mean) if mean in (0.0, 1.0):
            return CONSTANT, (mean,)
        case Beta():
            return beta_sampler(*distribution.shape)
        case Empirical(values):
            start = len(observed)
            observed.extend(values)
            return EMPIRICAL, (start, len(values))


def beta_sampler(first: float, second: float) -> tuple[int, Sequence[float]]:
    """Constants of Cheng's two algorithms (see draw.py); the last says whether the draw is 1 minus the sampled value."""
    small, large = min(first, second), max(first, second)
    if small > 1.0:
        scale = math.sqrt((small + large - 2.0) / (2.0 * small * large - small - large))
        return BETA_ABOVE_ONE, (small, large, scale, small + 1.0 / scale, float(first > second))
    delta = 1.0 + large - small
    low = delta * (1.0 / 72.0 + small / 24.0) / (large / small - 7.0 / 9.0)
    high = 0.25 + (0.5 + 0.25 / delta) * small
    return BETA_BELOW_ONE, (large, small, low, high, float(first < second))


@kernel
def outcome(world: World, seed: Word, stream: Word, arm: int, count: int) -> tuple[float, float]:
    """Reward and cost of pull number ``count`` of ``arm`` in the trial with key (seed, stream).

    One random block serves both in the common case; a rejected Beta attempt takes its two words of the next block.
    """
    pull, lane = np.uint64(count), np.uint64(arm)
    first, second, third, fourth = block(seed, stream, pull, lane, OUTCOME, np.uint64(0))
    reward = sample(world, REWARD, arm, uniform(first), uniform(second))
    cost = sample(world, COST, arm, uniform(third), uniform(fourth))
    attempt = np.uint64(0)
    while reward < 0.0 or cost < 0.0:
        attempt += np.uint64(1)
        first, second, third, fourth = block(seed, stream, pull, lane, OUTCOME, attempt)
        if reward < 0.0:
            reward = sample(world, REWARD, arm, uniform(first), uniform(second))
        if cost < 0.0:
            cost = sample(world, COST, arm, uniform(third), uniform(fourth))
    return reward, cost


@kernel
def sample(world: World, side: int, arm: int, u: float, v: float) -> float:
    """One attempt at a draw from two uniforms; -1 when rejected."""
    kind = world.kind[side, arm]
    shape = world.shape[side, arm]
    if kind == BETA_ABOVE_ONE:
        value = beta_above_one(shape[0], shape[1], shape[2], shape[3], u, v)
        return 1.0 - value if shape[4] == 1.0 and value >= 0.0 else value
    if kind == BETA_BELOW_ONE:
        value = beta_below_one(shape[0], shape[1], shape[2], shape[3], u, v)
        return 1.0 - value if shape[4] == 1.0 and value >= 0.0 else value
    if kind == BERNOULLI:
        return 1.0 if u < shape[0] else 0.0
    if kind == EMPIRICAL:
        return world.observed[int(shape[0]) + int(u * shape[1])]
    return shape[0]

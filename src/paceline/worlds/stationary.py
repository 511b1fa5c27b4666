"""The world of a simulation: the outcome of the n-th pull of an arm, the same whichever policy pulls it."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from paceline.kernels.beta import BetaDensity, beta_density, strip_sample, strips_of
from paceline.kernels.jit import kernel
from paceline.kernels.random import OUTCOME, Word, beta_below_one, block, uniform
from paceline.problems.distributions import Bernoulli, Beta, Constant, Empirical, Scaled
from paceline.problems.problem import Problem

CONSTANT, BERNOULLI, BOUNDED_BETA, UNBOUNDED_BETA, EMPIRICAL = range(5)
REWARD, COST = 0, 1
COLUMNS = 5


class World(NamedTuple):
    """A problem as arrays: for rewards (row 0) and costs (row 1) of each arm the kind of draw and its constants."""

    kind: npt.NDArray[np.int64]  # (2, K)
    shape: npt.NDArray[np.float64]  # (2, K, COLUMNS), the meaning of a column depends on the kind
    start: npt.NDArray[np.int64]  # (2, K), where in `strips` or `observed` the entries of this draw begin
    entries: npt.NDArray[np.int64]  # (2, K), how many they are
    strips: npt.NDArray[np.float64]  # (n, 4), the tables of all bounded Beta densities
    observed: npt.NDArray[np.float64]  # (n,), the values of all Empirical distributions
    top: npt.NDArray[np.float64]  # (2, K), what each draw is multiplied by
    coupled: bool  # the cost of a pull is drawn from the random numbers of its reward


@lru_cache(maxsize=8)
def world_of(problem: Problem) -> World:
    """The arrays of a problem, with the constants and tables of every sampler worked out; shared, never written to."""
    size = (2, problem.arms)
    world = World(
        kind=np.zeros(size, np.int64),
        shape=np.zeros((*size, COLUMNS)),
        start=np.zeros(size, np.int64),
        entries=np.zeros(size, np.int64),
        strips=np.zeros((0, 4)),
        observed=np.zeros(0),
        top=np.ones(size),
        coupled=problem.coupled,
    )
    strips: list[npt.NDArray[np.float64]] = [world.strips]
    observed: list[float] = []
    for side, distributions in ((REWARD, problem.rewards), (COST, problem.costs)):
        for arm, distribution in enumerate(distributions):
            at = side, arm
            constants: tuple[float, ...]
            if isinstance(distribution, Scaled):
                world.top[at], distribution = distribution.top, distribution.of  # noqa: PLW2901
            match distribution:
                case Constant(value):
                    world.kind[at], constants = CONSTANT, (value,)
                case Bernoulli(mean):
                    world.kind[at], constants = BERNOULLI, (mean,)
                case Beta(mean) if 0.0 in distribution.shape:
                    world.kind[at], constants = CONSTANT, (mean,)
                case Beta() if min(distribution.shape) >= 1.0:
                    density = beta_density(*distribution.shape)
                    world.kind[at], constants = BOUNDED_BETA, density
                    table = strips_of(density)
                    world.start[at], world.entries[at] = sum(map(len, strips)), len(table)
                    strips.append(table)
                case Beta():
                    world.kind[at], constants = UNBOUNDED_BETA, cheng_constants(*distribution.shape)
                case Empirical(values):
                    world.kind[at], constants = EMPIRICAL, ()
                    world.start[at], world.entries[at] = len(observed), len(values)
                    observed.extend(values)
            world.shape[at][: len(constants)] = constants
    return world._replace(strips=np.concatenate(strips), observed=np.array(observed))


def cheng_constants(first: float, second: float) -> tuple[float, float, float, float, float]:
    """Constants of `beta_below_one`; the last says whether the draw is 1 minus the sampled value."""
    small, large = min(first, second), max(first, second)
    delta = 1.0 + large - small
    low = delta * (1.0 / 72.0 + small / 24.0) / (large / small - 7.0 / 9.0)
    high = 0.25 + (0.5 + 0.25 / delta) * small
    return large, small, low, high, float(first < second)


@kernel
def outcome(world: World, seed: Word, stream: Word, arm: int, count: int) -> tuple[float, float]:
    """Reward and cost of pull number ``count`` of ``arm`` in the trial with key (seed, stream).

    One random block serves both in the common case; a rejected Beta attempt takes its two words of the next block.
    """
    pull, lane = np.uint64(count), np.uint64(arm)
    reward, cost = -1.0, -1.0
    attempt = np.uint64(0)
    while reward < 0.0 or cost < 0.0:
        first, second, third, fourth = block(seed, stream, pull, lane, OUTCOME, attempt)
        attempt += np.uint64(1)
        if world.coupled:
            third, fourth = first, second
        if reward < 0.0:
            reward = world.top[REWARD, arm] * sample(world, REWARD, arm, uniform(first), uniform(second))
        if cost < 0.0:
            cost = world.top[COST, arm] * sample(world, COST, arm, uniform(third), uniform(fourth))
    return reward, cost


@kernel
def sample(world: World, side: int, arm: int, u: float, v: float) -> float:
    """One attempt at a draw from two uniforms; -1 when rejected. It grows with u, which is what couples draws."""
    kind = world.kind[side, arm]
    shape = world.shape[side, arm]
    if kind == BOUNDED_BETA:
        density = BetaDensity(shape[0], shape[1], shape[2], shape[3])
        return strip_sample(density, world.strips, world.start[side, arm], world.entries[side, arm], u, v)
    if kind == BERNOULLI:
        return 1.0 if u > 1.0 - shape[0] else 0.0
    if kind == UNBOUNDED_BETA:
        if shape[4] == 0.0:
            return beta_below_one(shape[0], shape[1], shape[2], shape[3], u, v)
        value = beta_below_one(shape[0], shape[1], shape[2], shape[3], 1.0 - u, v)
        return 1.0 - value if value >= 0.0 else value
    if kind == EMPIRICAL:
        return float(world.observed[world.start[side, arm] + int(u * world.entries[side, arm])])
    return float(shape[0])

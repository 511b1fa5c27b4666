"""Outcomes of pulls, drawn from the arrays that describe a problem: a function of (seed, stream, arm, count)."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paceline.kernels.beta import BetaDensity, strip_sample
from paceline.kernels.jit import kernel
from paceline.kernels.random import OUTCOME, beta_below_one, block, uniform

Floats = npt.NDArray[np.float64]

CONSTANT, BERNOULLI, BOUNDED_BETA, UNBOUNDED_BETA, EMPIRICAL = range(5)
COLUMNS = 5
GROUP_BITS = np.uint64(40)  # above the number of an arm in a counter


class Draws(NamedTuple):
    """A problem as arrays: for the reward (row 0) and each cost (row 1 + d) of each arm the draw and its constants."""

    kind: npt.NDArray[np.int64]  # (1 + D, K)
    shape: Floats  # (1 + D, K, COLUMNS), the meaning of a column depends on the kind
    start: npt.NDArray[np.int64]  # (1 + D, K), where in `strips` or `observed` the entries of this draw begin
    entries: npt.NDArray[np.int64]  # (1 + D, K), how many they are
    strips: Floats  # (n, 4), the tables of all bounded Beta densities
    observed: Floats  # (n,), the values of all Empirical distributions
    top: Floats  # (1 + D, K), what each draw is multiplied by, and
    shift: Floats  # (1 + D, K), what is added to it
    coupled: bool  # the costs of a pull are drawn from the random numbers of its reward


@kernel
def draw_pair(draws: Draws, clock: Any, arm: int, count: int, group: int) -> tuple[float, float]:
    """Two draws of a pull, those of rows 2 g and 2 g + 1, before they are scaled; the second may not exist.

    One random block serves both in the common case; a rejected Beta attempt takes its two words of the next block.
    """
    pull, lane = np.uint64(count), np.uint64(arm)
    if not draws.coupled:
        lane += np.uint64(group) << GROUP_BITS
    one, other = 2 * group, 2 * group + 1
    first, second = -1.0, -1.0 if other < draws.kind.shape[0] else 0.0
    attempt = np.uint64(0)
    while first < 0.0 or second < 0.0:
        a, b, c, d = block(clock.seed, clock.stream, pull, lane, OUTCOME, attempt)
        attempt += np.uint64(1)
        if draws.coupled:
            c, d = a, b
        if first < 0.0:
            first = sample(draws, one, arm, uniform(a), uniform(b))
        if second < 0.0:
            second = sample(draws, other, arm, uniform(c), uniform(d))
    return first, second


@kernel
def outcome(draws: Draws, clock: Any, arm: int, count: int, cost: Floats) -> float:
    """Reward and costs of pull number ``count`` of ``arm`` in the trial with the key of the clock."""
    reward, first = draw_pair(draws, clock, arm, count, 0)
    top, shift = draws.top, draws.shift
    cost[0] = top[1, arm] * first + shift[1, arm]
    for group in range(1, (cost.size + 2) // 2):
        first, second = draw_pair(draws, clock, arm, count, group)
        row = 2 * group
        cost[row - 1] = top[row, arm] * first + shift[row, arm]
        if row < cost.size:
            cost[row] = top[row + 1, arm] * second + shift[row + 1, arm]
    return float(top[0, arm] * reward)


@kernel
def sample(draws: Draws, side: int, arm: int, u: float, v: float) -> float:
    """One attempt at a draw from two uniforms; -1 when rejected. It grows with u, which is what couples draws."""
    kind = draws.kind[side, arm]
    shape = draws.shape[side, arm]
    if kind == BOUNDED_BETA:
        density = BetaDensity(shape[0], shape[1], shape[2], shape[3])
        return strip_sample(density, draws.strips, draws.start[side, arm], draws.entries[side, arm], u, v)
    if kind == BERNOULLI:
        return 1.0 if u > 1.0 - shape[0] else 0.0
    if kind == UNBOUNDED_BETA:
        if shape[4] == 0.0:
            return beta_below_one(shape[0], shape[1], shape[2], shape[3], u, v)
        value = beta_below_one(shape[0], shape[1], shape[2], shape[3], 1.0 - u, v)
        return 1.0 - value if value >= 0.0 else value
    if kind == EMPIRICAL:
        return float(draws.observed[draws.start[side, arm] + int(u * draws.entries[side, arm])])
    return float(shape[0])

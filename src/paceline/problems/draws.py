"""The draws of a problem: its distributions as arrays for the kernels, and a way to draw from Python."""

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from paceline import checks
from paceline.kernels.beta import beta_density, strips_of
from paceline.kernels.jit import bind
from paceline.kernels.outcomes import (
    BERNOULLI,
    BOUNDED_BETA,
    COLUMNS,
    CONSTANT,
    EMPIRICAL,
    UNBOUNDED_BETA,
    Draws,
    outcome,
)
from paceline.kernels.state import CLOCK
from paceline.problems.distributions import Bernoulli, Beta, Constant, Empirical, Scaled, Shifted
from paceline.problems.observed import Column

if TYPE_CHECKING:
    from paceline.problems.problem import Problem

Floats = npt.NDArray[np.float64]


def draws_of(problem: "Problem") -> Draws:
    """The arrays of a problem, with the constants and tables of every sampler worked out."""
    sides = (problem.rewards, *problem.consumptions)
    size = (len(sides), problem.arms)
    draws = Draws(
        kind=np.zeros(size, np.int64),
        shape=np.zeros((*size, COLUMNS)),
        start=np.zeros(size, np.int64),
        entries=np.zeros(size, np.int64),
        strips=np.zeros((0, 4)),
        observed=np.zeros(0),
        top=np.ones(size),
        shift=np.zeros(size),
        coupled=problem.coupled,
    )
    strips: list[Floats] = [draws.strips]
    observed: list[Floats] = [draws.observed]
    for side, distributions in enumerate(sides):
        for arm, distribution in enumerate(distributions):
            at = side, arm
            constants: tuple[float, ...]
            if isinstance(distribution, Shifted):
                draws.shift[at], distribution = distribution.by, distribution.of  # noqa: PLW2901
            if isinstance(distribution, Scaled):
                draws.top[at], distribution = distribution.top, distribution.of  # noqa: PLW2901
            match distribution:
                case Constant(value):
                    draws.kind[at], constants = CONSTANT, (value,)
                case Bernoulli(mean):
                    draws.kind[at], constants = BERNOULLI, (mean,)
                case Beta(mean) if 0.0 in distribution.shape:
                    draws.kind[at], constants = CONSTANT, (mean,)
                case Beta() if min(distribution.shape) >= 1.0:
                    density = beta_density(*distribution.shape)
                    draws.kind[at], constants = BOUNDED_BETA, density
                    table = strips_of(density)
                    draws.start[at], draws.entries[at] = sum(map(len, strips)), len(table)
                    strips.append(table)
                case Beta():
                    draws.kind[at], constants = UNBOUNDED_BETA, cheng_constants(*distribution.shape)
                case Empirical(values):
                    draws.kind[at], constants = EMPIRICAL, ()
                    draws.start[at], draws.entries[at] = sum(map(len, observed)), len(values)
                    observed.append(np.array(values))
                case Column(table):
                    column = table.column(side, arm)
                    draws.kind[at], constants = EMPIRICAL, ()
                    draws.start[at], draws.entries[at] = sum(map(len, observed)), len(column)
                    observed.append(column)
            draws.shape[at][: len(constants)] = constants
    return draws._replace(strips=np.concatenate(strips), observed=np.concatenate(observed))


def cheng_constants(first: float, second: float) -> tuple[float, float, float, float, float]:
    """Constants of `beta_below_one`; the last says whether the draw is 1 minus the sampled value."""
    small, large = min(first, second), max(first, second)
    delta = 1.0 + large - small
    low = delta * (1.0 / 72.0 + small / 24.0) / (large / small - 7.0 / 9.0)
    high = 0.25 + (0.5 + 0.25 / delta) * small
    return large, small, low, high, float(first < second)


def pull(draws: Draws, clock: Any, arm: int, count: int, cost: Floats) -> float:
    """`outcome`, to be called from Python."""
    return outcome(draws, clock[0], arm, count, cost)


@cache
def compiled_pull() -> Any:
    """Compiled at the first pull."""
    return bind(pull, "problem.sample", counted=False)


class Sampler:
    """Draws outcomes, pull by pull."""

    def __init__(self, problem: "Problem", seed: int, stream: int) -> None:
        self._draws = draws_of(problem)
        self._names = problem.named
        self._clock = np.zeros(1, CLOCK)
        self._clock["seed"], self._clock["stream"] = seed, stream
        self._pulls = [0] * problem.arms

    def pull(self, arm: int) -> tuple[float, Any]:
        """Reward and cost of the next pull of an arm; costs come by name if resources have names."""
        arm = checks.whole("arm", arm, 0, len(self._pulls) - 1)
        cost = np.zeros(self._draws.kind.shape[0] - 1)
        reward = compiled_pull()(self._draws, self._clock, arm, self._pulls[arm], cost)
        self._pulls[arm] += 1
        return float(reward), self._names(cost.tolist())

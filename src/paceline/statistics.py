"""How sure a mean is: of trials, and geometric ones over problems. Resampled trials, resampled problems."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

RESAMPLES = 2000
# The steady regret of a short run can be 0 or, with luck, below; it has no logarithm. Below this all count as equal.
FLOOR = 0.1


@dataclass(frozen=True)
class Estimate:
    """A number and its 95 % interval.

    >>> print(Estimate(1.234, 0.9, 1.6))
    1.23 [0.9, 1.6]
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{three_digits(self.value)} [{three_digits(self.low)}, {three_digits(self.high)}]"


def three_digits(value: float) -> str:
    """Three digits, and no exponent.

    >>> three_digits(1234.5), three_digits(0.01234), three_digits(6.0)
    ('1,234', '0.0123', '6')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def log_means(regret: Floats) -> Floats:
    """Logarithms of the means over the last axis, floored at `FLOOR`."""
    return np.asarray(np.log(np.maximum(regret.mean(axis=-1), FLOOR)))


def resampled_log_means(regret: Floats, seed: int, resamples: int = RESAMPLES) -> Floats:
    """`log_means` of resamples: (policies, problems, trials) becomes (policies, resamples, problems).

    A resample draws as many problems as there are, with replacement, and for each of them as many trials. All policies
    get the same draws: they played the same random numbers, and what is lucky for one is so for all.

    >>> regret = np.ones((2, 3, 4))
    >>> resampled_log_means(regret, seed=0, resamples=5).shape
    (2, 5, 3)
    """
    problem, trial = draws(regret, seed, resamples)
    return np.stack([log_means(policy[problem[..., None], trial]) for policy in regret])


def draws(regret: Floats, seed: int, resamples: int = RESAMPLES) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Which problems, (resamples, problems), and which of their trials, (resamples, problems, trials)."""
    _, problems, trials = regret.shape
    generator = np.random.default_rng(seed)
    return (
        generator.integers(problems, size=(resamples, problems)),
        generator.integers(trials, size=(resamples, problems, trials)),
    )


def ratios_to(limits: Floats, regret: Floats, seed: int) -> list[Estimate]:
    """For each policy the geometric mean over problems of mean regret / limit.

    >>> ratios_to(np.array([2.0, 2.0]), np.array([[[4.0], [16.0]]]), seed=0)[0].value
    4.0
    """
    problem, _ = draws(regret, seed)
    logs = np.log(limits)
    return estimates(log_means(regret) - logs, resampled_log_means(regret, seed) - logs[problem])


def gains_over(reference: int, regret: Floats, seed: int) -> list[Estimate]:
    """For each policy the geometric mean over problems of  mean regret of the reference / mean regret of the policy.

    >>> regret = np.array([[[4.0], [16.0]], [[2.0], [2.0]]])
    >>> [round(gain.value, 12) for gain in gains_over(0, regret, seed=0)]
    [1.0, 4.0]
    """
    measured, resampled = log_means(regret), resampled_log_means(regret, seed)
    return estimates(measured[reference] - measured, resampled[reference] - resampled)


def mean_difference(values: Floats, reference: Floats, seed: int, *, paired: bool = True) -> Estimate | None:
    """Mean of the values minus mean of the reference; nothing for a single trial, which cannot say how sure it is.

    Paired, a resample draws trials of both together; else it draws from each on its own.

    >>> mean_difference(np.array([3.0, 4.0]), np.array([1.0, 2.0]), seed=0)
    Estimate(value=2.0, low=2.0, high=2.0)
    """
    if min(len(values), len(reference)) < 2:
        return None
    if paired:
        resampled = resampled_means(values - reference, [seed, 0])
    else:
        resampled = resampled_means(values, [seed, 0]) - resampled_means(reference, [seed, 1])
    low, high = np.quantile(resampled, [0.025, 0.975])
    return Estimate(float(values.mean() - reference.mean()), float(low), float(high))


def resampled_means(values: Floats, seed: list[int], resamples: int = RESAMPLES) -> Floats:
    """Means of resamples, as many as asked for."""
    trials = len(values)
    times_drawn = np.random.default_rng(seed).multinomial(trials, np.full(trials, 1.0 / trials), size=resamples)
    return np.asarray(times_drawn @ values / trials)


def estimates(measured: Floats, resampled: Floats) -> list[Estimate]:
    """Geometric means over the last axis from logarithms, with the interval that holds 95 % of the resamples."""
    values = np.exp(measured.mean(axis=-1))
    low, high = np.quantile(np.exp(resampled.mean(axis=-1)), [0.025, 0.975], axis=-1)
    return [Estimate(*map(float, triple)) for triple in zip(values, low, high, strict=True)]

"""How hard it is to mistake a distribution for one of its family with another mean: Kullback-Leibler divergences."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from paceline.problems.distributions import Bernoulli, Beta, Distribution, Empirical, Scaled, Shifted


def divergence(distribution: Distribution, mean: float) -> float:
    """KL(distribution, the member of its family with the given mean); infinite where there is none.

    The family of a Beta has its concentration, that of an Empirical its values with exponentially tilted weights; a
    Constant is alone in its family. A scale or a shift that is known changes nothing: what it moves is the mean.

    >>> round(divergence(Bernoulli(0.5), 0.9), 6), round(divergence(Shifted(Bernoulli(0.5), -1.0), -0.1), 6)
    (0.510826, 0.510826)
    """
    if isinstance(distribution, Shifted):
        return divergence(distribution.of, mean - distribution.by)
    if isinstance(distribution, Scaled):
        return divergence(distribution.of, mean / distribution.top)
    own = distribution.mean
    if mean == own:
        return 0.0
    if distribution.variance == 0.0 or not 0.0 < mean < 1.0:
        return math.inf
    match distribution:
        case Bernoulli():
            return own * math.log(own / mean) + (1.0 - own) * math.log((1.0 - own) / (1.0 - mean))
        case Beta(_, concentration):
            a, b = distribution.shape
            other_a = mean * concentration
            other_b = concentration - other_a
            drift = (a - other_a) * digamma(a) + (b - other_b) * digamma(b)
            return log_gammas(other_a, other_b) - log_gammas(a, b) + drift
        case Empirical(values):
            return tilted_divergence(values, mean)
    return math.inf


def steepness(distribution: Distribution, mean: float) -> tuple[float, float]:
    """The first and the second derivative of `divergence` by the mean, where it is finite and the variance is not 0.

    Of an Empirical the second is 1 / variance, without the part that the change of the variance brings: that part may
    make it negative, and it is asked for as a scale.

    >>> [round(value, 6) for value in steepness(Bernoulli(0.5), 0.9)]
    [4.444444, 50.617284]
    """
    match distribution:
        case Shifted(of, by):
            return steepness(of, mean - by)
        case Scaled(of, top):
            first, second = steepness(of, mean / top)
            return first / top, second / top**2
        case Beta(_, concentration):
            (a, b), other_a = distribution.shape, mean * concentration
            other_b = concentration - other_a
            first = digamma(other_a) - digamma(a) - digamma(other_b) + digamma(b)
            return concentration * first, concentration**2 * (trigamma(other_a) + trigamma(other_b))
        case Empirical(values):
            spread = tilt_to(values, mean).variance
            return (mean - distribution.mean) / spread, 1.0 / spread
    own = distribution.mean  # of a Bernoulli
    return (mean - own) / (mean * (1.0 - mean)), own / mean**2 + (1.0 - own) / (1.0 - mean) ** 2


def lifted_divergence(values: npt.NDArray[np.float64], mean: float, top: float) -> float:
    """The least KL from the law of equally likely values to any law on (-infinity, top] with at least the given mean.

    It is  max over 0 <= s <= 1 / (top - mean)  of the mean of  log(1 - s (x - mean))  (Honda and Takemura, "An
    asymptotically optimal bandit algorithm for bounded support models", COLT 2010), a concave function of s. Newton's
    method finds where its derivative is 0; a step that would leave the bracket is replaced by a bisection.

    >>> round(lifted_divergence(np.array([0.0, 1.0]), 0.9, 1.0), 6)
    0.510826
    """
    distances = values - mean
    if distances.mean() >= 0.0:
        return 0.0
    if top <= mean:
        return math.inf
    low, high = 0.0, 1.0 / (top - mean)
    if values.max() < top and rise(distances, high)[0] >= 0.0:
        low = high  # it rises to the end; no need to creep there
    s = low
    for _ in range(100):
        slope, bend = rise(distances, s)
        low, high = (s, high) if slope > 0.0 else (low, s)
        step = s - slope / bend
        moved = step if low < step < high else (low + high) / 2.0
        if abs(moved - s) <= 1e-15 * high or low >= high:
            break
        s = moved
    return float(np.log1p(-s * distances).mean())


def rise(distances: npt.NDArray[np.float64], s: float) -> tuple[float, float]:
    """The derivatives of `lifted_divergence`'s function of s."""
    terms = distances / (1.0 - s * distances)
    return -float(terms.mean()), -float((terms * terms).mean())


def log_gammas(a: float, b: float) -> float:
    """The logarithm of Gamma(a) Gamma(b)."""
    return math.lgamma(a) + math.lgamma(b)


def digamma(x: float) -> float:
    """The derivative of log Gamma, x > 0: recurrence up to 10, then the asymptotic series (error below 1e-13).

    SciPy has it; eight lines save the core a dependency.

    >>> round(digamma(1.0), 12)
    -0.577215664902
    """
    value = 0.0
    while x < 10.0:
        value -= 1.0 / x
        x += 1.0
    f = 1.0 / (x * x)
    series = f * (1.0 / 12.0 - f * (1.0 / 120.0 - f * (1.0 / 252.0 - f * (1.0 / 240.0 - f / 132.0))))
    return value + math.log(x) - 0.5 / x - series


def trigamma(x: float) -> float:
    """The derivative of `digamma`, x > 0, by the same means (error below 1e-12).

    >>> round(trigamma(1.0), 12)
    1.644934066848
    """
    value = 0.0
    while x < 10.0:
        value += 1.0 / (x * x)
        x += 1.0
    f = 1.0 / (x * x)
    series = f * (1.0 / 6.0 - f * (1.0 / 30.0 - f * (1.0 / 42.0 - f * (1.0 / 30.0 - f * 5.0 / 66.0))))
    return value + (1.0 + 0.5 / x + series) / x


class Tilt(NamedTuple):
    """Weights proportional to exp(s x) on some values."""

    s: float
    mean: float
    variance: float
    log_scale: float  # the log of the mean of exp(s x)


def tilt(values: tuple[float, ...], s: float) -> Tilt:
    """The tilt of equal weights by s."""
    top = max(s * x for x in values)
    weights = [math.exp(s * x - top) for x in values]
    total = sum(weights)
    mean = sum(w * x for w, x in zip(weights, values, strict=True)) / total
    variance = sum(w * (x - mean) ** 2 for w, x in zip(weights, values, strict=True)) / total
    return Tilt(s, mean, variance, top + math.log(total / len(values)))


def tilt_to(values: tuple[float, ...], mean: float) -> Tilt:
    """The tilt with a mean between the smallest and the largest value, by bisection for s."""
    low, high = -1.0, 1.0
    while tilt(values, low).mean > mean:
        low *= 2.0
    while tilt(values, high).mean < mean:
        high *= 2.0
    for _ in range(100):
        middle = (low + high) / 2.0
        if tilt(values, middle).mean < mean:
            low = middle
        else:
            high = middle
    return tilt(values, (low + high) / 2.0)


def tilted_divergence(values: tuple[float, ...], mean: float) -> float:
    """KL(uniform on values, weights proportional to exp(s x) with the given mean).

    >>> round(tilted_divergence((0.0, 1.0), 0.9), 6)
    0.510826
    """
    if not min(values) < mean < max(values):
        return math.inf
    found = tilt_to(values, mean)
    return found.log_scale - found.s * (sum(values) / len(values))

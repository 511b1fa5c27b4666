"""How hard it is to mistake a distribution for one of its family with another mean: Kullback-Leibler divergences."""

import math

from paceline.problems.distributions import Bernoulli, Beta, Distribution, Empirical, Scaled


def divergence(distribution: Distribution, mean: float) -> float:
    """KL(distribution, the member of its family with the given mean); infinite where there is none.

    The family of a Beta has its concentration, that of an Empirical its values with exponentially tilted weights; a
    Constant is alone in its family.

    >>> round(divergence(Bernoulli(0.5), 0.9), 6)
    0.510826
    """
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


def tilted_divergence(values: tuple[float, ...], mean: float) -> float:
    """KL(uniform on values, weights proportional to exp(s x) with the given mean), by bisection for s.

    >>> round(tilted_divergence((0.0, 1.0), 0.9), 6)
    0.510826
    """
    if not min(values) < mean < max(values):
        return math.inf
    own = sum(values) / len(values)

    def tilted(s: float) -> tuple[float, float]:
        """Mean under the tilt, and the log of the mean of exp(s x)."""
        top = max(s * x for x in values)
        weights = [math.exp(s * x - top) for x in values]
        total = sum(weights)
        return sum(w * x for w, x in zip(weights, values, strict=True)) / total, top + math.log(total / len(values))

    low, high = -1.0, 1.0
    while tilted(low)[0] > mean:
        low *= 2.0
    while tilted(high)[0] < mean:
        high *= 2.0
    for _ in range(100):
        middle = (low + high) / 2.0
        if tilted(middle)[0] < mean:
            low = middle
        else:
            high = middle
    s = (low + high) / 2.0
    return tilted(s)[1] - s * own

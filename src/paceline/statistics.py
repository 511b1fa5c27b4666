"""How sure a mean is: over trials, and geometric ones over problems. Every interval and every "better" comes from here.

All intervals are Student's t. They were chosen by measurement: sub-samples of pools of real regret (`compare` of
thompson and optimistic, 40 trials on each of 100 to 200 problems: bernoulli in 2,000 and in 20,000 rounds, rare and
small-budget in 2,000), and how often an interval holds the value of the whole pool. Coverage in % of "95 %" intervals
of the geometric mean over n problems with 2, 4 or 10 trials each, of regret / limit and of gains; lowest, mean and
highest of 24 cases:

    method                                               n = 8         n = 16        n = 32
    percentiles of resampled problems and trials         81  89  94    86  92  96    83  91  97
    BCa over problems                                    81  86  89    85  89  93    85  91  94
    bootstrap-t over problems                            90  93  95    90  93  96    87  92  96
    t of the logarithms of the means                     91  94  96    91  94  96    88  94  96
    t, the bias of few trials taken out (`log_means`)    91  94  96    92  94  95    93  95  96

Intervals over trials on one problem (`mean_of`, `mean_difference`, `mean_ratio`) cover 86 to 95 % with 4 to 20 trials:
a sample that has missed the tail of the regret does not know of it. Where the tail is wilder than in these pools they
cover less. Of pools of 1,000 trials of 20,000 rounds: index 89 to 90 % and thompson 87 to 89 % on the paper's 8 arms
(excess kurtosis 31 and 55), 76 to 88 % and 75 to 80 % on `family("bernoulli", 2, seed=5)[1]` (301 and 164), where
epsilon-greedy has 49 % with 4 trials. No interval from 20 trials knows of what happens in one of a hundred. For the
same reason `beyond_noise`, which chance should pass once in 370 times, is passed by it 0.5 to 5 times in 100; with 4
trials 3 plain standard errors would be 7 to 12 times. tests/test_coverage.py measures all this again.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# The steady regret of a short run can be 0 or, with luck, below; it has no logarithm. Below this all count as equal.
FLOOR = 0.1
LEVEL = 0.95  # of intervals
# A difference is more than noise if chance alone would show one as large once in 370 times: 3 standard errors when
# there are many trials, and as many more as Student's t asks for when there are few.
SIGMAS = 3.0
CHANCE = math.erfc(SIGMAS / math.sqrt(2.0))
FEWEST_PROBLEMS = 3  # of which an interval is written: that of two has 12.7 standard errors to either side
MOST_BIAS = 0.5  # of the logarithm of a mean of values that are not negative, as `log_means` estimates it


@dataclass(frozen=True)
class Estimate:
    """A number and its 95 % interval. One of which nothing is known has no ends: 0 or minus infinity, and infinity.

    Ends are written where they say something: not where nothing is known, nor where all would be the number again.

    >>> print(Estimate(1.234, 0.9, 1.6), Estimate(1.0, 1.0, 1.0), Estimate(3.0, 0.0, math.inf), sep="; ")
    1.23 [0.9, 1.6]; 1; 3
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return self.written(three_digits)

    def written(self, number: Callable[[float], str]) -> str:
        """The same, its numbers written in a way of one's own."""
        value, low, high = map(number, (self.value, self.low, self.high))
        return value if not self.known or low == value == high else f"{value} [{low}, {high}]"

    @property
    def known(self) -> bool:
        """Whether the interval ends anywhere."""
        return math.isfinite(self.high)


def three_digits(value: float) -> str:
    """Three digits, and no exponent from 0.0001 on.

    >>> three_digits(1234.5), three_digits(999.7), three_digits(0.01234), three_digits(6.0)
    ('1,234', '1,000', '0.0123', '6')
    """
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"


# Student's t. SciPy has it; forty lines save the core a dependency.


def t_tail(t: float, degrees: float) -> float:
    """The probability that Student's t is above t >= 0.

    >>> round(t_tail(12.706204736, 1), 9), round(t_tail(0.0, 5), 9)
    (0.025, 0.5)
    """
    return 0.5 * incomplete_beta(degrees / 2.0, 0.5, degrees / (degrees + t * t))


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function, by its continued fraction (Abramowitz and Stegun 26.5.8)."""
    if x <= 0.0 or x >= 1.0:
        return float(x >= 1.0)
    if x > (a + 1.0) / (a + b + 2.0):  # there the fraction of the other side converges
        return 1.0 - incomplete_beta(b, a, 1.0 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    return front * beta_fraction(a, b, x) / a


def beta_fraction(a: float, b: float, x: float) -> float:
    """The continued fraction, evaluated from the front (Lentz's method)."""
    tiny = 1e-300
    c, d = 1.0, 1.0 / max(1.0 - (a + b) * x / (a + 1.0), tiny)
    value = d
    for m in range(1, 1000):
        for step in (
            m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0)),
        ):
            d, c = 1.0 / (1.0 + step * d or tiny), 1.0 + step / c or tiny
            value *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return value


@lru_cache(maxsize=1000)
def t_quantile(tail: float, degrees: float) -> float:
    """The t above which Student's t lies with probability ``tail``, at most 1/2; found by halving.

    >>> round(t_quantile(0.025, 9), 6), round(t_quantile(0.025, 1e9), 6)
    (2.262157, 1.959964)
    """
    low, high = 0.0, 1.0
    while t_tail(high, degrees) > tail:
        low, high = high, 2.0 * high
    while high - low > 1e-13 * high:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (middle, high) if t_tail(middle, degrees) > tail else (low, middle)
    return 0.5 * (low + high)


# Trials on one problem.


def standard_error(values: Floats | Ints) -> float | None:
    """Of the mean; a single value has none."""
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else None


def interval(value: float, error: float, degrees: float) -> Estimate:
    """A mean with the 95 % interval of Student's t."""
    radius = t_quantile((1.0 - LEVEL) / 2.0, degrees) * error
    return Estimate(value, value - radius, value + radius)


def radius_of_mean(trials: int) -> float:
    """Half the width of the 95 % interval of a mean over so many trials, in standard deviations.

    >>> round(radius_of_mean(10), 3)
    0.715
    """
    return t_quantile((1.0 - LEVEL) / 2.0, trials - 1) / math.sqrt(trials)


def mean_of(values: Floats | Ints) -> Estimate:
    """Mean over trials; a single trial, which cannot say how sure it is, leaves the interval open.

    An interval for the expected value on this problem. Regret is skewed, and few trials often miss its tail. Whole
    numbers are counts: no interval of theirs is below 0.

    >>> print(mean_of(np.array([1.0, 2.0, 3.0])), mean_of(np.array([1, 2, 3])), sep="; ")
    2 [-0.484, 4.48]; 2 [0, 4.48]
    """
    mean, error = float(values.mean()), standard_error(values)
    if error is None:
        return Estimate(mean, -math.inf, math.inf)
    found = interval(mean, error, len(values) - 1)
    return replace(found, low=max(found.low, 0.0)) if np.issubdtype(values.dtype, np.integer) else found


def mean_difference(values: Floats, reference: Floats, *, paired: bool = True) -> Estimate:
    """Mean of the values minus mean of the reference; a single trial leaves the interval open.

    Paired, trial by trial, as it must be for policies that played the same draws; else by Welch's t.

    >>> mean_difference(np.array([3.0, 4.0]), np.array([1.0, 2.0]))
    Estimate(value=2.0, low=2.0, high=2.0)
    """
    if paired:
        return mean_of(values - reference)
    mean = float(values.mean() - reference.mean())
    parts = [(error**2, len(part) - 1) for part in (values, reference) if (error := standard_error(part)) is not None]
    if len(parts) < 2:
        return Estimate(mean, -math.inf, math.inf)
    square = sum(part for part, _ in parts)
    spread = sum(part**2 / degrees for part, degrees in parts)
    degrees = square**2 / spread if spread > 0.0 else math.inf
    return interval(mean, math.sqrt(square), min(degrees, 1e6))


def mean_ratio(values: Floats, reference: Floats) -> Estimate | None:
    """Mean of the values divided by mean of the reference, with the same draws; nothing if either is below `FLOOR`.

    The interval is one of the logarithm, from paired trials, so that it does not depend on which is divided by which.
    A single trial leaves it open.

    >>> print(mean_ratio(np.array([2.0, 4.0, 6.0]), np.array([1.0, 2.0, 3.0])))
    2
    """
    if min(values.mean(), reference.mean()) < FLOOR:
        return None
    log = float(np.log(values.mean() / reference.mean()))
    error = standard_error(influence(values) - influence(reference))
    return exponential(log, math.inf if error is None else error, len(values) - 1)


def standard_errors_above(regret: Floats, reference: Floats) -> Floats:
    """Paired t over the last axis: mean difference in units of its standard error.

    A difference that is the same in all of several trials is infinitely sure; a single trial says nothing.

    >>> standard_errors_above(np.array([[3.0, 5.0], [2.0, 2.0], [1.0, 1.0]]), np.array([1.0, 1.0]))
    array([ 3., inf,  0.])
    """
    difference = regret - reference
    trials = difference.shape[-1]
    mean = np.asarray(difference.mean(axis=-1))
    if trials == 1:
        return np.zeros_like(mean)
    error = np.asarray(difference.std(axis=-1, ddof=1) / np.sqrt(trials))
    certain = np.where(mean == 0.0, 0.0, np.copysign(np.inf, mean))
    return np.asarray(np.divide(mean, error, out=certain, where=error > 0.0))


def beyond_noise(regret: Floats, reference: Floats) -> Ints:
    """Over the last axis, paired: 1 where the regret is above that of the reference, -1 where below, 0 within noise.

    >>> beyond_noise(np.array([[3.0, 5.0], [2.0, 2.0], [0.5, 0.5]]), np.array([1.0, 1.0]))
    array([ 0,  1, -1])
    """
    above = standard_errors_above(regret, reference)
    trials = np.broadcast_shapes(regret.shape, reference.shape)[-1]
    if trials == 1:
        return np.zeros(above.shape, np.int64)
    return np.asarray(np.sign(above) * (np.abs(above) > noise(trials)), np.int64)


def noise(trials: int) -> float:
    """How many standard errors of a mean over so many trials are within noise: 3 of many trials, more of few.

    >>> round(noise(3), 1), round(noise(10), 1), round(noise(10**6), 3)
    (19.2, 4.1, 3.0)
    """
    return t_quantile(CHANCE / 2.0, trials - 1)


# Geometric means over problems.


def log_means(regret: Floats) -> Floats:
    """Logarithms of the means over the last axis, floored at `FLOOR`, without the bias of few trials.

    The logarithm of a mean of m trials is on average too low, by about  variance / (2 m mean^2):  with few trials a
    policy of wild regret would look better than it is. That much is added, half at most; a single trial cannot know it.

    >>> log_means(np.array([[1.0, 1.0], [-3.0, 1.0]])).round(6)
    array([ 0.      , -2.302585])
    """
    trials = regret.shape[-1]
    mean = np.asarray(regret.mean(axis=-1))
    floored = np.maximum(mean, FLOOR)
    logs = np.log(floored)
    if trials > 1:
        bias = np.minimum(regret.var(axis=-1, ddof=1) / (2.0 * trials * floored**2), MOST_BIAS)
        logs = logs + np.where(mean > FLOOR, bias, 0.0)
    return np.asarray(logs)


def influence(regret: Floats) -> Floats:
    """How much each trial moves the logarithm of the mean over the last axis; those of a floored mean do not."""
    mean = regret.mean(axis=-1, keepdims=True)
    return np.asarray(np.where(mean > FLOOR, (regret - mean) / np.maximum(mean, FLOOR), 0.0))


def ratios_to(limits: Floats, regret: Floats, groups: Sequence[int] = ()) -> list[Estimate]:
    """For each policy the geometric mean over problems of  mean regret / limit.

    ``regret`` is (policies, problems, trials); for the interval and the groups see `geometric_mean`.

    >>> ratios_to(np.array([2.0, 2.0]), np.array([[[4.0], [16.0]]]))[0].value
    4.0
    """
    logs = log_means(regret) - np.log(limits)
    return [geometric_mean(*parts, groups) for parts in zip(logs, influence(regret), strict=True)]


def gains_over(reference: int, regret: Floats, groups: Sequence[int] = ()) -> list[Estimate]:
    """For each policy the geometric mean over problems of  mean regret of the reference / mean regret of the policy.

    Policies played the same problems with the same draws, so the ratio is taken on each problem before any spread is.

    >>> regret = np.array([[[4.0], [16.0]], [[2.0], [2.0]]])
    >>> [round(gain.value, 12) for gain in gains_over(0, regret)]
    [1.0, 4.0]
    """
    logs, moves = log_means(regret), influence(regret)
    gains = [
        geometric_mean(*parts, groups) for parts in zip(logs[reference] - logs, moves[reference] - moves, strict=True)
    ]
    gains[reference] = Estimate(1.0, 1.0, 1.0)
    return gains


def losses_to_best(regret: Floats, groups: Sequence[int] = ()) -> list[Estimate]:
    """For each policy the geometric mean over problems of  its mean regret / that of the best policy.

    The best is the one whose geometric mean is least; it has 1.

    >>> regret = np.array([[[4.0], [16.0]], [[2.0], [2.0]]])
    >>> [round(loss.value, 12) for loss in losses_to_best(regret)]
    [4.0, 1.0]
    """
    best = int(log_means(regret).mean(axis=-1).argmin())
    return [
        Estimate(1.0 / gain.value, 1.0 / gain.high, 1.0 / gain.low if gain.low > 0.0 else math.inf)
        for gain in gains_over(best, regret, groups)
    ]


def geometric_mean(logs: Floats, moves: Floats, groups: Sequence[int] = ()) -> Estimate:
    """The geometric mean over problems from the logarithms, (problems,), with an interval of Student's t over problems.

    It is an interval for the geometric mean over all problems of the kind that these were drawn from, of the expected
    regret on each. The spread between problems has the noise of the trials in it, and mostly is far larger: more
    problems narrow the interval, more trials hardly do.

    Problems with the same number in ``groups`` (points of a grid, which share arms and draws) count as one: what they
    lose together is taken for one observation. Two of them say next to nothing of others: the interval is open. If
    there is one group only, it is one over trials, for these very problems; ``moves`` are the `influence` of the
    trials, (problems, trials).

    >>> print(geometric_mean(np.log([2.0, 8.0, 4.0]), np.zeros((3, 1))))
    4 [0.715, 22.4]
    >>> print(geometric_mean(np.log([2.0, 8.0]), np.zeros((2, 1))))
    4
    >>> print(geometric_mean(np.log([2.0, 8.0]), np.array([[0.1, -0.1], [0.3, -0.3]]), groups=[5, 5]))
    4 [0.315, 50.8]
    """
    value = float(logs.mean())
    _, member = np.unique(groups if len(groups) else np.arange(logs.size), return_inverse=True)
    count = int(member.max()) + 1
    if count == 1:
        error = standard_error(moves.mean(axis=0))
        return exponential(value, math.inf if error is None else error, moves.shape[-1] - 1)
    if count < FEWEST_PROBLEMS:
        return exponential(value, math.inf, count - 1)
    sums = np.bincount(member, logs - value)
    return exponential(value, math.sqrt(count / (count - 1) * float(sums @ sums)) / logs.size, count - 1)


def exponential(log: float, error: float, degrees: int) -> Estimate:
    """The number with this logarithm, and its interval; an infinite error leaves it open."""
    if error == math.inf:
        return Estimate(math.exp(log), 0.0, math.inf)
    found = interval(log, error, degrees)
    with np.errstate(over="ignore"):
        return Estimate(math.exp(log), float(np.exp(found.low)), float(np.exp(found.high)))

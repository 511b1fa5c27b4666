"""Do "95 %" intervals cover? Sub-samples of a pool of real regret, which is skewed and heavy-tailed.

The pool, tests/data/regret_pool.npz, is the steady regret of  pl.compare(kind, ["thompson", "optimistic"], problems=200
(rare: 120), rounds=2000, trials=40, seed=20240)  and the limits of the problems. Problems and trials are drawn from it
with replacement, so that its own value is the truth.

What is claimed in statistics.py is tested as a hypothesis: a test fails if the share of intervals that cover is below
the claimed one by more than chance would have it once in 10^6 times.
"""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import paceline as pl
from paceline import statistics

pytestmark = pytest.mark.statistical

POOL = np.load(Path(__file__).parent / "data" / "regret_pool.npz")
KINDS = ("bernoulli", "rare")
SAMPLES = 2000
FALSE_ALARM = 1e-6


def least(claimed: float, samples: int = SAMPLES) -> float:
    """The share below which the claim is refuted."""
    return claimed - stats.norm.isf(FALSE_ALARM) * np.sqrt(claimed * (1 - claimed) / samples)


def pool(kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Regret (policies, problems, trials), and the limits."""
    return POOL[kind].astype(float), POOL[f"{kind} limits"].astype(float)


def sub_samples(kind: str, problems: int, trials: int, samples: int = SAMPLES):
    """(samples, policies, problems, trials) with their limits."""
    regret, limits = pool(kind)
    generator = np.random.default_rng([problems, trials])
    at = generator.integers(regret.shape[1], size=(samples, problems))
    trial = generator.integers(regret.shape[2], size=(samples, problems, trials))
    return regret[:, at[..., None], trial].swapaxes(0, 1), limits[at]


def truths(kind: str) -> tuple[float, float]:
    """Of the whole pool: thompson's regret / limit, and how many times less than optimistic it loses."""
    regret, limits = pool(kind)
    means = regret.mean(axis=-1)
    return float(stats.gmean(means[0] / limits)), float(stats.gmean(means[1] / means[0]))


@pytest.mark.parametrize("trials", [2, 4, 10])
@pytest.mark.parametrize("problems", [8, 16, 32])
@pytest.mark.parametrize("kind", KINDS)
def test_intervals_over_problems_cover(kind, problems, trials):
    """Claimed: 93 %, a little less than their name says."""
    regret, limits = sub_samples(kind, problems, trials)
    ratio, gain = truths(kind)
    held = np.zeros(2)
    for sample, yardsticks in zip(regret, limits, strict=True):
        of_limit = statistics.ratios_to(yardsticks, sample)[0]
        of_other = statistics.gains_over(1, sample)[0]
        held += of_limit.low <= ratio <= of_limit.high, of_other.low <= gain <= of_other.high
    assert (held / SAMPLES).min() >= least(0.93), held / SAMPLES


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_not_chosen_covers_less(kind):
    """BCa over 8 problems would fail the test above."""
    gain = np.log(truths(kind)[1])
    regret, _ = sub_samples(kind, 8, 10, 1000)
    logs = np.log(regret.mean(axis=-1))
    gains = logs[:, 1] - logs[:, 0]
    ends = stats.bootstrap(
        (gains,), np.mean, axis=-1, vectorized=True, method="BCa", n_resamples=999, rng=np.random.default_rng(1)
    ).confidence_interval
    assert ((ends.low <= gain) & (gain <= ends.high)).mean() < least(0.93, 1000)


def test_without_the_correction_many_problems_with_few_trials_are_sure_of_the_wrong_value():
    ratio = truths("bernoulli")[0]
    regret, limits = sub_samples("bernoulli", 96, 2, 1000)
    logs = np.log(regret[:, 0].mean(axis=-1) / limits)
    ends = stats.ttest_1samp(logs, 0.0, axis=-1).confidence_interval(0.95)
    assert ((ends.low <= np.log(ratio)) & (np.log(ratio) <= ends.high)).mean() < 0.85
    corrected = [statistics.ratios_to(*parts)[0] for parts in zip(limits, regret[:, :1], strict=True)]
    assert np.mean([one.low <= ratio <= one.high for one in corrected]) >= least(0.92, 1000)


@pytest.mark.parametrize("trials", [4, 10, 20])
@pytest.mark.parametrize("kind", KINDS)
def test_intervals_over_trials_cover(kind, trials):
    """On one problem, claimed: 88 % for these kinds. A sample that missed the tail does not know of it."""
    regret, _ = pool(kind)
    generator = np.random.default_rng(trials)
    held, samples = np.zeros(3), 20
    for thompson, optimistic in regret.swapaxes(0, 1):
        differences = thompson - optimistic
        for _ in range(samples):
            at = generator.integers(thompson.size, size=trials)
            mean = statistics.mean_of(thompson[at])
            difference = statistics.mean_difference(thompson[at], optimistic[at])
            ratio = statistics.mean_ratio(thompson[at], optimistic[at])
            truth = thompson.mean() / optimistic.mean()
            held += (
                mean.low <= thompson.mean() <= mean.high,
                difference.low <= differences.mean() <= difference.high,
                ratio.low <= truth <= ratio.high,
            )
    count = regret.shape[1] * samples
    assert (held / count).min() >= least(0.88, count), held / count


@pytest.mark.parametrize(
    ("problem", "claimed"),
    [(pl.paper.eight_arms(), 0.85), (pl.problems.family("bernoulli", 2, seed=5)[1], 0.72)],
    ids=["8 arms", "a wild tail"],
)
def test_what_intervals_over_trials_cover_where_the_tail_is_heavy(problem, claimed):
    """Of the pacers, the default among them. A pool of trials is needed that has the tail: it is played here."""
    results = pl.simulate(problem, ["index", "thompson"], rounds=20_000, trials=1000, seed=77, checkpoints=1)
    generator = np.random.default_rng(4)
    for run in results.values():
        regret = run.steady_regret[:, -1]
        assert stats.kurtosis(regret) > 10.0
        for trials in (4, 10, 20):
            samples = [statistics.mean_of(regret[generator.integers(1000, size=trials)]) for _ in range(SAMPLES)]
            held = np.mean([mean.low <= regret.mean() <= mean.high for mean in samples])
            assert held >= least(claimed), (trials, held)


@pytest.mark.parametrize("trials", [4, 10])
@pytest.mark.parametrize("kind", KINDS)
def test_luck_is_seldom_taken_for_a_win(kind, trials):
    """Two policies made equal on every problem. Claimed: at most 3 % seem different; by 3 standard errors more do."""
    regret, _ = pool(kind)
    generator = np.random.default_rng(trials)
    at = generator.integers(regret.shape[2], size=(100, regret.shape[1], trials))
    equal = regret - regret.mean(axis=-1, keepdims=True)
    drawn = equal[:, np.arange(regret.shape[1])[:, None], at]
    wrong = (statistics.beyond_noise(*drawn) != 0).mean()
    assert 1 - wrong >= least(0.97, at[..., 0].size), wrong
    assert (np.abs(statistics.standard_errors_above(*drawn)) > 3.0).mean() > 2 * wrong

"""Intervals and "beyond noise" against scipy and loops."""

import math

import numpy as np
import pytest
from scipy import stats

from paceline import statistics
from paceline.statistics import Estimate


@pytest.mark.parametrize("degrees", [1, 1.5, 2, 3, 4.7, 9, 30, 99.5, 1000])
@pytest.mark.parametrize("tail", [0.4, 0.025, 0.00135, 1e-6])
def test_quantile_of_students_t_is_that_of_scipy(degrees, tail):
    assert statistics.t_quantile(tail, degrees) == pytest.approx(stats.t.isf(tail, degrees), rel=1e-10)


def test_tail_of_students_t_is_that_of_scipy():
    for t in (0.0, 0.3, 2.0, 40.0):
        assert statistics.t_tail(t, 7.3) == pytest.approx(stats.t.sf(t, 7.3), rel=1e-10)
    assert statistics.t_quantile(0.025, 1e6) == pytest.approx(stats.norm.isf(0.025), rel=1e-5)


def test_mean_over_trials_is_the_interval_of_scipy():
    values = np.random.default_rng(0).exponential(3.0, 6)
    found = statistics.mean_of(values)
    expected = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert (found.value, found.low, found.high) == pytest.approx((values.mean(), expected.low, expected.high))
    assert statistics.mean_of(values[:1]) == Estimate(values[0], -math.inf, math.inf)


@pytest.mark.parametrize("paired", [True, False])
def test_difference_of_means_is_the_interval_of_scipy(paired):
    first, second = np.random.default_rng(1).exponential(3.0, (2, 7))
    second = second if paired else second[:4] * 9.0  # Welch: neither as many nor as wide
    found = statistics.mean_difference(first, second, paired=paired)
    test = stats.ttest_rel(first, second) if paired else stats.ttest_ind(first, second, equal_var=False)
    expected = test.confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.value == pytest.approx(first.mean() - second.mean())


def test_a_difference_of_constants_is_sure():
    ones = np.ones(3)
    assert statistics.mean_difference(3 * ones, ones) == Estimate(2.0, 2.0, 2.0)
    assert statistics.mean_difference(3 * ones, ones, paired=False) == Estimate(2.0, 2.0, 2.0)
    assert statistics.mean_difference(3 * ones[:1], ones, paired=False) == Estimate(2.0, -math.inf, math.inf)


def test_ratio_of_means_is_paired():
    luck = np.random.default_rng(2).lognormal(1.0, 1.0, 12)
    sure = statistics.mean_ratio(2 * luck, luck)
    assert (sure.value, sure.low, sure.high) == pytest.approx((2.0, 2.0, 2.0))
    noisy = luck * np.linspace(0.9, 1.1, 12)
    found, turned = statistics.mean_ratio(noisy, luck), statistics.mean_ratio(luck, noisy)
    assert (1 / turned.high, 1 / turned.low) == pytest.approx((found.low, found.high))
    apart = statistics.mean_ratio(np.sort(noisy), np.sort(luck)[::-1])
    assert apart.high / apart.low > 5 * found.high / found.low


def test_interval_of_a_ratio_is_close_to_bca():
    """Where trials are many and not too skewed, two roads lead to the same place."""
    generator = np.random.default_rng(3)
    values, reference = generator.gamma(5.0, 2.0, (2, 200))
    found = statistics.mean_ratio(values, reference)
    drawn = stats.bootstrap(
        (values, reference),
        lambda a, b, axis: a.mean(axis=axis) / b.mean(axis=axis),
        paired=True,
        method="BCa",
        n_resamples=4000,
        rng=generator,
    ).confidence_interval
    assert (found.low, found.high) == pytest.approx((drawn.low, drawn.high), rel=0.05)
    assert math.log(found.high / found.low) == pytest.approx(math.log(drawn.high / drawn.low), rel=0.15)


def test_no_ratio_of_what_is_next_to_nothing_and_no_end_for_a_single_trial():
    ones = np.ones(4)
    assert statistics.mean_ratio(ones, 0.01 * ones) is None
    assert statistics.mean_ratio(-ones, ones) is None
    single = statistics.mean_ratio(np.array([3.0]), np.array([1.5]))
    assert single == Estimate(2.0, 0.0, math.inf)
    assert not single.known


# Noise.


def test_paired_t_is_that_of_scipy():
    regret, reference = np.random.default_rng(2).normal(3.0, 1.0, (2, 5, 7))
    expected = stats.ttest_rel(regret, reference, axis=-1).statistic
    np.testing.assert_allclose(statistics.standard_errors_above(regret, reference), expected)


def test_beyond_noise_is_a_paired_test_at_the_level_of_three_standard_errors():
    generator = np.random.default_rng(4)
    level = 2 * stats.norm.sf(3)
    for trials in (2, 3, 5, 20):
        regret = generator.normal(0.0, 1.0, (400, trials)) + generator.normal(0.0, 4.0, (400, 1))
        reference = generator.normal(0.0, 1.0, (400, trials))
        test = stats.ttest_rel(regret, reference, axis=-1)
        expected = np.where(test.pvalue < level, np.sign(test.statistic), 0)
        np.testing.assert_array_equal(statistics.beyond_noise(regret, reference), expected)
        assert statistics.noise(trials) == pytest.approx(stats.t.isf(level / 2, trials - 1))


def test_chance_alone_is_seldom_beyond_noise_however_few_the_trials():
    """Normal noise, 40,000 comparisons of 3 trials: 108 expected; 5 standard deviations (1 in 10^6) are 52."""
    noise = np.random.default_rng(5).normal(0.0, 1.0, (2, 40_000, 3))
    wrong = int(np.abs(statistics.beyond_noise(*noise)).sum())
    rate = 2 * stats.norm.sf(3)
    assert abs(wrong - 40_000 * rate) < 5 * math.sqrt(40_000 * rate)
    plain = np.abs(statistics.standard_errors_above(*noise)) > 3.0
    assert plain.mean() > 30 * rate  # what 3 standard errors would have let pass


def test_a_single_trial_is_never_beyond_noise():
    assert statistics.beyond_noise(np.array([[100.0]]), np.array([[1.0]])).tolist() == [0]


# Geometric means over problems.


def naive_log_mean(trials) -> float:
    """Written out: the logarithm of the mean, floored, plus the expected shortfall of the logarithm."""
    m, mean = len(trials), sum(trials) / len(trials)
    if mean <= 0.1:
        return math.log(0.1)
    variance = sum((x - mean) ** 2 for x in trials) / (m - 1) if m > 1 else 0.0
    return math.log(mean) + min(variance / (2 * m * mean**2), 0.5)


def naive_interval(logs: list[float]) -> tuple[float, float]:
    found = stats.ttest_1samp(logs, 0.0).confidence_interval(0.95)
    return math.exp(found.low), math.exp(found.high)


@pytest.mark.parametrize("trials", [1, 2, 5])
def test_geometric_means_and_intervals_as_by_a_loop(trials):
    generator = np.random.default_rng(0)
    regret = generator.exponential(5.0, (3, 4, trials)) - 1.0  # some means are below the floor
    regret[2, 1] = -1.0
    limits = generator.uniform(1.0, 9.0, 4)
    reference = 1
    ratios, gains = statistics.ratios_to(limits, regret), statistics.gains_over(reference, regret)
    for policy in range(3):
        logs = [naive_log_mean(regret[policy, n]) for n in range(4)]
        others = [naive_log_mean(regret[reference, n]) for n in range(4)]
        to_limit = [log - math.log(limit) for log, limit in zip(logs, limits, strict=True)]
        assert ratios[policy].value == pytest.approx(math.exp(sum(to_limit) / 4))
        assert (ratios[policy].low, ratios[policy].high) == pytest.approx(naive_interval(to_limit))
        gain = [b - a for a, b in zip(logs, others, strict=True)]
        assert gains[policy].value == pytest.approx(math.exp(sum(gain) / 4))
        if policy == reference:
            assert gains[policy] == Estimate(1.0, 1.0, 1.0)
        else:
            assert (gains[policy].low, gains[policy].high) == pytest.approx(naive_interval(gain))


def test_logarithm_of_few_trials_is_not_too_low():
    """A million means of 3 exponentials: the logarithm is on average too low by 0.176, corrected by less than half."""
    trials = np.random.default_rng(6).exponential(4.0, (10**6, 3))
    assert np.log(trials.mean(axis=-1)).mean() - math.log(4.0) == pytest.approx(-0.176, abs=0.005)
    assert abs(statistics.log_means(trials).mean() - math.log(4.0)) < 0.5 * 0.176


def test_the_correction_is_never_large():
    wild = np.array([[1e6] + [0.0] * 9, [-1e6] + [1.2e5] * 9])
    np.testing.assert_allclose(statistics.log_means(wild), np.log(wild.mean(axis=-1)) + 0.5)


def test_pairing_takes_out_what_all_policies_share():
    """Problems and trials that differ a hundredfold, and a policy that always loses half of what the other does."""
    regret = np.random.default_rng(1).lognormal(3.0, 2.0, (1, 6, 8)) + 1.0
    half = statistics.gains_over(0, np.concatenate([regret, regret / 2]))[1]
    assert (half.value, half.low, half.high) == pytest.approx((2.0, 2.0, 2.0))
    wide = statistics.ratios_to(np.ones(6), regret)[0]
    assert wide.high > 2 * wide.low


def test_points_of_a_grid_count_as_one_problem():
    """Each of 5 problems at 4 points of a grid that all but agree: no surer than 5 problems."""
    generator = np.random.default_rng(7)
    problems = generator.normal(0.0, 1.0, 5)
    logs = np.repeat(problems, 4) + np.tile([-0.3, -0.1, 0.1, 0.3], 5)
    groups = np.repeat(np.arange(5) << 48, 4).tolist()
    alone = statistics.geometric_mean(problems, np.zeros((5, 1)))
    found = statistics.geometric_mean(logs, np.zeros((20, 1)), groups)
    assert (found.value, found.low, found.high) == pytest.approx((alone.value, alone.low, alone.high))
    careless = statistics.geometric_mean(logs, np.zeros((20, 1)))
    assert math.log(careless.high / careless.low) < 0.5 * math.log(found.high / found.low)


def test_groups_of_one_change_nothing():
    logs, moves = np.random.default_rng(8).normal(0.0, 1.0, 6), np.zeros((6, 2))
    assert statistics.geometric_mean(logs, moves, [3, 9, 1, 4, 0, 7]) == statistics.geometric_mean(logs, moves)


def test_one_problem_has_an_interval_over_trials():
    """By the delta method: that of scipy for the linear part of the logarithm."""
    regret = np.random.default_rng(9).gamma(9.0, 2.0, (1, 3, 25))
    found = statistics.ratios_to(np.ones(3), regret, [0, 0, 0])[0]
    linear = (regret[0] / regret[0].mean(axis=-1, keepdims=True)).mean(axis=0) - 1.0
    expected = stats.ttest_1samp(linear, 0.0).confidence_interval(0.95)
    assert math.log(found.low / found.value) == pytest.approx(expected.low)
    assert math.log(found.high / found.value) == pytest.approx(expected.high)


def test_one_problem_and_one_trial_tell_nothing():
    found = statistics.ratios_to(np.ones(1), np.full((2, 1, 1), 3.0))[0]
    assert (found.value, found.low, found.high) == (pytest.approx(3.0), 0.0, math.inf)
    assert str(found) == "3"
    gains = statistics.gains_over(0, np.full((2, 1, 1), 3.0))
    assert gains[0] == Estimate(1.0, 1.0, 1.0)
    assert not gains[1].known

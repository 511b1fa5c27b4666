"""Random words are those of Philox; the numbers made of them have the distributions they should have."""

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats
from worlds import FALSE_ALARM, STANDARD_ERRORS, assert_distribution, clock_of, pulls_of

from paceline.errors import InvalidValue
from paceline.kernels.outcomes import outcome
from paceline.kernels.random import beta_below_one, block, decision_uniform, uniform
from paceline.problems.distributions import Bernoulli, Beta, Constant, Empirical
from paceline.problems.draws import cheng_constants
from paceline.problems.problem import Problem
from paceline.worlds.stationary import world_of

SIZE = 200_000

words = st.integers(0, 2**64 - 1) | st.sampled_from([0, 1, 2**32 - 1, 2**32, 2**63, 2**64 - 1])


def philox_of_numpy(key, counter):
    """The block at a counter. NumPy adds 1 to its 256-bit counter before the first block."""
    before = (sum(word << (64 * place) for place, word in enumerate(counter)) - 1) % 2**256
    state = [(before >> (64 * place)) % 2**64 for place in range(4)]
    generator = np.random.Philox(key=np.array(key, np.uint64), counter=np.array(state, np.uint64))
    return tuple(int(word) for word in generator.random_raw(4))


@settings(max_examples=1000)
@given(key=st.tuples(words, words), counter=st.tuples(words, words, words, words))
@example(key=(0, 0), counter=(0, 0, 0, 0))
@example(key=(2**64 - 1, 2**64 - 1), counter=(2**64 - 1,) * 4)
def test_block_equals_that_of_numpy(key, counter):
    found = block(*map(np.uint64, key + counter))
    assert tuple(map(int, found)) == philox_of_numpy(key, counter)


@given(word=words)
@example(word=0)
@example(word=2**64 - 1)
def test_uniform_is_inside_the_open_interval_and_symmetric(word):
    number = uniform(np.uint64(word))
    assert 0.0 < number < 1.0
    assert number == ((word >> 12) + 0.5) / 2**52
    assert number + uniform(np.uint64(2**64 - 1 - word)) == 1.0


# Distributions.


BETAS = {
    "both parameters above 1": Beta(0.3, 10.0),
    "uniform": Beta(0.5, 2.0),
    "barely above uniform": Beta(0.5, 2.0 + 1e-9),
    "first parameter 1": Beta(0.1, 10.0),
    "second parameter 1": Beta(0.875, 8.0),
    "first barely above 1": Beta(0.101, 10.0),
    "first below 1": Beta(0.05, 10.0),
    "second below 1": Beta(0.95, 10.0),
    "both below 1": Beta(0.5, 1.0),
    "both far below 1": Beta(0.7, 0.2),
    "tiny mean": Beta(0.001, 10.0),
    "huge mean": Beta(0.999, 10.0),
    "tiny mean, narrow": Beta(0.001, 1e4),
    "narrow": Beta(0.3, 1e4),
    "very narrow": Beta(0.7, 1e6),
    "a table at the change of its area formula": Beta(0.25, 1002.0),
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", BETAS)
def test_beta_draws(name):
    distribution = BETAS[name]
    law = stats.beta(*distribution.shape)
    for sample in pulls_of(Problem([distribution], [distribution], 0.5), SIZE):
        assert sample.min() >= 0.0
        assert sample.max() <= 1.0
        assert_distribution(sample, law)


def test_shortcuts_of_cheng_decide_as_the_full_comparison():
    rng = np.random.default_rng(1)
    decided = 0
    for _ in range(50_000):
        u, v, small = rng.uniform(1e-6, 1.0, 3)
        large = small + rng.exponential()
        logit = math.log(u / (1 - u)) / small
        log_sum = np.logaddexp(math.log(small), math.log(large) + logit)  # of small + large * odds, which may overflow
        full = (large + small) * (math.log(large + small) - log_sum + logit) - math.log(4)
        margin = full - math.log(u * u * v)
        if abs(margin) > 1e-9:  # closer ties are settled by rounding
            a, b, low, high, _ = cheng_constants(large, small)
            assert (beta_below_one(a, b, low, high, u, v) >= 0.0) == (margin > 0)
            decided += 1
    assert decided > 49_000


@pytest.mark.parametrize("mean", [5e-324, 1e-200, 0.3, 1 - 2**-53])
@pytest.mark.parametrize("concentration", [5e-324, 1e-200, 1e-3, 10.0])
def test_beta_draws_with_parameters_that_underflow(mean, concentration):
    try:
        problem = Problem.beta([mean], [mean], 0.5, concentration)
    except InvalidValue:
        return  # to refuse them is as good
    sample, _ = pulls_of(problem, 10_000)
    assert sample.min() >= 0.0
    assert sample.max() <= 1.0
    # By Hoeffding's inequality, which holds for every distribution on [0, 1].
    assert abs(sample.mean() - mean) <= np.sqrt(np.log(2 / FALSE_ALARM) / (2 * sample.size))


@pytest.mark.parametrize("name", BETAS)
def test_beta_states_its_moments(name):
    distribution = BETAS[name]
    mean, variance = stats.beta(*distribution.shape).stats("mv")
    assert distribution.mean == pytest.approx(float(mean))
    assert distribution.variance == pytest.approx(float(variance))


@pytest.mark.parametrize("mean", [0.0, 0.001, 0.3, 0.5, 0.999, 1.0])
def test_bernoulli_draws(mean):
    for sample in pulls_of(Problem([Bernoulli(mean)], [Bernoulli(mean)], 0.5), SIZE):
        ones = np.count_nonzero(sample == 1.0)
        assert ones + np.count_nonzero(sample == 0.0) == SIZE
        assert stats.binomtest(ones, SIZE, mean).pvalue > FALSE_ALARM


@pytest.mark.parametrize(
    ("distribution", "value"), [(Constant(0.2), 0.2), (Beta(0.0), 0.0), (Beta(1.0), 1.0), (Empirical([0.7]), 0.7)]
)
def test_draws_without_chance(distribution, value):
    for sample in pulls_of(Problem([distribution], [distribution], 0.5), 1000):
        assert (sample == value).all()


def test_empirical_draws_each_listed_value_equally_often():
    listed = [0.0, 0.25, 0.25, 1.0, 0.5, 0.25, 0.125]
    values, times = np.unique(listed, return_counts=True)
    for sample in pulls_of(Problem([Empirical(listed)], [Empirical(listed)], 0.5), SIZE):
        seen, counts = np.unique(sample, return_counts=True)
        assert seen.tolist() == values.tolist()
        assert stats.chisquare(counts, SIZE * times / len(listed)).pvalue > FALSE_ALARM
    assert Empirical(listed).mean == pytest.approx(np.mean(listed))
    assert Empirical(listed).variance == pytest.approx(np.var(listed))


def test_empirical_values_of_several_arms_do_not_mix():
    problem = Problem([Empirical([0.1, 0.2]), Empirical([0.3])], [Empirical([0.4]), Empirical([0.5, 0.6, 0.7])], 0.5)
    seen = [set(sample) for arm in range(2) for sample in pulls_of(problem, 200, arm)]
    assert seen == [{0.1, 0.2}, {0.4}, {0.3}, {0.5, 0.6, 0.7}]


# Independence.

PAIR = Problem([Beta(0.3), Beta(0.05)], [Beta(0.6), Beta(0.5, 1.0)], 0.5)


@cache
def ranks(side, **where):
    """Outcomes as numbers that are uniform on (0, 1) if the distribution is right; side 0 are rewards, 1 costs."""
    law = stats.beta(*(PAIR.rewards, PAIR.costs)[side][where.get("arm", 0)].shape)
    return law.cdf(pulls_of(PAIR, SIZE, **where)[side])


def decisions():
    seed, stream = np.uint64(1), np.uint64(0)
    return np.array([decision_uniform(seed, stream, count) for count in range(SIZE)])


UNRELATED = {
    "reward and cost": lambda: (ranks(0), ranks(1)),
    "reward and cost, both with a pole": lambda: (ranks(0, arm=1), ranks(1, arm=1)),
    "arms": lambda: (ranks(0), ranks(0, arm=1)),
    "reward of one arm and cost of another": lambda: (ranks(0), ranks(1, arm=1)),
    "seeds": lambda: (ranks(0), ranks(0, seed=2)),
    "streams": lambda: (ranks(0), ranks(0, stream=1)),
    "seed and stream exchanged": lambda: (ranks(0, seed=1, stream=2), ranks(0, seed=2, stream=1)),
    "rewards of consecutive pulls": lambda: (ranks(0)[:-1], ranks(0)[1:]),
    "costs of consecutive pulls": lambda: (ranks(1)[:-1], ranks(1)[1:]),
    "cost and next reward": lambda: (ranks(1)[:-1], ranks(0)[1:]),
    "decision and reward": lambda: (decisions(), ranks(0)),
    "decisions of consecutive rounds": lambda: (decisions()[:-1], decisions()[1:]),
}


@pytest.mark.parametrize("name", UNRELATED)
def test_unrelated_draws_are_independent(name):
    first, second = UNRELATED[name]()
    assert abs(np.corrcoef(first, second)[0, 1]) <= STANDARD_ERRORS / np.sqrt(first.size)
    # Squared distances from the middle find a dependence that leaves the correlation at 0.
    assert abs(np.corrcoef((first - 0.5) ** 2, (second - 0.5) ** 2)[0, 1]) <= STANDARD_ERRORS / np.sqrt(first.size)
    cells, _, _ = np.histogram2d(first, second, bins=16, range=[[0, 1], [0, 1]])
    assert cells.sum() == first.size
    assert stats.chisquare(cells.ravel()).pvalue > FALSE_ALARM


# Common random numbers.


def test_an_outcome_depends_on_its_key_alone():
    draws, clock, cost = world_of(PAIR).data, clock_of(7, 2**64 - 1)[0], np.zeros(1)
    rewards, costs = pulls_of(PAIR, 50, arm=1, seed=7, stream=2**64 - 1)
    backwards = [(outcome(draws, clock, 1, count, cost), cost[0]) for count in reversed(range(50))]
    assert backwards[::-1] == list(zip(rewards, costs, strict=True))


def test_rewards_do_not_depend_on_costs_or_on_other_arms():
    # Both sides of the first arm are often rejected and drawn again; that must not shift the other side.
    alone = Problem([Beta(0.05)], [Constant(0.5)], 0.5)
    among_others = Problem([Beta(0.05), Bernoulli(0.5)], [Beta(0.5, 1.0), Empirical([0.2, 0.3])], 0.1)
    assert pulls_of(alone, 2000)[0].tobytes() == pulls_of(among_others, 2000)[0].tobytes()


def test_outcomes_differ_where_the_key_differs():
    keys = [{}, {"arm": 1}, {"seed": 2}, {"stream": 1}]
    same_law = Problem([Beta(0.3)] * 2, [Beta(0.3)] * 2, 0.5)
    samples = np.concatenate([side for key in keys for side in pulls_of(same_law, 1000, **key)])
    assert np.unique(samples).size == samples.size

"""Coupled rewards and costs keep what Problem says: the same random numbers, a high reward with a high cost."""

import numpy as np
import pytest
from scipy import stats
from worlds import STANDARD_ERRORS, assert_distribution, pulls_of

from paceline.problems.distributions import Bernoulli, Beta, Empirical
from paceline.problems.problem import Problem

SIZE = 100_000
KINDS_THAT_RISE = [Beta(0.3), Beta(0.6, 50.0), Beta(0.05), Beta(0.95), Beta(0.5, 1.0), Bernoulli(0.3)]


@pytest.mark.parametrize("cost", KINDS_THAT_RISE)
@pytest.mark.parametrize("reward", KINDS_THAT_RISE)
def test_coupled_outcomes_rise_together(reward, cost):
    rewards, costs = pulls_of(Problem([reward], [cost], 0.5, coupled=True), SIZE)
    assert stats.spearmanr(rewards, costs).statistic > STANDARD_ERRORS / np.sqrt(SIZE)


@pytest.mark.parametrize("law", KINDS_THAT_RISE)
def test_coupled_outcomes_of_equal_laws_are_equal(law):
    rewards, costs = pulls_of(Problem([law], [law], 0.5, coupled=True), 5000)
    assert (rewards == costs).all()


@pytest.mark.parametrize("cost", [Beta(0.6, 50.0), Beta(0.05), Beta(0.5, 1.0)])
def test_coupling_leaves_each_distribution_as_it_is(cost):
    reward = Beta(0.05)  # often drawn anew, which must not tilt the cost
    rewards, costs = pulls_of(Problem([reward], [cost], 0.5, coupled=True), SIZE)
    assert_distribution(rewards, stats.beta(*reward.shape))
    assert_distribution(costs, stats.beta(*cost.shape))


def test_coupled_observations_come_in_pairs():
    pairs = [(0.1, 0.9), (0.5, 0.2), (0.7, 0.7)]
    firsts, seconds = zip(*pairs, strict=True)
    rewards, costs = pulls_of(Problem([Empirical(firsts)], [Empirical(seconds)], 0.5, coupled=True), 2000)
    assert set(zip(rewards.tolist(), costs.tolist(), strict=True)) == set(pairs)

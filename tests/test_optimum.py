"""The hull gives the solution of the linear program and of its dual."""

import itertools

import naive
import numpy as np
import play
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.kernels.hull import best_base, best_mix, is_best
from paceline.kernels.jit import plain
from paceline.problems.optimum import solve

ROUNDING = 1e-12


def assert_optimal(rewards, costs, budget):
    """Primal and dual feasible and of equal value: that alone proves both optimal."""
    found = solve(rewards, costs, budget)
    mu, rho = np.append(rewards, 0.0), np.append(costs, 0.0)
    # Two costs close to c on either side make the price large, and what it multiplies is rounded.
    slack = ROUNDING * (1.0 + found.price)

    assert found.mix.shape == (rewards.size + 1,)
    assert found.mix.min() >= 0.0
    assert found.mix.sum() == pytest.approx(1.0, abs=ROUNDING)
    assert rho @ found.mix <= budget + ROUNDING
    assert found.value == pytest.approx(mu @ found.mix, abs=ROUNDING)

    reduced = found.level + found.price * rho - mu  # the gaps, the null arm's last
    assert found.price >= 0.0
    assert found.level >= -slack
    assert reduced.min() >= -slack
    assert found.level + found.price * budget == pytest.approx(found.value, abs=slack)
    np.testing.assert_allclose(found.gaps, np.maximum(reduced[:-1], 0.0), atol=slack)

    assert np.abs(found.mix * reduced).max() <= slack  # complementary slackness
    assert found.price * (budget - rho @ found.mix) <= slack
    return found


def assert_documented_shape(found, rewards, costs, budget):
    """The base and the case are what their descriptions say."""
    arms = rewards.size
    assert set(np.flatnonzero(found.mix)) <= set(found.base)
    assert 1 <= len(found.base) <= 2
    assert not found.gaps[[arm for arm in found.base if arm < arms]].any()
    best_affordable = max(rewards[costs <= budget], default=0.0)
    if found.case == 1:
        assert max(best_affordable, 0.0) == rewards.max()
        assert len(found.base) == 1
    elif found.case == 2:
        assert found.base[1:] == (arms,)
        assert costs[found.base[0]] > budget
    else:
        assert found.case == 3
        assert arms not in found.base
        assert len(found.base) == 2 or costs[found.base[0]] == budget


def random_problems(count, seed, levels=None):
    """Problems of 1 to 9 arms; with ``levels`` all numbers are multiples of 1/levels, which makes ties of all sorts."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        arms = int(rng.integers(1, 10))
        if levels is None:
            yield rng.random(arms), rng.random(arms), float(1.0 - rng.random())
        else:
            rewards, costs = rng.integers(0, levels + 1, (2, arms)) / levels
            yield rewards, costs, float(rng.integers(1, levels + 1) / levels)


@pytest.mark.parametrize("levels", [None, 2, 4, 10])
def test_optimal_on_random_problems(levels):
    for rewards, costs, budget in random_problems(2000, seed=1, levels=levels):
        found = assert_optimal(rewards, costs, budget)
        assert_documented_shape(found, rewards, costs, budget)


@pytest.mark.parametrize("levels", [None, 4])
def test_value_equals_that_of_linprog(levels):
    for rewards, costs, budget in random_problems(700, seed=2, levels=levels):
        assert solve(rewards, costs, budget).value == pytest.approx(
            naive.by_linprog(rewards, costs, budget).value, abs=1e-9
        )


def test_solution_equals_that_of_linprog_where_it_is_unique():
    for rewards, costs, budget in random_problems(300, seed=3):
        found, expected = solve(rewards, costs, budget), naive.by_linprog(rewards, costs, budget)
        np.testing.assert_allclose(found.mix, expected.mix, atol=1e-9)
        assert found.price == pytest.approx(expected.price, rel=1e-9, abs=1e-9)
        assert found.level == pytest.approx(expected.level, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("levels", [None, 3, 8])
def test_base_equals_that_of_enumeration(levels):
    for rewards, costs, budget in random_problems(1000, seed=4, levels=levels):
        expected = naive.by_enumeration(rewards, costs, budget)
        found = solve(rewards, costs, budget)
        assert found.value == pytest.approx(float(expected.value), abs=ROUNDING)
        if levels is None:  # with ties several bases are as good
            assert (found.base[0], found.base[-1]) == (expected.expensive, expected.cheap)


unit = st.floats(0, 1) | st.sampled_from([0.0, 1.0, 0.5, 0.25, 0.1, 0.3, 1 - 2**-53, 0.5 + 2**-53])
# Below 2**-40 a cost is under the smallest unit of money many times over, and a price of 1 / cost overflows in the end.
budgets = st.floats(2**-40, 1) | st.sampled_from([1.0, 0.5, 0.25, 0.1, 0.3])


@settings(max_examples=500)
@given(arms=st.lists(st.tuples(unit, unit), min_size=1, max_size=8), budget=budgets)
def test_optimal_on_any_problem(arms, budget):
    rewards, costs = map(np.array, zip(*arms, strict=True))
    found = assert_optimal(rewards, costs, budget)
    exact = naive.by_enumeration(rewards, costs, budget).value
    assert found.value == pytest.approx(float(exact), abs=ROUNDING)


@given(arms=st.lists(st.tuples(unit, unit), min_size=1, max_size=8), budget=budgets)
def test_compiled_equals_plain(arms, budget):
    rewards, costs = map(np.array, zip(*arms, strict=True))
    assert best_mix(rewards, costs, budget) == plain(best_mix)(rewards, costs, budget)


@pytest.mark.parametrize("levels", [None, 4])
def test_compiled_equals_plain_on_random_problems(levels):
    for problem in random_problems(2000, seed=5, levels=levels):
        assert best_mix(*problem) == plain(best_mix)(*problem)


@settings(max_examples=500)
@given(arms=st.lists(st.tuples(unit, unit), min_size=1, max_size=5), budget=budgets)
def test_a_guess_makes_no_difference(arms, budget):
    assert_same_for_every_guess(*map(np.array, zip(*arms, strict=True)), budget)


@pytest.mark.parametrize("levels", [None, 4])
def test_a_guess_makes_no_difference_on_random_problems(levels):
    for rewards, costs, budget in random_problems(1000, seed=6, levels=levels):
        assert_same_for_every_guess(rewards, costs, budget)


def assert_same_for_every_guess(rewards, costs, budget):
    expected = plain(best_mix)(rewards, costs, budget)[:2]
    for guess in itertools.product(range(-1, len(rewards) + 2), repeat=2):  # also numbers that no arm has
        base = np.array(guess)
        assert best_base(rewards, costs, budget, base) == expected
        assert tuple(base) == expected


def test_a_good_guess_is_seen_to_be_one():
    for rewards, costs, budget in random_problems(1000, seed=7, levels=None):
        expensive, cheap, _ = plain(best_mix)(rewards, costs, budget)
        assert is_best(rewards, costs, budget, expensive, cheap) == (expensive != cheap)


DEGENERATE = {
    # name: (rewards, costs, budget), value, base, price, level, case
    "one arm, affordable": (([0.6], [0.2], 0.5), 0.6, (0,), 0.0, 0.6, 1),
    "one arm, too expensive": (([0.6], [0.8], 0.4), 0.3, (0, 1), 0.75, 0.0, 2),
    "all costs above c": (([0.6, 0.9], [0.8, 0.9], 0.5), 0.5, (1, 2), 1.0, 0.0, 2),
    "all costs below c": (([0.6, 0.9], [0.1, 0.2], 0.5), 0.9, (1,), 0.0, 0.9, 1),
    "the whole budget": (([0.6, 0.9], [0.1, 1.0], 1.0), 0.9, (1,), 0.0, 0.9, 1),
    "equal arms": (([0.5, 0.5, 0.5], [0.25, 0.25, 0.25], 0.5), 0.5, (0,), 0.0, 0.5, 1),
    "pairs of equal arms": (([0.4, 0.4, 0.8, 0.8], [0.25, 0.25, 0.75, 0.75], 0.5), 0.6, (2, 0), 0.8, 0.2, 3),
    "zero costs": (([0.2, 0.7, 0.4], [0.0, 0.0, 0.0], 0.5), 0.7, (1,), 0.0, 0.7, 1),
    "zero rewards": (([0.0, 0.0], [0.9, 0.1], 0.5), 0.0, (2,), 0.0, 0.0, 1),
    "just the budget, best of all": (([0.2, 0.7], [0.1, 0.5], 0.5), 0.7, (1,), 0.0, 0.7, 1),
    "just the budget, on a corner": (([0.1, 0.7, 0.8], [0.25, 0.5, 1.0], 0.5), 0.7, (1,), 0.2, 0.6, 3),
    "collinear": (([0.4, 0.6, 0.8], [0.0, 0.5, 1.0], 0.25), 0.5, (2, 0), 0.4, 0.4, 3),
}


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_problems(name):
    (rewards, costs, budget), value, base, price, level, case = DEGENERATE[name]
    found = assert_optimal(np.array(rewards), np.array(costs), budget)
    assert_documented_shape(found, np.array(rewards), np.array(costs), budget)
    assert found.value == pytest.approx(value)
    assert (found.base, found.case) == (base, case)
    assert found.price == pytest.approx(price, abs=ROUNDING)
    assert found.level == pytest.approx(level, abs=ROUNDING)


def test_three_arms_of_the_paper():
    best = play.THREE_ARMS.optimum
    assert best.value == pytest.approx(0.59)
    assert best.base == (2, 0)
    assert best.mix == pytest.approx([0.6, 0.0, 0.4, 0.0])
    assert best.case == 3


def test_eight_arms_of_the_paper():
    best = play.EIGHT_ARMS.optimum
    assert best.value == pytest.approx(0.65)
    assert best.base == (5, 1)
    assert best.mix[5] == pytest.approx(4 / 9)
    assert best.price == pytest.approx(1.0)
    assert best.level == pytest.approx(0.15)
    assert best.case == 3


def test_runner_up_on_the_eight_arms_of_the_paper_is_close():
    problem = play.EIGHT_ARMS
    bases = naive.all_bases(problem.reward_means, problem.cost_means, problem.budget)
    best, second = sorted((float(base.value) for base in bases), reverse=True)[:2]
    assert best == pytest.approx(0.65)
    assert best - second == pytest.approx(0.005)

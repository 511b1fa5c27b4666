"""The guard keeps the promise against every policy and every cost, and refuses no pull without need."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from paceline.checks import MOST_ROUNDS
from paceline.kernels.budget import (
    UNITS,
    close_round,
    line_units,
    lowest_headroom,
    new_clock,
    open_round,
    settle,
    spent,
    units_for,
)
from paceline.kernels.jit import kernel

UNIT = Fraction(1, UNITS)

extreme_costs = st.sampled_from([0.0, 1.0, 5e-324, 1 - 2**-53, 2**-32, 2**-33, 0.1])
costs = extreme_costs | st.floats(0, 1)
budgets = st.sampled_from([0.1, 0.3, 0.29, 1 / 3, 2**-40, 1.0, 0.5, 5e-324]) | st.floats(0, 1, exclude_min=True)
# A round: how many rounds without a request come before it, and the cost of a pull if one is asked for.
pauses = st.sampled_from([0, 0, 0, 1, 10, 10**6]) | st.integers(0, 10**7)
rounds = st.tuples(pauses, st.none() | costs)


def pause(clock, count):
    """Rounds in which nothing is asked for: only time passes."""
    clock.t += count


@settings(max_examples=300)
@given(budget=budgets, path=st.lists(rounds, max_size=60))
@example(budget=1.0, path=[(0, 1.0)] * 50)
@example(budget=0.1, path=[(0, 1.0)] * 50)
@example(budget=0.3, path=[(0, 1 - 2**-53)] * 50)
@example(budget=1 / 3, path=[(0, 1 / 3)] * 50)
@example(budget=0.29, path=[(0, 0.29)] * 50)
@example(budget=2**-40, path=[(2**30, 1.0)])
@example(budget=1.0, path=[(MOST_ROUNDS - 2, 1.0), (0, 1.0)])
def test_never_overspends_and_never_refuses_without_need(budget, path):
    clock = new_clock(budget, seed=0, stream=0)
    rate, paid, pulls = Fraction(budget), Fraction(0), 0
    for count, cost in path:
        pause(clock, count)
        allowed = open_round(clock)
        t = int(clock.t)
        # Each cost is rounded up by less than a unit, the line down by less than a unit, the rate by 2**-63 a round.
        worst_rounding = (pulls + 1) * UNIT + t * Fraction(1, 2**63)
        headroom = rate * t - paid
        if headroom >= 1 + worst_rounding:
            assert allowed
        if headroom < 1:
            assert not allowed
        assert float(headroom - worst_rounding) <= clock.headroom <= float(headroom)
        if allowed and cost is not None:
            settle(clock, 0, units_for(cost))
            paid += Fraction(cost)
            pulls += 1
        close_round(clock)
        assert paid <= rate * t
        assert spent(clock) <= budget * t
        assert Fraction(spent(clock)) >= paid - t * Fraction(
            1, 2**53
        )  # what is reported is not less than what was paid
        assert lowest_headroom(clock) >= 0.0


@settings(max_examples=500)
@given(budget=budgets | st.floats(0, 2**-10, exclude_min=True), t=st.integers(1, MOST_ROUNDS))
@example(budget=0.0003, t=MOST_ROUNDS)
def test_the_line_is_rounded_down_and_not_far(budget, t):
    clock = new_clock(budget, seed=0, stream=0)
    pause(clock, t)
    exact = Fraction(budget) * t / UNIT
    assert exact - 1 - Fraction(t, 2**31) < line_units(clock) <= exact
    if budget >= 2**-10:
        assert line_units(clock) == exact // 1


@pytest.mark.parametrize(("budget", "expected"), [(0.5, [2, 4, 6, 8, 10, 12]), (0.25, [4, 8, 12]), (1.0, range(1, 13))])
def test_with_the_largest_costs_a_pull_comes_as_soon_as_it_is_earned(budget, expected):
    clock = new_clock(budget, seed=0, stream=0)
    pulled = []
    for t in range(1, 13):
        if open_round(clock):
            settle(clock, 0, units_for(1.0))
            pulled.append(t)
    assert pulled == list(expected)


@pytest.mark.parametrize(("budget", "first"), [(0.1, 10), (0.2, 5), (0.29, 4), (0.3, 4), (1 / 3, 4), (2**-20, 2**20)])
def test_first_pull(budget, first):
    # 1/3 as a float is below 1/3, so three rounds do not quite bring 1.
    clock = new_clock(budget, seed=0, stream=0)
    pause(clock, first - 2)
    assert not open_round(clock)
    assert open_round(clock)


def test_lowest_headroom_is_that_of_the_closest_round():
    clock = new_clock(0.5, seed=0, stream=0)
    for cost in (None, 0.75, None, None, 0.25):  # leaves 0.5, 0.25, 0.75, 1.25, 1.5
        open_round(clock)
        if cost is not None:
            settle(clock, 0, units_for(cost))
        close_round(clock)
    assert lowest_headroom(clock) == 0.25


@kernel
def pull_whenever_allowed(clock, cost, rounds):
    """How often a pull of constant cost is allowed."""
    pulls = 0
    for _ in range(rounds):
        if open_round(clock):
            settle(clock, 0, units_for(cost))
            pulls += 1
        close_round(clock)
    return pulls


@pytest.mark.parametrize("budget", [0.05, 0.07, 0.0999])
def test_millions_of_rounds_are_counted_to_the_unit(budget):
    clock, cost, length = new_clock(budget, seed=0, stream=0), 0.1, 5_000_000
    pulls = pull_whenever_allowed(clock, cost, length)
    charged = -(-Fraction(cost) // UNIT)
    line = Fraction(budget) * length // UNIT
    assert clock.spent_units == pulls * charged
    # Money comes in more slowly than a pull a round uses it up, so every pull is made as soon as it is earned.
    assert pulls == (line - UNITS) // charged + 1
    assert pulls * Fraction(cost) <= Fraction(budget) * length
    assert lowest_headroom(clock) >= 0.0


def test_the_longest_run_does_not_overflow():
    clock = new_clock(1.0, seed=0, stream=0)
    clock.spent_units = (MOST_ROUNDS - 1) * UNITS
    pause(clock, MOST_ROUNDS - 1)
    assert open_round(clock)
    settle(clock, 0, units_for(1.0))
    close_round(clock)
    assert clock.spent_units == MOST_ROUNDS * UNITS <= np.iinfo(np.int64).max
    assert lowest_headroom(clock) == 0.0

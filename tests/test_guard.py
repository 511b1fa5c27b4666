"""The guard keeps the promise against every policy and every cost, and refuses no pull without need."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from paceline.checks import MOST_ROUNDS
from paceline.kernels.budget import UNITS, Books, close_round, line_units, open_round, settle
from paceline.kernels.jit import kernel
from paceline.kernels.state import State, books_in, state_in
from paceline.policies.policy import Setting
from paceline.policies.uniform import Uniform

UNIT = Fraction(1, UNITS)
ARM, ONE_RESOURCE = 0, (0,)

extreme_costs = st.sampled_from([0.0, 1.0, 5e-324, 1 - 2**-53, 2**-32, 2**-33, 0.1])
costs = extreme_costs | st.floats(0, 1)
budgets = st.sampled_from([0.1, 0.3, 0.29, 1 / 3, 2**-40, 1.0, 0.5, 5e-324]) | st.floats(0, 1, exclude_min=True)
# A round: how many rounds without a request come before it, and the cost of a pull if one is asked for.
pauses = st.sampled_from([0, 0, 0, 1, 10, 10**6]) | st.integers(0, 10**7)
rounds = st.tuples(pauses, st.none() | costs)


class Account:
    """The guard of one resource, without a policy: books, and the copies that a policy would be shown."""

    def __init__(self, budget: float) -> None:
        storage = Uniform().new_storage(Setting(arms=1, rates=(budget,)), seed=0, stream=0)
        self.books: Books = books_in(storage)
        self.state: State = state_in(storage)

    def pause(self, count: int) -> None:
        """Rounds in which nothing is asked for: only time passes."""
        self.books.tally.t += count

    def open(self) -> bool:
        """Begin a round: may a pull be made?"""
        return open_round(self.books, ONE_RESOURCE, self.state.rate, self.state.headroom, self.state.planned)

    def pay(self, cost: float) -> None:
        """A pull whose cost is known at once, so that nothing need be reserved."""
        self.books.cost[0] = cost
        self.books.reserved[0] += self.books.largest[ARM, 0]
        settle(self.books, ONE_RESOURCE, ARM)

    def close(self) -> None:
        close_round(self.books, ONE_RESOURCE)

    @property
    def t(self) -> int:
        return int(self.books.tally.t)

    @property
    def line(self) -> int:
        """In units."""
        return line_units(self.books, 0)

    @property
    def spent(self) -> float:
        return self.books.spent[0] / UNITS

    @property
    def lowest(self) -> float:
        return self.books.lowest[0] / UNITS

    @property
    def headroom(self) -> float:
        return float(self.state.headroom[0])


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
    account = Account(budget)
    rate, paid, pulls = Fraction(budget), Fraction(0), 0
    for count, cost in path:
        account.pause(count)
        allowed = account.open()
        t = account.t
        # Each cost is rounded up by less than a unit, the line down by less than a unit, the rate by 2**-63 a round.
        worst_rounding = (pulls + 1) * UNIT + t * Fraction(1, 2**63)
        headroom = rate * t - paid
        if headroom >= 1 + worst_rounding:
            assert allowed
        if headroom < 1:
            assert not allowed
        assert float(headroom - worst_rounding) <= account.headroom <= float(headroom)
        if allowed and cost is not None:
            account.pay(cost)
            paid += Fraction(cost)
            pulls += 1
        account.close()
        assert paid <= rate * t
        assert account.spent <= budget * t
        # What is reported is not less than what was paid.
        assert Fraction(account.spent) >= paid - t * Fraction(1, 2**53)
        assert account.lowest >= 0.0
        assert account.books.reserved[0] == 0


@settings(max_examples=500)
@given(budget=budgets | st.floats(0, 2**-10, exclude_min=True), t=st.integers(1, MOST_ROUNDS))
@example(budget=0.0003, t=MOST_ROUNDS)
def test_the_line_is_rounded_down_and_not_far(budget, t):
    account = Account(budget)
    account.pause(t)
    exact = Fraction(budget) * t / UNIT
    assert exact - 1 - Fraction(t, 2**31) < account.line <= exact
    if budget >= 2**-10:
        assert account.line == exact // 1


@pytest.mark.parametrize(("budget", "expected"), [(0.5, [2, 4, 6, 8, 10, 12]), (0.25, [4, 8, 12]), (1.0, range(1, 13))])
def test_with_the_largest_costs_a_pull_comes_as_soon_as_it_is_earned(budget, expected):
    account = Account(budget)
    pulled = []
    for t in range(1, 13):
        if account.open():
            account.pay(1.0)
            pulled.append(t)
    assert pulled == list(expected)


@pytest.mark.parametrize(("budget", "first"), [(0.1, 10), (0.2, 5), (0.29, 4), (0.3, 4), (1 / 3, 4), (2**-20, 2**20)])
def test_first_pull(budget, first):
    # 1/3 as a float is below 1/3, so three rounds do not quite bring 1.
    account = Account(budget)
    account.pause(first - 2)
    assert not account.open()
    assert account.open()


def test_lowest_headroom_is_that_of_the_closest_round():
    account = Account(0.5)
    for cost in (None, 0.75, None, None, 0.25):  # leaves 0.5, 0.25, 0.75, 1.25, 1.5
        account.open()
        if cost is not None:
            account.pay(cost)
        account.close()
    assert account.lowest == 0.25


@kernel
def pull_whenever_allowed(books, resources, rate, headroom, planned, cost, rounds):
    """How often a pull of constant cost is allowed."""
    pulls = 0
    for _ in range(rounds):
        if open_round(books, resources, rate, headroom, planned):
            books.cost[0] = cost
            books.reserved[0] += books.largest[0, 0]
            settle(books, resources, 0)
            pulls += 1
        close_round(books, resources)
    return pulls


@pytest.mark.parametrize("budget", [0.05, 0.07, 0.0999])
def test_millions_of_rounds_are_counted_to_the_unit(budget):
    account, cost, length = Account(budget), 0.1, 5_000_000
    copies = account.state.rate, account.state.headroom, account.state.planned
    pulls = pull_whenever_allowed(account.books, ONE_RESOURCE, *copies, cost, length)
    charged = -(-Fraction(cost) // UNIT)
    line = Fraction(budget) * length // UNIT
    assert account.books.spent[0] == pulls * charged
    # Money comes in more slowly than a pull a round uses it up, so every pull is made as soon as it is earned.
    assert pulls == (line - UNITS) // charged + 1
    assert pulls * Fraction(cost) <= Fraction(budget) * length
    assert account.lowest >= 0.0


def test_the_longest_run_does_not_overflow():
    account = Account(1.0)
    account.books.spent[0] = (MOST_ROUNDS - 1) * UNITS
    account.pause(MOST_ROUNDS - 1)
    assert account.open()
    account.pay(1.0)
    account.close()
    assert account.books.spent[0] == MOST_ROUNDS * UNITS <= np.iinfo(np.int64).max
    assert account.lowest == 0.0

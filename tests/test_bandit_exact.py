"""Numbers that no float holds: a cost counts as no less than it is, income as no more, from the exact value on."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from bookkeeper import state_of

from paceline import Bandit, InvalidValue

BIG = 2.0**54
A_BIT_MORE = Fraction(1, 2) + Fraction(1, 2**80)
LONG = np.longdouble(1) / np.longdouble(3)
NUMBERS = {
    "an integer": (2**53 + 1, BIG),
    "an integer of numpy": (np.int64(2**54 - 1), BIG),
    "a fraction": (A_BIT_MORE, 1.0),
    "a tiny fraction": (Fraction(1, 10**400), 1.0),
    "a long double": (LONG, 1.0),
    "a decimal that the next float is below": (Decimal("0.3"), 1.0),
    "a decimal that the next float is above": (Decimal("0.1"), 1.0),
}
every_number = pytest.mark.parametrize(("number", "most"), NUMBERS.values(), ids=NUMBERS)


def exactly(number) -> Fraction:
    """A number as it is."""
    if isinstance(number, np.integer):
        return Fraction(int(number))
    return Fraction(*map(int, number.as_integer_ratio())) if isinstance(number, np.floating) else Fraction(number)


def made(tmp_path, most: float = 1.0, **settings) -> Bandit:
    return Bandit(["a"], most, max_cost=most, journal=tmp_path / "journal", **settings)


def check_reopened(bandit: Bandit, tmp_path) -> None:
    """The journal says what was booked."""
    bandit.close()
    with Bandit.open(tmp_path / "journal") as reopened:
        assert state_of(reopened) == state_of(bandit)


@every_number
def test_a_cost_is_rounded_up_and_may_be_told_again(tmp_path, number, most):
    bandit = made(tmp_path, most)
    for _ in range(2):
        bandit.tell(bandit.ask().id, reward=0.5, cost=number)
        bandit.tell(bandit.rounds, reward=0.5, cost=number)
    assert Fraction(bandit.spent) >= 2 * exactly(number)
    bandit.tell(bandit.ask().id, cost=number)
    bandit.tell(bandit.rounds, cost=number)
    check_reopened(bandit, tmp_path)


@every_number
def test_income_is_rounded_down(tmp_path, number, most):
    bandit = made(tmp_path, most)
    if float(number) == 0.0:
        with pytest.raises(InvalidValue, match=r"\Acredit must be a finite number above 0, got Fraction\(1, 1"):
            bandit.credit(number)
    else:
        bandit.credit(number)
    assert Fraction(bandit.credited) <= exactly(number)
    check_reopened(bandit, tmp_path)
    stocked = Bandit(["a"], number, max_cost=most, scale=2 * most, start=number, cap=2 * most, rounds=10)
    assert Fraction(stocked.credited) <= exactly(number)
    stocked.ask()
    assert Fraction(stocked.credited) <= 2 * exactly(number)


@every_number
def test_a_largest_cost_covers_what_it_says(tmp_path, number, most):
    bandit = Bandit(["a"], most, max_cost=number)
    assert bandit.ask().arm == "a"
    assert Fraction(bandit.reserved) >= exactly(number)
    bandit.tell(1, reward=0.5, cost=number)
    assert Fraction(bandit.spent) >= exactly(number)


def set_all(bandit, number):
    bandit.set(max_cost=number)


def set_one(bandit, number):
    bandit.set(max_cost={"a": number})


@every_number
@pytest.mark.parametrize("change", [set_all, set_one])
def test_a_largest_cost_that_is_set_covers_what_it_says(tmp_path, number, most, change):
    bandit = made(tmp_path, most)
    change(bandit, number)
    assert bandit.ask().arm == "a"
    assert Fraction(bandit.reserved) >= exactly(number)
    bandit.tell(1, reward=0.5, cost=number)
    assert Fraction(bandit.spent) >= exactly(number)
    check_reopened(bandit, tmp_path)


@every_number
def test_income_that_is_set_is_rounded_down(tmp_path, number, most):
    time = [0.0]
    bandit = made(tmp_path, most, cap=10 * most, clock=lambda: time[0])
    bandit.set(budget=number)
    bandit.ask()
    assert Fraction(bandit.budget) <= exactly(number)
    assert Fraction(bandit.credited) <= exactly(number)
    bandit.set(budget=0.0, hourly=number)
    before, time[0] = Fraction(bandit.credited), 3600.0
    bandit.ask()
    assert Fraction(bandit.credited) - before <= exactly(number)
    check_reopened(bandit, tmp_path)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.longdouble, np.int64, Fraction, Decimal])
def test_an_array_without_dimensions_is_the_number_in_it(tmp_path, kind):
    bandit = made(tmp_path)
    one, none = np.array(kind(1)), np.array(kind(0))
    bandit.set(max_cost=one)
    bandit.credit(one)
    bandit.observe("a", one, none)
    bandit.tell(bandit.ask().id, reward=one, cost=none)
    bandit.tell(bandit.ask().id, reward=np.array(True), cost=one)
    bandit.tell(2, reward=1.0, cost=1.0)
    assert (bandit.earned, bandit.spent, bandit.credited) == (2.0, 1.0, 3.0)
    bandit.ask()
    for several in (np.array([0.5]), np.array("0.5"), np.array(0, "datetime64[ns]")):
        with pytest.raises(InvalidValue, match=r"\Acost of decision 3 \(a\) must be a number, got array"):
            bandit.tell(3, cost=several)
    check_reopened(bandit, tmp_path)


TOO_MUCH = [(2**53 + 1, 2.0**53), (A_BIT_MORE, 0.5), (np.longdouble(1) + np.finfo(np.longdouble).eps, 1.0)]


@pytest.mark.parametrize(("number", "most"), TOO_MUCH, ids=["an integer", "a fraction", "a long double"])
def test_a_cost_just_above_the_largest_is_refused(tmp_path, number, most):
    bandit = made(tmp_path, most)
    bandit.ask()
    with pytest.raises(InvalidValue, match=r"\Acost of decision 1 \(a\) must be in \[0, [0-9.e+]+\], got .+\Z"):
        bandit.tell(1, cost=number)
    assert bandit.spent == 0.0
    check_reopened(bandit, tmp_path)


def pulled(bandit: Bandit, rounds: int) -> list:
    """The ids of what is pulled in so many rounds."""
    decisions = [bandit.ask() for _ in range(rounds)]
    return [decision.id for decision in decisions if decision.arm is not None]


@pytest.mark.parametrize("budget", [0.1, 1 / 3, 0.5])
@pytest.mark.parametrize("cap", [1.0, 2.0])
def test_a_stock_at_its_cap_pays_for_all_that_it_holds(cap, budget):
    """What was rounded off the line is lost at the cap: not as a unit of it, nor does it come back later."""
    bandit, rate = Bandit(["a"], budget=budget, cap=cap), Fraction(budget)
    ids = pulled(bandit, 100)
    assert len(ids) == cap
    for _ in range(20):
        bandit.ask()
        assert (bandit.reserved, bandit.headroom, bandit.status().overdrawn, bandit.credited) == (cap, 0.0, 0.0, cap)
    bandit.tell(ids[0], reward=1.0, cost=0.5)
    line = Fraction(cap)
    for _ in range(10):
        bandit.ask()
        line = min(line + rate, Fraction(cap) + Fraction(0.5))
        assert line - Fraction(1, 2**32) < Fraction(bandit.credited) <= line


def test_a_resource_with_little_income_keeps_it_while_another_is_at_its_cap():
    """Less than a unit a round would come to nothing if rates began anew with every round."""
    budget, largest = {"full": 0.1, "fine": 2.0**-33}, {"full": 1.5, "fine": 0.0}
    bandit = Bandit(["a"], budget=budget, cap={"full": 2.0}, max_cost=largest, scale={"fine": 1.0})
    assert len(pulled(bandit, 400)) == 1
    assert bandit.credited["fine"] == 200 * 2.0**-32
    assert 2.0 - 2.0**-31 <= bandit.credited["full"] <= 2.0  # a unit on a scale of 1.5

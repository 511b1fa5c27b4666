"""The rate that a policy paces by: the budget and what was credited per round, whatever else is in stock."""

from random import Random

import pytest

from paceline import Bandit
from paceline.live.income import roll_over

ROUNDS = 100
KINDS = {
    "a budget": ({"budget": 0.25}, 0.25),
    "a start stock": ({"budget": 0.25, "start": 50.0}, 0.25),
    "a start stock alone": ({"start": 50.0, "rounds": 1000}, 0.05),
    "a start stock after its rounds": ({"start": 50.0, "rounds": 70}, 50.0 / (ROUNDS + 1)),
    "a cap that much was lost at": ({"budget": 0.25, "start": 20.0, "cap": 20.0}, 0.25),
    "more before": ({"budget": 0.5, "start": 50.0}, 0.25),
}
every_kind = pytest.mark.parametrize(("settings", "rate"), KINDS.values(), ids=KINDS)


def played(settings):
    """A bandit after some rounds, in which little is spent; at last 10 are taken away without a word to the policy."""
    bandit = Bandit(["a"], policy="uniform", **settings)
    for number in range(ROUNDS):
        if number == ROUNDS // 2 and settings.get("budget") == 0.5:
            bandit.set(budget=0.25)
        decision = bandit.ask()
        if decision.arm is not None:
            bandit.tell(decision.id, reward=0.5, cost=0.0625)
    bandit.debit(10.0, rate=False)
    return bandit


def rate_of(bandit):
    """What the policy is shown in the next round."""
    bandit.cancel(bandit.ask().id)
    return float(bandit._ledger.arm_set.full.rate[0])


@every_kind
@pytest.mark.parametrize("change", [0.0, 1e-6, -1e-6, 5.0, -2.0])
def test_a_credit_or_debit_changes_the_rate_by_its_share_of_the_rounds(settings, rate, change):
    bandit = played(settings)
    if change > 0.0:
        bandit.credit(change)
    elif change < 0.0:
        bandit.debit(-change)
    assert rate_of(bandit) == pytest.approx(rate + change / (ROUNDS + 1), abs=1e-9)
    roll_over(bandit._ledger)  # which is none of the policy's business
    assert rate_of(bandit) == pytest.approx(rate_later(settings, rate) + change / (ROUNDS + 2), abs=1e-9)


def rate_later(settings, rate):
    """The same a round later."""
    return rate * (ROUNDS + 1) / (ROUNDS + 2) if settings.get("rounds") == 70 else rate


@every_kind
def test_what_is_credited_and_taken_away_again_leaves_the_rate_as_it_was(settings, rate):
    bandit = played(settings)
    bandit.credit(5.0)
    assert rate_of(bandit) > rate
    bandit.debit(5.0)
    assert rate_of(bandit) == pytest.approx(rate_later(settings, rate), abs=1e-9)


@pytest.mark.parametrize("over", [0, 10])
def test_what_is_lost_at_a_cap_is_no_income(over):
    bandit = Bandit(["a"], 0.25, "uniform", cap=2.0, start=2.0)
    bandit.credit(1000.0, over=over)
    for _ in range(20):
        assert rate_of(bandit) == 0.25
    assert bandit.status().lost == pytest.approx(1005.0)


@pytest.mark.parametrize("amount", [0.0, 1e-6])
def test_a_tiny_credit_changes_next_to_nothing(amount):
    chance, bandit = Random(1), Bandit(["a", "b", "c"], 0.2, "suak", start=300.0)
    for number in range(1000):
        if number == 100 and amount > 0.0:
            bandit.credit(amount)
        decision = bandit.ask()
        if decision.arm is not None:
            bandit.tell(decision.id, chance.random(), chance.random())
    assert 190.0 < bandit.spent < 210.0


@pytest.mark.parametrize("credit_first", [True, False])
def test_what_comes_in_over_some_rounds_may_make_up_for_what_was_taken_away(credit_first):
    """The rate is renewed in the round in which the last part comes, when nothing is left over to be told."""
    bandit = played({"budget": 0.25, "start": 50.0})
    changes = [lambda: bandit.credit(20.0, over=4), lambda: bandit.debit(20.0)]
    for change in changes if credit_first else reversed(changes):
        change()
        rate_of(bandit)
    for _ in range(4):
        rate_of(bandit)
    assert rate_of(bandit) == pytest.approx(0.25, abs=1e-9)

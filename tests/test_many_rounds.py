"""More rounds than the guard can count at once: the books are rolled over, and every unit stays where it was."""

import random

import pytest

from paceline import Bandit
from paceline.live import income
from paceline.live.income import MOST_AT_A_RATE
from paceline.live.snapshot import describe_ledger

RATE = 2**31  # units per round: half of the largest cost, without a part of a unit
COST = 2**30  # units of each pull


def pretend(bandit, rounds, spent):
    """As if so many rounds had passed, in which so many units were spent; the books are about to be rolled over."""
    ledger = bandit._ledger
    tally, books = ledger.arm_set.books.tally, ledger.arm_set.books
    ledger.rounds = tally.t = rounds
    tally.since = rounds + 20 - MOST_AT_A_RATE
    books.folded[0] = RATE * int(tally.since) - ledger.rolled[0] - int(books.credited[0])
    books.spent[0] = spent - ledger.rolled[0]
    ledger.turnout.marks.append((rounds, ledger.turnout.sat_out()))
    ledger.renew_stop()


def play(bandit, rounds, draws):
    """The pulls that were told of, each with the same cost, and those that were cancelled."""
    told = 0
    for _ in range(rounds):
        decision = bandit.ask()
        if decision.arm is not None and draws.random() < 0.7:
            bandit.tell(decision.id, reward=draws.random(), cost=0.25)
            told += 1
        elif decision.arm is not None:
            bandit.cancel(decision.id)
    return told


@pytest.mark.parametrize("policy", ["index", "suak", "thompson"])
def test_amounts_are_exact_beyond_all_limits_of_counting(tmp_path, policy):
    path, draws, clock = tmp_path / "journal", random.Random(0), lambda: 0.0
    bandit = Bandit(["a", "b"], 0.5, policy, journal=path, clock=clock)
    for rounds in (2**31 - 30, 2**32 - 30, 2**40, 2**50):
        spent = RATE * (rounds - 1000)
        bandit._ledger.rolled[0] = max(spent - RATE * (MOST_AT_A_RATE - 20), 0)  # as it would have been on the way
        pretend(bandit, rounds, spent)
        bandit.snapshot()
        before = bandit._ledger.rolled[0]
        spent += COST * play(bandit, 60, draws)
        assert bandit._ledger.rolled[0] > before, "it was not rolled over"
        for _ in range(2):
            ledger = bandit._ledger
            assert ledger.rounds == bandit.rounds == rounds + 60
            assert int(ledger.arm_set.books.spent[0]) + ledger.rolled[0] == spent
            assert ledger.line(0) + ledger.rolled[0] == RATE * ledger.rounds
            assert ledger.headroom(0) == RATE * ledger.rounds - spent
            assert bandit.credited == RATE * ledger.rounds / 2**32
            state = describe_ledger(ledger)
            bandit.close()
            bandit = Bandit.open(path, clock=clock)
            assert describe_ledger(bandit._ledger) == state
    bandit.close()


SETTINGS = [
    {"budget": 0.4},
    {"budget": 0.45, "cap": 3.0, "max_refill": 0.5},
    {"budget": 0.1, "hourly": 2000.0, "cap": 5.0, "period": 60.0},
    {"budget": {"money": 0.3, "energy": 0.6}, "cap": {"energy": 2.0, "money": 1000.0}},
]


# What was lost before the first paced credit is not in the rate any more once it was rolled over.
STORIES = [
    (setting, paced, most_lost)
    for setting in SETTINGS
    for paced in (True, False)
    for most_lost in (2**61, 2**30)
    if not (paced and "cap" in setting and most_lost == 2**30)
]


@pytest.mark.parametrize(("setting", "paced", "most_lost"), STORIES)
def test_rolling_over_again_and_again_changes_nothing(setting, paced, most_lost, monkeypatch):
    """Parts of a unit are the exception: those that were not counted yet are lost, so rates are whole units here."""

    monkeypatch.setattr(income, "MOST_LOST", most_lost)

    def story(most):
        monkeypatch.setattr(income, "MOST_AT_A_RATE", most)
        draws, now = random.Random(1), [0.0]
        names = [*setting["budget"]] if isinstance(setting["budget"], dict) else None
        rates = setting["budget"] if names else {"": setting["budget"]}
        whole = {name: round(rate * 2**10) / 2**10 for name, rate in rates.items()}
        bandit = Bandit(
            ["a", "b"], **{**setting, "budget": whole if names else whole[""]}, policy="index", clock=lambda: now[0]
        )
        found = []
        for number in range(600):
            now[0] += draws.random()
            decision = bandit.ask()
            if decision.arm is not None:
                cost = draws.random() - (0.5 if "max_refill" in setting else 0.0)
                bandit.tell(decision.id, draws.random(), {name: draws.random() for name in names} if names else cost)
            if number % 97 == 50:
                bandit.credit(dict.fromkeys(names, 0.5) if names else 0.5, rate=paced)
            status = bandit.status()
            found.append((decision, status.credited, status.spent, status.headroom, status.lost))
        return found, bandit._ledger.rolled

    (steady, none), (rolled, some) = story(2**30), story(31)
    assert not any(none)
    assert all(units > 0 for units in some)
    assert rolled == steady

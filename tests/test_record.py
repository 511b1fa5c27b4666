"""What has become of a decision, and how long decisions have waited."""

import pytest

import paceline as pl


def test_a_decision_is_known_from_ask_to_the_end_of_memory():
    now = [100.0]
    bandit = pl.Bandit(["a"], {"money": 1.0, "calls": 1.0}, expires=60, clock=lambda: now[0])
    one, two, three = (bandit.ask().id for _ in range(3))
    unknown = {"money": None, "calls": None}
    assert bandit.look_up(one) == ("pending", None, unknown, "a", 100.0, 160.0)
    bandit.tell(one, cost={"money": 0.25})
    assert bandit.look_up(one)[:3] == ("pending", None, {"money": 0.25, "calls": None})
    now[0] = 161.0
    bandit.expire(one)
    assert bandit.look_up(one).state == "expired"
    bandit.tell(two, reward=1.0, cost={"money": 0.5, "calls": 1.0})
    assert bandit.look_up(two)[:3] == ("told", 1.0, {"money": 0.5, "calls": 1.0})
    bandit.cancel(three)
    assert bandit.look_up(three)[:3] == ("cancelled", None, unknown)
    with pytest.raises(pl.UnknownName, match="from 1 to 3, got 9"):
        bandit.look_up(9)


def test_a_settled_decision_is_forgotten_in_the_end():
    bandit = pl.Bandit(["a"], 1.0, remember=1)
    one, two = bandit.ask().id, bandit.ask().id
    bandit.cancel(one)
    bandit.cancel(two)
    assert bandit.look_up(two).state == "cancelled"
    with pytest.raises(pl.UnknownName, match="decision 1 is not open"):
        bandit.look_up(one)


def test_looking_lets_nothing_expire():
    now = [0.0]
    bandit = pl.Bandit(["a"], 1.0, expires=60, clock=lambda: now[0])
    id = bandit.ask().id
    now[0] = 1000.0
    assert bandit.look_up(id).state == "pending"
    assert (bandit.spent, bandit.reserved) == (0.0, 1.0)


def test_ages_are_counted_by_how_long_decisions_have_waited():
    now = [0.0]
    bandit = pl.Bandit(["a"], 1.0, clock=lambda: now[0])
    for time in (0.0, 99_000.0, 99_990.0, 99_995.0, 99_999.5):
        now[0] = time
        bandit.ask()
    now[0] = 100_000.0
    counts = bandit.status().ages.counts
    assert counts == {"1 s": 1, "10 s": 1, "1 min": 1, "10 min": 0, "1 h": 1, "1 day": 0, "longer": 1}
    now[0] = -5.0  # a clock that was set back
    assert bandit.status().ages.counts["1 s"] == 5

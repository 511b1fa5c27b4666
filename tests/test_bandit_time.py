"""Times and time spans: what no clock shows is refused, and hours are paid once."""

import math
import time
from decimal import Decimal

import pytest
from bookkeeper import unchanged

from paceline import Bandit, InvalidValue


@pytest.mark.parametrize("thing", ["expires", "period"])
@pytest.mark.parametrize("seconds", [1e308, 1.1e11, 0.0, -1.0])
def test_a_span_that_was_meant_otherwise_is_refused(thing, seconds, tmp_path):
    rule = rf"{thing} must be in \(0, 1e\+11\], got "
    with pytest.raises(InvalidValue, match=rule):
        Bandit(["a"], **{thing: seconds})
    with Bandit(["a"], budget=1.0, journal=tmp_path / "journal") as bandit:
        with unchanged(bandit), pytest.raises(InvalidValue, match=rule):
            bandit.set(**{thing: seconds})
        if thing == "expires":
            with unchanged(bandit), pytest.raises(InvalidValue, match=rule):
                bandit.ask(expires=seconds)
    with Bandit.open(tmp_path / "journal") as bandit:
        assert bandit.ask(expires=Decimal(60)).arm == "a"


def test_a_clock_in_nanoseconds_is_refused():
    bandit = Bandit(["a"], budget=1.0, clock=time.time_ns)
    with pytest.raises(InvalidValue, match=r"the time that clock gives must be in seconds, below 1e\+11, got \d{19}"):
        bandit.ask()
    assert bandit.rounds == 0


def test_a_clock_in_the_place_of_the_usual_one_counts(monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 1000.0)
    bandit = Bandit(["a"], budget=1.0, clock=time.time)
    bandit.ask()
    assert bandit.status().time == 1000.0


@pytest.mark.parametrize("now", [math.nan, math.inf, "noon", None])
def test_a_clock_that_gives_no_number_is_refused(now):
    bandit = Bandit(["a"], budget=1.0, clock=lambda: now)
    with pytest.raises(InvalidValue, match=f"the time that clock gives must be a finite number, got {now!r}"):
        bandit.ask()
    assert bandit.rounds == 0


def test_hours_are_paid_once_though_the_clock_is_set_back_while_they_bring_nothing():
    now = [0.0]
    bandit = Bandit(["a"], hourly=3600.0, cap=1e6, clock=lambda: now[0])

    def at(seconds):
        now[0] = seconds
        bandit.ask()
        return bandit.credited

    assert (at(0.0), at(100.0)) == (0.0, 100.0)
    bandit.set(hourly=0.0)
    assert (at(120.0), at(0.0)) == (100.0, 100.0)
    bandit.set(hourly=3600.0)
    assert (at(0.0), at(100.0), at(110.0)) == (100.0, 100.0, 110.0)

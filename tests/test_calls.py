"""One program, whatever it decides with: a Bandit, a member of a fleet, or a bandit behind a service."""

import asyncio
import inspect
from contextlib import contextmanager

import pytest
from service import serving

import paceline as pl
from paceline.fleet.member import Member
from paceline.service.client import RemoteBandit

SETTINGS = {"arms": ["banner", "video", "text"], "budget": 1.0, "seed": 7}
COSTS = {"money": 0.25, "calls": 1.0}
SEVERAL = {
    "arms": ["banner", "video"],
    "budget": {"money": 0.5, "calls": 1.0},
    "max_cost": {"money": {"banner": 0.5, "video": 1.0}, "calls": 1.0},
}

# What a Bandit does with files and with money that leaves cannot be done from afar, or to a whole fleet.
OF_ONE_ALONE = {"debit", "events", "load", "merge", "open", "report", "save", "snapshot", "stop_in_copy", "sync"}
CALLS = sorted(name for name in dir(pl.Bandit) if not name.startswith("_") and name not in OF_ONE_ALONE)


@contextmanager
def alone(_folder, **settings):
    yield pl.Bandit(**settings)


@contextmanager
def joined(folder, **settings):
    with pl.join(f"sqlite:///{folder}/ads.db", "ads", **settings) as member:
        yield member


@contextmanager
def connected(folder, **settings):
    with serving(folder) as process, pl.connect(process.address, "ads", deadline=30.0) as remote:
        remote._call("PUT", "", settings)
        yield remote


WAYS = pytest.mark.parametrize("way", [alone, joined, pytest.param(connected, marks=pytest.mark.slow)])


def pull(bandit, **options):
    while (decision := bandit.ask(**options)).arm is None:
        pass
    return decision


@WAYS
def test_a_program_written_for_one_works_with_the_others(way, tmp_path):
    with way(tmp_path, **SETTINGS) as bandit:
        told, parts, cancelled, expired, still_open = [pull(bandit) for _ in range(5)]
        assert all(isinstance(each, pl.Decision) and isinstance(each.reason, str) for each in (told, parts, cancelled))
        bandit.tell(told.id, 1.0, 0.25)
        bandit.tell(told.id, reward=1.0, cost=0.25)  # the same again
        bandit.tell(parts.id, cost=0.5)
        bandit.tell(parts.id, reward=True)
        bandit.cancel(cancelled.id)
        bandit.expire(expired.id)
        bandit.observe("text", reward=0.5, cost=0.25)

        assert (bandit.spent, bandit.reserved, bandit.earned) == (1.75, 1.0, 2.0)
        assert bandit.rounds >= 5
        assert bandit.credited == pytest.approx(bandit.rounds)
        assert bandit.headroom == pytest.approx(bandit.credited - 2.75)
        assert (bandit.budget, bandit.held) == (1.0, 0.0)
        assert bandit.arms == dict.fromkeys(SETTINGS["arms"], "active")
        assert bandit.pending == {expired.id: expired.arm, still_open.id: still_open.arm}
        assert bandit.expired == [expired.id]
        assert isinstance(bandit.price, float)
        assert sum(bandit.mix().values()) == pytest.approx(1.0)
        assert all(isinstance(each, type(pl.Bandit(["a"]).estimates()["a"])) for each in bandit.estimates().values())
        assert sum(each.pulls for each in bandit.estimates().values()) == 3

        status = bandit.status()
        assert isinstance(status, pl.Status)
        seen = ("rounds", "credited", "spent", "reserved", "headroom", "earned", "held")
        assert [getattr(status, name) for name in seen] == [getattr(bandit, name) for name in seen]
        assert (status.pending, status.expired, status.starving, status.policy) == (2, 1, None, "index")
        assert status.arms[still_open.arm].pending >= 1
        assert pl.prometheus_text({"ads": status}).startswith("#")

        states = [bandit.look_up(each.id).state for each in (told, parts, cancelled, expired, still_open)]
        assert states == ["told", "told", "cancelled", "expired", "pending"]
        assert bandit.look_up(parts.id)[1:3] == (1.0, 0.5)
        with pytest.raises(pl.UnknownName):
            bandit.look_up("nobody-1")


@WAYS
def test_requests_and_settings(way, tmp_path):
    with way(tmp_path, **SETTINGS) as bandit:
        first = bandit.ask(60.0, arms=["video"], max_cost={"video": 0.125}, key="request-1")
        assert bandit.ask(60.0, arms=["video"], max_cost={"video": 0.125}, key="request-1") == first
        assert (first.arm, bandit.reserved) == ("video", 0.125)
        bandit.credit(5.0)
        bandit.add("story", 0.5)
        bandit.pause("text")
        bandit.retire("banner")
        bandit.set(budget=0.25, expires=3600.0, policy="thompson")
        assert bandit.arms == {"banner": "retired", "video": "active", "text": "paused", "story": "active"}
        bandit.resume("text")
        assert (bandit.arms["text"], bandit.budget, bandit.status().policy) == ("active", 0.25, "thompson")
        assert bandit.headroom == pytest.approx(bandit.credited - 0.125)
        assert bandit.credited > bandit.rounds
        with pytest.raises(pl.UnknownName):
            bandit.pause("nobody")
        assert bandit.ask(arms=[]).arm is None
        with pytest.raises(pl.InvalidValue):
            bandit.tell(first.id)

        async def play():
            while (decision := await bandit.aask(arms=["story"])).arm is None:
                pass  # the draws of a member are those of its life, and some say to sit out
            await bandit.atell(decision.id, reward=0.5, cost=0.25)
            return decision

        assert asyncio.run(play()).arm == "story"
        assert bandit.spent == 0.25


@WAYS
def test_several_resources(way, tmp_path):
    with way(tmp_path, **SEVERAL) as bandit:
        decision = pull(bandit)
        bandit.tell(decision.id, reward=1.0, cost={"calls": 1.0})
        bandit.tell(decision.id, cost={"money": 0.25})
        assert bandit.spent == COSTS
        assert bandit.status().spent == COSTS
        assert bandit.look_up(decision.id).cost == COSTS
        assert bandit.headroom == pytest.approx({name: bandit.credited[name] - COSTS[name] for name in COSTS})
        assert set(bandit.price) == set(bandit.estimates()[decision.arm].cost) == set(COSTS)


@pytest.mark.parametrize("kind", [Member, RemoteBandit])
@pytest.mark.parametrize("name", CALLS)
def test_a_call_takes_what_that_of_a_bandit_takes(kind, name):
    """It may take more; ``period`` is of a bandit that sees all the traffic, and not of a service."""
    wanted, given = getattr(pl.Bandit, name), getattr(kind, name)
    assert callable(wanted) == callable(given)
    if callable(wanted):
        taken = inspect.signature(given).parameters
        for each in inspect.signature(wanted).parameters.values():
            if (kind, name, each.name) != (RemoteBandit, "set", "period"):
                assert (taken[each.name].kind, taken[each.name].default) == (each.kind, each.default), each.name

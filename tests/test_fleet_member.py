"""Members of a fleet: the calls of a Bandit, one budget, shared learning; forks, threads, outages and restarts."""

import gc
import json
import multiprocessing
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress
from unittest.mock import Mock

import pytest
from flaky import flaky
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import paceline as pl
from paceline.errors import Conflict, FleetExists, StoreFailed, UnknownFleet
from paceline.fleet import process as here
from paceline.fleet import worker as module
from paceline.fleet.sqlite import SQLiteStore
from paceline.live.verify import Examination

SETTINGS = {"arms": ["a", "b", "c"], "budget": 0.5}
UNIT = 2**32


@pytest.fixture
def store(tmp_path):
    with SQLiteStore(tmp_path / "fleet.db") as store:
        yield store


@pytest.fixture(autouse=True)
def _leave_nobody():
    yield
    forget_members()


def forget_members():
    """What a test has not closed is not to be handed back to a store that is gone by then."""
    for member in list(here.members()):
        member._is_left_open = False
    here.members().clear()
    here.left_open().clear()


def joined(store, name="ads", **options):
    """A member that exchanges by hand."""
    return pl.join(store, name, **{"sync_every": None, **options})


def play(member, rounds, seed=0, reward=0.5):
    """Some rounds whose outcomes are told at once."""
    draws = random.Random(seed)
    for _ in range(rounds):
        decision = member.ask()
        if decision.arm is not None:
            member.tell(decision.id, reward=draws.random() * reward, cost=draws.random())


def pull(member):
    """A decision with an arm."""
    for _ in range(1000):
        decision = member.ask()
        if decision.arm is not None:
            return decision
    raise AssertionError("nothing is pulled")


def pulls(bandit):
    return {name: arm.pulls for name, arm in bandit.estimates().items()}


def check_books(store, members, fleet="ads"):
    """The promise, exactly: what living members have spent and reserved, and the past, against what has come in.

    After an overrun a member that has not closed may owe, and the pool may be below 0. The past owes nothing.
    """
    account = store.account(fleet)
    for d in range(len(account.pool)):
        used, minted = account.past.spent[d] + account.past.reserved[d], account.past.minted[d]
        assert used <= minted + account.past.granted[d] - account.past.returned[d]
        for member in members:
            ledger, standing = member._ledger, member._standing
            books = ledger.arm_set.books
            mine = int(books.spent[d]) + ledger.rolled[d] + int(books.reserved[d])
            line = ledger.line(d) + ledger.rolled[d]
            owed = max(mine - line, 0)
            assert owed <= ledger.overrun[d]
            mine -= owed
            used, minted = used + mine, minted + line - standing.granted[d] + standing.returned[d]
        assert used <= minted + account.income[d] - account.pool[d]


# As a Bandit.


def test_a_member_alone_decides_as_a_bandit(store):
    member, bandit = joined(store, **SETTINGS), pl.Bandit(**SETTINGS)
    for number in range(300):
        one, other = member.ask(), bandit.ask()
        assert (one.arm, one.reason) == (other.arm, other.reason)
        if one.arm is not None:
            outcome = {"reward": number % 7 / 7, "cost": number % 5 / 5}
            member.tell(one.id, **outcome)
            bandit.tell(other.id, **outcome)
        if number % 50 == 0:
            member.sync()
    assert (member.spent, member.headroom, member.rounds) == (bandit.spent, bandit.headroom, bandit.rounds)
    assert member.status().rounds == 300


def test_ids_name_the_life_and_the_arm(store):
    member = joined(store, worker="web-1", **SETTINGS)
    decision = pull(member)
    life, _, rest = decision.id.rpartition("-")
    assert life.startswith("web-1.")
    assert rest.split(".")[1] == str(SETTINGS["arms"].index(decision.arm))
    assert member.pending == {decision.id: decision.arm}
    member.cancel(decision.id)
    assert member.pending == {}
    with pytest.raises(pl.UnknownName):
        member.tell("nobody", reward=1.0, cost=0.5)
    with pytest.raises(pl.UnknownName, match="must be that of a decision"):
        member.tell(f"{life}-99999.0", reward=1.0, cost=0.5)


def test_what_a_member_refuses(store):
    member = joined(store, **SETTINGS)
    calls = {
        "debit must be of a bandit of its own": lambda: member.debit(1.0),
        "reports must be merged by a bandit": lambda: member.merge({}),
        "must be at once": lambda: member.credit(1.0, over=5),
        "credit must be a finite number above 0": lambda: member.credit(-1.0),
        "must be given to join": lambda: type(member).open("x"),
        "must be loaded with Bandit.load": lambda: type(member).load("x"),
        "set must have entries of": member.set,
        "budget must be": lambda: member.set(budget=-1),
    }
    for message, call in calls.items():
        with pytest.raises(pl.InvalidValue, match=message):
            call()
    assert member.version == 1


def test_what_join_refuses(store, tmp_path):
    with pytest.raises(UnknownFleet):
        joined(store)
    joined(store, **SETTINGS)
    with pytest.raises(FleetExists):
        joined(store, **{**SETTINGS, "budget": 1.0})
    with pytest.raises(pl.InvalidValue, match="worker must be a name"):
        joined(store, worker="a b")
    with pytest.raises(pl.InvalidValue, match="stale_after must be"):
        joined(store, stale_after=0)
    with pytest.raises(pl.InvalidValue, match="store must be an address or a store"):
        pl.join(7, "ads")
    (tmp_path / "journal").write_text("something")
    with pytest.raises(pl.InvalidValue, match="must be new, or of a member of fleet ads"):
        joined(store, journal=tmp_path / "journal")


# Learning.


def test_another_policy_of_the_fleet_knows_of_every_pull_once(store):
    """The products that it keeps were kept by nobody: each member guesses those of its own pulls, not of all."""
    members = [joined(store, arms=["a"], budget=0.5, policy="thompson") for _ in range(3)]
    for member in members:
        for _ in range(10):
            member.observe("a", reward=0.5, cost=0.4)
    for member in members * 2:
        member.sync()
    members[0].set(policy="index")
    for member in members * 2:
        member.sync()
    for member in members:
        assert member._ledger.arm_set.all.memory.joint[0, 0] == pytest.approx(30 * 0.5 * 0.4, rel=1e-6)


def test_members_learn_together(store):
    one, other = joined(store, **SETTINGS), joined(store)
    play(one, 200, seed=1)
    play(other, 100, seed=2)
    for member in (one, other, one):
        member.sync()
    assert pulls(one) == pulls(other)
    for name in SETTINGS["arms"]:
        mine, yours = one.estimates()[name], other.estimates()[name]
        assert mine.reward.mean == pytest.approx(yours.reward.mean, abs=1e-9)
        assert mine.cost.mean == pytest.approx(yours.cost.mean, abs=1e-9)


def test_what_is_learned_is_what_one_bandit_would_have_learned(store):
    """Beliefs from shared sums are those of a bandit that has seen it all."""
    one, other, alone = joined(store, **SETTINGS), joined(store), pl.Bandit(**SETTINGS)
    draws = random.Random(3)
    for number in range(60):
        outcome = SETTINGS["arms"][number % 3], draws.random(), draws.random()
        (one if number % 2 else other).observe(*outcome)
        alone.observe(*outcome)
    for member in (one, other, one):
        member.sync()
    assert pulls(one) == pulls(alone)
    for name, arm in alone.estimates().items():
        assert one.estimates()[name].reward == pytest.approx(arm.reward, abs=1e-9)
    known, wanted = (bandit._ledger.arm_set.all.memory.beliefs for bandit in (one, alone))
    assert known == pytest.approx(wanted, abs=1e-4)  # the common mean is found step by step


def test_a_closed_member_is_not_forgotten(store):
    one, other = joined(store, **SETTINGS), joined(store)
    play(one, 200)
    learned = pulls(one)
    one.close()
    other.sync()
    assert pulls(other) == learned
    assert [row.name for row in other.workers()] == [other._name]
    with pytest.raises(pl.JournalFailed, match="has left its fleet"):
        one.ask()
    one.close()  # again is nothing


def test_news_reaches_its_owner(store):
    one, other = joined(store, **SETTINGS), joined(store)
    first, second, third = pull(one), pull(one), pull(one)
    other.tell(first.id, reward=0.75, cost=0.25)
    other.cancel(second.id)
    other.expire(third.id)
    other.tell(first.id, reward=True, cost=1)  # a conflict, which the owner finds
    assert len(one.pending) == 3
    other.sync()
    one.sync()
    assert list(one.pending) == [third.id]
    assert one.expired == [third.id]
    assert one.spent == 1.25
    assert sum(pulls(one).values()) == 1


def test_news_of_the_dead_teaches(store):
    one, other = joined(store, **SETTINGS), joined(store)
    decision = pull(one)
    part = pull(one)
    one.sync()
    store.close_worker("ads", one._name, one._standing.life, by="operator")
    other.tell(decision.id, reward=0.5, cost=0.25)
    other.tell(part.id, reward=0.5)  # the cost may never be known
    other.sync()
    other.sync()
    assert pulls(other)[decision.arm] == 1
    assert sum(pulls(other).values()) == 1
    assert other.spent == 0.0


def test_news_of_a_closed_worker_frees_what_was_reserved(store):
    one, other = joined(store, **SETTINGS), joined(store)
    first, second, third = pull(one), pull(one), pull(one)
    other.tell(first.id, reward=0.5, cost=0.25)
    other.sync()  # on its way while the worker closes
    held = one.headroom
    one.close()
    assert store.account("ads").pool[0] == int((held + 0.75) * UNIT)
    for _ in range(2):  # twice is once
        other.tell(second.id, reward=0.5, cost=0.5)
        other.cancel(third.id)
        other.sync()
    account = store.account("ads")
    assert (account.past.spent, account.past.reserved) == ((3 * UNIT // 4,), (0,))
    assert account.pool[0] + int(other.headroom * UNIT) == int((held + 2.25) * UNIT)
    other.sync()
    assert pulls(other)[first.arm] >= 1
    check_books(store, [other])


def test_news_of_a_closed_worker_teaches_once(store):
    one, other = joined(store, arms=["a", "free"], budget=1.0, max_cost={"a": 1.0, "free": 0.0}), joined(store)
    decisions = [one.ask(arms=[arm]) for arm in ("a", "free")]
    over = one.ask(arms=["a"])
    one.tell(over.id, reward=0.5, cost=0.5)
    one.close()
    for _ in range(3):
        for decision in (*decisions, over):
            other.tell(decision.id, reward=0.5, cost=0.0)
        other.sync()
    assert pulls(other) == {"a": 2, "free": 1}


def test_news_of_the_dead_settles_nothing_of_whom_it_was_to_teach(store):
    """Decisions of two workers may have the same number: the outcome of one must not free the money of the other."""
    there = flaky(store)
    dead, one, other = joined(store, **SETTINGS), joined(there), joined(store)
    first, second = dead.ask(), one.ask()
    while second.arm is None or first.arm is None:
        first, second = dead.ask(), one.ask()
    assert first.id.rpartition("-")[2].split(".")[0] == second.id.rpartition("-")[2].split(".")[0]
    for each in (dead, one):
        each.sync()
    store.close_worker("ads", dead._name, dead._standing.life, by="operator")
    other.tell(first.id, reward=0.0, cost=0.0)
    other.deliver()
    there.fails = "after"  # the news is given to a worker that never hears of it, and closes
    with pytest.raises(StoreFailed):
        one.sync()
    there.fails = None
    reserved = int(one._ledger.arm_set.books.reserved[0])
    one.close()
    assert store.account("ads").past.reserved == (reserved,)
    other.sync()
    assert pulls(other)[first.arm] == 1


def test_news_in_parts_of_a_closed_worker_frees_each_resource_once(store):
    """Some costs are known before the worker closes, others come afterwards, one by one and again."""
    settings = {"arms": ["a"], "budget": {"money": 0.5, "calls": 0.5}, "max_cost": {"money": 1.0, "calls": 1.0}}
    one, other = joined(store, **settings), joined(store)
    first, second, third = pull(one), pull(one), pull(one)
    one.tell(first.id, cost={"money": 0.25})
    one.close()
    before = store.account("ads")
    assert before.past.reserved == (2 * UNIT, 3 * UNIT)
    for _ in range(2):
        other.tell(first.id, reward=0.5, cost={"money": 0.25, "calls": 0.75}, overrun=True)
        other.tell(second.id, cost={"calls": 0.5})
        other.cancel(first.id)
        other.cancel(second.id)
        other.sync()
    account = store.account("ads")
    assert account.past.spent == (UNIT // 4, 5 * UNIT // 4)
    assert account.past.reserved == (2 * UNIT, UNIT)
    other.tell(second.id, cost={"money": 1.0})
    other.expire(third.id)
    other.sync()
    account = store.account("ads")
    assert account.past.spent == (9 * UNIT // 4, 9 * UNIT // 4)
    assert account.past.reserved == (0, 0)
    assert account.past.returned == (before.past.returned[0], before.past.returned[1] + 3 * UNIT // 4)
    check_books(store, [other])


@pytest.mark.parametrize("when", ["before", "after", "while"])
def test_a_decision_told_its_reward_alone_cannot_be_cancelled_after_its_worker_has_closed(when, store):
    """As of a worker that lives: whoever has a reward has acted, and the cost is still to come."""
    one, other = joined(store, **SETTINGS), joined(store)
    decision = pull(one)
    teller = one if when == "before" else other
    teller.tell(decision.id, reward=0.5)
    if when == "while":
        other.sync()  # on its way
    one.close()
    other.cancel(decision.id)
    other.sync()
    assert store.account("ads").past.reserved == (UNIT,)
    other.tell(decision.id, cost=0.25)
    other.sync()
    account = store.account("ads")
    assert (account.past.reserved, account.past.spent) == ((0,), (UNIT // 4,))
    check_books(store, [other])


def test_news_of_others_is_delivered_before_the_next_exchange(store):
    one, other = joined(store, **SETTINGS), joined(store)
    decision = pull(one)
    for _ in range(2):  # what waits, waits once
        other.tell(decision.id, reward=0.5, cost=0.25)
    assert (other.has_unsent, len(other._unsent)) == (True, 1)
    other.deliver()
    assert not other.has_unsent
    one.sync()
    assert (one.spent, len(one.pending)) == (0.25, 0)


@pytest.mark.parametrize("closes", [False, True])
def test_news_of_a_worker_that_began_while_the_store_was_away_waits_for_it(store, monkeypatch, closes):
    other = joined(store, **SETTINGS)
    hello = store.hello
    monkeypatch.setattr(store, "hello", Mock(side_effect=StoreFailed("away")))
    one = joined(store)
    decision = pull(one)
    assert [row.life for row in store.workers("ads")] == [other._standing.life]
    other.tell(decision.id, reward=0.5, cost=0.25)
    other.sync()
    assert one.reserved == 1.0
    monkeypatch.setattr(store, "hello", hello)
    if closes:
        one.close()
        assert (store.account("ads").past.reserved, store.account("ads").past.spent) == ((0,), (UNIT // 4,))
    else:
        one.sync()
        assert (one.spent, len(one.pending)) == (0.25, 0)
        one.sync()  # to say so
    other.sync()
    assert other.estimates()[decision.arm].pulls == 1
    check_books(store, [other] if closes else [one, other])


# Debts.


def overdrawn(member, cost):
    """A member that has just booked a cost above what was reserved for it."""
    member.tell(pull(member).id, reward=0.5, cost=cost, overrun=True)
    assert member.headroom < 0
    return member


def test_a_worker_that_closes_hands_its_debt_to_the_pool(store):
    one = overdrawn(joined(store, **SETTINGS), 6.0)
    owed = -one.headroom
    one.close()
    assert store.account("ads").pool == (-int(owed * UNIT),)
    check_books(store, [])
    other = joined(store)
    assert other.headroom == 0.0  # nothing is drawn from a pool that owes
    other.credit(owed + 1.0)
    assert other.headroom == 1.0
    check_books(store, [other])


def test_workers_that_live_repay_the_pool_by_their_rounds(store):
    """As a single bandit does: after an overrun nothing is pulled until the line has caught up."""
    members = [joined(store, **SETTINGS) for _ in range(3)]
    overdrawn(members.pop(), 10.0).close()
    assert store.account("ads").pool[0] < 0
    for member in members:
        member.sync()  # hears of it
    rounds = 0
    while store.account("ads").pool[0] < 0:
        for member in members:
            member.ask()
            member.sync()
            check_books(store, members)
        rounds += len(members)
        assert rounds < 100
    status = members[0].fleet_status()
    assert status["spent"] + status["reserved"] <= status["credited"]
    assert rounds >= 14  # 10 were spent of what 2 largest costs and a few rounds had brought, at 0.5 a round


def test_a_debt_of_several_resources_is_handed_over_beside_headroom(store):
    settings = {"arms": ["a"], "budget": {"money": 1.0, "calls": 1.0}, "max_cost": {"money": 1.0, "calls": 1.0}}
    with joined(store, **settings) as one:
        one.tell(pull(one).id, reward=0.5, cost={"money": 2**21, "calls": 0.25}, overrun=True)  # more than fits at once
        left = dict(one.headroom)
    assert left["money"] < -(2**20) < 0 < left["calls"]
    assert store.account("ads").pool == (left["money"] * UNIT, left["calls"] * UNIT)
    check_books(store, [])


def test_a_debt_stays_with_a_journal(store, tmp_path):
    journal = tmp_path / "one.journal"
    one = overdrawn(joined(store, journal=journal, **SETTINGS), 6.0)
    owed = one.headroom
    one.close()
    assert store.account("ads").pool == (0,)
    with joined(store, journal=journal) as again:
        assert again.headroom == owed


@pytest.mark.parametrize(
    "id",
    ["\0a-1", "\ud800a-1", "a" * 101 + "-1", "a-" + "9" * 19, "a-1." + "9" * 10, "a b-1", "-1", "a-", "a", 7, None],
)
def test_ids_that_no_worker_can_have_are_refused_at_once(id, store):
    member = joined(store, **SETTINGS)
    for call in (lambda: member.tell(id, reward=0.5, cost=0.5), lambda: member.cancel(id), lambda: member.expire(id)):
        with pytest.raises(pl.UnknownName):
            call()
    member.sync()


@pytest.mark.parametrize(
    "news",
    [
        {"reward": float("nan"), "cost": 0.1},
        {"reward": 0.5, "cost": float("inf")},
        {"reward": 10**400},
        {"reward": "much"},
        {"reward": -0.5},
        {"cost": -0.5},
        {"cost": 1.5},  # above what can have been reserved
        {"cost": {"money": 0.5}},
        {"cost": [0.5]},
        {},
    ],
)
def test_news_of_others_that_cannot_be_is_refused_at_once(news, store):
    one, other = joined(store, **SETTINGS), joined(store)
    decision = pull(one)
    with pytest.raises(pl.InvalidValue):
        other.tell(decision.id, **news)
    other.tell(decision.id, reward=0.5, cost=0.25)
    other.sync()
    one.sync()
    assert one.spent == 0.25


def test_news_of_others_in_several_resources(store):
    options = {"arms": ["a", "b"], "budget": {"money": 1.0, "calls": 1.0}}
    one, other = joined(store, **options), joined(store)
    decision = pull(one)
    with pytest.raises(pl.UnknownName):
        other.tell(decision.id, cost={"gold": 1.0})
    other.tell(decision.id, reward=True, cost={"calls": 1})
    other.tell(decision.id, cost={"money": 0.25})
    other.sync()
    one.sync()
    assert one.spent == {"money": 0.25, "calls": 1.0}


def test_news_that_nobody_can_take_in_holds_nobody_up(store, caplog):
    one, other = joined(store, **SETTINGS), joined(store)
    decision, life = pull(one), one._standing.life
    other._unsent.add("no name", {"id": f"{life}-1.0", "reward": 0.5})  # which the store refuses
    for odd in ({"id": None}, {"id": f"{life}-1.0", "reward": {}, "cost": [[]]}, {"id": f"{life}-x"}, {}):
        store.send("ads", [(life, odd)])
    other.tell(decision.id, reward=0.5, cost=0.25)
    other.sync()
    one.sync()
    assert (one.spent, len(one.pending), len(other._unsent)) == (0.25, 0, 0)
    assert "cannot be sent on" in caplog.text
    one.sync()
    assert store._do(lambda cursor: cursor.execute("SELECT * FROM inbox") or cursor.fetchall()) == []  # all was heard


# Money.


def test_headroom_is_handed_back_and_drawn(store):
    one = joined(store, **SETTINGS)
    for _ in range(3):
        one.ask()
    while one.headroom < 3.0:  # rounds whose decisions are cancelled
        decision = one.ask()
        if decision.arm is not None:
            one.cancel(decision.id)
    held = one.headroom
    one.close()
    assert store.account("ads").pool == (int(held * UNIT),)
    other = joined(store)
    assert other.headroom == 2.0  # two largest costs
    assert other.ask().arm is not None
    check_books(store, [other])


@pytest.mark.slow
def test_start_stock_and_credits_are_granted_once(store):
    settings = {"arms": ["a"], "start": 10.0, "rounds": 20, "max_cost": 1.0}
    members = [joined(store, **settings), joined(store), joined(store)]
    assert [member.headroom for member in members] == [2.0] * 3
    spent = 0
    for number in range(200):
        member = members[number % 3]
        decision = member.ask()
        if decision.arm is not None:
            member.tell(decision.id, reward=0.5, cost=1.0)
            spent += 1
        member.sync()
        check_books(store, members)
    assert spent == 10
    members[0].credit(5.0, key="k")
    members[0].credit(5.0, key="k")
    for number in range(400):
        play(members[number % 3], 1)
        members[number % 3].sync()
        check_books(store, members)
    assert store.account("ads").income == (15 * UNIT,)
    assert sum(member.spent for member in members) > 13.0


@pytest.mark.slow
def test_a_start_stock_is_paced_over_its_rounds(store):
    """Two workers do not spend in the first rounds what has to last a thousand."""
    settings = {"arms": ["cheap", "dear"], "start": 100.0, "rounds": 1000, "max_cost": {"cheap": 0.2, "dear": 1.0}}
    members = [joined(store, **settings), joined(store)]
    spent = []
    for number in range(1000):
        member = members[number % 2]
        decision = member.ask()
        if decision.arm is not None:
            member.tell(decision.id, reward=1.0 if decision.arm == "dear" else 0.1, cost=1.0 * (decision.arm == "dear"))
        if number % 20 < 2:
            member.sync()
        spent.append(sum(each.spent for each in members))
    assert spent[499] <= 65.0
    assert spent[-1] >= 85.0


@pytest.mark.slow
def test_income_by_the_clock(tmp_path):
    now = [1_700_000_000.0]
    with SQLiteStore(tmp_path / "fleet.db", clock=lambda: now[0]) as store:
        members = [joined(store, arms=["a"], hourly=3600.0, cap=50.0), joined(store)]
        for _ in range(100):
            now[0] += 1.0
            for member in members:
                member.sync()
                play(member, 2)
                check_books(store, members)
        spent = sum(member.spent for member in members)
        assert 50.0 < spent <= 100.0
        now[0] += 3600.0
        for member in members:
            member.sync()
        assert store.account("ads").pool[0] <= 50 * UNIT
        check_books(store, members)


def test_what_comes_by_the_clock_does_not_wait_for_the_rounds_of_another_start_stock(tmp_path):
    now = [1_700_000_000.0]
    settings = {
        "arms": ["a"],
        "budget": {"calls": 0.0, "energy": 0.0},
        "start": {"calls": 100_000.0},
        "hourly": {"energy": 3600.0},
        "cap": {"energy": 50.0},
        "rounds": 100_000,
    }
    with SQLiteStore(tmp_path / "fleet.db", clock=lambda: now[0]) as store:
        member = joined(store, **settings)
        for _ in range(100):
            now[0] += 1.0
            member.sync()
            for _ in range(2):
                decision = member.ask()
                if decision.arm is not None:
                    member.tell(decision.id, reward=0.5, cost={"calls": 1.0, "energy": 0.5})
        assert 50.0 < member.spent["energy"] <= 100.0


def test_several_resources(store):
    settings = {
        "arms": ["a", "b"],
        "budget": {"money": 0.5, "calls": 0.0},
        "start": {"calls": 8.0},
        "rounds": 50,
        "max_cost": {"money": {"a": 0.25, "b": 1.0}, "calls": 1.0},
    }
    members = [joined(store, **settings), joined(store)]

    def pulled():
        done = 0
        for number in range(60):
            member = members[number % 2]
            decision = member.ask()
            if decision.arm is not None:
                member.tell(decision.id, reward=0.5, cost={"money": 0.1, "calls": 1.0})
                done += 1
            member.sync()
            check_books(store, members)
        return done

    assert pulled() == 8
    members[0].credit({"calls": 2.0})
    assert pulled() == 2
    assert members[0].fleet_status()["spent"]["calls"] == 10.0


@pytest.mark.slow
def test_an_idle_member_does_not_take_what_others_need(store):
    idle, busy = joined(store, **{**SETTINGS, "start": 40.0}), joined(store)
    for _ in range(20):
        idle.sync()
        play(busy, 20)
        busy.sync()
    assert idle.headroom == 2.0
    assert store.account("ads").pool[0] < 20 * UNIT
    check_books(store, [idle, busy])


# Settings.


def test_settings_reach_everybody_with_a_version(store):
    one, other = joined(store, **SETTINGS), joined(store)
    one.set(budget=0.25, policy="thompson")
    one.add("d", max_cost=1.0)
    one.pause("a")
    assert (one.version, other.version) == (4, 1)
    assert one.fleet_status()["in_force"] == "1 of 2"
    assert one.fleet_status()["budget"] == 0.25
    other.sync()
    other.sync()
    assert other.version == 4
    assert other.arms == one.arms == {"a": "paused", "b": "active", "c": "active", "d": "active"}
    assert other.status().policy == "thompson"
    assert one.fleet_status()["in_force"] == "2 of 2"
    third = joined(store)
    assert (third.version, third.arms) == (4, one.arms)
    play(one, 100)
    play(third, 100)
    for member in (one, third, one):
        member.sync()
    assert pulls(one) == pulls(third)
    one.resume("a")
    one.retire("b")
    with pytest.raises(pl.InvalidValue, match="must never have been used, got 'b'"):
        one.add("b")
    assert [act.what for act in store.acts("ads")][-2:] == [{"resume": "a"}, {"retire": "b"}]
    check_books(store, [one, other, third])
    one.set(budget=0.5)
    store.close_worker("ads", other._name, other._standing.life, by="me")
    assert one.fleet_status()["in_force"] == "1 of 2"  # nobody waits for the dead


def test_fleet_status_is_ready_for_json(store):
    one = joined(store, worker="w", **{**SETTINGS, "start": 5.0})
    play(one, 100)
    one.sync()
    one.sync()
    found = json.loads(json.dumps(one.fleet_status()))
    assert found["rounds"] == 100
    assert found["credited"] == 55.0
    assert found["spent"] == pytest.approx(one.spent)
    assert found["headroom"] + found["pool"] == pytest.approx(55.0 - found["spent"])
    assert found["earned"] == pytest.approx(one.earned)
    assert [(row["name"], row["status"], row["rounds"]) for row in found["workers"]] == [("w", "fresh", 100)]
    assert set(found["arms"]) == {"a", "b", "c"}
    assert sum(arm["share"] for arm in found["arms"].values()) == pytest.approx(1.0)
    store.close_worker("ads", "w", one._standing.life, by="me")
    assert one.fleet_status()["workers"][0]["status"] == "closed"
    one.sync()
    assert one.fleet_status()["workers"][0]["status"] == "fresh"


# Outages.


def test_an_outage_costs_learning_and_nothing_else(store, caplog):
    shaky = flaky(store)
    member, other = joined(shaky, **SETTINGS), joined(store)
    shaky.fails = "before"
    play(member, 100)
    with pytest.raises(StoreFailed):
        member.sync()
    with pytest.raises(StoreFailed):
        member.credit(1.0)
    assert "goes on alone" in caplog.text
    shaky.fails = "after"
    for _ in range(3):
        with pytest.raises(StoreFailed):
            member.sync()
    shaky.fails = None
    member.sync()
    other.sync()
    assert pulls(other) == pulls(member)
    check_books(store, [member, other])


@pytest.mark.parametrize("when", ["before", "after"])
def test_money_whose_booking_is_cut_short_is_never_there_twice(when, store, monkeypatch):
    member = joined(store, **{**SETTINGS, "start": 20.0})
    play(member, 20)
    book = module.exchange.book_money

    def cut_short(*arguments):
        if when == "after":
            book(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(module.exchange, "book_money", cut_short)
    with pytest.raises(KeyboardInterrupt):
        member.sync()
    monkeypatch.undo()
    granted = store.workers("ads")[0].granted[0]
    member.sync()
    assert member._booked()[0] <= store.workers("ads")[0].granted[0]
    assert granted > 2 * UNIT
    check_books(store, [member])


def test_a_store_that_is_gone_at_the_end_strands_what_was_held(store, monkeypatch):
    monkeypatch.setattr(module, "LAST_WORDS", 0.05)
    shaky = flaky(store)
    member = joined(shaky, **{**SETTINGS, "start": 2.0})
    shaky.fails = "before"
    member.close()
    assert store.account("ads").pool == (0,)
    check_books(store, [member])


@pytest.mark.slow
def test_after_silence_a_worker_only_spends_what_it_has(store):
    shaky = flaky(store)
    member = joined(shaky, stale_after=0.05, **SETTINGS)
    play(member, 100)
    shaky.fails = "before"
    time.sleep(0.1)
    for _ in range(101):
        member.ask()
    credited = member.credited
    for _ in range(200):
        decision = member.ask()
        if decision.arm is not None:
            member.cancel(decision.id)
    assert member.credited == credited
    shaky.fails = None
    member.sync()
    member.ask()
    assert member.credited == credited + 0.5
    check_books(store, [member])


def test_a_store_that_forgot_a_worker_meets_it_anew(store):
    member = joined(store, **SETTINGS)
    play(member, 50)
    member.sync()

    def forget(cursor):
        cursor.execute("DELETE FROM worker")

    store._do(forget)
    member.sync()
    assert store.workers("ads")[0].rounds == 50


def test_news_of_the_dead_that_is_older_than_what_was_heard_is_heard(store):
    """Numbers of news rise over the whole fleet; what was meant for another comes with a lower one."""
    one, dead = joined(store, **SETTINGS), joined(store)
    other = joined(store)
    lost, mine = pull(dead), pull(one)
    other.tell(lost.id, reward=1.0, cost=0.5)
    other.sync()  # the owner does not look any more
    other.tell(mine.id, reward=1.0, cost=0.25)
    other.sync()
    one.sync()
    assert one.spent == 0.25
    store.close_worker("ads", dead._name, dead._standing.life, by="me")
    one.sync()
    assert one.estimates()[lost.arm].pulls >= 1 + (lost.arm == mine.arm)


@pytest.mark.parametrize("is_known", [True, False])
def test_news_after_a_backup_was_put_back_is_heard(is_known, tmp_path):
    """A store that has forgotten gives numbers of news again: what a worker has heard under them must not count."""
    address, copy = tmp_path / "fleet.db", tmp_path / "copy.db"
    with SQLiteStore(address) as store:
        store.make("ads", SETTINGS, by="me")
        if not is_known:
            back_up(address, copy)
        one, other = joined(store), joined(store)
        if is_known:
            back_up(address, copy)
        decisions = [pull(one) for _ in range(6)]
        for decision in decisions[:3]:
            other.tell(decision.id, reward=1.0, cost=0.25)
        other.sync()
        one.sync()  # it has heard all three, and would say so with the next exchange
        assert len(one.pending) == 3
        back_up(copy, address)
        for decision in decisions[3:]:
            other.tell(decision.id, reward=1.0, cost=0.25)
        other.sync()
        one.sync()
        one.sync()
        assert (len(one.pending), one.spent) == (0, 1.5)
        one.close()
        other.close()


def back_up(source, copy):
    """All of an SQLite file into another one, while it is in use."""
    with closing(sqlite3.connect(source)) as there, closing(sqlite3.connect(copy)) as here:
        there.backup(here)


# Threads and processes.


@pytest.mark.slow
def test_exchanges_happen_by_themselves(store):
    with pl.join(store, "ads", sync_every=0.05, **SETTINGS) as one, pl.join(store, "ads", sync_every=0.05) as other:
        play(one, 300)
        deadline = time.monotonic() + 10
        while pulls(other) != pulls(one) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert pulls(other) == pulls(one)
        one.set(budget=0.25)
        deadline = time.monotonic() + 10
        while other.version != 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert other.version == 2


def test_growth_wakes_the_thread(store):
    with pl.join(store, "ads", sync_every=600.0, **SETTINGS) as member:
        play(member, 500)
        deadline = time.monotonic() + 10
        while store.account("ads").rounds < 100 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert store.account("ads").rounds >= 100


def test_many_threads_use_one_member(store):
    with pl.join(store, "ads", sync_every=0.01, **SETTINGS) as member:
        threads = [threading.Thread(target=play, args=(member, 100, seed)) for seed in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        member.sync()
        assert member.rounds == store.account("ads").rounds == 600
        check_books(store, [member])


def test_closing_waits_for_the_exchange_under_way(store, monkeypatch):
    """What an answer brings while a member closes is handed back, too."""
    member = joined(store, **{**SETTINGS, "start": 10.0})
    pull(member)
    speaks, goes_on = threading.Event(), threading.Event()
    take_in = module.exchange.take_in

    def slowly(*arguments):
        speaks.set()
        assert goes_on.wait(10)
        take_in(*arguments)

    monkeypatch.setattr(module.exchange, "take_in", slowly)
    exchanging = threading.Thread(target=member._exchange)
    exchanging.start()
    assert speaks.wait(10)
    closing = threading.Thread(target=member.close)
    closing.start()
    time.sleep(0.05)
    goes_on.set()
    closing.join()
    exchanging.join()
    account = store.account("ads")
    assert account.pool[0] == account.income[0] + account.past.minted[0] - account.past.reserved[0]


def in_child(work):
    """Run something in a forked copy, and give back what it gives."""
    receive, send = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(send, json.dumps(work()).encode())
        except BaseException as error:
            os.write(send, json.dumps(f"failed: {error!r}").encode())
        finally:
            os._exit(0)
    os.close(send)
    with os.fdopen(receive) as pipe:
        found = json.load(pipe)
    os.waitpid(pid, 0)
    return found


def test_a_copy_of_the_process_is_a_worker_of_its_own(store):
    parent = pl.join(store, "ads", worker="web", sync_every=0.05, **{**SETTINGS, "start": 50.0})
    play(parent, 100)
    parent.set(budget=0.25)
    before = parent.headroom

    def work():
        play(parent, 200)
        parent.sync()
        found = {"life": parent._standing.life, "rounds": parent.rounds, "pulls": sum(pulls(parent).values())}
        parent.close()
        return found

    children = [in_child(work) for _ in range(2)]
    assert [child["rounds"] for child in children] == [200, 200]
    lives = {child["life"] for child in children} | {parent._standing.life}
    assert len(lives) == 3
    assert all(child["pulls"] > 100 for child in children)  # they know what their parent has learned
    assert parent.headroom == before
    parent.sync()
    assert store.account("ads").past.lives == 2
    assert store.account("ads").rounds == 500
    check_books(store, [parent])
    parent.close()


def test_a_copy_that_is_never_used_hands_nothing_back(store):
    parent = joined(store, **{**SETTINGS, "start": 10.0})

    def work():
        here.close_all()
        return True

    assert in_child(work) is True
    assert store.account("ads").past.lives == 0
    assert len(store.workers("ads")) == 1
    assert parent.headroom == 2.0


def test_news_that_waits_is_sent_by_the_parent_alone(store):
    one, other = joined(store, **SETTINGS), joined(store)
    other.tell(pull(one).id, reward=0.5, cost=0.25)
    with other._unsent._sending:  # another thread is sending
        assert in_child(lambda: other.deliver() or other.has_unsent) is False
    other.deliver()
    one.sync()
    assert one.spent == 0.25


def test_a_copy_that_was_closed_begins_no_life(store):
    parent = joined(store, **SETTINGS)

    def work():
        parent.close()
        with pytest.raises(pl.JournalFailed, match="has left its fleet"):
            parent.ask()
        return len(store.workers("ads"))

    assert in_child(work) == 1
    assert pull(parent).arm is not None


def join_and_leave(address):
    """As a program with a function `main` does: nobody closes, and nobody has the member any more."""
    play(pl.join(address, "ads"), 40)


def test_a_member_that_was_never_begun_goes_without_a_word(monkeypatch):
    said = []
    monkeypatch.setattr(sys, "unraisablehook", said.append)
    pl.Member.__new__(pl.Member)
    gc.collect()
    assert said == []


def test_a_member_that_nobody_has_any_more_hands_back(store):
    watcher = joined(store, **SETTINGS)
    address = f"sqlite:///{store.path}"
    for seconds in (3600.0, None):  # with a thread, which must not be faster than this test, and without
        play(pl.join(address, "ads", sync_every=seconds), 40)
        gc.collect()
        assert in_child(lambda: here.close_left_open() or len(store.workers("ads"))) == 2  # not for a copy to do
        here.close_left_open()
        assert [worker.name for worker in store.workers("ads")] == [watcher._name]
    watcher.sync()
    assert store.account("ads").rounds == 80
    check_books(store, [watcher])


@pytest.mark.slow
@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_processes_of_an_executor_hand_back_when_they_end(how, store):
    parent = joined(store, **SETTINGS)
    context = multiprocessing.get_context(how)
    processes = [context.Process(target=join_and_leave, args=(f"sqlite:///{store.path}",)) for _ in range(2)]
    if how == "fork":
        processes += [context.Process(target=play, args=(parent, 40)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * len(processes)
    assert len(store.workers("ads")) == 1
    assert store.account("ads").rounds == 40 * len(processes)
    check_books(store, [parent])


@pytest.mark.slow
def test_a_copy_made_while_the_store_is_gone_goes_on(store):
    shaky = flaky(store)
    parent = joined(shaky, **SETTINGS)
    play(parent, 50)

    def work():
        shaky.fails = "before"
        play(parent, 100)
        shaky.fails = None
        parent.sync()
        return parent.rounds

    assert in_child(work) == 100


SHORT_LIVED = """
import sys
import paceline as pl
member = pl.join(sys.argv[1], "ads")
for _ in range(40):
    decision = member.ask()
    if decision.arm is not None:
        member.tell(decision.id, reward=0.5, cost=0.5)
"""


@pytest.mark.slow
def test_short_lived_processes_hand_back_when_they_end(store):
    joined(store, arms=["a", "b"], budget=0.02).close()
    pulled = 0
    for _ in range(6):
        done = subprocess.run(
            [sys.executable, "-c", SHORT_LIVED, f"sqlite:///{store.path}"],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
    account = store.account("ads")
    assert account.past.lives == 7
    assert store.workers("ads") == []
    pulled = account.past.spent[0] / UNIT / 0.5
    # Without handing back no life of 40 rounds at 0.02 could ever pull.
    assert pulled >= 6
    assert account.pool[0] == account.past.minted[0] - account.past.spent[0]


# Journals.


def test_a_journal_makes_a_restarted_worker_the_same_life(store, tmp_path):
    path = tmp_path / "journal"
    first = joined(store, worker="web", journal=path, **{**SETTINGS, "start": 20.0})
    play(first, 60)
    first.sync()
    first.pause("a")
    first.set(budget=0.75)
    open_decision = pull(first)
    play(first, 20)
    life, spent, line, standing = first._standing.life, first.spent, first.credited, first._standing
    assert [file.stat().st_mode & 0o077 for file in (path, tmp_path / "journal.life")] == [0, 0]  # nobody else's
    first._journal.close()  # as a crash would
    here.members().discard(first)
    second = joined(store, journal=path, rotate_every=30, closed="gzip")
    assert (second._standing.life, second._standing.granted) == (life, standing.granted)
    assert second.version == 3
    assert second.spent == spent
    assert second.arms["a"] == "paused"
    assert second.pending == {open_decision.id: open_decision.arm}
    assert second.credited >= line
    second.tell(open_decision.id, reward=0.5, cost=0.5)
    play(second, 50)
    second.sync()
    check_books(store, [second])
    assert len(store.workers("ads")) == 1
    held, granted = second.headroom, second._standing.granted[0]
    second.close()
    assert store.account("ads").pool[0] == 20 * UNIT - granted + int(held * UNIT)
    third = joined(store, journal=path)
    assert third._standing.life == life
    assert third.rounds == second.rounds
    check_books(store, [third])
    third.snapshot()
    third.close()
    found = Examination(path)  # grants and what others have learned are events like any other
    assert found.is_whole
    assert {"credit", "merge"} <= set(found.kinds)
    with pytest.raises(pl.InvalidValue, match="must be of a member of fleet 'other', got one of 'ads'"):
        joined(store, "other", journal=path, **SETTINGS)


@pytest.mark.parametrize("snapshots", [False, True])
def test_a_key_gives_the_same_id_after_a_crash(snapshots, store, tmp_path):
    path = tmp_path / "journal"
    store.make("ads", {**SETTINGS, "start": 10.0}, by="me")
    member = joined(store, journal=path)
    member.sync()
    first = member.ask(key="k")
    assert first.arm is not None
    assert member.ask(key="k") == first
    if snapshots:
        member.snapshot()
    member._journal.close()  # it is killed
    again = joined(store, journal=path)
    assert again.ask(key="k") == first
    assert list(again.pending) == [first.id]
    again.close()
    found = Examination(path)
    assert found.is_whole
    assert [kept.verdict for kept in found.snapshots] == ["agrees with the journal"] * snapshots


@pytest.mark.parametrize("when", ["before the journal", "after the journal"])
@pytest.mark.parametrize("what", ["grant", "return"])
def test_a_crash_between_file_and_journal_loses_and_doubles_nothing(when, what, store, tmp_path, monkeypatch):
    path = tmp_path / "journal"
    settings = {**SETTINGS, "start": 20.0}
    store.make("ads", settings, by="me")
    first = joined(store, journal=path)
    first._store.credit("ads", {"cost": 8 * UNIT}, by="me")
    book = module.exchange.book_money

    class Crash(BaseException):
        pass

    def crash(member, units):
        if when == "after the journal":
            book(member, units)
        raise Crash

    monkeypatch.setattr(module.exchange, "book_money", crash)
    if what == "grant":
        decision = pull(first)
        first.tell(decision.id, reward=0.5, cost=1.0)
    with pytest.raises(Crash):
        first.sync() if what == "grant" else first.close()
    first._journal.close()
    here.members().discard(first)
    monkeypatch.undo()
    second = joined(store, journal=path)
    second.sync()
    check_books(store, [second])
    account, standing = store.account("ads"), second._standing
    row = store.workers("ads")[0]
    assert row.granted == standing.granted
    assert row.returned == standing.returned
    net = standing.granted[0] - standing.returned[0]
    assert second._booked() == (net,)
    assert account.pool[0] == 28 * UNIT - net


KILLED = """
import sys
import paceline as pl
member = pl.join(sys.argv[1], "ads", journal=sys.argv[2], sync_every=0.01)
print("ready", flush=True)
while True:
    decision = member.ask()
    if decision.arm is not None:
        member.tell(decision.id, reward=0.5, cost=0.5)
"""


@pytest.mark.slow
def test_a_killed_worker_with_a_journal_loses_nothing(store, tmp_path):
    store.make("ads", {**SETTINGS, "start": 1000.0}, by="me")
    for _ in range(5):
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, f"sqlite:///{store.path}", tmp_path / "journal"], stdout=subprocess.PIPE
        )
        assert process.stdout.readline() == b"ready\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    member = joined(store, journal=tmp_path / "journal")
    member.sync()
    check_books(store, [member])
    row, account = store.workers("ads")[0], store.account("ads")
    assert len(store.workers("ads")) == 1
    # Nothing is stranded: what is not spent is held, or in the pool.
    assert account.pool[0] + row.headroom[0] + row.spent[0] + row.reserved[0] == 1000 * UNIT + row.rounds * UNIT // 2
    member.close()


def test_a_member_that_cannot_begin_lets_go_of_its_journal(store, tmp_path, monkeypatch):
    """A disk that is full when a life goes on: once there is room, it goes on."""
    journal = tmp_path / "one.journal"
    with joined(store, journal=journal, **SETTINGS) as one:
        pull(one)
        life = one._standing.life

    def full(*_arguments):
        raise OSError(28, "No space left on device")

    for thing, name in ((module.LifeFile, "write"), (module.Worker, "_exchange_once")):
        with monkeypatch.context() as patch:
            patch.setattr(thing, name, full)
            with pytest.raises(OSError, match="No space left"):
                joined(store, journal=journal)
    with joined(store, journal=journal) as again:
        assert (again._standing.life, len(again.pending)) == (life, 1)


# Whatever happens.


class Fleet(RuleBasedStateMachine):
    """Members of one fleet in one process, and a store that fails before or after its work is done."""

    @initialize(
        names=st.sampled_from([("cost",), ("money", "calls")]),
        budget=st.sampled_from([0.0, 0.25, 1.0]),
        start=st.sampled_from([0.0, 3.0, 30.0]),
        seed=st.integers(0, 9),
    )
    def begin(self, names, budget, start, seed):
        self.store, self.names = SQLiteStore(":memory:"), names
        amounts = {"budget": self.amount(budget), "start": self.amount(start)}
        self.store.make("ads", {"arms": ["a", "b"], "rounds": 50, **amounts}, by="me")
        self.members, self.dead, self.open = [], [], []
        self.random = random.Random(seed)
        self.come()

    def amount(self, one):
        """The same of every resource."""
        return one if len(self.names) == 1 else dict.fromkeys(self.names, one)

    @precondition(lambda self: len(self.members) < 4)
    @rule()
    def come(self):
        shaky = flaky(self.store)
        self.members.append((joined(shaky, "ads"), shaky))

    @precondition(lambda self: self.members)
    @rule(which=st.integers(0, 3), rounds=st.integers(1, 12))
    def ask(self, which, rounds):
        member, _ = self.members[which % len(self.members)]
        for _ in range(rounds):
            decision = member.ask()
            if decision.arm is not None:
                self.open.append(decision.id)

    @precondition(lambda self: self.members and self.open)
    @rule(which=st.integers(0, 3), cost=st.sampled_from([0.0, 0.5, 1.0, 4.0]))
    def tell(self, which, cost):
        member, _ = self.members[which % len(self.members)]  # whoever it is
        id = self.open.pop(self.random.randrange(len(self.open)))
        with suppress(Conflict):  # a part of it may have been told
            member.tell(id, reward=0.5, cost=self.amount(cost), overrun=cost > 1.0)

    @precondition(lambda self: self.members and self.open)
    @rule(which=st.integers(0, 3), part=st.sampled_from(["reward", "cost", "cancel", "expire"]), is_last=st.booleans())
    def tell_in_part(self, which, part, is_last):
        """A part of an outcome, or the end of a decision; more may be told of it, by anybody."""
        member, _ = self.members[which % len(self.members)]
        at = self.random.randrange(len(self.open))
        id = self.open.pop(at) if is_last else self.open[at]
        with suppress(Conflict):
            if part == "reward":
                member.tell(id, reward=0.5)
            elif part == "cost":
                member.tell(id, cost=0.25 if len(self.names) == 1 else {self.random.choice(self.names): 0.25})
            else:
                getattr(member, part)(id)

    @precondition(lambda self: self.members)
    @rule(which=st.integers(0, 3), fails=st.sampled_from([None, None, None, "before", "after"]))
    def sync(self, which, fails):
        member, shaky = self.members[which % len(self.members)]
        shaky.fails = fails
        try:
            member.sync()
        except StoreFailed:
            assert fails
        shaky.fails = None

    @precondition(lambda self: self.members)
    @rule(which=st.integers(0, 3))
    def close(self, which):
        self.members.pop(which % len(self.members))[0].close()

    @precondition(lambda self: self.members)
    @rule(which=st.integers(0, 3))
    def kill(self, which):
        member, _ = self.members.pop(which % len(self.members))
        here.members().discard(member)
        member._is_left_open = False
        self.dead.append(member)

    @rule(units=st.integers(1, 2**34))
    def credit(self, units):
        self.store.credit("ads", dict.fromkeys(self.names, units), by="me")

    @precondition(lambda self: self.members)
    @rule(which=st.integers(0, 3))
    def declare_dead(self, which):
        rows = self.store.workers("ads")
        if rows:
            row = rows[which % len(rows)]
            self.store.close_worker("ads", row.name, row.life, by="me")

    @precondition(lambda self: self.members)
    @rule(budget=st.sampled_from([0.5, 0.75, 1.0]))
    def change(self, budget):
        self.members[0][0].set(budget=self.amount(budget))

    @invariant()
    def is_never_over(self):
        if hasattr(self, "store"):
            assert min(self.store.account("ads").past.reserved) >= 0
            check_books(self.store, [*(member for member, _ in self.members), *self.dead])

    def teardown(self):
        if hasattr(self, "store"):
            for member, _ in self.members:
                member.close()
            self.store.close()
            forget_members()


TestFleet = pytest.mark.slow(Fleet.TestCase)
TestFleet.settings = hypothesis_settings(max_examples=40, stateful_step_count=40)

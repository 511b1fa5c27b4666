"""The queue of deadlines: what is due comes in order, what is told is forgotten, and no call takes long."""

import gc
import tracemalloc
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline import Bandit, meanwhile
from paceline.live.deadlines import FEW, IDS, MOST_STALE, Deadlines

STEPS = st.lists(st.tuples(st.sampled_from(["push", "push", "tell", "due"]), st.integers(-20, 50)), max_size=400)


@given(steps=STEPS, many=st.booleans())
def test_what_is_due_comes_in_order_and_what_is_told_does_not(steps, many):
    deadlines, waiting = Deadlines(), {}
    for id, (step, value) in enumerate(steps if not many else [("push", 60 + value) for _, value in steps] + steps):
        if step == "push":
            waiting[id] = value
            deadlines.push(value, id, waiting)
        elif step == "tell" and waiting:
            del waiting[list(waiting)[value % len(waiting)]]
            deadlines.drop()
        elif step == "due":
            late = sorted((time, id) for id, time in waiting.items() if time <= value)
            expected = [id for _, id in late][:3]
            assert deadlines.due(value, waiting, 3) == expected
            for number in expected:  # whoever asks lets them expire: they wait no more
                del waiting[number]
    assert {entry & IDS for entry in (*deadlines.heap, *deadlines.old)} >= waiting.keys()


def test_what_was_told_does_not_stay():
    deadlines, waiting = Deadlines(), {}
    for id in range(100_000):
        waiting[id] = None
        deadlines.push(10**9 + id, id, waiting)
        if id >= 20:
            del waiting[id - 20]
            deadlines.drop()
        assert len(deadlines) <= 8 * FEW


def test_what_is_in_the_old_half_still_expires():
    """Also when nothing new has a deadline."""
    now = [0.0]
    bandit = Bandit(["a"], 1.0, "uniform", clock=lambda: now[0])
    bandit.credit(1000.0)
    last = bandit.ask(expires=50).id
    while not bandit._ledger.deadlines.old:
        bandit.tell(bandit.ask(expires=100).id, 0.5, 0.5)
    bandit._ledger.deadlines.heap.clear()
    now[0] = 60.0
    bandit.ask()
    assert bandit.expired == [last]


@pytest.mark.parametrize("order", ["first in, first out", "at random"])
def test_memory_stays_flat_when_all_is_told_in_time(order):
    bandit = Bandit(["a"], 1.0, "uniform", expires=3600.0, remember=10, clock=lambda: 0.0)
    bandit.credit(1000.0)
    chance = Random(1)

    def work(rounds):
        waiting = []
        for _ in range(rounds):
            waiting.append(bandit.ask().id)
            if len(waiting) > 50:
                place = 0 if order == "first in, first out" else chance.randrange(len(waiting))
                bandit.tell(waiting.pop(place), 0.5, 0.5)
        for id in waiting:
            bandit.tell(id, 0.5, 0.5)

    work(3000)
    for helper in list(meanwhile._helpers.values()):  # machine code that is loaded meanwhile takes memory, too
        helper.join()
    work(100)
    tracemalloc.start()
    try:
        work(1000)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        work(5000)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 5000 * 4  # an entry of the queue alone has more than a hundred bytes


def test_no_call_clears_up_after_all_who_were_told_in_time():
    """Nobody asked while they were told, and then their deadlines pass, all at once."""
    now = [0.0]
    bandit = Bandit(["a"], 1.0, "uniform", start=5000.0, expires=60.0, clock=lambda: now[0])
    ids = [bandit.ask().id for _ in range(5000)]
    for id in ids[:-1]:
        bandit.tell(id, 0.5, 0.5)
    now[0] = 61.0
    left = [len(bandit._ledger.deadlines)]
    while bandit.expired != ids[-1:]:
        bandit.credit(1.0)  # which is no round
        bandit.cancel(bandit.ask(expires=3600.0).id)
        left.append(len(bandit._ledger.deadlines))
    assert all(before - after <= 3 * MOST_STALE for before, after in pairwise(left))  # three calls each time
    assert left[-1] < FEW


def test_no_call_lets_very_many_expire_at_once():
    now = [0.0]
    bandit = Bandit(["a"], budget=1.0, expires=10.0, clock=lambda: now[0])
    for _ in range(200):
        bandit.ask()
    now[0] = 11.0
    expired = []
    for _ in range(20):
        bandit.ask()
        expired.append(len(bandit.expired))
    assert 0 < expired[0] < 100
    assert expired[-1] == 200

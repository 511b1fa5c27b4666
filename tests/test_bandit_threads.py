"""One bandit, many threads: nothing is overdrawn at any moment, and nothing is lost."""

import os
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, wait
from queue import Empty, SimpleQueue
from random import Random
from threading import Barrier, Event

import pytest
from bookkeeper import cost_of, keeps_the_promise, reward_of, state_of

from paceline import Bandit, Conflict, Uniform, meanwhile
from paceline.live import arms, snapshot

THREADS, ASKS = 8, 150
MAX_COSTS = {"a": 0.25, "b": 1.0, "c": 0.5}


@pytest.fixture(autouse=True)
def impatient_threads():
    """Let threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.fixture(params=["alone", "with a journal"])
def bandit(request, tmp_path):
    journal = None if request.param == "alone" else tmp_path / "journal"
    with Bandit(list(MAX_COSTS), 0.4, "thompson", MAX_COSTS, journal=journal, snapshot_every=400) as bandit:
        yield bandit


def work(bandit, others, start, seed):
    """Ask; tell or cancel what anyone was answered: all ids, and (arm, reward, cost) of those told."""
    chance, ids, told = Random(seed), [], []
    start.wait()
    for _ in range(ASKS):
        decision = bandit.ask()
        ids.append(decision.id)
        if decision.arm is not None:
            others.put(decision)
        while chance.random() < 0.6:
            try:
                known = others.get_nowait()
            except Empty:
                break
            if known.id % 10 == 0:
                bandit.cancel(known.id)
            else:
                reward, cost = reward_of(known.id), cost_of(known.id)
                bandit.tell(known.id, reward=reward)
                bandit.tell(known.id, cost=cost)
                told.append((known.arm, reward, cost))
    return ids, told


def watch(bandit, done):
    """How often the promise was seen to hold."""
    looks = 0
    while not done.is_set():
        assert keeps_the_promise(bandit)
        assert bandit.headroom >= 0.0
        assert set(bandit.estimates()) == set(MAX_COSTS)
        looks += 1
    return looks


def test_many_threads_ask_and_tell(bandit, tmp_path):
    others, done, start = SimpleQueue(), Event(), Barrier(THREADS)
    with ThreadPoolExecutor(THREADS + 1) as pool:
        watcher = pool.submit(watch, bandit, done)
        workers = [pool.submit(work, bandit, others, start, seed) for seed in range(THREADS)]
        try:
            results = [worker.result() for worker in workers]
        finally:
            done.set()
        assert watcher.result() > 0

    ids = sorted(number for asked, _ in results for number in asked)
    assert ids == list(range(1, THREADS * ASKS + 1))
    assert bandit.rounds == len(ids)
    told = [outcome for _, outcomes in results for outcome in outcomes]
    assert len(told) > ASKS
    pulls = Counter(arm for arm, _, _ in told)
    estimates = bandit.estimates()
    assert {arm: known.pulls for arm, known in estimates.items()} == {arm: pulls[arm] for arm in MAX_COSTS}
    assert bandit.earned == pytest.approx(sum(reward for _, reward, _ in told))
    assert bandit.spent == pytest.approx(sum(cost for _, _, cost in told))
    waiting = []
    while not others.empty():
        waiting.append(others.get().arm)
    assert sorted(bandit.pending.values()) == sorted(waiting)
    assert bandit.reserved == pytest.approx(sum(MAX_COSTS[arm] for arm in waiting))
    assert keeps_the_promise(bandit)

    bandit.close()
    if bandit._journal is not None:
        with Bandit.open(tmp_path / "journal") as reopened:
            assert state_of(reopened) == state_of(bandit)
        (tmp_path / "journal.snapshot").unlink()
        with Bandit.open(tmp_path / "journal") as replayed:
            assert state_of(replayed) == state_of(bandit)


def test_of_many_who_tell_different_things_one_is_heard(bandit):
    heard = refused = 0
    start = Barrier(THREADS)

    def tell(number, cost):
        start.wait()
        try:
            bandit.tell(number, reward=0.5, cost=cost)
        except Conflict:
            return None
        return cost

    bandit.credit(100.0)
    with ThreadPoolExecutor(THREADS) as pool:
        for _ in range(40):
            decision = bandit.ask()
            if decision.arm is not None:
                answers = list(pool.map(tell, [decision.id] * THREADS, [0.125 * (i % 2) for i in range(THREADS)]))
                assert len(set(answers) - {None}) == 1
                assert answers.count(None) == THREADS // 2
                heard += max(answer for answer in answers if answer is not None)
                refused += 1
    assert refused > 10
    assert bandit.spent == heard  # eighths are exact
    assert sum(known.pulls for known in bandit.estimates().values()) == refused


def test_old_news_too_waits_for_the_disk(tmp_path, monkeypatch):
    """Who asks or tells what another thread has just asked or told must not hear of it before it would survive."""
    bandit = Bandit(["a"], 1.0, "uniform", journal=tmp_path / "journal", fsync=True)
    synced, syncs = Event(), os.fdatasync

    def slow_sync(file):
        synced.wait()
        syncs(file)

    for call in (lambda: bandit.ask(key="k"), lambda: bandit.tell(1, 0.5, 0.5)):
        synced.clear()
        with monkeypatch.context() as patch, ThreadPoolExecutor(2) as pool:
            patch.setattr(os, "fdatasync", slow_sync)
            lines = bandit._journal.lines
            first = pool.submit(call)
            while bandit._journal.lines == lines:
                time.sleep(0.001)
            second = pool.submit(call)
            time.sleep(0.05)
            waited = not second.done()
            synced.set()
            assert waited
            assert first.result() == second.result()
    bandit.close()


def test_nobody_waits_for_a_snapshot_that_waits_for_another(tmp_path, monkeypatch):
    """Two are asked for, and the first takes long: whoever asks for a decision meanwhile gets one."""
    bandit = Bandit(["a"], 1.0, "uniform", journal=tmp_path / "journal")
    writing, may_end, write = Event(), Event(), snapshot.write_file

    def slow_write(*given):
        writing.set()
        assert may_end.wait(60)
        write(*given)

    monkeypatch.setattr(snapshot, "write_file", slow_write)
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(bandit.snapshot)
        assert writing.wait(60)
        others = [pool.submit(bandit.snapshot), pool.submit(bandit.close)]
        try:
            wait(others, 0.2)  # long enough for both to have begun
            asked = pool.submit(bandit.ask)
            assert asked.result(60).id == 1
        finally:
            may_end.set()
        first.result()
        assert others[0].exception() is None or "was closed" in str(others[0].exception())
        others[1].result()
    with Bandit.open(tmp_path / "journal") as reopened:
        assert reopened.rounds == 1


class OwnUniform(Uniform):
    name = "own uniform"


@pytest.mark.parametrize(
    "call",
    [
        lambda bandit: bandit.observe("a", 0.5, 0.5),
        lambda bandit: bandit.merge({"other": bandit.report()}),
        lambda bandit: bandit.set(policy=OwnUniform()),
    ],
    ids=["observe", "merge", "set"],
)
def test_what_is_rarely_called_is_compiled_while_others_go_on(monkeypatch, call):
    """That is, of a policy from elsewhere: ours do not wait for the compiler."""
    bandit, held = Bandit(["a", "b"], 1.0, OwnUniform()), []
    compile_now = arms.compile_now

    def compile_and_note(*given):
        held.append(bandit._lock._is_owned())
        compile_now(*given)

    monkeypatch.setattr(arms, "compile_now", compile_and_note)
    call(bandit)
    assert held == [False]


@pytest.mark.parametrize(
    ("budget", "call"),
    [
        (1.0, lambda bandit: bandit.tell(1, cost=0.5)),
        (1.0, lambda bandit: bandit.tell(1, reward=0.5)),
        ({"x": 1.0, "y": 1.0}, lambda bandit: bandit.tell(1, 0.5, {"x": 0.5})),
        (1.0, lambda bandit: bandit.observe("a", 0.5, 0.5)),
        (1.0, lambda bandit: bandit.merge({"other": bandit.report()})),
        (1.0, lambda bandit: bandit.set(silence=0.0)),
        (1.0, lambda bandit: bandit.set(policy="uniform")),
    ],
    ids=["cost", "reward", "some costs", "observe", "merge", "silence", "policy"],
)
def test_machine_code_is_loaded_while_others_go_on(monkeypatch, budget, call):
    """That of ours, which is on the disk: to load it takes tens of milliseconds."""
    bandit, held = Bandit(["a", "b"], budget, "uniform", expires=10.0), []
    assert bandit.ask().id == 1
    monkeypatch.setattr(meanwhile, "_ready", {})

    def on_disk(_policy, _resources):
        held.append(bandit._lock._is_owned())
        return True

    for name in ("calls", "part_calls", "learning_calls"):
        monkeypatch.setattr(meanwhile, f"{name}_on_disk", on_disk)
    call(bandit)
    assert held
    assert not any(held)


@pytest.mark.parametrize(
    ("loader", "call"),
    [
        ("live_part_calls_for", lambda bandit: bandit.tell(1, cost=0.5)),
        ("live_learning_calls_for", lambda bandit: bandit.observe("a", 0.5, 0.5)),
    ],
    ids=["part", "lesson"],
)
def test_a_policy_that_is_set_while_code_of_the_one_before_is_loaded(monkeypatch, loader, call):
    """The new one must not be played with the code of the other."""
    expected, bandit = (Bandit(["a", "b"], 1.0, "uniform", seed=1, clock=lambda: 9.0) for _ in range(2))
    assert expected.ask() == bandit.ask()
    expected.set(policy="thompson")
    call(expected)
    load = getattr(arms, loader)

    def load_slowly(policy, resources):
        monkeypatch.setattr(arms, loader, load)
        calls = load(policy, resources)
        bandit.set(policy="thompson")
        return calls

    monkeypatch.setattr(arms, loader, load_slowly)
    call(bandit)
    assert getattr(arms, loader) is load
    assert state_of(bandit) == state_of(expected)

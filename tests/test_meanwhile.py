"""Live decisions in plain Python, until machine code is there: the same bits, and no waiting."""

import os
import random
import sys
from functools import partial
from itertools import cycle
from threading import Event

import elsewhere
import play
import pytest
from lanes import WITH_TRUTH, named_in_lanes

import paceline as pl
from paceline import compile as ahead
from paceline import meanwhile
from paceline.calls import calls_for, learning_calls_for
from paceline.kernels import inner
from paceline.policies import POLICIES

FIRST = ("index", "thompson")  # in the first lane; the others need compilations of their own

# Income, none but credits, a cap, refills, a stock that has to last, costs of all sizes; and several resources.
SETTINGS = [
    {"budget": 0.5},
    {"budget": 0.0},
    {"budget": 0.3, "cap": 3.0, "start": 1.0},
    {"budget": 0.2, "max_refill": 1.0},
    {"budget": 0.0, "start": 40.0, "rounds": 400},
    {"budget": 0.9, "scale": 4.0, "max_cost": {"a": 0.1, "b": 1.0, "c": 3.0}},
    {"budget": {"money": 0.4, "energy": 0.3}},
    {"budget": {"money": 0.4, "energy": 0.0}, "start": {"energy": 50.0, "money": 0.0}, "rounds": 400},
]
OUTCOMES = {
    "nothing": lambda rng: 0.0,
    "all": lambda rng: 1.0,
    "zeros and ones": lambda rng: float(rng.random() < 0.3),
    "the same": lambda rng: 0.25,
    "next to nothing": lambda rng: 1e-9,
    "anything": lambda rng: rng.random(),
}


def settings_for(name):
    policy, kept = POLICIES[name], SETTINGS
    if policy.resources is not None:
        kept = [setting for setting in kept if not isinstance(setting["budget"], dict)]
    if not policy.refillable:
        kept = [setting for setting in kept if "max_refill" not in setting]
    if name == "queue":  # it wants an income, or to be told over how many rounds a stock has to last
        kept = [setting for setting in kept if setting["budget"] != 0.0 or "rounds" in setting]
    return kept


def session(name, setting, calls, seed, outcome):
    """What a bandit decided, and all bits of its books, after rounds with news that is late, missing or extreme."""
    rng = random.Random(seed)
    arms = ["a", "b", "c"][: 1 + seed % 3]
    if "max_cost" in setting:
        setting = {**setting, "max_cost": {arm: setting["max_cost"][arm] for arm in arms}}
    bandit = pl.Bandit(arms, policy=name, seed=seed, **{"rounds": 2000, **setting})
    ledger = bandit._ledger
    usual = calls(ledger.config.policy, len(ledger.config.resources))
    ledger.arm_set.calls = ledger.arm_set.usual_calls = usual
    largest = {"d": 0.5, **setting.get("max_cost", {})}
    names = list(setting["budget"]) if isinstance(setting["budget"], dict) else None

    def amounts(draw):
        return draw() if names is None else {name: draw() for name in names}

    def some(largest=1.0):
        return largest * (OUTCOMES[outcome](rng) if rng.random() < 0.7 else rng.random())

    decisions, open_pulls = [], []
    for turn in range(60):
        decision = bandit.ask()
        decisions.append(decision)
        if decision.arm is not None:
            open_pulls.append(decision)
        rng.shuffle(open_pulls)
        while open_pulls and rng.random() < 0.6:
            pull, fate = open_pulls.pop(), rng.random()
            if fate < 0.05:
                bandit.cancel(pull.id)
            elif fate < 0.1:
                bandit.expire(pull.id)
            elif "max_refill" in setting and fate < 0.3:
                bandit.tell(pull.id, reward=some(), cost=-some())
            else:
                bandit.tell(pull.id, reward=some(), cost=amounts(partial(some, largest.get(pull.arm, 1.0))))
        if rng.random() < 0.1:
            bandit.credit(amounts(lambda: 3.0 * rng.random() + 0.01))
        if turn == 30:
            bandit.add("d", amounts(lambda: 0.5))
            bandit.pause("a")
        if turn == 40:
            bandit.resume("a")
    return decisions, play.contents(ledger.arm_set.playing)


@pytest.fixture
def for_ever(monkeypatch):
    """However long it takes, nothing is compiled."""
    monkeypatch.setattr(meanwhile, "WORTH_COMPILING", float("inf"))


@pytest.mark.usefixtures("for_ever")
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n in FIRST else pytest.mark.slow) for n in POLICIES if n not in WITH_TRUTH],
)
def test_decides_and_learns_the_same_bits_in_plain_python(name):
    for seed, (setting, outcome) in enumerate(zip(settings_for(name) * 2, cycle(OUTCOMES), strict=False)):
        compiled = session(name, setting, calls_for, seed, outcome)
        assert session(name, setting, meanwhile.LiveCalls, seed, outcome) == compiled, (setting, outcome)


def lessons(name, budget, calls):
    """All bits of a bandit that has learned from elsewhere, with an arm out of play for some of the time."""
    rng, names = random.Random(5), list(budget) if isinstance(budget, dict) else None

    def amounts():
        return rng.random() if names is None else {name: rng.random() for name in names}

    def student(seed):
        bandit = pl.Bandit(["a", "b", "c"], budget, name, seed=seed, rounds=2000)
        ledger = bandit._ledger
        ledger.arm_set.usual_learning_calls = calls(ledger.config.policy, len(ledger.config.resources))
        return bandit

    bandit = student(3)
    for turn in range(30):
        decision = bandit.ask()
        if decision.arm is not None:
            bandit.tell(decision.id, reward=rng.random(), cost=amounts())
        bandit.observe(rng.choice("abc"), rng.random(), amounts())
        if turn == 10:
            bandit.pause("b")
        if turn % 8 == 0:
            other = student(turn)
            for _ in range(turn + 3):
                other.observe(rng.choice("abc"), rng.random(), amounts())
            bandit.merge({"other": other.report()})
    return play.contents(bandit._ledger.arm_set.playing), play.contents(bandit._ledger.arm_set.all)


@pytest.mark.usefixtures("for_ever")
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n in FIRST else pytest.mark.slow) for n in POLICIES if POLICIES[n].adds_up],
)
def test_learns_from_elsewhere_the_same_bits_in_plain_python(name):
    budgets = [0.5, {"money": 0.4, "energy": 0.3}]
    for budget in budgets if POLICIES[name].resources is None else budgets[:1]:
        compiled = lessons(name, budget, learning_calls_for)
        assert lessons(name, budget, meanwhile.LiveLearningCalls) == compiled, budget


def write_journal(name, budget, path):
    """A journal of rounds of all kinds; what the bandit was like when it was closed."""
    rng, names = random.Random(7), list(budget) if isinstance(budget, dict) else None
    with pl.Bandit(["a", "b", "c"], budget, name, seed=3, rounds=2000, journal=path, clock=lambda: 1000.0) as bandit:
        for turn in range(40):
            special = {0: {"arms": ["a", "c"]}, 1: {"max_cost": 0.5}}.get(turn % 5, {})
            decision = bandit.ask(**special)
            if decision.arm is not None and turn % 3:
                cost = 0.5 * rng.random()
                bandit.tell(decision.id, rng.random(), cost if names is None else dict.fromkeys(names, cost))
            if turn == 20:
                bandit.pause("b")
        return play.contents(bandit._ledger.arm_set.all)


@pytest.mark.usefixtures("for_ever")
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n == "index" else pytest.mark.slow) for n in POLICIES if n not in WITH_TRUTH],
)
def test_reads_a_journal_to_the_same_bits_in_plain_python(name, tmp_path, monkeypatch):
    monkeypatch.setattr(meanwhile, "follower_on_disk", lambda policy, resources: False)
    budgets = [0.5, {"money": 0.4, "energy": 0.3}]
    for number, budget in enumerate(budgets if POLICIES[name].resources is None else budgets[:1]):
        monkeypatch.setattr(meanwhile, "_followers", {})
        path = tmp_path / f"{number}.journal"
        written = write_journal(name, budget, path)
        with pl.Bandit.open(path) as bandit:
            assert play.contents(bandit._ledger.arm_set.all) == written, budget
        assert [type(follower) for follower in meanwhile._followers.values()] == [meanwhile.LiveFollower]


@pytest.mark.usefixtures("for_ever")
@pytest.mark.parametrize("name", named_in_lanes(name for name in POLICIES if name not in WITH_TRUTH))
def test_no_kernel_is_compiled_for_a_call_in_plain_python(name, monkeypatch):
    def refuse(kernel, *arguments):
        raise AssertionError(f"{kernel.py_func.__name__} is called from Python")

    monkeypatch.setattr(inner.InnerDispatcher, "__call__", refuse)
    for setting in settings_for(name)[::6]:  # with one resource, and with several
        session(name, setting, meanwhile.LiveCalls, 2, "anything")


@pytest.fixture
def cold(monkeypatch):
    """A machine on which nothing is compiled yet, and a helper that gets ready when it is told to."""
    ready, jobs = Event(), []

    def compile_elsewhere(job):
        jobs.append(job)
        ready.wait()

    monkeypatch.setattr(meanwhile, "calls_on_disk", lambda policy, resources: False)
    monkeypatch.setattr(meanwhile, "compile_elsewhere", compile_elsewhere)
    monkeypatch.setattr(meanwhile, "_helpers", {})
    monkeypatch.setattr(meanwhile, "_ready", {})
    yield ready, jobs
    ready.set()


def calls_of(bandit):
    return bandit._ledger.arm_set.calls


def test_the_machine_code_takes_over_when_it_is_there(cold, monkeypatch):
    ready, jobs = cold
    monkeypatch.setattr(meanwhile, "WORTH_COMPILING", 0.0)
    bandits = [pl.Bandit(["a", "b"], 0.7, "uniform", seed=3) for _ in range(2)]
    steady = pl.Bandit(["a", "b"], 0.7, "uniform", seed=3)
    steady._ledger.arm_set.calls = calls_for(steady._ledger.config.policy, 1)

    def play_on():
        decisions = [bandit.ask() for bandit in (*bandits, steady)]
        assert decisions[0] == decisions[1] == decisions[2]
        if decisions[0].arm is not None:
            for bandit in (*bandits, steady):
                bandit.tell(decisions[0].id, reward=0.3, cost=0.6)

    for _ in range(5):
        play_on()
    assert len(jobs) == 1, "one helper is enough for a kind"
    helper = calls_of(bandits[0]).helper
    assert helper is calls_of(bandits[1]).helper
    assert all(calls_of(bandit).ask == calls_of(bandit).ask_meanwhile for bandit in bandits)
    ready.set()
    helper.join()
    for _ in range(5):
        play_on()
    assert all(calls_of(bandit).ask is calls_of(steady).ask for bandit in bandits)


def test_a_short_program_compiles_nothing(cold):
    _, jobs = cold
    bandit = pl.Bandit(["a", "b"], 0.7)
    for _ in range(5):
        bandit.ask()
    assert jobs == []
    assert calls_of(bandit).helper is None


def test_a_copy_of_the_process_has_a_helper_of_its_own(cold, monkeypatch):
    """No thread is in the copy that a fork makes; that is no sign that the code is there."""
    ready, jobs = cold
    monkeypatch.setattr(meanwhile, "WORTH_COMPILING", 0.0)
    bandit = pl.Bandit(["a", "b"], 0.7, "uniform")
    bandit.ask()
    bandit.ask()
    ready.set()
    calls_of(bandit).helper.join()
    ready.clear()
    copy = os.getpid() + 1
    monkeypatch.setattr(os, "getpid", lambda: copy)
    bandit.ask()
    bandit.ask()
    assert calls_of(bandit).helper.is_alive()
    assert len(jobs) == 2


def no_room(*_, **__):
    raise RuntimeError("can't start new thread")


def no_cache(*_, **__):
    raise NotADirectoryError("the cache is gone")


@pytest.mark.parametrize(("thing", "fails"), [("Thread.start", no_room), ("calls_for", no_cache)])
def test_a_machine_on_which_nothing_works_does_not_stop_a_bandit(thing, fails, cold, monkeypatch):
    ready, _ = cold
    ready.set()
    steady = pl.Bandit(["a", "b"], 0.7, "uniform", seed=3)
    expected = [steady.ask() for _ in range(20)]
    monkeypatch.setattr(meanwhile, "WORTH_COMPILING", 0.0)
    monkeypatch.setattr(f"paceline.meanwhile.{thing}", fails)
    bandit = pl.Bandit(["a", "b"], 0.7, "uniform", seed=3)
    found = []
    for _ in range(20):
        found.append(bandit.ask())
        if calls_of(bandit).helper is not None and thing == "calls_for":
            calls_of(bandit).helper.join()
    assert found == expected


def test_an_interpreter_that_does_not_know_where_it_is_has_no_helpers(monkeypatch):
    monkeypatch.setattr(sys, "executable", None)
    meanwhile.compile_elsewhere(b"")
    assert ahead.started(0) is None


def test_a_policy_from_elsewhere_is_compiled_first(cold):
    class Mine(pl.Uniform):
        name = "mine"

    assert not isinstance(calls_of(pl.Bandit(["a", "b"], 0.7, Mine())), meanwhile.LiveCalls)
    assert isinstance(calls_of(pl.Bandit(["a", "b"], 0.7, pl.Uniform())), meanwhile.LiveCalls)


COLD_START = """
import sys
from pathlib import Path
import paceline as pl
from paceline import compile as ahead
from paceline import meanwhile
from paceline.grafting import bound_calls

bandit = pl.Bandit(["a", "b"], 0.7, "uniform", seed=3)
calls = bandit._ledger.arm_set.calls
print(bandit.ask().arm, len(list(Path(sys.argv[1]).rglob("*.nbc"))))
meanwhile.WORTH_COMPILING = 0.0
bandit.ask()
calls.helper.join()
print(len(list(Path(sys.argv[1]).rglob("*.nbc"))), sum(len(loop.overloads) for loop in bound_calls(pl.Uniform)))
bandit.ask()
print(calls.ask == calls.ask_meanwhile, sum(loop.stats.cache_misses.total() for loop in bound_calls(pl.Uniform)))
"""


@pytest.mark.slow
def test_a_cold_start_decides_at_once_and_has_another_process_compile(tmp_path):
    lines = elsewhere.run(COLD_START, tmp_path, NUMBA_CACHE_DIR=str(tmp_path))
    assert lines == ["None 0", "2 2", "False 0"], "the helper has loaded both functions, so that no call has to"


COLD_FLEET = """
import sys
from pathlib import Path
import paceline as pl

folder = Path(sys.argv[1])
url = f"sqlite:///{folder}/fleet.db"
with pl.join(url, "ads", arms=["a", "b"], budget=0.9, sync_every=None) as one:
    with pl.join(url, "ads", sync_every=None) as other:
        for member in (one, other):
            while (decision := member.ask()).arm is None:
                pass
            member.tell(decision.id, reward=0.5, cost=0.5)
            member.observe("a", 0.5, 0.5)
            member.sync()
        one.sync()
    with pl.Bandit(["a", "b"], 0.7, journal=folder / "b.journal") as bandit:
        bandit.ask()
    pl.Bandit.open(folder / "b.journal").close()
    one.set(policy="greedy")
    one.ask()
    print(one.version)
print(len(list(folder.rglob("*.nbc"))))
"""


@pytest.mark.slow
def test_nobody_waits_for_the_compiler_to_join_a_fleet_or_to_learn_from_it_or_to_open_a_journal(tmp_path):
    assert elsewhere.run(COLD_FLEET, tmp_path, NUMBA_CACHE_DIR=str(tmp_path)) == ["2", "0"]


FORK_AT_THE_END = """
import atexit
import os

def copy():
    child = os.fork()
    if child == 0:
        os._exit(0)
    print(os.waitpid(child, 0)[1])

atexit.register(copy)  # before the package is there: it is called after all that the package does at the end

import paceline as pl

pl.Bandit(["a"], 0.5, "uniform").ask()
"""


def test_a_process_can_be_copied_while_it_ends():
    assert elsewhere.run(FORK_AT_THE_END) == ["0"]

"""Ctrl-C at any line of a call: without a journal it goes on, with the books of one that nothing befell.

With a journal it can be opened again, by the same process at once.
"""

import signal
from contextlib import suppress

import pytest
from bookkeeper import state_of
from interrupt import Interrupter
from journals import SETTINGS, stopped

from paceline import Bandit, PythonPolicy, meanwhile
from paceline.kernels.state import books_in

ONE = {**SETTINGS, "budget": 1.0, "policy": "uniform"}
TWO = {
    "arms": ["a", "b", "c"],
    "budget": {"money": 1.0, "calls": 1.0},
    "max_cost": {"money": {"a": 0.25, "b": 0.5, "c": 1.0}, "calls": 0.5},
    "policy": "thompson",
    "clock": stopped,
}


class Fixed(PythonPolicy):
    """Whatever happens, the last arm."""

    def choose(self, state):
        return state.pending.size - 1


def costs(bandit, cost=0.125):
    return cost if bandit._ledger.is_unnamed else {"money": cost, "calls": cost}


CALLS = {
    "ask": lambda bandit: bandit.ask(),
    "ask of some": lambda bandit: bandit.ask(arms=["a", "b"]),
    "ask at a cost": lambda bandit: bandit.ask(max_cost=costs(bandit)),
    "ask with a key": lambda bandit: bandit.ask(key="k", expires=5),
    "tell": lambda bandit: bandit.tell(1, 0.5, costs(bandit)),
    "tell a part": lambda bandit: bandit.tell(1, cost=costs(bandit)),
    "tell the rest": lambda bandit: bandit.tell(3, 0.5, costs(bandit)),
    "tell of a paused arm": lambda bandit: bandit.tell(2, 0.5, costs(bandit)),
    "tell an overrun": lambda bandit: bandit.tell(1, 0.5, costs(bandit, 3.0), overrun=True),
    "cancel": lambda bandit: bandit.cancel(1),
    "expire": lambda bandit: bandit.expire(1),
    "credit": lambda bandit: bandit.credit(costs(bandit)),
    "pause": lambda bandit: bandit.pause("b"),
    "set": lambda bandit: bandit.set(budget=costs(bandit)),
}
KINDS = {"one resource": ONE, "two resources": TWO, "in Python": {**ONE, "policy": Fixed()}}


def begun(settings):
    """Three pulls wait for news, one of them of an arm that is paused, and one is told in part."""
    bandit = Bandit(**settings)
    bandit.credit(costs(bandit, 8.0))
    for arm in ("a", "c", "a"):
        assert bandit.ask(arms=[arm]).arm == arm
    bandit.tell(3, reward=0.5)
    bandit.pause("c")
    return bandit


def books_of(bandit):
    """All that is known, but for what is only counted for the eyes of an operator."""
    bandit.status()  # any call mends what was cut short
    state = state_of(bandit)
    del state["turnout"]
    for arm in state["arms"]:
        del arm["counts"], arm["cancelled"]
    arm_set = bandit._ledger.arm_set
    waiting = books_in(arm_set.all).unpaid.tolist(), arm_set.full.pending.tolist()  # what a file need not say
    return state, waiting


def possible_books(settings, call):
    """The books as if nothing had been asked for, as if all was done, and as if nobody had got the answer."""
    before, after, dropped = begun(settings), begun(settings), begun(settings)
    call(after)
    number = dropped.rounds + 1
    call(dropped)
    if number in dropped.pending:
        dropped.cancel(number)
        dropped._ledger.answers.clear()
    return [books_of(bandit) for bandit in (before, after, dropped)]


LIVES = {f"{name}, {kind}": (settings, call) for name, call in CALLS.items() for kind, settings in KINDS.items()}
QUICK = {name: LIVES[name] for name in ("tell, one resource", "ask with a key, one resource")}


@pytest.mark.parametrize(
    ("settings", "call"),
    [
        *(pytest.param(*life, id=name) for name, life in QUICK.items()),
        *(pytest.param(*life, id=name, marks=pytest.mark.slow) for name, life in LIVES.items() if name not in QUICK),
    ],
)
def test_an_interrupt_at_any_line_is_mended(settings, call):
    check_every_line(settings, call)


@pytest.fixture
def in_plain_python(monkeypatch):
    """A machine on which nothing is compiled yet, nor will be."""
    monkeypatch.setattr(meanwhile, "calls_on_disk", lambda policy, resources: False)
    monkeypatch.setattr(meanwhile, "part_calls_on_disk", lambda policy, resources: False)
    monkeypatch.setattr(meanwhile, "WORTH_COMPILING", float("inf"))
    monkeypatch.setattr(meanwhile, "_ready", {})


@pytest.mark.usefixtures("in_plain_python")
@pytest.mark.parametrize("call", ["tell", pytest.param("ask", marks=pytest.mark.slow)])
def test_an_interrupt_before_it_is_compiled_is_mended(call):
    check_every_line(ONE, CALLS[call], files="/paceline/")


def check_every_line(settings, call, **options):
    """Interrupt a call at its first line, at its second, and so on, until it is done before."""
    possible = possible_books(settings, call)
    for line in range(1, 10_000):
        bandit = begun(settings)
        finished = False
        try:
            with Interrupter(line, real=True, **options):
                call(bandit)
                finished = True
        except KeyboardInterrupt:
            pass
        assert books_of(bandit) in possible, f"interrupted at line {line}"
        bandit.ask()
        assert bandit._ledger.arm_set.books.tally.t == bandit.rounds
        if finished:
            return
    pytest.fail("it never ended")


def test_a_decision_comes_from_machine_code_without_a_call_of_python():
    """Numba asks Python for the class of a tuple with names; an exception there would be the end of the process."""
    arm_set = Bandit(**ONE)._ledger.arm_set
    assert type(arm_set.calls.ask(arm_set.params, arm_set.playing)) is tuple


class Hurry(Exception):
    """What the handler of a signal raises."""


def hurry(number, frame):
    raise Hurry


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    "call", ["ask", *(pytest.param(name, marks=pytest.mark.slow) for name in ("tell", "close", "snapshot"))]
)
def test_a_journal_can_be_opened_again_after_an_interrupt_at_any_line(call, number, tmp_path):
    """The call is the one that closes a segment and begins a snapshot."""
    before = signal.signal(number, hurry)
    calls = {**CALLS, "close": Bandit.close, "snapshot": Bandit.snapshot}
    try:
        for line in range(1, 10_000):
            path = tmp_path / str(line) / "journal"
            path.parent.mkdir()
            bandit = Bandit(**ONE, journal=path, rotate_every=4, snapshot_every=4)
            bandit.credit(8.0)
            assert bandit.ask(arms=["a"]).id == 1
            finished = False
            with suppress(Hurry), Interrupter(line, real=True, number=number):
                calls[call](bandit)
                finished = True
            bandit.close()
            with Bandit.open(path, clock=stopped) as reopened:
                assert reopened.rounds in (1, 2)
                assert reopened.credited == 8.0 + reopened.rounds
            if finished:
                return
        pytest.fail("it never ended")
    finally:
        signal.signal(number, before)


def test_what_was_about_to_expire_still_does_after_an_interrupt():
    """What is due is taken from a queue, and must not get lost between there and the books."""
    for line in range(1, 10_000):
        now = [0.0]
        bandit = Bandit(["a"], 1.0, "uniform", start=9.0, expires=60.0, clock=lambda now=now: now[0])
        ids = [bandit.ask().id for _ in range(4)]
        now[0] = 61.0
        finished = False
        with suppress(KeyboardInterrupt), Interrupter(line, real=True):
            bandit.ask()
            finished = True
        bandit.ask()
        assert bandit.expired == ids, f"interrupted at line {line}"
        if finished:
            return
    pytest.fail("the call never ended")

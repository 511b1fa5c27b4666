"""Ctrl-C comes once, at a safe point, and never into the void."""

import asyncio
import os
import signal
import subprocess
import sys
from concurrent.futures import Future
from threading import Thread

import pytest

import paceline as pl
from paceline.compile import Job, Loop
from paceline.interrupts import interrupts_held, signals_held


@pytest.fixture(autouse=True)
def usual_handler():
    """Also where this run was begun with Ctrl-C ignored, as a shell does for what it leaves in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def strike():
    os.kill(os.getpid(), signal.SIGINT)


def done():
    future = Future()
    future.set_result(None)
    return future


def test_what_landed_comes_once():
    with interrupts_held() as inbox:
        first, second = done(), done()
        inbox.watch(first)
        inbox.watch(second)
        assert inbox.landed() == [first, second]
        third = Future()
        inbox.watch(third)
        third.cancel()
        assert inbox.landed() == [third]


def test_interrupt_waits_for_the_safe_point():
    passed = []

    def work():
        with interrupts_held() as inbox:
            strike()
            passed.append("work that must not be torn")
            inbox.watch(done())
            inbox.landed()
            passed.append("never")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert passed == ["work that must not be torn"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_interrupt_ends_the_waiting():
    def work():
        with interrupts_held() as inbox:
            Thread(target=strike).start()
            inbox.landed()

    with pytest.raises(KeyboardInterrupt):
        work()


def test_second_interrupt_does_not_wait():
    passed = []

    def work():
        with interrupts_held():
            strike()
            passed.append("first")
            strike()
            passed.append("second")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert passed == ["first"]


def test_interrupt_after_the_last_arrival_is_not_lost():
    with pytest.raises(KeyboardInterrupt), interrupts_held():
        strike()


def test_error_of_the_work_is_the_one_that_is_seen():
    def work():
        with interrupts_held():
            strike()
            raise ValueError("of the work")

    with pytest.raises(ValueError, match="of the work"):
        work()


def test_handler_of_the_program_is_left_alone():
    seen = []

    def own(number, frame):
        seen.append(number)

    before = signal.signal(signal.SIGINT, own)
    try:
        with interrupts_held():
            assert signal.getsignal(signal.SIGINT) is own
            strike()
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.SIGINT]


def test_other_threads_have_no_say():
    handlers = []

    def work():
        with interrupts_held():
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = Thread(target=work)
    thread.start()
    thread.join()
    assert handlers == [signal.default_int_handler]


def test_an_event_loop_hears_of_a_signal_that_was_held_once():
    heard = []

    async def story():
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, heard.append, "SIGTERM")
        for _ in range(10):
            with signals_held(), signals_held():
                os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.sleep(0.01)

    asyncio.run(story())
    assert len(heard) == 10


def test_every_signal_that_was_held_is_heard_although_the_first_raises():
    heard = []

    def own(number, frame):
        heard.append((number, frame is not None))

    def work():
        with signals_held():
            strike()
            os.kill(os.getpid(), signal.SIGUSR1)
            assert not heard

    before = signal.signal(signal.SIGUSR1, own)
    try:
        with pytest.raises(KeyboardInterrupt):
            work()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert heard == [(signal.SIGUSR1, True)]


def test_interrupt_inside_the_compiler_comes_after_the_loop_at_hand(monkeypatch):
    done = []

    def compile_one(*_):
        strike()  # numba calls back from machine code, where Python can only print an exception
        done.append("a loop")

    monkeypatch.setattr("paceline.compile.compile_now", compile_one)
    monkeypatch.setattr(Job, "missing", lambda _: [Loop(None, ())] * 3)
    with pytest.raises(KeyboardInterrupt):
        Job(pl.Uniform(), ("simulation",)).do()
    assert done == ["a loop"]


STORM = """
import os, random, signal, threading, time
import paceline as pl

problem, ready = pl.paper.three_arms(), threading.Event()
pl.simulate(problem, "uniform", rounds=10, trials=2)

def storm():
    while True:
        ready.wait()
        time.sleep(random.random() * 0.03)
        ready.clear()
        os.kill(os.getpid(), signal.SIGINT)

random.seed(5)
threading.Thread(target=storm, daemon=True).start()
caught = 0
for _ in range(150):
    try:
        ready.set()
        while True:
            pl.simulate(problem, "uniform", rounds=10, trials=200, checkpoints=1)
    except KeyboardInterrupt:
        caught += 1
print(caught, flush=True)
os._exit(0)
"""


@pytest.mark.slow
def test_every_interrupt_of_a_storm_is_heard():
    """One that falls into a finalizer is only printed by Python; one inside a lock keeps the threads for ever."""
    done = subprocess.run([sys.executable, "-c", STORM], capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.stderr) == ("150\n", "")

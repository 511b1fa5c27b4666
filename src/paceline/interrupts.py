"""Interrupts at a safe point: not in the hands of those who work for us, and not between steps that belong together."""

import signal
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from inspect import currentframe
from multiprocessing import resource_tracker
from queue import SimpleQueue
from threading import current_thread, main_thread
from types import FrameType
from typing import Any


class Inbox:
    """Where finished work arrives, and the wish to stop: in one queue, so that nothing is missed between the two."""

    def __init__(self) -> None:
        self.arrivals: SimpleQueue[Future[Any] | None] = SimpleQueue()  # its put may interrupt its own get
        self.struck = False

    def watch(self, future: "Future[Any]") -> None:
        """Have the future arrive here when it is done, cancelled or failed."""
        future.add_done_callback(self.arrivals.put)

    def landed(self) -> "list[Future[Any]]":
        """What is done by now and was not seen before, at least one. Ctrl-C ends the waiting, here and nowhere else."""
        found = [self.arrivals.get()]
        while not self.arrivals.empty():
            found.append(self.arrivals.get())
        if None in found:
            raise KeyboardInterrupt
        return [future for future in found if future is not None]

    def strike(self, _number: int, _frame: FrameType | None) -> None:
        """The signal handler: the first Ctrl-C waits for `landed`, the second does not."""
        if self.struck:
            raise KeyboardInterrupt
        self.struck = True
        self.arrivals.put(None)


@contextmanager
def interrupts_held() -> Iterator[Inbox]:
    """Hold Ctrl-C back until the caller asks the inbox what has landed, or leaves.

    An exception out of a signal handler may come between the taking of a lock and the block that lets it go (see the
    notes on signal handlers and exceptions in Python's `signal`). Executors share such locks with their threads, and a
    lock that is never let go is a program that never ends. Handlers that are not Python's own are left alone, and
    other threads than the main one never see Ctrl-C.
    """
    inbox = Inbox()
    if current_thread() is not main_thread() or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield inbox
        return
    signal.signal(signal.SIGINT, inbox.strike)
    try:
        yield inbox
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if inbox.struck:  # after all had landed
        raise KeyboardInterrupt


HELD = ("SIGINT", "SIGTERM", "SIGALRM", "SIGHUP", "SIGUSR1", "SIGUSR2")  # that programs have handlers for


@contextmanager
def signals_held() -> Iterator[None]:
    """Steps that belong together: a signal whose handler is written in Python waits until the last of them is done.

    Such a handler may raise an exception anywhere, as that of Ctrl-C does. It runs in the main thread only. This is
    for a few microseconds; whoever has to wait for others uses `interrupts_held`.

    Handlers are called, and not woken by a second signal: an event loop has heard of the first one already, through
    its file for waking up, and would take the second for another.
    """
    if current_thread() is not main_thread():
        yield
        return
    numbers = [getattr(signal, name) for name in HELD if hasattr(signal, name)]
    handlers = {number: handler for number in numbers if callable(handler := signal.getsignal(number))}
    came: list[int] = []
    try:
        for number in handlers:
            signal.signal(number, lambda number, _: came.append(number))
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        with ExitStack() as stack:  # all of them, also if the first raises an exception
            for number in reversed(came):
                stack.callback(handlers[number], number, currentframe())


@contextmanager
def interrupts_for_us_alone() -> Iterator[None]:
    """What starts in here does not see Ctrl-C, which a terminal sends to every process; we see it afterwards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # to start it would undo the mask
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

"""Copies of a process: a bandit belongs to the process that made it.

A forked copy of a program has a copy of every bandit, with a copy of its headroom: were it used, the same money would
be spent twice. So in the copy every bandit is stopped. Its file of the journal is closed there, too: else the copy
would keep the journal locked after its owner has died.

What another thread was in the middle of stays half done in the copy for ever. So a copy is made only while things that
must not be caught so, the connections of a store, are at rest.
"""

import os
from functools import cache
from threading import Lock
from typing import Protocol
from weakref import WeakSet

from paceline.interrupts import signals_held


class Stoppable(Protocol):
    """What must not go on in a copy of its process."""

    def stop_in_copy(self) -> None:
        """Called in the copy, which has no other threads."""

    def __hash__(self) -> int: ...


class Restable(Protocol):
    """What must be at rest while a copy of its process is made."""

    def rest(self) -> None:
        """Called before: come to rest, and stay so."""

    def go_on(self) -> None:
        """Called afterwards, in the process and in its copy, by the thread that called `rest`."""

    def __hash__(self) -> int: ...


class Watch:
    """The bandits of this process, and what else must know of its copies."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.bandits: WeakSet[Stoppable] = WeakSet()
        self.forking = Lock()  # held from before a fork until after it
        self.restable: WeakSet[Restable] = WeakSet()
        self.resting: list[Restable] = []
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=self.rest_all, after_in_parent=self.go_on, after_in_child=self.stop_all)

    def add(self, bandit: Stoppable) -> None:
        """Have a bandit stopped in every copy of this process."""
        with self.lock:
            self.bandits.add(bandit)

    def add_restable(self, thing: Restable) -> None:
        """Have something at rest whenever a copy of this process is made."""
        with self.forking:
            self.restable.add(thing)

    def rest_all(self) -> None:
        """What happens before a copy is made; Ctrl-C between two of these steps would leave a lock behind."""
        with signals_held():
            self.forking.acquire()
            self.resting = list(self.restable)
            for thing in self.resting:
                thing.rest()

    def go_on(self) -> None:
        """What happens when the copy is made."""
        with signals_held():
            for thing in self.resting:
                thing.go_on()
            self.resting = []
            self.forking.release()

    def stop_all(self) -> None:
        """What happens in the copy: before anything else can, no bandit goes on in it."""
        with signals_held():
            self.lock = Lock()  # another thread may have had it
            for bandit in list(self.bandits):
                bandit.stop_in_copy()
            self.go_on()


@cache
def watch() -> Watch:
    """Made with the first bandit: importing does nothing."""
    return Watch()

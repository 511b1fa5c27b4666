"""Copies of a process: a bandit belongs to the process that made it.

A forked copy of a program has a copy of every bandit, with a copy of its headroom: were it used, the same money would
be spent twice. So in the copy every bandit is stopped. Its file of the journal is closed there, too: else the copy
would keep the journal locked after its owner has died.
"""

import os
from functools import cache
from threading import Lock
from typing import Protocol
from weakref import WeakSet


class Stoppable(Protocol):
    """What must not go on in a copy of its process."""

    def stop_in_copy(self) -> None:
        """Called in the copy, which has no other threads."""

    def __hash__(self) -> int: ...


class Watch:
    """The bandits of this process."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.bandits: WeakSet[Stoppable] = WeakSet()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.stop_all)

    def add(self, bandit: Stoppable) -> None:
        """Have a bandit stopped in every copy of this process."""
        with self.lock:
            self.bandits.add(bandit)

    def stop_all(self) -> None:
        """What happens in the copy."""
        self.lock = Lock()  # another thread may have had it
        for bandit in list(self.bandits):
            bandit.stop_in_copy()


@cache
def watch() -> Watch:
    """Made with the first bandit: importing does nothing."""
    return Watch()

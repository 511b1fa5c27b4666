"""The members of this process: the thread that keeps each of them in touch with its store, and how they end."""

import logging
import os
import time
from collections import deque
from contextlib import suppress
from functools import cache
from threading import Event
from typing import TYPE_CHECKING
from weakref import WeakSet, ref

from paceline.endings import at_end
from paceline.errors import in_one_line
from paceline.fleet import staleness

if TYPE_CHECKING:
    from paceline.fleet.worker import Worker

LOG = logging.getLogger("paceline")


def keep_exchanging(member: "ref[Worker]", wake: Event, every: float) -> None:
    """The thread of a member: it ends with it."""
    while True:
        wake.wait(every)
        was_woken = wake.is_set()
        wake.clear()
        close_left_open()
        here = member()
        if here is None or here._is_closed or here._wake is not wake:
            return
        if was_woken or here._is_due():
            try:
                here._exchange()
            except Exception as error:  # whatever it is, the next exchange may do
                here._note_trouble(in_one_line(error))
                staleness.look(here)
            if was_woken:
                time.sleep(0.01)  # a burst of rounds must not make a burst of exchanges
        del here


@cache
def members() -> "WeakSet[Worker]":
    """The members of this process, which hand back what they have when it ends."""
    return WeakSet()


@cache
def left_open() -> "deque[tuple[int, Worker]]":
    """Those that nobody has any more, and nobody has closed; each with its process, for a copy has none of them."""
    return deque()


def add(member: "Worker") -> None:
    """One more, which hands back what it has when the process ends."""
    members().add(member)
    at_end(close_all)


def keep_for_later(member: "Worker") -> None:
    """One that nobody has any more, and nobody has closed."""
    left_open().append((os.getpid(), member))


def close_all() -> None:
    """At the end of the process."""
    for member in list(members()):
        close_quietly(member)
    close_left_open()


def close_left_open() -> None:
    """Let those that were left go, with what they hold handed back."""
    with suppress(IndexError):  # when there are no more: others may be at it, too
        while True:
            process, member = left_open().popleft()
            if process == os.getpid():
                close_quietly(member)


def close_quietly(member: "Worker") -> None:
    """Close a member; the others must have their turn, whatever comes of it."""
    try:
        member.close()
    except Exception as error:
        LOG.warning("worker %s could not be closed: %s", member._name, in_one_line(error))

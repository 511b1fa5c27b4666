"""The machine that this process shares with others: its cores, and locks between processes."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock

LOCK = "paceline.lock"
PAUSE = 0.02  # seconds between two attempts
LONGEST = 120.0  # seconds after which a lock counts as forgotten: its owner may have been stopped, not ended
PLACES = 1 << 40  # bytes of a lock file that can be locked one by one; none of them is ever written

_one_thread = Lock()


def cores() -> int:
    """How many cores this process may use, where the system tells; else how many there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def python_like_this(code: str) -> list[str]:
    """The command for a fresh interpreter that finds the modules that this one finds, and runs some code."""
    return [sys.executable, "-P", "-c", f"import sys; sys.path[:] = {sys.path!r}; {code}"]


@contextmanager
def alone(folder: Path, place: int) -> Iterator[None]:
    """Wait until no other thread of this process, and at this place of this folder no other process, is in here.

    A place is a byte of a lock file in the folder that only its owner may open. Where there can be no such file, or the
    system has no such locks, processes do not wait for each other. (The lock belongs to the process, and is lost when
    any of its threads closes the file: hence one thread at a time.)
    """
    with _one_thread:
        file = opened(folder / LOCK)
        try:
            if file is not None:
                lock(file, place % PLACES)
            yield
        finally:
            if file is not None:
                os.close(file)


def opened(path: Path) -> int | None:
    """A lock file, made if need be; never through a link that somebody else has put there."""
    with suppress(OSError):
        return os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    return None


def lock(file: int, place: int) -> None:
    """Lock one byte, or give up after a while."""
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        return
    give_up = time.monotonic() + LONGEST
    while time.monotonic() < give_up:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except BlockingIOError:
            time.sleep(PAUSE)
        except OSError:  # a file system without locks
            return
        else:
            return

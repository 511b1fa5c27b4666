"""Long work beside calls that must not wait for it: it is done in short turns, with a rest after each.

A thread that lets Python's interpreter go, as everyone does who writes to a file, gets it back only when the one who
took it lets it go, or some five milliseconds later (`sys.getswitchinterval`). So work that nobody is in a hurry for
must let it go by itself, long before that. To go to sleep is the one way to do so.
"""

import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

Part = TypeVar("Part")

TURN = 0.0003  # seconds of work after which others may go on
REST = 0.0005  # seconds: enough for another thread that waits for the interpreter to get it


def in_turns(parts: Iterable[Part]) -> Iterator[Part]:
    """The parts of a work, which must be short. What is done for each by the caller counts, too."""
    begun = time.perf_counter()
    for part in parts:
        yield part
        if time.perf_counter() - begun > TURN:
            time.sleep(REST)
            begun = time.perf_counter()

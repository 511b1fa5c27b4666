"""The time of a live bandit, in whole milliseconds, from a clock that gives seconds."""

import math
import time
from collections.abc import Callable

from paceline.errors import InvalidValue
from paceline.live.config import MOST_SECONDS

NANOSECONDS = 1_000_000  # in a millisecond


def milliseconds_by(clock: Callable[[], float], usual: Callable[[], float] = time.time) -> Callable[[], int]:
    """The clock in milliseconds; a user's may give anything, and is checked each time.

    A `time.time` that a test has put in the place of the usual one is a user's.
    """
    return time_of_day if clock is usual else lambda: checked(clock())


def time_of_day(read: Callable[[], int] = time.time_ns) -> int:
    """The usual clock, in half the time that the checks would take."""
    return read() // NANOSECONDS


def checked(now: float) -> int:
    """The milliseconds in what a clock has given in seconds."""
    try:
        if abs(now) < MOST_SECONDS:
            return int(now * 1000.0)
        is_number = math.isfinite(now)
    except (TypeError, ValueError, OverflowError):
        is_number = False
    rule = f"in seconds, below {MOST_SECONDS:g}" if is_number else "a finite number"
    raise InvalidValue(f"the time that clock gives must be {rule}, got {now!r}")

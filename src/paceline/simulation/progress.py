"""A progress bar in rounds, for people who wait."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from paceline.extras import extra


class Progress:
    """Somewhere to say that rounds were played; nothing is shown."""

    def advance(self, rounds: int) -> None:
        """So many more rounds were played."""


class ShownProgress(Progress):
    """The same, shown on standard error with the time left. Threads may share it."""

    def __init__(self, total: int) -> None:
        with extra("lab", "a progress bar"):
            from tqdm import tqdm

        self._lock = Lock()
        # In a log file a line every ten seconds is enough.
        pause = 0.1 if sys.stderr.isatty() else 10.0
        # With any delay tqdm does not draw before it is fully made: an interrupt right after the first stroke would
        # otherwise meet half a bar, and end in a traceback.
        self._bar = tqdm(total=total, unit=" rounds", unit_scale=True, smoothing=0.05, mininterval=pause, delay=1e-12)

    def advance(self, rounds: int) -> None:
        """So many more rounds were played, in whichever thread."""
        with self._lock:
            self._bar.update(rounds)

    def show(self) -> None:
        """Draw the empty bar."""
        self._bar.refresh()

    def close(self) -> None:
        """Leave the finished bar on the screen."""
        self._bar.close()


@contextmanager
def progress_bar(total: int, shown: bool) -> Iterator[Progress]:
    """A bar for ``total`` rounds, or a silent stand-in."""
    if not shown:
        yield Progress()
        return
    bar = ShownProgress(total)
    try:
        bar.show()
        yield bar
    finally:
        bar.close()

"""A progress bar in rounds, for people who wait."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

from paceline.extras import extra

Advance = Callable[[int], None]  # told that so many more rounds were played


@contextmanager
def progress_bar(total: int, shown: bool) -> Iterator[Advance]:
    """What moves a bar for ``total`` rounds on standard error, in whichever thread; or nothing, if none is shown."""
    if not shown:
        yield lambda _: None
        return
    with extra("lab", "a progress bar"):
        from tqdm import tqdm

    lock = Lock()
    # In a log file a line every ten seconds is enough.
    pause = 0.1 if sys.stderr.isatty() else 10.0
    # With any delay tqdm does not draw before it is fully made: an interrupt right after the first stroke would
    # otherwise meet half a bar, and end in a traceback.
    bar = tqdm(total=total, unit=" rounds", unit_scale=True, smoothing=0.05, mininterval=pause, delay=1e-12)

    def advance(rounds: int) -> None:
        with lock:
            bar.update(rounds)

    try:
        bar.refresh()  # draw it, empty
        yield advance
    finally:
        bar.close()

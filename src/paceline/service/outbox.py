"""News that waits to be sent: again and again until it is taken, in order as far as it can be, and never too much."""

import logging
import threading
from collections import deque
from collections.abc import Callable
from itertools import islice, takewhile
from typing import Any

from paceline.errors import PacelineError, in_one_line

LOG = logging.getLogger("paceline")
BATCH = 100  # news in a request
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 5.0  # seconds between two tries to send news

Item = dict[str, Any]


class CannotNow(PacelineError):
    """News that was not delivered, and may be tried again; other news may have better luck."""

    def __init__(self, why: str, others_may: bool = False) -> None:
        super().__init__(why)
        self.others_may = others_may


class Outbox:
    """News of one kind after the other, for the threads of one process.

    ``deliver``  sends a batch to a path; `CannotNow` if it is to be tried again.
    ``most``     how much may wait.
    ``name``     whose news it is, for the log.
    """

    def __init__(self, deliver: Callable[[str, list[Item]], None], most: int, name: str) -> None:
        self.deliver, self.most, self.name = deliver, most, name
        self.waiting: deque[tuple[str, Item]] = deque()
        self.changed = threading.Condition()
        self.sender: threading.Thread | None = None
        self.is_closed = False

    def put(self, path: str, item: Item) -> bool:
        """Have news sent; false if there is no room for it."""
        with self.changed:
            if len(self.waiting) >= self.most:
                return False
            self.waiting.append((path, item))
            if self.sender is None:
                self.sender = threading.Thread(target=self.keep_sending, name="paceline-news", daemon=True)
                self.sender.start()
            self.changed.notify_all()
        return True

    def head(self) -> tuple[str, list[Item]]:
        """The first news, as much of it as goes to one path."""
        path = self.waiting[0][0]
        return path, [item for _, item in takewhile(lambda entry: entry[0] == path, islice(self.waiting, BATCH))]

    def keep_sending(self) -> None:
        """Send until the box is closed and empty, or closed and nobody answers."""
        pause, passed = FIRST_PAUSE, 0  # how much has let other news go first since the last pause
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.waiting or self.is_closed)
                if not self.waiting:
                    return
                path, batch = self.head()
            try:
                self.deliver(path, batch)
                pause = FIRST_PAUSE
            except Exception as error:  # whatever it is, the next try may do
                if isinstance(error, CannotNow) and error.others_may:
                    with self.changed:
                        self.waiting.rotate(-len(batch))
                        passed += len(batch)
                        if passed < len(self.waiting) and not self.is_closed:
                            continue
                passed = 0
                if pause == LONGEST_PAUSE or not isinstance(error, CannotNow):
                    count = len(self.waiting)
                    LOG.warning("bandit %s: %d news wait to be sent: %s", self.name, count, in_one_line(error))
                with self.changed:
                    if self.is_closed:
                        return
                    self.changed.wait(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
                continue
            with self.changed:
                for _ in batch:
                    self.waiting.popleft()
                self.changed.notify_all()

    def flush(self, timeout: float | None) -> bool:
        """Wait until all is sent; whether it is."""
        with self.changed:
            return self.changed.wait_for(lambda: not self.waiting, timeout)

    def close(self, timeout: float) -> None:
        """Send what waits, for some seconds at most; the rest is lost."""
        self.flush(timeout)
        with self.changed:
            left, self.is_closed = len(self.waiting), True
            self.changed.notify_all()
        if left:
            LOG.warning("bandit %s: %d news could not be sent", self.name, left)

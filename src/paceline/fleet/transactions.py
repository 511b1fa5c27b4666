"""Transactions in an SQL database: the connection, forks, and tables that are brought up to date."""

import re
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from importlib import resources
from threading import RLock
from typing import Any, Protocol, TypeVar

from paceline.errors import StoreFailed
from paceline.fleet.store import Store
from paceline.live.forks import watch

LONG = 2.0  # seconds after which a store that fails is taken to hang

T = TypeVar("T")


class Cursor(Protocol):
    """What the statements need of an engine; question marks stand for values."""

    fetchone: Callable[[], Any]
    fetchall: Callable[[], list[Any]]

    def execute(self, statement: str, values: Sequence[Any] = ()) -> None:
        """Run a statement."""


@cache
def migrations() -> list[tuple[int, list[str]]]:
    """The numbered files, each with its statements."""
    found = []
    for file in resources.files("paceline.fleet").joinpath("migrations").iterdir():
        number = re.fullmatch(r"(\d{4})_\w+\.sql", file.name)
        if number:
            lines = [line for line in file.read_text(encoding="utf-8").splitlines() if not line.startswith("--")]
            found.append((int(number[1]), [part for part in "\n".join(lines).split(";") if part.strip()]))
    return sorted(found)


class Transactions(Store):
    """A store in an SQL database; an engine says how a transaction is made, and what time it is.

    One connection, used by one thread at a time. When the process is forked there is none: SQLite keeps track of its
    locks in the memory of the process, and a copy made within a transaction believes for ever that the file is locked;
    a copy of a connection to a server would be a second voice on one wire. Both sides connect anew when they need to.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self._connection: Any = None
        self._hung: tuple[float, StoreFailed | None] = (0.0, None)  # when it was last given up after a long wait
        watch().add_restable(self)

    # What an engine brings.

    @abstractmethod
    def _in_transaction(self, work: Callable[[Cursor], T]) -> T:
        """Let something happen as a whole or not at all."""

    @abstractmethod
    def _now(self, cursor: Cursor) -> int:
        """The store's clock, in milliseconds."""

    def _disconnect(self) -> None:
        """Close the connection, if there is one; one that is broken may not like it."""
        if self._connection is not None:
            with suppress(Exception):
                self._connection.close()
            self._connection = None

    def _do(self, work: Callable[[Cursor], T]) -> T:
        """One transaction of this process and thread.

        Those who wait while the store hangs fail with the one that it was given up for: one after the other, the last
        of many threads would wait for minutes.
        """
        came = time.monotonic()
        with self._lock:
            begun = time.monotonic()
            when, why = self._hung
            if why is not None and when > came:
                raise StoreFailed(str(why)) from why
            try:
                return self._in_transaction(work)
            except StoreFailed as error:
                if time.monotonic() - begun > LONG:
                    self._hung = time.monotonic(), error
                raise

    def rest(self) -> None:
        """Before a fork: the transaction at hand comes to its end (engines have their limits), then the connection."""
        self._lock.acquire()
        self._disconnect()

    def go_on(self) -> None:
        """After a fork, on both sides."""
        self._lock.release()

    def close(self) -> None:
        """Let go of the connection."""
        with self._lock:
            self._disconnect()

    def _migrate(self, cursor: Cursor) -> None:
        """Bring the tables up to date; nobody else may do so at the same time."""
        cursor.execute("CREATE TABLE IF NOT EXISTS migration (number BIGINT PRIMARY KEY)")
        cursor.execute("SELECT number FROM migration")
        done = {row[0] for row in cursor.fetchall()}
        for number, statements in migrations():
            if number not in done:
                for statement in statements:
                    cursor.execute(statement)
                cursor.execute("INSERT INTO migration (number) VALUES (?)", (number,))

"""A store in a file: SQLite, for the processes of one machine. Nothing has to be set up."""

import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from paceline.errors import StoreFailed, in_one_line
from paceline.fleet.sql import SQLStore
from paceline.fleet.transactions import Cursor

PATIENCE = 10.0  # seconds that a call waits for others, however often it has to

T = TypeVar("T")


class SQLiteStore(SQLStore):
    """A store in an SQLite file, which is made if it is not there.

    It writes ahead (WAL) and syncs every commit to the disk, so that what was granted is not forgotten when the power
    fails. The file must be on a disk of the machine: not on a network drive, where locks cannot be relied on.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, SQLiteStore(f"{folder}/ads.db") as store:
    ...     store.fleets()
    []
    """

    def __init__(self, path: str | os.PathLike[str], clock: Callable[[], float] = time.time) -> None:
        super().__init__()
        self.path, self._clock = Path(path), clock
        self._file: tuple[int, int] | None = None  # that the connection has open
        self.fleets()  # connects, and makes the tables

    def __repr__(self) -> str:
        return f"<SQLiteStore {self.path}>"

    def _now(self, cursor: Cursor) -> int:  # noqa: ARG002  # the clock of the machine will do
        return int(self._clock() * 1000.0)

    def _in_transaction(self, work: Callable[[Cursor], T]) -> T:
        give_up = time.monotonic() + PATIENCE
        try:
            self._look_at_file()
            if self._connection is None:
                self._connection = self._connect(give_up)
                self._file = self._identify()
            return self._run(self._connection, work, give_up)
        except sqlite3.Error as error:
            raise StoreFailed(f"store {self.path} cannot be used: {in_one_line(error)}") from error

    def _identify(self) -> tuple[int, int] | None:
        """Which file it is; None if there is none, as of a store in memory."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _look_at_file(self) -> None:
        """Grants that are written to a file which was deleted or replaced would be forgotten."""
        if self._file is None or (found := self._identify()) == self._file:
            return
        self._disconnect()
        if found is None:  # a new one would have no fleets, and money of its own
            raise StoreFailed(f"store {self.path} must be where it was, and is not there any more")

    def _run(self, connection: sqlite3.Connection, work: Callable[[Cursor], T], give_up: float) -> T:
        connection.execute(f"PRAGMA busy_timeout = {max(round(1000 * (give_up - time.monotonic())), 0)}")
        connection.execute("BEGIN IMMEDIATE")
        try:
            found = work(SQLiteCursor(connection.cursor()))
            connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise
        return found

    def _connect(self, give_up: float) -> sqlite3.Connection:
        """Open the file and bring it up to date; that others do the same at this moment must not matter."""
        while True:
            left = max(give_up - time.monotonic(), 0.0)
            connection = sqlite3.connect(self.path, timeout=left, isolation_level=None, check_same_thread=False)
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = FULL")
                self._run(connection, self._migrate, give_up)
            except sqlite3.OperationalError as error:
                connection.close()
                # To change the mode needs the file for oneself, and SQLite does not always wait for that.
                if "locked" not in str(error) or time.monotonic() > give_up:
                    raise
                time.sleep(0.01)
            except BaseException:
                connection.close()
                raise
            else:
                return connection


class SQLiteCursor:
    """A cursor whose execute gives nothing back, as all engines have it."""

    def __init__(self, cursor: sqlite3.Cursor) -> None:
        self._cursor = cursor
        self.fetchone: Callable[[], Any] = cursor.fetchone
        self.fetchall: Callable[[], list[Any]] = cursor.fetchall

    def execute(self, statement: str, values: Sequence[Any] = ()) -> None:
        """Run a statement."""
        self._cursor.execute(statement, values)

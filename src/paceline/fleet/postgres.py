"""A store in PostgreSQL, for the processes of many machines. It needs psycopg 3 (``pip install "paceline[fleet]"``)."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from paceline.errors import StoreFailed, in_one_line
from paceline.extras import extra
from paceline.fleet.sql import SQLStore
from paceline.fleet.transactions import Cursor

with extra("fleet", "a store in PostgreSQL", StoreFailed):
    import psycopg
    from psycopg.abc import PQGen

MIGRATING = 0x7061_6365  # the number of the advisory lock under which tables are made

# A server that does not answer must not hold a worker up for long. Times are in seconds, or in milliseconds.
PATIENCE: dict[str, Any] = {
    "connect_timeout": 3,
    "tcp_user_timeout": 5000,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
}
MOST_SECONDS = 6.0  # for a statement: longer than the server has, whose own clock stands still when it hangs
SESSION = (
    "SET synchronous_commit TO on",  # what was granted must not be forgotten
    "SET statement_timeout TO '5s'",
    "SET idle_in_transaction_session_timeout TO '10s'",
    "SET default_transaction_isolation TO 'read committed'",  # rows are locked where it matters
)

T = TypeVar("T")


class PostgresStore(SQLStore):
    """A store in a PostgreSQL database; the tables are made if they are not there.

    ``address`` is what libpq takes: postgresql://user:password@host:port/database. A connection that has broken is made
    anew. Commits wait for the disk (synchronous_commit). With a standby that may take over, let commits wait for it as
    well (synchronous_standby_names): grants that a failover forgets may be granted again.
    """

    for_update = " FOR UPDATE"
    skip_locked = " FOR UPDATE SKIP LOCKED"

    def __init__(self, address: str) -> None:
        super().__init__()
        self._address = address
        self.fleets()  # connects, and makes the tables

    def __repr__(self) -> str:
        return "<PostgresStore>"

    def _now(self, cursor: Cursor) -> int:
        cursor.execute("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
        return int(cursor.fetchone()[0])

    def _in_transaction(self, work: Callable[[Cursor], T]) -> T:
        try:
            return self._try_twice(work)
        except (psycopg.Error, UnicodeError) as error:  # a name that cannot be that of a host is the latter
            raise StoreFailed(f"the store cannot be used: {in_one_line(error)}") from error

    def _try_twice(self, work: Callable[[Cursor], T]) -> T:
        """If the connection has broken before the commit was sent, nothing has happened: then it is done anew."""
        if self._connection is not None:
            try:
                found = self._begin(self._connection, work)
            except psycopg.OperationalError:
                if not self._connection.broken and not self._connection.closed:
                    raise
                self._disconnect()
            else:
                return self._commit(self._connection, found)
        self._connection = self._connect()
        return self._commit(self._connection, self._begin(self._connection, work))

    def _begin(self, connection: "psycopg.Connection[Any]", work: Callable[[Cursor], T]) -> T:
        """A transaction without its end."""
        connection.execute("BEGIN")
        try:
            return work(PostgresCursor(connection.cursor()))
        except BaseException:
            with suppress(psycopg.Error):
                connection.execute("ROLLBACK")
            raise

    def _commit(self, connection: "psycopg.Connection[Any]", found: T) -> T:
        """The end of it. If this fails, nobody knows."""
        try:
            connection.execute("COMMIT")
        except BaseException:
            self._disconnect()
            raise
        return found

    def _connect(self) -> "psycopg.Connection[Any]":
        connection: psycopg.Connection[Any] = Impatient.connect(self._address, autocommit=True, **PATIENCE)
        try:
            for statement in SESSION:
                connection.execute(statement)
            connection.execute("BEGIN")
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATING,))
            self._migrate(PostgresCursor(connection.cursor()))
            connection.execute("COMMIT")
        except BaseException:
            connection.close()
            raise
        return connection


class Impatient(psycopg.Connection[Any]):
    """A connection that breaks when the server takes what is said to it, and says nothing."""

    def wait(self, gen: PQGen[T], *arguments: Any, **keywords: Any) -> T:
        """Wait for an answer, as long as it may take."""
        return super().wait(self._within(gen, time.monotonic() + MOST_SECONDS), *arguments, **keywords)

    def _within(self, gen: PQGen[T], give_up: float) -> PQGen[T]:
        """The same steps, which end in time."""
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if not ready and time.monotonic() > give_up:
                    self.pgconn.finish()  # it is of no use any more: nobody knows what would come next
                    raise psycopg.OperationalError(f"the server has not answered within {MOST_SECONDS:g} seconds")
                wanted = gen.send(ready)
        except StopIteration as end:
            found: T = end.value
            return found


class PostgresCursor:
    """A cursor that takes question marks for values."""

    def __init__(self, cursor: "psycopg.Cursor[Any]") -> None:
        self._cursor = cursor
        self.fetchone: Callable[[], Any] = cursor.fetchone
        self.fetchall: Callable[[], list[Any]] = cursor.fetchall

    def execute(self, statement: str, values: Sequence[Any] = ()) -> None:
        """Run a statement."""
        self._cursor.execute(statement.replace("?", "%s"), values)

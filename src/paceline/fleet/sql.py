"""A store in an SQL database: the statements, which are the same for every engine, and the steps between them."""

import json
import re
import secrets
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import resources
from threading import RLock
from typing import Any, Protocol, TypeVar

from paceline import checks
from paceline.errors import FleetExists, InvalidValue, PacelineError, UnknownFleet, UnknownName
from paceline.fleet import protocol
from paceline.fleet.documents import as_text, read_account, read_row, write_account, write_row
from paceline.fleet.lives import parts_of
from paceline.fleet.protocol import Account, Answer, Hello, Row, Sync
from paceline.fleet.settings import (
    account_for,
    canonical,
    check_change,
    config_of,
    describe,
    hourly_of,
    rehearse,
)
from paceline.fleet.store import Act, Store, Token, Versioned, WorkerRow, check_name
from paceline.live.forks import watch

DAY = 86_400_000  # milliseconds: how long answers are kept
NEWS_AT_ONCE = 500
MOST_ACTS = 1000
LONGEST_KEY = 1000  # characters
ORPHANED = ""  # the owner of news that is for whoever comes by

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


class SQLStore(Store):
    """The calls of a store as transactions; an engine says how one is made, and what time it is.

    One connection, used by one thread at a time. When the process is forked there is none: SQLite keeps track of its
    locks in the memory of the process, and a copy made within a transaction believes for ever that the file is locked;
    a copy of a connection to a server would be a second voice on one wire. Both sides connect anew when they need to.
    """

    for_update = ""  # what a select says that is to keep others from a row until the transaction is over

    def __init__(self) -> None:
        self._lock = RLock()
        self._connection: Any = None
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
        """One transaction of this process and thread."""
        with self._lock:
            return self._in_transaction(work)

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

    # Steps.

    def _account(self, cursor: Cursor, fleet: str, to_change: bool = True) -> tuple[Account, int]:
        """The account of a fleet, and the version of its settings; others have to wait."""
        statement = "SELECT account, version FROM fleet WHERE name = ?"
        cursor.execute(statement + self.for_update if to_change else statement, (fleet,))
        found = cursor.fetchone()
        if found is None:
            raise no_fleet(fleet)
        return read_account(found[0]), int(found[1])

    def _put_account(self, cursor: Cursor, fleet: str, account: Account) -> None:
        cursor.execute("UPDATE fleet SET account = ? WHERE name = ?", (write_account(account), fleet))

    def _row(self, cursor: Cursor, fleet: str, life: str) -> Row | None:
        cursor.execute("SELECT document FROM worker WHERE fleet = ? AND life = ?", (fleet, life))
        found = cursor.fetchone()
        return None if found is None else read_row(found[0])

    def _put_row(self, cursor: Cursor, fleet: str, row: Row) -> None:
        cursor.execute(
            "INSERT INTO worker (fleet, life, name, document) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (fleet, life) DO UPDATE SET document = excluded.document",
            (fleet, row.life, row.name, write_row(row)),
        )

    def _changes(self, cursor: Cursor, fleet: str, after: int) -> list[dict[str, Any]]:
        """The changes of the settings after a version."""
        cursor.execute("SELECT document FROM change WHERE fleet = ? AND version > ? ORDER BY version", (fleet, after))
        return [json.loads(row[0]) for row in cursor.fetchall()]

    def _write_down(self, cursor: Cursor, fleet: str, by: str, what: Mapping[str, Any]) -> None:
        """Note an act."""
        text = as_text(dict(what))
        cursor.execute("UPDATE fleet SET acts = acts + 1 WHERE name = ? RETURNING acts", (fleet,))
        found = cursor.fetchone()
        if found is None:
            raise no_fleet(fleet)
        cursor.execute(
            "INSERT INTO act (fleet, number, time, author, document) VALUES (?, ?, ?, ?, ?)",
            (fleet, found[0], self._now(cursor), by, text),
        )

    # Fleets and their settings.

    def make(self, fleet: str, settings: Mapping[str, Any], by: str) -> bool:
        """See `Store.make`."""
        check_name("fleet", fleet)
        wanted = canonical(settings)
        rehearsed = as_text(describe(rehearse(wanted, ())))

        def work(cursor: Cursor) -> bool:
            cursor.execute("SELECT settings FROM fleet WHERE name = ?", (fleet,))
            found = cursor.fetchone()
            if found is None:
                account = protocol.mint(account_for(wanted), self._now(cursor))
                cursor.execute(
                    "INSERT INTO fleet (name, settings, document, version, account, news, acts) "
                    "VALUES (?, ?, ?, 1, ?, 0, 0) ON CONFLICT (name) DO NOTHING RETURNING name",
                    (fleet, as_text(wanted), rehearsed, write_account(account)),
                )
                if cursor.fetchone() is not None:
                    self._write_down(cursor, fleet, by, {"make": wanted})
                    return True
                cursor.execute("SELECT settings FROM fleet WHERE name = ?", (fleet,))
                found = cursor.fetchone()
            there = json.loads(found[0])
            if there != wanted:
                name = next(name for name in wanted if there.get(name) != wanted[name])
                is_there, got = there.get(name), wanted[name]
                raise FleetExists(
                    f"fleet {fleet} is there with {name} = {is_there!r}; it must be the same, got {got!r}"
                )
            return False

        return self._do(work)

    def fleets(self) -> list[str]:
        """See `Store.fleets`."""

        def work(cursor: Cursor) -> list[str]:
            cursor.execute("SELECT name FROM fleet ORDER BY name")
            return [row[0] for row in cursor.fetchall()]

        return self._do(work)

    def settings(self, fleet: str) -> Versioned:
        """See `Store.settings`."""

        def work(cursor: Cursor) -> Versioned:
            cursor.execute("SELECT version, document FROM fleet WHERE name = ?", (fleet,))
            found = cursor.fetchone()
            if found is None:
                raise no_fleet(fleet)
            return Versioned(int(found[0]), json.loads(found[1]))

        return self._do(work)

    def origin(self, fleet: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """See `Store.origin`."""

        def work(cursor: Cursor) -> tuple[dict[str, Any], list[dict[str, Any]]]:
            cursor.execute("SELECT settings FROM fleet WHERE name = ?", (fleet,))
            found = cursor.fetchone()
            if found is None:
                raise no_fleet(fleet)
            return json.loads(found[0]), self._changes(cursor, fleet, 0)

        return self._do(work)

    def change(self, fleet: str, change: Mapping[str, Any], by: str) -> int:
        """See `Store.change`."""

        def work(cursor: Cursor) -> int:
            account, version = self._account(cursor, fleet)
            cursor.execute("SELECT settings FROM fleet WHERE name = ?", (fleet,))
            settings, before = json.loads(cursor.fetchone()[0]), self._changes(cursor, fleet, 0)
            known = [*settings["arms"], *(each["add"]["arm"] for each in before if "add" in each)]
            text = as_text(check_change(change, known))
            bandit = rehearse(settings, [*before, json.loads(text)])
            document = as_text(describe(bandit))
            account = protocol.set_hourly(account, hourly_of(bandit._ledger.config), self._now(cursor))
            self._put_account(cursor, fleet, account)
            version += 1
            cursor.execute(
                "UPDATE fleet SET version = ?, document = ? WHERE name = ?",
                (version, document, fleet),
            )
            cursor.execute("INSERT INTO change (fleet, version, document) VALUES (?, ?, ?)", (fleet, version, text))
            self._write_down(cursor, fleet, by, json.loads(text))
            return version

        return self._do(work)

    # Money.

    def credit(self, fleet: str, amounts: Mapping[str, int], by: str, key: str | None = None) -> None:
        """See `Store.credit`."""
        code = secrets.token_hex(16) if key is None else check_key(key)  # with a key it can be repeated

        def work(cursor: Cursor) -> None:
            account, _ = self._account(cursor, fleet)
            cursor.execute("SELECT settings FROM fleet WHERE name = ?", (fleet,))
            names = config_of(json.loads(cursor.fetchone()[0])).names
            units = check_amounts(amounts, names)
            cursor.execute(
                "INSERT INTO credit (fleet, code) VALUES (?, ?) ON CONFLICT (fleet, code) DO NOTHING RETURNING code",
                (fleet, code),
            )
            if cursor.fetchone() is None:
                return
            self._put_account(cursor, fleet, protocol.pay_in(account, units))
            self._write_down(cursor, fleet, by, {"credit": dict(amounts), "key": key})

        self._do(work)

    def account(self, fleet: str) -> Account:
        """See `Store.account`."""
        return self._do(lambda cursor: self._account(cursor, fleet, to_change=False)[0])

    # Workers.

    def hello(self, fleet: str, hello: Hello) -> Answer:
        """See `Store.hello`."""
        check_name("worker", hello.name)
        check_name("life", hello.life)

        def work(cursor: Cursor) -> Answer:
            account, version = self._account(cursor, fleet)
            now = self._now(cursor)
            account, row, answer = protocol.greet(
                protocol.mint(account, now), self._row(cursor, fleet, hello.life), hello, now
            )
            self._put_account(cursor, fleet, account)
            self._put_row(cursor, fleet, row)
            return answer._replace(version=version)

        return self._do(work)

    def sync(self, fleet: str, message: Sync) -> Answer:
        """See `Store.sync`."""

        def work(cursor: Cursor) -> Answer:
            account, version = self._account(cursor, fleet)
            now, row = self._now(cursor), self._row(cursor, fleet, message.life)
            account, row, answer = protocol.receive(protocol.mint(account, now), row, message, now)
            self._put_account(cursor, fleet, account)
            if answer.row == 0:
                return answer
            life = message.life
            mine = (fleet, life, message.cursor)
            cursor.execute("DELETE FROM inbox WHERE fleet = ? AND owner = ? AND number <= ?", mine)
            if row is None:
                cursor.execute("DELETE FROM worker WHERE fleet = ? AND life = ?", (fleet, life))
                self._leave_estate(cursor, fleet, message)
                self._orphan(cursor, fleet, life)
                return answer._replace(version=version)
            self._put_row(cursor, fleet, row)
            cursor.execute("UPDATE inbox SET owner = ? WHERE fleet = ? AND owner = ?", (life, fleet, ORPHANED))
            statement = "SELECT number, document FROM inbox WHERE fleet = ? AND owner = ? ORDER BY number LIMIT ?"
            cursor.execute(statement, (fleet, life, NEWS_AT_ONCE))
            news = tuple([(int(number), json.loads(text)) for number, text in cursor.fetchall()])
            changes = self._changes(cursor, fleet, message.version) if message.version < version else []
            return answer._replace(version=version, changes=tuple(changes), news=news)

        return self._do(work)

    def _leave_estate(self, cursor: Cursor, fleet: str, message: Sync) -> None:
        """Keep what a life has left open; news of it that has come meanwhile counts at once."""
        for number, units in message.estate.items():
            cursor.execute(
                "INSERT INTO estate (fleet, life, number, document) VALUES (?, ?, ?, ?)",
                (fleet, message.life, number, as_text(units)),
            )
        cursor.execute("SELECT document FROM inbox WHERE fleet = ? AND owner = ?", (fleet, message.life))
        for (text,) in cursor.fetchall():
            self._settle_estate(cursor, fleet, message.life, json.loads(text))

    def _settle_estate(self, cursor: Cursor, fleet: str, life: str, news: Mapping[str, Any]) -> None:
        """News of a decision that was left open: what it did not cost goes to the pool."""
        named = parts_of(news.get("id"))
        if named is None:
            return
        place = (fleet, life, named[1])
        cursor.execute("SELECT document FROM estate WHERE fleet = ? AND life = ? AND number = ?", place)
        found = cursor.fetchone()
        if found is None:
            return
        cursor.execute("SELECT settings FROM fleet WHERE name = ?", (fleet,))
        charged = charge_of(news, json.loads(cursor.fetchone()[0]), tuple(json.loads(found[0])))
        if charged is None:
            return
        cursor.execute("DELETE FROM estate WHERE fleet = ? AND life = ? AND number = ?", place)
        account, _ = self._account(cursor, fleet)
        account = protocol.settle_estate(account, tuple(json.loads(found[0])), charged)
        self._put_account(cursor, fleet, account)

    def _orphan(self, cursor: Cursor, fleet: str, life: str) -> None:
        """The news of a worker that is no more is for whoever comes by."""
        cursor.execute("UPDATE inbox SET owner = ? WHERE fleet = ? AND owner = ?", (ORPHANED, fleet, life))

    def send(self, fleet: str, owner: str, news: Mapping[str, Any]) -> None:
        """See `Store.send`."""
        check_name("owner", owner)
        text = as_news(news)

        def work(cursor: Cursor) -> None:
            cursor.execute("UPDATE fleet SET news = news + 1 WHERE name = ? RETURNING news", (fleet,))
            found = cursor.fetchone()
            if found is None:
                raise no_fleet(fleet)
            row = self._row(cursor, fleet, owner)
            receiver = ORPHANED if row is None or row.closed else owner
            if row is None:
                self._settle_estate(cursor, fleet, owner, news)
            cursor.execute(
                "INSERT INTO inbox (fleet, number, owner, document) VALUES (?, ?, ?, ?)",
                (fleet, found[0], receiver, text),
            )

        self._do(work)

    def workers(self, fleet: str) -> list[WorkerRow]:
        """See `Store.workers`."""

        def work(cursor: Cursor) -> list[WorkerRow]:
            self._account(cursor, fleet, to_change=False)
            cursor.execute("SELECT document FROM worker WHERE fleet = ?", (fleet,))
            rows = [read_row(row[0]) for row in cursor.fetchall()]
            return [shown(row) for row in sorted(rows, key=lambda row: row.number)]

        return self._do(work)

    def close_worker(self, fleet: str, worker: str, life: str, by: str) -> None:
        """See `Store.close_worker`."""

        def work(cursor: Cursor) -> None:
            account, _ = self._account(cursor, fleet)
            row = self._row(cursor, fleet, life)
            if row is None or row.name != worker:
                raise UnknownName(f"worker must be one of fleet {fleet} that has not closed, got {worker!r}, {life!r}")
            account, row = protocol.declare_dead(account, row)
            self._put_account(cursor, fleet, account)
            self._put_row(cursor, fleet, row)
            self._orphan(cursor, fleet, life)
            self._write_down(cursor, fleet, by, {"close": worker, "life": life})

        self._do(work)

    # Requests that come twice.

    def answer(self, fleet: str, key: str, decision: Mapping[str, Any]) -> dict[str, Any]:
        """See `Store.answer`."""
        code, text = check_key(key), as_text(dict(decision))

        def work(cursor: Cursor) -> dict[str, Any]:
            self._account(cursor, fleet, to_change=False)
            now = self._now(cursor)
            cursor.execute("DELETE FROM kept WHERE time < ?", (now - 2 * DAY,))
            cursor.execute(
                "INSERT INTO kept (fleet, code, document, time) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (fleet, code) DO NOTHING",
                (fleet, code, text, now),
            )
            cursor.execute("SELECT document FROM kept WHERE fleet = ? AND code = ?", (fleet, code))
            kept: dict[str, Any] = json.loads(cursor.fetchone()[0])
            return kept

        return self._do(work)

    def kept_answer(self, fleet: str, key: str) -> dict[str, Any] | None:
        """See `Store.kept_answer`."""
        code = check_key(key)

        def work(cursor: Cursor) -> dict[str, Any] | None:
            cursor.execute("SELECT document FROM kept WHERE fleet = ? AND code = ?", (fleet, code))
            found = cursor.fetchone()
            return None if found is None else json.loads(found[0])

        return self._do(work)

    # What operators did.

    def acts(self, fleet: str, after: int = 0, count: int = 100) -> list[Act]:
        """See `Store.acts`."""
        most = min(checks.whole("count", count, 0), MOST_ACTS)

        def work(cursor: Cursor) -> list[Act]:
            self._account(cursor, fleet, to_change=False)
            cursor.execute(
                "SELECT number, time, author, document FROM act WHERE fleet = ? AND number > ? ORDER BY number LIMIT ?",
                (fleet, after, most),
            )
            rows = cursor.fetchall()
            return [Act(int(number), int(time) / 1000.0, by, json.loads(what)) for number, time, by, what in rows]

        return self._do(work)

    def note(self, fleet: str, by: str, what: Mapping[str, Any]) -> None:
        """See `Store.note`."""
        self._do(lambda cursor: self._write_down(cursor, fleet, by, what))

    # Tokens.

    def add_token(self, digest: bytes, label: str, role: str) -> None:
        """See `Store.add_token`."""
        check_name("label", label)
        check_name("role", role)

        def work(cursor: Cursor) -> None:
            cursor.execute(
                "INSERT INTO token (label, digest, role, time) VALUES (?, ?, ?, ?) "
                "ON CONFLICT DO NOTHING RETURNING label",
                (label, digest.hex(), role, self._now(cursor)),
            )
            if cursor.fetchone() is None:
                raise InvalidValue(f"the label of a token must not be taken, nor its secret, got {label!r}")

        self._do(work)

    def tokens(self) -> list[Token]:
        """See `Store.tokens`."""

        def work(cursor: Cursor) -> list[Token]:
            cursor.execute("SELECT label, role, time, digest FROM token ORDER BY label")
            return [as_token(*row) for row in cursor.fetchall()]

        return self._do(work)

    def revoke_token(self, label: str) -> bool:
        """See `Store.revoke_token`."""

        def work(cursor: Cursor) -> bool:
            cursor.execute("DELETE FROM token WHERE label = ? RETURNING label", (label,))
            return cursor.fetchone() is not None

        return self._do(work)

    def token(self, digest: bytes) -> Token | None:
        """See `Store.token`."""

        def work(cursor: Cursor) -> Token | None:
            cursor.execute("SELECT label, role, time, digest FROM token WHERE digest = ?", (digest.hex(),))
            found = cursor.fetchone()
            return None if found is None else as_token(*found)

        return self._do(work)


def as_token(label: str, role: str, time: int, digest: str) -> Token:
    """A token as it stands in a table."""
    return Token(label, role, int(time) / 1000.0, bytes.fromhex(digest))


def charge_of(news: Mapping[str, Any], settings: Mapping[str, Any], reserved: protocol.Units) -> protocol.Units | None:
    """What a decision has cost by the news of it, in units; None if the news does not say."""
    if news.get("cancel"):
        return (0,) * len(reserved)
    if news.get("expire"):
        return reserved
    config = config_of(settings)
    try:
        costs = config.in_order("cost", news.get("cost"))
        if None in costs:
            return None
        pairs = zip(config.resources, costs, strict=True)
        return tuple([one.currency.charge(one.check_cost("a closed worker", cost, None)) for one, cost in pairs])
    except PacelineError:
        return None


def as_news(news: Mapping[str, Any]) -> str:
    """News as it stands in a table."""
    try:
        return as_text(dict(news))
    except (TypeError, ValueError) as error:
        raise InvalidValue(f"news must be of texts and finite numbers, got {news!r}: {error}") from None


def no_fleet(fleet: str) -> UnknownFleet:
    """What to say of a name that is none."""
    return UnknownFleet(f"fleet must be one that was made, got {fleet!r}")


def check_key(key: object) -> str:
    """The key of a request."""
    if not isinstance(key, str) or not 0 < len(key) <= LONGEST_KEY or "\0" in key:
        raise InvalidValue(f"key must be a text of 1 to {LONGEST_KEY} characters, got {key!r}")
    return key


def check_amounts(amounts: Mapping[str, int], names: Sequence[str]) -> protocol.Units:
    """Units to be credited, in the order of the resources."""
    unknown = [name for name in amounts if name not in names]
    if unknown or not amounts:
        got = repr(unknown[0]) if unknown else "none"
        raise InvalidValue(f"a credit must be of {', '.join(names)}, got {got}")
    return tuple([checks.whole(f"credit of {name}", amounts.get(name, 0), 0) for name in names])


def shown(row: Row) -> WorkerRow:
    """A row as an operator sees it."""
    line = protocol.plus(row.minted, protocol.minus(row.granted, row.returned))
    return WorkerRow(
        name=row.name,
        life=row.life,
        seen=row.seen / 1000.0,
        rounds=row.rounds,
        spent=row.spent,
        reserved=row.reserved,
        headroom=protocol.minus(line, protocol.plus(row.spent, row.reserved)),
        granted=row.granted,
        returned=row.returned,
        version=row.version,
        closed=row.closed,
        earned=row.earned,
    )

"""A store in an SQL database: the statements, which are the same for every engine, and the steps between them."""

import json
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from paceline import checks
from paceline.errors import FleetExists, InvalidValue, PacelineError, UnknownName
from paceline.fleet import protocol
from paceline.fleet.documents import as_text, read_account, read_row, write_account, write_row
from paceline.fleet.lives import owner_of, parts_of
from paceline.fleet.protocol import Account, Answer, Hello, Row, Sync
from paceline.fleet.records import DAY, Records, check_key, no_fleet
from paceline.fleet.settings import (
    account_for,
    canonical,
    check_change,
    config_of,
    describe,
    hourly_of,
    rehearse,
)
from paceline.fleet.store import Picture, Versioned, WorkerRow, check_name
from paceline.fleet.transactions import Cursor

NEWS_AT_ONCE = 500
MOST_UNCLAIMED = 100_000  # news of a fleet since the oldest that is kept for a worker without a row
ROWS_AT_ONCE = 1000  # in one statement; engines have their limits
ORPHANED = ""  # the owner of news that is for whoever comes by


class SQLStore(Records):
    """The calls of a store as transactions."""

    for_update = ""  # what a select says that is to keep others from a row until the transaction is over

    # Steps.

    def _account(self, cursor: Cursor, fleet: str) -> tuple[Account, int]:
        """The account of a fleet, and the version of its settings; others have to wait."""
        cursor.execute("SELECT account, version FROM fleet WHERE name = ?" + self.for_update, (fleet,))
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
                raise FleetExists(f"{fleet} is there with {name} = {is_there!r}; it must be the same, got {got!r}")
            return False

        return self._do(work)

    def fleets(self) -> list[str]:
        """See `Store.fleets`."""

        def work(cursor: Cursor) -> list[str]:
            cursor.execute("SELECT name FROM fleet ORDER BY name")
            return [row[0] for row in cursor.fetchall()]

        return self._do(work)

    def picture(self, fleet: str) -> Picture:
        """See `Store.picture`. One statement, because each of a transaction may see what others did before it."""

        def work(cursor: Cursor) -> Picture:
            cursor.execute(
                "SELECT version, document, account FROM fleet WHERE name = ? "
                "UNION ALL SELECT 0, '', document FROM worker WHERE fleet = ?",
                (fleet, fleet),
            )
            found = cursor.fetchall()
            whole = next((row for row in found if row[0]), None)  # versions are from 1
            if whole is None:
                raise no_fleet(fleet)
            version, document, account = whole
            rows = sorted([read_row(text) for number, _, text in found if not number], key=lambda row: row.number)
            return Picture(
                read_account(account), [shown(row) for row in rows], Versioned(int(version), json.loads(document))
            )

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

    def credit(self, fleet: str, amounts: Mapping[str, int], by: str, key: str | None = None) -> bool:
        """See `Store.credit`."""
        code = secrets.token_hex(16) if key is None else check_key(key)  # with a key it can be repeated

        def work(cursor: Cursor) -> bool:
            account, _ = self._account(cursor, fleet)
            cursor.execute("SELECT settings FROM fleet WHERE name = ?", (fleet,))
            names = config_of(json.loads(cursor.fetchone()[0])).names
            units = check_amounts(amounts, names)
            cursor.execute(
                "INSERT INTO credit (fleet, code, document) VALUES (?, ?, ?) ON CONFLICT (fleet, code) DO NOTHING "
                "RETURNING code",
                (fleet, code, as_text(units)),
            )
            if cursor.fetchone() is None:
                cursor.execute("SELECT document FROM credit WHERE fleet = ? AND code = ?", (fleet, code))
                check_same(key, cursor.fetchone()[0], units)
                return False
            self._put_account(cursor, fleet, protocol.pay_in(account, units))
            self._write_down(cursor, fleet, by, {"credit": dict(amounts), "key": key})
            return True

        return self._do(work)

    # Workers.

    def hello(self, fleet: str, hello: Hello) -> Answer:
        """See `Store.hello`."""
        check_name("worker", hello.name)
        check_name("life", hello.life)

        def work(cursor: Cursor) -> Answer:
            account, version = self._account(cursor, fleet)
            now, known = self._now(cursor), self._row(cursor, fleet, hello.life)
            account, row, answer = protocol.greet(protocol.mint(account, now), known, hello, now)
            self._put_account(cursor, fleet, account)
            self._put_row(cursor, fleet, row)
            if known is None:
                self._claim(cursor, fleet, hello.life)
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
            if message.heard is not None:
                self._confirm(cursor, fleet, life, message.heard)
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

    def _confirm(self, cursor: Cursor, fleet: str, life: str, heard: protocol.Heard) -> None:
        """News that was heard is gone; if the last of it is not here any more, it is gone already.

        Or this store has forgotten it (a backup was put back) and may have given its number to other news since.
        """
        mine = (fleet, life, heard.number)
        cursor.execute("SELECT document FROM inbox WHERE fleet = ? AND owner = ? AND number = ?", mine)
        found = cursor.fetchone()
        if found is not None and json.loads(found[0]).get("id") == heard.id:
            cursor.execute("DELETE FROM inbox WHERE fleet = ? AND owner = ? AND number <= ?", mine)

    def _leave_estate(self, cursor: Cursor, fleet: str, message: Sync) -> None:
        """Keep what a life has left open; news of it that has come meanwhile counts at once.

        Other news of its decisions says nothing new, and goes. News of others that are no more, which it was to learn
        from, is for the next one.
        """
        life = message.life
        left_open = [
            (fleet, life, number, as_text(left.reserved), int(left.is_told)) for number, left in message.estate.items()
        ]
        insert(cursor, "estate (fleet, life, number, document, told)", left_open)
        statement = "SELECT number, document FROM inbox WHERE fleet = ? AND owner = ? ORDER BY number"
        cursor.execute(statement, (fleet, life))
        for number, text in cursor.fetchall():
            news = json.loads(text)
            if owner_of(news.get("id")) == life and not self._settle_estate(cursor, fleet, life, news):
                cursor.execute("DELETE FROM inbox WHERE fleet = ? AND number = ?", (fleet, number))

    def _settle_estate(self, cursor: Cursor, fleet: str, life: str, news: Mapping[str, Any]) -> bool:
        """News of a decision that was left open: what it did not cost goes to the pool, each resource once.

        Whether it was open. If not, all of it was known before, and there is nothing to learn from it either.
        """
        named = parts_of(news.get("id"))
        if named is None or named[0] != life:
            return False
        place = (fleet, life, named[1])
        here = "WHERE fleet = ? AND life = ? AND number = ?"
        cursor.execute(f"SELECT document, told FROM estate {here}", place)
        found = cursor.fetchone()
        if found is None:
            return False
        cursor.execute("SELECT settings FROM fleet WHERE name = ?", (fleet,))
        left = protocol.Left(tuple(json.loads(found[0])), bool(found[1]))
        charged = charge_of(news, json.loads(cursor.fetchone()[0]), left)
        pairs = list(zip(left.reserved, charged, strict=True))
        remaining = tuple([units if cost is None else None for units, cost in pairs])
        if any(units is not None for units in remaining):
            told = int(left.is_told or news.get("reward") is not None or remaining != left.reserved)
            cursor.execute(f"UPDATE estate SET document = ?, told = ? {here}", (as_text(remaining), told, *place))
        else:
            cursor.execute(f"DELETE FROM estate {here}", place)
        account, _ = self._account(cursor, fleet)
        reserved = tuple([0 if units is None or cost is None else units for units, cost in pairs])
        account = protocol.settle_estate(account, reserved, tuple([cost or 0 for cost in charged]))
        self._put_account(cursor, fleet, account)
        return True

    def _orphan(self, cursor: Cursor, fleet: str, life: str) -> None:
        """The news of a worker that is no more is for whoever comes by."""
        cursor.execute("UPDATE inbox SET owner = ? WHERE fleet = ? AND owner = ?", (ORPHANED, fleet, life))

    def send(self, fleet: str, news: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """See `Store.send`."""
        written = [(check_name("owner", owner), one, as_news(one)) for owner, one in news]
        if not written:
            return

        def work(cursor: Cursor) -> None:
            first = self._number_news(cursor, fleet, len(written))
            rows = {owner: self._row(cursor, fleet, owner) for owner in {owner for owner, _, _ in written}}
            values: list[tuple[Any, ...]] = []
            unclaimed: list[tuple[Any, ...]] = []
            for number, (owner, one, text) in enumerate(written, first):
                row = rows[owner]
                if row is not None or self._settle_estate(cursor, fleet, owner, one):
                    values.append((fleet, number, ORPHANED if row is None or row.closed else owner, text))
                else:
                    unclaimed.append((fleet, number, owner, text))
            insert(cursor, "inbox (fleet, number, owner, document)", values)
            if unclaimed:
                self._put_aside(cursor, unclaimed)

        self._do(work)

    def _number_news(self, cursor: Cursor, fleet: str, count: int) -> int:
        """The first of so many new numbers of news; nobody else gets any meanwhile."""
        cursor.execute("UPDATE fleet SET news = news + ? WHERE name = ? RETURNING news", (count, fleet))
        found = cursor.fetchone()
        if found is None:
            raise no_fleet(fleet)
        return int(found[0]) - count + 1

    def _put_aside(self, cursor: Cursor, news: Sequence[tuple[Any, ...]]) -> None:
        """Keep news of workers that have no row: one may have begun while the store was away, and say hello later.

        Most of it is of workers that have closed, and says nothing new. It goes after some days, or when there is much
        of it. Rows of other fleets are theirs to clear up: nobody keeps those from us while we hold our own.
        """
        now, (fleet, last, *_) = self._now(cursor), news[-1]
        insert(cursor, "unclaimed (fleet, number, owner, document, time)", [(*one, now) for one in news])
        cursor.execute("DELETE FROM unclaimed WHERE fleet = ? AND time < ?", (fleet, now - 2 * DAY))
        cursor.execute("DELETE FROM unclaimed WHERE fleet = ? AND number <= ?", (fleet, last - MOST_UNCLAIMED))

    def _claim(self, cursor: Cursor, fleet: str, life: str) -> None:
        """A worker has said hello: news of it that came before is for it."""
        mine = (fleet, life)
        cursor.execute("SELECT document FROM unclaimed WHERE fleet = ? AND owner = ? ORDER BY number", mine)
        texts = [text for (text,) in cursor.fetchall()]
        if texts:
            first = self._number_news(cursor, fleet, len(texts))
            rows = [(fleet, number, life, text) for number, text in enumerate(texts, first)]
            insert(cursor, "inbox (fleet, number, owner, document)", rows)
            cursor.execute("DELETE FROM unclaimed WHERE fleet = ? AND owner = ?", mine)

    def close_worker(self, fleet: str, worker: str, life: str, by: str) -> None:
        """See `Store.close_worker`."""

        def work(cursor: Cursor) -> None:
            account, _ = self._account(cursor, fleet)
            row = self._row(cursor, fleet, life)
            if row is None or row.name != worker:
                raise UnknownName(f"worker must be one of {fleet} that has not closed, got {worker!r}, {life!r}")
            account, row = protocol.declare_dead(account, row)
            self._put_account(cursor, fleet, account)
            self._put_row(cursor, fleet, row)
            self._orphan(cursor, fleet, life)
            self._write_down(cursor, fleet, by, {"close": worker, "life": life})

        self._do(work)


def insert(cursor: Cursor, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Put many rows into a table in a few statements: each is a way to the server and back, for which others wait."""
    for first in range(0, len(rows), ROWS_AT_ONCE):
        part = rows[first : first + ROWS_AT_ONCE]
        places = ", ".join([f"({', '.join('?' * len(part[0]))})"] * len(part))
        cursor.execute(f"INSERT INTO {table} VALUES {places}", [value for row in part for value in row])


def charge_of(news: Mapping[str, Any], settings: Mapping[str, Any], left: protocol.Left) -> tuple[int | None, ...]:
    """What a decision has cost by the news of it, in units; None where the news does not say, or it was known.

    A decision of which a part of the outcome is known cannot be cancelled any more.
    """
    nothing = (None,) * len(left.reserved)
    if news.get("cancel"):
        return nothing if left.is_told else (0,) * len(left.reserved)
    if news.get("expire"):
        return left.reserved
    config = config_of(settings)
    charged: list[int | None] = []
    try:
        costs = config.in_order("cost", news.get("cost"))
        for one, cost, reserved in zip(config.resources, costs, left.reserved, strict=True):
            if cost is None or reserved is None:
                charged.append(None)
            else:
                units = one.currency.charge(one.check_cost("a closed worker", cost, None))
                charged.append(units if news.get("overrun") else min(units, reserved))
    except PacelineError:
        return nothing
    return tuple(charged)


def as_news(news: Mapping[str, Any]) -> str:
    """News as it stands in a table."""
    try:
        return as_text(dict(news))
    except (TypeError, ValueError) as error:
        raise InvalidValue(f"news must be of texts and finite numbers, got {news!r}: {error}") from None


def check_amounts(amounts: Mapping[str, int], names: Sequence[str]) -> protocol.Units:
    """Units to be credited, in the order of the resources."""
    unknown = [name for name in amounts if name not in names]
    if unknown or not amounts:
        got = repr(unknown[0]) if unknown else "none"
        raise InvalidValue(f"a credit must be of {', '.join(names)}, got {got}")
    return tuple([checks.whole(f"credit of {name}", amounts.get(name, 0), 0) for name in names])


def check_same(key: str | None, before: str | None, units: protocol.Units) -> None:
    """Refuse a credit that has come in before with another amount: whoever sends it must not believe it came in."""
    if before is not None and tuple(json.loads(before)) != units:
        raise InvalidValue(f"a credit with the key {key!r} must be of the same amount again, got another")


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

"""What a store keeps beside the books of its fleets: answers to requests that may come again, acts, tokens."""

import json
from collections.abc import Mapping
from typing import Any

from paceline import checks
from paceline.errors import InvalidValue, UnknownFleet
from paceline.fleet.documents import as_text
from paceline.fleet.store import Act, Token, check_name
from paceline.fleet.transactions import Cursor, Transactions

DAY = 86_400_000  # milliseconds: how long answers are kept
MOST_ACTS = 1000
LONGEST_KEY = 1000  # characters


class Records(Transactions):
    """Answers, acts and tokens."""

    skip_locked = ""  # what a select says that is to keep others from rows, and passes over those that others keep

    # Requests that come twice.

    def answer(self, fleet: str, key: str, decision: Mapping[str, Any]) -> dict[str, Any]:
        """See `Store.answer`."""
        code, text = check_key(key), as_text(dict(decision))

        def work(cursor: Cursor) -> dict[str, Any]:
            check_made(cursor, fleet)
            now = self._now(cursor)
            # Those who clear up at the same time must not wait for each other's rows: each may have what another wants.
            old = f"SELECT fleet, code FROM kept WHERE time < ?{self.skip_locked}"
            cursor.execute(f"DELETE FROM kept WHERE (fleet, code) IN ({old})", (now - 2 * DAY,))
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
            check_made(cursor, fleet)
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
        check_name("label", label)

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


def as_token(label: str, role: str, time: int, digest: str) -> Token:
    """A token as it stands in a table."""
    return Token(label, role, int(time) / 1000.0, bytes.fromhex(digest))


def no_fleet(fleet: str) -> UnknownFleet:
    """What to say of a name that is none."""
    return UnknownFleet(f"name must be one that was made in this store, got {fleet!r}")


def check_made(cursor: Cursor, fleet: str) -> None:
    """Refuse a fleet that nobody has made."""
    cursor.execute("SELECT 1 FROM fleet WHERE name = ?", (fleet,))
    if cursor.fetchone() is None:
        raise no_fleet(fleet)


def check_key(key: object) -> str:
    """The key of a request."""
    if not isinstance(key, str) or not 0 < len(key) <= LONGEST_KEY or "\0" in key:
        raise InvalidValue(f"key must be a text of 1 to {LONGEST_KEY} characters, got {key!r}")
    return key

"""Accounts, rows and news as JSON texts: what stands in the tables of a store."""

import json
from collections.abc import Mapping
from typing import Any

from paceline.fleet.protocol import Account, Past, Row, Sums


def as_text(document: Any) -> str:
    """A document as it stands in a table."""
    return json.dumps(document, separators=(",", ":"), allow_nan=False)


def read_sums(written: Mapping[str, list[int]]) -> Sums:
    """Sums by arm."""
    return {arm: tuple(values) for arm, values in written.items()}


def fields_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """Fields with tuples where JSON has lists."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


def write_account(account: Account) -> str:
    """An account."""
    return as_text({**account._asdict(), "past": account.past._asdict()})


def read_account(text: str) -> Account:
    """The way back from `write_account`.

    >>> from paceline.fleet.protocol import open_account
    >>> account = open_account((5, 2**70), ((1, 3), (0, 1)), (None, 100))
    >>> read_account(write_account(account)) == account
    True
    """
    written = json.loads(text)
    written["past"] = Past(**fields_of(written["past"]))
    written["sums"] = read_sums(written["sums"])
    written["hourly"] = [tuple(rate) for rate in written["hourly"]]
    return Account(**fields_of(written))


def write_row(row: Row) -> str:
    """A row."""
    return as_text({**row._asdict(), "sums": dict(row.sums)})


def read_row(text: str) -> Row:
    """The way back from `write_row`."""
    written = json.loads(text)
    written["sums"] = read_sums(written["sums"])
    return Row(**fields_of(written))

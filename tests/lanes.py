"""Which lane a test is in. In the first one are the policies below: each brings some seconds of compiling."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

FIRST = ("index", "thompson", "suak", "uniform")


def marks_of(name: str) -> Any:
    """The lane of a policy."""
    return () if name in FIRST else pytest.mark.slow


def in_lanes(table: Mapping[str, Any]) -> list[Any]:
    """The entries of a table whose keys begin with the name of a policy, each in the lane of that policy."""
    return [
        pytest.param(*(entry if isinstance(entry, tuple) else (entry,)), id=words, marks=marks_of(words.split(",")[0]))
        for words, entry in table.items()
    ]


def first_of(entries: Iterable[Any], *first: Any) -> list[Any]:
    """All entries, only those that are named in the first lane: one of several that would fail together."""
    return [pytest.param(entry, marks=() if entry in first else pytest.mark.slow) for entry in entries]

"""Which lane a test is in. In the first one are the policies below: each brings some seconds of compiling."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

FIRST = ("index", "thompson", "suak", "uniform")
# Systems of the field that share most of their text: where other policies are in the first lane, these are not.
LATER = (
    "lagrangian",
    "lagrange-bwk",
    "best-of-both-worlds",
    "replenishable",
    "exp3-six",
    "lagrange-cbwlc",
    "primal-dual-bwk",
    "queue",
    "kube",
)


def marks_of(name: str) -> Any:
    """The lane of a policy."""
    return () if name in FIRST else pytest.mark.slow


def later(names: Iterable[str]) -> list[Any]:
    """The names of policies, those of the field in the second lane."""
    return [pytest.param(name, marks=pytest.mark.slow if name in LATER else ()) for name in names]


def in_lanes(table: Mapping[str, Any]) -> list[Any]:
    """The entries of a table whose keys begin with the name of a policy, each in the lane of that policy."""
    return [
        pytest.param(*(entry if isinstance(entry, tuple) else (entry,)), id=words, marks=marks_of(words.split(",")[0]))
        for words, entry in table.items()
    ]


def first_of(entries: Iterable[Any], *first: Any) -> list[Any]:
    """All entries, only those that are named in the first lane: one of several that would fail together."""
    return [pytest.param(entry, marks=() if entry in first else pytest.mark.slow) for entry in entries]

"""Which lane a test is in. In the first one are the policies below: each brings some seconds of compiling."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

# They know the true problem, so they play where there is one: not live, and not in a log.
WITH_TRUTH = ("oracle", "control-budget")
FIRST = ("index", "thompson", "suak", "uniform")
# Systems of the field that share most of their text.
FIELD = (
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


def named_in_lanes(names: Iterable[str]) -> list[Any]:
    """The names of policies, each in its lane."""
    return [pytest.param(name, marks=marks_of(name)) for name in names]


def in_lanes(table: Mapping[str, Any]) -> list[Any]:
    """The entries of a table whose keys begin with the name of a policy, each in the lane of that policy."""
    return [
        pytest.param(*(entry if isinstance(entry, tuple) else (entry,)), id=words, marks=marks_of(words.split(",")[0]))
        for words, entry in table.items()
    ]


def first_of(entries: Iterable[Any], *first: Any) -> list[Any]:
    """All entries, only those that are named in the first lane: one of several that would fail together."""
    return [pytest.param(entry, marks=() if entry in first else pytest.mark.slow) for entry in entries]

"""The policies that are checked in the first lane: each brings some seconds of compiling. Others are in the slow one."""

from collections.abc import Mapping
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

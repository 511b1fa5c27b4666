"""Grids over any key of a table, and where in a file an error is."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from typing import Any, NamedTuple

from paceline.errors import InvalidValue, PacelineError

LONGEST_VALUE = 24  # letters in a name


@contextmanager
def at(where: str) -> Iterator[None]:
    """Errors say where in the file they are."""
    try:
        yield
    except PacelineError as error:
        raise type(error)(f"{where}: {error}") from None


def text_in(table: Mapping[str, Any], key: str, otherwise: object) -> str:
    """A name or a label: a text."""
    value = table.get(key, otherwise)
    if not isinstance(value, str) or not value:
        raise InvalidValue(f"{key} must be a text that is not empty, got {value!r}")
    return value


class Variant(NamedTuple):
    """A table at one point of its grid."""

    table: dict[str, Any]
    swept: dict[str, Any]  # what was set there
    words: str  # the same, for a name


def variants(table: dict[str, Any]) -> Iterator[Variant]:
    """The table at each point of its grid; without a grid just the table.

    A grid may reach into a table: grid.budget.money is one over the key money of the table budget.

    >>> [variant.words for variant in variants({"kind": "beta", "grid": {"a": [1, 2], "b": ["x"]}})]
    [', a=1, b=x', ', a=2, b=x']
    >>> [variant.table for variant in variants({"budget": {"calls": 1.0}, "grid": {"budget": {"money": [0.4]}}})]
    [{'budget': {'calls': 1.0, 'money': 0.4}}]
    """
    grid = table.get("grid", {})
    plain = {key: value for key, value in table.items() if key != "grid"}
    if not isinstance(grid, dict):
        raise InvalidValue(f"grid must be a table of lists, such as grid.budget = [0.1, 0.2], got {grid!r}")
    axes = dict(axes_in(grid))
    for point in product(*(enumerate(values, start=1) for values in axes.values())):
        settings = dict(zip(axes, point, strict=True))
        changed = plain
        for path, (_, value) in settings.items():
            changed = with_value(changed, path, value)
        swept = {".".join(path): value for path, (_, value) in settings.items()}
        words = [f", {'.'.join(path)}={shown(*place)}" for path, place in settings.items()]
        yield Variant(changed, swept, "".join(words))


def axes_in(grid: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], list[Any]]]:
    """The lists in a grid by the keys that lead to them."""
    for key, values in grid.items():
        path = (*above, key)
        if isinstance(values, dict) and values:
            yield from axes_in(values, path)
        elif isinstance(values, list) and values:
            yield path, values
        else:
            raise InvalidValue(f"grid.{'.'.join(path)} must be a list of values, got {values!r}")


def with_value(table: dict[str, Any], path: tuple[str, ...], value: object, above: str = "") -> dict[str, Any]:
    """A copy of a table with one more value in it, at the end of a path of keys."""
    key, *rest = path
    where = above + key
    if not rest:
        if key in table:
            raise InvalidValue(f"{where} must be given once, got it in the table and in its grid")
        return {**table, key: value}
    inside = table.get(key, {})
    if not isinstance(inside, dict):
        raise InvalidValue(f"{where} must be a table for a grid over {where}.{'.'.join(rest)}, got {inside!r}")
    return {**table, key: with_value(inside, tuple(rest), value, f"{where}.")}


def shown(place: int, value: object) -> str:
    """A value in a name; a long one by its place in the list.

    >>> shown(1, 0.25), shown(2, [0.1] * 8)
    ('0.25', 'no. 2')
    """
    short = f"{value:g}" if isinstance(value, float) else str(value)
    text = short if not isinstance(value, float) or float(short) == value else repr(value)
    return text if len(text) <= LONGEST_VALUE else f"no. {place}"

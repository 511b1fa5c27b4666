"""Keys of an experiment file: what is allowed, where an error is, and grids over any of them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from typing import Any, TypeVar

from paceline.errors import InvalidValue, PacelineError

Value = TypeVar("Value")


def at(where: str, make: Callable[[], Value]) -> Value:
    """The value, or the error with the place where it is."""
    try:
        return make()
    except PacelineError as error:
        raise type(error)(f"{where}: {error}") from None


def refuse_unknown(thing: str, table: Mapping[str, Any], known: Iterable[str]) -> None:
    """A key that means nothing is a spelling mistake, not a wish."""
    known = list(known)
    unknown = [key for key in table if key not in known]
    if unknown:
        raise InvalidValue(f"{thing} takes {', '.join(known)}; got {', '.join(unknown)}")


def tables(thing: str, given: object) -> list[dict[str, Any]]:
    """A list of tables, as [[thing]] makes one."""
    entries = [given] if isinstance(given, dict) else given
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise InvalidValue(f"{thing} must be a list of tables, written as [[{thing}]], got {given!r}")
    return entries


def variants(table: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The table for each point of its grid, and what was set there; without a grid just the table.

    >>> [swept for _, swept in variants({"kind": "beta", "grid": {"a": [1, 2], "b": ["x"]}})]
    [{'a': 1, 'b': 'x'}, {'a': 2, 'b': 'x'}]
    """
    grid = table.get("grid", {})
    plain = {key: value for key, value in table.items() if key != "grid"}
    if not isinstance(grid, dict):
        raise InvalidValue(f"grid must be a table of lists, such as grid.budget = [0.1, 0.2], got {grid!r}")
    for key, values in grid.items():
        if not isinstance(values, list) or not values:
            raise InvalidValue(f"grid.{key} must be a list of values, got {values!r}")
        if key in plain:
            raise InvalidValue(f"{key} must be given once, got it in the table and in its grid")
    for point in product(*grid.values()):
        swept = dict(zip(grid, point, strict=True))
        yield {**plain, **swept}, swept


def with_swept(name: str, swept: Mapping[str, Any]) -> str:
    """A name that says where in the grid it stands."""
    return ", ".join([name, *(f"{key}={shown(value)}" for key, value in swept.items())])


def shown(value: object) -> str:
    """A value in a name: short."""
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 24 else f"{text[:21]}..."

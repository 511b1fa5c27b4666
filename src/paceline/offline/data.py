"""A table of logged data: its columns, and its bad rows by number."""

import csv
import io
import math
import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from paceline.errors import InvalidValue, UnknownName, UnreadableFile
from paceline.text import read_text

if TYPE_CHECKING:
    import pandas as pd

Floats = npt.NDArray[np.float64]
LogLike: TypeAlias = "pd.DataFrame | Mapping[str, Sequence[Any]] | str | os.PathLike[str]"

# Enough to see what is wrong; a whole column of bad values should not fill the screen.
MOST_SHOWN = 3


@dataclass(frozen=True, eq=False)
class LogTable:
    """Columns by name, as they came. Rows are counted from 1, the heading not counted.

    >>> log_table = read_log_table({"cost": [0.5, "0.2", "much"]})
    >>> log_table.numbers("cost", "cost", 1.0)
    Traceback (most recent call last):
        ...
    paceline.errors.InvalidValue: cost in column 'cost' must be a finite number; row 3 has 'much'
    """

    columns: Mapping[str, Any]
    rows: int
    file: str = ""
    lines: Sequence[int] = ()  # of the file, one per row

    def require(self, names: Iterable[str]) -> None:
        """Refuse a table that lacks one of these columns, before any row of the others is looked at."""
        for name in names:
            if not isinstance(name, Hashable) or name not in self.columns:
                got = ", ".join(map(str, self.columns)) or "none"
                raise UnknownName(f"{self.source}a log must have a column {name!r}, got {got}")

    def column(self, name: str) -> Any:
        """The entries of a column: an array or a list."""
        self.require([name])
        values = self.columns[name]
        values = values.to_numpy() if hasattr(values, "to_numpy") else values
        one = values.ndim == 1 if isinstance(values, np.ndarray) else isinstance(values, list | tuple)
        if not one:
            raise InvalidValue(f"column {name!r} must be one list of values, got {type(values).__name__}")
        if len(values) != self.rows:
            raise InvalidValue(f"columns must have the same length, got {self.rows} and {len(values)} for {name!r}")
        return values

    def numbers(self, thing: str, name: str, most: float, *, above_zero: bool = False) -> Floats:
        """A column of numbers in [0, most], or in (0, most] with ``above_zero``."""
        thing = f"{thing} in column {name!r}"
        given = self.column(name)
        values = floats(given)
        self.refuse(f"{thing} must be a finite number", ~np.isfinite(values), lambda row: repr(plain(given[row])))
        outside = (values < 0.0) | (values > most) | (above_zero & (values == 0.0))
        rule = f"{thing} must be in {'(' if above_zero else '['}0, {most:g}]"
        self.refuse(rule, outside, lambda row: repr(float(values[row])))
        return values

    def names(self, thing: str, name: str) -> list[str]:
        """A column of names: texts or whole numbers."""
        given = self.column(name)
        found = [name_of(value) for value in given]
        nameless = np.array([not text for text in found], bool)
        rule = f"{thing} in column {name!r} must be a text or a whole number"
        self.refuse(rule, nameless, lambda row: repr(plain(given[row])))
        return found

    def refuse(self, rule: str, bad: npt.NDArray[np.bool_], shown: Callable[[int], str]) -> None:
        """Raise an error that names the first bad rows, if there are any, and shows what they hold."""
        rows = np.flatnonzero(bad)
        if not rows.size:
            return
        places = ", ".join(f"{self.place(row)} has {shown(row)}" for row in rows[:MOST_SHOWN].tolist())
        more = f", and {rows.size - MOST_SHOWN:,} more" if rows.size > MOST_SHOWN else ""
        raise InvalidValue(f"{self.source}{rule}; {places}{more}")

    def place(self, row: int) -> str:
        """Where a row is to be found."""
        return f"row {row + 1}" + (f" (line {self.lines[row]})" if self.lines else "")

    @property
    def source(self) -> str:
        """The beginning of a message about a file."""
        return f"{self.file}: " if self.file else ""


def read_log_table(log: LogLike) -> LogTable:
    """The table in a DataFrame, a mapping of columns, or a CSV file with a heading."""
    if isinstance(log, str | os.PathLike):
        return read_csv(Path(log))
    if isinstance(log, Mapping):
        return LogTable(log, next((len(values) for values in log.values() if hasattr(values, "__len__")), 0))
    if hasattr(log, "columns") and hasattr(log, "__getitem__"):  # a DataFrame; pandas need not be there to ask
        return LogTable({str(name): log[name] for name in log.columns}, len(log))
    raise InvalidValue(f"log must be a DataFrame, a mapping of columns or the path of a CSV file, got {log!r}")


def read_csv(path: Path) -> LogTable:
    """A CSV file: commas, a heading, UTF-8. Empty lines hold no row; a row must have as many fields as the heading."""
    reader = csv.reader(io.StringIO(read_text(path).removeprefix("\ufeff")), skipinitialspace=True, strict=True)
    records: list[list[str]] = []
    lines: list[int] = []
    try:
        heading = next(reader, [])
        begins = reader.line_num + 1  # a field in quotes may go on over several lines
        for record in reader:
            if record:
                records.append(record)
                lines.append(begins)
            begins = reader.line_num + 1
    except csv.Error as error:
        raise UnreadableFile(f"{path} must be a CSV file, but: line {reader.line_num}, {error}") from error
    twice = [name for name in heading if heading.count(name) > 1]
    if twice:
        raise UnreadableFile(f"{path}: names of columns must differ, got {twice[0]!r} twice")
    ragged = np.array([len(record) != len(heading) for record in records], bool)
    log_table = LogTable(dict.fromkeys(heading, ()), len(records), str(path), lines)
    rule = f"a row must have {len(heading)} fields as the heading has"
    log_table.refuse(rule, ragged, lambda row: f"{len(records[row])}")
    columns = {name: [record[at] for record in records] for at, name in enumerate(heading)}
    return LogTable(columns, len(records), str(path), lines)


def floats(values: Any) -> Floats:
    """Numbers as floats; nan where there is none.

    >>> floats(["0.5", 1, None, True]).tolist()
    [0.5, 1.0, nan, nan]
    """
    if isinstance(values, np.ndarray) and values.dtype.kind in "iuf":
        return values.astype(np.float64)
    return np.array([number(value) for value in values], np.float64)


def number(value: object) -> float:
    """A number, or the number that a text spells; nan for anything else. A truth value is no number."""
    if isinstance(value, str | Real) and not isinstance(value, bool | np.bool_):
        try:
            return float(value)
        except (ValueError, OverflowError):
            return math.nan
    return math.nan


def name_of(value: object) -> str:
    """The name that a text or a whole number spells, the same whichever table holds it; "" for anything else.

    >>> name_of("banner"), name_of(7), name_of(7.0), name_of(math.nan)
    ('banner', '7', '7', '')
    """
    if isinstance(value, str):
        return str(value)
    whole = isinstance(value, Integral) or (isinstance(value, float) and value.is_integer())
    return str(int(value)) if whole and not isinstance(value, bool) else ""  # type: ignore[call-overload]


def plain(value: Any) -> Any:
    """A NumPy scalar as Python shows it."""
    return value.item() if isinstance(value, np.generic) else value

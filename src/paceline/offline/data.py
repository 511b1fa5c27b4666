"""A table of logged data: its columns, and its bad rows by number."""

import csv
import io
import math
import os
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from paceline.errors import InvalidValue, UnknownName, UnreadableFile
from paceline.parquet import ParquetColumns
from paceline.text import read_text

if TYPE_CHECKING:
    import pandas as pd

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
LogLike: TypeAlias = "pd.DataFrame | Mapping[str, Sequence[Any]] | str | os.PathLike[str]"

# Enough to see what is wrong; a whole column of bad values should not fill the screen.
MOST_SHOWN = 3
JOURNAL_LINE = re.compile(r"[0-9a-f]{8} [\[{]")  # how a journal begins: a checksum, and an event in JSON
PARQUET = (".parquet", ".pq")  # how the names of such files end
TRUTH = {"true": 1.0, "false": 0.0}
PANDAS_MISSING = ("NAType", "NaTType")  # types of values; pandas need not be there to ask


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
    numbered: Sequence[int] = ()  # what the rows are called, where some were left out

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

    def only(self, names: Iterable[str]) -> "LogTable":
        """The table with these columns alone, each fetched once from where it came from."""
        return replace(self, columns={name: self.column(name) for name in names})

    def take(self, rows: Ints) -> "LogTable":
        """The table with these rows alone, under the numbers that they had."""
        at = rows.tolist()

        def picked(values: Any) -> Any:
            return values[rows] if isinstance(values, np.ndarray) else [values[row] for row in at]

        return replace(
            self,
            columns={name: picked(self.column(name)) for name in self.columns},
            rows=len(at),
            lines=[self.lines[row] for row in at] if self.lines else (),
            numbered=[self.number(row) for row in at],
        )

    def missing(self, name: str) -> Bools:
        """Whether a column has no value, row by row: None, nan or an empty text."""
        values = self.column(name)
        if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
            return np.isnan(values)
        return np.array([is_missing(value) for value in values], bool)

    def numbers(self, thing: str, name: str, most: float, *, above_zero: bool = False, truth: bool = False) -> Floats:
        """A column of numbers in [0, most], or in (0, most] with ``above_zero``; with ``truth`` true is 1, false 0."""
        thing = f"{thing} in column {name!r}"
        given = self.column(name)
        values = floats(given, truth)
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

    def refuse(self, rule: str, bad: Bools, shown: Callable[[int], str]) -> None:
        """Raise an error that names the first bad rows, if there are any, and shows what they hold."""
        rows = np.flatnonzero(bad)
        if not rows.size:
            return
        places = ", ".join(f"{self.place(row)} has {shown(row)}" for row in rows[:MOST_SHOWN].tolist())
        more = f", and {rows.size - MOST_SHOWN:,} more" if rows.size > MOST_SHOWN else ""
        raise InvalidValue(f"{self.source}{rule}; {places}{more}")

    def place(self, row: int) -> str:
        """Where a row is to be found."""
        return f"row {self.number(row)}" + (f" (line {self.lines[row]})" if self.lines else "")

    def number(self, row: int) -> int:
        """What a row is called."""
        return self.numbered[row] if self.numbered else row + 1

    @property
    def source(self) -> str:
        """The beginning of a message about a file."""
        return f"{self.file}: " if self.file else ""


def read_log_table(log: LogLike) -> LogTable:
    """The table in a DataFrame, a mapping of columns, or a file: CSV with a heading, packed or not, or Parquet."""
    if isinstance(log, str | os.PathLike):
        path = Path(log)
        return read_parquet(path) if path.suffix.lower() in PARQUET else read_csv(path)
    if isinstance(log, Mapping):
        return LogTable(log, next((len(values) for values in log.values() if hasattr(values, "__len__")), 0))
    if hasattr(log, "columns") and hasattr(log, "__getitem__"):  # a DataFrame; pandas need not be there to ask
        return LogTable({str(name): log[name] for name in log.columns}, len(log))
    rule = "log must be a DataFrame, a mapping of columns or the path of a CSV or Parquet file"
    raise InvalidValue(f"{rule}, got {log!r}")


def read_parquet(path: Path) -> LogTable:
    """A Parquet file; only the columns that are asked for are read."""
    columns = ParquetColumns(path)
    return LogTable(columns, columns.rows, str(path))


def read_csv(path: Path) -> LogTable:
    """A CSV file: commas, a heading, UTF-8. Empty lines hold no row; a row must have as many fields as the heading."""
    text = read_text(path).removeprefix("\ufeff")
    if JOURNAL_LINE.match(text):
        rule = f"make one of it with: paceline log {path} --csv rounds.csv"
        raise UnreadableFile(f"{path} must be a CSV or Parquet file, but it is the journal of a bandit; {rule}")
    reader = csv.reader(io.StringIO(text), skipinitialspace=True, strict=True)
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


def floats(values: Any, truth: bool = False) -> Floats:
    """Numbers as floats; nan where there is none. Truth values are numbers, 1 and 0, only with ``truth``.

    >>> floats(["0.5", 1, None, True]).tolist(), floats(["0.5", True, "false"], truth=True).tolist()
    ([0.5, 1.0, nan, nan], [0.5, 1.0, 0.0])
    """
    if isinstance(values, np.ndarray) and values.dtype.kind in ("biuf" if truth else "iuf"):
        return values.astype(np.float64)
    return np.array([number(value, truth) for value in values], np.float64)


def number(value: object, truth: bool) -> float:
    """A number, or the number that a text spells; nan for anything else."""
    if isinstance(value, bool | np.bool_):
        return float(value) if truth else math.nan
    if truth and isinstance(value, str) and value.strip().lower() in TRUTH:
        return TRUTH[value.strip().lower()]
    if isinstance(value, str | Real | Decimal):
        try:
            return float(value)
        except (ValueError, OverflowError):
            return math.nan
    return math.nan


def is_missing(value: object) -> bool:
    """Whether an entry of a table stands for no value at all. A text such as "nan" or "NA" is a value, if a bad one.

    >>> [is_missing(value) for value in (None, math.nan, " ", 0.0, False, "nan")]
    [True, True, True, False, False, False]
    """
    if isinstance(value, str):
        return not value.strip()
    if isinstance(value, float | np.floating):
        return math.isnan(value)
    return value is None or type(value).__name__ in PANDAS_MISSING


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

"""Recording: the rounds of a trial that are wanted, kept in memory or streamed to a Parquet file.

    policy, trial, round    which round
    arm                     0 .. K-1; K for a null arm that the policy wanted, -1 for a round that was skipped
    reason                  why, in the words of the policy; the guard's refusal among them
    reward, cost            what the pull brought; 0 without one. What is late counts in the round of the pull
    available               what the guard held against the largest cost of the arm: line - spent - reserved
    headroom                line - spent at the end of the round, as at the checkpoints of a run

The last three have a column per resource, as in cost_money, unless the only one has no name.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from paceline import checks
from paceline.errors import InvalidValue, PacelineError
from paceline.kernels.page import Page, new_page
from paceline.parquet import arrow, table_writer
from paceline.reports.tables import of_resources

if TYPE_CHECKING:
    import pyarrow as pa

Ints = npt.NDArray[np.int64]
Array = npt.NDArray[Any]
Rounds = range | Ints  # in their order
RecordLike = str | Sequence[int] | Ints | None  # what `read_record` takes

ALL = "all"
MOST_ROWS = 10_000_000  # in memory, of all policies and trials: about half a gigabyte with one resource
PAGE_ROWS = 2**16  # at once, on the way to a file
AMOUNTS = ("cost", "available", "headroom")  # by resource


def read_record(record: object, rounds: int) -> Rounds | None:
    """The rounds that a user wants to keep, in their order: "all", a range, or a list of them; None for none.

    >>> read_record("all", 5), read_record(range(4, 9, 2), 10), read_record([7, 3, 7], 10)
    (range(1, 6), range(4, 9, 2), array([3, 7]))
    """
    if record is None:
        return None
    if isinstance(record, str) and record == ALL:
        return range(1, rounds + 1)
    if isinstance(record, str | bytes | Mapping) or not isinstance(record, Sequence | np.ndarray) or len(record) == 0:
        raise InvalidValue(f'record must be "all", a range or a list of rounds, got {record!r}')
    if isinstance(record, range):
        ordered = record if record.step > 0 else record[::-1]
        for end in (ordered[0], ordered[-1]):
            checks.whole("each round of record", end, 1, rounds)
        return ordered
    return np.array(sorted({checks.whole("each round of record", entry, 1, rounds) for entry in record}), np.int64)


def check_size(rows: int) -> None:
    """Refuse what would not fit in memory."""
    if rows > MOST_ROWS:
        rule = f"must keep {MOST_ROWS:,} rounds at most in memory, or have a folder record_to to stream them to"
        raise InvalidValue(f"record {rule}, got {rows:,} of all policies and trials")


def empty_folder(path: str | os.PathLike[str]) -> Path:
    """A folder for the files of a run, by its full name: the trials may be played by other processes."""
    folder = Path(path).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        strange = sorted(entry.name for entry in folder.iterdir())
    except OSError as error:
        raise PacelineError(f"record_to must be a folder to write to, but {folder}: {error.strerror}") from error
    if strange:
        raise InvalidValue(f"record_to must be a new or an empty folder, got {strange[0]!r} in {folder}")
    return folder


def as_array(rounds: Rounds) -> Ints:
    """Rounds as numbers; a range of many is none until then."""
    return np.arange(rounds.start, rounds.stop, rounds.step) if isinstance(rounds, range) else rounds


@dataclass(frozen=True, eq=False)
class Record:
    """What is to be kept of a trial, and where; small to send."""

    rounds: Rounds
    place: Mapping[str, str | int]  # in which columns it says whose rounds they are
    reasons: tuple[str, ...]
    resources: tuple[str, ...]
    file: Path | None = None  # to stream to; without, the rounds stay in memory

    def compiled(self) -> "Record":
        """What needs the same machine code, and keeps nothing: the first round, in memory."""
        return replace(self, rounds=range(1, 2), file=None)


Kept = Page | Path  # rounds in memory, or the file with them


class Recorder:
    """Brings pages to a game, and takes them away when they are full."""

    def __init__(self, record: Record, rows: int, take: Callable[[Page], None]) -> None:
        self.record, self.take = record, take
        self.begin = 0  # of the present page, among the rounds that are wanted
        self.page = new_page(rows, len(record.resources))
        self.lay_out()

    def lay_out(self) -> None:
        """Write on the page which rounds are wanted next; below may be some that are over. The last page is left."""
        wanted = as_array(self.record.rounds[self.begin : self.begin + self.page.rounds.size])
        self.wanted = wanted.size
        if self.wanted:
            self.page.rounds[: self.wanted], self.page.written[0] = wanted, 0

    def reach(self, until: int) -> int:
        """How far a game may be played before the page is taken away."""
        return min(until, int(self.page.rounds[self.wanted - 1])) if self.wanted else until

    def turn(self) -> None:
        """Take the page away if it is full."""
        if self.wanted and self.page.written[0] == self.wanted:
            self.take(first_rows(self.page, self.wanted))
            self.begin += self.wanted
            self.lay_out()

    @property
    def kept(self) -> Kept:
        """Where the rounds are in the end."""
        return self.page if self.record.file is None else self.record.file


def first_rows(page: Page, rows: int) -> Page:
    """So many rows of a page; nothing is copied."""
    return Page(*(column if name == "written" else column[:rows] for name, column in page._asdict().items()))


@contextmanager
def recorder_for(record: Record | None) -> Iterator[Recorder | None]:
    """What keeps the rounds of a trial, if any are to be kept. A file is written whole or not at all."""
    if record is None:
        yield None
    elif record.file is None:
        yield Recorder(record, len(record.rounds), leave)
    else:
        if not record.file.parent.is_dir():
            rule = "must be a folder that all who play the trials can write to"
            raise PacelineError(f"{record.file.parent} {rule}, got none on this machine")
        schema = schema_of(record)
        amounts = [name for name in schema.names if schema.field(name).type == arrow().float64()]
        encodings = {"round": "DELTA_BINARY_PACKED", **dict.fromkeys(amounts, "BYTE_STREAM_SPLIT")}
        others = [name for name in schema.names if name not in encodings]
        options = {"use_dictionary": others, "column_encoding": encodings, "write_statistics": ["round"]}
        with table_writer(record.file, schema, None, **options) as write:
            yield Recorder(record, min(PAGE_ROWS, len(record.rounds)), lambda page: write(table_of(record, page)))


def leave(_: Page) -> None:
    """What is done with the one page in memory: it is the history."""


def schema_of(record: Record) -> "pa.Schema":
    """The columns of a file of history."""
    pa = arrow()
    words = pa.dictionary(pa.int32(), pa.string())
    names = {name: words if isinstance(value, str) else pa.int64() for name, value in record.place.items()}
    own = {"round": pa.int64(), "arm": pa.int32(), "reason": words, "reward": pa.float64()}
    amounts = {name: pa.float64() for thing in AMOUNTS for name in of_resources(thing, record.resources, "_")}
    return pa.schema(list((names | own | amounts).items()))


def table_of(record: Record, page: Page) -> "pa.Table":
    """A page of rounds as columns."""
    pa = arrow()
    rows = page.rounds.size

    def words(codes: Array, meanings: Sequence[str]) -> Any:
        return pa.DictionaryArray.from_arrays(codes.astype(np.int32), pa.array(meanings, pa.string()))

    columns = {
        **{
            name: words(np.zeros(rows), [value]) if isinstance(value, str) else np.full(rows, value, np.int64)
            for name, value in record.place.items()
        },
        "round": page.rounds,
        "arm": page.arm,
        "reason": words(page.reason, record.reasons),
        "reward": page.reward,
        **{
            name: np.ascontiguousarray(getattr(page, thing)[:, d])
            for thing in AMOUNTS
            for d, name in enumerate(of_resources(thing, record.resources, "_"))
        },
    }
    return pa.table(columns, schema=schema_of(record))

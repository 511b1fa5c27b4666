"""Totals as columns of a Parquet file, and back."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from paceline.errors import UnreadableFile
from paceline.experiments.holdings import Holdings
from paceline.parquet import arrow, write_tables
from paceline.problems.problem import Problem
from paceline.simulation.totals import Totals, subset

if TYPE_CHECKING:
    import pyarrow as pa

GROUP_ROWS = 2**13
HOLDINGS = b"paceline"  # the key of what a file says of itself
PER_CHECKPOINT = ("earned", "skips", "idle")


def schema(problems: Iterable[Problem]) -> "pa.Schema":
    """A row per problem, policy, trial and checkpoint: raw totals up to that round.

    Where some problem has several resources the columns by resource are lists in all rows; else they are numbers.
    """
    pa, known = arrow(), list(problems)
    several = any(len(problem.resources) > 1 for problem in known)
    amounts = pa.list_(pa.float64()) if several else pa.float64()  # by resource, in the order of the problem
    capped = any(cap < np.inf for problem in known for cap in problem.caps)
    lost = [("lost", amounts)] if capped else []  # what came in above a cap
    return pa.schema(
        [
            ("problem", pa.int32()),  # the numbers and what they stand for are in the manifest
            ("policy", pa.int32()),
            ("trial", pa.int64()),
            ("round", pa.int64()),
            ("earned", pa.float64()),
            ("spent", amounts),
            *lost,
            ("skips", pa.int64()),
            ("idle", pa.int64()),
            ("pulls", pa.list_(pa.int64())),  # one entry per arm
            ("memory", pa.list_(pa.float64())),  # what the policy itself counts, in the order of the manifest
            ("min_headroom", amounts),  # the smallest of all rounds of the trial
        ]
    )


def table_of(
    number: int, place: int, first: int, rounds: npt.NDArray[np.int64], totals: Totals, columns: "pa.Schema"
) -> "pa.Table":
    """The rows of trials of a policy on a problem, by their numbers, from the first of the trials on."""
    pa = arrow()
    count, points = totals.earned.shape
    trials = np.repeat(np.arange(first, first + count), points)
    fields = totals.memory.dtype.names or ()
    memory = np.zeros((count, points, len(fields)))
    for at, name in enumerate(fields):
        memory[..., at] = totals.memory[name]
    resources = totals.spent.shape[2:] or (1,)
    several = pa.types.is_list(columns.field("spent").type)

    def amounts(values: npt.NDArray[np.float64]) -> Any:
        return lists(values.reshape(count, points, *resources)) if several else values.ravel()

    values = {
        "problem": np.full(count * points, number, np.int32),
        "policy": np.full(count * points, place, np.int32),
        "trial": trials,
        "round": np.tile(rounds, count),
        **{name: getattr(totals, name).ravel() for name in PER_CHECKPOINT},
        "spent": amounts(totals.spent),
        "lost": amounts(totals.lost),
        "pulls": lists(totals.pulls),
        "memory": lists(memory),
        "min_headroom": amounts(np.repeat(totals.min_headroom, points, axis=0)),
    }
    return pa.table(values, schema=columns)


def lists(values: npt.NDArray[Any]) -> "pa.ListArray":
    """Entries along the last axis as one list each."""
    pa = arrow()
    *rows, width = values.shape
    offsets = width * np.arange(np.prod(rows, dtype=np.int32) + 1, dtype=np.int32)
    return pa.ListArray.from_arrays(offsets, pa.array(values.ravel()))


def groups(path: Path, wanted: Iterable[int] | None = None) -> Iterator["pa.Table"]:
    """The row groups of a file, all or those by number, one at a time."""
    pa = arrow()
    try:
        with pa.parquet.ParquetFile(path) as file:
            for number in range(file.num_row_groups) if wanted is None else wanted:
                yield file.read_row_group(number)
    except (OSError, pa.ArrowException) as error:
        raise UnreadableFile(f"{path} must be a Parquet file of a run; it is damaged or foreign") from error


def write_holdings(path: Path, tables: Iterable["pa.Table"], holds: Holdings) -> None:
    """A file with everything, that says itself what it holds."""
    told = {HOLDINGS: json.dumps(holds._asdict()).encode()}
    write_tables(path, (table.replace_schema_metadata(told) for table in tables))


def read_holdings(path: Path) -> Holdings | None:
    """What a file says that it holds; nothing if there is none, or one of an earlier version."""
    if not path.exists():
        return None
    pa = arrow()
    try:
        told = (pa.parquet.read_schema(path).metadata or {}).get(HOLDINGS)
    except (OSError, pa.ArrowException) as error:
        raise UnreadableFile(f"{path} must be a Parquet file of a run; it is damaged or foreign") from error
    return None if told is None else Holdings(**json.loads(told))


def trials_per_group(points: int) -> int:
    """Trials whose rows make up a row group: whole ones, however the work was cut."""
    return max(GROUP_ROWS // points, 1)


def regrouped(pieces: Iterable[Totals], size: int) -> Iterator[tuple[int, Totals]]:
    """The totals of trials in their order, so many at a time, each with the number of its first trial."""
    waiting: list[Totals] = []
    first = count = 0
    for piece in pieces:
        waiting.append(piece)
        count += len(piece.earned)
        while count >= size:
            whole = stacked(waiting)
            yield first, subset(whole, slice(size))
            waiting, first, count = [subset(whole, slice(size, None))], first + size, count - size
    if count:
        yield first, stacked(waiting)


def stacked(pieces: list[Totals]) -> Totals:
    """Totals of several trials and of several more as one."""
    return Totals(*(np.concatenate(parts) for parts in zip(*pieces, strict=True)))


def totals_of(tables: list["pa.Table"], points: int, resources: int, memory: np.dtype[Any]) -> Totals:
    """The totals of all trials in tables of one problem, which has so many resources, and one policy."""
    pa = arrow()
    table = pa.concat_tables(tables)
    trials = table.num_rows // points

    def column(name: str) -> npt.NDArray[Any]:
        found = table.column(name).combine_chunks()
        flat = found.flatten() if pa.types.is_list(found.type) else found
        return np.asarray(flat.to_numpy(zero_copy_only=False)).reshape(trials, points, -1)

    def amounts(name: str) -> npt.NDArray[Any]:
        return column(name)[..., 0] if resources == 1 else column(name)

    spent = amounts("spent")
    records = np.zeros((trials, points), memory)
    for number, name in enumerate(memory.names or ()):
        records[name] = column("memory")[..., number]
    return Totals(
        **{name: column(name)[..., 0] for name in PER_CHECKPOINT},
        spent=spent,
        lost=amounts("lost") if "lost" in table.column_names else np.zeros_like(spent),
        pulls=column("pulls"),
        memory=records,
        min_headroom=amounts("min_headroom")[:, -1],
    )

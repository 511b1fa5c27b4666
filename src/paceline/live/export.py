"""The rounds of a journal as a table that `paceline.replay` reads: a row for each, with what was told of it later.

The table is written in a stream. Rows come in the order of rounds as long as no decision stays open for more than so
many others; one that does comes later, when it is told, or at the end.
"""

import csv
import gzip
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, cast

from paceline.errors import InvalidValue
from paceline.files import all_or_nothing
from paceline.live.events import Ask
from paceline.live.journal import PRIVATE
from paceline.live.log import ALWAYS, Span
from paceline.live.reading import read_parts
from paceline.live.rounds import Round, Rounds, follow
from paceline.live.segments import check_replaceable
from paceline.parquet import table_of, write_tables
from paceline.policies import PolicyLike
from paceline.problems.resources import cost_columns

MOST_WAITING = 100_000  # rounds that wait for one that is open
AT_ONCE = 50_000  # rows of a row group

Row = tuple[object, ...]


def rounds_in(path: str | os.PathLike[str], rounds: Rounds) -> Iterator[Round]:
    """The rounds of a journal, with all that was ever told of them."""
    queue: deque[Round] = deque()
    late: dict[int, Round] = {}  # open for so long that others were let pass
    for _, event, over in follow(read_parts(path), rounds):
        if type(event) is Ask and rounds.last is not None:
            queue.append(rounds.last)
        for ended in over:
            if late.pop(ended.number, None) is not None:
                yield ended
        while queue and (queue[0].is_over or len(queue) > MOST_WAITING):
            first = queue.popleft()
            if first.is_over:
                yield first
            else:
                late[first.number] = first
    yield from late.values()
    yield from queue


def write_rounds(
    path: str | os.PathLike[str],
    target: Path,
    write: "Writer",
    policy: PolicyLike | None = None,
    span: Span = ALWAYS,
) -> int:
    """Write the rounds of a journal that began in a span of time to a file; gives how many."""
    check_replaceable("the table", target)
    if not target.parent.is_dir():
        raise InvalidValue(f"the table must be a file in a folder that exists, got {target}")
    rounds = Rounds(policy)
    found = rounds_in(path, rounds)
    first = list(islice(found, 1))  # now the resources are known
    columns = {
        "round": int,
        "time": float,
        "arm": str,
        "reward": float,
        **dict.fromkeys(cost_columns(rounds.resources).values(), float),
        "reason": str,
        "propensity": float,
        "key": str,
        "told_time": float,
    }
    return write(target, columns, (row_of(one) for one in chain(first, found) if one.time in span))


def row_of(one: Round) -> Row:
    """The values in the order of the columns."""
    return (
        *(one.number, one.time, one.arm, one.reward, *one.costs),
        *(one.reason, one.propensity, one.key, one.told),
    )


def write_csv(path: Path, columns: Mapping[str, type], rows: Iterable[Row]) -> int:
    """Rows as CSV, packed if the name says so, all or nothing; what is not known is empty."""
    count = 0
    with all_or_nothing(path, PRIVATE) as unfinished:
        opener = cast(Callable[..., IO[str]], gzip.open if path.suffix == ".gz" else open)
        with opener(unfinished, "wt", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            for row in rows:
                writer.writerow(row)
                count += 1
    return count


def write_parquet(path: Path, columns: Mapping[str, type], rows: Iterable[Row]) -> int:
    """Rows as Parquet, a row group at a time, all or nothing; what is not known is null."""
    count = 0

    def tables() -> Iterator[Any]:
        nonlocal count
        waiting = iter(rows)
        group = list(islice(waiting, AT_ONCE))
        yield table_of(columns, group)  # the first one may be empty: a file has its columns in any case
        while group:
            count += len(group)
            if group := list(islice(waiting, AT_ONCE)):
                yield table_of(columns, group)

    write_tables(path, tables(), PRIVATE)
    return count


Writer = Callable[[Path, Mapping[str, type], Iterable[Row]], int]

"""``paceline log``: what is in the journal of a bandit."""

import argparse
import json
import sys
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

from paceline.errors import InvalidValue

if TYPE_CHECKING:
    from paceline.live.log import Span

SUMMARY = "read, check, repair or export the journal of a bandit"
DESCRIPTION = """\
Print the events in the journal of a bandit, one line each: the number of the line, the time, what happened, the
decision and its arm, and numbers. The bandit may be running.

  paceline log bandit.journal --tail 20
  paceline log bandit.journal --since 2026-03-01 --until 2026-03-02T12:00 --json

Check all of it, segments and snapshots too. The exit code is 0 if it is whole, 1 if something is damaged:

  paceline log bandit.journal --verify

Write a table with a row for each round, which paceline replay reads; give that the largest costs of the bandit, which
are not in it (docs/replay.md). Rounds that were sat out have no arm, decisions that are open no reward or no cost:

  paceline log bandit.journal --parquet rounds.parquet

Cut a damaged journal at its first bad line, if there is no backup. What is cut off is kept in bandit.journal.cut, and
what it means for money is said. The bandit must not be running:

  paceline log bandit.journal --repair

Times are in Greenwich (UTC) unless they say otherwise.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    parser.add_argument("journal", type=Path, metavar="JOURNAL", help="the file that the bandit writes to")
    doing = parser.add_mutually_exclusive_group()
    doing.add_argument("--json", action="store_true", help="print a JSON object a line, times in seconds")
    doing.add_argument("--verify", action="store_true", help="check everything, and say what is there")
    doing.add_argument("--repair", action="store_true", help="cut it at the first bad line")
    doing.add_argument("--csv", type=Path, metavar="FILE", help="write the rounds as CSV (packed if it ends with .gz)")
    doing.add_argument("--parquet", type=Path, metavar="FILE", help="write the rounds as Parquet")
    parser.add_argument("--tail", type=int, metavar="N", help="only the last N events")
    parser.add_argument("--since", metavar="TIME", help="only what happened then or later (ISO 8601)")
    parser.add_argument("--until", metavar="TIME", help="only what happened before (ISO 8601)")
    parser.add_argument(
        "--policy", metavar="POLICY", help="a policy of your own that decided: module:Class or file.py:Class"
    )


def run(options: argparse.Namespace) -> int:
    """Do one of it; the exit code."""
    from paceline import checks

    if options.tail is not None:
        checks.whole("--tail", options.tail, 1)
    table = options.csv or options.parquet
    for name in ("tail", "since", "until"):
        if getattr(options, name) is not None and (
            options.verify or options.repair or (name == "tail" and table is not None)
        ):
            other = "--verify" if options.verify else "--repair" if options.repair else "a table"
            raise InvalidValue(f"--{name} must not be given with {other}, which is about all of the journal")
    if options.verify:
        return verify(options)
    if options.repair:
        from paceline.live.repair import repair

        print(repair(options.journal, options.policy))
    elif table is not None:
        export(options, table)
    else:
        show(options)
    return 0


def verify(options: argparse.Namespace) -> int:
    """Say what is there; 1 if something is wrong with it."""
    from paceline.live.verify import Examination

    found = Examination(options.journal, options.policy)
    print(found)
    return 0 if found.is_whole else 1


def export(options: argparse.Namespace, table: Path) -> None:
    """Write the rounds to a file."""
    from paceline.live.export import write_csv, write_parquet, write_rounds

    write = write_csv if options.csv is not None else write_parquet
    count = write_rounds(options.journal, table, write, options.policy, span_of(options))
    print(f"Written to {table}: {count:,} rounds")


def show(options: argparse.Namespace) -> None:
    """Print the events."""
    from paceline.live.log import entries_of, in_words

    span = span_of(options)
    wanted = (entry for entry in entries_of(options.journal, options.policy) if entry["time"] in span)
    for entry in wanted if options.tail is None else deque(wanted, options.tail):
        sys.stdout.write((json.dumps(entry) if options.json else in_words(entry)) + "\n")


def span_of(options: argparse.Namespace) -> "Span":
    """From when to when."""
    from paceline.live.log import Span

    given = {name: seconds_of(name, getattr(options, name)) for name in ("since", "until") if getattr(options, name)}
    return Span(**given)


def seconds_of(name: str, text: str) -> float:
    """A time in seconds, from how it is written.

    >>> seconds_of("since", "2026-03-01T12:00"), seconds_of("since", "2026-03-01T13:00+01:00")
    (1772366400.0, 1772366400.0)
    """
    from datetime import UTC, datetime

    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidValue(f"--{name} must be a time such as 2026-03-01 or 2026-03-01T12:00, got {text!r}") from None
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()

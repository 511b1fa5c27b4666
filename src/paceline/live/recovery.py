"""From a journal, and the snapshots beside it, back to the books that wrote it."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from paceline.errors import InvalidValue, PacelineError, UnreadableFile
from paceline.live import old_formats, snapshot
from paceline.live.config import notice_of, read_config
from paceline.live.events import Event
from paceline.live.events import read as read_newest
from paceline.live.journal import Damaged, Journal, Place, Read, sync_folder
from paceline.live.keeper import Keeper, Upkeep, snapshot_paths
from paceline.live.ledger import Ledger
from paceline.live.reading import NONSENSE, events_in, senseless
from paceline.live.segments import (
    FORMAT,
    LONGEST_HEADER,
    Header,
    closed_segments,
    first_header,
    has_closed_segments,
    head_of,
    header_of,
    is_line_before,
    is_unfinished,
    read_closed,
    tidy_up,
)
from paceline.policies import PolicyLike


def begin_journal(path: str | os.PathLike[str], ledger: Ledger, upkeep: Upkeep, digest: str, time: int) -> Keeper:
    """A new journal, with the settings of a bandit in its first line."""
    first = first_header(ledger.config.to_dict(), digest, time).text()  # before there is a file
    journal = Journal(path, upkeep.mode)
    try:
        if journal.size() > 0 and not is_unfinished(journal):
            raise InvalidValue(
                f"journal {path} must be a new file (Bandit.open goes on with one), got one with content"
            )
        journal.drop_torn()  # a first line that was never finished
        if has_closed_segments(journal.path):
            raise InvalidValue(f"journal {path} must be a new file, got one with closed segments beside it")
        for stale in snapshot_paths(journal.path):
            stale.unlink(missing_ok=True)  # of a journal that is gone
        journal.append(first)
        ledger.digest = digest
        if upkeep.fsync:
            journal.commit(journal.lines)
            sync_folder(journal.path)
    except BaseException:
        journal.close()
        raise
    return Keeper(journal, upkeep, 1, 0)


class Reopened(NamedTuple):
    """The books that a journal tells, what keeps the journal, and what was amiss."""

    ledger: Ledger
    keeper: Keeper
    report: str | None
    is_old: bool  # whether it is in an earlier format, in which nothing is to be written any more


class Start(NamedTuple):
    """Where reading begins."""

    ledger: Ledger
    segment: int
    place: Place
    snapshot_lines: int = 0
    summed_up: tuple[int, int] = (0, 0)  # the segments that the last snapshot and the one before are in, if known


def reopen_journal(path: str | os.PathLike[str], policy: PolicyLike | None, upkeep: Upkeep, wait: float) -> Reopened:
    """Read a journal, with the help of a snapshot if there is one."""
    if not os.path.exists(path):  # which has an answer for names that are too long, too
        raise UnreadableFile(f"journal {path} must exist to be opened; Bandit(..., journal=path) begins one")
    journal = Journal(path, upkeep.mode, wait)
    try:
        header = header_of(journal.head(LONGEST_HEADER), journal.path)
        if header is None:
            raise UnreadableFile(
                f"journal {path} has no whole first line: it was never begun, or a loss of power has eaten what was "
                "not synced; Bandit(..., journal=path) may begin it anew"
            )
        tidy_up(journal.path, header.segment)
        is_old = header.format < FORMAT
        reports = [f"journal {path} was {old_formats.WRITTEN_EARLIER}"] if is_old else []
        closed = closed_segments(journal.path) if header.segment > 1 else {}
        start = from_snapshot(journal, header, closed, policy, reports) or from_the_start(
            journal, header, closed, policy
        )
        follow_lines(journal, header, closed, start, reports)
        notice = notice_of(policy, start.ledger.config.policy)
        reports += [] if notice is None else [notice]
    except BaseException:
        journal.close()
        raise
    keeper = Keeper(journal, upkeep, header.segment, header.before.lines, start.snapshot_lines, start.summed_up)
    return Reopened(start.ledger, keeper, "; ".join(reports) or None, is_old)


def from_the_start(journal: Journal, header: Header, closed: dict[int, Path], policy: PolicyLike | None) -> Start:
    """An empty ledger with the settings in the first line of the first segment."""
    first = header
    if header.segment > 1:
        if 1 not in closed:
            raise UnreadableFile(
                f"journal {journal.path} begins with segment {min(closed, default=header.segment)}, and no snapshot "
                "that can be used stands for what came before"
            )
        first = closed_header(closed[1])
    return Start(new_ledger(first, journal.path, policy), 1, Place())


def new_ledger(first: Header, path: Path, policy: PolicyLike | None) -> Ledger:
    """Empty books, with the settings in the first line of the first segment."""
    try:
        ledger = Ledger(read_config(old_formats.settings_of_today(first.format, first.settings), policy))
    except (KeyError, TypeError, AttributeError) as error:
        raise UnreadableFile(f"journal {path} has settings that do not make sense: {error!r}") from error
    ledger.given_policy, ledger.digest = policy, first.digest
    return ledger


def notice_of_edit(ledger: Ledger, digest: str) -> str | None:
    """What is to be said if a journal was written with other code of its policy than today's."""
    if ledger.digest in ("", digest):
        return None
    name = ledger.config.policy.name
    return f"the code of policy {name} was edited since: its beliefs may differ from those before"


def closed_header(path: Path) -> Header:
    """The first line of a closed segment."""
    header = header_of(head_of(path), path)
    if header is None:
        raise UnreadableFile(f"journal {path} has no whole first line")
    return header


def from_snapshot(
    journal: Journal, header: Header, closed: dict[int, Path], policy: PolicyLike | None, reports: list[str]
) -> Start | None:
    """The books in the last snapshot that can be trusted; None if there is none, or only one as old as the journal."""
    if header.format < FORMAT:
        return None
    last, before = snapshot_paths(journal.path)
    is_whole = (
        header.segment == 1 or 1 in closed
    )  # from all events a policy that has changed learns more than from sums
    for path in (last, before):
        if not path.exists():
            continue
        try:
            body = snapshot.read_file(path)
            segment, place = body["journal"][0], Place(*body.pop("journal")[1:])
            if not has_place(journal, header, closed, segment, place):
                raise UnreadableFile(f"{path} does not belong to the journal as it is")
            ledger = snapshot.parse_ledger(body, path, policy, may_forget=not is_whole)
            ledger.digest = body.get("digest", header.digest)  # earlier ones were written without
            summed_up = (segment, 0) if path == last else (0, segment)
            return Start(ledger, segment, place, place.lines, summed_up)
        except (UnreadableFile, KeyError, TypeError, IndexError) as error:
            reports.append(f"snapshot was not used: {error}")
    return None


def has_place(journal: Journal, header: Header, closed: dict[int, Path], segment: int, place: Place) -> bool:
    """Whether the line before a place is the one that it was noted after."""
    path = journal.path if segment == header.segment else closed.get(segment)
    return path is not None and is_line_before(path, place)


def follow_lines(journal: Journal, header: Header, closed: dict[int, Path], start: Start, reports: list[str]) -> None:
    """Let everything happen again that is in the lines after the start."""
    place = start.place
    for segment in range(start.segment, header.segment + 1):
        if segment < header.segment and segment not in closed:
            raise UnreadableFile(f"journal {journal.path} lacks its closed segment {segment}")
        first = header if segment == header.segment else closed_header(closed[segment])
        if segment > start.segment or place == Place():
            if place != Place() and first.before != Place(0, place.crc, place.lines):
                raise UnreadableFile(f"journal {journal.path}: segment {segment} does not follow the one before it")
            place = first.before
        read = read_newest if first.format == FORMAT else old_formats.reader_for(first.format, start.ledger)
        parts = journal.read_on(place) if segment == header.segment else read_closed(closed[segment], place)
        for found in parts:
            happen(start.ledger, read, found, journal.path)
            place = found.end
        if found.torn and segment < header.segment:
            raise UnreadableFile(f"journal {closed[segment]} ends in the middle of a line")
        if found.torn:
            journal.drop_torn()
            reports.append(
                f"journal {journal.path}: {found.torn} bytes after line {found.end.lines} are not a whole line; the "
                "event was cut off by a crash, and is dropped"
            )


def happen(ledger: Ledger, read: Callable[[Any], Event], found: Read, path: Path) -> None:
    """Let the events in some lines happen again."""
    line = 0
    try:
        for line, event in events_in(found, read, path):  # noqa: B007  # the error names it
            ledger.apply(event)
    except Damaged:
        raise
    except (PacelineError, *NONSENSE) as error:
        raise senseless(path, line, error) from error

"""From a journal, and the snapshot beside it, back to the books that wrote it."""

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from paceline.errors import InvalidValue, PacelineError, UnreadableFile
from paceline.live import snapshot
from paceline.live.config import read_config
from paceline.live.journal import DIGITS, Journal, Place, Read, sync_folder
from paceline.live.ledger import Ledger
from paceline.policies import PolicyLike

TITLE, FORMAT = "paceline journal", 2
TITLE_BYTES = f'["{TITLE}"'.encode()
SNAPSHOT_EVERY = 100_000


def quote(text: str) -> str:
    """A text as JSON."""
    return json.dumps(text)


def snapshot_path(journal: Journal) -> Path:
    """The snapshot stands beside its journal."""
    return journal.path.with_name(f"{journal.path.name}.snapshot")


def begin_journal(path: str | os.PathLike[str], ledger: Ledger, sync_each: bool) -> Journal:
    """A new journal, with the settings of a bandit in its first line."""
    first = json.dumps([TITLE, FORMAT, ledger.config.to_dict()])  # before there is a file
    journal = Journal(path, sync_each)
    try:
        if journal.size() > 0 and not is_unfinished(journal):
            raise InvalidValue(
                f"journal {path} must be a new file (Bandit.open goes on with one), got one with content"
            )
        journal.drop_torn()  # a first line that was never finished
        snapshot_path(journal).unlink(missing_ok=True)  # of a journal that is gone
        journal.append(first)
        if sync_each:
            sync_folder(journal.path)
    except BaseException:
        journal.close()
        raise
    return journal


def is_unfinished(journal: Journal) -> bool:
    """Whether a file is just the beginning of a first line of ours, as a crash may leave it, and nobody else's."""
    start, title = journal.head(DIGITS + 1 + len(TITLE_BYTES)), b" " + TITLE_BYTES
    digits, rest = start[:DIGITS], start[DIGITS:]
    ours = all(digit in b"0123456789abcdef" for digit in digits) and title.startswith(rest) and len(rest) > len(b' ["')
    return ours and not journal.read().texts


class Reopened(NamedTuple):
    """The books that a journal tells, the journal ready for more, and what was amiss."""

    ledger: Ledger
    journal: Journal
    snapshot_lines: int  # lines that the snapshot stands for
    report: str | None


def reopen_journal(path: str | os.PathLike[str], policy: PolicyLike | None, sync_each: bool) -> Reopened:
    """Read a journal, with the help of its snapshot if there is one."""
    if not Path(path).exists():
        raise UnreadableFile(f"journal {path} must exist to be opened; Bandit(..., journal=path) begins one")
    journal = Journal(path, sync_each)
    try:
        reports: list[str] = []
        found_there = from_snapshot(journal, policy, reports)
        ledger, found = found_there or from_the_start(journal, policy)
        snapshot_lines = found.end.lines - len(found.texts) if found_there else 0
        for number, event in enumerate(found.events(), start=found.end.lines - len(found.texts) + 1):
            happen(ledger, event, number, journal.path)
        ledger.catch_up()
        if found.torn:
            journal.drop_torn()
            reports.append(
                f"journal {path}: {found.torn} bytes after line {found.end.lines} were torn by a crash, never "
                "acknowledged, and are dropped"
            )
    except BaseException:
        journal.close()
        raise
    return Reopened(ledger, journal, snapshot_lines, "; ".join(reports) or None)


def from_the_start(journal: Journal, policy: PolicyLike | None) -> tuple[Ledger, Read]:
    """An empty ledger with the settings in the first line, and all events after it."""
    found = journal.read()
    if not found.texts:
        raise UnreadableFile(
            f"journal {journal.path} has no whole first line: nothing was ever acknowledged in it, and "
            "Bandit(..., journal=path) may begin it anew"
        )
    try:
        first = json.loads(found.texts[0])
    except ValueError:
        first = None
    match first:
        case [title, version, *_] if title == TITLE and version != FORMAT:
            raise UnreadableFile(f"journal {journal.path} has format {version}; this version reads {FORMAT}")
        case [title, _, dict() as settings] if title == TITLE:
            return Ledger(read_config(settings, policy)), found._replace(texts=found.texts[1:])
    raise UnreadableFile(f"{journal.path} must be a journal of a Bandit; its first line is not that of one")


def from_snapshot(journal: Journal, policy: PolicyLike | None, reports: list[str]) -> tuple[Ledger, Read] | None:
    """The books in the snapshot and the events after it; None if there is no snapshot that can be trusted."""
    path = snapshot_path(journal)
    if not path.exists():
        return None
    try:
        body = snapshot.read_file(path)
        place = Place(*body.pop("journal", ()))
        if not journal.has(place):
            raise UnreadableFile(f"{path} does not belong to the journal as it is")
        return snapshot.parse_ledger(body, path, policy), journal.read(place)
    except UnreadableFile as error:
        reports.append(f"snapshot was not used: {error}")
        return None


def write_snapshot(journal: Journal, ledger: Ledger) -> None:
    """The state after the last line. The journal is synced first: a snapshot is never ahead of it."""
    journal.sync()
    snapshot.write_file(snapshot_path(journal), {**snapshot.describe_ledger(ledger), "journal": list(journal.end)})


def happen(ledger: Ledger, event: Any, number: int, path: Path) -> None:
    """Let one event of a journal happen again."""
    try:
        match event:
            case ["ask", slot, reason, tag]:
                ledger.follow((slot, reason, tag))
            case ["ask", slot, reason, tag, deadline]:
                ledger.follow((slot, reason, tag), deadline)
            case ["failed"]:
                ledger.fail_again()
            case ["tell", decision, reward, *costs]:
                ledger.tell(decision, reward, tuple(costs))
            case ["cancel", decision]:
                ledger.cancel(decision)
            case ["expire", decision]:
                ledger.expire(decision)
            case ["credit", over, *amounts]:
                ledger.credit(tuple(amounts), over)
            case ["add", name, *max_costs]:
                ledger.add(name, tuple(max_costs))
            case ["status", name, status]:
                ledger.set_status(name, status)
            case _:
                raise UnreadableFile(f"{event!r} is not an event")
    except (PacelineError, KeyError, TypeError, ValueError, IndexError) as error:
        raise UnreadableFile(f"journal {path} does not make sense in line {number}: {error}") from error

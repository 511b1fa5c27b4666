"""A damaged journal, cut at its first bad line. What is cut off is kept in a file beside it.

This is the last resort: a backup of the file is better. It changes what the bandit knows, not what has happened: what
the lost lines had spent is spent, and the books do not know it any more.
"""

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from paceline.errors import UnreadableFile
from paceline.live.events import NAMES, Ask, Cancel, Event, Expire, Tell
from paceline.live.journal import DIGITS, PRIVATE, Damaged, Journal, sync_folder
from paceline.live.log import amounts
from paceline.live.reading import NONSENSE, open_at
from paceline.live.rounds import Rounds
from paceline.live.segments import Header, is_line_before, read_closed
from paceline.live.verify import Examination
from paceline.policies import PolicyLike

MOST_NAMED = 10  # ids that are listed


class Cut(NamedTuple):
    """Where a journal is to be cut."""

    line: int  # the first that goes
    rounds: int  # that stay


def repair(path: str | os.PathLike[str], policy: PolicyLike | None = None) -> str:
    """Cut a journal at its first bad line; gives what was done and what it means."""
    journal = Path(path)
    if not journal.exists():
        raise UnreadableFile(f"journal {path} must be a file that exists")
    owned = Journal(journal)  # nobody else may have it meanwhile
    try:
        found = Examination(journal, policy)
        if found.damage is None:
            torn = f"; Bandit.open drops the {found.torn} bytes of a line that was cut off" if found.torn else ""
            return f"{path}: nothing to repair{torn}"
        file, header, _ = open_at(journal)
        file.close()
        place = place_to_cut(found, header)
        if place is None:
            return (
                f"{path}: nothing to cut, although {found.damage}. A snapshot stands for the damaged line, and "
                "Bandit.open goes on from there: only the log of what came before has a hole"
            )
        return "\n".join(cut(found, header, place))
    finally:
        owned.close()


def place_to_cut(found: Examination, header: Header) -> Cut | None:
    """The first line that is in the way of opening the journal; None if a snapshot stands for all that is damaged."""
    path, damage = found.path, found.damage
    line = damage.line if isinstance(damage, Damaged) else 0
    for kept in reversed(found.snapshots):
        is_behind = kept.body is not None and kept.segment == header.segment and kept.place.lines >= line
        if is_behind and kept.body is not None and is_line_before(path, kept.place):
            rounds, read = int(kept.body["rounds"]), found.rounds.reader(header.format)
            try:
                for part in read_closed(path, kept.place):
                    rounds += sum(type(event) is Ask for event in readable(part.texts, read))
            except Damaged as later:
                return Cut(later.line, rounds)
            return None
    if not isinstance(damage, Damaged) or damage.path != path or line <= header.before.lines + 1:
        raise UnreadableFile(
            f"{damage}. Nothing was cut: all lines after it, in the segments that follow, would be lost with it; "
            "bring the file back from a backup"
        )
    return Cut(line, found.rounds.number if found.ledger is None else found.ledger.rounds)


def cut(found: Examination, header: Header, place: Cut) -> Iterator[str]:
    """Do it, and say what it means. The copy is on the disk before anything is cut."""
    path, rounds = found.path, found.rounds
    target = free_name(path)
    with path.open("rb+") as file:
        for _ in range(place.line - 1 - header.before.lines):
            file.readline()
        end = file.tell()
        with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE), "wb") as copy:
            shutil.copyfileobj(file, copy)
            copy.flush()
            os.fsync(copy.fileno())
        sync_folder(target)
        file.truncate(end)
        os.fsync(file.fileno())
    for kept in found.snapshots:
        if kept.place.lines >= place.line:  # it stands for lines that are gone
            kept.path.replace(free_name(kept.path))
    with target.open("rb") as lines:
        texts = [line[DIGITS + 1 :] for line in lines]
    events = list(readable(texts, rounds.reader(header.format)))
    yield f"{path}: cut before line {place.line}, since {found.damage}"
    yield f"kept       the {len(texts)} lines that were cut off are in {target.name}"
    yield from what_it_means(events, len(texts) - len(events), place.rounds, rounds)


def free_name(path: Path) -> Path:
    """A name for what is cut off, which no earlier repair has taken."""
    numbers = ("", *(f".{number}" for number in range(2, 1000)))
    return next(name for end in numbers if not (name := path.with_name(f"{path.name}.cut{end}")).exists())


def readable(texts: Iterable[bytes], read: Callable[[list[Any]], Event]) -> Iterator[Event]:
    """The events in some lines, as far as they can be read."""
    for text in texts:
        try:
            yield read(json.loads(text))
        except NONSENSE:
            continue


def what_it_means(events: list[Event], unreadable: int, before: int, rounds: Rounds) -> Iterator[str]:
    """What is lost with some events after so many rounds, and what that means for money."""
    counts = Counter(NAMES[type(event)] for event in events)
    lost = ", ".join(f"{count} {kind}" for kind, count in counts.most_common()) or "nothing that can be read"
    yield f"lost       {lost}{f'; {unreadable} lines cannot be read' if unreadable else ''}"
    begun = counts["ask"]
    if begun:
        pulls = [before + 1 + at for at, ask in enumerate(only(events, Ask)) if ask.slot >= 0]
        spent = [sum(costs) for costs in zip(*known_costs(events, before, len(rounds.resources)), strict=True)]
        yield (
            f"money      rounds {before + 1} to {before + begun} are unknown now, and their ids will be given again; "
            f"what {ids(pulls, rounds)} have spent ({amounts(rounds.by_name(spent))} by the lines that are cut off) "
            "is not in the books: take it off with Bandit.debit"
        )
    reopened = sorted({number for number in touched(events) if number <= before})
    if reopened:
        yield (
            f"money      {ids(reopened, rounds)} are open again: what they have spent is unknown to the books, and "
            "their largest costs stay reserved until they are told again, cancelled or expire"
        )
    again = [kind for kind in ("credit", "add", "status", "set", "observe", "merge") if counts[kind]]
    if again:
        yield f"again      what was changed in the lost lines must be done again: {', '.join(again)}"
    if unreadable:
        yield "careful    the lines that cannot be read may have held more of all this"


def only(events: Iterable[Event], kind: type[Any]) -> Iterator[Any]:
    """The events of one kind."""
    return (event for event in events if type(event) is kind)


def known_costs(events: list[Event], before: int, resources: int) -> list[tuple[float, ...]]:
    """Costs that were told of decisions after so many rounds; a row of zeros in any case."""
    told = [event for event in only(events, Tell) if event.id > before]
    return [(0.0,) * resources, *(tuple(cost or 0.0 for cost in event.costs) for event in told)]


def touched(events: Iterable[Event]) -> Iterator[int]:
    """The decisions that something was said of."""
    for event in events:
        match event:
            case Tell(id=number) | Cancel(id=number):
                yield number
            case Expire(ids=numbers):
                yield from numbers


def ids(numbers: list[int], rounds: Rounds) -> str:
    """Decisions by their ids, not too many."""
    named = ", ".join(str(rounds.id_of(number)) for number in numbers[:MOST_NAMED])
    more = f" and {len(numbers) - MOST_NAMED} more" if len(numbers) > MOST_NAMED else ""
    return f"decisions {named}{more}" if numbers else "no decisions"

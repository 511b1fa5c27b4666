"""Whether a journal is whole, and makes sense: all of it is read, nothing is changed.

Every checksum, the chain from segment to segment, and every event, by letting it happen to books of our own. Where the
first segments were dropped, or the code of a policy is not at hand, the books cannot be kept from the start; what is
left unchecked is said. Snapshots are compared with the books at their place, entry by entry.
"""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from paceline.errors import InvalidValue, PacelineError, UnknownName, UnreadableFile
from paceline.live import snapshot
from paceline.live.answers import without_slot
from paceline.live.events import NAMES, Event, Opened, Set
from paceline.live.journal import START, Place
from paceline.live.keeper import snapshot_paths
from paceline.live.ledger import Ledger
from paceline.live.log import amounts, clock_time
from paceline.live.old_formats import fit
from paceline.live.reading import NONSENSE, Part, open_at, read_parts, senseless
from paceline.live.recovery import new_ledger, notice_of_edit
from paceline.live.rounds import Rounds, follow
from paceline.live.segments import FORMAT, Header, is_line_before
from paceline.live.status import glance_at, status_of
from paceline.policies import PolicyLike
from paceline.policies.code import digest_of_code

PICKLED = "session"  # the one entry of a snapshot that may be written in more than one way
DERIVED = ("memory", "record", "shown")  # what follows from the events by the code of the policy


@dataclass
class Kept:
    """A snapshot beside a journal."""

    path: Path
    segment: int = 0
    place: Place = START
    body: dict[str, Any] | None = None  # None if it cannot be read
    digest: str = ""  # of the policy's code
    verdict: str = "was not reached"
    fits: bool = False  # whether it belongs to the journal as it is


class Examination:
    """What is in a journal, and what is wrong with it."""

    def __init__(self, path: str | os.PathLike[str], policy: PolicyLike | None = None) -> None:
        self.path, self.policy = Path(path), policy
        self.rounds = Rounds(policy)
        self.headers: dict[int, Header] = {}  # of the segments that are there
        self.places: dict[int, Path] = {}  # where they are
        self.lines = 0  # that are whole, counted from the first segment on
        self.torn = 0  # bytes after the last of them
        self.first_time: int | None = None  # of an event
        self.last_time = 0
        self.kinds: Counter[str] = Counter()
        self.versions: dict[str, None] = {}  # of the library
        self.ledger: Ledger | None = None
        self.unchecked: str | None = None  # why the books were not kept, or not to the end
        self.damage: UnreadableFile | None = None
        # Before the lines, or one could be ahead of what was read of a journal that is being written.
        self.snapshots = sorted(map(read_snapshot, existing(self.path)), key=lambda kept: kept.place.lines)
        if self.is_old():
            for kept in self.snapshots:
                kept.body, kept.fits, kept.verdict = None, True, "is of an earlier version, and not used any more"
        waiting = [kept for kept in self.snapshots if kept.body is not None]
        try:
            for line, event, _ in follow(self.watched(), self.rounds):
                while waiting and waiting[0].place.lines < line:
                    self.compare(waiting.pop(0))
                self.happen(line, event)
            while waiting and waiting[0].place.lines <= self.lines:
                self.compare(waiting.pop(0))
            for kept in waiting:
                kept.verdict = "is ahead of the journal"
        except UnreadableFile as error:
            self.damage = error

    def is_old(self) -> bool:
        """Whether nothing was written to it since an earlier version."""
        try:
            file, header, _ = open_at(self.path)
        except (UnreadableFile, FileNotFoundError):
            return False
        file.close()
        return header.format < FORMAT

    @property
    def is_whole(self) -> bool:
        """Whether nothing is wrong."""
        return self.damage is None and all(kept.fits for kept in self.snapshots)

    def watched(self) -> Iterator[Part]:
        """The parts of the journal, while it is noted what they are."""
        for part in read_parts(self.path):
            header, place, found = part
            if header.segment not in self.headers:
                self.headers[header.segment], self.places[header.segment] = header, place
                self.versions[header.version or "of the first edition"] = None
                if header.segment == 1:
                    self.open_books(header)
                elif len(self.headers) == 1:
                    self.unchecked = f"the segments before {header.segment} were dropped, and no snapshot helps"
            yield part
            self.lines, self.torn = found.end.lines, found.torn

    def open_books(self, header: Header) -> None:
        """Books from the first round on, if the policy is known."""
        try:
            self.ledger = new_ledger(header, self.path, self.policy)
            self.rounds.fit = partial(fit, self.ledger)
        except (InvalidValue, UnknownName) as error:
            self.unchecked = str(error)

    def happen(self, line: int, event: Event) -> None:
        """Take note of an event, and let it happen to the books."""
        self.kinds[NAMES[type(event)]] += 1
        if self.rounds.has_times:
            self.last_time = event.time
            if self.first_time is None:
                self.first_time = event.time
        if type(event) is Opened:
            self.versions[event.version] = None
        if self.ledger is None:
            return
        try:
            self.ledger.apply(event)
        except Exception as error:
            if self.ledger.may_fail or (type(event) is Set and isinstance(error, PacelineError)):
                self.ledger = None  # the code of a policy is to blame, not the line
                self.unchecked = f"from line {line} on: {error}"
            elif isinstance(error, (PacelineError, *NONSENSE)):
                raise senseless(self.places[max(self.places)], line, error) from error
            else:
                raise

    def compare(self, kept: Kept) -> None:
        """Look at a snapshot when just the events have happened that it stands for."""
        assert kept.body is not None
        place = self.places.get(kept.segment)
        if place is None or not is_line_before(place, kept.place):
            kept.verdict = "does not belong to the journal as it is"
            return
        kept.fits = True
        kept.verdict = "was not compared: the books are not known there"
        if self.ledger is not None:
            edited = notice_of_edit(self.ledger, digest_of_code(self.ledger.config.policy)) is not None
            kept.fits = same_books(self.ledger, kept.body, DERIVED if edited else ())
            kept.verdict = "agrees with the journal" if kept.fits else "says other than the journal"
            if kept.fits and edited:
                kept.verdict += ", but for what the policy made of it, whose code was edited"
        elif 1 not in self.headers:
            self.begin_with(kept)

    def begin_with(self, kept: Kept) -> None:
        """Go on from a snapshot, since what came before it was dropped."""
        assert kept.body is not None
        try:
            self.ledger = snapshot.parse_ledger(kept.body, kept.path, self.policy)
        except PacelineError as error:
            kept.fits, kept.verdict = isinstance(error, InvalidValue), str(error)
        else:
            self.ledger.digest = kept.digest
            kept.verdict = "stands for what was dropped"
            self.unchecked = f"what was dropped, and up to line {kept.place.lines}"

    def __str__(self) -> str:
        return "\n".join(self.report())

    def report(self) -> Iterator[str]:
        """A few lines on what there is."""
        yield f"{self.path}: {'whole' if self.is_whole else 'NOT WHOLE'}"
        if self.headers:
            numbers = sorted(self.headers)
            packed = sum(place.suffix == ".gz" for place in self.places.values())
            span = f"{numbers[0]} to {numbers[-1]}" if len(numbers) > 1 else f"{numbers[0]}"
            yield f"segments    {span}{f', {packed} of them packed' if packed else ''}; {self.lines:,} lines are whole"
            last = self.headers[numbers[-1]]
            yield f"format      {last.format}, written by paceline {', '.join(self.versions)}"
            yield f"policy      {self.rounds.policy}; {len(self.rounds.arms)} arms, {self.rounds.number:,} rounds"
        if self.first_time is not None:
            yield f"time        {clock_time(self.first_time / 1000)} to {clock_time(self.last_time / 1000)}"
        if self.kinds:
            yield f"events      {', '.join(f'{count:,} {kind}' for kind, count in self.kinds.most_common())}"
        if self.ledger is not None:
            with suppress(*NONSENSE):  # the event that makes no sense may be half done
                seen = status_of(glance_at(self.ledger), self.last_time)
                words = ("credited", "spent", "reserved", "headroom")
                yield "books       " + "; ".join(f"{word} {amounts(getattr(seen, word))}" for word in words)
            edited = notice_of_edit(self.ledger, digest_of_code(self.ledger.config.policy))
            if edited is not None:
                yield f"code        {edited}"
        if self.unchecked:
            yield f"not checked {self.unchecked}"
        for kept in self.snapshots:
            where = f" after line {kept.place.lines:,}" if kept.body is not None else ""
            yield f"snapshot    {kept.path.name}{where} {kept.verdict}"
        if self.torn:
            yield (
                f"torn        {self.torn} bytes after line {self.lines:,} are not a whole line: the event is being "
                "written, or was cut off by a crash, and Bandit.open drops it"
            )
        if self.damage is not None:
            yield f"damage      {self.damage}"


def existing(path: Path) -> list[Path]:
    """The snapshots beside a journal, the older one first."""
    return [one for one in reversed(snapshot_paths(path)) if one.exists()]


def read_snapshot(path: Path) -> Kept:
    """A snapshot, if it can be read."""
    try:
        body = snapshot.read_file(path)
        segment, *place = body.pop("journal")
        digest = body.pop("digest", "")  # of the code, which is not in the books
        return Kept(path, segment, Place(*place), body, digest)
    except (UnreadableFile, *NONSENSE) as error:
        return Kept(path, verdict=f"cannot be read: {error}")


def same_books(ledger: Ledger, body: dict[str, Any], but_for: Sequence[str]) -> bool:
    """Whether books are those that a snapshot describes, some entries aside."""
    described = snapshot.describe_ledger(ledger)
    answers = [[key, without_slot(id), *decision] for key, id, *decision in body["answers"]]
    told = {**body, "answers": answers}  # earlier versions kept ids with their slots
    return text_of(described, but_for) == text_of(told, but_for)


def text_of(body: dict[str, Any], but_for: Sequence[str]) -> str:
    """As it is written, but for some entries and for what is pickled."""
    return "".join(snapshot.pieces({name: value for name, value in body.items() if name not in (PICKLED, *but_for)}))

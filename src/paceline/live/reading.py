"""A journal from its first segment to its last line, read beside a bandit that may be running.

No lock is taken and nothing is changed. Closed segments, plain or packed, come first, then the file that is written to.
A last line that is not whole, because a crash has cut it off or because it is being written just now, is the end. A
line that was damaged is an error; the lines before it come first.
"""

import os
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from paceline.errors import UnreadableFile
from paceline.live.config import MOST_SECONDS
from paceline.live.events import Event
from paceline.live.journal import CHUNK, Damaged, Read, parse
from paceline.live.segments import LONGEST_HEADER, TITLE, Header, closed_segments, header_of, open_to_read

LATEST = 1000 * int(MOST_SECONDS)  # milliseconds that a clock may give
ATTEMPTS = 5  # at finding a segment that is being closed, packed or dropped meanwhile
PAUSE = 0.02  # seconds between them
# What a line that makes no sense may raise.
NONSENSE = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError)


class Segment(NamedTuple):
    """A segment that is open to be read, from its first line on."""

    file: IO[bytes]
    header: Header
    path: Path


class Part(NamedTuple):
    """Some lines of a segment."""

    header: Header
    path: Path  # of the segment
    found: Read


def events_in(found: Read, read: Callable[[Any], Event], path: Path) -> Iterator[tuple[int, Event]]:
    """The events in some lines of a journal, with the numbers of the lines; a header is not one of them."""
    number = found.end.lines - len(found.texts) + 1
    try:
        for values in found.values():
            if values[0] != TITLE:
                event = read(values)
                if type(event.time) is not int or abs(event.time) > LATEST:
                    raise ValueError(f"a time must be whole milliseconds up to {LATEST:g}, got {event.time!r}")
                yield number, event
            number += 1
    except NONSENSE as error:
        raise senseless(path, number, error) from error


def senseless(path: Path, line: int, error: Exception) -> Damaged:
    """A line that is whole, but says what cannot be."""
    return Damaged(f"journal {path} does not make sense in line {line}: {error}", path, line)


def read_parts(path: str | os.PathLike[str]) -> Iterator[Part]:
    """The lines of a journal, part by part; the last part says what is torn."""
    journal = Path(path)
    wanted, before = None, None
    while True:
        file, header, place = open_segment(journal, wanted)
        with file:
            if before is not None and header.before != before:
                raise out_of_order(place, header.segment)
            found = Read([], header.before, 0)
            try:
                for found in parse(iter(lambda: file.read(CHUNK), b""), header.before, place):  # noqa: B023
                    yield Part(header, place, found)
            except (OSError, EOFError, zlib.error) as error:
                lines = found.end.lines
                what = f"must be readable, but somewhere after line {lines}: {error}"
                raise Damaged(f"journal {place} {what}", place, lines + 1) from error
        end = found.end
        if place == journal:
            return
        if found.torn:
            raise Damaged(f"journal {place} ends in the middle of line {end.lines + 1}", place, end.lines + 1)
        wanted, before = header.segment + 1, end._replace(offset=0)


def open_segment(path: Path, wanted: int | None) -> Segment:
    """A segment of a journal; the first that is there if none is named.

    The bandit that writes may close, pack or drop segments meanwhile: then we look again.
    """
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(PAUSE)
        try:
            last = open_at(path)
        except FileNotFoundError:
            raise UnreadableFile(f"journal {path} must be a file that exists") from None
        number = last.header.segment
        if wanted is None:
            closed = closed_segments(path) if number > 1 else {}
            wanted = min((segment for segment in closed if segment < number), default=number)
        if number == wanted:
            return last
        last.file.close()
        if number < wanted:
            raise out_of_order(path, number)
        place = closed_segments(path).get(wanted)
        if place is not None:
            try:
                segment = open_at(place)
            except FileNotFoundError:
                continue
            if segment.header.segment != wanted:
                segment.file.close()
                raise out_of_order(place, segment.header.segment)
            return segment
    raise UnreadableFile(f"journal {path} lacks its closed segment {wanted}")


def open_at(path: Path) -> Segment:
    """The segment in a file."""
    try:
        file = open_to_read(path)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UnreadableFile(f"journal {path} must be readable, but: {error.strerror}") from error
    try:
        header = header_of(file.readline(LONGEST_HEADER), path)
        if header is None:
            raise UnreadableFile(
                f"journal {path} has no whole first line: it was never begun, or eaten by a loss of power"
            )
        file.seek(0)
    except (OSError, EOFError, zlib.error) as error:
        file.close()
        raise UnreadableFile(f"journal {path} must be readable, but: {error}") from error
    except BaseException:
        file.close()
        raise
    return Segment(file, header, path)


def out_of_order(path: Path, segment: int) -> UnreadableFile:
    """The chain of checksums does not go on."""
    return UnreadableFile(f"journal {path}: segment {segment} does not follow the one before it")

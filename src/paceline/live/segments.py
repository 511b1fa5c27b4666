"""A journal in segments: the file that is written to, and closed ones beside it, `name.000001` and so on.

Each segment begins with a header: the settings, and where it stands in the chain of all lines. The chain of checksums
goes on from segment to segment. The first segment has all that a bandit needs to be made anew; later ones need a
snapshot once the segments before them are dropped.
"""

import errno
import gzip
import json
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, cast
from zlib import crc32

from paceline import __version__
from paceline.errors import InvalidValue, UnreadableFile
from paceline.files import all_or_nothing, is_device, left_behind
from paceline.live.journal import CHUNK, DIGITS, Journal, Place, Read, line_of, lock, open_file, parse, sync_folder

TITLE, FORMAT = "paceline journal", 3
TITLE_BYTES = f'["{TITLE}"'.encode()
LONGEST_HEADER = 1 << 24  # bytes; ten thousand arms have a shorter one


class Header(NamedTuple):
    """The first line of a segment."""

    format: int
    settings: dict[str, Any]
    arms: list[str]  # by slot, as far as they have come so far
    segment: int
    rounds: int  # before this segment: decisions are numbered by counting them
    before: Place  # of this line: the chain so far, at offset 0
    version: str  # of the library that wrote it
    digest: str  # of the code of the policy
    time: int

    def text(self) -> str:
        """As JSON."""
        about = {
            "arms": self.arms,
            "segment": self.segment,
            "rounds": self.rounds,
            "lines": self.before.lines,
            "crc": self.before.crc,
            "version": self.version,
            "digest": self.digest,
            "time": self.time,
        }
        return json.dumps([TITLE, self.format, self.settings, about])


def first_header(settings: dict[str, Any], digest: str, time: int) -> Header:
    """Of a new journal."""
    return Header(FORMAT, settings, settings["arms"], 1, 0, Place(), __version__, digest, time)


def parse_header(text: bytes, path: Path) -> Header:
    """The way back from `Header.text`, and what older versions wrote."""
    foreign = f"{path} must be a journal of a Bandit; its first line is not that of one"
    try:
        first = json.loads(text)
    except (ValueError, RecursionError):
        raise UnreadableFile(foreign) from None
    match first:
        case [title, int(version), dict() as settings] if title == TITLE and version in (1, 2):
            return Header(version, settings, settings.get("arms", []), 1, 0, Place(), "", "", 0)
        case [title, version, dict() as settings, dict() as about] if title == TITLE and version == FORMAT:
            match about:
                case {
                    "crc": int(crc),
                    "lines": int(lines),
                    "arms": list(arms),
                    "segment": int(segment),
                    "rounds": int(rounds),
                    "version": str(library),
                    "digest": str(digest),
                    "time": int(time),
                } if segment >= 1 and lines >= 0 and 0 <= crc < 2**32:
                    before = Place(0, crc, lines)
                    return Header(version, settings, arms, segment, rounds, before, library, digest, time)
        case [title, version, *_] if title == TITLE:
            raise UnreadableFile(f"journal {path} has format {version!r}; this version reads 1 to {FORMAT}")
    raise UnreadableFile(foreign)


def header_of(head: bytes, path: Path) -> Header | None:
    """The header in the first bytes of a file; None if its line is not whole."""
    line, newline, _ = head.partition(b"\n")
    if not newline:
        return None
    text = line[DIGITS + 1 :]
    header = parse_header(text, path)
    if line[: DIGITS + 1] != b"%08x " % crc32(text, header.before.crc):
        raise UnreadableFile(f"journal {path} is damaged in line {header.before.lines + 1}, its first")
    return header


def is_unfinished(journal: Journal) -> bool:
    """Whether a file is just the beginning of a first line of ours, as a crash may leave it, and nobody else's."""
    head = journal.head(LONGEST_HEADER)
    digits, rest = head[:DIGITS], head[DIGITS : DIGITS + 1 + len(TITLE_BYTES)]
    is_ours = all(digit in b"0123456789abcdef" for digit in digits) and (b" " + TITLE_BYTES).startswith(rest)
    return is_ours and len(rest) > len(b' ["') and b"\n" not in head


def check_replaceable(thing: str, path: Path) -> None:
    """Refuse to write over a journal, or a segment of one, since what it tells is nowhere else; or over a device."""
    if is_device(path):
        raise InvalidValue(f"{thing} must be a file, got {path}, which is a device or a pipe")
    try:
        with open_to_read(path) as file:
            head = file.read(DIGITS + 1 + len(TITLE_BYTES))
    except (OSError, EOFError, zlib.error):
        return  # whoever writes there will see
    if head[DIGITS + 1 :] == TITLE_BYTES:
        raise InvalidValue(f"{thing} must be another file than a journal, which would be lost, got {path}")


# Closed segments.


def closed_path(path: Path, segment: int) -> Path:
    """Where a closed segment stands."""
    return path.with_name(f"{path.name}.{segment:06d}")


def closed_segments(path: Path) -> dict[int, Path]:
    """The closed segments that are there, plain or compressed."""
    pattern = re.compile(re.escape(path.name) + r"\.(\d{6,})(\.gz)?")
    found: dict[int, Path] = {}
    for file in sorted(path.parent.iterdir()):
        if (match := pattern.fullmatch(file.name)) and not (match[2] and int(match[1]) in found):
            found[int(match[1])] = file
    return found


def open_to_read(path: Path) -> IO[bytes]:
    """A closed segment, or any other; only closed ones are ever packed."""
    if is_device(path):
        raise OSError(errno.EINVAL, "it is a device or a pipe")
    packed = re.search(r"\.\d{6,}\.gz$", path.name)
    return cast(IO[bytes], gzip.open(path, "rb") if packed else path.open("rb"))


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The same for a while; what goes wrong with it is said in one line."""
    try:
        with open_to_read(path) as file:
            yield file
    except (OSError, EOFError, zlib.error) as error:
        raise UnreadableFile(f"journal {path} must be readable, but: {error}") from error


def read_closed(path: Path, start: Place) -> Iterator[Read]:
    """The lines of a closed segment after a place."""
    with opened(path) as file:
        file.seek(start.offset)
        yield from parse(iter(lambda: file.read(CHUNK), b""), start, path)


def head_of(path: Path) -> bytes:
    """The first line of a closed segment."""
    with opened(path) as file:
        return file.readline()


def is_line_before(path: Path, place: Place) -> bool:
    """Whether the line before a place is the one that the place was noted after."""
    first = max(place.offset - LONGEST_HEADER, 0)
    with opened(path) as file:
        file.seek(first)
        before = file.read(place.offset - first)
    last = before[before.rfind(b"\n", 0, -1) + 1 :]
    is_whole = len(before) == place.offset - first
    return is_whole and last.startswith(b"%08x " % place.crc) and last.endswith(b"\n")


def rotate(journal: Journal, header: Header, mode: int) -> None:
    """Close the segment that is written to, and go on in a new one.

    At every moment there is a file of the journal's name. A crash between the two steps leaves the closed name as a
    second one of the same file, which `tidy_up` takes away.
    """
    path, before = journal.path, header.before
    line, crc = line_of(header.text(), before.crc)
    with all_or_nothing(path) as unfinished:
        file = open_file(unfinished, mode)
        try:
            lock(file, unfinished)
            if os.write(file, line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            tidy_up(path, header.segment - 1)  # an attempt may have failed after this
            os.link(path, closed_path(path, header.segment - 1))
        except BaseException:
            os.close(file)
            raise
    journal.go_on_in(file, Place(len(line), crc, before.lines + 1))


def has_closed_segments(path: Path) -> bool:
    """Whether there was a journal of that name in segments; where many journals are in one folder it is not listed."""
    first = closed_path(path, 1)
    return first.exists() or first.with_name(f"{first.name}.gz").exists()


def tidy_up(path: Path, segment: int) -> None:
    """Take away what a crash in the middle of `rotate` has left beside the segment that is written to."""
    closed = closed_path(path, segment)
    if closed.exists() and closed.samefile(path):
        closed.unlink()


def compress(path: Path, mode: int) -> None:
    """Put a closed segment into an archive beside it, whole or not at all."""
    target = path.with_name(f"{path.name}.gz")
    for stale in left_behind(target):  # by a crash
        stale.unlink(missing_ok=True)
    with all_or_nothing(target) as unfinished:
        file = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(file, "wb") as raw, path.open("rb") as source:
            with gzip.GzipFile(path.name, "wb", 6, raw, 0) as packed:
                while chunk := source.read(1 << 18):
                    packed.write(chunk)
            raw.flush()
            os.fsync(raw.fileno())
    sync_folder(target)
    path.unlink()

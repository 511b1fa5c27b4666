"""An append-only file, one line per event: what was acknowledged survives the process.

A line is the checksum of its text chained to the line before,  crc32(text, previous),  in eight hexadecimal digits, a
blank, the text (JSON), and a newline. Cutting the file anywhere leaves whole lines and at most one torn one; a line
that was changed, removed or moved breaks the chain.

Each line is one write to the file: once `append` has returned, the event outlives a crash of the process. To outlive a
crash of the machine it must also be synced, with each line or when the caller says so.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from paceline.errors import InvalidValue, JournalFailed, JournalInUse, UnreadableFile

DIGITS = 8
AT_ONCE = 10_000  # texts
LONGEST_LOOK = 1 << 20  # bytes; a first line with the names of ten thousand arms is shorter


class Place(NamedTuple):
    """A spot between two lines."""

    offset: int = 0
    crc: int = 0
    lines: int = 0


START = Place()


class Read(NamedTuple):
    """What was found in a journal after some place."""

    texts: list[bytes]  # of the whole lines
    end: Place  # after the last whole line
    torn: int  # bytes after it

    def events(self) -> Iterator[Any]:
        """What the texts say. Many are parsed in one go, which is several times faster than one by one."""
        for first in range(0, len(self.texts), AT_ONCE):
            yield from json.loads(b"[" + b",".join(self.texts[first : first + AT_ONCE]) + b"]")


class Journal:
    """The open file. Only one can be open at a time, in whichever process."""

    def __init__(self, path: str | os.PathLike[str], sync_each: bool = False) -> None:
        check_locks(path)
        self.path = Path(path)
        self.owner = os.getpid()
        self.sync_each = sync_each
        self._offset, self._crc, self.lines = START
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise UnreadableFile(f"journal {self.path} must be a file to write to, but: {error.strerror}") from error
        try:
            lock(self._file, self.path)
        except BaseException:
            os.close(self._file)
            raise

    def size(self) -> int:
        """The bytes in the file."""
        return os.fstat(self._file).st_size

    def head(self, length: int) -> bytes:
        """The first bytes."""
        return os.pread(self._file, length, 0)

    def read(self, start: Place = START) -> Read:
        """All events after a place. The end of the journal is now after the last of them."""
        size = self.size() - start.offset
        content = b""
        while len(content) < size:
            content += os.pread(self._file, size - len(content), start.offset + len(content))
        found = parse_lines(content, start, self.path)
        self.end = found.end
        return found

    def has(self, place: Place) -> bool:
        """Whether the line before a place is the one that it was noted after."""
        start = max(place.offset - LONGEST_LOOK, 0)
        before = os.pread(self._file, place.offset - start, start)
        last = before[before.rfind(b"\n", 0, -1) + 1 :]
        return len(before) == place.offset - start and last.startswith(b"%08x " % place.crc) and last.endswith(b"\n")

    def drop_torn(self) -> None:
        """Cut off what follows the last whole line."""
        os.ftruncate(self._file, self.end.offset)

    def append(self, text: str) -> None:
        """Write an event. When this returns it will survive the process; with ``sync_each``, the machine."""
        if os.getpid() != self.owner:  # a forked copy shares the file and the lock
            raise JournalFailed(
                f"journal {self.path} must be written by process {self.owner}, not by a forked copy of it"
            )
        payload = text.encode()
        crc = crc32(payload, self._crc)
        line = b"%08x %b\n" % (crc, payload)
        length = len(line)
        try:
            if os.write(self._file, line) < length:
                raise OSError("only a part of the line was written")
            if self.sync_each:
                getattr(os, "fdatasync", os.fsync)(self._file)
        except OSError as error:
            self.give_up()
            problem = error.strerror or error
            raise JournalFailed(f"journal {self.path} must take every event, but: {problem}; reopen it") from error
        self._offset += length
        self._crc = crc
        self.lines += 1

    @property
    def end(self) -> Place:
        """Where the next line will begin."""
        return Place(self._offset, self._crc, self.lines)

    @end.setter
    def end(self, place: Place) -> None:
        self._offset, self._crc, self.lines = place

    def give_up(self) -> None:
        """Leave no half line behind, if the file lets itself be cut; in any case write no more."""
        try:
            os.ftruncate(self._file, self.end.offset)
        except OSError:
            pass  # the torn line is found when the journal is opened again
        finally:
            self.close()

    def sync(self) -> None:
        """Make everything written so far outlive a crash of the machine."""
        try:
            os.fsync(self._file)
        except OSError as error:
            raise JournalFailed(f"journal {self.path} must be synced to the disk, but: {error.strerror}") from error

    @property
    def closed(self) -> bool:
        """Whether the file was closed."""
        return self._file < 0

    def close(self) -> None:
        """Close the file, which frees it for others."""
        if not self.closed:
            os.close(self._file)
            self._file = -1


def sync_folder(path: Path) -> None:
    """Make the name of a new file, too, outlive a crash of the machine, where a folder can be synced."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def check_locks(path: str | os.PathLike[str]) -> None:
    """Refuse a journal where the system cannot keep others from writing to it."""
    try:
        import fcntl  # noqa: F401
    except ImportError as error:
        rule = "a system that can lock files (save and load do without)"
        raise InvalidValue(f"journal must be on {rule}, got {path} on {sys.platform}, which has no fcntl") from error


def lock(file: int, path: Path) -> None:
    """Take the file for this Bandit alone; the system frees it when the process ends, however it ends."""
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise JournalInUse(f"journal {path} must not be open elsewhere, but another Bandit has it") from error


def parse_lines(content: bytes, start: Place, path: Path) -> Read:
    """The events in the bytes after ``start``. What has no end of line is torn; a bad line with one means damage."""
    lines = content.split(b"\n")
    rest = lines.pop()
    crc = start.crc
    texts: list[bytes] = []
    for line in lines:
        text = line[DIGITS + 1 :]
        crc = crc32(text, crc)
        if line[: DIGITS + 1] != b"%08x " % crc:
            number = start.lines + len(texts) + 1
            raise UnreadableFile(
                f"journal {path} is damaged in line {number}; the {number - 1} lines before it are whole"
            )
        texts.append(text)
    return Read(texts, end_of(start, texts, crc), len(rest))


def end_of(start: Place, texts: list[bytes], crc: int) -> Place:
    """The place after the whole lines."""
    length = sum(map(len, texts)) + len(texts) * (DIGITS + 2)
    return Place(start.offset + length, crc, start.lines + len(texts))

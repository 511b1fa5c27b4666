"""An append-only file, one line per event: what was acknowledged survives the process.

A line is the checksum of its text chained to the line before,  crc32(text, previous),  in eight hexadecimal digits, a
blank, the text (JSON), and a newline. Cutting the file anywhere leaves whole lines and at most one torn one; a line
that was changed, removed or moved breaks the chain.

Each line is one write to the file: once `append` has returned, the event outlives a crash of the process. To outlive a
crash of the machine it must also be synced (`commit`).
"""

import errno
import json
import os
import socket
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple
from zlib import crc32

from paceline.errors import InvalidValue, JournalFailed, JournalInUse, UnreadableFile

try:
    import fcntl  # now: a journal that is let go at the end of the program cannot import any more
except ImportError:  # such a system has no journals
    fcntl = None  # type: ignore[assignment]

DIGITS = 8
AT_ONCE = 100  # texts that are parsed in one go: few enough that what comes of them stays in the cache
CHUNK = 1 << 23  # bytes that are read at once
FIRST_CHUNK = 1 << 14  # the first time
LOOK_EVERY = 256  # lines after which it is seen whether the file is still there
PRIVATE = 0o600  # who may read: nobody else, unless told otherwise


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

    def values(self) -> Iterator[Any]:
        """What the texts say. Many are parsed in one go, which is several times faster than one by one.

        If one of them is not JSON, those before it come before the error.
        """
        for first in range(0, len(self.texts), AT_ONCE):
            texts = self.texts[first : first + AT_ONCE]
            try:
                found = json.loads(b"[" + b",".join(texts) + b"]")
            except (ValueError, RecursionError):  # one by one, up to the one that is wrong
                found = []
            yield from found if len(found) == len(texts) else map(json.loads, texts)


class Damaged(UnreadableFile):
    """A line is not as it was written, or cannot be read."""

    def __init__(self, message: str, path: Path, line: int) -> None:
        super().__init__(message)
        self.path, self.line = path, line  # counted over all segments


class Journal:
    """The open file. Only one can be open at a time, in whichever process."""

    def __init__(self, path: str | os.PathLike[str], mode: int = PRIVATE, wait: float = 0.0) -> None:
        check_locks(path)
        self.path = Path(path).absolute()  # the program may go to another folder
        self._offset, self._crc, self.lines = START
        self._next_look = LOOK_EVERY
        self._file = -1
        self._synced = 0
        self._syncing = Lock()
        self._before: list[int] = []  # files that went before this one and are not synced yet
        self._file = open_alone(self.path, mode, wait)
        self._process = os.getpid()

    def __del__(self) -> None:
        """A journal that nobody has any more is free for others."""
        with suppress(AttributeError, OSError):
            self.close()

    def size(self) -> int:
        """The bytes in the file."""
        return os.fstat(self._file).st_size

    def head(self, length: int) -> bytes:
        """The first line, or as much of it as that."""
        found = b""
        for chunk in chunks_of(self._file, 0):
            found += chunk
            if b"\n" in chunk or len(found) >= length:
                break
        return found[: found.find(b"\n") + 1 or length][:length]

    def read(self, start: Place = START) -> Read:
        """All events after a place. The end of the journal is now after the last of them."""
        texts: list[bytes] = []
        found = Read([], start, 0)
        for found in self.read_on(start):
            texts += found.texts
        return found._replace(texts=texts)

    def read_on(self, start: Place = START) -> Iterator[Read]:
        """The same, part by part."""
        for found in parse(chunks_of(self._file, start.offset), start, self.path):
            self.end = found.end
            yield found

    def drop_torn(self) -> None:
        """Cut off what follows the last whole line."""
        os.ftruncate(self._file, self.end.offset)

    def append(self, text: str) -> None:
        """Write an event. When this returns it will survive the process."""
        payload = text.encode()
        crc = crc32(payload, self._crc)
        line = b"%08x %b\n" % (crc, payload)  # as `line_of`
        try:
            written = os.write(self._file, line)
        except OSError as error:
            self.give_up(error)
        if written != len(line):
            self.give_up(OSError("only a part of the line was written"))
        self._offset += written
        self._crc = crc
        self.lines = lines = self.lines + 1
        if lines >= self._next_look:
            self.look()

    @property
    def end(self) -> Place:
        """Where the next line will begin."""
        return Place(self._offset, self._crc, self.lines)

    @end.setter
    def end(self, place: Place) -> None:
        self._offset, self._crc, self.lines = place

    def look(self) -> None:
        """See whether the file is still there, under its name, and as long as it was written."""
        self._next_look = self.lines + LOOK_EVERY
        try:
            here, there = os.fstat(self._file), os.stat(self.path)
        except OSError as error:
            self.give_up(error)
        if (here.st_dev, here.st_ino) != (there.st_dev, there.st_ino):
            self.give_up(OSError(errno.ESTALE, "another file has its name"))
        if here.st_size != self._offset:
            self.give_up(OSError(errno.EIO, f"it has {here.st_size} bytes and not {self._offset}, as were written"))

    def give_up(self, error: OSError) -> None:
        """Leave no half line behind, if the file lets itself be cut; in any case write no more."""
        with suppress(OSError):  # else the torn line is found when the journal is opened again
            if self.size() > self._offset:
                os.ftruncate(self._file, self._offset)
        self.close()
        problem = error.strerror or error
        raise JournalFailed(f"journal {self.path} must take every event, but: {problem}; reopen it") from error

    def commit(self, lines: int) -> None:
        """Make so many lines, counted from the first, outlive a crash of the machine.

        One sync is enough for all threads that wait for one: who comes while another's is under way finds his line
        synced by the next, or is the one who does it.
        """
        with self._syncing:
            if self._synced < lines:
                written = self.lines
                self.sync()
                self._synced = written

    def sync(self) -> None:
        """Make everything written so far outlive a crash of the machine."""
        try:
            for file in (*self._before, self._file):
                getattr(os, "fdatasync", os.fsync)(file)
            if self._before:
                sync_folder(self.path)
            self.close_before()
        except OSError as error:
            self.close()
            raise JournalFailed(f"journal {self.path} must be synced to the disk, but: {error.strerror}") from error

    @property
    def closed(self) -> bool:
        """Whether the file was closed."""
        return self._file < 0

    def close(self) -> None:
        """Close the file, which frees it for others.

        It is unlocked first: a process that another thread is just starting has the file, too, until it begins. A
        forked copy must not do that, for the lock is that of its parent.
        """
        self.close_before()
        if not self.closed:
            file, self._file = self._file, -1
            try:
                if os.getpid() == self._process:
                    unlock(file)
            finally:
                os.close(file)

    def count_unsynced(self) -> int:
        """The files that went before this one and are still open, to be synced."""
        return len(self._before)

    def close_before(self) -> None:
        """Close the files that went before this one."""
        while self._before:
            os.close(self._before.pop())

    def go_on_in(self, file: int, end: Place) -> None:
        """Let the lines to come go to another file, which has taken over the name of this one.

        The next sync is of both: who syncs means all lines so far.
        """
        with self._syncing:
            self._before.append(self._file)
            self._file = file
            self.end = end


def open_file(path: Path, mode: int) -> int:
    """A file to read and to append to, made if it is not there."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, mode)
    except OSError as error:
        raise UnreadableFile(f"journal {path} must be a file to write to, but: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise UnreadableFile(f"journal {path} must be a file that keeps what is written to it, got a device or a pipe")
    return file


def sync_folder(path: Path) -> None:
    """Make the name of a new file, too, outlive a crash of the machine, where a folder can be synced."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


# Keeping others out.


def check_locks(path: str | os.PathLike[str]) -> None:
    """Refuse a journal where the system cannot keep others from writing to it."""
    if fcntl is None:
        rule = "a system that can lock files (save and load do without)"
        raise InvalidValue(f"journal must be on {rule}, got {path} on {sys.platform}, which has no fcntl")


def owner_path(path: Path) -> Path:
    """Beside a journal stands who has it, for the message to those who want it."""
    return path.with_name(f"{path.name}.owner")


def open_alone(path: Path, mode: int, wait: float) -> int:
    """The file, for this Bandit alone; the system frees it when the process ends, however it ends."""
    until = time.monotonic() + wait
    while True:
        file = open_file(path, mode)
        try:
            if lock(file, path) and has_name(file, path):
                note_owner(path)
                return file
            if time.monotonic() >= until:
                raise JournalInUse(f"journal {path} must not be open elsewhere, but {owner_of(path)} has it")
        except BaseException:
            os.close(file)
            raise
        os.close(file)
        time.sleep(0.01)


def lock(file: int, path: Path) -> bool:
    """Whether the file could be locked."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise UnreadableFile(f"journal {path} must be a file that can be locked, but: {error.strerror}") from error
    return True


def unlock(file: int) -> None:
    """Free a file, also where somebody else has it open as well."""
    fcntl.flock(file, fcntl.LOCK_UN)


def has_name(file: int, path: Path) -> bool:
    """Whether an open file is the one of that name; it may have been moved away while we waited for it."""
    with suppress(OSError):
        return os.path.samestat(os.fstat(file), os.stat(path))
    return False


def note_owner(path: Path) -> None:
    """Write down who has a journal."""
    with suppress(OSError):
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW  # nobody's file behind a link
        note = os.open(owner_path(path), flags, PRIVATE)
        try:
            os.write(note, f"process {os.getpid()} on {socket.gethostname()}".encode())
        finally:
            os.close(note)


def owner_of(path: Path) -> str:
    """Who has a journal, as far as can be told."""
    try:
        return owner_path(path).read_text(encoding="utf-8")[:200] or "another Bandit"
    except (OSError, ValueError):
        return "another Bandit"


# Lines.


def line_of(text: str, before: int) -> tuple[bytes, int]:
    """The line for a text, given the checksum of the line before, and its own checksum."""
    payload = text.encode()
    crc = crc32(payload, before)
    return b"%08x %b\n" % (crc, payload), crc


def chunks_of(file: int, offset: int) -> Iterator[bytes]:
    """The bytes of a file after an offset, in pieces that become larger: most journals are small."""
    size = FIRST_CHUNK
    while chunk := os.pread(file, size, offset):
        offset += len(chunk)
        size = min(8 * size, CHUNK)
        yield chunk


def parse(chunks: Iterator[bytes], start: Place, path: Path) -> Iterator[Read]:
    """The events in pieces of a file after ``start``; the last part says what is torn. A bad line means damage."""
    rest = b""
    for chunk in chunks:
        content = rest + chunk
        whole = content.rfind(b"\n") + 1
        rest = content[whole:]
        found = parse_lines(content[:whole], start)
        yield found
        if found.end.offset < start.offset + whole:
            before = found.end.lines
            raise Damaged(
                f"journal {path} is damaged in line {before + 1}; the {before} lines before it are whole",
                path,
                before + 1,
            )
        start = found.end
    yield Read([], start, len(rest))


def parse_lines(content: bytes, start: Place) -> Read:
    """The events in some whole lines after ``start``, up to the first bad one."""
    lines = content.split(b"\n")
    lines.pop()
    crc = start.crc
    texts: list[bytes] = []
    for line in lines:
        text = line[DIGITS + 1 :]
        chained = crc32(text, crc)
        if line[: DIGITS + 1] != b"%08x " % chained:
            break
        crc = chained
        texts.append(text)
    length = len(content) if len(texts) == len(lines) else sum(map(len, texts)) + len(texts) * (DIGITS + 2)
    return Read(texts, Place(start.offset + length, crc, start.lines + len(texts)), 0)

"""Files that are written whole or not at all, and files that keep other processes out."""

import errno
import glob
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def all_or_nothing(path: Path, mode: int | None = None) -> Iterator[Path]:
    """A name beside ``path`` to write to; what was written there takes its place at the end, unless something fails.

    A device or a pipe is refused: /dev/null would be a file from then on, for the whole machine. Every call has a name
    of its own, so that several processes can write the same file: the last one wins, whole. With a ``mode`` an empty
    file with these permissions is there from the beginning; else whoever writes makes it.
    """
    if is_device(path):
        raise OSError(errno.EINVAL, "a device or a pipe, which is not replaced by a file", str(path))
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}.unfinished")
    try:
        if mode is not None:
            os.close(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
        yield unfinished
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def write_whole(path: Path, content: str | bytes) -> Path:
    """Write a file, all or nothing; where it is."""
    with all_or_nothing(path) as unfinished:
        unfinished.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def is_device(path: str | os.PathLike[str]) -> bool:
    """Whether a device or a pipe is there: it has no end, or makes who opens it wait, and must not be replaced."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def left_behind(path: Path) -> list[Path]:
    """What processes that were killed while they wrote ``path``, or into that folder, have left there."""
    if path.is_dir():
        return sorted(path.glob(".*.unfinished"))
    return sorted(path.parent.glob(f".{glob.escape(path.name)}.*.unfinished"))


def try_lock(file: int) -> bool:
    """Keep an open file from other processes until it is closed; false if one of them has it already.

    Where the system, or the file system, has no such locks nobody is kept out.
    """
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True

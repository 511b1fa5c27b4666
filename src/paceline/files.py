"""Files that are written whole or not at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def all_or_nothing(path: Path) -> Iterator[Path]:
    """A name beside ``path`` to write to; what was written there takes its place at the end, unless something fails."""
    unfinished = unfinished_name(path)
    try:
        yield unfinished
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def unfinished_name(path: Path) -> Path:
    """What a crash in the middle may leave behind.

    >>> unfinished_name(Path("results.npz")).name
    '.results.npz.unfinished'
    """
    return path.with_name(f".{path.name}.unfinished")

"""Some of the arms, as runs of neighbours: most arms are in play, and whole runs are copied faster than single arms."""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

MANY = 100  # runs, beyond which single arms are as good

Places = npt.NDArray[np.intp]


class Runs(NamedTuple):
    """Where some arms stand among all of them (slots), and among themselves (places)."""

    slots: Places
    pairs: tuple[tuple[slice, slice], ...]  # of slots and places; empty if there are too many

    def each(self) -> "Iterator[tuple[slice | Places, slice]]":
        """Slots and places that belong together, to index with."""
        if self.pairs or not self.slots.size:
            yield from self.pairs
        else:
            yield self.slots, slice(0, self.slots.size)


def runs_of(slots: Places) -> Runs:
    """The runs of slots in ascending order.

    >>> runs_of(np.array([0, 1, 2, 5, 6])).pairs
    ((slice(0, 3, None), slice(0, 3, None)), (slice(5, 7, None), slice(3, 5, None)))
    """
    if not slots.size:
        return Runs(slots, ())
    ends = np.flatnonzero(np.diff(slots) != 1) + 1
    if ends.size >= MANY:
        return Runs(slots, ())
    bounds = [0, *ends.tolist(), slots.size]
    pairs = []
    for first, last in pairwise(bounds):
        begin = int(slots[first])
        pairs.append((slice(begin, begin + last - first), slice(first, last)))
    return Runs(slots, tuple(pairs))

"""Take back a call of the engine that was cut short: by the code of a user's policy, or by an interrupt."""

from typing import Any, NamedTuple

import numpy.typing as npt

from paceline.kernels.state import Storage

Array = npt.NDArray[Any]


class Kept(NamedTuple):
    """Copies of all that a call may change."""

    blocks: tuple[Array, ...]
    memory: tuple[Array, ...]


def changeable(storage: Storage) -> tuple[Array, ...]:
    """The blocks that a call writes to, but for the policy's own memory and the scratch."""
    blocks = (storage.amounts, storage.measures, storage.counts, storage.numbers, storage.costs)
    return (storage.tally, storage.clock, storage.record, *blocks)


def keep(storage: Storage) -> Kept:
    """What is there before a call: a microsecond or two."""
    return Kept(
        tuple([block.copy() for block in changeable(storage)]), tuple([array.copy() for array in storage.memory])
    )


def put_back(storage: Storage, kept: Kept) -> None:
    """Make it as if the call had never been made."""
    for block, copy in zip(changeable(storage), kept.blocks, strict=True):
        block[...] = copy
    for array, copy in zip(storage.memory, kept.memory, strict=True):
        array[...] = copy

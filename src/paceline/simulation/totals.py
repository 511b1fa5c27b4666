"""Raw totals of a trial at its checkpoints: all that a run keeps, and all that regret is made from."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paceline.kernels.budget import UNITS
from paceline.kernels.late import Late
from paceline.kernels.state import NO_RECORD, Storage, books_in

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

NOTHING = np.dtype([])  # the fields of a policy that keeps no record


class Totals(NamedTuple):
    """Cumulative totals. One trial has axes (C,) and (C, K); stacked trials have one more axis in front.

    With several resources ``spent``, ``lost`` and ``min_headroom`` have an axis for them at the end.
    """

    earned: Floats
    spent: Floats
    lost: Floats  # what came in above a cap
    skips: Ints
    idle: Ints
    pulls: Ints  # with an axis for the arms
    memory: npt.NDArray[Any]  # records of what the policy itself keeps count of
    min_headroom: Floats  # no axis for the checkpoints: the smallest of all rounds


def new_totals(checkpoints: int, arms: int, resources: int, record: np.dtype[Any]) -> Totals:
    """Room for one trial."""
    several = () if resources == 1 else (resources,)
    return Totals(
        earned=np.zeros(checkpoints),
        spent=np.zeros((checkpoints, *several)),
        lost=np.zeros((checkpoints, *several)),
        skips=np.zeros(checkpoints, np.int64),
        idle=np.zeros(checkpoints, np.int64),
        pulls=np.zeros((checkpoints, arms), np.int64),
        memory=np.zeros(checkpoints, NOTHING if record == NO_RECORD else record),
        min_headroom=np.zeros(several),
    )


def note(totals: Totals, at: int, storage: Storage, late: Late | None = None) -> None:
    """Write the totals so far into checkpoint number ``at``; what is on its way counts as earned and spent."""
    books = books_in(storage)
    tally = books.tally
    truth = Truth(tally.earned, books.spent, books.pulls, books.lowest)
    if late is not None:
        truth = Truth(late.earned[0], late.spent, late.begun, late.lowest)
    totals.earned[at] = truth.earned
    totals.spent[at] = in_amounts(truth.spent)
    totals.lost[at] = in_amounts(books.lost)
    totals.skips[at] = tally.skips
    totals.idle[at] = tally.idle
    totals.pulls[at] = truth.pulls
    if totals.memory.dtype.names:
        totals.memory[at] = storage.record[0]
    totals.min_headroom[...] = in_amounts(truth.lowest)


class Truth(NamedTuple):
    """What was earned, spent and pulled, whether the news of it has come or not."""

    earned: float
    spent: Ints
    pulls: Ints
    lowest: Ints


def in_amounts(units: Ints) -> Any:
    """Counted units as amounts: an entry per resource, or one number if there is one."""
    amounts = units / UNITS
    return amounts if amounts.size > 1 else amounts[0]


def subset(totals: Totals, trials: slice, checkpoints: slice | npt.NDArray[np.bool_] = slice(None)) -> Totals:
    """Some trials of stacked ones, at some checkpoints, or at all."""
    parts = {name: part[trials][:, checkpoints] for name, part in totals._asdict().items() if name != "min_headroom"}
    return Totals(**parts, min_headroom=totals.min_headroom[trials])


def differences(one: Totals, other: Totals) -> list[str]:
    """The names of totals that are not the same to the last bit."""
    return [
        name
        for name, part, counterpart in zip(Totals._fields, one, other, strict=True)
        if (part.dtype, part.shape, part.tobytes()) != (counterpart.dtype, counterpart.shape, counterpart.tobytes())
    ]


def stack_trials(trials: list[Totals]) -> Totals:
    """Trials one above the other."""
    return Totals(*(np.stack(parts) for parts in zip(*trials, strict=True)))

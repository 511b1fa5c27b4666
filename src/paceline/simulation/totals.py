"""Raw totals of a trial at its checkpoints: all that a run keeps, and all that regret is made from."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paceline.kernels import budget
from paceline.policies.policy import State

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Totals(NamedTuple):
    """Cumulative totals. One trial has axes (C,) and (C, K); stacked trials have one more axis in front."""

    earned: Floats
    spent: Floats
    skips: Ints
    idle: Ints
    pulls: Ints  # with an axis for the arms
    memory: npt.NDArray[Any]  # records of what the policy itself remembers
    min_headroom: Floats  # no axis for the checkpoints: the smallest of all rounds


def new_totals(checkpoints: int, arms: int, memory: np.dtype[Any]) -> Totals:
    """Room for one trial."""
    return Totals(
        earned=np.zeros(checkpoints),
        spent=np.zeros(checkpoints),
        skips=np.zeros(checkpoints, np.int64),
        idle=np.zeros(checkpoints, np.int64),
        pulls=np.zeros((checkpoints, arms), np.int64),
        memory=np.zeros(checkpoints, memory),
        min_headroom=np.zeros(()),
    )


def note(totals: Totals, at: int, state: State) -> None:
    """Write the totals so far into checkpoint number ``at``."""
    clock = state.clock
    totals.earned[at] = clock.earned
    totals.spent[at] = budget.spent(clock)
    totals.skips[at] = clock.skips
    totals.idle[at] = clock.idle
    totals.pulls[at] = state.arms.pulls
    totals.memory[at] = state.memory
    totals.min_headroom[...] = budget.lowest_headroom(clock)


def subset(totals: Totals, trials: slice, checkpoints: slice | npt.NDArray[np.bool_]) -> Totals:
    """Some trials of stacked ones, at some checkpoints."""
    parts = {name: part[trials][:, checkpoints] for name, part in totals._asdict().items() if name != "min_headroom"}
    return Totals(**parts, min_headroom=totals.min_headroom[trials])


def stack_trials(trials: list[Totals]) -> Totals:
    """Trials one above the other."""
    return Totals(*(np.stack(parts) for parts in zip(*trials, strict=True)))

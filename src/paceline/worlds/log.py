"""A log whose rows know the outcome of one arm each: policy evaluation by rejection."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paceline.worlds.world import World

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Rows(NamedTuple):
    """The rows of a log, and how far it has been read."""

    shown: Ints  # the arm of each row
    rewards: Floats
    costs: Floats  # (rows, D)
    next_row: Ints  # one number


def outcome(rows: Rows, clock: Any, arm: int, count: int, cost: Floats) -> float:
    """The outcome in the next row that shows the arm; rows before it are passed over. Nothing if there is none."""
    row = rows.next_row[0]
    while row < rows.shown.size and rows.shown[row] != arm:
        row += 1
    rows.next_row[0] = row + 1
    if row >= rows.shown.size:
        return np.nan
    for d in range(cost.size):
        cost[d] = rows.costs[row, d]
    return float(rows.rewards[row])


class LogWorld(World):
    """Reads a log once, from its first row on."""

    outcome = staticmethod(outcome)

    def __init__(self, shown: Ints, rewards: Floats, costs: Floats) -> None:
        self.data = Rows(shown, rewards, costs, np.zeros(1, np.int64))

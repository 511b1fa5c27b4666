"""A table that knows the outcome of every arm in every round."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paceline.worlds.world import World

Floats = npt.NDArray[np.float64]


class Table(NamedTuple):
    """Row t - 1 is round t, a column is an arm; costs have one more axis, for the resources."""

    rewards: Floats
    costs: Floats


def outcome(table: Table, clock: Any, arm: int, count: int, cost: Floats) -> float:
    """What the table says of this round; nothing beyond its end."""
    row = clock.t - 1
    if row >= table.rewards.shape[0]:
        return np.nan
    for d in range(cost.size):
        cost[d] = table.costs[row, arm, d]
    return float(table.rewards[row, arm])


class TableWorld(World):
    """A full log: what every arm would have yielded, round by round."""

    outcome = staticmethod(outcome)

    def __init__(self, rewards: Floats, costs: Floats) -> None:
        self.data = Table(np.ascontiguousarray(rewards), np.ascontiguousarray(costs))

"""The world of a problem: the outcome of the n-th pull of an arm, the same whichever policy pulls it."""

from functools import lru_cache

from paceline.kernels.outcomes import outcome
from paceline.problems.draws import draws_of
from paceline.problems.problem import Problem
from paceline.worlds.world import World


class StationaryWorld(World):
    """What a problem yields, drawn anew at each pull, always by the same laws."""

    outcome = staticmethod(outcome)

    def __init__(self, problem: Problem) -> None:
        self.data = draws_of(problem)


@lru_cache(maxsize=8)
def world_of(problem: Problem) -> StationaryWorld:
    """The world of a problem; shared, never written to."""
    return StationaryWorld(problem)

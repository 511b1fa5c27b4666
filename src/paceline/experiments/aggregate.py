"""All problems of a run taken together, as the arena does it, from what is small enough to keep of each of them."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from paceline.experiments.arena import Arena
from paceline.experiments.scores import Score
from paceline.simulation.results import Results
from paceline.simulation.totals import Totals, subset
from paceline.statistics import Estimate


@dataclass
class Aggregate:
    """The problems that have something to learn: their limit, in which regret is measured, is above 0."""

    title: str
    reference: str
    last_rounds: list[Results] = field(default_factory=list)  # all trials, at the last round only
    averages: list[Results] = field(default_factory=list)  # all checkpoints, as one trial that is the mean of all

    def add(self, results: Results) -> None:
        """Keep what is needed of the results on one more problem."""
        after_first = results.rounds > 1  # after one round the limit is 0
        self.last_rounds.append(changed(results, slice(-1, None), lambda totals: totals))
        self.averages.append(changed(results, after_first, average_totals))

    @property
    def worthwhile(self) -> bool:
        """Whether there is more than one problem to take together."""
        return len(self.last_rounds) > 1

    @cached_property
    def ends(self) -> Arena:
        """All trials at the last round."""
        return Arena(self.title, tuple(self.last_rounds))

    @cached_property
    def curves(self) -> Arena:
        """Means over trials at every checkpoint."""
        return Arena(self.title, tuple(self.averages))

    @cached_property
    def scores(self) -> list[Score]:
        """A score for each policy."""
        return self.ends.scores(self.reference)

    @property
    def ratios(self) -> dict[str, Estimate]:
        """Regret in units of the limit, by policy."""
        return {score.label: score.ratio for score in self.scores}


def changed(
    results: Results, checkpoints: slice | npt.NDArray[np.bool_], change: Callable[[Totals], Totals]
) -> Results:
    """The results at some checkpoints, with the totals changed."""
    rounds = results.rounds[checkpoints]
    runs = {
        label: replace(run, rounds=rounds, totals=change(subset(run.totals, slice(None), checkpoints)))
        for label, run in results.items()
    }
    return replace(results, rounds=rounds, runs=runs)


def average_totals(totals: Totals) -> Totals:
    """One trial whose totals are the means; regret is linear in them, so its regret is the mean regret."""
    parts = totals._asdict()
    means = {name: part.mean(axis=0, keepdims=True) for name, part in parts.items() if name != "memory"}
    return Totals(**means, memory=totals.memory[:1])

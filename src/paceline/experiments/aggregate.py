"""All problems of a run taken together, as the arena does it, from what is small enough to keep of each of them."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from paceline.experiments.arena import Arena
from paceline.experiments.scores import Score
from paceline.problems.theory import limits
from paceline.reports.figures import RatioCurves
from paceline.simulation.results import Results
from paceline.simulation.totals import subset
from paceline.statistics import Estimate, log_means

Floats = npt.NDArray[np.float64]


@dataclass
class Aggregate:
    """The problems that have something to learn: their limit, in which regret is measured, is above 0.

    Points of a grid over a problem share arms and draws. They have the same number in ``groups``, and count as one.
    """

    title: str
    reference: str
    last_rounds: list[Results] = field(default_factory=list)  # all trials, at the last round only
    logs: list[Floats] = field(default_factory=list)  # of mean regret / limit: (policies, checkpoints)
    groups: list[int] = field(default_factory=list)

    def add(self, results: Results, group: int) -> None:
        """Keep what is needed of the results on one more problem."""
        self.last_rounds.append(last_round(results))
        self.groups.append(group)
        after_first = results.rounds > 1  # after one round the limit is 0
        yardsticks = limits(results.problem, results.rounds).capped[after_first]
        regret = np.stack([run.steady_regret[:, after_first].T for run in results.values()])
        self.logs.append(log_means(regret) - np.log(yardsticks))

    @property
    def worthwhile(self) -> bool:
        """Whether there is more than one problem to take together."""
        return len(self.last_rounds) > 1

    @cached_property
    def ends(self) -> Arena:
        """All trials at the last round."""
        return Arena(self.title, tuple(self.last_rounds), tuple(self.groups))

    def curves(self, rounds: npt.NDArray[np.int64]) -> RatioCurves:
        """Geometric means over problems at every checkpoint after the first round."""
        ratios = np.exp(np.mean(self.logs, axis=0))
        return RatioCurves(rounds[rounds > 1], dict(zip(self.ends.labels, ratios, strict=True)))

    @cached_property
    def scores(self) -> list[Score]:
        """A score for each policy."""
        return self.ends.scores(self.reference)

    @property
    def ratios(self) -> dict[str, Estimate]:
        """Regret in units of the limit, by policy."""
        return {score.label: score.ratio for score in self.scores}


def last_round(results: Results) -> Results:
    """The results at the last round alone."""
    at = slice(-1, None)
    runs = {
        label: replace(run, rounds=run.rounds[at], totals=subset(run.totals, slice(None), at))
        for label, run in results.items()
    }
    return replace(results, rounds=results.rounds[at], runs=runs)

"""All problems of a study taken together, from what is small enough to keep of each of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from paceline.experiments.scores import CAUSES, Score, outcomes, reference_of, score_table
from paceline.problems.theory import limits
from paceline.reports.tables import Table
from paceline.simulation.results import Results
from paceline.statistics import (
    FLOOR,
    Estimate,
    beyond_noise,
    gains_over,
    log_means,
    losses_to_best,
    ratios_to,
    three_digits,
)

Floats = npt.NDArray[np.float64]

QUANTILES = {"90 %": 0.9, "99 %": 0.99, "worst": 1.0}
ENOUGH_TRIALS = 20  # to speak of a tail
STANDINGS_NOTE = (
    "Mean steady regret over that of the best policy of the row: geometric mean over problems, 95 % interval of "
    "Student's t over problems. The best policy of a row is picked by these very numbers, which flatters it a little."
)
TAILS_NOTE = (
    "Steady regret of a single trial, in units of the median trial of {reference} on the same problem, trials of all "
    "problems pooled; a median below {floor:g} counts as {floor:g}."
)


@dataclass
class Together:
    """The problems that have something to learn: their limit, in which regret is measured, is above 0.

    Points of a grid over a problem share arms and draws. They have the same number in ``groups``, and count as one.
    """

    title: str
    size: str  # of the study, in words
    labels: list[str]
    rounds: npt.NDArray[np.int64]  # the checkpoints
    horizons: Sequence[int] = ()
    groups: list[int] = field(default_factory=list)
    limits: list[float] = field(default_factory=list)  # at the last round, by problem, like all lists below
    capped: list[bool] = field(default_factory=list)
    ends: list[Floats] = field(default_factory=list)  # steady regret: (policies, trials, horizons and the last round)
    logs: list[Floats] = field(default_factory=list)  # of mean regret / limit: (policies, checkpoints after the first)
    shares: list[Floats] = field(default_factory=list)  # regret by cause / limit: (policies, causes)
    lowest: list[Floats] = field(default_factory=list)  # headroom: (policies,)

    def add(self, results: Results, group: int) -> None:
        """Keep what is needed of the results on one more problem, if it has a limit."""
        after_first = self.rounds > 1  # after one round the limit is 0
        found = limits(results.problem, self.rounds)
        last = float(found.capped[-1])
        if last == 0.0:
            return
        regret = np.stack([run.steady_regret for run in results.values()])
        wanted = [int(np.searchsorted(self.rounds, horizon)) for horizon in self.horizons]
        self.groups.append(group)
        self.limits.append(last)
        self.capped.append(bool(found.cut[-1]))
        self.ends.append(regret[:, :, [*wanted, -1]])
        self.logs.append(log_means(regret[:, :, after_first].transpose(0, 2, 1)) - np.log(found.capped[after_first]))
        self.shares.append(
            np.array([[run.breakdown()[cause][:, -1].mean() / last for cause in CAUSES] for run in results.values()])
        )
        self.lowest.append(np.array([float(run.min_headroom.min()) for run in results.values()]))

    def __len__(self) -> int:
        return len(self.groups)

    @cached_property
    def regret(self) -> Floats:
        """(policies, problems, trials): steady regret at the last round."""
        return self.regret_at(-1)

    def regret_at(self, place: int) -> Floats:
        """The same at a horizon, by its place."""
        return np.stack([ends[:, :, place] for ends in self.ends], axis=1)

    def ratio_curves(self) -> dict[str, Floats]:
        """By policy, at every checkpoint after the first round: geometric mean of mean regret / limit of that round."""
        return dict(zip(self.labels, np.exp(np.mean(self.logs, axis=0)), strict=True))

    def causes(self, place: int) -> dict[str, float]:
        """Steady regret of a policy by cause, in units of the limit: mean over trials and problems."""
        return dict(zip(CAUSES, np.mean(self.shares, axis=0)[place].tolist(), strict=True))

    def scores(self, reference: str | None = None) -> list[Score]:
        """A score for each policy, in the order in which they ran; for the groups see `statistics.geometric_mean`."""
        against = self.labels.index(reference_of(self.labels, reference))
        ends = outcomes(self.regret)
        above = beyond_noise(self.regret, self.regret[against])
        ratios = ratios_to(np.array(self.limits), self.regret, self.groups)
        gains = gains_over(against, self.regret, self.groups)
        return [
            Score(
                label=label,
                ratio=ratios[place],
                gain=gains[place],
                won=int((ends[place] == 1).sum()),
                drawn=int((ends[place] == 0).sum()),
                lost=int((ends[place] == -1).sum()),
                better=int((above[place] == -1).sum()),
                worse=int((above[place] == 1).sum()),
                min_headroom=float(np.min(self.lowest, axis=0)[place]),
                causes=self.causes(place),
            )
            for place, label in enumerate(self.labels)
        ]

    def table(self, reference: str | None = None) -> Table:
        """One line per policy: steady regret against the limit and against the reference, with 95 % intervals.

        Both are geometric means over problems, with intervals of Student's t over problems, for all problems of the
        kind (`paceline.statistics.geometric_mean`); of a single problem over trials, for this one. A mean steady regret
        below 0.1 (short runs have them, even below 0) counts as 0.1.
        """
        return score_table(self.scores(reference), reference_of(self.labels, reference), sum(self.capped))

    def over_best(self) -> dict[int, dict[str, Estimate]]:
        """By horizon, the regret of each policy over that of the best one."""
        return {
            horizon: dict(zip(self.labels, losses_to_best(self.regret_at(place), self.groups), strict=True))
            for place, horizon in enumerate(self.horizons)
        }

    def tails(self, reference: str | None = None) -> Table | None:
        """How bad the bad trials are: a line per policy; nothing where trials are too few to say."""
        trials = self.regret.shape[-1]
        if trials < ENOUGH_TRIALS:
            return None
        against = reference_of(self.labels, reference)
        units = np.maximum(np.median(self.regret[self.labels.index(against)], axis=-1), FLOOR)
        pooled = (self.regret / units[:, np.newaxis]).reshape(len(self.labels), -1)
        rows = tuple(
            (label, *map(three_digits, (np.median(own), own.mean(), *np.quantile(own, list(QUANTILES.values())))))
            for label, own in zip(self.labels, pooled, strict=True)
        )
        note = TAILS_NOTE.format(reference=against, floor=FLOOR)
        return Table(("policy", "median", "mean", *QUANTILES), rows, (note,))


def standings(studies: Sequence[Together]) -> Table:
    """A line per study and horizon, a column per policy: its regret over that of the best policy of the line."""
    labels = list(dict.fromkeys(label for study in studies for label in study.labels))
    rows = tuple(
        (study.title, f"{horizon:,}", *(str(losses[label]) if label in losses else "" for label in labels))
        for study in studies
        for horizon, losses in study.over_best().items()
    )
    return Table(("family", "rounds", *labels), rows, (STANDINGS_NOTE,))

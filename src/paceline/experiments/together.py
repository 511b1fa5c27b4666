"""All problems of a study taken together: who lost how much, and who beat whom, from what is small enough to keep."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from paceline import checks
from paceline.errors import UnknownName
from paceline.problems.theory import limits
from paceline.reports.tables import Table
from paceline.simulation.results import Results
from paceline.statistics import (
    FLOOR,
    Estimate,
    beyond_noise,
    gains_over,
    geometric_mean,
    log_means,
    losses_to_best,
    ratios_to,
    three_digits,
)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

CAUSES = ("wrong_arms", "idle", "unspent")
REFERENCE = "suak"
DRAW = "draw"
# Beside a limit that is not the bare formula.
CAPPED = "†"
WHY_CAPPED = "the bare limit exceeds what there is to lose in so few rounds, and is capped: regret / limit says little"
QUANTILES = {"90 %": 0.9, "99 %": 0.99, "worst": 1.0}
ENOUGH_TRIALS = 20  # to speak of a tail
STANDINGS_NOTE = (
    "Mean steady regret over that of the best policy of the row: geometric mean over problems, 95 % interval of "
    "Student's t over problems. The best policy of a row is picked by these very numbers, which flatters it a little."
)
ALL_NOTE = " All of these: the problems of all rows with so many rounds, each policy on those that it can play."
TAILS_NOTE = (
    "Steady regret of a single trial, in units of the median trial of {reference} on the same problem, trials of all "
    "problems pooled; a median below {floor:g} counts as {floor:g}."
)


@dataclass(frozen=True)
class Score:
    """One policy over all problems.

    ``ratio``            geometric mean over problems of  mean steady regret / limit.
    ``gain``             the same of  mean steady regret of the reference / that of this policy:  how many times less it
                         loses.
    ``won, lost``        problems on which its mean steady regret is below that of every other policy by more than
                         noise, and on which that of some other policy is below its own; all others are ``drawn``.
    ``better, worse``    problems on which it beats the reference, or loses to it, by more than noise: 3 standard errors
                         of the paired differences, or what Student's t asks for in their place when trials are few.
    ``min_headroom``     the smallest headroom of any resource in all rounds of all runs: not below 0, or the promise
                         was broken.
    ``causes``           steady regret / limit by cause, mean over problems.
    """

    label: str
    ratio: Estimate
    gain: Estimate
    won: int
    drawn: int
    lost: int
    better: int
    worse: int
    min_headroom: float
    causes: dict[str, float]
    guard: bool = True


def reference_of(labels: Sequence[str], label: str | None = None) -> str:
    """The policy that the others are held against: the one named, else suak, else the first.

    >>> reference_of(["oracle", "suak"]), reference_of(["oracle"])
    ('suak', 'oracle')
    """
    if label is None:
        return REFERENCE if REFERENCE in labels else labels[0]
    if label not in labels:
        raise UnknownName(f"reference must be one of {', '.join(labels)}, got {label!r}{checks.guess(label, labels)}")
    return label


def outcomes(regret: Floats) -> Ints:
    """(policies, problems): 1 where a policy beats every other by more than noise, -1 where another beats it, else 0.

    ``regret`` is (policies, problems, trials).

    >>> outcomes(np.array([[[1.0, 2.0, 1.5]], [[31.0, 32.0, 31.6]], [[31.0, 32.0, 31.5]]])).ravel()
    array([ 1, -1, -1])
    """
    against = np.array([beyond_noise(own, regret) for own in regret])
    others = len(regret) - 1
    won = ((against == -1).sum(axis=1) == others) & (others > 0)
    return np.where(won, 1, np.where((against == 1).any(axis=1), -1, 0))


def headroom(lowest: float, guard: bool = True) -> str:
    """The smallest headroom, and a loud word if it shows a broken promise; without the guard the worst violation.

    >>> headroom(0.25), headroom(-0.5), headroom(-0.5, guard=False)
    ('0.25', '-0.5 OVERSPENT', '0.5')
    """
    if not guard:
        return f"{max(-lowest, 0.0):.3g}"
    return f"{lowest:.3g}" + ("" if lowest >= 0.0 else " OVERSPENT")


def write_limit(limit: float, capped: bool) -> str:
    """A limit, with a mark if it is capped.

    >>> write_limit(12.0, True), write_limit(12.0, False)
    ('12 †', '12')
    """
    return three_digits(limit) + (f" {CAPPED}" if capped else "")


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
    guard: bool = True
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
        if not last > 0.0:  # nothing to learn, or a world whose means nobody told
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
                guard=self.guard,
            )
            for place, label in enumerate(self.labels)
        ]

    def table(self, reference: str | None = None) -> Table:
        """One line per policy: steady regret against the limit and against the reference, with 95 % intervals.

        Both are geometric means over problems, with intervals of Student's t over problems, for all problems of the
        kind (`paceline.statistics.geometric_mean`); of a single problem over trials, for this one. A mean steady regret
        below 0.1 (short runs have them, even below 0) counts as 0.1.
        """
        capped = sum(self.capped)
        headings = (
            "policy",
            f"regret / limit {CAPPED}" if capped else "regret / limit",
            f"{reference_of(self.labels, reference)} / policy",
            "won",
            "drawn",
            "lost",
            "better",
            "worse",
            "min headroom" if self.guard else "worst violation",
            "wrong arms",
            "idle",
            "unspent",
        )
        rows = tuple(
            (
                score.label,
                str(score.ratio),
                str(score.gain),
                *(str(count) for count in (score.won, score.drawn, score.lost, score.better, score.worse)),
                headroom(score.min_headroom, score.guard),
                *map(three_digits, score.causes.values()),
            )
            for score in self.scores(reference)
        )
        return Table(headings, rows, (f"{CAPPED} on {capped} of {len(self)} problems {WHY_CAPPED}",) if capped else ())

    def over_best(self) -> dict[int, dict[str, Estimate]]:
        """By horizon, the regret of each policy over that of the best one."""
        return {
            horizon: dict(zip(self.labels, losses_to_best(self.regret_at(place), self.groups), strict=True))
            for place, horizon in enumerate(self.horizons)
        }

    def logs_at(self, horizon: int) -> dict[str, Floats]:
        """By policy, the logarithm of its mean regret at a horizon: one for each group of problems."""
        _, member = np.unique(self.groups, return_inverse=True)
        logs = log_means(self.regret_at(list(self.horizons).index(horizon)))
        return {
            label: np.bincount(member, own) / np.bincount(member) for label, own in zip(self.labels, logs, strict=True)
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
    """A line per study and horizon, a column per policy: its regret over that of the best policy of the line.

    Several studies with a horizon in common have a line together below the others.
    """
    labels = list(dict.fromkeys(label for study in studies for label in study.labels))
    common = over_best_of_all(studies)
    lines = [
        *((study.title, *line) for study in studies for line in study.over_best().items()),
        *(("all of these", *line) for line in common.items()),
    ]
    rows = tuple(
        (title, f"{horizon:,}", *(str(losses[label]) if label in losses else "" for label in labels))
        for title, horizon, losses in lines
    )
    return Table(("experiment", "rounds", *labels), rows, (STANDINGS_NOTE + (ALL_NOTE if common else ""),))


def over_best_of_all(studies: Sequence[Together]) -> dict[int, dict[str, Estimate]]:
    """By horizon that several studies share, the regret of each policy over that of the best, on all their problems.

    The best is a policy that plays all of them. Another that cannot is held against it on those that it plays.
    """
    found = {}
    for horizon in sorted({horizon for study in studies for horizon in study.horizons}):
        logs = [study.logs_at(horizon) for study in studies if horizon in study.horizons]
        common = set.intersection(*map(set, logs))
        if len(logs) < 2 or not common:
            continue
        best = min(common, key=lambda label: np.concatenate([each[label] for each in logs]).mean())
        labels = dict.fromkeys(label for each in logs for label in each)
        found[horizon] = {label: over_best_in_pairs(logs, label, best) for label in labels}
    return found


def over_best_in_pairs(logs: Sequence[dict[str, Floats]], label: str, best: str) -> Estimate:
    """The regret of a policy over that of the best, over the problems of all studies that it plays."""
    if label == best:
        return Estimate(1.0, 1.0, 1.0)
    pairs = np.concatenate([each[label] - each[best] for each in logs if label in each])
    return geometric_mean(pairs, np.zeros((pairs.size, 1)))

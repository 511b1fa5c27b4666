"""How policies did over several problems: a line for each policy, and a line for each problem."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paceline.errors import UnknownName
from paceline.reports.tables import Table, write_budget
from paceline.simulation.results import Results
from paceline.statistics import Estimate, gains_over, ratios_to, three_digits

Floats = npt.NDArray[np.float64]

CAUSES = ("wrong_arms", "idle", "unspent")
REFERENCE = "suak"
NOISE = 3.0  # a difference of so many standard errors is more than noise


@dataclass(frozen=True)
class Score:
    """One policy over all problems.

    ``ratio``            geometric mean over problems of  mean steady regret / limit.
    ``gain``             the same of  mean steady regret of the reference / that of this policy:  how many times less it
                         loses.
    ``won``              problems on which its mean steady regret is the lowest.
    ``better, worse``    problems on which it beats the reference, or loses to it, by more than 3 standard errors of the
                         paired differences.
    ``min_headroom``     the smallest headroom of any resource in all rounds of all runs: not below 0, or the promise
                         was broken.
    ``causes``           steady regret / limit by cause, mean over problems.
    """

    label: str
    ratio: Estimate
    gain: Estimate
    won: int
    better: int
    worse: int
    min_headroom: float
    causes: dict[str, float]


def reference_of(labels: Sequence[str], label: str | None = None) -> str:
    """The policy that the others are held against: the one named, else suak, else the first.

    >>> reference_of(["oracle", "suak"]), reference_of(["oracle"])
    ('suak', 'oracle')
    """
    if label is None:
        return REFERENCE if REFERENCE in labels else labels[0]
    if label not in labels:
        raise UnknownName(f"reference must be one of {', '.join(labels)}, got {label!r}")
    return label


def final_regret(results: Sequence[Results]) -> Floats:
    """Steady regret at the last round: (policies, problems, trials)."""
    return np.array([[res[label].steady_regret[:, -1] for res in results] for label in results[0]])


def final_causes(results: Sequence[Results], label: str, limits: Floats) -> dict[str, float]:
    """Steady regret of a policy by cause, in units of the limit: mean over trials and problems."""
    shares = {
        cause: [res[label].breakdown()[cause][:, -1].mean() / limit for res, limit in zip(results, limits, strict=True)]
        for cause in CAUSES
    }
    return {cause: float(np.mean(share)) for cause, share in shares.items()}


def standard_errors_above(regret: Floats, reference: Floats) -> Floats:
    """Paired t over the last axis: mean difference in units of its standard error.

    A difference that is the same in all of several trials is infinitely sure; a single trial says nothing.

    >>> standard_errors_above(np.array([[3.0, 5.0], [2.0, 2.0], [1.0, 1.0]]), np.array([1.0, 1.0]))
    array([ 3., inf,  0.])
    """
    difference = regret - reference
    trials = difference.shape[-1]
    mean = np.asarray(difference.mean(axis=-1))
    if trials == 1:
        return np.zeros_like(mean)
    error = np.asarray(difference.std(axis=-1, ddof=1) / np.sqrt(trials))
    certain = np.where(mean == 0.0, 0.0, np.copysign(np.inf, mean))
    return np.asarray(np.divide(mean, error, out=certain, where=error > 0.0))


def scores(results: Sequence[Results], limits: Floats, reference: str, seed: int) -> list[Score]:
    """A score for each policy, in the order in which they ran."""
    labels = list(results[0])
    regret = final_regret(results)
    place = labels.index(reference)
    winners = regret.mean(axis=-1).argmin(axis=0)
    above = standard_errors_above(regret, regret[place])
    return [
        Score(
            label=label,
            ratio=ratio,
            gain=gain,
            won=int((winners == number).sum()),
            better=int((above[number] < -NOISE).sum()),
            worse=int((above[number] > NOISE).sum()),
            min_headroom=min(float(res[label].min_headroom.min()) for res in results),
            causes=final_causes(results, label, limits),
        )
        for number, (label, ratio, gain) in enumerate(
            zip(labels, ratios_to(limits, regret, seed), gains_over(place, regret, seed), strict=True)
        )
    ]


def headroom(lowest: float) -> str:
    """The smallest headroom, and a loud word if it shows a broken promise.

    >>> headroom(0.25), headroom(-0.5)
    ('0.25', '-0.5 OVERSPENT')
    """
    return f"{lowest:.3g}" + ("" if lowest >= 0.0 else " OVERSPENT")


def score_table(found: Sequence[Score], reference: str) -> Table:
    """A line per policy."""
    headings = (
        "policy",
        "regret / limit",
        f"{reference} / policy",
        "won",
        "better",
        "worse",
        "min headroom",
        "wrong arms",
        "idle",
        "unspent",
    )
    rows = (
        (
            score.label,
            str(score.ratio),
            str(score.gain),
            str(score.won),
            str(score.better),
            str(score.worse),
            headroom(score.min_headroom),
            *map(three_digits, score.causes.values()),
        )
        for score in found
    )
    return Table(headings, tuple(rows))


def problem_table(results: Sequence[Results], limits: Floats) -> Table:
    """A line per problem: what it is, the mean steady regret of each policy, and whose is the lowest."""
    labels = list(results[0])
    means = final_regret(results).mean(axis=-1)
    rows = (
        (
            str(number + 1),
            str(res.problem.optimum_over(int(res.rounds[-1])).case),
            str(res.problem.arms),
            write_budget(res.problem, ".3f"),
            three_digits(float(limits[number])),
            *(three_digits(float(mean)) for mean in means[:, number]),
            labels[int(means[:, number].argmin())],
        )
        for number, res in enumerate(results)
    )
    return Table(("problem", "case", "arms", "budget", "limit", *labels, "lowest"), tuple(rows))

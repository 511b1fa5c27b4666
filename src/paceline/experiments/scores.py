"""How policies did over several problems: a line for each policy, and a line for each problem."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paceline.errors import UnknownName
from paceline.reports.tables import Table, write_budget
from paceline.simulation.results import Results
from paceline.statistics import Estimate, beyond_noise, gains_over, ratios_to, three_digits

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

CAUSES = ("wrong_arms", "idle", "unspent")
REFERENCE = "suak"
DRAW = "draw"
# Beside a limit that is not the bare formula.
CAPPED = "†"
WHY_CAPPED = "the bare limit exceeds what there is to lose in so few rounds, and is capped: regret / limit says little"


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


def duels(regret: Floats) -> Ints:
    """(policies, policies, problems): -1 where the first loses less than the second beyond noise, 1 where more."""
    return np.array([beyond_noise(regret[number], regret) for number in range(len(regret))])


def outcomes(regret: Floats) -> Ints:
    """(policies, problems): 1 where a policy beats every other by more than noise, -1 where another beats it, else 0.

    >>> outcomes(np.array([[[1.0, 2.0, 1.5]], [[31.0, 32.0, 31.6]], [[31.0, 32.0, 31.5]]])).ravel()
    array([ 1, -1, -1])
    """
    against = duels(regret)
    others = len(regret) - 1
    won = ((against == -1).sum(axis=1) == others) & (others > 0)
    return np.where(won, 1, np.where((against == 1).any(axis=1), -1, 0))


def winners(results: Sequence[Results]) -> list[str]:
    """Who wins each problem; a win within noise is a draw."""
    labels = list(results[0])
    found = outcomes(final_regret(results)).T == 1
    return [labels[int(row.argmax())] if row.any() else DRAW for row in found]


def scores(results: Sequence[Results], limits: Floats, reference: str, groups: Sequence[int] = ()) -> list[Score]:
    """A score for each policy, in the order in which they ran; for the groups see `statistics.geometric_mean`."""
    labels = list(results[0])
    regret = final_regret(results)
    place = labels.index(reference)
    ends = outcomes(regret)
    above = beyond_noise(regret, regret[place])
    return [
        Score(
            label=label,
            ratio=ratio,
            gain=gain,
            won=int((ends[number] == 1).sum()),
            drawn=int((ends[number] == 0).sum()),
            lost=int((ends[number] == -1).sum()),
            better=int((above[number] == -1).sum()),
            worse=int((above[number] == 1).sum()),
            min_headroom=min(float(res[label].min_headroom.min()) for res in results),
            causes=final_causes(results, label, limits),
        )
        for number, (label, ratio, gain) in enumerate(
            zip(labels, ratios_to(limits, regret, groups), gains_over(place, regret, groups), strict=True)
        )
    ]


def headroom(lowest: float) -> str:
    """The smallest headroom, and a loud word if it shows a broken promise.

    >>> headroom(0.25), headroom(-0.5)
    ('0.25', '-0.5 OVERSPENT')
    """
    return f"{lowest:.3g}" + ("" if lowest >= 0.0 else " OVERSPENT")


def score_table(found: Sequence[Score], reference: str, capped: int = 0) -> Table:
    """A line per policy; marked if the limit of some problems is capped."""
    headings = (
        "policy",
        f"regret / limit {CAPPED}" if capped else "regret / limit",
        f"{reference} / policy",
        "won",
        "drawn",
        "lost",
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
            str(score.drawn),
            str(score.lost),
            str(score.better),
            str(score.worse),
            headroom(score.min_headroom),
            *map(three_digits, score.causes.values()),
        )
        for score in found
    )
    problems = found[0].won + found[0].drawn + found[0].lost
    return Table(
        headings, tuple(rows), (f"{CAPPED} on {capped} of {problems} problems {WHY_CAPPED}",) if capped else ()
    )


def write_limit(limit: float, capped: bool) -> str:
    """A limit, with a mark if it is capped.

    >>> write_limit(12.0, True), write_limit(12.0, False)
    ('12 †', '12')
    """
    return three_digits(limit) + (f" {CAPPED}" if capped else "")


def note_on_limits(capped: Sequence[bool]) -> tuple[str, ...]:
    """What the mark means, if there is one."""
    return (f"{CAPPED} {WHY_CAPPED}",) if any(capped) else ()


def problem_table(results: Sequence[Results], limits: Floats, capped: Sequence[bool]) -> Table:
    """A line per problem: what it is, the mean steady regret of each policy, and who wins by more than noise."""
    labels = list(results[0])
    means = final_regret(results).mean(axis=-1)
    won_by = winners(results)
    rows = (
        (
            str(number + 1),
            str(res.problem.optimum_over(int(res.rounds[-1])).case),
            str(res.problem.arms),
            write_budget(res.problem, ".3f"),
            write_limit(float(limits[number]), capped[number]),
            *(three_digits(float(mean)) for mean in means[:, number]),
            won_by[number],
        )
        for number, res in enumerate(results)
    )
    headings = ("problem", "case", "arms", "budget", "limit", *labels, "won by")
    return Table(headings, tuple(rows), note_on_limits(capped))

"""How policies did over several problems: who lost how much, who beat whom, and the words for it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paceline.errors import UnknownName
from paceline.reports.tables import Table
from paceline.statistics import Estimate, beyond_noise, three_digits

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
            *(str(count) for count in (score.won, score.drawn, score.lost, score.better, score.worse)),
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

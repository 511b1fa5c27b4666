"""What the paper says of its two experiments, checked against what was measured."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paceline.reports.tables import mean_and_interval
from paceline.simulation.results import Run
from paceline.statistics import beyond_noise, mean_ratio

Runs = Mapping[str, Run]
Floats = npt.NDArray[np.float64]

# Labels of the paper's figures; "_skip" there, behind the guard here.
SUAK, OPS, PDS, USS = "SUAK", "OPS", "PDS", "USS"
# The same with another constant or order that the paper's text leaves room for, and its second naive approach.
SUAK_FIRST, OPS_TWO, USS_FIVE = "SUAK, first", "OPS, a = 2", "USS, λ = 5"
OPS_LATER = "OPS, √(KT) rounds skipped first"
# Not in the paper: our own two, and two simple ones that everybody should beat.
INDEX, THOMPSON, EPSILON, GREEDY = "Index pacer", "Thompson pacer", "Epsilon-greedy", "Greedy"

CROSSING = 1_400_000  # where the paper sees SUAK overtake OPS


@dataclass(frozen=True)
class Claim:
    """One sentence of the paper, what was measured, and whether it holds.

    ``sure`` is False where policies are compared, and what was measured is within noise: such a claim does not hold,
    but neither is it refuted. ``tested`` is False where the rounds did not reach what it is about.
    """

    figure: int
    says: str
    measured: str
    holds: bool
    sure: bool = True
    tested: bool = True

    @property
    def verdict(self) -> str:
        """In a word or two."""
        if not self.tested:
            return "not tested"
        return "yes" if self.holds else "NO" if self.sure else "within noise"


def ends_with_less_regret(runs: Runs) -> Claim:
    """Figure 1, left."""
    suak, ops = final(runs[SUAK].regret), final(runs[OPS].regret)
    text = f"SUAK {mean_and_interval(suak)}, OPS {mean_and_interval(ops)}"
    return Claim(1, "SUAK ends with less regret than OPS", text, *more_than(ops, [suak]))


def ops_skips_far_more(runs: Runs) -> Claim:
    """Figure 1, middle. Far more: at least three times."""
    suak, ops = final(runs[SUAK].skips).mean(), final(runs[OPS].skips).mean()
    text = f"OPS {ops:,.0f}, SUAK {suak:,.0f}: {ops / max(suak, 1.0):.1f} times"
    return Claim(1, "OPS skips far more rounds than SUAK (3 times or more)", text, bool(ops >= 3 * suak))


def ops_skips_sublinearly(runs: Runs) -> Claim:
    """Figure 1, middle."""
    exponent = growth(runs[OPS])
    says = "The skips of OPS grow sublinearly (like T^x with x < 0.9)"
    return Claim(1, says, f"x = {exponent:.2f} over the second half", exponent < 0.9)


def skipping_first_is_no_cure(runs: Runs) -> Claim:
    """Section 1.1: both naive approaches result in significant regret. Significant: more than SUAK's."""
    later, suak = final(runs[OPS_LATER].regret), final(runs[SUAK].regret)
    text = f"√(KT) rounds first: {mean_and_interval(later)}, at once: {mean_and_interval(final(runs[OPS].regret))}"
    says = "Skipping a first stretch of rounds instead has significant regret, too (more than SUAK)"
    return Claim(1, says, f"{text}, SUAK {mean_and_interval(suak)}", *more_than(later, [suak]))


def primal_dual_is_worst(runs: Runs) -> Claim:
    """Figure 2, first."""
    ends = {label: final(runs[label].regret) for label in (SUAK, OPS, PDS, USS)}
    text = ", ".join(f"{label} {end.mean():,.0f}" for label, end in sorted(ends.items(), key=lambda e: -e[1].mean()))
    return Claim(2, "PDS has the most regret", text, *more_than(ends[PDS], [ends[SUAK], ends[OPS], ends[USS]]))


def simplex_is_poor(runs: Runs) -> Claim:
    """Figure 2, first."""
    uss, five = final(runs[USS].regret), final(runs[USS_FIVE].regret)
    others = [final(runs[label].regret) for label in (SUAK, OPS)]
    worse = max(other.mean() for other in others)
    text = f"λ = 9: {mean_and_interval(uss)}; λ = 5: {mean_and_interval(five)}; the worse of SUAK and OPS {worse:,.0f}"
    return Claim(2, "USS (λ = 9) performs poorly: more regret than SUAK and OPS", text, *more_than(uss, others))


def suak_overtakes(runs: Runs) -> Claim:
    """Figure 2, second."""
    text = "; ".join(
        f"a = {a}: {told_crossing(crossing(runs[SUAK], runs[ops]))}" for a, ops in ((3, OPS), (2, OPS_TWO))
    )
    behind_at_first = crossing(runs[SUAK], runs[OPS]) is not None
    ahead, sure = more_than(final(runs[OPS].regret), [final(runs[SUAK].regret)])
    return Claim(2, "SUAK overtakes OPS", text, behind_at_first and ahead, sure)


def overtakes_at(runs: Runs) -> Claim:
    """Figure 2, second. About: within a tenth."""
    at = crossing(runs[SUAK], runs[OPS])
    near = at is not None and abs(at - CROSSING) <= 0.1 * CROSSING
    return Claim(2, "... at about round 1.4 million (OPS with the radius of SUAK, a = 3)", told_crossing(at), near)


def regret_is_of_phase_one(runs: Runs) -> Claim:
    """Figure 2, second. Mostly: more than half, trial by trial.

    Just after phase 1 SUAK pulls cheap arms until it has the reserve that phase 2 keeps; where its average cost is
    lowest that is over. It costs regret in a few rounds, and in a figure it looks like a part of phase 1.
    """
    run = runs[SUAK]
    if not phase_one_ended(run):
        return Claim(2, MOSTLY, "phase 1 did not end in every trial", holds=False, tested=False)
    ends = run.memory["classified_at"][:, -1]
    there = np.array([np.interp(end, run.rounds, curve) for end, curve in zip(ends, run.regret, strict=True)])
    last = final(run.regret)
    average = (run.spent / run.rounds).mean(axis=0)
    saved = int(np.argmin(np.where(run.rounds >= phase_one_end(run), average, np.inf)))
    text = (
        f"{there.mean() / last.mean():.0%} of {last.mean():,.0f} by its end at round {ends.mean():,.0f}; "
        f"{run.regret[:, saved].mean() / last.mean():.0%} by round {run.rounds[saved]:,}, when its reserve is saved"
    )
    return Claim(2, MOSTLY, text, *more_than(there, [last - there]))


MOSTLY = "The regret of SUAK concentrates mostly on phase 1 (more than half of it)"


def few_skips(runs: Runs) -> Claim:
    """Figure 2, third. Very few: under one round in a hundred."""
    shares = {label: final(runs[label].skips).mean() / runs[label].rounds[-1] for label in (SUAK, USS)}
    text = ", ".join(f"{label} {final(runs[label].skips).mean():,.0f} ({share:.2%})" for label, share in shares.items())
    return Claim(2, "SUAK and USS have very few skips (under 1 % of rounds)", text, bool(max(shares.values()) < 0.01))


def all_skip_sublinearly(runs: Runs) -> Claim:
    """Figure 2, third."""
    exponents = {label: growth(runs[label]) for label in (SUAK, OPS, PDS, USS)}
    text = ", ".join(f"{label} {exponent:.2f}" for label, exponent in exponents.items())
    says = "The number of skips is sublinear for all algorithms (T^x with x < 0.9)"
    return Claim(2, says, text, bool(max(exponents.values()) < 0.9))


def phase_one_at_budget(runs: Runs) -> Claim:
    """Figure 2, fourth. Near: within 0.01 of c half way through phase 1 and at its end.

    It depends on which unclassified arm goes first, which the paper leaves open: in the order of the list the cheap
    arms are done before any expensive one. The regret at the end is the same.
    """
    found = {}
    for label in (SUAK, SUAK_FIRST):
        run = runs[label]
        average = (run.spent / run.rounds).mean(axis=0)
        end = phase_one_end(run)
        found[label] = [average[max(int(np.searchsorted(run.rounds, at)) - 1, 0)] for at in (end / 2, end)]
    text = "; ".join(f"{label}: {half:.4f} half way, {last:.4f} at its end" for label, (half, last) in found.items())
    near = max(abs(cost - runs[SUAK].problem.budget) for cost in found[SUAK]) < 0.01
    return Claim(2, "The average cost of SUAK is near c = 0.5 in phase 1 (fewest pulls first)", text, bool(near))


def falls_and_climbs(runs: Runs) -> Claim:
    """Figure 2, fourth. About 0.49: from 0.485 to 0.495; back: closer to c by half at the end."""
    run = runs[SUAK]
    if not phase_one_ended(run):
        return Claim(2, FALLS, "phase 1 did not end in every trial", holds=False, tested=False)
    average = (run.spent / run.rounds).mean(axis=0)
    later = run.rounds >= phase_one_end(run)
    lowest, last = float(average[later].min()), float(average[-1])
    back = run.problem.budget - last < (run.problem.budget - lowest) / 2
    text = f"falls to {lowest:.4f} at round {run.rounds[later][average[later].argmin()]:,}, ends at {last:.4f}"
    return Claim(2, FALLS, text, 0.485 <= lowest <= 0.495 and back)


FALLS = "... then falls to about 0.49 and climbs back towards 0.5"


def others_at_constraint(runs: Runs) -> Claim:
    """Figure 2, fourth."""
    slack = {
        label: runs[label].problem.budget - final(runs[label].spent).mean() / runs[label].rounds[-1]
        for label in (OPS, PDS, USS)
    }
    text = ", ".join(f"{label} {rest:.1e}" for label, rest in slack.items())
    says = "The average cost of the others sits at the constraint (within 0.001)"
    return Claim(2, says, text, bool(max(slack.values()) < 1e-3))


def others_need_skips(runs: Runs) -> Claim:
    """Figure 2, fourth. Need: the rounds that were not skipped cost more than c on average, by 0.001 or more.

    Without the skips the line would then have been crossed.
    """
    excess = {}
    for label in (OPS, PDS, USS):
        run = runs[label]
        played = run.rounds[-1] - final(run.skips)
        excess[label] = float((final(run.spent) / np.maximum(played, 1.0)).mean()) - run.problem.budget
    text = "cost of a round not skipped, minus c: " + ", ".join(f"{label} {more:.4f}" for label, more in excess.items())
    needed = {label for label, more in excess.items() if more >= 1e-3}
    return Claim(2, "... for which all but USS need skips (0.001 or more above c without)", text, needed == {OPS, PDS})


CLAIMS: dict[int, tuple[Callable[[Runs], Claim], ...]] = {
    1: (ends_with_less_regret, ops_skips_far_more, ops_skips_sublinearly, skipping_first_is_no_cure),
    2: (
        primal_dual_is_worst,
        simplex_is_poor,
        suak_overtakes,
        overtakes_at,
        regret_is_of_phase_one,
        few_skips,
        all_skip_sublinearly,
        phase_one_at_budget,
        falls_and_climbs,
        others_at_constraint,
        others_need_skips,
    ),
}


def times_less(runs: Runs) -> str:
    """How the others compare, in two sentences; in brackets 95 % intervals of the ratios, paired by trial."""
    own = ", ".join(
        f"{label} {mean_and_interval(final(runs[label].steady_regret))}" for label in (INDEX, THOMPSON, EPSILON, GREEDY)
    )
    index = final(runs[INDEX].steady_regret)
    losses = (f"{label} {write_ratio(final(runs[label].steady_regret), index)}" for label in (SUAK, OPS, PDS, USS))
    return (
        f"Not in the paper, steady regret at the end: {own}. "
        f"Times as much as the index pacer, our default, lose: {', '.join(losses)}."
    )


def write_ratio(values: Floats, reference: Floats) -> str:
    """A ratio of means, with its interval if there is one."""
    ratio = mean_ratio(values, reference)
    if ratio is None or not ratio.known:
        return f"{values.mean() / reference.mean():,.0f}"
    return f"{ratio.value:,.0f} [{ratio.low:,.0f}, {ratio.high:,.0f}]"


def more_than(values: Floats, others: Sequence[Floats]) -> tuple[bool, bool]:
    """Whether the mean is above that of all others by more than noise, paired; and whether that is sure either way."""
    signs = [int(beyond_noise(values, other)) for other in others]
    above = all(sign > 0 for sign in signs)
    return above, above or any(sign < 0 for sign in signs)


def final(curve: Floats | npt.NDArray[np.int64]) -> Floats:
    """Each trial's value at the last round."""
    return curve[:, -1].astype(np.float64)


def growth(run: Run) -> float:
    """The x for which mean skips grew like T^x from half of the rounds to all of them; infinite if they began later."""
    skips = run.skips.mean(axis=0)
    half = int(np.searchsorted(run.rounds, run.rounds[-1] / 2))
    if skips[-1] == skips[half]:
        return 0.0
    if skips[half] == 0.0:
        return math.inf
    return float(np.log(skips[-1] / skips[half]) / np.log(run.rounds[-1] / run.rounds[half]))


def crossing(behind: Run, ahead: Run) -> int | None:
    """The checkpoint from which ``behind`` has less mean regret than ``ahead`` for good, after having had more."""
    difference = (behind.regret - ahead.regret).mean(axis=0)
    if difference[-1] >= 0.0 or not (difference > 0.0).any():
        return None
    return int(behind.rounds[int(np.flatnonzero(difference > 0.0)[-1]) + 1])


def told_crossing(at: int | None) -> str:
    """A crossing in words."""
    return "not within these rounds" if at is None else f"at round {at:,}"


def phase_one_ended(run: Run) -> bool:
    """Whether all arms were classified in every trial."""
    return bool((run.memory["classified_at"][:, -1] > 0).all())


def phase_one_end(run: Run) -> float:
    """Mean round at which all arms were classified; the end of the run for a trial that did not get there."""
    ends = run.memory["classified_at"][:, -1]
    return float(np.where(ends == 0, run.rounds[-1], ends).mean())

"""The claims of the paper, on runs made by hand: where each must hold and where it must not."""

from collections.abc import Callable

import numpy as np
import pytest

from paceline.paper import claims, eight_arms
from paceline.paper.claims import (
    CLAIMS,
    OPS,
    OPS_LATER,
    OPS_TWO,
    PDS,
    SUAK,
    SUAK_FIRST,
    USS,
    USS_FIVE,
    crossing,
    growth,
)
from paceline.policies import suak
from paceline.simulation.results import Run
from paceline.simulation.totals import NOTHING, Totals

PROBLEM = eight_arms()  # rate 0.5
LAST = 2_500_000
ROUNDS = np.arange(5_000, LAST + 1, 5_000)
SHARE = ROUNDS / LAST  # from 0 to 1
PHASE_ONE = 300_000

Curve = np.ndarray | float


def run(
    label: str = "a run",
    regret: Curve = 0.0,
    skips: Curve = 0.0,
    cost: Curve = 0.4999,
    classified_at: int | None = None,
    rounds: np.ndarray = ROUNDS,
) -> Run:
    """Two trials with the given mean curves: regret and skips so far, average cost. SUAK's memory if asked for."""
    size = (2, len(rounds))
    apart = np.array([[-7.0], [7.0]])  # the trials differ; only their mean is as asked for
    memory = np.zeros(size, NOTHING)
    if classified_at is not None:
        memory = np.zeros(size, suak.RECORD)
        memory["classified_at"] = np.where(rounds >= classified_at, classified_at, 0) if classified_at else 0
    skipped = np.broadcast_to(np.rint(skips), size).astype(np.int64)
    return Run(
        label,
        "made by hand",
        PROBLEM,
        rounds,
        Totals(
            earned=PROBLEM.optimum.value * rounds - (regret + apart),
            spent=np.broadcast_to(cost * rounds, size),
            lost=np.zeros(size),
            skips=skipped,
            idle=skipped,
            pulls=np.zeros((*size, PROBLEM.arms), np.int64),
            memory=memory,
            min_headroom=np.zeros(2),
        ),
    )


# Curves that are what the paper says they are.

SUAK_REGRET = np.where(ROUNDS < PHASE_ONE, 20_000 * ROUNDS / PHASE_ONE, 20_000 + 2_000 * SHARE)
SUAK_COST = np.interp(ROUNDS, [0, PHASE_ONE, 2 * PHASE_ONE, LAST], [0.499, 0.499, 0.490, 0.498])
MEETING = SUAK_REGRET[ROUNDS == claims.CROSSING].item()
OPS_REGRET = MEETING * np.sqrt(ROUNDS / claims.CROSSING)
LOGARITHM = np.log1p(ROUNDS) / np.log1p(LAST)

AS_IN_THE_PAPER: dict[str, dict[str, object]] = {
    SUAK: {"regret": SUAK_REGRET, "skips": 12_000 * LOGARITHM, "cost": SUAK_COST, "classified_at": PHASE_ONE},
    SUAK_FIRST: {"regret": SUAK_REGRET, "cost": SUAK_COST, "classified_at": PHASE_ONE},
    OPS: {"regret": OPS_REGRET, "skips": 90_000 * SHARE**0.5},
    OPS_LATER: {"regret": 1.1 * OPS_REGRET},
    OPS_TWO: {"regret": 0.9 * OPS_REGRET},
    PDS: {"regret": 120_000 * SHARE, "skips": 350_000 * SHARE**0.8},
    USS: {"regret": 42_000 * SHARE**0.5, "skips": 13 * LOGARITHM},
    USS_FIVE: {"regret": 29_000 * SHARE**0.5},
}


def runs(**changes: dict[str, object]) -> dict[str, Run]:
    """The runs of the paper, some of their curves replaced."""
    return {label: run(label, **{**curves, **changes.get(label, {})}) for label, curves in AS_IN_THE_PAPER.items()}


def broken(found: dict[str, Run]) -> set[str]:
    """The names of the claims that do not hold."""
    return {check.__name__ for checks in CLAIMS.values() for check in checks if not check(found).holds}


def test_all_claims_hold_on_the_curves_of_the_paper():
    assert broken(runs()) == set()


def dip(lowest: float, last: float) -> np.ndarray:
    """An average cost that is near 0.5 in phase 1, falls, and ends elsewhere."""
    return np.interp(ROUNDS, [0, PHASE_ONE, 2 * PHASE_ONE, LAST], [0.499, 0.499, lowest, last])


# What is changed, and exactly which claims it breaks.
CHANGES: dict[str, tuple[dict[str, dict[str, object]], set[str]]] = {
    "SUAK ends a little above OPS": (
        {SUAK: {"regret": SUAK_REGRET + (OPS_REGRET - SUAK_REGRET)[-1] + 1}},
        {"ends_with_less_regret", "suak_overtakes", "overtakes_at"},
    ),
    "SUAK ends a little below OPS": (
        {SUAK: {"regret": SUAK_REGRET + (OPS_REGRET - SUAK_REGRET)[-1] - 1}},
        {"overtakes_at"},
    ),
    "OPS skips just under 3 times as much": ({OPS: {"skips": 35_900 * SHARE**0.5}}, {"ops_skips_far_more"}),
    "OPS skips just 3 times as much": ({OPS: {"skips": 36_000 * SHARE**0.5}}, set()),
    "skips of OPS nearly linear": (
        {OPS: {"skips": 90_000 * SHARE**0.91}},
        {"ops_skips_sublinearly", "all_skip_sublinearly"},
    ),
    "skips of OPS just sublinear": ({OPS: {"skips": 90_000 * SHARE**0.89}}, set()),
    "skips of PDS nearly linear": ({PDS: {"skips": 350_000 * SHARE**0.91}}, {"all_skip_sublinearly"}),
    "PDS better than USS": ({PDS: {"regret": 41_000 * SHARE}}, {"primal_dual_is_worst"}),
    "USS worse than PDS": ({USS: {"regret": 121_000 * SHARE}}, {"primal_dual_is_worst"}),
    "USS between SUAK and OPS": ({USS: {"regret": 25_000 * SHARE}}, {"simplex_is_poor"}),
    "USS good only with another constant": ({USS_FIVE: {"regret": 1_000 * SHARE}}, set()),
    "SUAK always ahead": (
        {SUAK: {"regret": 0.5 * OPS_REGRET}},
        {"suak_overtakes", "overtakes_at", "regret_is_of_phase_one"},
    ),
    "crossing 11 % early": ({OPS: {"regret": OPS_REGRET * np.sqrt(1 / 0.89)}}, {"overtakes_at"}),
    "crossing 9 % early": ({OPS: {"regret": OPS_REGRET * np.sqrt(1 / 0.91)}}, set()),
    "crossing 12 % late": ({OPS: {"regret": OPS_REGRET * np.sqrt(1 / 1.12)}}, {"overtakes_at"}),
    "SUAK skips just over 1 %": ({SUAK: {"skips": 25_100 * LOGARITHM}}, {"few_skips"}),
    "SUAK skips just under 1 %": ({SUAK: {"skips": 24_900 * LOGARITHM}}, set()),
    "USS skips just over 1 %": ({USS: {"skips": 25_100 * LOGARITHM}}, {"few_skips", "others_need_skips"}),
    "phase 1 under budget": (
        {SUAK: {"cost": np.where(ROUNDS < PHASE_ONE, 0.48, SUAK_COST)}},
        {"phase_one_at_budget"},
    ),
    "phase 1 under budget until its end": (
        {SUAK: {"cost": np.where(ROUNDS < PHASE_ONE, np.interp(ROUNDS, [0, PHASE_ONE], [0.4, 0.499]), SUAK_COST)}},
        {"phase_one_at_budget"},
    ),
    "phase 1 under budget in the order of the list": (
        {SUAK_FIRST: {"cost": np.where(ROUNDS < PHASE_ONE, 0.3, SUAK_COST)}},
        set(),
    ),
    "less than half of the regret is of phase 1": (
        {SUAK: {"regret": np.where(ROUNDS <= PHASE_ONE, 9_000 * ROUNDS / PHASE_ONE, SUAK_REGRET)}},
        {"regret_is_of_phase_one"},
    ),
    "more than half of the regret is of phase 1": (
        {SUAK: {"regret": np.where(ROUNDS <= PHASE_ONE, 13_000 * ROUNDS / PHASE_ONE, SUAK_REGRET)}},
        set(),
    ),
    "skipping first is better than SUAK": ({OPS_LATER: {"regret": 21_900 * SHARE}}, {"skipping_first_is_no_cure"}),
    "OPS at the constraint without skips": (
        {OPS: {"skips": 5_000 * SHARE**0.5}},
        {"ops_skips_far_more", "others_need_skips"},
    ),
    "PDS at the constraint without skips": ({PDS: {"skips": 5_000 * SHARE**0.8}}, {"others_need_skips"}),
    "USS at the constraint with skips": ({USS: {"skips": 9_000 * LOGARITHM}}, {"others_need_skips"}),
    "falls too deep": ({SUAK: {"cost": dip(0.484, 0.498)}}, {"falls_and_climbs"}),
    "does not fall": ({SUAK: {"cost": dip(0.496, 0.499)}}, {"falls_and_climbs"}),
    "does not climb back by half": ({SUAK: {"cost": dip(0.490, 0.4949)}}, {"falls_and_climbs"}),
    "climbs back by half": ({SUAK: {"cost": dip(0.490, 0.4951)}}, set()),
    **{
        f"{label} leaves a little unspent": ({label: {"cost": 0.4989}}, {"others_at_constraint"})
        for label in (OPS, PDS, USS)
    },
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_change_breaks_the_claims_it_contradicts_and_no_other(case):
    changes, expected = CHANGES[case]
    assert broken(runs(**changes)) == expected


def with_luck(curves: dict[str, Run], label: str, luck: tuple[float, float]) -> dict[str, Run]:
    """The runs, the two trials of one of them earning more or less besides."""
    own = curves[label]
    totals = own.totals._replace(earned=own.totals.earned - np.array(luck)[:, np.newaxis])
    return {**curves, label: Run(label, own.policy, PROBLEM, own.rounds, totals)}


@pytest.mark.parametrize(
    ("check", "label"),
    [
        (claims.ends_with_less_regret, SUAK),
        (claims.primal_dual_is_worst, PDS),
        (claims.simplex_is_poor, USS),
        (claims.suak_overtakes, OPS),
        (claims.skipping_first_is_no_cure, OPS_LATER),
    ],
)
def test_a_difference_within_noise_is_neither_a_yes_nor_a_no(check, label):
    """The means stay as they are in the paper; the trials are so far apart that they could be anything."""
    assert check(runs()).verdict == "yes"
    claim = check(with_luck(runs(), label, (-90_000.0, 90_000.0)))
    assert (claim.holds, claim.sure, claim.verdict) == (False, False, "within noise")


def test_a_claim_that_is_surely_wrong_is_a_no():
    changes, _ = CHANGES["SUAK ends a little above OPS"]
    claim = claims.ends_with_less_regret(runs(**changes))
    assert (claim.holds, claim.sure, claim.verdict) == (False, True, "NO")


@pytest.mark.parametrize("figure", CLAIMS)
def test_claims_say_what_they_are_about(figure):
    found = [check(runs()) for check in CLAIMS[figure]]
    assert {claim.figure for claim in found} == {figure}
    assert all(claim.says and claim.measured for claim in found)
    assert len({claim.says for claim in found}) == len(found)


@pytest.mark.parametrize(
    ("check", "words"),
    [
        (claims.ends_with_less_regret, ["SUAK 22,000 [21,911, 22,089]", f"OPS {OPS_REGRET[-1]:,.0f} ["]),
        (claims.ops_skips_far_more, ["OPS 90,000", "SUAK 12,000", "7.5 times"]),
        (claims.ops_skips_sublinearly, ["x = 0.50"]),
        (claims.skipping_first_is_no_cure, ["√(KT) rounds first: ", "SUAK 22,000 [21,911, 22,089]"]),
        (claims.primal_dual_is_worst, ["PDS 120,000, USS 42,000, OPS", "SUAK 22,000"]),
        (claims.simplex_is_poor, ["λ = 9: 42,000 [41,911, 42,089]", "λ = 5: 29,000 [28,911, 29,089]"]),
        (claims.suak_overtakes, ["a = 3: at round 1,40", "a = 2: at round 1,7"]),
        (claims.overtakes_at, ["at round 1,40"]),
        (
            claims.regret_is_of_phase_one,
            ["92% of 22,000 by its end at round 300,000", "93% by round 600,000, when its reserve is saved"],
        ),
        (claims.few_skips, ["SUAK 12,000 (0.48%)", "USS 13 (0.00%)"]),
        (claims.all_skip_sublinearly, ["OPS 0.50", "PDS 0.80"]),
        (claims.phase_one_at_budget, ["SUAK: 0.4990 half way, 0.4990 at its end; SUAK, first: "]),
        (claims.falls_and_climbs, ["falls to 0.4900 at round 600,000", "ends at 0.4980"]),
        (claims.others_at_constraint, ["OPS 1.0e-04, PDS 1.0e-04, USS 1.0e-04"]),
        (claims.others_need_skips, ["minus c: OPS 0.0186, PDS 0.0813, USS -0.0001"]),
    ],
    ids=lambda value: value.__name__ if isinstance(value, Callable) else "",
)
def test_measured_is_what_was_measured(check, words):
    measured = check(runs()).measured
    for word in words:
        assert word in measured


def test_every_claim_has_its_words_tested():
    """A new claim needs a row in the test above."""
    (mark,) = test_measured_is_what_was_measured.pytestmark
    assert {row[0] for row in mark.args[1]} == {check for checks in CLAIMS.values() for check in checks}


@pytest.mark.parametrize("check", [claims.falls_and_climbs, claims.regret_is_of_phase_one])
def test_a_phase_one_that_did_not_end_is_reported_as_such(check):
    claim = check(runs(**{SUAK: {"classified_at": 0}}))
    assert not claim.holds
    assert (claim.measured, claim.verdict) == ("phase 1 did not end in every trial", "not tested")


# The two measurements behind the claims.


@pytest.mark.parametrize("exponent", [0.0, 0.3, 0.5, 0.9, 1.0, 1.5])
def test_growth_of_a_power(exponent):
    assert growth(run(skips=1e7 * SHARE**exponent)) == pytest.approx(exponent, abs=1e-4)


def test_growth_looks_at_the_second_half_only():
    assert growth(run(skips=1e7 * np.maximum(SHARE, 0.5) ** 0.7)) == pytest.approx(0.7, abs=1e-4)


def test_growth_of_nothing_is_none():
    assert growth(run(skips=0)) == 0.0


def test_growth_out_of_nothing_is_not_sublinear():
    assert growth(run(skips=np.where(SHARE > 0.6, 1e5 * SHARE, 0.0))) >= 1.0


def test_growth_over_a_single_round_is_no_growth():
    assert growth(run(skips=1, rounds=np.array([1]))) == 0.0


@pytest.mark.parametrize(
    ("difference", "at"),
    [
        ([1, 1, -1, -1], 15_000),
        ([1, -1, 1, -1], 20_000),  # for good only from there
        ([-1, 1, -1, -1], 15_000),
        ([0, 1, 0, -1], 15_000),  # equal is not more
        ([-1, -1, -1, -1], None),  # never behind
        ([1, 1, 1, 1], None),  # never ahead
        ([1, -1, -1, 1], None),  # fell back
        ([1, -1, -1, 0], None),
        ([0, 0, 0, 0], None),
    ],
)
def test_crossing(difference, at):
    rounds = ROUNDS[:4]
    # Whole multiples of 64 are exact in these sums, so that equal means equal.
    behind, ahead = (run(regret=64.0 * np.array(curve), rounds=rounds) for curve in (difference, [0] * 4))
    assert crossing(behind, ahead) == at

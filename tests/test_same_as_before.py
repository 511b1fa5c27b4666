"""Kept numbers: what every policy did before the seams were rebuilt, in simulation and live, to the last bit.

The default order of SUAK was "first" then; its numbers are kept under "suak first". Those of the order "fewest", now
"suak", were kept beside them; live, they are of the day on which it became the default.
"""

import json
import random
from pathlib import Path
from typing import Any

import pytest

import paceline as pl

DATA = Path(__file__).parent / "data"
TOTALS: dict[str, Any] = json.loads((DATA / "totals_before.json").read_text())
DECISIONS: dict[str, Any] = json.loads((DATA / "decisions_before.json").read_text())

VARIANTS = {
    "suak first": pl.SUAK(order="first"),
    "suak cheapest": pl.SUAK(order="cheapest"),
    "suak first horizon": pl.SUAK(order="first", horizon=60_000),
    "one-phase a=2": pl.OnePhase(a=2),
    "ucb-simplex lam=5": pl.UCBSimplex(lam=5),
    "thompson every arm": pl.ThompsonPacer(every_arm=True, prior=0.25),
    "optimistic caution=1": pl.OptimisticPacer(caution=1.0),
}
LIVE = {  # without the pacers, which pace on the outlook since when costs are late
    "suak": pl.SUAK(),
    "suak first": pl.SUAK(order="first"),
    "one-phase": pl.OnePhase(horizon=3000),
    "primal-dual": pl.PrimalDual(horizon=3000),
    "ucb-simplex": pl.UCBSimplex(lam=2),
    "uniform": pl.Uniform(),
}
MAX_COSTS = {"a": 0.4, "b": 2.0, "c": 1.0, "d": 2.5}


@pytest.mark.parametrize("name", TOTALS)
def test_simulated_totals_have_not_changed_by_a_bit(name: str) -> None:
    before = TOTALS[name]
    policies = {label: VARIANTS.get(label, label) for label in before["runs"]}
    problem = pl.Problem.from_dict(before["problem"])
    results = pl.simulate(problem, policies, rounds=before["rounds"], trials=2, seed=2024, checkpoints=3)
    for label, kept in before["runs"].items():
        if label == "oracle":
            continue  # it paces a base that costs just the rate on the hull since
        totals = results[label].totals
        del kept["skips"]  # null arms that a base asks for are not counted as skips since
        assert {entry: getattr(totals, entry).tolist() for entry in kept} == kept, label


@pytest.mark.parametrize("name", DECISIONS)
def test_live_decisions_have_not_changed(name: str) -> None:
    bandit = pl.Bandit(
        ["a", "b", "c"],
        0.45,
        LIVE[name],
        max_cost={arm: MAX_COSTS[arm] for arm in "abc"},
        max_reward=3.0,
        seed=11,
        scale=2.5,
    )
    chance, waiting, asked = random.Random(5), [], ""
    for number in range(3000):
        change_arms_and_money(bandit, number)
        decision = bandit.ask()
        asked += decision.arm or "-"
        if decision.arm is not None:
            waiting.append((decision.id, decision.arm))
        while waiting and chance.random() < 0.7:
            tell_something(bandit, chance, *waiting.pop(chance.randrange(len(waiting))))
    kept = DECISIONS[name]
    assert asked == kept["arms"]
    assert {entry: getattr(bandit, entry) for entry in kept if entry != "arms"} == {
        entry: value for entry, value in kept.items() if entry != "arms"
    }


def change_arms_and_money(bandit: pl.Bandit, number: int) -> None:
    match number:
        case 200 | 2000:
            bandit.credit(20.0, over=100)
        case 500:
            bandit.add("d", 2.5)
        case 900:
            bandit.pause("b")
        case 1300:
            bandit.resume("b")
        case 1700:
            bandit.retire("a")
        case 2500:
            bandit.credit(5.0)


def tell_something(bandit: pl.Bandit, chance: random.Random, number: int, arm: str) -> None:
    if chance.random() < 0.05:
        bandit.cancel(number)
    elif chance.random() < 0.05:
        bandit.expire(number)
    else:
        reward = chance.random() * 3.0 * (0.5 if arm in "ac" else 1)
        bandit.tell(number, reward=reward, cost=chance.random() * MAX_COSTS[arm])

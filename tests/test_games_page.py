"""The policies that play against prices decide as their pages have it, round by round."""

import naive_games as pages
import numpy as np
import play
import pytest

from paceline.policies import POLICIES, make_policy
from paceline.problems.distributions import Bernoulli, Beta
from paceline.problems.problem import Problem

ROUNDS = 3000
ONE = {
    "paper, 3 arms": play.THREE_ARMS,
    "paper, 8 arms": play.EIGHT_ARMS,
    "Bernoulli rewards": Problem(
        [Bernoulli(mean) for mean in (0.3, 0.95, 0.6)], [Beta(mean) for mean in (0.1, 0.9, 0.4)], budget=0.5
    ),
    "own limits": Problem.beta([0.3, 0.8, 0.7], [0.1, 0.6, 0.2], budget=0.3, max_costs=[0.25, 0.875, 0.5]),
    "budget to spare": Problem.beta([0.3, 0.8, 0.7], [0.1, 0.6, 0.2], budget=0.9),
}
TWO = {
    "two resources": Problem.beta(
        [0.45, 0.7, 0.8, 0.6],
        {"money": [0.3, 0.75, 0.8, 0.5], "energy": [0.2, 0.1, 0.6, 0.7]},
        budget={"money": 0.5, "energy": 0.25},
        start={"money": 20.0},
        max_costs={"money": [0.5, 1.0, 1.0, 0.9]},
    ),
}
PROBLEMS = {**ONE, **TWO, "refills": play.REFILLED}

VARIANTS = {
    "lagrangian": (pages.Lagrangian, {}),
    "lagrangian, ogd": (pages.Lagrangian, {"dual": "ogd", "dual_step": 3.0}),
    "lagrangian, tight": (pages.Lagrangian, {"dual": "ogd", "dual_step": 30.0, "radius": 0.25}),
    "lagrangian, steps": (pages.Lagrangian, {"primal_step": 4.0, "dual_step": 10.0, "radius": 0.5}),
    "lagrange-bwk": (pages.Lagrangian, {"primal": "exp3.p"}),
    "best-of-both-worlds": (pages.Lagrangian, {"primal": "exp3.p", "dual": "ogd"}),
    "replenishable": (pages.Lagrangian, {"primal": "exp3-six"}),
    # A faster primal learner doubles a difference in the last bit every few dozen rounds: what is played more seldom
    # loses more when it is played.
    "replenishable, steps": (pages.Lagrangian, {"primal": "exp3-six", "primal_step": 0.5, "dual_step": 10.0}),
    "exp3-six": (pages.Lagrangian, {"primal": "exp3-six", "dual": "ogd", "radius": None}),
    "lagrange-cbwlc": (pages.Lagrangian, {"primal": "square-cb"}),
    "lagrange-cbwlc, greedy": (pages.Lagrangian, {"primal": "square-cb", "primal_step": 29.0}),
    "primal-dual-bwk": (pages.PrimalDualBwK, {}),
    "primal-dual-bwk, costs": (pages.PrimalDualBwK, {"feed": "costs"}),
    "queue": (pages.Queue, {}),
    "queue, loose": (pages.Queue, {"tightening": 0.1}),
    "kube": (pages.FractionalKUBE, {}),
}


def can_play(name: str, problem: Problem) -> bool:
    policy = POLICIES[name]
    return (policy.resources is None or len(problem.resources) == 1) and (policy.refillable or not any(problem.refills))


CASES = [
    pytest.param(label, words, id=f"{label}: {words}", marks=() if label == "kube" else pytest.mark.slow)
    for label in VARIANTS
    for words, problem in PROBLEMS.items()
    if can_play(label.partition(",")[0], problem)
]


@pytest.mark.parametrize(("label", "words"), CASES)
def test_decides_as_the_page(label, words):
    page_of, parameters = VARIANTS[label]
    name, problem = label.partition(",")[0], PROBLEMS[words]
    horizon = {} if page_of in (pages.Queue, pages.FractionalKUBE) else {"horizon": ROUNDS}
    page = page_of(problem, play.SEED, play.STREAM, **parameters, **horizon)
    page.run(ROUNDS)
    policy = make_policy(name, **{**parameters, **horizon})
    log = play.ask_and_tell(play.begin(policy, problem, horizon=ROUNDS), ROUNDS)
    differ = np.flatnonzero(log.arm != np.array(page.decisions))
    assert differ.size == 0, f"decisions part in round {differ[0] + 1}"

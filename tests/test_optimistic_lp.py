"""The optimistic program and its presets: decision by decision against the page, limit cases, prototype's figures."""

from dataclasses import replace

import naive
import numpy as np
import play
import pytest

import paceline as pl
from paceline.policies.one_phase import OnePhase
from paceline.policies.optimistic_lp import OptimisticLP, SlidingWindowUCB, UCBBwK

ROUNDS = 3000
ONE_PHASE = OptimisticLP(a=3.0, log="T", rate="remaining", base="drawn")
VARIANTS = {
    "ucb-bwk": (naive.UCBBwK, UCBBwK, {"horizon": ROUNDS}),
    "ucb-bwk, not shrunk": (naive.UCBBwK, UCBBwK, {"horizon": 10**6, "shrinkage": 0.0, "a": 0.3}),
    "sw-ucb": (naive.SlidingWindowUCB, SlidingWindowUCB, {"horizon": 50, "window": 300}),
    "paced": (naive.PacedLP, OptimisticLP, {}),
    "paced, narrow": (naive.PacedLP, OptimisticLP, {"a": 0.1}),
}
TWO = pl.Problem.beta(
    [0.45, 0.7, 0.8, 0.6],
    {"money": [0.3, 0.75, 0.8, 0.5], "energy": [0.2, 0.1, 0.6, 0.7]},
    budget={"money": 0.5, "energy": 0.25},
)


def decisions(policy, problem, rounds=ROUNDS, horizon=ROUNDS):
    return play.ask_and_tell(play.begin(policy, problem, horizon=horizon), rounds).arm


@pytest.mark.slow
@pytest.mark.parametrize("name", play.OF_ONE_RESOURCE)
@pytest.mark.parametrize("variant", VARIANTS)
def test_decides_as_the_naive_version(variant, name):
    page_of, policy, parameters = VARIANTS[variant]
    page = page_of(play.OF_ONE_RESOURCE[name], play.SEED, play.STREAM, **parameters)
    page.run(ROUNDS)
    differ = np.flatnonzero(decisions(policy(**parameters), play.OF_ONE_RESOURCE[name]) != np.array(page.decisions))
    assert differ.size == 0, f"decisions part in round {differ[0] + 1}"


# Limit cases.


@pytest.mark.slow
@pytest.mark.parametrize("problem", [play.EIGHT_ARMS, play.SEVERAL], ids=["one resource", "several"])
def test_one_phase_is_one_of_them(problem):
    assert (decisions(OnePhase(), problem) == decisions(ONE_PHASE, problem)).all()


@pytest.mark.slow
@pytest.mark.parametrize("problem", [play.EIGHT_ARMS, play.SEVERAL], ids=["one resource", "several"])
@pytest.mark.parametrize("policy", [UCBBwK(shrinkage=0), OptimisticLP(a=0.2), SlidingWindowUCB()], ids=str)
def test_a_window_of_all_rounds_is_none(policy, problem):
    whole = decisions(replace(policy, window=None), problem)
    assert (decisions(replace(policy, window=ROUNDS), problem) == whole).all()
    assert (decisions(replace(policy, window=ROUNDS // 4), problem) != whole).any()


@pytest.mark.slow
@pytest.mark.parametrize("policy", [UCBBwK(), OptimisticLP(a=0.2), OptimisticLP(a=0.2, base="drawn")], ids=str)
def test_a_slack_resource_changes_nothing(policy):
    """One that always comes in fully and costs next to nothing. (With its own logarithm: D is in that of ucb-bwk.)"""
    plain = pl.Problem.beta([0.3, 0.9], {"money": [0.1, 0.7], "air": [0.0, 0.0]}, budget={"money": 0.4, "air": 1.0})
    twice = pl.Problem.beta(
        [0.3, 0.9],
        {"money": [0.1, 0.7], "air": [0.0, 0.0], "water": [0.0, 0.0]},
        budget={"money": 0.4, "air": 1.0, "water": 1.0},
    )
    policy = replace(policy, log="T") if policy.log == "KDT" else policy
    assert (decisions(policy, plain) == decisions(policy, twice)).all()


@pytest.mark.slow
@pytest.mark.parametrize("policy", [UCBBwK(shrinkage=0), OptimisticLP(a=0.2)], ids=str)
def test_a_budget_that_never_binds_leaves_a_plain_bandit(policy):
    """All that is left is the highest bound of a reward: the arm of highest reward is pulled nearly always."""
    problem = pl.Problem.beta([0.2, 0.5, 0.8], [0.9, 0.5, 0.95], budget=1.0)
    arms = decisions(policy, problem, 10_000, 10_000)
    assert np.count_nonzero(arms == 2) > 0.9 * arms.size
    assert set(arms) <= {0, 1, 2}


def table(scale=1.0, copies=1):
    """Outcomes in a table, so that resources that are copies of each other have the same outcomes in each pull."""
    generator = np.random.default_rng(1)
    rewards, costs = (
        np.clip(generator.normal(means, 0.1, (500, 3)), 0, 1) for means in ([0.4, 0.7, 0.9], [0.1, 0.5, 0.9])
    )
    names = [f"money {number}" for number in range(copies)]
    return pl.Problem.observed(
        rewards,
        dict.fromkeys(names, costs * scale),
        budget=dict.fromkeys(names, 0.4 * scale),
        max_costs=dict.fromkeys(names, [scale] * 3),
    )


@pytest.mark.slow
def test_a_resource_twice_is_as_good_as_once():
    """The base is the same; which of its arms a number draws is not, so it is shares that are compared.

    A share of 3000 draws has a deviation of at most 0.0092, a difference of two 0.013; 0.065 is five of these.
    """
    policy = OptimisticLP(a=0.05, base="drawn")
    once, twice = (np.bincount(1 + decisions(policy, table(copies=copies)), minlength=5) / ROUNDS for copies in (1, 2))
    assert once == pytest.approx(twice, abs=0.065)
    assert once[1:4].max() < 0.9  # a mix of arms


@pytest.mark.slow
def test_units_are_for_the_caller_to_choose():
    """Half the costs, the rate and the largest costs: but for the radii, which are next to 0 here, nothing changes."""
    for policy in (OptimisticLP(a=1e-12, base="drawn"), OptimisticLP(a=1e-12, base="drawn", rate="remaining", log="T")):
        whole, half = (decisions(policy, table(scale)) for scale in (1.0, 0.5))
        assert (whole == half).all()
        assert len(set(whole)) > 2


@pytest.mark.slow
def test_a_window_follows_a_change():
    """Two arms that change places after 7000 rounds: only in a window does the mean of the old one fall at once."""

    class Turn(pl.PythonWorld):
        arms, budget = 2, 1.0

        def outcome(self, t, arm, count):
            return float((arm == 0) == (t <= 7000)), 0.1

    policies = {"window": SlidingWindowUCB(window=400), "none": SlidingWindowUCB(window=None)}
    results = pl.simulate(Turn(), policies, rounds=8000, trials=1, checkpoints=[7000])
    late = {label: run.totals.earned[0, 1] - run.totals.earned[0, 0] for label, run in results.items()}
    assert late["window"] > 2 * late["none"]


@pytest.mark.slow
def test_a_window_where_rewards_and_costs_drift_under_a_budget():
    """Two arms whose rewards and costs swing against each other, nothing to spare: the line holds, a window earns."""

    class Swing(pl.PythonWorld):
        arms, budget = 2, 0.4

        def outcome(self, t, arm, count):
            swing = 0.5 + 0.5 * np.sin(2 * np.pi * t / 4000 + np.pi * arm)
            return float(swing), float(0.8 - 0.6 * swing)

    window = SlidingWindowUCB.window_for(arms=2, rounds=12_000, variation=12.0)
    policies = {"window": SlidingWindowUCB(window=window), "none": SlidingWindowUCB(window=None)}
    policies = {label: replace(policy, a=0.1) for label, policy in policies.items()}
    results = pl.simulate(Swing(), policies, rounds=12_000, trials=1)
    earned = {label: float(run.reward[0, -1]) for label, run in results.items()}
    assert all((run.min_headroom >= 0).all() for run in results.values())
    assert earned["window"] > 1.09 * earned["none"]  # nothing in it is random: 1.099


# Of the prototype, which has 4 trials: systems of the field on the paper's 3 arms.

FIGURES = {  # steady regret, skips
    "ucb-bwk": (UCBBwK(), 4_988, 16_449),
    "not shrunk": (UCBBwK(shrinkage=0), 6_749, 23_764),
    "not shrunk, s = 2": (UCBBwK(shrinkage=0, a=2, log="none"), 2_240, 8_440),
    "drawn": (OptimisticLP(base="drawn"), 5_452, 19_772),
    "paced": (OptimisticLP(), 729, 134),  # another buffer there: C log t with C = 1
}


@pytest.mark.statistical
@pytest.mark.parametrize("label", FIGURES)
def test_figures_of_the_prototype(label):
    policy, regret, skips = FIGURES[label]
    run = pl.simulate(pl.paper.three_arms(), policy, rounds=500_000, trials=4, seed=1, checkpoints=1)[policy.name]
    assert run.steady_regret.mean() == pytest.approx(regret, rel=0.15)
    if label != "paced":
        assert run.skips.mean() == pytest.approx(skips, rel=0.15)
    assert (run.min_headroom >= 0).all()


@pytest.mark.statistical
def test_figures_of_the_prototype_on_eight_arms():
    run = pl.simulate(pl.paper.eight_arms(), "ucb-bwk", rounds=2_500_000, trials=2, seed=1, checkpoints=1)["ucb-bwk"]
    assert run.steady_regret.mean() == pytest.approx(22_470, rel=0.15)
    assert run.skips.mean() == pytest.approx(57_271, rel=0.15)


@pytest.mark.statistical
def test_without_the_guard_it_is_as_far_above_the_line_as_the_prototype():
    run = pl.simulate(pl.paper.three_arms(), "ucb-bwk", rounds=500_000, trials=2, seed=1, guard=False)["ucb-bwk"]
    assert run.violation.mean() == pytest.approx(8_498, rel=0.15)


# Wrong use.


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"radius": "small"}, "radius of optimistic-lp must be one of hoeffding, small-mean, got 'small'"),
        ({"a": 0}, "a of optimistic-lp must be"),
        ({"log": "n"}, "log of optimistic-lp must be one of t, T, KDT, 12KT^3, none, got 'n'"),
        ({"extra": 2}, "extra of optimistic-lp must be a whole number from 0 to 1, got 2"),
        ({"rate": "c"}, "rate of optimistic-lp must be one of static, remaining, got 'c'"),
        ({"shrinkage": 1.5}, "shrinkage of optimistic-lp (or 'published') must be in [0, 1], got 1.5"),
        ({"window": 0}, "window of optimistic-lp must be"),
        ({"base": "both"}, "base of optimistic-lp must be one of paced, drawn, got 'both'"),
        ({"rate": "remaining"}, "a paced base of optimistic-lp must have the static rate and no shrinkage"),
        ({"shrinkage": 0.1}, "a paced base of optimistic-lp must have the static rate and no shrinkage"),
    ],
)
def test_wrong_parameters(parameters, message):
    with pytest.raises(pl.InvalidValue) as caught:
        OptimisticLP(**parameters)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    "policy", [UCBBwK(), SlidingWindowUCB(), OptimisticLP(base="drawn", rate="remaining")], ids=str
)
def test_needs_a_horizon(policy):
    with pytest.raises(pl.InvalidValue, match=rf"^{policy.name} must be given a horizon, such as horizon=1000000, got"):
        pl.Bandit(arms=["a", "b"], budget=0.5, policy=policy)
    pl.Bandit(arms=["a", "b"], budget=0.5, policy=replace(policy, horizon=100))


def test_does_without_a_horizon():
    assert pl.Bandit(arms=["a", "b"], budget=0.5, policy="optimistic-lp").ask().arm is None  # no headroom yet

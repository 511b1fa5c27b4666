"""Random problems with several resources: of the wanted shape, the base they were built around is the best one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

import paceline as pl
from paceline.problems import families

KINDS = ["resources", "resources-tight", "resources-slack", "resources-correlated", "refilling"]
LAWS = {
    "beta": ({pl.Beta}, {pl.Beta}),
    "bernoulli": ({pl.Bernoulli}, {pl.Bernoulli}),
    "mixed": ({pl.Bernoulli}, {pl.Beta}),
}
seeds = st.integers(0, 2**64 - 1)


def unscaled(distribution: pl.Beta | pl.Bernoulli | pl.Scaled) -> pl.Beta | pl.Bernoulli:
    """What a refill is made of."""
    if isinstance(distribution, pl.Scaled):
        assert distribution.top == -1.0
        return distribution.of
    return distribution


def law_of(problem: pl.Problem) -> str:
    """The law whose distributions the problem has."""
    rewards = {type(reward) for reward in problem.rewards}
    costs = {type(unscaled(cost)) for side in problem.consumptions for cost in side}
    (law,) = [name for name, types in LAWS.items() if types == (rewards, costs)]
    return law


def naive_value(problem: pl.Problem, rates: np.ndarray) -> float:
    """The best value at some rates, by SciPy."""
    found = optimize.linprog(
        -problem.reward_means,
        A_ub=np.vstack([problem.consumption_means.T, np.ones(problem.arms)]),
        b_ub=np.append(rates, 1.0),
        method="highs",
    )
    return float(-found.fun)


def assert_of_its_kind(kind: str, problem: pl.Problem, count: int) -> None:
    """What the description of each kind promises, and what all of them have in common."""
    best = problem.optimum
    assert problem.resources == tuple(f"r{number}" for number in range(1, count + 1))
    assert 3 <= problem.arms <= 20
    binding = int((best.prices > 1e-9).sum())
    assert len(best.base) == binding + 1
    assert 1 <= binding <= count
    if kind == "resources-tight":
        assert binding == count
    if kind == "resources-slack":
        assert binding == 1
    assert problem.coupled == (kind == "resources-correlated")
    assert best.case == (2 if problem.arms in best.base else 3)
    others = np.delete(best.gaps, [arm for arm in best.base if arm < problem.arms])
    assert others.size >= 1
    assert others.min() >= 0.02 - 1e-12
    assert all(0.05 <= rate <= 1.0 for rate in problem.rates)
    assert not any(problem.stocks)
    assert ((problem.reward_means >= 0.02) & (problem.reward_means <= 0.98)).all()
    costs = problem.consumption_means
    refills = costs < 0.0
    assert (refills.sum(axis=1) <= (kind == "refilling")).all()
    assert ((costs >= 0.05) & (costs <= 0.95) | (costs >= -0.6) & (costs <= -0.05)).all()
    assert problem.refills == tuple(refills.any(axis=0))
    assert law_of(problem) in LAWS
    assert pl.Problem.from_dict(problem.to_dict()) == problem
    assert 0.0 < pl.theory.limit(problem, 1000) < np.inf


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=8, deadline=None)
@given(seed=seeds, count=st.integers(2, 5))
def test_every_seed_gives_a_problem_of_the_kind(kind, seed, count):
    problem = families.random(kind, seed, resources=count)
    assert_of_its_kind(kind, problem, count)
    assert families.random(kind, seed, resources=count) == problem


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("kind", KINDS)
def test_no_rate_is_where_the_base_changes(kind, count):
    """Down to 0.03 below each rate the same base is best: the value falls along its price, and no faster."""
    for problem in families.family(kind, 4, seed=1, resources=count):
        best, rates = problem.optimum, np.array(problem.rates)
        assert naive_value(problem, rates) == pytest.approx(best.value, abs=1e-9)
        for resource in range(count):
            fallen = rates - 0.03 * (np.arange(count) == resource)
            expected = best.value - 0.03 * best.prices[resource]
            assert naive_value(problem, fallen) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_a_family_takes_cases_and_laws_in_turn(kind):
    family = families.family(kind, 12, seed=3, resources=3)
    assert [problem.optimum.case for problem in family] == [3, 3, 3, 2] * 3
    assert [law_of(problem) for problem in family] == [*LAWS] * 4


@pytest.mark.parametrize("kind", KINDS)
def test_an_entry_depends_on_kind_seed_and_number_alone(kind):
    few, more = families.family(kind, 2, seed=9, resources=3), families.family(kind, 5, seed=9, resources=3)
    assert more[:2] == few
    assert len({problem.rates for problem in more}) == 5
    assert families.family(kind, 1, seed=10, resources=3) != few[:1]


def test_two_resources_unless_told_otherwise():
    assert families.random("resources", 4) == families.random("resources", 4, resources=2)
    assert families.family("refilling", 2) == families.family("refilling", 2, resources=2)


def test_many_resources():
    problem = families.random("resources-tight", 0, resources=8)
    assert len(problem.optimum.base) == 9


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_given_is_kept(kind):
    for case in (2, 3):
        problem = families.random(kind, 3, arms=9, case=case, concentration=12.5, resources=3)
        assert (problem.arms, problem.optimum.case) == (9, case)
        costs = [unscaled(cost) for side in problem.consumptions for cost in side]
        assert {entry.concentration for entry in costs if isinstance(entry, pl.Beta)} <= {12.5}


def test_arms_refill_and_are_needed():
    """Refills are in the best mix of many problems, not only beside it."""
    family = families.family("refilling", 12, seed=2, resources=3)
    in_base = [problem.consumption_means[[a for a in problem.optimum.base if a < problem.arms]] for problem in family]
    assert sum((costs < 0.0).any() for costs in in_base) >= 4
    assert all(any(problem.refills) for problem in family[:3])


def test_a_smaller_shortfall_makes_a_closer_race():
    def typical_gap(shortfall: float) -> float:
        family = families.family("resources", 20, seed=8, shortfall=shortfall)
        return float(np.median(np.concatenate([problem.optimum.gaps for problem in family])))

    assert typical_gap(0.02) < typical_gap(0.1) < typical_gap(0.5)


def test_every_kind_is_described_in_a_line():
    assert [kind for kind in families.KINDS if kind in KINDS] == KINDS
    assert all(families.KINDS[kind] and "\n" not in families.KINDS[kind] for kind in KINDS)


@pytest.mark.parametrize(
    ("words", "kind", "options"),
    [
        ("resources of kind 'beta' must be 1, got 2", "beta", {"resources": 2}),
        ("resources of kind 'beta' must be 1, got True", "beta", {"resources": True}),
        ("resources of kind 'refilling' must be a whole number from 2 to 100, got 1", "refilling", {"resources": 1}),
        ("resources of kind 'resources' must be a whole number .*, got 2.5", "resources", {"resources": 2.5}),
        ("budget must not be given for kind 'resources', .*, got 0.3", "resources", {"budget": 0.3}),
        ("case of kind 'resources' must be 2 or 3, got 1", "resources", {"case": 1}),
        # Four members of the base and one arm besides do not fit.
        ("'resources-tight' must be possible.*got arms=4", "resources-tight", {"arms": 4, "case": 3, "resources": 3}),
    ],
)
def test_what_cannot_be_drawn_is_refused(words, kind, options):
    with pytest.raises(pl.InvalidValue, match=words):
        families.random(kind, 0, **options)


def test_one_resource_may_be_asked_for_where_there_is_one():
    assert families.random("beta", 3, resources=1) == families.random("beta", 3)


def test_the_policy_for_several_resources_plays_them():
    """No line is crossed, also where arms refill."""
    for kind in KINDS:
        problem = families.family(kind, 1, seed=6)[0]
        run = pl.simulate(problem, "thompson", rounds=2000, trials=2, checkpoints=1)["thompson"]
        assert run.min_headroom.shape == (2, 2)
        assert (run.min_headroom >= 0.0).all()

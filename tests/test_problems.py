"""Random problems: the same for everyone, of the wanted kind and case, and with something to learn in each.

Those with several resources are in test_resource_families.py.
"""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import paceline as pl
from paceline.problems import families as problems

KINDS = ["beta", "bernoulli", "mixed", "many", "small-budget", "rare", "at-budget", "correlated"]
ALLOWED = {kind: {1, 2, 3} for kind in KINDS} | {"small-budget": {2}, "at-budget": {1, 3}}
KINDS_AND_CASES = [(kind, case) for kind, cases in ALLOWED.items() for case in sorted(cases)]
seeds = st.integers(0, 2**64 - 1)


def sides(problem: pl.Problem) -> tuple[set[type], set[type]]:
    """The distributions of rewards and of costs."""
    return {type(entry) for entry in problem.rewards}, {type(entry) for entry in problem.costs}


def closest_cost(problem: pl.Problem) -> float:
    return float(np.abs(problem.cost_means - problem.budget).min())


def assert_of_its_kind(kind: str, problem: pl.Problem) -> None:
    """What the description of each kind promises, and what all problems have in common."""
    binary_rewards = kind in {"bernoulli", "mixed", "small-budget", "rare"}
    binary_costs = kind == "bernoulli"
    assert sides(problem) == (
        {pl.Bernoulli if binary_rewards else pl.Beta},
        {pl.Bernoulli if binary_costs else pl.Beta},
    )
    low, high = {"rare": (0.001, 0.01)}.get(kind, (0.02, 0.98))
    assert ((problem.reward_means >= low) & (problem.reward_means <= high)).all()
    at_budget = problem.cost_means == problem.budget
    ordinary = (problem.cost_means >= 0.05) & (problem.cost_means <= 0.95)
    assert (ordinary | at_budget).all()
    assert at_budget.sum() == (kind == "at-budget")
    low, high = {"small-budget": (0.01, 0.05)}.get(kind, (0.1, 0.9))
    assert low <= problem.budget <= high
    assert problem.arms == 100 if kind == "many" else 3 <= problem.arms <= 10
    assert problem.coupled == (kind == "correlated")
    if kind not in {"at-budget", "many", "small-budget"}:
        assert closest_cost(problem) >= 0.03
    assert problem.optimum.gaps.max() > (1e-4 if kind == "rare" else 0.01)
    assert 0 < pl.theory.limit(problem, 1000) < np.inf
    concentrations = {entry.concentration for entry in (*problem.rewards, *problem.costs) if isinstance(entry, pl.Beta)}
    assert len(concentrations) == (kind != "bernoulli")
    assert concentrations <= {5.0, 10.0, 30.0}


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=8)
@given(seed=seeds)
def test_every_seed_gives_a_problem_of_the_kind(kind, seed):
    problem = problems.random(kind, seed)
    assert_of_its_kind(kind, problem)
    assert problem.optimum.case in ALLOWED[kind]
    assert problems.random(kind, seed) == problem
    assert pl.Problem.from_dict(problem.to_dict()) == problem


@pytest.mark.parametrize(("kind", "case"), KINDS_AND_CASES)
def test_every_case_that_a_kind_allows(kind, case):
    for seed in (0, 12345):
        problem = problems.random(kind, seed, case=case)
        assert problem.optimum.case == case
        assert_of_its_kind(kind, problem)


@pytest.mark.parametrize("kind", KINDS)
def test_a_family_takes_its_cases_in_turn(kind):
    cases = [problem.optimum.case for problem in problems.family(kind, 4, seed=3)]
    turn = sorted(ALLOWED[kind])
    assert cases == [turn[n % len(turn)] for n in range(4)]


@pytest.mark.parametrize("kind", KINDS)
def test_an_entry_does_not_depend_on_the_size(kind):
    assert problems.family(kind, 4, seed=9)[:2] == problems.family(kind, 2, seed=9)


def test_entries_seeds_and_kinds_differ():
    drawn = [
        tuple(problem.cost_means)
        for kind in ("beta", "bernoulli", "correlated")
        for seed in (0, 1)
        for problem in problems.family(kind, 3, seed, case=3)
    ]
    assert len(set(drawn)) == len(drawn) == 18


def test_the_same_in_another_process():
    code = "import paceline as pl; print([p.to_dict() for p in pl.problems.family('mixed', 3, seed=5)])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == str([problem.to_dict() for problem in problems.family("mixed", 3, seed=5)])


def test_global_random_state_is_neither_used_nor_changed():
    np.random.seed(1)  # noqa: NPY002
    first = problems.random("beta", 0)
    after = np.random.random()  # noqa: NPY002
    np.random.seed(1)  # noqa: NPY002
    assert np.random.random() == after  # noqa: NPY002
    assert problems.random("beta", 0) == first


@given(seed=seeds)
@settings(max_examples=10)
def test_at_budget_is_exact_and_in_the_base(seed):
    problem = problems.random("at-budget", seed)
    (arm,) = np.flatnonzero(problem.cost_means == problem.budget)
    assert problem.optimum.base == (arm,)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_given_is_kept(kind):
    budget = 0.02 if kind == "small-budget" else 0.43
    wide = {"arms": 6, "budget": budget}
    if kind != "bernoulli":
        wide["concentration"] = 12.5
    problem = problems.random(kind, 3, **wide)
    assert (problem.arms, problem.budget) == (6, budget)
    if kind != "bernoulli":
        assert {entry.concentration for entry in problem.costs} == {12.5}
    assert problems.family(kind, 1, 3, case=problem.optimum.case, **wide)[0].arms == 6


def test_every_kind_is_described_in_a_line():
    assert list(problems.KINDS)[: len(KINDS)] == KINDS
    assert all(says and "\n" not in says for says in problems.KINDS.values())


@pytest.mark.parametrize(
    ("error", "words", "arguments", "options"),
    [
        (pl.UnknownName, "kind of problems must be one of beta, .*, got 'gamma'", ("gamma", 0), {}),
        (pl.UnknownName, "kind of problems must be one of", (7, 0), {}),
        (pl.InvalidValue, "seed must be .*, got -1", ("beta", -1), {}),
        (pl.InvalidValue, "arms must be .* from 2 to 10000, got 1", ("beta", 0), {"arms": 1}),
        (pl.InvalidValue, r"budget of kind 'beta' must be in \(0, 1\], got 1.5", ("beta", 0), {"budget": 1.5}),
        (pl.InvalidValue, r"shortfall must be in \(0, 1\], got 0", ("beta", 0), {"shortfall": 0}),
        (pl.InvalidValue, r"must be in \(0, 0.05\], got 0.1", ("small-budget", 0), {"budget": 0.1}),
        (pl.InvalidValue, "concentration of Beta must be .*, got -1.0", ("beta", 0), {"concentration": -1}),
        (
            pl.InvalidValue,
            "concentration must not be given for kind 'bernoulli'",
            ("bernoulli", 0),
            {"concentration": 5},
        ),
        (pl.InvalidValue, "case of kind 'small-budget' must be 2, got 3", ("small-budget", 0), {"case": 3}),
        (pl.InvalidValue, "case of kind 'beta' must be 1 or 2 or 3, got 4", ("beta", 0), {"case": 4}),
        # Two arms that are both in the base leave none that loses.
        (pl.InvalidValue, "'beta' must be possible.*got arms=2, case=3", ("beta", 0), {"arms": 2, "case": 3}),
        # No arm is as cheap as that, so none can be afforded.
        (pl.InvalidValue, "must be possible.*case=1, budget=0.01", ("beta", 0), {"case": 1, "budget": 0.01}),
    ],
)
def test_what_cannot_be_drawn_is_refused(error, words, arguments, options):
    with pytest.raises(error, match=words):
        problems.random(*arguments, **options)


@pytest.mark.parametrize("size", [0, -1, 1.5])
def test_a_family_has_members(size):
    with pytest.raises(pl.InvalidValue, match="size must be"):
        problems.family("beta", size)


@pytest.mark.parametrize("kind", ["beta", "bernoulli", "mixed"])
def test_a_smaller_shortfall_makes_a_closer_race(kind):
    def typical_gap(shortfall: float) -> float:
        family = problems.family(kind, 30, seed=8, shortfall=shortfall)
        return float(np.median(np.concatenate([problem.optimum.gaps for problem in family])))

    assert typical_gap(0.02) < typical_gap(0.1) < typical_gap(0.5)

"""Observed outcomes: a pull takes a row of the table, all of it, each row equally often; files; the limit."""

import json
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats
from worlds import FALSE_ALARM, STANDARD_ERRORS, pulls_of, pulls_of_several

import paceline as pl
from paceline.problems.divergence import lifted_divergence
from paceline.problems.observed import Observations

SIZE = 100_000
GENERATOR = np.random.default_rng(20_240)
ROWS, ARMS = 40, 3
REWARDS = GENERATOR.random((ROWS, ARMS))
COSTS = {name: GENERATOR.random((ROWS, ARMS)) for name in ("a", "b", "c", "d")}
BUDGET = dict.fromkeys(COSTS, 0.4)


def rows_drawn(rewards: np.ndarray, column: np.ndarray) -> np.ndarray:
    """The number of the row of each draw; its values are all different."""
    order = np.argsort(column)
    at = order[np.searchsorted(column[order], rewards)]
    assert (column[at] == rewards).all()
    return at


@pytest.mark.parametrize("arm", range(ARMS))
def test_reward_and_all_costs_of_a_pull_are_of_one_row(arm):
    problem = pl.Problem.observed(REWARDS, COSTS, BUDGET)
    rewards, costs = pulls_of_several(problem, 5000, arm)
    at = rows_drawn(rewards, REWARDS[:, arm])
    for d, table in enumerate(COSTS.values()):
        assert (costs[:, d] == table[at, arm]).all()


@pytest.mark.parametrize("arm", range(ARMS))
def test_rows_are_equally_likely_and_moments_are_those_of_the_table(arm):
    problem = pl.Problem.observed(REWARDS, COSTS["a"], 0.4)
    rewards, costs = pulls_of(problem, SIZE, arm)
    counts = np.bincount(rows_drawn(rewards, REWARDS[:, arm]), minlength=ROWS)
    assert stats.chisquare(counts).pvalue > FALSE_ALARM
    products = REWARDS[:, arm] * COSTS["a"][:, arm]
    for drawn, known in ((rewards, REWARDS[:, arm]), (costs, COSTS["a"][:, arm]), (rewards * costs, products)):
        assert abs(drawn.mean() - known.mean()) <= STANDARD_ERRORS * known.std() / np.sqrt(SIZE)


def test_arms_and_pulls_take_rows_of_their_own():
    problem = pl.Problem.observed(REWARDS, COSTS["a"], 0.4)
    first, second = (rows_drawn(pulls_of(problem, SIZE, arm)[0], REWARDS[:, arm]) for arm in (0, 1))
    for one, other in ((first, second), (first[1:], first[:-1])):
        together = np.histogram2d(one, other, bins=ROWS)[0]
        assert stats.chi2_contingency(together).pvalue > FALSE_ALARM


def test_rows_that_know_one_arm():
    shown = np.array([1, 0, 1, 2, 1, 0])
    rewards, costs = np.arange(1, 7) / 10, np.arange(6, 0, -1) / 20
    problem = pl.Problem.observed(rewards, costs, 0.2, shown=shown)
    for arm in range(3):
        known = {(r, c) for r, c, s in zip(rewards.tolist(), costs.tolist(), shown, strict=True) if s == arm}
        drawn = pulls_of(problem, 500, arm)
        assert set(zip(*(side.tolist() for side in drawn), strict=True)) == known
        assert problem.reward_means[arm] == pytest.approx(rewards[shown == arm].mean(), abs=1e-15)


@settings(max_examples=30)
@given(
    st.integers(1, 6).flatmap(
        lambda arms: st.lists(st.lists(st.floats(0, 1), min_size=arms, max_size=arms), min_size=1, max_size=30)
    )
)
def test_means_are_exact(table):
    problem = pl.Problem.observed(table, table, 0.5)
    exact = [float(sum(map(Fraction, column)) / len(table)) for column in zip(*table, strict=True)]
    np.testing.assert_allclose(problem.reward_means, exact, rtol=3e-16, atol=5e-324)
    assert (problem.cost_means == problem.reward_means).all()


def test_optimum_is_that_of_the_means():
    problem = pl.Problem.observed(REWARDS, COSTS, BUDGET)
    found = optimize.linprog(
        -REWARDS.mean(axis=0),
        A_ub=np.vstack([*(table.mean(axis=0) for table in COSTS.values()), np.ones(ARMS)]),
        b_ub=[*BUDGET.values(), 1.0],
    )
    assert problem.optimum.value == pytest.approx(-found.fun, abs=1e-12)


def test_simulation_sample_and_breakdown():
    problem = pl.Problem.observed(REWARDS, {"a": COSTS["a"], "b": COSTS["b"]}, {"a": 0.4, "b": 0.3})
    results = pl.simulate(problem, ["thompson", "uniform", "oracle"], rounds=3000, trials=2, seed=5, checkpoints=3)
    for run in results.values():
        assert (run.min_headroom >= 0).all()
        np.testing.assert_allclose(sum(run.breakdown().values()), run.pseudo_regret, atol=1e-9)
    again = pl.simulate(problem, "thompson", rounds=3000, trials=2, seed=5, checkpoints=3)
    assert (again["thompson"].regret == results["thompson"].regret).all()
    sampler = problem.sample(seed=5, stream=1)
    rewards, costs = pulls_of_several(problem, 20, 2, seed=5, stream=1)
    for reward, cost in zip(rewards.tolist(), costs.tolist(), strict=True):
        assert sampler.pull(2) == (reward, dict(zip("ab", cost, strict=True)))


def test_refills_are_observed_too():
    costs = np.array([[0.5, -0.25], [0.25, -0.5]])
    problem = pl.Problem.observed([[1, 0], [1, 0]], costs, 0.1)
    assert problem.refills == (True,)
    assert problem.most == ((1.0, 0.0),)
    assert problem.optimum.value == pytest.approx(0.475 / 0.75)  # pull and refill in turn:  .375 x - .375 (1 - x) = .1


def primal(values: np.ndarray, mean: float, top: float) -> float:
    """The same minimum by SciPy, over weights on the values and the top."""
    points = np.append(values, top)
    share = 1.0 / values.size
    start = np.append(np.full(values.size, 0.5 * share), 0.5)
    start = start if start @ points >= mean else np.append(np.full(values.size, 0.01 * share), 0.99)
    found = optimize.minimize(
        lambda q: float(-share * np.log(q[:-1] / share).sum()),
        start,
        jac=lambda q: np.append(-share / q[:-1], 0.0),
        bounds=[(1e-9, 1.0)] * values.size + [(0.0, 1.0)],
        constraints=[
            {"type": "eq", "fun": lambda q: q.sum() - 1.0, "jac": np.ones_like},
            {"type": "ineq", "fun": lambda q: q @ points - mean, "jac": lambda q: points},
        ],
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 1000},
    )
    assert found.success, found.message
    return float(found.fun)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("at_top", [False, True])
def test_divergence_of_the_joint_law_is_the_least_there_is(seed, at_top):
    generator = np.random.default_rng(seed)
    values = generator.random(12) - generator.random() * generator.random(12)
    top = values.max() if at_top else 1.0
    for share in (0.1, 0.5, 0.9):
        mean = values.mean() + share * (top - values.mean())
        steps = np.linspace(0.0, 1.0 / (top - mean), 200_001)[:-1]
        grid = np.log1p(-steps[:, None] * (values - mean)).mean(axis=1).max()
        found = lifted_divergence(values, mean, top)
        assert found == pytest.approx(primal(values, mean, top), rel=1e-5)
        assert grid <= found + 1e-12
        assert found == pytest.approx(grid, rel=1e-4)


def test_divergence_at_the_ends():
    values = np.array([0.2, 0.4])
    assert lifted_divergence(values, 0.3, 1.0) == pytest.approx(0.0, abs=1e-15)
    assert lifted_divergence(values, 0.1, 1.0) == 0.0
    assert lifted_divergence(values, 1.0, 1.0) == np.inf


def test_limit_of_rewards_of_0_or_1_is_that_of_bernoulli():
    """With costs that do not matter (price 0) the joint law is that of the rewards."""
    rewards = np.array([[1, 1], [1, 0], [1, 0], [0, 0]])
    costs = np.full((4, 2), 0.1)
    observed = pl.Problem.observed(rewards, costs, 0.5)
    known = pl.Problem([pl.Bernoulli(0.75), pl.Bernoulli(0.25)], [pl.Constant(0.1)] * 2, 0.5)
    assert pl.theory.limit(observed, 1000) == pytest.approx(pl.theory.limit(known, 1000), rel=1e-12)


def test_limit_knows_the_dependence():
    """If cost pays for reward, arms are told apart by reward minus price times cost; here that hardly varies."""
    rewards = np.tile([[0.8, 0.1], [0.9, 0.9], [0.7, 0.5]], (4, 1))
    together = pl.Problem.observed(rewards, np.clip(rewards - [0.0, -0.1], 0, 1), 0.3)
    shuffled = pl.Problem.observed(rewards, np.clip(rewards[::-1] - [0.0, -0.1], 0, 1), 0.3)
    assert (together.optimum.gaps == shuffled.optimum.gaps).all()
    assert pl.theory.limit(together, 1000) < 0.6 * pl.theory.limit(shuffled, 1000)


def test_files_and_messages_hold_the_same_problem(tmp_path):
    for problem in (
        pl.Problem.observed(REWARDS, COSTS, BUDGET, start={"b": 2.0}, cap={"c": 9.0}),
        pl.Problem.observed(REWARDS[:, 0], COSTS["a"][:, 0], 0.2, shown=np.arange(ROWS) % 4, max_costs=[1, 1, 1, 1]),
        pl.problems.random("bidding", 5, arms=4, budget=0.01),
    ):
        for other in (
            pl.Problem.from_dict(json.loads(json.dumps(problem.to_dict()))),
            pickle.loads(pickle.dumps(problem)),
        ):
            assert other == problem
            assert hash(other) == hash(problem)
            assert not other.observations.values.flags.writeable
            assert (other.observations.values == problem.observations.values).all()
        results = pl.simulate(problem, "uniform", rounds=100, trials=1)
        results.save(tmp_path / "results.npz")
        assert pl.Results.load(tmp_path / "results.npz").problem == problem


def test_a_family_is_saved_by_name():
    problem = pl.problems.family("bidding", 3, seed=7)[2]
    assert len(pickle.dumps(problem)) < 4000
    saved = problem.to_dict()["observed"]
    assert {**saved, "digest": "?"} == {"family": "bidding", "seed": 7, "number": 2, "digest": "?"}
    with pytest.raises(pl.InvalidValue, match="problem 2 of family 'bidding', seed 7, must be as it was saved, 00000"):
        pl.Problem.from_dict({**problem.to_dict(), "observed": {**saved, "digest": "0" * 16}})


def test_other_numbers_make_another_problem():
    changed = REWARDS.copy()
    changed[3, 1] = np.nextafter(changed[3, 1], 1)
    one, other = (pl.Problem.observed(rewards, COSTS["a"], 0.4) for rewards in (REWARDS, changed))
    assert one == pl.Problem.observed(REWARDS.tolist(), COSTS["a"].tolist(), 0.4)
    assert one != other
    assert one != pl.Problem.observed(REWARDS, COSTS["a"], 0.5)
    # The same numbers with other ends of the arms are another table.
    values = np.zeros((2, 4))
    assert Observations(values, np.array([0, 1, 4])) != Observations(values, np.array([0, 2, 4]))


def test_the_callers_arrays_stay_as_they_are():
    rewards = REWARDS.copy()
    problem = pl.Problem.observed(rewards, COSTS["a"], 0.4)
    rewards[:] = 0.0
    assert problem.reward_means[0] > 0.0
    with pytest.raises(ValueError, match="read-only"):
        problem.observations.values[0, 0] = 1.0


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        (r"rewards\[1\]\[0\] must be in \[0, 1\], got 1.5", ([[0, 1], [1.5, 0]], [[0, 0], [0, 0]], 0.5)),
        (r"costs\[0\]\[1\] must be in \[-1, 1\], got nan", ([[0, 1]], [[0, np.nan]], 0.5)),
        (r"costs of 'x'\[0\]\[0\] must be in \[-1, 1\], got -2.0", ([[0]], {"x": [[-2]]}, {"x": 0.5})),
        (r"costs must have the shape of rewards, \(1, 2\), got \(1, 1\)", ([[0, 1]], [[0]], 0.5)),
        (r"rewards must be an array \(rows, arms\), got shape \(2,\)", ([0, 1], [[0, 1]], 0.5)),
        (r"rewards must be an array \(rows, arms\), got rows of different", ([[0, 1], [1]], [[0, 1]], 0.5)),
        (r"rewards must be an array \(rows, arms\), got shape \(0,\)", ([], [], 0.5)),
        ("rewards must be an array of numbers, got .*'much'", ([["much"]], [[0]], 0.5)),
        (r"budget must be in \(0, 1\], got 0.0", ([[0, 1]], [[0, 1]], 0)),
    ],
)
def test_what_is_no_table_is_refused(words, arguments):
    with pytest.raises(pl.InvalidValue, match=words):
        pl.Problem.observed(*arguments)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("shown must have every arm in some row, got none with arm 1", [0, 2, 0]),
        ("shown must be the numbers of arms, from 0, got", [0, -1, 0]),
        ("shown must be the numbers of arms, from 0, got", [0.0, 1.0, 0.0]),
        ("rewards must have an entry for each of shown, 2, got 3", [0, 1]),
    ],
)
def test_rows_must_say_what_was_shown(words, shown):
    with pytest.raises(pl.InvalidValue, match=words):
        pl.Problem.observed([0, 1, 1], [0.1, 0.2, 0.3], 0.5, shown=shown)


def test_largest_costs_must_cover_the_table():
    with pytest.raises(pl.InvalidValue, match=r"max_costs\[1\] must cover every cost of its arm, 0.75, got 0.5"):
        pl.Problem.observed([[0, 1]], [[0.25, 0.75]], 0.5, max_costs=[0.25, 0.5])


def test_a_table_is_taken_whole():
    problem = pl.Problem.observed(REWARDS, COSTS["a"], 0.4)
    same = pl.Problem(problem.rewards, problem.costs, 0.4, coupled=True)
    assert same == problem
    for rewards, costs, coupled in (
        (problem.rewards, problem.costs, False),
        (problem.rewards[:2], problem.costs[:2], True),
        (problem.rewards[::-1], problem.costs, True),
        (problem.rewards, [pl.Constant(0.5)] * ARMS, True),
        ([pl.Constant(0.5)] * ARMS, problem.costs, True),
    ):
        with pytest.raises(pl.InvalidValue, match="observed rewards and costs must be those of one table"):
            pl.Problem(rewards, costs, 0.4, coupled=coupled)


@pytest.mark.parametrize(
    ("words", "observed"),
    [
        ("observed must be a table of a family or of rows and values, got 7", 7),
        ("observed takes rows and values, got rows", {"rows": [1]}),
        ("values must be numbers for every row, .* got others", {"rows": [3], "values": "AAAA"}),
        ("values must be numbers for every row, .* got others", {"rows": [3], "values": 5}),
        (r"rows\[0\] must be a whole number of at least 1, got 0", {"rows": [0], "values": ""}),
        ("observed takes family, seed, number, arms and digest, got family", {"family": "bidding"}),
        ("must be a kind with observed outcomes, got 'beta'", {"family": "beta", "digest": "0" * 16}),
        ("digest must be a text of 16 letters or more, got ''", {"family": "bidding", "digest": ""}),
    ],
)
def test_what_no_file_of_ours_says_is_refused(words, observed):
    if isinstance(observed, dict) and "digest" in observed:
        observed = {**observed, "seed": 0, "number": 0}
    with pytest.raises(pl.InvalidValue, match=words):
        pl.Problem.from_dict({"budget": 0.5, "observed": observed})


def test_lines_of_an_observed_problem():
    saved = pl.Problem.observed(REWARDS, COSTS["a"], 0.4).to_dict()
    with pytest.raises(pl.InvalidValue, match=r"a problem with observed takes budget, .* got rewards"):
        pl.Problem.from_dict({**saved, "rewards": [0.5]})
    with pytest.raises(pl.InvalidValue, match="must have a budget; got no budget"):
        pl.Problem.from_dict({"observed": saved["observed"]})
    with pytest.raises(pl.InvalidValue, match="budget must be for 1 resources, got one for x, y"):
        pl.Problem.from_dict({**saved, "budget": {"x": 0.1, "y": 0.1}})

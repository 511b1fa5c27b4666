"""The simplex kernel solves the program of several resources and its dual, and every stop of it is feasible."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import block_diag

from paceline.kernels import lp
from paceline.kernels.hull import best_mix
from paceline.kernels.jit import bind, graft, plain, plain_throughout
from paceline.problems import optimum

CLOSE = 1e-9
MOST_STEPS = 40

# Compiled on its own and cached on disk, so that a run of the tests compiles each number of resources once.
solve_compiled = bind(plain(lp.solve_program), "tests.test_lp", counted=False)


def by_linprog(problems):
    """HiGHS on the programs as they are written: value, prices and level of each.

    One call of linprog takes milliseconds whatever it solves, so many programs are blocks of a single one.
    """
    rewards, costs, rates = zip(*problems, strict=True)
    found = linprog(
        -np.concatenate([np.append(block, 0.0) for block in rewards]),
        A_ub=block_diag([np.column_stack([block, np.zeros(len(block))]) for block in costs], "csr"),
        b_ub=np.concatenate(rates),
        A_eq=block_diag([np.ones((1, block.size + 1)) for block in rewards], "csr"),
        b_eq=np.ones(len(problems)),
        bounds=(0, None),
        method="highs-ds",
    )
    assert found.success, found.message
    mixes = np.split(found.x, np.cumsum([block.size + 1 for block in rewards])[:-1])
    prices = np.split(-found.ineqlin.marginals, np.cumsum([block.size for block in rates])[:-1])
    values = [block @ mix[:-1] for block, mix in zip(rewards, mixes, strict=True)]
    return list(zip(values, prices, -found.eqlin.marginals, strict=True))


# Problems.


def rounded(steps, *arrays):
    return [np.round(steps * array) / steps for array in arrays]


def problem_of(kind, rng, arms, resources):
    """Rewards, costs (D, K) and rates of a kind; all but the first make ties and degenerate bases."""
    rewards, costs, rates = rng.random(arms), rng.random((resources, arms)), rng.random(resources)
    if kind == "zeros":
        rewards, costs = rewards * (rng.random(arms) < 0.8), costs * (rng.random(costs.shape) < 0.5)
        rates = rates * (rng.random(resources) < 0.6)
    elif kind == "refills":
        costs, rates = 2.0 * costs - 1.0, 0.3 * rates * (rng.random(resources) < 0.8)
    elif kind == "quarters":
        rewards, costs, rates = rounded(4, rewards, costs, rates)
    elif kind == "refills in quarters":
        rewards, costs, rates = rounded(4, rewards, 2.0 * costs - 1.0, 0.5 * rates)
    elif kind == "resources twice":
        half = (resources + 1) // 2
        costs[resources - half :], rates[resources - half :] = costs[:half], rates[:half]
    elif kind == "arms twice":
        chosen = rng.integers(0, arms // 3 + 1, arms)
        rewards, costs = rewards[chosen], np.ascontiguousarray(costs[:, chosen])
    elif kind == "costs at the rate":
        level = rng.integers(0, resources)
        costs[level] = rates[level]
    return rewards, costs, rates


KINDS = (
    "random",
    "zeros",
    "refills",
    "quarters",
    "refills in quarters",
    "resources twice",
    "arms twice",
    "costs at the rate",
)


def problems(count, seed, most_arms=60, resources=None):
    rng = np.random.default_rng(seed)
    for kind in itertools.islice(itertools.cycle(KINDS), count):
        arms = int(rng.integers(1, most_arms + 1))
        yield kind, *problem_of(kind, rng, arms, resources or int(rng.integers(1, 9))), rng


# What a solution must be.


def resources_of(rates):
    return tuple(range(rates.size))


def vector(program, arms):
    """All amounts by number of member: arms, null, slacks."""
    amounts = np.zeros(arms + 1 + program.prices.size - 1)
    amounts[program.basis] = program.amounts
    return amounts


def assert_feasible(rewards, costs, rates, program, close=CLOSE):
    arms = rewards.size
    assert len(set(program.basis.tolist())) == rates.size + 1
    amounts = vector(program, arms)
    assert amounts.min() >= 0.0
    assert amounts[: arms + 1].sum() == pytest.approx(1.0, abs=close)
    np.testing.assert_allclose(costs @ amounts[:arms] + amounts[arms + 1 :], rates, atol=close, rtol=0)


def assert_optimal(rewards, costs, rates, program, close=CLOSE):
    """Primal and dual feasible and of equal value: that alone proves both optimal. Gives the value."""
    assert_feasible(rewards, costs, rates, program, close)
    value = float(rewards @ vector(program, rewards.size)[: rewards.size])
    prices, level = program.prices[:-1], program.prices[-1]
    assert prices.min() >= -close
    assert level >= -close
    assert (rewards - prices @ costs - level).max() <= 2 * close
    assert level + prices @ rates == pytest.approx(value, abs=close)
    return value


def base_matrix(program, costs):
    """The columns of the members: what a unit of each uses of the rates and of the sum."""
    resources, arms = costs.shape
    everything = np.zeros((resources + 1, arms + 1 + resources))
    everything[:-1, :arms] = costs
    everything[-1, : arms + 1] = 1.0
    everything[:-1, arms + 1 :] = np.eye(resources)
    return everything[:, program.basis]


@pytest.mark.parametrize("resources", range(1, 9))
def test_equals_linprog_warm_and_cold(resources):
    made = list(problems(400, seed=resources, resources=resources))
    expected = by_linprog([problem[1:4] for problem in made])
    for (kind, rewards, costs, rates, rng), (value, prices, level) in zip(made, expected, strict=True):
        cold = lp.new_program(rewards.size, resources)
        assert solve_compiled(rewards, costs, rates, cold, resources_of(rates)) <= MOST_STEPS
        assert assert_optimal(rewards, costs, rates, cold) == pytest.approx(value, abs=CLOSE)
        np.testing.assert_allclose(base_matrix(cold, costs) @ cold.inverse.T, np.eye(resources + 1), atol=CLOSE)
        if kind == "random":  # elsewhere prices need not be unique
            np.testing.assert_allclose(cold.prices, [*prices, level], atol=CLOSE)

        warm = lp.new_program(rewards.size, resources)
        wobbled = rewards + 0.05 * rng.standard_normal(rewards.shape), costs + 0.05 * rng.standard_normal(costs.shape)
        solve_compiled(*wobbled, rates, warm, resources_of(rates))
        warm.last[:] = warm.basis
        assert solve_compiled(rewards, costs, rates, warm, resources_of(rates)) <= MOST_STEPS
        assert assert_optimal(rewards, costs, rates, warm) == pytest.approx(value, abs=CLOSE)


def test_a_base_of_arms_that_still_is_the_best_takes_no_step():
    rng, bases_of_arms = np.random.default_rng(50), 0
    for _ in range(40):
        costs = rng.random((3, 12))
        rewards, rates = 0.1 + costs.mean(axis=0) + 0.1 * rng.random(12), np.full(3, 0.45)  # what costs more earns more
        program = lp.new_program(12, 3)
        lp.solve_in_python(rewards, costs, rates, program, (0, 1, 2))
        found = set(program.basis.tolist())
        if max(found) < 12:
            bases_of_arms += 1
            program.last[:] = rng.permutation(program.basis)
            wobbled = rewards + 1e-9 * rng.random(12)
            assert lp.solve_in_python(wobbled, costs, rates, program, (0, 1, 2)) == 0
            assert set(program.basis.tolist()) == found
            assert_optimal(wobbled, costs, rates, program)
            np.testing.assert_allclose(base_matrix(program, costs) @ program.inverse.T, np.eye(4), atol=CLOSE)
    assert bases_of_arms > 10


# Numbers of all sorts, but not so close together that a base is singular within the tolerances.
units = st.integers(0, 1000).map(lambda n: n / 1000) | st.sampled_from([0.0, 0.25, 0.5, 1.0])
signed = units | units.map(lambda number: -number)


@st.composite
def any_problem(draw, most_resources=8):
    arms, resources = draw(st.integers(1, 8)), draw(st.integers(1, most_resources))
    rewards = draw(st.lists(units, min_size=arms, max_size=arms))
    costs = draw(st.lists(st.lists(signed, min_size=arms, max_size=arms), min_size=resources, max_size=resources))
    rates = draw(st.lists(units, min_size=resources, max_size=resources))
    return np.array(rewards), np.array(costs), np.array(rates)


@settings(max_examples=300)
@given(problem=any_problem(), last=st.integers(0, 2**32))
def test_optimal_on_any_problem_from_any_last_base(problem, last):
    rewards, costs, rates = problem
    program = lp.new_program(rewards.size, rates.size)
    members = np.random.default_rng(last).permutation(rewards.size + 1 + rates.size)
    program.last[:] = members[: rates.size + 1]
    assert lp.solve_in_python(rewards, costs, rates, program, resources_of(rates)) <= MOST_STEPS
    assert_optimal(rewards, costs, rates, program)


@settings(max_examples=200)
@given(problem=any_problem(most_resources=3), last=st.integers(0, 2**32))
def test_compiled_equals_plain_to_the_bit(problem, last):
    rewards, costs, rates = problem
    here, there = (lp.new_program(rewards.size, rates.size) for _ in range(2))
    members = np.random.default_rng(last).permutation(rewards.size + 1 + rates.size)[: rates.size + 1]
    here.last[:] = there.last[:] = members
    steps = [
        solve(rewards, costs, rates, program, resources_of(rates))
        for solve, program in ((lp.solve_in_python, here), (solve_compiled, there))
    ]
    assert steps[0] == steps[1]
    for field, one, other in zip(here._fields, here, there, strict=True):
        assert one.tobytes() == other.tobytes(), field


def test_compiled_equals_plain_to_the_bit_on_many_arms():
    for _, rewards, costs, rates, _ in problems(120, seed=20, most_arms=150, resources=3):
        here, there = (lp.new_program(rewards.size, rates.size) for _ in range(2))
        lp.solve_in_python(rewards, costs, rates, here, resources_of(rates))
        solve_compiled(rewards, costs, rates, there, resources_of(rates))
        for field, one, other in zip(here._fields, here, there, strict=True):
            assert one.tobytes() == other.tobytes(), field


def test_what_was_solved_before_leaves_no_trace():
    rng = np.random.default_rng(30)
    used = lp.new_program(12, 3)
    for kind in KINDS * 3:
        rewards, costs, rates = problem_of(kind, rng, 12, 3)
        fresh = lp.new_program(12, 3)
        for program in (fresh, used):
            lp.solve_in_python(rewards, costs, rates, program, (0, 1, 2))
            assert (program.last == 12).all()  # only the caller changes it
        for field in ("basis", "inverse", "amounts", "prices"):
            assert getattr(fresh, field).tobytes() == getattr(used, field).tobytes(), field


# The parts.


def test_every_stop_is_feasible_and_no_step_loses():
    for _, rewards, costs, rates, _ in problems(80, seed=40, most_arms=20):
        values, enough = [], False
        for limit in range(MOST_STEPS + 1):
            solve = plain_throughout(graft(plain(lp.solve_program), False, most_steps=lambda rows, limit=limit: limit))
            program = lp.new_program(rewards.size, rates.size)
            enough = solve(rewards, costs, rates, program, resources_of(rates)) < limit
            assert_feasible(rewards, costs, rates, program)
            values.append(rewards @ vector(program, rewards.size)[: rewards.size])
            if enough:
                break
        assert enough
        assert min(np.diff(values), default=0.0) >= -1e-12


@pytest.mark.parametrize("resources", [1, 3, 8])
def test_steps_end_even_when_pricing_never_does(resources):
    replies = itertools.repeat(
        (9, 0.0), 500
    )  # "the null arm", again and again; without a cap the test runs out of them
    endless = graft(plain(lp.solve_program), False, best_listed=lambda *_: next(replies))
    rewards, costs, rates = problem_of("random", np.random.default_rng(50), 9, resources)
    program = lp.new_program(9, resources)
    assert plain_throughout(endless)(rewards, costs, rates, program, resources_of(rates)) == 72 + 12 * resources
    assert_feasible(rewards, costs, rates, program)


def test_all_arms_are_looked_at_once_while_the_base_stays():
    """And one of them that is worth entering is on the shortlist from then on."""
    passes = []

    def counted(*arguments):
        passes.append(plain_throughout(lp.best_arm)(*arguments))
        return passes[-1]

    solve = plain_throughout(graft(plain(lp.solve_program), False, best_arm=counted))
    rng = np.random.default_rng(60)
    for resources in (1, 2, 3, 5, 8) * 4:
        rewards, costs, rates = problem_of("random", rng, 30, resources)
        program = lp.new_program(rewards.size, resources)
        passes.clear()
        solve(rewards, costs, rates, program, resources_of(rates))
        found = [arm for arm, _ in passes[:-1]]
        assert program.shortlist[: len(found)].tolist() == found
        assert set(found) >= {member for member in program.basis.tolist() if member < 30}
        program.last[:] = program.basis
        passes.clear()
        solve(rewards, costs, rates, program, resources_of(rates))
        assert len(passes) == 1


@pytest.mark.parametrize(
    ("amounts", "column", "row"),
    [
        ([0.5, 0.2, 1.0], [1.0, 1.0, 1.0], 1),
        ([0.5, 0.2, 1.0], [1.0, -1.0, 1.0], 0),  # what grows never runs out
        ([0.5, 0.2, 1.0], [1.0, 1e-10, 1.0], 0),  # too small to divide by
        ([0.0, 0.0, 1.0], [0.25, 0.5, 1.0], 1),  # a tie goes to the larger pivot
        ([0.0, 0.0, 1.0], [0.5, 0.25, 1.0], 0),
        ([0.5, 0.25 + 1e-14, 1.0], [1.0, 0.5, 2.0], 2),  # and a tie within rounding
        ([0.5, 0.2, 1.0], [-1.0, 0.0, -1.0], -1),
    ],
)
def test_leaving_row(amounts, column, row):
    program = lp.new_program(4, 2)
    program.amounts[:], program.column[:] = amounts, column
    assert plain(lp.leaving_row)(program, (0, 1)) == row


def test_best_arm_is_the_first_of_the_most_profitable():
    rng = np.random.default_rng(70)
    for arms in [1, 31, 32, 33, 64, 100]:
        for _ in range(20):
            rewards, costs = rng.integers(0, 9, arms) / 8, rng.integers(0, 9, (2, arms)) / 8
            prices = np.array([0.25, 0.5, rng.choice([0.0, 0.25, 0.5, 1.0])])
            profits = rewards - prices[:2] @ costs - prices[2]
            arm, profit = plain_throughout(lp.best_arm)(rewards, costs, prices, (0, 1))
            if profits.max() <= 0.0:
                assert arm == -1
            else:
                assert (arm, profit) == (profits.argmax(), profits.max())


def test_a_profit_of_a_hundred_millionth_is_taken():
    rewards, costs, rates = np.array([0.5, 0.5 + 1e-8]), np.full((2, 2), 0.25), np.array([0.5, 0.5])
    program = lp.new_program(2, 2)
    program.last[0] = 0
    assert lp.solve_in_python(rewards, costs, rates, program, (0, 1)) == 2
    assert 1 in program.basis


# The convenience for means.


def assert_solution(found, rewards, costs, rates):
    mix = found.mix
    assert mix.min() >= 0.0
    assert mix.sum() == pytest.approx(1.0, abs=CLOSE)
    assert (mix[:-1] @ costs <= rates + CLOSE).all()
    assert found.value == pytest.approx(rewards @ mix[:-1], abs=1e-12)
    assert found.value == pytest.approx(found.level + found.prices @ rates, abs=CLOSE)
    assert found.prices.min() >= 0.0
    assert found.level >= 0.0
    reduced = found.level - rewards + costs @ found.prices
    assert reduced.min() >= -2 * CLOSE
    np.testing.assert_allclose(found.gaps, np.maximum(reduced, 0.0), atol=2 * CLOSE)
    assert found.base == tuple(np.flatnonzero(mix))
    assert not found.gaps[[arm for arm in found.base if arm < rewards.size]].any()
    assert found.level <= CLOSE or rewards.size not in found.base
    assert np.abs(found.prices * (rates - mix[:-1] @ costs)).max() <= CLOSE  # only what binds has a price


@settings(max_examples=200)
@given(problem=any_problem())
def test_solution_for_any_means(problem):
    rewards, costs, rates = problem
    assert_solution(lp.solve_means(rewards, costs.T, rates), rewards, costs.T, rates)


def test_solution_for_degenerate_means():
    for _, rewards, costs, rates, _ in problems(400, seed=80, most_arms=20):
        assert_solution(lp.solve_means(rewards, costs.T, rates), rewards, costs.T, rates)


@settings(max_examples=200)
@given(arms=st.lists(st.tuples(units, units), min_size=1, max_size=12), rate=st.integers(1, 1000))
def test_one_resource_agrees_with_the_hull(arms, rate):
    rewards, costs = map(np.array, zip(*arms, strict=True))
    hull = optimum.solve(rewards, costs, rate / 1000)
    found = lp.solve_means(rewards, costs[:, None], np.array([rate / 1000]))
    assert found.value == pytest.approx(hull.value, abs=1e-12)
    expensive, cheap, weight = plain(best_mix)(rewards, costs, rate / 1000)
    with_null = np.append(rewards, 0.0)
    assert found.value == pytest.approx(weight * with_null[expensive] + (1 - weight) * with_null[cheap], abs=1e-12)


def test_refill_at_rate_zero():
    """Nothing comes in but what the second arm brings: half a pull of it pays for half a pull of the first."""
    found = lp.solve_means(np.array([0.8, 0.2]), np.array([[0.5], [-0.5]]), np.array([0.0]))
    assert found.mix == pytest.approx([0.5, 0.5, 0.0])
    assert found.value == pytest.approx(0.5)
    assert found.prices == pytest.approx([0.6])
    assert found.level == pytest.approx(0.5)


def test_nothing_to_spend():
    found = lp.solve_means(np.array([0.8, 0.2]), np.array([[0.5, 0.1], [0.5, 0.0]]), np.array([0.0, 0.5]))
    assert found.value == 0.0
    assert found.base == (2,)

"""The limit with several resources, held against slow searches for the least divergence."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, special, stats

import paceline as pl
from paceline.problems import divergence as kl
from paceline.problems.distributions import Shifted, extremes
from paceline.problems.limit import Side, least_divergence, least_for_gain, least_with_one_cost

means = st.floats(0.05, 0.95)
bodies = st.one_of(
    st.builds(pl.Bernoulli, means),
    st.builds(pl.Beta, means, st.sampled_from([0.8, 5.0, 30.0])),
    st.sampled_from([pl.Empirical([0.0, 0.2, 0.9, 1.0]), pl.Empirical([0.1, 0.3, 0.4])]),
)
distributions = st.one_of(
    bodies,
    st.builds(pl.Scaled, bodies, st.sampled_from([0.3, -1.0, 0.7])),
    st.builds(Shifted, bodies, st.just(-0.5)),
    st.builds(lambda body: Shifted(pl.Scaled(body, 2.0), -1.0), bodies),
)


# Derivatives.


@given(x=st.floats(1e-3, 1e6))
def test_trigamma_is_that_of_scipy(x):
    assert kl.trigamma(x) == pytest.approx(special.polygamma(1, x), rel=1e-12)


@settings(deadline=None)
@given(distribution=distributions, place=st.floats(0.1, 0.9))
def test_steepness_is_that_of_the_divergence(distribution, place):
    low, high = extremes(distribution)
    mean, step = low + place * (high - low), 1e-5 * (high - low)
    below, at, above = (kl.divergence(distribution, mean + side * step) for side in (-1, 0, 1))
    first, second = kl.steepness(distribution, mean)
    scale = 1.0 + abs(first)
    assert first == pytest.approx((above - below) / (2 * step), rel=1e-3, abs=1e-4 * scale)
    if "Empirical" not in repr(distribution):
        assert second == pytest.approx((above - 2 * at + below) / step**2, rel=0.02)
    assert second > 0


@pytest.mark.parametrize(
    ("plain", "moved", "by", "times"),
    [
        (pl.Beta(0.3, 10.0), pl.Scaled(pl.Beta(0.3, 10.0), -1.0), 0.0, -1.0),
        (pl.Bernoulli(0.6), Shifted(pl.Scaled(pl.Bernoulli(0.6), 2.0), -1.0), -1.0, 2.0),
        (pl.Empirical([0.1, 0.8, 0.9]), Shifted(pl.Empirical([0.1, 0.8, 0.9]), -0.4), -0.4, 1.0),
    ],
)
def test_a_known_scale_and_shift_change_no_divergence(plain, moved, by, times):
    for mean in (0.2, 0.45, 0.7):
        assert kl.divergence(moved, by + times * mean) == pytest.approx(kl.divergence(plain, mean), rel=1e-9)
    assert kl.divergence(moved, moved.mean) == pytest.approx(0.0, abs=1e-15)
    assert kl.divergence(moved, by + times * 1.5) == math.inf


def test_divergence_of_a_scaled_beta_is_the_integral():
    """The density of the draws themselves, not of what they are made of."""
    cost = Shifted(pl.Scaled(pl.Beta(0.4, 10.0), 2.0), -1.0)
    mine = stats.beta(4.0, 6.0, loc=-1.0, scale=2.0)
    its = stats.beta(6.5, 3.5, loc=-1.0, scale=2.0)
    expected = mine.expect(lambda x: mine.logpdf(x) - its.logpdf(x))
    assert kl.divergence(cost, 0.3) == pytest.approx(expected, rel=1e-6)


# The least divergence.


def grid_least(sides: list[Side], gain: float, points: int = 120) -> float:
    """The least sum of divergences over a grid of gains of all sides but the first, which makes up the rest."""
    first, *others = sides
    grids = []
    for side in others:
        whole = side.weight * side.reach
        gains = np.linspace(0.0, min(whole, gain), points)[:-1]
        grids.append([(part, kl.divergence(side.of, side.of.mean + part / side.weight)) for part in gains.tolist()])
    least = math.inf
    for chosen in itertools.product(*grids):
        rest = gain - sum(part for part, _ in chosen)
        if rest >= 0.0:
            mean = first.of.mean + rest / first.weight
            least = min(least, kl.divergence(first.of, mean) + sum(paid for _, paid in chosen))
    return least


CASES = {
    "beta": [(pl.Beta(0.5), 1.0), (pl.Beta(0.4), -0.5), (pl.Beta(0.7, 5.0), -0.3)],
    "bernoulli": [(pl.Bernoulli(0.3), 1.0), (pl.Bernoulli(0.6), -0.9), (pl.Bernoulli(0.2), -0.1)],
    "mixed": [(pl.Bernoulli(0.5), 1.0), (pl.Beta(0.4, 30.0), -0.5), (pl.Beta(0.7, 30.0), -0.8)],
    "refilling": [(pl.Beta(0.5), 1.0), (pl.Scaled(pl.Beta(0.3), -1.0), -0.4), (pl.Beta(0.7), -0.6)],
    "shifted": [(pl.Beta(0.5), 1.0), (Shifted(pl.Scaled(pl.Beta(0.6), 2.0), -1.0), -0.4), (pl.Bernoulli(0.3), -0.2)],
    "empirical": [(pl.Empirical([0.1, 0.5, 0.6]), 1.0), (pl.Empirical([0.2, 0.9]), -0.4), (pl.Beta(0.3), -0.2)],
    "free": [(pl.Beta(0.5), 1.0), (pl.Beta(0.4), -0.5), (pl.Beta(0.7), 0.0)],
    "constant": [(pl.Beta(0.5), 1.0), (pl.Constant(0.4), -0.5), (pl.Beta(0.7), -0.3)],
}


@pytest.mark.parametrize("gain", [0.02, 0.1, 0.3])
@pytest.mark.parametrize("name", CASES)
def test_least_divergence_is_the_least_over_a_grid(name, gain):
    sides = [Side(*entry) for entry in CASES[name]]
    found = least_for_gain(sides, gain)
    moving = [side for side in sides if side.reach != 0.0]
    slow = name == "empirical"
    expected = grid_least(moving, gain, points=30 if slow else 120)
    assert found <= expected * (1 + 1e-9)
    assert found == pytest.approx(expected, rel=0.05 if slow else 5e-3)


@settings(deadline=None)
@given(
    reward=st.one_of(st.builds(pl.Bernoulli, means), st.builds(pl.Beta, means)),
    costs=st.lists(
        st.tuples(
            st.one_of(
                st.builds(pl.Bernoulli, means),
                st.builds(pl.Beta, means),
                st.builds(pl.Scaled, st.builds(pl.Beta, means), st.just(-1.0)),
                st.builds(lambda mean: Shifted(pl.Scaled(pl.Bernoulli(mean), 2.0), -1.0), means),
            ),
            st.floats(0.0, 2.0),
        ),
        min_size=2,
        max_size=5,
    ),
    part=st.floats(0.05, 0.95),
)
def test_least_divergence_is_where_all_sides_are_equally_hard_to_move(reward, costs, part):
    """Of a convex problem the conditions of Karush, Kuhn and Tucker are enough; SLSQP finds nothing lower."""
    sides = [Side(reward, 1.0), *(Side(cost, -price) for cost, price in costs)]
    moving = [side for side in sides if side.reach != 0.0]
    gain = part * sum(side.weight * side.reach for side in moving)
    found = least_for_gain(sides, gain)
    weights = np.array([side.weight for side in moving])
    own = np.array([side.of.mean for side in moving])
    ends = np.array([extremes(side.of) for side in moving])
    start = own + part * np.array([side.reach for side in moving])
    tried = optimize.minimize(
        lambda x: sum(kl.divergence(side.of, mean) for side, mean in zip(moving, x.tolist(), strict=True)),
        start,
        jac=lambda x: [kl.steepness(side.of, mean)[0] for side, mean in zip(moving, x.tolist(), strict=True)],
        bounds=list(zip(ends[:, 0] + 1e-9, ends[:, 1] - 1e-9, strict=True)),
        constraints={"type": "eq", "fun": lambda x: weights @ (x - own) - gain, "jac": lambda _: weights},
        method="SLSQP",
        options={"maxiter": 300, "ftol": 1e-12},
    )
    assert found <= tried.fun * (1 + 1e-6) + 1e-9
    if tried.success:
        assert found == pytest.approx(tried.fun, rel=1e-3, abs=1e-8)


def test_no_change_helps_where_the_plane_is_out_of_reach():
    sides = [Side(pl.Beta(0.5), 1.0), Side(pl.Beta(0.4), -0.5), Side(pl.Constant(0.9), -0.5)]
    assert least_for_gain(sides, 0.7) == math.inf
    assert least_for_gain(sides, 0.69) < math.inf


@pytest.mark.parametrize("kind", ["beta", "bernoulli", "mixed", "rare", "small-budget"])
def test_both_ways_to_find_it_agree_with_one_resource(kind):
    for problem in pl.problems.family(kind, 3, seed=4):
        best = problem.optimum
        for arm in np.flatnonzero(best.gaps > 1e-9).tolist():
            reward, cost = problem.rewards[arm], problem.costs[arm]
            one = least_with_one_cost(best, reward, cost)
            several = least_for_gain([Side(reward, 1.0), Side(cost, -best.price)], float(best.gaps[arm]))
            assert several == pytest.approx(one, rel=1e-6)


# The limit.


@pytest.mark.parametrize("kind", ["resources", "refilling"])
def test_limit_is_the_least_over_a_grid(kind):
    problem = pl.problems.family(kind, 1, seed=5, arms=4)[0]
    best = problem.optimum
    total = 0.0
    for arm in np.flatnonzero(best.gaps > 1e-9):
        costs = [Side(side[arm], -price) for side, price in zip(problem.consumptions, best.prices, strict=True)]
        moving = [side for side in (Side(problem.rewards[arm], 1.0), *costs) if side.reach != 0.0]
        total += best.gaps[arm] / grid_least(moving, float(best.gaps[arm]))
    assert pl.theory.limit(problem, 10_000) == pytest.approx(math.log(10_000) * total, rel=5e-3)


@pytest.mark.parametrize("kind", ["beta", "bernoulli", "mixed"])
def test_a_resource_that_does_not_bind_changes_nothing(kind):
    for problem in pl.problems.family(kind, 6, seed=2):
        costs = {"r1": problem.costs, "plenty": [pl.Beta(0.4)] * problem.arms}
        wider = pl.Problem(problem.rewards, costs, {"r1": problem.budget, "plenty": 1.0})
        assert pl.theory.limit(wider, 10_000) == pytest.approx(pl.theory.limit(problem, 10_000), rel=1e-6)


def test_the_order_of_resources_does_not_matter():
    problem = pl.problems.random("resources-tight", 8, resources=3)
    turned = dict(reversed(problem.costs.items()))
    assert pl.theory.limit(pl.Problem(problem.rewards, turned, problem.budget), 5000) == pytest.approx(
        pl.theory.limit(problem, 5000), rel=1e-9
    )


def test_one_resource_with_a_name_is_one_resource():
    plain = pl.paper.three_arms()
    named = pl.Problem(plain.rewards, {"money": plain.costs}, {"money": plain.budget})
    assert pl.theory.limit(named, 1000) == pl.theory.limit(plain, 1000)
    assert pl.theory.suak_bound(named, 1000).total == pl.theory.suak_bound(plain, 1000).total


def test_a_stock_is_spread_over_the_rounds():
    """With all its income as a stock at the start a problem is as hard as before."""
    problem, rounds = pl.problems.random("resources", 3), 10_000
    stock = {name: rate * rounds for name, rate in problem.budget.items()}
    stocked = pl.Problem(problem.rewards, problem.costs, dict.fromkeys(stock, 0.0), start=stock)
    assert pl.theory.limit(stocked, rounds) == pytest.approx(pl.theory.limit(problem, rounds), rel=1e-9)
    assert least_divergence(stocked, 0, stocked.optimum_over(rounds)) == pytest.approx(least_divergence(problem, 0))


def test_the_bound_of_suak_is_for_one_resource():
    with pytest.raises(pl.InvalidValue, match="suak_bound is for problems with one resource, got 3 resources"):
        pl.theory.suak_bound(pl.problems.random("resources", 0, resources=3), 1000)

"""Problems with several resources: what they say of themselves, their tables, what is refused, and their draws."""

import json
import math
import re
import tomllib
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import play
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import linprog
from worlds import STANDARD_ERRORS, assert_distribution, pulls_of_several

import paceline as pl
from paceline.grafting import simulator_for
from paceline.kernels.page import NO_PAGE
from paceline.kernels.state import Decision
from paceline.policies.policy import Policy
from paceline.problems.distributions import Beta, Constant, Empirical, Scaled, Shifted
from paceline.simulation.simulate import setting_of
from paceline.worlds.stationary import StationaryWorld

COSTS = {"money": [0.3, 0.75, 0.8], "energy": [0.2, 0.1, 0.6]}
BUDGET = {"money": 0.5, "energy": 0.25}
GOOD = {"rewards": [0.45, 0.7, 0.8], "costs": COSTS, "budget": BUDGET}


def test_values_come_by_name():
    problem = pl.Problem.beta(**GOOD, start={"energy": 2}, cap={"money": 10})
    assert problem.resources == ("money", "energy")
    assert problem.budget == BUDGET
    assert problem.start == {"money": 0.0, "energy": 2.0}
    assert problem.cap == {"money": 10.0, "energy": math.inf}
    assert problem.costs["energy"] == tuple(Beta(mean) for mean in COSTS["energy"])
    assert problem.max_costs == {"money": (1.0, 1.0, 1.0), "energy": (1.0, 1.0, 1.0)}
    np.testing.assert_array_equal(problem.cost_means, np.array(list(COSTS.values())).T)


def test_one_resource_without_a_name_is_as_before():
    problem = pl.Problem.beta([0.5, 0.8], [0.2, 0.7], budget=0.4)
    assert problem.resources == ("cost",)
    assert (problem.budget, problem.start, problem.cap) == (0.4, 0.0, math.inf)
    assert problem.costs == (Beta(0.2), Beta(0.7))
    assert problem.max_costs == (1.0, 1.0)
    assert problem.cost_means.tolist() == [0.2, 0.7]
    assert set(problem.to_dict()) == {"budget", "rewards", "costs", "coupled"}


def test_one_resource_with_a_name_keeps_it():
    problem = pl.Problem.beta([0.5], {"money": [0.2]}, budget={"money": 0.4})
    assert problem.budget == {"money": 0.4}
    assert pl.Problem.from_dict(problem.to_dict()) == problem


def test_optimum_is_that_of_a_general_solver():
    generator = np.random.default_rng(3)
    for _ in range(200):
        arms, resources = int(generator.integers(1, 7)), int(generator.integers(2, 5))
        rewards, costs = generator.random(arms), generator.random((resources, arms)).round(2)
        rates = generator.uniform(0.05, 0.9, resources).round(2)
        names = [f"r{d}" for d in range(resources)]
        problem = pl.Problem.beta(
            rewards, dict(zip(names, costs.tolist(), strict=True)), dict(zip(names, rates.tolist(), strict=True))
        )
        solved = linprog(-rewards, A_ub=np.vstack([costs, np.ones(arms)]), b_ub=[*rates, 1.0])
        best = problem.optimum
        assert best.value == pytest.approx(-solved.fun, abs=1e-8)
        # The dual: feasible, and of the same value.
        assert (best.prices >= 0).all()
        assert best.level >= -1e-9
        assert best.level + best.prices @ rates == pytest.approx(best.value, abs=1e-8)
        reduced = best.level + best.prices @ costs - rewards
        assert reduced.min() >= -1e-8
        np.testing.assert_allclose(best.gaps, np.maximum(reduced, 0.0), atol=1e-8)


# Tables.

shares = st.integers(0, 64).map(lambda number: number / 64)
plain_costs = st.one_of(
    st.builds(pl.Beta, shares), st.builds(pl.Bernoulli, shares), st.builds(Empirical, st.lists(shares, min_size=1))
)
refills = st.one_of(
    st.builds(lambda of, top: Scaled(of, -top), plain_costs, st.sampled_from([0.25, 1.0])),
    st.builds(lambda of, by: Shifted(Scaled(of, 0.5), -by), plain_costs, shares),
)


@st.composite
def several(draw: st.DrawFn) -> pl.Problem:
    """Problems with one to four resources by name and everything that may be said of them."""
    names = draw(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=4, unique=True))
    arms = draw(st.integers(1, 4))

    def sides(of):
        return st.lists(of, min_size=arms, max_size=arms)

    given = {name: draw(sides(plain_costs | refills)) for name in names}
    start = {name: draw(st.sampled_from([0.0, 0.5, 7.25])) for name in names}
    options = {"coupled": draw(st.booleans())}
    if draw(st.booleans()):
        options["max_costs"] = {name: [1.0] * arms for name in names if draw(st.booleans())}
    if draw(st.booleans()):
        options["cap"] = {name: 8.0 for name in names if draw(st.booleans())}
    budget = {name: draw(shares.filter(bool)) for name in names}
    return pl.Problem(draw(sides(plain_costs)), given, budget, start=start, **options)


# One of several resources may have the name that a problem with one need not give.
@example(pl.Problem.beta([0.5], {"cost": [0.5], "energy": [0.5]}, {"cost": 0.5, "energy": 0.5}, cap={"cost": 8.0}))
@given(several())
def test_a_problem_survives_its_table(problem):
    table = problem.to_dict()
    assert pl.Problem.from_dict(table) == problem
    assert pl.Problem.from_dict(json.loads(json.dumps(table))) == problem


def test_a_table_as_someone_would_write_it():
    text = """
        rewards = [0.45, 0.7, 0.8]
        costs.money = [0.3, 0.75, 0.8]
        costs.energy = [0.2, {kind = "scaled", top = -0.5, of = {kind = "bernoulli", mean = 0.5}}, 0.6]
        budget = {money = 0.5, energy = 0.0}
        start.energy = 2
        cap = {energy = 5}
    """
    assert pl.Problem.from_dict(tomllib.loads(text)) == pl.Problem(
        [Beta(0.45), Beta(0.7), Beta(0.8)],
        {
            "money": [Beta(0.3), Beta(0.75), Beta(0.8)],
            "energy": [Beta(0.2), Scaled(pl.Bernoulli(0.5), -0.5), Beta(0.6)],
        },
        budget={"money": 0.5, "energy": 0.0},
        start={"energy": 2.0},
        cap={"energy": 5.0},
    )


# What is refused. Each line names the thing, the rule and the value.

REFUSED: dict[str, tuple[dict[str, object], str]] = {
    "budget of an unknown resource": (
        {"budget": {**BUDGET, "time": 0.5}},
        "budget must be given for the resources money, energy, got one for 'time'",
    ),
    "start of an unknown resource": (
        {"start": {"time": 1}},
        "start must be given for the resources money, energy, got one for 'time'",
    ),
    "cap of an unknown resource": (
        {"cap": {"time": 1}},
        "cap must be given for the resources money, energy, got one for 'time'",
    ),
    "largest costs of an unknown resource": (
        {"max_costs": {"time": [1, 1, 1]}},
        "max_costs must be given for the resources money, energy, got one for 'time'",
    ),
    "no budget for one of them": (
        {"budget": {"money": 0.5}},
        "budget must have an entry for every resource, got none for 'energy'",
    ),
    "a number for a budget": ({"budget": 0.5}, "budget must be given by resource, such as {'money': ...}, got 0.5"),
    "a number for a start": ({"start": 2.0}, "start must be given by resource, such as {'money': ...}, got 2.0"),
    "a number for a cap": ({"cap": 2.0}, "cap must be given by resource, such as {'money': ...}, got 2.0"),
    "no resources": ({"costs": {}, "budget": {}}, "must name at least one resource, got none"),
    "a name that is none": (
        {"costs": {"": [0.1] * 3}, "budget": {"": 0.5}},
        "must be a text that is not empty, got ''",
    ),
    "a number for a name": ({"costs": {3: [0.1] * 3}, "budget": {3: 0.5}}, "must be a text that is not empty, got 3"),
    "negative rate": ({"budget": {**BUDGET, "energy": -0.1}}, "budget of 'energy' must be in (0, 1], got -0.1"),
    "rate above 1": ({"budget": {**BUDGET, "energy": 1.1}}, "budget of 'energy' must be in (0, 1], got 1.1"),
    "rate in words": ({"budget": {**BUDGET, "energy": "much"}}, "budget of 'energy' must be a number, got 'much'"),
    "rate that is no number": (
        {"budget": {**BUDGET, "energy": math.nan}},
        "budget of 'energy' must be in (0, 1], got nan",
    ),
    "rate 0 without stock or refill": (
        {"budget": {**BUDGET, "energy": 0}},
        "budget of 'energy' must be in (0, 1], got 0",
    ),
    "negative rate with a stock": (
        {"budget": {**BUDGET, "energy": -0.1}, "start": {"energy": 1}},
        "budget of 'energy' must be in [0, 1], got -0.1",
    ),
    "negative start": ({"start": {"energy": -1}}, "start of 'energy' must be in [0, 1.07374e+09], got -1"),
    "endless start": ({"start": {"energy": math.inf}}, "start of 'energy' must be", "got inf"),
    "start that cannot be counted": ({"start": {"energy": 1e10}}, "start of 'energy' must be"),
    "cap that cannot be counted": ({"cap": {"energy": 1e10}}, "cap of 'energy' must be"),
    "cap of nothing": ({"cap": {"energy": 0}}, "cap of 'energy' must be in (0, 1.07374e+09], got 0"),
    "cap below the largest cost": (
        {"cap": {"energy": 0.9}},
        "cap of 'energy' must cover the largest cost of every arm, 1, got 0.9",
    ),
    "start above the cap": (
        {"start": {"energy": 3}, "cap": {"energy": 2}},
        "cap of 'energy' must hold the start stock, 3, got 2",
    ),
    "lengths differ": (
        {"costs": {"money": [0.3, 0.75, 0.8], "energy": [0.2, 0.1]}},
        "rewards and costs must have the same length, got 3 rewards and 2 costs",
    ),
    "costs are a number": ({"costs": {"money": [0.3] * 3, "energy": 0.5}}, "of 'energy' must be a list", "got 0.5"),
    "mean cost above 1": ({"costs": {**COSTS, "energy": [0.2, 1.5, 0.6]}}, "of 'energy'[1] must be in [0, 1], got 1.5"),
    "largest costs for two arms of three": (
        {"max_costs": {"energy": [1, 1]}},
        "max_costs of 'energy' must have one entry per arm, got 2 for 3 arms",
    ),
    "largest cost above 1": (
        {"max_costs": {"energy": [1, 1.5, 1]}},
        "max_costs of 'energy'[1] must be in [0, 1], got 1.5",
    ),
    "largest cost below the mean": (
        {"max_costs": {"energy": [0.1, 1, 1]}},
        "cost means of 'energy'[0] must be at most the largest cost of its arm, 0.1, got 0.2",
    ),
}


def one_line(*parts: str) -> str:
    return "".join(rf"(?=.*{re.escape(part)})" for part in parts)


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused_in_one_line(case):
    changes, *words = REFUSED[case]
    with pytest.raises((pl.InvalidValue, pl.UnknownName), match=rf"\A{one_line(*words)}[^\n]*\Z"):
        pl.Problem.beta(**{**GOOD, **changes})


REFUSED_COSTS: dict[str, tuple[object, tuple[str, ...]]] = {
    "refill below -1": (Scaled(pl.Bernoulli(0.5), -1.5), ("costs of 'energy'[1]", "[-1, 1]", "-1.5")),
    "refill below -1 by a shift": (Shifted(Scaled(Beta(0.5), -0.5), -0.75), ("costs of 'energy'[1]", "-1.25")),
    "cost above 1": (Scaled(Beta(0.5), 1.5), ("costs of 'energy'[1]", "[-1, 1]", "1.5")),
    "no distribution": (0.5, ("costs of 'energy'[1] must be a distribution", "got 0.5")),
}


@pytest.mark.parametrize("case", REFUSED_COSTS)
def test_costs_that_cannot_be_are_refused_in_one_line(case):
    cost, words = REFUSED_COSTS[case]
    with pytest.raises(pl.InvalidValue, match=rf"\A{one_line(*words)}[^\n]*\Z"):
        pl.Problem([Beta(0.5)] * 2, {"money": [Beta(0.5)] * 2, "energy": [Beta(0.5), cost]}, BUDGET)


def test_rewards_cannot_be_negative():
    with pytest.raises(pl.InvalidValue, match=rf"\A{one_line('rewards[0]', '[0, 1]', '-0.5')}[^\n]*\Z"):
        pl.Problem([Scaled(Beta(0.5), -0.5)], [Beta(0.5)], 0.5)


def test_a_largest_cost_must_cover_every_cost():
    words = one_line("max_costs of 'money'[0] must cover every cost of its arm, 0.8, got 0.5")
    with pytest.raises(pl.InvalidValue, match=rf"\A{words}[^\n]*\Z"):
        pl.Problem([Beta(0.5)], {"money": [Scaled(Beta(0.5), 0.8)]}, {"money": 0.5}, max_costs={"money": [0.5]})


@pytest.mark.parametrize("way", ["stock", "refill"])
def test_rate_0_with_something_to_live_on(way):
    start = {"energy": 1.0} if way == "stock" else {}
    energy = Beta(0.3) if way == "stock" else Scaled(pl.Bernoulli(0.5), -1.0)
    problem = pl.Problem(
        [Beta(0.5)], {"money": [Beta(0.2)], "energy": [energy]}, {"money": 0.5, "energy": 0}, start=start
    )
    assert problem.rates == (0.5, 0.0)


@pytest.mark.parametrize("name", ["suak", "ucb-simplex"])
def test_a_policy_for_one_resource_says_so(name):
    with pytest.raises(pl.InvalidValue, match=rf"^{name} works with one resource only, got 2$"):
        pl.simulate(pl.Problem.beta(**GOOD), name, rounds=10, trials=1)


# Draws.

SEEN = 500


class Seen(NamedTuple):
    """What a policy was told, in order: arm, reward, costs."""

    outcomes: np.ndarray


class Turns(NamedTuple):
    """The number of arms."""

    arms: int


def take_turns(params, state):
    """Two pulls of each arm, one after the other."""
    arm = (state.clock.t // 2) % params.arms
    return Decision(arm, 1, arm)


def write_down(params, state, decision, reward, cost):
    outcomes, n = state.memory.outcomes, int(state.arms.pulls.sum()) - 1
    if 0 <= decision.arm < params.arms and n < outcomes.shape[0]:
        outcomes[n, 0] = decision.arm
        outcomes[n, 1] = reward
        for d in range(cost.size):
            outcomes[n, 2 + d] = cost[d]


@dataclass(frozen=True, kw_only=True)
class Clerk(Policy):
    """Pulls the arms in turn and writes down what comes of it."""

    name = "clerk"
    reasons = ("headroom below the largest cost", "its turn")
    choose = staticmethod(take_turns)
    learn = staticmethod(write_down)

    def params(self, setting):
        return Turns(setting.arms)

    def new_memory(self, arms, resources):
        return Seen(np.full((SEEN, 2 + resources), np.nan))


SAMPLED = {
    "one resource": play.EVERY_KIND,
    "one resource, coupled": pl.Problem(
        [Beta(0.3), Empirical([0.1, 0.5])], [Beta(0.05), Empirical([0.9, 0.2])], 0.5, coupled=True
    ),
    "one resource by name": pl.Problem.beta([0.5, 0.8], {"money": [0.2, 0.6]}, budget={"money": 0.4}),
    "two resources": pl.Problem.beta(**GOOD),
    "three resources, refills": play.SEVERAL,
    "four resources, coupled": pl.Problem(
        [Beta(0.3), Beta(0.6)],
        {name: [Beta(0.4), Scaled(Beta(0.2), 0.5)] for name in "abcd"},
        dict.fromkeys("abcd", 0.5),
        coupled=True,
    ),
}


@pytest.mark.parametrize(("seed", "stream"), [(0, 0), (7, 3), (2**64 - 1, 2**64 - 1)])
@pytest.mark.parametrize("name", SAMPLED)
def test_sample_gives_the_draws_of_the_simulator(name, seed, stream):
    problem, policy = SAMPLED[name], Clerk()
    setting = setting_of(problem, 2000)
    storage = policy.new_storage(setting, seed, stream)
    world = StationaryWorld(problem)
    simulator_for(Clerk, StationaryWorld)(policy.params(setting), storage, world.data, NO_PAGE, 2000)
    sampler = problem.sample(seed, stream)
    assert not np.isnan(storage.memory.outcomes).any()
    for arm, reward, *costs in storage.memory.outcomes.tolist():
        drawn, by_name = sampler.pull(int(arm))
        assert drawn == reward
        if problem.resources == ("cost",):
            assert [by_name] == costs
        else:
            assert by_name == dict(zip(problem.resources, costs, strict=True))


def test_sample_gives_the_draws_of_a_trial_of_simulate():
    """Sums in the same order are the same to the last bit."""
    problem = pl.Problem.beta(**GOOD)
    totals = pl.simulate(problem, "uniform", rounds=300, trials=4, seed=11, checkpoints=300)["uniform"].totals
    sampler = problem.sample(seed=11, stream=3)
    pulls = np.diff(totals.pulls[3], axis=0, prepend=0)
    earned = 0.0
    for at, row in enumerate(pulls):
        for arm in np.flatnonzero(row):
            reward, _ = sampler.pull(int(arm))
            earned += reward
        assert totals.earned[3, at] == earned


def test_two_samples_do_not_disturb_each_other():
    problem = pl.Problem.beta(**GOOD)
    one, other = problem.sample(5), problem.sample(5)
    first = [one.pull(0) for _ in range(5)]
    assert [other.pull(0) for _ in range(5)] == first
    assert [problem.sample(6).pull(0)] != first[:1]
    assert [problem.sample(5, stream=1).pull(0)] != first[:1]


@pytest.mark.parametrize("arm", [-1, 3, 1.5, True, None, "0"])
def test_an_arm_that_does_not_exist_is_refused(arm):
    sampler = pl.Problem.beta(**GOOD).sample()
    with pytest.raises(pl.InvalidValue, match=rf"^arm must be a whole number from 0 to 2, got {arm!r}$"):
        sampler.pull(arm)
    assert sampler.pull(0) == pl.Problem.beta(**GOOD).sample().pull(0)  # nothing was drawn


@pytest.mark.parametrize(("options", "thing"), [({"seed": -1}, "seed"), ({"stream": 2**64}, "stream")])
def test_a_key_that_cannot_be_is_refused(options, thing):
    with pytest.raises(pl.InvalidValue, match=f"^{thing} must be a whole number from 0 to"):
        pl.Problem.beta(**GOOD).sample(**options)


# Distributions of the costs.

SIZE = 100_000
LAWS = [
    Beta(0.3),
    Scaled(Beta(0.6), 0.5),
    Shifted(Scaled(Beta(0.5), 0.75), -0.25),
    Scaled(Beta(0.05), -1.0),
    Beta(0.5, 1.0),
]


def law_of(cost):
    """The distribution of a cost in SciPy's terms; a refill is looked at upside down."""
    shift = cost.by if isinstance(cost, Shifted) else 0.0
    scaled = cost.of if isinstance(cost, Shifted) else cost
    top, beta = (scaled.top, scaled.of) if isinstance(scaled, Scaled) else (1.0, scaled)
    return shift, top, stats.beta(*beta.shape)


@pytest.mark.statistical
@pytest.mark.parametrize("coupled", [False, True], ids=["apart", "coupled"])
def test_every_resource_has_its_distribution(coupled):
    names = [f"r{d}" for d in range(len(LAWS))]
    problem = pl.Problem(
        [Beta(0.4)],
        {name: [law] for name, law in zip(names, LAWS, strict=True)},
        dict.fromkeys(names, 0.5),
        coupled=coupled,
    )
    rewards, costs = pulls_of_several(problem, SIZE)
    assert_distribution(rewards, stats.beta(*Beta(0.4).shape))
    for column, cost in zip(costs.T, LAWS, strict=True):
        shift, top, law = law_of(cost)
        assert_distribution((column - shift) / top, law)
        assert column.mean() == pytest.approx(cost.mean, abs=STANDARD_ERRORS * math.sqrt(cost.variance / SIZE))
    together = np.column_stack(
        [rewards, *((column if law_of(cost)[1] > 0 else -column) for column, cost in zip(costs.T, LAWS, strict=True))]
    )
    correlations = stats.spearmanr(together).statistic[np.triu_indices(together.shape[1], 1)]
    bound = STANDARD_ERRORS / math.sqrt(SIZE)
    assert (correlations > bound).all() if coupled else (np.abs(correlations) <= bound).all()


def test_more_resources_leave_the_draws_of_the_first_alone():
    one = pl.Problem([Beta(0.05)], {"a": [Beta(0.5, 1.0)]}, {"a": 0.5})
    more = pl.Problem(
        [Beta(0.05)], {"a": [Beta(0.5, 1.0)], "b": [Beta(0.3)], "c": [Constant(0.2)]}, dict.fromkeys("abc", 0.5)
    )
    few, many = pulls_of_several(one, 2000), pulls_of_several(more, 2000)
    assert few[0].tobytes() == many[0].tobytes()
    assert few[1][:, 0].tobytes() == many[1][:, 0].tobytes()

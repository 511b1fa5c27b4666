"""Policies that play against prices where the answer is known: no price, other units, a resource twice, one arm."""

import math

import numpy as np
import play
import pytest
from lanes import FIELD

from paceline.errors import InvalidValue
from paceline.grafting import bound_rare_calls
from paceline.kernels.state import GUARD
from paceline.policies import make_policy
from paceline.policies.dual_learners import DUALS, dual_params, follow_spending
from paceline.policies.lagrangian import Lagrangian
from paceline.policies.policy import Setting
from paceline.policies.primal_learners import WHOLE
from paceline.problems.distributions import Beta, Constant, Scaled
from paceline.problems.problem import Problem

ROUNDS = 2000
MEANS = [0.3, 0.75, 0.8]
NO_PRICE = Problem.beta([0.45, 0.7, 0.8], MEANS, budget=1.0)


def decisions(policy, problem, rounds=ROUNDS):
    return play.ask_and_tell(play.begin(policy, problem, horizon=rounds), rounds).arm


def plain_ucb(problem, rounds=ROUNDS, most=1.0):
    """UCB1 on the rewards alone."""
    world, pulls, sums, chosen = problem.sample(play.SEED, play.STREAM), [0] * 3, [0.0] * 3, []
    for t in range(1, rounds + 1):
        bounds = [
            min(total / n + math.sqrt(2 * math.log(t) / n), most) if n else math.inf
            for total, n in zip(sums, pulls, strict=True)
        ]
        arm = bounds.index(max(bounds))
        reward, _ = world.pull(arm)
        pulls[arm] += 1
        sums[arm] += reward
        chosen.append(arm)
    return chosen


# A resource that never binds.


@pytest.mark.slow
def test_without_a_price_the_lagrangian_is_a_plain_bandit():
    assert decisions(Lagrangian(dual="ogd"), NO_PRICE).tolist() == plain_ucb(NO_PRICE)


@pytest.mark.slow
def test_without_tightening_an_empty_queue_is_a_plain_bandit():
    assert decisions(make_policy("queue", tightening=0), NO_PRICE).tolist() == plain_ucb(NO_PRICE)


def test_with_equal_costs_kube_is_a_plain_bandit():
    problem = Problem([Beta(0.45), Beta(0.7), Beta(0.8)], [Constant(0.5)] * 3, budget=1.0)
    assert decisions(make_policy("kube"), problem).tolist() == plain_ucb(problem, most=math.inf)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lagrangian", "replenishable"])
def test_hedge_forgets_a_resource_that_never_binds(name):
    game = play.begin(make_policy(name), NO_PRICE, horizon=20_000)
    play.simulate(game, 20_000)
    y = game.state.memory.duals
    assert y[0] < 1e-6
    assert y.sum() == pytest.approx(1.0)


# Units.

HALF = Problem(
    [Beta(0.45), Beta(0.7), Beta(0.8)],
    [Scaled(Beta(mean), 0.5) for mean in MEANS],
    budget=0.25,
    max_costs=[0.5, 0.5, 0.5],
)
WHOLE_UNITS = Problem([Beta(0.45), Beta(0.7), Beta(0.8)], [Beta(mean) for mean in MEANS], budget=0.5)


@pytest.mark.slow
@pytest.mark.parametrize("name", FIELD)
def test_a_change_of_units_changes_nothing(name):
    policy = make_policy(name)
    assert decisions(policy, HALF).tolist() == decisions(policy, WHOLE_UNITS).tolist()


# A resource twice.

TWICE = Problem(
    [Beta(0.45), Beta(0.7), Beta(0.8)],
    {"one": [Constant(mean) for mean in MEANS], "other": [Constant(mean) for mean in MEANS]},
    budget={"one": 0.5, "other": 0.5},
)
ONCE = Problem([Beta(0.45), Beta(0.7), Beta(0.8)], [Constant(mean) for mean in MEANS], budget=0.5)


@pytest.mark.slow
def test_two_gradient_steps_on_the_same_resource_are_one_of_twice_the_length():
    once = decisions(Lagrangian(dual="ogd", radius=None, dual_step=2.0), ONCE)
    twice = decisions(Lagrangian(dual="ogd", radius=None), TWICE)
    assert once.tolist() == twice.tolist()
    assert len(set(once)) > 1


def test_hedge_has_a_weight_more_for_the_same_resource():
    for problem, whole in ((ONCE, 1 / 2), (TWICE, 2 / 3)):
        assert play.begin(Lagrangian(), problem).state.memory.duals[:-1].sum() == pytest.approx(whole)


# Prices.


@pytest.mark.slow
def test_with_one_arm_the_price_is_what_the_arm_is_worth():
    """0.6 of reward for 0.8 of cost: at a price of 0.75 it is worth as much as the null arm, and half is too little."""
    game = play.begin(Lagrangian(), Problem([Beta(0.6)], [Beta(0.8)], budget=0.5), horizon=40_000)
    play.simulate(game, 40_000)
    assert game.books.spent[0] / 2**32 == pytest.approx(20_000, rel=0.02)
    assert game.state.memory.duals[0] / 0.5 == pytest.approx(0.75, rel=0.15)


@pytest.mark.parametrize(
    "moved", [(0.3, 0.2, 0.0), (0.9, 0.8, 0.1), (3.0, 0.1, 2.95), (1.0, 1.0, 1.0), (9.0, 0.0, 0.0)]
)
def test_gradient_steps_end_at_the_nearest_price_that_is_allowed(moved):
    """On the simplex by the optimality conditions: all prices are less by one and the same number, or 0."""
    setting = Setting(2, (1.0, 1.0, 1.0), rounds=100)
    params = dual_params(DUALS.index("ogd"), setting, 100, 10.0, 1.0)
    assert (params.step, params.radius) == (1.0, 1.0)
    state = play.begin(Lagrangian(dual="ogd"), THREE).state
    weights, nothing = np.zeros(4), np.zeros(4)
    follow_spending(params, state, nothing, weights, np.array(moved) + 1.0)
    found = weights[:3]
    if sum(moved) <= 1.0:
        assert found == pytest.approx(moved)
    else:
        assert found.sum() == pytest.approx(1.0)
        taken = max(np.array(moved) - found)
        assert found == pytest.approx(np.maximum(np.array(moved) - taken, 0.0))


THREE = Problem.beta(
    [0.5, 0.6],
    {"one": [0.5, 0.5], "two": [0.5, 0.5], "three": [0.5, 0.5]},
    budget={"one": 1.0, "two": 1.0, "three": 1.0},
)


# What is learned from, and what is not.


def learned(game):
    """What the learners keep, as bytes."""
    return b"".join(part.tobytes() for part in game.state.memory)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lagrangian", "lagrange-bwk", "exp3-six", "primal-dual-bwk", "queue"])
def test_only_queues_see_the_rounds_that_the_guard_refused(name):
    game = play.begin(make_policy(name), play.THREE_ARMS)
    refused = 0
    for _ in range(300):
        before = learned(game)
        _, reason, *_ = play.one_round(game)
        if reason == GUARD:
            refused += 1
            assert (learned(game) != before) == (name == "queue")
    assert refused > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lagrangian", "lagrange-bwk", "exp3-six", "primal-dual-bwk", "queue"])
def test_what_others_spent_moves_no_price(name):
    game = play.begin(make_policy(name), play.THREE_ARMS)
    play.ask_and_tell(game, 50)
    before, known = learned(game), game.state.arms.pulls.copy()
    bound_rare_calls(type(game.policy)).teach(game.params, game.storage, 1, 0.5, (0.9,))
    assert learned(game) == before
    assert (game.state.arms.pulls - known).tolist() == [0, 1, 0]


@pytest.mark.slow
def test_late_news_counts_for_the_probability_at_the_time_of_the_decision():
    game = play.begin(make_policy("replenishable", primal_step=20.0), play.THREE_ARMS)
    play.ask_and_tell(game, 400)
    weights = game.state.memory.weights
    first = game.ask()
    while not play.is_pull(game.state, first.arm):
        first = game.ask()
    probability = weights[first.arm] / weights.sum()
    assert first.tag / WHOLE == pytest.approx(probability, rel=1e-12)
    play.ask_and_tell(game, 40)
    eta, before = game.params.primal.rate, weights.copy()
    price = game.state.memory.duals[0] / 0.5
    game.tell(first, 0.25, (0.5,))
    loss = 1.0 - (0.25 - price * 0.5 + 2.0) / 3.0
    moved = before.copy()
    moved[first.arm] *= math.exp(-eta * loss / (probability + eta / 2))
    share = 1.0 / 50_000
    assert weights == pytest.approx((1 - share) * moved / moved.sum() + share / 4, rel=1e-12)
    assert abs(before[first.arm] / before.sum() - probability) > 1e-4  # it was another one by then


# Wrong use.

BAD = [
    (
        "lagrangian",
        {"primal": "exp3"},
        "primal of lagrangian must be one of ucb, exp3-six, exp3.p, square-cb, got 'exp3'",
    ),
    ("lagrangian", {"dual": "lp"}, "dual of lagrangian must be one of hedge, ogd, got 'lp'"),
    ("lagrangian", {"radius": None}, "radius of lagrangian must be a number, got None"),
    ("exp3-six", {"radius": 0}, "radius of exp3-six must be a finite number above 0, got 0"),
    ("replenishable", {"primal_step": -1}, "primal_step of replenishable must be a finite number above 0, got -1"),
    ("lagrange-bwk", {"dual_step": 0}, "dual_step of lagrange-bwk must be a finite number above 0, got 0"),
    ("lagrange-bwk", {"delta": 2}, "delta of lagrange-bwk must be in (0, 1], got 2"),
    ("lagrange-cbwlc", {"horizon": 0}, "horizon of lagrange-cbwlc must be a whole number from 1"),
    ("primal-dual-bwk", {"feed": "prices"}, "feed of primal-dual-bwk must be one of bounds, costs, got 'prices'"),
    ("primal-dual-bwk", {"confidence": 0}, "confidence of primal-dual-bwk must be a finite number above 0, got 0"),
    ("queue", {"slater": 0}, "slater of queue must be in (0, 1], got 0"),
    ("queue", {"tightening": -0.1}, "tightening of queue must be a finite number of at least 0, got -0.1"),
]


@pytest.mark.parametrize(("name", "parameters", "message"), BAD)
def test_parameters_that_are_refused(name, parameters, message):
    with pytest.raises(InvalidValue) as refusal:
        make_policy(name, **parameters)
    assert str(refusal.value).startswith(message)


SETTINGS = [
    ("lagrangian", {}, "lagrangian must be given a horizon, such as horizon=1000000, got none"),
    ("exp3-six", {}, "exp3-six must be given a horizon, such as horizon=1000000, got none"),
    ("primal-dual-bwk", {}, "primal-dual-bwk must be given a horizon, such as horizon=1000000, got none"),
    (
        "primal-dual-bwk",
        {"rounds": 100, "refills": (True,)},
        "primal-dual-bwk works with costs of at least 0 only, got a resource that pulls may refill",
    ),
    ("kube", {"refills": (True,)}, "kube works with costs of at least 0 only, got a resource that pulls may refill"),
    ("kube", {"max_costs": ((1.0,), (0.0,))}, "kube works with largest costs above 0 only, got 0 for arm 1"),
    ("kube", {"rates": (0.5, 0.5)}, "kube works with one resource only, got 2"),
    (
        "queue",
        {"rates": (0.5, 0.0)},
        "queue must be given a Slater constant where a resource has no income, such as slater=0.1, got none",
    ),
]


def begin(policy, setting):
    """What every user of a policy does first."""
    return policy.params(setting), policy.new_storage(setting, 0, 0)


@pytest.mark.parametrize(("name", "given", "message"), SETTINGS)
def test_settings_that_are_refused(name, given, message):
    setting = Setting(**{"arms": 2, "rates": (0.5,), **given})
    with pytest.raises(InvalidValue) as refusal:
        begin(make_policy(name), setting)
    assert str(refusal.value) == message


def test_a_slater_constant_helps_where_there_is_no_income():
    setting = Setting(2, (0.5, 0.0), start=(0.0, 30.0))
    assert make_policy("queue", slater=0.1).params(setting).patience == pytest.approx(0.1 * 2**0.25 * (2 / 3) ** 0.5)

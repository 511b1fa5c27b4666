"""A live bandit with several resources: a line for each, costs that come one by one, refills, caps and stocks."""

from fractions import Fraction
from random import Random

import numpy as np
import play
import pytest
from bookkeeper import (
    FOR_SEVERAL,
    SEED,
    SEVERAL,
    assert_same_books,
    keeps_the_promise,
    live,
    naive_interval,
    policy_of,
    refused,
    state_of,
)
from lanes import in_lanes

from paceline import Bandit, Conflict, Decision, InvalidValue, Problem, simulate
from paceline.live.income import roll_over
from paceline.problems.optimum import solve_several

every_policy = pytest.mark.parametrize("policy", in_lanes(FOR_SEVERAL))

STOCK = Problem.beta(
    [0.5, 0.9, 0.4],
    {"money": [0.2, 0.8, 0.3], "ink": [0.3, 0.4, 0.1]},
    budget={"money": 0.4, "ink": 0.0},
    start={"ink": 300.0},
)
PROBLEMS = {"three, a refill and a cap": play.SEVERAL, "a stock": STOCK}


def bandit_for(problem, policy, rounds, times=None):
    """A bandit whose arms are those of a problem, by number; amounts of each resource are so many times as large."""
    times = times or dict.fromkeys(problem.resources, 1.0)

    def in_units(values):
        return {name: value * times[name] for name, value in zip(problem.resources, values, strict=True)}

    caps = {name: cap * times[name] for name, cap in problem.cap.items() if cap < np.inf}
    return Bandit(
        [str(arm) for arm in range(problem.arms)],
        in_units(problem.rates),
        policy,
        {
            name: {str(arm): most * times[name] for arm, most in enumerate(side)}
            for name, side in zip(problem.resources, problem.most, strict=True)
        },
        seed=SEED,
        scale=times,
        start=in_units(problem.stocks),
        cap=caps,
        max_refill=in_units([float(refill) for refill in problem.refills]),
        rounds=rounds,
    )


def play_live(bandit, problem, rounds, times=None):
    """Let a bandit play a problem: its decisions."""
    world, decisions = problem.sample(SEED), []
    for _ in range(rounds):
        decision = bandit.ask()
        if decision.arm is not None:
            reward, costs = world.pull(int(decision.arm))
            bandit.tell(
                decision.id, reward, {name: cost * (times or {}).get(name, 1.0) for name, cost in costs.items()}
            )
        decisions.append(decision)
    return decisions


# As in simulation.


@every_policy
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_it_decides_and_counts_as_the_simulator_does(policy, problem):
    rounds = 1500
    bandit = bandit_for(problem, policy, rounds)
    decisions = play_live(bandit, problem, rounds)
    game = play.begin(policy_of(policy), problem, rounds, seed=SEED, stream=0)
    log = play.ask_and_tell(game, rounds)
    assert [-1 if decision.arm is None else int(decision.arm) for decision in decisions] == [
        arm if play.is_pull(game.state, arm) else -1 for arm in log.arm
    ]
    assert_same_books(bandit, game)


@every_policy
def test_it_spends_as_in_simulate(policy):
    rounds = 1000
    bandit = bandit_for(STOCK, policy, rounds)
    play_live(bandit, STOCK, rounds)
    run = simulate(STOCK, {"it": policy}, rounds=rounds, trials=1, seed=SEED)["it"]
    assert list(bandit.spent.values()) == run.spent[0, -1].tolist()


def test_the_units_do_not_matter():
    times = {"money": 0.07, "energy": 2.0**60, "time": 1000.0}
    plain, other = bandit_for(play.SEVERAL, "thompson", 800), bandit_for(play.SEVERAL, "thompson", 800, times)
    decisions = [play_live(plain, play.SEVERAL, 800), play_live(other, play.SEVERAL, 800, times)]
    assert [decision[:4] for decision in decisions[0]] == [decision[:4] for decision in decisions[1]]
    for name, factor in times.items():
        assert other.spent[name] == pytest.approx(plain.spent[name] * factor)
        assert other.credited[name] == pytest.approx(plain.credited[name] * factor)
        assert other.price[name] == pytest.approx(plain.price[name] / factor)
        for arm, known in plain.estimates().items():
            amounts = [amount * factor for amount in known.cost[name]]
            assert other.estimates()[arm].cost[name] == pytest.approx(amounts)


@every_policy
def test_the_largest_costs_every_time_never_overspend(policy):
    budget, max_cost = {"money": 0.3, "calls": 1 / 3}, {"money": {"a": 0.1, "b": 1.0}, "calls": {"a": 1.0, "b": 0.2}}
    bandit = Bandit(["a", "b"], budget, policy, max_cost, seed=SEED)
    paid = dict.fromkeys(budget, Fraction(0))
    for t in range(1, 401):
        decision = bandit.ask()
        if decision.arm is not None:
            costs = {name: by_arm[decision.arm] for name, by_arm in max_cost.items()}
            for name, cost in costs.items():
                paid[name] += Fraction(cost)
                assert paid[name] <= Fraction(budget[name]) * t
            bandit.tell(decision.id, 1.0, costs)
        assert keeps_the_promise(bandit)
    assert min(paid.values()) > 0


# Costs that come one by one.


def amounts(bandit):
    """credited, spent, reserved, headroom by resource."""
    each = bandit.credited, bandit.spent, bandit.reserved, bandit.headroom
    return {name: tuple(amount[name] for amount in each) for name in bandit.spent}


def test_a_resource_may_be_called_cost_as_any_other(tmp_path):
    """What counts is how the budget was given."""
    bandit = Bandit(["a", "b"], {"cost": 0.5}, max_cost={"cost": {"a": 0.5, "b": 0.25}}, journal=tmp_path / "journal")
    decision = bandit.ask()
    bandit.tell(decision.id, reward=0.5, cost={"cost": 0.125})
    bandit.credit({"cost": 2.0})
    bandit.add("c", max_cost={"cost": 0.25})
    bandit.save(tmp_path / "bandit.json")
    bandit.close()
    with Bandit.open(tmp_path / "journal") as reopened:
        for each in (bandit, reopened, Bandit.load(tmp_path / "bandit.json")):
            assert (each.spent, each.credited) == ({"cost": 0.125}, {"cost": 2.5})
            assert each.estimates()["c"].cost["cost"].high == 0.25
    assert Bandit(["a"], 0.5).headroom == 0.0


def two(policy="uniform", **settings):
    """An arm that costs up to 1 euro and 2 calls; each round brings as much."""
    budget, max_cost = {"money": 1.0, "calls": 2.0}, {"money": 1.0, "calls": 2.0}
    return Bandit(["a"], budget, policy, max_cost, **settings)


def test_each_cost_frees_its_own_reservation():
    bandit = two()
    number = bandit.ask().id
    assert amounts(bandit) == {"money": (1.0, 0.0, 1.0, 0.0), "calls": (2.0, 0.0, 2.0, 0.0)}
    bandit.tell(number, cost={"calls": 0.5})
    assert amounts(bandit) == {"money": (1.0, 0.0, 1.0, 0.0), "calls": (2.0, 0.5, 0.0, 1.5)}
    bandit.tell(number, reward=0.5)
    assert bandit.estimates()["a"].pulls == 0
    bandit.tell(number, cost={"money": 0.25, "calls": 0.5})
    assert amounts(bandit) == {"money": (1.0, 0.25, 0.0, 0.75), "calls": (2.0, 0.5, 0.0, 1.5)}
    known = bandit.estimates()["a"]
    assert (known.pulls, known.cost["money"].mean, known.cost["calls"].mean) == (1, 0.25, 0.5)
    assert (bandit.pending, bandit.earned) == ({}, 0.5)


def test_a_cost_of_none_is_not_told():
    bandit = two()
    number = bandit.ask().id
    bandit.tell(number, cost={"calls": 0.5, "money": None})
    assert (bandit.spent, bandit.reserved) == ({"money": 0.0, "calls": 0.5}, {"money": 1.0, "calls": 0.0})


def test_what_expires_is_charged_for_what_is_not_known():
    bandit = two()
    number = bandit.ask().id
    bandit.tell(number, cost={"calls": 0.5})
    bandit.expire(number)
    assert (bandit.spent, bandit.reserved) == ({"money": 1.0, "calls": 0.5}, {"money": 0.0, "calls": 0.0})
    bandit.tell(number, cost={"money": 0.25})
    assert bandit.spent == {"money": 0.25, "calls": 0.5}
    assert bandit.expired == [number]
    bandit.tell(number, reward=0.5)
    assert (bandit.expired, bandit.estimates()["a"].pulls) == ([], 1)


def test_silence_stands_for_a_reward_once_all_costs_are_known():
    bandit = two(silence=0.25)
    first, second = bandit.ask().id, bandit.ask().id
    bandit.tell(first, cost={"money": 0.5, "calls": 0.5})
    bandit.expire(first)
    assert bandit.earned == 0.25
    bandit.tell(second, cost={"money": 0.5})
    bandit.expire(second)
    assert list(bandit.pending) == [second]
    bandit.tell(second, cost={"calls": 0.5})
    assert (bandit.pending, bandit.earned) == ({}, 0.5)


def test_what_was_told_in_part_cannot_be_cancelled():
    bandit = two()
    number = bandit.ask().id
    bandit.tell(number, cost={"calls": 0.5})
    with refused(bandit, Conflict, f"decision {number} was told a part of its outcome"):
        bandit.cancel(number)


def test_an_expired_decision_may_be_cancelled():
    bandit = two()
    number = bandit.ask().id
    bandit.expire(number)
    assert bandit.spent == {"money": 1.0, "calls": 2.0}
    bandit.cancel(number)
    assert (bandit.spent, bandit.reserved, bandit.pending) == ({"money": 0.0, "calls": 0.0},) * 2 + ({},)


def test_every_resource_must_cover_a_pull():
    bandit = Bandit(["a"], {"money": 1.0, "calls": 0.25}, "uniform")
    assert [bandit.ask().arm for _ in range(4)] == [None, None, None, "a"]
    assert bandit.headroom == {"money": 3.0, "calls": 0.0}


# Reasons.


def test_a_refusal_names_the_resource():
    bandit = Bandit(["a"], {"money": 1.0, "calls": 0.25}, "uniform")
    decision = bandit.ask()
    assert decision.reason == "headroom of calls 0.25 < largest cost 1"
    assert (decision.resource, decision.headroom, decision.largest_cost) == ("calls", 0.25, 1.0)


def test_a_refusal_of_one_arm_names_both():
    max_cost = {"money": {"cheap": 0.1, "expensive": 0.1}, "calls": {"cheap": 0.1, "expensive": 7.3}}
    bandit = Bandit(["cheap", "expensive"], {"money": 0.3, "calls": 0.3}, "uniform", max_cost, seed=SEED)
    refusals = [decision for decision in (bandit.ask() for _ in range(10)) if decision.arm is None]
    assert refusals
    for decision in refusals:
        assert decision.reason.endswith("< largest cost 7.3 of expensive")
        assert decision.reason.startswith("headroom of calls")


def test_one_resource_may_have_a_name():
    bandit = Bandit(["a"], {"money": 0.5}, "uniform")
    assert bandit.ask().reason == "headroom of money 0.5 < largest cost 1"
    bandit.tell(bandit.ask().id, 0.5, {"money": 0.25})
    bandit.credit({"money": 2.0})
    assert (bandit.spent, bandit.headroom) == ({"money": 0.25}, {"money": 2.75})
    assert bandit.estimates()["a"].cost["money"].mean == 0.25
    assert repr(bandit) == "<Bandit a: 2 rounds, spent 0.25 of 3 money>"
    assert set(bandit.price) == {"money"}


# Refills, caps and stocks.


def test_a_refill_counts_when_it_is_told():
    bandit = Bandit(["a"], 0.5, "uniform", max_refill=0.75)
    bandit.credit(2.0)
    first, second = bandit.ask().id, bandit.ask().id
    assert (bandit.headroom, bandit.reserved) == (1.0, 2.0)
    bandit.tell(first, 0.5, -0.75)
    assert (bandit.spent, bandit.headroom) == (-0.75, 2.75)
    bandit.tell(second, 0.5, 0.25)
    assert (bandit.spent, bandit.credited, bandit.headroom) == (-0.5, 3.0, 3.5)
    above = naive_interval([0.0, 1.0], 1.75)  # of costs that begin at 0
    assert bandit.estimates()["a"].cost == pytest.approx(tuple(amount - 0.75 for amount in above))


def test_an_arm_that_only_refills_needs_no_headroom():
    bandit = Bandit(["sun", "work"], 0.0, "uniform", {"sun": 0.0, "work": 1.0}, max_refill=0.5, seed=SEED)
    seen = set()
    for _ in range(60):
        decision = bandit.ask()
        seen.add(decision.arm)
        if decision.arm is not None:
            bandit.tell(decision.id, *((0.1, -0.5) if decision.arm == "sun" else (0.9, 0.75)))
        assert keeps_the_promise(bandit)
    assert seen == {"sun", "work", None}
    assert bandit.mix() == pytest.approx({"sun": 0.6, "work": 0.4})
    assert bandit.price == pytest.approx((0.9 - 0.1) / (0.75 + 0.5))


def test_what_is_above_the_cap_is_lost():
    bandit = Bandit(["a"], 0.5, "uniform", max_cost=2.0, cap=3.0, start=2.5, rounds=10, max_refill=1.0)
    assert (bandit.credited, bandit.headroom) == (2.5, 2.5)
    number = bandit.ask().id
    assert (bandit.credited, bandit.reserved) == (3.0, 2.0)
    bandit.tell(number, 0.5, 1.0)
    assert bandit.headroom == 2.0
    bandit.credit(5.0)
    assert (bandit.headroom, bandit.credited) == (3.0, 4.0)
    number = bandit.ask().id
    bandit.tell(number, 0.5, -1.0)  # full already
    assert (bandit.headroom, bandit.spent) == (3.0, 0.0)
    number = bandit.ask().id
    bandit.expire(number)
    assert bandit.headroom == 1.0
    bandit.ask()
    bandit.tell(number, 0.5, 0.25)  # what comes back does not count above the cap
    assert (bandit.headroom, bandit.reserved) == (3.0, 0.0)


def test_a_stock_lasts():
    bandit = bandit_for(STOCK, "thompson", 1000)
    play_live(bandit, STOCK, 1000)
    assert 0.0 <= bandit.headroom["ink"] < 15.0
    half = bandit_for(STOCK, "thompson", 1000)
    play_live(half, STOCK, 500)
    assert 120.0 < half.headroom["ink"] < 180.0


def test_rounds_are_a_horizon_too(tmp_path):
    stock = {"budget": 0.0, "start": 30.0, "rounds": 100}
    bandit = Bandit(["a", "b"], policy="thompson", **stock)
    assert bandit.headroom == 30.0
    bandit.save(tmp_path / "bandit.json")
    assert Bandit.load(tmp_path / "bandit.json")._ledger.config == bandit._ledger.config


def test_income_is_counted_with_what_may_come_back():
    plain, refilled = Bandit(["a"], 1.0, "uniform"), Bandit(["a"], 1.0, "uniform", max_refill=1.0)
    for bandit in (plain, refilled):
        bandit.credit(2.0**29)
    most = refilled._ledger.next_roll
    assert most <= plain._ledger.next_roll
    assert (most + 1) * 2**33 + 2**61 < 2**63


# Credits and arms.


def test_credits_of_some_resources():
    bandit = two()
    bandit.credit({"money": 5.0})
    bandit.credit({"calls": 4.0}, over=4)
    bandit.ask()
    assert (bandit.credited, bandit.held) == ({"money": 6.0, "calls": 3.0}, {"money": 0.0, "calls": 3.0})


def test_a_new_arm_by_resource():
    scale = {"money": 2.0, "calls": 5.0}
    bandit = Bandit(["a"], {"money": 1.0, "calls": 2.0}, "uniform", {"money": 1.0, "calls": 2.0}, scale=scale)
    bandit.add("b", {"money": 2.0})
    bandit.add("c", {"money": 0.5, "calls": 5.0})
    bandit.add("d", 0.25)
    bandit.add("e")
    largest = dict(zip(bandit.arms, bandit._ledger.arm_set.max_costs, strict=True))
    assert largest == {"a": (1.0, 2.0), "b": (2.0, 2.0), "c": (0.5, 5.0), "d": (0.25, 0.25), "e": (1.0, 2.0)}


def test_one_largest_cost_may_stand_for_all_resources():
    bandit = Bandit(["a", "b"], {"money": 0.5, "calls": 1.0}, max_cost=0.5)
    assert bandit._ledger.arm_set.max_costs == [(0.5, 0.5)] * 2


@every_policy
def test_a_pause_changes_nothing_that_was_learned(policy):
    bandit = Bandit(["a", "b", "c"], policy=policy, seed=SEED, **SEVERAL)
    live(bandit, 150)
    for arm in "abc":
        bandit.resume(arm)
    before = state_of(bandit)
    for arm in "abc":
        bandit.pause(arm)
    sure = 1.0 if policy == "uniform" else None  # that it sits out
    assert bandit.ask() == Decision(bandit.rounds, None, "no arm is active", propensity=sure)
    for arm in "cab":
        bandit.resume(arm)
    after = state_of(bandit)
    if getattr(policy, "name", policy) == "queue":  # its queues see every round, also one without an arm
        assert after.pop("memory") != before.pop("memory")
    if getattr(policy, "name", policy) == "sw-ucb":  # and its window moves on with every round
        assert after.pop("record")["window_until"] == before.pop("record")["window_until"] + 1
    for part in {"arms", "memory", "record", "open", "settled"} & after.keys():
        assert after[part] == before[part]


# What can be seen.


def test_mix_and_prices_are_those_of_the_program():
    bandit = Bandit(["a", "b", "c"], {"money": 0.5, "calls": 0.6}, "uniform", {"money": 1.0, "calls": 2.0}, 3.0)
    bandit.credit({"money": 100.0, "calls": 100.0})
    means = {"a": (0.9, 0.2, 1.0), "b": (2.1, 0.9, 0.4), "c": (2.7, 0.8, 1.9)}
    seen = set()
    while len(seen) < 3:
        decision = bandit.ask()
        reward, money, calls = means[decision.arm]
        bandit.tell(decision.id, reward, {"money": money, "calls": calls})
        seen.add(decision.arm)
    rates = bandit._ledger.arm_set.state.rate
    rewards, costs = np.array([0.3, 0.7, 0.9]), np.array([[0.2, 0.5], [0.9, 0.2], [0.8, 0.95]])
    best = solve_several(rewards, costs, rates)
    shares = zip([*bandit.arms, None], best.mix.tolist(), strict=True)
    assert bandit.mix() == pytest.approx({arm: share for arm, share in shares if share > 0.0})
    money, calls = best.prices
    assert bandit.price == pytest.approx({"money": money * 3.0, "calls": calls * 3.0 / 2.0})


def test_intervals_are_those_of_the_formula():
    chance, told = Random(3), []
    bandit = Bandit(
        ["a"], {"money": 4.0, "energy": 1.0}, "uniform", {"money": 4.0, "energy": 1.0}, max_refill={"energy": 0.5}
    )
    for _ in range(300):
        told.append((4.0 * chance.random() ** 2, 1.5 * chance.random() - 0.5))
        bandit.tell(bandit.ask().id, 0.5, dict(zip(("money", "energy"), told[-1], strict=True)))
    money, energy = zip(*told, strict=True)
    known = bandit.estimates()["a"].cost
    assert known["money"] == pytest.approx(naive_interval(money, 4.0))
    above = naive_interval([cost + 0.5 for cost in energy], 1.5)  # of costs that begin at 0
    assert known["energy"] == pytest.approx(tuple(amount - 0.5 for amount in above))


def test_it_says_what_it_is():
    bandit = two()
    assert repr(bandit) == "<Bandit a: 0 rounds, spent 0 of 0 money, spent 0 of 0 calls>"


def test_a_refill_above_the_largest_is_refused():
    bandit = Bandit(["a"], {"money": 1.0, "energy": 1.0}, "uniform", max_refill={"energy": 0.5})
    number = bandit.ask().id
    rule = "must be at least -0.5 (max_refill= says what a pull may bring), got -0.75"
    with refused(bandit, InvalidValue, f"cost of 'energy' of decision {number} (a) {rule}"):
        bandit.tell(number, 0.5, {"money": 0.5, "energy": -0.75})
    with refused(bandit, InvalidValue, f"cost of 'money' of decision {number} (a) must be at least 0 (max_refill="):
        bandit.tell(number, 0.5, {"money": -0.5, "energy": -0.25})


@pytest.mark.parametrize("cap", [None, 4.0])
def test_an_overrun_is_repaid_by_a_refill_a_credit_and_the_budget(cap):
    """What is below nothing is no room under a cap: nothing is lost on the way back."""
    bandit = Bandit(["a"], 1.0, "uniform", max_refill=1.0, cap=cap)
    first = bandit.ask().id
    bandit.tell(first, 0.5, 5.0, overrun=True)
    assert (bandit.headroom, bandit.status().overrun, bandit.status().overdrawn) == (-4.0, 4.0, 4.0)
    bandit.credit(3.0)
    assert bandit.headroom == -1.0
    assert bandit.ask().arm is None
    assert bandit.headroom == 0.0
    second = bandit.ask()
    assert second.arm == "a"
    bandit.tell(second.id, 0.5, 6.0, overrun=True)
    assert bandit.headroom == -5.0
    bandit.credit(5.0)
    third = bandit.ask().id
    bandit.tell(third, 0.5, -1.0)
    assert (bandit.headroom, bandit.credited, bandit.spent) == (2.0, 12.0, 10.0)
    assert bandit.status().lost == 0.0


@pytest.mark.parametrize("rolled", [False, True])
def test_overruns_are_booked_as_long_as_they_can_be_counted(rolled):
    """What is owed must not grow until it runs over 64 bits, and comes out as headroom at the other end."""
    bandit = Bandit(["a"], 1.0, "uniform", start=20.0)
    ids = [bandit.ask().id for _ in range(20)]
    for count, id in enumerate(ids[:7], 1):
        bandit.tell(id, 0.5, 2.0**28, overrun=True)
        if rolled:
            roll_over(bandit._ledger)
        assert bandit.headroom == 20 - (2**28 - 1) * count
    bandit.tell(ids[7], 0.5, 2.0**27, overrun=True)
    for id in ids[8:]:
        with refused(bandit, InvalidValue, f"cost of decision {id} (a) must be in [0, "):
            bandit.tell(id, 0.5, 2.0**28, overrun=True)
    bandit.tell(ids[0], 0.5, 2.0**28, overrun=True)  # known
    bandit.tell(ids[-1], 0.5, 0.5)  # within what was reserved
    assert bandit.ask().arm is None

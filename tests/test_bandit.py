"""What a live bandit does: it decides as the simulator does, in any currency, with arms that come and go."""

import gc
import math
from fractions import Fraction
from random import Random

import bookkeeper
import numpy as np
import play
import pytest
from bookkeeper import POLICIES, SEED, assert_same_books, keeps_the_promise, live, naive_interval, policy_of, state_of
from lanes import in_lanes

from paceline import Bandit, Decision, Problem, PythonPolicy, Uniform, simulate
from paceline.kernels.estimates import Known
from paceline.kernels.random import decision_uniform
from paceline.live import ledger
from paceline.live.estimate import interval

PROBLEMS = {
    "wide gaps": play.WIDE_GAPS,
    "every kind": play.EVERY_KIND,
    "largest costs": Problem.beta([0.3, 0.8, 0.6], [0.1, 0.6, 0.25], budget=0.3, max_costs=[0.2, 1.0, 0.5]),
}
every_policy = pytest.mark.parametrize("policy", in_lanes(POLICIES))
every_problem = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)


def bandit_for(problem, policy, times=1.0, **settings):
    """A bandit whose arms are those of a problem, by number, with all amounts so many times as large."""
    max_cost = {str(arm): most * times for arm, most in enumerate(problem.max_costs)}
    names = list(max_cost)
    return Bandit(names, problem.budget * times, policy, max_cost, seed=SEED, scale=times, **settings)


def play_live(bandit, problem, rounds, times=1.0):
    """Let a bandit play a problem: its decisions."""
    world, decisions = problem.sample(SEED), []
    for _ in range(rounds):
        decision = bandit.ask()
        if decision.arm is not None:
            reward, cost = world.pull(int(decision.arm))
            bandit.tell(decision.id, reward, cost * times)
        decisions.append(decision)
    return decisions


# As in simulation.


@every_policy
@every_problem
def test_it_decides_and_counts_as_the_simulator_does(policy, problem):
    rounds = 3000
    bandit = bandit_for(problem, policy)
    decisions = play_live(bandit, problem, rounds)
    game = play.begin(policy_of(policy), problem, seed=SEED, stream=0)
    log = play.ask_and_tell(game, rounds)
    assert [-1 if decision.arm is None else int(decision.arm) for decision in decisions] == [
        arm if play.is_pull(game.state, arm) else -1 for arm in log.arm
    ]
    assert_same_books(bandit, game)


@every_policy
def test_it_spends_and_pulls_as_in_simulate(policy):
    problem, rounds = play.THREE_ARMS, 2000
    bandit = bandit_for(problem, policy)
    play_live(bandit, problem, rounds)
    run = simulate(problem, {"it": policy}, rounds=rounds, trials=1, seed=SEED)["it"]
    assert bandit.spent == run.spent[0, -1]
    assert [known.pulls for known in bandit.estimates().values()] == run.pulls[0].tolist()
    assert bandit.rounds == rounds


# Largest costs by arm.


def test_a_cheap_arm_is_pulled_while_a_dear_one_may_not_be():
    bandit = Bandit(["expensive", "cheap"], 0.2, "thompson", {"expensive": 1.0, "cheap": 0.1})
    first = [bandit.ask() for _ in range(4)]  # 0.8 at the most
    assert "cheap" in {decision.arm for decision in first}
    assert {decision.arm for decision in first} <= {"cheap", None}
    assert any(
        decision.reason.startswith("stands in while the headroom is short") for decision in first if decision.arm
    )
    only_one = Bandit(["expensive", "cheap"], 0.2)
    assert [only_one.ask().arm for _ in range(4)] == [None] * 4


def naive_uniform(problem, seed, rounds):
    """Any arm by chance, when the headroom covers its largest cost: the arms, -1 for none. Counted in 2**-32."""
    world, key = problem.sample(seed), (np.uint64(seed), np.uint64(0))
    paid, arms = 0, []
    for t in range(1, rounds + 1):
        arm = int(decision_uniform(*key, t) * problem.arms)
        if math.floor(Fraction(problem.budget) * t * 2**32) - paid < math.ceil(problem.max_costs[arm] * 2**32):
            arms.append(-1)
            continue
        _, cost = world.pull(arm)
        paid += math.ceil(cost * 2**32)
        arms.append(arm)
    return arms


@pytest.mark.parametrize("max_costs", [[0.2, 1.0, 0.5], [0.11, 0.61, 0.3], [1.0, 1.0, 1.0]])
@pytest.mark.parametrize("budget", [0.05, 0.3, 1.0])
def test_simulation_with_largest_costs_is_the_naive_loop(max_costs, budget):
    problem = Problem.beta([0.3, 0.8, 0.6], [0.1, 0.6, 0.25], budget=budget, max_costs=max_costs)
    game = play.begin(Uniform(), problem, seed=SEED, stream=0)
    assert play.ask_and_tell(game, 1500).arm.tolist() == naive_uniform(problem, SEED, 1500)


@every_policy
@pytest.mark.parametrize("budget", [0.05, 0.3, 1 / 3])
def test_the_largest_cost_every_time_never_overspends(policy, budget):
    max_cost = {"a": 0.1, "b": 1.0, "c": 0.3}
    bandit = Bandit(list(max_cost), budget, policy, max_cost, seed=SEED)
    paid = Fraction(0)
    for t in range(1, 801):
        decision = bandit.ask()
        if decision.arm is not None:
            paid += Fraction(max_cost[decision.arm])
            assert paid <= Fraction(budget) * t
            bandit.tell(decision.id, 1.0, max_cost[decision.arm])
        assert keeps_the_promise(bandit)
    assert paid > 0


@every_policy
def test_news_that_never_comes_never_overspends(policy):
    bandit = Bandit(["a", "b"], 0.3, policy, {"a": 0.1, "b": 1.0}, seed=SEED)
    risk = Fraction(0)
    for t in range(1, 301):
        arm = bandit.ask().arm
        risk += Fraction({"a": 0.1, "b": 1.0, None: 0.0}[arm])
        assert risk <= Fraction(0.3) * t
    assert bandit.reserved == pytest.approx(float(risk))
    assert bandit.spent == 0.0


def test_a_cost_too_small_to_multiply_is_charged():
    bandit = Bandit(["a"], 0.0, "uniform", 2.0**500)
    bandit.credit(2.0**500)
    bandit.tell(bandit.ask().id, 1.0, 5e-324)
    assert bandit.spent >= 5e-324


# Reasons.


def test_the_reason_of_a_refusal():
    bandit = Bandit(["a"], 0.4)
    assert [bandit.ask().reason for _ in range(2)] == [
        "headroom 0.4 < largest cost 1",
        "headroom 0.8 < largest cost 1",
    ]


def test_the_reason_of_a_refusal_of_one_arm():
    bandit = Bandit(["cheap", "expensive"], 0.3, "uniform", {"cheap": 0.1, "expensive": 7.3}, seed=SEED)
    refusals = [decision for decision in (bandit.ask() for _ in range(10)) if decision.arm is None]
    assert refusals
    for decision in refusals:
        assert decision.reason.endswith("< largest cost 7.3 of expensive")
        assert decision.other == "expensive"


def test_a_refusal_does_not_look_like_a_mistake():
    bandit = Bandit(["a"], 1 / 3)  # as a float a little less than a third
    headroom, largest = [bandit.ask().reason for _ in range(3)][-1].removeprefix("headroom ").split(" < largest cost ")
    assert float(headroom) < float(largest)


def test_the_reasons_of_suak():
    bandit = Bandit(["a", "b"], 0.5, "suak")
    reasons = []
    for _ in range(20):
        decision = bandit.ask()
        reasons.append(decision.reason)
        if decision.arm is not None:
            assert decision.reason == "classifying"
            bandit.tell(decision.id, 0.5, 0.25)
    assert set(reasons) == {"headroom 0.5 < largest cost 1", "classification account is short", "classifying"}


def test_the_reason_of_a_base():
    bandit = bandit_for(play.WIDE_GAPS, "thompson")
    decisions = play_live(bandit, play.WIDE_GAPS, 500)
    assert {decision.reason for decision in decisions if decision.situation == "base, pacing"} >= {
        "base 0/1, pacing",
        "base 1/0, pacing",
    }
    for decision in decisions:
        if decision.reason in {"base 0/1, pacing", "base 1/0, pacing"}:
            assert decision.reason.startswith(f"base {decision.arm}/{decision.other}")


def test_the_reason_of_sitting_out_for_a_base():
    assert Decision(3, None, "base, pacing", "expensive").reason == "base expensive, saving up, pacing"


@every_policy
def test_the_reason_without_arms(policy):
    bandit = Bandit(["a", "b"], 1.0, policy)
    bandit.credit(100.0)
    bandit.pause("a")
    bandit.retire("b")
    assert bandit.ask() == Decision(1, None, "no arm is active", propensity=1.0 if policy == "uniform" else None)
    assert bandit.mix() == {None: 1.0}
    assert bandit.price == 0.0
    bandit.resume("a")
    assert bandit.ask().reason != "no arm is active"


# Units.


@every_policy
@pytest.mark.parametrize("times", [100.0, 0.07, 2.0**-70, 2.0**60])
def test_the_currency_does_not_matter(policy, times):
    problem = PROBLEMS["largest costs"]
    plain, other = bandit_for(problem, policy), bandit_for(problem, policy, times)
    decisions = [play_live(plain, problem, 1500), play_live(other, problem, 1500, times)]
    assert [decision[:4] for decision in decisions[0]] == [decision[:4] for decision in decisions[1]]
    assert other.spent == pytest.approx(plain.spent * times)
    assert other.credited == pytest.approx(plain.credited * times)
    assert other.price == pytest.approx(plain.price / times)
    assert other.mix() == pytest.approx(plain.mix())
    for arm, known in other.estimates().items():
        assert known.cost == pytest.approx([amount * times for amount in plain.estimates()[arm].cost])
        assert known.reward == pytest.approx(plain.estimates()[arm].reward)


def test_rewards_have_a_unit_too():
    one, cents = (Bandit(["a", "b"], 0.5, max_reward=most, seed=SEED) for most in (1.0, 128.0))
    for _ in range(300):
        decisions = one.ask(), cents.ask()
        assert decisions[0] == decisions[1]
        if decisions[0].arm is not None:
            number = decisions[0].id
            one.tell(number, bookkeeper.reward_of(number), bookkeeper.cost_of(number))
            cents.tell(number, 128.0 * bookkeeper.reward_of(number), bookkeeper.cost_of(number))
    assert cents.earned == 128.0 * one.earned
    assert cents.price == 128.0 * one.price
    assert cents.estimates()["a"].reward == tuple(128.0 * value for value in one.estimates()["a"].reward)


def test_a_budget_above_the_largest_cost_pays_for_everything():
    bandit = Bandit(["a"], 5.0, "uniform", max_cost=2.0)
    for _ in range(50):
        bandit.tell(bandit.ask().id, 1.0, 2.0)
    assert (bandit.spent, bandit.credited, bandit.estimates()["a"].pulls) == (100.0, 250.0, 50)


# Arms that come and go.


def busy(policy, **settings):
    """Its clock stands still: two of them have lived through the same."""
    largest = {"a": 0.2, "b": 1.0, "c": 0.5}
    bandit = Bandit(["a", "b", "c"], 0.6, policy, largest, seed=SEED, clock=lambda: 0.0, **settings)
    live(bandit, 200)
    for arm in "abc":
        bandit.resume(arm)
    return bandit


@every_policy
def test_a_pause_changes_nothing_that_was_learned(policy):
    bandit = busy(policy)
    before = state_of(bandit)
    for arm in "abc":
        bandit.pause(arm)
    for arm in "cab":
        bandit.resume(arm)
    assert state_of(bandit) == before


@every_policy
def test_news_of_a_paused_arm_is_taken_in_as_if_it_played(policy):
    paused, playing = busy(policy), busy(policy)
    waiting = [number for number in playing.pending if number % 7 > 3] or list(playing.pending)
    assert waiting
    for number in waiting:
        arm = paused.pending[number]
        outcome = bookkeeper.reward_of(number), bookkeeper.cost_of(number)
        paused.pause(arm)
        paused.tell(number, *outcome)
        paused.resume(arm)
        playing.tell(number, *outcome)
    assert state_of(paused) == state_of(playing)


@pytest.mark.parametrize("policy", ["thompson", "suak", "optimistic", POLICIES["ucb-simplex"], "uniform"], ids=str)
def test_what_others_learn_during_a_pause_is_kept(policy):
    paused, playing = busy(policy), busy(policy)
    paused.pause("b")
    for number, arm in playing.pending.items():
        if number % 7 > 3 and arm != "b":
            for bandit in (paused, playing):
                bandit.tell(number, bookkeeper.reward_of(number), bookkeeper.cost_of(number))
    paused.resume("b")
    assert state_of(paused) == state_of(playing)


@every_policy
def test_with_arms_out_of_play_it_decides_as_without_them(policy):
    max_cost = {"x": 0.3, "a": 0.2, "y": 1.0, "b": 1.0, "c": 0.5, "z": 0.1}
    more = Bandit(list(max_cost), 0.4, policy, max_cost, seed=SEED)
    fewer = Bandit(["a", "b", "c"], 0.4, policy, {arm: max_cost[arm] for arm in "abc"}, seed=SEED)
    for arm in "xyz":
        more.pause(arm)
    for _ in range(600):
        decision = fewer.ask()
        assert more.ask() == decision
        for number in [decision.id - 3, decision.id - 1]:
            if number in fewer.pending and number % 7:
                most = max_cost[fewer.pending[number]]  # expensive arms are better: it takes two to make a base
                outcome = bookkeeper.reward_of(number) * most, (0.8 + bookkeeper.cost_of(number)) * most
                fewer.tell(number, *outcome)
                more.tell(number, *outcome)
    estimates = more.estimates()
    assert {arm: estimates[arm] for arm in "abc"} == fewer.estimates()
    assert state_of(more)["record"] == state_of(fewer)["record"]
    assert all(known.tolist() == other.tolist() for known, other in zip(memory_of(more), memory_of(fewer), strict=True))


def memory_of(bandit):
    """What the policy remembers of the arms in play."""
    return bandit._ledger.arm_set.playing.memory


def test_news_of_a_retired_arm_is_taken_in():
    bandit = Bandit(["a", "b"], 1.0, "uniform")
    decision = bandit.ask()
    bandit.retire(decision.arm)
    bandit.tell(decision.id, 0.5, 0.25)
    known = bandit.estimates()[decision.arm]
    assert (known.status, known.pulls, known.reward.mean, known.cost.mean) == ("retired", 1, 0.5, 0.25)
    assert (bandit.spent, bandit.reserved, bandit.earned) == (0.25, 0.0, 0.5)


@every_policy
def test_arms_out_of_play_are_never_pulled(policy):
    bandit = busy(policy)
    bandit.credit(1000.0)
    bandit.add("d", 0.1)
    bandit.retire("a")
    bandit.pause("b")
    pulled = set()
    for _ in range(300):
        decision = bandit.ask()
        pulled.add(decision.arm)
        if decision.arm is not None:
            bandit.tell(decision.id, 0.5, 0.1)
    assert pulled - {None} <= {"c", "d"}
    assert pulled & {"c", "d"}
    assert bandit.arms == {"a": "retired", "b": "paused", "c": "active", "d": "active"}


@every_policy
def test_a_new_arm_leaves_the_others_as_they_were(policy):
    bandit = busy(policy)
    before = state_of(bandit)
    bandit.add("d", 0.1)
    state = state_of(bandit)
    assert state["arms"][:3] == before["arms"]
    assert state["arms"][3]["pulls"] == 0
    assert (state["open"], state["settled"], state["record"]) == (before["open"], before["settled"], before["record"])
    bandit.retire("d")
    assert bandit.estimates() == {**bandit.estimates(), **busy(policy).estimates()}


# What can be seen.


def test_every_amount_along_the_way():
    now = [0.0]
    bandit = Bandit(["a"], 0.5, "uniform", expires=10.0, clock=lambda: now[0])

    def amounts():
        return bandit.credited, bandit.spent, bandit.reserved, bandit.headroom

    assert amounts() == (0.0, 0.0, 0.0, 0.0)
    bandit.credit(4.0)
    assert amounts() == (4.0, 0.0, 0.0, 4.0)
    assert [bandit.ask().arm for _ in range(4)] == ["a"] * 4
    assert amounts() == (6.0, 0.0, 4.0, 2.0)
    assert bandit.pending == {1: "a", 2: "a", 3: "a", 4: "a"}
    bandit.tell(2, cost=0.25)
    assert amounts() == (6.0, 0.25, 3.0, 2.75)
    assert bandit.earned == 0.0
    bandit.tell(2, reward=0.75)
    assert (bandit.earned, list(bandit.pending)) == (0.75, [1, 3, 4])
    bandit.cancel(4)
    assert amounts() == (6.0, 0.25, 2.0, 3.75)
    now[0] = 10.0
    bandit.tell(1, reward=0.5)  # by now both have expired
    assert amounts() == (6.0, 2.25, 0.0, 3.75)
    assert (bandit.expired, list(bandit.pending)) == ([1, 3], [1, 3])
    bandit.tell(3, reward=1.0, cost=0.5)
    assert amounts() == (6.0, 1.75, 0.0, 4.25)
    assert bandit.expired == [1]
    bandit.tell(1, cost=0.0)
    assert amounts() == (6.0, 0.75, 0.0, 5.25)
    assert (bandit.expired, bandit.pending, bandit.earned) == ([], {}, 2.25)


@pytest.mark.parametrize(("silence", "earned"), [(None, 0.0), (0.0, 0.0), (0.5, 0.5)])
def test_silence_may_stand_for_a_reward(silence, earned):
    bandit = Bandit(["a"], 1.0, "uniform", expires=10.0, silence=silence, clock=lambda: now[0])
    now = [0.0]
    bandit.tell(bandit.ask().id, cost=0.25)
    now[0] = 10.5  # a pull is reported at most a cell of time after its window is over
    bandit.ask()
    settled = silence is not None
    assert bandit.estimates()["a"].pulls == settled
    assert bandit.expired == ([] if settled else [1])
    assert (bandit.spent, bandit.earned) == (0.25, earned)


def test_a_credit_over_rounds_comes_in_equal_parts():
    bandit = Bandit(["a"], 0.25)
    bandit.credit(4.0, over=4)
    assert (bandit.credited, bandit.held, bandit.headroom) == (0.0, 4.0, 0.0)
    seen = []
    for _ in range(5):
        bandit.cancel(number) if (number := bandit.ask().id) in bandit.pending else None
        seen.append((bandit.credited, bandit.held))
    assert seen == [(1.25, 3.0), (2.5, 2.0), (3.75, 1.0), (5.0, 0.0), (5.25, 0.0)]


def test_a_second_credit_over_rounds_is_spread_with_the_first():
    bandit = Bandit(["a"], 0.0, max_cost=8.0)
    bandit.credit(4.0, over=4)
    bandit.ask()
    bandit.credit(3.0, over=2)
    seen = []
    for _ in range(4):
        bandit.ask()
        seen.append(bandit.credited)
    assert seen == [3.0, 5.0, 7.0, 7.0]


def test_a_free_arm_needs_no_headroom():
    bandit = Bandit(["free", "expensive"], 0.0, "uniform", {"free": 0.0, "expensive": 1.0}, seed=SEED)
    decisions = [bandit.ask() for _ in range(20)]
    assert {decision.arm for decision in decisions} == {"free", None}
    assert bandit.reserved == 0.0
    for decision in decisions:
        if decision.arm is not None:
            bandit.tell(decision.id, 1.0, 0.0)


def test_an_expired_decision_may_be_cancelled():
    bandit = Bandit(["a"], 1.0, "uniform")
    number = bandit.ask().id
    bandit.expire(number)
    assert (bandit.spent, bandit.reserved) == (1.0, 0.0)
    bandit.cancel(number)
    assert (bandit.spent, bandit.reserved, bandit.pending, bandit.expired) == (0.0, 0.0, {}, [])


def taught(times=1.0, **settings):
    """An arm of reward 0.2 and cost 0.1 and one of reward 0.9 and cost 0.9, at a budget of 0.5."""
    bandit = Bandit(["poor", "rich"], 0.5 * times, "uniform", times, **settings)
    for arm, other, reward, cost in (("poor", "rich", 0.2, 0.1), ("rich", "poor", 0.9, 0.9)):
        bandit.pause(other)
        while (decision := bandit.ask()).arm is None:
            pass
        assert decision.arm == arm
        bandit.tell(decision.id, reward, cost * times)
        bandit.resume(other)
    return bandit


@pytest.mark.parametrize("times", [1.0, 100.0])
def test_mix_and_price(times):
    bandit = taught(times)
    assert bandit.mix() == pytest.approx({"rich": 0.5, "poor": 0.5})  # 0.5 * 0.9 + 0.5 * 0.1 = 0.5
    assert bandit.price == pytest.approx((0.9 - 0.2) / (0.9 - 0.1) / times)
    bandit.pause("poor")
    assert bandit.mix() == pytest.approx({"rich": 5 / 9, None: 4 / 9})
    assert bandit.price == pytest.approx(1 / times)


def test_mix_with_credits_goes_by_the_income_so_far():
    bandit = taught()
    rounds = bandit.rounds
    bandit.credit(0.4 * (rounds + 1))
    bandit.ask()
    assert bandit.mix()["rich"] == pytest.approx(1.0)  # 0.9 a round, less what rounding takes


def test_nothing_is_known_at_first():
    bandit = Bandit(["a"], 0.5, max_cost=3.0, max_reward=2.0)
    assert bandit.mix() == {None: 1.0}
    assert bandit.price == 0.0
    known = bandit.estimates()["a"]
    assert (known.pulls, known.reward, known.cost) == (0, (0.0, 0.0, 2.0), (0.0, 0.0, 3.0))
    assert repr(bandit) == "<Bandit a: 0 rounds, spent 0 of 0>"


# Intervals.


def test_intervals_are_those_of_the_formula():
    chance = Random(3)
    bandit = Bandit(["a", "b"], 2.0, "uniform", {"a": 2.0, "b": 0.5}, max_reward=7.0)
    told = {"a": [], "b": []}
    for count in range(3000):
        decision = bandit.ask()
        most = {"a": 2.0, "b": 0.5}[decision.arm]
        told[decision.arm].append((7.0 * chance.random() ** 3, most * chance.betavariate(9, 1)))
        bandit.tell(decision.id, *told[decision.arm][-1])
        if count in (10, 100, 2999):
            for arm, outcomes in told.items():
                rewards, costs = zip(*outcomes, strict=True)
                known = bandit.estimates()[arm]
                assert known.pulls == len(outcomes)
                assert known.reward == pytest.approx(naive_interval(rewards, 7.0))
                mean, low, high = naive_interval(costs, 2.0)
                assert known.cost == pytest.approx((mean, low, min(high, {"a": 2.0, "b": 0.5}[arm])))
    assert known.reward.high - known.reward.low < 1.5  # of 7: by now they say something


def test_a_mean_lies_in_its_interval():
    max_cost = {"a": 0.2, "b": 0.7}
    bandit = Bandit(["a", "b"], 0.7, "uniform", max_cost, max_reward=0.1)
    for _ in range(200):
        decision = bandit.ask()
        if decision.arm is not None:
            bandit.tell(decision.id, 0.1, max_cost[decision.arm])
        for known in bandit.estimates().values():
            assert known.cost.low <= known.cost.mean <= known.cost.high
            assert known.reward.low <= known.reward.mean <= known.reward.high


def test_intervals_hold_the_truth_at_all_times():
    runs, failed = 200, 0
    for seed in range(runs):
        chance = Random(seed)
        bandit = Bandit(["a"], 1.0, "uniform")
        holds = True
        for _ in range(200):
            bandit.tell(bandit.ask().id, float(chance.random() < 0.5), chance.betavariate(2, 6))
            reward, cost = bandit.estimates()["a"][2:]
            holds = holds and reward.low <= 0.5 <= reward.high and cost.low <= 0.25 <= cost.high
            assert reward.low <= reward.mean <= reward.high
        failed += not holds
        assert reward.high - reward.low < 0.75
    assert failed <= 0.05 * runs


@pytest.mark.parametrize("mean", [0.002, 0.05, 0.5])
def test_intervals_hold_for_rare_and_for_varied_outcomes_whenever_one_looks(mean):
    looks, runs, failed = np.unique(np.geomspace(1, 4000, 40).astype(int)), 300, 0
    draws = np.random.default_rng(5)
    for varied in (False, True) * (runs // 2):
        outcomes = draws.beta(2 * mean, 2 - 2 * mean, 4000) if varied else (draws.random(4000) < mean).astype(float)
        sums, squares = outcomes.cumsum(), (outcomes * outcomes).cumsum()
        bounds = [interval(Known(float(n), sums[n - 1], squares[n - 1]), 1.0) for n in looks]
        failed += not all(low <= mean <= high for _, low, high in bounds)
    assert failed <= 0.05 * runs
    assert failed > 0 or mean < 0.5  # not so wide that nothing could go wrong


def test_silence_counts_whichever_comes_first_cost_or_expiry():
    for cost_first in (True, False):
        now = [0.0]
        bandit = Bandit(["a"], 1.0, expires=1.0, silence=0.0, clock=lambda now=now: now[0])
        number = bandit.ask().id
        if cost_first:
            bandit.tell(number, cost=0.25)
        now[0] = 2.0
        bandit.ask()
        if not cost_first:
            bandit.tell(number, cost=0.25)
        assert number not in bandit.pending
        assert bandit.estimates()["a"].pulls == 1


def test_rounds_end_before_the_line_cannot_be_counted():
    bandit = Bandit(["a"], 1.0, "uniform")
    bandit.credit(2.0**29)
    most = bandit._ledger.next_roll
    assert (most + 1) * 2**32 + 2**61 < 2**63


@pytest.mark.parametrize("options", [{}, {"expires": 60.0}, {"worker": "web"}])
def test_the_garbage_collector_has_no_work_with_decisions_that_wait(options):
    bandit = Bandit(["a", "b"], start=200.0, rounds=200, **options)
    told = [bandit.ask().id for _ in range(100)]
    bandit.tell(told[0], cost=0.5)  # what is told in part is rare, and looked at
    for _ in range(2):  # what a tuple holds first
        gc.collect()
    tracked = [number for number, pull in bandit._ledger.pending.items() if gc.is_tracked(pull)]
    assert tracked == [1]


def test_a_worker_does_not_count_its_own_report_twice(tmp_path):
    workers = [Bandit(["a"], 1.0, worker=f"w{number}", journal=tmp_path / f"{number}") for number in range(2)]
    for worker in workers:
        worker.observe("a", 0.5, 0.5)
    reports = {f"w{number}": worker.report() for number, worker in enumerate(workers)}
    for worker in workers:
        for _ in range(2):
            worker.merge(reports)
            assert worker.estimates()["a"].pulls == 2
            assert worker.report()["arms"]["a"]["pulls"] == 1
        worker.close()
    with Bandit.open(tmp_path / "0") as reopened:
        assert reopened.estimates()["a"].pulls == 2


def test_an_arm_is_added_after_a_policy_that_cannot_merge_was_set_beside_reports():
    class Still(PythonPolicy):
        def choose(self, state):
            return 0

    others = Bandit(["a", "b"], 1.0)
    others.observe("a", 0.5, 0.5)
    bandit = Bandit(["a", "b"], 1.0)
    bandit.merge({"other": others.report()})
    bandit.set(policy=Still())
    bandit.add("c", 0.5)
    assert [*bandit.arms] == ["a", "b", "c"]
    assert bandit.ask().arm == "a"


@every_policy
def test_an_arm_that_leaves_takes_along_what_it_has_taught(policy):
    bandit, twin = (Bandit(list("abcd"), 1.0, policy, start=10.0, rounds=1000) for _ in range(2))

    def play(rounds):
        for number in range(rounds):
            decision = bandit.ask()
            assert twin.ask() == decision
            if decision.arm is not None:
                for each in (bandit, twin):
                    each.tell(decision.id, number % 3 / 2.0, number % 5 / 4.0)

    def known(to):
        books = state_of(to)
        arms = [{name: entry for name, entry in arm.items() if name != "status"} for arm in books["arms"]]
        return arms, books["memory"]

    play(40)
    for call, arm in (("pause", "b"), ("pause", "c"), ("retire", "a"), ("resume", "c")):
        before = known(twin)  # looking brings all together, so the other is not looked at
        for each in (bandit, twin):
            getattr(each, call)(arm)
        assert known(bandit) == before
        play(20)


def test_ids_that_are_not_at_hand_any_more_are_read_off(monkeypatch):
    monkeypatch.setattr(ledger, "MOST_NUMBERS", 50)
    bandit = Bandit(["a"], budget=1.0, worker="web-1")
    ids = [bandit.ask().id for _ in range(300)]
    assert len(bandit._ledger.numbers) < 150
    bandit.tell(ids[0], reward=0.5, cost=0.25)
    assert bandit.spent == 0.25

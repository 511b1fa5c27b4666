"""Parts of an outcome, each learned when it is known: the estimates against lists, live against simulated, no harm."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import paceline as pl
from paceline.calls import part_calls_for
from paceline.kernels import estimates
from paceline.kernels.jit import plain_throughout
from paceline.kernels.state import new_storage, state_in
from paceline.meanwhile import LivePartCalls, part_calls_in_python
from paceline.policies import make_policy
from paceline.policies.policy import Setting

ARMS, RESOURCES = 2, 2
observe, observe_part, observe_rest, known_rewards, known_costs, reward_variance, cost_variance = (
    plain_throughout(getattr(estimates, name))
    for name in (
        "observe",
        "observe_part",
        "observe_rest",
        "known_rewards",
        "known_costs",
        "reward_variance",
        "cost_variance",
    )
)


class Lists:
    """What is known of the arms, as lists: of pulls of which all is known, and of what is known of the others."""

    def __init__(self):
        self.whole = [[] for _ in range(ARMS)]  # (reward, cost, cost)
        self.open = {}  # by the number of the pull: the arm, and a list with None for what is not known

    def tell(self, number, arm, outcome, sides):
        """Says what was known before, and whether all of it is known now."""
        _, known = self.open.setdefault(number, (arm, [None] * (1 + RESOURCES)))
        before = [value is not None for value in known]
        for side in sides:
            known[side] = outcome[side]
        if None not in known:
            self.whole[arm].append(tuple(known))
            del self.open[number]
        return before, None not in known

    def values(self, arm, side):
        """All that is known of the rewards (side 0) or of a cost, in no order."""
        ahead = [known[side] for other, known in self.open.values() if other == arm and known[side] is not None]
        return [outcome[side] for outcome in self.whole[arm]] + ahead


def assert_as_in_lists(arms, lists):
    for arm in range(ARMS):
        whole = lists.whole[arm]
        assert arms.pulls[arm] == len(whole)
        assert arms.width[arm] == (1 / math.sqrt(len(whole)) if whole else math.inf)
        # To the bit: nothing that was ahead leaves a trace in these sums.
        assert arms.reward_sum[arm] == sum((outcome[0] for outcome in whole), 0.0)
        assert arms.cost_squares[arm].tolist() == [
            sum((o[1 + d] * o[1 + d] for o in whole), 0.0) for d in range(RESOURCES)
        ]
        sides = [(known_rewards(arms, arm), arms.reward_mean[arm], reward_variance(arms, arm))]
        sides += [
            (known_costs(arms, arm, d), arms.cost_mean[arm, d], cost_variance(arms, arm, d)) for d in range(RESOURCES)
        ]
        for side, (known, mean, variance) in enumerate(sides):
            values = lists.values(arm, side)
            assert known.number == len(values)
            assert known.total == pytest.approx(sum(values), abs=1e-12)
            assert known.squares == pytest.approx(sum(value * value for value in values), abs=1e-12)
            assert mean == pytest.approx(np.mean(values) if values else 0.0, abs=1e-12)
            assert variance == pytest.approx(np.var(values) if values else 0.0, abs=1e-12)


ORDERS = [[(0, 1, 2)], [(0,), (1, 2)], [(1, 2), (0,)], [(2,), (0, 1)], [(1,), (0,), (2,)], [(0, 2)], [(1,)]]
amounts = st.floats(0, 1)
pulls = st.tuples(
    st.integers(0, ARMS - 1),
    st.tuples(amounts, amounts, amounts),
    st.sampled_from(ORDERS),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(pulls, max_size=12), st.randoms(use_true_random=False))
def test_estimates_are_those_of_lists_whatever_the_order_of_the_news(made, chance):
    arms = state_in(new_storage(ARMS, RESOURCES, pl.Uniform().new_memory(ARMS, RESOURCES), pl.Uniform.record)).arms
    resources, lists = tuple(range(RESOURCES)), Lists()
    waiting = [(number, arm, outcome, list(parts)) for number, (arm, outcome, parts) in enumerate(made)]
    while waiting:
        pull = chance.choice(waiting)
        number, arm, outcome, parts = pull
        sides = parts.pop(0)
        if not parts:
            waiting.remove(pull)
        before, is_whole = lists.tell(number, arm, outcome, sides)
        reward, *costs = (value if side in sides else math.nan for side, value in enumerate(outcome))
        if is_whole:
            ahead = sum(1 << side for side, known in enumerate(before) if known)
            if ahead:
                observe_rest(arms, resources, arm, outcome[0], outcome[1:], ahead)
            else:
                observe(arms, resources, arm, outcome[0], outcome[1:])
        else:
            observe_part(arms, resources, arm, reward, costs)
        assert_as_in_lists(arms, lists)


# The engine.


def played_in_parts(name, calls, resources):
    """All bits of a storage after outcomes that came whole, in parts, and not at all."""
    policy, chance = make_policy(name), np.random.default_rng(5)
    setting = Setting(3, (0.5, 0.4)[:resources], rounds=1000)
    params, storage = policy.params(setting), policy.new_storage(setting, 3, 0)
    for turn in range(60):
        arm, outcome, kind = turn % 3, chance.random(1 + resources).tolist(), turn % 4
        state_in(storage).pending[arm] += 1
        storage.clock["t"] = turn + 1
        reward, costs, none = outcome[0], tuple(outcome[1:]), (0,) * resources
        unknown, part, ahead = (math.nan,) * resources, (math.nan, costs), (2 << resources) - 2
        if kind == 1:
            part, ahead = (reward, unknown), 1
        calls.tell_part(params, storage, arm, *part, none, none)
        if kind != 3:
            calls.tell_rest(params, storage, arm, 1, arm, reward, costs, none, none, ahead)
    return [block.tobytes() for block in (storage.numbers, storage.costs, storage.counts, *storage.memory)]


@pytest.mark.parametrize("resources", [1, 2])
@pytest.mark.parametrize("name", ["index", "thompson"])
def test_parts_teach_the_same_bits_in_plain_python(name, resources):
    compiled = part_calls_for(make_policy(name), resources)
    assert played_in_parts(name, part_calls_in_python(type(make_policy(name))), resources) == played_in_parts(
        name, compiled, resources
    )


# Live.


def bandit_told_costs(**settings):
    """A bandit that knows what its arms cost, and of no arm what it earns."""
    bandit = pl.Bandit(["cheap", "dear"], 0.5, **settings)
    for number in range(1, 21):
        decision = bandit.ask()
        if decision.arm is not None:
            bandit.tell(number, cost=cost_of(number, decision.arm))
    return bandit


def cost_of(number, arm):
    """No two are alike: one that counted twice would move the mean."""
    return {"cheap": 0.125, "dear": 0.5}[arm] + number / 128


def test_a_cost_is_learned_before_its_reward():
    bandit = bandit_told_costs(seed=3)
    known = bandit.estimates()
    for arm in ("cheap", "dear"):
        told = [cost_of(number, arm) for number, pulled in bandit.pending.items() if pulled == arm]
        assert known[arm].cost.mean == pytest.approx(np.mean(told))
    assert known["cheap"].pulls == known["dear"].pulls == 0
    assert known["cheap"].reward == (0.0, 0.0, 1.0)


@pytest.mark.parametrize("silence", [None, 0.0])
def test_what_a_pull_that_expires_has_cost_stays_learned(silence):
    """And is counted once, also when the reward comes after all, or silence stands for it, or the pull is forgotten."""
    bandit = bandit_told_costs(seed=3, remember=2, silence=silence)
    before = bandit.estimates()
    pulled = [number for number in range(1, 21) if number in bandit._ledger.pending]
    for number in pulled:
        bandit.expire(number)
    if silence is None:
        bandit.tell(pulled[-1], reward=0.5)
    after = bandit.estimates()
    assert sum(arm.pulls for arm in after.values()) == (1 if silence is None else len(pulled))
    for name, arm in after.items():
        assert arm.cost == pytest.approx(before[name].cost)


def test_parts_of_an_arm_that_is_not_in_play_are_learned_too():
    bandits = [pl.Bandit(["a", "b", "c"], 0.9, seed=4) for _ in range(2)]
    for bandit, is_away in zip(bandits, (False, True), strict=True):
        decisions = [bandit.ask() for _ in range(8)]
        for how in ("pause", "resume"):
            for name in "ac" if is_away else "":
                getattr(bandit, how)(name)
            for decision in decisions:
                if decision.arm is not None:
                    news = {"cost": decision.id / 16} if how == "pause" else {"reward": 0.5}
                    bandit.tell(decision.id, **news)
    assert bandits[0].estimates() == bandits[1].estimates()
    for arm, known in bandits[1].estimates().items():
        told = [decision.id / 16 for decision in decisions if decision.arm == arm]
        assert (known.pulls, known.cost.mean) == (len(told), pytest.approx(np.mean(told) if told else 0.0))


def test_a_bandit_saved_between_the_parts_goes_on_the_same(tmp_path):
    bandit = bandit_told_costs(seed=3)
    bandit.save(tmp_path / "bandit.json")
    loaded = pl.Bandit.load(tmp_path / "bandit.json")
    for number in range(21, 200):
        decisions = bandit.ask(), loaded.ask()
        assert decisions[0] == decisions[1]
        for each in (bandit, loaded):
            if decisions[0].arm is not None:
                each.tell(number, cost=0.5)
            if number - 20 in each._ledger.pending:
                each.tell(number - 20, reward=0.25)
    assert bandit.estimates() == loaded.estimates()


def test_a_bandit_on_a_new_machine_takes_parts_in_plain_python(monkeypatch):
    monkeypatch.setattr("paceline.meanwhile.part_calls_on_disk", lambda policy, resources: False)
    monkeypatch.setattr("paceline.meanwhile._ready", {})
    bandit = bandit_told_costs(seed=3)
    assert isinstance(bandit._ledger.arm_set.usual_part_calls, LivePartCalls)
    monkeypatch.undo()
    assert bandit.estimates() == bandit_told_costs(seed=3).estimates()


# What a policy makes of it.


class Costs(pl.PythonPolicy):
    """Notes what it sees of the costs before any reward is known."""

    def reset(self, setting):
        self.seen = 0.0

    def choose(self, state):
        self.seen = max(self.seen, float(state.arms.cost_mean.max()))
        assert state.arms.pulls.sum() == 0
        return state.clock.t % state.pending.size


def test_a_python_policy_sees_costs_before_rewards():
    bandit = pl.Bandit(["a", "b"], 0.5, Costs())
    for number in range(1, 9):
        if bandit.ask().arm is not None:
            bandit.tell(number, cost=0.25)
    assert bandit._ledger.arm_set.params.policy.seen == 0.25


@pytest.mark.parametrize("policy", ["index", "thompson"])
def test_with_costs_alone_the_guard_is_seldom_met(policy):
    """Nothing is known of the rewards: every arm is tried, and money lasts."""
    run = pl.simulate(pl.paper.eight_arms(), policy, rounds=2000, trials=4, seed=8, delay={"reward": 5000})[policy]
    assert (run.totals.idle[:, -1] < 20).all()
    assert (run.totals.pulls[:, -1] > 50).all()


def test_news_of_both_kinds_is_told_in_the_order_in_which_it_comes():
    """A policy that steers by costs alone does the same however late its rewards are."""
    three, at_once = pl.paper.three_arms(), {"rounds": 500, "trials": 1, "seed": 8}
    plain = pl.simulate(three, Thrifty(), **at_once)["Thrifty"]
    late = pl.simulate(three, Thrifty(), **at_once, delay={"reward": 40})["Thrifty"]
    assert late.pulls.tolist() == plain.pulls.tolist()
    assert late.pulls.min() >= 10


class Thrifty(pl.PythonPolicy):
    """The arm with the smallest mean cost, each of them ten times first."""

    def choose(self, state):
        arms = state.arms
        few = np.flatnonzero(arms.cost_known[0, :, 0] < 10)
        return int(few[0]) if few.size else int(arms.cost_mean[:, 0].argmin())

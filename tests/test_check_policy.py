"""`check_policy` passes what is right and names what is wrong: planted mistakes, each with its own line."""

import random
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
from lanes import named_in_lanes

import paceline as pl
from paceline.policies import POLICIES, Decision, learn_nothing

pytestmark = pytest.mark.slow

PROBLEM = pl.Problem.beta([0.45, 0.7, 0.8], [0.3, 0.75, 0.8], budget=0.5)
COUNTED = {"calls": 0}


class Params(NamedTuple):
    share: float


class Memory(NamedTuple):
    seen: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Base(pl.Policy):
    name = "mine"
    reasons = ("headroom below the largest cost", "chosen")
    learn = staticmethod(learn_nothing)

    def params(self, setting):
        return Params(0.5)

    def new_memory(self, arms, resources):
        return Memory(np.zeros(arms))


def helper():
    return random.random()


def beyond_the_last_arm(params, state):
    return Decision(7, 1, 0)


def no_such_reason(params, state):
    return Decision(1, 5, 0)


def bare_tuple(params, state):
    return (1, 1, 0)


def answer_of_a_bandit(params, state):
    return pl.Decision(1, 1, 0)


def float_arm(params, state):
    return Decision(params.share * 2, 1, 0)


def no_such_field(params, state):
    return Decision(int(state.budget), 1, 0)


def draws_from_numpy(params, state):
    return Decision(int(np.random.random() * 3), 1, 0)  # noqa: NPY002


def draws_in_a_helper(params, state):
    return Decision(int(helper() * 3), 1, 0)


def writes_to_memory(params, state):
    state.memory.seen[0] += 1.0
    return Decision(int(state.memory.seen[0]) % 3, 1, 0)


def writes_to_the_headroom(params, state):
    state.headroom[0] = 0.0
    return Decision(0, 1, 0)


def out_of_bounds(params, state):
    return Decision(0 if state.memory.seen[state.clock.t] < 1.0 else 1, 1, 0)


def leans_on_scratch(params, state):
    state.scratch.rewards[0] += 1.0
    return Decision(0 if state.scratch.rewards[0] > 5.0 else 1, 1, 0)


def one_argument(params):
    return Decision(0, 1, 0)


MISTAKES = {
    beyond_the_last_arm: "must choose an arm from -1 (skip) to 3 (null arm), got 7",
    no_such_reason: "must choose a reason from 1 to 1, got 5",
    bare_tuple: "must return Decision(arm, reason, tag) of whole numbers",
    answer_of_a_bandit: "headroom, largest_cost, resource, propensity: take that of",
    float_arm: "must return Decision(arm, reason, tag) of whole numbers, got Decision(float64",
    no_such_field: "must compile, but: Unknown attribute 'budget' of type State",
    draws_from_numpy: "got a draw from np.random.random",
    draws_in_a_helper: "got a draw from random.random",
    writes_to_memory: "must change nothing but state.scratch, got changes in memory",
    writes_to_the_headroom: "must change nothing but state.scratch, got changes in headroom",
    out_of_bounds: "must stay within its arrays",
    leans_on_scratch: "without what an earlier round left in state.scratch",
    one_argument: "must take 2 arguments",
}
AT_ONCE = [*list(MISTAKES)[:8], one_argument]  # those that `simulate` and `Bandit` notice, too


def policy_with(choose):
    return dataclass(frozen=True, kw_only=True)(
        type("Mine", (Base,), {"choose": staticmethod(choose), "__annotations__": {}})
    )()


@pytest.mark.parametrize("choose", MISTAKES, ids=lambda function: function.__name__)
def test_each_mistake_has_its_line(choose):
    with pytest.raises(pl.InvalidPolicy) as refused:
        pl.testing.check_policy(policy_with(choose), PROBLEM)
    lines = str(refused.value).splitlines()
    assert any(MISTAKES[choose] in line and line.startswith("Mine") for line in lines), lines


class OwnOracle(Base):
    """Told the truth, which nobody has live."""

    told_truth = True
    choose = staticmethod(lambda params, state: Decision(params.best, 1, 0))

    def params(self, setting):
        return Best(int(np.argmax(setting.problem.reward_means)))


class Best(NamedTuple):
    best: int


def test_an_oracle_of_the_users_own_need_not_play_live():
    pl.testing.check_policy(OwnOracle(), PROBLEM)


@pytest.mark.parametrize("choose", AT_ONCE, ids=lambda function: function.__name__)
def test_simulate_and_bandit_give_the_same_line(choose):
    with pytest.raises(pl.InvalidPolicy) as simulated:
        pl.simulate(PROBLEM, policy_with(choose), rounds=100, trials=1)
    with pytest.raises(pl.InvalidPolicy) as live:
        ask_ten_times(policy_with(choose))
    for refused in (simulated, live):
        assert MISTAKES[choose] in str(refused.value)
        assert len(str(refused.value).splitlines()) == 1


def ask_ten_times(policy):
    bandit = pl.Bandit(["a", "b", "c"], 0.5, policy)
    for _ in range(10):
        bandit.ask()


class Unseeded(pl.PythonPolicy):
    def reset(self, setting):
        self.random = np.random.default_rng()

    def choose(self, state):
        return int(self.random.integers(3))


class Global(pl.PythonPolicy):
    def choose(self, state):
        COUNTED["calls"] += 1
        return COUNTED["calls"] // 7 % 3


class NotAnArm(pl.PythonPolicy):
    def choose(self, state):
        return 1.0


class Draws(pl.PythonPolicy):
    def choose(self, state):
        return random.randrange(3)


@pytest.mark.parametrize(
    ("policy", "line"),
    [
        (Unseeded(), "is there hidden randomness?"),
        (Global(), "is there hidden randomness?"),
        (NotAnArm(), "must give an arm from 0 to 2, or None, got 1.0"),
        (Draws(), "got a draw from random.randrange"),
    ],
    ids=["unseeded", "global", "not an arm", "draws"],
)
def test_each_mistake_in_plain_python_has_its_line(policy, line):
    with pytest.raises(pl.InvalidPolicy) as refused:
        pl.testing.check_policy(policy, PROBLEM)
    assert line in str(refused.value)


@pytest.mark.parametrize("name", named_in_lanes(POLICIES))
def test_our_own_policies_pass(name):
    pl.testing.check_policy(name)


def allocating(params, state):
    order = np.argsort(-state.arms.reward_mean / np.maximum(state.arms.cost_mean[:, 0], 0.01))
    weights = np.linalg.solve(np.eye(3) + 1.0, np.ones(3))
    return Decision(int(order[int(weights.sum() + state.clock.t) % 3]), 1, 0)


def test_a_compiled_policy_may_allocate_and_does_not_leak():
    import resource

    policy = policy_with(allocating)
    pl.simulate(PROBLEM, policy, rounds=200_000, trials=1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    pl.simulate(PROBLEM, policy, rounds=2_000_000, trials=1)
    assert (
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000
    )  # kB; a leak of 16 bytes a round is more


def test_it_says_what_it_does_if_asked(capsys):
    pl.testing.check_policy("uniform", PROBLEM)
    assert capsys.readouterr() == ("", "")
    pl.testing.check_policy("uniform", PROBLEM, progress=True)
    assert capsys.readouterr() == ("", "uniform: 3 arms, 1 resource, compiled first if it is new ...\n")

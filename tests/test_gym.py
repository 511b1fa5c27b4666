"""The gymnasium environment: its own checker is content, and an agent plays the very trials of the simulator."""

import subprocess
import sys

import gymnasium
import naive
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st
from play import EVERY_KIND, SEVERAL, THREE_ARMS

import paceline as pl

PROBLEMS = {"three arms": THREE_ARMS, "every kind": EVERY_KIND, "several": SEVERAL}


class Tides(pl.PythonWorld):
    """A world in plain Python with two resources, of which one is refilled."""

    arms, budget, start, cap, refills = 2, {"money": 0.4, "water": 0.1}, {"water": 1.5}, {"water": 2.0}, True

    def reset(self, seed, stream):
        self.draws = np.random.default_rng([seed, stream])

    def outcome(self, t, arm, count):
        return float(self.draws.random()), {"money": 0.3 + 0.5 * arm, "water": 0.9 - 1.2 * (t % 3 == 0)}


def greedy(seen, arms):
    """Untried arms first, then the best ratio of reward to cost; nothing while the first resource is short."""
    untried = np.flatnonzero(seen["pulls"] == 0)
    if untried.size:
        return int(untried[0])
    if seen["headroom"][0] < 1.25:
        return arms
    ratio = (0.01 + seen["reward_sum"]) / (0.01 + np.abs(seen["cost_sum"]).sum(axis=1))
    return int(ratio.argmax())


class Greedy(pl.PythonPolicy):
    """The same as a policy: what it looks at has other names."""

    def reset(self, setting):
        self.arms = setting.arms

    def choose(self, state):
        seen = {"pulls": state.arms.pulls, "headroom": state.headroom}
        seen |= {"reward_sum": state.arms.reward_sum, "cost_sum": state.arms.cost_sum}
        arm = greedy(seen, self.arms)
        return None if arm == self.arms else arm


def episode(env, agent, **start):
    """Every step of an episode: arms, rewards, costs, and the headroom seen before each."""
    seen, _ = env.reset(**start)
    rows, over = [], False
    while not over:
        assert seen in env.observation_space
        before = seen["headroom"]
        seen, reward, terminated, over, info = env.step(agent(seen))
        assert not terminated
        rows.append((info["arm"], reward, *np.atleast_1d(in_order(info["cost"])), *before))
    return np.array(rows)


def in_order(cost):
    return list(cost.values()) if isinstance(cost, dict) else cost


def simulated(problem, policy, rounds, trial, seed):
    """The same of a trial of the simulator."""
    run = pl.simulate(problem, policy, rounds=rounds, trials=trial + 1, seed=seed, record="all")
    history = next(iter(run.values())).history()
    amounts = [np.atleast_2d(amount[trial].T).T for amount in (history.cost, history.available)]
    amounts = [amount.reshape(rounds, -1) for amount in amounts]
    return np.column_stack([history.arm[trial], history.reward[trial], *amounts])


@pytest.mark.parametrize("problem", [*PROBLEMS.values(), Tides()], ids=[*PROBLEMS, "in Python"])
def test_gymnasium_has_nothing_to_say_against_it(problem):
    pl.gym.register()
    check_env(gymnasium.make(pl.gym.ID, problem=problem, rounds=40).unwrapped)  # a warning would be an error


@pytest.mark.parametrize("problem", [*PROBLEMS.values(), Tides()], ids=[*PROBLEMS, "in Python"])
def test_greedy_agent_plays_the_trial_of_the_greedy_policy(problem):
    env = pl.gym.BudgetEnv(problem, rounds=300)
    for trial in range(2):  # a reset without a seed goes on to the next trial
        start = {"seed": 11} if trial == 0 else {}
        played = episode(env, lambda seen: greedy(seen, env.problem.arms), **start)
        assert played.tobytes() == simulated(problem, Greedy(), 300, trial, 11).astype(float).tobytes()


@settings(max_examples=20)
@given(seed=st.integers(0, 2**64 - 1), stream=st.integers(0, 3), name=st.sampled_from(sorted(PROBLEMS)))
def test_uniform_agent_plays_the_trial_of_the_compiled_policy(seed, stream, name):
    problem = PROBLEMS[name]
    env = pl.gym.BudgetEnv(problem, rounds=60)
    key = np.uint64(seed), np.uint64(stream)

    def any_arm(seen):
        return int(naive.decision_uniform(*key, int(seen["round"][0])) * problem.arms)

    played = episode(env, any_arm, seed=seed, options={"stream": stream})
    assert played.tobytes() == simulated(problem, "uniform", 60, stream, seed).astype(float).tobytes()


def test_what_is_shown_is_a_copy():
    env = pl.gym.BudgetEnv(THREE_ARMS, rounds=30)
    seen, _ = env.reset(seed=1)
    for array in seen.values():
        array[...] = 99
    after, *_ = env.step(0)
    other = pl.gym.BudgetEnv(THREE_ARMS, rounds=30)
    other.reset(seed=1)
    expected, *_ = other.step(0)
    assert {name: array.tolist() for name, array in after.items()} == {
        name: array.tolist() for name, array in expected.items()
    }


def test_guard_refuses_and_says_so():
    env = pl.gym.BudgetEnv(THREE_ARMS, rounds=5)
    env.reset()
    _, reward, _, _, info = env.step(2)
    assert (reward, info) == (0.0, {"arm": -1, "reason": "headroom below the largest cost", "cost": 0.0})
    _, _, _, _, info = env.step(3)
    assert (info["arm"], info["reason"]) == (3, "chosen")


def test_an_episode_ends_and_has_to_be_begun_anew():
    env = pl.gym.BudgetEnv(THREE_ARMS, rounds=3)
    with pytest.raises(gymnasium.error.ResetNeeded, match="an episode has 3 rounds and begins with reset"):
        env.step(0)
    env.reset()
    assert [env.step(3)[3] for _ in range(3)] == [False, False, True]
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda env: env.step(4), "action must be a whole number from 0 to 3, got 4"),
        (lambda env: env.step(1.0), "action must be a whole number from 0 to 3, got 1.0"),
        (lambda env: env.reset(seed=-1), "seed must be a whole number from 0 to"),
        (lambda env: env.reset(seed=5, options={"stream": -1}), "stream must be a whole number from 0 to"),
        (lambda _: pl.gym.BudgetEnv("three-arms"), "problem must be a Problem or a PythonWorld, got 'three-arms'"),
        (lambda _: pl.gym.BudgetEnv(THREE_ARMS, rounds=0), "rounds must be a whole number from 1 to"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(call, message):
    env, other = (pl.gym.BudgetEnv(THREE_ARMS, rounds=10) for _ in range(2))
    for each in (env, other):
        each.reset(seed=3)
    with pytest.raises(pl.InvalidValue) as caught:
        call(env)
    assert message in str(caught.value)
    assert (env.seed, env.stream) == (3, 0)
    assert str([env.step(0) for _ in range(4)]) == str([other.step(0) for _ in range(4)])


def test_actions_of_numpy_are_actions():
    env = pl.gym.BudgetEnv(THREE_ARMS, rounds=10)
    env.reset()
    for action in (np.int64(3), np.array(3), env.action_space.sample()):
        env.step(action)
    assert env.round.number == 4


def test_without_gymnasium_one_line_says_what_to_install():
    code = """
import sys
sys.modules["gymnasium"] = None
from paceline import *
import paceline as pl
try:
    pl.gym.BudgetEnv
except pl.PacelineError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.stderr) == ('pl.gym needs gymnasium: pip install "paceline[gym]"\n', "")

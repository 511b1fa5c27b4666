"""What every policy must do. A policy is covered by being listed in POLICIES."""

import copy
import itertools
import pickle
from fractions import Fraction
from functools import cache

import numpy as np
import play
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from paceline.engine import engine_for
from paceline.errors import UnknownParameter
from paceline.kernels.budget import lowest_headroom, open_round, spent
from paceline.kernels.jit import kernel
from paceline.policies import POLICIES, make_policy
from paceline.policies.policy import GUARD, SKIP
from paceline.problems.distributions import Constant
from paceline.problems.problem import Problem

PROBLEMS = {"wide gaps": play.WIDE_GAPS, "every kind": play.EVERY_KIND, "paper, 8 arms": play.EIGHT_ARMS}
ROUNDS = 2000
LATE = 10_000  # by then SUAK and Primal Dual are in their second phase on the problem with wide gaps

every_policy = pytest.mark.parametrize("name", POLICIES)
copies = pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda state: pickle.loads(pickle.dumps(state))], ids=["copied", "pickled"]
)
every_problem = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)


@cache
def late_state(name):
    """The state of a policy in its last phase; not to be changed."""
    game = play.begin(make_policy(name), play.WIDE_GAPS)
    play.simulate(game, LATE)
    return game.state


def resumed(name):
    """A game that goes on from the late state."""
    return play.begin(make_policy(name), play.WIDE_GAPS)._replace(state=copy.deepcopy(late_state(name)))


def test_late_is_late_enough():
    assert 0 < late_state("suak").memory.classified_at < LATE
    assert 0 < late_state("primal-dual").memory.identified_at < LATE


# One text for every use.


@every_policy
@every_problem
def test_simulation_equals_asking_and_telling(name, problem):
    by_hand, at_once = play.begin(make_policy(name), problem), play.begin(make_policy(name), problem)
    play.ask_and_tell(by_hand, ROUNDS)
    play.simulate(at_once, ROUNDS)
    assert play.contents(by_hand.state) == play.contents(at_once.state)


@every_policy
def test_simulation_equals_asking_and_telling_late(name):
    by_hand, at_once = resumed(name), resumed(name)
    play.ask_and_tell(by_hand, ROUNDS)
    play.simulate(at_once, LATE + ROUNDS)
    assert play.contents(by_hand.state) == play.contents(at_once.state)


@every_policy
@every_problem
@copies
def test_a_run_may_be_cut_in_half(name, problem, duplicate):
    whole, halves = play.begin(make_policy(name), problem), play.begin(make_policy(name), problem)
    play.simulate(whole, ROUNDS)
    play.simulate(halves, ROUNDS // 2)
    second = halves._replace(state=duplicate(halves.state))
    play.simulate(second, ROUNDS)
    assert play.contents(second.state) == play.contents(whole.state)
    assert halves.state.clock.t == ROUNDS // 2  # the copy is no view


def unable_to_choose(params, state):
    """A choice that no policy makes: were it ever used, the state would show it."""
    return SKIP, GUARD, SKIP


@every_policy
@every_problem
def test_replay_takes_in_a_log_without_choosing(name, problem):
    live = play.begin(make_policy(name), problem)
    log = play.ask_and_tell(live, ROUNDS)
    policy = POLICIES[name]
    mute = type(f"Mute{policy.__name__}", (policy,), {"choose": staticmethod(unable_to_choose)})
    for replayed_by in (policy, mute):
        restarted = play.begin(make_policy(name), problem)
        engine_for(replayed_by).replay(restarted.params, restarted.state, play.log_of(live, log))
        assert play.contents(restarted.state) == play.contents(live.state)


@every_policy
def test_goes_on_after_a_replay_as_if_nothing_had_happened(name):
    live, restarted = resumed(name), resumed(name)
    log = play.ask_and_tell(live, ROUNDS)
    restarted.engine.replay(restarted.params, restarted.state, play.log_of(live, log))
    again = play.ask_and_tell(restarted, ROUNDS)
    onwards = play.ask_and_tell(live, ROUNDS)
    assert [column.tobytes() for column in again] == [column.tobytes() for column in onwards]


@every_policy
def test_is_the_same_in_another_process(name):
    parts = [(name, problem, None, ROUNDS) for problem in PROBLEMS.values()]
    assert play.digests_elsewhere(parts) == play.digests_here(parts)


@every_policy
def test_is_the_same_without_the_compiler(name):
    parts = [(name, problem, None, 300) for problem in PROBLEMS.values()]
    assert play.digests_elsewhere(parts, NUMBA_DISABLE_JIT="1") == play.digests_here(parts)


@every_policy
def test_is_the_same_without_the_compiler_late(name):
    parts = [(name, play.WIDE_GAPS, late_state(name), 300)]
    assert play.digests_elsewhere(parts, NUMBA_DISABLE_JIT="1") == play.digests_here(parts)


@copies
def test_a_copy_of_a_state_can_be_written_to(duplicate):
    # NumPy drops what is assigned to a field of a record that owns its memory; only compiled code writes through.
    state = duplicate(late_state("suak"))
    state.clock.t += 1
    state.memory.base_rounds += 1
    assert state.clock.t == LATE + 1
    assert state.memory.base_rounds == late_state("suak").memory.base_rounds + 1


# The form of a policy.


@every_policy
@every_problem
def test_decisions_are_in_range_and_counted(name, problem):
    game = play.begin(make_policy(name), problem)
    log = play.ask_and_tell(game, ROUNDS)
    assert set(log.arm) <= {SKIP, *range(problem.arms + 1)}
    assert set(log.partner) <= {SKIP, *range(problem.arms + 1)}
    assert set(log.event) <= set(range(len(POLICIES[name].events)))
    assert (log.arm[log.event == GUARD] == SKIP).all()

    clock, arms = game.state.clock, game.state.arms
    assert clock.t == ROUNDS
    assert clock.skips == np.count_nonzero(log.arm == SKIP)
    assert clock.idle == clock.skips + np.count_nonzero(log.arm == problem.arms)
    assert arms.pulls.tolist() == [np.count_nonzero(log.arm == arm) for arm in range(problem.arms)]
    for arm in range(problem.arms):
        assert arms.reward_sum[arm] == pytest.approx(log.reward[log.arm == arm].sum())
        assert arms.cost_sum[arm] == pytest.approx(log.cost[log.arm == arm].sum())
    assert clock.earned == pytest.approx(log.reward.sum())
    assert spent(clock) == pytest.approx(log.cost.sum())
    headrooms = problem.budget * np.arange(1, ROUNDS + 1) - np.cumsum(log.cost)
    assert lowest_headroom(clock) == pytest.approx(headrooms.min(), abs=1e-6)


@every_policy
@every_problem
def test_choosing_changes_nothing_but_the_scratch(name, problem):
    choose = kernel(POLICIES[name].choose)
    games = [play.begin(make_policy(name), problem)]
    if problem is play.WIDE_GAPS:
        games.append(resumed(name))
    chosen = 0
    for game in games:
        for _ in range(ROUNDS // 10):
            play.ask_and_tell(game, 10)
            state = copy.deepcopy(game.state)
            if open_round(state.clock):
                before = play.contents(state)
                decision = choose(game.params, state)
                assert play.contents(state) == before
                assert decision == choose(game.params, state)
                chosen += 1
    assert chosen > 0


def test_parameters_of_two_policies_are_not_confused():
    # numba looks up compiled code for a named tuple by its class name and fields. Two classes that are alike in both,
    # and are not one class, send every call of the second from Python down a path twenty times as slow.
    kinds = {type(play.begin(make_policy(name), play.THREE_ARMS).params) for name in POLICIES}
    assert len({(kind.__name__, kind._fields) for kind in kinds}) == len(kinds)


@every_policy
def test_is_a_value(name):
    policy = make_policy(name)
    assert policy == make_policy(name)
    assert hash(policy) == hash(make_policy(name))
    assert pickle.loads(pickle.dumps(policy)) == policy
    assert copy.deepcopy(policy) == policy
    assert len({make_policy(other) for other in POLICIES}) == len(POLICIES)


@every_policy
def test_says_which_parameter_it_does_not_have(name):
    with pytest.raises(UnknownParameter, match=rf"^{name} takes .*; got nonsense=3$"):
        make_policy(name, nonsense=3)


# The promise.

TEN_ROUNDS = st.lists(
    st.sampled_from([0.0, 1.0, 5e-324, 1 - 2**-53]) | st.floats(0, 1),
    min_size=1,
    max_size=10,
)


@every_policy
@settings(max_examples=40)
@given(
    budget=st.sampled_from([0.1, 0.3, 0.29, 1 / 3, 0.5, 1.0]) | st.floats(0.02, 1), costs=TEN_ROUNDS, rewards=TEN_ROUNDS
)
@example(budget=0.1, costs=[1.0], rewards=[1.0])
@example(budget=0.3, costs=[0.0] * 9 + [1.0], rewards=[0.0])
@example(budget=1.0, costs=[1 - 2**-53], rewards=[1.0])
def test_never_overspends_whatever_the_costs(name, budget, costs, rewards):
    problem = Problem(
        [Constant(0.5), Constant(0.9), Constant(0.1)], [Constant(0.1), Constant(1.0), Constant(0.3)], budget
    )
    engine, params, state, _ = play.begin(make_policy(name), problem)
    next_cost, next_reward = itertools.cycle(costs), itertools.cycle(rewards)
    rate, paid = Fraction(budget), Fraction(0)
    for t in range(1, 201):
        arm, event, partner = engine.ask(params, state)
        if play.is_pull(state, arm):
            cost = next(next_cost)
            engine.tell(params, state, arm, event, partner, next(next_reward), cost)
            paid += Fraction(cost)
        assert paid <= rate * t
        assert spent(state.clock) <= budget * t
    assert lowest_headroom(state.clock) >= 0.0
    assert state.arms.pulls.sum() > 0


@every_policy
def test_never_overspends_against_one_who_watches_the_headroom(name):
    # The most expensive pull whenever it could break the promise, the cheapest otherwise, so that the headroom is often at 1.
    engine, params, state, _ = play.begin(make_policy(name), play.THREE_ARMS)
    paid = 0
    for t in range(1, 3001):
        arm, event, partner = engine.ask(params, state)
        if play.is_pull(state, arm):
            cost = 1 if state.clock.headroom < 2 else 0
            engine.tell(params, state, arm, event, partner, 1.0, float(cost))
            paid += cost
        assert 2 * paid <= t
    assert paid > 0

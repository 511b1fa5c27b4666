"""What every policy must do. A policy is covered by being listed in POLICIES."""

import copy
import itertools
import pickle
from fractions import Fraction
from functools import cache

import naive
import numpy as np
import play
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lanes import marks_of

from paceline.errors import InvalidValue, UnknownParameter
from paceline.kernels.budget import UNITS, open_round
from paceline.kernels.jit import plain_throughout
from paceline.kernels.state import GUARD, SKIP, Decision, books_in, state_in
from paceline.policies import POLICIES, make_policy
from paceline.problems.distributions import Constant
from paceline.problems.problem import Problem

PROBLEMS = {"wide gaps": play.WIDE_GAPS, "every kind": play.EVERY_KIND, "paper, 8 arms": play.EIGHT_ARMS}
TWO_RESOURCES = Problem.beta(
    [0.45, 0.7, 0.8, 0.6],
    {"money": [0.3, 0.75, 0.8, 0.5], "energy": [0.2, 0.1, 0.6, 0.7]},
    budget={"money": 0.5, "energy": 0.25},
    max_costs={"money": [0.5, 1.0, 1.0, 0.9]},
)
# A stock without income that has to last, one beside an income, a cap, and an arm that refills.
SEVERAL_PROBLEMS = {"two resources": TWO_RESOURCES, "three resources, refills": play.SEVERAL}
ROUNDS = 2000
LATE = 10_000  # by then SUAK and Primal Dual are in their second phase on the problem with wide gaps

every_policy = pytest.mark.parametrize("name", [pytest.param(name, marks=marks_of(name)) for name in POLICIES])
copies = pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda storage: pickle.loads(pickle.dumps(storage))], ids=["copied", "pickled"]
)


def problems_for(name):
    """The problems that a policy can play, by their names."""
    policy = POLICIES[name]
    all_of_them = PROBLEMS if policy.resources == 1 else PROBLEMS | SEVERAL_PROBLEMS
    return {words: kept for words, kept in all_of_them.items() if policy.refillable or not any(kept.refills)}


every_policy_and_problem = pytest.mark.parametrize(
    ("name", "problem"),
    [
        pytest.param(name, problem, id=f"{name}, {words}", marks=marks_of(name))
        for name in POLICIES
        for words, problem in problems_for(name).items()
    ],
)


@cache
def late_storage(name):
    """Books and state of a policy in its last phase; not to be changed."""
    game = play.begin(make_policy(name), play.WIDE_GAPS)
    play.simulate(game, LATE)
    return game.storage


def resumed(name):
    """A game that goes on from the late storage."""
    return play.begin(make_policy(name), play.WIDE_GAPS).on(copy.deepcopy(late_storage(name)))


def test_late_is_late_enough():
    assert 0 < late_storage("suak").record[0].classified_at < LATE
    assert 0 < late_storage("primal-dual").record[0].identified_at < LATE


# One text for every use.


@every_policy_and_problem
def test_simulation_equals_asking_and_telling(name, problem):
    by_hand, at_once = play.begin(make_policy(name), problem), play.begin(make_policy(name), problem)
    play.ask_and_tell(by_hand, ROUNDS)
    play.simulate(at_once, ROUNDS)
    assert play.contents(by_hand.storage) == play.contents(at_once.storage)


@every_policy
def test_simulation_equals_asking_and_telling_late(name):
    by_hand, at_once = resumed(name), resumed(name)
    play.ask_and_tell(by_hand, ROUNDS)
    play.simulate(at_once, LATE + ROUNDS)
    assert play.contents(by_hand.storage) == play.contents(at_once.storage)


@every_policy_and_problem
@copies
def test_a_run_may_be_cut_in_half(name, problem, duplicate):
    whole, halves = play.begin(make_policy(name), problem), play.begin(make_policy(name), problem)
    play.simulate(whole, ROUNDS)
    play.simulate(halves, ROUNDS // 2)
    second = halves.on(duplicate(halves.storage))
    play.simulate(second, ROUNDS)
    assert play.contents(second.storage) == play.contents(whole.storage)
    assert halves.books.tally.t == ROUNDS // 2  # the copy is no view


@every_policy_and_problem
def test_nothing_is_carried_from_round_to_round_in_the_scratch(name, problem):
    """A live program does not save it, and goes on all the same."""
    kept, swept = play.begin(make_policy(name), problem), play.begin(make_policy(name), problem)
    fresh = play.begin(make_policy(name), problem).storage
    for until in range(ROUNDS // 20, ROUNDS + 1, ROUNDS // 20):
        play.simulate(kept, until)
        play.simulate(swept, until)
        for field in ("scratch", "members", "program"):
            getattr(swept.storage, field)[...] = getattr(fresh, field)
        swept.storage.numbers[play.SCRATCH_NUMBERS] = 0.0
    assert play.contents(swept.storage) == play.contents(kept.storage)


def unable_to_choose(params, state):
    """A choice that no policy makes: were it ever used, the state would show it."""
    return Decision(SKIP, GUARD, SKIP)


@every_policy_and_problem
def test_a_journal_is_followed_without_choosing(name, problem):
    live = play.begin(make_policy(name), problem)
    log = play.ask_and_tell(live, ROUNDS)
    policy = POLICIES[name]
    mute = type(f"Mute{policy.__name__}", (policy,), {"choose": staticmethod(unable_to_choose)})
    # With several resources ``commit`` books what a choice has left in the scratch, so the choice is made once more.
    replayed_by = (policy, mute) if len(problem.resources) == 1 else (policy,)
    for kind in replayed_by:
        restarted = play.begin(make_policy(name), problem)
        play.follow(kind, restarted, log)
        assert play.contents(restarted.storage) == play.contents(live.storage)


def onwards_after_a_replay(live, restarted):
    """Live rounds, a replay of them, and more of them on both sides."""
    log = play.ask_and_tell(live, ROUNDS)
    play.follow(type(live.policy), restarted, log)
    again = play.ask_and_tell(restarted, ROUNDS)
    onwards = play.ask_and_tell(live, ROUNDS)
    assert [column.tobytes() for column in again] == [column.tobytes() for column in onwards]


@every_policy
def test_goes_on_after_a_replay_as_if_nothing_had_happened(name):
    onwards_after_a_replay(resumed(name), resumed(name))


@every_policy_and_problem
def test_goes_on_after_a_replay_of_everything(name, problem):
    onwards_after_a_replay(*(play.begin(make_policy(name), problem) for _ in range(2)))


@pytest.mark.slow
@every_policy
def test_is_the_same_in_another_process(name):
    parts = [(name, problem, None, ROUNDS) for problem in problems_for(name).values()]
    assert play.digests_elsewhere(parts) == play.digests_here(parts)


@every_policy
def test_is_the_same_without_the_compiler(name):
    parts = [(name, problem, None, 300) for problem in problems_for(name).values()]
    assert play.digests_elsewhere(parts, NUMBA_DISABLE_JIT="1") == play.digests_here(parts)


@every_policy
def test_is_the_same_without_the_compiler_late(name):
    parts = [(name, play.WIDE_GAPS, late_storage(name), 300)]
    assert play.digests_elsewhere(parts, NUMBA_DISABLE_JIT="1") == play.digests_here(parts)


@copies
def test_a_copy_of_a_storage_can_be_written_to(duplicate):
    # NumPy drops what is assigned to a field of a record that owns its memory; only compiled code writes through.
    storage = duplicate(late_storage("suak"))
    books, state = books_in(storage), state_in(storage)
    books.tally.t += 1
    state.clock.t += 1
    state.record.base_rounds += 1
    assert (storage.tally[0].t, storage.clock[0].t) == (LATE + 1, LATE + 1)
    assert storage.record[0].base_rounds == late_storage("suak").record[0].base_rounds + 1
    assert late_storage("suak").tally[0].t == LATE


# The form of a policy.


@every_policy_and_problem
def test_decisions_are_in_range_and_counted(name, problem):
    game = play.begin(make_policy(name), problem)
    log = play.ask_and_tell(game, ROUNDS)
    assert set(log.arm) <= {SKIP, *range(problem.arms + 1)}
    if POLICIES[name].tag_is_arm:
        assert set(log.tag) <= {SKIP, *range(problem.arms + 1)}
    assert set(log.reason) <= set(range(len(POLICIES[name].reasons)))
    assert (log.arm[log.reason == GUARD] == SKIP).all()

    tally, books, arms = game.books.tally, game.books, game.state.arms
    assert tally.t == game.state.clock.t == ROUNDS
    resting = (log.reason == GUARD) & (log.tag == problem.arms)  # the null arm was wanted when nothing could be paid
    assert tally.skips == np.count_nonzero((log.arm == SKIP) & ~resting)
    assert tally.idle == np.count_nonzero((log.arm == SKIP) | (log.arm == problem.arms))
    assert arms.pulls.tolist() == [np.count_nonzero(log.arm == arm) for arm in range(problem.arms)]
    assert books.pulls.tolist() == arms.pulls.tolist()
    assert not game.state.pending.any()
    for arm in range(problem.arms):
        assert arms.reward_sum[arm] == pytest.approx(log.reward[log.arm == arm].sum())
        assert arms.reward_squares[arm] == pytest.approx((log.reward[log.arm == arm] ** 2).sum())
        assert arms.cost_sum[arm] == pytest.approx(log.costs[log.arm == arm].sum(axis=0))
        assert arms.cost_squares[arm] == pytest.approx((log.costs[log.arm == arm] ** 2).sum(axis=0))
    # All came at once, so all that is known are the pulls of which all is known, to the bit.
    assert (arms.reward_known == [arms.pulls, arms.reward_sum, arms.reward_squares]).all()
    counts = np.repeat(arms.pulls[:, None], len(problem.resources), axis=1)
    assert (arms.cost_known == [counts, arms.cost_sum, arms.cost_squares]).all()
    assert tally.earned == pytest.approx(log.reward.sum())
    assert books.spent / UNITS == pytest.approx(log.costs.sum(axis=0))
    headrooms = naive.levels(problem, log.costs)
    assert books.lowest / UNITS == pytest.approx(headrooms.min(axis=0), abs=1e-6)


def litter(scratch, old):
    """What another choice may have left behind."""
    for array in scratch:
        array[...] = old if array.dtype.kind == "f" else 0


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")  # words of random bits wrap around
@every_policy_and_problem
def test_choosing_changes_nothing_but_the_scratch_and_needs_nothing_of_it(name, problem):
    choose = plain_throughout(POLICIES[name].choose)
    games = [play.begin(make_policy(name), problem)]
    if problem is play.WIDE_GAPS:
        games.append(resumed(name))
    chosen = 0
    for game in games:
        for _ in range(ROUNDS // 10):
            play.ask_and_tell(game, 10)
            storage = copy.deepcopy(game.storage)
            books, state = books_in(storage), state_in(storage)
            if open_round(books, state.resources, state.rate, state.headroom, state.planned):
                state.clock.t = books.tally.t
                before = play.contents(storage)
                decision = choose(game.params, state)
                assert play.contents(storage) == before
                for old in (np.nan, 1.0):
                    litter(state.scratch, old)
                    assert decision == choose(game.params, state)
                chosen += 1
    assert chosen > 0


def test_parameters_of_two_policies_are_not_confused():
    # numba looks up compiled code for a named tuple by its class name and fields. Two classes that are alike in both,
    # and are not one class, send every call of the second from Python down a path twenty times as slow.
    games = [play.begin(make_policy(name), play.THREE_ARMS) for name in POLICIES]
    for kinds in ({type(game.params) for game in games}, {type(game.storage.memory) for game in games}):
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


@every_policy
def test_takes_several_resources_or_says_that_it_does_not(name):
    policy = make_policy(name)
    if policy.resources is None:
        assert play.begin(policy, TWO_RESOURCES).setting.resources == 2
    else:
        with pytest.raises(InvalidValue, match=rf"^{name} works with one resource only, got 2$"):
            play.begin(policy, TWO_RESOURCES)


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
    game = play.begin(make_policy(name), problem, horizon=200)
    next_cost, next_reward = itertools.cycle(costs), itertools.cycle(rewards)
    rate, paid = Fraction(budget), Fraction(0)
    for t in range(1, 201):
        decision = game.ask()
        if play.is_pull(game.state, decision.arm):
            cost = next(next_cost)
            game.tell(decision, next(next_reward), (cost,))
            paid += Fraction(cost)
        assert paid <= rate * t
        assert game.books.spent[0] / UNITS <= budget * t
    assert game.books.lowest[0] >= 0
    assert game.books.pulls.sum() > 0


@every_policy
def test_never_overspends_against_one_who_watches_the_headroom(name):
    # The most expensive pull whenever it could break the promise, the cheapest otherwise: the headroom is often at 1.
    # What a policy has saved up is taken from it first.
    game = play.begin(make_policy(name), play.THREE_ARMS, horizon=3000)
    paid, taking = 0, False
    for t in range(1, 3001):
        decision = game.ask()
        if play.is_pull(game.state, decision.arm):
            headroom = game.state.headroom[0]
            taking = headroom >= 2 and (taking or headroom > 10)
            cost = 1 if taking or headroom < 2 else 0
            game.tell(decision, 1.0, (float(cost),))
            paid += cost
        assert 2 * paid <= t
    assert paid > 0

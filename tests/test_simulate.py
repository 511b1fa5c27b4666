"""simulate: its shapes, that results depend on the seed alone, what it refuses, and how it stops."""

import multiprocessing
import os
import subprocess
import sys
import tracemalloc
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Thread
from typing import NamedTuple

import numpy as np
import pytest
from comparing import all_bits, bits
from interrupt import interrupted
from lanes import FIELD

import paceline as pl
from paceline.kernels.state import Decision
from paceline.policies import POLICIES
from paceline.policies.policy import Policy, learn_nothing
from paceline.simulation import simulate as lab_run

THREE_ARMS = pl.paper.three_arms()
CURVES = ("regret", "pseudo_regret", "steady_regret", "skips", "idle", "spent")
NAMES = tuple(name for name in POLICIES if name not in FIELD)


# Policies as a user would write them.


class Pair(NamedTuple):
    """The arms of odd and of even rounds."""

    odd: int
    even: int


def take_turns(params, state):
    """One arm in odd rounds, the other in even rounds."""
    arm = params.odd if state.clock.t % 2 == 1 else params.even
    return Decision(arm, 1, arm)


@dataclass(frozen=True, kw_only=True)
class Turns(Policy):
    """Two arms in turns, or always the same arm."""

    odd: int = 0
    even: int = 0

    name = "turns"
    reasons = ("headroom below the largest cost", "its turn")
    choose = staticmethod(take_turns)
    learn = staticmethod(learn_nothing)

    def params(self, setting):
        return Pair(self.odd, self.even)


@dataclass(frozen=True, kw_only=True)
class Fails(Turns):
    """Breaks in runs of more rounds than the single one that compiles the loop: inside a trial, on the executor."""

    name = "fails"

    def params(self, setting):
        if setting.rounds > 1:
            raise RuntimeError("this policy is broken")
        return super().params(setting)


# Shapes.


def test_shapes_of_the_contract():
    results = pl.simulate(THREE_ARMS, ["suak", "uniform"], rounds=900, trials=4, seed=3, checkpoints=30)
    assert list(results) == ["suak", "uniform"]
    assert results.trials == 4
    assert results.seed == 3
    assert results.problem == THREE_ARMS
    assert results.rounds.shape == (30,)
    assert results.rounds[-1] == 900
    for run in results.values():
        for name in CURVES:
            assert getattr(run, name).shape == (4, 30), name
        assert run.pulls.shape == (4, 3)
        assert run.min_headroom.shape == (4,)
        assert {name: term.shape for name, term in run.breakdown().items()} == dict.fromkeys(
            ("wrong_arms", "idle", "unspent", "cost_luck"), (4, 30)
        )


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        (1, [10]),
        (4, [3, 5, 8, 10]),
        (10, list(range(1, 11))),
        (50, list(range(1, 11))),  # more than there are rounds
        ([], [10]),
        ([10], [10]),
        ([5, 1, 5], [1, 5, 10]),
        ((2, 3), [2, 3, 10]),
        (range(2, 6, 2), [2, 4, 10]),
        (np.array([7, 2]), [2, 7, 10]),
    ],
)
def test_checkpoints(asked, kept):
    results = pl.simulate(THREE_ARMS, "uniform", rounds=10, trials=1, checkpoints=asked)
    assert results.rounds.tolist() == kept
    assert results["uniform"].spent.shape == (1, len(kept))


def test_coarse_and_fine_checkpoints_agree_where_they_meet():
    fine, coarse = (pl.simulate(THREE_ARMS, NAMES, rounds=600, trials=2, checkpoints=count) for count in (600, 12))
    meet = np.isin(fine.rounds, coarse.rounds)
    assert meet.sum() == 12
    for label in NAMES:
        for field, array in fine[label].totals._asdict().items():
            at_meeting = array if field == "min_headroom" else array[:, meet]
            assert at_meeting.tobytes() == getattr(coarse[label].totals, field).tobytes(), (label, field)


def test_looking_up_between_checkpoints_changes_nothing(monkeypatch):
    whole = pl.simulate(THREE_ARMS, NAMES, rounds=500, trials=2, checkpoints=3)
    monkeypatch.setattr(lab_run, "STRIDE", 7)
    assert all_bits(pl.simulate(THREE_ARMS, NAMES, rounds=500, trials=2, checkpoints=3)) == all_bits(whole)


# Results depend on the seed alone.


@pytest.fixture(scope="module")
def reference() -> pl.Results:
    """A run in threads of the library's own."""
    return pl.simulate(THREE_ARMS, MIXED, rounds=3000, trials=3, seed=11, checkpoints=5)


MIXED = ["suak", "one-phase", "uniform", Turns(odd=0, even=2)]
EXECUTORS = {
    "one thread": lambda: ThreadPoolExecutor(1),
    "three threads": lambda: ThreadPoolExecutor(3),
    "processes": lambda: ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")),
}


@pytest.mark.parametrize("name", EXECUTORS)
def test_executor_changes_no_bit(name, reference):
    with EXECUTORS[name]() as executor:
        results = pl.simulate(THREE_ARMS, MIXED, rounds=3000, trials=3, seed=11, checkpoints=5, executor=executor)
        assert executor.submit(int, "7").result() == 7  # it belongs to the caller and is still open
    assert all_bits(results) == all_bits(reference)


@pytest.mark.parametrize("label", ["suak", "one-phase", "uniform"])
def test_other_policies_change_no_bit(label, reference):
    alone = pl.simulate(THREE_ARMS, label, rounds=3000, trials=3, seed=11, checkpoints=5)
    assert bits(alone[label]) == bits(reference[label])


def test_order_of_policies_changes_no_bit(reference):
    turned = pl.simulate(THREE_ARMS, MIXED[::-1], rounds=3000, trials=3, seed=11, checkpoints=5)
    assert list(turned) == list(reference)[::-1]
    assert all_bits(turned) == all_bits(reference)


def test_more_trials_leave_the_first_ones_alone(reference):
    more = pl.simulate(THREE_ARMS, MIXED, rounds=3000, trials=5, seed=11, checkpoints=5)
    for label in reference:
        for field, array in more[label].totals._asdict().items():
            assert array[:3].tobytes() == getattr(reference[label].totals, field).tobytes(), (label, field)


def test_seeds_and_trials_differ(reference):
    other = pl.simulate(THREE_ARMS, MIXED, rounds=3000, trials=3, seed=12, checkpoints=5)
    for label in reference:
        earned = np.concatenate([run[label].totals.earned[:, -1] for run in (reference, other)])
        assert len(set(earned)) == 6, label


def test_largest_seed_is_a_seed_like_any_other():
    results = pl.simulate(THREE_ARMS, "uniform", rounds=100, trials=1, seed=2**64 - 1)
    assert results.seed == 2**64 - 1
    assert results["uniform"].pulls.sum() > 0


# Policies by name, by object, by label.


@pytest.mark.parametrize(
    ("name", "policy"),
    [
        ("suak", pl.SUAK()),
        ("one-phase", pl.OnePhase()),
        ("primal-dual", pl.PrimalDual()),
        ("ucb-simplex", pl.UCBSimplex()),
        ("uniform", pl.Uniform()),
        ("oracle", pl.Oracle()),
    ],
)
def test_an_object_is_its_name(name, policy):
    named, built = (pl.simulate(THREE_ARMS, given, rounds=500, trials=1) for given in (name, policy))
    assert list(named) == list(built) == [name]
    assert bits(named[name]) == bits(built[name])
    assert named[name].policy == built[name].policy == repr(policy)


def test_labels_hold_variants_apart():
    results = pl.simulate(
        THREE_ARMS, ["one-phase", {"two": pl.OnePhase(a=2), "plain": "one-phase"}], rounds=2000, trials=1
    )
    assert {label: run.policy for label, run in results.items()} == {
        "one-phase": "OnePhase(a=3.0, horizon=None, time_row=True)",
        "two": "OnePhase(a=2, horizon=None, time_row=True)",
        "plain": "OnePhase(a=3.0, horizon=None, time_row=True)",
    }
    assert bits(results["plain"]) == bits(results["one-phase"])
    assert bits(results["two"]) != bits(results["one-phase"])


def test_policy_of_a_user_plays():
    run = pl.simulate(THREE_ARMS, Turns(odd=0, even=2), rounds=2000, trials=2)["turns"]
    assert run.policy == "Turns(odd=0, even=2)"
    assert (run.pulls[:, [0, 2]] > 0).all()
    assert (run.pulls[:, 1] == 0).all()
    assert (run.min_headroom >= 0).all()
    assert (run.pulls.sum(axis=1) + run.idle[:, -1] == 2000).all()


# Common random numbers. Outcomes are dyadic, so sums are exact in whatever order they are taken.

DYADIC = {
    "rewards": [pl.Empirical([0.0, 0.25, 0.5, 1.0]), pl.Bernoulli(0.6)],
    "costs": [pl.Bernoulli(0.4), pl.Empirical([0.125, 0.875])],
}


def totals_by_round(policy: Policy, budget: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rewards and costs so far, and pulls of the first arm, after every round from 0 on; one row per trial."""
    totals = pl.simulate(
        pl.Problem(**DYADIC, budget=budget), {"it": policy}, rounds=400, trials=3, seed=5, checkpoints=400
    )["it"].totals
    columns = (totals.earned, totals.spent, totals.pulls[..., 0])
    earned, spent, pulls = (np.pad(column, ((0, 0), (1, 0))) for column in columns)
    return earned, spent, pulls


def test_the_nth_pull_of_an_arm_is_the_same_whoever_pulls_it():
    # At rate 1 the guard never refuses, so after n rounds an arm that is always pulled has been pulled n times.
    first, second, turns = (
        totals_by_round(Turns(odd=odd, even=even), budget=1.0) for odd, even in ((0, 0), (1, 1), (0, 1))
    )
    for alone, other, both in zip(first[:2], second[:2], turns[:2], strict=True):
        np.testing.assert_array_equal(both[:, ::2], alone[:, :201] + other[:, :201])


def test_the_nth_pull_of_an_arm_is_the_same_at_another_rate():
    free, kept = (totals_by_round(Turns(), budget) for budget in (1.0, 0.3))
    pulls = kept[2]
    assert (pulls[:, -1] < 400).all()  # the guard did refuse some
    for unhindered, hindered in zip(free[:2], kept[:2], strict=True):
        np.testing.assert_array_equal(hindered, np.take_along_axis(unhindered, pulls, axis=1))


# What is refused.

REFUSED = {
    "no rounds": ({"rounds": 0}, "rounds", "whole number from 1 to", "got 0"),
    "negative rounds": ({"rounds": -1}, "rounds", "whole number from 1 to", "got -1"),
    "half a round": ({"rounds": 1.5}, "rounds", "whole number from 1 to", "got 1.5"),
    "true rounds": ({"rounds": True}, "rounds", "whole number from 1 to", "got True"),
    "rounds in words": ({"rounds": "100"}, "rounds", "whole number from 1 to", "got '100'"),
    "rounds beyond exact counting": ({"rounds": 2**31}, "rounds", f"to {2**31 - 1}", f"got {2**31}"),
    "no trials": ({"trials": 0}, "trials", "whole number of at least 1", "got 0"),
    "true trials": ({"trials": True}, "trials", "whole number of at least 1", "got True"),
    "negative seed": ({"seed": -1}, "seed", "whole number from 0 to", "got -1"),
    "seed too large": ({"seed": 2**64}, "seed", f"to {2**64 - 1}", f"got {2**64}"),
    "no seed": ({"seed": None}, "seed", "whole number from 0 to", "got None"),
    "no checkpoints": ({"checkpoints": 0}, "checkpoints", "whole number of at least 1", "got 0"),
    "checkpoint at round 0": ({"checkpoints": [0]}, "checkpoint", "whole number from 1 to 100", "got 0"),
    "checkpoint after the end": ({"checkpoints": [101]}, "checkpoint", "whole number from 1 to 100", "got 101"),
    "checkpoint between rounds": ({"checkpoints": [1.5]}, "checkpoint", "whole number from 1 to 100", "got 1.5"),
    "unknown policy": ({"policies": "sauk"}, "policy", "one of index, thompson, optimistic", "got 'sauk'"),
    "unknown policy in a list": (
        {"policies": ["suak", "sauk"]},
        "policy",
        "one of index, thompson, optimistic",
        "got 'sauk'",
    ),
    "same label twice": ({"policies": ["suak", pl.SUAK()]}, "labels of policies", "must differ", "got 'suak' twice"),
    "no policies": ({"policies": []}, "policies", "at least one", "got none"),
    "no labels": ({"policies": {}}, "policies", "at least one", "got none"),
    "not a policy": ({"policies": [42]}, "policy", "a name or an object", "got 42"),
    "class of a policy in a list": ({"policies": [pl.SUAK]}, "policy", "a name or an object", "SUAK"),
    "class of a policy": ({"policies": pl.SUAK}, "polic", "a name or an object", "SUAK"),
    "no policy at all": ({"policies": None}, "polic", "a name or an object", "got None"),
    "not a problem": ({"problem": {"budget": 0.5}}, "problem", "must be a Problem", "got {'budget': 0.5}"),
    "number for an executor": ({"executor": 4}, "executor", "must", "got 4"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_before_anything_is_run(case, monkeypatch):
    given, thing, rule, value = REFUSED[case]

    def never(*_):
        pytest.fail("a trial was run")

    monkeypatch.setattr(lab_run, "run_trial", never)
    call = {"problem": THREE_ARMS, "policies": "uniform", "rounds": 100, "trials": 1, **given}
    with pytest.raises(pl.PacelineError) as caught:
        pl.simulate(**call)
    message = str(caught.value)
    assert "\n" not in message
    for part in (thing, rule, value):
        assert part in message


def test_whole_numbers_of_numpy_are_whole_numbers():
    plain = pl.simulate(THREE_ARMS, "uniform", rounds=1000, trials=40, seed=1, checkpoints=2)
    # Of 16 bits: 40 times 1,000 rounds are more than such a number can hold.
    rounds, trials, seed, checkpoints = np.array([1000, 40, 1, 2], np.int16)
    small = pl.simulate(THREE_ARMS, "uniform", rounds=rounds, trials=trials, seed=seed, checkpoints=checkpoints)
    assert all_bits(small) == all_bits(plain)


# How it runs and how it stops.


def test_progress_is_shown_when_asked_for(capsys):
    silent = pl.simulate(THREE_ARMS, "uniform", rounds=1000, trials=2)
    assert capsys.readouterr() == ("", "")
    shown = pl.simulate(THREE_ARMS, "uniform", rounds=1000, trials=2, progress=True)
    output = capsys.readouterr()
    assert output.out == ""
    assert "100%" in output.err
    assert all_bits(shown) == all_bits(silent)


def test_runs_where_the_system_does_not_tell_its_cores(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity")  # macOS and Windows have none
    assert pl.simulate(THREE_ARMS, "uniform", rounds=100, trials=2).trials == 2


def peak_memory(rounds: int) -> int:
    """The most memory in use during a simulation, of Python and of arrays."""
    tracemalloc.start()
    try:
        pl.simulate(THREE_ARMS, ["suak", "uniform"], rounds=rounds, trials=2, checkpoints=10)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_rounds():
    peak_memory(100)  # loads what is loaded once
    few, many = peak_memory(1_000), peak_memory(1_000_000)
    # One bit per round would already be 125,000 bytes.
    assert many - few < 100_000


def test_error_while_setting_up_surfaces():
    @dataclass(frozen=True, kw_only=True)
    class NeverReady(Turns):
        name = "never-ready"

        def params(self, setting):
            raise RuntimeError("no parameters today")

    with pytest.raises(RuntimeError, match="no parameters today"):
        pl.simulate(THREE_ARMS, NeverReady(), rounds=100)


@pytest.mark.parametrize("workers", [None, 2])
def test_error_inside_a_trial_surfaces(workers):
    policies = ["uniform", Fails(), {"more": "uniform"}]
    if workers is None:
        with pytest.raises(RuntimeError, match="this policy is broken"):
            pl.simulate(THREE_ARMS, policies, rounds=1000, trials=4)
    else:
        with ThreadPoolExecutor(workers) as pool:
            with pytest.raises(RuntimeError, match="this policy is broken"):
                pl.simulate(THREE_ARMS, policies, rounds=1000, trials=4, executor=pool)
            assert pool.submit(int, "7").result() == 7


class FirstNeverReturns(Executor):
    """Never gets round to the first task and fails at all others."""

    def __init__(self) -> None:
        self.first: Future[object] = Future()
        self.busy = False

    def submit(self, task, /, *arguments, **keywords):
        if not self.busy:
            self.busy = True
            return self.first
        failed: Future[object] = Future()
        failed.set_exception(RuntimeError("the second trial is broken"))
        return failed


def test_error_does_not_wait_for_the_trials_before_it():
    executor, caught = FirstNeverReturns(), []

    def attempt():
        try:
            pl.simulate(THREE_ARMS, "uniform", rounds=100, trials=2, executor=executor)
        except BaseException as error:
            caught.append(error)

    thread = Thread(target=attempt)
    thread.start()
    try:
        thread.join(timeout=5)
        assert [str(error) for error in caught] == ["the second trial is broken"]
        assert executor.first.cancelled()
    finally:
        executor.first.cancel()  # let the thread go in any case
        thread.join()


LONG_RUN = """
import sys
from concurrent.futures import ThreadPoolExecutor

import paceline as pl
from paceline.simulation import simulate as run


class InterruptedPool(ThreadPoolExecutor):
    submitted = 0

    def submit(self, *task):
        if self.submitted == 1:
            raise KeyboardInterrupt
        self.submitted += 1
        return super().submit(*task)


if "while submitting" in sys.argv:
    run.ThreadPoolExecutor = InterruptedPool
try:
    pl.simulate(pl.paper.three_arms(), "uniform", rounds=2_000_000_000, trials=2, progress=True)
except KeyboardInterrupt:
    sys.exit("stopped by hand")
"""
PATIENCE = 20  # seconds; the run would take minutes, a stride is a fraction of a second


def test_interrupt_ends_a_long_run():
    code, _, shown = interrupted([sys.executable, "-c", LONG_RUN], PATIENCE)
    assert code == 1
    assert shown.rstrip().endswith(b"stopped by hand")


def test_interrupt_while_trials_are_being_submitted_ends_those_already_running():
    done = subprocess.run(
        [sys.executable, "-c", LONG_RUN, "while submitting"], stderr=subprocess.PIPE, timeout=PATIENCE, check=False
    )
    assert done.returncode == 1
    assert done.stderr.rstrip().endswith(b"stopped by hand")


def test_null_arm_that_a_base_asks_for_is_no_skip():
    """One arm that costs three times the rate: two rounds of three are idle, mostly because nothing can be paid."""
    problem = pl.Problem([pl.Beta(0.8)], [pl.Constant(0.9)], 0.3)
    runs = pl.simulate(problem, ["oracle", "greedy", "thompson", "index", "uniform"], rounds=3000, trials=2, seed=4)
    for run in runs.values():
        assert run.idle[:, -1].min() > 1900
    for name in ("oracle", "greedy", "thompson", "index"):
        assert runs[name].skips[:, -1].max() <= 5, name  # before the first pull the base is not known
    assert (runs["uniform"].skips == runs["uniform"].idle).all()  # it never wants the null arm


def test_shortage_of_the_arm_that_is_due_is_a_skip():
    """A base of one arm that costs less than the rate, on average: the null arm is never wanted."""
    problem = pl.Problem([pl.Beta(0.8)], [pl.Bernoulli(0.45)], 0.5)
    run = pl.simulate(problem, "oracle", rounds=2000, trials=2, seed=4)["oracle"]
    assert (run.skips == run.idle).all()
    assert run.idle[:, -1].min() > 0

"""Books and state that compiled functions hand on by reference are read and written as the tuples themselves are."""

from typing import NamedTuple

import numpy as np
import pytest
from own_policy import Compiled
from play import THREE_ARMS

import paceline as pl
from paceline.kernels.jit import bind, is_on, kernel
from paceline.kernels.reference import refer
from paceline.kernels.state import SKIP
from paceline.policies import Decision


class Inner(NamedTuple):
    """A tuple that is not of the package: handed out as it is."""

    counts: object
    weights: object


class Outer(NamedTuple):
    """What is referred to."""

    times: object
    inner: Inner
    scale: float


@kernel
def bump(outer, arm):
    counts, weights = outer.inner
    counts[arm] += arm
    outer.times[0] += 1
    return outer.scale * weights[arm]


def bump_all(times, counts, weights, scale):
    outer = refer(Outer(times, Inner(counts, weights), scale))
    total = 0.0
    for arm in range(counts.size):
        total += bump(outer, arm)
    return total + outer.inner.counts.sum()


def test_fields_are_read_and_written_through_a_reference():
    times, counts, weights = np.zeros(1, np.int64), np.zeros(4, np.int64), np.array([0.5, 1.0, 2.0, 4.0])
    assert bind(bump_all, "bump_all", False)(times, counts, weights, 2.0) == 2.0 * weights.sum() + 6
    assert times.tolist() == [4]
    assert counts.tolist() == [0, 1, 2, 3]


class Turns(NamedTuple):
    last: np.ndarray
    turns: np.ndarray


class TakesApart(Compiled):
    """Arms in turn, by a memory that is unpacked, and with a copy of an array of the state."""

    def new_memory(self, arms, resources):
        return Turns(np.zeros(1, np.int64), np.zeros(arms, np.int64))

    @staticmethod
    def choose(params, state):
        last, turns = state.memory
        told = state.arms.pulls.copy()
        return Decision(last[0] if turns.sum() == told.sum() else SKIP, 1, last[0])

    @staticmethod
    def learn(params, state, decision, reward, cost):
        last, turns = state.memory
        if decision.arm >= 0:
            turns[decision.arm] += 1
            last[0] = (last[0] + 1) % turns.size


def test_memory_of_a_policy_may_be_taken_apart():
    run = pl.simulate(THREE_ARMS, TakesApart(), 500, trials=2, seed=1)["mine"]
    assert (run.pulls.max(axis=1) - run.pulls.min(axis=1) <= 1).all()
    assert (run.pulls.sum(axis=1) > 250).all()


@pytest.mark.skipif(not is_on(), reason="NUMBA_DISABLE_JIT is set: plain Python says it in its own words")
def test_unknown_field_is_named_with_the_tuple_that_lacks_it():
    class Wrong(Compiled):
        @staticmethod
        def choose(params, state):
            return Decision(state.arms.wishes, 1, 0)

    with pytest.raises(pl.InvalidPolicy, match=r"Wrong\.choose .*Unknown attribute 'wishes' of type Estimates$"):
        pl.simulate(THREE_ARMS, Wrong(), 10)

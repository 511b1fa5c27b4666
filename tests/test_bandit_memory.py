"""What a policy remembers of its arms follows them, along whichever axes."""

from typing import NamedTuple

import numpy as np
import pytest

from paceline import InvalidPolicy, Uniform
from paceline.live.memory import find_arm_axes, put_arms, take_arms
from paceline.live.runs import runs_of


class Memory(NamedTuple):
    each: np.ndarray
    pairs: np.ndarray
    sides: np.ndarray
    flags: np.ndarray
    own: np.ndarray
    number: np.ndarray


class Remembers(Uniform):
    """Arrays of all sorts; their entries are all different."""

    def new_memory(self, arms, resources):
        shapes = (arms,), (arms + 1, arms + 1, 2), (resources, arms), (arms,), (3, 4), ()
        kinds = float, float, int, bool, float, float
        return Memory(
            *(np.arange(np.prod(shape)).reshape(shape).astype(kind) for shape, kind in zip(shapes, kinds, strict=True))
        )


AXES = find_arm_axes(Remembers(), 2)


def runs(arms):
    return runs_of(np.array(arms, np.intp))


def taken(whole, arms):
    """A memory for these arms alone."""
    part = Remembers().new_memory(len(arms), 2)
    take_arms(part, AXES, runs(arms), whole)
    return part


@pytest.mark.parametrize("some", [np.arange(0, 1000, 3), np.arange(5, 900), np.r_[0:50, 60:1000]], ids=len)
def test_many_arms_in_runs_or_one_by_one(some):
    whole = Remembers().new_memory(1000, 1)
    part = Remembers().new_memory(some.size, 1)
    take_arms(part, find_arm_axes(Remembers(), 1), runs_of(some), whole)
    assert part.each.tolist() == whole.each[some].tolist()


def test_axes_of_arms_are_those_that_grow():
    assert AXES == ((0,), (1, 1, None), (None, 0), (0,), (None, None), ())


@pytest.mark.parametrize("arms", [[], [0], [2, 4], [4, 2], [0, 1, 2, 3, 4]])
def test_some_arms_are_taken_with_the_null_arm(arms):
    whole = Remembers().new_memory(5, 2)
    part = taken(whole, arms)
    with_null = [*arms, 5]
    assert part.each.tolist() == [whole.each[arm] for arm in arms]
    assert part.pairs.tolist() == [[whole.pairs[i, j].tolist() for j in with_null] for i in with_null]
    assert part.sides.tolist() == [[side[arm] for arm in arms] for side in whole.sides]
    assert part.own.tolist() == whole.own.tolist()
    assert part.number == whole.number
    for array, like in zip(part, whole, strict=True):
        assert array.dtype == like.dtype
        assert array.flags.c_contiguous
        assert not np.shares_memory(array, like)


@pytest.mark.parametrize("arms", [[], [0], [2, 4], [0, 1, 2, 3, 4]])
def test_what_was_taken_is_put_back(arms):
    whole, other = (Remembers().new_memory(5, 2) for _ in range(2))
    for array in other:
        array[...] = 0
    part = taken(whole, arms)
    put_arms(other, AXES, runs(arms), part)
    again = taken(other, arms)
    for array, like in zip(again, part, strict=True):
        assert array.tolist() == like.tolist()
    outside = [arm for arm in range(5) if arm not in arms]
    assert not other.each[outside].any()
    assert not other.pairs[np.ix_(outside, outside)].any()


def test_fewer_arms_find_their_place_among_more():
    whole, before = Remembers().new_memory(4, 2), Remembers().new_memory(3, 2)
    put_arms(whole, AXES, runs(range(3)), before)
    assert whole.each.tolist() == [0, 1, 2, 3]
    assert whole.pairs[np.ix_([0, 1, 2, 4], [0, 1, 2, 4])].tolist() == before.pairs.tolist()


class Flat(NamedTuple):
    table: np.ndarray


class Flattens(Uniform):
    def new_memory(self, arms, resources):
        return Flat(np.zeros(2 * arms))


class Reshapes(Uniform):
    def new_memory(self, arms, resources):
        return Flat(np.zeros((1,) * arms))


class Shifts(Uniform):
    def new_memory(self, arms, resources):
        return Flat(np.zeros(arms + 5))


@pytest.mark.parametrize("policy", [Flattens(), Reshapes(), Shifts()], ids=repr)
def test_a_memory_that_cannot_follow_is_refused(policy):
    with pytest.raises(InvalidPolicy, match=r"\A\w+.new_memory must have axes as long as there are arms, [^\n]*\Z"):
        find_arm_axes(policy, 1)

"""The books are out of a policy's reach: one that writes to everything it is handed changes nothing in them."""

import json
from functools import cache

import elsewhere
import pytest
from vandals import PROBLEM, ROUNDS, VANDALS, WORLDS, PythonVandal, Vandal, begun, played, watched

import paceline as pl
from paceline.kernels.state import State, state_in

every_vandal = pytest.mark.parametrize("name", VANDALS)


@cache
def tame(world):
    """The books of a policy that makes the same choices and writes nothing."""
    return played(Vandal(), WORLDS[world]())


def test_the_tame_one_has_something_to_lose():
    books = watched(Vandal())
    assert min(books["pulls"]) > ROUNDS / 10
    assert books["idle"] > ROUNDS / 10  # the guard has work to do
    assert min(books["lowest"]) < 2**32 / 4
    assert books["lost"][1] > 0


def test_a_vandal_knows_all_that_there_is():
    own = {"record", "memory", "resources", "context"}  # the last two: a tuple, and nothing yet
    known = {"clock", "rate", "headroom", "outlook", "planned", "cap", "largest", "arms", "pending", "scratch"}
    assert own | known == set(State._fields)


def test_a_vandal_does_write():
    params, storage = begun(VANDALS["choosing"])
    VANDALS["choosing"].choose(params, state_in(storage))
    state = state_in(storage)
    assert state.clock.t == state.pending[0] == state.arms.pulls[2] == 54321
    assert (state.headroom == 1e18).all()
    assert (state.largest == 1e18).all()


@every_vandal
def test_every_round_is_as_the_world_counts_it(name):
    assert watched(VANDALS[name]) == watched(Vandal())


@every_vandal
@pytest.mark.parametrize("world", WORLDS)
def test_the_books_are_those_of_the_tame_one(name, world):
    assert played(VANDALS[name], WORLDS[world]()) == tame(world)


@pytest.mark.parametrize("world", WORLDS)
def test_the_books_are_those_of_the_tame_one_without_the_compiler(world):
    code = "import runpy, sys; runpy.run_module('vandals', run_name='__main__')"
    lines = elsewhere.run(code, world, "tame", *VANDALS, NUMBA_DISABLE_JIT="1")
    whole, by_round = map(json.loads, lines)
    assert whole[0] == tame(world)
    assert by_round[0] == watched(Vandal())
    for name, found, stepped in zip(VANDALS, whole[1:], by_round[1:], strict=True):
        assert found == whole[0], name
        assert stepped == by_round[0], name


def test_a_vandal_in_plain_python_changes_nothing():
    policies = {"wild": PythonVandal(), "tame": PythonVandal(writing=False)}
    found = pl.simulate(PROBLEM, policies, rounds=ROUNDS, trials=3, checkpoints=20)
    for field, array in found["wild"].totals._asdict().items():
        assert array.tobytes() == getattr(found["tame"].totals, field).tobytes(), field
    assert (found["wild"].min_headroom >= 0).all()
    assert (found["wild"].pulls.min(axis=1) > ROUNDS / 10).all()

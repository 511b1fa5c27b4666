"""What a policy is shown, what it answers, and the few arrays in which all of it is kept.

A policy sees copies: the round, the rates, the headroom and the largest costs are written for it by the engine, which
reads none of them back. The books themselves (budget.py) are never handed to it.

Everything lives in `Storage`, a few blocks of memory, because every array that is handed to compiled code from Python
takes its time. `books_in` and `state_in` give names to the rows of the blocks; they copy nothing.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from paceline.kernels.budget import TALLY, UNITS, UNLIMITED, Books
from paceline.kernels.estimates import Estimates
from paceline.kernels.jit import kernel, plain
from paceline.kernels.lp import Program, new_program
from paceline.kernels.steering import Steering

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

SKIP = -1  # the arm of a round that is given up by a rule
GUARD = 0  # the reason of a round that the guard refused

CLOCK = np.dtype((np.record, [("t", np.int64), ("seed", np.uint64), ("stream", np.uint64)]))
NO_RECORD = np.dtype((np.record, [("nothing", np.int64)]))  # a record must have a field


class Clock(Protocol):
    """The fields of `CLOCK`: the round, from 1, and the key of all random numbers of this trial."""

    t: int
    seed: int
    stream: int


class Decision(NamedTuple):
    """What a policy has decided.

    ``arm``     0 .. K-1 for a pull, K for the null arm, `SKIP` for a round given up by a rule of the policy.
    ``reason``  an index into the policy's ``reasons``: why. Reason 0 is always the guard's refusal.
    ``tag``     a number of the policy's own, which comes back with the outcome: the other arm of the base, an account.
    """

    arm: int
    reason: int
    tag: int


class NoMemory(NamedTuple):
    """Of a policy that keeps no arrays; compiled code takes no empty tuple."""

    nothing: Floats


class Scratch(NamedTuple):
    """Room for one optimistic (or sampled) problem per round, so that no round allocates.

    Costs are stored by resource, not by arm: the linear program runs along the arms.
    """

    rewards: Floats  # (K,)
    costs: Floats  # (D, K)
    shares: Floats  # (K,), of the arms of a base
    members: Ints  # room for a program, see `program_in`; with one resource, for a guess at the base (`best_base`)
    block: Floats


class State(NamedTuple):
    """All that a policy may look at. It owns ``memory`` and ``record``; the rest is written by the engine."""

    clock: Any  # a record, see `Clock`
    record: Any  # a record of scalars of the policy's own
    resources: Any  # (0, 1, ... D-1): a tuple, so that D is a constant for the compiler
    rate: Floats  # (D,), what comes in per round; with credits, per round so far
    headroom: Floats  # (D,), what may still be spent, on the scale on which costs are at most 1
    outlook: Floats  # (D,), the headroom to pace on; the same unless costs are on their way (see outlook.py)
    planned: Floats  # (D,), what should be left of a start stock that has to last; else 0
    cap: Floats  # (D,), the most that can be in stock; infinite without a cap
    largest: Floats  # (K, D), the largest possible cost of each arm
    arms: Estimates
    pending: Ints  # (K,), pulls of which not all is known yet
    context: Floats  # (0,), for later
    memory: Any  # a NamedTuple of arrays of the policy's own
    scratch: Scratch


# Rows of the blocks.
AMOUNTS = 15  # of `Books`, from start to least
MEASURES = 11  # unit, cost, peak, depth, pace, pace line; rate, headroom, outlook, planned, cap
COUNTS = 3  # pulls of the books; pulls of the estimates, pending
NUMBERS = 9  # reward sum, squares, mean, width; rewards and shares of the scratch; three rows of known rewards
COSTS = 8  # largest, sum, squares, mean; unpaid of the books; three rows of known costs
WIDTH_ROW, LOWEST_ROW, CAP_ROW = 3, 12, 8


class Storage(NamedTuple):
    """The memory of books and state in few blocks."""

    resources: Any
    tally: Any  # (1,) records: a record alone would take a microsecond to hand over
    clock: Any
    record: Any
    amounts: Ints  # (AMOUNTS, D)
    measures: Floats  # (MEASURES, D)
    limits: Ints  # (K, D)
    counts: Ints  # (COUNTS, K)
    numbers: Floats  # (NUMBERS, K)
    costs: Floats  # (COSTS, K, D)
    context: Floats  # (0,)
    memory: Any
    scratch: Floats  # (D, K)
    members: Ints  # of the program
    program: Floats


@kernel
def book_rows(storage: Storage) -> Any:
    """The fields of `Books` after the tally: views of the blocks. (A kernel cannot return a record.)"""
    a, m = storage.amounts, storage.measures
    early = a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]
    late = a[8], a[9], a[10], a[11], a[12], a[13], a[14]
    return (*early, *late, m[0], m[1], m[2], m[3], m[4], m[5], storage.costs[4], storage.limits, storage.counts[0])


@kernel
def state_rows(storage: Storage) -> Any:
    """The fields of `State` after clock and record: views of the blocks."""
    m, c, n, k = storage.measures, storage.counts, storage.numbers, storage.costs
    arms = Estimates(c[1], n[0], n[1], n[2], n[3], k[1], k[2], k[3], n[6:], k[5:])
    scratch = Scratch(n[4], storage.scratch, n[5], storage.members, storage.program)
    shown = m[6], m[7], m[8], m[9], m[10]
    return (storage.resources, *shown, k[0], arms, c[2], storage.context, storage.memory, scratch)


@kernel
def program_in(scratch: Scratch, resources: tuple[int, ...]) -> Program:
    """Room for a linear program: views of the scratch, made where they are used. Few policies use them, and every array
    of a state takes the compiler its time.
    """
    rows, members, block = len(resources) + 1, scratch.members, scratch.block
    base, last, shortlist = members[:rows], members[rows : 2 * rows], members[2 * rows :]
    return Program(base, last, block[:rows], block[rows], block[rows + 1], block[rows + 2], shortlist)


@kernel
def steering_in(scratch: Scratch, resources: tuple[int, ...]) -> Steering:
    """Room for steering by such a program."""
    rows, block = len(resources) + 1, scratch.block
    needed, surplus = block[rows + 3, : rows - 1], block[rows + 4, : rows - 1]
    return Steering(needed, surplus, block[rows + 5], block[rows + 6], scratch.shares)


def books_in(storage: Storage) -> Books:
    """The books: views of the blocks. (In compiled code the same is written out, see engine.py.)"""
    return Books(storage.tally[0], *plain(book_rows)(storage))


def state_in(storage: Storage) -> State:
    """What a policy is shown: views of the blocks."""
    return State(storage.clock[0], storage.record[0], *plain(state_rows)(storage))


def new_storage(arms: int, resources: int, memory: Any, record: np.dtype[Any]) -> Storage:
    """Room for so many arms and resources of which nothing is known, with nothing in stock and nothing coming in."""
    rows = resources + 1
    room = new_program(arms, resources)
    storage = Storage(
        resources=tuple(range(resources)),
        tally=np.zeros(1, TALLY),
        clock=np.zeros(1, CLOCK),
        record=np.zeros(1, record),
        amounts=np.zeros((AMOUNTS, resources), np.int64),
        measures=np.zeros((MEASURES, resources)),
        limits=np.zeros((arms, resources), np.int64),
        counts=np.zeros((COUNTS, arms), np.int64),
        numbers=np.zeros((NUMBERS, arms)),
        costs=np.zeros((COSTS, arms, resources)),
        context=np.zeros(0),
        memory=memory,
        scratch=np.zeros((resources, arms)),
        members=np.concatenate([room.basis, room.last, room.shortlist]),
        program=np.zeros((rows + 7, rows)),
    )
    storage.numbers[WIDTH_ROW] = np.inf
    storage.amounts[CAP_ROW] = UNLIMITED
    storage.amounts[LOWEST_ROW] = np.iinfo(np.int64).max
    storage.measures[0] = 1.0 / UNITS
    storage.measures[MEASURES - 1] = np.inf  # no caps
    return storage

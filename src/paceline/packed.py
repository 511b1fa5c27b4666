"""A state in few arrays, because every argument of a compiled call takes its time.

The twelve arrays of a `State` with an entry per arm are the rows of two blocks, one of integers and one of floats. The
clock and the memory are arrays of one record: to hand over a record itself takes over a microsecond, an array a tenth.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paceline.engine import ask, parts_of, take_in
from paceline.kernels.budget import Limits
from paceline.kernels.estimates import Estimates
from paceline.kernels.jit import bind, direct, kernel, plain
from paceline.policies.policy import Policy, Scratch, Setting, State

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Records = npt.NDArray[Any]

COUNT_ROWS, NUMBER_ROWS = 2, 10
WIDTH_ROW = 7


class Packed(NamedTuple):
    """The arguments of `Calls`, after the policy's parameters."""

    clock: Records
    memory: Records
    counts: Ints  # (COUNT_ROWS, K)
    numbers: Floats  # (NUMBER_ROWS, K)
    table: Floats


@kernel
def rows_of(counts: Ints, numbers: Floats) -> tuple[Limits, Estimates, Scratch]:
    """The parts of a state whose arrays are the rows of the blocks. (Records cannot be returned by a kernel.)"""
    limits = Limits(counts[0], numbers[0])
    sums = numbers[1], numbers[2], numbers[3], numbers[4]
    arms = Estimates(counts[1], *sums, numbers[5], numbers[6], numbers[WIDTH_ROW])
    return limits, arms, Scratch(numbers[8], numbers[9])


def state_over(packed: Packed) -> State:
    """The state in packed arrays: a view of them."""
    limits, arms, scratch = plain(rows_of)(packed.counts, packed.numbers)
    return State(packed.clock[0], limits, arms, packed.memory[0], packed.table, scratch)


def blank(clock: Records, memory: Records, arms: int, table: Floats) -> Packed:
    """Arms of which nothing is known."""
    numbers = np.zeros((NUMBER_ROWS, arms))
    numbers[WIDTH_ROW] = np.inf
    return Packed(clock, memory, np.zeros((COUNT_ROWS, arms), np.int64), numbers, table)


def ask_packed(params: Any, clock: Records, memory: Records, counts: Ints, numbers: Floats, table: Floats) -> Any:
    """`engine.ask`, a template like it."""
    limits, arms, scratch = rows_of(counts, numbers)
    return ask(params, State(clock[0], limits, arms, memory[0], table, scratch))


def take_in_packed(
    params: Any,
    clock: Records,
    memory: Records,
    counts: Ints,
    numbers: Floats,
    table: Floats,
    arm: int,
    event: int,
    partner: int,
    reward: float,
    cost: float,
    released: int,
    charged: int,
) -> None:
    """`engine.take_in`, a template like it."""
    limits, arms, scratch = rows_of(counts, numbers)
    state = State(clock[0], limits, arms, memory[0], table, scratch)
    take_in(params, state, arm, event, partner, reward, cost, released, charged)


class Calls(NamedTuple):
    """The two functions of the engine that a live bandit needs all the time."""

    ask: Callable[..., tuple[int, int, int]]
    take_in: Callable[..., None]


@cache
def calls_for(policy: Policy) -> Calls:
    """Compiled, or loaded from the cache, before the first decision must be made in microseconds."""
    name, parts = parts_of(type(policy))  # type: ignore[arg-type]  # mypy takes the class for an object
    setting = Setting(2, 1.0)
    fresh = policy.new_state(setting, 0, 0)
    packed = blank(np.array([fresh.clock]), np.array([fresh.memory]), 2, fresh.table)
    params = policy.params(setting)
    return Calls(
        direct(bind(ask_packed, name, **parts), params, *packed),
        direct(bind(take_in_packed, name, **parts), params, *packed, 0, 1, 0, 0.5, 0.5, 0, 0),
    )

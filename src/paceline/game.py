"""A policy and a world, ready to be played against each other.

With both compiled a round takes some ten nanoseconds. A policy or a world in plain Python is called directly, between
two calls of compiled code that keep the books: a few microseconds a round, and what the Python code itself takes.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paceline.calls import blamed, calls_with, check_choice, part_calls_with
from paceline.engine import Choice
from paceline.grafting import GUARDED, PartCalls, calendar, puller_for, row_writer, simulator_for
from paceline.interrupts import interrupts_held
from paceline.kernels.budget import UNITS, Books
from paceline.kernels.jit import direct, plain_throughout
from paceline.kernels.late import COST, NONE, Late, known_ahead
from paceline.kernels.page import NO_PAGE, Page
from paceline.kernels.state import GUARD, Storage, books_in
from paceline.policies.policy import Policy, Setting
from paceline.policies.python_policy import CHOSEN, PythonPolicy
from paceline.worlds.delays import Delays
from paceline.worlds.python_world import PlayedWorld
from paceline.worlds.world import World

Ints = npt.NDArray[np.int64]
Costs = tuple[float, ...]
Outcome = tuple[float, Costs]  # a reward, and the costs

ahead_in_python = plain_throughout(known_ahead)


class Played(NamedTuple):
    """A policy and a world that are ready to be played against each other, step by step."""

    params: Any
    storage: Storage
    until: Callable[[int], None]  # play on until so many rounds are settled
    is_in_python: bool  # the policy, or the world, or both
    late: Late | None = None  # where news is late: what is on its way, and the truth


def prepare(
    policy: Policy,
    world: World | PlayedWorld,
    setting: Setting,
    delays: Delays | None = None,
    rules: str = GUARDED,
    page: Page | None = None,
) -> Played:
    """A game before its first round; policy and world may be compiled or in plain Python.

    With both compiled a round takes some ten nanoseconds, else a few microseconds and what the Python code takes. Only
    here, where nothing is at stake, can a game be had by other rules than the guard's. With a ``page`` the rounds that
    are wanted on it are written down.
    """
    setting = setting.seen_by(policy)
    storage = policy.new_storage(setting, setting.seed, setting.stream)
    late = None if delays is None else delays.calendar(setting.arms, setting.resources)
    with blamed(policy, setting):
        params = policy.params(setting)
        if isinstance(policy, PythonPolicy) or isinstance(world, PlayedWorld):
            return Played(params, storage, in_python(policy, params, storage, world, late, rules, page), True, late)
        loop = simulator_for(type(policy), type(world), late is not None, rules, page is not None)
        data = (world.data, *([] if late is None else [late]), NO_PAGE if page is None else page)
        with interrupts_held():  # inside the compiler an interrupt may get lost
            loop(params, storage, *data, 0)

    def until(rounds: int) -> None:
        loop(params, storage, *data, rounds)
        check_choice(policy, storage)

    return Played(params, storage, until, False, late)


def in_python(
    policy: Policy,
    params: Any,
    storage: Storage,
    world: World | PlayedWorld,
    late: Late | None,
    rules: str,
    page: Page | None,
) -> Callable[[int], None]:
    """A loop over rounds in plain Python, for a policy or a world that is."""
    ask_one, tell_one = calls_with(policy, params, storage, rules)
    books = books_in(storage)
    if late is None:
        course = at_once(books, partial(tell_one, params, storage))
    else:
        course = later(storage, books, part_calls_with(policy, params, storage), params, late)
    settle = settler(storage, world, course, page)
    tally = books.tally

    def until(rounds: int) -> None:
        while tally.t < rounds:
            choice = ask_one(params, storage)
            if choice[1] == GUARD:
                check_choice(policy, storage, params)
            if settle(choice) is None:
                return

    return until


def settler(
    storage: Storage, world: World | PlayedWorld, course: "Course", page: Page | None = None
) -> Callable[[Choice], Outcome | None]:
    """What ends a round that has begun with a choice: it gives its outcome, or None if the world has no more."""
    outcome_of = pulled(world, storage) if isinstance(world, World) else world.outcome
    tally, nothing = books_in(storage).tally, (0.0, (0.0,) * len(storage.resources))
    begun, spent, take_in, end_round = course
    arms = begun.size
    write = None if page is None else writer_on(page, storage, spent)

    def settle(choice: Choice) -> Outcome | None:
        arm, outcome = choice[0], nothing
        if 0 <= arm < arms:
            outcome = outcome_of(int(tally.t), arm, int(begun[arm]))
            if math.isnan(outcome[0]):
                return None
            take_in(choice, *outcome)
        end_round()
        if write is not None:
            write(choice, outcome)
        return outcome

    return settle


def writer_on(page: Page, storage: Storage, spent: Ints) -> Callable[[Choice, Outcome], None]:
    """What writes a round down that is over."""
    row = direct(row_writer(), page, storage, 0, CHOSEN, 0, 0.5, (0.5,) * len(storage.resources), spent)

    def write(choice: Choice, outcome: Outcome) -> None:
        row(page, storage, *choice, *outcome, spent)

    return write


class Course(NamedTuple):
    """The way that news takes in a loop in Python."""

    begun: Ints  # (K,): pulls so far, whether their outcome is known or not, and
    spent: Ints  # (D,): units that they have cost
    take_in: Callable[[Choice, float, Costs], None]
    end_round: Callable[[], None]


def at_once(books: Books, tell: Callable[..., None]) -> Course:
    """Every outcome is told before the next round."""
    largest = [tuple(units) for units in books.largest.tolist()]

    def take_in(choice: Choice, reward: float, cost: Costs) -> None:
        tell(*choice, reward, cost, largest[choice[0]], charges_of(cost))

    return Course(books.pulls, books.spent, take_in, lambda: None)


def later(storage: Storage, books: Books, calls: PartCalls, params: Any, late: Late) -> Course:
    """Outcomes go on the calendar, and are told when they arrive."""
    count = len(storage.resources)
    largest, nothing, unknown = [tuple(units) for units in books.largest.tolist()], (0,) * count, (math.nan,) * count
    post, news = calendar()
    post, news = direct(post, late, storage, 0, 0, 0, 0.5, books.cost), direct(news, late, storage)

    def take_in(choice: Choice, reward: float, cost: Costs) -> None:
        books.cost[:] = cost
        post(late, storage, *choice, reward, books.cost)

    def end_round() -> None:
        while (entry := news(late, storage)) != NONE:
            slot, is_cost = entry >> 1, entry & 1 == COST
            arm, reason, tag = late.decisions[slot].tolist()
            reward, cost = float(late.rewards[slot]), tuple(late.costs[slot].tolist())
            units = (largest[arm], charges_of(cost)) if is_cost else (nothing, nothing)
            if late.missing[slot] == 0:
                ahead = ahead_in_python(late, is_cost, storage.resources)
                calls.tell_rest(params, storage, arm, reason, tag, reward, cost, *units, ahead)
            elif is_cost:
                calls.tell_part(params, storage, arm, math.nan, cost, *units)
            else:
                calls.tell_part(params, storage, arm, reward, unknown, *units)

    return Course(late.begun, late.spent, take_in, end_round)


def charges_of(cost: Costs) -> tuple[int, ...]:
    """Costs in units, rounded up."""
    return tuple(math.ceil(entry * UNITS) for entry in cost)


def pulled(world: World, storage: Storage) -> Callable[[int, int, int], Outcome]:
    """The outcomes of a compiled world, asked for from Python."""
    cost, data, clock = np.zeros(len(storage.resources)), world.data, storage.tally
    pull = direct(puller_for(type(world)), data, clock, 0, 0, cost)

    def outcome_of(_: int, arm: int, count: int) -> Outcome:
        return pull(data, clock, arm, count, cost), tuple(cost.tolist())

    return outcome_of

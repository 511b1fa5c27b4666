"""A policy and a world, ready to be played against each other; and a policy ready for a live program.

With both compiled a round takes some ten nanoseconds. A policy or a world in plain Python is called directly, between
two calls of compiled code that keep the books: a few microseconds a round, and what the Python code itself takes.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paceline.engine import BAD_ARM, BAD_REASON, BAD_TAG, NO_FAULT, Choice
from paceline.errors import InvalidPolicy
from paceline.grafting import (
    GUARDED,
    Calls,
    PartCalls,
    bound_calls,
    bound_carrier,
    bound_part_calls,
    bound_rare_calls,
    calendar,
    puller_for,
    row_writer,
    simulator_for,
)
from paceline.interrupts import interrupts_held
from paceline.kernels.budget import UNITS, Books
from paceline.kernels.jit import CompilerError, direct, is_kept, plain_throughout
from paceline.kernels.late import COST, NONE, Late, known_ahead
from paceline.kernels.page import NO_PAGE, Page
from paceline.kernels.state import GUARD, SKIP, Storage, books_in
from paceline.policies.policy import Policy, Setting, renew_nothing
from paceline.policies.python_policy import CARRIED, CHOSEN, Carrier, PythonPolicy, Session, described
from paceline.policies.rules import blame, check_functions, is_ours
from paceline.worlds.delays import Delays
from paceline.worlds.python_world import PlayedWorld
from paceline.worlds.world import World

Ints = npt.NDArray[np.int64]


def calls_for(policy: Policy, resources: int) -> Calls:
    """Compiled, or loaded from the cache, before the first decision must be made in microseconds.

    They may be called with the policy's numbers for any number of arms, if the types of these numbers are the same for
    all of them, as those of our policies are.
    """
    if isinstance(policy, PythonPolicy):
        check_functions(policy)
        return IN_PYTHON
    setting = example_setting(resources)
    with blamed(policy, setting):
        return calls_with(policy, policy.params(setting), policy.new_storage(setting, 0, 0))


def calls_with(policy: Policy, params: Any, storage: Storage, rules: str = GUARDED) -> Calls:
    """The same for arguments of the types of these."""
    if isinstance(policy, PythonPolicy):
        return IN_PYTHON if rules == GUARDED else IN_PYTHON._replace(ask=partial(ask_in_python, rules=rules))
    calls = bound_calls(type(policy), rules)
    if policy.renew is not renew_nothing and not is_ours(policy):
        part_calls_with(policy, params, storage)  # what does not compile is refused before the first round
    return Calls(direct(calls.ask, params, storage), direct(calls.tell, params, storage, *example_news(storage)))


def part_calls_for(policy: Policy, resources: int) -> PartCalls:
    """`calls_for` for the functions that take in parts of an outcome; they are not compiled before one is told."""
    setting = example_setting(resources)
    return part_calls_with(policy, policy.params(setting), policy.new_storage(setting, 0, 0))


def part_calls_with(policy: Policy, params: Any, storage: Storage) -> PartCalls:
    """The same for arguments of the types of these."""
    if isinstance(policy, PythonPolicy):
        return PARTS_IN_PYTHON
    calls = bound_part_calls(type(policy))
    part, rest = example_part(storage), (*example_news(storage), 0)
    return PartCalls(direct(calls.tell_part, params, storage, *part), direct(calls.tell_rest, params, storage, *rest))


def calls_on_disk(policy: Policy, resources: int) -> bool:
    """Whether `calls_for` would find machine code, or has no use for any; true where there is no telling."""
    if isinstance(policy, PythonPolicy):
        return True
    setting, calls = example_setting(resources), bound_calls(type(policy))
    start = policy.params(setting), policy.new_storage(setting, 0, 0)
    return is_kept(calls.ask, *start) and is_kept(calls.tell, *start, *example_news(start[1]))


def part_calls_on_disk(policy: Policy, resources: int) -> bool:
    """The same for `part_calls_for`."""
    if isinstance(policy, PythonPolicy):
        return True
    setting, calls = example_setting(resources), bound_part_calls(type(policy))
    start = policy.params(setting), policy.new_storage(setting, 0, 0)
    part, rest = example_part(start[1]), (*example_news(start[1]), 0)
    return is_kept(calls.tell_part, *start, *part) and is_kept(calls.tell_rest, *start, *rest)


class LearningCalls(NamedTuple):
    """The functions that learn from elsewhere."""

    teach: Callable[..., None]
    refresh: Callable[..., None]


def learning_calls_for(policy: Policy, resources: int) -> LearningCalls:
    """`calls_for` for the functions that learn from elsewhere."""
    teaching, refreshing = learning_calls_with_examples(policy, resources)
    return LearningCalls(direct(*teaching), direct(*refreshing))


def learning_calls_on_disk(policy: Policy, resources: int) -> bool:
    """The same as `calls_on_disk` for `learning_calls_for`."""
    return all(is_kept(*each) for each in learning_calls_with_examples(policy, resources))


def learning_calls_with_examples(policy: Policy, resources: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The functions that learn from elsewhere, each with arguments of the types that it is called with."""
    setting, calls = example_setting(resources), bound_rare_calls(type(policy))
    start = policy.params(setting), policy.new_storage(setting, 0, 0)
    return (calls.teach, *start, *example_lesson(start[1])), (calls.refresh, *start)


def example_lesson(storage: Storage) -> tuple[Any, ...]:
    """What `teach` is told of a pull that was made elsewhere."""
    return 0, 0.5, (0.5,) * len(storage.resources)


def example_setting(resources: int) -> Setting:
    """What counts is the types."""
    return Setting(2, (1.0,) * resources, rounds=1000)


def example_news(storage: Storage) -> tuple[Any, ...]:
    """The arguments of `tell` from the arm on; again it is the types that count."""
    resources = len(storage.resources)
    none = (0,) * resources
    return 0, CHOSEN, 0, 0.5, (0.5,) * resources, none, none


def example_part(storage: Storage) -> tuple[Any, ...]:
    """The arguments of `tell_part` from the arm on."""
    arm, _, _, *told = example_news(storage)
    return arm, *told


@cache
def carrier_for(
    resources: int, rules: str = GUARDED
) -> tuple[Callable[..., None], Callable[..., Choice], Callable[..., None]]:
    """The same, ready to be called with so many resources."""
    storage = Carrier().new_storage(example_setting(resources), 0, 0)
    open_one, take_one, tell_one = bound_carrier(rules)
    return (
        direct(open_one, storage),
        direct(take_one, CARRIED, storage, 0, CHOSEN),
        direct(tell_one, CARRIED, storage, *example_news(storage)),
    )


def follower_with(policy: Policy, params: Any, storage: Storage) -> Callable[..., None]:
    """`follow` for arguments of the types of these: begin a round with a decision that was made earlier."""
    if isinstance(policy, PythonPolicy):
        return follow_in_python
    return direct(bound_rare_calls(type(policy)).follow, params, storage, 0, CHOSEN, 0)


def follower_for(policy: Policy, resources: int) -> Callable[..., None]:
    """`calls_for` for `follow`."""
    setting = example_setting(resources)
    return follower_with(policy, policy.params(setting), policy.new_storage(setting, 0, 0))


def follower_on_disk(policy: Policy, resources: int) -> bool:
    """The same as `calls_on_disk` for `follower_for`."""
    setting = example_setting(resources)
    start = policy.params(setting), policy.new_storage(setting, 0, 0)
    return is_kept(bound_rare_calls(type(policy)).follow, *start, 0, CHOSEN, 0)


def teacher_with(policy: Policy, params: Any, storage: Storage) -> Callable[..., None]:
    """`teach` for arguments of the types of these: learn from a pull that was made elsewhere."""
    if isinstance(policy, PythonPolicy):
        return teach_in_python
    return direct(bound_rare_calls(type(policy)).teach, params, storage, *example_lesson(storage))


def ask_in_python(session: Session, storage: Storage, rules: str = GUARDED) -> Choice:
    """`ask` for a plain-Python policy. A round with a choice that it must not make is sat out, as by a compiled one."""
    open_one, take_one, _ = carrier_for(len(storage.resources), rules)
    open_one(storage)
    if storage.limits.shape[0] == 0:  # live, when no arm is in play
        return take_one(CARRIED, storage, SKIP, GUARD)
    try:
        arm = session.choose(storage)
    except InvalidPolicy as mistake:
        session.mistake = mistake
        storage.tally["fault"] = BAD_ARM
        return take_one(CARRIED, storage, SKIP, GUARD)
    return take_one(CARRIED, storage, arm, CHOSEN)


def tell_in_python(
    session: Session,
    storage: Storage,
    arm: int,
    reason: int,
    tag: int,
    reward: float,
    cost: Any,
    released: Any,
    charged: Any,
) -> None:
    """`tell` for a plain-Python policy. One whose arms have changed since has begun anew; it learns from the next."""
    _, _, tell_one = carrier_for(len(storage.resources))
    tell_one(CARRIED, storage, arm, reason, tag, reward, cost, released, charged)
    if session.arms == storage.limits.shape[0]:
        session.learn(storage, arm, reward, cost)


IN_PYTHON = Calls(ask_in_python, tell_in_python)


@cache
def carrier_parts_for(resources: int) -> PartCalls:
    """What takes in parts of an outcome for every plain-Python policy."""
    carrier = Carrier()
    return part_calls_with(carrier, CARRIED, carrier.new_storage(example_setting(resources), 0, 0))


def tell_part_in_python(_: Session, storage: Storage, *part: Any) -> None:
    """`tell_part` for a plain-Python policy, which finds what is new in the estimates when it chooses."""
    carrier_parts_for(len(storage.resources)).tell_part(CARRIED, storage, *part)


def tell_rest_in_python(session: Session, storage: Storage, *news: Any) -> None:
    """`tell_rest` for a plain-Python policy, which learns from the whole outcome as if it had come at once."""
    carrier_parts_for(len(storage.resources)).tell_rest(CARRIED, storage, *news)
    arm, _, _, reward, cost, *_ = news
    if session.arms == storage.limits.shape[0]:
        session.learn(storage, arm, reward, cost)


PARTS_IN_PYTHON = PartCalls(tell_part_in_python, tell_rest_in_python)


def follow_in_python(session: Session, storage: Storage, arm: int, reason: int, tag: int) -> None:
    """`follow` for a plain-Python policy. It is asked again, for what it draws and notes while choosing.

    What it says is not heeded, be it an error: its code may have been edited since.
    """
    open_one, take_one, _ = carrier_for(len(storage.resources))
    open_one(storage)
    if storage.limits.shape[0] > 0:
        with suppress(Exception):
            session.choose(storage)
    take_one(CARRIED, storage, arm, reason)
    storage.tally["tag"] = tag  # of a refusal it is the arm that was refused


def teach_in_python(session: Session, storage: Storage, arm: int, reward: float, cost: Any) -> None:
    """`teach` for a plain-Python policy."""
    bound_rare_calls(Carrier).teach(CARRIED, storage, arm, reward, cost)
    if session.arms == storage.limits.shape[0]:
        session.learn(storage, arm, reward, cost)


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


def check_choice(policy: Policy, storage: Storage, params: Any = None) -> None:
    """Raise if the policy made a choice that it must not make; of one in Python its params know which."""
    tally = storage.tally[0]
    if tally.fault == NO_FAULT:
        return
    if isinstance(params, Session) and params.mistake is not None:
        raise params.mistake
    where = described(type(policy), "choose")
    if isinstance(policy, PythonPolicy):
        raise InvalidPolicy(f"{where} must give an arm from 0 to {storage.limits.shape[0] - 1}, or None, got neither")
    arms, last = storage.limits.shape[0], len(policy.reasons) - 1
    an_arm = f"an arm from -1 (skip) to {arms} (null arm)"
    rule = {BAD_ARM: an_arm, BAD_REASON: f"a reason from 1 to {last}", BAD_TAG: f"a tag that is {an_arm}"}[
        int(tally.fault)
    ]
    raise InvalidPolicy(f"{where} must choose {rule}, got {tally.faulty}")


@contextmanager
def blamed(policy: Policy, setting: Setting) -> Iterator[None]:
    """Check the functions of a policy, and say in one line what is wrong with them if they cannot be compiled."""
    check_functions(policy)
    try:
        yield
    except (CompilerError, TypeError) as error:  # numba has the latter for arguments of a tuple that are missing
        raise blame(policy, setting, error) from None

"""The functions of the engine ready to be called from Python with a policy: compiled, or around plain Python.

A live program needs them all the time, and so does a loop over rounds in Python. Those of a compiled policy are found
on the disk or compiled. A policy in plain Python is called directly, between two calls of compiled code that keep the
books.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from typing import Any, NamedTuple

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
)
from paceline.kernels.jit import CompilerError, direct, is_kept
from paceline.kernels.state import GUARD, SKIP, Storage
from paceline.policies.policy import Policy, Setting, renew_nothing
from paceline.policies.python_policy import CARRIED, CHOSEN, Carrier, PythonPolicy, Session, described
from paceline.policies.rules import blame, check_functions, is_ours


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
    """The compiled half of every plain-Python policy, ready to be called with so many resources."""
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

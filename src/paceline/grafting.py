"""The templates of the engine with the functions of a policy and of a world in their places, ready to be compiled.

What is made here is kept for each kind of policy and world, and compiled when it is first called, once per machine (see
kernels/jit.py).
"""

import inspect
from collections.abc import Callable
from functools import cache as functools_cache
from functools import wraps
from typing import Any, NamedTuple, TypeVar, cast

from paceline.engine import (
    Choice,
    ask,
    begin,
    choose_again,
    choose_not,
    conclude,
    conclude_rest,
    decide,
    deliver,
    enter_freely,
    fall_back,
    finish,
    follow,
    news_once,
    open_turn,
    pay_anything,
    post_once,
    pull_once,
    refresh,
    simulate,
    simulate_late,
    sit_out,
    take_part,
    take_turn,
    teach,
    tell,
    tell_part,
    tell_rest,
    write_once,
)
from paceline.kernels.jit import bind, counted_kernel, graft, kernel, plain
from paceline.kernels.page import write_nothing, write_row
from paceline.kernels.state import book_rows, state_rows
from paceline.policies.policy import Policy, commit_nothing
from paceline.policies.python_policy import Carrier
from paceline.worlds.world import World

Function = TypeVar("Function", bound=Callable[..., Any])


def cache(function: Function) -> Function:
    """Remember what a function gave.

    Functools' own decorator hides the types of the arguments from type checkers, and an argument that is left out is
    not the same to it as one that is given as its default: what is compiled would be there twice.
    """
    remembered, signature = functools_cache(function), inspect.signature(function)

    @wraps(function)
    def recall(*given: Any, **named: Any) -> Any:
        meant = signature.bind(*given, **named)
        meant.apply_defaults()
        return remembered(*meant.args, **meant.kwargs)

    return cast(Function, recall)


Parts = dict[str, Callable[..., Any]]
FUNCTIONS = ("choose", "learn", "commit", "renew")  # of a policy

# The rules of a game. The guard's are those of every live bandit; the others are for simulations alone.
GUARDED, UNGUARDED, FALLING_BACK = "", " without the guard", " with a fallback arm"
STAND_INS: dict[str, Parts] = {
    GUARDED: {},
    UNGUARDED: {"enter": enter_freely, "can_pay": pay_anything, "admits": pay_anything},
    FALLING_BACK: {"as_decided": fall_back},
}


@cache
def policy_parts(policy: type[Policy], rules: str = GUARDED) -> tuple[str, bool, Parts]:
    """What `jit.bind` needs to make a function of a policy: a name, whether it allocates, what the templates name.

    By other rules than the guard's, other functions stand in the places of some of the engine's. The name says so: such
    code is filed apart.
    """
    counted = policy.allocates
    as_kernel = counted_kernel if counted else kernel
    functions = {name: as_kernel(getattr(policy, name)) for name in FUNCTIONS}
    return f"{code_name(policy)}{rules}", counted, graft_templates(policy, counted, functions, rules)


def code_name(policy: type[Policy]) -> str:
    """What the machine code of a policy is filed under: all that it is made of. Presets of a policy share it."""
    functions = [plain(getattr(policy, name)) for name in FUNCTIONS]
    names = [f"{function.__module__}.{function.__qualname__}" for function in functions]
    return " ".join([*names, f"{len(policy.reasons)}", f"{policy.tag_is_arm}"])


def graft_templates(policy: type[Policy], counted: bool, functions: Parts, rules: str = GUARDED) -> Parts:
    """The templates with these functions in the place of a policy's."""
    count, is_arm = len(policy.reasons), policy.tag_is_arm
    as_kernel = counted_kernel if counted else kernel
    needs_choice = policy.commit is not commit_nothing
    parts: Parts = {**functions, "reasons": as_kernel(lambda: count), "tag_is_arm": as_kernel(lambda: is_arm)}
    parts |= STAND_INS[rules]
    parts["rechoose"] = graft(choose_again if needs_choice else choose_not, counted, **parts)
    rounds = book_rows, state_rows, decide, sit_out, begin, ask, follow, teach
    news = finish, conclude, conclude_rest, take_part, deliver, tell, tell_part, tell_rest
    for template in (*rounds, *news):
        parts[template.__name__] = graft(template, counted, **parts)
    return parts


@cache
def simulator_for(
    policy: type[Policy], world: type[World], is_late: bool = False, rules: str = GUARDED, is_kept: bool = False
) -> Callable[..., None]:
    """`simulate`, or `simulate_late`, for a policy on a kind of world. It is compiled when it is first called.

    With ``is_kept`` it writes history to a page, else it takes `NO_PAGE` in its place.
    """
    name, counted, parts = policy_parts(policy, rules)
    template, row = simulate_late if is_late else simulate, write_row if is_kept else write_nothing
    title = f"{name} on {world.__module__}" + (" with history" if is_kept else "")
    return bind(template, title, counted, **parts, outcome=kernel(world.outcome), write_row=row)


class Calls(NamedTuple):
    """The two functions of the engine that a live bandit needs all the time."""

    ask: Callable[..., Choice]
    tell: Callable[..., None]


class RareCalls(NamedTuple):
    """Those that it needs now and then: to read a journal, to learn from elsewhere."""

    follow: Callable[..., None]
    teach: Callable[..., None]
    refresh: Callable[..., None]


@cache
def bound_rare_calls(policy: type[Policy]) -> RareCalls:
    """They are compiled when they are first called."""
    name, counted, parts = policy_parts(policy)
    return RareCalls(*(bind(template, name, counted, **parts) for template in (follow, teach, refresh)))


@cache
def bound_calls(policy: type[Policy], rules: str = GUARDED) -> Calls:
    """`ask` and `tell` for a policy, waiting to be compiled."""
    name, counted, parts = policy_parts(policy, rules)
    return Calls(bind(ask, name, counted, **parts), bind(tell, name, counted, **parts))


class PartCalls(NamedTuple):
    """Those that it needs where the parts of an outcome become known one by one."""

    tell_part: Callable[..., None]
    tell_rest: Callable[..., None]


@cache
def bound_part_calls(policy: type[Policy]) -> PartCalls:
    """`tell_part` and `tell_rest` for a policy, waiting to be compiled."""
    name, counted, parts = policy_parts(policy)
    return PartCalls(bind(tell_part, name, counted, **parts), bind(tell_rest, name, counted, **parts))


@cache
def bound_carrier(rules: str) -> tuple[Callable[..., None], Callable[..., Choice], Callable[..., None]]:
    """The compiled half of every plain-Python policy: open a round, begin it with a choice, settle a pull."""
    name, counted, parts = policy_parts(Carrier, rules)
    return (
        bind(open_turn, name, counted, **parts),
        bind(take_turn, name, counted, **parts),
        bind(tell, name, counted, **parts),
    )


@cache
def puller_for(world: type[World]) -> Callable[..., float]:
    """The outcome of a compiled world, for a loop in Python."""
    return bind(pull_once, world.__module__, counted=False, outcome=kernel(world.outcome))


@cache
def calendar() -> tuple[Callable[..., None], Callable[..., int]]:
    """The calendar of late news, for a loop in Python: put an outcome on its way, take the next news."""
    return bind(post_once, "late", counted=False), bind(news_once, "late", counted=False)


@cache
def row_writer() -> Callable[..., None]:
    """What writes history, for a loop in Python."""
    return bind(write_once, "history", counted=False, write_row=write_row)

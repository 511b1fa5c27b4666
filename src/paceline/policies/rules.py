"""The rules of the form, checked on the code of a policy: one line that names the class, the line and the rule."""

import dis
import inspect
import random
import sys
import types
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

from paceline.errors import InvalidPolicy
from paceline.kernels.jit import CompilerError, compiled_result, plain, where_it_failed
from paceline.kernels.state import Decision, state_in
from paceline.policies.policy import Policy, Setting
from paceline.policies.python_policy import PythonPolicy, described

ARGUMENTS = {"choose": 2, "learn": 5, "commit": 3, "renew": 3}
# Ways to make a generator of one's own: it draws nothing that others share.
GENERATORS = {"default_rng", "Generator", "SeedSequence", "RandomState", "Philox", "PCG64", "MT19937", "Random"}


def check_functions(policy: Policy) -> None:
    """Refuse a policy of the user's own whose functions cannot be right."""
    if not is_ours(policy):
        check_class(type(policy))  # type: ignore[arg-type]  # mypy takes the class for an object


def is_ours(policy: Policy) -> bool:
    """Whether a policy comes with paceline."""
    return type(policy).__module__.startswith("paceline.")


@cache
def check_class(policy: type[Policy]) -> None:
    """The same, once for each class."""
    if issubclass(policy, PythonPolicy):
        functions = own_functions(policy)
        if policy.choose is PythonPolicy.choose:
            raise InvalidPolicy(f"{policy.__name__} must have a function choose(self, state), got none")
    else:
        functions = {name: checked_function(policy, name) for name in ARGUMENTS}
        reasons = getattr(policy, "reasons", None)
        if not isinstance(reasons, tuple) or len(reasons) < 2 or not all(isinstance(text, str) for text in reasons):
            rule = "a tuple of at least two texts, the first for the guard's refusal"
            raise InvalidPolicy(f"{policy.__name__}.reasons must be {rule}, got {reasons!r}")
    for name, function in functions.items():
        for line, drawn in hidden_draws(function):
            where = f"{policy.__name__}.{name} (line {line})"
            rule = "must draw from (seed, stream, counter) or setting.generator() only"
            raise InvalidPolicy(f"{where} {rule}, got a draw from {drawn}")


def own_functions(policy: type[Policy]) -> dict[str, Any]:
    """The functions of a class and of those that it is derived from, as far as they are the user's own."""
    found = {name: value for kind in reversed(policy.__mro__) for name, value in vars(kind).items()}
    functions = {name: value for name, value in found.items() if isinstance(value, types.FunctionType)}
    return {name: function for name, function in functions.items() if not is_from_a_library(function)}


def checked_function(policy: type[Policy], name: str) -> Any:
    """One of the functions of a compiled policy, if it can be called as the engine will call it."""
    function = plain(getattr(policy, name, None))
    if not isinstance(function, types.FunctionType):
        raise InvalidPolicy(f"{policy.__name__} must have a function {name}, got {function!r}")
    count = len(inspect.signature(function).parameters)
    if count != ARGUMENTS[name]:
        where = described(policy, name)
        raise InvalidPolicy(f"{where} must take {ARGUMENTS[name]} arguments (is it a staticmethod?), got {count}")
    return function


def hidden_draws(function: Callable[..., Any]) -> Iterator[tuple[int, str]]:
    """Lines of a function, and of the user's own functions that it calls, that draw from a shared generator."""
    waiting, seen = [function], set[Any]()
    while waiting:
        looked_at = waiting.pop()
        if looked_at in seen:
            continue
        seen.add(looked_at)
        for line, names, value in names_used(looked_at):
            if is_shared_generator(value):
                yield line, ".".join(names)
            other = plain(value)
            if isinstance(other, types.FunctionType) and not is_from_a_library(other):
                waiting.append(other)


def names_used(function: Any) -> Iterator[tuple[int, tuple[str, ...], object]]:
    """Dotted names that a function reads, with the line and the value, as far as modules lead.

    What it imports itself, and what comprehensions and functions within it read, is among them.
    """
    known: dict[str, tuple[tuple[str, ...], object]] = {}  # local names of what modules lead to
    for code in codes_in(function.__code__):
        line, constant = code.co_firstlineno, None
        names: tuple[str, ...] = ()
        value: object = None
        for step in dis.get_instructions(code):
            line = (step.positions and step.positions.lineno) or line
            kind, name = step.opname, str(step.argval)
            if kind.startswith("STORE_"):
                known.pop(name, None)
                if value is not None:
                    known[name] = names, value
            if kind == "LOAD_GLOBAL":
                names, value = (name,), function.__globals__.get(name)
            elif kind in {"LOAD_FAST", "LOAD_DEREF"} and name in known:
                names, value = known[name]
            elif kind == "IMPORT_NAME":  # without names to import from it, it is the package that is found
                names = (name if constant else name.partition(".")[0],)
                value = sys.modules.get(names[0])
            elif kind in {"LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM"} and isinstance(value, types.ModuleType):
                names, value = (*names, name), getattr(value, name, None)
            else:
                names, value, constant = (), None, step.argval
                continue
            yield line, names, value


def codes_in(code: types.CodeType) -> Iterator[types.CodeType]:
    """A piece of code, and those of comprehensions and functions within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes_in(constant)


def is_shared_generator(value: object) -> bool:
    """Whether a value is a generator that all share, or a function of Python's or NumPy's.

    >>> [is_shared_generator(value) for value in (random.random, np.random.rand, np.random.Generator)]
    [True, True, False]
    """
    if isinstance(value, random.Random | np.random.RandomState | np.random.Generator):
        return True
    if getattr(value, "__name__", "") in GENERATORS or isinstance(value, types.ModuleType):
        return False
    owner = getattr(value, "__self__", None)
    return isinstance(owner, random.Random | np.random.RandomState) or getattr(value, "__module__", "") in {
        "random",
        "numpy.random",
        "numpy.random.mtrand",
    }


def is_from_a_library(function: types.FunctionType) -> bool:
    """Whether a function comes with an installed package: those are not read."""
    package = (function.__module__ or "").partition(".")[0]  # code that was typed may have no module
    return package in {"paceline", "numba", "numpy"} or "site-packages" in function.__code__.co_filename


def blame(policy: Policy, setting: Setting, error: CompilerError | TypeError) -> Exception:
    """What is wrong with a policy that does not compile: found by compiling its functions one by one."""
    example = Decision(0, 1, 0)
    params, state = policy.params(setting), state_in(policy.new_storage(setting, 0, 0))
    calls = {
        "choose": (params, state),
        "commit": (params, state, example),
        "learn": (params, state, example, 0.5, np.zeros(setting.resources)),
        "renew": (params, state, 0),
    }
    for name, arguments in calls.items():
        function = plain(getattr(policy, name))
        where = described(type(policy), name)
        try:
            answer, fields = compiled_result(function, *arguments)
        except (CompilerError, TypeError) as found:
            line, rule = where_it_failed(found, function)
            return InvalidPolicy(f"{type(policy).__name__}.{name} (line {line}) must compile, but: {rule}")
        expected, names = compiled_result(example_choice, 0)
        if name == "choose" and (answer, fields) != (expected, names):
            other = f", another class with {', '.join(fields)}: take that of paceline.policies"
            got = answer + (other if answer == expected else "")
            return InvalidPolicy(f"{where} must return Decision(arm, reason, tag) of whole numbers, got {got}")
    if isinstance(error, TypeError):
        return error  # of something else
    line, rule = where_it_failed(error, plain(policy.choose))
    if not policy.allocates:
        rule = "must say allocates = True, or make no arrays and call no functions that do"
        return InvalidPolicy(f"{type(policy).__name__} (line {line}) {rule}, got allocates = False")
    return InvalidPolicy(f"{type(policy).__name__} (line {line}) must compile, but: {rule}")


def example_choice(number: int) -> Decision:
    """What a choice looks like to the compiler."""
    return Decision(number, number, number)

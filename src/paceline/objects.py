"""Objects of the user's own: what they keep, in words, copied and saved."""

import copy
import pickle
import re
from collections.abc import Callable, Mapping
from hashlib import sha256
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, TypeVar, cast

import numpy as np

from paceline.errors import PacelineError, in_one_line

Thing = TypeVar("Thing")
Result = TypeVar("Result")

LONGEST = 80  # a value in words
DEEPEST = 8  # objects within objects; one may hold itself
FEW = 20  # entries of an array that are written out


def attributes(thing: object) -> dict[str, Any]:
    """What an object keeps, by name, whether in a dictionary or in slots.

    >>> class Slotted:
    ...     __slots__ = ("step",)
    >>> slotted = Slotted()
    >>> slotted.step = 2
    >>> attributes(slotted)
    {'step': 2}
    """
    state = thing.__getstate__()
    parts = [part for part in (state if isinstance(state, tuple) else (state,)) if part is not None]
    if not all(isinstance(part, dict) for part in parts):
        return {"state": state}  # in a form of its own
    return {name: value for part in parts for name, value in cast(dict[str, Any], part).items()}


def copied(thing: Thing, refusal: type[PacelineError]) -> Thing:
    """A copy of an object with all that it keeps."""
    return cast(Thing, handled(copy.deepcopy, thing, thing, "copied for each trial", refusal))


def dumped(thing: object, refusal: type[PacelineError]) -> bytes:
    """What an object keeps, as bytes."""
    return handled(pickle.dumps, thing, thing.__getstate__(), "pickled to be saved", refusal)


def restore(thing: object, content: bytes) -> None:
    """Give an object what another of its class kept when it was dumped."""
    state = pickle.loads(content)
    if hasattr(thing, "__setstate__"):
        thing.__setstate__(state)
        return
    for part in state if isinstance(state, tuple) else (state,):
        for name, value in (part or {}).items():
            object.__setattr__(thing, name, value)


def handled(
    act: Callable[[Any], Result], thing: object, content: object, rule: str, refusal: type[PacelineError]
) -> Result:
    """What an act on the content of an object gives, or an error that names the attribute that stands in the way."""
    try:
        return act(content)
    except Exception as error:
        name = next((name for name, value in attributes(thing).items() if fails(act, value)), None)
        what = "it" if name is None else f"its attribute {name!r}"
        kind = type(thing).__name__
        reason = in_one_line(error)
        raise refusal(f"{kind} must keep only what can be {rule}, but {what} cannot: {reason}") from error


def fails(act: Callable[[Any], object], value: object) -> bool:
    """Whether an act is impossible."""
    try:
        act(value)
    except Exception:
        return True
    return False


def described_object(thing: object) -> str:
    """The class of an object and what it keeps, the same in every process."""
    kept = ", ".join(f"{name}={in_words(value)}" for name, value in attributes(thing).items())
    return f"{type(thing).__name__}({kept})"


def in_words(value: object) -> str:
    """A value in a few words; of a long one the beginning and a digest.

    >>> in_words({"step": 0.5, "arms": np.arange(3)})
    "{'step': 0.5, 'arms': array([0, 1, 2])}"
    >>> in_words(list(range(100)))
    '[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 1... (51f2696d)'
    """
    text = spelled(value, 0)
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]}... ({digest(text.encode())})"


def spelled(value: object, depth: int) -> str:
    """A value in full, without addresses, which differ from process to process."""
    if depth == DEEPEST:
        return type(value).__name__
    if isinstance(value, np.ndarray):
        few = value.size <= FEW or value.dtype.hasobject
        inside = (
            spelled(value.tolist(), depth + 1) if few else f"{value.dtype}, {value.shape}, {digest(value.tobytes())}"
        )
        return f"array({inside})"
    if type(value) in {list, tuple, set, frozenset, dict}:
        return spelled_container(value, depth + 1)
    if isinstance(value, FunctionType | BuiltinFunctionType | MethodType | ModuleType | type):
        return getattr(value, "__qualname__", value.__name__)
    if type(value).__repr__ is object.__repr__:
        kept = ", ".join(f"{name}={spelled(held, depth + 1)}" for name, held in attributes(value).items())
        return f"{type(value).__name__}({kept})"
    return re.sub(r" at 0x[0-9a-fA-F]+", "", re.sub(r"\s*\n\s*", " ", repr(value)))


def spelled_container(value: Any, depth: int) -> str:
    """A list, tuple, set or mapping; a set in an order that does not depend on the process."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{spelled(key, depth)}: {spelled(held, depth)}" for key, held in value.items()) + "}"
    entries = [spelled(entry, depth) for entry in value]
    if isinstance(value, set | frozenset):
        return "{" + ", ".join(sorted(entries)) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(entries) + "]"
    return f"({entries[0]},)" if len(entries) == 1 else "(" + ", ".join(entries) + ")"


def digest(content: bytes) -> str:
    """A few digits that stand for some bytes."""
    return sha256(content).hexdigest()[:8]

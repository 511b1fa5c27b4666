"""Objects of the user's own: what they keep, in words."""

import re
from collections.abc import Mapping
from hashlib import sha256
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, cast

import numpy as np

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
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


def spelled_container(value: Any, depth: int) -> str:
    """A list, tuple, set or mapping; a set in an order that does not depend on the process."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{spelled(key, depth)}: {spelled(held, depth)}" for key, held in value.items()) + "}"
    entries = [spelled(entry, depth) for entry in value]
    if isinstance(value, set | frozenset):
        return "{" + ", ".join(sorted(entries)) + "}"
    return "[" + ", ".join(entries) + "]" if isinstance(value, list) else "(" + ", ".join(entries) + ")"


def digest(content: bytes) -> str:
    """A few digits that stand for some bytes."""
    return sha256(content).hexdigest()[:8]

"""What a policy remembers of its arms, while arms come and go.

A policy's memory is a NamedTuple of arrays (`Policy.new_memory`). Along an axis that is as long as there are arms, or
one longer for the null arm, an entry belongs to an arm and follows it. Which axes these are is found by asking for the
memory of one arm more: they grow.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from paceline.errors import InvalidPolicy
from paceline.live.runs import Places, Runs
from paceline.policies.policy import Policy
from paceline.policies.rules import is_ours

Axes = tuple[tuple[int | None, ...], ...]  # for each array and axis: entries beyond those of the arms; None if no arms'

FEW = 3  # arms, to try a policy with


def arm_axes_of(policy: Policy, resources: int) -> Axes:
    """The axes of each array of a policy's memory that go along the arms; looked for once for each of ours."""
    return axes_of_ours(policy, resources) if is_ours(policy) else find_arm_axes(policy, resources)


def find_arm_axes(policy: Policy, resources: int) -> Axes:
    """The same for a policy that may not be the same the next time."""
    fewer, more = policy.new_memory(FEW, resources), policy.new_memory(FEW + 1, resources)
    axes = []
    for name, before, after in zip(fewer._fields, fewer, more, strict=True):
        if before.ndim != after.ndim or any(size not in (FEW, FEW + 1) for size in grown_sizes(before, after)):
            raise InvalidPolicy(
                f"{type(policy).__name__}.new_memory must have axes as long as there are arms, one longer, or of a "
                f"length of their own, got {name} of shape {before.shape} for {FEW} arms and {after.shape} for one more"
            )
        axes.append(
            tuple(size - FEW if grown > size else None for size, grown in zip(before.shape, after.shape, strict=True))
        )
    return tuple(axes)


axes_of_ours = lru_cache(find_arm_axes)


def grown_sizes(before: Any, after: Any) -> list[int]:
    """The lengths of the axes that are not what they were, or -1 for one that did not grow by one."""
    pairs = zip(before.shape, after.shape, strict=True)
    return [size if grown == size + 1 else -1 for size, grown in pairs if grown != size]


def lost_from(saved: Mapping[str, Any], memory: Any) -> list[str]:
    """The arrays of a memory that one in a file, as lists, does not have in that form; the policy has changed since.

    Lists say nothing of an axis behind one of length 0, and an array without entries has nothing to lose.
    """
    arrays = memory._asdict().items()
    return [name for name, array in arrays if array.size and np.shape(saved.get(name, ())) != array.shape]


def take_arms(part: Any, axes: Axes, arms: Runs, memory: Any) -> None:
    """Bring the memory of some arms to a memory for these arms alone."""
    for entries, kinds, array in zip(part, axes, memory, strict=True):
        if is_by_arm(kinds):
            for slots, places in arms.each():
                entries[places] = array[slots]
        else:
            entries[...] = array[entries_of(array, kinds, arms.slots)]


def put_arms(memory: Any, axes: Axes, arms: Runs, part: Any) -> None:
    """Put what `take_arms` took, or the memory of so many arms, back to the slots of these arms."""
    for array, kinds, entries in zip(memory, axes, part, strict=True):
        if is_by_arm(kinds):
            for slots, places in arms.each():
                array[slots] = entries[places]
        else:
            array[entries_of(array, kinds, arms.slots)] = entries


def is_by_arm(kinds: tuple[int | None, ...]) -> bool:
    """Whether an array has a row for each arm, and arms nowhere else, as by far the most have."""
    return kinds[:1] == (0,) and all(beyond is None for beyond in kinds[1:])


def entries_of(array: Any, kinds: tuple[int | None, ...], slots: Places) -> Any:
    """An index of the entries of some arms, and of the null arm, along the axes that are the arms'."""
    if all(beyond is None for beyond in kinds):
        return ...
    return np.ix_(
        *(
            np.arange(size) if beyond is None else np.concatenate([slots, np.arange(size - beyond, size)])
            for size, beyond in zip(array.shape, kinds, strict=True)
        )
    )

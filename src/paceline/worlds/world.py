"""The form of a world: what a pull yields.

A world is one plain function and the arrays that it reads; the function is compiled into the loop of each policy.

    outcome(data, clock, arm, count, cost) -> reward     fills cost, one entry per resource

``count`` is the number of pulls of the arm before this one, ``clock`` has the round and the key of the trial's random
numbers. A reward that is not a number says that the world has no more outcomes.
"""

from collections.abc import Callable
from typing import Any, ClassVar


class World:
    """Base of all worlds."""

    outcome: ClassVar[Callable[..., float]]
    data: Any  # a NamedTuple of arrays, handed to ``outcome``

"""Pulls of a live bandit that are not settled: what is reserved or charged for each, and what has been told of it."""

from collections.abc import Callable, MutableMapping
from functools import partial
from typing import Any, NamedTuple

from paceline.live.events import Costs

Units = tuple[int, ...]
Outcome = tuple[float | None, Costs]  # reward and costs

CANCELLED: Outcome = (None, ())  # how a decision ends that was never acted on


class Told(NamedTuple):
    """What has become of a pull before all of it is known."""

    reward: float | None
    costs: Costs
    charged: Units  # so far
    expired: bool
    learned: bool = False  # whether the reward is among what is known of the arm, or shall never be


class Pull(NamedTuple):
    """A pull whose outcome is not fully known. It is replaced, never changed, so that a copy of all is a picture."""

    slot: int
    reason: int
    tag: int  # of a policy whose tags are arms a slot, `NULL`, or SKIP
    reserved: Units  # still set aside
    largest: tuple[float, ...]  # the largest costs that it may be told
    asked: int  # milliseconds
    deadline: int | None = None
    told: Told | None = None  # as long as nothing was told, and it has not expired


Row = tuple[Any, ...]  # the fields of a pull
SLOT, RESERVED, ASKED, TOLD = map(Pull._fields.index, ("slot", "reserved", "asked", "told"))

# A pull from its fields, in half the time that the class would take to sort them out.
as_pull: Callable[[Row], Pull] = partial(tuple.__new__, Pull)


class Finds(MutableMapping[int, Row]):
    """How pulls are found and kept, whatever they are in."""

    def find(self, number: int) -> Pull | None:
        """A pull, if it is here."""
        row = self.get(number)
        return None if row is None else as_pull(row)

    def at(self, number: int) -> Pull:
        """A pull that is here."""
        return as_pull(self[number])

    def put(self, number: int, pull: Pull) -> None:
        """Keep a pull, in place of what was known of it."""
        self[number] = tuple(pull)


class Pulls(dict[int, Row], Finds):
    """The pulls that are not settled, by number, in the order in which they began.

    They are kept as plain tuples. Python's garbage collector looks at a tuple of numbers once and never again; at one
    with names for its fields it would look whenever it looks at everything, which stops the program.
    """


def is_told(pull: Row) -> bool:
    """Whether all of a pull was told; it may be kept back all the same, until its window is over."""
    told = pull[TOLD]
    return told is not None and told.reward is not None and None not in told.costs


def is_expired(pull: Row) -> bool:
    """Whether a pull is not waited for any more."""
    told = pull[TOLD]
    return told is not None and bool(told.expired)


def is_awaited(pull: Row) -> bool:
    """Whether something is still to be told of a pull, and waited for."""
    told = pull[TOLD]
    return told is None or not (told.expired or is_told(pull))

"""Pulls of a live bandit that are not settled: what is reserved or charged for each, and what has been told of it."""

from collections.abc import Callable
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


def is_told(pull: Pull) -> bool:
    """Whether all of a pull was told; it may be kept back all the same, until its window is over."""
    told = pull.told
    return told is not None and told.reward is not None and None not in told.costs


def is_expired(pull: Pull) -> bool:
    """Whether a pull is not waited for any more."""
    return pull.told is not None and pull.told.expired


def is_awaited(pull: Pull) -> bool:
    """Whether something is still to be told of a pull, and waited for."""
    return pull.told is None or not (pull.told.expired or is_told(pull))


# A pull from a tuple of all its fields, in half the time that the class would take to sort them out.
as_pull: Callable[[tuple[Any, ...]], Pull] = partial(tuple.__new__, Pull)

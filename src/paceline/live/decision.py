"""What `Bandit.ask` answers, and what the bandit remembers of it until the outcome is known."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

NULL = -2  # the null arm, where slots are numbers of arms


class Decision(NamedTuple):
    """What to do in one round.

    ``id`` is the number of the round. ``arm`` is the name of an arm, or None: sit this round out. Only a decision with
    an arm waits for `Bandit.tell`.
    """

    id: int
    arm: str | None
    situation: str  # what the policy calls it
    other: str | None = None  # the other arm of the base, or the arm that the guard refused
    headroom: float | None = None  # of a refusal
    largest_cost: float | None = None  # of a refusal
    resource: str | None = None  # that a refusal was short of, where resources have names
    propensity: float | None = None  # its probability, if the policy leaves decisions to chance in a known way

    @property
    def reason(self) -> str:
        """Why, in words.

        >>> Decision(7, "video", "base, pacing", "banner").reason
        'base video/banner, pacing'
        >>> Decision(8, None, "headroom below the largest cost", None, 0.4, 1.0).reason
        'headroom 0.4 < largest cost 1'
        >>> Decision(8, None, "headroom below the largest cost", "video", 0.4, 1.0, "money").reason
        'headroom of money 0.4 < largest cost 1 of video'
        """
        if self.headroom is not None and self.largest_cost is not None:
            what = f" of {self.resource}" if self.resource else ""
            whose = f" of {self.other}" if self.other else ""
            digits = next(
                digits for digits in (4, 8, 17) if f"{self.headroom:.{digits}g}" != f"{self.largest_cost:.{digits}g}"
            )
            return f"headroom{what} {self.headroom:.{digits}g} < largest cost {self.largest_cost:.{digits}g}{whose}"
        if self.other and self.other != self.arm and self.situation.startswith("base"):
            names = f"{self.other}, saving up" if self.arm is None else f"{self.arm}/{self.other}"
            return self.situation.replace("base", f"base {names}", 1)
        return self.situation


# A decision from a tuple of all its fields, in half the time that the class would take to sort them out.
as_decision: Callable[[tuple[Any, ...]], Decision] = partial(tuple.__new__, Decision)

Costs = tuple[float | None, ...]  # an entry per resource, None where it is not known
Outcome = tuple[float | None, Costs]  # reward and costs

CANCELLED: Outcome = (None, ())  # how a decision ends that was never acted on


class PendingPull:
    """A pull whose outcome is not fully known: what is reserved or charged for it, and what has been told.

    Most are told at once and in full; only what is not as usual is kept in the object, the rest is in the class.
    """

    is_untouched: bool = True  # nothing was told yet, and it has not expired
    reward: float | None = None
    costs: Costs = ()  # empty as long as no cost is known
    charged: tuple[int, ...] = ()  # units charged so far; empty as long as there are none
    deadline: float | None = None
    expired: bool = False

    def __init__(self, slot: int, reason: int, tag: int, reserved: tuple[int, ...]) -> None:
        self.slot = slot
        self.reason = reason
        self.tag = tag  # of a policy whose tags are arms a slot, `NULL`, or SKIP
        self.reserved = reserved  # units still set aside

"""What `Bandit.ask` answers, and what the bandit remembers of it until the outcome is known."""

from typing import NamedTuple

NULL = -2  # the null arm, where slots are numbers of arms


class Decision(NamedTuple):
    """What to do in one round.

    ``id`` is the number of the round. ``arm`` is the name of an arm, or None: sit this round out. Only a decision with
    an arm waits for `Bandit.tell`.
    """

    id: int
    arm: str | None
    event: str  # what the policy calls the situation
    partner: str | None = None  # the other arm of the base, or the arm that the guard refused
    headroom: float | None = None  # of a refusal
    largest_cost: float | None = None  # of a refusal

    @property
    def reason(self) -> str:
        """Why, in words.

        >>> Decision(7, "video", "base, pacing", "banner").reason
        'base video/banner, pacing'
        >>> Decision(8, None, "headroom below the largest cost", None, 0.4, 1.0).reason
        'headroom 0.4 < largest cost 1'
        """
        if self.headroom is not None and self.largest_cost is not None:
            whose = f" of {self.partner}" if self.partner else ""
            digits = next(
                digits for digits in (4, 8, 17) if f"{self.headroom:.{digits}g}" != f"{self.largest_cost:.{digits}g}"
            )
            return f"headroom {self.headroom:.{digits}g} < largest cost {self.largest_cost:.{digits}g}{whose}"
        if self.partner and self.partner != self.arm and self.event.startswith("base"):
            names = f"{self.partner}, saving up" if self.arm is None else f"{self.arm}/{self.partner}"
            return self.event.replace("base", f"base {names}", 1)
        return self.event


class PendingPull:
    """A pull whose outcome is not fully known: what is reserved or charged for it, and what has been told.

    Most are told at once and in full; only what is not as usual is kept in the object, the rest is in the class.
    """

    charged: int = 0  # units charged so far
    reward: float | None = None
    cost: float | None = None
    deadline: float | None = None
    expired: bool = False

    def __init__(self, slot: int, event: int, partner: int, reserved: int) -> None:
        self.slot = slot
        self.event = event
        self.partner = partner  # a slot, `NULL`, or `policy.SKIP`
        self.reserved = reserved  # units still set aside


Outcome = tuple[float | None, float | None]  # reward and cost

CANCELLED: Outcome = (None, None)  # how a decision ends that was never acted on

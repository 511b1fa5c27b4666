"""What `Bandit.ask` answers."""

from collections.abc import Callable
from typing import Any, NamedTuple

NULL = -2  # the null arm, where slots are numbers of arms
SAVES = ("base", "saving")  # how situations begin in which a round without a pull is for the sake of an arm


class Decision(NamedTuple):
    """What to do in one round.

    ``id`` is the number of the round, after the name of the worker if the bandit has one. ``arm`` is the name of an
    arm, or None: sit this round out. Only a decision with an arm waits for `Bandit.tell`.
    """

    id: int | str
    arm: str | None
    situation: str  # what the policy calls it
    other: str | None = None  # the other arm of the base, the arm that is saved for, or the arm that the guard refused
    headroom: float | None = None  # of a round that is sat out for want of it, this and
    largest_cost: float | None = None
    resource: str | None = None  # that a refusal was short of, where resources have names
    propensity: float | None = None  # its probability, if the policy leaves decisions to chance in a known way

    @property
    def reason(self) -> str:
        """Why, in words.

        >>> Decision(7, "video", "base, pacing", "banner").reason
        'base video/banner, pacing'
        >>> Decision(7, None, "base, pacing", "video", 0.31, 1.0).reason
        'saving for video: headroom 0.31 of 1'
        >>> Decision(8, None, "headroom below the largest cost", None, 0.4, 1.0).reason
        'headroom 0.4 < largest cost 1'
        >>> Decision(8, None, "headroom below the largest cost", "video", 0.4, 1.0, "money").reason
        'headroom of money 0.4 < largest cost 1 of video'
        """
        if self.headroom is not None and self.largest_cost is not None:
            what = f" of {self.resource}" if self.resource else ""
            digits = next(
                digits for digits in (4, 8, 17) if f"{self.headroom:.{digits}g}" != f"{self.largest_cost:.{digits}g}"
            )
            left, most = f"{self.headroom:.{digits}g}", f"{self.largest_cost:.{digits}g}"
            if self.situation.startswith(SAVES):
                return f"saving for {self.other}: headroom{what} {left} of {most}"
            whose = f" of {self.other}" if self.other else ""
            return f"headroom{what} {left} < largest cost {most}{whose}"
        if self.other and self.other != self.arm and self.situation.startswith("base"):
            names = f"{self.other}, saving up" if self.arm is None else f"{self.arm}/{self.other}"
            return self.situation.replace("base", f"base {names}", 1)
        return self.situation


# make(Decision, fields): from a tuple of all its fields, in half the time that the class would take to sort them out.
make: Callable[[type[Decision], tuple[Any, ...]], Decision] = tuple.__new__

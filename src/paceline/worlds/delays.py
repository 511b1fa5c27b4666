"""How late the news of a pull is: what a user writes, and the calendar that follows from it.

A delay is a number of rounds. 0 is news before the next decision. It is given as

    5                       always so many rounds,
    {"geometric": 50}       a geometric distribution with this mean, from 0,
    {"batch": 100}          news of rounds 1 to 100 comes at the end of round 100, and so on,
    [0, 0, 3, 120]          one of these, each as likely: delays that were observed,

for the whole outcome, or by ``{"cost": ..., "reward": ...}`` for each on its own; what is not named is not late.
"""

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from paceline import checks
from paceline.errors import InvalidValue
from paceline.kernels.late import Late, Rule, new_late

LONGEST = 10_000_000  # rounds: each takes some hundred bytes of the calendar
LEAST_UNIFORM = 2.0**-53  # that a delay is drawn by
FORMS = 'a number of rounds, {"geometric": mean}, {"batch": rounds}, a list of numbers, or these by "cost" and "reward"'


@dataclass(frozen=True)
class Delay:
    """Of costs, of rewards, or of both: one of ``values``; if there are none, in batches, or geometric with a mean."""

    values: tuple[int, ...] = (0,)
    mean: float = 0.0
    batch: int = 0

    @property
    def rule(self) -> Rule:
        """For the calendar. A geometric delay has  P(delay >= k) = p^k  and the mean  p / (1 - p)."""
        return Rule(self.values, math.log(self.mean / (1.0 + self.mean)) if self.mean > 0.0 else 0.0, self.batch)

    @property
    def longest(self) -> int:
        """The longest that can be drawn."""
        if self.mean > 0.0:
            return int(math.log(LEAST_UNIFORM) / self.rule.log_stay)
        return max(self.values, default=self.batch - 1)

    def in_words(self) -> str:
        """For a title."""
        if self.batch:
            return f"in batches of {self.batch} rounds"
        if not self.values:
            return f"late by a geometric number of rounds with mean {self.mean:g}"
        return f"{self.values[0]} rounds late" if len(self.values) == 1 else f"late by one of {len(self.values)} delays"

    def written(self) -> Any:
        """As a user would write it."""
        if not self.values:
            return {"batch": self.batch} if self.batch else {"geometric": self.mean}
        return self.values[0] if len(self.values) == 1 else list(self.values)


@dataclass(frozen=True)
class Delays:
    """How late the news of pulls is."""

    cost: Delay
    reward: Delay
    together: bool  # cost and reward come with the same news

    def calendar(self, arms: int, resources: int) -> Late:
        """With nothing on its way."""
        longest = max(self.cost.longest, self.reward.longest)
        return new_late(self.cost.rule, self.reward.rule, self.together, longest, arms, resources)

    def in_words(self) -> str:
        """For a title."""
        if self.together:
            return f"outcomes {self.cost.in_words()}"
        both = {"costs": self.cost, "rewards": self.reward}
        return ", ".join(f"{name} {delay.in_words()}" for name, delay in both.items() if delay.longest > 0)

    def written(self) -> Any:
        """As a user would write it."""
        if self.together:
            return self.cost.written()
        return {"cost": self.cost.written(), "reward": self.reward.written()}


def in_words(delays: Delays | None) -> str:
    """How late the news is, for a title; nothing where it is not.

    >>> in_words(None), in_words(read_delays({"geometric": 50}))
    ('', 'outcomes late by a geometric number of rounds with mean 50')
    """
    return "" if delays is None else delays.in_words()


DelayLike = int | Mapping[str, Any] | Sequence[int] | Delays | None  # what `read_delays` takes


def read_toml_delays(text: str) -> Delays | None:
    """The delays in a text, written as a value of TOML, as on a command line.

    >>> read_toml_delays("{cost = 5}").in_words()
    'costs 5 rounds late'
    """
    try:
        given = tomllib.loads(f"delay = {text}")["delay"]
    except tomllib.TOMLDecodeError:
        given = text
    return read_delays(given)


def read_delays(given: object) -> Delays | None:
    """The delays that a user wrote; None if nothing is late.

    >>> read_delays(5).written(), read_delays({"cost": {"geometric": 50}}).written(), read_delays(0)
    (5, {'cost': {'geometric': 50.0}, 'reward': 0}, None)
    """
    if given is None or isinstance(given, Delays):
        return given
    if isinstance(given, Mapping) and not {"geometric", "batch"} & set(given):
        unknown = [name for name in given if name not in ("cost", "reward")]
        if unknown or not given:
            raise InvalidValue(f"delay must be {FORMS}, got {dict(given)!r}")
        cost, reward = (read_delay(f"delay of the {name}", given.get(name, 0)) for name in ("cost", "reward"))
        together = cost == reward == Delay()
    else:
        cost = reward = read_delay("delay", given)
        together = True
    return None if cost.longest == reward.longest == 0 else Delays(cost, reward, together)


def read_delay(thing: str, given: object) -> Delay:
    """One delay."""
    if isinstance(given, Mapping):
        if set(given) == {"batch"}:
            batch = checks.whole(f"batch of the {thing}", given["batch"], 1)
            return checked(thing, Delay((), batch=batch) if batch > 1 else Delay())
        if set(given) != {"geometric"}:
            raise InvalidValue(f"{thing} must be {FORMS}, got {dict(given)!r}")
        mean = checks.real(f"mean of the {thing}", given["geometric"], 0, LONGEST)
        return checked(thing, Delay((), mean) if mean > 0.0 else Delay())
    if isinstance(given, np.ndarray):
        given = given.tolist()  # of an array without an axis a number
    if isinstance(given, Sequence) and not isinstance(given, str | bytes):
        if len(given) == 0:
            raise InvalidValue(f"{thing} must be {FORMS}, got an empty list")
        return checked(thing, Delay(tuple(checks.whole(f"each {thing}", one, 0) for one in given)))
    if isinstance(given, str | bytes | bool) or given is None:
        raise InvalidValue(f"{thing} must be {FORMS}, got {given!r}")
    return checked(thing, Delay((checks.whole(thing, given, 0),)))


def checked(thing: str, delay: Delay) -> Delay:
    """Refuse a delay for which a calendar would be too long."""
    if delay.longest > LONGEST:
        raise InvalidValue(f"{thing} must be {LONGEST} rounds at most, got one of {delay.longest}")
    return delay

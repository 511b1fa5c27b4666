"""Income by the clock on the wall.

So much per hour is credited at the beginning of each round for the time since the last one, whole units only, the rest
later. Income begins with the first round. Time that runs backwards brings nothing, and does not bring anything a second
time when it comes back. What does not fit under the cap is lost; it is counted, but does not enter the books, whose
numbers would grow without a bound.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from paceline.live.config import Config
from paceline.live.currency import MOST_UNITS
from paceline.live.pulls import Units
from paceline.live.timetable import Timetable

HOUR = 3_600_000  # milliseconds


class TimedIncome:
    """What the clock brings, as a function of the times of the rounds; and the timetable, if there is a period."""

    def __init__(self, config: Config) -> None:
        self.last: int | None = None  # the latest time that counted, also if nothing comes by the clock any more
        self.rates: list[tuple[int, int]] = []  # units per millisecond: numerators and denominators, and
        self.owed: list[int] = []  # what is owed besides whole units, in terms of the denominators
        self.missed = [0] * len(config.resources)  # units that did not fit under the cap
        self.period: float | None = None
        self.timetable: Timetable | None = None
        self.use(config)

    def use(self, config: Config) -> None:
        """Take over settings. Less than a unit that is owed at other rates is lost; another period is learned anew."""
        per_millisecond = [
            Fraction(resource.hourly) * Fraction(resource.currency.units) / HOUR for resource in config.resources
        ]
        rates = [(rate.numerator, rate.denominator) for rate in per_millisecond]
        if rates != self.rates:
            self.rates, self.owed = rates, [0] * len(rates)
        self.caps = [min(resource.cap_units, MOST_UNITS) for resource in config.resources]
        if config.period != self.period:
            self.period = config.period
            self.timetable = None if config.period is None else Timetable(config.period)
        self.is_on = any(per_millisecond) or self.timetable is not None

    def begin(self, time: int) -> None:
        """Income by the clock begins now, if it does not come already."""
        if self.is_on and self.last is None:
            self.last = time

    def income(self, time: int, stocks: Sequence[int]) -> Units:
        """The units that have come in since the last round, as far as there is room for them beside the stocks."""
        elapsed = 0 if self.last is None else max(time - self.last, 0)
        self.last = time if self.last is None else self.last + elapsed
        income = []
        for d, (rate, parts) in enumerate(self.rates):
            units, self.owed[d] = divmod(self.owed[d] + rate * elapsed, parts)
            room = max(self.caps[d] - stocks[d], 0)
            if units >= room:  # full: parts of a unit would be above the cap, too
                self.owed[d] = 0
            self.missed[d] += max(units - room, 0)
            income.append(min(units, room))
        return tuple(income)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        timetable = None if self.timetable is None else self.timetable.to_dict()
        return {"last": self.last, "owed": list(self.owed), "missed": list(self.missed), "timetable": timetable}

    def restore(self, saved: dict[str, Any]) -> None:
        """The way back from `to_dict`."""
        self.last, self.owed, self.missed = saved["last"], list(saved["owed"]), list(saved["missed"])
        if self.timetable is not None:
            self.timetable.restore(saved["timetable"])

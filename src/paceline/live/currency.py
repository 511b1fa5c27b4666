"""Amounts of a resource in the user's own unit, counted in whole units that are a power of two of it."""

import math

from paceline.errors import InvalidValue
from paceline.kernels.budget import UNIT_BITS, split_rate

MOST_UNITS = 1 << 62  # half of what the guard can count; the rest is for sums on the way


class Currency:
    """The scale of costs: the amount that counts as 1 to the policy.

    A unit is  2**-shift  of the currency, chosen so that the scale is at most 2**32 units. Multiplying a float by a
    power of two is exact, so rounding a cost up and income down to a unit is all the rounding there is.

    >>> currency = Currency(5.0)
    >>> currency.shift, currency.charge(1.25) == 1.25 * 2**29, currency.amount(currency.charge(0.3)) >= 0.3
    (29, True, True)
    """

    def __init__(self, scale: float) -> None:
        fraction, exponent = math.frexp(scale)
        self.scale = scale
        self.shift = UNIT_BITS - exponent + (fraction == 0.5)  # the smallest unit of which the scale is at most 2**32
        self.units = math.ldexp(1.0, self.shift)  # in one of the currency
        self.unit = 1.0 / self.units / scale  # on the scale of the policy

    def charge(self, cost: float) -> int:
        """A cost in units, rounded up; the product of a tiny cost may vanish."""
        return math.ceil(cost * self.units) or int(cost > 0.0)

    def income(self, amount: float) -> int:
        """Income in units, rounded down."""
        return math.floor(amount * self.units)

    def income_per_round(self, budget: float) -> tuple[int, int]:
        """Income in whole units and 2**-31 units, rounded down."""
        return split_rate(math.ldexp(budget, self.shift - UNIT_BITS))

    def amount(self, units: int) -> float:
        """What so many units are in the currency."""
        return units / self.units

    def check_total(self, thing: str, units: int, more: float) -> None:
        """Refuse income beyond what can be counted."""
        if units + more * self.units >= MOST_UNITS:
            most = self.amount(MOST_UNITS)
            raise InvalidValue(f"{thing} in all must stay below {most:g} (2**62 units), got {more!r} more")

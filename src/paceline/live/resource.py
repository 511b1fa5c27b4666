"""The settings of one resource of a live bandit: checked once, in the user's own unit."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from numbers import Real
from typing import Any

from paceline import checks
from paceline.errors import InvalidValue
from paceline.kernels.budget import UNLIMITED
from paceline.live.currency import MOST_UNITS, Currency
from paceline.problems.resources import UNNAMED, by_resource, resource_names

# Far from where floats end, so that no sum or square on the way overflows or vanishes.
LARGEST_AMOUNT, SMALLEST_SCALE = 2.0**500, 2.0**-500

UP, DOWN = math.inf, -math.inf  # how costs and income are rounded to a float

MaxCost = float | dict[str, float]  # of all arms, or by the name of the arm
Labelled = tuple[str, Any]  # what to call a value in a message, and the value


def label(thing: str, resource: str) -> str:
    """What to call a thing of a resource in a message."""
    return thing if resource == UNNAMED else f"{thing} of {resource!r}"


@dataclass(frozen=True)
class Resource:
    """What comes in of a resource, and what a pull can take of it; ``scale`` counts as 1 to the policy."""

    name: str
    budget: float
    max_cost: MaxCost
    max_refill: float
    scale: float
    start: float
    cap: float | None
    hourly: float

    @cached_property
    def currency(self) -> Currency:
        """Its unit."""
        return Currency(self.scale)

    @cached_property
    def least_cost(self) -> float:
        """The smallest possible cost of a pull: 0, or below where a pull may bring something back."""
        return -self.max_refill or 0.0

    @cached_property
    def cap_units(self) -> int:
        """The cap in units, rounded down; one beyond what can be counted is none."""
        if self.cap is None or self.cap * self.currency.units >= UNLIMITED:
            return UNLIMITED
        return self.currency.income(self.cap)

    def max_cost_of(self, arm: str) -> float:
        """The largest cost of an arm, as far as it was said beforehand."""
        if not isinstance(self.max_cost, dict):
            return self.max_cost
        if arm not in self.max_cost:
            raise InvalidValue(f"{label('max_cost', self.name)} must have an entry for every arm, got none for {arm!r}")
        return self.max_cost[arm]

    def check_max_cost(self, arm: str, given: object) -> float:
        """The largest cost of a new arm, at most the scale and the cap."""
        thing = f"{label('max_cost', self.name)} of {arm}"
        largest = checks.real(thing, given, 0, toward=UP)
        if largest > self.scale:
            raise InvalidValue(
                f"{thing} must be at most the scale of costs, {self.scale:g} "
                f"(set scale= when the bandit is made to leave room for more expensive arms), got {largest!r}"
            )
        if not self.can_hold(largest):
            raise InvalidValue(f"{thing} must be at most the cap, {self.cap:g}, got {self.in_units(largest)}")
        return largest

    def can_hold(self, cost: float) -> bool:
        """Whether there can ever be enough in stock; both sides are rounded as the guard rounds them."""
        return self.currency.charge(cost) <= self.cap_units

    def in_units(self, cost: float) -> str:
        """A cost for a message in which rounding may matter."""
        return f"{cost:g} rounded up to a unit of {self.currency.amount(1):.2g}"

    def check_cost(self, decision: str, given: object, most: float | None) -> float:
        """A cost that is told of a decision, or of an arm, and may be so large; None where the books are elsewhere."""
        thing = f"{label('cost', self.name)} of {decision}"
        low = self.least_cost
        if is_below(given, low):
            raise InvalidValue(
                f"{thing} must be at least {low:g} (max_refill= says what a pull may bring), got {given!r}"
            )
        most = self.currency.amount(MOST_UNITS >> 2) if most is None else most
        return checks.real(thing, given, low, most, toward=UP)


def is_below(given: object, low: float) -> bool:
    """Whether something is a number, and below another; a Decimal that is none may not even be compared."""
    try:
        return isinstance(given, Real | Decimal) and bool(given < low)
    except ArithmeticError:
        return False


def make_resources(
    arms: Sequence[str],
    budget: object,
    max_cost: object,
    max_refill: object,
    scale: object,
    start: object,
    cap: object,
    hourly: object,
) -> tuple[Resource, ...]:
    """The resources, once every setting has passed its check: those that the budget names, or one without a name."""
    names = resource_names("budget", budget)
    settings = {
        "budget": by_resource("budget", budget, names),
        "max_cost": largest_by_resource(max_cost, names, isinstance(budget, Mapping)),
        "max_refill": by_resource("max_refill", max_refill, names, otherwise=0.0),
        "scale": by_resource("scale", scale, names, otherwise=None),
        "start": by_resource("start", start, names, otherwise=0.0),
        "cap": by_resource("cap", cap, names, otherwise=None),
        "hourly": by_resource("hourly", hourly, names, otherwise=0.0),
    }
    return tuple(
        make_resource(name, arms, {setting: given[name] for setting, given in settings.items()}) for name in names
    )


def largest_by_resource(given: object, names: tuple[str, ...], named: bool) -> dict[str, Labelled]:
    """Largest costs by resource; one number is for all resources, a mapping without names of resources by arm."""
    if named and isinstance(given, Mapping):
        return by_resource("max_cost", given, names)
    return {name: (label("max_cost", name), given) for name in names}


def make_resource(name: str, arms: Sequence[str], given: dict[str, Labelled]) -> Resource:
    """One resource, from its settings."""
    budget = checks.real(*given["budget"], 0, LARGEST_AMOUNT, toward=DOWN)
    max_cost = check_max_costs(*given["max_cost"], arms)
    max_refill = checks.real(*given["max_refill"], 0, LARGEST_AMOUNT)
    largest = max(max_cost.values()) if isinstance(max_cost, dict) else max_cost
    least_scale = max(largest, budget, max_refill)
    thing, scale = given["scale"]
    if least_scale == 0.0 and scale is None:
        raise InvalidValue(f"{label('the largest max_cost or the budget', name)} must be above 0, got 0 for both")
    scale = least_scale if scale is None else checks.real(thing, scale, 0, LARGEST_AMOUNT)
    if scale < least_scale:
        rule = f"at least the largest max_cost, the budget and max_refill, {least_scale:g}"
        raise InvalidValue(f"{thing} must be {rule}, got {scale!r}")
    checks.real(label("the scale of costs", name), scale, SMALLEST_SCALE)
    start = checks.real(*given["start"], 0, LARGEST_AMOUNT, toward=DOWN)
    Currency(scale).check_total(label("income", name), 0, start)
    thing, cap = given["cap"]
    cap = None if cap is None else checks.real(thing, cap, 0, LARGEST_AMOUNT, toward=DOWN)
    thing_hourly, _ = given["hourly"]
    hourly = checks.real(*given["hourly"], 0, LARGEST_AMOUNT, toward=DOWN)
    if hourly > 0.0 and cap is None:
        raise InvalidValue(f"{thing_hourly} must have a cap on what may pile up while nobody asks, got none")
    resource = Resource(name, budget, max_cost, max_refill, scale, start, cap, hourly)
    if not resource.can_hold(largest):
        raise InvalidValue(
            f"{thing} must cover the largest cost of every arm, {resource.in_units(largest)}, got {cap!r}"
        )
    if cap is not None and cap < start:
        raise InvalidValue(f"{thing} must hold the start stock, {start:g}, got {cap!r}")
    return resource


def check_max_costs(thing: str, given: object, arms: Sequence[str]) -> MaxCost:
    """One largest cost for all arms, or one for each by name."""
    if not isinstance(given, Mapping):
        return checks.real(thing, given, 0, LARGEST_AMOUNT, toward=UP)
    unknown = [name for name in given if name not in arms]
    missing = [name for name in arms if name not in given]
    if unknown or missing:
        problem = f"no entry for {missing[0]!r}" if missing else f"an entry for {unknown[0]!r}"
        raise InvalidValue(f"{thing} must have one entry for every arm, got {problem}")
    return {name: checks.real(f"{thing} of {name}", given[name], 0, LARGEST_AMOUNT, toward=UP) for name in arms}

"""What a problem may be made of: rules for its distributions and the lines of its resources."""

import math
from collections.abc import Sequence

from paceline import checks
from paceline.errors import InvalidValue
from paceline.problems.distributions import Beta, Constant, Distribution, Scaled, Unknown, extremes
from paceline.problems.observed import Column
from paceline.problems.resources import by_resource

MOST = 2.0**30  # of a stock: more could not be counted in units


def check_columns(sides: Sequence[Sequence[Distribution]], coupled: bool) -> None:
    """Observed outcomes come as a whole, as `Problem.observed` puts them, or not at all."""
    if not any(isinstance(entry, Column) for side in sides for entry in side):
        return
    first = sides[0][0]
    whole = isinstance(first, Column) and len(sides) == len(first.table.values) and len(sides[0]) == first.table.arms
    if not (whole and coupled) or any(
        entry != Column(first.table, number, arm)  # type: ignore[union-attr]
        for number, side in enumerate(sides)
        for arm, entry in enumerate(side)
    ):
        raise InvalidValue("observed rewards and costs must be those of one table, from Problem.observed, got others")


def check_distributions(thing: str, given: object, low: float) -> tuple[Distribution, ...]:
    """Distributions of outcomes in [low, 1], one per arm."""
    entries = checks.entries(thing, given)
    for arm, entry in enumerate(entries):
        if not isinstance(entry, Distribution):
            raise InvalidValue(f"{thing}[{arm}] must be a distribution such as Beta(0.3), got {entry!r}")
        smallest, largest = extremes(entry)
        if smallest < low or largest > 1.0:
            reach = f"{smallest:g} to {largest:g}"
            raise InvalidValue(f"{thing}[{arm}] must stay in [{low:g}, 1], got values from {reach}")
    return tuple(entries)


def check_rates(
    budget: object, names: tuple[str, ...], sides: Sequence[Sequence[Distribution]], stocks: Sequence[float]
) -> tuple[float, ...]:
    """What comes in per round; none only where there is a stock or a refill to live on."""
    rates = []
    given = by_resource("budget", budget, names).values()
    for (thing, value), side, stock in zip(given, sides, stocks, strict=True):
        lives_on = stock > 0.0 or any(extremes(cost)[0] < 0.0 for cost in side)
        rates.append(checks.real(thing, value, 0, 1, above_low=not lives_on))
    return tuple(rates)


def check_max_costs(
    sides: Sequence[Sequence[Distribution]], given: object, names: tuple[str, ...]
) -> tuple[tuple[float, ...], ...]:
    """The largest cost of each arm, for each resource: 1 unless given; no arm may be able to cost more."""
    found = []
    for side, (thing, listed) in zip(
        sides, by_resource("max_costs", given, names, otherwise=None).values(), strict=True
    ):
        if listed is None:
            found.append(tuple(1.0 if extremes(cost)[0] >= 0.0 else max(extremes(cost)[1], 0.0) for cost in side))
            continue
        entries = checks.entries(thing, listed)
        if len(entries) != len(side):
            raise InvalidValue(f"{thing} must have one entry per arm, got {len(entries)} for {len(side)} arms")
        for arm, (cost, most) in enumerate(zip(side, entries, strict=True)):
            checks.real(f"{thing}[{arm}]", most, 0, 1)
            if not isinstance(cost, Unknown) and (highest := extremes(cost)[1]) > most:
                raise InvalidValue(f"{thing}[{arm}] must cover every cost of its arm, {highest}, got {most}")
        found.append(tuple(map(float, entries)))
    return tuple(found)


def check_caps(
    given: object, names: tuple[str, ...], most: Sequence[Sequence[float]], stocks: Sequence[float]
) -> tuple[float, ...]:
    """The most that can be in stock: enough for a pull of any arm, and for the start stock."""
    caps = []
    entries = by_resource("cap", given, names, otherwise=None).values()
    for (thing, value), largest, stock in zip(entries, most, stocks, strict=True):
        if value is None:
            caps.append(math.inf)
            continue
        cap = checks.real(thing, value, 0, MOST, above_low=True)
        if cap < max(largest):
            raise InvalidValue(f"{thing} must cover the largest cost of every arm, {max(largest):g}, got {cap:g}")
        if cap < stock:
            raise InvalidValue(f"{thing} must hold the start stock, {stock:g}, got {cap:g}")
        caps.append(cap)
    return tuple(caps)


def scaled_beta(mean: float, top: float, concentration: float) -> Distribution:
    """A cost with this mean that is at most ``top``."""
    if mean > top:
        raise InvalidValue(f"a mean cost must be at most the largest cost {top}, got {mean}")
    if top == 0.0:
        return Constant(0.0)
    return Beta(mean, concentration) if top == 1.0 else Scaled(Beta(mean / top, concentration), top)


def means(thing: str, values: Sequence[float]) -> list[float]:
    """Means in [0, 1]; an error says which entry is not."""
    return [checks.real(f"{thing}[{arm}]", value, 0, 1) for arm, value in enumerate(checks.entries(thing, values))]

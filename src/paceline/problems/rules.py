"""What a problem may be made of: rules for its distributions and the lines of its resources."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from paceline import checks
from paceline.errors import InvalidValue
from paceline.problems.distributions import Constant, Distribution, Scaled, Unknown, extremes
from paceline.problems.observed import Column
from paceline.problems.resources import UNNAMED, by_resource, resource_names

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
        entries = tops_of(thing, listed, len(side))
        for arm, (cost, most) in enumerate(zip(side, entries, strict=True)):
            if not isinstance(cost, Unknown) and (highest := extremes(cost)[1]) > most:
                raise InvalidValue(f"{thing}[{arm}] must cover every cost of its arm, {highest}, got {most}")
        found.append(tuple(entries))
    return tuple(found)


def check_stop(given: object, rates: Sequence[float], sides: Sequence[Sequence[Distribution]]) -> bool:
    """A run may stop at depletion where depletion is for good."""
    if not isinstance(given, bool):
        raise InvalidValue(f"stop must be true or false, got {given!r}")
    if given and any(rates):
        raise InvalidValue(f"stop must be for stocks without income (a budget of 0), got a rate of {max(rates):g}")
    lowest = min(extremes(cost)[0] for side in sides for cost in side)
    if given and lowest < 0.0:
        raise InvalidValue(f"stop must be for stocks that no pull refills, got a cost of {lowest:g}")
    return given


def check_fallback(given: object, most: Sequence[Sequence[float]]) -> bool:
    """An arm that takes the place of the null arm must be one that can always be paid for."""
    if not isinstance(given, bool):
        raise InvalidValue(f"fallback must be true or false, got {given!r}")
    largest = max(side[0] for side in most)
    if given and largest > 0.0:
        raise InvalidValue(f"fallback must be to an arm 0 whose largest cost is 0 (max_costs), got {largest:g}")
    return given


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


def cost_sides(
    thing: str, costs: object, max_costs: object, distribution: Callable[[str, Any, float], Distribution]
) -> Any:
    """The distributions of costs in the form in which costs are given: an entry per arm, or such lists by resource.

    ``distribution`` makes one from what to call it in a message, what is given for it, and the largest cost of its arm.
    """
    names = resource_names(thing, costs)
    tops = by_resource("max_costs", max_costs, names, otherwise=None)
    sides = {}
    for name, (side, given) in by_resource(thing, costs, names).items():
        entries = checks.entries(side, given)
        pairs = enumerate(zip(entries, tops_of(*tops[name], len(entries)), strict=True))
        sides[name] = [distribution(f"{side}[{arm}]", entry, top) for arm, (entry, top) in pairs]
    return sides if isinstance(costs, Mapping) else sides[UNNAMED]


def tops_of(thing: str, listed: object, arms: int) -> list[float]:
    """The largest cost of each arm; 1 unless they are given."""
    if listed is None:
        return [1.0] * arms
    tops = means(thing, listed)
    if len(tops) != arms:
        raise InvalidValue(f"{thing} must have one entry per arm, got {len(tops)} for {arms} arms")
    return tops


def within_top(thing: str, mean: float, top: float, of_mean: Callable[[float], Any]) -> Distribution:
    """A distribution with this mean whose values are at most ``top``: one in [0, 1], scaled."""
    if mean > top:
        raise InvalidValue(f"{thing} must be at most the largest cost of its arm, {top:g}, got {mean!r}")
    if top == 0.0:
        return Constant(0.0)
    scaled: Distribution = of_mean(mean) if top == 1.0 else Scaled(of_mean(mean / top), top)
    return scaled


def means(thing: str, values: object) -> list[float]:
    """Means in [0, 1]; an error says which entry is not."""
    return [checks.real(f"{thing}[{arm}]", value, 0, 1) for arm, value in enumerate(checks.entries(thing, values))]

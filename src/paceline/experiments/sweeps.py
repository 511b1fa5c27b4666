"""Grids of an experiment, as regret against one parameter at a time."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from paceline.experiments.entries import TABLE
from paceline.experiments.grids import shown
from paceline.experiments.summary import Line
from paceline.statistics import Estimate

Entry = dict[str, Any]  # a problem or a policy in the manifest


@dataclass(frozen=True)
class Axis:
    """What stands at each value of one parameter of one thing, the other parameters being fixed."""

    thing: str
    parameter: str
    values: tuple[Any, ...]
    at: tuple[tuple[int, ...], ...]  # the numbers of the problems, or of the policy, at each value

    @property
    def numeric(self) -> bool:
        """Whether the parameter is a number."""
        return is_numeric(self.values)

    @property
    def shown(self) -> tuple[float, ...] | tuple[str, ...]:
        """The values for a panel."""
        if self.numeric:
            return tuple(map(float, self.values))
        return tuple(shown(place, value) for place, value in enumerate(self.values, start=1))


class Point(NamedTuple):
    """What a policy, by its place, loses at one value; an interval that is not known has no width."""

    place: int
    loss: Estimate


@dataclass(frozen=True)
class Sweep:
    """Traces over the values of one parameter, everything else the same: points that belong together, one per value."""

    axis: Axis
    traces: Sequence[Sequence[Point]]
    quantity: str = "Steady regret"


def is_numeric(values: Sequence[object]) -> bool:
    """Whether all are numbers; truth values are not."""
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def problem_axes(problems: Sequence[Entry]) -> list[Axis]:
    """The swept parameters of problems; members of a family at the same value stand together."""
    return list(axes_of(problems, [(entry["stream"] >> TABLE, plain_name(entry, "name")) for entry in problems]))


def policy_axes(policies: Sequence[Entry]) -> list[Axis]:
    """The swept parameters of policies."""
    names = [plain_name(entry, "label") for entry in policies]
    return list(axes_of(policies, [(name, name) for name in names]))


def plain_name(entry: Entry, key: str) -> str:
    """The name of a problem or a policy without its place in the grid.

    >>> plain_name({"name": "three-arms, budget=0.4", "words": ", budget=0.4"}, "name")
    'three-arms'
    """
    return str(entry[key]).removesuffix(entry["words"])


def axes_of(entries: Sequence[Entry], groups: Sequence[tuple[object, str]]) -> Iterator[Axis]:
    """An axis for each group, parameter and setting of the other parameters that has two values or more."""
    found: dict[tuple[object, ...], dict[str, list[int]]] = {}
    for number, (entry, (group, _)) in enumerate(zip(entries, groups, strict=True)):
        for key, value in entry["swept"].items():
            others = {other: setting for other, setting in entry["swept"].items() if other != key}
            place = found.setdefault((group, key, json.dumps(others, sort_keys=True)), {})
            place.setdefault(json.dumps(value, sort_keys=True), []).append(number)
    for (_, key, others_text), by_value in found.items():
        if len(by_value) < 2:
            continue
        pairs = [(json.loads(text), tuple(numbers)) for text, numbers in by_value.items()]
        if is_numeric([value for value, _ in pairs]):
            pairs.sort()
        names = list(dict.fromkeys(groups[number][1] for _, numbers in pairs for number in numbers))
        thing = names[0] if len(names) == 1 else names[0].rpartition(" ")[0]  # members of a family are numbered
        values, at = zip(*pairs, strict=True)
        fixed = "".join(f", {other}={setting}" for other, setting in json.loads(str(others_text)).items())
        yield Axis(thing + fixed, str(key), values, at)


def problem_sweep(axis: Axis, by_problem: Sequence[Sequence[Line]]) -> Sweep:
    """Mean steady regret of each policy against a parameter of the problem, with 95 % intervals over trials.

    Where a value has several problems it is the mean over them. Their trials have random numbers of their own, so the
    squares of the radii add up. The problems are taken as given; and the values of the parameter share their draws, so
    neighbouring points differ by less than their bars say.
    """
    return Sweep(
        axis,
        [
            [Point(place, mean_over([by_problem[number][place].own for number in numbers])) for numbers in axis.at]
            for place in range(len(by_problem[0]))
        ],
    )


def mean_over(means: Sequence[Estimate]) -> Estimate:
    """The mean of independent means, with its interval."""
    value = sum(each.value for each in means) / len(means)
    radius = math.hypot(*(each.high - each.value for each in map(closed, means))) / len(means)
    return Estimate(value, value - radius, value + radius)


def closed(estimate: Estimate) -> Estimate:
    """One of which nothing is known has no interval to draw."""
    return estimate if estimate.known else Estimate(*[estimate.value] * 3)


def policy_sweep(axis: Axis, estimates: Sequence[Estimate], quantity: str = "Steady regret") -> Sweep:
    """One trace through policies, of which ``estimates`` has all in their order, against a parameter, with intervals.

    The points share problems and draws: they differ by less than their intervals say.
    """
    return Sweep(axis, [[Point(numbers[0], closed(estimates[numbers[0]])) for numbers in axis.at]], quantity)

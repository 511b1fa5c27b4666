"""Grids of an experiment, as regret against one parameter at a time."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from paceline.experiments.entries import TABLE
from paceline.experiments.grids import shown
from paceline.experiments.summary import Line
from paceline.statistics import Estimate

Entry = dict[str, Any]  # a problem or a policy in the manifest


@dataclass(frozen=True)
class Trace:
    """Points that belong together, one for each value of the parameter."""

    places: Sequence[int]  # the place of each point's policy, for its colour
    means: Sequence[float]
    lows: Sequence[float]
    highs: Sequence[float]


@dataclass(frozen=True)
class Sweep:
    """Traces over the values of one parameter, everything else the same: numbers in their order, or words.

    >>> Sweep("budget", (0.4, 0.5), (), "Steady regret").numeric, Sweep("order", ("first",), (), "Regret").numeric
    (True, False)
    """

    parameter: str
    values: tuple[float, ...] | tuple[str, ...]
    traces: Sequence[Trace]
    quantity: str

    @property
    def numeric(self) -> bool:
        """Whether the parameter is a number."""
        return not any(isinstance(value, str) for value in self.values)


@dataclass(frozen=True)
class Axis:
    """What stands at each value of one parameter of one thing, the other parameters being fixed."""

    thing: str
    parameter: str
    values: tuple[Any, ...]
    at: tuple[tuple[int, ...], ...]  # the numbers of the problems, or of the policy, at each value

    @property
    def shown(self) -> tuple[float, ...] | tuple[str, ...]:
        """The values for an axis."""
        if is_numeric(self.values):
            return tuple(map(float, self.values))
        return tuple(shown(place, value) for place, value in enumerate(self.values, start=1))


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
    traces = []
    for place in range(len(by_problem[0])):
        at = [[by_problem[number][place] for number in numbers] for numbers in axis.at]
        means = np.array([np.mean([line.mean for line in lines]) for lines in at])
        errors = np.array([np.sqrt(sum(radius(line) ** 2 for line in lines)) / len(lines) for lines in at])
        traces.append(Trace([place] * len(at), means.tolist(), (means - errors).tolist(), (means + errors).tolist()))
    return Sweep(axis.parameter, axis.shown, traces, "Steady regret")


def policy_sweep(axis: Axis, lines: Sequence[Line]) -> Sweep:
    """Mean steady regret on one problem against a parameter of a policy, with 95 % intervals over trials."""
    estimates = [Estimate(line.mean, line.mean - radius(line), line.mean + radius(line)) for line in lines]
    return of_policies(axis, estimates, "Steady regret")


def radius(line: Line) -> float:
    """Half the width of the 95 % interval of a mean; a single trial has none to draw."""
    return line.own.high - line.mean if line.own.known else 0.0


def of_policies(axis: Axis, estimates: Sequence[Estimate], quantity: str) -> Sweep:
    """One trace through policies, of which ``estimates`` has all in their order, against a parameter, with intervals.

    The points share problems and draws: they differ by less than their intervals say.
    """
    places = [numbers[0] for numbers in axis.at]
    chosen = [estimates[place] for place in places]
    means = [one.value for one in chosen]
    lows, highs = ([getattr(one, end) if one.known else one.value for one in chosen] for end in ("low", "high"))
    return Sweep(axis.parameter, axis.shown, [Trace(places, means, lows, highs)], quantity)

"""Worlds in plain Python."""

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from paceline import checks
from paceline.errors import InvalidValue, InvalidWorld, PacelineError
from paceline.objects import copied, in_words
from paceline.problems.distributions import Unknown
from paceline.problems.problem import Problem
from paceline.problems.resources import by_resource, resource_names
from paceline.text_modules import FromText


class PythonWorld(FromText):
    """Base of a world in plain Python: what a pull yields, whatever the reason.

        arms, budget                                      class attributes, or set in __init__; budget by name if there
                                                          are several resources; likewise max_costs, start, cap
        reset(seed, stream)                               before the first round of a trial
        outcome(t, arm, count) -> (reward, cost)          round t, pull number count of the arm, both from where they
                                                          begin: 1 and 0; several costs as a mapping or a sequence

    Rewards are in [0, 1], costs in [0, largest cost of the arm], or above -1 where a pull refills.

    Pass it to `simulate` in place of a problem. Regret needs to know what the best would have been: with ``problem``, a
    `Problem` with the true means, it is measured against that; without, it is not a number, and rewards, costs, pulls
    and headroom are all there is.

    >>> class Tides(PythonWorld):
    ...     arms, budget = 2, 0.5
    ...     def outcome(self, t, arm, count):
    ...         return (0.5 + 0.5 * (t // 100 % 2 == arm), 0.4)
    >>> from paceline import simulate
    >>> simulate(Tides(), "thompson", rounds=500, trials=1)["thompson"].spent[0, -1] <= 250
    np.True_
    """

    arms: int
    budget: float | Mapping[str, float]
    max_costs: Any = None
    start: Any = None
    cap: Any = None
    refills: ClassVar[bool] = False
    problem: Problem | None = None

    def reset(self, seed: int, stream: int) -> None:
        """Begin a trial."""

    def outcome(self, t: int, arm: int, count: int) -> tuple[float, Any]:
        """What pull number ``count`` of the arm, made in round t, yields."""
        raise NotImplementedError

    def lines(self) -> Problem:
        """The problem that the guard, and the policies, are told of."""
        if type(self).outcome is PythonWorld.outcome:
            raise InvalidWorld(f"{type(self).__name__} must have a function outcome(self, t, arm, count), got none")
        if self.problem is not None:
            twice = [name for name in ("max_costs", "start", "cap") if getattr(self, name) is not None]
            if twice:
                rule = "must leave max_costs, start and cap to its problem"
                raise InvalidWorld(f"{type(self).__name__} {rule}, got {', '.join(twice)}, too")
            return self.problem
        if not hasattr(self, "arms") or not hasattr(self, "budget"):
            raise InvalidValue(f"{type(self).__name__} must have arms and budget, got neither or one of them")
        arms = checks.whole(f"arms of {type(self).__name__}", self.arms, 1)
        unknown = [Unknown(-1.0 if self.refills else 0.0)] * arms
        names = resource_names("budget", self.budget)
        costs = dict.fromkeys(names, unknown) if isinstance(self.budget, Mapping) else unknown
        rewards = [Unknown(0.0)] * arms
        return Problem(rewards, costs, self.budget, max_costs=self.max_costs, start=self.start, cap=self.cap)


class PlayedWorld:
    """One trial of a plain-Python world, checked pull by pull."""

    def __init__(self, world: PythonWorld, lines: Problem, seed: int, stream: int) -> None:
        self.world = copied(world, InvalidWorld)
        self.lines = lines
        self.name = type(world).__name__
        self.low = [-1.0 if refill else 0.0 for refill in lines.refills]
        self.world.reset(seed, stream)

    def outcome(self, t: int, arm: int, count: int) -> tuple[float, tuple[float, ...]]:
        """Reward and costs of a pull, or what is wrong with them."""
        answer = self.world.outcome(t, arm, count)
        if not isinstance(answer, tuple) or len(answer) != 2:
            where = f"{self.name}: outcome of arm {arm} in round {t}"
            raise InvalidWorld(f"{where} must be a pair (reward, cost), got {in_words(answer)}")
        names = self.lines.resources
        costs = tuple(
            self.checked(f"cost of arm {arm} in {names[d]!r}", cost, self.low[d], self.lines.most[d][arm], t)
            for d, cost in enumerate(self.costs_in(answer[1], arm, t))
        )
        return self.checked(f"reward of arm {arm}", answer[0], 0.0, 1.0, t), costs

    def costs_in(self, given: Any, arm: int, t: int) -> list[Any]:
        """The costs of a pull, one per resource, in whichever form they come."""
        names = self.lines.resources
        where = f"{self.name}: cost of arm {arm} in round {t}"
        if isinstance(given, Mapping):
            try:
                return [value for _, value in by_resource("cost", given, names).values()]
            except PacelineError as error:
                raise InvalidWorld(f"{where}: {error}") from None
        if hasattr(given, "__array__"):
            costs = list(np.atleast_1d(np.asarray(given)))
        else:
            costs = list(given) if isinstance(given, Sequence) else [given]
        if len(costs) != len(names):
            raise InvalidWorld(f"{where} must have an entry for each of {', '.join(names)}, got {in_words(given)}")
        return costs

    def checked(self, thing: str, value: object, low: float, high: float, t: int) -> float:
        """A number, unless it is one that the guard was not told of."""
        number = number_in(value)
        if not low <= number <= high:
            raise InvalidWorld(
                f"{self.name}: {thing} in round {t} must be in [{low:g}, {high:g}], got {in_words(value)}"
            )
        return number


def number_in(value: object) -> float:
    """A value as a float; not a number if it is none.

    >>> number_in(np.array(0.25)), number_in(Decimal("0.5")), number_in(True), number_in("dear")
    (0.25, 0.5, nan, nan)
    """
    single = value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value
    if isinstance(single, bool) or not isinstance(single, Real | Decimal):
        return math.nan
    try:
        return float(single)
    except (ValueError, OverflowError):  # a signalling NaN, an integer that no float can hold
        return math.nan

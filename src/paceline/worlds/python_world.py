"""Worlds in plain Python."""

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paceline import checks
from paceline.errors import InvalidValue, InvalidWorld
from paceline.problems.distributions import Unknown
from paceline.problems.problem import Problem
from paceline.problems.resources import by_resource, resource_names


class PythonWorld:
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
        if self.problem is not None:
            return self.problem
        if not hasattr(self, "arms") or not hasattr(self, "budget"):
            raise InvalidValue(f"{type(self).__name__} must have arms and budget, got neither or one of them")
        arms = checks.whole(f"arms of {type(self).__name__}", self.arms, 1)
        unknown = [Unknown(-1.0 if self.refills else 0.0)] * arms
        names = resource_names("budget", self.budget)
        costs = dict.fromkeys(names, unknown) if isinstance(self.budget, Mapping) else unknown
        max_costs = self.max_costs
        if max_costs is None and self.refills:
            max_costs = {name: [1.0] * arms for name in names} if isinstance(self.budget, Mapping) else [1.0] * arms
        return Problem([Unknown(0.0)] * arms, costs, self.budget, max_costs=max_costs, start=self.start, cap=self.cap)


class PlayedWorld:
    """One trial of a plain-Python world, checked pull by pull."""

    def __init__(self, world: PythonWorld, lines: Problem, seed: int, stream: int) -> None:
        self.world = copy.deepcopy(world)
        self.lines = lines
        self.name = type(world).__name__
        self.low = [-1.0 if refill else 0.0 for refill in lines.refills]
        self.world.reset(seed, stream)

    def outcome(self, t: int, arm: int, count: int) -> tuple[float, tuple[float, ...]]:
        """Reward and costs of a pull, or what is wrong with them."""
        answer = self.world.outcome(t, arm, count)
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise InvalidWorld(f"{self.name}.outcome must give a pair (reward, cost), got {answer!r}")
        reward, given = answer
        names = self.lines.resources
        if isinstance(given, Mapping):
            costs = [value for _, value in by_resource(f"cost of {self.name}", given, names).values()]
        else:
            costs = list(given) if isinstance(given, Sequence) or hasattr(given, "__len__") else [given]
        if len(costs) != len(names):
            raise InvalidWorld(f"{self.name}.outcome must give a cost for each of {', '.join(names)}, got {given!r}")
        for d, cost in enumerate(costs):
            self.check(f"cost of arm {arm} in {names[d]!r}", cost, self.low[d], self.lines.most[d][arm], t)
        self.check(f"reward of arm {arm}", reward, 0.0, 1.0, t)
        return float(reward), tuple(map(float, costs))

    def check(self, thing: str, value: Any, low: float, high: float, t: int) -> None:
        """Refuse what the guard was not told of."""
        try:
            within = low <= value <= high and math.isfinite(value)
        except TypeError:
            within = False
        if not within:
            raise InvalidWorld(f"{self.name}: {thing} in round {t} must be in [{low:g}, {high:g}], got {value!r}")

"""Problem: the distributions of the arms and the budget rate. Frozen and validated."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from paceline import checks
from paceline.errors import InvalidValue
from paceline.problems.distributions import (
    KINDS,
    Bernoulli,
    Beta,
    Constant,
    Distribution,
    Scaled,
    extremes,
    from_dict,
    to_dict,
)
from paceline.problems.optimum import Optimum, solve


@dataclass(frozen=True, init=False)
class Problem:
    """K arms, each with a reward and a cost distribution on [0, 1], and a budget rate in (0, 1].

    Reward and cost of a pull are independent, or ``coupled``: drawn from the same random numbers, so that a high reward
    comes with a high cost (pairs of Empirical values at the same place come together).

    The guard lets an arm be pulled when the headroom covers its largest possible cost. That is 1 for every arm unless
    ``max_costs`` says that less is known to be enough.

    The promise asked for is  sum of costs up to t <= budget * t  after every round t, on every path.

    >>> problem = Problem.beta([0.45, 0.7, 0.8], [0.3, 0.75, 0.8], budget=0.5)
    >>> problem.arms, round(problem.optimum.value, 12)
    (3, 0.59)
    """

    rewards: tuple[Distribution, ...]
    costs: tuple[Distribution, ...]
    budget: float
    coupled: bool = False
    max_costs: tuple[float, ...] = ()  # one per arm

    def __init__(
        self,
        rewards: Sequence[Distribution],
        costs: Sequence[Distribution],
        budget: float,
        coupled: bool = False,
        max_costs: Sequence[float] | None = None,
    ) -> None:
        rewards, costs = checks.entries("rewards", rewards), checks.entries("costs", costs)
        for thing, given in (("rewards", rewards), ("costs", costs)):
            for arm, entry in enumerate(given):
                if not isinstance(entry, tuple(KINDS.values())):
                    raise InvalidValue(f"{thing}[{arm}] must be a distribution such as Beta(0.3), got {entry!r}")
        if len(rewards) != len(costs):
            rule = "rewards and costs must have the same length"
            raise InvalidValue(f"{rule}, got {len(rewards)} rewards and {len(costs)} costs")
        if not rewards:
            raise InvalidValue("a problem must have at least one arm, got none")
        object.__setattr__(self, "rewards", tuple(rewards))
        object.__setattr__(self, "costs", tuple(costs))
        object.__setattr__(self, "budget", checks.real("budget", budget, 0, 1, above_low=True))
        if not isinstance(coupled, bool):
            raise InvalidValue(f"coupled must be true or false, got {coupled!r}")
        object.__setattr__(self, "coupled", coupled)
        object.__setattr__(self, "max_costs", check_max_costs(self.costs, max_costs))

    @classmethod
    def beta(
        cls,
        rewards: Sequence[float],
        costs: Sequence[float],
        budget: float,
        concentration: float = 10.0,
        max_costs: Sequence[float] | None = None,
    ) -> "Problem":
        """Beta rewards and costs with the given means; a mean m has parameters m and 1 - m times the concentration.

        With ``max_costs`` the cost of an arm is its largest cost times a Beta variable.

        >>> Problem.beta([0.3, 0.8], [0.1, 0.6], budget=0.3, max_costs=[0.2, 1.0]).costs[0]
        Scaled(of=Beta(mean=0.5, concentration=10.0), top=0.2)
        """
        cost_means = means("cost means", costs)
        tops = [1.0] * len(cost_means) if max_costs is None else means("max_costs", max_costs)
        return cls(
            [Beta(mean, concentration) for mean in means("reward means", rewards)],
            [scaled_beta(*pair, concentration) for pair in zip(cost_means, tops, strict=False)],
            budget,
            max_costs=max_costs,
        )

    @classmethod
    def bernoulli(cls, rewards: Sequence[float], costs: Sequence[float], budget: float) -> "Problem":
        """Rewards and costs of 0 or 1 with the given means."""
        return cls(
            [Bernoulli(mean) for mean in means("reward means", rewards)],
            [Bernoulli(mean) for mean in means("cost means", costs)],
            budget,
        )

    @property
    def arms(self) -> int:
        """The number of arms, the null arm not counted."""
        return len(self.rewards)

    @cached_property
    def reward_means(self) -> npt.NDArray[np.float64]:
        """mu, one entry per arm."""
        return np.array([reward.mean for reward in self.rewards])

    @cached_property
    def cost_means(self) -> npt.NDArray[np.float64]:
        """rho, one entry per arm."""
        return np.array([cost.mean for cost in self.costs])

    @cached_property
    def optimum(self) -> Optimum:
        """The best mix of arms and what it is worth."""
        return solve(self.reward_means, self.cost_means, self.budget)

    def to_dict(self) -> dict[str, object]:
        """The problem in a form that JSON and TOML can hold; `from_dict` is the way back.

        >>> problem = Problem.bernoulli([0.3], [0.9], budget=0.5)
        >>> Problem.from_dict(problem.to_dict()) == problem
        True
        """
        return {
            "budget": self.budget,
            "rewards": [to_dict(reward) for reward in self.rewards],
            "costs": [to_dict(cost) for cost in self.costs],
            "coupled": self.coupled,
            **({} if min(self.max_costs) == 1.0 else {"max_costs": list(self.max_costs)}),
        }

    @classmethod
    def from_dict(cls, description: object) -> "Problem":
        """The problem that a table describes.

        ``rewards`` and ``costs`` are lists with an entry per arm: a mean, or a table such as {kind = "constant",
        value = 0.2}. ``kind`` ("beta" unless given, or "bernoulli") and ``concentration`` say what a bare mean stands
        for.

        >>> table = {"kind": "bernoulli", "rewards": [0.3], "costs": [0.9], "budget": 0.5}
        >>> Problem.from_dict(table) == Problem.bernoulli([0.3], [0.9], budget=0.5)
        True
        """
        if not isinstance(description, dict):
            raise InvalidValue(f"a problem must be a table of rewards, costs and budget, got {description!r}")
        missing = [key for key in ("rewards", "costs", "budget") if key not in description]
        if missing:
            raise InvalidValue(f"a problem must have rewards, costs and budget; missing: {', '.join(missing)}")
        known = ("rewards", "costs", "budget", "kind", "concentration", "coupled", "max_costs")
        unknown = [str(key) for key in description if key not in known]
        if unknown:
            raise InvalidValue(f"a problem takes {', '.join(known)}; got {', '.join(unknown)}")
        kind = checks.one_of("kind of a problem", description.get("kind", "beta"), ("beta", "bernoulli"))
        if kind == "bernoulli" and "concentration" in description:
            raise InvalidValue(f"concentration is for kind 'beta' only, got kind {kind!r}")
        of_mean = {name: description[name] for name in ("concentration",) if name in description}
        sides: list[list[Distribution]] = []
        for thing in ("rewards", "costs"):
            tables = (
                entry if isinstance(entry, dict) else {"kind": kind, "mean": entry, **of_mean}
                for entry in checks.entries(thing, description[thing])
            )
            sides.append([from_dict(table, f"{thing}[{arm}]") for arm, table in enumerate(tables)])
        return cls(
            rewards=sides[0],
            costs=sides[1],
            budget=description["budget"],
            coupled=description.get("coupled", False),
            max_costs=description.get("max_costs"),
        )


def check_max_costs(costs: Sequence[Distribution], given: Sequence[float] | None) -> tuple[float, ...]:
    """The largest cost of each arm, 1 unless given; no arm may be able to cost more."""
    if given is None:
        return (1.0,) * len(costs)
    given = checks.entries("max_costs", given)
    if len(given) != len(costs):
        raise InvalidValue(f"max_costs must have one entry per arm, got {len(given)} for {len(costs)} arms")
    for arm, (cost, most) in enumerate(zip(costs, given, strict=True)):
        checks.real(f"max_costs[{arm}]", most, 0, 1)
        if (highest := extremes(cost)[1]) > most:
            raise InvalidValue(f"max_costs[{arm}] must cover every cost of its arm, {highest}, got {most}")
    return tuple(map(float, given))


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

"""Problem: the distributions of the arms and the line of each resource. Frozen and validated."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from paceline import checks
from paceline.errors import InvalidValue
from paceline.problems.description import describe, read_distributions, read_observed
from paceline.problems.distributions import Bernoulli, Beta, Distribution, extremes
from paceline.problems.draws import Sampler
from paceline.problems.observed import Column, Observations, Origin, full_table, shown_table
from paceline.problems.optimum import Optimum, solve_several
from paceline.problems.resources import UNNAMED, by_resource, resource_names
from paceline.problems.rules import (
    MOST,
    check_caps,
    check_columns,
    check_distributions,
    check_fallback,
    check_max_costs,
    check_rates,
    check_stop,
    cost_sides,
    means,
    within_top,
)

Value = TypeVar("Value")
Floats = npt.NDArray[np.float64]

ByName = Mapping[str, Value]


@dataclass(frozen=True, init=False)
class Problem:
    """K arms, each with a reward in [0, 1] and a cost for each of D resources, and the line of each resource.

    With one resource ``costs`` is a list with a distribution per arm and ``budget`` a rate in (0, 1]. With several,
    both are mappings by the name of the resource, and so are the options below.

    ``start``      stock before the first round; 0 unless given.
    ``cap``        the most that can be in stock, as in a battery; what would be above it is lost.
    ``max_costs``  the largest possible cost of each arm: the guard lets an arm be pulled when the headroom covers it.
                   It is 1 unless less is known to be enough; of an arm that may refill, what its distribution says.
    ``stop``       the classical problem, for stocks without income or refill: the run is over once one of them does not
                   cover the largest cost of every arm.
    ``fallback``   arm 0, whose largest cost must be 0, takes the place of the null arm: it is pulled where the policy
                   or the guard pulls none (see `problems.conservative`).
    ``coupled``    reward and costs of a pull are drawn from the same random numbers, so that a high reward comes with
                   high costs (Empirical values at the same place come together); else they are independent.

    The promise asked for, for every resource:  sum of costs up to t <= start + budget * t  after every round t, on
    every path. A cost below 0 (`Scaled`, `Shifted`) is a refill.

    >>> problem = Problem.beta([0.45, 0.7, 0.8], [0.3, 0.75, 0.8], budget=0.5)
    >>> problem.arms, problem.resources, round(problem.optimum.value, 12)
    (3, ('cost',), 0.59)
    >>> costs = {"money": [0.3, 0.75, 0.8], "energy": [0.2, 0.1, 0.6]}
    >>> problem = Problem.beta([0.45, 0.7, 0.8], costs, budget={"money": 0.5, "energy": 0.25}, start={"energy": 2})
    >>> problem.resources, problem.optimum.prices.round(3).tolist()
    (('money', 'energy'), [0.587, 0.141])
    """

    rewards: tuple[Distribution, ...]
    consumptions: tuple[tuple[Distribution, ...], ...]  # costs: for each resource an entry per arm
    resources: tuple[str, ...]
    rates: tuple[float, ...]
    stocks: tuple[float, ...]
    caps: tuple[float, ...]
    coupled: bool
    most: tuple[tuple[float, ...], ...]  # largest costs: for each resource an entry per arm
    stop: bool
    fallback: bool

    def __init__(
        self,
        rewards: Sequence[Distribution],
        costs: Sequence[Distribution] | ByName[Sequence[Distribution]],
        budget: float | ByName[float],
        coupled: bool = False,
        max_costs: Sequence[float] | ByName[Sequence[float]] | None = None,
        start: float | ByName[float] | None = None,
        cap: float | ByName[float] | None = None,
        stop: bool = False,
        fallback: bool = False,
    ) -> None:
        names = resource_names("costs", costs)
        rewards = check_distributions("rewards", rewards, 0.0)
        if not rewards:
            raise InvalidValue("a problem must have at least one arm, got none")
        sides = tuple(
            check_distributions(thing, given, -1.0) for thing, given in by_resource("costs", costs, names).values()
        )
        for side in sides:
            if len(side) != len(rewards):
                rule = "rewards and costs must have the same length"
                raise InvalidValue(f"{rule}, got {len(rewards)} rewards and {len(side)} costs")
        if not isinstance(coupled, bool):
            raise InvalidValue(f"coupled must be true or false, got {coupled!r}")
        check_columns((rewards, *sides), coupled)
        most = check_max_costs(sides, max_costs, names)
        stocks = tuple(
            checks.real(thing, given, 0, MOST)
            for thing, given in by_resource("start", start, names, otherwise=0.0).values()
        )
        rates = check_rates(budget, names, sides, stocks)
        values = {
            "rewards": rewards,
            "consumptions": sides,
            "resources": names,
            "rates": rates,
            "stocks": stocks,
            "caps": check_caps(cap, names, most, stocks),
            "coupled": coupled,
            "most": most,
            "stop": check_stop(stop, rates, sides),
            "fallback": check_fallback(fallback, most),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def beta(
        cls,
        rewards: Sequence[float],
        costs: Sequence[float] | ByName[Sequence[float]],
        budget: float | ByName[float],
        concentration: float = 10.0,
        max_costs: Sequence[float] | ByName[Sequence[float]] | None = None,
        start: float | ByName[float] | None = None,
        cap: float | ByName[float] | None = None,
        stop: bool = False,
    ) -> "Problem":
        """Beta rewards and costs with the given means; a mean m has parameters m and 1 - m times the concentration.

        With ``max_costs`` the cost of an arm is its largest cost times a Beta variable.

        >>> Problem.beta([0.3, 0.8], [0.1, 0.6], budget=0.3, max_costs=[0.2, 1.0]).costs[0]
        Scaled(of=Beta(mean=0.5, concentration=10.0), top=0.2)
        """
        return cls.of_means(
            partial(Beta, concentration=concentration), rewards, costs, budget, max_costs, start, cap, stop
        )

    @classmethod
    def bernoulli(
        cls,
        rewards: Sequence[float],
        costs: Sequence[float] | ByName[Sequence[float]],
        budget: float | ByName[float],
        max_costs: Sequence[float] | ByName[Sequence[float]] | None = None,
        start: float | ByName[float] | None = None,
        cap: float | ByName[float] | None = None,
        stop: bool = False,
    ) -> "Problem":
        """Rewards and costs of 0 or 1 with the given means; with ``max_costs``, costs of 0 or the largest cost.

        >>> Problem.bernoulli([0.3, 0.8], [0.1, 0.6], budget=0.3, max_costs=[0.2, 1.0]).costs
        (Scaled(of=Bernoulli(mean=0.5), top=0.2), Bernoulli(mean=0.6))
        """
        return cls.of_means(Bernoulli, rewards, costs, budget, max_costs, start, cap, stop)

    @classmethod
    def of_means(
        cls, of_mean: Callable[[float], Distribution], rewards: Any, costs: Any, budget: Any, max_costs: Any, *line: Any
    ) -> "Problem":
        """The problem with these means, from what makes a distribution in [0, 1] of a mean."""

        def cost(thing: str, given: object, top: float) -> Distribution:
            return within_top(thing, checks.real(thing, given, 0, 1), top, of_mean)

        sides = cost_sides("cost means", costs, max_costs, cost)
        return cls([of_mean(mean) for mean in means("reward means", rewards)], sides, budget, False, max_costs, *line)

    @classmethod
    def observed(
        cls,
        rewards: npt.ArrayLike,
        costs: npt.ArrayLike | ByName[npt.ArrayLike],
        budget: float | ByName[float],
        *,
        shown: npt.ArrayLike | None = None,
        max_costs: Sequence[float] | ByName[Sequence[float]] | None = None,
        start: float | ByName[float] | None = None,
        cap: float | ByName[float] | None = None,
        stop: bool = False,
        origin: Origin | None = None,
    ) -> "Problem":
        """A problem whose outcomes were observed: a pull takes a row at random, and from it the arm's reward and costs.

        So reward and costs of a pull depend on each other as they do in the table, and all means are exact. ``rewards``
        and ``costs`` are arrays (n, K) if every row knows what each arm yields; with ``shown``, the number of the arm
        that each row knows, they are arrays (n,). With several resources there is an array of costs for each name.
        ``origin`` is for families of problems, which are saved by name.

        >>> won = [[0, 1], [1, 1], [0, 0]]
        >>> problem = Problem.observed(rewards=won, costs=[[0, 0.4], [0.1, 0.1], [0, 0]], budget=0.1)
        >>> problem.reward_means.round(3).tolist(), problem.cost_means.round(3).tolist()
        ([0.333, 0.667], [0.033, 0.167])
        >>> world = problem.sample(seed=1)
        >>> sorted({world.pull(1) for _ in range(100)})  # never a reward of 1 at the cost of the third row
        [(0.0, 0.0), (1.0, 0.1), (1.0, 0.4)]
        """
        names = resource_names("costs", costs)
        sides = by_resource("costs", costs, names)
        table = full_table(rewards, sides, origin) if shown is None else shown_table(rewards, sides, shown, origin)
        return cls.of_table(table, names, budget, max_costs, start, cap, stop)

    @classmethod
    def of_table(
        cls,
        table: Observations,
        names: tuple[str, ...],
        budget: Any,
        max_costs: Any = None,
        start: Any = None,
        cap: Any = None,
        stop: bool = False,
    ) -> "Problem":
        """The problem whose outcomes are in a table."""
        if len(table.values) != 1 + len(names):
            raise InvalidValue(f"budget must be for {len(table.values) - 1} resources, got one for {', '.join(names)}")
        rewards, *sides = ([Column(table, side, arm) for arm in range(table.arms)] for side in range(1 + len(names)))
        costs = sides[0] if names == (UNNAMED,) else dict(zip(names, sides, strict=True))
        return cls(rewards, costs, budget, coupled=True, max_costs=max_costs, start=start, cap=cap, stop=stop)

    @property
    def observations(self) -> Observations | None:
        """The table that the outcomes come from, if they were observed together."""
        first = self.rewards[0]
        return first.table if isinstance(first, Column) else None

    @property
    def arms(self) -> int:
        """The number of arms, the null arm not counted."""
        return len(self.rewards)

    def named(self, values: Sequence[Value]) -> Any:
        """Values by the name of their resource; of one resource without a name the value itself."""
        return values[0] if self.resources == (UNNAMED,) else dict(zip(self.resources, values, strict=True))

    @property
    def costs(self) -> Any:
        """The distributions of the costs: an entry per arm, by resource if they have names."""
        return self.named(self.consumptions)

    @property
    def budget(self) -> Any:
        """What comes in per round, by resource if they have names."""
        return self.named(self.rates)

    @property
    def max_costs(self) -> Any:
        """The largest cost of each arm, by resource if they have names."""
        return self.named(self.most)

    @property
    def start(self) -> Any:
        """The stock before the first round, by resource if they have names."""
        return self.named(self.stocks)

    @property
    def cap(self) -> Any:
        """The most that can be in stock, by resource if they have names; infinite without a cap."""
        return self.named(self.caps)

    @property
    def refills(self) -> tuple[bool, ...]:
        """For each resource whether a pull may bring some of it."""
        return tuple(any(extremes(cost)[0] < 0.0 for cost in side) for side in self.consumptions)

    @cached_property
    def reward_means(self) -> Floats:
        """mu, one entry per arm."""
        return read_only(np.array([reward.mean for reward in self.rewards]))

    @cached_property
    def consumption_means(self) -> Floats:
        """rho, a row per arm and a column per resource."""
        return read_only(np.array([[cost.mean for cost in side] for side in self.consumptions]).T.copy())

    @cached_property
    def cost_means(self) -> Floats:
        """rho: one entry per arm with one resource, else a row per arm and a column per resource."""
        return self.consumption_means[:, 0] if len(self.resources) == 1 else self.consumption_means

    @property
    def is_known(self) -> bool:
        """Whether its means are known; a world in plain Python need not tell them, and then there is no regret."""
        return not np.isnan(self.reward_means).any()

    @cached_property
    def optimum(self) -> Optimum:
        """The best mix of arms and what it is worth."""
        return solve_several(self.reward_means, self.consumption_means, np.array(self.rates))

    def optimum_over(self, rounds: int) -> Optimum:
        """The best mix when a stock without income has to last for so many rounds: its rate is  start / rounds.

        Where every resource has an income it is the `optimum`; a start stock beside an income is worth its price.

        >>> stock = Problem.beta([0.5, 0.9], [0.2, 0.8], budget=0, start=100)
        >>> round(stock.optimum_over(200).value, 6)
        0.7
        """
        if not any(rate == 0.0 < stock for rate, stock in zip(self.rates, self.stocks, strict=True)):
            return self.optimum
        rates = [
            min(stock / rounds, 1.0) if rate == 0.0 else rate
            for rate, stock in zip(self.rates, self.stocks, strict=True)
        ]
        return solve_several(self.reward_means, self.consumption_means, np.array(rates))

    def sample(self, seed: int = 0, stream: int = 0) -> Sampler:
        """The draws of the simulator, for a loop of your own: ``.pull(arm)`` gives a reward and the costs.

        The n-th pull of an arm is the same as in trial ``stream`` of `paceline.simulate` with this seed.

        >>> world = Problem.bernoulli([1.0, 0.0], [0.0, 1.0], budget=0.5).sample(seed=7)
        >>> world.pull(0), world.pull(1)
        ((1.0, 0.0), (0.0, 1.0))
        """
        return Sampler(self, checks.seed(seed), checks.whole("stream", stream, 0, 2**64 - 1))

    def to_dict(self) -> dict[str, object]:
        """The problem in a form that JSON and TOML can hold; `from_dict` is the way back.

        >>> problem = Problem.bernoulli([0.3], [0.9], budget=0.5)
        >>> Problem.from_dict(problem.to_dict()) == problem
        True
        """
        return describe(self)

    @classmethod
    def from_dict(cls, description: object) -> "Problem":
        """The problem that a table describes.

        ``rewards`` and ``costs`` are lists with an entry per arm: a mean, or a table such as {kind = "constant",
        value = 0.2}; with several resources ``costs`` and ``budget`` are tables by their names. ``kind`` ("beta" unless
        given, or "bernoulli") and ``concentration`` say what a bare mean stands for; with ``max_costs`` a cost is the
        largest cost of its arm times such a variable, as in `beta`. In place of ``rewards`` and ``costs`` there may be
        ``observed``, as `to_dict` writes it.

        >>> table = {"kind": "bernoulli", "rewards": [0.3], "costs": [0.9], "budget": 0.5}
        >>> Problem.from_dict(table) == Problem.bernoulli([0.3], [0.9], budget=0.5)
        True
        """
        if not isinstance(description, dict):
            raise InvalidValue(f"a problem must be a table of rewards, costs and budget, got {description!r}")
        if "observed" in description:
            return cls.of_table(**read_observed(description))
        return cls(**read_distributions(description))


def read_only(array: Floats) -> Floats:
    """The same array; nobody may write to it."""
    array.flags.writeable = False
    return array

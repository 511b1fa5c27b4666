"""Logs of outcomes that a policy can be replayed on, checked row by row and brought to the scale of [0, 1]."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from paceline import checks
from paceline.engine import Engine
from paceline.errors import InvalidValue
from paceline.offline.data import LogTable, name_of
from paceline.policies.policy import State
from paceline.statistics import Estimate

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MaxCost = float | Mapping[str, float]

# Standard errors beyond which shares are reported as odd: about 1 in 16,000 arms by chance.
ODD = 4.0
NORMAL_95 = 1.959964


@dataclass(frozen=True)
class LoggedArm:
    """What a log says about an arm, in the units of the log."""

    rows: int  # that know its outcome
    reward: Estimate  # per pull
    cost: Estimate


@dataclass(frozen=True, kw_only=True, eq=False)
class Logged(ABC):
    """A log. Rewards and costs are divided by their largest possible values, ``max_reward`` and ``top``."""

    ordered: ClassVar[bool] = False  # whether the order of the rows is that of the rounds

    names: tuple[str, ...]  # of the arms
    rounds: int  # the most that a replay plays
    max_costs: Floats  # of the arms, in (0, 1]
    top: float  # the largest of them in the units of the log
    max_reward: float
    rewards: Floats
    costs: Floats

    @abstractmethod
    def resample(self, generator: np.random.Generator, again: bool) -> "Logged":
        """The rows for one replay; with ``again`` they are drawn with replacement."""

    @abstractmethod
    def play(self, engine: Engine, params: Any, state: State) -> None:
        """Replay the rows as they stand."""

    @abstractmethod
    def arm(self, number: int) -> tuple[Floats, Floats, Floats]:
        """Rewards, costs and weights of the rows that know the outcome of an arm."""

    def notes(self) -> tuple[str, ...]:
        """What a reader of the results should know of the log."""
        return ()

    def arms(self) -> dict[str, LoggedArm]:
        """The mean reward and cost of each arm."""
        found = {}
        for number, name in enumerate(self.names):
            rewards, costs, weights = self.arm(number)
            most = float(self.max_costs[number]) * self.top
            found[name] = LoggedArm(
                rewards.size,
                weighted_mean(rewards * self.max_reward, weights, self.max_reward),
                weighted_mean(costs * self.top, weights, most),
            )
        return found


@dataclass(frozen=True, kw_only=True, eq=False)
class FullLog(Logged):
    """Every row knows the outcome of every arm: tables with a row per round and a column per arm."""

    ordered = True

    def resample(self, generator: np.random.Generator, again: bool) -> Logged:
        """The log as it is, or as many of its rows drawn with replacement."""
        if not again:
            return self
        at = generator.integers(self.rounds, size=self.rounds)
        return replace(self, rewards=self.rewards[at], costs=self.costs[at])

    def play(self, engine: Engine, params: Any, state: State) -> None:
        """Row t is round t."""
        engine.play_table(params, state, self.rewards, self.costs)

    def arm(self, number: int) -> tuple[Floats, Floats, Floats]:
        """All rows, with equal weight."""
        return self.rewards[:, number], self.costs[:, number], np.ones(self.rounds)


@dataclass(frozen=True, kw_only=True, eq=False)
class RandomLog(Logged):
    """Every row knows the outcome of the one arm that was shown, drawn at random with a known propensity."""

    shown: Ints
    propensities: Floats  # of the arms shown
    given: bool  # whether the log had them, or equal ones were taken for granted

    def resample(self, generator: np.random.Generator, again: bool) -> Logged:
        """The rows in random order, thinned: one of propensity p stays with probability  (smallest p) / p.

        What stays shows each arm with the same probability, whatever else is known of the row.
        """
        rows = self.shown.size
        at = generator.integers(rows, size=rows) if again else generator.permutation(rows)
        at = at[generator.random(rows) < self.propensities.min() / self.propensities[at]]
        return replace(self, shown=self.shown[at], rewards=self.rewards[at], costs=self.costs[at])

    def play(self, engine: Engine, params: Any, state: State) -> None:
        """A pull passes over rows until one shows its arm."""
        engine.sift(params, state, self.shown, self.rewards, self.costs, self.rounds)

    def arm(self, number: int) -> tuple[Floats, Floats, Floats]:
        """The rows that show the arm, each with the weight 1 / propensity."""
        at = self.shown == number
        return self.rewards[at], self.costs[at], 1.0 / self.propensities[at]

    def notes(self) -> tuple[str, ...]:
        """Arms that are shown more or less often than their propensities can explain.

        For each arm the sum of 1 / p over the rows that show it has the mean N, the number of rows, and the variance
        N (E[1 / p] - 1).  With equal propensities this is the binomial test of its share.
        """
        found = []
        rows = self.shown.size
        for number, name in enumerate(self.names):
            weights = 1.0 / self.propensities[self.shown == number]
            total = float(weights.sum())
            variance = rows * (float((weights**2).sum()) / total - 1.0)
            errors = (total - rows) / max(variance, 1.0) ** 0.5
            if abs(errors) > ODD:
                expected = "its propensities give" if self.given else "equal propensities, taken for granted, give"
                found.append(
                    f"arm {name!r} is shown in {weights.size / rows:.1%} of the rows where {expected} "
                    f"{weights.size / total:.1%} ({abs(errors):.1f} standard errors away): the estimates may be wrong"
                )
        return tuple(found)


def weighted_mean(values: Floats, weights: Floats, most: float) -> Estimate:
    """The mean of values in [0, most] with the given weights, and its 95 % interval from the normal approximation.

    With weights 1 / propensity it is the self-normalised inverse-propensity estimate. The variance of such a ratio is
    about  n / (n - 1) * sum w^2 (x - mean)^2 / (sum w)^2;  a single value says nothing about it.

    >>> print(weighted_mean(np.array([0.0, 0.0, 1.0, 1.0]), np.ones(4), 1.0))
    0.5 [0, 1]
    """
    total = float(weights.sum())
    mean = float(weights @ values) / total
    if values.size == 1:
        return Estimate(mean, 0.0, most)
    squares = float(((weights * (values - mean)) ** 2).sum()) * values.size / (values.size - 1)
    radius = NORMAL_95 * squares**0.5 / total
    return Estimate(mean, max(mean - radius, 0.0), min(mean + radius, most))


def random_log(
    log_table: LogTable, arm: str, reward: str, cost: str, propensity: str | None, max_cost: MaxCost, max_reward: float
) -> RandomLog:
    """The log of arms shown at random; those columns hold the arm, its reward, its cost and its propensity."""
    max_reward = checks.real("max_reward", max_reward, 0, above_low=True)
    log_table.require(name for name in (arm, reward, cost, propensity) if name is not None)
    called = log_table.names("arm", arm)
    at_least_one_row(log_table)
    names = tuple(sorted(set(called), key=by_number))
    if isinstance(max_cost, Mapping):
        known = {name_of(name) for name in max_cost}
        strange = np.array([name not in known for name in called])
        log_table.refuse(f"arm in column {arm!r} must be one of max_cost", strange, lambda row: repr(called[row]))
    most = largest_costs(names, max_cost)
    number = {name: at for at, name in enumerate(names)}
    shown = np.array([number[name] for name in called], np.int64)
    rewards = log_table.numbers("reward", reward, max_reward)
    costs = log_table.numbers("cost", cost, float(most.max()))
    log_table.refuse(
        f"cost in column {cost!r} must be at most the max_cost of its arm",
        costs > most[shown],
        lambda row: f"{float(costs[row])!r} for {called[row]!r}, whose max_cost is {float(most[shown[row]]):g}",
    )
    if propensity is None:
        propensities = np.full(log_table.rows, 1.0 / len(names))
    else:
        propensities = log_table.numbers("propensity", propensity, 1.0, above_zero=True)
    return RandomLog(
        **scale_log(names, most, max_reward, rewards, costs),
        shown=shown,
        propensities=propensities,
        given=propensity is not None,
    )


def full_log(
    log_table: LogTable,
    rewards: Mapping[str, str] | None,
    costs: Mapping[str, str] | None,
    max_cost: MaxCost,
    max_reward: float,
) -> FullLog:
    """The log of all outcomes; ``rewards`` and ``costs`` say in which columns those of each arm are."""
    max_reward = checks.real("max_reward", max_reward, 0, above_low=True)
    reward_columns, cost_columns = columns_of("rewards", rewards), columns_of("costs", costs)
    if set(reward_columns) != set(cost_columns):
        raise InvalidValue(
            f"rewards and costs must name the same arms, got {', '.join(reward_columns)} and {', '.join(cost_columns)}"
        )
    log_table.require([*reward_columns.values(), *cost_columns.values()])
    names = tuple(reward_columns)
    most = largest_costs(names, max_cost)
    earned = [log_table.numbers(f"reward of {name!r}", reward_columns[name], max_reward) for name in names]
    spent = [
        log_table.numbers(f"cost of {name!r}", cost_columns[name], float(limit))
        for name, limit in zip(names, most, strict=True)
    ]
    at_least_one_row(log_table)
    return FullLog(**scale_log(names, most, max_reward, np.column_stack(earned), np.column_stack(spent)))


def scale_log(
    names: tuple[str, ...], most: Floats, max_reward: float, rewards: Floats, costs: Floats
) -> dict[str, Any]:
    """What both kinds of log hold."""
    top = float(most.max())
    return {
        "names": names,
        "rounds": len(rewards),
        "max_costs": most / top,
        "top": top,
        "max_reward": max_reward,
        "rewards": rewards / max_reward,
        "costs": costs / top,
    }


def largest_costs(names: Sequence[str], max_cost: MaxCost) -> Floats:
    """The largest possible cost of each arm, from one number for all or a mapping."""
    if not isinstance(max_cost, Mapping):
        return np.full(len(names), checks.real("max_cost", max_cost, 0, above_low=True))
    given = {name_of(name): value for name, value in max_cost.items()}
    if set(given) != set(names):
        raise InvalidValue(f"max_cost must name the arms of the log, {', '.join(names)}, got {', '.join(given)}")
    return np.array([checks.real(f"max_cost of {name!r}", given[name], 0, above_low=True) for name in names])


def columns_of(thing: str, given: object) -> dict[str, str]:
    """The columns of the arms, from a mapping."""
    if not isinstance(given, Mapping) or not given:
        raise InvalidValue(f"{thing} must be a mapping of arms to columns such as {{'banner': 'b'}}, got {given!r}")
    return {name_of(name): column for name, column in given.items()}


def at_least_one_row(log_table: LogTable) -> None:
    """Refuse a log without rows."""
    if not log_table.rows:
        raise InvalidValue(f"{log_table.source}a log must have at least one row, got none")


def by_number(name: str) -> tuple[bool, int, str]:
    """Sorts whole numbers by their value, and before words.

    >>> sorted(["video", "10", "9"], key=by_number)
    ['9', '10', 'video']
    """
    return (not name.isdecimal(), int(name) if name.isdecimal() else 0, name)

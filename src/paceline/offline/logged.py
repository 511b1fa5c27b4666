"""Logs of outcomes that a policy can be replayed on, brought to the scale of [0, 1]."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from paceline.problems.resources import UNNAMED
from paceline.statistics import Estimate
from paceline.worlds.log import LogWorld
from paceline.worlds.table import TableWorld
from paceline.worlds.world import World

Value = TypeVar("Value")
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Standard errors beyond which shares are reported as odd: about 1 in 16,000 arms by chance.
ODD = 4.0
NORMAL_95 = 1.959964


@dataclass(frozen=True)
class LoggedArm:
    """What a log says about an arm, in the units of the log."""

    rows: int  # that know its outcome
    reward: Estimate  # per pull
    costs: dict[str, Estimate]  # by resource

    @property
    def cost(self) -> Any:
        """The cost per pull, by resource if they have names."""
        return if_named(self.costs)


@dataclass(frozen=True, kw_only=True, eq=False)
class Logged(ABC):
    """A log. Rewards and costs are divided by their largest possible values, ``max_reward`` and ``tops``."""

    ordered: ClassVar[bool] = False  # whether the order of the rows is that of the rounds

    names: tuple[str, ...]  # of the arms
    resources: tuple[str, ...]
    rounds: int  # the most that a replay plays
    limits: Floats  # largest costs: a row per arm, a column per resource, in [0, 1]
    tops: Floats  # the largest of each column, in the units of the log
    max_reward: float
    rewards: Floats
    costs: Floats  # with one more axis, for the resources
    left_out: dict[str, int] = field(default_factory=dict)  # rows of the table that are not in the log, by the reason

    @abstractmethod
    def resample(self, generator: np.random.Generator, again: bool) -> "Logged":
        """The rows for one replay; with ``again`` they are drawn with replacement."""

    @abstractmethod
    def world(self) -> World:
        """What a pull yields according to the rows as they stand. It can be played once."""

    @abstractmethod
    def arm(self, number: int) -> tuple[Floats, Floats, Floats]:
        """Rewards, costs (with several resources a column each) and weights of the rows that know an arm's outcome."""

    @property
    def max_costs(self) -> Floats:
        """Largest costs of the arms; with several resources a row per arm."""
        return without_axis(self.limits)

    @property
    def top(self) -> float:
        """The largest cost of a log with one resource, in its units."""
        return float(self.tops[0])

    def notes(self) -> tuple[str, ...]:
        """What a reader of the results should know of the log."""
        return ()

    def arms(self) -> dict[str, LoggedArm]:
        """The mean reward and costs of each arm."""
        found = {}
        for number, name in enumerate(self.names):
            rewards, costs, weights = self.arm(number)
            reward = weighted_mean(rewards * self.max_reward, weights, self.max_reward)
            sides = zip(self.resources, costs.reshape(rewards.size, -1).T, self.limits[number], self.tops, strict=True)
            means = {
                resource: weighted_mean(side * top, weights, float(limit * top)) for resource, side, limit, top in sides
            }
            found[name] = LoggedArm(rewards.size, reward, means)
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

    def world(self) -> World:
        """Row t is round t."""
        return TableWorld(self.rewards, self.costs)

    def arm(self, number: int) -> tuple[Floats, Floats, Floats]:
        """All rows, with equal weight."""
        return self.rewards[:, number], without_axis(self.costs[:, number]), np.ones(self.rounds)


@dataclass(frozen=True, kw_only=True, eq=False)
class RandomLog(Logged):
    """Every row knows the outcome of the one arm that was shown, drawn at random with a known propensity."""

    shown: Ints
    propensities: Floats  # of the arms shown
    given: bool  # whether the log had them, or equal ones were taken for granted
    empty: str = ""  # a column of propensities without a single one
    sat_out: int = 0  # rounds without an arm in which arms could have been drawn

    def resample(self, generator: np.random.Generator, again: bool) -> Logged:
        """The rows in random order, thinned: one of propensity p stays with probability  (smallest p) / p.

        What stays shows each arm with the same probability, whatever else is known of the row.
        """
        rows = self.shown.size
        at = generator.integers(rows, size=rows) if again else generator.permutation(rows)
        at = at[generator.random(rows) < self.propensities.min() / self.propensities[at]]
        return replace(self, shown=self.shown[at], rewards=self.rewards[at], costs=self.costs[at])

    def world(self) -> World:
        """A pull passes over rows until one shows its arm."""
        return LogWorld(self.shown, self.rewards, self.costs)

    def arm(self, number: int) -> tuple[Floats, Floats, Floats]:
        """The rows that show the arm, each with the weight 1 / propensity."""
        at = self.shown == number
        return self.rewards[at], without_axis(self.costs[at]), 1.0 / self.propensities[at]

    def notes(self) -> tuple[str, ...]:
        """Rows that are left out, that had no choice, and arms that are shown more or less often than they should be.

        For each arm the sum of 1 / p over the rows that show it has the mean N, the number of rows, and the variance
        N (E[1 / p] - 1).  With equal propensities this is the binomial test of its share. Rounds that were sat out
        although an arm could have been drawn are among the N; rows of propensity 1 are not, as they left no choice.
        """
        found = [*self._rows_left_out(), *self._rows_without_choice()]
        drawn = self.propensities < 1.0 if self.given else np.ones(self.shown.size, bool)
        rows = int(drawn.sum()) + self.sat_out
        for number, name in enumerate(self.names):
            weights = 1.0 / self.propensities[drawn & (self.shown == number)]
            if not weights.size:
                continue
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

    def _rows_left_out(self) -> list[str]:
        if not self.left_out:
            return []
        missing = sum(self.left_out.values())
        return [f"{missing:,} of {missing + self.shown.size:,} rows are left out: {counted(self.left_out)}"]

    def _rows_without_choice(self) -> list[str]:
        if self.empty:
            return [
                f"column {self.empty!r} has no propensity: arms are taken to be drawn evenly, and the estimates are "
                "wrong if a policy chose them"
            ]
        certain = int((self.propensities == 1.0).sum())
        if len(self.names) == 1 or not certain:
            return []
        return [
            f"{certain:,} rows have the propensity 1, so no other arm could be drawn there: "
            "the estimates are right only if what an arm yields is alike in all rows"
        ]


def counted(left_out: Mapping[str, int]) -> str:
    """Rows that are left out, in words.

    >>> counted({"no arm": 1200, "no reward": 3})
    '1,200 with no arm, 3 with no reward'
    """
    return ", ".join(f"{count:,} with {reason}" for reason, count in left_out.items())


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


def without_axis(values: Floats) -> Floats:
    """Values without the axis for the resources, where there is but one."""
    return values[..., 0] if values.shape[-1] == 1 else values


def if_named(values: Mapping[str, Value]) -> Any:
    """Values by the name of their resource; of one resource without a name the value itself.

    >>> if_named({"money": 0.3, "calls": 1.0}), if_named({"cost": 0.3})
    ({'money': 0.3, 'calls': 1.0}, 0.3)
    """
    return values[UNNAMED] if tuple(values) == (UNNAMED,) else dict(values)

"""What a replay of logged outcomes leaves behind, by policy and budget."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from paceline.errors import InvalidValue, UnknownName
from paceline.offline.best import Rates, allowed
from paceline.offline.logged import Logged, LoggedArm, if_named
from paceline.problems.resources import by_resource
from paceline.reports.tables import Table, frame, of_resources
from paceline.simulation.totals import Totals
from paceline.statistics import Estimate, three_digits

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Key = tuple[str, Any]  # the label of a policy, and the budget: a number, or the rates of several resources


@dataclass(frozen=True, eq=False)
class Replayed:
    """The replays of one policy at one budget, in the units of the log; by resource where they have names.

    ``optimum`` is the value of the best mix of arms at this budget if the estimated means were the true ones, and
    ``single`` that of the best single arm mixed with sitting out. A maximum over noisy means is on average above that
    of the true ones.
    """

    label: str
    rates: Rates
    optimum: float
    single: float
    log: Logged
    ordered: Totals  # of the replays behind the estimate
    resampled: Totals  # of the replays behind the interval

    @property
    def budget(self) -> Any:
        """What may be spent per round."""
        return self._named(self.rates)

    @property
    def rounds(self) -> float:
        """Rounds of a replay; a mean where the estimate is one."""
        return float(rounds_of(self.ordered).mean())

    @property
    def rows(self) -> float:
        """Rows whose outcome the policy was told."""
        return sum(self.pulls.values())

    @property
    def pulls(self) -> dict[str, float]:
        """Pulls of each arm."""
        return dict(zip(self.log.names, self.ordered.pulls[:, -1].mean(axis=0).tolist(), strict=True))

    @property
    def reward(self) -> Estimate:
        """Reward per round."""
        return self._per_round("earned", self.log.max_reward)

    @property
    def spent(self) -> Any:
        """What was spent per round."""
        return self._named([self._per_round("spent", top, d) for d, top in enumerate(self.log.tops.tolist())])

    @property
    def idle(self) -> Estimate:
        """Share of the rounds that were sat out."""
        return self._per_round("idle", 1.0)

    @property
    def min_headroom(self) -> Any:
        """The smallest  budget * t - spent so far  over all rounds of all replays. Not below 0."""
        lowest = np.vstack([as_table(part.min_headroom) for part in (self.ordered, self.resampled)]).min(axis=0)
        return self._named((self.log.tops * lowest).tolist())

    def _named(self, values: Sequence[Any]) -> Any:
        return if_named(dict(zip(self.log.resources, values, strict=True)))

    def _per_round(self, total: str, unit: float, resource: int = 0) -> Estimate:
        ordered, resampled = (
            unit * as_table(getattr(part, total)[:, -1])[:, resource] / rounds_of(part)
            for part in (self.ordered, self.resampled)
        )
        return Estimate(float(ordered.mean()), *np.quantile(resampled, [0.025, 0.975]).tolist())

    def record(self) -> dict[str, str | float]:
        """All of it as plain numbers by name."""
        return {
            "policy": self.label,
            **in_columns("budget", self.budget),
            "rounds": self.rounds,
            "rows": self.rows,
            **in_columns("reward", self.reward),
            **in_columns("spent", self.spent),
            **in_columns("idle", self.idle),
            **in_columns("min_headroom", self.min_headroom),
            "optimum": self.optimum,
            "single": self.single,
            **{f"pulls_{name}": pulls for name, pulls in self.pulls.items()},
        }


def as_table(totals: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Totals with a row per trial and a column per resource, even if there is one."""
    return totals.reshape(len(totals), -1)


def in_columns(name: str, value: Any) -> dict[str, float]:
    """A value as numbers with names that a table can have: with the resource and the ends of the interval added.

    >>> in_columns("spent", {"money": Estimate(0.3, 0.2, 0.4)})
    {'spent_money': 0.3, 'spent_money_low': 0.2, 'spent_money_high': 0.4}
    """
    if isinstance(value, dict):
        parts = [in_columns(f"{name}_{resource}", one) for resource, one in value.items()]
        return {column: number for part in parts for column, number in part.items()}
    if isinstance(value, Estimate):
        return {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}
    return {name: value}


@dataclass(frozen=True, eq=False)
class Replay(Mapping[Key, Replayed]):
    """Replays by policy and budget: ``replay["index", 0.2].reward``.

    With several resources the budget of a key is the tuple of its rates, in the order of ``resources``; the mapping
    that was given finds it, too: ``replay["index", {"money": 0.3, "calls": 0.5}]``.

    ``arms`` holds the estimated mean reward and cost of each arm, ``notes`` what in the log should make a reader wary.
    ``rows`` counts the rows of the log, and ``left_out`` those that are not among them, by what they lack.

    >>> from paceline.offline.replay import replay
    >>> log = {"arm": ["a", "b"] * 300, "reward": [1, 0, 0, 1, 1, 1] * 100, "cost": [0.2, 0.9] * 300}
    >>> res = replay(log, budget=[0.2, 0.5], repeats=20)
    >>> list(res)
    [('index', 0.2), ('index', 0.5)]
    >>> res.arm_table()
    arm  rows      reward per pull  cost per pull
    ---  ----  -------------------  -------------
    a     300  0.667 [0.613, 0.72]            0.2
    b     300  0.667 [0.613, 0.72]            0.9
    """

    rows: int
    repeats: int
    seed: int
    resources: tuple[str, ...]
    arms: dict[str, LoggedArm]
    notes: tuple[str, ...]
    left_out: dict[str, int]
    replays: dict[Key, Replayed]

    def __getitem__(self, key: Key) -> Replayed:
        try:
            return self.replays[self._plain_key(key)]
        except (KeyError, TypeError):  # a list or a mapping of other resources has no hash
            order = f" ({', '.join(self.resources)})" if len(self.resources) > 1 else ""
            known = ", ".join(map(str, self.replays))
            raise UnknownName(f"policy and budget{order} must be one of {known}, got {key!r}") from None

    def _plain_key(self, key: Key) -> Key:
        match key:
            case (label, Mapping() as budget) if set(budget) == set(self.resources):
                return key_of(label, tuple(budget[name] for name in self.resources))
        return key

    def __iter__(self) -> Iterator[Key]:
        return iter(self.replays)

    def __len__(self) -> int:
        return len(self.replays)

    def table(self) -> Table:
        """One line per policy and budget, with 95 % intervals."""
        headings = (
            "policy",
            *of_resources("budget", self.resources),
            "rounds",
            "rows used",
            "reward per round",
            "best mix",
            "best arm",
            *of_resources("spent per round", self.resources),
            "sat out",
            *of_resources("min headroom", self.resources),
        )
        rows = [
            (
                one.label,
                *(f"{rate:g}" for rate in one.rates),
                f"{one.rounds:,.0f}",
                f"{one.rows:,.0f}",
                str(one.reward),
                three_digits(one.optimum),
                three_digits(one.single),
                *(three_digits(spent.value) for spent in listed(one.spent)),
                f"{one.idle.value:.1%}",
                *(f"{least:.3g}" for least in listed(one.min_headroom)),
            )
            for one in self.values()
        ]
        return Table(headings, tuple(rows))

    def arm_table(self) -> Table:
        """One line per arm, with 95 % intervals."""
        headings = ("arm", "rows", "reward per pull", *of_resources("cost per pull", self.resources))
        rows = [
            (name, f"{arm.rows:,}", str(arm.reward), *map(str, arm.costs.values())) for name, arm in self.arms.items()
        ]
        return Table(headings, tuple(rows))

    def records(self) -> list[dict[str, str | float]]:
        """One record per policy and budget: the numbers of the table without rounding, and the pulls of each arm."""
        return [one.record() for one in self.values()]

    def to_pandas(self) -> "pd.DataFrame":
        """A row per record."""
        return frame(self.records())

    def allowed(self, budget: Any) -> tuple[float, float]:
        """What the best mix of arms and the best single arm would earn per round at another budget."""
        rates = budget if isinstance(budget, tuple) else (budget,)
        if isinstance(budget, Mapping) or len(rates) != len(self.resources):
            rates = tuple(rate for _, rate in by_resource("budget", budget, self.resources).values())
        return allowed(self.arms, rates)

    def plot(self, path: str | os.PathLike[str] | None = None) -> "Figure":
        """Reward per round against the budget, a line per policy with the 95 % interval, below the best mix of arms."""
        if len(self.resources) > 1:
            raise InvalidValue(f"plot draws replays with one resource only, got {', '.join(self.resources)}")
        from paceline.reports.figures import replay_figure

        return replay_figure(self, path)


def key_of(label: str, rates: Rates) -> Key:
    """Under which a replay is found: with one resource by its rate alone.

    >>> key_of("suak", (0.3,)), key_of("suak", (0.3, 0.5))
    (('suak', 0.3), ('suak', (0.3, 0.5)))
    """
    return label, rates[0] if len(rates) == 1 else rates


def listed(value: Any) -> list[Any]:
    """The values of the resources, with names or without."""
    return list(value.values()) if isinstance(value, dict) else [value]


def rounds_of(totals: Totals) -> npt.NDArray[np.int64]:
    """Rounds that were settled; a replay may end with one that was not."""
    return np.asarray(totals.idle[..., -1] + totals.pulls[..., -1, :].sum(axis=-1))

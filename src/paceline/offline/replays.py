"""What a replay of logged outcomes leaves behind, by policy and budget."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from paceline.errors import UnknownName
from paceline.offline.logs import Logged, LoggedArm
from paceline.problems.optimum import solve
from paceline.reports.tables import Table, frame
from paceline.simulation.totals import Totals
from paceline.statistics import Estimate, three_digits

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Replayed:
    """The replays of one policy at one budget, in the units of the log.

    ``optimum`` is the value of the best mix of arms at this budget if the estimated means were the true ones, and
    ``single`` that of the best single arm mixed with sitting out. A maximum over noisy means is on average above that
    of the true ones.
    """

    label: str
    budget: float
    optimum: float
    single: float
    log: Logged
    ordered: Totals  # of the replays behind the estimate
    resampled: Totals  # of the replays behind the interval

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
    def spent(self) -> Estimate:
        """Money spent per round."""
        return self._per_round("spent", self.log.top)

    @property
    def idle(self) -> Estimate:
        """Share of the rounds that were sat out."""
        return self._per_round("idle", 1.0)

    @property
    def min_headroom(self) -> float:
        """The smallest  budget * t - money spent  over all rounds of all replays. Not below 0."""
        return self.log.top * float(min(part.min_headroom.min() for part in (self.ordered, self.resampled)))

    def _per_round(self, total: str, unit: float) -> Estimate:
        ordered, resampled = (
            unit * getattr(part, total)[:, -1] / rounds_of(part) for part in (self.ordered, self.resampled)
        )
        return Estimate(float(ordered.mean()), *np.quantile(resampled, [0.025, 0.975]).tolist())

    def record(self) -> dict[str, str | float]:
        """All of it as plain numbers by name."""
        estimates = {
            name + end: getattr(getattr(self, name), part)
            for name in ("reward", "spent", "idle")
            for end, part in (("", "value"), ("_low", "low"), ("_high", "high"))
        }
        return {
            "policy": self.label,
            "budget": self.budget,
            "rounds": self.rounds,
            "rows": self.rows,
            **estimates,
            "min_headroom": self.min_headroom,
            "optimum": self.optimum,
            "single": self.single,
            **{f"pulls_{name}": pulls for name, pulls in self.pulls.items()},
        }


@dataclass(frozen=True, eq=False)
class Replay(Mapping[tuple[str, float], Replayed]):
    """Replays by policy and budget: ``replay["thompson", 0.2].reward``.

    ``arms`` holds the estimated mean reward and cost of each arm, ``notes`` what in the log should make a reader wary.

    >>> from paceline.offline.replay import replay
    >>> log = {"arm": ["a", "b"] * 300, "reward": [1, 0, 0, 1, 1, 1] * 100, "cost": [0.2, 0.9] * 300}
    >>> res = replay(log, budget=[0.2, 0.5], repeats=20)
    >>> list(res)
    [('thompson', 0.2), ('thompson', 0.5)]
    >>> res.arm_table()
    arm  rows      reward per pull   cost per pull
    ---  ----  -------------------  --------------
    a     300  0.667 [0.613, 0.72]  0.2 [0.2, 0.2]
    b     300  0.667 [0.613, 0.72]  0.9 [0.9, 0.9]
    """

    rows: int
    repeats: int
    seed: int
    arms: dict[str, LoggedArm]
    notes: tuple[str, ...]
    replays: dict[tuple[str, float], Replayed]

    def __getitem__(self, key: tuple[str, float]) -> Replayed:
        if key not in self.replays:
            raise UnknownName(f"policy and budget must be one of {', '.join(map(str, self.replays))}, got {key!r}")
        return self.replays[key]

    def __iter__(self) -> Iterator[tuple[str, float]]:
        return iter(self.replays)

    def __len__(self) -> int:
        return len(self.replays)

    def table(self) -> Table:
        """One line per policy and budget, with 95 % intervals."""
        headings = (
            "policy",
            "budget",
            "rounds",
            "rows used",
            "reward per round",
            "best mix",
            "best arm",
            "spent per round",
            "sat out",
            "min headroom",
        )
        rows = [
            (
                one.label,
                f"{one.budget:g}",
                f"{one.rounds:,.0f}",
                f"{one.rows:,.0f}",
                str(one.reward),
                three_digits(one.optimum),
                three_digits(one.single),
                three_digits(one.spent.value),
                f"{one.idle.value:.1%}",
                f"{one.min_headroom:.3g}",
            )
            for one in self.values()
        ]
        return Table(headings, tuple(rows))

    def arm_table(self) -> Table:
        """One line per arm, with 95 % intervals."""
        rows = [(name, f"{arm.rows:,}", str(arm.reward), str(arm.cost)) for name, arm in self.arms.items()]
        return Table(("arm", "rows", "reward per pull", "cost per pull"), tuple(rows))

    def records(self) -> list[dict[str, str | float]]:
        """One record per policy and budget: the numbers of the table without rounding, and the pulls of each arm."""
        return [one.record() for one in self.values()]

    def to_pandas(self) -> "pd.DataFrame":
        """A row per record."""
        return frame(self.records())

    def allowed(self, budget: float) -> tuple[float, float]:
        """What the best mix of arms and the best single arm would earn per round at another budget."""
        return allowed(self.arms, budget)

    def plot(self, path: str | os.PathLike[str] | None = None) -> "Figure":
        """Reward per round against the budget, a line per policy with the 95 % interval, below the best mix of arms."""
        from paceline.reports.figures import replay_figure

        return replay_figure(self, path)


def rounds_of(totals: Totals) -> npt.NDArray[np.int64]:
    """Rounds that were settled; a replay may end with one that was not."""
    return np.asarray(totals.idle[..., -1] + totals.pulls[..., -1, :].sum(axis=-1))


def allowed(arms: Mapping[str, LoggedArm], budget: float) -> tuple[float, float]:
    """What the best mix of arms and the best single arm would earn per round, were the estimated means the true ones.

    A single arm is pulled as often as the budget lets it be:  mu min(1, c / rho).

    >>> arms = {
    ...     "cheap": LoggedArm(100, reward=Estimate(0.5, 0.4, 0.6), cost=Estimate(0.25, 0.2, 0.3)),
    ...     "expensive": LoggedArm(100, reward=Estimate(1.0, 0.9, 1.0), cost=Estimate(1.0, 1.0, 1.0)),
    ... }
    >>> allowed(arms, 0.625), allowed(arms, 2.0)
    ((0.75, 0.625), (1.0, 1.0))
    """
    rewards = np.array([arm.reward.value for arm in arms.values()])
    costs = np.array([arm.cost.value for arm in arms.values()])
    return solve(rewards, costs, budget).value, float((rewards * budget / np.maximum(costs, budget)).max())

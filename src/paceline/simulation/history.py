"""The history of a run: its rounds one by one, as arrays and as tables."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from paceline.kernels.page import Page
from paceline.parquet import ParquetColumns, arrow
from paceline.reports.tables import of_resources, pandas
from paceline.simulation.recording import AMOUNTS, Kept, Record, as_array, table_of

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class History:
    """The rounds of a run that were kept. Arrays have a row per trial and a column per round.

    Amounts of several resources have one more axis, for them. What was streamed to files is read when it is asked for,
    one column at a time; the files can also be read on their own, by anything that reads Parquet.

    >>> from paceline import paper
    >>> from paceline.simulation.simulate import simulate
    >>> run = simulate(paper.three_arms(), "uniform", rounds=500, trials=2, record="all")["uniform"]
    >>> history = run.history()
    >>> history
    <History of 'uniform': 2 trials, 500 rounds each>
    >>> bool((np.cumsum(history.reward, axis=1)[:, -1].round(6) == run.reward[:, -1].round(6)).all())
    True
    >>> history.to_pandas().columns.tolist()
    ['policy', 'trial', 'round', 'arm', 'reason', 'reward', 'cost', 'available', 'headroom']
    """

    label: str
    records: tuple[Record, ...]  # one per trial
    kept: tuple[Kept, ...]

    def __repr__(self) -> str:
        kept = f"{len(self.records)} trials, {len(self.records[0].rounds):,} rounds each"
        return f"<History of {self.label!r}: {kept}>"

    @property
    def rounds(self) -> Ints:
        """(N,): the rounds that were kept, in their order."""
        return as_array(self.records[0].rounds)

    @property
    def files(self) -> list[Path]:
        """The files that they were streamed to, a trial each; none if they are in memory."""
        return [kept for kept in self.kept if isinstance(kept, Path)]

    @property
    def arm(self) -> Array:
        """(trials, N): the arm pulled; K for a null arm that the policy wanted, -1 for a round that was skipped."""
        return self._stacked("arm")

    @property
    def reason(self) -> Array:
        """(trials, N): why, in words."""
        return self._stacked("reason")

    @property
    def reward(self) -> Array:
        """(trials, N): what the pull brought, known or not; 0 without one."""
        return self._stacked("reward")

    @property
    def cost(self) -> Array:
        """(trials, N) or, with several resources, (trials, N, D): what it cost, to the bit as it was drawn."""
        return self._stacked("cost")

    @property
    def available(self) -> Array:
        """What the guard held against the largest cost of the arm, shaped like ``cost``."""
        return self._stacked("available")

    @property
    def headroom(self) -> Array:
        """What was left at the end of the round, shaped like ``cost``; the smallest of all rounds is min_headroom."""
        return self._stacked("headroom")

    def to_arrow(self) -> "pa.Table":
        """All of it as a table of pyarrow, in memory, a row per trial and round."""
        return arrow().concat_tables(map(table_in, self.records, self.kept)).unify_dictionaries()

    def to_pandas(self) -> "pd.DataFrame":
        """The same as a data frame; policy and reason are categories."""
        pandas()
        frame: pd.DataFrame = self.to_arrow().to_pandas()
        return frame

    def _stacked(self, name: str) -> Array:
        return np.stack([column_in(*trial, name) for trial in zip(self.records, self.kept, strict=True)])


def table_in(record: Record, kept: Kept) -> "pa.Table":
    """The rounds of a trial as a table, from memory or from its file."""
    return table_of(record, kept) if isinstance(kept, Page) else ParquetColumns(kept).table()


def column_in(record: Record, kept: Kept, name: str) -> Array:
    """One column of it as an array; amounts of several resources side by side."""
    if isinstance(kept, Page):
        column = getattr(kept, name)
        column = np.array(record.reasons, object)[column] if name == "reason" else column
        return np.asarray(column[:, 0] if column.ndim == 2 and len(record.resources) == 1 else column)
    columns = ParquetColumns(kept)
    sides = [columns[side] for side in (of_resources(name, record.resources, "_") if name in AMOUNTS else [name])]
    return np.asarray(sides[0]) if len(sides) == 1 else np.stack(sides, axis=-1)

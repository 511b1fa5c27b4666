"""What a folder has of one policy on one problem: in the file with everything, and in parts of it that came later."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from paceline.errors import UnreadableFile
from paceline.experiments.experiment import Task
from paceline.experiments.holdings import Holdings, disjoint
from paceline.experiments.parquet import groups, stacked, totals_of, trials_per_group
from paceline.kernels.state import NO_RECORD
from paceline.simulation.totals import NOTHING, Totals, subset

TOTALS, PARTS = "totals.parquet", "parts"


def done_in(path: Path) -> Callable[[str], Sequence[range]]:
    """The trials in parts, by the key of their tasks: the names of the files tell."""
    found: defaultdict[str, list[range]] = defaultdict(list)
    for part in (path / PARTS).glob("[!.]*.parquet"):
        key, first, count = part.stem.rsplit("-", 2)
        found[key].append(range(int(first), int(first) + int(count)))
    return lambda key: found.get(key, ())


@dataclass(frozen=True)
class Cell:
    """One policy on one problem; the task is for all of its trials."""

    path: Path
    task: Task
    held: Holdings | None  # by the file with everything

    @property
    def place(self) -> int | None:
        """Where it is among those of the file, if it is there."""
        problem, policy, _ = self.task.key.split("-")
        if self.held is None or problem not in self.held.problems or policy not in self.held.policies:
            return None
        return self.held.problems.index(problem) * len(self.held.policies) + self.held.policies.index(policy)

    @property
    def is_cut_anew(self) -> bool:
        """Whether it is there at other checkpoints, and was played again."""
        return self.held is not None and self.place is not None and self.held.rounds != self.task.rounds.tolist()

    def old(self) -> Iterator[Totals]:
        """What the file has of it, a row group at a time."""
        if self.held is None or self.place is None:
            return
        each = -(-self.held.trials // trials_per_group(len(self.held.rounds)))
        for table in groups(self.path / TOTALS, range(self.place * each, (self.place + 1) * each)):
            yield self.totals([table], len(self.held.rounds))

    def parts(self, kept: Sequence[range]) -> Iterator[Totals]:
        """What the parts have of it, one at a time; of trials that the file has, too, nothing."""
        begin = 0 if self.held is None or self.place is None or self.is_cut_anew else self.held.trials
        for part in disjoint([range(begin), *kept], self.task.count):
            if part.start >= begin and part:
                file = self.path / PARTS / f"{self.task.key}-{part.start}-{len(part)}.parquet"
                yield self.totals(list(groups(file)), len(self.task.rounds))

    def totals(self, tables: "list[object]", points: int) -> Totals:
        """Tables as totals."""
        record = self.task.policy.record
        resources = len(self.task.field.problem.resources)
        return totals_of(tables, points, resources, NOTHING if record == NO_RECORD else record)

    def check_same(self, again: Totals) -> None:
        """What was played again must be what is there, to the last bit, where both have a checkpoint."""
        if self.held is not None:
            common = np.isin(self.task.rounds, self.held.rounds)
            for one, other in zip(subset(again, slice(self.held.trials), common), stacked([*self.old()]), strict=True):
                if one.tobytes() != other.tobytes():
                    raise UnreadableFile(
                        f"{self.path / TOTALS} must hold what the same code does again, but {self.task.label!r} on "
                        f"{self.task.field.name!r} did something else"
                    )

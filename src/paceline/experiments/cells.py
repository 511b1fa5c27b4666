"""What a folder has of one policy on one problem: in the file with everything, and in parts of it that came later."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from paceline.errors import UnreadableFile
from paceline.experiments.experiment import Task
from paceline.experiments.holdings import Holdings, disjoint
from paceline.experiments.parquet import groups, stacked, totals_of, trials_per_group
from paceline.kernels.state import NO_RECORD
from paceline.simulation.totals import NOTHING, Totals, differences, subset

TOTALS, PARTS = "totals.parquet", "parts"


def done_in(path: Path) -> Callable[[str], Sequence[range]]:
    """The trials in parts, by the key of their tasks: the names of the files tell."""
    found: defaultdict[str, list[range]] = defaultdict(list)
    for part in (path / PARTS).glob("[!.]*.parquet"):
        key, first, count = part.stem.rsplit("-", 2)
        found[key].append(range(int(first), int(first) + int(count)))
    return lambda key: found.get(key, ())


class Cell:
    """One policy on one problem; the task is for all of its trials."""

    def __init__(self, path: Path, task: Task, held: Holdings | None) -> None:
        self.path = path
        self.task = task
        self.problem, self.policy, _ = task.key.split("-")
        is_there = held is not None and self.problem in held.problems and self.policy in held.policies
        self.held = held if is_there else None  # by the file with everything, if this is in it

    @property
    def is_cut_anew(self) -> bool:
        """Whether the file has it at other checkpoints, and it was played again."""
        return self.held is not None and self.held.rounds != self.task.rounds.tolist()

    def old(self) -> Iterator[Totals]:
        """What the file has of it, a row group at a time."""
        if self.held is None:
            return
        problems, policies, rounds, trials = self.held
        place = problems.index(self.problem) * len(policies) + policies.index(self.policy)
        each = -(-trials // trials_per_group(len(rounds)))
        for table in groups(self.path / TOTALS, range(place * each, (place + 1) * each)):
            yield self.totals([table], len(rounds))

    def parts(self, kept: Sequence[range]) -> Iterator[Totals]:
        """What the parts have of it, one at a time; of trials that the file has, too, nothing."""
        begin = 0 if self.held is None or self.is_cut_anew else self.held.trials
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
        if self.held is None:
            return
        common = np.isin(self.task.rounds, self.held.rounds)
        if differences(subset(again, slice(self.held.trials), common), stacked([*self.old()])):
            raise UnreadableFile(
                f"{self.path / TOTALS} must hold what the same code does again, but {self.task.label!r} on "
                f"{self.task.field.name!r} did something else"
            )

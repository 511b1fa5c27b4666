"""A finished run: its results by problem, ready for tables and figures."""

import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from paceline.errors import UnknownName, UnreadableFile
from paceline.experiments.folder import TOTALS, read_manifest
from paceline.experiments.parquet import groups, totals_of
from paceline.problems.problem import Problem
from paceline.reports.tables import Table, mean_and_error
from paceline.simulation.results import Results, Run
from paceline.simulation.totals import NOTHING
from paceline.worlds.delays import in_words, read_delays

if TYPE_CHECKING:
    import pyarrow as pa


class Study(Mapping[str, Results]):
    """The results of an experiment by the name of the problem; each is read when it is asked for."""

    def __init__(self, path: Path, manifest: dict[str, Any]) -> None:
        self.path = path
        self.manifest = manifest
        self.experiment: dict[str, Any] = manifest["experiment"]
        self.rounds = np.array(self.experiment["rounds"], np.int64)
        self.names = [entry["name"] for entry in self.experiment["problems"]]
        self.labels = [entry["label"] for entry in self.experiment["policies"]]

    def __repr__(self) -> str:
        size = f"{len(self.names)} problems, {len(self.labels)} policies, {self.experiment['trials']} trials"
        return f"<Study {self.manifest['name']!r} in {str(self.path)!r}: {size} of {self.rounds[-1]:,} rounds>"

    def _repr_html_(self) -> str:
        return self._table._repr_html_()

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> "Study":
        """The run in a folder; it must be finished."""
        folder = Path(path)
        manifest = read_manifest(folder)
        if manifest["finished"] is None or not (folder / TOTALS).exists():
            raise UnreadableFile(f"{folder} must hold a finished run; run the experiment again to finish it")
        return cls(folder, manifest)

    @cached_property
    def problems(self) -> list[Problem]:
        """The problems in their order."""
        return [Problem.from_dict(entry["problem"]) for entry in self.experiment["problems"]]

    def table(self) -> Table:
        """A line per problem: the steady regret of every policy at the last round."""
        return self._table

    @cached_property
    def _table(self) -> Table:
        rows = tuple(
            (self.names[number], *(mean_and_error(results[label].steady_regret[:, -1]) for label in self.labels))
            for number, results in self.results()
        )
        return Table(("problem", *self.labels), rows)

    def __getitem__(self, name: str) -> Results:
        if name not in self.names:
            raise UnknownName(f"problem must be one of {', '.join(self.names)}, got {name!r}")
        number = self.names.index(name)
        for found, results in self.results():
            if found == number:
                return results
        raise UnreadableFile(f"{self.path / TOTALS} must hold every problem; {name!r} is missing")

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def results(self) -> Iterator[tuple[int, Results]]:
        """All results, problem by problem, one in memory at a time."""
        by_problem = groupby(groups(self.path / TOTALS), key=lambda table: table.column("problem")[0].as_py())
        for number, tables in by_problem:
            yield number, self.results_of(number, tables)

    def results_of(self, number: int, tables: "Iterator[pa.Table]") -> Results:
        """The results on one problem, from its row groups."""
        problem = self.problems[number]
        runs = {}
        for policy, own in groupby(tables, key=lambda table: table.column("policy")[0].as_py()):
            label = self.labels[policy]
            fields = [tuple(field) for field in self.manifest["memory"][label]]
            memory = np.dtype((np.record, fields)) if fields else NOTHING
            totals = totals_of(list(own), len(self.rounds), len(problem.resources), memory)
            shown = self.experiment["policies"][policy]["policy"]
            runs[label] = Run(label, shown, problem, self.rounds, totals)
        late = in_words(read_delays(self.experiment["problems"][number].get("delay")))
        return Results(problem, self.experiment["seed"], self.rounds, runs, late)

"""A finished run: its results by problem, ready for tables and figures. All of it is there, or an error says so."""

import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from paceline import checks
from paceline.errors import UnknownName, UnreadableFile
from paceline.experiments.cells import TOTALS
from paceline.experiments.experiment import history_file
from paceline.experiments.folder import HISTORY, MANIFEST, read_manifest
from paceline.experiments.holdings import holdings_of
from paceline.experiments.parquet import groups, totals_of
from paceline.experiments.plan import counted
from paceline.experiments.together import Score, Together
from paceline.problems.problem import Problem
from paceline.reports.tables import INTERVAL, Table, mean_and_interval
from paceline.simulation.history import History
from paceline.simulation.recording import Record, read_record
from paceline.simulation.results import Results, Run
from paceline.simulation.totals import NOTHING
from paceline.worlds.delays import in_words, read_delays

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

IN_MANIFEST = {"name": str, "kernels": str, "begun": str, "versions": dict, "host": dict, "file": dict, "spells": list}


class Study(Mapping[str, Results]):
    """The results of an experiment by the name of the problem; each is read when it is asked for.

    >>> from paceline import compare
    >>> study = compare("beta", ["oracle", "uniform"], problems=2, rounds=2000, trials=4)
    >>> study.labels, list(study), [score.won for score in study.scores()]
    (['oracle', 'uniform'], ['beta 1', 'beta 2'], [2, 0])
    """

    def __init__(self, path: Path, manifest: dict[str, Any]) -> None:
        self.path = path
        self.manifest = manifest
        self.name: str = manifest["name"]
        self.experiment: dict[str, Any] = manifest["experiment"]
        self.rounds = np.array(self.experiment["rounds"], np.int64)
        self.trials: int = self.experiment["trials"]
        self.seed: int = self.experiment["seed"]
        self.guard: bool = self.experiment.get("guard", True)
        self.names = [entry["name"] for entry in self.experiment["problems"]]
        self.labels = [entry["label"] for entry in self.experiment["policies"]]

    def __repr__(self) -> str:
        return f"<Study {self.name!r} in {str(self.path)!r}: {self.size}>"

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> "Study":
        """The run in a folder; it must be finished."""
        folder = Path(path)
        manifest = read_manifest(folder)
        if manifest["finished"] is None or not (folder / TOTALS).exists():
            raise UnreadableFile(f"{folder} must hold a finished run; run the experiment again to finish it")
        try:
            study = cls(folder, manifest)
            entries = [*study.experiment["problems"], *study.experiment["policies"]]
            whole = (
                all(isinstance(manifest[key], kind) for key, kind in IN_MANIFEST.items())
                and all(isinstance(entry["swept"], dict) for entry in entries)
                and all(isinstance(study.experiment[key], int) for key in ("trials", "seed"))
                and min(len(study.problems), len(study.labels), len(study.rounds)) > 0
            )
        except (LookupError, TypeError, ValueError, AttributeError):
            whole = False
        if not whole:
            raise UnreadableFile(f"{folder / MANIFEST} must be the manifest of a run; it is damaged or foreign")
        return study

    @cached_property
    def problems(self) -> list[Problem]:
        """The problems in their order."""
        return [Problem.from_dict(entry["problem"]) for entry in self.experiment["problems"]]

    @cached_property
    def unknown(self) -> list[str]:
        """The names of worlds whose true means nobody told: there is no regret on them."""
        return [name for name, problem in zip(self.names, self.problems, strict=True) if not problem.is_known]

    @cached_property
    def size(self) -> str:
        """How much was done, in words."""
        late = in_words(read_delays(self.experiment["problems"][0].get("delay")))
        return (
            f"{counted(len(self), 'problem')}, {counted(len(self.labels), 'policy', 'policies')}, "
            f"{counted(self.trials, 'trial')} of {int(self.rounds[-1]):,} rounds, seed {self.seed}"
            + (f", {late}" if late else "")
            + ("" if self.guard else ", without the guard")
        )

    def table(self) -> Table:
        """A line per problem: the steady regret of every policy at the last round.

        Of a world that does not tell its true means there is no regret: its line has what was earned.
        """
        rows = []
        for name, results in self.results():
            quantity = "steady_regret" if results.problem.is_known else "reward"
            rows.append((name, *(mean_and_interval(getattr(run, quantity)[:, -1]) for run in results.values())))
        shown = "Rewards" if len(self.unknown) == len(self) else "Steady regret"
        notes = [f"{shown} at round {int(self.rounds[-1]):,}."] + [INTERVAL] * (self.trials > 1)
        notes += [f"{name}: rewards, as its true means are not known." for name in self.unknown]
        return Table(("problem", *self.labels), tuple(rows), tuple(notes))

    @cached_property
    def together(self) -> Together:
        """All problems taken together: scores, standings, tails."""
        horizons = [at for at in self.manifest["file"].get("horizons", []) if at <= self.rounds[-1]]
        found = Together(self.name, self.size, self.labels, self.rounds, horizons, self.guard)
        for entry, (_, results) in zip(self.experiment["problems"], self.results(), strict=True):
            found.add(results, entry["stream"])
        return found

    def scores(self, reference: str | None = None) -> list[Score]:
        """How each policy did over all problems, against the limit and against a reference (suak, or the first)."""
        return self.together.scores(reference)

    def plot(self, path: str | os.PathLike[str] | None = None) -> "Figure":
        """Steady regret in units of the limit: by round, by cause, and its spread over trials and problems."""
        from paceline.reports.figures import together_figure

        return together_figure(self.together, path)

    def tables(self) -> str:
        """What a terminal shows: scores over all problems, and each problem; of the only one all there is."""
        scores = [str(self.together.table())] if len(self.together) else []
        own = self[self.names[0]].table() if len(self) == 1 and not self.unknown else self.table()
        return "\n\n".join([*scores, str(own)])

    def report(self, out: str | os.PathLike[str] | None = None, reference: str | None = None) -> list[Path]:
        """Write the page, its figures and its tables, to the folder of the run unless told otherwise.

        ``reference`` is the policy that the others are held against: suak unless given, or the first if there is none.
        """
        from paceline.experiments.report import Report

        return Report([self], reference).write(self.path if out is None else Path(out))

    def __getitem__(self, name: str) -> Results:
        if name not in self.names:
            raise UnknownName(
                f"problem must be one of {', '.join(self.names)}, got {name!r}{checks.guess(name, self.names)}"
            )
        return next(results for found, results in self.results() if found == name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def results(self) -> Iterator[tuple[str, Results]]:
        """The results on every problem by its name, in their order, one in memory at a time, each of them whole."""
        found = 0
        try:
            by_problem = groupby(groups(self.path / TOTALS), key=lambda table: table.column("problem")[0].as_py())
            for number, tables in by_problem:
                if number != found:
                    break
                results = self.results_of(number, tables)
                if list(results) != self.labels or any(
                    len(run.min_headroom) != self.trials for run in results.values()
                ):
                    break
                yield self.names[number], results
                found += 1
        except UnreadableFile:
            raise
        except (LookupError, TypeError, ValueError) as error:
            raise UnreadableFile(f"{self.path / TOTALS} must fit its manifest; it is damaged or foreign") from error
        if found < len(self):
            raise UnreadableFile(
                f"{self.path / TOTALS} must hold {self.trials} trials of every policy on every problem; "
                f"those on {self.names[found]!r} are missing or damaged"
            )

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
            runs[label] = Run(label, shown, problem, self.rounds, totals, self.history_of(number, policy), self.guard)
        late = in_words(read_delays(self.experiment["problems"][number].get("delay")))
        return Results(problem, self.seed, self.rounds, runs, late, self.guard)

    def history_of(self, number: int, place: int) -> History | None:
        """The rounds of one policy on one problem that were kept, if any were."""
        rounds = read_record(self.experiment.get("record"), int(self.rounds[-1]))
        if rounds is None:
            return None
        held = holdings_of(self.experiment)
        key = f"{held.problems[number]}-{held.policies[place]}"
        files = [history_file(self.path / HISTORY, key, trial) for trial in range(held.trials)]
        record = Record(rounds, {}, (), self.problems[number].resources)
        return History(self.labels[place], (record,) * len(files), tuple(files))


def read_studies(path: str | os.PathLike[str]) -> list[Study]:
    """The run in a folder, or the runs in the folders in it, as `paceline compare` leaves them."""
    folder = Path(path)
    inside = sorted(file.parent for file in folder.glob(f"*/{MANIFEST}"))
    return [Study.open(each) for each in ([folder] if (folder / MANIFEST).exists() or not inside else inside)]

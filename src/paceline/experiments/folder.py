"""The folder of a run: a manifest, a file for each finished task, and in the end one file with everything."""

import json
import os
import platform
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paceline.errors import InvalidValue, PacelineError, UnreadableFile
from paceline.experiments.cells import PARTS, TOTALS, Cell, done_in
from paceline.experiments.experiment import Experiment, Task
from paceline.experiments.holdings import Holdings, check_extends
from paceline.experiments.parquet import (
    read_holdings,
    regrouped,
    schema,
    stacked,
    table_of,
    trials_per_group,
    write_holdings,
)
from paceline.files import left_behind, try_lock, write_whole
from paceline.kernels.jit import package_digest
from paceline.kernels.state import NO_RECORD
from paceline.parquet import write_tables
from paceline.simulation.totals import Totals

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = 3
READ = (2, FORMAT)
MANIFEST, HISTORY, LOCK = "manifest.json", "history", ".lock"
# What a report on the run leaves beside it, chapters included.
REPORTED = {
    "report": ("html", "md", "json"),
    **dict.fromkeys(("summary", "problems", "together"), ("csv", "tex")),
    **dict.fromkeys(("figure[12]", "prior-work"), ("png", "svg", "pdf", "csv", "tex")),
    **{f"prior-work-{table}": ("tex",) for table in ("settings", "without-guard", "promises")},
    **{f"figures/{kind}*": ("svg", "pdf") for kind in ("problem-", "together-", "grid-", "figure", "prior-work")},
}
KEYS = ("name", "experiment", "file", "memory", "kernels", "versions", "host", "begun", "finished", "spells")


class RunFolder:
    """Where a run writes. Made by `open_folder`, which holds it against other runs.

    The file with everything says itself what it holds. A run that asks for more keeps it until all that is missing is
    in parts beside it; then both become the new file. So a run can be killed at any step, and extended at any time.
    """

    def __init__(self, path: Path, experiment: Experiment) -> None:
        self.path = path
        self.experiment = experiment
        self.columns = schema(field.problem for field in experiment.problems)
        self.manifest = check_folder(path, experiment) or new_manifest(experiment)
        for name in (MANIFEST, TOTALS, HISTORY):
            for remains in left_behind(path / name):  # by runs that were killed while they wrote
                remains.unlink(missing_ok=True)
        if self.is_finished:
            self.drop_parts()

    @property
    def is_finished(self) -> bool:
        """Whether all results are in place."""
        return is_finished(self.path, self.manifest, self.experiment)

    def begin(self) -> None:
        """Make this the folder of the run; until then a run that was here is whole, with its report."""
        if self.is_finished:
            return
        self.drop_report()
        self.note(**described(self.experiment), finished=None)
        for name in (PARTS,) if self.experiment.record is None else (PARTS, HISTORY):
            (self.path / name).mkdir(exist_ok=True)

    def missing(self) -> list[Task]:
        """The tasks that are not done; where history is kept they know where to."""
        where = (self.path / HISTORY).absolute()
        return [replace(task, history=where) for task in left_of(self.path, self.manifest, self.experiment)]

    def write(self, task: Task, totals: Totals) -> None:
        """Keep the results of a task."""
        rows = table_of(task.number, task.place, task.first, task.rounds, totals, self.columns)
        write_tables(self.path / PARTS / f"{task.name}.parquet", [rows])

    def finish(self) -> None:
        """Put everything into one file, in the order of the experiment, and drop the parts; nothing if it is there."""
        if self.is_finished:
            return
        held, wanted = read_holdings(self.path / TOTALS), self.experiment.holdings
        if held != wanted:
            write_holdings(self.path / TOTALS, self.everything(held), wanted)
        self.note(finished=now())
        self.drop_parts()

    def everything(self, held: Holdings | None) -> "Iterator[pa.Table]":
        """All rows: those that are there already and those in parts, trial by trial."""
        experiment, kept = self.experiment, done_in(self.path)
        size = trials_per_group(len(experiment.rounds))
        for task in replace(experiment, block=experiment.trials).tasks():  # one for each policy on each problem
            cell = Cell(self.path, task, held)
            pieces: Iterable[Totals] = cell.parts(kept(task.key))
            if cell.is_cut_anew:
                pieces = [stacked([*pieces])]
                cell.check_same(pieces[0])
            else:
                pieces = chain(cell.old(), pieces)
            for first, totals in regrouped(pieces, size):
                yield table_of(task.number, task.place, first, task.rounds, totals, self.columns)

    def drop_parts(self) -> None:
        """The files of tasks are not needed any more."""
        if (self.path / PARTS).exists():
            for part in (self.path / PARTS).iterdir():
                part.unlink()
            (self.path / PARTS).rmdir()

    def drop_report(self) -> None:
        """A report on what was there would be taken for one on what is there now."""
        for name, endings in REPORTED.items():
            for file in (file for ending in endings for file in self.path.glob(f"{name}.{ending}")):
                file.unlink()

    def add_time(self, seconds: float, engine: str) -> None:
        """Note a spell of work."""
        spell = {"seconds": round(seconds, 3), "engine": engine, "ended": now()}
        self.note(spells=[*self.manifest["spells"], spell])

    def note(self, **changes: object) -> None:
        """Write the manifest, with some of it new or changed."""
        self.manifest |= changes
        write_whole(self.path / MANIFEST, json.dumps(self.manifest, indent=1) + "\n")


@contextmanager
def open_folder(path: str | os.PathLike[str], experiment: Experiment) -> Iterator[RunFolder]:
    """The folder, for this run alone. Where the system has no locks another run is not noticed."""
    folder = Path(path)
    check_folder(folder, experiment)  # before anything is written to it
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / LOCK, os.O_CREAT | os.O_RDWR)
    except OSError as error:
        raise PacelineError(f"{folder} must be a folder to write to, but: {error.strerror}") from error
    try:
        if not try_lock(lock):
            raise PacelineError(f"{folder} must not be in use, but another run is writing to it")
        yield RunFolder(folder, experiment)
    finally:
        os.close(lock)


def check_folder(path: Path, experiment: Experiment) -> dict[str, Any] | None:
    """The manifest of the run that goes on here, or None if one may begin; refuses what belongs to something else."""
    if not next(each for each in (path, *path.absolute().parents) if each.exists()).is_dir():
        raise PacelineError(f"{path} must be a folder to write to, but: Not a directory")
    if not (path / MANIFEST).exists():
        # A run that was killed before it had a manifest may have left a lock and the beginning of a manifest.
        ours = {path / LOCK, *left_behind(path / MANIFEST)}
        strange = sorted(entry.name for entry in path.iterdir() if entry not in ours) if path.exists() else []
        if strange:
            raise InvalidValue(f"{path} must be empty or hold a run of this experiment, got {strange[0]!r} in it")
        return None
    manifest = read_manifest(path)
    check_extends(experiment.to_dict(), manifest["experiment"], path)
    if is_finished(path, manifest, experiment):
        return manifest
    if manifest["format"] != FORMAT:
        raise InvalidValue(
            f"{path} has format {manifest['format']}; this version can read it, and goes on with {FORMAT} only"
        )
    if manifest["kernels"] != package_digest():
        raise InvalidValue(
            f"{path} was begun with other code (kernels {manifest['kernels']}, paceline "
            f"{manifest['versions']['paceline']}) and must be finished with it, got {package_digest()}"
        )
    return manifest


def experiment_in(path: Path, **changes: object) -> Experiment:
    """The experiment of the run in a folder, perhaps with other keys: more trials, for one."""
    manifest = read_manifest(path)
    return Experiment.from_table(manifest["file"] | changes, Path(manifest.get("folder", ".")), manifest["name"])


def left_of(path: Path, manifest: dict[str, Any] | None, experiment: Experiment) -> list[Task]:
    """The tasks of an experiment that its folder, with this manifest if there is one, has no results of."""
    if manifest is not None and is_finished(path, manifest, experiment):
        return []
    held, kept = read_holdings(path / TOTALS), done_in(path)
    if held is None or held.rounds != experiment.rounds.tolist():  # other checkpoints: all trials are played again
        return experiment.tasks(kept)
    there = {f"{problem}-{policy}" for problem in held.problems for policy in held.policies}

    def done(key: str) -> Iterable[range]:
        return [range(held.trials), *kept(key)] if key.rpartition("-")[0] in there else kept(key)

    return experiment.tasks(done)


def is_finished(path: Path, manifest: dict[str, Any], experiment: Experiment) -> bool:
    """Whether all results are in place, under their names."""
    asked = experiment.to_dict()
    told = {key: value for key, value in manifest["experiment"].items() if key in asked}
    if manifest["finished"] is None or told != asked or not (path / TOTALS).exists():
        return False
    return manifest["format"] != FORMAT or read_holdings(path / TOTALS) == experiment.holdings


def described(experiment: Experiment) -> dict[str, Any]:
    """What a manifest says of an experiment."""
    return {
        "name": experiment.name,
        "experiment": experiment.to_dict(),
        "file": experiment.table,
        "folder": str(experiment.folder.resolve()),
        # The fields of what each policy keeps count of, for the way back from the columns of a file.
        "memory": {
            label: [] if spec.policy.record == NO_RECORD else spec.policy.record.descr
            for label, spec in experiment.policies.items()
        },
    }


def new_manifest(experiment: Experiment) -> dict[str, Any]:
    """What someone needs to know in a year's time."""
    return {
        "format": FORMAT,
        **described(experiment),
        "kernels": package_digest(),
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("paceline", "numpy", "numba", "pyarrow")},
        },
        "host": {"system": platform.platform(), "processor": platform.machine(), "cores": os.cpu_count()},
        "begun": now(),
        "finished": None,
        "spells": [],
    }


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest of a folder."""
    file = path / MANIFEST
    try:
        manifest: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        version = manifest["format"]
    except OSError as error:
        raise UnreadableFile(f"{path} must be the folder of a run, but {MANIFEST}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise UnreadableFile(f"{file} must be the manifest of a run; it is damaged or foreign") from error
    if version not in READ:
        raise UnreadableFile(f"{file} has format {version}; this version reads {' and '.join(map(str, READ))}")
    lacking = [key for key in KEYS if key not in manifest]
    if lacking:
        raise UnreadableFile(f"{file} must be the manifest of a run; it lacks {', '.join(lacking)}")
    return manifest


def now() -> str:
    """The time, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")

"""The folder of a run: a manifest, a file for each finished task, and in the end one file with everything."""

import json
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from paceline.errors import InvalidValue, PacelineError, UnreadableFile
from paceline.experiments.experiment import Experiment, Task, check_file_of
from paceline.experiments.parquet import groups, joined, table_of
from paceline.files import all_or_nothing, left_behind, try_lock
from paceline.kernels.jit import package_digest
from paceline.kernels.state import NO_RECORD
from paceline.parquet import write_table, write_tables
from paceline.policies.policy import Policy
from paceline.simulation.totals import Totals

FORMAT = 2
MANIFEST, TOTALS, PARTS, LOCK = "manifest.json", "totals.parquet", "parts", ".lock"
KEYS = ("name", "experiment", "file", "memory", "kernels", "versions", "host", "begun", "finished", "spells")


class RunFolder:
    """Where a run writes. Made by `open_folder`, which holds it against other runs."""

    def __init__(self, path: Path, experiment: Experiment) -> None:
        self.path = path
        self.experiment = experiment
        manifest = check_folder(path, experiment)
        if manifest is None:
            manifest = new_manifest(experiment)
            write_manifest(path, manifest)
        self.manifest = manifest
        self.tidy()
        if self.finished():
            self.drop_parts()
        else:
            (path / PARTS).mkdir(exist_ok=True)

    def tidy(self) -> None:
        """Drop what earlier runs had not finished writing when they were killed."""
        for name in (MANIFEST, TOTALS):
            for remains in left_behind(self.path / name):
                remains.unlink(missing_ok=True)

    def finished(self) -> bool:
        """Whether everything is in place."""
        return is_finished(self.path, self.manifest)

    def part(self, task: Task) -> Path:
        """The file of a task."""
        return self.path / PARTS / f"{task.name}.parquet"

    def missing(self) -> list[Task]:
        """The tasks that are not done."""
        return [] if self.finished() else [task for task in self.experiment.tasks() if not self.part(task).exists()]

    def write(self, task: Task, totals: Totals) -> None:
        """Keep the results of a task."""
        write_table(self.part(task), table_of(task, totals, self.experiment.layout))

    def finish(self) -> None:
        """Put all parts into one file, in the order of the experiment, and drop them."""
        tables = (table for task in self.experiment.tasks() for table in groups(self.part(task)))
        write_tables(self.path / TOTALS, joined(tables))
        self.manifest["finished"] = now()
        write_manifest(self.path, self.manifest)
        self.drop_parts()

    def drop_parts(self) -> None:
        """The files of tasks are not needed any more."""
        if (self.path / PARTS).exists():
            for part in (self.path / PARTS).iterdir():
                part.unlink()
            (self.path / PARTS).rmdir()

    def add_time(self, seconds: float, engine: str) -> None:
        """Note a spell of work."""
        self.manifest["spells"].append({"seconds": round(seconds, 3), "engine": engine, "ended": now()})
        write_manifest(self.path, self.manifest)


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
    if path.exists() and not path.is_dir():
        raise PacelineError(f"{path} must be a folder to write to, but: Not a directory")
    if not (path / MANIFEST).exists():
        # A run that was killed before it had a manifest may have left a lock and the beginning of a manifest.
        ours = {path / LOCK, *left_behind(path / MANIFEST)}
        strange = sorted(entry.name for entry in path.iterdir() if entry not in ours) if path.exists() else []
        if strange:
            raise InvalidValue(f"{path} must be empty or hold a run of this experiment, got {strange[0]!r} in it")
        return None
    manifest = read_manifest(path)
    check_file_of(experiment, manifest["experiment"], path)
    if manifest["kernels"] != package_digest() and not is_finished(path, manifest):
        raise InvalidValue(
            f"{path} was begun with other code (kernels {manifest['kernels']}, paceline "
            f"{manifest['versions']['paceline']}) and must be finished with it, got {package_digest()}"
        )
    return manifest


def is_finished(path: Path, manifest: dict[str, Any]) -> bool:
    """Whether all results are in place."""
    return manifest["finished"] is not None and (path / TOTALS).exists()


def new_manifest(experiment: Experiment) -> dict[str, Any]:
    """What someone needs to know in a year's time."""
    return {
        "format": FORMAT,
        "name": experiment.name,
        "experiment": experiment.to_dict(),
        "file": experiment.table,
        "memory": {label: recorded(spec.policy) for label, spec in experiment.policies.items()},
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


def recorded(policy: Policy) -> list[Any]:
    """The fields of what a policy keeps count of, for the way back from the columns of a file."""
    return [] if policy.record == NO_RECORD else policy.record.descr


def write_manifest(path: Path, manifest: dict[str, Any]) -> None:
    """The manifest of a folder, new or changed."""
    with all_or_nothing(path / MANIFEST) as unfinished:
        unfinished.write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest of a folder."""
    file = path / MANIFEST
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
        version = manifest["format"]
        gaps = [] if version != FORMAT else [key for key in KEYS if key not in manifest]
    except OSError as error:
        raise UnreadableFile(f"{path} must be the folder of a run, but {MANIFEST}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise UnreadableFile(f"{file} must be the manifest of a run; it is damaged or foreign") from error
    if version != FORMAT:
        raise UnreadableFile(f"{file} has format {version}; this version reads {FORMAT}")
    if gaps:
        raise UnreadableFile(f"{file} must be the manifest of a run; it lacks {', '.join(gaps)}")
    found: dict[str, Any] = manifest
    return found


def now() -> str:
    """The time, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")

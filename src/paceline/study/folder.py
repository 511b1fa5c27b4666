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
from paceline.jit import package_digest
from paceline.lab.totals import Totals
from paceline.study.columns import groups, table_of, write_json, write_table, write_tables
from paceline.study.experiment import Experiment, Task, check_file_of

FORMAT = 1
MANIFEST, TOTALS, PARTS, LOCK = "manifest.json", "totals.parquet", "parts", ".lock"


class RunFolder:
    """Where a run writes. Made by `opened`, which holds it against other runs."""

    def __init__(self, path: Path, experiment: Experiment) -> None:
        self.path = path
        self.experiment = experiment
        self.labels = list(experiment.policies)
        self.manifest = self.begin()

    def begin(self) -> dict[str, Any]:
        """The manifest, new or of the run that goes on; refuses what does not belong to this experiment."""
        if (self.path / MANIFEST).exists():
            manifest = read_manifest(self.path)
            check_file_of(self.experiment, manifest["experiment"], self.path)
            if manifest["kernels"] != package_digest() and not self.finished(manifest):
                raise InvalidValue(
                    f"{self.path} was begun with other code (kernels {manifest['kernels']}, paceline "
                    f"{manifest['versions']['paceline']}) and must be finished with it, got {package_digest()}"
                )
            return manifest
        strange = sorted(entry.name for entry in self.path.iterdir() if entry.name != LOCK)
        if strange:
            raise InvalidValue(f"{self.path} must be empty or hold a run of this experiment, got {strange[0]!r} in it")
        manifest = new_manifest(self.experiment)
        (self.path / PARTS).mkdir()
        write_json(self.path / MANIFEST, manifest)
        return manifest

    def finished(self, manifest: dict[str, Any] | None = None) -> bool:
        """Whether everything is in place."""
        manifest = self.manifest if manifest is None else manifest
        return manifest["finished"] is not None and (self.path / TOTALS).exists()

    def part(self, task: Task) -> Path:
        """The file of a task."""
        return self.path / PARTS / f"{task.name}.parquet"

    def missing(self) -> list[Task]:
        """The tasks that are not done."""
        return [] if self.finished() else [task for task in self.experiment.tasks() if not self.part(task).exists()]

    def write(self, task: Task, totals: Totals) -> None:
        """Keep the results of a task."""
        write_table(self.part(task), table_of(task, self.labels.index(task.label), totals))

    def finish(self, seconds: float, engine: str) -> None:
        """Put all parts into one file, in the order of the experiment, and drop them."""
        self.add_time(seconds, engine)
        if self.finished():
            return
        tasks = self.experiment.tasks()
        write_tables(self.path / TOTALS, (table for task in tasks for table in groups(self.part(task))))
        self.manifest["finished"] = now()
        write_json(self.path / MANIFEST, self.manifest)
        for task in tasks:
            self.part(task).unlink(missing_ok=True)
        (self.path / PARTS).rmdir()

    def add_time(self, seconds: float, engine: str) -> None:
        """Note a spell of work."""
        self.manifest["spells"].append({"seconds": round(seconds, 3), "engine": engine, "ended": now()})
        write_json(self.path / MANIFEST, self.manifest)


@contextmanager
def opened(path: str | os.PathLike[str], experiment: Experiment) -> Iterator[RunFolder]:
    """The folder, for this run alone."""
    import fcntl

    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise PacelineError(f"{folder} must be a folder to write to, but: {error.strerror}") from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise PacelineError(f"{folder} must not be in use, but another run is writing to it") from error
        yield RunFolder(folder, experiment)
    finally:
        os.close(lock)


def new_manifest(experiment: Experiment) -> dict[str, Any]:
    """What someone needs to know in a year's time."""
    return {
        "format": FORMAT,
        "name": experiment.name,
        "experiment": experiment.to_dict(),
        "file": experiment.table,
        "memory": {label: entrant.policy.memory.descr for label, entrant in experiment.policies.items()},
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
        manifest = json.loads(file.read_text(encoding="utf-8"))
        version = manifest["format"]
    except OSError as error:
        raise UnreadableFile(f"{path} must be the folder of a run, but {MANIFEST}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise UnreadableFile(f"{file} must be the manifest of a run; it is damaged or foreign") from error
    if version != FORMAT:
        raise UnreadableFile(f"{file} has format {version}; this version reads {FORMAT}")
    found: dict[str, Any] = manifest
    return found


def now() -> str:
    """The time, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")

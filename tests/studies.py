"""Experiments to run in tests, what a run leaves on the disk, and blows in the middle of one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import paceline as pl
from paceline.experiments.cells import PARTS, TOTALS
from paceline.experiments.folder import LOCK, RunFolder

PAPERS_POLICIES = ["suak", "one-phase", "primal-dual", "ucb-simplex"]
# 40 tasks of 200,000 rounds: a tenth of a second each, and no worker is ever without one.
EIGHT_ARMS = {
    "rounds": 20_000,
    "trials": 100,
    "checkpoints": 5,
    "block": 10,
    "policies": PAPERS_POLICIES,
    "problem": [{"paper": "eight-arms"}],
}
SMALL = {"rounds": 300, "trials": 5, "checkpoints": 3, "block": 2, "policies": ["suak", "uniform"]} | {
    "problem": [{"paper": "three-arms"}, {"family": "bernoulli", "size": 2}]
}


def experiment(table: dict[str, Any], **changes: Any) -> pl.Experiment:
    return pl.Experiment.from_table({**table, **changes})


def parquet(study: pl.Study) -> bytes:
    return (study.path / TOTALS).read_bytes()


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    """When each file was changed and what is in it, but for the file that keeps other runs out."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != LOCK
    }


def parts(folder: Path) -> dict[str, tuple[int, int]]:
    """The finished tasks of a run that is not over. A part that is written again is another file."""
    found = {}
    for path in (folder / PARTS).glob("[!.]*"):
        status = path.stat()
        found[path.name] = (status.st_ino, status.st_mtime_ns)
    return found


def after_writes(patch: pytest.MonkeyPatch, count: int, act: Callable[[], None]) -> list[str]:
    """Do something when so many tasks are written, in the middle of the run. The list has every task written."""
    write, written = RunFolder.write, []

    def and_then(folder, task, totals):
        write(folder, task, totals)
        written.append(task.name)
        if len(written) == count:
            act()

    patch.setattr(RunFolder, "write", and_then)
    return written

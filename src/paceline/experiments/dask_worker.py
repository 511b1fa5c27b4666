"""What a Dask worker does before its first task, and how it gets its tasks."""

from collections.abc import Sequence
from concurrent.futures import Executor, Future
from typing import Any

from distributed import WorkerPlugin
from distributed.protocol.pickle import dumps, loads

from paceline.experiments.executors import compile_all, run_task
from paceline.experiments.experiment import Task
from paceline.simulation.simulate import Trial
from paceline.simulation.totals import Totals


class Compiled(WorkerPlugin):
    """Every policy is compiled, or loaded from the worker's disk, when the worker starts or joins."""

    def __init__(self, trials: Sequence[Trial]) -> None:
        self.trials = trials

    def setup(self, worker: Any) -> None:  # noqa: ARG002  # Dask fixes the arguments
        """Called by Dask on each worker."""
        compile_all(self.trials)


def send(pool: Executor, task: Task) -> "Future[Totals]":
    """Hand a task to a worker as bytes: a scheduler opens what it passes on, and would need all that it is made of."""
    return pool.submit(run_sent, dumps(task))  # type: ignore[no-untyped-call]


def run_sent(task: bytes) -> Totals:
    """What the worker does with them."""
    return run_task(loads(task))  # type: ignore[no-untyped-call]

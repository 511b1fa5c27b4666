"""What a Dask worker does before its first task."""

from collections.abc import Sequence
from typing import Any

from distributed import WorkerPlugin

from paceline.experiments.executors import compile_all
from paceline.simulation.simulate import Trial


class Compiled(WorkerPlugin):
    """Every policy is compiled, or loaded from the worker's disk, when the worker starts or joins."""

    def __init__(self, trials: Sequence[Trial]) -> None:
        self.trials = trials

    def setup(self, worker: Any) -> None:  # noqa: ARG002  # Dask fixes the arguments
        """Called by Dask on each worker."""
        compile_all(self.trials)

"""The work of one task, wherever it is done."""

import os
from collections.abc import Callable, Sequence
from multiprocessing import parent_process
from multiprocessing.synchronize import Event
from threading import Thread

from paceline.experiments.experiment import Task
from paceline.simulation.simulate import Trial, compile_first, run_trial
from paceline.simulation.totals import Totals, stack_trials


def run_task(task: Task, step: Callable[[int], None] | None = None) -> Totals:
    """Play the trials of a task; their totals one above the other."""
    return stack_trials([run_trial(trial, step) for trial in task.trials()])


def compile_all(trials: Sequence[Trial]) -> None:
    """Compile every policy, or load it from the disk, before the work; of several processes one does it for all."""
    for trial in trials:
        compile_first(trial)


def begin_process(trials: Sequence[Trial], given_up: Event) -> None:
    """What a process of our own does first."""
    Thread(target=end_with_parent, daemon=True).start()
    Thread(target=end_when_given_up, args=(given_up,), daemon=True).start()
    compile_all(trials)


def end_with_parent() -> None:
    """A parent that was killed cannot tell its workers, and they would wait for ever."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def end_when_given_up(given_up: Event) -> None:
    """Nobody waits for the task at hand any more."""
    given_up.wait()
    os._exit(1)

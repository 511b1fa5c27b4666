"""Run an experiment: what is missing of it, on an engine, into a folder."""

import asyncio
import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Iterable
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import nullcontext
from pathlib import Path
from threading import Event

from paceline.errors import InvalidValue, PacelineError
from paceline.experiments.executors import Engine, Processes, dask_executor, engine_for, run_task
from paceline.experiments.experiment import Experiment, Task
from paceline.experiments.folder import RunFolder, open_folder
from paceline.experiments.study import Study
from paceline.interrupts import interrupts_for_us_alone
from paceline.simulation.progress import Advance, progress_bar
from paceline.simulation.simulate import Stopped, Trial
from paceline.simulation.totals import Totals

AHEAD = 4  # tasks in flight per worker: enough to keep them busy, few enough for a flat memory
MOST_BREAKS = 3  # in a row without a finished task


def run_experiment(
    experiment: Experiment,
    out: str | os.PathLike[str] | None = None,
    executor: str | Executor | None = None,
    *,
    dask: str | None = None,
    workers: int | None = None,
    progress: bool = False,
) -> Study:
    """Do what is missing of an experiment and write it to a folder; without one it lives as long as the study.

    ``executor`` is "threads" (the default), "processes", or any concurrent.futures executor; ``dask`` the address of a
    scheduler, or "local". The numbers depend on none of them, to the last byte of the Parquet file. A finished task is
    kept at once: an interrupted run goes on where it was, and a finished one is found finished.
    """
    if executor is not None and dask is not None:
        raise InvalidValue(f"executor and dask must not both be given, got {executor!r} and {dask!r}")
    where = Path(tempfile.mkdtemp(prefix="paceline-")) if out is None else Path(out)
    try:
        with open_folder(where, experiment) as folder:
            missing = folder.missing()
            if missing:
                trials = first_trials(missing)
                chosen = engine_for(executor, trials, workers) if dask is None else dask_executor(dask, trials, workers)
                with chosen as engine:
                    folder.begin()  # not before: an engine that cannot be had leaves a run that was here as it was
                    play(missing, folder, engine, progress)
            else:
                folder.begin()
            folder.finish()
        study = Study.open(where)
    except BaseException:
        if out is None:
            shutil.rmtree(where, ignore_errors=True)
        raise
    if out is None:
        weakref.finalize(study, shutil.rmtree, where, ignore_errors=True)
    return study


def first_trials(tasks: Iterable[Task]) -> list[Trial]:
    """One trial for each kind of policy, number of resources and kind of loop: what must be compiled."""
    found = {(type(task.policy), task.field.loop): task for task in reversed(list(tasks))}
    return [task.trials()[0] for task in found.values()]


def play(tasks: list[Task], folder: RunFolder, engine: Engine, progress: bool) -> None:
    """Do the tasks, and note how long it took, even if they are not all done."""
    started = time.monotonic()
    try:
        with progress_bar(sum(task.cost for task in tasks), progress) as advance:
            drive(engine, tasks, folder, advance)
    finally:
        folder.add_time(time.monotonic() - started, engine.name)


def drive(engine: Engine, tasks: list[Task], folder: RunFolder, advance: Advance) -> None:
    """Hand out tasks, a few ahead of the workers, and write each result as it comes.

    If the executor breaks (a worker was killed) it is made anew and what was in flight runs again.
    """
    waiting = list(reversed(tasks))
    breaks = 0
    while waiting:
        with engine.make() if engine.ours else nullcontext(engine.make()) as pool:
            hands = Hands(pool, engine, folder, advance)
            try:
                hands.work_off(waiting)
                return
            except BrokenExecutor as error:
                breaks = 1 if hands.done else breaks + 1
                waiting += hands.flying.values()  # what had landed is done
                if breaks >= MOST_BREAKS or not engine.ours:
                    raise PacelineError(f"workers of {engine.name} died {breaks} times in a row; giving up") from error
            except (CancelledError, asyncio.CancelledError) as error:
                raise PacelineError(f"the cluster behind {engine.name} went away; run again to go on") from error
            except BaseException:
                hands.stop()
                raise


class Hands:
    """The tasks in flight on one executor."""

    def __init__(self, pool: Executor, engine: Engine, folder: RunFolder, advance: Advance) -> None:
        self.pool = pool
        self.engine = engine
        self.folder = folder
        self.advance = advance
        self.flying: dict[Future[Totals], Task] = {}
        self.stopped = Event()
        self.done = 0

    def work_off(self, waiting: list[Task]) -> None:
        """Until nothing waits and nothing flies. Takes from the end of the list."""
        while waiting or self.flying:
            while waiting and len(self.flying) < AHEAD * self.engine.workers:
                task = waiting.pop()
                try:
                    future = self.submitted(task)
                except BaseException:
                    waiting.append(task)
                    raise
                self.flying[future] = task
                self.engine.inbox.watch(future)
            landed = [future for future in self.engine.inbox.landed() if future in self.flying]
            # What succeeded is kept, whatever else went wrong.
            for future in sorted(landed, key=lambda each: each.cancelled() or each.exception() is not None):
                totals = future.result()
                task = self.flying.pop(future)
                self.folder.write(task, totals)
                self.done += 1
                if not self.engine.shares_memory:
                    self.advance(task.cost)

    def submitted(self, task: Task) -> "Future[Totals]":
        """The future of a task; threads report their rounds as they go."""
        if self.engine.shares_memory:
            return self.pool.submit(run_task, task, self.step)
        with interrupts_for_us_alone():  # a pool starts its processes when it gets work
            return self.pool.submit(run_task, task)

    def step(self, rounds: int) -> None:
        """Called by tasks in threads now and then."""
        if self.stopped.is_set():
            raise Stopped
        self.advance(rounds)

    def stop(self) -> None:
        """Give up: cancel what has not begun, tell threads and processes of our own to stop."""
        if isinstance(self.pool, Processes):
            self.pool.give_up()  # nothing to cancel: a pool whose processes end fails the rest itself
            return
        self.stopped.set()
        for future in self.flying:
            future.cancel()

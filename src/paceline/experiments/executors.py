"""Who does the work: threads, processes, a Dask cluster, or any executor; and what each of them does."""

import logging
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.synchronize import Event
from threading import Thread
from typing import Any

from paceline import checks
from paceline.errors import InvalidValue, PacelineError, in_one_line
from paceline.experiments.experiment import Task
from paceline.extras import extra
from paceline.interrupts import Inbox, interrupts_for_us_alone, interrupts_held
from paceline.machine import cores
from paceline.simulation.simulate import Trial, check_executor, compile_first, run_trial
from paceline.simulation.totals import Totals, stack_trials

NAMES = ("threads", "processes")
CONNECT_SECONDS = 5
LACKS = ("ModuleNotFoundError", "ImportError", "Can't get attribute")  # the last is of a module that is another there


@dataclass(frozen=True)
class Engine:
    """An executor, and how to deal with it."""

    name: str
    make: Callable[[], Executor]
    workers: int
    inbox: Inbox  # where its finished work arrives
    ours: bool = False  # to be shut down after the work, and made anew if its workers die
    shares_memory: bool = False  # its tasks can report rounds as they are played, and be stopped


@contextmanager
def engine_for(wanted: "str | Executor | None", trials: Sequence[Trial], workers: int | None) -> Iterator[Engine]:
    """The engine by name, or around an executor of the caller's. Compiles before it hands out work."""
    count = cores() if workers is None else checks.whole("workers", workers, 1)
    if isinstance(wanted, str) and wanted not in NAMES:
        raise InvalidValue(
            f"executor must be one of {', '.join(NAMES)} or a concurrent.futures executor, got {wanted!r}"
        )
    if not isinstance(wanted, str):
        check_executor(wanted)
    compile_all(trials)
    with interrupts_held() as inbox:
        if wanted is None or wanted == "threads":
            yield Engine("threads", lambda: ThreadPoolExecutor(count), count, inbox, ours=True, shares_memory=True)
        elif wanted == "processes":
            yield Engine("processes", lambda: Processes(count, trials), count, inbox, ours=True)
        elif isinstance(wanted, Executor):
            workers_known = getattr(wanted, "_max_workers", None)
            yield Engine(type(wanted).__name__, lambda: wanted, workers_known or count, inbox)


class Processes(ProcessPoolExecutor):
    """Fresh processes that load every policy before their first task, and can be told to drop what they do."""

    def __init__(self, workers: int, trials: Sequence[Trial]) -> None:
        context = get_context("spawn")
        self.given_up = context.Event()
        super().__init__(workers, context, begin_process, (trials, self.given_up))

    def give_up(self) -> None:
        """End the processes in the middle of their tasks: a task may have long to go, and a pool waits for it."""
        self.given_up.set()


def check_answers(address: str) -> None:
    """Raise where nobody answers; Dask would wait long, and leave loose ends behind."""
    from distributed.comm.addressing import parse_address, parse_host_port
    from distributed.comm.registry import get_backend

    scheme, place = parse_address(address)
    get_backend(scheme)
    if scheme == "tls":
        raise ValueError("a scheduler that wants a key is for Python: executor=client.get_executor()")
    if scheme == "tcp":
        socket.create_connection(parse_host_port(place), timeout=CONNECT_SECONDS).close()


@contextmanager
def dask_executor(address: str, trials: Sequence[Trial], workers: int | None) -> Iterator[Engine]:
    """A Dask cluster by its scheduler's address, or "local" for one of our own on this machine.

    A task whose worker dies runs again elsewhere; the scheduler sees to that. Workers that join later compile first,
    too. Only workers open what is sent to them: a scheduler need not have the user's modules.
    """
    with extra("dask", "a Dask cluster"):
        from distributed import Client
    from paceline.experiments.dask_cluster import Cluster, Compiled

    if address == "local":
        compile_all(trials)  # the workers share this machine's cache
    with interrupts_held() as inbox, local_cluster(workers) if address == "local" else nullcontext(address) as cluster:
        try:
            if address != "local":
                check_answers(address)
            client: Any = Client(cluster, timeout=CONNECT_SECONDS)  # type: ignore[no-untyped-call]
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            raise PacelineError(
                f"--dask must be the address of a scheduler that answers, got {address!r}: {error}"
            ) from error
        with client, what_it_lacks(address):
            client.register_plugin(Compiled(list(trials)), name="paceline-compile")
            threads = sum(client.nthreads().values())
            yield Engine("dask", lambda: Cluster(client), max(threads, 1), inbox)


@contextmanager
def what_it_lacks(address: str) -> Iterator[None]:
    """One line in place of pages: a machine of the cluster that cannot import what it is sent."""
    try:
        yield
    except PacelineError:
        raise
    except Exception as error:  # Dask hands on some errors of workers as text
        said = str(error)
        if isinstance(error, ImportError) or any(words in said for words in LACKS):
            rule = "workers must be able to import what this program can, as it is here"
        elif "deserialization of the task graph" in said:
            rule = "the scheduler must have the paceline of this program"
        else:
            raise
        raise PacelineError(f"cluster {address!r}: {rule}, got {in_one_line(error)}") from error


def local_cluster(workers: int | None) -> AbstractContextManager[Any]:
    """A Dask cluster on this machine, closed on leaving."""
    from distributed import LocalCluster

    count = cores() if workers is None else checks.whole("workers", workers, 1)
    with interrupts_for_us_alone():
        cluster: AbstractContextManager[Any] = LocalCluster(  # type: ignore[no-untyped-call]
            n_workers=count,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",  # no dashboard, but it takes a port all the same
            scheduler_kwargs={"dashboard": False},
            silence_logs=logging.CRITICAL,
        )
    return cluster


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

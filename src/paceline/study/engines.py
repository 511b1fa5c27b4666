"""Who does the work: threads, processes, a Dask cluster, or any executor."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

from paceline import checks
from paceline.errors import InvalidValue, PacelineError
from paceline.lab.run import Trial, cores
from paceline.study.work import compile_all

NAMES = ("threads", "processes")
CONNECT_SECONDS = 15
RETRIES = 3


@dataclass(frozen=True)
class Engine:
    """An executor, and how to deal with it."""

    name: str
    make: Callable[[], Executor]
    workers: int
    ours: bool = False  # to be shut down after the work, and made anew if its workers die
    shares_memory: bool = False  # its tasks can report rounds as they are played, and be stopped


@contextmanager
def engine_for(wanted: "str | Executor | None", trials: Sequence[Trial], workers: int | None) -> Iterator[Engine]:
    """The engine by name, or around an executor of the caller's. Compiles before it hands out work."""
    count = cores() if workers is None else checks.whole("workers", workers, 1)
    compile_all(trials)
    if wanted is None or wanted == "threads":
        yield Engine("threads", lambda: ThreadPoolExecutor(count), count, ours=True, shares_memory=True)
    elif wanted == "processes":
        yield Engine("processes", lambda: process_pool(count, trials), count, ours=True)
    elif isinstance(wanted, str):
        raise InvalidValue(
            f"executor must be one of {', '.join(NAMES)} or a concurrent.futures executor, got {wanted!r}"
        )
    elif hasattr(wanted, "submit"):
        workers_known = getattr(wanted, "_max_workers", None)
        yield Engine(type(wanted).__name__, lambda: wanted, workers_known or count)
    else:
        raise InvalidValue(f"executor must be a concurrent.futures executor, got {wanted!r}")


def process_pool(workers: int, trials: Sequence[Trial]) -> ProcessPoolExecutor:
    """Fresh processes that load every policy before their first task."""
    return ProcessPoolExecutor(workers, get_context("spawn"), compile_all, (trials,))


@contextmanager
def dask_engine(address: str, trials: Sequence[Trial], workers: int | None) -> Iterator[Engine]:
    """A Dask cluster by its scheduler's address, or "local" for one of our own on this machine.

    A task whose worker dies runs again elsewhere; the scheduler sees to that. Workers that join later compile first,
    too.
    """
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise PacelineError("a Dask cluster needs distributed: pip install 'paceline[experiments]'") from error
    from paceline.study.dask_worker import Compiled

    if address == "local":
        compile_all(trials)  # the workers share this machine's cache
        count = cores() if workers is None else checks.whole("workers", workers, 1)
        cluster: Any = LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=None)  # type: ignore[no-untyped-call]
    else:
        cluster = None
    try:
        try:
            client: Any = Client(cluster or address, timeout=CONNECT_SECONDS)  # type: ignore[no-untyped-call]
        except (OSError, ValueError) as error:
            raise PacelineError(
                f"--dask must be the address of a scheduler that answers, got {address!r}: {error}"
            ) from error
        with client:
            client.register_plugin(Compiled(list(trials)), name="paceline-compile")
            executor = client.get_executor(pure=False, retries=RETRIES)
            threads = sum(client.nthreads().values())
            yield Engine("dask", lambda: executor, max(threads, 1))
    finally:
        if cluster is not None:
            cluster.close()

"""A Dask cluster as an executor: what its workers do before their first task, and how they get their tasks."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Executor, Future
from typing import Any, TypeVar

from distributed import WorkerPlugin
from distributed.protocol.pickle import dumps, loads

from paceline.experiments.executors import compile_all
from paceline.simulation.simulate import Trial

RETRIES = 3

T = TypeVar("T")


class Compiled(WorkerPlugin):
    """Every policy is compiled, or loaded from the worker's disk, when the worker starts or joins."""

    def __init__(self, trials: Sequence[Trial]) -> None:
        self.trials = trials

    def setup(self, worker: Any) -> None:  # noqa: ARG002  # Dask fixes the arguments
        """Called by Dask on each worker."""
        compile_all(self.trials)


class Cluster(Executor):
    """The workers of a cluster, for as long as the client has it.

    Calls go out as bytes: a scheduler opens what it passes on, and would need all that it is made of. Dask's own
    executor asks a second time how a call went when it has the result, and takes the result for an error where the
    worker that had it has left in between (distributed 2026.8); here it is asked once.
    """

    def __init__(self, client: Any) -> None:
        self.client = client

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> "Future[T]":
        """Have a worker call it."""
        sent = dumps((fn, args, kwargs))  # type: ignore[no-untyped-call]
        there = self.client.submit(run_sent, sent, pure=False, retries=RETRIES)
        here: Future[T] = Future()
        here.add_done_callback(lambda _: there.cancel() if here.cancelled() and not there.cancelled() else None)
        self.client.loop.add_callback(land, there, here)
        return here


def run_sent(sent: bytes) -> Any:
    """What a worker does with them."""
    fn, args, kwargs = loads(sent)  # type: ignore[no-untyped-call]
    return fn(*args, **kwargs)


async def land(there: Any, here: "Future[Any]") -> None:
    """Wait for what comes of a call, in the client's loop, and hand it on."""
    result, error = None, None
    try:
        result = await there
    except (CancelledError, asyncio.CancelledError):  # by us, or the cluster went away
        here.cancel()
    except Exception as raised:  # of the call, or of whoever could not open it
        error = raised
    if not here.set_running_or_notify_cancel():
        return
    if error is None:
        here.set_result(result)
    else:
        here.set_exception(error)

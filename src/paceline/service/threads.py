"""Threads for what needs the store. The process does not wait for them at its end: a store may never answer."""

from concurrent.futures import Executor, Future
from functools import partial
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any


class LooseThreads(Executor):
    """Some threads that take calls in order. Those of `ThreadPoolExecutor` would keep the process alive.

    >>> LooseThreads(2, "example").submit(max, 3, 5).result()
    5
    """

    def __init__(self, most: int, name: str) -> None:
        self.most, self.name = most, name
        self.lock = Lock()
        self.threads: list[Thread] = []
        self.calls: SimpleQueue[tuple[Future[Any], partial[Any]] | None] = SimpleQueue()

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Have something called."""
        future: Future[Any] = Future()
        self.calls.put((future, partial(fn, *args, **kwargs)))
        with self.lock:
            if len(self.threads) < self.most:
                thread = Thread(target=self.keep_working, name=f"{self.name}-{len(self.threads)}", daemon=True)
                self.threads.append(thread)
                thread.start()
        return future

    def keep_working(self) -> None:
        """One call after the other."""
        while (call := self.calls.get()) is not None:
            future, work = call
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except BaseException as error:
                    future.set_exception(error)
            del call, future, work  # nobody's result is kept while waiting for the next

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002
        """The threads end when they have done what they were given; nobody waits for that."""
        with self.lock:
            for _ in self.threads:
                self.calls.put(None)

"""The orderly end of a process, whichever way it comes: what was begun in it is brought to its end."""

import atexit
from collections.abc import Callable
from multiprocessing import parent_process, util


def at_end(call: Callable[[], None]) -> None:
    """Have something done before this process ends; to say so twice is to say so once.

    A process of `multiprocessing` (and so of an executor) does not run what `atexit` knows: it ends as a forked copy
    must, and has a list of its own. A copy of a process that was told so here has to be told again.
    """
    forget(call)
    atexit.register(call)
    if parent_process() is not None:
        _finalizers[call] = util.Finalize(None, call, exitpriority=0)


def forget(call: Callable[[], None]) -> None:
    """It need not be done any more."""
    atexit.unregister(call)
    finalizer = _finalizers.pop(call, None)
    if finalizer is not None:
        finalizer.cancel()


_finalizers: dict[Callable[[], None], util.Finalize] = {}

"""Calls of a live bandit that wait for the disk, made by a coroutine: another thread does the waiting."""

import asyncio
from collections.abc import Callable
from threading import Lock

from paceline.live.decision import Decision

Cancel = Callable[[int | str], None]


async def ask_elsewhere(ask: Callable[[], Decision], cancel: Cancel | None) -> Decision:
    """A decision that is made in another thread.

    If the coroutine is cancelled meanwhile, the decision is made all the same, and nobody hears of it: it is given to
    ``cancel``, unless it can be had in another way. That may take as long as asking, and is done in that other thread,
    too: the loop need not wait for it, and may end before.
    """
    if cancel is None:
        return await asyncio.to_thread(ask)
    asking = Asking(ask, cancel)
    try:
        return await asyncio.to_thread(asking.decide)
    except asyncio.CancelledError:
        unheard = asking.leave()
        if unheard is not None:  # it was made, but has not come here
            asyncio.get_running_loop().run_in_executor(None, cancel, unheard.id)
        raise


class Asking:
    """A decision on its way from one thread to another, and whether somebody waits for it there."""

    def __init__(self, ask: Callable[[], Decision], cancel: Cancel) -> None:
        self._ask, self._cancel = ask, cancel
        self._lock = Lock()
        self._made: Decision | None = None
        self._is_left = False

    def decide(self) -> Decision:
        """Ask; what nobody waits for any more is cancelled."""
        decision = self._ask()
        with self._lock:
            self._made = decision
            is_left = self._is_left
        if is_left and decision.arm is not None:
            self._cancel(decision.id)
        return decision

    def leave(self) -> Decision | None:
        """Wait no more. What is made by now, and is to be acted on, is for the caller to cancel."""
        with self._lock:
            self._is_left = True
            return self._made if self._made is not None and self._made.arm is not None else None

"""Calls of a live bandit that wait for the disk, made by a coroutine: another thread does the waiting."""

import asyncio
from collections.abc import Callable
from functools import partial

from paceline.live.decision import Decision

Cancel = Callable[[int | str], None]


async def ask_elsewhere(ask: Callable[[], Decision], cancel: Cancel | None) -> Decision:
    """A decision that is made in another thread.

    If the coroutine is cancelled meanwhile, the decision is made all the same, and nobody hears of it: it is given to
    ``cancel``, unless it can be had in another way.
    """
    asking = asyncio.ensure_future(asyncio.to_thread(ask))
    try:
        return await asyncio.shield(asking)
    except asyncio.CancelledError:
        if cancel is not None:
            asking.add_done_callback(partial(cancel_unheard, cancel))
        raise


def cancel_unheard(cancel: Cancel, asking: "asyncio.Future[Decision]") -> None:
    """Nobody has heard of a decision."""
    if not asking.cancelled() and asking.exception() is None and asking.result().arm is not None:
        cancel(asking.result().id)

"""`join`: become a worker of a fleet."""

import logging
import os
import time
from collections.abc import Callable
from typing import Any

from paceline.errors import InvalidValue, StoreFailed
from paceline.fleet.lives import worker_name
from paceline.fleet.member import Member
from paceline.fleet.store import Store, open_store
from paceline.live.keeper import KEEP
from paceline.live.kept import SNAPSHOT_EVERY

LOG = logging.getLogger("paceline")


def join(
    store: Store | str,
    name: str,
    *,
    worker: str | None = None,
    journal: str | os.PathLike[str] | None = None,
    stale_after: float | None = None,
    sync_every: float | None = 1.0,
    clock: Callable[[], float] = time.time,
    fsync: bool = False,
    snapshot_every: int | None = SNAPSHOT_EVERY,
    rotate_every: int | None = None,
    closed: str = KEEP,
    **settings: Any,
) -> Member:
    """Become a worker of a fleet: a `Bandit` that shares one budget, and what is learned, with other processes.

    ``store``        where the workers meet: sqlite:///file, for processes of one machine, or postgresql://...
    ``name``         of the fleet.
    ``settings``     those of `Bandit` (arms, budget, ...): the fleet is made with them if it is not there. If it is, it
                     must have been made with the same; without any it must be there.
    ``worker``       a name to be shown; the machine and the process unless given. Several lives may share it.
    ``journal``      a file that makes a restarted worker the same one, which has lost nothing. ``fsync``,
                     ``snapshot_every``, ``rotate_every`` and ``closed`` are as of `Bandit.open`.
    ``stale_after``  seconds without contact to the store after which the worker spends what it has, and mints no more.
    ``sync_every``   seconds between exchanges while something changes; None for exchanges by `Member.sync` alone.

    The promise: all that all workers have spent and reserved is at most all that has come in, at every instant,
    whatever is lost, late or dead (see docs/fleet.md for the proof).

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     url = f"sqlite:///{folder}/ads.db"
    ...     with join(url, "ads", arms=["banner", "video"], budget=0.5) as one, join(url, "ads") as other:
    ...         decisions = [member.ask() for member in (one, other) for _ in range(4)]
    ...         one.sync()
    ...         len(one.workers())
    2
    """
    opened = open_store(store) if isinstance(store, str) else store
    if not isinstance(opened, Store):
        raise InvalidValue(f"store must be an address or a store, got {store!r}")
    is_ours = opened is not store
    upkeep = {"fsync": fsync, "snapshot_every": snapshot_every, "rotate_every": rotate_every, "closed": closed}
    try:
        if settings:
            opened.make(name, settings, worker_name(worker))
        member = Member(
            opened, name, worker, journal, stale_after, sync_every, clock, is_ours, upkeep if journal else {}
        )
    except BaseException:
        if is_ours:
            opened.close()
        raise
    try:
        member._exchange()
    except StoreFailed:
        LOG.info("worker %s begins without the store", member._name)
    except BaseException:  # the journal has taken no more
        member._let_go_of_journal()
        if is_ours:
            opened.close()
        raise
    member._begin_thread()
    return member

"""A worker that has not heard from its store for too long spends what it has, and mints no more."""

import logging
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from paceline.live.bandit import Bandit

if TYPE_CHECKING:
    from paceline.fleet.worker import Worker

LOG = logging.getLogger("paceline")


def look(worker: "Worker") -> None:
    """After so long without contact nothing is minted any more."""
    after = worker._stale_after
    if after is None or worker._is_stale or time.monotonic() - worker._heard < after:
        return
    with worker._lock:
        if worker._stopped is None and not worker._is_stale:
            LOG.warning("worker %s of fleet %s: the store was silent for %g seconds", worker._name, worker.fleet, after)
            config = worker._ledger.config
            Bandit.set(worker, budget=config.by_name([0.0] * len(config.resources)))
            worker._is_stale = True


def call_off(worker: "Worker") -> None:
    """The budget of each round is the fleet's again."""
    wanted = worker._origin["budget"]
    for change in worker._changes:
        wanted = merged(wanted, change.get("set", {}).get("budget", wanted))
    with worker._lock:
        config = worker._ledger.config
        if config.by_name([resource.budget for resource in config.resources]) != wanted:
            Bandit.set(worker, budget=wanted)
        worker._is_stale = False


def merged(before: Any, given: Any) -> Any:
    """Amounts of which some may be given anew, by resource."""
    if isinstance(before, Mapping) and isinstance(given, Mapping):
        return {name: float(given.get(name, value)) for name, value in before.items()}
    return float(given) if not isinstance(given, Mapping) else given

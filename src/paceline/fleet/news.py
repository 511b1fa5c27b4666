"""News of decisions of other workers: what is told here and goes to them, and what they told of ours."""

import logging
from collections.abc import Mapping
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from paceline import checks
from paceline.errors import InvalidValue, JournalFailed, StoreFailed, in_one_line
from paceline.fleet.documents import as_text
from paceline.fleet.lives import parts_of
from paceline.fleet.store import Store
from paceline.live.bandit import Bandit
from paceline.live.ledger import Ledger

if TYPE_CHECKING:
    from paceline.fleet.worker import Worker

LOG = logging.getLogger("paceline")

MOST_UNSENT = 100_000  # news of others that waits for the store
AT_ONCE = 500  # of it in one transaction


class Unsent:
    """News for other workers that waits for the store. What is told again while it waits, waits once."""

    def __init__(self) -> None:
        self._lock, self._sending = Lock(), Lock()
        self._waiting: dict[tuple[str, str], dict[str, Any]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, owner: str, news: dict[str, Any]) -> None:
        """Keep it until the store takes it."""
        with self._lock:
            if len(self._waiting) >= MOST_UNSENT:
                raise StoreFailed(f"news of others must wait for the store, and {MOST_UNSENT} wait already")
            self._waiting[owner, as_text(news)] = news

    def send(self, store: Store, fleet: str) -> None:
        """Send all that waits now; when this returns the store has it. One sends for all that wait meanwhile."""
        left = len(self._waiting)
        with self._sending:
            while left > 0 and self._waiting:
                with self._lock:
                    batch = dict(islice(self._waiting.items(), AT_ONCE))
                send_all(store, fleet, [(owner, news) for (owner, _), news in batch.items()])
                with self._lock:
                    for key in batch:
                        del self._waiting[key]
                left -= len(batch)


def send_all(store: Store, fleet: str, news: list[tuple[str, dict[str, Any]]]) -> None:
    """Send news; what the store refuses must not hold up the rest, nor the exchange that comes after it."""
    try:
        store.send(fleet, news)
    except InvalidValue as error:
        if len(news) == 1:
            LOG.warning("news of decision %s cannot be sent on: %s", news[0][1]["id"], error)
        else:
            for one in news:
                send_all(store, fleet, [one])


def news_of(ledger: Ledger, id: str, reward: Any, cost: Any, overrun: bool) -> dict[str, Any]:
    """What was told of a decision of another worker, checked as far as it can be here: its owner alone knows the rest.

    All that cannot be is refused now, to the one who tells it, for nobody hears of it later.
    """
    config, decision = ledger.config, f"decision {id}"
    news: dict[str, Any] = {"id": id}
    if reward is not None:
        given = float(reward) if isinstance(reward, bool | np.bool_) else reward
        news["reward"] = checks.real(f"reward of {decision}", given, 0, ledger.max_reward)
    pairs = zip(config.resources, config.in_order("cost", cost), strict=True)
    costs = {  # whatever was reserved, it is at most the scale
        one.name: one.check_cost(decision, given, None if overrun else one.scale)
        for one, given in pairs
        if given is not None
    }
    if costs:
        news["cost"] = next(iter(costs.values())) if config.is_unnamed else costs
    if len(news) == 1:
        raise InvalidValue(f"tell must be given a reward, a cost or both, got neither for {decision}")
    return {**news, "overrun": True} if overrun else news


def hear(member: "Worker", news: Mapping[str, Any]) -> None:
    """News of a decision that was told elsewhere: one of ours, or one of a worker that is no more.

    It comes with every exchange until it was heard: whatever may be wrong with it, the next one must have its turn.
    """
    id: Any = news.get("id")
    try:
        named = parts_of(id)
        if named is not None and named[0] == member._standing.life:
            if "cancel" in news:
                Bandit.cancel(member, id)
            elif "expire" in news:
                Bandit.expire(member, id)
            else:
                Bandit.tell(member, id, news.get("reward"), news.get("cost"), overrun=news.get("overrun", False))
        elif named is not None:
            learn_of_the_dead(member, named[2], news)
    except JournalFailed:
        raise  # it was not heard, and comes again
    except Exception as error:
        LOG.warning("news of decision %s cannot be taken in: %s", id, in_one_line(error))


def learn_of_the_dead(member: "Worker", slot: int | None, news: Mapping[str, Any]) -> None:
    """An outcome of a worker that is no more still teaches, if all of it is told; its money stays as it was."""
    costs = member._ledger.config.in_order("cost", news.get("cost"))
    if slot is None or news.get("reward") is None or None in costs:
        return
    names = member._ledger.arm_set.names
    if slot < len(names):
        Bandit.observe(member, names[slot], news["reward"], news["cost"])

"""What is known of one decision: for whoever asks what has become of it."""

from typing import Any, NamedTuple

from paceline.live.events import NO_TIME
from paceline.live.ledger import Ledger
from paceline.live.pulls import CANCELLED, is_expired, is_told
from paceline.live.requests import not_open

PENDING, EXPIRED, TOLD, CANCELLED_STATE = "pending", "expired", "told", "cancelled"


class Record(NamedTuple):
    """A decision that is not forgotten. Costs are by name where resources have names."""

    state: str  # pending, expired, told or cancelled
    reward: float | None = None  # as far as it was told, and
    cost: Any = None  # likewise
    arm: str | None = None  # of one that is pending or expired
    asked: float | None = None  # seconds, by the bandit's clock, and
    deadline: float | None = None  # likewise


def record_of(ledger: Ledger, number: int) -> Record:
    """What the books say of a decision; those that are settled are remembered for a while."""
    pull = ledger.pending.find(number)
    if pull is None:
        settled = ledger.settled.get(number)
        if settled is None:
            raise not_open(ledger, number)
        if settled == CANCELLED:
            return Record(CANCELLED_STATE, cost=ledger.config.by_name(ledger.unknown))
        return Record(TOLD, settled[0], ledger.config.by_name(settled[1]))
    told = pull.told
    reward, costs = (None, ledger.unknown) if told is None else (told.reward, told.costs)
    return Record(
        TOLD if is_told(pull) else EXPIRED if is_expired(pull) else PENDING,
        reward,
        ledger.config.by_name(costs),
        ledger.arm_set.names[pull.slot],
        None if pull.asked == NO_TIME else pull.asked / 1000.0,
        None if pull.deadline is None else pull.deadline / 1000.0,
    )

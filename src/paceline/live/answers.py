"""A decision as the user sees it: with the name of its arm, its reason, and how likely it was."""

from typing import TYPE_CHECKING

from paceline.kernels.state import GUARD
from paceline.live.decision import SAVES, Decision, make

if TYPE_CHECKING:
    from paceline.live.ledger import Ledger

NO_ARM_ACTIVE = "no arm is active"


def answer(ledger: "Ledger", number: int, slot: int, reason: int, tag: int) -> Decision:
    """A decision as the user sees it."""
    if slot >= 0 and not ledger.has_more_to_say:
        name, other = ledger.arm_set.name_at[slot], ledger.arm_set.name_at[tag] if ledger.tag_is_arm else None
        return make(Decision, (number, name, ledger.situations[reason], other, None, None, None, None))
    arm_set, id, situation = ledger.arm_set, ledger.id_of(number, slot), ledger.situations[reason]
    name_at = arm_set.name_at
    likely = propensity(ledger, slot, reason, tag) if ledger.is_random else None
    if slot >= 0:
        return Decision(id, name_at[slot], situation, name_at[tag] if ledger.tag_is_arm else None, propensity=likely)
    if not ledger.seen.slots:
        return Decision(id, None, NO_ARM_ACTIVE, propensity=likely)
    other = name_at[tag] if ledger.tag_is_arm or reason == GUARD else None
    if reason != GUARD and not (other and situation.startswith(SAVES) and is_short_of(ledger, tag)):
        return Decision(id, None, situation, other, propensity=likely)
    d, largest = arm_set.find_shortage(ledger.seen, tag)
    resource = ledger.config.resources[d]
    headroom = resource.currency.amount(int(arm_set.books.headroom[d]))
    name = None if ledger.is_unnamed else resource.name
    return Decision(id, None, situation, other, headroom, largest, name, likely)


def without_slot(id: int | str) -> int | str:
    """An id as it is kept for a request that comes again: a journal does not say whether ids end with slots.

    >>> without_slot("web-1.5f0c7b1e2d3a-17.3"), without_slot("web-1.5f0c7b1e2d3a-17"), without_slot(17)
    ('web-1.5f0c7b1e2d3a-17', 'web-1.5f0c7b1e2d3a-17', 17)
    """
    if not isinstance(id, str):
        return id
    begins, dash, number = id.rpartition("-")
    return f"{begins}{dash}{number.partition('.')[0]}"


def again(ledger: "Ledger", key: str) -> Decision:
    """What a request was answered before, with the id that it had then."""
    decision, arm_set = ledger.answers[key], ledger.arm_set
    if decision.arm is None or not arm_set.ids_name_arms:
        return decision
    return decision._replace(id=f"{decision.id}{arm_set.id_ends[arm_set.slot_by_name[decision.arm]]}")


def is_short_of(ledger: "Ledger", slot: int) -> bool:
    """Whether the headroom does not cover a pull of this arm."""
    lineup = ledger.seen
    if slot not in lineup.slots:
        return False
    return bool((ledger.arm_set.books.headroom < lineup.storage.limits[lineup.slots.index(slot)]).any())


def propensity(ledger: "Ledger", slot: int, reason: int, tag: int) -> float | None:
    """How likely the decision of this round was."""
    policy = ledger.config.policy
    limits = ledger.seen.storage.limits
    affordable = int((limits <= ledger.arm_set.books.headroom).all(axis=1).sum())
    is_wanted = reason != policy.by_chance or tag == slot
    return policy.propensity(slot >= 0, is_wanted, affordable, len(limits))

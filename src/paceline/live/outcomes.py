"""What becomes of a pull: it is told its reward and costs, in parts or at once, is cancelled, or expires.

These are steps of `Ledger.apply`. In whatever order the parts come, the books end up the same: what was reserved is
released, and charged is the true cost, or the largest where none was ever told.
"""

import math
from operator import truediv
from typing import TYPE_CHECKING

from paceline.interrupts import signals_held
from paceline.kernels.budget import move
from paceline.kernels.jit import plain_throughout
from paceline.kernels.state import GUARD
from paceline.live.arms import ABSENT
from paceline.live.decision import NULL
from paceline.live.events import NO_TIME, Cancel, Costs, Expire, Tell
from paceline.live.pulls import CANCELLED, TOLD, Outcome, Pull, Row, Told, Units, as_pull, is_told

if TYPE_CHECKING:
    from paceline.live.ledger import Ledger

move_units = plain_throughout(move)


def take_in(ledger: "Ledger", event: Tell) -> None:
    """A reward, costs, or both. Each teaches at once; when all is known the decision is settled.

    Where silence may stand for a reward, clicks must not teach before silences do: either the reward is corrected
    for its delay (late_rewards.py), or it is kept back until the window of the decision is over.
    """
    number, reward, costs, time, overrun = event
    ledger.pass_time(time)
    row = ledger.pending[number]
    if row[TOLD] is None and reward is not None and None not in costs and not (overrun or ledger.may_wait):
        settle(ledger, number, row, reward, costs)  # as is usual
        return
    pull = ledger.marked(number, row)
    told, is_counted = pull.told, corrects_delay_of(ledger, number, pull)
    is_kept_back = not is_counted and keeps_back(ledger, pull)
    if overrun:
        note_overrun(ledger, pull, costs)
    if told is None and reward is not None and None not in costs and not (is_counted or is_kept_back):
        settle(ledger, number, pull, reward, costs)
        return
    if told is None:
        told = Told(None, ledger.unknown, ledger.no_units, False)
    is_new = [cost is not None and known is None for cost, known in zip(costs, told.costs, strict=True)]
    costs = tuple([cost if new else known for cost, known, new in zip(costs, told.costs, is_new, strict=True)])
    released = tuple([units if new else 0 for units, new in zip(pull.reserved, is_new, strict=True)])
    charged = tuple(
        [
            currency.charge(cost) - before if new else 0  # type: ignore[arg-type]  # it is known
            for currency, cost, before, new in zip(ledger.currencies, costs, told.charged, is_new, strict=True)
        ]
    )
    new_reward = reward if told.reward is None and not is_kept_back else None
    ahead = parts_known(told) | is_counted
    if new_reward is not None:
        told = told._replace(learned=True)
    if new_reward is not None and is_counted:
        count_reward(ledger, pull, new_reward)
        new_reward = None
    if reward is None:
        reward = told.reward
    if reward is None and told.expired and None not in costs:
        reward = ledger.config.silence  # nothing more is expected of it
    if reward is not None and None not in costs and (told.expired or not is_kept_back):
        settle(ledger, number, pull, reward, costs, released, charged, ahead)
        return
    shares = tuple(
        [
            min(cost / scale, 1.0) if new else math.nan  # type: ignore[operator]  # it is known
            for cost, scale, new in zip(costs, ledger.scales, is_new, strict=True)
        ]
    )
    share = math.nan if new_reward is None else new_reward / ledger.max_reward
    ledger.arm_set.tell_part(pull.slot, share, shares, released, charged)
    account(ledger, number, pull, told._replace(reward=reward, costs=costs), released, charged)


def corrects_delay_of(ledger: "Ledger", number: int, pull: Pull) -> bool:
    """Whether the reward of a pull is among those that are corrected for their delay."""
    return ledger.late is not None and ledger.late.has(number, pull)


def keeps_back(ledger: "Ledger", pull: Pull) -> bool:
    """Whether the reward of another pull is learned only once its window is over, or all of it is known.

    Pulls of earlier versions are learned as these did: at once.
    """
    is_learned = pull.told is not None and pull.told.learned
    return ledger.may_be_silent and pull.deadline is not None and pull.asked != NO_TIME and not is_learned


def count_reward(ledger: "Ledger", pull: Pull, reward: float) -> None:
    """Take in a reward that is corrected for its delay."""
    assert ledger.late is not None
    ledger.late.take_in(pull, reward / ledger.max_reward)
    ledger.arm_set.add_rewards(pull.slot, ledger.late.renewed(pull.slot))


def take_out(ledger: "Ledger", number: int, pull: Pull) -> None:
    """Count a pull no more among those whose reward may come late."""
    if ledger.late is not None and ledger.late.has(number, pull):
        reward = None if pull.told is None else pull.told.reward
        ledger.late.take_out(pull, None if reward is None else reward / ledger.max_reward)
        ledger.renew_rewards(pull.slot)


def note_overrun(ledger: "Ledger", pull: Pull, costs: Costs) -> None:
    """Count what is told above the largest costs, of costs that were not known before."""
    before = ledger.unknown if pull.told is None else pull.told.costs
    for d, (cost, largest, known) in enumerate(zip(costs, pull.largest, before, strict=True)):
        if cost is not None and known is None:
            charge = ledger.currencies[d].charge
            ledger.overrun[d] += max(charge(cost) - charge(largest), 0)


def release_and_charge(ledger: "Ledger", number: int, pull: Pull, told: Told, released: Units, charged: Units) -> None:
    """Release and charge units for a pull of which nothing new is known."""
    for d, units in enumerate(zip(released, charged, strict=True)):
        move_units(ledger.arm_set.books, ledger.no_units, d, *units)
    ledger.arm_set.drop_unpaid(pull.slot, released)
    account(ledger, number, pull, told, released, charged)


def account(ledger: "Ledger", number: int, pull: Pull, told: Told, released: Units, charged: Units) -> None:
    """Note what was released and charged for a pull of which not all is known."""
    reserved = tuple(map(int.__sub__, pull.reserved, released))
    told = told._replace(charged=tuple(map(int.__add__, told.charged, charged)))
    now = pull._replace(reserved=reserved, told=told)
    ledger.kept_back += is_told(now) - is_told(pull)
    ledger.pending.put(number, now)


def settle(
    ledger: "Ledger",
    number: int,
    pull: Row,
    reward: float,
    costs: Costs,
    released: Units | None = None,
    charged: Units | None = None,
    ahead: int = 0,
) -> None:
    """All of a pull is known: the policy learns, and it is remembered for a while.

    Usually all is told at once: then all that was reserved is released, and all costs are charged. What was known
    of it ahead has a bit in ``ahead`` (`parts_known`).
    """
    slot, reason, tag, reserved, _, _, _, _ = pull
    if ledger.is_single:
        cost = costs[0]
        share = cost / ledger.scales[0]  # type: ignore[operator]  # it is known
        shares: tuple[float, ...] = (share if share <= 1.0 else 1.0,)
        if charged is None:
            released, charged = reserved, (ledger.currencies[0].charge(cost),)  # type: ignore[arg-type]
    else:
        shares = tuple([min(share, 1.0) for share in map(truediv, costs, ledger.scales)])
        if charged is None:
            pairs = zip(ledger.currencies, costs, strict=True)
            charged = tuple([currency.charge(cost) for currency, cost in pairs])  # type: ignore[arg-type]
            released = reserved
    arm_set = ledger.arm_set
    if number <= ledger.policy_since:  # reasons and tags of another policy
        reason, tag = GUARD + 1, slot
    places = arm_set.places
    arm, place = places[slot], places[tag] if ledger.tag_is_arm else tag
    earned = reward / ledger.max_reward
    if arm == ABSENT or place == ABSENT:  # noqa: PLR1714  # a tuple would have to be made
        if ledger.tag_is_arm and tag == NULL:
            tag = len(arm_set.names)
        with signals_held():  # several steps
            arm_set.tell_aside(ahead, slot, reason, tag, earned, shares, released, charged)
    elif ahead:
        rest = arm, reason, place, earned, shares, released, charged, ahead
        arm_set.part_calls_for(arm_set.params, arm_set.playing).tell_rest(arm_set.params, arm_set.playing, *rest)
    else:
        tell = arm_set.calls.tell  # what is called as a method is looked for in the class first
        tell(arm_set.params, arm_set.playing, arm, reason, place, earned, shares, released, charged)
    finish(ledger, number, pull, (reward, costs))


def finish(ledger: "Ledger", number: int, pull: Row, outcome: Outcome) -> None:
    """The engine was told of an outcome: the decision is not pending any more.

    If this is cut short, it can be done again, and that outcomes are counted comes last.
    """
    if pull[6] is not None:
        ledger.deadlines.drop()
    if pull[7] is not None:
        ledger.kept_back -= is_told(pull)
        ledger.expired_pulls.pop(number, None)
    ledger.settled.keep(number, outcome, ledger.remembered)
    del ledger.pending[number]
    ledger.told += 1


def cancel(ledger: "Ledger", event: Cancel) -> None:
    """Forget a pull that was never acted on."""
    ledger.pass_time(event.time)
    number = event.id
    pull = forget(ledger, number)
    take_out(ledger, number, pull)
    ledger.expired_pulls.pop(number, None)
    charged = ledger.no_units if pull.told is None else pull.told.charged
    for d, units in enumerate(zip(pull.reserved, charged, strict=True)):
        move_units(ledger.arm_set.books, ledger.no_units, d, units[0], -units[1])
    ledger.arm_set.drop_unpaid(pull.slot, pull.reserved)
    ledger.settled.keep(number, CANCELLED, ledger.remembered)
    ledger.turnout.cancelled[pull.slot] += 1


def expire(ledger: "Ledger", event: Expire) -> None:
    """Give up waiting for some pulls.

    Costs that are not known are charged in full. With all costs but no reward, silence may stand for a reward.
    """
    ledger.pass_time(event.time)
    for number in event.ids:
        expire_one(ledger, number)


def expire_one(ledger: "Ledger", number: int) -> None:
    """Give up waiting for one."""
    pull = ledger.marked(number, ledger.pending[number])
    told = pull.told or Told(None, ledger.unknown, ledger.no_units, False)
    costs_are_known, is_counted = None not in told.costs, corrects_delay_of(ledger, number, pull)
    reward = ledger.config.silence if told.reward is None else told.reward
    if costs_are_known and reward is not None:
        ahead = parts_known(told) | is_counted  # that a pull counts as silent is known
        settle(ledger, number, pull, reward, told.costs, ledger.no_units, ledger.no_units, ahead)
        return
    if is_counted:
        take_out(ledger, number, pull)
        told = told._replace(learned=False)
    told = told._replace(expired=True)
    if costs_are_known:
        ledger.pending.put(number, pull._replace(told=told))
    else:
        release_and_charge(ledger, number, pull, told, pull.reserved, pull.reserved)
    ledger.turnout.expired[pull.slot] += 1
    ledger.expired_pulls[number] = None
    if len(ledger.expired_pulls) > ledger.remembered:
        forgotten, _ = ledger.expired_pulls.popitem(last=False)
        forget(ledger, forgotten)


def forget(ledger: "Ledger", number: int) -> Pull:
    """A pull of which not all was told is not waited for any more; what was known of it stays known."""
    pull = as_pull(ledger.pending.pop(number))
    if pull.deadline is not None:
        ledger.deadlines.drop()
    ledger.arm_set.drop_pending(pull.slot)
    return pull


def parts_known(told: Told) -> int:
    """What has been learned of a pull, a bit for each part: 1 for the reward, 2 for the first cost, and so on."""
    costs = sum(2 << d for d, cost in enumerate(told.costs) if cost is not None)
    return costs + 1 if told.learned else costs

"""What users ask of a live bandit, checked: each function gives the event that is to happen, or refuses.

Nothing is changed here. Where nothing is to happen, since it is known already, there is no event.
"""

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from paceline import checks
from paceline.errors import Conflict, InvalidValue, UnknownName
from paceline.live import income
from paceline.live.arms import ACTIVE, ArmSet
from paceline.live.config import Config, check_arms, one_policy
from paceline.live.events import Add, Cancel, Costs, Credit, Expire, Facts, Merge, Observe, Set, SetStatus, Tell
from paceline.live.ledger import Ledger, line_of
from paceline.live.pulls import CANCELLED, Pull, Row, is_expired
from paceline.live.reports import check_adds_up, check_reports
from paceline.live.resource import DOWN, UP, label
from paceline.live.settings import as_written, changed_config, largest_costs
from paceline.policies.policy import Policy
from paceline.policies.rules import is_ours

LONGEST_KEY = 1000  # characters
LONGEST_NUMBER = 30  # digits: more rounds than there can be


# Requests for a decision.


def facts_of(ledger: Ledger, arms: Any, max_cost: Any, key: Any) -> Facts | None:
    """What is true of one request for a decision; None if there is nothing special about it."""
    if arms is None and max_cost is None and key is None:
        return None
    arm_set = ledger.arm_set
    slots = None
    if arms is not None:
        if isinstance(arms, str | bytes) or not isinstance(arms, Sequence):
            raise InvalidValue(f"arms must be a list of names, got {arms!r}")
        named = {arm_set.slot_of(arm) for arm in arms}  # those that are paused stay out
        slots = tuple(sorted(slot for slot in named if arm_set.statuses[slot] == ACTIVE))
        if len(slots) == len(arm_set.slots):
            slots = None
        elif not is_ours(arm_set.policy):
            check_policy_takes(arm_set, ledger.config, arm_set.max_costs, slots)
    if key is not None and (not isinstance(key, str) or not 0 < len(key) <= LONGEST_KEY):
        raise InvalidValue(f"key must be a text of 1 to {LONGEST_KEY} characters, got {key!r}")
    return Facts(key, slots, largest_of_request(ledger, max_cost, slots))


def largest_of_request(
    ledger: Ledger, max_cost: Any, slots: tuple[int, ...] | None
) -> tuple[tuple[int, tuple[float, ...]], ...]:
    """The largest costs of one request: one for all its arms, or by arm; where resources have names, by resource."""
    if max_cost is None:
        return ()
    arm_set, config = ledger.arm_set, ledger.config
    allowed = dict.fromkeys(arm_set.slots if slots is None else slots)  # in their order, and quick to look into
    by_resource = config.largest_in_order(max_cost)
    changed: dict[int, list[float]] = {}
    for d, (resource, given) in enumerate(zip(config.resources, by_resource, strict=True)):
        if given is None:
            continue
        pairs = given.items() if isinstance(given, Mapping) else [(arm_set.names[slot], given) for slot in allowed]
        for arm, cost in pairs:
            slot = arm_set.slot_of(arm)
            largest = resource.check_max_cost(arm, cost)
            if slot in allowed:
                changed.setdefault(slot, list(arm_set.max_costs[slot]))[d] = largest
    return tuple([(slot, tuple(changed[slot])) for slot in sorted(changed)])


# News.


def is_usual(pull: Row, reward: Any, costs: tuple[Any, ...], most: float) -> bool:
    """Whether all of an outcome is told at once, in floats, and there is nothing wrong about it; else look closer."""
    if pull[7] is not None or type(reward) is not float or not 0.0 <= reward <= most:
        return False
    if len(costs) == 1:
        return type(costs[0]) is float and 0.0 <= costs[0] <= pull[4][0]
    pairs = zip(costs, pull[4], strict=True)
    return all(type(cost) is float and 0.0 <= cost <= largest for cost, largest in pairs)


def tell(
    ledger: Ledger, number: int, reward: Any, costs: tuple[Any, ...], time: int, overrun: bool = False
) -> Tell | None:
    """A reward, costs, or both; None if all of it is known."""
    pull = ledger.pending.find(number)
    if pull is None and number not in ledger.settled:
        raise not_open(ledger, number)
    if reward is None and all(cost is None for cost in costs):
        raise InvalidValue(f"tell must be given a reward, a cost or both, got neither for decision {number}")
    reward = number_for(reward)
    if pull is None:
        check_same(ledger, number, reward, costs)
        return None
    known = None if pull.told is None else pull.told.reward
    if reward is not None:
        reward = checks.real(f"reward of decision {number}", reward, 0, ledger.max_reward)
        if known is not None and known != reward:
            raise Conflict(f"decision {number} must keep its reward {known!r}, got {reward!r}")
    checked = check_costs(ledger, number, pull, costs, overrun)
    before = ledger.unknown if pull.told is None else pull.told.costs
    is_new = [cost is not None and old is None for cost, old in zip(checked, before, strict=True)]
    if not any(is_new) and (reward is None or known is not None):
        return None
    pairs = zip(checked, pull.largest, strict=True)
    is_over = any(cost is not None and cost > largest for cost, largest in pairs)
    return Tell(number, reward, checked, time, is_over)


def number_for(reward: Any) -> Any:
    """A reward that is True or False as a number."""
    reward = checks.entry_of(reward)
    return float(reward) if isinstance(reward, bool | np.bool_) else reward


def check_costs(ledger: Ledger, number: int, pull: Pull, costs: tuple[Any, ...], overrun: bool) -> Costs:
    """Costs that can be, and are those that were told before."""
    decision = f"decision {number} ({ledger.arm_set.names[pull.slot]})"
    checked: list[float | None] = []
    before = ledger.unknown if pull.told is None else pull.told.costs
    rows = zip(ledger.config.resources, costs, pull.largest, before, strict=True)
    for d, (resource, given, largest, known) in enumerate(rows):
        most = max(largest, known or 0.0, income.most_overrun(ledger, d)) if overrun else largest
        cost = None if given is None else resource.check_cost(decision, given, most)
        if None not in (cost, known) and cost != known:
            thing = label("cost", resource.name)
            raise Conflict(f"decision {number} must keep its {thing} {known!r}, got {cost!r}")
        checked.append(cost)
    return tuple(checked)


def check_same(ledger: Ledger, number: int, reward: float | None, costs: tuple[Any, ...]) -> None:
    """News of a decision that is not open must be old news."""
    told = ledger.settled[number]
    if told == CANCELLED:
        news = reward, ledger.config.by_name(costs)
        raise Conflict(f"decision {number} was cancelled; it must not be told an outcome, got {news}")
    things = ["reward", *(label("cost", name) for name in ledger.config.names)]
    for thing, given, known in zip(things, (reward, *costs), (told[0], *told[1]), strict=True):
        toward = None if thing == "reward" else UP
        if given is not None and checks.real(f"{thing} of decision {number}", given, toward=toward) != known:
            raise Conflict(f"decision {number} must keep its {thing} {known!r}, got {given!r}")


def cancel(ledger: Ledger, number: int, time: int) -> Cancel | None:
    """A pull that was never acted on; None if that is known."""
    pull = ledger.pending.find(number)
    if pull is None:
        if number not in ledger.settled:
            raise not_open(ledger, number)
        if ledger.settled[number] != CANCELLED:
            raise Conflict(f"decision {number} was told its outcome; it must not be cancelled any more")
        return None
    told = pull.told
    if told is not None and (told.reward is not None or any(cost is not None for cost in told.costs)):
        raise Conflict(f"decision {number} was told a part of its outcome; it must not be cancelled any more")
    return Cancel(number, time)


def expire(ledger: Ledger, number: int, time: int) -> Expire | None:
    """A pull that is not waited for any more; None if that is known."""
    pull = ledger.pending.find(number)
    if pull is None:
        if number not in ledger.settled:
            raise not_open(ledger, number)
        return None
    return None if is_expired(pull) else Expire((number,), time)


def not_open(ledger: Ledger, number: int) -> UnknownName:
    """What to say of a number that is neither open nor remembered."""
    if 1 <= number <= ledger.rounds:
        kept = ledger.config.remember
        return UnknownName(
            f"decision {number} is not open: it was to sit out, or {kept} others were settled since it was"
        )
    return UnknownName(f"id must be that of a decision, from 1 to {ledger.rounds}, got {checks.shown(number)}")


def number_of(id: Any, worker: str | None) -> int:
    """The number in the id of a decision of this bandit."""
    if worker is not None and isinstance(id, str):
        owner, _, digits = id.rpartition("-")
        digits = digits.partition(".")[0]  # what may follow is the slot of the arm
        if digits.isascii() and digits.isdigit() and len(digits) <= LONGEST_NUMBER:
            if owner == worker:
                return int(digits)
            raise UnknownName(f"id must be that of a decision of worker {worker}, got {id!r} of {owner or 'nobody'}")
    if worker is not None or isinstance(id, bool) or not isinstance(id, Integral):
        rule = "the number of a decision" if worker is None else f"the id of a decision, such as {worker}-1"
        raise UnknownName(f"id must be {rule}, got {id!r}")
    return int(id)


def merge(ledger: Ledger, reports: Any, time: int) -> Merge:
    """What others have learned."""
    return Merge(check_reports(ledger.config, ledger.config.policy, reports), time)


def observe(ledger: Ledger, arm: Any, reward: Any, cost: Any, time: int) -> Observe:
    """A pull that was made elsewhere, with all that it has brought."""
    arm_set, config = ledger.arm_set, ledger.config
    if is_ours(config.policy):
        check_adds_up(config.policy)
    slot = arm_set.slot_of(arm)
    reward = number_for(reward)
    share = checks.real(f"reward of {arm}", reward, 0, ledger.max_reward)
    costs = config.in_order("cost", cost)
    rows = zip(config.resources, costs, arm_set.max_costs[slot], strict=True)
    checked = tuple([resource.check_cost(arm, given, most) for resource, given, most in rows])
    return Observe(slot, share, checked, time)


# Amounts and arms.


def credit(ledger: Ledger, amount: Any, over: Any, rate: Any, time: int) -> Credit:
    """More income, besides the budget of each round."""
    config = ledger.config
    amounts: list[float | None] = []
    for d, (resource, given) in enumerate(zip(config.resources, config.in_order("credit", amount), strict=True)):
        if given is None and not config.is_unnamed:
            amounts.append(None)
            continue
        more = checks.real(label("credit", resource.name), given, 0, above_low=True, toward=DOWN)
        books = ledger.arm_set.books
        refills = ledger.rounds * resource.currency.charge(resource.max_refill)
        so_far = int(line_of(books, d)) + int(books.lost[d]) + int(books.held[d]) + refills
        resource.currency.check_total(label("income", resource.name), so_far, more)
        amounts.append(more)
    over = checks.whole("over", over, 0, checks.MOST_ROUNDS)
    if not isinstance(rate, bool):
        raise InvalidValue(f"rate must be True or False, got {rate!r}")
    if over > 0 and not rate:
        raise InvalidValue(f"rate must be True for a credit over rounds to come, got False with over={over}")
    return Credit(some("credit", amounts), over, rate, time)


def debit(ledger: Ledger, amount: Any, rate: Any, time: int) -> Credit:
    """Money that leaves: no more than there is headroom."""
    config = ledger.config
    amounts: list[float | None] = []
    for d, (resource, given) in enumerate(zip(config.resources, config.in_order("debit", amount), strict=True)):
        if given is None and not config.is_unnamed:
            amounts.append(None)
            continue
        thing = label("debit", resource.name)
        less = checks.real(thing, given, 0, above_low=True, toward=UP)
        left, currency = max(ledger.headroom(d), 0), resource.currency
        if less * currency.units > left or currency.charge(less) > left:  # the product may be infinite, or vanish
            raise InvalidValue(f"{thing} must be at most the headroom, {currency.amount(left)!r}, got {less!r}")
        amounts.append(-less)
    if not isinstance(rate, bool):
        raise InvalidValue(f"rate must be True or False, got {rate!r}")
    return Credit(some("debit", amounts), 0, rate, time)


def some(thing: str, amounts: list[float | None]) -> Costs:
    """Amounts of which one at least is given."""
    if all(amount is None for amount in amounts):
        raise InvalidValue(f"{thing} must be a number for some resource, got none")
    return tuple(amounts)


def change_settings(ledger: Ledger, given: Mapping[str, Any], time: int) -> tuple[Set, Policy | None]:
    """Other settings from now on, and the policy if there is another."""
    if not given:
        raise InvalidValue("set must be given a setting, got none")
    policy = one_policy(given["policy"]) if "policy" in given else None
    config, arm_set = changed_config(ledger.config, given, policy), ledger.arm_set
    largest: Mapping[int, tuple[float, ...]] = {}
    if "max_cost" in given:
        if given["max_cost"] is None:
            raise InvalidValue("max_cost must be a cost, or costs by arm, got None")
        largest = largest_costs(ledger.config, arm_set, given["max_cost"])
    after = [largest.get(slot, max_costs) for slot, max_costs in enumerate(arm_set.max_costs)]
    check_policy_takes(arm_set, config, after, arm_set.slots)
    return Set(as_written(given, policy), time), policy


def check_policy_takes(
    arm_set: ArmSet, config: Config, max_costs: Sequence[tuple[float, ...]], playing: Sequence[int]
) -> None:
    """Let a policy that cannot play the arms say so before anything has happened.

    It will be asked about all arms there ever were, by their largest costs, since news of one that was retired is taken
    in; and about those in play, by their slots. One of ours can play some of the arms if it can play all.
    """
    units = [resource.currency.unit for resource in config.resources]
    largest = np.array([arm_set.units_of(costs) for costs in max_costs]) * units
    config.policy.params(config.setting(largest))
    if not is_ours(config.policy) and 0 < len(playing) < len(max_costs):
        config.policy.params(config.setting(largest[list(playing)]))


def add(ledger: Ledger, arm: Any, max_cost: Any, time: int) -> Add:
    """A new arm; a largest cost that is not given is that of all arms."""
    check_arms([arm], ledger.arm_set.names_in_use())
    pairs = zip(ledger.config.resources, ledger.config.largest_in_order(max_cost), strict=True)
    largest = tuple(
        [
            resource.check_max_cost(arm, resource.max_cost_of(arm) if given is None else given)
            for resource, given in pairs
        ]
    )
    arm_set = ledger.arm_set
    after = [*arm_set.max_costs, largest]
    check_policy_takes(arm_set, ledger.config, after, [*arm_set.slots, len(arm_set.names)])
    return Add(arm, largest, time)


def set_status(ledger: Ledger, arm: Any, status: str, time: int) -> SetStatus | None:
    """Pause, resume or retire an arm; None if it is so already."""
    arm_set = ledger.arm_set
    slot = arm_set.slot_of(arm)
    if arm_set.statuses[slot] == status:
        return None
    if not is_ours(arm_set.policy):
        playing = sorted({*arm_set.slots, slot} if status == ACTIVE else {*arm_set.slots} - {slot})
        check_policy_takes(arm_set, ledger.config, arm_set.max_costs, playing)
    return SetStatus(slot, status, time)

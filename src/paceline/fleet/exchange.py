"""One exchange of a worker with the store: what its books say, and what becomes of the answer."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from paceline.fleet import protocol
from paceline.fleet.lives import Intent
from paceline.fleet.news import hear
from paceline.fleet.protocol import Answer, Figures, Left, Units
from paceline.fleet.settings import apply_change
from paceline.fleet.sums import learned, sums_from
from paceline.interrupts import interrupts_held
from paceline.live import changes, requests
from paceline.live.bandit import Bandit
from paceline.live.events import Merge, Pace
from paceline.live.ledger import Ledger
from paceline.live.pulls import RESERVED, TOLD, Row, Told, is_awaited

if TYPE_CHECKING:
    from paceline.fleet.worker import Worker

MOST_AT_ONCE = 2**52  # units that one credit brings: a float has them exactly
OTHERS = "fleet"  # the name under which the sums of all others stand in a journal


# What the books say.


def figures_of(member: "Worker") -> Figures:
    """What the books of a worker show; they must not change meanwhile."""
    ledger, standing = member._ledger, member._standing
    books, every = ledger.arm_set.books, range(len(ledger.rolled))
    spent = tuple([int(books.spent[d]) + ledger.rolled[d] for d in every])
    line = tuple([ledger.line(d) + ledger.rolled[d] for d in every])
    net = protocol.minus(standing.granted, standing.returned)
    return Figures(
        rounds=ledger.rounds,
        minted=protocol.minus(line, net),
        spent=spent,
        reserved=tuple(books.reserved.tolist()),
        sums=learned(ledger),
        earned=float(books.tally.earned) * ledger.config.max_reward,
    )


def estate_of(ledger: Ledger) -> dict[int, Left]:
    """What is reserved for decisions that are waited for, by their numbers."""
    return {
        number: left_open(pull) for number, pull in ledger.pending.items() if any(pull[RESERVED]) or is_awaited(pull)
    }


def left_open(pull: Row) -> Left:
    """What is reserved for a decision where its cost is not known."""
    reserved: Units = pull[RESERVED]
    told: Told | None = pull[TOLD]
    if told is None:
        return Left(reserved)
    unknown = tuple([units if cost is None else None for units, cost in zip(reserved, told.costs, strict=True)])
    return Left(unknown, told.reward is not None or None in unknown)


def largest_costs(ledger: Ledger) -> Units:
    """The largest cost of the arms in play, for each resource."""
    reserves = [ledger.arm_set.reserves[slot] for slot in ledger.arm_set.slots]
    return tuple(map(max, *reserves)) if len(reserves) > 1 else (reserves or [ledger.no_units])[0]


def target_of(member: "Worker", figures: Figures) -> Units:
    """The headroom that a worker would like to have.

    Two largest costs to begin with. A worker that spends draws ahead: twice what it has spent since the last exchange,
    so that it lasts to the next one and no kill strands more than that, and at most its share of the pool. Where rounds
    bring money of their own, what it draws ahead comes on top of that.
    """
    ledger, answer = member._ledger, member._answer
    headroom = figures.headroom(member._standing)
    used = protocol.plus(figures.spent, figures.reserved)
    wanted = []
    for d, (resource, largest) in enumerate(zip(ledger.config.resources, largest_costs(ledger), strict=True)):
        target = 2 * largest
        if answer is not None:
            share = answer.pool[d] // max(answer.workers, 1)
            ahead = 2 * max(used[d] - member._used[d], 0)
            if resource.budget > 0.0:
                target = max(target, headroom[d] + min(ahead, share // 2))
            else:
                target = max(target, min(ahead, max(headroom[d], 0) + share))
        wanted.append(min(target, resource.cap_units, MOST_AT_ONCE))
    member._used = used
    return tuple(wanted)


# What becomes of the answer.


def book_money(member: "Worker", units: Units) -> None:
    """Credit or debit units on the worker's line, exactly; the policy's rate does not follow."""
    ledger = member._ledger
    amounts = [currency.amount(units[d]) if units[d] else None for d, currency in enumerate(ledger.currencies)]
    for sign in (1, -1):
        some = [amount * sign if amount and amount * sign > 0 else None for amount in amounts]
        if any(some):
            given = {name: amount for name, amount in zip(ledger.config.names, some, strict=True) if amount}
            amount: Any = some[0] if ledger.is_unnamed else given
            (Bandit.credit if sign > 0 else Bandit.debit)(member, amount, rate=False)


def repay_pool(member: "Worker", figures: Figures) -> bool:
    """Give back this worker's share of what the pool owes, if it owes; whether the books have changed."""
    answer = member._answer
    if answer is None or min(answer.pool) >= 0:
        return False
    member._answer = answer._replace(pool=tuple([max(units, 0) for units in answer.pool]))  # once for each answer
    headroom = tuple([min(units, MOST_AT_ONCE) for units in figures.headroom(member._standing)])
    share = protocol.share_of_debt(answer, headroom)
    move_money(member, tuple([-units for units in share]), protocol.give_back(member._standing, share))
    return True


def hand_over(member: "Worker", keeps_debt: bool) -> None:
    """Take all headroom off the line, to be given back; a debt goes with it unless the worker keeps it."""
    while True:
        left = [member._ledger.headroom(d) for d in range(len(member._ledger.rolled))]
        some = [min(max(units, 0 if keeps_debt else -MOST_AT_ONCE), MOST_AT_ONCE) for units in left]
        if not any(some):
            return
        units = tuple(some)
        move_money(member, tuple([-each for each in units]), protocol.give_back(member._standing, units))


def move_money(member: "Worker", units: Units, standing: protocol.Standing) -> None:
    """Book money that comes from the store or goes back: all or nothing.

    With a journal a crash in between is found out. If booking fails otherwise, what was granted counts as taken, and
    what was to go back as not given: money may be lost then, and is not there twice.
    """
    if not any(units):
        member._standing = standing
        return
    with interrupts_held():
        member._keep_life(standing, Intent(units, member._booked()))
        if max(units) > 0:
            member._standing = standing
        book_money(member, units)
        member._standing = standing
        member._keep_life(standing)


def take_in(member: "Worker", answer: Answer) -> None:
    """Let everything happen that an answer brings."""
    with member._lock:
        standing, more = protocol.take(member._standing, answer)
        move_money(member, more, standing)
        member._answer = answer
        for change in answer.changes:
            take_change(member, change)
        learn(member, answer)
        set_pace(member, answer)
    for number, news in answer.news:
        hear(member, news)
        member._last_news = protocol.Heard(number, news.get("id"))


def take_change(member: "Worker", change: Mapping[str, Any]) -> None:
    """Let a change of the settings happen here; one that has happened before a crash is passed over."""
    if "add" not in change or change["add"]["arm"] not in member._ledger.arm_set.slot_by_name:
        apply_change(member, change, is_worker=True)
    member._changes.append(dict(change))
    member._keep_life(member._standing)


def learn(member: "Worker", answer: Answer) -> None:
    """Learn from the others, if they have learned something. In a journal it is an event like any other."""
    ledger = member._ledger
    if answer.others == member._others:
        return
    member._others = answer.others
    if member._journal is None:
        changes.learn_from_others(ledger, sums_from(ledger, answer.others))
    else:
        report = as_report(ledger, answer.others)
        member._book(Merge({OTHERS: report}, member._now()))


def as_report(ledger: Ledger, said: protocol.Sums) -> dict[str, Any]:
    """Sums in the form in which a journal has them."""
    config, sums = ledger.config, sums_from(ledger, said)
    reward, scales = config.max_reward, [resource.scale for resource in config.resources]
    report = {
        "resources": list(config.names),
        "scales": [reward, *scales],
        "arms": {
            name: {
                "pulls": round(float(sums.pulls[slot])),
                "reward": [float(sums.rewards[0, slot]) * reward, float(sums.rewards[1, slot]) * reward**2],
                "cost": [
                    [
                        float(value) * scale**power
                        for value, scale in zip(sums.costs[power - 1, slot], scales, strict=True)
                    ]
                    for power in (1, 2)
                ],
                **{thing: float(values[slot]) for thing, values in sums.own.items()},
            }
            for name, slot in ledger.arm_set.slot_by_name.items()
        },
    }
    checked: dict[str, Any] = requests.merge(ledger, {OTHERS: report}, 0).reports[OTHERS]
    return checked


def set_pace(member: "Worker", answer: Answer) -> None:
    """Tell the policy what money from the pool comes to per round of the fleet.

    It is what has come in so far, spread over the rounds so far, or over those that a start stock has to last. Where
    rounds bring money of their own, the policy goes by the budget and the headroom, as any bandit does.
    """
    ledger = member._ledger
    stocks, rates = ledger.config.in_order("start", member._origin["start"]), []
    for d, resource in enumerate(ledger.config.resources):
        rounds = max(answer.rounds, (stocks[d] and ledger.config.rounds) or 1)
        is_paced = resource.budget == 0.0 and not member._is_stale and answer.income[d] > 0
        rates.append(min(resource.currency.amount(answer.income[d]) / rounds, resource.scale) if is_paced else None)
    if tuple(rates) != member._pace:
        member._book(Pace(tuple(rates), member._now()))
        member._pace = tuple(rates)

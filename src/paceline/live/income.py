"""What comes in: by credits and by the clock, at rates that change, and for more rounds than a number can count."""

from typing import TYPE_CHECKING

from paceline.errors import InvalidValue
from paceline.kernels.budget import fold_income, overflow
from paceline.kernels.jit import plain_throughout
from paceline.live.arms import rate_from_stock
from paceline.live.config import Config
from paceline.live.events import Credit, Pace
from paceline.live.timetable import Count

if TYPE_CHECKING:
    from paceline.live.ledger import Ledger

MOST_COUNT = 2**63 - 2**33  # units, with room for the costs of a round
MOST_AT_A_RATE = 2**30  # rounds after which the books are rolled over
MOST_LOST = 2**61  # units that may be kept as lost above a cap when the books are rolled over
LEAST_PACE = 2.0**-500  # a pace of 0 would stand for no line at all

overflow_of, fold_units = plain_throughout(overflow), plain_throughout(fold_income)


def accrue(ledger: "Ledger", time: int) -> None:
    """Credit what the clock has brought, and renew the pace when it is time."""
    books, timed, every = ledger.arm_set.books, ledger.timed, range(len(ledger.rolled))
    stocks = [ledger.line(d) - int(books.spent[d]) for d in every]
    for d, units in enumerate(timed.income(time, stocks)):
        if units:
            add_income(ledger, d, units)
    timetable = timed.timetable
    if timetable is None or not timetable.is_due(time):
        return
    lines = [ledger.line(d) for d in every]
    came = [line + int(books.lost[d]) + ledger.rolled[d] + timed.missed[d] for d, line in enumerate(lines)]
    timetable.take(Count(ledger.rounds, tuple(came)), time)
    for d, pace in enumerate(timetable.paces(map(ledger.headroom, every), timed.caps) or ()):
        if books.pace[d] == 0.0:  # the line of the policy begins where the guard's is
            books.pace_line[d] = lines[d] * books.unit[d]
        books.pace[d] = max(pace * books.unit[d], LEAST_PACE)


def credit(ledger: "Ledger", event: Credit) -> None:
    """Income besides the budget of each round: at once, or in equal parts over the rounds to come.

    What is still held back of an earlier credit is spread anew together with this one.
    """
    for d, amount in enumerate(event.amounts):
        if amount is not None:
            currency = ledger.currencies[d]
            units = currency.income(amount) if amount > 0.0 else -currency.charge(-amount)
            add_income(ledger, d, units, event.over, event.rate)
    ledger.renew_stop()


def add_income(ledger: "Ledger", d: int, units: int, over: int = 0, rate: bool = True) -> None:
    """Credit units of one resource; what is above its cap is lost, and no income to the policy either."""
    arm_set = ledger.arm_set
    books = arm_set.books
    if over > 0:
        books.held[d] += units
        books.held_rounds[d] = max(over, int(books.held_rounds[d]))
        return
    books.credited[d] += units
    lost = overflow_of(books, ledger.no_units, d)
    books.lost[d] += lost
    books.unpaced[d] += min(lost, max(units, 0)) if rate else units
    if rate and books.credited[d] == books.unpaced[d]:  # as much has left as was credited
        arm_set.full.rate[d] = rate_from_stock(ledger.config, ledger.config.resources[d])


def pace(ledger: "Ledger", event: Pace) -> None:
    """Pace on a line of the policy's own, at a rate per round in the user's unit; it begins where the guard's is."""
    books = ledger.arm_set.books
    for d, (rate, scale) in enumerate(zip(event.rates, ledger.scales, strict=True)):
        if rate is None:
            books.pace[d] = 0.0
            continue
        if books.pace[d] == 0.0:
            books.pace_line[d] = ledger.line(d) * books.unit[d]
        books.pace[d] = max(rate / scale, LEAST_PACE)


def change_income(ledger: "Ledger", config: Config) -> None:
    """Other budgets: what came in so far is kept, and from now on it is more or less."""
    books, state = ledger.arm_set.books, ledger.arm_set.full
    fold_units(books, ledger.arm_set.playing.resources)
    for d, resource in enumerate(config.resources):
        books.rate[d], books.rate_part[d] = resource.currency.income_per_round(resource.budget)
        if resource.budget > 0.0:
            state.rate[d] = resource.budget / resource.scale
            books.tally.rounds = 0
    ledger.currencies = [resource.currency for resource in config.resources]


def forget_pace(ledger: "Ledger") -> None:
    """The policy goes by the guard's line again, at the rate it began with; credits come in with the next round."""
    ledger.arm_set.books.pace[:] = 0.0
    ledger.arm_set.full.rate[:] = [rate_from_stock(ledger.config, resource) for resource in ledger.config.resources]


def roll_over(ledger: "Ledger") -> None:
    """Take what was spent so far out of the numbers of the guard: the headroom stays as it is, and so do rates.

    What was lost above a cap goes, too, once it is so much that it must.
    """
    books = ledger.arm_set.books
    fold_units(books, ledger.arm_set.playing.resources)
    for d in range(len(ledger.rolled)):
        spent, folded = int(books.spent[d]), int(books.folded[d])
        lost = int(books.lost[d]) if books.lost[d] > MOST_LOST else 0
        books.credited[d] += folded - spent - lost
        books.unpaced[d] += folded - spent - lost
        books.spent[d] = books.folded[d] = 0
        books.lost[d] -= lost
        books.pace_line[d] -= spent * books.unit[d]
        ledger.rolled[d] += spent
        ledger.timed.missed[d] += lost
    if last_countable_round(ledger) <= ledger.rounds:
        raise InvalidValue(f"rounds must stay at or below {ledger.rounds} with that much in stock, got one more")


def most_overrun(ledger: "Ledger", d: int) -> float:
    """The largest cost that can be booked in spite of the line: what is spent and what is owed must fit 64 bits."""
    books = ledger.arm_set.books
    committed = int(books.spent[d]) + int(books.reserved[d])
    room = MOST_COUNT - max(committed, -ledger.headroom(d))
    return ledger.currencies[d].amount(max(room, 0))


def last_countable_round(ledger: "Ledger") -> int:
    """The last round whose lines can be counted in 64 bits, with all that was credited or may come back."""
    books = ledger.arm_set.books
    since = int(books.tally.since)
    last = since + MOST_AT_A_RATE
    for d, resource in enumerate(ledger.config.resources):
        so_far = int(books.start[d]) + int(books.folded[d]) + int(books.credited[d]) + int(books.held[d])
        per_round = int(books.rate[d]) + 1 + resource.currency.charge(resource.max_refill)
        if resource.hourly > 0.0:  # what comes by the clock fills the stock up to the cap at most, again and again
            so_far = max(so_far, int(books.spent[d]) + int(books.lost[d]) + ledger.timed.caps[d])
            per_round += resource.currency.charge(resource.scale)
        last = min(last, since + (MOST_COUNT - so_far) // per_round)
    return last

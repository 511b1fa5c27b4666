"""May a pull be paid for now? The guard: the one place that counts what is spent, outside every policy.

The promise: after every round t, what was spent of each resource is at most its line, on every path. The line is
start + c * t  and what was credited besides. A pull is allowed in round t only when the headroom  h(t) = line - spent
so far  covers the largest possible cost of the arm, for every resource (1 unless a smaller one is known). By induction
the promise holds whatever the policy asks for and whatever the pull turns out to cost.

A live program may learn late what a pull has cost. Until then its largest cost stays reserved, and counts as spent in
the headroom: no order of late news can overdraw. A pull that refills a resource counts when it is told, not before.
Pacing on that headroom would swing, for it answers to a decision only when the news comes; policies are shown an
outlook as well (outlook.py), and the guard never looks at it.

A resource may have a cap, as a battery has: what would come in above it is lost, and the line is the smaller one.

**Rounding.** Amounts are counted in whole units of 2**-32. A cost is rounded up to a unit, the line c * t down, and
sums of integers are exact, so what holds for the counts holds for the true real numbers:

    true sum of costs  <=  units spent * 2**-32  <=  units of the line * 2**-32  <=  true line.

Rounding to a float is monotone, so comparing the reported floats cannot show an overspend either. The price is at most
2**-32 per pull, and where there are several resources per round in which one of them is at its cap: under 0.0006 in 2.5
million rounds. A budget rate is held to 63 binary places, exactly for c >= 2**-10. Counts stay below 2**63 for fewer
than 2**31 rounds, the most that a simulation accepts. (A live program with amounts in its own currency chooses a unit
that is a power of two in that currency, so that there, too, nothing is rounded the wrong way.)
"""

import math
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from paceline.kernels.jit import kernel

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

UNIT_BITS = 32
UNITS = 1 << UNIT_BITS
PART_BITS = 31
UNLIMITED = 2**63 - 1  # a cap that no count reaches
FINE = 1 << 16  # units of income a round of which less than a unit is next to nothing

# Counts of the engine that do not belong to one resource.
TALLY = np.dtype(
    (
        np.record,
        [
            ("rounds", np.int64),  # not t: numba takes a record that begins like a clock for one
            ("t", np.int64),
            ("since", np.int64),
            ("seed", np.uint64),
            ("stream", np.uint64),
            ("earned", np.float64),
            ("skips", np.int64),
            ("idle", np.int64),
            ("fault", np.int64),
            ("faulty", np.int64),
            ("arm", np.int64),
            ("reason", np.int64),
            ("tag", np.int64),
            ("told", np.int64),
        ],
    )
)


class Tally(Protocol):
    """The fields of `TALLY`."""

    t: int  # the current round, from 1
    since: int  # the last round before the present rates came into force
    seed: int  # the key of the world's random numbers, with
    stream: int
    rounds: int  # over which a start stock without income is to last; 0 if there is none such
    earned: float  # sum of rewards
    skips: int  # rounds without a pull in which the policy did not want the null arm
    idle: int  # all rounds without a pull
    fault: int  # what a policy did that it must not do, and
    faulty: int  # the number with which it did it
    arm: int  # this and the next two: the last decision of a live bandit, and
    reason: int
    tag: int
    told: int  # how many outcomes it was told; both for a call that was cut short before Python has heard of it


class Books(NamedTuple):
    """What only the engine may change. Arrays of units have one entry per resource; no policy is ever handed them."""

    tally: Any  # a record, see `Tally`
    start: Ints  # the stock before the first round
    rate: Ints  # whole units of income per round, and
    rate_part: Ints  # the rest in 2**-31 units
    folded: Ints  # income at the rates that were in force before
    credited: Ints  # income besides
    unpaced: Ints  # the part of it that is none of the policy's rate, or was lost at a cap
    held: Ints  # income that is still to be credited, in equal parts over
    held_rounds: Ints  # so many rounds
    cap: Ints  # the most that can be in stock
    lost: Ints  # what came in above the cap
    reserved: Ints  # largest costs of the pulls whose true cost is not known yet
    spent: Ints
    lowest: Ints  # the smallest  line - spent  at the end of any round so far
    headroom: Ints  # line - spent - reserved, as of the beginning of the round
    least: Ints  # the smallest of the arms' largest costs: with less nothing can be pulled
    unit: Floats  # a unit on the scale on which costs are at most 1
    cost: Floats  # of the pull that is being settled, on that scale
    peak: Floats  # for the outlook (outlook.py): the most that was expected back of pulls on their way, fading, and
    depth: Floats  # how many such pulls there were
    pace: Floats  # what a policy that paces on a line of its own may spend per round; 0 without such a line, which is
    pace_line: Floats  # what it may have spent by now
    unpaid: Floats  # (K, D): pulls whose cost is not known yet
    largest: Ints  # (K, D): the largest possible cost of each arm
    pulls: Ints  # (K,): pulls whose outcome is known; the n-th pull of an arm is the n-th draw of the world


@kernel
def line_units(books: Books, d: int) -> int:
    """The line of resource d in this round, rounded down to a unit."""
    t = books.tally.t - books.tally.since
    income = books.rate[d] * t + ((books.rate_part[d] * t) >> PART_BITS)
    return int(books.start[d] + books.folded[d] + books.credited[d] - books.lost[d] + income)


@kernel
def fold_income(books: Books, resources: Any) -> None:
    """Let the rates that are in force begin anew: what came in at them so far becomes a number of its own.

    The line stays where it is. (A part of a unit that was not counted yet is lost.)
    """
    tally = books.tally
    for d in range(len(resources)):
        t = tally.t - tally.since
        books.folded[d] += books.rate[d] * t + ((books.rate_part[d] * t) >> PART_BITS)
    tally.since = tally.t


@kernel
def average_rate(books: Books, d: int) -> float:
    """What comes in of a resource per round: the present rate, and what was credited so far per round.

    The start stock is none of it, as without credits, but where nothing comes in: there it is spread over the rounds
    that it has to last. Nor is it less by what is lost at a cap. So a small credit changes the rate by little.
    """
    tally = books.tally
    rate = books.rate[d] + books.rate_part[d] / (1 << PART_BITS)
    if rate == 0.0 and tally.rounds > 0:
        rate = books.start[d] / max(tally.rounds, tally.t)
    return float((rate + (books.credited[d] - books.unpaced[d]) / tally.t) * books.unit[d])


@kernel
def paced_headroom(books: Books, d: int, headroom: float) -> float:
    """The headroom on the line that the policy paces on: it moves by ``pace`` a round and is never above the guard's.

    What comes in while rounds are few is kept on the guard's line for the time in which they are many.
    """
    used = (books.spent[d] + books.reserved[d]) * books.unit[d]
    books.pace_line[d] = min(books.pace_line[d] + books.pace[d], used + headroom)
    return float(books.pace_line[d] - used)


@kernel
def forgets_little(books: Books, resources: Any, d: int) -> bool:
    """Whether no resource but d would lose more than a tiny share of a round's income if rates began anew."""
    for other in range(len(resources)):
        if other != d and books.rate_part[other] > 0 and books.rate[other] < FINE:
            return False
    return True


@kernel
def overflow(books: Books, resources: Any, d: int) -> int:
    """The units above the cap, which are lost.

    Where the true line is not a whole number of units, what was rounded off it is lost, too, and must not come back
    with the next round's income. So the rates begin anew, by which it is forgotten, and the stock is the cap. A unit
    less would not pay for a largest cost that is as large, nor cover all that may be reserved. Other resources lose
    less than a unit by it. Where that would be much to one of them, one unit of this resource is lost instead, unless
    all of the stock is reserved.
    """
    stock = line_units(books, d) - books.spent[d]
    if stock < books.cap[d]:  # compared, not subtracted: after an overrun the difference may not fit 64 bits
        return 0
    over = stock - books.cap[d]
    rounded_off = (books.rate_part[d] * (books.tally.t - books.tally.since)) & ((1 << PART_BITS) - 1)
    if rounded_off > 0:
        if books.reserved[d] < books.cap[d] and not forgets_little(books, resources, d):
            return int(over + 1)
        fold_income(books, resources)
    return int(over)


@kernel
def open_round(books: Books, resources: Any, rate: Floats, headroom: Floats, planned: Floats) -> bool:
    """Begin the next round: its income arrives. Says whether some pull might be paid for whatever it costs.

    What a policy may know of it is copied to ``rate``, ``headroom`` and ``planned`` (see `state.State`).
    """
    tally = books.tally
    tally.t += 1
    payable = True
    for d in range(len(resources)):
        part = 0
        if books.held_rounds[d] > 0:
            part = books.held[d] // books.held_rounds[d]
            books.credited[d] += part
            books.held[d] -= part
            books.held_rounds[d] -= 1
        line, spent = line_units(books, d), books.spent[d]
        if line - spent >= books.cap[d]:
            over = overflow(books, resources, d)
            books.lost[d] += over
            books.unpaced[d] += min(over, part)
            line -= over
        if books.credited[d] != books.unpaced[d] or part > 0 or (books.rate[d] == 0 and tally.t > tally.rounds > 0):
            rate[d] = min(max(average_rate(books, d), 0.0), 1.0)  # below 0 when more has left than came in
        left = line - spent - books.reserved[d]
        books.headroom[d] = left
        headroom[d] = left * books.unit[d]
        if books.pace[d] > 0.0:
            rate[d] = min(books.pace[d], 1.0)
            headroom[d] = paced_headroom(books, d, headroom[d])
        payable = payable and left >= books.least[d]
        if tally.rounds > 0 and books.rate[d] == 0:
            planned[d] = books.start[d] * books.unit[d] * max(1.0 - tally.t / tally.rounds, 0.0)
    return payable


@kernel
def can_pay(books: Books, resources: Any, arm: int) -> bool:
    """Whether a pull of this arm can be paid for whatever it costs, in every resource."""
    for d in range(len(resources)):
        if books.headroom[d] < books.largest[arm, d]:
            return False
    return True


@kernel
def admits(books: Books, resources: Any, arm: int) -> bool:
    """The same, and whether the round admits any pull at all, which `open_round` has said to who asks first."""
    for d in range(len(resources)):
        if books.headroom[d] < books.least[d]:
            return False
    return can_pay(books, resources, arm)


@kernel
def reserve(books: Books, resources: Any, arm: int) -> None:
    """Set the largest costs of a pull aside."""
    for d in range(len(resources)):
        books.reserved[d] += books.largest[arm, d]
        if books.largest[arm, d] > 0:
            books.unpaid[arm, d] += 1.0


@kernel
def units_for(cost: float) -> int:
    """A cost of at most 1 in units, rounded up; of a refill, which is below 0, less counts, not more."""
    return math.ceil(cost * UNITS)


@kernel
def settle(books: Books, resources: Any, arm: int) -> None:
    """Release the reservation of a pull and charge the costs that are in ``books.cost``."""
    for d in range(len(resources)):
        settle_one(books, resources, arm, d, books.largest[arm, d], units_for(books.cost[d]))


@kernel
def charge(books: Books, resources: Any) -> None:
    """Charge the costs in ``books.cost`` of a pull for which nothing was set aside: they are known at once."""
    for d in range(len(resources)):
        move(books, resources, d, 0, units_for(books.cost[d]))


@kernel
def settle_one(books: Books, resources: Any, arm: int, d: int, released: int, charged: int) -> None:
    """Release and charge units of one resource for a pull; what was set aside is released in one piece."""
    if released > 0:
        books.unpaid[arm, d] -= 1.0
    move(books, resources, d, released, charged)


@kernel
def move(books: Books, resources: Any, d: int, released: int, charged: int) -> None:
    """Release and charge units of one resource."""
    books.reserved[d] -= released
    books.spent[d] += charged
    if charged < 0:  # a refill may run over
        books.lost[d] += overflow(books, resources, d)


@kernel
def close_round(books: Books, resources: Any) -> None:
    """Note the headroom left at the end of a round: the record that proves the promise."""
    for d in range(len(resources)):
        books.lowest[d] = min(books.lowest[d], line_units(books, d) - books.spent[d])


def split_rate(rate: float) -> tuple[int, int]:
    """A budget rate in whole units and 2**-31 units, rounded down.

    >>> split_rate(0.5)
    (2147483648, 0)
    """
    scaled = rate * UNITS
    return math.floor(scaled), math.floor((scaled - math.floor(scaled)) * (1 << PART_BITS))

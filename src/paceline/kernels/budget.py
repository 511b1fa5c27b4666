"""May a pull be paid for now? The one place that knows money, outside every policy.

The promise: after every round t the costs so far are at most the line  c * t,  on every path. A pull is allowed in
round t only when the headroom  h(t) = c * t - S_c(t - 1)  covers the largest possible cost of the arm, which is 1
unless a smaller one is known. By induction the promise holds whatever the policy asks for and whatever the pull turns
out to cost.

A live program may learn late what a pull has cost. Until then its largest cost stays reserved, and counts as spent in
the headroom: no order of late news can overdraw. Its income may also come by other ways than one rate per round; what
is credited lifts the line, and the promise reads the same: spent + reserved <= credited.

**Rounding.** Money is counted in whole units of 2**-32. A cost is rounded up to a unit, the line c * t down, and sums
of integers are exact, so what holds for the counts holds for the true real numbers:

    true cost sum  <=  units spent * 2**-32  <=  units of the line * 2**-32  <=  true c * t.

Rounding to a float is monotone, so comparing the reported floats cannot show an overspend either. The price is at most
2**-32 per pull: under 0.0006 in 2.5 million rounds. A budget rate is held to 63 binary places, exactly for c >= 2**-10.
Counts stay below 2**63 for fewer than 2**31 rounds, the most that a simulation accepts. (A live program with amounts
in its own currency chooses a unit that is a power of two in that currency, so that there, too, nothing is rounded the
wrong way.)
"""

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from paceline.kernels.jit import kernel

UNIT_BITS = 32
UNITS = 1 << UNIT_BITS
PART_BITS = 31

# The scalars that every policy can see and only the engine may change.
CLOCK = np.dtype(
    (
        np.record,
        [
            ("t", np.int64),
            ("budget", np.float64),
            ("headroom", np.float64),
            ("headroom_units", np.int64),
            ("least_units", np.int64),
            ("unit", np.float64),
            ("rate_units", np.int64),
            ("rate_part", np.int64),
            ("credited_units", np.int64),
            ("held_units", np.int64),
            ("held_rounds", np.int64),
            ("reserved_units", np.int64),
            ("spent_units", np.int64),
            ("lowest_units", np.int64),
            ("earned", np.float64),
            ("skips", np.int64),
            ("idle", np.int64),
            ("seed", np.uint64),
            ("stream", np.uint64),
        ],
    )
)


class Clock(Protocol):
    """The fields of `CLOCK`."""

    t: int  # the current round, from 1
    budget: float  # c; with credits, the income per round so far
    headroom: float  # h(t) = c t - S_c(t - 1) less what is reserved, on the scale on which costs are at most 1
    headroom_units: int  # the same in whole units
    least_units: int  # the smallest of the arms' largest costs: with less nothing can be pulled
    unit: float  # a unit on the scale of the headroom
    rate_units: int  # whole units of income per round, and
    rate_part: int  # the rest in 2**-31 units
    credited_units: int  # income besides
    held_units: int  # income that is still to be credited, in equal parts over
    held_rounds: int  # so many rounds
    reserved_units: int  # largest costs of the pulls whose true cost is not known yet
    spent_units: int  # S_c
    lowest_units: int  # the smallest c t - S_c(t) of all rounds so far
    earned: float  # sum of rewards
    skips: int  # rounds skipped by a skip rule
    idle: int  # rounds without a pull: skips and null arms that a policy chose
    seed: int
    stream: int


def new_clock(budget: float, seed: int, stream: int) -> Clock:
    """The clock before the first round."""
    clock: Clock = np.zeros(1, CLOCK)[0]
    clock.budget = budget
    clock.unit = 1.0 / UNITS
    clock.least_units = UNITS
    scaled = budget * UNITS
    clock.rate_units = math.floor(scaled)
    clock.rate_part = math.floor((scaled - math.floor(scaled)) * (1 << PART_BITS))
    clock.lowest_units = np.iinfo(np.int64).max
    clock.seed = seed
    clock.stream = stream
    return clock


class Limits(NamedTuple):
    """The largest possible cost of each arm, in units and on the scale of the headroom."""

    units: npt.NDArray[np.int64]
    costs: npt.NDArray[np.float64]


def new_limits(largest: Sequence[float]) -> Limits:
    """From largest costs in (0, 1]."""
    return Limits(np.array([math.ceil(cost * UNITS) for cost in largest], np.int64), np.array(largest, np.float64))


@kernel
def line_units(clock: Clock) -> int:
    """The line, C * t and what was credited besides, rounded down to a unit."""
    return clock.credited_units + clock.rate_units * clock.t + ((clock.rate_part * clock.t) >> PART_BITS)


@kernel
def open_round(clock: Clock) -> bool:
    """Begin the next round: its budget arrives. Says whether a pull could be paid for whatever it costs."""
    clock.t += 1
    if clock.held_rounds > 0:
        part = clock.held_units // clock.held_rounds
        clock.credited_units += part
        clock.held_units -= part
        clock.held_rounds -= 1
    line = line_units(clock)
    if clock.credited_units > 0:
        clock.budget = min(line * clock.unit / clock.t, 1.0)
    clock.headroom_units = line - clock.spent_units - clock.reserved_units
    clock.headroom = clock.headroom_units * clock.unit
    return clock.headroom_units >= clock.least_units


@kernel
def covers(clock: Clock, limits: Limits, arm: int) -> bool:
    """Whether a pull of this arm can be paid for whatever it costs."""
    return bool(clock.headroom_units >= limits.units[arm])


@kernel
def reserve(clock: Clock, limits: Limits, arm: int) -> None:
    """Set the largest cost of a pull aside."""
    clock.reserved_units += limits.units[arm]


@kernel
def units_for(cost: float) -> int:
    """A cost in [0, 1] in units, rounded up."""
    return math.ceil(cost * UNITS)


@kernel
def settle(clock: Clock, released: int, charged: int) -> None:
    """Release a reservation and charge what the pull has cost, both in units."""
    clock.reserved_units -= released
    clock.spent_units += charged


@kernel
def close_round(clock: Clock) -> None:
    """Note the headroom left at the end of a round: the record that proves the promise."""
    clock.lowest_units = min(clock.lowest_units, line_units(clock) - clock.spent_units)


def spent(clock: Clock) -> float:
    """Money spent so far."""
    return float(clock.spent_units) / UNITS


def lowest_headroom(clock: Clock) -> float:
    """The smallest  c t - S_c(t)  over all rounds so far; never below 0."""
    return float(clock.lowest_units) / UNITS

"""May a pull be paid for now? The one place that knows money, outside every policy.

The promise: after every round t the costs so far are at most  c * t,  on every path. A pull is allowed in round t only
when the headroom  h(t) = c * t - S_c(t - 1)  covers the largest possible cost, 1. By induction the promise holds
whatever the policy asks for and whatever the pull turns out to cost.

**Rounding.** Money is counted in whole units of 2**-32. A cost is rounded up to a unit, the line c * t down, and sums
of integers are exact, so what holds for the counts holds for the true real numbers:

    true cost sum  <=  units spent * 2**-32  <=  units of the line * 2**-32  <=  true c * t.

Rounding to a float is monotone, so comparing the reported floats cannot show an overspend either. The price is at most
2**-32 per pull: under 0.0006 in 2.5 million rounds. A budget rate is held to 63 binary places, exactly for c >= 2**-10.
Counts stay below 2**63 for fewer than 2**31 rounds, the most that a simulation accepts.
"""

import math
from typing import Protocol

import numpy as np

from paceline.jit import kernel

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
            ("rate_units", np.int64),
            ("rate_part", np.int64),
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
    budget: float  # c
    headroom: float  # h(t) = c t - S_c(t - 1), in units of the largest cost
    rate_units: int  # whole units of c, and
    rate_part: int  # the rest in 2**-31 units
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
    scaled = budget * UNITS
    clock.rate_units = math.floor(scaled)
    clock.rate_part = math.floor((scaled - math.floor(scaled)) * (1 << PART_BITS))
    clock.lowest_units = np.iinfo(np.int64).max
    clock.seed = seed
    clock.stream = stream
    return clock


@kernel
def line_units(clock: Clock) -> int:
    """C * t, rounded down to a unit."""
    return clock.rate_units * clock.t + ((clock.rate_part * clock.t) >> PART_BITS)


@kernel
def open_round(clock: Clock) -> bool:
    """Begin the next round: its budget arrives. Says whether a pull could be paid for whatever it costs."""
    clock.t += 1
    headroom = line_units(clock) - clock.spent_units
    clock.headroom = headroom / UNITS
    return headroom >= UNITS


@kernel
def pay(clock: Clock, cost: float) -> None:
    """Charge a cost in [0, 1]."""
    clock.spent_units += math.ceil(cost * UNITS)


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

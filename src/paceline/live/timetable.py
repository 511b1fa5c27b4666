"""The pace of a policy by the period: what comes in at night lasts into the evening.

Rounds and income come unevenly: few rounds at night, no sunlight in the eclipse. A policy that takes all headroom as
leave to spend has spent by noon what came in during the night. With a period (a day, an orbit) the policy paces on a
line of its own beside the guard's (`budget.paced_headroom`).

**The plan.** The period is cut into bins, and the rounds and the income of each bin of the last period are kept. The
next period is taken to be like the last one. With the stock h that is there now, and R_k rounds and I_k income expected
in the next k bins, spending s per round is possible until bin k, and nothing runs over the cap C there, if

    (h + I_k - C) / R_k  <=  s  <=  (h + I_k) / R_k.

Rewards are concave in what is spent per round, so the best plan changes its pace as rarely as it can: it is the
shortest way between the two lines, a taut string (K. Tutuncuoglu and A. Yener, "Optimum transmission policies for
battery limited energy harvesting nodes", 2012). The pace is its first slope: walk through the bins with the smallest
upper and the largest lower bound so far; where they cross, the one that was there before is the pace. Without a cap in
the way it is the smallest of the  (h + I_k) / R_k.  The plan is made anew with every bin, so that what was spent or
came in otherwise than expected is spread over what is left. Stock that nothing ever needs is spent within a period.

Until the first period is over the policy goes by the guard's line. A silence of a whole period or more teaches nothing.
The guard knows nothing of all this.
"""

import math
from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple

from paceline.live.pulls import Units

BINS = 96  # of a period: a quarter of an hour, if it is a day


class Count(NamedTuple):
    """How many rounds there were, and units of each resource that came in, also those above the cap."""

    rounds: int
    income: Units


class Timetable:
    """What came in each bin of the last period."""

    def __init__(self, period: float) -> None:
        self.length = max(round(period * 1000 / BINS), 1)  # of a bin, in milliseconds
        self.bin_ends: int | None = None
        self.counted: Count | None = None  # in all, when the present bin began
        self.bins: deque[Count] = deque(maxlen=BINS)  # the oldest first: the next bin will be like that

    def is_due(self, time: int) -> bool:
        """Whether a bin is over."""
        return self.bin_ends is None or time >= self.bin_ends

    def take(self, count: Count, time: int) -> None:
        """A bin is over, or several in which nobody asked; ``count`` is of all that came so far."""
        if self.counted is None or self.bin_ends is None:
            self.counted, self.bin_ends = count, time + self.length
            return
        over = (time - self.bin_ends) // self.length + 1
        self.bin_ends += over * self.length
        rounds = count.rounds - self.counted.rounds
        income = tuple([(now - before) // over for now, before in zip(count.income, self.counted.income, strict=True)])
        self.counted = count
        self.bins.append(Count(rounds, income))
        if over > BINS:  # a whole period of silence
            self.bins.rotate(1 - over)
        else:
            self.bins.extend([Count(0, income)] * (over - 1))

    def paces(self, stocks: Iterable[int], caps: Iterable[int]) -> tuple[float, ...] | None:
        """Units of each resource per round; None until a period is over."""
        if len(self.bins) < BINS or not any(each.rounds for each in self.bins):
            return None
        return tuple([self.pace(d, stock, cap) for d, (stock, cap) in enumerate(zip(stocks, caps, strict=True))])

    def pace(self, d: int, stock: int, cap: int) -> float:
        """The first slope of the taut string, for one resource."""
        least, most, rounds = 0.0, math.inf, 0
        for each in self.bins:
            rounds += each.rounds
            stock += each.income[d]
            if rounds == 0:
                stock = min(stock, cap)  # nobody is there to spend what runs over
                continue
            upper, lower = stock / rounds, (stock - cap) / rounds
            if lower > most or upper < least:
                break
            least, most = max(least, lower), min(most, upper)
        else:
            return most
        return most if lower > most else least

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"bin_ends": self.bin_ends, "counted": self.counted, "bins": list(self.bins)}

    def restore(self, saved: dict[str, Any]) -> None:
        """The way back from `to_dict`."""
        self.bin_ends = saved["bin_ends"]
        self.counted = None if saved["counted"] is None else as_count(saved["counted"])
        self.bins.extend(map(as_count, saved["bins"]))


def as_count(saved: list[Any]) -> Count:
    """A count as JSON gives it back."""
    rounds, income = saved
    return Count(rounds, tuple(income))

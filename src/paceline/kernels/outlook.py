"""The headroom to pace on while costs are on their way.

The guard counts the largest cost of a pull as spent until its cost is known. That headroom h answers to a decision only
when the news comes: a policy that pulls an expensive arm whenever h is above a line swings, with the delay as its dead
time, hits the guard, and sits out a fixed share of all rounds, for ever. What can be expected answers at once:

    e = h + E,     E = sum over the pulls on their way of (largest cost - mean cost of the arm so far),

a Smith predictor (O. J. M. Smith, "Closer control of loops with dead time", 1957). But h itself must stay high enough
for the guard, also when E is at its peak P. So policies pace on

    outlook = e - P - sqrt(2 V log t),     V the variance of the costs on their way,

and the guard goes on with h. P fades with a time constant of half the rounds so far, so that the rounds that an extreme
E costs get rarer like 1 / t and their number does not grow with the rounds played; but of no less than several delays
(the pulls on their way are about the delay in rounds, by Little's law). Where a stock has a cap, no more than a quarter
of it is kept back: more would run over. With nothing on its way the outlook is the headroom, to the bit.
"""

import math

from paceline.kernels.budget import Books
from paceline.kernels.estimates import Estimates, cost_variance, known_costs
from paceline.kernels.jit import kernel
from paceline.kernels.state import Floats, State

DELAYS = 8.0  # and
SHARE = 0.5  # of the rounds so far: how long a peak is remembered
NOTHING = 0.5  # pulls on their way: what has faded below is gone
MOST_OF_CAP = 0.25


@kernel
def look_ahead(books: Books, state: State) -> None:
    """Write the outlook of a round that has begun."""
    for d in range(len(state.resources)):
        state.outlook[d] = state.headroom[d]
        if books.reserved[d] > 0 or books.depth[d] > 0.0:
            state.outlook[d] += expected_back(books, state.arms, state.largest, d, state.cap[d], state.clock.t)


@kernel
def expected_back(books: Books, arms: Estimates, largest: Floats, d: int, cap: float, t: int) -> float:
    """What is added to the headroom of a resource:  E - P - sqrt(2 V log t).  An arm of which nothing is known may cost
    its largest cost.
    """
    back, spread, count = 0.0, 0.0, 0.0
    for i in range(arms.pulls.size):
        on_way = books.unpaid[i, d]
        if on_way > 0.0:
            count += on_way
            if known_costs(arms, i, d).number > 0:
                back += on_way * max(largest[i, d] - arms.cost_mean[i, d], 0.0)
                spread += on_way * cost_variance(arms, i, d)
    kept = 1.0 - 1.0 / max(DELAYS * (books.depth[d] + 1.0), SHARE * t)
    books.depth[d] = max(count, kept * books.depth[d])
    books.peak[d] = max(back, kept * books.peak[d])
    if books.depth[d] < NOTHING:
        books.depth[d] = books.peak[d] = 0.0
    return float(back - min(books.peak[d] + math.sqrt(2.0 * spread * math.log(t + 1.0)), MOST_OF_CAP * cap))

"""Outcomes on their way: what a pull has brought, until the news of it arrives.

The cost of a pull and its reward may be late, each by a number of rounds of its own. A delay of 0 is news at the end of
the round of the pull, before the next decision. News of the same round arrives in the order of the pulls.

Since one pull a round is the most, a pull of round t has the slot  t mod W,  where W is longer than the longest delay.
The calendar is a ring of W rounds with a list of news for each. Nothing grows with the rounds played.

What has really been earned and spent is counted here, in the round of the pull: the books of the guard only know of it
later, and are never shown this.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paceline.kernels.budget import Books, line_units, units_for
from paceline.kernels.jit import kernel
from paceline.kernels.random import DELAY, block, uniform

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

COST, REWARD = 0, 1  # what news is about; two entries of the calendar for each slot
NONE = -1


class Late(NamedTuple):
    """Delays, the calendar, and the truth."""

    cost_delays: Ints  # one of these is drawn, each as likely; empty if delays are geometric or come in batches
    reward_delays: Ints
    log_stays: Floats  # (2,) of costs and rewards: log of the probability that news is a round later still
    batches: Ints  # (2,) news comes at the end of every so many rounds; 0 if not
    together: Ints  # (1,) whether cost and reward arrive with the same news
    first: Ints  # (W,) and so on: the entries that arrive in a round, as a list
    last: Ints
    following: Ints  # (2 W,)
    missing: Ints  # (W,) what of the pull in a slot is not known yet: a bit for the cost, one for the reward
    decisions: Ints  # (W, 3) arm, reason and tag
    rewards: Floats  # (W,)
    costs: Floats  # (W, D)
    begun: Ints  # (K,) the truth: pulls
    spent: Ints  # (D,) units
    lowest: Ints  # (D,) the smallest  line - spent  at the end of any round so far
    earned: Floats  # (1,)


@kernel
def drawn_delay(delays: Ints, log_stay: float, batch: int, t: int, u: float) -> int:
    """The delay of a pull in round t, by a uniform number: one of a list, geometric, or until the batch is full."""
    if delays.size > 0:
        return int(delays[int(u * delays.size)])
    if batch > 0:
        return int(-t % batch)
    return int(math.log(u) / log_stay)


@kernel
def post_entry(late: Late, entry: int, due: int) -> None:
    """Put an entry at the end of the list of the round in which it arrives."""
    place = due % late.first.size
    late.following[entry] = NONE
    if late.first[place] == NONE:
        late.first[place] = entry
    else:
        late.following[late.last[place]] = entry
    late.last[place] = entry


@kernel
def post(late: Late, tally: Any, arm: int, reason: int, tag: int, reward: float, cost: Floats) -> None:
    """A pull of this round has brought that; count it, and let the news of it be on its way.

    The delays hang on the round alone, so that they are the same for every policy.
    """
    t = tally.t
    slot = t % late.first.size
    late.decisions[slot, 0], late.decisions[slot, 1], late.decisions[slot, 2] = arm, reason, tag
    late.rewards[slot] = reward
    late.begun[arm] += 1
    late.earned[0] += reward
    for d in range(late.spent.size):
        late.costs[slot, d] = cost[d]
        late.spent[d] += units_for(cost[d])
    first, second, _, _ = block(tally.seed, tally.stream, np.uint64(t), np.uint64(0), DELAY, np.uint64(0))
    cost_delay = drawn_delay(late.cost_delays, late.log_stays[COST], late.batches[COST], t, uniform(first))
    late.missing[slot] = (1 << COST) | (1 << REWARD)
    post_entry(late, 2 * slot + COST, t + cost_delay)
    if late.together[0] == 0:
        u, batch = uniform(second), late.batches[REWARD]
        reward_delay = drawn_delay(late.reward_delays, late.log_stays[REWARD], batch, t, u)
        post_entry(late, 2 * slot + REWARD, t + reward_delay)


@kernel
def next_news(late: Late, t: int) -> int:
    """The next entry that arrives at the end of round t, taken off the calendar; `NONE` if there is no more.

    What it says is no longer missing; with the last news of a pull nothing is.
    """
    place = t % late.first.size
    entry = late.first[place]
    if entry != NONE:
        late.first[place] = late.following[entry]
        known = 3 if late.together[0] else 1 << (entry & 1)
        late.missing[entry >> 1] &= ~known
    return int(entry)


@kernel
def known_ahead(late: Late, is_cost: bool, resources: Any) -> int:
    """What was known of a pull before its last news, which is of its costs or of its reward: see `observe_rest`."""
    if late.together[0]:
        return 0
    return 1 if is_cost else (2 << len(resources)) - 2


@kernel
def close_truth(late: Late, books: Books) -> None:
    """Note the headroom that is really left at the end of a round."""
    for d in range(late.spent.size):
        late.lowest[d] = min(late.lowest[d], line_units(books, d) - late.spent[d])


class Rule(NamedTuple):
    """How late news of one kind is: the numbers behind `drawn_delay`."""

    delays: tuple[int, ...]
    log_stay: float
    batch: int


def new_late(cost: Rule, reward: Rule, together: bool, longest: int, arms: int, resources: int) -> Late:
    """An empty calendar."""
    width = longest + 1
    return Late(
        cost_delays=np.array(cost.delays, np.int64),
        reward_delays=np.array(reward.delays, np.int64),
        log_stays=np.array([cost.log_stay, reward.log_stay]),
        batches=np.array([cost.batch, reward.batch], np.int64),
        together=np.array([together], np.int64),
        first=np.full(width, NONE, np.int64),
        last=np.full(width, NONE, np.int64),
        following=np.full(2 * width, NONE, np.int64),
        missing=np.zeros(width, np.int64),
        decisions=np.zeros((width, 3), np.int64),
        rewards=np.zeros(width),
        costs=np.zeros((width, resources)),
        begun=np.zeros(arms, np.int64),
        spent=np.zeros(resources, np.int64),
        lowest=np.full(resources, np.iinfo(np.int64).max, np.int64),
        earned=np.zeros(1),
    )

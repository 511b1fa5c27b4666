"""Beliefs about arms that are alike in kind: each mean is shrunk to a common one, with the strength of TWO EVENTS.

One click in twenty pulls looks like a rate of 5 %, also where clicks come once in a thousand. What saves from such luck
is what the other arms say: here all arms share a prior. Its mean and its dispersion are estimated from all arms, and it
is worth the number of pulls in which two events of the common kind happen: 2 / mean pulls for rare zeros and ones, four
for even ones, less where outcomes vary less than zeros and ones do.

Rewards and costs are treated alike, each on a scale of its own: rewards on [0, 1], costs from the smallest to the
arm's own largest. So arms whose largest costs differ a thousandfold can share one prior. How reward and cost of a pull
hang together is learned from all arms, too (`share_correlation`): where a dear pull is a good one, few pulls tell what
an arm is worth at a price, and one arm alone would need several to see that.
"""

import math
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from paceline.kernels.estimates import Known, known_costs, known_rewards
from paceline.kernels.jit import kernel
from paceline.kernels.state import State

Floats = npt.NDArray[np.float64]
Lows = tuple[float, ...]  # the smallest cost in each resource: 0, or -1 where pulls may refill it

EVENTS = 2.0  # that the prior is worth
OWN = 1.0  # weight of the common dispersion in an arm's own, in units of  n m (1 - m)
LITTLE = 0.05  # weight of dispersion 1 in the common one, same units
LEAST_DISPERSION = 0.02
UNSEEN = 0.08  # share of the largest variance that one pull does not rule out
SHARED = 4.0  # weight of the common correlation in an arm's own, in pulls
CHANCE = 9.0  # squared standard errors of that correlation that count as none
ROUNDING = 1e-9  # a variance below this is none
ALIKE = 10.0  # outcomes that must be alike for an arm to be taken for one that never varies
STALE = 0.01  # all beliefs are renewed when a common number has moved by so much, or
GROWN = 1.1  # when there are so many times as many pulls
LEAST_SPAN = 1e-12

# Columns of `common`: what is believed of all arms, and the sums that it follows from.
MEAN, DISPERSION, STRENGTH, TOTAL, WEIGHT, WITHIN, BETWEEN = range(7)
CENTRE, SPREAD, THIRD = range(3)  # of `beliefs`


class Beliefs(NamedTuple):
    """What is believed, one row per arm. Side 0 is the reward, side 1 + d the cost in resource d."""

    beliefs: Floats  # (K, 1 + D, 3) mean, variance of an outcome, third cumulant of an outcome
    parts: Floats  # (K, 1 + D, 4) what the arm has put into the sums of `common`
    joint: Floats  # (K, 2 P) by pair of sides (`pair_of`) the sum of their products, then their covariances in a pull
    common: Floats  # (1 + D, 7)
    shared: Floats  # (P,) the correlation of two sides in a pull, common to all arms
    renewed: Floats  # (1,) pulls of all arms when all beliefs were last renewed, and
    known: Floats  # (1,) pulls of all arms now


def pairs(resources: int) -> list[tuple[int, int]]:
    """The pairs of sides in the order of `pair_of`."""
    return list(combinations(range(1 + resources), 2))


def new_beliefs(arms: int, resources: int) -> Beliefs:
    """Before the first pull: a mean of 1/2 and zeros and ones."""
    sides, couples = 1 + resources, len(pairs(resources))
    common = np.zeros((sides, 7))
    common[:, MEAN], common[:, DISPERSION], common[:, STRENGTH] = 0.5, 1.0, 2.0 * EVENTS
    return Beliefs(
        beliefs=np.zeros((arms, sides, 3)),
        parts=np.zeros((arms, sides, 4)),
        joint=np.zeros((arms, 2 * couples)),
        common=common,
        shared=np.zeros(couples),
        renewed=np.zeros(1),
        known=np.zeros(1),
    )


@kernel
def span_of(state: State, lows: Lows, arm: int, side: int) -> tuple[float, float]:
    """The smallest possible outcome and how much larger the largest is."""
    if side == 0:
        return 0.0, 1.0
    low = lows[side - 1]
    return low, max(state.largest[arm, side - 1] - low, LEAST_SPAN)


@kernel
def strength_of(mean: float, dispersion: float) -> float:
    """Pulls in which two events of the common kind happen."""
    return float(EVENTS / max(min(mean, 1.0 - mean), 1e-9) * min(max(dispersion, LEAST_DISPERSION), 1.0))


@kernel
def known_of(state: State, arm: int, side: int) -> Known:
    """What is known of one side of an arm."""
    return known_rewards(state.arms, arm) if side == 0 else known_costs(state.arms, arm, side - 1)


@kernel
def is_known(state: State, arm: int, side: int) -> bool:
    """Whether any outcome of that side of an arm is known."""
    return known_of(state, arm, side).number > 0.0


class Sample(NamedTuple):
    """What is known of one side of an arm, on a scale of [0, 1]."""

    n: float  # outcomes
    mean: float
    free: bool  # whether that is an outcome of 0
    within: float  # sum of squares about their mean, n v


@kernel
def sample_of(state: State, lows: Lows, arm: int, side: int) -> Sample:
    """One side of an arm.

    Live, a cost may have been above the largest one. A mean beyond the scale counts as its end: variances would be
    negative there.
    """
    known = known_of(state, arm, side)
    smallest, span = span_of(state, lows, arm, side)
    mean = state.arms.reward_mean[arm] if side == 0 else state.arms.cost_mean[arm, side - 1]
    within = max(known.squares - known.number * mean * mean, 0.0)
    scaled = min(max((mean - smallest) / span, 0.0), 1.0)
    return Sample(known.number, scaled, mean == 0.0, within / (span * span))


@kernel
def largest_spread(sample: Sample) -> float:
    """The sum of squares about their mean that n - 1 zeros and ones with that mean would have."""
    return (sample.n - 1.0) * sample.mean * (1.0 - sample.mean) if sample.n > 1.0 else 0.0


@kernel
def put_part(memory: Beliefs, arm: int, side: int, sample: Sample) -> float:
    """Bring what an arm says of the common mean and dispersion up to date; gives the weight of its own mean.

    That is  n / (n + strength).  So much its mean counts in the common one, too; with no outcome known it says nothing.
    Nor does an arm that never varies say how much the others do: a default arm of fixed reward would else make one
    failure of any other arm look like proof. And a cost that never varies is a price: it is near the largest cost of
    its own arm because that is the price, which says nothing of arms whose costs vary far below their largest. Nor do
    they say much of it: to arms that are free belong two events that are ever rarer, and a price that was shrunk to 0
    with all of their strength would be believed cheap for ever. So a price is shrunk no more than by two events of even
    zeros and ones. (That a cost has been 0 so far is another matter: costs may be rare.)
    """
    if sample.n == 0.0:
        return 0.0
    n, mean, free, within = sample
    varies = n < ALIKE or within > ROUNDING * n
    is_price = side > 0 and not varies and not free
    strength = memory.common[side, STRENGTH]
    weight = n / (n + (min(strength, 2.0 * EVENTS) if is_price else strength))
    part, common = memory.parts[arm, side], memory.common[side]
    share = 0.0 if is_price else weight
    between = largest_spread(sample) if varies else 0.0
    common[TOTAL] += mean * share - part[0]
    common[WEIGHT] += share - part[1]
    common[WITHIN] += within - part[2]
    common[BETWEEN] += between - part[3]
    part[0], part[1], part[2], part[3] = mean * share, share, within, between
    return float(weight)


@kernel
def common_now(common: Floats) -> tuple[float, float]:
    """Common mean and dispersion by the sums; one pseudo-pull of mean 1/2 stands beside all arms."""
    pseudo = 1.0 / (1.0 + common[STRENGTH])
    mean = (common[TOTAL] + 0.5 * pseudo) / (common[WEIGHT] + pseudo)
    return mean, (common[WITHIN] + LITTLE) / (common[BETWEEN] + LITTLE)


@kernel
def is_stale(common: Floats) -> bool:
    """Whether the common mean or dispersion is no longer what the beliefs were made with; `common_now` undivided."""
    pulls = 1.0 + common[STRENGTH]
    weight, between = common[WEIGHT] * pulls + 1.0, common[BETWEEN] + LITTLE
    mean, dispersion = common[MEAN] * weight, common[DISPERSION] * between
    moved = abs(common[TOTAL] * pulls + 0.5 - mean) > STALE * mean
    return bool(moved or abs(common[WITHIN] + LITTLE - dispersion) > STALE * dispersion)


@kernel
def believe(state: State, lows: Lows, memory: Beliefs, arm: int, side: int, sample: Sample, weight: float) -> None:
    """Renew one belief: with mean x0, dispersion D~ and strength s in common, and the weight  w = n / (n + s),

    m = w x + (1 - w) x0,   D = (n v + D~) / ((n - 1) x (1 - x) + 1),
    variance  D m (1 - m) + 0.08 x0 (1 - x0) / (n + 1),   third cumulant  D (1 - 2 m) variance.
    """
    common, belief = memory.common[side], memory.beliefs[arm, side]
    smallest, span = span_of(state, lows, arm, side)
    mean = weight * sample.mean + (1.0 - weight) * common[MEAN]
    dispersion = (sample.within + OWN * common[DISPERSION]) / (largest_spread(sample) + OWN)
    spread = dispersion * mean * (1.0 - mean) + UNSEEN * common[MEAN] * (1.0 - common[MEAN]) / (sample.n + 1.0)
    belief[CENTRE] = smallest + span * mean
    belief[SPREAD] = span * span * spread
    belief[THIRD] = span * span * span * dispersion * (1.0 - 2.0 * mean) * spread


@kernel
def pair_of(first: int, second: int, resources: tuple[int, ...]) -> int:
    """The number of a pair of sides, the smaller first: (0, 1), (0, 2), ... (1, 2), ..."""
    return first * (2 * len(resources) - first + 1) // 2 + second - first - 1


@kernel
def sum_of(state: State, arm: int, side: int) -> float:
    """The sum of one side of the pulls of an arm of which all is known."""
    return float(state.arms.reward_sum[arm] if side == 0 else state.arms.cost_sum[arm, side - 1])


@kernel
def scatter(state: State, arm: int, side: int) -> float:
    """The sum of squares about the mean of one side, over the pulls of an arm of which all is known."""
    arms, total = state.arms, sum_of(state, arm, side)
    squares = arms.reward_squares[arm] if side == 0 else arms.cost_squares[arm, side - 1]
    return float(max(squares - total * total / arms.pulls[arm], 0.0))


@kernel
def coupling(state: State, memory: Beliefs, arm: int, first: int, second: int, resources: tuple[int, ...]) -> float:
    """Covariance of two sides of an arm, times n, over the pulls of which all is known."""
    n = state.arms.pulls[arm]
    if n == 0:
        return 0.0
    together = memory.joint[arm, pair_of(first, second, resources)]
    return float(together - sum_of(state, arm, first) * sum_of(state, arm, second) / n)


@kernel
def couple(state: State, memory: Beliefs, arm: int, resources: tuple[int, ...]) -> None:
    """Renew the covariances of an arm.

    They take pulls of which all is known. With r~ the common correlation of two sides, u and w the believed variances
    of an outcome, a covariance is  (n cov + 4 r~ sqrt(u w)) / (n + 4).
    """
    beliefs, n = memory.beliefs[arm], state.arms.pulls[arm]
    for first in range(len(resources)):
        for second in range(first + 1, len(resources) + 1):
            pair = pair_of(first, second, resources)
            largest = math.sqrt(beliefs[first, SPREAD] * beliefs[second, SPREAD])
            own = coupling(state, memory, arm, first, second, resources) + SHARED * memory.shared[pair] * largest
            memory.joint[arm, memory.shared.size + pair] = min(max(own / (n + SHARED), -largest), largest)


@kernel
def share_correlation(
    state: State, lows: Lows, memory: Beliefs, first: int, second: int, resources: tuple[int, ...]
) -> None:
    """The common correlation  r = sum n cov / sqrt(sum n v  sum n w)  of two sides, less what chance may have done.

    With  M = sum (n - 1)  its standard error is about  1 / sqrt(M),  and  r max(1 - 9 / (M r^2), 0)  is kept: up to
    three standard errors count as none, so that nothing is made of arms whose rewards and costs are independent. Arms
    of which one side has not varied yet say nothing: their pulls in M would make proof of two pulls of another arm.
    """
    together, firsts, seconds, pulls = 0.0, 0.0, 0.0, 0.0
    for arm in range(state.arms.pulls.size):
        n = state.arms.pulls[arm]
        if n > 1:
            _, one = span_of(state, lows, arm, first)
            _, other = span_of(state, lows, arm, second)
            own, others = scatter(state, arm, first) / (one * one), scatter(state, arm, second) / (other * other)
            if min(own, others) > ROUNDING * n:  # below that it is rounding
                together += coupling(state, memory, arm, first, second, resources) / (one * other)
                firsts += own
                seconds += others
                pulls += n - 1.0
    shared, pair = memory.shared, pair_of(first, second, resources)
    shared[pair] = 0.0
    if pulls > 0.0:
        correlation = together / math.sqrt(firsts * seconds)
        if pulls * correlation * correlation > CHANCE:
            shared[pair] = correlation - CHANCE / (pulls * correlation)


@kernel
def set_common(memory: Beliefs, side: int, mean: float, dispersion: float) -> None:
    """Take over a common mean and dispersion; the sums begin anew, for the strength has changed."""
    common = memory.common[side]
    common[MEAN], common[DISPERSION], common[STRENGTH] = mean, dispersion, strength_of(mean, dispersion)
    clear_sums(memory, side)


@kernel
def clear_sums(memory: Beliefs, side: int) -> None:
    """As if no arm had said anything."""
    for column in range(TOTAL, BETWEEN + 1):
        memory.common[side, column] = 0.0
    for arm in range(memory.parts.shape[0]):
        for column in range(4):
            memory.parts[arm, side, column] = 0.0


@kernel
def outcome_of(reward: float, cost: Floats, side: int) -> float:
    """One side of an outcome."""
    return float(reward if side == 0 else cost[side - 1])


@kernel
def take_in(
    state: State, lows: Lows, memory: Beliefs, arm: int, reward: float, cost: Floats, resources: tuple[int, ...]
) -> bool:
    """Learn an outcome of an arm. Where the common numbers have moved, the beliefs about all arms are renewed: true.

    They are also renewed every time that there are a tenth more pulls: what an arm that has left put into the sums is
    then gone.
    """
    for first in range(len(resources)):
        for second in range(first + 1, len(resources) + 1):
            product = outcome_of(reward, cost, first) * outcome_of(reward, cost, second)
            memory.joint[arm, pair_of(first, second, resources)] += product
    memory.known[0] += 1.0
    return renew_arm(state, lows, memory, arm, memory.known[0] >= GROWN * memory.renewed[0], resources)


@kernel
def believe_sides(state: State, lows: Lows, memory: Beliefs, arm: int, resources: tuple[int, ...]) -> None:
    """Renew what an arm says of the common numbers, and the beliefs about it that follow from them."""
    for side in range(len(resources) + 1):
        sample = sample_of(state, lows, arm, side)
        weight = put_part(memory, arm, side, sample)
        believe(state, lows, memory, arm, side, sample, weight)


@kernel
def renew_arm(state: State, lows: Lows, memory: Beliefs, arm: int, is_due: bool, resources: tuple[int, ...]) -> bool:
    """Renew the beliefs about an arm of which something was told; about all arms if that is due: then it is true."""
    believe_sides(state, lows, memory, arm, resources)
    for side in range(len(resources) + 1):
        is_due = is_due or is_stale(memory.common[side])
    if is_due:
        renew_all(state, lows, memory, resources)
    else:
        couple(state, memory, arm, resources)
    return is_due


@kernel
def renew_all(state: State, lows: Lows, memory: Beliefs, resources: tuple[int, ...]) -> None:
    """New common numbers, and the beliefs about every arm that follow from them."""
    memory.renewed[0] = memory.known[0]
    for side in range(len(resources) + 1):
        mean, dispersion = common_now(memory.common[side])
        if not (0.0 < mean < 1.0 and dispersion > 0.0):
            # An arm that was out of play while the sums began anew has taken out of them what was not in them.
            clear_sums(memory, side)
            for arm in range(state.arms.pulls.size):
                put_part(memory, arm, side, sample_of(state, lows, arm, side))
            mean, dispersion = common_now(memory.common[side])
        set_common(memory, side, mean, dispersion)
    for first in range(len(resources)):
        for second in range(first + 1, len(resources) + 1):
            share_correlation(state, lows, memory, first, second, resources)
    for arm in range(state.arms.pulls.size):
        believe_sides(state, lows, memory, arm, resources)
        couple(state, memory, arm, resources)

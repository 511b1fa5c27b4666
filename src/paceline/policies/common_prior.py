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
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from paceline.kernels.estimates import Known, known_costs, known_rewards, variance
from paceline.kernels.jit import kernel
from paceline.kernels.state import State

Floats = npt.NDArray[np.float64]

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
    """What is believed, one row per arm. Along axes of two, the first entry is of rewards, the second of costs."""

    beliefs: Floats  # (K, 2, 3) mean, variance of an outcome, third cumulant of an outcome
    parts: Floats  # (K, 2, 4) what the arm has put into the sums of `common`
    joint: Floats  # (K, 2) sum of  reward * cost,  and the covariance of the two in a pull
    common: Floats  # (2, 7)
    shared: Floats  # (1,) the correlation of reward and cost in a pull, common to all arms
    renewed: Floats  # (1,) pulls of all arms when all beliefs were last renewed, and
    known: Floats  # (1,) pulls of all arms now


def new_beliefs(arms: int) -> Beliefs:
    """Before the first pull: a mean of 1/2 and zeros and ones."""
    common = np.zeros((2, 7))
    common[:, MEAN], common[:, DISPERSION], common[:, STRENGTH] = 0.5, 1.0, 2.0 * EVENTS
    return Beliefs(
        beliefs=np.zeros((arms, 2, 3)),
        parts=np.zeros((arms, 2, 4)),
        joint=np.zeros((arms, 2)),
        common=common,
        shared=np.zeros(1),
        renewed=np.zeros(1),
        known=np.zeros(1),
    )


@kernel
def span_of(state: State, low: float, arm: int, side: int) -> tuple[float, float]:
    """The smallest possible outcome, ``low`` for a cost, and how much larger the largest is."""
    if side == 0:
        return 0.0, 1.0
    return low, max(state.largest[arm, 0] - low, LEAST_SPAN)


@kernel
def strength_of(mean: float, dispersion: float) -> float:
    """Pulls in which two events of the common kind happen."""
    return float(EVENTS / max(min(mean, 1.0 - mean), 1e-9) * min(max(dispersion, LEAST_DISPERSION), 1.0))


@kernel
def known_of(state: State, arm: int, side: int) -> Known:
    """What is known of the rewards or the costs of an arm."""
    return known_rewards(state.arms, arm) if side == 0 else known_costs(state.arms, arm, 0)


@kernel
def is_known(state: State, arm: int, side: int) -> bool:
    """Whether any reward, or any cost, of an arm is known."""
    return known_of(state, arm, side).number > 0.0


@kernel
def sums_of(state: State, low: float, arm: int, side: int) -> tuple[float, float, float]:
    """Count n and sum of the outcomes that are known, and  n v,  on a scale of [0, 1].

    Live, a cost may have been above the largest one. A mean beyond the scale counts as its end: variances would be
    negative there.
    """
    n, total, squares = known_of(state, arm, side)
    smallest, span = span_of(state, low, arm, side)
    mean = state.arms.reward_mean[arm] if side == 0 else state.arms.cost_mean[arm, 0]
    within = n * variance(squares, mean, n) / (span * span)
    return n, min(max((total - n * smallest) / span, 0.0), n), within


@kernel
def largest_spread(n: float, total: float) -> float:
    """The sum of squares about their mean that n - 1 zeros and ones with that sum would have."""
    return (n - 1.0) * total / n * (1.0 - total / n) if n > 1.0 else 0.0


@kernel
def put_part(state: State, low: float, memory: Beliefs, arm: int, side: int) -> float:
    """Bring what an arm says of the common mean and dispersion up to date; gives the sum of its known outcomes.

    Its mean counts  n / (n + strength)  in the common one; with no outcome known it says nothing. Nor does an arm that
    never varies say how much the others do: a default arm of fixed reward would else make one failure of any other arm
    look like proof.
    """
    n, total, within = sums_of(state, low, arm, side)
    if n == 0.0:
        return 0.0
    mean = total / n
    weight = n / (n + memory.common[side, STRENGTH])
    part, common = memory.parts[arm, side], memory.common[side]
    common[TOTAL] += mean * weight - part[0]
    common[WEIGHT] += weight - part[1]
    common[WITHIN] += within - part[2]
    between = largest_spread(n, total) if n < ALIKE or within > ROUNDING * n else 0.0
    common[BETWEEN] += between - part[3]
    part[0], part[1], part[2], part[3] = mean * weight, weight, within, between
    return total


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
def believe(state: State, low: float, memory: Beliefs, arm: int, side: int, total: float) -> None:
    """Renew one belief from the sum of the known outcomes: with mean x0, dispersion D~ and strength s in common,

    m = (sum + s x0) / (n + s),   D = (n v + D~) / ((n - 1) x (1 - x) + 1),
    variance  D m (1 - m) + 0.08 x0 (1 - x0) / (n + 1),   third cumulant  D (1 - 2 m) variance.
    """
    n, common, belief = known_of(state, arm, side).number, memory.common[side], memory.beliefs[arm, side]
    smallest, span = span_of(state, low, arm, side)
    mean = (total + common[STRENGTH] * common[MEAN]) / (n + common[STRENGTH])
    dispersion = (memory.parts[arm, side, 2] + OWN * common[DISPERSION]) / (largest_spread(n, total) + OWN)
    spread = dispersion * mean * (1.0 - mean) + UNSEEN * common[MEAN] * (1.0 - common[MEAN]) / (n + 1.0)
    belief[CENTRE] = smallest + span * mean
    belief[SPREAD] = span * span * spread
    belief[THIRD] = span * span * span * dispersion * (1.0 - 2.0 * mean) * spread


@kernel
def believe_arm(state: State, low: float, memory: Beliefs, arm: int, reward: float, cost: float) -> None:
    """Renew all beliefs about an arm from the sums of its rewards and costs.

    The covariance takes pulls with both. With r~ the common correlation, u and w the believed variances of a reward and
    of a cost, it is  (n cov + 4 r~ sqrt(u w)) / (n + 4).
    """
    believe(state, low, memory, arm, 0, reward)
    believe(state, low, memory, arm, 1, cost)
    beliefs, n = memory.beliefs[arm], state.arms.pulls[arm]
    largest = math.sqrt(beliefs[0, SPREAD] * beliefs[1, SPREAD])
    own = (coupling(state, memory, arm) + SHARED * memory.shared[0] * largest) / (n + SHARED)
    memory.joint[arm, 1] = min(max(own, -largest), largest)


@kernel
def coupling(state: State, memory: Beliefs, arm: int) -> float:
    """Covariance of the rewards and costs of an arm, times n, over the pulls of which both are known."""
    arms, n = state.arms, state.arms.pulls[arm]
    return float(memory.joint[arm, 0] - arms.reward_sum[arm] * arms.cost_sum[arm, 0] / n) if n > 0 else 0.0


@kernel
def share_correlation(state: State, low: float, memory: Beliefs) -> None:
    """The common correlation  r = sum n cov / sqrt(sum n v  sum n w),  less what chance may have done to it.

    With  M = sum (n - 1)  its standard error is about  1 / sqrt(M),  and  r max(1 - 9 / (M r^2), 0)  is kept: up to
    three standard errors count as none, so that nothing is made of arms whose rewards and costs are independent. Nor is
    of outcomes that do not vary: what is left of their sums is rounding.
    """
    arms, together, rewards, costs, pulls = state.arms, 0.0, 0.0, 0.0, 0.0
    for arm in range(arms.pulls.size):
        n = arms.pulls[arm]
        if n > 1:
            _, span = span_of(state, low, arm, 1)
            together += coupling(state, memory, arm) / span
            rewards += max(arms.reward_squares[arm] - arms.reward_sum[arm] * arms.reward_sum[arm] / n, 0.0)
            paid = arms.cost_sum[arm, 0]
            costs += max(arms.cost_squares[arm, 0] - paid * paid / n, 0.0) / (span * span)
            pulls += n - 1.0
    memory.shared[0] = 0.0
    if min(rewards, costs) > ROUNDING * pulls:
        correlation = together / math.sqrt(rewards * costs)
        if pulls * correlation * correlation > CHANCE:
            memory.shared[0] = correlation - CHANCE / (pulls * correlation)


@kernel
def set_common(memory: Beliefs, side: int, mean: float, dispersion: float) -> None:
    """Take over a common mean and dispersion; the sums begin anew, for the strength has changed."""
    common = memory.common[side]
    common[MEAN], common[DISPERSION], common[STRENGTH] = mean, dispersion, strength_of(mean, dispersion)
    for column in range(TOTAL, BETWEEN + 1):
        common[column] = 0.0
    for arm in range(memory.parts.shape[0]):
        for column in range(4):
            memory.parts[arm, side, column] = 0.0


@kernel
def take_in(state: State, low: float, memory: Beliefs, arm: int, reward: float, cost: float) -> None:
    """Learn an outcome of an arm. Where the common numbers have moved, the beliefs about all arms are renewed.

    They are also renewed every time that there are a tenth more pulls: what an arm that has left put into the sums is
    then gone.
    """
    memory.joint[arm, 0] += reward * cost
    memory.known[0] += 1.0
    renew_arm(state, low, memory, arm, memory.known[0] >= GROWN * memory.renewed[0])


@kernel
def renew_arm(state: State, low: float, memory: Beliefs, arm: int, is_due: bool) -> None:
    """Renew the beliefs about an arm of which something was told; about all arms if that is due for them."""
    rewards, costs = put_part(state, low, memory, arm, 0), put_part(state, low, memory, arm, 1)
    if is_due or is_stale(memory.common[0]) or is_stale(memory.common[1]):
        renew_all(state, low, memory)
    else:
        believe_arm(state, low, memory, arm, rewards, costs)


@kernel
def renew_all(state: State, low: float, memory: Beliefs) -> None:
    """New common numbers, and the beliefs about every arm that follow from them."""
    memory.renewed[0] = memory.known[0]
    for side in range(2):
        mean, dispersion = common_now(memory.common[side])
        set_common(memory, side, mean, dispersion)
    share_correlation(state, low, memory)
    for arm in range(state.arms.pulls.size):
        if is_known(state, arm, 0) or is_known(state, arm, 1):
            rewards, costs = put_part(state, low, memory, arm, 0), put_part(state, low, memory, arm, 1)
            believe_arm(state, low, memory, arm, rewards, costs)

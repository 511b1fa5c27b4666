"""The index of an arm: how much speaks against it, for the experience that there is of it.

The index is that of IMED,  n KL + log n  (Honda, Takemura, "Non-asymptotic analysis of a new bandit algorithm for
semi-bounded rewards", JMLR 2015), at the prices of a base: an arm is compared by its value  mu - lam rho  with the
level of the base. It works on what is believed (common_prior.py) and on the clocks of the arms (`learn_clock`).
"""

import math
from typing import NamedTuple

from paceline.kernels.jit import kernel
from paceline.kernels.state import State
from paceline.policies.common_prior import (
    CENTRE,
    DISPERSION,
    EVENTS,
    MEAN,
    SPREAD,
    STRENGTH,
    THIRD,
    Lows,
    is_known,
    span_of,
)

STEEPNESS = 1.5  # evidence up to this counts twice
EXPONENT = 1.15  # of the pulls in the index
SHIFT = 0.7
AGAIN = 2.0  # log of how much longer an arm is made to wait for each further look, whatever speaks against it
FEW = 50.0  # rounds' income below which a rival's experience lowers the index, once it is beyond
EXPERIENCED = 7.0  # log of its pulls
CROWD = 8.0  # arms; the more there are beyond, the longer an arm that was tried must wait for another look
SHARE = 1.0 / 32.0  # of the income so far that may be saved up for one pull

LOG_PULLS, LOG_MONEY, FEWNESS = range(3)  # columns of `clocks`


class Rival(NamedTuple):
    """What the indices are held against: the arm of the base whose turn it is."""

    money: float  # log N of the arm: its pulls, in rounds of income
    experience: float  # the same, less what pulls teach little where rewards are rare
    rarity: float  # which is so much
    rise: float  # what an arm of no experience has off its index
    crowd: float  # what an arm that was tried has on top of it
    latest: float  # the index that an untried arm has at most, but for its price


@kernel
def pulls_made(state: State, arm: int) -> int:
    """Pulls of an arm; what is still to come of them counts as if it were the mean."""
    return int(state.arms.pulls[arm] + state.pending[arm])


@kernel
def has_earned_nothing(state: State) -> bool:
    """Whether rewards are known, and all of them were 0. What is believed of them then tells no arm from another."""
    known = False
    for i in range(state.pending.size):
        if state.arms.reward_mean[i] > 0.0:
            return False
        known = known or is_known(state, i, 0)
    return known


@kernel
def log_pulls(state: State, arm: int) -> float:
    """The logarithm of the pulls made, 0 for none."""
    if state.pending[arm] == 0:
        return float(state.memory.clocks[arm, LOG_PULLS])
    return math.log(pulls_made(state, arm))


@kernel
def believed_cost(state: State, lows: Lows, arm: int) -> float:
    """The mean cost of an arm as far as is known; where none is, the common mean on its own scale."""
    if is_known(state, arm, 1):
        return float(state.memory.beliefs[arm, 1, CENTRE])
    return float(lows[0] + state.memory.common[1, MEAN] * (state.largest[arm, 0] - lows[0]))


@kernel
def spread_of(state: State, lows: Lows, arm: int, side: int) -> tuple[float, float]:
    """Variance and third cumulant of an outcome as far as is known."""
    memory = state.memory
    if is_known(state, arm, side):
        return memory.beliefs[arm, side, SPREAD], memory.beliefs[arm, side, THIRD]
    mean, dispersion = memory.common[side, MEAN], memory.common[side, DISPERSION]
    _, span = span_of(state, lows, arm, side)
    spread = dispersion * span * span * mean * (1.0 - mean)
    return spread, dispersion * span * (1.0 - 2.0 * mean) * spread


@kernel
def evidence_of_costs(state: State, lows: Lows, price: float, level: float, arm: int) -> float:
    """What costs of a mean rho and a variance w say in each pull against an arm, whatever its rewards are:

        (1 - D) (log(lam rho / (1 - y)) - w / (2 rho^2)),   D = w / (rho (m - rho)),  m the largest cost; at least 0.

    No reward is above 1, so an arm that is worth the level costs at most  (1 - y) / lam  on average. Costs that are not
    negative and have no larger mean multiply, in units of it, to 1 on average. So the logarithm of that product speaks
    against the arm (Markov), whatever the law of its costs: this is the KL_inf of Honda and Takemura at the end of its
    range. The normal divergence is far less where costs are tens of times too large. The logarithm of a cost is that of
    the mean less about  w / (2 rho^2).  Where costs are 0 or the largest that does not hold, and with D = 1 none of it
    is left: what was made of the mean and the variance alone gave up good arms that often cost nothing. Where pulls
    may refill the stock, costs are counted from the smallest.
    """
    cost, most = believed_cost(state, lows, arm) - lows[0], 1.0 - price * lows[0] - level
    if price * cost <= most or most <= 0.0:
        return 0.0
    spread, rest = spread_of(state, lows, arm, 1)[0], state.largest[arm, 0] - lows[0] - cost
    if spread >= cost * rest:
        return 0.0
    logarithm = math.log(price * cost / most) - 0.5 * spread / (cost * cost)
    return float(max((1.0 - spread / (cost * rest)) * logarithm, 0.0))


@kernel
def evidence(state: State, lows: Lows, price: float, level: float, arm: int) -> float:
    """How much speaks against an arm:  n KL  of what is believed from the nearest belief that is worth the level.

    The value  mu - lam rho  of an arm is short of the level by g. With A the variance of the belief about it and S the
    third cumulant,  x = g^2 / (2 max(A + g S / (3 A), A / 10)):  the normal divergence, corrected for skew. The prior
    counts as evidence of its strength. As long as no arm has earned anything, nothing speaks against any. Of an arm
    that was tried, costs may say more than that (`evidence_of_costs`).
    """
    memory, pulls = state.memory, pulls_made(state, arm)
    if has_earned_nothing(state):
        return 0.0
    reward = memory.beliefs[arm, 0, CENTRE] if is_known(state, arm, 0) else memory.common[0, MEAN]
    gap = level - reward + price * believed_cost(state, lows, arm)
    if gap <= 0.0:
        return 0.0
    reward_spread, reward_third = spread_of(state, lows, arm, 0)
    cost_spread, cost_third = spread_of(state, lows, arm, 1)
    joint = memory.joint[arm, 1]
    if state.arms.pulls[arm] == 0:
        joint = memory.shared[0] * math.sqrt(reward_spread * cost_spread)
    # A and S times the pulls of both sides, and their square: one division is left, at the end.
    n, m = pulls + memory.common[0, STRENGTH], pulls + memory.common[1, STRENGTH]
    spread = reward_spread * m + price * (price * cost_spread - 2.0 * joint) * n
    if spread <= 0.0:
        return 0.0
    third = reward_third * m * m - price * price * price * cost_third * n * n
    square = spread * spread
    against = 1.5 * gap * gap * n * m * spread / max(3.0 * square + third * gap, 0.3 * square)
    if pulls > 0:
        against = max(against, m * evidence_of_costs(state, lows, price, level, arm))
    return float(against)


@kernel
def crowd_of(arms: int, log_rival: float) -> float:
    """What arms that were tried have on top of their index where there are more than eight, K:

        L + max(L - max(log n_r - 7, 0), 0),   L = log(K / 8).

    To tell K arms apart takes K times as many pulls, and among many arms that were tried once there is a good one: as
    long as K is large beside the square root of the rounds, few second looks are best (Bayati, Hamidi, Johari,
    Khosravi, "Unreasonable effectiveness of greedy algorithms in multi-armed bandit with many arms", NeurIPS 2020). So
    they begin when the rival has  (K / 8)^2  pulls. Later on one L is left, the  log K  of MOSS (Audibert, Bubeck,
    "Minimax policies for adversarial and stochastic bandits", COLT 2009): with two for ever, a good arm that made a bad
    start was measured to wait too long at 200,000 rounds.
    """
    if arms <= CROWD:
        return 0.0
    once = math.log(arms / CROWD)
    return once + max(once - max(log_rival - EXPERIENCED, 0.0), 0.0)


@kernel
def rarity_of(strength: float, log_rival: float) -> float:
    """What is taken off the logarithm of all pulls where rewards are rare:

        max(log(u) / 2 - max(log(n_r / u) - 7, 0), 0),   u = D~ / (2 min(x0, 1 - x0))  or 1 if that is less,

    u being the pulls that tell as much as one toss of a fair coin. Were each round cut into ten, with a tenth of the
    reward and of the cost, nothing would have changed; but the experience of the rival would have grown by log 10, and
    with it the money that goes into arms of which nothing is known. Counted in events and not in pulls it would not.
    Half of that is taken off: with all of it, expensive arms were measured to be tried too late, as the common mean is
    itself believed too low before the first events. As the rival gathers them, pulls count again.
    """
    if strength <= 2.0 * EVENTS:
        return 0.0
    unit = math.log(0.5 * strength / EVENTS)
    return max(0.5 * unit - max(log_rival - unit - EXPERIENCED, 0.0), 0.0)


@kernel
def rival_of(state: State, rise: float, arm: int) -> Rival:
    """What an arm of the base asks of the others."""
    raw, money = log_pulls(state, arm), state.memory.clocks[arm, LOG_MONEY]
    rarity = rarity_of(state.memory.common[0, STRENGTH], raw)
    pulls = max(raw - rarity, 0.0)
    return Rival(
        money=raw + money,
        experience=pulls + money,
        rarity=rarity,
        rise=rise * max(pulls - EXPERIENCED, 0.0),
        crowd=crowd_of(state.arms.pulls.size, pulls),
        latest=math.log(max(state.arms.pulls.size - 1, 1) / SHARE) - rarity,
    )


@kernel
def rounds_of_income(rate: float, cost: float) -> float:
    """How many rounds' income a cost takes, at least 1; without income, where pulls refill the stock, just 1."""
    return max(1.0, cost / rate) if rate > 0.0 else 1.0


@kernel
def index_of(state: State, lows: Lows, price: float, level: float, rival: Rival, arm: int, most: float) -> float:
    """The index of an arm if it is below ``most``; infinite else, and where exploring it is out of the question.

        x + min(x, 1.5) + 1.15 log n - 0.7 + crowd + log(N / n) - 50 / (N + 50) rise max(log n_r - 7, 0)

    is Honda and Takemura's  n KL + log n,  on the clock of money and with what was measured to do better at small n;
    where rewards are rare, both log n are less (`rarity_of`), but not below 0. An arm that has had as much as its rival
    is not explored, nor one that the headroom does not cover, unless one pull of it takes no more than a share of the
    income so far. An untried arm waits for no crowd.

    What is believed of an arm that was hardly tried is what the others are like, and it may be wholly different. So the
    index is at most  log(32 (K - 1)) + log(N / n) + 2 n,  less what is taken off for rare rewards: an arm is tried when
    one pull takes 1 / (32 (K - 1)) of what went into its rival, and again when there is e^2 times as much, whatever
    speaks against it. Where the headroom does not cover it, one pull counts with its largest cost.
    """
    clocks, rate, top = state.memory.clocks, state.rate[0], state.largest[arm, 0]
    if pulls_made(state, arm) == 0:
        money, index = math.log(rounds_of_income(rate, believed_cost(state, lows, arm))), -rival.rise
    else:
        pulls, money = log_pulls(state, arm), clocks[arm, LOG_MONEY]
        if pulls + money >= rival.money:
            return math.inf
        index = EXPONENT * max(pulls - rival.rarity, 0.0) - SHIFT + rival.crowd - clocks[arm, FEWNESS] * rival.rise
    if state.headroom[0] < top:
        if top > SHARE * rate * state.clock.t:
            return math.inf
        money = math.log(rounds_of_income(rate, top))
    index += money
    if index >= most:  # whatever speaks against it
        return math.inf
    x = evidence(state, lows, price, level, arm)
    return min(index + x + min(x, STEEPNESS), rival.latest + money + AGAIN * pulls_made(state, arm))


@kernel
def learn_clock(state: State, arm: int) -> None:
    """Bring the clock of an arm up to date: log n,  log(N / n)  and  50 / (N + 50),  N in rounds of income.

    As long as only costs are known of it there is just the second.
    """
    pulls, clocks = state.arms.pulls[arm], state.memory.clocks
    factor = rounds_of_income(state.rate[0], state.memory.beliefs[arm, 1, CENTRE])
    clocks[arm, LOG_MONEY] = math.log(factor) if factor > 1.0 else 0.0
    if pulls > 0:
        clocks[arm, LOG_PULLS] = math.log(pulls)
        clocks[arm, FEWNESS] = FEW / (pulls * factor + FEW)

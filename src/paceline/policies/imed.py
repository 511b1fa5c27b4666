"""The index of an arm: how much speaks against it, for the experience that there is of it.

The index is that of IMED,  n KL + log n  (Honda, Takemura, "Non-asymptotic analysis of a new bandit algorithm for
semi-bounded rewards", JMLR 2015), at the prices of a base: an arm is compared by its value  mu - lam rho  with the
level of the base. It works on what is believed (common_prior.py) and on the clocks of the arms (`learn_clock`).
"""

import math

from paceline.kernels.jit import kernel
from paceline.kernels.state import State
from paceline.policies.common_prior import CENTRE, DISPERSION, MEAN, SPREAD, STRENGTH, THIRD, span_of

STEEPNESS = 1.5  # evidence up to this counts twice
EXPONENT = 1.15  # of the pulls in the index
SHIFT = 0.7
FEW = 50.0  # rounds' income below which a rival's experience lowers the index, once it is beyond
EXPERIENCED = 7.0  # log of its pulls
SHARE = 1.0 / 32.0  # of the income so far that may be saved up for one pull

LOG_PULLS, LOG_MONEY, FEWNESS = range(3)  # columns of `clocks`


@kernel
def pulls_made(state: State, arm: int) -> int:
    """Pulls of an arm; those whose outcome is still to come count as if they had brought the mean."""
    return int(state.arms.pulls[arm] + state.pending[arm])


@kernel
def log_pulls(state: State, arm: int) -> float:
    """The logarithm of the pulls made, 0 for none."""
    if state.pending[arm] == 0:
        return float(state.memory.clocks[arm, LOG_PULLS])
    return math.log(pulls_made(state, arm))


@kernel
def believed_cost(state: State, low: float, arm: int) -> float:
    """The mean cost of an arm as far as is known; of an untried one the common mean on its own scale."""
    if state.arms.pulls[arm] > 0:
        return float(state.memory.beliefs[arm, 1, CENTRE])
    return float(low + state.memory.common[1, MEAN] * (state.largest[arm, 0] - low))


@kernel
def spread_of(state: State, low: float, arm: int, side: int) -> tuple[float, float]:
    """Variance and third cumulant of an outcome as far as is known."""
    memory = state.memory
    if state.arms.pulls[arm] > 0:
        return memory.beliefs[arm, side, SPREAD], memory.beliefs[arm, side, THIRD]
    mean, dispersion = memory.common[side, MEAN], memory.common[side, DISPERSION]
    _, span = span_of(state, low, arm, side)
    spread = dispersion * span * span * mean * (1.0 - mean)
    return spread, dispersion * span * (1.0 - 2.0 * mean) * spread


@kernel
def evidence(state: State, low: float, price: float, level: float, arm: int) -> float:
    """How much speaks against an arm:  n KL  of what is believed from the nearest belief that is worth the level.

    The value  mu - lam rho  of an arm is short of the level by g. With A the variance of the belief about it and S the
    third cumulant,  x = g^2 / (2 max(A + g S / (3 A), A / 10)):  the normal divergence, corrected for skew. The prior
    counts as evidence of its strength.
    """
    memory, pulls = state.memory, pulls_made(state, arm)
    reward = memory.beliefs[arm, 0, CENTRE] if state.arms.pulls[arm] > 0 else memory.common[0, MEAN]
    gap = level - reward + price * believed_cost(state, low, arm)
    if gap <= 0.0:
        return 0.0
    reward_spread, reward_third = spread_of(state, low, arm, 0)
    cost_spread, cost_third = spread_of(state, low, arm, 1)
    p, q = 1.0 / (pulls + memory.common[0, STRENGTH]), price / (pulls + memory.common[1, STRENGTH])
    spread = reward_spread * p + price * q * cost_spread - 2.0 * q * memory.joint[arm, 1]
    if spread <= 0.0:
        return 0.0
    third = reward_third * p * p - price * q * q * cost_third
    return float(0.5 * gap * gap / max(spread + third * gap / (3.0 * spread), 0.1 * spread))


@kernel
def index_of(state: State, low: float, price: float, level: float, bar: float, extra: float, arm: int) -> float:
    """The index of an arm; infinite where exploring it is out of the question.

        x + min(x, 1.5) + 1.15 log n - 0.7 + log(N / n) - 50 / (N + 50) extra,   extra = rise max(log n_r - 7, 0),

    is Honda and Takemura's  n KL + log n,  on the clock of money and with what was measured to do better at small n. An
    arm that has had as much as its rival (``bar``) is not explored, nor one that the headroom does not cover, unless
    one pull of it takes no more than a share of the income so far.
    """
    clocks, rate, top = state.memory.clocks, state.rate[0], state.largest[arm, 0]
    if pulls_made(state, arm) == 0:
        money, index = math.log(max(1.0, believed_cost(state, low, arm) / rate)), -extra
    else:
        pulls, money = log_pulls(state, arm), clocks[arm, LOG_MONEY]
        if pulls + money >= bar:
            return math.inf
        index = EXPONENT * pulls - SHIFT - clocks[arm, FEWNESS] * extra
    if state.headroom[0] < top:
        if top > SHARE * rate * state.clock.t:
            return math.inf
        money = math.log(max(1.0, top / rate))
    x = evidence(state, low, price, level, arm)
    return index + money + x + min(x, STEEPNESS)


@kernel
def learn_clock(state: State, arm: int) -> None:
    """Bring the clock of an arm up to date: log n,  log(N / n)  and  50 / (N + 50),  N in rounds of income."""
    pulls, clocks, rate = state.arms.pulls[arm], state.memory.clocks, state.rate[0]
    factor = max(1.0, state.memory.beliefs[arm, 1, CENTRE] / rate) if rate > 0.0 else 1.0
    clocks[arm, LOG_PULLS], clocks[arm, LOG_MONEY] = math.log(pulls), math.log(factor)
    clocks[arm, FEWNESS] = FEW / (pulls * factor + FEW)

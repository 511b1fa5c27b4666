"""The index pacer: the best base of what is believed, and an arm outside it whenever its index says so."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paceline import checks
from paceline.kernels.hull import best_mix
from paceline.kernels.jit import kernel
from paceline.kernels.state import Decision, State
from paceline.policies.common_prior import (
    CENTRE,
    DISPERSION,
    MEAN,
    SPREAD,
    STRENGTH,
    THIRD,
    Beliefs,
    new_beliefs,
    take_in,
)
from paceline.policies.edge import is_on_edge, observed_spread, pace_on_edge
from paceline.policies.pacing import (
    PACED,
    REASONS,
    SINGLE,
    STAND_IN,
    affords,
    base_price,
    best_affordable,
    fit_stock,
    needed_with_doubt,
)
from paceline.policies.policy import Policy, Setting

EXPLORED, SAVING = len(REASONS), len(REASONS) + 1

STEEPNESS = 1.5  # evidence up to this counts twice
EXPONENT = 1.15  # of the pulls in the index
SHIFT = 0.7
FEW = 50.0  # pulls below which a rival's experience lowers the index, once it is beyond
EXPERIENCED = 7.0  # log of its pulls
SHARE = 1.0 / 32.0  # of the income so far that may be saved up for one pull

LOG_PULLS, LOG_MONEY, FEWNESS = range(3)  # columns of `clocks`

Floats = npt.NDArray[np.float64]


class Params(NamedTuple):
    """Numbers for the kernels."""

    rise: float
    lows: tuple[float, ...]  # the smallest cost in each resource: 0, or -1 where pulls may refill it


class Memory(NamedTuple):
    """Beliefs (see common_prior.py) and clocks of the arms."""

    beliefs: Floats  # (K, 1 + D, 3) and so on: `Beliefs`
    parts: Floats
    products: Floats
    covariances: Floats
    common: Floats
    renewed: Floats
    known: Floats
    clocks: Floats  # (K, 3) log of the pulls, log of the rounds' income that a pull takes, 50 / (N + 50)


class Base(NamedTuple):
    """The best base of the centres, and what it means now."""

    expensive: int
    cheap: int
    price: float  # of a unit of budget
    level: float  # what a round is worth besides
    needed: float  # headroom for a pull of the expensive arm
    room: bool  # whether it is there


@kernel
def beliefs_in(memory: Memory) -> Beliefs:
    """The part of the memory that is beliefs."""
    return Beliefs(
        memory.beliefs,
        memory.parts,
        memory.products,
        memory.covariances,
        memory.common,
        memory.renewed,
        memory.known,
    )


@kernel
def fill_centres(state: State) -> int:
    """The centres into the scratch arrays; says how many arms have one. An untried arm is in no base."""
    rewards, costs, beliefs = state.scratch.rewards, state.scratch.costs[0], state.memory.beliefs
    tried = 0
    for i in range(rewards.size):
        rewards[i], costs[i] = 0.0, 1.0
        if state.arms.pulls[i] > 0:
            rewards[i], costs[i] = beliefs[i, 0, CENTRE], beliefs[i, 1, CENTRE]
            tried += 1
    return tried


@kernel
def first_arm(state: State) -> int:
    """The arm to begin with: of those with the fewest pulls under way the one with the smallest largest cost."""
    first = 0
    for i in range(1, state.pending.size):
        fewer = state.pending[i] - state.pending[first]
        if fewer < 0 or (fewer == 0 and state.largest[i, 0] < state.largest[first, 0]):
            first = i
    return first


@kernel
def headroom_for(state: State, expensive: int, cheap: int) -> float:
    """The headroom for a pull of the expensive arm beside that cheap one; the doubt is in units of its largest cost."""
    doubt = 0.0
    if cheap < state.arms.pulls.size:
        doubt = 0.25 * state.largest[cheap, 0] * state.largest[cheap, 0]
    return needed_with_doubt(state, expensive, cheap, doubt)


@kernel
def find_base(state: State) -> Base:
    """The best base of the centres in the scratch arrays."""
    rewards, costs, rate = state.scratch.rewards, state.scratch.costs[0], state.rate[0]
    expensive, cheap, _ = best_mix(rewards, costs, rate)
    price = base_price(rewards, costs, expensive, cheap)
    level = rewards[cheap] - price * costs[cheap] if cheap < rewards.size else 0.0
    if expensive == cheap:
        most = state.largest[expensive, 0]
        needed = fit_stock(state, 0, 2.0 * most - rate, most)
    else:
        needed = headroom_for(state, expensive, cheap)
    return Base(expensive, cheap, price, level, needed, state.headroom[0] >= needed)


@kernel
def evidence(state: State, base: Base, arm: int, known: float) -> float:
    """How much speaks against an arm:  n KL  of its belief from the nearest one that would be worth the level.

    The value  mu - lam rho  of an arm is short of the level by  g.  With A the variance of its belief about it and S
    the third cumulant,  x = g^2 / (2 max(A + g S / (3 A), A / 10)):  the normal divergence, corrected for skew. The
    prior counts as evidence of its strength.
    """
    memory, price = state.memory, base.price
    common = memory.common
    top = state.largest[arm, 0]
    if state.arms.pulls[arm] > 0:
        beliefs = memory.beliefs[arm]
        reward, cost = beliefs[0, CENTRE], beliefs[1, CENTRE]
        reward_spread, cost_spread = beliefs[0, SPREAD], beliefs[1, SPREAD]
        reward_third, cost_third = beliefs[0, THIRD], beliefs[1, THIRD]
    else:
        reward, cost = common[0, MEAN], common[1, MEAN] * top
        reward_spread = common[0, DISPERSION] * reward * (1.0 - reward)
        cost_spread = common[1, DISPERSION] * cost * (top - cost)
        reward_third = common[0, DISPERSION] * (1.0 - 2.0 * reward) * reward_spread
        cost_third = common[1, DISPERSION] * (top - 2.0 * cost) * cost_spread
    gap = base.level - reward + price * cost
    if gap <= 0.0:
        return 0.0
    p, q = 1.0 / (known + common[0, STRENGTH]), price / (known + common[1, STRENGTH])
    spread = reward_spread * p + price * q * cost_spread - 2.0 * q * memory.covariances[arm, 0]
    if spread <= 0.0:
        return 0.0
    third = reward_third * p * p - price * q * q * cost_third
    return float(0.5 * gap * gap / max(spread + third * gap / (3.0 * spread), 0.1 * spread))


@kernel
def least_index(params: Params, state: State, base: Base) -> int:
    """The arm outside the base with the smallest index, if that is below the experience of its rival; else -1."""
    clocks, count, rate, headroom = state.memory.clocks, state.arms.pulls.size, state.rate[0], state.headroom[0]
    rival = base.expensive if base.room or base.cheap == count else base.cheap
    bar = clocks[rival, LOG_PULLS] + clocks[rival, LOG_MONEY]
    extra = params.rise * max(clocks[rival, LOG_PULLS] - EXPERIENCED, 0.0)
    most = SHARE * rate * state.clock.t
    single = base.expensive == base.cheap
    best, best_index = -1, bar
    for i in range(count):
        if i == base.expensive or i == base.cheap:
            continue
        pulls, top = state.arms.pulls[i], state.largest[i, 0]
        cost = state.scratch.costs[0, i]
        if pulls == 0:
            cost = state.memory.common[1, MEAN] * top
            money, index = math.log(max(1.0, cost / rate)), -extra
        else:
            money = clocks[i, LOG_MONEY]
            if clocks[i, LOG_PULLS] + money >= bar:
                continue
            index = EXPONENT * clocks[i, LOG_PULLS] - SHIFT - clocks[i, FEWNESS] * extra
        if headroom < top:
            if top > most:
                continue
            money = math.log(max(1.0, top / rate))
        x = evidence(state, base, i, float(pulls))
        index += money + x + min(x, STEEPNESS)
        if index >= best_index:
            continue
        if base.room and not single and base.cheap < count and cost <= rate and pulls > 0:
            # A cheap arm is tried in the rounds of the cheap one, as if it were that.
            if headroom >= headroom_for(state, base.expensive, i):
                continue
        best, best_index = i, index
    return best


@kernel
def explore(state: State, base: Base, arm: int) -> Decision:
    """Pull an arm to learn of it, or save up for it with the cheap arm of the base; SKIP as the tag if neither."""
    count, rate, headroom = state.arms.pulls.size, state.rate[0], state.headroom[0]
    cost = (
        state.scratch.costs[0, arm]
        if state.arms.pulls[arm] > 0
        else state.memory.common[1, MEAN] * state.largest[arm, 0]
    )
    want = state.largest[arm, 0]
    if cost > rate and base.cheap < count:
        if base.expensive == base.cheap:
            want += state.largest[base.cheap, 0] - rate
        else:
            want = headroom_for(state, arm, base.cheap)
    if headroom >= want and affords(state, arm):
        return Decision(arm, EXPLORED, arm)
    if base.cheap == count:
        return Decision(count, SAVING, arm)
    if affords(state, base.cheap) and state.scratch.costs[0, base.cheap] < rate:
        return Decision(base.cheap, SAVING, arm)
    return Decision(-1, 0, arm)


@kernel
def pace_base(state: State, base: Base) -> Decision:
    """The arm of the base that is due; a base on the edge is paced between its neighbours on the hull."""
    count, headroom, rate = state.arms.pulls.size, state.headroom[0], state.rate[0]
    if base.cheap < count:
        spread = observed_spread(state, base.cheap)
        if is_on_edge(state, rate - state.scratch.costs[0, base.cheap], spread):
            arm = pace_on_edge(state, base.cheap, headroom, spread)
            if arm >= 0:
                return Decision(arm, PACED, base.cheap)
    arm, reason, other = base.expensive, SINGLE, base.expensive
    if base.expensive != base.cheap:
        spread = observed_spread(state, base.expensive)
        if is_on_edge(state, rate - state.scratch.costs[0, base.expensive], spread):
            due = pace_on_edge(state, base.expensive, headroom, spread)
            if due >= 0:
                return Decision(due, PACED, base.expensive)
        reason = PACED
        if base.room:
            other = base.cheap
        else:
            arm = base.cheap
    if arm == count or affords(state, arm):
        return Decision(arm, reason, other)
    return Decision(best_affordable(state, base.price), STAND_IN, arm)


def choose(params: Params, state: State) -> Decision:
    """An arm whose index is below its rival's experience, else the base of the centres, paced."""
    if fill_centres(state) == 0:
        first = first_arm(state)
        return Decision(first, EXPLORED, first)
    base = find_base(state)
    arm = least_index(params, state, base)
    if arm >= 0:
        decision = explore(state, base, arm)
        if decision.reason > 0:
            return decision
    return pace_base(state, base)


def learn(params: Params, state: State, decision: Decision, reward: float, cost: Floats) -> None:
    """Renew what is believed, and the clocks of the arm that was pulled."""
    arm = decision.arm
    if 0 <= arm < state.arms.pulls.size:
        take_in(state, params.lows, beliefs_in(state.memory), arm, reward, cost, state.resources)
        pulls, clocks = state.arms.pulls[arm], state.memory.clocks
        factor = max(1.0, state.memory.beliefs[arm, 1, CENTRE] / state.rate[0])
        clocks[arm, LOG_PULLS], clocks[arm, LOG_MONEY] = math.log(pulls), math.log(factor)
        clocks[arm, FEWNESS] = FEW / (pulls * factor + FEW)


@dataclass(frozen=True, kw_only=True)
class IndexPacer(Policy):
    """Play the best base of what is believed; try another arm when little speaks against it, for what was seen of it.

    >>> IndexPacer()
    IndexPacer(rise=1.0)
    """

    rise: float = 1.0

    name = "index"
    allocates, tag_is_arm = False, True
    resources = 1
    reasons = (*REASONS, "explored: little speaks against the arm", "saving up for an arm to explore")
    choose = staticmethod(choose)
    learn = staticmethod(learn)

    def __post_init__(self) -> None:
        checks.real("rise of index", self.rise, 0)

    def params(self, setting: Setting) -> tuple[Any, ...]:
        return Params(float(self.rise), setting.lows)

    def new_memory(self, arms: int, resources: int) -> Memory:
        return Memory(*new_beliefs(arms, resources), np.zeros((arms, 3)))

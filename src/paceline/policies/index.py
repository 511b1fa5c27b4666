"""The index pacer: the best base of what is believed, and an arm outside it whenever its index says so."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paceline import checks
from paceline.kernels.hull import best_mix
from paceline.kernels.jit import kernel
from paceline.kernels.state import GUARD, SKIP, Decision, State, program_in, steering_in
from paceline.kernels.steering import largest_in_base
from paceline.policies.common_prior import (
    CENTRE,
    DISPERSION,
    MEAN,
    SPREAD,
    STRENGTH,
    THIRD,
    Beliefs,
    new_beliefs,
    span_of,
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
from paceline.policies.steering import find_base, follow_base, learn_spreads, no_base, remember_base

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
    clocks: Floats  # (K, 3) log of the pulls n, of the rounds' income N / n that a pull takes, and  50 / (N + 50)
    credit: Floats  # (K,) and so on: see steering.py; not used with one resource
    in_base: npt.NDArray[np.bool_]
    prices: Floats
    spreads: Floats


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
    rewards, costs, beliefs = state.scratch.rewards, state.scratch.costs, state.memory.beliefs
    tried = 0
    for i in range(rewards.size):
        known = state.arms.pulls[i] > 0
        rewards[i] = beliefs[i, 0, CENTRE] if known else 0.0
        for d in range(len(state.resources)):
            costs[d, i] = beliefs[i, 1 + d, CENTRE] if known else 1.0
        if known:
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
def find_pair(state: State) -> Base:
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
def value_gap(state: State, lows: tuple[float, ...], prices: Floats, level: float, arm: int) -> float:
    """How much the value  mu - lam.rho  of an arm is short of the level."""
    memory, tried = state.memory, state.arms.pulls[arm] > 0
    gap = level - (memory.beliefs[arm, 0, CENTRE] if tried else memory.common[0, MEAN])
    for d in range(len(state.resources)):
        gap += prices[d] * believed_cost(state, lows, arm, d)
    return gap


@kernel
def believed_cost(state: State, lows: tuple[float, ...], arm: int, d: int) -> float:
    """The mean cost of an arm as far as is known; of an untried one the common mean on its own scale."""
    if state.arms.pulls[arm] > 0:
        return float(state.memory.beliefs[arm, 1 + d, CENTRE])
    return float(lows[d] + state.memory.common[1 + d, MEAN] * (state.largest[arm, d] - lows[d]))


@kernel
def spread_of(state: State, lows: tuple[float, ...], arm: int, side: int) -> tuple[float, float]:
    """Variance and third cumulant of an outcome as far as is known."""
    memory = state.memory
    if state.arms.pulls[arm] > 0:
        return memory.beliefs[arm, side, SPREAD], memory.beliefs[arm, side, THIRD]
    mean, dispersion = memory.common[side, MEAN], memory.common[side, DISPERSION]
    _, span = span_of(state, lows, arm, side)
    spread = dispersion * span * span * mean * (1.0 - mean)
    return spread, dispersion * span * (1.0 - 2.0 * mean) * spread


@kernel
def evidence(state: State, lows: tuple[float, ...], prices: Floats, level: float, arm: int) -> float:
    """How much speaks against an arm:  n KL  of what is believed from the nearest belief that is worth the level.

    The value  mu - lam.rho  of an arm is short of the level by g. With A the variance of the belief about it and S the
    third cumulant,  x = g^2 / (2 max(A + g S / (3 A), A / 10)):  the normal divergence, corrected for skew. The prior
    counts as evidence of its strength.
    """
    gap = value_gap(state, lows, prices, level, arm)
    if gap <= 0.0:
        return 0.0
    common, pulls = state.memory.common, state.arms.pulls[arm]
    spread, third = spread_of(state, lows, arm, 0)
    weight = 1.0 / (pulls + common[0, STRENGTH])
    spread, third = spread * weight, third * weight * weight
    for d in range(len(state.resources)):
        cost_spread, cost_third = spread_of(state, lows, arm, 1 + d)
        weight = prices[d] / (pulls + common[1 + d, STRENGTH])
        spread += prices[d] * weight * cost_spread - 2.0 * weight * state.memory.covariances[arm, d]
        third -= prices[d] * weight * weight * cost_third
    if spread <= 0.0:
        return 0.0
    return float(0.5 * gap * gap / max(spread + third * gap / (3.0 * spread), 0.1 * spread))


@kernel
def money_factor(state: State, cost: float, d: int) -> float:
    """Rounds whose income a cost takes, 1 at least."""
    return max(1.0, cost / state.rate[d]) if state.rate[d] > 0.0 else 1.0


@kernel
def experience(state: State, arm: int) -> float:
    """Log of the rounds whose income the pulls of an arm took."""
    clocks = state.memory.clocks
    return float(clocks[arm, LOG_PULLS] + clocks[arm, LOG_MONEY])


@kernel
def index_of(params: Params, state: State, prices: Floats, level: float, rival: int, arm: int) -> float:
    """The index of an arm against a rival in the base; infinite where it is out of the question.

    x + min(x, 1.5) + 1.15 log n - 0.7 + log(N / n) - rise 50 / (N + 50) max(log n_r - 7, 0):  Honda and Takemura's
    index with what was measured to do better at small n. An arm that has had as much as its rival is not explored, nor
    one that the headroom does not cover, unless one pull takes no more than a share of the income so far.
    """
    clocks, resources = state.memory.clocks, state.resources
    extra = params.rise * max(clocks[rival, LOG_PULLS] - EXPERIENCED, 0.0)
    factor, index = 1.0, -extra
    if state.arms.pulls[arm] == 0:
        for d in range(len(resources)):
            factor = max(factor, money_factor(state, believed_cost(state, params.lows, arm, d), d))
        money = math.log(factor)
    else:
        if experience(state, arm) >= experience(state, rival):
            return math.inf
        money = clocks[arm, LOG_MONEY]
        index = EXPONENT * clocks[arm, LOG_PULLS] - SHIFT - clocks[arm, FEWNESS] * extra
    if not affords(state, arm):
        for d in range(len(resources)):
            top = state.largest[arm, d]
            if state.headroom[d] < top:
                if top > SHARE * state.rate[d] * state.clock.t:
                    return math.inf
                factor = max(factor, money_factor(state, top, d))
        money = math.log(factor)
    x = evidence(state, params.lows, prices, level, arm)
    return index + money + x + min(x, STEEPNESS)


@kernel
def least_index(params: Params, state: State, base: Base) -> int:
    """The arm outside the base with the smallest index, if that is below the experience of its rival; else -1."""
    count = state.arms.pulls.size
    rival = base.expensive if base.room or base.cheap == count else base.cheap
    prices = program_in(state.scratch, state.resources).prices
    prices[0] = base.price
    paced = base.room and base.expensive != base.cheap and base.cheap < count
    best, best_index = -1, experience(state, rival)
    for i in range(count):
        if i in (base.expensive, base.cheap):
            continue
        index = index_of(params, state, prices, base.level, rival, i)
        if index < best_index:
            # A cheap arm is tried in the rounds of the cheap one, as if it were that.
            own = paced and state.arms.pulls[i] > 0 and state.scratch.costs[0, i] <= state.rate[0]
            if not own or state.headroom[0] < headroom_for(state, base.expensive, i):
                best, best_index = i, index
    return best


@kernel
def explore(state: State, lows: tuple[float, ...], base: Base, arm: int) -> Decision:
    """Pull an arm to learn of it, or save up for it with the cheap arm of the base; the guard's reason for neither."""
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
    return Decision(SKIP, GUARD, arm)


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


@kernel
def choose_with_one(params: Params, state: State) -> Decision:
    """`choose` with one resource."""
    base = find_pair(state)
    arm = least_index(params, state, base)
    if arm >= 0:
        decision = explore(state, params.lows, base, arm)
        if decision.reason != GUARD:
            return decision
    return pace_base(state, base)


@kernel
def due_or_largest(state: State, due: int) -> int:
    """The arm of the base that is due; where none is, the one with the largest part in it, -1 if there are none."""
    program, arms = program_in(state.scratch, state.resources), state.arms.pulls.size
    if due < arms and state.arms.pulls[due] > 0:
        return due
    found, most = -1, 0.0
    for r in range(program.basis.size):
        member = program.basis[r]
        if member < arms and program.amounts[r] > most and state.arms.pulls[member] > 0:
            found, most = member, program.amounts[r]
    return found


@kernel
def is_in_base(state: State, arm: int) -> bool:
    """Whether an arm is a member of the base in the scratch arrays."""
    basis = program_in(state.scratch, state.resources).basis
    found = False
    for r in range(basis.size):
        if basis[r] == arm:
            found = True
    return found


@kernel
def save_up(state: State, lows: tuple[float, ...], arm: int) -> bool:
    """Raise the needed headroom to what a pull of an arm to explore needs; says whether it is not there yet.

    Where the arm costs more than the rate the base's own reserve must be left after the pull.
    """
    program, steering = program_in(state.scratch, state.resources), steering_in(state.scratch, state.resources)
    short = False
    for d in range(len(state.resources)):
        want = state.largest[arm, d]
        if believed_cost(state, lows, arm, d) > state.rate[d]:
            want += max(steering.needed[d] - largest_in_base(program, state.largest, d), 0.0)
        want = min(want, state.cap[d])
        if state.headroom[d] < want:
            short = True
            steering.needed[d] = max(steering.needed[d], want)
    return short


@kernel
def choose_with_several(params: Params, state: State) -> Decision:
    """`choose` with several resources: the base is steered as in steering.py, and its prices judge the other arms."""
    find_base(state, state.memory.spreads)
    program, count = program_in(state.scratch, state.resources), state.arms.pulls.size
    decision = follow_base(state)
    rival = due_or_largest(state, decision.tag)
    if rival < 0:
        return decision
    level = program.prices[len(state.resources)]
    best, best_index = -1, experience(state, rival)
    for i in range(count):
        if not is_in_base(state, i):
            index = index_of(params, state, program.prices, level, rival, i)
            if index < best_index:
                best, best_index = i, index
    if best < 0:
        return decision
    if not save_up(state, params.lows, best) and affords(state, best):
        return Decision(best, EXPLORED, best)
    decision = follow_base(state)
    return Decision(decision.arm, SAVING, best) if decision.reason == PACED else decision


@kernel
def choose_for(params: Params, state: State, resources: tuple[int, ...]) -> Decision:
    """`choose`; the number of resources is a constant for the compiler, which drops the other branch."""
    if fill_centres(state) == 0:
        first = first_arm(state)
        return Decision(first, EXPLORED, first)
    if len(resources) == 1:
        return choose_with_one(params, state)
    return choose_with_several(params, state)


def choose(params: Params, state: State) -> Decision:
    """An arm whose index is below its rival's experience, else the base of the centres, paced."""
    return choose_for(params, state, state.resources)


def commit(params: Params, state: State, decision: Decision) -> None:
    """Book the shares of the base; a pull made while saving up is one of the base."""
    reason = PACED if decision.reason == SAVING else decision.reason
    remember_base(state, Decision(decision.arm, reason, decision.tag), state.resources)


def learn(params: Params, state: State, decision: Decision, reward: float, cost: Floats) -> None:
    """Renew what is believed, and the clocks of the arm that was pulled."""
    arm = decision.arm
    if 0 <= arm < state.arms.pulls.size:
        take_in(state, params.lows, beliefs_in(state.memory), arm, reward, cost, state.resources)
        pulls, clocks, factor = state.arms.pulls[arm], state.memory.clocks, 1.0
        for d in range(len(state.resources)):
            factor = max(factor, money_factor(state, state.memory.beliefs[arm, 1 + d, CENTRE], d))
        clocks[arm, LOG_PULLS], clocks[arm, LOG_MONEY] = math.log(pulls), math.log(factor)
        clocks[arm, FEWNESS] = FEW / (pulls * factor + FEW)
        learn_spreads(state, decision, state.resources)


@dataclass(frozen=True, kw_only=True)
class IndexPacer(Policy):
    """Play the best base of what is believed; try another arm when little speaks against it, for what was seen of it.

    >>> IndexPacer()
    IndexPacer(rise=1.0)
    """

    rise: float = 1.0

    name = "index"
    allocates, tag_is_arm = False, True
    reasons = (*REASONS, "explored: little speaks against the arm", "saving up for an arm to explore")
    choose = staticmethod(choose)
    commit = staticmethod(commit)
    learn = staticmethod(learn)

    def __post_init__(self) -> None:
        checks.real("rise of index", self.rise, 0)

    def params(self, setting: Setting) -> tuple[Any, ...]:
        return Params(float(self.rise), setting.lows)

    def new_memory(self, arms: int, resources: int) -> Memory:
        return Memory(*new_beliefs(arms, resources), np.zeros((arms, 3)), *no_base(arms, resources))

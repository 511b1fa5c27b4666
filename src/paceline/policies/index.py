"""The index pacer: the best base of what is believed, and an arm outside it whenever its index says so."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paceline import checks
from paceline.kernels.hull import best_base
from paceline.kernels.jit import kernel
from paceline.kernels.state import GUARD, SKIP, Decision, State
from paceline.policies.common_prior import CENTRE, Beliefs, Lows, is_known, new_beliefs, pairs, renew_arm, take_in
from paceline.policies.drawn_base import EXPLORED, steer_drawn
from paceline.policies.edge import cheaper_neighbour, observed_squares, pace_on_edge, seems_on_edge
from paceline.policies.imed import believed_cost, has_earned_nothing, index_of, learn_clock, pulls_made, rival_of
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
    room_beside,
)
from paceline.policies.policy import Policy, Setting
from paceline.policies.randomised import propensity_of, randomise
from paceline.policies.score_draws import new_moments, renew_moments
from paceline.policies.steering import commit_base, no_base, renew_spreads

SAVING, RANDOM = EXPLORED + 1, EXPLORED + 2

Floats = npt.NDArray[np.float64]


class Params(NamedTuple):
    """Numbers for the kernels."""

    lows: tuple[float, ...]  # the smallest cost in each resource: 0, or -1 where pulls may refill it
    rise: float
    epsilon: float


class Memory(NamedTuple):
    """Beliefs about the arms, the clocks of the index with one resource, and what draws need with several."""

    beliefs: Floats  # (K, 1 + D, 3) and so on: see `Beliefs`
    parts: Floats
    joint: Floats
    common: Floats
    shared: Floats
    renewed: Floats
    known: Floats
    clocks: Floats  # (K, 3) experience with the arms, see imed.py
    moments: Floats  # (K, 1 + D, 3 + D) what draws are made of, see score_draws.py; empty with one resource
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


# The base.


@kernel
def fill_centres(state: State) -> int:
    """The centres into the scratch arrays; says how many arms have one.

    An arm of which no reward or no cost is known is in no base. But as long as no reward of any arm is known, a cost is
    enough: then all rewards stand at the common mean, and costs say which arms can be paid for.
    """
    rewards, costs, beliefs = state.scratch.rewards, state.scratch.costs[0], state.memory.beliefs
    tried, paid = 0, 0
    for i in range(rewards.size):
        rewards[i], costs[i] = 0.0, 1.0
        if is_known(state, i, 1):
            paid += 1
            if is_known(state, i, 0):
                rewards[i], costs[i] = beliefs[i, 0, CENTRE], beliefs[i, 1, CENTRE]
                tried += 1
    if tried > 0 or paid == 0:
        return tried
    for i in range(rewards.size):
        if is_known(state, i, 1):
            rewards[i], costs[i] = beliefs[i, 0, CENTRE], beliefs[i, 1, CENTRE]
    return paid


@kernel
def first_arm(state: State) -> int:
    """The arm to begin with: the one with the smallest largest cost, or, of those now affordable, the least pending."""
    first = 0
    for i in range(1, state.pending.size):
        if state.largest[i, 0] < state.largest[first, 0]:
            first = i
    for i in range(state.pending.size):
        if affords(state, i) and state.pending[i] < state.pending[first]:
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
    expensive, cheap = best_base(rewards, costs, rate, state.scratch.members)
    price = base_price(rewards, costs, expensive, cheap)
    level = rewards[cheap] - price * costs[cheap] if cheap < rewards.size else 0.0
    if expensive == cheap:
        most = state.largest[expensive, 0] if expensive < rewards.size else 0.0
        needed = fit_stock(state, 0, 2.0 * most - rate, most)
    else:
        needed = headroom_for(state, expensive, cheap)
    return Base(expensive, cheap, price, level, needed, room_beside(state, cheap) >= needed)


# Exploring.


@kernel
def least_index(params: Params, state: State, base: Base) -> int:
    """The arm outside the base with the smallest index, if that is below the experience of its rival; else -1."""
    count = state.arms.pulls.size
    due = base.expensive if base.room or base.cheap == count else base.cheap
    rival = rival_of(state, params.rise, due)
    paced = base.room and base.expensive != base.cheap and base.cheap < count
    best, best_index = -1, rival.experience
    for i in range(count):
        if i in (base.expensive, base.cheap):
            continue
        index = index_of(state, params.lows, base.price, base.level, rival, i, best_index)
        if index < best_index:
            # A cheap arm is explored in the rounds of the cheap one, as if it were that.
            as_cheap = paced and state.arms.pulls[i] > 0 and state.scratch.costs[0, i] <= state.rate[0]
            if not as_cheap or state.outlook[0] < headroom_for(state, base.expensive, i):
                best, best_index = i, index
    return best


@kernel
def look_around(state: State) -> Decision:
    """Where nothing can be paid for in the long run: the arm with the fewest pulls, if it had at most log t; else none.

    That is so without income, as far as no arm is known to refill the stock. Which one does is not found otherwise.
    """
    count = state.pending.size
    found, fewest = count, math.floor(math.log(state.clock.t)) + 1.0
    for i in range(count):
        if pulls_made(state, i) < fewest and affords(state, i):
            found, fewest = i, float(pulls_made(state, i))
    return Decision(found, EXPLORED if found < count else SINGLE, found)


# Saving and pacing.


@kernel
def explore(state: State, lows: Lows, base: Base, arm: int) -> Decision:
    """Pull an arm to learn of it, or save up for it with the cheap arm of the base; the guard's reason for neither."""
    count, rate, room, want = state.arms.pulls.size, state.rate[0], state.headroom[0], state.largest[arm, 0]
    if believed_cost(state, lows, arm) > rate and base.cheap < count:
        room = state.outlook[0]
        if base.expensive == base.cheap:
            want += state.largest[base.cheap, 0] - rate
        else:
            want = headroom_for(state, arm, base.cheap)
    if room >= want and affords(state, arm):
        return Decision(arm, EXPLORED, arm)
    if base.cheap == count:
        return Decision(count, SAVING, arm)
    if affords(state, base.cheap) and state.scratch.costs[0, base.cheap] < rate:
        return Decision(base.cheap, SAVING, arm)
    return Decision(SKIP, GUARD, arm)


@kernel
def edge_arm(state: State, arm: int) -> int:
    """The arm to pull if this one costs just the rate, as far as can be told; else -1.

    Prices of arms that have earned nothing would say which of two kinds of nothing is worth waiting for.
    """
    n, squares = observed_squares(state, arm)
    if not has_earned_nothing(state) and seems_on_edge(state, state.rate[0] - state.scratch.costs[0, arm], n, squares):
        cheaper = cheaper_neighbour(state, arm)
        return pace_on_edge(state, arm, cheaper, headroom_for(state, arm, cheaper), squares / n)
    return -1


@kernel
def pace_base(state: State, base: Base) -> Decision:
    """The arm of the base that is due; a base on the edge is paced between its neighbours on the hull.

    What stands in for an arm that the headroom does not cover costs less than comes in. Else it would be pulled again
    and again, and the headroom would never cover the other.
    """
    count, single = state.arms.pulls.size, base.expensive == base.cheap
    if base.cheap < count:
        due = edge_arm(state, base.cheap)
        if due >= 0:
            return Decision(due, PACED, base.cheap)
    if not single:
        due = edge_arm(state, base.expensive)
        if due >= 0:
            return Decision(due, PACED, base.expensive)
    arm = base.expensive if single or base.room else base.cheap
    if arm == count or affords(state, arm):
        other = base.cheap if arm == base.expensive else base.expensive
        return Decision(arm, SINGLE if single else PACED, other)
    return Decision(best_affordable(state, base.price, state.rate[0]), STAND_IN, arm)


@kernel
def choose_for(params: Params, state: State, resources: tuple[int, ...]) -> Decision:
    """`choose`; the number of resources is a constant for the compiler, which drops the other branch."""
    if len(resources) > 1:
        return steer_drawn(state, params.lows)
    if fill_centres(state) == 0:
        first = first_arm(state)
        return Decision(first, EXPLORED, first)
    base = find_base(state)
    if base.expensive == state.pending.size:  # the null arm alone
        return look_around(state)
    arm = least_index(params, state, base)
    if arm >= 0:
        decision = explore(state, params.lows, base, arm)
        if decision.reason != GUARD:
            return decision
    return pace_base(state, base)


def choose(params: Params, state: State) -> Decision:
    """An arm whose index is below its rival's experience, else the base of the centres, paced; or any, by chance.

    With several resources, the arm that is due under the best base of drawn means.
    """
    wanted = choose_for(params, state, state.resources)
    return randomise(state, params.epsilon, RANDOM, wanted) if params.epsilon > 0.0 else wanted


@kernel
def beliefs_in(memory: Memory) -> Beliefs:
    """What is believed."""
    m = memory
    return Beliefs(m.beliefs, m.parts, m.joint, m.common, m.shared, m.renewed, m.known)


@kernel
def follow_beliefs(state: State, arm: int, has_renewed_all: bool, resources: tuple[int, ...]) -> None:
    """Renew what follows from the beliefs: the clock of an arm, or with several resources what draws are made of."""
    if len(resources) == 1:
        learn_clock(state, arm)
    else:
        renew_spreads(state, arm, resources)
        for i in range(state.pending.size):
            if has_renewed_all or i == arm:
                renew_moments(state, beliefs_in(state.memory), i, resources)


@kernel
def renew_for(params: Params, state: State, arm: int, resources: tuple[int, ...]) -> None:
    """`renew`; see `choose_for`."""
    has_renewed_all = renew_arm(state, params.lows, beliefs_in(state.memory), arm, False, resources)
    follow_beliefs(state, arm, has_renewed_all, resources)


def renew(params: Params, state: State, arm: int) -> None:
    """Renew what is believed of an arm of which a part of an outcome was told."""
    renew_for(params, state, arm, state.resources)


@kernel
def learn_for(params: Params, state: State, arm: int, reward: float, cost: Floats, resources: tuple[int, ...]) -> None:
    """`learn`; see `choose_for`."""
    if 0 <= arm < state.arms.pulls.size:
        has_renewed_all = take_in(state, params.lows, beliefs_in(state.memory), arm, reward, cost, resources)
        follow_beliefs(state, arm, has_renewed_all, resources)


def learn(params: Params, state: State, decision: Decision, reward: float, cost: Floats) -> None:
    """Renew what is believed, and what follows from it."""
    learn_for(params, state, decision.arm, reward, cost, state.resources)


@dataclass(frozen=True, kw_only=True)
class IndexPacer(Policy):
    """Play the best base of what is believed, and explore the arms against which too little speaks. Nothing to tune.

    Each round, with lam and y the price of budget and the level of the best base (j, k) of the believed means:

    1. Beliefs. Each arm's mean reward and mean cost are shrunk to means common to all arms, with the strength of two
       events; costs are in units of the arm's own largest cost. See common_prior.py for the formulas.
    2. Index. The rival is the arm of the base whose turn it is. Of each other arm i, with n pulls that took the income
       of N = n max(1, cost / c) rounds and x = n KL the evidence against its being worth the level (`evidence`),
           index = x + min(x, 1.5) + 1.15 log n - 0.7 + crowd + log(N / n) - rise 50 / (N + 50) max(log n_r - 7, 0).
       The arm with the smallest index is explored if that is below log N_r, the experience of the rival. ``crowd`` is 0
       up to eight arms; with K of them, twice log(K / 8) at first and once in the end (`crowd_of`). Where rewards are
       rare, pulls teach little: log n, log n_r and log N_r are less then (`rarity_of`). As an arm may be unlike all
       others, its index is at most  log(32 (K - 1)) + log(N / n) + 2 n,  less the same. As long as no arm has earned
       anything, x is 0. Costs that no reward could pay for speak against an arm by their logarithm
       (`evidence_of_costs`).
    3. Saving. An arm that the headroom does not cover is saved up for with the cheap arm of the base, but only if one
       pull takes at most 1/32 of the income so far: nothing is given up for an arm that was lucky twice.
    4. Pacing. Else the base is paced, as by `ThompsonPacer`; one that costs just the rate is kept between its
       neighbours on the hull (edge.py). Where no arm can be paid for in the long run, as without income until an arm is
       known to refill the stock, each arm that can be paid for now is pulled about log t times, and else none.

    So it is deterministic. Pulls whose outcome is still to come count in n as if they had brought the mean, so that
    late news does not make it ask for the same arm again and again.

    All that is for one resource. With several, the means are drawn anew in each round, for an index at fixed prices was
    measured to lose twice as much there. The draws follow the beliefs of part 1, with the covariances of the reward and
    all costs of a pull (score_draws.py), and the best base of what was drawn is steered as by `ThompsonPacer`. An arm
    that the headroom of these bases does not cover is saved up for within the share of part 3, until it has had
    log(t) / 4  pulls.

    With ``epsilon`` above 0 a share of the rounds is left to chance, so that every arm has a known probability; a live
    decision then has its ``propensity`` (randomised.py). Regret grows by that share of what an arm at random loses.

    The index is IMED's (Honda, Takemura 2015) at the prices of the base; see imed.py. ``rise`` shortens the tail and
    costs a little of the mean.

    Guarantee: the anytime constraint, by the guard, on every path. Its regret is measured, not proved: see
    docs/policies.md.

    >>> IndexPacer()
    IndexPacer(rise=1.0, epsilon=0.0)
    """

    rise: float = 1.0
    epsilon: float = 0.0

    name = "index"
    allocates, tag_is_arm = False, True
    reasons = (
        *REASONS,
        "explored: too little speaks against the arm",
        "saving up for an arm to explore",
        "left to chance",
    )
    by_chance, adds_up = RANDOM, True
    choose = staticmethod(choose)
    commit = staticmethod(commit_base)
    learn = staticmethod(learn)
    renew = staticmethod(renew)

    def __post_init__(self) -> None:
        checks.real("rise of index", self.rise, 0)
        checks.real("epsilon of index", self.epsilon, 0, 1)

    def params(self, setting: Setting) -> tuple[Any, ...]:
        return Params(setting.lows, float(self.rise), float(self.epsilon))

    def propensity(self, is_pull: bool, is_wanted: bool, affordable: int, arms: int) -> float | None:
        if self.epsilon == 0.0:
            return None
        return propensity_of(self.epsilon, is_pull, is_wanted, affordable)

    def own_sums(self, resources: int) -> Mapping[str, tuple[str, int]]:
        if resources == 1:
            return {"joint": ("joint", 0)}
        return {f"joint {one} {other}": ("joint", pair) for pair, (one, other) in enumerate(pairs(resources))}

    def without_own_sum(self, name: str, pulls: int, reward: float, costs: Floats) -> float:
        if pulls == 0:
            return 0.0
        sums, names = (reward, *costs), list(self.own_sums(len(costs)))
        first, second = pairs(len(costs))[names.index(name)]
        return float(sums[first] * sums[second] / pulls)  # as if they were independent

    def new_memory(self, arms: int, resources: int) -> Memory:
        beliefs, clocks, moments = new_beliefs(arms, resources), np.zeros((arms, 3)), new_moments(arms, resources)
        return Memory(*beliefs, clocks, moments, *no_base(arms, resources))

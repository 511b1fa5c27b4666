"""Primal learners: which arm to play against prices, for policies that play a game of payoffs  r - sum of price x.

The null arm, whose payoff is 0, is one of the A = K + 1 actions. The learners for adversarial payoffs keep a weight per
action and draw; they know of an action only what it paid when it was played, divided by the probability with which it
was. That probability travels with the decision, as its tag: when the outcome is known it may be another one.

    exp3-six   loss l of the action played: w <- (1 - s) w exp(-eta l / (p + eta / 2)) + s mean of all;  s = 1/T,
               eta = sqrt(2 ln A / (A T)).  Neu, "Explore no more" (2015)
    exp3.p     gain u: w_a <- w_a exp(g / (3 A) (1{played} u / p_a + alpha / (p_a sqrt(A T)))),
               p = (1 - g) w / sum of w + g / A,  g = min(3/5, 2 sqrt(0.6 A ln A / T)),
               alpha = 2 sqrt(ln(A T / delta)).
               Auer, Cesa-Bianchi, Freund, Schapire, "The nonstochastic multiarmed bandit problem" (2002)
    square-cb  empirical payoffs L: p_a = 1 / (A + gamma (L_best - L_a)), the rest to the best;
               gamma = min b sqrt(T / ((D + 1) ln T)), b in largest costs.  Foster, Rakhlin, "Beyond UCB" (2020)
    ucb        the largest  min(m + e, 1) - sum of price max(x - e, lowest cost),  e = sqrt(2 ln t / n)
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from paceline.kernels.estimates import first_unpulled, upper
from paceline.kernels.jit import kernel
from paceline.kernels.random import decision_uniform
from paceline.kernels.state import Decision, State
from paceline.policies.dual_learners import DualParams, price_of
from paceline.policies.long_run import tightest_rate
from paceline.policies.policy import Setting

Floats = npt.NDArray[np.float64]

PRIMALS = ("ucb", "exp3-six", "exp3.p", "square-cb")
UCB, EXP3_SIX, EXP3_P, SQUARE_CB = range(4)
DRAWN, BEST = 2, 3  # reasons; 1 is that of an outcome from elsewhere, see lagrangian.py
WHOLE = 2.0**62  # the tag of probability 1
FAINTEST = 2.0**-1000  # the smallest weight: one of 0 could never grow again


class PrimalParams(NamedTuple):
    """Numbers for a primal learner."""

    learner: int
    rate: float  # eta, g or gamma; of ucb what divides the radius
    share: float  # of exp3-six: s; of exp3.p: alpha / sqrt(A T)


def primal_params(learner: int, setting: Setting, horizon: int, step: float, delta: float) -> PrimalParams:
    """The published constants, the learning rate times ``step``."""
    actions = setting.arms + 1
    log_actions = math.log(actions)
    if learner == EXP3_SIX:
        return PrimalParams(learner, step * math.sqrt(2.0 * log_actions / (actions * horizon)), 1.0 / horizon)
    if learner == EXP3_P:
        mixing = min(0.6, step * 2.0 * math.sqrt(0.6 * actions * log_actions / horizon))
        alpha = 2.0 * math.sqrt(math.log(actions * horizon / delta))
        return PrimalParams(learner, mixing, alpha / math.sqrt(actions * horizon))
    if learner == SQUARE_CB:
        errors = (setting.resources + 1) * math.log(max(horizon, 2))  # of the regressions, over K
        return PrimalParams(learner, step * tightest_rate(setting, horizon) * math.sqrt(horizon / errors), 0.0)
    return PrimalParams(learner, step, 0.0)


@kernel
def play_against(params: PrimalParams, prices: DualParams, state: State, weights: Floats, duals: Floats) -> Decision:
    """The decision of the learner at these prices."""
    if params.learner == EXP3_SIX:
        return draw_weighted(state, weights, 0.0)
    if params.learner == EXP3_P:
        return draw_weighted(state, weights, params.rate)
    if params.learner == SQUARE_CB:
        return draw_by_gaps(params, prices, state, duals)
    return highest_bound(params, prices, state, duals)


@kernel
def draw_weighted(state: State, weights: Floats, mixing: float) -> Decision:
    """An action by its weight, mixed with any action alike."""
    clock, last = state.clock, weights.size - 1
    total = 0.0
    for a in range(weights.size):
        total += weights[a]
    u = decision_uniform(clock.seed, clock.stream, clock.t)
    scale, floor = (1.0 - mixing) / total, mixing / weights.size
    for a in range(last):
        probability = scale * weights[a] + floor
        u -= probability
        if u < 0.0:
            return Decision(a, DRAWN, int(probability * WHOLE))
    return Decision(last, DRAWN, int((scale * weights[last] + floor) * WHOLE))


@kernel
def draw_by_gaps(params: PrimalParams, prices: DualParams, state: State, duals: Floats) -> Decision:
    """An action by how far its empirical payoff is behind the best one; an arm never pulled counts as the null arm."""
    clock, arms, payoffs = state.clock, state.arms, state.scratch.rewards
    null = payoffs.size
    best, most = null, 0.0
    for a in range(null):
        payoffs[a] = arms.reward_mean[a]
        for d in range(len(state.resources)):
            payoffs[a] -= price_of(prices, state, duals, d) * arms.cost_mean[a, d]
        if payoffs[a] > most:
            best, most = a, payoffs[a]
    u = decision_uniform(clock.seed, clock.stream, clock.t)
    rest = 1.0
    for a in range(null + 1):
        if a != best:
            payoff = payoffs[a] if a < null else 0.0
            probability = 1.0 / (null + 1 + params.rate * (most - payoff))
            rest -= probability
            u -= probability
            if u < 0.0:
                return Decision(a, DRAWN, int(probability * WHOLE))
    return Decision(best, DRAWN, int(max(rest, 0.0) * WHOLE))


@kernel
def highest_bound(params: PrimalParams, prices: DualParams, state: State, duals: Floats) -> Decision:
    """Each arm once, then the action with the highest upper bound of its payoff; the null arm only if it beats all."""
    arms, certain = state.arms, int(WHOLE)
    untried = first_unpulled(arms)
    if untried >= 0:
        return Decision(untried, BEST, certain)
    root = math.sqrt(2.0 * math.log(state.clock.t)) / params.rate
    best, most = arms.pulls.size, 0.0
    for a in range(arms.pulls.size):
        radius = root * arms.width[a]
        bound = upper(arms.reward_mean[a], radius)
        for d in range(len(state.resources)):
            low = prices.lows[d]
            cost = max(arms.cost_mean[a, d] - (prices.scales[d] - low) * radius, low)
            bound -= price_of(prices, state, duals, d) * cost
        if bound > most:
            best, most = a, bound
    return Decision(best, BEST, certain)


@kernel
def learn_payoff(params: PrimalParams, weights: Floats, decision: Decision, gain: float) -> None:
    """Take in the payoff of an action on the scale of [0, 1]. The other two learners know it from the estimates."""
    if params.learner == EXP3_SIX:
        learn_with_shares(params, weights, decision, gain)
    elif params.learner == EXP3_P:
        learn_with_bonus(params, weights, decision, gain)


@kernel
def learn_with_shares(params: PrimalParams, weights: Floats, decision: Decision, gain: float) -> None:
    """EXP3-SIX. The weights add up to 1."""
    estimate = (1.0 - gain) / (decision.tag / WHOLE + 0.5 * params.rate)
    weights[decision.arm] *= math.exp(-params.rate * estimate)
    total = 0.0
    for a in range(weights.size):
        total += weights[a]
    kept, shared = (1.0 - params.share) / total, params.share / weights.size
    for a in range(weights.size):
        weights[a] = kept * weights[a] + shared


@kernel
def learn_with_bonus(params: PrimalParams, weights: Floats, decision: Decision, gain: float) -> None:
    """EXP3.P. The weights add up to 1, and the bonus of each action is for the probability that it has now."""
    actions = weights.size
    total = 0.0
    for a in range(actions):
        total += weights[a]
    scale, floor, step = (1.0 - params.rate) / total, params.rate / actions, params.rate / (3.0 * actions)
    total = 0.0
    for a in range(actions):
        estimate = params.share / (scale * weights[a] + floor)
        if a == decision.arm:
            estimate += gain * WHOLE / decision.tag
        weights[a] *= math.exp(step * estimate)
        total += weights[a]
    for a in range(actions):
        weights[a] = max(weights[a] / total, FAINTEST)


def new_weights(learner: int, arms: int) -> Floats:
    """All actions alike, the null arm last; nothing for a learner that goes by means."""
    return np.full(arms + 1, 1.0 / (arms + 1) if learner in (EXP3_SIX, EXP3_P) else 0.0)

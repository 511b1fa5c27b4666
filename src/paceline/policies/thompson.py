"""The Thompson pacer: posterior sampling with the empirical variance, and a buffer of headroom."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paceline import checks
from paceline.errors import InvalidValue
from paceline.kernels.estimates import Known, known_costs, known_rewards, variance
from paceline.kernels.hull import best_mix
from paceline.kernels.jit import kernel
from paceline.kernels.normal import normal
from paceline.kernels.random import DECISION, block, half_uniforms
from paceline.kernels.state import Decision, State
from paceline.policies.pacing import REASONS, pace
from paceline.policies.policy import Policy, Setting
from paceline.policies.steering import commit_base, no_base, renew_spreads, steer_base

NORMALS, COINS, ONE = np.uint64(0), np.uint64(1), np.uint64(1)
ALIKE = 0.02  # dispersion below which outcomes count as all alike

Floats = npt.NDArray[np.float64]


class Params(NamedTuple):
    """Numbers for the kernels."""

    prior: float
    every_arm: bool
    lows: tuple[float, ...]  # the smallest cost in each resource: 0, or -1 where pulls may refill it


class Memory(NamedTuple):
    """Beliefs about the mean reward of each arm (row 0) and its mean costs: centre, width and skew."""

    beliefs: Floats  # (K, 1 + D, 3)
    credit: Floats  # (K,) and so on: see steering.py; not used with one resource
    in_base: npt.NDArray[np.bool_]
    prices: Floats
    spreads: Floats


@kernel
def within(value: float) -> float:
    """A number cut to [0, 1], where means live."""
    return float(min(max(value, 0.0), 1.0))


@kernel
def belief_quantile(beliefs: Floats, arm: int, side: int, z: float) -> float:
    """The z-quantile of a belief,  centre + width z + skew (z^2 - 1),  cut to [0, 1]."""
    value = beliefs[arm, side, 0] + beliefs[arm, side, 1] * z + beliefs[arm, side, 2] * (z * z - 1.0)
    return within(value)


@kernel
def draw_beliefs(params: Params, state: State) -> None:
    """Means drawn from the beliefs into the scratch arrays; half of the arms, by toss, stand at the centre."""
    clock, beliefs = state.clock, state.memory.beliefs
    coins, first, second, third, fourth = np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0)
    for i in range(state.arms.pulls.size):
        if i % 64 == 0:
            coins, _, _, _ = block(clock.seed, clock.stream, np.uint64(clock.t), np.uint64(i), DECISION, COINS)
        if i % 4 == 0:
            first, second, third, fourth = block(
                clock.seed, clock.stream, np.uint64(clock.t), np.uint64(i), DECISION, NORMALS
            )
        reward, cost = beliefs[i, 0, 0], beliefs[i, 1, 0]
        if params.every_arm or coins & ONE:
            u, v = half_uniforms(first)
            reward, cost = belief_quantile(beliefs, i, 0, normal(u)), belief_quantile(beliefs, i, 1, normal(v))
        state.scratch.rewards[i] = reward
        state.scratch.costs[0, i] = params.lows[0] + (1.0 - params.lows[0]) * cost
        first, second, third = second, third, fourth
        coins = coins >> ONE


@kernel
def draw_normals(state: State, every_arm: bool) -> None:
    """A normal for each arm into the scratch rewards, two from a word; half of the arms, by toss, get a NaN instead."""
    clock, normals = state.clock, state.scratch.rewards
    coins, words = np.uint64(0), (np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0))
    u, v = 0.5, 0.5
    for i in range(normals.size):
        if i % 64 == 0:
            coins, _, _, _ = block(clock.seed, clock.stream, np.uint64(clock.t), np.uint64(i), DECISION, COINS)
        if i % 8 == 0:
            words = block(clock.seed, clock.stream, np.uint64(clock.t), np.uint64(i), DECISION, NORMALS)
        if i % 2 == 0:
            u, v = half_uniforms(words[0])
            words = (words[1], words[2], words[3], words[0])
        else:
            u = v
        normals[i] = normal(u) if every_arm or coins & ONE else math.nan
        coins = coins >> ONE


@kernel
def draw_scores(params: Any, state: State) -> None:
    """Means for several resources into the scratch arrays, from ONE normal per arm.

    At prices lam the score of an arm is  mu - lam.rho.  The likeliest way for it to move by z of its deviations moves
    each mean by its share of the variance:  g_0 = w_0 / s  for the reward,  g_i = -lam_i w_i / s  for cost i,  with
    s^2 = w_0^2 + sum (lam_i w_i)^2;  the mean becomes  centre + w g z + skew g^2 (z^2 - 1).
    """
    beliefs, prices, scratch = state.memory.beliefs, state.memory.prices, state.scratch
    draw_normals(state, params.every_arm)
    for i in range(state.arms.pulls.size):
        z, total = scratch.rewards[i], beliefs[i, 0, 1] * beliefs[i, 0, 1]
        if math.isnan(z):
            scratch.rewards[i] = within(beliefs[i, 0, 0])
            for d in range(len(state.resources)):
                scratch.costs[d, i] = params.lows[d] + (1.0 - params.lows[d]) * within(beliefs[i, 1 + d, 0])
            continue
        for d in range(len(state.resources)):
            weight = prices[d] * (1.0 - params.lows[d]) * beliefs[i, 1 + d, 1]
            total += weight * weight
        inverse = 1.0 / math.sqrt(total) if total > 0.0 else 0.0
        scratch.rewards[i] = moved(beliefs, i, 0, inverse * beliefs[i, 0, 1], z)
        for d in range(len(state.resources)):
            span = 1.0 - params.lows[d]
            share = -prices[d] * span * inverse * beliefs[i, 1 + d, 1]
            scratch.costs[d, i] = params.lows[d] + span * moved(beliefs, i, 1 + d, share, z)


@kernel
def moved(beliefs: Floats, arm: int, side: int, share: float, z: float) -> float:
    """The mean that a belief gives when the score of the arm moves by z and the mean takes part with its share."""
    step = share * z
    value = beliefs[arm, side, 0] + beliefs[arm, side, 1] * step
    value += beliefs[arm, side, 2] * (step * step - share * share)
    return within(value)


@kernel
def choose_for(params: Params, state: State, resources: tuple[int, ...]) -> Decision:
    """`choose`; the number of resources is a constant for the compiler, which drops the other branch."""
    if len(resources) == 1:
        draw_beliefs(params, state)
        expensive, cheap, _ = best_mix(state.scratch.rewards, state.scratch.costs[0], state.rate[0])
        return pace(state, expensive, cheap)
    draw_scores(params, state)
    return steer_base(state, state.memory.spreads)


def choose(params: Params, state: State) -> Decision:
    """The best base for means drawn from the beliefs, paced by the headroom."""
    return choose_for(params, state, state.resources)


@kernel
def believe(params: Any, belief: Floats, known: Known) -> None:
    """Write the belief about a mean; where no outcome is known it is left as it was in the beginning."""
    if known.number == 0.0:
        return
    count = known.number + 1.0
    mean = known.total / known.number
    spread = variance(known.squares, mean, known.number)
    most = mean * (1.0 - mean)  # the variance of outcomes of 0 and 1 with this mean
    dispersion = spread / most if most > 0.0 else 0.0
    # Outcomes that were all alike say little of those not seen yet: one may be as far away as it can be.
    unseen = params.prior if dispersion > ALIKE else 1.0
    belief[0] = (known.total + 0.5) / count
    belief[1] = math.sqrt((spread + unseen / count) / count)
    belief[2] = dispersion * (1.0 - 2.0 * mean) / (3.0 * count)


@kernel
def renew_beliefs(params: Any, state: State, arm: int) -> None:
    """Renew the beliefs about an arm of which something was told; they follow from all that is known.

    But as long as the price of an arm is not known in every resource, what it earns is no reason to pull it.
    """
    arms, beliefs = state.arms, state.memory.beliefs
    if 0 <= arm < arms.pulls.size:
        is_priced = True
        for d in range(len(state.resources)):
            known = known_costs(arms, arm, d)
            if params.lows[d] < 0.0:  # beliefs are about (cost + 1) / 2, which is in [0, 1]
                squares = 0.25 * (known.squares + 2.0 * known.total + known.number)
                known = Known(known.number, 0.5 * (known.total + known.number), squares)
            believe(params, beliefs[arm, 1 + d], known)
            is_priced = is_priced and known.number > 0.0
        if is_priced:
            believe(params, beliefs[arm, 0], known_rewards(arms, arm))
        renew_spreads(state, arm, state.resources)


def renew(params: Params, state: State, arm: int) -> None:
    """What was told is in the estimates already."""
    renew_beliefs(params, state, arm)


def learn(params: Params, state: State, decision: Decision, reward: float, cost: Floats) -> None:
    """The outcome is in the estimates already."""
    renew_beliefs(params, state, decision.arm)


@dataclass(frozen=True, kw_only=True)
class ThompsonPacer(Policy):
    """Draw the means from what is known of them, take the best base for the draws, keep a small buffer of headroom.

    Each round t, with n_i known rewards of arm i and v_i their empirical variance (costs alike):

    1. For every arm toss a coin. Heads: draw its mean reward from  centre + width Z + skew (Z^2 - 1),  Z standard
       normal, cut to [0, 1]; tails: take the centre.
           centre = (sum + 1/2) / (n + 1),   width^2 = (v + a / (n + 1)) / (n + 1),
           skew   = D (1 - 2 mean) / (3 (n + 1)),   D = v / (mean (1 - mean)),
       with a = ``prior``, but a = 1 while D < 0.02: outcomes that were all alike say little of those not seen.
    2. Take the best base (j, k) for the draws at rate c. One arm: pull it.
    3. Pull j if the headroom is at least  2 - c + B,  else k, where  B = v / (2 d) log(1 + t d^2 / v)  with
       d = c - mean cost of k and v the variance of its cost (see pacing.py); if k is the null arm, pull j.

    The belief has the variance of the data, not the worst case, and where the data look like zeros and ones the skew
    of a Beta posterior (Cornish and Fisher's expansion). The coins save exploration that only repeats itself, and half
    of the random numbers; for plain bandits such coins are known not to spoil the logarithmic rate (Jin, Yang, Xiao,
    Xu, "Thompson sampling with less exploration is fast and optimal", ICML 2023). Untried arms need no rule of their
    own: their belief covers [0, 1].

    Guarantee: the anytime constraint, by the guard, on every path. No horizon, no cost gap and nothing to tune. Its
    regret is measured, not proved: see docs/policies.md.

    >>> ThompsonPacer()
    ThompsonPacer(prior=0.1, every_arm=False)
    """

    prior: float = 0.1
    every_arm: bool = False

    name = "thompson"
    allocates, tag_is_arm = False, True
    reasons = REASONS
    choose = staticmethod(choose)
    commit = staticmethod(commit_base)
    adds_up = True
    learn = staticmethod(learn)
    renew = staticmethod(renew)

    def __post_init__(self) -> None:
        checks.real("prior of thompson", self.prior, 0, above_low=True)
        if not isinstance(self.every_arm, bool):
            raise InvalidValue(f"every_arm of thompson must be true or false, got {self.every_arm!r}")

    def params(self, setting: Setting) -> tuple[Any, ...]:
        return Params(float(self.prior), self.every_arm, setting.lows)

    def new_memory(self, arms: int, resources: int) -> Memory:
        return Memory(np.tile([0.5, 1.0, 0.0], (arms, 1 + resources, 1)), *no_base(arms, resources))

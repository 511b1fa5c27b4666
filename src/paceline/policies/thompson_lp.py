"""Thompson sampling with a linear program, as others have published it."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from paceline import checks
from paceline.errors import InvalidValue
from paceline.kernels.estimates import known_costs, known_rewards
from paceline.kernels.jit import kernel
from paceline.kernels.random import DECISION, block, uniform
from paceline.kernels.state import Decision, State
from paceline.policies.long_run import stock_per_round
from paceline.policies.one_phase import horizon_of
from paceline.policies.optimism import Params, draw_from_mix
from paceline.policies.policy import Policy, Setting, learn_nothing

DRAWN = 1
FIRST_LANE = 1  # of the draws; the decision itself is drawn in lane 0
LOG_FOUR, ONE_PLUS_LOG_FIVE = 1.3862943611198906, 2.609437912434100


@kernel
def beta_attempt(a: float, b: float, u: float, v: float) -> float:
    """One attempt at a draw of Beta(a, b), a, b >= 1, from two uniforms; -1 when rejected, which is seldom.

    Algorithm BB of Cheng, "Generating beta variates with nonintegral shape parameters" (CACM 21, 1978), for a, b > 1;
    where one of them is 1 the distribution function is a power, and is inverted.
    """
    if b == 1.0:
        return float(u ** (1.0 / a))
    if a == 1.0:
        return float(1.0 - u ** (1.0 / b))
    low, high, whole = min(a, b), max(a, b), a + b
    slope = math.sqrt((whole - 2.0) / (2.0 * a * b - whole))
    # Beyond 700 the odds would overflow; the draw is 1 to the last bit long before.
    logit = min(slope * math.log(u / (1.0 - u)), 700.0)
    odds = low * math.exp(logit)
    z = u * u * v
    r = (low + 1.0 / slope) * logit - LOG_FOUR
    s = low + r - odds
    if s + ONE_PLUS_LOG_FIVE < 5.0 * z:
        log_z = math.log(z)
        if s < log_z and r + whole * math.log(whole / (high + odds)) < log_z:
            return -1.0
    return odds / (high + odds) if a == low else high / (high + odds)


@kernel
def posterior_draw(state: State, lane: int, total: float, known: float) -> float:
    """A mean drawn from Beta(1 + total, 1 + known - total), with the random numbers of this round and lane."""
    clock = state.clock
    a, b = max(1.0 + total, 1.0), max(1.0 + known - total, 1.0)  # rounding must not bring them below 1
    for attempt in range(1000):  # one of two is accepted with a probability above 0.8
        words = block(clock.seed, clock.stream, np.uint64(clock.t), np.uint64(lane), DECISION, np.uint64(attempt))
        drawn = beta_attempt(a, b, uniform(words[0]), uniform(words[1]))
        if drawn < 0.0:
            drawn = beta_attempt(a, b, uniform(words[2]), uniform(words[3]))
        if drawn >= 0.0:
            return drawn
    return a / (a + b)


@kernel
def draw_means(params: Params, state: State) -> None:
    """Mean rewards and costs drawn from their posteriors into the scratch arrays."""
    arms, scratch, lanes = state.arms, state.scratch, 1 + len(state.resources)
    for i in range(arms.pulls.size):
        lane = FIRST_LANE + i * lanes
        rewards = known_rewards(arms, i)
        scratch.rewards[i] = posterior_draw(state, lane, rewards.total, rewards.number)
        for d in range(len(state.resources)):
            low, costs = params.lows[d], known_costs(arms, i, d)
            total = (costs.total - low * costs.number) / (1.0 - low)  # of costs on the scale of [0, 1]
            scratch.costs[d, i] = low + (1.0 - low) * posterior_draw(state, lane + 1 + d, total, costs.number)


def choose(params: Params, state: State) -> Decision:
    """Draw the means, solve the program for them, draw an arm from its solution."""
    draw_means(params, state)
    drawn = draw_from_mix(params, state, state.resources)
    return Decision(drawn.arm, DRAWN, drawn.tag)


@dataclass(frozen=True, kw_only=True)
class ThompsonLP(Policy):
    """Draw the means from Beta posteriors, solve the linear program for the draws, draw an arm from its solution.

    Each round t, with n_i pulls of arm i that earned s_i and cost k_i in all:

    1. draw a mean reward from Beta(1 + s_i, 1 + n_i - s_i) and a mean cost from Beta(1 + k_i, 1 + n_i - k_i);
    2. solve  max m.pi  subject to  r.pi <= b  for the draws on the simplex with a null arm, and draw an arm from pi.
       The rate b is what is left for each round,  (c T - S_c) / (T - t + 1)  (``update=True``, the published TS-update,
       which needs the horizon), or c  (``update=False``, TS-fixed).

    Reference: Ferreira, Simchi-Levi, Wang, "Online network revenue management using Thompson sampling" (Operations
    Research 66, 2018), Algorithms 1 and 2, for arms in place of prices and resources in place of stock; here behind the
    guard. It shows what is new in `ThompsonPacer`: that draws from normals with the variance of the data, and paces by
    the headroom instead of drawing an arm.

    Guarantee: for a total budget, and for TS-fixed, Bayesian regret O(sqrt(K T log K)). Under the anytime guard nothing
    is proved.

    Our reading: for outcomes of 0 and 1 this is the published algorithm. Other outcomes in [0, 1] count as the part of
    a success that they are; the usual way (Agrawal, Goyal 2012) is to toss a coin with that chance.

    >>> ThompsonLP()
    ThompsonLP(update=True, horizon=None)
    """

    update: bool = True
    horizon: int | None = None

    name = "thompson-lp"
    allocates, tag_is_arm = False, True
    reasons = ("headroom below the largest cost", "drawn from the mix for drawn means")
    choose = staticmethod(choose)
    adds_up = True
    learn = staticmethod(learn_nothing)

    def __post_init__(self) -> None:
        if not isinstance(self.update, bool):
            raise InvalidValue(f"update of thompson-lp must be true or false, got {self.update!r}")
        if self.horizon is not None:
            checks.rounds("horizon of thompson-lp", self.horizon)

    def params(self, setting: Setting) -> tuple[Any, ...]:
        horizon = horizon_of(self.name, self.horizon, setting) if self.update else 0
        return Params(horizon, 0.0, setting.lows, stock_per_round(setting, 0))

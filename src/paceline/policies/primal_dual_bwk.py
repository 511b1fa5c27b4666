"""PrimalDualBwK: the most reward for what the resources are worth, their worth by multiplicative weights."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paceline import checks
from paceline.kernels.estimates import first_unpulled
from paceline.kernels.jit import kernel
from paceline.kernels.state import Decision, State
from paceline.policies.long_run import LongRun, long_run, long_run_rate, rates_at_start
from paceline.policies.one_phase import horizon_of
from paceline.policies.policy import Policy, Setting

FIRST_PULL, BEST_RATIO = 1, 2
FEEDS = ("bounds", "costs")

Floats = npt.NDArray[np.float64]


class Params(NamedTuple):
    """Numbers for the kernels."""

    rates: LongRun
    common: float  # the smallest rate: resources are rescaled so that this is the rate of all
    confidence: float  # C
    log_step: float  # ln(1 + eps)
    feeds_costs: bool


class Memory(NamedTuple):
    """Logarithms of the weights v, those of time last."""

    logs: Floats  # (D + 1,)


@kernel
def small_mean_radius(confidence: float, mean: float, pulls: int) -> float:
    """sqrt(C mean / n) + C / n: narrow for a mean near 0."""
    return math.sqrt(confidence * mean / pulls) + confidence / pulls


@kernel
def low_cost(params: Params, state: State, arm: int, d: int) -> float:
    """LCB of a mean cost, on the scale on which all rates are the common one."""
    mean = state.arms.cost_mean[arm, d]
    low = max(mean - small_mean_radius(params.confidence, mean, state.arms.pulls[arm]), 0.0)
    return float(low * params.common / long_run_rate(params.rates, state, d))


def choose(params: Params, state: State) -> Decision:
    """Each arm once, then the best ratio of UCB reward to the worth of LCB costs."""
    arms, logs, time = state.arms, state.memory.logs, len(state.resources)
    untried = first_unpulled(arms)
    if untried >= 0:
        return Decision(untried, FIRST_PULL, untried)
    highest = logs[time]
    for d in range(time):
        highest = max(highest, logs[d])
    best, most = 0, -1.0
    for a in range(arms.pulls.size):
        mean = arms.reward_mean[a]
        worth = math.exp(logs[time] - highest) * params.common
        for d in range(time):
            worth += math.exp(logs[d] - highest) * low_cost(params, state, a, d)
        ratio = min(mean + small_mean_radius(params.confidence, mean, arms.pulls[a]), 1.0) / worth
        if ratio > most:
            best, most = a, ratio
    return Decision(best, BEST_RATIO, best)


@kernel
def weigh(params: Params, state: State, d: int, used: float) -> None:
    """A resource gains weight with what is used of it."""
    state.memory.logs[d] += params.log_step * used


def commit(params: Params, state: State, decision: Decision) -> None:
    """As published: the weights follow the cost bounds that the arm was chosen by."""
    if decision.reason == BEST_RATIO:
        time = len(state.resources)
        weigh(params, state, time, params.common)
        if not params.feeds_costs:
            for d in range(time):
                weigh(params, state, d, low_cost(params, state, decision.arm, d))


def learn(params: Params, state: State, decision: Decision, reward: float, cost: Floats) -> None:
    """Our variant: they follow what the arm has cost."""
    if decision.reason == BEST_RATIO and params.feeds_costs:
        for d in range(len(state.resources)):
            weigh(params, state, d, cost[d] * params.common / long_run_rate(params.rates, state, d))


@dataclass(frozen=True, kw_only=True)
class PrimalDualBwK(Policy):
    """Pull the arm with the most reward for what it uses, at weights of the resources that grow with their use.

    Time is a resource of which every pull uses the same, and all resources are rescaled to one rate b, the smallest of
    b_i = c_i + B0_i / T (time to b, too). After one pull of each arm, each round, with weights v (1 at first):

    1. pull the arm with the largest  u_a / sum of y_i l_ai,  y = v / sum of v,  where u_a is the upper bound of its
       mean reward, l_ai the lower bound of its mean cost, at the distance  sqrt(C m / n) + C / n  of the mean m, in [0,
       1];
    2. v_i <- v_i (1 + eps)^(l_ai)  for the arm pulled,  eps = sqrt(ln(D + 1) / (b T)),  C = a ln((D + 1) K T).

    Reference: Badanidiyuru, Kleinberg, Slivkins, "Bandits with knapsacks" (FOCS 2013, JACM 2018), PrimalDualBwK, for a
    total budget of b T; behind the guard.

    Guarantee: O~(sqrt(K OPT) + OPT sqrt(K / B)) for a total budget B, optimal up to logarithms, at the end of which it
    stops. Under the anytime guard nothing is proved. It needs the horizon, and costs of at least 0: the ratio means
    nothing for an arm that refills.

    ``feed="costs"`` is ours: the weights follow what the arm has cost, not the bound. The bounds are low, so the
    published weights are late to see what is spent, and the guard refuses the rest: thousands of rounds on the paper's
    problems, a few hundred with the costs. No theorem covers it.

    Second-hand: the constant of C (a = ``confidence``) and the exact form of step 2. Our reading: weights begin after
    the first pulls; a round that the guard refused is no round of theirs.

    >>> PrimalDualBwK(feed="costs")
    PrimalDualBwK(feed='costs', confidence=1.0, horizon=None)
    """

    feed: str = "bounds"
    confidence: float = 1.0
    horizon: int | None = None

    name = "primal-dual-bwk"
    refillable, allocates, tag_is_arm = False, False, True
    reasons = (
        "headroom below the largest cost",
        "first pull of an arm",
        "the best ratio of reward to what is used",
    )
    choose = staticmethod(choose)
    commit = staticmethod(commit)
    learn = staticmethod(learn)

    def __post_init__(self) -> None:
        checks.one_of("feed of primal-dual-bwk", self.feed, FEEDS)
        checks.real("confidence of primal-dual-bwk", self.confidence, 0, above_low=True)
        if self.horizon is not None:
            checks.rounds("horizon of primal-dual-bwk", self.horizon)

    def params(self, setting: Setting) -> tuple[Any, ...]:
        horizon = horizon_of(self.name, self.horizon, setting)
        rows = setting.resources + 1
        common = min(rates_at_start(setting, horizon))
        confidence = float(self.confidence) * math.log(rows * horizon * max(setting.arms, 1))
        step = math.sqrt(math.log(rows) / (common * horizon))
        return Params(long_run(setting, horizon), common, confidence, math.log1p(step), self.feed == "costs")

    def new_memory(self, arms: int, resources: int) -> Memory:
        return Memory(np.zeros(resources + 1))

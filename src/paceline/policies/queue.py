"""Queue: a queue of overspending for each resource sets its price. No horizon, no linear program."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paceline import checks
from paceline.errors import InvalidValue
from paceline.kernels.estimates import first_unpulled, upper
from paceline.kernels.state import Decision, State
from paceline.policies.policy import ELSEWHERE, Policy, Setting

FIRST_PULL, HIGHEST = 2, 3

Floats = npt.NDArray[np.float64]


class Params(NamedTuple):
    """Numbers for the kernels; tuples have an entry per resource."""

    patience: float  # V_t / sqrt(t)
    tightening: float  # eps_t sqrt(t)
    scales: tuple[float, ...]  # the largest cost of any arm
    lows: tuple[float, ...]  # the smallest: 0, or -1 where pulls may refill


class Memory(NamedTuple):
    """The queues, in largest costs."""

    queues: Floats  # (D,)


def choose(params: Params, state: State) -> Decision:
    """Each arm once, then the highest bound of what an arm earns and what it takes off the queues."""
    arms, queues = state.arms, state.memory.queues
    untried = first_unpulled(arms)
    if untried >= 0:
        return Decision(untried, FIRST_PULL, untried)
    t = state.clock.t
    root = math.sqrt(2.0 * math.log(t))
    patience = params.patience * math.sqrt(t)
    best, most = arms.pulls.size, 0.0  # the null arm; what income takes off the queues is the same for all
    for a in range(arms.pulls.size):
        radius = root * arms.width[a]
        bound = upper(arms.reward_mean[a], radius)
        for d in range(len(state.resources)):
            scale, low = params.scales[d], params.lows[d]
            cost = max(arms.cost_mean[a, d] - (scale - low) * radius, low)
            bound -= queues[d] / patience * cost / scale
        if bound > most:
            best, most = a, bound
    return Decision(best, HIGHEST, best)


def learn(params: Params, state: State, decision: Decision, reward: float, cost: Floats) -> None:
    """Every round that was played here moves the queues, also one that the guard refused."""
    if decision.reason == ELSEWHERE:
        return
    queues = state.memory.queues
    tightening = min(params.tightening / math.sqrt(state.clock.t), 1.0)
    for d in range(len(state.resources)):
        queues[d] = max(queues[d] + (cost[d] - state.rate[d]) / params.scales[d] + tightening, 0.0)


@dataclass(frozen=True, kw_only=True)
class QueuePacer(Policy):
    """Let a queue of overspending stand for each resource, and pull the arm that is best at the prices of the queues.

    Each round t, with the queue Q_i of resource i (0 at first) and D resources:

    1. pull the arm with the largest  u_a - sum of Q_i l_ai / V_t,  where u_a = min(m_a + e_a, 1) and
       l_ai = max(r_ai - e_a, lowest cost) are bounds of its mean reward and costs,  e_a = sqrt(2 ln t / n_a);  the null
       arm is one of them, with 0;
    2. Q_i <- max(Q_i + x_i - c_i + eps_t, 0)  for what was spent in the round, x_i.

    V_t = delta D^(1/4) sqrt(2 t / 3)  and  eps_t = s D^(3/4) sqrt(6 / t), at most 1. delta is the Slater constant
    (``slater``): by how much some mix of arms stays below all lines; the null arm stays below by min c_i, the default.
    Costs are counted in largest costs. A queue sees every round, also those that the guard refused.

    Reference: Liu, Li, Shi, Ying, "An efficient pessimistic-optimistic algorithm for stochastic linear bandits with
    general constraints" (NeurIPS 2021), for arms without features; here behind the guard.

    Guarantee: regret O~((D^(3/4) / delta + K) sqrt(t)) for every t, and E[spent - c t] <= 0 for every t after a time
    that does not depend on a horizon; there is none. That is an anytime constraint in expectation: of those whose
    promise is soft, the nearest to ours. On every path it holds by the guard, under which nothing is proved of the
    regret.

    Second-hand: the constants of V_t and eps_t. ``tightening`` is s. Most of its regret is budget that eps_t leaves
    unspent; a tenth of it loses a quarter on the paper's 3 arms, but a hundredth of it is too little, and the guard has
    to refuse more than a third of all rounds.

    >>> QueuePacer(tightening=0.1)
    QueuePacer(slater=None, tightening=0.1)
    """

    slater: float | None = None
    tightening: float = 1.0

    name = "queue"
    allocates, tag_is_arm = False, True
    reasons = (
        "headroom below the largest cost",
        "observed elsewhere",
        "first pull of an arm",
        "the highest bound at the prices of the queues",
    )
    choose = staticmethod(choose)
    learn = staticmethod(learn)

    def __post_init__(self) -> None:
        if self.slater is not None:
            checks.real("slater of queue", self.slater, 0, 1, above_low=True)
        checks.real("tightening of queue", self.tightening, 0)

    def params(self, setting: Setting) -> tuple[Any, ...]:
        count, scales = setting.resources, setting.scales
        slater = self.slack(setting) if self.slater is None else float(self.slater)
        patience = slater * count**0.25 * math.sqrt(2.0 / 3.0)
        tightening = float(self.tightening) * count**0.75 * math.sqrt(6.0)
        return Params(patience, tightening, scales, setting.lows)

    def slack(self, setting: Setting) -> float:
        """By how much the null arm stays below every line in a round, in largest costs."""
        rounds = setting.rounds or math.inf
        rates = [rate or stock / rounds for rate, stock in zip(setting.rates, setting.stocks, strict=True)]
        slack = min(rate / scale for rate, scale in zip(rates, setting.scales, strict=True))
        if slack == 0.0:
            rule = "a Slater constant where a resource has no income, such as slater=0.1"
            raise InvalidValue(f"queue must be given {rule}, got none")
        return slack

    def new_memory(self, arms: int, resources: int) -> Memory:
        return Memory(np.zeros(resources))

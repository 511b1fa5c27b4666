"""SUAK: strategic under-utilisation for anytime knapsacks."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paceline import checks
from paceline.kernels.estimates import Estimates, lower, upper
from paceline.kernels.hull import best_mix
from paceline.kernels.jit import kernel
from paceline.kernels.random import decision_uniform
from paceline.kernels.state import SKIP, Decision, State
from paceline.policies.policy import Policy, Setting

CLASSIFICATION_PULL, CLASSIFICATION_SKIP, BASE = 1, 2, 3
ORDERS = ("first", "fewest", "cheapest")
FIRST, FEWEST, CHEAPEST = range(3)


Floats = npt.NDArray[np.float64]


class Params(NamedTuple):
    """Numbers for the kernels."""

    order: int
    log_horizon: float  # below 0 for the anytime radius


RECORD = np.dtype(
    (
        np.record,
        [
            ("account_spent", np.float64),  # S_p: cost of classification pulls
            ("account_rounds", np.int64),  # N_p: classification pulls and classification skips
            ("classified_at", np.int64),  # the first round in which a base was chosen: phase 1 has ended
            ("guard_skips", np.int64),
            ("classification_pulls", np.int64),
            ("classification_skips", np.int64),
            ("base_rounds", np.int64),
            ("classification_reward", np.float64),
        ],
    )
)


@kernel
def mean_cost(arms: Estimates, arm: int) -> float:
    """Empirical mean cost; the null arm, numbered after the last, costs nothing."""
    return arms.cost_mean[arm, 0] if arm < arms.pulls.size else 0.0


@kernel
def next_unclassified(order: int, arms: Estimates, c: float, root: float) -> int:
    """Of the arms whose cost may lie on either side of c, the first in the given order."""
    chosen, lowest = SKIP, math.inf
    for i in range(arms.pulls.size):
        if abs(arms.cost_mean[i, 0] - c) <= root * arms.width[i]:
            rank = float(i)
            if order == FEWEST:
                rank = float(arms.pulls[i])
            elif order == CHEAPEST:
                rank = arms.cost_mean[i, 0]
            if rank < lowest:
                chosen, lowest = i, rank
    return chosen


def choose(params: Params, state: State) -> Decision:
    """Algorithm 2 of the paper. Its two phases are one rule: they differ only in checks that cannot fail in phase 1."""
    clock, arms, record = state.clock, state.arms, state.record
    count = arms.pulls.size
    c = state.rate[0]
    if record.account_spent + 1.0 > c * record.account_rounds:
        return Decision(SKIP, CLASSIFICATION_SKIP, SKIP)

    log_t = math.log(clock.t)
    root = math.sqrt(1.5 * log_t)
    wide_root = math.sqrt(3.0 * (params.log_horizon if params.log_horizon >= 0.0 else log_t))
    gap = math.inf  # LCB of the smallest cost gap
    clarity = math.inf  # above 0 when every arm is classified
    rewards, costs = state.scratch.rewards, state.scratch.costs[0]
    for i in range(count):
        distance = abs(arms.cost_mean[i, 0] - c)
        radius = root * arms.width[i]
        gap = min(gap, distance - radius)
        clarity = min(clarity, distance - 7.0 * radius)
        wide_radius = wide_root * arms.width[i]
        rewards[i] = upper(arms.reward_mean[i], wide_radius)
        costs[i] = lower(arms.cost_mean[i, 0], wide_radius)
    if clarity <= 0.0:
        return Decision(next_unclassified(params.order, arms, c, 7.0 * root), CLASSIFICATION_PULL, SKIP)
    j, k, _ = best_mix(rewards, costs, c)
    if j == k:
        return Decision(j, BASE, j)
    j_cost, k_cost = mean_cost(arms, j), mean_cost(arms, k)
    if j_cost < k_cost:
        j, k, j_cost, k_cost = k, j, k_cost, j_cost

    omega = gap / (2.0 + gap - c)
    spare = state.headroom[0] - state.planned[0] - log_t / (omega * omega)
    if spare > j_cost:
        p = 1.0 - omega
    elif spare < k_cost:
        p = omega
    else:
        p = min(max((spare - k_cost) / (j_cost - k_cost), omega), 1.0 - omega)
    if decision_uniform(clock.seed, clock.stream, clock.t) < p:
        return Decision(j, BASE, k)
    return Decision(k, BASE, j)


def learn(params: Params, state: State, decision: Decision, reward: float, cost: Floats) -> None:
    """Keep the classification account. It is checked before the guard: a round that both refuse is the account's."""
    record, reason = state.record, decision.reason
    if reason == CLASSIFICATION_PULL:
        record.classification_pulls += 1
        record.classification_reward += reward
        record.account_spent += cost[0]
        record.account_rounds += 1
    elif reason == BASE:
        record.base_rounds += 1
        if record.classified_at == 0:
            record.classified_at = state.clock.t
    elif record.account_spent + 1.0 > state.rate[0] * record.account_rounds:
        record.classification_skips += 1
        record.account_rounds += 1
    else:
        record.guard_skips += 1


@dataclass(frozen=True, kw_only=True)
class SUAK(Policy):
    """Learn on which side of the budget each arm's cost lies, then mix the optimistic best base a little under budget.

    Each round t, with n_i pulls of arm i, empirical means m_i and r_i (reward and cost), and e_i = sqrt(3 log t / n_i):

    1. The classification account (cost S_p in N_p rounds) must hold  S_p + 1 <= c N_p,  else skip.
    2. An arm with  |r_i - c| <= 7 sqrt(1.5 log t / n_i)  is unclassified: pull it, on the account.
    3. Otherwise take the best base (j, k) at rate c for rewards m_i + e_i and costs r_i - e_i, both cut to [0, 1];
       j has the larger mean cost. With  d = min_i |r_i - c| - sqrt(1.5 log t / n_i),  w = d / (2 + d - c)  and
       b = h(t) - log t / w^2,  pull j with probability  (b - r_k) / (r_j - r_k)  cut to [w, 1 - w], else k.

    Reference: Elumar, Tekin, Yagan, "Bandits with Anytime Knapsacks", Algorithm 2.

    Guarantee: expected regret O(K log T) when no arm's mean cost equals the budget (the paper's Theorem 1). The anytime
    constraint itself is kept by the guard, on every path.

    Our reading where the paper is open: N_p counts the account's pulls and skips (with pulls only the first round
    would skip for ever); an arm never pulled is unclassified; ``order`` says which unclassified arm goes first: the one
    with the "fewest" pulls, under which the average cost is near c in phase 1, as the paper describes it, and which
    does not hang on the order of the list; the "first" in the list; or the "cheapest" so far. ``horizon`` replaces log
    t by log T in e_i, as in the paper's text, where its table has log t.

    >>> SUAK(order="cheapest")
    SUAK(order='cheapest', horizon=None)
    """

    order: str = "fewest"
    horizon: int | None = None

    name = "suak"
    resources, allocates, tag_is_arm = 1, False, True
    reasons = ("headroom below the largest cost", "classifying", "classification account is short", "base, pacing")
    record = RECORD
    choose = staticmethod(choose)
    learn = staticmethod(learn)

    def __post_init__(self) -> None:
        checks.one_of("order of suak", self.order, ORDERS)
        if self.horizon is not None:
            checks.rounds("horizon of suak", self.horizon)

    def params(self, setting: Setting) -> tuple[Any, ...]:
        return Params(ORDERS.index(self.order), -1.0 if self.horizon is None else math.log(self.horizon))

"""Lagrangian: one learner plays arms against prices, another moves the prices. No linear program."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paceline import checks
from paceline.kernels.jit import kernel
from paceline.kernels.state import GUARD, Decision, State
from paceline.policies.dual_learners import DUALS, DualParams, dual_params, follow_spending, new_duals, price_of
from paceline.policies.one_phase import horizon_of
from paceline.policies.policy import ELSEWHERE, Policy, Setting
from paceline.policies.primal_learners import (
    EXP3_P,
    EXP3_SIX,
    PRIMALS,
    PrimalParams,
    learn_payoff,
    new_weights,
    play_against,
    primal_params,
)

Floats = npt.NDArray[np.float64]

RECORD = np.dtype((np.record, [("highest_price", np.float64)]))  # of the most expensive pull in any round so far


class Params(NamedTuple):
    """Numbers for the kernels."""

    primal: PrimalParams
    dual: DualParams
    refill: float  # what a pull can refill at most, in largest costs


class Memory(NamedTuple):
    """What the learners keep."""

    weights: Floats  # (K + 1,) of the primal learner, the null arm last
    scores: Floats  # (D + 1,) of hedge: the exponents, that of nothing last
    duals: Floats  # (D + 1,) y of hedge, lam of ogd and a last entry that it does not use


@kernel
def gain_of(params: Params, state: State, reward: float, cost: Floats) -> float:
    """The payoff of a round at present prices,  r - sum of price x,  on the scale of [0, 1].

    Where prices have no bound, the scale is that of the highest ones so far.
    """
    record, dual = state.record, params.dual
    payoff, total = reward, 0.0
    for d in range(len(state.resources)):
        price = price_of(dual, state, state.memory.duals, d)
        payoff -= price * cost[d]
        total += price * dual.scales[d]
    record.highest_price = max(record.highest_price, total)
    reach = record.highest_price if dual.reach == math.inf else dual.reach
    return float(min(max((payoff + reach) / (1.0 + reach * (1.0 + params.refill)), 0.0), 1.0))


def choose(params: Params, state: State) -> Decision:
    """What the primal learner plays at the prices of the dual one."""
    return play_against(params.primal, params.dual, state, state.memory.weights, state.memory.duals)


def learn(params: Params, state: State, decision: Decision, reward: float, cost: Floats) -> None:
    """Both learners take in a round of their own: not one that the guard refused, nor a pull made elsewhere."""
    if decision.reason in (GUARD, ELSEWHERE):
        return
    memory = state.memory
    if params.primal.learner in (EXP3_SIX, EXP3_P):
        learn_payoff(params.primal, memory.weights, decision, gain_of(params, state, reward, cost))
    follow_spending(params.dual, state, memory.scores, memory.duals, cost)


@dataclass(frozen=True, kw_only=True)
class Lagrangian(Policy):
    """Play arms against prices of the resources, and let the prices follow what is spent: a game of two learners.

    Each round, with the price lam_i of a unit of resource i, a pull pays  r - sum of lam_i x_i,  the null arm 0.

    1. The ``primal`` learner plays an arm, or the null arm: "ucb", "exp3-six", "exp3.p" or "square-cb". Their formulas
       are in policies/primal_learners.py.
    2. The ``dual`` learner moves the prices, up for a resource of which more than b_i = c_i + B0_i / T was spent, else
       down: "hedge" or "ogd", in policies/dual_learners.py. ``radius`` bounds the prices: sum of lam_i b_i <= radius
       with hedge, sum of lam_i <= radius / min b with ogd, in largest costs; without a bound (None) with ogd only.

    Neither learns from a round that the guard refused, nor from pulls that were observed elsewhere. ``primal_step`` and
    ``dual_step`` multiply the published learning rates; the first divides the radius of ucb. ``delta`` is that of
    exp3.p. It needs the horizon, and no linear program: O(K D) a round, costs of either sign.

    Reference: the game is that of Immorlica, Sankararaman, Schapire, Slivkins, "Adversarial bandits with knapsacks"
    (FOCS 2019). The systems of others are presets: lagrange-bwk, best-of-both-worlds, replenishable, exp3-six,
    lagrange-cbwlc; each has its reference and its guarantee. The default, ucb with hedge, is our choice among the
    combinations: on the paper's 3 arms it loses less than a quarter of what the best preset loses.

    Guarantee: the anytime constraint, by the guard, on every path. With ucb nothing is proved: the theorems ask for a
    primal learner with little regret against payoffs that change as they like, as those of exp3-six and exp3.p have.

    Our reading, for all presets: the null arm is an action; hedge takes  x_i - b_i  of each resource on a scale of its
    own, [-1, 1] but for refills, which may count for more, so that a tight one does not slow the others. A resource
    that is there twice is not the same as once: hedge has a weight more, and two gradient steps add up.

    >>> Lagrangian(dual="ogd")
    Lagrangian(primal='ucb', dual='ogd', radius=1.0, primal_step=1.0, dual_step=1.0, delta=0.05, horizon=None)
    """

    primal: str = "ucb"
    dual: str = "hedge"
    radius: float | None = 1.0
    primal_step: float = 1.0
    dual_step: float = 1.0
    delta: float = 0.05
    horizon: int | None = None

    name = "lagrangian"
    allocates = False
    reasons = (
        "headroom below the largest cost",
        "observed elsewhere",
        "drawn by the primal learner",
        "the highest bound at the prices",
    )
    record = RECORD
    choose = staticmethod(choose)
    learn = staticmethod(learn)

    def __post_init__(self) -> None:
        checks.one_of(f"primal of {self.name}", self.primal, PRIMALS)
        checks.one_of(f"dual of {self.name}", self.dual, DUALS)
        if self.radius is not None or self.dual == "hedge":
            checks.real(f"radius of {self.name}", self.radius, 0, above_low=True)
        checks.real(f"primal_step of {self.name}", self.primal_step, 0, above_low=True)
        checks.real(f"dual_step of {self.name}", self.dual_step, 0, above_low=True)
        checks.real(f"delta of {self.name}", self.delta, 0, 1, above_low=True)
        if self.horizon is not None:
            checks.rounds(f"horizon of {self.name}", self.horizon)

    def params(self, setting: Setting) -> tuple[Any, ...]:
        horizon = horizon_of(self.name, self.horizon, setting)
        radius = math.inf if self.radius is None else float(self.radius)
        primal = primal_params(PRIMALS.index(self.primal), setting, horizon, float(self.primal_step), float(self.delta))
        dual = dual_params(DUALS.index(self.dual), setting, horizon, float(self.dual_step), radius)
        refill = max(-low / scale for low, scale in zip(setting.lows, setting.scales, strict=True))
        return Params(primal, dual, refill)

    def new_memory(self, arms: int, resources: int) -> Memory:
        weights = new_weights(PRIMALS.index(self.primal), arms)
        return Memory(weights, np.zeros(resources + 1), new_duals(DUALS.index(self.dual), resources))

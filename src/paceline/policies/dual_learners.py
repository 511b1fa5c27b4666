"""Dual learners: how the prices of the resources follow what is spent, for policies that play against prices.

Both keep a number or two per resource and never solve a program. Spending x is compared with the long-run rate b of the
resource and counted in units s of its largest cost, so that a change of units changes nothing.

    hedge    y_i proportional to  exp(step * sum of (x_i - b_i) / max(b_i, s_i - b_i)),  a last one, of nothing, to 1;
             price_i = radius * y_i / b_i,  step = sqrt(ln(D + 1) / T)
    ogd      lam <- the nearest point to  lam + step (x - b) / s  with  lam >= 0, sum of lam <= radius * max s_i / b_i;
             price_i = lam_i / s_i,  step = 1 / sqrt(T)

Multiplicative weights: Freund, Schapire, "Adaptive game playing using multiplicative weights" (1999). Gradient steps:
Zinkevich, "Online convex programming and generalized infinitesimal gradient ascent" (2003).
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from paceline.kernels.jit import kernel
from paceline.kernels.state import State
from paceline.policies.long_run import LongRun, long_run, long_run_rate, tightest_rate
from paceline.policies.policy import Setting

Floats = npt.NDArray[np.float64]

DUALS = ("hedge", "ogd")
HEDGE, OGD = range(2)


class DualParams(NamedTuple):
    """Numbers for a dual learner; tuples have an entry per resource."""

    learner: int
    step: float
    radius: float  # of hedge's weights; of ogd's prices in units of the largest cost, infinite for no bound
    rates: LongRun
    scales: tuple[float, ...]  # the largest cost of any arm
    lows: tuple[float, ...]  # the smallest: 0, or -1 where pulls may refill
    reach: float  # the most that a pull can ever cost at the prices; infinite without a bound on them


def dual_params(learner: int, setting: Setting, horizon: int, step: float, radius: float) -> DualParams:
    """The steps of theory, sqrt(ln(D + 1) / T) and 1 / sqrt(T), times ``step``."""
    published = math.sqrt(math.log(setting.resources + 1) / horizon) if learner == HEDGE else 1.0 / math.sqrt(horizon)
    rates, reach = long_run(setting, horizon), radius / tightest_rate(setting, horizon)
    bound = radius if learner == HEDGE else reach
    return DualParams(learner, step * published, bound, rates, setting.scales, setting.lows, reach)


def new_duals(learner: int, resources: int) -> Floats:
    """The weights before the first round: hedge weighs all alike, gradient steps begin without a price."""
    return np.full(resources + 1, 1.0 / (resources + 1) if learner == HEDGE else 0.0)


@kernel
def price_of(params: DualParams, state: State, weights: Floats, d: int) -> float:
    """What a unit of a resource costs at present, in rewards."""
    if params.learner == HEDGE:
        return float(params.radius * weights[d] / long_run_rate(params.rates, state, d))
    return float(weights[d] / params.scales[d])


@kernel
def follow_spending(params: DualParams, state: State, scores: Floats, weights: Floats, cost: Floats) -> None:
    """Let the prices rise where a round has spent above the rate, and fall where it has spent below it."""
    if params.learner == HEDGE:
        hedge(params, state, scores, weights, cost)
    else:
        descend(params, state, weights, cost)


@kernel
def hedge(params: DualParams, state: State, scores: Floats, weights: Floats, cost: Floats) -> None:
    """The scores of resources grow with what is spent above their rates; the last, of nothing, is 0 for ever."""
    for d in range(len(state.resources)):
        rate = long_run_rate(params.rates, state, d)
        scores[d] += params.step * (cost[d] - rate) / max(rate, params.scales[d] - rate)
    share_by_scores(scores, weights)


@kernel
def share_by_scores(scores: Floats, weights: Floats) -> None:
    """Weights proportional to  exp(score)  that add up to 1. The exponentials themselves may be beyond all numbers."""
    highest = scores[0]
    for row in range(1, scores.size):
        highest = max(highest, scores[row])
    total = 0.0
    for row in range(scores.size):
        weights[row] = math.exp(scores[row] - highest)
        total += weights[row]
    for row in range(scores.size):
        weights[row] /= total


@kernel
def descend(params: DualParams, state: State, weights: Floats, cost: Floats) -> None:
    """A gradient step, and back to prices that are allowed."""
    total, sharing = 0.0, 0
    for d in range(len(state.resources)):
        above = (cost[d] - long_run_rate(params.rates, state, d)) / params.scales[d]
        weights[d] = max(weights[d] + params.step * above, 0.0)
        total += weights[d]
        if weights[d] > 0.0:
            sharing += 1
    # The nearest point of the simplex: what is above the bound is taken from all prices alike. A price that it would
    # bring below 0 is 0, and leaves more to take from the others; that can happen to each of them once.
    for _ in range(len(state.resources)):
        if total <= params.radius:
            break
        taken = (total - params.radius) / sharing
        total, sharing = 0.0, 0
        for d in range(len(state.resources)):
            weights[d] = max(weights[d] - taken, 0.0)
            total += weights[d]
            if weights[d] > 0.0:
                sharing += 1

"""Fractional KUBE: the arm with the most reward per cost, by an upper bound. For a budget without a clock."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from paceline.errors import InvalidValue
from paceline.kernels.estimates import first_unpulled
from paceline.kernels.state import Decision, State
from paceline.policies.pacing import affords
from paceline.policies.policy import Policy, Setting, learn_nothing

FIRST_PULL, DENSEST = 1, 2


class Params(NamedTuple):
    """Nothing to set; kernels take a non-empty tuple."""

    no_parameter: float


def choose(params: Params, state: State) -> Decision:
    """Each arm once, then the highest bound of reward per cost of the arms that can be paid for, or else of all."""
    arms = state.arms
    untried = first_unpulled(arms)
    if untried >= 0:
        return Decision(untried, FIRST_PULL, untried)
    root = math.sqrt(2.0 * math.log(state.clock.t))
    best, best_bound, best_cost, best_payable = 0, 0.0, 1.0, False
    for a in range(arms.pulls.size):
        bound, cost, payable = arms.reward_mean[a] + root * arms.width[a], arms.cost_mean[a, 0], affords(state, a)
        # Ratios are compared as products: an arm may have cost nothing so far. Two such are compared by their bounds.
        free = cost == 0.0 and best_cost == 0.0
        denser = bound > best_bound if free else bound * best_cost > best_bound * cost
        if (payable and not best_payable) or (payable == best_payable and denser):
            best, best_bound, best_cost, best_payable = a, bound, cost, payable
    return Decision(best, DENSEST, best)


@dataclass(frozen=True, kw_only=True)
class FractionalKUBE(Policy):
    """Pull the arm with the highest upper bound of reward per cost among those that can be paid for.

    After one pull of each arm, each round t the largest  (m_a + sqrt(2 log t / n_a)) / x_a,  with the mean reward m_a
    and the mean cost x_a of arm a.

    Reference: Tran-Thanh, Chapman, Rogers, Jennings, "Knapsack based optimal policies for budget-limited multi-armed
    bandits" (AAAI 2012), fractional KUBE, whose costs are fixed and known: with such costs x_a is the cost after one
    pull. KUBE itself draws from a greedy filling of the budget that is left; with budget for many pulls that filling is
    the densest arm.

    Guarantee: O(log B) regret for a total budget B without a clock. With a line that rises with time the densest arm is
    the optimum only where the best mix is that arm and the null arm (case 2 of the paper). Elsewhere it leaves budget
    unspent for ever, and its regret is linear: a floor for comparisons, and the answer to what the clock is worth.

    It works with one resource, and with arms whose largest cost is above 0.

    >>> FractionalKUBE()
    FractionalKUBE()
    """

    name = "kube"
    resources, refillable, allocates, tag_is_arm = 1, False, False, True
    reasons = ("headroom below the largest cost", "first pull of an arm", "the highest bound of reward per cost")
    choose = staticmethod(choose)
    adds_up = True
    learn = staticmethod(learn_nothing)

    def params(self, setting: Setting) -> tuple[Any, ...]:
        self.check_refills(setting)
        if setting.max_costs is not None:
            free = np.flatnonzero(np.asarray(setting.max_costs)[:, 0] <= 0.0)
            if free.size > 0:
                raise InvalidValue(f"kube works with largest costs above 0 only, got 0 for arm {free[0]}")
        return Params(0.0)

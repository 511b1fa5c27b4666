"""UCB Simplex: an optimistic base, and an account of its own for each base."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paceline import checks
from paceline.kernels.estimates import first_unpulled
from paceline.kernels.hull import best_mix
from paceline.kernels.state import Decision, State
from paceline.policies.policy import Policy, Setting

FIRST_PULL, SINGLE, PACED = 1, 2, 3
SELECTIONS, SPENT = 0, 1


Floats = npt.NDArray[np.float64]


class Params(NamedTuple):
    """Numbers for the kernels."""

    bonus: float  # lambda sqrt(2)


class Memory(NamedTuple):
    """An account for each base, at its members in rising order: its number of selections, and the cost under it."""

    accounts: Floats  # (K + 1, K + 1, 2)


def choose(params: Params, state: State) -> Decision:
    """Each arm once, then the optimistic base; the expensive arm when the account of the base can bear it."""
    arms = state.arms
    count = arms.pulls.size
    untried = first_unpulled(arms)
    if untried >= 0:
        return Decision(untried, FIRST_PULL, untried)
    bonus = params.bonus * math.sqrt(math.log(state.clock.t))
    rewards, costs = state.scratch.rewards, state.scratch.costs[0]
    for i in range(count):
        rewards[i] = arms.reward_mean[i] + bonus * arms.width[i]
        costs[i] = arms.cost_mean[i, 0]
    expensive, cheap, _ = best_mix(rewards, costs, state.rate[0])
    if expensive == cheap:
        return Decision(expensive, SINGLE, expensive)
    account = state.memory.accounts[min(expensive, cheap), max(expensive, cheap)]
    if account[SPENT] <= account[SELECTIONS] * state.rate[0]:
        return Decision(expensive, PACED, cheap)
    return Decision(cheap, PACED, expensive)


def learn(params: Params, state: State, decision: Decision, reward: float, cost: Floats) -> None:
    """Book a paced round on the account of its base."""
    if decision.reason == PACED:
        arm, other = decision.arm, decision.tag
        account = state.memory.accounts[min(arm, other), max(arm, other)]
        account[SELECTIONS] += 1.0
        account[SPENT] += cost[0]


@dataclass(frozen=True, kw_only=True)
class UCBSimplex(Policy):
    """Solve the program with inflated rewards and plain mean costs; pace the two arms of each base by its own account.

    After one pull of each arm, each round t takes the best base at rate c for rewards  m_i + lam sqrt(2 log t / n_i)
    and costs  r_i.  For a base (k, l) with mean costs above and below c, chosen n_x times at cost b_x so far: pull k
    if b_x <= n_x c, else l.

    Reference: Flajolet, Jaillet, "Logarithmic regret bounds for bandits with knapsacks" (2015), time horizon and one
    resource; behind the guard it is the paper's UCB Simplex Skip.

    Guarantee: O(K^2 log T) for a total budget, when  lam >= 1 + 2 kappa  and  |mu_i - mu_j| <= kappa |rho_i - rho_j|
    for all arms, so kappa must be known beforehand. Under the anytime guard nothing is proved.

    Second-hand: the pacing rule within a base. lam = 9 is the paper's setting; on its two problems kappa is 2, hence 5.

    >>> UCBSimplex(lam=5)
    UCBSimplex(lam=5)
    """

    lam: float = 9.0

    name = "ucb-simplex"
    resources, allocates, tag_is_arm = 1, False, True
    reasons = ("headroom below the largest cost", "first pull of an arm", "a base of one arm", "base, pacing")
    choose = staticmethod(choose)
    learn = staticmethod(learn)

    def __post_init__(self) -> None:
        checks.real("lam of ucb-simplex", self.lam, 0, above_low=True)

    def params(self, setting: Setting) -> tuple[Any, ...]:
        return Params(self.lam * math.sqrt(2.0))

    def new_memory(self, arms: int, resources: int) -> Memory:
        return Memory(np.zeros((arms + 1, arms + 1, 2)))

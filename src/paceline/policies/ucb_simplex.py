"""UCB Simplex: an optimistic base, and an account of its own for each base."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paceline import checks
from paceline.kernels.estimates import first_unpulled
from paceline.kernels.hull import best_mix
from paceline.kernels.jit import kernel
from paceline.policies.policy import Policy, Setting, State

FIRST_PULL, SINGLE, PACED = 1, 2, 3
SELECTIONS, SPENT = 0, 1


class Params(NamedTuple):
    """Numbers for the kernels."""

    bonus: float  # lambda sqrt(2)


@kernel
def account(arms: int, first: int, second: int, entry: int) -> int:
    """Where in the table the account of a base is kept: its number of selections, and the cost spent under it."""
    low, high = min(first, second), max(first, second)
    return 2 * (low * (arms + 1) + high) + entry


def choose(params: Params, state: State) -> tuple[int, int, int]:
    """Each arm once, then the optimistic base; the expensive arm when the account of the base can bear it."""
    clock, arms, table = state.clock, state.arms, state.table
    count = arms.pulls.size
    untried = first_unpulled(arms)
    if untried >= 0:
        return untried, FIRST_PULL, untried
    bonus = params.bonus * math.sqrt(math.log(clock.t))
    rewards = state.scratch.rewards
    for i in range(count):
        rewards[i] = arms.reward_mean[i] + bonus * arms.width[i]
    expensive, cheap, _ = best_mix(rewards, arms.cost_mean, clock.budget)
    if expensive == cheap:
        return expensive, SINGLE, expensive
    selections = table[account(count, expensive, cheap, SELECTIONS)]
    if table[account(count, expensive, cheap, SPENT)] <= selections * clock.budget:
        return expensive, PACED, cheap
    return cheap, PACED, expensive


def learn(params: Params, state: State, arm: int, event: int, partner: int, reward: float, cost: float) -> None:
    """Book a paced round on the account of its base."""
    if event == PACED:
        count = state.arms.pulls.size
        state.table[account(count, arm, partner, SELECTIONS)] += 1.0
        state.table[account(count, arm, partner, SPENT)] += cost


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
    events = ("headroom below the largest cost", "first pull of an arm", "a base of one arm", "base, pacing")
    choose = staticmethod(choose)
    learn = staticmethod(learn)

    def __post_init__(self) -> None:
        checks.real("lam of ucb-simplex", self.lam, 0, above_low=True)

    def params(self, setting: Setting) -> tuple[Any, ...]:
        return Params(self.lam * math.sqrt(2.0))

    def new_table(self, arms: int) -> npt.NDArray[np.float64]:
        return np.zeros(2 * (arms + 1) ** 2)

    def layout(self, arms: int, kept: Sequence[int]) -> npt.NDArray[np.int64]:
        with_null = [*kept, arms]
        accounts = np.arange(2 * (arms + 1) ** 2).reshape(arms + 1, arms + 1, 2)
        return accounts[np.ix_(with_null, with_null)].ravel()

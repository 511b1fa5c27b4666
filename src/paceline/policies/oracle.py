"""Oracle: knows the true distributions and paces the optimal base. The ceiling."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from paceline.errors import InvalidValue
from paceline.kernels.state import Decision, State
from paceline.policies.policy import Policy, Setting, learn_nothing

PACED = 1


class Params(NamedTuple):
    """The optimal base, and the headroom that the expensive arm must find:  reserve + buffer log t."""

    expensive: int
    cheap: int
    reserve: float
    buffer: float


def choose(params: Params, state: State) -> Decision:
    """The expensive arm when the headroom leaves the buffer untouched, else the cheap arm."""
    if state.headroom[0] >= params.reserve + params.buffer * math.log(state.clock.t):
        return Decision(params.expensive, PACED, params.cheap)
    return Decision(params.cheap, PACED, params.expensive)


@dataclass(frozen=True, kw_only=True)
class Oracle(Policy):
    """Pull the expensive arm j of the optimal base when  h(t) >= 2 - c + B log t,  else the cheap arm k.

    (Where largest costs m below 1 are known, 2 is m_j + m_k.) A pull of j leaves at least  1 + B log t  whatever it
    costs. From there on k is pulled, and the
    headroom climbs by  c - rho_k  a round on average, with the variance v_k of the cost of k. The chance that it
    falls by x on the way is about  exp(-2 x (c - rho_k) / v_k)  (the Lundberg exponent of a random walk), so  B = v_k
    / (2 (c - rho_k))  makes a guard skip in round t about 1/t likely: O(log T) rounds lost to skips and O(log T)
    budget unspent. With the null arm as k there is nothing to fear: j is pulled whenever the guard allows it.

    It is the ceiling of a comparison, not a policy for use: it is told the truth that the others must learn.

    >>> Oracle()
    Oracle()
    """

    name = "oracle"
    allocates, tag_is_arm = False, True
    reasons = ("headroom below the largest cost", "base, pacing")
    choose = staticmethod(choose)
    learn = staticmethod(learn_nothing)

    def params(self, setting: Setting) -> tuple[Any, ...]:
        problem = setting.problem
        if problem is None:
            raise InvalidValue("oracle must be given the true problem; it cannot run live, got none")
        base = problem.optimum.base
        expensive, cheap = base[0], base[-1]
        largest = (*problem.max_costs, 0.0)
        reserve, buffer = largest[expensive], 0.0
        if expensive != cheap and cheap < problem.arms:
            cost = problem.costs[cheap]
            reserve, buffer = (
                largest[expensive] + largest[cheap] - problem.budget,
                cost.variance / (2.0 * (problem.budget - cost.mean)),
            )
        return Params(expensive, cheap, reserve, buffer)

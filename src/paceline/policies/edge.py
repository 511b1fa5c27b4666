"""Pacing on the edge: an arm whose cost is the budget rate, as far as can be told.

Pulled all the time, such an arm spends  c t +- sigma sqrt(t):  the headroom is a walk without drift, and no buffer
keeps it from the guard. A shortage is made up for with the next cheaper arm on the hull, not with the null arm; a
surplus is used with the next dearer one. Between the two lines the arm itself is pulled. With W the distance of the
lines, lam_l >= lam_r the prices left and right of the arm and v the variance of its cost, that loses about
(lam_l - lam_r) v t / (2 W) + lam_r W / 2  by round t, least for  W = sqrt(2 (lam_l / lam_r - 1) v t):  the loss is of
order sqrt(t). No rule can do better in order (a heuristic, not a proof): what is spent strays from c t by chance, a
shortage is bought at lam_l and a surplus sold at lam_r.
"""

import math

from paceline.kernels.estimates import known_costs
from paceline.kernels.jit import kernel
from paceline.kernels.state import State
from paceline.policies.pacing import affords

CERTAIN = 9.0  # squared deviations by which a mean cost must differ from the rate to be off the edge


@kernel
def cheaper_neighbour(state: State, arm: int) -> int:
    """The arm below the rate, or the null arm (K), that is next to an arm on the hull of the scratch arrays' means."""
    rewards, costs, rate = state.scratch.rewards, state.scratch.costs[0], state.rate[0]
    best, least = rewards.size, rewards[arm] / costs[arm] if costs[arm] > 0.0 else math.inf
    for i in range(rewards.size):
        if costs[i] < costs[arm] and costs[i] < rate:
            slope = (rewards[arm] - rewards[i]) / (costs[arm] - costs[i])
            if slope < least:
                best, least = i, slope
    return best


@kernel
def dearer_neighbour(state: State, arm: int) -> int:
    """The arm above the rate that is next to an arm on the hull and earns more; -1 if there is none."""
    rewards, costs, rate = state.scratch.rewards, state.scratch.costs[0], state.rate[0]
    best, most = -1, 0.0
    for i in range(rewards.size):
        if costs[i] > costs[arm] and costs[i] > rate:
            slope = (rewards[i] - rewards[arm]) / (costs[i] - costs[arm])
            if slope > most:
                best, most = i, slope
    return best


@kernel
def edge_width(state: State, arm: int, cheaper: int, dearer: int, spread: float) -> float:
    """W,  the distance of the lines between which the arm is pulled; infinite where nothing dearer earns more."""
    rewards, costs, count = state.scratch.rewards, state.scratch.costs[0], state.scratch.rewards.size
    if dearer < 0:
        return math.inf
    reward, cost = (rewards[cheaper], costs[cheaper]) if cheaper < count else (0.0, 0.0)
    left = (rewards[arm] - reward) / max(costs[arm] - cost, 1e-9)
    right = (rewards[dearer] - rewards[arm]) / (costs[dearer] - costs[arm])
    return math.sqrt(2.0 * max(left / right - 1.0, 0.0) * spread * state.clock.t)


@kernel
def pace_on_edge(state: State, arm: int, cheaper: int, low: float, spread: float) -> int:
    """The arm to pull if this one is on the edge; -1 if the headroom does not cover what is due.

    ``cheaper`` is its neighbour, ``low`` the headroom below which that is due and ``spread`` the variance of its cost.
    """
    headroom, due = state.outlook[0], arm
    if headroom < low:
        due = cheaper if cheaper < state.arms.pulls.size else arm
    else:
        dearer = dearer_neighbour(state, arm)
        if headroom >= low + edge_width(state, arm, cheaper, dearer, spread):
            due = dearer
    return due if affords(state, due) else -1


@kernel
def is_on_edge(state: State, drift: float, spread: float) -> bool:
    """Whether  t d^2 < 9 v:  a walk with that drift and variance per round is not told from one without drift."""
    return bool(state.clock.t * drift * drift < CERTAIN * spread)


@kernel
def observed_squares(state: State, arm: int) -> tuple[float, float]:
    """The costs n of an arm that are known, and n times their variance, with a word of doubt: its largest cost."""
    known, mean, top = known_costs(state.arms, arm, 0), state.arms.cost_mean[arm, 0], state.largest[arm, 0]
    return max(known.number, 1.0), max(known.squares - known.number * mean * mean, 0.0) + 0.25 * top * top


@kernel
def seems_on_edge(state: State, drift: float, n: float, squares: float) -> bool:
    """`is_on_edge` for a variance that is estimated from n costs, undivided: asked for two arms in every round."""
    return bool(state.clock.t * drift * drift * n < CERTAIN * squares)

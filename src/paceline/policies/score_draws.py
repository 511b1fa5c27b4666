"""Draws of the means with several resources, where the reward and the costs of a pull hang together.

A ticket that is bought brings its reward and takes its costs; one that is not does neither. The value  mu - lam.rho  of
such an arm is known far better than its mean reward or any of its mean costs: what speaks for one speaks against the
others. `ThompsonPacer` draws as if they were independent, and explores as if little were known. Here the means of an
arm are drawn with their covariances, by the beliefs that all arms share (common_prior.py).
"""

import math

import numpy as np
import numpy.typing as npt

from paceline.kernels.jit import kernel
from paceline.kernels.state import State
from paceline.policies.common_prior import CENTRE, SPREAD, STRENGTH, THIRD, Beliefs, Lows, known_of, pair_of
from paceline.policies.thompson import draw_normals

Floats = npt.NDArray[np.float64]

SKEW, COVARIANCES = 1, 2  # columns of `moments`, after the centre
LEAST_SHARE = 0.01  # of the variance that a score would have were its parts independent


def new_moments(arms: int, resources: int) -> Floats:
    """Before the first outcome: centres of 1/2 with a deviation of 1, so that draws cover all values."""
    sides = 1 + resources
    if resources == 1:
        return np.zeros((arms, 0, 0))
    moments = np.zeros((arms, sides, COVARIANCES + sides))
    moments[:, :, CENTRE], moments[:, range(sides), range(COVARIANCES, COVARIANCES + sides)] = 0.5, 1.0
    return moments


@kernel
def draw_related(lows: Lows, state: State) -> None:
    """Means for several resources into the scratch arrays, from ONE normal per arm.

    With  a = (1, -lam)  the score of an arm is  a.(mu, rho).  C being the covariances of its means, the likeliest way
    for the score to move by z of its deviations, s^2 = a.C a,  moves mean k by  t_k z / s,  t = C a.  With the skew of
    the belief about it the mean becomes  centre + t z / s + skew (t / s)^2 (z^2 - 1).
    """
    scratch, moments, prices = state.scratch, state.memory.moments, state.memory.prices
    draw_normals(state, False)
    for i in range(state.arms.pulls.size):
        z = scratch.rewards[i]
        if math.isnan(z):
            scratch.rewards[i] = moments[i, 0, CENTRE]
            for d in range(len(state.resources)):
                scratch.costs[d, i] = min(max(moments[i, 1 + d, CENTRE], lows[d]), state.largest[i, d])
            continue
        plain, push = moments[i, 0, COVARIANCES], pushed(moments, prices, i, 0, state.resources)
        total = push
        for d in range(len(state.resources)):
            scratch.costs[d, i] = pushed(moments, prices, i, 1 + d, state.resources)
            plain += prices[d] * prices[d] * moments[i, 1 + d, COVARIANCES + 1 + d]
            total -= prices[d] * scratch.costs[d, i]
        total = max(total, LEAST_SHARE * plain)
        inverse = 1.0 / math.sqrt(total) if total > 0.0 else 0.0
        scratch.rewards[i] = min(max(moved(moments, i, 0, inverse * push, z), 0.0), 1.0)
        for d in range(len(state.resources)):
            value = moved(moments, i, 1 + d, inverse * scratch.costs[d, i], z)
            scratch.costs[d, i] = min(max(value, lows[d]), state.largest[i, d])


@kernel
def pushed(moments: Floats, prices: Floats, arm: int, side: int, resources: tuple[int, ...]) -> float:
    """How a mean moves with the score: its covariance with it."""
    total = moments[arm, side, COVARIANCES]
    for d in range(len(resources)):
        total -= prices[d] * moments[arm, side, COVARIANCES + 1 + d]
    return float(total)


@kernel
def moved(moments: Floats, arm: int, side: int, push: float, z: float) -> float:
    """The mean that a belief gives when the score of the arm moves by z of its deviations, and the mean by ``push``."""
    return float(moments[arm, side, CENTRE] + push * z + moments[arm, side, SKEW] * push * push * (z * z - 1.0))


@kernel
def renew_moments(state: State, beliefs: Beliefs, arm: int, resources: tuple[int, ...]) -> None:
    """Centre, skew and covariances of the means of an arm, from what is believed of an outcome."""
    moments, common, count = state.memory.moments, beliefs.common, len(resources) + 1
    for side in range(count):
        n = known_of(state, arm, side).number
        spread = beliefs.beliefs[arm, side, SPREAD]
        moments[arm, side, CENTRE] = beliefs.beliefs[arm, side, CENTRE]
        moments[arm, side, SKEW] = beliefs.beliefs[arm, side, THIRD] / (3.0 * spread * spread) if spread > 0.0 else 0.0
        moments[arm, side, COVARIANCES + side] = spread / (n + common[side, STRENGTH])
        for other in range(side):
            m = known_of(state, arm, other).number
            joint = beliefs.joint[arm, beliefs.shared.size + pair_of(other, side, resources)]
            joint /= math.sqrt((n + common[side, STRENGTH]) * (m + common[other, STRENGTH]))
            moments[arm, side, COVARIANCES + other] = joint
            moments[arm, other, COVARIANCES + side] = joint

"""A decision left to chance now and then, so that every arm has a known probability: for those who log propensities.

With probability epsilon any arm that can be paid for is pulled, each as likely; else what the policy wants. With n such
arms, the arm that the policy wants has the propensity  1 - epsilon + epsilon / n,  every other  epsilon / n.
"""

import numpy as np

from paceline.kernels.jit import kernel
from paceline.kernels.random import DECISION, block, uniform
from paceline.kernels.state import Decision, State
from paceline.policies.pacing import affords

LANE = np.uint64(2**64 - 1)  # of the counter, where no arm is


@kernel
def randomise(state: State, epsilon: float, reason: int, wanted: Decision) -> Decision:
    """With probability epsilon any affordable arm for that reason, the wanted one as its tag; else what is wanted."""
    clock = state.clock
    coin, place, _, _ = block(clock.seed, clock.stream, np.uint64(clock.t), LANE, DECISION, np.uint64(0))
    count = 0
    for i in range(state.pending.size):
        if affords(state, i):
            count += 1
    if count == 0 or uniform(coin) >= epsilon:
        return wanted
    nth = int(uniform(place) * count)
    for i in range(state.pending.size):
        if affords(state, i):
            if nth == 0:
                return Decision(i, reason, wanted.arm)
            nth -= 1
    return wanted


def propensity_of(epsilon: float, is_pull: bool, is_wanted: bool, affordable: int) -> float:
    """The probability of a decision before the coin was thrown.

    >>> propensity_of(0.2, True, True, 4), propensity_of(0.2, True, False, 4), propensity_of(0.2, False, True, 4)
    (0.8500000000000001, 0.05, 0.8)
    """
    chance = epsilon if affordable > 0 else 0.0
    return (1.0 - chance if is_wanted else 0.0) + (chance / affordable if is_pull else 0.0)

"""Estimates over the last rounds only, for problems that drift.

A ring has a slot for each of the last W rounds, with what was told of each arm in that round. When a round comes to an
end its slot is emptied of what was told W rounds ago, which leaves the sums, and filled. Every entry belongs to an arm,
so live, where arms come and go, all of it follows them.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paceline.kernels.jit import kernel

Floats = npt.NDArray[np.float64]


class Window(NamedTuple):
    """What is known of the arms from the last rounds: the fields of `Estimates` that a confidence bound needs."""

    pulls: Floats
    reward_mean: Floats
    width: Floats  # 1 / sqrt(pulls), infinite where there are none
    cost_mean: Floats  # (K, D)


class Ring(NamedTuple):
    """Arrays that a policy with a window has in its memory, under these names."""

    recent_pulls: Floats  # (K,)
    recent_reward: Floats  # (K,), sums
    recent_cost: Floats  # (K, D), sums
    recent_reward_mean: Floats
    recent_width: Floats
    recent_cost_mean: Floats
    ring_pulls: Floats  # (W, K), what was told in each of the last rounds
    ring_reward: Floats  # (W, K), sums
    ring_cost: Floats  # (W, K, D), sums


def new_ring(window: int, arms: int, resources: int) -> Ring:
    """Before the first round; with a window of 0 there is none."""
    return Ring(
        recent_pulls=np.zeros(arms),
        recent_reward=np.zeros(arms),
        recent_cost=np.zeros((arms, resources)),
        recent_reward_mean=np.zeros(arms),
        recent_width=np.full(arms, np.inf),
        recent_cost_mean=np.zeros((arms, resources)),
        ring_pulls=np.zeros((window, arms)),
        ring_reward=np.zeros((window, arms)),
        ring_cost=np.zeros((window, arms, resources)),
    )


@kernel
def window_of(memory: Any) -> Window:
    """The estimates: views of the memory."""
    return Window(memory.recent_pulls, memory.recent_reward_mean, memory.recent_width, memory.recent_cost_mean)


@kernel
def refresh_arm(memory: Any, resources: tuple[int, ...], arm: int) -> None:
    """Means and width of an arm from its sums. Without pulls the sums are 0, whatever rounding has left in them."""
    pulls = memory.recent_pulls[arm]
    if pulls == 0.0:
        memory.recent_reward[arm] = memory.recent_reward_mean[arm] = 0.0
        memory.recent_width[arm] = math.inf
        for d in range(len(resources)):
            memory.recent_cost[arm, d] = memory.recent_cost_mean[arm, d] = 0.0
        return
    memory.recent_reward_mean[arm] = memory.recent_reward[arm] / pulls
    memory.recent_width[arm] = 1.0 / math.sqrt(pulls)
    for d in range(len(resources)):
        memory.recent_cost_mean[arm, d] = memory.recent_cost[arm, d] / pulls


@kernel
def forget_slot(memory: Any, resources: tuple[int, ...], slot: int) -> None:
    """Take what was told in the round of a slot out of the sums."""
    for arm in range(memory.recent_pulls.size):
        if memory.ring_pulls[slot, arm] > 0.0:
            memory.recent_pulls[arm] -= memory.ring_pulls[slot, arm]
            memory.recent_reward[arm] -= memory.ring_reward[slot, arm]
            memory.ring_pulls[slot, arm] = memory.ring_reward[slot, arm] = 0.0
            for d in range(len(resources)):
                memory.recent_cost[arm, d] -= memory.ring_cost[slot, arm, d]
                memory.ring_cost[slot, arm, d] = 0.0
            refresh_arm(memory, resources, arm)


@kernel
def forget_until(memory: Any, record: Any, resources: tuple[int, ...], t: int) -> None:
    """Empty the slots of the rounds up to t, which are those of W rounds earlier. (With late news some were left.)"""
    window = memory.ring_pulls.shape[0]
    for before in range(max(record.window_until, t - window), t):
        forget_slot(memory, resources, (before + 1) % window)
    record.window_until = t


@kernel
def note_recent(memory: Any, resources: tuple[int, ...], t: int, arm: int, reward: float, cost: Floats) -> None:
    """Take in what was told of an arm in round t."""
    slot = t % memory.ring_pulls.shape[0]
    memory.ring_pulls[slot, arm] += 1.0
    memory.recent_pulls[arm] += 1.0
    memory.ring_reward[slot, arm] += reward
    memory.recent_reward[arm] += reward
    for d in range(len(resources)):
        memory.ring_cost[slot, arm, d] += cost[d]
        memory.recent_cost[arm, d] += cost[d]
    refresh_arm(memory, resources, arm)

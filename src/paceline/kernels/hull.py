"""The best mix of arms at one budget rate, read off the upper concave hull.

The linear program  max mu.pi  subject to  rho.pi <= c,  pi in the simplex over K arms and the null arm  has at most two
arms in its solution. Its value is the height at c of the upper concave hull of the points (rho_i, mu_i) and (0, 0), so
one bridge of the hull is all there is to find.
"""

import math

import numpy as np
import numpy.typing as npt

from paceline.kernels.jit import kernel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

NEAR = 1e-12  # values closer than this may be in another order but for rounding


@kernel
def best_mix(rewards: Floats, costs: Floats, rate: float) -> tuple[int, int, float]:
    """The best base at ``rate``: (expensive arm, cheap arm, weight of the expensive arm); the null arm has number K.

    A base of one arm comes back as (arm, arm, 1). Where several bases are best it is one of them, always the same for
    the same input; of twins the one with the lower number.

    At a price per unit of cost, arm i is worth  mu_i - price * rho_i.  Take the best arm on either side of the rate,
    let the slope of the line through the two be the new price, and repeat until the pair stays. No arm of the new
    pair lies below the old line, so its height at the rate never falls: a simplex method that moves both arms at
    once, each step one pass over the arms. Two to four steps are usual, for 8 arms as for 512.
    """
    arms = rewards.size
    cheap, cheap_reward, cheap_cost = arms, 0.0, 0.0
    expensive, expensive_reward, expensive_cost = -1, -math.inf, 0.0
    price = 0.0
    for _ in range(arms + 2):  # the bound matters only should rounding make two arms take turns
        # An arm makes way for a better one only: at a tie the pair must not go round in circles.
        left, left_value = cheap, cheap_reward - price * cheap_cost
        right, right_value = expensive, expensive_reward - price * expensive_cost
        for i in range(arms):
            value = rewards[i] - price * costs[i]
            if costs[i] <= rate:
                if value > left_value:
                    left, left_value = i, value
            elif value > right_value:
                right, right_value = i, value
        if left_value < 0.0:
            left = arms
        if left == cheap and right == expensive and price > 0.0:
            break
        cheap, expensive = left, right
        cheap_reward = rewards[cheap] if cheap < arms else 0.0
        cheap_cost = costs[cheap] if cheap < arms else 0.0
        if expensive < 0 or rewards[expensive] <= cheap_reward:  # only at price 0: the best arm of all is affordable
            return cheap, cheap, 1.0
        expensive_reward, expensive_cost = rewards[expensive], costs[expensive]
        price = (expensive_reward - cheap_reward) / (expensive_cost - cheap_cost)
    if cheap_cost >= rate:
        return cheap, cheap, 1.0
    return expensive, cheap, (rate - cheap_cost) / (expensive_cost - cheap_cost)


@kernel
def is_best(rewards: Floats, costs: Floats, rate: float, expensive: int, cheap: int) -> bool:
    """Whether these two arms, the cheap one or the null arm below the rate and the other above it, are the best base.

    Only where there is no doubt: every other arm lies below the line through the two by more than rounding can do.
    """
    arms = rewards.size
    if not (0 <= expensive < arms and 0 <= cheap <= arms):
        return False
    reward, cost = (rewards[cheap], costs[cheap]) if cheap < arms else (0.0, 0.0)
    if not (cost < rate < costs[expensive] and reward < rewards[expensive]):
        return False
    price = (rewards[expensive] - reward) / (costs[expensive] - cost)
    level = reward - price * cost - NEAR * (1.0 + price)
    if cheap < arms and level <= 0.0:  # as good with the null arm
        return False
    for i in range(arms):
        if rewards[i] - price * costs[i] >= level and i not in (expensive, cheap):
            return False
    return True


@kernel
def best_base(rewards: Floats, costs: Floats, rate: float, guess: Ints) -> tuple[int, int]:
    """The arms of `best_mix`, and so whatever the guess; a good one, the base of a round ago, saves most of the time.

    The base is the next guess.
    """
    if is_best(rewards, costs, rate, guess[0], guess[1]):
        return guess[0], guess[1]
    expensive, cheap, _ = best_mix(rewards, costs, rate)
    guess[0], guess[1] = expensive, cheap
    return expensive, cheap

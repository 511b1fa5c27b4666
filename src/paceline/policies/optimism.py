"""The optimistic linear program: bounds on the means, the rate to plan with, and an arm drawn from the solution.

High rewards and low costs go into the scratch arrays, the program is solved at a rate, and an arm of its solution is
drawn. `OnePhase`, `PrimalDual` and `OptimisticLP` with its presets are this with different numbers.
"""

import math
from typing import Any, NamedTuple

from paceline.kernels.estimates import lower, upper
from paceline.kernels.hull import best_mix
from paceline.kernels.jit import kernel
from paceline.kernels.lp import solve_program
from paceline.kernels.random import decision_uniform
from paceline.kernels.state import Decision, State, program_in, steering_in

MIX = 2  # the reason of a decision that was drawn


class Params(NamedTuple):
    """Numbers for the kernels."""

    horizon: int  # of the remaining rate; 0 for none: the rate is then the income, whatever has been spent
    root: float  # sqrt(s): the radius is sqrt(s / n), with s = a log T or the like
    lows: tuple[float, ...]  # the smallest cost in each resource: 0, or -1 where pulls may refill it
    stock: tuple[float, ...]  # what the start stock adds to the rate of each resource: `stock_per_round`
    is_growing: bool = False  # s is to be multiplied by log t
    is_small_mean: bool = False  # the radius is that of `small_mean_radius`
    extra: int = 0  # pulls that count besides, with outcomes of 0
    kept: float = 1.0  # the part of the rate that is planned with


@kernel
def remaining_rate(state: State, horizon: int, d: int) -> float:
    """What may be spent of a resource per round from now on: (c T - S_c(t - 1)) / (T - t + 1); without a horizon c."""
    if horizon == 0:
        return float(state.rate[d])
    still_to_come = max(horizon - state.clock.t, 0)
    income = 0.0 if state.planned[d] > 0.0 else state.rate[d]  # a stock without income is all in the headroom
    left = state.headroom[d] + income * still_to_come  # below 0 only without the guard, or after a debit
    return max(float(left / (still_to_come + 1)), 0.0)


@kernel
def rate_to_plan_with(params: Params, state: State, d: int) -> float:
    """The right-hand side of the program for one resource."""
    return params.kept * (remaining_rate(state, params.horizon, d) + params.stock[d])


@kernel
def small_mean_radius(mean: float, strength: float) -> float:
    """2 (sqrt(s m / n) + s / n)  with ``strength`` s / n: for means near 0 far below  sqrt(s / n).

    Babaioff, Dughmi, Kleinberg, Slivkins, "Dynamic pricing with limited supply" (2015), for outcomes in [0, 1].
    """
    return 2.0 * (math.sqrt(strength * mean) + strength)


@kernel
def optimistic_program(params: Params, state: State, arms: Any) -> None:
    """High rewards and low costs into the scratch arrays.

    ``arms`` has pulls, means and widths 1 / sqrt(n): the estimates, or those of a window of rounds.
    """
    root = params.root * math.sqrt(math.log(state.clock.t)) if params.is_growing else params.root
    for i in range(arms.pulls.size):
        # As if  ``extra``  pulls more had brought nothing: sums are divided by  n + extra.
        share = 1.0 if params.extra == 0 else arms.pulls[i] / (arms.pulls[i] + params.extra)
        width = arms.width[i] if params.extra == 0 else 1.0 / math.sqrt(arms.pulls[i] + params.extra)
        radius = root * width
        if params.is_small_mean:
            mean = arms.reward_mean[i] * share
            state.scratch.rewards[i] = upper(mean, small_mean_radius(mean, radius * radius))
        else:
            state.scratch.rewards[i] = upper(arms.reward_mean[i] * share, radius)
        for d in range(len(state.resources)):
            low, cost = params.lows[d], arms.cost_mean[i, d]
            if params.is_small_mean:  # of costs on the scale of [0, 1]
                mean = (cost - low) / (1.0 - low) * share
                lowest = lower(mean, small_mean_radius(mean, radius * radius))
                state.scratch.costs[d, i] = low + (1.0 - low) * lowest
            else:
                state.scratch.costs[d, i] = max(cost * share - (1.0 - low) * radius, low)


@kernel
def draw_from_mix(params: Params, state: State, resources: tuple[int, ...]) -> Decision:
    """Solve the program in the scratch arrays and draw an arm of the base.

    The tag is the other arm; with several resources, where there may be more than one, the arm itself.
    """
    clock, scratch = state.clock, state.scratch
    u = decision_uniform(clock.seed, clock.stream, clock.t)
    if len(resources) == 1:
        rate = rate_to_plan_with(params, state, 0)
        expensive, cheap, weight = best_mix(scratch.rewards, scratch.costs[0], rate)
        if expensive == cheap or u < weight:
            return Decision(expensive, MIX, cheap)
        return Decision(cheap, MIX, expensive)
    rates, program = steering_in(scratch, resources).needed, program_in(scratch, resources)
    for d in range(len(resources)):
        rates[d] = rate_to_plan_with(params, state, d)
    for r in range(len(resources) + 1):
        program.last[r] = scratch.rewards.size  # no base to begin with: the order of the members is that of the draw
    solve_program(scratch.rewards, scratch.costs, rates, program, resources)
    drawn = scratch.rewards.size  # the null arm, should rounding leave a little to it
    for r in range(len(resources) + 1):
        if program.basis[r] <= scratch.rewards.size:
            u -= program.amounts[r]
            if u < 0.0:
                drawn = program.basis[r]
                break
    return Decision(drawn, MIX, drawn)

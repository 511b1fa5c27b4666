"""Steering a base of several resources: what the policies of our own do with the means in the scratch arrays.

With one resource a base has two arms and pacing.py says which is due. With several, the linear program is solved for
the means that a policy has put into the scratch arrays, the headroom that each resource should have follows from the
base, and the arm is pulled whose share has waited most (kernels/lp.py, kernels/steering.py).
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paceline.kernels.estimates import cost_variance, known_costs
from paceline.kernels.jit import kernel
from paceline.kernels.lp import solve_program, worth
from paceline.kernels.state import SKIP, Decision, State, program_in, steering_in
from paceline.kernels.steering import (
    UNKNOWN_SPREAD,
    apply_credit,
    arm_spread,
    has_null,
    largest_in_base,
    needed_headroom,
    steer,
)
from paceline.policies.pacing import PACED, SINGLE, STAND_IN, affords, fit_stock

Floats = npt.NDArray[np.float64]


class BaseMemory(NamedTuple):
    """What is kept of the bases so far; not used with one resource."""

    credit: Floats  # (K,), shares of past rounds minus pulls
    in_base: npt.NDArray[np.bool_]  # (K,), the arms of the last base
    prices: Floats  # (D,), its prices
    spreads: Floats  # (K, D), variances of costs, with a word of doubt


@kernel
def solve_scratch(state: State, rates: Floats) -> None:
    """Solve the program in the scratch arrays; arms that were in the last base are tried first."""
    scratch, in_base = state.scratch, state.memory.in_base
    program = program_in(scratch, state.resources)
    last, listed = program.last, 0
    for r in range(last.size):
        last[r] = in_base.size
    for arm in range(in_base.size):
        if in_base[arm] and listed < last.size:
            last[listed] = arm
            listed += 1
    solve_program(scratch.rewards, scratch.costs, rates, program, state.resources)


@kernel
def find_base(state: State, spreads: Floats) -> None:
    """Solve the program for the means in the scratch arrays, and write the headroom that its base needs.

    ``spreads`` (K, D) are the variances of the costs.
    """
    scratch, resources = state.scratch, state.resources
    program, steering = program_in(scratch, resources), steering_in(scratch, resources)
    solve_scratch(state, state.rate)
    needed_headroom(
        program, scratch.costs, state.rate, state.largest, spreads, state.clock.t, steering.needed, resources
    )
    for d in range(len(resources)):
        steering.needed[d] = fit_stock(state, d, steering.needed[d], largest_in_base(program, state.largest, d))


@kernel
def follow_base(state: State) -> Decision:
    """The arm that is due under the base that `find_base` found; the tag is that arm.

    Where the headroom does not cover the arm that is due, the best of the arms that it covers stands in, if it is worth
    its costs at the prices of the base and lets grow what is lacking.
    """
    scratch, resources, memory = state.scratch, state.resources, state.memory
    arms = memory.in_base.size
    program, steering = program_in(scratch, resources), steering_in(scratch, resources)
    room = state.headroom if has_null(program, arms) else state.outlook  # beside the null arm nothing is lost
    arm = steer(program, room, state.largest, memory.credit, steering, resources)
    if arm == arms or affords(state, arm):
        alone = arm < arms and steering.shares[arm] == 1.0
        return Decision(arm, SINGLE if alone else PACED, arm)
    best, best_value = SKIP, 0.0
    for i in range(arms):
        value = worth(scratch.rewards, scratch.costs, program.prices, i, resources)
        if value > best_value and affords(state, i) and lets_grow(state, i, arm):
            best, best_value = i, value
    return Decision(best, STAND_IN, arm)


@kernel
def lets_grow(state: State, arm: int, wanted: int) -> bool:
    """Whether an arm, by the means in the scratch arrays, uses less than comes in of all that the wanted arm lacks.

    Else it would be pulled again and again, and the headroom would never cover the other.
    """
    for d in range(len(state.resources)):
        if state.headroom[d] < state.largest[wanted, d] and state.scratch.costs[d, arm] >= state.rate[d]:
            return False
    return True


@kernel
def steer_base(state: State, spreads: Floats) -> Decision:
    """The arm that is due under the best base for the means in the scratch arrays."""
    find_base(state, spreads)
    return follow_base(state)


@kernel
def remember_base(state: State, decision: Decision, resources: tuple[int, ...]) -> None:
    """Book the shares of a round that has begun, and keep the base and its prices for the next one."""
    if len(resources) == 1 or not SINGLE <= decision.reason <= STAND_IN:
        return
    memory, program = state.memory, program_in(state.scratch, resources)
    arms = memory.in_base.size
    if decision.reason != STAND_IN:
        apply_credit(memory.credit, state.scratch.shares, program.basis, decision.arm)
    for arm in range(arms):
        memory.in_base[arm] = False
    for r in range(program.basis.size):
        if program.basis[r] < arms:
            memory.in_base[program.basis[r]] = True
    for d in range(len(resources)):
        memory.prices[d] = program.prices[d]


@kernel
def renew_spreads(state: State, arm: int, resources: tuple[int, ...]) -> None:
    """Renew what steering knows of an arm of which something was told."""
    arms = state.arms
    if len(resources) > 1 and 0 <= arm < arms.pulls.size:
        for d in range(len(resources)):
            spread = cost_variance(arms, arm, d)
            state.memory.spreads[arm, d] = arm_spread(spread, known_costs(arms, arm, d).number)


def learn_base(params: Any, state: State, decision: Decision, reward: float, cost: Floats) -> None:
    """The ``learn`` of a policy that steers by `steer_base` and has nothing else to learn."""
    renew_spreads(state, decision.arm, state.resources)


def renew_base(params: Any, state: State, arm: int) -> None:
    """The ``renew`` of such a policy."""
    renew_spreads(state, arm, state.resources)


def commit_base(params: Any, state: State, decision: Decision) -> None:
    """The ``commit`` of a policy that steers by `steer_base`: with one resource there is nothing to keep."""
    remember_base(state, decision, state.resources)


def no_base(arms: int, resources: int) -> BaseMemory:
    """Before the first round."""
    spreads = np.full((arms, resources), UNKNOWN_SPREAD)
    return BaseMemory(np.zeros(arms), np.zeros(arms, np.bool_), np.zeros(resources), spreads)

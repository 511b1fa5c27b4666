"""Steering: which arm of a base to pull so that no headroom runs out and none is left unspent.

A base (see lp.py) says how often each of its arms should be pulled on average. What was spent by chance, or before the
base was found, shows in the headroom of each resource. Steering compares it with the headroom needed, turns the surplus
into pulls owed by the inverse of the base, moves the mix towards them, and pulls the arm whose share has waited most.
Resources that are short come first, the scarcest before all others: their buffers count on it.

The parts are small so that a policy can step in between: `needed_headroom`, then `steer`, which change nothing but
scratch, and `apply_credit` once the round has begun. Its memory is one number per arm, ``credit``.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from paceline.kernels.jit import kernel
from paceline.kernels.lp import LEAST_PIVOT, TIE, Program

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

UNKNOWN_SPREAD = 0.25  # the largest variance of a cost in [0, 1]
BUFFERS = 1.5  # how many of Lundberg's buffers to keep


class Steering(NamedTuple):
    """Room for one decision."""

    needed: Floats  # (D,) headroom that a resource should have
    surplus: Floats  # (D,) what it has beyond, as far as it counts in this round
    owed: Floats  # (D + 1,) pulls of each member of the base that would use a surplus up
    mix: Floats  # (D + 1,) the amounts of the members, moved as far as they can be towards what is owed
    shares: Floats  # (K,) of the base's arms in this round; what other arms have there is old


@kernel
def has_null(program: Program, arms: int) -> bool:
    """Whether the null arm is in the base: then waiting is free."""
    found = False
    for r in range(program.basis.size):
        if program.basis[r] == arms:
            found = True
    return found


@kernel
def largest_in_base(program: Program, largest: Floats, resource: int) -> float:
    """The largest possible cost of an arm of the base."""
    most = 0.0
    for r in range(program.basis.size):
        member = program.basis[r]
        if member < largest.shape[0]:
            most = max(most, largest[member, resource])
    return most


@kernel
def cleared(amount: float) -> float:
    """An amount, 0 where it is negative or no more than rounding: a member just used up must not count as left."""
    return amount if amount > TIE else 0.0


@kernel
def room_to_fall(program: Program, resource: int) -> float:
    """How far the rate of a resource can fall until the base breaks:  min of x_r / V[r, i]  over  V[r, i] > 0.

    0 where no row answers, which only rounding can bring about.
    """
    room = math.inf
    for r in range(program.basis.size):
        response = program.inverse[resource, r]
        if response > LEAST_PIVOT:
            room = min(room, program.amounts[r] / response)
    return room if room < math.inf else 0.0


@kernel
def fallen_amount(program: Program, resource: int, room: float, row: int) -> float:
    """The amount of a row once the rate of a resource has fallen that far."""
    return cleared(program.amounts[row] - room * program.inverse[resource, row])


@kernel
def arm_spread(variance: float, known: float) -> float:
    """The variance of an arm's cost, with a word of doubt where few are known; the largest there is without any."""
    return variance + UNKNOWN_SPREAD / known if known > 0 else UNKNOWN_SPREAD


@kernel
def cost_spread(program: Program, costs: Floats, spreads: Floats, resource: int, room: float) -> float:
    """The variance of a round's cost under the mix to which the fallen rate leads.

    That is the mean of the arms' own variances, and the variance between the costs of the members; null costs nothing.
    """
    arms = spreads.shape[0]
    within, mean, squares, weights = 0.0, 0.0, 0.0, 0.0
    for r in range(program.basis.size):
        member = program.basis[r]
        if member <= arms:
            weight = fallen_amount(program, resource, room, r)
            weights += weight
            if member < arms:
                cost = costs[resource, member]
                mean += weight * cost
                squares += weight * cost * cost
                within += weight * spreads[member, resource]
    # sum of  weight (cost - mean)^2,  multiplied out
    return within + max(squares + mean * mean * (weights - 2.0), 0.0)


@kernel
def buffer(spread: float, room: float, t: int) -> float:
    """Headroom that a walk of that variance per round and drift ``room`` rarely uses up by round t.

    B = v / (2 D) log(1 + t D^2 / v),  0 in the limits D = 0 and v = 0. The argument is that of pacing.py: the walk
    falls by B before it climbs with probability about  exp(-2 D B / v),  Lundberg's exponent.
    """
    if room <= 0.0 or spread <= 0.0:
        return 0.0
    return spread / (2.0 * room) * math.log1p(t * room * room / spread)


@kernel
def pull_and_reserve(program: Program, largest: Floats, resource: int, room: float) -> float:
    """The largest cost of a pull that a lower rate would do without, and that of the arms left there: 2 if all are 1.

    After such a pull the arms left must still be covered. Where no arm, or each, would be given up the largest cost of
    the base's arms stands in.
    """
    arms = largest.shape[0]
    given_up, left = -1.0, -1.0
    for r in range(program.basis.size):
        member = program.basis[r]
        if member < arms:
            if program.inverse[resource, r] > LEAST_PIVOT:
                given_up = max(given_up, largest[member, resource])
            if fallen_amount(program, resource, room, r) > 0.0:
                left = max(left, largest[member, resource])
    if given_up < 0.0 or left < 0.0:
        most = largest_in_base(program, largest, resource)
        given_up, left = (given_up if given_up >= 0.0 else most), (left if left >= 0.0 else most)
    return given_up + left


@kernel
def needed_headroom(
    program: Program,
    costs: Floats,
    rates: Floats,
    largest: Floats,
    spreads: Floats,
    t: int,
    needed: Floats,
    resources: tuple[int, ...],
) -> None:
    """Write the headroom b that each resource should have under the base just found.

    For resource i, with V the inverse and x the amounts of the base (ranging of the right-hand side):
        D = min of x_r / V[r, i]  over rows with V[r, i] > 0,     p_r = max(0, x_r - D V[r, i]),
        v = sum of p_r (variance of arm r + 0.25 / n_r)  +  variance between the costs of the arms under p,
        b = m + m' - c_i + D + 1.5 B,     B = v / (2 D) log(1 + t D^2 / v),
    with m the largest cost of the arms that D gives up and m' that of the arms left: 2 - c_i + D + 1.5 B where all are
    1. Below b the mix gives way by what is short, and at  b - D  it has given all: only from there does the headroom
    climb by D a round, as B supposes. Without D in b an arm that should wait is pulled down there, and where v is small
    B does not make up for it: the guard then refuses a fixed share of all rounds.
    With one resource and base (j, k) that is pacing.py's rule but for D and the factor: D = c - rho_k, p all on k.
    With the null arm in the base waiting is free, and b is the largest cost of the base's arms.

    ``costs`` (D, K) are those that the base was found for, ``largest`` (K, D) those of single outcomes and ``spreads``
    (K, D) the variances with their doubt (`arm_spread`).
    """
    waiting_is_free = has_null(program, spreads.shape[0])
    for d in range(len(resources)):
        if waiting_is_free:
            needed[d] = largest_in_base(program, largest, d)
        else:
            room = room_to_fall(program, d)
            spread = cost_spread(program, costs, spreads, d, room)
            reserve = pull_and_reserve(program, largest, d, room)
            needed[d] = reserve - rates[d] + room + BUFFERS * buffer(spread, room, t)


@kernel
def fill_surplus(
    program: Program, headroom: Floats, largest: Floats, steering: Steering, resources: tuple[int, ...]
) -> None:
    """Headroom beyond what is needed, of the resources that bind; one pull's worth at most, unless waiting is free.

    Uncapped, an old surplus of one resource would drive another into the guard.
    """
    arms = largest.shape[0]
    capped = not has_null(program, arms)
    for d in range(len(resources)):
        surplus = headroom[d] - steering.needed[d]
        steering.surplus[d] = min(surplus, largest_in_base(program, largest, d)) if capped else surplus
    for r in range(len(resources) + 1):
        if program.basis[r] > arms:
            steering.surplus[program.basis[r] - arms - 1] = 0.0


@kernel
def step_length(program: Program, headroom: Floats, steering: Steering, arms: int, resources: tuple[int, ...]) -> float:
    """How far the mix can move towards what is owed, 1 at most, until a member is used up.

    A resource in plenty is no limit to the move; one that is short of headroom is.
    """
    step = 1.0
    for r in range(len(resources) + 1):
        member = program.basis[r]
        if steering.owed[r] < 0.0:
            counts = True
            if member > arms:
                resource = member - arms - 1
                counts = headroom[resource] < steering.needed[resource]
            if counts:
                step = min(step, steering.mix[r] / -steering.owed[r])
    return step


@kernel
def move_mix(program: Program, headroom: Floats, steering: Steering, arms: int, resources: tuple[int, ...]) -> None:
    """Move the mix towards what is owed, as far as it can go."""
    step = step_length(program, headroom, steering, arms, resources)
    for r in range(len(resources) + 1):
        steering.mix[r] = max(steering.mix[r] + step * steering.owed[r], 0.0)


@kernel
def scarcest(headroom: Floats, steering: Steering, resources: tuple[int, ...]) -> int:
    """Of the resources that are short and still to be served the one with the least of what it needs; -1 for none."""
    found, least = -1, math.inf
    for d in range(len(resources)):
        if steering.surplus[d] < 0.0 and headroom[d] < least * steering.needed[d]:
            found, least = d, headroom[d] / steering.needed[d]
    return found


@kernel
def serve_short(program: Program, headroom: Floats, steering: Steering, arms: int, resources: tuple[int, ...]) -> None:
    """Move the mix for each resource that is short, the scarcest first; then they have no surplus any more.

    A move along column i of V changes the use of resource i alone. Served together and in step, one that has little
    room (a small D, hence a large buffer and large shortages) would leave next to none to one that needs it now.
    """
    for _ in range(len(resources)):
        short = scarcest(headroom, steering, resources)
        if short < 0:
            break
        for r in range(len(resources) + 1):
            steering.owed[r] = program.inverse[short, r] * steering.surplus[short]
        move_mix(program, headroom, steering, arms, resources)
        steering.surplus[short] = 0.0


@kernel
def serve_all(program: Program, headroom: Floats, steering: Steering, arms: int, resources: tuple[int, ...]) -> None:
    """Move the mix for all surpluses in step:  n_r = sum over i of V[r, i] e_i."""
    for r in range(len(resources) + 1):
        owed = 0.0
        for d in range(len(resources)):
            owed += program.inverse[d, r] * steering.surplus[d]
        steering.owed[r] = owed
    move_mix(program, headroom, steering, arms, resources)


@kernel
def steer(
    program: Program,
    headroom: Floats,
    largest: Floats,
    credit: Floats,
    steering: Steering,
    resources: tuple[int, ...],
) -> int:
    """The arm to pull, K for none; ``steering.needed`` must be there. Writes the shares of the base's arms, sum 1.

    e_i = min(h_i - b_i, m_i)  for resources that bind (m_i the largest cost in the base, no cap with the null arm
    there), 0 for others. A move is  x_r += s n_r,  s = min(1, x_r / -n_r)  over rows with n_r < 0, those of slacks only
    where h_i < b_i. First, unless the null arm is there, one with  n_r = V[r, i] e_i  for each resource i that is
    short, by rising h_i / b_i;  then one with  n_r = sum of V[r, i] e_i  for the rest. Shares are the x_a of the arms,
    scaled to sum 1. Of the arms with a share the one with the largest  credit + share  is due; of equals the one with
    the lower number.

    None is due when no arm is in the base, or when what is short leaves all of the mix to the null arm.
    """
    arms = largest.shape[0]
    fill_surplus(program, headroom, largest, steering, resources)
    for r in range(len(resources) + 1):
        steering.mix[r] = program.amounts[r]
    if not has_null(program, arms):
        serve_short(program, headroom, steering, arms, resources)
    serve_all(program, headroom, steering, arms, resources)
    total = 0.0
    for r in range(len(resources) + 1):
        member = program.basis[r]
        if member < arms:
            share = cleared(steering.mix[r])
            steering.shares[member] = share
            total += share
    due, most = arms, -math.inf
    for r in range(len(resources) + 1):
        member = program.basis[r]
        if member < arms and steering.shares[member] > 0.0:
            steering.shares[member] /= total
            waited = credit[member] + steering.shares[member]
            if waited > most or (waited == most and member < due):
                due, most = member, waited
    return int(due)


@kernel
def apply_credit(credit: Floats, shares: Floats, basis: Ints, arm: int) -> None:
    """Note a pull: the arms of the base get their shares, the one pulled pays 1. Without a pull nothing changes.

    Shares add up to 1, so credits always add up to what they began with, 0. Pulls that follow credits stay close to the
    sums of their shares; pulls sampled from the shares would stray by the square root of the rounds.
    """
    if 0 <= arm < credit.size:
        for r in range(basis.size):
            if basis[r] < credit.size:
                credit[basis[r]] += shares[basis[r]]
        credit[arm] -= 1.0

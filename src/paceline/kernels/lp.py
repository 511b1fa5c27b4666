"""The best mix of arms under several budget rates: a small linear program, solved afresh in every round.

    max  rewards.x   subject to   costs[d].x + slack_d = rate_d  for d < D,   sum of x + null = 1,   x, slack, null >= 0

A solution is a base of D + 1 members with nonnegative amounts. Members have numbers: an arm its own, 0 .. K-1, the null
arm K, the slack of resource d  K + 1 + d.

The method is Dantzig's revised simplex with an explicit inverse. With a handful of resources the inverse is tiny, and
the cost of a step is one look at the arms. Three things keep the steps few and safe:

- From one round to the next the means wobble and the base mostly stays. So the last base is where to begin, if it is
  all of arms and still feasible. One inverse by elimination takes half the time of the steps that lead to it.
- Else slacks and null are a base of feasible amounts, for rates >= 0 whatever the costs: no first phase. The arms of
  the last base are then priced first, and all arms only when none of those is worth entering: usually once.
- Every stop is feasible, and at a regular one no member would earn more than 1e-9 per unit: as the amounts of arms add
  up to 1 at most, the value is within about 1e-9 of the best.

Nothing is allocated: the kernels work in a `Program` of arrays that the caller owns. D is conveyed by the type of an
argument, a tuple ``resources`` of D numbers (their values do not matter): its length is a constant for the compiler,
which unrolls the loops over resources and then vectorises those over arms.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from paceline.kernels.jit import kernel, plain, plain_throughout

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

LEAST_PROFIT = 1e-9  # what a member must earn per unit to enter
LEAST_PIVOT = 1e-9  # entries of a column below this count as zero in the ratio test
SAFE_PIVOT = 0.1  # in an elimination: at this size no larger one is looked for, and
SMALL_PIVOT = 1e-3  # at this size it is given up
TIE = 1e-12  # ratios no further apart are equal, and amounts no larger are rounding
CHUNK = 32  # arms that are priced together


class Program(NamedTuple):
    """Room for one program. ``basis``, ``inverse``, ``amounts`` and ``prices`` are what `solve_program` finds.

    Row r of the base is the r-th entry of ``basis``, ``amounts`` and ``column``, and the last axis of ``inverse``.
    """

    basis: Ints  # (D + 1,) the members of the base
    last: Ints  # (D + 1,) the base to begin with; the caller keeps it, and it is only read here
    inverse: Floats  # (D + 1, D + 1) [d, r]: growth of amounts[r] per unit of rate d; d = D: per unit of the sum of x
    amounts: Floats  # (D + 1,) how much of each member is in the mix
    prices: Floats  # (D + 1,) what a unit of each rate is worth, then the level y: what a round is worth besides
    column: Floats  # (D + 1,) what one unit of the entering member takes from each amount
    shortlist: Ints  # arms to look at before all others


@kernel
def most_steps(rows: int) -> int:
    """Where to stop should rounding make degenerate bases take turns; usual are a step or two per row."""
    return 60 + 12 * rows


def new_program(arms: int, resources: int) -> Program:
    """Room for programs of so many arms and resources, no base known yet."""
    rows = resources + 1
    return Program(
        basis=np.full(rows, arms, np.int64),
        last=np.full(rows, arms, np.int64),
        inverse=np.zeros((rows, rows)),
        amounts=np.zeros(rows),
        prices=np.zeros(rows),
        column=np.zeros(rows),
        shortlist=np.zeros(rows + plain(most_steps)(rows), np.int64),  # a step adds one arm at most
    )


@kernel
def begin(rates: Floats, program: Program, arms: int, resources: tuple[int, ...]) -> int:
    """The base of slacks and null, and the shortlist of the last base's arms; gives the length of the list."""
    null_row = len(resources)
    for d in range(len(resources) + 1):
        for r in range(len(resources) + 1):
            program.inverse[d, r] = 0.0
        program.inverse[d, d] = 1.0
        program.prices[d] = 0.0
    for d in range(len(resources)):
        program.basis[d] = arms + 1 + d
        program.amounts[d] = rates[d]
    program.basis[null_row] = arms
    program.amounts[null_row] = 1.0
    listed = 0
    for r in range(len(resources) + 1):
        if program.last[r] < arms:
            program.shortlist[listed] = program.last[r]
            listed += 1
    return listed


@kernel
def worth(rewards: Floats, costs: Floats, prices: Floats, arm: int, resources: tuple[int, ...]) -> float:
    """What an arm earns per pull once its costs are paid for at the prices."""
    value = rewards[arm]
    for d in range(len(resources)):
        value -= prices[d] * costs[d, arm]
    return float(value)


@kernel
def best_listed(
    rewards: Floats, costs: Floats, program: Program, listed: int, resources: tuple[int, ...]
) -> tuple[int, float]:
    """The most profitable of shortlist, null and slacks, and its profit per unit; member -1 where none is worth it."""
    arms, prices, level = rewards.size, program.prices, program.prices[len(resources)]
    member, bar = -1, level + LEAST_PROFIT
    for i in range(listed):
        arm = program.shortlist[i]
        value = worth(rewards, costs, prices, arm, resources)
        if value > bar:
            member, bar = arm, value
    profit = bar - level
    if -level > profit:
        member, profit = arms, -level
    for d in range(len(resources)):
        if -prices[d] > profit:
            member, profit = arms + 1 + d, -prices[d]
    return member, profit


@kernel
def best_arm(rewards: Floats, costs: Floats, prices: Floats, resources: tuple[int, ...]) -> tuple[int, float]:
    """The most profitable of all arms and its profit per unit; member -1 where none is worth it.

    A running maximum makes every arm wait for the one before it. Counting those above the bar does not, and usually
    there is none: so arms are counted in chunks, many at a time, and only a chunk with a winner is looked through.
    """
    arms, level = rewards.size, prices[len(resources)]
    member, bar = -1, level + LEAST_PROFIT
    for chunk in range((arms + CHUNK - 1) // CHUNK):
        first = chunk * CHUNK
        size = min(CHUNK, arms - first)
        above = 0
        for i in range(size):
            if worth(rewards, costs, prices, first + i, resources) > bar:
                above += 1
        if above > 0:
            for i in range(size):
                value = worth(rewards, costs, prices, first + i, resources)
                if value > bar:
                    member, bar = first + i, value
    return member, bar - level


@kernel
def fill_column(costs: Floats, program: Program, arms: int, member: int, resources: tuple[int, ...]) -> None:
    """What one unit of a member takes from each amount of the base: the inverse times what the member uses."""
    inverse, column = program.inverse, program.column
    row = member - arms - 1 if member > arms else len(resources)
    for r in range(len(resources) + 1):
        column[r] = inverse[row, r]
    if member < arms:
        for d in range(len(resources)):
            cost = costs[d, member]
            if program.basis[d] == arms + 1 + d:  # a slack in its first place: its part of the inverse is a unit vector
                column[d] += cost
            else:
                for r in range(len(resources) + 1):
                    column[r] += cost * inverse[d, r]


@kernel
def leaving_row(program: Program, resources: tuple[int, ...]) -> int:
    """The row whose amount runs out first; of those that tie the one with the largest pivot. -1 if none does."""
    row, least, pivot = -1, math.inf, 0.0
    for r in range(len(resources) + 1):
        taken = program.column[r]
        if taken > LEAST_PIVOT:
            ratio = program.amounts[r] / taken
            if ratio < least - TIE or (ratio <= least + TIE and taken > pivot):
                row, least, pivot = r, ratio, taken
    return row


@kernel
def exchange(program: Program, row: int, member: int, profit: float, resources: tuple[int, ...]) -> None:
    """Put a member in the place of the one in ``row``: new amounts, inverse and prices by the pivot row."""
    inverse, amounts, column, prices = program.inverse, program.amounts, program.column, program.prices
    pivot = column[row]
    entered = amounts[row] / pivot
    for r in range(len(resources) + 1):
        amounts[r] = max(amounts[r] - entered * column[r], 0.0)
    amounts[row] = entered
    for d in range(len(resources) + 1):
        share = inverse[d, row]
        if share != 0.0:  # many are: a slack that never left has no share in the other rows
            share /= pivot
            prices[d] += profit * share
            for r in range(len(resources) + 1):
                inverse[d, r] -= share * column[r]
            inverse[d, row] = share
    program.basis[row] = member


@kernel
def find_pivot(program: Program, step: int, resources: tuple[int, ...]) -> bool:
    """See to it that the entry on the diagonal can be divided by: arms may change places. Says whether it can."""
    inverse, row, most = program.inverse, step, abs(program.inverse[step, step])
    if most > SAFE_PIVOT:
        return True
    for r in range(step + 1, len(resources) + 1):
        if abs(inverse[r, step]) > most:
            row, most = r, abs(inverse[r, step])
    if most <= SMALL_PIVOT:
        return False
    for d in range(len(resources) + 1):
        inverse[step, d], inverse[row, d] = inverse[row, d], inverse[step, d]
    program.basis[step], program.basis[row] = program.basis[row], program.basis[step]
    return True


@kernel
def invert_base(costs: Floats, program: Program, resources: tuple[int, ...]) -> bool:
    """The inverse of a base of arms, by the method of Gauss and Jordan in place; says whether it is safe to use.

    One arm per row goes in, one resource per row comes out. Arms may change places in the base.
    """
    inverse = program.inverse
    for r in range(len(resources) + 1):
        for d in range(len(resources)):
            inverse[r, d] = costs[d, program.basis[r]]
        inverse[r, len(resources)] = 1.0
    for step in range(len(resources) + 1):
        if not find_pivot(program, step, resources):
            return False
        pivot = inverse[step, step]
        inverse[step, step] = 1.0
        for d in range(len(resources) + 1):
            inverse[step, d] /= pivot
        for r in range(len(resources) + 1):
            if r != step:
                factor = inverse[r, step]
                inverse[r, step] = 0.0
                for d in range(len(resources) + 1):
                    inverse[r, d] -= factor * inverse[step, d]
    return True


@kernel
def begin_with_last(
    rewards: Floats, costs: Floats, rates: Floats, program: Program, resources: tuple[int, ...]
) -> bool:
    """Begin with the last base, if it has an arm in each row and is feasible for these means; says whether it did."""
    arms, null_row = rewards.size, len(resources)
    for r in range(len(resources) + 1):
        if program.last[r] >= arms:
            return False
        program.basis[r] = program.last[r]
    if not invert_base(costs, program, resources):
        return False
    feasible = True
    for r in range(len(resources) + 1):
        amount = program.inverse[null_row, r]
        for d in range(len(resources)):
            amount += rates[d] * program.inverse[d, r]
        feasible = feasible and amount >= 0.0
        program.amounts[r] = amount
    for d in range(len(resources) + 1):
        price = 0.0
        for r in range(len(resources) + 1):
            price += rewards[program.basis[r]] * program.inverse[d, r]
        program.prices[d] = price
    return feasible


@kernel
def solve_program(rewards: Floats, costs: Floats, rates: Floats, program: Program, resources: tuple[int, ...]) -> int:
    """Solve the program of the module's text: the solution stays in ``program``, the number of steps comes back.

    ``rewards`` (K,), ``costs`` (D, K) of any sign but of size about 1, ``rates`` (D,) not negative. Reads
    ``program.last`` and never writes it: what a choice may change is for the caller to say.
    """
    arms, limit = rewards.size, most_steps(len(resources) + 1)
    listed = 0
    if not begin_with_last(rewards, costs, rates, program, resources):
        listed = begin(rates, program, arms, resources)
    for step in range(limit):
        member, profit = best_listed(rewards, costs, program, listed, resources)
        if member < 0:
            member, profit = best_arm(rewards, costs, program.prices, resources)
            if member < 0:
                return step
            program.shortlist[listed] = member
            listed += 1
        fill_column(costs, program, arms, member, resources)
        row = leaving_row(program, resources)
        if row < 0:  # only by rounding: the amounts of a program are bounded
            return step
        exchange(program, row, member, profit, resources)
    return limit


class Solution(NamedTuple):
    """The solution of a program and of its dual.

    ``value``   the best expected reward per round;  value = level + prices.rates
    ``mix``     K + 1 weights, the null arm last
    ``prices``  D numbers >= 0: what one more unit of each rate would earn
    ``level``   what a round is worth once what it uses is paid for
    ``gaps``    level - mu + prices.rho >= 0  for each arm: what a pull of it loses; 0 for the arms of the base
    ``base``    the members of the mix with a positive weight, rising; number K is the null arm

    Where several mixes or prices are best it is one of them, always the same for the same input.
    """

    value: float
    mix: Floats
    prices: Floats
    level: float
    gaps: Floats
    base: tuple[int, ...]


solve_in_python = plain_throughout(solve_program)


def solve_means(rewards: Floats, costs: Floats, rates: Floats) -> Solution:
    """The solution for mean rewards (K,), mean costs (K, D) and rates (D,).

    >>> money, energy = [0.3, 0.75, 0.8], [0.2, 0.1, 0.6]
    >>> best = solve_means(np.array([0.45, 0.7, 0.8]), np.array([money, energy]).T, np.array([0.5, 0.25]))
    >>> round(best.value, 12), best.base, best.prices.round(12).tolist()
    (0.574456521739, (0, 1, 2), [0.586956521739, 0.141304347826])
    """
    arms, resources = costs.shape
    program = new_program(arms, resources)
    solve_in_python(rewards, np.ascontiguousarray(costs.T), rates, program, tuple(range(resources)))
    mix = np.zeros(arms + 1)
    weighed = (program.basis <= arms) & (program.amounts > TIE)
    mix[program.basis[weighed]] = program.amounts[weighed]
    prices, level = np.maximum(program.prices[:-1], 0.0), max(float(program.prices[-1]), 0.0)
    gaps = np.maximum(level - rewards + costs @ prices, 0.0)
    gaps[program.basis[program.basis < arms]] = 0.0
    base = tuple(int(member) for member in np.flatnonzero(mix))
    return Solution(float(mix[:-1] @ rewards), mix, prices, level, gaps, base)

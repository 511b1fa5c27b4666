"""One linear program of a late round, by arms and resources, beside the figures of an independent C++ prototype."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import paceline as pl
from benchmarks.rounds import ROUNDS, numpy_draws
from benchmarks.turns import fastest, line
from paceline.kernels.jit import bind, kernel
from paceline.kernels.lp import Program, new_program, solve_program

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Nanoseconds per program of the prototype, for (arms, resources).
PROTOTYPE = {
    (10, 1): 90,
    (20, 2): 128,
    (20, 3): 214,
    (20, 5): 398,
    (20, 8): 695,
    (100, 3): 225,
    (100, 8): 558,
    (200, 5): 390,
    (200, 8): 658,
}
PROBLEMS = 32
PROGRAMS = 1_000  # per problem and turn
NORMALS = 1 << 15


class Late(NamedTuple):
    """What is believed of a problem's arms late in a run: means, and how far draws stray from them."""

    rewards: Floats
    costs: Floats
    rates: Floats
    widths: Floats


class Round(NamedTuple):
    """Room for one round's draws."""

    rewards: Floats
    costs: Floats


def room(costs: Floats, amounts: Floats) -> float:
    """How far the rate of some binding resource can fall until the base breaks; ``costs`` of members, binding only."""
    inverse = np.linalg.inv(np.vstack([costs, np.ones(amounts.size)]))[:, :-1]
    return float(np.min(amounts[:, None] / inverse, where=inverse > 0.0, initial=np.inf))


def late_state(numbers: np.random.Generator, arms: int, resources: int) -> Late:
    """A problem made backwards from its solution: 2 to D + 1 members that are no slacks, the null arm in one of four.

    Gaps are at least 0.02, and so that the base is no accident each rate may fall by 0.03. By then an arm outside the
    base with gap g has been pulled about  log t / g^2  times, so its draws stray by a share of g; those of the base are
    known well.
    """
    members = int(numbers.integers(2, resources + 2))
    in_base = members - int(numbers.random() < 0.25)
    binding = numbers.permutation(resources)[: members - 1]
    while True:
        costs = numbers.random((resources, arms))
        amounts = numbers.dirichlet(np.full(members, 2.0))
        of_members = costs[:, :members].copy()
        of_members[:, in_base:] = 0.0
        if room(of_members[binding], amounts) >= 0.03:
            break
    rates = of_members @ amounts
    rates[np.setdiff1d(np.arange(resources), binding)] += numbers.uniform(0.1, 0.3, resources - binding.size)
    prices = np.zeros(resources)
    prices[binding] = numbers.uniform(0.2, 1.0, binding.size) / binding.size
    level = numbers.uniform(0.05, 0.3) if in_base == members else 0.0
    gaps = np.append(np.zeros(in_base), 0.02 + numbers.exponential(0.3, arms - in_base))
    widths = np.where(gaps > 0.0, gaps / 4.0, 0.005) / np.sqrt(1.0 + prices @ prices)
    order = numbers.permutation(arms)
    rewards = level + prices @ costs - gaps
    return Late(rewards[order], np.ascontiguousarray(costs[:, order]), rates, widths[order])


@kernel
def draw(late: Late, normals: Floats, start: int, drawn: Round) -> None:
    for k in range(late.rewards.size):
        drawn.rewards[k] = late.rewards[k] + late.widths[k] * normals[start + k]
    for d in range(late.rates.size):
        start += late.rewards.size
        for k in range(late.rewards.size):
            drawn.costs[d, k] = late.costs[d, k] + late.widths[k] * normals[start + k]


def rounds(late: Late, normals: Floats, starts: Ints, drawn: Round, program: Program, resources: Any) -> int:
    """Draw and solve, round by round; the number of steps."""
    steps = 0
    for i in range(starts.size):
        draw(late, normals, starts[i], drawn)
        steps += solve_program(drawn.rewards, drawn.costs, late.rates, program, resources)
        program.last[:] = program.basis
    return steps


def draws(late: Late, normals: Floats, starts: Ints, drawn: Round) -> None:
    """The same without the programs."""
    for i in range(starts.size):
        draw(late, normals, starts[i], drawn)


solving, drawing = bind(rounds, "benchmarks.lp", counted=False), bind(draws, "benchmarks.lp", counted=False)


class Spent(NamedTuple):
    """Nanoseconds per program, also with a number of resources that the compiler does not know, and steps."""

    constant: float
    at_run_time: float
    steps: float


def measured(arms: int, resources: int) -> Spent:
    """The mean over problems of the fastest turn, less the time of the draws."""
    numbers = np.random.default_rng(1000 * arms + resources)
    coins = numbers.random(NORMALS) < 0.5  # half of the arms stand at their centre
    normals = numbers.standard_normal(NORMALS) * coins
    drawn = Round(np.zeros(arms), np.zeros((resources, arms)))
    constant, at_run_time = tuple(range(resources)), np.arange(resources)
    total = np.zeros(3)
    for _ in range(PROBLEMS):
        starts = numbers.integers(0, NORMALS - arms * (resources + 1), PROGRAMS)
        play = late_state(numbers, arms, resources), normals, starts, drawn
        program = new_program(arms, resources)
        steps = solving(*play, program, constant)
        solving(*play, program, at_run_time)
        drawing(*play)
        seconds = fastest(
            {
                "constant": partial(solving, *play, program, constant),
                "at run time": partial(solving, *play, program, at_run_time),
                "draws": partial(drawing, *play),
            }
        )
        without = seconds["draws"]
        total += 1e9 * (seconds["constant"] - without), 1e9 * (seconds["at run time"] - without), steps
    return Spent(*(total / (PROBLEMS * PROGRAMS)).tolist())


def main() -> None:
    problem = pl.paper.eight_arms()
    floor = fastest({"floor": lambda: numpy_draws(problem)})["floor"] / ROUNDS * 1e9
    line("floor: rng.beta for reward and cost", f"{floor:.0f} ns")
    for (arms, resources), prototype in PROTOTYPE.items():
        spent = measured(arms, resources)
        line(
            f"{arms} arms, {resources} resources, {spent.steps:.1f} steps",
            f"{spent.constant:.0f} ns",
            f"{spent.constant / prototype:.2f} of {prototype} ns (at most 1.5); {spent.constant / floor:.2f} floors; "
            f"number of resources known at run time only: {spent.at_run_time:.0f} ns",
        )


if __name__ == "__main__":
    main()

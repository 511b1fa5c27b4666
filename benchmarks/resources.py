"""Several resources: ``thompson`` against other steering on problems that nobody tuned on, and its special cases.

``python -m benchmarks.resources`` runs everything (about a quarter of an hour on two cores);
``python -m benchmarks.resources short speed`` only these parts: short, long, special, speed.

Figures are of steady regret: the mean over the trials of a problem, then over the limit of the problem or over another
policy, then the geometric mean over problems.
"""

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import paceline as pl
from benchmarks.play import Play
from benchmarks.steering import Mix, Resolve
from benchmarks.turns import fastest, line

Floats = npt.NDArray[np.float64]

COUNTS = (2, 3, 5)  # of resources
FAMILY_SEED, TRIAL_SEED = 4100, 4200  # kept for judging
LEAST = 0.1  # a mean regret below this, as short runs can have, counts as this
ALL = {"thompson": pl.ThompsonPacer(), "mix": Mix(), "resolve": Resolve(), "oracle": pl.Oracle()}
CAUSES = ("wrong_arms", "idle", "unspent")


@dataclass
class Cell:
    """Some policies on some problems."""

    limits: Floats  # (problems,)
    regret: dict[str, Floats]  # (problems,)
    causes: dict[str, Floats]  # (problems, 3)

    def over_limit(self, label: str) -> float:
        """Geometric mean of regret / limit."""
        return geometric(np.maximum(self.regret[label], LEAST) / self.limits)

    def over(self, label: str, other: str) -> float:
        """Geometric mean of the regret of one policy over that of another."""
        return geometric(np.maximum(self.regret[label], LEAST) / np.maximum(self.regret[other], LEAST))

    def show(self, title: str) -> None:
        """A line per policy."""
        print(f"\n  {title:<34} over limit     mean  = wrong + idle + unspent")
        for label, regret in self.regret.items():
            wrong, idle, unspent = self.causes[label].mean(axis=0)
            parts = f"{wrong:7.1f} {idle:6.1f} {unspent:6.1f}"
            print(f"    {label:<32} {self.over_limit(label):10.3f} {regret.mean():8.1f}  {parts}")


def geometric(ratios: Floats) -> float:
    """The geometric mean."""
    return math.exp(float(np.log(ratios).mean()))


def pool(cells: Sequence[Cell]) -> Cell:
    """The problems of several cells as one."""
    labels = cells[0].regret
    return Cell(
        np.concatenate([cell.limits for cell in cells]),
        {label: np.concatenate([cell.regret[label] for cell in cells]) for label in labels},
        {label: np.concatenate([cell.causes[label] for cell in cells]) for label in labels},
    )


def play(
    problems: Sequence[pl.Problem], policies: Mapping[str, pl.Policy], rounds: int, trials: int, limits: bool = True
) -> Cell:
    """Play each policy on each problem, each problem with random numbers of its own."""
    regret: dict[str, list[float]] = {label: [] for label in policies}
    causes: dict[str, list[list[float]]] = {label: [] for label in policies}
    for number, problem in enumerate(problems):
        results = pl.simulate(problem, dict(policies), rounds, trials, seed=TRIAL_SEED + number, checkpoints=1)
        for label, run in results.items():
            parts = run.breakdown()
            regret[label].append(float(run.steady_regret[:, -1].mean()))
            causes[label].append([float(parts[cause][:, -1].mean()) for cause in CAUSES])
            if run.min_headroom.min() < 0.0:
                raise AssertionError(f"{label} crossed a line on problem {number}")
    yardsticks = [pl.theory.limit(problem, rounds) if limits else 1.0 for problem in problems]
    return Cell(
        np.array(yardsticks),
        {label: np.array(values) for label, values in regret.items()},
        {label: np.array(values) for label, values in causes.items()},
    )


# The main table.


def main_table(rounds: int, size: int, trials: int, targets: Mapping[str, str]) -> None:
    """All policies on problems with 2, 3 and 5 resources, and the four figures that are demanded."""
    cells = []
    for count in COUNTS:
        family = pl.problems.family("resources", size, FAMILY_SEED + rounds, resources=count)
        cells.append(play(family, ALL, rounds, trials))
        cells[-1].show(f"{count} resources, {rounds:,} rounds, {size} x {trials}")
    both = pool(cells)
    print()
    for other in ("mix", "resolve"):
        each = " ".join(f"{cell.over('thompson', other):.2f}" for cell in cells)
        line(f"thompson over {other} ({each}), pooled", f"{both.over('thompson', other):.3f}", targets[other])
    line("thompson over the limit, pooled", f"{both.over_limit('thompson'):.3f}", targets["limit"])
    line("mean regret of the oracle, pooled", f"{both.regret['oracle'].mean():.2f}", targets["oracle"])


def short() -> None:
    """20,000 rounds."""
    targets = {"mix": "at most 0.80", "resolve": "at most 0.95", "limit": "0.30 to 0.50", "oracle": "at most 6"}
    main_table(20_000, 30, 3, targets)


def long() -> None:
    """200,000 rounds."""
    main_table(200_000, 20, 2, {"mix": "at most 0.65", "resolve": "at most 0.85", "limit": "", "oracle": ""})


# Special cases.


def every_resource_twice(problem: pl.Problem) -> pl.Problem:
    """The same problem with a copy of each resource; coupled, so that a copy costs the same in each pull."""
    both = ("", " again")
    return pl.Problem(
        problem.rewards,
        {name + again: problem.costs[name] for name in problem.resources for again in both},
        {name + again: problem.budget[name] for name in problem.resources for again in both},
        coupled=problem.coupled,
    )


def with_a_free_resource(problem: pl.Problem) -> pl.Problem:
    """A problem with one resource, and beside it one of which nothing is ever used."""
    free = [pl.Constant(0.0)] * problem.arms
    return pl.Problem(
        problem.rewards, {"r1": problem.costs, "free": free}, {"r1": problem.budget, "free": 1.0}, problem.coupled
    )


def stock_only(problem: pl.Problem, rounds: int) -> pl.Problem:
    """The same problem with all income as a stock at the start."""
    stock = {name: rate * rounds for name, rate in problem.budget.items()}
    return pl.Problem(problem.rewards, problem.costs, dict.fromkeys(stock, 0.0), problem.coupled, start=stock)


def compare_pairs(
    title: str, pairs: Sequence[tuple[pl.Problem, pl.Problem]], rounds: int, trials: int, target: str
) -> None:
    """``thompson`` on the second problem of each pair over the first."""
    first, second = (
        play([pair[side] for pair in pairs], {"thompson": pl.ThompsonPacer()}, rounds, trials, limits=False)
        for side in (0, 1)
    )
    logs = np.log(np.maximum(second.regret["thompson"], LEAST) / np.maximum(first.regret["thompson"], LEAST))
    error = logs.std(ddof=1) / math.sqrt(logs.size)
    means = f"means {first.regret['thompson'].mean():.1f}, {second.regret['thompson'].mean():.1f}"
    line(f"{title} ({means})", f"{math.exp(logs.mean()):.3f} +-{error:.3f}", target)


def special() -> None:
    """Each of the special cases at 20,000 rounds."""
    rounds = 20_000
    print()
    once = pl.problems.family("resources-correlated", 20, FAMILY_SEED)
    pairs = [(problem, every_resource_twice(problem)) for problem in once]
    compare_pairs("every resource twice over once", pairs, rounds, 10, "0.85 to 1.15")
    for kind in ("beta", "bernoulli", "mixed"):
        pairs = [(problem, with_a_free_resource(problem)) for problem in pl.problems.family(kind, 24, FAMILY_SEED)]
        compare_pairs(f"{kind}: with a free resource over without", pairs, rounds, 12, "0.90 to 1.10")
    for count in (2, 3):
        for kind in ("refilling", "resources-correlated", "resources-tight", "resources-slack"):
            family = pl.problems.family(kind, 20, FAMILY_SEED, resources=count)
            play(family, ALL, rounds, 3).show(f"{kind}, {count} resources")
        family = [stock_only(p, rounds) for p in pl.problems.family("resources", 20, FAMILY_SEED, resources=count)]
        play(family, ALL, rounds, 3).show(f"stock only, {count} resources")


# Speed.


def speed_problem(resources: int) -> pl.Problem:
    """Twenty arms, Beta outcomes, every resource binding."""
    return pl.problems.family("resources-tight", 1, FAMILY_SEED, arms=20, resources=resources)[0]


def numpy_draws(problem: pl.Problem, rounds: int) -> None:
    """What NumPy needs for a reward and one cost of so many rounds, spread evenly over the arms."""
    generator = np.random.default_rng(0)
    for reward, cost in zip(problem.rewards, problem.consumptions[0], strict=True):
        generator.beta(*reward.shape, size=rounds // problem.arms)
        generator.beta(*cost.shape, size=rounds // problem.arms)


def speed() -> None:
    """A round with 20 arms, in units of NumPy's time for two Beta values.

    Turns are short, so that some of them are undisturbed also on a busy machine; that of NumPy is longer, because in a
    short one its calls would cost as much as its draws.
    """
    rounds, draws, warm_up = 4_000, 40_000, 100_000
    policies = {"thompson": pl.ThompsonPacer(), "index": pl.IndexPacer()}
    plays = {
        (name, count): Play(speed_problem(count), policy, 100_000_000)
        for name, policy in policies.items()
        for count in (2, 3, 5, 8)
    }
    for run in plays.values():
        run.rounds(warm_up)
    contestants: dict[str, Callable[[], None]] = {"floor": lambda: numpy_draws(speed_problem(3), draws)}
    contestants |= {f"{name}, {count}": lambda run=run: run.rounds(rounds) for (name, count), run in plays.items()}  # type: ignore[misc]
    seconds = fastest(contestants, turns=200)
    floor = seconds.pop("floor") / draws
    print()
    line("floor: rng.beta for reward and a cost", f"{floor * 1e9:.0f} ns")
    targets = {"3": "under 12", "8": "under 25"}
    for (_, count), (who, spent) in zip(plays, seconds.items(), strict=True):
        title = f"a round of {who} resources, 20 arms"
        line(title, f"{spent / rounds / floor:.1f} floors", targets.get(str(count), ""))


PARTS = {"short": short, "long": long, "special": special, "speed": speed}


def main(parts: Sequence[str] = tuple(PARTS)) -> None:
    for name in parts:
        if name not in PARTS:
            sys.exit(f"parts must be of {', '.join(PARTS)}, got {name!r}")
        PARTS[name]()


if __name__ == "__main__":
    main(sys.argv[1:] or tuple(PARTS))

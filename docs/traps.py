"""Problems made to mislead a policy that learns: a table of docs/policies.md. ``python docs/traps.py`` takes a minute.

An arm that is never tried, or a base that is never paid for, loses a share of all rounds for ever.
"""

import numpy as np

import paceline as pl

ROUNDS, TRIALS, SEED = 60_000, 24, 5
POLICIES = ["index", "thompson", "optimistic", "epsilon-greedy"]
CHEAP, RARE = pl.Scaled(pl.Beta(0.5), 0.1), pl.Bernoulli(0.001)
PROBLEMS = {
    "a flat price beside a cost that varies": pl.Problem(
        [pl.Bernoulli(0.2), pl.Bernoulli(0.5)], [pl.Constant(0.1), pl.Beta(0.06)], budget=0.09, max_costs=[0.1, 1.0]
    ),
    "the same with a fixed reward": pl.Problem(
        [pl.Constant(0.2), pl.Bernoulli(0.5)], [pl.Constant(0.1), pl.Beta(0.06)], budget=0.09, max_costs=[0.1, 1.0]
    ),
    "flat prices above the budget": pl.Problem(
        [pl.Bernoulli(0.2), pl.Bernoulli(0.5), pl.Bernoulli(0.6)],
        [pl.Beta(0.1), pl.Constant(0.5), pl.Constant(0.9)],
        budget=0.3,
        max_costs=[1.0, 0.5, 0.9],
    ),
    "a flat price beside arms that are free": pl.Problem(
        [pl.Bernoulli(0.2), pl.Bernoulli(0.5), pl.Bernoulli(0.8)],
        [pl.Constant(0.0), pl.Constant(0.0), pl.Constant(0.9)],
        budget=0.1,
    ),
    "the cheapest arm never earns": pl.Problem(
        [pl.Constant(0.0), pl.Bernoulli(0.3)], [CHEAP, pl.Beta(0.2)], budget=0.05, max_costs=[0.1, 1.0]
    ),
    "a small arm that costs more than comes in": pl.problems.family("inventory", 10, seed=9091)[9],
    "one arm of 0.005, a dear one of 0.5": pl.Problem(
        [pl.Bernoulli(0.005), pl.Bernoulli(0.5)], [CHEAP, pl.Beta(0.3)], budget=0.04, max_costs=[0.1, 1.0]
    ),
    "five arms of 0.001, a dear one of 0.2": pl.Problem(
        [*[RARE] * 5, pl.Bernoulli(0.2)], [*[CHEAP] * 5, pl.Beta(0.3)], budget=0.05, max_costs=[*[0.1] * 5, 1.0]
    ),
}
WITHOUT_A_TRAP = list(PROBLEMS)[:6]  # for the default; the others mislead it for a while


def main() -> None:
    """Print median and worst steady regret."""
    print(f"| problem | all | {' | '.join(POLICIES)} |\n|---|---:|{'---:|' * len(POLICIES)}")
    for name, problem in PROBLEMS.items():
        results = pl.simulate(problem, POLICIES, ROUNDS, TRIALS, SEED, checkpoints=1)
        lost = (run.steady_regret[:, -1] for run in results.values())
        cells = " | ".join(f"{np.median(values):,.0f}, {values.max():,.0f}" for values in lost)
        print(f"| {name} | {ROUNDS * problem.optimum.value:,.0f} | {cells} |", flush=True)


if __name__ == "__main__":
    main()

"""What each policy earns of what the best mix earns on `bidding`: a paragraph of docs/standings.md.

``python docs/bidding.py`` takes a minute. Each of 40 problems is played once for 150,000 rounds.
"""

import numpy as np

import paceline as pl

POLICIES = [
    "index",
    "thompson",
    "optimistic",
    "epsilon-greedy",
    "greedy",
    "suak",
    "one-phase",
    "ucb-simplex",
    "uniform",
]
PROBLEMS, ROUNDS, SEED = 40, 150_000, 62_001


def shares() -> dict[str, list[float]]:
    """Of each policy what it earns, steady, over what the best mix earns that knows the means: one for each problem."""
    found: dict[str, list[float]] = {}
    for number, problem in enumerate(pl.problems.family("bidding", PROBLEMS, seed=SEED)):
        results = pl.simulate(problem, POLICIES, ROUNDS, 1, SEED + number, checkpoints=1)
        for label, run in results.items():
            lost = float(run.steady_regret[0, -1]) / (problem.optimum.value * ROUNDS)
            found.setdefault(label, []).append(1.0 - lost)
    return found


if __name__ == "__main__":
    found = shares()
    for label, share in found.items():
        behind = np.subtract(found["index"], share)
        print(
            f"{label:<15} {np.mean(share):6.1%} +- {np.std(share, ddof=1) / PROBLEMS**0.5:.1%},"
            f"  index ahead by {behind.mean():+.1%} +- {behind.std(ddof=1) / PROBLEMS**0.5:.1%}"
        )

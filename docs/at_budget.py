"""What is lost where the best arm costs just the budget, beside what must be: a table of docs/pacer.md.

``python docs/at_budget.py`` takes a minute. On such a problem the sum of the costs of the best arm is c T give or take
sigma sqrt(T). What is overspent must be made up for with its left neighbour on the hull, at the price lam_l; what is
left over buys the right one, at lam_r. Even a rule that settles all of it in the end loses the mean of that,

    (lam_l - lam_r) sigma sqrt(T / (2 pi)).

That is a heuristic, not a bound that anybody has proved; to keep the line at all times costs up to twice as much.
"""

import math

import numpy as np

import paceline as pl

PROBLEMS, TRIALS, SEED = 24, 4, 78
ROUNDS = [2_000, 20_000, 200_000]
POLICIES = ["oracle", "index", "thompson", "epsilon-greedy", "greedy"]


def order(problem: pl.Problem, rounds: int) -> float:
    """The formula above."""
    rewards, costs = np.append(problem.reward_means, 0.0), np.append(problem.cost_means, 0.0)
    best = max((arm for arm in range(problem.arms) if costs[arm] == problem.budget), key=lambda arm: rewards[arm])
    left, right = costs < costs[best], costs > costs[best]
    slopes = (rewards - rewards[best]) / np.where(left | right, costs - costs[best], 1.0)
    dearer = max(float(slopes[right].max(initial=0.0)), 0.0)
    return float((slopes[left].min() - dearer) * math.sqrt(problem.costs[best].variance * rounds / (2.0 * math.pi)))


def main() -> None:
    """Print the geometric means over the problems."""
    problems = pl.problems.family("at-budget", PROBLEMS, seed=SEED)
    lost = {label: np.empty((PROBLEMS, len(ROUNDS))) for label in POLICIES}
    for number, problem in enumerate(problems):
        results = pl.simulate(problem, POLICIES, ROUNDS[-1], TRIALS, SEED + number, checkpoints=ROUNDS)
        for label, run in results.items():
            lost[label][number] = run.steady_regret.mean(axis=0)
    lost = {"the formula": np.array([[order(problem, at) for at in ROUNDS] for problem in problems]), **lost}
    print(f"| | {' | '.join(f'{at:,}' for at in ROUNDS)} | exponent |\n|---|{'---:|' * (len(ROUNDS) + 1)}")
    for label, values in lost.items():
        means = np.exp(np.log(np.maximum(values, 0.1)).mean(axis=0))
        exponent = math.log(means[-1] / means[0]) / math.log(ROUNDS[-1] / ROUNDS[0])
        print(f"| {label} | {' | '.join(f'{mean:,.3g}' for mean in means)} | {exponent:.2f} |")


if __name__ == "__main__":
    main()

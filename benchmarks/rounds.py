"""One round on the paper's 8 arms, outcome draws included, over NumPy's time for its two Beta values."""

import numpy as np

import paceline as pl
from benchmarks.play import Play
from benchmarks.turns import fastest, line

ROUNDS = 300_000
WARM_UP = 600_000  # beyond the phase 1 of SUAK, so that every policy does its full work


def numpy_draws(problem: pl.Problem) -> None:
    """What NumPy needs for reward and cost of so many rounds, spread evenly over the arms."""
    generator = np.random.default_rng(0)
    share = ROUNDS // problem.arms
    for reward, cost in zip(problem.rewards, problem.costs, strict=True):
        generator.beta(*reward.shape, size=share)
        generator.beta(*cost.shape, size=share)


def main() -> None:
    problem = pl.paper.eight_arms()
    policies = [pl.SUAK(), pl.OnePhase(), pl.UCBSimplex(), pl.PrimalDual(), pl.Uniform(), pl.Oracle()]
    plays = {policy.name: Play(problem, policy, 10_000_000) for policy in policies}
    for play in plays.values():
        play.rounds(WARM_UP)
    contestants = {"floor": lambda: numpy_draws(problem)}
    contestants |= {name: lambda play=play: play.rounds(ROUNDS) for name, play in plays.items()}
    seconds = fastest(contestants)
    floor = seconds.pop("floor")
    line("floor: rng.beta for reward and cost", f"{floor / ROUNDS * 1e9:.0f} ns")
    for name, spent in seconds.items():
        target = "at most 2.5" if name in {"suak", "one-phase", "ucb-simplex"} else ""
        line(name, f"{spent / floor:.2f} floors", target)


if __name__ == "__main__":
    main()

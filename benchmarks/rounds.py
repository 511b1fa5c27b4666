"""One round on the paper's 8 arms, outcome draws included, over NumPy's time for its two Beta values."""

import numpy as np

import paceline as pl
from benchmarks.play import Play
from benchmarks.turns import fastest, line
from paceline.policies import POLICIES

ROUNDS = 300_000
TARGETS = {"thompson": "at most 6", "index": "at most 3"}
TARGETS |= dict.fromkeys(("suak", "one-phase", "ucb-simplex"), "at most 2.5")
# Of the field, without a linear program.
TARGETS |= dict.fromkeys(("lagrangian", "lagrange-bwk", "best-of-both-worlds", "replenishable"), "at most 4")
TARGETS |= dict.fromkeys(("exp3-six", "lagrange-cbwlc", "primal-dual-bwk", "queue", "kube"), "at most 4")
TARGETS |= dict.fromkeys(("optimistic-lp", "ucb-bwk", "sw-ucb", "control-budget"), "at most 6")
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
    policies = [policy() for policy in POLICIES.values()]
    plays = {policy.name: Play(problem, policy, 10_000_000) for policy in policies}
    for play in plays.values():
        play.rounds(WARM_UP)
    contestants = {"floor": lambda: numpy_draws(problem)}
    contestants |= {name: lambda play=play: play.rounds(ROUNDS) for name, play in plays.items()}
    seconds = fastest(contestants)
    floor = seconds.pop("floor")
    line("floor: rng.beta for reward and cost", f"{floor / ROUNDS * 1e9:.0f} ns")
    for name, spent in seconds.items():
        line(name, f"{spent / floor:.2f} floors", TARGETS.get(name, ""))


if __name__ == "__main__":
    main()

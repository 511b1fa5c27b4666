"""Nanoseconds of a round by policy and number of arms, and what that makes of a large study."""

import paceline as pl
from benchmarks.play import Play, spread_problem
from benchmarks.turns import fastest
from paceline.policies import POLICIES

ARMS = (8, 64, 512)
WARM_UP = 400_000
STUDY_ROUNDS = 10_000 * 10_000_000  # trials x rounds


def problem_of(arms: int) -> pl.Problem:
    return pl.paper.eight_arms() if arms == 8 else spread_problem(arms)


def nanoseconds(policy: pl.Policy, arms: int) -> float:
    play = Play(problem_of(arms), policy, 10_000_000)
    play.rounds(WARM_UP)
    count = 1_600_000 // arms
    return fastest({"it": lambda: play.rounds(count)}, turns=5)["it"] / count * 1e9


def main() -> None:
    print("| policy | " + " | ".join(f"{arms} arms, ns" for arms in ARMS), end="")
    print(" | 1,000,000-round trials per core-hour, 8 arms | 10,000 x 10,000,000 rounds, 8 arms, core-hours |")
    print("|---" + "|---:" * (len(ARMS) + 2) + "|")
    for name, policy in POLICIES.items():
        taken = [nanoseconds(policy(), arms) for arms in ARMS]
        trials = 3600 / (taken[0] * 1e-3)
        hours = STUDY_ROUNDS * taken[0] * 1e-9 / 3600
        print(f"| {name} | " + " | ".join(f"{value:,.0f}" for value in taken) + f" | {trials:,.0f} | {hours:.1f} |")


if __name__ == "__main__":
    main()

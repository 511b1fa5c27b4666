"""What late news costs: the tables of docs/delays.md. ``python docs/delays.py`` takes two minutes on two quiet cores.

The first is of late costs: steady regret, and the rounds sat out until a quarter of the rounds and until the end. The
second is of late rewards. Last, on random families with rewards very late: what `index` loses over what `thompson`
loses.
"""

from typing import Any

import paceline as pl

SEED = 12
COSTS: dict[str, Any] = {
    "0": 0,
    "5": 5,
    "geometric, mean 5": {"geometric": 5},
    "50": 50,
    "geometric, mean 50": {"geometric": 50},
    "500": 500,
    "geometric, mean 500": {"geometric": 500},
}
REWARDS: dict[str, Any] = {"0": 0, "50": 50, "500": 500, "5,000": 5000, "batches of 100": {"batch": 100}}
FAMILIES = ("many", "bernoulli", "rare")


def late_costs(rounds: int = 200_000, trials: int = 16) -> None:
    """Print what is lost, and how long policies sit still, when costs come late."""
    policies = ["index", "thompson", "oracle"]
    print(f"costs late by | {' | '.join(policies)}, steady regret (idle until {rounds // 4:,}, {rounds:,})")
    for name, delay in COSTS.items():
        late = {"delay": {"cost": delay}} if delay else {}
        found = pl.simulate(
            pl.paper.eight_arms(), policies, rounds, trials, SEED, checkpoints=[rounds // 4, rounds], **late
        )
        cells = (
            f"{run.steady_regret[:, -1].mean():,.3g} ({run.idle[:, 0].mean():,.0f}, {run.idle[:, 1].mean():,.0f})"
            for run in found.values()
        )
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def late_rewards(rounds: int = 60_000, trials: int = 100) -> None:
    """Print what is lost when rewards come late."""
    policies = ["index", "thompson", "optimistic"]
    print(f"\nrewards late by | {' | '.join(policies)}, steady regret +- standard error")
    for name, delay in REWARDS.items():
        late = {"delay": {"reward": delay}} if delay else {}
        found = pl.simulate(pl.paper.eight_arms(), policies, rounds, trials, SEED, checkpoints=1, **late)
        ends = [run.steady_regret[:, -1] for run in found.values()]
        cells = (f"{end.mean():,.1f} ± {end.std(ddof=1) / trials**0.5:.1f}" for end in ends)
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def random_families(rounds: int = 60_000, trials: int = 8) -> None:
    """Print what the default loses over what `thompson` loses, with rewards 5,000 rounds late."""
    print("\nindex / thompson [95 % interval over problems]")
    for kind in FAMILIES:
        study = pl.compare(
            kind, ["index", "thompson"], problems=12, rounds=rounds, trials=trials, seed=909, delay={"reward": 5000}
        )
        print(f"{kind}: {study.scores('index')[1].gain}", flush=True)


if __name__ == "__main__":
    late_costs()
    late_rewards()
    random_families()

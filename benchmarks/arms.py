"""Cost of a round by the number of arms."""

import paceline as pl
from benchmarks.play import Play, spread_problem
from benchmarks.turns import fastest, line

ROUNDS = 20_000
WARM_UP = 30_000  # rounds per arm: all arms tried, SUAK classifies half of them in phase 1 and all before phase 2


def main() -> None:
    for policy in (
        pl.IndexPacer(),
        pl.ThompsonPacer(),
        pl.OptimisticPacer(),
        pl.SUAK(),
        pl.OnePhase(),
        pl.UCBSimplex(),
        pl.PrimalDual(),
    ):
        plays = {arms: Play(spread_problem(arms), policy, 50_000_000) for arms in (64, 512)}
        for arms, play in plays.items():
            play.rounds(WARM_UP * (arms if policy.name == "suak" else 1))
        seconds = fastest({str(arms): lambda play=play: play.rounds(ROUNDS) for arms, play in plays.items()})
        line(f"{policy.name}: 512 arms over 64 arms", f"{seconds['512'] / seconds['64']:.1f} times", "at most 12")
        if policy.name == "suak":
            in_base = min(int(play.storage.record[0].base_rounds) for play in plays.values())
            line("  rounds in which SUAK mixed a base, least", f"{in_base:,}")


if __name__ == "__main__":
    main()

"""Two threads over one."""

from concurrent.futures import ThreadPoolExecutor

import paceline as pl
from benchmarks.turns import fastest, line


def run(threads: int) -> None:
    with ThreadPoolExecutor(threads) as pool:
        pl.simulate(pl.paper.eight_arms(), "suak", rounds=1_000_000, trials=4, executor=pool)


def main() -> None:
    seconds = fastest({"one": lambda: run(1), "two": lambda: run(2)}, turns=5)
    line("suak, 4 trials of 1,000,000 rounds", f"{seconds['one'] / seconds['two']:.2f} times", "at least 1.7")


if __name__ == "__main__":
    main()

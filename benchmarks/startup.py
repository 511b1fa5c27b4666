"""Start of a process: the help text, and the first simulated round with compiled code from the disk cache."""

import subprocess
import sys

from benchmarks.turns import fastest, line

FIRST_ROUND = "import paceline as pl; pl.simulate(pl.paper.three_arms(), 'suak', rounds=1, trials=1)"


def python(*arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)


def main() -> None:
    python("-c", FIRST_ROUND)  # fills the cache
    seconds = fastest(
        {
            "python alone": lambda: python("-c", "pass"),
            "paceline --help": lambda: python("-m", "paceline", "--help"),
            "first simulated round, second process": lambda: python("-c", FIRST_ROUND),
        },
        turns=5,
    )
    targets = {"paceline --help": "under 0.4 s", "first simulated round, second process": "under 1.5 s"}
    for name, spent in seconds.items():
        line(name, f"{spent:.2f} s", targets.get(name, ""))


if __name__ == "__main__":
    main()

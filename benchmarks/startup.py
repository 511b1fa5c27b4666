"""Start of a process: the help text; the first round or decision with compiled code from the disk, and without."""

import os
import subprocess
import sys
from tempfile import TemporaryDirectory

from benchmarks.turns import fastest, line

FIRST_ROUND = "import paceline as pl; pl.simulate(pl.paper.three_arms(), 'suak', rounds=1, trials=1)"
FIRST_DECISION = "import paceline as pl; pl.Bandit(['a', 'b', 'c'], 0.5).ask()"
TARGETS = {
    "paceline --help": "under 0.4 s",
    "first simulated round, second process": "under 1.5 s",
    "first decision, nothing compiled yet": "under 3 s",
    "first rounds of reproduce, nothing compiled yet": "under 9 s",
}


def python(*arguments: str, **settings: str) -> None:
    environment = {**os.environ, **settings}
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True, env=environment)


def cold(*arguments: str) -> None:
    """With an empty cache of compiled code."""
    with TemporaryDirectory() as folder:
        python(*arguments, NUMBA_CACHE_DIR=folder)


def cold_reproduce() -> None:
    """Until the first rounds are played: the compiler for all policies, then one round of each."""
    code = "import paceline as pl; from paceline.compile import compile_ahead; "
    code += "from paceline.experiments.shipped import papers_experiment; "
    code += "policies = {label: spec.policy for label, spec in papers_experiment(1, 1, 1, 0).policies.items()}; "
    code += "compile_ahead(list(policies.values()), ['simulation']); "
    cold("-c", code + "pl.simulate(pl.paper.three_arms(), policies, rounds=1, trials=1)")


def main() -> None:
    python("-c", FIRST_ROUND)  # fills the cache
    contestants = {
        "python alone": lambda: python("-c", "pass"),
        "paceline --help": lambda: python("-m", "paceline", "--help"),
        "first simulated round, second process": lambda: python("-c", FIRST_ROUND),
    }
    without_code = {
        "first decision, nothing compiled yet": lambda: cold("-c", FIRST_DECISION),
        "first rounds of reproduce, nothing compiled yet": cold_reproduce,
    }
    for name, spent in (fastest(contestants, turns=5) | fastest(without_code, turns=2)).items():
        line(name, f"{spent:.2f} s", TARGETS.get(name, ""))


if __name__ == "__main__":
    main()

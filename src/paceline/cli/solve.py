"""``paceline solve``: the optimum of a problem."""

import argparse
import json
from pathlib import Path

SUMMARY = "the best mix of arms for a problem, its value and its price"
DESCRIPTION = """\
Solve the linear program of a problem: the best mix of arms, its value per round, the price of a unit of budget and what
a pull of each arm loses.

  paceline solve --rewards .45 .7 .8 --costs .3 .75 .8 --budget .5
  paceline solve problem.toml

where problem.toml holds, at the top or under [problem],

  rewards = [0.45, 0.7, 0.8]        # means, or tables such as {kind = "constant", value = 0.2}
  costs   = [0.3, 0.75, 0.8]
  budget  = 0.5
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help="a problem in TOML")
    parser.add_argument("--rewards", type=float, nargs="+", metavar="MEAN", help="mean reward of each arm")
    parser.add_argument("--costs", type=float, nargs="+", metavar="MEAN", help="mean cost of each arm")
    parser.add_argument("--budget", type=float, metavar="C", help="budget per round, in (0, 1]")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def run(options: argparse.Namespace) -> None:
    """Solve and print."""
    from paceline.errors import InvalidValue
    from paceline.problems.problem import Problem
    from paceline.problems.toml import read_problem
    from paceline.reports.tables import Table

    given = {name: getattr(options, name) for name in ("rewards", "costs", "budget")}
    missing = [f"--{name}" for name, value in given.items() if value is None]
    if options.file is not None:
        if len(missing) < len(given):
            raise InvalidValue("a problem must come from a file or from options, got both")
        problem = read_problem(options.file)
    elif missing:
        raise InvalidValue(f"a problem needs a file, or --rewards, --costs and --budget; missing: {', '.join(missing)}")
    else:
        problem = Problem.from_dict(given)
    best = problem.optimum
    if options.json:
        data = {
            "value": best.value,
            "mix": best.mix.tolist(),
            "price": best.price,
            "level": best.level,
            "gaps": best.gaps.tolist(),
            "case": best.case,
        }
        print(json.dumps(data, indent=2))
        return
    arms = [
        (str(arm + 1), f"{reward:.6g}", f"{cost:.6g}", f"{best.mix[arm]:.6f}", f"{best.gaps[arm]:.6f}")
        for arm, (reward, cost) in enumerate(zip(problem.reward_means, problem.cost_means, strict=True))
    ]
    null = ("null", "0", "0", f"{best.mix[-1]:.6f}", f"{best.level:.6f}")
    print(f"value per round  {best.value:.6f}")
    print(f"price of budget  {best.price:.6f}")
    print(f"level of a round {best.level:.6f}")
    print(f"case             {best.case} ({CASES[best.case]})\n")
    print(Table(("arm", "reward", "cost", "weight", "a pull loses"), (*arms, null)))


CASES = {
    1: "the arm of highest reward is affordable",
    2: "one arm mixed with sitting out",
    3: "two arms mixed, or one whose cost is just the budget",
}

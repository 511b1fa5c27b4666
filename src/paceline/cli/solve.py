"""``paceline solve``: the optimum of a problem."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from paceline.errors import InvalidValue

if TYPE_CHECKING:
    from paceline.problems.optimum import Optimum
    from paceline.problems.problem import Problem
    from paceline.reports.tables import Table

SUMMARY = "the best mix of arms for a problem, its value and its price"
DESCRIPTION = """\
Solve the linear program of a problem: the best mix of arms, its value per round, the price of a unit of budget and what
a pull of each arm loses. With several resources costs and budgets come by name, and each resource has a price.

  paceline solve --rewards .45 .7 .8 --costs .3 .75 .8 --budget .5
  paceline solve --rewards .45 .7 .8 --costs money=.3,.75,.8 energy=.2,.1,.6 --budget money=.5 energy=.25
  paceline solve problem.toml

where problem.toml holds, at the top or under [problem],

  rewards = [0.45, 0.7, 0.8]        # means, or tables such as {kind = "constant", value = 0.2}
  costs   = [0.3, 0.75, 0.8]        # with several resources {money = [0.3, 0.75, 0.8], energy = [0.2, 0.1, 0.6]}
  budget  = 0.5                     # and {money = 0.5, energy = 0.25}

A file with [[problem]] tables, such as that of an experiment, has each of its problems solved, under its name.
"""

CASES = {
    1: "the arm of highest reward is affordable",
    2: "one arm mixed with sitting out",
    3: "two arms mixed, or one whose cost is just the budget",
}
ALONE = ""  # in place of the name of a problem that needs none
CASES_OF_SEVERAL = {**CASES, 2: "arms mixed with sitting out", 3: "arms alone"}


class Amounts(NamedTuple):
    """Numbers for one resource, or for the one without a name."""

    resource: str | None
    values: list[float]


def amounts(text: str) -> list[Amounts]:
    """What "0.3", "0.3,0.75" and "money=0.3,0.75,energy=0.2,0.1" stand for.

    >>> amounts("0.5")
    [Amounts(resource=None, values=[0.5])]
    >>> [part.resource for part in amounts("money=0.3,0.75,energy=0.2,0.1")]
    ['money', 'energy']
    """
    found: list[Amounts] = []
    for entry in text.split(","):
        name, equals, number = entry.rpartition("=")
        if equals or not found:
            found.append(Amounts(name if equals else None, []))
        found[-1].values.append(float(number))
    return found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    several: dict[str, Any] = {"type": amounts, "nargs": "+", "action": "extend"}
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help="a problem in TOML")
    parser.add_argument("--rewards", type=float, nargs="+", metavar="MEAN", help="mean reward of each arm")
    parser.add_argument(
        "--costs", **several, metavar="MEAN", help="mean cost of each arm; with several resources NAME=MEAN,MEAN,..."
    )
    parser.add_argument(
        "--budget", **several, metavar="C", help="budget per round, in (0, 1]; with several resources NAME=C"
    )
    parser.add_argument(
        "--start", **several, metavar="B", help="stock before the first round; with several resources NAME=B"
    )
    parser.add_argument("--rounds", type=int, metavar="N", help="rounds that a stock without a budget has to last")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def run(options: argparse.Namespace) -> None:
    """Solve and print."""
    from paceline import checks

    rounds = None if options.rounds is None else checks.rounds("rounds", options.rounds)
    problems = problems_of(options)
    solved = {name: (problem, optimum_of(problem, rounds)) for name, problem in problems.items()}
    if options.json:
        found = {name: as_data(*each) for name, each in solved.items()}
        print(json.dumps(found.get(ALONE, found), indent=2))
        return
    print("\n\n".join((f"{name}\n\n" if name != ALONE else "") + in_words(*each) for name, each in solved.items()))


def in_words(problem: "Problem", best: "Optimum") -> str:
    """The optimum for people."""
    case = (CASES if len(problem.resources) == 1 else CASES_OF_SEVERAL)[best.case]
    lines = {
        "value per round": f"{best.value:.6f}",
        **{f"price of {name}": f"{price:.6f}" for name, price in prices_of(problem, best, "budget").items()},
        "level of a round": f"{best.level:.6f}",
        "case": f"{best.case} ({case})",
    }
    width = max(map(len, lines))
    told = "\n".join(f"{name:<{width}} {value}" for name, value in lines.items())
    return f"{told}\n\n{arms_table(problem, best)}"


def problems_of(options: argparse.Namespace) -> "dict[str, Problem]":
    """The problems in the file, by name, or the one in the options, which has none."""
    from paceline.problems.problem import Problem

    given = {name: getattr(options, name) for name in ("rewards", "costs", "budget", "start")}
    missing = [f"--{name}" for name, value in given.items() if value is None and name != "start"]
    if options.file is not None:
        if any(value is not None for value in given.values()):
            raise InvalidValue("a problem must come from a file or from options, got both")
        return problems_in(options.file)
    if missing:
        raise InvalidValue(f"a problem needs a file, or --rewards, --costs and --budget; missing: {', '.join(missing)}")
    table: dict[str, Any] = {"rewards": options.rewards, "costs": by_name("--costs", options.costs)}
    for name in ("budget", "start"):
        if given[name] is not None:
            values = by_name(f"--{name}", given[name])
            table[name] = (
                {resource: single(f"--{name} of {resource!r}", own) for resource, own in values.items()}
                if isinstance(values, dict)
                else single(f"--{name}", values)
            )
    return {ALONE: Problem.from_dict(table)}


def problems_in(file: Path) -> "dict[str, Problem]":
    """The problem at the top of a file or under [problem], or those of its [[problem]] tables by name."""
    from paceline.experiments.grids import at
    from paceline.problems.problem import Problem
    from paceline.problems.toml import read_toml

    tables = read_toml(file)
    given = tables.get("problem", tables)
    with at(f"{file}"):
        if isinstance(given, list):
            from paceline.experiments.entries import read_problems

            if not all(isinstance(table, dict) for table in given):
                raise InvalidValue(f"problem must be a list of tables: [[problem]], got {given!r}")
            return {each.name: each.problem for each in read_problems(given, file.parent)}
        return {ALONE: Problem.from_dict(given)}


def by_name(option: str, given: Sequence[list[Amounts]]) -> dict[str, list[float]] | list[float]:
    """The numbers of an option by resource, or in one list if there are no names."""
    parts = [part for parts in given for part in parts]
    if all(part.resource is None for part in parts):
        return [value for part in parts for value in part.values]
    found: dict[str, list[float]] = {}
    for name, values in parts:
        if name is None:
            raise InvalidValue(f"{option} must have a name for every resource, as in money=0.3, got {values[0]!r}")
        if name in found:
            raise InvalidValue(f"{option} must be given once for each resource, got {name!r} twice")
        found[name] = values
    return found


def single(thing: str, values: list[float]) -> float:
    """The only number of a list."""
    if len(values) != 1:
        raise InvalidValue(f"{thing} must be one number, got {', '.join(map(repr, values))}")
    return values[0]


def optimum_of(problem: "Problem", rounds: int | None) -> "Optimum":
    """The optimum; a stock without a budget has one for a number of rounds only."""
    if not problem.is_known:
        raise InvalidValue("a problem must tell its true means to be solved, got a world without")
    stocks = zip(problem.resources, problem.rates, problem.stocks, strict=True)
    alone = [name for name, rate, stock in stocks if rate == 0.0 < stock]
    if rounds is None and alone:
        raise InvalidValue(f"--rounds must say how long a stock without a budget, {alone[0]!r}, has to last, got none")
    return problem.optimum if rounds is None else problem.optimum_over(rounds)


def prices_of(problem: "Problem", best: "Optimum", unnamed: str) -> dict[str, float]:
    """The prices by resource; the one without a name goes by another word."""
    from paceline.problems.resources import UNNAMED

    names = (unnamed,) if problem.resources == (UNNAMED,) else problem.resources
    return dict(zip(names, best.prices.tolist(), strict=True))


def as_data(problem: "Problem", best: "Optimum") -> dict[str, object]:
    """The optimum as plain data: one price, or prices by resource."""
    from paceline.problems.resources import UNNAMED

    prices = prices_of(problem, best, UNNAMED)
    return {
        "value": best.value,
        "mix": best.mix.tolist(),
        **({"price": best.price} if tuple(prices) == (UNNAMED,) else {"prices": prices}),
        "level": best.level,
        "gaps": best.gaps.tolist(),
        "case": best.case,
    }


def arms_table(problem: "Problem", best: "Optimum") -> "Table":
    """A line per arm: what it brings and costs, its weight in the best mix, and what a pull of it loses."""
    from paceline.reports.tables import Table, of_resources

    arms = [
        (str(arm + 1), f"{reward:.6g}", *(f"{cost:.6g}" for cost in costs), f"{weight:.6f}", f"{gap:.6f}")
        for arm, (reward, costs, weight, gap) in enumerate(
            zip(problem.reward_means, problem.consumption_means, best.mix[:-1], best.gaps, strict=True)
        )
    ]
    nothing = ["0"] * (1 + len(problem.resources))
    null = ("null", *nothing, f"{best.mix[-1]:.6f}", f"{best.level:.6f}")
    return Table(("arm", "reward", *of_resources("cost", problem.resources), "weight", "a pull loses"), (*arms, null))

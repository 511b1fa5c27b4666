"""``paceline replay``: policies on logged outcomes."""

import argparse
from pathlib import Path
from typing import Any, TypeVar

from paceline.errors import InvalidValue
from paceline.extras import check_installed

Value = TypeVar("Value")

SUMMARY = "what policies would have done on logged outcomes, at several budgets"
DESCRIPTION = """\
Run policies over a file of logged outcomes, to see what they would have earned and to choose a budget. The file is CSV
with a heading, packed if its name ends with .gz, or Parquet if it ends with .parquet.

Either each row has an arm that was drawn at random, its reward and its cost (and the propensity, if arms were not
equally likely), or it has the reward and the cost of every arm in columns of their own:

  paceline replay log.parquet --budget 0.1,0.2,0.3
  paceline replay log.csv --budget 0.1,0.2,0.3 --policies thompson,suak --propensity p
  paceline replay log.csv --budget 0.2 --rewards banner=b_clicks,video=v_clicks --costs banner=b_cost,video=v_cost

With several resources each has a name, and its budget, columns and largest costs are given under it:

  paceline replay log.csv --budget money=0.3,0.4 --budget calls=0.5 --cost money=usd --cost calls=n
  paceline replay log.csv --budget money=0.3 --budget calls=0.5 --rewards a=ra,b=rb \\
      --costs money:a=ca,b=cb --costs calls:a=na,b=nb --max-cost money:a=0.2,b=1 --max-cost calls=1

Every budget of one resource is then played with every one of the others.

Writes replay.csv and, with one resource, replay.png, and prints the table with 95 % intervals. The rows must be
independent; see the help of paceline.replay for the conditions.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    parser.add_argument("log", type=Path, metavar="LOG", help="a CSV or Parquet file")
    parser.add_argument(
        "--budget",
        required=True,
        action="append",
        metavar="[NAME=]C[,C...]",
        help="money per round, in the unit of the costs; one or more",
    )
    parser.add_argument(
        "--policies", default="index", metavar="NAME[,NAME...]", help="as for compare (default: %(default)s)"
    )
    for column in ("arm", "reward"):
        parser.add_argument(
            f"--{column}", default=column, metavar="COL", help=f"column of the {column} (default: %(default)s)"
        )
    parser.add_argument(
        "--cost", action="append", metavar="[NAME=]COL", help="column of the cost (default: cost, or cost_NAME)"
    )
    parser.add_argument(
        "--propensity",
        metavar="COL",
        help="column of the probability with which the arm was drawn (default: propensity, if there is one)",
    )
    parser.add_argument(
        "--no-propensity",
        dest="propensity",
        action="store_false",
        default=None,
        help="arms were drawn evenly, whatever a column says",
    )
    parser.add_argument("--rewards", metavar="ARM=COL,...", help="columns of the rewards of all arms")
    parser.add_argument(
        "--costs", action="append", metavar="[NAME:]ARM=COL,...", help="columns of the costs of all arms"
    )
    parser.add_argument(
        "--max-cost",
        action="append",
        metavar="X",
        help="largest cost of a pull, or of each arm as in a=1,b=2 (default: 1)",
    )
    parser.add_argument("--max-reward", type=float, default=1.0, metavar="X", help="largest reward (default: 1)")
    parser.add_argument("--repeats", type=int, default=200, metavar="N", help="resamples of the log (default: 200)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of all random numbers (default: 0)")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("paceline-replay"),
        metavar="DIR",
        help="folder to write to (default: %(default)s)",
    )


def run(options: argparse.Namespace) -> None:
    """Replay, draw, report."""
    from paceline.cli.compare import policies_of
    from paceline.offline.replay import replay
    from paceline.reports.tables import csv_text

    as_is = ("arm", "reward", "propensity", "max_reward", "repeats", "seed")
    settings: dict[str, Any] = {
        **{name: getattr(options, name) for name in as_is},
        **(by_resource(options) if any("=" in text for text in options.budget) else for_one_resource(options)),
        "rewards": options.rewards and pairs_of("--rewards", options.rewards),
    }
    rates = settings["budget"][0]
    draws = not isinstance(rates, dict) or len(rates) == 1
    if draws:
        check_installed("lab", "paceline replay")
    done = replay(options.log, policies_of(options.policies), **settings)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "replay.csv").write_text(csv_text(done.records()), encoding="utf-8", newline="")
    written = ["replay.csv"]
    if draws:
        done.plot(options.out / "replay.png")
        written.append("replay.png")
    print(f"{done.rows:,} rows, {done.repeats} resamples, seed {done.seed}\n\n{done.arm_table()}\n\n{done.table()}\n")
    for note in done.notes:
        print(f"note: {note}")
    print(f"Written to {options.out}: {', '.join(written)}")


def for_one_resource(options: argparse.Namespace) -> dict[str, Any]:
    """Budgets, columns and largest costs of a resource without a name; of an option given twice the last one counts."""
    from paceline.cli.compare import number_or_word

    return {
        "budget": [number_or_word(rate) for rate in options.budget[-1].split(",")],
        "cost": options.cost[-1] if options.cost else None,
        "costs": options.costs and pairs_of("--costs", options.costs[-1]),
        "max_cost": max_cost_of(options.max_cost[-1]) if options.max_cost else 1.0,
    }


def by_resource(options: argparse.Namespace) -> dict[str, Any]:
    """Budgets, columns and largest costs of named resources."""
    return {
        "budget": budgets_of(options.budget),
        "cost": pairs_of("--cost", ",".join(options.cost), "resource") if options.cost else None,
        "costs": options.costs and join("--costs", "resource", [arms_of("--costs", text) for text in options.costs]),
        "max_cost": max_costs_of(options.max_cost) if options.max_cost else 1.0,
    }


def budgets_of(texts: list[str]) -> list[dict[str, object]]:
    """Every combination of the rates of the resources. A rate without a name is one more of the resource before it.

    >>> budgets_of(["money=0.3,0.4", "calls=2"])
    [{'money': 0.3, 'calls': 2}, {'money': 0.4, 'calls': 2}]
    """
    from itertools import product

    from paceline.cli.compare import number_or_word

    lists: list[dict[str, list[object]]] = []
    for text in texts:
        for number, part in enumerate(text.split(",")):
            if number == 0 or "=" in part:
                ((name, rate),) = pair_of("--budget", part, "resource").items()
                lists.append({name: [number_or_word(rate)]})
            else:
                lists[-1][name].append(number_or_word(part))
    joined = join("--budget", "resource", lists)
    return [dict(zip(joined, rates, strict=True)) for rates in product(*joined.values())]


def max_costs_of(texts: list[str]) -> object:
    """One number for all, or by resource: a number, or a mapping of arms.

    >>> max_costs_of(["money:a=0.2,b=1", "calls=1"])
    {'money': {'a': 0.2, 'b': 1}, 'calls': 1}
    """
    if "=" not in texts[-1]:
        return numbers_in(texts[-1])
    parts: list[dict[str, Any]] = []
    for text in texts:
        by_arm = ":" in text.partition("=")[0]
        parts.append(arms_of("--max-cost", text) if by_arm else pairs_of("--max-cost", text, "resource"))
    return numbers_in(join("--max-cost", "resource", parts))


def arms_of(option: str, text: str) -> dict[str, dict[str, str]]:
    """The pairs of one resource in "money:banner=b_cost,video=v_cost"."""
    name, _, pairs = text.partition(":")
    if not (name and pairs):
        raise InvalidValue(f"{option} must be given as in resource:arm=value,arm=value, got {text!r}")
    return {name: pairs_of(option, pairs)}


def pairs_of(option: str, text: str, thing: str = "arm") -> dict[str, str]:
    """The pairs in "banner=clicks,video=views"."""
    return join(option, thing, [pair_of(option, pair, thing) for pair in text.split(",")])


def pair_of(option: str, text: str, thing: str) -> dict[str, str]:
    """The pair in "banner=clicks"."""
    name, _, value = text.partition("=")
    if not (name and value):
        raise InvalidValue(f"{option} must be given as in {thing}=value,{thing}=value, got {text!r}")
    return {name: value}


def join(option: str, thing: str, parts: list[dict[str, Value]]) -> dict[str, Value]:
    """All parts in one; none may name what another has named."""
    joined: dict[str, Value] = {}
    for part in parts:
        for name, value in part.items():
            if name in joined:
                article = "an" if thing == "arm" else "a"
                raise InvalidValue(f"{option} must name {article} {thing} once, got {name!r} twice")
            joined[name] = value
    return joined


def max_cost_of(text: str) -> object:
    """One number for all arms, or a mapping."""
    return numbers_in(pairs_of("--max-cost", text) if "=" in text else text)


def numbers_in(given: Any) -> Any:
    """The numbers that texts spell, in mappings of them too."""
    from paceline.cli.compare import number_or_word

    if isinstance(given, dict):
        return {name: numbers_in(value) for name, value in given.items()}
    return number_or_word(given)

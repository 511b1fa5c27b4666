"""``paceline replay``: policies on logged outcomes."""

import argparse
from pathlib import Path
from typing import Any

SUMMARY = "what policies would have done on logged outcomes, at several budgets"
DESCRIPTION = """\
Run policies over a CSV file of logged outcomes, to see what they would have earned and to choose a budget.

Either each row has an arm that was drawn at random, its reward and its cost (and the propensity, if arms were not
equally likely), or it has the reward and the cost of every arm in columns of their own:

  paceline replay log.csv --budget 0.1,0.2,0.3 --policies thompson,suak --propensity p
  paceline replay log.csv --budget 0.2 --rewards banner=b_clicks,video=v_clicks --costs banner=b_cost,video=v_cost

Writes replay.png and replay.csv, and prints the table with 95 % intervals. The rows must be independent; see the help
of paceline.replay for the conditions.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    parser.add_argument("log", type=Path, metavar="LOG", help="a CSV file with a heading")
    parser.add_argument(
        "--budget", required=True, metavar="C[,C...]", help="money per round, in the unit of the costs; one or more"
    )
    parser.add_argument(
        "--policies", default="thompson", metavar="NAME[,NAME...]", help="as for compare (default: %(default)s)"
    )
    for column in ("arm", "reward", "cost"):
        parser.add_argument(
            f"--{column}", default=column, metavar="COL", help=f"column of the {column} (default: %(default)s)"
        )
    parser.add_argument("--propensity", metavar="COL", help="column of the probability with which the arm was drawn")
    for side in ("rewards", "costs"):
        parser.add_argument(f"--{side}", metavar="ARM=COL,...", help=f"columns of the {side} of all arms")
    parser.add_argument(
        "--max-cost", default="1", metavar="X", help="largest cost of a pull, or of each arm as in a=1,b=2 (default: 1)"
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
    import csv

    from paceline.cli.compare import number_or_word, policies_of
    from paceline.offline.replay import replay

    as_is = ("arm", "reward", "cost", "propensity", "max_reward", "repeats", "seed")
    settings: dict[str, Any] = {
        **{name: getattr(options, name) for name in as_is},
        "budget": [number_or_word(rate) for rate in options.budget.split(",")],
        "rewards": options.rewards and pairs_of("--rewards", options.rewards),
        "costs": options.costs and pairs_of("--costs", options.costs),
        "max_cost": max_cost_of(options.max_cost),
    }
    done = replay(options.log, policies_of(options.policies), **settings)
    options.out.mkdir(parents=True, exist_ok=True)
    records = done.records()
    with (options.out / "replay.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(records[0]))
        writer.writeheader()
        writer.writerows(records)
    done.plot(options.out / "replay.png")
    print(f"{done.rows:,} rows, {done.repeats} resamples, seed {done.seed}\n\n{done.arm_table()}\n\n{done.table()}\n")
    for note in done.notes:
        print(f"note: {note}")
    print(f"Written to {options.out}: replay.csv, replay.png")


def pairs_of(option: str, text: str) -> dict[str, str]:
    """The pairs in "banner=clicks,video=views"."""
    from paceline.errors import InvalidValue

    pairs = {}
    for pair in text.split(","):
        name, _, value = pair.partition("=")
        if not (name and value):
            raise InvalidValue(f"{option} must be given as in arm=value,arm=value, got {pair!r}")
        if name in pairs:
            raise InvalidValue(f"{option} must name an arm once, got {name!r} twice")
        pairs[name] = value
    return pairs


def max_cost_of(text: str) -> object:
    """One number for all arms, or a mapping."""
    from paceline.cli.compare import number_or_word

    if "=" not in text:
        return number_or_word(text)
    return {name: number_or_word(value) for name, value in pairs_of("--max-cost", text).items()}

"""``paceline compare``: policies against each other on families of random problems."""

import argparse
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from paceline.cli.run import add_shipped, play_shipped
from paceline.errors import InvalidValue

if TYPE_CHECKING:
    from paceline.experiments.experiment import Experiment
    from paceline.policies.policy import Policy

SWITCHES: dict[str, object] = {"true": True, "false": False}

SUMMARY = "compare policies on families of random problems"
DESCRIPTION = """\
Play policies on families of random problems, all with the same random numbers, behind the guard, and hold their steady
regret against the limit of each problem and against each other.

  paceline compare
  paceline compare beta rare --policies thompson,suak,one-phase:a=2 --rounds 100000
  paceline compare all --horizons 500,2000,20000,200000

Each kind is an experiment (--show prints its file) and has a folder of its own, with a manifest and the raw totals; an
interrupted comparison goes on where it was. Writes one page for all of them, report.html and report.md, with figures
and tables beside it, and prints the tables. The default takes about a minute.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this command. What is not given is as in the file that --show prints."""
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="kinds of problems, or all (default: three of them)")
    parser.add_argument(
        "--policies",
        metavar="NAME[,NAME...]",
        help="policies, with parameters as in one-phase:a=2 or suak:order=fewest:horizon=1000 "
        "(default: nine of them, as far as they can play the kind)",
    )
    parser.add_argument("--problems", type=int, metavar="N", help="problems of a kind (default: 12)")
    parser.add_argument(
        "--rounds", type=int, metavar="N", help="rounds of a trial (default: 50000, or what the kind is for)"
    )
    parser.add_argument(
        "--horizons",
        metavar="N[,N...]",
        help="hold every policy against the best one after so many rounds; the last is --rounds",
    )
    parser.add_argument("--trials", type=int, metavar="N", help="trials on a problem (default: 8)")
    parser.add_argument("--seed", type=int, metavar="N", help="seed of all random numbers (default: 0)")
    parser.add_argument(
        "--shortfall",
        type=float,
        default=0.1,
        metavar="X",
        help="how far arms fall behind the frontier of the kind, on average (default: %(default)s)",
    )
    parser.add_argument(
        "--resources", type=int, metavar="N", help="resources of each problem, for kinds with several (default: 2)"
    )
    parser.add_argument(
        "--delay",
        metavar="X",
        help="rounds by which outcomes are late, as a value of TOML: 5, {geometric = 50}, [0, 0, 9], or "
        "{cost = 5, reward = 50} with these (default: not late)",
    )
    add_shipped(parser, "paceline-compare")
    parser.add_argument("--list", action="store_true", help="list the kinds of problems and stop")


def run(options: argparse.Namespace) -> None:
    """Compare, report, print."""
    from paceline.problems.families import KINDS

    if options.list:
        width = max(map(len, KINDS)) + 2
        for name, says in KINDS.items():
            print(f"{name:<{width}}{says}")
        return
    play_shipped(experiments_of(options), options)


def experiments_of(options: argparse.Namespace) -> "list[Experiment]":
    """An experiment for each kind; all are checked before the first is begun."""
    from paceline.experiments.shipped import COMPARISON, comparison, rounds_to_play
    from paceline.problems import families
    from paceline.problems.toml import read_toml
    from paceline.worlds.delays import read_toml_delays

    table = read_toml(COMPARISON)
    (drawn,) = table["problem"]
    wanted = list(families.KINDS) if options.kinds == ["all"] else options.kinds or drawn["family"]
    kinds = [families.check_kind(kind) for kind in dict.fromkeys(wanted)]
    horizons = horizons_of(options.horizons)
    if options.rounds is not None and horizons and horizons[-1] > options.rounds:
        raise InvalidValue(f"horizons must not be beyond the rounds of a trial, {options.rounds}, got {horizons[-1]}")
    if options.kinds != ["all"] and horizons:  # a kind that was named must have a line in the table
        for kind in kinds:
            most = rounds_to_play(kind, None, horizons[0])
            if most < horizons[0]:
                raise InvalidValue(
                    f"the first horizon of kind {kind!r} must be at most {most} rounds, got {horizons[0]}"
                )
    usual = {"problems": drawn["size"], "trials": table["trials"], "seed": table["seed"]}
    scale = {key: value if getattr(options, key) is None else getattr(options, key) for key, value in usual.items()}
    given = {"shortfall": options.shortfall, "resources": options.resources}
    delay = None if options.delay is None else read_toml_delays(options.delay)
    found = []
    for kind in kinds:
        policies = policies_of(options.policies, len(families.random(kind, 0, **given).resources), table["policies"])
        rounds = rounds_to_play(kind, options.rounds, horizons[-1] if horizons else table["rounds"])
        found.append(comparison(kind, policies, rounds=rounds, horizons=horizons, delay=delay, **scale, **given))
    return found


def horizons_of(text: str | None) -> list[int]:
    """The rounds in "500,2000", in their order.

    >>> horizons_of("2000, 500"), horizons_of(None)
    ([500, 2000], [])
    """
    from paceline.experiments.experiment import check_horizons

    try:
        found = [int(part) for part in text.split(",")] if text is not None else []
    except ValueError:
        raise InvalidValue(f"horizons must be whole numbers, as in 500,2000, got {text!r}") from None
    return check_horizons(found)


def policies_of(text: str | None, resources: int = 1, usual: Sequence[str] = ()) -> "dict[str, Policy]":
    """The policies in "suak,one-phase:a=2", by the text of each, or the usual ones that can play.

    All must be able to deal with so many resources.
    """
    from paceline.policies import label_policies

    entries = usual if text is None else text.split(",")
    chosen = label_policies([{entry: policy_of(entry)} for entry in (entry.strip() for entry in entries)])
    if text is None:
        return {name: policy for name, policy in chosen.items() if resources <= (policy.resources or resources)}
    for policy in chosen.values():
        policy.check_resources(resources)
    return chosen


def policy_of(entry: str) -> "Policy":
    """The policy in "name" or "name:parameter=value:parameter=value"; a value is a number, true, false or a word.

    A name that is not in the list has two parts, as in module:Class.
    """
    from paceline.policies import POLICIES, make_policy

    parts = entry.split(":")
    own = 1 if parts[0] in POLICIES else 2
    name, settings = ":".join(parts[:own]), parts[own:]
    parameters: dict[str, object] = {}
    for setting in settings:
        parameter, _, value = setting.partition("=")
        if not (parameter and value):
            raise InvalidValue(f"a parameter of {name} must be given as in {name}:name=value, got {setting!r}")
        parameters[parameter] = SWITCHES.get(value, number_or_word(value))
    return make_policy(name, **parameters)


def number_or_word(text: str) -> int | float | str:
    """The number that a text spells, or the text.

    >>> number_or_word("2"), number_or_word("1e-3"), number_or_word("fewest")
    (2, 0.001, 'fewest')
    """
    for number in (int, float):
        with suppress(ValueError):
            return number(text)
    return text

"""``paceline compare``: policies against each other on families of random problems."""

import argparse
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paceline.policies.policy import Policy

KINDS = ("beta", "bernoulli", "mixed")
ROUNDS = 50_000
SWITCHES: dict[str, object] = {"true": True, "false": False}
POLICIES = (
    "index",
    "thompson",
    "optimistic",
    "epsilon-greedy",
    "greedy",
    "suak",
    "one-phase",
    "ucb-simplex",
    "uniform",
)

SUMMARY = "compare policies on families of random problems"
DESCRIPTION = """\
Play policies on families of random problems, all with the same random numbers, behind the guard, and hold their steady
regret against the limit of each problem and against each other.

  paceline compare
  paceline compare beta rare --policies thompson,suak,one-phase:a=2 --rounds 100000
  paceline compare all --horizons 500,2000,20000,200000

Writes compare-KIND.png and compare-KIND.npz (the raw totals) for each kind, compare.md and compare.json, and prints the
tables. The default takes about a minute.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    parser.add_argument(
        "kinds", nargs="*", metavar="KIND", help=f"kinds of problems, or all (default: {' '.join(KINDS)})"
    )
    parser.add_argument(
        "--policies",
        metavar="NAME[,NAME...]",
        help="policies, with parameters as in one-phase:a=2 or suak:order=fewest:horizon=1000 "
        f"(default: those of {','.join(POLICIES)} that can play the kind)",
    )
    parser.add_argument(
        "--problems", type=int, default=12, metavar="N", help="problems of a kind (default: %(default)s)"
    )
    parser.add_argument(
        "--rounds", type=int, metavar="N", help=f"rounds of a trial (default: {ROUNDS}, or what the kind is for)"
    )
    parser.add_argument(
        "--horizons",
        metavar="N[,N...]",
        help="hold every policy against the best one after so many rounds; the last is --rounds",
    )
    parser.add_argument("--trials", type=int, default=8, metavar="N", help="trials on a problem (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of all random numbers (default: 0)")
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
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("paceline-compare"),
        metavar="DIR",
        help="folder to write to (default: %(default)s)",
    )
    parser.add_argument("--list", action="store_true", help="list the kinds of problems and stop")


def run(options: argparse.Namespace) -> None:
    """Compare, draw, report."""
    from paceline.cli.compile import on_screen
    from paceline.compile import compile_ahead
    from paceline.experiments.arena import check_scale, compare
    from paceline.experiments.comparison import write_report
    from paceline.experiments.standings import standings
    from paceline.problems import families as problems
    from paceline.worlds.delays import read_toml_delays

    if options.list:
        width = max(map(len, problems.KINDS)) + 2
        for name, says in problems.KINDS.items():
            print(f"{name:<{width}}{says}")
        return
    wanted = list(problems.KINDS) if options.kinds == ["all"] else options.kinds or KINDS
    kinds = [problems.check_kind(kind) for kind in dict.fromkeys(wanted)]
    horizons = horizons_of(options.horizons)
    drawn = {"shortfall": options.shortfall, "resources": options.resources}
    delay = None if options.delay is None else read_toml_delays(options.delay)
    given = {**drawn, "delay": delay, "horizons": horizons}
    counts = {kind: len(problems.random(kind, 0, **drawn).resources) for kind in kinds}
    chosen = {kind: policies_of(options.policies, counts[kind]) for kind in kinds}
    scale = {name: getattr(options, name) for name in ("problems", "trials", "seed")}
    rounds = {kind: rounds_of(kind, options.rounds, horizons) for kind in kinds}
    if options.kinds != ["all"]:
        for kind in kinds:
            check_first_horizon(kind, horizons)
    for number in rounds.values():
        check_scale(rounds=number, **scale)
    options.out.mkdir(parents=True, exist_ok=True)
    everyone = [policy for policies in chosen.values() for policy in policies.values()]
    compile_ahead(everyone, ["simulation"], on_screen, list(counts.values()))
    arenas = []
    for kind in kinds:
        print(f"{kind}: {problems.KINDS[kind]}", file=sys.stderr)
        arena = compare(kind, chosen[kind], rounds=rounds[kind], **scale, **given, progress=True)
        arena.save(options.out / f"compare-{kind}.npz")
        arena.plot(options.out / f"compare-{kind}.png")
        arenas.append(arena)
    write_report(arenas, options.out, horizons)
    if horizons:
        print(f"{standings(arenas, horizons)}\n")
    for arena in arenas:
        print(f"{arena.title}: {arena.size}\n\n{arena.table()}\n\n{arena.by_problem()}\n")
    print(f"Written to {options.out}: {', '.join(sorted(path.name for path in options.out.iterdir()))}")


def horizons_of(text: str | None) -> list[int]:
    """The rounds in "500,2000", in their order.

    >>> horizons_of("2000, 500"), horizons_of(None)
    ([500, 2000], [])
    """
    from paceline.errors import InvalidValue
    from paceline.experiments.arena import check_horizons

    try:
        found = [int(part) for part in text.split(",")] if text is not None else []
    except ValueError:
        raise InvalidValue(f"horizons must be whole numbers, as in 500,2000, got {text!r}") from None
    return check_horizons(found)


def rounds_of(kind: str, rounds: int | None, horizons: list[int]) -> int:
    """How long to play a kind: as long as was asked for, or up to the last horizon that it is for."""
    from paceline.errors import InvalidValue
    from paceline.experiments.arena import rounds_to_play

    if rounds is not None and horizons and horizons[-1] > rounds:
        raise InvalidValue(f"horizons must not be beyond the rounds of a trial, {rounds}, got {horizons[-1]}")
    if rounds is None and horizons:
        return rounds_to_play(kind, None, horizons[-1])
    return rounds_to_play(kind, rounds, ROUNDS)


def check_first_horizon(kind: str, horizons: list[int]) -> None:
    """A kind that was named must have a line in the table: it is for some of the horizons, at least the first.

    >>> check_first_horizon("start", [500, 5000])
    """
    from paceline.errors import InvalidValue
    from paceline.experiments.arena import rounds_to_play

    first = horizons[0] if horizons else 0
    most = rounds_to_play(kind, None, first)
    if most < first:
        raise InvalidValue(f"the first horizon of kind {kind!r} must be at most {most} rounds, got {first}")


def policies_of(text: str | None, resources: int = 1) -> "dict[str, Policy]":
    """The policies in "suak,one-phase:a=2", by the text of each, or the default ones that can play.

    All must be able to deal with so many resources.
    """
    from paceline.policies import label_policies

    entries = POLICIES if text is None else text.split(",")
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
    from paceline.errors import InvalidValue
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

"""The problems of an experiment file: explicit, from a random family, from the paper, or from a CSV of outcomes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from paceline import checks, paper
from paceline.errors import InvalidValue
from paceline.experiments import schema
from paceline.experiments.keys import at, refuse_unknown, tables, text_in, variants
from paceline.offline.data import read_csv
from paceline.offline.logged import RandomLog, if_named
from paceline.offline.logs import random_log, resources_of
from paceline.problems.distributions import Empirical
from paceline.problems.families import check_kind, family
from paceline.problems.problem import Problem
from paceline.problems.resources import by_resource
from paceline.worlds.delays import Delays, read_delays

# Streams: bits 0 to 31 count the trials, 32 to 47 the members of a family, from 48 on the [[problem]] tables.
# The highest bit marks trials beyond those that a file has room for between its members, see `ProblemSpec.stream_of`.
MEMBER, TABLE, BEYOND = 32, 48, 2**63
FAR_APART = 1 << MEMBER
MOST = 2**15 - 1

PAPERS = {"three-arms": paper.three_arms, "eight-arms": paper.eight_arms}

Named = Iterator[tuple[str, Problem]]


@dataclass(frozen=True)
class ProblemSpec:
    """A problem, what it is called, its random numbers, and where in a grid it stands."""

    name: str
    problem: Problem
    stream: int
    swept: dict[str, Any]
    words: str  # the same in words, at the end of the name
    delays: Delays | None = None  # of the outcomes
    apart: int = FAR_APART  # trials that have room before the stream of the next member
    beyond: int = 0  # the stream of trial 0, if the others have no room

    def stream_of(self, trial: int) -> int:
        """Every trial has its own, however many come later."""
        return (self.stream if trial < self.apart else self.beyond) + trial


def read_problems(given: object, folder: Path) -> list[ProblemSpec]:
    """The problems of all [[problem]] tables."""
    entries = tables("problem", [] if given is None else given)
    if not entries:
        raise InvalidValue("an experiment must have problems, as [[problem]] tables, got none")
    checks.whole("the number of [[problem]] tables", len(entries), 1, MOST)
    found: list[ProblemSpec] = []
    for number, entry in enumerate(entries):
        where = f"problem {number + 1}"
        for variant in at(where, lambda e=entry: list(variants(e))):  # type: ignore[misc]
            delays = at(where, lambda v=variant: read_delays(v.table.get("delay")))  # type: ignore[misc]
            members = at(where, lambda v=variant: list(problems_of(v.table, folder)))  # type: ignore[misc]
            first, apart = at(where, partial(read_streams, variant.table.get("streams"), number << TABLE))
            for member, (name, problem) in enumerate(members):
                beyond = BEYOND + (number << TABLE) + (member << MEMBER)
                streams = {"stream": first + member * apart, "apart": apart, "beyond": beyond}
                found.append(
                    ProblemSpec(
                        name + variant.words,
                        problem,
                        swept=variant.swept,
                        words=variant.words,
                        delays=delays,
                        **streams,
                    )
                )
    names = [field.name for field in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidValue(f"names of problems must differ, got {twice!r} twice; set name in each [[problem]]")
    return found


def read_streams(given: object, first: int) -> tuple[int, int]:
    """The stream of the first trial on the first member of a family, and how far apart those of members are.

    >>> read_streams(None, 0) == (0, 2**32), read_streams({"first": 5, "apart": 10}, 0)
    (True, (5, 10))
    """
    if given is None:
        return first, FAR_APART
    if not isinstance(given, dict):
        raise InvalidValue(f"streams must be a table of first and apart, got {given!r}")
    refuse_unknown("streams", given, ("first", "apart"))
    apart = checks.whole("streams.apart", given.get("apart", FAR_APART), 1, FAR_APART)
    return checks.whole("streams.first", given.get("first", first), 0, BEYOND - 1), apart


def problems_of(table: dict[str, Any], folder: Path) -> Named:
    """The problems of one table, by the key that says where they come from."""
    sources: dict[str, Callable[[str, object, dict[str, Any]], Named]] = {
        "paper": of_paper,
        "family": of_family,
        "csv": partial(of_csv, folder),
    }
    chosen = [key for key in sources if key in table]
    if len(chosen) > 1:
        raise InvalidValue(
            f"a problem must come from one of {', '.join(sources)} or from rewards and costs, got {chosen}"
        )
    rest = {key: value for key, value in table.items() if key not in ("name", "delay", "streams")}
    if not chosen:
        yield text_in(table, "name", "problem"), Problem.from_dict(rest)
        return
    (key,) = chosen
    source = rest.pop(key)
    name = text_in(table, "name", source if isinstance(source, str) else key)
    yield from sources[key](name, source, rest)


def of_paper(name: str, source: object, rest: dict[str, Any]) -> Named:
    """One of the paper's two, perhaps with another budget."""
    checks.one_of("paper", source, schema.PAPERS)
    refuse_unknown("a problem of the paper", rest, schema.keys_beside("paper", schema.PAPER))
    problem = PAPERS[str(source)]()
    if "budget" in rest:
        problem = Problem(problem.rewards, problem.costs, rest["budget"])
    yield name, problem


def of_family(name: str, source: object, rest: dict[str, Any]) -> Named:
    """A family as `paceline.problems.family` draws it; its members are numbered."""
    refuse_unknown("a family of problems", rest, schema.keys_beside("family", schema.FAMILY))
    size = checks.whole("size", rest.pop("size", 6), 1, MOST)
    members = family(check_kind(source), size, rest.pop("seed", 0), **rest)
    width = len(str(size))
    for number, problem in enumerate(members, start=1):
        yield f"{name} {number:0{width}d}", problem


def of_csv(folder: Path, name: str, source: object, rest: dict[str, Any]) -> Named:
    """Arms with the outcomes in a CSV file: a pull draws one of the rows of its arm, reward and costs together.

    With several resources ``cost`` has a column for each. Amounts are in the units of the file; those of a problem are
    in units of the largest cost.
    """
    refuse_unknown("a problem from a CSV file", rest, schema.keys_beside("csv", schema.CSV))
    if not isinstance(source, str):
        raise InvalidValue(f"csv must be the name of a file, got {source!r}")
    cost = rest.get("cost", "cost")
    resources = resources_of(None, cost, None)
    log = random_log(
        read_csv(folder / source),
        resources,
        arm=text_in(rest, "arm", "arm"),
        reward=text_in(rest, "reward", "reward"),
        cost={key: text_in(cost, key, None) for key in cost} if isinstance(cost, dict) else text_in(rest, "cost", cost),
        propensity=None,
        max_cost=rest.get("max_cost", 1.0),
        max_reward=rest.get("max_reward", 1.0),
    )
    outcomes = [log.arm(number) for number in range(len(log.names))]
    costs = {
        resource: [Empirical(spent.reshape(len(spent), -1)[:, d].tolist()) for _, spent, _ in outcomes]
        for d, resource in enumerate(resources)
    }
    most = {resource: log.limits[:, d].tolist() for d, resource in enumerate(resources)}
    amounts = {thing: in_costs(log, thing, rest.get(thing)) for thing in ("budget", "start", "cap")}
    rewards = [Empirical(earned.tolist()) for earned, _, _ in outcomes]
    yield name, Problem(rewards, if_named(costs), **amounts, coupled=True, max_costs=if_named(most))


def in_costs(log: RandomLog, thing: str, given: object) -> Any:
    """Amounts of a file, by resource if they have names, in units of the largest cost, in which a problem counts."""
    if given is None:
        return None
    tops = dict(zip(log.resources, log.tops.tolist(), strict=True))
    named = by_resource(thing, given, log.resources, otherwise=None).items()
    return if_named({key: checks.real(what, value, 0) / tops[key] for key, (what, value) in named if value is not None})

"""The policies of an experiment file, and its problems: explicit, random, of the paper, from a CSV file, or a world."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline import checks
from paceline.errors import InvalidValue
from paceline.experiments.grids import at, text_in, variants
from paceline.experiments.spec import FAR_APART, SOURCES, AnyProblem, Csv, Explicit, Family, Paper, World, read
from paceline.offline.data import read_csv
from paceline.offline.logged import RandomLog, if_named
from paceline.offline.logs import random_log, resources_of
from paceline.paper.instances import PAPERS
from paceline.policies import make_policy
from paceline.policies.loading import found_in, load_class
from paceline.policies.policy import Policy
from paceline.problems.distributions import Empirical
from paceline.problems.families import check_kind, family
from paceline.problems.problem import Problem
from paceline.problems.resources import by_resource
from paceline.worlds.delays import Delays, read_delays
from paceline.worlds.python_world import PythonWorld

# Streams: bits 0 to 31 count the trials, 32 to 47 the members of a family, from 48 on the [[problem]] tables.
# The highest bit marks trials beyond those that a file has room for between its members, see `ProblemSpec.stream_of`.
MEMBER, TABLE, BEYOND = 32, 48, 2**63
MOST = 2**15 - 1

Named = Iterator[tuple[str, Problem | PythonWorld]]


@dataclass(frozen=True)
class PolicySpec:
    """A policy, and where in a grid it stands."""

    policy: Policy
    swept: dict[str, Any]
    words: str  # the same in words, at the end of the label


def read_policies(names: list[str], tables: list[dict[str, Any]], folder: Path) -> dict[str, PolicySpec]:
    """``policies = ["suak", ...]`` and ``[[policy]]`` tables with a name, a label, parameters and a grid over them.

    A policy in a file is looked for in the folder first, then in the working folder.
    """
    found: dict[str, PolicySpec] = {}
    listed = [(f"policies[{place}]", {"name": name}) for place, name in enumerate(names)]
    for where, table in [*listed, *((f"policy {number}", table) for number, table in enumerate(tables, start=1))]:
        with at(where):
            for chosen, swept, words in variants(table):
                name = text_in(chosen, "name", None)
                label = text_in(chosen, "label", name) + words
                if label in found:
                    raise InvalidValue(f"labels of policies must differ, got {label!r} twice; set label")
                parameters = {key: value for key, value in chosen.items() if key not in {"name", "label"}}
                found[label] = PolicySpec(make_policy(found_in(folder, name), **parameters), swept, words)
    if not found:
        raise InvalidValue("an experiment must have policies, as policies = [...] or [[policy]], got none")
    return found


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
    world: PythonWorld | None = None  # in place of what the problem draws

    @property
    def loop(self) -> tuple[int, bool, bool]:
        """What the machine code of a policy depends on besides itself."""
        return len(self.problem.resources), self.delays is None, self.world is None

    def stream_of(self, trial: int) -> int:
        """Every trial has its own, however many come later."""
        return (self.stream if trial < self.apart else self.beyond) + trial


def read_problems(tables: list[dict[str, Any]], folder: Path) -> list[ProblemSpec]:
    """The problems of all [[problem]] tables."""
    if not tables:
        raise InvalidValue("an experiment must have problems, as [[problem]] tables, got none")
    checks.whole("the number of [[problem]] tables", len(tables), 1, MOST)
    found = [spec for number, table in enumerate(tables) for spec in read_problem(number, table, folder)]
    names = [spec.name for spec in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidValue(f"names of problems must differ, got {twice!r} twice; set name in each [[problem]]")
    return found


def read_problem(number: int, table: dict[str, Any], folder: Path) -> Iterator[ProblemSpec]:
    """The problems of one table: each point of its grid, each member of a family."""
    with at(f"problem {number + 1}"):
        for variant in variants(table):
            chosen = [key for key in SOURCES if key in variant.table]
            if len(chosen) > 1:
                raise InvalidValue(
                    f"a problem must come from one of {', '.join(SOURCES)} or from rewards and costs, got {chosen}"
                )
            spec = read(SOURCES[chosen[0]] if chosen else Explicit, variant.table)
            source = getattr(spec, chosen[0]) if chosen else "problem"
            first = number << TABLE if spec.streams.first is None else spec.streams.first
            apart = spec.streams.apart
            checks.whole("streams.first", first, 0, BEYOND - 1)
            own = {key: value for key, value in variant.table.items() if key not in AnyProblem.__struct_fields__}
            drawn = OF[type(spec)](spec, folder) if chosen else ((None, Problem.from_dict(own)),)
            for member, (called, problem) in enumerate(drawn):
                yield ProblemSpec(
                    " ".join(filter(None, (spec.name or source, called))) + variant.words,
                    problem.lines() if isinstance(problem, PythonWorld) else problem,
                    swept=variant.swept,
                    words=variant.words,
                    delays=read_delays(spec.delay),
                    stream=first + member * apart,
                    apart=apart,
                    beyond=BEYOND + (number << TABLE) + (member << MEMBER),
                    world=problem if isinstance(problem, PythonWorld) else None,
                )


def of_paper(spec: Paper, _: Path) -> Named:
    """One of the paper's two, perhaps with another budget."""
    problem = PAPERS[checks.one_of("paper", spec.paper, tuple(PAPERS))]()
    yield "", problem if spec.budget is None else Problem(problem.rewards, problem.costs, spec.budget)


def of_family(spec: Family, _: Path) -> Named:
    """A family as `paceline.problems.family` draws it; its members are numbered."""
    keys = ("arms", "case", "budget", "concentration", "shortfall", "resources")
    options = {key: value for key in keys if (value := getattr(spec, key)) is not None}
    width = len(str(spec.size))
    for number, problem in enumerate(family(check_kind(spec.family), spec.size, spec.seed, **options), start=1):
        yield f"{number:0{width}d}", problem


def of_world(spec: World, folder: Path) -> Named:
    """A world of the user's own: module:Class, or file.py:Class, made with the parameters."""
    kind = load_class(found_in(folder, spec.world), "world", PythonWorld, "PythonWorld")
    try:
        world = kind(**spec.parameters)
    except TypeError as error:
        raise InvalidValue(f"{spec.world} cannot be made with {spec.parameters!r}: {error}") from None
    yield "", world


def of_csv(spec: Csv, folder: Path) -> Named:
    """Arms with the outcomes in a CSV file: a pull draws one of the rows of its arm, reward and costs together.

    With several resources ``cost`` has a column for each. Amounts are in the units of the file; those of a problem are
    in units of the largest cost.
    """
    resources = resources_of(None, spec.cost, None)
    log = random_log(
        read_csv(folder / spec.csv),
        resources,
        arm=spec.arm,
        reward=spec.reward,
        cost=spec.cost,
        propensity=None,
        max_cost=spec.max_cost,
        max_reward=spec.max_reward,
    )
    outcomes = [log.arm(number) for number in range(len(log.names))]
    costs = {
        resource: [Empirical(spent.reshape(len(spent), -1)[:, d].tolist()) for _, spent, _ in outcomes]
        for d, resource in enumerate(resources)
    }
    most = {resource: log.limits[:, d].tolist() for d, resource in enumerate(resources)}
    amounts = {thing: in_costs(log, thing, getattr(spec, thing)) for thing in ("budget", "start", "cap")}
    rewards = [Empirical(earned.tolist()) for earned, _, _ in outcomes]
    yield "", Problem(rewards, if_named(costs), **amounts, coupled=True, max_costs=if_named(most))


def in_costs(log: RandomLog, thing: str, given: object) -> Any:
    """Amounts of a file, by resource if they have names, in units of the largest cost, in which a problem counts."""
    if given is None:
        return None
    tops = dict(zip(log.resources, log.tops.tolist(), strict=True))
    named = by_resource(thing, given, log.resources, otherwise=None).items()
    return if_named({key: checks.real(what, value, 0) / tops[key] for key, (what, value) in named if value is not None})


OF: dict[type[AnyProblem], Callable[[Any, Path], Named]] = {
    Paper: of_paper,
    Family: of_family,
    Csv: of_csv,
    World: of_world,
}

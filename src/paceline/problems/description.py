"""A problem as a table that JSON and TOML can hold, and the way back."""

import math
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from paceline import checks
from paceline.errors import InvalidValue
from paceline.problems.distributions import Distribution, from_dict, to_dict
from paceline.problems.observed import observations
from paceline.problems.resources import resource_names, without_name
from paceline.problems.rules import check_max_costs, cost_sides, within_top

if TYPE_CHECKING:
    from paceline.problems.problem import Problem

LINES = ("budget", "max_costs", "start", "cap")
ENDS = ("stop", "fallback")
KEYS = ("rewards", "costs", "budget", "kind", "concentration", "coupled", "max_costs", "start", "cap", *ENDS)
KINDS = ("beta", "bernoulli")  # that a bare mean can stand for


def describe(problem: "Problem") -> dict[str, object]:
    """The table of a problem."""
    table: dict[str, object] = {"budget": problem.budget}
    if problem.observations is not None:
        table["observed"] = problem.observations.to_dict()
    else:
        table["rewards"] = [to_dict(reward) for reward in problem.rewards]
        table["costs"] = problem.named([[to_dict(cost) for cost in side] for side in problem.consumptions])
        table["coupled"] = problem.coupled
    if problem.most != check_max_costs(problem.consumptions, None, problem.resources):
        table["max_costs"] = problem.named([list(side) for side in problem.most])
    if any(problem.stocks):
        table["start"] = problem.start
    if min(problem.caps) < math.inf:
        finite = {name: cap for name, cap in zip(problem.resources, problem.caps, strict=True) if cap < math.inf}
        table["cap"] = without_name(problem.resources, finite)
    return table | {end: True for end in ENDS if getattr(problem, end)}


def read_observed(description: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `Problem.of_table` in a table with ``observed``."""
    unknown = [str(key) for key in description if key not in ("observed", "stop", *LINES)]
    if unknown or "budget" not in description:
        got = ", ".join(unknown) or "no budget"
        raise InvalidValue(f"a problem with observed takes {', '.join(LINES)}, stop, and must have a budget; got {got}")
    names = resource_names("budget", description["budget"])
    lines = {key: description.get(key) for key in LINES}
    return {
        "table": observations(description["observed"]),
        "names": names,
        "stop": description.get("stop", False),
        **lines,
    }


def read_distributions(description: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `Problem` in a table with ``rewards`` and ``costs``; see `Problem.from_dict`."""
    missing = [key for key in ("rewards", "costs", "budget") if key not in description]
    if missing:
        raise InvalidValue(f"a problem must have rewards, costs and budget; missing: {', '.join(missing)}")
    unknown = [str(key) for key in description if key not in KEYS]
    if unknown:
        raise InvalidValue(f"a problem takes {', '.join(KEYS)}; got {', '.join(unknown)}")
    kind = checks.one_of("kind of a problem", description.get("kind", "beta"), KINDS)
    if kind == "bernoulli" and "concentration" in description:
        raise InvalidValue(f"concentration is for kind 'beta' only, got kind {kind!r}")
    of_mean = {name: description[name] for name in ("concentration",) if name in description}

    def distribution(thing: str, entry: object, top: float = 1.0) -> Distribution:
        if isinstance(entry, dict):
            return from_dict(entry, thing)
        if top < 1.0:
            return within_top(thing, checks.real(thing, entry, 0, 1), top, partial(bare, thing))
        return bare(thing, entry)

    def bare(thing: str, mean: object) -> Distribution:
        return from_dict({"kind": kind, "mean": mean, **of_mean}, thing)

    rewards = enumerate(checks.entries("rewards", description["rewards"]))
    return {
        "rewards": [distribution(f"rewards[{arm}]", entry) for arm, entry in rewards],
        "costs": cost_sides("costs", description["costs"], description.get("max_costs"), distribution),
        "coupled": description.get("coupled", False),
        **{key: description.get(key) for key in LINES},
        **{key: description.get(key, False) for key in ENDS},
    }

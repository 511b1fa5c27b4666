"""From the columns of a table to a log: every row is checked, and every error names the row or the argument."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from paceline import checks
from paceline.errors import InvalidValue
from paceline.offline.data import LogTable, name_of
from paceline.offline.logged import FullLog, RandomLog, counted
from paceline.problems.resources import UNNAMED, by_resource, cost_columns, resource_names

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MaxCost = float | Mapping[str, float]  # one for all arms, or one for each
Columns = Mapping[str, str]
# The name of the column, which must be there; None: the column called "propensity", if there is one; False: no column.
Propensity = str | Literal[False] | None
PROPENSITY = "propensity"


def random_log(
    log_table: LogTable,
    resources: tuple[str, ...] = (UNNAMED,),
    /,
    *,
    arm: str,
    reward: str,
    cost: str | Columns | None,
    propensity: Propensity,
    max_cost: MaxCost | Mapping[str, MaxCost],
    max_reward: float,
) -> RandomLog:
    """The log of arms shown at random; those columns hold the arm, its reward, its costs and its propensity.

    Rows that lack one of these are left out: rounds that were sat out, and outcomes that are not known.
    """
    max_reward = checks.real("max_reward", max_reward, 0, above_low=True)
    columns_of_costs = by_resource("cost", usual_columns(resources) if cost is None else cost, resources)
    outcome = [("arm", arm), ("reward", reward), *(("cost", column) for _, column in columns_of_costs.values())]
    log_table.require(column for _, column in outcome)
    chance = propensity_column(log_table, propensity)
    whole = log_table.only([*(column for _, column in outcome), *([] if chance is None else [chance])])
    log_table, left_out = complete_rows(whole, outcome, {})
    empty = ""
    if chance is not None and propensity is None and log_table.missing(chance).all():
        empty, chance = chance, None  # a policy that leaves nothing to chance has written this log
    if chance is not None:
        log_table, left_out = complete_rows(log_table, [("propensity", chance)], left_out)
    called = log_table.names("arm", arm)
    names = tuple(sorted(set(called), key=by_number))
    given_limits = max_costs_by_resource(max_cost, resources)
    for thing, given in given_limits.values():
        refuse_unknown_arms(log_table, f"arm in column {arm!r} must be one of {thing}", called, given)
    most = largest_costs(names, given_limits)
    number = {name: at for at, name in enumerate(names)}
    shown = np.array([number[name] for name in called], np.int64)
    rewards = log_table.numbers("reward", reward, max_reward, truth=True)
    costs = [
        shown_costs(log_table, thing, column, most[:, d], called, shown)
        for d, (thing, column) in enumerate(columns_of_costs.values())
    ]
    if chance is None:
        propensities = np.full(log_table.rows, 1.0 / len(names))
    else:
        propensities = log_table.numbers("propensity", chance, 1.0, above_zero=True)
    return RandomLog(
        **scale_log(names, resources, most, max_reward, rewards, np.column_stack(costs)),
        shown=shown,
        propensities=propensities,
        given=chance is not None,
        left_out=left_out,
        empty=empty,
        sat_out=0 if chance is None else rounds_sat_out(whole, arm, chance),
    )


def usual_columns(resources: tuple[str, ...]) -> str | dict[str, str]:
    """Where costs are found in the log of a live bandit.

    >>> usual_columns(("cost",)), usual_columns(("money", "calls"))
    ('cost', {'money': 'cost_money', 'calls': 'cost_calls'})
    """
    columns = cost_columns(resources)
    return columns[UNNAMED] if resources == (UNNAMED,) else columns


def propensity_column(log_table: LogTable, given: Propensity) -> str | None:
    """The column of the propensities, if there is one to be heeded."""
    if given is False:
        return None
    if given is None:
        return PROPENSITY if PROPENSITY in log_table.columns else None
    log_table.require([given])
    return given


def complete_rows(
    log_table: LogTable, parts: Sequence[tuple[str, str]], left_out: Mapping[str, int]
) -> tuple[LogTable, dict[str, int]]:
    """The rows that have a value in each of these columns, and how many were left out, by what they lack first."""
    found = dict(left_out)
    lacking = np.zeros(log_table.rows, bool)
    for thing, column in parts:
        more = log_table.missing(column) & ~lacking
        if more.any():
            reason = f"no {thing}"
            found[reason] = found.get(reason, 0) + int(more.sum())
        lacking |= more
    kept = log_table.take(np.flatnonzero(~lacking)) if lacking.any() else log_table
    at_least_one_row(kept, found)
    return kept, found


def rounds_sat_out(log_table: LogTable, arm: str, chance: str) -> int:
    """Rows without an arm that could have had one: what was done in them has a propensity below 1."""
    idle = log_table.take(np.flatnonzero(log_table.missing(arm) & ~log_table.missing(chance)))
    return int((idle.numbers("propensity", chance, 1.0, above_zero=True) < 1.0).sum())


def shown_costs(
    log_table: LogTable, thing: str, column: str, most: Floats, called: Sequence[str], shown: Ints
) -> Floats:
    """A column of costs, each at most the largest cost of the arm that its row shows."""
    costs = log_table.numbers(thing, column, float(most.max()))
    log_table.refuse(
        f"{thing} in column {column!r} must be at most the max_cost of its arm",
        costs > most[shown],
        lambda row: f"{float(costs[row])!r} for {called[row]!r}, whose max_cost is {float(most[shown[row]]):g}",
    )
    return costs


def refuse_unknown_arms(log_table: LogTable, rule: str, called: Sequence[str], given: object) -> None:
    """Raise if rows show arms that are not among those given by name."""
    if isinstance(given, Mapping):
        known = {name_of(name) for name in given}
        log_table.refuse(rule, np.array([name not in known for name in called]), lambda row: repr(called[row]))


def full_log(
    log_table: LogTable,
    resources: tuple[str, ...] = (UNNAMED,),
    /,
    *,
    rewards: Columns | None,
    costs: Columns | Mapping[str, Columns] | None,
    max_cost: MaxCost | Mapping[str, MaxCost],
    max_reward: float,
) -> FullLog:
    """The log of all outcomes; ``rewards`` and ``costs`` say in which columns those of each arm are."""
    max_reward = checks.real("max_reward", max_reward, 0, above_low=True)
    reward_columns = columns_of("rewards", rewards)
    given_columns = by_resource_or_arm("costs", costs, resources)
    cost_columns = [columns_of(thing, given) for thing, given in given_columns.values()]
    for (thing, _), columns in zip(given_columns.values(), cost_columns, strict=True):
        if set(reward_columns) != set(columns):
            rule = f"rewards and {thing} must name the same arms"
            raise InvalidValue(f"{rule}, got {', '.join(reward_columns)} and {', '.join(columns)}")
    log_table.require(column for columns in (reward_columns, *cost_columns) for column in columns.values())
    names = tuple(reward_columns)
    most = largest_costs(names, max_costs_by_resource(max_cost, resources))
    earned = [log_table.numbers(f"reward of {name!r}", reward_columns[name], max_reward, truth=True) for name in names]
    whose = ["cost of"] if resources == (UNNAMED,) else [f"cost of {resource!r} for" for resource in resources]
    spent = [
        arm_costs(log_table, cost_of, names, columns, limits)
        for cost_of, columns, limits in zip(whose, cost_columns, most.T, strict=True)
    ]
    at_least_one_row(log_table)
    return FullLog(**scale_log(names, resources, most, max_reward, np.column_stack(earned), np.stack(spent, axis=-1)))


def arm_costs(log_table: LogTable, whose: str, names: Sequence[str], columns: Columns, most: Floats) -> Floats:
    """The costs of all arms in one resource, a column each."""
    return np.column_stack(
        [
            log_table.numbers(f"{whose} {name!r}", columns[name], float(limit))
            for name, limit in zip(names, most, strict=True)
        ]
    )


def scale_log(
    names: tuple[str, ...],
    resources: tuple[str, ...],
    most: Floats,
    max_reward: float,
    rewards: Floats,
    costs: Floats,
) -> dict[str, Any]:
    """What both kinds of log hold."""
    tops = most.max(axis=0)
    return {
        "names": names,
        "resources": resources,
        "rounds": len(rewards),
        "limits": most / tops,
        "tops": tops,
        "max_reward": max_reward,
        "rewards": rewards / max_reward,
        "costs": costs / tops,
    }


def largest_costs(names: Sequence[str], given: Mapping[str, tuple[str, Any]]) -> Floats:
    """The largest possible cost of each arm, a column per resource.

    With named resources an arm may do without one of them, but some arm must need it.
    """
    unnamed = tuple(given) == (UNNAMED,)
    sides = []
    for thing, value in given.values():
        side = largest_costs_of(names, thing, value, above_zero=unnamed)
        if not side.any():
            raise InvalidValue(f"{thing} must be above 0 for at least one arm, got 0 for all")
        sides.append(side)
    return np.column_stack(sides)


def largest_costs_of(names: Sequence[str], thing: str, given: object, above_zero: bool) -> Floats:
    """The largest possible cost of each arm in one resource, from one number for all or a mapping."""
    if not isinstance(given, Mapping):
        return np.full(len(names), checks.real(thing, given, 0, above_low=True))
    by_name = {name_of(name): value for name, value in given.items()}
    if set(by_name) != set(names):
        raise InvalidValue(f"{thing} must name the arms of the log, {', '.join(names)}, got {', '.join(by_name)}")
    of = "of" if thing == "max_cost" else "for"
    return np.array([checks.real(f"{thing} {of} {name!r}", by_name[name], 0, above_low=above_zero) for name in names])


def max_costs_by_resource(
    max_cost: MaxCost | Mapping[str, MaxCost], resources: tuple[str, ...]
) -> dict[str, tuple[str, Any]]:
    """For each resource what to call its largest costs, and the largest costs; one number is for all of them."""
    if not isinstance(max_cost, Mapping):
        return dict.fromkeys(resources, ("max_cost", max_cost))
    return by_resource_or_arm("max_cost", max_cost, resources)


def resources_of(budget: object, cost: object, costs: object) -> tuple[str, ...]:
    """The names of the resources: those of the columns of costs, or else those of the budget, or the first of them."""
    if is_by_resource(costs):
        return resource_names("costs", costs)
    if costs is None and isinstance(cost, Mapping):
        return resource_names("cost", cost)
    first = budget[0] if isinstance(budget, Sequence) and not isinstance(budget, str) and budget else budget
    return resource_names("budget", first)


def by_resource_or_arm(thing: str, given: object, resources: tuple[str, ...]) -> dict[str, tuple[str, Any]]:
    """`by_resource` for values that are given by arm: with one resource without a name they need no other mapping.

    >>> by_resource_or_arm("costs", {"banner": "b"}, ("cost",))
    {'cost': ('costs', {'banner': 'b'})}
    >>> by_resource_or_arm("costs", {"money": {"banner": "b"}}, ("money",))
    {'money': ("costs of 'money'", {'banner': 'b'})}
    """
    if resources == (UNNAMED,) and not is_by_resource(given):
        return {UNNAMED: (thing, given)}
    return by_resource(thing, given, resources)


def is_by_resource(given: object) -> bool:
    """Whether values that may be given by arm are given by resource: then some are mappings themselves."""
    return isinstance(given, Mapping) and any(isinstance(value, Mapping) for value in given.values())


def columns_of(thing: str, given: object) -> dict[str, str]:
    """The columns of the arms, from a mapping."""
    if not isinstance(given, Mapping) or not given:
        raise InvalidValue(f"{thing} must be a mapping of arms to columns such as {{'banner': 'b'}}, got {given!r}")
    return {name_of(name): column for name, column in given.items()}


def at_least_one_row(log_table: LogTable, left_out: Mapping[str, int] = MappingProxyType({})) -> None:
    """Refuse a log without rows, or with none that can be used."""
    if not log_table.rows:
        got = f"only rows that cannot be used: {counted(left_out)}" if left_out else "none"
        raise InvalidValue(f"{log_table.source}a log must have at least one row, got {got}")


def by_number(name: str) -> tuple[bool, int, str]:
    """Sorts whole numbers by their value, and before words.

    >>> sorted(["video", "10", "9"], key=by_number)
    ['9', '10', 'video']
    """
    return (not name.isdecimal(), int(name) if name.isdecimal() else 0, name)

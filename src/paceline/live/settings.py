"""Settings that change while a bandit runs: what is asked for, checked, and the settings afterwards."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from paceline import checks
from paceline.errors import InvalidValue
from paceline.live.arms import ArmSet
from paceline.live.config import Config, check_policy_fits, check_seconds, check_silence, parameters_of
from paceline.live.resource import DOWN, LARGEST_AMOUNT, UP, Resource, label
from paceline.policies.policy import Policy

ROUNDED = {"budget": DOWN, "hourly": DOWN, "max_cost": UP}  # how amounts become floats; times and rewards to the next


def largest_costs(config: Config, arm_set: ArmSet, given: Any) -> dict[int, tuple[float, ...]]:
    """The largest costs of the arms that are to get others, by slot.

    They come as when the bandit was made: one for all arms or by arm, and by resource where resources have names; arms
    that are not named keep theirs.
    """
    by_resource = (
        config.in_order("max_cost", given) if is_by_resource(config, given) else (given,) * len(config.resources)
    )
    changed: dict[int, list[float]] = {}
    for d, (resource, costs) in enumerate(zip(config.resources, by_resource, strict=True)):
        if costs is None:
            continue
        pairs = (
            costs.items()
            if isinstance(costs, Mapping)
            else [(arm_set.names[slot], costs) for slot in arm_set.present()]
        )
        for arm, cost in pairs:
            slot = arm_set.slot_of(arm)
            changed.setdefault(slot, list(arm_set.max_costs[slot]))[d] = resource.check_max_cost(arm, cost)
    return {slot: tuple(costs) for slot, costs in changed.items()}


def is_by_resource(config: Config, given: Any) -> bool:
    """Whether largest costs are given by the names of resources."""
    return not config.is_unnamed and isinstance(given, Mapping)


def with_budget(resource: Resource, given: Any) -> Resource:
    """A resource with another income per round."""
    thing = label("budget", resource.name)
    budget = checks.real(thing, given, 0, LARGEST_AMOUNT, toward=DOWN)
    if budget > resource.scale:
        raise InvalidValue(
            f"{thing} must be at most the scale of costs, {resource.scale:g} (set scale= when the bandit is made to "
            f"leave room for more), got {budget!r}"
        )
    return replace(resource, budget=budget)


def with_hourly(resource: Resource, given: Any) -> Resource:
    """A resource with another income per hour."""
    thing = label("hourly", resource.name)
    hourly = checks.real(thing, given, 0, LARGEST_AMOUNT, toward=DOWN)
    if hourly > 0.0 and resource.cap is None:
        raise InvalidValue(f"{thing} must have a cap on what may pile up while nobody asks, got none")
    return replace(resource, hourly=hourly)


def with_max_cost(resource: Resource, given: Any) -> Resource:
    """A resource in which arms to come have another largest cost; a number is meant for them, too."""
    if given is None or isinstance(given, Mapping):
        return resource
    return replace(
        resource, max_cost=checks.real(label("max_cost", resource.name), given, 0, resource.scale, toward=UP)
    )


def changed_config(config: Config, settings: Mapping[str, Any], policy: Policy | None) -> Config:
    """The settings afterwards; ``policy`` stands for the one that the settings name."""
    resources = config.resources
    for name, change in (("budget", with_budget), ("hourly", with_hourly)):
        if name in settings:
            given = config.in_order(name, settings[name])
            pairs = zip(resources, given, strict=True)
            resources = tuple(
                [one if value is None and not config.is_unnamed else change(one, value) for one, value in pairs]
            )
    if "max_cost" in settings:
        given = settings["max_cost"]
        costs = config.in_order("max_cost", given) if is_by_resource(config, given) else (given,) * len(resources)
        resources = tuple([with_max_cost(one, value) for one, value in zip(resources, costs, strict=True)])
    if policy is not None:
        config = replace(config, policy=policy)
    if "expires" in settings:
        config = replace(config, expires=check_seconds("expires", settings["expires"]))
    if "silence" in settings:
        config = replace(config, silence=check_silence(settings["silence"], config.max_reward))
    if "period" in settings:
        config = replace(config, period=check_seconds("period", settings["period"]))
    return check_policy_fits(replace(config, resources=resources))


def as_written(settings: Mapping[str, Any], policy: Policy | None) -> dict[str, Any]:
    """Settings as they stand in a journal."""
    written = {name: plain_numbers(value, ROUNDED.get(name)) for name, value in settings.items() if name != "policy"}
    if policy is not None:
        written["policy"] = {"name": policy.name, "parameters": parameters_of(policy)}
    return written


def plain_numbers(value: Any, toward: float | None) -> Any:
    """Numbers that JSON knows, rounded as they are when a bandit is made; they have passed their checks."""
    if isinstance(value, Mapping):
        return {name: plain_numbers(entry, toward) for name, entry in value.items()}
    return value if value is None or type(value) in (int, float) else checks.real("a setting", value, toward=toward)

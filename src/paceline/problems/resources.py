"""Resources by name: values that are given one for each resource."""

from collections.abc import Mapping
from typing import Any

from paceline.errors import InvalidValue, UnknownName

UNNAMED = "cost"  # the one resource of a problem in which it needs no name
REQUIRED = object()


def resource_names(thing: str, given: object) -> tuple[str, ...]:
    """The names of the resources, from what is given by their names; one without a name is called "cost".

    >>> resource_names("costs", [0.1, 0.2]), resource_names("costs", {"money": [0.1], "energy": [0.4]})
    (('cost',), ('money', 'energy'))
    """
    if not isinstance(given, Mapping):
        return (UNNAMED,)
    for name in given:
        if not isinstance(name, str) or not name:
            raise InvalidValue(f"the name of a resource in {thing} must be a text that is not empty, got {name!r}")
    if not given:
        raise InvalidValue(f"{thing} must name at least one resource, got none")
    return tuple(given)


def cost_columns(names: tuple[str, ...]) -> dict[str, str]:
    """Where the costs are in the log of a live bandit, by resource.

    >>> cost_columns(("cost",)), cost_columns(("money", "calls"))
    ({'cost': 'cost'}, {'money': 'cost_money', 'calls': 'cost_calls'})
    """
    return {name: UNNAMED if names == (UNNAMED,) else f"cost_{name}" for name in names}


def without_name(names: tuple[str, ...], given: Mapping[str, Any]) -> Any:
    """Values of some of the resources in the form in which they are given: of one without a name the value alone.

    >>> without_name(("cost",), {"cost": 8.0}), without_name(("cost", "energy"), {"cost": 8.0})
    (8.0, {'cost': 8.0})
    """
    return given[UNNAMED] if names == (UNNAMED,) and given else given


def by_resource(
    thing: str, given: object, names: tuple[str, ...], otherwise: object = REQUIRED
) -> dict[str, tuple[str, Any]]:
    """For each resource what to call the value in a message, and the value.

    Of one resource without a name the value stands alone; else values come by name. Without ``otherwise`` every
    resource must be given one.

    >>> by_resource("start", {"energy": 2.0}, ("money", "energy"), otherwise=0.0)
    {'money': ("start of 'money'", 0.0), 'energy': ("start of 'energy'", 2.0)}
    """
    if names == (UNNAMED,) and not isinstance(given, Mapping):
        return {UNNAMED: (thing, otherwise if given is None and otherwise is not REQUIRED else given)}
    if given is None and otherwise is not REQUIRED:
        given = {}
    if not isinstance(given, Mapping):
        raise InvalidValue(f"{thing} must be given by resource, such as {{{names[0]!r}: ...}}, got {given!r}")
    unknown = [name for name in given if name not in names]
    if unknown and names == (UNNAMED,):
        raise UnknownName(f"{thing} must be given without a name, as the one resource has none, got {unknown[0]!r}")
    if unknown:
        raise UnknownName(f"{thing} must be given for the resources {', '.join(names)}, got one for {unknown[0]!r}")
    missing = [name for name in names if name not in given]
    if missing and otherwise is REQUIRED:
        raise InvalidValue(f"{thing} must have an entry for every resource, got none for {missing[0]!r}")
    return {name: (f"{thing} of {name!r}", given.get(name, otherwise)) for name in names}

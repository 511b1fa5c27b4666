"""The policies of an experiment file."""

from dataclasses import dataclass
from typing import Any

from paceline.errors import InvalidValue
from paceline.policies import named
from paceline.policies.policy import Policy
from paceline.study.keys import at, tables, variants, with_swept


@dataclass(frozen=True)
class Entrant:
    """A policy, and where in a grid it stands."""

    policy: Policy
    swept: dict[str, Any]


def policies_in(names: object, given: object) -> dict[str, Entrant]:
    """``policies = ["suak", ...]`` and ``[[policy]]`` tables with a name, a label, parameters and a grid over them."""
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InvalidValue(f"policies must be a list of names, got {names!r}")
    entries = [{"name": name} for name in names] + tables("policy", given)
    found: dict[str, Entrant] = {}
    for number, table in enumerate(entries, start=1):
        where = f"policy {number}"
        for plain, swept in at(where, lambda t=table: list(variants(t))):  # type: ignore[misc]
            label, entrant = at(where, lambda p=plain, s=swept: entrant_in(p, s))  # type: ignore[misc]
            if label in found:
                raise InvalidValue(f"{where}: labels of policies must differ, got {label!r} twice; set label")
            found[label] = entrant
    if not found:
        raise InvalidValue("an experiment must have policies, as policies = [...] or [[policy]], got none")
    return found


def entrant_in(table: dict[str, Any], swept: dict[str, Any]) -> tuple[str, Entrant]:
    """The label and the policy of one table."""
    if not isinstance(table.get("name"), str):
        raise InvalidValue(f"name must be that of a policy, got {table.get('name')!r}")
    parameters = {key: value for key, value in table.items() if key not in {"name", "label"}}
    label = with_swept(str(table.get("label", table["name"])), swept)
    return label, Entrant(named(table["name"], **parameters), swept)

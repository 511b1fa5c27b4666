"""The policies of an experiment file."""

from dataclasses import dataclass
from typing import Any

from paceline.errors import InvalidValue
from paceline.policies import named
from paceline.policies.policy import Policy
from paceline.study.keys import Variant, at, tables, text_in, variants


@dataclass(frozen=True)
class Entrant:
    """A policy, and where in a grid it stands."""

    policy: Policy
    swept: dict[str, Any]
    words: str  # the same in words, at the end of the label


def policies_in(names: object, given: object) -> dict[str, Entrant]:
    """``policies = ["suak", ...]`` and ``[[policy]]`` tables with a name, a label, parameters and a grid over them."""
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InvalidValue(f"policies must be a list of names, got {names!r}")
    entries = [{"name": name} for name in names] + tables("policy", given)
    found: dict[str, Entrant] = {}
    for number, table in enumerate(entries, start=1):
        where = f"policy {number}"
        for variant in at(where, lambda t=table: list(variants(t))):  # type: ignore[misc]
            label, entrant = at(where, lambda v=variant: entrant_in(v))  # type: ignore[misc]
            if label in found:
                raise InvalidValue(f"{where}: labels of policies must differ, got {label!r} twice; set label")
            found[label] = entrant
    if not found:
        raise InvalidValue("an experiment must have policies, as policies = [...] or [[policy]], got none")
    return found


def entrant_in(variant: Variant) -> tuple[str, Entrant]:
    """The label and the policy of one table."""
    table = variant.table
    name = text_in(table, "name", None)
    label = text_in(table, "label", name) + variant.words
    parameters = {key: value for key, value in table.items() if key not in {"name", "label"}}
    return label, Entrant(named(name, **parameters), variant.swept, variant.words)

"""The policies of an experiment file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline.errors import InvalidValue
from paceline.experiments.keys import Variant, at, tables, text_in, variants
from paceline.policies import make_policy
from paceline.policies.policy import Policy


@dataclass(frozen=True)
class PolicySpec:
    """A policy, and where in a grid it stands."""

    policy: Policy
    swept: dict[str, Any]
    words: str  # the same in words, at the end of the label


def read_policies(names: object, given: object, folder: Path) -> dict[str, PolicySpec]:
    """``policies = ["suak", ...]`` and ``[[policy]]`` tables with a name, a label, parameters and a grid over them.

    A policy in a file is looked for in the folder first, then in the working folder.
    """
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InvalidValue(f"policies must be a list of names, got {names!r}")
    entries = [{"name": name} for name in names] + tables("policy", given)
    found: dict[str, PolicySpec] = {}
    for number, table in enumerate(entries, start=1):
        where = f"policy {number}"
        for variant in at(where, lambda t=table: list(variants(t))):  # type: ignore[misc]
            label, spec = at(where, lambda v=variant: read_policy(v, folder))  # type: ignore[misc]
            if label in found:
                raise InvalidValue(f"{where}: labels of policies must differ, got {label!r} twice; set label")
            found[label] = spec
    if not found:
        raise InvalidValue("an experiment must have policies, as policies = [...] or [[policy]], got none")
    return found


def read_policy(variant: Variant, folder: Path) -> tuple[str, PolicySpec]:
    """The label and the policy of one table."""
    table = variant.table
    name = text_in(table, "name", None)
    label = text_in(table, "label", name) + variant.words
    parameters = {key: value for key, value in table.items() if key not in {"name", "label"}}
    return label, PolicySpec(make_policy(found_in(folder, name), **parameters), variant.swept, variant.words)


def found_in(folder: Path, name: str) -> str:
    """The name of a policy, with the folder if its file is there."""
    where, _, wanted = name.rpartition(":")
    return f"{folder / where}:{wanted}" if where.endswith(".py") and (folder / where).is_file() else name

"""The keys of an experiment file, once: what the readers take, and the JSON schema by which editors complete it.

Whether values are right the readers say, in words of their own: a library for schemas would be as sure of types, but
not of a grid over any key or of the parameters of a user's policy, and its messages leave out the rule or the value.
"""

from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from paceline.policies import POLICIES
from paceline.policies.policy import Policy
from paceline.problems.families import KINDS

Schema = dict[str, Any]

TEXT: Schema = {"type": "string", "minLength": 1}
AMOUNTS: Schema = {"type": ["number", "object"]}  # by the name of the resource, if there are several
PER_ARM: Schema = {"type": ["array", "object"]}
PAPERS = ("three-arms", "eight-arms")


def whole(low: int, says: str, otherwise: object = None) -> Schema:
    """A whole number."""
    plain: Schema = {"type": "integer", "minimum": low, "description": says}
    return plain if otherwise is None else plain | {"default": otherwise}


EXPERIMENT: Schema = {
    "name": TEXT | {"description": "what the report is called (default: the name of the file)"},
    "figure": {"enum": [1, 2], "description": "of the paper: the report checks its claims"},
    "rounds": whole(1, "rounds of a trial", 100_000),
    "trials": whole(1, "trials of each policy on each problem", 10),
    "seed": whole(0, "of all random numbers", 0),
    "checkpoints": {
        "description": "their number, evenly spread; a list of rounds; or {count, first}, evenly by their logarithm",
        "anyOf": [
            {"type": "integer", "minimum": 1},
            {"type": "array", "items": {"type": "integer", "minimum": 1}},
            {
                "type": "object",
                "properties": {"count": whole(1, "how many"), "first": whole(1, "the first of them", 1)},
                "required": ["count"],
                "additionalProperties": False,
            },
        ],
        "default": 100,
    },
    "horizons": {
        "type": "array",
        "items": {"type": "integer", "minimum": 2},
        "description": "rounds after which every policy is held against the best one",
    },
    "record": {
        "description": 'rounds to keep one by one: "all", or a list',
        "anyOf": [{"const": "all"}, {"type": "array", "items": {"type": "integer", "minimum": 1}}],
    },
    "block": whole(1, "trials of one task (default: about a second of work)"),
    "policies": {"type": "array", "items": {"type": "string"}, "description": "names of policies"},
    "policy": {"description": "policies with parameters, labels and grids"},
    "problem": {"description": "what is played"},
}
ANY_PROBLEM: Schema = {
    "name": TEXT,
    "delay": {"description": "rounds by which outcomes are late: a number, {geometric}, {batch}, or {cost, reward}"},
    "streams": {
        "type": "object",
        "properties": {"first": whole(0, "of the first trial"), "apart": whole(1, "from member to member")},
        "additionalProperties": False,
        "description": "random numbers other than those that follow from the place of the table",
    },
    "grid": {"type": "object", "description": "lists of values of any other key: one problem for each combination"},
}
PAPER: Schema = {"paper": {"enum": list(PAPERS)}, "budget": AMOUNTS}
FAMILY: Schema = {
    "family": {"enum": list(KINDS)},
    "size": whole(1, "problems", 6),
    "seed": whole(0, "of the family", 0),
    "arms": whole(1, "of each problem"),
    "case": {"enum": [1, 2, 3], "description": "of the optimum"},
    "budget": AMOUNTS,
    "concentration": {"type": "number"},
    "shortfall": {"type": "number", "description": "how far arms fall behind the frontier, on average"},
    "resources": whole(1, "of each problem"),
}
CSV: Schema = {
    "csv": TEXT | {"description": "a file of logged outcomes, relative to this one"},
    "arm": TEXT,
    "reward": TEXT,
    "cost": {"type": ["string", "object"]},
    "max_cost": AMOUNTS,
    "max_reward": {"type": "number"},
    "budget": AMOUNTS,
    "start": AMOUNTS,
    "cap": AMOUNTS,
}
EXPLICIT: Schema = {
    "kind": {"enum": ["beta", "bernoulli"], "description": "what a bare mean stands for"},
    "rewards": {"type": "array"},
    "costs": PER_ARM,
    "observed": {},
    "max_costs": PER_ARM,
    "concentration": {"type": "number"},
    "coupled": {"type": "boolean"},
    "budget": AMOUNTS,
    "start": AMOUNTS,
    "cap": AMOUNTS,
}
KINDS_OF_VALUES = {bool: "boolean", int: "number", float: "number", str: "string"}


def keys_beside(source: str, keys: Schema) -> list[str]:
    """What a problem takes besides the key that says where it comes from."""
    return [key for key in keys if key != source]


def table(properties: Schema, title: str, required: tuple[str, ...] = ()) -> Schema:
    """A table that takes these keys and no others."""
    return {
        "title": title,
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def policy_table(name: str, kind: type[Policy]) -> Schema:
    """The [[policy]] tables of one policy: its parameters, and the words of its author."""
    known: Any = fields(kind) if is_dataclass(kind) else ()
    parameters = {each.name: of_default(each.default) for each in known}
    grid = {"type": "object", "properties": {key: {"type": "array"} for key in parameters}}
    whole_table = table({"name": {"const": name}, "label": TEXT, "grid": grid, **parameters}, name, ("name",))
    return whole_table | {"description": (kind.__doc__ or name).strip().partition("\n")[0]}


def of_default(value: object) -> Schema:
    """What a parameter may be, as far as its default tells."""
    kind = KINDS_OF_VALUES.get(type(value))
    return {"default": value} | ({} if kind is None else {"type": kind}) if value is not MISSING else {}


def experiment_schema() -> Schema:
    """The whole file; policies of the user's own, and grids over names, may have any keys.

    >>> sorted(experiment_schema()["properties"])[:3]
    ['block', 'checkpoints', 'figure']
    """
    own: Schema = {"type": "object", "properties": {"name": {"type": "string", "pattern": ":"}, "label": TEXT}}
    free = own | {"title": "module:Class, file.py:Class, or a grid over names"}
    sources = {
        "from the paper": (PAPER, "paper"),
        "a random family": (FAMILY, "family"),
        "logged outcomes": (CSV, "csv"),
    }
    problems = [table({**ANY_PROBLEM, **keys}, title, (key,)) for title, (keys, key) in sources.items()]
    policies = [*(policy_table(name, kind) for name, kind in POLICIES.items()), free]
    listed = {
        "policy": {"type": "array", "items": {"anyOf": policies}},
        "problem": {"type": "array", "items": {"anyOf": [*problems, table(ANY_PROBLEM | EXPLICIT, "explicit")]}},
    }
    properties = {key: told | listed.get(key, {}) for key, told in EXPERIMENT.items()}
    whole_file = table(properties, "paceline experiment", ("problem",))
    return {"$schema": "http://json-schema.org/draft-07/schema#", **whole_file}

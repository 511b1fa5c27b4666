"""The keys of an experiment file, once: msgspec checks tables by these types, and makes the JSON schema for editors.

It was chosen over pydantic for its size (0.7 against 9.6 MB) and the time to import it (a third); neither says the rule
together with the value, so `refusal` does. What a value means is checked where it is used.
"""

import re
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Annotated, Any, TypeVar

from paceline import checks
from paceline.errors import InvalidValue
from paceline.experiments.chapters import CHAPTERS
from paceline.extras import extra
from paceline.paper.instances import PAPERS
from paceline.policies import POLICIES
from paceline.policies.policy import Policy
from paceline.problems.families import KINDS

with extra("lab", "an experiment"):
    import msgspec
    from msgspec import Meta

Schema = dict[str, Any]

FAR_APART = 2**32  # streams of the trials on a problem and on the next
MOST_SPREAD = 10**6  # checkpoints that are laid out before those on the same round become one

Text = Annotated[str, Meta(min_length=1)]
Count = Annotated[int, Meta(ge=1)]
Seed = Annotated[int, Meta(ge=0)]  # msgspec knows bounds of 63 bits; seeds may have 64
Horizon = Annotated[int, Meta(ge=2, le=checks.MOST_ROUNDS)]
Amounts = Annotated[Any, Meta(extra_json_schema={"type": ["number", "object"]})]  # by resource, if there are several
PerArm = Annotated[Any, Meta(extra_json_schema={"type": ["array", "object"]})]
ROUNDS = Meta(extra_json_schema={"anyOf": [{"const": "all"}, {"type": "array", "items": {"type": "integer"}}]})
LATE = Meta(extra_json_schema={"type": ["number", "array", "object"]})
Tables = list[dict[str, Any]]


def one_of(*words: str) -> Meta:
    """Words that an editor offers; what is none of them is refused where it is used."""
    return Meta(extra_json_schema={"enum": list(words)})


def says(text: str) -> Meta:
    """What an editor shows beside a key."""
    return Meta(description=text)


class Spec(msgspec.Struct, forbid_unknown_fields=True):
    """A table of a file: it takes these keys and no others."""


class Spread(Spec):
    """Checkpoints evenly spread by their logarithm."""

    count: Annotated[int, Meta(ge=1, le=MOST_SPREAD)]
    first: Count = 1


class Streams(Spec):
    """Random numbers other than those that follow from the place of a table."""

    first: Annotated[int, Meta(ge=0), says("of the first trial")] | None = None
    apart: Annotated[int, Meta(ge=1, le=FAR_APART), says("from member to member")] = FAR_APART


class ExperimentSpec(Spec):
    """an experiment"""

    name: Annotated[Text | None, says("what the report is called (default: the name of the file)")] = None
    report: Annotated[str | None, one_of(*CHAPTERS), says("a chapter that experiments of the package add")] = None
    rounds: Annotated[int, Meta(ge=1, le=checks.MOST_ROUNDS), says("rounds of a trial")] = 100_000
    trials: Annotated[int, Meta(ge=1, le=2**32 - 1), says("trials of each policy on each problem")] = 10
    seed: Annotated[Seed, says("of all random numbers")] = 0
    checkpoints: Annotated[
        Count | list[int] | Spread,
        says("their number, evenly spread; a list of rounds; or {count, first}, evenly by their logarithm"),
    ] = 100
    horizons: Annotated[list[Horizon], says("rounds after which every policy is held against the best one")] = []
    guard: Annotated[bool, Meta(title="true or false"), says("false: without the guard; violations are told")] = True
    record: Annotated[Any, ROUNDS, says('rounds to keep one by one: "all", or a list')] = None
    block: Annotated[Count | None, says("trials of one task (default: about a second of work)")] = None
    policies: Annotated[list[str], Meta(title="a list of names"), says("names of policies")] = []
    policy: Annotated[Tables, says("policies with parameters, labels and grids")] = []
    problem: Annotated[Tables, says("what is played")] = []


class AnyProblem(Spec):
    """What every problem may have."""

    name: Text | None = None
    delay: Annotated[
        Any, LATE, says("rounds by which outcomes are late: a number, {geometric}, {batch}, or {cost, reward}")
    ] = None
    streams: Streams = msgspec.field(default_factory=Streams)


class Paper(AnyProblem, kw_only=True):
    """a problem of the paper"""

    paper: Annotated[str, one_of(*PAPERS)]
    budget: Amounts = None


class Family(AnyProblem, kw_only=True):
    """a family of problems"""

    family: Annotated[str, one_of(*KINDS)]
    size: Annotated[int, Meta(ge=1, le=2**15 - 1), says("problems")] = 6
    seed: Annotated[Seed, says("of the family")] = 0
    arms: Annotated[Any, Meta(extra_json_schema={"type": "integer", "minimum": 1})] = None
    case: Annotated[Any, Meta(extra_json_schema={"enum": [1, 2, 3]}), says("of the optimum")] = None
    budget: Amounts = None
    concentration: Any = None
    shortfall: Annotated[Any, says("how far arms fall behind the frontier, on average")] = None
    resources: Annotated[Any, Meta(extra_json_schema={"type": "integer", "minimum": 1})] = None


class Csv(AnyProblem, kw_only=True):
    """a problem from a CSV file"""

    csv: Annotated[Text, Meta(title="the name of a file"), says("logged outcomes, relative to this file")]
    arm: Text = "arm"
    reward: Text = "reward"
    cost: Text | dict[str, Text] = "cost"
    max_cost: Amounts = 1.0
    max_reward: Any = 1.0
    budget: Amounts = None
    start: Amounts = None
    cap: Amounts = None


class World(AnyProblem, kw_only=True):
    """a world of your own"""

    world: Annotated[Text, Meta(title="module:Class or file.py:Class"), says("a class derived from PythonWorld")]
    parameters: Annotated[dict[str, Any], says("what the class is made with")] = {}


class Explicit(AnyProblem):
    """a problem"""

    kind: Annotated[Any, one_of("beta", "bernoulli"), says("what a bare mean stands for")] = None
    rewards: Annotated[Any, Meta(extra_json_schema={"type": "array"})] = None
    costs: PerArm = None
    observed: Any = None
    max_costs: PerArm = None
    concentration: Any = None
    coupled: Annotated[Any, Meta(extra_json_schema={"type": "boolean"})] = None
    budget: Amounts = None
    start: Amounts = None
    cap: Amounts = None
    stop: Annotated[Any, Meta(extra_json_schema={"type": "boolean"})] = None
    fallback: Annotated[Any, Meta(extra_json_schema={"type": "boolean"})] = None


# A grid may reach into tables; at the ends are lists.
VALUES: Schema = {"type": "array", "minItems": 1}
AXES: Schema = {"type": "object", "additionalProperties": {"anyOf": [VALUES, {"$ref": "#/$defs/axes"}]}}
GRID: Schema = {**AXES, "description": "lists of values of any other key: one for each combination"}

SOURCES: dict[str, type[AnyProblem]] = {"paper": Paper, "family": Family, "csv": Csv, "world": World}
Kind = TypeVar("Kind", bound=Spec)


def read(kind: type[Kind], table: Mapping[str, Any]) -> Kind:
    """A table by its type, or an error that names the key, the rule and the value."""
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        raise InvalidValue(refusal(kind, table, str(error))) from None


def refusal(kind: type[Spec], table: Mapping[str, Any], told: str) -> str:
    """What msgspec says, as key, rule and value.

    >>> refusal(Paper, {"paper": "three-arms", "budgets": 1}, "Object contains unknown field `budgets`")
    "a problem of the paper takes paper, budget, name, delay, streams; got budgets; did you mean 'budget'?"
    >>> refusal(ExperimentSpec, {"rounds": 0}, "Expected `int` >= 1 - at `$.rounds`")
    'rounds must be a whole number from 1 to 2147483647, got 0'
    """
    said, _, place = told.partition(" - at `$")
    path = re.findall(r"\w+", place.partition("[")[0])  # an entry of a list is shown with the list
    schema, definitions = schema_of(kind)
    value: Any = table
    for key in path:
        schema, value = schema["properties"][key], value[key]
        schema = definitions[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
        for choice in schema.get("anyOf", ()) if isinstance(value, dict) else ():
            schema = definitions[choice["$ref"].rpartition("/")[2]] if "$ref" in choice else schema
    if "unknown field" in said or "missing required" in said:
        known, got = list(schema["properties"]), said.rpartition(" ")[2].strip("`")
        thing = ".".join(path) or schema.get("description", kind.__doc__)
        return f"{thing} takes {', '.join(known)}; got " + (
            f"{got}{checks.guess(got, known)}" if "unknown" in said else f"no {got}"
        )
    return f"{'.'.join(path)} must be {rule(schema, path[-1])}, got {checks.shown(value)}"


def rule(schema: Schema, key: str = "") -> str:
    """A rule of a schema in words.

    >>> rule({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "array", "items": {"type": "integer"}}]})
    'a whole number of at least 1 or a list, each a whole number'
    """
    if "title" in schema and "properties" not in schema:
        return str(schema["title"])
    if "anyOf" in schema:
        return " or ".join(rule(each) for each in schema["anyOf"] if each.get("type") != "null")
    low, high = schema.get("minimum"), schema.get("maximum")
    bounds = "" if low is None else f" of at least {low}" if high is None else f" from {low} to {high}"
    if schema.get("type") == "array":
        entries = schema.get("items", {})
        return f"a list, each {rule(entries)}" if entries.get("type") != "object" else f"a list of tables: [[{key}]]"
    kinds = {"integer": "a whole number", "string": "a text that is not empty"}
    return kinds.get(schema.get("type", ""), "a table") + bounds


def schema_of(kind: type[Spec]) -> tuple[Schema, dict[str, Schema]]:
    """The schema of a table, its own keys before those of every problem, and the tables that it refers to."""
    (_,), definitions = msgspec.json.schema_components([kind])
    own = definitions[kind.__name__]
    common = AnyProblem.__struct_fields__ if issubclass(kind, AnyProblem) else ()
    own["properties"] = dict(sorted(own["properties"].items(), key=lambda entry: entry[0] in common))
    return own, definitions


def experiment_schema() -> Schema:
    """The whole file; policies of the user's own, and grids over names, may have any keys.

    >>> sorted(experiment_schema()["properties"])[:3]
    ['block', 'checkpoints', 'guard']
    """
    whole, definitions = schema_of(ExperimentSpec)
    problems: list[Schema] = []
    kinds: list[type[Spec]] = [*SOURCES.values(), Explicit]
    for kind in kinds:
        own, more = schema_of(kind)
        problems.append({**own, "properties": {**own["properties"], "grid": GRID}})
        definitions |= {name: schema for name, schema in more.items() if name != kind.__name__}
    free = {
        "title": "module:Class, file.py:Class, or a grid over names",
        "type": "object",
        "properties": {"name": {"type": "string", "pattern": ":"}, "label": {"type": "string"}, "grid": GRID},
        "anyOf": [{"required": ["name"]}, {"properties": {"grid": {"required": ["name"]}}, "required": ["grid"]}],
    }
    policies = [*(policy_table(name, kind) for name, kind in POLICIES.items()), free]
    for key, entries in (("problem", problems), ("policy", policies)):
        whole["properties"][key]["items"] = {"anyOf": entries}
    definitions.pop(ExperimentSpec.__name__)
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        **whole,
        "required": ["problem"],
        "anyOf": [{"required": ["policies"]}, {"required": ["policy"]}],
        "$defs": definitions | {"axes": AXES},
    }


def policy_table(name: str, kind: type[Policy]) -> Schema:
    """The [[policy]] tables of one policy: its parameters, and the words of its author."""
    known: Any = fields(kind) if is_dataclass(kind) else ()
    parameters = {each.name: of_default(each.default) for each in known}
    axes = dict.fromkeys(["label", *parameters], VALUES)
    grid = {"type": "object", "properties": axes, "additionalProperties": False}
    return {
        "title": name,
        "type": "object",
        "properties": {"name": {"const": name}, "label": {"type": "string"}, "grid": grid, **parameters},
        "required": ["name"],
        "additionalProperties": False,
        "description": (kind.__doc__ or name).strip().partition("\n")[0],
    }


def of_default(value: object) -> Schema:
    """What a parameter may be, as far as its default tells."""
    kind = {bool: "boolean", int: "number", float: "number", str: "string"}.get(type(value))
    return {"default": value} | ({} if kind is None else {"type": kind}) if value is not MISSING else {}

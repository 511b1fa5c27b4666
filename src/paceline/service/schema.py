"""The schemas of bodies, once: the OpenAPI document shows them, and a body is checked by them at the door.

They are JSON Schema, of which `checker` knows the few words that are used here. A check of our own says what is wrong
in one line that names the place, the rule and the value, and takes a few microseconds.
"""

import re
from collections.abc import Callable
from math import inf
from typing import Any

from paceline.errors import InvalidValue
from paceline.policies import POLICIES
from paceline.service.limits import LONGEST_NAME, MOST_ARMS, MOST_ITEMS

Check = Callable[[str, Any], None]  # the place, the value

TYPES: dict[str, tuple[str, tuple[type, ...]]] = {
    "object": ("an object", (dict,)),
    "array": ("a list", (list,)),
    "string": ("a text", (str,)),
    "boolean": ("true or false", (bool,)),
    "integer": ("a whole number", (int,)),
    "number": ("a number", (int, float)),
    "null": ("null", (type(None),)),
}


def shown(value: Any) -> str:
    """A value as an error message shows it: not all of a body.

    >>> shown("<script>"), len(shown([1] * 1000))
    ("'<script>'", 60)
    """
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def refuse(place: str, rule: str, value: Any) -> None:
    """Say what is wrong."""
    raise InvalidValue(f"{place} must be {rule}, got {shown(value)}")


def checker(schema: dict[str, Any]) -> Check:
    """A function that refuses what is not as the schema has it.

    >>> check = checker({"type": "object", "properties": {"count": {"type": "integer", "minimum": 1, "maximum": 9}}})
    >>> check("the body", {"count": 5})
    >>> check("the body", {"count": 10})
    Traceback (most recent call last):
        ...
    paceline.errors.InvalidValue: count must be a whole number from 1 to 9, got 10
    >>> check("the body", {"number": 5})
    Traceback (most recent call last):
        ...
    paceline.errors.InvalidValue: the body must have nothing but count, got 'number'
    """
    if "anyOf" in schema:
        return check_any(schema["anyOf"])
    if "enum" in schema:
        return check_enum(schema["enum"])
    return {"object": check_object, "array": check_array, "string": check_text}.get(schema["type"], check_plain)(schema)


def check_any(schemas: list[dict[str, Any]]) -> Check:
    """One of several, each of types of its own; the one whose type it is says what is wrong."""
    names = [TYPES[schema["type"]][0] for schema in schemas]
    rule = " or ".join(names)
    by_type = {kind: checker(schema) for schema in schemas for kind in TYPES[schema["type"]][1]}
    of_any_value = {kind for schema in schemas if list(schema) == ["type"] for kind in TYPES[schema["type"]][1]}

    def check(place: str, value: Any) -> None:
        kind = type(value)
        if kind in of_any_value:
            return
        inner = by_type.get(kind)
        if inner is None:
            refuse(place, rule, value)
        else:
            inner(place, value)

    return check


def check_enum(words: list[str]) -> Check:
    """One of a few words."""
    allowed, rule = set(words), f"one of {', '.join(words)}"

    def check(place: str, value: Any) -> None:
        if not isinstance(value, str) or value not in allowed:
            refuse(place, rule, value)

    return check


def check_object(schema: dict[str, Any]) -> Check:
    """An object whose parts have checks of their own; other parts are refused, or have one check for all."""
    parts = {name: checker(part) for name, part in schema.get("properties", {}).items()}
    others = schema.get("additionalProperties", False)
    other = checker(others) if others else None
    required = schema.get("required", [])
    most, least = schema.get("maxProperties", MOST_ARMS), schema.get("minProperties", 0)

    def check(place: str, value: Any) -> None:
        if type(value) is not dict:
            refuse(place, "an object", value)
        if not least <= len(value) <= most:
            refuse(place, f"an object of {least} to {most} parts", f"{len(value)} parts")
        for name, part in value.items():
            inner = parts.get(name)
            if inner is not None:
                inner(name, part)
            elif other is not None:
                other(f"{place} of {shown(name)}", part)
            else:
                raise InvalidValue(f"{place} must have nothing but {', '.join(parts)}, got {shown(name)}")
        for name in required:
            if name not in value:
                raise InvalidValue(f"{place} must have {name}, got none")

    return check


def check_array(schema: dict[str, Any]) -> Check:
    """A list of things alike."""
    inner = checker(schema["items"])
    least, most = schema.get("minItems", 0), schema.get("maxItems", MOST_ITEMS)

    def check(place: str, value: Any) -> None:
        if type(value) is not list:
            refuse(place, "a list", value)
        if not least <= len(value) <= most:
            raise InvalidValue(f"{place} must have {least} to {most} entries, got {len(value)}")
        for entry in value:
            inner(place, entry)

    return check


def check_text(schema: dict[str, Any]) -> Check:
    """A text of some form."""
    form = re.compile(schema["pattern"].removesuffix("$") + r"\Z") if "pattern" in schema else None
    rule = schema.get("description", "a text")
    most = schema.get("maxLength", 1000)

    def check(place: str, value: Any) -> None:
        if type(value) is not str or len(value) > most or (form is not None and not form.search(value)):
            refuse(place, rule, value)

    return check


def check_plain(schema: dict[str, Any]) -> Check:
    """A number, true or false, or null.

    >>> check_plain({"type": "number", "maximum": 5})("age", 6)
    Traceback (most recent call last):
        ...
    paceline.errors.InvalidValue: age must be a number of at most 5, got 6
    """
    name, types = TYPES[schema["type"]]
    low, high = schema.get("minimum"), schema.get("maximum")
    above = schema.get("exclusiveMinimum")
    least, most = -inf if low is None else low, inf if high is None else high
    if low is not None and high is not None:
        bounds = [f"from {low} to {high}"]
    else:
        given = (("above", above), ("of at least", low), ("of at most", high))
        bounds = [f"{words} {bound}" for words, bound in given if bound is not None]
    rule = " ".join([name, " and ".join(bounds)]).rstrip()

    def check(place: str, value: Any) -> None:  # the type says all, and true is no number
        if type(value) not in types:
            refuse(place, rule, value)

    def check_bounds(place: str, value: Any) -> None:
        if type(value) not in types or not least <= value <= most or (above is not None and value <= above):
            refuse(place, rule, value)

    if low is high is above is None:
        return check
    return check_bounds


# What bodies are made of.

NAME_RULE = (
    f"a name of 1 to {LONGEST_NAME} letters, digits, dots, hyphens and underscores that begins with a letter or digit"
)
NAME: dict[str, Any] = {
    "type": "string",
    "pattern": rf"^[A-Za-z0-9][A-Za-z0-9._-]{{0,{LONGEST_NAME - 1}}}$",
    "maxLength": LONGEST_NAME,
    "description": NAME_RULE,
}
ARM_RULE = (
    f"a name of 1 to {LONGEST_NAME} letters, digits, spaces and . _ - + : @ # % ( ) that begins with a letter or digit"
)
ARM: dict[str, Any] = {
    "type": "string",
    "pattern": rf"^[A-Za-z0-9][A-Za-z0-9 ._+:@#%()-]{{0,{LONGEST_NAME - 1}}}$",
    "maxLength": LONGEST_NAME,
    "description": ARM_RULE,
}
NUMBER: dict[str, Any] = {"type": "number"}
POSITIVE: dict[str, Any] = {"type": "number", "exclusiveMinimum": 0}
SECONDS: dict[str, Any] = {"type": "number", "exclusiveMinimum": 0, "maximum": 1e9}
WHOLE: dict[str, Any] = {"type": "integer", "minimum": 1, "maximum": 2**31 - 1}
NULL: dict[str, Any] = {"type": "null"}


def by_name(part: dict[str, Any], most: int = MOST_ARMS) -> dict[str, Any]:
    """An object with a part for each name."""
    return {"type": "object", "additionalProperties": part, "minProperties": 1, "maxProperties": most}


def any_of(*schemas: dict[str, Any]) -> dict[str, Any]:
    """One of several."""
    return {"anyOf": list(schemas)}


def make_object(required: tuple[str, ...] = (), **properties: dict[str, Any]) -> dict[str, Any]:
    """An object with these parts and no others."""
    shape: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    return shape | ({"required": list(required)} if required else {})


def list_of(items: dict[str, Any], least: int = 1, most: int = MOST_ITEMS) -> dict[str, Any]:
    """A list of things alike."""
    return {"type": "array", "items": items, "minItems": least, "maxItems": most}


AMOUNT = any_of(NUMBER, by_name(NUMBER, 16))
PAID_IN = any_of(POSITIVE, by_name(POSITIVE, 16))
MAX_COST = any_of(POSITIVE, by_name(any_of(POSITIVE, by_name(POSITIVE))))
POLICY = {"enum": sorted(POLICIES)}
ID = any_of({"type": "string", "maxLength": 200}, {"type": "integer", "minimum": 0, "maximum": 2**63 - 1})

SETTINGS = make_object(
    ("arms",),
    arms=list_of(ARM, 1, MOST_ARMS),
    budget=AMOUNT,
    policy=POLICY,
    max_cost=MAX_COST,
    max_reward=POSITIVE,
    seed={"type": "integer", "minimum": 0, "maximum": 2**64 - 1},
    scale=PAID_IN,
    start=AMOUNT,
    cap=AMOUNT,
    max_refill=AMOUNT,
    rounds=WHOLE,
    hourly=AMOUNT,
    expires=SECONDS,
    silence=NUMBER,
    remember={"type": "integer", "minimum": 0, "maximum": 1_000_000},
)
ASK = make_object(
    count={"type": "integer", "minimum": 1, "maximum": MOST_ITEMS},
    arms=list_of({"type": "string", "maxLength": 200}, 0, MOST_ARMS),
    max_cost=MAX_COST,
    expires=SECONDS,
)
TELL_ITEM = make_object(
    ("id",), id=ID, reward=any_of(NUMBER, {"type": "boolean"}), cost=AMOUNT, overrun={"type": "boolean"}
)
TELL = make_object(("items",), items=list_of(TELL_ITEM))
IDS = make_object(("items",), items=list_of(make_object(("id",), id=ID)))
OBSERVE = make_object(
    ("items",),
    items=list_of(
        make_object(
            ("arm", "reward", "cost"),
            arm={"type": "string", "maxLength": 200},
            reward=any_of(NUMBER, {"type": "boolean"}),
            cost=AMOUNT,
        )
    ),
)
STEP = make_object(tells=list_of(TELL_ITEM, 0), asks=ASK)
CREDIT = make_object(("amount",), amount=PAID_IN)
CHANGE = make_object(
    budget=AMOUNT,
    max_cost=MAX_COST,
    policy=POLICY,
    expires=any_of(SECONDS, NULL),
    silence=any_of(NUMBER, NULL),
    hourly=AMOUNT,
) | {"minProperties": 1}
NEW_ARM = make_object(max_cost=any_of(POSITIVE, by_name(POSITIVE, 16)))
ARM_CHANGE = make_object(("status",), status={"enum": ["active", "paused", "retired"]})
CLOSE = make_object(("life",), life={"type": "string", "maxLength": 200})

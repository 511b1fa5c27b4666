"""The OpenAPI 3.1 document, made of the table of operations."""

import re
from typing import Any

from paceline import __version__
from paceline.service import schema
from paceline.service.operations import OPERATIONS, Operation
from paceline.service.problems import MEDIA_TYPE, TITLES

ANY: dict[str, Any] = {"type": "object"}
AMOUNTS = {"anyOf": [{"type": "number"}, {"type": "object", "additionalProperties": {"type": "number"}}]}
MAYBE_TEXT = {"type": ["string", "null"]}
DECISION = {
    "type": "object",
    "required": ["id", "arm", "reason", "situation"],
    "properties": {
        "id": {"type": ["string", "integer"]},
        "arm": MAYBE_TEXT | {"description": "null: sit this round out"},
        "reason": {"type": "string"},
        "situation": {"type": "string"},
        "other": {"type": "string"},
        "headroom": {"type": "number"},
        "largest_cost": {"type": "number"},
        "resource": {"type": "string"},
        "propensity": {"type": "number"},
    },
}
RESULT = {
    "type": "object",
    "required": ["result"],
    "properties": {
        "result": {"enum": ["taken", "known", "conflict", "unknown", "refused"]},
        "detail": {"type": "string"},
    },
}
ITEMS = {"type": "array", "items": RESULT}
DECISIONS = {"type": "array", "items": DECISION}
PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
    },
}


def answer(**parts: dict[str, Any]) -> dict[str, Any]:
    """An object that has these parts at least."""
    return {"type": "object", "required": list(parts), "properties": parts}


ANSWERS: dict[str, dict[str, Any]] = {
    "whoami": answer(label={"type": "string"}, role={"type": "string"}, worker={"type": "string"}),
    "list_bandits": answer(bandits={"type": "array", "items": schema.NAME}),
    "make_bandit": answer(name=schema.NAME, made={"type": "boolean"}),
    "show_bandit": answer(name=schema.NAME, time={"type": "number"}, fleet=ANY, here=ANY, store=ANY),
    "ask": answer(decisions=DECISIONS),
    "tell": answer(items=ITEMS),
    "cancel": answer(items=ITEMS),
    "expire": answer(items=ITEMS),
    "observe": answer(items=ITEMS),
    "step": answer(items=ITEMS, decisions=DECISIONS),
    "credit": answer(credited=AMOUNTS),
    "list_decisions": answer(pending=ANY, expired={"type": "array", "items": {"type": "string"}}),
    "list_events": answer(events={"type": "array", "items": ANY}, last={"type": "integer"}),
    "list_acts": answer(acts={"type": "array", "items": ANY}),
    "list_workers": answer(workers={"type": "array", "items": ANY}),
}


def parameter(name: str, place: str, shape: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A parameter outside the body."""
    return {"name": name, "in": place, "required": place == "path", "schema": shape, **more}


PATH_SCHEMAS: dict[str, dict[str, Any]] = {
    "bandit": schema.NAME,
    "arm": schema.ARM,
    "worker": schema.NAME,
    "id": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[A-Za-z0-9._-]+$"},
}
QUERY_SCHEMAS: dict[str, dict[str, Any]] = {
    "after": {"type": "integer", "minimum": 0, "maximum": 2**53, "default": 0},
    "count": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100},
}
KEY = parameter(
    "Idempotency-Key",
    "header",
    {"type": "string", "pattern": "^[\x21-\x7e]{1,200}$"},
    description="the same key with the same body gives the same answer again, and nothing is done twice",
)


def refusals_of(operation: Operation) -> set[int]:
    """The statuses with which an operation may refuse."""
    found = {400, *operation.refusals}
    if operation.role is not None:
        found |= {401, 403, 421}
    if "bandit" in operation.parameters:
        found |= {404, 422, 429, 503}
    if operation.path == "/v1/bandits":
        found.add(503)
    if operation.body is not None:
        found |= {409, 413, 415, 422, 429, 503}
    return found


def describe(operation: Operation) -> dict[str, Any]:
    """One operation."""
    parameters = [parameter(name, "path", PATH_SCHEMAS[name]) for name in operation.parameters]
    parameters += [parameter(name, "query", QUERY_SCHEMAS[name]) for name in operation.query]
    if operation.takes_key:
        parameters.append(KEY)
    shape = ANSWERS.get(operation.endpoint, ANY if operation.media_type == "application/json" else {"type": "string"})
    responses: dict[str, Any] = {
        str(status): {"description": "done", "content": {operation.media_type: {"schema": shape}}}
        for status in operation.answers
    }
    for status in sorted(refusals_of(operation)):
        content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
        responses[str(status)] = {"description": TITLES[status], "content": content}
    described: dict[str, Any] = {
        "operationId": operation.endpoint,
        "summary": operation.summary,
        "description": f"Needs a token of role {operation.role} or above." if operation.role else "Needs no token.",
        "parameters": parameters,
        "responses": responses,
        "security": [{"token": []}] if operation.role is not None else [],
    }
    if operation.body is not None:
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": operation.body}}}
    return described


def make_document() -> dict[str, Any]:
    """The whole document."""
    paths: dict[str, Any] = {}
    for operation in OPERATIONS:
        path = re.sub(r":\w+}", "}", operation.path)
        paths.setdefault(path, {})[operation.method.lower()] = describe(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "paceline",
            "version": __version__,
            "description": "Decisions under a budget that is never overdrawn. Sitting out is an answer, not an error.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "paths": paths,
        "components": {
            "schemas": {"Problem": PROBLEM},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


DOCUMENT = make_document()

"""What can be asked of the service: every route once, with its role, body and answers.

The routes of the program and the OpenAPI document are both made of this table.
"""

from typing import Any, NamedTuple

from paceline.service import schema
from paceline.service.tokens import DECIDER, OPERATOR, READER

OPEN = None  # anybody may


class Operation(NamedTuple):
    """One method of one address."""

    method: str
    path: str
    endpoint: str  # the name of a function in endpoints.py, and the id in the OpenAPI document
    role: str | None
    summary: str
    body: dict[str, Any] | None = None
    answers: tuple[int, ...] = (200,)
    refusals: tuple[int, ...] = ()
    query: tuple[str, ...] = ()
    takes_key: bool = False  # whether an Idempotency-Key has a meaning
    media_type: str = "application/json"

    def __hash__(self) -> int:
        return hash((self.method, self.path))

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names in the path."""
        return tuple(part.strip("{}").partition(":")[0] for part in self.path.split("/") if part.startswith("{"))


B = "/v1/bandits/{bandit}"
OPERATIONS = (
    Operation("GET", "/v1/whoami", "whoami", READER, "Who you are to the service, and what you may do"),
    Operation("GET", "/v1/bandits", "list_bandits", READER, "The names of all bandits"),
    Operation(
        "PUT",
        B,
        "make_bandit",
        OPERATOR,
        "Make a bandit; the same settings again change nothing",
        schema.SETTINGS,
        (200, 201),
        (409,),
    ),
    Operation("GET", B, "show_bandit", READER, "The state of a bandit: the whole fleet, and this process"),
    Operation("PATCH", B, "change_bandit", OPERATOR, "Other settings from now on", schema.CHANGE),
    Operation(
        "POST", f"{B}/ask", "ask", DECIDER, "Decisions; to sit out is an arm of null", schema.ASK, takes_key=True
    ),
    Operation("POST", f"{B}/tell", "tell", DECIDER, "Outcomes of decisions, whole or in parts", schema.TELL),
    Operation("POST", f"{B}/cancel", "cancel", DECIDER, "Decisions that were never acted on", schema.IDS),
    Operation("POST", f"{B}/expire", "expire", DECIDER, "Decisions that nothing more is expected of", schema.IDS),
    Operation("POST", f"{B}/observe", "observe", DECIDER, "Learn from pulls made elsewhere", schema.OBSERVE),
    Operation("POST", f"{B}/step", "step", DECIDER, "Outcomes and decisions at once", schema.STEP, takes_key=True),
    Operation("POST", f"{B}/credit", "credit", OPERATOR, "Money that comes in", schema.CREDIT, takes_key=True),
    Operation(
        "POST",
        f"{B}/arms/{{arm:path}}",
        "add_arm",
        OPERATOR,
        "A new arm",
        schema.NEW_ARM,
        answers=(201,),
        refusals=(409,),
    ),
    Operation("PATCH", f"{B}/arms/{{arm:path}}", "change_arm", OPERATOR, "Pause, resume or retire", schema.ARM_CHANGE),
    Operation("GET", f"{B}/decisions", "list_decisions", READER, "The decisions of this process that are not settled"),
    Operation("GET", f"{B}/decisions/{{id}}", "show_decision", READER, "Why a decision was made, and its outcome"),
    Operation(
        "GET", f"{B}/events", "list_events", READER, "What happened in this process lately", query=("after", "count")
    ),
    Operation("GET", f"{B}/acts", "list_acts", READER, "What operators did", query=("after", "count")),
    Operation("GET", f"{B}/history", "show_history", READER, "How the amounts went, as seen by this process"),
    Operation(
        "GET",
        f"{B}/stream",
        "stream",
        READER,
        "The state every second, as server-sent events",
        query=("after",),
        media_type="text/event-stream",
        refusals=(429,),
    ),
    Operation("GET", f"{B}/workers", "list_workers", READER, "The workers of the fleet"),
    Operation(
        "POST",
        f"{B}/workers/{{worker}}/close",
        "close_worker",
        OPERATOR,
        "Assert that a worker is dead: its news goes to others; its money stays where it was",
        schema.CLOSE,
    ),
    Operation("GET", "/healthz", "healthz", OPEN, "The process is alive", media_type="text/plain"),
    Operation("GET", "/readyz", "readyz", OPEN, "The store can be reached", refusals=(503,), media_type="text/plain"),
    Operation("GET", "/metrics", "metrics", READER, "Numbers for Prometheus", media_type="text/plain"),
    Operation("GET", "/openapi.json", "openapi", OPEN, "This document"),
)

"""What went wrong, as application/problem+json (RFC 9457)."""

import logging
import time
from collections.abc import Mapping

from starlette.exceptions import HTTPException

from paceline.errors import (
    Conflict,
    FleetExists,
    InvalidValue,
    JournalFailed,
    JournalInUse,
    PacelineError,
    StoreFailed,
    UnknownName,
    in_one_line,
)
from paceline.service import encoding
from paceline.service.answers import Answer, raw

LOG = logging.getLogger("paceline.service")
MEDIA_TYPE = "application/problem+json"
SAID_AGAIN = 10.0  # seconds
RETRY_AFTER = {"Retry-After": "1"}


class Problem(PacelineError):
    """A request that is refused, with the status of the answer."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.headers = status, headers


class NotYet(StoreFailed):
    """What takes longer than a request waits; it says nothing of where the store is, and may be shown."""


TITLES = {
    400: "Malformed request",
    401: "Token needed",
    403: "Not allowed",
    404: "Unknown name",
    405: "Method not allowed",
    409: "Conflict",
    413: "Too large",
    415: "Not JSON",
    421: "Wrong host",
    422: "Invalid value",
    429: "Too many",
    431: "Too large",
    500: "Mistake in the service",
    503: "Not now",
}

# The first that fits counts.
STATUSES: tuple[tuple[type[Exception], int], ...] = (
    (encoding.NotJson, 400),
    (FleetExists, 409),
    (StoreFailed, 503),
    (JournalFailed, 503),
    (JournalInUse, 503),
    (UnknownName, 404),
    (Conflict, 409),
    (InvalidValue, 422),
    (PacelineError, 422),
)


def status_of(error: Exception) -> int:
    """The status that an error of the library is answered with.

    >>> status_of(Conflict("twice")), status_of(InvalidValue("nan"))
    (409, 422)
    """
    if isinstance(error, Problem):
        return error.status
    return next((status for kind, status in STATUSES if isinstance(error, kind)), 500)


def answer(error: Exception) -> Answer:
    """The answer to a request that met an error; what is our own mistake is logged, and not shown."""
    status = status_of(error)
    headers = dict(getattr(error, "headers", None) or (RETRY_AFTER if status in (429, 503) else {}))
    if status == 500:
        LOG.error("a request met a mistake in the service", exc_info=error)
        return document(status, "the service made a mistake; its log says which", headers)
    if isinstance(error, StoreFailed | JournalFailed | JournalInUse) and not isinstance(error, NotYet):
        # Where the store is, and who we are to it, is nobody's business, least of all before there was a token.
        OUTAGE.say(in_one_line(error))
        what = "store" if isinstance(error, StoreFailed) else "journal"
        return document(status, f"the {what} cannot take it now; the log of the service says why", headers)
    return document(status, str(error), headers)


class Outage:
    """Says in the log why requests cannot be answered: not for each of thousands, but every ten seconds."""

    def __init__(self) -> None:
        self.why, self.when, self.more = "", 0.0, 0  # what was last said, when, and how many had the same fate since

    def say(self, why: str) -> None:
        """One more request cannot be answered."""
        now = time.monotonic()
        if why == self.why and now - self.when < SAID_AGAIN:
            self.more += 1
            return
        others = f" (so it was with {self.more} before)" if self.more else ""
        LOG.warning("a request cannot be answered now: %s%s", why, others)
        self.why, self.when, self.more = why, now, 0


OUTAGE = Outage()


def answer_of_http(error: HTTPException) -> Answer:
    """The same for what the routes refuse by themselves: an unknown address, or a method that it does not have."""
    words = {404: "there is nothing at this address", 405: "this address does not take this method"}
    return document(error.status_code, words.get(error.status_code, error.detail), dict(error.headers or {}))


def document(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Answer:
    """One problem document."""
    title = TITLES.get(status, "Refused")
    body = {
        "type": f"urn:paceline:problem:{title.lower().replace(' ', '-')}",
        "title": title,
        "status": status,
        "detail": detail,
    }
    return Answer(body, status, MEDIA_TYPE.encode(), raw(headers or {}))

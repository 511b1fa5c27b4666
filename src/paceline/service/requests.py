"""A request, from its bytes to what it asks for; whatever is wrong with it is refused here."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from starlette.datastructures import QueryParams
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope

from paceline.errors import InvalidValue
from paceline.service import encoding
from paceline.service.answers import Header
from paceline.service.host import Host
from paceline.service.hosted import Hosted
from paceline.service.limits import LARGEST_BODY
from paceline.service.meter import Meter
from paceline.service.problems import Problem
from paceline.service.schema import NAME, checker, shown
from paceline.service.tokens import Identity

Headers = dict[bytes, bytes]  # their names in lower case

# Of two, whoever is in front of the service may have looked at the other.
ONCE = frozenset({b"host", b"authorization", b"content-type", b"content-length", b"idempotency-key", b"sec-fetch-site"})
KEY = re.compile(r"[\x21-\x7e]{1,200}")
check_bandit = checker(NAME)


class Call(NamedTuple):
    """A request that was let in."""

    scope: Scope
    headers: Headers
    host: Host
    meter: Meter
    identity: Identity
    body: Any

    @property
    def key(self) -> str | None:
        """What the request is to be known by when it comes again."""
        given = self.headers.get(b"idempotency-key")
        if given is None:
            return None
        key = given.decode("latin-1")
        if not KEY.fullmatch(key):
            raise InvalidValue(f"Idempotency-Key must have 1 to 200 characters without spaces, got {shown(key)}")
        return key

    def number(self, name: str, otherwise: int, low: int, high: int) -> int:
        """A whole number in the query."""
        given = QueryParams(self.scope["query_string"]).get(name)
        if given is None:
            return otherwise
        if not re.fullmatch(r"[0-9]{1,18}", given) or not low <= int(given) <= high:
            raise InvalidValue(f"{name} must be a whole number from {low} to {high}, got {shown(given)}")
        return int(given)

    def name(self, thing: str) -> str:
        """A name in the address."""
        name: str = self.scope["path_params"][thing]
        return name

    def bandit_name(self) -> str:
        """The name of a bandit, if it can be one."""
        name = self.name("bandit")
        try:
            check_bandit("the name of a bandit", name)
        except InvalidValue as error:
            raise Problem(422, str(error)) from None
        return name

    async def bandit(self) -> Hosted:
        """The bandit that the address names."""
        found = self.host.joined.get(self.scope["path_params"]["bandit"])
        return found or await self.host.bandit(self.bandit_name())


def headers_of(given: Sequence[Header]) -> Headers:
    """The headers of a request; those that decide something must not come twice."""
    headers = dict(given)
    if len(headers) < len(given):
        names = [name for name, _ in given]
        twice = sorted(name for name in ONCE if names.count(name) > 1)
        if twice:
            raise Problem(400, f"a request must have one header {twice[0].decode()}, got {names.count(twice[0])}")
    return headers


def check_body(headers: Headers) -> None:
    """Refuse a body by what the head of a request says of it."""
    kind = headers.get(b"content-type", b"none").partition(b";")[0].strip().lower()
    if kind != b"application/json":  # a form of another site could send anything else without being asked
        given = shown(kind.decode("latin-1"))
        raise Problem(415, f"the body must have the Content-Type application/json, got {given}")
    length = headers.get(b"content-length")
    if length is not None and (not length.isdigit() or int(length[:20]) > LARGEST_BODY):
        raise too_large()


async def body_of(receive: Receive) -> Any:
    """The body as a value; no more of it is read than may be sent."""
    parts, size, more = [], 0, True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            raise ClientDisconnect
        part = message.get("body", b"")
        size += len(part)
        if size > LARGEST_BODY:
            raise too_large()
        parts.append(part)
        more = message.get("more_body", False)
    return encoding.read(parts[0] if len(parts) == 1 else b"".join(parts))


def too_large() -> Problem:
    """What to say of a body that is too large; the rest of it is thrown away."""
    return Problem(413, f"the body must have at most {LARGEST_BODY} bytes", {"Connection": "close"})

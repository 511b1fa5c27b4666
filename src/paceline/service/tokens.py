"""Who may do what: bearer tokens, kept as digests, with one of three roles.

A token is 32 random bytes, so its SHA-256 needs no salt, and nobody can guess towards it. All digests are compared with
every request, each in constant time. The service looks into the store again every other second: a token that is revoked
is refused soon after, and a store that cannot be reached leaves the tokens as they were. Before it was reached for the
first time nobody comes in.
"""

import asyncio
import hashlib
import hmac
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from paceline import checks
from paceline.errors import InvalidValue, StoreFailed
from paceline.service.problems import Problem
from paceline.service.schema import NAME, checker

READER, DECIDER, OPERATOR = ROLES = ("reader", "decider", "operator")  # each may do what those before it may
RANKS = {role: rank for rank, role in enumerate(ROLES)}
RENEWED = 2.0  # seconds after which the list of tokens is read again, and
OUTDATED = 5.0  # after which nobody comes in by an older one, unless the store takes longer than
HURRY = 1.0  # to answer
SHORTEST, LONGEST = 16, 200  # characters of a token
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="paceline"'}

check_label = checker(NAME)


class Identity(NamedTuple):
    """Who is asking."""

    label: str
    role: str


class Kept(NamedTuple):
    """What the door knows of a token."""

    digest: bytes
    identity: Identity


NOBODY = Identity("local", OPERATOR)  # where no token is needed


def make_token() -> str:
    """A new token; it is shown once and kept nowhere."""
    return f"pl_{secrets.token_urlsafe(32)}"


def digest_of(token: str) -> bytes:
    """What is kept of a token."""
    return hashlib.sha256(token.encode("utf-8")).digest()


def add_token(store: Any, label: str, role: str) -> str:
    """Put a new token into a store; the token itself is given back, and is nowhere else."""
    check_label("label", label)
    checks.one_of("role", role, ROLES)
    token = make_token()
    store.add_token(digest_of(token), label, role)
    return token


def check_given(token: str) -> str:
    """A token that is given at the start must not be a short word."""
    if not SHORTEST <= len(token) <= LONGEST or not token.isascii() or not token.isprintable() or " " in token:
        raise InvalidValue(f"the token must have {SHORTEST} to {LONGEST} printable characters and no space")
    return token


class Door:
    """Tells who is asking, by the token in the header of a request.

    ``load``     reads the tokens of the store.
    ``given``    a token from the command line, with the role of an operator.
    ``is_open``  whether nobody needs a token as long as there is none: for a service that only this machine can reach.
    """

    def __init__(self, load: Callable[[], Awaitable[Sequence[Any]]], given: str | None, is_open: bool) -> None:
        self.load, self.is_open = load, is_open and given is None
        self.given = [] if given is None else [Kept(digest_of(given), Identity("command-line", OPERATOR))]
        self.kept: list[Kept] | None = None  # until the store was seen for the first time
        self.looked = -OUTDATED  # when the last look into the store was over
        self.looking: asyncio.Task[None] | None = None
        self.began = 0.0  # when it began to look

    async def renew(self) -> None:
        """Look into the store; if it cannot be reached, what is known stays."""
        try:
            found = await self.load()
            self.kept = self.given + [Kept(one.digest, Identity(one.label, one.role)) for one in found]
        except StoreFailed:
            if self.kept is None and not self.given:
                raise  # nobody can tell who may come in
            self.kept = self.kept or self.given
        finally:
            self.looked = time.monotonic()

    def known_now(self) -> list[Kept] | None:
        """The tokens that are known, if it is not time for another look."""
        return self.kept if time.monotonic() - self.looked < RENEWED else None

    async def known(self) -> list[Kept]:
        """The tokens that are known. Under traffic nobody waits for the next look; after a silence everybody does.

        A store that hangs holds nobody up for long: what is known stays, as it does if the store fails.
        """
        now = time.monotonic()
        age = now - self.looked
        if age >= RENEWED or self.kept is None:
            if self.looking is None or self.looking.done():
                self.looking, self.began = asyncio.create_task(self.renew()), now
            if self.kept is None:
                await asyncio.shield(self.looking)
            elif age >= OUTDATED and now < self.began + HURRY:
                await asyncio.wait({self.looking}, timeout=self.began + HURRY - now)
        assert self.kept is not None
        return self.kept

    async def identify(self, authorization: bytes | None) -> Identity:
        """Who has this token; without a token, the one who needs none, if there is one."""
        return self.identify_among(await self.known(), authorization)

    def identify_among(self, known: list[Kept], authorization: bytes | None) -> Identity:
        """The same among the tokens that are known."""
        if not known and self.is_open:
            return NOBODY
        if authorization is None:
            raise Problem(401, "the request must have a token: Authorization: Bearer ...", CHALLENGE)
        scheme, _, token = authorization.partition(b" ")
        found = None
        if scheme.lower() == b"bearer" and len(token) <= LONGEST:
            digest = hashlib.sha256(token.strip()).digest()
            for kept in known:  # all of them, each in the same time
                if hmac.compare_digest(kept.digest, digest):
                    found = kept.identity
        if found is None:
            raise Problem(401, "the token must be one that was added and not revoked", CHALLENGE)
        return found


def check_role(identity: Identity, role: str) -> None:
    """Refuse what a role may not do."""
    if RANKS[identity.role] < RANKS[role]:
        raise Problem(403, f"this must be done by a token of role {role}, got one of role {identity.role}")

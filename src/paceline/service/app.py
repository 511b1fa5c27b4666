"""The program that answers requests: routes, the door, and a short way to what is asked for all the time."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from paceline.errors import JournalFailed
from paceline.service import assets, encoding, endpoints, problems, schema
from paceline.service.answers import Answer, Header, with_shown
from paceline.service.host import Host
from paceline.service.limits import STORE_PATIENCE
from paceline.service.meter import Meter
from paceline.service.operations import OPERATIONS, B, Operation
from paceline.service.problems import NotYet, Problem
from paceline.service.requests import Call, Headers, body_of, check_body, headers_of
from paceline.service.tokens import DECIDER, NOBODY, Door, Identity, check_role
from paceline.service.wire import AtOnce

LOCAL = re.compile(rb"(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?")


class Surface:
    """Around everything: the headers of every answer, and a short way to the operations of a decider.

    ``app``     answers everything else.
    ``direct``  by the last word of the address of a bandit. Their answers are for programs, and have their headers.
    ``meter``   counts what is no request at all.
    """

    def __init__(self, app: ASGIApp, direct: "Mapping[str, Decider]", meter: Meter) -> None:
        self.app, self.direct, self.meter = app, direct, meter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        found = self.find(scope["method"], scope["path"])
        if found is not None:
            handler, scope["path_params"] = found[0], {"bandit": found[1]}
            return await handler(scope, receive, send)
        return await self.app(scope, receive, with_shown(send))

    def find(self, method: str, path: str) -> "tuple[Decider, str] | None":
        """What a decider asks for, and of which bandit, if it is that."""
        match path.split("/"):
            case ["", "v1", "bandits", name, verb] if name and verb in self.direct and method == "POST":
                return self.direct[verb], name
        return None

    def prompt(self, method: bytes, target: bytes) -> AtOnce | None:
        """What answers a request, if it can be answered at once. No bandit has a name that is spelled with % or ?."""
        found = self.find(method.decode("latin-1"), target.decode("latin-1"))
        return None if found is None else partial(found[0].at_once, found[1])

    def count_malformed(self, status: int) -> None:
        """A request was refused before anybody could tell what it asks for."""
        self.meter.count("malformed", status, 0.0)


def check_origin(headers: Headers, identity: Identity) -> None:
    """Where nobody needs a token, a page of another site must not get anything done through somebody's browser."""
    if identity is NOBODY and not LOCAL.fullmatch(headers.get(b"host", b"")):
        raise Problem(421, "without tokens, the service must be called by the name localhost, 127.0.0.1 or [::1]")
    if headers.get(b"sec-fetch-site", b"none") not in (b"none", b"same-origin"):
        raise Problem(403, "a page of another site must not call the service")


class Handler:
    """One operation: who, what, then do it; every refusal is one problem document."""

    def __init__(self, operation: Operation, host: Host, door: Door, meter: Meter) -> None:
        self.operation, self.host, self.door, self.meter = operation, host, door, meter
        self.do: Callable[[Call], Awaitable[Response]] = getattr(endpoints, operation.endpoint)
        self.check = None if operation.body is None else schema.checker(operation.body)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        began = time.perf_counter()
        try:
            response = await self.answer(scope, receive)
        except ClientDisconnect:
            return  # nobody waits for an answer
        except Exception as error:
            response = self.refuse(scope["path_params"].get("bandit"), error)
        self.meter.count(self.operation.endpoint, response.status_code, time.perf_counter() - began)
        await response(scope, receive, send)

    def refuse(self, bandit: str | None, error: Exception) -> Answer:
        """The answer to a request that met an error."""
        if isinstance(error, JournalFailed) and bandit is not None:
            self.host.let_go(bandit)
        return problems.answer(error)

    async def answer(self, scope: Scope, receive: Receive) -> Response:
        """The answer to a request, or the error that it meets."""
        identity, body, role = NOBODY, None, self.operation.role
        headers = headers_of(scope["headers"])
        if role is not None:
            identity = await self.door.identify(headers.get(b"authorization"))
            check_origin(headers, identity)
            check_role(identity, role)
        if self.check is not None:
            check_body(headers)
            body = await body_of(receive)
            self.check("the body", body)
        try:
            async with asyncio.timeout(STORE_PATIENCE):  # for all that it takes, one after the other
                return await self.do(Call(scope, headers, self.host, self.meter, identity, body))
        except TimeoutError:
            raise NotYet(f"the service must be done within {STORE_PATIENCE:g} seconds") from None


class Decider(Handler):
    """An operation of a decider, which most often is answered at once."""

    def __init__(self, operation: Operation, host: Host, door: Door, meter: Meter) -> None:
        super().__init__(operation, host, door, meter)
        self.do_at_once = endpoints.AT_ONCE[operation.endpoint]
        self.news = endpoints.NEWS.get(operation.endpoint)

    def at_once(self, bandit: str, fields: Sequence[Header], content: bytes) -> Answer | None:
        """The answer to a request that is here as a whole; None, and nothing has happened, if it takes the store."""
        hosted = self.host.joined.get(bandit)
        known, began = self.door.known_now(), time.perf_counter()
        if hosted is None or known is None:
            return None
        try:
            headers = headers_of(fields)
            if b"idempotency-key" in headers:
                return None
            identity = self.door.identify_among(known, headers.get(b"authorization"))
            check_origin(headers, identity)
            check_role(identity, DECIDER)
            check_body(headers)
            body = encoding.read(content)
            assert self.check is not None
            self.check("the body", body)
            if self.news is not None and hosted.has_others(body.get(self.news, ())):
                return None
            answer = Answer(self.do_at_once(hosted, body, identity.label))
        except Exception as error:
            answer = self.refuse(bandit, error)
        self.meter.count(self.operation.endpoint, answer.status_code, time.perf_counter() - began)
        return answer


def make_app(host: Host, *, token: str | None = None, is_open: bool = True) -> ASGIApp:
    """The program.

    ``token``    one that is not in the store, for an operator.
    ``is_open``  whether nobody needs a token while there is none; only for one that listens on this machine alone.
    """
    door = Door(lambda: host.in_thread(host.store.tokens), token, is_open)
    meter = Meter(time.time())
    files = assets.read_assets()

    async def page(request: Request) -> Response:
        return assets.send(files[assets.PAGE], request)

    async def asset(request: Request) -> Response:
        found = files.get(request.path_params["name"])
        if found is None:
            return problems.document(404, "there is nothing at this address")
        return assets.send(found, request)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        looking = asyncio.create_task(host.keep_looking())
        try:
            yield
        finally:
            looking.cancel()
            await host.close()

    async def refused(_request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return problems.answer_of_http(error)

    async def mistaken(_request: Request, error: Exception) -> Response:
        return problems.answer(error)

    deciders = {one: Decider(one, host, door, meter) for one in OPERATIONS if one.role == DECIDER}
    handlers = {one: deciders.get(one) or Handler(one, host, door, meter) for one in OPERATIONS}
    app = Starlette(
        routes=[
            *(Route(one.path, handler, methods=[one.method], name=one.endpoint) for one, handler in handlers.items()),
            Route("/", page),
            Route("/page/{name}", asset),
        ],
        exception_handlers={HTTPException: refused, Exception: mistaken},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False  # an address is right, or it is none
    return Surface(app, {one.path.removeprefix(f"{B}/"): handler for one, handler in deciders.items()}, meter)

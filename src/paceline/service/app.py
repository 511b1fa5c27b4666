"""The program that answers requests: routes, the door, and what every answer carries."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from paceline.service import assets, endpoints, problems, schema
from paceline.service.host import Host
from paceline.service.meter import Meter
from paceline.service.operations import OPERATIONS, B, Operation
from paceline.service.problems import Problem
from paceline.service.requests import Call, Headers, body_of
from paceline.service.tokens import DECIDER, NOBODY, Door, Identity, check_role

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
RAW_HEADERS = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
NO_STORE = (b"cache-control", b"no-store")
LOCAL = re.compile(rb"(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?")


class Surface:
    """Around everything: the headers of every answer, and a short way to what is asked for all the time."""

    def __init__(self, app: ASGIApp, direct: Mapping[str, ASGIApp]) -> None:
        self.app, self.direct = app, direct

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [*message["headers"], *RAW_HEADERS]
                if not any(name == b"cache-control" for name, _ in headers):
                    headers.append(NO_STORE)
                message["headers"] = headers
            await send(message)

        match scope["method"], scope["path"].split("/"):
            case "POST", ["", "v1", "bandits", name, verb] if name and verb in self.direct:
                scope["path_params"] = {"bandit": name}
                return await self.direct[verb](scope, receive, send_with_headers)
        return await self.app(scope, receive, send_with_headers)


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
            response = await self.answer(Request(scope, receive))
        except ClientDisconnect:
            return  # nobody waits for an answer
        except Exception as error:
            response = problems.answer(error)
        self.meter.count(self.operation.endpoint, response.status_code, time.perf_counter() - began)
        await response(scope, receive, send)

    async def answer(self, request: Request) -> Response:
        """The answer to a request, or the error that it meets."""
        identity, body, role = NOBODY, None, self.operation.role
        headers: Headers = dict(request.scope["headers"])
        if role is not None:
            identity = await self.door.identify(headers.get(b"authorization"))
            check_origin(headers, identity)
            check_role(identity, role)
        if self.check is not None:
            body = await body_of(request, headers)
            self.check("the body", body)
        return await self.do(Call(request, headers, self.host, identity, body))


def make_app(host: Host, *, token: str | None = None, is_open: bool = True) -> Starlette:
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

    handlers = {operation: Handler(operation, host, door, meter) for operation in OPERATIONS}
    app = Starlette(
        routes=[
            *(Route(one.path, handler, methods=[one.method], name=one.endpoint) for one, handler in handlers.items()),
            Route("/", page),
            Route("/page/{name}", asset),
        ],
        exception_handlers={HTTPException: refused, Exception: mistaken},
        lifespan=lifespan,
    )
    direct = {one.path.removeprefix(f"{B}/"): handler for one, handler in handlers.items() if one.role == DECIDER}
    app.add_middleware(Surface, direct=direct)
    app.router.redirect_slashes = False  # an address is right, or it is none
    app.state.meter = meter
    return app

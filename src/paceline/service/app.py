"""The program that answers requests: routes, the door, and what every answer carries."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from paceline.service import assets, endpoints, problems, schema
from paceline.service.host import Host
from paceline.service.meter import Meter
from paceline.service.operations import OPERATIONS, Operation
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
LOCAL = re.compile(rb"(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?")


class Surface:
    """Around everything: the headers of every answer, and a check of where a request came from."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [*message["headers"], *RAW_HEADERS]
                if not any(name == b"cache-control" for name, _ in headers):
                    headers.append((b"cache-control", b"no-store"))
                message["headers"] = headers
            await send(message)

        return await self.app(scope, receive, send_with_headers)


def check_origin(headers: Headers, identity: Identity) -> None:
    """Where nobody needs a token, a page of another site must not get anything done through somebody's browser."""
    if identity is NOBODY and not LOCAL.fullmatch(headers.get(b"host", b"")):
        raise Problem(421, "without tokens, the service must be called by the name localhost, 127.0.0.1 or [::1]")
    if headers.get(b"sec-fetch-site", b"none") not in (b"none", b"same-origin"):
        raise Problem(403, "a page of another site must not call the service")


def make_route(operation: Operation, host: Host, door: Door, meter: Meter) -> Route:
    """The route of an operation: who, what, then do it; every refusal is one problem document."""
    do: Callable[[Call], Awaitable[Response]] = getattr(endpoints, operation.endpoint)
    check = None if operation.body is None else schema.checker(operation.body)
    role, name = operation.role, operation.endpoint

    async def endpoint(request: Request) -> Response:
        began = time.perf_counter()
        try:
            identity: Any = None
            headers: Headers = dict(request.scope["headers"])
            if role is not None:
                identity = await door.identify(headers.get(b"authorization"))
                check_origin(headers, identity)
                check_role(identity, role)
            body = None
            if check is not None:
                body = await body_of(request, headers)
                check("the body", body)
            response = await do(Call(request, headers, host, identity, body))
        except ClientDisconnect:
            raise
        except Exception as error:
            response = problems.answer(error)
        meter.count(name, response.status_code, time.perf_counter() - began)
        return response

    return Route(operation.path, endpoint, methods=[operation.method], name=name)


def is_rare(operation: Operation) -> bool:
    """Routes are tried one after the other: those of decisions and news come first."""
    return operation.role != DECIDER


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

    app = Starlette(
        routes=[
            *(make_route(operation, host, door, meter) for operation in sorted(OPERATIONS, key=is_rare)),
            Route("/", page),
            Route("/page/{name}", asset),
        ],
        exception_handlers={HTTPException: refused, Exception: mistaken},
        lifespan=lifespan,
    )
    app.add_middleware(Surface)
    app.state.meter = meter
    return app

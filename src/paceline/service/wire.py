"""HTTP as uvicorn speaks it, with a short way for what can be answered at once, and an end to those who do not go on.

What is asked for all the time (ask, tell, step) needs nothing but the books of this process. As soon as such a request
has come in whole it is answered: no task and no messages in between. Whatever may have to wait, or is large, takes the
way that every request of uvicorn takes.

Answers go out at the end of a turn of the event loop, each in one piece: a call to the system is a good part of what a
small answer takes, and whoever is woken by the first of several does not have to be woken for the others.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any, Protocol, cast

from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from paceline.service.answers import Answer, lines
from paceline.service.limits import LARGEST_HEAD, MOST_WAITING
from paceline.service.problems import document

SMALL = 1 << 15  # bytes of a body that is waited for as a whole
KEPT_OPEN = 65.0  # seconds that a connection may be idle; a proxy in front closes its own after 60
ARRIVES = 60.0  # seconds in which a request must have come in
LINGERS = 10.0  # seconds in which somebody who was refused while sending may read why

# What strangers send is no news: it is counted, and a line for each would let anybody fill the disk.
QUIET = logging.getLogger("paceline.service.wire")
QUIET.setLevel(logging.ERROR)

AtOnce = Callable[[Scope, bytes], Answer | None]  # None if something has to be waited for


class Gathering:
    """A transport that writes once in a turn of the event loop; everything else is as of the one within.

    ``is_sending``  whether the other side has begun a request that is not here yet.
    """

    def __init__(
        self, inner: asyncio.Transport, loop: asyncio.AbstractEventLoop, is_sending: Callable[[], bool]
    ) -> None:
        self.inner, self.loop, self.is_sending = inner, loop, is_sending
        self.parts: list[bytes] = []
        self.is_closing = inner.is_closing  # which is asked after every answer
        self.is_lingering = False

    def write(self, data: bytes) -> None:
        """Keep it until the end of the turn; after the last word nothing is said any more."""
        if self.is_lingering:
            return
        if not self.parts:
            self.loop.call_soon(self.flush)
        self.parts.append(data)

    def flush(self) -> None:
        """Write what there is."""
        if self.parts:
            data = b"".join(self.parts)
            self.parts.clear()
            self.inner.write(data)

    def close(self) -> None:
        """Write what there is, and close.

        To somebody who is still sending, a connection that is closed is broken: most programs never read what was
        answered then. So the rest is taken in, and thrown away, until they have read it and close themselves, or their
        time is up.
        """
        if self.is_lingering or not self.is_sending() or self.inner.is_closing():
            self.end()
            return
        self.flush()
        self.is_lingering, self.is_closing = True, lambda: True
        self.inner.write_eof()
        self.inner.resume_reading()
        self.loop.call_later(LINGERS, self.inner.abort)

    def end(self) -> None:
        """Write what there is, and close, whatever the other side does."""
        self.flush()
        self.inner.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class Prompt(Protocol):
    """A program that has answers to some requests at once."""

    def prompt(self, scope: Scope) -> AtOnce | None:
        """What answers a request, if it can be answered at once."""

    def count_malformed(self, status: int) -> None:
        """A request was refused before anybody could tell what it asks for."""


class Connection(HttpToolsProtocol):
    """One connection."""

    held: tuple[RequestResponseCycle, AtOnce] | None = None  # a request whose body is not here yet
    is_arriving = False  # whether a request has begun, and is not here yet
    is_in_head = False  # whether its head is not here yet, and
    head = 0  # how many bytes of it have come after the first piece
    since = 0.0  # when it began, or when the last answer was sent
    paused = 0.0  # when the other side had left so much unread that no more is written
    first: tuple[Any, bytes] = None, b""  # the headers that the server puts first, which it renews every second

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Somebody has come."""
        self.logger = QUIET
        self.gathering = Gathering(transport, self.loop, lambda: self.is_arriving)
        super().connection_made(cast(asyncio.Transport, self.gathering))
        self.since = self.loop.time()

    def data_received(self, data: bytes) -> None:
        """Some bytes. A head without an end must not fill the memory; a body behind it may be as long as it likes."""
        if self.gathering.is_lingering:
            return
        if self.is_in_head:
            self.head += len(data)
        super().data_received(data)
        if self.is_in_head and self.head > LARGEST_HEAD and not self.transport.is_closing():
            self.refuse(document(431, f"the head of a request must have at most {LARGEST_HEAD} bytes"))

    def send_400_response(self, msg: str) -> None:
        """What came is no HTTP."""
        self.refuse(document(400, msg))

    def refuse(self, answer: Answer) -> None:
        """Say why, and close: what comes after it cannot be told apart."""
        cast(Prompt, self.app).count_malformed(answer.status_code)
        self.transport.write(answer.in_one_piece(self.first_lines(), keep_alive=False))
        self.transport.close()

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        super().on_message_begin()
        self.is_arriving, self.since = True, self.loop.time()
        self.is_in_head, self.head = True, 0

    def on_headers_complete(self) -> None:
        """The head of a request is whole. Fields that come behind the body are not part of it (RFC 9110, 6.5.1)."""
        self.is_in_head = False
        super().on_headers_complete()
        self.headers = []

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """The head of a request is here, and it is its turn."""
        if cycle.more_body and not cycle.waiting_for_100_continue:
            at_once = cast(Prompt, self.app).prompt(cast(Scope, cycle.scope))
            if at_once is not None:
                self.held = cycle, at_once
                return
        self.begin(cycle, app)

    def begin(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Let a request go the usual way, unless too many are on it."""
        super()._start_asgi_task(cycle, too_many if len(self.tasks) >= MOST_WAITING else app)

    def on_body(self, body: bytes) -> None:
        """A part of the body. If it is long, whoever wants it takes it piece by piece."""
        super().on_body(body)
        if self.held is not None and len(self.held[0].body) > SMALL:
            self.release(self.held[0])

    def on_message_complete(self) -> None:
        """All of the request is here."""
        self.is_arriving = False
        super().on_message_complete()
        if self.held is not None:
            cycle, at_once = self.held
            answer = None if self.flow.write_paused else at_once(cast(Scope, cycle.scope), bytes(cycle.body))
            if answer is None:
                self.release(cycle)
            else:
                self.finish(cycle, answer)

    def release(self, cycle: RequestResponseCycle) -> None:
        """Do not answer a request that was held at once."""
        self.held = None
        self.begin(cycle, self.app)

    def finish(self, cycle: RequestResponseCycle, answer: Answer) -> None:
        """Send an answer in one piece."""
        self.held = None
        self.transport.write(answer.in_one_piece(self.first_lines(), cycle.keep_alive))
        cycle.response_started = cycle.response_complete = True
        if not cycle.keep_alive:
            self.transport.close()
        self.on_response_complete()

    def first_lines(self) -> bytes:
        """The headers that the server puts first."""
        headers = self.server_state.default_headers
        if headers is not self.first[0]:
            self.first = headers, lines(headers)
        return self.first[1]

    def on_response_complete(self) -> None:
        """An answer was sent. There is no timer for each: `look` is called now and then."""
        self.since = self.loop.time()
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())

    def pause_writing(self) -> None:
        """The other side does not read."""
        self.paused = self.loop.time()
        super().pause_writing()

    def shutdown(self) -> None:
        """The server ends. Who has sent no whole head, or has got the answer, is not waited for."""
        if self.cycle is None or self.cycle.response_complete:
            self.gathering.end()
        else:
            self.cycle.keep_alive = False

    def look(self, now: float) -> None:
        """End the connection if it is idle, or a request on it takes too long to come in, or an answer to be read."""
        is_idle = self.cycle is None or self.cycle.response_complete
        is_late = now - self.since > ARRIVES if self.is_arriving else is_idle and now - self.since > KEPT_OPEN
        if is_late or (self.flow.write_paused and now - self.paused > ARRIVES):
            self.gathering.inner.abort()


def look_at(connections: Iterable[Any], now: float) -> None:
    """Close those that do not go on."""
    for connection in list(connections):
        connection.look(now)


too_many: Any = document(503, f"requests at the same time must be at most {MOST_WAITING}", {"Retry-After": "1"})

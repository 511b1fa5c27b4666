"""HTTP as uvicorn speaks it, with a short way for what can be answered at once, and an end to those who do not go on.

What is asked for all the time (ask, tell, step) needs nothing but the books of this process. As soon as such a request
has come in whole it is answered: no task and no messages in between, and nothing is made of it but its headers and its
body. Whatever may have to wait, or is large, takes the way that every request of uvicorn takes.

Answers go out at the end of a turn of the event loop, each in one piece: a call to the system is a good part of what a
small answer takes, and whoever is woken by the first of several does not have to be woken for the others.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Protocol, cast

import httptools
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from paceline.service.answers import Answer, Header, lines
from paceline.service.limits import LARGEST_HEAD, MOST_WAITING
from paceline.service.problems import document

SMALL = 1 << 15  # bytes of a body that is waited for as a whole
LONG = 1 << 15  # bytes of answers after which a connection lets the others have their turn
KEPT_OPEN = 65.0  # seconds that a connection may be idle; a proxy in front closes its own after 60
ARRIVES = 60.0  # seconds in which a request must have come in
LINGERS = 10.0  # seconds in which somebody who was refused while sending may read why

# What strangers send is no news: it is counted, and a line for each would let anybody fill the disk.
QUIET = logging.getLogger("paceline.service.wire")
QUIET.setLevel(logging.ERROR)

# The answer to the headers and the body of a request; None if something has to be waited for.
AtOnce = Callable[[Sequence[Header], bytes], Answer | None]


class Gathering:
    """A transport that writes once in a turn of the event loop; everything else is as of the one within.

    ``is_sending``  whether the other side has begun a request that is not here yet.
    """

    def __init__(
        self, inner: asyncio.Transport, loop: asyncio.AbstractEventLoop, is_sending: Callable[[], bool]
    ) -> None:
        self.inner, self.loop, self.is_sending = inner, loop, is_sending
        self.parts: list[bytes] = []
        self.size = 0  # bytes of these
        self.is_closing = inner.is_closing  # which is asked after every answer
        self.is_lingering = False

    def write(self, data: bytes) -> None:
        """Keep it until the end of the turn; after the last word nothing is said any more."""
        if self.is_lingering:
            return
        if not self.parts:
            self.loop.call_soon(self.flush)
        self.parts.append(data)
        self.size += len(data)

    def flush(self) -> None:
        """Write what there is, unless the other side has left since."""
        if self.parts:
            data = b"".join(self.parts)
            self.parts.clear()
            self.size = 0
            if not self.inner.is_closing():
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


class Flow(FlowControl):
    """Nothing is read while requests wait for their turn: whoever sends faster than we answer would fill the memory."""

    def __init__(self, transport: asyncio.Transport, waiting: Collection[object]) -> None:
        super().__init__(transport)
        self.waiting = waiting

    def resume_reading(self) -> None:
        """Read on, if nothing waits."""
        if not self.waiting:
            super().resume_reading()


class Prompt(Protocol):
    """A program that has answers to some requests at once."""

    def prompt(self, method: bytes, target: bytes) -> AtOnce | None:
        """What answers a request, by the first line of it, if it can be answered at once."""

    def count_malformed(self, status: int) -> None:
        """A request was refused before anybody could tell what it asks for."""


class Connection(HttpToolsProtocol):
    """One connection."""

    at_once: AtOnce | None = None  # what answers the request that comes in, if it can be answered as soon as it is here
    fields: Sequence[Header] = ()  # the headers of that request
    content = bytearray()  # its body, as far as it is here
    is_last = False  # whether the connection is to be closed after it
    is_arriving = False  # whether a request has begun, and is not here yet
    is_in_head = False  # whether its head, or what comes in front of and behind the chunks of its body, is coming in,
    head = 0  # and how many bytes of it have come after the first piece
    in_turn: RequestResponseCycle | None = None  # the request that is being answered the usual way
    since = 0.0  # when it began, or when the last answer was sent
    paused = 0.0  # when the other side had left so much unread that no more is written
    first: tuple[Any, bytes] = None, b""  # the headers that the server puts first, which it renews every second

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Somebody has come."""
        self.logger = QUIET
        self.gathering = Gathering(transport, self.loop, lambda: self.is_arriving)
        super().connection_made(cast(asyncio.Transport, self.gathering))
        self.flow = Flow(self.transport, self.pipeline)
        self.since = self.loop.time()

    def data_received(self, data: bytes) -> None:
        """Some bytes. Fields without an end must not fill the memory; a body behind them may be as long as it likes."""
        if self.gathering.is_lingering:
            return
        if self.is_in_head:
            self.head += len(data)
        while data:
            try:
                self.parser.feed_data(data)
                data = b""
            except httptools.HttpParserUpgrade as found:
                data = self.without_upgrade(data[found.args[0] :])
            except httptools.HttpParserError:
                self.refuse(document(400, "Invalid HTTP request received."))
                data = b""
        if self.is_in_head and self.head > LARGEST_HEAD and not self.transport.is_closing():
            self.refuse(document(431, f"the head of a request must have at most {LARGEST_HEAD} bytes"))

    def without_upgrade(self, rest: bytes) -> bytes:
        """A request that offers to go on in another protocol, as it would be without that (RFC 9110, 7.8).

        Programs in Java offer HTTP/2 with every request, and the parser does not read the bodies of these.
        """
        method, version = self.parser.get_method(), self.parser.get_http_version().encode()
        if method == b"CONNECT":
            self.refuse(document(405, "the service is no proxy"))
            return b""
        head = lines([field for field in self.fields if field[0] != b"upgrade"])
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        return b"%s %s HTTP/%s\r\n%s\r\n%s" % (method, self.url, version, head, rest)

    def eof_received(self) -> bool:  # type: ignore[override]
        """The other side sends no more, but may still read what a request that is here as a whole is answered.

        An answer that has begun is a stream, or one that is not read: who does not send any more has left it.
        """
        self.gathering.flush()
        now = self.in_turn
        if now is None or now.more_body or now.response_started:
            return False
        self.cycle.keep_alive = False
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Somebody has left. Uvicorn tells the last request that came, which may not be the one that is answered."""
        super().connection_lost(exc)
        if self.in_turn is not None and not self.in_turn.response_complete:
            self.in_turn.disconnected = True
            self.in_turn.message_event.set()

    def refuse(self, answer: Answer) -> None:
        """Say why, and close: what comes after it cannot be told apart."""
        cast(Prompt, self.app).count_malformed(answer.status_code)
        self.transport.write(answer.in_one_piece(self.first_lines(), keep_alive=False))
        self.transport.close()

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        self.url, self.headers, self.expect_100_continue = b"", [], False
        self.is_arriving, self.since = True, self.loop.time()
        self.is_in_head, self.head = True, 0

    def on_headers_complete(self) -> None:
        """The head of a request is whole. Fields that come behind the body are not part of it (RFC 9110, 6.5.1)."""
        self.head = 0
        self.fields, self.headers = self.headers, []
        if self.parser.should_upgrade():  # it is read again, without that
            return
        if self.is_idle and not self.expect_100_continue and self.gathering.size < LONG:
            self.at_once = cast(Prompt, self.app).prompt(self.parser.get_method(), self.url)
        if self.at_once is None:
            self.go_the_usual_way(self.expect_100_continue)
        else:
            self.content = bytearray()
            self.is_last = not self.parser.should_keep_alive() or self.parser.get_http_version() == "1.0"

    def go_the_usual_way(self, waits_for_100: bool) -> None:
        """Let uvicorn make of a head what it makes of every one."""
        url = self.url
        super().on_message_begin()
        self.url, self.expect_100_continue = url, waits_for_100
        self.headers += self.fields
        super().on_headers_complete()
        self.headers = []

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """It is the turn of a request, unless too many are under way."""
        self.in_turn = cycle
        super()._start_asgi_task(cycle, too_many if len(self.tasks) >= MOST_WAITING else app)

    def on_chunk_complete(self) -> None:
        """The end of a part of the body. What says how long the next one is, or the fields behind the last, follow."""
        self.is_in_head, self.head = True, 0

    def on_body(self, body: bytes) -> None:
        """A part of the body. If it is long, whoever wants it takes it piece by piece."""
        self.is_in_head = False
        if self.at_once is None:
            super().on_body(body)
            return
        self.content += body
        if len(self.content) > SMALL:
            self.release()

    def on_message_complete(self) -> None:
        """All of the request is here."""
        if self.parser.should_upgrade():
            return
        self.is_arriving = self.is_in_head = False
        if self.at_once is not None:
            answer = None if self.flow.write_paused else self.at_once(self.fields, bytes(self.content))
            if answer is not None:
                self.finish(answer)
                return
            self.release()
        super().on_message_complete()

    def release(self) -> None:
        """Do not answer a request at once: it goes the usual way, with what there is of its body."""
        self.at_once = None
        self.go_the_usual_way(waits_for_100=False)
        if self.is_last:
            self.cycle.keep_alive = False
        super().on_body(bytes(self.content))

    def finish(self, answer: Answer) -> None:
        """Send an answer in one piece."""
        self.at_once = None
        self.transport.write(answer.in_one_piece(self.first_lines(), keep_alive=not self.is_last))
        if self.is_last:
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
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        self.flow.resume_reading()

    def pause_writing(self) -> None:
        """The other side does not read."""
        self.paused = self.loop.time()
        super().pause_writing()

    @property
    def is_idle(self) -> bool:
        """Whether nobody waits for an answer to what has come in with a whole head."""
        return self.at_once is None and (self.cycle is None or self.cycle.response_complete)

    def shutdown(self) -> None:
        """The server ends. Who has sent no whole head, or has got the answer, is not waited for."""
        if self.is_idle:
            self.gathering.end()
        elif self.at_once is not None:
            self.is_last = True
        else:
            self.cycle.keep_alive = False

    def look(self, now: float) -> None:
        """End the connection if it is idle, or a request on it takes too long to come in, or an answer to be read."""
        is_late = now - self.since > ARRIVES if self.is_arriving else self.is_idle and now - self.since > KEPT_OPEN
        if is_late or (self.flow.write_paused and now - self.paused > ARRIVES):
            self.gathering.inner.abort()


def look_at(connections: Iterable[Any], now: float) -> None:
    """Close those that do not go on."""
    for connection in list(connections):
        connection.look(now)


too_many: Any = document(503, f"requests at the same time must be at most {MOST_WAITING}", {"Retry-After": "1"})

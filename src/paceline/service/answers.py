"""What every answer carries, and answers in JSON."""

from collections.abc import Iterable, Mapping
from typing import Any

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from paceline.service import encoding

Header = tuple[bytes, bytes]


def raw(headers: Mapping[str, str]) -> list[Header]:
    """Headers as they are sent."""
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]


# What a browser shows: the page and its files, texts, streams.
SHOWN = raw(
    {
        "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
        "Cache-Control": "no-store",
    }
)
# What a program reads. A browser that is sent there all the same neither guesses, nor frames, nor keeps it.
READ = raw(
    {
        "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-store",
    }
)
JSON = b"application/json"


def lines(headers: Iterable[Header]) -> bytes:
    """Headers as they go over the wire."""
    return b"".join([b"%b: %b\r\n" % header for header in headers])


READ_LINES = lines(READ)


def with_shown(send: Send) -> Send:
    """The same answer with all headers that it has not got."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            names = {name for name, _ in message["headers"]}
            message["headers"] = [*message["headers"], *(header for header in SHOWN if header[0] not in names)]
        await send(message)

    return send_with_headers


class Answer(Response):
    """A value as JSON. It needs little of what a response can have, and is made in a fraction of the time."""

    def __init__(self, value: Any, status: int = 200, media_type: bytes = JSON, headers: Iterable[Header] = ()) -> None:
        self.status_code, self.background = status, None
        self.body = encoding.write(value)
        self.kind, self.more = media_type, headers

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """Send it."""
        length = b"%d" % len(self.body)
        headers = [(b"content-type", self.kind), (b"content-length", length), *READ, *self.more]
        await send({"type": "http.response.start", "status": self.status_code, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})

    def in_one_piece(self, first: bytes, keep_alive: bool) -> bytes:
        """All of it as it goes over the wire, with the lines that the server puts first."""
        return b"%b%bcontent-type: %b\r\ncontent-length: %d\r\n%b%b%b\r\n%b" % (
            STATUS_LINE[self.status_code],
            first,
            self.kind,
            len(self.body),
            READ_LINES,
            lines(self.more) if self.more else b"",
            b"" if keep_alive else b"connection: close\r\n",
            bytes(self.body),
        )

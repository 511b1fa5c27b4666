"""Requests to one service over HTTP: connections that are kept, a deadline for each, and what answers stand for."""

import json
import threading
import time
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from io import BufferedReader, RawIOBase
from socket import socket
from typing import Any
from urllib.parse import SplitResult

from paceline import checks
from paceline.errors import Conflict, InvalidValue, PacelineError, UnknownName

IDLE = 16  # connections that are kept
SHORTEST = 0.001  # seconds; none at all would mean "do not wait"


class ServiceUnreachable(PacelineError):
    """The service did not answer, or cannot do it now."""


class ServiceBusy(ServiceUnreachable):
    """The service is there, and cannot take this now; something else it may."""


class ServiceRefused(PacelineError):
    """The service does not let this token do it."""


class Late(Exception):
    """The answer has not come in time; it may still come."""

    def __init__(self, connection: HTTPConnection) -> None:
        super().__init__("late")
        self.connection = connection


class WasClosed(Exception):
    """The service had closed a connection that was idle; on another one it may answer."""


class Timely(HTTPResponse):
    """An answer that is there as a whole by some time: a socket by itself waits anew for every piece."""

    def __init__(self, end: float, sock: socket, *arguments: Any, **keywords: Any) -> None:
        super().__init__(sock, *arguments, **keywords)
        self.fp = BufferedReader(Until(end, sock, self.fp.detach()))


class Until(RawIOBase):
    """What comes in over a socket until some time."""

    def __init__(self, end: float, sock: socket, raw: RawIOBase) -> None:
        self.end, self.sock, self.raw = end, sock, raw

    def readable(self) -> bool:
        """It is for reading."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Wait for some more."""
        left = self.end - time.monotonic()
        if left <= 0.0:
            raise TimeoutError("timed out")
        self.sock.settimeout(left)
        return self.raw.readinto(buffer)

    def close(self) -> None:
        """The socket is kept for the next request, or closed by whoever has it."""
        self.raw.close()
        super().close()


class Transport:
    """The way to one service, for the threads of one process.

    ``parts``    its address.
    ``headers``  that every request has.
    """

    def __init__(self, parts: SplitResult, headers: dict[str, str]) -> None:
        self.parts, self.headers = parts, headers
        self.place = f"{parts.scheme}://{parts.netloc}"
        self.lock = threading.Lock()
        self.idle: list[HTTPConnection] = []
        self.is_closed = False

    def talk(self, method: str, path: str, body: Any, more: dict[str, str], seconds: float) -> Any:
        """Send a request and wait for its answer. A connection that was idle may have been closed meanwhile.

        `Late` if the request was sent and the answer is not there in time; else `ServiceUnreachable`, or the error that
        a refusal stands for.
        """
        end, content = time.monotonic() + seconds, None if body is None else as_json(body)
        try:
            try:
                return self.talk_on(self.connection(seconds), method, path, content, more, end)
            except WasClosed:
                return self.talk_on(self.new_connection(seconds), method, path, content, more, end)
        except (OSError, HTTPException) as error:
            why = str(error) or type(error).__name__
            raise ServiceUnreachable(f"the service must answer at {self.place}, but: {why}") from None

    def talk_on(
        self,
        connection: HTTPConnection,
        method: str,
        path: str,
        content: bytes | None,
        more: dict[str, str],
        end: float,
    ) -> Any:
        """The same on one connection."""
        was_idle = connection.sock is not None
        headers = {**self.headers, **more} | ({} if content is None else {"Content-Type": "application/json"})
        connection.timeout = max(end - time.monotonic(), SHORTEST)
        is_sent = False
        try:
            if connection.sock is not None:
                connection.sock.settimeout(connection.timeout)
            connection.request(method, self.parts.path.rstrip("/") + path, content, headers)
            is_sent = True
            return self.receive(connection, end - time.monotonic())
        except TimeoutError:
            if is_sent:
                raise Late(connection) from None
            connection.close()
            raise
        except (OSError, HTTPException) as error:
            connection.close()
            if was_idle and isinstance(error, ConnectionError):
                raise WasClosed from None
            raise

    def receive(self, connection: HTTPConnection, seconds: float) -> Any:
        """The answer; a refusal becomes the error that `Bandit` would raise."""
        connection.response_class = partial(Timely, time.monotonic() + max(seconds, SHORTEST))  # type: ignore[assignment]
        response = connection.getresponse()
        content = response.read()
        if response.will_close:
            connection.close()
        else:
            self.give_back(connection)
        if response.status >= 300:
            raise error_of(response.status, content)
        try:
            return json.loads(content)
        except (ValueError, RecursionError):  # a proxy may say whatever it likes
            raise ServiceUnreachable(f"the service must answer at {self.place} in JSON, got something else") from None

    def connection(self, timeout: float) -> HTTPConnection:
        """One that is idle, or a new one."""
        with self.lock:
            if self.idle:
                return self.idle.pop()
        return self.new_connection(timeout)

    def new_connection(self, timeout: float) -> HTTPConnection:
        """One that is not open yet."""
        kind = HTTPSConnection if self.parts.scheme == "https" else HTTPConnection
        assert self.parts.hostname is not None
        return kind(self.parts.hostname, self.parts.port, timeout=timeout)

    def give_back(self, connection: HTTPConnection) -> None:
        """Keep a connection for the next request."""
        with self.lock:
            if len(self.idle) < IDLE and not self.is_closed:
                self.idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Close the connections that are idle, and keep no more."""
        with self.lock:
            self.is_closed = True
            idle, self.idle = self.idle, []
        for connection in idle:
            connection.close()


def as_json(body: Any) -> bytes:
    """What is sent; numbers may be of NumPy, fractions, or Decimals, as in all calls of a `Bandit`."""
    try:
        return json.dumps(body, allow_nan=False, default=partial(checks.real, "a number")).encode()
    except PacelineError:
        raise
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidValue(f"what is sent must be of texts and finite numbers, got {body!r}: {error}") from None


def error_of(status: int, content: bytes) -> PacelineError:
    """The error that a refusal stands for."""
    try:
        detail = str(json.loads(content)["detail"])
    except (ValueError, RecursionError, KeyError, TypeError):
        detail = f"the service answered with status {status}"
    kinds: dict[int, type[PacelineError]] = {
        401: ServiceRefused,
        403: ServiceRefused,
        404: UnknownName,
        409: Conflict,
        503: ServiceBusy,
    }
    if status in (400, 413, 415, 422):
        return InvalidValue(detail)
    return kinds.get(status, ServiceUnreachable)(detail)

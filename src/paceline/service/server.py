"""A service that listens: where, until when, and what it says at its start and end."""

import asyncio
import gc
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import uvicorn

from paceline.errors import InvalidValue, PacelineError
from paceline.service.app import make_app
from paceline.service.host import Host
from paceline.service.tokens import check_given
from paceline.service.wire import Connection, look_at

LOG = logging.getLogger("paceline.service")
PATIENCE = 10  # seconds that requests have to finish once the service is asked to stop
TICKS = 10  # of uvicorn, in a second


class Server(uvicorn.Server):
    """A server that ends its streams when it is asked to stop, and then ends as a program that has finished."""

    def __init__(self, config: uvicorn.Config, host: Host, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.host, self.ready = host, ready
        self.warming: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then say so, and open the bandits that are there meanwhile."""
        await super().startup(sockets)
        if not self.should_exit:
            self.warming = asyncio.create_task(self.host.warm_up())
            self.ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Open no more bandits."""
        if self.warming is not None:
            self.warming.cancel()
        await super().shutdown(sockets)

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second."""
        if counter % TICKS == 0:
            look_at(self.server_state.connections, asyncio.get_running_loop().time())
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """SIGTERM, Ctrl-C or a closed terminal."""
        LOG.info("stopping: requests finish, and what is held is handed back")
        super().handle_exit(sig, frame)
        self.host.stop()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at all of them; each is the proper end of a service."""
        before = {sig: signal.signal(sig, self.handle_exit) for sig in ends()}
        try:
            yield
        finally:
            for sig, handler in before.items():
                signal.signal(sig, handler)


def ends() -> list[signal.Signals]:
    """The signals that end a service: SIGTERM, Ctrl-C, and that the terminal was closed, unless `nohup` says no."""
    found = [signal.SIGTERM, signal.SIGINT]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        found.append(signal.SIGHUP)
    return found


def is_local(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_local("127.0.0.1"), is_local("::1"), is_local("localhost"), is_local("0.0.0.0"), is_local("example.org")
    (True, True, True, False, False)
    """
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def without_password(url: str) -> str:
    """The address of a store as it may be shown.

    >>> without_password("postgresql://ads:secret@db/ads")
    'postgresql://ads:***@db/ads'
    """
    parts = urlsplit(url)
    if parts.password is None and not parts.query:
        return url
    user, _, place = parts.netloc.rpartition("@")
    kept = f"{user.partition(':')[0]}:***@{place}" if parts.password is not None else parts.netloc
    return urlunsplit(parts._replace(netloc=kept, query=""))


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 takes any that is free."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "no name of a host"
        raise PacelineError(f"--host and --port must be free to listen at, but {host}:{port}: {why}") from None


def serve(
    store: Any,
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    token: str | None = None,
    worker: str | None = None,
    journal_dir: Path | None = None,
    ready: Callable[[str], None] = print,
) -> None:
    """Serve the bandits of a store until somebody asks to stop; ``ready`` is told the address once it listens."""
    if token is not None:
        check_given(token)
    if token is None and not is_local(host) and not store.tokens():
        raise InvalidValue(
            f"--host must be 127.0.0.1, ::1 or localhost as long as the store has no token, got {host}; "
            "`paceline token add` makes one"
        )
    # What stays for good, compiled code above all, need not be looked through for garbage again and again.
    hosting = Host(store, worker=worker, journal_dir=journal_dir, after_join=gc.freeze)
    app = make_app(hosting, token=token, is_open=is_local(host))
    config = uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # nobody asks where a request came from
        timeout_graceful_shutdown=PATIENCE,
        lifespan="on",
    )
    listening = listen(host, port)
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listening.getsockname()[1]}/"
    with listening:
        Server(config, hosting, lambda: ready(address)).run(sockets=[listening])

"""The calls of Bandit over HTTP, for a program that leaves its budget to `paceline serve`.

It never fails open: an answer that does not come in time is taken for "sit this round out", so that nothing is spent
that the service does not know of. If the answer comes after all, its decisions are cancelled.
"""

import asyncio
import atexit
import logging
import os
import threading
import time
import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from types import EllipsisType
from typing import Any
from urllib.parse import quote, urlsplit

from paceline import __version__, checks
from paceline.errors import Conflict, InvalidValue, PacelineError, UnknownName
from paceline.live.decision import Decision
from paceline.live.estimate import ArmEstimate, Interval
from paceline.service import encoding

LOG = logging.getLogger("paceline")
UNREACHABLE = "service unreachable"
LATE = 10.0  # seconds after which an answer that did not come in time is given up
READ = 10.0  # seconds that calls may take that nobody's request waits for
MOST_QUEUED = 10_000
BATCH = 100  # news in a request
IDLE = 16  # connections that are kept
TRIES = 3  # failures in a row after which `ask` does not try for a while
LONGEST_REST = 1.0  # seconds
LONGEST_PAUSE = 5.0  # seconds between two tries to send news

Amount = float | Mapping[str, float]


class ServiceUnreachable(PacelineError):
    """The service did not answer, or cannot do it now."""


class ServiceRefused(PacelineError):
    """The service does not let this token do it."""


class Late(Exception):
    """The answer has not come in time; it may still come."""

    def __init__(self, connection: HTTPConnection) -> None:
        super().__init__("late")
        self.connection = connection


class WasClosed(Exception):
    """The service had closed a connection that was idle; on another one it may answer."""


def connect(
    url: str, name: str, *, token: str | None = None, deadline: float = 0.05, queue: int = MOST_QUEUED
) -> "RemoteBandit":
    """A bandit of a service, with the calls of `Bandit`.

    ``url``       where `paceline serve` listens, such as http://127.0.0.1:8080
    ``name``      of the bandit.
    ``token``     for a decider, or for an operator if arms and money are to be changed.
    ``deadline``  seconds after which `ask` sits the round out.
    ``queue``     how much news may wait to be sent; `tell` refuses more.

    Nothing is sent before the first call.
    """
    return RemoteBandit(url, name, token, deadline, queue)


class RemoteBandit:
    """A bandit behind HTTP; it may be used from many threads, and in a forked process, too.

    `ask` answers within the deadline. `tell`, `cancel` and `expire` return at once: news is sent in the background, in
    order, again and again until the service has taken it; what it refuses is logged. `flush` waits for that.
    """

    def __init__(self, url: str, name: str, token: str | None, deadline: float, queue: int) -> None:
        parts = urlsplit(url) if isinstance(url, str) else None
        if parts is None or parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
            raise InvalidValue(f"url must be such as http://127.0.0.1:8080, got {url!r}")
        if parts.username is not None:
            raise InvalidValue("url must have no user or password in it; a token is given as token=")
        if not isinstance(name, str) or not name:
            raise InvalidValue(f"name must be that of a bandit, got {name!r}")
        if token is not None and (not isinstance(token, str) or not token.isascii() or not token.isprintable()):
            raise InvalidValue("token must be a text of printable characters")
        self.name, self.deadline = name, checks.real("deadline", deadline, 0, above_low=True)
        self._parts, self._most = parts, checks.whole("queue", queue, 1)
        self._base = f"{parts.path.rstrip('/')}/v1/bandits/{quote(name, safe='')}"
        self._headers = {"User-Agent": f"paceline/{__version__}"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        self.refused = 0  # news that the service did not take
        self._start()
        atexit.register(self._at_end)

    def _start(self) -> None:
        """What belongs to one process."""
        self._pid = os.getpid()
        self._idle: list[HTTPConnection] = []
        self._lock = threading.Lock()
        self._waiting: deque[tuple[str, dict[str, Any]]] = deque()
        self._news = threading.Condition(self._lock)
        self._sender: threading.Thread | None = None
        self._is_closed = False
        self._failures, self._rest_until = 0, 0.0

    def _look(self) -> None:
        """A forked copy has connections of its own; news that waited is sent by the parent."""
        if self._pid != os.getpid():
            self._start()

    # HTTP.

    def _connection(self, timeout: float, is_new: bool = False) -> HTTPConnection:
        """One that is idle, or a new one."""
        with self._lock:
            if self._idle and not is_new:
                return self._idle.pop()
        kind = HTTPSConnection if self._parts.scheme == "https" else HTTPConnection
        assert self._parts.hostname is not None
        return kind(self._parts.hostname, self._parts.port, timeout=timeout)

    def _give_back(self, connection: HTTPConnection) -> None:
        """Keep a connection for the next call."""
        with self._lock:
            if len(self._idle) < IDLE and not self._is_closed:
                self._idle.append(connection)
                return
        connection.close()

    def _talk(self, method: str, path: str, body: Any, more: dict[str, str], seconds: float) -> Any:
        """Send a request and wait for its answer. A connection that was idle may have been closed meanwhile."""
        end = time.monotonic() + seconds
        try:
            return self._talk_on(self._connection(seconds), method, path, body, more, end)
        except WasClosed:
            return self._talk_on(self._connection(seconds, is_new=True), method, path, body, more, end)

    def _talk_on(
        self, connection: HTTPConnection, method: str, path: str, body: Any, more: dict[str, str], end: float
    ) -> Any:
        """The same on one connection."""
        was_idle = connection.sock is not None
        content = None if body is None else encoding.write(body)
        headers = {**self._headers, **more} | ({} if content is None else {"Content-Type": "application/json"})
        connection.timeout = max(end - time.monotonic(), 0.001)
        is_sent = False
        try:
            if connection.sock is not None:
                connection.sock.settimeout(connection.timeout)
            connection.request(method, self._base + path, content, headers)
            is_sent = True
            return self._receive(connection, end - time.monotonic())
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

    def _receive(self, connection: HTTPConnection, seconds: float) -> Any:
        """The answer; a refusal becomes the error that `Bandit` would raise."""
        assert connection.sock is not None
        connection.sock.settimeout(max(seconds, 0.001))
        response = connection.getresponse()
        content = response.read()
        if response.will_close:
            connection.close()
        else:
            self._give_back(connection)
        if response.status < 300:
            return encoding.read(content)
        raise error_of(response.status, content)

    def _call(self, method: str, path: str, body: Any = None, more: dict[str, str] | None = None) -> Any:
        """A call that may take a while; all of them can be repeated without harm."""
        self._look()
        try:
            return self._talk(method, path, body, more or {}, READ)
        except (OSError, HTTPException) as error:
            why = str(error) or type(error).__name__
            raise ServiceUnreachable(f"the service must answer at {self._place()}, but: {why}") from None
        except Late as late:
            late.connection.close()
            raise ServiceUnreachable(f"the service must answer at {self._place()} within {READ:g} seconds") from None

    def _place(self) -> str:
        return f"{self._parts.scheme}://{self._parts.netloc}"

    # Rounds and news.

    def ask(
        self,
        expires: float | None = None,
        *,
        arms: Sequence[str] | None = None,
        max_cost: Any = None,
        key: str | None = None,
    ) -> Decision:
        """`Bandit.ask`; if the service does not answer within the deadline, sit the round out."""
        self._look()
        if self._is_closed:
            raise PacelineError("this connection was closed; it must be made again with connect")
        given = {"expires": expires, "arms": None if arms is None else list(arms), "max_cost": max_cost}
        body = {name: value for name, value in given.items() if value is not None}
        more = {} if key is None else {"Idempotency-Key": key}
        if self._failures >= TRIES and time.monotonic() < self._rest_until:
            return self._sit_out("it did not answer lately")
        try:
            answer = self._talk("POST", "/ask", body, more, self.deadline)
        except Late as late:
            threading.Thread(target=self._take_back, args=(late.connection,), daemon=True).start()
            return self._sit_out(f"no answer within {self.deadline:g} seconds")
        except (OSError, HTTPException) as error:
            return self._sit_out(str(error) or type(error).__name__)
        except ServiceUnreachable as error:
            return self._sit_out(str(error))
        self._failures = 0
        found = answer["decisions"][0]
        return Decision(*map(found.get, Decision._fields))

    def _sit_out(self, why: str) -> Decision:
        """The decision that spends nothing. After some failures in a row there is a rest before the next try."""
        self._failures += 1
        if self._failures >= TRIES:
            rest = min(0.05 * 2 ** min(self._failures - TRIES, 10), LONGEST_REST)
            if time.monotonic() >= self._rest_until:
                self._rest_until = time.monotonic() + rest
        if self._failures == 1:
            LOG.warning("bandit %s sits out: %s at %s: %s", self.name, UNREACHABLE, self._place(), why)
        return Decision("", None, UNREACHABLE)

    def _take_back(self, connection: HTTPConnection) -> None:
        """Wait for an answer that came too late, and cancel what it says: nobody acts on it."""
        with suppress(OSError, HTTPException, PacelineError):
            for answer in self._receive(connection, LATE)["decisions"]:
                if answer["arm"] is not None:
                    self._queue("/cancel", {"id": answer["id"]})
            return
        connection.close()

    async def aask(self, expires: float | None = None, **given: Any) -> Decision:
        """`ask` for a coroutine: it waits in another thread."""
        return await asyncio.to_thread(partial(self.ask, expires, **given))

    def tell(
        self, id: int | str, reward: float | None = None, cost: Amount | None = None, *, overrun: bool = False
    ) -> None:
        """`Bandit.tell`, in the background."""
        item: dict[str, Any] = {"id": check_id(id)}
        if reward is None and cost is None:
            raise InvalidValue(f"tell must be given a reward, a cost or both, got neither for decision {id}")
        if reward is not None:
            item["reward"] = reward if isinstance(reward, bool) else checks.real(f"reward of decision {id}", reward)
        if cost is not None:
            item["cost"] = as_amount(f"cost of decision {id}", cost)
        if overrun:
            item["overrun"] = True
        self._queue("/tell", item)

    async def atell(self, id: int | str, *outcome: Any, **given: Any) -> None:
        """`tell` for a coroutine; it does not wait for the service."""
        self.tell(id, *outcome, **given)

    def cancel(self, id: int | str) -> None:
        """`Bandit.cancel`, in the background."""
        self._queue("/cancel", {"id": check_id(id)})

    def expire(self, id: int | str) -> None:
        """`Bandit.expire`, in the background."""
        self._queue("/expire", {"id": check_id(id)})

    def observe(self, arm: str, reward: float, cost: Amount) -> None:
        """`Bandit.observe`, in the background."""
        item = {"arm": arm, "reward": float(checks.real("reward", float(reward))), "cost": as_amount("cost", cost)}
        self._queue("/observe", item)

    def _queue(self, path: str, item: dict[str, Any]) -> None:
        """Have news sent."""
        self._look()
        with self._news:
            if self._is_closed:
                raise PacelineError("this connection was closed; it must be made again with connect")
            if len(self._waiting) >= self._most:
                raise ServiceUnreachable(f"news that waits to be sent must be at most {self._most}, got one more")
            self._waiting.append((path, item))
            if self._sender is None:
                self._sender = threading.Thread(target=self._keep_sending, name="paceline-news", daemon=True)
                self._sender.start()
            self._news.notify_all()

    def _keep_sending(self) -> None:
        """Send news in order, until the connection is closed and all is sent, or nobody answers at the end."""
        pause = 0.05
        while True:
            with self._news:
                while not self._waiting and not self._is_closed:
                    self._news.wait()
                if not self._waiting:
                    return
                path = self._waiting[0][0]
                batch = [item for kind, item in list_head(self._waiting, BATCH) if kind == path]
            try:
                self._deliver(path, batch)
                pause = 0.05
            except (ServiceUnreachable, ServiceRefused) as error:
                if pause == LONGEST_PAUSE:
                    LOG.warning("bandit %s: %d news wait to be sent: %s", self.name, len(self._waiting), error)
                with self._news:
                    if self._is_closed:
                        return
                    self._news.wait(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
                continue
            with self._news:
                for _ in batch:
                    self._waiting.popleft()
                self._news.notify_all()

    def _deliver(self, path: str, batch: list[dict[str, Any]]) -> None:
        """Send a batch; one that is refused as a whole is sent one by one, so that one bad item stops no other."""
        try:
            results = self._call("POST", path, {"items": batch})["items"]
        except (ServiceUnreachable, ServiceRefused):
            raise
        except PacelineError as error:
            if len(batch) > 1:
                for item in batch:
                    self._deliver(path, [item])
                return
            results = [{"result": "refused", "detail": str(error)}]
        for result in results:
            if result["result"] not in ("taken", "known"):
                self.refused += 1
                LOG.warning("bandit %s: news was not taken: %s", self.name, result.get("detail", result["result"]))

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until all news is sent; whether it is."""
        with self._news:
            return self._news.wait_for(lambda: not self._waiting, timeout)

    def close(self, timeout: float = 5.0) -> None:
        """Send what waits, for some seconds at most, and close the connections."""
        self._look()
        self.flush(timeout)
        with self._news:
            left, self._is_closed = len(self._waiting), True
            idle, self._idle = self._idle, []
            self._news.notify_all()
        for connection in idle:
            connection.close()
        if left:
            LOG.warning("bandit %s: %d news could not be sent", self.name, left)
        atexit.unregister(self._at_end)

    def _at_end(self) -> None:
        """News is not lost because the program has ended."""
        if self._pid == os.getpid() and self._waiting:
            self.close(2.0)

    def __enter__(self) -> "RemoteBandit":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<RemoteBandit {self.name} at {self._place()}>"

    # What operators do.

    def credit(self, amount: Amount) -> None:
        """`Bandit.credit` at once; it comes in once, also if the answer was lost and it is tried again."""
        self._call("POST", "/credit", {"amount": as_amount("credit", amount)}, {"Idempotency-Key": str(uuid.uuid4())})

    def set(self, **given: Any) -> None:
        """`Bandit.set`."""
        self._call("PATCH", "", {name: value for name, value in given.items() if not isinstance(value, EllipsisType)})

    def add(self, arm: str, max_cost: Amount | None = None) -> None:
        """`Bandit.add`."""
        self._call("POST", f"/arms/{quote(arm, safe='')}", {} if max_cost is None else {"max_cost": max_cost})

    def pause(self, arm: str) -> None:
        """`Bandit.pause`."""
        self._set_status(arm, "paused")

    def resume(self, arm: str) -> None:
        """`Bandit.resume`."""
        self._set_status(arm, "active")

    def retire(self, arm: str) -> None:
        """`Bandit.retire`."""
        self._set_status(arm, "retired")

    def _set_status(self, arm: str, status: str) -> None:
        self._call("PATCH", f"/arms/{quote(arm, safe='')}", {"status": status})

    # What can be seen, of the whole fleet.

    def status(self) -> dict[str, Any]:
        """The state of the fleet and of the process that answers, as GET /v1/bandits/{name} has it."""
        found: dict[str, Any] = self._call("GET", "")
        return found

    def _of_fleet(self, name: str) -> Any:
        return self.status()["fleet"][name]

    @property
    def rounds(self) -> int:
        """Rounds of the fleet so far."""
        return int(self._of_fleet("rounds"))

    @property
    def spent(self) -> Any:
        """Costs so far."""
        return self._of_fleet("spent")

    @property
    def reserved(self) -> Any:
        """The largest costs of the decisions whose cost is not known."""
        return self._of_fleet("reserved")

    @property
    def credited(self) -> Any:
        """The line: all that has come in."""
        return self._of_fleet("credited")

    @property
    def headroom(self) -> Any:
        """What may still be spent."""
        return self._of_fleet("headroom")

    @property
    def earned(self) -> float:
        """Rewards so far."""
        return float(self._of_fleet("earned"))

    @property
    def price(self) -> Any:
        """What one more unit of a resource per round would earn."""
        return self._of_fleet("price")

    @property
    def arms(self) -> dict[str, str]:
        """The arms and whether each is active, paused or retired."""
        return {name: arm["status"] for name, arm in self._of_fleet("arms").items()}

    def mix(self) -> dict[str | None, float]:
        """The best share of rounds for each arm; None stands for sitting out."""
        shares = {name: arm["best_mix"] for name, arm in self._of_fleet("arms").items() if arm["best_mix"] > 0.0}
        rest = 1.0 - sum(shares.values())
        return {**shares, None: rest} if rest > 1e-12 else shares

    def estimates(self) -> dict[str, ArmEstimate]:
        """What is known of each arm."""
        return {
            name: ArmEstimate(arm["status"], arm["pulls"], Interval(**arm["reward"]), intervals(arm["cost"]))
            for name, arm in self._of_fleet("arms").items()
        }


def intervals(cost: dict[str, Any]) -> Any:
    """An interval, or one by resource."""
    return Interval(**cost) if "mean" in cost else {name: Interval(**each) for name, each in cost.items()}


def list_head(waiting: deque[tuple[str, dict[str, Any]]], count: int) -> list[tuple[str, dict[str, Any]]]:
    """The first entries of one kind."""
    head: list[tuple[str, dict[str, Any]]] = []
    for entry in waiting:
        if len(head) == count or entry[0] != waiting[0][0]:
            break
        head.append(entry)
    return head


def check_id(id: Any) -> int | str:
    """The id of a decision with an arm."""
    if isinstance(id, bool) or not isinstance(id, int | str) or id == "":
        raise UnknownName(f"id must be that of a decision with an arm, got {id!r}")
    return id


def as_amount(thing: str, amount: Any) -> Any:
    """A number, or numbers by resource, that JSON can hold."""
    if isinstance(amount, Mapping):
        return {str(name): checks.real(f"{thing} of {name}", value) for name, value in amount.items()}
    return checks.real(thing, amount)


def error_of(status: int, content: bytes) -> PacelineError:
    """The error that a refusal stands for."""
    try:
        detail = str(encoding.read(content)["detail"])
    except (PacelineError, KeyError, TypeError):
        detail = f"the service answered with status {status}"
    kinds: dict[int, type[PacelineError]] = {401: ServiceRefused, 403: ServiceRefused, 404: UnknownName, 409: Conflict}
    if status in (400, 413, 415, 422):
        return InvalidValue(detail)
    return kinds.get(status, ServiceUnreachable)(detail)

"""The calls of Bandit over HTTP, for a program that leaves its budget to `paceline serve`.

It never fails open: an answer that does not come in time is taken for "sit this round out", so that nothing is spent
that the service does not know of. If the answer comes after all, its decision is cancelled.
"""

import logging
import os
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from functools import partial
from http.client import HTTPConnection, HTTPException
from types import EllipsisType
from typing import Any
from urllib.parse import quote, urlsplit

import numpy as np

from paceline import __version__, checks
from paceline.endings import at_end, forget
from paceline.errors import InvalidValue, PacelineError, UnknownName
from paceline.fleet.settings import check_credit
from paceline.live.bandit import Amount, MaxCost
from paceline.live.coroutines import ask_elsewhere
from paceline.live.decision import Decision
from paceline.live.estimate import ArmEstimate, Interval
from paceline.live.record import Record
from paceline.live.status import Status, read_fields
from paceline.service.outbox import CannotNow, Outbox
from paceline.service.transport import Late, ServiceBusy, ServiceRefused, ServiceUnreachable, Transport

LOG = logging.getLogger("paceline")
UNREACHABLE = "service unreachable"
LATE = 10.0  # seconds after which an answer that did not come in time is given up
READ = 10.0  # seconds that calls may take that nobody's request waits for
FLUSH = 1.0  # seconds that those who look wait for what was told before
AGAIN = 3.0  # seconds for which a credit is tried again
MOST_QUEUED = 10_000
TRIES = 3  # failures in a row after which `ask` does not try for a while
LONGEST_REST = 1.0  # seconds


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
        self._path = f"/v1/bandits/{quote(name, safe='')}"
        self._headers = {"User-Agent": f"paceline/{__version__}"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        self.refused = 0  # news that the service did not take
        self._is_closed = False
        self._start()

    def _start(self) -> None:
        """What belongs to one process."""
        self._pid = os.getpid()
        self._transport = Transport(self._parts, self._headers)
        self._outbox = Outbox(self._deliver, self._most, self.name)
        self._failures, self._rest_until = 0, 0.0
        at_end(self._at_end)

    def _look(self) -> None:
        """A forked copy has connections of its own; news that waited is sent by the parent."""
        if self._pid != os.getpid():
            self._start()

    def _call(
        self, method: str, path: str, body: Any = None, more: dict[str, str] | None = None, seconds: float = READ
    ) -> Any:
        """A call that may take a while; all of them can be repeated without harm."""
        self._look()
        try:
            return self._transport.talk(method, self._path + path, body, more or {}, seconds)
        except Late as late:
            late.connection.close()
            place = self._transport.place
            raise ServiceUnreachable(f"the service must answer at {place} within {READ:g} seconds") from None

    def _check_open(self) -> None:
        self._look()
        if self._is_closed:
            raise PacelineError("this connection was closed; it must be made again with connect")

    # Rounds and news.

    def ask(
        self,
        expires: float | None = None,
        *,
        arms: Sequence[str] | None = None,
        max_cost: MaxCost | None = None,
        key: str | None = None,
    ) -> Decision:
        """`Bandit.ask`; if the service does not answer within the deadline, sit the round out."""
        self._check_open()
        if arms is not None and (isinstance(arms, str | bytes) or not isinstance(arms, Sequence)):
            raise InvalidValue(f"arms must be a list of names, got {arms!r}")
        given = {"expires": expires, "arms": None if arms is None else list(arms), "max_cost": max_cost}
        body = {name: value for name, value in given.items() if value is not None}
        more = {} if key is None else {"Idempotency-Key": check_key(key)}
        if self._failures >= TRIES and time.monotonic() < self._rest_until:
            return self._sit_out("it did not answer lately")
        try:
            decision = decision_in(self._transport.talk("POST", f"{self._path}/ask", body, more, self.deadline))
        except Late as late:
            threading.Thread(target=self._hear_late, args=(late.connection, key), daemon=True).start()
            return self._sit_out(f"no answer within {self.deadline:g} seconds")
        except ServiceUnreachable as error:
            return self._sit_out(str(error))
        self._failures = 0
        return decision

    def _sit_out(self, why: str) -> Decision:
        """The decision that spends nothing. After some failures in a row there is a rest before the next try."""
        self._failures += 1
        if self._failures >= TRIES:
            rest = min(0.05 * 2 ** min(self._failures - TRIES, 10), LONGEST_REST)
            if time.monotonic() >= self._rest_until:
                self._rest_until = time.monotonic() + rest
        if self._failures == 1:
            LOG.warning("bandit %s sits out: %s at %s: %s", self.name, UNREACHABLE, self._transport.place, why)
        return Decision("", None, UNREACHABLE)

    def _hear_late(self, connection: HTTPConnection, key: str | None) -> None:
        """Wait for an answer that came too late, and cancel what it says: nobody acts on it.

        With a key somebody may: the same request is answered by the same decision, here or elsewhere. It must stay
        reserved then, until it is told or expires.
        """
        try:
            decision = decision_in(self._transport.receive(connection, LATE))
        except (OSError, HTTPException, PacelineError):
            connection.close()
            return
        if decision.arm is not None and key is None:
            self._outbox.put("/cancel", {"id": decision.id})

    async def aask(
        self,
        expires: float | None = None,
        *,
        arms: Sequence[str] | None = None,
        max_cost: MaxCost | None = None,
        key: str | None = None,
    ) -> Decision:
        """`ask` for a coroutine: it waits in another thread.

        If the coroutine is cancelled meanwhile, so is the decision, unless it has a ``key`` by which it can be had.
        """
        ask = partial(self.ask, expires, arms=arms, max_cost=max_cost, key=key)
        return await ask_elsewhere(ask, self.cancel if key is None else None)

    def tell(
        self, id: int | str, reward: float | None = None, cost: Amount | None = None, *, overrun: bool = False
    ) -> None:
        """`Bandit.tell`, in the background."""
        item: dict[str, Any] = {"id": check_id(id)}
        if reward is None and cost is None:
            raise InvalidValue(f"tell must be given a reward, a cost or both, got neither for decision {id}")
        if reward is not None:
            item["reward"] = as_reward(f"reward of decision {id}", reward)
        if cost is not None:
            item["cost"] = as_amount(f"cost of decision {id}", cost)
        if overrun:
            item["overrun"] = True
        self._queue("/tell", item)

    async def atell(
        self, id: int | str, reward: float | None = None, cost: Amount | None = None, *, overrun: bool = False
    ) -> None:
        """`tell` for a coroutine; it does not wait for the service."""
        self.tell(id, reward, cost, overrun=overrun)

    def cancel(self, id: int | str) -> None:
        """`Bandit.cancel`, in the background."""
        self._queue("/cancel", {"id": check_id(id)})

    def expire(self, id: int | str) -> None:
        """`Bandit.expire`, in the background."""
        self._queue("/expire", {"id": check_id(id)})

    def observe(self, arm: str, reward: float, cost: Amount) -> None:
        """`Bandit.observe`, in the background."""
        item = {"arm": arm, "reward": as_reward("reward", reward), "cost": as_amount("cost", cost)}
        self._queue("/observe", item)

    def _queue(self, path: str, item: dict[str, Any]) -> None:
        """Have news sent."""
        self._check_open()
        if not self._outbox.put(path, item):
            raise ServiceUnreachable(f"news that waits to be sent must be at most {self._most}, got one more")

    def _deliver(self, path: str, batch: list[dict[str, Any]]) -> None:
        """Send a batch; one that is refused as a whole is sent one by one, so that one bad item stops no other."""
        try:
            results = self._call("POST", path, {"items": batch})["items"]
            refused = [result for result in results if result["result"] not in ("taken", "known")]
        except (ServiceUnreachable, ServiceRefused) as error:
            raise CannotNow(str(error), others_may=isinstance(error, ServiceBusy)) from None
        except (LookupError, TypeError):
            raise CannotNow(f"{self._transport.place} answered as no service of paceline does") from None
        except PacelineError as error:
            if len(batch) > 1:
                for item in batch:
                    self._deliver(path, [item])
                return
            refused = [{"result": "refused", "detail": str(error)}]
        for result in refused:
            self.refused += 1
            LOG.warning("bandit %s: news was not taken: %s", self.name, result.get("detail", result["result"]))

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until all news is sent; whether it is."""
        self._look()
        return self._outbox.flush(timeout)

    def close(self, timeout: float = 5.0) -> None:
        """Send what waits, for some seconds at most, and close the connections."""
        self._look()
        self._is_closed = True
        self._outbox.close(timeout)
        self._transport.close()
        forget(self._at_end)

    def _at_end(self) -> None:
        """News is not lost because the program has ended."""
        if self._pid == os.getpid() and self._outbox.waiting:
            self.close(2.0)

    def __enter__(self) -> "RemoteBandit":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<RemoteBandit {self.name} at {self._transport.place}>"

    # What operators do.

    def credit(self, amount: Amount, over: int = 0, rate: bool = True, *, key: str | None = None) -> None:
        """`Bandit.credit`, at once and as income; with the same ``key`` it comes in once.

        A service that cannot say whether it has come in is asked again, for some seconds, with the same key; all of
        that takes ten seconds at most. If it raises `ServiceUnreachable` in the end, it may have come in all the same:
        give a key, and try again with it.
        """
        check_credit(over, rate)
        known_by = {"Idempotency-Key": str(uuid.uuid4()) if key is None else check_key(key)}
        body = {"amount": as_amount("credit", amount)}
        begun, pause = time.monotonic(), 0.1
        while True:
            try:
                self._call("POST", "/credit", body, known_by, begun + READ - time.monotonic())
            except ServiceUnreachable:
                if time.monotonic() + pause > begun + AGAIN:
                    raise
                time.sleep(pause)
                pause *= 2.0
            else:
                return

    def set(
        self,
        *,
        budget: Amount | EllipsisType = ...,
        max_cost: MaxCost | EllipsisType = ...,
        policy: str | EllipsisType = ...,
        expires: float | EllipsisType | None = ...,
        silence: float | EllipsisType | None = ...,
        hourly: Amount | EllipsisType = ...,
    ) -> None:
        """`Bandit.set`."""
        given = {"budget": budget, "max_cost": max_cost, "policy": policy, "expires": expires, "silence": silence}
        given["hourly"] = hourly
        self._call("PATCH", "", {name: value for name, value in given.items() if value is not ...})

    def add(self, arm: str, max_cost: Amount | None = None) -> None:
        """`Bandit.add`."""
        self._call("POST", path_of(arm, InvalidValue), {} if max_cost is None else {"max_cost": max_cost})

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
        self._call("PATCH", path_of(arm, UnknownName), {"status": status})

    # What can be seen, of the whole fleet.

    def status(self) -> Status:
        """`Bandit.status`: amounts, rounds and rewards of the whole fleet, the rest of the process that answers."""
        found = self._look_there()
        fleet = {name: found["fleet"][name] for name in ("rounds", "credited", "spent", "reserved", "earned")}
        return Status.from_dict(found["here"] | fleet | {"headroom": headroom_of(found["fleet"])})

    def fleet_status(self) -> dict[str, Any]:
        """The whole fleet at one moment, as of `Member`."""
        fleet: dict[str, Any] = self._look_there()["fleet"]
        return fleet

    def _look_there(self, path: str = "") -> dict[str, Any]:
        """The state as the service has it, or what else is to be seen there, with what was told here before."""
        self._look()
        self._outbox.flush(FLUSH)
        found: dict[str, Any] = self._call("GET", path)
        return found

    @property
    def is_alone(self) -> bool:
        """As of `Member`: whether the process that answers cannot reach the store.

        Then what can be seen of the fleet is how it stood when it last could.
        """
        return not self._look_there()["store"]["reachable"]

    def look_up(self, id: int | str) -> Record:
        """`Bandit.look_up`, of a decision of the process that answers."""
        found = self._look_there(f"/decisions/{quote(str(check_id(id)), safe='')}")["record"]
        if found is None:
            raise UnknownName(f"id must be that of a decision which is not forgotten, got {id!r}")
        return read_fields(Record, found)

    @property
    def pending(self) -> dict[str, str]:
        """`Bandit.pending`, of the process that answers."""
        found: dict[str, str] = self._look_there("/decisions")["pending"]
        return found

    @property
    def expired(self) -> list[str]:
        """`Bandit.expired`, of the process that answers."""
        found: list[str] = self._look_there("/decisions")["expired"]
        return found

    def _of_fleet(self, name: str) -> Any:
        return self.fleet_status()[name]

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
        """What may still be spent: by the workers of the fleet, and what is in the pool for them."""
        return headroom_of(self.fleet_status())

    @property
    def held(self) -> Any:
        """What `Bandit.credit` holds back for the rounds to come: nothing, in a fleet."""
        return self.status().held

    @property
    def budget(self) -> Any:
        """The income of a round now."""
        return self._of_fleet("budget")

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
            name: ArmEstimate(arm["status"], arm["pulls"], read_fields(Interval, arm["reward"]), intervals(arm["cost"]))
            for name, arm in self._of_fleet("arms").items()
        }


def decision_in(answer: Any) -> Decision:
    """The decision that an answer has."""
    try:
        found = answer["decisions"][0]
        return Decision(*map(found.get, Decision._fields))
    except (LookupError, TypeError, AttributeError):
        raise ServiceUnreachable("the answer must have a decision, got none") from None


def headroom_of(fleet: Mapping[str, Any]) -> Any:
    """What a fleet may still spend, credited - spent - reserved: what its workers hold, and what is in the pool.

    >>> headroom_of({"credited": 4.0, "spent": 1.0, "reserved": 0.5})
    2.5
    >>> headroom_of({"credited": {"calls": 9.0}, "spent": {"calls": 4.0}, "reserved": {"calls": 1.0}})
    {'calls': 4.0}
    """
    credited, spent, reserved = fleet["credited"], fleet["spent"], fleet["reserved"]
    if isinstance(credited, dict):
        return {name: credited[name] - spent[name] - reserved[name] for name in credited}
    return credited - spent - reserved


def intervals(cost: dict[str, Any]) -> Any:
    """An interval, or one by resource."""
    if "mean" in cost:
        return read_fields(Interval, cost)
    return {name: read_fields(Interval, each) for name, each in cost.items()}


def check_id(id: Any) -> int | str:
    """The id of a decision with an arm."""
    if isinstance(id, bool) or not isinstance(id, int | str) or id == "":
        raise UnknownName(f"id must be that of a decision with an arm, got {id!r}")
    return id


def check_key(key: Any) -> str:
    """A key that can stand in the head of a request."""
    if not isinstance(key, str) or not key.isprintable() or max(key, default="") > "\xff":
        raise InvalidValue(f"key must be a text of printable letters of Latin-1, got {key!r}")
    return key


def path_of(arm: Any, refusal: type[PacelineError]) -> str:
    """The address of an arm."""
    if not isinstance(arm, str):
        raise refusal(f"arm must be the name of an arm, got {arm!r}")
    return f"/arms/{quote(arm, safe='')}"


def as_reward(thing: str, reward: Any) -> float:
    """A reward that JSON can hold; True and False are rewards, also those of NumPy."""
    return float(reward) if isinstance(reward, bool | np.bool_) else checks.real(thing, reward)


def as_amount(thing: str, amount: Any) -> Any:
    """A number, or numbers by resource, that JSON can hold."""
    if isinstance(amount, Mapping):
        return {str(name): checks.real(f"{thing} of {name}", value) for name, value in amount.items()}
    return checks.real(thing, amount)

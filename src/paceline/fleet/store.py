"""What a store has to be able to do, and what it must promise.

A store is where the workers of a fleet meet. It keeps an account and a row per worker for every fleet (protocol.py),
and some things besides: the settings with their versions, an inbox per worker, answers to requests that may come twice,
what operators did, and the digests of tokens. Every call is one short transaction.

What a store must promise:

1. **Transactions.** A call happens as a whole or not at all, and calls happen one after the other.
2. **Durable answers.** What was acknowledged is not forgotten. A store that forgets (a failover to a copy that lags
   behind) cannot overdraw money that workers mint themselves, but it may grant the same money twice.
3. **A clock**, for income by the hour alone. It may be wrong or jump: it is never followed backwards, and a jump fills
   the pool up to its cap at most.

It need not be highly available: an outage costs learning, and money from the pool comes later.

A call that is refused (an unknown fleet, a value that breaks a rule) changes nothing. A store that cannot be reached
raises `StoreFailed`; whether the call has happened is not known then, and it may be repeated.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple

from paceline.errors import InvalidValue
from paceline.fleet.protocol import Account, Answer, Hello, Sync, Units
from paceline.live.config import NAME


class Versioned(NamedTuple):
    """Settings, and their version."""

    version: int
    document: dict[str, Any]


class WorkerRow(NamedTuple):
    """What the store knows of a worker. Amounts are in units, an entry per resource."""

    name: str
    life: str
    seen: float  # seconds, by the store's clock
    rounds: int
    spent: Units
    reserved: Units
    headroom: Units  # that it held when it was last heard of
    granted: Units
    returned: Units
    version: int  # of the settings in force there
    closed: bool  # an operator has said that it is dead
    earned: float = 0.0


class Picture(NamedTuple):
    """A fleet at one moment."""

    account: Account
    workers: list[WorkerRow]  # that have not closed, in the order in which they came
    settings: Versioned  # that are in force


class Act(NamedTuple):
    """Something that was done to a fleet on purpose."""

    number: int
    time: float
    by: str
    what: dict[str, Any]


class Token(NamedTuple):
    """A bearer token, of which the store has the digest alone."""

    label: str
    role: str
    made: float
    digest: bytes  # for a comparison in constant time


class Store(ABC):
    """Where the workers of fleets meet. See the text of this module for what it must promise."""

    @abstractmethod
    def make(self, fleet: str, settings: Mapping[str, Any], by: str) -> bool:
        """Make a fleet. False if it is there with the same settings; with others `FleetExists`."""

    @abstractmethod
    def fleets(self) -> list[str]:
        """Their names, in order."""

    @abstractmethod
    def picture(self, fleet: str) -> Picture:
        """All of a fleet at one moment: money that moves from one place to another is in one of the two."""

    def settings(self, fleet: str) -> Versioned:
        """The settings that are in force."""
        return self.picture(fleet).settings

    def account(self, fleet: str) -> Account:
        """The account of a fleet."""
        return self.picture(fleet).account

    def workers(self, fleet: str) -> list[WorkerRow]:
        """The workers that have not closed, in the order in which they came."""
        return self.picture(fleet).workers

    @abstractmethod
    def origin(self, fleet: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """The settings that a fleet was made with, and all changes since: version 1 is before the first of them."""

    @abstractmethod
    def change(self, fleet: str, change: Mapping[str, Any], by: str) -> int:
        """Change the settings: {"set": {...}}, {"add": {"arm": ..., "max_cost": ...}}, {"pause": arm}, and so on.

        It gives the new version, which workers get with their next exchange.
        """

    @abstractmethod
    def credit(self, fleet: str, amounts: Mapping[str, int], by: str, key: str | None = None) -> bool:
        """Units of resources, by name, into the pool; with the same key once, and refused with another amount.

        Whether they have come in now, and not before.
        """

    @abstractmethod
    def hello(self, fleet: str, hello: Hello) -> Answer:
        """A worker begins a life (`protocol.greet`)."""

    @abstractmethod
    def sync(self, fleet: str, message: Sync) -> Answer:
        """A worker says all there is to say, and hears what it should know (`protocol.receive`)."""

    @abstractmethod
    def send(self, fleet: str, news: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """News of decisions of other workers, each with its owner, who gets it with the next exchange: all or none.

        If that worker has closed, or an operator has said that it is dead, the next worker that comes by gets it, to
        learn from. A worker that has closed said what it left open: news of anything else says nothing new, and nobody
        gets it. What was reserved for a decision that it left open, and was not spent, goes to the pool. Of one that is
        said to be dead nobody knows. A worker that has never said hello gets it when it does, if that is within a day
        and the fleet has not had 100,000 other news since.
        """

    @abstractmethod
    def answer(self, fleet: str, key: str, decision: Mapping[str, Any]) -> dict[str, Any]:
        """Keep what a request was answered, unless it was answered before; what is kept. For a day at least."""

    @abstractmethod
    def kept_answer(self, fleet: str, key: str) -> dict[str, Any] | None:
        """What a request was answered, if it was."""

    @abstractmethod
    def close_worker(self, fleet: str, worker: str, life: str, by: str) -> None:
        """An operator asserts that a worker is dead: its news goes to others. Its money stays where it was.

        If it lives after all, it goes on by its own line, and its next exchange opens its row again.
        """

    @abstractmethod
    def acts(self, fleet: str, after: int = 0, count: int = 100) -> list[Act]:
        """What was done to a fleet on purpose, the oldest first."""

    @abstractmethod
    def note(self, fleet: str, by: str, what: Mapping[str, Any]) -> None:
        """Write down something that was done."""

    @abstractmethod
    def add_token(self, digest: bytes, label: str, role: str) -> None:
        """A new token; the label must not be taken."""

    @abstractmethod
    def tokens(self) -> list[Token]:
        """All tokens, by label."""

    @abstractmethod
    def revoke_token(self, label: str) -> bool:
        """Forget a token; whether there was one."""

    @abstractmethod
    def token(self, digest: bytes) -> Token | None:
        """The token with this digest."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the connection. The store may be used again: it connects anew."""

    def __enter__(self) -> "Store":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def check_name(thing: str, given: object) -> str:
    """A name that can stand in an id, a path and a log."""
    if not isinstance(given, str) or not NAME.fullmatch(given):
        rule = "a name of up to 100 letters, digits, dots, hyphens and underscores"
        raise InvalidValue(f"{thing} must be {rule}, got {given!r}")
    return given


def open_store(url: str) -> Store:
    """The store at an address: sqlite:///file (sqlite:////absolute/file) or postgresql://user@host/database.

    A store that is not there yet is made: the file, and the tables.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, open_store(f"sqlite:///{folder}/ads.db") as store:
    ...     store.make("ads", {"arms": ["banner", "video"], "budget": 0.5}, by="me")
    ...     store.fleets()
    True
    ['ads']
    """
    kind, _, place = url.partition("://") if isinstance(url, str) else ("", "", "")
    if kind == "sqlite" and place.startswith("/") and len(place) > 1:
        from paceline.fleet.sqlite import SQLiteStore

        return SQLiteStore(place[1:])
    if kind in ("postgresql", "postgres") and place:
        from paceline.fleet.postgres import PostgresStore

        return PostgresStore(url)
    if kind == "sqlite":
        rule = "have three slashes before a file, or four if its path begins with one: sqlite:///fleet.db"
        raise InvalidValue(f"the address of an SQLite store must {rule}, got {url!r}")
    # No password in a message.
    raise InvalidValue(f"a store must be at sqlite:///FILE or postgresql://..., got an address of kind {kind!r}")

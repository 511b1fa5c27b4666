"""Real worker processes whose books outlive them: killed at random while PostgreSQL is restarted, and looked at.

Each worker notes after every call what its line and its spending are, in memory that a kill does not take away. Every
now and then all workers are stopped where they are, and the sum over all that ever lived, dead or not, is compared with
what has come in: to the unit.
"""

import logging
import mmap
import os
import random
import signal
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeVar

import paceline as pl
from benchmarks.postgres import Cluster
from paceline.errors import PacelineError, StoreFailed
from paceline.fleet.store import open_store

T = TypeVar("T")

UNIT = 2**32
SETTINGS = {"arms": ["a", "b", "c"], "budget": 0.4, "start": 500.0, "max_cost": {"a": 0.25, "b": 1.0, "c": 0.5}}
NOTE = struct.Struct("<5q")  # line, used, granted, returned, rounds
SEQUENCE = struct.Struct("<q")
MOST_WAITING = 5  # decisions of a worker without an outcome
FOR_OTHERS = 0.1  # share of the outcomes that come in elsewhere
POST = ".post"  # where those wait for another worker
PATIENCE = 120.0  # seconds that a worker has to begin, with a server that is restarted meanwhile
SIZE = SEQUENCE.size + 2 * NOTE.size


class Truth(NamedTuple):
    """What a worker has noted last."""

    line: int
    used: int
    granted: int
    returned: int
    rounds: int


class Notes:
    """Two places that are written in turn, and the number of the last that is whole."""

    def __init__(self, path: Path) -> None:
        fresh = path.with_name(f".{path.name}")
        fresh.write_bytes(bytes(SIZE))
        fresh.rename(path)  # whole, or not there
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), SIZE)
        self.number = 0

    def write(self, member: pl.Member) -> None:
        """Note how a member stands; nobody else may use it meanwhile."""
        with member._lock:
            ledger, standing = member._ledger, member._standing
            books = ledger.arm_set.books
            spent = int(books.spent[0]) + ledger.rolled[0]
            note = (
                ledger.line(0) + ledger.rolled[0],
                spent + int(books.reserved[0]),
                standing.granted[0],
                standing.returned[0],
                ledger.rounds,
            )
            self.number += 1
            NOTE.pack_into(self.memory, SEQUENCE.size + self.number % 2 * NOTE.size, *note)
            SEQUENCE.pack_into(self.memory, 0, self.number)


def read_notes(path: Path) -> Truth:
    """The last note that is whole."""
    data = path.read_bytes()
    (number,) = SEQUENCE.unpack_from(data)
    return Truth(*NOTE.unpack_from(data, SEQUENCE.size + number % 2 * NOTE.size))


def work(address: str, folder: Path, seed: int, most_rounds: int | None = None) -> None:
    """The life of a worker: rounds, late news, news of others, until it is killed."""
    draws = random.Random(seed)
    while True:
        try:
            member = pl.join(address, "kills", worker=f"w{seed}", sync_every=0.02)
            break
        except PacelineError:
            time.sleep(0.05)
    notes, post = Notes(folder / member._standing.life), folder / POST
    post.mkdir(exist_ok=True)
    waiting: list[Any] = []
    rounds = 0
    while most_rounds is None or rounds < most_rounds:
        rounds += 1
        decision = member.ask()
        if decision.arm is not None:
            waiting.append(decision)
        while waiting and (len(waiting) > MOST_WAITING or draws.random() < 0.5):
            told = waiting.pop(draws.randrange(len(waiting)))
            if draws.random() < FOR_OTHERS:
                (post / f"{told.id} {told.arm}").touch()
            else:
                tell(member, told.id, told.arm, draws)
        if draws.random() < FOR_OTHERS:
            for letter in post.iterdir():
                id, arm = letter.name.split()
                if not id.startswith(f"w{seed}."):
                    with suppress(FileNotFoundError):  # another was faster
                        letter.unlink()
                        tell(member, id, arm, draws)
                    break
        notes.write(member)
        if draws.random() < 0.05:
            time.sleep(0.001)
    member.close()
    notes.write(member)


def tell(member: pl.Member, id: str, arm: str, draws: random.Random) -> None:
    """What has become of a decision, whoever made it."""
    most = SETTINGS["max_cost"][arm]  # type: ignore[index]
    member.tell(id, reward=most * draws.random(), cost=draws.choice((most, most * draws.random())))


class Nursery:
    """Forks workers that have nothing to load, and kills them; in the end, all of them."""

    def __init__(self, address: str, folder: Path, workers: int) -> None:
        self.address, self.folder = address, folder
        self.living: list[tuple[int, int]] = []  # their processes, and their numbers
        self.born = 0
        for _ in range(workers):
            self.bear()

    def __enter__(self) -> "Nursery":
        return self

    def __exit__(self, *_error: object) -> None:
        while self.living:
            self.kill(0)

    def bear(self) -> None:
        """One more worker."""
        self.born += 1
        seed = self.born
        pid = os.fork()
        if pid == 0:
            try:
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                logging.disable()  # that the server goes away is no news here
                work(self.address, self.folder, seed)
            finally:
                os._exit(1)
        self.living.append((pid, seed))

    def kill(self, place: int) -> None:
        """One worker less, without a word."""
        pid, _ = self.living.pop(place)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)

    def wait_for(self, place: int) -> None:
        """Wait until a worker has made a round, however slow the machine is."""
        _, seed = self.living[place]
        give_up = time.monotonic() + PATIENCE
        while not any(read_notes(path).rounds for path in self.folder.glob(f"w{seed}.*")):
            assert time.monotonic() < give_up, f"worker {seed} has made no round in {PATIENCE:g} seconds"
            time.sleep(0.002)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """All stand still."""
        for pid, _ in self.living:
            os.kill(pid, signal.SIGSTOP)
        for pid, _ in self.living:
            while state_of(pid) not in "TtZ":
                time.sleep(0.001)
        try:
            yield
        finally:
            for pid, _ in self.living:
                os.kill(pid, signal.SIGCONT)


def state_of(pid: int) -> str:
    """What the system says of a process."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]


class Look(NamedTuple):
    """What was seen with all stopped, in units."""

    used: int
    line: int
    lives: int
    rounds: int


def look(address: str, folder: Path) -> Look:
    """Compare what was spent and reserved with what has come in; and the store's figures with each other."""
    truths = {path.name: read_notes(path) for path in folder.iterdir() if not path.name.startswith(".")}
    with open_store(address) as store:
        account, rows, _ = store.picture("kills")
    pool = account.income[0] - account.past.granted[0] + account.past.returned[0]
    for row in rows:
        pool += row.returned[0] - row.granted[0]
        truth = truths.get(row.life)
        if truth is not None:
            assert truth.granted <= row.granted[0], f"{row.life} has {truth.granted}, the store gave {row.granted[0]}"
    assert account.pool == (pool,), f"the pool has {account.pool}, its figures come to {pool}"
    assert pool >= 0
    used = sum(truth.used for truth in truths.values())
    minted = sum(truth.line - truth.granted + truth.returned for truth in truths.values())
    line = minted + account.income[0]
    assert used <= line - pool, f"{used} units are spent and reserved, {line - pool} may be"
    for life, truth in truths.items():
        assert truth.used <= truth.line, f"{life} is over its own line"
    return Look(used, line, len(truths), sum(truth.rounds for truth in truths.values()))


def run(kills: int, restarts: int, workers: int = 8, seed: int = 1, say: Any = None) -> list[Look]:
    """The whole story: workers are killed and replaced, the server is restarted, and all is looked at.

    Every other kill is of a worker that has made a round, however long that takes; those between come at any moment,
    also while a worker begins. So at least half of the killed have lived, on a slow machine, too.
    """
    draws = random.Random(seed)
    cluster = Cluster()
    looks = []
    try:
        with TemporaryDirectory() as name:
            folder = Path(name)
            with open_store(cluster.address) as store:
                store.make("kills", SETTINGS, by="benchmark")
            with Nursery(cluster.address, folder, workers) as nursery:
                time.sleep(1.0)
                every = max(kills // max(restarts, 1), 1)
                for number in range(1, kills + 1):
                    time.sleep(draws.uniform(0.0, 0.08))
                    victim = draws.randrange(len(nursery.living))
                    if number % 2:
                        nursery.wait_for(victim)
                    nursery.kill(victim)
                    nursery.bear()
                    if number % every == 0:
                        cluster.restart()
                        units = UNIT * draws.randrange(1, 20)
                        patiently(partial(credit, cluster.address, units, f"restart-{number}"))
                    if number % max(every // 2, 5) == 0 or number == kills:
                        time.sleep(0.1)
                        with nursery.stopped():
                            looks.append(patiently(partial(look, cluster.address, folder)))
                        if say is not None:
                            say(number, looks[-1])
    finally:
        cluster.remove()
    return looks


def credit(address: str, units: int, key: str) -> None:
    """Money that comes in once, however often it is tried."""
    with open_store(address) as store:
        store.credit("kills", {"cost": units}, by="benchmark", key=key)


def patiently(work: Callable[[], T]) -> T:
    """Try until the store answers: a transaction of a worker that stands still, or waits its turn, may keep a row."""
    give_up = time.monotonic() + 60.0
    while True:
        try:
            return work()
        except StoreFailed:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.5)

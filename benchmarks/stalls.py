"""How long a call holds the lock: a million calls with 100,000 pending decisions and a journal of ten million lines.

    python -m benchmarks.stalls --calls 1000000 --pending 100000 --lines 10000000 --collector off

Snapshots, rotation and a status() every second go on beside the calls. The lock is timed from the moment it is taken to
the moment it is let go, by three clocks. "own" is the processor time of the thread: what the call does itself. "wall"
also counts what it waits for meanwhile: for a core, for Python's interpreter lock, for the disk. "wall but for cores"
leaves out the time for which Linux says that the thread could have run, but others had the cores: where other programs
run, that is most of it, and a bandit can do nothing about it. (Of a thread that has the interpreter and waits for a
core, the waiting still counts for those who wait for it. On other systems it is the wall.)

Python's garbage collector may run in any call, whichever made the object that was one too many. It looks at everything
in the program: the compiled code of Numba alone, without a single decision, takes tens of milliseconds. So holds above
the limit are shown by what they were spent on, the collector apart. ``--collector`` does what docs/live.md advises when
the bandit is open: "frozen" is `gc.freeze()`, "off" is `gc.disable()`, for a bandit leaves nothing to be collected.
"""

import argparse
import gc
import logging
import os
import random
import sys
import time
from array import array
from collections import defaultdict, deque
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, RLock, Thread, get_ident, local
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

import paceline as pl
from benchmarks.turns import line
from paceline.live.booking import Booking
from paceline.live.journal import Journal
from paceline.live.keeper import Keeper
from paceline.live.ledger import Ledger

ARMS = list("abcdefgh")
LIMIT = 5.0  # milliseconds
MILLISECOND = 1_000_000  # nanoseconds
COLLECTOR = "garbage collector"
# What is done now and then in a call.
PARTS: tuple[tuple[type[Any], str, str], ...] = (
    (Keeper, "begin_snapshot", "picture for a snapshot"),
    (Keeper, "rotate", "a new segment"),
    (Journal, "look", "a look at the file"),
    (Ledger, "stop_by", "tidying up"),
    (Ledger, "due", "what is due"),
    (Ledger, "view_pending", "a view of what is pending"),
    (Booking, "_look_around", "looking around"),
)


class Slow(NamedTuple):
    """A hold above the limit, by one clock or the other."""

    call: str
    own: int  # nanoseconds of the thread
    wall: int
    queued: int  # nanoseconds of it that it waited for a core
    parts: dict[str, int]  # nanoseconds of the thread by what they were spent on

    @property
    def cause(self) -> str:
        """What most of it was spent on."""
        if self.own <= LIMIT * MILLISECOND:
            is_queue = self.wall - self.queued <= LIMIT * MILLISECOND
            return "waiting for a core" if is_queue else "waiting for the interpreter or the disk"
        parts = {**self.parts, "the call itself": self.own - sum(self.parts.values())}
        return max(parts, key=lambda part: parts[part])


class Queue(local):
    """How long this thread has waited for a core so far."""

    def __init__(self) -> None:
        try:
            self.file = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self.file = -1

    def waited(self) -> int:
        """Nanoseconds; 0 where the system does not say."""
        return 0 if self.file < 0 else int(os.pread(self.file, 100, 0).split()[1])


class TimedLock:
    """A bandit's lock that notes how long it is held. Clocks are read inside it, so this adds to every hold."""

    def __init__(self) -> None:
        self.lock, self.depth, self.owner = RLock(), 0, 0
        self.own, self.wall, self.but_for_cores = array("q"), array("q"), array("q")
        self.slow: list[Slow] = []
        self.parts: dict[str, int] = defaultdict(int)  # of this hold
        self.queue = Queue()
        self.begun = 0, 0, 0

    def __enter__(self) -> None:
        self.lock.acquire()
        self.depth += 1
        if self.depth == 1:
            self.owner = get_ident()
            if self.parts:
                self.parts.clear()
            self.begun = self.queue.waited(), time.perf_counter_ns(), time.thread_time_ns()

    def __exit__(self, *_: object) -> None:
        if self.depth == 1:
            queued, start, own_start = self.begun
            own, wall = time.thread_time_ns() - own_start, time.perf_counter_ns() - start
            queued = self.queue.waited() - queued
            self.owner = 0
            self.own.append(own)
            self.wall.append(wall)
            self.but_for_cores.append(wall - queued)
            if wall > LIMIT * MILLISECOND:
                self.slow.append(Slow(name_of_call(sys._getframe(1)), own, wall, queued, dict(self.parts)))
        self.depth -= 1
        self.lock.release()

    def note(self, part: str, taken: int) -> None:
        """Something in this hold has taken so long."""
        if self.owner == get_ident():
            self.parts[part] += taken

    def show(self, title: str) -> None:
        """Print the worst, and what was above the limit."""
        clocks = (("own", self.own, True), ("wall", self.wall, False), ("wall but for cores", self.but_for_cores, True))
        for clock, taken, aim in clocks:
            times = np.array(taken) / MILLISECOND
            line(f"{title}, {clock}: worst", f"{times.max():.2f} ms", f"at most {LIMIT:g}" if aim else "")
            line(f"{title}, {clock}: 99.99 % of {times.size:,}", f"{np.quantile(times, 0.9999):.3f} ms")
            line(f"{title}, {clock}: holds above {LIMIT:g} ms", f"{(times > LIMIT).sum():,}", "0" if aim else "")
        rest = [each.own - each.parts.get(COLLECTOR, 0) for each in self.slow]
        line("    worst without the collector", f"{max(rest, default=0) / MILLISECOND:.2f} ms", f"at most {LIMIT:g}")
        by_cause: dict[str, list[Slow]] = defaultdict(list)
        for each in self.slow:
            by_cause[each.cause].append(each)
        for cause, found in by_cause.items():
            worst = max(found, key=lambda each: (each.own, each.wall))
            line(f"    {cause}", f"{len(found):,}")
            taken_by = "".join(f", {part} {taken / MILLISECOND:.1f}" for part, taken in worst.parts.items())
            print(f"        {worst.call}: {worst.own / MILLISECOND:.1f} of {worst.wall / MILLISECOND:.1f} ms{taken_by}")
        self.own, self.wall, self.but_for_cores, self.slow = array("q"), array("q"), array("q"), []


def name_of_call(frame: FrameType | None) -> str:
    """The call of the user's that has taken a lock."""
    while frame is not None and frame.f_code.co_name.startswith("_"):
        frame = frame.f_back
    return "nobody" if frame is None else frame.f_code.co_name


def watch(lock: TimedLock) -> None:
    """Note what is done in the holds of a lock: the rare steps of a call, and the garbage collector."""
    begun = [0]

    def collected(phase: str, _info: dict[str, int]) -> None:
        now = time.thread_time_ns()
        if phase == "start":
            begun[0] = now
        else:
            lock.note(COLLECTOR, now - begun[0])

    def timed(step: Callable[..., Any], part: str) -> Callable[..., Any]:
        @wraps(step)
        def run(*given: Any) -> Any:
            apart, start = sum(lock.parts.values()), time.thread_time_ns()
            result = step(*given)
            lock.note(part, time.thread_time_ns() - start - (sum(lock.parts.values()) - apart))
            return result

        return run

    gc.callbacks.append(collected)
    for owner, name, part in PARTS:
        setattr(owner, name, timed(getattr(owner, name), part))


def scrape(bandit: pl.Bandit, stop: Event) -> None:
    """Look at everything once a second."""
    while not stop.wait(1.0):
        bandit.status()


def write_history(bandit: pl.Bandit, lines: int) -> None:
    """Rounds that are told at once, until the journal has so many lines."""
    ask, tell, journal = bandit.ask, bandit.tell, bandit._journal
    assert journal is not None
    outcomes = [random.Random(0).random() for _ in range(1000)]
    while journal.lines < lines:
        for outcome in outcomes:
            decision = ask()
            if decision.arm is not None:
                tell(decision.id, outcome, outcome)


def usual(bandit: pl.Bandit, calls: int, draws: random.Random) -> None:
    """Ask and tell; what waits longest is told, so that as many wait all the time."""
    waiting = deque(bandit.pending)
    for _ in range(calls // 2):
        decision = bandit.ask()
        if decision.arm is not None:
            waiting.append(decision.id)
            bandit.tell(waiting.popleft(), reward=draws.random(), cost=draws.random())


def mixed(bandit: pl.Bandit, calls: int, draws: random.Random) -> None:
    """Other calls among them."""
    waiting = list(bandit.pending)
    draws.shuffle(waiting)
    kinds: list[Callable[[], Any]] = [
        lambda: bandit.credit(draws.random()),
        lambda: bandit.pause("a"),
        lambda: bandit.resume("a"),
        lambda: bandit.ask(key=str(draws.random())),
        lambda: bandit.ask(arms=["b", "c"]),
        lambda: bandit.ask(max_cost=0.5),
        lambda: bandit.observe("b", 0.5, 0.5),
        lambda: bandit.set(budget=draws.random()),
        lambda: bandit.set(max_cost={"b": 1.0}),
        lambda: bandit.set(expires=draws.choice([43_200.0, 86_400.0])),
    ]
    for _ in range(calls // 3):
        decision = bandit.ask()
        id, kind = waiting.pop(), draws.random()
        if decision.arm is not None:
            waiting.append(decision.id)
        if kind < 0.5:
            bandit.tell(id, reward=draws.random())
            bandit.tell(id, cost=draws.random() / 2)
        elif kind < 0.6:
            bandit.cancel(id)
        elif kind < 0.7:
            bandit.expire(id)
        else:
            bandit.tell(id, reward=draws.random(), cost=draws.random() / 2)
        answer = draws.choice(kinds)()
        if isinstance(answer, pl.Decision) and answer.arm is not None:
            waiting.append(answer.id)
        if len(waiting) < 100:
            return


def all_at_once(count: int, lock: TimedLock) -> None:
    """So many decisions that expire at the same time must not stall the next ask."""
    now = [0.0]
    bandit = pl.Bandit(ARMS, 1.0, start=float(count), expires=60.0, clock=lambda: now[0])
    for _ in range(count):
        bandit.ask()
    now[0] = 61.0
    bandit._lock = lock  # type: ignore[assignment]  # it is used as a block only
    for _ in range(count):
        bandit.ask()
        if not len(bandit._ledger.deadlines):
            break
    lock.show(f"{count:,} that expire at once")


def settle(collector: str) -> None:
    """What a program may do about the garbage collector when all is set up."""
    gc.collect()
    if collector == "frozen":
        gc.freeze()
    elif collector == "off":
        gc.disable()


def main(calls: int = 1_000_000, pending: int = 100_000, lines: int = 1_000_000, collector: str = "on") -> None:
    logging.disable(logging.WARNING)  # that so many wait
    draws, lock = random.Random(0), TimedLock()
    line("others on the machine: load", f"{os.getloadavg()[0]:.1f}", f"{os.cpu_count()} cores")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "journal"
        options: dict[str, Any] = {"start": 4.0 * pending, "expires": 86_400.0, "journal": path}
        began = time.perf_counter()
        with pl.Bandit(ARMS, 1.0, **options, rotate_every=1_000_000, snapshot_every=None, closed="drop") as bandit:
            write_history(bandit, lines - pending)
            while len(bandit._ledger.pending) < pending:
                bandit.ask()
        line("    to write the journal so far", f"{time.perf_counter() - began:.0f} s")
        began = time.perf_counter()
        bandit = pl.Bandit.open(path, snapshot_every=100_000, rotate_every=250_000, closed="gzip")
        line("    to open it again", f"{time.perf_counter() - began:.0f} s")
        watch(lock)
        mixed(bandit, 100, draws)  # all compiled code is at hand
        bandit._lock = lock  # type: ignore[assignment]  # it is used as a block only
        settle(collector)
        stop = Event()
        scraper = Thread(target=scrape, args=(bandit, stop))
        scraper.start()
        for title, play in (("ask + tell", usual), ("mixed", mixed)):
            play(bandit, calls if play is usual else calls // 10, draws)
            lock.show(title)
            assert bandit._journal is not None
            line("    pending; lines in the journal", f"{len(bandit.pending):,}", f"{bandit._journal.lines:,}")
        stop.set()
        scraper.join()
        bandit.close()
    all_at_once(2 * pending, lock)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--calls", type=int, default=1_000_000)
    options.add_argument("--pending", type=int, default=100_000)
    options.add_argument("--lines", type=int, default=1_000_000, help="in the journal before the calls")
    options.add_argument(
        "--collector", choices=("on", "frozen", "off"), default="on", help="of garbage, once it is open"
    )
    main(**vars(options.parse_args()))

"""The longest call: a million calls with 100,000 pending decisions, snapshots, rotation, and a status() every second.

    python -m benchmarks.stalls --calls 1000000 --pending 100000

For each call three clocks are read. The clock on the wall also counts what other programs and the system take. The
processor time of the thread counts what the call does itself; Python's garbage collector, which may run in it, is
counted, and besides shown apart. The processor time of the process also counts what other threads of the program do
meanwhile, whether the call waits for them (for Python's interpreter lock, or the bandit's own) or not (while a snapshot
is compressed or synced beside it). The targets are for the latter two.
"""

import argparse
import gc
import logging
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any

import numpy as np

import paceline as pl
from benchmarks.turns import line

ARMS = list("abcdefgh")
LIMIT = 5.0  # milliseconds
MILLISECOND = 1_000_000  # nanoseconds


class Collector:
    """When the garbage collector ran, by the processor time of the process."""

    def __init__(self) -> None:
        self.runs: list[tuple[int, int]] = []
        self.begun = 0

    def __call__(self, phase: str, _info: dict[str, int]) -> None:
        """As the collector calls it."""
        if phase == "start":
            self.begun = time.process_time_ns()
        else:
            self.runs.append((self.begun, time.process_time_ns()))

    def longest(self) -> int:
        """The longest run."""
        return max((end - begin for begin, end in self.runs), default=0)


class Watch:
    """How long calls take, in nanoseconds."""

    def __init__(self, collector: Collector) -> None:
        self.collector = collector
        self.taken: dict[str, list[int]] = {"wall": [], "thread": [], "process": []}
        self.slow: list[tuple[int, str]] = []  # place, name

    def call(self, function: Callable[..., Any], *given: Any, **options: Any) -> Any:
        """Call a function, and note how long it takes."""
        wall, process, thread = time.perf_counter_ns(), time.process_time_ns(), time.thread_time_ns()
        result = function(*given, **options)
        own, whole = time.thread_time_ns() - thread, time.process_time_ns() - process
        self.taken["wall"].append(time.perf_counter_ns() - wall)
        self.taken["thread"].append(own)
        self.taken["process"].append(whole)
        if whole > LIMIT * MILLISECOND:
            self.slow.append((len(self), function.__name__))
        return result

    def __len__(self) -> int:
        return len(self.taken["wall"])

    def show(self, title: str) -> None:
        """Print the worst, and what was above the limit."""
        for clock, taken in self.taken.items():
            times = np.array(taken) / MILLISECOND
            aim = "" if clock == "wall" else f"at most {LIMIT:g}"
            line(f"{title}, {clock}: worst", f"{times.max():.2f} ms", aim)
            line(f"{title}, {clock}: 99.99 % of {times.size:,}", f"{np.quantile(times, 0.9999):.3f} ms")
            line(f"{title}, {clock}: calls above {LIMIT:g} ms", f"{(times > LIMIT).sum():,}", aim and "0")
        rows = [(self.taken["process"][place - 1], self.taken["thread"][place - 1], name) for place, name in self.slow]
        for whole, own, name in sorted(rows, reverse=True)[:5]:
            line(f"    {name}, process and thread", f"{whole / MILLISECOND:.1f} and {own / MILLISECOND:.1f} ms")
        line("    the longest run of the collector", f"{self.collector.longest() / MILLISECOND:.1f} ms")
        self.collector.runs.clear()


def scrape(bandit: pl.Bandit, stop: Event) -> None:
    """Look at everything once a second."""
    while not stop.wait(1.0):
        bandit.status()


def usual(bandit: pl.Bandit, watch: Watch, calls: int, draws: random.Random) -> None:
    """Ask and tell; what waits longest is told, so that as many wait all the time."""
    waiting = list(bandit.pending)
    draws.shuffle(waiting)
    for place in range(calls // 2):
        decision = watch.call(bandit.ask)
        at = place % len(waiting)
        if decision.arm is not None:
            id, waiting[at] = waiting[at], decision.id
            watch.call(bandit.tell, id, reward=draws.random(), cost=draws.random())


def mixed(bandit: pl.Bandit, watch: Watch, calls: int, draws: random.Random) -> None:
    """Other calls among them."""
    waiting = list(bandit.pending)
    draws.shuffle(waiting)
    kinds: list[Callable[[], Any]] = [
        lambda: watch.call(bandit.credit, draws.random()),
        lambda: watch.call(bandit.pause, "a"),
        lambda: watch.call(bandit.resume, "a"),
        lambda: watch.call(bandit.ask, key=str(draws.random())),
        lambda: watch.call(bandit.ask, arms=["b", "c"]),
        lambda: watch.call(bandit.ask, max_cost=0.5),
        lambda: watch.call(bandit.observe, "b", 0.5, 0.5),
        lambda: watch.call(bandit.set, budget=draws.random()),
        lambda: watch.call(bandit.set, max_cost={"b": 1.0}),
    ]
    while len(watch) < calls:
        decision = watch.call(bandit.ask)
        id, kind = waiting.pop(), draws.random()
        if decision.arm is not None:
            waiting.append(decision.id)
        if kind < 0.5:
            watch.call(bandit.tell, id, reward=draws.random())
            watch.call(bandit.tell, id, cost=draws.random() / 2)
        elif kind < 0.6:
            watch.call(bandit.cancel, id)
        elif kind < 0.7:
            watch.call(bandit.expire, id)
        else:
            watch.call(bandit.tell, id, reward=draws.random(), cost=draws.random() / 2)
        answer = draws.choice(kinds)()
        if isinstance(answer, pl.Decision) and answer.arm is not None:
            waiting.append(answer.id)
        if len(waiting) < 100:
            return


def all_at_once(count: int, collector: Collector) -> None:
    """So many decisions that expire at the same time must not stall the next ask."""
    now = [0.0]
    bandit = pl.Bandit(ARMS, 1.0, start=float(count), expires=60.0, clock=lambda: now[0])
    for _ in range(count):
        bandit.ask()
    now[0] = 61.0
    watch = Watch(collector)
    while len(bandit._ledger.deadlines):
        watch.call(bandit.ask)
        if len(watch) > count:
            break
    watch.show(f"{count:,} that expire at once")


def main(calls: int = 1_000_000, pending: int = 100_000) -> None:
    logging.disable(logging.WARNING)  # that so many wait
    collector = Collector()
    gc.callbacks.append(collector)
    draws = random.Random(0)
    line("others on the machine: load", f"{os.getloadavg()[0]:.1f}", f"{os.cpu_count()} cores")
    with TemporaryDirectory() as folder:
        options = {"snapshot_every": 100_000, "rotate_every": 250_000, "closed": "gzip"}
        path = Path(folder) / "journal"
        bandit = pl.Bandit(ARMS, 1.0, start=4.0 * pending, expires=86_400.0, journal=path, **options)
        while len(bandit._ledger.pending) < pending:
            bandit.ask()
        mixed(bandit, Watch(collector), 100, draws)  # all compiled code is at hand
        stop = Event()
        Thread(target=scrape, args=(bandit, stop), daemon=True).start()
        for title, play in (("ask + tell", usual), ("mixed", mixed)):
            watch = Watch(collector)
            play(bandit, watch, calls if play is usual else calls // 10, draws)
            watch.show(title)
            line("    pending; lines in the journal", f"{len(bandit.pending):,}", f"{bandit._journal.lines:,}")
        stop.set()
        bandit.close()
    all_at_once(2 * pending, collector)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--calls", type=int, default=1_000_000)
    options.add_argument("--pending", type=int, default=100_000)
    main(**vars(options.parse_args()))

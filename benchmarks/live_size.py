"""Live bandits of unusual size: ten thousand of them in one process, ten thousand arms, ten million rounds.

python -m benchmarks.live_size --bandits 10000 --arms 10000 --rounds 10000000
"""

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import paceline as pl
from benchmarks.turns import line

PART = 10  # of all rounds, after which memory is looked at for the first time


def resident() -> int:
    """Bytes of this process that are in memory; of Linux."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def taken(call: Callable[[], object], times: int = 50) -> float:
    """Milliseconds of processor time that a call takes, the median."""
    found = []
    for _ in range(times):
        start = time.process_time()
        call()
        found.append(1000.0 * (time.process_time() - start))
    return median(found)


def many_bandits(count: int) -> None:
    """With default settings: a journal each, opened again, and one decision told by each."""
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}.journal" for number in range(count)]
        for path in paths:
            with pl.Bandit(["a", "b", "c"], 1.0, journal=path) as bandit:
                bandit.tell(bandit.ask().id, 0.5, 0.5)
        before, start = resident(), time.process_time()
        bandits = [pl.Bandit.open(path) for path in paths]
        line(f"{count:,} bandits, opening all", f"{time.process_time() - start:.1f} s", "at most 10")
        for bandit in bandits:
            bandit.tell(bandit.ask().id, 0.5, 0.5)
        line("    memory of each", f"{(resident() - before) / count / 1000:.0f} kB", "at most 50")
        for bandit in bandits:
            bandit.close()


def many_arms(count: int) -> None:
    """Decisions, and arms that come out of play."""
    names = [f"arm {number}" for number in range(count)]
    bandit = pl.Bandit(names, 0.5, start=1000.0)
    line(f"{count:,} arms, ask", f"{taken(bandit.ask):.2f} ms", "at most 0.5")
    ids = [decision.id for decision in (bandit.ask(arms=names[:1]) for _ in range(50)) if decision.arm]
    out = iter(names)
    line(f"{count:,} arms, pause", f"{taken(lambda: bandit.pause(next(out))):.2f} ms", "at most 1")
    told = iter(ids)
    seconds = taken(lambda: bandit.tell(next(told), 0.5, 0.5), len(ids))
    line(f"{count:,} arms, tell of a paused one", f"{seconds:.2f} ms", "at most 1")


def many_rounds(count: int) -> None:
    """All told, within their time: memory must not grow."""
    bandit = pl.Bandit(list("abc"), 1.0, expires=3600.0)
    for number in range(count):
        if number == count // PART:
            before = resident()
        decision = bandit.ask()
        if decision.arm is not None:
            bandit.tell(decision.id, 0.5, 0.5)
    grown = (resident() - before) / 2**20
    line(f"{count:,} rounds, memory grown after the first {100 // PART} %", f"{grown:.1f} MiB", "0")


def main(bandits: int = 10_000, arms: int = 10_000, rounds: int = 10_000_000) -> None:
    line("others on the machine: load", f"{os.getloadavg()[0]:.1f}", f"{os.cpu_count()} cores")
    many_arms(arms)
    many_bandits(bandits)
    many_rounds(rounds)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--bandits", type=int, default=10_000)
    options.add_argument("--arms", type=int, default=10_000)
    options.add_argument("--rounds", type=int, default=10_000_000)
    main(**vars(options.parse_args()))

"""A decision and its outcome from Python: ask + tell with 8 arms, and reopening a journal."""

import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from river.bandit import UCB

import paceline as pl
from benchmarks.turns import line
from paceline.compile import compile_ahead
from paceline.policies import POLICIES

ARMS = list("abcdefgh")
ROUNDS = 5_000
TURNS = 6
EVENTS = 1_000_000

Step = Callable[[float], bool]  # one round with this outcome; says whether an arm was pulled


def live_step(bandit: pl.Bandit) -> Step:
    def step(outcome: float) -> bool:
        decision = bandit.ask()
        if decision.arm is None:
            return False
        bandit.tell(decision.id, reward=outcome, cost=outcome)
        return True

    return step


def step_with_two() -> Step:
    bandit = pl.Bandit(ARMS, {"money": 0.5, "calls": 0.5})

    def step(outcome: float) -> bool:
        decision = bandit.ask()
        if decision.arm is None:
            return False
        bandit.tell(decision.id, reward=outcome, cost={"money": outcome, "calls": 1.0 - outcome})
        return True

    return step


def river_step() -> Step:
    policy = UCB(delta=1.0, seed=0)

    def step(outcome: float) -> bool:
        policy.update(policy.pull(ARMS), outcome)
        return True

    return step


def writing_step(path: Path) -> Step:
    """The two lines of a round, written without anything else: what a journal costs at least."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    asked = b'89abcdef ["ask",3,4,5,1700000000000]\n'
    told = b'89abcdef ["tell",12345,0.5123412341234123,[0.5123412341234123],1700000000000]\n'

    def step(_: float) -> bool:
        os.write(file, asked)
        os.write(file, told)
        return True

    return step


def medians(steps: dict[str, Step]) -> dict[str, float]:
    """Microseconds of a median round with a pull; the contestants take turns, and the best turn of each counts."""
    outcomes = random.Random(0)
    best = dict.fromkeys(steps, float("inf"))
    for _ in range(TURNS):
        for name, step in steps.items():
            times = []
            for _ in range(ROUNDS):
                outcome = outcomes.random()
                start = time.perf_counter_ns()
                pulled = step(outcome)
                taken = time.perf_counter_ns() - start
                if pulled:
                    times.append(taken / 1000.0)
            best[name] = min(best[name], median(times))
    return best


def main() -> None:
    with TemporaryDirectory() as folder:
        names = ("index", "suak", "ucb-simplex", "optimistic", "thompson")
        compile_ahead([POLICIES[name]() for name in names], ["live"], resources=(1, 2))
        steps = {name: live_step(pl.Bandit(ARMS, 0.5, name)) for name in names}
        for name in ("index", "suak", "thompson"):
            journal = Path(folder) / f"{name}.journal"
            steps[f"{name}, journal"] = live_step(pl.Bandit(ARMS, 0.5, name, journal=journal))
        bare = writing_step(Path(folder) / "bare")
        taken = medians({**steps, "two": step_with_two(), "river": river_step(), "bare": bare})
        for name in names:
            line(f"{name}, ask + tell", f"{taken[name]:.1f} us", f"at most {20 if name == 'thompson' else 12}")
        line("index, two resources, ask + tell", f"{taken['two']:.1f} us", "at most 20")
        line("river's UCB, pull + update", f"{taken['river']:.1f} us")
        line("index over river's UCB", f"{taken['index'] / taken['river']:.2f} times", "at most 1")
        for name in ("index", "suak", "thompson"):
            line(f"{name} with a journal, ask + tell", f"{taken[f'{name}, journal']:.1f} us", "at most 10")
        line("    of which the two writes, bare", f"{taken['bare']:.1f} us")
        added = taken["index, journal"] - taken["index"]
        line("index, what a journal adds over the bare writes", f"{added / taken['bare']:.1f} times")
        reopening(Path(folder) / "long.journal")


def reopening(path: Path) -> None:
    """Seconds of processor time to open a journal of a million events, without and with a snapshot."""
    bandit = pl.Bandit(ARMS, 0.5, journal=path, snapshot_every=None)
    step, outcomes, events = live_step(bandit), random.Random(0), 0
    while events < EVENTS:
        events += 2 if step(outcomes.random()) else 1
    bandit.close()
    for what, target in (("the journal alone", "at most 6"), ("with a snapshot", "at most 1")):
        start = time.process_time()
        bandit = pl.Bandit.open(path)
        line(f"a million events, {what}", f"{time.process_time() - start:.2f} s", target)
        bandit.snapshot()
        bandit.close()


if __name__ == "__main__":
    main()

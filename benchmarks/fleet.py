"""Many processes under one budget: what the split costs, what an exchange takes, and kills that must not overdraw.

python -m benchmarks.fleet regret       steady regret by the number of workers
python -m benchmarks.fleet speed        ask + tell of a member beside a Bandit
python -m benchmarks.fleet merge        taking in what others have learned
python -m benchmarks.fleet strand       what a kill strands
python -m benchmarks.fleet kills        8 processes, kill -9, immediate restarts of PostgreSQL under load
python -m benchmarks.fleet partition    a network that is cut for a while
"""

import argparse
import random
import signal
import sys
import time
from collections.abc import Callable
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import paceline as pl
from benchmarks import fleet_kills, fleet_partition
from benchmarks.turns import fastest, line
from paceline.compile import compile_ahead
from paceline.fleet.sqlite import SQLiteStore
from paceline.fleet.store import Store
from paceline.fleet.sums import learned, sums_from
from paceline.fleet.worker import GROWTH
from paceline.live.changes import learn_from_others

UNIT = 2**32
ARMS = list("abcdefgh")


# What the split costs.


def steady_regret(problem: pl.Problem, pulls: Any, rounds: int, spent: float) -> float:
    """What the best mix would have earned more: wrong arms, idle rounds, and money that was not spent."""
    best = problem.optimum
    idle = rounds - int(pulls.sum())
    return float(pulls @ best.gaps + best.level * idle + best.price * (problem.budget * rounds - spent))


def play_fleet(
    problem: pl.Problem, policy: Any, workers: int, rounds: int, seed: int, growth: float | None = GROWTH
) -> float:
    """The steady regret of a fleet; each round is of a worker at random, who exchanges when its rounds have grown."""
    arms = [str(arm) for arm in range(len(problem.reward_means))]
    sampler, traffic = problem.sample(seed), random.Random(seed)
    pulls = np.zeros(len(arms))
    with SQLiteStore(":memory:") as store:
        settings = {"arms": arms, "budget": problem.budget, "policy": policy, "seed": seed}
        store.make("fleet", settings, by="benchmark")
        members = [pl.join(store, "fleet", worker=f"w{number}", sync_every=None) for number in range(workers)]
        for number, member in enumerate(members):  # the same draws in every run
            member._ledger.arm_set.books.tally.seed = member._ledger.arm_set.full.clock.seed = seed * 1000 + number
        due = [1.0] * workers
        for _ in range(rounds):
            number = traffic.randrange(workers)
            member = members[number]
            decision = member.ask()
            if decision.arm is not None:
                arm = int(decision.arm)
                reward, cost = sampler.pull(arm)
                member.tell(decision.id, reward=reward, cost=cost)
                pulls[arm] += 1.0
            if growth is not None and member.rounds >= due[number]:
                member.sync()
                due[number] = max(growth * member.rounds, member.rounds + 1)
        spent = sum(member.spent for member in members)
        for member in members:
            member.close()
    return steady_regret(problem, pulls, rounds, spent)


def regret(options: argparse.Namespace) -> None:
    problem = pl.paper.eight_arms()
    print(f"the paper's 8 arms, {options.rounds} rounds in all, median steady regret of {options.trials} trials")
    for policy in options.policies:
        base: dict[str, float] = {}
        for workers in options.workers:
            for label, growth in (("exchanged at +10 %", GROWTH), ("never", None)):
                if workers == 1 and growth is None:
                    continue
                if growth is None and not options.never:
                    continue
                found = [
                    play_fleet(problem, policy, workers, options.rounds, seed, growth) for seed in range(options.trials)
                ]
                base.setdefault("one", median(found))
                bound = 1.6 * base["one"] + workers * 1.5 * problem.optimum.price
                trials = ", ".join(f"{each:.0f}" for each in sorted(found))
                shown = f"{policy:<10} {workers:>3} workers, {label:<18} {median(found):8.1f}"
                print(f"{shown}   (1.6 of one + W 1.5 price: {bound:.0f}; trials {trials})", flush=True)


# Times.


def rounds_of(bandit: pl.Bandit, count: int) -> Callable[[], None]:
    """Some rounds, whose outcomes are told at once."""
    draws = random.Random(1)
    outcomes = [(draws.random(), draws.random()) for _ in range(count)]

    def run() -> None:
        for reward, cost in outcomes:
            decision = bandit.ask()
            if decision.arm is not None:
                bandit.tell(decision.id, reward=reward, cost=cost)

    return run


def speed(options: argparse.Namespace) -> None:
    """Rounds of `ask` and `tell`, with the thread that exchanges once a second."""
    count = options.rounds
    with TemporaryDirectory() as folder:
        # Nobody ever sits out, so both make as many calls.
        member = pl.join(f"sqlite:///{folder}/fleet.db", "fleet", arms=ARMS, budget=1.0)
        contestants = {"Bandit": rounds_of(pl.Bandit(ARMS, 1.0), count), "Member": rounds_of(member, count)}
        for run in contestants.values():
            run()  # whatever is to be compiled
        best = fastest(contestants, turns=300)  # short turns: the fastest of each is undisturbed, by exchanges too
        member.close()
    for name, seconds in best.items():
        line(f"ask + tell, {name}", f"{seconds / count * 1e6:.2f} us")
    line("ratio", f"{best['Member'] / best['Bandit']:.3f}", "at most 1.1")


def merge(options: argparse.Namespace) -> None:
    """What it takes to say what was learned, and to take in what others have."""
    compile_ahead([pl.IndexPacer()], ["live"])  # else it begins in plain Python
    bandits = [pl.Bandit(ARMS, 0.5, worker=name) for name in "ab"]
    for bandit in bandits:
        rounds_of(bandit, 3000)()
    one, other = (bandit._ledger for bandit in bandits)
    said = learned(other)
    times: dict[str, list[float]] = {"report": [], "merge": []}
    for _ in range(options.turns):
        began = time.perf_counter()
        learned(one)
        halfway = time.perf_counter()
        learn_from_others(one, sums_from(one, said))
        times["report"].append(halfway - began)
        times["merge"].append(time.perf_counter() - halfway)
    line("what was learned, 8 arms", f"{median(times['report']) * 1e6:.0f} us")
    line("merge, 8 arms", f"{median(times['merge']) * 1e6:.0f} us", "under 50 us")


# Kills.


def strand(options: argparse.Namespace) -> None:
    """What a worker holds at a random moment, which a kill would strand; and short lives that end or are killed."""
    problem = pl.paper.eight_arms()
    held: list[float] = []
    with SQLiteStore(":memory:") as store:
        arms = [str(arm) for arm in range(8)]
        store.make("fleet", {"arms": arms, "budget": problem.budget}, by="benchmark")
        members = [pl.join(store, "fleet", sync_every=None) for _ in range(4)]
        sampler, draws = problem.sample(1), random.Random(1)
        for number in range(options.rounds):
            member = draws.choice(members)
            decision = member.ask()
            if decision.arm is not None:
                reward, cost = sampler.pull(int(decision.arm))
                member.tell(decision.id, reward=reward, cost=cost)
            if number % 50 == 0:
                member.sync()
            if number > options.rounds // 10:
                held.append(member.headroom)
        for member in members:
            member.close()
    line("headroom held, median", f"{median(held):.2f}", "largest costs")
    line("headroom held, 99 %", f"{float(np.quantile(held, 0.99)):.2f}", "at most 2")
    line("headroom held, most", f"{max(held):.2f}", "has no bound: each round mints, and its pull may cost nothing")
    line("looks with more than 2", f"{100 * sum(each > 2.0 for each in held) / len(held):.2f} %")
    for is_killed in (False, True):
        with SQLiteStore(":memory:") as store:
            spent, minted = short_lives(store, options.lives, is_killed)
        label = "killed" if is_killed else "handed back"
        line(
            f"lives of 100 rounds at c = 0.02, {label}", f"{100 * (1 - spent / minted):.1f} %", "of the money not spent"
        )


def short_lives(store: Store, lives: int, is_killed: bool) -> tuple[float, float]:
    """What short lives spend, one after the other, of what their rounds bring."""
    spent = minted = 0.0
    draws = random.Random(1)
    store.make("fleet", {"arms": ["a", "b"], "budget": 0.02}, by="benchmark")
    for _ in range(lives):
        member = pl.join(store, "fleet", sync_every=None)
        for number in range(100):
            decision = member.ask()
            if decision.arm is not None:
                member.tell(decision.id, reward=draws.random(), cost=0.5 + 0.5 * draws.random())
            if number % 10 == 9:
                member.sync()
        spent, minted = spent + member.spent, minted + 2.0
        if is_killed:
            member._is_closed = True  # without a word
        else:
            member.close()
    return spent, minted


def kills(options: argparse.Namespace) -> None:
    """Looks with all stopped raise an error if one unit is over, or the books are not exact."""
    print(f"{options.workers} workers, {options.kills} kills, {options.restarts} restarts of PostgreSQL")
    began = time.monotonic()
    looks = fleet_kills.run(
        options.kills,
        options.restarts,
        options.workers,
        options.seed,
        lambda number, look: print(number, look, flush=True),
    )
    last = looks[-1]
    took = time.monotonic() - began
    print(
        f"{len(looks)} looks, {last.lives} lives, {last.rounds} rounds, {took:.0f} seconds: 0 units over, books exact"
    )
    print(f"{last.used / UNIT:.0f} of {last.line / UNIT:.0f} spent or reserved")


def partition(options: argparse.Namespace) -> None:
    """A network that is cut for a while."""
    reason = fleet_partition.can_cut()
    if reason is not None:
        sys.exit(f"a network cannot be cut here: {reason}")
    found = fleet_partition.run(options.seconds, say=lambda text: print(text, flush=True))
    print(f"{found.during} rounds without a network, 0 units over")
    print(f"two exchanges later: {found.heard} of {found.rounds} rounds and {found.known} of {found.pulls} pulls known")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet")
    commands = parser.add_subparsers(required=True)
    sub = commands.add_parser("regret")
    sub.add_argument("--rounds", type=int, default=200_000)
    sub.add_argument("--trials", type=int, default=5)
    sub.add_argument("--workers", type=int, nargs="+", default=[1, 4, 16, 64])
    sub.add_argument("--policies", nargs="+", default=["index", "thompson"])
    sub.add_argument("--never", action="store_true", help="also without exchanges")
    sub.set_defaults(run=regret)
    sub = commands.add_parser("speed")
    sub.add_argument("--rounds", type=int, default=500)
    sub.set_defaults(run=speed)
    sub = commands.add_parser("merge")
    sub.add_argument("--turns", type=int, default=2000)
    sub.set_defaults(run=merge)
    sub = commands.add_parser("strand")
    sub.add_argument("--rounds", type=int, default=50_000)
    sub.add_argument("--lives", type=int, default=300)
    sub.set_defaults(run=strand)
    sub = commands.add_parser("kills")
    sub.add_argument("--kills", type=int, default=1000)
    sub.add_argument("--restarts", type=int, default=100)
    sub.add_argument("--workers", type=int, default=8)
    sub.add_argument("--seed", type=int, default=1)
    sub.set_defaults(run=kills)
    sub = commands.add_parser("partition")
    sub.add_argument("--seconds", type=float, default=120.0)
    sub.set_defaults(run=partition)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # servers and workers are removed then, too
    options.run(options)


if __name__ == "__main__":
    main()

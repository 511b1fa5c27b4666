"""Kill -9 under mixed load, a thousand times: nothing acknowledged is lost, and the line is never crossed.

    python -m benchmarks.crash --kills 1000

A child process opens a journal and makes calls of every kind on it. It says before each call what it is about to do,
and after each call what came of it. At a random moment it is killed. The parent has kept books of its own, in whole
units, from what the child had said; it opens the journal and compares. At most the one call that was under way may or
may not have happened. Where the closed segments are still there, a copy of the journal without its snapshots is opened
too, and must give the same state, to the last entry. Then the next child goes on.
"""

import argparse
import itertools
import json
import math
import os
import random
import shutil
import signal
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zlib import crc32

import paceline as pl
from benchmarks.turns import line
from paceline.live.pulls import CANCELLED
from paceline.live.snapshot import describe_ledger, dumps

ARMS = {"a": 0.25, "b": 1.0, "c": 0.5, "d": 0.125}  # names and largest costs
BUDGET = 0.3
UNIT = 2**32  # units in 1, since that is the largest cost
POLICIES = ("index", "suak", "thompson", "optimistic")
CLOSED = ("keep", "gzip", "drop")
FILES = {"snapshot_every": 40, "rotate_every": 110}
KILLS_A_STORY = 20  # then a new journal is begun, so that reading all of it takes little time
MOST_CALLS = 150  # in a life
LONGEST_DELAY = 0.002  # seconds after the last of them
LOOKS = 10  # calls after which the whole state is looked at

Call = tuple[str, list[Any], dict[str, Any]]  # a method of Bandit and its arguments


# The child.


def next_call(draws: random.Random, bandit: pl.Bandit, told: dict[int, list[str]]) -> Call:
    """A call of a random kind that makes sense at this moment."""
    waiting = [id for id in bandit.pending if id not in told or len(told[id]) == 1]
    kind = draws.random()
    if kind < 0.40 or not waiting:
        return "ask", [], request(draws)
    id = draws.choice(waiting)
    if kind < 0.85:
        return news(draws, id, told)
    untold = [id for id in waiting if id not in told]
    if kind < 0.88 and untold:
        return "cancel", [draws.choice(untold)], {}
    if kind < 0.91:
        return "expire", [id], {}
    arm = draws.choice(sorted(ARMS))
    other = draws.choice(sorted(bandit.arms))
    amount = draws.random()
    return draws.choice(
        [
            ("credit", [amount], {}),
            ("credit", [amount], {"over": draws.randrange(1, 50)}),
            ("credit", [amount], {"rate": False}),
            ("debit", [amount / 4], {}),
            ("set", [], {"budget": BUDGET * draws.choice([0.5, 1.0, 1.25])}),
            ("set", [], {"expires": draws.choice([None, 0.01, 0.05])}),
            ("set", [], {"silence": draws.choice([None, 0.0])}),
            ("pause", [arm], {}),
            ("resume", [arm], {}),
            ("resume", [arm], {}),
            ("observe", [arm, draws.random(), amount * ARMS[arm]], {}),
            ("merge", [{draws.choice("xyz"): report(draws)}], {}),
            ("add", [f"new {draws.randrange(6)}", 0.5], {}),
            ("retire", [other if other.startswith("new") else "new 0"], {}),
            ("snapshot", [], {}),
        ]
    )


def request(draws: random.Random) -> dict[str, Any]:
    """What may be said of one request."""
    facts: dict[str, Any] = {}
    if draws.random() < 0.2:
        facts["expires"] = draws.choice([0.005, 0.02, 3600.0])
    if draws.random() < 0.1:
        facts["arms"] = draws.sample(sorted(ARMS), draws.randrange(1, 4))
    if draws.random() < 0.1:
        facts["max_cost"] = draws.choice([0.5, {"b": 0.75}])
    if draws.random() < 0.2:
        facts["key"] = f"request {draws.randrange(10**6)}"
    return facts


def news(draws: random.Random, id: int, told: dict[int, list[str]]) -> Call:
    """All of an outcome, or a part of it; the largest cost of any request is at least an eighth."""
    reward, cost = draws.random(), draws.random() / 8
    known = told.get(id)
    if known:
        return "tell", [id], {"cost": cost} if known == ["reward"] else {"reward": reward}
    return "tell", [id], draws.choice([{"reward": reward, "cost": cost}] * 3 + [{"reward": reward}, {"cost": cost}])


def report(draws: random.Random) -> dict[str, Any]:
    """What another bandit has learned."""
    other = pl.Bandit(list(ARMS), BUDGET, "index", ARMS)
    other.observe(draws.choice(sorted(ARMS)), draws.random(), 0.125)
    return other.report()


def amounts(bandit: pl.Bandit) -> dict[str, int]:
    """What the books say, in whole units; the numbers are exact in floats as long as there are few rounds."""
    exact = {name: Fraction(getattr(bandit, name)) * UNIT for name in ("credited", "spent", "reserved")}
    assert all(units.denominator == 1 for units in exact.values())
    lines = bandit._journal.lines  # type: ignore[union-attr]  # there is one
    return {"rounds": bandit.rounds, "lines": lines, **{name: int(units) for name, units in exact.items()}}


def state_of(bandit: pl.Bandit) -> str:
    """Everything in the books."""
    return dumps(describe_ledger(bandit._ledger))


def live(path: Path, seed: int, told: dict[int, list[str]], upkeep: dict[str, Any], to: int) -> None:
    """The life of a child: it ends only by being killed."""
    draws = random.Random(seed)
    bandit = pl.Bandit.open(path, **upkeep, **FILES)
    for number in itertools.count():
        name, given, options = call = next_call(draws, bandit, told)
        say(to, "about", call)
        try:
            answer = getattr(bandit, name)(*given, **options)
            came = answer.id if name == "ask" else None
            result = [came, answer.arm if name == "ask" else None]
        except (pl.InvalidValue, pl.InvalidPolicy, pl.UnknownName, pl.Conflict) as refusal:
            result = ["refused", str(refusal)]
        else:
            if name == "tell":
                told.setdefault(given[0], []).extend(options)
        state = crc32(state_of(bandit).encode()) if number % LOOKS == 0 else None
        say(to, "done", result, amounts(bandit), bandit.arms, state)


def say(to: int, *what: Any) -> None:
    """One line to the parent; short enough to come whole or not at all."""
    os.write(to, (json.dumps(what) + "\n").encode())


# The parent.


@dataclass
class Books:
    """What the parent knows, from what was acknowledged alone."""

    rounds: int = 0
    open: dict[int, Fraction] = field(default_factory=dict)  # decisions and what is committed for each
    done: dict[int, dict[str, float]] = field(default_factory=dict)  # settled, and with what
    parts: dict[int, dict[str, float]] = field(default_factory=dict)  # told so far
    cancelled: set[int] = field(default_factory=set)
    keys: dict[str, list[Any]] = field(default_factory=dict)  # requests and their answers
    committed: int = 0  # units spent or reserved
    largest: dict[str, float] = field(default_factory=lambda: dict(ARMS))

    def ask(self, id: int, arm: str | None, facts: dict[str, Any]) -> None:
        """A decision was made."""
        key = facts.get("key")
        if key in self.keys:
            assert self.keys[key] == [id, arm], f"key {key!r} was answered {self.keys[key]} and then {[id, arm]}"
            return
        assert id == self.rounds + 1, f"decision {id} came after {self.rounds} rounds"
        self.rounds = id
        if key is not None:
            self.keys[key] = [id, arm]
        if arm is not None:
            most = facts.get("max_cost", self.largest)
            self.open[id] = Fraction(most if isinstance(most, float) else most.get(arm, self.largest[arm]))
            self.committed += units(self.open[id])

    def tell(self, id: int, parts: dict[str, float]) -> None:
        """Reward, cost or both are known."""
        if "cost" in parts and "cost" not in self.parts.get(id, {}):
            self.committed += units(parts["cost"]) - units(self.open[id])
        known = self.parts.setdefault(id, {})
        known.update(parts)
        if len(known) == 2:
            self.done[id] = known
            del self.open[id]

    def cancel(self, id: int) -> None:
        """It was never acted on."""
        self.committed -= units(self.open.pop(id))
        self.cancelled.add(id)

    def happen(self, call: Call, result: list[Any]) -> None:
        """A call has ended."""
        name, given, options = call
        if result[0] == "refused":
            return
        if name == "ask":
            self.ask(*result, options)
        elif name == "tell":
            self.tell(given[0], options)
        elif name == "cancel":
            self.cancel(given[0])
        elif name == "add":
            self.largest[given[0]] = given[1]


def units(amount: Fraction | float) -> int:
    """A cost in whole units, rounded up."""
    return math.ceil(Fraction(amount) * UNIT)


def kill_one(path: Path, draws: random.Random, books: Books, upkeep: dict[str, Any]) -> list[list[Any]]:
    """One life: what the child has said until it was killed."""
    read_end, write_end = os.pipe()
    told = {id: list(known) for id, known in books.parts.items()}
    seed, calls, delay = draws.randrange(2**32), draws.randrange(MOST_CALLS), draws.uniform(0.0, LONGEST_DELAY)
    child = os.fork()
    if child == 0:
        try:
            os.close(read_end)
            live(path, seed, told, upkeep, write_end)
        except BaseException:  # what a child prints is all that is left of it
            traceback.print_exc()
        finally:
            os._exit(1)
    os.close(write_end)
    said = bytearray()
    while said.count(b"\n") < 2 * calls:
        chunk = os.read(read_end, 1 << 16)
        assert chunk, "the child ended by itself"
        said += chunk
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while chunk := os.read(read_end, 1 << 16):
        said += chunk
    os.close(read_end)
    return [json.loads(each) for each in bytes(said).split(b"\n")[:-1]]


def check(path: Path, books: Books, said: list[list[Any]], upkeep: dict[str, Any], seen: Counter[str]) -> None:
    """Open the journal, and compare it with what was acknowledged."""
    under_way: Call | None = None
    done: list[Any] = []
    for what, *rest in said:
        if what == "about":
            under_way = rest[0]
            continue
        assert under_way is not None
        books.happen(under_way, rest[0])
        seen["calls refused" if rest[0][0] == "refused" else under_way[0]] += 1
        under_way, done = None, rest
        check_amounts(books, rest[1])
    with pl.Bandit.open(path, **upkeep, **FILES) as bandit:
        if under_way is not None:
            seen["killed in a call"] += 1
            seen["... and it had happened"] += take_in(bandit, books, under_way)
        now = amounts(bandit)
        check_amounts(books, now)
        if done:
            check_last(bandit, now, done, under_way, seen)
        check_decisions(bandit, books)
        seen["opened with something to report"] += bandit.recovered is not None
        if upkeep["closed"] != "drop":
            seen["compared with the journal alone"] += 1
            bandit._keeper.finish()  # a segment that is being compressed is gone before it can be copied
            compare_with_journal(path, state_of(bandit))


def check_amounts(books: Books, now: dict[str, int]) -> None:
    """The line, and what the parent has counted itself."""
    assert now["spent"] + now["reserved"] <= now["credited"], f"the line was crossed: {now}"
    assert now["rounds"] == books.rounds, f"{books.rounds} rounds acknowledged, {now}"
    assert now["spent"] + now["reserved"] == books.committed, f"{books.committed} committed, {now}"


def check_last(
    bandit: pl.Bandit, now: dict[str, int], done: list[Any], under_way: Call | None, seen: Counter[str]
) -> None:
    """The books are as after the last call that was acknowledged, but for what the one under way may have done."""
    _, then, arms, state = done
    more = now["lines"] - then["lines"]
    noted = bandit.recovered is not None  # which has a line of its own
    assert 0 <= more - noted <= (0 if under_way is None else 4), f"{then} acknowledged, {now} found"
    name = under_way and under_way[0]
    if name not in ("ask", "credit", "debit", "set"):
        assert now["credited"] == then["credited"], f"{then} acknowledged, {now} found"
    if name not in ("pause", "resume", "add", "retire"):
        assert bandit.arms == arms, f"{arms} acknowledged, {bandit.arms} found"
    if more == 0 and state is not None:
        seen["compared with the state before the kill"] += 1
        assert crc32(state_of(bandit).encode()) == state, "the state is not the one before the kill"


def take_in(bandit: pl.Bandit, books: Books, call: Call) -> bool:
    """Whether the call that was under way has happened: both are right."""
    name, given, options = call
    if name == "ask":
        happened = bandit.rounds == books.rounds + 1
        result = [bandit.rounds, bandit.pending.get(bandit.rounds)]
    elif name == "tell":
        known = known_of(bandit, given[0])
        happened, result = all(known[part] == value for part, value in options.items()), [None]
    elif name == "cancel":
        happened, result = bandit._ledger.settled.get(given[0]) == CANCELLED, [None]
    elif name == "add":
        happened, result = bandit.arms.get(given[0]) == "active", [None]
    else:
        return False  # nothing that the parent counts
    if happened:
        books.happen(call, result)
    return happened


def known_of(bandit: pl.Bandit, id: int) -> dict[str, float | None]:
    """What is known of a decision that is open or was settled lately."""
    ledger = bandit._ledger
    if id in ledger.settled:
        reward, costs = ledger.settled[id]
    else:
        told = ledger.pending.at(id).told
        reward, costs = (None, (None,)) if told is None else (told.reward, told.costs)
    return {"reward": reward, "cost": costs[0]}


def check_decisions(bandit: pl.Bandit, books: Books) -> None:
    """Every decision is where it was left."""
    pending, expired = set(bandit.pending), set(bandit.expired)
    assert pending <= set(books.open), f"open, but settled before: {sorted(pending - set(books.open))}"
    missing = set(books.open) - pending
    settled = bandit._ledger.settled
    silent = {id for id in missing if id in settled and "cost" in books.parts.get(id, {})}  # silence stood for a reward
    assert missing == silent, f"lost: {sorted(missing - silent)}"
    assert expired <= pending
    for id in [id for id in books.done if id in settled][-200:]:
        bandit.tell(id, **books.done[id])  # nothing new
    for id in sorted(books.cancelled)[-50:]:
        bandit.cancel(id)  # known
    for key, answer in list(books.keys.items())[-50:]:
        decision = bandit.ask(key=key)
        assert [decision.id, decision.arm] == answer, f"key {key!r} was answered {answer}, and now {decision}"


def compare_with_journal(path: Path, state: str) -> None:
    """The journal without its snapshots gives the same state."""
    with TemporaryDirectory() as folder:
        for file in path.parent.iterdir():
            if file.name.startswith(path.name) and "snapshot" not in file.name:
                shutil.copy(file, folder)
        with pl.Bandit.open(Path(folder) / path.name, snapshot_every=None) as alone:
            other, own = json.loads(state_of(alone)), json.loads(state)
            differ = {name: (other[name], own[name]) for name in own if other[name] != own[name]}
            assert not differ, f"the journal alone and the snapshot differ: {differ}"


@contextmanager
def story(folder: Path, number: int) -> Iterator[tuple[Path, dict[str, Any]]]:
    """A new journal, and how it is kept."""
    path = folder / f"{number}.journal"
    policy, closed = POLICIES[number % len(POLICIES)], CLOSED[number % len(CLOSED)]
    with pl.Bandit(list(ARMS), BUDGET, policy, ARMS, seed=number, expires=0.05, journal=path, **FILES):
        pass
    yield path, {"closed": closed, "fsync": number % 5 == 4}
    for file in folder.glob(f"*{path.name}*"):
        file.unlink()


def warm_up(kills: int) -> None:
    """Have all compiled code at hand before children are forked, which would each have to load it."""
    for number in range(min(len(POLICIES), math.ceil(kills / KILLS_A_STORY))):
        draws, told = random.Random(number), dict[int, list[str]]()
        with pl.Bandit(list(ARMS), BUDGET, POLICIES[number], ARMS) as bandit:
            for _ in range(500):
                name, given, options = next_call(draws, bandit, told)
                with suppress(pl.PacelineError):
                    getattr(bandit, name)(*given, **options)
                    if name == "tell":
                        told.setdefault(given[0], []).extend(options)


def run(kills: int, seed: int = 0) -> Counter[str]:
    """So many kills, and how often what was seen; an AssertionError where something was lost."""
    draws, seen = random.Random(seed), Counter[str]()
    with TemporaryDirectory() as name:
        warm_up(kills)
        for number in range(math.ceil(kills / KILLS_A_STORY)):
            with story(Path(name), number) as (path, upkeep):
                books = Books()
                for _ in range(min(KILLS_A_STORY, kills - seen["kills"])):
                    said = kill_one(path, draws, books, upkeep)
                    check(path, books, said, upkeep, seen)
                    seen["kills"] += 1
                left = list(path.parent.glob(f".*{path.name}*"))
                seen["unfinished files left behind at the end of a story"] += len(left)
    return seen


def main(kills: int = 1000, seed: int = 0) -> None:
    start = time.perf_counter()
    seen = run(kills, seed)
    for what, count in seen.items():
        line(what, f"{count:,}")
    line("acknowledged events lost, lines crossed", "0", "0")
    line("seconds", f"{time.perf_counter() - start:.0f}")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--kills", type=int, default=1000)
    options.add_argument("--seed", type=int, default=0)
    main(**vars(options.parse_args()))

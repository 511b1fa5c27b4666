"""Seeded stories of a fleet with everything that can go wrong, and exact books of the truth beside it.

A story has a store, a few workers, and wires between them on which messages are lost, doubled and overtaken. Workers
are killed, close and begin; an operator declares some of them dead, rightly or not; the store's clock jumps by an hour
either way; credits come in; some decisions cost more than was reserved for them. What really was spent, reserved and
minted is known here, of the dead as well. After every step it is compared with what has come in, unit by unit, and the
store's figures with each other. What is over the line must be owed, by a worker or by the pool, and only as much as
such costs have brought; a worker that has closed owes nothing. When all is over the wires are mended; two exchanges
later the store must know all that was learned.

With ``forgets`` the store loses commits that it had acknowledged, as one does that fails over without waiting for its
copy. Money that is minted where it is spent is safe even then; money that was granted is not, which the stories show.
"""

from collections.abc import Callable, Iterable
from random import Random
from typing import Any, NamedTuple

from paceline.fleet import protocol
from paceline.fleet.planted import Rules
from paceline.fleet.protocol import (
    HOUR,
    Account,
    Answer,
    Figures,
    Hello,
    Row,
    Standing,
    Sync,
    Units,
    begin_again,
    compose,
    give_back,
    greet,
    mint,
    open_account,
    pay_in,
)

LARGEST = (1, 4, 12)  # units: the largest costs of the pulls there are
TARGET = 2 * max(LARGEST)
ALL = 10**6
STEPS = 120
MOST_WORKERS = 6
ARMS = ("a", "b")


class Broken(AssertionError):
    """The books of a story are wrong."""


class Verdict(NamedTuple):
    """How a story went."""

    number: int
    problem: str | None
    steps: int
    draws: bool  # whether money was granted in it


class Worker:
    """The true books of a worker, which outlive it."""

    __slots__ = (
        *("alive", "answer", "carried", "closing", "has_closed", "lent", "minted", "name", "open", "overrun"),
        *("reserved", "rounds", "spent", "standing", "sums"),
    )

    def __init__(self, name: str, count: int) -> None:
        none = (0,) * count
        self.name = name
        self.standing = Standing(name, none, none)
        self.rounds = 0
        self.minted, self.spent, self.reserved = [0] * count, [0] * count, [0] * count
        self.carried = none  # what it holds from dealings that the store has forgotten
        self.open: list[int] = []  # decisions: what is reserved for each
        self.sums = dict.fromkeys(ARMS, (0, 0))
        self.alive, self.closing, self.has_closed = True, False, False
        self.overrun = [0] * count  # what decisions have cost above what was reserved for them
        self.answer: Answer | None = None  # the last that came, until its debt is paid
        self.lent: tuple[int, Units] | None = None  # by a worker that debits late: until this message is answered

    def figures(self) -> Figures:
        """What its books show."""
        minted = protocol.plus(tuple(self.minted), self.carried)
        return Figures(self.rounds, minted, tuple(self.spent), tuple(self.reserved), dict(self.sums))

    def left(self) -> list[int]:
        """What is left on its line."""
        granted, returned = self.standing.granted, self.standing.returned
        rows = zip(self.minted, self.carried, granted, returned, self.spent, self.reserved, strict=True)
        return [minted + had + more - less - spent - held for minted, had, more, less, spent, held in rows]

    def headroom(self) -> list[int]:
        """What it may still spend, as it sees it."""
        return self.left() if self.lent is None else list(map(int.__add__, self.left(), self.lent[1]))

    def begin_again(self) -> None:
        """The store does not know it any more."""
        held = protocol.minus(self.standing.granted, self.standing.returned)
        self.carried, self.standing = protocol.plus(self.carried, held), begin_again(self.standing)


class Story:
    """One story."""

    def __init__(self, seed: int, number: int, rules: Rules, faults: bool = True, forgets: bool = False) -> None:
        self.random = random = Random(seed << 40 | number)
        self.number, self.rules, self.faults, self.forgets = number, rules, faults, forgets
        self.count = count = random.choice((1, 1, 1, 2))
        self.draws = not (forgets and random.random() < 0.5)
        # Not all faults in every story: what is lost, or left behind, would cover up what is counted twice.
        self.deadly = random.random() < 0.5
        self.loses, self.doubles = random.choice(((0.1, 0.1), (0.3, 0.0), (0.0, 0.3)))
        self.overruns = not forgets and random.random() < 0.4
        self.handed_over = [0] * count  # what the pool has to repay for others, so far
        kind = random.random() if self.draws else 0.0
        self.budget = [random.choice((0, 1, 3, 12)) if kind < 0.7 else 0 for _ in range(count)]
        start = tuple([random.choice((0, 0, 30, 200)) if self.draws else 0 for _ in range(count)])
        self.hourly = tuple([random.choice((0, 0, 500)) if kind > 0.4 else 0 for _ in range(count)])
        self.caps = (100,) * count
        self.account = open_account(start, tuple((rate, HOUR) for rate in self.hourly), self.caps)
        self.rows: dict[str, Row] = {}
        self.income = list(start)  # from outside, but for the clock
        self.now = self.first = self.latest = 1_700_000_000_000
        self.account = mint(self.account, self.now)
        self.workers: list[Worker] = []
        self.said: dict[str, protocol.Sums] = {}  # what the store has taken in of each life, as we saw it
        self.wires: list[tuple[Worker, Hello | Sync | Answer]] = []
        self.estates: dict[str, list[tuple[Worker, int]]] = {}  # what closed lives have left open
        self.copies: list[tuple[Account, dict[str, Row], dict[str, protocol.Sums]]] = []
        self.steps = 0
        for _ in range(random.randint(1, 3)):
            self.begin()

    # What can happen.

    def begin(self) -> None:
        """A worker says hello."""
        if len(self.workers) < MOST_WORKERS:
            worker = Worker(f"w{len(self.workers)}", self.count)
            self.workers.append(worker)
            self.speak(worker)

    def ask(self, worker: Worker) -> None:
        """A round: its budget arrives, and if the largest cost is covered, it is reserved."""
        worker.rounds += 1
        for d, units in enumerate(self.budget):
            worker.minted[d] += units
        largest = self.random.choice(LARGEST)
        if not worker.closing and min(worker.headroom()) >= largest:
            worker.open.append(largest)
            for d in range(self.count):
                worker.reserved[d] += largest

    def work(self, worker: Worker) -> None:
        """Some rounds."""
        for _ in range(self.random.choice((1, 2, 12))):
            self.ask(worker)

    def tell(self, worker: Worker) -> None:
        """An outcome; one that has said goodbye takes in no more."""
        if worker.open and not worker.closing:
            largest = worker.open.pop()
            for d in range(self.count):
                cost = self.cost(largest)
                worker.reserved[d] -= largest
                worker.spent[d] += cost
                worker.overrun[d] += max(cost - largest, 0)
            arm = self.random.choice(ARMS)
            pulls, total = worker.sums[arm]
            worker.sums[arm] = pulls + 1, total + self.random.randint(0, 9)
            if min(worker.left()) < 0 and self.random.random() < 0.5:
                self.close(worker)

    def cost(self, largest: int) -> int:
        """What a decision has cost: now and then more than was reserved."""
        if self.overruns and self.random.random() < 0.4:
            return largest + self.random.choice((1, 10, 40))
        return self.random.choice((0, largest, largest))

    def speak(self, worker: Worker, target: int | None = None) -> None:
        """A worker puts a message on the wire, and wants to have so much."""
        if worker.standing.row == 0:
            self.wires.append((worker, Hello(worker.name, worker.name, worker.standing.after)))
            return
        if worker.answer is not None and worker.lent is None and not worker.closing:
            share = protocol.share_of_debt(worker.answer, tuple(worker.left()))
            worker.standing, worker.answer = give_back(worker.standing, share), None
        target = self.random.choice((0, 1, 4)) * TARGET if target is None else target
        wanted = (target if self.draws else 0,) * self.count
        worker.standing, message = compose(worker.standing, worker.figures(), wanted, closing=worker.closing)
        self.wires.append((worker, message))

    def hand_back(self, worker: Worker, share: float) -> None:
        """A worker gives some of its headroom back."""
        if worker.standing.row == 0 or worker.lent is not None or not self.draws:
            return
        units = tuple([int(max(left, 0) * share) for left in worker.headroom()])
        if worker.closing and not self.rules.forgets_debt:
            debt = [min(left, 0) for left in worker.left()]
            self.handed_over = list(map(int.__sub__, self.handed_over, debt))
            units = protocol.plus(units, tuple(debt))
        worker.standing = give_back(worker.standing, units)
        if self.rules.debits_late:
            worker.lent = worker.standing.seq + 1, units
        self.speak(worker)

    def close(self, worker: Worker) -> None:
        """A worker hands everything back, and ends when it is answered."""
        worker.closing = True
        self.hand_back(worker, 1.0)

    def deliver(self) -> None:
        """A message arrives: any of those that are on their way, or none, or it will come once more."""
        if not self.wires:
            return
        chance = self.random.random() if self.faults else 1.0
        place = self.random.randrange(len(self.wires)) if self.faults else 0
        comes_again = chance < self.doubles
        worker, message = self.wires[place] if comes_again else self.wires.pop(place)
        if not comes_again and chance < self.doubles + self.loses:
            return
        if isinstance(message, Answer):
            self.hear(worker, message)
        else:
            self.wires.append((worker, self.at_store(message)))

    def at_store(self, message: Hello | Sync) -> Answer:
        """One transaction of the store."""
        if self.forgets:
            self.copies = [*self.copies[-4:], (self.account, dict(self.rows), dict(self.said))]
        self.account = mint(self.account, self.now)
        before = self.rows.get(message.life)
        row: Row | None
        if isinstance(message, Hello):
            self.account, row, answer = greet(self.account, before, message, self.now)
        else:
            if before is not None and before.number == message.row and message.seq > before.seq:
                self.said[message.life] = message.sums
            self.account, row, answer = self.rules.receive(self.account, before, message, self.now)
        if row is None:
            if before is not None and not self.forgets:
                worker = next(worker for worker in self.workers if worker.name == message.life)
                worker.has_closed = True
                if min(worker.left()) < 0:
                    raise Broken(f"{worker.name} has closed and owes {worker.left()} units")
                if worker.open:
                    self.estates[message.life] = [(worker, largest) for largest in worker.open]
            self.rows.pop(message.life, None)
        else:
            self.rows[message.life] = row
        return answer

    def hear(self, worker: Worker, answer: Answer) -> None:
        """An answer arrives at a worker."""
        if not worker.alive:
            return
        if answer.row == 0:
            if worker.closing and not self.forgets:
                worker.alive = False  # closed by a message whose answer was lost
            elif worker.standing.row:
                worker.begin_again()
            return
        worker.standing, _ = self.rules.take(worker.standing, answer)
        worker.answer = answer
        if worker.lent is not None and answer.seq >= worker.lent[0]:
            worker.lent = None
        if worker.closing and worker.standing.row == answer.row and answer.seq == worker.standing.seq:
            worker.alive = False

    def inherit(self) -> None:
        """News of a decision that a worker left open when it closed reaches the store."""
        life = self.random.choice(list(self.estates)) if self.estates else None
        if life is not None:
            worker, largest = self.estates[life].pop()
            charged = self.cost(largest)
            self.account = protocol.settle_estate(self.account, (largest,) * self.count, (charged,) * self.count)
            for d in range(self.count):  # the truth, whoever knows it
                worker.reserved[d] -= largest
                worker.spent[d] += charged
                # The life is over, and the pool has got or paid the difference.
                worker.overrun[d] += max(charged - largest, 0)
                self.handed_over[d] += max(charged - largest, 0)
            if not self.estates[life]:
                del self.estates[life]

    def declare_dead(self) -> None:
        """An operator closes a worker, who may live."""
        if self.rows:
            life = self.random.choice(list(self.rows))
            self.account, self.rows[life] = self.rules.declare_dead(self.account, self.rows[life])

    def pass_time(self) -> None:
        """The store's clock goes on, or jumps."""
        jumps = (60_000,) if not self.faults else (1000, 60_000, HOUR, -HOUR)
        self.now += self.random.choice(jumps)
        self.latest = max(self.latest, self.now)

    def credit(self) -> None:
        """Money from outside."""
        if self.draws:
            units = tuple([self.random.choice((0, 25)) for _ in range(self.count)])
            self.account = pay_in(self.account, units)
            self.income = list(map(int.__add__, self.income, units))

    def forget(self) -> None:
        """The store loses what it had acknowledged."""
        if self.copies:
            self.account, rows, said = self.random.choice(self.copies)
            self.rows, self.said = dict(rows), dict(said)

    def step(self) -> None:
        """Something happens."""
        alive = [worker for worker in self.workers if worker.alive]
        what = self.random.random()
        if what < 0.3 or not alive:
            self.deliver()
            if not alive:
                self.begin()
            return
        worker = self.random.choice(alive)
        if what < 0.55:
            self.work(worker)
        elif what < 0.7:
            self.tell(worker)
        elif what < 0.84:
            self.speak(worker)
        elif what < 0.88:
            self.hand_back(worker, self.random.choice((0.5, 1.0)))
            self.work(worker)  # it goes on meanwhile
        elif what < 0.9:
            self.close(worker)
        elif what < 0.92:
            self.begin()
        elif what < 0.93:
            self.inherit()
        elif what < 0.945:
            self.pass_time()
        elif what < 0.96:
            self.credit()
        elif not self.faults:
            self.deliver()
        elif what < 0.975:
            worker.alive = not self.deadly  # killed
        elif what < 0.99 or not self.forgets:
            self.declare_dead()
        else:
            self.forget()

    def squeeze(self) -> None:
        """Everybody spends all there is to spend, to the last unit: whatever was counted twice shows now."""
        for worker in self.workers:
            if worker.alive and not worker.closing:
                for d, left in enumerate(worker.headroom()):
                    worker.spent[d] += max(left, 0)

    # What must hold.

    def check(self) -> None:
        """The promise, by the true books; and that the store's figures agree with each other."""
        account, past = self.account, self.account.past
        for worker in self.workers:
            if any(left < -over for left, over in zip(worker.left(), worker.overrun, strict=True)):
                raise Broken(f"{worker.name} has {worker.left()} units left, with overruns of {worker.overrun}")
        for d in range(self.count):
            used = sum([worker.spent[d] + worker.reserved[d] for worker in self.workers])
            minted = sum([worker.minted[d] for worker in self.workers])
            by_clock = self.hourly[d] * (self.latest - self.first) // HOUR
            # What the clock has brought is what the store says, and no more than the hours that have passed.
            came = account.income[d] - self.income[d]
            if not self.forgets and not 0 <= came <= by_clock:
                raise Broken(f"the clock has brought {came} units, at most {by_clock} can be")
            line = minted + self.income[d] + (by_clock if self.forgets else came)
            owed = self.owed(d) if self.overruns else 0
            if used > line + owed:
                raise Broken(f"{used} units are spent and reserved, {line} have come in, {owed} are owed")
            if self.forgets:
                continue
            returned = past.returned[d] + sum([row.returned[d] for row in self.rows.values()])
            granted = past.granted[d] + sum([row.granted[d] for row in self.rows.values()])
            if account.pool[d] != account.income[d] + returned - granted:
                raise Broken(f"the pool has {account.pool[d]} units, {account.income[d]} + {returned} - {granted} came")
            if account.pool[d] < -self.handed_over[d]:
                raise Broken(f"the pool has {account.pool[d]} units, {self.handed_over[d]} were handed over to it")

    def owed(self, d: int) -> int:
        """What somebody is going to repay: the pool, and workers that have not closed.

        A debt that was handed over, and the pool has not heard of, is still the worker's.
        """
        owed = max(-self.account.pool[d], 0)
        for worker in self.workers:
            if not worker.has_closed:
                row = self.rows.get(worker.name)
                unheard = 0 if row is None else row.returned[d] - worker.standing.returned[d]
                owed += max(-worker.left()[d], unheard, 0)
        return owed

    def mend(self) -> None:
        """The wires are mended, everybody speaks and draws all there is: two exchanges later the store knows all."""
        self.wires.clear()
        for _ in range(3 if self.forgets else 2):
            for worker in self.workers:
                if worker.alive:
                    self.speak(worker, target=ALL)
                    _, message = self.wires.pop()
                    assert not isinstance(message, Answer)
                    self.hear(worker, self.at_store(message))
        self.check()
        if self.forgets:
            return
        for worker in self.workers:
            if worker.alive and self.said.get(worker.name, {}) != worker.sums:
                raise Broken(f"the store has not heard all of {worker.name} after two exchanges")
        total: dict[str, tuple[int, ...]] = {}
        for sums in self.said.values():
            total = protocol.add_sums(total, sums)
        if dict(self.account.sums) != total:
            raise Broken(f"the store knows {dict(self.account.sums)}, its workers have said {total}")

    def play(self) -> Verdict:
        """The whole of it."""
        problem = None
        try:
            for _ in range(STEPS):
                self.step()
                self.steps += 1
                self.check()
            self.squeeze()
            self.mend()
            self.squeeze()
            self.check()
        except Broken as error:
            problem = f"step {self.steps}: {error}"
        return Verdict(self.number, problem, self.steps, self.draws)


def play_stories(
    stories: Iterable[int],
    seed: int,
    rules: Rules | None = None,
    *,
    faults: bool = True,
    forgets: bool = False,
    until_broken: bool = False,
    say: Callable[[int], Any] | None = None,
) -> list[Verdict]:
    """Play stories by their numbers; those in which something was wrong come first in what is given back.

    >>> [verdict.problem for verdict in play_stories(range(20), seed=1)] == [None] * 20
    True
    """
    found: list[Verdict] = []
    for number in stories:
        verdict = Story(seed, number, rules or Rules(), faults, forgets).play()
        found.append(verdict)
        if say is not None:
            say(len(found))
        if until_broken and verdict.problem:
            break
    return sorted(found, key=lambda verdict: verdict.problem is None)

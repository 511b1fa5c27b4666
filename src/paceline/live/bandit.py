"""Bandit: decisions in a running program, under a budget that late, lost or wrong news cannot overdraw."""

import logging
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from threading import RLock
from types import TracebackType

from paceline import checks
from paceline.errors import InvalidPolicy, InvalidValue, PacelineError, UnknownName
from paceline.kernels.state import GUARD, SKIP
from paceline.live import recovery, snapshot
from paceline.live.arms import ACTIVE, PAUSED, RETIRED
from paceline.live.change import Change
from paceline.live.config import make_config
from paceline.live.decision import Decision, as_decision
from paceline.live.journal import Journal
from paceline.live.ledger import Ledger
from paceline.live.resource import DOWN, UP
from paceline.live.view import View
from paceline.policies import PolicyLike

LOG = logging.getLogger("paceline")

NO_ARM_ACTIVE = "no arm is active"

Amount = float | Mapping[str, float]  # of one resource, or of several by name
MaxCost = float | Mapping[str, float] | Mapping[str, float | Mapping[str, float]]


class Bandit(View):
    """Choose an arm, round by round, and learn from what it brings; never spend more than was credited.

    ``arms``        names. Arms may come and go later.
    ``budget``      income per round, in the unit of costs; 0 if all of it comes by `credit`.
    ``policy``      a name or an object, as in `simulate`.
    ``max_cost``    the largest possible cost of a pull: one for all arms, or {name: cost}.
    ``max_reward``  the largest possible reward of a pull.
    ``seed``        of the policy's own draws.
    ``scale``       the cost that counts as 1 to the policy: the largest ``max_cost`` (or the budget, if larger) unless
                    room must be left for more expensive arms to come.
    ``start``       the stock before the first round; 0 unless given.
    ``cap``         the most that can be in stock, as in a battery; what would be above it is lost.
    ``max_refill``  how much a pull may bring back; a cost may then be as low as -max_refill.
    ``rounds``      how many rounds a start stock without income has to last, and the horizon of a policy that needs it.
    ``expires``     seconds after which a decision that is not settled expires, unless `ask` says otherwise.
    ``silence``     the reward that is meant when a decision expires with all costs but no reward, such as 0 for no
                    click; nothing is learned from it unless this is given.
    ``remember``    how many settled decisions are kept to recognise news that comes twice, and how many expired ones to
                    be corrected by a late cost.
    ``journal``     a new file that every event is written to before the call returns; see `open`.
    ``clock``       the time in seconds, for expiry alone.

    With several resources ``budget`` is a mapping by their names, such as {"money": 0.5, "calls": 1.0}, and so are
    ``max_cost``, ``scale``, ``start``, ``cap`` and ``max_refill``, the costs that are told, and the amounts that can be
    seen. (A ``max_cost`` that is a number is for all resources.)

    The promise, for each resource: after every call  spent + reserved <= credited,  where credited is the start stock,
    the budget of the rounds so far and what `credit` added. A decision reserves the largest cost of its arm until its
    cost is told, it is cancelled, or it expires (then the reservation is charged in full, and a late true cost corrects
    it). So the promise does not hang on when, in what order, or whether news comes; only on no pull costing more than
    its ``max_cost``.

    One Bandit may be used from many threads. A refused call changes nothing.

    >>> bandit = Bandit(arms=["banner", "video"], budget=0.5, seed=7)
    >>> decision = bandit.ask()
    >>> decision.id, decision.arm, decision.reason
    (1, None, 'headroom 0.5 < largest cost 1')
    >>> decision = bandit.ask()
    >>> bandit.tell(decision.id, reward=0.7, cost=0.25)
    >>> bandit.spent, bandit.headroom, bandit.rounds
    (0.25, 0.75, 2)
    >>> bandit = Bandit(["a", "b"], {"money": 0.5, "calls": 1.0}, max_cost={"money": {"a": 0.2, "b": 1}, "calls": 1})
    >>> while (decision := bandit.ask()).arm is None:
    ...     pass
    >>> bandit.tell(decision.id, reward=0.7, cost={"calls": 1.0})
    >>> bandit.tell(decision.id, cost={"money": 0.125})  # known later
    >>> bandit.spent
    {'money': 0.125, 'calls': 1.0}
    """

    def __init__(
        self,
        arms: Sequence[str],
        budget: Amount = 0.0,
        policy: PolicyLike = "index",
        max_cost: MaxCost = 1.0,
        max_reward: float = 1.0,
        seed: int = 0,
        *,
        scale: Amount | None = None,
        start: Amount | None = None,
        cap: Amount | None = None,
        max_refill: Amount | None = None,
        rounds: int | None = None,
        expires: float | None = None,
        silence: float | None = None,
        remember: int = 10_000,
        journal: str | os.PathLike[str] | None = None,
        fsync: bool = False,
        snapshot_every: int | None = recovery.SNAPSHOT_EVERY,
        clock: Callable[[], float] = time.time,
    ) -> None:
        check_options(clock, fsync, snapshot_every)
        if journal is not None:
            check_path("journal", journal)
        config = make_config(
            arms=arms,
            budget=budget,
            policy=policy,
            max_cost=max_cost,
            max_refill=max_refill,
            max_reward=max_reward,
            scale=scale,
            start=start,
            cap=cap,
            rounds=rounds,
            seed=seed,
            remember=remember,
            expires=expires,
            silence=silence,
        )
        self._start(Ledger(config), clock)
        if journal is not None:
            self._keep(recovery.begin_journal(journal, self._ledger, fsync), snapshot_every, 0)

    def _start(self, ledger: Ledger, clock: Callable[[], float]) -> None:
        """The parts that every bandit has."""
        self._ledger = ledger
        self._clock = clock
        self._lock = RLock()
        self._change = Change()
        self._journal: Journal | None = None
        self._snapshot_every: int | None = None
        self._next_snapshot = math.inf
        self.recovered: str | None = None

    def _keep(self, journal: Journal, snapshot_every: int | None, snapshot_lines: int) -> None:
        """Write every event to a journal from now on; the next snapshot is so many lines after the last."""
        if snapshot_every is not None:
            self._next_snapshot = snapshot_lines + snapshot_every
        self._snapshot_every = snapshot_every
        self._journal = journal

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        policy: PolicyLike | None = None,
        fsync: bool = False,
        snapshot_every: int | None = recovery.SNAPSHOT_EVERY,
        clock: Callable[[], float] = time.time,
    ) -> "Bandit":
        """Go on with a journal: the same bandit, bit for bit, as the one that wrote it.

        A last line torn by a crash was never acknowledged; it is dropped, and ``recovered`` says so (a warning is
        logged too). ``fsync`` syncs every event to the disk before the call returns, which survives a loss of power;
        without it, events survive the death of the process, and `sync` is there for the moments that matter. A snapshot
        every so many events bounds the time that this takes.

        ``policy`` is needed for a policy of your own only: an object with the same parameters as before, or
        "module:Class" or "file.py:Class", to which the parameters in the file are given.
        """
        check_options(clock, fsync, snapshot_every)
        check_path("journal", path)
        found = recovery.reopen_journal(path, policy, fsync)
        bandit = cls.__new__(cls)
        bandit._start(found.ledger, clock)
        bandit._keep(found.journal, snapshot_every, found.snapshot_lines)
        bandit.recovered = found.report
        if found.report:
            LOG.warning("%s", found.report)
        return bandit

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, policy: PolicyLike | None = None, clock: Callable[[], float] = time.time
    ) -> "Bandit":
        """The bandit that `save` wrote: the same future decisions, bit for bit. It has no journal.

        ``policy`` is as in `open`.
        """
        check_options(clock)
        check_path("path", path)
        bandit = cls.__new__(cls)
        bandit._start(snapshot.load(path, policy), clock)
        return bandit

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one readable JSON file, all or nothing."""
        check_path("path", path)
        with self._lock:
            self._change.check_books()
            try:
                snapshot.write_file(path, snapshot.describe_ledger(self._ledger))
            except OSError as error:
                raise PacelineError(f"{path} must be a file to write to, but: {error.strerror or error}") from error

    # Rounds and news.

    def ask(self, expires: float | None = None) -> Decision:
        """Begin a round: its budget arrives, and the policy decides.

        ``expires`` is in seconds from now. An arm that comes back waits for `tell` or `cancel`. An error that the code
        of a policy of your own raises comes through as it is; the round has not begun then, and may be asked for again.
        """
        if expires is not None:
            checks.real("expires", expires, 0, above_low=True)
        with self._lock:
            ledger = self._ledger
            lasting = ledger.config.expires if expires is None else expires
            deadline = None if lasting is None else self._now() + float(lasting)
            if ledger.deadlines:
                self._expire_due()
            with self._change:
                choice = ledger.decide(deadline)
                if isinstance(choice, BaseException):
                    self._write('["failed"]')
                else:
                    slot, reason, tag = choice
                    if self._journal is not None:
                        tail = "" if deadline is None else f",{deadline!r}"
                        self._write(f'["ask",{slot},{reason},{tag}{tail}]')
            if isinstance(choice, BaseException):
                raise choice
            if reason == GUARD:
                return self._refusal(tag)
            arm_set = ledger.arm_set
            other = arm_set.name_at[tag] if ledger.tag_is_arm else None
            likely = ledger.propensity(slot, reason, tag) if ledger.is_random else None
            return as_decision(
                (ledger.rounds, arm_set.name_at[slot], ledger.situations[reason], other, None, None, None, likely)
            )

    def _now(self) -> float:
        """The time."""
        return checks.real("the time that clock gives", self._clock())

    def _refusal(self, slot: int) -> Decision:
        """The answer for a round in which the guard let nothing be pulled, or not the arm in this slot.

        A choice that no policy may make is refused, too: then the round is sat out, and the mistake is raised.
        """
        ledger = self._ledger
        arm_set, config = ledger.arm_set, ledger.config
        if ledger.mistake is not None:
            raise ledger.mistake
        likely = ledger.propensity(SKIP, GUARD, slot) if ledger.is_random else None
        if not arm_set.slots:
            return Decision(ledger.rounds, None, NO_ARM_ACTIVE, propensity=likely)
        d, largest = arm_set.find_shortage(slot)
        resource = config.resources[d]
        headroom = resource.currency.amount(int(arm_set.books.headroom[d]))
        name = None if ledger.is_unnamed else resource.name
        refused = arm_set.name_at[slot]
        return Decision(ledger.rounds, None, ledger.situations[GUARD], refused, headroom, largest, name, likely)

    def tell(self, id: int, reward: float | None = None, cost: Amount | None = None) -> None:
        """What a decision has brought: reward, costs, or some of it now and the rest later.

        Telling the same again changes nothing; other numbers are refused. The policy learns once all is known; a cost
        frees what was reserved of its resource beyond it at once.
        """
        number = id if type(id) is int else check_id(id)
        with self._lock:
            ledger = self._ledger
            costs = (cost,) if ledger.is_unnamed else ledger.config.in_order("cost", cost)
            if ledger.deadlines:
                self._expire_due()
            with self._change:
                if ledger.tell(number, reward, costs) and self._journal is not None:
                    told = ",".join([as_json(cost, UP) for cost in costs])
                    self._write(f'["tell",{number},{as_json(reward)},{told}]')

    def cancel(self, id: int) -> None:
        """A decision was never acted on: its reservation is released, nothing is learned."""
        self._settle_without_outcome(id, "cancel")

    def expire(self, id: int) -> None:
        """Give up waiting for a decision.

        Without a cost its reservation is charged in full, until a late true cost corrects it. With a cost but no reward
        it is told ``silence``, if the bandit has one; else nothing is learned until a late reward comes.
        """
        self._settle_without_outcome(id, "expire")

    def _settle_without_outcome(self, id: int, how: str) -> None:
        number = check_id(id)
        with self._lock:
            self._expire_due()
            happen = self._ledger.cancel if how == "cancel" else self._ledger.expire
            with self._change:
                if happen(number):
                    self._write(f'["{how}",{number}]')

    def _expire_due(self) -> None:
        """Expire what is due by the clock."""
        ledger = self._ledger
        if not ledger.deadlines:
            return
        now = self._now()
        while (number := ledger.due(now)) is not None:
            name = ledger.arm_set.names[ledger.pending[number].slot]
            with self._change:
                ledger.expire(number)
                self._write(f'["expire",{number}]')
            LOG.info("decision %d (%s) expired: a cost that is not known is charged in full", number, name)

    def credit(self, amount: Amount, over: int = 0) -> None:
        """Income besides the budget of each round: at once, or in equal parts ``over`` the rounds to come.

        A policy takes all headroom as leave to spend. A weekly grant that should last the week is better credited over
        the rounds of a week; what is still held back then is spread anew together with it.
        """
        with self._lock, self._change:
            amounts = self._ledger.config.in_order("credit", amount)
            self._ledger.credit(amounts, over)
            credited = ",".join([as_json(amount, DOWN) for amount in amounts])
            self._write(f'["credit",{int(over)},{credited}]')

    # Arms.

    def add(self, arm: str, max_cost: Amount | None = None) -> None:
        """A new arm. Its largest costs are those of all arms unless given."""
        with self._lock, self._change:
            self._ledger.add(arm, self._ledger.config.largest_in_order(max_cost))
            largest = self._ledger.arm_set.max_costs[-1]
            self._write(f'["add",{recovery.quote(arm)},{",".join(map(as_json, largest))}]')

    def pause(self, arm: str) -> None:
        """Take an arm out of play. News of its earlier pulls is still taken in."""
        self._set_status(arm, PAUSED)

    def resume(self, arm: str) -> None:
        """Put a paused arm back into play, with all that it has taught."""
        self._set_status(arm, ACTIVE)

    def retire(self, arm: str) -> None:
        """Take an arm out of play for good. News of its earlier pulls is still taken in."""
        self._set_status(arm, RETIRED)

    def _set_status(self, arm: str, status: str) -> None:
        with self._lock, self._change:
            if self._ledger.set_status(arm, status):
                self._write(f'["status",{recovery.quote(arm)},"{status}"]')

    # The journal.

    def _write(self, text: str) -> None:
        """Journal an event that has happened, if there is a journal; now and then a snapshot is due, too."""
        journal = self._journal
        if journal is None:
            return
        journal.append(text)
        if journal.lines >= self._next_snapshot:
            try:
                self._write_snapshot(journal)
            except (OSError, InvalidPolicy) as error:  # a convenience; the journal alone is enough
                LOG.warning("snapshot of %s could not be written: %s", journal.path, error)
                if isinstance(error, InvalidPolicy):
                    self._next_snapshot = math.inf  # it would be the same the next time

    def _write_snapshot(self, journal: Journal) -> None:
        if self._snapshot_every is not None:
            self._next_snapshot = journal.lines + self._snapshot_every
        recovery.write_snapshot(journal, self._ledger)

    def snapshot(self) -> None:
        """Write the state beside the journal, so that opening it again takes in only what came after."""
        with self._lock:
            self._change.check()
            if self._journal is None:
                raise InvalidValue("snapshot must have a journal to go with, got a bandit without one; use save")
            self._write_snapshot(self._journal)

    def sync(self) -> None:
        """Make everything so far survive a loss of power; without a journal there is nothing to do."""
        with self._lock:
            self._change.check()
            if self._journal is not None:
                self._journal.sync()

    def close(self) -> None:
        """Close the journal, which frees it for others; a bandit with a journal cannot be used afterwards."""
        with self._lock:
            if self._journal is not None:
                self._journal.close()
                self._change.closed = True

    def __enter__(self) -> "Bandit":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def check_options(clock: object, fsync: object = False, snapshot_every: object = None) -> None:
    """What says how to keep time and files, not how to decide."""
    if not callable(clock):
        raise InvalidValue(f"clock must be a function that gives the time in seconds, got {clock!r}")
    if not isinstance(fsync, bool):
        raise InvalidValue(f"fsync must be True or False, got {fsync!r}")
    if snapshot_every is not None:
        checks.whole("snapshot_every", snapshot_every, 1)


def check_path(thing: str, value: object) -> None:
    """The path of a file."""
    if not isinstance(value, str | os.PathLike):
        raise InvalidValue(f"{thing} must be the path of a file, got {value!r}")


def check_id(value: object) -> int:
    """The number of a decision."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise UnknownName(f"id must be the number of a decision, got {value!r}")
    return int(value)


def as_json(value: float | None, toward: float | None = None) -> str:
    """A number as JSON, to the last digit; it has passed its check, and is rounded as it was there."""
    if type(value) is float:
        return repr(value)
    return "null" if value is None else repr(checks.real("number", value, toward=toward))

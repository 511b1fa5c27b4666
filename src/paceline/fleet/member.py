"""A `Bandit` whose money and learning are part of a fleet; `join` makes one (joining.py)."""

import logging
import os
import time
from collections import deque
from collections.abc import Callable, Mapping
from threading import Event, Lock, RLock, Thread, current_thread
from types import EllipsisType
from typing import Any, NoReturn
from weakref import ref

from paceline import checks
from paceline.errors import InvalidValue, StoreFailed, UnknownName
from paceline.fleet import exchange, process, protocol
from paceline.fleet.lives import Intent, LifeFile, new_life, owner_of, standing_in, worker_name
from paceline.fleet.protocol import Answer, Hello, Standing, Units
from paceline.fleet.settings import apply_change, config_of, credit_units, for_worker
from paceline.fleet.status import fleet_status
from paceline.fleet.store import Store, WorkerRow, check_name
from paceline.fleet.sums import pulls_of
from paceline.live import recovery
from paceline.live.bandit import Amount, Bandit, MaxCost
from paceline.live.changes import learn_from_others
from paceline.live.options import check_options
from paceline.live.sums import sums_in
from paceline.policies import PolicyLike

LOG = logging.getLogger("paceline")

GROWTH = 1.1  # own rounds since the last exchange at which it is time for another
IDLE = 2.0  # seconds between exchanges when nothing has changed: settings and news may have
LAST_WORDS = 3.0  # seconds that closing tries to reach the store
MOST_UNSENT = 100_000  # news of others that waits for the store

FORKED = object()  # why a member is stopped in a copy of its process, until it begins a life of its own there


class Member(Bandit):
    """A `Bandit` that is a worker of a fleet: made by `join`, with all calls of a `Bandit`.

    `ask` and `tell` are those of a `Bandit`: decisions are made here, in microseconds, from what is known here, and the
    line is guarded here. Another thread exchanges sums and money with the store: when the worker's own rounds have
    grown by a tenth, and after ``sync_every`` seconds if something has changed. If the store cannot be reached the
    worker goes on: it learns from itself alone, and spends what its rounds bring.

    `tell`, `cancel` and `expire` take ids of other workers, too: the news reaches them through the store. `credit`,
    `set`, `add`, `pause`, `resume` and `retire` act on the whole fleet; they raise `StoreFailed` if the store cannot be
    reached. In a forked copy of the process (gunicorn with preload) the member begins a life of its own with the first
    call: it has its own line, and what its parent knew.
    """

    _is_left_open = False  # whether it has begun, and has no journal to go on with

    def __init__(
        self,
        store: Store,
        fleet: str,
        worker: str | None,
        journal: str | os.PathLike[str] | None,
        stale_after: float | None,
        sync_every: float | None,
        clock: Callable[[], float],
        owns_store: bool,
        options: Mapping[str, Any],
    ) -> None:
        self._store, self.fleet, self._owns_store = store, check_name("fleet", fleet), owns_store
        self._given_name, self._name = worker, worker_name(worker)
        self._stale_after = None if stale_after is None else checks.real("stale_after", stale_after, 0, above_low=True)
        self._sync_every = None if sync_every is None else checks.real("sync_every", sync_every, 0, above_low=True)
        self._life_file = None if journal is None else LifeFile(journal)
        self._origin, recorded = store.origin(fleet)
        self._changes: list[dict[str, Any]] = []
        self._is_closed = False
        self._reset()
        try:
            self._begin(journal, clock, options, recorded)
        except BaseException:  # nobody else could close its journal
            self._let_go_of_journal()
            raise

    def _begin(
        self,
        journal: str | os.PathLike[str] | None,
        clock: Callable[[], float],
        options: Mapping[str, Any],
        recorded: list[dict[str, Any]],
    ) -> None:
        """Begin a life, or go on with the one that a journal has."""
        if self._life_file is not None and journal is not None and os.path.exists(self._life_file.path):
            self._reopen(journal, clock, options)
        else:
            if journal is not None and os.path.exists(journal) and os.path.getsize(journal):
                raise InvalidValue(f"journal {journal} must be new, or of a member of fleet {self.fleet}, got another")
            self._standing = no_standing(new_life(self._name), self._origin)
            self._keep_life(self._standing)
            settings = for_worker(self._origin)
            super().__init__(**settings, worker=self._standing.life, journal=journal, clock=clock, **options)
        self._ledger.ids_name_arms = True
        known = len(self._changes)
        for change in recorded[known:]:
            exchange.take_change(self, change)
        self._call_off_staleness()

    def _let_go_of_journal(self) -> None:
        """Free the journal for others, if it was opened."""
        journal = getattr(self, "_journal", None)
        if journal is not None:
            journal.close()

    def __del__(self) -> None:
        """Nobody has it any more, and nobody has closed it: it stays, until there is time to hand back what it holds.

        That takes an exchange, for which this is not the moment: it may be in the middle of anything.
        """
        if self._is_left_open and not self._is_closed and self._stopped is not FORKED:
            process.keep_for_later(self)

    def _reset(self) -> None:
        """What a life begins with."""
        self._exchange_lock = Lock()
        self._wake = Event()
        self._thread: Thread | None = None
        self._answer: Answer | None = None
        self._cursor = 0
        self._is_stale = False
        self._seen_rounds = 0  # when the store was last told
        self._heard = time.monotonic()  # when it last answered
        self._told = -1  # outcomes known then, and
        self._said: protocol.Sums = {}  # what was learned
        self._others: protocol.Sums | None = None  # what others had learned
        self._trouble: str | None = None  # with the store, if it was said
        self._unsent: deque[tuple[str, dict[str, Any]]] = deque()
        self._pace: tuple[float | None, ...] = ()
        self._pulls: deque[tuple[float, dict[str, float]]] = deque(maxlen=120)  # of the fleet, lately
        self._used: Units = (0,) * len(config_of(self._origin).resources)

    def _reopen(self, journal: str | os.PathLike[str], clock: Callable[[], float], options: Mapping[str, Any]) -> None:
        """Go on with a life: the journal and the file beside it tell all of it."""
        assert self._life_file is not None
        document = self._life_file.read(self.fleet)
        if os.path.exists(journal) and os.path.getsize(journal):
            upkeep = check_options(clock, **options)
            found = recovery.reopen_journal(journal, None, upkeep, 0.0)
            self._start(found.ledger, clock)
            self._keep(found.keeper)
            self._note_opening(found)
        else:  # the file was written, the journal was not
            super().__init__(
                **for_worker(self._origin), worker=document["life"], journal=journal, clock=clock, **options
            )
        self._name = document["name"]
        self._standing = standing_in(document, self._booked())
        _, recorded = self._store.origin(self.fleet)
        self._changes = recorded[: document["version"] - 1]
        self._keep_life(self._standing)

    def _booked(self) -> Units:
        """What the books have of grants and of what went back: none of it is the policy's rate."""
        books = self._ledger.arm_set.books
        return tuple(books.unpaced.tolist())

    def _keep_life(self, standing: Standing, intent: Intent | None = None) -> None:
        """Write down who this is, if there is a journal."""
        if self._life_file is not None:
            self._life_file.write(self.fleet, self._name, len(self._changes) + 1, standing, intent)

    # Exchanges.

    @property
    def version(self) -> int:
        """The version of the settings that are in force here."""
        return len(self._changes) + 1

    @property
    def is_alone(self) -> bool:
        """Whether the last exchange with the store has failed."""
        return self._trouble is not None

    def sync(self) -> None:
        """Exchange sums, money, settings and news with the store now; `StoreFailed` if it cannot be reached."""
        with self._lock:
            if self._stopped is not None:
                self._look_again()
        self._exchange()
        if self._journal is not None:
            super().sync()

    def _exchange(self) -> None:
        """Say all there is to say, and take in the answer; once more, if the settings have changed, to say so."""
        if self._exchange_once():
            self._exchange_once()

    def _exchange_once(self) -> bool:
        """One exchange; whether it has brought other settings."""
        with self._exchange_lock:
            if self._is_closed:
                return False
            try:
                self._send_news()
                answer = self._speak()
            except StoreFailed as error:
                self._note_trouble(str(error))
                raise
            self._heard = time.monotonic()
            self._note_trouble(None)
            self._call_off_staleness()
            exchange.take_in(self, answer)
            self._remember_pulls(answer)
            return bool(answer.changes)

    def _speak(self) -> Answer:
        """Hello, if the store does not know this life, and then the figures."""
        for _ in range(3):
            if self._standing.row == 0:
                self._say_hello()
            with self._lock:
                figures = exchange.figures_of(self)
                if exchange.repay_pool(self, figures):
                    figures = exchange.figures_of(self)
                target = exchange.target_of(self, figures)
                self._standing, message = protocol.compose(self._standing, figures, target, self.version, self._cursor)
                rounds, told = figures.rounds, self._ledger.told
            answer = self._store.sync(self.fleet, message)
            if answer.row:
                self._seen_rounds, self._told, self._said = rounds, told, message.sums
                return answer
            LOG.warning("the store does not know worker %s any more; it begins again", self._name)
            with self._lock:
                self._standing = protocol.begin_again(self._standing)
        raise StoreFailed(f"the store must remember worker {self._name}, and has forgotten it three times")

    def _say_hello(self) -> None:
        """Have a row made, or found."""
        standing = self._standing
        answer = self._store.hello(self.fleet, Hello(standing.life, self._name, standing.after))
        with self._lock:
            self._standing = standing._replace(row=answer.row, seq=max(standing.seq, answer.seq))

    def _note_trouble(self, trouble: str | None) -> None:
        """Say once when the store cannot be reached, and once when it can again."""
        if trouble is not None and self._trouble is None:
            LOG.warning("worker %s of fleet %s goes on alone: %s", self._name, self.fleet, trouble)
        elif trouble is None and self._trouble is not None:
            LOG.info("worker %s of fleet %s has found the store again", self._name, self.fleet)
        self._trouble = trouble

    def _remember_pulls(self, answer: Answer) -> None:
        """For the share of pulls lately."""
        self._pulls.append((time.monotonic(), pulls_of(protocol.add_sums(answer.others, self._said))))

    def _send_news(self) -> None:
        """Send what was told here of decisions of others; what the store refuses must not hold up the rest."""
        while self._unsent:
            owner, news = self._unsent[0]
            try:
                self._store.send(self.fleet, owner, news)
            except InvalidValue as error:
                LOG.warning("news of decision %s cannot be sent on: %s", news["id"], error)
            self._unsent.popleft()

    # The thread.

    def _begin_thread(self) -> None:
        """Exchange by oneself from now on."""
        process.add(self)
        self._is_left_open = self._life_file is None
        if self._sync_every is not None:
            self._thread = Thread(
                target=process.keep_exchanging,
                args=(ref(self), self._wake, self._sync_every),
                daemon=True,
                name="paceline",
            )
            self._thread.start()

    def _is_due(self) -> bool:
        """Whether something has changed since the store was last told, or it is time to look in."""
        ledger = self._ledger
        changed = ledger.rounds != self._seen_rounds or ledger.told != self._told or self._unsent
        patience = IDLE if self._stale_after is None else min(IDLE, self._stale_after / 3.0)
        return bool(changed) or time.monotonic() - self._heard >= patience

    def _look_around(self) -> None:
        """Every hundred rounds: see whether it is time for an exchange."""
        super()._look_around()
        if self._ledger.rounds >= GROWTH * self._seen_rounds:
            self._wake.set()
        self._look_at_staleness()

    def _look_at_staleness(self) -> None:
        """After so long without contact nothing is minted any more."""
        after = self._stale_after
        if after is None or self._is_stale or time.monotonic() - self._heard < after:
            return
        with self._lock:
            if self._stopped is None and not self._is_stale:
                LOG.warning("worker %s of fleet %s: the store was silent for %g seconds", self._name, self.fleet, after)
                config = self._ledger.config
                Bandit.set(self, budget=config.by_name([0.0] * len(config.resources)))
                self._is_stale = True

    def _call_off_staleness(self) -> None:
        """The budget of each round is the fleet's again."""
        wanted = self._origin["budget"]
        for change in self._changes:
            wanted = merged(wanted, change.get("set", {}).get("budget", wanted))
        with self._lock:
            config = self._ledger.config
            if config.by_name([resource.budget for resource in config.resources]) != wanted:
                Bandit.set(self, budget=wanted)
            self._is_stale = False

    # Copies of the process.

    def stop_in_copy(self) -> None:
        """In a forked copy of the process this member begins a life of its own, when it is used."""
        self._lock, self._exchange_lock = RLock(), Lock()
        if self._journal is not None:
            self._journal.close()
        if not self._is_closed:
            self._stopped = FORKED

    def _look_again(self) -> None:
        """As of any bandit; a copy begins its own life."""
        if self._stopped is not FORKED:
            super()._look_again()
            return
        if self._life_file is not None:
            LOG.warning("worker %s: a copy of the process goes on without its parent's journal", self._name)
        known = sums_in(self._ledger.arm_set.all, self._ledger.arm_set.policy)
        self._name = worker_name(self._given_name)
        self._life_file = None
        self._reset()
        self._standing = no_standing(new_life(self._name), self._origin)
        bandit = Bandit(**for_worker(self._origin), worker=self._standing.life, clock=self._clock)
        for change in self._changes:
            apply_change(bandit, change, is_worker=True)
        self._ledger, self._journal, self._keeper, self._commits = bandit._ledger, None, None, False
        self._stopped = None
        self._ledger.ids_name_arms = True
        learn_from_others(self._ledger, known)  # until the store has told
        self._begin_thread()
        self._wake.set()

    # News of others.

    def _number_of(self, id: Any, *news: Any) -> int | None:
        """The number of a decision of ours; news of one of another worker is sent on.

        Once the owner has closed, or an operator has said that it is dead, the news still teaches if it is complete.
        """
        try:
            return super()._number_of(id)
        except UnknownName:
            if not self._is_of_another(id):
                raise
        self._pass_on(id, exchange.news_of(self._ledger, id, *news))
        return None

    def cancel(self, id: int | str) -> None:
        """As of `Bandit`; of a decision of another worker it is sent on."""
        self._end(Bandit.cancel, id, "cancel")

    def expire(self, id: int | str) -> None:
        """As of `Bandit`; of a decision of another worker it is sent on."""
        self._end(Bandit.expire, id, "expire")

    def _end(self, end: Callable[[Bandit, int | str], None], id: int | str, word: str) -> None:
        """The end of a decision without an outcome."""
        try:
            end(self, id)
        except UnknownName:
            if not self._is_of_another(id):
                raise
            self._pass_on(id, {"id": id, word: True})

    def _is_of_another(self, id: int | str) -> bool:
        """Whether an id names a worker, and not this one."""
        return owner_of(id) not in (None, self._standing.life)

    def _pass_on(self, id: int | str, news: dict[str, Any]) -> None:
        """Keep news for another worker until the store takes it."""
        if len(self._unsent) >= MOST_UNSENT:
            raise StoreFailed(f"news of others must wait for the store, and {MOST_UNSENT} wait already")
        self._unsent.append((str(owner_of(id)), news))

    # What is done to the whole fleet.

    def credit(self, amount: Amount, over: int = 0, rate: bool = True, *, key: str | None = None) -> None:
        """Money into the pool, for whichever worker needs it; with the same ``key`` once."""
        if over or not rate:
            raise InvalidValue(f"a credit of a fleet must be at once and as income, got over={over!r}, rate={rate!r}")
        units = credit_units(self._ledger.config, amount)
        self._store.credit(self.fleet, units, self._name, key)
        self._try_exchange()

    def debit(self, amount: Amount, rate: bool = True) -> None:
        """Refused: money leaves a fleet by pulls alone."""
        raise InvalidValue(
            f"debit must be of a bandit of its own, not of a member of a fleet, got {amount!r} ({rate=})"
        )

    @classmethod
    def open(cls, *_: Any, **__: Any) -> NoReturn:
        """Refused: `join` with the journal goes on with a member."""
        raise InvalidValue("the journal of a member must be given to join, got Member.open")

    @classmethod
    def load(cls, *_: Any, **__: Any) -> NoReturn:
        """Refused: a copy of a member would spend its money once more."""
        raise InvalidValue("what a member has saved must be loaded with Bandit.load, got Member.load")

    def merge(self, reports: Mapping[str, Any]) -> None:
        """Refused: a member learns from its fleet; `observe` takes single outcomes."""
        raise InvalidValue(f"reports must be merged by a bandit of its own, not by a member, got {len(reports)}")

    def add(self, arm: str, max_cost: Amount | None = None) -> None:
        """A new arm for the whole fleet. Its name must never have been used."""
        self._change_fleet({"add": {"arm": arm} if max_cost is None else {"arm": arm, "max_cost": max_cost}})

    def pause(self, arm: str) -> None:
        """Take an arm out of play in the whole fleet."""
        self._change_fleet({"pause": arm})

    def resume(self, arm: str) -> None:
        """Put a paused arm back into play in the whole fleet."""
        self._change_fleet({"resume": arm})

    def retire(self, arm: str) -> None:
        """Take an arm out of play for good in the whole fleet."""
        self._change_fleet({"retire": arm})

    def set(
        self,
        *,
        budget: Amount | EllipsisType = ...,
        max_cost: MaxCost | EllipsisType = ...,
        policy: PolicyLike | EllipsisType = ...,
        expires: float | EllipsisType | None = ...,
        silence: float | EllipsisType | None = ...,
        hourly: Amount | EllipsisType = ...,
        period: float | EllipsisType | None = ...,
    ) -> None:
        """Other settings for the whole fleet, as of `Bandit`: here at once, elsewhere with the next exchange."""
        options = {"budget": budget, "max_cost": max_cost, "policy": policy, "expires": expires, "silence": silence}
        options |= {"hourly": hourly, "period": period}
        self._change_fleet({"set": {name: value for name, value in options.items() if value is not ...}})

    def _change_fleet(self, change: Mapping[str, Any]) -> None:
        """Change the settings of the fleet, and have them in force here."""
        self._store.change(self.fleet, change, self._name)
        self._try_exchange()

    def _try_exchange(self) -> None:
        """Exchange now; if the store has gone just now, later."""
        try:
            self.sync()
        except StoreFailed:
            self._wake.set()

    # Looking.

    def workers(self) -> list[WorkerRow]:
        """The workers of the fleet, as the store has them."""
        return self._store.workers(self.fleet)

    def fleet_status(self) -> dict[str, Any]:
        """The whole fleet at one moment, ready for JSON: money, workers, and arms as they are known here."""
        return fleet_status(self, self._store, list(self._pulls))

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, worker {self._name} of fleet {self.fleet}>"

    # The end.

    def close(self) -> None:
        """Hand back what is left, and end this life; with a journal it may go on later.

        Decisions without an outcome stay reserved; news of them is told to any other worker, and what they did not cost
        goes to the pool. If the store cannot be reached within some seconds, what was held is stranded: it is nobody's
        any more.
        """
        if self._is_closed:
            return
        self._is_closed = True
        if self._stopped is FORKED:
            self._stopped = CLOSED_MEMBER  # its parent has what there is to hand back
            return
        self._wake.set()
        try:
            self._hand_back()
        finally:
            process.members().discard(self)
            if self._thread not in (None, current_thread()):
                self._thread.join(LAST_WORDS)
            super().close()
            with self._lock:
                self._stopped = self._stopped or CLOSED_MEMBER
            if self._owns_store:
                self._store.close()

    @property
    def is_over(self) -> bool:
        """Whether nothing may be done any more: closed, or a change that its journal did not take."""
        with self._lock:
            return self._stopped is not None

    def _hand_back(self) -> None:
        """Give back all headroom, and say goodbye; the money is off the line before a word is said of it.

        A debt is handed over as well, unless there is a journal: then the life may go on, and repays it.
        """
        give_up = time.monotonic() + LAST_WORDS
        with self._exchange_lock:  # an exchange that is under way comes to its end
            with self._lock:
                if self._stopped is not None:
                    return
                exchange.hand_over(self, keeps_debt=self._life_file is not None)
                if self._life_file is None:
                    self._stopped = CLOSED_MEMBER  # nothing is spent or learned after the last word
            while True:
                try:
                    self._goodbye()
                except StoreFailed as error:
                    if time.monotonic() > give_up:
                        LOG.warning("worker %s of fleet %s could not hand back: %s", self._name, self.fleet, error)
                        return
                    time.sleep(0.1)
                else:
                    return

    def _goodbye(self) -> None:
        """The last message; nothing is drawn with it. With a journal the life may go on, and keeps its row."""
        self._send_news()
        if self._standing.row == 0:
            self._say_hello()
        closing = self._life_file is None
        with self._lock:
            figures = exchange.figures_of(self)
            none = (0,) * len(figures.spent)
            self._standing, message = protocol.compose(
                self._standing, figures, none, self.version, self._cursor, closing
            )
            if closing:
                message = message._replace(estate=exchange.estate_of(self._ledger))
        self._store.sync(self.fleet, message)


CLOSED_MEMBER = "this member has left its fleet; join it again"


def merged(before: Any, given: Any) -> Any:
    """Amounts of which some may be given anew, by resource."""
    if isinstance(before, Mapping) and isinstance(given, Mapping):
        return {name: float(given.get(name, value)) for name, value in before.items()}
    return float(given) if not isinstance(given, Mapping) else given


def no_standing(life: str, settings: Mapping[str, Any]) -> Standing:
    """The dealings of a new life: none."""
    none = (0,) * len(config_of(settings).resources)
    return Standing(life, none, none)

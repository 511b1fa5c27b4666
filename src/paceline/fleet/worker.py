"""The life of a worker: how it begins, keeps in touch with the store, goes on in a copy of its process, and ends."""

import logging
import os
import time
from collections import deque
from collections.abc import Callable, Mapping
from threading import Event, Lock, RLock, Thread, current_thread
from typing import Any
from weakref import ref

from paceline import checks
from paceline.errors import InvalidValue, StoreFailed
from paceline.fleet import exchange, process, protocol, staleness
from paceline.fleet.lives import Intent, LifeFile, new_life, standing_in, worker_name
from paceline.fleet.news import Unsent
from paceline.fleet.protocol import Answer, Hello, Standing, Units
from paceline.fleet.settings import apply_change, config_of, for_worker
from paceline.fleet.store import Store, check_name
from paceline.fleet.sums import pulls_of
from paceline.live import recovery
from paceline.live.bandit import Bandit
from paceline.live.changes import learn_from_others
from paceline.live.options import check_options
from paceline.live.sums import sums_in

LOG = logging.getLogger("paceline")

GROWTH = 1.1  # own rounds since the last exchange at which it is time for another
IDLE = 2.0  # seconds between exchanges when nothing has changed: settings and news may have
LAST_WORDS = 3.0  # seconds that closing tries to reach the store

FORKED = object()  # why a worker is stopped in a copy of its process, until it begins a life of its own there
CLOSED = "this member has left its fleet; join it again"


class Worker(Bandit):
    """A `Bandit` with a life in a fleet: it exchanges sums and money with the store, and hands back at its end."""

    # Beside the attributes of a Bandit, not among them: Python is quick to find the attributes of an object that has up
    # to thirty, and `ask` and `tell` look for many.
    __slots__ = (
        "_answer",
        "_changes",
        "_exchange_lock",
        "_given_name",
        "_heard",
        "_is_closed",
        "_is_left_open",
        "_is_stale",
        "_last_news",
        "_life_file",
        "_name",
        "_origin",
        "_others",
        "_owns_store",
        "_pace",
        "_pulls",
        "_said",
        "_seen_rounds",
        "_stale_after",
        "_standing",
        "_store",
        "_sync_every",
        "_thread",
        "_told",
        "_trouble",
        "_unsent",
        "_used",
        "_wake",
        "fleet",
    )

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
        self._is_left_open = False  # whether it has begun, and has no journal to go on with
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
        self._ledger.arm_set.name_arms_in_ids()
        known = len(self._changes)
        for change in recorded[known:]:
            exchange.take_change(self, change)
        staleness.call_off(self)

    def _let_go_of_journal(self) -> None:
        """Free the journal for others, if it was opened."""
        journal = getattr(self, "_journal", None)
        if journal is not None:
            journal.close()

    def __del__(self) -> None:
        """Nobody has it any more, and nobody has closed it: it stays, until there is time to hand back what it holds.

        That takes an exchange, for which this is not the moment: it may be in the middle of anything.
        """
        begun = getattr(self, "_is_left_open", False)  # it is not there where nothing was made but the object
        if begun and not self._is_closed and self._stopped is not FORKED:
            process.keep_for_later(self)

    def _reset(self) -> None:
        """What a life begins with."""
        self._exchange_lock = Lock()
        self._wake = Event()
        self._thread: Thread | None = None
        self._answer: Answer | None = None
        self._last_news: protocol.Heard | None = None
        self._is_stale = False
        self._seen_rounds = 0  # when the store was last told
        self._heard = time.monotonic()  # when it last answered
        self._told = -1  # outcomes known then, and
        self._said: protocol.Sums = {}  # what was learned
        self._others: protocol.Sums | None = None  # what others had learned
        self._trouble: str | None = None  # with the store, if it was said
        self._unsent = Unsent()
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
                self.deliver()
                answer = self._speak()
            except StoreFailed as error:
                self._note_trouble(str(error))
                raise
            self._heard = time.monotonic()
            self._note_trouble(None)
            staleness.call_off(self)
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
                self._standing, message = protocol.compose(
                    self._standing, figures, target, self.version, self._last_news
                )
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

    @property
    def has_unsent(self) -> bool:
        """Whether something that was told here of decisions of others waits for the store."""
        return len(self._unsent) > 0

    def deliver(self) -> None:
        """Have the store take what was told here of decisions of others, before this returns; else `StoreFailed`.

        Until then it waits in the memory of this process, for the next exchange.
        """
        self._unsent.send(self._store, self.fleet)

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
        staleness.look(self)

    # Copies of the process.

    def stop_in_copy(self) -> None:
        """In a forked copy of the process this worker begins a life of its own, when it is used."""
        self._lock, self._exchange_lock = RLock(), Lock()
        self._unsent = Unsent()  # what waits is for the parent to send
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
        self._ledger.arm_set.name_arms_in_ids()
        learn_from_others(self._ledger, known)  # until the store has told
        self._begin_thread()
        self._wake.set()

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
            self._stopped = CLOSED  # its parent has what there is to hand back
            return
        self._wake.set()
        try:
            self._hand_back()
        finally:
            process.members().discard(self)
            if self._thread not in (None, current_thread()):
                self._thread.join(LAST_WORDS)
            try:
                super().close()
            finally:
                with self._lock:
                    self._stopped = self._stopped or CLOSED
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
                    self._stopped = CLOSED  # nothing is spent or learned after the last word
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
        self.deliver()
        if self._standing.row == 0:
            self._say_hello()
        closing = self._life_file is None
        with self._lock:
            figures = exchange.figures_of(self)
            none = (0,) * len(figures.spent)
            self._standing, message = protocol.compose(
                self._standing, figures, none, self.version, self._last_news, closing
            )
            if closing:
                message = message._replace(estate=exchange.estate_of(self._ledger))
        self._store.sync(self.fleet, message)


def no_standing(life: str, settings: Mapping[str, Any]) -> Standing:
    """The dealings of a new life: none."""
    none = (0,) * len(config_of(settings).resources)
    return Standing(life, none, none)

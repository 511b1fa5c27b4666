"""How a call changes the books: under one lock it is checked, written down, and applied; an interrupt leaves it whole.

`Bandit` is what users see; this is what all its calls have in common. What is being done is noted in ``_stopped`` for
the time it takes, so that the next call finds a call that was cut short, and finishes or refuses it.
"""

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import RLock
from typing import Any

from paceline.errors import InvalidValue, JournalFailed
from paceline.interrupts import signals_held
from paceline.live import answers, cut_short, requests
from paceline.live.clock import milliseconds_by
from paceline.live.config import check_seconds
from paceline.live.decision import Decision
from paceline.live.events import Event, Expire, Facts, Failed, write
from paceline.live.forks import watch
from paceline.live.journal import Journal
from paceline.live.keeper import Keeper
from paceline.live.layers import first_rows
from paceline.live.ledger import Ledger, Note, milliseconds
from paceline.live.pulls import ASKED, is_awaited
from paceline.live.status import RECOVERED, STARVING, holding_of, starving
from paceline.policies.code import digest_of_code

LOG = logging.getLogger("paceline")

EXPIRE_AT_ONCE = 32  # decisions that one call lets expire at most
LOOK_AT_ONCE = 10_000  # decisions among which one call looks for the oldest that is waited for
MANY_WAIT = 1000  # decisions without an outcome at which something is said; again when there are twice as many

# Why nothing may be done any more, or what was being done.
ASKING = "asking"
CLOSED_BY_USER = "this bandit was closed; it must be opened again with Bandit.open"
CUT_SHORT = "a call was cut short; the bandit must be opened again with Bandit.open, or loaded"
FAILED = "the journal has failed; the bandit must be opened again with Bandit.open, or saved with save and loaded"
FORKED = "this bandit belongs to process {}; a forked copy must not use it, or the same money would be spent twice"


class Booking:
    """The books, their lock and their journal, and the way every call takes."""

    def _start(self, ledger: Ledger, clock: Callable[[], float]) -> None:
        """The parts that every bandit has."""
        self._ledger = ledger
        self._clock, self._time = clock, milliseconds_by(clock)
        self._lock = RLock()
        self._stopped: object | None = None  # what is being done, or why nothing may be done any more
        self._journal: Journal | None = None
        self._note: Note | None = None  # how an event is written to it
        self._keeper: Keeper | None = None
        self._commits = False  # whether calls wait for the disk
        self._starves = False  # whether it was said
        self._waits = MANY_WAIT  # decisions without an outcome at which something is said
        self.recovered: str | None = None
        watch().add(self)

    def _keep(self, keeper: Keeper) -> None:
        """Write every event to a journal from now on."""
        self._journal, self._keeper, self._note = keeper.journal, keeper, keeper.journal.append
        self._commits = keeper.upkeep.fsync
        self._digest = digest_of_code(self._ledger.config.policy)

    def _ask_specially(self, expires: Any, arms: Any, max_cost: Any, key: Any) -> Decision:
        """A request with facts of its own."""
        expires = check_seconds("expires", expires)
        with self._lock:
            if self._stopped is not None:
                self._look_again()
            ledger, now = self._ledger, self._now()
            self._expire_due(now)
            if isinstance(key, str) and key in ledger.answers:  # whatever has become of the arms since
                decision = answers.again(ledger, key)
            else:
                facts = requests.facts_of(ledger, arms, max_cost, key)
                lasting = ledger.lasting if expires is None else milliseconds(expires)
                decision = self._decide(now, lasting, facts)
        if self._commits:
            self._commit()
        return decision

    def _decide(self, now: int, lasting: int | None, facts: Facts | None = None) -> Decision:
        """Begin a round. If the code of a user's policy raises an error, it has not begun."""
        ledger = self._ledger
        self._stopped = ASKING
        try:
            deadline = None if lasting is None else now + lasting
            decision = ledger.decide_and_begin(now, deadline, facts, self._note)
        except JournalFailed:
            self._let_go_of_round(now)
            raise
        except BaseException:
            if ledger.may_fail and not ledger.has_round_open():
                self._stopped = None
                self._append(write(Failed(now, facts)))
            raise
        self._stopped = None
        self._tend(now)
        if ledger.is_notable:
            self._take_note()
        return decision

    def _let_go_of_round(self, now: int) -> None:
        """The journal has failed in the middle of a round: nobody gets the decision."""
        self._stopped = FAILED
        cut_short.finish_ask(self._ledger, now)

    def _now(self) -> int:
        """The time in milliseconds."""
        return self._time()

    def _number_of(self, id: Any, *news: Any) -> int | None:  # noqa: ARG002  # for those who know others
        """The number of a decision that is told something; None if somebody else is to be told."""
        return requests.number_of(id, self._ledger.config.worker)

    def _get_ready_for_part(self, reward: Any, cost: Any) -> None:
        """Load the code that takes in parts of an outcome, if this is one, before others have to wait for it."""
        ledger = self._ledger
        is_short = not ledger.is_unnamed and isinstance(cost, Mapping) and len(cost) < len(ledger.currencies)
        if (reward is None or cost is None or is_short) and ledger.arm_set.usual_part_calls is None:
            ledger.arm_set.get_ready_for_parts()

    def _open_number(self, id: int | str, now: int) -> int:
        """The number of a decision that is about to be changed; if its time is up it expires first."""
        number = requests.number_of(id, self._ledger.config.worker)
        self._expire_due(now)
        self._expire_if_due(number, now)
        return number

    def _expire_due(self, now: int) -> None:
        """Expire what is due by the clock, a few at a time: the next call goes on."""
        ledger = self._ledger
        if not ledger.deadlines.is_due(now):
            return
        with signals_held():  # what is taken from the queue must expire
            due = ledger.due(now, EXPIRE_AT_ONCE)
            if due:
                self._book(Expire(due, now))
        if due:
            LOG.info("decisions %s expired: a cost that is not known is charged in full", ", ".join(map(str, due)))

    def _expire_if_due(self, number: int, now: int) -> None:
        """Expire a decision whose time is up, if its turn has not come yet."""
        pull = self._ledger.pending.find(number)
        if pull is not None and pull.deadline is not None and pull.deadline <= now:
            event = requests.expire(self._ledger, number, now)
            if event is not None:
                self._book(event)

    def _change(self, request: Callable[[Ledger, int], Event | None]) -> None:
        """Check what is asked for; if there is something to do, write it down and do it."""
        with self._lock:
            if self._stopped is not None:
                self._look_again()
            event = request(self._ledger, self._now())
            if event is not None:
                self._book(event)
        if self._commits:
            self._commit()

    def _book(self, event: Event) -> None:
        """Write an event down, and let it happen; an interrupt waits for the end of it."""
        with signals_held():
            self._stopped = event
            if self._journal is not None:
                self._append(write(event))
            self._ledger.apply(event)
            self._stopped = None
            self._tend(event.time)

    def _append(self, text: str) -> None:
        """Journal an event, if there is a journal."""
        if self._journal is not None:
            with self._failure_noted():
                self._journal.append(text)

    def _look_at(self, journal: Journal) -> None:
        """See whether the journal is still there."""
        with self._failure_noted():
            journal.look()

    @contextmanager
    def _failure_noted(self) -> Iterator[None]:
        """Nothing may be done any more once the journal has failed."""
        try:
            yield
        except JournalFailed:
            self._stopped = FAILED
            raise

    def _tend(self, now: int) -> None:
        """Have snapshots written and segments closed when it is time; the books are those after the last line."""
        if self._keeper is not None and self._keeper.journal.lines >= self._keeper.due:
            with signals_held(), self._failure_noted():
                self._keeper.tend(self._ledger, self._digest, now)

    def _commit(self) -> None:
        """Wait until what was written is on the disk, in a file of its name; threads share a sync."""
        assert self._journal is not None
        with self._lock:  # nobody is just writing, or beginning a new segment
            if not self._journal.closed:
                self._look_at(self._journal)
        with self._failure_noted():
            self._journal.commit(self._journal.lines)

    def _look_again(self) -> None:
        """Something was cut short, or nothing may be done any more."""
        stopped = self._stopped
        if isinstance(stopped, str) and stopped is not ASKING:
            raise JournalFailed(stopped)
        was_telling = type(stopped) is tuple
        if self._journal is not None or not (stopped is ASKING or was_telling):
            raise JournalFailed(CUT_SHORT)
        with signals_held():
            if type(stopped) is tuple:
                cut_short.finish_tell(self._ledger, *stopped)
            else:
                cut_short.finish_ask(self._ledger, self._now())
            self._stopped = None

    def _check_books(self) -> None:
        """Refuse to look at books that may be half changed."""
        if self._stopped not in (None, CLOSED_BY_USER, FAILED):
            self._look_again()

    def stop_in_copy(self) -> None:
        """Called in a forked copy of the process: the bandit is not to be used there."""
        self._lock = RLock()
        self._stopped = FORKED.format(os.getppid())
        if self._journal is not None:
            self._journal.close()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise InvalidValue("a Bandit must not be copied or pickled, or the same money would be spent twice; use save")

    def _take_note(self) -> None:
        """Something is to be said of the last decision, or of the last hundred."""
        ledger = self._ledger
        mistake, is_marked = ledger.mistake, ledger.is_marked
        ledger.is_notable = ledger.is_marked = False
        ledger.mistake = None
        if is_marked:
            self._look_around()
        if mistake is not None:
            raise mistake

    def _look_around(self) -> None:
        """Every hundred rounds: say once when it starves and when news does not come, and again after it was over."""
        ledger = self._ledger
        lately = ledger.turnout.lately(ledger.rounds)
        trouble = starving(*lately, RECOVERED if self._starves else STARVING)
        if trouble is not None and not self._starves:
            LOG.warning("bandit %s starves: %s", self._label(), starving(*lately, holding=holding_of(ledger)))
        elif trouble is None and self._starves:
            LOG.info("bandit %s does not starve any more", self._label())
        self._starves = trouble is not None
        waiting = ledger.count_awaited()
        if waiting >= self._waits:
            oldest = next(filter(is_awaited, first_rows(ledger.pending, LOOK_AT_ONCE)), None)
            LOG.warning(
                "bandit %s: %d decisions wait for their outcome%s; what is reserved for them cannot be spent%s",
                *(self._label(), waiting),
                "" if oldest is None else f", the oldest for {(self._now() - oldest[ASKED]) / 1000.0:.0f} seconds",
                "" if ledger.lasting is not None else " (expires= sets an end to the waiting)",
            )
            self._waits = 2 * waiting
        elif waiting < MANY_WAIT // 2:
            self._waits = MANY_WAIT

    def _label(self) -> str:
        """What to call it in a log."""
        if self._journal is not None:
            return repr(str(self._journal.path))
        return f"of {len(self._ledger.arm_set.names)} arms"

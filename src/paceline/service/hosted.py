"""One bandit behind HTTP: its member of the fleet, its last decisions, and how its amounts went."""

import asyncio
import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from paceline.errors import Conflict, JournalFailed, PacelineError, StoreFailed, UnknownName
from paceline.fleet.member import Member
from paceline.fleet.settings import config_of, credit_amount, credit_units
from paceline.fleet.store import Store
from paceline.live import requests
from paceline.live.record import CANCELLED_STATE, EXPIRED, TOLD, Record
from paceline.live.status import Status
from paceline.service import encoding
from paceline.service.decisions import CANCEL, EXPIRE, TELL, DecisionLog, as_answer
from paceline.service.history import History, by_resource, point_of
from paceline.service.limits import KEPT_ANSWERS, LOOK_PATIENCE, MOST_PENDING
from paceline.service.problems import Problem, status_of

LOG = logging.getLogger("paceline.service")
FRESH = 0.5  # seconds that a picture is shown again if nothing has happened here
APART = 0.05  # seconds between two pictures, if something has
SELDOM = 2.0  # seconds between two pictures that nobody asked for
TAKEN, KNOWN, CONFLICT, UNKNOWN, REFUSED = "taken", "known", "conflict", "unknown", "refused"

InThread = Callable[..., Awaitable[Any]]


class Hosted:
    """A bandit of the store in this process.

    Decisions and news take microseconds and are handled at once; whatever needs the store waits for it in a thread.
    """

    def __init__(self, name: str, member: Member, store: Store, worker: str, in_thread: InThread) -> None:
        self.name, self.member, self.store, self.worker, self.in_thread = name, member, store, worker, in_thread
        self.config = config_of(store.origin(name)[0])  # the resources of a fleet never change
        self.log = DecisionLog()
        self.history = History()
        self.answers: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self.unsure: OrderedDict[str, dict[str, Any]] = OrderedDict()  # answers that the store may have kept, or not
        self.being_answered: dict[str, asyncio.Lock] = {}
        self.state: dict[str, Any] = {}
        self.looked = -SELDOM
        self.looking: asyncio.Task[None] | None = None
        self.began = 0.0  # when it began to look
        self.happened, self.shown = 0, 0  # requests and news so far, and up to the last picture
        self.pending, self.asked, self.asked_then = 0, 0, 0  # when they were last counted; asked for, and before that
        self.streams = 0
        self.counted: tuple[float, Any] = (-1.0, None)  # when the headroom was counted, and what it was

    def status(self) -> Status | None:
        """What this worker sees of the bandit; None where a change was cut short."""
        try:
            return self.member.status()
        except JournalFailed:
            return None

    # Decisions.

    def ask(self, body: dict[str, Any], by: str) -> list[dict[str, Any]]:
        """So many decisions; all or none."""
        member, count = self.member, body.get("count", 1)
        self.check_pending(count)
        options = {name: value for name, value in body.items() if name != "count"}
        now, answers = time.time(), []
        try:
            decisions = []
            for _ in range(count):
                decision = member.ask(**options)
                decisions.append(decision)
                answers.append(as_answer(decision))
            self.log.asked(decisions, self.headroom(now), now, by)
        except BaseException:
            self.take_back(answers)
            raise
        self.asked += count
        self.happened += 1
        return answers

    def headroom(self, now: float) -> Any:
        """What is left after a request. Where many come, it is counted a hundred times a second and no more."""
        if not 0.0 <= now - self.counted[0] < 0.01:
            self.counted = now, self.member.headroom
        return self.counted[1]

    def take_back(self, answers: list[dict[str, Any]]) -> None:
        """Decisions that nobody gets are not acted on."""
        for answer in answers:
            if answer["arm"] is not None:
                with suppress(PacelineError):
                    self.member.cancel(answer["id"])

    def check_pending(self, count: int) -> None:
        """Refuse more decisions than can wait for their outcome; it is counted when it may be near."""
        if self.pending + self.asked - self.asked_then + count > MOST_PENDING:
            self.pending, self.asked_then = self.member.status().pending, self.asked
            if self.pending + count > MOST_PENDING:
                raise Problem(
                    429,
                    f"decisions that wait for their outcome must be at most {MOST_PENDING}, got {self.pending} "
                    f"and {count} more; tell their outcomes, cancel them, or let them expire",
                )

    def check_ask(self, body: dict[str, Any]) -> None:
        """Refuse arms and costs that `ask` would refuse, before anything else of a request is done."""
        requests.facts_of(self.member._ledger, body.get("arms"), body.get("max_cost"), None)

    async def ask_once(self, body: dict[str, Any], by: str, key: str | None) -> list[dict[str, Any]]:
        """The same key gives the same decisions, whichever process is asked; without a key they are new ones."""
        if key is None:
            return self.ask(body, by)
        digest = hashlib.sha256(encoding.write_sorted(sorted(body.items()))).hexdigest()
        lock = self.being_answered.setdefault(key, asyncio.Lock())
        try:
            async with lock:
                kept = self.answers.get(key)
                ours = self.unsure.get(key)
                if kept is None and ours is None:
                    kept = await self.in_thread(self.store.kept_answer, self.name, key)
                if kept is None:
                    kept = await self.keep_answer(key, ours or {"digest": digest, "decisions": self.ask(body, by)})
        finally:
            if not lock.locked():
                self.being_answered.pop(key, None)
        self.answers[key] = kept
        if len(self.answers) > KEPT_ANSWERS:
            self.answers.popitem(last=False)
        if kept["digest"] != digest:
            raise Problem(422, "an Idempotency-Key must come with the same body again, got another body")
        decisions: list[dict[str, Any]] = kept["decisions"]
        return decisions

    async def keep_answer(self, key: str, ours: dict[str, Any]) -> dict[str, Any]:
        """Keep what was decided; if another process was faster, its decisions count, and ours are taken back.

        If the store fails, nobody knows whether it has kept them. They must not be taken back then, for somebody may
        get them from another process and act on them. They wait for the request to come again.
        """
        self.unsure[key] = ours
        if len(self.unsure) > KEPT_ANSWERS:
            self.unsure.popitem(last=False)  # what is reserved for them stays so until they expire
        kept: dict[str, Any] = await self.in_thread(self.store.answer, self.name, key, ours)
        self.unsure.pop(key, None)
        if kept != ours:
            self.take_back(ours["decisions"])
        return kept

    # News.

    def tell(self, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Outcomes, each with what became of it."""
        return self.each(TELL, items, self.tell_one)

    def cancel(self, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Decisions that were never acted on."""
        return self.each(CANCEL, items, self.settle_one(self.member.cancel, (CANCELLED_STATE,)))

    def expire(self, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Decisions that nothing more is expected of."""
        return self.each(EXPIRE, items, self.settle_one(self.member.expire, (EXPIRED, TOLD, CANCELLED_STATE)))

    def observe(self, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Pulls that were made elsewhere."""
        return self.each(None, items, self.observe_one)

    def each(
        self, kind: str | None, items: list[dict[str, Any]], do: Callable[[dict[str, Any]], str]
    ) -> list[dict[str, Any]]:
        """Item by item; what is wrong with one does not touch the others."""
        self.happened += len(items)
        name = "id" if kind else "arm"
        answers: list[dict[str, Any]] = []
        try:
            for item in items:
                try:
                    answers.append({name: item[name], "result": do(item)})
                except PacelineError as error:
                    status = status_of(error)
                    if status >= 500:  # nothing more can be taken now; what was taken is known when it comes again
                        raise
                    result = {404: UNKNOWN, 409: CONFLICT}.get(status, REFUSED)
                    answers.append({name: item[name], "result": result, "detail": str(error)})
        finally:
            if kind is not None:
                self.log.told(kind, time.time(), items, [answer["result"] for answer in answers])
        return answers

    def has_others(self, items: list[dict[str, Any]]) -> bool:
        """Whether there is news of decisions of other processes. Most ids are at hand in the books of this one."""
        numbers = self.member._ledger.numbers
        return any(self.member.is_of_another(item["id"]) for item in items if item["id"] not in numbers)

    async def deliver(self) -> None:
        """News of decisions of other processes is in the store before it is acknowledged: a kill cannot lose it."""
        if self.member.has_unsent:
            await self.in_thread(self.member.deliver)

    def tell_one(self, item: dict[str, Any]) -> str:
        """One outcome. Of most it is plain that nothing was told before: their ids are at hand in the books."""
        id = item["id"]
        record = None if id in self.member._ledger.numbers else self.record(id)
        self.member.tell(id, item.get("reward"), item.get("cost"), overrun=item.get("overrun", False))
        return TAKEN if record is None or has_news(record, item) else KNOWN

    def settle_one(self, settle: Callable[[Any], None], over: tuple[str, ...]) -> Callable[[dict[str, Any]], str]:
        """One end of a decision without an outcome; in some states there is nothing to do."""

        def do(item: dict[str, Any]) -> str:
            record = self.record(item["id"])
            settle(item["id"])
            return KNOWN if record is not None and record.state in over else TAKEN

        return do

    def observe_one(self, item: dict[str, Any]) -> str:
        """One pull that was made elsewhere."""
        self.member.observe(**item)
        return TAKEN

    def record(self, id: int | str) -> Record | None:
        """What the books of this process say of a decision; it may be another's."""
        try:
            record: Record = self.member.look_up(id)
        except (UnknownName, Conflict):
            return None
        return record

    def why(self, id: str) -> dict[str, Any]:
        """A decision, why it was made, and what has become of it."""
        key: int | str = int(id) if id.isascii() and id.isdigit() and len(id) < 20 else id
        found, record = self.log.why(key), self.record(key)
        if found is None and record is None:
            raise UnknownName(f"id must be that of one of the last decisions of this process, got {id[:200]!r}")
        return {"id": key, **(found or {}), "record": None if record is None else record._asdict()}

    # What operators do, to the whole fleet: in force here at once, elsewhere with the next exchange.

    async def change(self, change: dict[str, Any], by: str) -> None:
        """Other settings, or another lot of an arm."""
        await self.in_thread(self.store.change, self.name, change, by)
        await self.after_act(by, change)

    async def credit(self, amount: Any, by: str, key: str | None) -> None:
        """Money that comes in; with the same key once."""
        if await self.in_thread(self.store.credit, self.name, credit_units(self.config, amount), by, key):
            await self.after_act(by, {"credit": amount})

    async def close_worker(self, worker: str, life: str, by: str) -> None:
        """An operator asserts that a worker is dead."""
        await self.in_thread(self.store.close_worker, self.name, worker, life, by)
        await self.after_act(by, {"close": worker})

    async def after_act(self, by: str, what: dict[str, Any]) -> None:
        """Log it, have it in force here, and see it."""
        LOG.info("operator %s: bandit %s: %s", by, self.name, what)
        with suppress(StoreFailed):  # it has happened; the next exchange brings it
            await self.in_thread(self.member.sync, patience=LOOK_PATIENCE)
            self.happened += 1
            await self.show()

    def acts(self, after: int, count: int) -> list[dict[str, Any]]:
        """What operators did, with amounts in the user's unit."""
        found = [act._asdict() for act in self.store.acts(self.name, after, count)]
        for act in found:
            if "credit" in act["what"]:
                act["what"] = {"credit": credit_amount(self.config, act["what"]["credit"])}
        return found

    # Pictures.

    async def look(self, at_most: float) -> None:
        """See to it that the last picture is no older than so many seconds."""
        if time.monotonic() - self.looked >= at_most:
            await self.look_once()

    async def show(self) -> dict[str, Any]:
        """A picture with all that has happened here so far; one look serves all who ask meanwhile."""
        wanted = self.happened
        is_current = self.shown >= wanted and time.monotonic() - self.looked < FRESH
        while not is_current:  # a look that is under way may have begun too early
            await self.look_once()
            is_current = self.shown >= wanted
        return self.state

    async def look_once(self) -> None:
        """Wait for a picture, but not for long if there is an older one: a store that hangs holds nobody up."""
        if self.looking is None or self.looking.done():
            self.looking, self.began = asyncio.create_task(self.take_picture()), time.monotonic()
            self.looking.add_done_callback(lambda look: look.cancelled() or look.exception())  # nobody may wait for it
        if not self.state:
            await asyncio.shield(self.looking)
            return
        done, _ = await asyncio.wait({self.looking}, timeout=max(self.began + LOOK_PATIENCE - time.monotonic(), 0.0))
        if done:
            done.pop().result()  # another look may have begun since
        else:
            await self.take_picture_here()

    async def take_picture(self) -> None:
        """Take a picture; if the store is gone, of what is known here."""
        await asyncio.sleep(max(self.looked + APART - time.monotonic(), 0.0))
        so_far = self.so_far()
        try:
            self.keep(await self.in_thread(self.picture), *so_far)
        except StoreFailed:
            if not self.state:
                raise  # there is nothing to show yet
            await self.take_picture_here()

    async def take_picture_here(self) -> None:
        """The last picture, with what is known here.

        With very many decisions to look through it takes a while, in which others are served. All threads of
        `in_thread` may be waiting for the store.
        """
        so_far = self.so_far()
        here = await asyncio.to_thread(self.member.status)
        known = {"time": time.time(), "store": {"reachable": False}, "here": here.to_dict()}
        self.keep({**self.state, **known}, *so_far)

    def so_far(self) -> tuple[float, int, int]:
        """The time, and what happened and was asked for until now: a picture that is begun now has all of it."""
        return time.monotonic(), self.happened, self.asked

    def keep(self, state: dict[str, Any], looked: float, happened: int, asked: int) -> None:
        """Show a picture from now on, with so much of what happened here."""
        self.state, self.looked, self.shown = state, looked, happened
        self.pending, self.asked_then = state["here"]["pending"], asked
        self.history.add(point_of(state["fleet"], state["time"]))

    def picture(self) -> dict[str, Any]:
        """All that the page shows, in a thread; the store is told first how things stand here."""
        self.member.sync()
        fleet, here = self.member.fleet_status(), self.member.status()
        return {
            "name": self.name,
            "time": time.time(),
            "worker": self.worker,
            "store": {"reachable": True},
            "resources": list(by_resource(fleet["credited"])),
            "fleet": fleet,
            "here": here.to_dict(),
        }


def has_news(record: Record, item: dict[str, Any]) -> bool:
    """Whether an outcome that was taken said something that was not known.

    >>> has_news(Record("pending", 0.5, {"money": None, "calls": 1.0}), {"reward": 0.5, "cost": {"calls": 1.0}})
    False
    """
    if record.state in (TOLD, CANCELLED_STATE):
        return False
    if item.get("reward") is not None and record.reward is None:
        return True
    known = by_resource(record.cost)
    given = item.get("cost")
    return given is not None and any(known.get(name) is None for name in by_resource(given))

"""All bandits of one store in this process: each joins its fleet at the start or when it is first asked for."""

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from paceline.errors import JournalFailed, PacelineError, StoreFailed, in_one_line
from paceline.fleet.joining import join
from paceline.fleet.store import Store
from paceline.service.hosted import SELDOM, Hosted
from paceline.service.limits import MOST_BANDITS, MOST_WARM, STORE_PATIENCE, WARM_PATIENCE
from paceline.service.problems import NotYet, Problem
from paceline.service.threads import LooseThreads

LOG = logging.getLogger("paceline.service")
TICK = 1.0  # seconds between two pictures for those who look on


def name_of_process() -> str:
    """A name for this worker that no other has."""
    host = "".join(letter if letter.isalnum() else "-" for letter in socket.gethostname())[:40].strip("-") or "host"
    return f"{host}-{os.getpid()}-{secrets.token_hex(3)}"


class Host:
    """The bandits of a store.

    ``store``        as `fleet.open_store` gives it.
    ``worker``       the name of this process in every fleet; with journals it must be the same at every start.
    ``journal_dir``  a folder for a journal of each bandit: then not even a crash strands money.
    ``after_join``   is called when one more bandit is here.
    """

    def __init__(
        self,
        store: Store,
        *,
        worker: str | None = None,
        journal_dir: Path | None = None,
        after_join: Callable[[], None] = lambda: None,
    ) -> None:
        self.store, self.journal_dir, self.after_join = store, journal_dir, after_join
        self.worker = worker or name_of_process()
        self.joined: dict[str, Hosted] = {}
        self.joining: dict[str, asyncio.Task[Hosted]] = {}
        self.failed: dict[str, Hosted] = {}  # those whose journal has failed, until they are opened again
        self.threads = LooseThreads(8, "paceline-store")
        self.ticked = asyncio.Event()  # set at the next picture, and replaced
        self.is_stopping = False
        self.is_warming = False  # whether it has begun to open bandits, and is not ready before that is done
        self.streams = 0

    async def in_thread(self, call: Callable[..., Any], *arguments: Any, patience: float = STORE_PATIENCE) -> Any:
        """What needs the store, in a thread; nobody waits for it longer than some seconds."""
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self.threads, call, *arguments)
        try:
            return await asyncio.wait_for(future, patience)
        except TimeoutError:
            raise NotYet(f"the store must answer within {patience:g} seconds") from None

    async def bandit(self, name: str) -> Hosted:
        """The bandit of that name, which joins its fleet now if it has not."""
        found = self.joined.get(name)
        if found is not None:
            return found
        task = self.joining.get(name)
        if task is None:
            self.check_room()
            task = self.joining[name] = asyncio.create_task(self.begin(name))
            task.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody may wait for it
        try:
            return await asyncio.wait_for(asyncio.shield(task), STORE_PATIENCE)
        except TimeoutError:
            raise NotYet(f"bandit {name} is being opened, which takes a while; try again") from None

    async def begin(self, name: str) -> Hosted:
        """Join, however long it takes: what has joined must not be lost because nobody waits for it any more."""
        try:
            hosted = await asyncio.get_running_loop().run_in_executor(self.threads, self.join, name)
            self.joined[name] = hosted
            self.after_join()
            LOG.info("bandit %s: joined as worker %s", name, self.worker)
            return hosted
        finally:
            del self.joining[name]

    async def warm_up(self) -> None:
        """Open the bandits of the store, so that the first request for one need not wait for that."""
        self.is_warming = True
        opening = asyncio.create_task(self.open_first())
        try:
            await asyncio.wait({opening}, timeout=WARM_PATIENCE)
            self.is_warming = False
            await opening
        finally:
            opening.cancel()

    async def open_first(self) -> None:
        """Open one after the other, as many as may be; one that cannot be opened now waits for the first request."""
        for name in (await self.names())[:MOST_WARM]:
            try:
                await self.bandit(name)
            except PacelineError as error:
                LOG.warning("bandit %s: not opened at the start: %s", name, in_one_line(error))

    async def names(self) -> list[str]:
        """The bandits of the store, as soon as it says."""
        while True:
            try:
                found: list[str] = await self.in_thread(self.store.fleets)
            except StoreFailed:
                await asyncio.sleep(TICK)
            else:
                return found

    def check_room(self) -> None:
        """Refuse more bandits than one process can look after."""
        if len(self.joined) >= MOST_BANDITS:
            raise Problem(429, f"bandits in one process must be at most {MOST_BANDITS}")

    def join(self, name: str) -> Hosted:
        """Become a worker of a fleet; if nobody wants one any more by then, leave it again."""
        journal = None if self.journal_dir is None else self.journal_dir / f"{name}.journal"
        failed = self.failed.pop(name, None)
        if failed is not None:
            with suppress(PacelineError):
                failed.member.close()
        try:
            member = join(self.store, name, worker=self.worker, journal=journal)
        except OSError as error:
            raise JournalFailed(f"journal {journal} must be written, but: {error.strerror}") from error
        if self.is_stopping:
            member.close()
            raise NotYet("the service is stopping")
        return Hosted(name, member, self.store, self.worker, self.in_thread)

    def let_go(self, name: str) -> None:
        """The journal of a bandit has failed: with the next request it is opened again, if the disk takes it by then.

        All that was acknowledged is in it. Without journals there is nothing to open. What has failed may be one that
        was let go of before: the one that was opened since is kept.
        """
        hosted = self.joined.get(name)
        if self.journal_dir is not None and hosted is not None and hosted.member.is_over:
            LOG.warning("bandit %s: its journal has failed, and is opened again when it is asked for", name)
            self.failed[name] = self.joined.pop(name)

    async def make(self, name: str, settings: dict[str, Any], by: str) -> bool:
        """Make a bandit; whether it was not there."""
        if name not in self.joined:
            self.check_room()
        made: bool = await self.in_thread(self.store.make, name, settings, by)
        if made:
            LOG.info("operator %s made bandit %s", by, name)
        await self.bandit(name)
        return made

    async def keep_looking(self) -> None:
        """Take pictures: every second for those who look on, now and then for the history."""
        while not self.is_stopping:
            await asyncio.sleep(TICK)
            for hosted in list(self.joined.values()):
                try:
                    await hosted.look(TICK / 2 if hosted.streams else SELDOM)
                except PacelineError as error:
                    LOG.warning("bandit %s: no picture: %s", hosted.name, error)
                    if isinstance(error, JournalFailed):
                        self.let_go(hosted.name)
                except Exception:
                    LOG.exception("bandit %s: no picture", hosted.name)
            self.tick()

    def tick(self) -> None:
        """Tell those who look on that there is something to see."""
        seen, self.ticked = self.ticked, asyncio.Event()
        seen.set()

    def stop(self) -> None:
        """No new requests are coming: streams end."""
        self.is_stopping = True
        self.tick()

    async def close(self) -> None:
        """Every member syncs and hands back what it holds; a store that does not answer holds nobody up for long."""
        self.stop()
        try:
            await asyncio.wait_for(self.hand_back(), STORE_PATIENCE)
        except TimeoutError:
            LOG.warning("the store did not answer within %g seconds: what is held is stranded", STORE_PATIENCE)
        self.threads.shutdown()

    async def hand_back(self) -> None:
        """Close all members, and let go of the store."""
        await self.leave_all()
        await asyncio.gather(*self.joining.values(), return_exceptions=True)  # most leave by themselves, and
        await self.leave_all()  # some had just joined
        await self.in_thread(self.store.close)

    async def leave_all(self) -> None:
        """Close the members that are here."""
        joined, self.joined = self.joined, {}
        closing = [self.in_thread(each.member.close) for each in joined.values()]
        for name, error in zip(joined, await asyncio.gather(*closing, return_exceptions=True), strict=True):
            if error is not None:
                LOG.warning("bandit %s: could not hand back: %s", name, in_one_line(error))

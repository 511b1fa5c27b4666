"""Kept: the life of a bandit in files. It is opened, saved and loaded; its journal is synced, summed up and closed."""

import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from paceline import __version__, checks
from paceline.errors import InvalidValue, PacelineError
from paceline.interrupts import signals_held
from paceline.live import recovery, snapshot
from paceline.live.booking import CLOSED_BY_USER, Booking
from paceline.live.config import notice_of
from paceline.live.events import Opened
from paceline.live.keeper import KEEP, Keeper
from paceline.live.options import check_options, check_path
from paceline.live.picture import picture_of
from paceline.live.segments import check_replaceable
from paceline.policies import PolicyLike

LOG = logging.getLogger("paceline")

SNAPSHOT_EVERY = 100_000


class Kept(Booking):
    """What a bandit does with files."""

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        policy: PolicyLike | None = None,
        wait: float = 0.0,
        fsync: bool = False,
        snapshot_every: int | None = SNAPSHOT_EVERY,
        rotate_every: int | None = None,
        closed: str = KEEP,
        mode: int = 0o600,
        clock: Callable[[], float] = time.time,
    ) -> Self:
        """Go on with a journal: the same bandit, bit for bit, as the one that wrote it.

        A last line that a crash has cut off is dropped, and ``recovered`` says so (a warning is logged too). A journal
        that an earlier version wrote becomes ``name.000001``, and a new file goes on from it: every amount is as it
        was, but what the policy believes is computed anew, and ``recovered`` says so.

        ``policy``          is needed for a policy of your own only: an object with the same parameters as before, or
                            "module:Class" or "file.py:Class", to which the parameters in the file are given. If its
                            code was edited since, ``recovered`` says that its beliefs may differ.
        ``wait``            seconds to wait for a journal that another bandit still has open.
        ``fsync``           every call returns only when its event would survive a loss of power; threads share a sync.
                            Without it, events survive the death of the process, and `sync` is there for the moments
                            that matter.
        ``snapshot_every``  lines after which the state is written beside the journal, in another thread: it bounds the
                            time that opening takes.
        ``rotate_every``    lines after which a new segment is begun: the old one becomes ``name.000001`` and so on.
        ``closed``          what becomes of closed segments that snapshots stand for: "keep", "gzip" or "drop".
        ``mode``            the permissions of new files.
        """
        upkeep = check_options(clock, fsync, snapshot_every, rotate_every, closed, mode)
        check_path("journal", path)
        checks.real("wait", wait, 0)
        found = recovery.reopen_journal(path, policy, upkeep, wait)
        bandit = cls.__new__(cls)
        bandit._start(found.ledger, clock)
        bandit._keep(found.keeper)
        bandit._note_opening(found)
        return bandit

    def _note_opening(self, found: recovery.Reopened) -> None:
        """Write down who goes on with the journal, and say what was amiss."""
        report, digest = found.report, self._digest
        if found.is_old:
            found.keeper.leave_old_format(self._ledger, digest, self._now())
        edited = recovery.notice_of_edit(self._ledger, digest)
        if edited is not None:
            report = edited if report is None else f"{report}; {edited}"
        if self._ledger.digest != digest or report:
            self._note_code()
        self.recovered = report
        if report:
            LOG.warning("%s", report)

    def _note_code(self) -> None:
        """Write down which code goes on with the journal."""
        self._book(Opened(__version__, self._digest, os.getpid(), self._now()))

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, policy: PolicyLike | None = None, clock: Callable[[], float] = time.time
    ) -> Self:
        """The bandit that `save` wrote: the same future decisions, bit for bit. It has no journal.

        ``policy`` is as in `open`. A file that is loaded twice makes two bandits, each with the whole headroom.
        """
        check_options(clock)
        check_path("path", path)
        ledger = snapshot.load(path, policy)
        notice = notice_of(policy, ledger.config.policy)
        bandit = cls.__new__(cls)
        bandit._start(ledger, clock)
        bandit.recovered = notice
        return bandit

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one readable JSON file, all or nothing."""
        check_path("path", path)
        check_replaceable("path", Path(path))
        with self._lock:
            self._check_books()
            self._ledger.config.to_dict()  # a setting that no file can hold is named before all else
            picture = picture_of(self._ledger)
        try:
            snapshot.write_file(path, snapshot.describe_picture(picture))
        except OSError as error:
            raise PacelineError(f"{path} must be a file to write to, but: {error.strerror or error}") from error

    def snapshot(self) -> None:
        """Write the state beside the journal, so that opening it again takes in only what came after."""
        keeper = self._keeper
        if keeper is None:
            raise InvalidValue("snapshot must have a journal to go with, got a bandit without one; use save")
        while not self._begin_snapshot(keeper):
            keeper.finish()  # while others may go on
        keeper.finish()
        if keeper.trouble is not None:
            raise keeper.trouble

    def _begin_snapshot(self, keeper: Keeper) -> bool:
        """Take a picture to be written down, unless the last one is still being written."""
        with self._lock:
            if self._stopped is not None:
                self._look_again()
            self._look_at(keeper.journal)
            if keeper.is_writing():
                return False
            with signals_held():
                keeper.begin_snapshot(self._ledger)
            return True

    def sync(self) -> None:
        """Make everything so far survive a loss of power; without a journal there is nothing to do."""
        with self._lock:
            if self._stopped is not None:
                self._look_again()
        if self._journal is not None:
            self._commit()

    def close(self) -> None:
        """Close the journal, which frees it for others; a bandit with a journal cannot be used afterwards.

        If the journal is not as it was written, because somebody has removed, replaced or cut it, this is said now.
        """
        if self._keeper is not None:
            self._keeper.finish()  # while others may go on
        with self._lock:
            if self._keeper is not None and self._journal is not None:
                self._keeper.finish()
                with signals_held():
                    if self._stopped is None:
                        if not self._journal.closed:
                            self._look_at(self._journal)
                        self._stopped = CLOSED_BY_USER
                    self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

"""The files of a journal while it is written: snapshots, rotation, and what becomes of closed segments.

Nobody who asks waits for any of it. Under the lock of the bandit a picture of the books is taken, which copies little,
and a new segment is begun; another thread writes the picture down, and compresses or drops what is not needed any more.

The promise does not hang on it. The journal is complete without snapshots, and a closed segment is dropped only when
two snapshots on the disk, each whole, stand for it.
"""

import logging
import math
from pathlib import Path
from threading import Thread
from typing import Final, NamedTuple

from paceline import __version__
from paceline.errors import InvalidPolicy, JournalFailed, PacelineError
from paceline.files import left_behind
from paceline.live import snapshot
from paceline.live.journal import Journal, Place
from paceline.live.ledger import Ledger
from paceline.live.picture import picture_of
from paceline.live.segments import FORMAT, Header, closed_segments, compress, rotate

LOG = logging.getLogger("paceline")

KEEP: Final = "keep"
GZIP: Final = "gzip"
DROP: Final = "drop"
CLOSED = (KEEP, GZIP, DROP)
MOST_UNSYNCED = 8  # closed segments that wait for a sync: each is an open file


class Upkeep(NamedTuple):
    """How the files of a journal are kept."""

    fsync: bool = False
    snapshot_every: int | None = 100_000  # lines
    rotate_every: int | None = None  # lines
    closed: str = KEEP  # what becomes of a closed segment
    mode: int = 0o600


def snapshot_paths(path: Path) -> tuple[Path, Path]:
    """The last snapshot stands beside its journal, and the one before it."""
    return Path(f"{path}.snapshot"), Path(f"{path}.snapshot.old")


class Keeper:
    """What a bandit with a journal has besides the journal."""

    def __init__(
        self,
        journal: Journal,
        upkeep: Upkeep,
        segment: int,
        begun: int,
        snapshot_lines: int = 0,
        summed_up: tuple[int, int] = (0, 0),
    ) -> None:
        self.journal, self.upkeep = journal, upkeep
        self.summed_up = summed_up  # the segments that the last snapshot and the one before are in; 0 if not whole
        self.is_tidy = False  # whether what a crash has left was taken away
        self.segment = segment  # that is written to
        self.next_snapshot = math.inf if upkeep.snapshot_every is None else snapshot_lines + upkeep.snapshot_every
        self.next_rotation = self.rotation_after(begun)
        self.due = min(self.next_snapshot, self.next_rotation)  # lines
        self.writer: Thread | None = None
        self.trouble: PacelineError | None = None  # of the last writer

    def tend(self, ledger: Ledger, digest: str, time: int) -> None:
        """Do what is due, and have the rest done elsewhere; if that is still busy, later."""
        lines = self.journal.lines
        if lines >= self.next_rotation:
            self.rotate(ledger, digest, time)
        if lines >= self.next_snapshot and not self.is_writing():
            self.begin_snapshot(ledger)
        waiting = self.next_snapshot if self.next_snapshot > lines else lines + 100
        self.due = min(waiting, self.next_rotation)

    def rotate(self, ledger: Ledger, digest: str, time: int) -> None:
        """Begin a new segment, if the disk lets us."""
        try:
            self.begin_segment(ledger, digest, time)
        except OSError as error:  # the old segment goes on
            LOG.warning("journal %s could not be rotated: %s", self.journal.path, error)
            self.next_rotation = self.rotation_after(self.journal.lines)

    def begin_segment(self, ledger: Ledger, digest: str, time: int) -> None:
        """Go on in a new segment; a snapshot sums up the old one.

        The old one is never looked at again, so this is the last moment to see that it is not as it was written.
        """
        journal = self.journal
        journal.look()
        if self.upkeep.fsync or journal.count_unsynced() >= MOST_UNSYNCED:
            journal.commit(journal.lines)
        before = Place(0, journal.end.crc, journal.lines)
        header = Header(
            FORMAT,
            ledger.config.to_dict(),
            list(ledger.arm_set.names),
            self.segment + 1,
            ledger.rounds,
            before,
            __version__,
            digest,
            time,
        )
        rotate(journal, header, self.upkeep.mode)
        self.segment += 1
        self.next_rotation = self.rotation_after(before.lines)
        self.next_snapshot = journal.lines

    def rotation_after(self, lines: int) -> float:
        """The number of lines at which a segment is full that begins after so many."""
        return math.inf if self.upkeep.rotate_every is None else lines + self.upkeep.rotate_every

    def leave_old_format(self, ledger: Ledger, digest: str, time: int) -> None:
        """Close a segment in an earlier format, and go on in today's; snapshots in the earlier one are of no use."""
        try:
            for stale in snapshot_paths(self.journal.path):
                stale.unlink(missing_ok=True)
            self.begin_segment(ledger, digest, time)
        except OSError as error:
            self.journal.close()
            path, problem = self.journal.path, error.strerror or error
            raise JournalFailed(f"journal {path} must go on in a new file beside it, but: {problem}") from error
        self.due = min(self.next_snapshot, self.next_rotation)

    def is_writing(self) -> bool:
        """Whether the last snapshot is still being written."""
        return self.writer is not None and self.writer.is_alive()

    def begin_snapshot(self, ledger: Ledger) -> None:
        """Take a picture, and have it written down."""
        every = self.upkeep.snapshot_every
        self.next_snapshot = math.inf if every is None else self.journal.lines + every
        try:
            picture = picture_of(ledger)
        except InvalidPolicy as error:  # what cannot be written now cannot be written the next time
            LOG.warning("snapshot of %s could not be written: %s", self.journal.path, error)
            self.next_snapshot = math.inf
            self.trouble = error
            return
        place = [self.segment, *self.journal.end]
        writer = Thread(target=self.write, args=(picture, place), daemon=True)
        try:
            writer.start()
        except RuntimeError as error:  # there may be no room for a thread
            self.trouble = PacelineError(f"snapshot of {self.journal.path} must be written by a thread, but: {error}")
            LOG.warning("%s", self.trouble)
        else:
            self.writer = writer

    def write(self, picture: Ledger, place: list[int]) -> None:
        """Write a picture down. The journal is synced first: a snapshot is never ahead of it."""
        path = self.journal.path
        try:
            self.journal.commit(place[-1])
            last, before = snapshot_paths(path)
            body = {**snapshot.describe_picture(picture), "digest": picture.digest, "journal": place}
            self.tidy_up(last)
            if self.summed_up[0] and last.exists():  # one that is damaged is not kept
                last.replace(before)
                self.summed_up = 0, self.summed_up[0]
            snapshot.write_file(last, body, self.upkeep.mode)
            self.summed_up = place[0], self.summed_up[1]
            self.trouble = None
            self.clear_closed(path)
        except (OSError, PacelineError) as error:  # a convenience; the journal alone is enough
            problem = error.strerror if isinstance(error, OSError) else error
            self.trouble = PacelineError(f"snapshot of {path} must be written, but: {problem}")
            LOG.warning("%s", self.trouble)

    def tidy_up(self, last: Path) -> None:
        """Take away what crashes in the middle of a snapshot have left: nobody else writes one of this journal."""
        if not self.is_tidy:
            for unfinished in left_behind(last):
                unfinished.unlink(missing_ok=True)
        self.is_tidy = True

    def clear_closed(self, path: Path) -> None:
        """Compress or drop the closed segments that two snapshots stand for."""
        if self.upkeep.closed == KEEP:
            return
        needed = min(self.summed_up) if all(map(Path.exists, snapshot_paths(path))) else 0
        for segment, closed in closed_segments(path).items():
            if segment < needed and self.upkeep.closed == DROP:
                closed.unlink()
            elif segment < needed and closed.suffix != ".gz":
                compress(closed, self.upkeep.mode)

    def finish(self) -> None:
        """Wait until the last snapshot is written."""
        if self.writer is not None:
            self.writer.join()

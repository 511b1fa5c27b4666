"""Segments: what is synced is on the disk whichever file it is in, and a disk that refuses a new one stops nothing."""

import logging
import os
from itertools import islice
from pathlib import Path

import pytest
from bookkeeper import abandon, live, state_of, steps
from journals import begin_journal, stopped

from paceline import Bandit
from paceline.live.keeper import MOST_UNSYNCED

EVERY = 10  # lines of a segment


@pytest.fixture
def bandit(tmp_path):
    bandit = begin_journal(tmp_path / "journal", rotate_every=EVERY, snapshot_every=None)
    yield bandit
    bandit.close()


def closed(folder):
    return sorted(path for path in folder.glob("journal.0*") if path.suffix != ".gz")


def inodes(paths):
    return {os.stat(path).st_ino for path in paths}


@pytest.mark.parametrize("fsync", [False, True])
def test_a_sync_is_of_every_segment_and_of_their_names(tmp_path, monkeypatch, fsync):
    synced = set()
    with begin_journal(tmp_path / "journal", rotate_every=EVERY, snapshot_every=None, fsync=fsync) as bandit:
        keeper = bandit._keeper
        monkeypatch.setattr(keeper, "begin_snapshot", lambda ledger: None)  # which would sync, too
        for name in ("fsync", "fdatasync"):
            monkeypatch.setattr(os, name, lambda file: synced.add(os.fstat(file).st_ino))
        while len(closed(tmp_path)) < 3:
            bandit.ask()
            bandit.credit(1.0)
        bandit.sync()
    assert inodes([tmp_path, tmp_path / "journal", *closed(tmp_path)]) <= synced


@pytest.mark.parametrize("snapshots", [True, False])
def test_files_of_segments_do_not_stay_open(bandit, tmp_path, monkeypatch, snapshots):
    if not snapshots:
        monkeypatch.setattr(bandit._keeper, "begin_snapshot", lambda ledger: None)
    for _ in islice(steps(bandit), 300):
        assert bandit._journal.count_unsynced() <= MOST_UNSYNCED
    assert len(closed(tmp_path)) > 2 * MOST_UNSYNCED
    bandit.snapshot()
    if snapshots:
        assert bandit._journal.count_unsynced() == 0


def refuse_half(file, content):
    """A disk that has room for events, but not for the header of a segment."""
    is_header = b'"paceline journal"' in content
    return WRITE(file, content[: len(content) // 2] if is_header else content)


WRITE = os.write


def refuse(*_arguments, **_options):
    raise OSError(28, "No space left on device")


TROUBLES = {
    "half a header": (os, "write", refuse_half),
    "no second name": (os, "link", refuse),
    "no exchange": (Path, "replace", refuse),
}


@pytest.mark.parametrize("trouble", TROUBLES.values(), ids=TROUBLES)
def test_a_segment_that_cannot_be_begun_stops_nothing(bandit, tmp_path, monkeypatch, caplog, trouble):
    twin = begin_journal(tmp_path / "twin")
    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING, "paceline"):
        patch.setattr(*trouble)
        live(bandit, 50)
    assert any("could not be rotated" in record.getMessage() for record in caplog.records)
    live(twin, 50)
    assert state_of(bandit) == state_of(twin)
    live(bandit, 50, seed=1)
    assert len(closed(tmp_path)) > 1  # there is room again
    before = state_of(bandit)
    abandon(bandit)
    with Bandit.open(tmp_path / "journal", clock=stopped) as reopened:
        assert state_of(reopened) == before
    twin.close()

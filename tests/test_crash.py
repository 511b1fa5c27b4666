"""A bandit that is killed at random moments, in a process of its own, under mixed load."""

import pytest

from benchmarks.crash import run
from paceline import Bandit
from paceline.live.snapshot import describe_ledger


@pytest.mark.slow
def test_nothing_that_was_acknowledged_is_lost_and_the_line_is_never_crossed():
    seen = run(kills=30, seed=1)
    assert seen["kills"] == 30
    assert seen["ask"] > 300
    assert seen["tell"] > 300
    assert seen["killed in a call"] > 0
    assert seen["compared with the journal alone"] > 0


def test_a_snapshot_between_a_hundredth_round_and_the_next_is_the_journal(tmp_path):
    path = tmp_path / "journal"
    with Bandit(["a", "b"], 1.0, journal=path, clock=lambda: 0.0) as bandit:
        while bandit.rounds < 200:
            bandit.cancel(bandit.ask().id)
        bandit.snapshot()
        bandit.ask()
        state = describe_ledger(bandit._ledger)
    with Bandit.open(path, clock=lambda: 0.0) as bandit:
        assert describe_ledger(bandit._ledger) == state
    (tmp_path / "journal.snapshot").unlink()
    with Bandit.open(path, clock=lambda: 0.0) as bandit:
        assert describe_ledger(bandit._ledger) == state

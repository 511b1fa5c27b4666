"""A bandit with a journal, and the calls that it must refuse once that is closed."""

import pytest

from paceline import Bandit, JournalFailed


def stopped():
    """A clock that stands still: what happens to bandits is the same, and at the same time."""
    return 0.0


SETTINGS = {
    "arms": ["a", "b", "c"],
    "budget": 0.3,
    "max_cost": {"a": 0.2, "b": 1.0, "c": 0.5},
    "remember": 20,
    "clock": stopped,
}


def begin_journal(path, **settings):
    return Bandit(**{**SETTINGS, "journal": path, **settings})


CALLS = {
    "ask": Bandit.ask,
    "tell": lambda bandit: bandit.tell(1, 0.5, 0.1),
    "cancel": lambda bandit: bandit.cancel(1),
    "expire": lambda bandit: bandit.expire(1),
    "credit": lambda bandit: bandit.credit(1.0),
    "add": lambda bandit: bandit.add("d", 0.5),
    "pause": lambda bandit: bandit.pause("a"),
    "resume": lambda bandit: bandit.resume("a"),
    "retire": lambda bandit: bandit.retire("a"),
    "debit": lambda bandit: bandit.debit(0.1),
    "observe": lambda bandit: bandit.observe("a", 0.5, 0.1),
    "set": lambda bandit: bandit.set(budget=0.25),
    "snapshot": Bandit.snapshot,
    "sync": Bandit.sync,
}


def assert_refuses_everything(bandit):
    for call in CALLS.values():
        with pytest.raises(JournalFailed, match=r"must be opened again with Bandit.open"):
            call(bandit)

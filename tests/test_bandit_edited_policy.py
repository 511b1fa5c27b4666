"""A journal is opened although the policy's code was edited since: what was decided stays decided, to the unit."""

import json

import pytest

from paceline import Bandit, PythonPolicy


class Steady(PythonPolicy):
    name = "edited"

    def choose(self, state):
        if state.clock.t == 5:
            raise RuntimeError("not today")
        return 0


class Failing(Steady):
    name = "edited"

    def choose(self, state):
        raise RuntimeError("never")


class Willing(Steady):
    name = "edited"

    def choose(self, state):
        return 1


def amounts(bandit):
    return bandit.rounds, bandit.spent, bandit.reserved, bandit.credited, bandit.pending


@pytest.fixture
def journal(tmp_path):
    """A journal of four rounds; the policy has failed three times to begin a fifth."""
    bandit = Bandit(["a", "b"], budget=0.75, policy=Steady(), journal=tmp_path / "journal")
    for _ in range(4):
        bandit.ask()
    for _ in range(3):
        with pytest.raises(RuntimeError):
            bandit.ask()
    bandit.tell(2, 0.5, 0.25)
    bandit.close()
    return tmp_path / "journal", amounts(bandit)


@pytest.mark.parametrize("edited", [Failing, Willing])
def test_decisions_are_followed_whatever_the_policy_would_do_now(journal, edited):
    path, before = journal
    with Bandit.open(path, policy=edited()) as bandit:
        assert amounts(bandit) == before
        assert int(bandit._ledger.arm_set.books.tally.t) == bandit.rounds


def test_failure_among_some_arms_leaves_nothing_behind(tmp_path):
    bandit = Bandit(["a", "b"], 1.0, Failing(), {"a": 1.0, "b": 0.5}, journal=tmp_path / "journal")
    least = bandit._ledger.arm_set.books.least.tolist()
    with pytest.raises(RuntimeError):
        bandit.ask(arms=["a"])
    assert bandit._ledger.arm_set.books.least.tolist() == least
    bandit.close()
    with Bandit.open(tmp_path / "journal", policy=Failing()) as bandit:
        assert bandit._ledger.arm_set.books.least.tolist() == least


def test_failures_are_in_the_journal(journal):
    path, _ = journal
    lines = [json.loads(line[9:])[0] for line in path.read_text().splitlines()]
    assert lines.count("failed") == 3

"""A journal is opened although the policy's code was edited since: what was decided stays decided, to the unit."""

import json

import pytest

from paceline import Bandit, InvalidValue, PythonPolicy
from paceline.live import snapshot, verify
from paceline.live.verify import Examination


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


class Steadier(PythonPolicy):
    name = "steadier"

    def choose(self, state):
        return 0


@pytest.mark.parametrize("snapshots", [0, 1, 2])
def test_a_journal_goes_on_after_another_policy_was_set_in_place_of_ones_own(tmp_path, snapshots):
    """What came before needs the old one; who always gives it is told, once, that it is not used any more."""
    journal = tmp_path / "journal"
    bandit = Bandit(["a", "b"], 1.0, Steadier(), journal=journal, snapshot_every=None)
    bandit.tell(bandit.ask().id, 0.5, 0.25)
    bandit.set(policy="uniform")
    bandit.ask()
    for _ in range(snapshots):
        bandit.snapshot()
    bandit.close()
    with Bandit.open(journal, policy=Steadier()) as reopened:
        assert amounts(reopened) == amounts(bandit)
        assert reopened.recovered == "policy 'steadier' was given, and 'uniform' goes on, which was set since"
    bandit.save(tmp_path / "saved")
    assert Bandit.load(tmp_path / "saved", policy=Steadier()).recovered == reopened.recovered


def test_one_of_ours_that_is_given_is_used_or_refused(tmp_path):
    bandit = Bandit(["a", "b"], 1.0, "uniform", journal=tmp_path / "journal")
    bandit.close()
    bandit.save(tmp_path / "saved")
    for read, path in ((Bandit.open, "journal"), (Bandit.load, "saved")):
        with pytest.raises(InvalidValue, match="policy must be 'uniform', as it was saved, got 'suak'"):
            read(tmp_path / path, policy="suak")


CODE = """
from paceline import PythonPolicy

class Mine(PythonPolicy):
    name = "mine"

    def choose(self, state):
        return {}
"""


@pytest.mark.parametrize("snapshots", [False, True])
def test_code_is_said_to_be_edited_once_and_only_if_it_was(tmp_path, snapshots):
    """The digest is noted with every policy that is set, and a snapshot does not forget it."""
    journal, code = tmp_path / "journal", tmp_path / "mine.py"
    code.write_text(CODE.format(0))

    def opened():
        with Bandit.open(journal, policy=f"{code}:Mine", snapshot_every=None) as bandit:
            if snapshots:
                bandit.snapshot()
            return bandit.recovered

    with Bandit(["a", "b"], 1.0, "uniform", journal=journal, snapshot_every=None) as bandit:
        bandit.ask()
        bandit.set(policy=f"{code}:Mine")
        bandit.ask()
        if snapshots:
            bandit.snapshot()
    assert opened() is None
    edited = "the code of policy mine was edited since: its beliefs may differ from those before"
    assert edited not in str(Examination(journal, f"{code}:Mine"))
    code.write_text(CODE.format(1))
    assert f"\ncode        {edited}\n" in f"{Examination(journal, f'{code}:Mine')}\n"
    assert opened() == edited
    assert opened() is None
    assert edited not in str(Examination(journal, f"{code}:Mine"))


@pytest.mark.parametrize("is_edited", [True, False])
def test_a_snapshot_of_what_other_code_made_of_the_same_events_is_no_damage(tmp_path, monkeypatch, is_edited):
    with Bandit(["a", "b"], 1.0, "greedy", journal=tmp_path / "journal", snapshot_every=None) as bandit:
        bandit.tell(bandit.ask().id, 0.5, 0.25)
        bandit.snapshot()
    describe = snapshot.describe_ledger
    monkeypatch.setattr(snapshot, "describe_ledger", lambda ledger: {**describe(ledger), "memory": {"else": [1.0]}})
    if is_edited:
        monkeypatch.setattr(verify, "digest_of_code", lambda policy: "of other code")
    examined = Examination(tmp_path / "journal")
    assert examined.is_whole is is_edited
    assert ("whose code was edited" in examined.snapshots[0].verdict) is is_edited

"""Policies of one's own in a live bandit: their tags are theirs, and their mistakes do no harm."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import pytest
from bookkeeper import live, state_of

from paceline import Bandit, InvalidPolicy, JournalFailed, Policy, PythonPolicy
from paceline.kernels.state import Decision

RECORD = np.dtype((np.record, [("tags", np.int64), ("told", np.int64)]))
ARM, REASON, TAG = range(3)


class Params(NamedTuple):
    arms: int
    mistake: int
    first: int


def choose(params, state):
    arm, reason, tag = state.clock.t % params.arms, 1, 1000 + state.clock.t
    if state.clock.t >= params.first:
        if params.mistake == ARM:
            arm = params.arms + 5
        elif params.mistake == REASON:
            reason = 7
        else:
            tag = 99
    return Decision(arm, reason, tag)


def learn(params, state, decision, reward, cost):
    if 0 <= decision.arm < params.arms:
        state.record.tags += decision.tag
        state.record.told += 1


@dataclass(frozen=True, kw_only=True)
class InTurn(Policy):
    """Each arm in turn; the tag is the round, and more than any number of an arm. From some round on, a mistake."""

    mistake: int = TAG
    first: int = 2**40

    name = "in-turn"
    allocates = False
    reasons = ("headroom below the largest cost", "its turn")
    record = RECORD
    choose = staticmethod(choose)
    learn = staticmethod(learn)

    def params(self, setting):
        return Params(setting.arms, self.mistake, self.first)


@dataclass(frozen=True, kw_only=True)
class ByArm(InTurn):
    """The same, but it says that its tags are arms."""

    name = "by-arm"
    tag_is_arm = True


def test_a_tag_of_its_own_is_carried_as_it_is(tmp_path):
    bandit = Bandit(["a", "b", "c"], 1.0, InTurn(), journal=tmp_path / "journal")
    told = []
    for number in range(1, 61):
        decision = bandit.ask()
        assert (decision.id, decision.other) == (number, None)
        if number == 20:
            bandit.pause("a")
        if number == 40:
            bandit.resume("a")
        if number > 5 and number % 3:
            bandit.tell(number - 5, 0.5, 0.1)  # of an arm in play or out of it
            told.append(number - 5)
    record = state_of(bandit)["record"]
    assert record == {"tags": sum(1000 + number for number in told), "told": len(told)}
    bandit.close()
    with Bandit.open(tmp_path / "journal", policy=InTurn()) as reopened:
        assert state_of(reopened) == state_of(bandit)


@pytest.mark.parametrize(
    ("mistake", "rule"),
    [(ARM, r"an arm from -1 \(skip\) to 2 \(null arm\), got 7"), (REASON, "a reason from 1 to 1, got 7")],
)
def test_a_choice_that_cannot_be_is_sat_out_and_raised(tmp_path, mistake, rule):
    policy = InTurn(mistake=mistake, first=10)
    bandit = Bandit(["a", "b"], 1.0, policy, journal=tmp_path / "journal", snapshot_every=1)
    assert all(bandit.ask().arm for _ in range(9))
    for number in (10, 11):
        with pytest.raises(InvalidPolicy, match=rf"\AInTurn.choose[^\n]* must choose {rule}\Z"):
            bandit.ask()
        assert (bandit.rounds, len(bandit.pending), bandit.credited) == (number, 9, number)
    bandit.tell(1, 0.5, 0.5)
    bandit.close()
    with Bandit.open(tmp_path / "journal", policy=policy) as reopened:
        assert state_of(reopened) == state_of(bandit)


def test_a_tag_that_is_no_arm_though_it_should_be(tmp_path):
    policy = ByArm(mistake=TAG, first=10)
    bandit = Bandit(["a", "b"], 1.0, policy, journal=tmp_path / "journal")
    with pytest.raises(InvalidPolicy, match=r"\AByArm.choose must choose a tag that is an arm, got 1001\Z"):
        bandit.ask()
    with pytest.raises(JournalFailed, match="must be opened again"):
        bandit.ask()
    bandit.close()
    with Bandit.open(tmp_path / "journal", policy=policy) as reopened:
        assert reopened.rounds == 0


def test_arms_that_come_and_go(tmp_path):
    bandit = Bandit(["a", "b", "c"], 0.6, InTurn(), {"a": 0.2, "b": 1.0, "c": 0.5}, journal=tmp_path / "journal")
    live(bandit, 200)
    bandit.add("d", 0.2)
    live(bandit, 100)
    bandit.close()
    with Bandit.open(tmp_path / "journal", policy=InTurn()) as reopened:
        assert state_of(reopened) == state_of(bandit)


class Slips(PythonPolicy):
    """In plain Python, each arm in turn; in some rounds it gives what is no arm."""

    wrong: ClassVar[dict[int, object]] = {3: 7, 5: 1.0, 6: -3, 8: "a", 9: 10**30, 11: True}

    def reset(self, setting):
        self.told = 0

    def choose(self, state):
        t = int(state.clock.t)
        return self.wrong.get(t, t % 2)

    def learn(self, state, arm, reward, cost):
        self.told += 1


@pytest.mark.parametrize("snapshot_every", [None, 1], ids=["from the start", "from a snapshot"])
def test_a_choice_in_plain_python_that_cannot_be_is_sat_out_and_raised(tmp_path, snapshot_every):
    bandit = Bandit(["a", "b"], 1.0, Slips(), journal=tmp_path / "journal", snapshot_every=snapshot_every)
    for number in range(1, 13):
        if number in Slips.wrong:
            with pytest.raises(InvalidPolicy, match=r"\ASlips.choose \(line \d+\) must [^\n]+, got [^\n]+\Z"):
                bandit.ask()
        else:
            bandit.tell(bandit.ask().id, 0.5, 0.25)
        assert (bandit.rounds, bandit.credited, bandit.reserved) == (number, number, 0.0)
    assert bandit.spent == 0.25 * (12 - len(Slips.wrong))
    bandit.close()
    with Bandit.open(tmp_path / "journal", policy=Slips()) as reopened:
        assert reopened.recovered is None
        assert state_of(reopened) == state_of(bandit)
        assert reopened.ask().arm == "b"

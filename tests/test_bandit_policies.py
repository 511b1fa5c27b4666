"""Policies of one's own in a live bandit: their tags are theirs, and their mistakes do no harm."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import pytest
from bookkeeper import live, refused, state_of

from paceline import Bandit, InvalidPolicy, InvalidValue, Policy, PythonPolicy
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
    return Decision(arm, reason, tag)


def choose_by_arm(params, state):
    arm = state.clock.t % params.arms
    return Decision(arm, 1, 99 if state.clock.t >= params.first else arm)


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
    choose = staticmethod(choose_by_arm)


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
    ("policy", "rule"),
    [
        (InTurn(mistake=ARM, first=10), r"an arm from -1 \(skip\) to 2 \(null arm\), got 7"),
        (InTurn(mistake=REASON, first=10), "a reason from 1 to 1, got 7"),
        (ByArm(mistake=TAG, first=10), r"a tag that is an arm from -1 \(skip\) to 2 \(null arm\), got 99"),
    ],
)
def test_a_choice_that_cannot_be_is_sat_out_and_raised(tmp_path, policy, rule):
    bandit = Bandit(["a", "b"], 1.0, policy, journal=tmp_path / "journal", snapshot_every=1)
    assert all(bandit.ask().arm for _ in range(9))
    for number in (10, 11):
        with pytest.raises(InvalidPolicy, match=rf"\A{type(policy).__name__}.choose[^\n]* must choose {rule}\Z"):
            bandit.ask()
        assert (bandit.rounds, len(bandit.pending), bandit.credited) == (number, 9, number)
    bandit.tell(1, 0.5, 0.5)
    bandit.close()
    with Bandit.open(tmp_path / "journal", policy=policy) as reopened:
        assert state_of(reopened) == state_of(bandit)


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


def choose_or_fail(params, state):
    t = state.clock.t
    if t % params.every == 0 and state.record.told < t - 1:
        raise ValueError("no choice")
    return Decision(t % params.arms, 1, 0)


class FailParams(NamedTuple):
    arms: int
    every: int


@dataclass(frozen=True, kw_only=True)
class Fails(InTurn):
    """Each arm in turn; it fails in every third round while the outcome of one before it is not known."""

    every: int = 3

    name = "fails"
    allocates = True
    choose = staticmethod(choose_or_fail)

    def params(self, setting):
        return FailParams(setting.arms, self.every)


class FailsInPython(PythonPolicy):
    """The same, and it draws a number each time that it is asked."""

    def reset(self, setting):
        self.rng, self.arms, self.told = setting.generator(), setting.arms, 0

    def choose(self, state):
        t = int(state.clock.t)
        self.drawn = self.rng.random()
        if t % 3 == 0 and self.told < t - 1:
            raise ValueError("no choice")
        return t % self.arms

    def learn(self, state, arm, reward, cost):
        self.told += 1


LINES = {
    "budget": {"money": 1.0, "energy": 1.0},
    "max_cost": 0.5,
    "start": {"energy": 3.0},
    "cap": {"energy": 4.0},
    "expires": 60.0,
}


def without_session(bandit: Bandit) -> dict[str, object]:
    """What a bandit knows, but for what a policy in plain Python keeps in itself."""
    return {key: value for key, value in state_of(bandit).items() if key != "session"}


@pytest.mark.parametrize("policy", [Fails(), FailsInPython()], ids=["compiled", "plain Python"])
@pytest.mark.parametrize("snapshot_every", [None, 1], ids=["from the start", "from a snapshot"])
def test_a_choice_that_fails_changes_nothing(tmp_path, policy, snapshot_every):
    journal = tmp_path / "journal"
    bandit = Bandit(["a", "b"], policy=policy, **LINES, journal=journal, snapshot_every=snapshot_every)
    bandit.credit({"money": 1.7, "energy": 0.3}, over=5)  # a round that begins releases a part of it
    failures = 0
    waiting = []
    for _ in range(40):
        if bandit.rounds % 3 == 2 and waiting:
            before = without_session(bandit)
            with pytest.raises(ValueError, match=r"\Ano choice\Z"):
                bandit.ask()
            assert without_session(bandit) == before
            failures += 1
            while waiting:
                bandit.tell(waiting.pop(), 0.5, {"money": 0.25, "energy": 0.125})
        else:
            waiting.append(bandit.ask().id)
    assert failures == 10
    assert bandit.rounds == 30
    bandit.close()
    with Bandit.open(journal, policy=policy) as reopened:
        assert reopened.recovered is None
        assert state_of(reopened) == state_of(bandit)


def test_an_interrupt_in_a_choice_changes_nothing():
    class Slow(FailsInPython):
        def choose(self, state):
            if state.clock.t == 2 and not self.drawn:
                self.drawn = True
                raise KeyboardInterrupt
            return 0

        def reset(self, setting):
            self.drawn = False

        def learn(self, state, arm, reward, cost):
            pass

    bandit = Bandit(["a"], 1.0, Slow())
    bandit.ask()
    with pytest.raises(KeyboardInterrupt):
        bandit.ask()
    assert (bandit.rounds, bandit.credited, bandit.reserved, len(bandit.pending)) == (1, 1.0, 1.0, 1)
    assert bandit.ask().id == 2


class Weights(NamedTuple):
    arms: int
    weights: tuple[float, ...]  # an entry per arm: another type for each number of arms


def heaviest(params, state):
    best = 0
    for arm in range(len(params.weights)):
        if params.weights[arm] > params.weights[best]:
            best = arm
    return Decision(best, 1, 0)


class Weighed(InTurn):
    """The arm with the largest weight, the last of those in play."""

    name = "weighed"
    allocates = True
    choose = staticmethod(heaviest)

    def params(self, setting):
        return Weights(setting.arms, tuple(float(arm) for arm in range(setting.arms)))


def test_parameters_may_be_of_another_type_for_each_number_of_arms(tmp_path):
    bandit = Bandit(["a", "b", "c"], 1.0, Weighed(), journal=tmp_path / "journal")
    waiting = [bandit.ask()]
    bandit.pause("c")
    waiting.append(bandit.ask())
    bandit.add("d")
    waiting.append(bandit.ask())
    bandit.pause("a")
    assert [decision.arm for decision in waiting] == ["c", "b", "d"]
    for decision in waiting:  # of an arm out of play, and of two in it
        bandit.tell(decision.id, 0.5, 0.25)
    bandit.pause("b")
    bandit.pause("d")
    assert bandit.ask().arm is None
    assert state_of(bandit)["record"]["told"] == 3
    bandit.close()
    with Bandit.open(tmp_path / "journal", policy=Weighed()) as reopened:
        assert state_of(reopened) == state_of(bandit)
        reopened.resume("c")
        assert reopened.ask().arm == "c"


class Pair(InTurn):
    """Plays two arms or more, each of which costs something."""

    name = "pair"

    def params(self, setting):
        if setting.arms < 2 or (setting.max_costs is not None and np.min(setting.max_costs) <= 0.0):
            raise InvalidValue("pair must have two arms that cost something")
        return super().params(setting)


REFUSALS = {
    "an arm": lambda bandit: bandit.add("c", 0.0),
    "a largest cost": lambda bandit: bandit.set(max_cost={"a": 0.0}),
    "that of an arm that is paused": lambda bandit: bandit.set(max_cost={"x": 0.0}),
    "a pause": lambda bandit: bandit.pause("a"),
    "a request for one arm": lambda bandit: bandit.ask(arms=["a"]),
    "the end of an arm": lambda bandit: bandit.retire("a"),
}


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
def test_what_a_policy_refuses_has_not_happened(tmp_path, refusal):
    bandit = Bandit(["a", "b", "x"], 1.0, Pair(), journal=tmp_path / "journal")
    bandit.pause("x")
    with refused(bandit, InvalidValue, "pair must have"):
        refusal(bandit)
    assert bandit.ask().arm is not None
    bandit.close()
    with Bandit.open(tmp_path / "journal", policy=Pair()) as reopened:
        assert state_of(reopened) == state_of(bandit)


def test_a_policy_that_refuses_the_arms_is_not_set(tmp_path):
    bandit = Bandit(["a", "b"], 1.0, max_cost={"a": 0.0, "b": 1.0}, journal=tmp_path / "journal")
    for policy, words in ((Pair(), "pair must have"), ("kube", "kube works with largest costs above 0 only")):
        with refused(bandit, InvalidValue, words):
            bandit.set(policy=policy)
    assert bandit.ask().arm is not None
    bandit.close()
    with Bandit.open(tmp_path / "journal") as reopened:
        assert state_of(reopened) == state_of(bandit)


def test_a_request_for_no_arm_asks_no_policy():
    bandit = Bandit(["a", "b"], 1.0, Pair())
    assert bandit.ask(arms=[]).reason == "no arm is active"


class Few(InTurn):
    """Plays three arms at most."""

    name = "few"

    def params(self, setting):
        if setting.arms > 3:
            raise InvalidValue(f"few must have three arms at most, got {setting.arms}")
        return super().params(setting)


def test_a_policy_is_asked_about_all_arms_that_there_ever_were(tmp_path):
    free = {"a": 1.0, "b": 1.0, "free": 0.0}
    bandit = Bandit(list(free), 1.0, Few(), max_cost=free, journal=tmp_path / "journal")
    bandit.retire("free")
    with refused(bandit, InvalidValue, "kube works with largest costs above 0 only"):
        bandit.set(policy="kube")
    with refused(bandit, InvalidValue, "few must have three arms at most, got 4"):
        bandit.add("d", 1.0)  # else no news of the retired one could be told
    assert bandit.ask().arm is not None
    bandit.close()
    with Bandit.open(tmp_path / "journal", policy=Few()) as reopened:
        assert state_of(reopened) == state_of(bandit)


def test_a_policy_is_asked_about_the_arms_in_play(tmp_path):
    bandit = Bandit(["a", "b", "c"], 1.0, "uniform", journal=tmp_path / "journal")
    bandit.pause("b")
    bandit.retire("c")
    with refused(bandit, InvalidValue, "pair must have two arms"):
        bandit.set(policy=Pair())
    assert bandit.ask().arm == "a"
    bandit.close()
    with Bandit.open(tmp_path / "journal") as reopened:
        assert state_of(reopened) == state_of(bandit)

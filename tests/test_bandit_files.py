"""save and load: the same bandit bit for bit, all or nothing, and nothing else is taken for one."""

import json
from dataclasses import dataclass

import bookkeeper
import elsewhere
import numpy as np
import pytest
from bookkeeper import FOR_SEVERAL, POLICIES, SEVERAL, live, state_of
from journals import stopped
from lanes import FIRST, in_lanes

from paceline import Bandit, InvalidValue, OnePhase, PacelineError, PythonPolicy, Uniform, UnreadableFile
from paceline.live import snapshot
from paceline.policies import make_policy

ONE = {"budget": 0.3, "max_cost": {"a": 0.2, "b": 1.0, "c": 0.5}}
LIVES = {
    **{name: (policy, ONE) for name, policy in POLICIES.items()},
    **{f"{name}, two resources": (policy, SEVERAL) for name, policy in FOR_SEVERAL.items()},
}
every_life = pytest.mark.parametrize(("policy", "resources"), in_lanes(LIVES))


def experienced(policy="thompson", resources=ONE, steps=300, **settings):
    bandit = Bandit(["a", "b", "c"], policy=policy, seed=2**64 - 1, remember=20, clock=stopped, **resources, **settings)
    live(bandit, steps)
    return bandit


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "bandit.json"
    experienced(steps=60).save(path)
    return path


@every_life
def test_a_loaded_bandit_is_the_same_and_decides_alike(tmp_path, policy, resources):
    bandit = experienced(policy, resources)
    bandit.save(tmp_path / "bandit.json")
    loaded = Bandit.load(tmp_path / "bandit.json", clock=stopped)
    assert json.dumps(state_of(loaded)) == json.dumps(state_of(bandit))
    assert (loaded.spent, loaded.reserved, loaded.credited) == (bandit.spent, bandit.reserved, bandit.credited)
    assert loaded.estimates() == bandit.estimates()
    assert (loaded.pending, loaded.expired, loaded.arms) == (bandit.pending, bandit.expired, bandit.arms)
    assert live(loaded, 300, seed=1) == live(bandit, 300, seed=1)
    assert state_of(loaded) == state_of(bandit)


@every_life
def test_saving_changes_nothing(tmp_path, policy, resources):
    saves, plain = experienced(policy, resources), experienced(policy, resources)
    for _ in range(20):
        saves.save(tmp_path / "bandit.json")
        assert live(saves, 5) == live(plain, 5)
    assert state_of(saves) == state_of(plain)


GO_ON = """
import json, sys
from bookkeeper import live, state_of
from journals import stopped
from paceline import Bandit
for path in sys.argv[1:]:
    bandit = Bandit.load(path, clock=stopped)
    print(json.dumps([live(bandit, 300, seed=1), state_of(bandit)]))
"""


@pytest.mark.parametrize("is_first", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["first", "others"])
def test_another_process_goes_on_alike(tmp_path, is_first):
    lives = {name: life for name, life in LIVES.items() if (name.split(",")[0] in FIRST) == is_first}
    bandits = {tmp_path / name: experienced(*life) for name, life in lives.items()}
    for path, bandit in bandits.items():
        bandit.save(path)
    printed = elsewhere.run(GO_ON, *bandits)
    for bandit, line in zip(bandits.values(), printed, strict=True):
        assert line == json.dumps([live(bandit, 300, seed=1), state_of(bandit)])


def test_deadlines_are_saved(tmp_path):
    now = [100.0]
    bandit = Bandit(["a", "b", "c"], 1.0, "uniform", clock=lambda: now[0])
    bandit.ask(expires=5)
    bandit.save(tmp_path / "bandit.json")
    loaded = Bandit.load(tmp_path / "bandit.json", clock=lambda: now[0])
    now[0] = 105.0
    bandit.ask()
    loaded.ask()
    assert loaded.expired == bandit.expired == [1]


def test_a_loaded_bandit_has_no_journal(tmp_path):
    bandit = experienced(journal=tmp_path / "journal")
    bandit.save(tmp_path / "bandit.json")
    bandit.close()
    before = (tmp_path / "journal").read_bytes()
    live(Bandit.load(tmp_path / "bandit.json"), 20)
    assert (tmp_path / "journal").read_bytes() == before


def test_numbers_of_numpy_can_be_saved(tmp_path):
    half, two, many = np.float64(0.5), np.float32(2), np.int64(200)
    policy = OnePhase(a=two, horizon=many)
    bandit = Bandit(["a", "b"], two, policy, {"a": two, "b": half}, two, np.uint64(3), remember=many, expires=half)
    bandit.tell(np.int64(bandit.ask(expires=np.float64(3)).id), reward=half, cost=half)
    bandit.credit(two)
    bandit.save(tmp_path / "bandit.json")
    assert state_of(Bandit.load(tmp_path / "bandit.json")) == state_of(bandit)


# A policy of one's own.


class Mine(Uniform):
    """Not one of paceline's."""

    name = "mine"


class Cheapest(PythonPolicy):
    """In plain Python, and with a memory of its own."""

    def reset(self, setting):
        self.cost = [0.0] * setting.arms

    def choose(self, state):
        return self.cost.index(min(self.cost))

    def learn(self, state, arm, reward, cost):
        self.cost[arm] += float(cost.sum())


@pytest.mark.parametrize("resources", [ONE, SEVERAL], ids=["one resource", "two resources"])
def test_a_policy_in_plain_python_is_saved_with_all_that_it_has_learned(tmp_path, resources):
    bandit = experienced(Cheapest(), resources, journal=tmp_path / "journal")
    bandit.save(tmp_path / "bandit.json")
    loaded = Bandit.load(tmp_path / "bandit.json", policy=Cheapest())
    assert state_of(loaded) == state_of(bandit)
    bandit.close()
    reopened = Bandit.open(tmp_path / "journal", policy=Cheapest())
    costs = [each._ledger.arm_set.params.policy.cost for each in (bandit, loaded, reopened)]
    assert costs[0] == costs[1] == costs[2]
    assert live(reopened, 100, seed=1) == live(loaded, 100, seed=1)
    reopened.close()


class Gone:
    """Of a module that is changed between two runs."""


def test_what_a_policy_has_learned_in_a_class_that_is_gone(tmp_path, monkeypatch):
    policy = Cheapest()
    policy.model = Gone()
    bandit = experienced(policy, journal=tmp_path / "journal")
    bandit.save(tmp_path / "bandit.json")
    bandit.snapshot()
    bandit.close()
    monkeypatch.delattr(f"{__name__}.Gone")
    line = "what Cheapest has learned must be readable, got AttributeError"
    with pytest.raises(UnreadableFile, match=rf"\A{line}\Z"):
        Bandit.load(tmp_path / "bandit.json", policy=Cheapest())
    with Bandit.open(tmp_path / "journal", policy=Cheapest()) as reopened:
        assert reopened.recovered == f"snapshot was not used: {line}"
        assert reopened.spent == bandit.spent


def test_a_policy_of_ones_own_must_be_given_again(tmp_path):
    bandit = experienced(Mine())
    bandit.save(tmp_path / "bandit.json")
    rule = "policy= must be given again, as an object or as module:Class or file.py:Class, got none"
    with pytest.raises(InvalidValue, match=rf"\Apolicy 'mine' is not one of paceline's: {rule}\Z"):
        Bandit.load(tmp_path / "bandit.json")
    with pytest.raises(InvalidValue, match=r"\Aa policy must be a name or an object such as SUAK\(\), got 3\Z"):
        Bandit.load(tmp_path / "bandit.json", policy=3)
    with pytest.raises(InvalidValue, match="policy must be 'mine', as it was saved, got 'uniform'"):
        Bandit.load(tmp_path / "bandit.json", policy=Uniform())
    assert state_of(Bandit.load(tmp_path / "bandit.json", policy=Mine())) == state_of(bandit)


OF_A_FILE = """
from dataclasses import dataclass, field

import paceline as pl


@dataclass(frozen=True)
class Fixed(pl.PythonPolicy):
    arm: int = 0
    notes: set = field(default_factory=set, init=False)  # no parameter

    def choose(self, state):
        return self.arm % state.pending.size
"""


def test_a_policy_of_ones_own_may_be_given_by_name(tmp_path):
    (tmp_path / "mine.py").write_text(OF_A_FILE, encoding="utf-8")
    name = f"{tmp_path / 'mine.py'}:Fixed"
    bandit = experienced(make_policy(name, arm=2), journal=tmp_path / "journal")
    bandit.save(tmp_path / "bandit.json")
    bandit.close()
    assert state_of(Bandit.load(tmp_path / "bandit.json", policy=name)) == state_of(bandit)
    with Bandit.open(tmp_path / "journal", policy=name) as reopened:
        assert state_of(reopened) == state_of(bandit)
    with pytest.raises(InvalidValue, match=r"\Apolicy must be 'Fixed', as it was saved, got 'uniform'\Z"):
        Bandit.load(tmp_path / "bandit.json", policy="uniform")


def test_a_policy_must_have_the_parameters_that_are_in_the_file(tmp_path):
    """A change of policy would be another bandit, and the journal would not be what it decided."""
    bandit = experienced(OnePhase(a=2.0, horizon=1000), journal=tmp_path / "journal")
    bandit.save(tmp_path / "bandit.json")
    bandit.close()
    for other, line in (
        (OnePhase(a=3.0, horizon=1000), "a of one-phase must be 2.0, as it was saved, got 3.0"),
        (OnePhase(a=2.0), "horizon of one-phase must be 1000, as it was saved, got None"),
    ):
        for again in (Bandit.load, Bandit.open):
            with pytest.raises(InvalidValue, match=rf"\A{line}\Z"):
                again(tmp_path / ("bandit.json" if again == Bandit.load else "journal"), policy=other)
    same = OnePhase(a=np.float32(2), horizon=np.int64(1000))
    assert state_of(Bandit.load(tmp_path / "bandit.json", policy=same)) == state_of(bandit)


@dataclass(frozen=True)
class Equipped(Cheapest):
    """With a parameter of any kind."""

    tool: object = None

    def reset(self, setting):
        object.__setattr__(self, "cost", [0.0] * setting.arms)


@pytest.mark.parametrize(
    "tool", [np.zeros(2), {1, 2}, object(), [np.zeros(2)], lambda: 0], ids=lambda it: str(type(it))
)
def test_parameters_that_json_cannot_hold_are_refused_before_there_is_a_file(tmp_path, tool):
    policy, kind = Equipped(tool), type(tool).__name__
    rule = "a number, a text, or a list or dict of them to be written to a file"
    line = rf"\Atool of Equipped must be {rule}, got a {kind}\Z"
    with pytest.raises(InvalidValue, match=line):
        Bandit(["a"], 1.0, policy, journal=tmp_path / "journal")
    bandit = Bandit(["a"], 1.0, policy)
    with pytest.raises(InvalidValue, match=line):
        bandit.save(tmp_path / "bandit.json")
    assert bandit.ask().arm == "a"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["journal", "journal.000001", "journal.000001.gz", "link"])
def test_a_journal_is_not_saved_over(tmp_path, name):
    closed = "gzip" if name.endswith(".gz") else "keep"
    with Bandit(["a"], 1.0, "uniform", journal=tmp_path / "journal", rotate_every=5, closed=closed) as bandit:
        (tmp_path / "link").symlink_to(tmp_path / "journal")
        for _ in range(20):
            bandit.tell(bandit.ask().id, 0.5, 0.5)
            bandit.snapshot()
        before = (tmp_path / name).read_bytes()
        with pytest.raises(InvalidValue, match=r"path must be another file than a journal, which would be lost, got "):
            bandit.save(tmp_path / name)
        assert (tmp_path / name).read_bytes() == before
        bandit.sync()


# Files that are refused.


@pytest.mark.parametrize("part", range(10))
def test_a_changed_byte_is_noticed(saved, part):
    content = saved.read_bytes()
    state = state_of(Bandit.load(saved))
    refused = 0
    places = range(part, len(content), 10)
    for place in places:
        changed = bytearray(content)
        changed[place] ^= 1
        saved.write_bytes(changed)
        try:
            loaded = Bandit.load(saved)
        except UnreadableFile:
            refused += 1
        else:  # a blank, the last digit of many, or the entry that says for people what the file is
            assert state_of(loaded) == state
    assert refused > 0.5 * len(places)


def test_a_file_cut_short_is_refused(saved):
    content = saved.read_bytes()
    for size in range(0, len(content), 7):
        saved.write_bytes(content[:size])
        with pytest.raises(UnreadableFile, match=r"bandit.json must be a file written by Bandit.save; it is damaged"):
            Bandit.load(saved)


FOREIGN = [b"", b"[]", b"{}", b"3", b"null", b'{"format": 2}', b'{"format": 3, "sha256": "", "body": {}}', b"\xff\xfe"]


@pytest.mark.parametrize("content", FOREIGN)
def test_a_foreign_file_is_refused(saved, content):
    saved.write_bytes(content)
    with pytest.raises(UnreadableFile, match="damaged or foreign"):
        Bandit.load(saved)
    assert saved.read_bytes() == content


def test_a_body_that_does_not_fit_is_refused(saved):
    for body in (
        {},
        {"settings": {}},
        {**snapshot.read_file(saved), "arms": 3},
        {**snapshot.read_file(saved), "open": [0]},
        {**snapshot.read_file(saved), "rolled": 3, "reports": 1.5},
        {**snapshot.read_file(saved), "amounts": {**snapshot.read_file(saved)["amounts"], "spent": [10**30]}},
        {**snapshot.read_file(saved), "clock": {**snapshot.read_file(saved)["clock"], "seed": -1}},
    ):
        snapshot.write_file(saved, body)
        with pytest.raises(UnreadableFile, match=r"must be a file written by Bandit\.save"):
            Bandit.load(saved)


@pytest.mark.parametrize("version", [0, 4])
def test_another_format_is_refused(saved, version):
    whole = json.loads(saved.read_bytes())
    saved.write_text(json.dumps({**whole, "format": version}))
    with pytest.raises(UnreadableFile, match=rf"bandit.json has format {version}; this version reads 1 to 3$"):
        Bandit.load(saved)


@pytest.mark.parametrize("name", ["missing", "."])
def test_what_is_no_file_is_refused(tmp_path, name):
    with pytest.raises(UnreadableFile, match="must be a readable file, but:"):
        Bandit.load(tmp_path / name)


# All or nothing.


def out_of_space(*arguments, **options):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("step", ["os.fdopen", "os.fsync", "pathlib.Path.replace"])
def test_a_save_that_fails_leaves_the_old_file(saved, monkeypatch, step):
    before = saved.read_bytes()
    bandit = experienced(steps=70)
    monkeypatch.setattr(step, out_of_space)
    with bookkeeper.unchanged(bandit), pytest.raises(PacelineError, match="must be a file to write to, but: No space"):
        bandit.save(saved)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]
    monkeypatch.undo()
    bandit.save(saved)
    assert state_of(Bandit.load(saved)) == state_of(bandit)


def test_a_save_leaves_one_file(saved):
    assert list(saved.parent.iterdir()) == [saved]

"""Policies of the user's own: in Python or compiled, simulated or live, as an object or by name, on every engine."""

import importlib.util
import json
import multiprocessing
import pickle
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import command
import elsewhere
import numpy as np
import pytest
from comparing import all_bits, bits
from lanes import first_of
from play import THREE_ARMS
from studies import parquet

import paceline as pl
from paceline import cli
from paceline.experiments import plan
from paceline.experiments.plan import seconds_per_round
from paceline.policies import Decision, learn_nothing, make_policy
from paceline.policies.policy import Setting
from paceline.simulation.simulate import Trial

TWO_RESOURCES = pl.Problem.beta(
    [0.45, 0.7, 0.8, 0.6],
    {"money": [0.3, 0.75, 0.8, 0.5], "energy": [0.2, 0.1, 0.6, 0.7]},
    budget={"money": 0.5, "energy": 0.25},
    max_costs={"money": [0.5, 1.0, 1.0, 0.9]},
)
PROBLEMS = {"one resource": THREE_ARMS, "two resources": TWO_RESOURCES}
every_problem = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)


def lanes(words: Iterable[str], *long: str) -> list[object]:
    """Cases, of which some take long."""
    return [pytest.param(each, marks=pytest.mark.slow if each in long else ()) for each in words]


def bandit_for(problem: pl.Problem, policy: object, **settings: object) -> pl.Bandit:
    """A live bandit with the lines of a problem; its arms are called by their numbers."""
    names = [str(arm) for arm in range(problem.arms)]
    largest = problem.named([dict(zip(names, most, strict=True)) for most in problem.most])
    return pl.Bandit(names, problem.budget, policy, max_cost=largest, **settings)


# With a library inside.


class Regression(pl.PythonPolicy):
    """A Bayesian regression of reward and cost on the arm, refitted now and then; draws from its posterior."""

    def reset(self, setting):
        self.random = setting.generator()
        self.arms = np.eye(setting.arms)
        self.seen, self.rewards, self.costs = [], [], []
        self.known = None

    def choose(self, state):
        if self.known is None:
            return int(self.random.integers(len(self.arms)))
        reward, cost = (mean + spread * self.random.standard_normal(len(mean)) for mean, spread in self.known)
        return int(np.argmax(reward / np.maximum(cost, 0.01)))

    def learn(self, state, arm, reward, cost):
        self.seen.append(self.arms[arm])
        self.rewards.append(reward)
        self.costs.append(cost[0])
        if len(self.seen) % 500 == 0:
            from sklearn.linear_model import BayesianRidge

            fits = [BayesianRidge().fit(self.seen, values) for values in (self.rewards, self.costs)]
            self.known = [fit.predict(self.arms, return_std=True) for fit in fits]


@pytest.mark.slow
def test_regression_decides_alike_simulated_and_live():
    rounds, seed = 20_000, 8
    totals = pl.simulate(
        THREE_ARMS, Regression(), rounds=rounds, trials=1, seed=seed, checkpoints=range(1, rounds + 1)
    )["Regression"].totals
    bandit, sample = bandit_for(THREE_ARMS, Regression(), seed=seed, rounds=rounds), THREE_ARMS.sample(seed, 0)
    pulls, spent, earned = np.zeros((rounds, 3), np.int64), np.zeros(rounds), np.zeros(rounds)
    for row in range(rounds):
        decision = bandit.ask()
        if decision.arm is not None:
            pulls[row, int(decision.arm)] = 1
            bandit.tell(decision.id, *sample.pull(int(decision.arm)))
        spent[row], earned[row] = bandit.spent, bandit.earned
    assert totals.pulls[0].tolist() == pulls.cumsum(axis=0).tolist()
    assert totals.spent[0].tobytes() == spent.tobytes()
    assert totals.earned[0].tobytes() == earned.tobytes()
    assert pulls.sum(axis=0).min() > 100  # it did choose


# Closed and opened again.


class Restless(pl.PythonPolicy):
    """Draws whenever it chooses, and notes what it drew, whether the guard lets it or not."""

    def reset(self, setting):
        self.random = setting.generator()
        self.drawn, self.earned = [], [1.0] * setting.arms

    def choose(self, state):
        self.drawn.append(self.random.random())
        if self.drawn[-1] < 0.1:
            return None
        return int(np.argmax(self.random.random(len(self.earned)) * self.earned))

    def learn(self, state, arm, reward, cost):
        self.earned[arm] += reward + self.random.random()


class Story:
    """What happens to a bandit round by round: news at once or late, pulls that never were, arms that come and go."""

    def __init__(self, problem: pl.Problem, late: int, arms_change: bool) -> None:
        self.problem, self.late, self.arms_change = problem, late, arms_change
        self.draws = problem.sample(3)

    def settings(self) -> dict[str, object]:
        """Of the bandit; three of its pulls in a row must be covered, or none would ever be late."""
        return {"seed": 3, "start": self.problem.named([3.0] * len(self.problem.resources)), "rounds": 1000}

    def round(self, bandit: pl.Bandit) -> list[object]:
        """One round, and what can be seen of it."""
        decision = bandit.ask()
        for number, arm in bandit.pending.items():
            if number > decision.id - self.late:
                continue
            if number % 11 == 0:
                bandit.cancel(number)
            elif number % 13 == 0:
                bandit.expire(number)
            else:
                bandit.tell(number, *self.draws.pull(int(arm)))
        if self.arms_change and decision.id % 40 == 0:
            (bandit.pause if decision.id % 80 else bandit.resume)("1")
        return [decision, bandit.spent, bandit.earned, bandit.reserved]


def own_of(bandit: pl.Bandit) -> tuple[object, ...]:
    """What the policy itself keeps."""
    policy = bandit._ledger.arm_set.params.policy
    return policy.drawn, policy.earned, str(policy.random.bit_generator.state)


ROUNDS, HALF = 160, 90
STORIES = {"told at once": (0, False), "told late": (3, False), "told late, arms come and go": (3, True)}
CLOSINGS = {
    "closed half way": ({}, {HALF}, ()),
    "closed half way after a snapshot": ({}, {HALF}, (HALF // 2,)),
    "closed right after a snapshot": ({}, {HALF}, (HALF,)),
    "snapshots of its own": ({"snapshot_every": 50}, {HALF}, ()),
    "closed all the time": ({}, set(range(0, ROUNDS, 20)), (HALF,)),
}


@every_problem
@pytest.mark.parametrize("closing", lanes(CLOSINGS, "closed right after a snapshot", "closed all the time"))
@pytest.mark.parametrize("story", lanes(STORIES, "told late"))
def test_bandit_that_was_closed_goes_on_like_one_that_was_not(story, closing, problem, tmp_path):
    settings, closed_after, snapshots = CLOSINGS[closing]
    here, there = Story(problem, *STORIES[story]), Story(problem, *STORIES[story])
    steady = bandit_for(problem, Restless(), **here.settings())
    bandit = bandit_for(problem, Restless(), **there.settings(), journal=tmp_path / "journal", **settings)
    for number in range(ROUNDS):
        assert there.round(bandit) == here.round(steady), number
        if number in snapshots:
            bandit.snapshot()
        if number in closed_after:
            bandit.close()
            bandit = pl.Bandit.open(tmp_path / "journal", policy=Restless(), **settings)
            assert bandit.recovered is None
            assert own_of(bandit) == own_of(steady)
    assert own_of(bandit) == own_of(steady)
    bandit.close()  # which waits until the last snapshot is written
    assert ("snapshot" in closing) == (tmp_path / "journal.snapshot").exists() or "all the time" in closing


class Unsaveable(Restless):
    """Keeps what no file can hold."""

    def reset(self, setting):
        super().reset(setting)
        self.rule = lambda number: number


def test_policy_that_cannot_be_saved_goes_on_without_snapshots(tmp_path, caplog):
    story, twin = (Story(THREE_ARMS, 0, False) for _ in range(2))
    steady = bandit_for(THREE_ARMS, Unsaveable(), **twin.settings())
    bandit = bandit_for(THREE_ARMS, Unsaveable(), **story.settings(), journal=tmp_path / "journal", snapshot_every=10)
    rule = "Unsaveable must keep only what can be pickled to be saved, but its attribute 'rule' cannot"
    for save in (lambda: bandit.save(tmp_path / "saved"), bandit.snapshot):
        with pytest.raises(pl.InvalidPolicy, match=rf"\A{rule}: .*\Z"):
            save()
    for _ in range(20):
        assert story.round(bandit) == twin.round(steady)
    bandit.close()
    (said,) = caplog.messages
    assert said.startswith(f"snapshot of {tmp_path / 'journal'} could not be written: {rule}: ")
    assert {path.name for path in tmp_path.iterdir()} == {"journal", "journal.owner"}
    with pl.Bandit.open(tmp_path / "journal", policy=Unsaveable()) as reopened:
        for _ in range(20):
            assert story.round(reopened) == twin.round(steady)


# In Python and compiled.


class TurnsInPython(pl.PythonPolicy):
    """The arms in turn."""

    def reset(self, setting):
        self.arms, self.pulls = setting.arms, 0

    def choose(self, state):
        return self.pulls % self.arms

    def learn(self, state, arm, reward, cost):
        self.pulls += 1


class GreedyInPython(pl.PythonPolicy):
    """Each arm once, then the highest mean of reward less costs; nothing in every tenth round."""

    def reset(self, setting):
        self.pulls = np.zeros(setting.arms, np.int64)
        self.rewards, self.costs = np.zeros(setting.arms), np.zeros((setting.arms, setting.resources))

    def choose(self, state):
        if state.clock.t % 10 == 0:
            return None
        if self.pulls.min() == 0:
            return int(np.argmin(self.pulls))
        worth = self.rewards / self.pulls
        for column in self.costs.T:
            worth = worth - column / self.pulls
        return int(np.argmax(worth))

    def learn(self, state, arm, reward, cost):
        self.pulls[arm] += 1
        self.rewards[arm] += reward
        self.costs[arm] += cost


class Nothing(NamedTuple):
    nothing: int


def choose_in_turn(params, state):
    arm = state.arms.pulls.sum() % state.arms.pulls.size
    return Decision(arm, 1, arm)


def choose_greedily(params, state):
    arms = state.arms
    if state.clock.t % 10 == 0:
        return Decision(arms.pulls.size, 1, arms.pulls.size)
    if arms.pulls.min() == 0:
        arm = np.argmin(arms.pulls)
        return Decision(arm, 1, arm)
    worth = arms.reward_mean.copy()
    for d in range(len(state.resources)):
        worth -= arms.cost_mean[:, d]
    arm = np.argmax(worth)
    return Decision(arm, 1, arm)


@dataclass(frozen=True, kw_only=True)
class Compiled(pl.Policy):
    name = "compiled"
    reasons = ("headroom below the largest cost", "chosen")
    tag_is_arm = True
    learn = staticmethod(learn_nothing)

    def params(self, setting):
        return Nothing(0)


@dataclass(frozen=True, kw_only=True)
class CompiledTurns(Compiled):
    choose = staticmethod(choose_in_turn)


@dataclass(frozen=True, kw_only=True)
class CompiledGreedy(Compiled):
    choose = staticmethod(choose_greedily)


@pytest.mark.slow
@every_problem
@pytest.mark.parametrize(
    ("in_python", "compiled"),
    [(TurnsInPython(), CompiledTurns()), (GreedyInPython(), CompiledGreedy())],
    ids=["in turn", "greedy"],
)
def test_python_and_compiled_text_of_a_rule_decide_alike(in_python, compiled, problem):
    policies = {"python": in_python, "compiled": compiled}
    runs = pl.simulate(problem, policies, rounds=3000, trials=3, seed=2, checkpoints=range(1, 3001))
    other = bits(runs["compiled"])
    assert not {field for field, found in bits(runs["python"]).items() if found != other[field]}
    assert runs["python"].pulls.sum() > 3000
    assert runs["python"].skips[:, -1].min() > 0  # the guard had a say


# Its own draws.


def test_draws_of_a_policy_tell_nothing_of_the_outcomes():
    """Every outcome is a coin that falls by one random word: no word of the policy's own may be the same word."""
    problem = pl.Problem.bernoulli([0.5] * 3, [0.5] * 3, budget=0.5)
    words = Setting(3, (0.5,), seed=4, stream=2).generator().bit_generator.random_raw(4 * 300).reshape(-1, 4)
    high = words >> np.uint64(63)
    sample = problem.sample(4, 2)
    coins = np.array([[sample.pull(arm) for arm in range(3)] for _ in range(320)]).reshape(320, 6)
    # A fair coin agrees with another one in 240 of 300 throws with a probability below 1e-26; 480 pairs are compared.
    for lead in range(20):
        agree = (high[:, :, None] == coins[lead : lead + 300, None, :]).sum(axis=0)
        assert agree.max() < 240, lead
        assert agree.min() > 60, lead


@pytest.mark.parametrize("seed", [2**63, 2**63 + 1, 2**64 - 1])
def test_every_seed_has_draws_of_its_own(seed):
    draws = [Setting(3, (0.5,), seed=each, stream=3).generator().random() for each in (seed, seed ^ 1, seed ^ 2)]
    assert len(set(draws)) == 3


# By name.

MODULE = "house_policies"
FILE = f"{MODULE}.py"
TEXT = '''
"""Policies of the house."""

from dataclasses import dataclass
from typing import NamedTuple

import paceline as pl
from paceline.policies import Decision, learn_nothing


class Sweep(pl.PythonPolicy):
    """The arms in turn, each so many times in a row; now and then one by lot."""

    def __init__(self, stay=1, lot=0.1):
        self.stay, self.lot = stay, lot

    def reset(self, setting):
        self.random, self.arms, self.turn = setting.generator(), setting.arms, 0

    def choose(self, state):
        self.turn += 1
        if self.random.random() < self.lot:
            return int(self.random.integers(self.arms))
        return self.turn // self.stay % self.arms


class Model:
    def __init__(self):
        self.gain = 1.0


class Modelled(Sweep):
    """One that keeps an object of a class of its own file."""

    def __init__(self):
        super().__init__()
        self.model = Model()


class Params(NamedTuple):
    stay: int


def choose(params, state):
    arm = state.clock.t // params.stay % state.arms.pulls.size
    return Decision(arm, 1, arm)


@dataclass(frozen=True, kw_only=True)
class Clock(pl.Policy):
    """The arm is told by the clock."""

    stay: int = 1

    name = "clock"
    reasons = ("headroom below the largest cost", "its turn")
    choose = staticmethod(choose)
    learn = staticmethod(learn_nothing)

    def params(self, setting):
        return Params(self.stay)


class Needy(pl.PythonPolicy):
    def __init__(self, wanted):
        self.wanted = wanted

    def choose(self, state):
        return 0


class Choosy(pl.PythonPolicy):
    def __init__(self, stay=1):
        raise ValueError("not today")

    def choose(self, state):
        return 0


class Nameless(pl.Policy):
    reasons = Clock.reasons
    choose = staticmethod(choose)
    learn = staticmethod(learn_nothing)

    def params(self, setting):
        return Params(1)
'''
OTHER_FILES = {
    "raises.py": "raise RuntimeError('out of order')\n",
    "many_lines.py": "raise RuntimeError('out of order\\nsince Monday')\n",
    "unfinished.py": "class Sweep(:\n",
    "leaves.py": "import sys\nsys.exit(3)\n",
    "latin.py": b"name = '\xe9'\n",
    "absent_policies.py": "import absent\n",
}


@pytest.fixture(scope="module")
def house(tmp_path_factory) -> Path:
    """A folder with policies."""
    folder = tmp_path_factory.mktemp("house")
    (folder / FILE).write_text(TEXT, encoding="utf-8")
    (folder / "sub").mkdir()
    (folder / "sub" / "more.py").write_text(TEXT, encoding="utf-8")
    for name, text in OTHER_FILES.items():
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


@pytest.fixture
def at_home(house, monkeypatch) -> Path:
    """Work in that folder, as a user does."""
    monkeypatch.chdir(house)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    return house


NAMES = [f"{MODULE}:Sweep", f"{FILE}:Sweep", "sub/more.py:Sweep"]
COMPILED_NAMES = [name.replace("Sweep", "Clock") for name in NAMES]
every_name = pytest.mark.parametrize("name", lanes([*NAMES, *COMPILED_NAMES], NAMES[2], *COMPILED_NAMES))
SETTINGS = {"rounds": 100, "trials": 2, "seed": 6, "checkpoints": 5}


@cache
def imported(file: Path) -> ModuleType:
    """A module of a name that nobody else uses, as Python itself makes one."""
    spec = importlib.util.spec_from_file_location("house_reference", file)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def object_of(name: str, **parameters: object) -> pl.Policy:
    """The policy without the help of names."""
    return getattr(imported(Path(FILE).resolve()), name.rpartition(":")[2])(**parameters)


def run_of(results: pl.Results) -> dict[str, object]:
    (run,) = results.values()
    return bits(run)


@every_name
def test_simulation_takes_a_name(name, at_home):
    by_name, by_object = (pl.simulate(THREE_ARMS, policy, **SETTINGS) for policy in (name, object_of(name)))
    assert all_bits(by_name) == all_bits(by_object)
    labels = {"one": name, "other": make_policy(name, stay=3)}
    together = pl.simulate(TWO_RESOURCES, labels, **SETTINGS)
    assert bits(together["other"]) == run_of(pl.simulate(TWO_RESOURCES, object_of(name, stay=3), **SETTINGS))
    assert bits(together["one"]) != bits(together["other"])


@every_name
def test_comparison_takes_a_name(name, at_home):
    settings = {"problems": 2, "rounds": 100, "trials": 2, "seed": 1}
    studies = [pl.compare("beta", [policy, "uniform"], **settings) for policy in (name, object_of(name))]
    assert studies[0].labels == studies[1].labels
    for one, other in zip(*(study.values() for study in studies), strict=True):
        assert all_bits(one) == all_bits(other)


@every_name
def test_bandit_takes_a_name(name, at_home):
    bandits = [bandit_for(TWO_RESOURCES, policy, seed=5) for policy in (name, object_of(name))]
    outcomes = [TWO_RESOURCES.sample(1) for _ in bandits]
    for _ in range(100):
        one, other = (bandit.ask() for bandit in bandits)
        assert one == other
        if one.arm is not None:
            for bandit, sample in zip(bandits, outcomes, strict=True):
                bandit.tell(one.id, *sample.pull(int(one.arm)))
    assert bandits[0].spent == bandits[1].spent != {"money": 0.0, "energy": 0.0}


@every_name
def test_replay_takes_a_name(name, at_home):
    log = {"arm": ["a", "b"] * 200, "reward": [0.5] * 400, "cost": [0.25, 0.5] * 200}
    settings = {"budget": 0.5, "seed": 1, "repeats": 3}
    by_name, by_object = (pl.replay(log, policy, **settings) for policy in (name, object_of(name)))
    assert str(by_name.table()) == str(by_object.table())


def test_same_name_is_the_new_text_once_the_file_has_changed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file, runs = Path("mine.py"), []
    for stay in (1, 2, 1):
        file.write_text(TEXT.replace("stay=1", f"stay={stay}"), encoding="utf-8")
        runs.append(run_of(pl.simulate(THREE_ARMS, "mine.py:Sweep", **SETTINGS)))
    assert runs[0] == runs[2] != runs[1]


# By name, in a file.

SPREAD = {"rounds": 100, "trials": 3, "seed": 6, "checkpoints": 5, "block": 2}
PROBLEM_TABLES = """
[[problem]]
paper = "three-arms"

[[problem]]
rewards = [0.45, 0.7, 0.8, 0.6]
costs = { money = [0.3, 0.75, 0.8, 0.5], energy = [0.2, 0.1, 0.6, 0.7] }
budget = { money = 0.5, energy = 0.25 }
"""


def write_experiment(folder: Path, policies: list[str], *tables: str) -> Path:
    path = folder / "experiment.toml"
    lines = [f"{key} = {value}" for key, value in SPREAD.items()]
    text = "\n".join([*lines, f"policies = {json.dumps(policies)}", *tables, PROBLEM_TABLES])
    path.write_text(text, encoding="utf-8")
    return path


def policy_table(name: str, label: str, **parameters: float) -> str:
    settings = [f"{key} = {value}" for key, value in parameters.items()]
    return "\n".join(["[[policy]]", f'name = "{name}"', f'label = "{label}"', *settings])


def experiment_of(names: list[str], folder: Path) -> Path:
    """Each name once as it is and once with parameters, and once in a grid."""
    grid = f'[[policy]]\nname = "{names[0]}"\nlabel = "swept"\ngrid.stay = [2, 5]'
    return write_experiment(folder, names, *(policy_table(name, f"slow {name}", stay=4) for name in names), grid)


def test_experiment_file_takes_names(at_home, tmp_path, capsys):
    file = experiment_of(NAMES, tmp_path)
    assert cli.main(["run", str(file)]) == 0
    assert "Traceback" not in capsys.readouterr().err
    results = pl.Study.open(file.with_suffix(""))["three-arms"]
    assert list(results) == [*NAMES, *(f"slow {name}" for name in NAMES), "swept, stay=2", "swept, stay=5"]
    settings = {key: value for key, value in SPREAD.items() if key != "block"}
    for name in NAMES:
        assert bits(results[name]) == run_of(pl.simulate(pl.paper.three_arms(), object_of(name), **settings))
        slow = pl.simulate(pl.paper.three_arms(), object_of(name, stay=4), **settings)
        assert bits(results[f"slow {name}"]) == run_of(slow)
    swept = pl.simulate(pl.paper.three_arms(), object_of(NAMES[0], stay=5), **settings)
    assert bits(results["swept, stay=5"]) == run_of(swept)


ENGINES = {
    "one thread": (pytest.mark.slow, "--workers", 1),
    "processes": (pytest.mark.slow, "--processes", "--workers", 2),
    "dask": (pytest.mark.cluster, "--dask", "local", "--workers", 2),
}


@pytest.mark.parametrize(
    "options", [pytest.param(options, marks=lane, id=name) for name, (lane, *options) in ENGINES.items()]
)
def test_names_give_the_same_bytes_on_every_engine(options, at_home, tmp_path):
    file = experiment_of([*NAMES, *COMPILED_NAMES], tmp_path)
    expected = pl.run_experiment(pl.Experiment.read(file), tmp_path / "here")
    printed = command.succeeded("run", file, "--out", tmp_path / "there", *options, cwd=at_home)
    assert parquet(pl.Study.open(tmp_path / "there")) == parquet(expected)
    assert all(name in printed for name in [*NAMES, *COMPILED_NAMES])


def test_file_of_a_policy_is_named_relative_to_the_experiment_as_other_files_are(tmp_path, monkeypatch, capsys):
    (tmp_path / "mine.py").write_text(TEXT, encoding="utf-8")
    file = write_experiment(tmp_path, ["mine.py:Sweep"])
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert cli.main(["run", str(file), "--dry-run"]) == 0, capsys.readouterr().err


class Waiting(pl.PythonPolicy):
    """Takes a millisecond to decide, which is not spent in the processor."""

    def choose(self, state):
        time.sleep(1e-3)
        return 0


# What 4 trials of 10,000 rounds of a policy in plain Python take on two workers, at 1 ms a round.
TIMES = {
    "threads take turns": ({"block": 1}, True, "40 seconds"),
    "processes do not": ({"block": 1}, False, "20 seconds"),
    "a block is for one process": ({"block": 4}, False, "40 seconds"),
}


@pytest.mark.parametrize("case", TIMES)
def test_estimated_time_of_plain_python(case, tmp_path, monkeypatch):
    """It was that of a mean policy of the file, divided by the workers."""
    block, threads, expected = TIMES[case]
    monkeypatch.setattr(plan, "seconds_per_round", lambda *_, **__: {"waiting": 1e-3, "uniform": 1e-8})
    table = {"rounds": 10_000, "trials": 4, "problem": [{"paper": "three-arms"}], **block}
    experiment = pl.Experiment.from_table(table, policies={"waiting": Waiting(), "uniform": pl.Uniform()})
    assert f"estimated time: {expected} on 2 workers" in plan.plan(experiment, tmp_path, 2, threads, print)


def test_a_slow_policy_is_not_timed_for_long():
    """40,000 rounds of it would take a minute before the first word."""
    trial = Trial(THREE_ARMS, Waiting(), np.array([10**6]), 0, 0)
    began = time.monotonic()
    found = seconds_per_round({"waiting": trial}, turns=1, clock=time.perf_counter)
    assert found["waiting"] >= 1e-3
    assert time.monotonic() - began < 10.0


CHANGES = {
    "parameters": ("stay = 4", "stay = 3", TEXT),
    "code": ("stay = 4", "stay = 4", TEXT.replace("self.turn += 1", "self.turn += 2")),
}


@pytest.mark.parametrize("change", CHANGES)
def test_folder_of_another_policy_is_refused(change, tmp_path, monkeypatch):
    """What is in it would be taken for the results of this one."""
    before, after, text = CHANGES[change]
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(TEXT, encoding="utf-8")
    file = write_experiment(tmp_path, [], policy_table("mine.py:Sweep", "sweep", stay=4))
    pl.run_experiment(pl.Experiment.read(file), tmp_path / "out")
    Path("mine.py").write_text(text, encoding="utf-8")
    file.write_text(file.read_text(encoding="utf-8").replace(before, after), encoding="utf-8")
    with pytest.raises(
        pl.PacelineError, match=f"it has policies sweep with other {change}, which this experiment has not"
    ):
        pl.run_experiment(pl.Experiment.read(file), tmp_path / "out")


@pytest.mark.parametrize("kind", first_of(["Sweep", "Clock"], "Sweep"))  # the other is compiled
@pytest.mark.parametrize("name", ["leaning.py", "leaning"])
def test_folder_is_refused_when_a_file_that_the_policy_imports_has_changed(kind, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("leaning.py").write_text(f"import leaned_on\n{TEXT}", encoding="utf-8")
    Path("leaned_on.py").write_text("from leaned_on_too import STEP\n", encoding="utf-8")
    Path("leaned_on_too.py").write_text("STEP = 1\n", encoding="utf-8")
    file = write_experiment(tmp_path, [f"{name}:{kind}"])
    folder = tmp_path / "out"
    first = parquet(pl.run_experiment(pl.Experiment.read(file), folder))
    assert parquet(pl.run_experiment(pl.Experiment.read(file), folder)) == first
    Path("leaned_on_too.py").write_text("STEP = 2\n", encoding="utf-8")
    with pytest.raises(
        pl.PacelineError, match=rf"it has policies {name}:{kind} with other code, which this experiment"
    ):
        pl.run_experiment(pl.Experiment.read(file), folder)
    for module in ("leaning", "leaned_on", "leaned_on_too"):
        sys.modules.pop(module, None)


IN_A_NEW_PROCESS = """
import sys, paceline as pl
study = pl.run_experiment(pl.Experiment.read(sys.argv[1]), sys.argv[2])
print(study.manifest["experiment"]["policies"][0]["policy"])
"""


@pytest.mark.slow
def test_folder_is_known_again_by_a_new_process(tmp_path, monkeypatch):
    """Nothing in its manifest may depend on addresses or on the order of a set."""
    monkeypatch.chdir(tmp_path)
    text = TEXT.replace("self.model = Model()", 'self.model, self.words, self.rule = Model(), {"a", "b", "c"}, choose')
    Path("mine.py").write_text(text, encoding="utf-8")
    file = write_experiment(tmp_path, ["mine.py:Modelled"])
    told = {elsewhere.run(IN_A_NEW_PROCESS, file, tmp_path / "out", PYTHONHASHSEED=str(seed))[0] for seed in (1, 2)}
    assert told == {"Modelled(stay=1, lot=0.1, model=Model(gain=1.0), words={'a', 'b', 'c'}, rule=choose)"}


def test_parameters_of_a_policy_are_seen(at_home, tmp_path):
    assert repr(make_policy(f"{FILE}:Sweep", stay=3)) == "Sweep(stay=3, lot=0.1)"
    assert repr(make_policy(f"{FILE}:Clock", stay=3)) == "Clock(stay=3)"
    assert repr(make_policy(f"{FILE}:Modelled")) == "Modelled(stay=1, lot=0.1, model=Model(gain=1.0))"
    study = pl.run_experiment(
        pl.Experiment.read(write_experiment(tmp_path, [], policy_table(f"{FILE}:Sweep", "mine", stay=4))),
        tmp_path / "out",
    )
    assert cli.main(["report", str(study.path)]) == 0
    assert "Sweep(stay=4, lot=0.1)" in (study.path / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NAMES, *COMPILED_NAMES])
def test_compare_on_the_command_line_takes_names(name, at_home, tmp_path, capsys):
    policies = f"{name},{name}:stay=3,uniform"
    sizes = ["--problems", "2", "--rounds", "200", "--trials", "2", "--seed", "1"]
    assert cli.main(["compare", "beta", "--policies", policies, *sizes, "--out", str(tmp_path)]) == 0
    assert "Traceback" not in capsys.readouterr().err
    labels = {name: object_of(name), f"{name}:stay=3": object_of(name, stay=3), "uniform": "uniform"}
    study = pl.compare("beta", labels, problems=2, rounds=200, trials=2, seed=1)
    for problem, results in pl.Study.open(tmp_path / "beta").results():
        assert all_bits(results) == all_bits(study[problem])
    again = pl.Experiment.from_table(study.manifest["file"])  # names that can be found again
    assert [entry["code"] for entry in again.to_dict()["policies"][:2]] == [
        entry["code"] for entry in study.experiment["policies"][:2]
    ]


# Far from its file.


@pytest.fixture
def moved(tmp_path, monkeypatch):
    """Policies from a file that is gone once they are made."""
    monkeypatch.chdir(tmp_path)
    Path("gone.py").write_text(TEXT, encoding="utf-8")
    names = {"plain": "Sweep", "compiled": "Clock", "with an object of its own": "Modelled"}
    made = {kind: make_policy(f"gone.py:{name}") for kind, name in names.items()}
    Path("gone.py").unlink()
    return made


UNPACK = """
import pickle, sys
policy = pickle.loads(bytes.fromhex(sys.argv[1]))
print(type(policy).__name__, sorted(vars(policy)))
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "compiled", "with an object of its own"])
def test_policy_from_a_file_travels_to_where_the_file_is_not(kind, moved):
    policy = moved[kind]
    (line,) = elsewhere.run(UNPACK, pickle.dumps(policy).hex())
    assert line == f"{type(policy).__name__} {sorted(vars(policy))}"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "compiled", "with an object of its own"])
def test_policy_from_a_file_plays_where_the_file_is_not(kind, moved):
    alone = pl.simulate(TWO_RESOURCES, moved[kind], **SETTINGS)
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        assert all_bits(pl.simulate(TWO_RESOURCES, moved[kind], **SETTINGS, executor=pool)) == all_bits(alone)


# Names that lead nowhere.

WRONG = {
    "no such module": ("no_such_module:Sweep", ["no_such_module"]),
    "no such module in a package": ("json.no_such_part:Sweep", ["json.no_such_part"]),
    "no such file": ("no_such_file.py:Sweep", ["no_such_file.py", "No such file"]),
    "a folder": ("sub:Sweep", ["Sweep", "sub"]),
    "no such class in a module": (f"{MODULE}:Swoop", ["Swoop", MODULE]),
    "no such class in a file": (f"{FILE}:Swoop", ["Swoop", FILE]),
    "no policy in a module": (f"{MODULE}:Model", ["Model", MODULE, "derived from"]),
    "no policy in a file": (f"{FILE}:Model", ["Model", FILE, "derived from"]),
    "a function": (f"{FILE}:choose", ["choose", FILE, "derived from"]),
    "no class": (f"{FILE}:", [FILE]),
    "no module": (":Sweep", ["Sweep"]),
    "a module that raises": ("raises:Sweep", ["raises", "RuntimeError", "out of order"]),
    "a file that raises": ("raises.py:Sweep", ["raises.py", "RuntimeError", "out of order"]),
    "a module that raises in two lines": ("many_lines:Sweep", ["many_lines", "out of order"]),
    "a file that raises in two lines": ("many_lines.py:Sweep", ["many_lines.py", "out of order"]),
    "a module that does not parse": ("unfinished:Sweep", ["unfinished", "SyntaxError"]),
    "a file that does not parse": ("unfinished.py:Sweep", ["unfinished.py", "SyntaxError"]),
    "a module that leaves": ("leaves:Sweep", ["leaves", "SystemExit"]),
    "a file that leaves": ("leaves.py:Sweep", ["leaves.py", "SystemExit"]),
    "a module in another encoding": ("latin:Sweep", ["latin"]),
    "a file in another encoding": ("latin.py:Sweep", ["latin.py"]),
    "a module that needs another": ("absent_policies:Sweep", ["absent_policies", "No module named 'absent'"]),
    "a file that needs another": ("absent_policies.py:Sweep", ["absent_policies.py", "No module named 'absent'"]),
    "a class that needs an argument, in a module": (f"{MODULE}:Needy", ["Needy", "'wanted'"]),
    "a class that needs an argument, in a file": (f"{FILE}:Needy", ["Needy", "'wanted'"]),
    "a class that refuses": (f"{FILE}:Choosy", ["Choosy", "not today"]),
}
wrong = pytest.mark.parametrize("what", WRONG)


def check_line(line: str, words: list[str]) -> None:
    assert len(line.splitlines()) == 1
    for word in words:
        assert word in line


@wrong
@pytest.mark.parametrize(
    "use",
    [
        lambda name: pl.simulate(THREE_ARMS, ["uniform", name], **SETTINGS),
        lambda name: pl.compare("beta", name, problems=1, rounds=100, trials=1),
        lambda name: bandit_for(THREE_ARMS, name),
    ],
    ids=["simulate", "compare", "Bandit"],
)
def test_wrong_name_is_one_line(use, what, at_home):
    name, words = WRONG[what]
    with pytest.raises(pl.PacelineError) as refused:
        use(name)
    check_line(str(refused.value), words)


@wrong
@pytest.mark.parametrize("use", ["run", "compare"])
def test_wrong_name_is_one_line_on_the_command_line(use, what, at_home, tmp_path, capsys):
    name, words = WRONG[what]
    if use == "run":
        arguments = ["run", str(write_experiment(tmp_path, ["uniform", name]))]
    else:
        arguments = ["compare", "beta", "--policies", f"uniform,{name}", "--out", str(tmp_path / "out")]
    assert cli.main(arguments) == 2
    out, messages = capsys.readouterr()
    assert (out, messages[:17]) == ("", "paceline: error: ")
    check_line(messages, words)
    assert {path.name for path in tmp_path.iterdir()} <= {"experiment.toml"}


def test_class_without_a_name_is_one_line(at_home):
    with pytest.raises(pl.PacelineError) as refused:
        pl.simulate(THREE_ARMS, f"{FILE}:Nameless", **SETTINGS)
    check_line(str(refused.value), ["Nameless", "name"])


@pytest.mark.parametrize("name", [f"{MODULE}:Sweep", f"{FILE}:Sweep", f"{MODULE}:Clock", f"{FILE}:Clock"])
def test_parameter_that_there_is_not_is_one_line(name, at_home, tmp_path, capsys):
    assert cli.main(["run", str(write_experiment(tmp_path, [], policy_table(name, "mine", speed=3)))]) == 2
    check_line(capsys.readouterr().err, ["policy 1", "speed"])
    assert cli.main(["compare", "beta", "--policies", f"{name}:speed=3", "--out", str(tmp_path / "out")]) == 2
    check_line(capsys.readouterr().err, ["speed"])


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--processes"], ["--dask", "local"]], ids=" ".join)
def test_wrong_name_is_one_line_from_a_real_process(options, house, tmp_path):
    file = write_experiment(tmp_path, ["raises.py:Sweep"])
    done = command.call("run", file, *options, cwd=house)
    assert (done.returncode, done.stdout) == (2, "")
    check_line(done.stderr, ["experiment.toml", "policies[0]", "raises.py", "out of order"])

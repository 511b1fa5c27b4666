"""Compiled code is kept on disk, and never outlives the source it was made from."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import play
import pytest

import paceline
from paceline.policies.uniform import Uniform
from paceline.problems.problem import Problem

pytestmark = pytest.mark.slow

# Plays the policy whose class is named on the command line as module and name; prints what came of it.
PLAY = """
import importlib, json, sys
from pathlib import Path
import paceline
from paceline.grafting import simulator_for
from paceline.kernels.page import NO_PAGE
from paceline.kernels.state import state_in
from paceline.worlds.stationary import StationaryWorld
from paceline.policies.policy import Setting
from paceline.problems.problem import Problem

module, name = sys.argv[1:]
policy = getattr(importlib.import_module(module), name)()
problem = Problem.beta([0.3, 0.9], [0.2, 0.6], budget=0.5)
setting = Setting(arms=2, rates=(0.5,), rounds=500, problem=problem)
storage = policy.new_storage(setting, 1, 0)
simulate = simulator_for(type(policy), StationaryWorld)
simulate(policy.params(setting), storage, StationaryWorld(problem).data, NO_PAGE, 500)
arms = state_in(storage).arms
print(json.dumps({
    "package": str(Path(paceline.__file__).parent),
    "numbers": [*arms.pulls.tolist(), *arms.reward_sum, *arms.cost_sum.ravel(), float(storage.tally[0].earned)],
    "from cache": sum(simulate.stats.cache_hits.values()),
    "compiled": sum(simulate.stats.cache_misses.values()),
}))
"""
UNIFORM = ("paceline.policies.uniform", "Uniform")

MY_HELPER = """
from paceline.kernels.jit import kernel


@kernel
def pick(params):
    return params.favourite + 0
"""

MY_POLICY = """
from dataclasses import dataclass
from typing import NamedTuple

from my_helper import pick
from paceline.kernels.state import Decision
from paceline.policies.policy import Policy, learn_nothing


class Params(NamedTuple):
    favourite: int


def choose(params, state):
    arm = pick(params) + 0
    return Decision(arm, 1, arm)


@dataclass(frozen=True, kw_only=True)
class Mine(Policy):
    favourite: int = 0

    name = "mine"
    reasons = ("headroom below the largest cost", "my favourite")
    choose = staticmethod(choose)
    learn = staticmethod(learn_nothing)

    def params(self, setting):
        return Params(self.favourite)
"""
MINE = ("my_policy", "Mine")


@pytest.fixture
def site(tmp_path):
    """A folder with a copy of the package, to be edited."""
    folder = tmp_path / "site"
    shutil.copytree(Path(paceline.__file__).parent, folder / "paceline", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture
def cache(tmp_path):
    """A folder for compiled code."""
    folder = tmp_path / "cache"
    folder.mkdir()
    return folder


def play_trials(site, cache, policy=UNIFORM, **environment):
    """What a new process makes of the package in that folder, with that cache."""
    # No .pyc files: Python takes them for fresh when an edit within the same second leaves the size as it was.
    settings = {"PYTHONPATH": str(site), "NUMBA_CACHE_DIR": str(cache), "PYTHONDONTWRITEBYTECODE": "1"}
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", PLAY, *policy],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **settings, **environment},
    )
    assert ran.returncode == 0, ran.stderr
    result = json.loads(ran.stdout)
    assert result.pop("package") == str(site / "paceline")
    return result


def edit(file, old, new):
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1
    file.write_text(text.replace(old, new), encoding="utf-8")


def files_in(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def test_an_unchanged_second_run_compiles_nothing(site, cache):
    first = play_trials(site, cache)
    files = files_in(cache)
    second = play_trials(site, cache)
    assert (first["from cache"], first["compiled"]) == (0, 1)
    assert (second["from cache"], second["compiled"]) == (1, 0)
    assert second["numbers"] == first["numbers"]
    assert files
    assert files_in(cache) == files


EDITS = [
    ("kernels/estimates.py", "arms.reward_sum[arm] += reward", "arms.reward_sum[arm] += 0.5 * reward"),
    ("kernels/random.py", "HALF_STEP = 2.0**-53", "HALF_STEP = 2.0**-54"),
    ("policies/uniform.py", "arm = int(", "arm = 1 - int("),
    ("engine.py", "books.tally.earned += reward", "books.tally.earned += 0.5 * reward"),
]


def test_an_edit_in_any_file_is_noticed(site, cache):
    numbers = [play_trials(site, cache)["numbers"]]
    for file, old, new in EDITS:
        edit(site / "paceline" / file, old, new)
        edited = play_trials(site, cache)
        assert edited["compiled"] == 1
        assert edited["numbers"] not in numbers
        numbers.append(edited["numbers"])


def test_works_without_a_folder_to_write_to(site, tmp_path):
    a_file = tmp_path / "file"
    a_file.touch()
    # Below a file no folder can be made, not even by root; the class name keeps numba from looking elsewhere.
    nowhere = play_trials(site, a_file / "cache", NUMBA_CACHE_LOCATOR_CLASSES="UserProvidedCacheLocator")
    assert nowhere["from cache"] == 0
    assert not list(tmp_path.rglob("*.nbi"))
    game = play.begin(Uniform(), Problem.beta([0.3, 0.9], [0.2, 0.6], budget=0.5), seed=1, stream=0)
    play.simulate(game, 500)
    arms = game.state.arms
    numbers = [*arms.pulls, *arms.reward_sum, *arms.cost_sum.ravel(), game.books.tally.earned]
    assert nowhere["numbers"] == numbers


@pytest.fixture
def users_site(site):
    """A user's policy and a kernel of its own, in two files beside the package."""
    (site / "my_helper.py").write_text(MY_HELPER, encoding="utf-8")
    (site / "my_policy.py").write_text(MY_POLICY, encoding="utf-8")
    return site


def pulls(result):
    return result["numbers"][:2]


def test_a_policy_of_the_user_is_cached(users_site, cache):
    first, second = play_trials(users_site, cache, MINE), play_trials(users_site, cache, MINE)
    assert pulls(first) == [max(pulls(first)), 0]
    assert second == {**first, "from cache": 1, "compiled": 0}


@pytest.mark.parametrize(("file", "line"), [("my_policy.py", "pick(params)"), ("my_helper.py", "params.favourite")])
def test_an_edit_of_a_policy_of_the_user_is_noticed(users_site, cache, file, line):
    before = play_trials(users_site, cache, MINE)
    edit(users_site / file, f"{line} + 0", f"{line} + 1")
    after = play_trials(users_site, cache, MINE)
    assert pulls(before)[1] == 0
    assert pulls(after)[0] == 0
    assert pulls(after)[1] > 0


# How a policy may come by a number in another file: what it imports, and what it chooses.
WAYS = {
    "a function of a module": ("import my_helper", "my_helper.pick(params)"),
    "a constant": ("from my_helper import ARM", "ARM"),
    "a constant of a module that has it from another": ("import my_between", "my_between.ARM"),
    "a function in a comprehension": ("from my_helper import pick", "max([pick(params) for _ in range(2)])"),
    "a function inside a function": ("from my_helper import pick", "(lambda: pick(params))()"),
}
HELPER_WITH_A_CONSTANT = """
import numba

ARM = 0


@numba.njit
def pick(params):
    return params.favourite + ARM
"""


@pytest.mark.parametrize("way", WAYS)
def test_an_edit_of_a_file_is_noticed_however_it_is_used(site, cache, way):
    imported, chosen = WAYS[way]
    policy = MY_POLICY.replace("from my_helper import pick", imported).replace("pick(params) + 0", chosen)
    texts = {"policy": policy, "between": "from my_helper import ARM\n", "helper": HELPER_WITH_A_CONSTANT}
    for name, text in texts.items():
        (site / f"my_{name}.py").write_text(text, encoding="utf-8")
    before = play_trials(site, cache, MINE)
    edit(site / "my_helper.py", "ARM = 0", "ARM = 1")
    after = play_trials(site, cache, MINE)
    assert pulls(before)[0] > pulls(before)[1] == 0
    assert pulls(after)[1] > pulls(after)[0] == 0


def test_an_edit_of_the_reasons_is_noticed_when_the_functions_are_in_another_file(users_site, cache):
    """The number of reasons is in the machine code; a decision with a reason that there is not ends the game."""
    choice = "def choose(params, state):\n    return Decision(0, 2, 0)\n"
    text = f"from paceline.kernels.state import Decision\n\n\n{choice}"
    (users_site / "my_helper.py").write_text(text, encoding="utf-8")
    with_two = MY_POLICY.replace("import pick", "import choose as chosen").replace("(choose)", "(chosen)")
    (users_site / "my_policy.py").write_text(with_two, encoding="utf-8")
    assert pulls(play_trials(users_site, cache, MINE)) == [0, 0]
    edit(users_site / "my_policy.py", '"my favourite")', '"my favourite", "another")')
    assert pulls(play_trials(users_site, cache, MINE))[0] > 0


# Worlds of a user's own.

MY_WORLDS = """
from typing import NamedTuple

import numpy as np

from paceline.worlds.world import World


class Amounts(NamedTuple):
    amounts: np.ndarray


def cheap(data, clock, arm, count, cost):
    cost[0] = 0.25 * data.amounts[arm]
    return 1.0


def expensive(data, clock, arm, count, cost):
    cost[0] = 0.75 * data.amounts[arm]
    return 0.5


class Cheap(World):
    outcome = staticmethod(cheap)

    def __init__(self):
        self.data = Amounts(np.ones(2))


class Expensive(Cheap):
    outcome = staticmethod(expensive)
"""
PLAY_WORLDS = """
import importlib, json, sys
from paceline.grafting import simulator_for
from paceline.kernels.page import NO_PAGE
from paceline.policies.policy import Setting
from paceline.policies.uniform import Uniform

worlds = importlib.import_module("my_worlds")
setting = Setting(arms=2, rates=(1.0,))
for name in sys.argv[1:]:
    storage, world = Uniform().new_storage(setting, 1, 0), getattr(worlds, name)()
    simulator_for(Uniform, type(world))(Uniform().params(setting), storage, world.data, NO_PAGE, 100)
    print(json.dumps([float(storage.tally[0].earned), float(storage.costs[1].sum())]))
"""


@pytest.fixture
def worlds_site(site):
    """Two worlds of a user in one file beside the package, alike in all but their functions."""
    (site / "my_worlds.py").write_text(MY_WORLDS, encoding="utf-8")
    return site


def play_worlds(site, cache, *names):
    """What each world yields: rewards and costs of 100 rounds."""
    settings = {"PYTHONPATH": str(site), "NUMBA_CACHE_DIR": str(cache), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-W", "error", "-c", PLAY_WORLDS, *names]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **settings})
    assert ran.returncode == 0, ran.stderr
    return [tuple(json.loads(line)) for line in ran.stdout.splitlines()]


def test_two_worlds_of_one_file_are_not_confused(worlds_site, cache):
    assert play_worlds(worlds_site, cache, "Cheap", "Expensive") == [(100.0, 25.0), (50.0, 75.0)]
    assert play_worlds(worlds_site, cache, "Expensive") == [(50.0, 75.0)]


def test_an_edit_of_a_world_of_the_user_is_noticed(worlds_site, cache):
    assert play_worlds(worlds_site, cache, "Cheap") == [(100.0, 25.0)]
    edit(worlds_site / "my_worlds.py", "0.25 * data", "0.5 * data")
    assert play_worlds(worlds_site, cache, "Cheap") == [(100.0, 50.0)]

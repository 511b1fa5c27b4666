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

# Plays the policy whose class is named on the command line as module and name; prints what came of it.
PLAY = """
import importlib, json, sys
from pathlib import Path
import paceline
from paceline.engine import engine_for
from paceline.worlds.stationary import world_of
from paceline.policies.policy import Setting
from paceline.problems.problem import Problem

module, name = sys.argv[1:]
policy = getattr(importlib.import_module(module), name)()
problem = Problem.beta([0.3, 0.9], [0.2, 0.6], budget=0.5)
setting = Setting(arms=2, budget=0.5, rounds=500, problem=problem)
state = policy.new_state(setting, 1, 0)
simulate = engine_for(type(policy)).simulate
simulate(policy.params(setting), state, world_of(problem), 500)
print(json.dumps({
    "package": str(Path(paceline.__file__).parent),
    "numbers": [*state.arms.pulls.tolist(), *state.arms.reward_sum, *state.arms.cost_sum],
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
from paceline.policies.policy import Policy, learn_nothing


class Params(NamedTuple):
    favourite: int


def choose(params, state):
    arm = pick(params) + 0
    return arm, 1, arm


@dataclass(frozen=True, kw_only=True)
class Mine(Policy):
    favourite: int = 0

    name = "mine"
    events = ("headroom below the largest cost", "my favourite")
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
    ("estimates.py", "arms.reward_sum[arm] += reward", "arms.reward_sum[arm] += 0.5 * reward"),
    ("draw.py", "HALF_STEP = 2.0**-53", "HALF_STEP = 2.0**-54"),
    ("policies/uniform.py", "arm = int(", "arm = 1 - int("),
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
    assert nowhere["numbers"] == [*arms.pulls, *arms.reward_sum, *arms.cost_sum]


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

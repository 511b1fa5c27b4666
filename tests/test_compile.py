"""Compiling ahead, by several processes, without getting in each other's way; and what is left of old code."""

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

import paceline
from paceline import compile as ahead
from paceline import machine
from paceline.grafting import policy_parts
from paceline.kernels import jit, stale
from paceline.kernels.hull import best_mix
from paceline.policies import make_policy
from paceline.policies.uniform import Uniform

pytestmark = pytest.mark.slow

# Counts what numba compiles while the code in argv[1] runs; prints the functions' names.
COUNTED = """
import json, sys
from numba.core.event import install_recorder
with install_recorder("numba:compile") as recorder:
    exec(sys.argv[1], {"__name__": "somewhere"})
started = [event for _, event in recorder.buffer if event.is_start]
print(json.dumps([event.data["dispatcher"].py_func.__name__ for event in started]))
"""
SIMULATED = "import paceline as pl; pl.simulate(pl.paper.three_arms(), {0!r}, rounds=10, trials=1)"
LIVE = "import paceline as pl; b = pl.Bandit(['a', 'b'], 0.5, {0!r}); d = b.ask(); d.arm and b.tell(d.id, 0.5, 0.5)"
AHEAD = "from paceline import compile as c, policies; c.compile_ahead([policies.make_policy({0!r})])"

# A policy that only this process knows; then the same with helpers.
MINE_IN_MAIN = """
import json
from dataclasses import dataclass
from paceline import compile as ahead
from paceline.policies.uniform import Uniform
ahead.cores = lambda: 2

@dataclass(frozen=True, kw_only=True)
class Mine(Uniform):
    name = "mine"
    reasons = (*Uniform.reasons, "mine")  # else it would be a preset, which has no code of its own

jobs = [Mine(), Uniform()]
compiled = ahead.compile_ahead(jobs, ["simulation"])
print(json.dumps([compiled, ahead.compile_ahead(jobs, ["simulation"])]))
"""

HITS = """
import json
from paceline.compile import Job
from paceline.policies.uniform import Uniform
loop, = Job(Uniform(), ("simulation",)).loops()
loop.function(*loop.arguments)
print(json.dumps([loop.function.stats.cache_hits.total(), loop.function.stats.cache_misses.total()]))
"""


@pytest.fixture
def cache(tmp_path):
    """A folder for compiled code."""
    folder = tmp_path / "cache"
    folder.mkdir()
    return folder


@pytest.fixture
def site(tmp_path):
    """A folder with a copy of the package, to be edited."""
    folder = tmp_path / "site"
    shutil.copytree(Path(paceline.__file__).parent, folder / "paceline", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def environment(cache, site=None):
    path = [str(site)] if site else sys.path
    settings = {"PYTHONPATH": os.pathsep.join(path), "NUMBA_CACHE_DIR": str(cache), "PYTHONDONTWRITEBYTECODE": "1"}
    return {**os.environ, **settings}


def python(cache, code, *arguments, site=None):
    """What Python code prints, as JSON."""
    command = [sys.executable, "-c", code, *arguments]
    ran = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment(cache, site), timeout=300
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def command(cache, *arguments, site=None):
    """What ``paceline`` prints, and what it says meanwhile."""
    code = "import sys; from paceline.cli import main; sys.exit(main(sys.argv[1:]))"
    ran = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=environment(cache, site),
        timeout=300,
    )
    return ran.returncode, ran.stdout, ran.stderr


def compiled_for(cache, code):
    """The functions that numba compiles when a new process runs some code."""
    return python(cache, COUNTED, code)


def kept(cache, ending="*.nbi"):
    return {path.name for path in cache.rglob(ending)}


# What is compiled.


def test_after_compile_nothing_is_compiled(cache):
    assert compiled_for(cache, SIMULATED.format("uniform"))
    code, printed, said = command(cache, "compile", "uniform")
    assert (code, printed) == (0, "9 functions compiled, 0 files of earlier versions removed\n")
    assert said.startswith("compiling 1 policy for this machine, once (about ")
    assert len(said.splitlines()) == 1
    assert compiled_for(cache, SIMULATED.format("uniform")) == []
    assert compiled_for(cache, LIVE.format("uniform")) == []
    assert compiled_for(cache, AHEAD.format("uniform")) == []


def test_compile_with_nothing_to_do_says_so_once(cache):
    command(cache, "compile", "uniform")
    files = {path: path.stat().st_mtime_ns for path in cache.rglob("*")}
    code, printed, said = command(cache, "compile", "uniform")
    assert (code, printed, said) == (0, "0 functions compiled, 0 files of earlier versions removed\n", "")
    assert {path: path.stat().st_mtime_ns for path in cache.rglob("*")} == files


def test_compile_of_a_policy_that_is_not_there():
    code, printed, said = command(Path(), "compile", "unfair")
    assert (code, printed) == (2, "")
    assert said.startswith("paceline: error: policy must be one of index, ")


def test_a_command_says_when_it_must_compile(cache, tmp_path):
    options = [
        "--policies",
        "uniform,oracle",
        "--problems",
        1,
        "--rounds",
        20,
        "--trials",
        1,
        "--out",
        tmp_path / "out",
    ]
    code, _, said = command(cache, "compare", "beta", *options)
    assert code == 0, said
    assert said.startswith("compiling 2 policies for this machine, once (about ")
    code, _, said = command(cache, "compare", "beta", *options)
    assert code == 0, said
    assert "compiling" not in said


def test_an_experiment_says_when_it_must_compile(cache, tmp_path):
    file = tmp_path / "small.toml"
    file.write_text(
        'rounds = 20\ntrials = 2\npolicies = ["uniform"]\n[[problem]]\n'
        "rewards = [0.2, 0.8]\ncosts = [0.1, 0.7]\nbudget = 0.4\n",
        encoding="utf-8",
    )
    said = [command(cache, "run", file, *options)[2] for options in (["--dry-run"], [], [])]
    assert ["compiling 1 policy" in text for text in said] == [True, False, False], said


def test_no_kernel_is_compiled_twice_for_a_constant(cache):
    found = compiled_for(cache, SIMULATED.format("primal-dual"))
    assert "highest_value" in found
    for name in ("highest_value", "sample", "outcome", "best_mix", "block"):
        assert found.count(name) == 1, name


def test_kernels_have_no_machine_code_of_their_own():
    assert jit.inner is not None, "this numba is made differently inside: see inner.py"
    (loop,) = ahead.Job(Uniform(), ("simulation",)).loops()
    jit.compile_now(loop.function, *loop.arguments)
    _, _, kernels = policy_parts(Uniform)
    made = [made for kernel in kernels.values() for made in kernel.overloads.values()]
    assert all(isinstance(each.library, jit.inner.InnerLibrary) for each in made)


def test_a_kernel_can_be_called_from_python():
    @jit.kernel
    def doubled(x):
        return 2 * x

    assert (doubled(3), doubled(0.5)) == (6, 1.0)


def test_a_numba_made_differently_inside_gives_the_same_numbers(cache, tmp_path):
    code = """
import json, sys
if sys.argv[1] == "without":
    sys.modules["paceline.kernels.inner"] = None
import paceline as pl
from paceline.kernels import jit
assert (jit.inner is None) == (sys.argv[1] == "without")
run = pl.simulate(pl.paper.three_arms(), "optimistic", rounds=500, trials=2)["optimistic"]
print(json.dumps([run.regret.tolist(), run.spent.tolist()]))
"""
    other = tmp_path / "other"
    other.mkdir()
    assert python(cache, code, "with") == python(other, code, "without")


# Who compiles it.


@pytest.fixture
def helper(cache, monkeypatch):
    """A helper that keeps its code in the cache folder."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(cache))
    process = ahead.started(0)
    yield process
    process.kill()
    process.communicate()


def test_a_helper_fills_the_cache(helper, cache):
    assert ahead.was_done(ahead.Job(Uniform(), ("simulation", "replay")), helper)
    assert ahead.was_done(ahead.Job(Uniform(), ("live",)), helper)
    assert len(kept(cache)) == 10  # one of simulations, two of replays, seven of a live bandit
    assert compiled_for(cache, SIMULATED.format("uniform")) == []


def test_a_helper_that_has_died_did_nothing(helper):
    helper.kill()
    helper.wait()
    assert not ahead.was_done(ahead.Job(Uniform(), ("simulation",)), helper)


def test_a_policy_that_helpers_cannot_know_is_compiled_all_the_same(cache):
    assert python(cache, MINE_IN_MAIN) == [2, 0]
    assert len(kept(cache)) == 2


def test_presets_are_one_job():
    presets = [make_policy(name) for name in ("lagrangian", "lagrange-bwk", "uniform")]
    assert [job.policy.name for job in ahead.jobs_for(presets, ["simulation"], [1])] == ["lagrangian", "uniform"]


def test_without_an_interpreter_to_start_all_is_compiled_here(cache):
    no_python = MINE_IN_MAIN.replace("import json", "import json, sys; sys.executable = '/nowhere/python'", 1)
    assert python(cache, no_python) == [2, 0]


def test_without_compilation_there_is_nothing_to_do(cache):
    code = "import os; os.environ['NUMBA_DISABLE_JIT'] = '1'\n" + MINE_IN_MAIN
    assert python(cache, code) == [0, 0]


# One process at a time.


def test_two_processes_at_once_compile_a_function_once(cache):
    starts = [
        subprocess.Popen([sys.executable, "-c", HITS], stdout=subprocess.PIPE, text=True, env=environment(cache))
        for _ in range(3)
    ]
    counts = [json.loads(process.communicate(timeout=300)[0]) for process in starts]
    assert sorted(counts) == [[0, 1], [1, 0], [1, 0]]


HOLD = """
import sys, time
from pathlib import Path
from paceline.machine import alone
with alone(Path(sys.argv[1]), 7):
    print("in", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def held(tmp_path):
    """A folder in which another process holds place 7."""
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment(tmp_path)) as process:
        assert process.stdout.readline() == "in\n"
        yield tmp_path, process
        process.stdin.close()


def test_a_place_is_for_one_process(held, monkeypatch):
    folder, process = held
    waited = []

    def let_go(seconds):
        waited.append(seconds)
        process.stdin.close()
        process.wait()

    monkeypatch.setattr(machine.time, "sleep", let_go)
    with machine.alone(folder, 7):
        assert len(waited) == 1


def test_another_place_is_free(held, monkeypatch):
    monkeypatch.setattr(machine.time, "sleep", lambda seconds: pytest.fail("it waits"))
    with machine.alone(held[0], 8):
        pass


def test_nobody_waits_for_ever_for_a_process_that_was_stopped(held, monkeypatch):
    monkeypatch.setattr(machine, "LONGEST", 0.1)
    with machine.alone(held[0], 7):
        pass


def test_the_lock_file_is_for_its_owner_alone(tmp_path):
    with machine.alone(tmp_path, 0):
        pass
    mode = (tmp_path / machine.LOCK).stat().st_mode
    assert stat.S_IMODE(mode) == 0o600
    assert (tmp_path / machine.LOCK).stat().st_size == 0


def test_a_lock_file_that_is_a_link_is_left_alone(tmp_path):
    (tmp_path / machine.LOCK).symlink_to(tmp_path / "elsewhere")
    with machine.alone(tmp_path, 0):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_without_a_folder_there_is_no_lock_and_no_failure(tmp_path):
    with machine.alone(tmp_path / "nowhere", 0):
        pass


# What becomes of old code.

FOREIGN = [
    "engine.simulate-97.py311.nbi",
    "other.simulate_0123456789abcdef-97.py311.1.nbc",
    "engine.simulate_0123456789abcdef.txt",
    "engine.cpython-311.pyc",
    "engine.simulate_" + 40 * "g" + "-97.py311.nbi",
]


def edit(file, old, new):
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1
    file.write_text(text.replace(old, new), encoding="utf-8")


def test_an_edit_of_the_package_removes_the_code_of_before_and_nothing_else(site, cache):
    python(cache, HITS, site=site)
    before = kept(cache, "*.nb?")
    folder = next(cache.rglob("*.nbi")).parent
    for name in FOREIGN:
        (folder / name).touch()
    edit(site / "paceline" / "kernels" / "random.py", "HALF_STEP = 2.0**-53", "HALF_STEP = 2.0**-54")
    python(cache, HITS, site=site)
    names = {path.name for path in folder.iterdir()}
    assert set(FOREIGN) <= names
    after = kept(cache, "*.nb?") - set(FOREIGN)
    assert len(after) == len(before) == 2
    assert not after & before


MY_POLICY = """
from dataclasses import dataclass
from paceline.policies import Decision, learn_nothing
from paceline.policies.uniform import Uniform

def choose(params, state):
    return Decision(0, 1, 0)

@dataclass(frozen=True, kw_only=True)
class Mine(Uniform):
    name = "mine"
    choose = staticmethod(choose)
    learn = staticmethod(learn_nothing)
"""
MINE = HITS.replace("paceline.policies.uniform import Uniform", "my_policy import Mine as Uniform")


def test_an_edit_of_a_policy_removes_its_own_code_only(site, cache):
    (site / "my_policy.py").write_text(MY_POLICY, encoding="utf-8")
    python(cache, HITS, site=site)
    theirs = kept(cache, "*.nb?")
    assert python(cache, MINE, site=site) == [0, 1]
    mine = kept(cache, "*.nb?") - theirs
    assert len(mine) == 2
    edit(site / "my_policy.py", "Decision(0, 1, 0)", "Decision(1, 1, 1)")
    assert python(cache, MINE, site=site) == [0, 1]
    after = kept(cache, "*.nb?")
    assert theirs < after
    assert not mine & after
    assert python(cache, HITS, site=site) == [1, 0]


def test_the_command_removes_old_code_even_when_nothing_is_missing(cache):
    command(cache, "compile", "uniform")
    folder = next(cache.rglob("*.nbi")).parent
    old = f"engine.ask_{40 * '0'}-54.py311.1.nbc"
    (folder / old).touch()
    assert command(cache, "compile", "uniform")[1] == "0 functions compiled, 1 files of earlier versions removed\n"
    assert not (folder / old).exists()


def test_a_file_that_somebody_else_has_removed_meanwhile(tmp_path, monkeypatch):
    fresh = f"ask_{40 * '0'}"
    gone = tmp_path / f"engine.ask_{40 * '1'}-54.py311.nbi"
    monkeypatch.setattr(Path, "iterdir", lambda folder: iter([gone]))
    assert stale.remove_stale(tmp_path, fresh) == 0
    assert stale.remove_stale(tmp_path / "nowhere", fresh) == 0


def test_a_function_of_the_users_own_may_call_a_kernel():
    @numba.njit
    def mixed(rewards, costs):
        return best_mix(rewards, costs, 0.5)

    means = np.array([0.3, 0.7, 0.8]), np.array([0.2, 0.6, 0.9])
    assert mixed(*means) == jit.plain(best_mix)(*means, 0.5)

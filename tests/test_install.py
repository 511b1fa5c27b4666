"""What an install with some extras can do, and the one line that a use without its extra says; in real environments."""

import ast
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from slim import PROJECT, ROOT, Slim, needed

from paceline import extras
from paceline.cli import COMMANDS

SERVICE = Path(extras.__file__).parent / "service"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="environments of links")

STORY = """
import sys
import paceline as pl

results = pl.simulate(pl.paper.three_arms(), ["index"], rounds=2_000, trials=2)
assert (results["index"].min_headroom >= 0).all()
results.save("results.npz")
with pl.Bandit(["a", "b"], budget=0.5, journal="bandit.journal") as bandit:
    while (decision := bandit.ask()).arm is None:
        pass
    bandit.tell(decision.id, reward=0.7, cost=0.4)
with pl.join("sqlite:///ads.db", "ads", arms=["a", "b"], budget=0.5) as member:
    assert member.ask().id
pl.connect("http://127.0.0.1:9", "ads").close()
loaded = {name.partition(".")[0] for name in sys.modules}
print(sorted(loaded & {"matplotlib", "pyarrow", "tqdm", "pandas", "starlette", "psycopg", "lazy_loader"}))
"""

WITHOUT_LAB = {
    "import paceline as pl; pl.simulate(pl.paper.three_arms(), 'index', rounds=10, trials=1, progress=True)": (
        'a progress bar needs tqdm: pip install "paceline[lab]"'
    ),
    "import paceline as pl; pl.simulate(pl.paper.three_arms(), 'index', rounds=10, trials=1).plot('x.png')": (
        'a figure needs matplotlib: pip install "paceline[lab]"'
    ),
    "import paceline as pl; pl.simulate(pl.paper.three_arms(), 'index', rounds=10, trials=1).to_pandas()": (
        'to_pandas needs pandas: pip install "paceline[pandas]"'
    ),
    "import paceline as pl; pl.open_store('postgresql://host/db')": (
        'a store in PostgreSQL needs psycopg: pip install "paceline[fleet]"'
    ),
}

EXPERIMENT = 'rounds = 500\ntrials = 2\npolicies = ["index"]\n[[problem]]\npaper = "three-arms"\n'


@pytest.fixture(scope="module")
def core(tmp_path_factory) -> Slim:
    return Slim(tmp_path_factory.mktemp("core") / "environment")


def test_the_core_needs_numpy_and_numba_only():
    assert needed() == {"numpy", "numba", "llvmlite"}


def test_what_is_imported_of_an_extra_is_what_it_installs():
    listed = PROJECT["optional-dependencies"]
    for name, packages in extras.PACKAGES.items():
        assert {package.replace("_", "-") for package in packages} <= {Requirement(line).name for line in listed[name]}


def test_the_extra_of_the_site_brings_what_the_reference_imports():
    """The site is built from a fresh clone with this extra alone; `.ci/run` has those of the tests beside it."""
    listed = re.findall(r"^   (\w+)\.", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), re.MULTILINE)
    own = next(each for each in map(Requirement, PROJECT["optional-dependencies"]["docs"]) if each.name == "paceline")
    assert {module for module in listed if module in extras.PACKAGES} == {"gym"} <= own.extras


def test_the_lock_file_has_all_that_the_extras_name():
    lines = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8").splitlines()
    locked = {Requirement(line).name: Requirement(line).specifier for line in lines if line and line[0] != "#"}
    named = [*PROJECT["dependencies"], *(line for extra in PROJECT["optional-dependencies"].values() for line in extra)]
    asked = [each for each in map(Requirement, named) if each.name != "paceline"]
    assert sorted({each.name for each in asked} - locked.keys()) == []
    for each in asked:
        (fixed,) = locked[each.name]
        assert each.specifier.contains(fixed.version), each


def test_what_the_service_imports_is_in_its_extra():
    """Or `paceline serve` would find out in the middle of its start."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in SERVICE.glob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    names = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    names += [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    ours = {"paceline", "numpy", *sys.stdlib_module_names}
    assert {name.partition(".")[0] for name in names} - ours == set(extras.PACKAGES["serve"])


@pytest.mark.slow
def test_the_core_simulates_decides_and_joins(core, tmp_path):
    done = core.run("-W", "error", "-c", STORY, cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.mark.parametrize("command", [name for name, extra in COMMANDS.items() if extra])
def test_a_command_without_its_extra_says_one_line_and_does_nothing(command, core, tmp_path):
    (tmp_path / "x.toml").write_text(EXPERIMENT)
    store = ["--store", "sqlite:///x.db"]
    arguments = {"run": ["x.toml"], "report": ["."], "diff": [".", "."], "serve": store, "token": ["list", *store]}
    done = core.run("-m", "paceline", command, *arguments.get(command, []), cwd=tmp_path)
    extra = COMMANDS[command]
    line = f'paceline: error: paceline {command} needs {extras.PACKAGES[extra][0]}: pip install "paceline[{extra}]"\n'
    assert (done.returncode, done.stdout, done.stderr) == (2, "", line)
    assert [path.name for path in tmp_path.iterdir()] == ["x.toml"]


@pytest.mark.slow
def test_a_replay_with_a_figure_needs_the_lab_before_it_begins_and_one_without_does_not(core, tmp_path):
    (tmp_path / "log.csv").write_text("arm,reward,cost,calls\na,1,0.5,1\nb,0,0.2,1\n")
    replay = ["-m", "paceline", "replay", "log.csv", "--repeats", "2"]
    named = [*replay, "--budget", "money=0.3", "--cost", "money=cost"]
    line = 'paceline: error: paceline replay needs matplotlib: pip install "paceline[lab]"\n'
    for drawn in ([*replay, "--budget", "0.3"], named):
        done = core.run(*drawn, cwd=tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (2, "", line)
    assert [path.name for path in tmp_path.iterdir()] == ["log.csv"]
    done = core.run(*named, "--budget", "calls=1", "--cost", "calls=calls", cwd=tmp_path)
    assert done.stdout.endswith("Written to paceline-replay: replay.csv\n"), done.stderr


@pytest.mark.slow
def test_the_other_commands_begin_without_extras(core, tmp_path):
    assert not any(COMMANDS[name] for name in ("solve", "policies"))
    for arguments in (["solve", "--rewards", "0.5", "--costs", "0.6", "--budget", "0.5"], ["policies"], ["--help"]):
        assert core.run("-m", "paceline", *arguments, cwd=tmp_path).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("code", WITHOUT_LAB)
def test_a_call_without_its_extra_says_the_same(code, core, tmp_path):
    done = core.run("-c", code, cwd=tmp_path)
    assert done.stderr.splitlines()[-1].endswith(f": {WITHOUT_LAB[code]}")


@pytest.mark.slow
def test_the_lab_reproduces_runs_and_reports(tmp_path):
    lab = Slim(tmp_path / "environment", "lab")
    (tmp_path / "x.toml").write_text(EXPERIMENT)
    for arguments in (
        ("reproduce", "--figure", 1, "--rounds", 500, "--trials", 2),
        ("run", "x.toml"),
        ("report", "x"),
        ("compare", "beta", "--rounds", 500, "--trials", 2, "--problems", 2, "--policies", "index,uniform"),
    ):
        done = lab.run("-m", "paceline", *arguments, cwd=tmp_path)
        assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_service_starts_with_its_extra_alone(tmp_path):
    serve = Slim(tmp_path / "environment", "serve")
    command = serve.command("-m", "paceline", "serve", "--store", "sqlite:///x.db", "--port", 0)
    with subprocess.Popen(
        command, cwd=tmp_path, env=serve.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as service:
        assert service.stdout is not None
        line = service.stdout.readline()
        service.send_signal(signal.SIGINT)
        _, errors = service.communicate(timeout=60)
    assert re.fullmatch(r"paceline serves sqlite:///x\.db; the page is at http://127\.0\.0\.1:\d+/?\n", line), errors
    assert service.returncode == 0

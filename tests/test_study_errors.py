"""Experiments and folders that are refused: one line that says what is wrong, and nothing that was there is touched."""

import errno
import json
import os
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import elsewhere
import jsonschema
import pytest
from command import call
from studies import SMALL, contents, experiment, parquet, parts

import paceline as pl
from paceline import cli
from paceline.experiments import folder as study_folder
from paceline.experiments.spec import experiment_schema

GOOD = 'rounds = 300\ntrials = 4\nblock = 1\npolicies = ["uniform"]\n[[problem]]\npaper = "three-arms"\n'
LOGS = {
    "good.csv": "arm,reward,cost\na,0.5,0.2\nb,0.6,0.4\n",
    "bad.csv": "arm,reward,cost\na,0.5,0.2\n\nb,much,0.4\nb,nan,0.4\n",
    "expensive.csv": "arm,reward,cost\na,0.5,0.2\nb,0.6,1.5\n",
    "ragged.csv": "arm,reward,cost\na,0.5,0.2\nb,0.6\n",
    "empty.csv": "",
    "heading.csv": "arm,reward,cost\n",
    "twice.csv": "arm,cost,cost\n",
}
UNIFORM = 'policies = ["uniform"]\n'
PAPER = '[[problem]]\npaper = "three-arms"\n'


def problem(text: str) -> str:
    return f"{UNIFORM}[[problem]]\n{text}\n"


def policy(text: str) -> str:
    return f"[[policy]]\n{text}\n{PAPER}"


def top(text: str) -> str:
    return f"{text}\n{UNIFORM}{PAPER}"


RATES = "rewards = [0.3, 0.8]\ncosts = [0.2, 0.7]\n"
FILES: dict[str, tuple[str, tuple[str, ...]]] = {
    # The file as a whole.
    "broken": ("rounds = [1\npolicies = 2", ("must be valid TOML", "line 2")),
    "cut off": ('policies = ["uniform', ("must be valid TOML",)),
    "key twice": ("rounds = 1\nrounds = 2\n", ("must be valid TOML", "line 2")),
    "empty": ("", ("must have problems", "got none")),
    "no policies": (PAPER, ("must have policies", "got none")),
    "no problems": (UNIFORM, ("must have problems", "got none")),
    # Unknown keys at every level.
    "unknown key": (
        top("round = 5"),
        ("an experiment takes name, report, rounds, trials", "got round; did you mean 'rounds'?"),
    ),
    "unknown table": (GOOD + "[problems]\n", ("an experiment takes", "got problems")),
    "unknown key of a problem": (problem(RATES + "budget = 0.5\nbudgets = 0.5"), ("problem 1", "got budgets")),
    "unknown key of an arm": (
        problem('rewards = [{kind = "beta", mean = 0.5, median = 0.5}]\ncosts = [0.5]\nbudget = 0.5'),
        ("problem 1", "rewards[0]", "median"),
    ),
    "unknown key of a paper's problem": (
        problem('paper = "three-arms"\nconcentration = 5'),
        ("problem 1", "takes paper, budget, name", "got concentration"),
    ),
    "unknown key of a family": (
        problem('family = "beta"\nsizes = 3'),
        ("takes family, size", "got sizes"),
    ),
    "unknown key of a csv": (problem('csv = "good.csv"\nbudget = 0.5\npropensity = "p"'), ("got propensity",)),
    "unknown parameter": (policy('name = "suak"\nordre = "first"'), ("policy 1", "suak takes order", "got ordre=")),
    "unknown key of a grid": (policy('name = "suak"\ngrid.ordre = ["first"]'), ("policy 1", "got ordre=")),
    "unknown key of a problem's grid": (problem(RATES + "grid.budgets = [0.5]"), ("problem 1", "got budgets")),
    # Wrong types and values.
    "rounds in words": (top('rounds = "many"'), ("rounds must be a whole number", "got 'many'")),
    "half a round": (top("rounds = 0.5"), ("rounds must be a whole number", "got 0.5")),
    "true rounds": (top("rounds = true"), ("rounds must be a whole number", "got True")),
    "no rounds": (top("rounds = 0"), ("rounds must be a whole number", "got 0")),
    "no trials": (top("trials = 0"), ("trials must be a whole number", "got 0")),
    "negative seed": (top("seed = -1"), ("seed must be a whole number", "got -1")),
    "no block": (top("block = 0"), ("block must be a whole number", "got 0")),
    "no checkpoints": (top("checkpoints = 0"), ("checkpoints", "whole number", "got 0")),
    "checkpoint after the end": (top("rounds = 9\ncheckpoints = [10]"), ("checkpoint", "from 1 to 9", "got 10")),
    "checkpoints in words": (top('checkpoints = "all"'), ("checkpoint", "got 'a")),
    "more checkpoints than fit": (
        top("checkpoints = {count = 1099511627776}"),
        ("checkpoints.count must be a whole number from 1 to 1000000", "got 1099511627776"),
    ),
    "record in words": (top('record = "some"'), ('record must be "all", a range or a list of rounds', "got 'some'")),
    "policies is a word": ('policies = "uniform"\n' + PAPER, ("policies must be a list of names", "got 'uniform'")),
    "policies of numbers": ("policies = [1]\n" + PAPER, ("policies must be a list of names", "got [1]")),
    "policy is a word": ('policy = "suak"\n' + PAPER, ("[[policy]]", "got 'suak'")),
    "problem is a number": (UNIFORM + "problem = 5\n", ("[[problem]]", "got 5")),
    "policy without a name": (policy("a = 2"), ("policy 1", "name", "got None")),
    "name of a policy is a number": (policy("name = 5"), ("policy 1", "name", "got 5")),
    "parameter in words": (policy('name = "one-phase"\na = "two"'), ("policy 1", "a of one-phase", "got 'two'")),
    "parameter out of range": (policy('name = "one-phase"\na = -1'), ("policy 1", "a of one-phase", "got -1")),
    "budget above 1": (problem(RATES + "budget = 1.5"), ("problem 1", "budget must be in (0, 1], got 1.5")),
    "budget in words": (problem(RATES + 'budget = "half"'), ("problem 1", "budget must be a number", "got 'half'")),
    "budget of a paper's problem": (problem('paper = "three-arms"\nbudget = 0'), ("problem 1", "budget", "got 0")),
    "no budget": (problem(RATES), ("problem 1", "missing: budget")),
    "no costs": (problem("rewards = [0.5]\nbudget = 0.5"), ("problem 1", "missing: costs")),
    "lengths differ": (problem("rewards = [0.5]\ncosts = [0.1, 0.2]\nbudget = 0.5"), ("got 1 rewards and 2 costs",)),
    "reward is a table of nothing": (problem("rewards = [{}]\ncosts = [0.2]\nbudget = 0.5"), ("rewards[0]",)),
    "size of a family": (problem('family = "beta"\nsize = 0'), ("problem 1", "size must be a whole number", "got 0")),
    "case of a family": (problem('family = "beta"\ncase = 4'), ("problem 1", "case of kind 'beta'", "got 4")),
    "impossible family": (problem('family = "beta"\nbudget = 0.94\ncase = 2'), ("problem 1", "none in 20,000 draws")),
    # Unknown names.
    "unknown policy": ('policies = ["sauk"]\n' + PAPER, ("policies[0]", "must be one of index", "got 'sauk'")),
    "unknown policy in a table": (policy('name = "sauk"'), ("policy 1", "must be one of index", "got 'sauk'")),
    "second policy unknown": (
        'policies = ["suak", "sauk"]\n' + PAPER,
        ("policies[1]", "got 'sauk'; did you mean 'suak'?"),
    ),
    "second kind of list": (UNIFORM + policy('name = "sauk"'), ("policy 1", "got 'sauk'")),
    "delay in words": (problem('paper = "three-arms"\ndelay = "long"'), ("problem 1", "delay must be", "got 'long'")),
    "unknown family": (problem('family = "gamma"'), ("problem 1", "must be one of beta", "got 'gamma'")),
    "family that is nearly one": (problem('family = "betta"'), ("problem 1", "did you mean 'beta'?")),
    "unknown paper": (problem('paper = "four-arms"'), ("problem 1", "paper must be one of", "got 'four-arms'")),
    "unknown kind": (problem(RATES + 'budget = 0.5\nkind = "normal"'), ("problem 1", "kind", "got 'normal'")),
    "two sources": (problem('paper = "three-arms"\nfamily = "beta"'), ("problem 1", "['paper', 'family']")),
    "second problem wrong": (GOOD + '[[problem]]\npaper = "four-arms"\n', ("problem 2", "got 'four-arms'")),
    # Grids.
    "grid is a list": (policy('name = "one-phase"\ngrid = [2, 3]'), ("policy 1", "grid must be a table of lists")),
    "grid of a number": (policy('name = "one-phase"\ngrid.a = 2'), ("policy 1", "grid.a must be a list", "got 2")),
    "grid of nothing": (policy('name = "one-phase"\ngrid.a = []'), ("policy 1", "grid.a must be a list", "got []")),
    "key in table and grid": (
        policy('name = "one-phase"\na = 2\ngrid.a = [2, 3]'),
        ("policy 1", "a must be given once"),
    ),
    "problem in table and grid": (problem(RATES + "budget = 0.5\ngrid.budget = [0.1]"), ("budget must be given once",)),
    "wrong point of a grid": (problem(RATES + "grid.budget = [0.5, 2]"), ("problem 1", "budget", "got 2")),
    # Names that come twice.
    "label twice": ('policies = ["suak", "suak"]\n' + PAPER, ("policies[1]", "labels", "got 'suak' twice")),
    "label twice in tables": (
        policy('name = "suak"\n[[policy]]\nname = "oracle"\nlabel = "suak"'),
        ("policy 2", "labels", "got 'suak' twice"),
    ),
    "label twice in a grid": (policy('name = "one-phase"\ngrid.a = [2, 2]'), ("policy 1", "'one-phase, a=2' twice")),
    "name twice": (GOOD + PAPER, ("names of problems must differ", "got 'three-arms' twice")),
    # Files of outcomes.
    "csv is a number": (problem("csv = 5\nbudget = 0.5"), ("problem 1", "csv must be the name of a file", "got 5")),
    "missing column": (problem('csv = "good.csv"\narm = "ad"\nbudget = 0.5'), ("good.csv", "column 'ad'")),
    "bad row": (
        problem('csv = "bad.csv"\nbudget = 0.5'),
        ("problem 1", "bad.csv", "reward", "row 2 (line 4) has 'much', row 3 (line 5) has 'nan'"),
    ),
    "cost above the largest": (
        problem('csv = "expensive.csv"\nbudget = 0.5'),
        ("expensive.csv", "row 2 (line 3) has 1.5"),
    ),
    "ragged row": (problem('csv = "ragged.csv"\nbudget = 0.5'), ("ragged.csv", "3 fields", "row 2 (line 3) has 2")),
    "empty csv": (problem('csv = "empty.csv"\nbudget = 0.5'), ("empty.csv", "column 'arm'")),
    "csv without a row": (problem('csv = "heading.csv"\nbudget = 0.5'), ("heading.csv", "at least one row")),
    "csv without a budget": (problem('csv = "good.csv"'), ("problem 1", "budget must be a number", "got None")),
    "csv with a budget of nothing": (problem('csv = "good.csv"\nbudget = 0'), ("problem 1", "budget", "got 0")),
    "largest costs of other arms": (
        problem('csv = "good.csv"\nbudget = 0.5\nmax_cost = {a = 1}'),
        ("good.csv", "max_cost", "row 2", "'b'"),
    ),
    "missing csv": (problem('csv = "no.csv"\nbudget = 0.5'), ("problem 1", "no.csv", "No such file")),
    "csv is a folder": (problem('csv = "."\nbudget = 0.5'), ("problem 1", "directory")),
    "column twice": (problem('csv = "twice.csv"\nbudget = 0.5'), ("twice.csv", "got 'cost' twice")),
    "name is a date": (top("name = 2024-01-01"), ("name",)),
    "name is a list": (top("name = [1]"), ("name",)),
    "label is a list": (policy('name = "suak"\nlabel = [1]'), ("label",)),
    "name of a problem is a number": (problem('paper = "three-arms"\nname = 5'), ("name",)),
    "parameter named cls": (policy('name = "suak"\ncls = 1'), ("cls",)),
    "column is a list": (problem('csv = "good.csv"\narm = ["a"]\nbudget = 0.5'), ("arm",)),
    "no checkpoints in words": (top('checkpoints = ""'), ("checkpoints",)),
    "case of a family is true": (problem('family = "beta"\ncase = true'), ("case",)),
}


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """A working folder with files of outcomes and a good experiment."""
    for name, text in {**LOGS, "good.toml": GOOD}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[str]:
    """What ``paceline run`` says about what it refuses: the plan, if it came that far, then one line."""
    code = cli.main(["run", *map(str, arguments)])
    out, messages = capsys.readouterr()
    *plan, line = messages.splitlines()
    assert (code, out) == (2, ""), messages
    assert line.startswith("paceline: error: ")
    assert not any("error" in other or "Traceback" in other for other in plan)
    return [*plan, line.removeprefix("paceline: error: ")]


def check_refused(here: Path, capsys: pytest.CaptureFixture[str], text: str, words: tuple[str, ...]) -> None:
    (here / "it.toml").write_text(text, encoding="utf-8")
    before = contents(here)
    (line,) = refused(capsys, "it.toml")
    assert line.startswith("it.toml")
    for word in words:
        assert word in line
    assert contents(here) == before
    assert not (here / "it").exists()


@pytest.mark.parametrize("case", FILES)
def test_wrong_file_is_one_line(case, here, capsys):
    check_refused(here, capsys, *FILES[case])


UNKNOWN = [
    case for case in FILES if case.startswith("unknown key") and "arm" not in case and "problem's grid" not in case
]
WRONG = ["half a round", "no trials", "negative seed", "checkpoints in words", "policies is a word", "unknown family"]
WRONG += ["more checkpoints than fit", "record in words", "delay in words"]
GRIDS = [case for case in FILES if case.startswith("grid ")]
NOTHING = ["empty", "no policies", "no problems", "policy without a name"]


@pytest.mark.parametrize(
    "case", [*UNKNOWN, *WRONG, *GRIDS, *NOTHING, "unknown parameter", "unknown paper", "name is a list"]
)
def test_the_schema_refuses_it_too(case):
    assert not jsonschema.Draft7Validator(experiment_schema()).is_valid(tomllib.loads(FILES[case][0]))


@pytest.mark.parametrize("name", ["missing.toml", ".", "good.csv/it.toml"])
def test_file_that_cannot_be_read_is_one_line(name, here, capsys):
    (line,) = refused(capsys, name)
    assert "must be a readable file" in line


def test_wrong_file_in_a_process_of_its_own(here):
    """The same as above, with nothing of this process in between."""
    (here / "it.toml").write_text(FILES["bad row"][0], encoding="utf-8")
    done = call("run", "it.toml", cwd=here)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert "row 2 (line 4) has 'much'" in done.stderr


@pytest.mark.parametrize("workers", ["0", "-1"])
@pytest.mark.parametrize("engine", [(), ("--processes",), ("--dask", "local")], ids=" ".join)
def test_no_workers_is_one_line(engine, workers, here, capsys):
    line = refused(capsys, "good.toml", "--workers", workers, *engine)[-1]
    assert line == f"workers must be a whole number of at least 1, got {workers}"


@pytest.mark.parametrize("given", ["fibers", 5, object])
def test_executor_that_is_none_is_refused(given, tmp_path):
    with pytest.raises(pl.InvalidValue, match=r"^executor must be"):
        pl.run_experiment(experiment(SMALL), tmp_path, given)


# Folders.


def other_experiment(folder: Path) -> None:
    pl.run_experiment(experiment(SMALL), folder)


def unfinished_other(folder: Path) -> None:
    begin_journal(folder, experiment(SMALL))


def begin_journal(folder: Path, what: pl.Experiment) -> None:
    """A run that got no further than its beginning."""
    with study_folder.open_folder(folder, what) as opened:
        opened.begin()


def edited(folder: Path, **changes: object) -> None:
    """A run of the good experiment, begun, with another manifest."""
    begin_journal(folder, pl.Experiment.read("good.toml"))
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8")) | changes
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def other_kernels(folder: Path) -> None:
    edited(folder, kernels="0" * 16)


def other_format(folder: Path) -> None:
    edited(folder, format=99)


def torn_manifest(folder: Path) -> None:
    begin_journal(folder, pl.Experiment.read("good.toml"))
    whole = (folder / "manifest.json").read_bytes()
    (folder / "manifest.json").write_bytes(whole[: len(whole) // 2])


def bare_manifest(folder: Path) -> None:
    folder.mkdir()
    (folder / "manifest.json").write_text(json.dumps({"format": study_folder.FORMAT}), encoding="utf-8")


def foreign_folder(folder: Path) -> None:
    folder.mkdir()
    (folder / "thesis.tex").write_text("the only copy", encoding="utf-8")


def file_in_its_place(folder: Path) -> None:
    folder.write_text("a file", encoding="utf-8")


def torn_part(folder: Path) -> None:
    """As after a failure of the disk: the system promises whole files only while it runs."""
    begin_journal(folder, pl.Experiment.read("good.toml"))
    (folder / "parts").mkdir(exist_ok=True)
    for task in pl.Experiment.read("good.toml").tasks():
        (folder / "parts" / f"{task.name}.parquet").write_bytes(b"PAR1 torn")


OTHER = "out must hold results of this experiment, or of a part of it"
FOLDERS = {
    other_experiment: (OTHER, "it has problems bernoulli 1, bernoulli 2, policies suak, trials 5"),
    unfinished_other: (OTHER, "it has problems bernoulli 1, bernoulli 2, policies suak, trials 5"),
    other_kernels: ("out was begun with other code (kernels 0000000000000000", "must be finished with it"),
    other_format: ("manifest.json has format 99", f"reads 2 and {study_folder.FORMAT}"),
    torn_manifest: ("manifest.json must be the manifest of a run; it is damaged or foreign",),
    foreign_folder: ("out must be empty or hold a run of this experiment", "got 'thesis.tex'"),
    file_in_its_place: ("out must be a folder to write to",),
    torn_part: (".parquet must be a Parquet file of a run; it is damaged or foreign",),
}


@pytest.mark.parametrize("spoil", FOLDERS, ids=lambda spoil: spoil.__name__.replace("_", " "))
def test_wrong_folder_is_one_line_and_stays_as_it_was(spoil, here, capsys):
    out = Path("out")
    spoil(out)
    before = contents(here)
    line = refused(capsys, "good.toml", "--out", "out")[-1]
    for word in FOLDERS[spoil]:
        assert word in line
    after = contents(here)
    if spoil is torn_part:  # it came to the end of the work, and noted the time
        after["out/manifest.json"] = before["out/manifest.json"]
    assert after == before


def test_manifest_with_gaps_is_one_line(here, capsys):
    bare_manifest(Path("out"))
    assert "manifest.json" in refused(capsys, "good.toml", "--out", "out")[-1]


def test_foreign_folder_gets_no_new_file(here, capsys):
    foreign_folder(Path("out"))
    refused(capsys, "good.toml", "--out", "out")
    assert [path.name for path in Path("out").iterdir()] == ["thesis.tex"]


def test_wrong_folder_is_refused_before_the_plan(here, capsys):
    foreign_folder(Path("out"))
    assert len(refused(capsys, "good.toml", "--out", "out")) == 1


def test_folder_below_a_file_is_one_line(here, capsys):
    assert "must be a folder to write to" in refused(capsys, "good.toml", "--out", "good.csv/out")[-1]


def test_finished_run_of_other_kernels_is_still_read(here):
    study = pl.run_experiment(pl.Experiment.read("good.toml"), "out")
    edited_manifest = {**study.manifest, "kernels": "0" * 16}
    (study.path / "manifest.json").write_text(json.dumps(edited_manifest), encoding="utf-8")
    before = contents(study.path)
    assert parquet(pl.run_experiment(pl.Experiment.read("good.toml"), "out")) == parquet(study)
    assert contents(study.path) == before


def test_study_of_a_folder_without_a_finished_run_is_refused(here):
    begin_journal(Path("out"), pl.Experiment.read("good.toml"))
    for folder, words in ((Path("out"), "must hold a finished run"), (here, "must be the folder of a run")):
        with pytest.raises(pl.UnreadableFile, match=words):
            pl.Study.open(folder)


HOLDER = """
import sys
from studies import SMALL, experiment
from paceline.experiments.folder import open_folder
with open_folder(sys.argv[1], experiment(SMALL)):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_folder_in_use_is_refused_until_the_other_run_is_killed(tmp_path):
    folder = tmp_path / "out"
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "env": elsewhere.environment()}
    with subprocess.Popen(elsewhere.command(HOLDER, folder), **options) as holder:
        try:
            assert holder.stdout.readline() == b"held\n"
            before = contents(folder)
            with pytest.raises(pl.PacelineError, match="out must not be in use, but another run is writing to it"):
                pl.run_experiment(experiment(SMALL), folder)
            assert contents(folder) == before
        finally:
            holder.kill()
    assert pl.run_experiment(experiment(SMALL), folder)["three-arms"].trials == SMALL["trials"]


# A full disk.

FULL = """
import resource, sys
from paceline import cli
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
sys.exit(cli.main(["run", *sys.argv[2:]]))
"""


def on_a_full_disk(size: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    """``paceline run`` where no file can be larger than that."""
    command = elsewhere.command(FULL, size, *arguments)
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.slow
@pytest.mark.parametrize("kept", [0, 4], ids=["at the first part", "at the end"])
@pytest.mark.parametrize("engine", [(), ("--processes",)], ids=["threads", "processes"])
def test_full_disk_is_one_line_and_loses_nothing(engine, kept, here):
    whole = pl.run_experiment(pl.Experiment.read("good.toml"), "whole")
    # A part of the four has more than a quarter of the whole, and the manifest less than that.
    room = len(parquet(whole)) - 1 if kept else len(parquet(whole)) // 4
    assert (whole.path / "manifest.json").stat().st_size < room
    done = on_a_full_disk(room, "good.toml", "--out", "out", *engine)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    *_, line = done.stderr.splitlines()
    assert line.startswith("paceline: error: ")
    assert os.strerror(errno.EFBIG) in line
    assert "Traceback" not in done.stderr
    before = parts(Path("out"))
    assert len(before) == kept
    assert not list(Path("out").rglob("*.unfinished"))
    assert not Path("out/totals.parquet").exists()
    # There is room again.
    assert parquet(pl.run_experiment(pl.Experiment.read("good.toml"), "out")) == parquet(whole)


def test_full_disk_at_the_very_beginning_is_one_line(here):
    done = on_a_full_disk(100, "good.toml", "--out", "out")
    assert done.returncode == 2
    assert os.strerror(errno.EFBIG) in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


# A cluster that is not there.

NOBODY = {
    "no such scheme": ("foo://here:1", "unknown address scheme 'foo'"),
    "no port": ("localhost", "missing port number"),
    "nothing": ("", "missing port number"),
    "port in words": ("tcp://127.0.0.1:eleven", "invalid literal"),
    "nobody answers": ("tcp://127.0.0.1:9", "Connection refused"),
}


@pytest.mark.parametrize("case", NOBODY)
def test_cluster_that_is_not_there_is_one_line(case, here, capsys, monkeypatch):
    monkeypatch.setattr("paceline.experiments.executors.CONNECT_SECONDS", 1)
    address, words = NOBODY[case]
    start = time.monotonic()
    line = refused(capsys, "good.toml", "--out", "out", "--dask", address)[-1]
    assert time.monotonic() - start < 10
    assert line.startswith(f"--dask must be the address of a scheduler that answers, got {address!r}")
    assert words in line
    assert parquet(pl.run_experiment(pl.Experiment.read("good.toml"), "out"))  # nothing is spoiled


def test_cluster_that_wants_a_key_is_one_line(here, capsys):
    assert "tls" in refused(capsys, "good.toml", "--out", "out", "--dask", "tls://127.0.0.1:9")[-1]


def test_without_distributed_one_line_says_what_to_install(here, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    line = refused(capsys, "good.toml", "--out", "out", "--dask", "local")[-1]
    assert 'pip install "paceline[dask]"' in line
    shutil.rmtree("out")
    assert parquet(pl.run_experiment(pl.Experiment.read("good.toml"), "out"))  # which threads do not need

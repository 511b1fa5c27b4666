"""The command line, as a user meets it: real processes, exit codes, and what is printed where."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command import ENVIRONMENT, SCRIPT, call, succeeded
from interrupt import interrupted

import paceline
from paceline import cli
from paceline.paper.claims import CLAIMS
from paceline.policies import POLICIES
from paceline.simulation.simulate import Trial, run_trial

pytestmark = pytest.mark.slow

COMMANDS = tuple(cli.COMMANDS)


# Help.


def test_help_lists_every_command():
    assert {"reproduce", "solve", "policies"} <= set(COMMANDS)
    shown = succeeded("--help")
    assert shown.startswith("usage: paceline")
    for command in COMMANDS:
        assert f"    {command}" in shown


def test_version():
    assert succeeded("--version") == f"paceline {paceline.__version__}\n"


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("reproduce", ["--figure", "--rounds", "--trials", "--seed", "--out", "--show", "--dask"]),
        ("solve", ["FILE", "--rewards", "--costs", "--budget", "--json"]),
        ("policies", ["NAME"]),
        ("log", ["JOURNAL", "--tail", "--since", "--until", "--json", "--verify", "--repair", "--csv", "--parquet"]),
    ],
)
def test_help_of_a_command_lists_its_options(command, options):
    shown = succeeded(command, "--help")
    assert shown.startswith(f"usage: paceline {command}")
    for option in options:
        assert option in shown


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], *([command, "--help"] for command in COMMANDS)])
def test_help_loads_nothing_heavy(arguments):
    code = f"""
import sys
from paceline.cli import main
try:
    main({arguments!r})
except SystemExit:
    pass
sys.exit(", ".join({{"numba", "numpy", "matplotlib"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr.strip() == ""


def test_module_is_the_same_as_the_script():
    done = subprocess.run(
        [sys.executable, "-m", "paceline", "--version"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, succeeded("--version"))


# solve.

THREE_ARMS = ("--rewards", 0.45, 0.7, 0.8, "--costs", 0.3, 0.75, 0.8, "--budget", 0.5)
EIGHT_ARMS = """\
rewards = [0.35, 0.45, 0.52, 0.72, 0.84, 0.9, 0.92, 0.9]
costs = [0.25, 0.3, 0.4, 0.6, 0.7, 0.75, 0.8, 0.85]
budget = 0.5
"""


def test_solve_prints_value_price_and_mix():
    lines = [line.split() for line in succeeded("solve", *THREE_ARMS).splitlines()]
    assert ["value", "per", "round", "0.590000"] in lines
    assert ["price", "of", "budget", "0.700000"] in lines
    assert ["level", "of", "a", "round", "0.240000"] in lines
    assert ["1", "0.45", "0.3", "0.600000", "0.000000"] in lines
    assert ["2", "0.7", "0.75", "0.000000", "0.065000"] in lines
    assert ["3", "0.8", "0.8", "0.400000", "0.000000"] in lines
    assert ["null", "0", "0", "0.000000", "0.240000"] in lines


def test_solve_prints_json():
    found = json.loads(succeeded("solve", *THREE_ARMS, "--json"))
    assert found == {
        "value": pytest.approx(0.59),
        "mix": pytest.approx([0.6, 0, 0.4, 0]),
        "price": pytest.approx(0.7),
        "level": pytest.approx(0.24),
        "gaps": pytest.approx([0, 0.065, 0]),
        "case": 3,
    }


@pytest.mark.parametrize("heading", ["", "title = 'paper'\n[problem]\n"], ids=["at the top", "under [problem]"])
def test_solve_reads_toml(heading, tmp_path):
    (tmp_path / "eight.toml").write_text(heading + EIGHT_ARMS, encoding="utf-8")
    found = json.loads(succeeded("solve", "eight.toml", "--json", cwd=tmp_path))
    assert found["value"] == pytest.approx(0.65)
    assert found["price"] == pytest.approx(1.0)
    assert found["level"] == pytest.approx(0.15)
    assert found["mix"] == pytest.approx([0, 5 / 9, 0, 0, 0, 4 / 9, 0, 0, 0])


def test_solve_solves_every_problem_of_an_experiment_file(tmp_path):
    file = tmp_path / "experiment.toml"
    file.write_text(
        '[[problem]]\npaper = "three-arms"\ngrid.budget = [0.4, 0.5]\n'
        "[[problem]]\nname = 'mine'\nrewards = [0.1, 0.5]\ncosts = [0.2, 0.9]\nbudget = 0.3\n",
        encoding="utf-8",
    )
    found = json.loads(succeeded("solve", file, "--json"))
    assert list(found) == ["three-arms, budget=0.4", "three-arms, budget=0.5", "mine"]
    assert found["three-arms, budget=0.5"] == json.loads(succeeded("solve", *THREE_ARMS, "--json"))
    told = succeeded("solve", file).split("\n\n")
    assert told[::3] == list(found)
    file.write_text("[[problem]]\nrewards = [0.1]\ncosts = [0.2]\nbudget = 3\n", encoding="utf-8")
    assert f"{file}: problem 1: budget must be in (0, 1], got 3" in call("solve", file).stderr
    file.write_text("problem = [1]\n", encoding="utf-8")
    assert f"{file}: problem must be a list of tables: [[problem]], got [1]" in call("solve", file).stderr
    world = "class W(pl.PythonWorld):\n    arms, budget = 2, 0.5\n    def outcome(self, *pull): ...\n"
    (tmp_path / "w.py").write_text(f"import paceline as pl\n\n{world}", encoding="utf-8")
    file.write_text("[[problem]]\nworld = 'w.py:W'\n", encoding="utf-8")
    assert "must tell its true means to be solved" in call("solve", file).stderr


def test_solve_reads_tables_of_distributions(tmp_path):
    text = (
        'rewards = [{kind = "constant", value = 0.6}]\ncosts = [{kind = "empirical", values = [0.2, 1]}]\nbudget = 0.3'
    )
    (tmp_path / "one.toml").write_text(text, encoding="utf-8")
    found = json.loads(succeeded("solve", tmp_path / "one.toml", "--json"))
    assert found["mix"] == pytest.approx([0.5, 0.5])
    assert found["value"] == pytest.approx(0.3)
    assert found["case"] == 2


# policies.


def test_policies_lists_all_with_parameters():
    shown = succeeded("policies")
    names = [line.split()[0] for line in shown.splitlines() if not line.startswith(" ")]
    assert names == list(POLICIES)
    for words in ("order='fewest', horizon=None", "a=3.0", "lam=9.0", "no parameters"):
        assert words in shown


def test_policies_describes_one():
    shown = succeeded("policies", "suak")
    assert shown.startswith("suak\n")
    for words in ("Reference: Elumar", "Guarantee:", "Our reading"):
        assert words in shown


# reproduce.


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """Both figures, small, in a folder that did not exist."""
    folder = tmp_path_factory.mktemp("reproduce") / "new" / "report"
    return folder, call("reproduce", "--rounds", 3000, "--trials", 2, "--out", folder)


def strictly(text: str) -> dict[str, object]:
    """JSON as the standard has it, which knows no NaN."""

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_reproduce_writes_figures_and_reports(reproduced):
    folder, done = reproduced
    assert done.returncode == 0, done.stderr
    tables = ("-summary.csv", "-summary.tex", "-problems.tex")
    expected = {f"figure{number}{ending}" for number in (1, 2) for ending in ("", ".png", ".pdf", ".svg", *tables)}
    assert {path.name for path in folder.iterdir()} == expected | {"report.html", "report.json", "report.md", "figures"}
    for name in ("figure1.png", "figure2.png"):
        assert (folder / name).read_bytes().startswith(b"\x89PNG")


def test_reproduce_prints_every_claim_with_a_verdict(reproduced):
    folder, done = reproduced
    report = strictly((folder / "report.json").read_text(encoding="utf-8"))
    assert len(report["claims"]) == sum(map(len, CLAIMS.values()))
    for claim in report["claims"]:
        (line,) = [line for line in done.stdout.splitlines() if claim["says"] in line]
        assert line.startswith(f"Figure {claim['figure']}: ")
        assert claim["measured"] in line
        assert line.endswith(claim["verdict"])
        assert claim["holds"] == (claim["verdict"] == "yes")
        assert claim["sure"] or claim["verdict"] == "within noise"


def test_reproduce_reports_numbers_to_programs(reproduced):
    folder, _ = reproduced
    report = strictly((folder / "report.json").read_text(encoding="utf-8"))
    assert [entry["figure"] for entry in report["figures"]] == [1, 2]
    assert report["versions"]["paceline"] == paceline.__version__
    for entry in report["figures"]:
        assert (entry["rounds"], entry["trials"], entry["seed"]) == (3000, 2, 0)
        assert {"SUAK", "OPS", "PDS", "USS", "Index pacer", "Epsilon-greedy", "Greedy"} <= set(entry["policies"])
        (raw,) = paceline.Study.open(folder / f"figure{entry['figure']}").values()
        assert paceline.Problem.from_dict(entry["problem"]) == raw.problem
        for label, numbers in entry["policies"].items():
            assert numbers["min_headroom"] >= 0
            for quantity in ("regret", "pseudo_regret", "steady_regret", "skips", "idle", "spent"):
                final = getattr(raw[label], quantity)[:, -1]
                assert numbers[quantity] == {
                    "mean": pytest.approx(final.mean()),
                    "deviation": pytest.approx(final.std()),
                }


def test_reproduce_reports_to_people(reproduced):
    folder, _ = reproduced
    text = (folder / "report.md").read_text(encoding="utf-8")
    for claim in strictly((folder / "report.json").read_text(encoding="utf-8"))["claims"]:
        assert claim["says"] in text
        assert claim["measured"] in text
    for words in (
        "figures/figure1-paper.svg",
        "figures/figure2-paper.svg",
        "R_a, guard skips",
        "luck of costs",
        "Figure 1: 1 problem, 13 policies, 2 trials of 3,000 rounds, seed 0",
    ):
        assert words in text


def test_the_two_figures_have_streams_of_their_own(reproduced):
    """Trial s of a figure is what a simulation plays with that stream, and no stream serves both."""
    folder, _ = reproduced
    figures = strictly((folder / "report.json").read_text(encoding="utf-8"))["figures"]
    streams = [set(range(entry["first_stream"], entry["first_stream"] + entry["trials"])) for entry in figures]
    assert not streams[0] & streams[1]
    for entry in figures:
        (raw,) = paceline.Study.open(folder / f"figure{entry['figure']}").values()
        points = np.array([3000])
        for number in range(entry["trials"]):
            trial = Trial(raw.problem, paceline.UCBSimplex(lam=9), points, 0, entry["first_stream"] + number)
            assert run_trial(trial).earned[-1] == raw["USS"].totals.earned[number, -1]


def test_reproduce_one_figure_twice_into_the_same_folder(tmp_path):
    reports = []
    for _ in range(2):
        small = ("--figure", 1, "--rounds", 600, "--trials", 1, "--seed", 5)
        shown = succeeded("reproduce", *small, "--out", tmp_path)
        assert "Figure 2" not in shown
        assert {"figure1", "figure1.png", "report.json", "report.md"} <= {path.name for path in tmp_path.iterdir()}
        report = strictly((tmp_path / "report.json").read_text(encoding="utf-8"))
        (entry,) = report["figures"]
        assert (entry.pop("seconds") >= 0, entry["seed"]) == (True, 5)
        assert {claim["figure"] for claim in report["claims"]} == {1}
        reports.append(report)
    assert reports[0] == reports[1]


def test_reproduce_a_single_round_without_a_warning(tmp_path):
    done = call("reproduce", "--figure", 1, "--rounds", 1, "--trials", 1, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    assert "nan" not in done.stdout
    assert "Figure 1 is not at the paper's scale (1 trial of 1 round, there 10 of 500,000)" in done.stdout


def test_reproduce_prints_where_greek_letters_cannot_be_shown(tmp_path):
    """A pipe on Windows, for one. The run is over by then; it must not end in a traceback."""
    environment = ENVIRONMENT | {"PYTHONIOENCODING": "cp1252"}
    done = call(
        *("reproduce", "--figure", 1, "--rounds", 100, "--trials", 1, "--out", tmp_path),
        env=environment,
        encoding="cp1252",
    )
    assert done.returncode == 0, done.stderr
    assert "Written to" in done.stdout


# What is refused.

FILES = {
    "broken.toml": b"rewards = [0.5]\ncosts = [0.5\nbudget = 0.5\n",
    "binary.toml": b"\x80\x04\x95\xff\x00" * 100,
    "empty.toml": b"",
    "good.toml": b"rewards = [0.5]\ncosts = [0.5]\nbudget = 0.5\n",
    "rich.toml": b"rewards = [0.5]\ncosts = [0.5]\nbudget = 1.4\n",
    "words.toml": b"rewards = [0.5]\ncosts = ['cheap']\nbudget = 0.5\n",
    "not a table.toml": b"problem = 7\n",
    "extra.toml": b"rewards = [0.5]\ncosts = [0.5]\nbudget = 0.5\nbudgets = 0.5\n",
    "huge.toml": b"rewards = [0.5]\ncosts = [0.5]\nbudget = 1" + b"0" * 400 + b"\n",
    "endless.toml": b"rewards = [0.5]\ncosts = [0.5]\nbudget = 1" + b"0" * 5000 + b"\n",
    "nested.toml": b"rewards = " + b"[" * 5000 + b"]" * 5000 + b"\n",
}
ONE_ARM = ("--rewards", 0.5, "--costs", 0.5)

REFUSED: dict[str, tuple[tuple[object, ...], tuple[str, ...]]] = {
    "unknown policy": (("policies", "sauk"), ("policy must be one of index", "got 'sauk'")),
    "nothing to solve": (("solve",), ("missing: --rewards, --costs, --budget",)),
    "no budget": (("solve", *ONE_ARM), ("missing: --budget",)),
    "file and options": (("solve", "good.toml", *ONE_ARM, "--budget", 0.5), ("got both",)),
    "file and one option": (("solve", "good.toml", "--budget", 0.5), ("got both",)),
    "budget above 1": (("solve", *ONE_ARM, "--budget", 1.4), ("budget must be in (0, 1], got 1.4",)),
    "no money": (("solve", *ONE_ARM, "--budget", 0), ("budget must be in (0, 1], got 0.0",)),
    "budget is no number": (("solve", *ONE_ARM, "--budget", "nan"), ("budget must be in (0, 1], got nan",)),
    "reward is no number": (
        ("solve", "--rewards", 0.5, "nan", "--costs", 0.5, 0.5, "--budget", 0.5),
        ("rewards[1]", "in [0, 1], got nan"),
    ),
    "negative cost": (("solve", "--rewards", 0.5, "--costs", -0.5, "--budget", 0.5), ("costs[0]", "got -0.5")),
    "lengths differ": (
        ("solve", "--rewards", 0.5, 0.6, "--costs", 0.5, "--budget", 0.5),
        ("same length", "got 2 rewards and 1 costs"),
    ),
    "missing file": (("solve", "nothing.toml"), ("nothing.toml", "No such file")),
    "folder": (("solve", "folder"), ("folder", "directory")),
    "broken TOML": (("solve", "broken.toml"), ("broken.toml must be valid TOML", "line 3")),
    "binary file": (("solve", "binary.toml"), ("binary.toml must be UTF-8 text", "byte 0")),
    "empty file": (("solve", "empty.toml"), ("empty.toml", "missing: rewards, costs, budget")),
    "budget above 1 in a file": (("solve", "rich.toml"), ("rich.toml", "budget must be in (0, 1], got 1.4")),
    "word for a number": (("solve", "words.toml"), ("words.toml", "costs[0]", "got 'cheap'")),
    "not a table": (("solve", "not a table.toml"), ("not a table.toml", "must be a table", "got 7")),
    "unknown key": (("solve", "extra.toml"), ("extra.toml", "got budgets")),
    "number beyond all floats": (("solve", "huge.toml"), ("huge.toml", "budget")),
    "number beyond all patience": (("solve", "endless.toml"), ("endless.toml",)),
    "nested beyond all reason": (("solve", "nested.toml"), ("nested.toml",)),
    "no rounds": (("reproduce", "--rounds", 0, "--out", "out"), ("rounds must be", "got 0")),
    "no trials": (("reproduce", "--trials", 0, "--out", "out"), ("trials must be", "got 0")),
    "negative seed": (("reproduce", "--seed", -1, "--out", "out"), ("seed must be", "got -1")),
    "out is a file": (("reproduce", "--rounds", 10, "--out", "good.toml"), ("good.toml", "Not a directory")),
    "out is below a file": (("reproduce", "--rounds", 10, "--out", "good.toml/out"), ("good.toml", "Not a directory")),
}


@pytest.fixture
def folder(tmp_path) -> Path:
    """A folder with files of every kind of wrong."""
    (tmp_path / "folder").mkdir()
    for name, contents in FILES.items():
        (tmp_path / name).write_bytes(contents)
    return tmp_path


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_input_is_one_line(case, folder):
    arguments, words = REFUSED[case]
    before = sorted(folder.iterdir())
    done = call(*arguments, cwd=folder)
    lines = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, ""), lines[-1]
    assert len(lines) == 1
    line = lines[0]
    assert line.startswith("paceline: error: ")
    for word in words:
        assert word in line
    assert sorted(folder.iterdir()) == before  # nothing was begun


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["reproduc"], "reproduc"),
        (["--no-such-option"], "no-such-option"),
        (["solve", "--budget", "much"], "much"),
        (["solve", "--rewards"], "--rewards"),
        (["reproduce", "--figure", "3"], "--figure"),
        (["reproduce", "--rounds", "1.5"], "1.5"),
        (["reproduce", "--rounds", "many"], "many"),
        (["policies", "suak", "uniform"], "uniform"),
    ],
)
def test_wrong_usage_shows_usage(arguments, word, tmp_path):
    done = call(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: paceline")
    last = done.stderr.splitlines()[-1]
    assert "error:" in last
    assert word in last
    assert "Traceback" not in done.stderr


# Stopped from outside.


def test_interrupt_ends_reproduce_quietly(tmp_path):
    arguments = [str(SCRIPT), "reproduce", "--rounds", "1000000000", "--out", str(tmp_path)]
    code, out, shown = interrupted(arguments, patience=30, env=ENVIRONMENT)  # the run itself would take an hour
    assert (code, out) == (130, b"")
    assert b"Traceback" not in shown
    assert shown.splitlines()[-1] == b"paceline: interrupted"


def test_head_sees_the_first_line_only():
    done = subprocess.run(
        f"'{SCRIPT}' policies | head -1", shell=True, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.startswith("index ")
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == ""


@pytest.mark.parametrize(
    "arguments",
    [["policies"], ["policies", "suak"], ["solve", *THREE_ARMS], ["--help"], ["--version"]],
    ids=lambda arguments: " ".join(map(str, arguments[:2])),
)
def test_reader_that_has_gone_is_no_error(arguments):
    reading, writing = os.pipe()
    os.close(reading)  # before the first line is written
    try:
        done = call(*arguments, capture_output=False, stdout=writing, stderr=subprocess.PIPE)
    finally:
        os.close(writing)
    assert done.stderr == ""


def test_the_bare_command_shows_its_help(tmp_path):
    done = call(cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: paceline")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("serve", "--store", "sqlite:///ads.db", "--token-file", "bytes"), "--token-file must be a file with a token"),
        (
            ("serve", "--store", "sqlite:///ads.db", "--host", "a..b", "--token", 20 * "t"),
            "a..b:8080: no name of a host",
        ),
        (("token", "revoke", "--store", "sqlite:///ads.db", "--label", "\udcff"), "label must be a name"),
        (("token", "list", "--store", f"postgresql://{200 * 'h'}/ads"), "the store cannot be used"),
        (("log", "", "--json"), "Is a directory"),
    ],
    ids=["token file", "host", "label", "store", "journal"],
)
def test_what_is_no_text_or_no_name_is_one_line(arguments, says, tmp_path):
    (tmp_path / "bytes").write_bytes(b"\x87\xff")
    done = call(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("paceline: error: ")
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_journal_without_a_name_is_said_to_be_none(tmp_path):
    done = call("log", "", "--verify", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert "Is a directory" in done.stdout

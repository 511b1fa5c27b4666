"""``paceline compare``, as a user meets it."""

import shutil
import subprocess
from functools import partial
from pathlib import Path

import command
import pytest
from comparing import bits

import paceline as pl
from paceline.cli.compare import policies_of
from paceline.experiments.shipped import COMPARISON
from paceline.policies import POLICIES
from paceline.problems.toml import read_toml

pytestmark = pytest.mark.slow

TINY = ("--problems", 2, "--rounds", 300, "--trials", 2)
TABLES = ("summary.csv", "summary.tex", "problems.tex", "together.csv", "together.tex")
call = partial(command.call, "compare")


@pytest.fixture(scope="module")
def compared(tmp_path_factory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """Two kinds, three policies, one of them twice."""
    folder = tmp_path_factory.mktemp("compared") / "new" / "out"
    policies = "suak,one-phase,one-phase:a=2"
    return folder, call("mixed", "rare", "--policies", policies, *TINY, "--seed", 3, "--out", folder)


def test_writes_a_run_for_each_kind_and_one_report(compared):
    folder, done = compared
    assert done.returncode == 0, done.stderr
    tables = {f"{kind}-{name}" for kind in ("mixed", "rare") for name in TABLES}
    assert {path.name for path in folder.iterdir()} == {"mixed", "rare", "figures", "report.html", "report.md"} | tables
    assert {path.name for path in (folder / "rare").iterdir()} - {".lock"} == {"manifest.json", "totals.parquet"}
    assert f"Written to {folder}: figures, mixed, mixed-problems.tex" in done.stdout


def test_prints_the_tables_of_each_kind(compared):
    folder, done = compared
    text = (folder / "report.md").read_text(encoding="utf-8")
    page = (folder / "report.html").read_text(encoding="utf-8")
    for kind in ("mixed", "rare"):
        study = pl.Study.open(folder / kind)
        assert study.labels == ["suak", "one-phase", "one-phase:a=2"]
        assert study.problems == pl.problems.family(kind, 2, seed=3)
        size = f"{kind}: 2 problems, 3 policies, 2 trials of 300 rounds, seed 3"
        assert f"{size}\n\n{study.together.table()}\n\n{study.table()}" in done.stdout
        assert study.together.table().to_markdown() in text
        assert study.together.table().to_html("x")[len('<table aria-label="x">') :] in page
        assert f"(figures/{kind}-together-spread.svg)" in text
        assert size in text
    assert "yardstick" in text
    assert "below 0.1 counts as 0.1" in text


def test_the_same_twice(compared, tmp_path):
    folder, _ = compared
    again = call("rare", "--policies", "one-phase:a=2", *TINY, "--seed", 3, "--out", tmp_path)
    assert again.returncode == 0, again.stderr
    first, second = (pl.Study.open(each / "rare") for each in (folder, tmp_path))
    for name in first:
        assert bits(first[name]["one-phase:a=2"]) == bits(second[name]["one-phase:a=2"])


def test_the_file_that_is_shown_is_the_experiment(compared, tmp_path):
    folder, _ = compared
    policies = "suak,one-phase,one-phase:a=2"
    shown = call("rare", "--policies", policies, *TINY, "--seed", 3, "--show", cwd=tmp_path)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "it.toml").write_text(shown.stdout, encoding="utf-8")
    done = command.call("run", "it.toml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    totals = [(each / "totals.parquet").read_bytes() for each in (folder / "rare", tmp_path / "it")]
    assert totals[0] == totals[1]


def test_a_finished_comparison_is_found_finished_and_reported_again(compared, tmp_path):
    folder, _ = compared
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    done = command.call("report", copy, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "report.html").read_bytes() == (folder / "report.html").read_bytes()


def test_default_policies_are_those_of_the_list_that_exist():
    usual = read_toml(COMPARISON)["policies"]
    assert list(policies_of(None, 1, usual)) == usual
    assert {"suak", "one-phase", "ucb-simplex", "uniform"} <= set(usual) <= set(POLICIES) - {"oracle", "primal-dual"}


def test_parameters_of_policies():
    assert policies_of("suak:order=fewest:horizon=1000, one-phase:a=2.5") == {
        "suak:order=fewest:horizon=1000": pl.SUAK(order="fewest", horizon=1000),
        "one-phase:a=2.5": pl.OnePhase(a=2.5),
    }


def test_a_parameter_may_be_true_or_false():
    assert policies_of("one-phase:time_row=false,thompson:every_arm=true") == {
        "one-phase:time_row=false": pl.OnePhase(time_row=False),
        "thompson:every_arm=true": pl.ThompsonPacer(every_arm=True),
    }


def test_list_of_kinds(tmp_path):
    done = call("--list", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.split(maxsplit=1) for line in done.stdout.splitlines()]
    assert dict(lines) == pl.problems.KINDS
    assert list(tmp_path.iterdir()) == []


def test_help_lists_the_options():
    shown = call("--help").stdout
    for option in (
        "KIND",
        "--policies",
        "--problems",
        "--rounds",
        "--trials",
        "--seed",
        "--out",
        "--list",
        "--show",
        "--dask",
    ):
        assert option in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["gamma"], "kind of problems must be one of beta, bernoulli, .*, got 'gamma'"),
        (["beta", "--policies", "sauk"], "policy must be one of .*, got 'sauk'"),
        (["--policies", ""], "policy must be one of .*, got ''"),
        (["--policies", "suka:order=first"], "policy must be one of .*, got 'suka'; did you mean 'suak'"),
        (["--policies", "suak,suak"], "labels of policies must differ, got 'suak' twice"),
        (["--policies", "one-phase:b=2"], "one-phase takes a, horizon, time_row; got b=2"),
        (["--policies", "one-phase:a"], "a parameter of one-phase must be given as in .*, got 'a'"),
        (["--policies", "one-phase:a=x"], "got 'x'"),
        (["--problems", 0], "problems must be .*, got 0"),
        (["--rounds", 1], "rounds must be .* from 2 to .*, got 1"),
        (["--trials", 0], "trials must be .*, got 0"),
        (["--seed", -1], "seed must be .*, got -1"),
        (["--out", "taken"], "taken/beta must be a folder to write to, but: Not a directory"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, list) else "",
)
def test_wrong_input_is_one_line_and_nothing_is_begun(arguments, words, tmp_path):
    import re

    (tmp_path / "taken").write_text("a file", encoding="utf-8")
    done = call(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert re.search(f"^paceline: error: .*{words}", line)
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_every_policy_beside_the_best_at_several_horizons(tmp_path):
    done = call("beta", "start", "--horizons", "2000,500", "--problems", "2", "--trials", "2", "--out", str(tmp_path))
    lines = [line.split()[:2] for line in done.stdout.partition("Every policy beside the best")[2].splitlines()]
    assert [line for line in lines if line[:1] in (["beta"], ["start"])] == [
        ["beta", "500"],
        ["beta", "2,000"],
        ["start", "500"],
    ]
    for kind, horizons in (("beta", [500, 2000]), ("start", [500])):
        over_best = pl.Study.open(tmp_path / kind).together.over_best()
        assert list(over_best) == horizons
        assert all(min(loss.value for loss in found.values()) == 1.0 for found in over_best.values())
    assert "## Every policy beside the best" in (tmp_path / "report.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("text", "message"), [("500,x", "got '500,x'"), ("1", "got 1"), ("", "got ''")])
def test_horizons_that_are_none_are_refused(text, message, tmp_path):
    done = call("beta", "--horizons", text, "--out", str(tmp_path / "none"))
    assert done.returncode == 2
    assert message in done.stderr
    assert not (tmp_path / "none").exists()


def test_horizons_beyond_the_rounds_are_refused(tmp_path):
    done = call("beta", "--horizons", "100,500", "--rounds", "200", "--out", str(tmp_path / "none"))
    assert done.stderr == "paceline: error: horizons must not be beyond the rounds of a trial, 200, got 500\n"
    assert not (tmp_path / "none").exists()


def test_kind_that_is_for_none_of_the_horizons_is_refused(tmp_path):
    done = call("beta", "start", "--horizons", "5000,9000", "--out", str(tmp_path / "none"))
    message = "the first horizon of kind 'start' must be at most 500 rounds, got 5000"
    assert done.stderr == f"paceline: error: {message}\n"
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("given", ["50", 50, None, ["x"], [1], [2.5]])
def test_horizons_in_python_are_whole_numbers(given):
    with pytest.raises(pl.PacelineError, match="horizon"):
        pl.compare("beta", "uniform", problems=1, rounds=100, trials=1, horizons=given)

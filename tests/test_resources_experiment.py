"""Experiments, comparisons and commands with several resources."""

import csv
import json
import re
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import paceline as pl
from paceline.cli import main
from paceline.cli.compare import policies_of
from paceline.experiments.cells import TOTALS
from paceline.experiments.folder import MANIFEST
from paceline.experiments.sections import what_was_run
from paceline.experiments.shipped import COMPARISON
from paceline.problems.toml import read_toml

ROBOT = """\
rounds = 300
trials = 3
checkpoints = 4
policies = ["oracle", "uniform"]

[[problem]]
name = "robot"
rewards = [0.45, 0.7, 0.8]
[problem.costs]
money = [0.3, 0.75, 0.8]
energy = [0.2, 0.1, 0.6]
[problem.budget]
money = 0.5
[problem.start]
energy = 2.0
[problem.cap]
energy = 4.0
[problem.grid.budget]
energy = [0.25, 0.35]

[[problem]]
paper = "three-arms"
"""
COLUMNS = ["problem", "policy", "trial", "round", "earned", "spent", "skips", "idle", "pulls", "memory", "min_headroom"]


def table(*problems: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"rounds": 100, "trials": 2, "checkpoints": 3, "policies": ["uniform"], "problem": list(problems), **changes}


def problems_of(*problems: dict[str, Any], folder: Path = Path()) -> dict[str, pl.Problem]:
    return {field.name: field.problem for field in pl.Experiment.from_table(table(*problems), folder).problems}


TWO = {"rewards": [0.5, 0.9], "costs": {"money": [0.2, 0.8], "energy": [0.5, 0.1]}}


# Files.


def test_file_with_tables_by_resource(tmp_path):
    (tmp_path / "robot.toml").write_text(ROBOT, encoding="utf-8")
    read = pl.Experiment.read(tmp_path / "robot.toml")
    costs = {"money": [0.3, 0.75, 0.8], "energy": [0.2, 0.1, 0.6]}
    for field, energy in zip(read.problems, (0.25, 0.35), strict=False):
        assert field.name == f"robot, budget.energy={energy}"
        assert field.swept == {"budget.energy": energy}
        assert field.problem == pl.Problem.beta(
            [0.45, 0.7, 0.8],
            costs,
            budget={"money": 0.5, "energy": energy},
            start={"energy": 2.0},
            cap={"energy": 4.0},
        )
    assert read.problems[2].problem == pl.paper.three_arms()


def test_largest_costs_by_resource():
    costs = {"money": [{"kind": "constant", "value": 0.2}], "energy": [0.5]}
    budget = {"money": 0.5, "energy": 0.3}
    (found,) = problems_of(
        {"rewards": [0.5], "costs": costs, "budget": budget, "max_costs": {"money": [0.25]}}
    ).values()
    assert found.max_costs == {"money": (0.25,), "energy": (1.0,)}


def test_grid_over_whole_tables():
    budgets = [{"money": 0.4, "energy": 0.3}, {"money": 0.5, "energy": 0.2}]
    found = list(problems_of({"name": "it", **TWO, "grid": {"budget": budgets}}).values())
    assert found == [pl.Problem.beta(**TWO, budget=budget) for budget in budgets]


def test_grid_over_keys_of_two_tables():
    grid = {"budget": {"money": [0.3, 0.4]}, "start": {"energy": [1, 2]}}
    found = problems_of({"name": "it", **TWO, "budget": {"energy": 0.2}, "grid": grid})
    assert found == {
        f"it, budget.money={money}, start.energy={stock}": pl.Problem.beta(
            **TWO, budget={"energy": 0.2, "money": money}, start={"energy": stock}
        )
        for money in (0.3, 0.4)
        for stock in (1, 2)
    }


def test_family_with_so_many_resources():
    found = problems_of({"family": "resources", "size": 3, "seed": 2, "resources": 3})
    assert list(found.values()) == pl.problems.family("resources", 3, 2, resources=3)


def test_csv_with_several_costs_against_a_naive_reading(tmp_path):
    rows = [("a", 0.5, 1.0, 3.0), ("b", 1.0, 4.0, 0.5), ("a", 1.0, 0.5, 2.0), ("b", 0.25, 2.0, 5.0)]
    with (tmp_path / "log.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("which", "won", "paid", "joule"), *rows])
    columns = {"arm": "which", "reward": "won", "cost": {"money": "paid", "energy": "joule"}}
    most = {"money": {"a": 1.0, "b": 4.0}, "energy": 5.0}
    amounts = {"budget": {"money": 2.0, "energy": 1.0}, "start": {"energy": 10.0}, "cap": {"energy": 20.0}}
    (found,) = problems_of({"csv": "log.csv", **columns, "max_cost": most, **amounts}, folder=tmp_path).values()
    arms = {arm: [row for row in rows if row[0] == arm] for arm in "ab"}
    assert found == pl.Problem(
        [pl.Empirical([row[1] for row in own]) for own in arms.values()],
        {
            "money": [pl.Empirical([row[2] / 4 for row in own]) for own in arms.values()],
            "energy": [pl.Empirical([row[3] / 5 for row in own]) for own in arms.values()],
        },
        budget={"money": 0.5, "energy": 0.2},
        coupled=True,
        max_costs={"money": [0.25, 1.0], "energy": [1.0, 1.0]},
        start={"energy": 2.0},
        cap={"energy": 4.0},
    )


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "one budget for two resources": ({**TWO, "budget": 0.5}, "budget must be given by resource"),
    "no budget for one": ({**TWO, "budget": {"money": 0.5}}, "budget must have an entry .* none for 'energy'"),
    "a budget for nothing": (
        {**TWO, "budget": {"money": 0.5, "energy": 0.1, "time": 0.1}},
        "budget must be given for the resources money, energy, got one for 'time'",
    ),
    "in the table and in its grid": (
        {**TWO, "budget": {"money": 0.5, "energy": 0.1}, "grid": {"budget": {"money": [0.1]}}},
        "budget.money must be given once",
    ),
    "a grid into a number": (
        {**TWO, "budget": 0.5, "grid": {"budget": {"money": [0.1]}}},
        r"budget must be a table for a grid over budget\.money, got 0\.5",
    ),
    "a grid that ends nowhere": (
        {**TWO, "grid": {"budget": {"money": 0.5}}},
        r"grid\.budget\.money must be a list of values, got 0\.5",
    ),
    "several resources of a kind with one": (
        {"family": "beta", "resources": 2},
        "resources of kind 'beta' must be 1, got 2",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_told_with_its_place(case):
    problem, words = WRONG[case]
    with pytest.raises(pl.PacelineError, match=f"problem 1: {words}"):
        pl.Experiment.from_table(table(problem))


def test_policy_for_one_resource_is_refused_before_anything_runs(tmp_path, capsys):
    (tmp_path / "it.toml").write_text(
        'policies = ["suak"]\n[problem]\nrewards = [0.5]\n[problem.costs]\na = [0.1]\nb = [0.2]\n'
        "[problem.budget]\na = 0.5\nb = 0.5\n",
        encoding="utf-8",
    )
    assert main(["run", str(tmp_path / "it.toml")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "policy 'suak' on problem 'problem': suak works with one resource only, got 2" in line
    assert [path.name for path in tmp_path.iterdir()] == ["it.toml"]


# Runs.


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> pl.Study:
    """Two problems with two resources, and one with one."""
    file = tmp_path_factory.mktemp("run") / "robot.toml"
    file.write_text(ROBOT, encoding="utf-8")
    assert main(["run", str(file)]) == 0
    return pl.Study.open(file.with_suffix(""))


def test_run_gives_the_numbers_of_simulate(study):
    name = "robot, budget.energy=0.25"
    expected = pl.simulate(study[name].problem, ["oracle", "uniform"], rounds=300, trials=3, checkpoints=4)
    for label, run in expected.items():
        found = study[name][label]
        assert found.spent.shape == (3, 4, 2)
        for part, again in zip(run.totals, found.totals, strict=True):
            assert (part.dtype, part.shape, part.tobytes()) == (again.dtype, again.shape, again.tobytes())
    assert study["three-arms"]["oracle"].spent.shape == (3, 4)


def test_columns_are_lists_where_a_problem_has_several_resources(study):
    rows = pq.read_table(study.path / TOTALS).to_pylist()
    assert list(rows[0]) == [*COLUMNS[:6], "lost", *COLUMNS[6:]]
    for number, name in enumerate(study):
        own = [row for row in rows if (row["problem"], row["policy"]) == (number, 1)]
        run = study[name]["uniform"]
        width = len(run.problem.resources)
        assert [row["spent"] for row in own] == run.spent.reshape(-1, width).tolist()
        assert [row["min_headroom"] for row in own[::4]] == run.min_headroom.reshape(-1, width).tolist()


def test_columns_of_a_problem_with_one_resource_are_as_they_were(tmp_path):
    study = pl.run_experiment(pl.Experiment.from_table(table({"paper": "three-arms"})), tmp_path)
    found = pq.read_table(study.path / TOTALS)
    assert found.column_names == COLUMNS
    assert found["spent"].to_pylist() == study["three-arms"]["uniform"].spent.ravel().tolist()


def test_study_is_short_at_a_prompt(study):
    assert repr(study) == f"<Study 'robot' in '{study.path}': 3 problems, 2 policies, 3 trials of 300 rounds, seed 0>"
    assert [row[0] for row in study.table().rows] == list(study)
    assert all(f">{name}<" in study._repr_html_() for name in study)


def test_diff_sees_one_resource(study, tmp_path, capsys):
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in (MANIFEST, TOTALS):
        (copy / name).write_bytes((study.path / name).read_bytes())
    assert main(["diff", str(study.path), str(copy)]) == 0
    assert "identical" in capsys.readouterr().out
    found = pq.read_table(copy / TOTALS)
    headrooms = found["min_headroom"].to_pylist()
    for row in range(4):
        headrooms[row] = [headrooms[row][0], headrooms[row][1] + 1.0]
    at = found.column_names.index("min_headroom")
    changed = found.set_column(at, found.schema.field(at), [headrooms])
    with pq.ParquetWriter(copy / TOTALS, found.schema) as writer:
        for first in range(0, found.num_rows, 12):  # a row group for each policy on each problem
            writer.write_table(changed.slice(first, 12))
    assert main(["diff", str(study.path), str(copy)]) == 1
    out = capsys.readouterr().out
    assert "The numbers differ in 1 of 6 runs" in out
    assert "min_headroom" in out


def test_begun_by_a_process_that_was_killed(tmp_path):
    experiment = pl.Experiment.from_table(table({"paper": "three-arms"}))
    (tmp_path / f".{MANIFEST}.0123abcd.unfinished").write_text("half", encoding="utf-8")
    (tmp_path / ".lock").touch()
    pl.run_experiment(experiment, tmp_path)
    (tmp_path / f".{TOTALS}.0123abcd.unfinished").write_text("half", encoding="utf-8")
    pl.run_experiment(experiment, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", MANIFEST, TOTALS]


def test_runs_where_the_system_has_no_locks(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fcntl", None)
    study = pl.run_experiment(pl.Experiment.from_table(table({"paper": "three-arms"})), tmp_path)
    assert len(study) == 1


# Comparisons.


@pytest.fixture(scope="module")
def compared() -> pl.Study:
    return pl.compare("resources", ["oracle", "uniform"], problems=2, rounds=300, trials=2, resources=2)


def test_smallest_headroom_of_any_resource(compared):
    for score in compared.scores():
        lowest = [res[score.label].min_headroom.min() for res in compared.values()]
        assert score.min_headroom == min(lowest)
        assert compared["resources 1"][score.label].min_headroom.shape == (2, 2)


def test_budgets_of_problems_by_name(compared):
    *_, problems = what_was_run(compared).blocks
    shown = [row[2] for row in problems.table.rows]
    assert shown == ["r1 {:.6g}, r2 {:.6g}".format(*problem.rates) for problem in compared.problems]


def test_policy_for_one_resource_cannot_be_compared():
    with pytest.raises(pl.InvalidValue, match="suak works with one resource only, got 2"):
        pl.compare("resources", ["uniform", "suak"], problems=1, rounds=100, trials=1)


def test_default_policies_are_those_that_can_play():
    one, several = (policies_of(None, count, read_toml(COMPARISON)["policies"]) for count in (1, 2))
    assert {"suak", "ucb-simplex"} <= set(one)
    assert set(several) == {label for label, policy in one.items() if policy.resources is None}


def test_compare_from_the_command_line(tmp_path, capsys):
    scale = ["--problems", "2", "--rounds", "100", "--trials", "2", "--policies", "uniform,oracle"]
    assert main(["compare", "resources", "--resources", "2", *scale, "--out", str(tmp_path)]) == 0
    assert "resources: 2 problems, 2 policies, 2 trials of 100 rounds" in capsys.readouterr().out
    assert pl.Study.open(tmp_path / "resources").problems[0].resources == ("r1", "r2")
    assert main(["compare", "beta", "--resources", "2", *scale, "--out", str(tmp_path / "no")]) == 2
    assert capsys.readouterr().err.splitlines()[-1].endswith("resources of kind 'beta' must be 1, got 2")
    assert not (tmp_path / "no").exists()


# solve.

REWARDS = ["--rewards", ".45", ".7", ".8"]
MONEY, ENERGY = "money=.3,.75,.8", "energy=.2,.1,.6"
NAMED = pl.Problem.beta(
    [0.45, 0.7, 0.8],
    {"money": [0.3, 0.75, 0.8], "energy": [0.2, 0.1, 0.6]},
    budget={"money": 0.5, "energy": 0.25},
)


def solved(capsys, *arguments: str) -> Any:
    assert main(["solve", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--costs", MONEY, "--costs", ENERGY, "--budget", "money=.5", "--budget", "energy=.25"],
        ["--costs", MONEY, ENERGY, "--budget", "energy=.25", "money=.5"],
        ["--costs", f"{MONEY},{ENERGY}", "--budget", "money=.5,energy=.25"],
    ],
    ids=["options", "words", "commas"],
)
def test_solve_several_resources(arguments, capsys):
    best = NAMED.optimum
    assert solved(capsys, *REWARDS, *arguments) == {
        "value": pytest.approx(best.value),
        "mix": pytest.approx(best.mix.tolist()),
        "prices": {"money": pytest.approx(best.prices[0]), "energy": pytest.approx(best.prices[1])},
        "level": pytest.approx(best.level),
        "gaps": pytest.approx(best.gaps.tolist()),
        "case": 3,
    }


def test_solve_prints_a_price_and_a_column_for_each_resource(capsys):
    assert main(["solve", *REWARDS, "--costs", MONEY, ENERGY, "--budget", "money=.5", "energy=.25"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["value", "per", "round", "0.574457"] in lines
    assert ["price", "of", "money", "0.586957"] in lines
    assert ["price", "of", "energy", "0.141304"] in lines
    assert ["level", "of", "a", "round", "0.245652"] in lines
    assert ["arm", "reward", "cost,", "money", "cost,", "energy", "weight", "a", "pull", "loses"] in lines
    assert ["2", "0.7", "0.75", "0.1", "0.239130", "0.000000"] in lines
    assert ["null", "0", "0", "0", "0.000000", "0.245652"] in lines


def test_solve_reads_several_resources_from_a_file(tmp_path, capsys):
    text = "rewards = [0.45, 0.7, 0.8]\n[problem.costs]\nmoney = [0.3, 0.75, 0.8]\nenergy = [0.2, 0.1, 0.6]\n"
    (tmp_path / "it.toml").write_text(
        "[problem]\n" + text + "[problem.budget]\nmoney = 0.5\nenergy = 0.25\n", encoding="utf-8"
    )
    assert solved(capsys, str(tmp_path / "it.toml"))["value"] == pytest.approx(NAMED.optimum.value)


def test_solve_a_stock_that_has_to_last(capsys):
    stock = pl.Problem.beta([0.45, 0.7, 0.8], [0.3, 0.75, 0.8], budget=0, start=100)
    arguments = [*REWARDS, "--costs", ".3", ".75", ".8", "--budget", "0", "--start", "100"]
    assert solved(capsys, *arguments, "--rounds", "200")["value"] == pytest.approx(stock.optimum_over(200).value)
    assert main(["solve", *arguments]) == 2
    assert "--rounds must say how long a stock without a budget" in capsys.readouterr().err


REFUSED = {
    "a number beside names": (["--costs", MONEY, ".5", "--budget", "money=1"], "--costs must have a name for every"),
    "a resource twice": (["--costs", MONEY, MONEY, "--budget", "money=1"], "--costs must be given once .* 'money'"),
    "two budgets": (
        ["--costs", ".3", ".75", ".8", "--budget", ".5", ".6"],
        "--budget must be one number, got 0.5, 0.6",
    ),
    "two budgets by name": (["--costs", MONEY, "--budget", "money=.5,.6"], "--budget of 'money' must be one number"),
    "one budget for all": (["--costs", MONEY, ENERGY, "--budget", ".5"], "budget must be given by resource"),
    "a budget too few": (["--costs", MONEY, ENERGY, "--budget", "money=.5"], "budget must have an entry"),
    "an arm too few": (["--costs", "a=.3,.75", "--budget", "a=.5"], "got 3 rewards and 2 costs"),
    "no name": (["--costs", "=.3,.75,.8", "--budget", "=.5"], "name of a resource in costs must be a text"),
    "no rounds": (["--costs", MONEY, "--budget", "money=.5", "--rounds", "0"], "rounds must be .*, got 0"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_solve_refuses_in_one_line(case, capsys):
    arguments, words = REFUSED[case]
    assert main(["solve", *REWARDS, *arguments]) == 2
    shown = capsys.readouterr()
    (line,) = shown.err.splitlines()
    assert shown.out == ""
    assert line.startswith("paceline: error: ")
    assert re.search(words, line)


def test_solve_shows_usage_for_what_is_no_number(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["solve", *REWARDS, "--costs", "money=.3,,.8"])
    assert stopped.value.code == 2
    assert "invalid amounts value: 'money=.3,,.8'" in capsys.readouterr().err

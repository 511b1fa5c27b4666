"""The report of a run with several resources: the promise, tables, figures and files by resource."""

import csv
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pages import Reader

import paceline as pl
from paceline.cli import main
from paceline.experiments.cells import TOTALS

ROBOT = {
    "name": "robot",
    "rewards": [0.45, 0.7, 0.8],
    "costs": {"money": [0.3, 0.75, 0.8], "energy": [0.2, 0.1, 0.6]},
    "budget": {"money": 0.5, "energy": 0.25},
    "start": {"energy": 2.0},
    "cap": {"energy": 9.0},
}
STOCK = {"name": "stock", "rewards": [0.5, 0.9], "costs": [0.2, 0.8], "budget": 0, "start": 150}
SCALE = {"rounds": 300, "trials": 3, "checkpoints": 4, "policies": ["oracle", "uniform"]}


def report_on(folder: Path, *problems: dict[str, Any]) -> tuple[pl.Study, str]:
    """A run and its page."""
    study = pl.run_experiment(pl.Experiment.from_table({**SCALE, "problem": list(problems)}), folder / "run")
    assert main(["report", str(study.path), "--out", str(folder)]) == 0
    return study, (folder / "report.html").read_text(encoding="utf-8")


def texts(page: str, name: str) -> list[str]:
    return Reader(page).texts[name]


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> tuple[pl.Study, str]:
    return report_on(tmp_path_factory.mktemp("alone"), ROBOT)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory) -> tuple[pl.Study, str, Path]:
    """A problem with two resources, one with a stock that has to last, one of the paper's."""
    folder = tmp_path_factory.mktemp("mixed")
    return *report_on(folder, ROBOT, STOCK, {"paper": "three-arms"}), folder


def test_the_promise_is_told_for_each_resource(alone):
    study, page = alone
    lowest = [
        min(run.by_resource("min_headroom")[name].min() for run in study["robot"].values()) for name in ROBOT["costs"]
    ]
    (told,) = [text for text in texts(page, "p") if "held after every round" in text]
    assert told == (
        "The budget line of every resource held after every round of every trial; the smallest headroom was "
        f"{lowest[0]:.3g} of money and {lowest[1]:.3g} of energy."
    )


def test_table_has_columns_for_each_resource(alone):
    study, page = alone
    (found,) = [rows for rows in Reader(page).tables if "money per round" in rows[0]]
    assert found[0][-4:] == ["money per round", "energy per round", "min money left", "min energy left"]
    for row, run in zip(found[1:], study["robot"].values(), strict=True):
        assert row[-4:-2] == [f"{rate:.5f}" for rate in run.spent[:, -1].mean(axis=0) / 300]
        assert row[-2:] == [f"{least:.3g}" for least in run.min_headroom.min(axis=0)]
    assert ["robot", "3", "money 0.5, energy 0.25 (start 2, cap 9)"] in [
        row[:3] for rows in Reader(page).tables for row in rows
    ]


def test_a_spending_figure_for_each_resource(alone):
    study, page = alone
    shown = [value for value in Reader(page).values("alt") if "against the round" in value]
    energy = {label: run.headroom[:, -1, 1].mean() for label, run in study["robot"].items()}
    money = {label: 0.5 - run.spent[:, -1, 0].mean() / 300 for label, run in study["robot"].items()}
    for what, values in (("Budget rate minus average cost of money", money), ("Headroom of energy", energy)):
        (told,) = [text for text in shown if text.startswith(what)]
        for label, value in values.items():
            (number,) = re.findall(rf"{label} (-?[\d.e-]+?)[,.]?(?: |$)", told)
            assert float(number) == pytest.approx(value, rel=0.01, abs=1e-9)
    captions = texts(page, "figcaption")
    assert sum(caption.startswith("Distance to the budget line of money per round") for caption in captions) == 1
    assert sum(caption.startswith("What is left of energy") for caption in captions) == 1


def test_csv_has_columns_for_each_resource(mixed):
    study, _, folder = mixed
    with (folder / "summary.csv").open(encoding="utf-8", newline="") as file:
        rows = {(row["problem"], row["policy"]): row for row in csv.DictReader(file)}
    for (problem, policy), row in rows.items():
        run = study[problem][policy]
        for name in ("money", "energy", "cost"):
            if name in run.problem.resources:
                spent, lowest = run.by_resource("spent")[name], run.by_resource("min_headroom")[name]
                assert float(row[f"spent_per_round_{name}"]) == pytest.approx(spent[:, -1].mean() / 300)
                assert float(row[f"min_headroom_{name}"]) == lowest.min()
            else:
                assert row[f"spent_per_round_{name}"] == row[f"min_headroom_{name}"] == ""


def test_latex_has_a_dash_where_a_problem_lacks_a_resource(mixed):
    text = (mixed[2] / "summary.tex").read_text(encoding="utf-8")
    heading, *rows = [line.removesuffix(r" \\").split(" & ") for line in text.splitlines() if " & " in line]
    assert heading[-6:] == [
        *("money per round", "energy per round", "cost per round"),
        *("min money left", "min energy left", "min cost left"),
    ]
    assert all(len(row) == len(heading) for row in rows)
    assert [row[-6] == "--" for row in rows] == [False, False, True, True, True, True]
    assert [row[-4] == "--" for row in rows] == [True, True, False, False, False, False]


def test_every_problem_has_the_columns_of_its_own_resources(mixed):
    headings = [rows[0] for rows in Reader(mixed[1]).tables]
    assert sum("money per round" in row for row in headings) == 1
    assert sum("spent per round" in row for row in headings) == 2


def test_a_stock_that_has_to_last_is_explained(mixed, alone):
    note = "only the last round tells"
    assert sum(note in caption for caption in texts(mixed[1], "figcaption")) == 1
    assert note not in alone[1]
    rows = {row[0]: row for rows in Reader(mixed[1]).tables for row in rows if "best value" in rows[0]}
    best = pl.Problem.from_dict({key: value for key, value in STOCK.items() if key != "name"}).optimum_over(300)
    assert rows["stock"][2:4] == ["0 (start 150)", f"{best.value:.6g}"]


def test_overspending_of_one_resource_is_loud(alone, tmp_path):
    study, _ = alone
    folder = tmp_path / "run"
    shutil.copytree(study.path, folder)
    found = pq.read_table(folder / TOTALS)
    at = found.column_names.index("min_headroom")
    lowest = [
        [money, -0.5] if row < 12 else [money, energy] for row, (money, energy) in enumerate(found[at].to_pylist())
    ]
    changed = found.set_column(at, found.schema.field(at), [lowest])
    with pq.ParquetWriter(folder / TOTALS, found.schema) as writer:
        for first in range(0, found.num_rows, 12):  # a row group for each policy
            writer.write_table(changed.slice(first, 12))
    assert main(["report", str(folder)]) == 0
    page = Reader((folder / "report.html").read_text(encoding="utf-8"))
    (alarm,) = [text for text in page.texts["p"] if text.startswith("OVERSPENT")]
    assert "1 run of 2. The worst is oracle on robot, 0.5 above the line of energy." in alarm
    assert [row[-1] for rows in page.tables for row in rows if row[-1].endswith("OVERSPENT")] == ["-0.5 OVERSPENT"]


def test_one_resource_without_a_name_is_told_as_before(tmp_path):
    _, page = report_on(tmp_path, {"paper": "three-arms"})
    assert re.search(
        r"The budget line held after every round of every trial; the smallest headroom was [\d.e-]+\.<", page
    )
    assert "Distance to the budget line per round; at 0 all is spent" in page
    heading = (tmp_path / "summary.csv").read_text(encoding="utf-8").splitlines()[0]
    assert heading.endswith("skips,idle_rounds,spent_per_round,min_headroom")

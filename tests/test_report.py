"""The report of a run: its numbers against the raw totals, its page and its tables as a reader's tools see them."""

import base64
import csv
import json
import math
import re
import shutil
import tomllib
import xml.etree.ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from pages import Reader
from scipy.optimize import linprog
from scipy.stats import t as student
from scipy.stats import ttest_1samp, ttest_rel

import paceline as pl
from paceline.cli import main
from paceline.experiments import report
from paceline.experiments.folder import FORMAT
from paceline.experiments.sweeps import policy_axes, problem_axes, problem_sweep
from paceline.experiments.together import Together
from paceline.reports.figures import look
from paceline.statistics import mean_difference

pytestmark = pytest.mark.slow

NASTY = 'a<b> & "50 %" of $c_1$ #2 {x} ~^\\'
ONE_ARM = "one <arm> & one_more"
TABLE: dict[str, Any] = {
    "rounds": 400,
    "trials": 9,
    "checkpoints": 5,
    "seed": 3,
    "policies": ["suak"],
    "policy": [
        {"name": "thompson", "label": NASTY},
        {"name": "one-phase", "grid": {"a": [2.0, 0.5]}},
        {"name": "suak", "label": "by", "grid": {"order": ["fewest", "cheapest"]}},
    ],
    "problem": [
        {"paper": "three-arms", "grid": {"budget": [0.5, 0.4]}},
        {"name": ONE_ARM, "rewards": [0.5], "costs": [0.4], "budget": 0.5},
    ],
}
SMALL: dict[str, Any] = {"rounds": 100, "trials": 3, "checkpoints": 4}


def run(folder: Path, **table: Any) -> pl.Study:
    return pl.run_experiment(pl.Experiment.from_table({**SMALL, **table}), folder)


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> pl.Study:
    """Two points of a grid and a problem with nothing to learn; policies with a grid over numbers and over words."""
    return run(tmp_path_factory.mktemp("run"), **TABLE, name="Grids & <more>")


@pytest.fixture(scope="module")
def reported(study, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("parent") / "new" / "report"
    study.report(folder)
    return folder


@pytest.fixture(scope="module")
def page(reported) -> str:
    return (reported / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def reader(page) -> Reader:
    return Reader(page)


@pytest.fixture(scope="module")
def totals(study) -> pd.DataFrame:
    """The raw totals at the last round with steady regret made from them, by nothing of paceline's."""
    frame = pq.read_table(study.path / "totals.parquet").to_pandas()
    frame = frame[frame["round"] == frame["round"].max()].reset_index(drop=True)
    manifest = json.loads((study.path / "manifest.json").read_text(encoding="utf-8"))["experiment"]
    regret = []
    for row in frame.itertuples():
        problem = manifest["problems"][row.problem]["problem"]
        mu, rho = ([arm["mean"] for arm in problem[side]] for side in ("rewards", "costs"))
        value, price = program(tuple(mu), tuple(rho), problem["budget"])
        pseudo = row.round * value - np.dot(mu, row.pulls)
        regret.append(pseudo - price * (row.spent - np.dot(rho, row.pulls)))
    return frame.assign(steady=regret)


def program(mu: tuple[float, ...], rho: tuple[float, ...], budget: float) -> tuple[float, float]:
    """The best value of a round and the price of budget, by a general solver."""
    found = linprog([-reward for reward in mu], [rho, [1.0] * len(mu)], [budget, 1.0])
    return -found.fun, -found.ineqlin.marginals[0]


def summary(reported: Path) -> dict[tuple[str, str], dict[str, str]]:
    with (reported / "summary.csv").open(encoding="utf-8", newline="") as file:
        return {(row["problem"], row["policy"]): row for row in csv.DictReader(file)}


# The numbers.


def test_summary_is_what_the_raw_totals_say(study, reported, totals):
    rows = summary(reported)
    assert len(rows) == len(study.names) * len(study.labels) == 18
    for (problem, policy), row in rows.items():
        number, place = study.names.index(problem), study.labels.index(policy)
        own = totals[(totals.problem == number) & (totals.policy == place)]
        reference = totals[(totals.problem == number) & (totals.policy == study.labels.index("suak"))]
        assert int(row["trials"]) == len(own) == 9
        assert float(row["steady_regret"]) == pytest.approx(own.steady.mean(), abs=1e-9)
        assert float(row["standard_error"]) == pytest.approx(own.steady.sem(), abs=1e-9)
        assert float(row["difference"]) == pytest.approx(own.steady.mean() - reference.steady.mean(), abs=1e-9)
        if row["ratio"]:
            assert float(row["ratio"]) == pytest.approx(own.steady.mean() / reference.steady.mean())
        assert float(row["difference_low"]) <= float(row["difference"]) <= float(row["difference_high"])
        assert float(row["skips"]) == own.skips.mean()
        assert float(row["spent_per_round"]) == pytest.approx(own.spent.mean() / 400)
        assert float(row["min_headroom"]) == own.min_headroom.min()
        assert float(row["limit"]) == pytest.approx(pl.theory.limit(study.problems[number], 400))
        causes = sum(float(row[f"{cause}_regret"]) for cause in ("wrong_arms", "idle", "unspent"))
        assert causes == pytest.approx(float(row["steady_regret"]))


def test_summary_says_where_in_the_grids_a_line_stands(reported):
    rows = summary(reported)
    assert rows["three-arms, budget=0.4", "one-phase, a=0.5"]["problem.budget"] == "0.4"
    assert rows["three-arms, budget=0.4", "one-phase, a=0.5"]["policy.a"] == "0.5"
    assert rows[ONE_ARM, "by, order=fewest"]["policy.order"] == "fewest"
    assert rows[ONE_ARM, "by, order=fewest"]["problem.budget"] == rows[ONE_ARM, "suak"]["policy.a"] == ""


def test_the_page_shows_the_numbers_of_the_raw_totals(study, reader, totals):
    """Every table with differences, cell by cell, written here once more."""
    tables = [table for table in reader.tables if table[0][:3] == ["policy", "steady regret", "minus suak"]]
    assert len(tables) == len(study.names)
    for number, (_, *rows) in enumerate(tables):
        assert [row[0] for row in rows] == study.labels
        for place, row in enumerate(rows):
            own = totals[(totals.problem == number) & (totals.policy == place)]
            digits = 0 if own.steady.mean() >= 100 else 1
            ends = ttest_1samp(own.steady, 0.0).confidence_interval(0.95)
            assert row[1] == f"{own.steady.mean():,.{digits}f} [{ends.low:,.{digits}f}, {ends.high:,.{digits}f}]"
            assert row[6] == f"{own.min_headroom.min():.3g}"
    assert tables[0][1][2] == "reference"
    assert re.fullmatch(r"−[\d.]+ \[−[\d.]+, −[\d.]+\]", tables[0][2][2])


def test_intervals_are_paired_ones_of_student(reported, totals, study):
    """Against scipy, from the raw totals."""
    frame = totals[totals.problem == 0]
    reference = frame[frame.policy == 0].steady.to_numpy()
    for place in (1, 2, 3):
        row = summary(reported)[study.names[0], study.labels[place]]
        values = frame[frame.policy == place].steady.to_numpy()
        for column, test in (("difference", ttest_rel(values, reference)), ("steady_regret", ttest_1samp(values, 0.0))):
            ends = test.confidence_interval(0.95)
            found = float(row[f"{column}_low"]), float(row[f"{column}_high"])
            assert found == pytest.approx((ends.low, ends.high))
        assert float(row["ratio_low"]) < float(row["ratio"]) < float(row["ratio_high"])
        assert float(row["ratio"]) == pytest.approx(values.mean() / reference.mean())


def test_pairs_are_surer_than_two_samples():
    luck = np.random.default_rng(5).normal(0.0, 100.0, 50)
    values, reference = luck + np.linspace(1.0, 3.0, 50), luck
    paired = mean_difference(values, reference)
    apart = mean_difference(values, reference, paired=False)
    assert paired.value == pytest.approx(2.0)
    assert apart.value == pytest.approx(2.0)
    assert 1.6 < paired.low < 2.0 < paired.high < 2.4
    assert apart.low < -20 < 20 < apart.high
    assert not mean_difference(values[:1], reference[:1]).known


def test_all_problems_together_as_in_the_arena(study, reported, totals):
    """Both problems are points of one grid: they share their draws, and are one group."""
    whole = Together(study.name, study.size, study.labels, study.rounds)
    for name in study.names[:2]:
        whole.add(study[name], 0)
    with (reported / "together.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["label"]: row for row in csv.DictReader(file)}
    for score in whole.scores("suak"):
        row = rows[score.label]
        assert float(row["ratio.value"]) == pytest.approx(score.ratio.value)
        assert float(row["gain.low"]) == pytest.approx(score.gain.low)
        assert [int(row[key]) for key in ("won", "drawn", "lost")] == [score.won, score.drawn, score.lost]
        assert float(row["min_headroom"]) == score.min_headroom
    by_run = totals[totals.problem < 2].groupby(["policy", "problem"]).steady
    means, variances = (part.unstack().to_numpy() for part in (by_run.mean(), by_run.var()))
    limits = np.array([pl.theory.limit(problem, 400) for problem in study.problems[:2]])
    bias = variances / (2 * study.experiment["trials"] * means**2)
    expected = np.exp((np.log(means / limits) + bias).mean(axis=1))
    np.testing.assert_allclose([float(row["ratio.value"]) for row in rows.values()], expected)


def test_the_page_says_of_what_the_intervals_are(page):
    assert "points of one grid share their draws, and tell nothing of other problems" in page


def test_groups_are_those_of_the_streams(tmp_path):
    problems = [{"paper": "three-arms", "grid": {"budget": [0.5, 0.4]}}, {"family": "bernoulli", "size": 2}]
    run(tmp_path, policies=["suak", "uniform"], problem=problems).report()
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Over 4 problems, with 95 % intervals over problems; points of a grid share their draws: 3 groups" in page


def test_a_capped_limit_is_marked_in_page_and_tables(tmp_path):
    study = run(tmp_path, policies=["suak", "uniform"], problem=[{"family": "rare", "size": 2}])
    study.report()
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "† the bare limit exceeds what there is to lose in so few rounds" in page
    assert "† on 2 of 2 problems the bare limit exceeds" in page
    assert [row["limit_capped"] for row in summary(tmp_path).values()] == ["True"] * 4
    for name in ("problems.tex", "together.tex"):
        assert r"\par {\footnotesize $\dagger$ " in (tmp_path / name).read_text(encoding="utf-8")


def test_a_problem_without_a_limit_is_left_out_and_the_page_says_so(study, page):
    assert pl.theory.limit(study.problems[2], 400) == 0.0
    assert "Geometric means over 2 problems" in page
    assert "1 problem has a limit of 0 and cannot count here" in page


# The page.


def test_what_was_run_and_where_it_comes_from(study, reader):
    manifest = study.manifest
    assert reader.texts["h1"] == reader.texts["title"] == ["Grids & <more>"]
    cells = {cell for table in reader.tables for row in table for cell in row}
    assert {*study.names, *study.labels, *(entry["policy"] for entry in study.experiment["policies"])} <= cells
    assert {
        manifest["kernels"],
        *map(str, manifest["versions"].values()),
        *map(str, manifest["host"].values()),
    } <= cells
    assert {manifest["begun"], manifest["finished"]} <= cells
    assert "3 problems, 6 policies, 9 trials of 400 rounds, seed 3" in reader.texts["header"][0]
    assert tomllib.loads(reader.texts["pre"][0]) == manifest["file"]


def test_the_page_needs_nothing_but_itself(page, reader):
    assert {value[:5] for value in reader.values("src")} == {"data:"}
    assert {value[:1] for value in reader.values("href")} == {"#"}
    assert not re.search(r"(?:src|href|url\(|@import)[\s=\"'(]*(?:https?:)?//", page)
    assert not {"script", "link", "iframe", "object", "embed"} & set(reader.texts)
    assert not any(key.startswith("on") for _, key, _ in reader.attributes)
    assert "default-src 'none'" in page
    assert {value.removeprefix("#") for value in reader.values("href")} <= set(reader.values("id"))
    assert len(page) < 1_500_000


def images(page: str) -> list[str]:
    found = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', page)
    return [base64.b64decode(image).decode() for image in found]


def test_every_figure_is_a_whole_svg_with_words_for_those_who_cannot_see_it(page, reader, study):
    drawn = images(page)
    # Seven and two sweeps of policies for each problem; three for all together; the budget, and the policies' again.
    assert len(drawn) == 3 * (7 + 2) + 3 + (1 + 2) == len(reader.texts["figure"])
    for svg in drawn:
        root = xml.etree.ElementTree.fromstring(svg)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert not re.search(r"(?:href|url\()[\s=\"'(]*https?:", svg)
    alternatives = reader.values("alt")
    assert len(alternatives) == len(drawn)
    assert all(len(words) > 30 for words in alternatives)
    assert all(reader.texts["figcaption"])
    regret = study[study.names[0]][NASTY].steady_regret[:, -1].mean()
    assert sum(f"{NASTY} {regret:.3g}" in words for words in alternatives) >= 3


def test_figures_are_those_asked_for(page):
    titles = ("Steady regret", "logarithmic", "Where it comes from", "Skipped", "minus average cost", "Final regret")
    drawn = images(page)
    for title in titles:
        assert sum(title in svg for svg in drawn) >= 3, title


def test_a_policy_has_one_colour_throughout(page, study):
    """In the legend and in every figure with lines; bars have greys."""
    colours = [look(place)[0] for place in range(len(study.labels))]
    legends = re.findall(r'<ul class="legend">.*?</ul>', page, re.DOTALL)
    assert len(legends) == 3 + 2
    assert all(re.findall(r'stroke="(#\w+)"', legend) == colours for legend in legends)
    for svg in images(page):
        if "Skipped rounds" in svg:
            drawn = re.findall(r"fill: none; stroke: (#\w{6}); stroke-width: 1\.6", svg)
            assert drawn == [colour.lower() for colour in colours]


def test_labels_are_text_wherever_they_stand(page, study):
    for label in (NASTY, ONE_ARM, "Grids & <more>"):
        assert label not in page.replace("&quot;", '"')
    assert any("a&lt;b&gt; &amp; " in svg for svg in images(page))


def test_the_same_run_gives_the_same_page(study, reported, tmp_path):
    study.report(tmp_path)
    for path in reported.rglob("*.*"):
        assert (tmp_path / path.relative_to(reported)).read_bytes() == path.read_bytes(), path.name


def test_another_reference(study, tmp_path, monkeypatch):
    monkeypatch.setattr(report, "MOST_DRAWN", 0)
    study.report(tmp_path, reference=NASTY)
    row = summary(tmp_path)[study.names[0], NASTY]
    assert (float(row["difference"]), float(row["ratio"])) == (0.0, 1.0)
    with pytest.raises(pl.UnknownName, match=r"reference must be one of suak, .*, got 'sauk'"):
        study.report(tmp_path / "other", reference="sauk")
    assert not (tmp_path / "other").exists()


def test_many_problems_are_folded_and_only_the_first_are_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "MOST_DRAWN", 2)
    study = run(tmp_path, policies=["suak", "uniform"], problem=[{"family": "bernoulli", "size": 5}])
    study.report()
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Figures are drawn for the first 2 of 5 problems" in page
    assert len(images(page)) == 3 + 2 * 7
    summaries = [text for text in Reader(page).texts["summary"] if text.startswith("bernoulli")]
    assert [re.split("won by|a draw", text)[0] for text in summaries] == [
        f"bernoulli {number}" for number in range(1, 6)
    ]
    assert page.index("All problems together") < page.index("Problem by problem")


def test_the_cap_is_twelve_problems():
    assert report.MOST_DRAWN == 12


@pytest.mark.parametrize("policies", [["uniform"], ["thompson", "uniform"]], ids=len)
def test_one_trial_says_nothing_of_how_sure_it_is(policies, tmp_path):
    study = run(tmp_path, trials=1, policies=policies, problem=[{"paper": "three-arms"}])
    study.report()
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "There was one trial" in page
    assert "[" not in "".join(cell for table in Reader(page).tables for row in table for cell in row)
    assert not re.search(r"\bnan\b", page)
    assert "paired by trial" not in page
    assert len(images(page)) == 6
    rows = summary(tmp_path)
    assert all((row["standard_error"], row["difference_low"]) == ("", "") for row in rows.values())
    assert not (tmp_path / "together.csv").exists()


def test_a_single_round(tmp_path):
    study = run(
        tmp_path, rounds=1, checkpoints=1, policies=["suak", "uniform"], problem=[{"family": "beta", "size": 2}]
    )
    study.report()
    assert len(images((tmp_path / "report.html").read_text(encoding="utf-8"))) == 14


def test_more_policies_than_colours_and_letters_of_any_script(tmp_path):
    labels = [f"政策 {number} é\u0007😀" for number in range(9)]
    policies = [{"name": "uniform", "label": label} for label in labels]
    study = run(tmp_path, policy=policies, problem=[{"paper": "three-arms", "name": "問題"}])
    study.report()
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for svg in images(page):
        xml.etree.ElementTree.fromstring(svg)  # would refuse a control character
    assert len({(colour, dashes) for colour, dashes in map(look, range(9))}) == 9
    assert 'stroke-dasharray="6 3"' in page


# A broken promise.


def edited(study: pl.Study, folder: Path, change) -> Path:
    """A copy of the run, each row group of its totals changed as told."""
    shutil.copytree(study.path, folder)
    source = pq.ParquetFile(study.path / "totals.parquet")
    with pq.ParquetWriter(folder / "totals.parquet", source.schema_arrow) as writer:
        for number in range(source.num_row_groups):
            group = change(source.read_row_group(number))
            if group is not None:
                writer.write_table(group)
    return folder


def overspent(group):
    """Two of the policies on the first problem."""
    if group["problem"][0].as_py() or group["policy"][0].as_py() not in (1, 2):
        return group
    lowest = -0.25 * group["policy"][0].as_py()
    at = group.schema.get_field_index("min_headroom")
    return group.set_column(at, "min_headroom", [[lowest] * group.num_rows])


def test_overspending_is_shouted(study, tmp_path, monkeypatch):
    monkeypatch.setattr(report, "MOST_DRAWN", 0)
    folder = edited(study, tmp_path / "run", overspent)
    pl.Study.open(folder).report()
    page = (folder / "report.html").read_text(encoding="utf-8")
    (alarm,) = re.findall(r'<p class="alarm" role="alert">(.*?)</p>', page)
    assert "OVERSPENT: the budget line was broken in 2 runs of 18" in alarm
    assert "The worst is one-phase, a=2 on three-arms, budget=0.5, 0.5 above the line" in alarm
    assert page.index(alarm) < page.index("<main>")
    assert "The budget line held" not in page
    assert page.count('<td class="overspent">-0.5 OVERSPENT</td>') == 2  # on the problem, and all problems together
    assert summary(folder)[study.names[0], "one-phase, a=2"]["min_headroom"] == "-0.5"
    assert "OVERSPENT" in (folder / "summary.tex").read_text(encoding="utf-8")


def test_a_kept_promise_is_said_quietly(page):
    assert "The budget line held after every round of every trial" in page
    assert "OVERSPENT" not in page


# Grids.


def test_axes_of_grids(study):
    (budget,) = problem_axes(study.experiment["problems"])
    assert (budget.thing, budget.parameter, budget.values, budget.at) == (
        "three-arms",
        "budget",
        (0.4, 0.5),
        ((1,), (0,)),
    )
    a, order = policy_axes(study.experiment["policies"])
    assert (a.thing, a.parameter, a.shown, a.at) == ("one-phase", "a", (0.5, 2.0), ((3,), (2,)))
    assert (order.thing, order.shown, order.at) == ("by", ("fewest", "cheapest"), ((4,), (5,)))


def test_two_parameters_are_swept_one_at_a_time_and_a_family_is_one_point(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "MOST_DRAWN", 0)
    table = {"family": "beta", "size": 3, "grid": {"shortfall": [0.1, 0.3], "arms": [3, 4]}}
    study = run(tmp_path, policies=["suak", "uniform"], problem=[table, {"paper": "three-arms"}])
    axes = problem_axes(study.experiment["problems"])
    assert [(axis.thing, axis.parameter) for axis in axes] == [
        ("beta, arms=3", "shortfall"),
        ("beta, shortfall=0.1", "arms"),
        ("beta, arms=4", "shortfall"),
        ("beta, shortfall=0.3", "arms"),
    ]
    (found,) = report.Report([study], "suak").found
    sweep = problem_sweep(axes[0], found.lines)
    for place, label in enumerate(study.labels):
        for at, shortfall in enumerate((0.1, 0.3)):
            names = [f"beta {number}, shortfall={shortfall}, arms=3" for number in (1, 2, 3)]
            finals = np.array([study[name][label].steady_regret[:, -1] for name in names])
            loss = sweep.traces[place][at].loss
            assert loss.value == pytest.approx(finals.mean())
            error = math.sqrt(sum(finals.var(axis=1, ddof=1) / finals.shape[1])) / 3
            radius = student.ppf(0.975, finals.shape[1] - 1) * error
            assert loss.high - loss.value == pytest.approx(radius)


# LaTeX.


def cells_of(row: str) -> list[str]:
    """The cells of a row of a tabular, unescaped."""
    text = {r"\textbackslash{}": "\\", r"\textasciitilde{}": "~", r"\textasciicircum{}": "^", r"\textless{}": "<"}
    text |= {r"\textgreater{}": ">", r"$\pm$": "±", "$-$": "−"}
    cells = re.split(r"(?<!\\) & ", row.removesuffix(r" \\"))
    plain = []
    for cell in cells:
        marked = cell
        for code, letter in text.items():
            marked = marked.replace(code, f"\0{ord(letter)}\0")
        assert not re.search(r"(?<!\\)[$&#_%{}]|[~^<>]", marked), cell
        unescaped = re.sub(r"\\([$&#_%{}])", r"\1", marked)
        plain.append(re.sub(r"\0(\d+)\0", lambda code: chr(int(code[1])), unescaped))
    return plain


@pytest.mark.parametrize("name", ["summary.tex", "problems.tex", "together.tex"])
def test_latex_is_a_booktabs_table_with_everything_escaped(name, reported, study):
    comment, begin, top, heading, middle, *rows, bottom, end = (
        (reported / name).read_text(encoding="utf-8").splitlines()
    )
    assert comment == r"% needs \usepackage{booktabs}"
    columns = re.fullmatch(r"\\begin\{tabular\}\{(lr+)\}", begin)[1]
    assert (top, middle, bottom, end) == (r"\toprule", r"\midrule", r"\bottomrule", r"\end{tabular}")
    assert all(row.endswith(r" \\") for row in (heading, *rows))
    table = [cells_of(row) for row in (heading, *rows)]
    assert {len(cells) for cells in table} == {len(columns)}
    texts = {cell for cells in table for cell in cells}
    assert NASTY in texts
    if name != "together.tex":
        assert ONE_ARM in texts
    if name == "summary.tex":
        assert len(rows) == len(study.names) * len(study.labels)


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no LaTeX here")
def test_latex_compiles(reported, tmp_path):
    import subprocess

    body = "\n\n".join(file.read_text(encoding="utf-8") for file in sorted(reported.glob("*.tex")))
    text = rf"\documentclass{{article}}\usepackage{{booktabs}}\begin{{document}}\tiny {body}\end{{document}}"
    (tmp_path / "all.tex").write_text(text, encoding="utf-8")
    subprocess.run(["pdflatex", "-halt-on-error", "all.tex"], cwd=tmp_path, check=True, capture_output=True, timeout=60)


# The command.


def test_command_writes_into_the_folder_of_the_run_which_stays_one(study, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(report, "MOST_DRAWN", 0)
    folder = tmp_path / "run"
    shutil.copytree(study.path, folder)
    before = {path.name for path in folder.iterdir()}
    assert main(["report", str(folder)]) == 0
    assert f"Written to {folder}: report.html, report.md, summary.csv, " in capsys.readouterr().out
    added = {"report.html", "report.md", "summary.csv", "summary.tex", "problems.tex", "together.csv", "together.tex"}
    added |= {"figures"}
    assert {path.name for path in folder.iterdir()} == before | added
    again = pl.run_experiment(pl.Experiment.from_table({**TABLE, "name": "Grids & <more>"}), folder)
    assert list(again) == study.names


def without_totals(folder: Path) -> None:
    (folder / "totals.parquet").unlink()


def unfinished(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    (folder / "manifest.json").write_text(json.dumps(manifest | {"finished": None}), encoding="utf-8")


def cut(folder: Path) -> None:
    whole = (folder / "totals.parquet").read_bytes()
    (folder / "totals.parquet").write_bytes(whole[: len(whole) // 2])


def foreign_totals(folder: Path) -> None:
    pq.write_table(pd_table(), folder / "totals.parquet")


def pd_table():
    import pyarrow as pa

    return pa.table({"x": [1, 2, 3]})


def other_checkpoints(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    manifest["experiment"]["rounds"] = manifest["experiment"]["rounds"][1:]
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def more_trials(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    manifest["experiment"]["trials"] += 1
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def no_kernels(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    del manifest["kernels"]
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def only_a_format(folder: Path) -> None:
    (folder / "manifest.json").write_text(json.dumps({"format": FORMAT}), encoding="utf-8")


def no_json(folder: Path) -> None:
    (folder / "manifest.json").write_text("{", encoding="utf-8")


def nothing_there(folder: Path) -> None:
    shutil.rmtree(folder)


DAMAGE = {
    nothing_there: "must be the folder of a run, but manifest.json: No such file",
    unfinished: "must hold a finished run",
    without_totals: "must hold a finished run",
    cut: "totals.parquet must be a Parquet file of a run",
    foreign_totals: "totals.parquet must fit its manifest",
    other_checkpoints: "totals.parquet must",
    more_trials: "must hold 10 trials of every policy on every problem; those on 'three-arms, budget=0.5' are missing",
    no_kernels: "manifest.json must be the manifest of a run",
    only_a_format: "manifest.json must be the manifest of a run",
    no_json: "manifest.json must be the manifest of a run",
}


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("command", ["report", "diff"])
def test_what_is_no_finished_run_is_one_line(command, damage, study, tmp_path, capsys):
    folder = tmp_path / "run"
    shutil.copytree(study.path, folder)
    damage(folder)
    arguments = [folder, "--out", tmp_path / "out"] if command == "report" else [study.path, folder]
    assert main([command, *map(str, arguments)]) == 2
    shown = capsys.readouterr()
    (line,) = shown.err.splitlines()
    assert line.startswith("paceline: error: ")
    assert DAMAGE[damage] in line
    assert str(folder) in line
    assert shown.out == ""
    assert not (tmp_path / "out").exists()


def test_a_missing_problem_is_named(study, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(report, "MOST_DRAWN", 0)
    folder = edited(study, tmp_path / "run", lambda group: group if group["problem"][0].as_py() != 1 else None)
    assert main(["report", str(folder)]) == 2
    assert "those on 'three-arms, budget=0.4' are missing or damaged" in capsys.readouterr().err


def test_out_that_is_a_file(study, tmp_path, capsys):
    (tmp_path / "taken").write_text("a file", encoding="utf-8")
    assert main(["report", str(study.path), "--out", str(tmp_path / "taken")]) == 2  # before anything is drawn
    assert f"out must be a folder, got the file {tmp_path / 'taken'}" in capsys.readouterr().err

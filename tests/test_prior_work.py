"""`paceline prior-work`: which problems and policies, what the survey says of a study, and how it is asked for."""

import csv
import json
import re
import tomllib
from pathlib import Path, PurePath

import command
import naive
import numpy as np
import pytest

import paceline as pl
from paceline.cli import main
from paceline.experiments.folder import REPORTED
from paceline.experiments.plan import seconds_per_round
from paceline.experiments.prior_work import FILE, PARTS, chosen, prior_work_experiments
from paceline.experiments.prior_work_chapter import PriorWorkChapter
from paceline.experiments.report import Report
from paceline.paper.systems import SYSTEMS
from paceline.policies import POLICIES, make_policy
from paceline.problems.toml import read_toml
from paceline.reports.page import Tabled
from paceline.simulation.simulate import Trial

ROUNDS = 2000


def parts(rounds=500_000, trials=None, seed=0):
    return {each.name: each for each in prior_work_experiments(rounds, trials, seed)}


def problem_of(experiment, name):
    (found,) = [field for field in experiment.problems if field.name == name]
    return found


# What is played.


def test_every_system_plays_all_that_it_can():
    """Left out are those for one resource where there are two, and those that know no refills where there are some."""
    every = set(SYSTEMS)
    alone = {label for label in every if POLICIES[label.partition(" (")[0]].resources == 1}
    unrefilled = {label for label in every if not POLICIES[label.partition(" (")[0]].refillable}
    assert alone == {"suak", "ucb-simplex", "kube"}
    left_out = {name: every - set(each.policies) for name, each in parts().items()}
    assert left_out == {
        "papers": set(),
        "papers-quarter": set(),
        "papers-sixteenth": set(),
        "one-resource": set(),
        "refilled": unrefilled,
        "two-resources": alone,
        "two-refilled": alone | unrefilled,
        "free": set(),
        "free-two-refilled": alone | unrefilled,
    }


def test_no_system_of_the_field_is_forgotten():
    """All policies but the references and our other pacers; the simple baselines are beside them."""
    others = {"thompson", "optimistic", "uniform", "oracle"}
    assert {label.partition(" (")[0] for label in SYSTEMS} == set(POLICIES) - others


def test_only_two_parts_are_without_the_guard():
    assert [name for name, each in parts().items() if not each.guard] == ["free", "free-two-refilled"]


def test_horizons_of_growth():
    assert [int(each.rounds[-1]) for each in parts(160_000).values()][:3] == [160_000, 40_000, 10_000]


def test_a_problem_has_the_same_draws_in_every_part():
    streams = {}
    for each in parts().values():
        for field in each.problems:
            streams.setdefault(field.name, set()).add(field.stream)
    assert all(len(found) == 1 for found in streams.values())
    assert len(set.union(*streams.values())) == len(streams)


def test_every_system_of_others_is_in_the_bibliography():
    text = (Path(__file__).parent.parent / "docs" / "references.bib").read_text(encoding="utf-8")
    entries = re.findall(r"^@\w+\{(\w+),\s*author\s*= \{([^,]+),.*?year\s*= \{(\d+)\}", text, re.MULTILINE | re.DOTALL)
    assert len(entries) == text.count("\n@") == len({key for key, *_ in entries})
    known = {(family, year) for _, family, year in entries}
    for label, system in SYSTEMS.items():
        if year := re.search(r"(\d{4})[abc]?$", system.source):
            family = re.split(r",| and ", system.source)[0]
            assert (family.removesuffix(f" {year[0]}"), year[1]) in known, label


# Facts of Kumar and Kleinberg's data: what their linear programs yield.


@pytest.mark.parametrize(
    ("part", "name", "rounds", "value", "mix"),
    [
        ("one-resource", "learning", 150_000, 0.480036, [0.60004, 0, 0.39996]),
        ("refilled", "case 3", 250_000, 0.4542, [0.506, 0.494, 0]),
    ],
)
def test_data_of_others_have_their_optimum(part, name, rounds, value, mix):
    problem = problem_of(parts(rounds)[part], name).problem
    rate = problem.rates[0] + problem.stocks[0] / rounds
    found = naive.by_linprog(problem.reward_means, problem.cost_means, rate)
    assert found.value == pytest.approx(value, abs=2e-6)
    assert found.mix == pytest.approx(mix, abs=1e-5)


def test_the_two_that_are_refilled_have_their_optimum():
    best = problem_of(parts()["two-refilled"], "two refilled").problem.optimum
    assert best.value == pytest.approx(0.4)
    assert best.mix == pytest.approx([3 / 7, 4 / 7, 0])
    assert best.prices == pytest.approx([2, 0], abs=1e-9)


def test_nothing_leaves_the_window():
    windows = {each.policies["sw-ucb"].policy.window for each in parts(2_000_000).values()}
    assert windows == {500_000, 2_000_000}  # a quarter and less have the one of the file


def test_the_total_budget_is_for_its_rounds():
    problem = problem_of(parts(10_000)["one-resource"], "total budget").problem
    assert (problem.stop, problem.rates, problem.stocks) == (True, (0.0,), (5000.0,))
    assert problem.optimum_over(10_000).value == pytest.approx(pl.paper.three_arms().optimum.value)


# What the survey says.


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    """A survey of two policies, at two horizons, and without the guard."""
    folder = tmp_path_factory.mktemp("prior-work")
    table = {"report": "prior-work", "trials": 3, "policies": ["uniform", "suak"], "problem": [{"paper": "three-arms"}]}
    plans = {
        "long": {"rounds": ROUNDS},
        "short": {"rounds": ROUNDS // 4},
        "free": {"rounds": ROUNDS, "guard": False},
    }
    return [
        pl.run_experiment(pl.Experiment.from_table(table | {"name": name} | plan), folder / name)
        for name, plan in plans.items()
    ]


def test_growth_is_the_slope_between_the_horizons(studies):
    chapter = PriorWorkChapter(studies)
    for label in ("uniform", "suak"):
        few, many = (
            pl.simulate(pl.paper.three_arms(), label, rounds=rounds, trials=3)[label].steady_regret[:, -1].mean()
            for rounds in (ROUNDS // 4, ROUNDS)
        )
        assert chapter.growth("three-arms", label) == pytest.approx(np.log(many / few) / np.log(4))
    assert 0.9 < chapter.growth("three-arms", "uniform") < 1.1  # nothing is learned


def test_no_growth_of_one_horizon(studies):
    assert np.isnan(PriorWorkChapter(studies[:1]).growth("three-arms", "suak"))


def test_violations_are_told_by_policy(studies):
    chapter = PriorWorkChapter(studies)
    table = chapter.without_guard()
    free = pl.simulate(pl.paper.three_arms(), ["uniform", "suak"], rounds=ROUNDS, trials=3, guard=False)
    assert {row[0]: row[2] for row in table.rows} == {
        label: f"{run.violation.max():.3g}" for label, run in free.items()
    }
    assert "Without the guard" in table.notes[0]


def test_files_and_page(studies, tmp_path):
    report = Report(studies)
    names = {path.relative_to(tmp_path).as_posix() for path in report.write(tmp_path)}
    assert names >= {f"prior-work.{kind}" for kind in ("png", "svg", "pdf", "csv", "tex")} | {"speed.json"}
    dropped = [f"{name}.{ending}" for name, endings in REPORTED.items() for ending in endings]
    own = [PurePath(name) for name in names if name.startswith("prior-work")]
    assert all(any(name.match(pattern) for pattern in dropped) for name in own)  # when the run goes on
    tables = [
        (tmp_path / name).read_text(encoding="utf-8")
        for name in names
        if name.startswith("prior-work") and name.endswith(".tex")
    ]
    assert len(tables) == 3  # nothing was played in other settings
    assert all(table.isascii() and "suak" in table for table in tables)
    assert any(r"K log T / ($\delta$$\Delta$$^2$)" in table for table in tables)
    page = (tmp_path / "report.md").read_text()
    assert "Behind the guard the budget line held after every round of every trial" in page
    assert "Without it nothing is promised: 1 of 2 runs crossed a line, the worst by" in page
    rows = list(csv.DictReader((tmp_path / "prior-work.csv").read_text().splitlines()))
    assert {(row["rounds"], row["guard"]) for row in rows} == {("2000", "True"), ("500", "True"), ("2000", "False")}
    assert "regret, 3 arms" in str(report)


def test_times_are_kept(studies):
    kept = studies[0].path.parent / "speed.json"
    kept.write_text(json.dumps({"uniform": 1.0, "suak": 2.0}))
    try:
        assert PriorWorkChapter(studies).speed == {"uniform": 1.0, "suak": 2.0}
    finally:
        kept.unlink()
    assert all(time > 0 for time in PriorWorkChapter(studies).speed.values())


def test_times_of_policies():
    trial = Trial(pl.paper.three_arms(), make_policy("uniform"), np.array([1000]), 0, 0)
    found = seconds_per_round({"a": trial, "b": trial}, turns=2)
    assert list(found) == ["a", "b"]
    assert all(seconds > 0.0 for seconds in found.values())


def test_every_table_has_every_system_once(studies):
    (section,) = PriorWorkChapter(studies).opening()
    for block in section.blocks:
        if isinstance(block, Tabled):
            assert sorted(row[0] for row in block.table.rows) == ["suak", "uniform"]


def test_two_seeds_in_one_folder_are_not_taken_for_one(studies, tmp_path):
    again = tmp_path / "again"
    table = {**studies[0].manifest["file"], "seed": 1}
    report = Report([*studies, pl.run_experiment(pl.Experiment.from_table(table), again)])
    (why,) = report.left_out
    assert "long (seed 0) and again (seed 1) both have 'three-arms'" in why
    assert "regret, 3 arms" not in str(report)
    assert str(report).count("3 trials of") == 4  # every study has a table of its own


def test_a_survey_without_the_papers_problems_says_so(tmp_path, capsys):
    table = {"report": "prior-work", "rounds": 60, "trials": 2, "policies": ["uniform"]}
    pl.run_experiment(pl.Experiment.from_table(table | {"problem": [{"family": "beta", "size": 2}]}), tmp_path / "own")
    assert main(["report", str(tmp_path / "own")]) == 0
    told = capsys.readouterr().out
    assert "no run on three-arms or eight-arms behind the guard ranks uniform" in told
    assert "prior-work.png" not in told


def test_a_name_that_is_no_label_stands_for_all_that_have_it():
    entries = read_toml(FILE)["policy"]
    picked = [entry.get("label") for entry in chosen(entries, ["control-budget", "primal-dual-bwk"])]
    assert picked == ["control-budget (told all)", "control-budget (learning)", None]


# The command.


def test_show_prints_a_file_for_each_part_that_can_be_run(capsys):
    assert main(["prior-work", "--show", "--rounds", "1600", "--trials", "1"]) == 0
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert shown.err.startswith(f"{len(PARTS)} experiment files: each begins with a line # NAME.toml")
    begins = [at for at, line in enumerate(lines) if line.startswith("name =") and lines[at + 1].startswith("report =")]
    heads = ["\n".join(lines[at:until]) for at, until in zip(begins, [*begins[1:], len(lines)], strict=True)]
    assert len(heads) == len(PARTS)
    for text in heads:
        assert pl.Experiment.from_table(tomllib.loads(text)).trials == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--rounds", "100"], "rounds of prior-work must be a whole number from 1600 to 2147483647, got 100"),
        (["--trials", "0"], "trials must be a whole number from 1"),
        (["--seed", "-1"], "seed must be"),
        (["--policies", "sauk"], "each policy of prior-work must be one of suak, one-phase,"),
    ],
)
def test_wrong_use(given, message):
    done = command.call("prior-work", *given)
    assert done.returncode == 2
    assert done.stderr.startswith(f"paceline: error: {message}")
    assert done.stderr.count("\n") == 1


def test_some_policies_play_what_they_can():
    few = {each.name: list(each.policies) for each in prior_work_experiments(1600, 1, 0, ["kube", "suak"])}
    assert few["papers"] == ["kube", "suak"]
    assert few["refilled"] == ["suak"]
    assert "two-refilled" not in few


@pytest.mark.parametrize("given", [["suak,queue"], ["suak", "queue"]])
def test_policies_by_commas_as_in_compare(given, capsys):
    assert main(["prior-work", "--show", "--rounds", "1600", "--trials", "1", "--policies", *given]) == 0
    first = tomllib.loads(capsys.readouterr().out.partition('name = "papers-quarter"')[0])
    assert [entry["name"] for entry in first["policy"]] == ["suak", "queue"]


@pytest.mark.parametrize("given", ["suak", []])
def test_policies_must_be_a_list(given):
    with pytest.raises(pl.InvalidValue, match=r"^policies of prior-work must be a list of labels, got"):
        pl.prior_work(policies=given)


@pytest.mark.slow
def test_from_python():
    studies = pl.prior_work(rounds=1600, trials=1)
    assert list(studies) == [part.name for part in PARTS]
    for study in studies.values():
        for results in study.values():
            for run in results.values():
                assert (run.min_headroom >= 0).all() or not study.guard

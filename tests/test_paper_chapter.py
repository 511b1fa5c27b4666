"""The chapter of the paper's figures in a report."""

import json

import pytest

import paceline as pl
from paceline.cli import main
from paceline.experiments.paper_chapter import PaperChapter
from paceline.experiments.report import Report
from paceline.paper.instances import figure_file


def test_two_runs_of_one_figure_each_show_their_own_numbers(tmp_path):
    studies = [pl.reproduce(1, rounds=100, trials=1, seed=seed, out=tmp_path / f"seed{seed}") for seed in (0, 1)]
    chapter = PaperChapter(studies)
    assert [chapter.numbers(study)["seed"] for study in studies] == [0, 1]
    assert [chapter.heading(study) for study in studies] == ["Figure 1 seed0", "Figure 1 seed1"]
    assert {"figure1-seed0.png", "figure1-seed1.png"} <= set(chapter.files())
    assert {"figure1.png", "report.json"} <= set(PaperChapter(studies[:1]).files())
    assert len(json.loads(chapter.to_json())["claims"]) == 2 * len(
        PaperChapter(studies[:1]).figures[studies[0].path].claims
    )


def test_the_report_names_the_paper_and_says_why_two_rows_are_the_same(tmp_path):
    study = pl.reproduce(1, rounds=2000, trials=2, out=tmp_path / "same")
    ops, later = (study["three arms"][label] for label in ("OPS", "OPS, √(KT) rounds skipped first"))
    assert (ops.regret[:, -1] == later.regret[:, -1]).all()
    report = Report([study])
    address = "https://arxiv.org/abs/2501.18560"
    assert f"Eray Can Elumar, Cem Tekin, Osman Yağan, Bandits with Anytime Knapsacks, 2025, {address}" in (
        report.page.to_markdown()
    )
    assert f'<a href="{address}"' in report.page.to_html()
    assert "rounds skipped first' are the same: what the skipped rounds save is spent at once" in str(report)
    assert "(2 trials of 2,000 rounds, there 10 of 500,000)" in str(report)
    assert "may hold there; in 2 trials up to 236 standard errors are noise." in str(report)  # t, one degree of freedom


def test_rows_that_differ_are_not_said_to_be_the_same(tmp_path):
    study = pl.reproduce(1, rounds=100, trials=1, out=tmp_path / "other")
    assert "are the same: what" not in str(Report([study]))


SMALL = {"report": "figure1", "rounds": 60, "trials": 1, "checkpoints": 3}
OWN_POLICIES = SMALL | {"policies": ["suak", "uniform"], "problem": [{"paper": "three-arms"}]}
OWN_PROBLEM = figure_file(1) | SMALL | {"problem": [{"paper": "three-arms", "budget": 0.4}]}
OTHER_SUAK = {"policy": [{"label": "SUAK", "name": "uniform"}, *figure_file(1)["policy"][1:]]}
SAME_LABELS = figure_file(1) | SMALL | OTHER_SUAK


@pytest.mark.parametrize(
    ("table", "lacking"),
    [
        (OWN_POLICIES, "SUAK, OPS, PDS and 10 more"),
        (OWN_PROBLEM, "its problem 'three arms' as the first"),
        (SAME_LABELS, "SUAK"),
    ],
)
def test_a_file_of_the_users_own_that_names_the_chapter_has_a_report_that_says_what_it_lacks(
    table, lacking, tmp_path, capsys
):
    pl.run_experiment(pl.Experiment.from_table(table), tmp_path / "mine")
    assert main(["report", str(tmp_path / "mine")]) == 0
    (told, _) = capsys.readouterr().out.splitlines()
    assert told.startswith('Left out: "The paper\'s experiments, run again" cannot be told: ')
    assert told.endswith(f"`paceline reproduce --figure 1 --show` prints, but lacks {lacking}")
    page = (tmp_path / "mine" / "report.md").read_text(encoding="utf-8")
    assert told.removeprefix("Left out: ") in page
    assert "The paper's claims" not in page


def test_a_policy_more_than_the_papers_is_no_reason_to_leave_it_out(tmp_path):
    table = figure_file(1) | SMALL | {"policies": ["uniform"]}
    report = Report([pl.run_experiment(pl.Experiment.from_table(table), tmp_path)])
    assert report.left_out == []
    assert "The paper's claims" in str(report)


def test_the_drawing_names_no_colour_that_a_dark_page_inverts():
    study = pl.reproduce(1, rounds=60, trials=1)
    (figure,) = PaperChapter([study]).figures.values()
    assert "thin lines without colour: not in the paper" in figure.image.svg
    assert not [word for word in ("black", "white", "grey") if word in figure.drawing.get_suptitle()]


def test_an_extension_takes_the_files_of_the_chapter_away_too(tmp_path):
    pl.reproduce(1, rounds=60, trials=1, out=tmp_path).report()
    assert (tmp_path / "figure1.png").exists()
    pl.reproduce(1, rounds=60, trials=2, out=tmp_path)
    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {".lock", "manifest.json", "totals.parquet"}

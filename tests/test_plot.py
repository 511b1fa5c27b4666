"""Figures: what they show, that they are written, and that they leave no global state behind."""

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

import paceline as pl
from paceline.experiments.paper_chapter import Figure as PapersFigure
from paceline.paper.claims import EPSILON, GREEDY, INDEX, THOMPSON
from paceline.reports import figures
from paceline.reports.panels import draw_amounts, draw_log_curve
from paceline.statistics import mean_of

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def results() -> pl.Results:
    """Two policies, three trials."""
    return pl.simulate(pl.paper.three_arms(), ["suak", "uniform"], rounds=500, trials=3, checkpoints=20)


def test_plot_writes_a_png_in_a_folder_of_its_own(results, tmp_path):
    path = tmp_path / "new folder" / "curves.png"
    figure = results.plot(path)
    assert isinstance(figure, Figure)
    assert path.read_bytes().startswith(PNG)


def test_the_name_decides_the_format(results, tmp_path):
    results.plot(str(tmp_path / "curves.svg"))
    assert "<svg" in (tmp_path / "curves.svg").read_text(encoding="utf-8")


def test_plot_without_a_path_writes_nothing(results, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    results.plot()
    assert list(tmp_path.iterdir()) == []


def test_a_panel_per_quantity_a_line_per_policy(results):
    figure = results.plot(quantities=("regret", "pseudo_regret", "steady_regret", "skips", "idle", "spent", "slack"))
    assert [axes.get_title("left") for axes in figure.axes] == [
        "Regret",
        "Pseudo-regret",
        "Steady regret",
        "Skipped rounds",
        "Rounds without a pull",
        "Spent",
        "Budget rate minus average cost",
    ]
    for axes, quantity in zip(figure.axes[:6], tuple(figures.QUANTITIES)[:6], strict=True):
        assert axes.get_xlabel() == "Round"
        assert [line.get_label() for line in axes.lines] == ["suak", "uniform"]
        for line, run in zip(axes.lines, results.values(), strict=True):
            np.testing.assert_array_equal(line.get_xdata(), results.rounds)
            np.testing.assert_allclose(line.get_ydata(), getattr(run, quantity).mean(axis=0))
    slack = figure.axes[6].lines[1].get_ydata()
    np.testing.assert_allclose(slack, (0.5 - results["uniform"].spent / results.rounds).mean(axis=0))
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["suak", "uniform"]


def lower_ends(axes: object) -> list[np.ndarray]:
    """Of the bands of a panel: the least of each at every round."""
    found = []
    for band in axes.collections:
        corners = band.get_paths()[0].vertices
        found.append(np.array([corners[corners[:, 0] == at, 1].min() for at in np.unique(corners[:, 0])]))
    return found


def test_no_band_shows_less_than_there_can_be():
    """Few trials that differ much: an interval of Student's t reaches below 0, where no count or headroom can be."""
    runs = pl.simulate(pl.paper.three_arms(), ["thompson", "one-phase"], rounds=2000, trials=3, checkpoints=20)
    left = runs["one-phase"].headroom
    assert min(mean_of(left[:, at]).low for at in range(20)) < 0.0
    skips = runs["thompson"].skips[:, -1]
    assert mean_of(skips.astype(float)).low < 0.0 == mean_of(skips).low
    assert "[0.0, " in runs.table().rows[0][4]
    for axes in runs.plot(quantities=("skips", "idle", "slack", "headroom")).axes:
        assert len(lower_ends(axes)) == 2
        assert all(ends.min() >= 0.0 for ends in lower_ends(axes))


def test_a_band_that_reaches_0_does_not_fill_a_panel_of_logarithms():
    """It has no lower end there: its upper half is shown, where it was all from the mean to the edge of the panel."""
    wild = pl.simulate(pl.paper.three_arms(), ["greedy", "uniform"], rounds=2000, trials=4, checkpoints=20)
    finals = wild["greedy"].steady_regret
    assert mean_of(finals[:, -1]).low < 0.0
    axes = Figure().subplots()
    draw_log_curve(axes, wild, logs=True)
    greedy, uniform = lower_ends(axes)
    assert greedy[-1] == finals[:, -1].mean()
    assert uniform[-1] == pytest.approx(mean_of(wild["uniform"].steady_regret[:, -1]).low)


def test_a_dollar_sign_in_a_label_is_one(results):
    """Two of them were taken for a formula in the figure of all problems."""
    study = pl.compare([pl.paper.three_arms()], {"$5 or $6": "uniform"}, rounds=200, trials=2)
    for figure in (study.plot(), results.plot()):
        assert not any(text.get_parse_math() for text in figure.legends[0].get_texts())


def test_unknown_quantity_is_refused_by_name(results, tmp_path):
    path = tmp_path / "curves.png"
    with pytest.raises(pl.InvalidValue, match=r"quantity must be one of regret, .*, got 'profit'"):
        results.plot(path, quantities=("regret", "profit"))
    assert not path.exists()


def test_one_round_can_be_drawn(tmp_path):
    pl.simulate(pl.paper.three_arms(), "uniform", rounds=1, trials=1).plot(tmp_path / "dot.png")
    assert (tmp_path / "dot.png").read_bytes().startswith(PNG)


def test_no_pyplot_and_no_matplotlib_before_a_figure_is_drawn(tmp_path):
    code = f"""
import sys
import paceline as pl
results = pl.simulate(pl.paper.three_arms(), "uniform", rounds=100, trials=1)
assert "matplotlib" not in sys.modules, "matplotlib came with simulate"
results.plot({str(tmp_path / "curves.png")!r})
assert "matplotlib" in sys.modules
assert "matplotlib.pyplot" not in sys.modules, "pyplot came with plot"
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_panels_say_what_is_counted(results):
    figure = results.plot(quantities=("regret", "skips", "spent", "slack"))
    assert [axes.get_ylabel() for axes in figure.axes] == ["Rewards", "Rounds", "Cost", "Cost per round"]


@pytest.mark.parametrize("ending", ["pdf", "svg", "png"])
def test_the_same_figure_has_the_same_bytes(results, tmp_path, ending):
    paths = [tmp_path / f"{number}.{ending}" for number in range(2)]
    for path in paths:
        results.plot(path)
    assert paths[0].read_bytes() == paths[1].read_bytes()


@pytest.fixture(scope="module")
def figure_1() -> PapersFigure:
    """The first figure of the paper, small."""
    return PapersFigure(1, pl.reproduce(1, rounds=400, trials=2)["three arms"])


@pytest.mark.slow
def test_figure_of_the_paper_has_three_formats(figure_1):
    assert figure_1.image.png.startswith(PNG)
    assert figure_1.image.pdf.startswith(b"%PDF")
    assert figure_1.image.svg.startswith("<svg")


@pytest.mark.slow
def test_figure_of_the_paper(figure_1):
    figure = figure_1.drawing
    assert [axes.get_title("left") for axes in figure.axes] == [
        "Steady regret",
        "Regret, SUAK and OPS",
        "Skipped rounds",
        "$c$ minus average cost",
    ]
    assert all(axes.get_xlabel() == "Round" for axes in figure.axes)
    assert [axes.get_ylabel() for axes in figure.axes] == ["Rewards", "Rewards", "Rounds", "Cost per round"]
    assert figure.get_suptitle().startswith("3 arms, 2 trials")
    lines = [{line.get_label() for line in axes.lines} for axes in figure.axes]
    four, others = {"SUAK", "OPS", "PDS", "USS"}, {INDEX, THOMPSON, EPSILON, GREEDY}
    assert lines == [
        {*four, "USS, λ = 5", *others},
        {"SUAK", "OPS", "OPS, a = 2"},
        {*four, *others},
        {*four, "SUAK, first", INDEX},
    ]
    (legend,) = figure.legends
    assert {text.get_text() for text in legend.get_texts()} == set.union(*lines)
    # A policy looks the same from panel to panel, and no two look alike.
    looks: dict[str, set[object]] = {}
    for axes in figure.axes:
        for line in axes.lines:
            looks.setdefault(line.get_label(), set()).add(
                (line.get_color(), line.get_linestyle(), line.get_linewidth())
            )
    assert {len(found) for found in looks.values()} == {1}
    colours = {label: next(iter(found))[0] for label, found in looks.items()}
    assert len({colours[label] for label in four}) == len(four)
    assert not {colours[label] for label in four} & {colours[label] for label in others}


@pytest.mark.parametrize("others", [(2.0, 3.0), (90.0, 400.0), (-2.0, -3.0)])
def test_a_spread_at_the_end_of_its_panel_is_not_clipped(others):
    """As of the reference itself beside policies that are all worse: a box of no width, at 0."""
    axes = Figure().subplots()
    draw_amounts(axes, [np.zeros(6), np.array([*others] * 3)], "Difference of a trial", "In pairs", signed=True)
    ends = [(end, 0.0) for end in (min(0.0, *others), max(0.0, *others))]
    left, right = axes.transAxes.inverted().transform(axes.transData.transform(ends))[:, 0]
    assert left == pytest.approx(1.0 - right)
    assert left > 0.02


@pytest.mark.slow
def test_every_line_of_the_paper_figure_is_in_sight_at_the_end(figure_1):
    figure = figure_1.drawing
    for axes in figure.axes:
        low, high = axes.get_ylim()
        for line in axes.lines:
            assert low <= line.get_ydata()[-1] <= high, (axes.get_title("left"), line.get_label())

"""Figures: what they show, that they are written, and that they leave no global state behind."""

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

import paceline as pl
from paceline.paper import reproduce
from paceline.paper.claims import OURS
from paceline.reports import figures

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


def test_figure_of_the_paper(tmp_path, monkeypatch):
    reproduction = reproduce.reproduce(1, rounds=400, trials=2)
    drawn: list[Figure] = []
    save = figures.save
    monkeypatch.setattr(figures, "save", lambda figure, path: (drawn.append(figure), save(figure, path)))
    assert reproduce.draw(reproduction, tmp_path) == tmp_path / "figure1.png"
    assert (tmp_path / "figure1.png").read_bytes().startswith(PNG)
    (figure,) = drawn
    assert [axes.get_title("left") for axes in figure.axes] == [
        "Regret",
        "Regret, SUAK and OPS",
        "Skipped rounds",
        "$c$ minus average cost",
    ]
    assert all(axes.get_xlabel() == "Round" for axes in figure.axes)
    assert figure.get_suptitle().startswith("3 arms, 2 trials")
    lines = [{line.get_label() for line in axes.lines} for axes in figure.axes]
    assert lines == [
        {"SUAK", "OPS", "PDS", "USS", "USS, λ = 5", OURS},
        {"SUAK", "OPS", "OPS, a = 2", OURS},
        {"SUAK", "OPS", "PDS", "USS", OURS},
        {"SUAK", "OPS", "PDS", "USS", OURS},
    ]
    (legend,) = figure.legends
    assert {text.get_text() for text in legend.get_texts()} == set.union(*lines)
    # A policy keeps its colour from panel to panel, and no two have the same.
    colours = {label: set() for label in reproduce.PAPER}
    for axes in figure.axes:
        for line in axes.lines:
            if line.get_label() in colours:
                colours[line.get_label()].add(line.get_color())
    assert {len(found) for found in colours.values()} == {1}
    assert len(set.union(*colours.values())) == len(colours)

"""Figures: the only file that knows matplotlib. No pyplot, so no global state and no display."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from paceline import checks
from paceline.errors import InvalidValue

if TYPE_CHECKING:
    from paceline.lab.results import Results, Run

STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "lines.linewidth": 1.6,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
    "savefig.dpi": 200,
}

# Okabe and Ito's palette: distinct to readers with any colour vision.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

QUANTITIES: dict[str, tuple[str, Callable[["Run"], npt.NDArray[np.float64]]]] = {
    "regret": ("Regret", lambda run: run.regret),
    "pseudo_regret": ("Pseudo-regret", lambda run: run.pseudo_regret),
    "steady_regret": ("Steady regret", lambda run: run.steady_regret),
    "skips": ("Skipped rounds", lambda run: run.skips.astype(float)),
    "idle": ("Rounds without a pull", lambda run: run.idle.astype(float)),
    "spent": ("Spent", lambda run: run.spent),
    "slack": ("Budget rate minus average cost", lambda run: run.problem.budget - run.spent / run.rounds),
}


def curves(results: "Results", quantities: tuple[str, ...], path: str | os.PathLike[str] | None = None) -> Figure:
    """One panel per quantity, one line per run, a band of one standard deviation over trials."""
    if not quantities:
        raise InvalidValue("quantities must name at least one curve, got none")
    for quantity in quantities:
        checks.one_of("quantity", quantity, tuple(QUANTITIES))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(3.6 * len(quantities), 3.1))
        panels = figure.subplots(1, len(quantities), squeeze=False)[0]
        for axes, quantity in zip(panels, quantities, strict=True):
            panel(axes, results, quantity)
        legend_below(figure, panels[0])
        if path is not None:
            save(figure, path)
    return figure


def panel(axes: Axes, runs: "Mapping[str, Run]", quantity: str, title: str | None = None) -> None:
    """Lines of one quantity against the round. Labels keep their colour by their place in ``runs``."""
    name, values_of = QUANTITIES[quantity]
    for number, run in enumerate(runs.values()):
        line(axes, run, values_of(run), COLOURS[number % len(COLOURS)])
    axes.set_title(title or name)
    finish(axes)


def line(axes: Axes, run: "Run", values: npt.NDArray[np.float64], colour: str, dashed: bool = False) -> None:
    """Mean over trials with a band of one standard deviation."""
    mean, deviation = values.mean(axis=0), values.std(axis=0)
    axes.plot(run.rounds, mean, color=colour, label=run.label, linestyle=(0, (4, 2)) if dashed else "-")
    axes.fill_between(run.rounds, mean - deviation, mean + deviation, color=colour, alpha=0.18, linewidth=0)


def finish(axes: Axes) -> None:
    """Common axes: rounds below, from zero, large numbers in words."""
    axes.set_xlabel("Round")
    axes.set_xlim(left=0)
    axes.margins(x=0)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))


def short(value: float) -> str:
    """A number as an axis wants it.

    >>> short(2_500_000), short(30_000), short(0.004), short(0.0)
    ('2.5M', '30k', '0.004', '0')
    """
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.10g}{letter}"
    return f"{value:.4g}"


def legend_below(figure: Figure, axes: Axes) -> None:
    """One legend for all panels, below them."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write the figure in the format that the name asks for, making its folder if need be."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def paper_figure(
    runs: "Mapping[str, Run]",
    variants: "Mapping[str, Run]",
    zoom: tuple[str, ...],
    title: str,
    path: str | os.PathLike[str],
) -> None:
    """The paper's panels: regret, regret of the runs in ``zoom``, skips, c minus average cost.

    ``variants`` maps a label of ``runs`` to a run of the same policy with another constant; it is dashed.
    """
    colours = dict(zip(runs, COLOURS, strict=False))
    layout = (
        ("Regret", "regret", tuple(runs), False),
        ("Regret, " + " and ".join(zoom), "regret", zoom, True),
        ("Skipped rounds", "skips", tuple(runs), False),
        ("$c$ minus average cost", "slack", tuple(runs), False),
    )
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(14.5, 3.7))
        panels = figure.subplots(1, 4)
        for axes, (name, quantity, labels, zoomed) in zip(panels, layout, strict=True):
            values_of = QUANTITIES[quantity][1]
            for label in labels:
                if label in variants and quantity == "regret" and (zoomed or label not in zoom):
                    line(axes, variants[label], values_of(variants[label]), colours[label], dashed=True)
                line(axes, runs[label], values_of(runs[label]), colours[label])
            axes.set_title(name)
            finish(axes)
        settle_slack(panels[3], [runs[label] for label in runs])
        named: dict[str, Any] = {}
        for axes in panels:
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
                named.setdefault(label, handle)
        ordered = [label for label in (*runs, *(run.label for run in variants.values())) if label in named]
        figure.legend([named[label] for label in ordered], ordered, loc="outside lower center", ncols=len(ordered))
        figure.suptitle(title, x=0.005, ha="left", fontsize=10)
        save(figure, path)


def settle_slack(axes: Axes, runs: "list[Run]") -> None:
    """Scale the panel to what comes after the first eighth of the rounds; early averages would squeeze it flat."""
    settled = [(run.problem.budget - run.spent / run.rounds).mean(axis=0)[len(run.rounds) // 8 :] for run in runs]
    top = max(float(curve.max()) for curve in settled)
    axes.set_ylim(-0.08 * top, 1.6 * top)

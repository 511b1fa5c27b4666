"""The figures of a report: one panel each, as an SVG, so that a page can put them side by side or below each other.

Labels of policies stand in the legend of the page, or above their rows; colours are those of `figures.look`.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from paceline.reports import figures
from paceline.statistics import FLOOR

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from paceline.experiments.sweeps import Point, Sweep
    from paceline.simulation.results import Results

WIDTH, HEIGHT = 4.2, 3.0
ROW = 0.46  # the height of a policy's row
FEWEST_ROWS = 4  # there is room for
BAR = 0.48  # of it, the bar
LONGEST = 46  # letters of a label that fit above a row
FAR_APART = 20.0  # from this ratio on the lower of two regrets cannot be seen beside the higher: logarithms
WIDE = 50.0  # the same for values of a parameter

Floats = npt.NDArray[np.float64]


def panel(draw: Callable[..., None], *drawn: Any, height: float = HEIGHT) -> figures.Image:
    """What ``draw`` draws of things, with the same bytes each time. Texts stay texts.

    >>> panel(lambda axes: axes.set_title("50 $ & more")).svg.count("50 $ &amp; more")
    1
    """
    with figures.styled(WIDTH, height) as figure:
        draw(figure.subplots(), *drawn)
        return figures.in_formats(figure)


def in_rows(labels: Sequence[str], draw: Callable[..., None], *drawn: Any, heading: str = "") -> figures.Image:
    """The same, a row per label, which stands above its row, where a long one has room; ``heading`` at the right."""

    def draw_labelled(axes: "Axes") -> None:
        draw(axes, *drawn)
        axes.set_ylim(max(len(labels), FEWEST_ROWS) - 0.6, -0.9)
        axes.set_yticks([])
        axes.grid(visible=False, axis="y")
        axes.spines["left"].set_visible(False)
        across = axes.get_yaxis_transform()
        for place, label in enumerate(labels):
            shown = axes.text(0.0, place - 0.31, fitting(label), transform=across, va="bottom", fontsize=8)
            shown.set_in_layout(False)
        axes.text(1.0, -0.62, heading, transform=across, va="center", ha="right", fontsize=8, color="#555555")

    return panel(draw_labelled, height=max(HEIGHT, 1.2 + ROW * len(labels)))


def fitting(label: str) -> str:
    r"""A label that fits above a row and can be written in an SVG.

    >>> fitting("x" * 60)[-3:], fitting("two\nlines")
    ('xx…', 'two lines')
    """
    plain = "".join(letter if letter.isprintable() else " " for letter in label)
    return plain if len(plain) <= LONGEST else f"{plain[: LONGEST - 1]}…"


def far_apart(values: Floats) -> bool:
    """Whether the lowest could not be seen beside the highest.

    >>> far_apart(np.array([1.0, 2.0])), far_apart(np.array([0.0, 2.0])), far_apart(np.array([0.0, 0.0]))
    (False, True, False)
    """
    return bool(np.maximum(values, FLOOR).max() >= FAR_APART * np.maximum(values, FLOOR).min())


def draw_curve(axes: "Axes", results: "Results", quantity: str, resource: str = figures.WHOLE) -> None:
    """Means of a quantity against the round, with bands for the 95 % interval of the mean."""
    figures.panel(axes, results, quantity, resource)
    if quantity in {"slack", "headroom"}:
        axes.axhline(0.0, color="#555555", linewidth=1, linestyle=":")
    if quantity == "slack":
        figures.settle(axes, [figures.values_of(run, quantity, resource) for run in results.values()])
    elif axes.get_ylim()[0] > 0.0:
        axes.set_ylim(bottom=0.0)


def draw_log_curve(axes: "Axes", results: "Results", logs: bool) -> None:
    """Steady regret against the logarithm of the round; with ``logs`` up, too, as for policies that are far apart."""
    figures.panel(axes, results, "steady_regret", logs=logs)
    axes.set_title("Steady regret, logarithmic time")
    axes.set_xscale("log")
    axes.set_xlim(results.rounds[0], results.rounds[-1] if len(results.rounds) > 1 else results.rounds[0] + 1)
    if logs:
        axes.set_yscale("log", nonpositive="clip")
        lowest = min(float(run.steady_regret.mean(axis=0).min()) for run in results.values())
        axes.set_ylim(bottom=max(lowest, FLOOR) / 1.5)
        axes.set_title("Steady regret, both logarithmic")
    elif axes.get_ylim()[0] > 0.0:
        axes.set_ylim(bottom=0.0)
    figures.plain_numbers(axes)


def draw_finals(axes: "Axes", ends: Sequence[Floats]) -> None:
    """Steady regret at the end of every trial: a row per policy."""
    logs = far_apart(np.concatenate(ends))
    for place, values in enumerate(ends):
        figures.draw_row(axes, np.log10(np.maximum(values, FLOOR)) if logs else values, place, BAR)
    axes.set(xlabel="Steady regret of a trial", title="Final regret, trial by trial")
    if logs:
        figures.powers_of_ten(axes)
    else:
        figures.plain_numbers(axes)


def draw_amounts(axes: "Axes", amounts: Sequence[Floats], unit: str, title: str, signed: bool = False) -> None:
    """An amount of every trial: a row per policy, from 0 on, or to both sides of it."""
    if far_apart(np.abs(np.concatenate(amounts))):
        axes.set_xscale("symlog", linthresh=1.0)  # first: margins are taken on the scale that is set
    for place, values in enumerate(amounts):
        figures.draw_row(axes, values, place, BAR)
    if signed:
        axes.axvline(0.0, color="#555555", linewidth=1, linestyle=":")
    axes.set(xlabel=unit, title=title)
    if not signed:
        axes.set_xlim(left=0.0)
    figures.plain_numbers(axes)


def draw_sweep(axes: "Axes", sweep: "Sweep") -> None:
    """Regret against a parameter: lines with error bars over numbers, or over words at even distances.

    Points are in the colours of their policies.
    """
    shown, numeric = sweep.axis.shown, sweep.axis.numeric
    places = np.asarray(shown if numeric else range(len(shown)), np.float64)
    for number, trace in enumerate(sweep.traces):
        nudge = 0.0 if numeric else 0.08 * (number - (len(sweep.traces) - 1) / 2)  # words have room beside them
        draw_trace(axes, places + nudge, trace)
    if numeric:
        if places.min() > 0.0 and places.max() >= WIDE * places.min():
            axes.set_xscale("log")
        axes.margins(x=0.05)
    else:
        axes.set_xlim(-0.5, len(places) - 0.5)
    drawn = np.array([(loss.value, loss.high, loss.low) for trace in sweep.traces for _, loss in trace])
    if far_apart(drawn if drawn.min() > 0.0 else drawn[:, :2]):  # a lower end below 0 has no logarithm
        axes.set_yscale("log", nonpositive="clip")
    elif drawn[:, 0].min() >= 0.0:
        axes.set_ylim(bottom=0.0)
    figures.plain_numbers(axes)
    if not numeric:
        axes.set_xticks(places, [fitting(str(value)) for value in shown])
    axes.set(xlabel=fitting(sweep.axis.parameter), title=sweep.quantity)


def draw_trace(axes: "Axes", places: Floats, trace: "Sequence[Point]") -> None:
    """A line in the colour of its policy, or in grey where each point is another policy."""
    colour, dashes = figures.look(trace[0].place) if len({point.place for point in trace}) == 1 else ("#9a9a9a", "-")
    axes.plot(places, [loss.value for _, loss in trace], dashes, color=colour, zorder=2)
    for at, (place, loss) in zip(places, trace, strict=True):
        below_above = [[max(loss.value - loss.low, 0.0)], [max(loss.high - loss.value, 0.0)]]
        own, _ = figures.look(place)
        axes.errorbar(at, loss.value, below_above, fmt="o", markersize=4, capsize=2.5, linewidth=1, color=own, zorder=3)

"""A field of policies at a glance: a row each, and panels for what it loses, how that grows, and what it costs."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from paceline.reports import figures
from paceline.statistics import FLOOR, mean_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

WIDTH, ROW = 13.0, 0.27  # inches
MARKERS = (("o", figures.COLOURS[0]), ("D", figures.COLOURS[1]))
PROVED = "#9a9a9a"
LEAST_GROWTH, MOST_GROWTH = -0.1, 1.1


class Measured(NamedTuple):
    """One policy. Losses, growth and skips are by problem, the same for all; arrays have an entry per trial."""

    label: str
    is_ours: bool
    regret: Mapping[str, Floats]
    growth: Mapping[str, float]  # the power of T
    proved: float | None
    skips: Mapping[str, Ints]
    violation: Floats | None  # without the guard
    nanoseconds: float

    @property
    def place(self) -> float:
        """Where it stands: the logarithm of the geometric mean of its losses over the problems."""
        return float(np.mean([np.log(max(values.mean(), FLOOR)) for values in self.regret.values()]))


def field_figure(rows: Sequence[Measured]) -> "Figure":
    """All panels, with one legend; the rows in their order, the first on top."""
    drawn: list[tuple[float, Callable[[Axes, Sequence[Measured]], None]]] = [
        (1.5, draw_regret),
        (1.0, draw_growth),
        (1.0, draw_skips),
        (1.0, draw_violation),
        (0.8, draw_time),
    ]
    with figures.styled(WIDTH, 1.5 + ROW * len(rows)) as figure:
        panels = figure.subplots(1, len(drawn), sharey=True, width_ratios=[width for width, _ in drawn])
        for axes, (_, draw) in zip(panels, drawn, strict=True):
            draw(axes, rows)
            axes.tick_params(axis="y", length=0)
            axes.spines["left"].set_visible(False)
        panels[0].set_yticks(range(len(rows)), [row.label for row in rows])
        for label, row in zip(panels[0].get_yticklabels(), rows, strict=True):
            label.set_fontweight("bold" if row.is_ours else "normal")
        panels[0].set_ylim(len(rows) - 0.4, -0.6)
        figures.legend_below(figure, panels[1])
    return figure


def points(axes: "Axes", number: int, values: Sequence[float], label: str) -> None:
    """A mark per row where there is something to mark; the marks of two problems are a little apart."""
    marker, colour = MARKERS[number]
    places = np.arange(len(values)) + 0.2 * (number - 0.5)
    axes.plot(values, places, marker, color=colour, markersize=5, linestyle="none", label=label)


def draw_regret(axes: "Axes", rows: Sequence[Measured]) -> None:
    """Means with 95 % intervals."""
    for number, problem in enumerate(rows[0].regret):
        means = [mean_of(row.regret[problem]) for row in rows]
        points(axes, number, [max(mean.value, FLOOR) for mean in means], problem)
        for place, mean in enumerate(means):
            if mean.known:
                at = place + 0.2 * (number - 0.5)
                axes.plot([max(mean.low, FLOOR), mean.high], [at, at], color=MARKERS[number][1], linewidth=1)
    axes.set(xscale="log", title="Steady regret", xlabel="Rewards")
    figures.plain_numbers(axes)


def draw_growth(axes: "Axes", rows: Sequence[Measured]) -> None:
    """The power of T that fits, and the one that was proved, as a bar."""
    for number, problem in enumerate(rows[0].regret):
        points(axes, number, [max(row.growth[problem], LEAST_GROWTH) for row in rows], problem)
    proved = [np.nan if row.proved is None else row.proved for row in rows]
    axes.plot(proved, range(len(rows)), "|", color=PROVED, markersize=13, markeredgewidth=3, label="proved", zorder=1)
    most = max([MOST_GROWTH, *(power for row in rows for power in row.growth.values() if np.isfinite(power))])
    axes.set(title="Growth", xlabel="Power of T", xlim=(LEAST_GROWTH - 0.05, most + 0.05))
    axes.set_xticks([0.0, 0.5, 1.0], ["0 (log)", "½", "1"])


def draw_skips(axes: "Axes", rows: Sequence[Measured]) -> None:
    """Rounds that were refused or given up."""
    for number, problem in enumerate(rows[0].regret):
        points(axes, number, [float(row.skips[problem].mean()) for row in rows], problem)
    from_zero(axes, "Skipped rounds", "Rounds")


def draw_violation(axes: "Axes", rows: Sequence[Measured]) -> None:
    """The worst violation without the guard, on the first problem."""
    points(axes, 0, [np.nan if row.violation is None else float(row.violation.max()) for row in rows], "")
    from_zero(axes, "Violation, no guard", "Cost above the line")


def draw_time(axes: "Axes", rows: Sequence[Measured]) -> None:
    """Of a round."""
    times = np.array([row.nanoseconds for row in rows])
    axes.barh(range(len(rows)), times, height=0.5, color="#c8c8c8")
    axes.set(title="Time of a round", xlabel="Nanoseconds", xlim=(0.0, 1.1 * max(float(np.nanmax(times)), 1.0)))


def from_zero(axes: "Axes", title: str, unit: str) -> None:
    """Logarithms, but to scale below 10, so that 0 has a place."""
    axes.set(title=title, xlabel=unit)
    axes.set_xscale("symlog", linthresh=10.0, linscale=0.5)
    axes.set_xlim(left=-1.0)
    highest = max((float(np.nanmax(drawn.get_xdata())) for drawn in axes.lines), default=0.0)
    ticks = [0.0, 100.0, 10_000.0, 1_000_000.0] if highest > 5000.0 else [0.0, 10.0, 100.0, 1000.0]
    axes.set_xlim(right=max(20.0, 2.0 * highest))
    axes.set_xticks([tick for tick in ticks if tick <= max(20.0, 2.0 * highest)])
    axes.xaxis.set_major_formatter(lambda value, _: figures.short(value))
    axes.minorticks_off()

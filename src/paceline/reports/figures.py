"""Figures: the only file that knows matplotlib. No pyplot, so no global state and no display."""

import io
import os
import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paceline import checks
from paceline.errors import InvalidValue
from paceline.extras import extra
from paceline.problems.problem import Problem
from paceline.problems.resources import UNNAMED
from paceline.reports.tables import of_resources
from paceline.statistics import FLOOR, radius_of_mean, three_digits

with extra("lab", "a figure"):
    import matplotlib as mpl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, MultipleLocator, NullFormatter

if TYPE_CHECKING:
    from paceline.experiments.together import Together
    from paceline.offline.replays import Replay
    from paceline.simulation.results import Results, Run

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
    "text.parse_math": False,  # a dollar sign in a label is one
}

# Okabe and Ito's palette: distinct to readers with any colour vision.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
FEW_DECADES = 200.0  # from one end of a logarithmic axis to the other
DASHES = ("-", "--", "-.", ":")  # once the colours are used up

Floats = npt.NDArray[np.float64]


def per_round(run: "Run") -> dict[str, Floats]:
    """The headroom divided by the round; without a start stock and a cap the budget rate minus the average cost."""
    return {resource: left / run.rounds for resource, left in run.by_resource("headroom").items()}


def worst_so_far(run: "Run") -> dict[str, Floats]:
    """The most by which spending was above the line at any checkpoint so far; at the last, in any round at all."""
    found = {}
    for resource, left in run.by_resource("headroom").items():
        above = np.maximum.accumulate(np.maximum(-left, 0.0), axis=1)
        above[:, -1] = run.by_resource("violation")[resource]
        found[resource] = above
    return found


WHOLE = ""  # in place of a resource: of none of them, or of all


class Quantity(NamedTuple):
    """What can be drawn: the title of its panel, what is counted, and its values by resource."""

    title: str
    unit: str
    values: Callable[["Run"], dict[str, Floats]]


QUANTITIES: dict[str, Quantity] = {
    "regret": Quantity("Regret", "rewards", lambda run: {WHOLE: run.regret}),
    "pseudo_regret": Quantity("Pseudo-regret", "rewards", lambda run: {WHOLE: run.pseudo_regret}),
    "steady_regret": Quantity("Steady regret", "rewards", lambda run: {WHOLE: run.steady_regret}),
    "skips": Quantity("Skipped rounds", "rounds", lambda run: {WHOLE: run.skips.astype(float)}),
    "idle": Quantity("Rounds without a pull", "rounds", lambda run: {WHOLE: run.idle.astype(float)}),
    "spent": Quantity("Spent", "cost", lambda run: run.by_resource("spent")),
    "slack": Quantity("Budget rate minus average cost", "cost per round", per_round),
    "headroom": Quantity("Headroom", "cost", lambda run: run.by_resource("headroom")),
    "violation": Quantity("Worst violation", "cost", worst_so_far),
}


def has_stock(problem: Problem, resource: str) -> bool:
    """Whether the headroom of a resource is more than what its rate has left: it has a start stock, or a cap."""
    at = problem.resources.index(resource)
    return problem.stocks[at] > 0.0 or problem.caps[at] < np.inf


def title_of(problem: Problem, quantity: str, resource: str) -> str:
    """The title of a panel; with the name of a resource it has to be shorter."""
    plain = QUANTITIES[quantity].title
    if resource == WHOLE:
        return plain
    if quantity == "slack":
        named = plain if problem.resources == (UNNAMED,) else "Rate minus average cost"
        plain = "Headroom per round" if has_stock(problem, resource) else named
    return of_resources(plain, problem.resources)[problem.resources.index(resource)]


def least_of(run: "Run", quantity: str) -> float:
    """What no interval may be below: counts and violations cannot be negative, nor can what the guard keeps."""
    kept = run.guard and quantity in {"slack", "headroom"}
    return 0.0 if kept or quantity in {"skips", "idle", "violation"} else -np.inf


def values_of(run: "Run", quantity: str, resource: str | None = None) -> Floats:
    """The values of a quantity for one of its panels, the first unless told."""
    values = QUANTITIES[quantity].values(run)
    return next(iter(values.values())) if resource is None else values[resource]


@contextmanager
def styled(width: float, height: float, path: str | os.PathLike[str] | None = None) -> Iterator[Figure]:
    """A figure to draw on, in our style; once it is drawn it is written to a file, if there is to be one."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width, height))
        yield figure
        if path is not None:
            save(figure, path)


def curves(results: "Results", quantities: tuple[str, ...], path: str | os.PathLike[str] | None = None) -> Figure:
    """One panel per quantity and resource, one line per run, a band for the 95 % interval of the mean."""
    if not quantities:
        raise InvalidValue("quantities must name at least one curve, got none")
    for quantity in quantities:
        checks.one_of("quantity", quantity, tuple(QUANTITIES))
    first = next(iter(results.values()))
    drawn = [(quantity, resource) for quantity in quantities for resource in QUANTITIES[quantity].values(first)]
    with styled(3.6 * len(drawn), 3.1, path) as figure:
        panels = figure.subplots(1, len(drawn), squeeze=False)[0]
        for axes, (quantity, resource) in zip(panels, drawn, strict=True):
            panel(axes, results, quantity, resource)
        legend_below(figure, panels[0])
    return figure


def look(place: int) -> tuple[str, str]:
    """The colour and the dashes of the policy in this place; the first 28 differ.

    >>> look(0), look(7)
    (('#0072B2', '-'), ('#0072B2', '--'))
    """
    again, colour = divmod(place, len(COLOURS))
    return COLOURS[colour], DASHES[again % len(DASHES)]


def panel(axes: Axes, runs: "Mapping[str, Run]", quantity: str, resource: str = WHOLE, logs: bool = False) -> None:
    """Lines of one quantity against the round. Labels keep their colour by their place in ``runs``."""
    for number, run in enumerate(runs.values()):
        line(axes, run, quantity, *look(number), resource=resource, logs=logs)
    axes.set_title(title_of(next(iter(runs.values())).problem, quantity, resource))
    axes.set_ylabel(QUANTITIES[quantity].unit.capitalize())
    finish(axes)


def line(
    axes: Axes,
    run: "Run",
    quantity: str,
    colour: str,
    dashes: Any = "-",
    *,
    resource: str | None = None,
    band: bool = True,
    logs: bool = False,
) -> None:
    """Mean over trials with a band: its 95 % interval by Student's t, as in the tables. A single trial has none.

    With ``logs`` for the vertical axis a band that reaches 0 has no lower end, and shows what is above the mean.
    """
    values = values_of(run, quantity, resource)
    mean, trials = values.mean(axis=0), len(values)
    axes.plot(run.rounds, mean, color=colour, label=run.label, linestyle=dashes)
    if band and trials > 1:
        radius = radius_of_mean(trials) * values.std(axis=0, ddof=1)
        low = np.maximum(mean - radius, least_of(run, quantity))
        low = np.where(low > 0.0, low, mean) if logs else low
        axes.fill_between(run.rounds, low, mean + radius, color=colour, alpha=0.18, linewidth=0)


def finish(axes: Axes) -> None:
    """Common axes: rounds below, from zero, large numbers in words."""
    axes.set_xlabel("Round")
    axes.set_xlim(left=0)
    axes.margins(x=0)
    plain_numbers(axes)


def plain_numbers(axes: Axes) -> None:
    """Numbers without powers of ten; a short logarithmic axis has some between them, too."""
    for axis in (axes.xaxis, axes.yaxis):
        low, high = sorted(axis.get_view_interval())
        if axis.get_scale() == "log" and high < FEW_DECADES * low:
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
        axis.set_minor_formatter(NullFormatter())


def short(value: float) -> str:
    """A number as an axis wants it, with a proper minus.

    >>> short(2_500_000), short(-30_000), short(0.004), short(0.0)
    ('2.5M', '−30k', '0.004', '0')
    """
    size, letter = next((unit for unit in ((1e6, "M"), (1e3, "k")) if abs(value) >= unit[0]), (1.0, ""))
    return f"{value / size:.{10 if letter else 4}g}{letter}".replace("-", "−")


def legend_below(figure: Figure, axes: Axes, columns: int | None = None) -> None:
    """One legend for all panels, below them."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns or len(labels))


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write the figure in the format that the name asks for, making its folder if need be.

    The same figure gives the same bytes: the date stays out of the file, and names inside an SVG are not random.
    """
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    undated = {".pdf": "CreationDate", ".svg": "Date"}.get(Path(path).suffix.lower())
    with mpl.rc_context({"svg.hashsalt": "paceline"}):
        figure.savefig(path, metadata=None if undated is None else {undated: None})


class Image(NamedTuple):
    """A figure for pages, for papers and, where it is wanted, for everything else."""

    svg: str
    pdf: bytes
    png: bytes = b""


def in_formats(figure: Figure, png: bool = False) -> Image:
    """A figure as SVG and PDF, and perhaps PNG; the browser has more letters than matplotlib's font."""
    settings: dict[Any, Any] = {
        "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],  # about as wide as each other
        "svg.fonttype": "none",
        "svg.hashsalt": "paceline",
        "figure.constrained_layout.use": False,  # so that None is none, and nothing is drawn twice to lay it out
    }
    text, pages, pixels = io.StringIO(), io.BytesIO(), io.BytesIO()
    with mpl.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")
        layout = figure.get_layout_engine()
        if layout is not None:  # once for all formats, and without the drawing that `savefig` would do for it
            layout.execute(figure)
            figure.set_layout_engine(None)
        figure.savefig(text, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
        figure.savefig(pages, format="pdf", metadata={"CreationDate": None})
    if png:
        figure.savefig(pixels, format="png", dpi=200)
    return Image(slim(text.getvalue()), pages.getvalue(), pixels.getvalue())


def slim(svg: str) -> str:
    r"""An SVG without its preamble and its indents, and paths to a hundredth of a point: half the size.

    >>> slim('<?xml?><svg>\n  <path d="M 0.123456 2 \nL 3.5 4 \n"/></svg>')
    '<svg><path d="M0.12 2L3.5 4"/></svg>'
    """

    def rounded(path: re.Match[str]) -> str:
        numbers = re.sub(r"(?<=\.\d\d)\d+", "", path[0])
        return re.sub(r'\s+(?=[A-Za-z"])|(?<=[A-Za-z"])\s+', "", numbers)

    whole = svg[svg.index("<svg") :]
    return re.sub(r"\n\s*", "", re.sub(r'(?<= d=)"[^"]*"', rounded, whole))


ANOTHER: Any = (0, (4, 2))  # the dashes of another constant
OUTSIDERS: tuple[tuple[str, Any], ...] = (
    ("#000000", "-"),
    ("#000000", (0, (5, 1.5))),
    ("#8a8a8a", "-"),
    ("#8a8a8a", (0, (1, 1))),
)
THIN = 1.1  # a line that may lie on another


class PaperPanel(NamedTuple):
    """A panel of the paper's figures, by labels: its own policies, the same with another constant, those of others."""

    title: str
    quantity: str
    own: Sequence[str]
    another: Mapping[str, str]  # by the label of the same policy
    others: Sequence[str] = ()


def paper_figure(runs: "Mapping[str, Run]", layout: Sequence[PaperPanel], title: str) -> Figure:
    """The paper's panels. The first has all of its policies, and all others.

    Policies differ by orders of magnitude, so panels with others have logarithms up. Those with another constant are
    dashed in the colour of the same policy; others are thin lines without colour and bands.
    """
    colours = dict(zip(layout[0].own, COLOURS, strict=False))
    with styled(16.0, 4.2) as figure:
        panels = figure.subplots(1, len(layout))
        named: dict[str, Any] = {}
        for axes, shown in zip(panels, layout, strict=True):
            quantity, logs = shown.quantity, bool(shown.others)
            band = quantity != "slack"  # which is too rough for bands
            for label in shown.own:
                line(axes, runs[label], quantity, colours[label], band=band, logs=logs and quantity != "skips")
            for label, other in shown.another.items():
                line(axes, runs[other], quantity, colours[label], ANOTHER, band=False)
            for (colour, dashes), label in zip(OUTSIDERS, shown.others, strict=False):
                line(axes, runs[label], quantity, colour, dashes, band=False)
                axes.lines[-1].set_linewidth(THIN)
            axes.set_title(shown.title, parse_math=True)
            axes.set_ylabel(QUANTITIES[quantity].unit.capitalize())
            if logs:
                logarithms_up(axes, quantity)
            finish(axes)
            named = {str(drawn.get_label()): drawn for drawn in axes.lines} | named
        variants = [label for shown in layout for label in shown.another.values()]
        ordered = [*layout[0].own, *variants, *layout[0].others]
        figure.legend([named[label] for label in ordered], ordered, loc="outside lower center", ncols=len(ordered))
        figure.suptitle(title, x=0.005, ha="left", fontsize=10)
    return figure


def logarithms_up(axes: Axes, quantity: str) -> None:
    """Logarithms for the vertical axis, from the least that a line shows once the first rounds are over.

    Skips may be 0: they are to scale below 1.
    """
    means = [np.asarray(drawn.get_ydata(), np.float64) for drawn in axes.lines]
    if quantity == "skips":
        axes.set_yscale("symlog", linthresh=1.0, linscale=0.5)
        axes.set_ylim(0.0, 1.5 * max(1.0, *(float(mean.max()) for mean in means)))
        return
    settled = [mean[len(mean) // 50 :] for mean in means]
    lowest = min(float(mean[mean > 0.0].min(initial=np.inf)) for mean in settled)
    axes.set_yscale("log", nonpositive="clip")
    if np.isfinite(lowest):
        axes.set_ylim(lowest / 1.5, 1.5 * max(float(mean.max()) for mean in settled))


def settle(axes: Axes, curves: Sequence[Floats]) -> None:
    """Scale the panel to what comes after the first eighth of the rounds; early averages would squeeze it flat."""
    settled = [values.mean(axis=0)[values.shape[1] // 8 :] for values in curves]
    top = max(float(curve.max()) for curve in settled)
    bottom = min(float(curve.min()) for curve in settled)
    if top > 0.0:
        axes.set_ylim(min(-0.08 * top, 1.2 * bottom), 1.6 * top)


FEW_POINTS, MOST_POINTS = 20, 1000  # in a row of a figure: few are large, too many say nothing

# Greys: colours stand for policies.
CAUSES = {"wrong_arms": ("wrong arms", "#4d4d4d"), "idle": ("idle", "#9a9a9a"), "unspent": ("unspent", "#d6d6d6")}


def together_figure(found: "Together", path: str | os.PathLike[str] | None = None) -> Figure:
    """Steady regret in units of the limit: by round, by cause, and its spread over trials and problems."""
    longest = max(map(len, found.labels))
    with styled(11.5 + 0.07 * longest, 2.1 + 0.3 * max(len(found.labels), 6), path) as figure:
        by_round, by_cause, spread = figure.subplots(1, 3, width_ratios=(1.25, 1, 1))
        draw_ratios(by_round, found)
        draw_shares(by_cause, [found.causes(place) for place in range(len(found.labels))])
        by_cause.text(102, -0.62, "× limit", va="center", color="#555555")
        draw_spread(spread, found)
        spread.sharey(by_cause)
        by_cause.set_yticks(range(len(found.labels)), found.labels)
        by_cause.invert_yaxis()
        spread.tick_params(labelleft=False)
        for axes in (by_cause, spread):
            axes.grid(visible=False, axis="y")
            axes.tick_params(axis="y", length=0)
            axes.spines["left"].set_visible(False)
        handles, names = by_round.get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=max(1, min(len(names), 160 // (longest + 8))))
        note = "steady regret; the limit is a yardstick for long runs, not a bound"
        if any(found.capped):
            note += f"; capped on {sum(found.capped)} problems, where it says little"
        figure.suptitle(f"{found.title}: {found.size} ({note})", x=0.005, ha="left", fontsize=10)
    return figure


def draw_ratios(axes: Axes, found: "Together") -> None:
    """A line per policy, and one for the limit."""
    for number, (label, ratios) in enumerate(found.ratio_curves().items()):
        colour, dashes = look(number)
        axes.plot(found.rounds[found.rounds > 1], ratios, dashes, color=colour, label=label)
    axes.axhline(1.0, color="#555555", linewidth=1, linestyle=":", label="the limit")
    axes.set(xscale="log", yscale="log", xlabel="Round", title="Regret / limit, geometric mean")
    axes.margins(x=0)
    plain_numbers(axes)


def draw_shares(axes: Axes, causes: Collection[Mapping[str, float]], height: float = 0.62) -> None:
    """A bar per policy with the shares of its regret, and at its end the whole.

    Without the guard a cause may be below 0, as money is that was never there to be left: it has no share.
    """
    totals = np.array([sum(parts.values()) for parts in causes])
    lost = {cause: np.array([max(parts[cause], 0.0) for parts in causes]) for cause in CAUSES}
    whole = np.maximum(sum(lost.values()), np.finfo(float).tiny)
    left = np.zeros(len(causes))
    for cause, (name, grey) in CAUSES.items():
        shares = 100.0 * lost[cause] / whole
        axes.barh(range(len(causes)), shares, left=left, height=height, color=grey, label=name)
        left += shares
    for place, total in enumerate(totals):
        axes.text(102, place, three_digits(float(total)), va="center")
    axes.set(xlim=(0, 122), xticks=range(0, 101, 25), xlabel="% of the regret", title="Where it comes from")
    axes.spines["bottom"].set_bounds(0, 100)
    axes.legend(loc="upper center", bbox_to_anchor=(0.42, 0.0), borderaxespad=3.2, ncols=3)


def draw_spread(axes: Axes, found: "Together", height: float = 0.8) -> None:
    """Regret / limit of every trial on every problem at the last round."""
    ratios = np.log10(np.maximum(found.regret, FLOOR) / np.array(found.limits)[:, np.newaxis])
    for place, own in enumerate(ratios):
        draw_row(axes, own.ravel(), place, height)
    axes.axvline(0.0, color="#555555", linewidth=1, linestyle=":")
    powers_of_ten(axes)
    axes.set(xlabel="Regret / limit of a trial", title="Its spread over trials")


def draw_row(axes: Axes, values: npt.NDArray[np.float64], place: int, height: float) -> None:
    """How values are spread along a row: a bar for the median, a box for half, a line for 90 %; points, if few."""
    colour, _ = look(place)
    low, first, middle, third, high = np.quantile(values, [0.05, 0.25, 0.5, 0.75, 0.95])
    axes.plot([low, high], [place, place], color=colour, linewidth=1)
    axes.barh(place, third - first, left=first, height=0.6 * height, color=colour, alpha=0.35, linewidth=0)
    axes.use_sticky_edges = False  # a box that begins at the least of all values would lose the margin left of it
    if values.size <= MOST_POINTS:
        size = 5 if values.size > FEW_POINTS else 12
        axes.scatter(values, np.full(values.size, place), s=size, color=colour, alpha=0.6, linewidth=0)
    axes.plot([middle] * 2, [place - 0.4 * height, place + 0.4 * height], color=colour)


def powers_of_ten(axes: Axes) -> None:
    """Below are logarithms; write what they are logarithms of."""
    axes.xaxis.set_major_locator(MultipleLocator(1.0))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda power, _: short(10.0**power)))


def replay_figure(replay: "Replay", path: str | os.PathLike[str] | None = None) -> Figure:
    """Reward per round against the budget: a line per policy with its 95 % interval, and what the means would allow."""
    with styled(6.4, 4.2, path) as figure:
        axes = figure.subplots()
        budgets = sorted({budget for _, budget in replay})
        labels = list(dict.fromkeys(label for label, _ in replay))
        fine = np.linspace(budgets[0], budgets[-1], 200)
        best_mix, best_arm = zip(*(replay.allowed(budget) for budget in fine.tolist()), strict=True)
        axes.plot(fine, best_mix, ":", color="#555555", label="best mix of arms")
        axes.plot(fine, best_arm, "--", color="#9a9a9a", label="best single arm")
        for number, label in enumerate(labels):
            colour, dashes = look(number)
            rewards = [replay[label, budget].reward for budget in budgets]
            low, high = [reward.low for reward in rewards], [reward.high for reward in rewards]
            axes.plot(budgets, [reward.value for reward in rewards], dashes, color=colour, marker="o", label=label)
            axes.fill_between(budgets, low, high, color=colour, alpha=0.18, linewidth=0)
            axes.vlines(budgets, low, high, color=colour, alpha=0.5, linewidth=1)
        axes.set(xlabel="Budget per round", ylabel="Reward per round", title=f"A log of {replay.rows:,} rows, replayed")
        axes.set_ylim(bottom=0)
        plain_numbers(axes)
        legend_below(figure, axes, columns=min(len(labels) + 2, 5))
    return figure

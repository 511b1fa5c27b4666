"""How bad the bad trials are: the tables and the figure of docs/tails.md. ``python docs/tails.py`` takes ten minutes.

Steady regret of many trials: median, mean, 99 %, 99.9 % and worst, on the paper's 8 arms and on random problems, where
the trials of a problem are put in units of its median before they are pooled. The dial is ``rise`` of the index pacer.
"""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import paceline as pl
from paceline.reports import figures

IMAGES = Path(__file__).parent / "images"
ROUNDS = 100_000
RISES = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)
DIAL = {f"index, rise={rise:g}": pl.IndexPacer(rise=rise) for rise in RISES}
OTHERS = {"thompson": pl.ThompsonPacer(), "thompson, prior=1": pl.ThompsonPacer(prior=1.0)}
PAPER_TRIALS, SEED = 2000, 31
FEWER = ("index, rise=0", "index, rise=1", "index, rise=4", "thompson")  # on random problems
KINDS, PROBLEMS, TRIALS = ("beta", "bernoulli", "rare"), 20, 200
NEAR = 0.08  # of an axis: names of points that are nearer than that would lie on each other

Floats = npt.NDArray[np.float64]


def summary(regret: Floats) -> list[float]:
    """Median, mean, 99 %, 99.9 %, worst."""
    return [float(np.median(regret)), float(regret.mean()), *np.quantile(regret, [0.99, 0.999, 1.0]).tolist()]


def line(label: str, numbers: list[float]) -> str:
    """A line of a table: as it is, and the tail in medians."""
    median = numbers[0]
    tail = " | ".join(f"{number / median:.1f}" for number in numbers[2:])
    return f"| {label} | {median:.3g} | {numbers[1]:.3g} | {tail} |"


def paper() -> dict[str, Floats]:
    """Steady regret of each policy on the paper's 8 arms."""
    results = pl.simulate(pl.paper.eight_arms(), {**DIAL, **OTHERS}, ROUNDS, PAPER_TRIALS, SEED, checkpoints=1)
    return {label: run.steady_regret[:, -1] for label, run in results.items()}


def family(kind: str) -> dict[str, Floats]:
    """The same on random problems, each in units of the median of the default on it."""
    policies = {label: policy for label, policy in {**DIAL, **OTHERS}.items() if label in FEWER}
    study = pl.compare(kind, policies, problems=PROBLEMS, rounds=ROUNDS, trials=TRIALS, seed=SEED)
    regret = dict(zip(study.labels, study.together.regret, strict=True))
    units = np.maximum(np.median(regret["index, rise=1"], axis=-1, keepdims=True), 0.1)
    return {label: (ends / units).ravel() for label, ends in regret.items()}


def draw(found: dict[str, dict[str, list[float]]]) -> None:
    """Mean against tail, from the summaries: the frontier along the dial, a panel for each kind of problem."""
    with mpl.rc_context(figures.STYLE | {"savefig.dpi": 160}):
        figure = Figure(figsize=(2.6 * len(found), 3.2), layout="constrained")
        for panel, (kind, runs) in zip(figure.subplots(1, len(found)), found.items(), strict=True):
            points = {label: (numbers[1], numbers[3]) for label, numbers in runs.items()}
            dial = {label: point for label, point in points.items() if label in DIAL}
            panel.plot(*zip(*dial.values(), strict=True), "o-", color=figures.COLOURS[0], label="index, by its rise")
            for number, label in enumerate((label for label in OTHERS if label in points), start=1):
                panel.plot(*points[label], "s", color=figures.COLOURS[number], label=label)
            panel.set_ylim(0, 1.15 * max(tail for _, tail in points.values()))
            name_points(panel, {label.rpartition("=")[2]: point for label, point in dial.items()})
            panel.set_title(kind)
            unit = "" if kind == "8 arms" else ", in medians of the default"
            panel.set_xlabel(f"mean{unit}")
            panel.set_ylabel(f"99.9 % lose less{unit}")
        figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
        figure.savefig(IMAGES / "tails.png")


def name_points(panel: Axes, points: dict[str, tuple[float, float]]) -> None:
    """The name of each point above it; those of neighbours that lie on each other in one line below them."""
    spans = [high - low for low, high in (panel.get_xlim(), panel.get_ylim())]
    groups: list[list[str]] = []
    for name, point in points.items():
        before = points[groups[-1][-1]] if groups else (np.inf, np.inf)
        apart = max(abs(new - old) / span for new, old, span in zip(point, before, spans, strict=True))
        if apart > NEAR:
            groups.append([])
        groups[-1].append(name)
    for group in groups:
        place: dict[str, Any] = {"xytext": (3, 4)} if len(group) == 1 else {"xytext": (-4, -6), "va": "top"}
        panel.annotate(", ".join(group), points[group[0]], textcoords="offset points", fontsize=7, **place)


def main() -> None:
    """Print the tables, draw the figure."""
    found = {"8 arms": paper(), **{kind: family(kind) for kind in KINDS}}
    summaries = {kind: {label: summary(regret) for label, regret in runs.items()} for kind, runs in found.items()}
    for kind, runs in summaries.items():
        print(f"\n{kind}\n\n| policy | median | mean | 99 % | 99.9 % | worst |\n|---|---:|---:|---:|---:|---:|")
        for label, numbers in runs.items():
            print(line(label, numbers))
    draw(summaries)


if __name__ == "__main__":
    main()

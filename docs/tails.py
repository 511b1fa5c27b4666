"""How bad the bad trials are: the tables and the figure of docs/tails.md. ``python docs/tails.py`` takes half an hour.

Steady regret of many trials: median, mean, 99 %, 99.9 % and worst, on the paper's 8 arms and on random problems of
every family, where the trials of a problem are put in units of the default's median on it before they are pooled. The
dial is ``rise`` of the index pacer; it is turned on the 8 arms and on three of the families.
"""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import paceline as pl
from paceline.problems import families
from paceline.reports import figures

IMAGES = Path(__file__).parent / "images"
RISES = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)
DIAL = {f"index, rise={rise:g}": pl.IndexPacer(rise=rise) for rise in RISES}
OTHERS = {"thompson": pl.ThompsonPacer(), "thompson, prior=1": pl.ThompsonPacer(prior=1.0)}
PAPER_ROUNDS, PAPER_TRIALS, SEED = 100_000, 2000, 31
DEFAULT, BESIDE = "index, rise=1", "thompson"  # on every family
FEWER = ("index, rise=0", DEFAULT, "index, rise=4", BESIDE)  # on these:
DIALLED = ("beta", "bernoulli", "rare")
PROBLEMS, TRIALS = 20, 200
ROUNDS, FEW_ROUNDS, ARMS = 20_000, 5_000, 100  # few where a round is slow: so many arms, or several resources
HEADINGS, DASHES = "| median | mean | 99 % | 99.9 % | worst |", 5 * "|---:" + "|"
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
    results = pl.simulate(pl.paper.eight_arms(), {**DIAL, **OTHERS}, PAPER_ROUNDS, PAPER_TRIALS, SEED, checkpoints=1)
    return {label: run.steady_regret[:, -1] for label, run in results.items()}


def rounds_on(kind: str) -> int:
    """The rounds of a trial on a family."""
    problem = pl.problems.random(kind, SEED)
    slow = len(problem.resources) > 1 or problem.arms >= ARMS
    return families.rounds_of(kind, FEW_ROUNDS if slow else ROUNDS)


def family(kind: str) -> dict[str, Floats]:
    """The same on random problems, each in units of the median of the default on it."""
    chosen = FEWER if kind in DIALLED else (DEFAULT, BESIDE)
    policies = {label: policy for label, policy in {**DIAL, **OTHERS}.items() if label in chosen}
    study = pl.compare(kind, policies, problems=PROBLEMS, rounds=rounds_on(kind), trials=TRIALS, seed=SEED)
    regret = dict(zip(study.labels, study.together.regret, strict=True))
    units = np.maximum(np.median(regret[DEFAULT], axis=-1, keepdims=True), 0.1)
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
    """Print the two tables, draw the figure."""
    arms = {label: summary(regret) for label, regret in paper().items()}
    print(f"| policy {HEADINGS}\n|---{DASHES}")
    for label, numbers in arms.items():
        print(line(label, numbers))
    print(f"\n| family | rounds | policy {HEADINGS}\n|---|---:|---{DASHES}")
    found = {}
    for kind in pl.problems.KINDS:
        found[kind] = {label: summary(regret) for label, regret in family(kind).items()}
        for label, numbers in found[kind].items():
            print(f"| {kind} | {rounds_on(kind):,} {line(label, numbers)}")
    draw({"8 arms": arms, **{kind: found[kind] for kind in DIALLED}})


if __name__ == "__main__":
    main()

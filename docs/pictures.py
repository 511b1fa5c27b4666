"""Draw the pictures of docs/pacer.md and print the figures in its text: ``python docs/pictures.py``."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

import paceline as pl
from paceline.reports import figures

IMAGES = Path(__file__).parent / "images"
SEED = 1

STYLE = figures.STYLE | {"savefig.dpi": 160}
BLUE, RED, GREEN, PINK, GREY = *figures.COLOURS[:4], "#555555"
CAUSES = {"wrong_arms": ("wrong arms", "#4d4d4d"), "idle": ("idle", "#9a9a9a"), "unspent": ("unspent", "#d6d6d6")}

Floats = npt.NDArray[np.float64]


def learn_worst(_: Any, state: Any, decision: Any, __: float, ___: Any) -> None:
    """Believe in the largest variance that outcomes in [0, 1] can have, 1/4, whatever the data say."""
    arms, arm, beliefs = state.arms, decision.arm, state.memory.beliefs
    if 0 <= arm < arms.pulls.size:
        count = arms.pulls[arm] + 1.0
        for side, total in ((0, arms.reward_sum[arm]), (1, arms.cost_sum[arm, 0])):
            beliefs[arm, side, 0] = (total + 0.5) / count
            beliefs[arm, side, 1] = 0.5 / math.sqrt(count)
            beliefs[arm, side, 2] = 0.0


class WorstCase(pl.ThompsonPacer):
    """The Thompson pacer without its first idea."""

    learn = staticmethod(learn_worst)


@dataclass(frozen=True, kw_only=True)
class Buffered(pl.Oracle):
    """The oracle with so many times its buffer: pacing alone, nothing to learn."""

    times: float = 1.0

    def params(self, setting: Any) -> tuple[Any, ...]:
        """The numbers of the oracle, with another buffer."""
        told: Any = super().params(setting)
        return tuple.__new__(type(told), told._replace(buffer=self.times * told.buffer))


def geometric(first: int, last: int, count: int) -> list[int]:
    """Whole numbers, evenly spread by their logarithm."""
    return sorted({round(at) for at in np.geomspace(first, last, count).tolist()})


def mean_and_error(values: Floats) -> str:
    """Mean ± standard error."""
    return f"{values.mean():.2f} ± {values.std(ddof=1) / math.sqrt(len(values)):.2f}"


def report(title: str, results: pl.Results) -> None:
    """Print the regret of each run at the last round and what it is made of."""
    rounds = int(results.rounds[-1])
    limit = pl.theory.limit(results.problem, rounds)
    print(f"\n{title}: {results.trials} trials of {rounds:,} rounds; limit {limit:.1f}")
    for label, run in results.items():
        final, terms = run.steady_regret[:, -1], run.breakdown()
        middle, high = np.quantile(final, (0.5, 0.9))
        parts = ", ".join(f"{name} {terms[cause][:, -1].mean():.2f}" for cause, (name, _) in CAUSES.items())
        print(f"  {label:20} {mean_and_error(final):17} median {middle:.1f}, 90 % {high:.1f}, worst {final.max():.1f}")
        print(f"  {'':20} {parts}")


def short(value: float, _: object = None) -> str:
    """A number as an axis wants it."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.10g}{letter}"
    return f"{value:.4g}"


def plain_numbers(axes: Axes) -> None:
    """No powers of ten on the axes."""
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(short))
        axis.set_minor_formatter(NullFormatter())


def save(figure: Figure, name: str) -> None:
    """Write docs/images/pacer-NAME.png."""
    IMAGES.mkdir(exist_ok=True)
    figure.savefig(IMAGES / f"pacer-{name}.png")


def breakdown() -> None:
    """Where the regret of SUAK and of the pacer comes from, on the paper's 8 arms."""
    rounds = 2_500_000
    points = geometric(100, rounds, 150)
    results = pl.simulate(pl.paper.eight_arms(), ["suak", "thompson"], rounds, trials=10, seed=SEED, checkpoints=points)
    report("breakdown, 8 arms", results)
    figure = Figure(figsize=(9, 3.3))
    for axes, (label, title) in zip(
        figure.subplots(1, 2), {"suak": "SUAK", "thompson": "Thompson pacer"}.items(), strict=True
    ):
        terms = results[label].breakdown()
        axes.stackplot(
            results.rounds,
            [terms[cause].mean(axis=0) for cause in CAUSES],
            labels=[name for name, _ in CAUSES.values()],
            colors=[grey for _, grey in CAUSES.values()],
        )
        if label == "thompson":
            limits = [pl.theory.limit(results.problem, int(at)) for at in results.rounds]
            axes.plot(results.rounds, limits, ":", color=RED, label="the limit")
        axes.set(
            xscale="log",
            xlabel="Round",
            ylabel="Steady regret",
            title=f"{title}: {results[label].steady_regret[:, -1].mean():,.0f} lost",
        )
        axes.set_ylim(bottom=0)
        axes.margins(x=0)
        axes.legend(loc="upper left", reverse=True)
        plain_numbers(axes)
    save(figure, "breakdown")


def headroom() -> None:
    """One trial's headroom over some rounds, and what other buffers would cost."""
    figure = Figure(figsize=(9, 3.4))
    walk, trade = figure.subplots(1, 2, width_ratios=(1.5, 1))
    draw_walk(walk)
    draw_trade(trade)
    save(figure, "headroom")


def draw_walk(axes: Axes) -> None:
    """The headroom before each round, the arm that is pulled in it, and the two thresholds."""
    problem, first, last = pl.paper.three_arms(), 10_000, 10_060
    expensive, cheap = problem.optimum.base
    run = pl.simulate(problem, "thompson", last, trials=1, seed=SEED, checkpoints=range(1, last + 1))["thompson"]
    spent = np.append(0.0, run.spent[0])
    pulled = np.diff(run.totals.pulls[0], axis=0, prepend=0)
    # What the policy knew of the cheap arm before each round, from the costs of its pulls so far.
    costs = np.append(0.0, np.diff(spent)[:-1] * pulled[:-1, cheap])
    count = np.maximum(np.append(0, np.cumsum(pulled[:-1, cheap])), 1)
    mean = np.cumsum(costs) / count
    variance = np.cumsum(costs**2) / count - mean**2 + 0.25 / count
    drift = problem.budget - mean
    window = slice(first - 1, None)
    buffer = (variance / (2.0 * drift) * np.log1p(run.rounds * drift**2 / variance))[window]
    rounds, before = run.rounds[window], (problem.budget * run.rounds - spent[:-1])[window]
    print(f"\nheadroom: B = {buffer[-1]:.3f} in round {last:,}; lowest {before.min():.3f}")
    print("  pulls in the window:", pulled[window].sum(axis=0).tolist())
    axes.fill_between(rounds, 1.0, 1.0 + buffer, color="#f0e442", alpha=0.3, linewidth=0)
    axes.plot(rounds, np.ones(rounds.size), color="black", linewidth=1.2)
    axes.plot(rounds, 2.0 - problem.budget + buffer, color=GREY, linewidth=1.2, linestyle="--")
    axes.plot(rounds, before, color="#bbbbbb", linewidth=1, zorder=1)
    for arm, colour, name in (
        (expensive, RED, "the expensive arm is pulled"),
        (cheap, BLUE, "the cheap arm is pulled"),
    ):
        at = pulled[window, arm] == 1
        axes.scatter(rounds[at], before[at], s=16, color=colour, label=name, zorder=2)
    axes.text(last + 1.5, 1.0, "1: below it the\nguard refuses", va="center", fontsize=8)
    axes.text(last + 1.5, 1.5 + buffer[-1], "2 − c + B", va="center", fontsize=8)
    axes.text(last + 1.5, 1.0 + buffer[-1] / 2, "B", va="center", fontsize=8)
    axes.set(xlim=(first - 1, last + 16), ylim=(0.85, None), xlabel="Round", ylabel="Headroom before the round")
    axes.set_title("60 rounds of one trial")
    axes.set_xticks(range(first, last + 1, 20))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.spines["bottom"].set_bounds(first - 1, last)
    axes.legend(loc="upper center", bbox_to_anchor=(0.42, -0.17), ncols=2, handletextpad=0.1)


TIMES = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)


def draw_trade(axes: Axes) -> None:
    """Idle and unspent by the size of the buffer, when the truth is known and costs are tosses."""
    told = pl.paper.three_arms()
    problem = pl.Problem.bernoulli(told.reward_means.tolist(), told.cost_means.tolist(), budget=told.budget)
    rounds = [2_000, 20_000, 200_000]
    results = pl.simulate(
        problem, {f"{x}": Buffered(times=x) for x in TIMES}, rounds[-1], trials=100, seed=SEED, checkpoints=rounds
    )
    report("buffer, 3 Bernoulli arms", results)
    for number, colour in enumerate(("#9ecae1", "#4292c6", "#08519c")):
        regret = [results[f"{x}"].steady_regret[:, number].mean() for x in TIMES]
        print(f"  {rounds[number]:,} rounds:", ", ".join(f"{x}: {y:.1f}" for x, y in zip(TIMES, regret, strict=True)))
        axes.plot(TIMES, regret, "o-", color=colour, markersize=3.5, label=f"{rounds[number]:,} rounds")
    axes.axvline(1.0, color=GREY, linewidth=1, linestyle=":")
    axes.set(yscale="log", xlabel="Buffer, in units of v / (2d) · log t", ylabel="Steady regret")
    axes.set_title("The oracle with other buffers")
    plain_numbers(axes)
    axes.legend(loc="upper right")


ABLATION: dict[str, Any] = {
    "Thompson pacer": pl.ThompsonPacer(),
    "every arm drawn": pl.ThompsonPacer(every_arm=True),
    "worst-case variance": WorstCase(),
    "optimistic pacer": pl.OptimisticPacer(),
}
COLOURS = dict(zip(ABLATION, (BLUE, GREEN, PINK, RED), strict=True))


def ablation() -> None:
    """Growth with log t and the spread over trials, with and without the ideas."""
    problem, rounds = pl.paper.eight_arms(), 500_000
    points = sorted({*geometric(20, rounds, 60), 100_000, 200_000, 300_000})
    results = pl.simulate(problem, ABLATION, rounds, trials=200, seed=SEED, checkpoints=points)
    report("ablation, 8 arms", results)
    paired = results["every arm drawn"].steady_regret[:, -1] - results["Thompson pacer"].steady_regret[:, -1]
    print(f"  every arm drawn, in pairs: {mean_and_error(paired)} more")
    describe_worst(results["Thompson pacer"])
    others = pl.simulate(problem, ["suak", "oracle"], rounds, trials=20, seed=SEED, checkpoints=points)
    report("beside it", others)
    growth(results, others)
    spread(results)


def describe_worst(run: pl.Run) -> None:
    """Print how the worst trial went: its regret and its pulls of the two arms of the best base."""
    worst = int(np.argmax(run.steady_regret[:, -1]))
    for at in (100_000, 200_000, 300_000, 500_000):
        column = int(np.flatnonzero(run.rounds == at)[0])
        expensive, cheap = run.totals.pulls[worst, column, list(run.problem.optimum.base)].tolist()
        regret = run.steady_regret[worst, column]
        print(f"  trial {worst}, round {at:,}: {regret:,.0f} lost, {expensive:,} expensive pulls, {cheap:,} cheap ones")


def growth(results: pl.Results, others: pl.Results) -> None:
    """Regret against log t: a straight line is logarithmic growth."""
    limits = np.array([pl.theory.limit(results.problem, int(at)) for at in results.rounds])
    figure = Figure(figsize=(9, 3.6))
    near, far = figure.subplots(1, 2)
    for axes in (near, far):
        for label, run in results.items():
            if axes is far and label == "every arm drawn":
                continue
            low, high = np.quantile(run.steady_regret, (0.1, 0.9), axis=0)
            axes.plot(run.rounds, np.median(run.steady_regret, axis=0), color=COLOURS[label], label=label)
            if label == "Thompson pacer":
                axes.plot(run.rounds, run.steady_regret.mean(axis=0), "--", color=BLUE, linewidth=1, label="its mean")
            axes.fill_between(run.rounds, low, high, color=COLOURS[label], alpha=0.15, linewidth=0)
        axes.plot(results.rounds, limits, ":", color="black", label="the limit")
        axes.set(xscale="log", xlabel="Round", ylabel="Steady regret")
        axes.margins(x=0)
    for label, colour, style in (("suak", "#E69F00", "-"), ("oracle", GREY, "--")):
        far.plot(others.rounds, np.median(others[label].steady_regret, axis=0), style, color=colour, label=label)
    near.set(ylim=(0, None), title="Median, 10 to 90 % of trials")
    far.set(yscale="log", ylim=(1, None), title="The same, with SUAK and the oracle")
    named = {}
    for axes in (near, far):
        plain_numbers(axes)
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            named[{"suak": "SUAK"}.get(label, label)] = handle
    figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=4)
    save(figure, "growth")


def spread(results: pl.Results) -> None:
    """The final regret of every trial: the mean hides too much."""
    limit = pl.theory.limit(results.problem, int(results.rounds[-1]))
    final = results["Thompson pacer"].steady_regret[:, -1]
    print(f"  above the limit: {np.sum(final > limit)} trials; mean without the worst {np.sort(final)[:-1].mean():.1f}")
    figure = Figure(figsize=(9, 3.5))
    one, tails = figure.subplots(1, 2)
    one.hist(final, bins=np.geomspace(30.0, 6000.0, 54).tolist(), color=BLUE, alpha=0.75)
    for value, style, name in (
        (float(np.median(final)), "-", f"median {np.median(final):.0f}"),
        (float(final.mean()), "--", f"mean {final.mean():.0f}"),
        (limit, ":", f"the limit {limit:.0f}"),
    ):
        one.axvline(value, color="black", linewidth=1.2, linestyle=style, label=name)
    place: dict[str, Any] = {"xytext": (12, 22), "textcoords": "offset points", "ha": "right", "fontsize": 8}
    one.annotate(f"one trial: {final.max():,.0f}", (final.max(), 1), **place, arrowprops={"arrowstyle": "->"})
    one.set(ylabel="Trials", title=f"Thompson pacer: {final.size} trials")
    one.legend(loc="upper right")
    for label, run in results.items():
        values = np.sort(run.steady_regret[:, -1])
        share = np.arange(values.size, 0, -1) / values.size
        tails.step(values, share, where="pre", color=COLOURS[label], label=label)
        tails.plot(values[-1], share[-1], "o", color=COLOURS[label], markersize=4)
    tails.axvline(limit, color="black", linewidth=1.2, linestyle=":", label="the limit")
    tails.set(yscale="log", ylabel="Share of trials", title="That lose at least so much")
    tails.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100.0 * value:g} %"))
    tails.yaxis.set_minor_formatter(NullFormatter())
    tails.legend(loc="center right", handlelength=1.2, handletextpad=0.5)
    for axes in (one, tails):
        axes.set(xscale="log", xlim=(30, 7000), xlabel="Steady regret of a trial")
        axes.set_xticks([50, 100, 200, 500, 1000, 2000, 5000])
        axes.xaxis.set_major_formatter(FuncFormatter(short))
        axes.xaxis.set_minor_locator(NullLocator())
    save(figure, "spread")


def main() -> None:
    """All pictures."""
    with mpl.rc_context(STYLE):
        breakdown()
        headroom()
        ablation()


if __name__ == "__main__":
    main()

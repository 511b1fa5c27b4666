"""The figures of a report, each with a name for its files, what it shows in words, and a caption."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from paceline.experiments.summary import Line
from paceline.experiments.sweeps import Axis, Sweep, policy_sweep
from paceline.experiments.together import CAUSES, Together
from paceline.problems.problem import Problem
from paceline.problems.resources import UNNAMED
from paceline.reports import figures
from paceline.reports.page import Drawing
from paceline.reports.panels import (
    BAR,
    draw_amounts,
    draw_curve,
    draw_finals,
    draw_log_curve,
    draw_sweep,
    far_apart,
    in_rows,
    panel,
)
from paceline.simulation.results import Results
from paceline.statistics import three_digits


@dataclass(frozen=True)
class Drawer:
    """Draws for one study; ``prefix`` keeps the files of several studies apart."""

    prefix: str
    reference: str

    def together(self, found: Together) -> list[Drawing]:
        """All problems together."""
        scores = found.scores(self.reference)
        told = ", ".join(f"{score.label} {score.ratio}" for score in scores)
        causes = {score.label: score.causes for score in scores}
        return [
            Drawing(
                f"{self.prefix}together-ratios",
                panel(figures.draw_ratios, found),
                f"Regret in units of the limit against the round. At the end: {told}.",
                "Mean steady regret / limit at the same round; dotted: the limit.",
            ),
            Drawing(
                f"{self.prefix}together-causes",
                in_rows(found.labels, figures.draw_shares, causes.values(), BAR, heading="plain mean, × limit"),
                f"Shares of the regret by cause. {causes_told(causes)}",
                "Shares of the regret by cause, means over problems.",
            ),
            Drawing(
                f"{self.prefix}together-spread",
                in_rows(found.labels, figures.draw_spread, found, BAR),
                f"Regret in units of the limit of every trial on every problem. Geometric means: {told}.",
                "Every trial on every problem: median, half and 90 % of the trials; dotted: the limit.",
            ),
        ]

    def sweep(self, name: str, sweep: Sweep, note: str = "") -> Drawing:
        """Regret against a parameter."""
        axis = sweep.axis
        told = "; ".join(
            ", ".join(f"{at}: {three_digits(loss.value)}" for at, (_, loss) in zip(axis.shown, trace, strict=True))
            for trace in sweep.traces
        )
        notes = "; ".join(filter(None, (note, "bars: 95 % intervals")))
        return Drawing(
            self.prefix + name,
            panel(draw_sweep, sweep),
            f"{sweep.quantity} against {axis.parameter} of {axis.thing}. {told}.",
            f"{axis.thing}: {sweep.quantity.lower()} against {axis.parameter} ({notes}).",
        )

    def problem(self, number: int, results: Results, lines: Sequence[Line], axes: Sequence[Axis]) -> Iterator[Drawing]:
        """All figures of one problem."""
        at = f"At round {lines[0].rounds:,}"
        regret = ", ".join(f"{line.policy} {three_digits(line.own.value)}" for line in lines)
        skips = ", ".join(f"{line.policy} {three_digits(line.means['skips'])}" for line in lines)
        causes = {line.policy: {cause: line.means[f"{cause}_regret"] for cause in CAUSES} for line in lines}
        band = "" if lines[0].trials == 1 else "; bands: 95 % intervals"
        begin = f"{self.prefix}problem-{number}-"
        logs = far_apart(np.array([line.own.value for line in lines]))
        yield Drawing(
            f"{begin}regret",
            panel(draw_curve, results, "steady_regret"),
            f"Steady regret against the round. {at}: {regret}.",
            f"Mean steady regret{band}.{stock_note(results.problem)}",
        )
        yield Drawing(
            f"{begin}regret-log",
            panel(draw_log_curve, results, logs),
            f"Steady regret against the logarithm of the round. {at}: {regret}.",
            f"Growth like log T is a {'curve that flattens' if logs else 'straight line'}{band}"
            f"{', their upper half where they reach 0' if band and logs else ''}.",
        )
        if len(lines) > 1 and lines[0].trials > 1:
            yield self.pairs(f"{begin}pairs", lines)
        yield Drawing(
            f"{begin}causes",
            in_rows(list(results), figures.draw_shares, causes.values(), BAR, heading="regret"),
            f"Shares of the steady regret by cause. {at}: {causes_told(causes)}.",
            "What the regret is made of, and how much it is.",
        )
        yield Drawing(
            f"{begin}skips",
            panel(draw_curve, results, "skips"),
            f"Skipped rounds against the round. {at}: {skips}.",
            f"Rounds skipped by a skip rule{band}.",
        )
        for place, resource in enumerate(results.problem.resources, start=1):
            yield self.spending(f"{begin}spending-{place}", results, resource, at, band)
            if not results.guard:
                yield self.violation(f"{begin}violation-{place}", results, resource)
        yield Drawing(
            f"{begin}spread",
            in_rows(list(results), draw_finals, [line.finals for line in lines]),
            f"Final steady regret of each trial. Means: {regret}.",
            "Median, half and 90 % of the trials; each a point, if they are not too many.",
        )
        for place, axis in enumerate(axes, start=1):
            yield self.sweep(f"problem-{number}-grid-{place}", policy_sweep(axis, [line.own for line in lines]))

    def pairs(self, name: str, lines: Sequence[Line]) -> Drawing:
        """Every policy against the reference, trial by trial."""
        (against,) = [line for line in lines if line.policy == self.reference]
        others = [line for line in lines if line is not against]
        means = ", ".join(f"{line.policy} {three_digits(line.difference.value)}" for line in others)
        pairs = [line.finals - against.finals for line in lines]
        shown = ("Difference of a trial", "Minus the reference, in pairs")
        return Drawing(
            name,
            in_rows([line.policy for line in lines], partial(draw_amounts, signed=True), pairs, *shown),
            f"Steady regret minus that of {self.reference} in the same trial. Means: {means}.",
            f"Minus {self.reference} in the same trial: median, half and 90 % of the trials. Left of 0 is better.",
        )

    def spending(self, name: str, results: Results, resource: str, at: str, band: str) -> Drawing:
        """How far a resource is from being spent: per round, or where it has a stock as a whole."""
        problem = results.problem
        quantity = "headroom" if figures.has_stock(problem, resource) else "slack"
        left = {label: float(run.by_resource("headroom")[resource][:, -1].mean()) for label, run in results.items()}
        per_round = 1 if quantity == "headroom" else int(results.rounds[-1])
        told = ", ".join(f"{label} {amount / per_round:.3g}" for label, amount in left.items())
        whose = of(problem, resource)
        what = {
            "slack": (f"Budget rate minus average cost{whose}", f"Distance to the budget line{whose} per round"),
            "headroom": (f"Headroom{whose}", f"What is left{whose}"),
        }[quantity]
        return Drawing(
            name,
            panel(draw_curve, results, quantity, resource),
            f"{what[0]} against the round. {at}: {told}.",
            f"{what[1]}; at 0 all is spent{band}.",
        )

    def violation(self, name: str, results: Results, resource: str) -> Drawing:
        """By how much the line of a resource was crossed, where there was no guard."""
        worst = {label: run.by_resource("violation")[resource] for label, run in results.items()}
        told = ", ".join(f"{label} {three_digits(float(amounts.max()))}" for label, amounts in worst.items())
        whose = of(results.problem, resource)
        shown = ("Worst violation of a trial", figures.title_of(results.problem, "violation", resource))
        return Drawing(
            name,
            in_rows(list(worst), draw_amounts, list(worst.values()), *shown),
            f"The worst violation of each trial{whose}. Largest: {told}.",
            f"The most by which spending{whose} was above the line in any round: median, half and 90 % of the trials.",
        )


def of(problem: Problem, resource: str) -> str:
    """Of which resource, if it has a name."""
    return "" if problem.resources == (UNNAMED,) else f" of {resource}"


def causes_told(causes: Mapping[str, Mapping[str, float]]) -> str:
    """A breakdown in words."""
    return "; ".join(
        f"{label}: " + ", ".join(f"{cause.replace('_', ' ')} {three_digits(part)}" for cause, part in parts.items())
        for label, parts in causes.items()
    )


def stock_note(problem: Problem) -> str:
    """A word on curves that begin high: what is left of a stock that has to last counts as unspent."""
    lasting = any(rate == 0.0 < stock for rate, stock in zip(problem.rates, problem.stocks, strict=True))
    return " A stock counts as unspent until it is used: only the last round tells." if lasting else ""

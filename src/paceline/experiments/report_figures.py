"""Figures of a report, each with what it shows in words."""

from collections.abc import Mapping, Sequence
from typing import Any

from paceline.experiments.summary import Line
from paceline.experiments.sweeps import Axis, policy_sweep
from paceline.problems.problem import Problem
from paceline.problems.resources import UNNAMED
from paceline.reports import panels as draw
from paceline.reports.figures import has_stock
from paceline.reports.markup import Markup
from paceline.reports.page import figure, figures
from paceline.simulation.results import Results
from paceline.statistics import three_digits

MOST_SWEEPS = 12


def causes_told(causes: Mapping[str, Mapping[str, float]]) -> str:
    """A breakdown in words."""
    return "; ".join(
        f"{label}: " + ", ".join(f"{cause.replace('_', ' ')} {three_digits(part)}" for cause, part in parts.items())
        for label, parts in causes.items()
    )


def swept_figure(axis: Axis, sweep: Any, bars: str, means: str = "") -> Markup:
    """The figure of a sweep."""
    told = "; ".join(
        ", ".join(f"{value}: {three_digits(mean)}" for value, mean in zip(sweep.values, trace.means, strict=True))
        for trace in sweep.traces
    )
    return figure(
        draw.swept(sweep),
        f"{sweep.quantity} against {axis.parameter} of {axis.thing}. {told}.",
        f"{axis.thing}: {sweep.quantity.lower()} against {axis.parameter}{means} ({bars}).",
    )


def problem_figures(results: Results, lines: Sequence[Line], axes: Sequence[Axis]) -> Markup:
    """All figures of one problem."""
    at = f"At round {lines[0].rounds:,}"
    regret = ", ".join(f"{line.policy} {three_digits(line.mean)}" for line in lines)
    skips = ", ".join(f"{line.policy} {three_digits(line.means['skips'])}" for line in lines)
    causes = {
        line.policy: {cause: line.means[f"{cause}_regret"] for cause in ("wrong_arms", "idle", "unspent")}
        for line in lines
    }
    band = "" if lines[0].trials == 1 else "; bands: one standard deviation over trials"
    drawn = [
        figure(
            draw.curve(results, "steady_regret"),
            f"Steady regret against the round. {at}: {regret}.",
            f"Mean steady regret{band}.{stock_note(results.problem)}",
        ),
        figure(
            draw.log_curve(results),
            f"Steady regret against the logarithm of the round. {at}: {regret}.",
            "Against the logarithm of the round. Where the vertical axis is linear, growth like log T is a straight "
            "line; where both axes are logarithmic, it is a curve that flattens.",
        ),
        figure(
            draw.breakdown(results),
            f"Shares of the steady regret by cause. {at}: {causes_told(causes)}.",
            "What the regret is made of, and how much it is.",
        ),
        figure(
            draw.curve(results, "skips"),
            f"Skipped rounds against the round. {at}: {skips}.",
            f"Rounds skipped by a skip rule{band}.",
        ),
        *(spending_figure(results, resource, at, band) for resource in results.problem.resources),
        figure(
            draw.spread(results),
            f"Final steady regret of each trial. Means: {regret}.",
            "Each trial a point, if they are not too many; lines: medians.",
        ),
        *(swept_figure(axis, policy_sweep(axis, lines), "bars: one standard error") for axis in axes[:MOST_SWEEPS]),
    ]
    return figures(list(results), drawn)


def stock_note(problem: Problem) -> str:
    """A word on curves that begin high: what is left of a stock that has to last counts as unspent."""
    lasting = any(rate == 0.0 < stock for rate, stock in zip(problem.rates, problem.stocks, strict=True))
    return " A stock counts as unspent until it is used: only the last round tells." if lasting else ""


def spending_figure(results: Results, resource: str, at: str, band: str) -> Markup:
    """How far a resource is from being spent: per round, or where it has a stock as a whole."""
    problem = results.problem
    quantity = "headroom" if has_stock(problem, resource) else "slack"
    left = {label: float(run.by_resource("headroom")[resource][:, -1].mean()) for label, run in results.items()}
    per_round = 1 if quantity == "headroom" else int(results.rounds[-1])
    told = ", ".join(f"{label} {amount / per_round:.3g}" for label, amount in left.items())
    of = "" if problem.resources == (UNNAMED,) else f" of {resource}"
    what = {
        "slack": (f"Budget rate minus average cost{of}", f"Distance to the budget line{of} per round"),
        "headroom": (f"Headroom{of}", f"What is left{of}"),
    }[quantity]
    return figure(
        draw.curve(results, quantity, resource),
        f"{what[0]} against the round. {at}: {told}.",
        f"{what[1]}; at 0 all is spent{band}.",
    )

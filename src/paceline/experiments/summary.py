"""Each policy on each problem at the last round: the numbers of a report, and the tables that show them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from paceline.experiments.scores import CAUSES, headroom
from paceline.reports.tables import Table, mean_and_error, of_resources, spending_headings
from paceline.simulation.results import Results, Run
from paceline.statistics import FLOOR, mean_difference, three_digits

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Line:
    """One policy on one problem. Means are over trials; a single trial has no standard error and no interval.

    ``difference``    mean steady regret minus that of the reference; ``interval`` holds 95 % of the resamples, in which
                      the trials of both are drawn together.
    ``ratio``         the one divided by the other; nothing if the reference's is below 0.1.
    ``spent``         by resource, per round; ``headrooms`` the smallest headroom of any trial, by resource.
    """

    problem: str
    policy: str
    trials: int
    rounds: int
    limit: float
    finals: Floats  # steady regret of each trial
    error: float | None
    difference: float
    interval: tuple[float, float] | None
    ratio: float | None
    means: dict[str, float]
    spent: dict[str, float]
    headrooms: dict[str, float]

    @property
    def min_headroom(self) -> float:
        """The smallest of all resources; nan, of a damaged file, is not above anything."""
        return float(np.min(list(self.headrooms.values())))

    @property
    def mean(self) -> float:
        """Mean steady regret."""
        return float(self.finals.mean())


def summarise_runs(problem: str, results: Results, reference: str, limit: float) -> list[Line]:
    """A line for each policy on a problem.

    >>> from paceline import paper
    >>> from paceline.simulation import simulate as run
    >>> res = run.simulate(paper.three_arms(), ["uniform", "oracle"], rounds=1000, trials=2)
    >>> lines = summarise_runs("three arms", res, "oracle", 4.0)
    >>> lines[0].difference == lines[0].mean - lines[1].mean, lines[1].difference, lines[1].ratio
    (True, 0.0, 1.0)
    """
    against = results[reference].steady_regret[:, -1]
    return [summarise_run(problem, run, against, results.seed, limit) for run in results.values()]


def summarise_run(problem: str, run: Run, reference: Floats, seed: int, limit: float) -> Line:
    """The line of one policy, held against the final steady regret of the reference."""
    finals = run.steady_regret[:, -1]
    estimate = mean_difference(finals, reference, seed)
    return Line(
        problem=problem,
        policy=run.label,
        trials=len(finals),
        rounds=int(run.rounds[-1]),
        limit=limit,
        finals=finals,
        error=standard_error(finals),
        difference=float(finals.mean() - reference.mean()),
        interval=None if estimate is None else (estimate.low, estimate.high),
        ratio=float(finals.mean() / reference.mean()) if reference.mean() >= FLOOR else None,
        means={
            "pseudo_regret": float(run.pseudo_regret[:, -1].mean()),
            "regret": float(run.regret[:, -1].mean()),
            **{f"{cause}_regret": float(run.breakdown()[cause][:, -1].mean()) for cause in CAUSES},
            "skips": float(run.skips[:, -1].mean()),
            "idle_rounds": float(run.idle[:, -1].mean()),
        },
        spent={name: float(spent[:, -1].mean() / run.rounds[-1]) for name, spent in run.by_resource("spent").items()},
        headrooms={name: float(lowest.min()) for name, lowest in run.by_resource("min_headroom").items()},
    )


def standard_error(values: Floats) -> float | None:
    """Of the mean; a single value has none."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None


def resources_in(lines: Iterable[Line]) -> list[str]:
    """The resources of the problems, each once."""
    return list(dict.fromkeys(name for line in lines for name in line.spent))


def summary_table(lines: Sequence[Line], reference: str, resources: Sequence[str] | None = None) -> Table:
    """The policies on one problem, held against the reference; with columns for these resources, or its own."""
    names = resources_in(lines) if resources is None else resources
    headings = (
        "policy",
        "steady regret",
        f"minus {reference}",
        f"ratio to {reference}",
        "skips",
        *spending_headings(names),
    )
    rows = tuple(
        (
            line.policy,
            mean_and_error(line.finals),
            "reference" if line.policy == reference else difference(line),
            "–" if line.ratio is None else three_digits(line.ratio),
            three_digits(line.means["skips"]),
            *(f"{line.spent[name]:.5f}" if name in line.spent else "–" for name in names),
            *(headroom(line.headrooms[name]) if name in line.spent else "–" for name in names),
        )
        for line in lines
    )
    return Table(headings, rows)


def difference(line: Line) -> str:
    """The difference to the reference with its interval, if it has one."""
    interval = "" if line.interval is None else " [{}, {}]".format(*map(signed, line.interval))
    return signed(line.difference) + interval


def signed(value: float) -> str:
    """A difference: its sign is always there.

    >>> signed(12.34), signed(-1234.5), signed(0.0)
    ('+12.3', '−1,234', '0')
    """
    sign = "+" if value > 0.0 else "−" if value < 0.0 else ""
    return sign + three_digits(abs(value))


def problems_table(by_problem: Sequence[Sequence[Line]]) -> Table:
    """A line per problem: the mean steady regret of each policy, and whose is the lowest."""
    rows = tuple(
        (
            lines[0].problem,
            three_digits(lines[0].limit),
            *(mean_and_error(line.finals) for line in lines),
            min(lines, key=lambda line: line.mean).policy,
        )
        for lines in by_problem
    )
    return Table(("problem", "limit", *(line.policy for line in by_problem[0]), "lowest"), rows)


def records(by_problem: Sequence[Sequence[Line]], experiment: dict[str, Any]) -> list[dict[str, object]]:
    """All lines with all numbers, and where in its grids each stands: a row each of a CSV file."""
    problems, policies = experiment["problems"], experiment["policies"]
    resources = resources_in(line for lines in by_problem for line in lines)
    spent, lowest = (of_resources(thing, resources, "_") for thing in ("spent_per_round", "min_headroom"))
    return [
        {
            "problem": line.problem,
            "policy": line.policy,
            **{f"problem.{key}": field["swept"].get(key, "") for key in swept_in(problems)},
            **{f"policy.{key}": spec["swept"].get(key, "") for key in swept_in(policies)},
            "trials": line.trials,
            "rounds": line.rounds,
            "limit": line.limit,
            "steady_regret": line.mean,
            "standard_error": line.error,
            "difference": line.difference,
            "difference_low": None if line.interval is None else line.interval[0],
            "difference_high": None if line.interval is None else line.interval[1],
            "ratio": line.ratio,
            **line.means,
            **{column: line.spent.get(name) for column, name in zip(spent, resources, strict=True)},
            **{column: line.headrooms.get(name) for column, name in zip(lowest, resources, strict=True)},
        }
        for lines, field in zip(by_problem, problems, strict=True)
        for line, spec in zip(lines, policies, strict=True)
    ]


def swept_in(entries: Sequence[dict[str, Any]]) -> list[str]:
    """The parameters that were swept in any of these problems or policies."""
    return list(dict.fromkeys(key for entry in entries for key in entry["swept"]))

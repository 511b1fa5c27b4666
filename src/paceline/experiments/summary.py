"""Each policy on each problem at the last round: the numbers of a report, and the tables that show them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from paceline.experiments.together import CAPPED, CAUSES, DRAW, WHY_CAPPED, headroom, outcomes, write_limit
from paceline.problems.theory import limits
from paceline.reports.tables import UNGUARDED, Table, mean_and_interval, of_resources, spending_headings
from paceline.simulation.results import Results
from paceline.statistics import Estimate, mean_difference, mean_of, mean_ratio, standard_error, three_digits

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Line:
    """One policy on one problem. Means are over trials; those of a single trial have no standard error and no ends.

    ``own``           mean steady regret with its 95 % interval.
    ``difference``    mean steady regret minus that of the reference, likewise, paired by trial.
    ``ratio``         the one divided by the other, likewise paired; nothing if either is below 0.1.
    ``capped``        whether the bare limit exceeds what there is to lose.
    ``spent``         by resource, per round; ``headrooms`` the smallest headroom of any trial, by resource.
    """

    problem: str
    policy: str
    trials: int
    rounds: int
    limit: float
    capped: bool
    finals: Floats  # steady regret of each trial
    own: Estimate
    difference: Estimate
    ratio: Estimate | None
    means: dict[str, float]
    spent: dict[str, float]
    headrooms: dict[str, float]
    guard: bool = True

    @property
    def violations(self) -> dict[str, float]:
        """The worst by which a line was crossed in any round of any trial, by resource."""
        return {name: max(-lowest, 0.0) for name, lowest in self.headrooms.items()}

    @property
    def min_headroom(self) -> float:
        """The smallest of all resources; nan, of a damaged file, is not above anything."""
        return float(np.min(list(self.headrooms.values())))


def summarise_runs(problem: str, results: Results, reference: str) -> list[Line]:
    """A line for each policy on a problem.

    >>> from paceline import paper
    >>> from paceline.simulation import simulate as run
    >>> res = run.simulate(paper.three_arms(), ["uniform", "oracle"], rounds=1000, trials=2)
    >>> lines = summarise_runs("three arms", res, "oracle")
    >>> lines[1].difference.value, lines[1].ratio.value, lines[0].difference.value > 0.0
    (0.0, 1.0, True)
    """
    against = results[reference].steady_regret[:, -1]
    last = int(results.rounds[-1])
    yardstick = limits(results.problem, results.rounds[-1:])
    return [
        Line(
            problem=problem,
            policy=run.label,
            trials=len(finals),
            rounds=last,
            limit=float(yardstick.capped[0]),
            capped=bool(yardstick.cut[0]),
            finals=finals,
            own=mean_of(finals),
            difference=mean_difference(finals, against),
            ratio=mean_ratio(finals, against),
            means={
                "pseudo_regret": float(run.pseudo_regret[:, -1].mean()),
                "regret": float(run.regret[:, -1].mean()),
                **{f"{cause}_regret": float(run.breakdown()[cause][:, -1].mean()) for cause in CAUSES},
                "skips": float(run.skips[:, -1].mean()),
                "idle_rounds": float(run.idle[:, -1].mean()),
            },
            spent={name: float(spent[:, -1].mean() / last) for name, spent in run.by_resource("spent").items()},
            headrooms={name: float(lowest.min()) for name, lowest in run.by_resource("min_headroom").items()},
            guard=run.guard,
        )
        for run in results.values()
        for finals in [run.steady_regret[:, -1]]
    ]


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
        *spending_headings(names, lines[0].guard),
    )
    rows = tuple(
        (
            line.policy,
            mean_and_interval(line.finals),
            "reference" if line.policy == reference else line.difference.written(signed),
            "1" if line.policy == reference else "–" if line.ratio is None else str(line.ratio),
            three_digits(line.means["skips"]),
            *(f"{line.spent[name]:.5f}" if name in line.spent else "–" for name in names),
            *(headroom(line.headrooms[name], line.guard) if name in line.spent else "–" for name in names),
        )
        for line in lines
    )
    return Table(headings, rows, () if lines[0].guard else (UNGUARDED,))


def signed(value: float) -> str:
    """A difference: its sign is always there.

    >>> signed(12.34), signed(-1234.5), signed(0.0)
    ('+12.3', '−1,234', '0')
    """
    sign = "+" if value > 0.0 else "−" if value < 0.0 else ""
    return sign + three_digits(abs(value))


def problems_table(by_problem: Sequence[Sequence[Line]]) -> Table:
    """A line per problem: the mean steady regret of each policy, and who wins by more than noise."""
    rows = tuple(
        (
            lines[0].problem,
            write_limit(lines[0].limit, lines[0].capped),
            *(mean_and_interval(line.finals) for line in lines),
            winner(lines),
        )
        for lines in by_problem
    )
    headings = ("problem", "limit", *(line.policy for line in by_problem[0]), "won by")
    marked = any(lines[0].capped for lines in by_problem)
    return Table(headings, rows, (f"{CAPPED} {WHY_CAPPED}",) if marked else ())


def winner(lines: Sequence[Line]) -> str:
    """Whose regret is below that of all others by more than noise; else it is a draw."""
    ends = outcomes(np.stack([line.finals for line in lines])[:, np.newaxis])[:, 0]
    return lines[int(ends.argmax())].policy if ends.max() == 1 else DRAW


def records(by_problem: Sequence[Sequence[Line]], experiment: dict[str, Any]) -> list[dict[str, object]]:
    """All lines with all numbers, and where in its grids each stands: a row each of a CSV file."""
    problems, policies = experiment["problems"], experiment["policies"]
    resources = resources_in(line for lines in by_problem for line in lines)
    amounts = ("spent_per_round", "min_headroom", "violation")
    spent, lowest, worst = (of_resources(thing, resources, "_") for thing in amounts)
    return [
        {
            "problem": line.problem,
            "policy": line.policy,
            **{f"problem.{key}": field["swept"].get(key, "") for key in swept_in(problems)},
            **{f"policy.{key}": spec["swept"].get(key, "") for key in swept_in(policies)},
            "trials": line.trials,
            "rounds": line.rounds,
            "limit": line.limit,
            "limit_capped": line.capped,
            "steady_regret": line.own.value,
            "standard_error": standard_error(line.finals),
            **ends_of("steady_regret", line.own),
            "difference": line.difference.value,
            **ends_of("difference", line.difference),
            "ratio": None if line.ratio is None else line.ratio.value,
            **ends_of("ratio", line.ratio),
            **line.means,
            **{column: line.spent.get(name) for column, name in zip(spent, resources, strict=True)},
            **{column: line.headrooms.get(name) for column, name in zip(lowest, resources, strict=True)},
            **({} if line.guard else dict(zip(worst, (line.violations.get(name) for name in resources), strict=True))),
        }
        for lines, field in zip(by_problem, problems, strict=True)
        for line, spec in zip(lines, policies, strict=True)
    ]


def ends_of(name: str, estimate: Estimate | None) -> dict[str, float | None]:
    """The ends of an interval by the name of a column; nothing where there are none.

    >>> ends_of("ratio", Estimate(1.0, 0.5, 2.0)), ends_of("ratio", None)
    ({'ratio_low': 0.5, 'ratio_high': 2.0}, {'ratio_low': None, 'ratio_high': None})
    """
    low, high = (estimate.low, estimate.high) if estimate is not None and estimate.known else (None, None)
    return {f"{name}_low": low, f"{name}_high": high}


def swept_in(entries: Sequence[dict[str, Any]]) -> list[str]:
    """The parameters that were swept in any of these problems or policies."""
    return list(dict.fromkeys(key for entry in entries for key in entry["swept"]))

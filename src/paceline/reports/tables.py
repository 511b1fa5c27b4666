"""Plain tables for terminals and reports."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from paceline.errors import PacelineError
from paceline.problems.problem import Problem
from paceline.problems.resources import UNNAMED
from paceline.reports.markup import joined, table_element, tag
from paceline.statistics import standard_error

if TYPE_CHECKING:
    import pandas as pd

    from paceline.simulation.results import Run


@dataclass(frozen=True)
class Table:
    """Rows of text under headings; the first column is set left, the others right. Notes stand below.

    >>> print(Table(("policy", "skips"), (("suak", "12"), ("uniform", "3,456"))))
    policy   skips
    -------  -----
    suak        12
    uniform  3,456
    """

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        widths = [max(map(len, column)) for column in zip(self.headings, *self.rows, strict=True)]

        def line(cells: tuple[str, ...]) -> str:
            first, *rest = (
                cell.ljust(width) if number == 0 else cell.rjust(width)
                for number, (cell, width) in enumerate(zip(cells, widths, strict=True))
            )
            return "  ".join([first, *rest]).rstrip()

        rule = line(tuple("-" * width for width in widths))
        return "\n".join([line(self.headings), rule, *map(line, self.rows), *self.notes])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return joined([table_element(self), *(tag("p", note) for note in self.notes)])

    def to_markdown(self) -> str:
        """The same for Markdown.

        >>> print(Table(("policy", "skips"), (("suak", "12"),)).to_markdown())
        | policy | skips |
        |---|---:|
        | suak | 12 |
        """
        rule = "|---|" + "---:|" * (len(self.headings) - 1)
        lines = ["| " + " | ".join(cells) + " |" for cells in (self.headings, *self.rows)]
        return "\n".join([lines[0], rule, *lines[1:], *(f"\n{note}" for note in self.notes)])


def frame(data: Any) -> "pd.DataFrame":
    """A DataFrame from columns by name or from records; pandas is not needed until then."""
    try:
        import pandas as pd
    except ImportError as error:
        raise PacelineError("to_pandas needs pandas: pip install 'paceline[pandas]'") from error
    return pd.DataFrame(data)


def mean_and_error(values: npt.NDArray[np.float64] | npt.NDArray[np.int64]) -> str:
    """Mean over trials and its standard error. An interval that covers is some of these wide (`statistics.mean_of`).

    >>> mean_and_error(np.array([1000.0, 1200.0]))
    '1,100 ± 100'
    """
    digits = 0 if abs(values.mean()) >= 100 else 1
    error = standard_error(values.astype(np.float64))
    return f"{values.mean():,.{digits}f}" + ("" if error is None else f" ± {error:,.{digits}f}")


def of_resources(thing: str, resources: Sequence[str], link: str = ", ") -> tuple[str, ...]:
    """What to call a quantity of each resource; that of the only one without a name needs no more words.

    >>> of_resources("min headroom", ["money", "energy"]), of_resources("spent", ["money"], "_")
    (('min headroom, money', 'min headroom, energy'), ('spent_money',))
    >>> of_resources("min headroom", ["cost"])
    ('min headroom',)
    """
    return (thing,) if tuple(resources) == (UNNAMED,) else tuple(f"{thing}{link}{name}" for name in resources)


def write_budget(problem: Problem, form: str) -> str:
    """What comes in per round, by resource if they have names, with the stock at the start and the cap if there are.

    >>> write_budget(Problem.beta([0.5], {"money": [0.2], "calls": [1.0]}, {"money": 0.1, "calls": 0.5}), ".3f")
    'money 0.100, calls 0.500'
    >>> write_budget(Problem.beta([0.5], [0.2], 0.0, start=30.0), "g")
    '0 (start 30)'
    """
    parts = []
    for name, rate, stock, cap in zip(problem.resources, problem.rates, problem.stocks, problem.caps, strict=True):
        more = [f"start {stock:g}"] * (stock > 0.0) + [f"cap {cap:g}"] * (cap < np.inf)
        amount = f"{rate:{form}}" + (f" ({', '.join(more)})" if more else "")
        parts.append(amount if problem.resources == (UNNAMED,) else f"{name} {amount}")
    return ", ".join(parts)


def spending_headings(resources: Sequence[str]) -> tuple[str, ...]:
    """Headings for what was spent per round, of each resource, and then for the smallest headroom of each.

    >>> spending_headings(["money", "energy"])
    ('money per round', 'energy per round', 'min money left', 'min energy left')
    """
    if tuple(resources) == (UNNAMED,):
        return ("spent per round", "min headroom")
    return (*(f"{name} per round" for name in resources), *(f"min {name} left" for name in resources))


def results_table(runs: "Mapping[str, Run]", late: str = "") -> Table:
    """Means and standard errors over trials at the last round; the smallest headroom of all of them.

    A note says how late news was, if it was.
    """
    resources = next(iter(runs.values())).problem.resources
    headings = (
        "policy",
        "steady regret",
        "pseudo-regret",
        "regret",
        "skips",
        "idle",
        *spending_headings(resources),
    )
    rows = []
    for label, run in runs.items():
        curves = (run.steady_regret, run.pseudo_regret, run.regret, run.skips, run.idle)
        cells = [mean_and_error(curve[:, -1]) for curve in curves]
        rates = (f"{(spent[:, -1] / run.rounds[-1]).mean():.5f}" for spent in run.by_resource("spent").values())
        lowest = (f"{headroom.min():.3g}" for headroom in run.by_resource("min_headroom").values())
        rows.append((label, *cells, *rates, *lowest))
    return Table(headings, tuple(rows), (f"News: {late}.",) if late else ())

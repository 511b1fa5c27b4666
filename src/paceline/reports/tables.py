"""Plain tables for terminals and reports."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from paceline.errors import PacelineError

if TYPE_CHECKING:
    import pandas as pd

    from paceline.simulation.results import Run


@dataclass(frozen=True)
class Table:
    """Rows of text under headings; the first column is set left, the others right.

    >>> print(Table(("policy", "skips"), (("suak", "12"), ("uniform", "3,456"))))
    policy   skips
    -------  -----
    suak        12
    uniform  3,456
    """

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __str__(self) -> str:
        widths = [max(map(len, column)) for column in zip(self.headings, *self.rows, strict=True)]

        def line(cells: tuple[str, ...]) -> str:
            first, *rest = (
                cell.ljust(width) if number == 0 else cell.rjust(width)
                for number, (cell, width) in enumerate(zip(cells, widths, strict=True))
            )
            return "  ".join([first, *rest]).rstrip()

        return "\n".join([line(self.headings), line(tuple("-" * width for width in widths)), *map(line, self.rows)])

    __repr__ = __str__

    def to_markdown(self) -> str:
        """The same for Markdown.

        >>> print(Table(("policy", "skips"), (("suak", "12"),)).to_markdown())
        | policy | skips |
        |---|---:|
        | suak | 12 |
        """
        rule = "|---|" + "---:|" * (len(self.headings) - 1)
        lines = ["| " + " | ".join(cells) + " |" for cells in (self.headings, *self.rows)]
        return "\n".join([lines[0], rule, *lines[1:]])


def frame(data: Any) -> "pd.DataFrame":
    """A DataFrame from columns by name or from records; pandas is not needed until then."""
    try:
        import pandas as pd
    except ImportError as error:
        raise PacelineError("to_pandas needs pandas: pip install 'paceline[pandas]'") from error
    return pd.DataFrame(data)


def mean_and_error(values: npt.NDArray[np.float64] | npt.NDArray[np.int64]) -> str:
    """Mean over trials and its standard error.

    >>> mean_and_error(np.array([1000.0, 1200.0]))
    '1,100 ± 100'
    """
    digits = 0 if abs(values.mean()) >= 100 else 1
    if len(values) == 1:
        return f"{values[0]:,.{digits}f}"
    return f"{values.mean():,.{digits}f} ± {values.std(ddof=1) / np.sqrt(len(values)):,.{digits}f}"


def results_table(runs: "Mapping[str, Run]") -> Table:
    """Means and standard errors over trials at the last round."""
    headings = (
        "policy",
        "steady regret",
        "pseudo-regret",
        "regret",
        "skips",
        "idle",
        "spent per round",
        "min headroom",
    )
    rows = []
    for label, run in runs.items():
        curves = (run.steady_regret, run.pseudo_regret, run.regret, run.skips, run.idle)
        rate = float((run.spent[:, -1] / run.rounds[-1]).mean())
        cells = [mean_and_error(curve[:, -1]) for curve in curves]
        rows.append((label, *cells, f"{rate:.5f}", f"{run.min_headroom.min():.3g}"))
    return Table(headings, tuple(rows))

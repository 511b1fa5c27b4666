"""The one writer of tables: as text, Markdown, HTML, LaTeX with booktabs and nothing else, and records as CSV."""

import csv
import html
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from paceline.extras import extra
from paceline.problems.problem import Problem
from paceline.problems.resources import UNNAMED
from paceline.statistics import mean_of

if TYPE_CHECKING:
    import pandas as pd

    from paceline.simulation.results import Run


INTERVAL = "[low, high]: the 95 % interval of the mean over trials, by Student's t."
UNGUARDED = "Without the guard: a violation is the most by which spending was above the line in any round of any trial."
# What LaTeX reads as a command, and what its first fonts lack, by what prints it.
LATEX = {
    **{letter: f"\\{letter}" for letter in "{}$&#_%"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "×": r"$\times$",
    "−": "$-$",
    "–": "--",
    "…": r"\dots{}",
    "†": r"$\dagger$",
    "·": r"$\cdot$",
    "√": r"$\surd$",
    "²": "$^2$",
    "³": "$^3$",
    "≥": r"$\geq$",
    "Δ": r"$\Delta$",
    "δ": r"$\delta$",
    "κ": r"$\kappa$",
    "λ": r"$\lambda$",
    "ğ": r"\u{g}",
}


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
        return self.to_html() + "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)

    def to_html(self, caption: str = "") -> str:
        """The same for a page, without its notes: all text escaped, and a broken promise standing out.

        >>> Table(("policy",), (("a<b",),)).to_html()[7:]
        '<thead><tr><th scope="col">policy</th></tr></thead><tbody><tr><th scope="row">a&lt;b</th></tr></tbody></table>'
        """
        head = "".join(f'<th scope="col">{html.escape(heading)}</th>' for heading in self.headings)
        rows = (
            f'<tr><th scope="row">{html.escape(first)}</th>' + "".join(map(html_cell, rest)) + "</tr>"
            for first, *rest in self.rows
        )
        label = f' aria-label="{html.escape(caption)}"' if caption else ""
        return f"<table{label}><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"

    def to_markdown(self) -> str:
        """The same for Markdown.

        >>> print(Table(("policy", "skips"), (("suak", "12"),)).to_markdown())
        | policy | skips |
        |---|---:|
        | suak | 12 |
        """
        rule = "|---|" + "---:|" * (len(self.headings) - 1)
        whole = (self.headings, *self.rows)
        lines = ["| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |" for cells in whole]
        return "\n".join([lines[0], rule, *lines[1:], *(f"\n{note}" for note in self.notes)])

    def to_latex(self, words: bool = False) -> str:
        r"""The same as a booktabs tabular; ``words`` sets all columns left.

        >>> print(Table(("policy", "regret"), (("a_b", "5 [4, 6] × 2"),)).to_latex(), end="")
        % needs \usepackage{booktabs}
        \begin{tabular}{lr}
        \toprule
        policy & regret \\
        \midrule
        a\_b & 5 [4, 6] $\times$ 2 \\
        \bottomrule
        \end{tabular}
        """
        heading, *rows = (" & ".join(map(escape_latex, cells)) + r" \\" for cells in (self.headings, *self.rows))
        lines = [
            r"% needs \usepackage{booktabs}",
            rf"\begin{{tabular}}{{l{('l' if words else 'r') * (len(self.headings) - 1)}}}",
            r"\toprule",
            heading,
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
            *(rf"\par {{\footnotesize {escape_latex(note)}}}" for note in self.notes),
        ]
        return "\n".join(lines) + "\n"


def html_cell(text: str) -> str:
    """A cell; a broken promise stands out."""
    kind = ' class="overspent"' if text.endswith("OVERSPENT") else ""
    return f"<td{kind}>{html.escape(text)}</td>"


def escape_latex(cell: str) -> str:
    r"""A cell as LaTeX prints it; a bracket at its start is no option of the line break before it.

    >>> escape_latex("50 % of $c_1$"), escape_latex("[x]")
    ('50 \\% of \\$c\\_1\\$', '{[}x]')
    """
    text = "".join(LATEX.get(letter, letter if letter.isprintable() else " ") for letter in cell)
    return re.sub(r"^(\s*)([\[*])", r"\1{\2}", text)


def csv_text(records: Sequence[Mapping[str, object]]) -> str:
    """Records with the same keys as CSV: a heading, all digits of a number, nothing for None.

    >>> print(csv_text([{"policy": "a, b", "regret": 0.1, "ratio": None}]), end="")
    policy,regret,ratio
    "a, b",0.1,
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue()


def pandas() -> Any:
    """pandas, which is not needed until then."""
    with extra("pandas", "to_pandas"):
        import pandas as pd
    return pd


def frame(data: Any) -> "pd.DataFrame":
    """A DataFrame from columns by name or from records."""
    made: pd.DataFrame = pandas().DataFrame(data)
    return made


def written(value: float, digits: int) -> str:
    """A number with its thousands set apart, a proper minus, and no minus before a nought.

    >>> written(-1234.5, 0), written(-0.01, 1)
    ('−1,234', '0.0')
    """
    return f"{round(value, digits) + 0.0:,.{digits}f}".replace("-", "−")


def mean_and_interval(values: npt.NDArray[np.float64] | npt.NDArray[np.int64]) -> str:
    """Mean over trials and its 95 % interval by Student's t; a single trial has none. That of a count is not below 0.

    >>> mean_and_interval(np.array([1000.0, 1200.0, 1100.0])), mean_and_interval(np.array([3.25]))
    ('1,100 [852, 1,348]', '3.2')
    >>> mean_and_interval(np.array([0, 0, 9]))
    '3.0 [0.0, 15.9]'
    """
    found = mean_of(values)
    return found.written(partial(written, digits=0 if abs(found.value) >= 100 else 1))


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


def spending_headings(resources: Sequence[str], guard: bool = True) -> tuple[str, ...]:
    """Headings for what was spent per round, of each resource, and then for the smallest headroom of each.

    Without the guard the worst violation stands in its place.

    >>> spending_headings(["money", "energy"])
    ('money per round', 'energy per round', 'min money left', 'min energy left')
    >>> spending_headings(["cost"], guard=False)
    ('spent per round', 'worst violation')
    """
    if tuple(resources) == (UNNAMED,):
        return ("spent per round", "min headroom" if guard else "worst violation")
    lowest = "min {} left" if guard else "worst violation, {}"
    return (*(f"{name} per round" for name in resources), *(lowest.format(name) for name in resources))


def results_table(runs: "Mapping[str, Run]", late: str = "", guard: bool = True) -> Table:
    """Means over trials at the last round with their 95 % intervals; the smallest headroom of all of them.

    Without the guard it is the worst violation, of all rounds and trials. Notes say so, and how late news was.
    """
    first = next(iter(runs.values()))
    resources = first.problem.resources
    headings = (
        "policy",
        "steady regret",
        "pseudo-regret",
        "regret",
        "skips",
        "idle",
        *spending_headings(resources, guard),
    )
    rows = []
    for label, run in runs.items():
        curves = (run.steady_regret, run.pseudo_regret, run.regret, run.skips, run.idle)
        cells = [mean_and_interval(curve[:, -1]) for curve in curves]
        rates = (f"{(spent[:, -1] / run.rounds[-1]).mean():.5f}" for spent in run.by_resource("spent").values())
        if guard:
            worst = [headroom.min() for headroom in run.by_resource("min_headroom").values()]
        else:
            worst = [violation.max() for violation in run.by_resource("violation").values()]
        rows.append((label, *cells, *rates, *(f"{extreme:.3g}" for extreme in worst)))
    notes = [INTERVAL] * (len(first.min_headroom) > 1) + [f"News: {late}."] * bool(late) + [UNGUARDED] * (not guard)
    return Table(headings, tuple(rows), tuple(notes))

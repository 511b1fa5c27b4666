"""Tables for other programs: CSV with all digits, and LaTeX with booktabs and nothing else."""

import csv
import io
import re
from collections.abc import Mapping, Sequence

from paceline.reports.tables import Table

# What LaTeX reads as a command, and what its first fonts lack, by what prints it.
SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "_": r"\_",
    "%": r"\%",
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
}


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


def latex(table: Table) -> str:
    r"""A table as a booktabs tabular.

    >>> print(latex(Table(("policy", "regret"), (("a_b", "5 ± 1"),))), end="")
    % needs \usepackage{booktabs}
    \begin{tabular}{lr}
    \toprule
    policy & regret \\
    \midrule
    a\_b & 5 $\pm$ 1 \\
    \bottomrule
    \end{tabular}
    """
    columns = "l" + "r" * (len(table.headings) - 1)
    heading, *rows = (" & ".join(map(escape_latex, cells)) + r" \\" for cells in (table.headings, *table.rows))
    lines = [
        r"% needs \usepackage{booktabs}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        heading,
        r"\midrule",
        *rows,
        r"\bottomrule",
        r"\end{tabular}",
        *(rf"\par {{\footnotesize {escape_latex(note)}}}" for note in table.notes),
    ]
    return "\n".join(lines) + "\n"


def escape_latex(cell: str) -> str:
    r"""A cell as LaTeX prints it; a bracket at its start is no option of the line break before it.

    >>> escape_latex("50 % of $c_1$"), escape_latex("[x]")
    ('50 \\% of \\$c\\_1\\$', '{[}x]')
    """
    text = "".join(SPECIAL.get(letter, letter if letter.isprintable() else " ") for letter in cell)
    return re.sub(r"^(\s*)([\[*])", r"\1{\2}", text)

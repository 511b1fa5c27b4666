r"""From the docstrings of paceline, which are laid out for a reader of the code, to reStructuredText.

A list of names becomes a definition list; what is indented, such as a formula, is kept as it stands; and bars mean what
they mean in formulas:

>>> text = ["With |x|:", "", "``a``  first,", "       and more.", "``b``  second.", "", "    x = y"]
>>> print(*translate(text), sep="\n")
With \|x\|:
<BLANKLINE>
``a``
    first,
    and more.
<BLANKLINE>
``b``
    second.
<BLANKLINE>
.. code-block:: text
<BLANKLINE>
    x = y
<BLANKLINE>
>>> print(*translate(["1. The mean of", "       x + y,", "   cut to [0, 1]."]), sep="\n")
1. The mean of
<BLANKLINE>
   .. code-block:: text
<BLANKLINE>
       x + y,
<BLANKLINE>
   cut to [0, 1].
<BLANKLINE>
"""

import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import is_dataclass
from itertools import groupby
from typing import Any

NAME = re.compile(r"^(``[^`]+``(?:, ``[^`]+``)*) {2,}(.*)$")
ITEM = re.compile(r"^ *(?:[-*]|\d+\.) +")
DEEPER = 4  # spaces from which on a line is a formula, not the rest of a sentence


def paragraphs(lines: Iterable[str]) -> Iterator[list[str]]:
    """Lines between blank lines."""
    for is_text, group in groupby(lines, key=lambda line: bool(line.strip())):
        if is_text:
            yield list(group)


def without_bars(line: str) -> str:
    """Bars of absolute values escaped, outside of literals."""
    parts = re.split(r"(``.*?``)", line)
    return "".join(part if part.startswith("``") else part.replace("|", "\\|") for part in parts)


def named(paragraph: list[str]) -> Iterator[str]:
    """A list of names as a definition list."""
    for at, line in enumerate(paragraph):
        found = NAME.match(line)
        if found:
            yield from ["", found[1]] if at else [found[1]]
        yield f"    {without_bars(found[2] if found else line.strip())}"


def prose(paragraph: list[str], margin: int) -> Iterator[str]:
    """Sentences and lists, with formulas between them; text up to the margin is no formula."""
    in_formula = False
    for at, line in enumerate(paragraph):
        indent = len(line) - len(line.lstrip())
        item = ITEM.match(line)
        is_formula = indent >= margin + DEEPER and not item
        if is_formula and not in_formula:
            yield from [""] if at else []
            yield from (" " * margin + ".. code-block:: text", "")
        if in_formula and not is_formula:
            yield ""
        in_formula = is_formula
        yield line if is_formula else without_bars(line)
        if item:
            margin = item.end()


def translate(lines: Iterable[str]) -> list[str]:
    """The docstring as Sphinx reads it."""
    done: list[str] = []
    margin = 0
    for paragraph in paragraphs(lines):
        if paragraph[0].lstrip().startswith(">>>"):
            done += paragraph
        elif NAME.match(paragraph[0]):
            done += named(paragraph)
        else:
            done += prose(paragraph, margin)
        done.append("")
        items = [found.end() for found in map(ITEM.match, paragraph) if found]
        margin = items[-1] if items else margin if paragraph[0].startswith(" ") else 0
    return done


def process(app: Any, what: str, name: str, obj: object, options: Any, lines: list[str]) -> None:  # noqa: ARG001
    """What autodoc calls with every docstring."""
    lines[:] = translate(lines)


def signature(app: Any, what: str, name: str, obj: Any, *_: Any) -> tuple[str, str] | None:  # noqa: ARG001
    """Policies check names of parameters before they are made, which would hide what the parameters are."""
    if what != "class" or not is_dataclass(obj):
        return None
    from sphinx.util.inspect import stringify_signature  # the tests of this file do without Sphinx

    taken = inspect.signature(obj)
    return stringify_signature(taken, show_return_annotation=False, unqualified_typehints=True), ""


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("autodoc-process-signature", signature)
    app.connect("autodoc-process-docstring", process)
    return {"parallel_read_safe": True}

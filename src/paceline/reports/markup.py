"""HTML from text: what is not markup already is escaped."""

import html
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paceline.reports.tables import Table


class Markup(str):
    """Text that is HTML already; any other text is escaped when it gets into a page."""

    __slots__ = ()


def tag(name: str, *children: str, **attributes: str) -> Markup:
    """An element. An underscore at the end of an attribute's name is dropped, one inside is a hyphen.

    >>> tag("p", "a < b", tag("b", "c"), class_="note")
    '<p class="note">a &lt; b<b>c</b></p>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(value)}"' for key, value in attributes.items()
    )
    return Markup(f"<{name}{written}>{joined(children)}</{name}>")


def joined(children: Iterable[str]) -> Markup:
    """Children one after the other, escaped unless they are markup."""
    return Markup("".join(child if isinstance(child, Markup) else html.escape(child) for child in children))


def table_element(content: "Table", **attributes: str) -> Markup:
    """A table; the first cell of a line is its heading."""
    head = tag("tr", *(tag("th", heading, scope="col") for heading in content.headings))
    body = [tag("tr", tag("th", first, scope="row"), *(cell(text) for text in rest)) for first, *rest in content.rows]
    return tag("table", tag("thead", head), tag("tbody", *body), **attributes)


def cell(text: str) -> Markup:
    """A cell; a broken promise stands out."""
    return tag("td", text, class_="overspent") if text.endswith("OVERSPENT") else tag("td", text)

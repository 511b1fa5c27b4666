"""The one writer of pages: what a report says, as blocks, and two templates that make HTML and Markdown of them.

Text is escaped by the templates. The page needs nothing but itself: figures are inside, and there is no script.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, ClassVar

from paceline import __version__
from paceline.extras import extra
from paceline.reports.tables import Table

if TYPE_CHECKING:
    from jinja2 import Environment

    from paceline.reports.figures import Image


@dataclass(frozen=True)
class Words:
    """A paragraph; ``role`` is lead, note, alarm, source (with links for addresses), heading or verbatim, if any."""

    kind: ClassVar[str] = "words"
    text: str
    role: str = ""


@dataclass(frozen=True)
class Tabled:
    """A table with what it shows; ``words`` sets all columns left."""

    kind: ClassVar[str] = "table"
    table: Table
    caption: str
    words: bool = False


@dataclass(frozen=True)
class Drawing:
    """A figure, with what it shows in words for those who cannot see it, and a caption."""

    name: str
    image: "Image"
    alternative: str
    caption: str

    @property
    def data(self) -> str:
        """The image as a page carries it."""
        return base64.b64encode(self.image.svg.encode()).decode()


@dataclass(frozen=True)
class Figures:
    """Figures side by side, as many as fit, below the colours of the policies."""

    kind: ClassVar[str] = "figures"
    legend: Sequence[str]
    drawn: Sequence[Drawing]
    wide: bool = False  # each takes the whole width


@dataclass(frozen=True)
class Terms:
    """Words and what they mean."""

    kind: ClassVar[str] = "terms"
    meanings: dict[str, str]


@dataclass(frozen=True)
class Fold:
    """Blocks that are shown on demand."""

    kind: ClassVar[str] = "fold"
    title: str
    blocks: "Sequence[Block]"
    note: str = ""


Block = Words | Tabled | Figures | Terms | Fold


@dataclass(frozen=True)
class Section:
    """A part of a page; one without blocks is left out."""

    title: str
    blocks: Sequence[Block]

    @property
    def anchor(self) -> str:
        """Where links lead to.

        >>> Section("All problems together", ()).anchor
        'all-problems-together'
        """
        return "-".join("".join(letter if letter.isalnum() else " " for letter in self.title.lower()).split())

    def __str__(self) -> str:
        """Its words and tables, for a terminal."""
        parts = [getattr(block, "text" if isinstance(block, Words) else "table", "") for block in self.blocks]
        return "\n\n".join([self.title, *(str(part) for part in parts if part)])


@dataclass(frozen=True)
class Page:
    """A report: a title, what it says first, and its sections."""

    title: str
    head: Sequence[Block]
    sections: Sequence[Section]

    def to_html(self) -> str:
        """The page for a browser. Its policy forbids to fetch or run anything, should a label get through."""
        return render("page.html", self)

    def to_markdown(self) -> str:
        """The same for a repository; its figures are in files beside it."""
        return render("page.md", self)

    def drawings(self) -> list[Drawing]:
        """All figures on it."""
        waiting: list[Block] = [block for section in self.sections for block in section.blocks]
        found: list[Drawing] = []
        while waiting:
            block = waiting.pop(0)
            if isinstance(block, Fold):
                waiting = [*block.blocks, *waiting]
            elif isinstance(block, Figures):
                found += block.drawn
        return found


def render(template: str, page: Page) -> str:
    """A page by one of the templates."""
    sections = [section for section in page.sections if section.blocks]
    return environment().get_template(template).render(page=page, sections=sections, version=__version__)


@cache
def environment() -> "Environment":
    """Jinja2, with what templates may call; whatever they print is escaped, if it is not Markdown."""
    with extra("lab", "a report"):
        from jinja2 import Environment, PackageLoader, StrictUndefined
    from paceline.reports.figures import look

    made = Environment(
        loader=PackageLoader("paceline.reports"),
        autoescape=lambda name: name is None or not name.endswith(".md"),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
    made.globals["look"] = look
    return made

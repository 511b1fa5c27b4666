"""Chapters: what an experiment that comes with the package adds to the report on it."""

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paceline.experiments.study import Study
    from paceline.reports.page import Section

# What ``report = "..."`` in an experiment file may say, and where the class is.
CHAPTERS = {
    "figure1": "paceline.experiments.paper_chapter:PaperChapter",
    "figure2": "paceline.experiments.paper_chapter:PaperChapter",
    "prior-work": "paceline.experiments.prior_work_chapter:PriorWorkChapter",
}


class Chapter:
    """One for all studies of a page whose files name it. Derive, override what there is to say, list it in `CHAPTERS`.

    The command line prints `opening` as text; everything else is on the page or beside it.
    """

    title = ""  # of the page
    source = ""  # the work that it is about, with its address
    is_all = False  # whether its opening is all that a terminal shows of its studies

    def __init__(self, studies: "Sequence[Study]", left_out: str = "") -> None:
        self.studies = studies
        self.left_out = left_out  # why this one stands in place of the one that the files name

    def refusal(self) -> str:
        """What keeps it from being told of its studies; nothing if it can be."""
        return ""

    def opening(self) -> "list[Section]":
        """Sections above all others: what all the studies say together."""
        return []

    def heading(self, study: "Study") -> str:
        """What one of several studies is called on the page."""
        return study.name

    def sections(self, study: "Study") -> "list[Section]":  # noqa: ARG002  # for those that override it
        """Sections above the others of one of the studies."""
        return []

    def files(self) -> dict[str, str | bytes]:
        """More files beside the page, by their names."""
        return {}


def read_chapters(studies: "Sequence[Study]") -> list[Chapter]:
    """The chapter of each study; those that name the same class share one, those that name none have an empty one.

    A chapter that cannot be told of its studies is left out: the report on them stands without it, and says why.
    """
    places = [CHAPTERS.get(study.manifest["file"].get("report"), f"{__name__}:Chapter") for study in studies]
    made = {}
    for place in dict.fromkeys(places):
        module, _, name = place.partition(":")
        kind: type[Chapter] = getattr(import_module(module), name)
        own = [study for study, wanted in zip(studies, places, strict=True) if wanted == place]
        chapter = kind(own)
        why = chapter.refusal()
        made[place] = Chapter(own, f"{kind.title!r} cannot be told: {why}") if why else chapter
    return [made[place] for place in places]

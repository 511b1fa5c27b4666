"""Finished runs as one page, with its figures and its tables for spreadsheets and papers beside it."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path

from paceline.errors import InvalidValue
from paceline.experiments import sections
from paceline.experiments.drawings import Drawer
from paceline.experiments.scores import reference_of
from paceline.experiments.study import Study
from paceline.experiments.summary import Line, problems_table, records, resources_in, summarise_runs, summary_table
from paceline.experiments.sweeps import policy_axes
from paceline.experiments.together import standings
from paceline.files import all_or_nothing
from paceline.paper import report as paper
from paceline.problems.theory import limits
from paceline.reports.figures import Image
from paceline.reports.page import Block, Drawing, Figures, Heading, Page, Section, Tabled, Words
from paceline.reports.tables import Table, csv_text

MOST_DRAWN = 12  # problems with figures of their own


@dataclass
class Gathered:
    """What one pass over the results of a study leaves: numbers of every problem, figures of the first ones."""

    study: Study
    prefix: str  # of its files, where there are several studies
    reference: str
    lines: list[list[Line]] = field(default_factory=list)  # by problem, then by policy
    figures: list[Figures] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.together = self.study.new_together()
        axes = policy_axes(self.study.experiment["policies"])[: sections.MOST_SWEEPS]
        for number, (name, results) in enumerate(self.study.results()):
            yardstick = limits(results.problem, self.study.rounds[-1:])
            last, capped = float(yardstick.capped[0]), bool(yardstick.cut[0])
            self.lines.append(summarise_runs(name, results, self.reference, last, capped))
            self.together.add(results, self.study.experiment["problems"][number]["stream"])
            if len(self.figures) < MOST_DRAWN:
                self.figures.append(self.draw.problem(number + 1, results, self.lines[-1], axes))

    @property
    def draw(self) -> Drawer:
        """Who draws."""
        return Drawer(self.prefix, self.reference)

    @cached_property
    def papers(self) -> "paper.Figure | None":
        """What the study says of the paper, if it is one of its figures."""
        number = self.study.manifest["file"].get("figure")
        return None if number is None else paper.Figure(number, self.study[self.study.names[0]])

    @property
    def title(self) -> str:
        """What its part of a page is called."""
        return self.study.name if self.papers is None else f"Figure {self.papers.number}"

    def sections(self) -> list[Section]:
        """The parts of the page, in their order."""
        study, lines = self.study, self.lines
        return [
            *([] if self.papers is None else [paper_section(self.prefix, self.papers)]),
            sections.what_was_run(study),
            sections.together(self.together, len(study), self.reference, self.draw),
            sections.result(lines, self.reference),
            sections.grids(study, lines, self.together, self.reference, self.draw),
            sections.problem_by_problem(lines, self.figures, self.reference),
            sections.provenance(study),
        ]

    def tables(self) -> Iterator[tuple[str, str]]:
        """The tables by the name of their file."""
        resources = resources_in(line for lines in self.lines for line in lines)
        whole = [summary_table(lines, self.reference, resources) for lines in self.lines]
        rows = ((lines[0].problem, *row) for lines, part in zip(self.lines, whole, strict=True) for row in part.rows)
        yield "summary.csv", csv_text(records(self.lines, self.study.experiment))
        yield "summary.tex", Table(("problem", *whole[0].headings), tuple(rows)).to_latex()
        yield "problems.tex", problems_table(self.lines).to_latex()
        if len(self.together) > 1:
            yield "together.csv", csv_text([flat(asdict(each)) for each in self.together.scores(self.reference)])
            yield "together.tex", self.together.table(self.reference).to_latex()


def write_report(
    studies: Study | Sequence[Study], out: str | os.PathLike[str] | None = None, reference: str | None = None
) -> list[Path]:
    """Write report.html, report.md, figures and tables to a folder, by default that of the run; which files they are.

    ``reference`` is the policy that the others are held against: suak unless given, or the first if there is no suak.
    A study of one of the paper's figures has its claims checked, and report.json with the numbers for programs.
    """
    given = [studies] if isinstance(studies, Study) else list(studies)
    folder = given[0].path if out is None else Path(out)
    if folder.exists() and not folder.is_dir():
        raise InvalidValue(f"out must be a folder, got the file {folder}")
    found = [
        Gathered(study, f"{study.path.name}-" if len(given) > 1 else "", reference_of(study.labels, reference))
        for study in given
    ]
    page = page_of(found)
    files: dict[str, str | bytes] = {"report.html": page.to_html(), "report.md": page.to_markdown()}
    for each in found:
        files |= {each.prefix + name: text for name, text in each.tables()}
    files |= paper_files([(each.study, each.papers) for each in found if each.papers is not None])
    for drawing in page.drawings():
        files |= {f"figures/{drawing.name}.svg": drawing.svg, f"figures/{drawing.name}.pdf": drawing.pdf}
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    return [write_whole(folder / name, content) for name, content in files.items()]


def page_of(found: Sequence[Gathered]) -> Page:
    """The whole page: the sections of the only study, or a section for each of several."""
    alone, lines = len(found) == 1, [line for each in found for line in each.lines]
    papers = [each.papers for each in found if each.papers is not None]
    parts = found[0].sections() if alone else [Section(each.title, nested(each)) for each in found]
    parts = [*parts, sections.how_to_read(lines, found[0].reference)]
    ranked = [each.together for each in found if each.together.horizons and len(each.together)]
    if ranked:
        caption = "Regret over that of the best policy of the line [95 % interval over problems]"
        parts = [Section("Every policy beside the best", [Tabled(standings(ranked), caption)]), *parts]
    if papers:
        claims = [claim for each in papers for claim in each.claims]
        caption = (
            "Each claim beside what was measured (± one standard error); to hold, a difference must be beyond noise"
        )
        parts = [Section("The paper's claims", [Tabled(paper.claims_table(claims), caption, words=True)]), *parts]
    names = ", ".join(each.study.name for each in found)
    title = "The paper's experiments, run again" if papers else names if alone else f"Policies compared: {names}"
    sizes = [Words(each.study.size if alone else f"{each.study.name}: {each.study.size}", "lead") for each in found]
    return Page(title, [*sizes, sections.promise(lines)], parts)


def nested(found: Gathered) -> list[Block]:
    """The sections of one of several studies, below each other."""
    return [block for part in found.sections() if part.blocks for block in (Heading(part.title), *part.blocks)]


def paper_section(prefix: str, found: paper.Figure) -> Section:
    """One of the paper's figures, drawn as there, and what it is made of."""
    wide = Figures((), [Drawing(f"{prefix}paper", *found.image, found.told, found.title)], wide=True)
    return Section(
        "As the paper draws it",
        [
            wide,
            Words(found.told),
            Tabled(found.breakdown(), "Pseudo-regret by its causes; without the luck of costs, steady regret"),
            Tabled(found.events(), "SUAK by the events of the paper's proof"),
        ],
    )


def paper_files(found: Sequence[tuple[Study, paper.Figure]]) -> dict[str, str | bytes]:
    """The figures as the paper has them, and all numbers for programs; nothing for other studies."""
    files: dict[str, str | bytes] = {}
    for _, figure in found:
        image: Image = figure.image
        whole: dict[str, str | bytes] = {"svg": image.svg, "pdf": image.pdf, "png": figure.png}
        files |= {f"figure{figure.number}.{ending}": content for ending, content in whole.items()}
    if found:
        files["report.json"] = paper.as_json([(study.manifest, figure) for study, figure in found])
    return files


def flat(record: dict[str, object]) -> dict[str, object]:
    """A record of records as one.

    >>> flat({"label": "suak", "ratio": {"value": 2.0, "low": 1.0}})
    {'label': 'suak', 'ratio.value': 2.0, 'ratio.low': 1.0}
    """
    level: dict[str, object] = {}
    for key, value in record.items():
        level |= {f"{key}.{inner}": part for inner, part in value.items()} if isinstance(value, dict) else {key: value}
    return level


def write_whole(path: Path, content: str | bytes) -> Path:
    """All or nothing."""
    with all_or_nothing(path) as unfinished:
        unfinished.write_bytes(content.encode() if isinstance(content, str) else content)
    return path

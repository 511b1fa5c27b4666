"""Finished runs as one page, with its figures and its tables for spreadsheets and papers beside it."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path

from paceline.errors import InvalidValue
from paceline.experiments import sections
from paceline.experiments.chapters import Chapter, read_chapters
from paceline.experiments.drawings import Drawer
from paceline.experiments.study import Study
from paceline.experiments.summary import Line, problems_table, records, resources_in, summarise_runs, summary_table
from paceline.experiments.sweeps import policy_axes
from paceline.experiments.together import reference_of, standings
from paceline.files import write_whole
from paceline.reports.page import Figures, Page, Section, Tabled, Words
from paceline.reports.tables import Table, csv_text
from paceline.simulation.results import list_names

UNKNOWN = (
    "a report needs worlds that tell their true means as problem, to know the regret, got {} without; Study has their "
    "rewards, costs and pulls"
)
STANDINGS = "Regret over that of the best policy of the line [95 % interval over problems]"
MOST_DRAWN = 12  # problems of a page with figures of their own; each study has one


@dataclass
class Gathered:
    """What one pass over the results of a study leaves: numbers of every problem, figures of the first ones."""

    study: Study
    chapter: Chapter
    prefix: str  # of its files, where there are several studies
    reference: str
    most_drawn: int  # problems
    lines: list[list[Line]] = field(default_factory=list)  # by problem, then by policy
    figures: list[Figures] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.draw = Drawer(self.prefix, self.reference)
        self.together = self.study.together
        axes = policy_axes(self.study.experiment["policies"])[: sections.MOST_SWEEPS]
        known = [entry for entry in self.study.experiment["problems"] if entry["name"] not in self.study.unknown]
        self.experiment = self.study.experiment | {"problems": known}
        for number, (name, results) in enumerate(self.study.results()):
            if not results.problem.is_known:
                continue
            self.lines.append(summarise_runs(name, results, self.reference))
            if len(self.figures) < self.most_drawn:
                drawn = list(self.draw.problem(number + 1, results, self.lines[-1], axes))
                self.figures.append(Figures(list(results), drawn))

    @property
    def title(self) -> str:
        """What it is called on a page with others."""
        return self.chapter.heading(self.study)

    @property
    def told(self) -> str:
        """How much was done."""
        return f"{self.title}: {self.study.size}"

    def sections(self) -> list[Section]:
        """The parts of the page, in their order: first what came out, then what was run."""
        study, lines = self.study, self.lines
        return [
            *self.chapter.sections(study),
            sections.together(self.together, len(lines), self.reference, self.draw),
            sections.result(lines, self.reference),
            sections.grids(self.experiment, lines, self.together, self.reference, self.draw),
            sections.problem_by_problem(lines, self.figures, self.reference),
            sections.what_was_run(study),
            sections.provenance(study),
        ]

    def tables(self) -> Iterator[tuple[str, str]]:
        """The tables by the name of their file."""
        resources = resources_in(line for lines in self.lines for line in lines)
        whole = [summary_table(lines, self.reference, resources) for lines in self.lines]
        rows = ((lines[0].problem, *row) for lines, part in zip(self.lines, whole, strict=True) for row in part.rows)
        yield "summary.csv", csv_text(records(self.lines, self.experiment))
        yield "summary.tex", Table(("problem", *whole[0].headings), tuple(rows)).to_latex()
        yield "problems.tex", problems_table(self.lines).to_latex()
        if len(self.together) > 1:
            yield "together.csv", csv_text([flat(asdict(each)) for each in self.together.scores(self.reference)])
            yield "together.tex", self.together.table(self.reference).to_latex()


class Report:
    """A report on finished runs. What an experiment of the package adds to it is a `Chapter`."""

    def __init__(self, studies: Sequence[Study], reference: str | None = None) -> None:
        several, most_drawn = len(studies) > 1, min(MOST_DRAWN, max(MOST_DRAWN // len(studies), 1))
        gathered = [
            Gathered(
                study,
                chapter,
                f"{study.path.name}-" if several else "",
                reference_of(study.labels, reference),
                most_drawn,
            )
            for study, chapter in zip(studies, read_chapters(studies), strict=True)
        ]
        self.found = [each for each in gathered if each.lines]
        self.chapters = list(dict.fromkeys(each.chapter for each in self.found))
        self.left_out = [chapter.left_out for chapter in self.chapters if chapter.left_out]
        unknown = [f"{name!r} of {study.name}" for study in studies for name in study.unknown]
        if unknown:
            self.left_out.insert(0, UNKNOWN.format(list_names(unknown)))
        if not self.found:
            raise InvalidValue(self.left_out[0])

    @cached_property
    def opening(self) -> list[Section]:
        """What all studies say together, above everything else."""
        ranked = [each.together for each in self.found if each.together.horizons and len(each.together)]
        return [
            Section("Left out", [Words(why) for why in self.left_out]),
            *(section for chapter in self.chapters for section in chapter.opening()),
            Section("Every policy beside the best", [Tabled(standings(ranked), STANDINGS)] if ranked else []),
        ]

    @cached_property
    def page(self) -> Page:
        """The whole page: the sections of the only study, or a section for each of several."""
        lines = [line for each in self.found for line in each.lines]
        names = ", ".join(each.study.name for each in self.found)
        title = next((chapter.title for chapter in self.chapters if chapter.title), f"Policies compared: {names}")
        body, sizes = [nested(each.title, each.sections()) for each in self.found], [each.told for each in self.found]
        if len(self.found) == 1:
            body, sizes = self.found[0].sections(), [self.found[0].study.size]
            title = self.chapters[0].title or names
        sources = (Words(chapter.source, "source") for chapter in self.chapters if chapter.source)
        head = [*sources, *(Words(size, "lead") for size in sizes), sections.promise(lines)]
        return Page(title, head, [*self.opening, *body, sections.how_to_read(lines, self.found[0].reference)])

    def __str__(self) -> str:
        """What matters most, for a terminal."""
        told = [study for chapter in self.chapters if chapter.is_all for study in chapter.studies]
        rest = [each for each in self.found if each.study not in told]
        studies = (f"{each.told}\n\n{each.study.tables()}" for each in rest)
        return "\n\n".join([*studies, *(str(section) for section in self.opening if section.blocks)])

    def write(self, folder: Path) -> list[Path]:
        """Write report.html, report.md, figures and tables to a folder; which files they are."""
        if folder.exists() and not folder.is_dir():
            raise InvalidValue(f"out must be a folder, got the file {folder}")
        files: dict[str, str | bytes] = {"report.html": self.page.to_html(), "report.md": self.page.to_markdown()}
        for each in self.found:
            files |= {each.prefix + name: text for name, text in each.tables()}
        for chapter in self.chapters:
            files |= chapter.files()
        for drawing in self.page.drawings():
            in_figures = f"figures/{drawing.name}"
            files |= {f"{in_figures}.svg": drawing.image.svg, f"{in_figures}.pdf": drawing.image.pdf}
        (folder / "figures").mkdir(parents=True, exist_ok=True)
        return [write_whole(folder / name, content) for name, content in files.items()]


def nested(title: str, parts: Sequence[Section]) -> Section:
    """The sections of one of several studies as one."""
    filled = [part for part in parts if part.blocks]
    return Section(title, [block for part in filled for block in (Words(part.title, "heading"), *part.blocks)])


def flat(record: dict[str, object]) -> dict[str, object]:
    """A record of records as one.

    >>> flat({"label": "suak", "ratio": {"value": 2.0, "low": 1.0}})
    {'label': 'suak', 'ratio.value': 2.0, 'ratio.low': 1.0}
    """
    level: dict[str, object] = {}
    for key, value in record.items():
        level |= {f"{key}.{inner}": part for inner, part in value.items()} if isinstance(value, dict) else {key: value}
    return level

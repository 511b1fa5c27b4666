"""A finished run as one page, with its tables for spreadsheets and papers beside it."""

import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

from paceline.errors import InvalidValue
from paceline.experiments import sections
from paceline.experiments.aggregate import Aggregate
from paceline.experiments.reading import every_result
from paceline.experiments.report_figures import problem_figures
from paceline.experiments.scores import reference_of, score_table
from paceline.experiments.study import Study
from paceline.experiments.summary import Line, problems_table, records, resources_in, summarise_runs, summary_table
from paceline.experiments.sweeps import policy_axes
from paceline.files import all_or_nothing
from paceline.problems.theory import limits
from paceline.reports.export import csv_text, latex
from paceline.reports.markup import Markup
from paceline.reports.page import document
from paceline.reports.tables import Table

PAGE = "report.html"
MOST_DRAWN = 12  # problems with figures of their own


@dataclass
class Gathered:
    """What one pass over the results leaves: numbers of every problem, figures of the first ones."""

    reference: str
    aggregate: Aggregate
    lines: list[list[Line]] = field(default_factory=list)  # by problem, then by policy
    figures: list[Markup] = field(default_factory=list)


def write_report(study: Study, out: str | os.PathLike[str] | None = None, reference: str | None = None) -> list[Path]:
    """Write report.html and tables in CSV and LaTeX to a folder, by default that of the run; which files they are.

    ``reference`` is the policy that the others are held against: suak unless given, or the first if there is no suak.
    """
    folder = study.path if out is None else Path(out)
    if folder.exists() and not folder.is_dir():
        raise InvalidValue(f"out must be a folder, got the file {folder}")
    found = gather(study, reference_of(study.labels, reference))
    files = {PAGE: page(study, found), **tables(study, found)}
    folder.mkdir(parents=True, exist_ok=True)
    return [write_text(folder / name, text) for name, text in files.items()]


def gather(study: Study, reference: str) -> Gathered:
    """Read everything once, a problem at a time."""
    found = Gathered(reference, Aggregate(study.manifest["name"], reference))
    axes = policy_axes(study.experiment["policies"])
    streams = {entry["name"]: entry["stream"] for entry in study.experiment["problems"]}
    for name, results in every_result(study):
        yardstick = limits(results.problem, study.rounds[-1:])
        last, capped = float(yardstick.capped[0]), bool(yardstick.cut[0])
        found.lines.append(summarise_runs(name, results, reference, last, capped))
        if last > 0.0:
            found.aggregate.add(results, streams[name])
        if len(found.figures) < MOST_DRAWN:
            found.figures.append(problem_figures(results, found.lines[-1], axes))
    return found


def page(study: Study, found: Gathered) -> str:
    """The whole page."""
    parts = {
        "What was run": sections.what_was_run(study),
        "All problems together": sections.together(found.aggregate, len(study), study.rounds),
        "Result" if len(study) == 1 else "Means on every problem": sections.result(found.lines, found.reference),
        "Grids": sections.grids(study, found.lines, found.aggregate),
        "Problem by problem": sections.problem_by_problem(found.lines, found.figures, found.reference),
        "Provenance": sections.provenance(study),
        "How to read this": sections.how_to_read(found.lines, found.reference),
    }
    head, body = sections.assemble(study, found.lines, parts)
    return document(study.manifest["name"], head, body, sections.foot())


def tables(study: Study, found: Gathered) -> dict[str, str]:
    """The tables by the name of their file."""
    resources = resources_in(line for lines in found.lines for line in lines)
    whole = [summary_table(lines, found.reference, resources) for lines in found.lines]
    rows = ((lines[0].problem, *row) for lines, part in zip(found.lines, whole, strict=True) for row in part.rows)
    files = {
        "summary.csv": csv_text(records(found.lines, study.experiment)),
        "summary.tex": latex(Table(("problem", *whole[0].headings), tuple(rows))),
        "problems.tex": latex(problems_table(found.lines)),
    }
    if found.aggregate.worthwhile:
        scores = found.aggregate.scores
        files["together.csv"] = csv_text([flat(asdict(score)) for score in scores])
        files["together.tex"] = latex(score_table(scores, found.reference, sum(found.aggregate.ends.capped)))
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


def write_text(path: Path, text: str) -> Path:
    """All or nothing."""
    with all_or_nothing(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8", newline="\n")
    return path

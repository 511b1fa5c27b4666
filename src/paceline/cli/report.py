"""``paceline report``: finished runs as a page, figures and tables."""

import argparse
from pathlib import Path

SUMMARY = "make a page, figures, CSV and LaTeX tables of a finished run"
DESCRIPTION = """\
Make a report of the run in a folder that `paceline run` has finished: report.html, one page with all figures inside;
report.md, the same for a repository; the figures as SVG and PDF in figures/; and the tables as summary.csv, summary.tex
and problems.tex, with several problems also together.csv and together.tex. A folder with the folders of several runs,
as `paceline compare` and `paceline reproduce` leave it, gets one page for all of them.

  paceline report experiment
  paceline report experiment --reference thompson --out public
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    parser.add_argument("folder", type=Path, metavar="DIR", help="the folder of a finished run, or of several")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder to write to (default: that of the run)")
    parser.add_argument(
        "--reference", metavar="POLICY", help="policy to hold the others against (default: suak, else the first)"
    )


def run(options: argparse.Namespace) -> None:
    """Read, draw, write."""
    from paceline.experiments.report import Report
    from paceline.experiments.study import read_studies

    out = options.out or options.folder
    report = Report(read_studies(options.folder), options.reference)
    files = report.write(out)
    beside = [path for path in files if path.parent == out]
    drawn = len(files) - len(beside)
    for why in report.left_out:
        print(f"Left out: {why}")
    print(f"Written to {out}: {', '.join(path.name for path in beside)} and {drawn} files in figures")

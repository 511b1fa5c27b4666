"""``paceline report``: a finished run as a page and tables."""

import argparse
from pathlib import Path

SUMMARY = "make a page, CSV and LaTeX tables of a finished run"
DESCRIPTION = """\
Make a report of the run in a folder that `paceline run` has finished: report.html, one page with all figures inside,
and its tables as summary.csv, summary.tex and problems.tex; with several problems also together.csv and together.tex.

  paceline report experiment
  paceline report experiment --reference thompson --out public
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    parser.add_argument("folder", type=Path, metavar="DIR", help="the folder of a finished run")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder to write to (default: that of the run)")
    parser.add_argument(
        "--reference", metavar="POLICY", help="policy to hold the others against (default: suak, else the first)"
    )


def run(options: argparse.Namespace) -> None:
    """Read, draw, write."""
    from paceline.experiments.reading import read_study
    from paceline.experiments.report import write_report

    files = write_report(read_study(options.folder), options.out, options.reference)
    print(f"Written to {files[0].parent}: {', '.join(path.name for path in files)}")

"""``paceline diff``: two finished runs beside each other."""

import argparse
from pathlib import Path

SUMMARY = "compare two finished runs: settings, code and numbers"
DESCRIPTION = """\
Compare the runs in two folders: what differs in the experiments, in the code and in the machines, and whether the
numbers are the same. Where they are not, the mean steady regret of each policy on each problem in both, with the
difference and its 95 % interval, paired by trial if both played the same random numbers.

  paceline diff before after

The exit code is 0 if the numbers are identical, 1 if they differ, 2 if a folder cannot be read.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    parser.add_argument("first", type=Path, metavar="A", help="the folder of a finished run")
    parser.add_argument("second", type=Path, metavar="B", help="the folder of another")


def run(options: argparse.Namespace) -> int:
    """Read both, compare, say; the exit code."""
    from paceline.experiments.diff import compare_studies
    from paceline.experiments.study import Study

    found = compare_studies(Study.open(options.first), Study.open(options.second))
    print(found)
    return 0 if found.identical else 1

"""``paceline reproduce``: the paper's two experiments."""

import argparse

from paceline.cli.run import add_shipped, play_shipped

SUMMARY = "run the paper's two experiments and check its claims"
DESCRIPTION = """\
Run the paper's two experiments at full scale, behind the guard, for SUAK, One Phase (OPS), Primal Dual (PDS) and UCB
Simplex (USS), with other constants where the paper leaves room for them, and beside them for policies that the paper
does not have: index, thompson, epsilon-greedy and greedy.

  Figure 1: 3 arms, 10 trials of 500,000 rounds
  Figure 2: 8 arms, 10 trials of 2,500,000 rounds

Each is an experiment file that comes with the package (--show prints it), and a run that can be interrupted. Writes the
figures as PNG, PDF and SVG, one page (report.html, report.md), report.json for programs, and the raw totals, and prints
every claim of the paper beside what was measured.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    parser.add_argument("--figure", type=int, choices=(1, 2), help="only this figure (default: both)")
    parser.add_argument("--rounds", type=int, metavar="N", help="rounds of a trial (default: the paper's)")
    parser.add_argument("--trials", type=int, metavar="N", help="trials (default: 10, the paper's)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of all random numbers (default: 0)")
    add_shipped(parser, "paceline-report")


def run(options: argparse.Namespace) -> None:
    """Run, report, print what was found."""
    from paceline.experiments.shipped import papers_experiment

    figures = (options.figure,) if options.figure else (1, 2)
    play_shipped([papers_experiment(each, options.rounds, options.trials, options.seed) for each in figures], options)

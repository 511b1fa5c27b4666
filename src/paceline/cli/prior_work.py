"""``paceline prior-work``: the systems of the field, behind one guard, on the same draws."""

import argparse

from paceline.cli.run import add_shipped, play_shipped

SUMMARY = "play the systems that the paper names, side by side, and make a survey of them"
DESCRIPTION = """\
Play every system of the field that the library has on the paper's two problems
(with a quarter and a sixteenth of the rounds, too, to see how regret grows), on
data of Kumar and Kleinberg, with a total budget, with two resources, with
refills, and without the guard. A policy is left out where it cannot play.

Writes a survey to the folder: report.html with a figure and tables of regret,
skips, growth beside what was proved, violations and time (prior-work.png, .svg,
.pdf, .csv, each table as .tex), and the raw results of each part. A run that
was interrupted goes on where it was.

    paceline prior-work
    paceline prior-work --rounds 50000 --trials 3 --policies suak,queue,index
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument("--rounds", type=int, metavar="N", help="rounds of a trial (default: 500000)")
    parser.add_argument("--trials", type=int, metavar="N", help="trials (default: 6)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of all random numbers (default: 0)")
    parser.add_argument(
        "--policies",
        nargs="+",
        metavar="NAME",
        help="only these, by the labels of --show, with commas or spaces between them (default: all)",
    )
    add_shipped(parser, "paceline-prior-work")


def run(options: argparse.Namespace) -> None:
    """Play, report, print the survey."""
    from paceline.experiments.prior_work import prior_work_experiments

    policies = options.policies and [label for given in options.policies for label in given.split(",")]
    play_shipped(prior_work_experiments(options.rounds, options.trials, options.seed, policies), options)

"""``paceline reproduce``: the paper's two experiments."""

import argparse
import sys
from functools import partial
from pathlib import Path

SUMMARY = "run the paper's two experiments and check its claims"
DESCRIPTION = """\
Run the paper's two experiments at full scale, behind the guard, for SUAK, One Phase (OPS), Primal Dual (PDS) and UCB
Simplex (USS), with other constants where the paper leaves room for them, and beside them for policies that the paper
does not have: index, thompson, epsilon-greedy and greedy.

  Figure 1: 3 arms, 10 trials of 500,000 rounds
  Figure 2: 8 arms, 10 trials of 2,500,000 rounds

Writes the figures as PNG, PDF and SVG, the raw totals (figure1.npz, figure2.npz), report.md and report.json, and prints
every claim of the paper beside what was measured.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    parser.add_argument("--figure", type=int, choices=(1, 2), help="only this figure (default: both)")
    parser.add_argument("--rounds", type=int, metavar="N", help="rounds of a trial (default: the paper's)")
    parser.add_argument("--trials", type=int, metavar="N", help="trials (default: 10, the paper's)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of all random numbers (default: 0)")
    parser.add_argument(
        "--formats",
        default="png,pdf,svg",
        metavar="LIST",
        help="formats of the figures besides png, of pdf and svg (default: %(default)s)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("paceline-report"),
        metavar="DIR",
        help="folder to write to (default: %(default)s)",
    )


def run(options: argparse.Namespace) -> None:
    """Run, draw, report."""
    from paceline.cli.compile import on_screen
    from paceline.compile import compile_ahead
    from paceline.paper import reproduce
    from paceline.paper.claims import times_less

    reproduce.check_scale(options.rounds, options.trials, options.seed)
    formats = reproduce.check_formats(name.strip() for name in options.formats.split(","))
    options.out.mkdir(parents=True, exist_ok=True)
    prepare = partial(compile_ahead, uses=["simulation"], say=on_screen)
    done = []
    for figure in (options.figure,) if options.figure else (1, 2):
        print(f"Figure {figure}: {reproduce.EXPERIMENTS[figure].title}", file=sys.stderr)
        result = reproduce.reproduce(figure, options.rounds, options.trials, options.seed, True, prepare)
        result.results.save(options.out / f"figure{figure}.npz")
        reproduce.draw(result, options.out, formats)
        done.append(result)
    reproduce.write_report(done, options.out)
    for result in done:
        print(f"\n{result.experiment.title}, {result.results.trials} trials of {result.results.rounds[-1]:,} rounds\n")
        print(result.results.table())
        print(f"\n{times_less(result.results.runs)}")
    print()
    print(reproduce.claims_table(claim for result in done for claim in result.claims))
    print(f"\nWritten to {options.out}: {', '.join(sorted(path.name for path in options.out.iterdir()))}")

"""``paceline run``: an experiment file, on this machine or on a cluster."""

import argparse
import sys
from pathlib import Path

SUMMARY = "run an experiment file, on this machine or on a cluster"
DESCRIPTION = """\
Run the experiment in a TOML file: policies on problems, with grids over any parameter. Says what it will do, then does
what is missing in the output folder. An interrupted run goes on where it was; the numbers are the same on every engine.

  paceline run experiment.toml
  paceline run experiment.toml --processes
  paceline run experiment.toml --dask tcp://scheduler:8786
  paceline run experiment.toml --dask local --workers 4

Writes manifest.json and totals.parquet to the output folder; `paceline report DIR` makes a page of them.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    parser.add_argument("experiment", type=Path, metavar="FILE", help="the experiment, a TOML file")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder to write to (default: named after the file)")
    engines = parser.add_mutually_exclusive_group()
    engines.add_argument("--processes", action="store_true", help="work in processes instead of threads")
    engines.add_argument("--dask", metavar="ADDRESS", help="work on a Dask cluster; `local` starts one here")
    parser.add_argument("--workers", type=int, metavar="N", help="threads, processes or local Dask workers")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done and stop")


def run(options: argparse.Namespace) -> None:
    """Read, say, do."""
    from paceline.cli.compile import on_screen
    from paceline.experiments.experiment import Experiment
    from paceline.experiments.folder import check_folder
    from paceline.experiments.messages import plan
    from paceline.experiments.runner import run_experiment

    experiment = Experiment.read(options.experiment)
    out = options.out or options.experiment.with_suffix("")
    check_folder(out, experiment)
    print(plan(experiment, out, options.workers, on_screen), file=sys.stderr)
    if options.dry_run:
        return
    study = run_experiment(
        experiment,
        out,
        "processes" if options.processes else None,
        dask=options.dask,
        workers=options.workers,
        progress=True,
    )
    print(study.table())
    print(f"Written to {out}: {', '.join(sorted(path.name for path in out.iterdir() if path.name[0] != '.'))}")

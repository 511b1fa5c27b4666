"""``paceline run``: an experiment file, on this machine or on a cluster."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from paceline.errors import InvalidValue

if TYPE_CHECKING:
    from paceline.experiments.experiment import Experiment
    from paceline.experiments.study import Study

SUMMARY = "run an experiment file, on this machine or on a cluster"
DESCRIPTION = """\
Run the experiment in a TOML file: policies on problems, with grids over any parameter. Says what it will do, then does
what is missing in the output folder. An interrupted run goes on where it was; the numbers are the same on every engine.
A finished one can be extended, by a file with more trials, policies, problems or checkpoints, or by --trials and
--checkpoints: only what is missing is played, and no number that is there changes.

  paceline run experiment.toml
  paceline run --trials 40 experiment
  paceline run experiment.toml --processes
  paceline run experiment.toml --dask tcp://scheduler:8786
  paceline run experiment.toml --dask local --workers 4

Writes manifest.json and totals.parquet to the output folder; `paceline report DIR` makes a page of them.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    parser.add_argument("experiment", type=Path, nargs="?", metavar="FILE", help="a TOML file, or the folder of a run")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder to write to (default: named after the file)")
    parser.add_argument("--trials", type=int, metavar="N", help="trials, in place of those in the file")
    parser.add_argument("--checkpoints", type=int, metavar="N", help="checkpoints, in place of those in the file")
    add_engines(parser)
    parser.add_argument("--dry-run", action="store_true", help="say what would be done and stop")
    parser.add_argument("--schema", action="store_true", help="print the JSON schema of experiment files and stop")


def add_engines(parser: argparse.ArgumentParser) -> None:
    """Options of all commands that play."""
    engines = parser.add_mutually_exclusive_group()
    engines.add_argument("--processes", action="store_true", help="work in processes instead of threads")
    engines.add_argument("--dask", metavar="ADDRESS", help="work on a Dask cluster; `local` starts one here")
    parser.add_argument("--workers", type=int, metavar="N", help="threads, processes or local Dask workers")


def run(options: argparse.Namespace) -> None:
    """Read, say, do."""
    from paceline.experiments.experiment import Experiment
    from paceline.experiments.folder import MANIFEST, experiment_in
    from paceline.experiments.spec import experiment_schema

    if options.schema:
        print(json.dumps(experiment_schema(), indent=1))
        return
    if options.experiment is None:
        raise InvalidValue("paceline run takes a TOML file or the folder of a run, got neither")
    changes = {key: getattr(options, key) for key in ("trials", "checkpoints") if getattr(options, key) is not None}
    is_run = (options.experiment / MANIFEST).exists()
    experiment = (experiment_in if is_run else Experiment.read)(options.experiment, **changes)
    out = options.out or (options.experiment if is_run else options.experiment.with_suffix(""))
    if options.dry_run:
        announce(experiment, out, options)
        return
    page = out / "report.html"
    had_page = page.exists()
    print(play(experiment, out, options).table())
    tell_files(out)
    if had_page and not page.exists():
        print(f"The report was on less than there is now, and is gone; `paceline report {out}` makes a new one")
    if is_older(out.parent / page.name, out):
        print(f"The report in {out.parent} was made before; `paceline report {out.parent}` makes a new one")


def is_older(page: Path, folder: Path) -> bool:
    """Whether a page on several runs was made before the one in a folder had all its results."""
    from paceline.experiments.cells import TOTALS

    if not page.exists() or page.stat().st_mtime >= (folder / TOTALS).stat().st_mtime:
        return False
    return "Made by paceline" in page.read_text(encoding="utf-8", errors="replace")


def announce(experiment: "Experiment", out: Path, options: argparse.Namespace) -> None:
    """Say what will be done."""
    from paceline.cli.compile import on_screen
    from paceline.experiments.plan import plan
    from paceline.machine import cores

    threads = options.dask is None and not options.processes
    print(plan(experiment, out, options.workers or cores(), threads, on_screen), file=sys.stderr)


def play(experiment: "Experiment", out: Path, options: argparse.Namespace) -> "Study":
    """Say what will be done, and do it."""
    from paceline.experiments.runner import run_experiment

    announce(experiment, out, options)
    engine = "processes" if options.processes else None
    return run_experiment(experiment, out, engine, dask=options.dask, workers=options.workers, progress=True)


def add_shipped(parser: argparse.ArgumentParser, out: str) -> None:
    """Options of the commands that play an experiment of the package."""
    parser.add_argument(
        "--out", type=Path, default=Path(out), metavar="DIR", help="folder to write to (default: %(default)s)"
    )
    add_engines(parser)
    parser.add_argument("--show", action="store_true", help="print the experiment files and stop")


def play_shipped(experiments: "Sequence[Experiment]", options: argparse.Namespace) -> None:
    """Print the files of experiments of the package; or play them, write one report on all, and print its beginning."""
    from paceline.experiments.folder import check_folder
    from paceline.experiments.report import Report
    from paceline.problems.toml import to_toml

    if options.show:
        print("\n".join(f"# {each.name}.toml\n{to_toml(each.table)}" for each in experiments), end="", flush=True)
        if len(experiments) > 1:
            said = "each begins with a line # NAME.toml, and is run from a file of its own"
            print(f"{len(experiments)} experiment files: {said}", file=sys.stderr)
        return
    for each in experiments:
        check_folder(options.out / each.name, each)  # all, before the first is begun
    report = Report([play(each, options.out / each.name, options) for each in experiments])
    report.write(options.out)
    print(f"{report}\n")
    tell_files(options.out)


def tell_files(out: Path) -> None:
    """What there is to look at."""
    print(f"Written to {out}: {', '.join(sorted(path.name for path in out.iterdir() if path.name[0] != '.'))}")

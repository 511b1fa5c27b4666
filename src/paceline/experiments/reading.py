"""A finished run, read with the suspicion that a report or a comparison needs: all of it is there, or an error."""

import os
from collections.abc import Iterator
from pathlib import Path

from paceline.errors import UnreadableFile
from paceline.experiments.folder import MANIFEST, TOTALS
from paceline.experiments.study import Study
from paceline.simulation.results import Results

IN_MANIFEST = {"name": str, "kernels": str, "begun": str, "versions": dict, "host": dict, "file": dict, "spells": list}


def read_study(path: str | os.PathLike[str]) -> Study:
    """The finished run in a folder; a manifest of the wrong form is an error that says so."""
    try:
        study = Study.open(path)
        entries = [*study.experiment["problems"], *study.experiment["policies"]]
        whole = (
            all(isinstance(study.manifest[key], kind) for key, kind in IN_MANIFEST.items())
            and all(isinstance(entry["swept"], dict) for entry in entries)
            and all(isinstance(study.experiment[key], int) for key in ("trials", "seed"))
            and min(len(study.problems), len(study.labels), len(study.rounds)) > 0
        )
    except UnreadableFile:
        raise
    except (LookupError, TypeError, ValueError, AttributeError):
        whole = False
    if not whole:
        raise UnreadableFile(f"{Path(path) / MANIFEST} must be the manifest of a run; it is damaged or foreign")
    return study


def every_result(study: Study) -> Iterator[tuple[str, Results]]:
    """The results on every problem by its name, in their order, one in memory at a time, each of them whole."""
    trials = study.experiment["trials"]
    found = 0
    try:
        for number, results in study.results():
            whole = list(results) == study.labels and all(len(run.min_headroom) == trials for run in results.values())
            if number != found or not whole:
                break
            yield study.names[number], results
            found += 1
    except UnreadableFile:
        raise
    except (LookupError, TypeError, ValueError) as error:
        raise UnreadableFile(f"{study.path / TOTALS} must fit its manifest; it is damaged or foreign") from error
    if found < len(study):
        raise UnreadableFile(
            f"{study.path / TOTALS} must hold {trials} trials of every policy on every problem; "
            f"those on {study.names[found]!r} are missing or damaged"
        )

"""Two finished runs beside each other: what was asked for, by what code, and whether the numbers agree."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from paceline.experiments.study import Study
from paceline.experiments.summary import signed
from paceline.reports.tables import Table, mean_and_interval
from paceline.simulation.results import Results, Run, list_names
from paceline.simulation.totals import differences, subset
from paceline.statistics import Estimate, mean_difference, three_digits

Floats = npt.NDArray[np.float64]

LONGEST = 60  # letters of a setting that are shown


@dataclass(frozen=True)
class Compared:
    """One policy on one problem in both runs, at the last checkpoint that both have.

    ``differs_in``    the totals that are not the same to the last bit in the trials and checkpoints of both; "problem"
                      if they are held against different problems of the same name.
    ``difference``    mean steady regret of the second minus the first, open if a run has a single trial; paired by
                      trial if they played the same random numbers in as many trials.
    ``largest``       the largest absolute difference of steady regret in any trial at any checkpoint; nothing if the
                      trials played other random numbers.
    """

    problem: str
    policy: str
    first: Floats  # final steady regret of each trial
    second: Floats
    paired: bool
    difference: Estimate
    largest: float | None
    differs_in: tuple[str, ...]


@dataclass(frozen=True)
class Difference:
    """What `compare_studies` finds.

    ``settings``    (what, in the first, in the second), of the experiments, code and machines.
    ``one_sided``   sentences on what only one of the runs has.
    """

    settings: tuple[tuple[str, str, str], ...]
    one_sided: tuple[str, ...]
    compared: tuple[Compared, ...]
    last: int | None  # the round at which they are compared

    @property
    def identical(self) -> bool:
        """Whether both hold the same numbers, to the last bit, and nothing else."""
        return not self.one_sided and not any(entry.differs_in for entry in self.compared)

    def __str__(self) -> str:
        return "\n\n".join(paragraphs(self))


def compare_studies(first: Study, second: Study) -> Difference:
    """Compare two runs, a problem at a time."""
    common = np.intersect1d(first.rounds, second.rounds)
    compared: list[Compared] = []
    if common.size:
        for name, one, other in both(first, second):
            same_draws = draws_of(first, name) == draws_of(second, name)
            labels = [label for label in first.labels if label in second.labels]
            compared += [compare(name, one[label], other[label], common, same_draws) for label in labels]
    return Difference(
        settings=tuple(settings(first.manifest, second.manifest)),
        one_sided=tuple(one_sided(first, second)),
        compared=tuple(compared),
        last=int(common[-1]) if common.size else None,
    )


def both(first: Study, second: Study) -> Iterator[tuple[str, Results, Results]]:
    """The problems that both have; what the second has in another order waits in memory."""
    waiting: dict[str, Results] = {}
    others = second.results()
    for name, results in first.results():
        while name in second.names and name not in waiting:
            found, other = next(others)
            if found in first.names:
                waiting[found] = other
        if name in waiting:
            yield name, results, waiting.pop(name)
    for _ in others:
        pass  # what is left must be whole, too


def draws_of(study: Study, name: str) -> tuple[object, ...]:
    """Which random numbers the trials on a problem play."""
    entry = study.experiment["problems"][study.names.index(name)]
    return study.seed, entry["stream"], entry.get("apart")


def compare(problem: str, one: Run, other: Run, common: npt.NDArray[np.int64], same_draws: bool) -> Compared:
    """The runs of one policy on one problem."""
    first, second = (run.steady_regret[:, np.isin(run.rounds, common)] for run in (one, other))
    trials = min(len(first), len(second))
    paired = same_draws and len(first) == len(second)
    return Compared(
        problem=problem,
        policy=one.label,
        first=first[:, -1],
        second=second[:, -1],
        paired=paired,
        difference=mean_difference(second[:, -1], first[:, -1], paired=paired),
        largest=float(np.abs(second[:trials] - first[:trials]).max()) if same_draws else None,
        differs_in=(
            *(() if one.problem == other.problem else ("problem",)),
            *differences(*(subset(run.totals, slice(trials), np.isin(run.rounds, common)) for run in (one, other))),
        ),
    )


def settings(first: dict[str, Any], second: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """What differs in the manifests, but for the times; what only one of them has is for `one_sided`."""
    one, other = describe_settings(first), describe_settings(second)
    for what, value in one.items():
        if value != other.get(what, value):
            yield what, *apart(value, other[what])


def describe_settings(manifest: dict[str, Any]) -> dict[str, str]:
    """Everything that can differ between runs, in a line each."""
    experiment = manifest["experiment"]
    return {
        "name": manifest["name"],
        **{key: str(experiment[key]) for key in ("trials", "seed")},
        "rounds": f"{experiment['rounds'][-1]:,}",
        "checkpoints": ", ".join(map(str, experiment["rounds"])),
        **{
            f"problem {entry['name']}": json.dumps({"stream": entry["stream"], **entry["problem"]}, sort_keys=True)
            for entry in experiment["problems"]
        },
        **{f"policy {entry['label']}": entry["policy"] for entry in experiment["policies"]},
        "kernels": manifest["kernels"],
        **{f"{name} version": str(value) for name, value in manifest["versions"].items()},
        **{f"host: {name}": str(value) for name, value in manifest["host"].items()},
    }


def apart(one: str, other: str) -> tuple[str, str]:
    """Two texts short enough for a table, cut around the first place where they differ.

    >>> apart("x" * 100 + "1", "x" * 100 + "2")[1][-3:], apart("a", "b")
    ('xx2', ('a', 'b'))
    """
    if max(len(one), len(other)) <= LONGEST:
        return one, other
    same = next((at for at, (left, right) in enumerate(zip(one, other, strict=False)) if left != right), LONGEST)
    begin = max(same - LONGEST // 2, 0)
    end = begin + LONGEST
    before = "…" if begin else ""
    first, second = (before + text[begin:end] + ("…" if end < len(text) else "") for text in (one, other))
    return first, second


def one_sided(first: Study, second: Study) -> Iterator[str]:
    """Sentences on what only one of the runs has."""
    for word, study, other in (("first", first, second), ("second", second, first)):
        own = {
            "problems": [name for name in study.names if name not in other.names],
            "policies": [label for label in study.labels if label not in other.labels],
            "checkpoints": [f"{at:,}" for at in np.setdiff1d(study.rounds, other.rounds).tolist()],
        }
        for kind, names in own.items():
            if names:
                yield f"{kind} only in the {word}: {list_names(names, 8, '; ')}"
        trials = study.experiment["trials"], other.experiment["trials"]
        if trials[0] > trials[1]:
            yield f"trials only in the {word}: {trials[1] + 1} to {trials[0]}"


def paragraphs(found: Difference) -> Iterator[str]:
    """The comparison in words and tables."""
    if found.settings:
        yield str(Table(("", "first", "second"), found.settings))
    else:
        yield "The experiments, the code and the machines are the same."
    if found.one_sided:
        yield "\n".join(found.one_sided)
    changed = [entry for entry in found.compared if entry.differs_in]
    if found.identical:
        yield f"The numbers are identical: {len(found.compared):,} runs, to the last bit."
    elif not found.compared:
        yield "No policy on any problem has a checkpoint in both runs: there is nothing to compare."
    elif not changed:
        yield f"What both have is identical: {len(found.compared):,} runs, to the last bit."
    else:
        yield f"The numbers differ in {len(changed):,} of {len(found.compared):,} runs that both have."
        yield str(table(changed, found.last or 0))
        pairs = "paired by trial" + ("" if all(entry.paired for entry in changed) else "; in round brackets unpaired")
        yield f"Difference: second minus first, with its 95 % interval, {pairs}."


def table(changed: list[Compared], last: int) -> Table:
    """A line for each run that differs."""
    headings = (
        "problem",
        "policy",
        f"first, steady regret at {last:,}",
        "second",
        "difference",
        "largest difference",
        "differs in",
    )
    rows = tuple(
        (
            entry.problem,
            entry.policy,
            mean_and_interval(entry.first),
            mean_and_interval(entry.second),
            difference(entry),
            "–" if entry.largest is None else three_digits(entry.largest),
            ", ".join(entry.differs_in),
        )
        for entry in changed
    )
    return Table(headings, rows)


def difference(entry: Compared) -> str:
    """The difference of the means and its interval, in round brackets if it is not paired."""
    told = entry.difference.written(signed)
    return told if entry.paired else told.translate(str.maketrans("[]", "()"))

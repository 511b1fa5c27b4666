"""The systems of the field on their own problems and on those of the paper: `paceline prior-work`, `pl.prior_work`."""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, NamedTuple

from paceline import checks, paper
from paceline.errors import InvalidValue
from paceline.experiments.entries import read_policies, read_problems
from paceline.experiments.experiment import Experiment, check_policy
from paceline.experiments.runner import run_experiment
from paceline.experiments.study import Study
from paceline.paper.instances import PAPERS
from paceline.problems.toml import read_toml

FILE = Path(paper.__file__).with_name("prior-work.toml")
FEWEST = 1600  # rounds, of which a sixteenth is played, too
APART = 2**40  # from the streams of a problem to those of the next one


class Part(NamedTuple):
    """A study: some problems of the file, a part of its rounds, behind the guard or not."""

    name: str
    problems: Sequence[str]
    divisor: int = 1
    guard: bool = True


PARTS = (
    Part("papers", tuple(PAPERS)),
    Part("papers-quarter", tuple(PAPERS), 4),
    Part("papers-sixteenth", tuple(PAPERS), 16),
    Part("one-resource", ("learning", "total budget")),
    Part("refilled", ("case 3",)),
    Part("two-resources", ("two resources",)),
    Part("two-refilled", ("two refilled",)),
    Part("free", ("three-arms",), guard=False),
    Part("free-two-refilled", ("two refilled",), guard=False),
)


def prior_work(
    rounds: int | None = None,
    trials: int | None = None,
    seed: int = 0,
    *,
    policies: Sequence[str] | None = None,
    executor: str | Executor | None = None,
    progress: bool = False,
    out: str | os.PathLike[str] | None = None,
) -> dict[str, Study]:
    """Play the systems of the field, each on every problem that it can play: the paper's two, those of Kumar and
    Kleinberg, a total budget, two resources, refills, and without the guard.

    On the paper's problems a quarter and a sixteenth of the ``rounds`` are played, too, each with its own horizon: that
    is what growth is read off. ``policies`` are labels of the file, for some of the systems only. The studies come by
    their names; with a folder ``out`` each stays in a folder of its own there, and can go on after an interruption.

    >>> list(prior_work(rounds=1600, trials=2, policies=["suak"]))  # which is for one resource
    ['papers', 'papers-quarter', 'papers-sixteenth', 'one-resource', 'refilled', 'free']
    """
    folder = None if out is None else Path(out)
    return {
        each.name: run_experiment(each, folder and folder / each.name, executor, progress=progress)
        for each in prior_work_experiments(rounds, trials, seed, policies)
    }


def prior_work_experiments(
    rounds: int | None, trials: int | None, seed: int, policies: Sequence[str] | None = None
) -> list[Experiment]:
    """The experiment of each part that somebody can play, perhaps at another scale."""
    table = read_toml(FILE)
    table["policy"] = chosen(table["policy"], policies)
    usual = table["rounds"]
    wanted = usual if rounds is None else checks.whole("rounds of prior-work", rounds, FEWEST, checks.MOST_ROUNDS)
    changes = {"seed": seed} | ({} if trials is None else {"trials": trials})
    found = (experiment_of(part, table | changes, wanted, usual) for part in PARTS)
    return [each for each in found if each is not None]


def chosen(entries: list[dict[str, Any]], wanted: Sequence[str] | None) -> list[dict[str, Any]]:
    """The policies of the file with these labels, or all; a name that is no label stands for all that have it."""
    called: dict[str, list[dict[str, Any]]] = {entry.get("label", entry["name"]): [entry] for entry in entries}
    for name in {entry["name"] for entry in entries} - called.keys():
        called[name] = [entry for entry in entries if entry["name"] == name]
    if wanted is None:
        return entries
    if isinstance(wanted, str) or not wanted:
        raise InvalidValue(f"policies of prior-work must be a list of labels, got {wanted!r}")
    return [
        entry for label in wanted for entry in called[checks.one_of("each policy of prior-work", label, tuple(called))]
    ]


def experiment_of(part: Part, table: Mapping[str, Any], wanted: int, usual: int) -> Experiment | None:
    """One part: its problems with the same draws as in any other, stocks and windows for its rounds, who can play.

    Nothing where none can.
    """
    rounds = wanted // part.divisor
    named = {entry.get("name", entry.get("paper")): entry for entry in table["problem"]}
    places = {name: place for place, name in enumerate(named)}
    problems = [
        named[name]
        | {"streams": {"first": places[name] * APART}}
        | ({"start": named[name]["start"] * rounds / usual} if "start" in named[name] else {})
        for name in part.problems
    ]
    first = max(min(table["checkpoints"]["first"], rounds // 10), 1)
    policies = [
        entry | {"window": max(entry["window"], rounds)} if "window" in entry else entry for entry in table["policy"]
    ]
    able = [entry for entry in policies if can_play(entry, problems, rounds)]
    if not able:
        return None
    changes = {
        "name": part.name,
        "rounds": rounds,
        "checkpoints": table["checkpoints"] | {"first": first},
        "policy": able,
        "problem": problems,
    }
    return Experiment.from_table(dict(table) | changes | ({} if part.guard else {"guard": False}))


def can_play(entry: dict[str, Any], problems: Sequence[dict[str, Any]], rounds: int) -> bool:
    """Whether a policy can play all problems of a part: it says so itself."""
    (spec,) = read_policies([], [entry], FILE.parent).values()
    try:
        for field in read_problems(list(problems), FILE.parent):
            check_policy(spec.policy, field.problem, rounds)
    except InvalidValue:
        return False
    return True

"""What a file of results holds, and whether an experiment asks for all of that and perhaps for more."""

import json
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from paceline.errors import InvalidValue
from paceline.simulation.results import list_names

DRAWN = ("stream", "apart", "problem", "delay")  # of a problem, what its numbers depend on
DIGITS = 12


class Holdings(NamedTuple):
    """What is in a file of results, in the order of its rows: problems and policies by their digests."""

    problems: list[str]
    policies: list[str]
    rounds: list[int]
    trials: int


def holdings_of(described: Mapping[str, Any]) -> Holdings:
    """The same, from an experiment as the manifest has it. What things are called does not count."""
    return Holdings(
        [
            digest([described["seed"], described["rounds"][-1], *(entry.get(key) for key in DRAWN)])
            for entry in described["problems"]
        ],
        [digest([entry["policy"], entry.get("code")]) for entry in described["policies"]],
        list(described["rounds"]),
        described["trials"],
    )


def digest(thing: object) -> str:
    """Digits that stand for plain data."""
    return sha256(json.dumps(thing, sort_keys=True).encode()).hexdigest()[:DIGITS]


def gaps(done: Iterable[range], trials: int) -> Iterator[range]:
    """The trials between those that are done.

    >>> list(gaps([range(4, 6), range(0, 2)], 9))
    [range(2, 4), range(6, 9)]
    """
    at = 0
    for part in [*disjoint(done, trials), range(trials, trials)]:
        if part.start > at:
            yield range(at, part.start)
        at = part.stop


def disjoint(parts: Iterable[range], trials: int) -> list[range]:
    """Of parts that may overlap or go too far, some that do not, in their order."""
    found: list[range] = []
    for part in sorted(parts, key=lambda each: (each.start, each.stop)):
        if part.stop <= trials and part.start >= (found[-1].stop if found else 0):
            found.append(part)
    return found


def check_extends(mine: Mapping[str, Any], other: Mapping[str, Any], where: Path) -> None:
    """Refuse results of another experiment; those of a part of this one may be there already."""
    old, new = holdings_of(other), holdings_of(mine)
    entries = (("problems", "name", old.problems, new.problems), ("policies", "label", old.policies, new.policies))
    lacking = {
        "seed": [] if other["seed"] == mine["seed"] else [other["seed"]],
        "rounds": [] if old.rounds[-1] == new.rounds[-1] else [old.rounds[-1]],
        "record": [] if other.get("record") == mine.get("record") else [other.get("record", "of no round")],
        **{
            what: [entry[called] for entry, key in zip(other[what], had, strict=True) if key not in have]
            for what, called, had, have in entries
        },
        "trials": [] if old.trials <= new.trials else [old.trials],
        "checkpoints": [] if set(old.rounds) <= set(new.rounds) else sorted({*old.rounds} - {*new.rounds}),
    }
    if lacking["seed"] or lacking["rounds"]:  # then nothing else can be the same
        lacking |= {"problems": [], "policies": [], "checkpoints": []}
    told = [f"{what} {list_names(list(map(str, found)), 3)}" for what, found in lacking.items() if found]
    if told:
        raise InvalidValue(
            f"{where} must hold results of this experiment, or of a part of it; it has {', '.join(told)}, which this "
            "experiment has not"
        )

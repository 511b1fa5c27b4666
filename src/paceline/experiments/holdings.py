"""What a file of results holds, and whether an experiment asks for all of that and perhaps for more."""

import json
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from paceline.errors import InvalidValue
from paceline.simulation.results import list_names

DRAWN = ("stream", "apart", "problem", "delay")  # of a problem, what its numbers depend on
WORLD = ("world", "code")  # the same of a world of the user's own
DIGITS = 12


class Holdings(NamedTuple):
    """What is in a file of results, in the order of its rows: problems and policies by their digests."""

    problems: list[str]
    policies: list[str]
    rounds: list[int]
    trials: int


def holdings_of(described: Mapping[str, Any]) -> Holdings:
    """The same, from an experiment as the manifest has it. What things are called does not count."""
    rules = [] if described.get("guard", True) else ["without the guard"]
    common = [described["seed"], described["rounds"][-1], *rules]
    return Holdings(
        [
            digest([*common, *map(entry.get, DRAWN), *(entry[key] for key in WORLD if key in entry)])
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
    """Of parts that may overlap or go too far, some that do not, in their order.

    Of those that begin at the same trial it is the longest: the file with everything, and not a part that it has.
    """
    found: list[range] = []
    for part in sorted(parts, key=lambda each: (each.start, -each.stop)):
        if part.stop <= trials and part.start >= (found[-1].stop if found else 0):
            found.append(part)
    return found


# What a reader calls that in which two of the same name may differ.
OTHER = {
    "stream": "random numbers",
    "apart": "random numbers",
    "problem": "arms or budget",
    "delay": "delays",
    "world": "parameters",
    "policy": "parameters",
    "code": "code",
}


def check_extends(mine: Mapping[str, Any], other: Mapping[str, Any], where: Path) -> None:
    """Refuse results of another experiment; those of a part of this one may be there already."""
    old, new = holdings_of(other), holdings_of(mine)
    entries = (("problems", "name", old.problems, new.problems), ("policies", "label", old.policies, new.policies))
    lacking = {
        "seed": [] if other["seed"] == mine["seed"] else [other["seed"]],
        "rounds": [] if old.rounds[-1] == new.rounds[-1] else [old.rounds[-1]],
        "guard": [] if other.get("guard", True) == mine.get("guard", True) else [other.get("guard", True)],
        "record": [] if other.get("record") == mine.get("record") else [other.get("record", "of no round")],
        **{
            what: [
                in_words(entry, called, mine[what])
                for entry, key in zip(other[what], had, strict=True)
                if key not in have
            ]
            for what, called, had, have in entries
        },
        "trials": [] if old.trials <= new.trials else [old.trials],
        "checkpoints": [] if set(old.rounds) <= set(new.rounds) else sorted({*old.rounds} - {*new.rounds}),
    }
    if lacking["seed"] or lacking["rounds"] or lacking["guard"]:  # then nothing else can be the same
        lacking |= {"problems": [], "policies": [], "checkpoints": []}
    told = [f"{what} {list_names(list(map(str, found)), 3)}" for what, found in lacking.items() if found]
    if told:
        raise InvalidValue(
            f"{where} must hold results of this experiment, or of a part of it; it has {', '.join(told)}, which this "
            "experiment has not"
        )


def in_words(entry: Mapping[str, Any], called: str, others: Iterable[Mapping[str, Any]]) -> str:
    """The name of a problem or a policy, and in what it differs from the one that has the same name.

    >>> in_words({"label": "a", "policy": "A()", "code": "1"}, "label", [{"label": "a", "policy": "A()", "code": "2"}])
    'a with other code'
    """
    name = str(entry[called])
    for namesake in (other for other in others if other[called] == entry[called]):
        kinds = [key for key in OTHER if digest(entry.get(key)) != digest(namesake.get(key))]
        if len(kinds) > 1 and kinds[-1] == "code":  # whose digest has the parameters in it
            kinds.pop()
        return f"{name} with other {' and '.join(dict.fromkeys(OTHER[key] for key in kinds))}"
    return name

"""The events of a journal in words: arms by name, ids as the user knows them, times in seconds."""

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from paceline.live import events
from paceline.live.decision import Decision
from paceline.live.events import NAMES, Ask, Credit, Event, Facts, Tell
from paceline.live.reading import NONSENSE, read_parts, senseless
from paceline.live.rounds import Rounds, follow
from paceline.policies import PolicyLike

Entry = dict[str, Any]


class Span(NamedTuple):
    """From a time on, and before another, in seconds."""

    since: float = -math.inf
    until: float = math.inf

    def __contains__(self, time: object) -> bool:
        return self.since <= time < self.until if isinstance(time, float) else self == ALWAYS  # a time is not known


ALWAYS = Span()


def entries_of(path: str | os.PathLike[str], policy: PolicyLike | None = None) -> Iterator[Entry]:
    """The events of a journal, each as a dict with the number of its line, its time in seconds and what it is.

    What an earlier version wrote has no time: None. A bandit may be writing to it meanwhile: what is there when the end
    is reached is what is given.
    """
    rounds = Rounds(policy)
    for line, event, _ in follow(read_parts(path), rounds):
        try:
            entry = describe(rounds, line, event)
        except NONSENSE as error:
            raise senseless(Path(path), line, error) from error
        yield entry


def describe(rounds: Rounds, line: int, event: Event) -> Entry:
    """An event that has just happened."""
    return {
        "line": line,
        "time": rounds.seconds(event.time),
        "event": NAMES[type(event)],
        **DESCRIPTIONS[type(event)](rounds, event),
    }


def describe_ask(rounds: Rounds, event: Ask) -> Entry:
    """A decision."""
    entry: Entry = {
        "id": rounds.id_of(rounds.number),
        "arm": rounds.arms[event.slot] if event.slot >= 0 else None,
        "reason": rounds.reason_of(event.reason),
    }
    other = rounds.other_of(event)
    if other is not None and other != entry["arm"]:
        entry["other"] = other
    if event.propensity is not None:
        entry["propensity"] = event.propensity
    if event.deadline is not None:
        entry["expires"] = event.deadline / 1000.0
    return {**entry, **describe_facts(rounds, event.facts)}


def describe_facts(rounds: Rounds, facts: Facts | None) -> Entry:
    """What was true of one request alone."""
    entry: Entry = {}
    if facts is None:
        return entry
    if facts.key is not None:
        entry["key"] = facts.key
    if facts.slots is not None:
        entry["arms"] = [rounds.arms[slot] for slot in facts.slots]
    if facts.largest:
        entry["max_cost"] = {rounds.arms[slot]: rounds.by_name(costs) for slot, costs in facts.largest}
    return entry


def describe_tell(rounds: Rounds, event: Tell) -> Entry:
    """An outcome, or a part of it."""
    told: Entry = {**whose(rounds, event.id), "reward": event.reward, "cost": rounds.by_name(event.costs)}
    return {**told, "overrun": True} if event.overrun else told


def whose(rounds: Rounds, number: int) -> Entry:
    """The decision that something is about; its arm is not known if it was made in a segment that is gone."""
    return {"id": rounds.id_of(number), "arm": None if rounds.last is None else rounds.last.arm}


def describe_credit(rounds: Rounds, event: Credit) -> Entry:
    """Money that has come or gone."""
    return {"amount": rounds.by_name(event.amounts), "over": event.over, "rate": event.rate}


DESCRIPTIONS: dict[type[Event], Callable[[Rounds, Any], Entry]] = {
    events.Ask: describe_ask,
    events.Failed: lambda rounds, event: describe_facts(rounds, event.facts),
    events.Tell: describe_tell,
    events.Cancel: lambda rounds, event: whose(rounds, event.id),
    events.Expire: lambda rounds, event: {"ids": [rounds.id_of(number) for number in event.ids]},
    events.Credit: describe_credit,
    events.Pace: lambda rounds, event: {"rate": rounds.by_name(event.rates)},
    events.Add: lambda rounds, event: {"arm": event.name, "max_cost": rounds.by_name(event.largest)},
    events.SetStatus: lambda rounds, event: {"arm": rounds.arms[event.slot], "status": event.status},
    events.Observe: lambda rounds, event: {
        "arm": rounds.arms[event.slot],
        "reward": event.reward,
        "cost": rounds.by_name(event.costs),
    },
    events.Merge: lambda _, event: {"reports": event.reports},
    events.Set: lambda _, event: {"settings": event.settings},
    events.Opened: lambda _, event: {"version": event.version, "process": event.process, "digest": event.digest},
}


# One line each, for the eye.


def in_words(entry: Entry) -> str:
    """An event as a line of text.

    >>> in_words({"line": 12, "time": 1.7e9, "event": "tell", "id": 7, "arm": "video", "reward": 0.5, "cost": None})
    '      12  2023-11-14T22:13:20.000Z  tell     7 video: reward 0.5'
    """
    try:
        what = " ".join(WORDS[entry["event"]](entry).split())
    except NONSENSE:  # amounts that are no numbers, in a line that nobody has checked so far
        what = json.dumps(entry)
    return f"{entry['line']:>8}  {clock_time(entry['time'])}  {entry['event']:<8} {what}".rstrip()


def clock_time(seconds: float | None) -> str:
    """A time as the clock on the wall has it in Greenwich; a clock of the user's may count something else."""
    if seconds is None:
        return f"{'time unknown':<24}"
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{seconds:.3f}"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def ask_in_words(entry: Entry) -> str:
    """What was decided, why, and what was special about the request."""
    decision = Decision(entry["id"], entry["arm"], entry["reason"], entry.get("other"))
    words = f"{entry['id']} {entry['arm'] or 'sits out'}: {decision.reason}"
    if "propensity" in entry:
        words += f", propensity {entry['propensity']:.4g}"
    if "expires" in entry:
        words += f", expires {clock_time(entry['expires'])}"
    return words + facts_in_words(entry)


def facts_in_words(entry: Entry) -> str:
    """What was true of one request alone."""
    words = f", key {entry['key']}" if "key" in entry else ""
    if "arms" in entry:
        words += f", among {' '.join(entry['arms']) or 'no arms'}"
    if "max_cost" in entry:
        words += ", at most " + ", ".join(f"{amounts(most)} for {arm}" for arm, most in entry["max_cost"].items())
    return words


def outcome_in_words(entry: Entry) -> str:
    """Reward and costs."""
    parts = [] if entry["reward"] is None else [f"reward {entry['reward']:.10g}"]
    parts += [] if entry["cost"] is None else [f"cost {amounts(entry['cost'])}"]
    return f"{entry['arm'] or ''}: {', '.join(parts)}{', an overrun' if entry.get('overrun') else ''}"


def credit_in_words(entry: Entry) -> str:
    """An amount, and how it comes."""
    over = f" over {entry['over']} rounds" if entry["over"] else ""
    return f"{amounts(entry['amount'])}{over}{'' if entry['rate'] else ', the rate stays'}"


def amounts(given: Any) -> str:
    """An amount, or several by name."""
    if isinstance(given, Mapping):
        return ", ".join(f"{amount:.10g} {name}" for name, amount in given.items())
    return f"{given:.10g}"


WORDS: dict[str, Callable[[Entry], str]] = {
    "ask": ask_in_words,
    "failed": lambda entry: f"the policy raised an error, the round did not begin{facts_in_words(entry)}",
    "tell": lambda entry: f"{entry['id']} {outcome_in_words(entry)}",
    "cancel": lambda entry: f"{entry['id']} {entry['arm'] or ''}",
    "expire": lambda entry: " ".join(map(str, entry["ids"])),
    "credit": credit_in_words,
    "pace": lambda entry: "by the line" if entry["rate"] is None else f"{amounts(entry['rate'])} a round",
    "add": lambda entry: f"{entry['arm']}: at most {amounts(entry['max_cost'])}",
    "status": lambda entry: f"{entry['arm']}: {entry['status']}",
    "observe": outcome_in_words,
    "merge": lambda entry: f"reports of {', '.join(entry['reports'])}",
    "set": lambda entry: ", ".join(f"{name} {json.dumps(value)}" for name, value in entry["settings"].items()),
    "opened": lambda entry: f"by process {entry['process']}, paceline {entry['version']}",
}

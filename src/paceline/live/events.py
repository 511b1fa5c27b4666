"""What can happen to the books of a live bandit: one kind of event each, and the one writer and reader of them.

An event says what happened, in numbers that have passed their checks: arms by slot, times in milliseconds, amounts in
the user's unit. The same events in the same order give the same books, bit for bit (`Ledger.apply`): that is all that a
journal has to tell.

Events are named tuples: immutable, like frozen dataclasses, but made in a fifth of the time, which a decision of a few
microseconds notices.
"""

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

NO_TIME = -1  # of events in the journals of earlier versions

Costs = tuple[float | None, ...]  # an entry per resource, None where it is not known


class Facts(NamedTuple):
    """What is true of one request alone."""

    key: str | None = None  # of the request: the same key gives the same decision
    slots: tuple[int, ...] | None = None  # the arms that may be chosen; None for all in play
    largest: tuple[tuple[int, tuple[float, ...]], ...] = ()  # slots whose largest costs differ this time, and these


class Ask(NamedTuple):
    """A round began, and the policy decided."""

    slot: int
    reason: int
    tag: int
    time: int
    deadline: int | None = None
    facts: Facts | None = None
    propensity: float | None = None  # of the decision, where the policy leaves some to chance


class Failed(NamedTuple):
    """The code of a user's policy raised an error: the round did not begin."""

    time: int
    facts: Facts | None = None


class Tell(NamedTuple):
    """A decision was told its reward, costs, or both."""

    id: int
    reward: float | None
    costs: Costs
    time: int
    overrun: bool = False  # a cost above the largest was told, and meant


class Cancel(NamedTuple):
    """A decision was never acted on."""

    id: int
    time: int


class Expire(NamedTuple):
    """Some decisions are not waited for any more."""

    ids: tuple[int, ...]
    time: int


class Credit(NamedTuple):
    """Income besides the budget: at once, or over so many rounds; below 0 where money has left."""

    amounts: Costs
    over: int
    rate: bool  # whether the policy's rate follows
    time: int


class Pace(NamedTuple):
    """What the policy may spend per round of money that comes from elsewhere; None where it goes by the line."""

    rates: Costs
    time: int


class Add(NamedTuple):
    """A new arm."""

    name: str
    largest: tuple[float, ...]
    time: int


class SetStatus(NamedTuple):
    """An arm was put in play or taken out."""

    slot: int
    status: str
    time: int


class Observe(NamedTuple):
    """A pull that was made elsewhere."""

    slot: int
    reward: float
    costs: tuple[float, ...]
    time: int


class Merge(NamedTuple):
    """What others have learned: their sums, which replace those that they reported before."""

    reports: Mapping[str, Any]
    time: int


class Set(NamedTuple):
    """Settings that hold from now on."""

    settings: Mapping[str, Any]
    time: int


class Opened(NamedTuple):
    """A program went on with a journal: which one, and with which code."""

    version: str
    digest: str  # of the policy's code
    process: int
    time: int


Event = Ask | Failed | Tell | Cancel | Expire | Credit | Pace | Add | SetStatus | Observe | Merge | Set | Opened

KINDS: dict[str, type[Any]] = {
    "ask": Ask,
    "failed": Failed,
    "tell": Tell,
    "cancel": Cancel,
    "expire": Expire,
    "credit": Credit,
    "pace": Pace,
    "add": Add,
    "status": SetStatus,
    "observe": Observe,
    "merge": Merge,
    "set": Set,
    "opened": Opened,
}
NAMES = {kind: name for name, kind in KINDS.items()}

# An event from a tuple of all its fields, in half the time that the class would take to sort them out.
as_ask: Callable[[tuple[Any, ...]], Ask] = partial(tuple.__new__, Ask)
as_tell: Callable[[tuple[Any, ...]], Tell] = partial(tuple.__new__, Tell)


# Writing. What happens all the time is put together by hand.


def write_ask(
    slot: int,
    reason: int,
    tag: int,
    time: int,
    deadline: int | None,
    facts: Facts | None,
    propensity: float | None,
) -> str:
    """A decision as JSON, from its fields."""
    if propensity is not None:
        return json.dumps(["ask", slot, reason, tag, time, deadline, facts, propensity], separators=(",", ":"))
    if facts is not None:
        return json.dumps(["ask", slot, reason, tag, time, deadline, facts], separators=(",", ":"))
    return write_usual_ask(slot, reason, tag, time, deadline)


def write_usual_ask(slot: int, reason: int, tag: int, time: int, deadline: int | None) -> str:
    """The same where there is nothing else to be said."""
    if deadline is not None:
        return f'["ask",{slot},{reason},{tag},{time},{deadline}]'
    return f'["ask",{slot},{reason},{tag},{time}]'


def write_tell(id: int, reward: float | None, costs: Costs, time: int, overrun: bool = False) -> str:
    """An outcome as JSON, from its fields: floats are written to the last digit, and all of them are finite."""
    if overrun or reward is None or None in costs:
        return json.dumps(["tell", id, reward, costs, time, overrun], separators=(",", ":"))
    return write_usual_tell(id, reward, costs, time)


def write_usual_tell(id: int, reward: float, costs: Costs, time: int) -> str:
    """The same where all of it is told at once."""
    if len(costs) == 1:
        return f'["tell",{id},{reward!r},[{costs[0]!r}],{time}]'
    return f'["tell",{id},{reward!r},[{",".join(map(repr, costs))}],{time}]'


def write(event: Event) -> str:
    """An event as JSON."""
    if type(event) is Tell:
        return write_tell(*event)
    if type(event) is Ask:
        return write_ask(*event)
    return json.dumps([NAMES[type(event)], *event], separators=(",", ":"))


# Reading.


def read_ask(values: list[Any]) -> Ask:
    """The way back from `write_ask`."""
    match values:
        case [_, slot, reason, tag, time]:
            return as_ask((slot, reason, tag, time, None, None, None))
        case [_, slot, reason, tag, time, deadline]:
            return as_ask((slot, reason, tag, time, deadline, None, None))
        case [_, slot, reason, tag, time, deadline, facts]:
            return as_ask((slot, reason, tag, time, deadline, read_facts(facts), None))
        case [_, slot, reason, tag, time, deadline, facts, propensity]:
            return as_ask((slot, reason, tag, time, deadline, read_facts(facts), propensity))
    raise ValueError(f"{values!r} is not a decision")


def read_facts(values: list[Any] | None) -> Facts | None:
    """The facts of a request."""
    if values is None:
        return None
    key, slots, largest = values
    most = tuple((slot, tuple(costs)) for slot, costs in largest)
    return Facts(key, None if slots is None else tuple(slots), most)


def read_tell(values: list[Any]) -> Tell:
    """The way back from `write_tell`."""
    _, id, reward, costs, time, *rest = values
    return as_tell((id, reward, tuple(costs), time, bool(rest and rest[0])))


def read_failed(values: list[Any]) -> Failed:
    """The facts are tuples."""
    _, time, facts = values
    return Failed(time, read_facts(facts))


def read_plainly(values: list[Any]) -> Event:
    """An event whose fields are as JSON gives them, but for lists."""
    kind, *fields = values
    event: Event = KINDS[kind](*[tuple(field) if isinstance(field, list) else field for field in fields])
    return event


READERS: dict[str, Callable[[list[Any]], Event]] = {
    **dict.fromkeys(KINDS, read_plainly),
    "ask": read_ask,
    "tell": read_tell,
    "failed": read_failed,
}


def read(values: Any) -> Event:
    """The event in a line of a journal, once it has been parsed.

    >>> read(["tell", 3, 0.5, [0.25], 1700000000000])
    Tell(id=3, reward=0.5, costs=(0.25,), time=1700000000000, overrun=False)
    >>> write(_)
    '["tell",3,0.5,[0.25],1700000000000]'
    """
    return READERS[values[0]](values)

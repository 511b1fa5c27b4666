"""Journals that earlier versions wrote, in formats 1 and 2: what they say, in the words of today.

Their lines are events without a time; the arms of the first edition's asks, its reasons and the other arm are numbers
as they are today. So amounts, reservations and what waits for news come out as the earlier version had them, to the
unit. What the policy makes of it is today's: beliefs are computed anew from the same outcomes.

Format 1 knew one resource without a name; format 2 is as today but for the times, and for what has been added since.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from paceline.kernels.state import GUARD, SKIP
from paceline.live.decision import NULL
from paceline.live.events import NO_TIME, Add, Ask, Cancel, Credit, Event, Expire, Failed, SetStatus, Tell
from paceline.live.ledger import Ledger

WRITTEN_EARLIER = "written by an earlier version: beliefs are computed anew"


def settings_of_today(format: int, settings: dict[str, Any]) -> dict[str, Any]:
    """Settings that an earlier version wrote. What the first edition did not know was not there, or not limited."""
    return settings if format > 1 else {"max_refill": None, "start": None, "cap": None, "rounds": None, **settings}


def milliseconds_of(deadline: float | None) -> int | None:
    """A deadline, which was in seconds."""
    return None if deadline is None else round(deadline * 1000.0)


def fit(ledger: Ledger, slot: int, reason: int, tag: int) -> tuple[int, int]:
    """The reason and the tag of a decision, if the policy can have them today; else a pull of that arm alone."""
    is_known = 0 <= reason < len(ledger.situations)
    if ledger.tag_is_arm or reason == GUARD:
        is_known = is_known and (tag in (NULL, SKIP) or 0 <= tag < len(ledger.arm_set.names))
    return (reason, tag) if is_known else (GUARD + 1, slot)


def as_it_is(_: int, reason: int, tag: int) -> tuple[int, int]:
    """The reason and the tag of a decision as they were written."""
    return reason, tag


def reader_for(format: int, ledger: Ledger) -> Callable[[Any], Event]:
    """What reads the lines of a journal in an earlier format, one after the other as they happen to these books."""
    return reader_of(format, ledger.arm_set.slot_of, partial(fit, ledger))


def reader_of(
    format: int,
    slot_of: Callable[[str], int],
    fitted: Callable[[int, int, int], tuple[int, int]] = as_it_is,
) -> Callable[[Any], Event]:
    """The same, given what says which slot an arm has, and what reason and tag are those of a decision today."""

    def read(values: Any) -> Event:
        match values:
            case ["ask", slot, reason, tag, *deadline]:
                reason, tag = fitted(slot, reason, tag)
                return Ask(slot, reason, tag, NO_TIME, milliseconds_of(*deadline) if deadline else None)
            case ["tell", id, reward, *costs]:
                return Tell(id, reward, tuple(costs), NO_TIME)
            case ["cancel", id]:
                return Cancel(id, NO_TIME)
            case ["expire", id]:
                return Expire((id,), NO_TIME)
            case ["credit", amount, over] if format == 1:
                return Credit((amount,), over, True, NO_TIME)
            case ["credit", over, *amounts]:
                return Credit(tuple(amounts), over, True, NO_TIME)
            case ["add", name, *largest]:
                return Add(name, tuple(largest), NO_TIME)
            case ["stand" | "status", name, status]:
                return SetStatus(slot_of(name), status, NO_TIME)
            case ["failed"]:
                return Failed(NO_TIME)
        raise ValueError(f"{values!r} is not an event")

    return read

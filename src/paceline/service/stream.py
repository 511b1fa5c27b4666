"""The state of a bandit every second, as server-sent events: a page reads them with fetch, its token in the header."""

import asyncio
from collections.abc import AsyncIterator

from paceline.service import encoding
from paceline.service.history import as_columns
from paceline.service.host import Host
from paceline.service.hosted import Hosted

HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # nginx passes on what comes at once
FIRST = 50  # events that a page begins with
AT_ONCE = 200  # events between two pictures
HEARTBEAT = 3.0  # seconds; a page takes longer silence for a broken connection


def event(name: str, value: object) -> bytes:
    r"""One event; JSON in ASCII has no line breaks.

    >>> event("state", {"rounds": 3})
    b'event: state\ndata: {"rounds":3}\n\n'
    """
    return b"event: %s\ndata: %s\n\n" % (name.encode("ascii"), encoding.write(value))


async def follow(host: Host, hosted: Hosted, after: int) -> AsyncIterator[bytes]:
    """History first, then every picture and the events since the one before, until somebody leaves."""
    host.streams += 1
    hosted.streams += 1
    try:
        yield event("history", as_columns(hosted.history.points()))
        cursor, count = after or max(hosted.log.number - FIRST, 0), AT_ONCE
        looked = None
        while not host.is_stopping and host.joined.get(hosted.name) is hosted:
            if looked != hosted.looked:
                looked = hosted.looked
                yield event("state", hosted.state)
            events = hosted.log.after(cursor, count)
            if events:
                cursor = hosted.log.number
                yield event("events", events)
            try:
                await asyncio.wait_for(host.ticked.wait(), HEARTBEAT)
            except TimeoutError:
                yield b": still here\n\n"
        yield event("end", {})
    finally:
        host.streams -= 1
        hosted.streams -= 1

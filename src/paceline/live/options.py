"""Options of a live bandit that say how to keep time and files, not how to decide: checked."""

import os
from pathlib import Path

from paceline import checks
from paceline.errors import InvalidValue
from paceline.live.keeper import CLOSED, Upkeep


def check_options(
    clock: object,
    fsync: object = False,
    snapshot_every: object = None,
    rotate_every: object = None,
    closed: object = "keep",
    mode: object = 0o600,
) -> Upkeep:
    """What says how to keep time and files, not how to decide."""
    if not callable(clock):
        raise InvalidValue(f"clock must be a function that gives the time in seconds, got {clock!r}")
    if not isinstance(fsync, bool):
        raise InvalidValue(f"fsync must be True or False, got {fsync!r}")
    every = [
        None if value is None else checks.whole(thing, value, 1)
        for thing, value in (("snapshot_every", snapshot_every), ("rotate_every", rotate_every))
    ]
    return Upkeep(
        fsync, every[0], every[1], checks.one_of("closed", closed, CLOSED), checks.whole("mode", mode, 0, 0o777)
    )


def check_path(thing: str, value: object) -> None:
    """The path of a file."""
    if not isinstance(value, str | os.PathLike):
        raise InvalidValue(f"{thing} must be the path of a file, got {value!r}")
    try:
        name = os.fsencode(value)
    except UnicodeError:
        name = b"\0"
    if b"\0" in name or not Path(os.fsdecode(name)).name:
        raise InvalidValue(f"{thing} must be a path that a file can have, got {os.fspath(value)!r}")

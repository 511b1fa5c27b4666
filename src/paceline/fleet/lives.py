"""Who a worker is: its name, its life, and the file beside its journal in which its dealings with the store are kept.

A life with a journal goes on after a restart. The journal has its rounds, its news and its money; the file has what was
granted and returned in all. A grant is written to both, and so is what goes back: first to the file, as something that
is about to happen, then to the journal, then to the file that it has happened. After a crash in between, the books in
the journal tell whether it did.
"""

import json
import os
import re
import secrets
import socket
from pathlib import Path
from typing import Any, NamedTuple

from paceline.errors import InvalidValue, UnreadableFile
from paceline.files import all_or_nothing
from paceline.fleet.protocol import Standing, Units
from paceline.fleet.store import check_name
from paceline.live.config import NAME

LONGEST_NAME = 80  # characters; the rest of a hundred is for the life
ID = re.compile(rf"({NAME.pattern})-([0-9]{{1,18}})(?:\.([0-9]{{1,9}}))?")  # life, number, slot


def worker_name(given: str | None) -> str:
    """The name of a worker: as it is given, or the machine and the process."""
    if given is not None:
        name = check_name("worker", given)
        if len(name) > LONGEST_NAME:
            raise InvalidValue(f"worker must be a name of up to {LONGEST_NAME} characters, got {given!r}")
        return name
    machine = re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname())[:60] or "worker"
    return f"{machine}.{os.getpid()}"


def new_life(name: str) -> str:
    """A name that no other life has; ids of decisions begin with it."""
    return f"{name}.{secrets.token_hex(6)}"


def parts_of(id: object) -> tuple[str, int, int | None] | None:
    """The life, the number of the decision and the slot of the arm that an id names; None if it cannot be an id.

    >>> parts_of("web-1.5f0c7b1e2d3a-17.3"), parts_of("web-1.5f0c7b1e2d3a-17"), parts_of("web")
    (('web-1.5f0c7b1e2d3a', 17, 3), ('web-1.5f0c7b1e2d3a', 17, None), None)
    """
    found = ID.fullmatch(id) if isinstance(id, str) else None
    if found is None:
        return None
    life, number, slot = found.groups()
    return life, int(number), None if slot is None else int(slot)


def owner_of(id: object) -> str | None:
    """The life that an id names, if it names one."""
    found = parts_of(id)
    return None if found is None else found[0]


class Intent(NamedTuple):
    """Money that is about to be booked in the journal."""

    units: Units  # below 0 where it goes back
    before: Units  # what was booked so far


class LifeFile:
    """The file beside a journal."""

    def __init__(self, journal: str | os.PathLike[str]) -> None:
        self.path = Path(f"{os.fspath(journal)}.life").absolute()  # as the journal

    def write(self, fleet: str, name: str, version: int, standing: Standing, intent: Intent | None = None) -> None:
        """Write all of it, or nothing."""
        document = {
            "fleet": fleet,
            "name": name,
            "life": standing.life,
            "granted": standing.granted,
            "returned": standing.returned,
            "version": version,
            "intent": None if intent is None else intent._asdict(),
        }
        with all_or_nothing(self.path) as unfinished, open(unfinished, "w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), 0o600)
            json.dump(document, file)
            file.flush()
            os.fsync(file.fileno())

    def read(self, fleet: str) -> dict[str, Any]:
        """What is in it; it must be of this fleet."""
        try:
            document: dict[str, Any] = json.loads(self.path.read_text(encoding="utf-8"))
            known = document["fleet"]
        except (OSError, ValueError, KeyError, TypeError):
            rule = "the journal of a member of a fleet, with its file beside it"
            raise UnreadableFile(f"{self.path} must be there and readable to go on with {rule}") from None
        if known != fleet:
            raise InvalidValue(f"the journal must be of a member of fleet {fleet!r}, got one of {known!r}")
        return document


def standing_in(document: dict[str, Any], booked: Units) -> Standing:
    """The dealings of a life, given what its journal has booked of them."""
    granted, returned = document["granted"], document["returned"]
    intent = document["intent"]
    if intent is not None and list(booked) == intent["before"]:  # it has not happened
        for d, units in enumerate(intent["units"]):
            granted[d] -= max(units, 0)
            returned[d] -= max(-units, 0)
    return Standing(document["life"], tuple(granted), tuple(returned))

"""A bandit as one readable JSON document: versioned, with a checksum, the same future decisions bit for bit."""

import hashlib
import json
import math
import os
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import numpy as np

from paceline.errors import PacelineError, UnreadableFile
from paceline.files import all_or_nothing
from paceline.kernels.estimates import Estimates
from paceline.kernels.state import books_in
from paceline.live.config import read_config
from paceline.live.decision import PendingPull
from paceline.live.journal import sync_folder
from paceline.live.ledger import Ledger
from paceline.policies import PolicyLike
from paceline.policies.python_policy import Session

FORMAT = 2
PULL = ("slot", "reason", "tag", "reserved", "charged", "reward", "costs", "deadline", "expired")
SUMS = ("pulls", "reward_sum", "reward_squares", "cost_sum", "cost_squares")  # those of costs by resource
# For each resource, what the engine counts and what it shows the policy; the rest follows from the settings.
AMOUNTS = ("credited", "held", "held_rounds", "lost", "reserved", "spent", "lowest", "headroom", "peak", "depth")
SHOWN = ("rate", "headroom", "outlook", "planned")


def describe_ledger(ledger: Ledger) -> dict[str, Any]:
    """Everything in the books."""
    arm_set, config = ledger.arm_set, ledger.config
    arm_set.merge()
    storage = arm_set.all
    return {
        "settings": config.to_dict(),
        "rounds": ledger.rounds,
        "arms": [
            {
                "name": name,
                "max_cost": config.by_name(arm_set.max_costs[slot]),
                "status": arm_set.statuses[slot],
                **{entry: getattr(arm_set.full.arms, entry)[slot].tolist() for entry in SUMS},
            }
            for slot, name in enumerate(arm_set.names)
        ],
        "tally": fields_of(storage.tally[0]),
        "clock": fields_of(storage.clock[0]),
        "record": fields_of(storage.record[0]),
        "memory": {name: array.tolist() for name, array in storage.memory._asdict().items()},
        "session": dump_session(arm_set.params),
        "amounts": {name: getattr(arm_set.books, name).tolist() for name in AMOUNTS},
        "shown": {name: getattr(arm_set.full, name).tolist() for name in SHOWN},
        "open": [
            {"id": number, **{entry: getattr(pull, entry) for entry in PULL}} for number, pull in ledger.pending.items()
        ],
        "expired_pulls": list(ledger.expired_pulls),
        "settled": [[number, reward, list(costs)] for number, (reward, costs) in ledger.settled.items()],
    }


def restore_ledger(body: dict[str, Any], policy: PolicyLike | None = None) -> Ledger:
    """The books that `describe_ledger` described."""
    ledger = Ledger(read_config(body["settings"], policy))
    arm_set, arms, config = ledger.arm_set, body["arms"], ledger.config
    added = arms[len(arm_set.names) :]
    if added:
        arm_set.add([(arm["name"], config.in_order("max_cost", arm["max_cost"])) for arm in added])
    arm_set.statuses = [arm["status"] for arm in arms]
    storage = arm_set.all
    restore_estimates(arm_set.full.arms, arms)
    books_in(storage).pulls[:] = arm_set.full.arms.pulls
    for record, values in ((storage.tally, "tally"), (storage.clock, "clock"), (storage.record, "record")):
        set_fields(record[0], body[values])
    for name, array in storage.memory._asdict().items():
        array[...] = body["memory"][name]
    for name in AMOUNTS:
        getattr(arm_set.books, name)[:] = body["amounts"][name]
    for name in SHOWN:
        getattr(arm_set.full, name)[:] = body["shown"][name]
    for entry in body["open"]:
        ledger.pending[entry["id"]] = restore_pull(entry)
        arm_set.full.pending[entry["slot"]] += 1
        books_in(storage).unpaid[entry["slot"]] += np.array(entry["reserved"]) > 0
    arm_set.field()
    if isinstance(arm_set.params, Session):
        restore_session(arm_set.params, body["session"])
    ledger.rounds = body["rounds"]
    ledger.renew_most_rounds()
    ledger.deadlines = sorted((e["deadline"], e["id"]) for e in body["open"] if e["deadline"] is not None)
    ledger.expired_pulls.update(dict.fromkeys(body["expired_pulls"]))
    ledger.settled.update((number, (reward, tuple(costs))) for number, reward, costs in body["settled"])
    return ledger


def dump_session(params: Any) -> str | None:
    """What a policy in plain Python has learned; a compiled one keeps all of it in its memory and record."""
    if not isinstance(params, Session):
        return None
    return b64encode(params.dump()).decode()


def restore_session(session: Session, dumped: str) -> None:
    """The way back from `dump_session`."""
    content = b64decode(dumped)
    try:
        session.restore(content)
    except Exception as error:  # such as a class that is not where it was
        policy = type(session.policy).__name__
        raise UnreadableFile(f"what {policy} has learned must be readable, got {type(error).__name__}") from error


def restore_pull(entry: dict[str, Any]) -> PendingPull:
    """A pull that waits for news."""
    pull = PendingPull(entry["slot"], entry["reason"], entry["tag"], tuple(entry["reserved"]))
    pull.charged, pull.costs = tuple(entry["charged"]), tuple(entry["costs"])
    pull.reward, pull.deadline, pull.expired = entry["reward"], entry["deadline"], entry["expired"]
    pull.is_untouched = not (pull.charged or pull.costs or pull.expired) and pull.reward is None
    return pull


def fields_of(record: Any) -> dict[str, Any]:
    """The fields of a record by name."""
    return {name: record[name].tolist() for name in record.dtype.names}


def set_fields(record: Any, values: dict[str, Any]) -> None:
    """Write fields into a record."""
    for name in record.dtype.names:
        record[name] = values[name]


def restore_estimates(known: Estimates, arms: list[dict[str, Any]]) -> None:
    """Write sums as they were; means and widths follow from them as in `estimates.observe`."""
    for entry in SUMS:
        getattr(known, entry)[:] = [arm[entry] for arm in arms]
    tried = known.pulls > 0
    counts = np.where(tried, known.pulls, 1)
    known.reward_mean[:] = np.where(tried, known.reward_sum / counts, 0.0)
    known.cost_mean[:] = np.where(tried[:, None], known.cost_sum / counts[:, None], 0.0)
    known.width[:] = np.where(tried, 1.0 / np.sqrt(counts), math.inf)


def checksum(body: dict[str, Any]) -> str:
    """Of the content, however it is laid out."""
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def write_file(path: str | os.PathLike[str], body: dict[str, Any]) -> None:
    """All or nothing: a crash in the middle leaves the file that was there."""
    target = Path(path)
    document = {"what": "a paceline bandit", "format": FORMAT, "sha256": checksum(body), "body": body}
    with all_or_nothing(target) as unfinished, unfinished.open("w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(target)


def read_file(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The body of a file that `write_file` wrote."""
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise UnreadableFile(f"{path} must be a readable file, but: {error.strerror}") from error
    damaged = f"{path} must be a file written by Bandit.save; it is damaged or foreign"
    try:
        document = json.loads(text)
        version, digest, body = document["format"], document["sha256"], document["body"]
    except (ValueError, KeyError, TypeError) as error:
        raise UnreadableFile(damaged) from error
    if isinstance(version, int) and version != FORMAT:
        raise UnreadableFile(f"{path} has format {version}; this version reads {FORMAT}")
    if version != FORMAT or not isinstance(body, dict) or checksum(body) != digest:
        raise UnreadableFile(damaged)
    return body


def load(path: str | os.PathLike[str], policy: PolicyLike | None = None) -> Ledger:
    """The books in a file."""
    return parse_ledger(read_file(path), path, policy)


def parse_ledger(body: dict[str, Any], path: str | os.PathLike[str], policy: PolicyLike | None) -> Ledger:
    """The books that the body of a file describes, if it makes sense."""
    try:
        return restore_ledger(body, policy)
    except PacelineError:
        raise
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise UnreadableFile(f"{path} must be a file written by Bandit.save; its content does not fit") from error

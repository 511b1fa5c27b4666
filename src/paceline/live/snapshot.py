"""A bandit as one readable JSON document: versioned, with a checksum, the same future decisions bit for bit."""

import hashlib
import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from paceline.errors import PacelineError, UnreadableFile
from paceline.files import all_or_nothing
from paceline.kernels.estimates import Estimates
from paceline.live.config import read_config
from paceline.live.decision import PendingPull
from paceline.live.journal import sync_folder
from paceline.live.ledger import Ledger
from paceline.policies.policy import Policy

FORMAT = 1
ENTRIES = ("slot", "event", "partner", "reserved", "charged", "reward", "cost", "deadline", "expired")
SUMS = ("pulls", "reward_sum", "cost_sum", "reward_squares", "cost_squares")


def describe_ledger(ledger: Ledger) -> dict[str, Any]:
    """Everything in the books."""
    arm_set = ledger.arm_set
    arm_set.merge()
    return {
        "settings": ledger.config.to_dict(),
        "rounds": ledger.rounds,
        "arms": [
            {
                "name": name,
                "max_cost": arm_set.max_costs[slot],
                "status": arm_set.statuses[slot],
                **{entry: getattr(arm_set.full.arms, entry)[slot].item() for entry in SUMS},
            }
            for slot, name in enumerate(arm_set.names)
        ],
        "clock": fields_of(arm_set.clock),
        "memory": fields_of(arm_set.memory),
        "table": arm_set.full.table.tolist(),
        "open": [
            {"id": number, **{entry: getattr(pull, entry) for entry in ENTRIES}}
            for number, pull in ledger.pending.items()
        ],
        "expired_pulls": list(ledger.expired_pulls),
        "settled": [[number, *outcome] for number, outcome in ledger.settled.items()],
    }


def restore_ledger(body: dict[str, Any], policy: Policy | None = None) -> Ledger:
    """The books that `written` described."""
    ledger = Ledger(read_config(body["settings"], policy))
    arm_set, arms = ledger.arm_set, body["arms"]
    added = arms[len(arm_set.names) :]
    if added:
        arm_set.add([(arm["name"], arm["max_cost"]) for arm in added])
    arm_set.statuses = [arm["status"] for arm in arms]
    for known, saved in zip(arm_set.full.arms, estimates_of(arms), strict=True):
        known[:] = saved
    arm_set.full.table[:] = body["table"]
    set_fields(arm_set.clock, body["clock"])
    set_fields(arm_set.memory, body["memory"])
    arm_set.field()
    ledger.rounds = body["rounds"]
    ledger.renew_most_rounds()
    for entry in body["open"]:
        pull = PendingPull(*(entry[name] for name in ENTRIES[:4]))
        for name in ENTRIES[4:]:
            setattr(pull, name, entry[name])
        ledger.pending[entry["id"]] = pull
    ledger.deadlines = sorted((e["deadline"], e["id"]) for e in body["open"] if e["deadline"] is not None)
    ledger.expired_pulls.update(dict.fromkeys(body["expired_pulls"]))
    ledger.settled.update((number, (reward, cost)) for number, reward, cost in body["settled"])
    return ledger


def fields_of(record: Any) -> dict[str, Any]:
    """The fields of a record by name."""
    return {name: record[name].item() for name in record.dtype.names}


def set_fields(record: Any, values: dict[str, Any]) -> None:
    """Write fields into a record."""
    for name in record.dtype.names:
        record[name] = values[name]


def estimates_of(arms: list[dict[str, Any]]) -> Estimates:
    """Sums as they were written; means and widths follow from them as in `estimates.observe`."""
    pulls = np.array([arm["pulls"] for arm in arms], np.int64)
    sums = {name: np.array([arm[name] for arm in arms], np.float64) for name in SUMS[1:]}
    tried = pulls > 0
    counts = np.where(tried, pulls, 1)
    return Estimates(
        pulls,
        **sums,
        reward_mean=np.where(tried, sums["reward_sum"] / counts, 0.0),
        cost_mean=np.where(tried, sums["cost_sum"] / counts, 0.0),
        width=np.where(tried, 1.0 / np.sqrt(counts), math.inf),
    )


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
    if isinstance(version, int) and version > FORMAT:
        raise UnreadableFile(f"{path} has format {version}; this version reads up to {FORMAT}")
    if version != FORMAT or not isinstance(body, dict) or checksum(body) != digest:
        raise UnreadableFile(damaged)
    return body


def load(path: str | os.PathLike[str], policy: Policy | None = None) -> Ledger:
    """The books in a file."""
    return parse_ledger(read_file(path), path, policy)


def parse_ledger(body: dict[str, Any], path: str | os.PathLike[str], policy: Policy | None) -> Ledger:
    """The books that the body of a file describes, if it makes sense."""
    try:
        return restore_ledger(body, policy)
    except PacelineError:
        raise
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise UnreadableFile(f"{path} must be a file written by Bandit.save; its content does not fit") from error

"""A bandit as one readable JSON document: versioned, with a checksum, the same future decisions bit for bit."""

import hashlib
import json
import logging
import math
import os
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from paceline import __version__
from paceline.errors import PacelineError, UnreadableFile
from paceline.files import all_or_nothing, is_device
from paceline.kernels.estimates import NUMBER, TOTAL, Estimates
from paceline.kernels.state import SKIP, State, books_in, state_in
from paceline.live import old_saves
from paceline.live.answers import without_slot
from paceline.live.config import read_config
from paceline.live.decision import NULL, Decision
from paceline.live.journal import PRIVATE, sync_folder
from paceline.live.layers import View
from paceline.live.ledger import Ledger
from paceline.live.memory import lost_from
from paceline.live.picture import picture_of
from paceline.live.pulls import Pull, Row, Told, is_told
from paceline.live.reading import NONSENSE
from paceline.live.reports import sums_of_reports
from paceline.live.turnout import Turnout
from paceline.live.turns import in_turns
from paceline.policies import PolicyLike
from paceline.policies.python_policy import Session

LOG = logging.getLogger("paceline")

FORMAT = 3
MANY = 50  # entries of a list that are put into text at once: others wait no longer than that takes
PULL = ("slot", "reason", "tag", "reserved", "largest", "asked", "deadline")
SUMS = ("pulls", "reward_sum", "reward_squares", "cost_sum", "cost_squares")  # those of costs by resource
KNOWN = ("reward_known", "cost_known")  # of all that is known, each with a number, a sum and squares
# For each resource, what the engine counts and what it shows the policy; the rest follows from the settings.
AMOUNTS = (
    *("rate", "rate_part", "folded", "credited", "unpaced", "held", "held_rounds", "lost", "reserved", "spent"),
    *("lowest", "headroom", "peak", "depth", "pace", "pace_line"),
)
SHOWN = ("rate", "headroom", "outlook", "planned")


def describe_ledger(ledger: Ledger) -> dict[str, Any]:
    """Everything in the books."""
    described = describe_picture(picture_of(ledger))
    return {
        name: list(chain(*value.parts())) if isinstance(value, Lazily) else value for name, value in described.items()
    }


def describe_picture(ledger: Ledger) -> dict[str, Any]:
    """Everything in the books, of which this is a copy; long lists are described when they are written."""
    arm_set, config, storage = ledger.arm_set, ledger.config, ledger.arm_set.all
    state, books = state_in(storage), books_in(storage)
    turnout = ledger.turnout
    pending: View = ledger.pending  # type: ignore[assignment]  # of a picture
    return {
        "settings": config.to_dict(),
        "rounds": ledger.rounds,
        "policy_since": ledger.policy_since,
        "arms": Lazily(few(range(len(arm_set.names))), lambda slot: describe_arm(ledger, state, slot)),
        "tally": fields_of(storage.tally[0]),
        "clock": fields_of(storage.clock[0]),
        "record": fields_of(storage.record[0]),
        "memory": {name: array.tolist() for name, array in storage.memory._asdict().items()},
        "session": ledger.session,
        "amounts": {name: getattr(books, name).tolist() for name in AMOUNTS},
        "shown": {name: getattr(state, name).tolist() for name in SHOWN},
        "reports": ledger.reports,
        "rolled": ledger.rolled,
        "overrun": ledger.overrun,
        "timed": ledger.timed.to_dict(),
        "late": None if ledger.late is None else ledger.late.to_dict(),
        "turnout": {
            "null": turnout.counts[NULL],
            "skips": turnout.counts[SKIP],
            "marks": [[rounds, counts] for rounds, counts in turnout.marks],
        },
        "open": Lazily(pending.parts(MANY), lambda entry: describe_pull(ledger, *entry)),
        "expired_pulls": Lazily(few(ledger.expired_pulls), int),
        "settled": Lazily(few(ledger.settled.items()), lambda entry: [entry[0], entry[1][0], list(entry[1][1])]),
        "answers": Lazily(few(ledger.answers.items()), lambda entry: [entry[0], *entry[1]]),
    }


def describe_arm(ledger: Ledger, state: State, slot: int) -> dict[str, Any]:
    """An arm, and what it has taught."""
    arm_set, turnout = ledger.arm_set, ledger.turnout
    return {
        "name": arm_set.names[slot],
        "max_cost": list(arm_set.max_costs[slot]),
        "status": arm_set.statuses[slot],
        "counts": turnout.counts[slot],
        "cancelled": turnout.cancelled[slot],
        "expired": turnout.expired[slot],
        **{entry: getattr(state.arms, entry)[slot].tolist() for entry in SUMS},
        **{entry: getattr(state.arms, entry)[:, slot].tolist() for entry in KNOWN},
    }


def describe_pull(ledger: Ledger, number: int, row: Row) -> dict[str, Any]:
    """A pull that waits for news."""
    *fields, told = ledger.marked(number, row) if ledger.ended else row
    return {"id": number, **dict(zip(PULL, fields, strict=True)), "told": None if told is None else list(told)}


class Lazily(NamedTuple):
    """A long list whose entries are described one after the other, while others may go on."""

    entries: Iterable[Iterable[Any]]  # a few at a time
    describe: Callable[[Any], Any]

    def parts(self) -> Iterator[list[Any]]:
        """The list, a few entries at a time, or none."""
        for entries in self.entries:
            yield [self.describe(entry) for entry in entries]


def few(entries: Iterable[Any]) -> Iterator[list[Any]]:
    """The same entries, a few at a time."""
    rest = iter(entries)
    return iter(lambda: list(islice(rest, MANY)), [])


def restore_ledger(body: dict[str, Any], policy: PolicyLike | None = None, may_forget: bool = True) -> Ledger:
    """The books that `describe_ledger` described.

    The policy may have changed since, so that its memory does not fit any more. If all that it knows follows from sums
    it is computed anew, unless that is not wanted.
    """
    config, arms = read_config(body["settings"], policy), body["arms"]
    ledger = Ledger(config)
    ledger.given_policy = policy
    arm_set, turnout = ledger.arm_set, ledger.turnout
    for _ in arms[len(arm_set.names) :]:
        turnout.add_arm()
    arm_set.restore([(arm["name"], tuple(arm["max_cost"]), arm["status"]) for arm in arms])
    storage = arm_set.all
    state, books = arm_set.full, books_in(storage)
    restore_estimates(state.arms, arms)
    books.pulls[:] = state.arms.pulls
    for record, values in ((storage.tally, "tally"), (storage.clock, "clock"), (storage.record, "record")):
        set_fields(record[0], body[values])
    lost = lost_from(body["memory"], storage.memory)
    if lost and not (may_forget and config.policy.adds_up):
        known = f"what policy {config.policy.name} remembers must be as its code has it today"
        raise UnreadableFile(f"{known}, got another form of {', '.join(lost)}")
    for name, array in storage.memory._asdict().items() if not lost else ():
        fill(array, body["memory"].get(name, []))
    for name in AMOUNTS:
        getattr(books, name)[:] = body["amounts"][name]
    for name in SHOWN:
        getattr(state, name)[:] = body["shown"][name]
    for entry in body["open"]:
        pull = restore_pull(entry)
        ledger.pending.put(entry["id"], pull)
        ledger.kept_back += is_told(pull)
        state.pending[pull.slot] += 1
        books.unpaid[pull.slot] += np.array(pull.reserved) > 0
        if pull.deadline is not None:
            ledger.deadlines.push(pull.deadline, entry["id"], ledger.pending)
    arm_set.field()
    if lost:
        old_saves.believe_anew(arm_set)
        LOG.warning("what policy %s believes is computed anew: its code has changed", config.policy.name)
    if isinstance(arm_set.params, Session):
        restore_session(arm_set.params, body["session"])
    ledger.seen = arm_set.lineup
    ledger.rounds, ledger.policy_since = body["rounds"], body["policy_since"]
    ledger.told = body["tally"]["told"]
    ledger.rolled, ledger.overrun = body["rolled"], body["overrun"]
    ledger.timed.restore(body["timed"])
    restore_late(ledger, body["late"])
    ledger.reports = body["reports"]
    ledger.foreign = sums_of_reports(arm_set, ledger.reports.values())
    restore_turnout(turnout, body["turnout"], arms)
    ledger.expired_pulls.update(dict.fromkeys(body["expired_pulls"]))
    for number, reward, costs in body["settled"]:
        ledger.settled.keep(number, (reward, tuple(costs)), config.remember)
    for key, id, *decision in body["answers"]:
        ledger.answers.keep(key, Decision(without_slot(id), *decision), max(config.remember, 1))
    ledger.renew_stop()
    return ledger


def restore_late(ledger: Ledger, saved: dict[str, Any] | None) -> None:
    """Rewards that come late; in a file of an earlier format they have no window yet, and it begins now."""
    if saved is None:
        ledger.late = None
        ledger.renew_window()
    elif ledger.late is not None:
        ledger.late.restore(saved)


def restore_old(version: int, body: dict[str, Any], path: str | os.PathLike[str], policy: PolicyLike | None) -> Ledger:
    """The books in a file of an earlier format."""
    today, has_forgotten = old_saves.body_of_today(version, body, policy)
    ledger = restore_ledger(today, policy)
    LOG.warning("%s was written by an earlier version: %s", path, old_saves.adapt(ledger, has_forgotten))
    return ledger


def restore_turnout(turnout: Turnout, saved: dict[str, Any], arms: list[dict[str, Any]]) -> None:
    """What was counted."""
    turnout.counts = [*[arm["counts"] for arm in arms], saved["null"], saved["skips"]]
    turnout.cancelled, turnout.expired = [arm["cancelled"] for arm in arms], [arm["expired"] for arm in arms]
    turnout.marks.clear()
    turnout.marks.extend((rounds, counts) for rounds, counts in saved["marks"])


def restore_session(session: Session, dumped: str) -> None:
    """The way back from `dump_session`."""
    content = b64decode(dumped)
    try:
        session.restore(content)
    except Exception as error:  # such as a class that is not where it was
        policy = type(session.policy).__name__
        raise UnreadableFile(f"what {policy} has learned must be readable, got {type(error).__name__}") from error


def restore_pull(entry: dict[str, Any]) -> Pull:
    """The way back from `describe_pull`."""
    told = entry["told"]
    if told is not None:
        reward, costs, charged, expired, learned = told
        told = Told(reward, tuple(costs), tuple(charged), expired, learned)
    slot, reason, tag, reserved, largest, asked, deadline = (entry[name] for name in PULL)
    return Pull(slot, reason, tag, tuple(reserved), tuple(largest), asked, deadline, told)


def fields_of(record: Any) -> dict[str, Any]:
    """The fields of a record by name."""
    return {name: record[name].tolist() for name in record.dtype.names}


def set_fields(record: Any, values: dict[str, Any]) -> None:
    """Write fields into a record."""
    for name in record.dtype.names:
        record[name] = values[name]


def fill(array: Any, values: Any) -> None:
    """The way back from ``array.tolist()``. Lists say nothing of an axis behind one of length 0."""
    if array.size or values != array.tolist():
        array[...] = values


def restore_estimates(known: Estimates, arms: list[dict[str, Any]]) -> None:
    """Write sums as they were; means and widths follow from them as in `estimates.observe`."""
    for entry in SUMS:
        getattr(known, entry)[:] = [arm[entry] for arm in arms]
    for entry in KNOWN:
        getattr(known, entry)[:] = np.stack([arm[entry] for arm in arms], axis=1)
    known.reward_mean[:] = mean_of(known.reward_known)
    known.cost_mean[:] = mean_of(known.cost_known)
    tried = known.pulls > 0
    known.width[:] = np.where(tried, 1.0 / np.sqrt(np.where(tried, known.pulls, 1)), math.inf)


def mean_of(known: Any) -> Any:
    """Means of all that is known, 0 where nothing is."""
    return known[TOTAL] / np.maximum(known[NUMBER], 1.0)


# Files.


def pieces(body: dict[str, Any]) -> Iterator[str]:
    """The content as JSON without blanks, long lists a part at a time."""
    opening = "{"
    for key, value in body.items():
        yield f"{opening}{dumps(key)}:"
        opening = ","
        if isinstance(value, Lazily):
            separator = "["
            for part in value.parts():
                yield separator + dumps(part)[1:-1] if part else ""
                separator = "," if part else separator
            yield "[]" if separator == "[" else "]"
        else:
            yield dumps(value)
    yield "}"


def dumps(value: Any) -> str:
    """A value as JSON in the one way that the checksum is of."""
    return json.dumps(value, separators=(",", ":"))


def write_file(path: str | os.PathLike[str], body: dict[str, Any], mode: int = PRIVATE) -> None:
    """All or nothing: a crash in the middle leaves the file that was there.

    Other threads may go on meanwhile.
    """
    target, digest = Path(path), hashlib.sha256()
    with all_or_nothing(target) as unfinished:
        file = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(file, "w", encoding="utf-8") as text:
            text.write(f'{{"what":"a paceline bandit","format":{FORMAT},"version":"{__version__}",\n"body":')
            for piece in in_turns(pieces(body)):
                digest.update(piece.encode())
                text.write(piece + "\n" if piece else "")
            text.write(f',"sha256":"{digest.hexdigest()}"}}\n')
            text.flush()
            os.fsync(text.fileno())
    sync_folder(target)


def read_file(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The body of a file that `write_file` wrote."""
    version, body = read_document(path)
    if version != FORMAT:
        raise UnreadableFile(f"{path} has format {version}; only {FORMAT} will do here")
    return body


def read_document(path: str | os.PathLike[str]) -> tuple[int, dict[str, Any]]:
    """The format and the body of a file that `write_file` wrote, today's or an earlier one."""
    if is_device(path):
        raise UnreadableFile(f"{path} must be a file written by Bandit.save, got a device or a pipe")
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise UnreadableFile(f"{path} must be a readable file, but: {error.strerror}") from error
    damaged = f"{path} must be a file written by Bandit.save; it is damaged or foreign"
    try:
        document = json.loads(text)
        version, digest, body = document["format"], document["sha256"], document["body"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UnreadableFile(damaged) from error
    if isinstance(version, int) and not 1 <= version <= FORMAT:
        raise UnreadableFile(f"{path} has format {version}; this version reads 1 to {FORMAT}")
    if not isinstance(version, int) or not isinstance(body, dict) or digest_of(version, body) != digest:
        raise UnreadableFile(damaged)
    return version, body


def digest_of(version: int, body: dict[str, Any]) -> str:
    """The checksum of a body; before format 3 the order of its entries did not count."""
    return hashlib.sha256(json.dumps(body, separators=(",", ":"), sort_keys=version < 3).encode()).hexdigest()


def load(path: str | os.PathLike[str], policy: PolicyLike | None = None) -> Ledger:
    """The books in a file, which an earlier version may have written."""
    version, body = read_document(path)
    return parse_ledger(body, path, policy, version)


def parse_ledger(
    body: dict[str, Any],
    path: str | os.PathLike[str],
    policy: PolicyLike | None,
    version: int = FORMAT,
    may_forget: bool = True,
) -> Ledger:
    """The books that the body of a file describes, if it makes sense."""
    try:
        if version < FORMAT:
            return restore_old(version, body, path, policy)
        return restore_ledger(body, policy, may_forget)
    except PacelineError:
        raise
    except NONSENSE as error:
        raise UnreadableFile(f"{path} must be a file written by Bandit.save; its content does not fit") from error

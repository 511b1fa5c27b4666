"""Outcomes that were observed together: rows of rewards and costs, kept as arrays."""

import base64
import math
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paceline import checks
from paceline.errors import InvalidValue

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

DIGITS = 16  # of a digest, where it is written down


class Origin(NamedTuple):
    """The member of a family that a table belongs to: enough to make it again."""

    kind: str
    seed: int
    number: int
    arms: int | None  # that were asked for


@dataclass(frozen=True, eq=False)
class Observations:
    """Rows of outcomes of each arm; a pull of an arm takes one of its rows, each equally likely.

    Arms may have the same rows (each row knows all arms) or rows of their own. Two tables are equal if they hold the
    same numbers. A table with an ``origin`` is sent and saved as a reference to it, and made again where it arrives.
    """

    values: Floats  # (1 + D, n): the rewards, then the costs of each resource; the rows of arm 0, of arm 1, ...
    starts: Ints  # (K + 1,): where the rows of each arm begin, and where the last ones end
    origin: Origin | None = None

    def __post_init__(self) -> None:
        self.values.setflags(write=False)
        self.starts.setflags(write=False)

    def __repr__(self) -> str:
        made = f", {self.origin.kind} {self.origin.number} of seed {self.origin.seed}" if self.origin else ""
        return f"<Observations {self.digest[:DIGITS]}: {self.arms} arms, {self.values.shape[1]:,} outcomes{made}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Observations) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __reduce__(self) -> tuple[Any, ...]:
        if self.origin is not None:
            return recall, (self.origin, self.digest[:DIGITS])
        return Observations, (self.values, self.starts)

    @property
    def arms(self) -> int:
        """The number of arms."""
        return self.starts.size - 1

    @cached_property
    def digest(self) -> str:
        """A word for the numbers of the table."""
        little = self.values.astype("<f8", copy=False), self.starts.astype("<i8", copy=False)
        return sha256(b"".join(array.tobytes() for array in little)).hexdigest()

    def column(self, side: int, arm: int) -> Floats:
        """The rewards (side 0) or the costs (side 1 + d) of an arm."""
        return self.values[side, self.starts[arm] : self.starts[arm + 1]]

    @cached_property
    def means(self) -> Floats:
        """(1 + D, K), rounded once."""
        return self.by_column(lambda column: math.fsum(column.tolist()) / column.size)

    @cached_property
    def variances(self) -> Floats:
        """(1 + D, K)."""
        return self.by_column(lambda column: float(column.var()))

    @cached_property
    def lows(self) -> Floats:
        """(1 + D, K), the smallest values."""
        return self.by_column(lambda column: float(column.min()))

    @cached_property
    def highs(self) -> Floats:
        """(1 + D, K), the largest values."""
        return self.by_column(lambda column: float(column.max()))

    def by_column(self, measure: Any) -> Floats:
        """A number for every column."""
        return np.array([[measure(self.column(s, arm)) for arm in range(self.arms)] for s in range(len(self.values))])

    def to_dict(self) -> dict[str, object]:
        """A reference to the family, or the numbers themselves in a form that JSON and TOML can hold."""
        if self.origin is not None:
            kind, seed, number, arms = self.origin
            wanted = {} if arms is None else {"arms": arms}
            return {"family": kind, "seed": seed, "number": number, **wanted, "digest": self.digest[:DIGITS]}
        return {
            "rows": np.diff(self.starts).tolist(),
            "values": base64.b64encode(self.values.astype("<f8").tobytes()).decode("ascii"),
        }


@dataclass(frozen=True)
class Column:
    """The rewards or the costs of an arm in a table; made by `Problem.observed`."""

    table: Observations
    side: int
    arm: int

    @property
    def mean(self) -> float:
        """Of all rows."""
        return float(self.table.means[self.side, self.arm])

    @property
    def variance(self) -> float:
        """Of all rows."""
        return float(self.table.variances[self.side, self.arm])

    @property
    def extremes(self) -> tuple[float, float]:
        """The smallest and the largest value."""
        at = self.side, self.arm
        return float(self.table.lows[at]), float(self.table.highs[at])


def recall(origin: Origin, digest: str) -> Observations:
    """The table of a member of a family, made again; it must hold the same numbers as before."""
    from paceline.problems.families import observations_of

    table = observations_of(origin)
    if not table.digest.startswith(digest):
        member = f"problem {origin.number} of family {origin.kind!r}, seed {origin.seed},"
        raise InvalidValue(f"{member} must be as it was saved, {digest}, got {table.digest[:DIGITS]} in this version")
    return table


def observations(description: object) -> Observations:
    """The table that `Observations.to_dict` described."""
    if not isinstance(description, dict):
        raise InvalidValue(f"observed must be a table of a family or of rows and values, got {description!r}")
    if "family" in description:
        keys = {"family", "seed", "number", "arms", "digest"}
        if not {"family", "seed", "number", "digest"} <= set(description) <= keys:
            raise InvalidValue(f"observed takes family, seed, number, arms and digest, got {', '.join(description)}")
        seed, number = checks.seed(description["seed"]), checks.whole("number", description["number"], 0)
        arms = checks.whole("arms", description["arms"], 2) if "arms" in description else None
        digest = description["digest"]
        if not isinstance(digest, str) or len(digest) < DIGITS:
            raise InvalidValue(f"digest must be a text of {DIGITS} letters or more, got {digest!r}")
        return recall(Origin(str(description["family"]), seed, number, arms), digest)
    if set(description) != {"rows", "values"}:
        raise InvalidValue(f"observed takes rows and values, got {', '.join(map(str, description)) or 'nothing'}")
    rows = [checks.whole(f"rows[{arm}]", n, 1) for arm, n in enumerate(checks.entries("rows", description["rows"]))]
    try:
        values = np.frombuffer(base64.b64decode(description["values"], validate=True), "<f8").astype(np.float64)
        table = values.reshape(-1, sum(rows))
    except (TypeError, ValueError):
        raise InvalidValue("values must be numbers for every row, as to_dict writes them, got others") from None
    check_range("rewards", table[0], 0.0)
    for costs in table[1:]:
        check_range("costs", costs, -1.0)
    return Observations(table, np.cumsum([0, *rows]))


def full_table(rewards: object, costs: dict[str, tuple[str, Any]], origin: Origin | None = None) -> Observations:
    """Tables (n, K) of which every row knows all arms; of the costs one for each resource, with its name."""
    sides = [check_range("rewards", array_of("rewards", rewards, 2), 0.0)]
    sides += [check_range(thing, array_of(thing, given, 2), -1.0) for thing, given in costs.values()]
    rows, arms = sides[0].shape
    for (thing, _), side in zip(costs.values(), sides[1:], strict=True):
        if side.shape != (rows, arms):
            raise InvalidValue(f"{thing} must have the shape of rewards, {(rows, arms)}, got {side.shape}")
    values = np.array([side.T.ravel() for side in sides])
    return Observations(values, np.arange(arms + 1, dtype=np.int64) * rows, origin)


def shown_table(
    rewards: object, costs: dict[str, tuple[str, Any]], shown: object, origin: Origin | None = None
) -> Observations:
    """Columns (n,) of which every row knows one arm, the one that was shown."""
    at = array_of("shown", shown, 1)
    if not np.issubdtype(at.dtype, np.integer) or at.min() < 0:
        raise InvalidValue(f"shown must be the numbers of arms, from 0, got {at[:3].tolist()} ...")
    counts = np.bincount(at)
    if not counts.all():
        raise InvalidValue(f"shown must have every arm in some row, got none with arm {int(counts.argmin())}")
    sides = [check_range("rewards", array_of("rewards", rewards, 1), 0.0)]
    sides += [check_range(thing, array_of(thing, given, 1), -1.0) for thing, given in costs.values()]
    for thing, side in zip(("rewards", *(thing for thing, _ in costs.values())), sides, strict=True):
        if side.shape != at.shape:
            raise InvalidValue(f"{thing} must have an entry for each of shown, {at.size}, got {side.size}")
    order = np.argsort(at, kind="stable")
    return Observations(np.array([side[order] for side in sides]), np.append(0, np.cumsum(counts)), origin)


def array_of(thing: str, given: object, axes: int) -> npt.NDArray[Any]:
    """An array with so many axes and at least one entry."""
    shape = "(rows, arms)" if axes == 2 else "(rows,)"
    try:
        array = np.asarray(given)
    except ValueError:  # rows of different lengths
        raise InvalidValue(f"{thing} must be an array {shape}, got rows of different lengths") from None
    if array.ndim != axes or array.size == 0:
        raise InvalidValue(f"{thing} must be an array {shape}, got shape {array.shape}")
    if not (np.issubdtype(array.dtype, np.number) or array.dtype == np.bool_):
        raise InvalidValue(f"{thing} must be an array of numbers, got {array.ravel()[0]!r}")
    return array


def check_range(thing: str, array: npt.NDArray[Any], low: float) -> Floats:
    """Outcomes in [low, 1], as floats of our own."""
    values = array.astype(np.float64)
    bad = ~((values >= low) & (values <= 1.0))
    if bad.any():
        at = tuple(np.argwhere(bad)[0].tolist())
        place = "".join(f"[{index}]" for index in at)
        raise InvalidValue(f"{thing}{place} must be in [{low:g}, 1], got {float(values[at])!r}")
    return values

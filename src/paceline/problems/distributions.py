"""What one pull of an arm can yield: distributions with a known mean and variance.

Rewards are in [0, 1]. Costs are, too, or in [-1, 1] where a pull may refill a resource (`Scaled`, `Shifted`).
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from paceline import checks
from paceline.errors import InvalidValue, UnknownName
from paceline.problems.observed import Column


@dataclass(frozen=True)
class Constant:
    """Always the same value.

    >>> Constant(0.2).mean
    0.2
    """

    value: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", checks.real("value of Constant", self.value, 0, 1))

    @property
    def mean(self) -> float:
        return self.value

    @property
    def variance(self) -> float:
        return 0.0


@dataclass(frozen=True)
class Bernoulli:
    """1 with probability ``mean``, else 0.

    >>> Bernoulli(0.5).variance
    0.25
    """

    mean: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", checks.real("mean of Bernoulli", self.mean, 0, 1))

    @property
    def variance(self) -> float:
        return self.mean * (1.0 - self.mean)


@dataclass(frozen=True)
class Beta:
    """Beta(mean * concentration, (1 - mean) * concentration); a mean of 0 or 1 is the constant it tends to.

    >>> Beta(0.3, 10.0).shape
    (3.0, 7.0)
    """

    mean: float
    concentration: float = 10.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", checks.real("mean of Beta", self.mean, 0, 1))
        # Beyond these a Beta is a constant, or 0 or 1, to the last digits, and its density cannot be computed with any.
        object.__setattr__(self, "concentration", checks.real("concentration of Beta", self.concentration, 1e-3, 1e9))

    @property
    def shape(self) -> tuple[float, float]:
        first = self.mean * self.concentration
        return first, self.concentration - first

    @property
    def variance(self) -> float:
        return self.mean * (1.0 - self.mean) / (self.concentration + 1.0)


@dataclass(frozen=True)
class Empirical:
    """One of the observed values, each equally likely; a repeated value counts as often as it is listed.

    >>> Empirical([0.0, 0.5, 1.0, 0.5]).mean
    0.5
    """

    values: tuple[float, ...]

    def __init__(self, values: Sequence[float]) -> None:
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise InvalidValue(f"values of Empirical must be a list of observed values, got {values!r}")
        given = tuple(checks.real("observed value of Empirical", value, 0, 1) for value in values)
        if not given:
            raise InvalidValue("values of Empirical must hold at least one observed value, got none")
        object.__setattr__(self, "values", given)

    @property
    def mean(self) -> float:
        return fmean(self.values)

    @property
    def variance(self) -> float:
        mean = self.mean
        return fmean((value - mean) ** 2 for value in self.values)


@dataclass(frozen=True)
class Scaled:
    """``top`` times a draw of another distribution: outcomes of at most ``top``, or refills of at most ``-top``.

    >>> Scaled(Beta(0.5), 0.2).mean, Scaled(Bernoulli(0.3), -1.0).mean
    (0.1, -0.3)
    """

    of: Constant | Bernoulli | Beta | Empirical
    top: float

    def __post_init__(self) -> None:
        if not isinstance(self.of, Constant | Bernoulli | Beta | Empirical):
            raise InvalidValue(f"of in Scaled must be a distribution such as Beta(0.3), got {self.of!r}")
        top = checks.real("top of Scaled", self.top, -2, 2)
        if top == 0.0:
            raise InvalidValue("top of Scaled must not be 0 (use Constant(0)), got 0")
        object.__setattr__(self, "top", top)

    @property
    def mean(self) -> float:
        return self.top * self.of.mean

    @property
    def variance(self) -> float:
        return self.top**2 * self.of.variance


@dataclass(frozen=True)
class Shifted:
    """A draw of another distribution plus ``by``: below 0 it is a refill.

    >>> cost = Shifted(Scaled(Beta(0.5), 0.5), -0.2)
    >>> round(cost.mean, 12), extremes(cost)
    (0.05, (-0.2, 0.3))
    """

    of: Constant | Bernoulli | Beta | Empirical | Scaled
    by: float

    def __post_init__(self) -> None:
        if not isinstance(self.of, Constant | Bernoulli | Beta | Empirical | Scaled):
            raise InvalidValue(f"of in Shifted must be a distribution such as Beta(0.3), got {self.of!r}")
        object.__setattr__(self, "by", checks.real("by of Shifted", self.by, -1, 1))

    @property
    def mean(self) -> float:
        return self.of.mean + self.by

    @property
    def variance(self) -> float:
        return self.of.variance


@dataclass(frozen=True)
class Unknown:
    """An outcome in [low, 1] of which nothing else is known: that of a world of the user's own.

    >>> Unknown(0.0).mean
    nan
    """

    low: float

    @property
    def mean(self) -> float:
        return math.nan

    @property
    def variance(self) -> float:
        return math.nan


# What one distribution is; a `Column` is one together with the others of its table.
Distribution = Constant | Bernoulli | Beta | Empirical | Scaled | Shifted | Unknown | Column

KINDS: dict[str, type[Distribution]] = {
    "constant": Constant,
    "bernoulli": Bernoulli,
    "beta": Beta,
    "empirical": Empirical,
    "scaled": Scaled,
    "shifted": Shifted,
    "unknown": Unknown,
}


def extremes(distribution: Distribution) -> tuple[float, float]:
    """The smallest and the largest value that can come up.

    >>> extremes(Scaled(Bernoulli(0.5), 0.2)), extremes(Empirical([0.1, 0.4]))
    ((0.0, 0.2), (0.1, 0.4))
    """
    match distribution:
        case Constant(value):
            return value, value
        case Empirical(values):
            return min(values), max(values)
        case Scaled(of, top):
            low, high = extremes(of)
            return min(top * low, top * high), max(top * low, top * high)
        case Unknown(low):
            return low, 1.0
        case Column():
            return distribution.extremes
        case Shifted(of, by):
            low, high = extremes(of)
            return low + by, high + by
    return 0.0, 1.0


def to_dict(distribution: Distribution) -> dict[str, object]:
    """The distribution in a form that JSON and TOML can hold; `from_dict` is the way back.

    >>> to_dict(Beta(0.3, 10.0))
    {'kind': 'beta', 'mean': 0.3, 'concentration': 10.0}
    """

    def plain(value: object) -> object:
        return list(value) if isinstance(value, tuple) else to_dict(value) if isinstance(value, Distribution) else value

    fields = {name: plain(getattr(distribution, name)) for name in distribution.__dataclass_fields__}
    return {"kind": type(distribution).__name__.lower(), **fields}


def from_dict(description: object, thing: str) -> Distribution:
    """The distribution that a table ``{kind = "beta", mean = 0.3, concentration = 10}`` describes."""
    if not isinstance(description, dict) or "kind" not in description:
        raise InvalidValue(f"{thing} must be a table with a kind, got {description!r}")
    kind = description["kind"]
    if not isinstance(kind, str) or kind not in KINDS:
        raise UnknownName(f"kind of {thing} must be one of {', '.join(KINDS)}, got {kind!r}")
    fields = set(KINDS[kind].__dataclass_fields__)
    given = {name: value for name, value in description.items() if name != "kind"}
    required = fields - {"concentration"}
    if not required <= set(given) <= fields:
        expected = ", ".join(KINDS[kind].__dataclass_fields__)
        raise InvalidValue(f"{kind} in {thing} takes {expected}, got {', '.join(given) or 'nothing'}")
    if kind in {"scaled", "shifted"}:
        given["of"] = from_dict(given["of"], f"of in {thing}")
    try:
        return KINDS[kind](**given)
    except InvalidValue as error:
        raise InvalidValue(f"{thing}: {error}") from None

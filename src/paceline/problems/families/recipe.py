"""The form of a recipe: how a kind of random problem is drawn."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paceline import checks
from paceline.errors import InvalidValue
from paceline.problems.distributions import Bernoulli, Beta, Distribution, Scaled
from paceline.problems.observed import Origin
from paceline.problems.problem import Problem

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# How far an arm falls behind the frontier, on average. With this the Bernoulli and mixed kinds are about as hard for
# SUAK, in units of the limit, as the families on which pacers were first measured (docs/policies.md).
SHORTFALL = 0.1
CONCENTRATIONS = (5.0, 10.0, 30.0)


@dataclass(frozen=True)
class Options:
    """What the caller wants to have fixed instead of drawn."""

    arms: int | None = None
    case: int | None = None
    budget: float | None = None
    concentration: float | None = None
    shortfall: float = SHORTFALL
    resources: int | None = None
    law: str | None = None


class Recipe(ABC):
    """What sets one kind of problem apart from the others."""

    says: str  # in a line
    cases: tuple[int | None, ...] = (None,)  # that a family takes in turn; None: whichever comes
    laws: tuple[str | None, ...] = (None,)  # likewise
    rounds: int | None = None  # that the kind is for, if not for any number

    @abstractmethod
    def check(self, kind: str, options: Options) -> None:
        """Refuse what this kind cannot have."""

    @abstractmethod
    def draw(self, generator: np.random.Generator, options: Options, origin: Origin) -> Problem | None:
        """One draw; None if the problem is not of the kind, or not of the wanted case."""


def check_one_resource(kind: str, resources: int | None) -> None:
    """Refuse any other number of resources."""
    if resources is not None and (isinstance(resources, bool) or resources != 1):
        raise InvalidValue(f"resources of kind {kind!r} must be 1, got {resources!r}")


def check_case(kind: str, case: int | None, cases: tuple[int | None, ...]) -> None:
    """Refuse a case that does not come up."""
    if case is not None and (isinstance(case, bool) or case not in cases):
        allowed = " or ".join(map(str, sorted({entry for entry in cases if entry is not None})))
        raise InvalidValue(f"case of kind {kind!r} must be {allowed}, got {case!r}")


def refuse_given(kind: str, options: Options, names: tuple[str, ...], why: str) -> None:
    """Refuse options that would change nothing."""
    plain = Options()
    for name in names:
        value = getattr(options, name)
        if value != getattr(plain, name):
            raise InvalidValue(f"{name} must not be given for kind {kind!r}, {why}, got {value!r}")


def check_budget(kind: str, budget: float | None, most: float = 1.0) -> None:
    """Refuse a rate that the kind cannot have."""
    if budget is not None:
        checks.real(f"budget of kind {kind!r}", budget, 0, most, above_low=True)


# NumPy rounds these as suits the processor; the C library, as which random numbers are drawn, rounds alike.
exponential = np.vectorize(math.exp, otypes=[float])
power = np.vectorize(math.pow, otypes=[float])


def log_uniform(generator: np.random.Generator, low: float, high: float) -> float:
    """A number between two others, each factor equally likely."""
    return math.exp(generator.uniform(math.log(low), math.log(high)))


def log_uniforms(generator: np.random.Generator, low: float, high: float, count: int) -> Floats:
    """So many of them."""
    return np.asarray(exponential(generator.uniform(math.log(low), math.log(high), count)))


def distributions(means: Floats, binary: bool, concentration: float) -> list[Distribution]:
    """A distribution for each mean; below 0 it is one of refills."""
    found: list[Distribution] = []
    for mean in means.tolist():
        size = Bernoulli(abs(mean)) if binary else Beta(abs(mean), concentration)
        found.append(size if mean >= 0.0 else Scaled(size, -1.0))
    return found

"""Rules for single values. Each returns the value in its proper type or raises InvalidValue."""

import math
from collections.abc import Iterable
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

from paceline.errors import InvalidValue

# Round numbers are multiplied by a 31-bit fraction in the guard; below 2**31 that stays exact in 64 bits.
MOST_ROUNDS = 2**31 - 1

LARGE = 1e100  # a bound beyond this is there for the arithmetic, and nobody means to come near it
LONG = 200  # bits of a number that is not written out


def real(
    thing: str,
    value: object,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    above_low: bool = False,
    toward: float | None = None,
) -> float:
    """A finite number in [low, high], or in (low, high] with ``above_low``.

    Of a number that is no float, such as a fraction, it is the next float, or the next one ``toward`` +-infinity.

    >>> real("budget", 0.5, 0, 1, above_low=True)
    0.5
    >>> real("budget", 1.4, 0, 1, above_low=True)
    Traceback (most recent call last):
        ...
    paceline.errors.InvalidValue: budget must be in (0, 1], got 1.4
    >>> real("budget", -1.0, 0, 1e150)  # that bound is not what matters here
    Traceback (most recent call last):
        ...
    paceline.errors.InvalidValue: budget must be a finite number of at least 0, got -1.0
    >>> real("cost", 2**53 + 1, toward=math.inf) == 2**53 + 2
    True
    """
    exact, number = (value, value) if type(value) is float else as_float(thing, value, toward)
    above = low < min(exact, number) if above_low else low <= exact
    if not (math.isfinite(number) and above and exact <= high):
        if high == math.inf or (number < low and high > LARGE):  # the bound that matters
            rule = f"a finite number {'above' if above_low else 'of at least'} {low:g}" if low > -math.inf else "finite"
        else:
            rule = f"in {'(' if above_low else '['}{low:g}, {high:g}]"
        raise InvalidValue(f"{thing} must be {rule}, got {exact!r}")
    return number


def as_float(thing: str, value: object, toward: float | None) -> tuple[Any, float]:
    """A number as it is, to be compared with floats, and the float that stands for it."""
    exact: Any = value
    if type(value) is not int:
        exact = entry_of(value)
        if isinstance(exact, bool) or not isinstance(exact, Real | Decimal):
            raise InvalidValue(f"{thing} must be a number, got {value!r}")
        if isinstance(exact, Integral):
            exact = int(exact)  # integers of NumPy compare as floats
    try:
        number = float(exact)
    except OverflowError:  # a number that no float can hold
        number = math.inf if exact > 0 else -math.inf
    except ValueError:  # a Decimal that is no number, and says so
        raise InvalidValue(f"{thing} must be a number, got {value!r}") from None
    if not math.isfinite(number) or exact == number:
        return number, number
    if toward is not None and (exact > number) == (toward > number):
        number = math.nextafter(number, toward)
    return exact, number


def entry_of(value: Any) -> Any:
    """The one number of an array without dimensions, as a mean may come from a library of arrays; else the value."""
    if isinstance(value, Real) or getattr(value, "ndim", None) != 0:
        return value
    kind = getattr(getattr(value, "dtype", None), "kind", "f")  # of NumPy; a moment or a duration is no number
    return value.item() if kind in "biufO" else value


def entries(thing: str, value: object) -> list[Any]:
    """The entries of a list, tuple or array.

    >>> entries("reward means", 0.5)
    Traceback (most recent call last):
        ...
    paceline.errors.InvalidValue: reward means must be a list with an entry per arm, got 0.5
    """
    if isinstance(value, str | bytes | dict) or not isinstance(value, Iterable):
        raise InvalidValue(f"{thing} must be a list with an entry per arm, got {value!r}")
    return list(value)


def whole(thing: str, value: object, low: int, high: int | None = None) -> int:
    """A whole number of at least ``low`` and, where given, at most ``high``.

    >>> whole("rounds", 0, 1)
    Traceback (most recent call last):
        ...
    paceline.errors.InvalidValue: rounds must be a whole number of at least 1, got 0
    """
    number = int(value) if isinstance(value, Integral) and not isinstance(value, bool) else None
    if number is None or number < low or (high is not None and number > high):
        rule = f"of at least {low}" if high is None else f"from {low} to {high}"
        raise InvalidValue(f"{thing} must be a whole number {rule}, got {shown(value)}")
    return number


def shown(value: object) -> str:
    """A value for a message; Python refuses to write a whole number of thousands of digits.

    >>> shown(7), shown(10**5000)
    ('7', 'a number of 16610 bits')
    """
    if isinstance(value, int) and value.bit_length() > LONG:
        return f"a number of {value.bit_length()} bits"
    return repr(value)


def rounds(thing: str, value: object) -> int:
    """A number of rounds that the guard can count exactly."""
    return whole(thing, value, 1, MOST_ROUNDS)


def seed(value: object) -> int:
    """A seed: any 64-bit word."""
    return whole("seed", value, 0, 2**64 - 1)


def one_of(thing: str, value: object, allowed: tuple[str, ...]) -> str:
    """One of a few words."""
    if not isinstance(value, str) or value not in allowed:
        raise InvalidValue(f"{thing} must be one of {', '.join(allowed)}, got {value!r}{guess(value, allowed)}")
    return value


def guess(given: object, known: Iterable[str]) -> str:
    """What to add to a message about a word that is not known: the nearest one, if any is near.

    >>> guess("round", ["rounds", "trials"]), guess("x", ["rounds", "trials"])
    ("; did you mean 'rounds'?", '')
    """
    from difflib import get_close_matches  # only once something is wrong

    near = get_close_matches(given, known, n=1) if isinstance(given, str) else []
    return f"; did you mean {near[0]!r}?" if near else ""

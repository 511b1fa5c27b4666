"""Regret against a parameter that was swept, ready to be drawn."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Trace:
    """Points that belong together, one for each value of the parameter."""

    places: tuple[int, ...]  # the place of each point's policy, for its colour
    means: tuple[float, ...]
    lows: tuple[float, ...]
    highs: tuple[float, ...]


@dataclass(frozen=True)
class Sweep:
    """Traces over the values of one parameter, everything else the same: numbers in their order, or words.

    >>> Sweep("budget", (0.4, 0.5), (), "Steady regret").numeric, Sweep("order", ("first",), (), "Regret").numeric
    (True, False)
    """

    parameter: str
    values: tuple[float, ...] | tuple[str, ...]
    traces: tuple[Trace, ...]
    quantity: str

    @property
    def numeric(self) -> bool:
        """Whether the parameter is a number."""
        return not any(isinstance(value, str) for value in self.values)

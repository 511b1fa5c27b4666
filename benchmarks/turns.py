"""Fair timing on a noisy machine: contestants take turns, and the fastest turn of each counts."""

import time
from collections.abc import Callable, Mapping


def fastest(contestants: Mapping[str, Callable[[], None]], turns: int = 7) -> dict[str, float]:
    """Seconds of the fastest turn of each contestant."""
    best = dict.fromkeys(contestants, float("inf"))
    for _ in range(turns):
        for name, run in contestants.items():
            start = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def line(name: str, value: str, target: str = "") -> None:
    """One measurement, with the target beside it."""
    print(f"  {name:<44} {value:>12}   {target}")

"""Results to the last bit, to hold them against each other."""

import paceline as pl


def bits(run: pl.Run) -> dict[str, tuple[tuple[int, ...], bytes]]:
    """Every raw total of a run, to the last bit."""
    return {field: (array.shape, array.tobytes()) for field, array in run.totals._asdict().items()}


def all_bits(results: pl.Results) -> dict[str, object]:
    """Every raw total of every run, in order of the labels."""
    return {label: bits(results[label]) for label in sorted(results)}

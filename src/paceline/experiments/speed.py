"""How long a round takes, in one thread."""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace

import numpy as np

from paceline.simulation.simulate import Stopped, Trial, compile_first, run_trial

ROUNDS = 40_000
SECONDS = 0.5  # that plain Python may take for them


def seconds_per_round(
    trials: Mapping[str, Trial], turns: int, clock: Callable[[], float] = time.thread_time
) -> dict[str, float]:
    """The time of a round by label, the draws of the outcomes in it, over the first rounds of a trial of each.

    They take turns, and the fastest counts: the others were disturbed. The usual clock is that of this thread: others
    may keep the machine busy.
    """
    short = {
        label: replace(trial, checkpoints=trial.checkpoints[-1:].clip(max=ROUNDS)) for label, trial in trials.items()
    }
    for trial in short.values():
        compile_first(trial)
    best = dict.fromkeys(short, np.inf)
    for _ in range(turns):
        for label, trial in short.items():
            began = clock()
            played = rounds_played(trial)
            best[label] = min(best[label], (clock() - began) / played)
    return best


def rounds_played(trial: Trial) -> int:
    """Play a trial, or as much of it as there is time for; how many rounds that were."""
    played, end = 0, time.monotonic() + SECONDS

    def step(rounds: int) -> None:
        nonlocal played
        played += rounds
        if time.monotonic() > end:
            raise Stopped

    with suppress(Stopped):
        run_trial(trial, step)
    return played

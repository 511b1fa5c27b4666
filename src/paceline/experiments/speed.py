"""How long a round takes, in one thread."""

import time
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from paceline.simulation.simulate import Trial, compile_first, run_trial

ROUNDS = 40_000


def seconds_per_round(trials: Mapping[str, Trial], turns: int) -> dict[str, float]:
    """The time of a round by label, the draws of the outcomes in it, over the first rounds of a trial of each.

    They take turns, and the fastest counts: the others were disturbed.
    """
    short = {
        label: replace(trial, checkpoints=trial.checkpoints[-1:].clip(max=ROUNDS)) for label, trial in trials.items()
    }
    for trial in short.values():
        compile_first(trial)
    best = dict.fromkeys(short, np.inf)
    for _ in range(turns):
        for label, trial in short.items():
            began = time.thread_time()  # of this thread: others may keep the machine busy
            run_trial(trial)
            best[label] = min(best[label], (time.thread_time() - began) / int(trial.checkpoints[-1]))
    return best

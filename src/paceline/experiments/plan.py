"""What a run is about to do, in words, and how long that will take here."""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from paceline.compile import compile_ahead
from paceline.experiments.experiment import Experiment
from paceline.experiments.folder import check_folder, left_of
from paceline.simulation.simulate import Stopped, Trial, compile_first, run_trial

ROUNDS = 40_000  # that are played to see how long one takes
SECONDS = 0.5  # that plain Python may take for them


def plan(experiment: Experiment, out: Path, workers: int, threads: bool, say: Callable[[str], None]) -> str:
    """Tasks, rounds and the time they will take here. To measure that it compiles; ``say`` is told if it must.

    ``threads`` says whether workers share an interpreter: then only one of them is in plain Python at a time.
    """
    tasks = experiment.tasks()
    left = left_of(out, check_folder(out, experiment), experiment)
    lines = [
        f"{experiment.name}: {counted(len(experiment.problems), 'problem')} x "
        f"{counted(len(experiment.policies), 'policy', 'policies')} x {counted(experiment.trials, 'trial')} of "
        f"{int(experiment.rounds[-1]):,} rounds",
        f"{counted(len(tasks), 'task')}, {sum(task.cost for task in tasks):,} rounds in all; "
        f"{sum(task.cost for task in left):,} rounds to do",
    ]
    if left:
        policies = [spec.policy for spec in experiment.policies.values()]
        counts = [len(spec.problem.resources) for spec in experiment.problems]
        compile_ahead(policies, ["simulation" if experiment.guard else "no guard"], say, counts)
        first = {task.label: task.trials()[0] for task in reversed(tasks)}  # each policy on the first problem
        times = seconds_per_round(first, turns=1, clock=time.perf_counter)  # a policy may wait for something
        work = [task.cost * times[task.label] for task in left]
        alone = sum(seconds for task, seconds in zip(left, work, strict=True) if threads and task.is_in_python)
        seconds = max(sum(work) / workers, alone, *work)
        lines.append(f"estimated time: {span(seconds)} on {workers} workers like this machine's")
    return "\n".join(lines)


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


def counted(count: int, one: str, many: str | None = None) -> str:
    """A number of things.

    >>> counted(1, "trial"), counted(1200, "trial"), counted(2, "policy", "policies")
    ('1 trial', '1,200 trials', '2 policies')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def span(seconds: float) -> str:
    """A time in the unit that suits it.

    >>> span(0.4), span(90), span(7200)
    ('under a second', '2 minutes', '2 hours')
    """
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60), ("seconds", 1)):
        if seconds >= 1.5 * length or (unit == "seconds" and seconds >= 1):
            return f"{round(seconds / length)} {unit}"
    return "under a second"

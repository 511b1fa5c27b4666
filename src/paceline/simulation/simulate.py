"""Policies x trials on an executor. Results depend on the seed alone."""

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from paceline import checks
from paceline.errors import InvalidValue
from paceline.game import prepare
from paceline.grafting import FALLING_BACK, GUARDED, UNGUARDED
from paceline.interrupts import Inbox, interrupts_held
from paceline.machine import cores
from paceline.policies import PoliciesLike, label_policies
from paceline.policies.policy import Policy, Setting
from paceline.problems.problem import Problem
from paceline.simulation.history import History
from paceline.simulation.progress import Advance, progress_bar
from paceline.simulation.recording import (
    Kept,
    Record,
    Recorder,
    RecordLike,
    Rounds,
    check_size,
    empty_folder,
    read_record,
    recorder_for,
)
from paceline.simulation.results import Results, Run
from paceline.simulation.totals import Totals, new_totals, note, stack_trials
from paceline.worlds.delays import DelayLike, Delays, in_words, read_delays
from paceline.worlds.python_world import PlayedWorld, PythonWorld
from paceline.worlds.stationary import world_of
from paceline.worlds.world import World

Ints = npt.NDArray[np.int64]
Result = TypeVar("Result")

# The most rounds between two looks at the outside world: progress, and whether to stop. Python, which may be slow,
# plays as many as it can in so many seconds.
STRIDE = 1_000_000
SECONDS = 0.05


class Stopped(Exception):
    """The run was given up; raised inside a trial that notices."""


@dataclass(frozen=True)
class Trial:
    """One policy on one problem with one stream of random numbers: the unit of work, small to send."""

    problem: Problem
    policy: Policy
    checkpoints: Ints
    seed: int
    stream: int
    world: PythonWorld | None = None  # in place of the problem's own
    delays: Delays | None = None
    record: Record | None = None
    guard: bool = True


class Finished(NamedTuple):
    """What a trial leaves behind."""

    totals: Totals
    kept: Kept | None  # its history


def run_trial(trial: Trial, step: Callable[[int], None] | None = None) -> Totals:
    """The totals of a trial."""
    return play_trial(trial, step).totals


def play_trial(trial: Trial, step: Callable[[int], None] | None = None) -> Finished:
    """Play a trial from checkpoint to checkpoint. Memory does not grow with the rounds, but for what is to be kept.

    ``step`` is told of the rounds played, every now and then, and may raise to give up.
    """
    with recorder_for(trial.record) as recorder:
        return Finished(play_with(trial, recorder, step), None if recorder is None else recorder.kept)


def play_with(trial: Trial, recorder: Recorder | None, step: Callable[[int], None] | None) -> Totals:
    """Play a trial that is recorded, or not."""
    problem, policy = trial.problem, trial.policy
    setting = replace(setting_of(problem, int(trial.checkpoints[-1])), seed=trial.seed, stream=trial.stream)
    world = world_for(problem, trial.world, trial.seed, trial.stream)
    page = None if recorder is None else recorder.page
    game = prepare(policy, world, setting, trial.delays, rules_of(problem, trial.guard), page)
    tally = game.storage.tally[0]
    totals = new_totals(len(trial.checkpoints), problem.arms, setting.resources, policy.record)
    stride = 1 if game.is_in_python else STRIDE
    for at, checkpoint in enumerate(trial.checkpoints):
        while (done := int(tally.t)) < checkpoint:
            until, began = min(done + stride, int(checkpoint)), time.perf_counter()
            if recorder is not None:
                until = recorder.reach(until)
            game.until(until)
            if recorder is not None:
                recorder.turn()
            if game.is_in_python:
                stride = next_stride(until - done, time.perf_counter() - began)
            if step is not None:
                step(until - done)
        note(totals, at, game.storage, game.late)
    return totals


def lines_of(problem: Problem | PythonWorld) -> tuple[Problem, PythonWorld | None]:
    """The problem that the guard is told of, and the world in plain Python if it is one."""
    lines = problem.lines() if isinstance(problem, PythonWorld) else problem
    if not isinstance(lines, Problem):
        raise InvalidValue(f"problem must be a Problem or a PythonWorld, got {problem!r}")
    return lines, problem if isinstance(problem, PythonWorld) else None


def world_for(problem: Problem, world: PythonWorld | None, seed: int, stream: int) -> World | PlayedWorld:
    """What yields the outcomes of a trial: the problem, unless there is a world in plain Python in its place."""
    return world_of(problem) if world is None else PlayedWorld(world, problem, seed, stream)


def rules_of(problem: Problem, guard: bool = True) -> str:
    """The rules by which a problem is played."""
    if guard:
        return FALLING_BACK if problem.fallback else GUARDED
    return UNGUARDED


def next_stride(rounds: int, seconds: float) -> int:
    """How many rounds to play at once when the last so many took so long; at most twice as many.

    >>> next_stride(1, 0.001), next_stride(100, 0.5), next_stride(1, 10.0)
    (2, 10, 1)
    """
    return max(1, min(2 * rounds, int(rounds * SECONDS / max(seconds, 1e-9)), STRIDE))


def setting_of(problem: Problem, rounds: int) -> Setting:
    """What a policy is told of a problem before the first round."""
    return Setting(
        arms=problem.arms,
        rates=problem.rates,
        rounds=rounds,
        problem=problem,
        max_costs=np.array(problem.most).T,
        start=problem.stocks,
        caps=problem.caps,
        refills=problem.refills,
        stop=problem.stop,
    )


def compile_first(trial: Trial) -> None:
    """Compile the loop of a policy by playing one round, in this thread alone: a race could corrupt numba's cache."""
    record = None if trial.record is None else trial.record.compiled()
    run_trial(replace(trial, checkpoints=np.array([1]), record=record))


def checkpoint_rounds(rounds: int, checkpoints: int | Sequence[int]) -> Ints:
    """The rounds at which totals are kept: so many, evenly spread, or just those given; the last round always.

    >>> checkpoint_rounds(10, 4)
    array([ 3,  5,  8, 10])
    >>> checkpoint_rounds(10, [1, 5])
    array([ 1,  5, 10])
    """
    if isinstance(checkpoints, Sequence | np.ndarray) and not isinstance(checkpoints, str | bytes):
        given = [checks.whole("each checkpoint", point, 1, rounds) for point in checkpoints]
        return np.array(sorted({*given, rounds}), np.int64)
    count = min(checks.whole("checkpoints", checkpoints, 1), rounds)
    return -(-rounds * np.arange(1, count + 1, dtype=np.int64) // count)


def check_executor(executor: Executor | None) -> None:
    """Refuse what cannot take work."""
    if executor is not None and not isinstance(executor, Executor):
        raise InvalidValue(
            f"executor must be a concurrent.futures executor (of a Dask client its get_executor()), got {executor!r}"
        )


def simulate(
    problem: Problem | PythonWorld,
    policies: PoliciesLike = "index",
    rounds: int = 100_000,
    trials: int = 10,
    seed: int = 0,
    checkpoints: int | Sequence[int] = 200,
    executor: Executor | None = None,
    progress: bool = False,
    delay: DelayLike = None,
    record: RecordLike = None,
    record_to: str | os.PathLike[str] | None = None,
    guard: bool = True,
) -> Results:
    """Play each policy on the problem, ``trials`` times, behind the guard.

    In trial s the n-th pull of arm i has the same outcome whichever policy pulls it, so policies are compared in pairs
    and adding one changes no other. Two calls with the same seed play the same random numbers, also on different
    problems: they share their luck, which is wanted when they are compared, and must not be counted twice when they
    are averaged (take another seed then, or `compare`).

    With ``delay`` the outcome of a pull is known so many rounds late: a number, {"geometric": mean}, {"batch": rounds},
    a list of observed delays, or {"cost": ..., "reward": ...} with these (docs/delays.md). Until a cost is known its
    largest stays reserved. Results count what was earned and spent in the round of the pull, known or not.

    With ``record`` single rounds are kept, too: "all", a list or a range of rounds; `Run.history` has them. In memory
    they may be ten million at most, of all policies and trials. With ``record_to``, a folder that is new or empty,
    they are streamed to Parquet files, one per policy and trial, and memory does not grow (docs/history.md).

    ``guard=False`` plays without the guard, as many policies were published: what they promise of the line holds up to
    something of lower order, or at the end, or on average. Whatever a policy wants is then pulled, and nothing is
    claimed of the line: tables show ``run.violation``, the worst by which it was crossed, in place of the headroom. A
    live `Bandit` has no such mode.

    Without an ``executor`` the trials run in threads, one per core; any concurrent.futures executor will do (for a Dask
    cluster ``client.get_executor()``) and gives the same numbers.

    >>> from paceline import paper
    >>> res = simulate(paper.three_arms(), ["suak", "uniform"], rounds=2000, trials=3)
    >>> list(res), res["suak"].regret.shape, bool((res["suak"].min_headroom >= 0).all())
    (['suak', 'uniform'], (3, 200), True)
    >>> res = simulate(paper.three_arms(), "one-phase", rounds=2000, trials=3, guard=False)
    >>> bool((res["one-phase"].violation > 1).all())
    True
    """
    problem, world = lines_of(problem)
    check_executor(executor)
    chosen = label_policies(policies)
    rounds = checks.rounds("rounds", rounds)
    points = checkpoint_rounds(rounds, checkpoints)
    trials = checks.whole("trials", trials, 1)
    seed = checks.seed(seed)
    delays = read_delays(delay)
    check_guard(guard, problem)
    kept = read_record(record, rounds)
    if record_to is not None and kept is None:
        raise InvalidValue(f"record_to must come with record, the rounds to keep, got {str(record_to)!r} alone")
    if kept is not None and record_to is None:
        check_size(len(kept) * trials * len(chosen))
    folder = None if record_to is None else empty_folder(record_to)
    with progress_bar(rounds * trials * len(chosen), progress) as advance:
        return play_trials(
            problem, chosen, points, seed, range(trials), executor, advance, world, delays, kept, folder, guard
        )


def check_guard(guard: object, problem: Problem) -> bool:
    """Whether to play behind the guard; some problems cannot be played without it."""
    if not isinstance(guard, bool):
        raise InvalidValue(f"guard must be true or false, got {guard!r}")
    if not guard and (problem.stop or problem.fallback):
        kind = "stops at depletion" if problem.stop else "falls back to an arm"
        raise InvalidValue(f"guard must be true for a problem that {kind}, got {guard!r}")
    return guard


def play_trials(
    problem: Problem,
    chosen: dict[str, Policy],
    points: Ints,
    seed: int,
    streams: range,
    executor: Executor | None,
    advance: Advance,
    world: PythonWorld | None = None,
    delays: Delays | None = None,
    kept: Rounds | None = None,
    folder: Path | None = None,
    guard: bool = True,
) -> Results:
    """What `simulate` does once its arguments are in order: a trial for each of the streams."""

    def trial(number: int, label: str, stream: int) -> Trial:
        record = None
        if kept is not None:
            file = None if folder is None else folder / f"{number}-{stream}.parquet"
            record = Record(kept, {"policy": label, "trial": stream}, chosen[label].reasons, problem.resources, file)
        return Trial(problem, chosen[label], points, seed, stream, world, delays, record, guard)

    work = {label: [trial(number, label, stream) for stream in streams] for number, label in enumerate(chosen)}
    for label_trials in work.values():
        compile_first(label_trials[0])
    finished = on_threads(work, advance) if executor is None else on_executor(work, executor, advance)
    runs = {
        label: Run(
            label,
            repr(chosen[label]),
            problem,
            points,
            stack_trials([each.totals for each in finished[label]]),
            history_of(label, trials, finished[label]),
            guard,
        )
        for label, trials in work.items()
    }
    return Results(problem, seed, points, runs, in_words(delays), guard)


def history_of(label: str, trials: Sequence[Trial], finished: Sequence[Finished]) -> History | None:
    """The rounds that the trials of a policy have kept."""
    records = tuple(trial.record for trial in trials if trial.record is not None)
    return History(label, records, tuple(each.kept for each in finished if each.kept is not None)) if records else None


Work = dict[str, list[Trial]]


def on_threads(work: Work, advance: Advance) -> dict[str, list[Finished]]:
    """Run in threads of our own; an interrupt stops them within a stride."""
    stop = Event()

    def step(rounds: int) -> None:
        if stop.is_set():
            raise Stopped
        advance(rounds)

    with interrupts_held() as inbox, ThreadPoolExecutor(max_workers=cores()) as pool:
        try:
            return collect(
                {label: [pool.submit(play_trial, trial, step) for trial in trials] for label, trials in work.items()},
                inbox,
            )
        except BaseException:
            stop.set()
            raise


def on_executor(work: Work, executor: Executor, advance: Advance) -> dict[str, list[Finished]]:
    """Run on somebody else's executor; progress moves by whole trials."""
    with interrupts_held() as inbox:
        futures = {label: [executor.submit(play_trial, trial) for trial in trials] for label, trials in work.items()}
        for trials, label_futures in zip(work.values(), futures.values(), strict=True):
            for trial, future in zip(trials, label_futures, strict=True):
                future.add_done_callback(partial(advance_by, advance, int(trial.checkpoints[-1])))
        return collect(futures, inbox)


def advance_by(advance: Advance, rounds: int, _: object) -> None:
    """What to do when a future is done."""
    advance(rounds)


def collect(futures: dict[str, list[Future[Result]]], inbox: Inbox) -> dict[str, list[Result]]:
    """All results in their order; at the first failure the rest is cancelled."""
    everything = [future for label_futures in futures.values() for future in label_futures]
    for future in everything:
        inbox.watch(future)
    missing = len(everything)
    try:
        while missing:
            landed = inbox.landed()
            missing -= len(landed)
            for future in landed:
                future.result()
    except BaseException:
        for future in everything:
            future.cancel()
        raise
    return {label: [future.result() for future in label_futures] for label, label_futures in futures.items()}

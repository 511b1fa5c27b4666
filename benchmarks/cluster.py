"""What handing out tasks costs: a local Dask cluster and a process pool of 4 workers each, tasks of about a second."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from tempfile import TemporaryDirectory

from benchmarks.turns import fastest, line
from paceline.experiments import runner as study
from paceline.experiments.executors import Engine, dask_executor, engine_for, run_task
from paceline.experiments.experiment import Experiment, Task
from paceline.experiments.folder import open_folder
from paceline.simulation.simulate import cores
from paceline.simulation.totals import Totals

WORKERS = 4
NAP = 1.0
NAPS = 16
COMPUTED = 8
TINY = 500
TURNS = 2

Work = Callable[..., Totals]
Engines = dict[str, Engine]


def nap_and_run(task: Task, *step: object) -> Totals:
    """A second in which the worker waits and no core is needed, then next to nothing."""
    time.sleep(NAP)
    return run_task(task, *step)  # type: ignore[arg-type]


def experiment(rounds: int, tasks: int) -> Experiment:
    """So many tasks of one trial."""
    table = {"rounds": rounds, "trials": tasks, "checkpoints": 10, "block": 1, "policies": ["suak"]}
    return Experiment.from_table({**table, "problem": [{"paper": "eight-arms"}]})


def seconds(engine: Engine, rounds: int, tasks: int, work: Work = run_task) -> float:
    """From the first task handed out to the last result on the disk."""
    what = experiment(rounds, tasks)
    study.run_task = work  # type: ignore[attr-defined]
    try:
        with TemporaryDirectory() as out, open_folder(out, what) as folder:
            start = time.perf_counter()
            study.drive(engine, what.tasks(), folder, lambda _: None)
            return time.perf_counter() - start
    finally:
        study.run_task = run_task  # type: ignore[attr-defined]


def rounds_of_a_second(engine: Engine) -> int:
    """How many rounds a task needs to take about a second on a core of its own."""
    few = 500_000
    return int(few / min(seconds(engine, few, 1) for _ in range(3)))


def report(engines: Engines) -> None:
    ideal = NAPS * NAP / WORKERS
    for name in ("processes", "dask"):
        taken = seconds(engines[name], 10, NAPS, nap_and_run)
        target = "under 5 %" if name == "dask" else ""
        line(f"{NAPS} tasks that SLEEP {NAP:g} s, {name}, over ideal", f"{100 * (taken / ideal - 1):.1f} %", target)

    rounds = rounds_of_a_second(engines["one thread"])
    one = min(seconds(engines["one thread"], rounds, 1) for _ in range(3))
    contestants = {name: partial(seconds, engines[name], rounds, COMPUTED) for name in ("processes", "dask")}
    spent = fastest(contestants, TURNS)
    share = min(WORKERS, cores())
    line(f"a task that COMPUTES {rounds:,} rounds, alone", f"{one:.2f} s")
    for name, taken in spent.items():
        over = 100 * (taken * share / (COMPUTED * one) - 1)
        line(f"{COMPUTED} of them, {name}, over {share} cores' ideal", f"{over:.1f} %")
    over = 100 * (spent["dask"] / spent["processes"] - 1)
    line(f"{COMPUTED} of them, dask over processes", f"{over:.1f} %", "under 5 %")

    for name, engine in engines.items():
        line(f"{TINY:,} TINY tasks, {name}, each", f"{seconds(engine, 10, TINY) / TINY * 1e6:.0f} us")


def ready(engine: Engine) -> Engine:
    """The same, with an executor that stays and whose workers have started and loaded everything."""
    executor = engine.make()
    kept = Engine(engine.name, lambda: executor, engine.workers, shares_memory=engine.shares_memory)
    seconds(kept, 10, WORKERS, nap_and_run)
    return kept


def main() -> None:
    trials = study.first_trials(experiment(10, 1).tasks())
    wanted: dict[str, AbstractContextManager[Engine]] = {
        "one thread": engine_for("threads", trials, 1),
        "processes": engine_for("processes", trials, WORKERS),
        "dask": dask_executor("local", trials, WORKERS),
    }
    with wanted["one thread"] as thread, wanted["processes"] as pool, wanted["dask"] as dask:
        engines = {"one thread": ready(thread), "processes": ready(pool), "dask": ready(dask)}
        try:
            report(engines)
        finally:
            for name in ("one thread", "processes"):
                engines[name].make().shutdown()


if __name__ == "__main__":
    main()

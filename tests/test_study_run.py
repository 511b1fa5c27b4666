"""Running an experiment: the same bytes from every engine, through kills and interrupts, in a memory that stays."""

import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import elsewhere
import numpy as np
import pyarrow.parquet as pq
import pytest
from command import ENVIRONMENT, SCRIPT, call
from comparing import all_bits, bits
from interrupt import INTERRUPTIBLE
from studies import EIGHT_ARMS, SMALL, after_writes, contents, experiment, parquet, parts

import paceline as pl
from paceline import cli
from paceline.experiments import executors
from paceline.experiments import runner as study_run
from paceline.kernels.jit import package_digest
from paceline.kernels.state import NO_RECORD
from paceline.policies.policy import Policy
from paceline.simulation.simulate import Trial, checkpoint_rounds, run_trial
from paceline.simulation.totals import NOTHING, Totals

pytestmark = pytest.mark.slow

TASKS = len(experiment(EIGHT_ARMS).tasks())


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> pl.Study:
    return pl.run_experiment(experiment(EIGHT_ARMS), tmp_path_factory.mktemp("undisturbed") / "new" / "folder")


# Engines.

OWN = {
    "threads": lambda: ThreadPoolExecutor(3),
    "processes": lambda: ProcessPoolExecutor(2, multiprocessing.get_context("spawn")),
}


@pytest.mark.parametrize(("engine", "workers"), [("threads", 1), ("processes", 1), ("processes", 3)])
def test_engine_and_workers_change_no_byte(engine, workers, undisturbed, tmp_path):
    study = pl.run_experiment(experiment(EIGHT_ARMS), tmp_path, engine, workers=workers)
    assert parquet(study) == parquet(undisturbed)
    assert [spell["engine"] for spell in study.manifest["spells"]] == [engine]


@pytest.mark.parametrize("name", OWN)
def test_executor_of_the_callers_own_changes_no_byte(name, undisturbed, tmp_path):
    with OWN[name]() as executor:
        study = pl.run_experiment(experiment(EIGHT_ARMS), tmp_path, executor)
        assert executor.submit(int, "7").result() == 7  # it is still open
    assert parquet(study) == parquet(undisturbed)


def kill_a_child() -> None:
    """Of the process pool, whose workers have four tasks each."""
    os.kill(multiprocessing.active_children()[0].pid, signal.SIGKILL)


def test_killed_process_is_survived_and_changes_no_byte(undisturbed, tmp_path, monkeypatch):
    submitted, hand_out = [], study_run.Hands.submitted

    def noted(hands, task):
        submitted.append(task.name)
        return hand_out(hands, task)

    monkeypatch.setattr(study_run.Hands, "submitted", noted)
    written = after_writes(monkeypatch, TASKS // 2, kill_a_child)
    study = pl.run_experiment(experiment(EIGHT_ARMS), tmp_path, "processes", workers=2)
    assert parquet(study) == parquet(undisturbed)
    assert len(written) == len(set(written)) == TASKS
    again = {name for name in submitted if submitted.count(name) > 1}
    assert again  # they were in flight when the process died ...
    assert again <= set(written[TASKS // 2 :])  # ... and none of them was done


def test_killed_process_of_the_callers_own_pool_is_one_error_and_loses_nothing(undisturbed, tmp_path, monkeypatch):
    with monkeypatch.context() as patch, OWN["processes"]() as executor:
        first = after_writes(patch, TASKS // 2, kill_a_child)
        with pytest.raises(pl.PacelineError, match=r"^workers of ProcessPoolExecutor died"):
            pl.run_experiment(experiment(EIGHT_ARMS), tmp_path, executor)
    then = after_writes(monkeypatch, -1, lambda: None)
    assert parquet(pl.run_experiment(experiment(EIGHT_ARMS), tmp_path)) == parquet(undisturbed)
    assert sorted(first + then) == sorted(task.name for task in experiment(EIGHT_ARMS).tasks())


def test_workers_that_always_die_are_given_up(tmp_path, monkeypatch):
    made = []

    def doomed(workers, trials):
        made.append(workers)
        return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), partial(os._exit, 1))

    monkeypatch.setattr(executors, "Processes", doomed)
    with pytest.raises(pl.PacelineError, match="died 3 times in a row; giving up"):
        pl.run_experiment(experiment(SMALL), tmp_path, "processes")
    assert len(made) == study_run.MOST_BREAKS


class Counting(ThreadPoolExecutor):
    """Knows how many tasks it was ever given at once."""

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        self.open: set[Future[object]] = set()
        self.most = 0

    def submit(self, task, /, *arguments):
        future = super().submit(task, *arguments)
        self.open = {other for other in self.open if not other.done()} | {future}
        self.most = max(self.most, len(self.open))
        return future


def test_window_of_tasks_in_flight_is_kept(tmp_path):
    with Counting(3) as executor:
        pl.run_experiment(experiment(EIGHT_ARMS, rounds=2000), tmp_path, executor)
    assert 3 < executor.most <= study_run.AHEAD * 3


class Failing(Executor):
    """Does the first tasks at once and fails at the next."""

    def __init__(self, good: int) -> None:
        self.good = good

    def submit(self, task, /, *arguments):
        future: Future[object] = Future()
        self.good -= 1
        if self.good >= 0:
            future.set_result(task(*arguments))
        else:
            future.set_exception(RuntimeError("no more today"))
        return future


def test_error_of_a_task_surfaces_and_the_rest_is_done_later(tmp_path, monkeypatch):
    with pytest.raises(RuntimeError, match="no more today"):
        pl.run_experiment(experiment(SMALL), tmp_path / "it", Failing(5))
    before = parts(tmp_path / "it")
    assert 0 < len(before) <= 5
    written = after_writes(monkeypatch, -1, lambda: None)
    study = pl.run_experiment(experiment(SMALL), tmp_path / "it")
    assert len(written) == len(experiment(SMALL).tasks()) - len(before)
    assert parquet(study) == parquet(pl.run_experiment(experiment(SMALL), tmp_path / "other"))


# Stopped from outside.


@pytest.fixture
def file(tmp_path) -> Path:
    path = tmp_path / "eight.toml"
    lines = [f"{key} = {json.dumps(value)}" for key, value in EIGHT_ARMS.items() if key != "problem"]
    path.write_text("\n".join([*lines, '[[problem]]\npaper = "eight-arms"\n']), encoding="utf-8")
    return path


def struck(number: signal.Signals, file: Path, *options: str, everyone: bool = False) -> tuple[int, str, bool]:
    """``paceline run`` when a signal comes in the middle: a quarter of the tasks is done.

    Its exit code, its messages, and whether it left processes behind.
    """
    command = [sys.executable, "-c", INTERRUPTIBLE, str(SCRIPT), "run", str(file), *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT, start_new_session=True)
    with process:
        try:
            while len(parts(file.with_suffix(""))) < TASKS // 4:
                assert process.poll() is None, process.stderr.read()
                time.sleep(0.005)
            (os.killpg if everyone else os.kill)(process.pid, number)
            process.wait(timeout=60)
            deadline = time.monotonic() + 2
            while left(process.pid) and time.monotonic() < deadline:
                time.sleep(0.02)
            behind = left(process.pid)
        finally:
            if left(process.pid):
                os.killpg(process.pid, signal.SIGKILL)
        return process.returncode, process.stderr.read(), behind


def left(group: int) -> bool:
    """Whether a process of the group is still there."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


BLOWS = {
    "killed, threads": (signal.SIGKILL, ()),
    "killed, processes": (signal.SIGKILL, ("--processes",)),
    "interrupted, threads": (signal.SIGINT, ()),
    "interrupted, processes": (signal.SIGINT, ("--processes",)),
}


@pytest.mark.parametrize("blow", BLOWS)
def test_run_goes_on_where_it_was(blow, file, undisturbed, monkeypatch):
    number, options = BLOWS[blow]
    code, messages, _ = struck(number, file, *options)
    if number == signal.SIGINT:
        assert code == 130
        assert messages.splitlines()[-1] == "paceline: interrupted"
        assert "Traceback" not in messages
    else:
        assert code == -signal.SIGKILL

    folder = file.with_suffix("")
    tasks = {f"{task.name}.parquet": task for task in pl.Experiment.read(file).tasks()}
    done = parts(folder)
    assert TASKS // 4 <= len(done) < TASKS
    for name in done:  # none is torn
        assert pq.read_table(folder / "parts" / name).num_rows == tasks[name].count * len(tasks[name].rounds)

    final = {}
    written = after_writes(monkeypatch, TASKS - len(done), lambda: final.update(parts(folder)))
    study = pl.run_experiment(pl.Experiment.read(file), folder)
    assert {f"{name}.parquet" for name in written} == set(tasks) - set(done)  # none lost, none repeated ...
    assert {name: final[name] for name in done} == done  # ... nor written again
    assert parquet(study) == parquet(undisturbed)
    assert sorted(path.name for path in folder.iterdir()) == [".lock", "manifest.json", "totals.parquet"]


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--processes",),
        ("--dask", "local"),
    ],
    ids=" ".join,
)
def test_interrupt_from_the_keyboard_is_one_line(options, file):
    """A terminal interrupts the workers, too."""
    code, messages, behind = struck(signal.SIGINT, file, *options, everyone=True)
    assert not behind
    assert code == 130
    assert "Traceback" not in messages
    assert [line for line in messages.splitlines()[3:] if line and "%|" not in line] == ["paceline: interrupted"]


ENDLESS = """
import time
from pathlib import Path
import paceline as pl

class Endless(pl.PythonPolicy):
    def choose(self, state):
        if state.clock.t > 1:  # the first round is played before the work
            Path("began").touch()
            time.sleep(3600)
        return 0
"""


def test_interrupt_does_not_wait_for_the_tasks_of_processes(tmp_path):
    """What a process of ours is at may have long to go."""
    (tmp_path / "endless.py").write_text(ENDLESS)
    (tmp_path / "long.toml").write_text(
        'rounds = 9\ntrials = 9\npolicies = ["endless.py:Endless"]\n[[problem]]\nrewards = [0.5, 0.6]\n'
        "costs = [0.5, 0.6]\nbudget = 1.0\n"
    )
    command = [sys.executable, "-c", INTERRUPTIBLE, str(SCRIPT), "run", "long.toml", "--processes"]
    options = {"stderr": subprocess.PIPE, "text": True, "env": ENVIRONMENT, "cwd": tmp_path, "start_new_session": True}
    with subprocess.Popen(command, **options) as process:
        try:
            while not (tmp_path / "began").exists():
                assert process.poll() is None, process.stderr.read()
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            _, messages = process.communicate(timeout=60)
        finally:
            if left(process.pid):
                os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 130
    assert messages.splitlines()[-1] == "paceline: interrupted"
    assert "Traceback" not in messages


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--processes",),
        ("--dask", "local"),
    ],
    ids=" ".join,
)
def test_kill_leaves_no_process_behind(options, file):
    code, _, behind = struck(signal.SIGKILL, file, *options)
    assert (code, behind) == (-signal.SIGKILL, False)


CRASHES = """
import json, os, sys
from concurrent.futures import Executor, Future
from pathlib import Path
from studies import SMALL, experiment, parquet, parts
import paceline as pl
from paceline.errors import PacelineError

STEPS = {"os.mkdir", "os.rename", "os.remove", "os.rmdir"}
root = Path(sys.argv[1])
small = experiment(SMALL, trials=3, problem=[{"paper": "three-arms"}])

class Here(Executor):
    def submit(self, task, /, *arguments):
        future = Future()
        future.set_result(task(*arguments))
        return future

def begin(folder, fatal):
    "Run in a process of its own that dies, as by kill -9, just before a step on the disk; its name and the parts."
    reading, writing = os.pipe()
    if (child := os.fork()):
        os.close(writing)
        said = os.read(reading, 4096).decode()
        os.close(reading)
        os.waitpid(child, 0)
        return said
    count = 0
    def step(event, arguments):
        nonlocal count
        if event in STEPS and root.name in str(arguments[0]):
            if count == fatal:
                os.write(writing, f"{event} {Path(arguments[0]).name}".encode())
                os._exit(9)
            count += 1
    sys.addaudithook(step)
    pl.run_experiment(small, folder, Here())
    os._exit(0)

expected = parquet(pl.run_experiment(small, root / "whole", Here()))
for fatal in range(1000):
    folder = root / str(fatal)
    said = begin(folder, fatal)
    try:
        same = parquet(pl.run_experiment(small, folder, Here())) == expected
        after = "same" if same else "other"
    except PacelineError as error:
        after = str(error)
    print(json.dumps([said, after, sorted(path.name for path in folder.iterdir())]))
    if not said:
        break
"""


@pytest.fixture(scope="module")
def crashes(tmp_path_factory) -> list[tuple[str, str, list[str]]]:
    """For each step on the disk: what it was, and how a run goes on that was killed just before it."""
    lines = elsewhere.run(CRASHES, tmp_path_factory.mktemp("crashes"))
    # Each writer has an unfinished file of its own, with digits drawn by lot.
    return [tuple(json.loads(re.sub(r"\.[0-9a-f]{8}(?=\.unfinished)", "", line))) for line in lines]


def test_killed_at_any_step_a_run_ends_the_same(crashes):
    steps = [step for step, _, _ in crashes]
    assert steps[-1] == ""  # that one ran to its end
    assert sum(bool(re.match(r"os\.rename \.[0-9a-f]{12}-", step)) for step in steps) == 4
    assert "os.rename .totals.parquet.unfinished" in steps
    begun = steps.index("os.rename .manifest.json.unfinished") + 1
    assert [(step, after) for step, after, _ in crashes[begun:] if after != "same"] == []


def test_killed_while_beginning_a_run_ends_the_same(crashes):
    assert [(step, after) for step, after, _ in crashes if after != "same"] == []


def test_killed_at_any_step_a_run_leaves_nothing_behind(crashes):
    ours = {".lock", "manifest.json", "totals.parquet"}
    assert [(step, set(left) - ours) for step, after, left in crashes if after == "same" and set(left) - ours] == []


def test_second_run_finds_everything_done_and_changes_nothing(file):
    folder = file.with_suffix("")
    pl.run_experiment(pl.Experiment.read(file), folder)
    before = contents(folder)
    assert set(before) == {"manifest.json", "totals.parquet"}
    done = call("run", file, "--processes")
    assert done.returncode == 0, done.stderr
    assert "; 0 rounds to do" in done.stderr
    assert contents(folder) == before


def test_finished_run_needs_no_engine(undisturbed):
    before = contents(undisturbed.path)
    nobody = "tcp://127.0.0.1:9"
    assert parquet(pl.run_experiment(experiment(EIGHT_ARMS), undisturbed.path, dask=nobody)) == parquet(undisturbed)
    assert contents(undisturbed.path) == before


def test_dry_run_writes_nothing(file, capsys):
    assert cli.main(["run", str(file), "--dry-run"]) == 0
    out, messages = capsys.readouterr()
    assert out == ""
    assert f"{TASKS} tasks, 8,000,000 rounds in all; 8,000,000 rounds to do" in messages
    assert list(file.parent.iterdir()) == [file]


MEMORY = """
import json, sys, tempfile
from pathlib import Path
from studies import SMALL, experiment
import paceline as pl
from paceline.experiments.folder import RunFolder

put_together = RunFolder.finish
peaks = []

def peak():
    "Of the resident memory since the last call, in kB."
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    Path("/proc/self/clear_refs").write_text("5")
    return int(line.split()[1])

def finish(folder, *arguments):
    peaks.append(peak())
    put_together(folder, *arguments)

RunFolder.finish = finish
for trials in (100, 100, 2000):  # the first loads what is loaded once
    peak()
    table = {"rounds": 200, "trials": trials, "checkpoints": 200, "block": 1, "policies": ["uniform"]}
    with tempfile.TemporaryDirectory() as out:
        pl.run_experiment(experiment(table, problem=[{"paper": "three-arms"}]), out, workers=2)
    peaks.append(peak())
print(json.dumps(peaks[2:]))
"""


MORE_TASKS = 2000 - 100


@pytest.fixture(scope="module")
def growth() -> tuple[float, float]:
    """Peak memory, in kB for each of 1,900 more tasks: while they are done, and when they are put together."""
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("the system does not tell the peak")
    (line,) = elsewhere.run(MEMORY)
    few_done, few_together, many_done, many_together = json.loads(line)
    return (many_done - few_done) / MORE_TASKS, (many_together - few_together) / MORE_TASKS


# The totals of a task are 13 kB; what is left to do, and the names of files, may grow with the tasks.
KEPT = 4


def test_memory_does_not_grow_with_the_tasks_that_are_done(growth):
    assert growth[0] < KEPT


def test_memory_does_not_grow_with_the_tasks_that_are_put_together(growth):
    assert growth[1] < KEPT


# Results.

CSV = "arm,reward,cost\n" + "".join(f"{'ab'[n % 2]},{n % 7},{n % 3}\n" for n in range(30))
SOURCES = {
    "explicit": {"rewards": [0.3, 0.8], "costs": [0.2, 0.7], "budget": 0.4},
    "bernoulli": {"kind": "bernoulli", "rewards": [0.3, 0.8], "costs": [0.2, 0.7], "budget": 0.4},
    "distributions": {
        "rewards": [{"kind": "constant", "value": 0.5}, 0.8],
        "costs": [{"kind": "empirical", "values": [0.125, 0.5]}, {"kind": "bernoulli", "mean": 0.75}],
        "budget": 0.5,
        "max_costs": [0.5, 1.0],
    },
    "budgets": {"rewards": [0.3, 0.8], "costs": [0.2, 0.7], "grid": {"budget": [0.2, 0.4, 0.6]}},
    "two grids": {
        "costs": [0.2, 0.7],
        "budget": 0.4,
        "grid": {"rewards": [[0.3, 0.8], [0.6, 0.5]], "concentration": [2, 20]},
    },
    "family": {"family": "mixed", "size": 3, "seed": 5, "arms": 4},
    "families": {"family": "beta", "size": 2, "grid": {"shortfall": [0.05, 0.2]}},
    "paper": {"paper": "three-arms", "grid": {"budget": [0.3, 0.5]}},
    "csv": {"csv": "log.csv", "max_reward": 6, "max_cost": 2, "grid": {"budget": [0.5, 1.0]}},
}
POLICIES = {
    "policies": ["suak", "thompson"],
    "policy": [
        {"name": "one-phase", "grid": {"a": [2, 3.5]}},
        {"name": "suak", "label": "lazy", "order": "fewest"},
        {"name": "oracle"},
    ],
}
EXPECTED_POLICIES = {
    "suak": pl.SUAK(),
    "thompson": pl.ThompsonPacer(),
    "one-phase, a=2": pl.OnePhase(a=2),
    "one-phase, a=3.5": pl.OnePhase(a=3.5),
    "lazy": pl.SUAK(order="fewest"),
    "oracle": pl.Oracle(),
}


def every_source(folder: Path) -> pl.Experiment:
    """All sources in one experiment, each with a name of its own."""
    (folder / "log.csv").write_text(CSV, encoding="utf-8")
    problems = [{"name": name, **table} for name, table in SOURCES.items()]
    table = {"rounds": 400, "trials": 5, "seed": 9, "checkpoints": [7, 100], "block": 2, "problem": problems}
    return pl.Experiment.from_table({**table, **POLICIES}, folder)


@pytest.fixture(scope="module")
def wide(tmp_path_factory) -> tuple[pl.Experiment, pl.Study]:
    folder = tmp_path_factory.mktemp("wide")
    return every_source(folder), pl.run_experiment(every_source(folder), folder / "out")


def stream(table: int, member: int, trial: int) -> int:
    """The numbers of the trials as the documents have them."""
    return table * 2**48 + member * 2**32 + trial


def same_totals(run: pl.Run, totals: list[Totals]) -> bool:
    """Whether a run has just these trials, to the last bit."""
    return all(
        array.tobytes() == b"".join(getattr(one, field).tobytes() for one in totals)
        for field, array in run.totals._asdict().items()
    )


def test_results_are_those_of_each_trial_alone(wide):
    given, study = wide
    assert len(study) == 21
    rounds = checkpoint_rounds(400, [7, 100])
    seen = []
    for name, table in SOURCES.items():
        number = list(SOURCES).index(name)
        for member in range(table.get("size", 1)):
            # Variants in a grid have the same random numbers.
            prefix = f"{name} {member + 1}" if "size" in table else name
            fields = [field for field in given.problems if (field.name + ",").startswith(prefix + ",")]
            assert fields
            for field in fields:
                seen.append(field.name)
                results = study[field.name]
                assert (results.problem, results.seed, list(results)) == (field.problem, 9, list(EXPECTED_POLICIES))
                assert results.rounds.tolist() == [7, 100, 400]
                for label, policy in EXPECTED_POLICIES.items():
                    trials = [
                        run_trial(Trial(field.problem, policy, rounds, 9, stream(number, member, trial)))
                        for trial in range(5)
                    ]
                    assert results[label].totals.earned.shape == (5, 3)
                    assert same_totals(results[label], trials), (field.name, label)
                    assert results[label].policy == repr(policy)
    assert sorted(seen) == sorted(study)


def test_first_problem_is_what_simulate_gives(wide):
    given, study = wide
    settings = {"rounds": 400, "trials": 5, "seed": 9, "checkpoints": [7, 100]}
    assert all_bits(study["explicit"]) == all_bits(
        pl.simulate(given.problems[0].problem, EXPECTED_POLICIES, **settings)
    )


def kept_by(policy: Policy) -> np.dtype:
    """The type of what a policy keeps count of; nothing, if it keeps no record."""
    return NOTHING if policy.record == NO_RECORD else policy.record


def test_memory_of_a_policy_comes_back_in_its_own_type(wide):
    _, study = wide
    for label, policy in EXPECTED_POLICIES.items():
        assert study["paper, budget=0.3"][label].totals.memory.dtype == kept_by(policy), label


def test_finished_run_of_every_source_is_found_finished(wide):
    _, study = wide
    before = contents(study.path)
    pl.run_experiment(every_source(study.path.parent), study.path)
    assert contents(study.path) == before


MORE = {
    "a problem": {"problem": [*SMALL["problem"], {"paper": "eight-arms"}]},
    "a member": {"problem": [SMALL["problem"][0], {"family": "bernoulli", "size": 3}]},
    "a policy": {"policy": [{"name": "thompson"}]},
    "trials": {"trials": 9},
    "another block": {"block": 3},
}


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> pl.Study:
    return pl.run_experiment(experiment(SMALL), tmp_path_factory.mktemp("small"))


@pytest.mark.parametrize("more", MORE)
def test_more_at_the_end_changes_no_number(more, small, tmp_path):
    grown = pl.run_experiment(experiment(SMALL, **MORE[more]), tmp_path)
    for name, results in small.items():
        for label, run in results.items():
            first = Totals(*(array[:5] for array in grown[name][label].totals))
            assert same_totals(run, [first]), (name, label)


def test_other_seed_gives_other_numbers(small, tmp_path):
    other = pl.run_experiment(experiment(SMALL, seed=1), tmp_path)
    for name, results in small.items():
        for label, run in results.items():
            assert bits(run)["earned"] != bits(other[name][label])["earned"], (name, label)


def test_policies_with_labels_of_the_same_hash_are_held_apart(tmp_path):
    labels = ["p19847", "p42256"]
    policies = [{"name": "uniform", "label": labels[0]}, {"name": "oracle", "label": labels[1]}]
    study = pl.run_experiment(experiment(SMALL, policies=[], policy=policies), tmp_path)
    assert list(study["three-arms"]) == labels


def test_table_has_a_row_for_each_trial_and_checkpoint(small):
    table = pq.read_table(small.path / "totals.parquet").to_pydict()
    rows = list(zip(*(table[name] for name in ("problem", "policy", "trial", "round")), strict=True))
    assert rows == [
        (problem, policy, trial, point)
        for problem in range(3)
        for policy in range(2)
        for trial in range(5)
        for point in (100, 200, 300)
    ]
    spent = [run.spent.ravel() for results in small.values() for run in results.values()]
    assert table["spent"] == np.concatenate(spent).tolist()


def test_study_is_opened_again(small):
    opened = pl.Study.open(small.path)
    assert list(opened) == list(small) == ["three-arms", "bernoulli 1", "bernoulli 2"]
    for name in small:
        assert all_bits(opened[name]) == all_bits(small[name])
    with pytest.raises(pl.errors.UnknownName, match=r"problem must be one of three-arms, .* got 'four-arms'"):
        opened["four-arms"]


# The manifest.


def test_manifest_tells_what_was_run_with_what(small):
    manifest = json.loads((small.path / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["file"] == SMALL
    assert manifest["experiment"] == json.loads(json.dumps(experiment(SMALL).to_dict()))
    assert manifest["experiment"]["seed"] == 0
    assert manifest["kernels"] == package_digest()
    assert manifest["versions"]["paceline"] == pl.__version__
    assert manifest["versions"]["numpy"] == np.__version__
    assert {"python", "numba", "pyarrow"} <= set(manifest["versions"])
    assert manifest["host"]["cores"] == os.cpu_count()
    assert {"system", "processor"} <= set(manifest["host"])
    assert manifest["begun"] <= manifest["finished"]
    (spell,) = manifest["spells"]
    assert spell["engine"] == "threads"
    assert spell["seconds"] >= 0
    assert manifest["begun"] <= spell["ended"]


def test_manifest_tells_of_a_spell_that_was_stopped(tmp_path):
    with pytest.raises(RuntimeError):
        pl.run_experiment(experiment(SMALL), tmp_path, Failing(5))
    study = pl.run_experiment(experiment(SMALL), tmp_path, "threads")
    assert [spell["engine"] for spell in study.manifest["spells"]] == ["Failing", "threads"]

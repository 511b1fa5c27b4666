"""Experiments on a real Dask cluster with four worker processes: the same bytes, whoever is killed."""

import logging
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import elsewhere
import pytest
from comparing import all_bits
from distributed import Client, LocalCluster
from studies import EIGHT_ARMS, PAPERS_POLICIES, SMALL, after_writes, experiment, parquet

import paceline as pl
from paceline.experiments import runner as study_run
from paceline.experiments.dask_cluster import Cluster

pytestmark = pytest.mark.cluster

WORKERS = 4
HALF = 20  # of the 40 tasks of EIGHT_ARMS
# Without a dashboard the scheduler still has a port for the web, and it must not be the same for every cluster.
QUIET = {
    "dashboard_address": "127.0.0.1:0",
    "scheduler_kwargs": {"dashboard": False},
    "silence_logs": logging.CRITICAL,
}


@pytest.fixture(scope="module")
def client():
    """Four workers, as a user would start them; a worker that dies is replaced."""
    with LocalCluster(n_workers=WORKERS, threads_per_worker=1, **QUIET) as cluster, Client(cluster) as client:
        yield client


@pytest.fixture
def address(client) -> str:
    client.wait_for_workers(WORKERS, timeout=60)
    return client.scheduler.address


@pytest.fixture(scope="module")
def on_threads(tmp_path_factory) -> bytes:
    return parquet(pl.run_experiment(experiment(EIGHT_ARMS), tmp_path_factory.mktemp("threads")))


def test_cluster_gives_the_same_bytes(address, on_threads, tmp_path):
    study = pl.run_experiment(experiment(EIGHT_ARMS), tmp_path, dask=address)
    assert parquet(study) == on_threads
    assert [spell["engine"] for spell in study.manifest["spells"]] == ["dask"]


def removed(client: Client) -> list[dict[str, object]]:
    """What the scheduler noted about workers that went without a word."""
    events = [event for _, event in client.get_events("all")]
    return [event for event in events if event["action"] == "remove-worker" and not event["expected"]]


def test_worker_killed_half_way_changes_no_byte(client, address, on_threads, tmp_path, monkeypatch):
    pids = client.run(os.getpid)
    killed = []

    def kill() -> None:
        """A worker in the middle of its work: frozen first, so that it is still so when it dies."""
        for worker, pid in pids.items():
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.2)  # for what it had sent before
            if client.processing()[worker]:
                os.kill(pid, signal.SIGKILL)
                killed.append(worker)
                return
            os.kill(pid, signal.SIGCONT)

    written = after_writes(monkeypatch, HALF, kill)
    study = pl.run_experiment(experiment(EIGHT_ARMS), tmp_path, dask=address)
    assert parquet(study) == on_threads
    assert len(written) == len(set(written)) == 2 * HALF
    (event,) = removed(client)
    assert [event["worker"]] == killed
    assert any(key.startswith("run_sent") for key in event["processing-tasks"])  # work was lost, and done again


def test_window_of_tasks_in_flight_is_kept(address, tmp_path, monkeypatch):
    most = Counter()
    submitted = study_run.Hands.submitted

    def counted(hands, task):
        most["flying"] = max(most["flying"], len(hands.flying) + 1)
        return submitted(hands, task)

    monkeypatch.setattr(study_run.Hands, "submitted", counted)
    pl.run_experiment(experiment(SMALL, block=1, trials=40), tmp_path, dask=address)
    assert most["flying"] == study_run.AHEAD * WORKERS


def test_executor_of_a_client_gives_the_same_bytes(client, on_threads, tmp_path):
    with client.get_executor() as executor:
        assert parquet(pl.run_experiment(experiment(EIGHT_ARMS), tmp_path, executor)) == on_threads


def test_simulation_on_a_cluster_gives_the_same_numbers(client):
    settings = {"rounds": 2000, "trials": 6, "seed": 3, "checkpoints": 4}
    alone = pl.simulate(pl.paper.eight_arms(), PAPERS_POLICIES, **settings)
    with client.get_executor() as executor:
        there = pl.simulate(pl.paper.eight_arms(), PAPERS_POLICIES, **settings, executor=executor)
    assert all_bits(there) == all_bits(alone)


def test_history_on_a_cluster_has_the_same_bytes(client, tmp_path):
    settings = {"rounds": 2000, "trials": 3, "seed": 3, "record": range(1, 2000, 7)}
    here = pl.simulate(pl.paper.eight_arms(), "uniform", **settings, record_to=tmp_path / "here")["uniform"].history()
    with client.get_executor() as executor:
        files = pl.simulate(pl.paper.eight_arms(), "uniform", **settings, record_to=tmp_path / "t", executor=executor)
        in_memory = pl.simulate(pl.paper.eight_arms(), "uniform", **settings, executor=executor)
    there = files["uniform"].history()
    assert [file.read_bytes() for file in there.files] == [file.read_bytes() for file in here.files]
    assert (in_memory["uniform"].history().headroom == here.headroom).all()


def test_worker_that_joins_later_works_too(client, address, tmp_path):
    """It gets ready by itself: the plugin that compiles is on the scheduler."""
    pl.run_experiment(experiment(SMALL), tmp_path / "first", dask=address)
    client.cluster.scale(WORKERS + 1)
    client.wait_for_workers(WORKERS + 1, timeout=60)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        plugins = client.run(lambda dask_worker: list(dask_worker.plugins))
        if all("paceline-compile" in names for names in plugins.values()):
            break
    assert len(plugins) == WORKERS + 1
    assert all("paceline-compile" in names for names in plugins.values())
    client.cluster.scale(WORKERS)


def test_result_whose_worker_leaves_while_it_arrives_is_a_result(client, monkeypatch):
    """The scheduler says that it was lost, and has it made again, when it is here already."""
    gathered = client._gather

    async def gathered_and_lost(futures):
        results = await gathered(futures)
        for future in futures:
            future._state.lose()
        return results

    monkeypatch.setattr(client, "_gather", gathered_and_lost)
    assert Cluster(client).submit(divmod, 7, 4).result(timeout=60) == (1, 3)


def test_call_on_a_cluster_fails_and_is_cancelled_as_on_any_executor(client):
    with pytest.raises(ZeroDivisionError):
        Cluster(client).submit(divmod, 7, 0).result(timeout=60)
    waiting = Cluster(client).submit(time.sleep, 10)
    wait_until(lambda: any(client.processing().values()))
    assert waiting.cancel()
    wait_until(lambda: not any(client.processing().values()), seconds=5)


def wait_until(is_so, seconds=60):
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_cluster_that_goes_away_is_one_error_and_loses_nothing(on_threads, tmp_path, monkeypatch):
    with LocalCluster(n_workers=2, processes=False, **QUIET) as cluster:
        written = after_writes(monkeypatch, HALF // 2, cluster.close)
        with pytest.raises(pl.PacelineError, match="cluster"):
            pl.run_experiment(experiment(EIGHT_ARMS), tmp_path, dask=cluster.scheduler_address)
    before = len(written)
    assert parquet(pl.run_experiment(experiment(EIGHT_ARMS), tmp_path)) == on_threads
    assert len(written) == len(set(written)) == 2 * HALF > before


OWN_MODULE = """
import paceline as pl

class Last(pl.PythonPolicy):
    def reset(self, setting):
        self.last = setting.arms - 1

    def choose(self, state):
        return self.last
"""


@contextmanager
def programs(common: list[str], of_worker: list[str]) -> Iterator[str]:
    """A scheduler and a worker, each a program that imports from these folders; the worker has more of them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        host, port = free.getsockname()
    address = f"tcp://{host}:{port}"
    begin = ["distributed.cli.dask_scheduler", "--host", host, "--port", str(port)]
    work = ["distributed.cli.dask_worker", address, "--nthreads", "1"]
    with ExitStack() as stack:
        for command, path in ((begin, common), (work, [*common, *of_worker])):
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            env = elsewhere.environment(PYTHONPATH=os.pathsep.join(path))
            program = stack.enter_context(
                subprocess.Popen([sys.executable, "-m", *command, "--no-dashboard"], env=env, **quiet)
            )
            stack.callback(program.terminate)
        with Client(address, timeout=60) as client:
            client.wait_for_workers(1, timeout=60)
        yield address


def test_scheduler_need_not_have_the_modules_of_the_user_but_workers_must(tmp_path, monkeypatch):
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / "mine_alone.py").write_text(OWN_MODULE, encoding="utf-8")
    common = list(sys.path)
    monkeypatch.syspath_prepend(str(modules))
    table = {**SMALL, "policies": [], "policy": [{"name": "mine_alone:Last"}]}
    alone = parquet(pl.run_experiment(experiment(table), tmp_path / "threads"))
    with programs(common, [str(modules)]) as address:
        assert parquet(pl.run_experiment(experiment(table), tmp_path / "dask", dask=address)) == alone
    with programs(common, []) as address, pytest.raises(pl.PacelineError) as refused:
        pl.run_experiment(experiment(table), tmp_path / "without", dask=address)
    told = str(refused.value)
    rule = "workers must be able to import what this program can, as it is here"
    assert told.startswith(f"cluster '{address}': {rule}, got ")
    assert "'mine_alone'" in told
    assert "\n" not in told


TWO_LOCAL_ONES = """
import socket, sys
from studies import SMALL, experiment
import paceline as pl
if __name__ == "__main__":
    with socket.socket() as other:
        try:
            other.bind(("", 8787))
            other.listen()
        except OSError:
            pass  # somebody has it
        pl.run_experiment(experiment(SMALL), sys.argv[1], dask="local", workers=1)
"""


def test_two_clusters_of_our_own_do_not_get_in_each_others_way(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(TWO_LOCAL_ONES, encoding="utf-8")
    command = [sys.executable, "-W", "error", script, tmp_path / "out"]
    done = subprocess.run(command, capture_output=True, text=True, env=elsewhere.environment(), check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_cluster_of_our_own_gives_the_same_bytes_and_is_gone_afterwards(tmp_path):
    before = set(multiprocessing.active_children())
    study, alone = (
        pl.run_experiment(experiment(SMALL), tmp_path / name, dask=dask, workers=2)
        for name, dask in (("dask", "local"), ("threads", None))
    )
    assert parquet(study) == parquet(alone)
    assert set(multiprocessing.active_children()) <= before

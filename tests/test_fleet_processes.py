"""Fleets of real processes: gunicorn, kills under load, and a network that is cut."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from benchmarks import fleet_kills, fleet_partition
from benchmarks.fleet import play_fleet, short_lives
from paceline.fleet.store import open_store
from paceline.paper import eight_arms

EXAMPLES = Path(__file__).parent.parent / "examples"
UNIT = 2**32


GUNICORN = ("gunicorn", "-w", "4", "-b", "127.0.0.1:{port}", "--chdir", str(EXAMPLES), "gunicorn_app:app")
UVICORN = ("uvicorn", "--workers", "4", "--port", "{port}", "--app-dir", str(EXAMPLES), "gunicorn_app:asgi")
THREADS = ("--worker-class", "gthread", "--threads", "4")


class Program:
    """A web program under gunicorn or uvicorn."""

    def __init__(self, url, home, module, *options):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        command = [sys.executable, "-m", module, *(option.format(port=self.port) for option in options)]
        environment = {**os.environ, "FLEET": url, "HOME": str(home)}  # gunicorn keeps a socket there
        self.process = subprocess.Popen(command, env=environment)

    def call(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", data, timeout=30) as answer:
            return json.load(answer)

    def wait(self):
        for _ in range(600):
            try:
                return self.call("/ask")
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.1)
        raise AssertionError("the program does not answer")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(timeout=60) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        GUNICORN,
        (*GUNICORN, "--preload"),
        (*GUNICORN, "--max-requests", "40"),
        (*GUNICORN, *THREADS),
        UVICORN,
    ],
    ids=["gunicorn", "preload", "recycled", "threads", "uvicorn"],
)
def test_workers_of_a_web_program_share_one_budget(command, tmp_path):
    url = f"sqlite:///{tmp_path}/ads.db"
    program = Program(url, tmp_path, *command)
    try:
        program.wait()
        with open_store(url) as store:
            for _ in range(600):
                if len(store.workers("ads")) >= 4:
                    break
                if "--preload" in command:
                    program.call("/ask")  # a copy of a preloaded program is a worker once it was asked
                time.sleep(0.1)

        def visit(_):
            decision = program.call("/ask")
            if decision["arm"] is not None:
                program.call("/tell", {"id": decision["id"], "reward": 1, "cost": 0.1})  # reaches whichever worker
            return decision

        with ThreadPoolExecutor(8) as visitors:
            decisions = list(visitors.map(visit, range(300)))
        assert len({decision["process"] for decision in decisions}) >= 2
        assert any(decision["arm"] for decision in decisions)
        with pytest.raises(urllib.error.HTTPError, match="422"):
            program.call("/tell", {"id": "nobody", "reward": 1, "cost": 0.1})
        status = program.call("/fleet")
        assert status["spent"] + status["reserved"] <= status["credited"]
    finally:
        program.stop()
    with open_store(url) as store:
        account = store.account("ads")
        assert store.workers("ads") == []  # all have handed back
    past = account.past
    assert past.rounds == account.rounds >= 301
    assert past.spent[0] + past.reserved[0] <= past.minted[0]
    # What was told of a worker that has ended frees nothing; all else is in the pool or was spent.
    assert account.pool[0] == past.minted[0] - past.spent[0] - past.reserved[0]


@pytest.mark.slow
@pytest.mark.database
def test_kills_and_restarts_of_the_server_overdraw_nothing(postgres):
    looks = fleet_kills.run(kills=20, restarts=2, workers=3)
    assert len(looks) == 4
    assert looks[-1].lives >= 10  # every other kill is of a worker that has made a round
    assert looks[-1].rounds >= 10


@pytest.mark.slow
@pytest.mark.database
def test_a_network_that_is_cut_costs_nothing(postgres):
    reason = fleet_partition.can_cut()
    if reason is not None:
        pytest.skip(reason)
    found = fleet_partition.run(seconds=4.0, workers=2)
    assert found.during > 100
    assert (found.heard, found.known) == (found.rounds, found.pulls)


@pytest.mark.slow
def test_looks_find_a_worker_that_spends_too_much(tmp_path):
    """A planted bug: a worker that is credited what nobody gave it."""
    store = open_store(f"sqlite:///{tmp_path}/fleet.db")
    store.make("kills", fleet_kills.SETTINGS, by="me")
    folder = tmp_path / "notes"
    folder.mkdir()
    address = f"sqlite:///{tmp_path}/fleet.db"
    fleet_kills.work(address, folder, 1, most_rounds=200)
    assert fleet_kills.look(address, folder).lives == 1
    path = next(path for path in folder.iterdir() if path.is_file())  # beside them is the post
    truth = fleet_kills.read_notes(path)
    number = fleet_kills.SEQUENCE.unpack_from(path.read_bytes())[0] % 2
    data = bytearray(path.read_bytes())
    place = fleet_kills.SEQUENCE.size + number * fleet_kills.NOTE.size
    wrong = truth._replace(used=truth.used + 1000 * UNIT, line=truth.line + 1000 * UNIT, granted=1000 * UNIT)
    fleet_kills.NOTE.pack_into(data, place, *wrong)
    path.write_bytes(data)
    with pytest.raises(AssertionError, match="units are spent and reserved"):
        fleet_kills.look(address, folder)
    store.close()


@pytest.mark.statistical
def test_the_split_costs_little():
    """Regret of 16 workers: at most 1.6 times that of one, and 1.5 prices for the buffer of each (fixed seeds)."""
    problem = eight_arms()
    one, many = ([play_fleet(problem, "index", workers, 30_000, seed) for seed in range(3)] for workers in (1, 16))
    assert sum(many) <= 1.6 * sum(one) + 3 * 16 * 1.5 * problem.optimum.price


def check_short_lives(*addresses):
    """With an empty store at each address: lives that hand back, and lives that are killed."""
    spent = []
    for address, is_killed in zip(addresses, (False, True), strict=True):
        with open_store(address) as store:
            spent.append(short_lives(store, 40, is_killed))
            account = store.account("fleet")
            assert account.rounds == 4000
            assert account.pool[0] >= 0
    (handed_back, minted), (killed, _) = spent
    assert 0.95 * minted < handed_back <= minted
    assert killed < 0.85 * minted


@pytest.mark.slow
def test_handing_back_is_what_short_lives_live_on(tmp_path):
    check_short_lives(f"sqlite:///{tmp_path}/kept.db", f"sqlite:///{tmp_path}/killed.db")


@pytest.mark.slow
@pytest.mark.database
def test_handing_back_is_what_short_lives_live_on_with_a_server(postgres):
    check_short_lives(postgres.empty_database("kept"), postgres.empty_database("killed"))

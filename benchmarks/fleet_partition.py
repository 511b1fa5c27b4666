"""A network that is cut: workers in a network namespace of their own, PostgreSQL outside, and the wire between them.

It needs root and `ip netns`. While the wire is down workers go on by their own lines; when it is up again, two
exchanges later the store knows all that was learned.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from benchmarks.fleet_kills import SETTINGS, UNIT, look
from benchmarks.postgres import Cluster
from paceline.fleet.store import open_store

OUTSIDE, INSIDE = "10.77.0.1", "10.77.0.2"
WORKER = """
import sys, time, json, logging, random
from pathlib import Path
import paceline as pl
from paceline.errors import StoreFailed
from benchmarks.fleet_kills import Notes, SETTINGS
logging.disable()
address, folder, seed = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
draws = random.Random(seed)
member = pl.join(address, "kills", worker=f"w{seed}", sync_every=0.1)
notes = Notes(folder / member._standing.life)
stop = folder.parent / "stop"
while not stop.exists():
    decision = member.ask()
    if decision.arm is not None:
        most = SETTINGS["max_cost"][decision.arm]
        member.tell(decision.id, reward=most * draws.random(), cost=most * draws.random())
    notes.write(member)
    time.sleep(0.001)
before = time.monotonic()
for _ in range(2):
    member.sync()
notes.write(member)
pulls = sum(arm["pulls"] for arm in member.report()["arms"].values())
print(json.dumps({"rounds": member.rounds, "pulls": pulls}), flush=True)
sys.stdin.readline()
"""


class Cut(NamedTuple):
    """How it went."""

    during: int  # rounds that were made while the wire was down
    over: int  # looks in which something was over: never
    rounds: int
    heard: int  # of them by the store in the end
    pulls: int
    known: int


def can_cut() -> str | None:
    """Why a network cannot be cut here, if it cannot."""
    if os.getuid() != 0:
        return "network namespaces need root"
    done = subprocess.run(["ip", "netns", "list"], capture_output=True, check=False)
    return None if done.returncode == 0 else "ip netns does not work here"


def ip(*words: str) -> None:
    """Change the network."""
    subprocess.run(["ip", *words], check=True, capture_output=True)


@contextmanager
def namespace() -> Iterator[tuple[str, str]]:
    """A network namespace with a wire to the outside; gives its name and that of the wire."""
    name, wire = f"paceline{os.getpid()}", f"pl{os.getpid() % 100000}"
    ip("netns", "add", name)
    try:
        ip("link", "add", f"{wire}o", "type", "veth", "peer", "name", f"{wire}i")
        ip("link", "set", f"{wire}i", "netns", name)
        ip("addr", "add", f"{OUTSIDE}/24", "dev", f"{wire}o")
        ip("link", "set", f"{wire}o", "up")
        ip("-n", name, "addr", "add", f"{INSIDE}/24", "dev", f"{wire}i")
        ip("-n", name, "link", "set", f"{wire}i", "up")
        ip("-n", name, "link", "set", "lo", "up")
        yield name, f"{wire}o"
    finally:
        subprocess.run(["ip", "link", "del", f"{wire}o"], capture_output=True, check=False)
        ip("netns", "del", name)


def run(seconds: float, workers: int = 4, say: Any = None) -> Cut:
    """Workers inside, the store outside; after a while the wire is cut, and mended."""
    with namespace() as (name, wire), TemporaryDirectory() as temporary:
        cluster = Cluster(OUTSIDE)
        folder = Path(temporary) / "notes"
        folder.mkdir()
        processes: list[subprocess.Popen[bytes]] = []
        try:
            with open_store(cluster.address) as store:
                store.make("kills", SETTINGS, by="benchmark")
            command = ["ip", "netns", "exec", name, sys.executable, "-c", WORKER, cluster.address, str(folder)]
            environment = {**os.environ, "PYTHONPATH": os.getcwd()}
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "env": environment}
            processes = [subprocess.Popen([*command, str(seed)], **pipes) for seed in range(workers)]  # type: ignore[call-overload]
            while len(list(folder.iterdir())) < workers:
                time.sleep(0.1)
            time.sleep(1.0)
            before = stopped_look(processes, cluster.address, folder)
            ip("link", "set", wire, "down")
            for part in range(4):
                time.sleep(seconds / 4)
                during = stopped_look(processes, cluster.address, folder)
                if say is not None:
                    say(f"{(part + 1) * seconds / 4:.0f} seconds without a network: {during}")
            ip("link", "set", wire, "up")
            time.sleep(8.0)  # a connection that was cut is given up after some seconds
            (Path(temporary) / "stop").touch()
            found = [json.loads((process.stdout or sys.stdin.buffer).readline()) for process in processes]
            with open_store(cluster.address) as store:
                account = store.account("kills")
            look(cluster.address, folder)
            known = sum(values[0] for arm, values in account.sums.items() if arm in SETTINGS["arms"]) // UNIT  # type: ignore[operator]
            rounds, pulls = sum(each["rounds"] for each in found), sum(each["pulls"] for each in found)
            return Cut(during.rounds - before.rounds, 0, rounds, account.rounds, pulls, known)
        finally:
            for process in processes:
                process.kill()
                process.wait()
                for pipe in (process.stdin, process.stdout):
                    if pipe is not None:
                        pipe.close()
            cluster.remove()


def stopped_look(processes: list["subprocess.Popen[bytes]"], address: str, folder: Path) -> Any:
    """A look while all workers stand still; it raises if something is over."""
    for process in processes:
        process.send_signal(signal.SIGSTOP)
    time.sleep(0.1)
    try:
        return look(address, folder)
    finally:
        for process in processes:
            process.send_signal(signal.SIGCONT)

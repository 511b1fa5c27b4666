"""A service for tests: inside the test, or as a process of its own on a free port."""

import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from command import SCRIPT
from starlette.testclient import TestClient

from paceline.fleet.store import open_store
from paceline.service.app import make_app
from paceline.service.host import Host

LOCAL = "http://127.0.0.1:8080"
ADS = {"arms": ["banner", "video"], "budget": 0.5, "max_cost": {"banner": 0.2, "video": 1.0}, "seed": 7}


@contextmanager
def service(folder: Path, *, worker="web-1", is_open=True, token=None, journal_dir=None):
    """A client of a service on a store in a folder; ``client.host`` is what answers."""
    host = Host(open_store(f"sqlite:///{folder}/ads.db"), worker=worker, journal_dir=journal_dir)
    with TestClient(make_app(host, token=token, is_open=is_open), base_url=LOCAL) as client:
        client.host = host
        yield client


def rounds(client, name="ads") -> int:
    return client.host.joined[name].member.rounds


class Process:
    """`paceline serve`, or another command that serves, in a process of its own."""

    def __init__(self, *arguments: object, env=None, command="serve", program=None) -> None:
        self.process = subprocess.Popen(
            [*([str(SCRIPT), command] if program is None else [program]), *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(env or {})},
        )
        self.first = self.process.stdout.readline()
        found = re.search(r"http://\S+?:(\d+)/", self.first)
        if found is None:
            self.process.kill()
            raise AssertionError(f"it did not say where it is: {self.first!r} {self.process.communicate()}")
        self.address = found[0].rstrip("/")

    def stop(self, how=signal.SIGTERM, timeout=30) -> tuple[int, str, str]:
        """Ask it to stop; its exit code and what it said after the first line."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        out, err = self.process.communicate(timeout=timeout)
        return self.process.returncode, out, err

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


def serving(folder: Path, *more: object, **keywords) -> Process:
    """`paceline serve` on a free port with a store in a folder."""
    return Process("--store", f"sqlite:///{folder}/ads.db", "--port", 0, *more, **keywords)


PYTHON = sys.executable

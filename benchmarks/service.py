"""The service under load on loopback: throughput and latency, as ratios to an empty Starlette route in the same run.

    python -m benchmarks.service                # about a minute
    python -m benchmarks.service --seconds 2    # shorter
    python -m benchmarks.service --page         # the page in Chromium: 20 arms, a million rounds behind it

At full load wrk asks over some connections that are kept alive, each with one request at a time: a `step` that tells
of the decisions that have come and asks for the next. The empty route is served by uvicorn in the same run and answers
with a constant, so that the ratio shows what the service takes beside it: the door, the body, the decision, the log,
the answer. Its requests are smaller, since it has no decisions to tell of. Of some turns the one with the least
processor time counts. At a steady rate requests come whether the last one is answered or not, so that waiting counts.
"""

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from paceline.service.tokens import make_token

CONNECTIONS = 8
BATCH = 100
RATE = 1000  # decisions a second, at a steady rate
TURNS = 3
BANDIT = {"arms": [f"arm {number}" for number in range(8)], "budget": 0.5, "expires": 3600}
EMPTY = """
import asyncio, sys, uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

async def empty(request):
    await request.body()
    return Response(b"{}", media_type="application/json")

class Server(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        port = self.servers[0].sockets[0].getsockname()[1]
        print(f"at http://127.0.0.1:{port}/", flush=True)

app = Starlette(routes=[Route("/{path:path}", empty, methods=["POST"])])
Server(uvicorn.Config(app, port=0, log_config=None, access_log=False, server_header=False)).run()
"""

STEPS = """
local count, token, tells = os.getenv("COUNT"), os.getenv("TOKEN"), {}
local headers = {["Content-Type"] = "application/json", ["Authorization"] = "Bearer " .. token}
request = function()
  local body = '{"tells":[' .. table.concat(tells, ",") .. '],"asks":{"count":' .. count .. '}}'
  tells = {}
  return wrk.format("POST", "/v1/bandits/load/step", headers, body)
end
response = function(status, headers, body)
  for id in body:gmatch('"id":"([^"]+)","arm":"') do
    tells[#tells + 1] = '{"id":"' .. id .. '","reward":0.5,"cost":0.25}'
  end
end
done = function(summary, latency, requests)
  local errors = summary.errors
  print(summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
        errors.connect + errors.read + errors.write + errors.status + errors.timeout)
end
"""


class Measured(NamedTuple):
    """What one load has shown."""

    per_second: float
    median: float  # seconds
    slowest: float  # one in a hundred takes longer
    cpu: float  # seconds of the server's processor, a request


class Served(NamedTuple):
    """A process that serves."""

    process: "subprocess.Popen[str]"
    port: int
    token: str


@contextmanager
def serving(command: list[str], token: str) -> Iterator[Served]:
    """Start it, and end it."""
    environment = {**os.environ, **({"PACELINE_TOKEN": token} if token else {})}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        yield Served(process, int(line.rstrip().rstrip("/").rpartition(":")[2]), token)
    finally:
        process.terminate()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


class Connection:
    """One connection that is kept alive, with as little of HTTP as will do."""

    def __init__(self, served: Served) -> None:
        self.served = served

    async def open(self) -> None:
        """Connect."""
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.served.port)

    async def send(self, method: str, path: str, body: object) -> bytes:
        """The body of the answer."""
        content = json.dumps(body).encode()
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"Authorization: Bearer {self.served.token}\r\nContent-Length: {len(content)}\r\n\r\n"
        )
        self.writer.write(head.encode() + content)
        answer = await self.reader.readuntil(b"\r\n\r\n")
        status = int(answer[9:12])
        lines = answer.lower().split(b"\r\n")
        length = next(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
        found = await self.reader.readexactly(length)
        assert status in (200, 201), found
        return found

    def close(self) -> None:
        """Disconnect."""
        self.writer.close()


def processor_time(served: Served) -> float:
    """Seconds of the processor that the server has used."""
    with open(f"/proc/{served.process.pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Visitor:
    """What one connection sends: news of the last decisions, and a request for the next."""

    def __init__(self, connection: Connection, count: int) -> None:
        self.connection, self.count = connection, count
        self.news: list[dict[str, object]] = []

    async def visit(self) -> None:
        """One request."""
        body = {"tells": self.news, "asks": {"count": self.count}}
        answer = json.loads(await self.connection.send("POST", "/v1/bandits/load/step", body))
        decisions = answer.get("decisions", [])
        self.news = [{"id": one["id"], "reward": 0.5, "cost": 0.25} for one in decisions if one["arm"] is not None]


def full_load(served: Served, seconds: int, count: int) -> Measured:
    """Each connection asks again as soon as it has its answer."""
    environment = {**os.environ, "COUNT": str(count), "TOKEN": served.token}
    with TemporaryDirectory() as folder:
        script = Path(folder, "step.lua")
        script.write_text(STEPS, encoding="ascii")
        place = f"http://127.0.0.1:{served.port}"
        command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "-s", str(script), place]
        before = processor_time(served)
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        used = processor_time(served) - before
    requests, took, median, slowest, errors = map(float, done.stdout.split("\n")[-2].split())
    assert errors == 0, done.stdout
    return Measured(requests / took * 1e6, median / 1e6, slowest / 1e6, used / requests)


async def steady(served: Served, seconds: float, rate: float) -> Measured:
    """Requests come at a steady rate, whether the last one is answered or not; waiting counts."""
    times: list[float] = []
    visitors = [Visitor(Connection(served), 1) for _ in range(CONNECTIONS)]
    between = CONNECTIONS / rate

    async def work(visitor: Visitor, begin: float) -> None:
        for number in range(int(seconds / between)):
            due = begin + number * between
            await asyncio.sleep(max(due - time.perf_counter(), 0.0))
            await visitor.visit()
            times.append(time.perf_counter() - due)

    for visitor in visitors:
        await visitor.connection.open()
        await visitor.visit()
    before, began = processor_time(served), time.perf_counter()
    await asyncio.gather(*(work(visitor, began + at / rate) for at, visitor in enumerate(visitors)))
    took = time.perf_counter() - began
    used = processor_time(served) - before
    for visitor in visitors:
        visitor.connection.close()
    times.sort()
    return Measured(len(times) / took, times[len(times) // 2], times[int(0.99 * len(times))], used / len(times))


async def prepare(served: Served) -> None:
    """Make the bandit, and wait until its policy is compiled."""
    connection = Connection(served)
    await connection.open()
    await connection.send("PUT", "/v1/bandits/load", BANDIT)
    visitor, deadline = Visitor(connection, BATCH), time.monotonic() + 120
    while time.monotonic() < deadline:
        began = time.perf_counter()
        for _ in range(5):
            await visitor.visit()
        if time.perf_counter() - began < 5 * BATCH * 50e-6:
            break
        await asyncio.sleep(0.2)
    connection.close()


def run(seconds: int) -> dict[str, tuple[Measured, Measured]]:
    """By name: the service, and the empty route in the turn beside it; of some turns the fastest."""
    token = make_token()
    with TemporaryDirectory() as folder:
        ours = [sys.executable, "-m", "paceline", "serve", "--store", f"sqlite:///{folder}/load.db", "--port", "0"]
        with serving(ours, token) as service, serving([sys.executable, "-c", EMPTY], token) as empty:
            asyncio.run(prepare(service))
            loads = {
                "one decision": lambda served: full_load(served, seconds, 1),
                f"{BATCH} decisions": lambda served: full_load(served, seconds, BATCH),
                f"{RATE} a second": lambda served: asyncio.run(steady(served, seconds, RATE)),
            }
            found = {}
            for name, load in loads.items():
                turns = [(load(service), load(empty)) for _ in range(TURNS)]
                found[name] = (
                    min((one for one, _ in turns), key=lambda one: one.cpu),
                    min((other for _, other in turns), key=lambda one: one.cpu),
                )
            return found


def show_page(rounds: int) -> None:
    """How long the page takes in Chromium until something, and until everything, is seen."""
    from playwright.sync_api import sync_playwright

    import paceline as pl

    browser = next(path for path in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if path)
    with TemporaryDirectory() as folder:
        store = f"sqlite:///{folder}/page.db"
        arms = [f"arm {number}" for number in range(20)]
        with pl.join(store, "page", arms=arms, budget=0.5) as member:
            for _ in range(rounds):
                decision = member.ask()
                if decision.arm is not None:
                    member.tell(decision.id, reward=0.5, cost=0.25)
        ours = [sys.executable, "-m", "paceline", "serve", "--store", store, "--port", "0"]
        with serving(ours, "") as service, sync_playwright() as driver:
            running = driver.chromium.launch(executable_path=browser, args=["--no-sandbox"])
            for turn in range(TURNS):
                page = running.new_page()
                began = time.perf_counter()
                page.goto(f"http://127.0.0.1:{service.port}/")
                page.wait_for_selector("#board:not([hidden])")
                page.wait_for_selector("#arms tbody tr:nth-child(20)")
                took = time.perf_counter() - began
                painted = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
                first = "joined with it" if turn == 0 else "again"
                print(
                    f"{rounds:,} rounds, 20 arms, {first}: first paint {painted:.0f} ms, all of it {took * 1e3:.0f} ms"
                )
                page.close()
            running.close()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="The service under load on loopback.")
    parser.add_argument("--page", action="store_true", help="look at the page instead")
    parser.add_argument("--seconds", type=int, default=4, help="length of each turn, whole as wrk has it (default: 4)")
    options = parser.parse_args(arguments if arguments is not None else [])
    if options.page:
        show_page(1_000_000)
        return
    if shutil.which("wrk") is None:
        sys.exit("wrk must be installed (Debian: apt-get install wrk)")
    found = run(options.seconds)
    print(f"{'':16} {'requests/s':>22} {'median ms':>22} {'p99 ms':>22} {'CPU us a request':>22}")
    for name, (service, empty) in found.items():
        cells = [
            f"{ours * scale:9.4g} = {ours / other:5.2f} x empty"
            for ours, other, scale in zip(service, empty, (1.0, 1e3, 1e3, 1e6), strict=True)
        ]
        print(f"{name:16} " + " ".join(f"{cell:>22}" for cell in cells))
    decisions = found[f"{BATCH} decisions"][0].per_second * BATCH
    print(f"in batches of {BATCH}: {decisions:,.0f} decisions with their outcomes a second")
    print(f"the load of the machine, by its own account: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main(sys.argv[1:])

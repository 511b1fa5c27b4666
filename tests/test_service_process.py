"""`paceline serve`, `token` and `demo` as processes: how they start, what they say, and how they end."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest
from asking import request, request_in_time
from command import SCRIPT, call, succeeded
from service import ADS, PYTHON, Process, serving

from paceline.fleet.store import open_store

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def heeded():
    """What is started here heeds Ctrl-C and a closed terminal, also if the tests were started where nobody does."""
    handlers = {signal.SIGHUP: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    with serving(folder) as process:
        assert request(process.address, "/v1/bandits/ads", ADS, "PUT")[0] == 201
        yield process


def test_the_first_line_says_where_the_page_is(served):
    assert served.first.startswith("paceline serves sqlite:///")
    assert served.first.endswith(f"the page is at {served.address}/\n")
    with urllib.request.urlopen(served.address + "/", timeout=20) as page:
        assert b"<title>paceline</title>" in page.read()


def events(address, path, wanted):
    """The first events of a stream."""
    found = []
    with urllib.request.urlopen(address + path, timeout=20) as stream:
        name = None
        for line in stream:
            if line.startswith(b"event: "):
                name = line[7:].strip().decode()
            elif line.startswith(b"data: "):
                found.append((name, json.loads(line[6:])))
                if wanted(found):
                    return found
    raise AssertionError(f"the stream has ended: {found}")


def test_the_stream_shows_the_state_and_then_what_happens(served):
    first = events(served.address, "/v1/bandits/ads/stream", lambda found: len(found) >= 2)
    assert [name for name, _ in first[:2]] == ["history", "state"]
    before = first[1][1]["fleet"]["rounds"]

    def ask():
        time.sleep(0.3)
        request(served.address, "/v1/bandits/ads/ask", {"count": 5})

    thread = threading.Thread(target=ask)
    thread.start()
    path = "/v1/bandits/ads/stream"
    seen = events(
        served.address,
        path,
        lambda found: (
            any(name == "state" and value["fleet"]["rounds"] == before + 5 for name, value in found)
            and any(name == "events" for name, _ in found)
        ),
    )
    thread.join()
    asks = [event for name, value in seen if name == "events" for event in value]
    assert len([event for event in asks if event["event"] == "ask"]) >= 5


def test_sigterm_ends_streams_hands_back_and_exits_with_0(tmp_path):
    with serving(tmp_path) as process:
        request(process.address, "/v1/bandits/ads", ADS, "PUT")
        ended = []

        def look_on():
            with urllib.request.urlopen(process.address + "/v1/bandits/ads/stream", timeout=20) as stream:
                ended.append(stream.read())

        thread = threading.Thread(target=look_on)
        thread.start()
        deadline = time.monotonic() + 10
        while request(process.address, "/v1/bandits/ads/events")[0] != 200 or time.monotonic() > deadline:
            time.sleep(0.05)
        time.sleep(0.5)
        began = time.monotonic()
        code, out, err = process.stop(signal.SIGTERM)
        thread.join(10)
        assert (code, out) == (0, "paceline has stopped\n"), err
        assert time.monotonic() - began < 9  # it did not wait for the stream to be given up
        assert b"event: end" in ended[0]
        assert "Traceback" not in err


STUCK = """
import sys, threading
from paceline.fleet.sqlite import SQLiteStore
from paceline.service import host, server

class Stuck(SQLiteStore):
    waits = threading.Event()

    def origin(self, fleet):
        print("joining", flush=True)
        self.waits.wait(WAITS)
        return super().origin(fleet)

host.STORE_PATIENCE = server.PATIENCE = 2
server.serve(Stuck(sys.argv[1]), port=0)
"""


@pytest.mark.parametrize("waits", ["1", "None"])
def test_sigterm_does_not_wait_for_a_store_that_never_answers(waits, tmp_path):
    """The process ends within its patience while it is joining; a join that ends meanwhile leaves nothing behind."""
    script = tmp_path / "stuck.py"
    script.write_text(STUCK.replace("WAITS", waits), encoding="ascii")
    with open_store(f"sqlite:///{tmp_path}/ads.db") as store:
        store.make("ads", ADS, "me")
        with Process(script, tmp_path / "ads.db", program=PYTHON) as process:
            asking = threading.Thread(target=request, args=(process.address, "/v1/bandits/ads/ask", {}))
            asking.start()
            assert process.process.stdout.readline() == "joining\n"
            code, _, err = process.stop(signal.SIGTERM)
            asking.join()
        assert (code, "Traceback" in err) == (0, False)
        assert store.workers("ads") == []


def test_a_request_under_way_is_finished(tmp_path):
    with serving(tmp_path) as process:
        request(process.address, "/v1/bandits/ads", ADS, "PUT")
        host, port = process.address.removeprefix("http://").split(":")
        body = b'{"count": 2}'
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            head = f"POST /v1/bandits/ads/ask HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
            connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body[:5])
            time.sleep(0.3)
            process.process.send_signal(signal.SIGTERM)
            time.sleep(0.3)
            connection.sendall(body[5:])
            answer = connection.recv(65536)
        assert answer.startswith(b"HTTP/1.1 200"), answer
        assert b"\r\nconnection: close\r\n" in answer  # nothing more is taken on it
        assert process.stop()[0] == 0


def test_without_a_token_it_listens_on_this_machine_only(tmp_path):
    store = f"sqlite:///{tmp_path}/ads.db"
    done = call("serve", "--store", store, "--host", "0.0.0.0", "--port", 0)
    assert done.returncode == 2
    assert "--host must be 127.0.0.1" in done.stderr
    assert done.stderr.count("\n") == 1
    token = succeeded("token", "add", "--store", store, "--label", "shop", "--role", "decider").strip()
    with serving(tmp_path, "--host", "0.0.0.0") as process:
        address = process.address.replace("0.0.0.0", "127.0.0.1")
        assert request(address, "/v1/bandits")[0] == 401
        assert request(address, "/v1/bandits", token=token) == (200, {"bandits": []})
        assert request(address, "/v1/bandits/ads", ADS, "PUT", token=token)[0] == 403


def test_tokens_are_added_listed_and_revoked(tmp_path):
    store = ("--store", f"sqlite:///{tmp_path}/ads.db")
    token = succeeded("token", "add", *store, "--label", "shop", "--role", "reader").strip()
    assert len(token) > 40
    listed = succeeded("token", "list", *store)
    assert listed.split()[:2] == ["shop", "reader"]
    assert token not in listed
    taken = call("token", "add", *store, "--label", "shop", "--role", "reader")
    assert (taken.returncode, taken.stderr.count("\n")) == (2, 1)
    assert succeeded("token", "revoke", *store, "--label", "shop") == "Revoked: shop\n"
    assert succeeded("token", "list", *store) == ""
    assert call("token", "revoke", *store, "--label", "shop").returncode == 2
    assert call("token", "add", *store, "--label", "../x", "--role", "reader").returncode == 2


def test_a_token_may_come_from_a_file_or_the_environment(tmp_path):
    token = "t" * 32
    (tmp_path / "token").write_text(token + "\n")
    with serving(tmp_path, "--token-file", tmp_path / "token") as process:
        assert request(process.address, "/v1/whoami")[0] == 401
        assert request(process.address, "/v1/whoami", token=token)[1]["role"] == "operator"
        _, out, err = process.stop()
        assert token not in process.first + out + err
    with serving(tmp_path, env={"PACELINE_TOKEN": token}) as process:
        assert request(process.address, "/v1/whoami", token=token)[0] == 200
    assert call("serve", "--store", f"sqlite:///{tmp_path}/ads.db", "--token", "short").returncode == 2


def test_when_it_is_ready_its_bandits_are_open(tmp_path):
    with open_store(f"sqlite:///{tmp_path}/ads.db") as store:
        store.make("ads", ADS, "test")
    with serving(tmp_path) as process:
        end = time.monotonic() + 60
        while request(process.address, "/readyz")[0] != 200:
            assert time.monotonic() < end
            time.sleep(0.02)
        assert b'paceline_rounds_total{bandit="ads"} 0' in request(process.address, "/metrics")[1]
        assert process.stop()[0] == 0


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("pipe", "must be a plain file"),
        ("/dev/zero", "must be a plain file"),
        ("folder", "Is a directory"),
        ("missing", "No such file"),
        ("huge", "above 4096 bytes"),
        ("bytes", "got no text"),
        ("empty", "must have 16 to 200 printable characters"),
    ],
)
def test_a_token_file_that_is_none_is_one_line(kind, said, tmp_path):
    path = Path(kind) if kind.startswith("/") else tmp_path / kind
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind in ("huge", "bytes", "empty"):
        with open(path, "wb") as file:
            file.write({"huge": b"t", "bytes": b"\xff", "empty": b""}[kind])
            file.truncate(2**33 if kind == "huge" else None)
    done = call("serve", "--store", f"sqlite:///{tmp_path}/ads.db", "--port", 0, "--token-file", path, timeout=30)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_port_that_is_taken_is_one_line(served, tmp_path):
    port = served.address.rpartition(":")[2]
    done = call("serve", "--store", f"sqlite:///{tmp_path}/ads.db", "--port", port)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "must be free to listen at" in done.stderr


def test_a_store_that_cannot_be_opened_is_one_line(tmp_path):
    for store in (f"sqlite:///{tmp_path}/nowhere/ads.db", "mysql://root:secret@db/ads"):
        done = call("serve", "--store", store)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert "secret" not in done.stderr


def test_with_a_journal_a_killed_service_comes_back_as_the_same_worker(tmp_path):
    path, options = "/v1/bandits/ads", ("--worker", "web-1", "--journal-dir", tmp_path / "journals")
    with serving(tmp_path, *options) as first:
        request(first.address, path, ADS, "PUT")
        _, answer = request(first.address, f"{path}/ask", {"count": 50})
        ids = [decision["id"] for decision in answer["decisions"] if decision["arm"]]
        before = request(first.address, path)[1]["fleet"]
        first.stop(signal.SIGKILL)
    with serving(tmp_path, *options) as second:
        _, answer = request(
            second.address, f"{path}/tell", {"items": [{"id": id, "reward": 1, "cost": 0} for id in ids]}
        )
        assert {item["result"] for item in answer["items"]} == {"taken"}
        after = request(second.address, path)[1]["fleet"]
        assert [row["name"] for row in after["workers"]] == ["web-1"]
        assert (after["rounds"], after["credited"]) == (before["rounds"], before["credited"])
        assert after["headroom"] + after["pool"] == pytest.approx(after["credited"])  # nothing is stranded
    assert call("serve", "--store", f"sqlite:///{tmp_path}/ads.db", "--journal-dir", tmp_path).returncode == 2


@pytest.mark.parametrize("has_journal", [True, False])
def test_a_key_gives_the_same_decisions_after_a_kill(has_journal, tmp_path):
    more = ["--worker", "web-1", "--journal-dir", tmp_path] if has_journal else []

    def ask(process):
        return request_in_time(process.address, "/v1/bandits/ads/ask", {"count": 3}, key="k")

    with serving(tmp_path, *more) as process:
        request(process.address, "/v1/bandits/ads", ADS, "PUT")
        status, first = ask(process)
        assert (status, len(first["decisions"])) == (200, 3)
        process.stop(signal.SIGKILL)
    with serving(tmp_path, *more) as process:
        assert ask(process) == (200, first)
        here = request_in_time(process.address, "/v1/bandits/ads")[1]["here"]
        pulled = [decision for decision in first["decisions"] if decision["arm"]]
        assert (here["rounds"], here["pending"]) == ((3, len(pulled)) if has_journal else (0, 0))


def test_news_of_another_service_that_was_acknowledged_survives_a_kill(tmp_path):
    path = "/v1/bandits/ads"
    with serving(tmp_path, "--worker", "owner") as owner, serving(tmp_path, "--worker", "teller") as teller:
        assert request(owner.address, path, {**ADS, "start": 100.0}, "PUT")[0] == 201
        assert request(teller.address, path)[0] == 200
        decisions = request(owner.address, f"{path}/ask", {"count": 50, "arms": ["banner"]})[1]["decisions"]
        news = {"items": [{"id": one["id"], "reward": 1, "cost": 0.05} for one in decisions]}
        status, answer = request(teller.address, f"{path}/tell", news)
        teller.stop(signal.SIGKILL)
        assert (status, [item["result"] for item in answer["items"]]) == (200, ["taken"] * 50)
        end = time.monotonic() + 10
        here = {"rounds": 0, "pending": 0}  # the first picture may be of the time before
        while (here["rounds"] < 50 or here["pending"]) and time.monotonic() < end:
            time.sleep(0.1)
            here = request(owner.address, path)[1]["here"]
        again = request(owner.address, f"{path}/tell", news)[1]
        assert [item["result"] for item in again["items"]] == ["known"] * 50


def test_the_demonstration_runs_by_itself_and_leaves_nothing_behind(tmp_path):
    environment = {"TMPDIR": str(tmp_path)}
    with Process("--no-browser", "--speed", 5, env=environment, command="demo") as demo:
        folders = list(tmp_path.glob("paceline-demo-*"))
        assert len(folders) == 1
        deadline = time.monotonic() + 60
        while True:
            status, state = request(demo.address, "/v1/bandits/summer-campaign")
            assert status == 200
            if state["fleet"]["rounds"] > 100 and state["fleet"]["spent"] > 0:
                break
            assert time.monotonic() < deadline, state["fleet"]
            time.sleep(0.3)
        fleet = state["fleet"]
        assert fleet["spent"] + fleet["reserved"] <= fleet["credited"] + 1e-9
        code, out, err = demo.stop(signal.SIGINT)
    assert (code, err) == (0, "")
    assert out.endswith("nothing is left of it.\n")
    assert list(tmp_path.iterdir()) == []


def processes_with(text):
    """The processes whose environment has a text."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if text.encode() in (place / "environ").read_bytes():
                found.append(int(place.name))
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="looks at the processes as Linux shows them")
def test_the_demonstration_on_a_new_machine_leaves_no_compiler_behind(tmp_path):
    cache = tmp_path / "cache"
    with Process("--no-browser", "--speed", 5, env={"NUMBA_CACHE_DIR": str(cache)}, command="demo") as demo:
        deadline = time.monotonic() + 120
        while processes_with(str(cache)) in ([], [demo.process.pid]):
            assert time.monotonic() < deadline, "no other process compiles"
            time.sleep(0.05)
        assert demo.stop(signal.SIGINT)[0] == 0
        assert processes_with(str(cache)) == []


def test_a_closed_terminal_ends_the_demonstration_as_any_other_end(tmp_path):
    with Process("--no-browser", env={"TMPDIR": str(tmp_path)}, command="demo") as demo:
        assert demo.stop(signal.SIGHUP)[0] == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_demonstration_that_ends_before_it_has_begun_leaves_nothing_behind(how, tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([str(SCRIPT), "demo", "--no-browser"], env=environment, stderr=subprocess.DEVNULL) as demo:
        end = time.monotonic() + 60
        while not list(tmp_path.glob("paceline-demo-*")) and time.monotonic() < end:
            time.sleep(0.001)
        demo.send_signal(how)
        try:
            assert demo.wait(60) == 128 + how
        finally:
            demo.kill()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("handler", "ends"), [(signal.SIG_DFL, True), (signal.SIG_IGN, False)])
def test_a_closed_terminal_ends_a_service_unless_it_was_started_with_nohup(handler, ends, tmp_path):
    before = signal.signal(signal.SIGHUP, handler)
    try:
        process = serving(tmp_path)
    finally:
        signal.signal(signal.SIGHUP, before)
    with process:
        assert request(process.address, "/v1/bandits/ads", ADS, "PUT")[0] == 201
        if not ends:
            process.process.send_signal(signal.SIGHUP)
            assert request(process.address, "/v1/bandits/ads/ask", {})[0] == 200
        assert process.stop(signal.SIGHUP if ends else signal.SIGTERM)[0] == 0
    with open_store(f"sqlite:///{tmp_path}/ads.db") as store:
        assert store.workers("ads") == []


def test_two_services_share_one_budget_and_each_may_end(tmp_path):
    """Asked in turn, told through the other one; one ends, and what it held is for the other."""
    path = "/v1/bandits/ads"
    settings = {**ADS, "budget": 0.1, "max_cost": 1.0}
    with serving(tmp_path, "--worker", "one") as one, serving(tmp_path, "--worker", "two") as two:
        request(one.address, path, settings, "PUT")
        assert request(two.address, path, settings, "PUT") == (200, {"name": "ads", "made": False})
        told = 0
        for _ in range(60):
            for here, there in ((one, two), (two, one)):
                _, answer = request(here.address, f"{path}/ask", {"count": 5})
                news = [{"id": d["id"], "reward": 0.5, "cost": 0.75} for d in answer["decisions"] if d["arm"]]
                if news:
                    _, results = request(there.address, f"{path}/tell", {"items": news})
                    assert [item["result"] for item in results["items"]] == ["taken"] * len(news)
                    told += len(news)
        deadline = time.monotonic() + 30
        while True:
            fleet = request(one.address, path)[1]["fleet"]
            request(two.address, path)
            assert fleet["spent"] + fleet["reserved"] <= fleet["credited"] + 1e-9
            if fleet["rounds"] == 600 and fleet["spent"] == pytest.approx(0.75 * told, rel=1e-6):
                break
            assert time.monotonic() < deadline, fleet
            time.sleep(0.2)
        assert fleet["reserved"] == 0.0
        assert {row["name"] for row in fleet["workers"]} == {"one", "two"}
        assert two.stop()[0] == 0
        time.sleep(0.6)  # a new picture
        after = request(one.address, path)[1]["fleet"]
        assert [row["name"] for row in after["workers"]] == ["one"]
        left = after["credited"] - after["spent"] - after["reserved"]
        held = after["headroom"] + after["pool"]
        assert held == pytest.approx(left, abs=1e-6)

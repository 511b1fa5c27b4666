"""What goes over the wire, byte by byte: the short way and the usual way give the same answers, whoever sends what."""

import http.client
import json
import select
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from urllib.request import urlopen

import pytest
from asking import request
from service import ADS, PYTHON, Process, serving

from paceline.fleet.store import open_store
from paceline.service.limits import LARGEST_HEAD, MOST_STREAMS
from paceline.service.tokens import add_token

pytestmark = pytest.mark.slow

TOKEN = "t" * 32
B = "/v1/bandits/ads"
USUAL = {"Host": "x", "Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"}
SLOWLY = {"Expect": "100-continue"}  # which makes a request go the usual way


ITEMS = {"items": [{"id": "x"}]}
BODIES = {
    "/ask": {},
    "/tell": ITEMS,
    "/cancel": ITEMS,
    "/expire": ITEMS,
    "/observe": {"items": [{"arm": "banner", "reward": 1, "cost": 0.1}]},
    "/step": {"asks": {}},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("wire")


@pytest.fixture(scope="module")
def port(folder):
    with serving(folder, env={"PACELINE_TOKEN": TOKEN}) as process:
        assert request(process.address, B, ADS, "PUT", TOKEN)[0] == 201
        yield int(process.address.rpartition(":")[2])


def written(path="/ask", body: object = None, *, method="POST", version="1.1", leave=(), **headers):
    """A request as bytes; headers are named with _ for -."""
    content = body if isinstance(body, bytes) else json.dumps({} if body is None else body).encode()
    given = {
        **USUAL,
        "Content-Length": str(len(content)),
        **{name.replace("_", "-"): headers[name] for name in headers},
    }
    lines = [f"{name}: {value}" for name, value in given.items() if name not in leave]
    return "\r\n".join([f"{method} {B}{path} HTTP/{version}", *lines, "", ""]).encode() + content


class Line:
    """A connection on which bytes are sent and answers are read."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.file = self.socket.makefile("rb")

    def send(self, data):
        self.socket.sendall(data)

    def is_cut_off_by(self, data):
        """Whether nobody takes what is sent."""
        try:
            self.socket.send(data)
        except (ConnectionResetError, BrokenPipeError):
            return True
        return False

    def read(self):
        """Status, headers and body of the next answer that is not "go on"."""
        line = self.file.readline()
        assert line.startswith(b"HTTP/1.1 "), line
        status, headers = int(line[9:12]), {}
        while (line := self.file.readline().rstrip()) != b"":
            name, _, value = line.partition(b": ")
            assert name not in headers
            headers[name] = value
        if status == 100:
            return self.read()
        return status, headers, self.file.read(int(headers[b"content-length"]))

    def is_over(self):
        return self.file.read(1) == b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()


REQUESTS = {
    "ask": written(),
    "ask for many": written(body={"count": 3, "arms": ["banner"], "expires": 5}),
    "unknown news": written("/tell", {"items": [{"id": "web-1.aaaaaaaaaaaa-1.0", "reward": 1}, {"id": "x"}]}),
    "cancel": written("/cancel", {"items": [{"id": "x"}]}),
    "expire": written("/expire", {"items": [{"id": 5}]}),
    "observe": written(
        "/observe", {"items": [{"arm": "banner", "reward": 1, "cost": 0.1}, {"arm": "b", "reward": 1, "cost": 1}]}
    ),
    "step": written("/step", {"tells": [{"id": "x", "cost": 1}], "asks": {"count": 2}}),
    "step without asks": written("/step", {"tells": []}),
    "empty body": written(body=b""),
    "half a body": written(body=b'{"count": '),
    "a key twice": written(body=b'{"count": 1, "count": 2}'),
    "wrong value": written(body={"count": 0}),
    "unknown arm": written(body={"arms": ["nobody"]}),
    "no token": written(leave=["Authorization"]),
    "wrong token": written(Authorization="Bearer nobody"),
    "no json": written(Content_Type="text/plain"),
    "no kind": written(leave=["Content-Type"]),
    "two hosts": written().replace(b"Host: x", b"Host: x\r\nHost: localhost"),
    "two tokens": written().replace(b"Authorization", b"Authorization: Bearer other\r\nAuthorization"),
    "two of no matter": written().replace(b"Host: x", b"Host: x\r\nAccept: a\r\nAccept: b"),
    "another site": written(Sec_Fetch_Site="cross-site"),
    "unknown bandit": written("s/ask").replace(b"/adss/", b"/other/"),
    "a strange name": written().replace(b"/ads/", b"/%3Cscript%3E/"),
    "with a query": written("/ask?x=1"),
    "one slash more": written("/ask/"),
    "another method": written(method="PUT"),
    "last": written(Connection="close"),
    "old": written(version="1.0"),
    "old, and would stay": written(version="1.0", Connection="keep-alive"),
}


def without_what_is_new(answer):
    """An answer but for the time and the numbers of decisions."""
    status, headers, body = answer
    found = json.loads(body)
    for decision in found.get("decisions", []):
        decision.clear()
    return status, {name: value for name, value in headers.items() if name not in (b"date", b"content-length")}, found


@pytest.mark.parametrize("sent", REQUESTS.values(), ids=REQUESTS)
def test_the_short_way_and_the_usual_way_give_the_same_answer(sent, port):
    answers = []
    for data in (sent, sent.replace(b"Host: x", b"Host: x\r\nExpect: 100-continue", 1)):
        with Line(port) as line:
            line.send(data)
            answers.append(without_what_is_new(line.read()))
            if answers[-1][1].get(b"connection") == b"close":
                assert line.is_over()
    assert answers[0] == answers[1]
    assert b"default-src 'none'" in answers[0][1][b"content-security-policy"]


@pytest.mark.parametrize("slowly", [{}, SLOWLY])
@pytest.mark.parametrize("name", ["Host", "Authorization", "Content-Type", "Idempotency-Key", "Sec-Fetch-Site"])
def test_what_decides_must_not_come_twice(name, slowly, port):
    """Whoever is in front of the service may have looked at the other one."""
    value = USUAL.get(name, "none")
    twice = f"{name}: {value}\r\n{name}: {value}\r\nX: ".encode()
    with Line(port) as line:
        line.send(written(X="y", **slowly, leave=[name]).replace(b"X: ", twice))
        status, _, content = line.read()
        assert (status, json.loads(content)["detail"]) == (
            400,
            f"a request must have one header {name.lower()}, got 2",
        )


def test_fields_behind_a_body_are_not_part_of_the_head(port):
    """Who took a header away in front of the service would let it in there."""
    token = f"Authorization: Bearer {TOKEN}"
    with Line(port) as line:
        head = written(leave=["Content-Length", "Authorization"], Transfer_Encoding="chunked").removesuffix(b"{}")
        line.send(head + f"2\r\n{{}}\r\n0\r\n{token}\r\n\r\n".encode())
        assert line.read()[0] == 401
        key = written(leave=["Content-Length"], Transfer_Encoding="chunked", Idempotency_Key="k").removesuffix(b"{}")
        line.send(key + b"2\r\n{}\r\n0\r\nExpect: 100-continue\r\n\r\n")
        assert line.read()[0] == 200
        line.send(written())
        assert line.read()[0] == 200


def test_what_is_no_request_is_counted_and_not_logged(tmp_path):
    nonsense = (b"nonsense\r\n\r\n", b"\x16\x03\x01\x00", b"GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n")
    upgrade = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"
    with serving(tmp_path) as process:
        port = int(process.address.rpartition(":")[2])
        for sent in (*nonsense, upgrade):
            with Line(port) as line:
                line.send(sent)
                assert line.read()[0] == (200 if sent is upgrade else 400)
        with urlopen(f"{process.address}/metrics") as answer:
            assert 'paceline_http_requests_total{operation="malformed",status="400"} 3\n' in answer.read().decode()
        code, _, log = process.stop()
    assert (code, "WARNING" in log) == (0, False)


@pytest.mark.parametrize("slowly", [{}, SLOWLY])
def test_a_reader_may_not_decide(slowly, folder, port):
    with open_store(f"sqlite:///{folder}/ads.db") as store:
        token = add_token(store, f"reader-{len(slowly)}", "reader")
    end = time.monotonic() + 60
    while request(f"http://127.0.0.1:{port}", "/v1/whoami", token=token)[0] != 200:  # until the service looks again
        assert time.monotonic() < end
        time.sleep(0.2)
    for path, body in BODIES.items():
        with Line(port) as line:
            line.send(written(path, body, Authorization=f"Bearer {token}", **slowly))
            status, _, content = line.read()
            assert (status, "role decider" in json.loads(content)["detail"]) == (403, True)


def test_a_request_that_comes_byte_by_byte_is_answered(port):
    with Line(port) as line:
        for _ in range(2):
            for byte in written(body={"count": 2}):
                line.send(bytes([byte]))
            assert len(json.loads(line.read()[2])["decisions"]) == 2


OFFER = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": "AAEAAEAA"}
CHUNKED = {"leave": ["Content-Length"], "Transfer_Encoding": "chunked"}


@pytest.mark.parametrize("slowly", [{}, SLOWLY])
@pytest.mark.parametrize("pause", [0.0, 0.1])
def test_a_request_that_offers_another_protocol_is_taken_as_it_is(slowly, pause, port):
    """Every program in Java offers HTTP/2; the parser of uvicorn leaves out the bodies of such requests."""
    plain = written(body={"count": 2}, **OFFER, **slowly)
    chunked = written(body=b"c\r\n" + b'{"count": 3}' + b"\r\n0\r\n\r\n", **OFFER, **CHUNKED, **slowly)
    with Line(port) as line:
        for sent in (plain, chunked, plain + chunked, written(**OFFER) * 3000):
            head, end, rest = sent.partition(b"\r\n\r\n")
            line.send(head + end)
            time.sleep(pause)
            line.send(rest)
            found = [len(json.loads(line.read()[2])["decisions"]) for _ in range(sent.count(b"POST"))]
            assert set(found) <= {1, 2, 3}
            assert found[0] == {plain: 2, plain + chunked: 2, chunked: 3}.get(sent, 1)
        line.send(written("", b"", method="GET", **OFFER) + written(**OFFER, leave=["Authorization"]))
        assert [line.read()[0] for _ in range(2)] == [200, 401]


def test_the_service_is_no_proxy(port):
    with Line(port) as line:
        line.send(b"CONNECT /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" + written())
        status, _, content = line.read()
        assert (status, json.loads(content)["status"]) == (405, 405)
        assert line.is_over()


@pytest.mark.parametrize("headers", [{}, {"Idempotency_Key": "half"}, SLOWLY])
def test_who_sends_no_more_still_gets_the_answers(headers, port):
    with Line(port) as line:
        line.send(b"".join(written(body={"count": number}, **headers, X=str(number)) for number in (2, 2, 2)))
        line.socket.shutdown(socket.SHUT_WR)
        assert [len(json.loads(line.read()[2])["decisions"]) for _ in range(3)] == [2, 2, 2]
        assert line.is_over()


@pytest.mark.parametrize("sent", [b"", written()[:20], written()[:-1], written(**SLOWLY)[:-1]])
def test_who_sends_no_more_in_the_middle_of_a_request_has_left(sent, port):
    with Line(port) as line:
        line.send(sent)
        line.socket.shutdown(socket.SHUT_WR)
        assert line.file.read().replace(b"HTTP/1.1 100 Continue\r\n\r\n", b"") == b""


def test_the_head_of_a_stream_has_an_end(port):
    with Line(port) as line:
        line.send(written("/stream", b"", method="HEAD") + written())
        assert line.file.readline() == b"HTTP/1.1 200 OK\r\n"
        while line.file.readline() != b"\r\n":
            pass
        assert line.read()[0] == 200


def test_requests_that_come_at_once_are_answered_in_their_order(port):
    """Short ways and usual ways one after the other, in one piece."""
    count = 400
    kinds = [
        lambda number: written(body={"count": 1 + number % 7}),
        lambda number: written(body={"count": 1 + number % 7}, Idempotency_Key=f"k{number}"),
        lambda number: written(body={"count": 1 + number % 7}, **SLOWLY),
    ]
    data = b"".join(kinds[number % 3](number) for number in range(count))
    with Line(port) as line:
        line.send(data)
        found = [len(json.loads(line.read()[2])["decisions"]) for _ in range(count)]
    assert found == [1 + number % 7 for number in range(count)]


@pytest.mark.parametrize(
    "sent", [b"nonsense\r\n\r\n", written(Transfer_Encoding="chunked"), written(Content_Length="-1")]
)
def test_what_is_no_http_is_refused_in_a_problem_document(sent, port):
    with Line(port) as line:
        line.send(sent)
        status, headers, content = line.read()
        assert (status, headers[b"content-type"]) == (400, b"application/problem+json")
        assert json.loads(content)["status"] == 400
        assert line.is_over()


@pytest.mark.parametrize("begins", [b"POST /v1 HTTP/1.1\r\nX: ", b"GET /"])
def test_a_head_without_an_end_is_refused(begins, port):
    with Line(port) as line:
        line.send(begins)
        for _ in range(10):
            line.send(b"a" * 20_000)
            if select.select([line.socket], [], [], 0.3)[0]:
                break
        status, _, content = line.read()
        assert (status, json.loads(content)["title"]) == (431, "Too large")
        assert line.is_over()


@pytest.mark.parametrize("begins", [b"0\r\n", b"2;", b"2\r\n{}\r\n0;", b"2\r\n{}\r\n0\r\nX: "])
@pytest.mark.parametrize("slowly", [{}, SLOWLY])
def test_fields_between_and_behind_chunks_have_an_end_too(begins, slowly, port):
    with Line(port) as line:
        line.send(written(leave=["Content-Length"], Transfer_Encoding="chunked", **slowly).removesuffix(b"{}"))
        if slowly:
            assert line.file.readline() == b"HTTP/1.1 100 Continue\r\n"
            assert line.file.readline() == b"\r\n"
        line.send(begins)
        for _ in range(10):
            with suppress(ConnectionError):
                line.send(b"a" * 20_000)
            if select.select([line.socket], [], [], 0.3)[0]:
                break
        status, _, content = line.read()
        assert (status, json.loads(content)["title"]) == (431, "Too large")
        assert line.is_over()


def test_who_leaves_with_requests_behind_a_stream_has_left_the_stream(port):
    """The one that came last was taken for the one that is answered: whoever did that kept all others from watching."""
    look = written("/stream", b"", method="GET", leave=["Content-Length", "Content-Type"])
    for _ in range(MOST_STREAMS):
        with Line(port) as line:
            line.send(look + look)
            assert line.file.readline() == b"HTTP/1.1 200 OK\r\n"
    end = time.monotonic() + 30
    while True:
        with Line(port) as line:
            line.send(look)
            if b" 200 " in line.file.readline():
                return
        assert time.monotonic() < end
        time.sleep(0.2)


def test_who_sends_faster_than_answers_come_is_not_read_any_faster(port):
    """What was read ahead is kept in memory; what is not, waits in the buffers of the system."""
    sent = written(**SLOWLY) * 1000
    with Line(port) as line, ThreadPoolExecutor(1) as pool:
        answers = pool.submit(lambda: sum(part.startswith(b"HTTP/1.1 200") for part in line.file))
        line.socket.settimeout(1.0)
        count, end = 0, time.monotonic() + 5
        while time.monotonic() < end:
            with suppress(TimeoutError):
                count += line.socket.send(sent)
        line.socket.shutdown(socket.SHUT_RDWR)
        assert count - answers.result() * len(sent) / 1000 < 16e6


def test_a_large_body_behind_a_head_in_two_pieces_is_taken(port):
    items = [{"id": f"web-1.aaaaaaaaaaaa-{number}.0", "reward": 0.5, "cost": 0.125} for number in range(1000)]
    sent = written("/tell", {"items": items})
    assert len(sent) > LARGEST_HEAD
    with Line(port) as line:
        line.send(sent[:50])
        time.sleep(0.1)  # so that the rest comes later, and as much of it at once as the server reads
        line.send(sent[50:])
        assert line.read()[0] == 200


def test_large_bodies_come_in_pieces_and_not_above_the_limit(port):
    items = [{"id": f"web-1.aaaaaaaaaaaa-{number}.0", "reward": 0.5, "cost": 0.125} for number in range(1000)]
    with Line(port) as line:
        line.send(written("/tell", {"items": items}))
        assert len(json.loads(line.read()[2])["items"]) == 1000
        line.send(written("/tell", b" " * (1 << 20) + b"{}"))
        assert line.read()[0] == 413


@pytest.mark.parametrize("headers", [{}, SLOWLY, {"Authorization": "Bearer wrong"}, {"Content-Type": "text/plain"}])
def test_whoever_sends_a_million_items_can_read_why_they_are_refused(headers, port):
    items = b'{"items":[' + b",".join([b'{"id":1}'] * 1_000_000) + b"]}"
    given = {**USUAL, **headers}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", f"{B}/tell", items, given)  # which sends all of it before it reads anything
    answer = connection.getresponse()
    assert answer.getheader("Content-Type") == "application/problem+json"
    assert answer.status == json.loads(answer.read())["status"]
    assert answer.status == {"Bearer wrong": 401, "text/plain": 415}.get(next(iter(headers.values()), ""), 413)
    connection.close()


def test_a_service_that_throws_away_what_is_sent_still_ends(folder):
    with serving(folder, env={"PACELINE_TOKEN": TOKEN}) as process:
        with Line(int(process.address.rpartition(":")[2])) as line:
            line.send(written("/tell", b" " * 100_000, Content_Length="2000000"))
            assert line.read()[0] == 413
            line.send(b" " * 100_000)
            began = time.monotonic()
            assert process.stop()[0] == 0
        assert time.monotonic() - began < 8.0


@pytest.mark.parametrize("sent", [b"", b"GET /v1/ban"])
def test_half_a_head_does_not_hold_up_a_service_that_ends(sent, folder):
    with serving(folder, env={"PACELINE_TOKEN": TOKEN}) as process:
        with Line(int(process.address.rpartition(":")[2])) as line:
            line.send(sent)
            assert request(process.address, "/healthz")[0] == 200  # so that the one before was let in
            began = time.monotonic()
            assert process.stop()[0] == 0
        assert time.monotonic() - began < 5.0


def test_what_is_no_request_behind_one_is_refused_and_not_logged(folder):
    whole = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with serving(folder, env={"PACELINE_TOKEN": TOKEN}) as process:
        for _ in range(3):
            with Line(int(process.address.rpartition(":")[2])) as line:
                line.send(whole + b"GARBAGE\x00")
                assert line.file.read().count(b"HTTP/1.1 400 ") == 1
        code, _, said = process.stop()
    assert code == 0
    assert "Traceback" not in said
    assert "ERROR" not in said


def test_a_body_in_chunks_is_read(port):
    body = b'{"count": 2}'
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    with Line(port) as line:
        head = written(leave=["Content-Length"], Transfer_Encoding="chunked").removesuffix(b"{}")
        line.send(head + chunks)
        assert len(json.loads(line.read()[2])["decisions"]) == 2


HASTY = """
import sys
from paceline.fleet.store import open_store
from paceline.service import server, wire

wire.KEPT_OPEN, wire.ARRIVES, wire.LINGERS = float(sys.argv[2]), float(sys.argv[3]), 1.0
server.serve(open_store(f"sqlite:///{sys.argv[1]}"), port=0)
"""


@pytest.mark.parametrize(
    ("sent", "kept_open", "arrives"),
    [
        (b"", 1, 1000),
        (b"POST /v1/ban", 1000, 1),
        (written(body={"count": 2})[:-3], 1000, 1),
        (written(**SLOWLY)[:-1], 1000, 1),
        (written(leave=["Authorization"]).replace(b"Host: x", b"Host: localhost"), 1, 1000),
    ],
)
def test_a_connection_on_which_nothing_goes_on_is_closed(sent, kept_open, arrives, tmp_path):
    script = tmp_path / "hasty.py"
    script.write_text(HASTY, encoding="ascii")
    with Process(script, tmp_path / "ads.db", kept_open, arrives, program=PYTHON) as process:
        began = time.monotonic()
        with Line(int(process.address.rpartition(":")[2])) as line:
            line.send(sent)
            line.file.read()  # until it is closed
            assert time.monotonic() - began > 0.5
        assert process.stop()[0] == 0


@pytest.mark.parametrize(
    ("first", "next_part", "arrives"),
    [
        (b"GET /", b"a" * 10_000, 1000),  # sends on after it was refused
        (b"", b"GET /page/page.css HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50, 1),  # reads nothing
    ],
)
def test_who_goes_on_sending_and_reads_nothing_is_cut_off(first, next_part, arrives, tmp_path):
    script = tmp_path / "hasty.py"
    script.write_text(HASTY, encoding="ascii")
    with Process(script, tmp_path / "ads.db", 1000, arrives, program=PYTHON) as process:
        with Line(int(process.address.rpartition(":")[2])) as line:
            line.send(first)
            line.socket.settimeout(1.0)
            until, is_cut_off = time.monotonic() + 30.0, False
            while not is_cut_off and time.monotonic() < until:
                with suppress(TimeoutError):
                    is_cut_off = line.is_cut_off_by(next_part)
                time.sleep(0.01)
            assert is_cut_off
        assert process.stop()[0] == 0


CROWDED = """
import sys, time
from paceline.fleet.sqlite import SQLiteStore
from paceline.service import server, wire

wire.MOST_WAITING = 3

class Slow(SQLiteStore):
    def kept_answer(self, *arguments):
        time.sleep(3)
        return super().kept_answer(*arguments)

server.serve(Slow(sys.argv[1]), port=0)
"""


def test_more_requests_than_can_wait_are_refused_and_idle_connections_keep_nobody_out(tmp_path):
    script = tmp_path / "crowded.py"
    script.write_text(CROWDED, encoding="ascii")
    with Process(script, tmp_path / "ads.db", program=PYTHON) as process, ExitStack() as stack:
        port = int(process.address.rpartition(":")[2])
        assert request(process.address, B, ADS, "PUT")[0] == 201
        for _ in range(20):
            stack.enter_context(Line(port)).send(b"POST /v1/ban")
        lines = [stack.enter_context(Line(port)) for _ in range(8)]
        local = {"Host": "localhost", "leave": ["Authorization"]}
        for number, line in enumerate(lines):
            line.send(written(Idempotency_Key=f"key-{number}", **local))
        assert sorted(line.read()[0] for line in lines) == [200] * 3 + [503] * 5
        with Line(port) as line:
            line.send(written(**local))
            assert line.read()[0] == 200

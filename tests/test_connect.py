"""`pl.connect`: the calls of Bandit over HTTP, also when the service is slow, broken or gone."""

import asyncio
import json
import logging
import multiprocessing
import os
import select
import socket
import threading
import time
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from service import ADS, serving

import paceline as pl
from paceline.service import client

NOWHERE = "http://127.0.0.1:9"  # the port of discard, where nobody listens


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("served")) as process:
        yield process


@pytest.fixture
def bandit(served, request):
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)[:60].strip("-")
    with pl.connect(served.address, name, deadline=10.0) as bandit:
        bandit._call("PUT", "", ADS)
        yield bandit


def pulled(bandit):
    while (decision := bandit.ask()).arm is None:
        pass
    return decision


@contextmanager
def fake(answer, closes=False, stutters=0.0):
    """A server whose answers a test makes up: a function of (path, body) that gives (seconds, status, value).

    If it ``closes``, it does so after every answer, and does not say so. If it ``stutters``, it waits for so many
    seconds before every letter of the answer.
    """
    seen = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            seen.append((self.path, body, dict(self.headers)))
            seconds, status, value = answer(self.path, body)
            time.sleep(seconds)
            content = json.dumps(value).encode()
            try:
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                for place in range(len(content)) if stutters else ():
                    time.sleep(stutters)
                    self.wfile.write(content[place : place + 1])
                self.wfile.write(b"" if stutters else content)
            except OSError:
                pass  # nobody waits any more
            self.close_connection = self.close_connection or closes

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


DECISION = dict.fromkeys(pl.Decision._fields) | {"id": "web-1", "arm": "video", "situation": "base", "reason": "base"}
TAKEN = {"items": [{"id": 1, "result": "taken"}]}


# With a real service.


@pytest.mark.slow
def test_a_round_over_http(bandit):
    decision = pulled(bandit)
    assert decision.arm in ADS["arms"]
    assert isinstance(decision, pl.Decision)
    bandit.tell(decision.id, reward=0.5, cost=0.1)
    assert bandit.flush(10)
    deadline = time.monotonic() + 10
    while bandit.spent == 0.0 and time.monotonic() < deadline:
        time.sleep(0.2)
    assert bandit.spent == pytest.approx(0.1)
    assert bandit.refused == 0
    assert bandit.rounds >= 1
    assert bandit.earned == pytest.approx(0.5)
    assert set(bandit.arms.values()) == {"active"}
    assert bandit.estimates()[decision.arm].reward.mean == pytest.approx(0.5)
    assert sum(bandit.mix().values()) == pytest.approx(1.0)
    assert bandit.credited == pytest.approx(bandit.spent + bandit.reserved + bandit.headroom, abs=1.0)


@pytest.mark.slow
def test_news_is_sent_in_order_and_what_is_refused_is_logged(bandit, caplog):
    one, two = pulled(bandit), pulled(bandit)
    bandit.tell(one.id, cost=0.1)
    bandit.tell(one.id, reward=1.0)
    bandit.tell(one.id, reward=0.25)  # a conflict
    bandit.cancel(two.id)
    bandit.expire(two.id)  # it is over
    assert bandit.flush(10)
    assert bandit.refused == 1
    assert "must keep its reward 1.0, got 0.25" in caplog.text


@pytest.mark.slow
def test_while_the_store_is_away_old_figures_are_said_to_be_old(tmp_path):
    file, away = tmp_path / "ads.db", tmp_path / "away.db"
    with serving(tmp_path) as process, pl.connect(process.address, "ads", deadline=10.0) as bandit:
        bandit._call("PUT", "", ADS)
        decision = pulled(bandit)
        assert (bandit.is_alone, bandit.spent) == (False, 0.0)
        file.rename(away)
        bandit.tell(decision.id, reward=1.0, cost=0.125)
        assert (bandit.is_alone, bandit.spent) == (True, 0.0)
        away.rename(file)
        deadline = time.monotonic() + 30.0
        while bandit.is_alone:
            assert time.monotonic() < deadline
        assert bandit.spent == 0.125


@pytest.mark.slow
def test_operators_calls_raise_the_errors_of_bandit(bandit):
    bandit.pause("video")
    assert bandit.arms["video"] == "paused"
    bandit.resume("video")
    bandit.add("story", max_cost=0.5)
    bandit.set(budget=0.25)
    before = bandit.credited
    for _ in range(2):
        bandit.credit(2.0, key="invoice-7")
    assert bandit.credited == pytest.approx(before + 2.0)
    with pytest.raises(pl.InvalidValue, match="the same amount"):
        bandit.credit(3.0, key="invoice-7")
    assert bandit.arms == dict.fromkeys(("banner", "video", "story"), "active")
    with pytest.raises(pl.UnknownName):
        bandit.pause("nobody")
    with pytest.raises(pl.InvalidValue, match="amount must be a number above 0"):
        bandit.credit(-1.0)
    with pytest.raises(pl.UnknownName, match="arm must be one of"):
        bandit.ask(arms=["nobody"])


@pytest.mark.slow
def test_a_key_gives_the_same_decision(bandit):
    assert bandit.ask(key="request-1") == bandit.ask(key="request-1")


@pytest.mark.slow
def test_many_threads_share_a_connection_each(bandit):
    bandit.credit(1000.0)
    ids, lock = [], threading.Lock()

    def work():
        for _ in range(25):
            decision = bandit.ask()
            if decision.arm is not None:
                bandit.tell(decision.id, reward=0.5, cost=0.1)
            with lock:
                ids.append(decision.id)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bandit.flush(20)
    assert len(set(ids)) == 200
    assert bandit.refused == 0
    assert len(bandit._transport.idle) <= 16


@pytest.mark.slow
def test_a_forked_copy_has_connections_of_its_own(bandit):
    first = bandit.ask()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, json.dumps(bandit.ask().id).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    theirs = json.loads(os.read(read, 1000))
    os.close(read)
    os.close(write)
    assert len({first.id, theirs, bandit.ask().id}) == 3


@pytest.mark.slow
def test_an_unknown_bandit_is_a_mistake_and_not_an_outage(served):
    with pl.connect(served.address, "nobody", deadline=10.0) as bandit, pytest.raises(pl.UnknownName):
        bandit.ask()


@pytest.mark.slow
def test_a_service_that_comes_back_is_found_again(tmp_path):
    with serving(tmp_path) as process:
        port = process.address.rpartition(":")[2]
        bandit = pl.connect(process.address, "ads", deadline=5.0)
        bandit._call("PUT", "", ADS)
        decision = pulled(bandit)
        assert process.stop()[0] == 0
    assert bandit.ask().reason == "service unreachable"
    bandit.tell(decision.id, reward=0.5, cost=0.1)
    assert not bandit.flush(0.3)
    with serving(tmp_path, "--port", port):
        assert bandit.flush(20)
        deadline = time.monotonic() + 20
        while bandit.ask().reason == "service unreachable":
            assert time.monotonic() < deadline
            time.sleep(0.1)
    bandit.close(0.1)


# Without one.


def test_nobody_there_is_sitting_out():
    with pl.connect(NOWHERE, "ads") as bandit:
        for _ in range(5):
            decision = bandit.ask()
            assert (decision.arm, decision.reason) == (None, "service unreachable")
        with pytest.raises(pl.UnknownName, match="a decision with an arm"):
            bandit.tell(decision.id, reward=1.0)
        with pytest.raises(pl.ServiceUnreachable):
            bandit.credit(1.0)


def test_an_answer_that_comes_too_late_is_cancelled():
    def answer(path, body):
        return (0.3, 200, {"decisions": [DECISION]}) if path.endswith("/ask") else (0.0, 200, TAKEN)

    with fake(answer) as (address, seen), pl.connect(address, "ads", deadline=0.05) as bandit:
        began = time.monotonic()
        decision = bandit.ask()
        assert decision.reason == "service unreachable"
        assert time.monotonic() - began < 0.3
        deadline = time.monotonic() + 5
        while len(seen) < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert [(path.rpartition("/")[2], body) for path, body, _ in seen] == [
            ("ask", {}),
            ("cancel", {"items": [{"id": "web-1"}]}),
        ]


def test_with_a_key_a_late_answer_stays_for_whoever_asks_again():
    seconds = iter([0.3, 0.0])

    def answer(path, body):
        return next(seconds), 200, {"decisions": [DECISION]}

    with fake(answer) as (address, seen), pl.connect(address, "ads", deadline=0.05) as bandit:
        assert bandit.ask(key="request-1").reason == "service unreachable"
        time.sleep(0.5)  # the answer has come by now, and must not be cancelled: the same key brings it again
        bandit.deadline = 5.0
        assert bandit.ask(key="request-1").id == "web-1"
        assert bandit.flush(5)
        assert [path.rpartition("/")[2] for path, _, _ in seen] == ["ask", "ask"]


def test_a_decision_that_a_cancelled_coroutine_asked_for_is_cancelled():
    def answer(path, body):
        return (0.2, 200, {"decisions": [DECISION]}) if path.endswith("/ask") else (0.0, 200, TAKEN)

    async def give_up():
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(bandit.aask(), 0.05)
        await asyncio.sleep(0.5)

    with fake(answer) as (address, seen), pl.connect(address, "ads", deadline=5.0) as bandit:
        asyncio.run(give_up())
        assert bandit.flush(5)
        assert [path.rpartition("/")[2] for path, _, _ in seen] == ["ask", "cancel"]


@pytest.mark.parametrize("value", [None, [], {}, {"decisions": []}, {"decisions": [7]}, {"decisions": {}}, "<html>"])
def test_an_answer_that_is_none_is_sitting_out(value):
    with (
        fake(lambda path, body: (0.0, 200, value)) as (address, _),
        pl.connect(address, "ads", deadline=5.0) as bandit,
    ):
        assert bandit.ask()[1:3] == (None, "service unreachable")


@pytest.mark.parametrize("value", [None, [], {}, {"items": 7}, {"items": [{}]}, "<html>"])
def test_news_waits_while_somebody_else_answers(value):
    answers = iter([value])

    def answer(path, body):
        return 0.0, 200, next(answers, TAKEN)

    with fake(answer) as (address, seen), pl.connect(address, "ads") as bandit:
        bandit.tell("web-1", reward=1.0)
        assert bandit.flush(10)
        assert (len(seen), bandit.refused) == (2, 0)


def tell_and_end(address):
    pl.connect(address, "ads").tell("web-1", reward=1.0)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_a_process_of_an_executor_sends_its_news_before_it_ends(how):
    with fake(lambda path, body: (0.1, 200, TAKEN)) as (address, seen):
        process = multiprocessing.get_context(how).Process(target=tell_and_end, args=(address,))
        process.start()
        process.join(60)
        assert process.exitcode == 0
        assert [path.rpartition("/")[2] for path, _, _ in seen] == ["tell"]


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_a_service_that_cannot_is_sitting_out(status):
    with (
        fake(lambda path, body: (0.0, status, {"detail": "not now"})) as (address, _),
        pl.connect(address, "ads", deadline=5.0) as bandit,
    ):
        assert bandit.ask()[1:3] == (None, "service unreachable")


@pytest.mark.parametrize(
    ("status", "kind"), [(401, pl.ServiceRefused), (403, pl.ServiceRefused), (422, pl.InvalidValue)]
)
def test_a_service_that_refuses_says_so(status, kind):
    with (
        fake(lambda path, body: (0.0, status, {"detail": "no, and why"})) as (address, _),
        pl.connect(address, "ads", deadline=5.0) as bandit,
        pytest.raises(kind, match="no, and why"),
    ):
        bandit.ask()


def test_news_is_repeated_until_it_is_taken():
    failures = iter([503, 503])

    def answer(path, body):
        return 0.0, next(failures, 200), {"items": [{"id": 1, "result": "taken"} for _ in body["items"]]}

    with fake(answer) as (address, seen), pl.connect(address, "ads") as bandit:
        bandit.tell("web-1", reward=True, cost={"money": 0.5})
        assert bandit.flush(10)
        assert [body for _, body, _ in seen] == [
            {"items": [{"id": "web-1", "reward": True, "cost": {"money": 0.5}}]}
        ] * 3


def test_news_that_the_service_cannot_take_now_lets_other_news_go_first():
    """A process cannot pass on news of another one while the store is gone; that must not keep it from its own."""
    is_back = threading.Event()

    def answer(path, body):
        if path.endswith("/cancel") and not is_back.is_set():
            return 0.0, 503, {"detail": "the store is gone"}
        return 0.0, 200, {"items": [{"id": item["id"], "result": "taken"} for item in body["items"]]}

    with fake(answer) as (address, seen), pl.connect(address, "ads") as bandit:
        bandit.cancel("other-1")
        bandit.tell("web-1", reward=1.0)
        while len(bandit._outbox.waiting) > 1:
            time.sleep(0.01)
        assert ("/v1/bandits/ads/tell", {"items": [{"id": "web-1", "reward": 1.0}]}) in [one[:2] for one in seen]
        is_back.set()
        assert bandit.flush(10)
        assert seen[-1][1] == {"items": [{"id": "other-1"}]}


def test_a_credit_of_which_nobody_knows_is_repeated_with_the_same_key():
    failures = iter([503, 503])
    with (
        fake(lambda path, body: (0.0, next(failures, 200), {"credited": 2.0})) as (address, seen),
        pl.connect(address, "ads") as bandit,
    ):
        bandit.credit(2.0)
        assert [body for _, body, _ in seen] == [{"amount": 2.0}] * 3
        assert len({headers["Idempotency-Key"] for _, _, headers in seen}) == 1


def test_an_answer_that_stutters_is_not_waited_for_longer_than_any_other(monkeypatch):
    monkeypatch.setattr(client, "READ", 0.3)
    monkeypatch.setattr(client, "AGAIN", 0.1)
    answer = {"decisions": [DECISION]}  # hundreds of letters: half a minute
    with fake(lambda path, body: (0.0, 200, answer), stutters=0.1) as (address, _):
        bandit = pl.connect(address, "ads", deadline=0.3)
        begun = time.monotonic()
        assert bandit.ask().reason == "service unreachable"
        with pytest.raises(pl.ServiceUnreachable, match="within"):
            bandit.credit(1.0)
        assert time.monotonic() - begun < 5.0
        bandit.close(0.0)


def test_a_credit_that_is_tried_again_takes_no_longer_than_one_call_may(monkeypatch):
    monkeypatch.setattr(client, "READ", 1.5)
    monkeypatch.setattr(client, "AGAIN", 1.4)
    waits = iter([1.0, 6.0])
    with fake(lambda path, body: (next(waits), 503, {})) as (address, seen), pl.connect(address, "ads") as bandit:
        begun = time.monotonic()
        with pytest.raises(pl.ServiceUnreachable):
            bandit.credit(2.0)
        assert time.monotonic() - begun < 2.2  # and not 2.6: the second try has what the first has left
        assert len(seen) == 2


def test_one_bad_item_does_not_stop_the_others(caplog):
    def answer(path, body):
        if any(item["id"] == "bad-1" for item in body["items"]):
            return 0.0, 422, {"detail": "what is this"}
        return 0.0, 200, {"items": [{"id": item["id"], "result": "taken"} for item in body["items"]]}

    with fake(answer) as (address, seen), pl.connect(address, "ads") as bandit:
        with bandit._outbox.changed:  # all in one batch
            bandit._outbox.waiting.extend(("/tell", {"id": id}) for id in ("good-1", "bad-1", "good-2"))
        bandit.tell("good-3", reward=1.0)
        assert bandit.flush(10)
        assert bandit.refused == 1
        taken = [item["id"] for _, body, _ in seen for item in body["items"] if len(body["items"]) == 1]
        assert taken == ["good-1", "bad-1", "good-2", "good-3"]


def test_the_queue_is_bounded_and_says_so():
    bandit = pl.connect(NOWHERE, "ads", queue=3)
    for number in range(3):
        bandit.tell(f"web-{number}", reward=1.0)
    with pytest.raises(pl.ServiceUnreachable, match="at most 3"):
        bandit.tell("web-4", reward=1.0)
    bandit.close(0.0)
    with pytest.raises(pl.PacelineError, match="closed"):
        bandit.ask()


def test_the_token_travels_in_a_header_and_nowhere_else(caplog):
    caplog.set_level(logging.DEBUG)
    with (
        fake(lambda path, body: (0.0, 200, {"decisions": [DECISION]})) as (address, seen),
        pl.connect(address, "ads", token="secret-of-the-shop", deadline=5.0) as bandit,
    ):
        assert bandit.ask().arm == "video"
        assert "secret" not in repr(bandit) + caplog.text
    ((path, body, headers),) = seen
    assert headers["Authorization"] == "Bearer secret-of-the-shop"
    assert "secret" not in path + json.dumps(body)


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("ftp://x", {}),
        ("127.0.0.1:8080", {}),
        ("http://user:pass@127.0.0.1", {}),
        ("http://127.0.0.1/?token=x", {}),
        ("http://127.0.0.1", {"deadline": 0}),
        ("http://127.0.0.1", {"queue": 0}),
        ("http://127.0.0.1", {"token": "a\nb"}),
    ],
)
def test_what_cannot_be_is_refused(url, options):
    with pytest.raises(pl.InvalidValue):
        pl.connect(url, "ads", **options)


def test_values_that_json_cannot_hold_are_refused_at_once():
    with pl.connect(NOWHERE, "ads") as bandit:
        for outcome in ({}, {"reward": float("nan")}, {"cost": float("inf")}, {"cost": "free"}):
            with pytest.raises(pl.InvalidValue):
                bandit.tell("web-1", **outcome)
        assert bandit.flush(0)


@pytest.mark.parametrize("closes", [False, True], ids=["here", "there"])
def test_a_connection_that_was_closed_meanwhile_is_made_again(closes):
    with (
        fake(lambda path, body: (0.0, 200, {"decisions": [DECISION]}), closes) as (address, seen),
        pl.connect(address, "ads", deadline=5.0) as bandit,
    ):
        bandit.ask()
        idle = bandit._transport.idle[0].sock
        if closes:
            assert select.select([idle], [], [], 30.0)[0]  # its end is there to be read
        else:
            idle.shutdown(socket.SHUT_RDWR)
        assert bandit.ask().arm == "video"
        assert len(seen) == 2


def test_numbers_of_all_kinds_are_taken_and_what_is_none_is_refused_as_by_a_bandit(bandit):
    for kind in (np.float32, Fraction, Decimal):
        bandit.ask(arms=("banner",), max_cost={"banner": kind(0.125)}, expires=kind(60))
    decision = bandit.ask(arms=["banner"])
    while decision.arm is None:
        decision = bandit.ask(arms=["banner"])
    bandit.tell(decision.id, reward=np.bool_(True), cost=np.float32(0.125))
    assert bandit.flush(10)
    assert bandit.look_up(decision.id).reward == 1.0
    for options in ({"max_cost": float("nan")}, {"expires": {1}}, {"arms": "banner"}, {"key": "a\n"}, {"key": 5}):
        with pytest.raises(pl.InvalidValue):
            bandit.ask(**options)
    with pytest.raises(pl.InvalidValue):
        bandit.observe("banner", reward=None, cost=0.1)
    with pytest.raises(pl.InvalidValue):
        bandit.add(5)
    with pytest.raises(pl.UnknownName):
        bandit.pause(5)


def test_what_a_newer_service_says_besides_is_passed_over(monkeypatch):
    local = pl.Bandit(arms=["a"], budget=1.0)
    here = local.status().to_dict()
    interval = {"mean": 0.5, "low": 0.0, "high": 1.0, "new": 1}
    arm = {"status": "active", "pulls": 1, "reward": interval, "cost": interval, "best_mix": 1.0, "new": 1}
    fleet = {"rounds": 0, "credited": 0.0, "spent": 0.0, "reserved": 0.0, "earned": 0.0, "arms": {"a": arm}, "new": 1}
    for part in (here, here["ages"], here["recent"], here["arms"]["a"]):
        part["new"] = 1
    record = {"state": "pending", "reward": None, "cost": None, "new": 1}
    remote = pl.connect("http://127.0.0.1:1", "ads")
    monkeypatch.setattr(remote, "_call", lambda *_: {"here": here, "fleet": fleet, "record": record, "new": 1})
    assert remote.status() == local.status()._replace(time=here["time"])
    assert remote.estimates()["a"].reward == (0.5, 0.0, 1.0)
    assert remote.look_up("web-1").state == "pending"

"""The service as a client meets it: every operation, and what becomes of money and rounds."""

import asyncio
import gc
import json
import os
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from prometheus_client.parser import text_string_to_metric_families
from service import ADS, rounds, service

from paceline.errors import StoreFailed
from paceline.fleet.member import Member
from paceline.fleet.sqlite import SQLiteStore
from paceline.live.decision import Decision
from paceline.service import decisions, endpoints, openapi, problems
from paceline.service.hosted import Hosted
from paceline.service.operations import OPERATIONS
from paceline.service.wire import Gathering

B = "/v1/bandits/ads"


@pytest.fixture
def client(tmp_path):
    with service(tmp_path) as client:
        assert client.put(B, json=ADS).status_code == 201
        yield client


def ask(client, **body):
    answer = client.post(f"{B}/ask", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["decisions"]


def pull(client):
    """A decision with an arm."""
    while True:
        (decision,) = ask(client)
        if decision["arm"] is not None:
            return decision


def tell(client, *items):
    answer = client.post(f"{B}/tell", json={"items": list(items)})
    assert answer.status_code == 200, answer.text
    return [item["result"] for item in answer.json()["items"]]


def fleet(client):
    client.host.joined["ads"].looked = -10.0  # a new picture
    return client.get(B).json()["fleet"]


def test_making_is_idempotent_and_other_settings_are_a_conflict(client):
    assert client.put(B, json=ADS).json() == {"name": "ads", "made": False}
    other = client.put(B, json={**ADS, "budget": 0.6})
    assert (other.status_code, other.headers["content-type"]) == (409, "application/problem+json")
    assert "budget" in other.json()["detail"]
    assert client.get("/v1/bandits").json() == {"bandits": ["ads"]}


def test_sitting_out_is_an_answer(client):
    decisions = ask(client, count=1, arms=["video"])
    assert [decision["arm"] for decision in decisions] == [None]
    assert re.fullmatch(r"headroom 0.5 < largest cost 1.*", decisions[0]["reason"])


def test_the_state_adds_up(client):
    for _ in range(30):
        decision = pull(client)
        tell(client, {"id": decision["id"], "reward": 0.5, "cost": 0.1})
    open_ones = [pull(client)["id"] for _ in range(3)]
    state = fleet(client)
    assert state["spent"] == pytest.approx(3.0)
    assert state["credited"] == pytest.approx(state["spent"] + state["reserved"] + state["headroom"])
    assert state["earned"] == pytest.approx(15.0)
    assert sum(arm["pulls"] for arm in state["arms"].values()) >= 30
    assert client.get(B).json()["here"]["pending"] == len(open_ones)


def test_who_looks_while_another_look_begins_is_answered(client, monkeypatch):
    """Both wait for one look; one of them needs a later one, and begins it before the other has had its turn."""
    hosted = client.host.joined["ads"]
    client.get(B)
    begun, may_end, picture = threading.Event(), threading.Event(), hosted.picture
    monkeypatch.setattr(hosted, "picture", lambda: (begun.set(), may_end.wait(20), picture())[2])

    async def look_all_at_once():
        hosted.happened += 1
        looks = [asyncio.create_task(hosted.show())]
        while not begun.is_set():
            await asyncio.sleep(0.01)
        hosted.happened += 1
        looks += [asyncio.create_task(each) for each in (hosted.show(), hosted.look(0.0))]
        await asyncio.sleep(0)
        may_end.set()
        await asyncio.gather(*looks)

    client.portal.call(look_all_at_once)
    assert hosted.shown == hosted.happened


def test_what_has_happened_is_shown_at_once(client):
    for number in range(1, 6):
        pulled = ask(client, arms=["banner"])
        shown = client.get(B).json()
        assert (shown["fleet"]["rounds"], shown["here"]["rounds"]) == (number, number)
        tell(client, *({"id": each["id"], "reward": 1.0, "cost": 0.1} for each in pulled))
        assert client.get(B).json()["here"]["pending"] == 0


def test_each_item_of_news_has_a_result_of_its_own(client):
    one, two = pull(client)["id"], pull(client)["id"]
    assert tell(client, {"id": one, "cost": 0.1}) == ["taken"]
    assert tell(client, {"id": one, "cost": 0.1}) == ["known"]
    assert tell(client, {"id": one, "reward": True, "cost": 0.1}, {"id": one, "reward": 1.0}) == ["taken", "known"]
    assert tell(client, {"id": one, "cost": 0.15}, {"id": two, "cost": 9.0}, {"id": two}) == [
        "conflict",
        "refused",
        "refused",
    ]
    unknown = f"{one.rpartition('-')[0]}-999"
    assert tell(client, {"id": unknown, "reward": 1.0}, {"id": 12, "reward": 1.0}) == ["unknown", "unknown"]
    cancelled = [client.post(f"{B}/cancel", json={"items": [{"id": two}]}).json()["items"][0] for _ in range(2)]
    assert [item["result"] for item in cancelled] == ["taken", "known"]
    assert client.post(f"{B}/cancel", json={"items": [{"id": one}]}).json()["items"][0]["result"] == "conflict"
    three = pull(client)["id"]
    expired = [client.post(f"{B}/expire", json={"items": [{"id": three}]}).json()["items"][0] for _ in range(2)]
    assert [item["result"] for item in expired] == ["taken", "known"]


def test_observing_teaches_and_costs_nothing(client):
    items = [{"arm": "video", "reward": 0.5, "cost": 0.25}, {"arm": "nobody", "reward": 1, "cost": 0}]
    answer = client.post(f"{B}/observe", json={"items": items}).json()["items"]
    assert [item["result"] for item in answer] == ["taken", "unknown"]
    state = fleet(client)
    assert (state["spent"], state["rounds"], state["arms"]["video"]["reward"]["mean"]) == (0.0, 0, 0.5)


def test_a_step_tells_first_and_then_asks(client):
    one = pull(client)
    answer = client.post(
        f"{B}/step", json={"tells": [{"id": one["id"], "reward": 1, "cost": 0.1}], "asks": {"count": 3}}
    ).json()
    assert [item["result"] for item in answer["items"]] == ["taken"]
    assert len(answer["decisions"]) == 3
    assert client.post(f"{B}/step", json={}).json() == {"items": [], "decisions": []}


@pytest.mark.parametrize("asks", [{"arms": ["nobody"]}, {"max_cost": {"nobody": 0.1}}, {"max_cost": 1e9}])
def test_a_step_whose_asks_are_refused_tells_nothing(client, asks):
    one = pull(client)
    tells = [{"id": one["id"], "reward": 1, "cost": 0.1}]
    assert client.post(f"{B}/step", json={"tells": tells, "asks": asks}).status_code in (404, 422)
    assert tell(client, *tells) == ["taken"]


# Requests that come twice.


def test_the_same_key_gives_the_same_decisions_and_no_new_round(client):
    key = {"Idempotency-Key": "request-1"}
    first = client.post(f"{B}/ask", json={"count": 3}, headers=key).json()
    before = rounds(client)
    assert client.post(f"{B}/ask", json={"count": 3}, headers=key).json() == first
    assert rounds(client) == before == 3
    other = client.post(f"{B}/ask", json={"count": 2}, headers=key)
    assert (other.status_code, rounds(client)) == (422, 3)
    assert client.post(f"{B}/ask", json={}, headers={"Idempotency-Key": "request-2"}).json() != first


def test_the_same_body_in_another_order_is_the_same_request(client):
    key = {"Idempotency-Key": "request-1", "Content-Type": "application/json"}
    bodies = (
        b'{"expires": 60, "max_cost": {"banner": 0.1, "video": 0.5}}',
        b'{"max_cost": {"video": 0.5, "banner": 0.1}, "expires": 60}',
    )
    first, second = (client.post(f"{B}/ask", content=body, headers=key) for body in bodies)
    assert (first.status_code, second.json()) == (200, first.json())
    assert rounds(client) == 1


def test_the_same_key_gives_the_same_decisions_in_another_process(client, tmp_path):
    key = {"Idempotency-Key": "request-1"}
    first = client.post(f"{B}/ask", json={"count": 2}, headers=key).json()
    with service(tmp_path, worker="web-2") as other:
        assert other.post(f"{B}/ask", json={"count": 2}, headers=key).json() == first
        assert rounds(other) == 0


def test_the_slower_of_two_processes_takes_its_decisions_back(client, tmp_path, monkeypatch):
    monkeypatch.setattr(client.host.store, "kept_answer", lambda fleet, key: None)  # each is asked before either kept
    with service(tmp_path, worker="web-2") as other:
        key = {"Idempotency-Key": "request-1"}
        first = other.post(f"{B}/ask", json={"count": 4}, headers=key).json()
        assert client.post(f"{B}/ask", json={"count": 4}, headers=key).json() == first
    member = client.host.joined["ads"].member
    assert (member.rounds, member.status().pending, member.reserved) == (4, 0, 0.0)


def test_an_answer_that_the_store_may_have_kept_is_not_taken_back(client, monkeypatch):
    store, key = client.host.store, {"Idempotency-Key": "k"}
    answer = store.answer

    def kept_and_failed(*arguments):
        answer(*arguments)
        raise StoreFailed("the connection broke before the store could say so")

    monkeypatch.setattr(store, "answer", kept_and_failed)
    assert client.post(f"{B}/ask", json={"count": 3}, headers=key).status_code == 503
    monkeypatch.setattr(store, "answer", answer)
    first = client.post(f"{B}/ask", json={"count": 3}, headers=key).json()
    assert first["decisions"] == store.kept_answer("ads", "k")["decisions"]
    pulls = [decision["id"] for decision in first["decisions"] if decision["arm"]]
    assert rounds(client) == 3
    assert sorted(client.host.joined["ads"].member.pending) == sorted(pulls)
    assert client.post(f"{B}/ask", json={"count": 3}, headers=key).json() == first


def test_a_request_waits_once_for_all_that_it_needs(tmp_path, monkeypatch):
    monkeypatch.setattr("paceline.service.app.STORE_PATIENCE", 1.0)
    with service(tmp_path) as client:
        make, join = client.host.store.make, client.host.join
        monkeypatch.setattr(client.host.store, "make", lambda *given: time.sleep(0.7) or make(*given))
        monkeypatch.setattr(client.host, "join", lambda name: time.sleep(0.7) or join(name))
        begun = time.monotonic()
        answer = client.put(B, json=ADS)
        assert (answer.status_code, answer.json()["detail"]) == (503, "the service must be done within 1 seconds")
        assert time.monotonic() - begun < 1.35  # and not 1.4, when both are done
        assert client.put(B, json=ADS).status_code == 200


def test_an_act_that_has_happened_is_not_held_up_by_a_store_that_hangs_afterwards(client, monkeypatch):
    member = client.host.joined["ads"].member
    over = threading.Event()
    monkeypatch.setattr(type(member), "sync", lambda self: over.wait(8.0))
    monkeypatch.setattr("paceline.service.hosted.LOOK_PATIENCE", 0.2)
    begun = time.monotonic()
    try:
        assert client.post(f"{B}/credit", json={"amount": 1.0}).status_code == 200
        assert time.monotonic() - begun < 4.0
    finally:
        over.set()
        monkeypatch.undo()


def test_bandits_are_open_before_a_service_is_ready(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("paceline.service.host.MOST_WARM", 3)
    with service(tmp_path) as client:
        host = client.host
        for name in ("a", "b", "c", "d"):
            host.store.make(name, ADS, "test")
        real, go_on = host.join, threading.Event()

        def join(name):
            assert go_on.wait(10)
            if name == "b":
                raise StoreFailed("no room")
            return real(name)

        monkeypatch.setattr(host, "join", join)
        assert client.get("/readyz").status_code == 200
        warming = client.portal.start_task_soon(host.warm_up)
        while not host.joining:
            time.sleep(0.01)
        answer = client.get("/readyz")
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
        assert "opens its bandits" in answer.json()["detail"]
        go_on.set()
        warming.result(10)
        assert client.get("/readyz").status_code == 200
        assert list(host.joined) == ["a", "c"]  # the fourth waits for a request
        assert "bandit b: not opened at the start: StoreFailed: no room" in caplog.text


def test_a_service_that_opens_bandits_for_long_is_ready_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr("paceline.service.host.WARM_PATIENCE", 0.1)
    with service(tmp_path) as client:
        client.host.store.make("ads", ADS, "test")
        real, go_on = client.host.join, threading.Event()
        monkeypatch.setattr(client.host, "join", lambda name: real(name) if go_on.wait(10) else None)
        warming = client.portal.start_task_soon(client.host.warm_up)
        while client.get("/readyz").status_code == 503 or not client.host.joining:
            time.sleep(0.01)
        assert not warming.done()
        go_on.set()
        warming.result(10)
        assert list(client.host.joined) == ["ads"]


def test_a_bandit_that_cannot_be_opened_after_all_leaves_no_traceback(tmp_path, monkeypatch, caplog):
    """Nobody waits for it any more by then, and why is in the log of whoever asks next."""
    with service(tmp_path) as client:
        client.host.store.make("ads", ADS, "test")
        over = threading.Event()

        def fail(_name):
            over.wait(10)
            raise StoreFailed("the store cannot be used: it hangs")

        monkeypatch.setattr(client.host, "join", fail)
        monkeypatch.setattr("paceline.service.host.STORE_PATIENCE", 0.1)
        assert client.post(f"{B}/ask", json={}).status_code == 503
        over.set()
        while client.host.joining:
            time.sleep(0.01)
        gc.collect()
        assert client.get("/healthz").status_code == 200
    assert "never retrieved" not in caplog.text
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.slow
def test_a_bandit_that_takes_long_to_open_is_not_lost(tmp_path, monkeypatch):
    with service(tmp_path) as client:
        client.host.store.make("ads", ADS, "test")
        real, begun = client.host.join, []

        def slowly(name):
            begun.append(name)
            time.sleep(0.5)
            return real(name)

        monkeypatch.setattr(client.host, "join", slowly)
        monkeypatch.setattr("paceline.service.host.STORE_PATIENCE", 0.1)
        assert [client.post(f"{B}/ask", json={}).status_code for _ in range(2)] == [503, 503]
        end = time.monotonic() + 20
        while client.post(f"{B}/ask", json={}).status_code == 503:
            assert time.monotonic() < end
        assert begun == ["ads"]
        assert len(client.host.store.workers("ads")) == 1


@pytest.mark.parametrize("verb", ["tell", "cancel", "expire", "step"])
def test_news_of_another_process_is_in_the_store_before_it_is_acknowledged(client, tmp_path, monkeypatch, verb):
    """So no kill can lose it. If the store does not take it, that is a 503, and the rest of the request is done."""
    with service(tmp_path, worker="web-2") as other:
        other.get(B)
        theirs, ours = pull(client), pull(other)
        news = [{"id": one["id"], **({"cost": 0.1} if verb in ("tell", "step") else {})} for one in (ours, theirs)]
        body = {"tells": news} if verb == "step" else {"items": news}
        send = SQLiteStore.send
        monkeypatch.setattr(SQLiteStore, "send", gone)
        assert other.post(f"{B}/{verb}", json=body).status_code == 503
        assert other.host.joined["ads"].member.reserved == 0.0
        monkeypatch.setattr(SQLiteStore, "send", send)
        items = other.post(f"{B}/{verb}", json=body).json()["items"]
        assert [item["result"] for item in items] == ["known", "taken"]
        assert not other.host.joined["ads"].member.has_unsent
        other.host.joined["ads"].member.close = lambda: None  # as after a kill
        client.host.joined["ads"].member.sync()
        assert client.host.joined["ads"].member.reserved == 0.0


def gone(*_):
    raise StoreFailed("the store has gone")


def test_news_of_another_process_is_not_answered_at_once(client):
    """The short way waits for nothing, so that it leaves such a request as it is to the usual one."""
    client.get("/v1/whoami")  # the tokens are known
    ours, headers = pull(client)["id"], [(b"host", b"localhost"), (b"content-type", b"application/json")]
    at_once = client.app.prompt(b"POST", f"{B}/tell".encode())
    theirs = ours.replace("web-1", "web-2")
    for items, is_answered in (([ours, theirs], False), ([theirs], False), ([ours], True), ([ours], True)):
        answer = at_once(headers, json.dumps({"items": [{"id": id, "cost": 0.1} for id in items]}).encode())
        assert (answer is not None) == is_answered
    assert json.loads(answer.body) == {"items": [{"id": ours, "result": "known"}]}


def test_requests_with_one_key_at_the_same_time_are_one_request(client):
    def once(_):
        return client.post(f"{B}/ask", json={"count": 2}, headers={"Idempotency-Key": "k"}).json()

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(once, range(16)))
    assert all(answer == answers[0] for answer in answers)
    assert rounds(client) == 2


def test_a_credit_with_a_key_comes_in_once(client, caplog):
    caplog.set_level("INFO", "paceline.service")
    for _ in range(3):
        assert client.post(f"{B}/credit", json={"amount": 5}, headers={"Idempotency-Key": "k"}).status_code == 200
    answer = client.post(f"{B}/credit", json={"amount": 6}, headers={"Idempotency-Key": "k"})
    assert answer.status_code == 422, "nothing comes in, and nobody is told that it did"
    assert "the same amount" in answer.json()["detail"]
    assert fleet(client)["credited"] == pytest.approx(5.0)
    assert len(client.get(f"{B}/acts").json()["acts"]) == 2  # made, credited
    assert caplog.text.count("{'credit': 5}") == 1
    pool = fleet(client)["pool"]
    assert pool > 0.0
    assert f'paceline_pool{{bandit="ads",resource="cost"}} {pool!r}\n' in client.get("/metrics").text


# Operators.


def test_what_operators_do_is_done_and_logged(client, caplog):
    caplog.set_level("INFO", "paceline.service")
    assert client.patch(f"{B}/arms/video", json={"status": "paused"}).json() == {"arm": "video", "status": "paused"}
    assert {decision["arm"] for decision in ask(client, count=50)} <= {"banner", None}
    assert client.patch(f"{B}/arms/video", json={"status": "active"}).status_code == 200
    assert client.post(f"{B}/arms/story", json={"max_cost": 0.5}).status_code == 201
    assert client.patch(B, json={"budget": 0.25, "expires": 60}).status_code == 200
    state = fleet(client)
    assert {name: arm["status"] for name, arm in state["arms"].items()} == dict.fromkeys(
        ("banner", "video", "story"), "active"
    )
    acts = client.get(f"{B}/acts").json()["acts"]
    assert [(act["by"], *act["what"]) for act in acts] == [
        ("local", "make"),
        ("local", "pause"),
        ("local", "resume"),
        ("local", "add"),
        ("local", "set"),
    ]
    assert client.get(f"{B}/acts?after=4").json()["acts"] == acts[4:]
    assert sum("operator local" in record.message for record in caplog.records) == 4


def test_an_arm_that_is_not_there_cannot_be_paused(client):
    answer = client.patch(f"{B}/arms/nobody", json={"status": "paused"})
    assert (answer.status_code, answer.json()["status"]) == (404, 404)


# Why, and what happened.


def test_a_decision_can_be_explained(client):
    pulled = pull(client)
    tell(client, {"id": pulled["id"], "reward": 0.5, "cost": 0.1})
    why = client.get(f"{B}/decisions/{pulled['id']}").json()
    assert (why["arm"], why["reason"], why["by"]) == (pulled["arm"], pulled["reason"], "local")
    assert (why["record"]["state"], why["record"]["reward"], why["news"][0]["result"]) == ("told", 0.5, "taken")
    assert client.get(f"{B}/decisions/web-1-999").status_code == 404


def test_a_decision_that_was_refused_says_what_was_missing(client):
    (decision,) = ask(client, arms=["video"])
    why = client.get(f"{B}/decisions/{decision['id']}").json()
    assert (why["arm"], why["short"], why["largest_cost"]) == (None, 0.5, 1.0)


def test_events_have_numbers_and_can_be_read_on(client):
    ask(client, count=5)
    first = client.get(f"{B}/events?count=3").json()
    assert ([event["number"] for event in first["events"]], first["last"]) == ([3, 4, 5], 5)
    tell(client, {"id": first["events"][0]["id"], "reward": 1.0})
    (event,) = client.get(f"{B}/events?after=5").json()["events"]
    assert (event["number"], event["event"]) == (6, "tell")


# The process.


def test_health_readiness_and_metrics(client):
    ask(client, count=3)
    assert (client.get("/healthz").text, client.get("/readyz").text) == ("ok\n", "ready\n")
    families = {family.name: family for family in text_string_to_metric_families(client.get("/metrics").text)}
    (sample,) = families["paceline_rounds"].samples
    assert (sample.labels, sample.value) == ({"bandit": "ads"}, 3.0)
    counted = {tuple(s.labels.values()): s.value for s in families["paceline_http_requests"].samples}
    assert counted["ask", "200"] == 1.0
    assert "paceline_http_request_seconds" in families


def test_without_the_store_decisions_go_on_and_the_rest_waits(client, monkeypatch):
    one = pull(client)
    client.get(B)

    def gone(*_arguments):
        raise StoreFailed("the store cannot be reached")

    monkeypatch.setattr(type(client.host.store), "_do", gone)
    assert tell(client, {"id": one["id"], "reward": 1.0, "cost": 0.1}) == ["taken"]
    assert len(ask(client, count=10)) == 10
    ready = client.get("/readyz")
    assert (ready.status_code, ready.headers["retry-after"]) == (503, "1")
    assert client.get("/healthz").status_code == 200
    before = rounds(client)
    for method, path, body in (
        ("POST", "/credit", {"amount": 1}),
        ("PATCH", "", {"budget": 0.1}),
        ("PATCH", "/arms/video", {"status": "paused"}),
        ("POST", "/arms/story", {}),
    ):
        answer = client.request(method, B + path, json=body)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    keyed = client.post(f"{B}/ask", json={}, headers={"Idempotency-Key": "k"})
    assert (keyed.status_code, rounds(client)) == (503, before)
    assert client.get("/v1/bandits").json() == {"bandits": ["ads"]}
    client.host.joined["ads"].looked = -10.0
    assert client.get(B).json()["store"] == {"reachable": False}
    assert client.get("/v1/bandits/other").status_code == 503


def test_an_outage_is_not_logged_for_every_request(caplog, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(problems, "time", SimpleNamespace(monotonic=lambda: now[0]))
    outage = problems.Outage()
    for why, after in (("gone", 0), ("gone", 1), ("gone", 8), ("gone", 1), ("full", 0), ("full", 20)):
        now[0] += after
        outage.say(why)
    said = [record.getMessage().removeprefix("a request cannot be answered now: ") for record in caplog.records]
    assert said == ["gone", "gone (so it was with 2 before)", "full", "full"]


def test_before_the_first_picture_a_store_that_is_gone_is_said_so(client, monkeypatch):
    def gone(*_arguments):
        raise StoreFailed("the store cannot be reached")

    monkeypatch.setattr(type(client.host.store), "_do", gone)
    for path in ("", "/workers", "/history", "/stream"):
        answer = client.get(B + path)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1"), path


def test_too_many_decisions_that_wait_are_refused(client, monkeypatch):
    monkeypatch.setattr("paceline.service.hosted.MOST_PENDING", 10)
    client.post(f"{B}/credit", json={"amount": 100})
    ids = [decision["id"] for decision in ask(client, count=10)]
    answer = client.post(f"{B}/ask", json={})
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
    client.post(f"{B}/cancel", json={"items": [{"id": ids[0]}]})
    assert client.post(f"{B}/ask", json={}).status_code == 200


def test_too_many_decisions_that_wait_are_refused_without_the_store_as_well(client, monkeypatch):
    monkeypatch.setattr("paceline.service.hosted.MOST_PENDING", 10)
    client.post(f"{B}/credit", json={"amount": 100})
    client.get(B)

    def gone(*_arguments):
        raise StoreFailed("the store cannot be reached")

    monkeypatch.setattr(type(client.host.store), "_do", gone)
    for _ in range(10):
        ask(client)
        assert client.get(B).json()["store"] == {"reachable": False}
    assert client.get(B).json()["here"]["pending"] == 10
    assert client.post(f"{B}/ask", json={}).status_code == 429


def test_looking_through_all_decisions_holds_up_no_other_request(client, monkeypatch):
    pull(client)
    client.get(B)
    threads = []

    def noted(look):
        return lambda member: threads.append(threading.get_ident()) or look(member)

    monkeypatch.setattr(Member, "status", noted(Member.status))
    monkeypatch.setattr(Member, "pending", property(noted(Member.pending.fget)))
    monkeypatch.setattr(type(client.host.store), "_do", Mock(side_effect=StoreFailed("gone")))
    pull(client)
    assert client.get(B).json()["store"] == {"reachable": False}
    assert len(client.get(f"{B}/decisions").json()["pending"]) == 2
    serving = client.portal.call(threading.get_ident)
    assert len(threads) >= 2
    assert serving not in threads


def test_the_last_decisions_are_known_and_those_long_before_are_forgotten(monkeypatch):
    monkeypatch.setattr(decisions, "LOGGED", 10)
    log = decisions.DecisionLog()
    for id in range(1, 101):
        log.asked([Decision(id, "video", "due")], 1.0, 0.0, "me")
        assert all(log.why(each) is not None for each in range(max(id - 9, 1), id + 1))
        assert log.why(id - 20) is None
        log.told(decisions.TELL, 0.0, [{"id": max(id - 9, 1)}], ["taken"])
    assert [news["result"] for news in log.why(91)["news"]] == ["taken"]


def test_a_process_hosts_so_many_bandits_and_no_more(client, monkeypatch):
    monkeypatch.setattr("paceline.service.host.MOST_BANDITS", 1)
    assert client.put("/v1/bandits/other", json=ADS).status_code == 429
    assert client.get("/v1/bandits").json() == {"bandits": ["ads"]}
    assert client.post(f"{B}/ask", json={}).status_code == 200


def test_every_operation_is_in_the_document_and_has_a_route(client):
    document = client.get("/openapi.json").json()
    assert document == openapi.DOCUMENT
    assert document["openapi"].startswith("3.1")
    listed = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert listed == {(operation.method, operation.path.replace(":path", "")) for operation in OPERATIONS}
    for operation in OPERATIONS:
        assert callable(getattr(endpoints, operation.endpoint))


def test_the_page_is_there_and_cached_by_its_content(client):
    page = client.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    for name in re.findall(r'(?:src|href)="(page/[^"]+)"', page.text):
        answer = client.get("/" + name)
        assert answer.status_code == 200
        again = client.get("/" + name, headers={"If-None-Match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
    assert client.get("/page/nothing.js").status_code == 404


def test_where_the_store_is_stays_in_the_log(client, monkeypatch, caplog):
    def gone(*_arguments):
        raise StoreFailed("password authentication failed for user ads at db.internal")

    monkeypatch.setattr(type(client.host.store), "_do", gone)
    answer = client.post(f"{B}/credit", json={"amount": 1})
    assert (answer.status_code, answer.json()["detail"]) == (
        503,
        "the store cannot take it now; the log of the service says why",
    )
    assert "db.internal" in caplog.text


def test_it_is_not_ready_while_the_store_takes_nothing(client, monkeypatch):
    """A store that can be read, and not written to: a disk that is full."""

    def full(*_arguments):
        raise StoreFailed("database or disk is full")

    assert client.get("/readyz").status_code == 200
    with monkeypatch.context() as patch:
        patch.setattr(client.host.store, "sync", full)
        client.host.joined["ads"].looked = -10.0
        client.get(B)
        assert client.get("/readyz").status_code == 503
    client.host.joined["ads"].member.sync()
    assert client.get("/readyz").status_code == 200


def test_a_journal_that_has_failed_is_opened_again(tmp_path):
    """The disk is full, and some time later it is not: the same worker goes on, and has forgotten nothing."""
    with service(tmp_path, journal_dir=tmp_path) as client:
        client.put(B, json=ADS)
        first = pull(client)
        member = client.host.joined["ads"].member
        full = os.open("/dev/full", os.O_WRONLY)
        os.dup2(full, member._journal._file)
        os.close(full)
        before = member.rounds
        refused = client.post(f"{B}/ask", json={})
        assert (refused.status_code, str(tmp_path) in refused.text) == (503, False)
        assert tell(client, {"id": first["id"], "reward": 1.0, "cost": 0.1}) == ["taken"]
        again = client.host.joined["ads"].member
        assert again is not member
        assert (again.rounds, again.reserved, again.spent) == (before, 0.0, pytest.approx(0.1))
        assert again._standing.life == member._standing.life
        client.host.let_go("ads")  # as a request would that was with the first one all the time
        assert client.host.joined["ads"].member is again


def test_metrics_leave_out_a_bandit_that_was_cut_short(tmp_path):
    with service(tmp_path, journal_dir=tmp_path) as client:
        client.put(B, json=ADS)
        pull(client)
        assert 'bandit="ads"' in client.get("/metrics").text
        member = client.host.joined["ads"].member
        member._stopped = "cut short"
        shown = client.get("/metrics")
        assert (shown.status_code, 'bandit="ads"' in shown.text) == (200, False)


def test_a_failure_in_the_middle_of_a_batch_gives_nobody_half_of_it(client, monkeypatch):
    member = client.host.joined["ads"].member
    client.post(f"{B}/credit", json={"amount": 100})
    real, calls = member.ask, []

    def failing(**options):
        calls.append(1)
        if len(calls) == 4:
            raise StoreFailed("no more")
        return real(**options)

    monkeypatch.setattr(member, "ask", failing)
    assert client.post(f"{B}/ask", json={"count": 10}).status_code == 503
    assert (len(calls), member.status().pending, member.reserved) == (4, 0, 0.0)


def test_a_mistake_of_ours_is_logged_and_not_shown(client, monkeypatch, caplog):
    def mistaken(self, body, by):
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(Hosted, "ask", mistaken)
    answer = client.post(f"{B}/ask", json={})
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert "secret detail" in caplog.text


class Wire:
    """The transport of a connection, which counts."""

    def __init__(self):
        self.written, self.is_closed = [], False

    def write(self, data):
        assert not self.is_closed
        self.written.append(data)

    def close(self):
        self.is_closed = True

    def is_closing(self):
        return self.is_closed


def test_what_is_written_in_one_turn_goes_out_at_once():
    async def talk():
        wire = Wire()
        gathering = Gathering(wire, asyncio.get_running_loop(), is_sending=lambda: False)
        gathering.write(b"head")
        gathering.write(b"body")
        assert wire.written == []
        await asyncio.sleep(0)
        gathering.write(b"last ")
        gathering.write(b"words")
        assert not gathering.is_closing()
        gathering.close()
        await asyncio.sleep(0)
        return wire.written, wire.is_closed

    assert asyncio.run(talk()) == ([b"headbody", b"last words"], True)

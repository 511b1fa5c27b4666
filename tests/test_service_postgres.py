"""The service on a real PostgreSQL server: one budget over processes, and what goes on while the server is gone."""

import secrets
import threading
import time

import pytest
from asking import request
from service import ADS, Process

from paceline.errors import StoreFailed
from paceline.fleet.store import open_store

pytestmark = pytest.mark.database
B = "/v1/bandits/ads"


def until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.2)


def test_decisions_go_on_while_the_store_is_gone_and_it_is_found_again(postgres):
    store = postgres.empty_database(f"service_{secrets.token_hex(4)}")
    token = "t" * 32
    with Process("--store", store, "--port", 0, env={"PACELINE_TOKEN": token}) as process:

        def ask(path, body=None, method=None):
            return request(process.address, path, body, method, token)

        assert ask(B, ADS, "PUT")[0] == 201
        assert ask(f"{B}/ask", {"count": 20})[0] == 200
        assert ask(B)[1]["fleet"]["rounds"] == 20
        postgres.stop("immediate")
        try:
            status, answer = ask(f"{B}/ask", {"count": 20})
            assert (status, len(answer["decisions"])) == (200, 20)
            news = [{"id": each["id"], "reward": 1, "cost": 0.1} for each in answer["decisions"] if each["arm"]]
            assert {item["result"] for item in ask(f"{B}/tell", {"items": news})[1]["items"]} <= {"taken"}
            assert ask("/readyz")[0] == 503
            assert ask("/healthz")[0] == 200
            assert ask(f"{B}/credit", {"amount": 1})[0] == 503
            until(lambda: ask(B)[1]["store"] == {"reachable": False})
            assert ask("/v1/whoami")[1]["role"] == "operator"
        finally:
            postgres.start()
        until(lambda: ask("/readyz")[0] == 200)
        until(lambda: ask(B)[1]["fleet"]["rounds"] == 40)
        fleet = ask(B)[1]["fleet"]
        assert fleet["spent"] == pytest.approx(0.1 * len(news))
        assert fleet["spent"] + fleet["reserved"] <= fleet["credited"] + 1e-9
        code, _, err = process.stop()
        assert (code, "Traceback" in err) == (0, False)


def test_a_server_that_hangs_holds_nobody_up(postgres):
    """It takes what is said to it, and never answers: whoever only looks is told soon, and decisions go on."""
    store = postgres.empty_database(f"service_{secrets.token_hex(4)}")
    with Process("--store", store, "--port", 0) as process:

        def timed(path, body=None, method=None):
            began = time.monotonic()
            status, answer = request(process.address, path, body, method)
            return status, answer, time.monotonic() - began

        assert timed(B, ADS, "PUT")[0] == 201
        assert timed(f"{B}/ask", {"count": 20})[0] == 200
        assert timed(B)[1]["fleet"]["rounds"] == 20
        postgres.freeze()
        try:
            for turn in range(8):  # more than there are threads
                status, answer, took = timed(f"{B}/ask", {"count": 20})
                assert (status, len(answer["decisions"]), took < 4) == (200, 20, True), took
                status, _, took = timed("/readyz")
                assert (status, took < 4) == (503, True), took
                status, answer, took = timed(B)
                assert (status, answer["store"], took < 4) == (200, {"reachable": False}, True), took
                assert answer["here"]["rounds"] == 20 * (turn + 2)
                for path in ("/v1/bandits", f"{B}/workers", f"{B}/history", "/metrics", "/healthz"):
                    status, _, took = timed(path)
                    assert (status, took < 4) == (200, True), (path, took)
                status, _, took = timed(f"{B}/acts")
                assert (status, took < 4) == (503, True), took
            status, _, took = timed(f"{B}/credit", {"amount": 1})
            assert (status, took < 20) == (503, True), took
        finally:
            postgres.thaw()
        until(lambda: timed("/readyz")[0] == 200)
        until(lambda: timed(B)[1]["fleet"]["rounds"] == 180)
        code, _, err = process.stop()
        assert (code, "Traceback" in err, "never retrieved" in err) == (0, False, False), err


def test_a_store_gives_up_on_a_server_that_hangs(postgres):
    store = open_store(postgres.empty_database(f"hangs_{secrets.token_hex(4)}"))
    assert store.fleets() == []
    failed = []

    def look():
        for _ in range(2):  # with the connection that there was, and with none
            try:
                store.fleets()
            except StoreFailed as error:
                failed.append(error)

    looking = threading.Thread(target=look, daemon=True)  # it may never come back
    postgres.freeze()
    try:
        looking.start()
        looking.join(30)
        assert (looking.is_alive(), len(failed)) == (False, 2)
    finally:
        postgres.thaw()
    assert store.fleets() == []
    store.close()


def test_a_commit_that_nobody_heard_of_is_not_repeated(postgres, monkeypatch):
    """The server hangs when it is to commit, and does so when it goes on: by then the store has given up."""
    monkeypatch.setattr("paceline.fleet.postgres.MOST_SECONDS", 1.0)
    store = open_store(postgres.empty_database(f"commit_{secrets.token_hex(4)}"))
    store.make("ads", ADS, by="me")
    commit, disconnect = store._commit, store._disconnect

    def freeze(*given):
        monkeypatch.setattr(store, "_commit", commit)
        postgres.freeze()
        return commit(*given)

    def thaw():
        postgres.thaw()
        disconnect()

    monkeypatch.setattr(store, "_commit", freeze)
    monkeypatch.setattr(store, "_disconnect", thaw)
    try:
        with pytest.raises(StoreFailed, match="has not answered within 1 seconds"):
            store.note("ads", "me", {"said": "once"})
    finally:
        postgres.thaw()
    acts = []
    until(lambda: acts.extend(store.acts("ads", len(acts))) or len(acts) > 1)
    store.note("ads", "me", {"said": "later"})
    assert [act.what for act in [*acts, *store.acts("ads", len(acts))]][1:] == [{"said": "once"}, {"said": "later"}]
    store.close()

"""The service on a real PostgreSQL server: one budget over processes, and what goes on while the server is gone."""

import secrets
import time

import pytest
from asking import request
from service import ADS, Process

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

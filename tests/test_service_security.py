"""What must be refused is refused in one problem document, and changes nothing."""

import asyncio
import hmac
import json
import time
from types import SimpleNamespace
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from service import ADS, LOCAL, rounds, service

from paceline.errors import StoreFailed
from paceline.service import encoding, tokens
from paceline.service.limits import LARGEST_BODY, MOST_ITEMS
from paceline.service.operations import OPERATIONS
from paceline.service.tokens import ROLES

pytestmark = pytest.mark.slow

B = "/v1/bandits/ads"
NAMES = {"{bandit}": "ads", "{arm:path}": "video", "{id}": "web-1-1", "{worker}": "web-9"}
GUARDED = [operation for operation in OPERATIONS if operation.role is not None]


def address(operation):
    path = operation.path
    for part, name in NAMES.items():
        path = path.replace(part, name)
    return path


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """Where nobody needs a token. What is refused changes nothing, so one will do."""
    with service(tmp_path_factory.mktemp("open")) as client:
        client.put(B, json=ADS)
        client.post(f"{B}/ask", json={"count": 3})
        yield client


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """Where tokens are needed; ``client.tokens`` has one of each role."""
    client_of_its_own = tmp_path_factory.mktemp("guarded")
    with service(client_of_its_own) as client:
        client.folder = client_of_its_own
        store = client.host.store
        client.tokens = {role: tokens.add_token(store, f"a-{role}", role) for role in ROLES}
        client.put(B, json=ADS, headers=bearer(client, "operator"))
        yield client


def bearer(client, role):
    return {"Authorization": f"Bearer {client.tokens[role]}"}


def books(client):
    """All that a refused request must leave as it was."""
    member, store = client.host.joined["ads"].member, client.host.store
    return member.status()._replace(time=0, ages=None), member.arms, store.acts("ads"), store.fleets(), store.tokens()


def problem(answer, *statuses):
    """The one form of a refusal."""
    assert answer.status_code in statuses, (answer.status_code, answer.text)
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    found = answer.json()
    assert set(found) == {"type", "title", "status", "detail"}
    assert found["status"] == answer.status_code
    assert "\n" not in found["detail"]
    assert len(answer.content) < 1000
    return found


# Tokens and roles.


@pytest.mark.parametrize("operation", GUARDED, ids=lambda operation: operation.endpoint)
def test_no_token_and_wrong_tokens_are_refused(guarded, operation):
    before = books(guarded)
    given = guarded.tokens["operator"]
    for value in (
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        f"Basic {given}",
        f"Bearer {given}x",
        f"Bearer {'x' * 9999}",
    ):
        headers = {} if value is None else {"Authorization": value}
        answer = guarded.request(operation.method, address(operation), json={}, headers=headers)
        problem(answer, 401)
        assert answer.headers["www-authenticate"].startswith("Bearer")
    assert books(guarded) == before


@pytest.mark.parametrize("operation", GUARDED, ids=lambda operation: operation.endpoint)
def test_a_role_may_do_what_it_may_and_no_more(guarded, operation):
    before = books(guarded)
    for role in ROLES:
        if operation.endpoint == "stream" and role != "reader":
            continue
        if ROLES.index(role) < ROLES.index(operation.role):
            answer = guarded.request(operation.method, address(operation), json={}, headers=bearer(guarded, role))
            assert f"role {operation.role}" in problem(answer, 403)["detail"]
        elif operation.endpoint != "stream":  # which has no end; a body of nonsense gets behind the door, no further
            answer = guarded.request(operation.method, address(operation), json=[], headers=bearer(guarded, role))
            assert answer.status_code not in (401, 403, 500), answer.text
    assert books(guarded) == before


def test_a_token_in_the_address_does_not_count(guarded):
    token = guarded.tokens["operator"]
    problem(guarded.get(f"/v1/bandits?token={token}&access_token={token}"), 401)


def test_a_revoked_token_is_refused_soon(guarded, monkeypatch):
    monkeypatch.setattr(tokens, "RENEWED", 0.0)
    headers = {"Authorization": f"Bearer {tokens.add_token(guarded.host.store, 'for-a-while', 'reader')}"}
    end = time.monotonic() + 10
    while guarded.get("/v1/bandits", headers=headers).status_code == 401:
        assert time.monotonic() < end
    monkeypatch.setattr(tokens, "RENEWED", 100.0)
    guarded.host.store.revoke_token("for-a-while")
    assert guarded.get("/v1/bandits", headers=headers).status_code == 200  # a moment ago it was good
    monkeypatch.setattr(tokens, "RENEWED", 0.0)  # the time has passed
    end = time.monotonic() + 10
    while guarded.get("/v1/bandits", headers=headers).status_code == 200:
        assert time.monotonic() < end
    problem(guarded.get("/v1/bandits", headers=headers), 401)


def test_after_a_silence_not_even_one_request_gets_in_with_a_revoked_token(guarded, monkeypatch):
    headers = {"Authorization": f"Bearer {tokens.add_token(guarded.host.store, 'forgotten', 'operator')}"}
    end = time.monotonic() + 10
    while guarded.get("/v1/bandits", headers=headers).status_code == 401:
        assert time.monotonic() < end
        time.sleep(0.1)
    guarded.host.store.revoke_token("forgotten")
    monkeypatch.setattr(tokens, "HURRY", 60.0)  # others may keep the machine busy
    time.sleep(tokens.OUTDATED + 0.2)  # nobody calls
    problem(guarded.get("/v1/bandits", headers=headers), 401)


def test_nobody_comes_in_before_the_store_has_said_who_may(tmp_path, monkeypatch):
    def gone(*_arguments):
        raise StoreFailed("the store cannot be reached")

    with service(tmp_path) as client:
        monkeypatch.setattr(type(client.host.store), "_do", gone)
        problem(client.get("/v1/whoami"), 503)
        monkeypatch.undo()
        assert client.get("/v1/whoami").status_code == 200


def test_a_service_that_needed_tokens_is_not_open_when_the_last_is_revoked(tmp_path, monkeypatch):
    with service(tmp_path, is_open=False) as client:
        monkeypatch.setattr(tokens, "RENEWED", 0.0)
        problem(client.get("/v1/bandits"), 401)


def test_every_digest_is_compared_in_constant_time(guarded, monkeypatch):
    compared = []

    def counting(one, other):
        compared.append((one, other))
        return hmac.compare_digest(one, other)

    monkeypatch.setattr(tokens, "hmac", SimpleNamespace(compare_digest=counting))
    for token in (guarded.tokens["operator"], "wrong"):
        compared.clear()
        guarded.get("/v1/bandits", headers={"Authorization": f"Bearer {token}"})
        assert {one for one, _ in compared} == {kept.digest for kept in guarded.host.store.tokens()}
        assert {len(other) for _, other in compared} == {32}


def test_the_store_keeps_no_token_and_nothing_shows_one(guarded, caplog):
    caplog.set_level("DEBUG")
    operator = bearer(guarded, "operator")
    guarded.patch(B, json={"budget": 0.25}, headers=operator)
    shown = [guarded.get(path, headers=operator).text for path in ("/metrics", B, f"{B}/acts", "/v1/whoami", "/")]
    shown += [caplog.text, guarded.get("/v1/bandits", headers={"Authorization": "Bearer nonsense-token"}).text]
    files = [path.read_bytes() for path in guarded.folder.iterdir()]
    for token in [*guarded.tokens.values(), "nonsense-token"]:
        assert not any(token in text for text in shown)
        assert not any(token.encode() in content for content in files)


def test_a_token_from_the_command_line_is_an_operators(tmp_path):
    token = tokens.make_token()
    with service(tmp_path, token=token) as client:
        problem(client.get("/v1/whoami"), 401)
        found = client.get("/v1/whoami", headers={"Authorization": f"bearer {token}"}).json()
        assert (found["role"], found["label"]) == ("operator", "command-line")


# Other sites, through the browser of somebody who may.


@pytest.mark.parametrize(
    "headers",
    [{"Host": "evil.example"}, {"Host": "evil.example:8080"}, {"Host": "127.0.0.1.evil.example:8080"}, {"Host": ""}],
)
def test_without_tokens_only_names_of_this_machine_lead_here(client, headers):
    before = books(client)
    problem(client.post(f"{B}/credit", json={"amount": 1}, headers=headers), 421)
    assert books(client) == before


def test_with_a_token_the_service_may_have_any_name(guarded):
    """As behind nginx, which passes on the name that the world knows."""
    name = {"Host": "bandits.example.org"}
    assert guarded.get("/v1/bandits", headers={**bearer(guarded, "reader"), **name}).status_code == 200
    problem(guarded.get("/v1/bandits", headers=name), 401)


@pytest.mark.parametrize("host", ["localhost", "localhost:8080", "127.0.0.1", "127.0.0.1:1", "[::1]:8080", "[::1]"])
def test_names_of_this_machine_do(client, host):
    assert client.get("/v1/bandits", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""]
)
def test_a_form_of_another_site_gets_nothing_done(client, kind):
    before = books(client)
    problem(client.post(f"{B}/credit", content=b'{"amount": 1}', headers={"Content-Type": kind}), 415)
    problem(client.post(f"{B}/credit", json={"amount": 1}, headers={"Sec-Fetch-Site": "cross-site"}), 403)
    assert books(client) == before


def test_there_is_no_leave_for_other_sites(client):
    answer = client.options(
        f"{B}/credit", headers={"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    )
    assert answer.status_code == 405
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_every_answer_has_the_headers_that_keep_a_browser_safe(client):
    for path in ("/", "/page/page.css", "/v1/bandits", "/nothing", "/healthz", B):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert (headers["x-frame-options"], headers["referrer-policy"]) == ("DENY", "no-referrer")
        assert headers["cache-control"] in ("no-store", "no-cache")
        assert "server" not in headers


# Bodies.


def test_a_store_that_hangs_holds_nobody_up_at_the_door():
    """It is asked once for all; meanwhile those come in whose token was known."""
    token, hangs = "t" * 32, asyncio.Event()
    looks = []

    async def load():
        looks.append(time.monotonic())
        if len(looks) > 1:
            await hangs.wait()
        return [SimpleNamespace(digest=tokens.digest_of(token), label="shop", role="decider")]

    async def come_in():
        door = tokens.Door(load, None, is_open=False)
        first = await door.identify(f"Bearer {token}".encode())
        door.looked -= 2 * tokens.OUTDATED
        for _ in range(20):
            assert await asyncio.wait_for(door.identify(f"Bearer {token}".encode()), 60) == first
        assert len(looks) == 2
        hangs.set()

    asyncio.run(come_in())


BAD_BODIES = {
    "nothing": b"",
    "half": b'{"items": [',
    "not a number": b'{"items": [{"id": 1, "reward": NaN}]}',
    "endless": b'{"items": [{"id": 1, "reward": Infinity}]}',
    "other bytes": b"\xff\xfe\x00",
    "deep": b'{"items": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "digits": b'{"items": [{"id": ' + b"9" * 5000 + b"}]}",
    "a key twice": b'{"items": [{"id": 1, "cost": 0.1, "cost": 0.2}]}',
    "a key twice, and colons": b'{"items": [{"id": "a:1", "id": "a::2"}]}',
    "a key twice, and colons that are written otherwise": rb'{"items": [{"id": "\u003a", "id": "\u003a"}]}',
    "a list twice": b'{"items": [], "items" : [{"id": 1}]}',
}
PLAIN = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(':a"\\', max_size=4)
VALUES = st.recursive(PLAIN, lambda part: st.lists(part) | st.dictionaries(st.text(":ab\\", max_size=2), part))


@given(VALUES, st.sampled_from([(",", ":"), (", ", " : ")]))
def test_what_is_json_is_read_whatever_colons_are_in_it(value, separators):
    assert encoding.read(json.dumps(value, separators=separators).encode()) == value


@pytest.mark.parametrize("body", BAD_BODIES.values(), ids=BAD_BODIES)
def test_what_is_not_json_is_refused(client, body):
    before = books(client)
    problem(client.post(f"{B}/tell", content=body, headers={"Content-Type": "application/json"}), 400)
    assert books(client) == before


@pytest.mark.parametrize(
    ("path", "body", "says"),
    [
        ("/ask", [], "the body must be an object"),
        ("/ask", {"count": 0}, "count must be a whole number from 1 to 1000, got 0"),
        ("/ask", {"count": 1001}, "from 1 to 1000"),
        ("/ask", {"count": True}, "got True"),
        ("/ask", {"count": 1.0}, "count must be a whole number"),
        ("/ask", {"arms": ["video"] * 1001}, "arms must have 0 to 1000"),
        ("/ask", {"arms": "video"}, "arms must be a list"),
        ("/ask", {"expires": -1}, "expires must be a number"),
        ("/ask", {"max_cost": {"video": "much"}}, "max_cost"),
        ("/ask", {"max_cost": 1e308}, "must be"),
        ("/ask", {"policy": "thompson"}, "nothing but count, arms"),
        ("/tell", {}, "must have items"),
        ("/tell", {"items": []}, "items must have 1 to"),
        ("/tell", {"items": [{"id": None}]}, "id must be a text or a whole number"),
        ("/tell", {"items": [{"id": 1, "cost": "free"}]}, "cost must be a number or an object"),
        ("/tell", {"items": [{"id": 1, "__proto__": {}}]}, "nothing but id"),
        ("/credit", {"amount": -5}, "amount must be a number above 0"),
        ("/credit", {"amount": 1e300}, "must"),
        ("/credit", {"amount": {"money": 1}}, "must"),
        ("/arms/story", {"max_cost": -1}, "max_cost"),
    ],
)
def test_values_that_break_a_rule_are_refused(client, path, body, says):
    before = books(client)
    content = json.dumps(body).encode()
    answer = client.post(B + path, content=content, headers={"Content-Type": "application/json"})
    assert says in problem(answer, 400, 422)["detail"]
    assert books(client) == before


@pytest.mark.parametrize(
    "id", ["\0a-1", "a" * 150 + "-1", "a-" + "9" * 30, "a-1." + "9" * 30, "../../x-1", "<script>-1", "-1"]
)
def test_ids_that_no_worker_can_have_are_unknown_and_leave_the_service_whole(client, id):
    before, body = books(client), json.dumps({"items": [{"id": id, "reward": 1, "cost": 0.1}]})
    for path in ("tell", "cancel", "expire"):
        items = json.loads(body)["items"] if path == "tell" else [{"id": id}]
        answer = client.post(
            f"{B}/{path}", content=json.dumps({"items": items}), headers={"Content-Type": "application/json"}
        )
        assert [item["result"] for item in answer.json()["items"]] == ["unknown"]
        assert b"<script>" not in answer.content
    client.host.joined["ads"].member.sync()  # nothing waits for the store that it cannot take
    assert books(client) == before


def test_numbers_and_texts_that_cannot_be_held_are_refused(client):
    """No float is so large, and half of a character is none: such a body is refused as a whole."""
    before, headers = books(client), {"Content-Type": "application/json"}
    half = b'{"items": [{"id": "\\ud800a-1"}]}'
    for path, body in (("/ask", b'{"expires": 1e999}'), ("/credit", b'{"amount": 1e999}'), ("/cancel", half)):
        problem(client.post(B + path, content=body, headers=headers), 400)
    assert books(client) == before


@pytest.mark.parametrize(
    "change",
    [
        {"policy": "os:system"},
        {"policy": "policy.py:Mine"},
        {"policy": {"name": "index"}},
        {"arms": []},
        {"arms": ["a", "a"]},
        {"arms": [f"arm {number}" for number in range(1001)]},
        {"budget": -1},
        {"budget": "much"},
        {"max_cost": {"banner": 0}},
        {"journal": "/etc/passwd"},
        {"worker": "me"},
        {"seed": -1},
        {"remember": 10**9},
    ],
    ids=lambda change: repr(change)[:40],
)
def test_settings_that_break_a_rule_make_nothing(client, change):
    before = books(client)
    problem(client.put("/v1/bandits/other", json={**ADS, **change}), 422)
    assert books(client) == before


@pytest.mark.parametrize(
    "name", ["../../x", "..%2f..%2fx", "<script>alert(1)</script>", "%00", "a b", "-x", "ä", "x" * 101, "a%0Ab", "."]
)
def test_names_of_bandits_are_checked_at_the_door(client, name):
    before = books(client)
    for path in (f"/v1/bandits/{name}", f"/v1/bandits/{name}/ask"):
        method = "POST" if path.endswith("ask") else "PUT"
        answer = client.request(method, path, json=ADS if method == "PUT" else {})
        assert "<script" not in problem(answer, 404, 405, 422)["title"]
        assert "<" not in answer.text
    assert books(client) == before


@pytest.mark.parametrize(
    "name", ["../../x", "<script>alert(1)</script>", '"><img src=x>', "a\u2028b", "x" * 101, "", " a", "é"]
)
def test_names_of_arms_are_checked_at_the_door(client, name):
    before = books(client)
    problem(client.put("/v1/bandits/other", json={**ADS, "arms": [name], "max_cost": 1.0}), 422)
    if name:
        problem(client.post(f"{B}/arms/{quote(name, safe='')}", json={}), 404, 422)
        problem(client.patch(f"{B}/arms/{quote(name, safe='')}", json={"status": "paused"}), 404, 422)
    assert books(client) == before


def test_what_a_refusal_repeats_has_no_markup(client):
    name = "<script>alert(1)</script>"
    wrong = [("/ask", {"arms": [name]}), ("/ask", {name: 1}), ("/tell", {"items": [{"id": 1, "cost": name}]})]
    for path, body in wrong:
        answer = client.post(f"{B}{path}", json=body)
        assert name in problem(answer, 404, 422)["detail"]
        assert "<" not in answer.text


# Sizes.


def test_a_body_that_is_too_large_is_not_read(client):
    before, large = books(client), b" " * (LARGEST_BODY + 1)
    headers = {"Content-Type": "application/json"}
    problem(client.post(f"{B}/ask", content=large, headers=headers), 413)
    parts = (b" " * 65536 for _ in range(1 << 12))  # without a length; far more than may be sent
    problem(client.post(f"{B}/ask", content=parts, headers=headers), 413)
    problem(client.post(f"{B}/ask", content=b"{}", headers={**headers, "Content-Length": "9" * 30}), 413)
    assert books(client) == before


def test_a_million_items_are_refused_at_once(client):
    before = books(client)
    items = b'{"items":[' + b",".join([b'{"id":1}'] * 1_000_000) + b"]}"
    problem(client.post(f"{B}/tell", content=items, headers={"Content-Type": "application/json"}), 413)
    many = {"items": [{"id": 1, "cost": 0}] * (MOST_ITEMS + 1)}
    problem(client.post(f"{B}/tell", json=many), 422)
    problem(client.post(f"{B}/step", json={"tells": many["items"]}), 422)
    assert books(client) == before


@pytest.mark.parametrize("key", ["", " ", "a b", "x" * 201])
def test_keys_of_requests_are_checked(client, key):
    before = rounds(client)
    problem(client.post(f"{B}/ask", json={}, headers={"Idempotency-Key": key}), 422)
    assert rounds(client) == before


@pytest.mark.parametrize("query", ["after=-1", "after=x", "count=0", "count=1001", "after=" + "9" * 30, "count=1e3"])
def test_numbers_in_the_query_are_checked(client, query):
    problem(client.get(f"{B}/events?{query}"), 422)
    problem(client.get(f"{B}/acts?{query}"), 422)


def test_pages_that_look_on_are_counted(client, monkeypatch):
    monkeypatch.setattr("paceline.service.endpoints.MOST_STREAMS", 0)
    problem(client.get(f"{B}/stream"), 429)


def test_the_address_of_tests_is_local():
    assert LOCAL.startswith("http://127.0.0.1")

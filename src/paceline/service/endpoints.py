"""What the service does for each operation. Checks of tokens, roles and bodies are behind us here."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.responses import PlainTextResponse, Response, StreamingResponse

from paceline.errors import StoreFailed
from paceline.live.metrics import prometheus_text
from paceline.service.answers import Answer
from paceline.service.history import as_columns
from paceline.service.hosted import Hosted
from paceline.service.limits import LOOK_PATIENCE, MOST_STREAMS
from paceline.service.meter import pool_text
from paceline.service.openapi import DOCUMENT
from paceline.service.problems import Problem, document
from paceline.service.requests import Call
from paceline.service.schema import ARM, checker
from paceline.service.stream import HEADERS, follow

check_arm = checker(ARM)
Body = dict[str, Any]
VERBS = {"active": "resume", "paused": "pause", "retired": "retire"}


async def whoami(call: Call) -> Response:
    """Who is asking."""
    return Answer({"label": call.identity.label, "role": call.identity.role, "worker": call.host.worker})


# Bandits.


async def list_bandits(call: Call) -> Response:
    """All names."""
    try:
        names = await call.host.in_thread(call.host.store.fleets, patience=LOOK_PATIENCE)
    except StoreFailed:
        if not call.host.joined:
            raise
        names = sorted(call.host.joined)  # the others wait for the store
    return Answer({"bandits": names})


async def make_bandit(call: Call) -> Response:
    """A new bandit, or the same again."""
    name = call.bandit_name()
    made = await call.host.make(name, call.body, call.identity.label)
    return Answer({"name": name, "made": made}, 201 if made else 200)


async def show_bandit(call: Call) -> Response:
    """The state."""
    return Answer(await (await call.bandit()).show())


async def show_history(call: Call) -> Response:
    """How the amounts went."""
    hosted = await call.bandit()
    await hosted.show()
    return Answer(as_columns(hosted.history.points()))


# Decisions and news.


def ask_at_once(hosted: Hosted, body: Body, by: str) -> Body:
    """Decisions."""
    return {"decisions": hosted.ask(body, by)}


def tell_at_once(hosted: Hosted, body: Body, _by: str) -> Body:
    """Outcomes."""
    return {"items": hosted.tell(body["items"])}


def cancel_at_once(hosted: Hosted, body: Body, _by: str) -> Body:
    """Decisions that were never acted on."""
    return {"items": hosted.cancel(body["items"])}


def expire_at_once(hosted: Hosted, body: Body, _by: str) -> Body:
    """Decisions that nothing more is expected of."""
    return {"items": hosted.expire(body["items"])}


def observe_at_once(hosted: Hosted, body: Body, _by: str) -> Body:
    """Pulls that were made elsewhere."""
    return {"items": hosted.observe(body["items"])}


def tell_of_step(hosted: Hosted, body: Body) -> list[Body]:
    """The outcomes of a step, which come first: they free what the decisions may need."""
    if "asks" in body:
        hosted.check_ask(body["asks"])
    return hosted.tell(body.get("tells", []))


def step_at_once(hosted: Hosted, body: Body, by: str) -> Body:
    """Outcomes and decisions."""
    items = tell_of_step(hosted, body)
    return {"items": items, "decisions": hosted.ask(body["asks"], by) if "asks" in body else []}


# What needs nothing but the books of this process, as long as no key has to be looked up. By the name of an operation.
AT_ONCE: dict[str, Callable[[Hosted, Body, str], Body]] = {
    "ask": ask_at_once,
    "tell": tell_at_once,
    "cancel": cancel_at_once,
    "expire": expire_at_once,
    "observe": observe_at_once,
    "step": step_at_once,
}


# Where a request has news. What is of decisions of other processes has to wait for the store.
NEWS = {"tell": "items", "cancel": "items", "expire": "items", "step": "tells"}


async def ask(call: Call) -> Response:
    """Decisions; with a key the store knows whether they were made before."""
    hosted = await call.bandit()
    return Answer({"decisions": await hosted.ask_once(call.body, call.identity.label, call.key)})


async def step(call: Call) -> Response:
    """The same for outcomes and decisions."""
    hosted, key = await call.bandit(), call.key
    items = tell_of_step(hosted, call.body)
    await hosted.deliver()
    has_asks = "asks" in call.body
    decisions = await hosted.ask_once(call.body["asks"], call.identity.label, key) if has_asks else []
    return Answer({"items": items, "decisions": decisions})


def news(at_once: Callable[[Hosted, Body, str], Body]) -> Callable[[Call], Awaitable[Response]]:
    """News of any kind, which waits for the bandit, and for the store where others are to hear it."""

    async def take(call: Call) -> Response:
        hosted = await call.bandit()
        items = at_once(hosted, call.body, call.identity.label)
        await hosted.deliver()
        return Answer(items)

    return take


tell, cancel, expire, observe = map(news, (tell_at_once, cancel_at_once, expire_at_once, observe_at_once))


async def list_decisions(call: Call) -> Response:
    """Those that wait, with their arms, and which of them are not waited for any more."""
    member = (await call.bandit()).member
    pending, expired = await asyncio.to_thread(lambda: (member.pending, member.expired))  # there may be very many
    return Answer({"pending": pending, "expired": expired})


async def show_decision(call: Call) -> Response:
    """Why."""
    return Answer((await call.bandit()).why(call.name("id")))


async def list_events(call: Call) -> Response:
    """What happened lately."""
    log = (await call.bandit()).log
    after, count = call.number("after", 0, 0, 2**53), call.number("count", 100, 1, 1000)
    return Answer({"events": log.after(after, count), "last": log.number})


async def list_acts(call: Call) -> Response:
    """What operators did."""
    hosted = await call.bandit()
    after, count = call.number("after", 0, 0, 2**53), call.number("count", 100, 1, 1000)
    return Answer({"acts": await call.host.in_thread(hosted.acts, after, count, patience=LOOK_PATIENCE)})


async def stream(call: Call) -> Response:
    """The state, every second."""
    hosted = await call.bandit()
    if call.host.streams >= MOST_STREAMS:
        raise Problem(429, f"pages that look on must be at most {MOST_STREAMS} at a time")
    after = call.number("after", 0, 0, 2**53)
    await hosted.show()  # if there is nothing to see, it is said before the stream begins
    if call.scope["method"] == "HEAD":
        return StreamingResponse(iter(()), headers=HEADERS, media_type="text/event-stream")
    return StreamingResponse(follow(call.host, hosted, after), headers=HEADERS, media_type="text/event-stream")


# What operators do. Each act is in the store's log and in that of the process.


async def change_bandit(call: Call) -> Response:
    """Other settings."""
    await (await call.bandit()).change({"set": call.body}, call.identity.label)
    call.host.tick()
    return Answer({"set": call.body})


async def credit(call: Call) -> Response:
    """Money that comes in; with the same key it comes once."""
    await (await call.bandit()).credit(call.body["amount"], call.identity.label, call.key)
    call.host.tick()
    return Answer({"credited": call.body["amount"]})


async def add_arm(call: Call) -> Response:
    """A new arm."""
    arm = call.name("arm")
    check_arm("the name of an arm", arm)
    await (await call.bandit()).change({"add": {"arm": arm, **call.body}}, call.identity.label)
    call.host.tick()
    return Answer({"arm": arm, "status": "active"}, 201)


async def change_arm(call: Call) -> Response:
    """Pause, resume or retire."""
    arm, status = call.name("arm"), call.body["status"]
    await (await call.bandit()).change({VERBS[status]: arm}, call.identity.label)
    call.host.tick()
    return Answer({"arm": arm, "status": status})


async def list_workers(call: Call) -> Response:
    """The fleet."""
    state = await (await call.bandit()).show()
    return Answer({"workers": state["fleet"]["workers"]})


async def close_worker(call: Call) -> Response:
    """An operator asserts that a worker is dead."""
    worker = call.name("worker")
    await (await call.bandit()).close_worker(worker, call.body["life"], call.identity.label)
    call.host.tick()
    return Answer({"worker": worker, "status": "closed"})


# The process.


async def healthz(_call: Call) -> Response:
    """Alive."""
    return PlainTextResponse("ok\n")


async def readyz(call: Call) -> Response:
    """Ready if bandits are open, the store answers and takes what they say to it, and no one has asked us to stop."""
    if call.host.is_stopping:
        raise Problem(503, "the service is stopping")
    if call.host.is_warming:
        raise Problem(503, "the service has just started, and opens its bandits")
    try:
        await call.host.in_thread(call.host.store.fleets, patience=LOOK_PATIENCE)
        is_ready = not any(hosted.member.is_alone for hosted in call.host.joined.values())
    except StoreFailed:
        is_ready = False
    if not is_ready:
        return document(503, "the store cannot be used; decisions go on with what is known", {"Retry-After": "1"})
    return PlainTextResponse("ready\n")


async def metrics(call: Call) -> Response:
    """Numbers for Prometheus: the bandits as this worker sees them, and the service itself.

    The pools are those of the last pictures, which are seconds old: a scrape does not wait for the store.
    """
    pools = {name: hosted.state["fleet"]["pool"] for name, hosted in call.host.joined.items() if hosted.state}
    seen = {name: hosted.status() for name, hosted in call.host.joined.items()}
    statuses = {name: status for name, status in seen.items() if status is not None}
    text = prometheus_text(statuses) + pool_text(pools) + call.meter.text(time.time())
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4; charset=utf-8")


async def openapi(_call: Call) -> Response:
    """The document."""
    return Answer(DOCUMENT)

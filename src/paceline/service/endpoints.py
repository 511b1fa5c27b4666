"""What the service does for each operation. Checks of tokens, roles and bodies are behind us here."""

import time
from typing import Any

from starlette.responses import PlainTextResponse, Response, StreamingResponse

from paceline.errors import StoreFailed
from paceline.live.metrics import prometheus_text
from paceline.service import encoding
from paceline.service.history import as_columns
from paceline.service.limits import MOST_STREAMS
from paceline.service.openapi import DOCUMENT
from paceline.service.problems import Problem, document
from paceline.service.requests import Call
from paceline.service.schema import ARM, checker
from paceline.service.stream import HEADERS, follow

check_arm = checker(ARM)
JSON = (b"content-type", b"application/json")
VERBS = {"active": "resume", "paused": "pause", "retired": "retire"}


class Answer(Response):
    """A value as JSON. It needs little of what a response can have, and is made in a third of the time."""

    def __init__(self, value: Any, status: int) -> None:
        self.status_code, self.background = status, None
        self.body = encoding.write(value)
        self.raw_headers = [JSON, (b"content-length", b"%d" % len(self.body))]


def done(value: Any, status: int = 200) -> Response:
    """An answer."""
    return Answer(value, status)


async def whoami(call: Call) -> Response:
    """Who is asking."""
    return done({"label": call.identity.label, "role": call.identity.role, "worker": call.host.worker})


# Bandits.


async def list_bandits(call: Call) -> Response:
    """All names."""
    try:
        names = await call.host.in_thread(call.host.store.fleets)
    except StoreFailed:
        if not call.host.joined:
            raise
        names = sorted(call.host.joined)  # the others wait for the store
    return done({"bandits": names})


async def make_bandit(call: Call) -> Response:
    """A new bandit, or the same again."""
    name = call.bandit_name()
    made = await call.host.make(name, call.body, call.identity.label)
    return done({"name": name, "made": made}, 201 if made else 200)


async def show_bandit(call: Call) -> Response:
    """The state."""
    return done(await (await call.bandit()).look())


async def show_history(call: Call) -> Response:
    """How the amounts went."""
    hosted = await call.bandit()
    await hosted.look()
    return done(as_columns(hosted.history.points()))


# Decisions and news.


async def ask(call: Call) -> Response:
    """Decisions."""
    hosted = await call.bandit()
    return done({"decisions": await hosted.ask_once(call.body, call.identity.label, call.key)})


async def tell(call: Call) -> Response:
    """Outcomes."""
    return done({"items": (await call.bandit()).tell(call.body["items"])})


async def cancel(call: Call) -> Response:
    """Decisions that were never acted on."""
    return done({"items": (await call.bandit()).cancel(call.body["items"])})


async def expire(call: Call) -> Response:
    """Decisions that nothing more is expected of."""
    return done({"items": (await call.bandit()).expire(call.body["items"])})


async def observe(call: Call) -> Response:
    """Pulls that were made elsewhere."""
    return done({"items": (await call.bandit()).observe(call.body["items"])})


async def step(call: Call) -> Response:
    """Outcomes first: they free what the decisions may need."""
    hosted, key, asks = await call.bandit(), call.key, call.body.get("asks")
    if asks is not None:
        hosted.check_ask(asks)
    items = hosted.tell(call.body.get("tells", []))
    decisions = [] if asks is None else await hosted.ask_once(asks, call.identity.label, key)
    return done({"items": items, "decisions": decisions})


async def show_decision(call: Call) -> Response:
    """Why."""
    return done((await call.bandit()).why(call.name("id")))


async def list_events(call: Call) -> Response:
    """What happened lately."""
    log = (await call.bandit()).log
    after, count = call.number("after", 0, 0, 2**53), call.number("count", 100, 1, 1000)
    return done({"events": log.after(after, count), "last": log.number})


async def list_acts(call: Call) -> Response:
    """What operators did."""
    hosted = await call.bandit()
    after, count = call.number("after", 0, 0, 2**53), call.number("count", 100, 1, 1000)
    return done({"acts": await call.host.in_thread(hosted.acts, after, count)})


async def stream(call: Call) -> Response:
    """The state, every second."""
    hosted = await call.bandit()
    if call.host.streams >= MOST_STREAMS:
        raise Problem(429, f"pages that look on must be at most {MOST_STREAMS} at a time")
    after = call.number("after", 0, 0, 2**53)
    await hosted.look()  # if there is nothing to see, it is said before the stream begins
    return StreamingResponse(follow(call.host, hosted, after), headers=HEADERS, media_type="text/event-stream")


# What operators do. Each act is in the store's log and in that of the process.


async def change_bandit(call: Call) -> Response:
    """Other settings."""
    await (await call.bandit()).change({"set": call.body}, call.identity.label)
    call.host.tick()
    return done({"set": call.body})


async def credit(call: Call) -> Response:
    """Money that comes in; with the same key it comes once."""
    await (await call.bandit()).credit(call.body["amount"], call.identity.label, call.key)
    call.host.tick()
    return done({"credited": call.body["amount"]})


async def add_arm(call: Call) -> Response:
    """A new arm."""
    arm = call.name("arm")
    check_arm("the name of an arm", arm)
    await (await call.bandit()).change({"add": {"arm": arm, **call.body}}, call.identity.label)
    call.host.tick()
    return done({"arm": arm, "status": "active"}, 201)


async def change_arm(call: Call) -> Response:
    """Pause, resume or retire."""
    arm, status = call.name("arm"), call.body["status"]
    await (await call.bandit()).change({VERBS[status]: arm}, call.identity.label)
    call.host.tick()
    return done({"arm": arm, "status": status})


async def list_workers(call: Call) -> Response:
    """The fleet."""
    state = await (await call.bandit()).look()
    return done({"workers": state["fleet"]["workers"]})


async def close_worker(call: Call) -> Response:
    """An operator asserts that a worker is dead."""
    worker = call.name("worker")
    await (await call.bandit()).close_worker(worker, call.body["life"], call.identity.label)
    call.host.tick()
    return done({"worker": worker, "status": "closed"})


# The process.


async def healthz(_call: Call) -> Response:
    """Alive."""
    return PlainTextResponse("ok\n")


async def readyz(call: Call) -> Response:
    """Ready if the store answers, and no one has asked us to stop."""
    if call.host.is_stopping:
        raise Problem(503, "the service is stopping")
    try:
        await call.host.in_thread(call.host.store.fleets)
    except StoreFailed:
        return document(503, "the store cannot be reached; decisions go on with what is known", {"Retry-After": "1"})
    return PlainTextResponse("ready\n")


async def metrics(call: Call) -> Response:
    """Numbers for Prometheus: the bandits as this worker sees them, and the service itself."""
    statuses = {name: hosted.member.status() for name, hosted in call.host.joined.items()}
    text = prometheus_text(statuses) + call.request.app.state.meter.text(time.time())
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4; charset=utf-8")


async def openapi(_call: Call) -> Response:
    """The document."""
    return done(DOCUMENT)

"""A web program with many workers and one budget: which banner to show, under gunicorn or uvicorn.

    pip install . gunicorn                                         in a clone of the repository
    FLEET=sqlite:///ads.db gunicorn -w 4 -b 127.0.0.1:8000 --chdir examples gunicorn_app:app
    FLEET=sqlite:///ads.db gunicorn -w 4 -b 127.0.0.1:8000 --chdir examples --preload gunicorn_app:app
    FLEET=sqlite:///ads.db uvicorn --workers 4 --port 8000 --app-dir examples gunicorn_app:asgi

    curl http://127.0.0.1:8000/ask                                 {"id": "...", "arm": "video", "reason": "..."}
    curl -d '{"id": "...", "reward": 1, "cost": 0.4}' http://127.0.0.1:8000/tell
    curl http://127.0.0.1:8000/fleet                               the whole fleet: rounds, money, workers

Each worker process joins the fleet and decides by itself; together they never spend more than one budget. The click
comes by a request that reaches any of the workers: it is sent on to the one that made the decision. A worker that is
recycled or stopped hands back what it has not spent. With --preload the program is loaded once and forked; each copy is
a worker of its own.
"""

import json
import os
from collections.abc import Callable, Iterable
from typing import Any

import paceline as pl

bandit = pl.join(
    os.environ.get("FLEET", "sqlite:///ads.db"),
    "ads",
    arms=["banner", "video", "story"],
    budget=0.3,
    max_cost={"banner": 0.2, "video": 1.0, "story": 0.5},
    expires=3600,
)


def answer(path: str, body: bytes) -> Any:
    """What a request is answered."""
    if path == "/ask":
        decision = bandit.ask()
        return {"id": decision.id, "arm": decision.arm, "reason": decision.reason, "process": os.getpid()}
    if path == "/tell":
        news = json.loads(body)
        bandit.tell(news["id"], reward=float(news["reward"]), cost=float(news["cost"]))
        return {"taken": news["id"]}
    if path == "/fleet":
        bandit.sync()
        return bandit.fleet_status()
    return None


def app(environ: dict[str, Any], start_response: Callable[[str, list[tuple[str, str]]], Any]) -> Iterable[bytes]:
    """The program, as WSGI has it."""
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    try:
        found = answer(environ["PATH_INFO"], body)
    except (pl.PacelineError, ValueError, KeyError) as error:
        start_response("422 Unprocessable Content", [("Content-Type", "text/plain; charset=utf-8")])
        return [str(error).encode()]
    start_response("200 OK" if found else "404 Not Found", [("Content-Type", "application/json")])
    return [json.dumps(found).encode()]


async def asgi(scope: dict[str, Any], receive: Callable[[], Any], send: Callable[[Any], Any]) -> None:
    """The same as ASGI has it. A decision takes microseconds, so the event loop need not be spared."""
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        bandit.close()  # uvicorn ends its process by a signal after this, and nothing else can be done then
        await send({"type": "lifespan.shutdown.complete"})
        return
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    try:
        found = answer(scope["path"], body)
        status, content = (200 if found else 404), json.dumps(found).encode()
    except (pl.PacelineError, ValueError, KeyError) as error:
        status, content = 422, str(error).encode()
    headers = [(b"content-type", b"application/json" if status == 200 else b"text/plain; charset=utf-8")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})

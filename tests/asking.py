"""Requests to a service in another process, with nothing but the standard library."""

import json
import time
import urllib.error
import urllib.request

PATIENCE = 60.0  # seconds for a bandit to be opened
BEING_OPENED = "is being opened, which takes a while; try again"


def value_of(content):
    """What JSON stands for; other answers as they are."""
    try:
        return json.loads(content)
    except ValueError:
        return content


def request(address, path, body=None, method=None, token=None, key=None):
    """Status and answer.

    On a busy machine a bandit may take longer to open than a request waits; it is repeated then, as the answer says.
    """
    headers = {"Content-Type": "application/json"}
    headers |= ({"Authorization": f"Bearer {token}"} if token else {}) | ({"Idempotency-Key": key} if key else {})
    content = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(address + path, content, headers, method=method)
    deadline = time.monotonic() + PATIENCE
    while True:
        status, answer = once(asked)
        if status != 503 or BEING_OPENED not in answer.get("detail", "") or time.monotonic() > deadline:
            return status, answer


def once(asked):
    """Status and answer of a request that is made once."""
    try:
        with urllib.request.urlopen(asked, timeout=20) as answer:
            return answer.status, value_of(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, value_of(error.read())

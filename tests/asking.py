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
    """Status and answer, with nothing but the standard library."""
    headers = {"Content-Type": "application/json"}
    headers |= ({"Authorization": f"Bearer {token}"} if token else {}) | ({"Idempotency-Key": key} if key else {})
    content = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(address + path, content, headers, method=method)
    try:
        with urllib.request.urlopen(asked, timeout=20) as answer:
            return answer.status, value_of(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, value_of(error.read())


def request_in_time(*given, **options):
    """The same, again and again as the answer says while a bandit takes longer to open than a request waits.

    On a machine that has much else to do that may be more than ten seconds.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        status, answer = request(*given, **options)
        if status != 503 or BEING_OPENED not in answer["detail"] or time.monotonic() > deadline:
            return status, answer

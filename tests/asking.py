"""Requests to a service in another process, with nothing but the standard library."""

import json
import urllib.error
import urllib.request


def value_of(content):
    """What JSON stands for; other answers as they are."""
    try:
        return json.loads(content)
    except ValueError:
        return content


def request(address, path, body=None, method=None, token=None):
    """Status and answer, with nothing but the standard library."""
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    content = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(address + path, content, headers, method=method)
    try:
        with urllib.request.urlopen(asked, timeout=20) as answer:
            return answer.status, value_of(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, value_of(error.read())

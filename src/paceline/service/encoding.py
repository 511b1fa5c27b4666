"""JSON in and out of the service. All its bodies pass through here, and nothing else reads or writes them.

msgspec takes a fifth of the time of the standard library, which shows where decisions come in hundreds. A client needs
nothing of it: see transport.py.
"""

import json
from typing import Any

import msgspec
import numpy as np

from paceline.errors import PacelineError


class NotJson(PacelineError, ValueError):
    """A body that is no JSON."""


def as_plain(value: Any) -> Any:
    """A number of NumPy as one of Python."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


DECODER = msgspec.json.Decoder()
ENCODER = msgspec.json.Encoder(enc_hook=as_plain)
SORTING = msgspec.json.Encoder(order="sorted")


def read(body: bytes) -> Any:
    """The value that a body stands for.

    >>> read(b'{"count": 2}')
    {'count': 2}
    >>> read(b"{count: 2}")
    Traceback (most recent call last):
        ...
    paceline.service.encoding.NotJson: the body must be JSON, but: object keys must be strings (byte 1)
    >>> read(b'{"count": 2, "count": 3}')
    Traceback (most recent call last):
        ...
    paceline.service.encoding.NotJson: the keys of an object must differ, got 'count' twice
    """
    try:
        value = DECODER.decode(body)
        if b"\\" in body or body.count(b":") != ENCODER.encode(value).count(b":"):  # a key may have been there twice
            json.loads(body, object_pairs_hook=with_different_keys, parse_int=str)
        return value
    except UnicodeDecodeError:
        raise NotJson("the body must be JSON in UTF-8, got other bytes") from None
    except msgspec.DecodeError as error:
        raise NotJson(f"the body must be JSON, but: {str(error).removeprefix('JSON is malformed: ')}") from None
    except RecursionError:
        raise NotJson("the body must be JSON that is not nested so deeply") from None


def with_different_keys(pairs: list[tuple[str, Any]]) -> None:
    """Refuse an object that has a key twice: who reads the first and who the last would read different requests."""
    seen = set()
    for key, _ in pairs:
        if key in seen:
            raise NotJson(f"the keys of an object must differ, got {key[:60]!r} twice")
        seen.add(key)


def write_sorted(value: Any) -> bytes:
    """The same for the same value, in whatever order its keys came.

    >>> write_sorted({"b": {"d": 1, "c": 2}, "a": 3})
    b'{"a":3,"b":{"c":2,"d":1}}'
    """
    return SORTING.encode(value)


def write(value: Any) -> bytes:
    r"""A value as JSON in one line; what is no number is null.

    What was sent may be in it. Whoever takes it for HTML, whatever its type says, finds no tag.

    >>> write({"arm": "größe\n", "reward": 0.5}).decode()
    '{"arm":"größe\\n","reward":0.5}'
    >>> write("<b>").decode()
    '"\\u003cb>"'
    """
    return ENCODER.encode(value).replace(b"<", rb"\u003c")

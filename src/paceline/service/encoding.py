"""JSON in and out. All bodies of the service pass through here, and nothing else reads or writes them."""

import json
from typing import Any

from paceline.errors import PacelineError


class NotJson(PacelineError, ValueError):
    """A body that is no JSON."""


def refuse(name: str) -> Any:
    """NaN and Infinity, which Python would take and JSON does not know."""
    raise ValueError(f"{name} is not JSON")


DECODER = json.JSONDecoder(parse_constant=refuse)
ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))  # ASCII: no character can break a stream or a page


def read(body: bytes) -> Any:
    """The value that a body stands for.

    >>> read(b'{"count": 2}')
    {'count': 2}
    >>> read(b"{count: 2}")
    Traceback (most recent call last):
        ...
    paceline.service.encoding.NotJson: the body must be JSON, but: Expecting property name enclosed in double quotes
    """
    try:
        return DECODER.decode(body.decode("utf-8"))
    except UnicodeDecodeError:
        raise NotJson("the body must be JSON in UTF-8, got other bytes") from None
    except json.JSONDecodeError as error:
        raise NotJson(f"the body must be JSON, but: {error.msg}") from None
    except RecursionError:
        raise NotJson("the body must be JSON that is not nested so deeply") from None
    except ValueError as error:  # a number with thousands of digits, or NaN
        raise NotJson(f"the body must be JSON, but: {str(error)[:100]}") from None


def write(value: Any) -> bytes:
    r"""A value as JSON.

    >>> write({"arm": "größe", "reward": 0.5})
    b'{"arm":"gr\\u00f6\\u00dfe","reward":0.5}'
    """
    return ENCODER.encode(value).encode("ascii")

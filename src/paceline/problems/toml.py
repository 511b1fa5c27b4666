"""Tables from TOML files, and back."""

import tomllib
from pathlib import Path
from typing import Any

from paceline.errors import UnreadableFile
from paceline.extras import extra
from paceline.text import read_text


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a file; what is wrong with it in one line."""
    text = read_text(path)
    try:
        return tomllib.loads(text)
    except ValueError as error:  # TOMLDecodeError, or a number with more digits than Python reads
        raise UnreadableFile(f"{path} must be valid TOML, but: {str(error).partition(';')[0]}") from error
    except RecursionError as error:
        raise UnreadableFile(f"{path} must be valid TOML, but it is nested too deeply") from error


def to_toml(table: dict[str, Any]) -> str:
    """A table as a file would have it.

    >>> print(to_toml({"rounds": 100, "problem": [{"paper": "three-arms"}]}), end="")
    rounds = 100
    problem = [
        { paper = "three-arms" },
    ]
    """
    with extra("lab", "an experiment file"):
        import tomli_w
    return tomli_w.dumps(table)

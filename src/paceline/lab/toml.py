"""Problems from TOML files."""

import tomllib
from pathlib import Path
from typing import Any

from paceline.errors import PacelineError, UnreadableFile
from paceline.problem import Problem


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a file; what is wrong with it in one line."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UnreadableFile(f"{path} must be a readable file, but: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UnreadableFile(f"{path} must be UTF-8 text, but byte {error.start} is not") from error
    except ValueError as error:  # TOMLDecodeError, or a number with more digits than Python reads
        raise UnreadableFile(f"{path} must be valid TOML, but: {str(error).partition(';')[0]}") from error
    except RecursionError as error:
        raise UnreadableFile(f"{path} must be valid TOML, but it is nested too deeply") from error


def read_problem(path: Path) -> Problem:
    """The problem in a file, at the top or under [problem]."""
    tables = read_toml(path)
    try:
        return Problem.from_dict(tables.get("problem", tables))
    except PacelineError as error:
        raise type(error)(f"{path}: {error}") from None

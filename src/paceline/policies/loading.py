"""Policies of the user's own by name: "module:Class" and "path/to/file.py:Class"."""

import importlib
import os
import sys
from pathlib import Path
from types import ModuleType

from paceline.errors import InvalidValue, UnknownName, UnreadableFile
from paceline.policies.policy import Policy
from paceline.text_modules import load_text


def load_policy_class(name: str) -> type[Policy]:
    """The class that such a name stands for.

    A module is looked for in the working folder, too. Policies from a file travel with the text of the file, so that
    other processes and machines need not have it.
    """
    where, _, wanted = name.rpartition(":")
    module = load_file(Path(where)) if where.endswith(".py") else load_module(where)
    found = getattr(module, wanted, None)
    if not isinstance(found, type) or not issubclass(found, Policy):
        kind = "nothing of that name" if found is None else repr(found)
        raise InvalidValue(f"{wanted} in {where} must be a class derived from Policy or PythonPolicy, got {kind}")
    return found


def load_module(name: str) -> ModuleType:
    """A module by its dotted name."""
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and name.startswith(error.name):
            raise UnknownName(f"policy must be in a module that can be imported, got {name!r}") from None
        raise UnreadableFile(f"{name} must be importable, but: {error}") from error
    except Exception as error:
        raise UnreadableFile(f"{name} must be importable, but: {type(error).__name__}: {error}") from error


def load_file(path: Path) -> ModuleType:
    """The module in a file."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UnreadableFile(f"{path} must be a readable file, but: {error.strerror}") from error
    return load_text(text, str(path.resolve()))

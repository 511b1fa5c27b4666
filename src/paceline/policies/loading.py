"""Policies and worlds of the user's own by name: "module:Class" and "path/to/file.py:Class"."""

import importlib
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from paceline.errors import InvalidValue, UnknownName, UnreadableFile, in_one_line
from paceline.policies.policy import Policy
from paceline.text import read_text
from paceline.text_modules import load_text, place_of

Kind = TypeVar("Kind")


def load_policy_class(name: str) -> type[Policy]:
    """The policy that such a name stands for."""
    return load_class(name, "policy", Policy, "Policy or PythonPolicy")


def load_class(name: str, thing: str, base: type[Kind], bases: str) -> type[Kind]:
    """The class that such a name stands for.

    A module is looked for in the working folder, too. What is from a file travels with the text of the file, so that
    other processes and machines need not have it.
    """
    where, _, wanted = name.rpartition(":")
    if not where:
        raise InvalidValue(f"{thing} must be named as module:Class or file.py:Class, got {name!r}")
    module = load_file(Path(where)) if where.endswith(".py") else load_module(where, thing)
    found = getattr(module, wanted, None)
    if not isinstance(found, type) or not issubclass(found, base):
        other = f"class {place_of(found)}" if isinstance(found, type) else repr(found)
        got = "nothing of that name" if found is None else other
        raise InvalidValue(f"{wanted} in {where} must be a class derived from {bases}, got {got}")
    return found


def found_in(folder: Path, name: str) -> str:
    """Such a name, with the folder if its file is there."""
    where, _, wanted = name.rpartition(":")
    return f"{folder / where}:{wanted}" if where.endswith(".py") and (folder / where).is_file() else name


def load_module(name: str, thing: str) -> ModuleType:
    """A module by its dotted name."""
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if f"{name}.".startswith(f"{error.name}."):  # it, or the package that it is in
            raise UnknownName(f"{thing} must be in a module that can be imported, got {name!r}") from None
        raise UnreadableFile(f"{name} must be importable, but: {in_one_line(error)}") from error
    except (Exception, SystemExit) as error:
        raise UnreadableFile(f"{name} must be importable, but: {in_one_line(error)}") from error


def load_file(path: Path) -> ModuleType:
    """The module in a file."""
    return load_text(read_text(path), str(path.resolve()))

"""Policies of the user's own by name: "module:Class" and "path/to/file.py:Class"."""

import importlib
import os
import sys
from pathlib import Path
from types import ModuleType

from paceline.errors import InvalidValue, UnknownName, UnreadableFile, in_one_line
from paceline.policies.policy import Policy
from paceline.text import read_text
from paceline.text_modules import load_text


def load_policy_class(name: str) -> type[Policy]:
    """The class that such a name stands for.

    A module is looked for in the working folder, too. Policies from a file travel with the text of the file, so that
    other processes and machines need not have it.
    """
    where, _, wanted = name.rpartition(":")
    if not where:
        raise InvalidValue(f"policy must be named as module:Class or file.py:Class, got {name!r}")
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
        if f"{name}.".startswith(f"{error.name}."):  # it, or the package that it is in
            raise UnknownName(f"policy must be in a module that can be imported, got {name!r}") from None
        raise UnreadableFile(f"{name} must be importable, but: {in_one_line(error)}") from error
    except (Exception, SystemExit) as error:
        raise UnreadableFile(f"{name} must be importable, but: {in_one_line(error)}") from error


def load_file(path: Path) -> ModuleType:
    """The module in a file."""
    return load_text(read_text(path), str(path.resolve()))

"""Modules made from a text, which may have come from another process."""

import sys
from hashlib import sha256
from operator import attrgetter
from types import ModuleType
from typing import Any

from paceline.errors import UnreadableFile, in_one_line

PREFIX = "paceline_policy_"  # of the names under which files are loaded


def load_text(text: str, file: str) -> ModuleType:
    """The module that a text makes; the same text is the same module."""
    name = PREFIX + sha256(f"{file}\0{text}".encode()).hexdigest()[:16]
    if name in sys.modules:
        return sys.modules[name]
    module = ModuleType(name)
    module.__file__ = file
    module.__dict__["__source__"] = text
    sys.modules[name] = module
    try:
        exec(compile(text, file, "exec"), module.__dict__)
    except BaseException as error:
        del sys.modules[name]  # half of it
        if isinstance(error, KeyboardInterrupt):
            raise
        raise UnreadableFile(f"{file} must run, but: {in_one_line(error)}") from error
    return module


def place_of(kind: type) -> str:
    """Where a class is, as its author wrote it: file.py:Class for one from a text, else module:Class.

    >>> place_of(ModuleType)
    'builtins:module'
    """
    module = sys.modules.get(kind.__module__)
    where = getattr(module, "__file__", "") if hasattr(module, "__source__") else kind.__module__
    return f"{where}:{kind.__qualname__}"


def rebuild(text: str, file: str, name: str) -> Any:
    """An empty object of a class from a file, in another process; what it keeps may be of other classes of the file."""
    return object.__new__(attrgetter(name)(load_text(text, file)))


class FromText:
    """Base of what users derive from: an object of a class from a file is sent with the text of the file.

    Whoever receives it may not have the file.
    """

    def __reduce_ex__(self, protocol: Any) -> Any:
        module = sys.modules.get(type(self).__module__)
        text = getattr(module, "__source__", None)
        if text is None:
            return super().__reduce_ex__(protocol)
        return rebuild, (text, getattr(module, "__file__", ""), type(self).__qualname__), self.__getstate__()

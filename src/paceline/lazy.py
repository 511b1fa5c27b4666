"""Names of a package that are loaded when they are first used, and listed once: in its stub."""

import sys
from collections.abc import Callable
from importlib import import_module


def attach_stub(package: str, file: str) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package whose names are those of the stub beside its ``file``.

    A line of the stub that counts is  from .MODULE import NAME as NAME,  which type checkers and editors read, too.

    >>> load, names, listed = attach_stub("paceline", sys.modules["paceline"].__file__)
    >>> "Bandit" in listed, load("Bandit").__name__
    (True, 'Bandit')
    """
    with open(f"{file}i", encoding="utf-8") as stub:
        modules = {words[-1]: words[1] for words in map(str.split, stub) if words[:1] == ["from"]}

    def load(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = modules[name]
        value = import_module(f".{name}", package) if module == "." else getattr(import_module(module, package), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: sorted(modules), sorted(modules)

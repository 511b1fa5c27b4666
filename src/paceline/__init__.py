"""Bandits with anytime knapsacks: choose among options of unknown reward and cost, never above the budget line.

The public names are listed once, in ``__init__.pyi``, where editors and type checkers read them. Each is loaded when it
is first used, so that ``paceline --help`` need not wait for a compiler.
"""

from importlib import import_module

__version__ = "0.1.0"

with open(f"{__file__}i", encoding="utf-8") as _stub:  # each line there: from .MODULE import NAME as NAME
    _MODULES = {words[-1]: words[1] for words in map(str.split, _stub) if words[:1] == ["from"]}

__all__ = sorted(_MODULES)  # noqa: PLE0605


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _MODULES[name]
    value = import_module(f".{name}", __name__) if module == "." else getattr(import_module(module, __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]

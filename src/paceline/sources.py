"""The user's own files behind a module: its own, and those of the modules that it imports, and so on.

Files of Python, of installed packages and of paceline are left out: versions stand for them.
"""

import ast
import importlib.util
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).parent
LIBRARIES = {PACKAGE, *(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib"))}
INSTALLED = {"site-packages", "dist-packages"}


class Source(NamedTuple):
    """What a module was made from, and the package that its relative imports begin at."""

    content: bytes
    package: str


def own_sources(modules: Iterable[str]) -> set[str]:
    """Digests of the files of these modules and of all that they import, as far as they are the user's own.

    >>> own_sources(["json", "numpy", "paceline.sources"])
    set()
    """
    waiting, seen, found = list(modules), set[str](), set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        source = source_of(name)
        if source is not None:
            found.add(sha256(source.content).hexdigest())
            waiting += imports_in(source)
    return found


def source_of(name: str) -> Source | None:
    """The source of a module that is the user's own."""
    module = sys.modules.get(name)
    text = getattr(module, "__source__", None)  # see text_modules.py
    if text is not None:
        return Source(text.encode(), "")
    if module is not None:
        file, package = getattr(module, "__file__", None), getattr(module, "__package__", None)
    else:
        file, package = looked_for(name)
    if file is None or not is_own(Path(file)):
        return None
    with suppress(OSError):
        return Source(Path(file).read_bytes(), package or "")
    return None


def looked_for(name: str) -> tuple[str | None, str | None]:
    """The file and the package of a module that nobody has imported yet, as those in functions may be."""
    top, dot, _ = name.partition(".")
    if dot and source_of(top) is None:  # to look inside a package is to import it
        return None, None
    with suppress(Exception):
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.has_location:
            return spec.origin, spec.parent
    return None, None


def is_own(file: Path) -> bool:
    """Whether a file is neither Python's nor an installed package's."""
    path = file.resolve()
    return not INSTALLED & set(path.parts) and not any(path.is_relative_to(folder) for folder in LIBRARIES)


def imports_in(source: Source) -> Iterator[str]:
    """Names of modules that a text imports; some of them may be names of other things in these modules."""
    try:
        nodes = list(ast.walk(ast.parse(source.content)))
    except (SyntaxError, ValueError):  # machine code
        return
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from with_parents(alias.name)
        elif isinstance(node, ast.ImportFrom):
            with suppress(ImportError):  # beyond the top of a package
                base = importlib.util.resolve_name("." * node.level + (node.module or ""), source.package)
                yield from with_parents(base)
                yield from (f"{base}.{alias.name}" for alias in node.names)


def with_parents(name: str) -> Iterator[str]:
    """A dotted name, and those of the packages that it is in.

    >>> list(with_parents("a.b.c"))
    ['a', 'a.b', 'a.b.c']
    """
    parts = name.split(".")
    return (".".join(parts[: count + 1]) for count in range(len(parts)))

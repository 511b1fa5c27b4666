"""A real virtual environment with what some extras of paceline bring and nothing else, made without a network.

The packages are those that are installed here; links to them stand in the site-packages of the new environment, as far
as pyproject.toml asks for them, directly or through what they ask for.
"""

import os
import subprocess
import sysconfig
import tomllib
import venv
from functools import cached_property
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

import paceline

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def asked_for(lines: list[str], extras: frozenset[str] = frozenset({""})) -> list[Requirement]:
    """The requirements among these lines that hold here, with these extras chosen."""
    requirements = map(Requirement, lines)
    return [
        each for each in requirements if each.marker is None or any(each.marker.evaluate({"extra": e}) for e in extras)
    ]


def needed(*extras: str) -> set[str]:
    """Names of the distributions that ``pip install "paceline[extras]"`` installs."""
    waiting = asked_for(PROJECT["dependencies"])
    for extra in extras:
        waiting += asked_for(PROJECT["optional-dependencies"][extra])
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        one = waiting.pop()
        key = (one.name, frozenset({"", *one.extras}))
        if key not in seen:
            seen.add(key)
            waiting += asked_for(metadata.requires(one.name) or [], key[1])
    return {name for name, _ in seen}


class Slim:
    """The environment, and a way to run Python in it."""

    def __init__(self, folder: Path, *extras: str) -> None:
        self.folder = folder
        venv.create(folder, with_pip=False, symlinks=True)
        for name in needed(*extras):
            self.link(metadata.distribution(name))
        self.link(metadata.distribution("paceline"), only=".dist-info")
        (self.site / "paceline").symlink_to(Path(paceline.__file__).parent)

    def link(self, distribution: metadata.Distribution, only: str = "") -> None:
        """Its folders and files beside the others, or those whose names end so."""
        for entry in {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
            if entry.endswith(only) and not (self.site / entry).exists():
                (self.site / entry).symlink_to(Path(str(distribution.locate_file(entry))))

    @cached_property
    def site(self) -> Path:
        """Where its packages are."""
        return Path(sysconfig.get_path("purelib", "venv", {"base": str(self.folder), "platbase": str(self.folder)}))

    def command(self, *arguments: object) -> list[str]:
        """Python with these arguments."""
        return [str(self.folder / "bin" / "python"), *map(str, arguments)]

    @cached_property
    def environment(self) -> dict[str, str]:
        """Variables of a process in it: no path leads elsewhere."""
        return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}

    def run(self, *arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run Python to its end."""
        return subprocess.run(
            self.command(*arguments),
            cwd=cwd,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

"""Python code in another process, which can import the modules of the tests."""

import os
import subprocess
import sys
from pathlib import Path


def command(code: str, *arguments: object) -> list[str]:
    return [sys.executable, "-W", "error", "-c", code, *map(str, arguments)]


def environment(**changes: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]), **changes}


def run(code: str, *arguments: object, **changes: str) -> list[str]:
    """The lines that it prints, in an environment with these changes; it must end well."""
    ran = subprocess.run(
        command(code, *arguments), capture_output=True, check=False, text=True, env=environment(**changes), timeout=300
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def killed_after(lines: int, code: str, *arguments: object) -> list[str]:
    """The lines of a process that is killed, in the middle of its work, when it has printed so many."""
    with subprocess.Popen(command(code, *arguments), stdout=subprocess.PIPE, text=True, env=environment()) as process:
        try:
            printed = [process.stdout.readline() for _ in range(lines)]
        finally:
            process.kill()
        printed += process.stdout.readlines()
    assert printed[lines - 1], "it ended before it was killed"
    return [line for line in printed if line.endswith("\n")]

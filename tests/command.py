"""The command ``paceline``, called as a user calls it: a real process."""

import os
import subprocess
import sysconfig
from pathlib import Path

SCRIPT = Path(sysconfig.get_path("scripts")) / "paceline"
# As for a user: output to a pipe is buffered, and help is as wide as a usual terminal.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"} | {"COLUMNS": "80"}


def call(*arguments: object, **keywords: object) -> subprocess.CompletedProcess[str]:
    """Run ``paceline`` to its end."""
    settings = {"capture_output": True, "text": True, "timeout": 300, "env": ENVIRONMENT, **keywords}
    return subprocess.run([str(SCRIPT), *map(str, arguments)], check=False, **settings)


def succeeded(*arguments: object, **keywords: object) -> str:
    """What a successful call prints on standard output."""
    done = call(*arguments, **keywords)
    assert done.returncode == 0, done.stderr
    return done.stdout

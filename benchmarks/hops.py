"""How many functions and files of paceline a command passes through: what a reader must follow to understand it.

Every function of the package that is called while the command runs counts once, in any thread of this process; what a
module does when it is imported does not count, and neither do expressions inside a function.
"""

import sys
import threading
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType

import paceline
from benchmarks.turns import line
from paceline import cli

PACKAGE = str(Path(paceline.__file__).parent)
EXPERIMENT = """\
rounds = 300
trials = 3
checkpoints = 4
policies = ["suak", "uniform"]
[[problem]]
family = "beta"
size = 2
"""
TARGETS = {"run": "at most 150 in 30", "report": "at most 131 in 20", "compare": "at most 85 in 19"}


def hops(*arguments: str) -> tuple[int, int]:
    """Functions called and files that they are in."""
    seen: set[CodeType] = set()

    def called(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            seen.add(frame.f_code)

    threading.setprofile(called)
    sys.setprofile(called)
    try:
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            code = cli.main(list(arguments))
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    if code:
        raise SystemExit(f"paceline {' '.join(arguments)} failed")
    own = {(each.co_filename, each.co_qualname) for each in seen if each.co_filename.startswith(PACKAGE)}
    functions = {(file, name) for file, name in own if not name.endswith(">")}
    return len(functions), len({file for file, _ in functions})


def main() -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "small.toml"
        file.write_text(EXPERIMENT, encoding="utf-8")
        out = str(Path(folder) / "small")
        sizes = ("--problems", "2", "--rounds", "300", "--trials", "3", "--policies", "suak,uniform")
        commands = {
            "run": ("run", str(file), "--out", out),
            "report": ("report", out),
            "compare": ("compare", "beta", *sizes, "--out", str(Path(folder) / "compared")),
        }
        for name, arguments in commands.items():
            functions, files = hops(*arguments)
            line(f"paceline {name}", f"{functions} functions in {files} files", TARGETS[name])


if __name__ == "__main__":
    main()

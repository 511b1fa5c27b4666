"""How many functions and files of paceline a command passes through: what a reader must follow to understand it.

Every function of the package that is called while the command runs counts once, in any thread of this process. The
command has run before, so that what modules do when they are imported does not count; expressions inside a function do
not either. The pipeline is what is its own: the command line, experiments, reports and the paper; the rest is
problems, policies, the engine and statistics, which every command needs.
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

PIPELINE = ("cli", "experiments", "reports", "paper")
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


Functions = set[tuple[str, str]]  # by file


def hops(*arguments: str) -> Functions:
    """Functions called."""
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
    return {(file, name) for file, name in own if not name.endswith(">")}


def told(functions: Functions) -> str:
    """How many in how many files, and of the pipeline itself."""
    rooms = tuple(f"{PACKAGE}/{room}/" for room in PIPELINE)
    own = {(file, name) for file, name in functions if file.startswith(rooms)}
    counts = [f"{len(found)} in {len({file for file, _ in found})} files" for found in (functions, own)]
    return f"{counts[0]}, {counts[1]} of the pipeline"


def main() -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "small.toml"
        file.write_text(EXPERIMENT, encoding="utf-8")
        sizes = ("--problems", "2", "--rounds", "300", "--trials", "3", "--policies", "suak,uniform")
        for turn in ("first", "second"):
            out = str(Path(folder) / turn)
            commands = {
                "run": ("run", str(file), "--out", out),
                "report": ("report", out),
                "compare": ("compare", "beta", *sizes, "--out", f"{out}-compared"),
            }
            for name, arguments in commands.items():
                functions = hops(*arguments)
                if turn == "second":
                    line(f"paceline {name}", told(functions), TARGETS[name])


if __name__ == "__main__":
    main()

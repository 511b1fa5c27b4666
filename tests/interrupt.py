"""Ctrl-C in the middle of work: for a real process, or at a chosen line of the live object."""

import signal
import subprocess
import sys
from types import FrameType
from typing import Any

# A shell makes its background processes ignore interrupts, and they hand that on to their children. Undo it.
INTERRUPTIBLE = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""


def interrupted(arguments: list[str], patience: float, **options: object) -> tuple[int, bytes, bytes]:
    """Exit code and output of a process that gets an interrupt as soon as its progress bar appears."""
    command = [sys.executable, "-c", INTERRUPTIBLE, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options) as process:
        try:
            shown = b""
            while b"%" not in shown:  # the bar appears when all is compiled and the trials begin
                letter = process.stderr.read(1)
                assert letter, f"ended before it began: {shown!r}"
                shown += letter
            process.send_signal(signal.SIGINT)
            out, rest = process.communicate(timeout=patience)
        finally:
            process.kill()
    return process.returncode, out, rest


class Interrupter:
    """Ctrl-C at the n-th line that runs in the live object or other files; a real one may be held back for a while."""

    def __init__(
        self, line: int, real: bool = False, files: str = "/paceline/live/", number: int = signal.SIGINT
    ) -> None:
        self.left = line
        self.real, self.files, self.number = real, files, number

    def __call__(self, frame: FrameType, event: str, _: object) -> Any:
        if self.files not in frame.f_code.co_filename:
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0 and self.real:
                signal.raise_signal(self.number)
            elif self.left == 0:
                raise KeyboardInterrupt
        return self

    def __enter__(self) -> None:
        self.before = sys.gettrace()
        sys.settrace(self)

    def __exit__(self, *_: object) -> None:
        sys.settrace(self.before)

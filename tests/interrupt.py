"""Ctrl-C for a real process in the middle of its work."""

import signal
import subprocess
import sys

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

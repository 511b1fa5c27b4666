"""Peak memory of the paper's 8-arm experiment, 10 trials of 2,500,000 rounds, in a process of its own."""

import subprocess
import sys

from benchmarks.turns import line

# Of Linux: the peak of getrusage would be that of the process that started this one, if that is larger.
SCRIPT = """
from pathlib import Path
from paceline import reproduce
reproduce(2)
(peak,) = (line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(peak)
"""


def main() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True)
    line("peak resident memory", f"{int(done.stdout) / 1024:.0f} MB", "under 500 MB")


if __name__ == "__main__":
    main()

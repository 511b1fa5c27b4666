"""Peak memory of the paper's 8-arm experiment, 10 trials of 2,500,000 rounds, in a process of its own."""

import subprocess
import sys

from benchmarks.turns import line

SCRIPT = """
import resource
from paceline.lab.reproduce import reproduce
reproduce(2)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def main() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True)
    line("peak resident memory", f"{int(done.stdout) / 1024:.0f} MB", "under 500 MB")


if __name__ == "__main__":
    main()

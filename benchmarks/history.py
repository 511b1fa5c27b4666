"""A round that is written down over one that is not; and memory while ten million rounds are streamed to a file."""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import paceline as pl
from benchmarks.play import Play
from benchmarks.turns import fastest, line
from paceline.kernels.page import new_page
from paceline.policies import make_policy

ROUNDS = 2**16
POLICIES = ("uniform", "index", "thompson")

# Of Linux, as in memory.py. The first run compiles, and has all libraries loaded.
SCRIPT = """
import sys
from pathlib import Path
import paceline as pl

def peak():
    (found,) = (line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line[:5] == "VmHWM")
    return int(found)

folder, rounds = Path(sys.argv[1]), int(sys.argv[2])
play = dict(problem=pl.paper.eight_arms(), policies="index", trials=1, record="all")
pl.simulate(**play, rounds=200_000, record_to=folder / "short")
before = peak()
pl.simulate(**play, rounds=rounds, record_to=folder / "long")
print(before, peak(), (folder / "long" / "0-0.parquet").stat().st_size)
"""
LONG = 10_000_000


def main() -> None:
    problem, page = pl.paper.eight_arms(), new_page(ROUNDS, 1)
    plain = {name: Play(problem, make_policy(name), 100_000_000) for name in POLICIES}
    written = {name: Play(problem, make_policy(name), 100_000_000, page) for name in POLICIES}

    def write(play: Play) -> None:
        page.rounds[:], page.written[0] = np.arange(play.played + 1, play.played + 1 + ROUNDS), 0
        play.rounds(ROUNDS)

    for play in (*plain.values(), *written.values()):
        play.rounds(ROUNDS)
    contestants = {name: lambda play=play: play.rounds(ROUNDS) for name, play in plain.items()}
    contestants |= {f"{name}, written": lambda play=play: write(play) for name, play in written.items()}
    seconds = fastest(contestants, turns=15)
    for name in POLICIES:
        line(f"{name}: written over not written", f"{seconds[f'{name}, written'] / seconds[name]:.2f}")
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-c", SCRIPT, folder, str(LONG)]
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parent)
    before, after, size = map(int, done.stdout.split())
    line(f"peak memory, {LONG:,} rounds over 200,000", f"{(after - before) / 1024:+.0f} MB", "under 20 MB")
    line("file, bytes per round", f"{size / LONG:.1f}")


if __name__ == "__main__":
    main()

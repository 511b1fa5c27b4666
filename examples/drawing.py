"""What the examples share: the folder for the figure, the style of all of paceline's figures, and stacked counts."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from paceline.reports.figures import COLOURS, STYLE

BLUE, RED, GREEN, PINK, ORANGE, SKY, BLACK = COLOURS
GREY, PALE = "#777777", "#dddddd"
WIDTH = 7.2  # inches


def folder(story: str | None) -> Path:
    """The folder that ``--out`` names; the first line of ``story`` is what ``--help`` says."""
    parser = argparse.ArgumentParser(description=(story or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path(), help="folder for the figure (default: this one)")
    out: Path = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    return out


@contextmanager
def picture(path: Path, height: float, message: str) -> Iterator[Figure]:
    """A figure to draw on, with its message on top; it is written at the end."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, height))
        figure.suptitle(message, x=0.01, ha="left", fontsize=11, fontweight="bold")
        yield figure
        figure.savefig(path)
    print(f"figure: {path.name}")


def stack(
    axes: Axes,
    times: npt.ArrayLike,
    choices: Sequence[str | None],
    colours: Mapping[str, str],
    edges: npt.NDArray[np.float64],
) -> None:
    """How often each choice was made between two edges of time, one on top of the other; sitting out is below."""
    names = np.array([choice or "none" for choice in choices])
    base = np.zeros(edges.size - 1)
    for name, colour in {"none": PALE, **colours}.items():
        counts, _ = np.histogram(np.asarray(times)[names == name], edges)
        axes.stairs(base + counts, edges, baseline=base, fill=True, color=colour, label=name)
        base = base + counts
    axes.set(xlim=(edges[0], edges[-1]), ylim=0)
    axes.grid(visible=False)


def legend_right(axes: Axes) -> None:
    """A legend beside the panel, in the order of the stack from top to bottom."""
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles[::-1], labels[::-1], loc="center left", bbox_to_anchor=(1.0, 0.5))

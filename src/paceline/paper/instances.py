"""The paper's two problems, and the experiments on them, which are files beside this one."""

from pathlib import Path
from typing import Any

from paceline.problems.problem import Problem
from paceline.problems.toml import read_toml


def three_arms() -> Problem:
    """The problem of Figure 1: r* = 0.59, base (arm 3, arm 1), weight 0.4 on arm 3.

    >>> round(three_arms().optimum.value, 12)
    0.59
    """
    return Problem.beta([0.45, 0.7, 0.8], [0.3, 0.75, 0.8], budget=0.5, concentration=10.0)


def eight_arms() -> Problem:
    """The problem of Figure 2: r* = 0.65, base (arm 6, arm 2), weight 4/9 on arm 6; the next base is 0.005 worse.

    >>> round(eight_arms().optimum.value, 12)
    0.65
    """
    return Problem.beta(
        [0.35, 0.45, 0.52, 0.72, 0.84, 0.9, 0.92, 0.9],
        [0.25, 0.3, 0.4, 0.6, 0.7, 0.75, 0.8, 0.85],
        budget=0.5,
        concentration=10.0,
    )


PAPERS = {"three-arms": three_arms, "eight-arms": eight_arms}  # as experiment files call them


def figure_file(figure: int) -> dict[str, Any]:
    """The experiment of Figure 1 or 2, at the paper's scale; the file of Figure 2 has only in what it differs.

    >>> figure_file(1)["rounds"], figure_file(2)["rounds"], len(figure_file(2)["policy"])
    (500000, 2500000, 13)
    """
    first, own = (read_toml(Path(__file__).with_name(f"figure{number}.toml")) for number in (1, figure))
    return first | own

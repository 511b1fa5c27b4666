"""The report of a comparison: compare.md for people, compare.json for programs."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from paceline import __version__
from paceline.experiments.arena import Arena
from paceline.experiments.scores import NOISE
from paceline.problems.families import KINDS
from paceline.statistics import FLOOR, RESAMPLES

LEGEND = f"""\
All policies play the same random numbers. Regret is steady regret (pseudo-regret without the luck of costs) at the last
round. The limit is the yardstick  log T · Σ gap / KL  of Lai and Robbins, carried over: it is asymptotic, and not a
theorem for this problem; in short runs a good policy is below it.

- **regret / limit**: geometric mean over problems of mean regret / limit; in brackets the 95 % interval over
  {RESAMPLES:,} resamples of problems and of trials within them, the same for all policies.
- **reference / policy**: the same of the reference's regret / the policy's: how many times less the policy loses.
- **won**: problems on which the policy's mean regret is the lowest. **better**, **worse**: problems on which it differs
  from the reference by more than {NOISE:g} standard errors of the paired differences.
- **min headroom**: the smallest budget · t minus money spent, of all rounds of all runs and of all resources; never
  below 0.
- **wrong arms**, **idle**, **unspent**: regret / limit by cause, plain means over problems.

A mean regret below {FLOOR:g} counts as {FLOOR:g} in geometric means.
"""


def write_report(arenas: Sequence[Arena], folder: Path) -> None:
    """Write compare.md and compare.json; the figures are beside them."""
    lines = ["# Policies compared", "", LEGEND]
    for arena in arenas:
        lines += [
            f"## {arena.title}: {KINDS[arena.title]}",
            "",
            f"{arena.size}. Reference: {arena.reference()}.",
            "",
            f"![{arena.title}](compare-{arena.title}.png)",
            "",
            arena.table().to_markdown(),
            "",
            "Mean steady regret on each problem:",
            "",
            arena.by_problem().to_markdown(),
            "",
        ]
    (folder / "compare.md").write_text("\n".join(lines), encoding="utf-8")
    data = {"version": __version__, "kinds": {arena.title: as_data(arena) for arena in arenas}}
    (folder / "compare.json").write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


def as_data(arena: Arena) -> dict[str, object]:
    """One kind as plain data."""
    return {
        "rounds": int(arena.rounds[-1]),
        "trials": arena.trials,
        "seed": arena.seed,
        "reference": arena.reference(),
        "policies": {
            score.label: {"policy": arena.results[0][score.label].policy, **asdict(score)} for score in arena.scores()
        },
        "problems": [
            {
                "problem": res.problem.to_dict(),
                "case": res.problem.optimum_over(int(res.rounds[-1])).case,
                "limit": float(limit),
                "steady_regret": {label: float(run.steady_regret[:, -1].mean()) for label, run in res.items()},
            }
            for res, limit in zip(arena.results, arena.limits[:, -1], strict=True)
        ],
    }

"""The report of a comparison: compare.md for people, compare.json for programs."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from paceline import __version__
from paceline.experiments.arena import Arena
from paceline.experiments.scores import CAPPED
from paceline.experiments.standings import losses_at, standings
from paceline.problems.families import KINDS
from paceline.statistics import FLOOR, SIGMAS, noise

LEGEND = f"""\
All policies play the same random numbers. Regret is steady regret (pseudo-regret without the luck of costs) at the last
round. The limit is the yardstick  log T · Σ gap / KL  of Lai and Robbins, carried over: it is asymptotic, and not a
theorem for this problem; in short runs a good policy is below it. It never exceeds what there is to lose; where the
bare formula does ({CAPPED}), regret / limit says little.

- **regret / limit**: geometric mean over problems of mean regret / limit; in brackets the 95 % interval of Student's t
  over problems. It is one for all problems of the kind, not for these alone, so the spread between problems counts.
- **reference / policy**: the same of the reference's regret / the policy's: how many times less the policy loses. The
  ratio is taken on each problem, where both played the same draws.
- **won**, **lost**, **drawn**: problems on which the policy's mean regret is below that of every other policy by more
  than noise; on which some other policy's is below its own; all others. **better**, **worse**: problems on which it
  differs from the reference. More than noise are {SIGMAS:g} standard errors of the paired differences when there are
  many trials, and as many as Student's t asks for in their place when there are few ({{noise}}).
- **min headroom**: the smallest budget · t minus money spent, of all rounds of all runs and of all resources; never
  below 0.
- **wrong arms**, **idle**, **unspent**: regret / limit by cause, plain means over problems.

A mean regret below {FLOOR:g} counts as {FLOOR:g} in geometric means.
"""


def legend(trials: int) -> str:
    """What the columns mean."""
    needed = "here there is one: all is drawn" if trials == 1 else f"here {noise(trials):.1f}"
    return LEGEND.format(noise=needed)


def write_report(arenas: Sequence[Arena], folder: Path, horizons: Sequence[int] = ()) -> None:
    """Write compare.md and compare.json; the figures are beside them."""
    lines = ["# Policies compared", "", legend(arenas[0].trials)]
    if horizons:
        lines += ["## Every policy beside the best", "", standings(arenas, horizons).to_markdown(), ""]
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
    data = {"version": __version__, "kinds": {arena.title: as_data(arena, horizons) for arena in arenas}}
    (folder / "compare.json").write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


def as_data(arena: Arena, horizons: Sequence[int]) -> dict[str, object]:
    """One kind as plain data."""
    return {
        "rounds": int(arena.rounds[-1]),
        "trials": arena.trials,
        "seed": arena.seed,
        "late": arena.late,
        "reference": arena.reference(),
        "over_best": {
            str(horizon): {label: finite(asdict(loss)) for label, loss in losses_at(arena, horizon).items()}
            for horizon in horizons
            if horizon <= arena.rounds[-1]
        },
        "policies": {
            score.label: {"policy": arena.results[0][score.label].policy, **finite(asdict(score))}
            for score in arena.scores()
        },
        "problems": [
            {
                "problem": res.problem.to_dict(),
                "case": res.problem.optimum_over(int(res.rounds[-1])).case,
                "limit": float(limit),
                "limit_capped": capped,
                "steady_regret": {label: float(run.steady_regret[:, -1].mean()) for label, run in res.items()},
            }
            for res, limit, capped in zip(arena.results, arena.limits[:, -1], arena.capped, strict=True)
        ],
    }


def finite(data: Any) -> Any:
    """Plain data without infinity, which JSON does not know: an interval without an end has none.

    >>> finite({"low": 0.5, "high": float("inf")})
    {'low': 0.5, 'high': None}
    """
    if isinstance(data, dict):
        return {key: finite(value) for key, value in data.items()}
    return None if isinstance(data, float) and not math.isfinite(data) else data

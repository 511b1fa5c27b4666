"""One of the paper's figures as it was run again: drawn as there, its claims checked, its numbers for programs."""

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from paceline.paper.claims import (
    CLAIMS,
    EPSILON,
    GREEDY,
    INDEX,
    OPS,
    OPS_TWO,
    PDS,
    SUAK,
    SUAK_FIRST,
    THOMPSON,
    USS,
    USS_FIVE,
    Claim,
    times_less,
)
from paceline.reports.tables import Table, mean_and_interval
from paceline.simulation.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawn

    from paceline.reports.figures import Image

PAPER = (SUAK, OPS, PDS, USS)
# What the figures show of other constants and orders: in the panel of the regret, in its close-up, of the average cost.
REGRET_OF, CLOSE_UP_OF, COST_OF = {USS: USS_FIVE}, {OPS: OPS_TWO}, {SUAK: SUAK_FIRST}
OTHERS = (INDEX, THOMPSON, EPSILON, GREEDY)
EVENTS = {
    "guard_skips": "R_a, guard skips",
    "classification_pulls": "R_b, classification pulls",
    "classification_skips": "R_c, classification skips",
    "base_rounds": "R_d, base rounds",
}
CAUSES = {"wrong_arms": "wrong arms", "idle": "idle", "unspent": "unspent", "cost_luck": "luck of costs"}
QUANTITIES = ("regret", "pseudo_regret", "steady_regret", "skips", "idle", "spent")


@dataclass(frozen=True)
class Figure:
    """Figure 1 or 2, by its number."""

    number: int
    results: Results

    @cached_property
    def claims(self) -> tuple[Claim, ...]:
        """What the paper says of it."""
        return tuple(check(self.results.runs) for check in CLAIMS[self.number])

    @property
    def title(self) -> str:
        """What the drawing shows."""
        return (
            f"{self.results.problem.arms} arms, {self.results.trials} trials; bands: 95 % intervals; dashed colours: "
            "another constant or order; black and grey: not in the paper"
        )

    @property
    def told(self) -> str:
        """How the policies that the paper does not have compare."""
        return times_less(self.results.runs)

    @cached_property
    def drawing(self) -> "Drawn":
        """The paper's panels."""
        from paceline.reports.figures import paper_figure

        results = self.results
        of_regret, of_close_up, of_cost = (
            {label: results[other] for label, other in chosen.items()} for chosen in (REGRET_OF, CLOSE_UP_OF, COST_OF)
        )
        own, others = ({label: results[label] for label in labels} for labels in (PAPER, OTHERS))
        return paper_figure(own, of_regret, of_close_up, of_cost, others, self.title)

    @cached_property
    def image(self) -> "Image":
        """For pages and for papers."""
        from paceline.reports.figures import in_formats

        return in_formats(self.drawing)

    @property
    def png(self) -> bytes:
        """For everything else."""
        content = io.BytesIO()
        self.drawing.savefig(content, format="png", dpi=200)
        return content.getvalue()

    def breakdown(self) -> Table:
        """Where each policy's pseudo-regret comes from."""
        rows = tuple(
            (label, *(mean_and_interval(run.breakdown()[cause][:, -1]) for cause in CAUSES))
            for label, run in self.results.items()
        )
        return Table(("policy", *CAUSES.values()), rows)

    def events(self) -> Table:
        """SUAK by the events of the paper's proof."""
        run = self.results[SUAK]
        rounds, regret = run.rounds_by_event(), run.regret_by_event()
        rows = (
            (name, mean_and_interval(rounds[event][:, -1]), mean_and_interval(regret[event][:, -1]))
            for event, name in EVENTS.items()
        )
        return Table(("SUAK by event", "rounds", "regret"), tuple(rows))


def claims_table(claims: Iterable[Claim]) -> Table:
    """Every claim beside what was measured."""
    rows = ((f"Figure {claim.figure}: {claim.says}", claim.measured, claim.verdict) for claim in claims)
    return Table(("The paper says", "Measured", "Holds"), tuple(rows))


def as_json(found: Sequence[tuple[Mapping[str, Any], Figure]]) -> str:
    """All of it for programs; with each figure comes the manifest of its run."""
    data = {
        "versions": found[0][0]["versions"],
        "claims": [{**asdict(claim), "verdict": claim.verdict} for _, figure in found for claim in figure.claims],
        "figures": [
            {
                "figure": figure.number,
                "problem": figure.results.problem.to_dict(),
                "rounds": int(figure.results.rounds[-1]),
                "trials": figure.results.trials,
                "seed": figure.results.seed,
                "first_stream": manifest["experiment"]["problems"][0]["stream"],
                "seconds": round(sum(spell["seconds"] for spell in manifest["spells"]), 1),
                "policies": {
                    label: {
                        "policy": run.policy,
                        **{
                            name: {"mean": float(ends.mean()), "deviation": float(ends.std())}
                            for name in QUANTITIES
                            for ends in [getattr(run, name)[:, -1]]
                        },
                        "min_headroom": float(run.min_headroom.min()),
                    }
                    for label, run in figure.results.items()
                },
            }
            for manifest, figure in found
        ],
    }
    return json.dumps(data, indent=2) + "\n"

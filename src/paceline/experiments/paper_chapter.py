"""The paper's figures as they were run again: drawn as there, the claims checked, the numbers for programs."""

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paceline.experiments.chapters import Chapter
from paceline.experiments.plan import counted
from paceline.experiments.study import Study
from paceline.paper.claims import (
    CLAIMS,
    EPSILON,
    GREEDY,
    INDEX,
    OPS,
    OPS_LATER,
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
from paceline.paper.instances import PAPERS, figure_file
from paceline.policies import POLICIES
from paceline.reports.page import Drawing, Figures, Section, Tabled, Words
from paceline.reports.tables import Table, mean_and_interval
from paceline.simulation.results import Results, list_names
from paceline.statistics import noise

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawn

    from paceline.reports.figures import Image

PAPER = (SUAK, OPS, PDS, USS)
OTHERS = (INDEX, THOMPSON, EPSILON, GREEDY)
# The paper's panels, with what they show of other constants and orders. The first is of steady regret: without the luck
# of outcomes, which is all that could be seen of the best. The others all keep the same small distance from the line.
PANELS: tuple[tuple[Any, ...], ...] = (
    ("Steady regret", "steady_regret", PAPER, {USS: USS_FIVE}, OTHERS),
    ("Regret, SUAK and OPS", "regret", (SUAK, OPS), {OPS: OPS_TWO}),
    ("Skipped rounds", "skips", PAPER, {}, OTHERS),
    ("$c$ minus average cost", "slack", PAPER, {SUAK: SUAK_FIRST}, OTHERS[:1]),
)
EVENTS = {
    "guard_skips": "R_a, guard skips",
    "classification_pulls": "R_b, classification pulls",
    "classification_skips": "R_c, classification skips",
    "base_rounds": "R_d, base rounds",
}
CAUSES = {"wrong_arms": "wrong arms", "idle": "idle", "unspent": "unspent", "cost_luck": "luck of costs"}
SAME = (
    f"The rows of {OPS} and of {OPS_LATER!r} are the same: what the skipped rounds save is spent at once, and by then "
    "both have made the same pulls, with the same draws, and go on alike at the line."
)
ENOUGH = 6  # trials; of fewer a difference asks for so many standard errors that it hardly ever is more than noise
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
    def told(self) -> list[str]:
        """How the policies that the paper does not have compare, and why two rows may be the same."""
        runs = self.results.runs
        same = bool((runs[OPS].pulls == runs[OPS_LATER].pulls).all())  # and so are the draws, all that is measured
        return [times_less(runs), *([SAME] if same else [])]

    @cached_property
    def drawing(self) -> "Drawn":
        """The paper's panels."""
        from paceline.reports.figures import PaperPanel, paper_figure

        title = (
            f"{self.results.problem.arms} arms, {self.results.trials} trials; bands: 95 % intervals; dashed colours: "
            "another constant or order; thin lines without colour: not in the paper"
        )
        return paper_figure(self.results, [PaperPanel(*each) for each in PANELS], title)

    @cached_property
    def image(self) -> "Image":
        """The same in all formats."""
        from paceline.reports.figures import in_formats

        return in_formats(self.drawing, png=True)

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


def number_of(study: Study) -> int:
    """Which figure its file names."""
    return int(study.manifest["file"]["report"].removeprefix("figure"))


class PaperChapter(Chapter):
    """The claims of the paper, its figures, and report.json. The file of a study names its figure: figure1, figure2."""

    title = "The paper's experiments, run again"
    source = (
        "The paper: Eray Can Elumar, Cem Tekin, Osman Yağan, Bandits with Anytime Knapsacks, 2025, "
        "https://arxiv.org/abs/2501.18560"
    )

    @cached_property
    def figures(self) -> dict[Path, Figure]:
        """By the folder of the study."""
        return {study.path: Figure(number_of(study), study[study.names[0]]) for study in self.studies}

    @cached_property
    def claims(self) -> list[Claim]:
        """Of all figures."""
        return [claim for figure in self.figures.values() for claim in figure.claims]

    def refusal(self) -> str:
        """The claims are about the paper's policies on the paper's problems; further ones may stand beside them."""
        for study in self.studies:
            number = number_of(study)
            papers = figure_file(number)
            # By class: a later version may have more parameters than the one that played.
            own = {entry["label"]: entry["policy"].partition("(")[0] for entry in study.experiment["policies"]}
            wanted = {entry["label"]: POLICIES[entry["name"]].__name__ for entry in papers["policy"]}
            lacking = [label for label, kind in wanted.items() if own.get(label) != kind]
            (problem,) = papers["problem"]
            if study.problems[0] != PAPERS[problem["paper"]]():
                lacking.append(f"its problem {problem['name']!r} as the first")
            if lacking:
                return (
                    f"{study.name} must have all that `paceline reproduce --figure {number} --show` prints, but lacks "
                    + list_names(lacking, 3)
                )
        return ""

    def opening(self) -> list[Section]:
        """Every claim beside what was measured, and how the policies that the paper does not have compare."""
        rows = ((f"Figure {each.figure}: {each.says}", each.measured, each.verdict) for each in self.claims)
        claims = Table(("The paper says", "Measured", "Holds"), tuple(rows))
        caption = (
            "Each claim beside what was measured [95 % interval]. Regret is the paper's here, with the luck of rewards "
            "and costs in it; steady regret, further down, is without. To hold or to fail, a difference in regret must "
            "be more than noise, which asks for more than that these intervals are apart (see How to read this)"
        )
        told = [Words(f"Figure {each.number}. {words}") for each in self.figures.values() for words in each.told]
        scaled = [Words(words) for study in self.studies if (words := self.scale(study))]
        return [Section("The paper's claims", [*scaled, Tabled(claims, caption, words=True), *told])]

    def scale(self, study: Study) -> str:
        """A warning if there was less to see than in the paper; else nothing."""
        figure = self.figures[study.path]
        papers = figure_file(figure.number)
        rounds = int(study.rounds[-1])
        if rounds >= papers["rounds"] and study.trials >= papers["trials"]:
            return ""
        here = counted(study.trials, "trial")
        sizes = f"{here} of {counted(rounds, 'round')}, there {papers['trials']} of {papers['rounds']:,}"
        rule = "a claim that fails here may hold there"
        if 1 < study.trials < ENOUGH:
            rule += f"; in {here} up to {noise(study.trials):.0f} standard errors are noise"
        return f"Figure {figure.number} is not at the paper's scale ({sizes}): {rule}."

    def heading(self, study: Study) -> str:
        """As the paper calls it; two runs of one figure are told apart by their folders."""
        numbers = [figure.number for figure in self.figures.values()]
        number = self.figures[study.path].number
        return f"Figure {number}" + (f" {study.path.name}" if numbers.count(number) > 1 else "")

    def file_name(self, study: Study) -> str:
        """The same for files, without what they are."""
        return self.heading(study).replace("Figure ", "figure").replace(" ", "-")

    def sections(self, study: Study) -> list[Section]:
        """A figure as it is drawn there, and what it is made of."""
        figure = self.figures[study.path]
        shown = "Steady regret, the regret of SUAK and OPS alone, skipped rounds, and c minus the average cost."
        drawn = Drawing(f"{self.file_name(study)}-paper", figure.image, figure.told[0], shown)
        return [
            Section(
                "As the paper draws it",
                [
                    Figures((), [drawn], wide=True),
                    Tabled(figure.breakdown(), "Pseudo-regret by its causes; without the luck of costs, steady regret"),
                    Tabled(figure.events(), "SUAK by the events of the paper's proof"),
                ],
            )
        ]

    def files(self) -> dict[str, str | bytes]:
        """The figures as the paper has them, and all numbers for programs."""
        files: dict[str, str | bytes] = {"report.json": self.to_json()}
        for study in self.studies:
            image = self.figures[study.path].image
            files |= {f"{self.file_name(study)}.{kind}": content for kind, content in image._asdict().items()}
        return files

    def to_json(self) -> str:
        """All of it for programs."""
        data = {
            "versions": self.studies[0].manifest["versions"],
            "claims": [{**asdict(claim), "verdict": claim.verdict} for claim in self.claims],
            "figures": [self.numbers(study) for study in self.studies],
        }
        return json.dumps(data, indent=2) + "\n"

    def numbers(self, study: Study) -> dict[str, object]:
        """What was measured in one study, at the last round."""
        results = self.figures[study.path].results
        return {
            "figure": self.figures[study.path].number,
            "problem": results.problem.to_dict(),
            "rounds": int(results.rounds[-1]),
            "trials": results.trials,
            "seed": results.seed,
            "first_stream": study.experiment["problems"][0]["stream"],
            "seconds": round(sum(spell["seconds"] for spell in study.manifest["spells"]), 1),
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
                for label, run in results.items()
            },
        }

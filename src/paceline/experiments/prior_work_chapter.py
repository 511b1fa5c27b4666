"""The field in a figure and tables: what each system loses, skips and violates, beside what was proved of it."""

import json
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from paceline.experiments.chapters import Chapter
from paceline.experiments.folder import experiment_in
from paceline.experiments.plan import ROUNDS, seconds_per_round
from paceline.experiments.study import Study
from paceline.paper.instances import eight_arms
from paceline.paper.systems import SYSTEMS, System
from paceline.reports.field import Measured, field_figure
from paceline.reports.page import Drawing, Figures, Section, Tabled, Words
from paceline.reports.tables import UNGUARDED, Table, csv_text, mean_and_interval, of_resources
from paceline.simulation.results import Run, list_names
from paceline.simulation.simulate import Trial
from paceline.statistics import three_digits

if TYPE_CHECKING:
    from paceline.reports.figures import Image

SPEED = "speed.json"
TURNS = 3
PAPERS = {"three-arms": "3 arms", "eight-arms": "8 arms"}
UNKNOWN = System("", "", "", None, "")
SAID = (
    "Every policy played every problem that it can, with the same draws, behind the same guard. Growth is the power of "
    "T that fits the regret at three horizons, each played from the start with its own T: three points of one problem, "
    "no law. What was proved is for the setting of its authors, without constants."
)
FREE = (
    "Without the guard a policy spends what it likes, and what it spends above the line earns: its regret may be below "
    "0, and says little without the violation beside it."
)
BEFORE = {"-without-guard": (Words(FREE),)}  # a table


class PriorWorkChapter(Chapter):
    """The survey, from the studies of `paceline prior-work`, as many as are there."""

    title = "The field under one roof"
    is_all = True

    def refusal(self) -> str:
        """A survey has one run of each problem, guard and horizon, and ranks by the paper's problems."""
        found: dict[tuple[str, bool, int], Study] = {}
        for study in self.studies:
            for problem in study.names:
                first = found.setdefault((problem, study.guard, int(study.rounds[-1])), study)
                if first is not study:
                    return (
                        f"the folders must not have a problem twice at the same rounds, but {first.path.name} (seed "
                        f"{first.seed}) and {study.path.name} (seed {study.seed}) both have {problem!r}; a run gets "
                        "more trials by --trials"
                    )
        longest = {
            problem: study for (problem, guard, _), study in sorted(found.items(), key=lambda at: at[0][2]) if guard
        }
        ranking = [set(longest[problem].labels) for problem in PAPERS if problem in longest]
        unranked = [label for label in self.labels if not all(label in ranked for ranked in ranking or [set()])]
        return f"no run on {' or '.join(PAPERS)} behind the guard ranks {list_names(unranked, 3)}" if unranked else ""

    @cached_property
    def runs(self) -> dict[tuple[str, bool, int], dict[str, Run]]:
        """By problem, guard and rounds: the run of each policy."""
        return {
            (problem, study.guard, int(study.rounds[-1])): dict(results)
            for study in self.studies
            for problem, results in study.results()
            if results.problem.is_known
        }

    @cached_property
    def labels(self) -> list[str]:
        """All policies, in the order of the files."""
        return list(dict.fromkeys(label for study in self.studies for label in study.labels))

    def at(self, problem: str, guard: bool = True) -> list[dict[str, Run]]:
        """The runs on a problem by horizon, the longest first."""
        keys = sorted((key for key in self.runs if key[:2] == (problem, guard)), key=lambda key: -key[2])
        return [self.runs[key] for key in keys]

    @cached_property
    def sides(self) -> dict[str, dict[str, Run]]:
        """The longest runs on the paper's problems."""
        return {problem: runs for problem in PAPERS for runs in self.at(problem)[:1]}

    def growth(self, problem: str, label: str) -> float:
        """The power of T that fits the mean regret at the horizons; nan where there are too few, or a gain."""
        runs = [each[label] for each in self.at(problem) if label in each]
        losses = np.array([run.steady_regret[:, -1].mean() for run in runs])
        if len(runs) < 2 or losses.min() <= 0.0:
            return np.nan
        return float(np.polyfit(np.log([run.rounds[-1] for run in runs]), np.log(losses), 1)[0])

    @cached_property
    def speed(self) -> dict[str, float]:
        """Nanoseconds of a round on the 8 arms: as it was measured when the studies had been played, or now."""
        kept = self.studies[0].path.parent / SPEED
        found: dict[str, float] = json.loads(kept.read_text()) if kept.exists() else {}
        if set(found) >= set(self.labels):
            return found
        policies = {
            label: spec.policy for study in self.studies for label, spec in experiment_in(study.path).policies.items()
        }
        last = np.array([ROUNDS])
        trials = {label: Trial(eight_arms(), policy, last, 0, 0) for label, policy in policies.items()}
        return {label: round(1e9 * each, 1) for label, each in seconds_per_round(trials, TURNS).items()}

    @cached_property
    def measured(self) -> list[Measured]:
        """What the figure shows of each system, the best on the paper's problems first."""
        free = {label: run.violation for runs in self.at("three-arms", False)[:1] for label, run in runs.items()}
        rows = [
            Measured(
                label=label,
                is_ours=system.source.startswith("ours"),
                regret={PAPERS[problem]: runs[label].steady_regret[:, -1] for problem, runs in self.sides.items()},
                growth={PAPERS[problem]: self.growth(problem, label) for problem in self.sides},
                proved=system.power,
                skips={PAPERS[problem]: runs[label].skips[:, -1] for problem, runs in self.sides.items()},
                violation=free.get(label),
                nanoseconds=self.speed.get(label, np.nan),
            )
            for label in self.labels
            for system in [SYSTEMS.get(label, UNKNOWN)]
        ]
        return sorted(rows, key=lambda row: row.place)

    def opening(self) -> list[Section]:
        """The figure, and four tables."""
        told = ", ".join(f"{row.label} {three_digits(float(np.exp(row.place)))}" for row in self.measured)
        drawn = Drawing(
            "prior-work",
            self.image,
            f"A row per system: regret, growth, skips, violation without the guard, time. Regret: {told}.",
            "Means over trials with 95 % intervals, on the paper's two problems; bold: ours. Growth is the power of T, "
            "the bar what was proved. Violations are on the 3 arms.",
        )
        tabled = (block for end, each in self.tables.items() for block in (*BEFORE.get(end, ()), each))
        return [Section("At a glance", [Words(SAID), Figures((), [drawn], wide=True), *tabled])]

    @cached_property
    def tables(self) -> dict[str, Tabled]:
        """The tables that say something, by how the names of their files end."""
        every = {
            "": Tabled(self.papers_table(), "On the paper's problems: steady regret at the last round [95 % interval]"),
            "-settings": Tabled(self.settings_table(), "In other settings: steady regret at the end [95 % interval]"),
            "-without-guard": Tabled(self.without_guard(), "Without the guard"),
            "-promises": Tabled(self.promises_table(), "What was asked for, and what was promised", words=True),
        }
        return {end: each for end, each in every.items() if len(each.table.headings) > 1}

    def papers_table(self) -> Table:
        """Regret, skips and growth on the paper's problems, and time."""
        sides = [PAPERS[problem] for problem in self.sides]
        headings = [f"{thing}, {side}" for side in sides for thing in ("regret", "skips", "growth")]
        rows = tuple(
            (
                row.label,
                *(
                    cell
                    for side in sides
                    for cell in (
                        mean_and_interval(row.regret[side]),
                        three_digits(float(row.skips[side].mean())),
                        power(row.growth[side]),
                    )
                ),
                "" if row.proved is None else power(row.proved),
                f"{row.nanoseconds:.0f} ns",
            )
            for row in self.measured
        )
        note = "Proved: 0.00 stands for log T, or less. A round: its time on the 8 arms, draws included."
        return Table(("policy", *headings, "proved", "a round"), rows, (note,))

    def settings_table(self) -> Table:
        """Regret on the other problems; nothing where a policy cannot play."""
        others = dict.fromkeys(problem for problem, guard, _ in self.runs if guard and problem not in PAPERS)
        found = [self.at(problem)[0] for problem in others]
        rows = tuple((row.label, *(regret_of(runs, row.label) for runs in found)) for row in self.measured)
        return Table(("policy", *others), rows)

    def without_guard(self) -> Table:
        """Regret and the worst violation of each resource."""
        headings, rows = ["policy"], [[row.label] for row in self.measured]
        for problem in dict.fromkeys(problem for problem, guard, _ in self.runs if not guard):
            runs = self.at(problem, False)[0]
            shown, resources = PAPERS.get(problem, problem), next(iter(runs.values())).problem.resources
            headings += [f"regret, {shown}", *of_resources(f"violation, {shown}", resources)]
            for row in rows:
                label = row[0]
                worst = runs[label].by_resource("violation") if label in runs else {}
                told = [three_digits(float(worst[name].max())) if name in worst else "–" for name in resources]
                row += [regret_of(runs, label), *told]
        return Table(tuple(headings), tuple(map(tuple, rows)), (UNGUARDED,))

    def promises_table(self) -> Table:
        """What is known of each system, as far as it was published."""
        rows = tuple(
            (row.label, each.source, each.needs, each.proved, each.line)
            for row in self.measured
            for each in [SYSTEMS.get(row.label, UNKNOWN)]
        )
        return Table(("policy", "from", "asks for", "regret proved (order)", "line promised"), rows)

    @cached_property
    def image(self) -> "Image":
        """The survey in one figure."""
        from paceline.reports.figures import in_formats

        return in_formats(field_figure(self.measured), png=True)

    def files(self) -> dict[str, str | bytes]:
        """The figure, the numbers for spreadsheets, and the times, which no later report measures again."""
        return {
            **{f"prior-work.{kind}": content for kind, content in self.image._asdict().items()},
            "prior-work.csv": csv_text(list(self.records())),
            **{f"prior-work{end}.tex": each.table.to_latex(each.words) for end, each in self.tables.items()},
            SPEED: json.dumps(self.speed, indent=2) + "\n",
        }

    def records(self) -> Iterator[dict[str, object]]:
        """A row per problem, guard, horizon and policy."""
        every = [run for runs in self.runs.values() for run in runs.values()]
        several = [run.problem.resources for run in every if len(run.problem.resources) > 1]
        names = dict.fromkeys(name for resources in several for name in resources)
        for (problem, guard, rounds), runs in self.runs.items():
            for label, run in runs.items():
                finals = run.steady_regret[:, -1]
                yield {
                    "problem": problem,
                    "guard": guard,
                    "rounds": rounds,
                    "policy": label,
                    "trials": len(finals),
                    "steady_regret": float(finals.mean()),
                    "standard_deviation": float(finals.std(ddof=1)) if len(finals) > 1 else None,
                    "skips": float(run.skips[:, -1].mean()),
                    "violation": float(run.violation.max()),
                    **{
                        f"violation_{name}": float(worst[name].max()) if name in worst else None
                        for worst in [run.by_resource("violation")]
                        for name in names
                    },
                    "growth": self.growth(problem, label) if guard else None,
                    "nanoseconds": self.speed.get(label),
                }


def power(value: float) -> str:
    """A power of T.

    >>> power(0.5), power(float("nan"))
    ('0.50', '–')
    """
    return "–" if np.isnan(value) else f"{value:.2f}"


def regret_of(runs: dict[str, Run], label: str) -> str:
    """What a policy loses, if it can play."""
    return mean_and_interval(runs[label].steady_regret[:, -1]) if label in runs else "cannot"

"""The sections of a report."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from paceline import __version__
from paceline.experiments.aggregate import Aggregate
from paceline.experiments.messages import span
from paceline.experiments.report_figures import MOST_SWEEPS, causes_told, swept_figure
from paceline.experiments.scores import CAPPED, DRAW, score_table
from paceline.experiments.study import Study
from paceline.experiments.summary import Line, problems_table, resources_in, summary_table, winner
from paceline.experiments.sweeps import Axis, aggregate_sweep, policy_axes, problem_axes, problem_sweep
from paceline.problems.resources import UNNAMED
from paceline.reports import panels as draw
from paceline.reports.markup import Markup, joined, tag
from paceline.reports.page import figure, figures, table
from paceline.reports.tables import Table, write_budget
from paceline.statistics import FLOOR, SIGMAS, noise, three_digits

FEW_PROBLEMS = 3  # shown in full; more are folded
NOTHING = Markup("")


def assemble(study: Study, lines: Sequence[Sequence[Line]], parts: Mapping[str, Markup]) -> tuple[Markup, Markup]:
    """The head of the page with its contents, and the parts that are not empty below each other."""
    there = {title: part for title, part in parts.items() if part}
    ids = {title: title.lower().replace(" ", "-") for title in there}
    links = (tag("li", tag("a", title, href=f"#{ids[title]}")) for title in there)
    head = joined(
        [
            tag("h1", study.manifest["name"]),
            tag("p", size(study), class_="lead"),
            promise(lines),
            tag("nav", tag("ul", *links), aria_label="Contents"),
        ]
    )
    body = (tag("section", tag("h2", title), part, id=ids[title]) for title, part in there.items())
    return head, joined(body)


def size(study: Study) -> str:
    """How much was done."""
    return (
        f"{in_words(len(study), 'problem')}, {in_words(len(study.labels), 'policy', 'policies')}, "
        f"{in_words(study.experiment['trials'], 'trial')} of {int(study.rounds[-1]):,} rounds, "
        f"seed {study.experiment['seed']}"
    )


def in_words(count: int, one: str, many: str | None = None) -> str:
    """A number of things.

    >>> in_words(1, "trial"), in_words(1200, "trial"), in_words(2, "policy", "policies")
    ('1 trial', '1,200 trials', '2 policies')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def promise(lines: Sequence[Sequence[Line]]) -> Markup:
    """Whether the line of every resource held, loudly if one did not."""
    every = [line for of_problem in lines for line in of_problem]
    broken = [line for line in every if not line.min_headroom >= 0.0]
    resources = resources_in(every)
    if not broken:
        whose = "The budget line" if len(resources) == 1 else "The budget line of every resource"
        return tag("p", f"{whose} held after every round of every trial; the smallest headroom was {lowest_of(every)}.")
    worst = min(broken, key=lambda line: line.min_headroom)
    where = min(worst.headrooms, key=lambda name: worst.headrooms[name])
    line_of = "the line" if resources == [UNNAMED] else f"the line of {where}"
    return tag(
        "p",
        f"OVERSPENT: the budget line was broken in {in_words(len(broken), 'run')} of {len(every):,}. The worst is "
        f"{worst.policy} on {worst.problem}, {three_digits(-worst.min_headroom)} above {line_of}. "
        "The guard makes this impossible, so these numbers are damaged or were not made by it: do not use them.",
        class_="alarm",
        role="alert",
    )


def lowest_of(lines: Sequence[Line]) -> str:
    """The smallest headroom of any run, for each resource that has a name."""
    resources = resources_in(lines)
    lowest = {name: min(line.headrooms[name] for line in lines if name in line.headrooms) for name in resources}
    if resources == [UNNAMED]:
        return three_digits(lowest[UNNAMED])
    *others, last = (f"{three_digits(least)} of {name}" for name, least in lowest.items())
    return f"{', '.join(others)} and {last}" if others else last


def what_was_run(study: Study) -> Markup:
    """The policies with their parameters, and the problems."""
    policies = Table(
        ("policy", "with its parameters"),
        tuple((entry["label"], entry["policy"]) for entry in study.experiment["policies"]),
    )
    rows = tuple(
        (
            name,
            str(problem.arms),
            write_budget(problem, ".6g"),
            f"{best.value:.6g}",
            str(best.case),
            "coupled" if problem.coupled else "independent",
        )
        for name, problem in zip(study.names, study.problems, strict=True)
        for best in [problem.optimum_over(int(study.rounds[-1]))]
    )
    problems = Table(("problem", "arms", "budget", "best value", "case", "reward and cost"), rows)
    caption = "Problems: the best value is what a round can earn on average, the case that of the optimum"
    listed = table(problems, caption)
    return joined(
        [
            tag(
                "p",
                "Every policy played every problem, all with the same random numbers; totals were kept at "
                f"{in_words(len(study.rounds), 'checkpoint')}.",
            ),
            table(policies, "Policies", words=True),
            listed if len(study) <= FEW_PROBLEMS else fold(f"All {len(study)} problems", listed),
        ]
    )


def fold(title: str, *content: Markup, note: str = "") -> Markup:
    """A section that opens on demand."""
    return tag("details", tag("summary", tag("strong", title), tag("span", note, class_="note")), *content)


def result(lines: Sequence[Sequence[Line]], reference: str) -> Markup:
    """The table of the only problem, or the means on all of them."""
    if len(lines) == 1:
        return joined([table(summary_table(lines[0], reference), write_caption(lines[0], reference)), caution(lines)])
    caption = "Mean steady regret at the last round ± standard error; the limit is a yardstick, not a bound"
    return joined([table(problems_table(lines), caption), caution(lines)])


def write_caption(lines: Sequence[Line], reference: str) -> str:
    """What a summary table shows."""
    one = lines[0].trials == 1
    error, intervals = ("", "") if one else (" ± standard error", " [95 % interval, paired by trial]")
    return f"At round {lines[0].rounds:,}: steady regret{error}, and its difference to {reference}{intervals}"


def caution(lines: Sequence[Sequence[Line]]) -> Markup:
    """A word on how little a single trial says."""
    if lines[0][0].trials == 1:
        return tag("p", "There was one trial: nothing says how sure these numbers are.", class_="note")
    return NOTHING


def together(aggregate: Aggregate, problems: int, rounds: npt.NDArray[np.int64]) -> Markup:
    """Geometric means over problems in units of the limit; nothing for a single problem."""
    if not aggregate.worthwhile:
        return NOTHING
    ends, curves = aggregate.ends, aggregate.curves(rounds)
    counted_in = len(ends.results)
    left_out = problems - counted_in
    others = f" {in_words(left_out, 'problem has', 'problems have')} a limit of 0 and cannot count here."
    told = ", ".join(f"{score.label} {score.ratio}" for score in aggregate.scores)
    labels = list(ends.labels)
    drawn = [
        figure(
            draw.aggregate_curve(curves),
            f"Regret in units of the limit against the round. At the end: {told}.",
            "Mean steady regret / limit at the same round; dotted: the limit.",
        ),
        figure(
            draw.aggregate_breakdown(ends),
            "Shares of the regret by cause. " + causes_told({score.label: score.causes for score in aggregate.scores}),
            "Shares of the regret by cause, means over problems.",
        ),
        figure(
            draw.aggregate_spread(ends),
            f"Regret in units of the limit of every trial on every problem. Geometric means: {told}.",
            "Every trial on every problem; dotted: the limit, lines: medians.",
        ),
    ]
    caption = f"Over {counted_in} problems, with {write_interval(aggregate)}"
    return joined(
        [
            tag(
                "p",
                f"Geometric means over {counted_in} problems of mean steady regret in units of the limit."
                + (others if left_out else ""),
            ),
            table(score_table(aggregate.scores, aggregate.reference, sum(ends.capped)), caption),
            figures(labels, drawn),
        ]
    )


def write_interval(aggregate: Aggregate) -> str:
    """What the intervals over problems are intervals of."""
    groups = len(set(aggregate.groups))
    if groups == 1:
        return "95 % intervals over trials: points of one grid share their draws, and tell nothing of other problems"
    shared = groups < len(aggregate.groups)
    return "95 % intervals over problems" + (f"; points of a grid share their draws: {groups} groups" if shared else "")


def grids(study: Study, lines: Sequence[Sequence[Line]], aggregate: Aggregate) -> Markup:
    """Regret against what was swept in problems and, over all problems, in policies."""
    drawn = [
        swept_figure(axis, problem_sweep(axis, lines), "bars: one standard error", many_at(axis))
        for axis in problem_axes(study.experiment["problems"])
    ]
    if aggregate.worthwhile:
        drawn += [
            swept_figure(
                axis,
                aggregate_sweep(axis, aggregate.ratios),
                "over all problems; bars: 95 % intervals, but the points share their draws",
            )
            for axis in policy_axes(study.experiment["policies"])
        ]
    if not drawn:
        return NOTHING
    more = len(drawn) - MOST_SWEEPS
    said = f"The first {MOST_SWEEPS} of {len(drawn)} combinations are drawn; summary.csv has all." if more > 0 else ""
    return joined([tag("p", said, class_="note") if said else NOTHING, figures(study.labels, drawn[:MOST_SWEEPS])])


def many_at(axis: Axis) -> str:
    """How many problems a point of a sweep stands for, if it is more than one."""
    most = max(map(len, axis.at))
    return "" if most == 1 else f", means over {most} problems"


def problem_by_problem(lines: Sequence[Sequence[Line]], drawn: Sequence[Markup], reference: str) -> Markup:
    """A part for each problem, folded if they are many."""
    parts: list[Markup] = []
    if len(drawn) < len(lines):
        words = f"Figures are drawn for the first {len(drawn)} of {len(lines)} problems; the tables are there for all."
        parts.append(tag("p", words))
    for number, of_problem in enumerate(lines):
        name = of_problem[0].problem
        content = [table(summary_table(of_problem, reference), write_caption(of_problem, reference))]
        content += drawn[number : number + 1]
        won_by = winner(of_problem)
        if len(lines) == 1:
            parts += [tag("h3", name), *content[1:]]  # the table of the only problem is the result
        elif len(lines) <= FEW_PROBLEMS:
            parts += [tag("h3", name), *content]
        else:
            parts.append(fold(name, *content, note="a draw" if won_by == DRAW else f"won by {won_by}"))
    return joined(parts)


def provenance(study: Study) -> Markup:
    """Versions, machine and time, from the manifest, and the experiment as it was written."""
    manifest = study.manifest
    spells = manifest["spells"]
    seconds = float(np.sum([spell["seconds"] for spell in spells]))
    rows = [
        *((f"{name} version", str(version)) for name, version in manifest["versions"].items()),
        ("kernels", manifest["kernels"]),
        *((f"host: {name}", str(value)) for name, value in manifest["host"].items()),
        ("begun", manifest["begun"]),
        ("finished", str(manifest["finished"])),
        (
            "time at work",
            f"{span(seconds)}, in {in_words(len(spells), 'spell')} on " + ", ".join(engines(spells)),
        ),
    ]
    written = json.dumps(manifest["file"], indent=1, ensure_ascii=False, default=str)
    return joined(
        [
            table(Table(("what", "value"), tuple(rows)), "From the manifest of the run", words=True),
            fold("The experiment file", tag("pre", written)),
        ]
    )


def engines(spells: Sequence[Mapping[str, Any]]) -> list[str]:
    """Who worked, each once."""
    return list(dict.fromkeys(str(spell["engine"]) for spell in spells))


def how_to_read(lines: Sequence[Sequence[Line]], reference: str) -> Markup:
    """What the words mean."""
    resources = resources_in(line for of_problem in lines for line in of_problem)
    of_each = "" if resources == [UNNAMED] else f" Of each resource it is what was left, as in min {resources[0]} left."
    words = {
        "Steady regret": "the distance to the best possible expected reward, without the luck of rewards and costs: "
        "the regret of wrong arms, of idle rounds and of unspent budget. Less is better.",
        "±": "one standard error of the mean over trials.",
        f"Minus {reference}": "the difference of the means, in brackets its 95 % interval by Student's t. Trial by "
        "trial the policies met the same random numbers, so trials are taken in pairs.",
        f"Ratio to {reference}": "the quotient of the means, in brackets its 95 % interval, in pairs, too; none where "
        f"a mean is below {FLOOR:g}.",
        "Min headroom": "the smallest budget · t minus money spent, over all rounds t of all trials. Below 0 the "
        "promise is broken." + of_each,
        "Limit": "log T · Σ gap / KL, about the least regret of a policy that does well on every problem; a yardstick "
        f"for long runs, not a bound. It never exceeds what there is to lose; {CAPPED} where the formula would.",
    }
    trials = lines[0][0].trials
    needed = f"{noise(trials):.1f} with {trials} trials" if trials > 1 else "a single trial tells nothing"
    if len(lines) > 1:
        words |= {
            "Regret / limit": f"geometric mean over problems; a mean regret below {FLOOR:g} counts as {FLOOR:g}. The "
            "interval is one for all problems of the kind: the spread between problems is in it.",
            "Won, drawn, lost": "problems on which the policy is below every other by more than noise; neither; on "
            "which another is below it. Better, worse: on which it differs from the reference.",
            "More than noise": f"{SIGMAS:g} standard errors of the paired differences if there are many trials; by "
            f"Student's t {needed}.",
        }
    return tag("ul", *(tag("li", tag("strong", f"{word}: "), meaning) for word, meaning in words.items()))


def foot() -> Markup:
    """Who made the page."""
    return tag("p", f"Made by paceline {__version__}. The page is complete in itself and fetches nothing.")

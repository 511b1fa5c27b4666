"""The sections of a report on one study."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from paceline.experiments.drawings import Drawer
from paceline.experiments.plan import counted, span
from paceline.experiments.study import Study
from paceline.experiments.summary import Line, problems_table, resources_in, summary_table, winner
from paceline.experiments.sweeps import policy_axes, policy_sweep, problem_axes, problem_sweep
from paceline.experiments.together import CAPPED, DRAW, Together
from paceline.problems.resources import UNNAMED
from paceline.problems.toml import to_toml
from paceline.reports.page import Block, Figures, Fold, Section, Tabled, Terms, Words
from paceline.reports.tables import Table, write_budget
from paceline.statistics import FLOOR, SIGMAS, noise, three_digits

FEW_PROBLEMS = 3  # shown in full; more are folded
MOST_SWEEPS = 12

Lines = Sequence[Sequence[Line]]  # by problem, then by policy


def promise(lines: Lines) -> Words:
    """Whether the line of every resource held, loudly if one did not."""
    played = [line for of_problem in lines for line in of_problem]
    every = [line for line in played if line.guard]
    if not every:
        return Words(f"Played without the guard: nothing is promised. {worst_of(played)}")
    broken = [line for line in every if not line.min_headroom >= 0.0]
    resources = resources_in(every)
    if not broken:
        whose = "the budget line" if len(resources) == 1 else "the budget line of every resource"
        kept = f"{whose} held after every round of every trial; the smallest headroom was {lowest_of(every)}."
        if len(every) == len(played):
            return Words(kept[0].upper() + kept[1:])
        return Words(f"Behind the guard {kept} Without it nothing is promised: {worst_of(played)}")
    worst = min(broken, key=lambda line: line.min_headroom)
    where = min(worst.headrooms, key=lambda name: worst.headrooms[name])
    line_of = "the line" if resources == [UNNAMED] else f"the line of {where}"
    return Words(
        f"OVERSPENT: the budget line was broken in {counted(len(broken), 'run')} of {len(every):,}. The worst is "
        f"{worst.policy} on {worst.problem}, {three_digits(-worst.min_headroom)} above {line_of}. "
        "The guard makes this impossible, so these numbers are damaged or were not made by it: do not use them.",
        "alarm",
    )


def worst_of(lines: Sequence[Line]) -> str:
    """Without the guard: how many crossed a line, and the worst."""
    free = [line for line in lines if not line.guard]
    crossed = [line for line in free if max(line.violations.values()) > 0.0]
    if not crossed:
        return f"none of {counted(len(free), 'run')} crossed a line all the same."
    worst = max(crossed, key=lambda line: max(line.violations.values()))
    where = max(worst.violations, key=lambda name: worst.violations[name])
    whose = "" if where == UNNAMED else f" of {where}"
    return (
        f"{len(crossed):,} of {counted(len(free), 'run')} crossed a line, the worst by "
        f"{three_digits(worst.violations[where])}{whose} ({worst.policy} on {worst.problem})."
    )


def lowest_of(lines: Sequence[Line]) -> str:
    """The smallest headroom of any run, for each resource that has a name."""
    resources = resources_in(lines)
    lowest = {name: min(line.headrooms[name] for line in lines if name in line.headrooms) for name in resources}
    if resources == [UNNAMED]:
        return three_digits(lowest[UNNAMED])
    *others, last = (f"{three_digits(least)} of {name}" for name, least in lowest.items())
    return f"{', '.join(others)} and {last}" if others else last


def what_was_run(study: Study) -> Section:
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
            f"{best.value:.6g}" if problem.is_known else "–",
            str(best.case) if problem.is_known else "–",
            "coupled" if problem.coupled else "independent",
        )
        for name, problem in zip(study.names, study.problems, strict=True)
        for best in [problem.optimum_over(int(study.rounds[-1]))]
    )
    problems = Table(("problem", "arms", "budget", "best value", "case", "reward and cost"), rows)
    caption = "Problems: the best value is what a round can earn on average, the case that of the optimum"
    listed = Tabled(problems, caption)
    points = counted(len(study.rounds), "checkpoint")
    return Section(
        "What was run",
        [
            Words(
                f"Every policy played every problem, all with the same random numbers; totals were kept at {points}."
            ),
            Tabled(policies, "Policies", words=True),
            listed if len(study) <= FEW_PROBLEMS else Fold(f"All {len(study)} problems", [listed]),
        ],
    )


def together(found: Together, problems: int, reference: str, draw: Drawer) -> Section:
    """Geometric means over problems in units of the limit, and the tails; nothing for a single problem."""
    if len(found) < 2:
        return Section("", ())
    left_out = problems - len(found)
    others = f" {counted(left_out, 'problem has', 'problems have')} a limit of 0 and cannot count here."
    tails = found.tails(reference)
    return Section(
        "All problems together",
        [
            Words(
                f"Geometric means over {len(found)} problems of mean steady regret in units of the limit."
                + (others if left_out else "")
            ),
            Tabled(found.table(reference), f"Over {len(found)} problems, with {write_interval(found.groups)}"),
            Figures(found.labels, draw.together(found)),
            *([] if tails is None else [Tabled(tails, "How bad the bad trials are")]),
        ],
    )


def write_interval(groups: Sequence[int]) -> str:
    """What the intervals over problems are intervals of."""
    count = len(set(groups))
    if count == 1:
        return "95 % intervals over trials: points of one grid share their draws, and tell nothing of other problems"
    shared = f"; points of a grid share their draws: {count} groups" if count < len(groups) else ""
    return ("no intervals: two say too little of others" if count == 2 else "95 % intervals over problems") + shared


def result(lines: Lines, reference: str) -> Section:
    """The table of the only problem, or the means on all of them."""
    caution = (
        [Words("There was one trial: nothing says how sure these numbers are.", "note")]
        if lines[0][0].trials == 1
        else []
    )
    if len(lines) == 1:
        return Section("Result", [summary(lines[0], reference), *caution])
    caption = "Mean steady regret at the last round [95 % interval]; the limit is a yardstick, not a bound"
    return Section("Means on every problem", [Tabled(problems_table(lines), caption), *caution])


def summary(lines: Sequence[Line], reference: str) -> Tabled:
    """The policies on one problem."""
    interval, paired = ("", "") if lines[0].trials == 1 else (" [95 % interval]", " [95 % interval, paired by trial]")
    caption = f"At round {lines[0].rounds:,}: steady regret{interval}, and its difference to {reference}{paired}"
    return Tabled(summary_table(lines, reference), caption)


def grids(experiment: Mapping[str, Any], lines: Lines, found: Together, reference: str, draw: Drawer) -> Section:
    """Regret against what was swept in problems and, over all problems, in policies."""
    drawn = [
        (problem_sweep(axis, lines), f"means over {most} problems" if most > 1 else "")
        for axis in problem_axes(experiment["problems"])
        for most in [max(map(len, axis.at))]
    ]
    if len(found) > 1:
        ratios = [score.ratio for score in found.scores(reference)]
        drawn += [
            (
                policy_sweep(axis, ratios, "Regret / limit, geometric mean"),
                "over all problems; the points share their draws",
            )
            for axis in policy_axes(experiment["policies"])
        ]
    if not drawn:
        return Section("", ())
    said = f"The first {MOST_SWEEPS} of {len(drawn)} combinations are drawn; summary.csv has all."
    notes: list[Block] = [Words(said, "note")] if len(drawn) > MOST_SWEEPS else []
    figures = [draw.sweep(f"grid-{number}", *each) for number, each in enumerate(drawn[:MOST_SWEEPS], start=1)]
    return Section("Grids", [*notes, Figures(found.labels, figures)])


def problem_by_problem(lines: Lines, drawn: Sequence[Figures], reference: str) -> Section:
    """A part for each problem, folded if they are many; the table of the only one is the result."""
    if len(lines) == 1:
        return Section("In figures", drawn)
    parts: list[Block] = []
    if len(drawn) < len(lines):
        words = f"Figures are drawn for the first {len(drawn)} of {len(lines)} problems; the tables are there for all."
        parts.append(Words(words))
    for number, of_problem in enumerate(lines):
        name, own = of_problem[0].problem, drawn[number : number + 1]
        content: list[Block] = [summary(of_problem, reference), *own]
        won_by = winner(of_problem)
        if len(lines) <= FEW_PROBLEMS:
            parts += [Words(name, "heading"), *content]
        else:
            parts.append(Fold(name, content, "a draw" if won_by == DRAW else f"won by {won_by}"))
    return Section("Problem by problem", parts)


def provenance(study: Study) -> Section:
    """Versions, machine and time, from the manifest, and the experiment as it was written."""
    manifest = study.manifest
    spells: Sequence[Mapping[str, Any]] = manifest["spells"]
    seconds = float(np.sum([spell["seconds"] for spell in spells]))
    engines = ", ".join(dict.fromkeys(str(spell["engine"]) for spell in spells))
    rows = (
        *((f"{name} version", str(version)) for name, version in manifest["versions"].items()),
        ("kernels", manifest["kernels"]),
        *((f"host: {name}", str(value)) for name, value in manifest["host"].items()),
        ("begun", manifest["begun"]),
        ("finished", str(manifest["finished"])),
        ("time at work", f"{span(seconds)}, in {counted(len(spells), 'spell')} on {engines}"),
    )
    return Section(
        "Provenance",
        [
            Tabled(Table(("what", "value"), rows), "From the manifest of the run", words=True),
            Fold("The experiment file", [Words(to_toml(manifest["file"]), "verbatim")]),
        ],
    )


def how_to_read(lines: Lines, reference: str) -> Section:
    """What the words mean."""
    resources = resources_in(line for of_problem in lines for line in of_problem)
    of_each = "" if resources == [UNNAMED] else f" Of each resource it is what was left, as in min {resources[0]} left."
    words = {
        "Steady regret": "the distance to the best possible expected reward, without the luck of rewards and costs: "
        "the regret of wrong arms, of idle rounds and of unspent budget. Less is better.",
        "[low, high]": "the 95 % interval of the mean over trials, by Student's t; bands and bars in figures are the "
        "same.",
        f"Minus {reference}": "the difference of the means, with the interval of that difference. Trial by trial the "
        "policies met the same random numbers, so trials are taken in pairs.",
        f"Ratio to {reference}": f"the quotient of the means, in pairs, too; none where a mean is below {FLOOR:g}.",
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
            "Wrong arms, idle, unspent": "the same by its causes, plain means over problems: they add up to the "
            "plain mean of regret / limit, which is above the geometric one.",
            "Won, drawn, lost": "problems on which the policy is below every other by more than noise; neither; on "
            "which another is below it. Better, worse: on which it differs from the reference.",
            "More than noise": f"{SIGMAS:g} standard errors of the paired differences if there are many trials; by "
            f"Student's t {needed}.",
        }
    return Section("How to read this", [Terms(words)])

"""The paper's two experiments: run them, draw the figures, hold the claims against the numbers."""

import json
import platform
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from paceline import checks
from paceline.paper import instances as paper
from paceline.paper.claims import (
    CLAIMS,
    EPSILON,
    GREEDY,
    INDEX,
    OPS,
    OPS_LATER,
    OPS_PRINTED,
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
from paceline.policies import suak
from paceline.policies.epsilon_greedy import EpsilonGreedyPacer
from paceline.policies.greedy import GreedyPacer
from paceline.policies.index import IndexPacer
from paceline.policies.one_phase import OnePhase
from paceline.policies.policy import Policy
from paceline.policies.primal_dual import PrimalDual
from paceline.policies.skip_first import SkipFirst
from paceline.policies.thompson import ThompsonPacer
from paceline.policies.ucb_simplex import UCBSimplex
from paceline.problems.problem import Problem
from paceline.reports.tables import Table, mean_and_error
from paceline.simulation.progress import progress_bar
from paceline.simulation.results import Results, Run
from paceline.simulation.simulate import checkpoint_rounds, play_trials

CHECKPOINTS = 500
STREAM_BITS = 32  # of a stream, that count the trials; the others tell the figures apart


@dataclass(frozen=True)
class Experiment:
    """One figure of the paper."""

    figure: int
    title: str
    problem: Callable[[], Problem]
    rounds: int
    trials: int


EXPERIMENTS = {
    1: Experiment(1, "3 arms", paper.three_arms, 500_000, 10),
    2: Experiment(2, "8 arms", paper.eight_arms, 2_500_000, 10),
}

# The paper's four; the same with another constant or order that its text leaves room for, its Algorithm 1 to the letter
# and its second naive approach; then what it does not have.
POLICIES: dict[str, Policy] = {
    SUAK: suak.SUAK(),
    OPS: OnePhase(a=3),
    PDS: PrimalDual(),
    USS: UCBSimplex(lam=9),
    SUAK_FIRST: suak.SUAK(order="first"),
    OPS_TWO: OnePhase(a=2),
    OPS_PRINTED: OnePhase(a=3, time_row=False),
    OPS_LATER: SkipFirst(a=3),
    USS_FIVE: UCBSimplex(lam=5),
    INDEX: IndexPacer(),
    THOMPSON: ThompsonPacer(),
    EPSILON: EpsilonGreedyPacer(),
    GREEDY: GreedyPacer(),
}
PAPER = (SUAK, OPS, PDS, USS)
# What is played together: first the kinds that the paper has, so that nobody waits until all others are compiled.
KINDS = {type(POLICIES[label]) for label in PAPER}
BATCHES = tuple(
    {label: policy for label, policy in POLICIES.items() if (type(policy) in KINDS) == is_papers}
    for is_papers in (True, False)
)
# What the figures show of other constants and orders: in the panel of the regret, in its close-up, of the average cost.
REGRET_OF, CLOSE_UP_OF, COST_OF = {USS: USS_FIVE}, {OPS: OPS_TWO}, {SUAK: SUAK_FIRST}
OTHERS = (INDEX, THOMPSON, EPSILON, GREEDY)
FORMATS = ("png", "pdf", "svg")


@dataclass(frozen=True)
class Reproduction:
    """One experiment as it was run, with the claims held against it."""

    experiment: Experiment
    results: Results
    claims: tuple[Claim, ...]
    seconds: float


def check_scale(rounds: int | None, trials: int | None, seed: int) -> None:
    """Refuse what `reproduce` would refuse, before anything is run or written."""
    if rounds is not None:
        checks.rounds("rounds", rounds)
    if trials is not None:
        checks.whole("trials", trials, 1)
    checks.seed(seed)


def reproduce(
    figure: int,
    rounds: int | None = None,
    trials: int | None = None,
    seed: int = 0,
    progress: bool = False,
    prepare: Callable[[Sequence[Policy]], object] = len,
) -> Reproduction:
    """Run one experiment, at the paper's scale unless told otherwise.

    ``prepare`` is called with policies before they are played, to compile them on all cores.

    Each figure has streams of its own. With the same ones the two experiments would share their luck: the n-th pull of
    arm i in trial s would be made from the same random numbers in both.
    """
    check_scale(rounds, trials, seed)
    experiment = EXPERIMENTS[figure]
    rounds = experiment.rounds if rounds is None else rounds
    trials = experiment.trials if trials is None else trials
    first = first_stream(figure)
    start = time.perf_counter()
    problem, points, runs = experiment.problem(), checkpoint_rounds(rounds, CHECKPOINTS), dict[str, Run]()
    for batch in BATCHES:
        prepare(list(batch.values()))
        with progress_bar(rounds * trials * len(batch), progress) as bar:
            runs |= play_trials(problem, batch, points, seed, range(first, first + trials), None, bar).runs
    results = Results(problem, seed, points, {label: runs[label] for label in POLICIES})
    claims = tuple(check(results.runs) for check in CLAIMS[figure])
    return Reproduction(experiment, results, claims, time.perf_counter() - start)


def first_stream(figure: int) -> int:
    """The stream of the first trial of a figure: far from those of the other.

    >>> first_stream(1), first_stream(2)
    (0, 4294967296)
    """
    return (figure - 1) << STREAM_BITS


def check_formats(formats: Iterable[str]) -> tuple[str, ...]:
    """The formats of the figures, each once; png is always among them, since the report shows it.

    >>> check_formats(["svg", "png"])
    ('png', 'svg')
    """
    return tuple(dict.fromkeys(("png", *(checks.one_of("format", name, FORMATS) for name in formats))))


def draw(reproduction: Reproduction, folder: Path, formats: Iterable[str] = FORMATS) -> tuple[Path, ...]:
    """The figure with the paper's panels, a file for each format."""
    from paceline.reports.figures import paper_figure, save

    results, experiment = reproduction.results, reproduction.experiment
    figure = paper_figure(
        {label: results[label] for label in PAPER},
        {label: results[other] for label, other in REGRET_OF.items()},
        {label: results[other] for label, other in CLOSE_UP_OF.items()},
        {label: results[other] for label, other in COST_OF.items()},
        {label: results[label] for label in OTHERS},
        f"{experiment.title}, {results.trials} trials; bands: one standard deviation; dashed colours: another constant "
        "or order; black and grey: not in the paper",
    )
    paths = tuple(folder / f"figure{experiment.figure}.{name}" for name in check_formats(formats))
    for path in paths:
        save(figure, path)
    return paths


def claims_table(claims: Iterable[Claim]) -> Table:
    """Every claim beside what was measured."""
    rows = ((f"Figure {claim.figure}: {claim.says}", claim.measured, claim.verdict) for claim in claims)
    return Table(("The paper says", "Measured", "Holds"), tuple(rows))


def event_table(results: Results) -> Table:
    """SUAK by the events of the paper's proof."""
    run = results[SUAK]
    names = {
        "guard_skips": "R_a, guard skips",
        "classification_pulls": "R_b, classification pulls",
        "classification_skips": "R_c, classification skips",
        "base_rounds": "R_d, base rounds",
    }
    rounds, regret = run.rounds_by_event(), run.regret_by_event()
    rows = (
        (name, mean_and_error(rounds[event][:, -1]), mean_and_error(regret[event][:, -1]))
        for event, name in names.items()
    )
    return Table(("SUAK by event", "rounds", "regret"), tuple(rows))


def breakdown_table(results: Results) -> Table:
    """Where each policy's pseudo-regret comes from."""
    causes = ("wrong_arms", "idle", "unspent", "cost_luck")
    rows = tuple(
        (label, *(mean_and_error(run.breakdown()[cause][:, -1]) for cause in causes)) for label, run in results.items()
    )
    return Table(("policy", "wrong arms", "idle", "unspent", "luck of costs"), rows)


def write_report(reproductions: Iterable[Reproduction], folder: Path) -> None:
    """report.md for people, report.json for programs."""
    reproductions = tuple(reproductions)
    claims = [claim for reproduction in reproductions for claim in reproduction.claims]
    lines = ["# The paper's experiments, run again", "", claims_table(claims).to_markdown(), ""]
    for reproduction in reproductions:
        experiment, results = reproduction.experiment, reproduction.results
        lines += [
            f"## Figure {experiment.figure}: {experiment.title}",
            "",
            f"{results.trials} trials of {results.rounds[-1]:,} rounds, seed {results.seed}; "
            f"means over trials ± standard error at the last round.",
            "",
            f"![Figure {experiment.figure}](figure{experiment.figure}.png)",
            "",
            results.table().to_markdown(),
            "",
            times_less(results.runs),
            "",
            "Pseudo-regret by its causes (they add up to it; without the luck of costs, to steady regret):",
            "",
            breakdown_table(results).to_markdown(),
            "",
            event_table(results).to_markdown(),
            "",
        ]
    (folder / "report.md").write_text("\n".join(lines), encoding="utf-8")
    (folder / "report.json").write_text(json.dumps(as_data(reproductions), indent=2) + "\n", encoding="utf-8")


def as_data(reproductions: tuple[Reproduction, ...]) -> dict[str, object]:
    """The report as plain data."""
    return {
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("paceline", "numpy", "numba")},
        },
        "claims": [
            {**asdict(claim), "verdict": claim.verdict}
            for reproduction in reproductions
            for claim in reproduction.claims
        ],
        "figures": [
            {
                "figure": reproduction.experiment.figure,
                "problem": reproduction.results.problem.to_dict(),
                "rounds": int(reproduction.results.rounds[-1]),
                "trials": reproduction.results.trials,
                "seed": reproduction.results.seed,
                "first_stream": first_stream(reproduction.experiment.figure),
                "seconds": round(reproduction.seconds, 1),
                "policies": {
                    label: {
                        "policy": run.policy,
                        **{
                            name: {"mean": float(curve[:, -1].mean()), "deviation": float(curve[:, -1].std())}
                            for name, curve in (
                                ("regret", run.regret),
                                ("pseudo_regret", run.pseudo_regret),
                                ("steady_regret", run.steady_regret),
                                ("skips", run.skips),
                                ("idle", run.idle),
                                ("spent", run.spent),
                            )
                        },
                        "min_headroom": float(run.min_headroom.min()),
                    }
                    for label, run in reproduction.results.items()
                },
            }
            for reproduction in reproductions
        ],
    }

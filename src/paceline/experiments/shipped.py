"""The experiments that come with the package: policies on a family of problems, and the paper's two figures."""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from inspect import signature
from pathlib import Path
from typing import Any

from paceline import checks
from paceline.errors import InvalidValue
from paceline.experiments.experiment import Experiment, check_horizons
from paceline.experiments.runner import run_experiment
from paceline.experiments.study import Study
from paceline.paper.instances import figure_file
from paceline.policies import POLICIES, PoliciesLike, label_policies
from paceline.policies.policy import Policy
from paceline.problems import families
from paceline.problems.problem import Problem
from paceline.problems.theory import limit
from paceline.problems.toml import read_toml
from paceline.text_modules import place_of
from paceline.worlds.delays import DelayLike, read_delays

COMPARISON = Path(__file__).with_name("compare.toml")
ROUNDS = 50_000


def compare(
    kind_or_problems: str | Sequence[Problem],
    policies: PoliciesLike,
    *,
    problems: int = 12,
    rounds: int | None = None,
    trials: int = 8,
    seed: int = 0,
    shortfall: float = families.SHORTFALL,
    resources: int | None = None,
    executor: str | Executor | None = None,
    progress: bool = False,
    delay: DelayLike = None,
    horizons: Sequence[int] = (),
    out: str | os.PathLike[str] | None = None,
) -> Study:
    """Play each policy on each problem of a family: one of `paceline.problems.KINDS`, or a list of problems.

    ``problems`` is the size of the family, ``shortfall`` says how close the race is, ``resources`` how many there are
    (see `paceline.problems.random`); these go with a kind. ``rounds`` are 50,000 unless given, or as many as the kind
    is for: "start" is for 500, and no more. ``delay`` says how late outcomes are (see `simulate`). ``horizons`` are
    rounds after which every policy is held against the best one. ``seed`` draws the family and the trials. Every policy
    meets the same random numbers on a problem, and each problem has numbers of its own.

    With a folder ``out`` the study stays there, and can go on after an interruption; without one it is gone with the
    object.

    >>> from paceline import paper
    >>> study = compare([paper.three_arms()], ["suak", "uniform"], rounds=1000, trials=2)
    >>> study.table().headings
    ('problem', 'suak', 'uniform')
    """
    experiment = comparison(
        kind_or_problems,
        label_policies(policies),
        problems=problems,
        rounds=rounds_to_play(kind_or_problems, rounds, ROUNDS),
        trials=trials,
        seed=seed,
        shortfall=shortfall,
        resources=resources,
        delay=delay,
        horizons=horizons,
    )
    return run_experiment(experiment, out, executor, progress=progress)


def comparison(
    kind_or_problems: str | Sequence[Problem],
    policies: Mapping[str, Policy],
    *,
    problems: int,
    rounds: int,
    trials: int,
    seed: int,
    shortfall: float = families.SHORTFALL,
    resources: int | None = None,
    delay: DelayLike = None,
    horizons: Sequence[int] = (),
) -> Experiment:
    """The experiment that compares policies. The trials on a problem have the streams that follow those on the last."""
    checks.whole("problems", problems, 1)
    checks.whole("rounds", rounds, 2, checks.MOST_ROUNDS)  # after one round the limit is 0
    checks.whole("trials", trials, 1)
    late = read_delays(delay)
    spread = read_toml(COMPARISON)["checkpoints"]
    table: dict[str, Any] = {
        "name": kind_or_problems if isinstance(kind_or_problems, str) else "given problems",
        "rounds": rounds,
        "trials": trials,
        "seed": checks.seed(seed),
        "checkpoints": spread | {"first": max(min(spread["first"], rounds // 10), 2)},
        "horizons": [horizon for horizon in check_horizons(horizons) if horizon <= rounds],
        "policy": [write_policy(label, policy) for label, policy in policies.items()],
    }
    if isinstance(kind_or_problems, str):
        drawn = {"shortfall": shortfall} | ({} if resources is None else {"resources": resources})
        streams = {"first": 0, "apart": trials}
        own = [{"family": kind_or_problems, "size": problems, "seed": seed, **drawn, "streams": streams}]
    else:
        own = [
            {
                "name": f"problem {number + 1}",
                **problem.to_dict(),
                "streams": {"first": number * trials, "apart": trials},
            }
            for number, problem in enumerate(check_problems(kind_or_problems))
        ]
    delayed = {} if late is None else {"delay": late.written()}
    table["problem"] = [{**entry, **delayed} for entry in own]
    return Experiment.from_table(table, policies=policies)


def write_policy(label: str, policy: Policy) -> dict[str, Any]:
    """A policy as a [[policy]] table has it: its name, and what was set, as far as a file can tell."""
    kind = type(policy)
    name = policy.name if POLICIES.get(policy.name) is kind else place_of(kind)
    given = {
        key: value
        for key, each in signature(kind.__init__).parameters.items()
        for value in [getattr(policy, key, None)]
        if isinstance(value, str | int | float) and value != each.default
    }
    return {"name": name} | ({"label": label} if label != name else {}) | given


def rounds_to_play(kind: object, rounds: int | None, otherwise: int) -> int:
    """The rounds asked for, or else those that the kind of problem is for; it may be for so many and no more."""
    most = families.rounds_of(kind, checks.MOST_ROUNDS) if isinstance(kind, str) else checks.MOST_ROUNDS
    if rounds is None:
        return min(otherwise, most)
    return checks.whole(f"rounds of kind {kind!r}", rounds, 2, most) if most < checks.MOST_ROUNDS else rounds


def check_problems(given: object) -> list[Problem]:
    """Problems to compare on; each must have something to learn, or nothing could be compared."""
    found: list[Any] = list(given) if isinstance(given, list | tuple) else []
    if not found:
        raise InvalidValue(f"problems must be a kind or a list of at least one Problem, got {given!r}")
    for number, problem in enumerate(found):
        if not isinstance(problem, Problem):
            raise InvalidValue(f"problems[{number}] must be a Problem, got {problem!r}")
        if limit(problem, 2) == 0.0:
            raise InvalidValue(f"problems[{number}] must have an arm that loses, to be compared with its limit, got 0")
    return found


def reproduce(
    figure: int = 1,
    rounds: int | None = None,
    trials: int | None = None,
    seed: int = 0,
    *,
    executor: str | Executor | None = None,
    progress: bool = False,
    out: str | os.PathLike[str] | None = None,
) -> Study:
    """Run the experiment of one of the paper's figures, at the paper's scale unless told otherwise.

    Each figure has streams of its own. With the same ones the two experiments would share their luck: the n-th pull of
    arm i in trial s would be made from the same random numbers in both. `Study.report` checks the paper's claims.

    >>> reproduce(1, rounds=100, trials=1).labels[:4]
    ['SUAK', 'OPS', 'PDS', 'USS']
    """
    return run_experiment(papers_experiment(figure, rounds, trials, seed), out, executor, progress=progress)


def papers_experiment(figure: int, rounds: int | None, trials: int | None, seed: int) -> Experiment:
    """The experiment of a figure, perhaps at another scale."""
    checks.whole("figure", figure, 1, 2)
    table = figure_file(figure)
    changes = {"rounds": rounds, "trials": trials, "seed": seed}
    return Experiment.from_table(table | {key: value for key, value in changes.items() if value is not None})

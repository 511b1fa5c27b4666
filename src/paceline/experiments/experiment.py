"""What to run: an experiment as a TOML file describes it, checked as a whole before anything runs."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from paceline import checks
from paceline.errors import InvalidValue, PacelineError
from paceline.experiments.chapters import CHAPTERS
from paceline.experiments.entries import PolicySpec, ProblemSpec, read_policies, read_problems
from paceline.experiments.grids import at
from paceline.experiments.holdings import Holdings, digest, gaps, holdings_of
from paceline.experiments.spec import FAR_APART, ExperimentSpec, Spread, read
from paceline.objects import described_object
from paceline.policies.code import code_digest
from paceline.policies.policy import Policy
from paceline.policies.python_policy import PythonPolicy
from paceline.problems.problem import Problem
from paceline.problems.toml import read_toml
from paceline.simulation.recording import Record, Rounds, read_record
from paceline.simulation.simulate import Trial, check_guard, checkpoint_rounds, setting_of
from paceline.worlds.python_world import PythonWorld

Ints = npt.NDArray[np.int64]

BLOCK_ROUNDS = 4_000_000  # about a second of work for one task


@dataclass(frozen=True, eq=False)
class Experiment:
    """Every policy on every problem, so many trials of so many rounds.

    The trials of a problem have random numbers of their own, the same for every policy, so policies are compared in
    pairs; variants of one problem in a grid share them, too. Adding a problem, a policy or a trial changes no other.

    >>> experiment = Experiment.from_table({"rounds": 100, "trials": 4, "policies": ["suak", "thompson"],
    ...     "problem": [{"paper": "three-arms", "grid": {"budget": [0.4, 0.5]}}]})
    >>> [field.name for field in experiment.problems], list(experiment.policies), len(experiment.tasks())
    (['three-arms, budget=0.4', 'three-arms, budget=0.5'], ['suak', 'thompson'], 4)
    """

    name: str
    problems: tuple[ProblemSpec, ...]
    policies: dict[str, PolicySpec]
    rounds: Ints  # the checkpoints; the last is the number of rounds
    trials: int
    seed: int
    block: int  # trials of one task
    table: dict[str, Any]  # as it was written, for the record
    folder: Path  # that names of files in it are relative to
    record: Rounds | None = None  # the rounds that are kept one by one
    guard: bool = True  # whether policies play behind it

    @classmethod
    def read(cls, path: str | os.PathLike[str], **changes: object) -> "Experiment":
        """The experiment in a file, perhaps with other keys; names of files in it are relative to its folder."""
        file = Path(path)
        try:
            return cls.from_table(read_toml(file) | changes, file.parent, file.stem)
        except PacelineError as error:
            if str(error).startswith(str(file)):
                raise
            raise type(error)(f"{file}: {error}") from None

    @classmethod
    def from_table(
        cls,
        table: dict[str, Any],
        folder: Path = Path(),
        name: str = "experiment",
        policies: Mapping[str, Policy] | None = None,
    ) -> "Experiment":
        """The experiment that a table describes, or an error that names the key.

        Policies that are objects already stand in place of those of the table.
        """
        single = {key: [table[key]] for key in ("problem", "policy") if isinstance(table.get(key), dict)}  # [problem]
        spec = read(ExperimentSpec, table | single)
        if spec.report is not None:
            checks.one_of("report", spec.report, tuple(CHAPTERS))
        rounds = spec.rounds
        experiment = cls(
            name=spec.name or name,
            problems=tuple(read_problems(spec.problem, folder)),
            policies=read_policies(spec.policies, spec.policy, folder)
            if policies is None
            else {label: PolicySpec(policy, {}, "") for label, policy in policies.items()},
            rounds=read_checkpoints(rounds, spec.checkpoints, spec.horizons),
            trials=spec.trials,
            seed=checks.seed(spec.seed),
            block=spec.block or min(max(BLOCK_ROUNDS // rounds, 1), spec.trials),
            table=table,
            folder=folder,
            record=read_record(spec.record, rounds),
            guard=spec.guard,
        )
        experiment.check()
        return experiment

    def check(self) -> None:
        """Every problem must be playable with the guard, or without it, as the file has it, and by every policy."""
        for field in self.problems:
            with at(f"problem {field.name!r}"):
                check_guard(self.guard, field.problem)
            for label, spec in self.policies.items():
                with at(f"policy {label!r} on problem {field.name!r}"):
                    check_policy(spec.policy, field.problem, int(self.rounds[-1]))

    def tasks(self, done: "Callable[[str], Iterable[range]]" = lambda _: ()) -> list["Task"]:
        """The units of work that are not done, in the order of the results; ``done`` tells of trials by key."""
        held, points = self.holdings, digest(self.rounds.tolist())
        return [
            Task(
                key,
                number,
                place,
                label,
                field,
                spec.policy,
                self.rounds,
                self.seed,
                first,
                count,
                self.record,
                guard=self.guard,
            )
            for number, field in enumerate(self.problems)
            for place, (label, spec) in enumerate(self.policies.items())
            for key in [f"{held.problems[number]}-{held.policies[place]}-{points}"]
            for gap in gaps(done(key), self.trials)
            for first in range(gap.start, gap.stop, self.block)
            for count in [min(self.block, gap.stop - first)]
        ]

    @cached_property
    def holdings(self) -> Holdings:
        """What a file of its results holds."""
        return holdings_of(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """The experiment with everything spelled out: what its results depend on, and nothing else."""
        return {
            "problems": [
                {
                    "name": field.name,
                    "stream": field.stream,
                    **({} if field.apart == FAR_APART else {"apart": field.apart}),
                    "swept": field.swept,
                    "words": field.words,
                    "problem": field.problem.to_dict(),
                    **({} if field.delays is None else {"delay": field.delays.written()}),
                    **({} if field.world is None else {"world": described_object(field.world), **code_of(field.world)}),
                }
                for field in self.problems
            ],
            "policies": [
                {
                    "label": label,
                    "policy": repr(spec.policy),
                    "swept": spec.swept,
                    "words": spec.words,
                    **code_of(spec.policy),
                }
                for label, spec in self.policies.items()
            ],
            "rounds": self.rounds.tolist(),
            "trials": self.trials,
            "seed": self.seed,
            **({} if self.record is None else {"record": self.table["record"]}),
            **({} if self.guard else {"guard": False}),
        }


def read_checkpoints(rounds: int, wanted: int | list[int] | Spread, horizons: Sequence[int] = ()) -> Ints:
    """The rounds at which totals are kept: so many, evenly spread; those in a list; or evenly by their logarithm.

    >>> read_checkpoints(1000, Spread(count=4, first=8), [500])
    array([   8,   40,  200,  500, 1000])
    """
    if isinstance(wanted, Spread):
        checks.whole("checkpoints.first", wanted.first, 1, rounds)
        wanted = [round(point) for point in np.geomspace(wanted.first, rounds, wanted.count).tolist()]
    with at("checkpoints"):
        points = checkpoint_rounds(rounds, wanted)
    return checkpoint_rounds(rounds, [*points.tolist(), *check_horizons(horizons, rounds)])


def check_horizons(given: object, most: int = checks.MOST_ROUNDS) -> list[int]:
    """Rounds after which every policy is held against the best one, in their order."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InvalidValue(f"horizons must be a list of numbers of rounds, got {given!r}")
    return sorted({checks.whole("each horizon", one, 2, most) for one in given})


def code_of(thing: Policy | PythonWorld) -> dict[str, str]:
    """The code of a policy or a world of the user's own; `folder.py` sees to that of ours."""
    found = code_digest(thing)
    return {} if found is None else {"code": found}


@dataclass(frozen=True, eq=False)
class Task:
    """A block of trials of one policy on one problem: the unit of work, small to send."""

    key: str  # of what its numbers depend on, but for the trials
    number: int  # of the problem
    place: int  # of the policy
    label: str
    field: ProblemSpec
    policy: Policy
    rounds: Ints
    seed: int
    first: int  # trial
    count: int
    record: Rounds | None = None
    history: Path | None = None  # the folder for it; without one nothing is recorded
    guard: bool = True

    @property
    def name(self) -> str:
        """The name of its file of results; it stays when other problems and policies come."""
        return f"{self.key}-{self.first}-{self.count}"

    @property
    def cost(self) -> int:
        """Rounds to be played."""
        return self.count * int(self.rounds[-1])

    @property
    def is_in_python(self) -> bool:
        """Whether each round calls plain Python: a policy, or a world."""
        return self.field.world is not None or isinstance(self.policy, PythonPolicy)

    def trials(self) -> list[Trial]:
        """The trials, each with its stream."""
        return [
            Trial(
                self.field.problem,
                self.policy,
                self.rounds,
                self.seed,
                self.field.stream_of(trial),
                world=self.field.world,
                delays=self.field.delays,
                record=self.recorded(trial),
                guard=self.guard,
            )
            for trial in range(self.first, self.first + self.count)
        ]

    def recorded(self, trial: int) -> Record | None:
        """What is kept of a trial, and where."""
        if self.record is None or self.history is None:
            return None
        file = history_file(self.history, self.key.rpartition("-")[0], trial)
        place: dict[str, str | int] = {"problem": self.field.name, "policy": self.label, "trial": trial}
        return Record(self.record, place, self.policy.reasons, self.field.problem.resources, file)


def history_file(folder: Path, key: str, trial: int) -> Path:
    """Where the rounds of a trial are kept: by the digests of its problem and its policy."""
    return folder / f"{key}-{trial:08d}.parquet"


def check_policy(policy: Policy, problem: Problem, rounds: int) -> None:
    """Raise if a policy cannot play a problem."""
    setting = setting_of(problem, rounds)
    policy.check_resources(setting.resources)
    policy.params(setting.seen_by(policy))

"""What to run: an experiment as a TOML file describes it, checked as a whole before anything runs."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paceline import checks
from paceline.errors import InvalidValue, PacelineError
from paceline.experiments.keys import at, refuse_unknown, text_in
from paceline.experiments.policy_specs import PolicySpec, read_policies
from paceline.experiments.problem_specs import ProblemSpec, read_problems
from paceline.policies.code import code_digest
from paceline.policies.policy import Policy
from paceline.problems.problem import Problem
from paceline.problems.toml import read_toml
from paceline.simulation.simulate import Trial, checkpoint_rounds, setting_of

Ints = npt.NDArray[np.int64]

KEYS = ("name", "rounds", "trials", "seed", "checkpoints", "block", "policies", "policy", "problem")
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

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "Experiment":
        """The experiment in a file; names of other files in it are relative to its folder."""
        file = Path(path)
        try:
            return cls.from_table(read_toml(file), file.parent, file.stem)
        except PacelineError as error:
            if str(error).startswith(str(file)):
                raise
            raise type(error)(f"{file}: {error}") from None

    @classmethod
    def from_table(cls, table: dict[str, Any], folder: Path = Path(), name: str = "experiment") -> "Experiment":
        """The experiment that a table describes, or an error that names the key."""
        refuse_unknown("an experiment", table, KEYS)
        rounds = checks.rounds("rounds", table.get("rounds", 100_000))
        trials = checks.whole("trials", table.get("trials", 10), 1, 2**32 - 1)
        points = at("checkpoints", lambda: checkpoint_rounds(rounds, table.get("checkpoints", 100)))
        block = table.get("block", min(max(BLOCK_ROUNDS // rounds, 1), trials))
        experiment = cls(
            name=text_in(table, "name", name),
            problems=tuple(read_problems(table.get("problem"), folder)),
            policies=read_policies(table.get("policies", []), table.get("policy", []), folder),
            rounds=points,
            trials=trials,
            seed=checks.seed(table.get("seed", 0)),
            block=checks.whole("block", block, 1),
            table=table,
        )
        experiment.check_policies(rounds)
        return experiment

    def check_policies(self, rounds: int) -> None:
        """Every policy must be able to play every problem."""
        for label, spec in self.policies.items():
            for field in self.problems:
                where = f"policy {label!r} on problem {field.name!r}"
                at(where, lambda p=spec.policy, f=field: check_policy(p, f.problem, rounds))  # type: ignore[misc]

    def tasks(self) -> list["Task"]:
        """The units of work, in the order of the results."""
        return [
            Task(number, place, label, field, spec.policy, self.rounds, self.seed, first, count)
            for number, field in enumerate(self.problems)
            for place, (label, spec) in enumerate(self.policies.items())
            for first in range(0, self.trials, self.block)
            for count in [min(self.block, self.trials - first)]
        ]

    @property
    def layout(self) -> "Layout":
        """What the columns of its results must hold."""
        problems = [field.problem for field in self.problems]
        return Layout(
            several=any(len(problem.resources) > 1 for problem in problems),
            capped=any(cap < np.inf for problem in problems for cap in problem.caps),
        )

    @property
    def all_rounds(self) -> int:
        """Rounds in all."""
        return int(self.rounds[-1]) * self.trials * len(self.problems) * len(self.policies)

    def to_dict(self) -> dict[str, Any]:
        """The experiment with everything spelled out: what its results depend on, and nothing else."""
        return {
            "problems": [
                {
                    "name": field.name,
                    "stream": field.stream,
                    "swept": field.swept,
                    "words": field.words,
                    "problem": field.problem.to_dict(),
                    **({} if field.delays is None else {"delay": field.delays.written()}),
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
            "block": self.block,
        }


def code_of(policy: Policy) -> dict[str, str]:
    """The code of a policy of the user's own; `folder.py` sees to that of ours."""
    found = code_digest(policy)
    return {} if found is None else {"code": found}


class Layout(NamedTuple):
    """Of the problems of an experiment: whether one has several resources, and whether one has a cap."""

    several: bool
    capped: bool


@dataclass(frozen=True, eq=False)
class Task:
    """A block of trials of one policy on one problem: the unit of work, small to send."""

    number: int  # of the problem
    place: int  # of the policy
    label: str
    field: ProblemSpec
    policy: Policy
    rounds: Ints
    seed: int
    first: int  # trial
    count: int

    @property
    def name(self) -> str:
        """The name of its file of results."""
        return f"{self.number:06d}-{self.place:04d}-{self.first:08d}"

    @property
    def cost(self) -> int:
        """Rounds to be played."""
        return self.count * int(self.rounds[-1])

    def trials(self) -> list[Trial]:
        """The trials, each with its stream."""
        first = self.field.stream + self.first
        return [
            Trial(self.field.problem, self.policy, self.rounds, self.seed, stream, delays=self.field.delays)
            for stream in range(first, first + self.count)
        ]


def check_policy(policy: Policy, problem: Problem, rounds: int) -> None:
    """Raise if a policy cannot play a problem."""
    setting = setting_of(problem, rounds)
    policy.check_resources(setting.resources)
    policy.params(setting.seen_by(policy))


def check_file_of(experiment: Experiment, other: dict[str, Any], where: Path) -> None:
    """Refuse results of another experiment."""
    if other != experiment.to_dict():
        keys = [key for key, value in experiment.to_dict().items() if other.get(key) != value]
        raise InvalidValue(f"{where} must hold results of this experiment; those in it differ in {', '.join(keys)}")

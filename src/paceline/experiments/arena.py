"""Policies against each other on a whole family of problems, with the same random numbers for all."""

import io
import json
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from paceline import checks
from paceline.errors import InvalidValue, UnreadableFile
from paceline.experiments.scores import Score, final_causes, problem_table, reference_of, score_table, scores
from paceline.policies import PoliciesLike, label_policies
from paceline.problems import families
from paceline.problems.problem import Problem
from paceline.problems.theory import Limits, limit, limits
from paceline.reports.tables import Table
from paceline.simulation.progress import progress_bar
from paceline.simulation.results import Results, list_names
from paceline.simulation.simulate import check_executor, checkpoint_rounds, play_trials
from paceline.worlds.delays import DelayLike, in_words, read_delays

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FORMAT = 2
ROUNDS = 20_000
CHECKPOINTS = 40
FIRST_CHECKPOINT = 100


@dataclass(frozen=True, eq=False, repr=False)
class Arena:
    """The results of the same policies on several problems.

    >>> arena = compare("beta", ["oracle", "uniform"], problems=2, rounds=2000, trials=4)
    >>> arena.labels, [score.won for score in arena.scores()]
    (('oracle', 'uniform'), [2, 0])
    """

    title: str
    results: tuple[Results, ...]  # one per problem, with the same labels, rounds and trials
    groups: tuple[int, ...] = ()  # problems with the same number share their arms and draws: points of a grid
    late: str = ""  # how late the news was, in words

    def __repr__(self) -> str:
        return f"<Arena {self.title!r}: {list_names(self.labels)}; {self.size}>"

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    @property
    def labels(self) -> tuple[str, ...]:
        """The policies."""
        return tuple(self.results[0])

    @property
    def rounds(self) -> Ints:
        """(C,) the checkpoint rounds; the last is the number of rounds played."""
        return self.results[0].rounds

    @property
    def trials(self) -> int:
        """The number of trials of each policy on each problem."""
        return self.results[0].trials

    @property
    def seed(self) -> int:
        """The seed of the trials."""
        return self.results[0].seed

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The problems in their order."""
        return tuple(res.problem for res in self.results)

    @property
    def size(self) -> str:
        """How large the comparison is, in words."""
        late = f", {self.late}" if self.late else ""
        return (
            f"{len(self.results)} problems, {self.trials} trials of {self.rounds[-1]:,} rounds, seed {self.seed}{late}"
        )

    @cached_property
    def limits(self) -> Floats:
        """(problems, C): `paceline.theory.limit` of each problem at each checkpoint. A yardstick, not a bound."""
        return np.array([found.capped for found in self._limits])

    @cached_property
    def capped(self) -> list[bool]:
        """By problem: whether the bare formula of the limit exceeds what there is to lose in these rounds."""
        return [bool(found.cut[-1]) for found in self._limits]

    @cached_property
    def _limits(self) -> list[Limits]:
        return [limits(problem, self.rounds) for problem in self.problems]

    def reference(self, label: str | None = None) -> str:
        """The policy that the others are held against: the one named, else suak, else the first."""
        return reference_of(self.labels, label)

    def scores(self, reference: str | None = None) -> list[Score]:
        """What `table` shows, as numbers."""
        against = self.reference(reference)
        if against not in self._scored:
            self._scored[against] = scores(self.results, self.limits[:, -1], against, self.groups)
        return self._scored[against]

    @cached_property
    def _scored(self) -> dict[str, list[Score]]:
        """The scores by reference."""
        return {}

    def causes(self, label: str) -> dict[str, float]:
        """Steady regret of a policy by cause, in units of the limit: mean over trials and problems."""
        return final_causes(self.results, label, self.limits[:, -1])

    def table(self, reference: str | None = None) -> Table:
        """One line per policy: steady regret against the limit and against the reference, with 95 % intervals.

        Both are geometric means over problems, with intervals of Student's t over problems, for all problems of the
        kind (`paceline.statistics.geometric_mean`); of a single problem over trials, for this one. A mean steady regret
        below 0.1 (short runs have them, even below 0) counts as 0.1.
        """
        return score_table(self.scores(reference), self.reference(reference), sum(self.capped))

    def by_problem(self) -> Table:
        """One line per problem, with the mean steady regret of each policy, and who wins by more than noise."""
        return problem_table(self.results, self.limits[:, -1], self.capped)

    def plot(self, path: str | os.PathLike[str] | None = None) -> "Figure":
        """Steady regret in units of the limit: by round, by cause, and its spread over trials and problems."""
        from paceline.reports.figures import arena_figure

        return arena_figure(self, path)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file (an npz that holds the file of each problem's results), all or nothing."""
        target = Path(path)
        size = {"problems": len(self.results), "groups": self.groups, "late": self.late}
        head = json.dumps({"format": FORMAT, "title": self.title, **size})
        with TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as folder:
            parts = {}
            for number, res in enumerate(self.results):
                part = Path(folder) / f"{number}.npz"
                res.save(part)
                parts[str(number)] = np.frombuffer(part.read_bytes(), np.uint8)
            whole = Path(folder) / "whole.npz"
            with whole.open("wb") as file:
                np.savez(file, head=np.array(head), **parts)  # type: ignore[arg-type]  # none is called allow_pickle
            whole.replace(target)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Arena":
        """Read a file that `save` wrote."""
        try:
            contents = Path(path).read_bytes()
        except OSError as error:
            raise UnreadableFile(f"{path} must be a readable file, but: {error.strerror}") from error
        try:
            with np.load(io.BytesIO(contents), allow_pickle=False) as file, TemporaryDirectory() as folder:
                head = json.loads(str(file["head"]))
                other = head["format"] != FORMAT
                part = Path(folder) / "part.npz"
                results = []
                for number in range(0 if other else head["problems"]):
                    part.write_bytes(file[str(number)].tobytes())
                    results.append(Results.load(part))
        except Exception as error:  # foreign bytes can make NumPy, zipfile and json fail in any way they like
            raise UnreadableFile(f"{path} must be a file written by Arena.save; it is damaged or foreign") from error
        if other:
            raise UnreadableFile(f"{path} has format {head['format']}; this version reads {FORMAT}")
        return cls(head["title"], tuple(results), tuple(head.get("groups", ())), head.get("late", ""))


def compare(
    kind_or_problems: str | Sequence[Problem],
    policies: PoliciesLike,
    *,
    problems: int = 6,
    rounds: int | None = None,
    trials: int = 8,
    seed: int = 0,
    shortfall: float = families.SHORTFALL,
    resources: int | None = None,
    executor: Executor | None = None,
    progress: bool = False,
    delay: DelayLike = None,
    horizons: Sequence[int] = (),
) -> Arena:
    """Play each policy on each problem of a family: one of `paceline.problems.KINDS`, or a list of problems.

    ``problems`` is the size of the family, ``shortfall`` says how close the race is, ``resources`` how many there are
    (see `paceline.problems.random`); these go with a kind. ``rounds`` are 20,000 unless given, or as many as the kind
    is for: "start" is for 500, and no more. ``delay`` says how late outcomes are (see `simulate`). ``horizons`` are
    rounds at which totals are wanted besides. ``seed`` draws the family and the trials. Every policy meets the same
    random numbers on a problem, and each problem has numbers of its own.

    >>> from paceline import paper
    >>> arena = compare([paper.three_arms()], ["suak", "uniform"], rounds=1000, trials=2)
    >>> arena.by_problem().headings
    ('problem', 'case', 'arms', 'budget', 'limit', 'suak', 'uniform', 'won by')
    """
    chosen = label_policies(policies)
    rounds = rounds_to_play(kind_or_problems, rounds, ROUNDS)
    check_scale(problems, rounds, trials, seed)
    check_executor(executor)
    delays, wanted = read_delays(delay), check_horizons(horizons)
    title, problems_to_play = field(kind_or_problems, problems, seed, shortfall, resources)
    for problem in problems_to_play:
        for policy in chosen.values():
            policy.check_resources(len(problem.resources))
    first = max(min(FIRST_CHECKPOINT, rounds // 10), 2)
    spread = [round(at) for at in np.geomspace(first, rounds, CHECKPOINTS).tolist()]
    points = checkpoint_rounds(rounds, [*spread, *(at for at in wanted if at <= rounds)])
    with progress_bar(rounds * trials * len(chosen) * len(problems_to_play), progress) as bar:
        results = [
            play_trials(problem, chosen, points, seed, streams, executor, bar, delays=delays)
            for number, problem in enumerate(problems_to_play)
            for streams in [range(number * trials, (number + 1) * trials)]
        ]
    return Arena(title, tuple(results), late=in_words(delays))


def rounds_to_play(kind: object, rounds: int | None, otherwise: int) -> int:
    """The rounds asked for, or else those that the kind of problem is for; it may be for so many and no more."""
    most = families.rounds_of(kind, checks.MOST_ROUNDS) if isinstance(kind, str) else checks.MOST_ROUNDS
    if rounds is None:
        return min(otherwise, most)
    return checks.whole(f"rounds of kind {kind!r}", rounds, 2, most) if most < checks.MOST_ROUNDS else rounds


def check_horizons(given: object) -> list[int]:
    """The rounds at which totals are wanted, in their order."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InvalidValue(f"horizons must be a list of numbers of rounds, got {given!r}")
    return sorted({checks.whole("each horizon", one, 2, checks.MOST_ROUNDS) for one in given})


def check_scale(problems: int, rounds: int, trials: int, seed: int) -> None:
    """Refuse what `compare` would refuse, before anything is run or written."""
    checks.whole("problems", problems, 1)
    checks.whole("rounds", rounds, 2, checks.MOST_ROUNDS)  # after one round the limit is 0
    checks.whole("trials", trials, 1)
    checks.seed(seed)


def field(
    kind_or_problems: str | Sequence[Problem], size: int, seed: int, shortfall: float, resources: int | None
) -> tuple[str, list[Problem]]:
    """What to call the problems, and the problems; each must have something to learn, or nothing could be compared."""
    if isinstance(kind_or_problems, str):
        return kind_or_problems, families.family(kind_or_problems, size, seed, shortfall=shortfall, resources=resources)
    problems_to_play: list[Problem] = list(kind_or_problems) if isinstance(kind_or_problems, list | tuple) else []
    if not problems_to_play:
        raise InvalidValue(f"problems must be a kind or a list of at least one Problem, got {kind_or_problems!r}")
    for number, problem in enumerate(problems_to_play):
        if not isinstance(problem, Problem):
            raise InvalidValue(f"problems[{number}] must be a Problem, got {problem!r}")
        if limit(problem, 2) == 0.0:
            raise InvalidValue(f"problems[{number}] must have an arm that loses, to be compared with its limit, got 0")
    return "given problems", problems_to_play

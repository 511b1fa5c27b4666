"""What a simulation leaves behind: raw totals by policy, and the views of them that people ask for."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from paceline import checks
from paceline.errors import InvalidValue, UnknownName, UnreadableFile
from paceline.files import all_or_nothing
from paceline.problems.problem import Problem
from paceline.problems.resources import UNNAMED
from paceline.reports.tables import Table, frame, of_resources, results_table
from paceline.simulation import regret
from paceline.simulation.history import History
from paceline.simulation.totals import Totals

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FORMAT = 2
BY_RESOURCE = ("spent", "lost", "headroom", "min_headroom", "violation")


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """The trials of one policy. Arrays have a row per trial and a column per checkpoint."""

    label: str
    policy: str  # the policy as it was set up, for the reader
    problem: Problem
    rounds: Ints
    totals: Totals
    kept: History | None = None
    guard: bool = True  # whether it was played behind the guard

    def __repr__(self) -> str:
        return f"<Run {self.label!r}: {write_size(self.totals, self.rounds)}>"

    def _repr_html_(self) -> str:
        return results_table({self.label: self}, guard=self.guard)._repr_html_()

    @cached_property
    def regret(self) -> Floats:
        """Empirical regret  T r* - sum of rewards."""
        return regret.empirical(self.problem, self.rounds, self.totals)

    @cached_property
    def pseudo_regret(self) -> Floats:
        """T r* - sum of the mean rewards of the pulled arms."""
        return regret.pseudo(self.problem, self.rounds, self.totals)

    @cached_property
    def steady_regret(self) -> Floats:
        """Pseudo-regret without the luck of costs: the one to compare policies by."""
        return regret.steady(self._breakdown)

    def breakdown(self, by_resource: bool = False) -> dict[str, Floats]:
        """Pseudo-regret by cause: wrong_arms + idle + unspent = steady_regret, and + cost_luck = pseudo_regret.

        With ``by_resource`` unspent and cost_luck are split: they have one more axis, for the resources.
        """
        if by_resource:
            return regret.breakdown(self.problem, self.rounds, self.totals, by_resource=True)
        return dict(self._breakdown)

    @cached_property
    def _breakdown(self) -> dict[str, Floats]:
        return regret.breakdown(self.problem, self.rounds, self.totals)

    @property
    def reward(self) -> Floats:
        """Cumulative reward, counted in the round of the pull, whether the news of it has come or not."""
        return self.totals.earned

    @property
    def skips(self) -> Ints:
        """Rounds without a pull in which the policy did not want the null arm: refused, or given up by its own rule.

        A null arm that its base asks for is no skip, also when nothing could have been paid for.
        """
        return self.totals.skips

    @property
    def idle(self) -> Ints:
        """All rounds without a pull: skips, and null arms that the policy wanted."""
        return self.totals.idle

    @property
    def spent(self) -> Floats:
        """Cumulative cost; with several resources there is one more axis, for them."""
        return self.totals.spent

    @property
    def lost(self) -> Floats:
        """What came in above the cap of a resource, shaped like ``spent``."""
        return self.totals.lost

    @cached_property
    def headroom(self) -> Floats:
        """What was left at each checkpoint: start stock and income, without what was lost and spent.

        Shaped like ``spent``. The smallest of all rounds, not of the checkpoints alone, is ``min_headroom``.
        """
        line = regret.income(self.problem, self.rounds)
        return (line if len(self.problem.resources) > 1 else line[:, 0]) - self.lost - self.spent

    def by_resource(self, quantity: str) -> dict[str, Floats]:
        """Spent, lost, headroom, min_headroom or violation by the name of the resource, which is "cost" without one."""
        checks.one_of("quantity by resource", quantity, BY_RESOURCE)
        values: Floats = getattr(self, quantity)
        sides = values if len(self.problem.resources) > 1 else values[..., np.newaxis]
        return {name: sides[..., d] for d, name in enumerate(self.problem.resources)}

    @property
    def pulls(self) -> Ints:
        """(trials, K): pulls of each arm at the end."""
        return self.totals.pulls[:, -1]

    @property
    def min_headroom(self) -> Floats:
        """(trials,): the smallest  line - spent  over all rounds. Not below 0, or the promise was broken.

        With several resources it is (trials, D). Only a run without the guard makes no such promise.
        """
        return self.totals.min_headroom

    @property
    def violation(self) -> Floats:
        """The worst by which the line was crossed: the largest  spent - line  over all rounds, 0 if there was none.

        Shaped like ``min_headroom``. Not what is left of it in the last round, as many papers count: what was saved
        later does not make good for it.
        """
        return np.maximum(-self.min_headroom, 0.0)

    @property
    def memory(self) -> dict[str, npt.NDArray[Any]]:
        """What the policy itself kept count of, by name."""
        return {name: self.totals.memory[name] for name in self.totals.memory.dtype.names or ()}

    def history(self) -> History:
        """Its rounds one by one, those that `simulate` was told to record."""
        if self.kept is None:
            raise InvalidValue(f"run {self.label!r} must be simulated with record to have a history, got none of it")
        return self.kept

    def rounds_by_event(self) -> dict[str, Ints]:
        """SUAK only: rounds by kind (guard skips, classification skips and pulls, base rounds)."""
        return regret.rounds_by_event(self.label, self.totals)

    def regret_by_event(self) -> dict[str, Floats]:
        """SUAK only: empirical regret by kind of round, the paper's R_a, R_c, R_b, R_d."""
        return regret.regret_by_event(self.label, self.problem, self.totals)


def write_size(totals: Totals, rounds: Ints) -> str:
    """How much was played."""
    trials = len(totals.min_headroom)
    return f"{trials} trial{'' if trials == 1 else 's'} of {rounds[-1]:,} rounds"


def list_names(names: Sequence[str], most: int = 6, link: str = ", ") -> str:
    """Names, but not more than a reader wants to see.

    >>> list_names(["a", "b"]), list_names(["a", "b", "c"], most=2)
    ('a, b', 'a, b and 1 more')
    """
    more = len(names) - most
    return link.join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


@dataclass(frozen=True, eq=False, repr=False)
class Results(Mapping[str, Run]):
    """The runs of a simulation by label.

    >>> from paceline import paper
    >>> from paceline.simulation import simulate as run
    >>> res = run.simulate(paper.three_arms(), ["uniform", "oracle"], rounds=1000, trials=2)
    >>> list(res), int(res.rounds[-1]), res["oracle"].pulls.shape
    (['uniform', 'oracle'], 1000, (2, 3))
    >>> res
    <Results: uniform, oracle; 2 trials of 1,000 rounds, 3 arms, seed 0>
    """

    problem: Problem
    seed: int
    rounds: Ints  # (C,), the last is the number of rounds played
    runs: dict[str, Run]
    late: str = ""  # how late the news was, in words
    guard: bool = True  # whether the policies played behind the guard

    def __repr__(self) -> str:
        size = write_size(next(iter(self.runs.values())).totals, self.rounds)
        resources = self.problem.resources
        several = "" if resources == (UNNAMED,) else f", resources {', '.join(resources)}"
        late = (f", {self.late}" if self.late else "") + ("" if self.guard else ", without the guard")
        arms = f"{self.problem.arms} arms{several}"
        return f"<Results: {list_names(list(self.runs))}; {size}, {arms}, seed {self.seed}{late}>"

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def __getitem__(self, label: str) -> Run:
        if label not in self.runs:
            raise UnknownName(
                f"label must be one of {', '.join(self.runs)}, got {label!r}{checks.guess(label, self.runs)}"
            )
        return self.runs[label]

    def __iter__(self) -> Iterator[str]:
        return iter(self.runs)

    def __len__(self) -> int:
        return len(self.runs)

    @property
    def trials(self) -> int:
        """The number of trials of each run."""
        return len(next(iter(self.runs.values())).min_headroom)

    def table(self) -> Table:
        """One line per policy, as of the last round."""
        return results_table(self.runs, self.late, self.guard)

    def to_pandas(self) -> "pd.DataFrame":
        """A row per policy, trial and checkpoint: totals up to that round.

        Columns of resources with names end in the name, as in spent_money; where there is a cap there is lost, too.
        Pulls have a column per arm, from pulls_0.
        """
        columns = ("reward", "regret", "pseudo_regret", "steady_regret", "skips", "idle")
        amounts = ("spent", "lost", "headroom") if min(self.problem.caps) < np.inf else ("spent", "headroom")
        trial, at = (axis.ravel() for axis in np.indices((self.trials, len(self.rounds))))
        parts: list[dict[str, npt.NDArray[Any]]] = [
            {
                "policy": np.full(trial.size, label, object),
                "trial": trial,
                "round": self.rounds[at],
                **{name: getattr(run, name).ravel() for name in columns},
                **{
                    column: values.ravel()
                    for name in amounts
                    for column, values in zip(
                        of_resources(name, self.problem.resources, "_"), run.by_resource(name).values(), strict=True
                    )
                },
                **{f"pulls_{arm}": run.totals.pulls[..., arm].ravel() for arm in range(self.problem.arms)},
                **{name: values.ravel() for name, values in run.breakdown().items() if name != "idle"},
                "idle_regret": run.breakdown()["idle"].ravel(),
            }
            for label, run in self.runs.items()
        ]
        return frame({name: np.concatenate([part[name] for part in parts]) for name in parts[0]})

    def plot(
        self,
        path: str | os.PathLike[str] | None = None,
        quantities: tuple[str, ...] | None = None,
    ) -> "Figure":
        """A panel per quantity against the round, a line per policy with a band for the 95 % interval.

        Quantities: regret, pseudo_regret, steady_regret, skips, idle, spent, slack (c minus the average cost; with a
        start stock or a cap the headroom per round), headroom, violation (the worst so far, for runs without the
        guard). The last four have a panel per resource. Unless given they are steady_regret, skips and slack; without
        the guard steady_regret, slack and violation.
        """
        from paceline.reports.figures import curves

        usual = ("steady_regret", "skips", "slack") if self.guard else ("steady_regret", "slack", "violation")
        return curves(self, usual if quantities is None else quantities, path)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all totals to one file (NumPy's npz with a JSON head), all or nothing.

        Histories are not in it: those that are to last are streamed to files of their own (``record_to``).
        """
        head = {
            "format": FORMAT,
            "problem": self.problem.to_dict(),
            "seed": self.seed,
            "late": self.late,
            "guard": self.guard,
            "runs": [{"label": label, "policy": run.policy} for label, run in self.runs.items()],
        }
        arrays = {
            f"{number}/{field}": array
            for number, run in enumerate(self.runs.values())
            for field, array in run.totals._asdict().items()
        }
        with all_or_nothing(Path(path)) as unfinished, unfinished.open("wb") as file:
            np.savez_compressed(file, head=np.array(json.dumps(head)), rounds=self.rounds, **arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Results":
        """Read a file that `save` wrote."""
        try:
            with Path(path).open("rb") as stream, np.load(stream, allow_pickle=False) as file:
                return cls._read(file)
        except OSError as error:
            raise UnreadableFile(f"{path} must be a readable file, but: {error.strerror or error}") from error
        except OtherFormat as error:
            raise UnreadableFile(f"{path} {error}") from None
        except Exception as error:  # foreign bytes can make NumPy, zipfile, zlib and json fail in any way they like
            raise UnreadableFile(f"{path} must be a file written by Results.save; it is damaged or foreign") from error

    @classmethod
    def _read(cls, file: Mapping[str, npt.NDArray[Any]]) -> "Results":
        head = json.loads(str(file["head"]))
        if head["format"] != FORMAT:
            raise OtherFormat(f"has format {head['format']}; this version reads {FORMAT}")
        problem, rounds, guard = Problem.from_dict(head["problem"]), file["rounds"], head.get("guard", True)
        runs = {
            entry["label"]: Run(
                entry["label"],
                entry["policy"],
                problem,
                rounds,
                Totals(**{field: file[f"{number}/{field}"] for field in Totals._fields}),
                guard=guard,
            )
            for number, entry in enumerate(head["runs"])
        }
        return cls(problem, head["seed"], rounds, runs, head.get("late", ""), guard)


class OtherFormat(Exception):
    """A file from another version."""

"""Every policy beside the best one, family by family and horizon by horizon: where does a policy lose, and how much?"""

from collections.abc import Sequence

import numpy as np

from paceline.errors import InvalidValue
from paceline.experiments.arena import Arena
from paceline.reports.tables import Table
from paceline.statistics import Estimate, losses_to_best

ABSENT = ""  # a policy that cannot play a family
NOTES = (
    "Mean steady regret over that of the best policy of the row: geometric mean over problems, 95 % interval of "
    "Student's t over problems. The best policy of a row is picked by these very numbers, which flatters it a little.",
)


def standings(arenas: Sequence[Arena], horizons: Sequence[int]) -> Table:
    """A line per family and horizon, a column per policy: its regret over that of the best policy of the line.

    Every horizon must be a checkpoint of the arenas that are as long (see `compare`); one that is longer than a family
    is for has no line there.

    >>> from paceline.experiments.arena import compare
    >>> arena = compare("beta", ["oracle", "uniform"], problems=2, rounds=2000, trials=2, horizons=[500])
    >>> standings([arena], [500, 2000]).headings
    ('family', 'rounds', 'oracle', 'uniform')
    """
    labels = list(dict.fromkeys(label for arena in arenas for label in arena.labels))
    rows = []
    for arena in arenas:
        for horizon in horizons:
            if horizon <= arena.rounds[-1]:
                found = {label: str(loss) for label, loss in losses_at(arena, horizon).items()}
                rows.append((arena.title, f"{horizon:,}", *(found.get(label, ABSENT) for label in labels)))
    return Table(("family", "rounds", *labels), tuple(rows), NOTES)


def losses_at(arena: Arena, horizon: int) -> dict[str, Estimate]:
    """The regret of each policy over that of the best by the end of a round, which must be a checkpoint."""
    at = np.flatnonzero(arena.rounds == horizon)
    if not at.size:
        raise InvalidValue(f"horizon must be a checkpoint of the arena {arena.title!r}, got {horizon}")
    regret = np.array([[res[label].steady_regret[:, at[0]] for res in arena.results] for label in arena.labels])
    return dict(zip(arena.labels, losses_to_best(regret, arena.groups), strict=True))

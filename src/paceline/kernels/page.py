"""A page of history: what happened in some rounds, a row each, written while they are played.

Somebody outside the loop says which rounds are wanted, takes the page away when it is full and brings the next one. So
memory does not grow with the rounds, and a loop that keeps nothing has none of this in it: there `write_nothing` stands
in the place of `write_row`.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paceline.kernels.budget import Books, line_units
from paceline.kernels.jit import kernel
from paceline.kernels.state import GUARD, SKIP, Decision

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

NO_PAGE = 0  # in place of a page where nothing is kept


class Page(NamedTuple):
    """Arrays with a row per round; those of resources have a column for each. Amounts are on the scale of costs."""

    rounds: Ints  # that are wanted, in their order
    written: Ints  # (1,) so many rows
    arm: npt.NDArray[np.int32]  # 0 .. K-1 for a pull, K for a null arm that the policy wanted, `SKIP` for a skip
    reason: npt.NDArray[np.int16]
    reward: Floats  # of a round without a pull 0, and so are the costs
    cost: Floats
    available: Floats  # what the guard had to compare with when the arm was chosen
    headroom: Floats  # line - spent at the end of the round, whether the news of it has come or not


@kernel
def write_row(page: Page, books: Books, decision: Decision, reward: float, cost: Any, spent: Ints) -> None:
    """Write a round down, if it is wanted: what was decided, what it brought, and what is left.

    ``spent`` is what has really been spent, also where the books do not know of all of it yet. A null arm is what was
    wanted also where nothing could have been paid for; then the tag says so.
    """
    row = page.written[0]
    if row == page.rounds.size or page.rounds[row] != books.tally.t:
        return
    arms = books.pulls.size
    is_pull = 0 <= decision.arm < arms
    wants_null = decision.arm == SKIP and decision.reason == GUARD and decision.tag == arms
    page.arm[row] = arms if wants_null else decision.arm
    page.reason[row] = decision.reason
    page.reward[row] = reward if is_pull else 0.0
    for d in range(spent.size):
        page.cost[row, d] = cost[d] if is_pull else 0.0
        page.available[row, d] = books.headroom[d] * books.unit[d]
        page.headroom[row, d] = (line_units(books, d) - spent[d]) * books.unit[d]
    page.written[0] = row + 1


@kernel
def write_nothing(page: int, books: Books, decision: Decision, reward: float, cost: Any, spent: Ints) -> None:
    """In a loop that keeps nothing."""


def new_page(rows: int, resources: int) -> Page:
    """A page on which no round is wanted yet."""
    return Page(
        rounds=np.zeros(rows, np.int64),
        written=np.zeros(1, np.int64),
        arm=np.zeros(rows, np.int32),
        reason=np.zeros(rows, np.int16),
        reward=np.zeros(rows),
        cost=np.zeros((rows, resources)),
        available=np.zeros((rows, resources)),
        headroom=np.zeros((rows, resources)),
    )

"""Very many pulls that are not settled, on shelves of a few thousand each.

A dictionary that is full is copied into a larger one, and everybody waits meanwhile: 6 ms with a hundred thousand
pulls. A shelf takes the pulls of so many rounds and no others, so that it stays small. Finding a pull takes two steps
instead of one, which is why this is for many pulls only.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Any

from paceline.live.pulls import Finds, Pulls, Row

BITS = 12
NOTHING: dict[int, Row] = {}


class Shelves(Finds):
    """Pulls by number, in the order in which they began, which is that of their numbers.

    Those that were there in the beginning stay where they were: nothing is added to that dictionary, so it is never
    copied.
    """

    def __init__(self, pulls: Pulls) -> None:
        self.first = pulls
        self.last = next(reversed(pulls), 0)  # number on the first shelf
        self.others: dict[int, dict[int, Row]] = {}

    def shelf_of(self, number: int) -> dict[int, Row]:
        """The shelf that a pull is on, if it is here."""
        return self.first if number <= self.last else self.others.get(number >> BITS, NOTHING)

    def get(self, number: int, default: Any = None) -> Any:
        """A pull, if it is here."""
        return self.shelf_of(number).get(number, default)

    def __getitem__(self, number: int) -> Row:
        return self.shelf_of(number)[number]

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int) and number in self.shelf_of(number)

    def __setitem__(self, number: int, row: Row) -> None:
        shelf = self.first if number <= self.last else self.others.setdefault(number >> BITS, {})
        shelf[number] = row

    def __delitem__(self, number: int) -> None:
        shelf = self.shelf_of(number)
        del shelf[number]
        if not shelf and shelf is not self.first:
            del self.others[number >> BITS]

    def __len__(self) -> int:
        return sum(map(len, self.others.values()), len(self.first))

    def __iter__(self) -> Iterator[int]:
        return chain(self.first, *self.others.values())

    def items(self) -> Iterator[tuple[int, Row]]:  # type: ignore[override]  # to look for each would be slow
        """Each number and its pull."""
        return chain.from_iterable(shelf.items() for shelf in (self.first, *self.others.values()))

    def values(self) -> Iterator[Row]:  # type: ignore[override]  # likewise
        """Each pull."""
        return chain.from_iterable(shelf.values() for shelf in (self.first, *self.others.values()))

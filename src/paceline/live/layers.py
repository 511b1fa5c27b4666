"""Pulls that somebody looks through while they go on changing: nothing is copied, and no call takes long.

A snapshot or a status looks through all pulls that are not settled as they were at one moment. There may be a hundred
thousand of them, and a copy would stop everybody for as long as it takes. So whatever is looked at is left as it is,
and changes from then on are noted in a layer above it. Once nobody looks at a layer any more, the one above is worked
into it, a few entries at a time, until there is one dictionary again.
"""

from collections.abc import Iterator, MutableMapping, Sequence
from itertools import chain, islice
from operator import itemgetter
from typing import Any
from weakref import ref

from paceline.live.pulls import Finds, Pulls, Row
from paceline.live.shelves import Shelves

SOME = 100  # entries that are looked at before the first of them is seen

# A row, or None for a pull that is gone; in the lowest layer every pull is there.
Layer = MutableMapping[int, Any]
Entry = tuple[int, Row]


class View:
    """The pulls of one moment. They stay as they are for as long as this object lives."""

    def __init__(self, layers: Sequence[Layer]) -> None:
        self.layers = layers

    def parts(self, most: int) -> Iterator[list[Entry]]:
        """The pulls in the order in which they began, part by part, as `parts_of` has them."""
        yield from parts_of(self.layers, most)  # a generator holds on to the view

    def items(self) -> Iterator[Entry]:
        """Each number and its pull, in the order in which they began."""
        return chain.from_iterable(self.parts(SOME))

    def values(self) -> Iterator[Row]:
        """Each pull."""
        return map(itemgetter(1), self.items())


class Layers(Finds):
    """The pulls that are not settled, some of them in layers that are looked at.

    A view has the lowest layers up to one of them, and never the topmost, which takes all changes. So all layers that
    are looked at lie below those that are not.
    """

    def __init__(self, pulls: Pulls | Shelves) -> None:
        self.layers: list[Layer] = [pulls]
        self.count = len(pulls)  # an interrupt may put it out by one until all is one dictionary again
        self.views: list[ref[View]] = []

    def view(self) -> View:
        """The pulls at this moment, for somebody to look through."""
        if self.layers[-1] or len(self.layers) == 1:
            self.layers.append(Shelves(Pulls()))  # it may become large if somebody looks for long
        view = View(self.layers[:-1])
        self.views.append(ref(view))
        return view

    def __getitem__(self, number: int) -> Row:
        row: Row | None = self.get(number)
        if row is None:
            raise KeyError(number)
        return row

    def get(self, number: int, default: Any = None) -> Any:
        """A pull, if it is here."""
        for layer in reversed(self.layers):
            if number in layer:
                row = layer[number]
                return default if row is None else row
        return default

    def __contains__(self, number: object) -> bool:
        return self.get(number) is not None  # type: ignore[arg-type]  # as in a dictionary, anything may be asked for

    def __setitem__(self, number: int, row: Row) -> None:
        is_new = number not in self
        self.layers[-1][number] = row
        self.count += is_new

    def __delitem__(self, number: int) -> None:
        if number not in self:
            raise KeyError(number)
        *below, top = self.layers
        if any(number in layer for layer in below):
            top[number] = None
        else:
            del top[number]
        self.count -= 1

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[int]:
        return map(itemgetter(0), entries_in(self.layers))

    def items(self) -> Iterator[Entry]:  # type: ignore[override]  # a look into each layer for each is slow
        """Each number and its pull, in the order in which they began."""
        return entries_in(self.layers)

    def values(self) -> Iterator[Row]:  # type: ignore[override]  # likewise
        """Each pull."""
        return map(itemgetter(1), entries_in(self.layers))

    def merged(self, most: int) -> "Pulls | Shelves | Layers":
        """The same pulls after so many entries of a layer were worked into one below it that nobody looks at."""
        seen = [view for found in self.views if (view := found()) is not None]
        self.views = list(map(ref, seen))
        lowest = max([len(view.layers) for view in seen], default=0)  # that nobody looks at
        if lowest + 1 < len(self.layers):
            into, above = self.layers[lowest : lowest + 2]
            for number in list(islice(above, most)):
                if lowest == 0 and above[number] is None:
                    into.pop(number, None)
                else:
                    into[number] = above[number]
                del above[number]
            if not above:
                del self.layers[lowest + 1]
        whole = self.layers[0]
        return whole if len(self.layers) == 1 and isinstance(whole, Pulls | Shelves) else self


def entries_in(layers: Sequence[Layer]) -> Iterator[Entry]:
    """Each pull with its number, in the order in which they began."""
    return chain.from_iterable(parts_of(layers, SOME))


def first_rows(pulls: "Pulls | Shelves | Layers", most: int) -> Iterator[Row]:
    """The pulls that began first; so many entries are looked at, or a few more, and no others."""
    layers = pulls.layers if isinstance(pulls, Layers) else [pulls]
    parts = islice(parts_of(layers, SOME), -(-most // SOME))
    return map(itemgetter(1), chain.from_iterable(parts))


def parts_of(layers: Sequence[Layer], most: int) -> Iterator[list[Entry]]:
    """Each pull with its number, in the order in which they began; of one that has changed, what it is at the top.

    For each part at most so many entries are looked at. There may be thousands in a row that are gone: parts may be
    short, or empty, but none takes long.
    """
    for place, layer in enumerate(layers):
        below, above = layers[:place], layers[place + 1 :]
        entries = iter(layer.items())
        while looked_at := list(islice(entries, most)):
            if below:
                looked_at = [
                    entry for entry in looked_at if not any(entry[0] in each for each in below)
                ]  # had its turn
            for each in above:
                looked_at = [(number, each.get(number, row)) for number, row in looked_at]
            yield [entry for entry in looked_at if entry[1] is not None] if below or above else looked_at

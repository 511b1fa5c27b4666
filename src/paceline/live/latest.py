"""The last so many of something, by name: what was told and answered lately, to know it when it comes again."""

from collections import deque
from typing import TypeVar

Name = TypeVar("Name")
Entry = TypeVar("Entry")


class Latest(dict[Name, Entry]):
    """Entries in the order in which they came, the oldest of which are forgotten.

    A dictionary alone would look for its oldest entry among all that were deleted before. One that keeps a linked list
    (OrderedDict) takes four times as long to be copied, and others wait while it is.
    """

    def __init__(self) -> None:
        super().__init__()
        self.order: deque[Name] = deque()

    def take_back(self, name: Name) -> None:
        """Forget an entry as if it had never come."""
        self.pop(name, None)
        self.order = deque(other for other in self.order if other != name)

    def keep(self, name: Name, entry: Entry, most: int) -> None:
        """Take in a new entry, and forget the oldest if there are more than so many.

        If this is cut short, it can be done again: a name that stands in the order twice is gone at its second turn.
        """
        self.order.append(name)
        self[name] = entry
        while len(self) > most:
            self.pop(self.order.popleft(), None)

"""Which decision expires next: a queue that forgets what is told before its time, without ever stopping to tidy up."""

import heapq
from collections.abc import Container

STEPS = 4  # entries that are looked at with each new one while the queue is tidied
FEW = 64  # entries that are not worth tidying
MOST_STALE = 500  # entries of decisions that are told, met by one call that looks for what is due

ID_BITS = 64
IDS = (1 << ID_BITS) - 1


class Deadlines:
    """Decisions by their deadline.

    A heap cannot give up an entry in its middle, so entries of decisions that are told stay behind. When they are the
    larger part, a new heap is begun, and every new deadline takes a few entries of the old one along: its last ones,
    without which it is still a heap. So no call takes long, and memory is at most a few times that of the decisions
    that wait.

    An entry is one integer, the time above the id: Python's garbage collector would look at every pair of them.
    """

    def __init__(self) -> None:
        self.heap: list[int] = []
        self.old: list[int] = []  # a heap that is being cleared
        self.left = 0  # entries that have lost their decision

    def __len__(self) -> int:
        return len(self.heap) + len(self.old)

    def push(self, time: int, id: int, waiting: Container[int]) -> None:
        """A decision and its deadline; ``waiting`` has the decisions that can still expire."""
        heapq.heappush(self.heap, time << ID_BITS | id)
        if self.old:
            self.tidy(waiting)
        elif self.left > FEW and 2 * self.left > len(self.heap):
            self.heap, self.old, self.left = [], self.heap, 0

    def tidy(self, waiting: Container[int]) -> None:
        """Take a few entries of the old heap along, or drop them."""
        for _ in range(min(STEPS, len(self.old))):
            entry = self.old.pop()
            if entry & IDS in waiting:
                heapq.heappush(self.heap, entry)

    def drop(self) -> None:
        """One of the decisions here does not wait any more."""
        self.left += 1

    def is_due(self, now: int) -> bool:
        """Whether a deadline has passed, be it of a decision that was told since."""
        heap, old = self.heap, self.old
        return bool((heap and heap[0] >> ID_BITS <= now) or (old and old[0] >> ID_BITS <= now))

    def due(self, now: int, waiting: Container[int], most: int) -> list[int]:
        """Up to so many decisions whose deadline has passed, the earliest first; they are not here afterwards.

        If very many were told in time and none asked for since, it may take some calls to come to one that is due.
        """
        found: list[int] = []
        stale = 0
        while len(found) < most and stale < MOST_STALE:
            heap = self.heap
            if self.old and not (heap and heap[0] < self.old[0]):
                heap = self.old
            if not heap or heap[0] >> ID_BITS > now:
                break
            id = heapq.heappop(heap) & IDS
            if id in waiting:
                found.append(id)
            else:
                stale += 1
                self.left = max(self.left - 1, 0)
        return found

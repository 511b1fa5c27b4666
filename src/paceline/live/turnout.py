"""How rounds went: decisions counted by arm and reason, and how many were sat out lately."""

from collections import Counter, deque
from copy import copy

from paceline.kernels.state import SKIP
from paceline.live.decision import NULL

EVERY = 100  # rounds between two marks
WINDOW = 10  # marks: what "lately" means, a thousand rounds

Counts = dict[str, int]  # by reason


class Turnout:
    """Counts for the eyes of an operator. No decision hangs on them.

    Reasons are counted by name, since another policy has others; what is counted for an arm can be shown as it is.
    """

    def __init__(self, arms: int) -> None:
        self.counts: list[Counts] = [{} for _ in range(arms + 2)]  # by slot; the last two are the null arm and skips
        self.cancelled = [0] * arms
        self.expired = [0] * arms
        self.marks: deque[tuple[int, Counts]] = deque([(0, {})], WINDOW + 1)

    def copy(self) -> "Turnout":
        """A copy that stays as it is; a mark never changes."""
        twin = copy(self)
        twin.counts = [counts.copy() for counts in self.counts]
        twin.cancelled, twin.expired, twin.marks = self.cancelled.copy(), self.expired.copy(), self.marks.copy()
        return twin

    def add_arm(self) -> None:
        """Room for one arm more; rounds without a pull stay at the end."""
        self.counts.insert(len(self.counts) - 2, {})
        self.cancelled.append(0)
        self.expired.append(0)

    def sat_out(self) -> Counts:
        """Rounds without a pull, by reason."""
        found = Counter(self.counts[NULL])
        found.update(self.counts[SKIP])
        return dict(found)

    def mark(self, rounds: int) -> None:
        """Note where things stand, if it is time."""
        if rounds >= self.next_mark():
            self.marks.append((rounds, self.sat_out()))

    def next_mark(self) -> int:
        """The round of the next mark, which may be over already: it is made when the next one begins."""
        last = self.marks[-1][0]
        return last - last % EVERY + EVERY

    def lately(self, rounds: int) -> tuple[int, Counts]:
        """The last thousand rounds (up to a hundred more, or as many as there were), and those sat out by reason."""
        begin, before = self.marks[0]
        return rounds - begin, dict(Counter(self.sat_out()) - Counter(before))

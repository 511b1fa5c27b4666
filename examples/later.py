"""News that is under way: what the world knows already and a bandit will be told later."""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field

import paceline as pl

Cost = float | Mapping[str, float] | None


@dataclass
class Post:
    """Letters in the order of their arrival; ``now`` is the time, in whatever unit the story counts."""

    now: float = 0.0
    letters: list[tuple[float, int, int, float | None, Cost]] = field(default_factory=list)
    sent: int = 0

    def send(self, delay: float, id: int, *, reward: float | None = None, cost: Cost = None) -> None:
        """The bandit shall be told this about the decision ``id``, so much later."""
        self.sent += 1  # letters that arrive at the same time keep the order in which they were sent
        heapq.heappush(self.letters, (self.now + delay, self.sent, id, reward, cost))

    def deliver(self, bandit: pl.Bandit, until: float) -> None:
        """Let the time go on, and tell what arrives on the way."""
        while self.letters and self.letters[0][0] <= until:
            self.now, _, id, reward, cost = heapq.heappop(self.letters)
            bandit.tell(id, reward, cost)
        self.now = until

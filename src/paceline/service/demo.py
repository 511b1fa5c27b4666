"""A made-up campaign that runs by itself: some advertisements, a budget a visitor, and clicks that come late."""

import heapq
import random
import threading
import time
from typing import Any, NamedTuple

from paceline.service.client import RemoteBandit, connect

NAME = "summer-campaign"
VISITORS = 40  # a second
WINDOW = 20.0  # seconds after which no click is expected any more
LOST = 0.01  # share of the decisions whose cost is never told


class Creative(NamedTuple):
    """An advertisement as it truly is; nobody but the world knows."""

    clicks: float  # share of visitors that click
    cost: float  # mean, dollars
    most: float  # that a view can cost
    delay: float  # mean seconds until a click


CREATIVES = {
    "text": Creative(0.020, 0.0030, 0.006, 2.0),
    "banner": Creative(0.035, 0.0050, 0.010, 3.0),
    "carousel": Creative(0.052, 0.0110, 0.020, 4.0),
    "story": Creative(0.075, 0.0140, 0.030, 5.0),
    "video": Creative(0.110, 0.0260, 0.050, 6.0),
}
SETTINGS: dict[str, Any] = {
    "arms": list(CREATIVES),
    "budget": 0.012,
    "max_cost": {name: creative.most for name, creative in CREATIVES.items()},
    "scale": 0.1,
    "expires": WINDOW,
    "silence": 0.0,
    "seed": 7,
}
OTHERS = Creative(0.06, 0.012, 0.02, 3.0)  # what an advertisement is that somebody adds


class Campaign(threading.Thread):
    """Visitors come, see an advertisement or none, and some click after a while."""

    def __init__(self, address: str, seed: int = 7, speed: float = 1.0) -> None:
        super().__init__(name="paceline-demo", daemon=True)
        self.bandit: RemoteBandit = connect(address, NAME, deadline=2.0)
        self.random = random.Random(seed)
        self.speed = speed
        self.over = threading.Event()
        self.to_come: list[tuple[float, int, dict[str, Any]]] = []  # when, a number, what is told then
        self.count = 0

    def run(self) -> None:
        """One visitor after the other."""
        while not self.over.wait(self.random.expovariate(VISITORS * self.speed)):
            self.visit(time.monotonic())

    def visit(self, now: float) -> None:
        """A visitor comes; before that, the news that is due."""
        while self.to_come and self.to_come[0][0] <= now:
            news = heapq.heappop(self.to_come)[2]
            self.bandit.tell(**news)
        decision = self.bandit.ask()
        if decision.arm is None or self.random.random() < LOST:
            return
        creative, chance = CREATIVES.get(decision.arm, OTHERS), self.random
        cost = min(chance.gammavariate(4.0, creative.cost / 4.0), creative.most)
        self.later(now + chance.expovariate(2.0), id=decision.id, cost=cost)
        if chance.random() < creative.clicks:
            late = min(chance.expovariate(1.0 / creative.delay), 0.8 * WINDOW)
            self.later(now + late, id=decision.id, reward=1.0)

    def later(self, when: float, **news: Any) -> None:
        """Something will be told then."""
        self.count += 1
        heapq.heappush(self.to_come, (when, self.count, news))

    def end(self) -> None:
        """No more visitors."""
        self.over.set()
        if self.is_alive():
            self.join(3.0)
        self.bandit.close(0.5)

"""How the amounts went, in a bounded number of points: the last minutes by the second, and all of it more coarsely."""

from collections import deque
from typing import Any

FINE = 600  # points, a second or so apart
COARSE = 600  # points at most; then every other one is dropped, and new ones come half as often
ONLY = "cost"  # the name of a resource without a name, as elsewhere
AMOUNTS = ("credited", "spent", "reserved")

Point = tuple[float, int, dict[str, tuple[float, float, float]]]  # time, rounds, amounts by resource


def by_resource(value: Any) -> dict[str, float]:
    """An amount by the name of its resource."""
    return value if isinstance(value, dict) else {ONLY: value}


def point_of(state: dict[str, Any], now: float) -> Point:
    """What a picture of a fleet says of its amounts."""
    columns = [by_resource(state[name]) for name in AMOUNTS]
    return now, state["rounds"], {name: tuple(column[name] for column in columns) for name in columns[0]}  # type: ignore[misc]


class History:
    """Points in time.

    >>> history = History()
    >>> for second in range(5000):
    ...     history.add((float(second), second, {"cost": (1.0, 0.5, 0.0)}))
    >>> len(history.coarse) <= COARSE, history.coarse[0][0], len(history.fine)
    (True, 0.0, 600)
    """

    def __init__(self) -> None:
        self.fine: deque[Point] = deque(maxlen=FINE)
        self.coarse: list[Point] = []
        self.every, self.left = 1, 0

    def add(self, point: Point) -> None:
        """One more point; where nothing has changed for a while, the last one moves on."""
        same = len(self.fine) >= 2 and self.fine[-1][1:] == self.fine[-2][1:] == point[1:]
        if same:
            self.fine.pop()
        self.fine.append(point)
        if same:
            return
        if self.left == 0:
            if len(self.coarse) >= COARSE:
                self.coarse = self.coarse[::2]
                self.every *= 2
            self.coarse.append(point)
            self.left = self.every
        self.left -= 1

    def points(self) -> list[Point]:
        """All of it, oldest first: coarse, then fine."""
        start = self.fine[0][0] if self.fine else float("inf")
        return [point for point in self.coarse if point[0] < start] + list(self.fine)


def as_columns(points: list[Point]) -> dict[str, Any]:
    """Points as lists by column, as a drawing wants them."""
    names = list(points[-1][2]) if points else []
    return {
        "time": [round(time, 3) for time, _, _ in points],
        "rounds": [rounds for _, rounds, _ in points],
        "resources": {
            name: {part: [amounts[name][at] for _, _, amounts in points] for at, part in enumerate(AMOUNTS)}
            for name in names
        },
    }

"""What the service counts of itself: requests by operation and status, and how long they took."""

from bisect import bisect_left
from collections.abc import Mapping
from itertools import accumulate
from typing import Any

from paceline.live.metrics import by_resource, label_pairs

EDGES = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 1.0)  # seconds


class Meter:
    """Counters and a histogram, in the text format of Prometheus.

    >>> meter = Meter(100.0)
    >>> meter.count("ask", 200, 0.0007)
    >>> print(meter.text(130.0).splitlines()[2])
    paceline_http_requests_total{operation="ask",status="200"} 1
    """

    def __init__(self, began: float) -> None:
        self.began = began
        self.requests: dict[tuple[str, int], int] = {}
        self.times: dict[str, list[int]] = {}
        self.sums: dict[str, float] = {}

    def count(self, operation: str, status: int, seconds: float) -> None:
        """A request was answered."""
        key = operation, status
        self.requests[key] = self.requests.get(key, 0) + 1
        counts = self.times.get(operation)
        if counts is None:
            counts = self.times[operation] = [0] * (len(EDGES) + 1)
        counts[bisect_left(EDGES, seconds)] += 1
        self.sums[operation] = self.sums.get(operation, 0.0) + seconds

    def text(self, now: float) -> str:
        """All of it."""
        lines = ["# HELP paceline_http_requests_total Requests by operation and status."]
        lines.append("# TYPE paceline_http_requests_total counter")
        for (operation, status), count in sorted(self.requests.items()):
            lines.append(f'paceline_http_requests_total{{operation="{operation}",status="{status}"}} {count}')
        lines.append("# HELP paceline_http_request_seconds How long requests took.")
        lines.append("# TYPE paceline_http_request_seconds histogram")
        for operation, counts in sorted(self.times.items()):
            name = f'paceline_http_request_seconds_bucket{{operation="{operation}",le='
            sums = list(accumulate(counts))
            lines += [f'{name}"{edge!r}"}} {sums[at]}' for at, edge in enumerate(EDGES)]
            lines.append(f'{name}"+Inf"}} {sums[-1]}')
            lines.append(f'paceline_http_request_seconds_sum{{operation="{operation}"}} {self.sums[operation]!r}')
            lines.append(f'paceline_http_request_seconds_count{{operation="{operation}"}} {sums[-1]}')
        lines += ("# HELP paceline_service_up_seconds Since the start.", "# TYPE paceline_service_up_seconds gauge")
        lines.append(f"paceline_service_up_seconds {now - self.began!r}")
        return "".join(f"{line}\n" for line in lines)


def pool_text(pools: Mapping[str, Any]) -> str:
    """What is in the pools of fleets, by their names. All processes show the same: it is not to be added up.

    >>> print(pool_text({"ads": 2.5}).splitlines()[2])
    paceline_pool{bandit="ads",resource="cost"} 2.5
    """
    lines = ["# HELP paceline_pool In the pool, for whichever process needs it.", "# TYPE paceline_pool gauge"]
    for name, pool in pools.items():
        for labels, value in by_resource(pool):
            lines.append(f"paceline_pool{{{label_pairs({'bandit': name, **labels})}}} {value!r}")
    return "".join(f"{line}\n" for line in lines)

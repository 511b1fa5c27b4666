"""What a status says as numbers for monitoring: as text for Prometheus, or through a meter of OpenTelemetry.

Neither needs a package: the text is written here, and the meter is handed over.

A number that only goes up is a counter. What was spent and credited is not: a late true cost corrects what was charged
for an expired decision, a refill brings something back, and `debit` takes something away. Prometheus takes a counter
that goes down for one that began again at 0, so that a correction of a cent would count as all money spent once more.
These are gauges, and  deriv()  or  delta()  shows how they change.

A name of an arm that is retired and comes back begins at 0, as counters may.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from threading import Lock
from typing import Any, NamedTuple

from paceline.live.arms import ACTIVE
from paceline.live.status import ArmStatus, Status

COUNTER, GAUGE = "counter", "gauge"
ONLY = "cost"  # the name of a resource without a name, as elsewhere
STALE = 10.0  # seconds that a collection may take at most, by the defaults of OpenTelemetry

Labels = dict[str, str]
Sample = tuple[Labels, float]


class Family(NamedTuple):
    """All that is shown under one name."""

    name: str  # without what comes before and after: paceline_ and _total or _seconds
    kind: str
    help: str
    samples: Callable[[Status], Iterable[Sample]]
    unit: str = ""
    is_of_arms: bool = False

    @property
    def full_name(self) -> str:
        """By the conventions of Prometheus, but for the _total of a counter."""
        return f"paceline_{self.name}_{self.unit}" if self.unit else f"paceline_{self.name}"


def number(kind: str, name: str, help: str, value: Callable[[Status], float], unit: str = "") -> Family:
    """One number."""
    return Family(name, kind, help, lambda status: [({}, value(status))], unit)


def amount(kind: str, name: str, help: str) -> Family:
    """A number for each resource."""
    return Family(name, kind, help, lambda status: by_resource(getattr(status, name)))


def of_arms(kind: str, name: str, help: str, values: Callable[[ArmStatus], Iterable[Sample]]) -> Family:
    """Some numbers for each arm."""

    def samples(status: Status) -> Iterator[Sample]:
        for arm, fared in status.arms.items():
            for labels, value in values(fared):
                yield {"arm": arm, **labels}, value

    return Family(name, kind, help, samples, is_of_arms=True)


def by_resource(value: Any) -> list[Sample]:
    """An amount, or one for each resource."""
    return [({"resource": name}, each) for name, each in (value if isinstance(value, dict) else {ONLY: value}).items()]


def by_reason(counts: dict[str, int]) -> list[Sample]:
    """Counts by reason."""
    return [({"reason": reason}, count) for reason, count in counts.items()]


def share_sat_out(status: Status) -> float:
    """The share of the last rounds without a pull."""
    rounds, sat_out = status.recent
    return sum(sat_out.values()) / rounds if rounds else 0.0


FAMILIES = (
    Family(
        "policy_info", GAUGE, "Always 1; says which policy decides.", lambda status: [({"policy": status.policy}, 1)]
    ),
    number(COUNTER, "rounds", "Rounds so far.", lambda status: status.rounds),
    Family("skips", COUNTER, "Rounds without a pull, by reason.", lambda status: by_reason(status.skips)),
    number(COUNTER, "earned", "Rewards of settled decisions.", lambda status: status.earned),
    amount(GAUGE, "credited", "The line: all that has come in."),
    amount(GAUGE, "spent", "Costs so far; expired decisions at their largest cost."),
    amount(GAUGE, "reserved", "Largest costs of decisions whose cost is not known."),
    amount(GAUGE, "headroom", "What may still be spent: credited - spent - reserved."),
    amount(GAUGE, "held", "Credited over rounds to come."),
    amount(GAUGE, "overdrawn", "What is to be repaid after an overrun before anything is pulled."),
    amount(COUNTER, "lost", "What came in above a cap."),
    amount(COUNTER, "overrun", "Costs told above the largest cost."),
    number(GAUGE, "pending", "Decisions that are not settled.", lambda status: status.pending),
    number(GAUGE, "pending_expired", "Of these, how many have expired.", lambda status: status.expired),
    number(
        GAUGE,
        "pending_oldest",
        "How long the oldest decision that has not expired has waited.",
        lambda status: status.ages.oldest,
        "seconds",
    ),
    number(
        GAUGE,
        "pending_median",
        "How long half of the decisions that have not expired have waited.",
        lambda status: status.ages.median,
        "seconds",
    ),
    number(
        GAUGE,
        "starving",
        "1 if nearly all of the last rounds were sat out.",
        lambda status: status.starving is not None,
    ),
    number(GAUGE, "recent_sat_out_ratio", "Share of the last thousand rounds without a pull.", share_sat_out),
    of_arms(COUNTER, "pulls", "Decisions for an arm, by reason.", lambda arm: by_reason(arm.pulls)),
    of_arms(COUNTER, "cancelled", "Decisions for an arm that were cancelled.", lambda arm: [({}, arm.cancelled)]),
    of_arms(COUNTER, "expired", "Decisions for an arm that have expired.", lambda arm: [({}, arm.expired)]),
    of_arms(GAUGE, "arm_pending", "Decisions for an arm that are not settled.", lambda arm: [({}, arm.pending)]),
    of_arms(GAUGE, "arm_active", "1 if an arm is in play.", lambda arm: [({}, arm.status == ACTIVE)]),
    of_arms(GAUGE, "arm_reward_mean", "Mean reward of an arm.", lambda arm: [({}, arm.reward)] if arm.rewards else []),
    of_arms(GAUGE, "arm_cost_mean", "Mean cost of an arm.", lambda arm: by_resource(arm.cost) if arm.costs else []),
)


def prometheus_text(statuses: Status | Mapping[str, Status], *, arms: bool = True, openmetrics: bool = False) -> str:
    r"""One bandit or several, by the names that they shall have there, in Prometheus' text format (version 0.0.4).

    ``arms``         whether there are numbers for each arm; thousands of arms are more than most servers welcome.
    ``openmetrics``  the format OpenMetrics 1.0 instead.

    >>> import paceline as pl
    >>> bandit = pl.Bandit(["a", "b"], budget=1.0)
    >>> decision = bandit.ask()
    >>> text = pl.prometheus_text({"ads": bandit.status()})
    >>> print("\n".join(line for line in text.splitlines() if "paceline_reserved" in line))
    # HELP paceline_reserved Largest costs of decisions whose cost is not known.
    # TYPE paceline_reserved gauge
    paceline_reserved{bandit="ads",resource="cost"} 1.0
    """
    lines: list[str] = []
    if isinstance(statuses, Status):
        statuses = {"bandit": statuses}
    for family in FAMILIES:
        if family.is_of_arms and not arms:
            continue
        sample_name = f"{family.full_name}_total" if family.kind == COUNTER else family.full_name
        name = family.full_name if openmetrics else sample_name
        lines += (f"# HELP {name} {family.help}", f"# TYPE {name} {family.kind}")
        for bandit, status in statuses.items():
            lines += [
                f"{sample_name}{{{label_pairs({'bandit': bandit, **labels})}}} {value + 0!r}"
                for labels, value in family.samples(status)
            ]
    if openmetrics:
        lines.append("# EOF")
    return "".join(f"{line}\n" for line in lines)


def label_pairs(labels: Labels) -> str:
    r"""Labels with their values in quotes.

    >>> print(label_pairs({"arm": 'a "b"', "reason": "c\\d"}))
    arm="a \"b\"",reason="c\\d"
    """
    return ",".join([f'{name}="{escaped(value)}"' for name, value in labels.items()])


def escaped(value: str) -> str:
    """A value as it stands between quotes."""
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


class Observation(NamedTuple):
    """A value for OpenTelemetry, with the fields of its own class of this name, which cannot be imported here."""

    value: float
    attributes: Labels
    context: None = None


class Pictures:
    """One picture for all instruments of a collection, although each instrument asks on its own.

    An instrument asks once per collection. So when it asks again, another collection has begun.
    """

    def __init__(self, look: Callable[[], Mapping[str, Status]]) -> None:
        self.look = look
        self.lock = Lock()
        self.answered: set[str] = set()
        self.time = -STALE
        self.statuses: Mapping[str, Status] = {}

    def for_instrument(self, name: str) -> Mapping[str, Status]:
        """The picture of this collection."""
        with self.lock:
            now = time.monotonic()
            if name in self.answered or now - self.time >= STALE:
                self.statuses, self.time = self.look(), now
                self.answered.clear()
            self.answered.add(name)
            return self.statuses


def opentelemetry_metrics(meter: Any, look: Callable[[], Mapping[str, Status]], *, arms: bool = True) -> None:
    """Show some bandits through a meter of OpenTelemetry, as observable counters and gauges.

    ``meter``  as `opentelemetry.metrics.get_meter` gives it.
    ``look``   gives the statuses by the names that the bandits shall have there. It is called once per collection.
    ``arms``   whether there are numbers for each arm.

    The names are those of `prometheus_text` as OpenTelemetry writes them: paceline_rounds_total is paceline.rounds.
    Call it once for all bandits, since a meter takes an instrument once; ``look`` may show others every time.

    ::

        meter = opentelemetry.metrics.get_meter("shop")
        pl.opentelemetry_metrics(meter, lambda: {"ads": bandit.status()})
    """
    pictures = Pictures(look)
    for family in FAMILIES:
        if family.is_of_arms and not arms:
            continue
        create = meter.create_observable_counter if family.kind == COUNTER else meter.create_observable_gauge
        create(
            f"paceline.{family.name}",
            callbacks=[callback_for(family, pictures)],
            unit="s" if family.unit else "",
            description=family.help,
        )


def callback_for(family: Family, pictures: Pictures) -> Callable[[object], Iterable[Observation]]:
    """What a meter calls for an instrument."""

    def observe(_options: object) -> list[Observation]:
        return [
            Observation(value + 0, {"bandit": bandit, **labels})
            for bandit, status in pictures.for_instrument(family.name).items()
            for labels, value in family.samples(status)
        ]

    return observe

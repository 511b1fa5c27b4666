"""One consistent picture of a live bandit, for the eyes of an operator and for whatever scrapes it."""

from collections.abc import Callable, Mapping
from itertools import repeat
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from paceline.kernels.estimates import NUMBER
from paceline.kernels.state import books_in
from paceline.live.answers import NO_ARM_ACTIVE
from paceline.live.config import Config
from paceline.live.currency import Currency
from paceline.live.decision import SAVES
from paceline.live.events import NO_TIME
from paceline.live.layers import View
from paceline.live.ledger import Ledger
from paceline.live.pulls import ASKED, SLOT, TOLD, is_awaited, is_told
from paceline.live.turnout import Turnout
from paceline.live.turns import in_turns

STARVING = 0.95  # share of the last rounds sat out at which a bandit is said to starve, and
RECOVERED = 0.9  # below which it is over, so that a share that goes up and down a little is not said again and again
FEW = 100  # rounds that say nothing yet
AGES = {"1 s": 1.0, "10 s": 10.0, "1 min": 60.0, "10 min": 600.0, "1 h": 3600.0, "1 day": 86_400.0, "longer": np.inf}
AT_ONCE = 200  # pulls that are looked at before others may go on

Integers = npt.NDArray[np.int64]
T = TypeVar("T")


class ArmStatus(NamedTuple):
    """How an arm has fared."""

    status: str  # active, paused or retired
    pulls: dict[str, int]  # decisions for it, by reason
    pending: int
    cancelled: int
    expired: int
    reward: float  # mean of what is known, 0 if nothing is, and
    cost: Any  # likewise; where resources have names, by name
    rewards: int  # how many are known, and
    costs: int  # likewise, of the resource of which the fewest are


class Ages(NamedTuple):
    """How long pending decisions have waited so far, in seconds; those that have expired are not waited for."""

    median: float
    most: float  # nine in ten have waited less
    oldest: float
    counts: dict[str, int]  # how many have waited so long, see `AGES`


class Recent(NamedTuple):
    """The last thousand rounds (up to a hundred more, or as many as there were)."""

    rounds: int
    sat_out: dict[str, int]  # rounds without a pull, by reason


class Status(NamedTuple):
    """Everything at one moment. Amounts are plain numbers, or by name where resources have names."""

    time: float  # seconds, by the bandit's clock
    rounds: int
    policy: str
    credited: Any  # the line: all that has come in
    spent: Any
    reserved: Any  # the largest costs of decisions whose cost is not known
    headroom: Any  # credited - spent - reserved, below 0 only after an overrun
    held: Any  # credited over rounds to come
    lost: Any  # what came in above a cap
    overrun: Any  # costs told above the largest, so far
    overdrawn: Any  # what is still to be repaid before anything is pulled
    earned: float
    pending: int  # decisions that are not settled
    ages: Ages
    expired: int  # of these, how many are not waited for any more
    skips: dict[str, int]  # rounds without a pull, by reason
    recent: Recent
    starving: str | None  # what is wrong, if nearly all of the last rounds were sat out
    arms: dict[str, ArmStatus]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            **self._asdict(),
            "ages": self.ages._asdict(),
            "recent": self.recent._asdict(),
            "arms": {name: arm._asdict() for name, arm in self.arms.items()},
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> "Status":
        """The status that `to_dict` wrote; a later version may have written more."""
        parts = {
            "ages": read_fields(Ages, document["ages"]),
            "recent": read_fields(Recent, document["recent"]),
            "arms": {name: read_fields(ArmStatus, arm) for name, arm in document["arms"].items()},
        }
        return read_fields(cls, {**document, **parts})


def read_fields(kind: Callable[..., T], document: Mapping[str, Any]) -> T:
    """A named tuple from a document, of which it takes what it knows.

    >>> read_fields(Recent, {"rounds": 3, "sat_out": {}, "weather": "fine"})
    Recent(rounds=3, sat_out={})
    """
    fields: tuple[str, ...] = kind._fields  # type: ignore[attr-defined]  # of a class made with NamedTuple
    return kind(**{name: document[name] for name in fields if name in document})


def starving(rounds: int, sat_out: dict[str, int], share: float = STARVING, holding: str | None = None) -> str | None:
    """What is wrong, if nearly all rounds were sat out: at least this share of them, and what may hold the money.

    >>> starving(1000, {"headroom below the largest cost": 950})
    '95 % of the last 1000 rounds sat out, because: headroom below the largest cost'
    """
    total = sum(sat_out.values())
    if rounds < FEW or total < share * rounds:
        return None
    reason = max(sat_out, key=lambda each: sat_out[each])
    if reason.startswith(SAVES):  # the policy's word for it speaks of the arm that it would have pulled
        reason = f"saving up for an arm ({reason})"
    text = f"{100 * total / rounds:.0f} % of the last {rounds} rounds sat out, because: {reason}"
    return text if holding is None or reason == NO_ARM_ACTIVE else f"{text}; {holding}"


def holding_of(ledger: Ledger) -> str | None:
    """Who holds the larger part of what there is of a resource, if that is for decisions whose cost is not known."""
    books, config = ledger.arm_set.books, ledger.config
    for d, resource in enumerate(config.resources):
        held, left = int(books.reserved[d]), max(ledger.headroom(d), 0)
        if held > left:
            ledger.arm_set.merge()
            count, amount = int(books_in(ledger.arm_set.all).unpaid[:, d].sum()), resource.currency.amount
            who = (
                "1 decision waits for its cost and holds"
                if count == 1
                else f"{count} decisions wait for their cost and hold"
            )
            what = "" if config.is_unnamed else f" {resource.name}"
            return f"{who} {amount(held):.4g} of {amount(held + left):.4g}{what}"
    return None


class Glance(NamedTuple):
    """What a status is made of, copied in little time: pulls are shared, for none changes."""

    config: Config
    currencies: list[Currency]
    rounds: int
    units: dict[str, list[int]]  # amounts by resource
    earned: float
    pulls: View
    expired: int
    turnout: Turnout
    holding: str | None  # who holds the money, see `holding_of`
    names: list[str]
    statuses: list[str]
    reward: npt.NDArray[np.float64]
    cost: npt.NDArray[np.float64]
    rewards: npt.NDArray[np.float64]
    costs: npt.NDArray[np.float64]


def glance_at(ledger: Ledger) -> Glance:
    """Copy what a status is made of; nothing may happen meanwhile."""
    arm_set = ledger.arm_set
    arm_set.merge()
    books, known, every = arm_set.books, arm_set.full, range(len(ledger.rolled))
    lines, left = [ledger.line(d) for d in every], [ledger.headroom(d) for d in every]
    return Glance(
        config=ledger.config,
        currencies=ledger.currencies,
        rounds=ledger.rounds,
        units={
            "credited": list(map(int.__add__, lines, ledger.rolled)),
            "spent": list(map(int.__add__, books.spent.tolist(), ledger.rolled)),
            "reserved": books.reserved.tolist(),
            "headroom": left,
            "held": books.held.tolist(),
            "lost": list(map(int.__add__, books.lost.tolist(), ledger.timed.missed)),
            "overrun": ledger.overrun.copy(),
            "overdrawn": [max(-units, 0) for units in left],
        },
        earned=float(books.tally.earned),
        pulls=ledger.view_pending(),
        expired=len(ledger.expired_pulls),
        turnout=ledger.turnout.copy(),
        holding=holding_of(ledger),
        names=arm_set.names.copy(),
        statuses=arm_set.statuses.copy(),
        reward=known.arms.reward_mean.copy(),
        cost=known.arms.cost_mean.copy(),
        rewards=known.arms.reward_known[NUMBER].copy(),
        costs=known.arms.cost_known[NUMBER].copy(),
    )


def status_of(glance: Glance, now: int) -> Status:
    """What a glance shows."""
    config, turnout = glance.config, glance.turnout
    amounts = {
        name: config.by_name([currency.amount(each) for currency, each in zip(glance.currencies, of_each, strict=True)])
        for name, of_each in glance.units.items()
    }
    pending, asked = look_through(glance.pulls, len(glance.names))
    rounds, sat_out = turnout.lately(glance.rounds)
    return Status(
        time=now / 1000.0,
        rounds=glance.rounds,
        policy=config.policy.name,
        **amounts,
        earned=glance.earned * config.max_reward,
        pending=int(pending.sum()),
        ages=ages_of(asked, now),
        expired=glance.expired,
        skips=turnout.sat_out(),
        recent=Recent(rounds, sat_out),
        starving=starving(rounds, sat_out, holding=glance.holding),
        arms=arms_of(glance, pending.tolist()),
    )


def look_through(pulls: View, arms: int) -> tuple[Integers, Integers]:
    """How many pulls of each arm are not told, and when those that are waited for were asked.

    There may be a hundred thousand of them, and others may go on meanwhile.
    """
    pending, asked = np.zeros(arms, np.int64), [np.zeros(0, np.int64)]
    for found in in_turns(pulls.parts(AT_ONCE)):
        part = awaited = [row for _, row in found]
        if any(map(itemgetter(TOLD), part)):  # some may be told, and kept back
            part = [pull for pull in part if not is_told(pull)]
            awaited = [pull for pull in part if is_awaited(pull)]
        slots = np.fromiter(map(itemgetter(SLOT), part), np.intp, len(part))
        pending += np.bincount(slots, minlength=arms)
        asked.append(np.fromiter(map(itemgetter(ASKED), awaited), np.int64, len(awaited)))
    return pending, np.concatenate(asked)


def ages_of(asked: Integers, now: int) -> Ages:
    """How long pulls have waited that were asked for at these times.

    >>> ages_of(np.array([0, 9_500, 9_600]), 10_000).counts["1 s"]
    2
    """
    asked = asked[asked != NO_TIME]
    if not asked.size:
        return Ages(0.0, 0.0, 0.0, dict.fromkeys(AGES, 0))
    ages = np.maximum(now - asked, 0) / 1000.0
    median, most, oldest = np.quantile(ages, [0.5, 0.9, 1.0]).tolist()
    within = np.searchsorted(np.sort(ages), list(AGES.values()))
    return Ages(median, most, oldest, dict(zip(AGES, np.diff(within, prepend=0).tolist(), strict=True)))


def arms_of(glance: Glance, pending: list[int]) -> dict[str, ArmStatus]:
    """How the arms have fared; of arms that had the same name, one after the other, the last."""
    config, turnout = glance.config, glance.turnout
    costs = glance.cost * [resource.scale for resource in config.resources]
    fields = zip(
        glance.statuses,
        turnout.counts[: len(glance.names)],
        pending,
        turnout.cancelled,
        turnout.expired,
        (glance.reward * config.max_reward).tolist(),
        costs[:, 0].tolist() if config.is_unnamed else map(dict, map(zip, repeat(config.names), costs.tolist())),
        np.rint(glance.rewards).astype(np.int64).tolist(),
        np.rint(glance.costs.min(axis=1)).astype(np.int64).tolist(),
        strict=True,
    )
    return dict(zip(glance.names, map(tuple.__new__, repeat(ArmStatus), fields), strict=True))

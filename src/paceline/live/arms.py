"""The arms of a live bandit, which come and go: what each has taught is kept, and the policy sees those in play."""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from paceline.errors import InvalidValue, UnknownName
from paceline.live.currency import Currency
from paceline.live.decision import NULL
from paceline.packed import blank, state_over
from paceline.policies.policy import SKIP, Policy, Setting

ACTIVE, PAUSED, RETIRED = "active", "paused", "retired"


class ArmSet:
    """All arms by slot, in the order in which they came; those in play by place, which is what the policy counts in.

    ``full`` is the state over all slots, ``state`` the one over the arms in play. They share the clock and the policy's
    memory; as long as every arm is in play they are one and the same. Each is a view of the packed arrays beside it.
    """

    def __init__(self, policy: Policy, currency: Currency, budget: float, seed: int) -> None:
        self.policy = policy
        self.currency = currency
        self.budget = budget / currency.scale
        self.names: list[str] = []
        self.max_costs: list[float] = []
        self.statuses: list[str] = []
        self.reserves: list[int] = []  # the largest costs in units
        self.all = blank(np.array([currency.new_clock(budget, seed)]), np.zeros(1, policy.memory), 0, np.zeros(0))
        self.playing = self.all
        self.slots: list[int] = []

    def slot_of(self, name: object) -> int:
        """The slot of an arm that has not been retired."""
        if isinstance(name, str) and name in self.names:
            slot = self.names.index(name)
            if self.statuses[slot] != RETIRED:
                return slot
        present = zip(self.names, self.statuses, strict=True)
        known = ", ".join(name for name, status in present if status != RETIRED)
        raise UnknownName(f"arm must be one of {known}, got {name!r}")

    def add(self, arms: Sequence[tuple[str, float]]) -> None:
        """Bring in new arms, each with its largest cost."""
        self.merge()
        before, known = self.all, len(self.names)
        count = known + len(arms)
        for name, max_cost in arms:
            self.names.append(name)
            self.max_costs.append(max_cost)
            self.statuses.append(ACTIVE)
            self.reserves.append(self.currency.charge(max_cost))
        self.all = blank(before.clock, before.memory, count, self.policy.new_table(count))
        self.all.counts[:, :known] = before.counts
        self.all.numbers[:, :known] = before.numbers
        if known:
            self.all.table[self.policy.layout(count, range(known))] = before.table
        limits = state_over(self.all).limits
        limits.units[:] = self.reserves
        limits.costs[:] = np.array(self.max_costs) / self.currency.scale
        self.field()

    def set_status(self, slot: int, status: str) -> None:
        """Put an arm in play or take it out."""
        self.merge()
        self.statuses[slot] = status
        self.field()

    def merge(self) -> None:
        """Bring what the arms in play have taught into the arrays over all arms."""
        if self.playing is not self.all:
            self.all.counts[:, self.slots] = self.playing.counts
            self.all.numbers[:, self.slots] = self.playing.numbers
            self.all.table[self.policy.layout(len(self.names), self.slots)] = self.playing.table

    def field(self) -> None:
        """Let the policy see the arms in play; the arrays over all arms must be up to date."""
        count = len(self.names)
        self.slots = [slot for slot in range(count) if self.statuses[slot] == ACTIVE]
        self.playing = self.all
        if len(self.slots) < count:
            self.playing = self.all._replace(
                counts=self.all.counts.take(self.slots, axis=1),  # in C order, as compiled code takes for granted
                numbers=self.all.numbers.take(self.slots, axis=1),
                table=self.all.table[self.policy.layout(count, self.slots)],
            )
        self.full, self.state = state_over(self.all), state_over(self.playing)
        self.clock, self.memory = self.full.clock, self.full.memory
        # With nobody in play the guard refuses every round, whatever the headroom.
        self.clock.least_units = min((self.reserves[slot] for slot in self.slots), default=sys.maxsize)
        self.params = self.params_for(len(self.slots))
        # From places to slots and names and back; entries -1 and -2 are `SKIP` and `NULL`, as the numbers want it.
        self.slot_at = [*self.slots, NULL, SKIP]
        self.name_at = [*self.names, None, None]
        self.places = {**{slot: place for place, slot in enumerate(self.slots)}, NULL: len(self.slots), SKIP: SKIP}

    def params_for(self, arms: int) -> tuple[Any, ...]:
        """The numbers that the policy's functions get with so many arms."""
        return self.policy.params(Setting(arms, self.budget))


def check_arms(arms: object, known: Sequence[str] = ()) -> list[str]:
    """Names of new arms: texts that are not taken."""
    if isinstance(arms, str | bytes) or not isinstance(arms, Sequence):
        raise InvalidValue(f"arms must be a list of names, got {arms!r}")
    names: list[str] = []
    for name in arms:
        if not isinstance(name, str) or not name:
            raise InvalidValue(f"the name of an arm must be a text that is not empty, got {name!r}")
        if name in names or name in known:
            raise InvalidValue(f"names of arms must differ, got {name!r} twice")
        names.append(name)
    if not names:
        raise InvalidValue("arms must name at least one arm, got none")
    return names

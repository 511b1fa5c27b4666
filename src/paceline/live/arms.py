"""The arms of a live bandit, which come and go: what each has taught is kept, and the policy sees those in play."""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from paceline.errors import UnknownName
from paceline.game import blamed, calls_with
from paceline.grafting import Calls
from paceline.kernels.state import SKIP, NoMemory, Storage, books_in, new_storage, state_in
from paceline.live.config import Config
from paceline.live.decision import NULL
from paceline.live.memory import find_arm_axes, put_arms, take_arms
from paceline.meanwhile import LiveCalls, live_calls_for
from paceline.policies.rules import is_ours

ACTIVE, PAUSED, RETIRED = "active", "paused", "retired"

Amounts = tuple[float, ...]  # an entry per resource
Units = tuple[int, ...]


class ArmSet:
    """All arms by slot, in the order in which they came; those in play by place, which is what the policy counts in.

    ``all`` is the storage over all slots, ``playing`` the one over the arms in play. They share the books, the clock
    and the policy's record; as long as every arm is in play they are one and the same. ``full`` and ``state`` are what
    a policy would be shown of them.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.usual_calls = live_calls_for(config.policy, len(config.resources))
        self.axes = find_arm_axes(config.policy, len(config.resources))
        self.names: list[str] = []
        self.statuses: list[str] = []
        self.max_costs: list[Amounts] = []
        self.reserves: list[Units] = []  # the largest costs in units
        self.slots: list[int] = []
        self.params: tuple[Any, ...] = ()
        self.all = self.playing = open_books(config)
        self.add([(name, tuple(one.max_cost_of(name) for one in config.resources)) for name in config.arms])

    def slot_of(self, name: object) -> int:
        """The slot of an arm that has not been retired."""
        if isinstance(name, str) and name in self.names:
            slot = self.names.index(name)
            if self.statuses[slot] != RETIRED:
                return slot
        present = zip(self.names, self.statuses, strict=True)
        known = ", ".join(name for name, status in present if status != RETIRED)
        raise UnknownName(f"arm must be one of {known}, got {name!r}")

    def add(self, arms: Sequence[tuple[str, Amounts]]) -> None:
        """Bring in new arms, each with its largest costs."""
        self.merge()
        resources = self.config.resources
        before, known = self.all, len(self.names)
        for name, max_costs in arms:
            self.names.append(name)
            self.statuses.append(ACTIVE)
            self.max_costs.append(max_costs)
            pairs = zip(resources, max_costs, strict=True)
            self.reserves.append(tuple(resource.currency.charge(cost) for resource, cost in pairs))
        self.all = self.room_for(len(self.names), self.config.policy.new_memory(len(self.names), len(resources)))
        if known:
            self.put(range(known), before)
        # What the guard compares in units the policy can compare in floats, and finds the same.
        self.all.limits[:] = self.reserves
        state_in(self.all).largest[:] = self.all.limits * [resource.currency.unit for resource in resources]
        self.field()

    def set_status(self, slot: int, status: str) -> None:
        """Put an arm in play or take it out."""
        self.merge()
        self.statuses[slot] = status
        self.field()

    def room_for(self, count: int, memory: Any) -> Storage:
        """Storage for so many arms that shares all that does not belong to an arm."""
        before = self.all
        room = new_storage(count, len(self.config.resources), memory, self.config.policy.record)
        return room._replace(
            tally=before.tally,
            clock=before.clock,
            record=before.record,
            amounts=before.amounts,
            measures=before.measures,
        )

    def put(self, slots: Sequence[int], part: Storage) -> None:
        """Bring what some arms have taught into the storage over all arms."""
        self.all.limits[slots] = part.limits
        self.all.counts[:, slots] = part.counts
        self.all.numbers[:, slots] = part.numbers
        self.all.costs[:, slots] = part.costs
        put_arms(self.all.memory, self.axes, slots, part.memory)

    def take(self, slots: Sequence[int]) -> Storage:
        """The storage of some arms alone."""
        part = self.room_for(len(slots), take_arms(self.all.memory, self.axes, slots))
        part.limits[:] = self.all.limits[slots]
        part.counts[:] = self.all.counts[:, slots]
        part.numbers[:] = self.all.numbers[:, slots]
        part.costs[:] = self.all.costs[:, slots]
        return part

    def merge(self) -> None:
        """Bring what the arms in play have taught into the storage over all arms."""
        if self.playing is not self.all:
            self.put(self.slots, self.playing)

    def field(self) -> None:
        """Let the policy see the arms in play; the storage over all arms must be up to date."""
        slots = [slot for slot, status in enumerate(self.statuses) if status == ACTIVE]
        self.playing = self.all if len(slots) == len(self.names) else self.take(slots)
        self.full, self.state, self.books = state_in(self.all), state_in(self.playing), books_in(self.playing)
        # With nobody in play the guard refuses every round, whatever the headroom.
        self.books.least[:] = self.playing.limits.min(axis=0, initial=sys.maxsize)
        if slots != self.slots or not self.params:
            self.slots, self.params = slots, self.params_for(slots or range(len(self.names)))
            self.calls = self.calls_for(self.params, self.playing)
        # From places to slots and names and back; entries -1 and -2 are `SKIP` and `NULL`, as the numbers want it.
        self.slot_at = [*self.slots, NULL, SKIP]
        self.name_at = [*self.names, None, None]
        self.places = {**{slot: place for place, slot in enumerate(self.slots)}, NULL: len(self.slots), SKIP: SKIP}

    def params_for(self, slots: Sequence[int]) -> tuple[Any, ...]:
        """The numbers that the policy's functions get with these arms."""
        return self.config.policy.params(self.config.setting(self.full.largest[slots]))

    def calls_for(self, params: tuple[Any, ...], storage: Storage) -> Calls | LiveCalls:
        """The engine's functions for such numbers. Those of a user's policy may be of other types for other arms."""
        policy = self.config.policy
        if is_ours(policy):
            return self.usual_calls
        with blamed(policy, self.config.setting(self.full.largest)):
            return calls_with(policy, params, storage)

    def find_shortage(self, slot: int) -> tuple[int, float]:
        """The first resource that was short of a pull of this arm, or of any arm, and what the pull could have cost."""
        slots = [slot] if slot >= 0 else self.slots
        headroom = self.books.headroom.tolist()
        short = (d for d, units in enumerate(headroom) if units < min(self.reserves[slot][d] for slot in slots))
        d = next(short)
        return d, min(self.max_costs[slot][d] for slot in slots)

    def drop_unpaid(self, slot: int, released: Units) -> None:
        """Of a pull of this arm the costs are known for which units were released, before all of it is known."""
        place = self.places.get(slot)
        unpaid = books_in(self.all).unpaid[slot] if place is None else self.books.unpaid[place]
        unpaid -= np.array(released) > 0

    def drop_pending(self, slot: int) -> None:
        """A pull of this arm is not waited for any more, and has taught nothing."""
        place = self.places.get(slot)
        if place is None:
            self.full.pending[slot] -= 1
        else:
            self.state.pending[place] -= 1


def open_books(config: Config) -> Storage:
    """Storage without arms, its books as they are before the first round."""
    storage = new_storage(0, len(config.resources), NoMemory(np.zeros(0)), config.policy.record)
    books, state = books_in(storage), state_in(storage)
    for d, resource in enumerate(config.resources):
        currency, rate = resource.currency, resource.budget / resource.scale
        books.unit[d] = currency.unit
        books.rate[d], books.rate_part[d] = currency.income_per_round(resource.budget)
        books.start[d] = currency.income(resource.start)
        books.cap[d] = resource.cap_units
        if resource.cap is not None:
            state.cap[d] = resource.cap / resource.scale
        if resource.start > 0.0 == rate and config.rounds is not None:
            books.tally.rounds = config.rounds
            rate = min(resource.start / resource.scale / config.rounds, 1.0)
        state.rate[d] = rate
    books.tally.seed = state.clock.seed = config.seed  # the stream is 0
    return storage

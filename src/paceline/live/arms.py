"""The arms of a live bandit, which come and go: what each has taught is kept, and the policy sees those in play."""

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from paceline.calls import LearningCalls, blamed, calls_with, part_calls_with, teacher_with
from paceline.errors import PacelineError, UnknownName
from paceline.grafting import Calls, PartCalls, bound_rare_calls
from paceline.kernels.estimates import NUMBER, TOTAL
from paceline.kernels.jit import compile_now
from paceline.kernels.state import SKIP, NoMemory, Storage, books_in, new_storage, state_in
from paceline.live.config import Config, one_policy
from paceline.live.decision import NULL
from paceline.live.events import Facts
from paceline.live.memory import arm_axes_of, put_arms, take_arms
from paceline.live.resource import Resource
from paceline.live.runs import Places, Runs, runs_of
from paceline.live.sums import Sums, add_sums, guess_own_sums
from paceline.meanwhile import (
    LiveCalls,
    LiveLearningCalls,
    LivePartCalls,
    live_calls_for,
    live_follower_for,
    live_learning_calls_for,
    live_part_calls_for,
)
from paceline.policies import PolicyLike
from paceline.policies.policy import Policy
from paceline.policies.python_policy import PythonPolicy, Session
from paceline.policies.rules import is_ours

ACTIVE, PAUSED, RETIRED = "active", "paused", "retired"
ABSENT = -3  # the place of an arm that is not in play

Amounts = tuple[float, ...]  # an entry per resource
Units = tuple[int, ...]


class Lineup(NamedTuple):
    """Some of the arms as the policy sees them, by place, and the way back to slots."""

    slots: list[int]
    storage: Storage
    params: Any
    calls: Calls | LiveCalls
    slot_at: list[int]  # by place; entries -2 and -1 are `NULL` and `SKIP`, as the numbers want it


def places_of(slots: Places, count: int) -> list[int]:
    """The places of arms by slot, as `Lineup.slot_at` the other way round."""
    places = np.full(count + 2, ABSENT)
    places[slots] = np.arange(len(slots))
    places[NULL], places[SKIP] = len(slots), SKIP
    found: list[int] = places.tolist()
    return found


class ArmSet:
    """All arms by slot, in the order in which they came; those in play by place, which is what the policy counts in.

    ``all`` is the storage over all slots, ``playing`` the one over the arms in play. They share the books, the clock
    and the policy's record; as long as every arm is in play they are one and the same. ``full`` and ``state`` are what
    a policy would be shown of them.
    """

    # What every round looks at stands apart, as in the ledger.
    __slots__ = (
        "__dict__",
        "calls",
        "lineup",
        "max_costs",
        "name_at",
        "params",
        "places",
        "playing",
        "reserves",
        "slot_at",
    )

    def __init__(self, config: Config) -> None:
        self.config = config
        self.names: list[str] = []
        self.statuses: list[str] = []
        self.max_costs: list[Amounts] = []
        self.reserves: list[Units] = []  # the largest costs in units
        self.slot_by_name: dict[str, int] = {}  # of the arm that has a name now; one that is retired may give it up
        self.in_play = np.zeros(0, bool)
        self.ids_name_arms = False  # whether the id of a decision for an arm ends with its slot
        self.slots: list[int] = []
        self.fielded = runs_of(np.zeros(0, np.intp))  # the same, to copy by
        self.all = self.playing = open_books(config)
        self.play_by(config.policy)
        self.add([(name, tuple(one.max_cost_of(name) for one in config.resources)) for name in config.arms])

    def play_by(self, policy: Policy) -> None:
        """The functions of a policy, and the shape of what it remembers."""
        self.policy = policy
        self.usual_calls = live_calls_for(policy, len(self.config.resources))
        self.usual_part_calls: PartCalls | LivePartCalls | None = None
        self.usual_learning_calls: LearningCalls | LiveLearningCalls | None = None
        self.axes = arm_axes_of(policy, len(self.config.resources))
        self.params: Any = ()
        self.is_ready_to_learn = False

    def change_policy(self, config: Config) -> None:
        """Another policy from now on: it finds what is known of the arms, and an empty memory of its own."""
        self.merge()
        self.config = config
        before = self.all
        self.play_by(config.policy)
        fresh = config.policy.new_memory(len(self.names), len(config.resources))
        self.all = before._replace(memory=fresh, record=np.zeros(1, config.policy.record))
        if config.policy.adds_up:  # what it believes follows from what is known
            guess_own_sums(self.all, config.policy)
            self.refresh()
        self.field()

    def slot_of(self, name: object) -> int:
        """The slot of an arm that has not been retired."""
        slot = self.slot_by_name.get(name, -1) if isinstance(name, str) else -1
        if slot >= 0 and self.statuses[slot] != RETIRED:
            return slot
        known = [self.names[slot] for slot in self.present()]
        shown = ", ".join(known[:20]) + (f" and {len(known) - 20} more" if len(known) > 20 else "")
        raise UnknownName(f"arm must be one of {shown}, got {name!r}")

    def present(self) -> list[int]:
        """The slots of the arms that have not been retired."""
        return [slot for slot in self.slot_by_name.values() if self.statuses[slot] != RETIRED]

    def names_in_use(self) -> set[str]:
        """The names that a new arm may not have."""
        return {self.names[slot] for slot in self.present()}

    def add(self, arms: Iterable[tuple[str, Amounts]]) -> None:
        """Bring in new arms, each with its largest costs."""
        self.merge()
        before, known = self.all, len(self.names)
        for name, max_costs in arms:
            self.slot_by_name[name] = len(self.names)
            self.names.append(name)
            self.statuses.append(ACTIVE)
            self.max_costs.append(max_costs)
            self.reserves.append(self.units_of(max_costs))
        self.in_play = np.append(self.in_play, np.ones(len(self.names) - known, bool))
        self.all = self.room_for(len(self.names), self.policy.new_memory(len(self.names), len(self.config.resources)))
        if known:
            self.put(runs_of(np.arange(known)), before)
        self.all.limits[:] = self.reserves
        self.show_limits(self.all)
        self.name_at = [*self.names, None, None]
        self.id_ends = self.find_id_ends()
        self.field()

    def name_arms_in_ids(self) -> None:
        """From now on the id of a decision for an arm ends with its slot, for others may be told of it."""
        self.ids_name_arms = True
        self.id_ends = self.find_id_ends()

    def find_id_ends(self) -> list[str]:
        """How an id ends, by slot; the last two are the null arm and skips."""
        return [*(f".{slot}" if self.ids_name_arms else "" for slot in range(len(self.names))), "", ""]

    def restore(self, arms: Sequence[tuple[str, Amounts, str]]) -> None:
        """Bring back arms with their largest costs and whether each is in play; those of the settings are there."""
        self.add([(name, max_costs) for name, max_costs, _ in arms[len(self.names) :]])
        for slot, (_, max_costs, status) in enumerate(arms):
            self.max_costs[slot], self.reserves[slot] = max_costs, self.units_of(max_costs)
            self.statuses[slot], self.in_play[slot] = status, status == ACTIVE
        self.all.limits[:] = self.reserves
        self.show_limits(self.all)
        self.params = ()
        self.field()

    def units_of(self, max_costs: Amounts) -> Units:
        """Largest costs in units."""
        pairs = zip(self.config.resources, max_costs, strict=True)
        return tuple([resource.currency.charge(cost) for resource, cost in pairs])

    def show_limits(self, storage: Storage) -> None:
        """Show the policy the largest costs.

        What the guard compares in units the policy can compare in floats, and finds the same.
        """
        units = [resource.currency.unit for resource in self.config.resources]
        state_in(storage).largest[:] = storage.limits * units

    def set_max_costs(self, largest: Mapping[int, Amounts]) -> None:
        """Other largest costs of some arms, by slot, for the pulls to come; the policy is told the settings anew."""
        self.merge()
        for slot, max_costs in largest.items():
            self.max_costs[slot], self.reserves[slot] = max_costs, self.units_of(max_costs)
            self.all.limits[slot] = self.reserves[slot]
        self.show_limits(self.all)
        if not isinstance(self.params, Session):  # which has learned something, and sees the settings in its state
            self.params = ()
        self.field()

    def set_status(self, slot: int, status: str) -> None:
        """Put an arm in play or take it out.

        If it leaves a storage of the arms in play, that of all arms gets to know of this arm alone.
        """
        place = self.places[slot]
        self.statuses[slot] = status
        self.in_play[slot] = status == ACTIVE
        if place == ABSENT or status == ACTIVE or self.playing is self.all:
            self.merge()
            self.field()
        else:
            one = slice(slot, slot + 1), slice(place, place + 1)
            self.put(self.fielded._replace(pairs=(one,)), self.playing)  # what is not by arm is put back as a whole
            stay = runs_of(np.delete(np.arange(len(self.slots)), place))
            self.field(self.take(stay, self.playing))

    def room_for(self, count: int, memory: Any) -> Storage:
        """Storage for so many arms that shares all that does not belong to an arm."""
        before = self.all
        room = new_storage(count, len(self.config.resources), memory, self.policy.record)
        return room._replace(
            tally=before.tally,
            clock=before.clock,
            record=before.record,
            amounts=before.amounts,
            measures=before.measures,
        )

    def put(self, arms: Runs, part: Storage) -> None:
        """Bring what some arms have taught into the storage over all arms."""
        for slots, places in arms.each():
            copy_arms(self.all, slots, part, places)
        put_arms(self.all.memory, self.axes, arms, part.memory)

    def take(self, arms: Runs, source: Storage) -> Storage:
        """The storage of some arms alone, out of one of more arms."""
        count = arms.slots.size
        part = self.room_for(count, self.policy.new_memory(count, len(self.config.resources)))
        part.limits[:] = source.limits[arms.slots]
        self.bring(part, arms, source)
        return part

    def bring(self, part: Storage, arms: Runs, source: Storage) -> None:
        """Bring what a storage of more arms has to a storage of some arms."""
        for slots, places in arms.each():
            copy_arms(part, places, source, slots)
        take_arms(part.memory, self.axes, arms, source.memory)

    def merge(self) -> None:
        """Bring what the arms in play have taught into the storage over all arms."""
        if self.playing is not self.all:
            self.put(self.fielded, self.playing)

    def renew(self) -> None:
        """Bring what the storage over all arms has to the arms in play, the way back from `merge`."""
        if self.playing is not self.all:
            self.bring(self.playing, self.fielded, self.all)

    def field(self, playing: Storage | None = None) -> None:
        """Let the policy see the arms in play: in a storage of theirs, or the one over all arms must be up to date."""
        self.fielded = runs_of(np.flatnonzero(self.in_play))
        slots: list[int] = self.fielded.slots.tolist()
        if playing is None:
            playing = self.all if len(slots) == len(self.names) else self.take(self.fielded, self.all)
        self.playing = playing
        self.full, self.state, self.books = state_in(self.all), state_in(self.playing), books_in(self.playing)
        # With nobody in play the guard refuses every round, whatever the headroom.
        self.books.least[:] = self.playing.limits.min(axis=0, initial=sys.maxsize)
        if slots != self.slots or not self.params:
            self.slots, self.params = slots, self.params_for(self.fielded.slots)
            self.calls = self.calls_for(self.params, self.playing)
            self.usual_follow: Callable[..., None] | None = None
            self.usual_teach: Callable[..., None] | None = None
        self.places = places_of(self.fielded.slots, len(self.names))
        self.slot_at = [*slots, NULL, SKIP]
        self.lineup = Lineup(slots, self.playing, self.params, self.calls, self.slot_at)

    def narrow(self, facts: Facts) -> Lineup:
        """Some of the arms in play, with the largest costs of one request."""
        self.merge()
        slots = self.slots if facts.slots is None else list(facts.slots)
        storage = self.take(runs_of(np.array(slots, np.intp)), self.all)
        place_of = {slot: place for place, slot in enumerate(slots)} if facts.largest else {}
        for slot, max_costs in facts.largest:
            storage.limits[place_of[slot]] = self.units_of(max_costs)
        self.show_limits(storage)
        books_in(storage).least[:] = storage.limits.min(axis=0, initial=sys.maxsize)
        params = self.params if slots == self.slots else self.params_for(np.array(slots, np.intp))
        return Lineup(slots, storage, params, self.calls_for(params, storage), [*slots, NULL, SKIP])

    def widen(self, lineup: Lineup) -> None:
        """Go back to all arms in play, with what has happened to the others in between."""
        self.put(runs_of(np.array(lineup.slots, np.intp)), lineup.storage)
        self.show_limits(self.all)
        self.renew()
        self.books.least[:] = self.playing.limits.min(axis=0, initial=sys.maxsize)

    def params_for(self, slots: Places) -> Any:
        """The numbers that the policy's functions get with these arms; no policy is asked to play none."""
        return self.policy.params(self.config.setting(self.full.largest[slots] if slots.size else self.full.largest))

    def calls_for(self, params: Any, storage: Storage) -> Calls | LiveCalls:
        """The engine's functions for such numbers. Those of a user's policy may be of other types for other arms."""
        if is_ours(self.policy):
            return self.usual_calls
        with blamed(self.policy, self.config.setting(self.full.largest)):
            return calls_with(self.policy, params, storage)

    def part_calls_for(self, params: Any, storage: Storage) -> PartCalls | LivePartCalls:
        """The same for those that take in parts of an outcome: made when the first part is told."""
        if not is_ours(self.policy):
            return part_calls_with(self.policy, params, storage)
        if self.usual_part_calls is None:
            self.usual_part_calls = live_part_calls_for(self.policy, len(self.config.resources))
        return self.usual_part_calls

    def follow(self, lineup: Lineup, arm: int, reason: int, tag: int) -> None:
        """Begin a round with a decision that was made earlier."""
        if lineup is not self.lineup:
            follow = live_follower_for(self.policy, lineup.params, lineup.storage)
        else:
            if self.usual_follow is None:
                self.usual_follow = live_follower_for(self.policy, lineup.params, lineup.storage)
            follow = self.usual_follow
        follow(lineup.params, lineup.storage, arm, reason, tag)

    def get_ready_to_learn(self) -> None:
        """Have the code at hand that learns from elsewhere.

        To load it takes tens of milliseconds. That of a policy of the user's may have to be compiled first, which takes
        seconds. So others need not wait for it, and one of them may set another policy meanwhile: what is loaded for
        one of ours is kept by its kind (meanwhile.py), and found there when it is called.
        """
        policy = self.policy
        if self.is_ready_to_learn or self.usual_learning_calls is not None:
            return
        if is_ours(policy):
            live_learning_calls_for(policy, len(self.config.resources))
            return
        teacher_with(self.policy, self.params, self.playing)
        if self.policy.adds_up:
            compile_now(bound_rare_calls(type(self.policy)).refresh, self.params, self.playing)
        self.is_ready_to_learn = True

    def get_ready_for_parts(self) -> None:
        """Have the code at hand that takes in parts of an outcome, likewise."""
        policy, lineup = self.policy, self.lineup
        if is_ours(policy):
            live_part_calls_for(policy, len(self.config.resources))
            return
        with suppress(Exception):  # the two may be of different policies; what is really wrong is said in the call
            part_calls_with(policy, lineup.params, lineup.storage)

    def teach(self, slot: int, reward: float, costs: Amounts) -> None:
        """Learn of a pull that was made elsewhere; the arm may be out of play."""
        place = self.places[slot]
        if place != ABSENT:
            if self.usual_teach is None or is_ours(self.policy):  # that of one of ours may have been compiled since
                self.usual_teach = self.teacher_for(self.params, self.playing)
            self.usual_teach(self.params, self.playing, place, reward, costs)
            return
        self.merge()
        params = self.params_for(np.arange(len(self.names)))
        self.teacher_for(params, self.all)(params, self.all, slot, reward, costs)
        self.renew()

    def teacher_for(self, params: Any, storage: Storage) -> Callable[..., None]:
        """The function that learns from a pull that was made elsewhere."""
        calls = self.learning_calls()
        return teacher_with(self.policy, params, storage) if calls is None else calls.teach

    def learning_calls(self) -> LearningCalls | LiveLearningCalls | None:
        """The functions of a policy of this package that learn from elsewhere: made when they are first needed."""
        if self.usual_learning_calls is None and is_ours(self.policy):
            self.usual_learning_calls = live_learning_calls_for(self.policy, len(self.config.resources))
        return self.usual_learning_calls

    def know_more(self, more: Sums) -> None:
        """Add sums to what is known of the arms, and let a policy whose beliefs follow from them renew these."""
        self.merge()
        add_sums(self.all, self.policy, more)
        if self.policy.adds_up:
            self.refresh()
        self.renew()

    def refresh(self) -> None:
        """Let the policy renew what it believes, in the storage over all arms."""
        self.full = state_in(self.all)
        in_play = self.playing is self.all and self.params
        params = self.params if in_play else self.params_for(np.arange(len(self.names)))
        calls = self.learning_calls() or bound_rare_calls(type(self.policy))
        calls.refresh(params, self.all)

    def add_rewards(self, slot: int, change: Any) -> None:
        """Add to number, sum and squares of the known rewards of an arm; the policy is told by `renew_beliefs`."""
        place = self.places[slot]
        arms, at = (self.full.arms, slot) if place == ABSENT else (self.state.arms, place)
        known = arms.reward_known
        known[:, at] += change
        number = known[NUMBER, at]
        arms.reward_mean[at] = known[TOTAL, at] / number if number > 0.0 else 0.0

    def renew_beliefs(self, slot: int) -> None:
        """Let the policy renew what it believes of an arm in play; of others it does so when they come back."""
        if self.places[slot] != ABSENT:
            count = len(self.config.resources)
            self.tell_part(slot, math.nan, (math.nan,) * count, (0,) * count, (0,) * count)

    def tell_part(self, slot: int, *part: Any) -> None:
        """Book and learn what is known of a pull ahead of the rest; the arm may be out of play."""
        place = self.places[slot]
        if place != ABSENT:
            self.part_calls_for(self.params, self.playing).tell_part(self.params, self.playing, place, *part)
            return
        self.merge()
        params = self.params_for(np.arange(len(self.names)))
        self.part_calls_for(params, self.all).tell_part(params, self.all, slot, *part)
        self.renew()

    def tell_aside(self, ahead: int, *told: Any) -> None:
        """`tell` for an arm that is not in play: on the storage over all arms, in which arms stand at their slots."""
        self.merge()
        params = self.params_for(np.arange(len(self.names)))
        if ahead:
            self.part_calls_for(params, self.all).tell_rest(params, self.all, *told, ahead)
        else:
            self.calls_for(params, self.all).tell(params, self.all, *told)
        self.renew()

    def find_shortage(self, lineup: Lineup, slot: int) -> tuple[int, float]:
        """The first resource that was short of a pull of this arm, or of any arm, and what the pull could have cost."""
        limits, slots = lineup.storage.limits, lineup.slots
        least = limits.min(axis=0) if slot < 0 else limits[slots.index(slot)]
        d = int(np.argmax(self.books.headroom < least))
        cheapest = slots[int(limits[:, d].argmin())] if slot < 0 else slot
        if self.reserves[cheapest][d] == least[d]:
            return d, self.max_costs[cheapest][d]
        return d, self.config.resources[d].currency.amount(int(least[d]))  # of this request alone

    def drop_unpaid(self, slot: int, released: Units) -> None:
        """Nothing is set aside any more for the costs of a pull of this arm for which units were released."""
        place = self.places[slot]
        unpaid = books_in(self.all).unpaid[slot] if place == ABSENT else self.books.unpaid[place]
        unpaid -= np.array(released) > 0

    def drop_pending(self, slot: int) -> None:
        """A pull of this arm is not waited for any more."""
        place = self.places[slot]
        if place == ABSENT:
            self.full.pending[slot] -= 1
        else:
            self.state.pending[place] -= 1


def get_ready(given: PolicyLike, config: Config) -> None:
    """Have the code of another policy at hand. It may have to be compiled first, which takes seconds."""
    policy = one_policy(given)
    if not isinstance(policy, PythonPolicy):
        with suppress(PacelineError):  # what is wrong with it is said when it is set
            arm_set = ArmSet(replace(config, policy=policy))
            arm_set.get_ready_to_learn()
            arm_set.get_ready_for_parts()


def copy_arms(to: Storage, places: Any, source: Storage, slots: Any) -> None:
    """What is known of arms, but for what the policy remembers and the largest costs."""
    to.counts[:, places] = source.counts[:, slots]
    to.numbers[:, places] = source.numbers[:, slots]
    to.costs[:, places] = source.costs[:, slots]


def open_books(config: Config) -> Storage:
    """Storage without arms, its books as they are before the first round."""
    storage = new_storage(0, len(config.resources), NoMemory(np.zeros(0)), config.policy.record)
    books, state = books_in(storage), state_in(storage)
    for d, resource in enumerate(config.resources):
        currency = resource.currency
        books.unit[d] = currency.unit
        books.rate[d], books.rate_part[d] = currency.income_per_round(resource.budget)
        books.start[d] = currency.income(resource.start)
        books.cap[d] = resource.cap_units
        if resource.cap is not None:
            state.cap[d] = resource.cap / resource.scale
        if resource.start > 0.0 == resource.budget and config.rounds is not None:
            books.tally.rounds = config.rounds
        state.rate[d] = rate_from_stock(config, resource)
    books.tally.seed = state.clock.seed = config.own_seed  # the stream is 0
    return storage


def rate_from_stock(config: Config, resource: Resource) -> float:
    """What a policy may spend per round before anything is credited: the budget, or its share of the start stock."""
    if resource.start > 0.0 == resource.budget and config.rounds is not None:
        return min(resource.start / resource.scale / config.rounds, 1.0)
    return resource.budget / resource.scale

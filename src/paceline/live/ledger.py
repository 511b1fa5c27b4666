"""The books of a live bandit: decisions, reservations and what has been told. No files, no locks, no clock on the wall.

Every change is one call here, and the same calls in the same order give the same books, bit for bit: that is how a
journal is read back. A call either happens as a whole or raises and changes nothing.

Amounts come in tuples with an entry per resource. Most bandits have one resource and are told all of an outcome at
once; where a shorter way was worth it for them, it is marked as the usual case.
"""

import heapq
from collections import OrderedDict
from contextlib import suppress
from itertools import chain
from operator import truediv
from typing import Any

import numpy as np

from paceline import checks
from paceline.engine import Log
from paceline.errors import Conflict, InvalidPolicy, InvalidValue, UnknownName
from paceline.game import check_choice, replayer_for
from paceline.kernels.budget import line_units, move, overflow
from paceline.kernels.jit import plain_throughout
from paceline.kernels.state import GUARD
from paceline.live.arms import ArmSet
from paceline.live.config import Config, check_arms
from paceline.live.decision import CANCELLED, NULL, Costs, Outcome, PendingPull
from paceline.live.resource import DOWN, UP, label
from paceline.live.undo import keep, put_back
from paceline.policies.rules import is_ours

MOST_COUNT = 2**63 - 2**33  # units, with room for the costs of a round
BATCH = 100_000  # rows of a log that are collected before they are taken in

Choice = tuple[int, int, int]  # slot, reason, tag: what a policy has decided, in slots
Units = tuple[int, ...]

line_of, move_units, overflow_of = plain_throughout(line_units), plain_throughout(move), plain_throughout(overflow)


class Ledger:
    """The state of a live bandit and everything that can happen to it."""

    def __init__(self, config: Config) -> None:
        count = len(config.resources)
        self.config = config
        self.tag_is_arm, self.situations = config.policy.tag_is_arm, config.policy.reasons
        self.is_unnamed = config.is_unnamed
        self.arm_set = ArmSet(config)
        self.currencies = [resource.currency for resource in config.resources]
        self.scales = [resource.scale for resource in config.resources]
        self.max_reward = config.max_reward
        self.is_single = count == 1
        self.unknown: Costs = (None,) * count
        self.no_units: Units = (0,) * count
        self.rounds = 0
        self.renew_most_rounds()
        self.pending: dict[int, PendingPull] = {}
        self.settled: OrderedDict[int, Outcome] = OrderedDict()  # the last so many, oldest first
        self.expired_pulls: OrderedDict[int, None] = OrderedDict()  # and not settled since, the longest ago first
        self.deadlines: list[tuple[float, int]] = []  # a heap; entries of settled decisions are passed over
        self.mistake: InvalidPolicy | None = None  # that the last refusal was for
        self.may_fail = not is_ours(config.policy)
        self.is_random = config.policy.propensity(True, True, 1) is not None
        self.waiting: list[tuple[Any, ...]] = []  # rows of a log that was read but not taken in yet

    # Rounds.

    def decide(self, deadline: float | None = None) -> Choice | BaseException:
        """Begin a round and let the policy choose; or what its own code raised, and then the round has not begun."""
        if self.rounds >= self.most_rounds:
            self.refuse_round()
        arm_set = self.arm_set
        kept = keep(arm_set.playing) if self.may_fail else None
        try:
            arm, reason, tag = arm_set.calls.ask(arm_set.params, arm_set.playing)
        except BaseException as failure:
            if kept is None:
                raise
            put_back(arm_set.playing, kept)
            return failure
        slot_at = arm_set.slot_at
        slot = slot_at[arm]
        if reason == GUARD:
            self.mistake = self.find_mistake()
        if self.tag_is_arm or reason == GUARD:
            tag = slot_at[tag]
        self.begin(slot, reason, tag, deadline)
        return slot, reason, tag

    def fail_again(self) -> None:
        """Let the policy fail as a journal tells it: a policy in plain Python may have drawn or noted something."""
        self.catch_up()
        kept = keep(self.arm_set.playing)
        with suppress(Exception):
            self.arm_set.calls.ask(self.arm_set.params, self.arm_set.playing)
        put_back(self.arm_set.playing, kept)

    def propensity(self, slot: int, reason: int, tag: int) -> float | None:
        """How likely the decision of this round was."""
        arm_set, policy = self.arm_set, self.config.policy
        affordable = int((arm_set.playing.limits <= arm_set.books.headroom).all(axis=1).sum())
        is_wanted = reason != policy.by_chance or tag == slot
        return policy.propensity(slot >= 0, is_wanted, affordable)

    def find_mistake(self) -> InvalidPolicy | None:
        """What the policy did that it must not do; such a choice comes as a refusal of the guard, and is forgiven."""
        storage = self.arm_set.playing
        try:
            check_choice(self.config.policy, storage, self.arm_set.params)
        except InvalidPolicy as mistake:
            storage.tally["fault"] = storage.tally["faulty"] = 0
            return mistake
        return None

    def follow(self, choice: Choice, deadline: float | None = None) -> None:
        """Begin a round with a choice made earlier, as a journal tells it."""
        if self.rounds >= self.most_rounds:
            self.refuse_round()
        places = self.arm_set.places
        slot, reason, tag = choice
        place = places[tag] if self.tag_is_arm or reason == GUARD else tag
        none = self.no_units
        self.waiting.append((0, places[slot], reason, place, 0.0, none, none, none))
        self.begin(slot, reason, tag, deadline)
        if len(self.waiting) >= BATCH:
            self.catch_up()

    def begin(self, slot: int, reason: int, tag: int, deadline: float | None) -> None:
        """Book a choice; a pull stays open, with its largest costs reserved (the engine has seen to the amounts)."""
        self.rounds += 1
        if slot >= 0:
            pull = self.pending[self.rounds] = PendingPull(slot, reason, tag, self.arm_set.reserves[slot])
            if deadline is not None:
                pull.deadline = deadline
                heapq.heappush(self.deadlines, (deadline, self.rounds))

    def refuse_round(self) -> None:
        """The guard counts rounds and amounts exactly up to a point."""
        raise InvalidValue(f"rounds must stay at or below {self.most_rounds}, got one more")

    def renew_most_rounds(self) -> None:
        """The last round whose lines can be counted in 64 bits, with all that was credited or may come back."""
        books = self.arm_set.books
        self.most_rounds = checks.MOST_ROUNDS
        for d, resource in enumerate(self.config.resources):
            room = MOST_COUNT - int(books.start[d]) - int(books.credited[d]) - int(books.held[d])
            per_round = int(books.rate[d]) + 1 + resource.currency.charge(resource.max_refill)
            self.most_rounds = min(self.most_rounds, room // per_round)

    # Outcomes.

    def tell(self, number: int, reward: float | None, costs: Costs) -> bool:
        """Take in a reward, costs, or both; says whether this was news."""
        pull = self.pending.get(number)
        if pull is not None and pull.is_untouched and type(reward) is float and 0.0 <= reward <= self.max_reward:
            charged = self.charge_usual(costs, self.arm_set.max_costs[pull.slot])
            if charged:
                self.settle(number, pull, reward, costs, pull.reserved, charged)
                return True
        if reward is None and all(cost is None for cost in costs):
            raise InvalidValue(f"tell must be given a reward, a cost or both, got neither for decision {number}")
        if pull is None:
            self.check_same(number, reward, costs)
            return False
        if reward is not None:
            reward = checks.real(f"reward of decision {number}", reward, 0, self.max_reward)
            if pull.reward is not None and pull.reward != reward:
                raise Conflict(f"decision {number} must keep its reward {pull.reward!r}, got {reward!r}")
        return self.take_part(number, pull, reward, self.check_costs(number, pull, costs))

    def charge_usual(self, costs: Costs, largest: tuple[float, ...]) -> Units:
        """What to charge if all costs are told and there is nothing wrong with them; else nothing, to look closer."""
        if self.is_single:
            (cost,), (most,) = costs, largest
            return (self.currencies[0].charge(cost),) if type(cost) is float and 0.0 <= cost <= most else ()
        charged = []
        for currency, cost, most in zip(self.currencies, costs, largest, strict=True):
            if not (type(cost) is float and 0.0 <= cost <= most):
                return ()
            charged.append(currency.charge(cost))
        return tuple(charged)

    def check_costs(self, number: int, pull: PendingPull, costs: Costs) -> Costs:
        """Costs that can be, and are those that were told before."""
        arm_set = self.arm_set
        decision = f"decision {number} ({arm_set.names[pull.slot]})"
        checked: list[float | None] = []
        rows = zip(self.config.resources, costs, arm_set.max_costs[pull.slot], pull.costs or self.unknown, strict=True)
        for resource, given, most, known in rows:
            cost = None if given is None else resource.check_cost(decision, given, most)
            if None not in (cost, known) and cost != known:
                thing = label("cost", resource.name)
                raise Conflict(f"decision {number} must keep its {thing} {known!r}, got {cost!r}")
            checked.append(cost)
        return tuple(checked)

    def take_part(self, number: int, pull: PendingPull, reward: float | None, costs: Costs) -> bool:
        """Book what is new, if anything; once all is known the policy learns and the decision is settled."""
        known, before, reserved = pull.costs or self.unknown, pull.charged or self.no_units, pull.reserved
        is_new = [cost is not None and old is None for cost, old in zip(costs, known, strict=True)]
        if not any(is_new) and (reward is None or pull.reward is not None):
            return False
        costs = tuple(cost if new else old for cost, old, new in zip(costs, known, is_new, strict=True))
        released = tuple(units if new else 0 for units, new in zip(reserved, is_new, strict=True))
        charged = tuple(
            self.currencies[d].charge(costs[d]) - before[d] if new else 0  # type: ignore[arg-type]  # it is known
            for d, new in enumerate(is_new)
        )
        if reward is None:
            reward = pull.reward
        if reward is None and pull.expired and None not in costs:
            reward = self.config.silence  # nothing more is expected of it
        if reward is not None and None not in costs:
            self.settle(number, pull, reward, costs, released, charged)
            return True
        pull.is_untouched, pull.reward, pull.costs = False, reward, costs
        self.move(pull, released, charged)
        return True

    def move(self, pull: PendingPull, released: Units, charged: Units) -> None:
        """Release and charge units for a pull of which not all is known."""
        pull.reserved = tuple(map(int.__sub__, pull.reserved, released))
        pull.charged = tuple(map(int.__add__, pull.charged or self.no_units, charged))
        self.catch_up()
        for d, units in enumerate(zip(released, charged, strict=True)):
            move_units(self.arm_set.books, d, *units)
        self.arm_set.drop_unpaid(pull.slot, released)

    def settle(
        self, number: int, pull: PendingPull, reward: float, costs: Costs, released: Units, charged: Units
    ) -> None:
        """All of a pull is known: the policy learns, and it is remembered for a while."""
        del self.pending[number]
        if pull.expired:
            del self.expired_pulls[number]
        self.remember(number, (reward, costs))
        if self.is_single:
            shares: tuple[float, ...] = (costs[0] / self.scales[0],)  # type: ignore[operator]  # it is known
        else:
            shares = tuple(map(truediv, costs, self.scales))
        arm_set = self.arm_set
        arm, tag = arm_set.places.get(pull.slot), pull.tag
        if self.tag_is_arm:
            tag = arm_set.places.get(tag)  # type: ignore[assignment]  # None if it is not in play
        share = reward / self.max_reward
        if arm is None or tag is None:
            self.settle_aside(pull, share, shares, released, charged)
        elif self.waiting:
            self.waiting.append((1, arm, pull.reason, tag, share, shares, released, charged))
        else:
            tell = arm_set.calls.tell
            tell(arm_set.params, arm_set.playing, arm, pull.reason, tag, share, shares, released, charged)

    def settle_aside(
        self, pull: PendingPull, reward: float, costs: tuple[float, ...], released: Units, charged: Units
    ) -> None:
        """Learn of an arm that is not in play: on the full storage, in which arms stand at their slots."""
        self.catch_up()
        arm_set = self.arm_set
        arm_set.merge()
        count = len(arm_set.names)
        tag = count if self.tag_is_arm and pull.tag == NULL else pull.tag
        params = arm_set.params_for(range(count))
        told = pull.slot, pull.reason, tag, reward, costs, released, charged
        arm_set.calls_for(params, arm_set.all).tell(params, arm_set.all, *told)
        arm_set.field()

    def check_same(self, number: int, reward: float | None, costs: Costs) -> None:
        """News of a decision that is not open must be old news."""
        told = self.settled.get(number)
        if told is None:
            raise self.not_open(number)
        if told == CANCELLED:
            news = reward, self.config.by_name(costs)
            raise Conflict(f"decision {number} was cancelled; it must not be told an outcome, got {news}")
        things = ["reward", *(label("cost", name) for name in self.config.names)]
        for thing, given, known in zip(things, (reward, *costs), (told[0], *told[1]), strict=True):
            toward = None if thing == "reward" else UP
            if given is not None and checks.real(f"{thing} of decision {number}", given, toward=toward) != known:
                raise Conflict(f"decision {number} must keep its {thing} {known!r}, got {given!r}")

    def cancel(self, number: int) -> bool:
        """Forget a pull that was never acted on; says whether this was news."""
        pull = self.pending.get(number)
        if pull is None:
            if number not in self.settled:
                raise self.not_open(number)
            if self.settled[number] != CANCELLED:
                raise Conflict(f"decision {number} was told its outcome; it must not be cancelled any more")
            return False
        if pull.costs or pull.reward is not None:
            raise Conflict(f"decision {number} was told a part of its outcome; it must not be cancelled any more")
        self.forget(number)
        self.expired_pulls.pop(number, None)
        self.remember(number, CANCELLED)
        self.move(pull, pull.reserved, tuple(-units for units in pull.charged or self.no_units))
        return True

    def expire(self, number: int) -> bool:
        """Give up waiting for a pull; says whether this was news.

        Costs that are not known are charged in full. With all costs but no reward, silence may stand for a reward.
        """
        pull = self.pending.get(number)
        if pull is None:
            if number not in self.settled:
                raise self.not_open(number)
            return False
        if pull.expired:
            return False
        costs_are_known = pull.costs and None not in pull.costs
        if costs_are_known and self.config.silence is not None:
            self.take_part(number, pull, self.config.silence, self.unknown)
            return True
        pull.is_untouched, pull.expired = False, True
        if not costs_are_known:
            self.move(pull, pull.reserved, pull.reserved)
        self.expired_pulls[number] = None
        if len(self.expired_pulls) > self.config.remember:
            forgotten, _ = self.expired_pulls.popitem(last=False)
            self.forget(forgotten)
        return True

    def forget(self, number: int) -> None:
        """A pull is not waited for any more, and has taught nothing."""
        self.catch_up()
        pull = self.pending.pop(number)
        self.arm_set.drop_pending(pull.slot)

    def due(self, now: float) -> int | None:
        """The first open decision whose deadline has passed and that has not expired yet."""
        while self.deadlines and self.deadlines[0][0] <= now:
            number = self.deadlines[0][1]
            pull = self.pending.get(number)
            if pull is not None and not pull.expired:
                return number
            heapq.heappop(self.deadlines)
        return None

    def not_open(self, number: int) -> UnknownName:
        """What to say of a number that is neither open nor remembered."""
        if 1 <= number <= self.rounds:
            kept = self.config.remember
            return UnknownName(
                f"decision {number} is not open: it was to sit out, or {kept} others were settled since it was"
            )
        return UnknownName(f"id must be that of a decision, from 1 to {self.rounds}, got {number}")

    def remember(self, number: int, told: Outcome) -> None:
        """Keep how a decision ended, and forget the oldest."""
        self.settled[number] = told
        if len(self.settled) > self.config.remember:
            self.settled.popitem(last=False)

    # Amounts.

    def credit(self, amounts: tuple[float | None, ...], over: int = 0) -> None:
        """More income, besides the budget of each round: at once, or in equal parts over the rounds to come.

        What is still held back of an earlier credit is spread anew together with this one.
        """
        self.catch_up()
        books = self.arm_set.books
        income: list[int | None] = []
        for d, (resource, given) in enumerate(zip(self.config.resources, amounts, strict=True)):
            if given is None and not self.config.is_unnamed:
                income.append(None)
                continue
            amount = checks.real(label("credit", resource.name), given, 0, above_low=True, toward=DOWN)
            refills = self.rounds * resource.currency.charge(resource.max_refill)
            so_far = int(line_of(books, d)) + int(books.lost[d]) + int(books.held[d]) + refills
            resource.currency.check_total(label("income", resource.name), so_far, amount)
            income.append(resource.currency.income(amount))
        over = checks.whole("over", over, 0, checks.MOST_ROUNDS)
        if all(units is None for units in income):
            raise InvalidValue("credit must be a number for some resource, got none")
        for d, units in enumerate(income):
            if units is not None:
                self.add_income(d, units, over)
        self.renew_most_rounds()

    def add_income(self, d: int, units: int, over: int) -> None:
        """Credit units of one resource; what is above its cap is lost."""
        books = self.arm_set.books
        if over > 0:
            books.held[d] += units
            books.held_rounds[d] = max(over, int(books.held_rounds[d]))
            return
        books.credited[d] += units
        books.lost[d] += overflow_of(books, d)

    # Arms.

    def add(self, name: str, max_costs: tuple[float | None, ...]) -> None:
        """A new arm; a largest cost that is not given is that of all arms."""
        check_arms([name], self.arm_set.names)
        largest = tuple(
            resource.check_max_cost(name, resource.max_cost_of(name) if given is None else given)
            for resource, given in zip(self.config.resources, max_costs, strict=True)
        )
        self.catch_up()
        self.arm_set.add([(name, largest)])

    def set_status(self, name: str, status: str) -> bool:
        """Pause, resume or retire an arm; says whether anything changes."""
        slot = self.arm_set.slot_of(name)
        if self.arm_set.statuses[slot] == status:
            return False
        self.catch_up()
        self.arm_set.set_status(slot, status)
        return True

    def catch_up(self) -> None:
        """Take in the rows of a log that are waiting."""
        if self.waiting:
            log = make_log(self.waiting, len(self.no_units))
            replayer_for(type(self.config.policy))(self.arm_set.params, self.arm_set.playing, log)
            self.waiting = []


def make_log(rows: list[tuple[Any, ...]], resources: int) -> Log:
    """A log from its rows; what is by resource is flattened on the way, which is faster than rows within rows."""
    told, arm, reason, tag, reward, cost, released, charged = zip(*rows, strict=True)

    def by_resource(column: tuple[Any, ...], kind: type) -> Any:
        return np.fromiter(chain.from_iterable(column), kind).reshape(-1, resources)

    return Log(
        told=np.array(told, np.int64),
        arm=np.array(arm, np.int64),
        reason=np.array(reason, np.int64),
        tag=np.array(tag, np.int64),
        reward=np.array(reward, np.float64),
        cost=by_resource(cost, np.float64),
        released=by_resource(released, np.int64),
        charged=by_resource(charged, np.int64),
    )

"""The books of a live bandit: decisions, reservations and what has been told. No files, no locks, no clock on the wall.

Every change is one call here, and the same calls in the same order give the same books, bit for bit: that is how a
journal is read back. A call either happens as a whole or raises and changes nothing.
"""

import heapq
from collections import OrderedDict
from typing import Any

import numpy as np

from paceline import checks
from paceline.engine import Log, engine_for
from paceline.errors import Conflict, InvalidValue, UnknownName
from paceline.kernels.budget import line_units
from paceline.kernels.jit import plain
from paceline.live.arms import ArmSet, check_arms
from paceline.live.config import Config
from paceline.live.currency import Currency
from paceline.live.decision import CANCELLED, NULL, Outcome, PendingPull
from paceline.packed import calls_for
from paceline.policies.policy import SKIP

# The columns of a `Log`: told, arm, event, partner, reward, cost, released, charged.
COLUMNS = (np.int64, np.int64, np.int64, np.int64, np.float64, np.float64, np.int64, np.int64)
MOST_COUNT = 2**63 - 2**33  # units, with room for the costs of a round
BATCH = 100_000  # rows of a log that are collected before they are taken in

Choice = tuple[int, int, int]  # slot, event, partner: what a policy has decided, in slots


class Ledger:
    """The state of a live bandit and everything that can happen to it."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.currency = Currency(config.scale)
        self.calls = calls_for(config.policy)
        self.arm_set = ArmSet(config.policy, self.currency, config.budget, config.seed)
        self.arm_set.add([(name, config.max_cost_of(name)) for name in config.arms])
        self.rounds = 0
        self.renew_most_rounds()
        self.pending: dict[int, PendingPull] = {}
        self.settled: OrderedDict[int, Outcome] = OrderedDict()  # the last so many, oldest first
        self.expired_pulls: OrderedDict[int, None] = (
            OrderedDict()
        )  # expired and not settled since, the longest ago first
        self.deadlines: list[tuple[float, int]] = []  # a heap; entries of settled decisions are passed over
        self.waiting: list[tuple[Any, ...]] = []  # rows of a log that was read but not taken in yet

    # Rounds.

    def decide(self, deadline: float | None = None) -> Choice:
        """Begin a round and let the policy choose."""
        self.check_rounds()
        arm_set = self.arm_set
        arm, event, partner = self.calls.ask(arm_set.params, *arm_set.playing)
        choice = arm_set.slot_at[arm], event, arm_set.slot_at[partner]
        self.begin(choice, deadline)
        return choice

    def follow(self, choice: Choice, deadline: float | None = None) -> None:
        """Begin a round with a choice made earlier, as a journal tells it."""
        self.check_rounds()
        places = self.arm_set.places
        slot, event, partner = choice
        self.waiting.append((0, places[slot], event, places.get(partner, SKIP), 0.0, 0.0, 0, 0))
        self.begin(choice, deadline)
        if len(self.waiting) >= BATCH:
            self.catch_up()

    def begin(self, choice: Choice, deadline: float | None) -> None:
        """Book a choice; a pull stays open, with its largest cost reserved (the engine has seen to the money)."""
        self.rounds += 1
        slot, event, partner = choice
        if slot >= 0:
            pull = self.pending[self.rounds] = PendingPull(slot, event, partner, self.arm_set.reserves[slot])
            if deadline is not None:
                pull.deadline = deadline
                heapq.heappush(self.deadlines, (deadline, self.rounds))

    def check_rounds(self) -> None:
        """The guard counts rounds and money exactly up to a point."""
        if self.rounds >= self.most_rounds:
            raise InvalidValue(f"rounds must stay at or below {self.most_rounds}, got one more")

    def renew_most_rounds(self) -> None:
        """The last round whose line can be counted in 64 bits, with all that was credited."""
        clock = self.arm_set.clock
        room = MOST_COUNT - int(clock.credited_units) - int(clock.held_units)
        self.most_rounds = min(checks.MOST_ROUNDS, room // (int(clock.rate_units) + 1))

    # Outcomes.

    def tell(self, number: int, reward: float | None, cost: float | None) -> bool:
        """Take in a reward, a cost, or both; says whether this was news."""
        if reward is None and cost is None:
            raise InvalidValue(f"tell must be given a reward, a cost or both, got neither for decision {number}")
        pull = self.pending.get(number)
        if pull is None:
            self.check_same(number, reward, cost)
            return False
        arm_set = self.arm_set
        if reward is not None:
            most = self.config.max_reward
            if not (type(reward) is float and 0.0 <= reward <= most):  # the usual case costs no message
                reward = checks.real(f"reward of decision {number}", reward, 0, most)
            if pull.reward is not None and pull.reward != reward:
                raise Conflict(f"decision {number} must keep its reward {pull.reward!r}, got {reward!r}")
        if cost is not None:
            most = arm_set.max_costs[pull.slot]
            if not (type(cost) is float and 0.0 <= cost <= most):
                cost = checks.real(f"cost of decision {number} ({arm_set.names[pull.slot]})", cost, 0, most)
            if pull.cost is not None and pull.cost != cost:
                raise Conflict(f"decision {number} must keep its cost {pull.cost!r}, got {cost!r}")
        news = (reward is not None and pull.reward is None) or (cost is not None and pull.cost is None)
        if news:
            self.take_news(number, pull, reward, cost)
        return news

    def take_news(self, number: int, pull: PendingPull, reward: float | None, cost: float | None) -> None:
        """Book what is new; once reward and cost are both known the policy learns and the decision is settled."""
        released = charged = 0
        if cost is not None and pull.cost is None:
            released, charged = pull.reserved, self.currency.charge(cost) - pull.charged
            pull.cost, pull.reserved, pull.charged = cost, 0, pull.charged + charged
        if reward is None and pull.expired and pull.cost is not None:
            reward = self.config.silence  # nothing more is expected of it
        if reward is not None:
            pull.reward = reward
        if pull.reward is None or pull.cost is None:
            self.move_money(released, charged)
            return
        del self.pending[number]
        self.expired_pulls.pop(number, None)
        self.remember(number, (pull.reward, pull.cost))
        outcome = pull.reward / self.config.max_reward, pull.cost / self.config.scale, released, charged
        places = self.arm_set.places
        arm, partner = places.get(pull.slot), places.get(pull.partner)
        if arm is None or partner is None:
            self.take_in_aside(pull, outcome)
        elif self.waiting:
            self.waiting.append((1, arm, pull.event, partner, *outcome))
        else:
            self.calls.take_in(self.arm_set.params, *self.arm_set.playing, arm, pull.event, partner, *outcome)

    def take_in_aside(self, pull: PendingPull, outcome: tuple[float, float, int, int]) -> None:
        """Learn of an arm that is not in play: on the full state, in which arms stand at their slots."""
        self.catch_up()
        arm_set = self.arm_set
        arm_set.merge()
        count = len(arm_set.names)
        partner = count if pull.partner == NULL else pull.partner
        params = arm_set.params_for(count)
        self.calls.take_in(params, *arm_set.all, pull.slot, pull.event, partner, *outcome)
        arm_set.field()

    def check_same(self, number: int, reward: float | None, cost: float | None) -> None:
        """News of a decision that is not open must be old news."""
        told = self.settled.get(number)
        if told is None:
            raise self.not_open(number)
        if told == CANCELLED:
            raise Conflict(f"decision {number} was cancelled; it must not be told an outcome, got {(reward, cost)}")
        for thing, given, known in (("reward", reward, told[0]), ("cost", cost, told[1])):
            if given is not None and checks.real(f"{thing} of decision {number}", given) != known:
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
        if pull.cost is not None or pull.reward is not None:
            raise Conflict(f"decision {number} was told a part of its outcome; it must not be cancelled any more")
        del self.pending[number]
        self.expired_pulls.pop(number, None)
        self.remember(number, CANCELLED)
        self.move_money(pull.reserved, -pull.charged)
        return True

    def expire(self, number: int) -> bool:
        """Give up waiting for a pull; says whether this was news.

        A cost that is not known is charged in full. With a cost but no reward, silence may stand for a reward.
        """
        pull = self.pending.get(number)
        if pull is None:
            if number not in self.settled:
                raise self.not_open(number)
            return False
        if pull.expired:
            return False
        if pull.cost is not None and self.config.silence is not None:
            self.take_news(number, pull, self.config.silence, None)
            return True
        pull.expired = True
        if pull.cost is None:
            units = pull.reserved
            pull.reserved, pull.charged = 0, units
            self.move_money(units, units)
        self.expired_pulls[number] = None
        if len(self.expired_pulls) > self.config.remember:
            forgotten, _ = self.expired_pulls.popitem(last=False)
            del self.pending[forgotten]
        return True

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

    # Currency.

    def move_money(self, released: int, charged: int) -> None:
        """Release and charge units without an outcome to learn from."""
        self.catch_up()
        clock = self.arm_set.clock
        clock.reserved_units -= released
        clock.spent_units += charged

    def credit(self, amount: float, over: int = 0) -> None:
        """More income, besides the budget of each round: at once, or in equal parts over the rounds to come.

        What is still held back of an earlier credit is spread anew together with this one.
        """
        amount = checks.real("credit", amount, 0, above_low=True)
        over = checks.whole("over", over, 0, checks.MOST_ROUNDS)
        self.catch_up()
        clock = self.arm_set.clock
        self.currency.check_total(int(plain(line_units)(clock)) + int(clock.held_units), amount)
        if over == 0:
            clock.credited_units += self.currency.income(amount)
        else:
            clock.held_units += self.currency.income(amount)
            clock.held_rounds = max(over, int(clock.held_rounds))
        self.renew_most_rounds()

    # Arms.

    def add(self, name: str, max_cost: float | None) -> None:
        """A new arm."""
        check_arms([name], self.arm_set.names)
        if max_cost is None:
            max_cost = self.config.max_cost_of(name)
        max_cost = self.config.check_max_cost(name, max_cost)
        self.catch_up()
        self.arm_set.add([(name, max_cost)])

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
            columns = zip(*self.waiting, strict=True)
            log = Log(*(np.array(column, kind) for column, kind in zip(columns, COLUMNS, strict=True)))  # type: ignore[arg-type]
            engine = engine_for(type(self.config.policy))  # type: ignore[arg-type]  # mypy takes the class for an object
            engine.replay(self.arm_set.params, self.arm_set.state, log)
            self.waiting = []

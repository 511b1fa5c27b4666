"""Lives of a bandit at random: whatever is asked, told, changed, lost or torn, the books agree, and all is paid for."""

import asyncio
import copy
import math
import os
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import NamedTuple

import bookkeeper
import numpy as np
import pytest
from bookkeeper import KNOWN, NEWS, POLICIES, abandon, in_order, refused, state_of
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from paceline import Bandit, InvalidPolicy, InvalidValue, Policy, PythonPolicy, UnknownName, UnreadableFile
from paceline.kernels.state import Decision
from paceline.live.events import Expire
from paceline.live.keeper import snapshot_paths
from paceline.live.late_rewards import can_correct
from paceline.live.segments import closed_path, closed_segments
from paceline.live.snapshot import read_file
from paceline.policies import make_policy

ONE, NAMED, TWO = (None,), ("money",), ("money", "energy")
AT_ONCE = 32  # decisions that one call lets expire at most

COSTLY = "kube"  # refuses arms that cost nothing
# max_cost, scale
AMOUNTS = [
    (1, None),
    (0.2, 1.0),
    (7.3, None),
    (1e-6, None),
    (1e9, None),
    ({"a": 0.25, "b": 1.0}, None),
    ({"a": 0.0, "b": 1.0}, None),
    ({"a": 3e-9, "b": 7.3}, 10.0),
]


@dataclass
class Kind:
    """The settings of one resource; those after the scale are in terms of the largest cost."""

    amounts: tuple
    budget: float
    start: float
    cap: float | None
    refill: float
    grant: float
    hourly: float

    def settle(self):
        """The settings in the user's unit."""
        self.max_cost, scale = self.amounts
        self.by_arm = isinstance(self.max_cost, dict)
        largest = max(self.max_cost.values()) if self.by_arm else self.max_cost
        self.budget, self.start, self.refill = self.budget * largest, self.start * largest, self.refill * largest
        self.hourly = 0.0 if self.cap is None else self.hourly * largest
        self.cap = None if self.cap is None else max(self.cap * largest, self.start)
        self.scale = max(scale or 0.0, self.budget, self.refill, largest)

    def line(self):
        """What the bookkeeper knows of it."""
        cap = None if self.cap is None else Fraction(self.cap)
        amounts = (Fraction(self.budget), Fraction(self.start), cap, Fraction(self.hourly), Fraction(self.scale))
        return bookkeeper.Line(*amounts)

    def max_cost_of(self, arm):
        """The largest cost of an arm that comes without one; None if nothing was said of it."""
        return self.max_cost.get(arm) if self.by_arm else self.max_cost

    def allows(self, largest):
        """Whether a pull may cost so much at most."""
        return largest is not None and largest <= self.scale and (self.cap is None or largest < self.cap)

    def cost(self, share, most):
        """A share of the largest cost, or of what may be brought back where anything may."""
        return share * self.refill if share < 0.0 < self.refill else abs(share) * most


@dataclass
class Arm:
    """What is true of an arm now."""

    name: str
    most: list
    status: str = "active"


class Request(NamedTuple):
    """A call of `ask`."""

    time: float
    facts: dict

    def of(self, bandit):
        return asked_again(bandit, **self.facts)


class Params(NamedTuple):
    arms: int


@dataclass(frozen=True, kw_only=True)
class Compiled(Policy):
    """A policy of the user's, to be compiled: each arm in turn, with tags of its own, and sums that it learns."""

    name = "compiled-in-turn"
    allocates = False
    reasons = ("headroom below the largest cost", "its turn")
    record = np.dtype((np.record, [("tags", np.int64), ("rewards", np.float64)]))

    @staticmethod
    def choose(params, state):
        return Decision(state.clock.t % (params.arms + 1), 1, 1000 + state.clock.t)

    @staticmethod
    def learn(params, state, decision, reward, cost):
        state.record.tags += decision.tag
        state.record.rewards += reward

    def params(self, setting):
        return Params(setting.arms)


class Mood(Exception):
    """Now and then a policy does not want to."""


class Moody(PythonPolicy):
    """A policy of the user's in plain Python. Every fifth time it fails, having noted that it was asked."""

    name = "moody"

    def reset(self, setting):
        self.asked, self.told = 0, []

    def choose(self, state):
        self.asked += 1
        if self.asked % 5 == 0:
            raise Mood
        best = self.asked % (state.pending.size + 1)
        return None if best == state.pending.size else best

    def learn(self, state, arm, reward, cost):
        self.told.append((arm, reward, *cost.tolist()))


def two_thirds_up(amount):
    """A number between an amount and the next float above it, nearer to that: as income it counts as the amount."""
    return amount and (Fraction(amount) + 2 * Fraction(math.nextafter(amount, math.inf))) / 3


def two_thirds_down(amount):
    """The same below it: as a cost it counts as the amount."""
    return amount and (Fraction(amount) + 2 * Fraction(math.nextafter(amount, 0.0))) / 3


def asked_again(bandit, **facts):
    """What a bandit answers, if need be the second time."""
    try:
        return bandit.ask(**facts)
    except Mood:
        return bandit.ask(**facts)


OWN = {"own, compiled": Compiled(), "own, plain Python": Moody()}


kinds = st.builds(
    Kind,
    amounts=st.sampled_from(AMOUNTS),
    budget=st.sampled_from([0.0, 1 / 3, 1.0, 1.5]),
    start=st.sampled_from([0.0, 0.0, 2.5]),
    cap=st.sampled_from([None, None, 1.25, 4.0]),
    refill=st.sampled_from([0.0, 0.0, 0.3, 1.0]),
    grant=st.sampled_from([0.0, 2.5, 1000.0]),
    hourly=st.sampled_from([0.0, 1 / 3, 1000.0]),
)
upkeeps = st.fixed_dictionaries(
    {
        "snapshot_every": st.sampled_from([None, None, 1, 7]),
        "rotate_every": st.sampled_from([None, None, 3, 11]),
        "closed": st.sampled_from(["keep", "gzip", "drop"]),
        "fsync": st.sampled_from([False, False, False, True]),
    }
)
shares = st.sampled_from([0.0, 1.0, 1 / 3, 1 - 2**-53, 2**-32, 1e-300]) | st.floats(0, 1)
signed_shares = shares | shares.map(lambda share: -share)
bad_values = st.sampled_from([float("nan"), float("inf"), -1.0, -5e-324, 1e300, "0.5", [0.5]])
decisions = st.tuples(st.sampled_from(["waiting", "waiting", "any"]), st.integers(0, 1000))
parts = st.sampled_from(["all", "reward", "costs", "first cost", "last cost", "reward and first cost"])
places = st.sampled_from([0, 1, None])  # of a resource, or of all
spans = st.sampled_from([None, None, 1, 2.5, 10.0])


class Life(RuleBasedStateMachine):
    """One bandit with a journal, and the bookkeeper beside it."""

    def __init__(self, policy, names):
        super().__init__()
        self.policy = policy
        self.own = policy if policy in OWN.values() else None  # which must be given again
        self.names = names
        self.folder = Path(tempfile.mkdtemp(prefix="paceline-life-"))
        self.journal = self.folder / "books" / "journal"
        self.journal.parent.mkdir()
        self.now = 1000.0
        self.loop = None  # in which rounds and news are awaited, if they are
        self.by_hand = None  # the decision that is being expired by a call of `expire`

    def teardown(self):
        if hasattr(self, "bandit"):
            self.bandit.close()
        if self.loop is not None:
            self.loop.run_until_complete(self.loop.shutdown_default_executor())
            self.loop.close()
        shutil.rmtree(self.folder)

    def clock(self):
        return self.now

    @property
    def time(self):
        """The same in milliseconds, as the books count."""
        return int(self.now * 1000.0)

    def by_name(self, values):
        """As the bandit wants what has an entry per resource."""
        return values[0] if self.names == ONE else dict(zip(self.names, values, strict=True))

    def given(self, values):
        """The same, for what may be given of some resources alone."""
        if self.names == ONE:
            return values[0]
        return {name: value for name, value in zip(self.names, values, strict=True) if value is not None} or None

    def at(self, place, value):
        """A list with something for one resource, or for all of them."""
        return [value if place is None or d == place % len(self.names) else None for d in range(len(self.names))]

    @initialize(
        kinds=st.tuples(kinds, kinds),
        max_reward=st.sampled_from([1.0, 3.0, 0.1, 1e6]),
        remember=st.sampled_from([0, 1, 3, 50]),
        expires=st.sampled_from([None, None, 4.0]),
        silent=st.sampled_from([False, False, True]),
        period=st.sampled_from([None, None, 24.0]),
        worker=st.sampled_from([None, None, "web-1"]),
        upkeep=upkeeps,
        awaited=st.booleans(),
    )
    def begin(self, kinds, max_reward, remember, expires, silent, period, worker, upkeep, awaited):
        self.loop = asyncio.new_event_loop() if awaited else None
        self.kinds, self.max_reward = kinds[: len(self.names)], max_reward
        policy = make_policy(self.policy) if isinstance(self.policy, str) else self.policy
        for kind in self.kinds:
            kind.refill = kind.refill if policy.refillable else 0.0
            kind.settle()
            if policy.name == COSTLY and kind.by_arm:
                kind.max_cost = {arm: cost or kind.scale for arm, cost in kind.max_cost.items()}
        self.expires, self.worker, self.upkeep = expires, worker, upkeep
        silence = max_reward / 4 if silent else None
        self.books = bookkeeper.Books([kind.line() for kind in self.kinds], remember, silence, period is not None)
        self.arms = [Arm(arm, [kind.max_cost_of(arm) for kind in self.kinds]) for arm in "ab"]  # by slot
        self.states = {}  # by the number of lines in the journal: what is known after them
        self.requests = {}  # likewise: what was asked next, and answered
        self.retries = {}  # likewise: a key that was asked with last, and what was answered
        self.watch(
            Bandit(
                ["a", "b"],
                self.by_name([kind.budget for kind in self.kinds]),
                self.policy,
                self.by_name([kind.max_cost for kind in self.kinds]),
                max_reward,
                seed=5,
                scale=self.by_name([kind.scale for kind in self.kinds]),
                start=self.by_name([kind.start for kind in self.kinds]),
                cap=self.given([kind.cap for kind in self.kinds]),
                max_refill=self.by_name([kind.refill for kind in self.kinds]),
                hourly=self.by_name([kind.hourly for kind in self.kinds]),
                rounds=30,
                period=period,
                expires=expires,
                silence=silence,
                remember=remember,
                worker=worker,
                journal=self.journal,
                clock=self.clock,
                **upkeep,
            )
        )
        self.was_late = False  # whether rewards were ever corrected for their delay
        self.change_window(silence)
        self.states[1] = state_of(self.bandit)
        if any(kind.grant for kind in self.kinds):
            self.bandit.credit(self.given([kind.grant or None for kind in self.kinds]))
            self.books.move([kind.grant or None for kind in self.kinds])

    def watch(self, bandit):
        """Note the state after everything that happens, for which there is a line of the journal then."""
        self.bandit, ledger = bandit, bandit._ledger
        for thing, name in ((ledger, "apply"), (ledger, "decide_and_begin"), (bandit, "tell")):
            setattr(thing, name, partial(self.happen, getattr(thing, name)))

    def happen(self, change, *event, **given):
        result = change(*event, **given)
        self.states[self.bandit._journal.lines] = state_of(self.bandit)
        if type(event[0]) is Expire:
            self.follow_expiry(event[0].ids)
        return result

    def follow_expiry(self, numbers):
        """What expires by the clock is the longest overdue, a few at a time, or the one that a call is about."""
        due = self.books.due(self.time)
        if self.by_hand is None:
            assert 0 < len(numbers) <= AT_ONCE
            assert list(numbers) == due[: len(numbers)] or (len(numbers) == 1 and numbers[0] in due)
        else:
            assert numbers == (self.by_hand,)
        for number in numbers:
            self.books.expire(number)

    def state_after(self, lines):
        """The state after so many lines; a line that begins a segment changes nothing."""
        return self.states[max(number for number in self.states if number <= lines)]

    def id_of(self, number):
        return number if self.worker is None else f"{self.worker}-{number}"

    def decision(self, which):
        """The number of a decision, of a round that was sat out, or of none; most often of one that waits for news."""
        kind, place = which
        waiting = list(self.books.pending)
        if kind == "waiting" and waiting:
            return waiting[place % len(waiting)]
        return place % (self.books.rounds + 2)

    def call(self, verdict, change, *arguments, **options):
        """A call of the bandit must end as the bookkeeper says."""
        if isinstance(verdict, str):
            change(*arguments, **options)
        else:
            with refused(self.bandit, verdict):
                change(*arguments, **options)

    def ask_bandit(self, facts):
        """`ask`, or `aask`; where the policy fails the round has not begun, and it is asked again."""
        try:
            return self.bandit.ask(**facts) if self.loop is None else self.await_(self.bandit.aask(**facts))
        except Mood:
            assert self.bandit.rounds == self.books.rounds
            self.states[self.bandit._journal.lines] = state_of(self.bandit)
            return self.ask_bandit(facts)

    def tell_bandit(self, number, reward, costs, **options):
        """`tell`, or `atell`."""
        news = self.id_of(number), reward, self.given(costs)
        if self.loop is None:
            self.bandit.tell(*news, **options)
        else:
            self.await_(self.bandit.atell(*news, **options))

    def await_(self, coroutine):
        return self.loop.run_until_complete(coroutine)

    def settle_clock(self):
        """Let the bandit expire what is due, so that a refused call can be seen to change nothing."""
        while due := self.books.due(self.time):
            others = len(self.books.past_deadline(self.time)) - len(due)
            with pytest.raises(UnknownName):
                self.bandit.tell(self.id_of(0), reward=0.0)
            expired = len(due) - len(self.books.due(self.time))
            assert min(len(due), AT_ONCE - others) <= expired <= AT_ONCE

    # Arms by slot, and those that have their names now.

    @property
    def slots(self):
        return {arm.name: slot for slot, arm in enumerate(self.arms)}

    def present(self):
        """The names that are not those of retired arms."""
        return [name for name, slot in self.slots.items() if self.arms[slot].status != "retired"]

    def some(self, which):
        """Some of them, as the bits of a number say."""
        return [name for place, name in enumerate(self.present()) if which >> place & 1]

    # What may happen.

    @rule(expires=st.lists(spans, min_size=1, max_size=4))
    def ask(self, expires):
        for seconds in expires:
            self.ask_once({} if seconds is None else {"expires": seconds})

    @rule(seconds=st.sampled_from([2.5, 10.0]))
    def ask_many_times(self, seconds):
        for _ in range(12):
            self.ask_once({"expires": seconds})

    @rule(
        which=st.none() | st.integers(0, 63),
        share=st.sampled_from([None, 1.0, 0.3, 0.0, 1.5]),
        place=places,
        by_arm=st.booleans(),
        key=st.sampled_from([None, "k1", "k2", "k3", "ü"]),
        expires=spans,
    )
    def ask_specially(self, which, share, place, by_arm, key, expires):
        arms = None if which is None else self.some(which)
        costs = self.at(place, None if share is None else share)
        costs = [None if one is None else one * kind.scale for one, kind in zip(costs, self.kinds, strict=True)]
        named = self.some(which or 5)
        facts = {"arms": arms, "key": key, "expires": expires}
        if share is not None:
            facts["max_cost"] = self.given(
                [dict.fromkeys(named, one) if by_arm and one is not None else one for one in costs]
            )
        facts = {name: value for name, value in facts.items() if value is not None}
        concerned = (
            named if by_arm else [arm for arm in (arms if arms is not None else self.present()) if self.is_active(arm)]
        )
        if key in self.books.answers:
            self.settle_clock()
            with bookkeeper.unchanged(self.bandit):
                assert self.bandit.ask(**facts) == self.books.answers[key]
            return
        if concerned and not all(one is None or kind.allows(one) for one, kind in zip(costs, self.kinds, strict=True)):
            self.settle_clock()
            with refused(self.bandit, InvalidValue, "max_cost"):
                self.bandit.ask(**facts)
            return
        self.ask_once(facts, arms, dict.fromkeys(concerned, costs))

    def wants_costs(self):
        """Whether the policy refuses arms that cost nothing."""
        return self.bandit._ledger.config.policy.name == COSTLY

    def is_active(self, name):
        return self.arms[self.slots[name]].status == "active"

    def ask_once(self, facts, arms=None, changed=None):
        """A round; ``changed`` has the largest costs that are not as usual."""
        late = self.books.past_deadline(self.time)
        decision = self.ask_bandit(facts)
        assert len(late) > AT_ONCE or not self.books.due(self.time)
        lasting = facts.get("expires", self.expires)
        allowed = [arm for arm in (self.present() if arms is None else arms) if self.is_active(arm)]
        pull = None
        if decision.arm is not None:
            assert decision.arm in allowed
            slot = self.slots[decision.arm]
            asked = (changed or {}).get(decision.arm, [None] * len(self.names))
            most = [usual if one is None else one for usual, one in zip(self.arms[slot].most, asked, strict=True)]
            deadline = None if lasting is None else self.time + int(lasting * 1000)
            nothing = [None] * len(self.names)
            pull = bookkeeper.Pull(decision.arm, slot, list(map(Fraction, most)), self.time, deadline, nothing)
        elif not allowed:
            assert decision.reason == "no arm is active"
        elif decision.headroom is not None:
            assert decision.headroom < decision.largest_cost
            assert decision.resource in self.names
        assert decision.id == self.id_of(self.books.rounds + 1)
        self.books.ask(self.books.rounds + 1, self.time, pull)
        line = self.line_of_last_ask()
        if not self.books.due(self.time):
            self.requests[line - 1] = Request(self.now, facts), decision
        if "key" in facts:
            self.books.keep_answer(facts["key"], decision)
            self.retries[line] = facts["key"], decision

    def line_of_last_ask(self):
        """The last line of the journal, unless it is one that begins a segment."""
        return max(self.states)

    def part_of(self, part, reward, costs):
        """A reward and a list of costs of which only a part is told."""
        if part not in ("all", "reward", "reward and first cost"):
            reward = None
        if part in ("first cost", "reward and first cost"):
            costs = [costs[0], *(None for _ in costs[1:])]
        elif part == "last cost":
            costs = [*(None for _ in costs[1:]), costs[-1]]
        elif part == "reward":
            costs = [None for _ in costs]
        return reward, costs

    @rule(
        which=decisions,
        part=st.just("all") | parts,
        reward=shares,
        costs=st.tuples(signed_shares, signed_shares),
        settled=st.booleans(),
    )
    def tell(self, which, part, reward, costs, settled):
        number = self.decision(which)
        pull = self.books.pulls.get(number)
        largest = [float(most) for most in pull.largest] if pull else [kind.scale for kind in self.kinds]
        costs = [kind.cost(share, most) for share, most, kind in zip(costs, largest, self.kinds, strict=False)]
        reward, costs = self.part_of(part, reward * self.max_reward, costs)
        if settled or len(self.books.past_deadline(self.time)) > AT_ONCE:
            self.settle_clock()
            self.tell_now(number, reward, costs)
        else:
            self.tell_overdue(number, reward, costs)

    def tell_now(self, number, reward, costs, **options):
        """Tell something when nothing is overdue."""
        verdict = self.books.on_tell(number, reward, costs)
        self.call(verdict, self.tell_bandit, number, reward, costs, **options)
        if verdict == NEWS:
            self.books.tell(number, reward, costs)

    def tell_overdue(self, number, reward, costs):
        """Tell something when others are overdue, or the decision itself: they expire first."""
        soon = copy.deepcopy(self.books)
        for due in soon.due(self.time):
            soon.expire(due)
        verdict = soon.on_tell(number, reward, costs)
        if isinstance(verdict, str):
            self.tell_bandit(number, reward, costs)
        else:
            with pytest.raises(verdict):
                self.tell_bandit(number, reward, costs)
        if verdict == NEWS:
            self.books.tell(number, reward, costs)

    @rule(which=decisions, part=st.just("all") | parts, times=st.tuples(*[st.sampled_from([0.5, 1.5, 7.0])] * 2))
    def tell_an_overrun(self, which, part, times):
        self.settle_clock()
        number = self.decision(which)
        pull = self.books.pulls.get(number)
        if pull is None:
            return
        costs = [
            times[d] * (float(most) or kind.scale)
            for d, (most, kind) in enumerate(zip(pull.largest, self.kinds, strict=True))
        ]
        reward, costs = self.part_of(part, 0.5 * self.max_reward, costs)
        is_over = any(cost is not None and cost > most for cost, most in zip(costs, pull.largest, strict=True))
        if is_over and self.books.on_tell(number, reward, costs) == NEWS:
            with refused(self.bandit, InvalidValue, "cost"):
                self.bandit.tell(self.id_of(number), reward, self.given(costs))
        self.tell_now(number, reward, costs, overrun=True)

    @rule(which=decisions, part=parts)
    def tell_the_same_again(self, which, part):
        self.settle_clock()
        number = self.decision(which)
        pull = self.books.pulls.get(number)
        if pull is not None and (pull.reward is not None or any(cost is not None for cost in pull.costs)):
            reward, costs = self.part_of(part, pull.reward, pull.costs)
            verdict = self.books.on_tell(number, reward, costs)
            assert verdict != NEWS
            if verdict == KNOWN:
                with bookkeeper.unchanged(self.bandit):
                    self.bandit.tell(self.id_of(number), reward, self.given(costs), overrun=True)
            else:
                self.call(verdict, self.bandit.tell, self.id_of(number), reward, self.given(costs))

    @rule(which=decisions, part=parts, bad=bad_values, place=st.integers(0, 1))
    def tell_what_cannot_be(self, which, part, bad, place):
        self.settle_clock()
        number, place = self.decision(which), place % len(self.names)
        pull = self.books.pulls.get(number)
        if pull is None or pull.fate != bookkeeper.OPEN or not self.books.known_to(number):
            return
        if type(bad) is float and -self.kinds[place].refill <= bad <= pull.largest[place]:
            return
        costs = [0.0 if known is None else known for known in pull.costs]
        if any(cost > most for cost, most in zip(costs, pull.largest, strict=True)):
            return
        costs[place] = bad
        reward = 0.0 if "reward" not in part else bad
        reward, costs = self.part_of("all", reward if pull.reward is None else pull.reward, costs)
        with refused(self.bandit, InvalidValue):
            self.bandit.tell(self.id_of(number), reward, self.given(costs))

    @rule(which=decisions, how=st.sampled_from(["cancel", "expire"]))
    def give_up(self, which, how):
        self.settle_clock()
        number = self.decision(which)
        verdict = getattr(self.books, f"on_{how}")(number)
        self.by_hand = number if how == "expire" else None
        self.call(verdict, getattr(self.bandit, how), self.id_of(number))
        self.by_hand = None
        if verdict == NEWS and how == "cancel":
            self.books.cancel(number)

    @rule(seconds=st.sampled_from([0.5, 3.0, 20.0, 3600.0, -2.0, -5000.0]))
    def wait(self, seconds):
        """The clock may also be set back."""
        self.now += seconds

    @rule(which=st.integers(0, 5), reward=shares, costs=st.tuples(signed_shares, signed_shares))
    def observe(self, which, reward, costs):
        """Nothing is spent, no round is counted, and nothing earned: the invariants see to it."""
        if not self.present():
            return
        arm = self.present()[which % len(self.present())]
        if not (self.adds_up or self.bandit._ledger.config.policy is self.own):  # which learns one by one
            with refused(self.bandit, InvalidPolicy):
                self.bandit.observe(arm, 0.0, self.given([0.0] * len(self.names)))
            return
        slot = self.slots[arm]
        pairs = zip(costs, self.arms[slot].most, self.kinds, strict=False)
        costs = [kind.cost(share, most) for share, most, kind in pairs]
        self.bandit.observe(arm, reward * self.max_reward, self.given(costs))
        self.books.observe(slot, reward * self.max_reward, costs)

    @rule(
        owner=st.sampled_from(["x", "y"]),
        outcomes=st.lists(st.tuples(st.sampled_from(["a", "b", "arm 2", "z"]), shares, shares), max_size=4),
    )
    def merge(self, owner, outcomes):
        """What another bandit has learned of arms of any name; each report replaces the one before."""
        if not self.adds_up:
            with refused(self.bandit, InvalidPolicy):
                self.bandit.merge({owner: {}})
            return
        scales = [kind.scale for kind in self.kinds]
        other = Bandit(["a", "b", "arm 2", "z"], self.by_name(scales), "uniform", self.by_name(scales), self.max_reward)
        told = {}
        for arm, part, share in outcomes:
            reward, costs = part * self.max_reward, [share * scale for scale in scales]
            other.observe(arm, reward, self.by_name(costs))
            told.setdefault(arm, []).append((reward, costs))
        self.bandit.merge({owner: other.report()})
        self.books.learn_from_others(owner, told)

    @rule(
        times=st.sampled_from([1.0, 0.1, 2.5, 2**-40, 1e-300]),
        place=places,
        over=st.sampled_from([0, 0, 1, 3, 10]),
        rate=st.booleans(),
    )
    def more_income(self, times, place, over, rate):
        amounts = [one and one * kind.scale for one, kind in zip(self.at(place, times), self.kinds, strict=True)]
        if over and not rate:
            with refused(self.bandit, InvalidValue, "rate"):
                self.bandit.credit(self.given(amounts), over, rate)
            return
        self.bandit.credit(self.given(amounts), over, rate)
        self.books.move(amounts, over)

    @rule(share=st.sampled_from([1.0, 0.25, 1e-12, 1.5]), place=places, rate=st.booleans())
    def debit(self, share, place, rate):
        left = in_order(self.bandit, self.bandit.headroom)
        amounts = [one and one * (most or 1.0) for one, most in zip(self.at(place, share), left, strict=True)]
        ledger = self.bandit._ledger  # beyond 2**53 units the headroom that is shown may be rounded up
        exact = [Fraction(ledger.headroom(d)) / Fraction(one.units) for d, one in enumerate(ledger.currencies)]
        given = [(amount, most) for amount, most in zip(amounts, exact, strict=True) if amount is not None]
        if any(amount <= 0.0 or Fraction(amount) > most for amount, most in given):
            with refused(self.bandit, InvalidValue, "debit"):
                self.bandit.debit(self.given(amounts), rate)
            return
        self.bandit.debit(self.given(amounts), rate)
        self.books.move([amount and -amount for amount in amounts])

    # Arms and settings.

    @rule(which=st.integers(0, 11), shares=st.tuples(*[st.sampled_from([None, 1.0, 0.01, 0.0])] * 2))
    @precondition(lambda self: len(self.arms) < 7)
    def add(self, which, shares):
        """A new name, or that of an arm that was retired."""
        names = [*self.slots, f"arm {len(self.arms)}"]
        name = names[which % len(names)]
        if name in self.present():
            with refused(self.bandit, InvalidValue, "names of arms must differ"):
                self.bandit.add(name)
            return
        given = [None if share is None else share * kind.scale for share, kind in zip(shares, self.kinds, strict=False)]
        most = [kind.max_cost_of(name) if one is None else one for one, kind in zip(given, self.kinds, strict=True)]
        if not all(kind.allows(one) for one, kind in zip(most, self.kinds, strict=True)):
            with refused(self.bandit, InvalidValue, "max_cost"):
                self.bandit.add(name, self.given(given))
            return
        if self.wants_costs() and not all(most):
            with refused(self.bandit, InvalidValue, "kube works with largest costs above 0"):
                self.bandit.add(name, self.given(given))
            return
        self.bandit.add(name, self.given(given))
        self.arms.append(Arm(name, most))

    @rule(which=st.integers(0, 5), how=st.sampled_from(["pause", "pause", "resume", "resume", "retire"]))
    def set_status(self, which, how):
        name = sorted(self.slots)[which % len(self.slots)]
        arm = self.arms[self.slots[name]]
        if arm.status == "retired":
            with refused(self.bandit, UnknownName, "arm must be one of"):
                getattr(self.bandit, how)(name)
        else:
            getattr(self.bandit, how)(name)
            arm.status = {"pause": "paused", "resume": "active", "retire": "retired"}[how]

    @rule(
        what=st.sampled_from([("budget",), ("hourly",), ("budget", "hourly")]),
        shares=st.tuples(*[st.sampled_from([0.0, 1 / 3, 1.0, 1.01])] * 2),
        place=places,
    )
    def set_income(self, what, shares, place):
        scales = {"budget": 1.0, "hourly": 700.0}
        given = {
            name: [
                one and share * kind.scale * scales[name]
                for one, share, kind in zip(self.at(place, 1.0), shares, self.kinds, strict=False)
            ]
            for name in what
        }
        settings = {name: self.given(list(map(two_thirds_up, amounts))) for name, amounts in given.items()}
        is_allowed = all(
            (budget or 0.0) <= kind.scale and (kind.cap is not None or not rate)
            for kind, budget, rate in zip(
                self.kinds, given.get("budget", self.at(0, None)), given.get("hourly", self.at(0, None)), strict=True
            )
        )
        if not is_allowed:
            with refused(self.bandit, InvalidValue):
                self.bandit.set(**settings)
            return
        self.bandit.set(**settings)
        self.books.change_income(self.time, given.get("budget"), given.get("hourly"))
        for name, amounts in given.items():
            for resource, amount in zip(self.bandit._ledger.config.resources, amounts, strict=True):
                assert amount in (None, getattr(resource, name))

    @rule(share=st.sampled_from([1.0, 0.3, 0.0, 1.5]), which=st.integers(0, 63), place=places, by_arm=st.booleans())
    def set_max_cost(self, share, which, place, by_arm):
        costs = [one and share * kind.scale for one, kind in zip(self.at(place, 1.0), self.kinds, strict=True)]
        named = self.some(which) if by_arm else self.present()
        is_asked = bool(named) or not by_arm
        exact = list(map(two_thirds_down, costs))
        given = self.given([dict.fromkeys(named, one) if by_arm and one is not None else one for one in exact])
        fits = [
            one is None or (kind.allows(one) if named else one <= kind.scale)
            for one, kind in zip(costs, self.kinds, strict=True)
        ]
        if is_asked and not all(fits):
            with refused(self.bandit, InvalidValue, "max_cost"):
                self.bandit.set(max_cost=given)
            return
        if self.wants_costs() and named and 0.0 in costs:
            with refused(self.bandit, InvalidValue, "kube works with largest costs above 0"):
                self.bandit.set(max_cost=given)
            return
        self.bandit.set(max_cost=given)
        self.books.change_income(self.time)
        for d, (one, kind) in enumerate(zip(costs, self.kinds, strict=True)):
            if one is None:
                continue
            for name in named:
                self.arms[self.slots[name]].most[d] = one
                assert self.bandit._ledger.arm_set.max_costs[self.slots[name]][d] == one
            if not by_arm:
                kind.max_cost, kind.by_arm = one, False

    def change_window(self, silence):
        """Rewards are corrected for their delay where silence stands for one after a usual window."""
        policy = self.bandit._ledger.config.policy
        is_late = silence is not None and self.expires is not None and can_correct(policy)
        self.books.change_window(int(self.expires * 1000) if is_late else None, silence)
        self.was_late = self.was_late or is_late

    @property
    def adds_up(self):
        """Whether what the policy knows follows from sums, so that it can learn from elsewhere."""
        return self.bandit._ledger.config.policy.adds_up

    @rule(policy=st.sampled_from(["index", "thompson", "uniform", "own, plain Python"]))
    def set_policy(self, policy):
        if policy in OWN and self.own in (None, OWN[policy]):
            self.own = policy = OWN[policy]  # one at most, for a file is opened with one
        elif policy in OWN:
            return
        self.bandit.set(policy=policy)
        self.books.change_income(self.time)
        self.change_window(self.books.silence)

    @rule(
        expires=st.sampled_from([..., None, 4.0]),
        silence=st.sampled_from([..., ..., None, 0.0, 0.25]),
        period=st.sampled_from([..., None, 24.0]),
    )
    def set_waiting(self, expires, silence, period):
        given = {"expires": expires, "silence": silence, "period": period}
        given = {name: value for name, value in given.items() if value is not ...}
        if given.get("silence"):
            given["silence"] *= self.max_reward
        if not given:
            with refused(self.bandit, InvalidValue, "set must be given a setting"):
                self.bandit.set()
            return
        self.bandit.set(**given)
        self.books.change_income(self.time, has_period=None if period is ... else period is not None)
        self.expires = given.get("expires", self.expires)
        self.change_window(given.get("silence", self.books.silence))

    @rule()
    def look(self):
        with bookkeeper.unchanged(self.bandit):
            assert sum(self.bandit.mix().values()) == pytest.approx(1.0)
            assert all(price >= 0.0 for price in in_order(self.bandit, self.bandit.price))
            status = self.bandit.status()
        if self.adds_up and not self.was_late:  # what others have reported is not reported again
            own = {name: arm["pulls"] for name, arm in self.bandit.report()["arms"].items()}
            assert own == {name: self.books.known_pulls(slot) for name, slot in self.slots.items()}
        books = self.books
        assert (status.rounds, status.pending) == (books.rounds, len(books.pending) - len(books.kept_back))
        for number in books.pending:
            record = self.bandit.look_up(self.id_of(number))
            state = "expired" if number in books.expired_pulls else "told" if number in books.kept_back else "pending"
            assert (record.arm, record.state) == (self.arms[books.pulls[number].slot].name, state)
        assert status.expired == len(books.expired_pulls)
        for name in ("credited", "spent", "reserved", "headroom", "held"):
            assert getattr(status, name) == getattr(self.bandit, name)
        for d, line in enumerate(books.lines):
            overrun = Fraction(in_order(self.bandit, status.overrun)[d])
            assert books.overrun(d) <= overrun + line.unit * len(books.pulls)
            assert overrun <= books.overrun(d) + line.unit * len(books.pulls)

    # What may go wrong.

    @rule()
    def snapshot(self):
        with bookkeeper.unchanged(self.bandit):
            self.bandit.snapshot()

    @rule()
    def crash(self):
        """Reopened, it is the same bandit, and goes on."""
        before = state_of(self.bandit)
        abandon(self.bandit)
        self.watch(Bandit.open(self.journal, policy=self.own, clock=self.clock, **self.upkeep))
        policy = self.bandit._ledger.config.policy
        unused = self.own is not None and policy is not self.own
        assert self.bandit.recovered == (
            f"policy {self.own.name!r} was given, and {policy.name!r} goes on, which was set since" if unused else None
        )
        assert state_of(self.bandit) == before

    def copied(self, name):
        """The files as they are, elsewhere."""
        self.bandit._keeper.finish()
        shutil.rmtree(self.folder / name, ignore_errors=True)
        shutil.copytree(self.journal.parent, self.folder / name)
        return self.folder / name / "journal"

    @rule(
        back=st.integers(0, 200) | st.integers(0, 10**6),
        left=st.sampled_from(["both", "older", "none"]),
        rotating=st.booleans(),
    )
    def crash_in_the_middle_of_a_line(self, back, left, rotating):
        """A journal cut anywhere tells the state after its last whole line, and what would be decided next.

        The snapshots may be gone where the journal is whole without them. It may have been about to be rotated.
        """
        torn = self.copied("torn")
        content, segment = torn.read_bytes(), self.bandit._keeper.segment
        snapshots = [path for path in snapshot_paths(torn) if path.exists()]
        is_whole = len(closed_segments(torn)) == segment - 1
        # A segment gets its name when its first line is there, and a snapshot when the lines before it are.
        lowest = 0 if segment == 1 else content.index(b"\n") + 1
        if is_whole:
            gone = {"both": 0, "older": 1, "none": 2}[left]
        else:
            gone = 1 if left == "older" and len(snapshots) == 2 else 0
            oldest = read_file(snapshots[-1])["journal"]
            if oldest[0] == segment:
                lowest = max(lowest, oldest[1])
        for path in snapshots[:gone]:
            path.unlink()
        cut = len(content) - back % (len(content) - lowest + 1)
        torn.write_bytes(content[:cut])
        if rotating:
            os.link(torn, closed_path(torn, segment))
        lines = self.bandit._journal.lines - content[cut:].count(b"\n")
        if lines == 0:
            with pytest.raises(UnreadableFile, match="no whole first line"):
                Bandit.open(torn, policy=self.own)
            assert torn.read_bytes() == content[:cut]
            return
        whole = content[: content.rfind(b"\n", 0, cut) + 1]
        request, answer = self.requests.get(lines, (Request(self.now, {}), None))
        with Bandit.open(torn, policy=self.own, clock=lambda: request.time) as reopened:
            assert state_of(reopened) == self.state_after(lines)
            assert torn.read_bytes().startswith(whole)
            assert (f"{cut - len(whole)} bytes after line" in (reopened.recovered or "")) == (cut > len(whole))
            if lines in self.retries:
                key, decision = self.retries[lines]
                rounds = reopened.rounds
                assert (reopened.ask(key=key), reopened.rounds) == (decision, rounds)
            if answer is not None:
                assert request.of(reopened) == answer

    @rule()
    def save_and_load(self):
        """A twin decides alike."""
        with bookkeeper.unchanged(self.bandit):
            self.bandit.save(self.folder / "saved")
        loaded = Bandit.load(self.folder / "saved", policy=self.own, clock=lambda: -1.0)
        assert state_of(loaded) == state_of(self.bandit)
        with Bandit.open(self.copied("twin"), policy=self.own, clock=lambda: -1.0) as replayed:
            assert [asked_again(replayed) for _ in range(3)] == [asked_again(loaded) for _ in range(3)]

    # What always holds.

    def seen(self):
        """What the bandit counts of each resource, exactly, and shows in floats: credited, spent, reserved, held."""
        ledger, rows = self.bandit._ledger, []
        books = ledger.arm_set.books
        for d, line in enumerate(self.books.lines):
            counted = (ledger.line(d), books.spent[d], books.reserved[d], books.held[d])
            rows.append([int(units) * line.unit for units in counted])
        for name, amounts in zip(("credited", "spent", "reserved", "held"), zip(*rows, strict=True), strict=True):
            assert in_order(self.bandit, getattr(self.bandit, name)) == [*map(float, amounts)]
        return rows

    @invariant()
    def nothing_is_overdrawn(self):
        books = self.books
        for d, (credited, spent, reserved, held) in enumerate(self.seen()):
            income, charged = books.income(d), books.charged(d)
            assert charged + books.reserved(d) <= income + books.overrun(d)
            assert spent >= charged
            assert reserved >= books.reserved(d)
            assert credited - spent <= income - charged
            if not books.overrun(d):
                assert spent + reserved <= credited
            if books.lines[d].cap is None:
                assert credited <= income
                assert credited + held <= income + books.lines[d].held
            else:
                assert credited - spent <= books.lines[d].cap

    @invariant()
    def nothing_is_lost_but_by_rounding(self):
        books = self.books
        for d, (credited, spent, reserved, held) in enumerate(self.seen()):
            line = books.lines[d]
            paid = line.unit * len(books.pulls)  # each is rounded up to a unit
            assert spent + reserved <= books.charged(d) + books.reserved(d) + paid
            lost = line.slack(books.rounds)
            if line.cap is not None:  # pulls that were rounded up leave less in stock; at the cap two units more go
                lost += paid + 2 * line.unit
            if any(other.cap is not None for other in books.lines if other is not line):
                lost += line.unit * books.rounds  # where all of another stock is reserved at its cap, rates begin anew
            assert credited >= books.income(d) - lost
            assert held >= line.held - lost

    @invariant()
    def all_is_on_the_books(self):
        bandit, books, told = self.bandit, self.books, self.books.kept_back
        assert bandit.rounds == books.rounds
        assert bandit.pending == {
            self.id_of(number): arm for number, arm in books.pending.items() if number not in told
        }
        assert bandit._ledger.count_awaited() == len(books.pending) - len(told) - len(books.expired_pulls)
        assert bandit.expired == [*map(self.id_of, books.expired_pulls)]
        assert bandit.arms == {name: self.arms[slot].status for name, slot in self.slots.items()}
        assert bandit.earned == pytest.approx(books.earned)

    @invariant()
    def the_policy_sees_what_is_pending(self):
        arm_set = self.bandit._ledger.arm_set
        arm_set.merge()
        waiting = Counter(self.books.pulls[number].slot for number in self.books.pending)
        assert arm_set.full.pending.tolist() == [waiting[slot] for slot in range(len(self.arms))]

    @invariant()
    def what_was_told_is_known(self):
        estimates = self.bandit.estimates()
        for name, known in estimates.items():
            slot = self.slots[name]
            rewards, costs = self.books.told_of(slot, name)
            assert 0.0 <= known.reward.low <= known.reward.mean <= known.reward.high <= self.max_reward
            if not self.was_late:  # tests of late rewards know what is reported then
                assert known.pulls == self.books.known_pulls(slot) + len(self.books.reported_of(name))
                mean = sum(rewards) / max(len(rewards), 1)
                assert known.reward.mean == pytest.approx(mean, abs=1e-9 * self.max_reward)
            rows = zip(in_order(self.bandit, known.cost), self.kinds, self.arms[slot].most, costs, strict=True)
            for interval, kind, most, told in rows:
                assert interval.low <= interval.mean <= interval.high
                mean = sum(min(cost, kind.scale) for cost in told) / max(len(told), 1)  # to a policy 1 is the most
                assert interval.mean == pytest.approx(min(mean, most), abs=1e-9 * kind.scale)


LIVES = [
    *((name, ONE) for name in (*POLICIES, *OWN)),
    ("uniform", NAMED),
    *(
        (name, TWO) for name in ("index", "thompson", "primal-dual", "uniform")
    ),  # with a commit, a record, and nothing to learn
]
# The books are the same for all policies: these have long lives, and of the others each enough of them to meet every
# rule. ``--hypothesis-profile thorough`` tells ten times as many of all, other ones in every run.
LONG = ("index", "thompson", *OWN)


@pytest.mark.parametrize(
    ("policy", "names", "examples"),
    [
        *(pytest.param("thompson", names, 12, id=f"thompson, {names}, a few") for names in (ONE, TWO)),
        pytest.param("own, plain Python", TWO, 12, id="own, plain Python, a few"),
        *(
            pytest.param(name, names, 40 if name in LONG else 15, id=f"{name}, {names}", marks=pytest.mark.slow)
            for name, names in LIVES
        ),
    ],
)
def test_the_books_agree_through_every_life(policy, names, examples):
    run_state_machine_as_test(
        partial(Life, {**POLICIES, **OWN}[policy], names),
        settings=settings(
            max_examples=examples * settings().max_examples // 100,
            stateful_step_count=50,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )

"""Lives of a bandit at random: whatever is asked, told, lost or torn, the books agree and nothing is overdrawn."""

import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path

import bookkeeper
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

from paceline import Bandit, InvalidValue, UnknownName, UnreadableFile

ONE, NAMED, TWO = (None,), ("money",), ("money", "energy")

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

    def settle(self):
        """The settings in the user's unit."""
        self.max_cost, scale = self.amounts
        self.by_arm = isinstance(self.max_cost, dict)
        largest = max(self.max_cost.values()) if self.by_arm else self.max_cost
        self.budget, self.start, self.refill = self.budget * largest, self.start * largest, self.refill * largest
        self.cap = None if self.cap is None else max(self.cap * largest, self.start)
        self.scale = max(scale or 0.0, self.budget, self.refill, largest)

    def max_cost_of(self, arm):
        return self.max_cost[arm] if self.by_arm else self.max_cost

    def cost(self, share, most):
        """A share of the largest cost, or of what may be brought back where anything may."""
        return share * self.refill if share < 0.0 < self.refill else abs(share) * most


kinds = st.builds(
    Kind,
    amounts=st.sampled_from(AMOUNTS),
    budget=st.sampled_from([0.0, 1 / 3, 1.0, 1.5]),
    start=st.sampled_from([0.0, 0.0, 2.5]),
    cap=st.sampled_from([None, None, None, 1.25, 4.0]),
    refill=st.sampled_from([0.0, 0.0, 0.3, 1.0]),
    grant=st.sampled_from([0.0, 2.5, 1000.0]),
)
shares = st.sampled_from([0.0, 1.0, 1 / 3, 1 - 2**-53, 2**-32, 1e-300]) | st.floats(0, 1)
signed_shares = shares | shares.map(lambda share: -share)
bad_values = st.sampled_from([float("nan"), float("inf"), -1.0, -5e-324, 1e300, "0.5", [0.5], True])
decisions = st.tuples(st.sampled_from(["waiting", "waiting", "any"]), st.integers(0, 1000))
parts = st.sampled_from(["all", "reward", "costs", "first cost", "last cost", "reward and first cost"])


class Life(RuleBasedStateMachine):
    """One bandit with a journal, and the bookkeeper beside it."""

    def __init__(self, policy, names):
        super().__init__()
        self.policy = policy
        self.names = names
        self.folder = Path(tempfile.mkdtemp(prefix="paceline-life-"))
        self.journal = self.folder / "journal"
        self.now = 0.0

    def teardown(self):
        shutil.rmtree(self.folder)

    def clock(self):
        return self.now

    def by_name(self, values):
        """As the bandit wants what has an entry per resource."""
        return values[0] if self.names == ONE else dict(zip(self.names, values, strict=True))

    def given(self, values):
        """The same, for what may be given of some resources alone."""
        if self.names == ONE:
            return values[0]
        return {name: value for name, value in zip(self.names, values, strict=True) if value is not None} or None

    @initialize(
        kinds=st.tuples(kinds, kinds),
        max_reward=st.sampled_from([1.0, 3.0, 0.1, 1e6]),
        remember=st.sampled_from([0, 1, 3, 50]),
        expires=st.sampled_from([None, None, 4.0]),
        silent=st.booleans(),
        snapshot_every=st.sampled_from([None, None, 1, 7]),
    )
    def begin(self, kinds, max_reward, remember, expires, silent, snapshot_every):
        self.kinds, self.max_reward = kinds[: len(self.names)], max_reward
        for kind in self.kinds:
            kind.settle()
        self.expires, self.snapshot_every = expires, snapshot_every
        silence = max_reward / 4 if silent else None
        lines = [
            bookkeeper.Line(
                Fraction(kind.budget), Fraction(kind.start), None if kind.cap is None else Fraction(kind.cap)
            )
            for kind in self.kinds
        ]
        self.books = bookkeeper.Books(lines, remember, silence)
        self.max_costs = {arm: [kind.max_cost_of(arm) for kind in self.kinds] for arm in "ab"}
        self.statuses = dict.fromkeys("ab", "active")
        self.states = {}  # by the size of the journal: what is known after each line
        self.answers = {}  # by the size of the journal: what was asked next, and answered
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
                rounds=30,
                expires=expires,
                silence=silence,
                remember=remember,
                journal=self.journal,
                snapshot_every=snapshot_every,
                clock=self.clock,
            )
        )
        if any(kind.grant for kind in self.kinds):
            self.credit([kind.grant or None for kind in self.kinds])

    def watch(self, bandit):
        """Note the state after every line of the journal."""
        self.bandit, journal = bandit, bandit._journal
        append = journal.append

        def append_and_note(text):
            append(text)
            self.states[journal.end.offset] = state_of(bandit)

        journal.append = append_and_note
        self.states[journal.end.offset] = state_of(bandit)

    def decision(self, which):
        """The number of a decision, of a round that was sat out, or of none; most often of one that waits for news."""
        kind, place = which
        waiting = list(self.books.pending)
        if kind == "waiting" and waiting:
            return waiting[place % len(waiting)]
        return place % (self.books.rounds + 2)

    def expire_due(self):
        """What any call does first."""
        for number in self.books.due(self.now):
            self.books.expire(number)

    def call(self, verdict, change, *arguments):
        """A call of the bandit must end as the bookkeeper says."""
        if isinstance(verdict, str):
            change(*arguments)
        else:
            with refused(self.bandit, verdict):
                change(*arguments)

    def settle_clock(self):
        """Let the bandit expire what is due, so that a refused call can be seen to change nothing."""
        if self.books.due(self.now):
            with pytest.raises(UnknownName):
                self.bandit.tell(0, reward=0.0)
            self.expire_due()

    # What may happen.

    @rule(expires=st.lists(st.sampled_from([None, None, 1, 2.5, 10.0]), min_size=1, max_size=4))
    def ask(self, expires):
        for seconds in expires:
            self.ask_once(seconds)

    def ask_once(self, expires):
        self.expire_due()
        before = self.bandit._journal.end.offset
        decision = self.bandit.ask() if expires is None else self.bandit.ask(expires)
        lasting = self.expires if expires is None else expires
        deadline = None if lasting is None else self.now + lasting
        self.books.ask(decision.id, decision.arm, self.max_costs.get(decision.arm), deadline)
        if decision.arm is not None:
            assert self.statuses[decision.arm] == "active"
        elif "active" not in self.statuses.values():
            assert decision.reason == "no arm is active"
        elif decision.headroom is not None:
            assert decision.headroom < decision.largest_cost
            assert decision.resource in self.names
        lines = [offset for offset in self.states if offset >= before]
        self.answers[sorted(lines)[-2]] = decision

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

    @rule(which=decisions, part=st.just("all") | parts, reward=shares, costs=st.tuples(signed_shares, signed_shares))
    def tell(self, which, part, reward, costs):
        self.settle_clock()
        number = self.decision(which)
        pull = self.books.pulls.get(number)
        largest = [float(most) for most in pull.largest] if pull else [kind.scale for kind in self.kinds]
        costs = [kind.cost(share, most) for share, most, kind in zip(costs, largest, self.kinds, strict=False)]
        reward, costs = self.part_of(part, reward * self.max_reward, costs)
        verdict = self.books.on_tell(number, reward, costs)
        self.call(verdict, self.bandit.tell, number, reward, self.given(costs))
        if verdict == NEWS:
            self.books.tell(number, reward, costs)

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
                    self.bandit.tell(number, reward, self.given(costs))
            else:
                self.call(verdict, self.bandit.tell, number, reward, self.given(costs))

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
        costs[place] = bad
        reward = 0.0 if "reward" not in part else bad
        reward, costs = self.part_of("all", reward if pull.reward is None else pull.reward, costs)
        with refused(self.bandit, InvalidValue):
            self.bandit.tell(number, reward, self.given(costs))

    @rule(which=decisions, how=st.sampled_from(["cancel", "expire"]))
    def give_up(self, which, how):
        self.settle_clock()
        number = self.decision(which)
        verdict = getattr(self.books, f"on_{how}")(number)
        self.call(verdict, getattr(self.bandit, how), number)
        if verdict == NEWS:
            getattr(self.books, how)(number)

    @rule(seconds=st.sampled_from([0.5, 3.0, 20.0]))
    def wait(self, seconds):
        self.now += seconds

    def credit(self, times, over=0):
        amounts = [None if share is None else share * kind.scale for share, kind in zip(times, self.kinds, strict=True)]
        self.bandit.credit(self.given(amounts), over)
        self.books.credit(amounts, over)

    @rule(
        times=st.sampled_from([1.0, 0.1, 2.5, 2**-40, 1e-300]),
        place=st.sampled_from([0, 1, None]),
        over=st.sampled_from([0, 0, 1, 3, 10]),
    )
    def more_income(self, times, place, over):
        chosen = range(len(self.names)) if place is None else [place % len(self.names)]
        self.credit([times if d in chosen else None for d in range(len(self.names))], over)

    @rule(shares=st.tuples(*[st.sampled_from([None, 1.0, 0.01, 0.0])] * 2))
    @precondition(lambda self: len(self.statuses) < 6)
    def add(self, shares):
        arm = f"arm {len(self.statuses)}"
        given = [None if share is None else share * kind.scale for share, kind in zip(shares, self.kinds, strict=False)]
        most = [kind.max_cost if one is None else one for one, kind in zip(given, self.kinds, strict=True)]
        fits = [
            not isinstance(one, dict) and (kind.cap is None or one < kind.cap)
            for one, kind in zip(most, self.kinds, strict=True)
        ]
        if not all(fits):
            with refused(self.bandit, InvalidValue, "max_cost"):
                self.bandit.add(arm, self.given(given))
            return
        self.bandit.add(arm, self.given(given))
        self.max_costs[arm], self.statuses[arm] = most, "active"

    @rule(which=st.integers(0, 5), how=st.sampled_from(["pause", "pause", "resume", "resume", "retire"]))
    def set_status(self, which, how):
        arm = sorted(self.statuses)[which % len(self.statuses)]
        if self.statuses[arm] == "retired":
            with refused(self.bandit, UnknownName, "arm must be one of"):
                getattr(self.bandit, how)(arm)
        else:
            getattr(self.bandit, how)(arm)
            self.statuses[arm] = {"pause": "paused", "resume": "active", "retire": "retired"}[how]

    @rule()
    def look(self):
        with bookkeeper.unchanged(self.bandit):
            assert sum(self.bandit.mix().values()) == pytest.approx(1.0)
            assert all(price >= 0.0 for price in in_order(self.bandit, self.bandit.price))

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
        self.watch(Bandit.open(self.journal, snapshot_every=self.snapshot_every, clock=self.clock))
        assert self.bandit.recovered is None
        assert state_of(self.bandit) == before

    @rule(back=st.integers(0, 200) | st.integers(0, 10**6), with_snapshot=st.booleans())
    def crash_in_the_middle_of_a_line(self, back, with_snapshot):
        """A journal cut anywhere tells the state after its last whole line, and what would be decided next."""
        content = self.journal.read_bytes()
        cut = len(content) - back % (len(content) + 1)
        torn = self.folder / "torn"
        torn.write_bytes(content[:cut])
        snapshots = [Path(f"{journal}.snapshot") for journal in (self.journal, torn)]
        snapshots[1].unlink(missing_ok=True)
        if with_snapshot and snapshots[0].exists():
            shutil.copy(*snapshots)
        whole = max((offset for offset in self.states if offset <= cut), default=None)
        if whole is None:
            with pytest.raises(UnreadableFile, match="no whole first line"):
                Bandit.open(torn)
            assert torn.read_bytes() == content[:cut]
            return
        with Bandit.open(torn, clock=lambda: -1.0) as reopened:
            assert state_of(reopened) == self.states[whole]
            assert torn.read_bytes() == content[:whole]
            assert (f"{cut - whole} bytes after line" in (reopened.recovered or "")) == (cut > whole)
            if whole in self.answers:
                assert reopened.ask() == self.answers[whole]

    @rule()
    def save_and_load(self):
        """A twin decides alike."""
        with bookkeeper.unchanged(self.bandit):
            self.bandit.save(self.folder / "saved")
        loaded = Bandit.load(self.folder / "saved", clock=lambda: -1.0)
        assert state_of(loaded) == state_of(self.bandit)
        shutil.copy(self.journal, self.folder / "twin")
        with Bandit.open(self.folder / "twin", clock=lambda: -1.0) as replayed:
            assert [replayed.ask() for _ in range(3)] == [loaded.ask() for _ in range(3)]

    # What always holds.

    def seen(self, name):
        """What the bandit shows, exactly."""
        return [Fraction(amount) for amount in in_order(self.bandit, getattr(self.bandit, name))]

    @invariant()
    def nothing_is_overdrawn(self):
        books = self.books
        assert bookkeeper.keeps_the_promise(self.bandit)
        amounts = zip(*map(self.seen, ("credited", "spent", "reserved", "held")), strict=True)
        for d, (credited, spent, reserved, held) in enumerate(amounts):
            income, charged = books.income(d), books.charged(d)
            assert charged + books.reserved(d) <= income
            assert spent >= charged
            assert reserved >= books.reserved(d)
            assert credited - spent <= income - charged
            if books.lines[d].cap is None:
                assert credited <= income
                assert credited + held <= income + books.lines[d].held
            else:
                assert credited - spent <= books.lines[d].cap

    @invariant()
    def nothing_is_lost_but_by_rounding(self):
        books = self.books
        amounts = zip(*map(self.seen, ("credited", "spent", "reserved", "held")), strict=True)
        for d, (credited, spent, reserved, held) in enumerate(amounts):
            line = books.lines[d]
            rounding = Fraction(self.kinds[d].scale) * (2 * len(books.pulls) + len(line.credits) + 3) / 2**31
            assert spent + reserved <= books.charged(d) + books.reserved(d) + rounding
            assert credited >= books.income(d) - rounding
            assert held >= line.held - rounding

    @invariant()
    def all_is_on_the_books(self):
        bandit, books = self.bandit, self.books
        assert bandit.rounds == books.rounds
        assert bandit.pending == books.pending
        assert bandit.expired == books.expired_pulls
        assert bandit.arms == self.statuses

    @invariant()
    def the_policy_sees_what_is_pending(self):
        arm_set = self.bandit._ledger.arm_set
        arm_set.merge()
        waiting = Counter(self.books.pending.values())
        assert arm_set.full.pending.tolist() == [waiting[arm] for arm in arm_set.names]

    @invariant()
    def what_was_told_is_known(self):
        estimates = self.bandit.estimates()
        earned = 0.0
        for arm, known in estimates.items():
            outcomes = self.books.outcomes_of(arm)
            assert known.pulls == len(outcomes)
            if outcomes:
                rewards, costs = zip(*outcomes, strict=True)
                assert known.reward.mean == pytest.approx(sum(rewards) / len(rewards))
                for interval, kind, told in zip(
                    in_order(self.bandit, known.cost), self.kinds, zip(*costs, strict=True), strict=True
                ):
                    assert interval.low <= interval.mean <= interval.high
                    assert interval.mean == pytest.approx(sum(told) / len(told), abs=1e-12 * kind.scale)
                earned += sum(rewards)
        assert self.bandit.earned == pytest.approx(earned)


LIVES = [
    *((name, ONE) for name in POLICIES),
    ("uniform", NAMED),
    *(
        (name, TWO) for name in ("index", "thompson", "primal-dual", "uniform")
    ),  # with a commit, a record, and nothing to learn
]


@pytest.mark.parametrize(
    ("policy", "names", "examples"),
    [
        *(pytest.param("thompson", names, 12, id=f"thompson, {names}, a few") for names in (ONE, TWO)),
        *(pytest.param(name, names, 40, id=f"{name}, {names}", marks=pytest.mark.slow) for name, names in LIVES),
    ],
)
def test_the_books_agree_through_every_life(policy, names, examples):
    run_state_machine_as_test(
        partial(Life, POLICIES[policy], names),
        settings=settings(max_examples=examples, stateful_step_count=50, suppress_health_check=list(HealthCheck)),
    )

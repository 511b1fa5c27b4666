"""Lives of a bandit at random: whatever is asked, told, lost or torn, the books agree and nothing is overdrawn."""

import shutil
import tempfile
from fractions import Fraction
from functools import partial
from pathlib import Path

import bookkeeper
import pytest
from bookkeeper import KNOWN, NEWS, POLICIES, abandon, refused, state_of
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

# max_cost, scale, max_reward
AMOUNTS = [
    (1, None, 1.0),
    (0.2, 1.0, 3.0),
    (7.3, None, 0.1),
    (1e-6, None, 1e6),
    (1e9, None, 1.0),
    ({"a": 0.25, "b": 1.0}, None, 1.0),
    ({"a": 0.0, "b": 1.0}, None, 1.0),
    ({"a": 3e-9, "b": 7.3}, 10.0, 2.5),
]

shares = st.sampled_from([0.0, 1.0, 1 / 3, 1 - 2**-53, 2**-32, 1e-300]) | st.floats(0, 1)
bad_values = st.sampled_from([float("nan"), float("inf"), -1.0, -5e-324, 1e300, "0.5", [0.5], True])
decisions = st.tuples(st.sampled_from(["waiting", "waiting", "any"]), st.integers(0, 1000))
parts = st.sampled_from(["both", "reward", "cost"])


class Life(RuleBasedStateMachine):
    """One bandit with a journal, and the bookkeeper beside it."""

    def __init__(self, policy):
        super().__init__()
        self.policy = policy
        self.folder = Path(tempfile.mkdtemp(prefix="paceline-life-"))
        self.journal = self.folder / "journal"
        self.now = 0.0

    def teardown(self):
        shutil.rmtree(self.folder)

    def clock(self):
        return self.now

    @initialize(
        amounts=st.sampled_from(AMOUNTS),
        budget=st.sampled_from([0.0, 1 / 3, 1.0, 1.5]),
        credits=st.sampled_from([0.0, 2.5, 1000.0]),
        remember=st.sampled_from([0, 1, 3, 50]),
        expires=st.sampled_from([None, None, 4.0]),
        silent=st.booleans(),
        snapshot_every=st.sampled_from([None, None, 1, 7]),
    )
    def begin(self, amounts, budget, credits, remember, expires, silent, snapshot_every):
        max_cost, scale, self.max_reward = amounts
        self.max_costs = dict(max_cost) if isinstance(max_cost, dict) else dict.fromkeys("ab", max_cost)
        self.common_cost = None if isinstance(max_cost, dict) else max_cost
        budget *= max(self.max_costs.values())
        self.scale = max(scale or 0.0, budget, *self.max_costs.values())
        self.expires, self.snapshot_every = expires, snapshot_every
        silence = self.max_reward / 4 if silent else None
        self.books = bookkeeper.Books(budget, remember, silence)
        self.statuses = dict.fromkeys(self.max_costs, "active")
        self.states = {}  # by the size of the journal: what is known after each line
        self.answers = {}  # by the size of the journal: what was asked next, and answered
        self.watch(
            Bandit(
                list(self.max_costs),
                budget,
                self.policy,
                max_cost,
                self.max_reward,
                seed=5,
                scale=self.scale,
                expires=expires,
                silence=silence,
                remember=remember,
                journal=self.journal,
                snapshot_every=snapshot_every,
                clock=self.clock,
            )
        )
        if credits:
            self.credit(credits)

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
        largest = None if decision.arm is None else self.max_costs[decision.arm]
        self.books.ask(decision.id, decision.arm, largest, deadline)
        if decision.arm is not None:
            assert self.statuses[decision.arm] == "active"
        elif "active" not in self.statuses.values():
            assert decision.reason == "no arm is active"
        lines = [offset for offset in self.states if offset >= before]
        self.answers[sorted(lines)[-2]] = decision

    @rule(which=decisions, part=parts, reward=shares, cost=shares)
    def tell(self, which, part, reward, cost):
        self.settle_clock()
        number = self.decision(which)
        pull = self.books.pulls.get(number)
        reward = None if part == "cost" else reward * self.max_reward
        cost = None if part == "reward" else cost * float(pull.largest if pull else self.scale)
        verdict = self.books.on_tell(number, reward, cost)
        self.call(verdict, self.bandit.tell, number, reward, cost)
        if verdict == NEWS:
            self.books.tell(number, reward, cost)

    @rule(which=decisions, part=parts)
    def tell_the_same_again(self, which, part):
        self.settle_clock()
        number = self.decision(which)
        pull = self.books.pulls.get(number)
        if pull is not None and (pull.reward is not None or pull.cost is not None):
            reward = None if part == "cost" else pull.reward
            cost = None if part == "reward" else pull.cost
            verdict = self.books.on_tell(number, reward, cost)
            assert verdict != NEWS
            if verdict == KNOWN:
                with bookkeeper.unchanged(self.bandit):
                    self.bandit.tell(number, reward, cost)
            else:
                self.call(verdict, self.bandit.tell, number, reward, cost)

    @rule(which=decisions, part=parts, bad=bad_values)
    def tell_what_cannot_be(self, which, part, bad):
        self.settle_clock()
        number = self.decision(which)
        pull = self.books.pulls.get(number)
        if pull is not None and pull.fate == bookkeeper.OPEN and self.books.known_to(number):
            reward = 0.0 if part == "cost" else bad
            with refused(self.bandit, InvalidValue):
                self.bandit.tell(number, reward if pull.reward is None else pull.reward, bad)

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
        self.bandit.credit(times * self.scale, over)
        self.books.credit(times * self.scale, over)

    @rule(times=st.sampled_from([1.0, 0.1, 2.5, 2**-40, 1e-300]), over=st.sampled_from([0, 0, 1, 3, 10]))
    def more_money(self, times, over):
        self.credit(times, over)

    @rule(share=st.sampled_from([None, 1.0, 0.01, 0.0]))
    @precondition(lambda self: len(self.statuses) < 6)
    def add(self, share):
        arm = f"arm {len(self.statuses)}"
        if share is None and self.common_cost is None:
            with refused(self.bandit, InvalidValue, "max_cost must have an entry for every arm"):
                self.bandit.add(arm)
            return
        most = self.common_cost if share is None else share * self.scale
        self.bandit.add(arm, None if share is None else most)
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

    @invariant()
    def nothing_is_overdrawn(self):
        assert self.books.owed <= self.books.income
        assert bookkeeper.keeps_the_promise(self.bandit)
        assert Fraction(self.bandit.credited) <= self.books.income
        charged = self.books.owed - self.books.reserved
        assert Fraction(self.bandit.spent) >= charged
        assert Fraction(self.bandit.reserved) >= self.books.reserved
        assert Fraction(self.bandit.credited) + Fraction(self.bandit.held) <= self.books.income + self.books.held

    @invariant()
    def no_money_is_lost_but_by_rounding(self):
        rounding = Fraction(self.scale) * (len(self.books.pulls) + len(self.books.credits) + 2) / 2**31
        assert self.bandit.spent + self.bandit.reserved <= self.books.owed + rounding
        assert self.bandit.credited >= self.books.income - rounding
        assert self.bandit.held >= self.books.held - rounding

    @invariant()
    def all_is_on_the_books(self):
        bandit, books = self.bandit, self.books
        assert bandit.rounds == books.rounds
        assert bandit.pending == books.pending
        assert bandit.expired == books.expired_pulls
        assert bandit.arms == self.statuses

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
                assert known.cost.mean == pytest.approx(sum(costs) / len(costs))
                earned += sum(rewards)
        assert self.bandit.earned == pytest.approx(earned)


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_the_books_agree_through_every_life(policy):
    run_state_machine_as_test(
        partial(Life, policy),
        settings=settings(max_examples=60, stateful_step_count=50, suppress_health_check=list(HealthCheck)),
    )

"""What a user's policy or world may do wrong: one line that names the class and the rule, and books that go on."""

import re
import sys
import threading
from decimal import Decimal

import numba
import numpy as np
import pytest
from interrupt import interrupted
from own_policy import Compiled
from play import THREE_ARMS

import paceline as pl
from paceline.kernels.random import decision_uniform
from paceline.policies import Decision
from paceline.problems.distributions import Beta, Scaled

pytestmark = pytest.mark.slow


def line_of(error: type[Exception], act: object) -> str:
    """The one line of the error that a call ends in."""
    with pytest.raises(error) as refused:
        act()
    (line,) = str(refused.value).splitlines()
    return line


class First(pl.PythonPolicy):
    """The first arm, always."""

    def choose(self, state):
        return 0


class Even(pl.PythonWorld):
    arms, budget = 2, 0.5

    def outcome(self, t, arm, count):
        return 0.5, 0.25


def play(policy: object, problem: object = THREE_ARMS) -> pl.Results:
    return pl.simulate(problem, policy, rounds=20, trials=1)


# Objects that cannot be copied or saved.


class Locked(First):
    def __init__(self):
        self.step, self.lock = 1, threading.Lock()


class LockedWorld(Even):
    def __init__(self):
        self.step, self.lock = 1, threading.Lock()


def test_attribute_that_cannot_be_copied_is_named():
    rule = "must keep only what can be copied for each trial, but its attribute 'lock' cannot: TypeError: .*"
    assert re.fullmatch(f"Locked {rule}", line_of(pl.InvalidPolicy, lambda: play(Locked())))
    assert re.fullmatch(f"LockedWorld {rule}", line_of(pl.InvalidWorld, lambda: play("uniform", LockedWorld())))
    assert re.fullmatch(f"LockedWorld {rule}", line_of(pl.InvalidWorld, lambda: pl.testing.check_world(LockedWorld())))


class Slotted(pl.PythonPolicy):
    """Keeps some of what it learns in slots."""

    __slots__ = ("turn",)

    def reset(self, setting):
        self.turn, self.arms = 0, setting.arms

    def choose(self, state):
        self.turn += 1
        return self.turn % self.arms


def test_what_is_in_slots_is_saved(tmp_path):
    bandits = [pl.Bandit(["a", "b", "c"], 1.0, Slotted()) for _ in range(2)]
    for bandit in bandits:
        for _ in range(4):
            bandit.tell(bandit.ask().id, 0.5, 0.5)
    bandits[0].save(tmp_path / "saved")
    loaded = pl.Bandit.load(tmp_path / "saved", policy=Slotted())
    for _ in range(4):
        assert loaded.ask().arm == bandits[1].ask().arm


# The truth.


class Curious(First):
    def reset(self, setting):
        assert setting.problem is None


def test_truth_is_out_of_reach():
    play(Curious())
    play(Curious(), pl.Problem.beta([0.4, 0.8], {"a": [0.2, 0.6]}, budget={"a": 0.3}))
    best = THREE_ARMS.optimum
    for array in (THREE_ARMS.reward_means, THREE_ARMS.cost_means, best.mix, best.prices, best.gaps):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


# Interrupts.

SLOW = """
import time, paceline as pl

class Slow(pl.PythonPolicy):
    def choose(self, state):
        time.sleep(0.01)
        return 0

pl.simulate(pl.paper.three_arms(), Slow(), rounds=100_000, trials=1, checkpoints=1, progress=True)
"""


def test_interrupt_ends_a_slow_policy():
    code, _, shown = interrupted([sys.executable, "-c", SLOW], patience=10)  # to its end it is a quarter of an hour
    assert code != 0
    assert b"KeyboardInterrupt" in shown


# Choices that are none.


class Wavering(pl.PythonPolicy):
    """Every third choice is none."""

    def reset(self, setting):
        self.turn = 0

    def choose(self, state):
        self.turn += 1
        return 0.5 if self.turn % 3 == 0 else self.turn % 2


def test_bandit_sits_out_a_choice_that_is_none_and_goes_on(tmp_path):
    bandit = pl.Bandit(["a", "b"], 1.0, Wavering(), journal=tmp_path / "journal")
    for number in range(1, 10):
        if number % 3 == 0:
            line = line_of(pl.InvalidPolicy, bandit.ask)
            assert re.match(r"Wavering\.choose \(line \d+\) must give an arm from 0 to 1, or None, got ", line)
        else:
            bandit.tell(bandit.ask().id, 0.5, 1.0)
    assert bandit.spent == 6.0
    bandit.close()
    with pl.Bandit.open(tmp_path / "journal", policy=Wavering()) as reopened:
        assert reopened.spent == 6.0
        assert reopened.ask().arm == "a"  # its tenth choice


def test_choice_that_is_none_ends_a_simulation():
    line = line_of(pl.InvalidPolicy, lambda: play(Wavering()))
    assert line.endswith("must give an arm from 0 to 2, or None, got 0.5")


# check_policy and check_world.


class Stumbling(pl.PythonPolicy):
    def reset(self, setting):
        self.turn = 0

    def choose(self, state):
        self.turn += 1
        return {0: 0}[self.turn // 50]


class Unsaveable(First):
    def reset(self, setting):
        self.rule = lambda: 0


def without_a_tag(params, state):
    return Decision(0, 1)


class Tagless(Compiled):
    choose = staticmethod(without_a_tag)


def with_sums(params, state):
    # A function that makes an array. One that makes none, like min(), may compile: it depends on who compiled it first.
    arm = np.cumsum(state.arms.pulls)[0] * 0
    return Decision(arm, 1, arm)


class Miserly(Compiled):
    allocates = False
    choose = staticmethod(with_sums)


@numba.njit
def drawn(state):
    return decision_uniform(state.clock.seed, state.clock.stream, state.rounds)


def by_lot(params, state):
    return Decision(int(drawn(state) * 2), 1, 0)


class Drawing(Compiled):
    choose = staticmethod(by_lot)


BROKEN = {
    Stumbling: "Stumbling must raise no errors, but: KeyError: 1",
    Unsaveable: r"Unsaveable must play live, but: .* can be pickled to be saved, but its attribute 'rule' cannot: .*",
    Tagless: r"Tagless.choose \(line \d+\) must compile, but: .* missing a required argument: 'tag'",
    Miserly: r"Miserly \(line \d+\) must say allocates = True, or make no arrays .*, got allocates = False",
    Drawing: r"Drawing.choose \(line \d+\) must compile, but: Unknown attribute 'rounds' of type State",
}


@pytest.mark.parametrize("policy", BROKEN, ids=lambda policy: policy.__name__)
def test_broken_policy_is_caught_in_one_line(policy):
    assert re.fullmatch(BROKEN[policy], line_of(pl.InvalidPolicy, lambda: pl.testing.check_policy(policy())))


OTHER_LINES = {
    "start": pl.Problem.beta([0.4, 0.8], [0.2, 0.6], budget=0.3, start=5.0),
    "cap": pl.Problem.beta([0.4, 0.8], [0.2, 0.6], budget=0.3, cap=2.0),
    "largest costs below 1": pl.Problem.beta([0.4, 0.8], [0.2, 0.3], budget=0.3, max_costs=[0.5, 0.6]),
    "refills": pl.Problem([Beta(0.6), Beta(0.8)], [Beta(0.5), Scaled(Beta(0.5), -0.7)], budget=0.2, cap=4.0),
    "two resources": pl.Problem.beta(
        [0.5, 0.9], {"a": [0.3, 0.6], "b": [0.2, 0.8]}, budget={"a": 0.4, "b": 0.0}, start={"b": 90.0}, cap={"a": 3.0}
    ),
}


@pytest.mark.parametrize("problem", OTHER_LINES.values(), ids=OTHER_LINES)
def test_good_policy_passes_on_a_problem_of_the_users_own(problem):
    pl.testing.check_policy(First(), problem)
    pl.testing.check_policy("thompson", problem)


class Breaking(Even):
    def outcome(self, t, arm, count):
        return {0: 0.5}[t // 50], 0.25


class Overdone(Even):
    problem, cap = pl.Problem.beta([0.4, 0.8], [0.2, 0.6], budget=0.3), 3.0


def test_world_that_raises_is_caught_in_one_line():
    line = line_of(pl.InvalidWorld, lambda: pl.testing.check_world(Breaking()))
    assert line == "Breaking: outcome of arm 1 in round 50 must raise no errors, but: KeyError: 1"


def test_world_with_a_problem_and_lines_of_its_own_is_refused():
    line = line_of(pl.InvalidWorld, lambda: play("uniform", Overdone()))
    assert line == "Overdone must leave max_costs, start and cap to its problem, got cap, too"


@pytest.mark.parametrize(
    "cost", [Decimal("NaN"), Decimal("sNaN"), 10**400, np.array([[0.1]]), np.bool_(True)], ids=repr
)
def test_cost_that_is_no_number_is_one_line(cost):
    world = type("Odd", (Even,), {"outcome": lambda self, t, arm, count: (0.5, cost)})
    line = line_of(pl.InvalidWorld, lambda: play("uniform", world()))
    assert re.match(r"Odd: cost of arm \d in 'cost' in round \d must be in \[0, 1\], got ", line)


# What a class declares.

DECLARED = {
    "name": (3, "Odd.name must be a text that is not empty, got 3"),
    "resources": ("x", "Odd.resources must be None or the number of resources that it can do with, got 'x'"),
    "new_memory": (lambda *_: [1.0], "Odd.new_memory must give a NamedTuple of arrays, got [1.0]"),
}


@pytest.mark.parametrize("what", DECLARED)
def test_wrong_declaration_is_one_line(what):
    value, line = DECLARED[what]
    policy = type("Odd", (Compiled,), {"choose": staticmethod(with_sums), what: value})
    assert line_of(pl.InvalidPolicy, lambda: play(policy())) == line

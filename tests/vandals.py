"""A policy that writes to everything it is handed, its well-behaved twin, and a world that counts for itself.

Run as a program, it plays both and prints what the books say; the compiler may be off.
"""

import json
import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from paceline.grafting import simulator_for
from paceline.kernels.budget import UNITS
from paceline.kernels.jit import kernel
from paceline.kernels.page import NO_PAGE
from paceline.kernels.state import Decision, Storage, books_in
from paceline.policies.policy import Policy, Setting
from paceline.policies.python_policy import PythonPolicy
from paceline.problems.distributions import Beta, Scaled
from paceline.problems.problem import Problem
from paceline.simulation.simulate import setting_of
from paceline.worlds.stationary import StationaryWorld
from paceline.worlds.table import TableWorld
from paceline.worlds.world import World

ROUNDS = 400
SEED, STREAM = 7, 5
PROBLEM = Problem(
    [Beta(0.5), Beta(0.9), Beta(0.2)],
    {"money": [Beta(0.3), Beta(0.8), Beta(0.6)], "energy": [Beta(0.5), Beta(0.3), Scaled(Beta(0.5), -0.8)]},
    budget={"money": 0.45, "energy": 0.2},
    start={"energy": 1.5},
    cap={"energy": 4.0},
)

RECORD = np.dtype((np.record, [("turn", np.int64)]))


class Where(NamedTuple):
    """In which of its functions a policy writes to what it is shown."""

    choosing: bool
    committing: bool
    learning: bool


@kernel
def write_everywhere(state: Any, value: float) -> None:
    """Overwrite all there is but what belongs to the policy."""
    number = -12345 if value < 0.0 else 54321
    state.clock.t = number
    state.clock.seed = 99
    state.clock.stream = 98
    for d in range(len(state.resources)):
        state.rate[d] = value
        state.headroom[d] = value
        state.outlook[d] = value
        state.planned[d] = value
        state.cap[d] = value
    arms = state.arms
    for arm in range(arms.pulls.size):
        state.pending[arm] = number
        arms.pulls[arm] = 54321  # not below 0: the engine takes the root of it, for the policy
        arms.reward_sum[arm] = value
        arms.reward_squares[arm] = value
        arms.reward_mean[arm] = value
        arms.width[arm] = value
        for row in range(3):
            known = 54321.0 if row == 0 else value  # the engine divides by the number, for the policy
            arms.reward_known[row, arm] = known
            for d in range(len(state.resources)):
                arms.cost_known[row, arm, d] = known
        state.scratch.rewards[arm] = value
        for d in range(len(state.resources)):
            state.largest[arm, d] = value
            arms.cost_sum[arm, d] = value
            arms.cost_squares[arm, d] = value
            arms.cost_mean[arm, d] = value
            state.scratch.costs[d, arm] = value
        state.scratch.shares[arm] = value
    for row in range(state.scratch.block.shape[0]):
        for column in range(state.scratch.block.shape[1]):
            state.scratch.block[row, column] = value
    for row in range(state.scratch.members.size):
        state.scratch.members[row] = number


def choose(params: Where, state: Any) -> Decision:
    """The arms in turn, whatever may be known of them. The turn is the policy's own, so writing does not change it."""
    turn = state.record.turn
    if params.choosing:
        write_everywhere(state, 1e18 if turn % 2 == 0 else -1e18)
    return Decision(turn % state.arms.pulls.size, 1, turn)


def commit(params: Where, state: Any, decision: Decision) -> None:
    state.record.turn += 1
    if params.committing:
        write_everywhere(state, 1e18 if state.record.turn % 2 == 0 else math.nan)


def learn(params: Where, state: Any, decision: Decision, reward: float, cost: Any) -> None:
    if params.learning:
        write_everywhere(state, -1e18 if state.record.turn % 2 == 0 else math.inf)
        for d in range(len(state.resources)):
            cost[d] = -1e18


@dataclass(frozen=True, kw_only=True)
class Vandal(Policy):
    """Pulls the arms in turn and writes to all that it is shown, in the functions that it is told to."""

    choosing: bool = False
    committing: bool = False
    learning: bool = False

    name = "vandal"
    allocates = False
    reasons = ("headroom below the largest cost", "its turn")
    record = RECORD
    choose = staticmethod(choose)
    commit = staticmethod(commit)
    learn = staticmethod(learn)

    def params(self, setting: Setting) -> Where:
        return Where(self.choosing, self.committing, self.learning)


VANDALS = {
    "choosing": Vandal(choosing=True),
    "committing": Vandal(committing=True),
    "learning": Vandal(learning=True),
    "always": Vandal(choosing=True, committing=True, learning=True),
}


class PythonVandal(PythonPolicy):
    """The same in plain Python, as far as it gets hold of something."""

    def __init__(self, writing: bool = True) -> None:
        self.writing = writing
        self.turn = 0

    def reset(self, setting: Setting) -> None:
        self.turn = 0

    def choose(self, state: Any) -> int:
        self.turn += 1
        if self.writing:
            overwrite(state)
        return (self.turn - 1) % 3

    def learn(self, state: Any, arm: int, reward: float, cost: Any) -> None:
        if self.writing:
            overwrite(state)
            overwrite(cost)


def overwrite(thing: Any) -> None:
    """Write to every array and record that can be found, where it can be written to."""
    if isinstance(thing, np.ndarray):
        if thing.flags.writeable:
            thing[...] = 54321
    elif isinstance(thing, np.record):
        for name in thing.dtype.names:
            try:
                thing[name] = 54321
            except ValueError:
                continue  # not to be written to
    elif isinstance(thing, tuple | list):
        for part in thing:
            overwrite(part)


# A world that does not believe anybody: it counts what it gives and takes.


class Ledger(NamedTuple):
    """The outcomes to come, in the order of the pulls, and what was pulled."""

    rewards: np.ndarray
    costs: np.ndarray
    arms: np.ndarray
    pulls: np.ndarray  # one number


def deal(ledger: Ledger, clock: Any, arm: int, count: int, cost: Any) -> float:
    row = ledger.pulls[0]
    ledger.arms[row] = arm
    ledger.pulls[0] += 1
    for d in range(cost.size):
        cost[d] = ledger.costs[row, arm, d]
    return float(ledger.rewards[row, arm])


class CountingWorld(World):
    """Deals the same outcomes to everybody who pulls the same arms."""

    outcome = staticmethod(deal)

    def __init__(self, rewards: np.ndarray, costs: np.ndarray) -> None:
        rows = len(rewards)
        self.data = Ledger(rewards, costs, np.full(rows, -1), np.zeros(1, np.int64))


def outcomes() -> tuple[np.ndarray, np.ndarray]:
    """Rewards and costs by row and arm; costs are often the largest possible, and the last arm refills energy."""
    generator = np.random.default_rng(1)
    rewards, costs = generator.random((ROUNDS, 3)), generator.random((ROUNDS, 3, 2))
    costs[generator.random(costs.shape) < 0.3] = 1.0
    costs[:, 2, 1] *= -0.8
    return rewards, costs


WORLDS = {
    "counting": lambda: CountingWorld(*outcomes()),
    "stationary": lambda: StationaryWorld(PROBLEM),
    "table": lambda: TableWorld(*outcomes()),
}


def begun(policy: Policy) -> tuple[Any, Storage]:
    setting = setting_of(PROBLEM, ROUNDS)
    return policy.params(setting), policy.new_storage(setting, SEED, STREAM)


def books_of(storage: Storage) -> dict[str, Any]:
    """All that is in the books, as plain numbers."""
    books = books_in(storage)
    found = {name: getattr(books, name).tolist() for name in books._fields if name not in ("tally", "cost")}
    return found | {name: books.tally[name].item() for name in books.tally.dtype.names}


def played(policy: Policy, world: World) -> dict[str, Any]:
    """The books after all rounds in one go."""
    params, storage = begun(policy)
    simulator_for(type(policy), type(world))(params, storage, world.data, NO_PAGE, ROUNDS)
    return books_of(storage)


def watched(policy: Policy) -> dict[str, Any]:
    """The books after all rounds one by one, each held against what the world itself has counted, in fractions."""
    world = CountingWorld(*outcomes())
    ledger = world.data
    params, storage = begun(policy)
    simulate = simulator_for(type(policy), type(world))
    stocks = [Fraction(start) for start in PROBLEM.stocks]
    caps = [None if cap == math.inf else Fraction(cap) for cap in PROBLEM.caps]
    paid, lowest, earned, pulls, seen = [Fraction(0)] * 2, [None, None], 0.0, [0, 0, 0], 0
    for t in range(1, ROUNDS + 1):
        simulate(params, storage, ledger, NO_PAGE, t)
        books = books_in(storage)
        assert books.tally.t == t
        assert ledger.pulls[0] in (seen, seen + 1)
        cost, arm = [Fraction(0)] * 2, None
        if ledger.pulls[0] > seen:
            arm = int(ledger.arms[seen])
            cost = [Fraction(ledger.costs[seen, arm, d]) for d in range(2)]
            earned += float(ledger.rewards[seen, arm])
            pulls[arm] += 1
            seen += 1
        for d in range(2):
            stocks[d] += Fraction(PROBLEM.rates[d])
            stocks[d] = stocks[d] if caps[d] is None else min(stocks[d], caps[d])
            if arm is not None:
                assert stocks[d] >= Fraction(PROBLEM.most[d][arm]) - slack(t), f"round {t}: not covered"
            stocks[d] -= cost[d]
            stocks[d] = stocks[d] if caps[d] is None else min(stocks[d], caps[d])
            paid[d] += cost[d]
            assert stocks[d] >= -slack(t), f"round {t}: the line of resource {d} is crossed"
            assert paid[d] <= Fraction(PROBLEM.stocks[d]) + Fraction(PROBLEM.rates[d]) * t
            assert 0 <= int(books.spent[d]) - paid[d] * UNITS <= seen, "the books do not say what was spent"
            lowest[d] = stocks[d] if lowest[d] is None else min(lowest[d], stocks[d])
            assert abs(Fraction(int(books.lowest[d]), UNITS) - lowest[d]) <= slack(t)
            assert books.lowest[d] >= 0
        assert books.pulls.tolist() == pulls
        assert books.tally.earned == earned
        assert books.tally.idle == t - seen
    return books_of(storage)


def slack(t: int) -> Fraction:
    """What rounding to units may come to."""
    return Fraction(2 * t + 4, UNITS)


if __name__ == "__main__":
    world, *names = sys.argv[1:]
    print(json.dumps([played(VANDALS.get(name, Vandal()), WORLDS[world]()) for name in names]))
    print(json.dumps([watched(VANDALS.get(name, Vandal())) for name in names]))

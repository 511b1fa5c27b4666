"""Running a policy by hand in tests: one round at a time, all at once, or in another process."""

import hashlib
import json
import os
import pickle
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from paceline.calls import calls_with
from paceline.grafting import Calls, bound_rare_calls, puller_for, simulator_for
from paceline.kernels.budget import Books, units_for
from paceline.kernels.jit import plain
from paceline.kernels.page import NO_PAGE
from paceline.kernels.state import SKIP, Decision, State, Storage, books_in, state_in
from paceline.policies import make_policy
from paceline.policies.policy import Policy, Setting
from paceline.problems.distributions import Bernoulli, Beta, Constant, Empirical, Scaled, Shifted
from paceline.problems.problem import Problem
from paceline.simulation.simulate import setting_of
from paceline.worlds.stationary import world_of
from paceline.worlds.world import World

SEED, STREAM = 20240229, 3
LAST_CALL = ("arm", "reason", "tag", "told")

THREE_ARMS = Problem.beta([0.45, 0.7, 0.8], [0.3, 0.75, 0.8], budget=0.5)
EIGHT_ARMS = Problem.beta(
    [0.35, 0.45, 0.52, 0.72, 0.84, 0.9, 0.92, 0.9], [0.25, 0.3, 0.4, 0.6, 0.7, 0.75, 0.8, 0.85], budget=0.5
)
# SUAK classifies an arm of cost gap g after about 74 log t / g^2 pulls: only for costs near 0 and 1 is that soon.
WIDE_GAPS = Problem.beta([0.5, 0.98], [0.02, 0.98], budget=0.5)
EVERY_KIND = Problem(
    rewards=[Bernoulli(0.3), Beta(0.5), Constant(0.2), Empirical([0.1, 0.9, 0.9]), Beta(0.05)],
    costs=[Beta(0.05), Beta(0.6), Bernoulli(0.1), Constant(0.4), Empirical([0.0, 0.25, 1.0])],
    budget=0.3,
)
# Problems of every case, for pages of policies for one resource.
OF_ONE_RESOURCE = {
    "paper, 3 arms": THREE_ARMS,
    "paper, 8 arms": EIGHT_ARMS,
    # Costs of 0 and 1 would bring exact ties between bases in the first rounds, where either answer is right.
    "Bernoulli rewards": Problem(
        [Bernoulli(mean) for mean in (0.3, 0.95, 0.6)], [Beta(mean) for mean in (0.1, 0.9, 0.4)], budget=0.5
    ),
    "budget is not dyadic": Problem.beta([0.3, 0.8, 0.7], [0.1, 0.9, 0.5], budget=0.3),
    "case 1": Problem.beta([0.3, 0.6, 0.5], [0.05, 0.3, 0.6], budget=0.7),
    "case 2": Problem.beta([0.9, 0.5], [0.8, 0.7], budget=0.3),
}
# For policies that can do with several resources: three rates, one arm that refills, a start stock and a cap.
SEVERAL = Problem(
    rewards=[Bernoulli(0.3), Beta(0.7), Beta(0.5), Constant(0.05)],
    costs={
        "money": [Beta(0.2), Beta(0.6), Bernoulli(0.4), Constant(0.1)],
        "energy": [Beta(0.3), Scaled(Beta(0.5), 0.8), Beta(0.1), Shifted(Scaled(Beta(0.5), 0.3), -0.6)],
        "time": [Constant(0.5), Beta(0.4), Empirical([0.0, 0.75]), Bernoulli(0.05)],
    },
    budget={"money": 0.35, "energy": 0.05, "time": 0.4},
    start={"energy": 2.5, "time": 0.5},
    cap={"energy": 3.0},
)
# A problem of Kumar and Kleinberg's data in our form: the second arm refills both resources.
REFILLED = Problem(
    rewards=[Beta(0.8), Beta(0.1)],
    costs={
        "a": [Beta(0.3), Shifted(Scaled(Beta(0.5), 0.1), -0.1)],
        "b": [Beta(0.2), Shifted(Scaled(Beta(0.5), 0.24), -0.24)],
    },
    budget={"a": 0.1, "b": 0.08},
)


@dataclass(frozen=True, eq=False)
class Game:
    """A policy about to play a problem, or in the middle of it."""

    policy: Policy
    setting: Setting
    params: Any
    storage: Storage
    world: World

    @cached_property
    def books(self) -> Books:
        """What only the engine may change."""
        return books_in(self.storage)

    @cached_property
    def state(self) -> State:
        """What the policy is shown."""
        return state_in(self.storage)

    @cached_property
    def calls(self) -> Calls:
        """As a live bandit has them, but with the parameters of this game: some policies cannot be had without them."""
        return calls_with(self.policy, self.params, self.storage)

    def ask(self) -> Decision:
        """One decision."""
        return Decision(*self.calls.ask(self.params, self.storage))

    def tell(self, decision: Decision, reward: float, costs: tuple[float, ...]) -> None:
        """The outcome of a pull, at any later time: its largest costs are released, its true ones charged."""
        limits = self.storage.limits[decision.arm]
        released, charged = tuple(limits.tolist()), tuple(plain(units_for)(cost) for cost in costs)
        self.calls.tell(self.params, self.storage, *decision, reward, costs, released, charged)

    def on(self, storage: Storage) -> "Game":
        """The same game, going on from there."""
        return Game(self.policy, self.setting, self.params, storage, self.world)


def begin(policy: Policy, problem: Problem, horizon: int = 50_000, seed: int = SEED, stream: int = STREAM) -> Game:
    """The game before its first round."""
    setting = setting_of(problem, horizon)
    storage = policy.new_storage(setting, seed, stream)
    return Game(policy, setting, policy.params(setting), storage, world_of(problem))


def is_pull(state: State, arm: int) -> bool:
    """Whether an arm is a real one, neither a skip nor the null arm."""
    return arm not in (SKIP, state.arms.pulls.size)


def one_round(game: Game) -> tuple[int, int, int, float, tuple[float, ...]]:
    """Ask, and tell the outcome that the world has in store: (arm, reason, tag, reward, costs)."""
    decision = game.ask()
    costs = np.zeros(game.setting.resources)
    if not is_pull(game.state, decision.arm):
        return *decision, 0.0, tuple(costs.tolist())
    count = game.books.pulls[decision.arm]
    reward = puller_for(type(game.world))(game.world.data, game.storage.clock, decision.arm, count, costs)
    game.tell(decision, reward, tuple(costs.tolist()))
    return *decision, reward, tuple(costs.tolist())


class Rounds(NamedTuple):
    """Rounds as they happened, one entry per round."""

    arm: np.ndarray
    reason: np.ndarray
    tag: np.ndarray
    reward: np.ndarray
    costs: np.ndarray  # a column per resource

    @property
    def cost(self) -> np.ndarray:
        """The costs where there is one resource."""
        assert self.costs.shape[1] == 1
        return self.costs[:, 0]


def columns_of(rows: list[tuple], kinds: tuple[type, ...]) -> list[np.ndarray]:
    return [np.array(column, kind) for column, kind in zip(zip(*rows, strict=True), kinds, strict=True)]


def ask_and_tell(game: Game, rounds: int) -> Rounds:
    """Play that many rounds one by one and note them."""
    return Rounds(*columns_of([one_round(game) for _ in range(rounds)], (int, int, int, float, float)))


def follow(kind: type[Policy], game: Game, rounds: Rounds) -> None:
    """Take in rounds that were played earlier, as a journal tells them, with the functions of this kind of policy."""
    begin, params, storage = bound_rare_calls(kind).follow, game.params, game.storage
    for arm, reason, tag, reward, costs in zip(*(column.tolist() for column in rounds), strict=True):
        begin(params, storage, arm, reason, tag)
        if is_pull(game.state, arm):
            game.tell(Decision(arm, reason, tag), reward, tuple(costs))


def simulate(game: Game, until: int) -> None:
    """Play on in one go until round ``until`` is settled."""
    simulator_for(type(game.policy), type(game.world))(game.params, game.storage, game.world.data, NO_PAGE, until)


SCRATCH_NUMBERS = [4, 5]  # rows of storage.numbers that are scratch


def contents(storage: Storage) -> list[bytes]:
    """All bits of books and state but the scratch, which carries nothing from round to round.

    Nor is the last call of a live bandit compared, which the books keep for interrupts: a simulation has none.
    """
    arrays = storage._asdict()
    arrays["tally"] = storage.tally.copy()
    for name in LAST_CALL:
        arrays["tally"][name] = 0
    for scratch in ("resources", "scratch", "members", "program"):
        del arrays[scratch]
    arrays["numbers"] = np.delete(arrays["numbers"], SCRATCH_NUMBERS, axis=0)
    memory = arrays.pop("memory")
    return [np.ascontiguousarray(array).tobytes() for array in (*arrays.values(), *memory)]


def digest(storage: Storage) -> str:
    """A digest of books and state."""
    return hashlib.sha256(b"".join(contents(storage))).hexdigest()


# What to play: the name of a policy, a problem, a storage to go on from (or None for a new one), and how many rounds.
Part = tuple[str, Problem, Storage | None, int]


def digests_here(parts: list[Part]) -> list[str]:
    """The digests of the storages after playing each part in this process. The given storages stay as they are."""
    found = []
    for name, problem, storage, rounds in parts:
        game = begin(make_policy(name), problem)
        if storage is None:
            simulate(game, rounds)
        else:
            game = game.on(pickle.loads(pickle.dumps(storage)))
            ask_and_tell(game, rounds)
        found.append(digest(game.storage))
    return found


def digests_elsewhere(parts: list[Part], **environment: str) -> list[str]:
    """The same in a new process, with warnings as errors."""
    ran = subprocess.run(
        [sys.executable, "-W", "error", __file__],
        input=pickle.dumps(parts),
        capture_output=True,
        check=False,
        env={**os.environ, **environment},
    )
    assert ran.returncode == 0, ran.stderr.decode()
    return json.loads(ran.stdout)


if __name__ == "__main__":
    print(json.dumps(digests_here(pickle.load(sys.stdin.buffer))))

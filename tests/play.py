"""Running a policy by hand in tests: one round at a time, all at once, or in another process."""

import hashlib
import json
import os
import pickle
import subprocess
import sys
from typing import NamedTuple

import numpy as np

from paceline.engine import Engine, Log, engine_for
from paceline.kernels.budget import units_for
from paceline.policies import make_policy
from paceline.policies.policy import SKIP, Policy, Setting, State
from paceline.problems.distributions import Bernoulli, Beta, Constant, Empirical
from paceline.problems.problem import Problem
from paceline.worlds.stationary import World, outcome, world_of

SEED, STREAM = 20240229, 3

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


class Game(NamedTuple):
    """A policy about to play a problem."""

    engine: Engine
    params: tuple
    state: State
    world: World


def begin(policy: Policy, problem: Problem, horizon: int = 50_000, seed: int = SEED, stream: int = STREAM) -> Game:
    """The game before its first round."""
    setting = Setting(
        arms=problem.arms, budget=problem.budget, rounds=horizon, problem=problem, max_costs=problem.max_costs
    )
    state = policy.new_state(setting, seed, stream)
    return Game(engine_for(type(policy)), policy.params(setting), state, world_of(problem))


def is_pull(state: State, arm: int) -> bool:
    """Whether an arm is a real one, neither a skip nor the null arm."""
    return arm not in (SKIP, state.arms.pulls.size)


def one_round(game: Game) -> tuple[int, int, int, float, float]:
    """Ask, and tell the outcome that the world has in store: (arm, event, partner, reward, cost)."""
    engine, params, state, world = game
    arm, event, partner = engine.ask(params, state)
    if not is_pull(state, arm):
        return arm, event, partner, 0.0, 0.0
    clock = state.clock
    with np.errstate(over="ignore"):  # random words wrap around, which NumPy mentions when the compiler is off
        reward, cost = outcome(world, clock.seed, clock.stream, arm, state.arms.pulls[arm])
    engine.tell(params, state, arm, event, partner, reward, cost)
    return arm, event, partner, reward, cost


class Rounds(NamedTuple):
    """Rounds as they happened, one entry per round."""

    arm: np.ndarray
    event: np.ndarray
    partner: np.ndarray
    reward: np.ndarray
    cost: np.ndarray


def columns_of(rows: list[tuple], kinds: tuple[type, ...]) -> list[np.ndarray]:
    return [np.array(column, kind) for column, kind in zip(zip(*rows, strict=True), kinds, strict=True)]


def ask_and_tell(game: Game, rounds: int) -> Rounds:
    """Play that many rounds one by one and note them."""
    return Rounds(*columns_of([one_round(game) for _ in range(rounds)], (int, int, int, float, float)))


def log_of(game: Game, rounds: Rounds) -> Log:
    """The same for `Engine.replay`: a row for each decision, and one for each outcome."""
    rows = []
    for arm, event, partner, reward, cost in zip(*rounds, strict=True):
        rows.append((0, arm, event, partner, 0.0, 0.0, 0, 0))
        if is_pull(game.state, arm):
            units = game.state.limits.units[arm], units_for(cost)
            rows.append((1, arm, event, partner, reward, cost, *units))
    return Log(*columns_of(rows, (int, int, int, int, float, float, int, int)))


def simulate(game: Game, until: int) -> None:
    """Play on in one go until round ``until`` is settled."""
    game.engine.simulate(game.params, game.state, game.world, until)


def contents(state: State) -> list[bytes]:
    """All bits of a state but the scratch, which carries nothing from round to round."""
    return [
        state.clock.tobytes(),
        *(array.tobytes() for array in state.arms),
        state.memory.tobytes(),
        state.table.tobytes(),
    ]


def digest(state: State) -> str:
    """A digest of a state."""
    return hashlib.sha256(b"".join(contents(state))).hexdigest()


# What to play: the name of a policy, a problem, a state to go on from (or None for a new one), and how many rounds.
Part = tuple[str, Problem, State | None, int]


def digests_here(parts: list[Part]) -> list[str]:
    """The digests of the states after playing each part in this process. The given states stay as they are."""
    found = []
    for name, problem, state, rounds in parts:
        game = begin(make_policy(name), problem)
        if state is None:
            simulate(game, rounds)
        else:
            game = game._replace(state=pickle.loads(pickle.dumps(state)))
            ask_and_tell(game, rounds)
        found.append(digest(game.state))
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

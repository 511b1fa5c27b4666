"""The environment: an agent of reinforcement learning in the place of a policy."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from paceline import checks
from paceline.calls import carrier_for
from paceline.engine import Choice
from paceline.extras import extra
from paceline.game import Outcome, at_once, settler
from paceline.kernels.state import State, Storage, books_in, state_in
from paceline.policies.python_policy import CARRIED, CHOSEN, Carrier
from paceline.problems.problem import Problem
from paceline.simulation.simulate import lines_of, rules_of, setting_of, world_for
from paceline.worlds.python_world import PythonWorld

with extra("gym", "pl.gym"):
    import gymnasium
    from gymnasium import spaces

Observation = dict[str, Any]  # arrays

SLACK = 1.0  # above the line, for rounding


class BudgetEnv(gymnasium.Env[Observation, np.int64]):
    """A problem, or a world in plain Python, as an environment of gymnasium. An episode is a trial of so many rounds.

    An action is an arm, or the number of arms K for the null arm. An arm whose largest cost is above the headroom is
    refused by the guard: the round brings nothing, costs nothing, and ``info["arm"]`` is -1. The line holds on every
    path, whatever the agent does. A step pays the reward of its pull; ``info`` has the arm, the reason, and the cost.

    An observation is what a policy is shown before it chooses: ``round``, ``rate`` and ``headroom`` by resource, the
    ``largest`` cost of each arm, and of each arm ``pulls``, ``reward_sum`` and ``cost_sum`` so far. It is a dictionary;
    gymnasium's FlattenObservation makes one array of it.

    ``reset(seed=s)`` begins trial 0 of that seed, each further ``reset()`` the next one, and
    ``reset(options={"stream": n})`` trial n: the draws are those of `simulate` with that seed in that trial. Until a
    seed is given it is 0. An episode has no end of its own, it is truncated after ``rounds``.

    >>> import paceline as pl
    >>> env = pl.gym.BudgetEnv(pl.paper.three_arms(), rounds=100)
    >>> seen, _ = env.reset(seed=7)
    >>> env.step(1)[1:]  # with half a unit in stock nothing that may cost 1 can be paid for
    (0.0, False, False, {'arm': -1, 'reason': 'headroom below the largest cost', 'cost': 0.0})
    >>> seen, reward, _, _, info = env.step(1)
    >>> (reward, info["cost"]) == pl.paper.three_arms().sample(seed=7).pull(1)
    True
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  # as gymnasium declares it

    def __init__(self, problem: Problem | PythonWorld, rounds: int = 10_000) -> None:
        self.problem, self.world = lines_of(problem)
        self.rounds = checks.rounds("rounds", rounds)
        self.action_space = spaces.Discrete(self.problem.arms + 1)
        self.observation_space = space_of(self.problem, self.rounds)
        self.seed, self.stream = 0, -1
        self.round: Round | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode."""
        stream = 0 if seed is not None else self.stream + 1
        stream = checks.whole("stream", (options or {}).get("stream", stream), 0, 2**64 - 1)
        self.seed, self.stream = self.seed if seed is None else checks.seed(seed), stream
        super().reset(seed=seed)
        self.round = Round(self.problem, self.world, self.rounds, self.seed, stream)
        return self.round.observation(), {"seed": self.seed, "stream": stream}

    def step(self, action: np.int64 | int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Play a round."""
        arm = checks.whole("action", np.asarray(action).item(), 0, self.problem.arms)
        if self.round is None or self.round.number > self.rounds:
            raise gymnasium.error.ResetNeeded(f"an episode has {self.rounds} rounds and begins with reset")
        (pulled, reason, _), (reward, costs) = self.round.play(arm)
        info = {"arm": pulled, "reason": Carrier.reasons[reason], "cost": self.problem.named(costs)}
        return self.round.observation(), reward, False, self.round.number > self.rounds, info


class Round:
    """The round that is open: the agent is asked before it, as a policy is, and the guard stands between them."""

    def __init__(self, problem: Problem, world: PythonWorld | None, rounds: int, seed: int, stream: int) -> None:
        setting = setting_of(problem, rounds)
        self.storage: Storage = Carrier().new_storage(setting, seed, stream)
        self.state: State = state_in(self.storage)
        self.open, self.take, tell = carrier_for(setting.resources, rules_of(problem))
        course = at_once(books_in(self.storage), partial(tell, CARRIED, self.storage))
        self.settle: Callable[[Choice], Outcome | None] = settler(
            self.storage, world_for(problem, world, seed, stream), course
        )
        self.open(self.storage)

    @property
    def number(self) -> int:
        """Of this round, from 1."""
        return int(self.state.clock.t)

    def play(self, arm: int) -> tuple[Choice, Outcome]:
        """What is done, and what it brings; then the next round is open."""
        choice = self.take(CARRIED, self.storage, arm, CHOSEN)
        outcome = self.settle(choice)
        assert outcome is not None  # only a log comes to an end
        self.open(self.storage)
        return choice, outcome

    def observation(self) -> Observation:
        """What a policy would be shown now, in copies."""
        state = self.state
        shown = {
            "rate": state.rate,
            "headroom": state.headroom,
            "largest": state.largest,
            "pulls": state.arms.pulls,
            "reward_sum": state.arms.reward_sum,
            "cost_sum": state.arms.cost_sum,
        }
        return {"round": np.array([self.number]), **{name: array.copy() for name, array in shown.items()}}


def space_of(problem: Problem, rounds: int) -> "spaces.Dict":
    """The space of the observations of so many rounds."""
    count, arms = len(problem.resources), problem.arms
    refilled = np.array(problem.refills) * rounds
    income = np.array(problem.stocks) + (rounds + 1) * np.array(problem.rates) + refilled
    most = np.minimum(income, problem.caps) + SLACK

    def box(low: Any, high: Any, shape: tuple[int, ...], kind: Any = np.float64) -> spaces.Box:
        return spaces.Box(
            np.broadcast_to(low, shape).astype(kind), np.broadcast_to(high, shape).astype(kind), shape, kind
        )

    return spaces.Dict(
        {
            "round": box(1, rounds + 1, (1,), np.int64),
            "rate": box(0.0, 1.0, (count,)),
            "headroom": box(0.0, most, (count,)),
            "largest": box(0.0, 1.0, (arms, count)),
            "pulls": box(0, rounds, (arms,), np.int64),
            "reward_sum": box(0.0, rounds, (arms,)),
            "cost_sum": box(-refilled, rounds, (arms, count)),
        }
    )

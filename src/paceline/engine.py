"""ask, tell, simulate and replay: one text for every policy.

The functions from `sit_out` to `replay` are templates. They call ``choose`` and ``learn``, which
stand here for the two functions of a policy: `engine_for` puts the real ones in their place and compiles the result
(see jit.py). So the simulator, the live object and the replay of a log run the very same lines.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paceline.kernels.budget import close_round, covers, open_round, reserve, settle, units_for
from paceline.kernels.estimates import observe
from paceline.kernels.jit import bind, graft, kernel
from paceline.policies.policy import GUARD, SKIP, Policy, State
from paceline.worlds.stationary import World, outcome

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def choose(params: Any, state: State) -> tuple[int, int, int]:
    """Stands for the policy's function of that name."""
    raise NotImplementedError


def learn(params: Any, state: State, arm: int, event: int, partner: int, reward: float, cost: float) -> None:
    """Stands for the policy's function of that name."""
    raise NotImplementedError


@kernel
def is_pull(state: State, arm: int) -> bool:
    """Whether a choice is an arm, not the null arm or a skip."""
    return 0 <= arm < state.arms.pulls.size


def sit_out(params: Any, state: State, arm: int, event: int, partner: int) -> None:
    """Settle a round without a pull."""
    clock = state.clock
    clock.idle += 1
    if arm == SKIP:
        clock.skips += 1
    learn(params, state, arm, event, partner, 0.0, 0.0)
    close_round(clock)


def ask(params: Any, state: State) -> tuple[int, int, int]:
    """Begin a round and decide. A round without a pull is settled at once; a pull waits for `tell`, its largest cost
    reserved. Of a pull that the guard refuses, the arm that was wanted is the partner.
    """
    arm, event, partner = SKIP, GUARD, SKIP
    if open_round(state.clock):
        arm, event, partner = choose(params, state)
        if is_pull(state, arm) and not covers(state.clock, state.limits, arm):
            arm, event, partner = SKIP, GUARD, arm
    begin(params, state, arm, event, partner)
    return arm, event, partner


def begin(params: Any, state: State, arm: int, event: int, partner: int) -> None:
    """Set the largest cost of a pull aside, or settle a round without one."""
    if is_pull(state, arm):
        reserve(state.clock, state.limits, arm)
    else:
        sit_out(params, state, arm, event, partner)


def take_in(
    params: Any,
    state: State,
    arm: int,
    event: int,
    partner: int,
    reward: float,
    cost: float,
    released: int,
    charged: int,
) -> None:
    """Settle a pull: release its reservation, charge its cost, remember its outcome, let the policy learn."""
    clock = state.clock
    settle(clock, released, charged)
    clock.earned += reward
    observe(state.arms, arm, reward, cost)
    learn(params, state, arm, event, partner, reward, cost)
    close_round(clock)


def tell(params: Any, state: State, arm: int, event: int, partner: int, reward: float, cost: float) -> None:
    """Settle a pull with its outcome on the scale of [0, 1]."""
    take_in(params, state, arm, event, partner, reward, cost, state.limits.units[arm], units_for(cost))


def simulate(params: Any, state: State, world: World, until: int) -> None:
    """Play against a world until round ``until`` is settled; may be called again to go on."""
    clock, arms = state.clock, state.arms
    while clock.t < until:
        arm, event, partner = ask(params, state)
        if is_pull(state, arm):
            reward, cost = outcome(world, clock.seed, clock.stream, arm, arms.pulls[arm])
            tell(params, state, arm, event, partner, reward, cost)


def play_table(params: Any, state: State, rewards: Floats, costs: Floats) -> None:
    """Play a table that knows the outcome of every arm in every round: row t is round t, a column is an arm."""
    for row in range(rewards.shape[0]):
        arm, event, partner = ask(params, state)
        if is_pull(state, arm):
            tell(params, state, arm, event, partner, rewards[row, arm], costs[row, arm])


def sift(params: Any, state: State, shown: Ints, rewards: Floats, costs: Floats, most_rounds: int) -> None:
    """Play rows that know the outcome of one arm each: a pull passes over rows until one shows its arm.

    It ends after ``most_rounds``, or with a pull for which no row is left; that round stays open.
    """
    clock = state.clock
    row = 0
    while clock.t < most_rounds:
        arm, event, partner = ask(params, state)
        if is_pull(state, arm):
            while row < shown.size and shown[row] != arm:
                row += 1
            if row == shown.size:
                break
            tell(params, state, arm, event, partner, rewards[row], costs[row])
            row += 1


def replay(params: Any, state: State, log: "Log") -> None:
    """Take in what was logged, without deciding anew: the state afterwards is the one that wrote the log."""
    for row in range(log.arm.size):
        arm, event, partner = log.arm[row], log.event[row], log.partner[row]
        if log.told[row]:
            released, charged = log.released[row], log.charged[row]
            take_in(params, state, arm, event, partner, log.reward[row], log.cost[row], released, charged)
        else:
            open_round(state.clock)
            begin(params, state, arm, event, partner)


class Log(NamedTuple):
    """What happened, one row per decision or outcome, in the order in which it became known."""

    told: Ints  # 1 for an outcome, 0 for a decision, which has no entries beyond the partner
    arm: Ints
    event: Ints
    partner: Ints
    reward: Floats
    cost: Floats
    released: Ints  # units of money
    charged: Ints


class Engine(NamedTuple):
    """The compiled functions of one policy."""

    ask: Callable[[Any, State], tuple[int, int, int]]
    tell: Callable[[Any, State, int, int, int, float, float], None]
    simulate: Callable[[Any, State, World, int], None]
    play_table: Callable[[Any, State, Floats, Floats], None]
    sift: Callable[[Any, State, Ints, Floats, Floats, int], None]
    replay: Callable[[Any, State, Log], None]


Parts = dict[str, Callable[..., Any]]


@cache
def parts_of(policy: type[Policy]) -> tuple[str, Parts]:
    """What `jit.bind` needs to make a function of a policy out of a template: a name, and what the templates name."""
    parts: Parts = {"choose": kernel(policy.choose), "learn": kernel(policy.learn)}
    for template in (sit_out, begin, ask, take_in, tell):
        parts[template.__name__] = graft(template, **parts)
    return f"{policy.__module__}.{policy.__qualname__}", parts


@cache
def engine_for(policy: type[Policy]) -> Engine:
    """The engine of a policy. A function is compiled when it is first called, once per machine."""
    name, parts = parts_of(policy)  # type: ignore[arg-type]  # mypy takes the class for an object
    return Engine(
        ask=bind(ask, name, **parts),
        tell=bind(tell, name, **parts),
        simulate=bind(simulate, name, **parts),
        play_table=bind(play_table, name, **parts),
        sift=bind(sift, name, **parts),
        replay=bind(replay, name, **parts),
    )

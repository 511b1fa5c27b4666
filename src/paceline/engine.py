"""ask, tell, simulate and replay: one text for every policy.

The functions ask, tell, take_in, sit_out, simulate and replay are templates. They call ``choose`` and ``learn``, which
stand here for the two functions of a policy: `engine_for` puts the real ones in their place and compiles the result
(see jit.py). So the simulator, the live object and the replay of a log run the very same lines.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paceline.estimates import observe
from paceline.guard import close_round, covers, open_round, reserve, settle, units_for
from paceline.jit import bind, graft, kernel
from paceline.outcomes import World, outcome
from paceline.policies.policy import GUARD, SKIP, Policy, State

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
    if is_pull(state, arm):
        reserve(state.clock, state.limits, arm)
    else:
        sit_out(params, state, arm, event, partner)
    return arm, event, partner


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


def replay(params: Any, state: State, log: "Log") -> None:
    """Take in rounds as they were logged, without deciding anew: the state afterwards is the one that wrote the log."""
    for row in range(log.arm.size):
        open_round(state.clock)
        arm, event, partner = log.arm[row], log.event[row], log.partner[row]
        if is_pull(state, arm):
            reserve(state.clock, state.limits, arm)
            tell(params, state, arm, event, partner, log.reward[row], log.cost[row])
        else:
            sit_out(params, state, arm, event, partner)


class Log(NamedTuple):
    """Rounds as they happened, one row per round."""

    arm: Ints
    event: Ints
    partner: Ints
    reward: Floats
    cost: Floats


class Engine(NamedTuple):
    """The compiled functions of one policy."""

    ask: Callable[[Any, State], tuple[int, int, int]]
    tell: Callable[[Any, State, int, int, int, float, float], None]
    take_in: Callable[[Any, State, int, int, int, float, float, int, int], None]
    simulate: Callable[[Any, State, World, int], None]
    replay: Callable[[Any, State, Log], None]


@cache
def engine_for(policy: type[Policy]) -> Engine:
    """The engine of a policy. A function is compiled when it is first called, once per machine."""
    parts: dict[str, Callable[..., Any]] = {"choose": kernel(policy.choose), "learn": kernel(policy.learn)}
    for template in (sit_out, ask, take_in, tell):
        parts[template.__name__] = graft(template, **parts)
    name = f"{policy.__module__}.{policy.__qualname__}"
    return Engine(
        ask=bind(ask, name, **parts),
        tell=bind(tell, name, **parts),
        take_in=bind(take_in, name, **parts),
        simulate=bind(simulate, name, **parts),
        replay=bind(replay, name, **parts),
    )

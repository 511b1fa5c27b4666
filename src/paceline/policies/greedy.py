"""Greedy: the best base of the means so far, paced, and nothing else. A baseline that everybody should beat."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from paceline.kernels.estimates import first_unpulled
from paceline.kernels.hull import best_mix
from paceline.kernels.jit import kernel
from paceline.kernels.state import Decision, State
from paceline.policies.pacing import REASONS, fill_means, pace
from paceline.policies.policy import Policy, Setting
from paceline.policies.steering import BaseMemory, commit_base, learn_base, no_base, renew_base, steer_base

FIRST_PULL = len(REASONS)


class Params(NamedTuple):
    """Nothing; kernels take a non-empty tuple."""

    nothing: float


@kernel
def play_means(state: State, resources: tuple[int, ...]) -> Decision:
    """The arm that is due under the best base of the empirical means."""
    fill_means(state)
    if len(resources) == 1:
        expensive, cheap, _ = best_mix(state.scratch.rewards, state.scratch.costs[0], state.rate[0])
        return pace(state, expensive, cheap)
    return steer_base(state, state.memory.spreads)


def choose(params: Params, state: State) -> Decision:
    """Each arm once, then the base of the means."""
    untried = first_unpulled(state.arms)
    if untried >= 0:
        return Decision(untried, FIRST_PULL, untried)
    return play_means(state, state.resources)


@dataclass(frozen=True, kw_only=True)
class GreedyPacer(Policy):
    """Pull each arm once, then trust the means: the best base of the linear program on them, paced by the headroom.

    It learns only of the arms that it plays, so it can stay with a wrong base for ever: its regret is linear with a
    positive probability. Over few rounds, and where there are many arms, that may still be the best there is. It stands
    in tables as a simple baseline.

    Guarantee: the anytime constraint, by the guard, on every path.

    >>> GreedyPacer()
    GreedyPacer()
    """

    name = "greedy"
    allocates, tag_is_arm = False, True
    reasons = (*REASONS, "first pull of an arm")
    choose = staticmethod(choose)
    commit = staticmethod(commit_base)
    adds_up = True
    learn = staticmethod(learn_base)
    renew = staticmethod(renew_base)

    def params(self, setting: Setting) -> tuple[Any, ...]:
        return Params(0.0)

    def new_memory(self, arms: int, resources: int) -> BaseMemory:
        return no_base(arms, resources)

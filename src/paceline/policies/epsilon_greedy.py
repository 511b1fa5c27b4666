"""Epsilon-greedy: the greedy base, and now and then any arm, ever more seldom. The simplest policy that learns."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from paceline import checks
from paceline.kernels.estimates import first_unpulled
from paceline.kernels.random import DECISION, block, half_uniforms
from paceline.kernels.state import Decision, State
from paceline.policies.greedy import FIRST_PULL, play_means
from paceline.policies.pacing import REASONS
from paceline.policies.policy import Policy, Setting
from paceline.policies.steering import BaseMemory, commit_base, learn_base, no_base, renew_base

ANY_ARM = len(REASONS) + 1
COIN = np.uint64(0)


class Params(NamedTuple):
    """Numbers for the kernels."""

    c: float


def choose(params: Params, state: State) -> Decision:
    """Each arm once; then any arm with probability  c K / t,  else the base of the means."""
    clock, count = state.clock, state.arms.pulls.size
    untried = first_unpulled(state.arms)
    if untried >= 0:
        return Decision(untried, FIRST_PULL, untried)
    word, _, _, _ = block(clock.seed, clock.stream, np.uint64(clock.t), np.uint64(0), DECISION, COIN)
    coin, place = half_uniforms(word)
    if coin < params.c * count / clock.t:
        arm = min(int(place * count), count - 1)
        return Decision(arm, ANY_ARM, arm)
    return play_means(state, state.resources)


@dataclass(frozen=True, kw_only=True)
class EpsilonGreedyPacer(Policy):
    """`GreedyPacer`, but with probability  min(1, c K / t)  in round t any arm, each equally likely.

    With c large enough for the problem the regret is logarithmic, c K log T at least (Auer, Cesa-Bianchi, Fischer,
    "Finite-time analysis of the multiarmed bandit problem", 2002, for plain bandits); nobody knows c beforehand. It
    stands in tables as a simple baseline.

    Guarantee: the anytime constraint, by the guard, on every path.

    >>> EpsilonGreedyPacer()
    EpsilonGreedyPacer(c=10.0)
    """

    c: float = 10.0

    name = "epsilon-greedy"
    allocates, tag_is_arm = False, True
    reasons = (*REASONS, "first pull of an arm", "any arm, by chance")
    choose = staticmethod(choose)
    commit = staticmethod(commit_base)
    adds_up = True
    learn = staticmethod(learn_base)
    renew = staticmethod(renew_base)

    def __post_init__(self) -> None:
        checks.real("c of epsilon-greedy", self.c, 0)

    def params(self, setting: Setting) -> tuple[Any, ...]:
        return Params(float(self.c))

    def new_memory(self, arms: int, resources: int) -> BaseMemory:
        return no_base(arms, resources)

"""What is known of arms as sums that add up: those of several bandits are those of one that had seen it all."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paceline.kernels.estimates import NUMBER, SQUARES, TOTAL
from paceline.kernels.state import Storage, state_in
from paceline.policies.policy import Policy

Floats = npt.NDArray[np.float64]


class Sums(NamedTuple):
    """What is known of all arms, by slot, on the scale of the policy."""

    pulls: Floats  # (K,)
    rewards: Floats  # (2, K) sum and sum of squares
    costs: Floats  # (2, K, D)
    own: dict[str, Floats]  # (K,) each: what the policy sums up besides

    def plus(self, other: "Sums", sign: int = 1) -> "Sums":
        """With what another has, or without it."""
        own = {name: values + sign * other.own.get(name, 0.0) for name, values in self.own.items()}
        return Sums(
            self.pulls + sign * other.pulls, self.rewards + sign * other.rewards, self.costs + sign * other.costs, own
        )

    def with_arms(self, count: int) -> "Sums":
        """With more arms, of which nothing is known."""
        more = count - self.pulls.size
        own = {name: np.append(values, np.zeros(more)) for name, values in self.own.items()}
        rewards, costs = np.pad(self.rewards, ((0, 0), (0, more))), np.pad(self.costs, ((0, 0), (0, more), (0, 0)))
        return Sums(np.append(self.pulls, np.zeros(more)), rewards, costs, own)


def no_sums(policy: Policy, arms: int, resources: int) -> Sums:
    """Of arms of which nothing is known."""
    own = {name: np.zeros(arms) for name in policy.own_sums(resources)}
    return Sums(np.zeros(arms), np.zeros((2, arms)), np.zeros((2, arms, resources)), own)


def sums_in(storage: Storage, policy: Policy) -> Sums:
    """What a storage knows of its arms."""
    arms = state_in(storage).arms
    own = {name: column(storage.memory, place).copy() for name, place in own_places(storage, policy)}
    return Sums(
        arms.pulls.astype(np.float64),
        np.stack([arms.reward_sum, arms.reward_squares]),
        np.stack([arms.cost_sum, arms.cost_squares]),
        own,
    )


def own_places(storage: Storage, policy: Policy) -> Iterable[tuple[str, tuple[str, int]]]:
    """The sums of a policy's own, by name, and where they are in its memory."""
    return policy.own_sums(len(storage.resources)).items()


def column(memory: Any, place: tuple[str, int]) -> Any:
    """A column of an array of a policy's memory, with an entry per arm."""
    return getattr(memory, place[0])[:, place[1]]


def add_sums(storage: Storage, policy: Policy, more: Sums) -> None:
    """Let a storage know more, or less; the means follow, beliefs have to be renewed."""
    arms = state_in(storage).arms
    arms.pulls[:] = np.rint(arms.pulls + more.pulls)
    arms.reward_sum[:] += more.rewards[0]
    arms.reward_squares[:] += more.rewards[1]
    arms.cost_sum[:] += more.costs[0]
    arms.cost_squares[:] += more.costs[1]
    for known, added in ((arms.reward_known, more.rewards), (arms.cost_known, more.costs)):
        known[NUMBER] += more.pulls if known.ndim == 2 else more.pulls[:, None]
        known[TOTAL] += added[0]
        known[SQUARES] += added[1]
    for known, mean in ((arms.reward_known, arms.reward_mean), (arms.cost_known, arms.cost_mean)):
        mean[:] = np.divide(known[TOTAL], known[NUMBER], out=np.zeros_like(mean), where=known[NUMBER] > 0.0)
    with np.errstate(divide="ignore"):
        arms.width[:] = 1.0 / np.sqrt(arms.pulls)
    for name, place in own_places(storage, policy):
        column(storage.memory, place)[:] += more.own[name]


def guess_own_sums(storage: Storage, policy: Policy) -> None:
    """Fill in the sums of a policy's own that nobody has kept, from those that were."""
    guessed = guessed_own(policy, sums_in(storage, policy))
    for name, place in own_places(storage, policy):
        column(storage.memory, place)[:] = guessed[name]


def guessed_own(policy: Policy, sums: Sums) -> dict[str, Any]:
    """The sums of a policy's own that go with others, where nobody has kept them."""
    rows = list(zip(sums.pulls.tolist(), sums.rewards[0].tolist(), sums.costs[0], strict=True))
    names = policy.own_sums(sums.costs.shape[-1])
    return {name: np.array([policy.without_own_sum(name, round(row[0]), *row[1:]) for row in rows]) for name in names}

"""What a live bandit is told when it is made: checked once, and written at the head of every file."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from paceline import checks
from paceline.errors import InvalidValue, UnreadableFile
from paceline.live.arms import check_arms
from paceline.policies import POLICIES, PolicyLike, label_policies, make_policy
from paceline.policies.policy import Policy, Setting

# Far from where floats end, so that no sum or square on the way overflows or vanishes.
LARGEST_AMOUNT, SMALLEST_SCALE = 2.0**500, 2.0**-500


@dataclass(frozen=True)
class Config:
    """The settings of a bandit. Amounts are in the user's currency; ``scale`` counts as 1 to the policy."""

    arms: tuple[str, ...]
    budget: float
    policy: Policy
    max_cost: float | dict[str, float]
    max_reward: float
    scale: float
    seed: int
    remember: int
    expires: float | None
    silence: float | None

    def max_cost_of(self, name: str) -> float:
        """The largest cost of an arm, as far as it was said beforehand."""
        if not isinstance(self.max_cost, dict):
            return self.max_cost
        if name not in self.max_cost:
            raise InvalidValue(f"max_cost must have an entry for every arm, got none for {name!r}")
        return self.max_cost[name]

    def check_max_cost(self, name: str, value: object) -> float:
        """The largest cost of a new arm, at most the scale."""
        largest = checks.real(f"max_cost of {name}", value, 0)
        if largest > self.scale:
            raise InvalidValue(
                f"max_cost of {name} must be at most the scale of costs, {self.scale:g} "
                f"(set scale= when the bandit is made to leave room for more expensive arms), got {largest!r}"
            )
        return largest

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        given = asdict(self.policy)  # type: ignore[call-overload]  # every policy is a dataclass
        parameters = {name: value.item() if isinstance(value, np.generic) else value for name, value in given.items()}
        return {**vars(self), "arms": list(self.arms), "policy": {"name": self.policy.name, "parameters": parameters}}


def make_config(
    arms: Sequence[str],
    budget: float,
    policy: PolicyLike,
    max_cost: float | Mapping[str, float],
    max_reward: float,
    scale: float | None,
    seed: int,
    remember: int,
    expires: float | None,
    silence: float | None,
) -> Config:
    """The settings, once every one of them has passed its check."""
    names = tuple(check_arms(arms))
    budget = checks.real("budget", budget, 0, LARGEST_AMOUNT)
    max_cost = check_max_costs(names, max_cost)
    largest = max(max_cost.values()) if isinstance(max_cost, dict) else max_cost
    least_scale = max(largest, budget)
    if least_scale == 0.0:
        raise InvalidValue("the largest max_cost or the budget must be above 0, got 0 for both")
    if scale is None:
        scale = least_scale
    elif checks.real("scale", scale, 0, LARGEST_AMOUNT) < least_scale:
        raise InvalidValue(
            f"scale must be at least the largest max_cost and the budget, {least_scale:g}, got {scale!r}"
        )
    checks.real("the scale of costs", scale, SMALLEST_SCALE)
    chosen = label_policies(policy)
    if len(chosen) != 1:
        raise InvalidValue(f"policy must be one policy, got {', '.join(chosen)}")
    config = Config(
        arms=names,
        budget=budget,
        policy=next(iter(chosen.values())),
        max_cost=max_cost,
        max_reward=checks.real("max_reward", max_reward, 0, LARGEST_AMOUNT, above_low=True),
        scale=float(scale),
        seed=checks.seed(seed),
        remember=checks.whole("remember", remember, 0),
        expires=None if expires is None else checks.real("expires", expires, 0, above_low=True),
        silence=None if silence is None else checks.real("silence", silence, 0, max_reward),
    )
    config.policy.params(Setting(len(names), budget / config.scale))  # a policy that cannot run live says so here
    return config


def check_max_costs(names: Sequence[str], given: object) -> float | dict[str, float]:
    """One largest cost for all arms, or one for each by name."""
    if not isinstance(given, Mapping):
        return checks.real("max_cost", given, 0, LARGEST_AMOUNT)
    unknown = [name for name in given if name not in names]
    missing = [name for name in names if name not in given]
    if unknown or missing:
        problem = f"no entry for {missing[0]!r}" if missing else f"an entry for {unknown[0]!r}"
        raise InvalidValue(f"max_cost must have one entry for every arm, got {problem}")
    return {name: checks.real(f"max_cost of {name}", given[name], 0, LARGEST_AMOUNT) for name in names}


def read_config(table: dict[str, Any], policy: Policy | None) -> Config:
    """The settings that `Config.to_dict` wrote; a policy that is not one of ours must be given again."""
    written = table["policy"]
    if policy is None:
        if written["name"] not in POLICIES:
            name = written["name"]
            raise UnreadableFile(
                f"policy {name!r} is not one of paceline's; it must be given again as policy=, got none"
            )
        policy = make_policy(written["name"], **written["parameters"])
    elif policy.name != written["name"]:
        raise InvalidValue(f"policy must be {written['name']!r}, as it was saved, got {policy.name!r}")
    return make_config(**{**table, "policy": policy})

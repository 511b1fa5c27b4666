"""What would be best if the arms of a live bandit were what they seem to be."""

from typing import Any

import numpy as np

from paceline.live.ledger import Ledger
from paceline.problems.optimum import Optimum, solve_several


def optimum_of(ledger: Ledger) -> Optimum | None:
    """The best mix of the arms in play; None without arms or anything to spend."""
    arm_set = ledger.arm_set
    arms, rates = arm_set.state.arms, arm_set.state.rate
    refills = any(resource.max_refill > 0.0 for resource in ledger.config.resources)
    if not arm_set.slots or not (refills or rates.any()):
        return None
    return solve_several(arms.reward_mean, arms.cost_mean, rates)


def best_mix_of(ledger: Ledger) -> dict[str | None, float]:
    """The best share of rounds for each arm; None stands for sitting out."""
    best = optimum_of(ledger)
    if best is None:
        return {None: 1.0}
    arm_set = ledger.arm_set
    places = np.flatnonzero(best.mix).tolist()
    return {arm_set.name_at[arm_set.slot_at[place]]: float(best.mix[place]) for place in places}


def prices_of(ledger: Ledger) -> Any:
    """What one more unit of a resource per round would earn."""
    best, config = optimum_of(ledger), ledger.config
    prices = [0.0] * len(config.resources) if best is None else best.prices.tolist()
    scales = [resource.scale for resource in config.resources]
    return config.by_name([price * config.max_reward / scale for price, scale in zip(prices, scales, strict=True)])

"""What the means of a log would allow, were they the true ones: the best mix of arms, and the best single arm."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from paceline.offline.logged import LoggedArm
from paceline.problems.optimum import solve_several

Floats = npt.NDArray[np.float64]
Rates = tuple[float, ...]  # a budget: one rate per resource


def allowed(arms: Mapping[str, LoggedArm], rates: Rates) -> tuple[float, float]:
    """What the best mix of arms and the best single arm would earn per round, were the estimated means the true ones.

    A single arm is pulled as often as the scarcest resource lets it be:  mu min(1, c / rho).

    >>> from paceline.statistics import Estimate
    >>> arms = {
    ...     "cheap": LoggedArm(100, reward=Estimate(0.5, 0.4, 0.6), costs={"cost": Estimate(0.25, 0.2, 0.3)}),
    ...     "expensive": LoggedArm(100, reward=Estimate(1.0, 0.9, 1.0), costs={"cost": Estimate(1.0, 1.0, 1.0)}),
    ... }
    >>> allowed(arms, (0.625,)), allowed(arms, (2.0,))
    ((0.75, 0.625), (1.0, 1.0))
    """
    rewards = np.array([arm.reward.value for arm in arms.values()])
    costs = np.array([[cost.value for cost in arm.costs.values()] for arm in arms.values()])
    budget = np.array(rates, np.float64)
    alone = (rewards[:, None] * budget / np.maximum(costs, budget)).min(axis=1)
    return best_mix_value(rewards, costs, budget), float(alone.max())


def best_mix_value(rewards: Floats, costs: Floats, budget: Floats) -> float:
    """The value of the best mix. The solver for several resources wants costs of size 1, whatever the units of a log.

    >>> best_mix_value(np.array([50.0, 0.0]), np.array([[2e6, 1e-6], [0.0, 0.0]]), np.array([1e6, 1e-6]))
    25.0
    """
    if budget.size == 1:
        return solve_several(rewards, costs, budget).value
    prize, unit = largest_or_one(rewards), largest_or_one(costs)
    return float(prize * solve_several(rewards / prize, costs / unit, budget / unit).value)


def largest_or_one(values: Floats) -> Floats:
    """The largest value, of each column if there are columns; 1 where all are 0."""
    largest = values.max(axis=0)
    return np.where(largest > 0.0, largest, 1.0)

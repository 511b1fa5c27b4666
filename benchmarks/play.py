"""A policy in the middle of a run, ready to be timed."""

from dataclasses import dataclass

import numpy as np

from paceline import Policy, Problem
from paceline.grafting import simulator_for
from paceline.kernels.page import NO_PAGE, Page
from paceline.simulation.simulate import setting_of
from paceline.worlds.stationary import world_of


@dataclass
class Play:
    """Plays on from where it stands."""

    problem: Problem
    policy: Policy
    horizon: int
    page: Page | int = NO_PAGE  # to write history to

    def __post_init__(self) -> None:
        setting = setting_of(self.problem, self.horizon)
        self.params = self.policy.params(setting)
        self.world = world_of(self.problem)
        self.storage = self.policy.new_storage(setting, 0, 0)
        self.simulate = simulator_for(type(self.policy), type(self.world), is_kept=self.page is not NO_PAGE)

    @property
    def played(self) -> int:
        """How many rounds."""
        return int(self.storage.tally[0].t)

    def rounds(self, count: int) -> None:
        """Play so many more rounds."""
        self.simulate(self.params, self.storage, self.world.data, self.page, self.played + count)


def spread_problem(arms: int) -> Problem:
    """Many arms whose costs lie far from the budget, so that SUAK soon mixes bases too."""
    numbers = np.random.default_rng(arms)
    expensive = numbers.random(arms) < 0.5
    costs = np.where(expensive, numbers.uniform(0.95, 1.0, arms), numbers.uniform(0.0, 0.05, arms))
    rewards = np.clip(0.4 + 0.4 * expensive + numbers.uniform(-0.2, 0.2, arms), 0, 1)
    return Problem.beta(list(rewards), list(costs), budget=0.5, concentration=20.0)

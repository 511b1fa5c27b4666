"""Problems with one resource, near an efficient frontier of cost and reward."""

from dataclasses import dataclass

import numpy as np

from paceline.problems.distributions import Beta, Distribution, Scaled
from paceline.problems.families.recipe import (
    CONCENTRATIONS,
    Floats,
    Options,
    Recipe,
    check_budget,
    check_case,
    check_one_resource,
    distributions,
    log_uniforms,
    power,
    refuse_given,
)
from paceline.problems.observed import Origin
from paceline.problems.optimum import Optimum, solve
from paceline.problems.problem import Problem

CASES = (1, 2, 3)

# A problem is drawn again when a mean cost is closer to the budget than this: no horizon would tell them apart ...
CLEAR_COST = 0.03
# ... and when no pull of any arm loses more than this: there would be nothing to learn, and the limit would be 0.
CLEAR_GAP = 0.01
# Where largest costs are unequal: an arm's is so many times its mean cost, and at most 1.
HEADS = (1.25, 8.0)


@dataclass(frozen=True)
class Draft:
    """The means of a problem with one resource, before it is accepted."""

    rewards: Floats
    costs: Floats
    budget: float
    concentration: float
    chosen: int  # the arm that costs just the budget, where the kind wants one
    largest: Floats | None  # costs, where they are not all 1

    @property
    def optimum(self) -> Optimum:
        """The best mix of arms with these means."""
        return solve(self.rewards, self.costs, self.budget)


@dataclass(frozen=True)
class FrontierRecipe(Recipe):
    """Mean costs are uniform, mean rewards a power of them minus a shortfall."""

    says: str
    binary_rewards: bool = False
    binary_costs: bool = False
    arms: tuple[int, int] = (3, 10)
    budgets: tuple[float, float] = (0.1, 0.9)
    most_budget: float = 1.0  # that may be asked for
    rewards: tuple[float, float] = (0.02, 0.98)
    scale: float = 1.0  # of the rewards
    clear_costs: bool = True
    at_budget: bool = False
    unequal: bool = False  # mean costs spread over their logarithm, with largest costs of their own
    coupled: bool = False
    cases: tuple[int | None, ...] = CASES

    def check(self, kind: str, options: Options) -> None:
        """A budget that can be had, and a concentration only where there is one."""
        check_one_resource(kind, options.resources)
        check_budget(kind, options.budget, self.most_budget)
        if self.binary_rewards and self.binary_costs:
            refuse_given(kind, options, ("concentration",), "which has none")
        check_case(kind, options.case, self.cases)

    def draw(self, generator: np.random.Generator, options: Options, origin: Origin) -> Problem | None:  # noqa: ARG002
        """A draft, and its problem if it is acceptable."""
        draft = self.draft(generator, options)
        return self.build(draft) if self.accepts(draft, options.case) else None

    def draft(self, generator: np.random.Generator, options: Options) -> Draft:
        """One draw. What is given is drawn all the same, so that it changes nothing else."""
        arms = int(generator.integers(*self.arms, endpoint=True))
        concentration = float(generator.choice(CONCENTRATIONS))
        budget = float(generator.uniform(*self.budgets))
        height, bend = generator.uniform(0.7, 0.95), generator.uniform(0.3, 0.9)
        arms = arms if options.arms is None else options.arms
        budget = budget if options.budget is None else options.budget
        chosen = int(generator.integers(arms))
        costs = generator.uniform(0.05, 0.95, arms)
        shortfalls = generator.exponential(options.shortfall, arms)
        largest = None
        if self.unequal:
            costs = log_uniforms(generator, 0.05, 0.95, arms)
            largest = np.minimum(costs * log_uniforms(generator, *HEADS, arms), 1.0)
        if self.at_budget:
            costs[chosen] = budget
        rewards = np.clip(self.scale * (height * power(costs, bend) - shortfalls), *self.rewards)
        concentration = concentration if options.concentration is None else options.concentration
        return Draft(rewards, costs, budget, concentration, chosen, largest)

    def accepts(self, draft: Draft, case: int | None) -> bool:
        """Whether the problem can be learned, and is of the wanted case and kind."""
        if self.clear_costs and np.abs(draft.costs - draft.budget).min() < CLEAR_COST:
            return False
        best = draft.optimum
        return bool(
            best.gaps.max() > CLEAR_GAP * self.scale
            and (case is None or best.case == case)
            and (not self.at_budget or draft.chosen in best.base)
        )

    def build(self, draft: Draft) -> Problem:
        """The problem with the means of a draft."""
        rewards = distributions(draft.rewards, self.binary_rewards, draft.concentration)
        if draft.largest is None:
            costs = distributions(draft.costs, self.binary_costs, draft.concentration)
            return Problem(rewards, costs, draft.budget, coupled=self.coupled)
        tops = draft.largest.tolist()
        scaled = [scaled_cost(mean, top, draft.concentration) for mean, top in zip(draft.costs, tops, strict=True)]
        return Problem(rewards, scaled, draft.budget, coupled=self.coupled, max_costs=tops)


def scaled_cost(mean: float, top: float, concentration: float) -> Distribution:
    """A cost of at most ``top``, with this mean: ``top`` times a Beta variable."""
    return Scaled(Beta(float(mean) / top, concentration), top)


SMALL_BUDGET = FrontierRecipe(
    "rewards of 0 or 1, Beta costs, a budget of 0.01 to 0.05 below them all",
    binary_rewards=True,
    budgets=(0.01, 0.05),
    most_budget=0.05,
    clear_costs=False,
    cases=(2,),
)
RARE = FrontierRecipe(
    "rewards of 1 about once in a hundred to a thousand pulls, Beta costs",
    binary_rewards=True,
    rewards=(0.001, 0.01),
    scale=0.01,
)

RECIPES: dict[str, Recipe] = {
    "beta": FrontierRecipe("Beta rewards and costs of concentration 5, 10 or 30"),
    "bernoulli": FrontierRecipe("rewards and costs of 0 or 1", binary_rewards=True, binary_costs=True),
    "mixed": FrontierRecipe("rewards of 0 or 1, Beta costs", binary_rewards=True),
    "many": FrontierRecipe("Beta, 100 arms", arms=(100, 100), clear_costs=False),
    "small-budget": SMALL_BUDGET,
    "rare": RARE,
    "at-budget": FrontierRecipe(
        "Beta; the mean cost of one arm is just the budget, and the arm is in the best mix",
        clear_costs=False,
        at_budget=True,
        cases=(1, 3),
    ),
    "correlated": FrontierRecipe("Beta, reward and cost of a pull drawn together", coupled=True),
}

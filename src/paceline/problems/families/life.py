"""Families like life: auctions, language models, a shop, rare rewards, small budgets, and the first rounds of all.

Where reward and cost of a pull depend on each other in life, they do here: such a problem is a table of observed
outcomes (`Problem.observed`), and all its means are exact.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from paceline.problems.distributions import Bernoulli
from paceline.problems.families import one_resource
from paceline.problems.families.recipe import (
    CONCENTRATIONS,
    Floats,
    Options,
    Recipe,
    check_budget,
    check_one_resource,
    exponential,
    log_uniform,
    log_uniforms,
    power,
    refuse_given,
)
from paceline.problems.observed import Origin
from paceline.problems.optimum import solve
from paceline.problems.problem import Problem

Generator = np.random.Generator

ROWS = 20_000  # of a table of outcomes
CLEAR_SHARE = 0.01  # of the best value that a pull of some arm must lose, or there would be nothing to learn


@dataclass(frozen=True)
class Scene:
    """The outcomes of all arms in all rows, and what is known beforehand."""

    rewards: Floats  # (n, K)
    costs: Floats  # (n, K)
    largest: Floats  # (K,), costs
    budget: float

    @property
    def is_worth_learning(self) -> bool:
        """Whether something can be earned, and something lost."""
        best = solve(self.rewards.mean(axis=0), self.costs.mean(axis=0), self.budget)
        return bool(best.gaps.max() > CLEAR_SHARE * best.value > 0.0)


@dataclass(frozen=True)
class SceneRecipe(Recipe):
    """A scene from life, drawn row by row. The order of the arms says nothing."""

    says: str
    arms: tuple[int, int]
    scene: Callable[[Generator, int], Scene]

    def check(self, kind: str, options: Options) -> None:
        """The number of arms and the budget may be given, nothing else."""
        check_plain(kind, options)

    def draw(self, generator: Generator, options: Options, origin: Origin) -> Problem | None:
        """A scene that is worth learning. A budget that is given changes nothing else."""
        arms = int(generator.integers(*self.arms, endpoint=True))
        scene = self.scene(generator, arms if options.arms is None else options.arms)
        if not scene.is_worth_learning:
            return None
        order = generator.permutation(scene.largest.size)
        return Problem.observed(
            scene.rewards[:, order],
            scene.costs[:, order],
            scene.budget if options.budget is None else options.budget,
            max_costs=scene.largest[order].tolist(),
            origin=origin,
        )


def check_plain(kind: str, options: Options) -> None:
    """Refuse all options but arms and budget."""
    check_one_resource(kind, options.resources)
    check_budget(kind, options.budget)
    refuse_given(kind, options, ("case", "concentration", "shortfall"), "which is drawn from life")


def bidding(generator: Generator, arms: int) -> Scene:
    """An auction for one advertisement a round, at the price of the highest other bid. Arms are bids.

    Prices are heavy-tailed: lognormal with a sigma of 0.6 to 1.4, or Pareto (Lomax) with an index of 1.5 to 3. A bid
    wins if the price is not above it, and then the price is paid, so the largest cost of an arm is its bid. What is won
    is clicked in 0.1 to 5 % of all cases; clicks grow with the price by a power of 0 to 1. The reward is the click: it
    comes only together with a cost. Bids, 3 to 30, are log-uniform from a price that wins 2 to 15 % of the auctions to
    one that wins 90 to 99.9 %; the budget is 1/64 to 1/4 of the mean price. Costs are in units of the highest bid.
    """
    if generator.integers(2):
        prices = generator.lognormal(0.0, generator.uniform(0.6, 1.4), ROWS)
    else:
        prices = generator.pareto(generator.uniform(1.5, 3.0), ROWS)
    low = np.quantile(prices, generator.uniform(0.02, 0.15))
    high = np.quantile(prices, 1.0 - log_uniform(generator, 0.001, 0.1))
    bids = log_uniforms(generator, low, high, arms)
    bids[0] = high
    pull = power(np.minimum(prices, high), generator.uniform(0.0, 1.0))
    chances = np.minimum(log_uniform(generator, 0.001, 0.05) * pull / pull.mean(), 1.0)
    clicks = spread(chances[np.argsort(prices)], generator.random())[np.argsort(np.argsort(prices))]
    won = prices[:, None] <= bids
    budget = prices.mean() * log_uniform(generator, 1 / 64, 1 / 4) / high
    return Scene((won & clicks[:, None]).astype(float), won * prices[:, None] / high, bids / high, min(budget, 1.0))


def spread(chances: Floats, shift: float) -> npt.NDArray[np.bool_]:
    """Events with these chances, as evenly as can be: the sum over any stretch is within 1 of what is expected.

    >>> spread(np.full(10, 0.3), 0.5).astype(int).tolist()
    [0, 1, 0, 0, 1, 0, 0, 0, 1, 0]
    """
    sums = np.floor(np.cumsum(chances) + shift)
    return np.asarray(np.diff(sums, prepend=0.0) > 0.0)


def llm(generator: Generator, arms: int) -> Scene:
    """A gateway to language models. Arms are models, 3 to 8, whose mean costs span three orders of magnitude.

    A request has a difficulty. The harder it is, the longer is the answer of every model and the less likely it is
    right. The cost is the model's price times the length of its answer, which is lognormal around that of the request:
    long-tailed, and cut off at the largest cost, 5 to 20 times the mean. The reward is 1 for a right answer. Expensive
    models tend to be right more often, from 30 to 60 % for the cheapest to 75 to 95 % for the best, but some are worse
    than they cost. The budget lies anywhere between the cheapest mean cost and the most expensive one. Costs are in
    units of the largest.
    """
    decades = np.sort(generator.uniform(0.0, 3.0, arms))
    decades[0], decades[-1] = 0.0, 3.0
    worst, best = generator.uniform(0.3, 0.6), generator.uniform(0.75, 0.95)
    climb = power(decades / 3.0, generator.uniform(0.4, 1.5))
    skills = np.clip(worst + (best - worst) * climb - generator.exponential(0.07, arms), 0.1, 0.95)
    difficulty = generator.standard_normal(ROWS)[:, None]
    luck = generator.standard_normal((ROWS, arms))
    strain = generator.uniform(0.3, 1.0)  # the part of difficulty in whether an answer is right
    effort = strain * difficulty + np.sqrt(1.0 - strain**2) * luck
    right = effort <= np.take_along_axis(np.sort(effort, axis=0), (skills * ROWS).astype(int)[None, :], axis=0)
    length = generator.uniform(0.2, 0.7) * difficulty
    length = length + generator.uniform(0.3, 0.8, arms) * generator.standard_normal((ROWS, arms))
    costs = exponential(length)
    costs *= power(10.0, decades) / costs.mean(axis=0)
    largest = costs.mean(axis=0) * generator.uniform(5.0, 20.0, arms)
    costs = np.minimum(costs, largest) / largest.max()
    means = costs.mean(axis=0)
    return Scene(right.astype(float), costs, largest / largest.max(), log_uniform(generator, means[0], means[-1]))


def inventory(generator: Generator, arms: int) -> Scene:
    """A shop with one good, of which some comes in every round. Arms are offers: a price, and the most that it allows.

    A visitor would take a whole number of pieces at price 0 (1 and a geometric number with a mean of 0.5 to 4) and
    fewer at a higher price, none above what a piece is worth to this visitor (lognormal). A pull costs the pieces sold,
    so costs are whole numbers, and none above what the offer allows: 1 to 16 pieces. The reward is the price times the
    pieces: reward and cost of a pull are proportional. The 3 to 12 prices are log-uniform, from a fifth of the median
    worth to three times as much. The budget is 1/8 to 3/4 of the mean number sold by the offer that sells most. Costs
    are in units of 16 pieces, rewards in units of the most that one visitor can bring in.
    """
    most = 16
    limits = generator.integers(1, most, size=arms, endpoint=True)
    limits[0] = most
    prices = log_uniforms(generator, 0.2, 3.0, arms)
    sizes = generator.geometric(1.0 / (1.0 + generator.uniform(0.5, 4.0)), ROWS)[:, None]
    worth = generator.lognormal(0.0, generator.uniform(0.3, 1.0), ROWS)[:, None]
    wanted = np.ceil(sizes * np.maximum(1.0 - prices / worth, 0.0))
    sold = np.minimum(wanted, limits)
    earned = prices * sold
    budget = sold.mean(axis=0).max() / most * log_uniform(generator, 1 / 8, 3 / 4)
    return Scene(earned / (prices * limits).max(), sold / most, limits / most, float(budget))


@dataclass(frozen=True)
class StartRecipe(Recipe):
    """The first 500 rounds, in which most arms are untried: what to try, and what to wait for.

    There are 5 to 30 arms with rewards of 0 or 1. The best chances of a problem are anything from 2 to 90 %, so that no
    fixed prior is right for all; those of an arm are a random part of what its mean cost lets expect. Largest costs are
    log-uniform from 1/30 to 1, mean costs 20 to 80 % of them. The budget is 1/16 to 1/2 of the average mean cost: the
    most expensive arms can be paid for only after some ten to a hundred rounds without a pull, if they are worth it.
    """

    says: str
    arms: tuple[int, int] = (5, 30)

    rounds = 500

    def check(self, kind: str, options: Options) -> None:
        """The number of arms and the budget may be given, nothing else."""
        check_plain(kind, options)

    def draw(self, generator: Generator, options: Options, origin: Origin) -> Problem | None:  # noqa: ARG002
        """A problem with something to lose."""
        arms = int(generator.integers(*self.arms, endpoint=True))
        arms = arms if options.arms is None else options.arms
        concentration = float(generator.choice(CONCENTRATIONS))
        largest = log_uniforms(generator, 1 / 30, 1.0, arms)
        largest[int(generator.integers(arms))] = 1.0
        costs = largest * generator.uniform(0.2, 0.8, arms)
        height, bend = log_uniform(generator, 0.02, 0.9), generator.uniform(0.2, 0.9)
        rewards = height * power(costs / costs.max(), bend) * generator.uniform(0.2, 1.0, arms)
        budget = costs.mean() * log_uniform(generator, 1 / 16, 1 / 2)
        best = solve(rewards, costs, budget)
        if best.gaps.max() <= CLEAR_SHARE * best.value:
            return None
        return Problem(
            [Bernoulli(chance) for chance in rewards.tolist()],
            [
                one_resource.scaled_cost(mean, top, concentration)
                for mean, top in zip(costs.tolist(), largest.tolist(), strict=True)
            ],
            budget if options.budget is None else options.budget,
            max_costs=largest.tolist(),
        )


RECIPES: dict[str, Recipe] = {
    "rare-unequal": replace(
        one_resource.RARE,
        says="like rare, with mean costs over their logarithm and largest costs of 1.25 to 8 times the mean",
        unequal=True,
    ),
    "small-budget-unequal": replace(
        one_resource.SMALL_BUDGET,
        says="like small-budget, with mean costs over their logarithm and largest costs of 1.25 to 8 times the mean",
        unequal=True,
    ),
    "bidding": SceneRecipe(
        "bids in auctions with heavy-tailed prices; a rare click and the price come only if won", (3, 30), bidding
    ),
    "llm": SceneRecipe(
        "language models with long-tailed costs over three orders of magnitude; hard requests cost more and fail more",
        (3, 8),
        llm,
    ),
    "inventory": SceneRecipe("offers of a shop; the cost is the whole number of pieces sold", (3, 12), inventory),
    "start": StartRecipe("untried arms with largest costs from 1/30 to 1, for the first 500 rounds only"),
}

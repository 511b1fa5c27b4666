"""A yardstick for any policy: about the least regret of one that does well on every problem."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from paceline import checks
from paceline.problems.distributions import Distribution, extremes
from paceline.problems.divergence import divergence, lifted_divergence, steepness
from paceline.problems.observed import Observations
from paceline.problems.optimum import Optimum
from paceline.problems.problem import Problem

GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
ROUNDING = 1e-12  # a gap below this is 0 but for rounding
TOLERANCE = 1e-12  # of the least sum of divergences, relative
MOST_STEPS = 200  # of Newton's method, which takes about ten

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def limit(problem: Problem, rounds: int, *, capped: bool = True) -> float:
    """About the least regret of a policy that does well on every problem:  log T  sum over gap_i > 0 of  gap_i / KL_i.

    KL_i is the least divergence, of reward and costs together, from arm i to an arm that would be worth pulling (means
    mu', rho' with  mu' - lambda*.rho' >= y*):  an arm must be pulled log T / KL_i times to rule that out. Base arms are
    pulled all the time and cost nothing extra. The divergences of all costs add up, as if they were independent; of
    observed outcomes (`Problem.observed`) it is the divergence of their joint law, see `least_of_observed`. A stock
    without income is spread over the rounds (`Problem.optimum_over`).

    This is a yardstick, not a theorem for this problem: it is the argument of Lai and Robbins (1985) carried over,
    and no instance-dependent lower bound is known for bandits with anytime knapsacks. It is asymptotic: at small T a
    good policy is below it.

    In few rounds the formula can ask for more pulls of an arm than there are rounds. ``capped``, the limit never
    exceeds what there is to lose: the share of arm i is at most  gap_i T,  the whole at most  T r*.  ``capped=False``
    is the bare formula; where it is larger than the capped one, regret / limit says little (`is_capped`).

    >>> from paceline import paper
    >>> round(limit(paper.three_arms(), 500_000), 1), round(limit(paper.eight_arms(), 2_500_000), 1)
    (10.3, 207.6)
    >>> round(limit(paper.eight_arms(), 100), 1), round(limit(paper.eight_arms(), 100, capped=False), 1)
    (16.5, 64.9)
    """
    rounds = checks.rounds("rounds", rounds)
    found = limits(problem, np.array([rounds]))
    return float(found.capped[0] if capped else found.bare[0])


class Limits(NamedTuple):
    """`limit` at several rounds of one run, as it is and by the bare formula."""

    capped: Floats
    bare: Floats

    @property
    def cut(self) -> npt.NDArray[np.bool_]:
        """Where the bare formula exceeds what there is to lose, of an arm or as a whole."""
        return np.asarray(self.capped < self.bare * (1.0 - ROUNDING))


def limits(problem: Problem, rounds: Ints) -> Limits:
    """`limit` at each of the rounds of one run, which ends with the last of them.

    >>> from paceline import paper
    >>> found = limits(paper.eight_arms(), np.array([100, 2_500_000]))
    >>> found.capped.round(1), found.cut
    (array([ 16.5, 207.6]), array([ True, False]))
    """
    best = problem.optimum_over(int(rounds[-1]))
    losing = [arm for arm in range(problem.arms) if best.gaps[arm] > ROUNDING]
    gaps = best.gaps[losing]
    pulls = np.outer(np.log(rounds), [1.0 / least_divergence(problem, arm, best) for arm in losing])
    possible = np.minimum(pulls, rounds[:, np.newaxis])
    return Limits(np.minimum(possible @ gaps, rounds * best.value), pulls @ gaps)


def is_capped(problem: Problem, rounds: int) -> bool:
    """Whether the bare formula of `limit` exceeds what there is to lose in so many rounds, of an arm or as a whole.

    >>> from paceline import paper
    >>> is_capped(paper.eight_arms(), 100), is_capped(paper.eight_arms(), 2_500_000)
    (True, False)
    """
    return bool(limits(problem, np.array([checks.rounds("rounds", rounds)])).cut[0])


def least_divergence(problem: Problem, arm: int, best: Optimum | None = None) -> float:
    """KL_i of `limit`, for the prices and the level of an optimum, that of the problem unless given."""
    best = best or problem.optimum
    if problem.observations is not None:
        return least_of_observed(problem, problem.observations, arm, best)
    reward, costs = problem.rewards[arm], [side[arm] for side in problem.consumptions]
    if len(costs) == 1:
        return least_with_one_cost(best, reward, costs[0])
    sides = [Side(reward, 1.0), *map(Side, costs, (-best.prices).tolist())]
    score = sum(side.weight * side.of.mean for side in sides)
    return least_for_gain(sides, best.level - score)


def least_of_observed(problem: Problem, table: Observations, arm: int, best: Optimum) -> float:
    """KL_i of an arm with observed outcomes: the least divergence to *any* joint law of its reward and costs.

    All that counts of an outcome is  z = reward - lambda.cost,  which is at most 1, or more where pulls may refill.
    """
    outcomes = np.array([table.column(side, arm) for side in range(len(table.values))])
    worth = outcomes[0] - best.prices @ outcomes[1:]
    top = float(1.0 - best.prices @ np.where(problem.refills, -1.0, 0.0))
    return lifted_divergence(worth, best.level, max(top, float(worth.max())))


def least_with_one_cost(best: Optimum, reward: Distribution, cost: Distribution) -> float:
    """KL_i with one resource. Among arms just worth pulling it is convex in the cost, so a golden section finds it."""

    def total(other_cost: float) -> float:
        other_reward = max(best.level + best.price * other_cost, reward.mean)
        return divergence(reward, other_reward) + divergence(cost, other_cost)

    if best.price == 0.0 or cost.variance == 0.0:
        return total(cost.mean)
    # Means that the two families can have; at the ends the divergence is infinite.
    low = extremes(cost)[0]
    high = min(cost.mean, (extremes(reward)[1] - best.level) / best.price)
    if high <= low:
        return math.inf
    for _ in range(100):
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        if total(left) <= total(right):
            high = right
        else:
            low = left
    return min(total((low + high) / 2.0), total(cost.mean))


class Side(NamedTuple):
    """The reward or a cost of an arm, and what the arm's score  mu - lambda.rho  gains when its mean grows by 1."""

    of: Distribution
    weight: float

    @property
    def reach(self) -> float:
        """How far the mean can go in the direction in which the score gains; 0 if it cannot move or gains nothing."""
        if self.weight == 0.0 or self.of.variance == 0.0:
            return 0.0
        low, high = extremes(self.of)
        return (high if self.weight > 0.0 else low) - self.of.mean


def least_for_gain(sides: list[Side], gain: float) -> float:
    """The least sum of divergences among means that make the score gain so much:  sum of weight * move = gain.

    A convex problem in the moves, solved by Newton's method along the constraint (Boyd and Vandenberghe, "Convex
    optimization", section 10.2): with g, h the derivatives of a divergence, the moves change by  (theta w - g) / h,
    theta such that the gain stays. It begins where all means have gone the same part of their way. Divergences grow
    without bound towards the ends, so steps are cut to stay inside, and halved until the sum falls.
    """
    sides = [side for side in sides if side.reach != 0.0]
    whole = sum(side.weight * side.reach for side in sides)
    if whole <= gain:  # at the ends the divergence is infinite
        return math.inf
    means = [side.of.mean + gain / whole * side.reach for side in sides]
    total = sum_of_divergences(sides, means)
    for _ in range(MOST_STEPS):
        step, progress = newton_step(sides, means)
        if progress <= TOLERANCE * total:
            break
        part = part_inside(sides, means, step)
        while (tried := sum_of_divergences(sides, moved := along(means, step, part))) >= total and part > ROUNDING:
            part /= 2.0
        if tried >= total:  # all that is left to gain is rounding
            break
        means, total = moved, tried
    return total


def sum_of_divergences(sides: list[Side], means: list[float]) -> float:
    """KL from an arm to one with other means."""
    return sum(divergence(side.of, mean) for side, mean in zip(sides, means, strict=True))


def newton_step(sides: list[Side], means: list[float]) -> tuple[list[float], float]:
    """The step of `least_for_gain`, and twice the fall of the sum that it promises."""
    slopes = [steepness(side.of, mean) for side, mean in zip(sides, means, strict=True)]
    weights = [side.weight for side in sides]
    theta = sum(w * g / h for w, (g, h) in zip(weights, slopes, strict=True))
    theta /= sum(w * w / h for w, (_, h) in zip(weights, slopes, strict=True))
    step = [(theta * w - g) / h for w, (g, h) in zip(weights, slopes, strict=True)]
    return step, sum(h * s * s for s, (_, h) in zip(step, slopes, strict=True))


def part_inside(sides: list[Side], means: list[float], step: list[float]) -> float:
    """The part of a step, 1 at most, that keeps every mean clear of the ends of its family."""
    part = 1.0
    for side, mean, change in zip(sides, means, step, strict=True):
        if change != 0.0:
            low, high = extremes(side.of)
            part = min(part, 0.9 * ((high if change > 0.0 else low) - mean) / change)
    return part


def along(means: list[float], step: list[float], part: float) -> list[float]:
    """The means after a part of a step."""
    return [mean + part * change for mean, change in zip(means, step, strict=True)]

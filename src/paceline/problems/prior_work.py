"""Table 1 of the paper: the regret bounds of prior work, as formulas.

They are orders of growth. No constants are known, gaps mean different things in different works, and all but the
paper's own are for settings in which the budget need not hold in every round. So the numbers say how a bound grows with
a problem, and not how much is lost; the paper itself warns that they are not directly comparable.
"""

import math
from typing import NamedTuple

import numpy as np

from paceline import checks
from paceline.problems.optimum import solve
from paceline.problems.problem import Problem
from paceline.problems.suak_bound import check_one_resource, wrong_bases


class Symbols(NamedTuple):
    """What the bounds of Table 1 are made of, for a problem with one resource.

    ``arms``           K
    ``resources``      m = 1, the resources without time
    ``constraints``    d = 2, cost and time
    ``budget``         b = c
    ``cost_gap``       delta_min = min_i |rho_i - c|
    ``base_gap``       the least loss of a base that is not the optimal one: Delta of the paper and of Flajolet, Jaillet
    ``arm_gap``        what is lost when an arm of the optimal base is taken away, the least: Delta of Li, Sun, Ye, and
                       of Kumar, Kleinberg, who use their first phase
    ``least_weight``   chi, the smallest weight in the optimal mix that is not 0
    ``singular``       sigma, the smallest singular value of the binding rows (cost, time) of the arms of the base
    ``drift``          delta_drift = min over arms and the null arm of |rho_i - c|, what a round moves the headroom by
    ``kappa``          the smallest constant with |mu_i - mu_j| <= kappa |rho_i - rho_j| for all arms
    ``inverse_reward`` the least 1 / mu_i, which the paper calls sigma in the bound of Flajolet, Jaillet
    """

    arms: int
    resources: int
    constraints: int
    budget: float
    cost_gap: float
    base_gap: float
    arm_gap: float
    least_weight: float
    singular: float
    drift: float
    kappa: float
    inverse_reward: float


class PriorWork(NamedTuple):
    """A row of Table 1 for a problem and a number of rounds."""

    work: str
    model: str
    formula: str
    order: float


def prior_work(problem: Problem, rounds: int) -> tuple[PriorWork, ...]:
    """Table 1 of the paper, with the value of each formula for a problem with one resource and so many rounds.

    >>> from paceline import paper
    >>> for row in prior_work(paper.three_arms(), 500_000):
    ...     print(f"{row.work}: {row.order:.1e}")
    Elumar, Tekin, Yagan: 2.4e+05
    Bernasconi, Castiglioni, Celli, Fusco 2024c: 7.1e+02
    Kumar, Kleinberg 2022: 1.2e+06
    Li, Sun, Ye 2021: 1.6e+06
    Flajolet, Jaillet 2015: 1.3e+07
    """
    s = symbols_of(problem)
    lam = 1.0 + 2.0 * s.kappa
    return (
        PriorWork(
            "Elumar, Tekin, Yagan",
            "average budget, in every round",
            "K log T / (delta_min Delta^2) + K log T / delta_min^2",
            elumar_order(rounds, s.arms, s.cost_gap, s.base_gap),
        ),
        PriorWork(
            "Bernasconi, Castiglioni, Celli, Fusco 2024c",
            "replenishable, sublinear violations",
            "sqrt(T)",
            bernasconi_order(rounds),
        ),
        PriorWork(
            "Kumar, Kleinberg 2022",
            "total budget and drift",
            "K m^2 log T / (Delta^2 min(delta_drift^2, sigma_min^2))",
            kumar_order(rounds, s.arms, s.resources, s.arm_gap, s.drift, s.singular),
        ),
        PriorWork(
            "Li, Sun, Ye 2021",
            "total budget",
            "K d log T / (b^3 Delta^2) + d^4 / (b^2 min(chi^2, Delta^2) min(1, sigma^2))",
            li_order(rounds, s.arms, s.constraints, s.budget, s.arm_gap, s.least_weight, s.singular),
        ),
        PriorWork(
            "Flajolet, Jaillet 2015",
            "total budget",
            "lambda^2 K^2 log T / (delta_min^3 Delta) + K^2 sigma log T / delta_min^3",
            flajolet_order(rounds, s.arms, s.cost_gap, s.base_gap, lam, s.inverse_reward),
        ),
    )


def symbols_of(problem: Problem) -> Symbols:
    """What the formulas need to know of a problem with one resource.

    >>> from paceline import paper
    >>> found = symbols_of(paper.eight_arms())
    >>> round(found.cost_gap, 3), round(found.base_gap, 3), round(found.kappa, 3)
    (0.1, 0.005, 2.0)
    """
    check_one_resource("prior_work", problem)
    (c,), best = problem.rates, problem.optimum
    rewards, costs = problem.reward_means, problem.cost_means
    base = [arm for arm in best.base if arm < problem.arms]
    without = [value_without(problem, arm) for arm in base]
    rows = [costs[base]] if best.price > 0.0 else []
    if best.level > 0.0:
        rows.append(np.ones(len(base)))
    cost_gap = float(np.abs(costs - c).min())
    apart = [
        (float(abs(rewards[i] - rewards[j])), float(abs(costs[i] - costs[j])))
        for i in range(problem.arms)
        for j in range(i)
    ]
    return Symbols(
        arms=problem.arms,
        resources=1,
        constraints=2,
        budget=c,
        cost_gap=cost_gap,
        base_gap=min((loss for _, loss in wrong_bases(problem)), default=math.inf),
        arm_gap=best.value - max(without, default=0.0),
        least_weight=float(best.mix[best.mix > 0.0].min()),
        singular=float(np.linalg.svd(np.array(rows), compute_uv=False).min()),
        drift=min(cost_gap, c),
        kappa=max((over(up, along) for up, along in apart if up > 0.0), default=0.0),
        inverse_reward=over(1.0, float(rewards.max())),
    )


def value_without(problem: Problem, arm: int) -> float:
    """What the best mix earns when an arm is taken away."""
    rewards, costs = np.delete(problem.reward_means, arm), np.delete(problem.cost_means, arm)
    return solve(rewards, costs, problem.rates[0]).value if rewards.size else 0.0


def over(value: float, by: float) -> float:
    """A quotient; infinite where the theory has nothing to say.

    >>> over(1.0, 4.0), over(1.0, 0.0)
    (0.25, inf)
    """
    return value / by if by > 0.0 else math.inf


def log_of(rounds: int) -> float:
    """The logarithm of T."""
    return math.log(checks.rounds("rounds", rounds))


def elumar_order(rounds: int, arms: int, cost_gap: float, gap: float) -> float:
    """K log T / (delta_min Delta^2) + K log T / delta_min^2:  SUAK, anytime constraint (the paper's own row).

    >>> round(elumar_order(100, arms=2, cost_gap=0.5, gap=0.5), 3)
    110.524
    """
    return arms * log_of(rounds) * (over(1.0, cost_gap * gap**2) + over(1.0, cost_gap**2))


def bernasconi_order(rounds: int) -> float:
    """sqrt(T):  beyond primal-dual methods, violations of that order allowed; of the instance nothing is used.

    >>> bernasconi_order(100)
    10.0
    """
    return math.sqrt(checks.rounds("rounds", rounds))


def kumar_order(rounds: int, arms: int, resources: int, gap: float, drift: float, singular: float) -> float:
    """K m^2 log T / (Delta^2 min(delta_drift^2, sigma_min^2)):  resources that may grow or shrink, T known.

    >>> round(kumar_order(100, arms=2, resources=1, gap=0.5, drift=0.5, singular=1.0), 3)
    147.365
    """
    return arms * resources**2 * log_of(rounds) * over(1.0, gap**2 * min(drift, singular) ** 2)


def li_order(
    rounds: int, arms: int, constraints: int, budget: float, gap: float, least_weight: float, singular: float
) -> float:
    """K d log T / (b^3 Delta^2) + d^4 / (b^2 min(chi^2, Delta^2) min(1, sigma^2)):  a total budget, T known.

    >>> round(li_order(100, arms=2, constraints=2, budget=1.0, gap=0.5, least_weight=0.5, singular=1.0), 3)
    137.683
    """
    exploring = arms * constraints * log_of(rounds) * over(1.0, budget**3 * gap**2)
    return exploring + over(constraints**4, (budget * min(least_weight, gap) * min(1.0, singular)) ** 2)


def flajolet_order(rounds: int, arms: int, cost_gap: float, gap: float, lam: float, inverse_reward: float) -> float:
    """lambda^2 K^2 log T / (delta_min^3 Delta) + K^2 sigma log T / delta_min^3:  a total budget, kappa known.

    >>> round(flajolet_order(100, arms=2, cost_gap=0.5, gap=0.5, lam=3.0, inverse_reward=1.0), 3)
    2799.943
    """
    return arms**2 * log_of(rounds) * over(1.0, cost_gap**3) * (over(lam**2, gap) + inverse_reward)

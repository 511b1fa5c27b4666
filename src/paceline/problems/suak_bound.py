"""The paper's theorem about SUAK, and the lemmas behind it, as numbers for a given problem."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from paceline import checks
from paceline.errors import InvalidValue
from paceline.problems.problem import Problem

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class SuakBound:
    """Theorem 1 of the paper and the lemmas behind it, term by term, with L = log T.

    ``suboptimal_bases``   sum_i 432 r* ((delta_i + 1) / delta_i)^2 L / (delta_min Delta_min,i^2)
    ``classification_and_underuse``   241 K r* L / (c delta_min^2)
    ``guard``              3 pi^2 r* / delta_min^2
    ``confidence``         2 pi^2 K^2, for the rounds in which a confidence bound fails
    ``total``              the sum: a bound on the expected regret

    Of the lemmas: ``classification_pulls`` 96 L / delta_i^2 for each arm, ``classification_skips`` 104 L / (c
    delta_i) + 1 for each arm more expensive than c (0 for the others), ``guard_skips`` 3 pi^2 / delta_min^2,
    ``unspent`` 41 L / delta_min^2, ``base_pulls`` 432 ((delta_i + 1) / delta_i)^2 L / (delta_min Delta_min,i^2) for
    each arm, in suboptimal bases, and ``omega`` the range of omega(t), from 2 delta_min / 9 to
    delta_min / (2 + delta_min - c).

    The bound on the money unspent is for problems that use their budget; where the best arm is affordable (price 0)
    money is left over, and costs nothing.

    delta_i = |rho_i - c|, and Delta_min,i is the least loss of a base with arm i that is not the optimal one. A base
    has one arm that costs at most c, or a more expensive and a cheaper one (or the null arm). Where a delta or Delta
    is 0 the bound is infinite: the theorem assumes otherwise.
    """

    suboptimal_bases: float
    classification_and_underuse: float
    guard: float
    confidence: float
    classification_pulls: Floats
    classification_skips: Floats
    guard_skips: float
    unspent: float
    base_pulls: Floats
    omega: tuple[float, float]

    @property
    def total(self) -> float:
        """The bound on the expected regret."""
        return self.suboptimal_bases + self.classification_and_underuse + self.guard + self.confidence


def suak_bound(problem: Problem, rounds: int) -> SuakBound:
    """The paper's bounds for SUAK on a problem, after so many rounds.

    >>> from paceline import paper
    >>> f"{suak_bound(paper.three_arms(), 500_000).total:.2e}"
    '1.26e+09'
    """
    check_one_resource("suak_bound", problem)
    log_rounds = math.log(checks.rounds("rounds", rounds))
    (c,), value = problem.rates, problem.optimum.value
    deltas = np.abs(problem.cost_means - c)
    smallest = float(deltas.min())
    gaps = smallest_base_gaps(problem)
    with np.errstate(divide="ignore", invalid="ignore"):
        each = 432.0 * ((deltas + 1.0) / deltas) ** 2 * log_rounds / np.float64(smallest) / gaps**2
    # An arm in no other base is in no wrong one; but the theorem says nothing where a mean cost is the budget.
    base_pulls = np.where(np.isinf(gaps), 0.0, each) if smallest > 0.0 else np.full(problem.arms, math.inf)
    with np.errstate(divide="ignore"):
        inverse_square = float(np.float64(1.0) / smallest**2)
        beyond = problem.cost_means > c
        return SuakBound(
            suboptimal_bases=float(value * base_pulls.sum()),
            classification_and_underuse=241.0 * problem.arms * value * log_rounds / c * inverse_square,
            guard=3.0 * math.pi**2 * value * inverse_square,
            confidence=2.0 * math.pi**2 * problem.arms**2,
            classification_pulls=96.0 * log_rounds / deltas**2,
            classification_skips=np.where(beyond, 104.0 * log_rounds / (c * deltas) + 1.0, 0.0),
            guard_skips=3.0 * math.pi**2 * inverse_square,
            unspent=41.0 * log_rounds * inverse_square,
            base_pulls=base_pulls,
            omega=(2.0 * smallest / 9.0, smallest / (2.0 + smallest - c)),
        )


def check_one_resource(what: str, problem: Problem) -> None:
    """Refuse a problem that the paper does not speak of."""
    if len(problem.resources) > 1:
        raise InvalidValue(f"{what} is for problems with one resource, got {len(problem.resources)} resources")


def wrong_bases(problem: Problem) -> Iterator[tuple[tuple[int, ...], float]]:
    """Every valid base but the optimal one, the expensive arm first, and its loss Delta_I; number K is the null arm.

    Valid (the paper's set V): one arm that costs at most c, or a more expensive arm and a cheaper one or the null arm.
    """
    (c,), null = problem.rates, problem.arms
    rewards, costs = np.append(problem.reward_means, 0.0), np.append(problem.cost_means, 0.0)
    optimal = set(problem.optimum.base)
    singles = [(arm,) for arm in range(null) if costs[arm] <= c]
    pairs = product(np.flatnonzero(costs > c).tolist(), np.flatnonzero(costs < c).tolist())
    for base in (*singles, *pairs):
        if set(base) == optimal:
            continue
        expensive, cheap = base[0], base[-1]
        weight = (c - costs[cheap]) / (costs[expensive] - costs[cheap]) if expensive != cheap else 1.0
        loss = problem.optimum.value - (weight * rewards[expensive] + (1.0 - weight) * rewards[cheap])
        yield base, max(float(loss), 0.0)


def smallest_base_gaps(problem: Problem) -> Floats:
    """Delta_min,i for each arm: the least loss of a base other than the optimal one that contains it.

    >>> from paceline import paper
    >>> smallest_base_gaps(paper.three_arms()).round(3)
    array([0.029, 0.029, 0.09 ])
    """
    gaps = np.full(problem.arms + 1, math.inf)
    for base, loss in wrong_bases(problem):
        gaps[list(base)] = np.minimum(gaps[list(base)], loss)
    return gaps[: problem.arms]


def base_selections(problem: Problem, rounds: int) -> dict[tuple[int, ...], float]:
    """How often SUAK may select each wrong base in so many rounds: the bound on N_(i,j)(T) in the proof of Lemma D.6.

    For a base of arms i and j with  rho_i > c > rho_j,  and the loss Delta_(i,j),

        N_(i,j)(T)  <=  216 log T / (delta_min Delta_(i,j)^2)  (1 + (mu_i - mu_j) / (delta_i + delta_j))^2.

    Condition: the confidence bounds hold in all rounds (see `confidence_failures`). The proof takes an arm of a base to
    be pulled at least  2/9 delta_min N_(i,j)  times, which is so in expectation only, so the bound is one on the
    expectation, too. Where  mu_i < mu_j  the step of the proof that doubles the fraction goes the wrong way; the
    fraction is at most 0 then, and left out here. Of a base with one arm the proof says that it is simpler: it is
    selected while  Delta <= 2 epsilon_i,  and pulled each time, hence  N <= 12 log T / Delta^2.

    Keys are bases with the expensive arm first; number K is the null arm, which has mu = 0 and delta = c.

    >>> from paceline import paper
    >>> {base: f"{most:.1e}" for base, most in base_selections(paper.three_arms(), 500_000).items()}
    {(0,): '8.0e+03', (1, 0): '4.1e+07', (1, 3): '3.5e+06', (2, 3): '7.0e+06'}
    """
    check_one_resource("base_selections", problem)
    log_rounds = math.log(checks.rounds("rounds", rounds))
    (c,) = problem.rates
    rewards, costs = np.append(problem.reward_means, 0.0), np.append(problem.cost_means, 0.0)
    smallest = float(np.abs(problem.cost_means - c).min())
    most = {}
    for base, loss in wrong_bases(problem):
        needed = 12.0
        if len(base) > 1:
            expensive, cheap = base
            apart = max(float(rewards[expensive] - rewards[cheap]), 0.0)
            slope = 1.0 + apart / float(costs[expensive] - costs[cheap])  # delta_i + delta_j = rho_i - rho_j
            needed = 216.0 * slope**2 / smallest if smallest > 0.0 else math.inf
        most[base] = needed * log_rounds / loss**2 if loss > 0.0 else math.inf
    return most


def smallest_gap_estimate(problem: Problem) -> tuple[float, float]:
    """The range of delta_min^L(t), SUAK's estimate of the smallest cost gap (Lemma D.3):  2/3 delta_min .. delta_min.

        delta_min^L(t) = min_i |mean cost of i - c| - sqrt(1.5 log t / N_i(t))

    Condition: a round in which SUAK estimates it, so that every arm is classified, and in which the confidence bounds
    of the costs hold. The range of omega(t) that follows is `SuakBound.omega`.

    >>> from paceline import paper
    >>> low, high = smallest_gap_estimate(paper.three_arms())
    >>> round(low, 3), round(high, 3)
    (0.133, 0.2)
    """
    check_one_resource("smallest_gap_estimate", problem)
    smallest = float(np.abs(problem.cost_means - problem.rates[0]).min())
    return 2.0 * smallest / 3.0, smallest


def confidence_failures(problem: Problem) -> float:
    """A bound on R_e, the part of the regret bound for rounds in which a confidence bound fails:  5 pi^2 K^2 / 3.

    R_e(T) = sum over t <= T of P(not G(t)) + P(not F(t)):  G(t) says that the bounds of the optimal base and of every
    other base hold, F(t) that those of the costs hold. The two sums are at most  4 pi^2 K^2 / 3  and  pi^2 K / 3
    (Lemmas D.1 and D.2: 8 and 2 times the sum of 1/t^2 for each of K^2 bases and K arms); the sketch of the proof has
    their sum. It does not grow with T. Theorem 1 has  2 pi^2 K^2,  which is this and the K of Lemma D.5, rounded up.

    >>> from paceline import paper
    >>> round(confidence_failures(paper.three_arms()), 1)
    148.0
    """
    return 5.0 * math.pi**2 * problem.arms**2 / 3.0

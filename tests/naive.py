"""Slow, obvious versions of what the package computes, written from the paper and not from the package.

Money is exact here: a cost is charged as a fraction, rounded up to a multiple of 2**-32, and c * t is not rounded at
all. Only the random numbers come from the package, since a comparison decision by decision needs the same ones.
"""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

from paceline.kernels.random import DECISION, block, decision_uniform, uniform
from paceline.policies.thompson_lp import beta_attempt
from paceline.problems.problem import Problem

SKIP = -1
UNIT = Fraction(1, 2**32)


# The linear program, twice.


class Solution(NamedTuple):
    """The solution of a linear program and its dual."""

    value: float
    mix: np.ndarray  # K + 1 weights, the null arm last
    price: float
    level: float


def by_linprog(rewards: Sequence[float], costs: Sequence[float], rate: float) -> Solution:
    """max rewards.pi subject to costs.pi <= rate, sum of pi = 1, pi >= 0, with a null arm appended."""
    objective, row = np.append(rewards, 0.0), np.append(costs, 0.0)
    found = linprog(-objective, A_ub=[row], b_ub=[rate], A_eq=[np.ones(row.size)], b_eq=[1.0], bounds=(0, None))
    assert found.success, found.message
    return Solution(-found.fun, found.x, -found.ineqlin.marginals[0], -found.eqlin.marginals[0])


class Base(NamedTuple):
    """One arm (expensive = cheap) or two, the weight of the expensive one, and what the mix earns."""

    value: Fraction
    expensive: int
    cheap: int
    weight: Fraction


def all_bases(rewards: Sequence[float], costs: Sequence[float], rate: float | Fraction) -> Iterator[Base]:
    """Every vertex of the feasible set: an affordable arm, or a expensive and a cheap arm that just spend the rate."""
    mu = [*map(Fraction, rewards), Fraction(0)]
    rho = [*map(Fraction, costs), Fraction(0)]
    c = Fraction(rate)
    affordable = [i for i in range(len(mu)) if rho[i] <= c]
    expensive = [i for i in range(len(mu)) if rho[i] > c]
    for i in affordable:
        yield Base(mu[i], i, i, Fraction(1))
    for j, k in product(expensive, affordable):
        if rho[k] < c:
            weight = (c - rho[k]) / (rho[j] - rho[k])
            yield Base(weight * mu[j] + (1 - weight) * mu[k], j, k, weight)


def by_enumeration(rewards: Sequence[float], costs: Sequence[float], rate: float | Fraction) -> Base:
    """The best vertex; among equals one arm goes before two, and a lower number before a higher."""
    return max(all_bases(rewards, costs, rate), key=lambda base: base.value)  # max keeps the first of equals


# Money of several resources.


def levels(problem: Problem, costs: np.ndarray) -> np.ndarray:
    """What is left of each resource after every round with these costs: (rounds, D), start stock and caps included."""
    stock, caps = np.array(problem.stocks), np.array(problem.caps)
    left = []
    for paid in costs:
        stock = np.minimum(stock + problem.rates, caps)  # the income of the round
        stock = np.minimum(stock - paid, caps)  # a refill may run over
        left.append(stock)
    return np.array(left)


# Confidence bounds.


def radius(strength: float, pulls: int) -> float:
    """sqrt(strength / pulls); nothing is known of an arm never pulled."""
    return math.sqrt(strength / pulls) if pulls else math.inf


def projected(value: float) -> float:
    """The nearest point of [0, 1]."""
    return min(max(value, 0.0), 1.0)


# Policies.


class Run:
    """A policy in a world: the round, the money, what each arm has brought, and the arms pulled so far."""

    def __init__(self, problem: Problem, seed: int, stream: int) -> None:
        self.arms = range(problem.arms)
        self.null = problem.arms
        self.budget = problem.budget
        self.c = Fraction(problem.budget)  # the same number, for exact money
        self.world = problem.sample(seed, stream)
        self.key = np.uint64(seed), np.uint64(stream)
        self.t = 1
        self.spent = Fraction(0)  # S_c
        self.pulls = [0] * problem.arms
        self.reward_sum = [0.0] * problem.arms
        self.cost_sum = [0.0] * problem.arms
        self.decisions: list[int] = []
        self.history: list[tuple[int, int, float, float]] = []  # round, arm, reward, cost

    def headroom(self) -> Fraction:
        """c t - S_c(t - 1)."""
        return self.c * self.t - self.spent

    def guard_refuses(self) -> bool:
        """The paper's skip rule, S_c(t - 1) + 1 > c t."""
        return self.spent + 1 > self.c * self.t

    def mean_reward(self, arm: int) -> float:
        return self.reward_sum[arm] / self.pulls[arm] if arm != self.null and self.pulls[arm] else 0.0

    def mean_cost(self, arm: int) -> float:
        return self.cost_sum[arm] / self.pulls[arm] if arm != self.null and self.pulls[arm] else 0.0

    def optimistic(self, strength: float) -> tuple[list[float], list[float]]:
        """UCB of the rewards and LCB of the costs for the radius sqrt(strength / N_i)."""
        radii = [radius(strength, self.pulls[i]) for i in self.arms]
        rewards = [projected(self.mean_reward(i) + radii[i]) for i in self.arms]
        costs = [projected(self.mean_cost(i) - radii[i]) for i in self.arms]
        return rewards, costs

    def chance(self) -> float:
        """The uniform number of this round."""
        return decision_uniform(*self.key, self.t)

    def pull(self, arm: int) -> Fraction:
        """Settle a round with that arm, or with the null arm; the cost is returned."""
        paid = Fraction(0)
        if arm != self.null:
            reward, cost = self.world.pull(arm)
            self.pulls[arm] += 1
            self.reward_sum[arm] += reward
            self.cost_sum[arm] += cost
            self.history.append((self.t, arm, reward, cost))
            paid = Fraction(cost)
            self.spent += math.ceil(paid / UNIT) * UNIT
        self.settle(arm)
        return paid

    def skip(self) -> None:
        self.settle(SKIP)

    def settle(self, decision: int) -> None:
        self.decisions.append(decision)
        self.t += 1


class SUAK(Run):
    """Algorithm 2 of the paper, with its two phases as printed."""

    def __init__(
        self, problem: Problem, seed: int, stream: int, order: str = "fewest", horizon: int | None = None
    ) -> None:
        super().__init__(problem, seed, stream)
        self.rank = {"first": int, "fewest": self.pulls.__getitem__, "cheapest": self.mean_cost}[order]
        self.horizon = horizon
        self.account_spent = Fraction(0)  # S_p
        self.account_rounds = 0  # N_p, pulls and skips
        self.guard_skips = self.account_skips = self.classification_pulls = self.base_rounds = 0

    def run(self, rounds: int) -> None:
        while self.t <= rounds and self.unclassified():  # phase 1
            if self.account_is_short():
                self.skip_on_account()
            else:
                self.classify()
        while self.t <= rounds:  # phase 2
            if self.account_is_short():
                self.skip_on_account()
            elif self.guard_refuses():
                self.guard_skips += 1
                self.skip()
            elif self.unclassified():
                self.classify()
            else:
                self.base_rounds += 1
                self.pull(self.arm_of_base())

    def unclassified(self) -> list[int]:
        """The arms l with  rho^L_l <= c <= rho^U_l."""
        found = []
        for arm in self.arms:
            margin = 7 * radius(1.5 * math.log(self.t), self.pulls[arm])
            if self.mean_cost(arm) - margin <= self.budget <= self.mean_cost(arm) + margin:
                found.append(arm)
        return found

    def account_is_short(self) -> bool:
        return self.account_spent + 1 > self.c * self.account_rounds

    def skip_on_account(self) -> None:
        self.account_rounds += 1
        self.account_skips += 1
        self.skip()

    def classify(self) -> None:
        arm = min(self.unclassified(), key=self.rank)
        self.account_rounds += 1
        self.classification_pulls += 1
        self.account_spent += self.pull(arm)

    def arm_of_base(self) -> int:
        log_t = math.log(self.t)
        c = self.budget
        delta = min(abs(self.mean_cost(i) - c) - radius(1.5 * log_t, self.pulls[i]) for i in self.arms)
        omega = delta / (2 + delta - c)
        log_of_radius = math.log(self.horizon) if self.horizon else log_t
        base = by_enumeration(*self.optimistic(3 * log_of_radius), self.c)
        if base.expensive == base.cheap:
            return base.expensive
        k, j = sorted((base.cheap, base.expensive), key=self.mean_cost)
        b = float(self.headroom()) - log_t / omega**2
        if b > self.mean_cost(j):
            p = 1 - omega
        elif b < self.mean_cost(k):
            p = omega
        else:
            p1 = max((b - self.mean_cost(k)) / (self.mean_cost(j) - self.mean_cost(k)), omega)
            p = min(p1, 1 - omega)
        return j if self.chance() < p else k


class Guarded(Run):
    """A baseline behind the guard: each arm once, then whatever `decide` says."""

    def run(self, rounds: int) -> None:
        while self.t <= rounds:
            if self.guard_refuses():
                self.skip()
            elif 0 in self.pulls:
                self.pull(self.pulls.index(0))
            else:
                self.pull_decided()

    def pull_decided(self) -> None:
        raise NotImplementedError


class OnePhase(Guarded):
    """The optimistic program at the remaining rate (c T - S_c) / (T - t + 1), 0 once all is spent."""

    def __init__(self, problem: Problem, seed: int, stream: int, horizon: int, a: float = 3.0) -> None:
        super().__init__(problem, seed, stream)
        self.horizon, self.a = horizon, a

    def pull_decided(self) -> None:
        rate = max((self.c * self.horizon - self.spent) / (self.horizon - self.t + 1), Fraction(0))
        base = by_enumeration(*self.optimistic(self.a * math.log(self.horizon)), rate)
        self.pull(base.expensive if base.expensive == base.cheap or self.chance() < base.weight else base.cheap)


class OnePhaseAsPrinted(OnePhase):
    """Algorithm 1 of the paper to the letter: no row for time, so the best ratio of the bounds is all that counts."""

    def pull_decided(self) -> None:
        rewards, costs = self.optimistic(self.a * math.log(self.horizon))
        # Without a bound while a cost is 0: then the best reward, of equals the arm with the fewest pulls.
        free = [i for i in self.arms if costs[i] == 0]
        if free:
            self.pull(max(free, key=lambda i: (rewards[i], -self.pulls[i])))
        else:
            self.pull(max(self.arms, key=lambda i: Fraction(rewards[i]) / Fraction(costs[i])))


class SkipFirst(OnePhase):
    """The second naive approach: nothing for ceil(stretch sqrt(K T)) rounds, then One Phase."""

    def __init__(self, problem: Problem, seed: int, stream: int, horizon: int, stretch: float = 1.0) -> None:
        super().__init__(problem, seed, stream, horizon)
        self.stretch = stretch

    def run(self, rounds: int) -> None:
        while self.t < min(rounds, self.stretch * math.sqrt(len(self.arms) * self.horizon)) + 1:
            self.skip()
        super().run(rounds)


class ThompsonLP(OnePhase):
    """Draws from Beta posteriors, the program at the remaining rate (or at c), an arm drawn from its solution."""

    def __init__(self, problem: Problem, seed: int, stream: int, horizon: int = 0, update: bool = True) -> None:
        super().__init__(problem, seed, stream, horizon)
        self.update = update

    def run(self, rounds: int) -> None:
        while self.t <= rounds:
            if self.guard_refuses():
                self.skip()
            else:
                self.pull_decided()

    def posterior(self, lane: int, total: float, pulls: int) -> float:
        """The first draw that is accepted; which words it is made from is the package's business."""
        for attempt in range(100):
            words = block(*self.key, *map(np.uint64, (self.t, lane)), DECISION, np.uint64(attempt))
            for pair in (words[:2], words[2:]):
                drawn = beta_attempt(1.0 + total, 1.0 + pulls - total, *(uniform(np.uint64(word)) for word in pair))
                if drawn >= 0:
                    return drawn
        raise AssertionError("no draw was accepted")

    def pull_decided(self) -> None:
        rewards = [self.posterior(1 + 2 * i, self.reward_sum[i], self.pulls[i]) for i in self.arms]
        costs = [self.posterior(2 + 2 * i, self.cost_sum[i], self.pulls[i]) for i in self.arms]
        rate = (self.c * self.horizon - self.spent) / (self.horizon - self.t + 1) if self.update else self.c
        base = by_enumeration(rewards, costs, rate)
        self.pull(base.expensive if base.expensive == base.cheap or self.chance() < base.weight else base.cheap)


class FromTheFirstRound(Run):
    """A baseline behind the guard that pulls no arm first: an arm of the optimistic mix at a rate."""

    def run(self, rounds: int) -> None:
        while self.t <= rounds:
            if self.guard_refuses():
                self.skip()
            else:
                base = by_enumeration(*self.bounds(), self.rate())
                self.pull(base.expensive if self.chance() < base.weight else base.cheap)

    def bounds(self) -> tuple[list[float], list[float]]:
        raise NotImplementedError

    def rate(self) -> Fraction:
        return self.c


class UCBBwK(FromTheFirstRound):
    """p = argmax UCB_r.p  s.t.  LCB_x.p <= (1 - eps) B / T;  UCB = min(1, m + 2 rad(m, n + 1)),  m = sum / (n + 1)."""

    def __init__(
        self, problem: Problem, seed: int, stream: int, horizon: int, a: float = 1.0, shrinkage: float | None = None
    ) -> None:
        super().__init__(problem, seed, stream)
        arms, budget = problem.arms, problem.budget * horizon
        self.alpha = a * math.log(arms * horizon)
        load = self.alpha * arms / budget
        self.eps = min(1.0, math.sqrt(load) + math.log(horizon) * load) if shrinkage is None else shrinkage

    def rad(self, mean: float, number: int) -> float:
        return math.sqrt(self.alpha * mean / number) + self.alpha / number

    def bounds(self) -> tuple[list[float], list[float]]:
        numbers = [n + 1 for n in self.pulls]
        earns = [total / n for total, n in zip(self.reward_sum, numbers, strict=True)]
        takes = [total / n for total, n in zip(self.cost_sum, numbers, strict=True)]
        return (
            [projected(m + 2 * self.rad(m, n)) for m, n in zip(earns, numbers, strict=True)],
            [projected(m - 2 * self.rad(m, n)) for m, n in zip(takes, numbers, strict=True)],
        )

    def rate(self) -> Fraction:
        return (1 - Fraction(self.eps)) * self.c


class SlidingWindowUCB(FromTheFirstRound):
    """The same with the radius sqrt(2 log(12 K T^3) / (n + 1)) and with outcomes of rounds t - w .. t - 1 only."""

    def __init__(self, problem: Problem, seed: int, stream: int, horizon: int, window: int) -> None:
        super().__init__(problem, seed, stream)
        self.strength = 2 * math.log(12 * problem.arms * horizon**3)
        self.window = window

    def bounds(self) -> tuple[list[float], list[float]]:
        rewards, costs = [], []
        for arm in self.arms:
            seen = [(reward, cost) for t, i, reward, cost in self.history if i == arm and self.t - self.window <= t]
            number = len(seen) + 1
            wide = radius(self.strength, number)
            rewards.append(projected(sum(reward for reward, _ in seen) / number + wide))
            costs.append(projected(sum(cost for _, cost in seen) / number - wide))
        return rewards, costs


class PacedLP(Guarded):
    """The optimistic program at c with radius sqrt(a log t / n); its base is paced as pacing.py says."""

    def __init__(self, problem: Problem, seed: int, stream: int, a: float = 2.0) -> None:
        super().__init__(problem, seed, stream)
        self.a = a

    def pull_decided(self) -> None:
        base = by_enumeration(*self.optimistic(self.a * math.log(self.t)), self.c)
        self.pull(base.expensive if self.headroom() >= self.needed(base) else base.cheap)

    def needed(self, base: Base) -> float:
        if base.cheap in {base.expensive, self.null}:
            return 1.0
        costs = [cost for _, arm, _, cost in self.history if arm == base.cheap]
        spread = np.var(costs) + 0.25 / len(costs)
        drift = self.budget - self.mean_cost(base.cheap)
        buffer = spread / (2 * drift) * math.log(1 + self.t * drift**2 / spread) if drift > 0 else 0.0
        return 2.0 - self.budget + buffer


class LearnedControlBudget(PacedLP):
    """One resource: the same program, its base under the threshold tau = C log t."""

    def __init__(self, problem: Problem, seed: int, stream: int, buffer: float) -> None:
        super().__init__(problem, seed, stream)
        self.buffer = buffer

    def needed(self, base: Base) -> float:
        return self.buffer * math.log(self.t)


class ControlBudget(Run):
    """One resource, means known: the three cases of the page, with tau = C log(T - t)."""

    def __init__(self, problem: Problem, seed: int, stream: int, horizon: int, buffer: float) -> None:
        super().__init__(problem, seed, stream)
        self.base = by_enumeration(problem.reward_means, problem.cost_means, problem.budget)
        self.horizon, self.buffer = horizon, buffer

    def run(self, rounds: int) -> None:
        while self.t <= rounds:
            tau = self.buffer * math.log(max(self.horizon - self.t, 1))
            if self.guard_refuses():
                self.skip()
            elif self.base.expensive == self.base.cheap or self.headroom() >= tau:
                self.pull(self.base.expensive)
            else:
                self.pull(self.base.cheap)


class ControlBudgetOfSeveral:
    """The general rule, with the mix of each round found by a linear program in p and g."""

    def __init__(self, problem: Problem, seed: int, stream: int, horizon: int, buffer: float) -> None:
        self.problem, self.horizon, self.buffer = problem, horizon, buffer
        self.key, self.world = (np.uint64(seed), np.uint64(stream)), problem.sample(seed, stream)
        self.rewards = np.append(problem.reward_means, 0.0)
        self.costs = np.vstack([problem.consumption_means, np.zeros(len(problem.resources))]).T  # (D, K + 1)
        self.rates = np.array(problem.rates)
        ones = np.ones((1, self.rewards.size))
        best = linprog(-self.rewards, self.costs, self.rates, ones, [1.0], bounds=(0, None)).x
        self.support = [int(i) for i in np.flatnonzero(best > 1e-9)]
        self.binding = np.flatnonzero(self.rates - self.costs @ best < 1e-9)
        self.spent = [Fraction(0)] * len(self.rates)
        self.decisions: list[int] = []
        self.mixes: dict[tuple[bool, ...], np.ndarray] = {}

    def mix(self, short: tuple[bool, ...]) -> np.ndarray:
        """The mix with the largest g, given which resources are below the threshold; one entry per arm and null."""
        if short not in self.mixes:
            used, signs = self.costs[:, self.support], np.where(short, -1.0, 1.0)
            rows = [np.append(used[d], -signs[d]) for d in self.binding] + [np.append(np.ones(len(self.support)), 0.0)]
            spare = [d for d in range(len(short)) if short[d] and d not in self.binding]
            limits = [np.append(used[d], 0.5) for d in spare]  # rate - use >= g / 2
            best = linprog(
                np.append(np.zeros(len(self.support)), -1.0),
                limits or None,
                self.rates[spare] if spare else None,
                rows,
                [*self.rates[self.binding], 1.0],
                bounds=(0, None),
            )
            assert best.success, best.message
            found = np.zeros(self.rewards.size)
            found[self.support] = best.x[:-1]
            self.mixes[short] = found
        return self.mixes[short]

    def run(self, rounds: int) -> None:
        largest = np.array(self.problem.most)  # (D, K)
        for t in range(1, rounds + 1):
            tau = self.buffer * math.log(max(self.horizon - t, 1))
            left = [Fraction(c) * t - paid for c, paid in zip(self.problem.rates, self.spent, strict=True)]
            mix = self.mix(tuple(h < tau for h in left))
            arm = int(np.searchsorted(np.cumsum(mix), decision_uniform(*self.key, t), side="right"))
            if any(h < least for h, least in zip(left, largest.min(axis=1), strict=True)):
                self.decisions.append(SKIP)
            elif arm == self.problem.arms:
                self.decisions.append(arm)
            elif any(h < most for h, most in zip(left, largest[:, arm], strict=True)):
                self.decisions.append(SKIP)
            else:
                self.decisions.append(arm)
                for d, cost in enumerate(self.world.pull(arm)[1].values()):
                    self.spent[d] += math.ceil(Fraction(cost) / UNIT) * UNIT


class UCBSimplex(Guarded):
    """Inflated rewards, empirical costs, and an account for each base."""

    def __init__(self, problem: Problem, seed: int, stream: int, lam: float = 9.0) -> None:
        super().__init__(problem, seed, stream)
        self.lam = lam
        self.accounts: dict[frozenset[int], tuple[int, Fraction]] = {}

    def pull_decided(self) -> None:
        log_t = math.log(self.t)
        rewards = [self.mean_reward(i) + self.lam * radius(2 * log_t, self.pulls[i]) for i in self.arms]
        base = by_enumeration(rewards, [self.mean_cost(i) for i in self.arms], self.c)
        if base.expensive == base.cheap:
            self.pull(base.expensive)
            return
        pair = frozenset((base.expensive, base.cheap))
        selections, spent = self.accounts.get(pair, (0, Fraction(0)))
        paid = self.pull(base.expensive if spent <= selections * self.c else base.cheap)
        self.accounts[pair] = selections + 1, spent + paid


def identified_by_primal_dual(
    reward_means: np.ndarray, cost_means: np.ndarray, pulls: np.ndarray, rate: float, strength: float
) -> tuple[set[int], set[str]]:
    """The sets I (arms of the base) and J' (resources that do not bind) that the estimates allow to tell."""
    radii = np.sqrt(strength / pulls)
    high_rewards, low_rewards = np.clip(reward_means + radii, 0, 1), np.clip(reward_means - radii, 0, 1)
    high_costs, low_costs = np.clip(cost_means + radii, 0, 1), np.clip(cost_means - radii, 0, 1)
    bar = by_linprog(low_rewards, high_costs, rate).value

    def best_without(arm: int) -> float:
        return by_linprog(np.delete(high_rewards, arm), np.delete(low_costs, arm), rate).value

    # The leftover  c - rho.pi  of cost or  1 - sum of pi  of time is taken off the objective.
    penalised = {
        "cost": by_linprog(high_rewards + high_costs, low_costs, rate).value - rate,
        "time": by_linprog(high_rewards + 1.0, low_costs, rate).value - 1.0,
    }
    base = {arm for arm in range(pulls.size) if best_without(arm) < bar}
    return base, {resource for resource, value in penalised.items() if value < bar}

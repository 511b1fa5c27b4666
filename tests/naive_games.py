"""Slow, obvious versions of the policies that play against prices, for any number of resources, from the papers.

As in naive.py money is exact, and only the random numbers come from the package. Weights are multiplied as the papers
have it, and neither normalised nor kept as logarithms.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from naive import SKIP, UNIT, projected

from paceline.kernels.random import decision_uniform
from paceline.problems.problem import Problem

Costs = Sequence[float]


class GameRun:
    """A policy for several resources in a world, behind the guard: rates, largest costs, means, decisions so far.

    ``boldness`` divides confidence radii.
    """

    def __init__(self, problem: Problem, seed: int, stream: int, horizon: int = 0) -> None:
        self.problem, self.horizon = problem, horizon
        self.arms, self.null = range(problem.arms), problem.arms
        self.resources = range(len(problem.resources))
        self.c, self.start = list(map(Fraction, problem.rates)), list(map(Fraction, problem.stocks))
        self.spent = [Fraction(0) for _ in self.resources]
        self.most = [[Fraction(most) for most in side] for side in problem.most]  # by resource, then arm
        self.scale = [float(max(side)) for side in self.most]
        self.low = [-1.0 if refills else 0.0 for refills in problem.refills]
        self.world, self.key = problem.sample(seed, stream), (np.uint64(seed), np.uint64(stream))
        self.t, self.boldness = 1, 1.0
        self.pulls = [0] * problem.arms
        self.rewards = [0.0] * problem.arms
        self.costs = [[0.0 for _ in self.resources] for _ in self.arms]
        self.decisions: list[int] = []

    def rates(self) -> list[float]:
        """b = c + B0 / T."""
        return [float(c) + float(start) / self.horizon for c, start in zip(self.c, self.start, strict=True)]

    def free(self, d: int) -> Fraction:
        return self.start[d] + self.c[d] * self.t - self.spent[d]

    def affordable(self, arm: int) -> bool:
        return all(self.free(d) >= self.most[d][arm] for d in self.resources)

    def run(self, rounds: int) -> None:
        while self.t <= rounds:
            wanted = self.want()
            something = all(self.free(d) >= min(self.most[d]) for d in self.resources)
            if not something or (wanted != self.null and not self.affordable(wanted)):
                self.refused()
                self.decisions.append(SKIP)
            else:
                self.played(wanted, *self.outcome(wanted))
                self.decisions.append(wanted)
            self.t += 1

    def outcome(self, arm: int) -> tuple[float, list[float]]:
        if arm == self.null:
            return 0.0, [0.0 for _ in self.resources]
        reward, given = self.world.pull(arm)
        costs = list(given.values()) if isinstance(given, dict) else [given]
        self.pulls[arm] += 1
        self.rewards[arm] += reward
        for d in self.resources:
            self.costs[arm][d] += costs[d]
            self.spent[d] += math.ceil(Fraction(costs[d]) / UNIT) * UNIT
        return reward, costs

    def mean_reward(self, arm: int) -> float:
        return self.rewards[arm] / self.pulls[arm] if self.pulls[arm] else 0.0

    def mean_cost(self, arm: int, d: int) -> float:
        return self.costs[arm][d] / self.pulls[arm] if self.pulls[arm] else 0.0

    def optimistic_payoff(self, arm: int, prices: Costs) -> float:
        """UCB of the reward minus the prices of LCB costs, radius sqrt(2 log t / n) times the range of the outcome."""
        if arm == self.null:
            return 0.0
        radius = math.sqrt(2 * math.log(self.t) / self.pulls[arm]) / self.boldness
        paid = [
            prices[d] * max(self.mean_cost(arm, d) - (self.scale[d] - self.low[d]) * radius, self.low[d])
            for d in self.resources
        ]
        return min(self.mean_reward(arm) + radius, 1.0) - sum(paid)

    def best_of_all(self, prices: Costs) -> int:
        """Each arm once, then the best payoff; the null arm only if it is better than all others."""
        if 0 in self.pulls:
            return self.pulls.index(0)
        payoffs = [self.optimistic_payoff(arm, prices) for arm in (*self.arms, self.null)]
        best = max(self.arms, key=payoffs.__getitem__)
        return best if payoffs[best] > 0.0 else self.null

    def want(self) -> int:
        raise NotImplementedError

    def played(self, arm: int, reward: float, costs: Costs) -> None:
        """A round as the policy wanted it."""

    def refused(self) -> None:
        """A round that the guard refused."""


# Dual learners.


class Hedge:
    """Multiplicative weights over the resources and time."""

    def __init__(self, game: GameRun, step: float, radius: float | None) -> None:
        self.b, self.radius = game.rates(), radius
        self.range = [max(b, scale - b) for b, scale in zip(self.b, game.scale, strict=True)]
        self.step = step * math.sqrt(math.log(len(self.b) + 1) / game.horizon)
        self.w = [1.0 for _ in self.b]
        self.highest = self.radius * max(scale / b for b, scale in zip(self.b, game.scale, strict=True))

    def prices(self) -> list[float]:
        total = sum(self.w) + 1.0  # the weight of time stays as it is
        return [self.radius * w / total / b for w, b in zip(self.w, self.b, strict=True)]

    def see(self, costs: Costs) -> None:
        for d, x in enumerate(costs):
            self.w[d] *= math.exp(self.step * (x - self.b[d]) / self.range[d])


class Gradient:
    """Projected gradient steps, in units of the largest cost."""

    def __init__(self, game: GameRun, step: float, radius: float | None) -> None:
        self.scale = np.array(game.scale)
        self.b = np.array(game.rates()) / self.scale
        self.bound = math.inf if radius is None else radius / self.b.min()
        self.step = step / math.sqrt(game.horizon)
        self.lam = np.zeros(self.b.size)
        self.seen = 0.0  # the highest sum of prices so far

    @property
    def highest(self) -> float:
        self.seen = max(self.seen, float(self.lam.sum()))
        return self.seen if self.bound == math.inf else self.bound

    def prices(self) -> list[float]:
        return list(self.lam / self.scale)

    def see(self, costs: Costs) -> None:
        moved = np.maximum(self.lam + self.step * (np.array(costs) / self.scale - self.b), 0.0)
        if moved.sum() > self.bound:  # to the simplex, by sorting
            falling = np.sort(moved)[::-1]
            over = (np.cumsum(falling) - self.bound) / np.arange(1, moved.size + 1)
            moved = np.maximum(moved - over[np.flatnonzero(falling > over)[-1]], 0.0)
        self.lam = moved


# Primal learners. Of each: what to draw from, and what to do with the payoff of an action, as a number of [0, 1].


class Weights:
    """The two that keep a weight for each action, the null arm last."""

    def __init__(self, game: GameRun, step: float) -> None:
        self.A, self.T, self.step = game.null + 1, game.horizon, step
        self.w = np.ones(self.A)

    def wanted(self, chance: float) -> int:
        self.p = self.probabilities()
        return min(int(np.searchsorted(np.cumsum(self.p), chance, side="right")), self.A - 1)

    def probabilities(self) -> np.ndarray:
        raise NotImplementedError


class Exp3Six(Weights):
    """Implicit exploration and a fixed share."""

    def probabilities(self) -> np.ndarray:
        return self.w / self.w.sum()

    def learn(self, action: int, gain: float) -> None:
        eta, share = self.step * math.sqrt(2 * math.log(self.A) / (self.A * self.T)), 1 / self.T
        losses = np.zeros(self.A)
        losses[action] = (1 - gain) / (self.p[action] + eta / 2)
        moved = self.w * np.exp(-eta * losses)
        self.w = (1 - share) * moved + share / self.A * moved.sum()


class Exp3P(Weights):
    """A bonus for what is seldom played, and a share for all."""

    delta = 0.05

    @property
    def g(self) -> float:
        return min(3 / 5, self.step * 2 * math.sqrt(3 / 5 * self.A * math.log(self.A) / self.T))

    def probabilities(self) -> np.ndarray:
        return (1 - self.g) * self.w / self.w.sum() + self.g / self.A

    def learn(self, action: int, gain: float) -> None:
        alpha = 2 * math.sqrt(math.log(self.A * self.T / self.delta))
        gains = np.zeros(self.A)
        gains[action] = gain / self.p[action]
        self.w *= np.exp(self.g / (3 * self.A) * (gains + alpha / (self.p * math.sqrt(self.A * self.T))))


class Lagrangian(GameRun):
    """A primal learner against a dual one."""

    def __init__(
        self,
        problem: Problem,
        seed: int,
        stream: int,
        *,
        horizon: int,
        primal: str = "ucb",
        dual: str = "hedge",
        radius: float | None = 1.0,
        primal_step: float = 1.0,
        dual_step: float = 1.0,
    ) -> None:
        super().__init__(problem, seed, stream, horizon)
        self.primal, self.primal_step, self.boldness = primal, primal_step, primal_step
        self.dual = {"hedge": Hedge, "ogd": Gradient}[dual](self, dual_step, radius)
        kinds = {"exp3-six": Exp3Six, "exp3.p": Exp3P}
        self.learner = kinds[primal](self, primal_step) if primal in kinds else None
        self.refill = max(-low / scale for low, scale in zip(self.low, self.scale, strict=True))

    def want(self) -> int:
        chance = decision_uniform(*self.key, self.t)
        if self.learner is not None:
            return self.learner.wanted(chance)
        return self.want_by_square_cb(chance) if self.primal == "square-cb" else self.best_of_all(self.dual.prices())

    def want_by_square_cb(self, chance: float) -> int:
        """Inverse gaps, the rest to the best; the best comes last in the draw."""
        prices = self.dual.prices()
        payoff = [
            self.mean_reward(arm) - sum(prices[d] * self.mean_cost(arm, d) for d in self.resources) for arm in self.arms
        ]
        payoff.append(0.0)
        best = max((self.null, *self.arms), key=payoff.__getitem__)
        error = len(payoff) * math.log(self.horizon)
        actions = len(payoff) * self.horizon
        tightest = min(b / scale for b, scale in zip(self.rates(), self.scale, strict=True))
        gamma = self.primal_step * tightest * math.sqrt(actions / ((len(self.resources) + 1) * error))
        for action in (*self.arms, self.null):
            if action != best:
                chance -= 1 / (len(payoff) + gamma * (payoff[best] - payoff[action]))
                if chance < 0:
                    return action
        return best

    def played(self, arm: int, reward: float, costs: Costs) -> None:
        if self.learner is not None:
            payoff = reward - sum(price * x for price, x in zip(self.dual.prices(), costs, strict=True))
            lowest, highest = -self.dual.highest, 1 + self.dual.highest * self.refill
            self.learner.learn(arm, projected((payoff - lowest) / (highest - lowest)))
        self.dual.see(costs)


class Queue(GameRun):
    """Pessimistic-optimistic: a queue for each resource, tightened by eps."""

    def __init__(self, problem: Problem, seed: int, stream: int, *, tightening: float = 1.0) -> None:
        super().__init__(problem, seed, stream)
        self.tightening = tightening
        self.queue = [0.0 for _ in self.resources]
        self.slater = min(float(c) / scale for c, scale in zip(self.c, self.scale, strict=True))

    def want(self) -> int:
        patience = self.slater * len(self.queue) ** (1 / 4) * math.sqrt(2 * self.t / 3)
        return self.best_of_all([q / patience / scale for q, scale in zip(self.queue, self.scale, strict=True)])

    def played(self, arm: int, reward: float, costs: Costs) -> None:
        eps = min(1.0, self.tightening * len(self.queue) ** (3 / 4) * math.sqrt(6 / self.t))
        for d in self.resources:
            self.queue[d] = max(0.0, self.queue[d] + (costs[d] - float(self.c[d])) / self.scale[d] + eps)

    def refused(self) -> None:
        self.played(self.null, 0.0, [0.0 for _ in self.resources])


class PrimalDualBwK(GameRun):
    """Algorithm 2 of Badanidiyuru, Kleinberg, Slivkins: time is the last resource, budgets are rescaled to one."""

    def __init__(self, problem: Problem, seed: int, stream: int, *, horizon: int, feed: str = "bounds") -> None:
        super().__init__(problem, seed, stream, horizon)
        self.feed, self.b = feed, min(b / scale for b, scale in zip(self.rates(), self.scale, strict=True))
        rows = len(self.resources) + 1
        self.v = [1.0] * rows
        self.eps = math.sqrt(math.log(rows) / (self.b * horizon))
        self.C = math.log(rows * problem.arms * horizon)

    def rad(self, mean: float, pulls: int) -> float:
        return math.sqrt(self.C * mean / pulls) + self.C / pulls

    def rescaled(self, costs: Costs) -> list[float]:
        """With the use of time."""
        return [x * self.b / b for x, b in zip(costs, self.rates(), strict=True)] + [self.b]

    def low_costs(self, arm: int) -> list[float]:
        means = [self.mean_cost(arm, d) / self.scale[d] for d in self.resources]
        lows = [projected(mean - self.rad(mean, self.pulls[arm])) for mean in means]
        return self.rescaled([low * scale for low, scale in zip(lows, self.scale, strict=True)])

    def want(self) -> int:
        self.lows = None
        if 0 in self.pulls:
            return self.pulls.index(0)
        y = [v / sum(self.v) for v in self.v]

        def ratio(arm: int) -> float:
            mean = self.mean_reward(arm)
            used = sum(weight * low for weight, low in zip(y, self.low_costs(arm), strict=True))
            return projected(mean + self.rad(mean, self.pulls[arm])) / used

        best = max(self.arms, key=ratio)
        self.lows = self.low_costs(best)  # of the round in which it is chosen
        return best

    def played(self, arm: int, reward: float, costs: Costs) -> None:
        if self.lows is not None:
            used = self.lows if self.feed == "bounds" else self.rescaled(costs)
            self.v = [v * (1 + self.eps) ** x for v, x in zip(self.v, used, strict=True)]


class FractionalKUBE(GameRun):
    """The highest bound per cost of the arms that can be paid for."""

    def want(self) -> int:
        if 0 in self.pulls:
            return self.pulls.index(0)
        payable = [arm for arm in self.arms if self.affordable(arm)]
        return max(payable or self.arms, key=self.density)

    def density(self, arm: int) -> tuple[bool, Fraction]:
        """Reward per cost; a cost of 0 beats all others."""
        bound = Fraction(self.mean_reward(arm) + math.sqrt(2 * math.log(self.t) / self.pulls[arm]))
        cost = Fraction(self.mean_cost(arm, 0))
        return (True, bound) if cost == 0 else (False, bound / cost)

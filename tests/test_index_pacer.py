"""The index pacer decides as its docstrings say, is not fooled by a fixed default, and is patient with late news."""

import math
import random
from collections import Counter, deque

import naive
import numpy as np
import play
import pytest
from lanes import first_of

import paceline as pl
from docs import traps
from paceline.kernels.state import GUARD
from paceline.policies import make_policy
from paceline.policies.common_prior import CENTRE, SPREAD
from paceline.policies.imed import evidence, evidence_of_costs

ROUNDS = 3000
MIXED_COSTS = pl.Problem(
    [pl.Bernoulli(0.02), pl.Bernoulli(0.3), pl.Beta(0.6), pl.Bernoulli(0.25)],
    [pl.Scaled(pl.Beta(0.4), 0.05), pl.Scaled(pl.Beta(0.5), 0.4), pl.Beta(0.7), pl.Scaled(pl.Bernoulli(0.2), 0.9)],
    budget=0.08,
    max_costs=[0.05, 0.4, 1.0, 0.9],
)
PROBLEMS = {
    "paper, 3 arms": play.THREE_ARMS,
    "paper, 8 arms": play.EIGHT_ARMS,
    "every kind": play.EVERY_KIND,
    "own largest costs": MIXED_COSTS,
    "a crowd": pl.problems.random("beta", 31, arms=20),
    "reward and cost drawn together": pl.problems.random("correlated", 31, arms=7, case=3),
    "clicks are rare": pl.problems.random("bidding", 31, arms=6),
    "costs with long tails": pl.problems.random("llm", 31),
    "paid for what is sold": pl.problems.random("inventory", 31),
    "flat prices, and one that never earns": pl.Problem(
        [pl.Bernoulli(0.2), pl.Bernoulli(0.4), pl.Bernoulli(0.5), pl.Constant(0.0)],
        [pl.Constant(0.1), pl.Constant(0.5), pl.Beta(0.06), pl.Scaled(pl.Beta(0.4), 0.02)],
        budget=0.09,
        max_costs=[0.1, 0.5, 1.0, 0.02],
    ),
    "a flat price beside arms that are free": traps.PROBLEMS["a flat price beside arms that are free"],
    "a cost equal to the rate": pl.Problem.beta([0.3, 0.5, 0.6], [0.2, 0.4, 0.9], budget=0.4),
}


class Side:
    """Rewards, or costs, of all arms on a scale of [0, 1], and what is believed of them."""

    def __init__(self, spans, are_prices=False):
        self.spans, self.are_prices = spans, are_prices
        self.seen = [[] for _ in spans]
        self.mean, self.dispersion, self.strength = 0.5, 1.0, 4.0
        self.beliefs = [None for _ in spans]

    def moments(self, arm):
        values = np.array(self.seen[arm]) / self.spans[arm]
        return len(values), float(values.mean()), float(values.var())

    def common(self):
        total, weights = 0.5 / (1 + self.strength), 1 / (1 + self.strength)
        within = between = 0.05
        for arm, seen in enumerate(self.seen):
            if seen:
                n, mean, variance = self.moments(arm)
                if not self.is_price(arm):
                    weight = n / (n + self.strength)
                    total, weights = total + weight * mean, weights + weight
                within += n * variance
                between += (n - 1) * mean * (1 - mean) if self.varies(arm) else 0.0
        return total / weights, within / between

    def varies(self, arm):
        n, _, variance = self.moments(arm)
        return n < 10 or variance > 1e-9

    def is_price(self, arm):
        return self.are_prices and not self.varies(arm) and self.moments(arm)[1] > 0.0

    def has_moved(self):
        mean, dispersion = self.common()
        return abs(mean - self.mean) > 0.01 * self.mean or abs(dispersion - self.dispersion) > 0.01 * self.dispersion

    def settle(self):
        self.mean, self.dispersion = self.common()
        self.strength = 2 * min(max(self.dispersion, 0.02), 1.0) / min(self.mean, 1 - self.mean)

    def believe(self, arm):
        n, mean, variance = self.moments(arm)
        strength = min(self.strength, 4) if self.is_price(arm) else self.strength
        centre = (n * mean + strength * self.mean) / (n + strength)
        dispersion = (n * variance + self.dispersion) / ((n - 1) * mean * (1 - mean) + 1)
        spread = dispersion * centre * (1 - centre) + 0.08 * self.mean * (1 - self.mean) / (n + 1)
        span = self.spans[arm]
        self.beliefs[arm] = span * centre, span**2 * spread, span**3 * dispersion * (1 - 2 * centre) * spread

    def belief(self, arm):
        if self.beliefs[arm] is not None:
            return self.beliefs[arm]
        mean, span = self.mean, self.spans[arm]
        spread = self.dispersion * mean * (1 - mean)
        return span * mean, span**2 * spread, span**3 * self.dispersion * (1 - 2 * mean) * spread


class Naive:
    """The docstrings of `IndexPacer`, of common_prior.py and of edge.py, word for word, from the outcomes alone."""

    def __init__(self, problem):
        self.count, self.c, self.tops = problem.arms, problem.budget, list(problem.max_costs)
        self.rewards, self.costs = Side([1.0] * self.count), Side(self.tops, are_prices=True)
        self.known, self.renewed, self.correlation = 0, 0, 0.0
        self.clocks = [(0.0, 0.0, 0.0)] * self.count

    def n(self, arm):
        return len(self.rewards.seen[arm])

    def learn(self, arm, reward, cost):
        self.rewards.seen[arm].append(reward)
        self.costs.seen[arm].append(cost)
        self.known += 1
        sides = self.rewards, self.costs
        if self.known >= 1.1 * self.renewed or any(side.has_moved() for side in sides):
            self.renewed = self.known
            for side in sides:
                side.settle()
                for i in range(self.count):
                    if side.seen[i]:
                        side.believe(i)
            self.correlation = self.common_correlation()
            self.joint = [self.covariance(i) for i in range(self.count)]
        else:
            for side in sides:
                side.believe(arm)
            self.joint[arm] = self.covariance(arm)
        n, factor = self.n(arm), max(1.0, self.costs.belief(arm)[0] / self.c)
        self.clocks[arm] = math.log(n), math.log(factor), 50 / (n * factor + 50)

    def common_correlation(self):
        seen = [
            (np.array(rewards), np.array(costs) / top)
            for rewards, costs, top in zip(self.rewards.seen, self.costs.seen, self.tops, strict=True)
            if len(rewards) > 1 and min(np.var(rewards), np.var(np.array(costs) / top)) > 1e-9
        ]
        if not seen:
            return 0.0
        apart = [[values - values.mean() for values in pair] for pair in seen]
        rewards, costs = (np.concatenate(side) for side in zip(*apart, strict=True))
        size, pulls = math.sqrt((rewards @ rewards) * (costs @ costs)), rewards.size - len(seen)
        r = float(rewards @ costs) / size if size > 0 else 0.0
        return r * (1 - 9 / (pulls * r**2)) if pulls * r**2 > 9 else 0.0

    def covariance(self, arm):
        most, n = math.sqrt(self.rewards.belief(arm)[1] * self.costs.belief(arm)[1]), self.n(arm)
        if n == 0:
            return self.correlation * most
        together = n * float(np.cov(self.rewards.seen[arm], self.costs.seen[arm], bias=True)[0, 1])
        return float(np.clip((together + 4 * self.correlation * most) / (n + 4), -most, most))

    def variance(self, arm):
        return float(np.var(self.costs.seen[arm])) + 0.25 * self.tops[arm] ** 2 / self.n(arm)

    def needed(self, t, j, k):
        if k == self.count:
            return self.tops[j]
        drift, buffer = self.c - float(np.mean(self.costs.seen[k])), 0.0
        if drift > 0:
            v = self.variance(k)
            buffer = v / (2 * drift) * math.log(1 + t * drift**2 / v)
        return self.tops[j] + self.tops[k] - self.c + buffer

    def evidence(self, arm, price, level):
        if not any(map(any, self.rewards.seen)):
            return 0.0
        (mu, u, third), (rho, w, cost_third) = self.rewards.belief(arm), self.costs.belief(arm)
        gap = level - mu + price * rho
        if gap <= 0:
            return 0.0
        n = self.n(arm)
        r, c = n + self.rewards.strength, n + self.costs.strength
        a = u / r + price**2 * w / c - 2 * price * self.joint[arm] / c
        s = third / r**2 - price**3 * cost_third / c**2
        if a <= 0:
            return 0.0
        x = gap**2 / (2 * max(a + gap * s / (3 * a), a / 10))
        return max(x, c * self.evidence_of_costs(arm, price * rho / (1 - level))) if n and level < 1 else x

    def evidence_of_costs(self, arm, times):
        """Where the mean cost is so many times the largest that any reward could pay for."""
        rho, w, _ = self.costs.belief(arm)
        most = rho * (self.tops[arm] - rho)
        dispersion = w / most if w < most else 1
        return max((1 - dispersion) * (math.log(times) - w / (2 * rho**2)), 0) if times > 1 else 0

    def decide(self, t, h):
        tried = [i for i in range(self.count) if self.n(i)]
        if not tried:
            return int(np.argmin(self.tops))
        mu = [self.rewards.belief(i)[0] if i in tried else 0.0 for i in range(self.count)]
        rho = [self.costs.belief(i)[0] if i in tried else 1.0 for i in range(self.count)]
        base = naive.by_enumeration(mu, rho, self.c)
        j, k = base.expensive, base.cheap
        mu_k, rho_k = (mu[k], rho[k]) if k < self.count else (0.0, 0.0)
        price = 0.0 if j == k else (mu[j] - mu_k) / (rho[j] - rho_k)
        level = mu_k - price * rho_k if k < self.count else 0.0
        needed = 2 * self.tops[j] - self.c if j == k else self.needed(t, j, k)
        room = h >= needed
        arm = self.explored(t, h, j, k, price, level, room, rho)
        if arm is not None:
            rho_i, want = self.costs.belief(arm)[0], self.tops[arm]
            if rho_i > self.c and k < self.count:
                want = want + self.tops[k] - self.c if j == k else self.needed(t, arm, k)
            if h >= max(want, self.tops[arm]):
                return arm
            if k == self.count or (h >= self.tops[k] and rho[k] < self.c):
                return k
        for edge in [k] * (k < self.count) + [j] * (j != k):
            due = self.on_edge(t, h, edge, mu, rho)
            if due is not None:
                return due
        due = j if j == k or room else k
        if due == self.count or h >= self.tops[due]:
            return due
        values = {i: mu[i] - price * rho[i] for i in range(self.count) if h >= self.tops[i] and rho[i] < self.c}
        best = max(values, key=values.get, default=self.count)
        return best if best < self.count and values[best] > 0 else self.count

    def explored(self, t, h, j, k, price, level, room, rho):
        rival = j if room or k == self.count else k
        pulls, log_money, _ = self.clocks[rival]
        unit = max(math.log(self.rewards.strength / 4), 0)
        rarity = max(unit / 2 - max(pulls - unit - 7, 0), 0)
        log_n = max(pulls - rarity, 0)
        extra = max(log_n - 7, 0)
        once = max(math.log(self.count / 8), 0)
        crowd = once + max(once - extra, 0)
        found, least = None, log_n + log_money
        for i in set(range(self.count)) - {j, k}:
            n, top = self.n(i), self.tops[i]
            if n:
                log_i, money, few = self.clocks[i]
                if log_i + money >= pulls + log_money:
                    continue
                index = 1.15 * max(log_i - rarity, 0) - 0.7 + crowd - few * extra
            else:
                money, index = math.log(max(1, self.costs.belief(i)[0] / self.c)), -extra
            if h < top:
                if top + 1e-9 > self.c * t / 32:  # the guard rounds largest costs up: a tie is too much
                    continue
                money = math.log(max(1, top / self.c))
            x = self.evidence(i, price, level)
            index = min(index + x + min(x, 1.5), math.log(32 * (self.count - 1)) + 2 * n - rarity) + money
            cheap = room and j != k and k < self.count and n and rho[i] <= self.c
            if index < least and not (cheap and h >= self.needed(t, j, i)):
                found, least = i, index
        return found

    def on_edge(self, t, h, arm, mu, rho):
        v = self.variance(arm)
        if not any(map(any, self.rewards.seen)) or t * (self.c - rho[arm]) ** 2 >= 9 * v:
            return None
        cheaper = {
            i: (mu[arm] - mu[i]) / (rho[arm] - rho[i]) for i in range(self.count) if rho[i] < min(rho[arm], self.c)
        }
        dearer = {
            i: (mu[i] - mu[arm]) / (rho[i] - rho[arm]) for i in range(self.count) if rho[i] > max(rho[arm], self.c)
        }
        cheaper[self.count] = mu[arm] / rho[arm]
        left, right = min(cheaper, key=cheaper.get), max(dearer, key=dearer.get, default=None)
        low, due = self.needed(t, arm, left), arm
        if h < low:
            due = left if left < self.count else arm
        elif right is not None and dearer[right] > 0:
            width = math.sqrt(2 * max(cheaper[left] / dearer[right] - 1, 0) * v * t)
            due = right if h >= low + width else arm
        return due if h >= self.tops[due] else None


@pytest.mark.parametrize("name", first_of(PROBLEMS, *(name for name in PROBLEMS if name != "paper, 8 arms")))
def test_decides_as_its_docstring_says(name):
    problem = PROBLEMS[name]
    game, model = play.begin(make_policy("index"), problem), Naive(problem)
    decided = 0
    for _ in range(ROUNDS):
        log = play.ask_and_tell(game, 1)
        arm = int(log.arm[0])
        if log.reason[0] != GUARD:
            assert arm == model.decide(int(game.state.clock.t), float(game.state.headroom[0])), game.state.clock.t
            decided += 1
        if play.is_pull(game.state, arm):
            model.learn(arm, float(log.reward[0]), float(log.cost[0]))
    assert decided > 500


@pytest.mark.parametrize("name", ["costs with long tails", "paid for what is sold"])
def test_costs_that_no_reward_could_pay_for_speak_against_an_arm(name):
    problem = PROBLEMS[name]
    game, model = play.begin(make_policy("index"), problem), Naive(problem)
    for _ in range(1000):
        log = play.ask_and_tell(game, 1)
        if play.is_pull(game.state, int(log.arm[0])):
            model.learn(int(log.arm[0]), float(log.reward[0]), float(log.cost[0]))
    tried = [i for i in range(problem.arms) if model.n(i)]
    beyond = 0
    for arm in tried:
        for times in (0.5, 3.0, 30.0, 300.0):
            price = times * 0.6 / model.costs.belief(arm)[0]
            found = evidence(game.state, (0.0,), price, 0.4, arm)
            assert found == pytest.approx(model.evidence(arm, price, 0.4))
            beyond += evidence_of_costs(game.state, (0.0,), price, 0.4, arm) > 0.0
    assert len(tried) <= beyond < 4 * len(tried)


def test_a_default_arm_that_never_varies_does_not_make_one_failure_look_like_proof():
    # When the fixed reward of the default counted in the common dispersion, 6 of these 20 trials never came back to
    # the best arm and lost 4,000; the others lost under 30.
    rewards = [pl.Bernoulli(0.4), pl.Bernoulli(0.7), pl.Bernoulli(0.2)]
    careful = pl.problems.conservative(rewards, default=0.5, alpha=0.1)
    run = pl.simulate(careful, "index", rounds=20_000, trials=20, seed=3, checkpoints=1)["index"]
    assert run.steady_regret[:, -1].max() < 200.0


@pytest.mark.parametrize("name", first_of(traps.WITHOUT_A_TRAP, *traps.WITHOUT_A_TRAP[1:]))
def test_falls_into_no_trap(name):
    """Without the rules against them the median loses 19,200, 19,200, 2,900, 17,740, 720 and 740 in 60,000 rounds."""
    problem = traps.PROBLEMS[name]
    run = pl.simulate(problem, "index", rounds=20_000, trials=12, seed=5, checkpoints=[10_000, 20_000])["index"]
    half, end = np.median(run.steady_regret, axis=0)
    assert end < 1.3 * half + 5.0
    assert end < 0.05 * 20_000 * problem.optimum.value


def lost_with_late_rewards(late, rounds=10_000):
    """Steady regret of a live bandit on the paper's 8 arms whose costs are told at once and rewards so much later."""
    problem = play.EIGHT_ARMS
    bandit = pl.Bandit([str(arm) for arm in range(problem.arms)], budget=problem.budget, policy="index")
    outcomes, waiting, pulls = problem.sample(seed=3, stream=0), deque(), np.zeros(problem.arms)
    for t in range(rounds):
        decision = bandit.ask()
        if decision.arm is not None:
            pulls[int(decision.arm)] += 1
            reward, cost = outcomes.pull(int(decision.arm))
            bandit.tell(decision.id, cost=cost)
            waiting.append((t + late, decision.id, reward))
        while waiting and waiting[0][0] <= t:
            _, number, reward = waiting.popleft()
            bandit.tell(number, reward=reward)
    best = problem.optimum
    return (
        pulls @ best.gaps + best.level * (rounds - pulls.sum()) + best.price * (problem.budget * rounds - bandit.spent)
    )


@pytest.mark.slow
def test_late_news_does_not_make_it_ask_for_one_arm_again_and_again():
    # The prototype forgot what is under way; 500 rounds late it lost 3 times as much as at once.
    at_once = lost_with_late_rewards(0)
    assert lost_with_late_rewards(50) < 1.5 * at_once
    assert lost_with_late_rewards(500) < 2.2 * at_once


@pytest.mark.slow
@pytest.mark.parametrize("late", [1, 50, 500, {"batch": 100}], ids=str)
def test_with_news_of_both_sides_late_it_keeps_up_with_one_that_draws(late):
    # It is deterministic: what it does not know of yet must not make it ask for one arm again and again.
    results = pl.simulate(
        pl.paper.eight_arms(), ["index", "thompson"], rounds=12_000, trials=8, seed=6, delay=late, checkpoints=1
    )
    lost, drawn = (run.steady_regret[:, -1] for run in results.values())
    noise = 3.0 * (lost - drawn).std(ddof=1) / 8**0.5
    assert lost.mean() < 1.2 * drawn.mean() + noise


def test_before_any_news_all_arms_are_asked_for_alike():
    bandit = pl.Bandit(["a", "b", "c", "d"], budget=1.0, policy="index")
    asked = Counter(bandit.ask().arm for _ in range(200))
    assert max(asked.values()) - min(asked.values()) <= 1


def test_an_arm_that_left_is_no_longer_in_the_common_mean():
    bandit = pl.Bandit(["good", "bad", "other"], budget=1.0, policy="index")
    alone = pl.Bandit(["bad", "other"], budget=1.0, policy="index")
    for which, arms in ((bandit, 3), (alone, 2)):
        for _ in range(60 * arms):
            decision = which.ask()
            if decision.arm is not None:
                which.tell(decision.id, reward=1.0 if decision.arm == "good" else 0.1, cost=0.2)
    bandit.retire("good")
    for _ in range(400):
        for which in (bandit, alone):
            decision = which.ask()
            if decision.arm is not None:
                which.tell(decision.id, reward=0.1, cost=0.2)
    with_it, without = (which._ledger.arm_set.playing.memory.common[0, 0] for which in (bandit, alone))
    assert with_it == pytest.approx(without, rel=0.02)


def test_an_arm_that_comes_back_has_earned_what_it_earned():
    bandit = pl.Bandit(["good", "bad", "worse"], budget=1.0, policy="index")

    def play(rounds):
        for _ in range(rounds):
            decision = bandit.ask()
            if decision.arm is not None:
                bandit.tell(decision.id, reward=0.5 if decision.arm == "good" else 0.0, cost=0.5)

    play(500)
    bandit.pause("good")
    play(500)
    bandit.resume("good")
    before = bandit.estimates()["good"].pulls
    play(10)
    assert bandit.estimates()["good"].pulls == before + 10


def test_a_cost_of_nothing_may_be_rare_also_where_pulls_refill():
    for refill in ({}, {"max_refill": 1.0}):
        bandit = pl.Bandit(["free", "varies"], budget=0.3, policy="index", **refill)
        for number in range(50):
            bandit.observe("free", 0.5, 0.0)
            bandit.observe("varies", 0.5, 0.2 + 0.2 * (number % 2))
        assert bandit._ledger.arm_set.playing.memory.parts[0, 1, 1] > 0.9  # its weight in the common mean


def test_outcomes_that_never_vary_have_no_correlation():
    # Sums of such outcomes differ from their squares by rounding; that must not be taken for a correlation.
    outcomes = {"a": (0.1, 0.1), "b": (0.37, 0.3), "c": (0.61, 0.7)}
    bandit = pl.Bandit(list(outcomes), budget=0.25, policy="index")
    for _ in range(3000):
        decision = bandit.ask()
        if decision.arm is not None:
            reward, cost = outcomes[decision.arm]
            bandit.tell(decision.id, reward=reward, cost=cost)
        assert bandit._ledger.arm_set.playing.memory.shared[0] == 0.0


def test_costs_seen_above_a_largest_cost_that_was_lowered_leave_sound_beliefs():
    bandit = pl.Bandit(["a", "b"], 1.0, "index", max_cost=1.0)
    for number in range(20):
        for arm in "ab":
            bandit.observe(arm, float(number % 3 == 0), 0.9)
    bandit.set(max_cost={"a": 0.2, "b": 0.1})
    bandit.observe("a", 1.0, 0.2)
    state = bandit._ledger.arm_set.state
    beliefs, largest = state.memory.beliefs, state.largest[:, 0]
    assert np.isfinite(beliefs).all()
    assert (beliefs[..., SPREAD] >= 0.0).all()
    assert (beliefs[:, 1, CENTRE] <= largest).all()
    assert largest == pytest.approx([0.2, 0.1])  # rounded up to units
    assert bandit.ask().arm in ("a", "b")


def test_a_stock_that_only_pulls_refill():
    """Without income no round's income can be the measure of a cost; what is in stock is there to be spent."""
    refill = pl.Shifted(pl.Scaled(pl.Beta(0.5), 0.8), -0.8)
    problem = pl.Problem([pl.Beta(0.8), pl.Beta(0.1)], [pl.Beta(0.3), refill], budget=0)
    run = pl.simulate(problem, "index", rounds=ROUNDS, trials=2)["index"]
    assert problem.optimum.value == pytest.approx(0.5)
    assert (run.steady_regret[:, -1] < 0.05 * 0.5 * ROUNDS).all()


def test_without_income_it_looks_around_and_sits_out():
    """The null arm is then a base of its own, of which there are neither pulls nor a largest cost."""
    bandit = pl.Bandit(["a", "b"], 0.0, "index", max_cost=0.5)
    bandit.observe("a", reward=0.5, cost=0.2)
    assert bandit.ask().arm is None
    bandit.credit(1000.0, rate=False)
    rounds = 400
    for _ in range(rounds):
        decision = bandit.ask()
        if decision.arm is not None:
            bandit.tell(decision.id, reward=0.5, cost=0.2)
    assert all(estimate.pulls == 1 + int(math.log(rounds + 1)) for estimate in bandit.estimates().values())
    assert bandit.ask().arm is None


def test_what_an_arm_had_said_before_it_left_is_not_taken_out_twice():
    """Common means are means, and variances are none below 0, while arms come and go and news is late."""
    chance = random.Random(3)
    bandit, waiting = pl.Bandit(["a", "b", "c"], 0.3, "index", seed=3), []
    for _ in range(400):
        decision = bandit.ask()
        waiting += [] if decision.arm is None else [decision.id]
        (bandit.pause if chance.random() < 0.5 else bandit.resume)(chance.choice("abc"))
        while waiting and chance.random() < 0.6:
            id = waiting.pop(chance.randrange(len(waiting)))
            bandit.tell(id, reward=float(chance.random() < 0.02), cost=float(chance.random() < 0.03))
        memory = bandit._ledger.arm_set.playing.memory
        assert ((memory.common[:, 0] > 0.0) & (memory.common[:, 0] < 1.0)).all()
        assert (memory.beliefs[:, :, SPREAD] >= 0.0).all()

"""Logs to replay, and replays by hand: loops of ask and tell."""

import math
from fractions import Fraction

import numpy as np
from play import Game, is_pull

import paceline as pl
from paceline.policies.policy import Policy, Setting

MEANS, COST_MEANS = np.array([0.45, 0.7, 0.8]), np.array([0.3, 0.75, 0.8])


def beta_table(rows: int, seed: object = 1) -> tuple[np.ndarray, np.ndarray]:
    """Outcomes of the three arms of the paper."""
    generator = np.random.default_rng(seed)
    return (
        generator.beta(10 * MEANS, 10 * (1 - MEANS), (rows, 3)),
        generator.beta(10 * COST_MEANS, 10 * (1 - COST_MEANS), (rows, 3)),
    )


def shown_at_random(
    rows: int, seed: int = 1, share: tuple[float, ...] = (1 / 3, 1 / 3, 1 / 3)
) -> dict[str, np.ndarray]:
    """A log of the three arms of the paper, each shown with its share."""
    rewards, costs = beta_table(rows, [seed, 1])
    arm = np.random.default_rng([seed, 2]).choice(3, size=rows, p=share)
    at = np.arange(rows)
    return {"arm": arm, "reward": rewards[at, arm], "cost": costs[at, arm], "propensity": np.array(share)[arm]}


def sifted_by_hand(game: Game, rows, most_rounds: int) -> list[tuple[Fraction, ...]]:
    """Rejection replay straight from the page: the true costs of each settled round, 0 where nothing was pulled."""
    costs = []
    events = iter(rows)
    while len(costs) < most_rounds:
        decision = game.ask()
        if not is_pull(game.state, decision.arm):
            costs.append((Fraction(0),) * game.setting.resources)
            continue
        for shown, reward, cost in events:
            if shown == decision.arm:
                game.tell(decision, reward, cost)
                costs.append(tuple(map(Fraction, cost)))
                break
        else:
            break
    return costs


def least_headrooms(costs: list[tuple[Fraction, ...]], *rates: float) -> list[Fraction]:
    """For each resource the smallest  rate * t - spent so far  over all rounds, in exact arithmetic."""
    sums = np.cumsum(np.array(costs, dtype=object), axis=0)
    return [min(Fraction(rate) * (t + 1) - spent for t, spent in enumerate(sums[:, d])) for d, rate in enumerate(rates)]


def new_game(policy: Policy, setting: Setting, seed: int, stream: int) -> Game:
    """A policy about to play in no world."""
    return Game(policy, setting, policy.params(setting), policy.new_storage(setting, seed, stream), None)


def played_by_hand(game: Game, rewards: np.ndarray, costs: np.ndarray) -> list[tuple[Fraction, ...]]:
    """Row t is round t: the true costs of each round."""
    spent = []
    for reward, cost in zip(rewards.tolist(), costs.tolist(), strict=True):
        decision = game.ask()
        if is_pull(game.state, decision.arm):
            game.tell(decision, reward[decision.arm], tuple(cost[decision.arm]))
            spent.append(tuple(map(Fraction, cost[decision.arm])))
        else:
            spent.append((Fraction(0),) * game.setting.resources)
    return spent


def agrees(replayed: list[float], simulated: np.ndarray) -> bool:
    """Whether two means agree, up to a chance of 1 in 10,000.

    The quantile of Student's t with the 39 degrees of freedom of 40 logs, beyond which lie 5e-5 on either side, is
    4.33. The means are those of independent logs and trials.
    """
    assert len(replayed) == 40
    error = math.hypot(np.std(replayed, ddof=1) / math.sqrt(40), simulated.std(ddof=1) / math.sqrt(simulated.size))
    return abs(np.mean(replayed) - simulated.mean()) < 4.33 * error


def simulated(problem: pl.Problem, policy: str, rounds: float) -> np.ndarray:
    """Reward per round in 400 trials."""
    run = pl.simulate(problem, policy, rounds=round(rounds), trials=400, seed=99)[policy]
    return run.totals.earned[:, -1] / round(rounds)

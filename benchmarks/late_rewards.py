"""Clicks that come late or never, with `silence`: what is learned when, how honest the numbers are, what it costs.

A live bandit is told costs at once and clicks up to a window later. Four rules are compared on the same problems, the
first the one to be cured:

    as told      clicks teach when they come, silences when the window is over
    same age     every reward teaches when its window is over
    as trials    a pull whose window is open is a whole trial from the beginning, clicks teach when they come
    corrected    rewards are corrected for their delay (live/late_rewards.py), for policies whose beliefs can be
"""

import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

from paceline import Bandit
from paceline.live import late_rewards, ledger, outcomes
from paceline.problems.optimum import solve

RULES = ("as told", "same age", "as trials", "corrected")
WINDOW, ROUNDS, RUNS, LOOKS = 1000, 5000, 20, 25


class Run(NamedTuple):
    """What became of one run."""

    missed: bool  # whether the interval of some arm was ever wrong
    bias: float  # of the learned mean rewards after two windows, relative, weighted by pulls
    regret: float


@contextmanager
def rule_of(name: str) -> Iterator[None]:
    """Let bandits learn by one of the rules."""
    with ExitStack() as patches:
        if name in ("as told", "same age"):
            patches.enter_context(patch.object(ledger, "can_correct", return_value=False))
        if name == "as told":
            patches.enter_context(patch.object(outcomes, "keeps_back", return_value=False))
        if name == "as trials":
            patches.enter_context(patch.object(late_rewards, "no_weights", whole_trials))
            patches.enter_context(patch.object(late_rewards.LateRewards, "weigh"))  # what it weighs stays as it is
        yield


def whole_trials(arms: int) -> np.ndarray[Any, Any]:
    """What pulls are worth where each is a trial, whatever its age."""
    return np.ones((arms, late_rewards.RING))


def run(rule: str, policy: Any, seed: int, rounds: int = ROUNDS, window: int = WINDOW, arms: int | None = None) -> Run:
    """Play one problem: a few arms with rare clicks, which come at an exponential time with a third of the window."""
    rng, now = np.random.default_rng(seed), [0]
    count = int(rng.integers(3, 7)) if arms is None else arms
    clicks, costs, budget = rng.uniform(0.02, 0.15, count), rng.uniform(0.1, 0.9, count), float(rng.uniform(0.25, 0.6))
    best, names = solve(clicks, costs, budget), [str(arm) for arm in range(count)]
    pulls, spent, idle, missed, bias = np.zeros(count), 0.0, 0, False, 0.0
    coming: dict[int, list[int]] = defaultdict(list)
    with rule_of(rule):
        bandit = Bandit(names, budget, policy, expires=window, silence=0.0, seed=seed, clock=lambda: float(now[0]))
        for t in range(rounds):
            now[0] = t
            for number in coming.pop(t, ()):
                bandit.tell(number, reward=1.0)
            decision = bandit.ask()
            chance, wait, cost = rng.random(), rng.exponential(window / 3), rng.uniform(0.5, 1.5)
            if decision.arm is None:
                idle += 1
            else:
                arm = int(decision.arm)
                cost = costs[arm] + (cost - 1.0) * min(costs[arm], 1.0 - costs[arm])
                bandit.tell(decision.id, cost=cost)
                pulls[arm] += 1
                spent += cost
                if chance < clicks[arm]:
                    coming[t + 1 + int(wait) % (window - 1)].append(decision.id)
            if t % (rounds // LOOKS) == 0:
                seen = [bandit.estimates()[name].reward for name in names]
                missed = missed or any(not one.low <= mean <= one.high for one, mean in zip(seen, clicks, strict=True))
            if t == 2 * window:
                learned = bandit._ledger.arm_set.full.arms.reward_mean
                bias = float(pulls @ (learned - clicks) / (pulls @ clicks))
    regret = best.gaps @ pulls + best.level * idle + best.price * (budget * rounds - spent)
    return Run(missed, bias, float(regret))


def main(policies: Sequence[str] = ("index", "thompson")) -> None:
    for policy in policies:
        print(f"  {policy}: {RUNS} problems, {ROUNDS} rounds, window {WINDOW}")
        for rule in RULES:
            runs = [run(rule, policy, seed) for seed in range(RUNS)]
            regrets = np.array([each.regret for each in runs])
            print(
                f"    {rule:<10} intervals that missed {sum(each.missed for each in runs):3d} of {RUNS},"
                f"  bias after two windows {100 * np.mean([each.bias for each in runs]):+7.1f} %,"
                f"  regret {regrets.mean():6.1f} +- {regrets.std(ddof=1) / len(runs) ** 0.5:.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main(sys.argv[1:] or ("index", "thompson"))

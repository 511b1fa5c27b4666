"""Decisions left to chance have the probability that they say."""

from collections import Counter

import numpy as np
import pytest

import paceline as pl
from paceline.errors import InvalidValue

MAX_COSTS = {"a": 0.2, "b": 0.5, "c": 1.0, "d": 3.0}
EPSILON = 0.3


def played(seed, rounds):
    """A bandit after some rounds, always the same but for its own chance in the last one."""
    bandit = pl.Bandit(list(MAX_COSTS), 0.4, pl.IndexPacer(epsilon=EPSILON), max_cost=MAX_COSTS, seed=seed)
    for _ in range(rounds):
        decision = bandit.ask()
        if decision.arm is not None:
            bandit.tell(decision.id, reward=0.5, cost=0.6 * MAX_COSTS[decision.arm])
    return bandit


@pytest.mark.slow
def test_frequencies_are_the_propensities():
    """Many bandits in their third round: those with the same headroom want the same, and differ by chance alone."""
    drawn, said = {}, {}
    for seed in range(6000):
        bandit = played(seed, 2)
        story = tuple(sorted((name, bandit.estimates()[name].pulls) for name in MAX_COSTS))
        decision = bandit.ask()
        drawn.setdefault(story, Counter())[decision.arm] += 1
        said.setdefault(story, {}).setdefault(decision.arm, set()).add(decision.propensity)
    checked = 0
    for story, counts in drawn.items():
        total = sum(counts.values())
        if total < 300:
            continue
        for arm, count in counts.items():
            (propensity,) = said[story][arm]
            error = np.sqrt(propensity * (1 - propensity) / total)
            assert abs(count / total - propensity) <= 4.5 * error
            checked += 1
        assert sum(next(iter(one)) for one in said[story].values()) == pytest.approx(1.0)
    assert checked >= 4


def test_propensities_of_a_round_are_epsilon_over_the_affordable_arms():
    bandit = pl.Bandit(["a", "b"], 1.0, pl.IndexPacer(epsilon=0.5), max_cost={"a": 1.0, "b": 1.0}, seed=3)
    seen = set()
    for _ in range(200):
        decision = bandit.ask()
        seen.add((decision.situation == "left to chance", decision.propensity))
        bandit.tell(decision.id, reward=1.0 if decision.arm == "a" else 0.0, cost=0.5)
    assert seen == {(False, 0.75), (True, 0.75), (True, 0.25)}


def test_round_without_arms_in_play_is_certain():
    bandit = pl.Bandit(["a", "b"], 1.0, pl.IndexPacer(epsilon=0.5))
    bandit.pause("a")
    bandit.pause("b")
    assert bandit.ask().propensity == 1.0


def test_decision_that_is_certain_has_the_probability_one():
    bandit = pl.Bandit(["a"], 0.1, pl.IndexPacer(epsilon=0.5), max_cost={"a": 1.0})
    decision = bandit.ask()  # nothing can be paid for
    assert (decision.arm, decision.propensity) == (None, 1.0)


def test_without_chance_there_is_no_propensity():
    for policy in ("index", "thompson", "epsilon-greedy"):
        assert pl.Bandit(["a"], 1.0, policy).ask().propensity is None


def test_share_of_rounds_left_to_chance_is_epsilon():
    bandit = played(1, 0)
    count = 0
    for _ in range(2000):
        decision = bandit.ask()
        count += decision.situation == "left to chance"
        if decision.arm is not None:
            bandit.tell(decision.id, reward=0.5, cost=0.1 * MAX_COSTS[decision.arm])
    assert abs(count / 2000 - EPSILON) < 4.5 * np.sqrt(EPSILON * (1 - EPSILON) / 2000)


@pytest.mark.parametrize("arms", [None, ["a", "b", "d"]], ids=["all arms", "some"])
def test_weights_of_uniform_decisions_add_up_to_the_rounds(tmp_path, arms):
    """The sum of 1 / propensity over the rounds with a decision is the number of rounds in which it was possible."""
    most = {"a": 0.25, "b": 0.5, "c": 1.0, "d": 3.0}  # amounts that floats hold: nothing is rounded
    among = arms or list(most)
    weights, possible, variance = Counter(), Counter(), Counter()
    with pl.Bandit(list(most), 0.25, "uniform", most, seed=5, journal=tmp_path / "journal") as bandit:
        for _ in range(4000):
            decision = bandit.ask(arms=arms)
            headroom = bandit.headroom + (0.0 if decision.arm is None else most[decision.arm])
            payable = [arm for arm in among if most[arm] <= headroom]
            chances = dict.fromkeys(payable, 1 / len(among))
            if len(payable) < len(among):
                chances[None] = 1 - len(payable) / len(among)
            assert decision.propensity == pytest.approx(chances[decision.arm])
            weights[decision.arm] += 1 / decision.propensity
            for choice, chance in chances.items():
                possible[choice] += 1
                variance[choice] += 1 / chance - 1
            if decision.arm is not None:
                bandit.tell(decision.id, reward=0.5, cost=0.25 * most[decision.arm])
        logged = [event["propensity"] for event in bandit.events() if event["event"] == "ask"]
    assert sum(1 / chance for chance in logged) == pytest.approx(weights.total())
    assert set(possible) == {*among, None}
    for choice, count in possible.items():
        assert abs(weights[choice] - count) < 4.5 * np.sqrt(variance[choice])


@pytest.mark.parametrize("epsilon", [-0.1, 1.5, float("nan"), "x"])
def test_probability_that_is_none_is_refused(epsilon):
    with pytest.raises(InvalidValue, match="epsilon of index must be"):
        pl.IndexPacer(epsilon=epsilon)

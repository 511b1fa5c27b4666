"""The index pacer with several resources: beliefs, draws, and the arms that no base leaves room for."""

import itertools
import math

import numpy as np
import pytest

import paceline as pl
from paceline.kernels.jit import without_compiler
from paceline.kernels.state import state_in
from paceline.policies.score_draws import draw_related

SIDES = 3


def outcome(generator, arm):
    """A ticket that is bought brings its reward and takes both costs; one that is not does neither."""
    bought = generator.random() < (0.3, 0.6)[arm]
    size = generator.uniform(0.2, 0.8)
    return bought * (0.5 + 0.5 * size), {"money": bought * size * (1.0, 0.5)[arm], "time": bought * 0.4 * (1.0 - size)}


def told(seed, pulls, worker=None):
    """A bandit that was told outcomes of two arms, and the outcomes, (n, 3) for each."""
    bandit = pl.Bandit(
        ["a", "b"],
        budget={"money": 0.2, "time": 0.1},
        max_cost={"money": {"a": 1.0, "b": 0.5}, "time": 0.5},
        policy="index",
        seed=seed,
        worker=worker,
    )
    generator, seen = np.random.default_rng(seed), ([], [])
    for number in range(pulls):
        arm = number % 2
        reward, costs = outcome(generator, arm)
        bandit.observe("ab"[arm], reward=reward, cost=costs)
        seen[arm].append((reward, costs["money"], costs["time"]))
    return bandit, [np.array(rows) for rows in seen]


def memory_of(bandit):
    """What its policy remembers."""
    return bandit._ledger.arm_set.playing.memory


def scales_of(bandit):
    """What counts as 1 to its policy."""
    return np.array(bandit.report()["scales"])


def test_covariances_are_those_of_the_outcomes_shrunk_to_the_common_correlation():
    bandit, seen = told(1, 60)
    memory, pairs = memory_of(bandit), list(itertools.combinations(range(SIDES), 2))
    for arm, rows in enumerate(seen):
        scaled, n = rows / scales_of(bandit), len(rows)
        for pair, (one, other) in enumerate(pairs):
            assert memory.joint[arm, pair] == pytest.approx(scaled[:, one] @ scaled[:, other])
            most = math.sqrt(memory.beliefs[arm, one, 1] * memory.beliefs[arm, other, 1])
            own = n * np.cov(scaled[:, one], scaled[:, other], bias=True)[0, 1]
            believed = (own + 4 * memory.shared[pair] * most) / (n + 4)
            pulls = math.sqrt((n + memory.common[one, 2]) * (n + memory.common[other, 2]))
            assert memory.moments[arm, one, 2 + other] == pytest.approx(np.clip(believed, -most, most) / pulls)
            assert memory.moments[arm, other, 2 + one] == memory.moments[arm, one, 2 + other]
    assert (memory.shared[:2] > 0.3).all()  # what is bought is paid for


def test_draws_move_the_score_by_what_is_known_of_it():
    bandit, _ = told(2, 200)
    storage = bandit._ledger.arm_set.playing
    state, prices = state_in(storage), np.array([0.9, 0.7])
    storage.memory.moments[:, :, 1] = 0.0  # no skew: the score is then exactly normal
    storage.memory.prices[:] = prices
    draw, rounds, push = without_compiler(draw_related), 1500, np.array([1.0, *-prices])
    scores = np.zeros((rounds, 2))
    for t in range(rounds):
        state.clock.t = t + 1
        draw((0.0, 0.0), state)
        scores[t] = state.scratch.rewards - prices @ state.scratch.costs
    for arm in range(2):
        moments = storage.memory.moments[arm]
        moved = scores[:, arm] - push @ moments[:, 0]
        spread, plain = push @ moments[:, 2:] @ push, push**2 @ np.diag(moments[:, 2:])
        drawn = moved[np.abs(moved) > 1e-12]
        assert drawn.size == pytest.approx(rounds / 2, abs=4 * math.sqrt(rounds / 4))  # half of them, by toss
        # The variance of n normals has a deviation of sqrt(2 / n) of it: four of them.
        assert drawn.var() == pytest.approx(spread, rel=4 * math.sqrt(2 / drawn.size))
        assert spread < 0.5 * plain  # as if independent, it would be drawn far too wide


def test_reports_carry_the_products_of_all_sides():
    (first, _), (second, _), (both, _) = told(3, 40, "x"), told(4, 20, "y"), told(3, 40, "z")
    assert {"joint 0 1", "joint 0 2", "joint 1 2"} <= first.report()["arms"]["a"].keys()
    expected = memory_of(first).joint[:, :3] + memory_of(second).joint[:, :3]
    both.merge({"y": second.report()})
    assert memory_of(both).joint[:, :3] == pytest.approx(expected)
    for name in ("joint 0 1", "joint 0 2", "joint 1 2"):  # what was merged is not reported again
        assert both.report()["arms"]["a"][name] == pytest.approx(first.report()["arms"]["a"][name])


def test_a_report_without_products_counts_as_if_they_were_independent():
    (bandit, _), (other, seen) = told(5, 0, "x"), told(6, 20, "y")
    report = other.report()
    for arm in report["arms"].values():
        for name in [name for name in arm if name.startswith("joint")]:
            del arm[name]
    bandit.merge({"y": report})
    sums = seen[0].sum(axis=0) / scales_of(bandit)
    products = [sums[one] * sums[other] / 10 for one, other in itertools.combinations(range(SIDES), 2)]
    assert memory_of(bandit).joint[0, :3] == pytest.approx(products)


def test_an_arm_that_no_base_leaves_room_for_is_looked_at():
    # Waiting is free here (the null arm is in every base), so whatever comes in goes into the arm of small costs, and
    # the headroom would never cover the other. What is promised is log(t) / 4 pulls of it; what they lead to is luck.
    problem = pl.Problem.beta(
        [0.3, 0.9],
        {"money": [0.06, 0.08], "time": [0.06, 0.08]},
        {"money": 0.02, "time": 0.03},
        max_costs={"money": [0.1, 1.0], "time": [0.1, 1.0]},
    )
    run = pl.simulate(problem, "index", rounds=10_000, trials=8, seed=1, checkpoints=1)["index"]
    assert (run.pulls[:, 1] >= math.log(10_000) / 4).all()


def test_another_policy_does_not_take_what_others_have_reported_for_its_own(tmp_path):
    """What it guesses of sums that the one before has not kept is of all pulls, and part of these are of others."""
    bandit, *others = (pl.Bandit(["a"], 0.5, "thompson", worker=name) for name in "xyz")
    for number, one in enumerate((bandit, *others), 1):
        for _ in range(10 * number):
            one.observe("a", reward=0.5, cost=0.1 * number)
    bandit.merge({one.report()["worker"]: one.report() for one in others})
    for one in (bandit, *others):
        one.set(policy="index")
    bandit.save(tmp_path / "saved")
    own = bandit.report()["arms"]["a"]["joint"]
    assert pl.Bandit.load(tmp_path / "saved").report()["arms"]["a"]["joint"] == pytest.approx(own, rel=1e-9)
    total = memory_of(bandit).joint[0, 0]
    bandit.merge({one.report()["worker"]: one.report() for one in others})
    assert memory_of(bandit).joint[0, 0] == pytest.approx(total, rel=1e-9)
    assert bandit.report()["arms"]["a"]["joint"] == pytest.approx(own, rel=1e-9)

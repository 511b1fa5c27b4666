"""Replays of logged outcomes against naive loops, against the simulator, and against logs that are wrong."""

import hashlib
import json
import math
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from lanes import WITH_TRUTH, named_in_lanes
from matplotlib.figure import Figure
from play import THREE_ARMS, Game, begin, contents
from replaying import (
    COST_MEANS,
    MEANS,
    agrees,
    beta_table,
    least_headrooms,
    new_game,
    played_by_hand,
    shown_at_random,
    sifted_by_hand,
    simulated,
)

import paceline as pl
from paceline.grafting import simulator_for
from paceline.kernels.page import NO_PAGE
from paceline.kernels.state import SKIP, Decision
from paceline.offline.data import read_log_table
from paceline.offline.logged import weighted_mean
from paceline.offline.logs import full_log, random_log
from paceline.offline.replays import rounds_of
from paceline.policies import POLICIES, make_policy
from paceline.policies.policy import Policy, Setting, learn_nothing
from paceline.worlds.log import LogWorld
from paceline.worlds.table import TableWorld

PLAYABLE = [name for name in POLICIES if name not in WITH_TRUTH]


def full_columns(rewards: np.ndarray, costs: np.ndarray) -> dict[str, np.ndarray]:
    """A full log with the columns r0, r1, ..., c0, c1, ..."""
    return {f"{kind}{arm}": table[:, arm] for kind, table in (("r", rewards), ("c", costs)) for arm in range(3)}


FULL = {"rewards": {arm: f"r{arm}" for arm in range(3)}, "costs": {arm: f"c{arm}" for arm in range(3)}}


# The worlds, against loops of ask and tell.


def play_in(game: Game, world, until: int) -> None:
    """Play on in another world than that of the game."""
    simulator_for(type(game.policy), type(world))(game.params, game.storage, world.data, NO_PAGE, until)


@pytest.mark.parametrize("name", named_in_lanes(POLICIES))
def test_a_table_is_played_as_by_hand(name):
    rewards, costs = beta_table(800)
    by_hand, at_once = begin(make_policy(name), THREE_ARMS), begin(make_policy(name), THREE_ARMS)
    played_by_hand(by_hand, rewards, costs[..., None])
    play_in(at_once, TableWorld(rewards, costs[..., None]), 800)
    assert at_once.books.tally.t == 800
    assert contents(at_once.storage) == contents(by_hand.storage)


def test_a_table_ends_with_its_rows():
    rewards, costs = beta_table(100)
    game = begin(make_policy("uniform"), THREE_ARMS)
    play_in(game, TableWorld(rewards, costs[..., None]), 10_000)
    assert game.books.tally.idle + game.books.pulls.sum() == game.books.tally.t - 1 >= 100


@pytest.mark.parametrize("most_rounds", [300, 10_000])
@pytest.mark.parametrize("name", named_in_lanes(POLICIES))
def test_rows_are_sifted_as_by_hand(name, most_rounds):
    log = shown_at_random(1200)
    columns = log["arm"], log["reward"], log["cost"]
    by_hand, at_once = begin(make_policy(name), THREE_ARMS), begin(make_policy(name), THREE_ARMS)
    rows = [(arm, reward, (cost,)) for arm, reward, cost in zip(*(c.tolist() for c in columns), strict=True)]
    costs = sifted_by_hand(by_hand, rows, most_rounds)
    play_in(at_once, LogWorld(log["arm"], log["reward"], log["cost"][:, None]), most_rounds)
    assert contents(at_once.storage) == contents(by_hand.storage)
    tally, pulls = at_once.books.tally, at_once.books.pulls
    assert tally.idle + pulls.sum() == len(costs)
    if most_rounds == 300:
        assert tally.t == 300
    else:  # a third of the rows, and the rounds sat out; the last pull found no row
        assert 300 < pulls.sum() < 500
        assert tally.t == len(costs) + 1


class Nothing(NamedTuple):
    """Compiled code takes no empty tuple."""

    nothing: float


def choose_nothing(params, state):
    """The null arm."""
    return Decision(state.arms.pulls.size, 1, SKIP)


@dataclass(frozen=True)
class Idler(Policy):
    """Never pulls."""

    name = "idler"
    reasons = ("guard", "null arm")
    choose = staticmethod(choose_nothing)
    learn = staticmethod(learn_nothing)

    def params(self, setting):
        return Nothing(0.0)


def test_a_policy_that_never_pulls_comes_to_an_end():
    found = pl.replay(shown_at_random(50), Idler(), budget=0.5, repeats=2)["idler", 0.5]
    assert (found.rounds, found.rows, found.idle.value, found.reward.value) == (50, 0, 1, 0)


def choose_a_fourth_arm(params, state):
    """An arm that three arms do not have."""
    return Decision(4, 1, SKIP)


@dataclass(frozen=True)
class Stray(Idler):
    """Chooses what it must not."""

    name = "stray"
    choose = staticmethod(choose_a_fourth_arm)


def test_a_choice_that_is_none_is_refused():
    words = r"Stray.choose \(line \d+\) must choose an arm from -1 \(skip\) to 3 \(null arm\), got 4"
    with pytest.raises(pl.InvalidPolicy, match=words):
        pl.replay(shown_at_random(50), Stray(), budget=0.5, repeats=2)


class InTurn(pl.PythonPolicy):
    """One arm after the other; counts what it is told."""

    def reset(self, setting):
        self.arms, self.told = setting.arms, [0] * setting.arms

    def choose(self, state):
        return sum(self.told) % self.arms

    def learn(self, state, arm, reward, cost):
        self.told[arm] += 1


def test_a_policy_in_plain_python_is_replayed():
    found = pl.replay(shown_at_random(300), InTurn(), budget=0.5, repeats=3)["InTurn", 0.5]
    pulls = list(found.ordered.pulls[:, 0])
    assert all(max(one) - min(one) <= 1 for one in pulls)
    assert min(map(sum, pulls)) > 60
    assert found.min_headroom >= 0
    rewards, costs = beta_table(60)
    full = pl.replay(full_columns(rewards, costs), InTurn(), budget=1.0, repeats=2, **FULL)["InTurn", 1.0]
    assert full.pulls == {"0": 20, "1": 20, "2": 20}
    assert full.ordered.earned[0, 0] == pytest.approx(rewards[np.arange(60), np.arange(60) % 3].sum())


# The whole replay, against a loop by hand in the units of the user.


LARGEST = {"0": 4.0, "1": 8.0, "2": 8.0}
PRIZE = 20.0


def in_money(log: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Rewards of up to 20 and costs of up to 8; the costs of arm 0 are below 4."""
    halved = np.where(log["arm"] == 0, 4.0, 8.0)
    return {**log, "reward": PRIZE * log["reward"], "cost": halved * log["cost"]}


@pytest.mark.parametrize("name", PLAYABLE)
def test_replay_of_a_random_log_is_the_loop_by_hand(name):
    log = in_money(shown_at_random(600, share=(0.5, 0.3, 0.2)))
    arguments = {"propensity": "propensity", "max_cost": LARGEST, "max_reward": PRIZE, "repeats": 3, "seed": 7}
    found = pl.replay(log, name, budget=[3.0], **arguments)[name, 3.0]
    setting = Setting(3, (3.0 / 8.0,), 600, max_costs=((0.5,), (1.0,), (1.0,)))
    policy = make_policy(name)
    headrooms = []
    for stream in range(6):
        generator = np.random.default_rng([7, stream])
        at = generator.permutation(600) if stream < 3 else generator.integers(600, size=600)
        stays = generator.random(600) < 0.2 / log["propensity"][at]
        rows = [
            (int(log["arm"][row]), float(log["reward"][row]) / PRIZE, (float(log["cost"][row]) / 8.0,))
            for row in at[stays].tolist()
        ]
        game = new_game(policy, setting, 7, stream)
        costs = sifted_by_hand(game, rows, 600)
        totals = found.ordered if stream < 3 else found.resampled
        where = stream % 3
        assert totals.earned[where, 0] == game.books.tally.earned
        assert totals.pulls[where, 0].tolist() == game.books.pulls.tolist()
        assert rounds_of(totals)[where] == len(costs)
        headrooms += least_headrooms(costs, 3 / 8)
    assert min(headrooms) >= 0
    assert found.min_headroom == pytest.approx(8.0 * float(min(headrooms)), abs=1e-5)
    assert found.min_headroom >= 0
    rounds = rounds_of(found.ordered)
    assert found.reward.value == pytest.approx(np.mean(PRIZE * found.ordered.earned[:, 0] / rounds), rel=1e-12)
    again = PRIZE * found.resampled.earned[:, 0] / rounds_of(found.resampled)
    assert again.min() <= found.reward.low < found.reward.high <= again.max()
    assert found.spent.value == pytest.approx(np.mean(8.0 * found.ordered.spent[:, 0] / rounds), rel=1e-12)
    assert found.spent.value <= 3.0
    assert found.rows == pytest.approx(sum(found.pulls.values()))
    assert found.rounds == pytest.approx(rounds.mean())
    assert found.idle.value == pytest.approx((found.ordered.idle[:, 0] / rounds).mean())


@pytest.mark.parametrize("name", PLAYABLE)
def test_replay_of_a_full_log_is_the_loop_by_hand(name):
    rewards, costs = beta_table(500)
    found = pl.replay(full_columns(rewards, costs), name, budget=0.4, seed=5, repeats=3, **FULL)[name, 0.4]
    setting, policy = Setting(3, (0.4,), 500), make_policy(name)
    for stream in range(4):
        at = np.arange(500) if stream == 0 else np.random.default_rng([5, stream]).integers(500, size=500)
        game = new_game(policy, setting, 5, stream)
        spent = played_by_hand(game, rewards[at], costs[at, :, None])
        (least,) = least_headrooms(spent, 0.4)
        totals = found.ordered if stream == 0 else found.resampled
        where = max(stream - 1, 0)
        assert least >= 0
        assert totals.min_headroom[where] == pytest.approx(float(least), abs=1e-6)
        assert totals.earned[where, 0] == game.books.tally.earned
        assert totals.pulls[where, 0].tolist() == game.books.pulls.tolist()
        if stream == 0:
            assert found.reward.value == game.books.tally.earned / 500
            assert found.pulls == {str(arm): pulls for arm, pulls in enumerate(game.books.pulls.tolist())}
    assert found.rounds == 500
    assert found.resampled.earned.shape == (3, 1)


@pytest.mark.parametrize("costs", ["largest", "coin"])
@pytest.mark.parametrize("name", PLAYABLE)
def test_the_line_holds_in_every_replay(name, costs):
    log = shown_at_random(300)
    log["cost"] = np.ones(300) if costs == "largest" else (log["cost"] > 0.5) * 1.0
    for budget in (0.05, 0.37, 1.0):
        found = pl.replay(log, name, budget=budget, repeats=20)[name, budget]
        for part in (found.ordered, found.resampled):
            assert (part.min_headroom >= 0).all()
            assert (part.spent[:, 0] <= budget * rounds_of(part)).all()
            assert (part.spent[:, 0] > 0).all()


# What the first edition did, kept to compare bit by bit.

FIRST = [
    "thompson",
    "optimistic",
    {"suak": pl.SUAK(order="first")},
    "one-phase",
    "primal-dual",
    "ucb-simplex",
    "uniform",
]
KEPT = {
    "random": "241bef85f21d7fee",
    "propensities": "9940b66e3706f55c",
    "full": "8f7339cb5b821fd1",
}


def digest_of(found) -> str:
    """A digest of all totals of all replays but the skips, which are counted otherwise since."""
    fields = ("earned", "spent", "idle", "pulls", "min_headroom")
    totals = [getattr(part, name) for one in found.values() for part in (one.ordered, one.resampled) for name in fields]
    return hashlib.sha256(json.dumps([array.tolist() for array in totals]).encode()).hexdigest()[:16]


def test_replays_have_not_changed_by_a_bit():
    generator = np.random.default_rng(12)
    arm, chance = generator.integers(4, size=1500), generator.random((1500, 2))
    share = np.array([0.4, 0.3, 0.2, 0.1])
    log = {"arm": arm, "reward": chance[:, 0] * (arm + 1), "cost": chance[:, 1] * (arm + 1) ** 2, "p": share[arm]}
    scale = {"max_cost": {str(number): (number + 1) ** 2 for number in range(4)}, "max_reward": 4, "repeats": 3}
    table = {f"{kind}{number}": generator.random(500) for kind in "rc" for number in range(3)}
    found = {
        "random": pl.replay(log, FIRST, budget=[1.5, 6.0, 20.0], seed=5, **scale),
        "propensities": pl.replay(log, FIRST, budget=[0.7, 3.0], propensity="p", **scale),
        "full": pl.replay(table, FIRST, budget=[0.1, 0.4, 0.9], seed=2**63, repeats=3, **FULL),
    }
    assert {name: digest_of(one) for name, one in found.items()} == KEPT


# Against the simulator.


@pytest.mark.statistical
@pytest.mark.parametrize("policy", ["thompson", "suak", "uniform"])
@pytest.mark.parametrize("share", [(1 / 3, 1 / 3, 1 / 3), (0.6, 0.3, 0.1)])
def test_estimates_agree_with_the_simulator(policy, share):
    found = [
        pl.replay(shown_at_random(1500, seed, share), policy, budget=0.5, propensity="propensity", repeats=10)
        for seed in range(40)
    ]
    replayed = [one[policy, 0.5] for one in found]
    rewards = [one.reward.value for one in replayed]
    truth = simulated(THREE_ARMS, policy, np.mean([one.rounds for one in replayed]))
    assert agrees(rewards, truth)
    assert not agrees([reward + 0.01 for reward in rewards], truth)  # the test would notice


def confounded(rows: int, seed: int) -> dict[str, np.ndarray]:
    """Arm "a" was mostly shown to people who like it: half of them do, and get it with probability 0.8, not 0.2.

    Shown to everybody, "a" earns 0.5 and "b" 0.6, at the same cost.
    """
    generator = np.random.default_rng([seed, 3])
    likes = generator.random(rows) < 0.5
    is_a = generator.random(rows) < np.where(likes, 0.8, 0.2)
    mean = np.where(is_a, np.where(likes, 0.9, 0.1), 0.6)
    return {
        "arm": np.where(is_a, "a", "b"),
        "reward": (generator.random(rows) < mean) * 1.0,
        "cost": (generator.random(rows) < 0.5) * 1.0,
        "p": np.where(is_a == likes, 0.8, 0.2),
    }


@pytest.mark.statistical
def test_propensities_undo_a_biased_choice_of_arms():
    logs = [confounded(2000, seed) for seed in range(40)]
    heeded = [pl.replay(log, budget=1.0, propensity="p", repeats=5)["index", 1.0] for log in logs]
    ignored = [pl.replay(log, budget=1.0, repeats=5)["index", 1.0] for log in logs]
    problem = pl.Problem.bernoulli([0.5, 0.6], [0.5, 0.5], budget=1.0)
    truth = simulated(problem, "index", np.mean([one.rounds for one in heeded]))
    assert agrees([one.reward.value for one in heeded], truth)
    assert not agrees([one.reward.value for one in ignored], truth)
    assert np.mean([one.reward.value for one in ignored]) > truth.mean() + 0.1  # about 0.74: those who like it
    found = pl.replay(confounded(20_000, 0), budget=1.0, propensity="p", repeats=2).arms["a"].reward
    assert abs(found.value - 0.5) < 3.9 * (found.high - found.low) / (2 * 1.96)  # 1 in 10,000
    assert found.high < 0.6
    assert pl.replay(confounded(20_000, 0), budget=1.0, repeats=2).arms["a"].reward.low > 0.7


def test_intervals_of_the_means_hold_the_truth_as_often_as_they_say():
    """40 logs, 3 arms, reward and cost: at 0.95 fewer than 213 or all of the 240 come up 4 in 100,000 times."""
    held = 0
    for seed in range(40):
        arms = pl.replay(shown_at_random(900, seed, (0.6, 0.3, 0.1)), propensity="propensity", budget=1, repeats=2).arms
        for arm, reward, cost in zip(arms.values(), MEANS, COST_MEANS, strict=True):
            held += int(arm.reward.low <= reward <= arm.reward.high) + int(arm.cost.low <= cost <= arm.cost.high)
    assert 213 <= held < 240


def test_mean_with_weights():
    values, weights = np.array([0.2, 0.6, 0.6]), np.array([4.0, 1.0, 1.0])
    assert weighted_mean(values, weights, 1.0).value == pytest.approx((0.8 + 1.2) / 6)
    one = weighted_mean(np.array([0.3]), np.array([2.0]), 0.5)
    assert (one.value, one.low, one.high) == (0.3, 0.0, 0.5)


def test_best_mix_and_best_arm_of_the_estimated_means():
    log = {"arm": ["expensive", "cheap"] * 50, "reward": [8.0, 2.0] * 50, "cost": [5.0, 1.0] * 50}
    found = pl.replay(log, budget=[2.0, 9.0], max_cost=5.0, max_reward=10.0, repeats=2)
    # At 2 a quarter of the rounds can be expensive: 0.25 * 8 + 0.75 * 2. One arm alone: min(8 * 2 / 5, 2).
    assert found["index", 2.0].optimum == pytest.approx(3.5)
    assert found["index", 2.0].single == pytest.approx(3.2)
    assert found["index", 9.0].optimum == found["index", 9.0].single == pytest.approx(8.0)


def test_a_budget_above_the_largest_cost_never_binds():
    log = in_money(shown_at_random(400))
    found = pl.replay(log, budget=[8.0, 1000.0], max_cost=8.0, max_reward=PRIZE, repeats=4)
    assert found["index", 8.0].record() == {**found["index", 1000.0].record(), "budget": 8.0}
    assert found["index", 8.0].idle.high < 0.01


# Notes.


def test_shares_that_equal_propensities_cannot_explain_are_noted():
    log = shown_at_random(3000, share=(0.4, 0.3, 0.3))
    (first, *_) = pl.replay(log, budget=0.5, repeats=2, propensity=False).notes
    share = (log["arm"] == 0).mean()
    errors = (3 * share - 1) * 3000 / math.sqrt(3000 * 2)
    assert first.startswith(f"arm '0' is shown in {share:.1%} of the rows where equal propensities, taken for granted")
    assert f"give 33.3% ({errors:.1f} standard errors away)" in first
    assert pl.replay(log, budget=0.5, repeats=2, propensity="propensity").notes == ()
    assert pl.replay(shown_at_random(3000), budget=0.5, repeats=2).notes == ()


def test_propensities_that_do_not_fit_are_noted():
    log = shown_at_random(3000, share=(0.4, 0.3, 0.3))
    log["propensity"] = np.full(3000, 0.5)
    notes = pl.replay(log, budget=0.5, repeats=2, propensity="propensity").notes
    assert len(notes) == 3
    assert "its propensities give 50.0%" in notes[1]


def test_a_largest_cost_that_was_hardly_meant_is_noted():
    draws = np.random.default_rng(0)
    arms = draws.integers(0, 2, 600)
    log = {"arm": arms, "reward": (draws.random(600) < 0.3 + 0.3 * arms) * 1.0, "cost": np.where(arms, 7e-4, 2e-4)}
    (note,) = pl.replay(log, "uniform", budget=4e-4, repeats=2).notes
    assert note.startswith("no cost in the log is above 0.0007, but max_cost is 1: rounds are sat out until")
    assert pl.replay(log, "uniform", budget=4e-4, max_cost=0.006, repeats=2).notes == ()


def test_a_single_arm_needs_no_note():
    log = {"arm": ["only"] * 20, "reward": [1] * 20, "cost": [0] * 20}
    found = pl.replay(log, budget=1, repeats=2)
    assert found.notes == ()
    assert found["index", 1.0].reward.value == 1


# The same again, from wherever the log comes.


def test_the_seed_decides():
    log = shown_at_random(500)
    first, second, third = (
        pl.replay(log, ["thompson", "uniform"], budget=[0.3, 0.6], repeats=5, seed=seed).records() for seed in (1, 1, 2)
    )
    assert first == second
    assert first != third


def test_a_policy_more_changes_no_other():
    log = shown_at_random(500)
    both = pl.replay(log, ["suak", "uniform"], budget=[0.3, 0.6], repeats=5)
    alone = pl.replay(log, "uniform", budget=0.6, repeats=5)
    assert both["uniform", 0.6].record() == alone["uniform", 0.6].record()


def test_the_compiler_changes_nothing():
    code = """
import json, sys
import paceline as pl
log = json.load(sys.stdin)
print(json.dumps([
    pl.replay(log, ["thompson", "suak"], budget=0.4, repeats=2).records(),
    pl.replay(log, ["thompson", "suak"], budget=0.4, repeats=2,
              rewards={"a": "reward", "b": "cost"}, costs={"a": "cost", "b": "reward"}).records(),
    pl.replay(log, ["thompson", "uniform"], budget={"x": 0.4, "y": 0.5}, cost={"x": "cost", "y": "reward"},
              repeats=2).records(),
]))
"""
    log = json.dumps({name: column.tolist() for name, column in shown_at_random(150).items()})
    found = []
    for off in ("0", "1"):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", code],
            input=log,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            env={**os.environ, "NUMBA_DISABLE_JIT": off},
        )
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
    assert found[0] == found[1]


def write_csv(path, frame: pd.DataFrame):
    """The frame as a file; floats are written so that they read back as they were."""
    frame.to_csv(path, index=False)
    return path


def test_frames_files_and_mappings_are_the_same(tmp_path):
    log = shown_at_random(400, share=(0.5, 0.25, 0.25))
    frame = pd.DataFrame(log)
    path = write_csv(tmp_path / "log.csv", frame)
    text = path.read_text(encoding="utf-8")
    with_mark = tmp_path / "mark.csv"
    with_mark.write_text("\ufeff" + text.replace(",", ", ").replace("\n", "\r\n") + "\n\n", encoding="utf-8")
    kinds = [
        log,
        {name: column.tolist() for name, column in log.items()},
        {name: tuple(map(str, column)) for name, column in log.items()},
        frame,
        frame.convert_dtypes(),
        frame.astype({"arm": "category"}),
        path,
        str(path),
        with_mark,
    ]
    records = [pl.replay(kind, budget=0.5, propensity="propensity", repeats=3).records() for kind in kinds]
    assert all(one == records[0] for one in records)


def test_full_logs_from_frames_files_and_mappings_are_the_same(tmp_path):
    log = full_columns(*beta_table(200))
    path = write_csv(tmp_path / "log.csv", pd.DataFrame(log))
    records = [pl.replay(kind, budget=0.5, repeats=3, **FULL).records() for kind in (log, pd.DataFrame(log), path)]
    assert records[0] == records[1] == records[2]


def test_names_of_columns_can_be_chosen():
    log = shown_at_random(200)
    renamed = {"what": log["arm"], "won": log["reward"], "paid": log["cost"], "p": log["propensity"], "user": ["x"]}
    found = pl.replay(renamed, budget=0.5, arm="what", reward="won", cost="paid", propensity="p", repeats=3)
    assert found.records() == pl.replay(log, budget=0.5, propensity="propensity", repeats=3).records()


def test_arms_are_in_the_order_of_their_numbers_and_names():
    log = {"arm": ["b", 10, 9, "a"], "reward": [1, 0, 0, 1], "cost": [0.5] * 4}
    assert list(pl.replay(log, budget=0.5, repeats=2).arms) == ["9", "10", "a", "b"]


# What is shown.


@pytest.fixture(scope="module")
def replayed() -> pl.Replay:
    """Two policies at three budgets."""
    return pl.replay(shown_at_random(300), ["thompson", "uniform"], budget=[0.6, 0.2, 0.4], repeats=10)


def test_results_by_policy_and_budget(replayed):
    assert list(replayed) == [(label, budget) for label in ("thompson", "uniform") for budget in (0.6, 0.2, 0.4)]
    assert len(replayed) == 6
    assert replayed["uniform", 0.2].label == "uniform"
    assert (replayed.rows, replayed.repeats, replayed.seed) == (300, 10, 0)
    with pytest.raises(pl.UnknownName, match=r"must be one of \('thompson', 0.6\), .*, got \('thompson', 0.3\)"):
        _ = replayed["thompson", 0.3]


def test_table(replayed):
    table = replayed.table()
    assert table.headings[:5] == ("policy", "budget", "rounds", "rows used", "reward per round")
    one = replayed["thompson", 0.2]
    assert table.rows[1][:2] == ("thompson", "0.2")
    assert table.rows[1][4] == str(one.reward)
    assert f"{one.idle.value:.1%}" in table.rows[1]
    assert [row[0] for row in replayed.arm_table().rows] == ["0", "1", "2"]


def test_data_frame(replayed):
    frame = replayed.to_pandas()
    assert frame["policy"].tolist() == ["thompson"] * 3 + ["uniform"] * 3
    one = replayed["uniform", 0.4]
    row = frame[(frame["policy"] == "uniform") & (frame["budget"] == 0.4)].iloc[0]
    assert (row["reward"], row["reward_low"], row["reward_high"]) == (one.reward.value, one.reward.low, one.reward.high)
    assert row["pulls_2"] == one.pulls["2"]
    assert row["optimum"] == one.optimum


def test_figure(replayed, tmp_path):
    figure = replayed.plot(tmp_path / "new" / "replay.png")
    assert isinstance(figure, Figure)
    assert (tmp_path / "new" / "replay.png").read_bytes().startswith(b"\x89PNG")
    (axes,) = figure.axes
    lines = {line.get_label(): line for line in axes.lines}
    assert list(lines) == ["best mix of arms", "best single arm", "thompson", "uniform"]
    assert lines["uniform"].get_xdata().tolist() == [0.2, 0.4, 0.6]
    rewards = [replayed["uniform", budget].reward.value for budget in (0.2, 0.4, 0.6)]
    assert lines["uniform"].get_ydata().tolist() == rewards
    best = lines["best mix of arms"].get_ydata()
    assert (best[0], best[-1]) == (replayed["uniform", 0.2].optimum, replayed["uniform", 0.6].optimum)
    assert len({line.get_color() for line in axes.lines}) == 4


def test_one_budget_can_be_drawn():
    pl.replay(shown_at_random(100), budget=0.5, repeats=2).plot()


# What is refused.

GOOD = {"arm": ["a", "b", "a", "b"], "reward": [0, 1, 0.5, 1], "cost": [0.1, 0.2, 0.3, 0.4], "p": [0.5, 0.5, 0.5, 0.5]}
GOOD_FULL = {"ra": [0, 1, 1], "rb": [0.5, 0, 1], "ca": [0.1, 0.2, 0.3], "cb": [0.4, 0.5, 0.6]}
BOTH = {"rewards": {"a": "ra", "b": "rb"}, "costs": {"a": "ca", "b": "cb"}}

BAD_ROWS = [
    ({"reward": [0, "much", 1, 1]}, {}, "reward in column 'reward' must be a finite number; row 2 has 'much'"),
    ({"reward": [0, None, 1, "nan"]}, {}, "reward in column 'reward' must be a finite number; row 4 has 'nan'"),
    ({"cost": [0, 1, True, 1]}, {}, "cost in column 'cost' must be a finite number; row 3 has True"),
    ({"cost": [0, 1, "true", 1]}, {}, "cost in column 'cost' must be a finite number; row 3 has 'true'"),
    ({"cost": np.array([True] * 4)}, {}, "cost in column 'cost' must be a finite number; row 1 has True"),
    ({"reward": [0, 1, 1, 10**400]}, {}, "must be a finite number; row 4 has 1000"),
    ({"reward": np.array([np.nan, 1, np.inf, 0])}, {}, "must be a finite number; row 3 has inf"),
    ({"reward": [-0.5, 1, 1, -1]}, {}, "reward in column 'reward' must be in [0, 1]; row 1 has -0.5, row 4 has -1.0"),
    ({"reward": [0, 1, 1, 1.5]}, {}, "reward in column 'reward' must be in [0, 1]; row 4 has 1.5"),
    ({"reward": [0, 5, 9, 1]}, {"max_reward": 5}, "must be in [0, 5]; row 3 has 9.0"),
    (
        {"cost": [2, 3, 4, 5]},
        {},
        "cost in column 'cost' must be in [0, 1]; row 1 has 2.0, row 2 has 3.0, row 3 has 4.0, and 1 more",
    ),
    ({"cost": [0.1, -0.2, 0.3, 0.4]}, {}, "cost in column 'cost' must be in [0, 1]; row 2 has -0.2"),
    (
        {},
        {"max_cost": {"a": 1, "b": 0.3}},
        "cost in column 'cost' must be at most the max_cost of its arm; row 4 has 0.4 for 'b', whose max_cost is 0.3",
    ),
    (
        {"arm": ["a", "b", "c", "c"]},
        {"max_cost": {"a": 1, "b": 1}},
        "arm in column 'arm' must be one of max_cost; row 3 has 'c', row 4 has 'c'",
    ),
    (
        {"arm": ["a", "", None, 1.5]},
        {},
        "arm in column 'arm' must be a text or a whole number; row 4 has 1.5",
    ),
    ({"p": [0.5, 0, 0.5, 0.5]}, {"propensity": "p"}, "propensity in column 'p' must be in (0, 1]; row 2 has 0.0"),
    ({"p": [0.5, 0.5, 0.5, 1.1]}, {"propensity": "p"}, "propensity in column 'p' must be in (0, 1]; row 4 has 1.1"),
    (
        {"p": [0.5, -1, 0.5, "x"]},
        {"propensity": "p"},
        "propensity in column 'p' must be a finite number; row 4 has 'x'",
    ),
]


@pytest.mark.parametrize(("columns", "arguments", "words"), BAD_ROWS, ids=[words for _, _, words in BAD_ROWS])
def test_bad_rows_are_named_by_number(columns, arguments, words):
    pl.replay(GOOD, budget=0.5, repeats=2)
    with pytest.raises(pl.InvalidValue) as error:
        pl.replay({**GOOD, **columns}, budget=0.5, repeats=2, **arguments)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("columns", "arguments", "words"),
    [
        ({"rb": [0.5, 2, 1]}, {}, "reward of 'b' in column 'rb' must be in [0, 1]; row 2 has 2.0"),
        ({"ca": [0.1, "", 0.3]}, {}, "cost of 'a' in column 'ca' must be a finite number; row 2 has ''"),
        ({}, {"max_cost": {"a": 0.25, "b": 1}}, "cost of 'a' in column 'ca' must be in [0, 0.25]; row 3 has 0.3"),
    ],
)
def test_bad_rows_of_a_full_log_are_named_by_number(columns, arguments, words):
    pl.replay(GOOD_FULL, budget=0.5, repeats=2, **BOTH)
    with pytest.raises(pl.InvalidValue) as error:
        pl.replay({**GOOD_FULL, **columns}, budget=0.5, repeats=2, **BOTH, **arguments)
    assert words in str(error.value)


CSV = "arm,reward,cost\na,1,0.5\n\nb,0,0.25\n"


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        (CSV + "a,2,0.5\n", pl.InvalidValue, "reward in column 'reward' must be in [0, 1]; row 3 (line 5) has 2.0"),
        (CSV + '"a\nb",1,much\n', pl.InvalidValue, "must be a finite number; row 3 (line 5) has 'much'"),
        (CSV + '"a\nb",1,1\nb,1,\nb,1,x\n', pl.InvalidValue, "must be a finite number; row 5 (line 8) has 'x'"),
        (
            CSV + "a,1\nb,1,1,1\n",
            pl.InvalidValue,
            "a row must have 3 fields as the heading has; row 3 (line 5) has 2, ",
        ),
        (CSV + '"a"b,1,1\n', pl.UnreadableFile, "must be a CSV file, but: line 5, ',' expected after '\"'"),
        ("arm,reward,arm\n", pl.UnreadableFile, "names of columns must differ, got 'arm' twice"),
        ("arm,reward,costs\na,1,1\n", pl.UnknownName, "a log must have a column 'cost', got arm, reward, costs"),
        ("", pl.UnknownName, "a log must have a column 'arm', got none"),
        ("arm,reward,cost\n", pl.InvalidValue, "a log must have at least one row, got none"),
    ],
)
def test_files_that_are_wrong(text, kind, words, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(kind) as error:
        pl.replay(path, budget=0.5)
    assert str(error.value).startswith(str(path))
    assert words in str(error.value)


def test_a_journal_is_no_log_yet(tmp_path):
    path = tmp_path / "bandit.journal"
    pl.Bandit(["a", "b"], 0.5, journal=path).close()
    with pytest.raises(pl.UnreadableFile, match=r"the journal of a bandit; .*: paceline log .* --csv"):
        pl.replay(path, budget=0.5)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(pl.UnreadableFile, match=r"none.csv must be a readable file, but: No such file"):
        pl.replay(tmp_path / "none.csv", budget=0.5)
    (tmp_path / "binary.csv").write_bytes(b"arm\n\xff\xfe")
    with pytest.raises(pl.UnreadableFile, match=r"binary.csv must be UTF-8 text, but byte 4 is not"):
        pl.replay(tmp_path / "binary.csv", budget=0.5)


@pytest.mark.parametrize(
    ("log", "arguments", "kind", "words"),
    [
        (GOOD, {"budget": 0}, pl.InvalidValue, "budget must be a finite number above 0, got 0.0"),
        (GOOD, {"budget": [0.5, math.nan]}, pl.InvalidValue, "budget must be a finite number above 0, got nan"),
        (GOOD, {"budget": "0.5"}, pl.InvalidValue, "budget must be a number, got '0.5'"),
        (GOOD, {"budget": []}, pl.InvalidValue, "budget must be a number or a list of at least one, got none"),
        (GOOD, {"budget": [0.5, 0.2, 0.5]}, pl.InvalidValue, "budgets must differ, got 0.5 twice"),
        (GOOD, {"repeats": 1}, pl.InvalidValue, "repeats must be a whole number of at least 2, got 1"),
        (GOOD, {"seed": -1}, pl.InvalidValue, "seed must be"),
        (GOOD, {"policy": "sauk"}, pl.UnknownName, "policy must be one of index"),
        (GOOD, {"policy": "oracle"}, pl.InvalidValue, "oracle must be given the true problem"),
        (GOOD, {"max_cost": 0}, pl.InvalidValue, "max_cost must be a finite number above 0, got 0.0"),
        (GOOD, {"max_cost": "1"}, pl.InvalidValue, "max_cost must be a number, got '1'"),
        (GOOD, {"max_cost": {"a": 1, "b": -1}}, pl.InvalidValue, "max_cost of 'b' must be a finite number above 0"),
        (
            GOOD,
            {"max_cost": {"a": 1, "b": 1, "c": 1}},
            pl.InvalidValue,
            "max_cost must name the arms of the log, a, b,",
        ),
        (GOOD, {"max_reward": 0}, pl.InvalidValue, "max_reward must be a finite number above 0, got 0.0"),
        (GOOD, {"arm": "which"}, pl.UnknownName, "a log must have a column 'which', got arm, reward, cost, p"),
        (GOOD, {"propensity": "q"}, pl.UnknownName, "a log must have a column 'q'"),
        (GOOD, {"rewards": {"a": "reward"}}, pl.InvalidValue, "costs must be a mapping of arms to columns"),
        (GOOD, {"costs": {"a": "cost"}}, pl.InvalidValue, "rewards must be a mapping of arms to columns"),
        (GOOD_FULL, {"rewards": [], "costs": {"a": "ca"}}, pl.InvalidValue, "rewards must be a mapping of arms"),
        (
            GOOD_FULL,
            {"rewards": {"a": "ra"}, "costs": {"b": "cb"}},
            pl.InvalidValue,
            "rewards and costs must name the same arms, got a and b",
        ),
        (GOOD_FULL, {**BOTH, "rewards": {"a": "ra", "b": "x"}}, pl.UnknownName, "a log must have a column 'x'"),
        (GOOD_FULL, {**BOTH, "propensity": "p"}, pl.InvalidValue, "propensity is for logs that know one arm a row"),
        (
            GOOD_FULL,
            {**BOTH, "max_cost": {"a": 1}},
            pl.InvalidValue,
            "max_cost must name the arms of the log, a, b, got a",
        ),
        ({**GOOD, "cost": [0.1]}, {}, pl.InvalidValue, "columns must have the same length, got 4 and 1 for 'cost'"),
        ({**GOOD, "cost": "0.1,"}, {}, pl.InvalidValue, "column 'cost' must be one list of values, got str"),
        (
            {**GOOD, "cost": np.ones((4, 2))},
            {},
            pl.InvalidValue,
            "column 'cost' must be one list of values, got ndarray",
        ),
        ({}, {}, pl.UnknownName, "a log must have a column 'arm', got none"),
        ({"arm": [], "reward": [], "cost": []}, {}, pl.InvalidValue, "a log must have at least one row, got none"),
        ({"ra": [], "rb": [], "ca": [], "cb": []}, BOTH, pl.InvalidValue, "a log must have at least one row, got none"),
        (
            7,
            {},
            pl.InvalidValue,
            "log must be a DataFrame, a mapping of columns or the path of a CSV or Parquet file, got 7",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_arguments_that_are_wrong(log, arguments, kind, words):
    with pytest.raises(kind) as error:
        pl.replay(log, **{"budget": 0.5, "repeats": 2, **arguments})
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_two_columns_of_one_name():
    frame = pd.DataFrame([["a", 1, 1, 0]], columns=["arm", "reward", "cost", "cost"])
    with pytest.raises(pl.InvalidValue, match="column 'cost' must be one list of values"):
        pl.replay(frame, budget=0.5)


def test_a_log_too_short_for_a_single_round():
    log = {"arm": ["a", "b"], "reward": [1, 1], "cost": [0, 0]}
    with pytest.raises(pl.InvalidValue, match="a log must have rows enough for a round of index, got 2"):
        pl.replay(log, budget=1.0)


def test_nothing_of_a_log_is_changed():
    log = shown_at_random(100)
    before = {name: column.copy() for name, column in log.items()}
    pl.replay(log, budget=0.5, propensity="propensity", repeats=2)
    for name, column in log.items():
        np.testing.assert_array_equal(column, before[name])


def test_thinning_leaves_every_arm_the_same_chance():
    """40,000 rows with shares 0.7, 0.2, 0.1: about 4,000 of each arm stay, within 4.9 standard errors (1 in 10^6)."""
    columns = {name: name for name in ("arm", "reward", "cost", "propensity")}
    table = read_log_table(shown_at_random(40_000, share=(0.7, 0.2, 0.1)))
    log = random_log(table, **columns, max_cost=1, max_reward=1)
    for again in (False, True):
        kept = log.resample(np.random.default_rng(3), again)
        counts = np.bincount(kept.shown, minlength=3)
        assert (abs(counts - 4000) < 4.9 * math.sqrt(2 * 4000)).all()
        assert len(set(kept.rewards)) == kept.shown.size if not again else len(set(kept.rewards)) < kept.shown.size


def test_a_full_log_keeps_its_rows_together():
    rewards, costs = beta_table(50)
    log = full_log(read_log_table(full_columns(rewards, costs)), **FULL, max_cost=1.0, max_reward=1.0)
    assert log.resample(np.random.default_rng(0), again=False) is log
    again = log.resample(np.random.default_rng(0), again=True)
    rows = {(*reward, *cost) for reward, cost in zip(rewards.tolist(), costs.tolist(), strict=True)}
    drawn = [
        (*reward, *cost) for reward, cost in zip(again.rewards.tolist(), again.costs[..., 0].tolist(), strict=True)
    ]
    assert len(drawn) == 50
    assert set(map(tuple, drawn)) < rows

"""Replays with several resources, against loops by hand, the simulator and another solver, and what is refused."""

import numpy as np
import pytest
from lanes import WITH_TRUTH, named_in_lanes
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
from scipy.optimize import linprog

import paceline as pl
from paceline.offline.best import allowed
from paceline.offline.logged import LoggedArm
from paceline.offline.replays import rounds_of
from paceline.policies import POLICIES, make_policy
from paceline.policies.policy import Setting
from paceline.statistics import Estimate

SEVERAL = [name for name, policy in POLICIES.items() if policy.resources is None and name not in WITH_TRUTH]
ALONE = [name for name, policy in POLICIES.items() if policy.resources == 1]
CALL_MEANS = np.array([0.6, 0.2, 0.5])
BOTH = {"cost": {"money": "usd", "calls": "n"}, "budget": {"money": 3.0, "calls": 0.4}}
LARGEST = {"money": {"0": 4.0, "1": 8.0, "2": 8.0}, "calls": {"0": 1.0, "1": 0.0, "2": 1.0}}
PRIZE = 20.0


def in_two_units(rows: int, seed: int = 1, share: tuple[float, ...] = (1 / 3, 1 / 3, 1 / 3)) -> dict[str, np.ndarray]:
    """A randomised log: rewards of up to 20, dollars of up to 8 (arm 0: 4), and calls that arm 1 does not make."""
    log = shown_at_random(rows, seed, share)
    halved = np.where(log["arm"] == 0, 4.0, 8.0)
    calls = (np.random.default_rng([seed, 4]).random(rows) < CALL_MEANS[log["arm"]]) & (log["arm"] != 1)
    usd = halved * log["cost"]
    return {**log, "reward": PRIZE * log["reward"], "usd": usd, "n": calls.astype(float)}


# Against loops by hand.


@pytest.mark.parametrize("name", named_in_lanes(SEVERAL))
def test_replay_of_a_random_log_is_the_loop_by_hand(name):
    log = in_two_units(600, share=(0.5, 0.3, 0.2))
    arguments = {"propensity": "propensity", "max_cost": LARGEST, "max_reward": PRIZE, "repeats": 3, "seed": 7}
    found = pl.replay(log, name, **BOTH, **arguments)[name, (3.0, 0.4)]
    setting = Setting(3, (3.0 / 8.0, 0.4), 600, max_costs=((0.5, 1.0), (1.0, 0.0), (1.0, 1.0)))
    headrooms = []
    for stream in range(6):
        generator = np.random.default_rng([7, stream])
        at = generator.permutation(600) if stream < 3 else generator.integers(600, size=600)
        stays = generator.random(600) < 0.2 / log["propensity"][at]
        rows = [
            (int(log["arm"][row]), float(log["reward"][row]) / PRIZE, (float(log["usd"][row]) / 8.0, log["n"][row]))
            for row in at[stays].tolist()
        ]
        game = new_game(make_policy(name), setting, 7, stream)
        costs = sifted_by_hand(game, rows, 600)
        totals = found.ordered if stream < 3 else found.resampled
        where = stream % 3
        assert totals.earned[where, 0] == game.books.tally.earned
        assert totals.pulls[where, 0].tolist() == game.books.pulls.tolist()
        assert totals.spent[where, 0] == pytest.approx(np.sum(costs, axis=0).astype(float), abs=1e-6)
        assert rounds_of(totals)[where] == len(costs)
        headrooms.append(least_headrooms(costs, 3 / 8, 0.4))
    lowest = [min(side) for side in zip(*headrooms, strict=True)]
    assert min(lowest) >= 0
    assert list(found.min_headroom) == ["money", "calls"]
    assert found.min_headroom["money"] == pytest.approx(8.0 * float(lowest[0]), abs=1e-5)
    assert found.min_headroom["calls"] == pytest.approx(float(lowest[1]), abs=1e-5)
    rounds = rounds_of(found.ordered)
    for d, (resource, unit) in enumerate({"money": 8.0, "calls": 1.0}.items()):
        spent = found.spent[resource]
        assert spent.value == pytest.approx(np.mean(unit * found.ordered.spent[:, 0, d] / rounds), rel=1e-12)
        again = unit * found.resampled.spent[:, 0, d] / rounds_of(found.resampled)
        assert again.min() <= spent.low <= spent.high <= again.max()
        assert spent.value <= found.budget[resource]


@pytest.mark.parametrize("name", named_in_lanes(SEVERAL))
def test_replay_of_a_full_log_is_the_loop_by_hand(name):
    rewards, usd = beta_table(400)
    calls = beta_table(400, seed=2)[1]
    log = {
        f"{kind}{arm}": side[:, arm] for kind, side in (("r", rewards), ("c", usd), ("n", calls)) for arm in range(3)
    }
    columns = {"money": {arm: f"c{arm}" for arm in range(3)}, "calls": {arm: f"n{arm}" for arm in range(3)}}
    arguments = {"rewards": {arm: f"r{arm}" for arm in range(3)}, "costs": columns, "seed": 5, "repeats": 3}
    found = pl.replay(log, name, budget={"calls": 0.3, "money": 0.4}, **arguments)[name, (0.4, 0.3)]
    costs = np.stack([usd, calls], axis=-1)
    for stream in range(4):
        at = np.arange(400) if stream == 0 else np.random.default_rng([5, stream]).integers(400, size=400)
        game = new_game(make_policy(name), Setting(3, (0.4, 0.3), 400), 5, stream)
        lowest = least_headrooms(played_by_hand(game, rewards[at], costs[at]), 0.4, 0.3)
        totals, where = (found.ordered if stream == 0 else found.resampled), max(stream - 1, 0)
        assert min(lowest) >= 0
        assert totals.min_headroom[where] == pytest.approx(list(map(float, lowest)), abs=1e-6)
        assert totals.earned[where, 0] == game.books.tally.earned
        assert totals.pulls[where, 0].tolist() == game.books.pulls.tolist()
    assert found.rounds == 400
    assert found.ordered.spent.shape == (1, 1, 2)


@pytest.mark.parametrize("name", named_in_lanes(SEVERAL))
def test_every_line_holds_in_every_replay(name):
    log = in_two_units(300)
    log["usd"], log["n"] = np.full(300, 8.0), np.ones(300)
    budgets = [{"money": 0.4, "calls": 0.9}, {"money": 7.0, "calls": 0.05}, {"money": 2.0, "calls": 0.25}]
    found = pl.replay(log, name, cost=BOTH["cost"], budget=budgets, max_cost={"money": 8, "calls": 1}, max_reward=20)
    assert len(found) == 3
    for one in found.values():
        for part in (one.ordered, one.resampled):
            assert (part.min_headroom >= 0).all()
            lines = np.array(one.rates) / (8.0, 1.0) * rounds_of(part)[:, None]
            assert (part.spent[:, 0] <= lines).all()
            assert (part.spent[:, 0] > 0).all()


# Against replays with one resource, and the simulator.


def test_a_resource_that_costs_nothing_changes_nothing():
    log = {**shown_at_random(400), "nothing": np.zeros(400)}
    one = pl.replay(log, "uniform", budget=0.4, repeats=5)["uniform", 0.4]
    two = pl.replay(
        log, "uniform", budget={"money": 0.4, "free": 1.0}, cost={"money": "cost", "free": "nothing"}, repeats=5
    )["uniform", (0.4, 1.0)]
    assert (two.reward, two.idle, two.pulls, two.rounds) == (one.reward, one.idle, one.pulls, one.rounds)
    assert (two.spent["money"], two.min_headroom["money"]) == (one.spent, one.min_headroom)
    assert (two.optimum, two.single) == (pytest.approx(one.optimum), one.single)
    assert two.spent["free"] == Estimate(0.0, 0.0, 0.0)


@pytest.mark.parametrize("policy", ["thompson", "suak"])
def test_one_resource_with_a_name_is_one_without(policy):
    log = shown_at_random(400)
    plain = pl.replay(log, policy, budget=[0.3, 0.6], max_cost={"0": 1.0, "1": 1.5, "2": 1.5}, repeats=4)
    named = pl.replay(
        log,
        policy,
        budget=[{"money": 0.3}, {"money": 0.6}],
        cost={"money": "cost"},
        max_cost={"money": {"0": 1.0, "1": 1.5, "2": 1.5}},
        repeats=4,
    )
    assert list(named) == list(plain) == [(policy, 0.3), (policy, 0.6)]
    assert named.resources == ("money",)
    for one, other in zip(named.values(), plain.values(), strict=True):
        assert list(one.record().values()) == list(other.record().values())
        assert one.spent == {"money": other.spent}
        assert one.budget == {"money": other.budget}
    assert named[policy, {"money": 0.3}].budget == {"money": 0.3}
    assert named.arms["0"].cost == {"money": plain.arms["0"].cost}
    assert named.allowed(0.4) == named.allowed({"money": 0.4}) == plain.allowed(0.4)
    assert named.table().headings == tuple(
        f"{heading}, money" if heading in ("budget", "spent per round", "min headroom") else heading
        for heading in plain.table().headings
    )
    assert named.plot().axes[0].get_title() == plain.plot().axes[0].get_title()


@pytest.mark.statistical
@pytest.mark.parametrize("policy", ["thompson", "uniform"])
def test_estimates_agree_with_the_simulator(policy):
    budget = {"money": 0.5, "calls": 0.3}
    problem = pl.Problem.beta(MEANS, {"money": COST_MEANS, "calls": CALL_MEANS}, budget)

    def log_of(seed):
        log = shown_at_random(1500, seed)
        means = 10 * CALL_MEANS[log["arm"]]
        return {**log, "calls": np.random.default_rng([seed, 5]).beta(means, 10 - means)}

    columns = {"money": "cost", "calls": "calls"}
    found = [pl.replay(log_of(seed), policy, budget=budget, cost=columns, repeats=10) for seed in range(40)]
    replayed = [one[policy, budget] for one in found]
    rewards = [one.reward.value for one in replayed]
    truth = simulated(problem, policy, np.mean([one.rounds for one in replayed]))
    assert agrees(rewards, truth)
    assert not agrees([reward + 0.01 for reward in rewards], truth)  # the test would notice


def test_best_mix_and_best_arm_against_another_solver():
    generator = np.random.default_rng(8)
    for _ in range(100):
        arms, resources = generator.integers(1, 7), generator.integers(2, 5)
        units = 10.0 ** generator.integers(-7, 8, size=resources)
        rewards = 10.0 ** generator.integers(-5, 6) * generator.random(arms)
        costs = generator.random((arms, resources)) * (generator.random((arms, resources)) < 0.8) * units
        rates = generator.uniform(0.01, 0.8, resources) * units
        means = {
            str(arm): LoggedArm(9, sure(rewards[arm]), {str(d): sure(cost) for d, cost in enumerate(costs[arm])})
            for arm in range(arms)
        }
        mix, single = allowed(means, tuple(rates.tolist()))
        limits = np.vstack([costs.T / units[:, None], np.ones(arms)])
        best = linprog(-rewards / rewards.max(), limits, np.append(rates / units, 1.0))
        assert mix == pytest.approx(-best.fun * rewards.max(), rel=1e-7)
        shares = [min([1.0, *(rates[used] / costs[arm][used])]) for arm, used in enumerate(costs > 0)]
        assert single == pytest.approx(max(rewards * shares))
        assert single <= mix * (1 + 1e-9)


def sure(value: float) -> Estimate:
    """A number without an interval."""
    return Estimate(float(value), float(value), float(value))


def test_an_arm_may_do_without_a_resource_but_not_all_of_them():
    log = in_two_units(900)
    found = pl.replay(log, **BOTH, max_cost=LARGEST, max_reward=PRIZE, repeats=3)
    assert found.arms["1"].cost["calls"] == Estimate(0.0, 0.0, 0.0)
    assert found["index", (3.0, 0.4)].pulls["1"] > 50
    log["n"] = np.zeros(900)
    with pytest.raises(
        pl.InvalidValue, match="max_cost of 'calls' must be above 0 for at least one arm, got 0 for all"
    ):
        pl.replay(log, **BOTH, max_cost={**LARGEST, "calls": dict.fromkeys("012", 0)}, max_reward=PRIZE)


# What is shown.


@pytest.fixture(scope="module")
def replayed() -> pl.Replay:
    """Two policies at two budgets."""
    budgets = [{"money": 3.0, "calls": 0.4}, {"calls": 0.2, "money": 5.0}]
    arguments = {"max_cost": LARGEST, "max_reward": PRIZE, "repeats": 10}
    return pl.replay(in_two_units(300), ["thompson", "uniform"], cost=BOTH["cost"], budget=budgets, **arguments)


def test_results_by_policy_and_rates(replayed):
    rates = [(3.0, 0.4), (5.0, 0.2)]
    assert list(replayed) == [(label, budget) for label in ("thompson", "uniform") for budget in rates]
    assert replayed.resources == ("money", "calls")
    one = replayed["uniform", (5.0, 0.2)]
    assert one.budget == {"money": 5.0, "calls": 0.2}
    assert replayed["uniform", {"money": 5, "calls": 0.2}] is replayed["uniform", {"calls": 0.2, "money": 5.0}] is one
    assert ("uniform", {"money": 5.0, "calls": 0.2}) in replayed
    assert ("uniform", {"money": 5.0, "calls": 0.3}) not in replayed
    known = r"policy and budget \(money, calls\) must be one of \('thompson', \(3.0, 0.4\)\), .*, got "
    for wrong in ((5.0, 0.1), [5.0, 0.2], 5.0, {"money": 5.0}, {"money": 5.0, "calls": 0.2, "energy": 1.0}):
        with pytest.raises(pl.UnknownName, match=known):
            _ = replayed["uniform", wrong]
    with pytest.raises(pl.UnknownName, match=known + "'uniform'"):
        _ = replayed["uniform"]


def test_tables(replayed):
    table = replayed.table()
    assert table.headings == (
        "policy",
        "budget, money",
        "budget, calls",
        "rounds",
        "rows used",
        "reward per round",
        "best mix",
        "best arm",
        "spent per round, money",
        "spent per round, calls",
        "sat out",
        "min headroom, money",
        "min headroom, calls",
    )
    assert table.rows[1][:3] == ("thompson", "5", "0.2")
    one = replayed["thompson", (5.0, 0.2)]
    assert table.rows[1][9] == f"{one.spent['calls'].value:.3g}"
    assert table.rows[1][12] == f"{one.min_headroom['calls']:.3g}"
    arms = replayed.arm_table()
    assert arms.headings == ("arm", "rows", "reward per pull", "cost per pull, money", "cost per pull, calls")
    assert arms.rows[2][4] == str(replayed.arms["2"].cost["calls"])


def test_records(replayed):
    frame = replayed.to_pandas()
    one = replayed["uniform", (3.0, 0.4)]
    row = frame[(frame["policy"] == "uniform") & (frame["budget_money"] == 3.0) & (frame["budget_calls"] == 0.4)].iloc[
        0
    ]
    spent = one.spent["calls"]
    assert (row["spent_calls"], row["spent_calls_low"], row["spent_calls_high"]) == (spent.value, spent.low, spent.high)
    assert row["min_headroom_money"] == one.min_headroom["money"]
    assert row["optimum"] == one.optimum >= one.single > 0
    assert "budget" not in frame
    assert "spent" not in frame


def test_what_other_budgets_would_allow(replayed):
    one = replayed["thompson", (3.0, 0.4)]
    for budget in ((3.0, 0.4), {"money": 3.0, "calls": 0.4}):
        assert replayed.allowed(budget) == (one.optimum, one.single)
    assert replayed.allowed((8.0, 1.0)) >= replayed.allowed((3.0, 0.4))
    for wrong in (3.0, (3.0, 0.4, 1.0)):
        with pytest.raises(pl.InvalidValue, match=r"budget must be given by resource, such as \{'money': "):
            replayed.allowed(wrong)
    with pytest.raises(pl.InvalidValue, match="budget must have an entry for every resource, got none for 'calls'"):
        replayed.allowed({"money": 3.0})


def test_a_figure_has_room_for_one_resource(replayed, tmp_path):
    with pytest.raises(pl.InvalidValue, match="plot draws replays with one resource only, got money, calls"):
        replayed.plot(tmp_path / "replay.png")
    assert list(tmp_path.iterdir()) == []


def test_a_budget_that_never_binds_is_noted():
    arguments = {"cost": BOTH["cost"], "max_cost": LARGEST, "max_reward": PRIZE, "repeats": 2}
    budgets = [{"money": 3.0, "calls": 40.0}, {"money": 3.0, "calls": 1.0}]
    found = pl.replay(in_two_units(300), budget=budgets, **arguments)
    assert found.notes == ("budget of 'calls', 40, is above its largest max_cost, 1: it never binds",)
    first, second = (dict(one.record(), budget_calls=0) for one in found.values())
    assert first == second  # it is played as if it were just the largest cost
    uneven = in_two_units(3000, share=(0.4, 0.3, 0.3))
    shares = pl.replay(uneven, budget=budgets[1], propensity=False, **arguments).notes
    assert shares[0].startswith("arm '0' is shown in ")


# What is refused.

GOOD = {"arm": ["a", "b", "a", "b"], "reward": [0, 1, 0.5, 1], "usd": [0.1, 0.2, 0.3, 0.4], "n": [1, 0, 1, 1]}
TWO = {"cost": {"money": "usd", "calls": "n"}, "budget": {"money": 0.3, "calls": 0.5}}
GOOD_FULL = {"ra": [0, 1, 1], "rb": [0.5, 0, 1], "ca": [0.1, 0.2, 0.3], "cb": [0.4, 0.5, 0.6], "n": [0, 0.5, 1]}
ARMS = {"money": {"a": "ca", "b": "cb"}, "calls": {"a": "n", "b": "n"}}
FULL = {"rewards": {"a": "ra", "b": "rb"}, "costs": ARMS, "cost": "cost"}

REFUSED = [
    (GOOD, {"budget": {"money": 0.3}}, "budget must have an entry for every resource, got none for 'calls'"),
    (
        GOOD,
        {"budget": {"money": 0.3, "calls": 0.5, "time": 1}},
        "budget must be given for the resources money, calls, got one for 'time'",
    ),
    (GOOD, {"budget": 0.3}, "budget must be given by resource, such as {'money': ...}, got 0.3"),
    (GOOD, {"budget": [TWO["budget"], 0.3]}, "budget must be given by resource, such as {'money': ...}, got 0.3"),
    (GOOD, {"budget": []}, "budget must be a number or a list of at least one, got none"),
    (
        GOOD,
        {"budget": {"money": -1, "calls": 0.5}},
        "budget of 'money' must be a finite number above 0, got -1.0",
    ),
    (GOOD, {"budget": {"money": 0.3, "calls": "x"}}, "budget of 'calls' must be a number, got 'x'"),
    (
        GOOD,
        {"budget": [TWO["budget"], {"calls": 0.5, "money": 0.3}]},
        "budgets must differ, got {'money': 0.3, 'calls': 0.5} twice",
    ),
    (GOOD, {"cost": "usd"}, "cost must be given by resource, such as {'money': ...}, got 'usd'"),
    (GOOD, {"cost": ["usd", "n"]}, "cost must be given by resource, such as {'money': ...}, got ['usd', 'n']"),
    (GOOD, {"cost": ["usd"], "budget": 0.3}, "a log must have a column ['usd'], got arm, reward, usd, n"),
    (GOOD, {"cost": {"money": "usd"}}, "budget must be given for the resources money, got one for 'calls'"),
    (GOOD, {"cost": {}}, "cost must name at least one resource, got none"),
    (GOOD, {"cost": {"": "usd", "calls": "n"}}, "the name of a resource in cost must be a text that is not empty"),
    (GOOD, {"budget": {}, "cost": "usd"}, "budget must name at least one resource, got none"),
    (GOOD, {"cost": {"money": "price", "calls": "n"}}, "a log must have a column 'price', got arm, reward, usd, n"),
    (GOOD, {"max_cost": {"money": 1.0}}, "max_cost must have an entry for every resource, got none for 'calls'"),
    (
        GOOD,
        {"max_cost": {"a": 1.0, "b": 1.0}},
        "max_cost must be given for the resources money, calls, got one for 'a'",
    ),
    (
        GOOD,
        {"max_cost": {"money": {"a": 1.0}, "calls": 1.0}},
        "arm in column 'arm' must be one of max_cost of 'money'; row 2 has 'b', row 4 has 'b'",
    ),
    (
        GOOD,
        {"max_cost": {"money": {"a": 1.0, "b": 1.0, "c": 1.0}, "calls": 1.0}},
        "max_cost of 'money' must name the arms of the log, a, b, got a, b, c",
    ),
    (
        GOOD,
        {"max_cost": {"money": {"a": 1.0, "b": -1.0}, "calls": 1.0}},
        "max_cost of 'money' for 'b' must be a finite number of at least 0, got -1.0",
    ),
    (GOOD, {"max_cost": {"money": 1.0, "calls": 0}}, "max_cost of 'calls' must be a finite number above 0, got 0.0"),
    (
        GOOD,
        {"max_cost": {"money": {"a": 1.0, "b": 0.3}, "calls": 1.0}},
        "cost of 'money' in column 'usd' must be at most the max_cost of its arm; row 4 has 0.4 for 'b'",
    ),
    (
        {**GOOD, "n": [1, 2, 1, 1]},
        {},
        "cost of 'calls' in column 'n' must be in [0, 1]; row 2 has 2.0",
    ),
    ({**GOOD, "n": [1, "x", 1, 1]}, {}, "cost of 'calls' in column 'n' must be a finite number; row 2 has 'x'"),
    (GOOD_FULL, {**FULL, "budget": 0.3}, "budget must be given by resource, such as {'money': ...}, got 0.3"),
    (
        GOOD_FULL,
        {**FULL, "costs": ARMS["money"]},
        "costs must be given for the resources money, calls, got one for 'a'",
    ),
    (GOOD_FULL, {**FULL, "costs": None}, "costs must be given by resource, such as {'money': ...}, got None"),
    (
        GOOD_FULL,
        {**FULL, "costs": {**ARMS, "calls": "n"}},
        "costs of 'calls' must be a mapping of arms to columns such as {'banner': 'b'}, got 'n'",
    ),
    (
        GOOD_FULL,
        {**FULL, "costs": {**ARMS, "calls": {"a": "n"}}},
        "rewards and costs of 'calls' must name the same arms, got a, b and a",
    ),
    (
        GOOD_FULL,
        {**FULL, "costs": {**ARMS, "calls": {"a": "n", "b": "m"}}},
        "a log must have a column 'm', got ra, rb, ca, cb, n",
    ),
    (
        GOOD_FULL,
        {**FULL, "max_cost": {"money": {"a": 0.2, "b": 1}, "calls": 1}},
        "cost of 'money' for 'a' in column 'ca' must be in [0, 0.2]; row 3 has 0.3",
    ),
    (7, {}, "log must be a DataFrame, a mapping of columns or the path of a CSV or Parquet file, got 7"),
]


@pytest.mark.parametrize(("log", "arguments", "words"), REFUSED, ids=[words for _, _, words in REFUSED])
def test_arguments_that_are_wrong(log, arguments, words):
    with pytest.raises((pl.InvalidValue, pl.UnknownName)) as error:
        pl.replay(log, **{**TWO, "repeats": 2, **arguments})
    assert words in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ALONE)
def test_a_policy_for_one_resource_is_refused_before_the_log_is_read(name):
    with pytest.raises(pl.InvalidValue, match=f"^{name} works with one resource only, got 2$"):
        pl.replay("nowhere.csv", ["uniform", name], **TWO)

"""News that comes late: the simulator against live bandits, the outlook against its formula, no line crossed."""

import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import paceline as pl
from paceline.errors import InvalidValue
from paceline.kernels.jit import plain_throughout
from paceline.kernels.outlook import look_ahead
from paceline.kernels.state import books_in, state_in
from paceline.policies import make_policy
from paceline.policies.policy import Setting
from paceline.testing.policies import bandit_for
from paceline.worlds.delays import read_delays, read_toml_delays

THREE, EIGHT = pl.paper.three_arms(), pl.paper.eight_arms()
TWO_BUDGETS = pl.Problem(
    [pl.Beta(mean) for mean in (0.8, 0.5, 0.3, 0.6)],
    {
        "money": [pl.Beta(mean) for mean in (0.9, 0.4, 0.1, 0.5)],
        "time": [pl.Bernoulli(mean) for mean in (0.3, 0.2, 0.5, 0.8)],
    },
    {"money": 0.4, "time": 0.35},
)
SEED = 7
DELAYS = [
    3,
    {"geometric": 6},
    [0, 0, 2, 31],
    {"cost": 4},
    {"batch": 20},
    {"reward": {"batch": 7}},
    {"reward": 9},
    {"cost": {"geometric": 5}, "reward": [1, 2, 30]},
    {"cost": [0, 12], "reward": {"geometric": 3}},
]


def uniforms(t):
    """Two uniform numbers of round t, by NumPy's own Philox: block (t, 0, 3, 0) of the key (seed, stream)."""
    generator = np.random.Philox(counter=np.array([t, 0, 3, 0], np.uint64), key=np.array([SEED, 0], np.uint64))
    generator.advance(-1)  # NumPy counts before it draws
    return [(2.0 * (int(word) >> 12) + 1.0) * 2.0**-53 for word in generator.random_raw(2)]


def drawn(delay, t, u):
    """A delay by its distribution function, or until the round is a multiple of the batch."""
    if isinstance(delay, int):
        return delay
    if isinstance(delay, list):
        return delay[int(u * len(delay))]
    if "batch" in delay:
        return next(wait for wait in range(delay["batch"]) if (t + wait) % delay["batch"] == 0)
    mean = delay["geometric"]
    return int(math.log(u) / math.log(mean / (1.0 + mean)))


def live(problem, policy, delay, rounds):
    """Pulls, idle rounds, rewards and costs of a bandit that is told everything so many rounds late."""
    bandit, sample = (
        bandit_for(make_policy(policy) if isinstance(policy, str) else policy, problem, SEED, rounds),
        problem.sample(SEED),
    )
    news, pulls, idle = defaultdict(list), np.zeros(problem.arms, int), 0
    earned, spent = 0.0, np.zeros(len(problem.resources))
    apart = isinstance(delay, dict) and ("cost" in delay or "reward" in delay)
    for t in range(1, rounds + 1):
        decision = bandit.ask()
        if decision.arm is None:
            idle += 1
        else:
            arm = int(decision.arm.removeprefix("arm "))
            reward, cost = sample.pull(arm)
            pulls[arm] += 1
            earned += reward
            spent += list(cost.values()) if isinstance(cost, dict) else [cost]
            first, second = uniforms(t)
            if apart:
                news[t + drawn(delay.get("cost", 0), t, first)].append((decision.id, None, cost))
                news[t + drawn(delay.get("reward", 0), t, second)].append((decision.id, reward, None))
            else:
                news[t + drawn(delay, t, first)].append((decision.id, reward, cost))
        for number, reward, cost in news.pop(t, []):
            bandit.tell(number, reward=reward, cost=cost)
    return pulls.tolist(), idle, earned, spent.tolist()


@pytest.mark.parametrize("delay", DELAYS, ids=str)
@pytest.mark.parametrize(
    ("problem", "policy"), [(EIGHT, "index"), (THREE, "thompson"), (TWO_BUDGETS, "thompson")], ids=["1", "2", "3"]
)
def test_simulated_delays_are_those_of_a_live_bandit(problem, policy, delay):
    rounds = 1500
    run = pl.simulate(problem, policy, rounds=rounds, trials=1, seed=SEED, checkpoints=1, delay=delay)[policy]
    pulls, idle, earned, spent = live(problem, policy, delay, rounds)
    assert run.totals.pulls[0, -1].tolist() == pulls
    assert run.totals.idle[0, -1] == idle
    assert run.totals.earned[0, -1] == pytest.approx(earned, rel=1e-12)
    assert np.ravel(run.totals.spent[0, -1]) == pytest.approx(spent, rel=1e-6)


class Least(pl.PythonPolicy):
    """The arm that has brought least, as far as is known: news changes what it does."""

    def reset(self, setting):
        self.known = [0.0] * setting.arms

    def choose(self, state):
        return self.known.index(min(self.known))

    def learn(self, state, arm, reward, cost):
        self.known[arm] += reward


@pytest.mark.parametrize("delay", DELAYS, ids=str)
def test_python_policy_and_python_world_wait_as_compiled_ones_do(delay):
    run = pl.simulate(THREE, Least(), rounds=400, trials=1, seed=SEED, checkpoints=1, delay=delay)["Least"]
    pulls, idle, earned, spent = live(THREE, Least(), delay, 400)
    assert (run.totals.pulls[0, -1].tolist(), run.totals.idle[0, -1]) == (pulls, idle)
    assert run.totals.earned[0, -1] == pytest.approx(earned, rel=1e-12)
    assert run.totals.spent[0, -1] == pytest.approx(spent[0], rel=1e-6)


delays = st.one_of(
    st.integers(0, 40),
    st.lists(st.integers(0, 60), min_size=1, max_size=4),
    st.floats(0.01, 30).map(lambda mean: {"geometric": mean}),
    st.integers(1, 40).map(lambda batch: {"batch": batch}),
)


@settings(max_examples=60, deadline=None)
@given(
    delay=st.one_of(delays, st.fixed_dictionaries({"cost": delays, "reward": delays})),
    policy=st.sampled_from(["index", "thompson", "uniform", "greedy"]),
    problem=st.sampled_from([THREE, EIGHT, TWO_BUDGETS]),
    seed=st.integers(0, 2**32),
)
def test_no_line_is_crossed_and_the_breakdown_adds_up(delay, policy, problem, seed):
    run = pl.simulate(problem, policy, rounds=300, trials=2, seed=seed, checkpoints=7, delay=delay)[policy]
    assert (run.min_headroom >= 0).all()
    assert (run.totals.pulls.sum(axis=-1) + run.totals.idle == run.rounds).all()
    parts = run.breakdown()
    assert sum(parts.values()) == pytest.approx(run.pseudo_regret, abs=1e-9)


def test_no_delay_is_the_run_without():
    plain = pl.simulate(EIGHT, "index", rounds=3000, trials=2, seed=SEED)["index"]
    for nothing in (0, [0], {"geometric": 0}, {"batch": 1}, {"cost": 0, "reward": 0}, {"cost": [0, 0]}):
        again = pl.simulate(EIGHT, "index", rounds=3000, trials=2, seed=SEED, delay=nothing)["index"]
        assert (again.totals.earned == plain.totals.earned).all()
        assert (again.spent == plain.spent).all()


def test_calendar_with_news_at_once_is_the_run_without():
    """A delay that is possible but never happens leads through the calendar, and gives the same."""
    plain = pl.simulate(EIGHT, "index", rounds=3000, trials=1, seed=SEED)["index"]
    again = pl.simulate(EIGHT, "index", rounds=3000, trials=1, seed=SEED, delay={"geometric": 1e-9})["index"]
    assert (again.totals.earned == plain.totals.earned).all()
    assert (again.spent == plain.spent).all()


BAD = {
    "-1": (-1, "delay must be a whole number of at least 0, got -1"),
    "1.5": (1.5, "delay must be a whole number of at least 0, got 1.5"),
    "text": ("soon", "delay must be a number of rounds"),
    "empty": ([], "got an empty list"),
    "unknown key": ({"cost": 1, "price": 2}, "got {'cost': 1, 'price': 2}"),
    "geometric and more": ({"geometric": 1, "cost": 2}, "got {'geometric': 1, 'cost': 2}"),
    "negative mean": ({"reward": {"geometric": -2}}, "mean of the delay of the reward must be"),
    "no batch": ({"batch": 0}, "batch of the delay must be a whole number of at least 1, got 0"),
    "in a list": ([1, -3], "each delay must be a whole number of at least 0, got -3"),
    "too long": (10**9, "delay must be 10000000 rounds at most, got one of 1000000000"),
    "no end of it": ({"geometric": 1e17}, "mean of the delay must be in [0, 1e+07], got 1e+17"),
    "an array of a fraction": (np.array(2.5), "delay must be a whole number of at least 0, got 2.5"),
    "too long by chance": ({"geometric": 1e6}, "delay must be 10000000 rounds at most, got one of"),
}


@pytest.mark.parametrize("given", BAD)
def test_what_is_no_delay_is_refused_in_one_line(given):
    delay, message = BAD[given]
    with pytest.raises(InvalidValue) as caught:
        pl.simulate(THREE, "uniform", rounds=10, trials=1, delay=delay)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_delays_are_written_as_they_were_read():
    for delay in DELAYS:
        read = read_delays(delay)
        assert read_delays(read.written()) == read


# The outlook.


def test_outlook_is_the_expected_headroom_less_its_peak():
    """Three rounds by hand: E, its peak, the doubt."""
    policy = make_policy("uniform")
    storage = policy.new_storage(Setting(2, (0.5,)), 0, 0)
    books, state = books_in(storage), state_in(storage)
    look = plain_throughout(look_ahead)
    state.headroom[0] = 4.0
    state.clock.t = 100
    look(books, state)
    assert state.outlook[0] == 4.0  # nothing is on its way

    books.reserved[0] = 3 << 32
    books.unpaid[0, 0], books.unpaid[1, 0] = 2.0, 1.0  # of arm 1 nothing is known: it may cost all of it
    state.arms.cost_mean[0, 0], state.arms.cost_known[:, 0, 0] = 0.2, (10, 2.0, 10 * (0.04 + 0.01))
    look(books, state)
    back, doubt = 2 * 0.8, math.sqrt(2 * 2 * 0.01 * math.log(101))
    assert (books.peak[0], books.depth[0]) == (pytest.approx(back), 3.0)
    assert state.outlook[0] == pytest.approx(4.0 - doubt)

    books.unpaid[0, 0], state.clock.t = 1.0, 101
    look(books, state)
    kept = 1 - 1 / 50.5
    assert books.peak[0] == pytest.approx(kept * back)
    doubt = math.sqrt(2 * 0.01 * math.log(102))
    assert state.outlook[0] == pytest.approx(4.0 + 0.8 - kept * back - doubt)


def test_outlook_keeps_back_no_more_than_a_quarter_of_a_cap():
    storage = make_policy("uniform").new_storage(Setting(1, (0.5,), caps=(8.0,)), 0, 0)
    books, state = books_in(storage), state_in(storage)
    books.reserved[0], books.unpaid[0, 0], state.headroom[0], state.clock.t = 5 << 32, 5.0, 3.0, 10
    state.arms.cost_mean[0, 0], state.arms.cost_known[:, 0, 0] = 0.1, (4, 0.4, 0.04)  # E = 4.5 is its own peak
    plain_throughout(look_ahead)(books, state)
    assert state.outlook[0] == pytest.approx(3.0 + 4.5 - 8.0 / 4)


def test_peak_is_gone_some_time_after_the_last_late_cost():
    policy = make_policy("uniform")
    storage = policy.new_storage(Setting(1, (0.5,)), 0, 0)
    books, state = books_in(storage), state_in(storage)
    look = plain_throughout(look_ahead)
    books.reserved[0], books.unpaid[0, 0], state.headroom[0], state.clock.t = 1 << 32, 5.0, 2.0, 10
    look(books, state)
    books.reserved[0], books.unpaid[0, 0] = 0, 0.0
    for t in range(11, 1000):
        state.clock.t = t
        look(books, state)
    assert (books.depth[0], books.peak[0], state.outlook[0]) == (0.0, 0.0, 2.0)


# What it is for.


@pytest.mark.statistical
@pytest.mark.parametrize("policy", ["index", "thompson", "oracle"])
@pytest.mark.parametrize("mean", [5, 50, 500])
@pytest.mark.parametrize("kind", ["fixed", "geometric"])
def test_rounds_lost_to_late_costs_do_not_grow(policy, mean, kind):
    """Before, 4 to 12 % of all rounds were sat out, for ever: 6,000 to 18,000 of the 150,000 between the two counts."""
    delay = {"cost": mean if kind == "fixed" else {"geometric": mean}}
    run = pl.simulate(EIGHT, policy, rounds=200_000, trials=4, seed=11, checkpoints=[50_000], delay=delay)[policy]
    early, late = run.totals.idle.mean(axis=0)
    assert late - early <= 0.02 * early + 2
    alone = pl.simulate(EIGHT, policy, rounds=200_000, trials=4, seed=11, checkpoints=1)[policy]
    # Steady regret of the prototype of the rule with known means; with 500 fixed its peak faded too soon.
    figure = {("fixed", 5): 6.8, ("geometric", 5): 8.8, ("fixed", 50): 42, ("geometric", 50): 38}.get((kind, mean), 317)
    assert run.steady_regret[:, -1].mean() <= alone.steady_regret[:, -1].mean() + 2 * figure


# Files, families, the command line.


def test_experiment_with_delays_is_the_simulation_with_them(tmp_path):
    table = {
        "rounds": 500,
        "trials": 3,
        "seed": 5,
        "checkpoints": 2,
        "policies": ["index"],
        "problem": [{"paper": "three-arms", "grid": {"delay": [0, 7, {"cost": {"geometric": 9}}]}}],
    }
    experiment = pl.Experiment.from_table(table)
    written = [problem.get("delay") for problem in experiment.to_dict()["problems"]]
    assert written == [None, 7, {"cost": {"geometric": 9.0}, "reward": 0}]
    study = pl.run_experiment(experiment, tmp_path)
    for delay, results in zip(table["problem"][0]["grid"]["delay"], study.values(), strict=True):
        alone = pl.simulate(THREE, "index", rounds=500, trials=3, seed=5, checkpoints=2, delay=delay)
        assert (results["index"].totals.spent == alone["index"].totals.spent).all()
        assert results.late == alone.late


def test_wrong_delay_in_an_experiment_is_named_with_its_place():
    table = {"policies": ["index"], "problem": [{"paper": "three-arms", "delay": -3}]}
    with pytest.raises(InvalidValue, match=r"^problem 1: delay must be a whole number of at least 0, got -3$"):
        pl.Experiment.from_table(table)


def test_comparison_with_delays_says_so():
    study = pl.compare("beta", ["index", "uniform"], problems=2, rounds=300, trials=2, delay={"cost": 5})
    assert study.size == "2 problems, 2 policies, 2 trials of 300 rounds, seed 0, costs 5 rounds late"
    alone = pl.compare("beta", ["index", "uniform"], problems=2, rounds=300, trials=2)
    assert (study["beta 1"]["index"].totals.spent != alone["beta 1"]["index"].totals.spent).any()


def test_results_say_how_late_the_news_was_also_from_a_file(tmp_path):
    results = pl.simulate(THREE, "uniform", rounds=100, trials=2, delay={"cost": 5})
    results.save(tmp_path / "late.npz")
    for late in (results, pl.Results.load(tmp_path / "late.npz")):
        assert repr(late) == "<Results: uniform; 2 trials of 100 rounds, 3 arms, seed 0, costs 5 rounds late>"
        assert late.table().notes[1:] == ("News: costs 5 rounds late.",)
    at_once = pl.simulate(THREE, "uniform", rounds=100, trials=2, delay=0)
    assert (at_once.late, at_once.table().notes[1:]) == ("", ())


def test_delay_on_the_command_line_is_a_value_of_toml():
    assert read_toml_delays("[0, 3]") == read_delays([0, 3])
    assert read_toml_delays("{cost = {geometric = 5}}") == read_delays({"cost": {"geometric": 5}})
    with pytest.raises(InvalidValue, match=r"got 'soon'$"):
        read_toml_delays("soon")

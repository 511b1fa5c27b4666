"""Families like life: what their descriptions say holds for many seeds, and old kinds are drawn as ever."""

import hashlib
import json

import elsewhere
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from worlds import pulls_of

import paceline as pl
from paceline.experiments.shipped import rounds_to_play
from paceline.problems import families
from paceline.problems.families import life

seeds = st.integers(0, 2**64 - 1)
OBSERVED = ["bidding", "llm", "inventory"]
KINDS = [*OBSERVED, "rare-unequal", "small-budget-unequal", "start"]
MANY = 30

# SHA-256 of the old kinds, so that nothing moves unseen.
BEFORE = {
    "beta": "99db22412b41d5ad",
    "bernoulli": "d21111a7aa28e8e9",
    "mixed": "31631f7c2c8ef960",
    "many": "5cf4bc139627a4d1",
    "small-budget": "475c6d71eed7a3d0",
    "rare": "ef82427dedd23986",
    "at-budget": "eabbf7ac9ea69157",
    "correlated": "b157fd5d6a1e6c98",
    "resources": "36c8af06157a4898",
    "resources-tight": "ab0608f589923884",
    "resources-slack": "fa8f9efb9e3ddc25",
    "resources-correlated": "5dfba63cdb517452",
    "refilling": "583674d39da2b0fb",
}


@pytest.mark.parametrize("kind", BEFORE)
def test_old_kinds_have_not_changed_by_a_bit(kind):
    drawn = [problem for seed in (0, 1, 99) for problem in families.family(kind, 6, seed)]
    drawn += [families.random(kind, seed) for seed in (5, 6, 2**63)]
    if kind.startswith("resources") or kind == "refilling":
        drawn += families.family(kind, 4, 8, resources=4, shortfall=0.05)
    else:
        drawn.append(families.random(kind, 3, arms=7, budget=0.03 if kind == "small-budget" else None))
    text = json.dumps([problem.to_dict() for problem in drawn])
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == BEFORE[kind]


def sides(problem: pl.Problem) -> tuple[np.ndarray, np.ndarray]:
    """Rewards and costs of a full table, a row per observation."""
    rewards, costs = problem.observations.values
    return rewards.reshape(problem.arms, -1).T, costs.reshape(problem.arms, -1).T


def drawn(kind: str, seed: int = 11) -> list[pl.Problem]:
    return families.family(kind, MANY, seed)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=6, deadline=None)
@given(seed=seeds)
def test_every_seed_gives_a_problem_worth_playing(kind, seed):
    problem = families.random(kind, seed)
    assert families.random(kind, seed) == problem
    assert 0.0 < problem.optimum.value < 1.0
    assert problem.optimum.gaps.max() > 0.0
    assert 0.0 < pl.theory.limit(problem, 1000) < np.inf
    assert pl.Problem.from_dict(json.loads(json.dumps(problem.to_dict()))) == problem
    assert len(set(problem.most[0])) == problem.arms or kind in {"inventory", "rare-unequal", "small-budget-unequal"}
    assert len(set(problem.most[0])) > 1
    assert (problem.cost_means <= problem.most[0]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_an_entry_depends_on_kind_seed_and_number_alone(kind):
    few, more = families.family(kind, 2, seed=9), families.family(kind, 4, seed=9)
    assert more[:2] == few
    assert len({problem.rates for problem in more}) == 4
    assert families.family(kind, 1, seed=10) != few[:1]


FINGERPRINTS = """
import hashlib, json
from paceline.problems import families
for kind in families.KINDS:
    drawn = [families.random(kind, seed).to_dict() for seed in range(4)]
    print(kind, hashlib.sha256(json.dumps(drawn).encode()).hexdigest())
"""


def test_the_same_on_a_processor_that_can_do_less():
    """NumPy and its linear algebra round as suits what they find."""
    found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    as_it_is = elsewhere.run(FINGERPRINTS)
    assert len(set(as_it_is)) == len(families.KINDS)
    for core in ("Haswell", "Prescott"):
        assert elsewhere.run(FINGERPRINTS, NPY_DISABLE_CPU_FEATURES=" ".join(found), OPENBLAS_CORETYPE=core) == as_it_is


@pytest.mark.parametrize("kind", KINDS)
def test_arms_and_budget_may_be_given(kind):
    budget = 0.02
    problem = families.random(kind, 4, arms=6, budget=budget)
    assert (problem.arms, problem.budget) == (6, budget)
    if kind in {*OBSERVED, "start"}:  # else a budget decides which draws are acceptable
        other = families.random(kind, 4, arms=6)
        assert (problem.rewards, problem.most) == (other.rewards, other.most)


class Watched:
    """A generator that keeps what it drew by the names of its methods."""

    def __init__(self, seed):
        self.generator, self.kept = np.random.default_rng(seed), {}

    def __getattr__(self, name):
        def method(*arguments, **options):
            found = getattr(self.generator, name)(*arguments, **options)
            self.kept.setdefault(name, []).append(found)
            return found

        return method


def test_budgets_of_bidding_are_parts_of_the_mean_price():
    shares, tails = [], []
    for seed in range(60):
        watched = Watched(seed)
        scene = life.bidding(watched, 5)
        (prices,) = watched.kept.get("lognormal", []) + watched.kept.get("pareto", [])
        high = prices[scene.costs[:, 0] > 0.0].max() / scene.costs[:, 0].max()  # the highest bid, in units of prices
        shares.append(scene.budget * high / prices.mean())
        tails.append(stats.kurtosis(prices))
    assert 1 / 64 - 1e-12 <= min(shares) < 1 / 40
    assert 1 / 6 < max(shares) <= 1 / 4 + 1e-12
    assert min(tails) > 3.0  # a normal distribution has 0, an exponential one 6
    assert np.median(tails) > 30.0


@pytest.mark.slow
def test_bids_win_at_the_price_or_pay_nothing():
    for problem in drawn("bidding"):
        rewards, costs = sides(problem)
        bids = np.array(problem.most[0])
        assert max(bids) == 1.0
        prices = costs.max(axis=1)  # what the highest bid pays; 0 where nobody wins
        won = (prices[:, None] > 0.0) & (prices[:, None] <= bids)
        assert (costs == won * prices[:, None]).all()
        assert set(np.unique(rewards)) == {0.0, 1.0}
        assert (won >= rewards).all()
        clicked = rewards.max(axis=1)
        assert (rewards == won * clicked[:, None]).all()
        # The highest bid wins most; lower bids win less and earn no more.
        order = np.argsort(bids)
        assert (np.diff(problem.cost_means[order]) >= 0.0).all()
        assert (np.diff(problem.reward_means[order]) >= 0.0).all()
        assert (costs.max(axis=0) <= bids).all()


def test_pulls_of_bids_earn_only_what_is_paid_for():
    problem = drawn("bidding")[1]
    arm = int(np.argmax(problem.most[0]))
    rewards, costs = pulls_of(problem, 50_000, arm)
    assert (costs[rewards > 0] > 0).all()
    assert rewards.sum() > 0
    assert 0 < (costs == 0).mean() < 0.5


@pytest.mark.slow
def test_the_numbers_of_bidding():
    problems = drawn("bidding") + drawn("bidding", 12)
    arms = [problem.arms for problem in problems]
    assert (min(arms), max(arms)) == (3, 30)
    rates = [problem.reward_means.max() for problem in problems]
    assert 5e-4 < min(rates) < 2e-3
    assert 2e-2 < max(rates) < 5.5e-2
    assert {len(problem.optimum.base) for problem in problems} == {2}


@pytest.mark.slow
def test_costs_of_models_span_three_orders_and_stay_far_below_the_largest():
    problems = drawn("llm")
    assert {problem.arms for problem in problems} == set(range(3, 9))
    signs = []
    for problem in problems:
        rewards, costs = sides(problem)
        means, largest = problem.cost_means, np.array(problem.most[0])
        assert 600 < means.max() / means.min() < 1600  # a thousand before the longest answers are cut off
        assert (largest / means >= 5.0 - 1e-9).all()
        assert (largest / means <= 25.0).all()
        assert (np.median(costs, axis=0) < means).all()
        assert (np.quantile(costs, 0.9, axis=0) < largest / 2).all()
        assert means.min() * (1 - 1e-9) <= problem.budget <= means.max() * (1 + 1e-9)
        assert ((problem.reward_means > 0.09) & (problem.reward_means < 0.96)).all()
        assert set(np.unique(rewards)) == {0.0, 1.0}
        signs += [stats.spearmanr(rewards[:, arm], costs[:, arm]).statistic for arm in range(problem.arms)]
    assert max(signs) < 0.0  # hard requests cost more and fail more
    assert np.median(signs) < -0.1


def test_demands_are_whole_and_reward_is_price_times_demand():
    problems = drawn("inventory")
    arms = [problem.arms for problem in problems + drawn("inventory", 12)]
    assert (min(arms), max(arms)) == (3, 12)
    for problem in problems:
        rewards, costs = sides(problem)
        pieces, limits = costs * 16, np.array(problem.most[0]) * 16
        assert (pieces == np.rint(pieces)).all()
        assert (limits == np.rint(limits)).all()
        assert (pieces <= limits).all()
        assert max(limits) == 16
        sold = pieces > 0
        assert (rewards[~sold] == 0.0).all()
        for arm in range(problem.arms):
            each = rewards[sold[:, arm], arm] / pieces[sold[:, arm], arm]
            np.testing.assert_allclose(each, each.mean(), rtol=1e-12)
        assert 1 / 8 - 1e-9 <= problem.budget / problem.cost_means.max() <= 3 / 4 + 1e-9
    assert any((sides(problem)[1] * 16 > 3).any() for problem in problems)


@pytest.mark.parametrize(("kind", "like"), [("rare-unequal", "rare"), ("small-budget-unequal", "small-budget")])
def test_unequal_largest_costs(kind, like):
    low, high = {"rare": (0.001, 0.01), "small-budget": (0.02, 0.98)}[like]
    spans = []
    for problem in drawn(kind):
        means, largest = problem.cost_means, np.array(problem.most[0])
        heads = largest / means
        assert ((heads >= 1.25 - 1e-9) | (largest == 1.0)).all()
        assert (heads <= 8.0 + 1e-9).all()
        assert ((means >= 0.05 - 1e-12) & (means <= 0.95)).all()
        assert (problem.reward_means >= low).all()
        assert (problem.reward_means <= high).all()
        assert all(isinstance(reward, pl.Bernoulli) for reward in problem.rewards)
        assert problem.budget <= 0.05 or like == "rare"
        spans.append(largest.max() / largest.min())
    assert np.median(spans) > 3.0
    cases = [problem.optimum.case for problem in drawn(kind)[:6]]
    assert cases == ([1, 2, 3] * 2 if like == "rare" else [2] * 6)


def test_the_start_has_wide_priors_and_arms_to_wait_for():
    problems = drawn("start") + drawn("start", 12)
    arms = [problem.arms for problem in problems]
    assert min(arms) >= 5
    assert max(arms) <= 30
    assert {5, 6, 7} & set(arms)
    assert {28, 29, 30} & set(arms)
    best = [problem.reward_means.max() for problem in problems]
    assert min(best) < 0.05
    assert max(best) > 0.6
    for problem in problems:
        largest = np.array(problem.most[0])
        assert largest.max() == 1.0
        assert largest.min() >= 1 / 30 - 1e-12
        assert ((problem.cost_means >= 0.2 * largest - 1e-12) & (problem.cost_means <= 0.8 * largest + 1e-12)).all()
        assert 1 / 16 - 1e-9 <= problem.budget / problem.cost_means.mean() <= 1 / 2 + 1e-9


def test_a_comparison_plays_the_start_for_500_rounds():
    study = pl.compare("start", ["uniform", "oracle"], problems=2, trials=1)
    assert study.rounds[-1] == 500
    assert rounds_to_play("start", None, 50_000) == 500
    assert rounds_to_play("start", 200, 50_000) == 200
    assert rounds_to_play("beta", None, 50_000) == 50_000
    assert rounds_to_play([], 3, 50_000) == 3
    with pytest.raises(pl.InvalidValue, match="rounds of kind 'start' must be a whole number from 2 to 500, got 501"):
        pl.compare("start", "uniform", rounds=501)


@pytest.mark.parametrize("kind", KINDS)
def test_the_default_policy_plays_them(kind):
    study = pl.compare(kind, ["thompson", "oracle", "uniform"], problems=2, rounds=500, trials=2)
    for results in study.values():
        for run in results.values():
            assert (run.min_headroom >= 0.0).all()
            np.testing.assert_allclose(sum(run.breakdown().values()), run.pseudo_regret, atol=1e-9)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60), st.floats(0, 0.999))
def test_events_are_spread_evenly(chances, shift):
    events = life.spread(np.array(chances), shift)
    for first in range(len(chances)):
        for last in range(first, len(chances)):
            assert abs(events[first : last + 1].sum() - sum(chances[first : last + 1])) < 1.0 + 1e-9


@pytest.mark.parametrize(
    ("words", "kind", "options"),
    [
        ("case must not be given for kind 'bidding', which is drawn from life, got 2", "bidding", {"case": 2}),
        ("concentration must not be given for kind 'llm', .*, got 5.0", "llm", {"concentration": 5.0}),
        ("shortfall must not be given for kind 'inventory', .*, got 0.2", "inventory", {"shortfall": 0.2}),
        ("resources of kind 'start' must be 1, got 2", "start", {"resources": 2}),
        (r"budget of kind 'bidding' must be in \(0, 1\], got 0.0", "bidding", {"budget": 0}),
        ("arms must be a whole number from 2 to 10000, got 1", "bidding", {"arms": 1}),
        ("arms must be a whole number from 2 to 10000, got 9223372036854775808", "beta", {"arms": 2**63}),
        (
            "resources of kind 'refilling' must be a whole number from 2 to 100, got 101",
            "refilling",
            {"resources": 101},
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused(words, kind, options):
    with pytest.raises(pl.InvalidValue, match=words):
        families.random(kind, 0, **options)


def test_every_kind_is_described_in_a_line():
    assert all(families.KINDS[kind] and "\n" not in families.KINDS[kind] for kind in KINDS)
    assert set(KINDS) <= set(families.KINDS)


def test_an_experiment_refers_to_its_problems_by_name(tmp_path):
    (tmp_path / "e.toml").write_text(
        'rounds = 300\ntrials = 2\npolicies = ["uniform"]\n[[problem]]\nfamily = "bidding"\nsize = 2\nseed = 3\n'
    )
    study = pl.run_experiment(pl.Experiment.read(tmp_path / "e.toml"), tmp_path / "out")
    assert (tmp_path / "out" / "manifest.json").stat().st_size < 20_000
    assert pl.Study.open(tmp_path / "out").problems == families.family("bidding", 2, seed=3)
    assert list(study) == ["bidding 1", "bidding 2"]

"""Regret in its three forms, its exact breakdown, and the events of SUAK."""

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanes import FIELD
from scipy import stats
from scipy.optimize import linprog

import paceline as pl
from paceline.kernels.random import decision_uniform
from paceline.kernels.state import SKIP, Decision
from paceline.policies import POLICIES
from paceline.policies.policy import Policy, learn_nothing
from paceline.problems.distributions import Shifted

THREE_ARMS = pl.paper.three_arms()
CAUSES = ("wrong_arms", "idle", "unspent", "cost_luck")
FALSE_ALARM = 1e-6  # how often each statistical test below may fail when all is well, were its seed drawn anew


class Size(NamedTuple):
    """The number of arms."""

    arms: int


def anything(params, state):
    """Any arm, the null arm, or a skip, with equal chances."""
    clock = state.clock
    arm = int(decision_uniform(clock.seed, clock.stream, clock.t) * (params.arms + 2)) - 1
    return Decision(arm, 1, SKIP)


@dataclass(frozen=True, kw_only=True)
class Anything(Policy):
    """Does all that a policy may do: the listed ones seldom choose the null arm where it loses something."""

    name = "anything"
    reasons = ("headroom below the largest cost", "whatever")
    choose = staticmethod(anything)
    learn = staticmethod(learn_nothing)

    def params(self, setting):
        return Size(setting.arms)


# Random problems of every kind of distribution, and a random policy to play them.

OTHERS = {name: policy for name, policy in POLICIES.items() if name not in FIELD}  # each has to be compiled
EVERYONE: dict[str, type[Policy]] = OTHERS | {"anything": Anything}

thousandths = st.integers(0, 1000).map(lambda number: number / 1000)
distributions = st.one_of(
    st.builds(pl.Beta, thousandths, st.sampled_from([0.5, 2.0, 10.0])),
    st.builds(pl.Bernoulli, thousandths),
    st.builds(pl.Constant, thousandths),
    st.builds(pl.Empirical, st.lists(thousandths, min_size=1, max_size=4)),
)


@st.composite
def problems(draw: st.DrawFn) -> pl.Problem:
    """One to five arms, a rate of at least a thousandth."""
    arms = draw(st.integers(1, 5))
    rewards, costs = (draw(st.lists(distributions, min_size=arms, max_size=arms)) for _ in range(2))
    return pl.Problem(rewards, costs, draw(st.integers(1, 1000)) / 1000)


@st.composite
def runs(draw: st.DrawFn, names: tuple[str, ...] = tuple(EVERYONE)) -> pl.Run:
    """Two trials of a policy on a random problem."""
    name, seed = draw(st.sampled_from(names)), draw(st.integers(0, 2**64 - 1))
    rounds = draw(st.integers(1, 400))
    return pl.simulate(draw(problems()), EVERYONE[name](), rounds=rounds, trials=2, seed=seed, checkpoints=5)[name]


def assert_adds_up(parts: list[np.ndarray], whole: np.ndarray) -> None:
    """Equal to nine digits of the largest part, which leaves room for nothing but rounding."""
    size = 1.0 + sum(np.abs(part) for part in parts)
    assert (np.abs(sum(parts) - whole) <= 1e-9 * size).all()


@given(runs())
def test_breakdown_is_an_identity(run):
    terms = run.breakdown()
    assert tuple(terms) == CAUSES
    assert_adds_up([terms[cause] for cause in CAUSES[:3]], run.steady_regret)
    assert_adds_up([terms[cause] for cause in CAUSES], run.pseudo_regret)


@given(runs())
def test_no_cause_of_steady_regret_is_negative(run):
    terms = run.breakdown()
    for cause in CAUSES[:3]:
        assert (terms[cause] >= -1e-9).all(), cause


@given(runs())
def test_every_round_is_a_pull_or_idle(run):
    assert (run.totals.pulls.sum(axis=-1) + run.idle == run.rounds).all()
    assert (run.pulls == run.totals.pulls[:, -1]).all()
    assert (run.skips <= run.idle).all()
    assert (run.skips >= 0).all()


@given(runs())
def test_the_promise_is_kept(run):
    assert (run.spent <= run.problem.budget * run.rounds).all()
    assert (run.min_headroom >= 0).all()
    # At a checkpoint the headroom can be seen; it is never below the smallest of all rounds. (The line is rounded down
    # to 2**-32.)
    headroom = run.problem.budget * run.rounds - run.spent
    assert (headroom.min(axis=1) >= run.min_headroom - 2.0**-31).all()


def test_definitions_from_raw_totals():
    run = pl.simulate(THREE_ARMS, "suak", rounds=5000, trials=3, checkpoints=4)["suak"]
    best, mean_rewards = 0.59, np.array([0.45, 0.7, 0.8])
    np.testing.assert_allclose(run.regret, best * run.rounds - run.totals.earned, rtol=1e-12)
    np.testing.assert_allclose(run.pseudo_regret, best * run.rounds - run.totals.pulls @ mean_rewards, rtol=1e-12)
    # Price 0.7 and level 0.24 from the two arms of the base; the second arm loses 0.24 - 0.7 + 0.7 * 0.75 a pull.
    steady = 0.065 * run.totals.pulls[..., 1] + 0.24 * run.idle + 0.7 * (0.5 * run.rounds - run.spent)
    np.testing.assert_allclose(run.steady_regret, steady, rtol=1e-9)


# Several resources.


@st.composite
def several_resources(draw: st.DrawFn) -> pl.Problem:
    """Two or three resources, some with a start stock, a cap, refills, or no income at all."""
    arms, resources = draw(st.integers(1, 5)), draw(st.integers(2, 3))
    names = "abc"[:resources]
    refills = st.builds(lambda of, by: Shifted(pl.Scaled(of, 0.5), -by), distributions, thousandths)
    costs = {name: draw(st.lists(distributions | refills, min_size=arms, max_size=arms)) for name in names}
    start = {name: draw(st.sampled_from([0.0, 0.0, 3.5, 40.0])) for name in names}
    cap = {name: max(1.0, start[name]) + draw(thousandths) for name in names if draw(st.booleans())}
    # Without an income there must be something to live on.
    lowest = {name: 0 if start[name] > 0 else 1 for name in names}
    budget = {name: draw(st.integers(lowest[name], 1000)) / 1000 for name in names}
    rewards = draw(st.lists(distributions, min_size=arms, max_size=arms))
    return pl.Problem(rewards, costs, budget, start=start, cap=cap)


@st.composite
def several_runs(draw: st.DrawFn) -> pl.Run:
    """Two trials of a policy that pulls anything."""
    seed, rounds = draw(st.integers(0, 2**64 - 1)), draw(st.integers(1, 400))
    return pl.simulate(
        draw(several_resources()), "uniform", rounds=rounds, trials=2, seed=seed, checkpoints=draw(st.integers(1, 5))
    )["uniform"]


@given(several_runs())
def test_breakdown_is_an_identity_with_several_resources(run):
    terms, split = run.breakdown(), run.breakdown(by_resource=True)
    assert tuple(terms) == tuple(split) == CAUSES
    assert_adds_up([terms[cause] for cause in CAUSES[:3]], run.steady_regret)
    assert_adds_up([terms[cause] for cause in CAUSES], run.pseudo_regret)
    for cause in ("unspent", "cost_luck"):
        assert split[cause].shape == (*terms[cause].shape, len(run.problem.resources))
        assert_adds_up(list(np.moveaxis(split[cause], -1, 0)), terms[cause])
    for cause in ("wrong_arms", "idle"):
        assert (split[cause] == terms[cause]).all()


@given(several_runs())
def test_no_cause_is_negative_and_the_promise_is_kept_with_several_resources(run):
    terms, split = run.breakdown(), run.breakdown(by_resource=True)
    assert (terms["wrong_arms"] >= -1e-9).all()
    assert (terms["idle"] >= -1e-9).all()
    assert (split["unspent"] >= -1e-9).all()
    assert (run.min_headroom >= 0).all()
    assert (run.spent <= np.array(run.problem.stocks) + np.outer(run.rounds, run.problem.rates)).all()
    assert (run.totals.pulls.sum(axis=-1) + run.idle == run.rounds).all()


def test_definitions_from_raw_totals_with_several_resources():
    """The prices and the level by a general solver; energy has a stock, a cap and an arm that refills it."""
    problem = pl.Problem(
        [pl.Beta(0.45), pl.Beta(0.7), pl.Beta(0.8), pl.Beta(0.1)],
        {
            "money": [pl.Beta(mean) for mean in (0.3, 0.75, 0.8, 0.1)],
            "energy": [pl.Beta(0.2), pl.Beta(0.4), pl.Beta(0.6), pl.Scaled(pl.Beta(0.5), -0.8)],
        },
        budget={"money": 0.5, "energy": 0.25},
        start={"energy": 2.0},
        cap={"energy": 10.0},
    )
    mu, rho = problem.reward_means, problem.consumption_means
    solved = linprog(-mu, A_ub=np.vstack([rho.T, np.ones(4)]), b_ub=[0.5, 0.25, 1.0])
    *prices, level = -solved.ineqlin.marginals
    assert min(prices) > 0.01  # both lines bind
    run = pl.simulate(problem, "uniform", rounds=3000, trials=3, checkpoints=4)["uniform"]
    line = np.array([0.0, 2.0]) + np.outer(run.rounds, [0.5, 0.25])
    best = level * run.rounds + line @ prices
    np.testing.assert_allclose(run.regret, best - run.totals.earned, rtol=1e-9)
    np.testing.assert_allclose(run.pseudo_regret, best - run.totals.pulls @ mu, rtol=1e-9)
    gaps = level - mu + rho @ prices
    unspent = (line - run.spent) * prices
    steady = run.totals.pulls @ gaps + level * run.idle + unspent.sum(axis=-1)
    np.testing.assert_allclose(run.steady_regret, steady, rtol=1e-9)
    np.testing.assert_allclose(run.breakdown(by_resource=True)["unspent"], unspent, rtol=1e-9)
    assert (run.lost[..., 1] > 0).any()  # the cap did cut something off, which counts as unspent


def test_a_stock_without_income_is_spread_over_the_rounds():
    problem = pl.Problem.beta([0.5, 0.9], [0.2, 0.8], budget=0, start=100)
    run = pl.simulate(problem, "uniform", rounds=200, trials=2, checkpoints=[50, 200])["uniform"]
    # Half a unit a round: half of the time the expensive arm. A unit is worth (0.9 - 0.5) / (0.8 - 0.2).
    price = 0.4 / 0.6
    level = 0.5 - price * 0.2
    np.testing.assert_allclose(run.regret, level * run.rounds + price * 100 - run.totals.earned, rtol=1e-9)
    assert level * 200 + price * 100 == pytest.approx(200 * 0.7)


# SUAK by event.

EVENTS = ("guard_skips", "classification_skips", "classification_pulls", "base_rounds")


def assert_events_add_up(run: pl.Run) -> None:
    """By rounds exactly, by regret to rounding error."""
    rounds, regret = run.rounds_by_event(), run.regret_by_event()
    assert set(rounds) == set(regret) == set(EVENTS)
    assert (sum(rounds.values()) == run.rounds).all()
    # The paper's events count a round that the guard refuses also when the base would have taken the null arm.
    given_up = rounds["guard_skips"] + rounds["classification_skips"]
    assert ((run.skips <= given_up) & (given_up <= run.idle)).all()
    assert_adds_up(list(regret.values()), run.regret)
    for event in ("guard_skips", "classification_skips"):  # a round given up loses what a round is worth
        np.testing.assert_allclose(regret[event], run.problem.optimum.value * rounds[event])


@given(runs(names=("suak",)))
def test_events_of_suak_add_up(run):
    assert_events_add_up(run)


def test_events_of_suak_add_up_when_every_kind_has_happened():
    # Soon classified, and then mixed with the null arm, at a rate so low that the guard has to step in.
    one_dear_arm = pl.Problem.bernoulli([0.9], [0.9], budget=0.2)
    run = pl.simulate(one_dear_arm, "suak", rounds=20_000, trials=3, checkpoints=10)["suak"]
    for event, rounds in run.rounds_by_event().items():
        assert (rounds[:, -1] > 0).all(), event
    assert_events_add_up(run)


@pytest.mark.parametrize("name", sorted(set(EVERYONE) - {"suak"}))
@pytest.mark.parametrize("question", ["rounds_by_event", "regret_by_event"])
def test_events_of_another_policy_are_refused(name, question):
    run = pl.simulate(THREE_ARMS, {"my run": EVERYONE[name]()}, rounds=10, trials=1)["my run"]
    with pytest.raises(pl.InvalidValue, match="by suak only, got the run 'my run'"):
        getattr(run, question)()


# Luck.


@pytest.fixture(scope="module")
def oracle_run() -> pl.Run:
    """A hundred trials of the policy that knows everything."""
    return pl.simulate(THREE_ARMS, "oracle", rounds=20_000, trials=100, seed=7, checkpoints=1)["oracle"]


def test_luck_of_costs_has_mean_zero(oracle_run):
    luck = oracle_run.breakdown()["cost_luck"][:, -1]
    variances = np.array([cost.variance for cost in THREE_ARMS.costs])
    # The luck is a sum of independent deviations, one per pull, so its variance is known from the pulls.
    variance = THREE_ARMS.optimum.price**2 * (oracle_run.pulls @ variances).mean()
    error = math.sqrt(variance / len(luck))
    assert abs(luck.mean()) <= NormalDist().inv_cdf(1 - FALSE_ALARM / 2) * error
    # And it is luck, not nothing at all: its variance is the one that theory gives.
    freedom = len(luck) - 1
    low, high = stats.chi2.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], freedom) / freedom
    assert low <= luck.var(ddof=1) / variance <= high


def test_steady_regret_is_far_less_noisy(oracle_run):
    """The deviation of a trial is less than a fifth, by the test of Pitman and Morgan for paired variances.

    x = pseudo-regret has the larger variance of x and y = 5 times steady regret if and only if x - y and x + y are
    positively correlated. Fisher's transform of the correlation is about normal.
    """
    pseudo, steady = oracle_run.pseudo_regret[:, -1], 5 * oracle_run.steady_regret[:, -1]
    correlation = np.corrcoef(pseudo - steady, pseudo + steady)[0, 1]
    evidence = math.atanh(correlation) * math.sqrt(len(pseudo) - 3)
    assert evidence > NormalDist().inv_cdf(1 - FALSE_ALARM)


# Ceiling and floor.


@pytest.mark.parametrize("problem", [THREE_ARMS, pl.paper.eight_arms()], ids=["three arms", "eight arms"])
def test_oracle_loses_next_to_nothing_and_uniform_a_fixed_share(problem):
    results = pl.simulate(problem, ["oracle", "uniform"], rounds=200_000, trials=20, checkpoints=2)
    assert (results["oracle"].steady_regret < 24).all()
    half, whole = results["uniform"].steady_regret.T
    assert whole.min() > 8_000
    # Linear: the second half costs as much as the first, by Student's test on the trials.
    excess = (whole - half) - half
    bound = stats.t.isf(FALSE_ALARM / 2, len(excess) - 1) * excess.std(ddof=1) / math.sqrt(len(excess))
    assert abs(excess.mean()) <= bound
    assert bound < 0.05 * half.mean()  # so that anything else than linear would be noticed

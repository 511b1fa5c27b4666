"""The baselines decide as algorithms.md has it: One Phase and UCB Simplex round by round, Primal Dual in its phases."""

from functools import cache

import naive
import numpy as np
import play
import pytest
from lanes import first_of
from scipy import stats

from paceline.kernels.state import GUARD
from paceline.policies.one_phase import MIX, OnePhase
from paceline.policies.primal_dual import ROUND_ROBIN, PrimalDual
from paceline.policies.skip_first import STRETCH, SkipFirst
from paceline.policies.thompson_lp import ThompsonLP, beta_attempt
from paceline.policies.ucb_simplex import UCBSimplex
from paceline.problems.problem import Problem

ROUNDS = 4000
VARIANTS = [
    (naive.OnePhase, OnePhase, {"horizon": ROUNDS}),
    (naive.OnePhase, OnePhase, {"horizon": 10**6, "a": 2.0}),
    pytest.param(*(naive.OnePhaseAsPrinted, OnePhase, {"horizon": 10**6, "time_row": False}), marks=pytest.mark.slow),
    pytest.param(*(naive.SkipFirst, SkipFirst, {"horizon": ROUNDS}), marks=pytest.mark.slow),
    pytest.param(*(naive.SkipFirst, SkipFirst, {"horizon": ROUNDS, "stretch": 5.5}), marks=pytest.mark.slow),
    pytest.param(*(naive.ThompsonLP, ThompsonLP, {"horizon": ROUNDS}), marks=pytest.mark.slow),
    pytest.param(*(naive.ThompsonLP, ThompsonLP, {"update": False}), marks=pytest.mark.slow),
    (naive.UCBSimplex, UCBSimplex, {}),
    (naive.UCBSimplex, UCBSimplex, {"lam": 0.5}),
]


def of_page(parameters):
    """The parameters without those that another page stands for."""
    return {name: value for name, value in parameters.items() if name != "time_row"}


@pytest.mark.parametrize("name", first_of(play.OF_ONE_RESOURCE, "paper, 3 arms"))
@pytest.mark.parametrize(("page_of", "policy", "parameters"), VARIANTS)
def test_decides_as_the_naive_version(name, page_of, policy, parameters):
    page = page_of(play.OF_ONE_RESOURCE[name], play.SEED, play.STREAM, **of_page(parameters))
    page.run(ROUNDS)
    log = play.ask_and_tell(play.begin(policy(**parameters), play.OF_ONE_RESOURCE[name]), ROUNDS)
    differ = np.flatnonzero(log.arm != np.array(page.decisions))
    assert differ.size == 0, f"decisions part in round {differ[0] + 1}"


@pytest.mark.slow
def test_without_the_row_for_time_another_arm_is_played():
    """The best ratio on the 3 arms is that of the cheap one; it leaves two fifths of the budget."""
    pulls = [
        play.ask_and_tell(play.begin(OnePhase(a=0.01, time_row=row), play.THREE_ARMS), ROUNDS).arm
        for row in (True, False)
    ]
    assert np.bincount(pulls[0][pulls[0] >= 0], minlength=4)[2] > 0.2 * ROUNDS
    assert np.bincount(pulls[1][pulls[1] >= 0], minlength=4)[0] > 0.98 * ROUNDS


@pytest.mark.slow
def test_the_stretch_is_skipped_and_no_more():
    game = play.begin(SkipFirst(stretch=2.0), play.THREE_ARMS, horizon=ROUNDS)
    log = play.ask_and_tell(game, ROUNDS)
    skipped = int(np.ceil(2.0 * np.sqrt(3 * ROUNDS)))
    assert set(log.reason[:skipped]) == {GUARD, STRETCH}  # in the very first rounds the guard is not yet open
    assert STRETCH not in log.reason[skipped:]
    assert log.arm[skipped] >= 0


@pytest.mark.statistical
@pytest.mark.parametrize(("a", "b"), [(1, 1), (1, 4.5), (3, 1), (1.01, 1.02), (1.2, 900), (40, 3), (2000, 3000.5)])
def test_posterior_draws_are_from_the_beta_distribution(a, b):
    """A false alarm comes once in a million times; with this seed it has not."""
    uniforms = np.random.default_rng(7).uniform(size=(60_000, 2))
    drawn = np.array([beta_attempt(float(a), float(b), u, v) for u, v in uniforms])
    assert (drawn >= 0).mean() > 0.6
    assert stats.kstest(drawn[drawn >= 0], stats.beta(a, b).cdf).pvalue > 1e-6


# Primal Dual. Phase 1 needs radii far below the gaps of the bases, so these rounds run in the compiled loop.

LONG = 400_000
IDENTIFIABLE = {
    "two arms": (Problem.beta([0.5, 0.9], [0.1, 0.9], budget=0.5), {0, 1}, set()),
    "two arms of four": (Problem.beta([0.05, 0.5, 0.95, 0.2], [0.3, 0.1, 0.9, 0.8], budget=0.5), {1, 2}, set()),
    "time does not bind": (Problem.beta([0.9, 0.1], [0.8, 0.9], budget=0.4), {0}, {"time"}),
    "cost does not bind": (Problem.beta([0.9, 0.1], [0.3, 0.6], budget=0.8), {0}, {"cost"}),
}


@cache
def last_round_of_phase_1(name):
    game = play.begin(PrimalDual(), IDENTIFIABLE[name][0], horizon=LONG)
    play.simulate(game, LONG)
    return int(game.state.record.identified_at)


def played_until(name, round_number):
    game = play.begin(PrimalDual(), IDENTIFIABLE[name][0], horizon=LONG)
    play.simulate(game, round_number)
    return game


def told_by_linprog(game):
    """What the estimates of a game allow to tell: the arms of the base and the resources that do not bind."""
    arms, strength = game.state.arms, 3.0 * np.log(LONG)
    return naive.identified_by_primal_dual(
        arms.reward_mean, arms.cost_mean[:, 0], arms.pulls, game.state.rate[0], strength
    )


@pytest.mark.parametrize("name", IDENTIFIABLE)
def test_phase_1_ends_with_the_optimal_base(name):
    problem, base, resources = IDENTIFIABLE[name]
    assert {arm for arm in problem.optimum.base if arm < problem.arms} == base
    assert 0 < last_round_of_phase_1(name) < LONG
    game = played_until(name, last_round_of_phase_1(name))
    assert set(np.flatnonzero(game.state.memory.in_base)) == base
    assert told_by_linprog(game) == (base, resources)


@pytest.mark.parametrize("name", IDENTIFIABLE)
def test_phase_1_goes_on_while_the_base_is_in_doubt(name):
    problem, _, _ = IDENTIFIABLE[name]
    game = played_until(name, last_round_of_phase_1(name) - 4 * problem.arms)
    while game.state.record.next_arm != 0:  # what can be told is looked at after the last arm of a sweep
        play.one_round(game)
    assert np.ptp(game.state.arms.pulls) == 0
    arms, resources = told_by_linprog(game)
    assert len(arms) + len(resources) < 2


@pytest.mark.parametrize("name", IDENTIFIABLE)
def test_phase_2_pulls_the_base_alone(name):
    problem, base, _ = IDENTIFIABLE[name]
    log = play.ask_and_tell(played_until(name, last_round_of_phase_1(name)), 5000)
    assert {arm for arm in log.arm if 0 <= arm < problem.arms} == base
    assert set(log.reason) <= {GUARD, MIX}


@pytest.mark.parametrize("problem", [play.THREE_ARMS, play.EIGHT_ARMS], ids=["3 arms", "8 arms"])
def test_phase_1_is_round_robin_on_the_problems_of_the_paper(problem):
    game = play.begin(PrimalDual(), problem, horizon=2_500_000)
    log = play.ask_and_tell(game, 3000)
    pulled = log.arm[log.reason == ROUND_ROBIN]
    assert pulled.tolist() == (np.arange(pulled.size) % problem.arms).tolist()
    play.simulate(game, 500_000)
    assert game.state.record.identified_at == 0
    assert np.ptp(game.state.arms.pulls) <= 1

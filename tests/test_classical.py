"""The classical problem: a total budget, a known horizon, and a run that is over at depletion."""

import numpy as np
import play
import pytest
from lanes import in_lanes

import paceline as pl
from paceline.policies import POLICIES

ROUNDS = 2000
MEANS = [0.45, 0.7, 0.8], [0.3, 0.75, 0.8]
CLASSICAL = pl.Problem.beta(*MEANS, budget=0, start=1000, stop=True)
TWO = pl.Problem.beta(
    [0.45, 0.7, 0.8],
    {"money": [0.3, 0.75, 0.8], "energy": [0.2, 0.1, 0.6]},
    budget={"money": 0, "energy": 0},
    start={"money": 1000, "energy": 500},
    max_costs={"money": [0.5, 1.0, 1.0]},
    stop=True,
)


class Cheapest(pl.PythonPolicy):
    """Always wants the arm whose largest cost is least."""

    def choose(self, state):
        return int(np.argmin(state.largest[:, 0]))


def end_of(results, label):
    """For each trial the first round that began with a stock short of some arm, the idle rounds, and what was left."""
    run, problem = results[label], results.problem
    spent = run.spent.reshape(*run.spent.shape[:2], -1)
    before = np.concatenate([np.zeros_like(spent[:, :1]), spent[:, :-1]], axis=1)
    left, most = np.array(problem.stocks) - before, np.array(problem.most).max(axis=1)
    for trial in range(results.trials):
        over = np.flatnonzero((left[trial] < most - 1e-6).any(axis=1))
        assert over.size > 0
        yield over[0], run.idle[trial], left[trial]


@pytest.mark.parametrize("problem", [CLASSICAL, TWO], ids=["one resource", "two"])
@pytest.mark.parametrize("policy", ["uniform", Cheapest()], ids=["compiled", "in Python"])
def test_a_run_is_over_at_depletion(policy, problem):
    rounds = 5 * ROUNDS
    label = policy if isinstance(policy, str) else policy.name
    results = pl.simulate(problem, policy, rounds=rounds, trials=2, checkpoints=rounds)
    for over, idle, left in end_of(results, label):
        assert idle[over - 1] == 0  # no arm was ever short before
        assert idle[-1] == rounds - over  # and none is pulled after
        assert (left >= 0).all()


def test_without_it_the_cheapest_arm_goes_on():
    alike = {"budget": 0, "start": 50, "max_costs": [0.1, 1.0]}
    for stop in (False, True):
        problem = pl.Problem.beta([0.5, 0.9], [0.05, 0.9], **alike, stop=stop)
        run = pl.simulate(problem, "uniform", rounds=ROUNDS, trials=3)["uniform"]
        left = 50 - run.spent[:, -1]
        assert (left >= 0).all()
        assert ((left < 0.1) if not stop else (left < 1.0)).all()
        assert (left > 0.1).any() == stop


@pytest.mark.parametrize("name", in_lanes({name: name for name in POLICIES}))
def test_every_policy_plays_it(name):
    """Within its means, and earning at least half of what can be earned."""
    problem = CLASSICAL if POLICIES[name].resources == 1 else TWO
    for each in {CLASSICAL, problem}:
        run = pl.simulate(each, name, rounds=ROUNDS, trials=2)[name]
        assert (run.min_headroom >= 0).all()
        assert (run.totals.earned[:, -1] > 0.5 * ROUNDS * each.optimum_over(ROUNDS).value).all()


@pytest.mark.parametrize("name", ["one-phase", pytest.param("ucb-bwk", marks=pytest.mark.slow)])
def test_there_is_no_line_to_run_into(name):
    """Behind the anytime line these two are refused thousands of times, here only when the stock is used up."""
    line = pl.simulate(pl.paper.three_arms(), name, rounds=20_000, trials=2)[name]
    problem = pl.Problem.beta(*MEANS, budget=0, start=10_000, stop=True)
    stock = pl.simulate(problem, name, rounds=20_000, trials=2)[name]
    assert (line.skips[:, -1] > 1000).all()
    assert (stock.skips[:, -1] < 20).all() or (stock.spent[:, -1] > 9_999).all()
    assert (stock.steady_regret[:, -1] < line.steady_regret[:, -1]).all()


def test_suak_plays_on_the_line_that_leads_to_the_end():
    """With a stock it decides as with the same rate as income: it never needs what is ahead of that line."""
    rounds = 20_000
    stock = pl.Problem.beta([0.5, 0.98], [0.02, 0.98], budget=0, start=rounds / 2, stop=True)
    runs = [pl.simulate(problem, "suak", rounds=rounds, trials=1)["suak"] for problem in (stock, play.WIDE_GAPS)]
    assert (runs[0].pulls == runs[1].pulls).all()
    assert runs[0].memory["base_rounds"][0, -1] > 0.5 * rounds


def test_saved_and_read():
    for problem in (CLASSICAL, TWO, pl.Problem.beta(*MEANS, budget=0.5)):
        again = pl.Problem.from_dict(problem.to_dict())
        assert again == problem
        assert again.stop == problem.stop
    assert "stop" not in pl.Problem.beta(*MEANS, budget=0.5).to_dict()
    table = pl.Problem.observed([[0, 1]], [[0.1, 0.4]], budget=0, start=5, stop=True)
    assert pl.Problem.from_dict(table.to_dict()).stop


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"budget": 0.5, "stop": True}, "stop must be for stocks without income (a budget of 0), got a rate of 0.5"),
        ({"budget": 0, "start": 5, "stop": 1}, "stop must be true or false, got 1"),
        ({"budget": 0.0, "stop": True}, "budget must be in (0, 1], got 0.0"),
    ],
)
def test_wrong_use(given, message):
    with pytest.raises(pl.InvalidValue) as caught:
        pl.Problem.beta(*MEANS, **given)
    assert str(caught.value) == message


def test_wrong_use_with_a_refill():
    refill = [pl.Shifted(pl.Beta(0.5), -0.25)]
    with pytest.raises(pl.InvalidValue, match=r"^stop must be for stocks that no pull refills, got a cost of -0\.25$"):
        pl.Problem([pl.Beta(0.5)], refill, budget=0, start=5, stop=True)


def test_the_guard_cannot_be_left_out():
    with pytest.raises(pl.InvalidValue, match=r"^guard must be true for a problem that stops at depletion, got False$"):
        pl.simulate(CLASSICAL, "uniform", guard=False)

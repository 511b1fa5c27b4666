"""Control Budget: round by round against the page, a regret that does not grow with the horizon, learned means."""

import naive
import numpy as np
import play
import pytest

import paceline as pl
from paceline.policies.control_budget import ControlBudget

ROUNDS = 4000

# Data of Kumar and Kleinberg in our form: an arm that earns and spends, one that refills. Resource 1 binds.
MULTIPLE_HARD = pl.Problem(
    rewards=[pl.Beta(0.8), pl.Beta(0.1)],
    costs={
        "one": [pl.Scaled(pl.Beta(0.5), 0.6), pl.Shifted(pl.Scaled(pl.Beta(0.5), 0.26), -0.18)],
        "two": [pl.Scaled(pl.Beta(0.5), 0.4), pl.Shifted(pl.Scaled(pl.Beta(0.5), 0.36), -0.3)],
    },
    budget={"one": 0.1, "two": 0.08},
)
TWO_BIND = pl.Problem.beta(
    [0.45, 0.7, 0.8, 0.6],
    {"money": [0.3, 0.75, 0.8, 0.5], "energy": [0.2, 0.1, 0.6, 0.7]},
    budget={"money": 0.5, "energy": 0.25},
)
SEVERAL = {"multiple_hard": MULTIPLE_HARD, "two bind": TWO_BIND}


def steady(problem, policy, rounds, trials=2, seed=1):
    run = pl.simulate(problem, policy, rounds=rounds, trials=trials, seed=seed, checkpoints=1)[policy.name]
    assert (run.min_headroom >= 0).all()
    return run.steady_regret.mean(), run


def assert_decides_as(page, policy, problem):
    page.run(ROUNDS)
    log = play.ask_and_tell(play.begin(policy, problem, horizon=ROUNDS), ROUNDS)
    differ = np.flatnonzero(log.arm != np.array(page.decisions))
    assert differ.size == 0, f"decisions part in round {differ[0] + 1}"


@pytest.mark.slow
@pytest.mark.parametrize("name", play.OF_ONE_RESOURCE)
def test_decides_as_the_naive_version(name):
    for buffer in (0.3, 5.0):
        page = naive.ControlBudget(play.OF_ONE_RESOURCE[name], play.SEED, play.STREAM, ROUNDS, buffer)
        assert_decides_as(page, ControlBudget(buffer=buffer), play.OF_ONE_RESOURCE[name])


# In these two the bounds of several arms are cut at 1 for long: the program has many solutions, all of them right.
TIED = {"paper, 8 arms", "Bernoulli rewards"}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(play.OF_ONE_RESOURCE.keys() - TIED))
def test_decides_as_the_naive_version_with_learned_means(name):
    for buffer in (0.3, 5.0):
        page = naive.LearnedControlBudget(play.OF_ONE_RESOURCE[name], play.SEED, play.STREAM, buffer)
        policy = ControlBudget(means="learned", log="t", buffer=buffer)
        assert_decides_as(page, policy, play.OF_ONE_RESOURCE[name])
        assert len(set(page.decisions)) > 2


@pytest.mark.slow
@pytest.mark.parametrize("name", SEVERAL)
def test_decides_as_the_naive_version_with_several_resources(name):
    for buffer in (0.5, 3.0):
        page = naive.ControlBudgetOfSeveral(SEVERAL[name], play.SEED, play.STREAM, ROUNDS, buffer)
        assert_decides_as(page, ControlBudget(buffer=buffer), SEVERAL[name])
        assert len(page.mixes) > 1  # the headroom was on both sides of the threshold


def test_data_of_the_authors():
    optimum = MULTIPLE_HARD.optimum
    assert optimum.value == pytest.approx(0.4)
    assert optimum.mix == pytest.approx([3 / 7, 4 / 7, 0])
    assert optimum.prices == pytest.approx([2, 0], abs=1e-9)
    assert optimum.level == pytest.approx(0.2)
    assert 0.08 - MULTIPLE_HARD.consumption_means[:, 1] @ optimum.mix[:2] == pytest.approx(0.06286, abs=1e-5)


# The theorem: regret does not grow with the horizon.


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("policy", "figures"),
    [
        (ControlBudget(buffer=150), {100_000: 548, 500_000: 547, 2_000_000: 547}),
        (ControlBudget(buffer=5), {100_000: 7, 500_000: 7, 2_000_000: 8}),
        (ControlBudget(buffer=5, log="t"), {500_000: 47}),
    ],
    ids=["C = 150", "C = 5", "C log t"],
)
def test_figures_of_the_prototype(policy, figures):
    """Within 15 %, or for the small ones within 2: they are rounded, and of few trials."""
    for rounds, figure in figures.items():
        found, run = steady(pl.paper.three_arms(), policy, rounds, trials=4)
        assert found == pytest.approx(figure, rel=0.15, abs=2)
        assert run.skips.max() <= 5  # in the first rounds


@pytest.mark.statistical
def test_regret_is_constant_with_two_resources():
    """On the authors' data, from 50,000 rounds to eight times as many. Without control it grows as the square root."""
    policy = ControlBudget(buffer=20)
    few, many = (steady(MULTIPLE_HARD, policy, rounds, trials=8)[0] for rounds in (50_000, 400_000))
    assert many == pytest.approx(few, rel=0.1)


@pytest.mark.statistical
@pytest.mark.parametrize(("buffer", "figure"), [(1, 729), (5, 782)])
def test_learned_means_lose_what_the_prototype_loses(buffer, figure):
    policy = ControlBudget(means="learned", log="t", buffer=buffer)
    found, run = steady(pl.paper.three_arms(), policy, 500_000, trials=4)
    assert found == pytest.approx(figure, rel=0.15)
    assert run.skips.mean() == pytest.approx(134, rel=0.15)


# Limit cases.


@pytest.mark.slow
def test_a_slack_resource_changes_nothing():
    sides = {"money": [0.1, 0.7], "air": [0.0, 0.0]}
    plain = pl.Problem.beta([0.3, 0.9], sides, budget={"money": 0.4, "air": 1.0})
    twice = pl.Problem.beta([0.3, 0.9], {**sides, "water": [0.0, 0.0]}, budget={"money": 0.4, "air": 1.0, "water": 1.0})
    for policy in (ControlBudget(), ControlBudget(means="learned")):
        logs = [play.ask_and_tell(play.begin(policy, problem, horizon=2000), 2000) for problem in (plain, twice)]
        assert (logs[0].arm == logs[1].arm).all()


@pytest.mark.slow
def test_an_arm_that_can_always_be_paid_for_is_always_pulled():
    log = play.ask_and_tell(play.begin(ControlBudget(), play.OF_ONE_RESOURCE["case 1"], horizon=500), 500)
    assert set(log.arm[5:]) == {1}


@pytest.mark.slow
def test_a_stock_without_income_is_spent_evenly():
    problem = pl.Problem.beta([0.45, 0.7, 0.8], [0.3, 0.75, 0.8], budget=0, start=5000)
    found, run = steady(problem, ControlBudget(), 10_000)
    assert run.spent[:, -1] == pytest.approx(5000, rel=0.01)
    assert found < 40


# Wrong use.


@pytest.mark.slow
def test_live_only_with_learned_means():
    with pytest.raises(pl.InvalidValue, match=r"^control-budget must be given the true problem .*, got none$"):
        pl.Bandit(arms=["a", "b"], budget=0.5, policy=ControlBudget(log="t"))
    with pytest.raises(pl.InvalidValue, match=r"^control-budget must be given the true problem .*, got none$"):
        pl.Bandit(arms=["a", "b"], budget=0.5, policy="control-budget")  # a horizon would not help
    with pytest.raises(pl.InvalidValue, match=r"^control-budget must be given a horizon, such as"):
        pl.Bandit(arms=["a", "b"], budget=0.5, policy=ControlBudget(means="learned"))
    bandit = pl.Bandit(arms=["a", "b"], budget=0.5, policy=ControlBudget(means="learned", log="t"))
    for _ in range(100):
        decision = bandit.ask()
        if decision.arm is not None:
            bandit.tell(decision.id, reward=float(decision.arm == "a"), cost=0.9)
    assert bandit.headroom >= 0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"buffer": -1}, "buffer of control-budget must be"),
        ({"means": "guessed"}, "means of control-budget must be one of known, learned, got 'guessed'"),
        ({"log": "T"}, "log of control-budget must be one of T-t, t, got 'T'"),
        ({"a": 0}, "a of control-budget must be"),
        ({"horizon": 0}, "horizon of control-budget must be"),
    ],
)
def test_wrong_parameters(parameters, message):
    with pytest.raises(pl.InvalidValue) as caught:
        ControlBudget(**parameters)
    assert str(caught.value).startswith(message)

"""Conservative bandits: never below a part of what the default arm earns, on every path, whatever the policy."""

import numpy as np
import pytest
from lanes import first_of

import paceline as pl
from paceline.policies import POLICIES
from paceline.problems import conservative
from paceline.problems.conservative import negative

ROUNDS = 3000
BERNOULLI = conservative([pl.Bernoulli(0.4), pl.Bernoulli(0.7), pl.Bernoulli(0.2)], default=0.5, alpha=0.1)
EVERY_KIND = conservative(
    [pl.Beta(0.3), pl.Empirical([0.0, 0.9, 1.0]), pl.Scaled(pl.Beta(0.5), 0.8), pl.Constant(0.55), pl.Beta(0.05, 3.0)],
    default=0.6,
    alpha=0.25,
)


class Stubborn(pl.PythonPolicy):
    """Wants arm 1 and nothing else."""

    def choose(self, state):
        return 1


class Idle(pl.PythonPolicy):
    """Wants nothing."""

    def choose(self, state):
        return None


def keeps_above(problem, label, policy, bar):
    """The run of a policy, with what it had earned by each round held against the bar."""
    results = pl.simulate(problem, {label: policy}, rounds=ROUNDS, trials=2, checkpoints=ROUNDS)
    run = results[label]
    assert (run.totals.earned >= bar * results.rounds - 1e-6).all()
    assert (run.pulls.sum(axis=1) == ROUNDS).all()  # no round without an arm
    assert (run.idle == 0).all()
    assert (run.min_headroom >= 0).all()
    assert run.headroom == pytest.approx(run.totals.earned - bar * results.rounds, abs=1e-4)
    return run


@pytest.mark.parametrize("name", first_of([name for name, policy in POLICIES.items() if policy.refillable], "uniform"))
def test_every_policy_keeps_above_the_bar_in_every_round(name):
    for problem, bar in ((BERNOULLI, 0.45), (EVERY_KIND, 0.45)):
        keeps_above(problem, name, name, bar)


@pytest.mark.parametrize("name", [name for name, policy in POLICIES.items() if not policy.refillable])
def test_those_that_know_no_refills_say_so(name):
    with pytest.raises(pl.InvalidValue, match=rf"^{name} works with costs of at least 0 only, got a resource that"):
        pl.simulate(BERNOULLI, name, rounds=10, trials=1)


@pytest.mark.parametrize("policy", [Stubborn(), Idle()], ids=lambda policy: policy.name)
def test_in_plain_python_too(policy):
    keeps_above(BERNOULLI, "it", policy, 0.45)


def test_a_risk_is_taken_as_soon_as_it_is_covered():
    """The default earns 1/4 above the bar, arm 1 falls 1/4 short of it: by turns. All amounts are exact."""
    problem = conservative([pl.Constant(0.0)], default=0.5, alpha=0.5)
    run = pl.simulate(problem, Stubborn(), rounds=10, trials=1, checkpoints=10)["Stubborn"]
    assert run.totals.pulls[0, :, 1].tolist() == [0, 1, 1, 2, 2, 3, 3, 4, 4, 5]
    assert run.min_headroom.tolist() == [0.0]


@pytest.mark.slow
def test_learns_the_best_arm():
    run = pl.simulate(BERNOULLI, "thompson", rounds=20_000, trials=4)["thompson"]
    assert BERNOULLI.optimum.value == pytest.approx(0.7)
    assert BERNOULLI.optimum.base == (2,)
    assert (run.pulls[:, 2] > 0.9 * 20_000).all()


@pytest.mark.slow
def test_a_smaller_part_costs_more():
    """The extra regret is of the order 1 / alpha: little may be risked at first."""
    regrets = []
    for alpha in (0.02, 0.3):
        problem = conservative([pl.Bernoulli(0.4), pl.Bernoulli(0.7)], default=0.5, alpha=alpha)
        runs = pl.simulate(problem, "thompson", rounds=20_000, trials=8)
        regrets.append(runs["thompson"].steady_regret[:, -1].mean())
    assert regrets[0] > 2 * regrets[1]


def test_what_is_not_earned_is_what_is_lost():
    """The cost of each pull is the default minus its own reward, for every kind of distribution."""
    for problem, default in ((BERNOULLI, 0.5), (EVERY_KIND, 0.6)):
        world = problem.sample(seed=3)
        for arm in range(problem.arms):
            pulls = np.array([world.pull(arm) for _ in range(200)])
            assert pulls.sum(axis=1) == pytest.approx(np.full(200, default))


def test_saved_and_read():
    again = pl.Problem.from_dict(BERNOULLI.to_dict())
    assert again == BERNOULLI
    assert again.fallback


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: conservative([pl.Beta(0.5)], default=0.0, alpha=0.1), "default must be in (0, 1], got 0.0"),
        (lambda: conservative([pl.Beta(0.5)], default=0.5, alpha=1.5), "alpha must be in (0, 1], got 1.5"),
        (
            lambda: conservative([0.5], default=0.5, alpha=0.1),
            "a reward must be a distribution such as Bernoulli(0.3), got 0.5",
        ),
        (
            lambda: pl.Problem([pl.Beta(0.5)], [pl.Beta(0.5)], budget=0.5, fallback=True),
            "fallback must be to an arm 0 whose largest cost is 0 (max_costs), got 1",
        ),
        (
            lambda: pl.Problem([pl.Beta(0.5)], [pl.Beta(0.5)], budget=0.5, fallback=0),
            "fallback must be true or false, got 0",
        ),
        (
            lambda: pl.simulate(BERNOULLI, "uniform", guard=False),
            "guard must be true for a problem that falls back to an arm, got False",
        ),
    ],
)
def test_wrong_use(call, message):
    with pytest.raises(pl.InvalidValue) as caught:
        call()
    assert str(caught.value) == message


def test_negative():
    assert negative(pl.Bernoulli(0.3)) == pl.Scaled(pl.Bernoulli(0.3), -1.0)
    with pytest.raises(pl.InvalidValue):
        negative(pl.Shifted(pl.Constant(0.1), 0.1))

"""The policies that play against prices at full length, against the figures of an independent prototype.

The prototype (another program, in another language, with random numbers of its own) printed means of a few trials and
is a guide to the order of magnitude. Its figures are met within 15 per cent: several times the deviation of a mean on
either side. One is not among them: EXP3-SIX with gradient steps lost 3,688 there (2,367 skips; without the guard 2,263,
and 1,194 above the line) and loses 4,583 (standard error 102) here. The reason is by what the losses of EXP3-SIX are
divided, whose range 1 + price grows with the price. Here it is the range at the highest price so far, as a learning
rate that never grows demands. With  record.highest_price = total  in gain_of of lagrangian.py, the range at the present
price, it gives what the prototype gave: 3,881 (2,537 skips; without the guard 2,329, and 1,525 above the line in the
worst of 10 trials, seed 0; standard errors 92 and 64). No weights with a known regret bound belong to a range that
shrinks again, so ours is left as it is.
"""

from functools import cache

import pytest
from play import REFILLED

import paceline as pl

pytestmark = pytest.mark.statistical

THREE_ARMS = {
    "lagrangian": (pl.Lagrangian(), 862),
    "lagrangian, tenfold step": (pl.Lagrangian(dual_step=10), 730),
    "replenishable": (pl.Replenishable(), 3_802),
    "lagrange-bwk": (pl.LagrangeBwK(), 17_437),
    "lagrange-cbwlc": (pl.LagrangeCBwLC(), 9_872),
    "lagrange-cbwlc, gamma of 2,000": (pl.LagrangeCBwLC(primal_step=29), 702),
    "primal-dual-bwk": (pl.PrimalDualBwK(), 3_418),
    "primal-dual-bwk, costs": (pl.PrimalDualBwK(feed="costs"), 519),
    "queue": (pl.QueuePacer(), 2_973),
    "queue, a tenth": (pl.QueuePacer(tightening=0.1), 796),
    "queue, a hundredth": (pl.QueuePacer(tightening=0.01), 45_088),
}
EIGHT_ARMS = {
    "lagrangian": (pl.Lagrangian(), 11_399),
    "replenishable": (pl.Replenishable(), 18_994),
    "primal-dual-bwk": (pl.PrimalDualBwK(), 12_555),
    "primal-dual-bwk, costs": (pl.PrimalDualBwK(feed="costs"), 6_511),
    "queue": (pl.QueuePacer(), 18_244),
}
TWO_RESOURCES = {
    "lagrangian": (pl.Lagrangian(), 1_319),
    "lagrangian, tenfold step": (pl.Lagrangian(dual_step=10), 136),
    "queue": (pl.QueuePacer(), 8_010),
    "queue, a tenth": (pl.QueuePacer(tightening=0.1), 633),
}


@cache
def regret_on_three_arms(label):
    return regret(pl.paper.three_arms(), THREE_ARMS[label][0], 500_000, trials=4)


def regret(problem, policy, rounds, trials):
    run = pl.simulate(problem, {"it": policy}, rounds=rounds, trials=trials, seed=11, checkpoints=1)["it"]
    assert (run.min_headroom >= 0).all()
    return run.steady_regret[:, -1].mean()


@pytest.mark.parametrize("label", THREE_ARMS)
def test_three_arms(label):
    assert regret_on_three_arms(label) == pytest.approx(THREE_ARMS[label][1], rel=0.15)


@pytest.mark.parametrize("label", EIGHT_ARMS)
def test_eight_arms(label):
    policy, figure = EIGHT_ARMS[label]
    assert regret(pl.paper.eight_arms(), policy, 2_500_000, trials=2) == pytest.approx(figure, rel=0.15)


@pytest.mark.parametrize("label", TWO_RESOURCES)
def test_two_resources_that_an_arm_refills(label):
    policy, figure = TWO_RESOURCES[label]
    assert regret(REFILLED, policy, 250_000, trials=4) == pytest.approx(figure, rel=0.15)


@pytest.mark.parametrize(("name", "figure"), [("replenishable", 3_733), ("lagrange-bwk", 17_227)])
def test_without_the_guard(name, figure):
    """The prototype went 156 and 271 below the line in some trial: more than the order cannot be asked for."""
    settings = {"rounds": 500_000, "trials": 4, "seed": 11, "checkpoints": 1, "guard": False}
    run = pl.simulate(pl.paper.three_arms(), name, **settings)[name]
    assert run.steady_regret.mean() == pytest.approx(figure, rel=0.15)
    assert 50 < run.violation.max() < 600


def test_a_queue_hardly_crosses_the_line_without_the_guard():
    run = pl.simulate(pl.paper.three_arms(), "queue", rounds=500_000, trials=4, seed=11, checkpoints=1, guard=False)
    assert 0 < run["queue"].violation.max() < 6  # 3.1 in the prototype


def test_the_order_on_three_arms():
    falling = "primal-dual-bwk, costs", "lagrangian", "queue", "primal-dual-bwk", "replenishable", "lagrange-bwk"
    losses = [regret_on_three_arms(label) for label in falling]
    assert losses == sorted(losses)

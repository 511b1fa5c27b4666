"""The guard with several resources: no line is crossed, whoever decides, whatever a pull consumes, however late."""

from fractions import Fraction
from itertools import cycle

import numpy as np
import play
import pytest
from adversary import UNIT, Model, cost_at, problems, shares
from hypothesis import given, settings
from hypothesis import strategies as st
from lanes import in_lanes

import paceline as pl
from paceline.kernels.budget import UNITS, line_units
from paceline.kernels.jit import plain
from paceline.kernels.state import GUARD
from paceline.policies import POLICIES, make_policy
from paceline.problems.distributions import Bernoulli, Constant, Scaled
from paceline.problems.problem import Problem

SEVERAL = [name for name, policy in POLICIES.items() if policy.resources is None and policy.refillable]
ROUNDS = 60

several_policies = pytest.mark.parametrize("name", in_lanes({name: name for name in SEVERAL}))


def test_policies_for_several_resources_are_found():
    assert {"uniform", "thompson", "optimistic", "one-phase", "primal-dual", "oracle"} <= set(SEVERAL)


def check_refusal(model, decision):
    """A refusal had a reason: some resource was short of what the arm may cost; or no arm could be paid for."""
    least = [min(map(Fraction, side)) for side in model.problem.most]
    wanted = model.most(decision.tag) if 0 <= decision.tag < model.problem.arms else least
    short = [stock.free < most + model.rounding for stock, most in zip(model.stocks, wanted, strict=True)]
    assert any(short), f"refused without need in round {model.t}"


def check_books(model, books):
    """The books against the model. They are below the truth, and by rounding only."""
    assert books.tally.t == model.t
    for d, stock in enumerate(model.stocks):
        assert stock.level >= 0, f"the line of resource {d} is crossed in round {model.t}"
        assert stock.free >= 0, f"late news may overdraw resource {d} after round {model.t}"
        spent, line = int(books.spent[d]) * UNIT, Fraction(model.problem.stocks[d]) + stock.rate * model.t
        assert stock.paid <= spent <= stock.paid + model.pulls * UNIT
        assert spent <= line
        assert books.spent[d] / UNITS <= float(line)
        left = (plain(line_units)(books, d) - int(books.spent[d]) - int(books.reserved[d])) * UNIT
        assert stock.free - model.rounding <= left <= stock.free
        if stock.lowest is not None:
            assert 0 <= int(books.lowest[d]) * UNIT <= stock.lowest <= int(books.lowest[d]) * UNIT + model.rounding


def play_against(game, share_of, delay_of=lambda: 0, rounds=ROUNDS):
    """Rounds in which an adversary says how much each pull consumes, and after how many rounds the news of it comes."""
    problem = game.setting.problem
    model, waiting = Model(problem), []

    def tell(decision, costs):
        game.tell(decision, 0.5, costs)
        model.settle(decision.arm, costs)

    for t in range(1, rounds + 1):
        for due, decision, costs in waiting:
            if due == t:
                tell(decision, costs)
        waiting = [news for news in waiting if news[0] != t]
        decision = game.ask()
        model.open()
        for stock, shown in zip(model.stocks, game.state.headroom, strict=True):
            # Floats are rounded, too: beyond 2**21 they are coarser than a unit.
            assert float(stock.free - model.rounding) <= shown <= float(stock.free)
        if decision.reason == GUARD:
            check_refusal(model, decision)
        if not play.is_pull(game.state, decision.arm):
            model.close()
            check_books(model, game.books)
            continue
        covered = [stock.free >= most for stock, most in zip(model.stocks, model.most(decision.arm), strict=True)]
        assert all(covered), f"a pull in round {t} that may cost more than there is"
        model.reserve(decision.arm)
        costs = tuple(
            cost_at(problem, d, decision.arm, share_of(decision.arm, d)) for d in range(len(problem.resources))
        )
        delay = delay_of()
        if delay == 0:
            tell(decision, costs)
        else:
            waiting.append((t + delay, decision, costs))
        check_books(model, game.books)
    return model


def begun(name, problem, rounds=ROUNDS):
    needed = {"slater": 0.1} if name == "queue" else {}  # it refuses a resource without income unless it is given one
    return play.begin(make_policy(name, **needed), problem, horizon=rounds)


@several_policies
@pytest.mark.parametrize("resources", [2, 3])
@settings(max_examples=30)
@given(data=st.data())
def test_no_line_is_crossed_whatever_is_consumed(name, resources, data):
    game = begun(name, data.draw(problems(resources)))
    consumed = cycle(data.draw(st.lists(shares, min_size=1, max_size=12)))
    play_against(game, lambda arm, d: next(consumed))


@several_policies
@settings(max_examples=30)
@given(data=st.data())
def test_no_line_is_crossed_however_late_the_news(name, data):
    game = begun(name, data.draw(problems(2)))
    consumed = cycle(data.draw(st.lists(shares, min_size=1, max_size=12)))
    delays = cycle(data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=8)))
    play_against(game, lambda arm, d: next(consumed), lambda: next(delays))


# A cap must not give anything away either: where it cuts off, the line is rounded anew.


def test_a_cap_gives_nothing_away_by_rounding():
    """At a third of a unit a round, three rounds bring a bit less than 1: not enough for a pull, cap or not."""
    third = 1 / 3
    assert 3 * Fraction(third) < 1
    for start in (third, 2 * third, 1.0):  # of the first rounds some run over
        problem = Problem([Bernoulli(0.5)], {"x": [Constant(1.0)]}, {"x": third}, start={"x": start}, cap={"x": 1.0})
        play_against(begun("uniform", problem), lambda arm, d: 1.0)


# Pulls of the second arm bring energy, of which little comes in besides. (None at all would stop a policy that insists
# on the first arm: it cannot be paid for, and nothing changes until the second is pulled.)
REFILLED = Problem(
    [Bernoulli(0.9), Bernoulli(0.2)],
    {"money": [Constant(1.0), Constant(0.5)], "energy": [Scaled(Bernoulli(0.5), 0.625), Scaled(Bernoulli(0.5), -0.75)]},
    budget={"money": 0.55, "energy": 0.0625},
    start={"energy": 1.0},
    cap={"energy": 1.75},
    max_costs={"energy": [0.625, 0.0]},
)


@several_policies
def test_no_line_is_crossed_against_one_who_watches_the_headroom(name):
    """The most that a pull can consume when that leaves less than 1.5, else the least: everything is often short."""
    rounds = 1500
    game = begun(name, REFILLED, rounds)

    def most_when_short(arm, d):
        most = REFILLED.most[d][arm]
        return float(most > 0.0 and game.state.headroom[d] - most < 1.5)

    model = play_against(game, most_when_short, rounds=rounds)
    assert model.pulls > 100
    if name != "skip-first":  # what it has saved up by not pulling at first lasts longer than these rounds
        assert all(stock.lowest <= 0.5 for stock in model.stocks)  # not enough for one more pull of the first arm


@several_policies
def test_smallest_headroom_is_told_by_resource(name):
    run = pl.simulate(play.SEVERAL, name, rounds=3000, trials=3, checkpoints=30)[name]
    assert run.min_headroom.shape == (3, 3)
    assert (run.min_headroom >= 0).all()
    # At a checkpoint the headroom can be seen; it is never below the smallest of all rounds. (Amounts are rounded.)
    income = np.array(play.SEVERAL.stocks) + np.outer(run.rounds, play.SEVERAL.rates)
    left = income - run.spent - run.lost
    assert (left >= run.min_headroom[:, np.newaxis] - 1e-6).all()
    assert (run.spent <= income).all()
    assert (run.lost >= 0).all()
    assert (run.lost[..., [0, 2]] == 0).all()  # only energy has a cap

"""Without the guard: a policy gets what it wants, nothing is promised, and the worst of all rounds is reported."""

import inspect
from dataclasses import dataclass

import naive
import numpy as np
import play
import pytest
from lanes import first_of

import paceline as pl
from paceline.grafting import STAND_INS, UNGUARDED, simulator_for
from paceline.kernels.page import NO_PAGE
from paceline.policies import POLICIES
from paceline.policies.one_phase import OnePhase
from paceline.simulation.regret import income
from paceline.worlds.stationary import StationaryWorld

ROUNDS = 3000


class Greedy(pl.PythonPolicy):
    """Wants the last arm, whatever it costs."""

    def choose(self, state):
        return state.arms.pulls.size - 1


class Coins(pl.PythonWorld):
    """Reward and cost of a round are 1 for arm 1, and 0 for arm 0."""

    arms, budget = 2, 0.25

    def outcome(self, t, arm, count):
        return float(arm), float(arm)


def worst_by_checkpoints(results, label):
    """The largest  spent - line  of each trial, from what was spent by each round."""
    run = results[label]
    assert results.rounds.tolist() == list(range(1, results.rounds[-1] + 1))
    above = run.spent.reshape(*run.spent.shape[:2], -1) + run.lost.reshape(*run.lost.shape[:2], -1)
    return (above - income(results.problem, results.rounds)).max(axis=1)


@pytest.mark.parametrize(
    ("problem", "names"),
    [(play.THREE_ARMS, ["one-phase", "uniform"]), (play.SEVERAL, ["uniform"])],
    ids=["one resource", "several"],
)
def test_the_violation_is_the_worst_of_all_rounds(problem, names):
    results = pl.simulate(problem, names, rounds=ROUNDS, trials=3, checkpoints=ROUNDS, guard=False)
    for name in names:
        found = results[name].violation
        assert found.shape == ((3,) if len(problem.resources) == 1 else (3, len(problem.resources)))
        worst = worst_by_checkpoints(results, name)
        assert found.reshape(worst.shape) == pytest.approx(np.maximum(worst, 0.0), abs=1e-5)
        assert (results[name].min_headroom.reshape(worst.shape) == pytest.approx(-worst, abs=1e-5)) or (worst < 0).any()
    assert (results["uniform"].violation > 1).any()


def test_what_is_saved_later_does_not_make_good_for_it():
    problem = pl.Problem([pl.Constant(1.0)], [pl.Constant(1.0)], budget=0.5)

    class EarlyBird(pl.PythonPolicy):
        def choose(self, state):
            return 0 if state.clock.t <= 10 else None

    run = pl.simulate(problem, EarlyBird(), rounds=100, trials=1, guard=False)["EarlyBird"]
    assert run.spent[0, -1] == 10.0  # far below the line at the end
    assert run.violation.tolist() == [5.0]
    assert run.by_resource("violation")["cost"].tolist() == [5.0]


def test_decides_as_the_page_does_without_a_skip_rule():
    class Free(naive.OnePhase):
        def guard_refuses(self):
            return False

    page = Free(play.THREE_ARMS, play.SEED, play.STREAM, ROUNDS)
    page.run(ROUNDS)
    game = play.begin(OnePhase(), play.THREE_ARMS, horizon=ROUNDS)
    simulator_for(OnePhase, StationaryWorld, False, UNGUARDED)(
        game.params, game.storage, game.world.data, NO_PAGE, ROUNDS
    )
    assert game.books.pulls.tolist() == page.pulls
    assert game.books.spent[0] / 2**32 == float(page.spent)
    assert game.books.lowest[0] < 0


@pytest.mark.parametrize("name", first_of(POLICIES, "uniform"))
def test_every_policy_runs(name):
    is_narrow = POLICIES[name].resources == 1 or not POLICIES[name].refillable
    problem = play.THREE_ARMS if is_narrow else play.SEVERAL
    run = pl.simulate(problem, name, rounds=2000, trials=2, guard=False)[name]
    assert run.pulls.sum() > 0
    assert (run.violation >= 0).all()
    assert np.isfinite(run.steady_regret).all()


def test_nobody_else_is_touched():
    """The same rounds behind the guard before and after: machine code without it is filed apart."""
    before = pl.simulate(play.THREE_ARMS, "one-phase", rounds=ROUNDS, trials=2)["one-phase"]
    free = pl.simulate(play.THREE_ARMS, "one-phase", rounds=ROUNDS, trials=2, guard=False)["one-phase"]
    after = pl.simulate(play.THREE_ARMS, "one-phase", rounds=ROUNDS, trials=2)["one-phase"]
    assert (before.violation == 0).all()
    assert (before.min_headroom >= 0).all()
    assert (before.spent == after.spent).all()
    assert (free.violation > 0).all()
    names = {simulator_for(OnePhase, StationaryWorld, False, rules).__qualname__ for rules in STAND_INS}
    assert len(names) == len(STAND_INS) == 3


@pytest.mark.parametrize("policy", ["uniform", Greedy()], ids=["compiled", "in Python"])
def test_in_a_world_in_python(policy):
    label = policy if isinstance(policy, str) else policy.name
    results = pl.simulate(Coins(), policy, rounds=200, trials=2, checkpoints=200, guard=False)
    assert results[label].violation == pytest.approx(worst_by_checkpoints(results, label)[:, 0], abs=1e-6)
    assert (results[label].violation > 10).all()
    if not isinstance(policy, str):
        assert results[label].violation.tolist() == [150.0, 150.0]
        assert pl.simulate(Coins(), policy, rounds=200, trials=2)[label].violation.tolist() == [0.0, 0.0]


def test_with_late_news_it_is_the_truth_that_counts():
    results = pl.simulate(play.THREE_ARMS, "uniform", rounds=400, trials=2, checkpoints=400, delay=50, guard=False)
    assert results["uniform"].violation == pytest.approx(worst_by_checkpoints(results, "uniform")[:, 0], abs=1e-6)


@dataclass(frozen=True, kw_only=True)
class Nonsense(pl.Uniform):
    """Chooses an arm that there is not."""

    name = "nonsense"

    @staticmethod
    def choose(params, state):
        return play.Decision(17, 1, 0)


def test_a_mistake_is_a_mistake_without_the_guard_too():
    with pytest.raises(pl.InvalidPolicy, match=r"must choose an arm from -1 \(skip\) to 3 \(null arm\), got 17"):
        pl.simulate(play.THREE_ARMS, Nonsense(), rounds=10, trials=1, guard=False)


# What is said of it.


def test_tables_show_the_violation_and_claim_nothing():
    results = pl.simulate(play.SEVERAL, "uniform", rounds=500, trials=2, guard=False)
    table = results.table()
    assert table.headings[-3:] == tuple(f"worst violation, {name}" for name in play.SEVERAL.resources)
    worst = results["uniform"].violation.max(axis=0)
    assert table.rows[0][-3:] == tuple(f"{value:.3g}" for value in worst)
    for text in (str(table), results["uniform"]._repr_html_()):
        assert "left" not in text
        assert "headroom" not in text
        assert "Without the guard" in text
    assert repr(results).endswith("seed 0, without the guard>")
    behind = pl.simulate(play.SEVERAL, "uniform", rounds=500, trials=2)
    assert "violation" not in str(behind.table())
    assert "guard" not in repr(behind)


def test_a_file_remembers(tmp_path):
    for guard in (False, True):
        saved = pl.simulate(play.THREE_ARMS, "uniform", rounds=500, trials=2, guard=guard)
        saved.save(tmp_path / "results.npz")
        loaded = pl.Results.load(tmp_path / "results.npz")
        assert loaded.guard == loaded["uniform"].guard == guard
        assert (loaded["uniform"].violation == saved["uniform"].violation).all()
        assert str(loaded.table()) == str(saved.table())


def test_true_or_false():
    with pytest.raises(pl.InvalidValue, match=r"^guard must be true or false, got 0$"):
        pl.simulate(play.THREE_ARMS, "uniform", guard=0)


def test_live_there_is_no_such_mode():
    for opens in (pl.Bandit, pl.Bandit.load, pl.Bandit.set, pl.join, pl.connect):
        assert not [name for name in inspect.signature(opens).parameters if "guard" in name], opens
    with pytest.raises(TypeError, match="guard"):
        pl.Bandit(arms=["a"], budget=0.5, guard=False)


# In experiments.

FREE = {"rounds": 600, "trials": 2, "checkpoints": 30, "guard": False, "policies": ["uniform", "suak"]} | {
    "problem": [{"paper": "three-arms"}]
}


def test_an_experiment_without_the_guard(tmp_path):
    study = pl.run_experiment(pl.Experiment.from_table(FREE), tmp_path / "run")
    found = study["three-arms"]
    direct = pl.simulate(pl.paper.three_arms(), ["uniform", "suak"], rounds=600, trials=2, checkpoints=30, guard=False)
    assert not study.guard
    assert str(found.table()) == str(direct.table())
    assert study.size.endswith(", without the guard")
    study.report()
    page = (study.path / "report.md").read_text()
    assert "Played without the guard: nothing is promised. 1 of 2 runs crossed a line, the worst by" in page
    assert "OVERSPENT" not in page
    assert "held after every round" not in page
    assert (study.path / "figures" / "problem-1-violation-1.svg").exists()
    worst = direct["uniform"].violation.max()
    assert f"| {worst:.3g} |" in page
    assert (study.path / "summary.csv").read_text().splitlines()[0].endswith("min_headroom,violation")


def test_the_page_says_whose_line_was_crossed(tmp_path):
    costs, budget = {"money": [0.2, 0.3], "energy": [0.8, 0.9]}, {"money": 0.5, "energy": 0.5}
    table = FREE | {"policies": ["uniform"], "problem": [{"rewards": [0.5, 0.6], "costs": costs, "budget": budget}]}
    study = pl.run_experiment(pl.Experiment.from_table(table), tmp_path / "run")
    study.report()
    page = (study.path / "report.md").read_text()
    worst = study["problem"]["uniform"].by_resource("violation")["energy"].max()
    assert f"1 of 1 run crossed a line, the worst by {worst:.3g} of energy (uniform on problem)." in page
    for name in ("money", "energy"):
        assert f"The most by which spending of {name} was above the line in any round" in page


def test_runs_with_and_without_the_guard_do_not_mix(tmp_path):
    pl.run_experiment(pl.Experiment.from_table(FREE), tmp_path / "run")
    with pytest.raises(pl.InvalidValue, match=r"it has guard False, which this experiment has not$"):
        pl.run_experiment(pl.Experiment.from_table(FREE | {"guard": True}), tmp_path / "run")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"guard": "no"}, "guard must be true or false, got 'no'"),
        (
            {"problem": [{"rewards": [0.5], "costs": [0.5], "budget": 0, "start": 50, "stop": True}]},
            "problem 'problem': guard must be true for a problem that stops at depletion, got False",
        ),
    ],
)
def test_experiments_that_are_refused(changes, message):
    with pytest.raises(pl.InvalidValue) as caught:
        pl.Experiment.from_table(FREE | changes)
    assert str(caught.value) == message


def test_figures_show_the_violation():
    results = pl.simulate(play.SEVERAL, "uniform", rounds=400, trials=2, checkpoints=40, guard=False)
    titles = [axes.get_title(loc="left") for axes in results.plot().axes]
    assert titles[-3:] == [f"Worst violation, {name}" for name in play.SEVERAL.resources]
    last = [axes.lines[0].get_ydata() for axes in results.plot(quantities=("violation",)).axes]
    assert [line[-1] for line in last] == pytest.approx(results["uniform"].violation.mean(axis=0))
    assert all((np.diff(line) >= 0).all() for line in last)

"""History: every recorded row is what happened, wherever it was played and wherever it is kept."""

import math
import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from comparing import all_bits
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import levels
from play import EVERY_KIND, SEVERAL, THREE_ARMS, ask_and_tell, begin
from worlds import Mirror

import paceline as pl
from paceline.experiments.executors import run_task
from paceline.experiments.folder import open_folder
from paceline.policies import label_policies, make_policy
from paceline.simulation import recording
from paceline.simulation.simulate import Trial, run_trial

SEED = 5
COLUMNS = ("arm", "reason", "reward", "cost", "available", "headroom")
UNITS = 2**32


class Least(pl.PythonPolicy):
    """The arm that has brought least; now and then none."""

    def reset(self, setting):
        self.known = [0.0] * setting.arms

    def choose(self, state):
        return None if state.clock.t % 7 == 0 else self.known.index(min(self.known))

    def learn(self, state, arm, reward, cost):
        self.known[arm] += reward


class Game:
    """A problem, who plays it, and how late the news is."""

    def __init__(self, problem, policy, delay=None, in_python=False):
        self.problem, self.policy, self.delay = problem, policy, delay
        self.world = Mirror(problem) if in_python else problem

    @property
    def reasons(self):
        (policy,) = label_policies(self.policy).values()
        return policy.reasons

    def simulate(self, **more):
        given = {"rounds": 400, "trials": 2, "seed": SEED, "checkpoints": [50, 399], "delay": self.delay, **more}
        return pl.simulate(self.world, self.policy, **given)

    def run(self, **more):
        (run,) = self.simulate(**more).values()
        return run


GAMES = {
    "one resource": Game(THREE_ARMS, "uniform"),
    "every kind": Game(EVERY_KIND, "index"),
    "several": Game(SEVERAL, "thompson"),
    "late": Game(THREE_ARMS, "uniform", {"cost": {"geometric": 6}, "reward": [0, 11]}),
    "several, late": Game(SEVERAL, "uniform", {"batch": 9}),
    "policy in Python": Game(SEVERAL, Least()),
    "policy in Python, late": Game(SEVERAL, Least(), 4),
    "world in Python": Game(SEVERAL, "uniform", in_python=True),
    "all in Python, late": Game(SEVERAL, Least(), {"cost": 3}, in_python=True),
}


def by_resource(values):
    """(trials, N, D), also of one resource."""
    return values if values.ndim == 3 else values[..., np.newaxis]


@pytest.mark.parametrize("name", GAMES)
def test_rows_add_up_to_the_totals(name):
    """Independently: whole numbers for money, sums in the order of the rounds for rewards."""
    game = GAMES[name]
    run, arms = game.run(record="all"), game.problem.arms
    history = run.history()
    assert history.rounds.tolist() == list(range(1, 401))
    points = run.rounds - 1
    assert (np.cumsum(history.reward, axis=1)[:, points] == run.reward).all()
    pulled = (history.arm[..., np.newaxis] == np.arange(arms)).cumsum(axis=1)
    assert (pulled[:, points] == run.totals.pulls).all()
    assert ((history.arm == -1).cumsum(axis=1)[:, points] == run.skips).all()
    assert (((history.arm == -1) | (history.arm == arms)).cumsum(axis=1)[:, points] == run.idle).all()
    costs = by_resource(history.cost)
    charged = np.array([math.ceil(Fraction(cost) * UNITS) for cost in costs.ravel().tolist()], object)
    spent = np.cumsum(charged.reshape(costs.shape), axis=1)
    assert (spent[:, points] == by_resource(run.spent) * UNITS).all()
    headroom = by_resource(history.headroom)
    assert (headroom.min(axis=1) == by_resource(run.min_headroom[:, np.newaxis])[:, 0]).all()
    # A stock at its cap forgets what was rounded off the line: less than a unit in a round (`overflow`).
    assert headroom[:, points] == pytest.approx(by_resource(run.headroom), abs=1e-9 + 400 / UNITS)
    if game.delay is None:
        for trial in range(2):
            assert headroom[trial] == pytest.approx(levels(game.problem, costs[trial]), abs=1e-6)


@pytest.mark.parametrize("name", GAMES)
def test_outcomes_are_those_of_a_loop_of_ones_own(name):
    game = GAMES[name]
    history = game.run(record="all").history()
    for trial in range(2):
        world = game.problem.sample(SEED, trial)
        for arm, reward, cost in zip(
            history.arm[trial], history.reward[trial], by_resource(history.cost)[trial], strict=True
        ):
            drawn = (0.0, 0.0)
            if 0 <= arm < game.problem.arms:
                drawn = world.pull(arm)
            costs = list(drawn[1].values()) if isinstance(drawn[1], dict) else [drawn[1]] * cost.size
            assert (reward, cost.tolist()) == (drawn[0], costs)


@pytest.mark.parametrize("name", GAMES)
def test_guard_refused_what_was_not_available(name):
    game = GAMES[name]
    history = game.run(record="all").history()
    largest = np.array(game.problem.most).T  # (K, D)
    available = by_resource(history.available)
    pulled = (history.arm >= 0) & (history.arm < game.problem.arms)
    assert (available[pulled] >= largest[history.arm[pulled]]).all()
    refused = history.reason == game.reasons[0]
    assert refused.any()
    assert not pulled[refused].any()
    # Whatever was refused, some arm could not have been paid for.
    assert (available[refused][:, np.newaxis] < largest).any(axis=(1, 2)).all()
    if game.delay is None:  # what is available is then the headroom before, and the income
        before = np.concatenate([np.zeros_like(available[:, :1]) + game.problem.stocks, available * 0], axis=1)[:, :-1]
        before[:, 1:] = by_resource(history.headroom)[:, :-1]
        expected = np.minimum(before + game.problem.rates, game.problem.caps)
        assert available == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize(("problem", "name"), [(EVERY_KIND, "suak"), (SEVERAL, "thompson"), (THREE_ARMS, "oracle")])
def test_decisions_are_those_of_ask_and_tell(problem, name):
    policy = make_policy(name)
    rounds = ask_and_tell(begin(policy, problem, horizon=500, seed=SEED, stream=1), 500)
    history = pl.simulate(problem, name, rounds=500, trials=2, seed=SEED, record="all")[name].history()
    wants_null = (rounds.arm == -1) & (rounds.reason == 0) & (rounds.tag == problem.arms)
    assert history.arm[1].tolist() == np.where(wants_null, problem.arms, rounds.arm).tolist()
    assert history.reason[1].tolist() == [policy.reasons[reason] for reason in rounds.reason]
    assert history.reward[1].tolist() == rounds.reward.tolist()
    assert by_resource(history.cost)[1].tolist() == rounds.costs.tolist()


# What is wanted.


@settings(max_examples=25)
@given(
    wanted=st.one_of(
        st.lists(st.integers(1, 60), min_size=1, max_size=20),
        st.builds(range, st.integers(1, 20), st.integers(21, 61), st.integers(1, 9)),
    ),
    name=st.sampled_from(["several", "several, late", "policy in Python"]),
)
def test_some_rounds_are_rows_of_all(wanted, name):
    few = {"rounds": 60, "trials": 1, "checkpoints": 3}
    everything = GAMES[name].run(record="all", **few).history()
    some = GAMES[name].run(record=wanted, **few).history()
    rounds = sorted(set(wanted))
    assert some.rounds.tolist() == rounds
    for column in COLUMNS:
        assert (getattr(some, column) == getattr(everything, column)[:, np.array(rounds) - 1]).all(), column


@pytest.mark.parametrize("name", GAMES)
def test_totals_do_not_depend_on_what_is_recorded(name, tmp_path):
    plain = all_bits(GAMES[name].simulate())
    assert all_bits(GAMES[name].simulate(record=[3, 300])) == plain
    assert all_bits(GAMES[name].simulate(record="all", record_to=tmp_path / "here")) == plain


@pytest.mark.slow
def test_costs_are_written_down_before_a_policy_gets_at_them():
    """A policy is handed the costs of a pull in the array that the books use."""
    from paceline.policies.uniform import Uniform

    class Grabber(Uniform):
        name = "grabber"

        @staticmethod
        def learn(params, state, decision, reward, cost):
            cost[0] = 0.125

    history = pl.simulate(THREE_ARMS, Grabber(), rounds=200, trials=1, seed=SEED, record="all")["grabber"].history()
    honest = pl.simulate(THREE_ARMS, "uniform", rounds=200, trials=1, seed=SEED, record="all")["uniform"].history()
    assert (history.cost == honest.cost).all()


REFUSED = {
    "a word": ({"record": "some"}, "record must be \"all\", a range or a list of rounds, got 'some'"),
    "a number": ({"record": 100}, 'record must be "all", a range or a list of rounds, got 100'),
    "nothing": ({"record": []}, 'record must be "all", a range or a list of rounds, got []'),
    "round 0": ({"record": [0, 1]}, "each round of record must be a whole number from 1 to 100, got 0"),
    "too far": ({"record": range(1, 200, 2)}, "each round of record must be a whole number from 1 to 100, got 199"),
    "a fraction": ({"record": [1.5]}, "each round of record must be a whole number from 1 to 100, got 1.5"),
    "too many": (
        {"record": "all", "trials": 100_001},
        "record must keep 10,000,000 rounds at most in memory, or have a folder record_to to stream them to, "
        "got 10,000,100 of all policies and trials",
    ),
    "only where": ({"record_to": "here"}, "record_to must come with record, the rounds to keep, got 'here' alone"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_recorded_is_refused_in_one_line(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given_, message = REFUSED[case]
    with pytest.raises(pl.InvalidValue) as caught:
        pl.simulate(THREE_ARMS, "uniform", **{"rounds": 100, "trials": 1, **given_})
    assert str(caught.value) == message
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_was_not_recorded_says_so(tmp_path):
    message = "run 'uniform' must be simulated with record to have a history, got none of it"
    results = pl.simulate(THREE_ARMS, "uniform", rounds=10, trials=1, record="all")
    results.save(tmp_path / "results.npz")
    for run in (
        pl.simulate(THREE_ARMS, "uniform", rounds=10, trials=1)["uniform"],
        pl.Results.load(tmp_path / "results.npz")["uniform"],
    ):
        with pytest.raises(pl.InvalidValue) as caught:
            run.history()
        assert str(caught.value) == message


# Files.


@pytest.mark.parametrize(("name", "rows"), [("one resource", 1), ("several", 400), *((name, 7) for name in GAMES)])
def test_files_hold_what_memory_holds(name, rows, tmp_path, monkeypatch):
    monkeypatch.setattr(recording, "PAGE_ROWS", rows)
    in_memory = GAMES[name].run(record="all").history()
    in_files = GAMES[name].run(record="all", record_to=tmp_path).history()
    assert [file.name for file in in_files.files] == ["0-0.parquet", "0-1.parquet"]
    assert in_memory.files == []
    for column in COLUMNS:
        one, other = getattr(in_memory, column), getattr(in_files, column)
        assert one.dtype == other.dtype
        assert one.tolist() == other.tolist(), column
    pd.testing.assert_frame_equal(
        in_files.to_pandas().astype({"reason": str}), in_memory.to_pandas().astype({"reason": str})
    )
    assert in_files.to_arrow().num_rows == 800


EXECUTORS = {
    "threads": lambda: ThreadPoolExecutor(2),
    "processes": lambda: ProcessPoolExecutor(2, multiprocessing.get_context("spawn")),
}


@pytest.mark.slow
@pytest.mark.parametrize("executor", EXECUTORS)
def test_files_are_the_same_to_the_byte_wherever_they_are_written(executor, tmp_path):
    game = Game(SEVERAL, ["uniform", "thompson", Least()], {"reward": 5})
    game.simulate(record=range(2, 400, 3), record_to=tmp_path / "here")
    with EXECUTORS[executor]() as pool:
        there = game.simulate(record=range(2, 400, 3), record_to=tmp_path / "there", executor=pool)
        in_memory = game.simulate(record=range(2, 400, 3), executor=pool)
    names = sorted(file.name for file in (tmp_path / "here").iterdir())
    assert names == [f"{policy}-{trial}.parquet" for policy in range(3) for trial in range(2)]
    for name in names:
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "there" / name).read_bytes()
    for label, run in in_memory.items():
        assert (run.history().headroom == there[label].history().headroom).all()


def test_a_folder_of_files_is_one_table(tmp_path):
    game = Game(SEVERAL, {"a": "uniform", "b/ü": "oracle"})
    results = game.simulate(record="all", record_to=tmp_path / "deep" / "folder")
    frame = pd.read_parquet(tmp_path / "deep" / "folder")
    amounts = [f"{thing}_{name}" for thing in ("cost", "available", "headroom") for name in SEVERAL.resources]
    assert frame.columns.tolist() == ["policy", "trial", "round", "arm", "reason", "reward", *amounts]
    assert not frame.duplicated(["policy", "trial", "round"]).any()
    earned = frame.groupby(["policy", "trial"], observed=True)["reward"].sum()
    for label, run in results.items():
        assert earned[label].to_numpy() == pytest.approx(run.reward[:, -1])


def test_a_folder_with_something_in_it_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(pl.InvalidValue) as caught:
        pl.simulate(THREE_ARMS, "uniform", rounds=10, trials=1, record="all", record_to=tmp_path)
    assert str(caught.value) == f"record_to must be a new or an empty folder, got 'notes.txt' in {tmp_path}"
    with pytest.raises(pl.PacelineError, match=r"record_to must be a folder to write to, but .*notes.txt: File exists"):
        pl.simulate(THREE_ARMS, "uniform", rounds=10, trials=1, record="all", record_to=tmp_path / "notes.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


class Stumbles(pl.PythonPolicy):
    """Fails in the middle of a trial."""

    def choose(self, state):
        if state.clock.t == 50:
            raise RuntimeError("stumbled")
        return 0


def test_a_trial_that_fails_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.setattr(recording, "PAGE_ROWS", 8)
    with pytest.raises(RuntimeError, match="stumbled"):
        pl.simulate(THREE_ARMS, Stumbles(), rounds=100, trials=1, record="all", record_to=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_gone_or_damaged_is_named(tmp_path):
    history = pl.simulate(THREE_ARMS, "uniform", rounds=10, trials=1, record="all", record_to=tmp_path)[
        "uniform"
    ].history()
    (file,) = history.files
    file.write_bytes(b"PAR1 and no more")
    with pytest.raises(pl.UnreadableFile, match=r"0-0.parquet must be a Parquet file"):
        _ = history.arm
    file.unlink()
    with pytest.raises(pl.UnreadableFile, match=r"0-0.parquet must be a readable file, but: No such file"):
        history.to_pandas()


# Experiments.


def test_experiment_with_history_is_the_simulation_with_it(tmp_path):
    table = {"rounds": 300, "trials": 3, "seed": SEED, "block": 2, "record": [5, 6, 299], "policies": ["uniform"]}
    table["problem"] = [{"paper": "three-arms", "grid": {"delay": [0, 4]}}]
    study = pl.run_experiment(pl.Experiment.from_table(table), tmp_path / "run")
    assert len(list((tmp_path / "run" / "history").iterdir())) == 6
    for delay, results in zip([0, 4], study.values(), strict=True):
        history = results["uniform"].history()
        expected = pl.simulate(
            THREE_ARMS, "uniform", rounds=300, trials=3, seed=SEED, delay=delay, record=table["record"]
        )["uniform"].history()
        assert history.rounds.tolist() == [5, 6, 299]
        for column in COLUMNS:
            assert (getattr(history, column) == getattr(expected, column)).all()
    frame = pd.read_parquet(tmp_path / "run" / "history")
    assert frame.columns[:4].tolist() == ["problem", "policy", "trial", "round"]
    assert len(frame) == 2 * 3 * 3
    assert set(frame["problem"]) == set(study)


def test_experiment_that_goes_on_writes_what_is_missing(tmp_path):
    table = {"rounds": 100, "trials": 2, "block": 1, "record": "all", "policies": ["uniform"]}
    experiment = pl.Experiment.from_table({**table, "problem": [{"paper": "three-arms"}]})
    pl.run_experiment(experiment, tmp_path / "whole")
    folder = tmp_path / "halted"
    with open_folder(folder, experiment) as opened:
        opened.begin()
        first, _ = opened.missing()
        opened.write(first, run_task(first))
    assert [file.stem[-8:] for file in (folder / "history").iterdir()] == ["00000000"]
    pl.run_experiment(experiment, folder)
    assert files_in(folder) == files_in(tmp_path / "whole")
    other = pl.Experiment.from_table({**table, "record": [1], "problem": [{"paper": "three-arms"}]})
    with pytest.raises(pl.InvalidValue, match="it has record all, which this experiment has not"):
        pl.run_experiment(other, folder)


def test_extended_experiment_has_the_histories_of_one_that_had_it_all(tmp_path):
    table = {"rounds": 100, "trials": 2, "record": "all", "policies": ["uniform"], "problem": [{"paper": "three-arms"}]}
    more = {**table, "trials": 3, "policies": ["suak", "uniform"]}
    pl.run_experiment(pl.Experiment.from_table(table), tmp_path / "run")
    study = pl.run_experiment(pl.Experiment.from_table(more), tmp_path / "run")
    pl.run_experiment(pl.Experiment.from_table(more), tmp_path / "whole")
    assert files_in(tmp_path / "run") == files_in(tmp_path / "whole")
    results = next(iter(study.values()))
    assert results["uniform"].history().arm.shape == results["suak"].history().arm.shape == (3, 100)


def files_in(run):
    return {file.name: file.read_bytes() for file in (run / "history").iterdir()}


def test_worker_that_does_not_see_the_folder_says_so(tmp_path):
    record = recording.Record(range(1, 3), {}, ("refused", "any arm"), ("cost",), tmp_path / "nowhere" / "0.parquet")
    with pytest.raises(pl.PacelineError, match=r"nowhere must be a folder that all who play the trials can write to"):
        run_trial(Trial(THREE_ARMS, make_policy("uniform"), np.array([2]), 0, 0, record=record))

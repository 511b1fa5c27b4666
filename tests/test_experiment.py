"""Experiments as TOML files describe them: problems, policies, grids, streams and tasks, against plain readings."""

import csv
import json
import pickle
import tomllib
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from studies import SMALL, experiment

import paceline as pl
from paceline.experiments.experiment import BLOCK_ROUNDS
from paceline.policies import POLICIES as NAMED
from paceline.policies.policy import Policy
from paceline.problems import families as problems
from paceline.simulation.simulate import run_trial

RATES = {"rewards": [0.3, 0.8], "costs": [0.2, 0.7]}
ONE = {"rounds": 100, "trials": 2, "policies": ["uniform"]}


def problems_of(*tables: dict[str, object], folder: Path = Path()) -> dict[str, pl.Problem]:
    """The problems that [[problem]] tables stand for, by name."""
    read = pl.Experiment.from_table({**ONE, "problem": list(tables)}, folder)
    return {field.name: field.problem for field in read.problems}


def policies_of(**keys: object) -> dict[str, Policy]:
    read = experiment({"rounds": 100, "problem": [{"paper": "three-arms"}]}, **keys)
    return {label: spec.policy for label, spec in read.policies.items()}


# Problems.


def test_explicit_problem():
    assert problems_of({**RATES, "budget": 0.4}) == {"problem": pl.Problem.beta(**RATES, budget=0.4)}
    assert problems_of({"name": "coins", "kind": "bernoulli", **RATES, "budget": 0.4}) == {
        "coins": pl.Problem.bernoulli(**RATES, budget=0.4)
    }


def test_grid_over_anything_is_every_combination():
    budgets, concentrations, rewards = [0.2, 1.0], [2, 20.5], [[0.3, 0.8], [0.5, 0.5]]
    grid = {"budget": budgets, "concentration": concentrations, "rewards": rewards}
    assert problems_of({"name": "it", "costs": [0.2, 0.7], "grid": grid}) == {
        f"it, budget={budget:g}, concentration={spread:g}, rewards={earned}": pl.Problem.beta(
            earned, [0.2, 0.7], budget, spread
        )
        for budget, spread, earned in product(budgets, concentrations, rewards)
    }


def test_where_in_a_grid_a_problem_stands_is_told():
    read = experiment(ONE, problem=[{"paper": "three-arms", "grid": {"budget": [0.2, 0.4]}}, {"paper": "eight-arms"}])
    assert [field.swept for field in read.problems] == [{"budget": 0.2}, {"budget": 0.4}, {}]
    assert [entry["swept"] for entry in read.to_dict()["problems"]] == [{"budget": 0.2}, {"budget": 0.4}, {}]


def test_grid_over_long_lists():
    grid = {"rewards": [[0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [0.1, 0.2, 0.3, 0.4, 0.5, 0.7]]}
    assert len(problems_of({"costs": [0.5] * 6, "budget": 0.4, "grid": grid})) == 2


def test_grid_over_close_numbers():
    assert len(problems_of({**RATES, "grid": {"budget": [0.3, 0.3000001]}})) == 2


def test_family():
    found = problems_of({"family": "mixed", "size": 12, "seed": 5, "arms": 4})
    assert found == {
        f"mixed {number:02d}": problem
        for number, problem in enumerate(problems.family("mixed", 12, 5, arms=4), start=1)
    }


def test_family_unless_told_otherwise():
    assert list(problems_of({"name": "all", "family": "beta"}).values()) == problems.family("beta", 6, 0)


def test_family_in_a_grid():
    found = problems_of({"family": "beta", "size": 2, "grid": {"shortfall": [0.05, 0.2], "seed": [1, 2]}})
    assert found == {
        f"beta {number}, shortfall={shortfall:g}, seed={seed}": problem
        for shortfall, seed in product([0.05, 0.2], [1, 2])
        for number, problem in enumerate(problems.family("beta", 2, seed, shortfall=shortfall), start=1)
    }


def test_paper():
    assert problems_of(
        {"paper": "three-arms"}, {"paper": "eight-arms"}, {"name": "poor", "paper": "three-arms", "budget": 0.2}
    ) == {
        "three-arms": pl.paper.three_arms(),
        "eight-arms": pl.paper.eight_arms(),
        "poor": pl.Problem(pl.paper.three_arms().rewards, pl.paper.three_arms().costs, 0.2),
    }


LOG = """\
which,won,paid,note
b,3,1.5,"one, two"
10,0,0,
a, 6,2.0,"over
two lines"

9,1.25,0.5,
b,6,0.25,last
"""


def test_csv_against_a_naive_reading(tmp_path):
    (tmp_path / "log.csv").write_text(LOG, encoding="utf-8")
    table = {"csv": "log.csv", "arm": "which", "reward": "won", "cost": "paid", "max_reward": 8, "max_cost": 2}
    (found,) = problems_of({**table, "budget": 0.5}, folder=tmp_path).values()
    with (tmp_path / "log.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 5
    arms = ["9", "10", "a", "b"]  # numbers by their value, then words
    assert found == pl.Problem(
        [pl.Empirical([float(row["won"]) / 8 for row in rows if row["which"] == arm]) for arm in arms],
        [pl.Empirical([float(row["paid"]) / 2 for row in rows if row["which"] == arm]) for arm in arms],
        0.25,
        coupled=True,
    )


def test_csv_with_a_largest_cost_for_each_arm(tmp_path):
    (tmp_path / "log.csv").write_text("arm,reward,cost\na,0.5,1\nb,1,4\na,1,0.5\n", encoding="utf-8")
    most = {"a": 1, "b": 4.0}
    (found,) = problems_of({"csv": "log.csv", "budget": 2, "max_cost": most}, folder=tmp_path).values()
    assert found.max_costs == (0.25, 1.0)
    assert found.costs == (pl.Empirical([0.25, 0.125]), pl.Empirical([1.0]))
    assert found.budget == 0.5


def test_files_are_looked_for_beside_the_experiment(tmp_path, monkeypatch):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "log.csv").write_text("arm,reward,cost\na,0.5,0.5\n", encoding="utf-8")
    text = 'policies = ["uniform"]\n[[problem]]\ncsv = "log.csv"\nbudget = 0.5\n'
    (tmp_path / "deep" / "mine.toml").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    read = pl.Experiment.read("deep/mine.toml")
    assert read.name == "mine"
    assert [field.name for field in read.problems] == ["log.csv"]


# Policies.


def test_policies_by_name_and_in_tables():
    tables = [
        {"name": "one-phase", "label": "two", "a": 2},
        {"name": "suak", "grid": {"order": ["first", "fewest"], "horizon": [50, 60]}},
    ]
    assert policies_of(policies=["suak", "one-phase"], policy=tables) == {
        "suak": pl.SUAK(),
        "one-phase": pl.OnePhase(),
        "two": pl.OnePhase(a=2),
    } | {
        f"suak, order={order}, horizon={horizon}": pl.SUAK(order=order, horizon=horizon)
        for order, horizon in product(["first", "fewest"], [50, 60])
    }


def test_grid_over_names_of_policies():
    assert policies_of(policy=[{"label": "it", "grid": {"name": ["suak", "oracle"]}}]) == {
        "it, name=suak": pl.SUAK(),
        "it, name=oracle": pl.Oracle(),
    }


# Streams and tasks.


def test_streams_of_all_trials_differ_but_for_grids():
    read = experiment(
        ONE, trials=2**32 - 1, block=2**32 - 1, problem=[*SMALL["problem"], {"family": "rare", "size": 3}]
    )
    spans = sorted((task.field.stream, task.field.stream + task.count) for task in read.tasks())
    assert len(spans) == 6
    assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))
    swept = experiment(ONE, problem=[{"family": "rare", "size": 2, "grid": {"seed": [1, 2]}}])
    streams = [field.stream for field in swept.problems]
    assert streams[:2] == streams[2:]
    assert streams[0] != streams[1]


GROWN = {
    "problem": {"problem": [*SMALL["problem"], {"paper": "eight-arms"}]},
    "member": {"problem": [SMALL["problem"][0], {"family": "bernoulli", "size": 4}]},
    "policy": {"policy": [{"name": "oracle"}]},
    "trial": {"trials": 6},
}


def identity(task) -> tuple[object, ...]:
    """All that the numbers of a task depend on."""
    return task.label, task.field.problem, task.policy, task.seed, [trial.stream for trial in task.trials()]


@pytest.mark.parametrize("more", GROWN)
def test_more_at_the_end_leaves_the_tasks_alone(more):
    before = [identity(task) for task in experiment(SMALL, block=1).tasks()]
    after = [identity(task) for task in experiment(SMALL, **{"block": 1, **GROWN[more]}).tasks()]
    assert len(after) > len(before)
    assert [task for task in after if task in before] == before


def test_more_points_of_a_grid_leave_the_tasks_alone():
    few, many = (
        [
            identity(task)
            for task in experiment(ONE, problem=[{"paper": "three-arms", "grid": {"budget": grid}}]).tasks()
        ]
        for grid in ([0.3], [0.3, 0.5])
    )
    assert many[: len(few)] == few


@pytest.mark.parametrize(
    ("rounds", "trials", "block"), [(100, 7, 7), (BLOCK_ROUNDS // 3, 100, 3), (BLOCK_ROUNDS, 4, 1), (10**8, 4, 1)]
)
def test_task_is_about_a_second_of_work(rounds, trials, block):
    assert experiment(ONE, rounds=rounds, trials=trials, problem=SMALL["problem"]).block == block


def test_task_is_small_to_send():
    assert max(len(pickle.dumps(task)) for task in experiment(SMALL, trials=10**6, block=10**6).tasks()) < 10_000


def test_last_stream_of_all_plays():
    """Above 2**63, where a signed number would end."""
    (task, *_) = experiment(SMALL).tasks()
    last = replace(task.field, stream=(2**16 - 2) << 48)
    far = replace(task, field=last, first=2**32 - 3, count=2)
    one, other = (run_trial(trial) for trial in far.trials())
    assert one.earned.tolist() != other.earned.tolist()


# Any table, as TOML and back.


def toml(table: dict[str, object]) -> str:
    """The table as someone would write it: plain keys, then [[problem]] and [[policy]] with a [grid] below."""
    lines = [f"{key} = {value_of(value)}" for key, value in table.items() if key not in {"problem", "policy"}]
    for heading in ("problem", "policy"):
        for entry in table.get(heading, []):
            lines.append(f"[[{heading}]]")
            lines += [f"{key} = {value_of(value)}" for key, value in entry.items() if key != "grid"]
            lines += [f"[{heading}.grid]"] if "grid" in entry else []
            lines += [f"{key} = {value_of(value)}" for key, value in entry.get("grid", {}).items()]
    return "\n".join(lines)


def value_of(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {value_of(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(value_of, value)) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


RATE = st.floats(0.015625, 1, width=16)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
SEEDS = st.integers(0, 2**63 - 1)  # the largest whole number that TOML promises to hold


@st.composite
def explicit(draw):
    arms = draw(st.integers(1, 3))
    table = {side: draw(st.lists(RATE, min_size=arms, max_size=arms)) for side in ("rewards", "costs")}
    if draw(st.booleans()):
        table |= {"coupled": draw(st.booleans()), "concentration": draw(st.integers(1, 50))}
    if draw(st.booleans()):
        return {**table, "budget": draw(RATE)}
    return {**table, "grid": {"budget": draw(st.lists(st.sampled_from([0.25, 0.5, 1]), min_size=1, unique=True))}}


def optional(**keys: st.SearchStrategy[object]) -> st.SearchStrategy[dict[str, object]]:
    return st.fixed_dictionaries({}, optional=keys)


PROBLEMS = st.one_of(
    explicit(),
    st.builds(
        lambda kind, keys: {"family": kind, **keys},
        st.sampled_from(["beta", "bernoulli", "mixed"]),
        optional(size=st.integers(1, 3), seed=SEEDS, arms=st.integers(3, 5)),
    ),
    st.builds(
        lambda name, keys: {"paper": name, **keys}, st.sampled_from(["three-arms", "eight-arms"]), optional(budget=RATE)
    ),
)
POLICIES = st.one_of(
    st.builds(lambda name: {"name": name}, st.sampled_from(list(NAMED))),
    st.builds(
        lambda values: {"name": "one-phase", "grid": {"a": values}},
        st.lists(st.integers(1, 9), min_size=1, unique=True),
    ),
    st.just({"name": "suak", "order": "fewest"}),
)


@st.composite
def tables(draw):
    rounds = draw(st.integers(1, 10**9))
    keys = optional(
        name=NAMES,
        trials=st.integers(1, 40),
        seed=SEEDS,
        block=st.integers(1, 50),
        checkpoints=st.one_of(st.integers(1, 300), st.lists(st.integers(1, rounds), max_size=3)),
    )
    # Numbered, so that no name or label comes twice.
    listed = {
        "problem": [
            {**table, "name": f"{n} {draw(NAMES)}"}
            for n, table in enumerate(draw(st.lists(PROBLEMS, min_size=1, max_size=3)))
        ],
        "policy": [
            {**table, "label": f"{n} {draw(NAMES)}"}
            for n, table in enumerate(draw(st.lists(POLICIES, min_size=1, max_size=3)))
        ],
    }
    return {"rounds": rounds, **draw(keys), **listed}


@given(tables())
def test_toml_and_back_is_the_same_experiment(table):
    again = tomllib.loads(toml(table))
    assert again == table
    read, back = pl.Experiment.from_table(table), pl.Experiment.from_table(again)
    assert back.to_dict() == read.to_dict()
    assert (back.name, back.table) == (read.name, table)
    # The manifest holds it as JSON, and a run that goes on compares.
    assert json.loads(json.dumps(read.to_dict())) == read.to_dict()


@given(tables())
def test_tasks_are_a_partition_of_the_trials(table):
    read = pl.Experiment.from_table(table)
    tasks = read.tasks()
    played = [
        (task.number, task.label, trial - task.field.stream)
        for task in tasks
        for trial in (one.stream for one in task.trials())
    ]
    assert played == list(product(range(len(read.problems)), read.policies, range(read.trials)))
    assert all(1 <= task.count <= read.block for task in tasks)
    assert len({(task.name, task.label) for task in tasks}) == len(tasks)
    assert sum(task.cost for task in tasks) == len(played) * table["rounds"]

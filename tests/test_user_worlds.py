"""Worlds of the user's own in experiment files: by file and by module, on every engine, their code in the manifest."""

import csv
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from distributed import LocalCluster
from studies import experiment, parquet

import paceline as pl
from paceline.cli import main

TIDES = """\
import numpy as np
import paceline as pl

class Tides(pl.PythonWorld):
    budget = 0.5

    def __init__(self, arms=2, known=True):
        self.arms = arms
        self.problem = pl.Problem.bernoulli([0.5] * arms, [0.4] * arms, budget=0.5) if known else None

    def reset(self, seed, stream):
        self.random = np.random.default_rng([seed, stream])

    def outcome(self, t, arm, count):
        return float(self.random.random() < 0.5), float(self.random.random() < 0.4)

class Other:
    pass
"""
TABLE = {"rounds": 40, "trials": 4, "checkpoints": 2, "block": 1, "policies": ["uniform", "suak"]}


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "tides.py").write_text(TIDES, encoding="utf-8")
    return tmp_path


def read(folder: Path, **problem: object) -> pl.Experiment:
    return pl.Experiment.from_table({**TABLE, "problem": [{"world": "tides.py:Tides", **problem}]}, folder)


def test_plays_what_simulate_plays(folder):
    study = pl.run_experiment(read(folder, name="it", parameters={"arms": 3}), folder / "out")
    space: dict[str, object] = {}
    exec(compile(TIDES, "tides", "exec"), space)  # an independent reading of the file
    alone = pl.simulate(space["Tides"](3), ["uniform", "suak"], rounds=40, trials=4, checkpoints=2)
    for label in alone:
        np.testing.assert_array_equal(study["it"][label].totals.earned, alone[label].totals.earned)
        np.testing.assert_array_equal(study["it"][label].pulls, alone[label].pulls)


@pytest.mark.slow
def test_the_same_bytes_in_processes(folder):
    first = pl.run_experiment(read(folder), folder / "threads")
    second = pl.run_experiment(read(folder), folder / "processes", "processes", workers=2)
    assert parquet(first) == parquet(second)


@pytest.mark.cluster
def test_the_same_bytes_on_a_cluster_that_does_not_have_the_file(folder, monkeypatch):
    first = pl.run_experiment(read(folder), folder / "threads")
    quiet = {"dashboard_address": "127.0.0.1:0", "scheduler_kwargs": {"dashboard": False}}
    with LocalCluster(n_workers=2, threads_per_worker=1, **quiet) as cluster:
        ready = read(folder)
        (folder / "tides.py").unlink()
        second = pl.run_experiment(ready, folder / "dask", dask=cluster.scheduler_address)
    assert parquet(first) == parquet(second)


def test_code_is_in_the_manifest_and_another_code_is_another_experiment(folder):
    pl.run_experiment(read(folder), folder / "out")
    (entry,) = json.loads((folder / "out" / "manifest.json").read_text(encoding="utf-8"))["experiment"]["problems"]
    assert len(entry["code"]) == 16
    assert "Tides" in entry["world"]
    (folder / "tides.py").write_text(TIDES.replace("< 0.4", "< 0.3"), encoding="utf-8")
    with pytest.raises(pl.InvalidValue, match=r"it has problems tides\.py:Tides with other code, which this exp"):
        pl.run_experiment(read(folder), folder / "out")
    with pytest.raises(pl.InvalidValue, match=r"it has problems tides\.py:Tides with other .*parameters, which"):
        pl.run_experiment(read(folder, name="tides.py:Tides", parameters={"arms": 3}), folder / "out")


def test_by_module_and_in_a_grid(folder, monkeypatch):
    monkeypatch.syspath_prepend(folder)
    (folder / "tidal.py").write_text(TIDES, encoding="utf-8")
    found = experiment(TABLE, problem=[{"world": "tidal:Tides", "grid": {"parameters": {"arms": [2, 4]}}}])
    assert [(spec.name, spec.problem.arms) for spec in found.problems] == [
        ("tidal:Tides, parameters.arms=2", 2),
        ("tidal:Tides, parameters.arms=4", 4),
    ]
    sys.modules.pop("tidal")


def test_without_true_means_there_are_rewards_and_no_report(folder):
    study = pl.run_experiment(read(folder, name="dark", parameters={"known": False}), folder / "out")
    (line,) = study.table().rows
    means = [study["dark"][label].reward[:, -1].mean() for label in study.labels]
    assert [float(cell.split()[0]) for cell in line[1:]] == pytest.approx(means, abs=0.051)
    assert study.table().notes[0] == "Rewards at round 40."
    assert "dark: rewards" in str(study.table())
    with pytest.raises(pl.InvalidValue, match="got 'dark' of experiment without"):
        study.report()


def test_a_world_without_true_means_is_named_and_the_others_are_reported(folder, capsys):
    dark = {"world": "tides.py:Tides", "name": "dark", "parameters": {"known": False}}
    problems = [dark, {"paper": "three-arms", "grid": {"budget": [0.4, 0.5]}}]
    for name, own in (("mixed", problems), ("all-dark", problems[:1])):
        pl.run_experiment(
            pl.Experiment.from_table({**TABLE, "name": name, "problem": own}, folder), folder / "out" / name
        )
    assert main(["report", str(folder / "out")]) == 0
    assert "got 'dark' of all-dark, 'dark' of mixed without" in capsys.readouterr().out
    page = (folder / "out" / "report.md").read_text(encoding="utf-8")
    assert "got 'dark' of all-dark, 'dark' of mixed without" in page
    rows = list(csv.DictReader((folder / "out" / "mixed-summary.csv").read_text().splitlines()))
    assert [(row["problem"], row["problem.budget"]) for row in rows[::2]] == [
        ("three-arms, budget=0.4", "0.4"),
        ("three-arms, budget=0.5", "0.5"),
    ]
    mixed = pl.Study.open(folder / "out" / "mixed")
    for row in rows:
        regret = mixed[row["problem"]][row["policy"]].steady_regret[:, -1].mean()
        assert float(row["steady_regret"]) == pytest.approx(regret)
    assert (folder / "out" / "figures" / "mixed-grid-1.svg").exists()


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        ({"world": "tides.py:Rivers"}, "Rivers in .*tides.py must be a class derived from PythonWorld, got nothing"),
        ({"world": "tides.py:Other"}, r"derived from PythonWorld, got class \S*/tides.py:Other$"),
        ({"world": "nosuch:Tides"}, "world must be in a module that can be imported, got 'nosuch'"),
        ({"world": "Tides"}, "world must be named as module:Class or file.py:Class, got 'Tides'"),
        ({"parameters": {"legs": 4}}, "cannot be made with {'legs': 4}"),
        ({"parameters": 4}, "parameters must be a table, got 4"),
        ({"world": 5}, "world must be module:Class or file.py:Class, got 5"),
        ({"budget": 0.5}, "a world of your own takes world, parameters, name, delay, streams; got budget"),
    ],
)
def test_wrong_worlds_are_refused(problem, words, folder):
    with pytest.raises(pl.PacelineError, match=f"^problem 1: .*{words}"):
        read(folder, **problem)

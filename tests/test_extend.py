"""A finished run extended: only what is missing is done, and the bytes are those of a run that had it all at once."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from command import ENVIRONMENT, SCRIPT
from comparing import bits
from distributed import LocalCluster
from hypothesis import given
from hypothesis import strategies as st
from interrupt import INTERRUPTIBLE
from studies import after_writes, contents, experiment, parquet, parts

import paceline as pl
from paceline import cli
from paceline.experiments.cells import PARTS
from paceline.experiments.folder import RunFolder
from paceline.experiments.holdings import disjoint, gaps

DATA = Path(__file__).parent / "data"
FEW = {
    "rounds": 300,
    "trials": 12,
    "checkpoints": 5,
    "block": 3,
    "policies": ["uniform", "suak"],
    "problem": [{"paper": "three-arms"}, {"family": "bernoulli", "size": 2}],
}
MORE = (
    {"trials": 16},
    {"policies": ["uniform", "suak", "oracle"]},
    {"problem": [*FEW["problem"], {"paper": "eight-arms"}]},
)


def steps() -> list[dict[str, object]]:
    """The table as it grows, a step at a time."""
    tables = [FEW]
    for changes in MORE:
        tables.append({**tables[-1], **changes})
    return tables


@pytest.fixture(scope="module")
def at_once(tmp_path_factory) -> bytes:
    """The largest of them, run from the start."""
    return parquet(pl.run_experiment(experiment(steps()[-1]), tmp_path_factory.mktemp("whole")))


def trials_of(name: str) -> int:
    return int(name.rpartition("-")[2])


def test_extended_step_by_step_is_byte_equal_and_does_only_what_is_missing(at_once, tmp_path, monkeypatch):
    done = []
    for table in steps():
        with monkeypatch.context() as patch:
            written = after_writes(patch, -1, lambda: None)
            study = pl.run_experiment(experiment(table), tmp_path)
        done.append(sum(map(trials_of, written)))
    assert parquet(study) == at_once
    # Trials of policies on problems: 12 of 2 on 3; 4 more each; 16 of a third policy; 16 of 3 on a fourth problem.
    assert done == [12 * 2 * 3, 4 * 2 * 3, 16 * 3, 16 * 3]
    assert study.manifest["experiment"] == json.loads(json.dumps(experiment(steps()[-1]).to_dict()))
    assert len(study.manifest["spells"]) == 4


def test_numbers_that_were_there_do_not_change_by_a_bit(tmp_path):
    before = {
        (name, label): bits(run)
        for name, results in pl.run_experiment(experiment(FEW), tmp_path).items()
        for label, run in results.items()
    }
    study = pl.run_experiment(experiment(steps()[-1]), tmp_path)
    for (name, label), old in before.items():
        totals = study[name][label].totals
        for field, (shape, content) in old.items():
            assert getattr(totals, field)[: shape[0]].tobytes() == content, (name, label, field)


@pytest.mark.slow
def test_extended_in_processes(at_once, tmp_path):
    for table in steps():
        study = pl.run_experiment(experiment(table), tmp_path, "processes", workers=2)
    assert parquet(study) == at_once


@pytest.mark.cluster
def test_extended_on_a_cluster(at_once, tmp_path):
    quiet = {"dashboard_address": "127.0.0.1:0", "scheduler_kwargs": {"dashboard": False}}
    with LocalCluster(n_workers=2, threads_per_worker=1, **quiet) as cluster:
        for table in steps():
            study = pl.run_experiment(experiment(table), tmp_path, dask=cluster.scheduler_address)
    assert parquet(study) == at_once
    assert {spell["engine"] for spell in study.manifest["spells"]} == {"dask"}


@pytest.mark.parametrize("kept", [1, 5])
def test_an_extension_that_was_cut_short_goes_on_even_to_something_larger(kept, at_once, tmp_path, monkeypatch):
    """Stopped in the middle of each step, then asked for the next one at once."""

    def stop() -> None:
        raise KeyboardInterrupt

    for table in steps()[:-1]:
        with monkeypatch.context() as patch:
            after_writes(patch, kept, stop)
            with pytest.raises(KeyboardInterrupt):
                pl.run_experiment(experiment(table), tmp_path)
    assert parts(tmp_path)
    assert parquet(pl.run_experiment(experiment(steps()[-1]), tmp_path)) == at_once


@pytest.mark.slow
def test_killed_while_it_extends(tmp_path):
    """By kill -9, in the middle, on the command line; then on to the end, then a policy, then a problem."""
    large = {**FEW, "rounds": 20_000, "block": 1}
    steps_on = [large]
    for changes in MORE:
        steps_on.append({**steps_on[-1], **changes})
    folder = tmp_path / "run"
    pl.run_experiment(experiment(large), folder)
    command = [sys.executable, "-c", INTERRUPTIBLE, str(SCRIPT), "run", str(folder), "--trials", "16"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT) as process:
        while len(parts(folder)) < 4:
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.002)
        os.kill(process.pid, signal.SIGKILL)
    before = parts(folder)
    assert 4 <= len(before) < 24
    for table in steps_on[1:]:
        study = pl.run_experiment(experiment(table), folder)
    whole = pl.run_experiment(experiment(steps_on[-1]), tmp_path / "whole")
    assert parquet(study) == parquet(whole)


def test_more_checkpoints_play_again_and_must_find_the_same(tmp_path, monkeypatch):
    pl.run_experiment(experiment(FEW), tmp_path / "run")
    finer = experiment(FEW, checkpoints=10)
    study = pl.run_experiment(finer, tmp_path / "run")
    assert parquet(study) == parquet(pl.run_experiment(finer, tmp_path / "whole"))
    assert study.rounds.tolist() == list(range(30, 301, 30))


def test_numbers_that_cannot_be_found_again_are_refused(tmp_path):
    """A file that was tampered with, of which nothing says so, is noticed when its trials are played again."""
    folder = tmp_path / "run"
    pl.run_experiment(experiment(FEW), folder)
    file = pq.ParquetFile(folder / "totals.parquet")
    with pq.ParquetWriter(folder / "other.parquet", file.schema_arrow) as writer:
        for number in range(file.num_row_groups):
            group = file.read_row_group(number)
            if number == 3:
                group = group.set_column(4, "earned", [np.asarray(group["earned"]) + 1.0])
            writer.write_table(group)
    (folder / "other.parquet").replace(folder / "totals.parquet")
    with pytest.raises(pl.UnreadableFile, match="must hold what the same code does again, but 'suak' on 'bernoulli 1'"):
        pl.run_experiment(experiment(FEW, checkpoints=10), folder)


def test_a_problem_with_other_columns(tmp_path):
    """With several resources amounts are lists, in all rows: also in those that were there."""
    robot = {
        "name": "robot",
        "rewards": [0.45, 0.7],
        "costs": {"money": [0.3, 0.75], "energy": [0.2, 0.1]},
        "budget": {"money": 0.5, "energy": 0.25},
        "cap": {"energy": 9.0},
    }
    few = {**FEW, "policies": ["uniform", "oracle"]}
    more = {**few, "problem": [*FEW["problem"], robot]}
    pl.run_experiment(experiment(few), tmp_path / "run")
    study = pl.run_experiment(experiment(more), tmp_path / "run")
    assert parquet(study) == parquet(pl.run_experiment(experiment(more), tmp_path / "whole"))


def test_the_size_of_tasks_changes_no_byte(tmp_path):
    """Also where a file has several row groups for a policy on a problem."""
    table = {**FEW, "checkpoints": 300, "trials": 60, "problem": [{"paper": "three-arms"}], "policies": ["uniform"]}
    studies = [pl.run_experiment(experiment(table, block=block), tmp_path / str(block)) for block in (1, 7, 60)]
    assert len({parquet(study) for study in studies}) == 1
    assert pq.ParquetFile(studies[0].path / "totals.parquet").num_row_groups == 3
    extended = pl.run_experiment(experiment(table, trials=40), tmp_path / "extended")
    extended = pl.run_experiment(experiment(table), extended.path)
    assert parquet(extended) == parquet(studies[0])


def test_other_names_are_no_other_experiment(tmp_path, monkeypatch):
    pl.run_experiment(experiment(FEW), tmp_path)
    before = (tmp_path / "totals.parquet").stat().st_ino
    written = after_writes(monkeypatch, -1, lambda: None)
    renamed = {**FEW, "policies": ["uniform"], "policy": [{"name": "suak", "label": "SUAK"}], "name": "other"}
    study = pl.run_experiment(experiment(renamed), tmp_path)
    assert (study.name, study.labels, written) == ("other", ["uniform", "SUAK"], [])
    assert (tmp_path / "totals.parquet").stat().st_ino == before
    assert list(study["three-arms"]) == ["uniform", "SUAK"]


def test_another_order_of_policies(tmp_path, monkeypatch):
    pl.run_experiment(experiment(FEW), tmp_path / "run")
    written = after_writes(monkeypatch, -1, lambda: None)
    swapped = experiment(FEW, policies=["suak", "uniform"])
    study = pl.run_experiment(swapped, tmp_path / "run")
    assert written == []
    assert parquet(study) == parquet(pl.run_experiment(swapped, tmp_path / "whole"))


LESS = {
    "trials": ({"trials": 11}, "trials 12"),
    "policies": ({"policies": ["uniform"]}, "policies suak"),
    "a parameter": (
        {"policies": ["uniform"], "policy": [{"name": "suak", "order": "first"}]},
        "policies suak with other parameters",
    ),
    "problems": ({"problem": FEW["problem"][:1]}, "problems bernoulli 1, bernoulli 2"),
    "problems in front": (
        {"problem": [{"paper": "eight-arms"}, *FEW["problem"]]},
        "problems three-arms with other random numbers, bernoulli 1 with other random numbers",
    ),
    "checkpoints": ({"checkpoints": 3}, "checkpoints 60, 120, 180 and 1 more"),
    "rounds": ({"rounds": 600}, "rounds 300"),
    "seed": ({"seed": 1}, "seed 0"),
}


@pytest.fixture(scope="module")
def few(tmp_path_factory) -> pl.Study:
    return pl.run_experiment(experiment(FEW), tmp_path_factory.mktemp("few"))


@pytest.mark.parametrize("case", LESS)
def test_what_does_not_contain_the_run_is_refused(case, few):
    changes, words = LESS[case]
    before = contents(few.path)
    with pytest.raises(pl.InvalidValue, match=f"or of a part of it; it has {words}.*, which this experiment has not"):
        pl.run_experiment(experiment(FEW, **changes), few.path)
    assert contents(few.path) == before


def test_more_trials_on_the_command_line(few, tmp_path, capsys):
    folder = tmp_path / "run"
    shutil.copytree(few.path, folder)
    assert cli.main(["run", "--trials", "16", str(folder)]) == 0
    shown = capsys.readouterr()
    assert f"{4 * 2 * 3 * 300:,} rounds to do" in shown.err
    assert f"Written to {folder}: manifest.json, totals.parquet" in shown.out
    whole = pl.run_experiment(experiment(FEW, trials=16), tmp_path / "whole")
    assert parquet(pl.Study.open(folder)) == parquet(whole)
    assert cli.main(["run", "--trials", "15", str(folder)]) == 2
    assert capsys.readouterr().err.endswith("it has trials 16, which this experiment has not\n")


def test_a_report_on_less_is_gone_when_the_run_is_extended(few, tmp_path, capsys):
    folder = tmp_path / "run"
    shutil.copytree(few.path, folder)
    assert cli.main(["report", str(folder)]) == 0
    (folder / "notes.txt").write_text("mine")
    (folder / "figures" / "mine.svg").write_text("mine")
    assert cli.main(["run", str(folder)]) == 0  # nothing is missing
    assert (folder / "report.html").exists()
    capsys.readouterr()
    assert cli.main(["run", "--trials", str(few.trials + 1), str(folder)]) == 0
    assert f"`paceline report {folder}` makes a new one" in capsys.readouterr().out
    left = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert left == {".lock", "manifest.json", "totals.parquet", "notes.txt", "figures/mine.svg"}


@pytest.mark.parametrize("engine", ["--dask tcp://127.0.0.1:9", "--dask nowhere", "--workers 0"])
def test_an_extension_without_an_engine_leaves_the_run_and_its_report_as_they_were(engine, few, tmp_path, capsys):
    folder = tmp_path / "run"
    shutil.copytree(few.path, folder)
    assert cli.main(["report", str(folder)]) == 0
    before = contents(folder)
    assert cli.main(["run", str(folder), "--trials", "16", *engine.split()]) == 2
    assert contents(folder) == before
    assert pl.Study.open(folder).trials == few.trials


def test_files_beside_the_experiment_are_found_again(tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    (home / "log.csv").write_text("arm,reward,cost\na,0.5,0.2\nb,0.6,0.4\n", encoding="utf-8")
    text = 'rounds = 100\ntrials = 2\npolicies = ["uniform"]\n[[problem]]\ncsv = "log.csv"\nbudget = 0.3\n'
    (home / "it.toml").write_text(text, encoding="utf-8")
    assert cli.main(["run", str(home / "it.toml"), "--out", str(tmp_path / "out")]) == 0
    monkeypatch.chdir(tmp_path)
    assert cli.main(["run", "out", "--trials", "3"]) == 0
    assert pl.Study.open(tmp_path / "out").trials == 3


def test_a_page_in_the_folder_above_that_is_on_less_is_named(tmp_path, capsys):
    page, run = tmp_path / "report.html", ["run", str(tmp_path / "beta"), "--trials"]
    small = ["--policies", "uniform", "--problems", "1", "--rounds", "100", "--trials", "2"]
    assert cli.main(["compare", "beta", *small, "--out", str(tmp_path)]) == 0
    capsys.readouterr()
    assert cli.main([*run, "2"]) == 0  # nothing to do: the page is on all there is
    assert "was made before" not in capsys.readouterr().out
    assert cli.main([*run, "3"]) == 0
    assert f"`paceline report {tmp_path}` makes a new one" in capsys.readouterr().out
    page.write_text("of somebody else", encoding="utf-8")
    os.utime(page, (0, 0))
    assert cli.main([*run, "4"]) == 0
    assert "was made before" not in capsys.readouterr().out


def test_a_comparison_is_extended_and_its_trials_keep_their_streams(tmp_path):
    settings = {"problems": 2, "rounds": 200, "seed": 4}
    study = pl.compare("beta", ["uniform"], **settings, trials=3, out=tmp_path / "run")
    before = {name: bits(results["uniform"])["earned"] for name, results in study.items()}
    assert cli.main(["run", str(study.path), "--trials", "8"]) == 0
    grown = pl.Study.open(study.path)
    ends = []
    for name, results in grown.items():
        assert results["uniform"].totals.earned[:3].tobytes() == before[name][1]
        ends += results["uniform"].totals.earned[:, -1].tolist()
    assert len(set(ends)) == 16  # no two trials share their luck


def test_a_run_of_the_format_before_is_read_but_not_extended(tmp_path):
    """Kept from the version that wrote format 2."""
    folder = tmp_path / "run"
    shutil.copytree(DATA / "study_format_2", folder)
    study = pl.Study.open(folder)
    assert list(study) == ["three-arms"]
    again = pl.simulate(pl.paper.three_arms(), "uniform", rounds=200, trials=2, checkpoints=2, seed=3)
    assert study["three-arms"]["uniform"].totals.earned.tolist() == again["uniform"].totals.earned.tolist()
    before = contents(folder)
    table = study.manifest["file"]
    assert list(pl.run_experiment(pl.Experiment.from_table(table), folder)) == ["three-arms"]
    with pytest.raises(pl.InvalidValue, match="has format 2; this version can read it, and goes on with 3 only"):
        pl.run_experiment(pl.Experiment.from_table(table | {"trials": 3}), folder)
    assert contents(folder) == before


def test_parts_left_over_by_a_run_that_was_killed_while_it_dropped_them(tmp_path, monkeypatch):
    """The file has their trials: they must not stand in the way of those that come later, which begin elsewhere."""
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "drop_parts", lambda _: None)
        pl.run_experiment(experiment(FEW), tmp_path)
    for part in parts(tmp_path):
        if not part.endswith("-0-3.parquet"):
            (tmp_path / PARTS / part).unlink()
    assert len(parts(tmp_path)) == 2 * 3
    study = pl.run_experiment(experiment({**FEW, "trials": 16, "block": 5}), tmp_path)
    whole = pl.run_experiment(experiment({**FEW, "trials": 16}), tmp_path / "whole")
    assert parquet(study) == parquet(whole)


# Parts of any size, of any age.

RANGES = st.builds(lambda first, count: range(first, first + count), st.integers(0, 30), st.integers(1, 12))


@given(st.lists(RANGES, max_size=8), st.integers(1, 25))
def test_parts_that_are_taken_and_gaps_make_up_the_trials(done, trials):
    taken = disjoint(done, trials)
    covered = [trial for part in [*taken, *gaps(done, trials)] for trial in part]
    assert sorted(covered) == list(range(trials))
    assert all(part in done for part in taken)


def test_what_a_killed_run_left_of_a_history_goes(tmp_path):
    table = {"rounds": 20, "trials": 1, "record": "all", "policies": ["uniform"], "problem": [{"paper": "three-arms"}]}
    pl.run_experiment(experiment(table), tmp_path)
    (kept,) = (tmp_path / "history").iterdir()
    left = kept.with_name(f".{kept.name}.0123abcd.unfinished")
    left.write_bytes(kept.read_bytes()[:50])
    pl.run_experiment(experiment({**table, "trials": 2}), tmp_path)
    assert not left.exists()
    assert len(list((tmp_path / "history").iterdir())) == 2

"""Two runs beside each other: what differs, by how much, and how sure that is."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy import stats

import paceline as pl
from paceline.cli import main
from paceline.experiments.diff import Compared, compare_studies

TABLE: dict[str, Any] = {
    "rounds": 300,
    "trials": 6,
    "checkpoints": [100, 200, 300],
    "seed": 1,
    "policies": ["uniform"],
    "policy": [{"name": "one-phase", "label": "ours", "a": 3.0}],
    "problem": [{"paper": "three-arms", "grid": {"budget": [0.4, 0.5]}}, {"paper": "eight-arms"}],
}
OTHER_A = [{"name": "one-phase", "label": "ours", "a": 0.5}]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of the table with changes; the same changes are run once."""
    done: dict[str, Path] = {}

    def folder(**changes: Any) -> Path:
        key = repr(changes)
        if key not in done:
            path = tmp_path_factory.mktemp("run")
            pl.run_experiment(pl.Experiment.from_table({**TABLE, **changes}), path)
            done[key] = path
        return done[key]

    return folder


def said(capsys, first: Path, second: Path) -> tuple[int, str]:
    code = main(["diff", str(first), str(second)])
    shown = capsys.readouterr()
    assert shown.err == ""
    return code, shown.out


def of(found: pl.Study | Any, problem: str, policy: str) -> Compared:
    (entry,) = [entry for entry in found.compared if (entry.problem, entry.policy) == (problem, policy)]
    return entry


def test_a_run_is_identical_to_itself(run, capsys):
    code, out = said(capsys, run(), run())
    assert code == 0
    assert "The experiments, the code and the machines are the same." in out
    assert "The numbers are identical: 6 runs, to the last bit." in out


def test_the_same_numbers_in_other_blocks_and_another_order(run, capsys):
    problems = list(reversed(TABLE["problem"]))
    assert compare_studies(pl.Study.open(run()), pl.Study.open(run(problem=TABLE["problem"][:1]))).one_sided
    code, out = said(capsys, run(), run(block=2, name="other"))
    assert code == 0
    assert "block  " not in out
    assert "The numbers are identical" in out
    # In another order the tables have other streams, so other numbers; but each is found by its name.
    found = compare_studies(pl.Study.open(run()), pl.Study.open(run(problem=problems)))
    assert [entry.problem for entry in found.compared[::2]] == pl.Study.open(run()).names
    assert not any(entry.paired for entry in found.compared)
    assert found.one_sided == ()


def test_policies_in_another_order_are_the_same_policies(run):
    swapped = {"policies": [], "policy": [*TABLE["policy"], {"name": "uniform"}]}
    assert compare_studies(pl.Study.open(run()), pl.Study.open(run(**swapped))).identical


def test_another_parameter_is_compared_in_pairs(run, capsys):
    first, second = run(), run(policy=OTHER_A)
    code, out = said(capsys, first, second)
    assert code == 1
    assert "OnePhase(a=3.0, horizon=None, time_row=True)  OnePhase(a=0.5, horizon=None, time_row=True)" in out
    assert "The numbers differ in 3 of 6 runs that both have." in out
    assert "paired by trial." in out
    found = compare_studies(pl.Study.open(first), pl.Study.open(second))
    assert not found.identical
    one, other = pl.Study.open(first)["eight-arms"]["ours"], pl.Study.open(second)["eight-arms"]["ours"]
    entry = of(found, "eight-arms", "ours")
    assert entry.paired
    change = other.steady_regret - one.steady_regret
    assert entry.difference.value == pytest.approx(change[:, -1].mean())
    assert entry.largest == pytest.approx(np.abs(change).max())
    assert of(found, "eight-arms", "uniform").differs_in == ()


def test_paired_and_unpaired_intervals_are_those_of_scipy(run):
    for changes, paired in (({"policy": OTHER_A}, True), ({"policy": OTHER_A, "seed": 2}, False)):
        entry = of(compare_studies(pl.Study.open(run()), pl.Study.open(run(**changes))), "eight-arms", "ours")
        assert entry.paired == paired
        sides = entry.second, entry.first
        test = stats.ttest_rel(*sides) if paired else stats.ttest_ind(*sides, equal_var=False)
        ends = test.confidence_interval(0.95)
        assert (entry.difference.low, entry.difference.high) == pytest.approx((ends.low, ends.high))


def test_another_seed_is_not_paired(run, capsys):
    code, out = said(capsys, run(), run(seed=2))
    assert code == 1
    assert "seed  " in out
    assert "The numbers differ in 6 of 6 runs" in out
    assert "in round brackets unpaired" in out
    found = compare_studies(pl.Study.open(run()), pl.Study.open(run(seed=2)))
    assert all(entry.largest is None and not entry.paired for entry in found.compared)


def test_more_trials_and_other_checkpoints(run, capsys):
    code, out = said(capsys, run(), run(trials=8, checkpoints=[50, 200, 300]))
    assert code == 1
    assert "checkpoints only in the first: 100" in out
    assert "checkpoints only in the second: 50" in out
    assert "trials only in the second: 7 to 8" in out
    assert "What both have is identical: 6 runs, to the last bit." in out
    found = compare_studies(pl.Study.open(run()), pl.Study.open(run(trials=8)))
    assert {entry.largest for entry in found.compared} == {0.0}
    assert (len(found.compared[0].first), len(found.compared[0].second)) == (6, 8)
    assert not found.compared[0].paired


def test_the_last_checkpoint_of_both_is_compared(run):
    found = compare_studies(
        pl.Study.open(run()), pl.Study.open(run(rounds=200, checkpoints=[100, 200], policy=OTHER_A))
    )
    assert found.last == 200
    regret = pl.Study.open(run())["eight-arms"]["ours"].steady_regret
    np.testing.assert_array_equal(of(found, "eight-arms", "ours").first, regret[:, 1])


def test_nothing_in_common(run, capsys):
    other = {"checkpoints": [150], "rounds": 150, "policies": ["suak"], "policy": []}
    code, out = said(capsys, run(), run(**other))
    assert code == 1
    assert "policies only in the first: uniform; ours" in out
    assert "policies only in the second: suak" in out
    assert "there is nothing to compare" in out


def test_another_problem_of_the_same_name(run, capsys):
    changed = [{"paper": "three-arms", "name": "eight-arms"}]
    code, out = said(capsys, run(), run(problem=changed))
    assert code == 1
    assert "problem eight-arms" in out
    assert "problems only in the first: three-arms, budget=0.4; three-arms, budget=0.5" in out
    assert all(
        "problem" in entry.differs_in
        for entry in compare_studies(*map(pl.Study.open, (run(), run(problem=changed)))).compared
    )


def test_a_single_changed_number_is_found(run, tmp_path, capsys):
    """One unit in the last place of one total in one trial."""
    import shutil

    folder = tmp_path / "run"
    shutil.copytree(run(), folder)
    source = pq.ParquetFile(run() / "totals.parquet")
    with pq.ParquetWriter(folder / "totals.parquet", source.schema_arrow) as writer:
        for number in range(source.num_row_groups):
            group = source.read_row_group(number)
            if number == 3:
                earned = group["earned"].to_numpy().copy()
                earned[4] = np.nextafter(earned[4], 1e9)
                group = group.set_column(group.schema.get_field_index("earned"), "earned", [earned])
            writer.write_table(group)
    code, out = said(capsys, run(), folder)
    assert code == 1
    assert "The numbers differ in 1 of 6 runs that both have." in out
    changed = [
        entry for entry in compare_studies(pl.Study.open(run()), pl.Study.open(folder)).compared if entry.differs_in
    ]
    assert [(entry.problem, entry.policy, entry.differs_in) for entry in changed] == [
        ("three-arms, budget=0.5", "ours", ("earned",))
    ]


def test_single_trials_have_no_interval(run, capsys):
    code, out = said(capsys, run(trials=1), run(trials=1, policy=OTHER_A))
    assert code == 1
    assert "nan" not in out
    rows = [line for line in out.splitlines() if " ours " in line and "OnePhase" not in line]
    assert len(rows) == 3
    assert not any("[" in row for row in rows)


def test_other_code_is_named(run, tmp_path, capsys):
    import json
    import shutil

    folder = tmp_path / "run"
    shutil.copytree(run(), folder)
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    manifest["kernels"] = "0123456789abcdef"
    manifest["versions"]["numpy"] = "1.0"
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    code, out = said(capsys, run(), folder)
    assert code == 0
    assert "0123456789abcdef" in out
    assert "numpy version" in out
    assert "The numbers are identical" in out


def test_usage(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["diff", "one"])
    assert stopped.value.code == 2
    assert "B" in capsys.readouterr().err

"""Results: by label, as a table, as a data frame, and on disk, whole or not at all."""

import gc
import json
import sys
import warnings
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import paceline as pl
from paceline.simulation.results import FORMAT

POLICIES = ["suak", "uniform", {"USS, λ = 5": pl.UCBSimplex(lam=5)}]
EVERY_KIND = pl.Problem(
    rewards=[pl.Beta(0.45, 3.0), pl.Bernoulli(0.7), pl.Empirical([0.1, 0.9, 1 / 3])],
    costs=[pl.Constant(0.3), pl.Beta(0.05), pl.Bernoulli(0.8)],
    budget=1 / 3,
)


@pytest.fixture(scope="module")
def results() -> pl.Results:
    """A small simulation with an awkward label and every kind of distribution."""
    return pl.simulate(EVERY_KIND, POLICIES, rounds=400, trials=3, seed=2**64 - 1, checkpoints=[7, 100])


@pytest.fixture
def saved(results, tmp_path) -> Path:
    """The same in a file."""
    path = tmp_path / "results.npz"
    results.save(path)
    return path


# By label.


def test_results_are_a_mapping_of_labels(results):
    labels = ["suak", "uniform", "USS, λ = 5"]
    assert list(results) == list(results.keys()) == labels
    assert len(results) == 3
    assert [run.label for run in results.values()] == labels
    assert "suak" in results
    assert results.get("suak") is results["suak"]


def test_unknown_label_is_named(results):
    with pytest.raises(pl.UnknownName, match="label must be one of suak, uniform, USS, λ = 5, got 'oracle'"):
        results["oracle"]


def test_a_label_can_be_asked_for_that_is_not_there(results):
    assert "oracle" not in results
    assert results.get("oracle") is None


# Tables.


def test_table_has_means_and_their_intervals(results):
    *lines, note = str(results.table()).splitlines()
    assert len(lines) == 2 + 3
    assert lines[0].split("  ")[0] == "policy"
    for heading in ("steady regret", "pseudo-regret", "regret", "skips", "idle", "spent per round", "min headroom"):
        assert heading in lines[0]
    skips = results["uniform"].skips[:, -1]
    mean, radius = skips.mean(), 4.302653 * skips.std(ddof=1) / np.sqrt(3)  # Student's t, 2 degrees of freedom
    (line,) = [line for line in lines if line.startswith("uniform ")]
    assert mean < 100  # so that a decimal is shown
    assert f" {mean:.1f} [{mean - radius:.1f}, {mean + radius:.1f}] ".replace("-", "−") in line
    assert "95 % interval" in note
    assert f"{results['uniform'].spent[:, -1].mean() / 400:.5f}" in line
    assert line.endswith(f"{results['uniform'].min_headroom.min():.3g}")


def test_columns_of_the_table_are_aligned(results):
    *lines, _ = str(results.table()).splitlines()
    assert len({len(line) for line in lines}) == 1


def test_markdown_has_the_same_cells(results):
    table = results.table()
    first, rule, *rows, _, note = table.to_markdown().splitlines()
    assert rule == "|---|" + "---:|" * 7
    cells = [tuple(line.strip("| ").split(" | ")) for line in (first, *rows)]
    assert cells == [table.headings, *table.rows]
    assert (note,) == table.notes


def test_what_is_the_same_in_every_trial_has_no_interval():
    table = pl.simulate(EVERY_KIND, "oracle", rounds=2, trials=3, checkpoints=[2]).table()
    assert table.rows[0][table.headings.index("skips")] in {"0.0", "1.0", "2.0"}


def test_one_trial_has_no_interval():
    table = pl.simulate(EVERY_KIND, "uniform", rounds=100, trials=1).table()
    assert "[" not in str(table)


# Data frames.


def test_data_frame_has_a_row_per_policy_trial_and_checkpoint(results):
    frame = results.to_pandas()
    assert list(frame.columns) == [
        *("policy", "trial", "round"),
        *("reward", "regret", "pseudo_regret", "steady_regret", "skips", "idle", "spent", "headroom"),
        *("pulls_0", "pulls_1", "pulls_2"),
        *("wrong_arms", "unspent", "cost_luck", "idle_regret"),
    ]
    assert len(frame) == 3 * 3 * 3
    assert not frame.duplicated(["policy", "trial", "round"]).any()
    by_place = frame.set_index(["policy", "trial", "round"])
    for label, run in results.items():
        terms = run.breakdown()
        for trial in range(3):
            for at, round_ in enumerate((7, 100, 400)):
                row = by_place.loc[label, trial, round_]
                for name in ("reward", "regret", "pseudo_regret", "steady_regret"):
                    assert row[name] == getattr(run, name)[trial, at]
                for name in ("skips", "idle", "spent", "headroom"):
                    assert row[name] == getattr(run, name)[trial, at]
                for arm in range(3):
                    assert row[f"pulls_{arm}"] == run.totals.pulls[trial, at, arm]
                for name in ("wrong_arms", "unspent", "cost_luck"):
                    assert row[name] == terms[name][trial, at]
                assert row["idle_regret"] == terms["idle"][trial, at]


def test_data_frame_without_pandas_says_what_to_install(results, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(pl.PacelineError, match=r'to_pandas needs pandas: pip install "paceline\[pandas\]"'):
        results.to_pandas()


# Files: there and back.


def contents(results: pl.Results) -> dict[str, object]:
    """All that a file must bring back, arrays to the last bit."""
    return {
        "problem": results.problem,
        "seed": results.seed,
        "rounds": (results.rounds.dtype, results.rounds.tolist()),
        "runs": [
            (label, run.label, run.policy, run.problem, run.rounds.tolist()) for label, run in results.runs.items()
        ],
        "totals": [
            (field, array.shape, array.dtype, array.tobytes())
            for run in results.values()
            for field, array in run.totals._asdict().items()
        ],
    }


def test_saved_and_loaded_is_the_same(results, saved):
    loaded = pl.Results.load(saved)
    assert contents(loaded) == contents(results)
    assert loaded["USS, λ = 5"].policy == "UCBSimplex(lam=5)"
    assert str(loaded.table()) == str(results.table())
    assert loaded["suak"].rounds_by_event().keys() == results["suak"].rounds_by_event().keys()


def test_saved_under_any_name_by_text_or_path(results, tmp_path):
    for path in (tmp_path / "no suffix", str(tmp_path / "other.results")):
        results.save(path)
        assert contents(pl.Results.load(path)) == contents(results)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["no suffix", "other.results"]


def test_loaded_can_be_saved_again(results, saved, tmp_path):
    again = tmp_path / "again.npz"
    pl.Results.load(saved).save(again)
    assert contents(pl.Results.load(again)) == contents(results)


def test_saving_replaces_an_older_file(results, saved):
    other = pl.simulate(EVERY_KIND, "uniform", rounds=10, trials=1)
    other.save(saved)
    assert contents(pl.Results.load(saved)) == contents(other)


# Files that cannot be read.


def assert_refused(path: Path, *words: str) -> None:
    """One error, one line, that names the file."""
    with pytest.raises(pl.UnreadableFile) as caught:
        pl.Results.load(path)
    message = str(caught.value)
    assert "\n" not in message
    for word in (str(path), *words):
        assert word in message


def head_of(path: Path) -> dict[str, object]:
    """The JSON head of a saved file."""
    with np.load(path) as file:
        return json.loads(str(file["head"]))


def with_head(path: Path, head: object) -> Path:
    """A copy of a saved file with another head."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files if name != "head"}
    copy = path.with_name("another.npz")
    with copy.open("wb") as file:
        np.savez_compressed(file, head=np.array(json.dumps(head)), **arrays)
    return copy


def test_missing_file_is_refused(tmp_path):
    assert_refused(tmp_path / "nothing.npz", "No such file")


def test_folder_is_refused(tmp_path):
    assert_refused(tmp_path, "Is a directory")


@pytest.mark.parametrize(
    "bytes_", [b"", b"PK", b"policy,regret\nsuak,1\n", b"\x00" * 1000, b"\x93NUMPY", b"PK\x03\x04" + b"\xff" * 200]
)
def test_file_of_another_kind_is_refused(bytes_, tmp_path):
    path = tmp_path / "other.npz"
    path.write_bytes(bytes_)
    assert_refused(path, "must be a file written by Results.save")


def test_single_array_of_numpy_is_refused(tmp_path):
    path = tmp_path / "array.npy"
    np.save(path, np.arange(3))
    assert_refused(path)


def test_foreign_archives_are_refused(tmp_path):
    path = tmp_path / "foreign.npz"
    np.savez(path, regret=np.arange(3), rounds=np.arange(3))
    assert_refused(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("head", "{}")
    assert_refused(path)


HEADS = {
    "list": [1],
    "number": 7,
    "no format": {},
    "format in words": {"format": "first"},
    "nothing else": {"format": FORMAT},
}


@pytest.mark.parametrize("case", HEADS)
def test_another_head_is_refused(case, saved):
    assert_refused(with_head(saved, HEADS[case]))


def test_impossible_problem_is_refused(saved):
    head = head_of(saved)
    head["problem"]["budget"] = 1.4
    assert_refused(with_head(saved, head))


def test_missing_run_is_refused(saved):
    head = head_of(saved)
    head["runs"].append({"label": "one more", "policy": "Uniform()"})
    assert_refused(with_head(saved, head))


def test_file_from_before_results_said_how_late_news_was_is_read(results, saved):
    head = head_of(saved)
    del head["late"]
    loaded = pl.Results.load(with_head(saved, head))
    assert (list(loaded), loaded.late) == (list(results), "")


def test_newer_format_is_refused_as_such(saved):
    head = head_of(saved)
    head["format"] = FORMAT + 1
    assert_refused(with_head(saved, head), f"has format {FORMAT + 1}", f"reads {FORMAT}")


def test_truncated_file_is_refused(saved):
    whole = saved.read_bytes()
    for length in (*range(0, 40), *range(40, len(whole), len(whole) // 40), len(whole) - 1):
        saved.write_bytes(whole[:length])
        assert_refused(saved)


def test_a_refused_file_is_closed(saved):
    saved.write_bytes(saved.read_bytes()[:1000])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with suppress(pl.UnreadableFile):
            pl.Results.load(saved)
        gc.collect()
    assert [str(warning.message) for warning in caught if str(saved) in str(warning.message)] == []


def test_damaged_file_is_refused_or_unharmed(results, saved):
    """A wrong byte is noticed wherever it matters; in a few places (dates of a zip archive) it does not."""
    whole = saved.read_bytes()
    noticed = 0
    for place in range(0, len(whole), 7):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF if place % 2 else 0x01
        saved.write_bytes(damaged)
        try:
            loaded = pl.Results.load(saved)
        except pl.UnreadableFile:
            noticed += 1
        else:
            assert contents(loaded) == contents(results), place
    assert noticed > len(whole) / 7 / 2


# Files that cannot be written.


@pytest.mark.parametrize("trouble", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=repr)
def test_save_that_fails_half_way_leaves_the_old_file(trouble, results, saved, monkeypatch):
    before = saved.read_bytes()

    def fill_the_disk(file, **arrays):
        file.write(b"half of a fi")
        raise trouble

    monkeypatch.setattr(np, "savez_compressed", fill_the_disk)
    with pytest.raises(type(trouble)):
        results.save(saved)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_save_into_a_missing_folder_leaves_nothing(results, tmp_path):
    with pytest.raises(FileNotFoundError):
        results.save(tmp_path / "missing" / "results.npz")
    assert list(tmp_path.iterdir()) == []


def test_save_over_a_folder_leaves_it(results, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(OSError, match="directory"):
        results.save(folder)
    assert list(tmp_path.iterdir()) == [folder]
    assert list(folder.iterdir()) == []


# Several resources.

SEVERAL = pl.Problem.beta(
    [0.45, 0.7, 0.8],
    {"money": [0.3, 0.75, 0.8], "energy": [0.2, 0.1, 0.6]},
    budget={"money": 0.5, "energy": 0.25},
    start={"energy": 1.5},
    cap={"energy": 2.0},
)


@pytest.fixture(scope="module")
def several() -> pl.Results:
    """Two resources, of which one has a start stock and a cap."""
    return pl.simulate(SEVERAL, ["uniform", "oracle"], rounds=400, trials=3, seed=5, checkpoints=[7, 100])


def test_shapes_with_several_resources(several):
    for run in several.values():
        for name in ("regret", "pseudo_regret", "steady_regret", "skips", "idle"):
            assert getattr(run, name).shape == (3, 3), name
        assert run.spent.shape == run.lost.shape == (3, 3, 2)
        assert run.min_headroom.shape == (3, 2)
        assert (run.min_headroom >= 0).all()
        assert {cause: term.shape for cause, term in run.breakdown(by_resource=True).items()} == {
            "wrong_arms": (3, 3),
            "idle": (3, 3),
            "unspent": (3, 3, 2),
            "cost_luck": (3, 3, 2),
        }
        assert {cause: term.shape for cause, term in run.breakdown().items()} == dict.fromkeys(
            ("wrong_arms", "idle", "unspent", "cost_luck"), (3, 3)
        )


def test_amounts_by_the_name_of_the_resource(several):
    run = several["uniform"]
    for quantity in ("spent", "lost", "headroom", "min_headroom"):
        by_name = run.by_resource(quantity)
        assert list(by_name) == ["money", "energy"]
        for d, values in enumerate(by_name.values()):
            assert (values == getattr(run, quantity)[..., d]).all()
    assert (run.headroom >= run.min_headroom[:, np.newaxis] - 1e-6).all()
    with pytest.raises(pl.InvalidValue, match=r"quantity by resource must be one of spent, .*, got 'pulls'"):
        run.by_resource("pulls")


def test_saved_and_loaded_is_the_same_with_several_resources(several, tmp_path):
    several.save(tmp_path / "several.npz")
    loaded = pl.Results.load(tmp_path / "several.npz")
    assert contents(loaded) == contents(several)
    assert loaded.problem == SEVERAL
    assert str(loaded.table()) == str(several.table())


def test_data_frame_with_several_resources(several):
    frame = several.to_pandas()
    assert list(frame.columns) == [
        *("policy", "trial", "round"),
        *("reward", "regret", "pseudo_regret", "steady_regret", "skips", "idle"),
        *("spent_money", "spent_energy", "lost_money", "lost_energy", "headroom_money", "headroom_energy"),
        *("pulls_0", "pulls_1", "pulls_2"),
        *("wrong_arms", "unspent", "cost_luck", "idle_regret"),
    ]
    assert len(frame) == 2 * 3 * 3
    by_place = frame.set_index(["policy", "trial", "round"])
    for label, run in several.items():
        for trial in range(3):
            for at, round_ in enumerate((7, 100, 400)):
                row = by_place.loc[label, trial, round_]
                assert (row["spent_money"], row["spent_energy"]) == tuple(run.spent[trial, at])
                assert (row["lost_money"], row["lost_energy"]) == tuple(run.lost[trial, at])
                assert (row["headroom_money"], row["headroom_energy"]) == tuple(run.headroom[trial, at])
                assert row["unspent"] == run.breakdown()["unspent"][trial, at]


def test_table_with_several_resources_has_a_column_for_each(several):
    *lines, _ = str(several.table()).splitlines()
    assert len({len(line) for line in lines}) == 1
    for name, spent in several["uniform"].by_resource("spent").items():
        assert name in lines[0]
        (line,) = [line for line in lines if line.startswith("uniform ")]
        assert f"{spent[:, -1].mean() / 400:.5f}" in line


def test_plot_with_several_resources(several, tmp_path):
    several.plot(tmp_path / "several.png", quantities=("steady_regret", "spent", "slack", "headroom"))
    assert (tmp_path / "several.png").read_bytes().startswith(b"\x89PNG")

"""Results with several resources: views against the raw totals, files, pictures, and what a prompt shows of them."""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import paceline as pl
from paceline.files import all_or_nothing, left_behind, try_lock
from paceline.simulation.totals import Totals

COSTS = {"money": [0.3, 0.75, 0.8], "energy": [0.2, 0.1, 0.6]}
TWO = pl.Problem.beta(
    [0.45, 0.7, 0.8], COSTS, budget={"money": 0.5, "energy": 0.4}, start={"energy": 3.0}, cap={"energy": 5.0}
)


@pytest.fixture(scope="module")
def results() -> pl.Results:
    """Money by the round, energy in a battery that overflows now and then."""
    return pl.simulate(TWO, ["oracle", "uniform"], rounds=600, trials=3, checkpoints=12)


@pytest.fixture(scope="module")
def plain() -> pl.Results:
    """One resource without a name."""
    return pl.simulate(pl.paper.three_arms(), "uniform", rounds=300, trials=2, checkpoints=3)


@pytest.fixture(scope="module")
def named() -> pl.Results:
    """One resource with a name."""
    problem = pl.Problem.beta([0.5, 0.9], {"money": [0.2, 0.8]}, budget={"money": 0.5})
    return pl.simulate(problem, "uniform", rounds=300, trials=2, checkpoints=3)


def test_spending_by_resource(results, plain):
    run = results["uniform"]
    for quantity in ("spent", "lost", "headroom", "min_headroom"):
        values = getattr(run, quantity)
        assert values.shape == ((3, 2) if quantity == "min_headroom" else (3, 12, 2))
        for at, name in enumerate(("money", "energy")):
            np.testing.assert_array_equal(run.by_resource(quantity)[name], values[..., at])
    only = plain["uniform"]
    assert list(only.by_resource("spent")) == ["cost"]
    np.testing.assert_array_equal(only.by_resource("spent")["cost"], only.spent)


def test_headroom_is_start_and_income_without_what_was_lost_and_spent(results):
    for run in results.values():
        assert run.lost[..., 1].max() > 0.0
        for at, (start, rate) in enumerate([(0.0, 0.5), (3.0, 0.4)]):
            line = start + rate * results.rounds
            np.testing.assert_allclose(run.headroom[..., at], line - run.lost[..., at] - run.spent[..., at], atol=1e-6)
        assert (run.headroom >= run.min_headroom[:, None] - 1e-6).all()
        assert (run.headroom[..., 1] <= 5.0 + 1e-6).all()


def test_unknown_quantity_by_resource_is_refused(results):
    with pytest.raises(pl.InvalidValue, match=r"quantity by resource must be one of spent, .*, got 'regret'"):
        results["uniform"].by_resource("regret")


def test_table_has_a_column_for_each_resource(results, plain, named):
    table = results.table()
    assert table.headings[-4:] == ("money per round", "energy per round", "min money left", "min energy left")
    for row, run in zip(table.rows, results.values(), strict=True):
        assert row[-4:-2] == tuple(f"{rate:.5f}" for rate in run.spent[:, -1].mean(axis=0) / 600)
        assert row[-2:] == tuple(f"{lowest:.3g}" for lowest in run.min_headroom.min(axis=0))
    assert plain.table().headings[-2:] == ("spent per round", "min headroom")
    assert named.table().headings[-2:] == ("money per round", "min money left")


def test_data_frame_names_the_resources(results, plain, named):
    data = results.to_pandas()
    columns = [f"{thing}_{name}" for thing in ("spent", "lost", "headroom") for name in ("money", "energy")]
    assert list(data.columns) == [
        *("policy", "trial", "round", "reward", "regret", "pseudo_regret", "steady_regret", "skips", "idle"),
        *columns,
        *("pulls_0", "pulls_1", "pulls_2"),
        *("wrong_arms", "unspent", "cost_luck", "idle_regret"),
    ]
    for label, run in results.items():
        own = data[data["policy"] == label]
        np.testing.assert_array_equal(own["spent_energy"], run.spent[..., 1].ravel())
        np.testing.assert_array_equal(own["lost_energy"], run.lost[..., 1].ravel())
        np.testing.assert_allclose(own["steady_regret"], own["wrong_arms"] + own["idle_regret"] + own["unspent"])
    assert [name for name in plain.to_pandas() if name.startswith(("spent", "lost"))] == ["spent"]
    assert [name for name in named.to_pandas() if name.startswith(("spent", "lost"))] == ["spent_money"]


def test_saved_and_loaded_to_the_last_bit(results, named, tmp_path):
    for res in (results, named):
        res.save(tmp_path / "results.npz")
        found = pl.Results.load(tmp_path / "results.npz")
        assert found.problem == res.problem
        for label, run in res.items():
            for part, again in zip(run.totals, found[label].totals, strict=True):
                assert (part.dtype, part.shape, part.tobytes()) == (again.dtype, again.shape, again.tobytes())
    assert (tmp_path / "results.npz").stat().st_size < 8_000


@pytest.mark.parametrize("version", [1, 3])
def test_files_of_another_format_are_refused_as_such(version, tmp_path):
    np.savez(tmp_path / "other.npz", head=np.array(json.dumps({"format": version})))
    with pytest.raises(pl.UnreadableFile, match=f"has format {version}; this version reads 2"):
        pl.Results.load(tmp_path / "other.npz")


def test_a_panel_for_each_resource(results, plain):
    figure = results.plot(quantities=("steady_regret", "spent", "slack", "headroom"))
    assert [axes.get_title("left") for axes in figure.axes] == [
        "Steady regret",
        "Spent, money",
        "Spent, energy",
        "Rate minus average cost, money",
        "Headroom per round, energy",
        "Headroom, money",
        "Headroom, energy",
    ]
    run = results["uniform"]
    drawn = [axes.lines[1].get_ydata() for axes in figure.axes]
    np.testing.assert_allclose(drawn[2], run.spent[..., 1].mean(axis=0))
    np.testing.assert_allclose(drawn[3], (0.5 - run.spent[..., 0] / results.rounds).mean(axis=0))
    np.testing.assert_allclose(drawn[4], (run.headroom[..., 1] / results.rounds).mean(axis=0))
    titles = [axes.get_title("left") for axes in plain.plot(quantities=("spent", "slack")).axes]
    assert titles == ["Spent", "Budget rate minus average cost"]


def test_resources_may_be_called_anything(tmp_path):
    problem = pl.Problem.beta(
        [0.5], {"cost": [0.2], "US$ & $x$ <b>": [0.1]}, budget={"cost": 0.5, "US$ & $x$ <b>": 0.3}
    )
    results = pl.simulate(problem, "uniform", rounds=50, trials=2)
    assert results.table().headings[-4:-2] == ("cost per round", "US$ & $x$ <b> per round")
    assert [name for name in results.to_pandas() if name.startswith("spent")] == ["spent_cost", "spent_US$ & $x$ <b>"]
    assert "&lt;b&gt; per round" in results._repr_html_()
    titles = [axes.get_title("left") for axes in results.plot(tmp_path / "odd.png", ("spent",)).axes]
    assert titles == ["Spent, cost", "Spent, US$ & $x$ <b>"]


# What a prompt shows.


def test_short_in_a_terminal(results, plain):
    assert repr(results) == (
        "<Results: oracle, uniform; 3 trials of 600 rounds, 3 arms, resources money, energy, seed 0>"
    )
    assert repr(plain) == "<Results: uniform; 2 trials of 300 rounds, 3 arms, seed 0>"
    assert repr(results["oracle"]) == "<Run 'oracle': 3 trials of 600 rounds>"
    study = pl.compare([TWO], ["uniform"], rounds=100, trials=1)
    assert repr(study).startswith("<Study 'given problems' in ")
    assert repr(study).endswith(": 1 problem, 1 policy, 1 trial of 100 rounds, seed 0>")


def test_a_table_in_a_notebook(results):
    page = results._repr_html_()
    assert page.startswith("<table>")
    for row in results.table().rows:
        for cell in row:
            assert f">{cell}<" in page
    assert ">oracle<" in results["oracle"]._repr_html_()
    assert ">uniform<" not in results["oracle"]._repr_html_()
    assert pl.compare([TWO], ["uniform"], rounds=100, trials=1)._repr_html_().startswith("<table>")


def test_a_broken_promise_in_one_resource_is_seen(results):
    run = results["uniform"]
    spoilt = run.totals.min_headroom.copy()
    spoilt[1, 1] = -0.5
    totals = Totals(**{**run.totals._asdict(), "min_headroom": spoilt})
    bad = pl.Results(TWO, 0, results.rounds, {"uniform": pl.Run("uniform", "", TWO, results.rounds, totals)})
    assert bad.table().rows[0][-1] == "-0.5"


# Files.


def test_a_pipe_is_not_replaced_by_a_file(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="a device or a pipe"), all_or_nothing(pipe):
        pass
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


def test_writers_of_the_same_file_have_names_of_their_own(tmp_path):
    target = tmp_path / "same.txt"
    with all_or_nothing(target) as one, all_or_nothing(target) as other:
        assert one != other
        assert {one.parent, other.parent} == {tmp_path}
        one.write_text("one")
        other.write_text("other")
        assert left_behind(target) == sorted([one, other])
        assert not target.exists()
    assert target.read_text() == "one"  # the last to finish
    assert list(tmp_path.iterdir()) == [target]


def test_many_writers_at_once_leave_one_whole_file(results, tmp_path):
    path = tmp_path / "results.npz"
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: results.save(path), range(16)))
    assert pl.Results.load(path)["uniform"].spent.tobytes() == results["uniform"].spent.tobytes()
    assert list(tmp_path.iterdir()) == [path]


def test_a_writer_that_fails_leaves_what_was_there(tmp_path):
    target = tmp_path / "[odd] *.txt"
    target.write_text("before")

    def fail(path: Path) -> None:
        with all_or_nothing(path) as unfinished:
            unfinished.write_text("half")
            assert left_behind(path) == [unfinished]
            raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        fail(target)
    assert target.read_text() == "before"
    assert list(tmp_path.iterdir()) == [target]


def test_a_locked_file_is_refused_to_others(tmp_path):
    with (tmp_path / "lock").open("w") as mine, (tmp_path / "lock").open("w") as theirs:
        assert try_lock(mine.fileno())
        assert not try_lock(theirs.fileno())
    with (tmp_path / "lock").open("w") as later:
        assert try_lock(later.fileno())


def test_without_locks_nobody_is_kept_out(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fcntl", None)  # as on a system that lacks it
    with (tmp_path / "lock").open("w") as mine, (tmp_path / "lock").open("w") as theirs:
        assert try_lock(mine.fileno())
        assert try_lock(theirs.fileno())

"""Logs from files of every kind, with truth values, propensities and gaps, against a naive reader and the simulator."""

import csv
import gzip
import math
import subprocess
import sys
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from replaying import agrees, shown_at_random, simulated

import paceline as pl
from paceline.offline.data import read_log_table
from paceline.offline.logged import RandomLog
from paceline.offline.logs import random_log

DEFAULTS = {"arm": "arm", "reward": "reward", "cost": None, "propensity": None, "max_cost": 1.0, "max_reward": 1.0}
HEADING = ("arm", "reward", "cost", "propensity")


class Row(NamedTuple):
    """A row as it was logged; None where there is nothing."""

    arm: str | None
    reward: float | bool | None
    cost: float | None
    propensity: float | None


def read(log, resources=("cost",), **changes) -> RandomLog:
    """The log with the default names of columns."""
    return random_log(read_log_table(log), resources, **{**DEFAULTS, **changes})


# The same log from every kind of file.


def columns_of(rows: list[Row]) -> dict[str, list[object]]:
    return {name: [getattr(row, name) for row in rows] for name in HEADING}


def write_csv(path: Path, rows: list[Row], spelling=str) -> Path:
    """Lines of CSV, packed where the name says so."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "wt", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(HEADING)
        for row in rows:
            writer.writerow(["" if value is None else spelling(value) for value in row])
    return path


def write_parquet(path: Path, rows: list[Row], row_group_size: int = 3) -> Path:
    pq.write_table(pa.table(columns_of(rows)), path, row_group_size=row_group_size)
    return path


def expected_from(rows: list[Row]) -> dict[str, object]:
    """What a log should hold, told row by row."""
    left_out: dict[str, int] = {}
    kept = []
    heeded = any(None not in row for row in rows)
    for row in rows:
        for name in HEADING if heeded else HEADING[:3]:
            if getattr(row, name) is None:
                left_out[f"no {name}"] = left_out.get(f"no {name}", 0) + 1
                break
        else:
            kept.append(row)
    arms = sorted(
        {row.arm for row in kept}, key=lambda name: (not name.isdecimal(), int(name) if name.isdecimal() else 0, name)
    )
    return {
        "names": tuple(arms),
        "shown": [arms.index(row.arm) for row in kept],
        "rewards": [float(row.reward) for row in kept],
        "costs": [[row.cost] for row in kept],
        "propensities": [row.propensity if heeded else 1 / len(arms) for row in kept],
        "given": heeded,
        "left_out": left_out,
        "sat_out": sum(row.arm is None and row.propensity is not None and row.propensity < 1 for row in rows) * heeded,
    }


def held_by(log: RandomLog) -> dict[str, object]:
    arrays = ("shown", "rewards", "costs", "propensities")
    plain = ("names", "given", "left_out", "sat_out")
    return {name: getattr(log, name).tolist() for name in arrays} | {name: getattr(log, name) for name in plain}


# No spaces, which CSV may lose, and no control characters.
NAMES = st.sampled_from(["a", "b", "9", "10"]) | st.text(
    st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=4
)
UNIT = st.floats(0, 1)
REWARDS = st.sampled_from([UNIT | st.none(), st.booleans() | st.none()])
CHANCES = st.sampled_from([st.floats(0.01, 1) | st.none(), st.none()])


@st.composite
def logs(draw) -> list[Row]:
    """Rows with gaps, of which at least one has an outcome."""
    reward, chance = draw(REWARDS), draw(CHANCES)
    rows = draw(st.lists(st.builds(Row, NAMES | st.none(), reward, UNIT | st.none(), chance), max_size=12))
    whole = st.builds(Row, NAMES, reward.filter(lambda value: value is not None), UNIT, chance)
    rows.insert(draw(st.integers(0, len(rows))), draw(whole))
    return rows


@settings(max_examples=40)
@given(logs(), st.sampled_from([str, lambda value: str(value).lower(), lambda value: str(value).upper()]))
def test_files_of_all_kinds_and_frames_are_the_same(rows, spelling):
    expected = expected_from(rows)

    def spelled(value: object) -> str:
        return spelling(value) if isinstance(value, bool) else str(value)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kinds = [
            columns_of(rows),
            pd.DataFrame(columns_of(rows)),
            pd.DataFrame(columns_of(rows)).convert_dtypes(),
            write_csv(folder / "log.csv", rows, spelled),
            write_csv(folder / "log.csv.gz", rows, spelled),
            write_parquet(folder / "log.parquet", rows),
        ]
        for kind in kinds:
            assert held_by(read(kind)) == expected


def test_replays_of_files_of_all_kinds_are_the_same(tmp_path):
    log = shown_at_random(300, share=(0.5, 0.25, 0.25))
    clicks = log["reward"] > 0.6
    frame = pd.DataFrame({**log, "reward": clicks})
    frame.to_csv(tmp_path / "log.csv", index=False)
    frame.to_csv(tmp_path / "log.csv.gz", index=False)
    frame.to_parquet(tmp_path / "log.parquet")
    frame.astype({"arm": "category", "reward": "boolean"}).to_parquet(tmp_path / "other.PQ")
    names = ("log.csv", "log.csv.gz", "log.parquet", "other.PQ")
    whole = {**log, "reward": clicks * 1.0}
    expected = pl.replay(whole, budget=0.5, propensity="propensity", repeats=3)
    assert expected.left_out == {}
    for kind in (whole, frame, frame.convert_dtypes(), *(tmp_path / name for name in names)):
        assert pl.replay(kind, budget=0.5, repeats=3).records() == expected.records()
    ignored = pl.replay(whole, budget=0.5, propensity=False, repeats=3)
    assert ignored.records() != expected.records()
    del whole["propensity"]
    assert pl.replay(whole, budget=0.5, repeats=3).records() == ignored.records()


def test_rewards_of_full_logs_may_be_true_or_false(tmp_path):
    clicks = np.random.default_rng(1).random((60, 2)) < (0.3, 0.6)
    frame = pd.DataFrame({"ra": clicks[:, 0], "rb": clicks[:, 1], "cost": 0.25})
    both = {"rewards": {"a": "ra", "b": "rb"}, "costs": {"a": "cost", "b": "cost"}, "budget": 0.2, "repeats": 2}
    frame.to_parquet(tmp_path / "full.parquet")
    frame.to_csv(tmp_path / "full.csv.gz", index=False)
    expected = pl.replay(frame.astype(float), **both).records()
    for kind in (frame, tmp_path / "full.parquet", tmp_path / "full.csv.gz"):
        assert pl.replay(kind, **both).records() == expected


def test_decimals_and_large_whole_numbers_keep_their_value(tmp_path):
    large = 2**60
    table = pa.table(
        {
            "arm": pa.array([large, large + 1, None]),
            "reward": pa.array([1, 0, None]),
            "cost": pa.array([Decimal("0.25"), Decimal("0.50"), None]),
        }
    )
    pq.write_table(table, tmp_path / "log.parquet")
    log = read(tmp_path / "log.parquet")
    assert log.names == (str(large), str(large + 1))  # as floats they are the same
    assert log.costs[:, 0].tolist() == [0.25, 0.5]


# The log of a live bandit.

ARMS = {"banner": (0.3, 0.2), "video": (0.6, 0.8)}  # means of reward and cost
EXPORTED = ("round", "time", "arm", "reward", "cost", "reason", "propensity", "key")


def live_log(rounds: int, seed: int, policy, budget: float = 0.5) -> list[dict[str, object]]:
    """What a bandit decided and was told, in the columns of an export. The last outcomes are not known yet."""
    bandit = pl.Bandit(list(ARMS), budget, policy, seed=seed)
    draws = np.random.default_rng([seed, 9])
    rows = []
    for t in range(rounds):
        decision = bandit.ask()
        row = dict.fromkeys(EXPORTED) | {"round": t + 1, "time": 1.7e9 + t, "reason": decision.reason}
        row |= {"arm": decision.arm, "propensity": decision.propensity}
        if decision.arm is not None and t < rounds - 3:
            reward, cost = (draws.random(2) < ARMS[decision.arm]).tolist()
            bandit.tell(decision.id, reward=float(reward), cost=float(cost))
            row |= {"reward": float(reward), "cost": float(cost)}
        rows.append(row)
    return rows


def export(rows: list[dict[str, object]], path: Path) -> Path:
    """As a CSV or a Parquet file."""
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
        return path
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_the_log_of_a_live_bandit_is_taken_as_it_is(tmp_path):
    rows = live_log(800, 3, pl.IndexPacer(epsilon=0.4))
    idle = sum(row["arm"] is None for row in rows)
    pending = sum(row["arm"] is not None and row["reward"] is None for row in rows)
    assert min(idle, pending) > 0  # rows of either kind are to be left out
    found = [pl.replay(export(rows, tmp_path / name), budget=0.5, repeats=3) for name in ("log.csv", "log.parquet")]
    for one in found:
        assert one.left_out == {"no arm": idle, "no reward": pending}
        assert one.rows == 800 - idle - pending
        reasons = f"{idle} with no arm, {pending} with no reward"
        assert one.notes[0] == f"{idle + pending} of 800 rows are left out: {reasons}"
        assert one.records() == found[0].records()
    told = [row for row in rows if row["reward"] is not None]
    by_hand = {name: [row[name] for row in told] for name in ("arm", "reward", "cost", "propensity")}
    assert pl.replay(by_hand, budget=0.5, repeats=3).records() == found[0].records()


def test_a_log_without_chance_is_noted(tmp_path):
    path = export(live_log(300, 3, "index"), tmp_path / "log.parquet")
    found = pl.replay(path, budget=0.5, repeats=2)
    assert "no propensity" not in found.left_out
    assert "column 'propensity' has no propensity: arms are taken to be drawn evenly" in "\n".join(found.notes)
    assert found.records() == pl.replay(path, budget=0.5, repeats=2, propensity=False).records()
    words = r"a log must have at least one row, got only rows that cannot be used: .* with no propensity$"
    with pytest.raises(pl.InvalidValue, match=words):
        pl.replay(path, budget=0.5, repeats=2, propensity="propensity")


def test_resources_have_columns_of_their_own():
    log = shown_at_random(200)
    cost = log.pop("cost")
    named = {**log, "cost_money": cost, "cost_calls": np.where(log["arm"] == 1, 0.0, 1.0)}
    arguments = {"budget": {"money": 0.4, "calls": 0.5}, "repeats": 2}
    columns = {"money": "cost_money", "calls": "cost_calls"}
    assert pl.replay(named, **arguments).records() == pl.replay(named, **arguments, cost=columns).records()
    named["cost_calls"][3] = math.nan
    assert pl.replay(named, **arguments).left_out == {"no cost": 1}
    del named["cost_calls"]
    with pytest.raises(
        pl.UnknownName, match=r"a log must have a column 'cost_calls', got arm, reward, propensity, cost_mo"
    ):
        pl.replay(named, **arguments)


def test_a_row_is_left_out_for_the_first_thing_that_it_lacks():
    log = {
        "arm": ["a", None, "", "b", "b", "a", math.nan],
        "reward": [1, None, 0, math.nan, 1, 0, 1],
        "cost": [0, 1, 1, None, "", 1, 1],
        "propensity": [0.5, 0.5, 1, 0.5, 0.5, None, None],
    }
    found = read(log)
    assert found.left_out == {"no arm": 3, "no reward": 1, "no cost": 1, "no propensity": 1}
    assert found.rounds == found.shown.size == 1
    assert found.sat_out == 1


def drawn_with_rounds_sat_out(rows: int, seed: int) -> dict[str, np.ndarray]:
    """In half of the rounds a or b is drawn with 0.8 and 0.2; in the others with 0.1 each, or they are sat out."""
    draws = np.random.default_rng(seed)
    often = draws.random(rows) < 0.5
    chances = np.where(often[:, None], (0.8, 0.2, 0.0), (0.1, 0.1, 0.8))
    at = (draws.random(rows)[:, None] > chances.cumsum(axis=1)).sum(axis=1)
    return {
        "arm": np.array(["a", "b", ""])[at],
        "reward": draws.random(rows),
        "cost": draws.random(rows),
        "propensity": chances[np.arange(rows), at],
    }


def test_rounds_sat_out_are_among_those_that_the_shares_are_held_against():
    log = drawn_with_rounds_sat_out(20_000, 1)
    (only,) = read(log).notes()
    assert "rows are left out" in only
    log["propensity"][log["arm"] == ""] = np.nan  # now it looks as if an arm was drawn in every round
    assert sum("is shown in" in note for note in read(log).notes()) == 2


def test_rows_without_a_choice_are_noted():
    log = shown_at_random(3000, share=(0.5, 0.3, 0.2))
    certain = np.arange(3000) < 500
    log["arm"], log["propensity"] = np.where(certain, 0, log["arm"]), np.where(certain, 1.0, log["propensity"])
    (note,) = read(log).notes()
    assert note.startswith("500 rows have the propensity 1, so no other arm could be drawn there")
    everywhere = read({**log, "propensity": np.ones(3000)}).notes()
    assert [note[:10] for note in everywhere] == ["3,000 rows"]
    assert read({**log, "arm": ["only"] * 3000, "propensity": np.ones(3000)}).notes() == ()


def adaptive_log(rows: int, seed: int) -> dict[str, list[object]]:
    """Drawn by a policy that learns, for people whom it knows: half of them like arm 0.

    To each kind of people it shows the arm with the higher mean so far, which starts with one success and one failure,
    with 0.85, and the other one with 0.15. Shown to everybody, arm 0 earns 0.5 and arm 1 earns 0.6, at the same cost.
    """
    draws = np.random.default_rng([seed, 5]).random((rows, 4))
    won, pulls = np.ones((2, 2)), np.full((2, 2), 2.0)
    log: dict[str, list[object]] = {name: [] for name in HEADING}
    for kind, luck, reward, cost in draws.tolist():
        likes = int(kind < 0.5)
        better = int(np.argmax(won[likes] / pulls[likes]))
        arm = better if luck < 0.85 else 1 - better
        is_won = reward < ((0.1, 0.6), (0.9, 0.6))[likes][arm]
        won[likes, arm] += is_won
        pulls[likes, arm] += 1
        for name, value in zip(HEADING, (arm, is_won, float(cost < 0.5), 0.85 if arm == better else 0.15), strict=True):
            log[name].append(value)
    return log


@pytest.mark.statistical
def test_a_log_of_a_policy_that_learns_gives_what_the_simulator_gives():
    drawn = [adaptive_log(2000, seed) for seed in range(40)]
    heeded = [pl.replay(log, "thompson", budget=1.0, repeats=10)["thompson", 1.0] for log in drawn]
    problem = pl.Problem.bernoulli([0.5, 0.6], [0.5, 0.5], budget=1.0)
    truth = simulated(problem, "thompson", np.mean([one.rounds for one in heeded]))
    assert agrees([one.reward.value for one in heeded], truth)
    ignored = [pl.replay(log, "thompson", budget=1.0, repeats=10, propensity=False) for log in drawn]
    assert np.mean([one["thompson", 1.0].reward.value for one in ignored]) > truth.mean() + 0.05


# What is refused.


def test_rows_keep_their_numbers_when_others_are_left_out(tmp_path):
    rows = [Row("a", 1.0, 0.5, 0.5), Row(None, None, None, 0.5), Row("b", None, None, 0.5), Row("a", 1.0, 2.0, 0.5)]
    words = r"cost in column 'cost' must be in \[0, 1\]; row 4{} has 2.0"
    for path in (write_csv(tmp_path / "log.csv", rows), write_csv(tmp_path / "log.csv.gz", rows)):
        with pytest.raises(pl.InvalidValue, match=rf"^{path}: " + words.format(r" \(line 5\)")):
            pl.replay(path, budget=0.5)
    path = write_parquet(tmp_path / "log.parquet", rows)
    with pytest.raises(pl.InvalidValue, match=rf"^{path}: " + words.format("")):
        pl.replay(path, budget=0.5)
    bad = [Row("a", 1.0, 0.5, 0.5), Row(None, None, None, 1.5)]
    with pytest.raises(pl.InvalidValue, match=r"propensity in column 'propensity' must be in \(0, 1\]; row 2 has 1.5"):
        pl.replay(columns_of(bad), budget=0.5)


def test_a_log_of_rounds_sat_out_is_refused():
    words = r"^a log must have at least one row, got only rows that cannot be used: 2 with no arm$"
    with pytest.raises(pl.InvalidValue, match=words):
        pl.replay(columns_of([Row(None, None, None, 1.0)] * 2), budget=0.5)


@pytest.mark.parametrize(
    ("name", "damage", "words"),
    [
        ("log.csv.gz", lambda content: content[:-9], "must be a gzip file, but: Compressed file ended before"),
        ("log.csv.gz", lambda content: content + b"x", "must be a gzip file, but: Not a gzipped file"),
        ("log.csv.gz", lambda _: b"arm,reward,cost\n", "must be a gzip file, but: Not a gzipped file"),
        ("log.csv.gz", lambda _: gzip.compress(b"arm")[:10] + b"\xff" * 20, "must be a gzip file, but: "),
        ("log.csv.gz", lambda _: gzip.compress(b"arm\n\xff"), "must be UTF-8 text, but byte 4 is not"),
        ("log.parquet", lambda content: content[:-9], "must be a Parquet file; it is damaged or of another kind"),
        ("log.parquet", lambda content: b"PAR1" + b"\xff" * 60 + content[64:], "must be a Parquet file; it is damaged"),
        ("log.parquet", lambda _: b"arm,reward,cost\n", "must be a Parquet file; it is damaged or of another kind"),
        ("log.parquet", lambda _: b"", "must be a Parquet file; it is damaged or of another kind"),
        ("log.parquet", None, "must be a readable file, but: No such file or directory"),
        ("log.csv.gz", None, "must be a readable file, but: No such file or directory"),
    ],
)
def test_files_that_cannot_be_read(name, damage, words, tmp_path):
    path = tmp_path / name
    rows = [Row(arm, 1.0, 0.5, 0.5) for arm in "ab" * 50]
    (write_parquet if path.suffix == ".parquet" else write_csv)(path, rows)
    pl.replay(path, budget=0.5, repeats=2)
    content = path.read_bytes()
    path.unlink()
    if damage is not None:
        path.write_bytes(damage(content))
    with pytest.raises(pl.UnreadableFile) as error:
        pl.replay(path, budget=0.5, repeats=2)
    assert str(error.value).startswith(f"{path} {words}")
    assert "\n" not in str(error.value)


def test_two_columns_of_one_name_in_a_parquet_file(tmp_path):
    table = pa.Table.from_arrays([pa.array(["a"]), pa.array([1]), pa.array([1])], names=["arm", "cost", "cost"])
    pq.write_table(table, tmp_path / "log.parquet")
    with pytest.raises(pl.UnreadableFile, match=r"log.parquet: names of columns must differ, got 'cost' twice"):
        pl.replay(tmp_path / "log.parquet", budget=0.5)


@pytest.mark.slow
def test_only_parquet_needs_pyarrow(tmp_path):
    rows = [Row(arm, True, 0.5, 0.5) for arm in "ab" * 50]
    loaded = []
    for path in (write_csv(tmp_path / "log.csv.gz", rows), write_parquet(tmp_path / "log.parquet", rows)):
        run = f"pl.replay({str(path)!r}, budget=1, repeats=2)"
        code = f"import sys, paceline as pl; {run}; print('pyarrow' in sys.modules)"
        done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
        loaded.append(done.stdout.strip())
    assert loaded == ["False", "True"]

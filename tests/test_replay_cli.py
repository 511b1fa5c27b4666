"""``paceline replay``, as a user meets it."""

import csv
import os
import subprocess
import sysconfig
from pathlib import Path

import numpy as np
import pytest

import paceline as pl

pytestmark = pytest.mark.slow

SCRIPT = Path(sysconfig.get_path("scripts")) / "paceline"
FULL = ("--rewards", "a=ra,b=rb", "--costs", "a=ca,b=cb")


def call(*arguments: object, **keywords: object) -> subprocess.CompletedProcess[str]:
    """Run ``paceline replay`` to its end."""
    settings = {"capture_output": True, "text": True, "timeout": 120, "env": os.environ | {"COLUMNS": "80"}, **keywords}
    return subprocess.run([str(SCRIPT), "replay", *map(str, arguments)], check=False, **settings)


@pytest.fixture(scope="module")
def logs(tmp_path_factory) -> Path:
    """A folder with a randomised log, in which arm a was shown too often, and a full one; both know two resources."""
    folder = tmp_path_factory.mktemp("logs")
    generator = np.random.default_rng(4)
    with (folder / "log.csv").open("w", encoding="utf-8", newline="") as file:
        write = csv.writer(file).writerow
        write(["which", "won", "paid", "p", "n"])
        for number in generator.random(400).tolist():
            arm, chance = ("a", 0.75) if number < 0.75 else ("b", 0.25)
            won, paid = round(10 * generator.random(), 3), round(4 * generator.random(), 3)
            write([arm, won, paid, chance, int(paid > 2)])
    with (folder / "full.csv").open("w", encoding="utf-8", newline="") as file:
        write = csv.writer(file).writerow
        write(["ra", "rb", "ca", "cb", "na", "nb"])
        for row in generator.random((200, 6)).round(3).tolist():
            write(row)
    return folder


COLUMNS = ("--arm", "which", "--reward", "won", "--cost", "paid", "--max-cost", 4, "--max-reward", 10)


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_replays_a_random_log(logs, tmp_path):
    out = tmp_path / "new" / "out"
    options = ("--budget", "0.5,1.5", "--policies", "thompson,suak:order=fewest", "--repeats", 5, "--seed", 3)
    done = call(logs / "log.csv", *COLUMNS, "--propensity", "p", *options, "--out", out)
    assert (done.returncode, done.stderr) == (0, "")
    assert {path.name for path in out.iterdir()} == {"replay.csv", "replay.png"}
    assert (out / "replay.png").read_bytes().startswith(b"\x89PNG")
    expected = pl.replay(
        logs / "log.csv",
        {"thompson": "thompson", "suak:order=fewest": pl.SUAK(order="fewest")},
        budget=[0.5, 1.5],
        arm="which",
        reward="won",
        cost="paid",
        propensity="p",
        max_cost=4,
        max_reward=10,
        repeats=5,
        seed=3,
    )
    written = read(out / "replay.csv")
    assert written == [{name: str(value) for name, value in record.items()} for record in expected.records()]
    assert f"400 rows, 5 resamples, seed 3\n\n{expected.arm_table()}\n\n{expected.table()}\n" in done.stdout
    assert "note:" not in done.stdout
    assert f"Written to {out}: replay.csv, replay.png" in done.stdout


def test_shares_that_do_not_fit_are_noted(logs, tmp_path):
    done = call(logs / "log.csv", *COLUMNS, "--budget", 1, "--repeats", 2, "--out", tmp_path)
    assert done.returncode == 0
    assert "\nnote: arm 'a' is shown in 7" in done.stdout


def test_a_column_called_propensity_is_heeded_unless_told_otherwise(logs, tmp_path):
    rows = read(logs / "log.csv")
    with (tmp_path / "named.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["which", "won", "paid", "propensity"], extrasaction="ignore")
        writer.writeheader()
        writer.writerows({**row, "propensity": row["p"]} for row in rows)
        writer.writerow({"propensity": 0.5})  # sat out
    options = (*COLUMNS, "--budget", 1, "--repeats", 2, "--out", tmp_path / "out")
    heeded, ignored = (call(tmp_path / "named.csv", *options, *more) for more in ((), ("--no-propensity",)))
    assert heeded.returncode == ignored.returncode == 0
    left_out = "\nnote: 1 of 401 rows are left out: 1 with no arm\n"
    assert left_out in heeded.stdout
    assert left_out in ignored.stdout
    assert "is shown in" not in heeded.stdout
    assert "\nnote: arm 'a' is shown in 7" in ignored.stdout
    assert heeded.stdout.startswith("400 rows, ")


def test_replays_a_full_log(logs, tmp_path):
    done = call(logs / "full.csv", *FULL, "--max-cost", "a=1,b=1", "--budget", 0.3, "--repeats", 5, "--out", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    (record,) = read(tmp_path / "replay.csv")
    columns = {"rewards": {"a": "ra", "b": "rb"}, "costs": {"a": "ca", "b": "cb"}}
    found = pl.replay(logs / "full.csv", budget=0.3, repeats=5, **columns)["index", 0.3]
    assert float(record["rounds"]) == 200
    assert float(record["reward"]) == found.reward.value


def test_replays_with_several_resources(logs, tmp_path):
    columns = ("--arm", "which", "--reward", "won", "--max-reward", 10, "--cost", "money=paid", "--cost", "calls=n")
    budgets = ("--budget", "money=0.5,1.5", "--budget", "calls=0.3")
    options = ("--max-cost", "money:a=4,b=4", "--max-cost", "calls=1", "--propensity", "p", "--repeats", 3)
    done = call(logs / "log.csv", *columns, *budgets, *options, "--policies", "thompson,uniform", "--out", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert [path.name for path in tmp_path.iterdir()] == ["replay.csv"]
    expected = pl.replay(
        logs / "log.csv",
        ["thompson", "uniform"],
        budget=[{"money": rate, "calls": 0.3} for rate in (0.5, 1.5)],
        arm="which",
        reward="won",
        cost={"money": "paid", "calls": "n"},
        propensity="p",
        max_cost={"money": 4, "calls": 1},
        max_reward=10,
        repeats=3,
    )
    written = read(tmp_path / "replay.csv")
    assert written == [{name: str(value) for name, value in record.items()} for record in expected.records()]
    assert f"400 rows, 3 resamples, seed 0\n\n{expected.arm_table()}\n\n{expected.table()}\n" in done.stdout
    assert f"Written to {tmp_path}: replay.csv\n" in done.stdout


def test_replays_a_full_log_with_several_resources(logs, tmp_path):
    costs = ("--costs", "money:a=ca,b=cb", "--costs", "calls:a=na,b=nb")
    options = ("--rewards", "a=ra,b=rb", *costs, "--budget", "money=0.3,0.4,calls=0.5,0.6", "--repeats", 3)
    done = call(logs / "full.csv", *options, "--out", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    records = read(tmp_path / "replay.csv")
    budgets = [(float(record["budget_money"]), float(record["budget_calls"])) for record in records]
    assert budgets == [(0.3, 0.5), (0.3, 0.6), (0.4, 0.5), (0.4, 0.6)]
    columns = {"money": {"a": "ca", "b": "cb"}, "calls": {"a": "na", "b": "nb"}}
    budget = {"money": 0.4, "calls": 0.5}
    found = pl.replay(logs / "full.csv", budget=budget, repeats=3, rewards={"a": "ra", "b": "rb"}, costs=columns)
    assert float(records[2]["reward"]) == found["index", budget].reward.value


def test_one_resource_with_a_name_is_drawn(logs, tmp_path):
    options = ("--arm", "which", "--reward", "won", "--cost", "money=paid", "--max-cost", "money=4", "--max-reward", 10)
    done = call(logs / "log.csv", *options, "--budget", "money=1.5,2", "--repeats", 2, "--out", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert {path.name for path in tmp_path.iterdir()} == {"replay.csv", "replay.png"}
    assert [record["budget_money"] for record in read(tmp_path / "replay.csv")] == ["1.5", "2.0"]


def test_of_an_option_given_twice_the_last_one_counts(logs, tmp_path):
    twice = ("--cost", "x", "--max-cost", 1, *COLUMNS, "--budget", 3, "--budget", 1, "--repeats", 2)
    done = call(logs / "log.csv", *twice, "--out", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert [record["budget"] for record in read(tmp_path / "replay.csv")] == ["1.0"]


def test_help_lists_the_options():
    shown = call("--help").stdout
    columns = ("--arm", "--reward", "--cost", "--propensity", "--rewards", "--costs")
    for option in ("LOG", "--budget", "--policies", *columns, "--max-cost", "--max-reward", "--repeats", "--out"):
        assert option in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none.csv", "--budget", 1], "none.csv must be a readable file, but: No such file"),
        (["bad.csv", "--budget", 1], "bad.csv: reward in column 'reward' must be in [0, 1]; row 2 (line 3) has 1.5"),
        (
            ["bad.csv", "--budget", 1, "--cost", "price"],
            "bad.csv: a log must have a column 'price', got arm, reward, cost",
        ),
        (["bad.csv", "--budget", "1,x"], "budget must be a number, got 'x'"),
        (["bad.csv", "--budget", "0"], "budget must be a finite number above 0, got 0.0"),
        (["bad.csv", "--budget", 1, "--policies", "sauk"], "policy must be one of"),
        (
            ["bad.csv", "--budget", 1, "--max-cost", "a=1,b"],
            "--max-cost must be given as in arm=value,arm=value, got 'b'",
        ),
        (["bad.csv", "--budget", 1, "--max-cost", "much"], "max_cost must be a number, got 'much'"),
        (["bad.csv", "--budget", 1, "--rewards", "a=x,a=y"], "--rewards must name an arm once, got 'a' twice"),
        (["bad.csv", "--budget", 1, "--rewards", "a=reward"], "costs must be a mapping of arms to columns"),
        (
            ["bad.csv", "--budget", "money=1", "--budget", "calls=1", "--cost", "money=reward"],
            "budget must be given for the resources money, got one for 'calls'",
        ),
        (
            ["bad.csv", "--budget", "money=1", "--cost", "money=reward", "--cost", "calls=cost"],
            "budget must have an entry for every resource, got none for 'calls'",
        ),
        (["bad.csv", "--budget", "money=1"], "bad.csv: a log must have a column 'cost_money', got arm, reward, cost"),
        (["bad.csv", "--budget", "money=1", "--cost", "money=usd"], "bad.csv: a log must have a column 'usd', got arm"),
        (
            ["bad.csv", "--budget", "money=1", "--cost", "usd"],
            "--cost must be given as in resource=value,resource=value",
        ),
        (["bad.csv", "--budget", "money=x", "--cost", "money=cost"], "budget of 'money' must be a number, got 'x'"),
        (
            ["bad.csv", "--budget", "money=-1", "--cost", "money=cost"],
            "budget of 'money' must be a finite number above 0, got -1.0",
        ),
        (["bad.csv", "--budget", "money=1", "--budget", "2"], "--budget must be given as in resource=value"),
        (["bad.csv", "--budget", "money=1,money=2"], "--budget must name a resource once, got 'money' twice"),
        (
            ["bad.csv", "--budget", "money=1", "--costs", "a=cost,b=cost"],
            "--costs must be given as in resource:arm=value,arm=value, got 'a=cost,b=cost'",
        ),
        (
            ["bad.csv", "--budget", "money=1", "--cost", "money=cost", "--max-cost", "money:a=1,b"],
            "--max-cost must be given as in arm=value,arm=value, got 'b'",
        ),
        (
            [
                "bad.csv",
                "--budget",
                "money=1",
                "--cost",
                "money=cost",
                "--max-cost",
                "money=1",
                "--max-cost",
                "money=2",
            ],
            "--max-cost must name a resource once, got 'money' twice",
        ),
        (
            ["bad.csv", "--budget", "x=1,y=1", "--cost", "x=cost,y=cost", "--policies", "suak"],
            "suak works with one resource only, got 2",
        ),
        (["bad.csv", "--budget", 1, "--repeats", 1], "repeats must be a whole number of at least 2, got 1"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, list) else "",
)
def test_wrong_input_is_one_line_and_nothing_is_written(arguments, words, tmp_path):
    (tmp_path / "bad.csv").write_text("arm,reward,cost\na,1,1\nb,1.5,1\n", encoding="utf-8")
    done = call(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("paceline: error: ")
    assert words in line
    assert [path.name for path in tmp_path.iterdir()] == ["bad.csv"]


def test_a_budget_is_needed(tmp_path):
    done = call("log.csv", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("usage: paceline replay")
    assert "--budget" in done.stderr.splitlines()[-1]

"""``paceline log``: reading, checking, repairing and exporting the journal of a bandit."""

import csv
import json
import random
import subprocess
import sys
from pathlib import Path
from zlib import crc32

import pyarrow.parquet as pq
import pytest
from command import call
from journals import begin_journal

import paceline as pl
from paceline.cli import main
from paceline.live import export, snapshot
from paceline.live.events import KINDS, Pace
from paceline.live.log import DESCRIPTIONS, WORDS
from paceline.live.rounds import Rounds
from paceline.live.segments import closed_segments

STEP = 0.5  # seconds from event to event


def ticking(start=1_000_000.0):
    """A clock that goes on with every look."""
    times = [start]

    def now():
        times[0] += STEP
        return times[0]

    return now


def play(bandit, rounds, seed=0):
    """Rounds that are told at once."""
    draw = random.Random(seed)
    for _ in range(rounds):
        decision = bandit.ask()
        if decision.arm is not None:
            bandit.tell(decision.id, draw.random(), 0.2 * draw.random())


@pytest.fixture
def journal(tmp_path):
    path = tmp_path / "journal"
    with begin_journal(path, clock=ticking(), snapshot_every=None) as bandit:
        play(bandit, 20)
    return path


def log(capsys, *arguments):
    """The exit code of a call, and what was printed."""
    code = main(["log", *map(str, arguments)])
    printed = capsys.readouterr()
    return code, printed.out + printed.err


def damage(path, number):
    """Change a byte in the middle of a line."""
    lines = path.read_bytes().splitlines(keepends=True)
    line = bytearray(lines[number - 1])
    line[len(line) // 2] ^= 1
    path.write_bytes(b"".join([*lines[: number - 1], bytes(line), *lines[number:]]))
    return b"".join([bytes(line), *lines[number:]])


def add_line(path, text):
    """A line with a right checksum."""
    before = int(path.read_bytes().splitlines()[-1][:8], 16)
    with path.open("ab") as file:
        file.write(b"%08x %b\n" % (crc32(text, before), text))


# Reading.


def test_json_is_what_events_gives(journal, capsys):
    code, printed = log(capsys, journal, "--json")
    with pl.Bandit.open(journal) as bandit:
        expected = list(bandit.events())
    assert code == 0
    assert [json.loads(line) for line in printed.splitlines()] == expected


def test_every_event_is_a_line(journal, capsys):
    _, as_json = log(capsys, journal, "--json")
    _, in_words = log(capsys, journal)
    entries = [json.loads(line) for line in as_json.splitlines()]
    for entry, line in zip(entries, in_words.splitlines(), strict=True):
        number, time, kind, id, what = line.split(maxsplit=4)
        assert (int(number), kind, int(id.rstrip(":"))) == (entry["line"], entry["event"], entry["id"])
        assert time.startswith("1970-01-12T13:")
        assert what.startswith(entry["arm"] or "sits out")
        if kind == "tell":
            assert f"reward {entry['reward']:.10g}, cost {entry['cost']:.10g}" in what


def test_every_kind_of_event_has_words(tmp_path, capsys):
    """Also what only a fleet writes: there is a pace, and then none."""
    with begin_journal(tmp_path / "journal", clock=ticking()) as bandit:
        bandit._book(Pace((0.25,), 1_000_000))
        bandit._book(Pace((None,), 1_001_000))
    _, printed = log(capsys, tmp_path / "journal")
    assert [line.split(maxsplit=3)[2:] for line in printed.splitlines()] == [
        ["pace", "0.25 a round"],
        ["pace", "by the line"],
    ]
    assert WORDS.keys() == KINDS.keys()
    assert DESCRIPTIONS.keys() == set(KINDS.values())


def test_tail_and_times_choose_lines(journal, capsys):
    _, everything = log(capsys, journal)
    lines = everything.splitlines()
    assert log(capsys, journal, "--tail", 3)[1].splitlines() == lines[-3:]
    moments = [line.split()[1] for line in lines]
    assert log(capsys, journal, "--since", moments[5], "--until", moments[9])[1].splitlines() == lines[5:9]
    assert log(capsys, journal, "--since", moments[5].replace("T13", "T14").replace("Z", "+01:00"))[1] == "".join(
        f"{line}\n" for line in lines[5:]
    )
    assert log(capsys, journal, "--until", "1970-01-12", "--tail", 5) == (0, "")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--tail", "0"], "--tail must be a whole number"),
        (["--since", "yesterday"], "--since must be a time such as"),
        (["--verify", "--since", "2026-01-01"], "--since must not be given with --verify"),
        (["--repair", "--until", "2026-01-01"], "--until must not be given with --repair"),
        (["--csv", "x.csv", "--tail", "3"], "--tail must not be given with a table"),
    ],
)
def test_wrong_options_are_one_line(options, words, journal, capsys):
    code, printed = log(capsys, journal, *options)
    assert (code, printed.count("\n")) == (2, 1)
    assert words in printed


def test_damage_comes_after_the_events_before_it(journal, capsys):
    _, everything = log(capsys, journal)
    damage(journal, 8)
    code, printed = log(capsys, journal)
    assert code == 2
    *shown, problem = printed.splitlines()
    assert shown == everything.splitlines()[:6]
    assert problem == f"paceline: error: journal {journal} is damaged in line 8; the 7 lines before it are whole"


def test_the_journal_of_a_running_bandit_can_be_read_and_checked(tmp_path, capsys):
    path = tmp_path / "journal"
    with begin_journal(path, rotate_every=15, closed="gzip") as bandit:
        play(bandit, 40)
        _, printed = log(capsys, path, "--json")
        assert len(printed.splitlines()) == len(list(bandit.events()))
        code, report = log(capsys, path, "--verify")
        assert (code, bandit.rounds) == (0, 40), report
        assert log(capsys, path, "--csv", tmp_path / "rounds.csv")[0] == 0
        bandit.ask()


# Checking.


def test_verify_says_what_is_there(tmp_path, capsys):
    path = tmp_path / "journal"
    with begin_journal(path, clock=ticking(), rotate_every=15, closed="gzip", policy="thompson") as bandit:
        for seed in range(6):
            play(bandit, 10, seed)
            bandit.snapshot()
        bandit.credit(2.0)
        bandit.ask()
        status = bandit.status()
    code, report = log(capsys, path, "--verify")
    assert code == 0, report
    segments, found = len(closed_segments(path)) + 1, dict(line.split(maxsplit=1) for line in report.splitlines()[1:])
    assert report.startswith(f"{path}: whole\n")
    assert found["segments"].startswith(f"1 to {segments}, ")
    assert found["format"] == f"3, written by paceline {pl.__version__}"
    assert found["policy"] == "thompson; 3 arms, 61 rounds"
    assert found["time"].startswith("1970-01-12T13:46:41")
    assert "61 ask" in found["events"]
    assert found["books"] == (
        f"credited {status.credited:.10g}; spent {status.spent:.10g}; reserved {status.reserved:.10g}; "
        f"headroom {status.headroom:.10g}"
    )
    assert report.count("agrees with the journal") == 2
    assert "not checked" not in report


@pytest.mark.parametrize("number", [2, 7, 20])
def test_verify_names_the_damaged_line(number, journal, capsys):
    damage(journal, number)
    code, report = log(capsys, journal, "--verify")
    assert code == 1
    assert "NOT WHOLE" in report
    assert f"is damaged in line {number};" in report


CANNOT_BE = [
    *(b'["tell",999,0.5,[0.1],5]', b'["cancel",1000,5]', b'["status",77,"paused",5]', b'["credit",[1],5]'),
    *(b'["credit",["x"],0,true,5]', b'["add","d",[],5]'),
]


def test_amounts_that_are_no_numbers_are_shown_as_they_are(journal, capsys):
    """Reading checks the lines, not what they say."""
    add_line(journal, b'["credit",["x"],0,true,5]')
    code, printed = log(capsys, journal, "--tail", 1)
    assert code == 0
    assert '"amount": "x"' in printed


def test_verify_reports_on_settings_that_are_none(tmp_path, capsys):
    """The first line is whole, but has no policy."""
    begin_journal(tmp_path / "whole").close()
    title, version, settings, about = json.loads((tmp_path / "whole").read_bytes()[9:])
    del settings["policy"]
    text = json.dumps([title, version, settings, about]).encode()
    (tmp_path / "journal").write_bytes(b"%08x %b\n" % (crc32(text), text))
    code, report = log(capsys, tmp_path / "journal", "--verify")
    assert code == 1
    assert "policy" in report.rpartition("damage")[2]


@pytest.mark.parametrize("text", CANNOT_BE)
def test_verify_finds_whole_lines_that_cannot_be(text, journal, capsys):
    number = len(journal.read_bytes().splitlines()) + 1
    add_line(journal, text)
    code, report = log(capsys, journal, "--verify")
    assert code == 1
    assert f"does not make sense in line {number}" in report


def test_verify_says_that_a_line_is_torn(journal, capsys):
    journal.write_bytes(journal.read_bytes()[:-5])
    code, report = log(capsys, journal, "--verify")
    assert code == 0
    assert "are not a whole line" in report


def with_snapshot(path, change):
    """A journal whose snapshot was changed, but for the checksum of the file."""
    with begin_journal(path, clock=ticking(), snapshot_every=None) as bandit:
        play(bandit, 20)
        bandit.snapshot()
        play(bandit, 5)
    file = path.with_name("journal.snapshot")
    body = snapshot.read_file(file)
    change(body)
    file.unlink()
    snapshot.write_file(file, body)


def nothing(body):
    pass


def spend_less(body):
    body["amounts"]["spent"][0] -= 1


def move_on(body):
    body["journal"][1] += 1


def jump_ahead(body):
    body["journal"][3] += 1000


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (nothing, 0, "agrees with the journal"),
        (spend_less, 1, "says other than the journal"),
        (move_on, 1, "does not belong to the journal"),
        (jump_ahead, 1, "is ahead of the journal"),
    ],
)
def test_verify_compares_snapshots(change, code, words, tmp_path, capsys):
    with_snapshot(tmp_path / "journal", change)
    found, report = log(capsys, tmp_path / "journal", "--verify")
    assert (found, words in report) == (code, True), report


def test_verify_finds_a_damaged_snapshot(tmp_path, capsys):
    with_snapshot(tmp_path / "journal", nothing)
    file = tmp_path / "journal.snapshot"
    file.write_bytes(file.read_bytes().replace(b'"sha256":"', b'"sha256":"0'))
    code, report = log(capsys, tmp_path / "journal", "--verify")
    assert (code, "cannot be read" in report) == (1, True), report


def test_verify_goes_on_from_a_snapshot_where_segments_were_dropped(tmp_path, capsys):
    path = tmp_path / "journal"
    with begin_journal(path, rotate_every=15, closed="drop") as bandit:
        for seed in range(6):
            play(bandit, 10, seed)
            bandit.snapshot()
        status = bandit.status()
    assert 1 not in closed_segments(path)
    code, report = log(capsys, path, "--verify")
    assert code == 0, report
    assert "stands for what was dropped" in report
    assert f"spent {status.spent:.10g}" in report


POLICY = """
import paceline as pl

class Last(pl.PythonPolicy):
    name = "last"
    def reset(self, setting):
        self.count = setting.arms
    def choose(self, state):
        return self.count - 1
    def learn(self, state, arm, reward, cost):
        pass
"""


def test_verify_says_what_it_cannot_check_without_the_policy(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(POLICY, encoding="utf-8")
    with begin_journal("journal", policy="mine.py:Last") as bandit:
        play(bandit, 10)
    code, report = log(capsys, "journal", "--verify")
    assert (code, "not checked policy 'last' is not one of paceline's" in report, "books" in report) == (0, True, False)
    code, report = log(capsys, "journal", "--verify", "--policy", "mine.py:Last")
    assert (code, "not checked" in report, "books" in report) == (0, False, True), report


# Repairing.


def test_repair_cuts_at_the_bad_line_and_says_what_is_lost(tmp_path, capsys):
    path = tmp_path / "journal"
    with begin_journal(path, budget=1.0, policy="uniform", max_cost=1.0, snapshot_every=None) as bandit:
        first = bandit.ask()
        second = bandit.ask()
        bandit.tell(first.id, 0.5, 0.25)  # line 4
        bandit.tell(second.id, 0.5, 0.25)  # line 5, which is damaged
        third = bandit.ask()
        bandit.tell(third.id, 0.5, 0.125)
        bandit.tell(bandit.ask().id, 0.5, 0.5)
        bandit.credit(1.0)
    whole = path.read_bytes()
    gone = damage(path, 5)
    code, report = log(capsys, path, "--repair")
    assert code == 0, report
    assert (tmp_path / "journal.cut").read_bytes() == gone
    assert path.read_bytes() == b"".join(whole.splitlines(keepends=True)[:4])
    for words in (
        "cut before line 5",
        "the 6 lines that were cut off are in journal.cut",
        "lost       2 ask, 2 tell, 1 credit; 1 lines cannot be read",
        "rounds 3 to 4 are unknown now",
        "decisions 3, 4 have spent (0.625 by the lines",
        "must be done again: credit",
    ):
        assert words in report
    with pl.Bandit.open(path) as bandit:
        assert (bandit.rounds, bandit.pending, bandit.spent, bandit.reserved) == (2, {2: second.arm}, 0.25, 1.0)


def test_repair_says_which_decisions_are_open_again(tmp_path, capsys):
    path = tmp_path / "journal"
    with begin_journal(path, budget=1.0, policy="uniform", max_cost=1.0, worker="w") as bandit:
        ids = [bandit.ask().id for _ in range(4)]
        bandit.add("d")
        bandit.tell(ids[0], 0.5, 0.25)
        bandit.cancel(ids[1])
        bandit.expire(ids[3])
    damage(path, 6)
    _, report = log(capsys, path, "--repair")
    assert "decisions w-1, w-2, w-4 are open again" in report
    assert "stay reserved until they are told again" in report
    with pl.Bandit.open(path) as bandit:
        assert set(bandit.pending) == set(ids)
        assert bandit.reserved == 4.0


def test_a_second_repair_keeps_what_the_first_has_cut_off(journal, capsys):
    first = damage(journal, 20)
    assert log(capsys, journal, "--repair")[0] == 0
    second = damage(journal, 10)
    assert log(capsys, journal, "--repair")[0] == 0
    assert journal.with_name("journal.cut").read_bytes() == first
    assert journal.with_name("journal.cut.2").read_bytes() == second
    assert log(capsys, journal, "--verify")[0] == 0
    pl.Bandit.open(journal).close()


def test_repair_leaves_a_whole_journal_alone(journal, capsys):
    before = journal.read_bytes()
    assert log(capsys, journal, "--repair") == (0, f"{journal}: nothing to repair\n")
    journal.write_bytes(before[:-3])
    code, report = log(capsys, journal, "--repair")
    assert (code, "nothing to repair; Bandit.open drops the" in report) == (0, True)
    assert journal.read_bytes() == before[:-3]
    assert not journal.with_name("journal.cut").exists()


def test_repair_refuses_a_journal_that_is_open(tmp_path, capsys):
    path = tmp_path / "journal"
    with begin_journal(path) as bandit:
        play(bandit, 10)
        damage(path, 5)
        before = path.read_bytes()
        code, report = log(capsys, path, "--repair")
    assert code == 2
    assert "must not be open elsewhere" in report
    assert path.read_bytes() == before


@pytest.mark.parametrize("number", [2, 8])
def test_repair_refuses_to_lose_the_middle(number, tmp_path, capsys):
    path = tmp_path / "journal"
    with begin_journal(path, rotate_every=10, snapshot_every=None) as bandit:
        play(bandit, 30)
        bandit._keeper.finish()
    for stale in tmp_path.glob("*.snapshot*"):
        stale.unlink()
    closed = closed_segments(path)[2]
    damage(closed, number)
    files = {file: file.read_bytes() for file in tmp_path.iterdir()}
    code, report = log(capsys, path, "--repair")
    assert code == 2
    assert "journal.000002" in report
    assert "Nothing was cut" in report
    assert {file: file.read_bytes() for file in tmp_path.iterdir() if file.suffix != ".owner"}.items() <= files.items()


def test_repair_cuts_nothing_where_a_snapshot_stands_for_the_damage(tmp_path, capsys):
    path = tmp_path / "journal"
    with begin_journal(path, snapshot_every=None) as bandit:
        play(bandit, 10)
        bandit.snapshot()
        play(bandit, 10)
        status = bandit.status()
    lines = len(path.read_bytes().splitlines())
    damage(path, 5)
    code, report = log(capsys, path, "--repair")
    assert (code, "nothing to cut" in report) == (0, True)
    with pl.Bandit.open(path) as bandit:
        assert (bandit.rounds, bandit.spent) == (20, status.spent)
    damage(path, lines)
    with pytest.raises(pl.UnreadableFile):
        pl.Bandit.open(path)
    code, report = log(capsys, path, "--repair")
    assert (code, f"cut before line {lines}" in report) == (0, True), report
    with pl.Bandit.open(path) as bandit:
        assert bandit.rounds >= 19


def test_repair_moves_away_a_snapshot_of_lines_that_are_gone(tmp_path, capsys):
    path = tmp_path / "journal"
    with begin_journal(path, snapshot_every=None) as bandit:
        play(bandit, 10)
        bandit.snapshot()
    lines = len(path.read_bytes().splitlines())
    damage(path, 5)
    damage(path, lines)  # the line that the snapshot was noted after
    damaged = bytearray(path.read_bytes())
    at = damaged.rfind(b"\n", 0, -1) + 1
    damaged[at] ^= 1  # in its checksum
    path.write_bytes(bytes(damaged))
    assert log(capsys, path, "--repair")[0] == 0
    assert not (tmp_path / "journal.snapshot").exists()
    assert (tmp_path / "journal.snapshot.cut").exists()
    with pl.Bandit.open(path) as bandit:
        assert bandit.recovered is None


# Exporting.


def story(bandit, seed, rounds=150):
    """A random story; gives for each round what is known of it at the end, as it was called."""
    draw, named = random.Random(seed), isinstance(bandit.spent, dict)
    names = list(bandit.spent) if named else ["cost"]
    rows, costs = {}, {}

    def tell(id, reward, given):
        bandit.tell(id, reward, {name: given[name] for name in given} if named else given.get("cost"))
        rows[id]["reward"] = reward if rows[id]["reward"] is None else rows[id]["reward"]
        rows[id]["costs"] |= given

    open_ids = []
    for number in range(rounds):
        key = f"k, {number}" if draw.random() < 0.3 else None
        decision = bandit.ask(key=key)
        rows[decision.id] = {"arm": decision.arm, "reward": None, "costs": {}, "key": key}
        rows[decision.id] |= {"propensity": decision.propensity, "reason": decision.situation}
        if decision.arm is None:
            continue
        open_ids.append(decision.id)
        costs[decision.id] = {name: 0.3 * draw.random() for name in names}
        while open_ids and draw.random() < 0.55:
            id = open_ids.pop(draw.randrange(len(open_ids)))
            what = draw.randrange(6)
            if what < 3:
                tell(id, draw.random(), costs[id])
            elif what == 3:
                bandit.cancel(id)
            elif what == 4:
                tell(id, None, costs[id])
                bandit.expire(id)
                rows[id]["reward"] = 0.0  # silence
            else:
                bandit.expire(id)
                if draw.random() < 0.5:
                    tell(id, 0.25, costs[id])
    return rows


def read_csv(path):
    with path.open(encoding="utf-8", newline="") as file:
        return [{name: value or None for name, value in row.items()} for row in csv.DictReader(file)]


@pytest.mark.parametrize(
    "budget", [0.6, {"money": 0.6, "calls": 1.0}, {"money": 0.6}], ids=["one", "two", "one with a name"]
)
@pytest.mark.parametrize("waiting", [100_000, 3])
def test_a_table_has_a_row_for_each_round(budget, waiting, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(export, "MOST_WAITING", waiting)
    monkeypatch.setattr(export, "AT_ONCE", 40)
    path, policy = tmp_path / "journal", pl.IndexPacer(epsilon=0.3)
    kept = {"rotate_every": 40, "clock": ticking(), "remember": 1000}
    with begin_journal(path, policy=policy, budget=budget, max_cost=1.0, silence=0.0, **kept) as bandit:
        expected = story(bandit, 7)
        entries = list(bandit.events())
    code, said = log(capsys, path, "--csv", tmp_path / "rounds.csv")
    assert (code, said) == (0, f"Written to {tmp_path / 'rounds.csv'}: 150 rounds\n")
    assert log(capsys, path, "--parquet", tmp_path / "rounds.parquet")[0] == 0
    rows = read_csv(tmp_path / "rounds.csv")
    columns = {"cost": "cost"} if not isinstance(budget, dict) else {name: f"cost_{name}" for name in budget}
    assert list(rows[0]) == [
        *("round", "time", "arm", "reward", *columns.values(), "reason", "propensity", "key", "told_time"),
    ]
    numbers = [int(row["round"]) for row in rows]
    assert sorted(numbers) == list(range(1, 151))
    assert (numbers == sorted(numbers)) == (waiting > 3)
    asked = {one["id"]: one["time"] for one in entries if one["event"] == "ask"}
    told = {one["id"]: one["time"] for one in entries if one["event"] == "tell"}
    for row in rows:
        right = expected[int(row["round"])]
        assert (row["arm"], row["key"], row["reason"]) == (right["arm"], right["key"], right["reason"])
        assert float(row["propensity"]) == right["propensity"]
        assert float(row["time"]) == asked[int(row["round"])]
        assert (row["reward"] and float(row["reward"])) == right["reward"]
        for name, column in columns.items():
            assert (row[column] and float(row[column])) == right["costs"].get(name)
        if right["reward"]:
            assert float(row["told_time"]) == told[int(row["round"])]
    table = pq.read_table(tmp_path / "rounds.parquet")
    assert table.num_rows == 150
    for row, same in zip(rows, table.to_pylist(), strict=True):
        assert {name: value if value is None else type(same[name])(value) for name, value in row.items()} == same


def test_a_decision_that_the_bandit_has_forgotten_is_not_kept_open(tmp_path):
    path = tmp_path / "journal"
    with begin_journal(path, budget=1.0, max_cost=1.0, policy="uniform", remember=3) as bandit:
        for _ in range(50):
            bandit.expire(bandit.ask().id)
        pending = set(bandit.pending)
    rounds = Rounds()
    assert len(list(export.rounds_in(path, rounds))) == 50
    assert set(rounds.open) == pending
    assert len(pending) == 3


def test_the_log_of_a_bandit_that_leaves_some_to_chance_is_replayed(tmp_path, capsys):
    path = tmp_path / "journal"
    truth = {"a": (0.2, 0.1), "b": (0.9, 0.5), "c": (0.5, 0.3)}
    draw = random.Random(3)
    with begin_journal(path, policy=pl.IndexPacer(epsilon=0.1), budget=0.3, max_cost=1.0) as bandit:
        for _ in range(600):
            decision = bandit.ask()
            if decision.arm is not None:
                reward, cost = truth[decision.arm]
                bandit.tell(decision.id, draw.random() < reward, 2.0 * cost * draw.random())
        idle = bandit.status().skips
    found = []
    for option, name in (("--csv", "r.csv"), ("--csv", "r.csv.gz"), ("--parquet", "r.parquet")):
        assert log(capsys, path, option, tmp_path / name)[0] == 0
        found.append(pl.replay(tmp_path / name, "uniform", budget=0.3, max_cost=1.0, repeats=5))
    assert found[0].left_out == {"no arm": sum(idle.values())}
    assert found[0].arms["b"].reward.value == pytest.approx(0.9, abs=0.1)
    assert {one["uniform", 0.3].reward for one in found} == {found[0]["uniform", 0.3].reward}


def test_a_table_of_some_time_and_of_an_empty_journal(journal, tmp_path, capsys):
    log(capsys, journal, "--csv", tmp_path / "all.csv")
    rows = read_csv(tmp_path / "all.csv")
    since, until = (f"1970-01-12T13:46:{float(rows[at]['time']) % 60:06.3f}" for at in (3, 8))
    log(capsys, journal, "--csv", tmp_path / "some.csv", "--since", since, "--until", until)
    assert read_csv(tmp_path / "some.csv") == rows[3:8]
    begin_journal(tmp_path / "empty").close()
    for option, name in (("--csv", "empty.csv"), ("--parquet", "empty.parquet")):
        assert "0 rounds" in log(capsys, tmp_path / "empty", option, tmp_path / name)[1]
    assert pq.read_table(tmp_path / "empty.parquet").column_names == list(rows[0])


@pytest.mark.parametrize("name", ["all.csv", "all.csv.gz", "all.parquet"])
def test_a_table_is_for_its_owner_alone_as_the_journal_is(name, journal, tmp_path, capsys):
    (tmp_path / name).touch(0o644)  # one that is there is replaced
    log(capsys, journal, "--parquet" if name.endswith("parquet") else "--csv", tmp_path / name)
    assert (tmp_path / name).stat().st_mode & 0o777 == 0o600


def test_a_table_must_not_take_the_place_of_the_journal(journal, tmp_path, capsys):
    before = journal.read_bytes()
    closed = tmp_path / "other.000001"
    closed.write_bytes(before)
    for table in (journal, closed):
        assert "another file than a journal" in log(capsys, journal, "--csv", table)[1]
        assert table.read_bytes() == before
    assert "in a folder that exists" in log(capsys, journal, "--csv", tmp_path / "no" / "x.csv")[1]
    damage(journal, 10)
    assert log(capsys, journal, "--parquet", tmp_path / "x.parquet")[0] == 2
    assert not (tmp_path / "x.parquet").exists()
    assert len(before) == len(journal.read_bytes())


# What earlier versions wrote.

SAMPLES = Path(__file__).parent / "data" / "journals"


@pytest.mark.parametrize("reopened", [False, True])
@pytest.mark.parametrize("name", ["1-thompson", "2-index", "2-own"])
def test_journals_of_earlier_versions_are_read_checked_and_exported(name, reopened, tmp_path, capsys):
    path, reported = tmp_path / "journal", json.loads((SAMPLES / f"{name}.json").read_text(encoding="utf-8"))
    path.write_bytes((SAMPLES / f"{name}.journal").read_bytes())
    policy = f"{SAMPLES / 'moody.py'}:Moody" if name == "2-own" else None
    given = [] if policy is None else ["--policy", policy]
    if reopened:
        with pl.Bandit.open(path, policy=policy, clock=lambda: reported["time"]) as bandit:
            bandit.pause("c" if bandit.arms["c"] == "active" else "b")
    code, report = log(capsys, path, "--verify", *given)
    assert code == 0, report
    spent = reported["spent"]
    words = f"{spent:.10g}" if not isinstance(spent, dict) else f"{spent['money']:.10g} money"
    assert f"spent {words}" in report
    assert f"{reported['rounds']} rounds" in report
    entries = [json.loads(line) for line in log(capsys, path, "--json", *given)[1].splitlines()]
    assert sum(one["event"] == "ask" for one in entries) == reported["rounds"]
    assert {one["time"] for one in entries} == {None, *([reported["time"]] if reopened else [])}
    assert len(log(capsys, path)[1].splitlines()) == len(entries)
    log(capsys, path, "--csv", tmp_path / "r.csv")
    rows = read_csv(tmp_path / "r.csv")
    costs = [name for name in rows[0] if name.startswith("cost")]
    waiting = {
        row["round"]: row["arm"] for row in rows if row["arm"] and None in [row[at] for at in ("reward", *costs)]
    }
    assert len(rows) == reported["rounds"]
    assert reported["pending"].items() <= waiting.items()


# As a command.


@pytest.mark.slow
def test_log_as_a_process(journal):
    done = call("log", journal, "--tail", 2)
    assert (done.returncode, len(done.stdout.splitlines()), done.stderr) == (0, 2, "")
    assert call("log", journal, "--verify").returncode == 0
    damage(journal, 5)
    assert call("log", journal, "--verify").returncode == 1
    assert call("log", journal).returncode == 2
    head = subprocess.run(
        f"{sys.executable} -m paceline log {journal} | head -1", shell=True, capture_output=True, text=True, check=False
    )
    assert len(head.stdout.splitlines()) == 1
    assert "Traceback" not in head.stderr

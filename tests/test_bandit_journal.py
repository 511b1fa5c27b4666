"""The journal: what was acknowledged survives the process, the disk and the fork, and nothing else gets in."""

import json
import logging
import os
import shutil
import socket
from itertools import islice
from zlib import crc32

import bookkeeper
import elsewhere
import numpy as np
import pytest
from bookkeeper import FOR_SEVERAL, POLICIES, SEVERAL, abandon, live, state_of, steps
from interrupt import Interrupter
from journals import CALLS, SETTINGS, assert_refuses_everything, begin_journal, stopped
from lanes import in_lanes

import paceline
from paceline import Bandit, InvalidValue, JournalFailed, JournalInUse, OnePhase, PacelineError, UnreadableFile
from paceline.live import snapshot as snapshots


def state_after(count):
    """What a bandit that nothing happens to knows after so many steps."""
    bandit = Bandit(**SETTINGS)
    live(bandit, count)
    return state_of(bandit)


@pytest.fixture
def journal(tmp_path):
    """The journal of a bandit that died after 60 steps."""
    path = tmp_path / "journal"
    bandit = begin_journal(path)
    live(bandit, 60)
    abandon(bandit)
    return path


@pytest.fixture
def snapshot(journal):
    """The same with a snapshot made after 40 of them."""
    journal.unlink()
    bandit = begin_journal(journal)
    for number, _ in enumerate(islice(steps(bandit), 60), start=1):
        if number == 40:
            bandit.snapshot()
    abandon(bandit)
    return journal.with_name("journal.snapshot")


def opened_state(path, **options):
    with Bandit.open(path, **options) as bandit:
        return state_of(bandit), bandit.recovered


# The same bandit.


LIVES = {
    **{name: {"policy": policy} for name, policy in POLICIES.items()},
    **{f"{name}, two resources": {"policy": policy, **SEVERAL} for name, policy in FOR_SEVERAL.items()},
}


@pytest.mark.parametrize("settings", in_lanes(LIVES))
@pytest.mark.parametrize("snapshot_every", [None, 25])
def test_a_reopened_bandit_is_the_same_and_decides_alike(tmp_path, settings, snapshot_every):
    bandit, plain = (
        begin_journal(tmp_path / "journal", **settings, snapshot_every=snapshot_every),
        Bandit(**{**SETTINGS, **settings}),
    )
    for seed in range(3):
        assert live(bandit, 100, seed) == live(plain, 100, seed)
        abandon(bandit)
        bandit = Bandit.open(tmp_path / "journal", snapshot_every=snapshot_every, clock=stopped)
        assert bandit.recovered is None
        assert json.dumps(state_of(bandit)) == json.dumps(state_of(plain))
    bandit.close()


def test_fsync_writes_the_same(journal, tmp_path):
    with begin_journal(tmp_path / "synced", fsync=True) as bandit:
        live(bandit, 60)
        bandit.sync()
    assert (tmp_path / "synced").read_bytes() == journal.read_bytes()
    with Bandit.open(tmp_path / "synced", fsync=True) as bandit:
        assert state_of(bandit) == state_after(60)
        bandit.ask()


def test_fsync_syncs_every_event(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fdatasync", synced.append)
    with begin_journal(tmp_path / "synced", fsync=True) as bandit:
        live(bandit, 10)
        lines = bandit._journal.end.lines
    assert len(synced) == lines
    begin_journal(tmp_path / "lazy").close()
    assert len(synced) == lines


def test_without_fdatasync_the_whole_file_is_synced(tmp_path, monkeypatch):
    synced = []
    monkeypatch.delattr(os, "fdatasync")
    monkeypatch.setattr(os, "fsync", synced.append)
    with begin_journal(tmp_path / "synced", fsync=True) as bandit:
        live(bandit, 10)
        lines = bandit._journal.end.lines
    assert len(synced) == lines + 1  # and the folder, once


def test_a_system_that_cannot_lock_files_keeps_no_journal(tmp_path, monkeypatch):
    monkeypatch.setattr("paceline.live.journal.fcntl", None)
    message = (
        r"\Ajournal must be on a system that can lock files \(save and load do without\), got .*journal on [^\n]*\Z"
    )
    for begin in (begin_journal, Bandit.open):
        (tmp_path / "journal").touch()
        with pytest.raises(InvalidValue, match=message):
            begin(tmp_path / "journal")
        assert (tmp_path / "journal").read_bytes() == b""
    monkeypatch.delattr(os, "O_DIRECTORY")  # nor can such a system sync a folder
    Bandit(**SETTINGS).save(tmp_path / "bandit.json")
    Bandit.load(tmp_path / "bandit.json")


def test_old_news_is_not_written(tmp_path):
    with begin_journal(tmp_path / "journal", budget=1.0, policy="uniform") as bandit:
        number = bandit.ask().id
        bandit.tell(number, 0.5, 0.1)
        with bookkeeper.unchanged(bandit):
            bandit.tell(number, 0.5, 0.1)
            bandit.expire(number)
            bandit.resume("a")


def test_numbers_of_numpy_can_be_journalled(tmp_path):
    policy = OnePhase(a=np.float32(2), horizon=np.int64(200))
    bandit = begin_journal(tmp_path / "journal", budget=np.float64(1), policy=policy, clock=lambda: np.float64(7))
    number = bandit.ask(expires=np.float64(3)).id
    bandit.tell(np.int64(number), reward=np.float32(0.5), cost=np.float64(0.1))
    bandit.credit(np.float32(2))
    bandit.add("d", np.float64(0.5))
    bandit.close()
    assert opened_state(tmp_path / "journal") == (state_of(bandit), None)


@pytest.mark.parametrize("name", ["Grüße", '"quoted"\\', "line\nbreak", "\ud800", "☃" * 1000, " "])
def test_any_name_can_be_journalled(tmp_path, name):
    with Bandit([name], 1.0, journal=tmp_path / "journal") as bandit:
        bandit.add(f"{name}2")
        bandit.pause(name)
        bandit.ask()
    assert opened_state(tmp_path / "journal") == (state_of(bandit), None)


# One at a time, and not after the end.

OPEN_AND_SAY = """
import sys
from paceline import Bandit, JournalInUse
try:
    Bandit.open(sys.argv[1])
except JournalInUse as error:
    print(error)
try:
    Bandit(["a"], journal=sys.argv[1])
except JournalInUse as error:
    print(error)
"""


def test_a_journal_in_use_is_refused_elsewhere_and_names_who_has_it(tmp_path):
    path = tmp_path / "journal"
    with begin_journal(path) as bandit:
        before = path.read_bytes()
        owner = f"process {os.getpid()} on {socket.gethostname()}"
        message = f"journal {path} must not be open elsewhere, but {owner} has it"
        assert elsewhere.run(OPEN_AND_SAY, path) == [message] * 2
        with pytest.raises(JournalInUse, match=rf"but {owner} has it\Z"):
            Bandit.open(path)
        (tmp_path / "journal.owner").unlink()
        with pytest.raises(JournalInUse, match=r"but another Bandit has it\Z"):
            Bandit.open(path)
        assert path.read_bytes() == before
        bandit.ask()
    Bandit.open(path).close()


def test_a_closed_bandit_refuses_everything(tmp_path):
    with begin_journal(tmp_path / "journal", budget=1.0, policy="uniform") as bandit:
        assert bandit.ask().arm is not None
        before = state_of(bandit)
    bandit.close()  # twice does no harm
    assert_refuses_everything(bandit)
    assert state_of(bandit) == before
    assert opened_state(tmp_path / "journal") == (before, None)


def test_it_is_closed_when_the_work_fails(tmp_path):
    with pytest.raises(ZeroDivisionError), begin_journal(tmp_path / "journal") as bandit:
        bandit.ask(1 / 0)
    Bandit.open(tmp_path / "journal").close()


def test_without_a_journal_there_is_nothing_to_close():
    with Bandit(**SETTINGS) as bandit:
        bandit.sync()
    bandit.ask()


# Death in the middle.

WORK = """
import sys
from bookkeeper import steps
from journals import begin_journal
for step in steps(begin_journal(sys.argv[1], snapshot_every=int(sys.argv[2]))):
    print(*step, flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("count", "snapshot_every"), [(1, 1000), (50, 1000), (333, 1000), (200, 3)])
def test_what_a_killed_process_has_acknowledged_is_there(tmp_path, count, snapshot_every):
    acknowledged = elsewhere.killed_after(count, WORK, tmp_path / "journal", snapshot_every)
    state, _ = opened_state(tmp_path / "journal")
    twin = Bandit(**SETTINGS)
    expected = live(twin, len(acknowledged))
    assert [line.split() for line in acknowledged] == [list(map(str, step)) for step in expected]
    for _ in range(3):  # one step may have been written, but not printed; one that changes nothing may lie between
        if state_of(twin) == state:
            return
        twin = Bandit(**SETTINGS)
        expected = live(twin, len(expected) + 1)
    pytest.fail("neither the state after the last step that was acknowledged, nor after the next")


FILL_THE_DISK = """
import resource, signal, sys
from bookkeeper import steps
from paceline import JournalFailed
from journals import assert_refuses_everything, begin_journal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
bandit = begin_journal(sys.argv[1], fsync=sys.argv[3] == "True")
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
try:
    for step in steps(bandit):
        print(*step, flush=True)
except JournalFailed as error:
    print(error)
assert_refuses_everything(bandit)
"""


@pytest.mark.slow
@pytest.mark.parametrize("fsync", [False, True])
@pytest.mark.parametrize("size", [1000, 1001, 1010, 3333])
def test_a_full_disk_stops_the_bandit_and_loses_nothing(tmp_path, size, fsync):
    path = tmp_path / "journal"
    *acknowledged, error = elsewhere.run(FILL_THE_DISK, path, size, fsync)
    assert error.startswith(f"journal {path} must take every event, but: ")
    assert error.endswith("; reopen it")
    assert acknowledged
    assert opened_state(path) == (state_after(len(acknowledged)), None)


def test_no_room_for_the_first_line(tmp_path, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, content: write(file, content[:10]))
    with pytest.raises(JournalFailed, match="must take every event, but: "):
        begin_journal(tmp_path / "journal")
    monkeypatch.undo()
    begin_journal(tmp_path / "journal").close()


INTERRUPTED = {name: CALLS[name] for name in ("ask", "tell", "cancel", "expire", "credit", "add", "pause")}


@pytest.mark.parametrize("call", INTERRUPTED.values(), ids=INTERRUPTED)
def test_an_interrupt_at_any_line_leaves_a_journal_that_tells_the_truth(tmp_path, call):
    for line in range(1, 10_000):
        path = tmp_path / str(line)
        bandit = begin_journal(path, budget=1.0, policy="uniform")
        bandit.ask()
        finished = False
        try:
            with Interrupter(line):
                call(bandit)
                finished = True
        except KeyboardInterrupt:
            pass
        try:
            live(bandit, 5)
            state = state_of(bandit)
        except JournalFailed:
            state = None  # it stops rather than act on what may be lost
        bandit.close()
        reopened, _ = opened_state(path)
        assert state in (None, reopened), f"interrupted at line {line}"
        if finished:
            assert state is not None
            return


def test_a_closed_journal_is_free_though_a_process_that_is_being_started_has_its_file(tmp_path):
    bandit = begin_journal(tmp_path / "journal", budget=1.0, policy="uniform")
    copied = os.dup(bandit._journal._file)  # as between fork and exec
    bandit.close()
    try:
        Bandit.open(tmp_path / "journal").close()
    finally:
        os.close(copied)


FORK = """
import os, sys
from bookkeeper import live
from paceline import PacelineError
from journals import begin_journal
bandit = begin_journal(sys.argv[1], budget=1.0, policy="uniform")
live(bandit, 10)
child = os.fork()
if child == 0:
    try:
        live(bandit, 10)
    except PacelineError:
        pass
    finally:
        os._exit(0)
os.waitpid(child, 0)
live(bandit, 10)
print(bandit.rounds)
"""


def test_a_forked_copy_does_not_spoil_the_journal(tmp_path):
    rounds = elsewhere.run(FORK, tmp_path / "journal")
    state, recovered = opened_state(tmp_path / "journal")
    assert recovered is None
    assert rounds == [str(state["rounds"])]


# A torn last line.


@pytest.mark.parametrize("back", [1, 2, 9, 14])
def test_a_torn_last_line_is_dropped_and_reported(journal, caplog, back):
    whole = journal.read_bytes()
    journal.write_bytes(whole[:-back])
    lines = whole.count(b"\n")
    left = whole[:-1].rindex(b"\n") + 1
    torn = len(whole) - back - left
    report = f"journal {journal}: {torn} bytes after line {lines - 1} are not a whole line; the event was cut off"
    with caplog.at_level(logging.WARNING, "paceline"), Bandit.open(journal) as bandit:
        assert bandit.recovered.startswith(report)
        assert [record.getMessage() for record in caplog.records] == [bandit.recovered]
        found = journal.read_bytes()
        assert found.startswith(whole[:left])
        assert found[left + 9 :].startswith(b'["opened",')  # the journal, too, says that something was amiss
        assert found.count(b"\n") == lines
        bandit.credit(1.0)
    assert opened_state(journal) == (state_of(bandit), None)


def test_half_a_first_line_may_be_begun_anew(journal):
    first = journal.read_bytes().split(b"\n")[0]
    for size in (0, 12, 13, 20, len(first)):  # fewer bytes could be anybody's, and are left alone
        journal.write_bytes(first[:size])
        with pytest.raises(UnreadableFile, match=r"has no whole first line: it was never begun, or a loss of power"):
            Bandit.open(journal)
        assert journal.read_bytes() == first[:size]
        begin_journal(journal).close()
        assert opened_state(journal) == (state_after(0), None)


def test_a_few_digits_are_not_taken_for_half_a_first_line(tmp_path):
    (tmp_path / "pid").write_bytes(b"12345")
    with pytest.raises(InvalidValue, match="must be a new file"):
        begin_journal(tmp_path / "pid")
    assert (tmp_path / "pid").read_bytes() == b"12345"


# Damage, and files that are something else.


def summarise_runs(path):
    return path.read_bytes().splitlines(keepends=True)


def changed(lines, at):
    lines[at] = lines[at][:12] + bytes([lines[at][12] ^ 1]) + lines[at][13:]


def removed(lines, at):
    del lines[at]


def doubled(lines, at):
    lines.insert(at + 1, lines[at])


def swapped(lines, at):
    lines[at], lines[at + 1] = lines[at + 1], lines[at]


def emptied(lines, at):
    lines[at] = b"\n"


@pytest.mark.parametrize("at", [0, 1, 17, 40])
@pytest.mark.parametrize("damage", [changed, removed, doubled, swapped, emptied])
def test_damage_in_the_middle_is_refused_with_its_line(journal, damage, at):
    lines = summarise_runs(journal)
    damage(lines, at)
    journal.write_bytes(b"".join(lines))
    before = journal.read_bytes()
    number = at + 2 if damage is doubled else at + 1
    message = f"is damaged in line {number}; the {number - 1} lines before it are whole"
    if number == 1:  # it may also be a file of somebody else's
        message = "must be a journal of a Bandit; its first line is not that of one"
    for _ in range(2):
        with pytest.raises(UnreadableFile, match=message):
            Bandit.open(journal)
    with pytest.raises(PacelineError):
        begin_journal(journal)
    assert journal.read_bytes() == before


def chained(*texts):
    """A journal with these lines."""
    crc, content = 0, b""
    for text in texts:
        crc = crc32(text.encode(), crc)
        content += f"{crc:08x} {text}\n".encode()
    return content


def test_the_lines_are_as_documented(journal):
    texts = [line[9:-1].decode() for line in summarise_runs(journal)]
    assert journal.read_bytes() == chained(*texts)
    title, version, settings, about = json.loads(texts[0])
    assert max(map(len, texts[1:])) < 60
    assert (title, version, settings["arms"]) == ("paceline journal", 3, SETTINGS["arms"])
    place = {"arms": SETTINGS["arms"], "segment": 1, "rounds": 0, "lines": 0, "crc": 0}
    assert about == {**place, "version": paceline.__version__, "digest": about["digest"], "time": 0}


NO_JOURNALS = {
    "notes": b"my notes\nof many lines\n",
    "one line": b"precious notes\n",
    "one line without an end": b"precious notes",
    "binary": bytes(range(256)),
    "JSON": b'{"a": 1}',
    "another chain": chained('["another journal", 2, {}]'),
    "no settings": chained('["paceline journal", 2]'),
    "a number": chained("3"),
    "no JSON": chained("hello"),
}


@pytest.mark.parametrize("content", NO_JOURNALS.values(), ids=NO_JOURNALS)
def test_another_file_is_refused_and_left_alone(tmp_path, content):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(UnreadableFile, match=str(path)):
        Bandit.open(path)
    assert path.read_bytes() == content
    with pytest.raises((UnreadableFile, InvalidValue), match=str(path)):
        begin_journal(path)
    assert path.read_bytes() == content


def test_a_journal_is_not_begun_twice(journal):
    before = journal.read_bytes()
    with pytest.raises(
        InvalidValue, match=r"must be a new file \(Bandit.open goes on with one\), got one with content"
    ):
        begin_journal(journal)
    assert journal.read_bytes() == before


@pytest.mark.parametrize("version", [0, 4, '"3"', "null", "[3]"])
def test_another_format_is_refused(journal, version):
    first, *rest = (line[9:-1].decode() for line in summarise_runs(journal))
    journal.write_bytes(chained(first.replace('"paceline journal", 3', f'"paceline journal", {version}'), *rest))
    with pytest.raises(UnreadableFile, match=r"has format .*; this version reads 1 to 3\Z"):
        Bandit.open(journal)


@pytest.mark.parametrize(
    "event",
    [
        '["dance", 3]',
        '["tell", 999, 0.5, 0.1]',
        '["tell", 1, 0.5]',
        '["ask", 7, 1, 7]',
        '["ask", 0, 1, 7]',
        '["credit", -1, 1.0]',
        '["credit", 0, -1.0]',
        '["credit", 0]',
        '["credit", 0, 1.0, 1.0]',
        '["add", "d"]',
        '["add", "d", 0.5, 0.5]',
        "3",
    ],
)
def test_an_event_that_makes_no_sense_is_refused_with_its_line(journal, event):
    texts = [line[9:-1].decode() for line in summarise_runs(journal)]
    journal.write_bytes(chained(*texts, event))
    with pytest.raises(UnreadableFile, match=f"does not make sense in line {len(texts) + 1}: "):
        Bandit.open(journal)


def test_a_missing_journal_is_not_made(tmp_path):
    with pytest.raises(UnreadableFile, match=r"must exist to be opened; Bandit\(..., journal=path\) begins one"):
        Bandit.open(tmp_path / "journal")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("where", [".", "missing/journal"])
def test_a_place_that_cannot_be_written_is_refused(tmp_path, where):
    with pytest.raises(UnreadableFile, match="must be a file to write to, but:"):
        begin_journal(tmp_path / where)


# Snapshots.


def test_a_snapshot_saves_reading_what_came_before_it(journal, snapshot):
    lines = summarise_runs(journal)
    changed(lines, 5)
    journal.write_bytes(b"".join(lines))
    assert opened_state(journal) == (state_after(60), None)
    snapshot.unlink()
    with pytest.raises(UnreadableFile, match="damaged in line 6"):
        Bandit.open(journal)


def test_damage_after_the_snapshot_is_refused(journal, snapshot):
    lines = summarise_runs(journal)
    changed(lines, len(lines) - 3)
    journal.write_bytes(b"".join(lines))
    with pytest.raises(UnreadableFile, match=f"damaged in line {len(lines) - 2}; the {len(lines) - 3} lines before"):
        Bandit.open(journal)


def test_a_snapshot_that_is_newer_than_the_journal_is_not_used(journal, snapshot):
    journal.write_bytes(b"".join(summarise_runs(journal)[:20]))
    shutil.copy(journal, journal.with_name("alone"))
    state, report = opened_state(journal)
    assert report == f"snapshot was not used: {snapshot} does not belong to the journal as it is"
    assert state == opened_state(journal.with_name("alone"))[0]


def test_a_snapshot_of_another_journal_is_not_used(journal, snapshot, tmp_path):
    with begin_journal(tmp_path / "other", seed=8) as other:
        live(other, 200)
        other.snapshot()
    shutil.copy(tmp_path / "other.snapshot", snapshot)
    state, report = opened_state(journal)
    assert state == state_after(60)
    assert "does not belong to the journal" in report


def a_saved_bandit(snapshot):
    bandit = Bandit(**SETTINGS)
    live(bandit, 10)
    bandit.save(snapshot)


def another_format(snapshot):
    snapshot.write_text(json.dumps({**json.loads(snapshot.read_bytes()), "format": 1}))


def a_body_without_sense(snapshot):
    place = snapshots.read_file(snapshot)["journal"]
    snapshots.write_file(snapshot, {"journal": place})


BAD_SNAPSHOTS = {
    "nothing": lambda snapshot: snapshot.write_bytes(b""),
    "foreign": lambda snapshot: snapshot.write_bytes(b'{"a": 1}'),
    "cut short": lambda snapshot: snapshot.write_bytes(snapshot.read_bytes()[:-100]),
    "one digit changed": lambda snapshot: snapshot.write_bytes(
        snapshot.read_bytes().replace(b'"rounds":', b'"rounds":1')
    ),
    "another format": another_format,
    "a saved bandit": a_saved_bandit,
    "a body without sense": a_body_without_sense,
}


@pytest.mark.parametrize("spoil", BAD_SNAPSHOTS.values(), ids=BAD_SNAPSHOTS)
def test_a_bad_snapshot_is_not_used_and_reported(journal, snapshot, spoil):
    spoil(snapshot)
    state, report = opened_state(journal)
    assert state == state_after(60)
    assert "snapshot" in report
    assert "not used" in report


def test_snapshots_come_by_themselves_and_replace_each_other(tmp_path):
    with begin_journal(tmp_path / "journal", snapshot_every=10) as bandit:
        seen = set()
        for _ in islice(steps(bandit), 100):
            bandit._keeper.finish()
            if bandit._journal.end.lines > 10:
                seen.add(snapshots.read_file(tmp_path / "journal.snapshot")["journal"][3])
                assert bandit._journal.end.lines - max(seen) < 10
    assert len(seen) > 5
    *before, last = sorted(seen)
    assert snapshots.read_file(tmp_path / "journal.snapshot")["journal"][3] == last
    assert snapshots.read_file(tmp_path / "journal.snapshot.old")["journal"][3] == before[-1]
    names = {"journal", "journal.owner", "journal.snapshot", "journal.snapshot.old"}
    assert {path.name for path in tmp_path.iterdir()} == names


def test_short_lives_make_snapshots_too(tmp_path):
    begin_journal(tmp_path / "journal").close()
    for seed in range(20):
        with Bandit.open(tmp_path / "journal", snapshot_every=50) as bandit:
            live(bandit, 10, seed)
    with Bandit.open(tmp_path / "journal") as bandit:
        lines = bandit._journal.end.lines
    assert lines - snapshots.read_file(tmp_path / "journal.snapshot")["journal"][3] <= 60


def test_a_snapshot_that_cannot_be_written_stops_nothing(tmp_path):
    with begin_journal(tmp_path / "journal", snapshot_every=5) as bandit:
        for name in ("journal.snapshot", "journal.snapshot.old"):
            (tmp_path / name / "full").mkdir(parents=True)
        live(bandit, 60)
        assert state_of(bandit) == state_after(60)
        with pytest.raises(PacelineError, match=r"\Asnapshot of .*journal must be written, but: Is a directory\Z"):
            bandit.snapshot()
    for name in ("journal.snapshot", "journal.snapshot.old"):
        shutil.rmtree(tmp_path / name)
    assert opened_state(tmp_path / "journal") == (state_after(60), None)


def test_a_program_may_go_to_another_folder(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with begin_journal("journal", rotate_every=5) as bandit:
        monkeypatch.chdir("elsewhere")
        live(bandit, 30)
        bandit.snapshot()
        state = state_of(bandit)
        assert len(list(bandit.events())) == bandit._journal.lines - len(list(tmp_path.glob("journal.0*"))) - 1
    assert not list((tmp_path / "elsewhere").iterdir())
    with Bandit.open(tmp_path / "journal", clock=stopped) as reopened:
        assert state_of(reopened) == state


def test_a_link_beside_the_journal_is_not_followed(tmp_path):
    """Who has a journal stands in a file whose name can be guessed."""
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / "journal.owner").symlink_to(precious)
    begin_journal(tmp_path / "journal").close()
    assert precious.read_text() == "mine"

"""Files of any kind where a bandit's are expected: one line says what is wrong. And who may read a bandit's files."""

import json
import os
import stat
from pathlib import Path
from zlib import crc32

import pytest
from journals import SETTINGS, begin_journal

from paceline import Bandit, InvalidValue, PacelineError
from paceline.live.log import entries_of


def assert_one_line(caught):
    assert isinstance(caught.value, PacelineError)
    assert "\n" not in str(caught.value)


def chained(*texts):
    crc, content = 0, b""
    for text in texts:
        crc = crc32(text.encode(), crc)
        content += b"%08x %b\n" % (crc, text.encode())
    return content


def header(**changes):
    """The first line of a journal in which something is otherwise."""
    about = {"arms": ["a"], "segment": 1, "lines": 0, "crc": 0, "version": "2", "digest": "", "time": 0}
    return json.dumps(["paceline journal", 3, {}, {**about, **changes}])


DEEP = "[" * 100_000 + "]" * 100_000
FIRST_LINES = {
    "deep": DEEP,
    "deep settings": '["paceline journal",3,{"arms":' + DEEP + "},{}]",
    "an object": '{"paceline journal": 3}',
    "no title": "[]",
    "a list as title": "[[1], 3]",
    "a long number": '["paceline journal", ' + "9" * 5000 + ", {}, {}]",
    "no settings": header(),
    "settings of arms alone": '["paceline journal",3,{"arms":["a"]},' + header()[len('["paceline journal", 3, {}, ') :],
    "no about": '["paceline journal",3,{},{}]',
    "a crc in words": header(crc="none"),
    "a crc in parts": header(crc=0.5),
    "a crc below 0": header(crc=-1),
    "lines in words": header(lines="many"),
    "lines below 0": header(lines=-3),
    "a segment in words": header(segment="first"),
    "a segment of 0": header(segment=0),
    "a later segment": header(segment=3),
    "arms in a number": header(arms=3),
    "time in words": header(time="now"),
    "a digest in a list": header(digest=[1]),
    "format 1 without settings": '["paceline journal", 1, {}]',
    "format 2 of nonsense": '["paceline journal", 2, {"arms": 3, "policy": 5}]',
}


@pytest.mark.parametrize("first", FIRST_LINES.values(), ids=FIRST_LINES)
def test_an_odd_first_line(tmp_path, first):
    content = chained(first)
    (tmp_path / "journal").write_bytes(content)
    for begin in (Bandit.open, begin_journal):
        with pytest.raises(PacelineError) as caught:
            begin(tmp_path / "journal")
        assert_one_line(caught)
    assert (tmp_path / "journal").read_bytes() == content


@pytest.fixture
def settings(tmp_path):
    """The settings in a real journal, and all about it."""
    with Bandit(["a", "b"], 0.5, journal=tmp_path / "real"):
        pass
    text = (tmp_path / "real").read_bytes().split(b"\n")[0][9:]
    return json.loads(text)[2:]


def error_of_opening(path):
    try:
        Bandit.open(path).close()
    except PacelineError as error:
        return error
    return None


ODD = [None, 3, -1, 0.5, "text", [], {}, [1, 2], {"name": 3}, True, 1e400, [[[]]]]


@pytest.mark.parametrize("value", ODD, ids=repr)
def test_an_odd_setting_of_any_name(tmp_path, settings, value):
    """A wrong type anywhere is refused in one line, or means something."""
    table, about = settings
    for part, name in [(0, name) for name in table] + [(1, name) for name in about]:
        changed = [dict(table), dict(about)]
        changed[part][name] = value
        (tmp_path / "journal").write_bytes(chained(json.dumps(["paceline journal", 3, *changed])))
        for path in tmp_path.glob("journal.*"):
            path.unlink()
        error = error_of_opening(tmp_path / "journal")
        assert "\n" not in str(error), name


LINES = [
    *(DEEP, f'["tell",{DEEP}]', "{}", "[[]]", '["ask"]', '["expire",3,0]', '["set",3,0]'),
    *('["credit",[1e999],0,true,0]', '["observe",9,0.5,[0.5],0]', '["merge",3,0]'),
    *('["ask",0,1,0,"x"]', '["ask",0,1,0,1' + 30 * "0" + "]", '["credit",[1.0],0,true,null]', '["cancel",1,0.5]'),
    *('["ask",0,1,0,0,"x"]', '["ask",0,1,0,true]'),
]


@pytest.mark.parametrize("text", LINES, ids=lambda text: text[:20])
def test_an_odd_line(tmp_path, text):
    with begin_journal(tmp_path / "journal", budget=1.0):
        pass
    first = (tmp_path / "journal").read_bytes()[9:-1].decode()
    (tmp_path / "journal").write_bytes(chained(first, text))
    with pytest.raises(PacelineError, match="does not make sense in line 2: ") as caught:
        Bandit.open(tmp_path / "journal")
    assert_one_line(caught)


SAVED = {
    "deep": DEEP,
    "a deep body": '{"format": 3, "sha256": "", "body": ' + DEEP + "}",
    "a list of formats": '{"format": [3], "sha256": "", "body": {}}',
    "a long number": '{"format": ' + "9" * 5000 + "}",
}


@pytest.mark.parametrize("content", SAVED.values(), ids=SAVED)
def test_an_odd_save_or_snapshot(tmp_path, content):
    (tmp_path / "saved").write_text(content)
    with pytest.raises(PacelineError) as caught:
        Bandit.load(tmp_path / "saved")
    assert_one_line(caught)
    with begin_journal(tmp_path / "journal") as bandit:
        bandit.ask()
    (tmp_path / "journal.snapshot").write_text(content)
    with Bandit.open(tmp_path / "journal") as bandit:
        assert bandit.rounds == 1
        assert bandit.recovered.startswith("snapshot was not used: ")


# Places where no file of a bandit can be.


def below_a_file(folder):
    (folder / "file").touch()
    return folder / "file" / "journal"


def pipe(folder):
    os.mkfifo(folder / "pipe")
    return folder / "pipe"


PLACES = {
    "a folder": lambda folder: folder,
    "nothing": lambda _: Path("/dev/null"),
    "no folder": lambda folder: folder / "missing" / "file",
    "no name": lambda _: "",
    "here": lambda _: ".",
    "NUL": lambda folder: f"{folder}/a\0b",
    "a pipe": pipe,
    "a long name": lambda folder: folder / ("x" * 300),
    "half a character": lambda folder: f"{folder}/\ud800",
    "below a file": below_a_file,
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_a_place_where_no_journal_can_be(tmp_path, place):
    path = place(tmp_path)
    before = sorted(tmp_path.iterdir()), Path("/dev/null.owner").exists()
    for begin in (begin_journal, Bandit.open, Bandit.load):
        with pytest.raises(PacelineError) as caught:
            begin(path)
        assert_one_line(caught)
    assert (sorted(tmp_path.iterdir()), Path("/dev/null.owner").exists()) == before


@pytest.mark.parametrize("place", [PLACES[name] for name in PLACES if name != "nothing"])
def test_a_place_where_nothing_can_be_saved(tmp_path, place):
    with pytest.raises(PacelineError) as caught:
        Bandit(**SETTINGS).save(place(tmp_path))
    assert_one_line(caught)


@pytest.mark.parametrize("device", ["zero", "full", "null"])
def test_a_device_is_not_read(device):
    with pytest.raises(PacelineError, match=r"must be a file written by Bandit.save, got a device or a pipe") as caught:
        Bandit.load(f"/dev/{device}")
    assert_one_line(caught)


def test_the_log_of_a_pipe_is_refused(tmp_path):
    with pytest.raises(PacelineError, match="must be readable, but: it is a device or a pipe") as caught:
        next(entries_of(pipe(tmp_path)))
    assert_one_line(caught)


def test_a_pipe_is_not_written_over(tmp_path):
    """Whoever may write beside a device would put a file in its place."""
    place = pipe(tmp_path)
    with pytest.raises(PacelineError, match=r"path must be a file, got .*pipe, which is a device or a pipe"):
        Bandit(**SETTINGS).save(place)
    assert place.is_fifo()


# Who may read.


def modes(folder):
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


def live_long(path, **options):
    """A bandit that writes files of every kind."""
    bandit = begin_journal(path, budget=1.0, rotate_every=5, snapshot_every=5, closed="gzip", **options)
    for _ in range(40):
        bandit.ask()
        bandit._keeper.finish()
    bandit.close()


def test_files_are_for_their_owner_alone(tmp_path):
    before = os.umask(0)
    try:
        live_long(tmp_path / "journal")
        Bandit(**SETTINGS).save(tmp_path / "saved")
    finally:
        os.umask(before)
    found = modes(tmp_path)
    assert {"journal", "saved", "journal.snapshot", "journal.snapshot.old", "journal.000001.gz"} < found.keys()
    assert set(found.values()) == {0o600}


def test_files_may_be_for_others_too(tmp_path):
    before = os.umask(0)
    try:
        live_long(tmp_path / "journal", mode=0o644)
    finally:
        os.umask(before)
    found = modes(tmp_path)
    del found["journal.owner"]
    assert len(found) > 4
    assert set(found.values()) == {0o644}


@pytest.mark.parametrize("mode", [-1, 0o1000, "600", 0.5, None])
def test_a_mode_that_is_none(tmp_path, mode):
    with pytest.raises(InvalidValue, match=r"\Amode must be "):
        begin_journal(tmp_path / "journal", mode=mode)
    assert not list(tmp_path.iterdir())

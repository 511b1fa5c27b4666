"""Journals that are read beside the bandit that writes them: the events in words, over all segments."""

import gzip
import json
import os
from itertools import islice
from threading import Thread
from zlib import crc32

import pytest
from journals import begin_journal

import paceline as pl
from paceline.live.log import entries_of
from paceline.live.segments import closed_segments


class First(pl.PythonPolicy):
    """A policy of a user's."""

    name = "first"

    def reset(self, setting):
        pass

    def choose(self, state):
        return 0

    def learn(self, state, arm, reward, cost):
        pass


def play(bandit, rounds):
    """Some rounds, each told at once; gives what should be in the log."""
    expected = []
    for number in range(rounds):
        decision = bandit.ask()
        expected.append(("ask", decision.id, decision.arm, None, None))
        if decision.arm is not None:
            bandit.tell(decision.id, (number % 5) / 4, 0.2)
            expected.append(("tell", decision.id, decision.arm, (number % 5) / 4, 0.2))
    return expected


def short(entries):
    return [(one["event"], one["id"], one["arm"], one.get("reward"), one.get("cost")) for one in entries]


def packed(path, **settings):
    """A journal in many segments, the first of them packed, the last ones plain; and what should be in its log."""
    with begin_journal(path, rotate_every=20, closed="gzip", **settings) as bandit:
        expected = []
        for _ in range(8):
            expected += play(bandit, 10)
            bandit._keeper.finish()  # as if time had passed
    closed = closed_segments(path)
    assert {file.suffix == ".gz" for file in closed.values()} == {True, False}
    return expected


def headers(path):
    """The first lines of all segments, as they are written."""
    files = [*closed_segments(path).values(), path]
    return [json.loads(file.read_text(encoding="utf-8").splitlines()[0][9:]) for file in files]


def test_a_segment_that_begins_after_a_tell_has_its_time(tmp_path):
    path = tmp_path / "journal"
    with begin_journal(path, rotate_every=7, clock=lambda: 12.5) as bandit:
        play(bandit, 60)
    assert len(headers(path)) > 4
    assert {header[3]["time"] for header in headers(path)} == {12500}


def test_a_clock_that_fails_in_tell_changes_nothing(tmp_path):
    times = [1.0]
    with begin_journal(tmp_path / "journal", clock=lambda: times[0], budget=1.0) as bandit:
        decision = bandit.ask()
        times[0] = None
        with pytest.raises(pl.InvalidValue, match="the time that clock gives"):
            bandit.tell(decision.id, 0.5, 0.1)
        times[0] = 2.0
        bandit.tell(decision.id, 0.5, 0.1)
        assert bandit.pending == {}


def test_the_time_of_an_event_is_read_once(tmp_path):
    """A clock that fails later, when a segment is begun, would leave a decision that nobody has got."""
    looks = []
    with begin_journal(tmp_path / "journal", clock=lambda: float(looks.append(0) or 1), rotate_every=4) as bandit:
        for number in range(1, 20):
            before = len(looks)
            assert bandit.ask().id == number
            assert len(looks) == before + 1
    assert len(headers(tmp_path / "journal")) > 4


# The events in words.


def test_events_tell_what_was_called(tmp_path):
    times = [100.0]
    money = {"money": 1.0, "calls": 1.0}
    with begin_journal(
        tmp_path / "journal", budget=money, max_cost=1.0, worker="w", clock=lambda: times[0], policy="thompson"
    ) as bandit:
        first = bandit.ask(expires=10.0, arms=["a", "b"], max_cost={"money": {"a": 0.5}, "calls": 0.25}, key="k")
        second = bandit.ask()
        times[0] = 101.5
        bandit.tell(second.id, cost={"calls": 0.5})
        bandit.tell(second.id, 0.75, {"money": 2.0}, overrun=True)
        bandit.cancel(first.id)
        bandit.credit({"calls": 3.0}, over=4)
        bandit.debit({"calls": 0.125}, rate=False)
        bandit.add("d", max_cost={"money": 0.5, "calls": 1.0})
        bandit.pause("d")
        bandit.observe("a", 0.5, {"money": 0.25, "calls": 0.0})
        bandit.set(silence=0.25, policy="uniform")
        third = bandit.ask()
        bandit.expire(third.id)
        asked, *others = bandit.events()
    assert (first.arm in ("a", "b"), third.arm is not None) == (True, True)
    assert asked == {
        **{"line": 2, "time": 100.0, "event": "ask", "id": "w-1", "arm": first.arm, "reason": first.situation},
        **({"other": first.other} if first.other not in (None, first.arm) else {}),
        **{"expires": 110.0, "key": "k", "arms": ["a", "b"]},
        "max_cost": {"a": {"money": 0.5, "calls": 0.25}, "b": {"money": 1.0, "calls": 0.25}},
    }
    assert [one["line"] for one in others] == list(range(3, 16))
    assert {one["time"] for one in others[1:]} == {101.5}
    wanted = [
        {"event": "ask", "id": "w-2", "arm": second.arm, "reason": second.situation},
        {"event": "tell", "id": "w-2", "arm": second.arm, "reward": None, "cost": {"calls": 0.5}},
        {"event": "tell", "id": "w-2", "arm": second.arm, "reward": 0.75, "cost": {"money": 2.0}, "overrun": True},
        {"event": "cancel", "id": "w-1", "arm": first.arm},
        {"event": "credit", "amount": {"calls": 3.0}, "over": 4, "rate": True},
        {"event": "credit", "amount": {"calls": -0.125}, "over": 0, "rate": False},
        {"event": "add", "arm": "d", "max_cost": {"money": 0.5, "calls": 1.0}},
        {"event": "status", "arm": "d", "status": "paused"},
        {"event": "observe", "arm": "a", "reward": 0.5, "cost": {"money": 0.25, "calls": 0.0}},
        {"event": "set"},
        {"event": "opened"},  # the code of the policy that goes on
        {"event": "ask", "id": "w-3", "arm": third.arm, "reason": third.situation},
        {"event": "expire", "ids": ["w-3"]},
    ]
    for found, right in zip(others, wanted, strict=True):
        assert found | right == found
    assert others[9]["settings"]["silence"] == 0.25


def test_events_need_a_journal():
    with pytest.raises(pl.InvalidValue, match="events must have a journal"):
        pl.Bandit(["a"], 0.5).events()


def test_the_reasons_of_a_policy_of_the_users_need_its_code(tmp_path):
    path = tmp_path / "journal"
    with begin_journal(path, budget=1.0, policy=First()) as bandit:
        decision = bandit.ask()
        (known,) = bandit.events()
    (unknown,) = entries_of(path)
    assert decision.arm is not None
    assert known["reason"] == decision.situation
    assert (unknown["arm"], unknown["reason"][:7]) == (decision.arm, "reason ")


# Segments.


def test_events_go_over_all_segments_packed_or_not(tmp_path):
    path = tmp_path / "journal"
    expected = packed(path)
    entries = list(entries_of(path))
    assert short(entries) == expected
    lines = [one["line"] for one in entries]
    assert lines == sorted(set(lines))
    assert lines[-1] == lines[0] - 1 + len(lines) + len(closed_segments(path))


def test_ids_go_on_where_segments_were_dropped(tmp_path):
    path = tmp_path / "journal"
    expected = packed(path)
    for segment, file in closed_segments(path).items():
        if segment < 5:
            file.unlink()
    found = short(entries_of(path))
    missing = {id for kind, id, *_ in expected[: -len(found)] if kind == "ask"}
    for right, one in zip(expected[-len(found) :], found, strict=True):
        is_cut = one[0] == "tell" and one[1] in missing
        assert one == (right if not is_cut else (*right[:2], None, *right[3:]))
    assert len(found) < len(expected)


def test_a_segment_in_the_middle_must_not_be_missing(tmp_path):
    path = tmp_path / "journal"
    packed(path)
    closed_segments(path)[3].unlink()
    with pytest.raises(pl.UnreadableFile, match="lacks its closed segment 3"):
        list(entries_of(path))


def test_a_segment_of_another_journal_is_recognised(tmp_path):
    path, other = tmp_path / "journal", tmp_path / "other"
    packed(path)
    packed(other, seed=1, clock=lambda: 5.0)
    closed_segments(path)[2].write_bytes(closed_segments(other)[2].read_bytes())
    with pytest.raises(pl.UnreadableFile, match="segment 2 does not follow the one before it"):
        list(entries_of(path))


def test_a_crash_in_the_middle_of_a_rotation_does_not_show_lines_twice(tmp_path):
    path = tmp_path / "journal"
    with begin_journal(path) as bandit:
        expected = play(bandit, 10)
    os.link(path, tmp_path / "journal.000001")
    assert short(entries_of(path)) == expected


# Damage.


def test_a_torn_last_line_is_the_end(tmp_path):
    path = tmp_path / "journal"
    with begin_journal(path) as bandit:
        expected = play(bandit, 10)
    content = path.read_bytes()
    last = content.rfind(b"\n", 0, -1) + 1
    for length in range(last, len(content)):
        path.write_bytes(content[:length])
        assert short(entries_of(path)) == expected[:-1]


def test_damage_names_its_line_and_comes_after_what_is_whole(tmp_path):
    path = tmp_path / "journal"
    with begin_journal(path) as bandit:
        expected = play(bandit, 10)
    lines = path.read_bytes().splitlines(keepends=True)
    for number in range(2, len(lines) + 1):
        bad = bytearray(lines[number - 1])
        bad[number % (len(bad) - 1)] ^= 1
        path.write_bytes(b"".join([*lines[: number - 1], bytes(bad), *lines[number:]]))
        entries = entries_of(path)
        assert short(islice(entries, number - 2)) == expected[: number - 2]
        with pytest.raises(pl.UnreadableFile, match=rf"damaged in line {number};"):
            next(entries)
        with pytest.raises(pl.UnreadableFile, match=rf"damaged in line {number};"):
            pl.Bandit.open(path)


def test_damage_in_a_packed_segment_is_found(tmp_path):
    path = tmp_path / "journal"
    packed(path)
    file = closed_segments(path)[2]
    content = file.read_bytes()
    for cut in (content[:-20], content[:40] + b"\x00" * 8 + content[48:]):
        file.write_bytes(cut)
        with pytest.raises(pl.UnreadableFile, match=r"journal.000002.gz"):
            list(entries_of(path))
    whole = gzip.decompress(content)
    file.write_bytes(gzip.compress(whole[:-3]))
    with pytest.raises(pl.UnreadableFile, match=r"ends in the middle of line \d+"):
        list(entries_of(path))


SENSELESS = [
    *(b'["nonsense",1]', b"[1,2", b"{}", b"7", b'["tell"]', b'["add","d",3,5]'),
    *(b'["ask",99,1,0,5]', b'["ask",0,1,null,5]', b'["ask",0,1,0,[5]]', b'["status",9223372036854775808,"paused",5]'),
]


@pytest.mark.parametrize("text", SENSELESS)
def test_a_whole_line_that_makes_no_sense_is_named(text, tmp_path):
    path = tmp_path / "journal"
    with begin_journal(path) as bandit:
        expected = play(bandit, 4)
    before = int(path.read_bytes().splitlines()[-1][:8], 16)
    path.write_bytes(path.read_bytes() + b"%08x %b\n" % (crc32(text, before), text))
    entries = entries_of(path)
    assert short(islice(entries, len(expected))) == expected
    with pytest.raises(pl.UnreadableFile, match=rf"does not make sense in line {len(expected) + 2}"):
        next(entries)


@pytest.mark.parametrize("content", [b"", b"12345678 [", b"hello\n", b"\x00" * 100])
def test_what_is_no_journal_is_refused(content, tmp_path):
    path = tmp_path / "journal"
    path.write_bytes(content)
    with pytest.raises(pl.UnreadableFile, match="first line"):
        list(entries_of(path))


# Beside a running bandit.


@pytest.mark.slow
def test_a_journal_is_read_while_it_is_written_rotated_and_packed(tmp_path):
    path = tmp_path / "journal"
    expected, done = [], []

    def write():
        with begin_journal(path, rotate_every=50, closed="gzip") as bandit:
            done.append(False)
            for _ in range(300):
                expected.extend(play(bandit, 10))
        done.append(True)

    writer = Thread(target=write)
    writer.start()
    while not done:
        pass
    readings = []
    while True:
        is_last = True in done
        readings.append(short(entries_of(path)))
        if is_last:
            break
    writer.join()
    assert len(readings) > 3
    assert readings[-1] == expected
    for reading in readings:
        assert reading == expected[: len(reading)]
    assert [len(one) for one in readings] == sorted(len(one) for one in readings)

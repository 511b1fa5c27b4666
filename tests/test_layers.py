"""Pulls that are looked through while they change: whoever looks sees one moment, and the books see the present."""

import json
from contextlib import suppress
from itertools import chain, islice

import pytest
from bookkeeper import state_of
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline import Bandit, PacelineError
from paceline.live import ledger, shelves, snapshot, status, turnout
from paceline.live.layers import SOME, Layers, first_rows
from paceline.live.picture import picture_of
from paceline.live.pulls import Pulls
from paceline.live.shelves import Shelves

MOST = 3  # entries that are merged at once


@pytest.fixture(scope="module", autouse=True)
def small_steps():
    """Few pulls are many, and all that is done now and then is done all the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger, "FEW", 2)
        patch.setattr(ledger, "MANY", 8)
        patch.setattr(shelves, "BITS", 1)
        patch.setattr(ledger, "MERGE_AT_ONCE", MOST)
        patch.setattr(turnout, "EVERY", 2)
        patch.setattr(snapshot, "MANY", 2)
        yield


def check(pulls, model):
    assert list(pulls.items()) == list(model.items())
    assert list(pulls) == list(model)
    assert list(pulls.values()) == list(model.values())
    assert len(pulls) == len(model)


STEPS = st.tuples(st.sampled_from(["put", "change", "delete", "look", "leave", "merge"]), st.integers(0, 9))


@given(held=st.integers(0, 6), steps=st.lists(STEPS, max_size=40), kind=st.sampled_from([Pulls, Shelves]))
@settings(max_examples=300)
def test_layers_are_a_dictionary_and_every_view_stays_as_it_was(held, steps, kind):
    model = {number: (number, 0) for number in range(held)}
    pulls, views = kind(Pulls(model)), []
    for time, (what, which) in enumerate(steps, 1):
        number = list(model)[which % len(model)] if model else None
        if what == "put":
            pulls[7 + time] = model[7 + time] = (7 + time, time)
        elif what == "change" and model:
            pulls[number] = model[number] = (number, time)
        elif what == "delete" and model:
            del pulls[number], model[number]
            assert number not in pulls
            with pytest.raises(KeyError):
                del pulls[number]
        elif what == "look":
            pulls = pulls if isinstance(pulls, Layers) else Layers(pulls)
            views.append((pulls.view(), dict(model)))
        elif what == "leave" and views:
            del views[which % len(views)]
        elif what == "merge" and isinstance(pulls, Layers):
            before = sum(map(len, pulls.layers))
            pulls = pulls.merged(MOST)
            assert sum(map(len, pulls.layers)) >= before - 2 * MOST if isinstance(pulls, Layers) else not views
        check(pulls, model)
        assert all(pulls.find(number) == row and pulls[number] == row for number, row in model.items())
        assert all(list(view.items()) == list(seen.items()) for view, seen in views)
        assert all(list(view.values()) == list(seen.values()) for view, seen in views)
        assert list(first_rows(pulls, 1 << 20)) == list(model.values())
        assert all(list(chain(*view.parts(MOST))) == list(seen.items()) for view, seen in views)
        assert all(len(part) <= MOST for view, _ in views for part in view.parts(MOST))
    views.clear()
    for _ in range(len(steps) + 1):
        pulls = pulls.merged(MOST) if isinstance(pulls, Layers) else pulls
    assert isinstance(pulls, kind)
    check(pulls, model)


def story_of(bandit, choices, now):
    """Calls of all kinds that change what waits."""
    for what, which in choices:
        now[0] += 1.0
        waiting = list(bandit.pending)
        id = waiting[which % len(waiting)] if waiting else None
        with suppress(PacelineError):  # what is refused changes nothing
            if what == "ask" or id is None:
                bandit.ask()
            elif what == "tell":
                bandit.tell(id, reward=0.5, cost=0.25)
            elif what == "part":
                bandit.tell(id, cost=0.25)
            elif what == "cancel":
                bandit.cancel(id)
            elif what == "expire":
                bandit.expire(id)
            elif what == "pass":
                now[0] += 20.0
            elif what == "window":
                bandit.set(expires=30.0 + which)
        yield what


CALLS = st.sampled_from(["ask", "ask", "ask", "tell", "part", "cancel", "expire", "pass", "window", "picture", "steps"])


@pytest.mark.parametrize("silence", [None, 0.0])
@given(begun=st.integers(3, 12), choices=st.lists(st.tuples(CALLS, st.integers(0, 50)), max_size=40))
@settings(max_examples=30)
def test_a_snapshot_written_between_calls_is_the_state_that_the_journal_gives(
    tmp_path_factory, silence, begun, choices
):
    folder, now, written = tmp_path_factory.mktemp("books"), [0.0], []
    given_options = {"start": 100.0, "expires": 60.0, "silence": silence, "remember": 4, "snapshot_every": None}
    with Bandit(["a", "b"], 1.0, journal=folder / "journal", clock=lambda: now[0], **given_options) as bandit:
        for _ in range(begun):
            bandit.ask()
        for (_, which), what in zip(choices, story_of(bandit, choices, now), strict=True):
            if what == "picture":
                pieces = snapshot.pieces(snapshot.describe_picture(picture_of(bandit._ledger)))
                written.append([[], pieces, (folder / "journal").read_bytes()])
            elif what == "steps" and written:
                text, pieces, _ = written[which % len(written)]
                text.extend(islice(pieces, which))
        state = state_of(bandit)
        for text, pieces, _ in written:
            text.extend(pieces)
    for place, (text, _, journal) in enumerate([*written, ([json.dumps(state)], (), None)]):
        path = folder / f"copy-{place}"
        path.write_bytes((folder / "journal").read_bytes() if journal is None else journal)
        with Bandit.open(path, clock=lambda: now[0]) as copy:
            assert state_of(copy) == json.loads("".join(text))


def test_books_that_were_looked_at_are_one_dictionary_again_after_some_rounds():
    bandit = Bandit(["a", "b"], 1.0, start=1000.0)
    for _ in range(20):
        bandit.ask()
    status, waiting = bandit.status(), bandit.pending
    assert status.pending == len(waiting) == 20
    assert isinstance(bandit._ledger.pending, Layers)
    for id in list(waiting)[:10]:
        bandit.tell(id, reward=0.5, cost=0.5)
    for _ in range(40):
        bandit.ask()
    assert isinstance(bandit._ledger.pending, Shelves)
    assert list(bandit.pending) == [*range(11, 61)]
    for id in list(bandit.pending):
        bandit.tell(id, reward=0.5, cost=0.5)
    while isinstance(bandit._ledger.pending, Layers):
        bandit.cancel(bandit.ask().id)
    for _ in range(5):
        bandit.cancel(bandit.ask().id)
    assert isinstance(bandit._ledger.pending, Pulls)


def test_thousands_that_are_gone_are_not_passed_by_in_one_go():
    pulls = Layers(Pulls({number: (number,) for number in range(10_000)}))
    looked = pulls.view()
    for number in range(9_999):
        del pulls[number]
    view = pulls.view()
    assert list(view.items()) == [(9_999, (9_999,))]
    assert len(list(view.parts(100))) >= 10_000 // 100
    assert list(first_rows(pulls, 5_000)) == []
    assert list(first_rows(pulls, 10_000)) == [(9_999,)]
    assert sum(map(len, looked.parts(SOME))) == 10_000


def test_a_status_and_a_save_come_to_a_stop_often_though_most_decisions_are_gone(monkeypatch, tmp_path):
    bandit = Bandit(["a", "b"], 1.0, start=1000.0, remember=0)
    for _ in range(600):
        bandit.ask()
    looked = bandit._ledger.view_pending()
    for id in range(1, 600):
        bandit.tell(id, reward=0.5, cost=0.5)
    stops = []

    def counted(parts):
        for part in parts:
            yield part
            stops.append(part)

    monkeypatch.setattr(status, "AT_ONCE", 10)
    monkeypatch.setattr(status, "in_turns", counted)
    monkeypatch.setattr(snapshot, "in_turns", counted)
    assert bandit.status().pending == 1
    assert len(stops) >= 600 // 10
    stops.clear()
    bandit.save(tmp_path / "saved")
    assert len(stops) >= 600 // snapshot.MANY
    assert state_of(Bandit.load(tmp_path / "saved")) == state_of(bandit)
    assert sum(1 for _ in looked.items()) == 600

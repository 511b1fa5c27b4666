"""A bandit belongs to one process: copies of it may spend nothing, and whoever drops it or dies lets its file go."""

import copy
import gc
import os
import pickle
import time
from threading import Thread

import elsewhere
import pytest
from journals import SETTINGS, assert_refuses_everything, begin_journal

from paceline import Bandit, InvalidValue, JournalFailed, JournalInUse

FORK = """
import os, sys
from paceline import Bandit, PacelineError
journal = sys.argv[1] if len(sys.argv) > 1 else None
bandit = Bandit(["a"], budget=1.0, policy="uniform", journal=journal)
bandit.credit(10.0)
bandit.ask()
if os.fork() == 0:
    for call in (bandit.ask, lambda: bandit.tell(1, 0.5, 0.1), lambda: bandit.credit(1.0), bandit.sync):
        try:
            call()
        except PacelineError as error:
            print(error, flush=True)
        else:
            print("spent twice", flush=True)
    os._exit(0)
os.wait()
bandit.tell(1, 0.5, 0.25)
bandit.ask()
print(os.getpid(), bandit.rounds, bandit.spent, bandit.headroom)
"""


@pytest.mark.parametrize("journal", [(), ("journal",)], ids=["alone", "journalled"])
def test_a_forked_copy_spends_nothing_and_its_parent_goes_on(tmp_path, journal):
    *refusals, last = elsewhere.run(FORK, *(tmp_path / name for name in journal))
    parent, rounds, spent, headroom = last.split()
    rule = "a forked copy must not use it, or the same money would be spent twice"
    assert refusals == [f"this bandit belongs to process {parent}; {rule}"] * 4
    assert (rounds, spent, headroom) == ("2", "0.25", "10.75")


INTERRUPTED = """
import os, signal, threading
from paceline import Bandit, PacelineError
from paceline.live.forks import watch


class Rude:
    def __init__(self):
        self.lock = threading.Lock()

    def rest(self):
        self.lock.acquire()
        os.kill(os.getpid(), signal.SIGINT)

    def go_on(self):
        os.kill(os.getpid(), signal.SIGINT)
        self.lock.release()


bandit, things = Bandit(["a"], budget=1.0, policy="uniform"), [Rude() for _ in range(3)]
for thing in things:
    watch().add_restable(thing)
child = os.fork()
if child == 0:
    try:
        bandit.ask()
    except PacelineError as error:
        print("refused", *(thing.lock.locked() for thing in things), flush=True)
    os._exit(0)
os.waitpid(child, 0)
bandit.ask()
print(bandit.rounds, *(thing.lock.locked() for thing in things))
os._exit(0)
"""


def test_an_interrupt_while_a_copy_is_made_leaves_nothing_locked_and_nobody_free():
    assert elsewhere.run(INTERRUPTED) == ["refused False False False", "1 False False False"]


ORPHAN = """
import os, sys, time
from paceline import Bandit
bandit = Bandit(["a"], budget=1.0, policy="uniform", journal=sys.argv[1], snapshot_every=1, rotate_every=2)
for _ in range(20):
    bandit.ask()
child = os.fork()
if child == 0:
    os.close(1)
    os.close(2)
    time.sleep(300)
print(child)
sys.stdout.flush()
os._exit(0)
"""


def test_a_copy_does_not_keep_the_journal_of_a_dead_owner(tmp_path):
    (child,) = elsewhere.run(ORPHAN, tmp_path / "journal")
    try:
        with Bandit.open(tmp_path / "journal") as bandit:
            assert bandit.rounds == 20
    finally:
        os.kill(int(child), 9)


@pytest.mark.parametrize("cycle", [False, True])
def test_a_bandit_that_is_dropped_frees_its_file(tmp_path, cycle):
    bandit = begin_journal(tmp_path / "journal")
    bandit.ask()
    if cycle:
        bandit.friend = bandit
    del bandit
    gc.collect()
    with Bandit.open(tmp_path / "journal") as again:
        assert again.rounds == 1


LEFT_OPEN = """
import os, sys
from paceline import Bandit
os.dup2(1, 2)  # what is said at the very end is said to nobody else
bandit = Bandit(["a"], 1.0, "uniform", journal=sys.argv[1])
bandit.ask()
def hold(): return bandit
hold.itself = hold
"""


def test_a_program_that_ends_with_a_journal_open_says_nothing(tmp_path):
    assert elsewhere.run(LEFT_OPEN, tmp_path / "journal") == []


def test_a_copy_or_a_pickle_is_refused():
    bandit = Bandit(**SETTINGS)
    line = r"\Aa Bandit must not be copied or pickled, or the same money would be spent twice; use save\Z"
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(InvalidValue, match=line):
            duplicate(bandit)


# Waiting for a journal.


def test_opening_waits_for_the_one_who_has_it(tmp_path):
    bandit = begin_journal(tmp_path / "journal")
    bandit.ask()
    found = []
    waiter = Thread(target=lambda: found.append(Bandit.open(tmp_path / "journal", wait=60)))
    waiter.start()
    time.sleep(0.05)
    assert not found
    bandit.close()
    waiter.join(60)
    assert found[0].rounds == 1
    found[0].close()


def test_waiting_has_an_end(tmp_path):
    with begin_journal(tmp_path / "journal") as bandit:
        with pytest.raises(JournalInUse, match=rf"but process {os.getpid()} on \S+ has it\Z"):
            Bandit.open(tmp_path / "journal", wait=0.05)
        bandit.ask()


@pytest.mark.parametrize("wait", [-1, float("nan"), "1", None])
def test_a_time_that_cannot_be_waited(tmp_path, wait):
    begin_journal(tmp_path / "journal").close()
    with pytest.raises(InvalidValue, match=r"\Await must be "):
        Bandit.open(tmp_path / "journal", wait=wait)


# A journal that is taken away.

LOOKS = 256  # lines after which it is seen at the latest
FAILED = r"\Ajournal .*journal must take every event, but: .*; reopen it\Z"


def work(bandit, kind, ids):
    for number in ids:
        if kind == "asks":
            bandit.ask()
        else:
            bandit.tell(number, 0.5, 0.25)


def truncated(path):
    os.truncate(path, 100)


def replaced(path):
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content)


def moved(path):
    path.rename(path.with_name("elsewhere"))


def added_to(path):
    with path.open("ab") as file:
        file.write(b"hello\n")


LOSSES = {"unlinked": os.unlink, "truncated": truncated, "replaced": replaced, "moved": moved, "added to": added_to}
every_loss = pytest.mark.parametrize("lose", LOSSES.values(), ids=LOSSES)


def assert_stopped(bandit, tmp_path):
    """Nothing more is done, but what is known can still be saved."""
    assert_refuses_everything(bandit)
    before = bandit.spent, bandit.reserved, bandit.credited
    bandit.save(tmp_path / "saved")
    loaded = Bandit.load(tmp_path / "saved")
    assert (loaded.spent, loaded.reserved, loaded.credited) == before
    loaded.ask()
    assert sum(1.0 for _ in loaded.pending) == loaded.reserved  # what nobody got the answer of is not reserved


@every_loss
@pytest.mark.parametrize("kind", ["asks", "tells"])
def test_a_lost_journal_is_noticed_after_a_while(tmp_path, lose, kind):
    bandit = begin_journal(tmp_path / "journal", budget=1.0, policy="uniform", max_cost=1.0)
    bandit.credit(1000.0)
    ids = [bandit.ask().id for _ in range(LOOKS)]
    lose(tmp_path / "journal")
    with pytest.raises(JournalFailed, match=FAILED):
        work(bandit, kind, ids)
    assert_stopped(bandit, tmp_path)


@every_loss
@pytest.mark.parametrize("look", [Bandit.sync, Bandit.snapshot])
def test_a_lost_journal_is_noticed_by_whoever_wants_to_be_sure(tmp_path, lose, look):
    bandit = begin_journal(tmp_path / "journal", budget=1.0, policy="uniform", max_cost=1.0)
    bandit.ask()
    look(bandit)
    bandit.ask()
    lose(tmp_path / "journal")
    with pytest.raises(JournalFailed, match=FAILED):
        look(bandit)
    assert_stopped(bandit, tmp_path)


@every_loss
def test_a_lost_journal_is_noticed_when_it_is_closed(tmp_path, lose):
    bandit = begin_journal(tmp_path / "journal", budget=1.0, policy="uniform", max_cost=1.0)
    bandit.ask()
    lose(tmp_path / "journal")
    with pytest.raises(JournalFailed, match=FAILED):
        bandit.close()
    assert_stopped(bandit, tmp_path)
    bandit.close()  # it was said


@every_loss
@pytest.mark.parametrize("kind", ["asks", "tells"])
def test_nothing_is_said_to_be_on_the_disk_in_a_journal_that_is_lost(tmp_path, lose, kind):
    bandit = begin_journal(tmp_path / "journal", budget=1.0, policy="uniform", max_cost=1.0, fsync=True)
    ids = [bandit.ask().id]
    lose(tmp_path / "journal")
    with pytest.raises(JournalFailed, match=FAILED):
        work(bandit, kind, ids)
    assert_stopped(bandit, tmp_path)


@every_loss
@pytest.mark.parametrize("kind", ["asks", "tells"])
def test_a_lost_journal_is_not_hidden_by_a_new_segment(tmp_path, lose, kind):
    every = 100
    settings = {"budget": 1.0, "policy": "uniform", "max_cost": 1.0, "rotate_every": every, "snapshot_every": None}
    bandit = begin_journal(tmp_path / "journal", **settings)
    bandit.credit(1000.0)
    ids = [bandit.ask().id for _ in range(every // 2)]
    lose(tmp_path / "journal")
    with pytest.raises(JournalFailed, match=FAILED):
        work(bandit, kind, (*ids, *ids))
    assert bandit._journal.lines <= every
    assert not list(tmp_path.glob("journal.0*"))
    assert_stopped(bandit, tmp_path)

"""Stores: one conformance suite on both engines, and what is special about each."""

import os
import re
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from functools import partial

import psycopg
import pytest

import paceline as pl
from paceline.errors import FleetExists, StoreFailed, UnknownFleet
from paceline.fleet import sql, sqlite, transactions
from paceline.fleet.protocol import HOUR, Hello, Sync
from paceline.fleet.sqlite import SQLiteStore
from paceline.fleet.store import check_name, open_store
from paceline.testing import check_store, stores

SETTINGS = {"arms": ["a", "b"], "budget": 0.5, "start": 8.0}
UNIT = 2**32


@pytest.fixture
def file(tmp_path):
    with open_store(f"sqlite:///{tmp_path}/fleet.db") as store:
        yield store


@pytest.fixture
def server(postgres):
    with open_store(postgres.address) as store:
        yield store


def test_sqlite_keeps_all_promises(file):
    check_store(file)


@pytest.mark.database
def test_postgres_keeps_all_promises(server):
    check_store(server)


def check_opening_at_once(address):
    """Many open a store that is not there yet: the tables are made once, and so is the fleet."""
    found = []

    def work():
        with open_store(address) as store:
            found.append(store.make("ads", SETTINGS, by="me"))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [False] * 7 + [True]


def check_a_copy_of_the_process(store, fleet):
    """A forked copy has a connection of its own, also if another thread was within a transaction."""
    within = threading.Event()

    def take_long(cursor):
        cursor.execute("UPDATE fleet SET name = name")
        within.set()
        time.sleep(0.3)

    thread = threading.Thread(target=store._do, args=(take_long,))
    thread.start()
    assert within.wait(10)
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        try:
            store.credit(fleet, {"cost": 1}, by="child")
        finally:
            os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert time.monotonic() - began < 5.0  # SQLite waits for ten seconds where it believes in a lock
    thread.join()
    store.credit(fleet, {"cost": 2}, by="parent")
    assert store.account(fleet).income == (8 * UNIT + 3,)


class WithMeanwhile:
    """A cursor; after each statement there is time for somebody else to do something."""

    def __init__(self, cursor, meanwhile):
        self.cursor, self.meanwhile = cursor, meanwhile
        self.fetchone, self.fetchall = cursor.fetchone, cursor.fetchall

    def execute(self, statement, values=()):
        self.cursor.execute(statement, values)
        self.meanwhile()


def check_a_picture_is_of_one_moment(address, fleet, monkeypatch):
    """Another connection moves money after each statement and each transaction of the one who looks."""
    settings = {**SETTINGS, "start": 64.0}
    with pl.join(address, fleet, sync_every=None, **settings) as member, open_store(address) as other:
        member.sync()
        peer = stores.Peer(other, fleet, "other")
        moves = []

        def move():
            rounds = len(moves)
            peer.figures = peer.figures._replace(rounds=rounds, minted=(rounds,), spent=(rounds,))
            peer.sync(target=rounds * UNIT)
            other.change(fleet, {"set": {"budget": 1.0 / rounds}}, by="me")

        def meanwhile():
            if not any(thread.is_alive() for thread in moves):
                moves.append(threading.Thread(target=move))
                moves[-1].start()
            moves[-1].join(0.2)  # who writes to a file waits for the reader

        do = member._store._do

        def do_slowly(work):
            found = do(lambda cursor: work(WithMeanwhile(cursor, meanwhile)))
            meanwhile()
            return found

        monkeypatch.setattr(member._store, "_do", do_slowly)
        for _ in range(3):
            seen = member.fleet_status()
            assert seen["pool"] + seen["headroom"] == seen["credited"] - seen["spent"] - seen["reserved"] > 0.0
            assert seen["rounds"] == sum(row["rounds"] for row in seen["workers"])
        for thread in moves:
            thread.join()
        assert len(moves) >= 3
        monkeypatch.undo()
        after = member.fleet_status()
        assert (after["rounds"], after["version"]) == (len(moves), len(moves) + 1)  # it was possible to write meanwhile


def test_a_picture_of_a_file_is_of_one_moment(tmp_path, monkeypatch):
    check_a_picture_is_of_one_moment(f"sqlite:///{tmp_path}/fleet.db", "ads", monkeypatch)


@pytest.mark.database
def test_a_picture_of_a_server_is_of_one_moment(postgres, monkeypatch):
    check_a_picture_is_of_one_moment(postgres.address, "one-moment", monkeypatch)


# The suite can fail: a store with one thing wrong each.


def forgets_credit_keys(store, monkeypatch):
    credit = store.credit
    monkeypatch.setattr(store, "credit", lambda fleet, amounts, by, key=None: credit(fleet, amounts, by))


def loses_news_at_once(store, monkeypatch):
    sync = store.sync

    def wrong(fleet, message):
        answer = sync(fleet, message)
        store._do(lambda cursor: cursor.execute("DELETE FROM inbox"))
        return answer

    monkeypatch.setattr(store, "sync", wrong)


def confirms_by_number_alone(store, monkeypatch):
    def wrong(cursor, fleet, life, heard):
        mine = (fleet, life, heard.number)
        cursor.execute("DELETE FROM inbox WHERE fleet = ? AND owner = ? AND number <= ?", mine)

    monkeypatch.setattr(store, "_confirm", wrong)


def grants_again(store, monkeypatch):
    monkeypatch.setattr(sql.protocol, "give", lambda wanted, pool: max(wanted, 0))


def forgives_debts(store, monkeypatch):
    sync = store.sync
    monkeypatch.setattr(
        store,
        "sync",
        lambda fleet, message: sync(fleet, message._replace(returned=tuple(max(each, 0) for each in message.returned))),
    )


def keeps_estates_for_itself(store, monkeypatch):
    monkeypatch.setattr(store, "_settle_estate", lambda *_: None)


def replaces_answers(store, monkeypatch):
    monkeypatch.setattr(store, "answer", lambda fleet, key, decision: dict(decision))


def keeps_revoked_tokens(store, monkeypatch):
    monkeypatch.setattr(store, "revoke_token", lambda label: True)


def shows_own_sums(store, monkeypatch):
    sync = store.sync

    def wrong(fleet, message):
        return sync(fleet, message)._replace(others=store.account(fleet).sums)

    monkeypatch.setattr(store, "sync", wrong)


def never_changes(store, monkeypatch):
    monkeypatch.setattr(store, "change", lambda fleet, change, by: 2)


def notes_nothing(store, monkeypatch):
    monkeypatch.setattr(store, "note", lambda fleet, by, what: None)


def lets_lives_go_on(store, monkeypatch):
    sync, hello = store.sync, store.hello

    def wrong(fleet, message):
        answer = sync(fleet, message)
        return answer if answer.row else hello(fleet, Hello(message.life, message.life))

    monkeypatch.setattr(store, "sync", wrong)


def looks_at_one_after_the_other(store, monkeypatch):
    picture = store.picture

    def wrong(fleet):
        account = picture(fleet).account
        time.sleep(0.01)
        return picture(fleet)._replace(account=account)

    monkeypatch.setattr(store, "picture", wrong)


@pytest.mark.parametrize(
    ("plant", "rule"),
    [
        (looks_at_one_after_the_other, stores.shows_one_moment),
        (forgets_credit_keys, stores.keeps_the_pool),
        (grants_again, stores.keeps_the_pool),
        (loses_news_at_once, stores.delivers_news),
        (confirms_by_number_alone, stores.delivers_news),
        (replaces_answers, stores.keeps_answers),
        (keeps_estates_for_itself, stores.keeps_estates),
        (forgives_debts, stores.takes_over_debts),
        (keeps_revoked_tokens, stores.keeps_tokens),
        (shows_own_sums, stores.shares_learning),
        (never_changes, stores.keeps_settings),
        (notes_nothing, stores.keeps_acts),
        (lets_lives_go_on, stores.keeps_rows),
    ],
)
def test_the_suite_finds_a_broken_store(plant, rule, file, monkeypatch):
    plant(file, monkeypatch)
    monkeypatch.setattr(stores, "CHECKS", (rule,))
    with pytest.raises(pl.PacelineError, match=re.escape(rule.__doc__.splitlines()[0])):
        check_store(file)


@pytest.mark.slow
def test_the_suite_finds_a_store_without_transactions(file, monkeypatch):
    """Reading and writing in transactions of their own: another thread comes in between."""
    monkeypatch.setattr(file, "_do", lambda work: work(Unguarded(file)))
    with pytest.raises(pl.PacelineError, match="Calls from many threads"):
        check_store(file)


class Unguarded:
    """Each statement in a connection and a transaction of its own."""

    def __init__(self, store):
        self.connection = sqlite3.connect(store.path, timeout=10, isolation_level=None)
        self.rows = []

    def execute(self, statement, values=()):
        self.rows = self.connection.execute(statement, values).fetchall()
        threading.Event().wait(0.001)

    def fetchone(self):
        return self.rows[0] if self.rows else None

    def fetchall(self):
        return self.rows


# Income by the clock.


def test_the_clock_mints_at_most_the_cap(tmp_path):
    now = [1_700_000_000.0]
    settings = {"arms": ["a"], "hourly": 3.0, "cap": 10.0}
    with SQLiteStore(tmp_path / "fleet.db", clock=lambda: now[0]) as store:
        store.make("ads", settings, by="me")
        row = store.hello("ads", Hello("w", "w")).row

        def pool():
            seen.append(len(seen) + 1)
            message = Sync("w", row, len(seen), 0, (0,), (0,), (0,), (0,), (0,), {}, version=1)
            return store.sync("ads", message).pool[0] / UNIT

        seen: list[int] = []
        now[0] += 3600
        assert pool() == 3.0
        now[0] -= 3600  # set back by an hour
        assert pool() == 3.0
        now[0] += 3600
        assert pool() == 3.0  # the hour is not paid twice
        now[0] += 60
        assert pool() == pytest.approx(3.05)
        now[0] += 1000 * HOUR
        assert pool() == 10.0
        store.change("ads", {"set": {"hourly": 0.0}}, by="me")
        store.credit("ads", {"cost": 5 * UNIT}, by="me")
        now[0] += 3600
        assert pool() == 15.0  # a credit may be above the cap


def test_news_that_nobody_claims_goes_after_some_days_or_when_there_is_much_of_it(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(sql, "MOST_UNCLAIMED", 3)
    with SQLiteStore(tmp_path / "fleet.db", clock=lambda: now[0]) as store:
        store.make("ads", SETTINGS, by="me")

        def claimed(life):
            row = store.hello("ads", Hello(life, life)).row
            message = Sync(life, row, 1, 0, (0,), (0,), (0,), (0,), (0,), {}, 0.0, 1)
            return [news["id"] for _, news in store.sync("ads", message).news]

        for number in range(5):
            store.send("ads", [("many", {"id": f"many-{number}"})])
        assert claimed("many") == ["many-2", "many-3", "many-4"]
        store.send("ads", [("old", {"id": "old-1"})])
        now[0] += 3 * 24 * 3600
        store.send("ads", [("new", {"id": "new-1"})])
        assert (claimed("old"), claimed("new")) == ([], ["new-1"])
    with closing(sqlite3.connect(tmp_path / "fleet.db")) as connection:
        assert connection.execute("SELECT * FROM unclaimed").fetchall() == []  # what was claimed is there once


# Files.


def test_a_file_is_kept_and_the_tables_are_made_once(tmp_path):
    for _ in range(2):
        with open_store(f"sqlite:///{tmp_path}/fleet.db") as store:
            store.make("ads", SETTINGS, by="me")
    with closing(sqlite3.connect(tmp_path / "fleet.db")) as connection:
        assert connection.execute("SELECT number FROM migration").fetchall() == [(number,) for number in range(1, 7)]
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_call_waits_for_others_once(tmp_path, monkeypatch):
    """Opening a file and using it are two waits, for which there is one limit."""
    monkeypatch.setattr(sqlite, "PATIENCE", 1.5)
    with SQLiteStore(tmp_path / "fleet.db") as store, closing(sqlite3.connect(tmp_path / "fleet.db")) as other:
        identify, migrate = store._identify, store._migrate

        def be_slow(cursor):
            time.sleep(1.0)
            migrate(cursor)

        def lock():
            other.execute("BEGIN IMMEDIATE")
            return identify()

        store.close()
        monkeypatch.setattr(store, "_migrate", be_slow)
        monkeypatch.setattr(store, "_look_at_file", lambda: None)
        monkeypatch.setattr(store, "_identify", lock)  # between the two
        begun = time.monotonic()
        with pytest.raises(StoreFailed, match="locked"):
            store.fleets()
        assert 1.0 < time.monotonic() - begun < 2.2  # and not 2.5
        other.rollback()


def test_a_file_that_is_gone_is_noticed_and_not_made_anew(tmp_path):
    """Else grants would be written to a file that nobody can read any more, and granted again from another."""
    store = SQLiteStore(tmp_path / "fleet.db")
    store.make("ads", SETTINGS, by="me")
    away = tmp_path / "away"
    away.mkdir()
    for file in list(tmp_path.glob("fleet.db*")):
        file.rename(away / file.name)
    for _ in range(2):
        with pytest.raises(StoreFailed, match="is not there any more"):
            store.fleets()
    assert list(tmp_path.glob("fleet.db*")) == []
    for file in away.iterdir():
        file.rename(tmp_path / file.name)
    assert store.fleets() == ["ads"]
    store.close()
    (tmp_path / "fleet.db").rename(tmp_path / "old.db")
    SQLiteStore(tmp_path / "fleet.db").close()  # another file in its place
    assert store.fleets() == []
    store.close()


def test_migrations_are_in_the_package_and_in_order():
    numbers = [number for number, _ in transactions.migrations()]
    assert numbers == list(range(1, len(numbers) + 1))
    assert all(statements for _, statements in transactions.migrations())


def test_two_stores_in_threads_of_their_own_open_at_once(tmp_path):
    check_opening_at_once(f"sqlite:///{tmp_path}/fleet.db")


def test_a_store_goes_on_after_close_and_in_a_copy_of_the_process(file):
    file.make("ads", SETTINGS, by="me")
    file.close()
    assert file.fleets() == ["ads"]
    check_a_copy_of_the_process(file, "ads")


@pytest.mark.slow
def test_processes_write_the_same_file(tmp_path):
    code = (
        "import sys; from paceline.fleet.store import open_store\n"
        "with open_store(sys.argv[1]) as store:\n"
        f"    store.make('ads', {SETTINGS!r}, by='me')\n"
        "    for _ in range(50): store.credit('ads', {'cost': 1}, by='me')\n"
    )
    url = f"sqlite:///{tmp_path}/fleet.db"
    processes = [subprocess.Popen([sys.executable, "-c", code, url]) for _ in range(4)]
    assert [process.wait(timeout=120) for process in processes] == [0] * 4
    with open_store(url) as store:
        assert store.account("ads").income == (8 * UNIT + 200,)


def test_a_file_that_is_no_database_is_one_line(tmp_path):
    path = tmp_path / "fleet.db"
    path.write_bytes(b"not a database, and long enough to be looked at" * 100)
    with pytest.raises(StoreFailed, match=r"fleet\.db cannot be used: DatabaseError: file is not a database"):
        open_store(f"sqlite:///{path}")


@pytest.mark.parametrize("url", ["", "mysql://x", "file.db", None, "postgresql://"])
def test_addresses_that_are_none(url):
    with pytest.raises(pl.InvalidValue, match=r"a store must be at sqlite:///FILE or postgresql://"):
        open_store(url)


def test_a_password_is_in_no_message():
    with pytest.raises(pl.InvalidValue) as found:
        open_store("mysql://me:secret@host/db")
    assert "secret" not in str(found.value)


@pytest.mark.parametrize("url", ["sqlite://fleet.db", "sqlite:///", "sqlite://"])
def test_slashes_of_an_sqlite_store(url):
    with pytest.raises(pl.InvalidValue, match=f"three slashes before a file, or four .* got '{url}'"):
        open_store(url)


# What is refused.


@pytest.mark.parametrize("name", ["", "../../x", "<script>", "a b", "x" * 101, None, 3, "ä"])
def test_names_that_are_refused(name, file):
    with pytest.raises(pl.InvalidValue, match="fleet must be a name of up to 100 letters"):
        file.make(name, SETTINGS, by="me")
    assert file.fleets() == []
    with pytest.raises(pl.InvalidValue):
        check_name("worker", name)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "settings of a fleet must name its arms"),
        ({"arms": ["a"], "bugdet": 1}, "settings of a fleet must be of arms, budget, .* got 'bugdet'"),
        ({"arms": ["a"], "budget": -1}, "budget must be a finite number of at least 0"),
        ({"arms": ["a"], "policy": "suak"}, "must form its beliefs from sums"),
        ({"arms": ["a"], "policy": {"name": 3}}, "policy must have a name and parameters"),
        ({"arms": ["a"], "start": 5.0}, "rounds must say how long"),
        ({"arms": ["a"], "hourly": 5.0}, "hourly must have a cap"),
    ],
)
def test_settings_that_are_refused(settings, message, file):
    with pytest.raises(pl.PacelineError, match=message):
        file.make("ads", settings, by="me")
    assert file.fleets() == []


def test_other_settings_are_named(file):
    file.make("ads", SETTINGS, by="me")
    with pytest.raises(FleetExists, match=r"^ads is there with budget = 0\.5; it must be the same, got 0\.25"):
        file.make("ads", {**SETTINGS, "budget": 0.25}, by="me")


def test_settings_are_the_same_however_they_are_written(file):
    file.make("ads", {"arms": ("a", "b"), "budget": 1, "policy": "index"}, by="me")
    assert not file.make("ads", {"arms": ["a", "b"], "budget": 1.0, "policy": pl.IndexPacer()}, by="me")


def test_calls_on_a_fleet_that_is_none(file):
    message = Sync("w", 1, 1, 0, (0,), (0,), (0,), (0,), (0,), {})
    calls = [
        lambda: file.settings("x"),
        lambda: file.origin("x"),
        lambda: file.change("x", {"pause": "a"}, by="me"),
        lambda: file.credit("x", {"cost": 1}, by="me"),
        lambda: file.hello("x", Hello("w", "w")),
        lambda: file.sync("x", message),
        lambda: file.send("x", [("w", {})]),
        lambda: file.answer("x", "k", {}),
        lambda: file.workers("x"),
        lambda: file.close_worker("x", "w", "w", by="me"),
        lambda: file.acts("x"),
        lambda: file.note("x", "me", {}),
        lambda: file.account("x"),
    ]
    for call in calls:
        with pytest.raises(UnknownFleet, match="name must be one that was made in this store, got 'x'"):
            call()


def test_several_resources(file):
    settings = {"arms": ["a"], "budget": {"money": 0.5, "calls": 1.0}, "start": {"money": 3.0}, "max_cost": 1.0}
    file.make("ads", settings, by="me")
    file.credit("ads", {"calls": 7}, by="me")
    assert file.account("ads").pool == (3 * UNIT, 7)


# PostgreSQL.


@pytest.mark.database
def test_a_server_that_was_restarted_is_found_again(postgres, server):
    fleet = "restarted"
    server.make(fleet, SETTINGS, by="me")
    server.credit(fleet, {"cost": 1}, by="me")
    postgres.restart()
    server.credit(fleet, {"cost": 1}, by="me")  # the broken connection is made anew
    assert server.account(fleet).income == (8 * UNIT + 2,)


@pytest.mark.database
def test_a_server_that_is_gone_is_one_line(postgres):
    with open_store(postgres.empty_database("gone")) as store:
        store.make("ads", SETTINGS, by="me")
        postgres.stop("immediate")
        try:
            with pytest.raises(StoreFailed, match="the store cannot be used: OperationalError"):
                store.fleets()
        finally:
            postgres.start()
        assert store.fleets() == ["ads"]


@pytest.mark.database
def test_commits_wait_for_the_disk(server):
    def setting(cursor):
        cursor.execute("SHOW synchronous_commit")
        return cursor.fetchone()[0]

    assert server._do(setting) == "on"


OLD = {
    "unclaimed": "INSERT INTO unclaimed (fleet, number, owner, document, time) VALUES ('third', %s, 'w', '{}', %s)",
    "kept": "INSERT INTO kept (fleet, code, document, time) VALUES ('third', %s, '{}', %s)",
}


@pytest.mark.database
@pytest.mark.parametrize("table", OLD)
def test_fleets_that_clear_up_at_once_do_not_wait_for_each_other(table, postgres):
    """Two that delete the same old rows, one as they lie and one by their time, while the middle one is kept."""
    address = postgres.empty_database(f"clearing_{table}")

    def clear_up(store, fleet):
        if table == "kept":
            store.answer(fleet, "k", {})
        else:
            store.send(fleet, [("nobody", {"id": "nobody-1"})])

    plans = {"one": ("index", "bitmap"), "other": ("seq", "bitmap")}
    with open_store(address) as one, open_store(address) as other, psycopg.connect(address) as third:
        made = {"one": one, "other": other}
        for fleet, store in made.items():
            store.make(fleet, SETTINGS, by="me")
            for plan in plans[fleet]:
                store._do(partial(set_off, plan))
        for number in range(3):
            third.execute(OLD[table], (number, 3 - number))
        third.commit()
        third.execute(f"SELECT * FROM {table} WHERE time = 2 FOR UPDATE")
        with ThreadPoolExecutor(2) as pool:
            calls = [pool.submit(clear_up, store, fleet) for fleet, store in made.items()]
            waiting = wait(calls, 3.0).not_done
            third.rollback()
            for call in calls:
                call.result()
        assert not waiting


def set_off(plan, cursor):
    cursor.execute(f"SET enable_{plan}scan TO off")


@pytest.mark.database
def test_many_make_the_tables_at_once(postgres):
    check_opening_at_once(postgres.empty_database("at_once"))


@pytest.mark.database
def test_a_copy_of_the_process_has_a_connection_of_its_own(postgres, server):
    server.make("forked", SETTINGS, by="me")
    check_a_copy_of_the_process(server, "forked")


def test_without_psycopg_it_is_said_what_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, "paceline.fleet.postgres", raising=False)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StoreFailed, match=r'pip install "paceline\[fleet\]"'):
        open_store("postgresql://host/db")


def test_those_who_wait_while_a_store_hangs_fail_with_it(file, monkeypatch):
    def hang(_):
        time.sleep(0.3)
        raise StoreFailed("it hangs")

    def call():
        begun = time.monotonic()
        with pytest.raises(StoreFailed, match="it hangs"):
            file.fleets()
        waits.append(time.monotonic() - begun)

    waits = []
    with monkeypatch.context() as patch:
        patch.setattr(transactions, "LONG", 0.1)
        patch.setattr(file, "_in_transaction", hang)
        threads = [threading.Thread(target=call) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(waits) == 20
    assert max(waits) < 3.0  # and not six seconds, one after the other
    assert file.fleets() == []  # whoever comes later tries again

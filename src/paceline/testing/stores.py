"""Does a store keep its promises? What the author of a store runs; those in paceline pass it, too."""

import hashlib
import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Event
from typing import Any

from paceline.errors import FleetExists, InvalidValue, PacelineError, UnknownFleet, UnknownName, in_one_line
from paceline.fleet.protocol import Figures, Heard, Hello, Left, Standing, Sync, compose, give_back, take
from paceline.fleet.store import Store

SETTINGS: Mapping[str, Any] = {"arms": ["a", "b"], "budget": 0.5, "start": 8.0}
UNITS = 2**32  # in the largest cost
WRONG_CHANGES: tuple[Mapping[str, Any], ...] = (
    {"set": {"budget": -1.0}},
    {"add": {"arm": "a"}},
    {"pause": "nobody"},
    {"fly": 1},
    {"set": {}},
    {},
)


def check_store(store: Store) -> None:
    """Raise `PacelineError` with a line for every rule that a store breaks.

    It makes some fleets with names of its own, and a token that it revokes.

    >>> from tempfile import TemporaryDirectory
    >>> from paceline.fleet.store import open_store
    >>> with TemporaryDirectory() as folder, open_store(f"sqlite:///{folder}/ads.db") as store:
    ...     check_store(store)
    """
    broken = []
    for check in CHECKS:
        try:
            check(store, f"check-{secrets.token_hex(8)}")
        except Exception as error:  # whatever a store may raise
            broken.append(f"{(check.__doc__ or '').splitlines()[0]} {in_one_line(error)}")
    if broken:
        raise PacelineError("\n".join(broken))


def is_refused(kind: type[PacelineError], call: Callable[[], Any]) -> bool:
    """Whether a call raises an error of this kind."""
    try:
        call()
    except kind:
        return True
    return False


class Peer:
    """A worker, as far as a store can see it."""

    def __init__(self, store: Store, fleet: str, life: str) -> None:
        self.store, self.fleet = store, fleet
        self.standing = Standing(life, (0,), (0,))
        self.figures = Figures(0, (0,), (0,), (0,), {})
        self.version = 1
        self.heard: Heard | None = None
        self.standing, _ = take(self.standing, store.hello(fleet, Hello(life, life)))

    def message(self, target: int = 0, closing: bool = False) -> Sync:
        """What it would say now."""
        self.standing, message = compose(
            self.standing, self.figures, (target,), self.version, self.heard, closing=closing
        )
        return message

    def sync(self, target: int = 0, closing: bool = False) -> Any:
        """Say it."""
        answer = self.store.sync(self.fleet, self.message(target, closing))
        self.standing, _ = take(self.standing, answer)
        return answer

    def hear(self) -> None:
        """Take in the news that is there; the next message says so."""
        for number, document in self.sync().news:
            self.heard = Heard(number, document["id"])


def keeps_settings(store: Store, fleet: str) -> None:
    """A fleet is made once, and its settings have versions."""
    assert is_refused(UnknownFleet, lambda: store.settings(fleet)), "settings of a fleet that was not made"
    assert store.make(fleet, SETTINGS, by="me") is True, "make of a new fleet is not True"
    assert store.make(fleet, dict(SETTINGS), by="me") is False, "make of the same fleet is not False"
    assert is_refused(FleetExists, lambda: store.make(fleet, {**SETTINGS, "budget": 0.25}, by="me")), "other settings"
    assert is_refused(InvalidValue, lambda: store.make("../x", SETTINGS, by="me")), "a name with slashes"
    assert fleet in store.fleets(), "the fleet is not among the fleets"
    assert store.settings(fleet).version == 1, "the first version is not 1"
    assert store.change(fleet, {"set": {"budget": 0.25}}, by="me") == 2, "the second version is not 2"
    assert store.change(fleet, {"add": {"arm": "c"}}, by="me") == 3, "the third version is not 3"
    assert store.change(fleet, {"pause": "a"}, by="me") == 4, "the fourth version is not 4"
    for change in WRONG_CHANGES:
        assert is_refused(PacelineError, partial(store.change, fleet, change, "me")), f"{change} is not refused"
    version, document = store.settings(fleet)
    assert version == 4, "a refused change has made a version"
    assert document["budget"] == 0.25, "the budget is not the one that was set"
    assert document["arms"] == {"a": "paused", "b": "active", "c": "active"}, f"the arms are {document['arms']}"
    _, changes = store.origin(fleet)
    assert changes == [{"set": {"budget": 0.25}}, {"add": {"arm": "c"}}, {"pause": "a"}], "changes are not as made"


def keeps_the_pool(store: Store, fleet: str) -> None:
    """Money is granted once, from what there is."""
    store.make(fleet, SETTINGS, by="me")
    one, other = Peer(store, fleet, "one"), Peer(store, fleet, "other")
    message = one.message(target=5 * UNITS)
    answers = [store.sync(fleet, message) for _ in range(3)]  # the same message, doubled
    assert [answer.granted for answer in answers] == [(5 * UNITS,)] * 3, "a doubled message is granted twice"
    assert answers[-1].pool == (3 * UNITS,), "the pool does not have the rest"
    one.standing, more = take(one.standing, answers[0])
    assert more == (5 * UNITS,), "the first answer does not bring the grant"
    assert other.sync(target=5 * UNITS).granted == (3 * UNITS,), "more is granted than there is"
    one.standing = give_back(one.standing, (4 * UNITS,))
    late = one.message()
    assert one.sync().pool == (4 * UNITS,), "what is handed back is not in the pool"
    assert store.sync(fleet, late).pool == (4 * UNITS,), "a message that was overtaken counts"
    new = [store.credit(fleet, {"cost": UNITS}, by="me", key="k") for _ in range(2)]
    assert new == [True, False], "it is not said whether a credit has come in now"
    other_amount = is_refused(InvalidValue, lambda: store.credit(fleet, {"cost": 2 * UNITS}, by="me", key="k"))
    assert other_amount, "a credit with the same key and another amount is not refused"
    store.credit(fleet, {"cost": UNITS}, by="me")
    assert store.account(fleet).pool == (6 * UNITS,), "a credit with the same key counts twice, or one is lost"
    assert is_refused(InvalidValue, lambda: store.credit(fleet, {"gold": 1}, by="me")), "a credit of another resource"
    assert is_refused(InvalidValue, lambda: store.credit(fleet, {"cost": -1}, by="me")), "a credit below 0"
    large = 2**70
    store.credit(fleet, {"cost": large}, by="me")
    assert store.account(fleet).pool == (6 * UNITS + large,), "large amounts are not exact"


def keeps_rows(store: Store, fleet: str) -> None:
    """A row is a life: it is closed once, and what comes late changes nothing."""
    store.make(fleet, SETTINGS, by="me")
    peer, watcher = Peer(store, fleet, "w"), Peer(store, fleet, "watcher")
    peer.figures = Figures(3, (3,), (1,), (1,), {"a": (1, 2)}, 0.5)
    peer.sync()
    row = next(row for row in store.workers(fleet) if row.life == "w")
    assert (row.rounds, row.spent, row.reserved, row.headroom, row.closed) == (3, (1,), (1,), (1,), False), f"{row}"
    store.close_worker(fleet, "w", "w", by="me")
    assert [row.closed for row in store.workers(fleet)] == [True, False], "a worker that was closed is not shown so"
    peer.sync()
    assert [row.closed for row in store.workers(fleet)] == [False, False], "a worker that lives is shown as closed"
    assert is_refused(UnknownName, lambda: store.close_worker(fleet, "w", "v", by="me")), "a life that is none"
    peer.standing = give_back(peer.standing, (1,))
    last = peer.message(closing=True)
    assert store.sync(fleet, last).row > 0, "closing is not answered"
    for message in (last, last._replace(seq=99, returned=(9,))):
        answer = store.sync(fleet, message)
        assert answer.row == 0, "a life that has closed goes on"
    assert store.hello(fleet, Hello("w", "w")).row > last.row, "a number is given twice"
    assert store.sync(fleet, last).row == 0, "a message of an earlier life counts"
    account = store.account(fleet)
    assert account.pool == (8 * UNITS + 1,), "money came from nowhere"
    assert (account.past.lives, account.past.rounds) == (1, 3), "the past has not heard of it"
    assert watcher.sync().others == {"a": (1, 2)}, "what a closed life has learned is forgotten"


def shares_learning(store: Store, fleet: str) -> None:
    """Sums of others are complete, and one's own are not among them."""
    store.make(fleet, SETTINGS, by="me")
    peers = [Peer(store, fleet, f"w{number}") for number in range(3)]
    for number, peer in enumerate(peers):
        peer.figures = peer.figures._replace(rounds=10, sums={"a": (number + 1, 10**30)})
        peer.sync()
    assert peers[0].sync().others == {"a": (5, 2 * 10**30)}, "the sums of the others are not theirs"
    assert peers[0].sync().rounds == 30, "the rounds of the fleet are not all"
    store.change(fleet, {"pause": "a"}, by="me")
    answer = peers[1].sync()
    assert (answer.version, list(answer.changes)) == (2, [{"pause": "a"}]), "a change is not handed out"
    peers[1].version = 2
    assert peers[1].sync().changes == (), "a change is handed out again"


def delivers_news(store: Store, fleet: str) -> None:
    """News reaches its owner until it is confirmed, and after its death somebody else."""
    store.make(fleet, SETTINGS, by="me")
    one, other = Peer(store, fleet, "one"), Peer(store, fleet, "other")
    store.send(fleet, [("one", {"id": "one-1", "reward": 0.5})])
    assert other.sync().news == (), "news reaches somebody else"
    (number, document), *_ = one.sync().news
    assert document == {"id": "one-1", "reward": 0.5}, "news is not what was sent"
    assert one.sync().news[0][0] == number, "news is gone before it was confirmed"
    one.heard = Heard(number, "one-0")
    assert len(one.sync().news) == 1, "news is gone because other news of that number was confirmed"
    one.hear()
    assert one.sync().news == (), "news comes again after it was confirmed"
    one_is_wrong: list[tuple[str, dict[str, str]]] = [("one", {"id": "one-9"}), ("no name", {"id": "x"})]
    assert is_refused(InvalidValue, lambda: store.send(fleet, one_is_wrong)), "news for a name that nobody can have"
    assert one.sync().news == (), "a refused call has sent some of its news"
    store.send(fleet, [("one", {"id": "one-2"}), ("other", {"id": "other-1"}), ("one", {"id": "one-3"})])
    assert [document["id"] for _, document in one.sync().news] == ["one-2", "one-3"], "news is lost, or out of order"
    other.hear()
    store.close_worker(fleet, "one", "one", by="me")
    store.send(fleet, [("one", {"id": "one-4"}), ("nobody", {"id": "nobody-1"})])
    store.send(fleet, [])
    found = [document["id"] for _, document in other.sync().news]
    assert found == ["one-2", "one-3", "one-4"], "news of the dead is lost, or there is some of nobody"
    store.send(fleet, [("nobody", {"id": "nobody-2"})])
    nobody = Peer(store, fleet, "nobody")  # it began while the store was away
    found = [document["id"] for _, document in nobody.sync().news]
    assert found == ["nobody-1", "nobody-2"], "news of one that had not said hello yet is lost"
    nobody.hear()
    assert nobody.sync().news == (), "news of one that had not said hello comes again"


def keeps_estates(store: Store, fleet: str) -> None:
    """What a closing worker left open is settled once, by whoever tells of it."""
    store.make(fleet, SETTINGS, by="me")
    peer, heir = Peer(store, fleet, "w"), Peer(store, fleet, "heir")
    peer.figures = Figures(9, (7 * UNITS,), (0,), (7 * UNITS,), {})
    peer.sync()
    Peer(store, fleet, "dead")
    store.close_worker(fleet, "dead", "dead", by="me")
    store.send(fleet, [("dead", {"id": "dead-2.0", "reward": 1.0, "cost": 0.0})])
    assert [document["id"] for _, document in peer.sync().news] == ["dead-2.0"], "news of the dead is lost"
    store.send(fleet, [("w", {"id": "w-1.0", "reward": 1.0, "cost": 0.25})] * 2)
    estate = dict.fromkeys(range(1, 8), Left((UNITS,)))
    store.sync(fleet, peer.message(closing=True)._replace(estate=estate))
    found = store.account(fleet).pool
    assert found == (8 * UNITS + 3 * UNITS // 4,), "news that was waiting is not settled, or as that of a namesake"
    learned = [document["id"] for _, document in heir.sync().news]
    assert learned == ["dead-2.0", "w-1.0"], "news that was waiting is lost, or teaches twice"
    heir.hear()
    news = [{"id": "w-2.0", "cost": 0.5}, {"id": "w-3.0", "cancel": True}, {"id": "w-4.0", "expire": True}]
    for each in (
        *news,
        *news,
        {"id": "w-5.0", "reward": 1.0},
        {"id": "w-5.0", "cancel": True},  # it has a part of its outcome
        {"id": "w-6.0", "cost": 9.0},
        {"id": "w-99.0", "cost": 0},
    ):
        store.send(fleet, [("w", each)])
    account = store.account(fleet)
    assert account.pool == (8 * UNITS + 9 * UNITS // 4,), f"the pool has {account.pool[0] / UNITS}, not 10.25"
    assert (account.past.spent, account.past.reserved) == ((11 * UNITS // 4,), (2 * UNITS,)), "the past is not right"
    store.send(fleet, [("w", {"id": "w-7.0", "cost": 12.0, "overrun": True})])
    account = store.account(fleet)
    assert account.past.spent == (59 * UNITS // 4,), "an overrun is not booked"
    assert account.pool == (-3 * UNITS // 4,), "the pool does not pay for an overrun"
    assert heir.sync(target=5 * UNITS).granted == (0,), "something is granted before the pool is repaid"


def takes_over_debts(store: Store, fleet: str) -> None:
    """A worker that closes hands over what it owes, and the pool repays that first."""
    store.make(fleet, SETTINGS, by="me")
    peer, heir = Peer(store, fleet, "w"), Peer(store, fleet, "heir")
    peer.figures = Figures(2, (UNITS,), (12 * UNITS,), (0,), {})
    assert peer.sync().granted == (8 * UNITS,), "a worker that owes does not get what there is"
    peer.standing = give_back(peer.standing, (-3 * UNITS,))
    message = peer.message(closing=True)
    for _ in range(2):
        store.sync(fleet, message)
    assert store.account(fleet).pool == (-3 * UNITS,), "a debt is forgotten, or counted twice"
    store.credit(fleet, {"cost": 2 * UNITS}, by="me")
    answer = heir.sync(target=5 * UNITS)
    assert (answer.granted, answer.pool) == ((0,), (-UNITS,)), "something is granted before the debt is repaid"
    heir.standing = give_back(heir.standing, (UNITS,))
    store.credit(fleet, {"cost": 2 * UNITS}, by="me")
    assert heir.sync(target=5 * UNITS).granted == (2 * UNITS,), "what comes after the debt is not granted"


def keeps_answers(store: Store, fleet: str) -> None:
    """The first answer to a request is kept."""
    store.make(fleet, SETTINGS, by="me")
    assert store.kept_answer(fleet, "k") is None, "an answer that was never given"
    assert store.answer(fleet, "k", {"arm": "a"}) == {"arm": "a"}, "the first answer is not kept"
    assert store.answer(fleet, "k", {"arm": "b"}) == {"arm": "a"}, "the second answer replaces the first"
    assert store.kept_answer(fleet, "k") == {"arm": "a"}, "the answer is not found"


def keeps_acts(store: Store, fleet: str) -> None:
    """What was done on purpose is written down, in order."""
    store.make(fleet, SETTINGS, by="me")
    store.note(fleet, "you", {"look": "<script>"})
    first, second = store.acts(fleet)
    assert (first.number, first.by) == (1, "me"), "the making is not the first act"
    assert (second.number, second.by, second.what) == (2, "you", {"look": "<script>"}), "a note is not as it was made"
    assert store.acts(fleet, after=1) == [second], "acts after the first are not the second"


def keeps_tokens(store: Store, fleet: str) -> None:
    """Tokens are found by their digest until they are revoked."""
    digest = hashlib.sha256(fleet.encode()).digest()
    store.add_token(digest, fleet, "reader")
    found = store.token(digest)
    assert found is not None, "a token is not found"
    assert (found.label, found.role) == (fleet, "reader"), "a token is not as it was made"
    assert is_refused(InvalidValue, lambda: store.add_token(b"other", fleet, "reader")), "a label that is taken"
    assert found in store.tokens(), "a token is not in the list"
    assert found.digest == digest, "a token has another digest"
    assert store.token(hashlib.sha256(b"other").digest()) is None, "a token that is none"
    assert store.revoke_token(fleet) is True, "revoking a token is not True"
    assert store.revoke_token(fleet) is False, "revoking nothing is not False"
    assert store.token(digest) is None, "a revoked token is found"


def takes_turns(store: Store, fleet: str) -> None:
    """Calls from many threads happen one after the other: nothing is lost, nothing granted twice."""
    store.make(fleet, SETTINGS, by="me")
    peers = [Peer(store, fleet, f"w{number}") for number in range(8)]

    def work(peer: Peer) -> int:
        for _ in range(5):
            peer.sync(target=peer.standing.granted[0] + UNITS)
            store.credit(fleet, {"cost": 1}, by=peer.standing.life)
        return peer.standing.granted[0]

    with ThreadPoolExecutor(8) as pool:
        granted = sum(pool.map(work, peers))
    account = store.account(fleet)
    assert account.income == (8 * UNITS + 40,), "a credit is lost"
    assert granted + account.pool[0] == account.income[0], "grants and pool are not the income"


def shows_one_moment(store: Store, fleet: str) -> None:
    """A picture is of one moment: money on its way is in one place, also while others move it."""
    store.make(fleet, SETTINGS, by="me")
    peer, is_over = Peer(store, fleet, "w"), Event()

    def move() -> None:
        while not is_over.is_set():
            peer.sync(target=4 * UNITS)
            peer.standing = give_back(peer.standing, (4 * UNITS,))
            peer.sync()

    with ThreadPoolExecutor(1) as pool:
        moving = pool.submit(move)
        try:
            for _ in range(50):
                account, rows, settings = store.picture(fleet)
                held = sum(row.headroom[0] for row in rows)
                assert held + account.pool[0] == 8 * UNITS, f"{held} are held, the pool has {account.pool[0]}"
                assert settings == store.settings(fleet), "the settings are others"
        finally:
            is_over.set()
        moving.result()


CHECKS = (
    keeps_settings,
    keeps_the_pool,
    keeps_rows,
    shares_learning,
    delivers_news,
    keeps_estates,
    takes_over_debts,
    keeps_answers,
    keeps_acts,
    keeps_tokens,
    takes_turns,
    shows_one_moment,
)

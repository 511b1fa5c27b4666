"""What a worker and the store say to each other, and what each of them does with it. No input, no output, no clock.

The promise of a fleet, for each resource: all that its workers have spent and reserved is at most all that has come in,

    sum over workers (spent + reserved)  <=  sum over workers (minted)  +  income of the pool.

A worker *mints*: each of its rounds brings the budget of a round, as in any `Bandit`. The *pool* is in the store. What
is not minted by rounds comes in there (start stock, credits, income by the clock), and what workers hand back. A worker
gets it as a *grant*.

Why it holds, at any instant, whatever is lost, doubled, late or dead. A worker guards its own line by itself:

    spent + reserved  <=  minted + granted - returned.                                                     (worker)

All that is said is cumulative and has one writer: ``returned`` the worker, who debits its own line BEFORE it says so,
``granted`` the store, which debits the pool BEFORE it says so. So the store's ``returned`` of a worker is at most the
worker's, and the worker's ``granted`` at most the store's. The pool is never below 0 and is always

    pool  =  income + sum of returned - sum of granted                                                      (store)

by the store's figures. Add (worker) over all workers, put the store's figures in, which can only make the right side
larger, and use (store):  sum (spent + reserved) <= sum minted + income - pool.  No clock, lock or lease is in it.

A cost above what was reserved for it, an *overrun*, is booked in spite of the line, and leaves a debt: headroom below
0. Nothing is reserved by a worker, and nothing granted by the pool, until its debt is repaid. A worker repays by its
own rounds. One that closes hands its debt over: it gives back less than nothing, its line ends at 0, and the pool is
below 0. Whatever comes into the pool repays it first, and every worker that has headroom pays its share
(`share_of_debt`). With debts the right side above is larger by what is owed, by workers, by the pool, or on the way
from one to the other.

A message that is lost is made up for by the next; one that comes twice or late says nothing new (``seq``). A row of the
store belongs to one *life*: the worker says hello, and the store numbers what it makes for it. A life that closes
itself is added to the ``past`` and its row is gone, so that thousands of short lives are one row; whatever of it still
is on its way finds no row with its number, and changes nothing.

Nothing is ever taken back from a worker that is silent, not even when an operator says that it is dead. Its last report
says what it had then; since then it may have spent all of it, and truly. So a mistaken close costs nothing but a word:
the worker that lives goes on by its own line, and its next message opens its row again.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

Units = tuple[int, ...]  # an entry per resource, in whole units
Sums = Mapping[str, tuple[int, ...]]  # of each arm, in whole numbers, so that they add up exactly

HOUR = 3_600_000  # milliseconds


# Messages.


class Hello(NamedTuple):
    """A worker begins a life, or the store does not know it any more."""

    life: str  # a name that no other life has
    name: str  # of the worker
    after: int = 0  # the number of its row that the store has forgotten; the next one is larger


class Left(NamedTuple):
    """What is reserved for a decision that a closing worker leaves open."""

    reserved: tuple[int | None, ...]  # None where the cost is known
    is_told: bool = False  # whether a part of its outcome is known: then it cannot be cancelled any more


class Heard(NamedTuple):
    """The last news of an answer that a worker has taken in: with it, all that came before it in the inbox.

    The number alone would not do: a store that has forgotten gives it again, to other news.
    """

    number: int
    id: Any  # of the decision that it was of


class Sync(NamedTuple):
    """All that a worker has to say of its life so far."""

    life: str
    row: int  # the number that the store has given to its row
    seq: int  # of this message, from 1
    rounds: int
    minted: Units  # what its rounds have brought
    spent: Units
    reserved: Units
    returned: Units  # taken off its line and given back to the pool; a debt that was handed over counts below 0
    want: Units  # what it would like to have been granted
    sums: Sums  # what it has learned
    earned: float = 0.0
    version: int = 0  # of the settings that are in force there
    heard: Heard | None = None
    closing: bool = False  # it will not spend any more
    estate: Mapping[int, Left] = MappingProxyType({})  # of one that closes: what is reserved for open decisions


class Answer(NamedTuple):
    """What the store knows that a worker should."""

    row: int  # 0 if there is no such row: the worker has to say hello
    seq: int  # the latest message that the store has taken in
    granted: Units
    others: Sums  # what all others have learned
    pool: Units
    income: Units  # all that has come into the pool from outside
    rounds: int  # of the whole fleet
    workers: int  # rows that are open
    version: int = 0
    changes: tuple[Mapping[str, Any], ...] = ()  # of the settings, after the version that is in force there
    news: tuple[tuple[int, Mapping[str, Any]], ...] = ()  # of decisions, with their numbers in the inbox


# What the store keeps.


class Past(NamedTuple):
    """What closed lives come to."""

    lives: int
    rounds: int
    minted: Units
    spent: Units
    reserved: Units
    returned: Units
    granted: Units
    earned: float = 0.0


class Account(NamedTuple):
    """What the store keeps of a fleet as a whole."""

    pool: Units
    income: Units  # all that has come into the pool from outside
    rounds: int  # of all lives
    sums: Sums  # of all lives
    past: Past
    rows: int  # given out so far
    open: int  # rows that are there
    hourly: tuple[tuple[int, int], ...]  # units per millisecond: numerators and denominators
    caps: tuple[int | None, ...]  # above which the clock brings nothing
    owed: Units  # by the clock, besides whole units: in terms of the denominators
    clock: int | None = None  # the latest time that the store has seen, in milliseconds


class Row(NamedTuple):
    """What the store keeps of a life."""

    life: str
    name: str
    number: int
    seen: int  # by the store's clock, in milliseconds
    granted: Units
    returned: Units
    minted: Units
    spent: Units
    reserved: Units
    seq: int = 0
    rounds: int = 0
    sums: Sums = MappingProxyType({})
    earned: float = 0.0
    version: int = 0
    closed: bool = False  # an operator has said that it is dead


def plus(one: Units, other: Units) -> Units:
    """Amounts added up."""
    return tuple(map(int.__add__, one, other))


def minus(one: Units, other: Units) -> Units:
    """What is left of amounts."""
    return tuple(map(int.__sub__, one, other))


def add_sums(one: Sums, other: Sums, sign: int = 1) -> dict[str, tuple[int, ...]]:
    """What two have learned, or one without the other; an arm that one of them does not know brings nothing."""
    found = dict(one)
    for arm, values in other.items():
        before = found.get(arm, (0,) * len(values))
        found[arm] = tuple([old + sign * new for old, new in zip(before, values, strict=True)])
    return found


def open_account(
    start: Units, hourly: tuple[tuple[int, int], ...] | None = None, caps: tuple[int | None, ...] | None = None
) -> Account:
    """A fleet before its first worker: the start stock is in the pool."""
    none = (0,) * len(start)
    return Account(
        pool=start,
        income=start,
        rounds=0,
        sums={},
        past=Past(0, 0, none, none, none, none, none),
        rows=0,
        open=0,
        hourly=hourly or ((0, 1),) * len(start),
        caps=caps or (None,) * len(start),
        owed=none,
    )


# The store's side.


def pay_in(account: Account, units: Units) -> Account:
    """Money from outside."""
    return account._replace(pool=plus(account.pool, units), income=plus(account.income, units))


def mint(account: Account, now: int) -> Account:
    """What the clock has brought since it was last looked at, in whole units; the rest is owed.

    A clock that is set back brings nothing until it is past the latest time it has shown. However far it jumps ahead,
    the pool is filled up to its cap at most.
    """
    if account.clock is None or now <= account.clock:
        return account._replace(clock=now) if account.clock is None else account
    elapsed = now - account.clock
    came, owed = [], []
    for (rate, parts), before, cap, pool in zip(account.hourly, account.owed, account.caps, account.pool, strict=True):
        units, rest = divmod(before + rate * elapsed, parts)
        room = units if cap is None else max(cap - pool, 0)
        came.append(min(units, room))
        owed.append(rest if units < room or cap is None else 0)  # full: parts of a unit would be above the cap, too
    return pay_in(account._replace(clock=now, owed=tuple(owed)), tuple(came))


def set_hourly(account: Account, hourly: tuple[tuple[int, int], ...], now: int) -> Account:
    """Other income by the clock from now on; less than a unit that is owed at other rates is lost."""
    account = mint(account, now)
    if hourly == account.hourly:
        return account
    return account._replace(hourly=hourly, owed=(0,) * len(hourly))


def greet(account: Account, row: Row | None, hello: Hello, now: int) -> tuple[Account, Row, Answer]:
    """Make a row for a life; said twice, it is the same row. Nothing is granted yet."""
    if row is None:
        none = (0,) * len(account.pool)
        number = max(account.rows, hello.after) + 1
        row = Row(hello.life, hello.name, number, now, none, none, none, none, none)
        account = account._replace(rows=row.number, open=account.open + 1)
    return account, row, answer_of(account, row)


def give(wanted: int, pool: int) -> int:
    """What is granted: never more than there is."""
    return min(max(wanted, 0), max(pool, 0))


def receive(account: Account, row: Row | None, message: Sync, now: int) -> tuple[Account, Row | None, Answer]:
    """Take in what a worker says, and answer. A row that closes is gone afterwards.

    ``row`` is that of the life, if there is one; the message counts only if it is the one that the message means.
    """
    if row is None or row.number != message.row:
        return account, row, unknown(account)
    if message.seq <= row.seq:  # said before, or late
        return account, row, answer_of(account, row)
    pool = plus(account.pool, minus(message.returned, row.returned))
    wanted = row.granted if message.closing else message.want
    given = tuple([give(want - had, left) for want, had, left in zip(wanted, row.granted, pool, strict=True)])
    account = account._replace(
        pool=minus(pool, given),
        rounds=account.rounds + message.rounds - row.rounds,
        sums=add_sums(add_sums(account.sums, message.sums), row.sums, -1),
    )
    row = row._replace(
        seen=now,
        seq=message.seq,
        rounds=message.rounds,
        minted=message.minted,
        spent=message.spent,
        reserved=message.reserved,
        returned=message.returned,
        granted=plus(row.granted, given),
        sums=message.sums,
        earned=message.earned,
        version=message.version,
        closed=False,  # whoever speaks is not dead
    )
    if not message.closing:
        return account, row, answer_of(account, row)
    account = account._replace(past=fold(account.past, row), open=account.open - 1)
    return account, None, answer_of(account, row)


def fold(past: Past, row: Row) -> Past:
    """A life is over."""
    return Past(
        past.lives + 1,
        past.rounds + row.rounds,
        plus(past.minted, row.minted),
        plus(past.spent, row.spent),
        plus(past.reserved, row.reserved),
        plus(past.returned, row.returned),
        plus(past.granted, row.granted),
        past.earned + row.earned,
    )


def settle_estate(account: Account, reserved: Units, charged: Units) -> Account:
    """News of a decision that a life has left open when it closed: what it did not cost goes to the pool.

    The life has handed back all else, and nobody spends in its name; so it is as if it had waited for the news. What
    it cost above its reservation, an overrun, the pool pays. It may be below 0 then, and grants nothing until it is
    repaid.
    """
    freed, past = minus(reserved, charged), account.past
    past = past._replace(
        spent=plus(past.spent, charged), reserved=minus(past.reserved, reserved), returned=plus(past.returned, freed)
    )
    return account._replace(pool=plus(account.pool, freed), past=past)


def declare_dead(account: Account, row: Row) -> tuple[Account, Row]:
    """An operator says that a worker is dead. What it held stays its own: see the text of this module."""
    return account, row._replace(closed=True)


def answer_of(account: Account, row: Row) -> Answer:
    """What there is to say to a worker whose row this is."""
    return Answer(
        row=row.number,
        seq=row.seq,
        granted=row.granted,
        others=add_sums(account.sums, row.sums, -1),
        pool=account.pool,
        income=account.income,
        rounds=account.rounds,
        workers=account.open,
    )


def unknown(account: Account) -> Answer:
    """To a worker without a row."""
    none = (0,) * len(account.pool)
    return Answer(0, 0, none, {}, account.pool, account.income, account.rounds, account.open)


# The worker's side.


class Standing(NamedTuple):
    """What a worker knows of its dealings with the store."""

    life: str
    granted: Units  # that have come here
    returned: Units
    row: int = 0  # 0 until the store has answered the hello
    seq: int = 0
    after: int = 0  # the number of the last row, if the store has forgotten it


class Figures(NamedTuple):
    """What the books of a worker show."""

    rounds: int
    minted: Units
    spent: Units
    reserved: Units
    sums: Sums
    earned: float = 0.0

    def headroom(self, standing: Standing) -> Units:
        """What may still be spent."""
        line = plus(self.minted, minus(standing.granted, standing.returned))
        return minus(line, plus(self.spent, self.reserved))


def give_back(standing: Standing, units: Units) -> Standing:
    """Money goes back to the pool; the worker has taken it off its line already.

    Units below 0 are a debt that is handed over. Only a worker that will not spend any more may do so: its line has
    risen to 0 before the pool has heard of it.
    """
    return standing._replace(returned=plus(standing.returned, units))


def share_of_debt(answer: Answer, headroom: Units) -> Units:
    """What a worker pays of the pool's debt, at most what it has; all workers together pay all of it."""
    shares = [-(pool // max(answer.workers, 1)) for pool in answer.pool]  # rounded up
    return tuple([min(max(share, 0), max(left, 0)) for share, left in zip(shares, headroom, strict=True)])


def compose(
    standing: Standing,
    figures: Figures,
    target: Units,
    version: int = 0,
    heard: Heard | None = None,
    closing: bool = False,
) -> tuple[Standing, Sync]:
    """The next message: all figures, and a wish to have so much headroom. One that closes has its estate added."""
    lacking = minus(target, figures.headroom(standing))
    standing = standing._replace(seq=standing.seq + 1)
    message = Sync(
        life=standing.life,
        row=standing.row,
        seq=standing.seq,
        rounds=figures.rounds,
        minted=figures.minted,
        spent=figures.spent,
        reserved=figures.reserved,
        returned=standing.returned,
        want=tuple([had + max(lack, 0) for had, lack in zip(standing.granted, lacking, strict=True)]),
        sums=figures.sums,
        earned=figures.earned,
        version=version,
        heard=heard,
        closing=closing,
    )
    return standing, message


def take(standing: Standing, answer: Answer) -> tuple[Standing, Units]:
    """What an answer brings: more on the worker's line. Answers that come twice or late bring nothing."""
    none = (0,) * len(standing.granted)
    if answer.row <= standing.after or standing.row not in (0, answer.row):
        return standing, none
    granted = tuple(map(max, standing.granted, answer.granted))
    return standing._replace(row=answer.row, granted=granted), minus(granted, standing.granted)


def begin_again(standing: Standing) -> Standing:
    """The store does not know this worker any more: it says hello, and its dealings with the store start anew.

    What it holds stays on its line. Only a store that has forgotten what it had acknowledged gets here.
    """
    none = (0,) * len(standing.granted)
    return standing._replace(granted=none, returned=none, row=0, seq=0, after=standing.row)

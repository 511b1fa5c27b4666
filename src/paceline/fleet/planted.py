"""Bugs to be found by the simulator: the protocol with one thing wrong each. A simulator that finds none is none."""

from collections.abc import Callable
from typing import NamedTuple

from paceline.fleet import protocol
from paceline.fleet.protocol import Account, Answer, Row, Standing, Sync, Units


class Rules(NamedTuple):
    """What a story is played by."""

    receive: Callable[[Account, Row | None, Sync, int], tuple[Account, Row | None, Answer]] = protocol.receive
    take: Callable[[Standing, Answer], tuple[Standing, Units]] = protocol.take
    declare_dead: Callable[[Account, Row], tuple[Account, Row]] = protocol.declare_dead
    debits_late: bool = False  # a worker takes what it gives back off its line only when the answer has come
    forgets_debt: bool = False  # a worker that closes keeps what it owes to itself


def take_increments(standing: Standing, answer: Answer) -> tuple[Standing, Units]:
    """Grants as increments: what an answer brings is added, however often it comes."""
    taken, _ = protocol.take(standing, answer)
    if taken.row == 0 or answer.row != taken.row:
        return taken, (0,) * len(standing.granted)
    return taken._replace(granted=protocol.plus(standing.granted, answer.granted)), answer.granted


def receive_for_increments(
    account: Account, row: Row | None, message: Sync, now: int
) -> tuple[Account, Row | None, Answer]:
    """The store's part of it: it says what it has granted just now."""
    before = (0,) * len(account.pool) if row is None else row.granted
    account, row, answer = protocol.receive(account, row, message, now)
    return account, row, answer._replace(granted=protocol.minus(answer.granted, before) if answer.row else before)


def receive_unchecked(account: Account, row: Row | None, message: Sync, now: int) -> tuple[Account, Row | None, Answer]:
    """An unchecked pool: all that is wanted is granted."""
    rich = tuple([max(units, 10**9) for units in account.pool])
    lent = protocol.minus(rich, account.pool)
    account, row, answer = protocol.receive(account._replace(pool=rich), row, message, now)
    return account._replace(pool=protocol.minus(account.pool, lent)), row, answer


def reclaim(account: Account, row: Row) -> tuple[Account, Row]:
    """Reclaim from the last report: the headroom that a worker had when it was last heard of goes to the pool."""
    line = protocol.plus(row.minted, protocol.minus(row.granted, row.returned))
    held = tuple([max(units, 0) for units in protocol.minus(line, protocol.plus(row.spent, row.reserved))])
    account = account._replace(pool=protocol.plus(account.pool, held))
    return account, row._replace(returned=protocol.plus(row.returned, held), closed=True)


def receive_sums_as_increments(
    account: Account, row: Row | None, message: Sync, now: int
) -> tuple[Account, Row | None, Answer]:
    """Sums as increments: whatever comes is added to what is known, as if it had not been said before."""
    known = row is not None and row.number == message.row
    before = account.sums
    account, row, answer = protocol.receive(account, row, message, now)
    if known:
        account = account._replace(sums=protocol.add_sums(before, message.sums))
    return account, row, answer


def receive_without_debt(
    account: Account, row: Row | None, message: Sync, now: int
) -> tuple[Account, Row | None, Answer]:
    """Debt forgiven: a pool that would be below 0 is empty."""
    account, row, answer = protocol.receive(account, row, message, now)
    return account._replace(pool=tuple([max(units, 0) for units in account.pool])), row, answer


BUGS: dict[str, Rules] = {
    "late-debit": Rules(debits_late=True),
    "grants-as-increments": Rules(receive=receive_for_increments, take=take_increments),
    "reclaim-from-report": Rules(declare_dead=reclaim),
    "unchecked-pool": Rules(receive=receive_unchecked),
    "sums-as-increments": Rules(receive=receive_sums_as_increments),
    "forgotten-debt": Rules(forgets_debt=True),
    "forgiven-debt": Rules(receive=receive_without_debt),
}

"""The whole fleet at one moment, for the eyes of an operator and for whatever shows it."""

from typing import TYPE_CHECKING, Any

from paceline.fleet import protocol
from paceline.fleet.store import Store, WorkerRow

if TYPE_CHECKING:
    from paceline.fleet.member import Member

SILENT = 15_000  # milliseconds without a word after which a worker is shown as stale
LATELY = 60.0  # seconds


def fleet_status(member: "Member", store: Store, pulls: list[tuple[float, dict[str, float]]]) -> dict[str, Any]:
    """All of it as plain data; amounts are plain numbers, or by name where resources have names."""
    account, rows, settings = store.picture(member.fleet)
    config, past = member._ledger.config, account.past

    def amounts(units: protocol.Units) -> Any:
        return config.by_name([one.currency.amount(each) for one, each in zip(config.resources, units, strict=True)])

    def total(first: protocol.Units, *more: protocol.Units) -> protocol.Units:
        for each in more:
            first = protocol.plus(first, each)
        return first

    headroom = total((0,) * len(account.pool), *(row.headroom for row in rows))
    spent = total(past.spent, *(row.spent for row in rows))
    reserved = total(past.reserved, *(row.reserved for row in rows))
    versions = [row.version for row in rows if not row.closed]  # the dead will never have the latest
    now = account.clock or 0
    minted = total(past.minted, *(minted_by(row) for row in rows))
    return {
        "rounds": account.rounds,
        "budget": config.by_name([resource.budget for resource in config.resources]),  # of a round, from now on
        "credited": amounts(total(minted, account.income)),
        "spent": amounts(spent),
        "reserved": amounts(reserved),
        "headroom": amounts(headroom),
        "pool": amounts(account.pool),
        "earned": past.earned + sum(row.earned for row in rows),
        "version": settings.version,
        "in_force": f"{versions.count(settings.version)} of {len(versions)}",
        "price": member.price,
        "workers": [
            {
                "name": row.name,
                "life": row.life,
                "seen": row.seen,
                "rounds": row.rounds,
                "spent": amounts(row.spent),
                "reserved": amounts(row.reserved),
                "headroom": amounts(row.headroom),
                "granted": amounts(row.granted),
                "returned": amounts(row.returned),
                "version": row.version,
                "status": "closed" if row.closed else "stale" if now - row.seen * 1000.0 > SILENT else "fresh",
            }
            for row in rows
        ],
        "arms": arms_of(member, pulls),
    }


def minted_by(row: WorkerRow) -> protocol.Units:
    """What the rounds of a worker have brought."""
    line = protocol.plus(row.headroom, protocol.plus(row.spent, row.reserved))
    return protocol.minus(line, protocol.minus(row.granted, row.returned))


def arms_of(member: "Member", pulls: list[tuple[float, dict[str, float]]]) -> dict[str, Any]:
    """The arms as this member knows them, which is what all have learned up to its last exchange."""
    mix, shares = member.mix(), shares_of(pulls)
    return {
        name: {
            "status": arm.status,
            "pulls": arm.pulls,
            "reward": arm.reward._asdict(),
            "cost": (
                {name: cost._asdict() for name, cost in arm.cost.items()}
                if isinstance(arm.cost, dict)
                else arm.cost._asdict()
            ),
            "share": shares.get(name, 0.0),
            "best_mix": mix.get(name, 0.0),
        }
        for name, arm in member.estimates().items()
    }


def shares_of(pulls: list[tuple[float, dict[str, float]]]) -> dict[str, float]:
    """The share of each arm in the pulls of the last minute, or of all if there were none.

    >>> shares_of([(0.0, {"a": 5.0}), (30.0, {"a": 6.0, "b": 3.0})])
    {'a': 0.25, 'b': 0.75}
    """
    if not pulls:
        return {}
    time, latest = pulls[-1]
    earlier = next(counts for when, counts in pulls if time - when <= LATELY)
    grown = {arm: count - earlier.get(arm, 0.0) for arm, count in latest.items()}
    counts = grown if sum(grown.values()) > 0.0 else latest
    total = sum(counts.values())
    return {arm: count / total for arm, count in counts.items()} if total > 0.0 else {}

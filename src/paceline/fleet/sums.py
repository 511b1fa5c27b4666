"""What a worker has learned as whole numbers, which add up exactly in whatever order, and the way back.

Sums are on the scale of the policy, on which rewards and costs are at most 1, in units of 2**-32. A worker says the sum
over its whole life, so each is rounded once, by half a unit, and not once per exchange.
"""

from typing import Any

import numpy as np

from paceline.fleet import protocol
from paceline.live.ledger import Ledger
from paceline.live.reports import own_sums
from paceline.live.sums import Sums, no_sums

ONE = 2.0**32
OWN = "\x1f"  # between the name of an arm and that of a sum of the policy's own


def learned(ledger: Ledger) -> dict[str, tuple[int, ...]]:
    """What a worker has learned itself: by arm pulls, sums and squares of rewards and costs; then the policy's own."""
    arm_set = ledger.arm_set
    own = own_sums(arm_set, ledger.foreign, ledger.late)
    count = own.pulls.size
    table = np.vstack([own.pulls, own.rewards, own.costs.transpose(0, 2, 1).reshape(-1, count)])
    rows: list[list[float]] = np.rint(table * ONE).T.tolist()
    found = {name: tuple(map(int, rows[slot])) for name, slot in arm_set.slot_by_name.items()}
    for thing, values in own.own.items():
        units = np.rint(values * ONE).tolist()
        found.update({f"{name}{OWN}{thing}": (int(units[slot]),) for name, slot in arm_set.slot_by_name.items()})
    return {name: values for name, values in found.items() if any(values)}


def sums_from(ledger: Ledger, said: protocol.Sums) -> Sums:
    """What others have learned, for the books of a worker; arms that are not known here are passed over."""
    arm_set, resources = ledger.arm_set, len(ledger.config.resources)
    names, policy = arm_set.slot_by_name, arm_set.policy
    found = no_sums(policy, len(arm_set.names), resources)
    table: Any = np.zeros((3 + 2 * resources, len(arm_set.names)))
    for name, slot in names.items():
        if name in said:
            table[:, slot] = said[name]
    table /= ONE
    costs = table[3:].reshape(2, resources, -1).transpose(0, 2, 1)
    for thing, values in found.own.items():
        for name, slot in names.items():
            (units,) = said.get(f"{name}{OWN}{thing}", (0,))
            values[slot] = units / ONE
    return Sums(np.rint(table[0]), table[1:3], costs, found.own)


def pulls_of(said: protocol.Sums) -> dict[str, float]:
    """How often each arm was pulled."""
    return {name: values[0] / ONE for name, values in said.items() if OWN not in name}

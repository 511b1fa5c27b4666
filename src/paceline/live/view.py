"""What can be seen of a live bandit from outside."""

from collections.abc import Callable
from threading import RLock
from typing import Any

import numpy as np

from paceline.kernels.budget import line_units
from paceline.kernels.jit import plain
from paceline.live.estimate import ArmEstimate, arm_estimate
from paceline.live.ledger import Ledger
from paceline.problems.optimum import Optimum, solve


class View:
    """The books in the user's units. Looking changes nothing."""

    _ledger: Ledger
    _lock: RLock

    @property
    def rounds(self) -> int:
        """Rounds so far."""
        return self._ledger.rounds

    @property
    def spent(self) -> float:
        """Costs so far, each rounded up to a unit of 2**-32 of the scale or less; expired pulls at their largest."""
        return self._amount(lambda clock: clock.spent_units)

    @property
    def reserved(self) -> float:
        """The largest costs of the decisions whose cost is not known."""
        return self._amount(lambda clock: clock.reserved_units)

    @property
    def credited(self) -> float:
        """The line: the budget of the rounds so far and what `credit` added."""
        return self._amount(plain(line_units))

    @property
    def held(self) -> float:
        """What `credit` holds back for the rounds to come."""
        return self._amount(lambda clock: clock.held_units)

    @property
    def headroom(self) -> float:
        """What may still be spent: credited - spent - reserved, never below 0."""
        return self._amount(lambda clock: plain(line_units)(clock) - clock.spent_units - clock.reserved_units)

    @property
    def earned(self) -> float:
        """Rewards so far of the decisions that are settled."""
        with self._lock:
            return float(self._ledger.arm_set.clock.earned) * self._ledger.config.max_reward

    def _amount(self, units: Callable[[Any], int]) -> float:
        with self._lock:
            return self._ledger.currency.amount(int(units(self._ledger.arm_set.clock)))

    @property
    def pending(self) -> dict[int, str]:
        """The decisions that are not settled, and their arms; those that have expired among them."""
        with self._lock:
            names = self._ledger.arm_set.names
            return {number: names[pull.slot] for number, pull in self._ledger.pending.items()}

    @property
    def expired(self) -> list[int]:
        """The decisions that nothing more is expected of; those without a cost are charged in full."""
        with self._lock:
            return list(self._ledger.expired_pulls)

    @property
    def arms(self) -> dict[str, str]:
        """The arms and whether each is active, paused or retired."""
        with self._lock:
            arm_set = self._ledger.arm_set
            return dict(zip(arm_set.names, arm_set.statuses, strict=True))

    def estimates(self) -> dict[str, ArmEstimate]:
        """What is known of each arm, with intervals that hold at all times at once (95 %), in your units."""
        with self._lock:
            arm_set, config = self._ledger.arm_set, self._ledger.config
            arm_set.merge()
            return {
                name: arm_estimate(
                    arm_set.full.arms,
                    slot,
                    arm_set.statuses[slot],
                    config.max_reward,
                    config.scale,
                    arm_set.max_costs[slot],
                )
                for slot, name in enumerate(arm_set.names)
            }

    def _optimum(self) -> Optimum | None:
        """The best mix if the arms in play are what they seem to be; None without arms or income."""
        arm_set = self._ledger.arm_set
        clock, arms = arm_set.clock, arm_set.state.arms
        if not arm_set.slots or not clock.budget > 0.0:
            return None
        return solve(arms.reward_mean, arms.cost_mean, float(clock.budget))

    def mix(self) -> dict[str | None, float]:
        """The best share of rounds for each arm if the arms are what they seem to be; None stands for sitting out."""
        with self._lock:
            best = self._optimum()
            if best is None:
                return {None: 1.0}
            arm_set = self._ledger.arm_set
            places = np.flatnonzero(best.mix).tolist()
            return {arm_set.name_at[arm_set.slot_at[place]]: float(best.mix[place]) for place in places}

    @property
    def price(self) -> float:
        """What one more unit of money per round would earn, if the arms are what they seem to be."""
        with self._lock:
            best, config = self._optimum(), self._ledger.config
            return 0.0 if best is None else best.price * config.max_reward / config.scale

    def __repr__(self) -> str:
        arm_set = self._ledger.arm_set
        return f"<Bandit {', '.join(arm_set.names)}: {self.rounds} rounds, spent {self.spent:g} of {self.credited:g}>"

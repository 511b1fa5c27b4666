"""What can be seen of a live bandit from outside."""

from collections.abc import Callable
from threading import RLock
from typing import Any

import numpy as np

from paceline.kernels.budget import Books
from paceline.live.estimate import ArmEstimate, arm_estimate
from paceline.live.ledger import Ledger, line_of
from paceline.problems.optimum import Optimum, solve_several


class View:
    """The books in the user's units. Looking changes nothing."""

    _ledger: Ledger
    _lock: RLock

    @property
    def rounds(self) -> int:
        """Rounds so far."""
        return self._ledger.rounds

    @property
    def spent(self) -> Any:
        """Costs so far, each rounded up to a unit of 2**-32 of the scale or less; expired pulls at their largest."""
        return self._amounts(lambda books, d: books.spent[d])

    @property
    def reserved(self) -> Any:
        """The largest costs of the decisions whose cost is not known."""
        return self._amounts(lambda books, d: books.reserved[d])

    @property
    def credited(self) -> Any:
        """The line: the start stock, the budget of the rounds so far and what `credit` added, less what overflowed."""
        return self._amounts(line_of)

    @property
    def held(self) -> Any:
        """What `credit` holds back for the rounds to come."""
        return self._amounts(lambda books, d: books.held[d])

    @property
    def headroom(self) -> Any:
        """What may still be spent: credited - spent - reserved, never below 0."""
        return self._amounts(lambda books, d: line_of(books, d) - books.spent[d] - books.reserved[d])

    @property
    def earned(self) -> float:
        """Rewards so far of the decisions that are settled."""
        with self._lock:
            return float(self._ledger.arm_set.books.tally.earned) * self._ledger.config.max_reward

    def _amounts(self, units: Callable[[Books, int], int]) -> Any:
        """A number; where resources have names, one for each of them by name."""
        with self._lock:
            ledger = self._ledger
            books = ledger.arm_set.books
            amounts = [currency.amount(int(units(books, d))) for d, currency in enumerate(ledger.currencies)]
            return ledger.config.by_name(amounts)

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
                name: arm_estimate(arm_set.full.arms, slot, arm_set.statuses[slot], arm_set.max_costs[slot], config)
                for slot, name in enumerate(arm_set.names)
            }

    def _optimum(self) -> Optimum | None:
        """The best mix if the arms in play are what they seem to be; None without arms or anything to spend."""
        arm_set = self._ledger.arm_set
        arms, rates = arm_set.state.arms, arm_set.state.rate
        refills = any(resource.max_refill > 0.0 for resource in self._ledger.config.resources)
        if not arm_set.slots or not (refills or rates.any()):
            return None
        return solve_several(arms.reward_mean, arms.cost_mean, rates)

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
    def price(self) -> Any:
        """What one more unit of a resource per round would earn, if the arms are what they seem to be."""
        with self._lock:
            best, config = self._optimum(), self._ledger.config
            prices = [0.0] * len(config.resources) if best is None else best.prices.tolist()
            scales = [resource.scale for resource in config.resources]
            return config.by_name(
                [price * config.max_reward / scale for price, scale in zip(prices, scales, strict=True)]
            )

    def __repr__(self) -> str:
        ledger = self._ledger
        spent, credited = ledger.config.in_order("", self.spent), ledger.config.in_order("", self.credited)
        amounts = (
            f"spent {paid:g} of {line:g}" if ledger.is_unnamed else f"spent {paid:g} of {line:g} {name}"
            for name, paid, line in zip(ledger.config.names, spent, credited, strict=True)
        )
        return f"<Bandit {', '.join(ledger.arm_set.names)}: {self.rounds} rounds, {', '.join(amounts)}>"

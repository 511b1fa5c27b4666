"""A `Bandit` whose money and learning are part of a fleet, and the calls of it; `join` makes one (joining.py)."""

from collections.abc import Callable, Mapping
from types import EllipsisType
from typing import Any, NoReturn

from paceline.errors import InvalidValue, StoreFailed, UnknownName
from paceline.fleet.lives import owner_of
from paceline.fleet.news import news_of
from paceline.fleet.settings import check_credit, credit_units
from paceline.fleet.status import fleet_status
from paceline.fleet.store import WorkerRow
from paceline.fleet.worker import Worker
from paceline.live.bandit import Amount, Bandit, MaxCost
from paceline.policies import PolicyLike


class Member(Worker):
    """A `Bandit` that is a worker of a fleet: made by `join`, with all calls of a `Bandit`.

    `ask` and `tell` are those of a `Bandit`: decisions are made here, in microseconds, from what is known here, and the
    line is guarded here. Another thread exchanges sums and money with the store: when the worker's own rounds have
    grown by a tenth, and after ``sync_every`` seconds if something has changed. If the store cannot be reached the
    worker goes on: it learns from itself alone, and spends what its rounds bring.

    `tell`, `cancel` and `expire` take ids of other workers, too: the news reaches them through the store. `credit`,
    `set`, `add`, `pause`, `resume` and `retire` act on the whole fleet; they raise `StoreFailed` if the store cannot be
    reached. In a forked copy of the process (gunicorn with preload) the member begins a life of its own with the first
    call: it has its own line, and what its parent knew.
    """

    # News of others.

    def _number_of(self, id: Any, *news: Any) -> int | None:
        """The number of a decision of ours; news of one of another worker is sent on.

        Once the owner has closed, or an operator has said that it is dead, the news still teaches if it is complete.
        """
        try:
            return super()._number_of(id)
        except UnknownName:
            if not self.is_of_another(id):
                raise
        self._unsent.add(str(owner_of(id)), news_of(self._ledger, id, *news))
        return None

    def cancel(self, id: int | str) -> None:
        """As of `Bandit`; of a decision of another worker it is sent on."""
        self._end(Bandit.cancel, id, "cancel")

    def expire(self, id: int | str) -> None:
        """As of `Bandit`; of a decision of another worker it is sent on."""
        self._end(Bandit.expire, id, "expire")

    def _end(self, end: Callable[[Bandit, int | str], None], id: int | str, word: str) -> None:
        """The end of a decision without an outcome."""
        try:
            end(self, id)
        except UnknownName:
            if not self.is_of_another(id):
                raise
            self._unsent.add(str(owner_of(id)), {"id": id, word: True})

    def is_of_another(self, id: int | str) -> bool:
        """Whether an id names a worker, and not this one."""
        return owner_of(id) not in (None, self._standing.life)

    # What is done to the whole fleet.

    def credit(self, amount: Amount, over: int = 0, rate: bool = True, *, key: str | None = None) -> None:
        """Money into the pool, for whichever worker needs it; with the same ``key`` once."""
        check_credit(over, rate)
        units = credit_units(self._ledger.config, amount)
        self._store.credit(self.fleet, units, self._name, key)
        self._try_exchange()

    def debit(self, amount: Amount, rate: bool = True) -> None:
        """Refused: money leaves a fleet by pulls alone."""
        raise InvalidValue(
            f"debit must be of a bandit of its own, not of a member of a fleet, got {amount!r} ({rate=})"
        )

    @classmethod
    def open(cls, *_: Any, **__: Any) -> NoReturn:
        """Refused: `join` with the journal goes on with a member."""
        raise InvalidValue("the journal of a member must be given to join, got Member.open")

    @classmethod
    def load(cls, *_: Any, **__: Any) -> NoReturn:
        """Refused: a copy of a member would spend its money once more."""
        raise InvalidValue("what a member has saved must be loaded with Bandit.load, got Member.load")

    def merge(self, reports: Mapping[str, Any]) -> None:
        """Refused: a member learns from its fleet; `observe` takes single outcomes."""
        raise InvalidValue(f"reports must be merged by a bandit of its own, not by a member, got {len(reports)}")

    def add(self, arm: str, max_cost: Amount | None = None) -> None:
        """A new arm for the whole fleet. Its name must never have been used."""
        self._change_fleet({"add": {"arm": arm} if max_cost is None else {"arm": arm, "max_cost": max_cost}})

    def pause(self, arm: str) -> None:
        """Take an arm out of play in the whole fleet."""
        self._change_fleet({"pause": arm})

    def resume(self, arm: str) -> None:
        """Put a paused arm back into play in the whole fleet."""
        self._change_fleet({"resume": arm})

    def retire(self, arm: str) -> None:
        """Take an arm out of play for good in the whole fleet."""
        self._change_fleet({"retire": arm})

    def set(
        self,
        *,
        budget: Amount | EllipsisType = ...,
        max_cost: MaxCost | EllipsisType = ...,
        policy: PolicyLike | EllipsisType = ...,
        expires: float | EllipsisType | None = ...,
        silence: float | EllipsisType | None = ...,
        hourly: Amount | EllipsisType = ...,
        period: float | EllipsisType | None = ...,
    ) -> None:
        """Other settings for the whole fleet, as of `Bandit`: here at once, elsewhere with the next exchange."""
        options = {"budget": budget, "max_cost": max_cost, "policy": policy, "expires": expires, "silence": silence}
        options |= {"hourly": hourly, "period": period}
        self._change_fleet({"set": {name: value for name, value in options.items() if value is not ...}})

    def _change_fleet(self, change: Mapping[str, Any]) -> None:
        """Change the settings of the fleet, and have them in force here."""
        self._store.change(self.fleet, change, self._name)
        self._try_exchange()

    def _try_exchange(self) -> None:
        """Exchange now; if the store has gone just now, later."""
        try:
            self.sync()
        except StoreFailed:
            self._wake.set()

    # Looking.

    def workers(self) -> list[WorkerRow]:
        """The workers of the fleet, as the store has them."""
        return self._store.workers(self.fleet)

    def fleet_status(self) -> dict[str, Any]:
        """The whole fleet at one moment, ready for JSON: money, workers, and arms as they are known here."""
        return fleet_status(self, self._store, list(self._pulls))

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, worker {self._name} of fleet {self.fleet}>"

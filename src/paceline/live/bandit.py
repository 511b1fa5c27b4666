"""Bandit: decisions in a running program, under a budget that late, lost or wrong news cannot overdraw."""

import os
import time
from asyncio import to_thread
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import partial
from types import EllipsisType
from typing import Any

from paceline.errors import InvalidValue, JournalFailed
from paceline.live import recovery, requests
from paceline.live.advice import best_mix_of, prices_of
from paceline.live.arms import ACTIVE, PAUSED, RETIRED, get_ready
from paceline.live.booking import ASKING, FAILED
from paceline.live.config import make_config
from paceline.live.coroutines import ask_elsewhere
from paceline.live.decision import Decision
from paceline.live.estimate import ArmEstimate, arm_estimate
from paceline.live.events import Event, write_usual_tell
from paceline.live.keeper import KEEP
from paceline.live.kept import SNAPSHOT_EVERY, Kept
from paceline.live.ledger import Ledger
from paceline.live.log import entries_of
from paceline.live.options import check_options, check_path
from paceline.live.outcomes import settle
from paceline.live.picture import copied
from paceline.live.pulls import SLOT, is_told
from paceline.live.record import Record, record_of
from paceline.live.reports import report_of
from paceline.live.status import Status, glance_at, status_of
from paceline.policies import PolicyLike
from paceline.policies.code import digest_of_code

Amount = float | Mapping[str, float]  # of one resource, or of several by name
MaxCost = float | Mapping[str, float] | Mapping[str, float | Mapping[str, float]]


class Bandit(Kept):
    """Choose an arm, round by round, and learn from what it brings; never spend more than was credited.

    ``arms``        names. Arms may come and go later.
    ``budget``      income per round, in the unit of costs; 0 if all of it comes by `credit` or by the clock.
    ``policy``      a name or an object, as in `simulate`.
    ``max_cost``    the largest possible cost of a pull: one for all arms, or {name: cost}.
    ``max_reward``  the largest possible reward of a pull.
    ``seed``        of the policy's own draws.
    ``scale``       the cost that counts as 1 to the policy: the largest ``max_cost`` (or the budget, if larger) unless
                    room must be left for more expensive arms to come.
    ``start``       the stock before the first round; 0 unless given.
    ``cap``         the most that can be in stock, as in a battery; what would be above it is lost.
    ``max_refill``  how much a pull may bring back; a cost may then be as low as -max_refill.
    ``rounds``      how many rounds a start stock without income has to last, and the horizon of a policy that needs it.
    ``hourly``      income per hour of the clock, from the first round on; it needs a ``cap``.
    ``period``      seconds after which the traffic repeats itself, such as a day: the policy then paces at the average
                    rate per round of the last period.
    ``expires``     seconds after which a decision that is not settled expires, unless `ask` says otherwise.
    ``silence``     the reward that is meant when a decision expires with all costs but no reward, such as 0 for no
                    click; nothing is learned from it unless this is given.
    ``remember``    how many settled decisions are kept to recognise news that comes twice, how many expired ones to be
                    corrected by a late cost, and how many answers for requests that come twice.
    ``worker``      the name of one of several programs: its ids begin with it, and its draws are its own.
    ``journal``     a new file that every event is written to before the call returns; see `open`, also for the options
                    of a journal: ``fsync``, ``snapshot_every``, ``rotate_every``, ``closed`` and ``mode``.
    ``clock``       the time in seconds.

    With several resources ``budget`` is a mapping by their names, such as {"money": 0.5, "calls": 1.0}, and so are
    ``max_cost``, ``scale``, ``start``, ``cap``, ``hourly`` and ``max_refill``, the costs that are told, and the amounts
    that can be seen. (A ``max_cost`` that is a number is for all resources.)

    The promise, for each resource: after every call  spent + reserved <= credited,  where credited is the start stock,
    the budget of the rounds so far and what came by `credit` or by the clock. A decision reserves the largest cost of
    its arm until its cost is told, it is cancelled, or it expires (then the reservation is charged in full, and a late
    true cost corrects it). So the promise does not hang on when, in what order, or whether news comes; only on no pull
    costing more than its ``max_cost``.

    One Bandit may be used from many threads. A copy of the process (fork) may not use it. A refused call changes
    nothing.

    >>> bandit = Bandit(arms=["banner", "video"], budget=0.5, seed=7)
    >>> decision = bandit.ask()
    >>> decision.id, decision.arm, decision.reason
    (1, None, 'headroom 0.5 < largest cost 1')
    >>> decision = bandit.ask()
    >>> bandit.tell(decision.id, reward=0.7, cost=0.25)
    >>> bandit.spent, bandit.headroom, bandit.rounds
    (0.25, 0.75, 2)
    >>> bandit = Bandit(["a", "b"], {"money": 0.5, "calls": 1.0}, max_cost={"money": {"a": 0.2, "b": 1}, "calls": 1})
    >>> while (decision := bandit.ask()).arm is None:
    ...     pass
    >>> bandit.tell(decision.id, reward=0.7, cost={"calls": 1.0})
    >>> bandit.tell(decision.id, cost={"money": 0.125})  # known later
    >>> bandit.spent
    {'money': 0.125, 'calls': 1.0}
    """

    def __init__(
        self,
        arms: Sequence[str],
        budget: Amount = 0.0,
        policy: PolicyLike = "index",
        max_cost: MaxCost = 1.0,
        max_reward: float = 1.0,
        seed: int = 0,
        *,
        scale: Amount | None = None,
        start: Amount | None = None,
        cap: Amount | None = None,
        max_refill: Amount | None = None,
        rounds: int | None = None,
        hourly: Amount | None = None,
        period: float | None = None,
        expires: float | None = None,
        silence: float | None = None,
        remember: int = 10_000,
        worker: str | None = None,
        journal: str | os.PathLike[str] | None = None,
        fsync: bool = False,
        snapshot_every: int | None = SNAPSHOT_EVERY,
        rotate_every: int | None = None,
        closed: str = KEEP,
        mode: int = 0o600,
        clock: Callable[[], float] = time.time,
    ) -> None:
        upkeep = check_options(clock, fsync, snapshot_every, rotate_every, closed, mode)
        if journal is not None:
            check_path("journal", journal)
        config = make_config(
            arms=arms,
            budget=budget,
            policy=policy,
            max_cost=max_cost,
            max_refill=max_refill,
            max_reward=max_reward,
            scale=scale,
            start=start,
            cap=cap,
            rounds=rounds,
            seed=seed,
            remember=remember,
            expires=expires,
            silence=silence,
            hourly=hourly,
            period=period,
            worker=worker,
        )
        self._start(Ledger(config), clock)
        if journal is not None:
            digest = digest_of_code(config.policy)
            self._keep(recovery.begin_journal(journal, self._ledger, upkeep, digest, self._now()))

    # Rounds and news.

    def ask(
        self,
        expires: float | None = None,
        *,
        arms: Sequence[str] | None = None,
        max_cost: MaxCost | None = None,
        key: str | None = None,
    ) -> Decision:
        """Begin a round: its budget arrives, and the policy decides. An arm waits for `tell` or `cancel` then.

        ``expires``   seconds from now after which the decision expires.
        ``arms``      only these arms may be chosen this time; those of them that are paused may not.
        ``max_cost``  the largest costs of this call: one for all arms, or {name: cost}.
        ``key``       names the request. The same key gives the same decision, without a new round, also after a
                      restart, as long as fewer than ``remember`` other keys were asked with since.

        An error that the code of a policy of your own raises comes through as it is; the round has not begun then, and
        may be asked for again.
        """
        if expires is not None or arms is not None or max_cost is not None or key is not None:
            return self._ask_specially(expires, arms, max_cost, key)
        with self._lock:
            if self._stopped is not None:
                self._look_again()
            ledger, read = self._ledger, self._time
            now = read()  # what is called as a method would be looked for in the class first
            if ledger.deadlines.heap or ledger.deadlines.old:
                self._expire_due(now)
            if ledger.may_fail:
                decision = self._decide(now, ledger.lasting)
            else:  # the same with fewer calls
                self._stopped = ASKING
                deadline = None if ledger.lasting is None else now + ledger.lasting
                try:
                    decision = ledger.decide_and_begin(now, deadline, None, self._note)
                except JournalFailed:
                    self._let_go_of_round(now)
                    raise
                self._stopped = None
                keeper = self._keeper
                if keeper is not None and keeper.journal.lines >= keeper.due:
                    self._tend(now)
                if ledger.is_notable:
                    self._take_note()
        if self._commits:
            self._commit()
        return decision

    def tell(
        self, id: int | str, reward: float | None = None, cost: Amount | None = None, *, overrun: bool = False
    ) -> None:
        """What a decision has brought: reward, costs, or some of it now and the rest later.

        Each part teaches when it is told; but with ``silence`` see late_rewards.py for the rewards. Telling the same
        again changes nothing; other numbers are refused. A cost frees what was reserved of its resource beyond it.

        A cost above the largest is refused, since the line cannot be kept then. If it was really spent, say
        ``overrun=True``: it is booked, what it is above the line is repaid before anything else is pulled, and
        `status` shows it.
        """
        if type(overrun) is not bool:
            raise InvalidValue(f"overrun must be True or False, got {overrun!r}")
        if reward is None or cost is None or not self._ledger.is_unnamed:
            self._get_ready_for_part(reward, cost)
        with self._lock:
            if self._stopped is not None:
                self._look_again()
            ledger = self._ledger
            if type(id) is int and not ledger.has_own_id:
                number = id
            else:
                found = ledger.numbers.pop(id, None) if type(id) is str else None
                if found is None:
                    found = self._number_of(id, reward, cost, overrun)
                    if found is None:
                        return
                number = found
            costs = (cost,) if ledger.is_unnamed else ledger.config.in_order("cost", cost)
            if ledger.deadlines.heap or ledger.deadlines.old:
                now = self._now()
                if ledger.deadlines.is_due(now):
                    self._expire_due(now)
                    self._expire_if_due(number, now)
            pull = ledger.pending.get(number)
            if pull is not None and not ledger.may_wait and requests.is_usual(pull, reward, costs, ledger.max_reward):
                note = self._note
                if note is None:
                    self._stopped = number, reward, costs
                    settle(ledger, number, pull, reward, costs)  # type: ignore[arg-type]  # a float
                    self._stopped = None
                else:
                    read = self._time
                    now = read()  # before anything is done: the clock may fail
                    self._stopped = number, reward, costs
                    try:
                        note(write_usual_tell(number, reward, costs, now))  # type: ignore[arg-type]
                    except JournalFailed:
                        self._stopped = FAILED
                        raise
                    settle(ledger, number, pull, reward, costs)  # type: ignore[arg-type]  # a float
                    self._stopped = None
                    keeper = self._keeper
                    if keeper is not None and keeper.journal.lines >= keeper.due:
                        self._tend(now)
            else:
                event = requests.tell(ledger, number, reward, costs, self._now(), overrun)
                if event is not None:
                    self._book(event)
        if self._commits:
            self._commit()

    async def aask(
        self,
        expires: float | None = None,
        *,
        arms: Sequence[str] | None = None,
        max_cost: MaxCost | None = None,
        key: str | None = None,
    ) -> Decision:
        """`ask` for a coroutine: it waits for the disk in another thread, if it has to wait at all (``fsync``).

        If the coroutine is cancelled meanwhile, so is the decision, unless it has a ``key`` by which it can be had.
        """
        ask = partial(self.ask, expires, arms=arms, max_cost=max_cost, key=key)
        if not self._commits:
            return ask()
        return await ask_elsewhere(ask, self.cancel if key is None else None)

    async def atell(
        self, id: int | str, reward: float | None = None, cost: Amount | None = None, *, overrun: bool = False
    ) -> None:
        """`tell` for a coroutine, likewise."""
        tell = partial(self.tell, id, reward, cost, overrun=overrun)
        await to_thread(tell) if self._commits else tell()

    def cancel(self, id: int | str) -> None:
        """A decision was never acted on: its reservation is released, nothing is learned."""
        self._change(lambda ledger, now: requests.cancel(ledger, self._open_number(id, now), now))

    def expire(self, id: int | str) -> None:
        """Give up waiting for a decision.

        Without a cost its reservation is charged in full, until a late true cost corrects it. With a cost but no reward
        it is told ``silence``, if the bandit has one; else a late reward is learned when it comes. What was told stays
        learned.
        """
        self._change(lambda ledger, now: requests.expire(ledger, self._open_number(id, now), now))

    def observe(self, arm: str, reward: float, cost: Amount) -> None:
        """Learn from a pull that was made elsewhere, such as last week: nothing is spent, and no round is counted."""
        self._ledger.arm_set.get_ready_to_learn()  # before others have to wait for it
        self._change(lambda ledger, now: requests.observe(ledger, arm, reward, cost, now))

    def report(self) -> dict[str, Any]:
        """What this bandit has learned itself, as sums that add up: for `merge` by others, or at the start of the next.

        It is plain data for JSON. What others have reported to it is not in it.
        """
        with self._lock:
            self._check_books()
            ledger = self._ledger
            return report_of(ledger.arm_set, ledger.foreign, ledger.rounds, ledger.late)

    def merge(self, reports: Mapping[str, Any]) -> None:
        """Learn from the reports of others, by the name of their owner: each replaces what its owner reported before.

        Nothing is spent, and no round is counted. Arms that are not known here are passed over, and so is a report by
        the name of this very worker, who knows it. A policy whose memory does not follow from sums refuses.

        >>> teacher, pupil = Bandit(["a", "b"], budget=1.0), Bandit(["b", "c"], budget=1.0)
        >>> teacher.observe("b", reward=0.5, cost=0.25)
        >>> pupil.merge({"teacher": teacher.report()})
        >>> pupil.estimates()["b"].pulls, pupil.report()["arms"]["b"]["pulls"]
        (1, 0)
        """
        self._ledger.arm_set.get_ready_to_learn()  # before others have to wait for it
        self._change(lambda ledger, now: requests.merge(ledger, reports, now))

    # Money and arms.

    def credit(self, amount: Amount, over: int = 0, rate: bool = True) -> None:
        """Income besides the budget of each round: at once, or in equal parts ``over`` the rounds to come.

        A policy takes all headroom as leave to spend. A weekly grant that should last the week is better credited over
        the rounds of a week; what is still held back then is spread anew together with it. The policy's rate is the
        budget and what was credited per round so far, unless ``rate`` is false: then it is told nothing of this income.
        """
        self._change(lambda ledger, now: requests.credit(ledger, amount, over, rate, now))

    def debit(self, amount: Amount, rate: bool = True) -> None:
        """Money that leaves otherwise than by a pull: at most the headroom. ``rate`` is as in `credit`."""
        self._change(lambda ledger, now: requests.debit(ledger, amount, rate, now))

    def add(self, arm: str, max_cost: Amount | None = None) -> None:
        """A new arm. Its largest costs are those of all arms unless given. The name of a retired arm may return."""
        self._change(lambda ledger, now: requests.add(ledger, arm, max_cost, now))

    def pause(self, arm: str) -> None:
        """Take an arm out of play. News of its earlier pulls is still taken in."""
        self._change(lambda ledger, now: requests.set_status(ledger, arm, PAUSED, now))

    def resume(self, arm: str) -> None:
        """Put a paused arm back into play, with all that it has taught."""
        self._change(lambda ledger, now: requests.set_status(ledger, arm, ACTIVE, now))

    def retire(self, arm: str) -> None:
        """Take an arm out of play for good. News of its earlier pulls is still taken in."""
        self._change(lambda ledger, now: requests.set_status(ledger, arm, RETIRED, now))

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
        """Other settings from now on; those that are not given stay. With a journal they are in it.

        ``budget`` and ``hourly``  the income of the rounds and hours to come.
        ``max_cost``               of the pulls to come: one for all arms, or {name: cost} for some; at most the scale.
        ``policy``                 another policy. It finds what is known of the arms, and has no memory of its own yet.
        ``expires``, ``silence`` and ``period``  as when the bandit was made; None for none.

        >>> bandit = Bandit(["a", "b"], budget=0.5)
        >>> bandit.set(budget=0.25, policy="thompson")
        >>> bandit.budget, bandit.ask().reason
        (0.25, 'headroom 0.25 < largest cost 1')
        """
        options = {"budget": budget, "max_cost": max_cost, "policy": policy, "expires": expires, "silence": silence}
        options |= {"hourly": hourly, "period": period}
        given = {name: value for name, value in options.items() if value is not ...}
        if policy is not ...:
            get_ready(policy, self._ledger.config)  # before others have to wait for it
        if silence is not ... or expires is not ...:  # rewards may be corrected for their delay from now on
            self._ledger.arm_set.get_ready_for_parts()
        self._change(lambda ledger, now: self._settings(ledger, given, now))
        if policy is not ...:
            with self._lock:
                if self._journal is not None and self._ledger.digest != self._digest:
                    self._note_code()

    def _settings(self, ledger: Ledger, given: dict[str, Any], now: int) -> Event:
        """The event of other settings; of a policy of the user's the very object is used."""
        event, policy = requests.change_settings(ledger, given, now)
        if policy is not None:
            ledger.given_policy = policy
            self._digest = digest_of_code(policy)
        return event

    # What can be seen. Looking changes nothing.

    def status(self) -> Status:
        """Everything at one moment, in one picture: amounts, counts by arm and reason, what waits and for how long.

        >>> bandit = Bandit(["a", "b"], budget=1.0)
        >>> decision = bandit.ask()
        >>> status = bandit.status()
        >>> status.rounds, status.reserved, status.headroom, status.pending, status.arms[decision.arm].pending
        (1, 1.0, 0.0, 1, 1)
        """
        with self._lock:
            self._check_books()
            glance, now = glance_at(self._ledger), self._now()
        return status_of(glance, now)

    @property
    def rounds(self) -> int:
        """Rounds so far."""
        return self._ledger.rounds

    @property
    def spent(self) -> Any:
        """Costs so far, each rounded up to a unit of 2**-32 of the scale or less; expired pulls at their largest."""
        return self._amounts(lambda ledger, d: int(ledger.arm_set.books.spent[d]) + ledger.rolled[d])

    @property
    def reserved(self) -> Any:
        """The largest costs of the decisions whose cost is not known."""
        return self._amounts(lambda ledger, d: int(ledger.arm_set.books.reserved[d]))

    @property
    def credited(self) -> Any:
        """The line: the start stock and all that has come in since, less what overflowed."""
        return self._amounts(lambda ledger, d: ledger.line(d) + ledger.rolled[d])

    @property
    def held(self) -> Any:
        """What `credit` holds back for the rounds to come."""
        return self._amounts(lambda ledger, d: int(ledger.arm_set.books.held[d]))

    @property
    def budget(self) -> Any:
        """The income of a round now: as it was given, or as `set` has changed it."""
        with self._lock:
            config = self._ledger.config
            return config.by_name([resource.budget for resource in config.resources])

    @property
    def headroom(self) -> Any:
        """What may still be spent: credited - spent - reserved. It is below 0 only after an overrun."""
        return self._amounts(Ledger.headroom)

    @property
    def earned(self) -> float:
        """Rewards so far of the decisions that are settled."""
        with self._lock:
            return float(self._ledger.arm_set.books.tally.earned) * self._ledger.config.max_reward

    def _amounts(self, units: Callable[[Ledger, int], int]) -> Any:
        """A number; where resources have names, one for each of them by name."""
        with self._lock:
            ledger = self._ledger
            amounts = [currency.amount(units(ledger, d)) for d, currency in enumerate(ledger.currencies)]
            return ledger.config.by_name(amounts)

    @property
    def pending(self) -> dict[int, str]:
        """The decisions that are not settled, and their arms; those that have expired among them."""
        with self._lock:
            ledger, pulls = self._ledger, self._ledger.view_pending()
        names = ledger.arm_set.names
        return {
            ledger.id_of(number, pull[SLOT]): names[pull[SLOT]] for number, pull in pulls.items() if not is_told(pull)
        }

    def look_up(self, id: int | str) -> Record:
        """What has become of a decision, as long as it is pending or remembered; looking lets nothing expire.

        >>> bandit = Bandit(["a", "b"], budget=1.0)
        >>> decision = bandit.ask()
        >>> bandit.tell(decision.id, cost=0.25)
        >>> record = bandit.look_up(decision.id)
        >>> record.state, record.arm == decision.arm, record.reward, record.cost
        ('pending', True, None, 0.25)
        """
        with self._lock:
            self._check_books()
            return record_of(self._ledger, requests.number_of(id, self._ledger.config.worker))

    @property
    def expired(self) -> list[int]:
        """The decisions that nothing more is expected of; those without a cost are charged in full."""
        with self._lock:
            ledger = self._ledger
            return [ledger.id_of(number, ledger.pending[number][SLOT]) for number in ledger.expired_pulls]

    @property
    def arms(self) -> dict[str, str]:
        """The arms and whether each is active, paused or retired."""
        with self._lock:
            arm_set = self._ledger.arm_set
            return {name: arm_set.statuses[slot] for name, slot in arm_set.slot_by_name.items()}

    def estimates(self) -> dict[str, ArmEstimate]:
        """What is known of each arm, with intervals that hold at all times at once (95 %), in your units.

        With ``silence``, rewards are those of decisions whose window is over: clicks and silences of the same age.
        """
        with self._lock:
            arm_set, config, late = self._ledger.arm_set, self._ledger.config, deepcopy(self._ledger.late)
            arm_set.merge()
            known, slots = copied(arm_set.full.arms), arm_set.slot_by_name.copy()
            statuses, max_costs = arm_set.statuses.copy(), arm_set.max_costs.copy()
        return {
            name: arm_estimate(known, slot, statuses[slot], max_costs[slot], config, late)
            for name, slot in slots.items()
        }

    def mix(self) -> dict[str | None, float]:
        """The best share of rounds for each arm if the arms are what they seem to be; None stands for sitting out."""
        with self._lock:
            return best_mix_of(self._ledger)

    @property
    def price(self) -> Any:
        """What one more unit of a resource per round would earn, if the arms are what they seem to be."""
        with self._lock:
            return prices_of(self._ledger)

    def __repr__(self) -> str:
        with self._lock:
            ledger = self._ledger
            spent, credited = ledger.config.in_order("", self.spent), ledger.config.in_order("", self.credited)
        amounts = (
            f"spent {paid:g} of {line:g}" if ledger.is_unnamed else f"spent {paid:g} of {line:g} {name}"
            for name, paid, line in zip(ledger.config.names, spent, credited, strict=True)
        )
        return f"<Bandit {', '.join(self.arms)}: {self.rounds} rounds, {', '.join(amounts)}>"

    def events(self) -> Iterator[dict[str, Any]]:
        """Everything that has happened, from the journal: each event as a dict with its line, time and kind.

        Times are in seconds, arms have their names, and ids are those of the decisions. If closed segments were
        dropped, it begins with the first that is there. The bandit may go on meanwhile.

        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     bandit = Bandit(["banner", "video"], budget=1.0, journal=f"{folder}/journal", clock=lambda: 12.5)
        ...     decision = bandit.ask()
        ...     bandit.tell(decision.id, reward=0.7, cost=0.25)
        ...     asked, told = bandit.events()
        ...     bandit.close()
        >>> told
        {'line': 3, 'time': 12.5, 'event': 'tell', 'id': 1, 'arm': 'banner', 'reward': 0.7, 'cost': 0.25}
        """
        if self._journal is None:
            raise InvalidValue("events must have a journal to be read from, got a bandit without one")
        return entries_of(self._journal.path, self._ledger.config.policy)

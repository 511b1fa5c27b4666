"""Changes that are neither rounds nor news nor money: arms, what others have learned, and settings."""

from operator import truediv
from typing import TYPE_CHECKING, Any

from paceline.live import income
from paceline.live.config import policy_in_file
from paceline.live.events import Add, Merge, Observe, Set, SetStatus
from paceline.live.reports import sums_of_reports
from paceline.live.settings import changed_config, largest_costs
from paceline.live.sums import Sums, guessed_own
from paceline.policies.policy import Policy

if TYPE_CHECKING:
    from paceline.live.ledger import Ledger


def add_arm(ledger: "Ledger", event: Add) -> None:
    """A new arm."""
    ledger.arm_set.add([(event.name, event.largest)])
    ledger.turnout.add_arm()
    if ledger.late is not None:
        ledger.late.add_arm()
    ledger.foreign = ledger.foreign.with_arms(len(ledger.arm_set.names))
    if ledger.reports:
        renew_foreign(ledger)


def set_status(ledger: "Ledger", event: SetStatus) -> None:
    """Pause, resume or retire an arm."""
    ledger.arm_set.set_status(event.slot, event.status)
    if ledger.late is not None:
        ledger.arm_set.renew_beliefs(event.slot)


def observe(ledger: "Ledger", event: Observe) -> None:
    """Learn from a pull that was made elsewhere."""
    shares = tuple(map(truediv, event.costs, ledger.scales))
    ledger.arm_set.teach(event.slot, event.reward / ledger.max_reward, shares)


def merge_reports(ledger: "Ledger", event: Merge) -> None:
    """Learn from what others have summed up; what they said before is replaced."""
    ledger.reports.update(event.reports)
    renew_foreign(ledger)


def learn_from_others(ledger: "Ledger", foreign: Sums) -> None:
    """Take over what all others together have learned, in place of what they had before."""
    ledger.arm_set.know_more(foreign.plus(ledger.foreign, -1))
    ledger.foreign = foreign


def renew_foreign(ledger: "Ledger") -> None:
    """Bring what is known from others up to date: with a new report, a new arm, or another policy."""
    learn_from_others(ledger, sums_of_reports(ledger.arm_set, ledger.reports.values()))


def own_of_others(ledger: "Ledger", policy: Policy) -> dict[str, Any]:
    """The sums of a new policy's own that belong to others: part of what was guessed of all pulls is of theirs."""
    if ledger.reports:
        return sums_of_reports(ledger.arm_set, ledger.reports.values()).own
    return guessed_own(policy, ledger.foreign)


def change_settings(ledger: "Ledger", event: Set) -> None:
    """Settings that hold from now on."""
    ledger.pass_time(event.time)
    settings, arm_set, before = event.settings, ledger.arm_set, ledger.config
    if ledger.timed.last is not None:
        income.accrue(ledger, event.time)  # what came until now came as it was set before
    named = settings.get("policy")
    policy = None if named is None else policy_in_file(named, ledger.given_policy)
    config = changed_config(before, settings, policy)
    largest = largest_costs(before, arm_set, settings["max_cost"]) if "max_cost" in settings else {}
    arm_set.config = config
    if config.resources != before.resources:
        income.change_income(ledger, config)
    if policy is not None:
        arm_set.change_policy(config)
        ledger.foreign = ledger.foreign._replace(own=own_of_others(ledger, policy))
        ledger.policy_since = ledger.rounds
        ledger.digest = ""  # not known yet
    arm_set.set_max_costs(largest)
    ledger.timed.use(config)
    if ledger.rounds:
        ledger.timed.begin(event.time)
    ledger.use(config)
    ledger.renew_window()
    if config.period != before.period:
        income.forget_pace(ledger)
    ledger.renew_stop()

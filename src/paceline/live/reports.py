"""Learning together: what a bandit has learned, as sums that add up, and what others have.

For every arm a report has the number of pulls of which all is known, the sums and sums of squares of their rewards and
costs, in the user's unit, and what else the policy sums up (`Policy.own_sums`). Sums of several bandits add up to those
of one that had seen it all; beliefs follow from them. A report says all that its owner has learned itself since its
first round, so a newer one replaces an older one, and it does not matter if one is lost or comes twice.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from paceline import checks
from paceline.errors import InvalidPolicy, InvalidValue
from paceline.kernels.estimates import known_rewards
from paceline.kernels.jit import plain
from paceline.live.arms import ArmSet
from paceline.live.config import Config
from paceline.live.decision import NULL
from paceline.live.late_rewards import LateRewards
from paceline.live.sums import Sums, no_sums, sums_in
from paceline.policies.policy import Policy

MOST_PULLS = 2**53  # that a float can count


def check_adds_up(policy: Policy) -> None:
    """Refuse a policy whose memory does not follow from sums."""
    if not policy.adds_up:
        raise InvalidPolicy(
            f"{policy.name} must form its beliefs from sums of outcomes to be merged with others, but its memory "
            "depends on the order of what has happened"
        )


# Reports.


def report_of(arm_set: ArmSet, foreign: Sums, rounds: int, late: LateRewards | None) -> dict[str, Any]:
    """What this bandit has learned itself."""
    config = arm_set.config
    own = own_sums(arm_set, foreign, late)
    reward, costs = config.max_reward, np.array([resource.scale for resource in config.resources])
    rewards_of = (own.rewards.T * [reward, reward**2]).tolist()  # by slot
    costs_of = (own.costs.transpose(1, 0, 2) * [costs, costs**2]).tolist()
    return {
        "worker": config.worker,
        "rounds": rounds,
        "resources": list(config.names),
        "scales": scales_of(config),
        "arms": {
            name: {
                "pulls": round(float(own.pulls[slot])),
                "reward": rewards_of[slot],
                "cost": costs_of[slot],
                **{thing: float(values[slot]) for thing, values in own.own.items()},
            }
            for name, slot in arm_set.slot_by_name.items()
        },
    }


def own_sums(arm_set: ArmSet, foreign: Sums, late: LateRewards | None) -> Sums:
    """What a bandit has learned itself, on the scale of the policy."""
    check_adds_up(arm_set.policy)
    arm_set.merge()
    sums = sums_in(arm_set.all, arm_set.policy)
    return (sums if late is None else of_same_age(sums, arm_set, late)).plus(foreign, -1)


def of_same_age(sums: Sums, arm_set: ArmSet, late: LateRewards) -> Sums:
    """Sums in which rewards are those of pulls whose window is over, clicks and silences alike.

    There are fewer such pulls than pulls of which all is known, or more; the sums of costs are brought to their number.
    """
    arms = arm_set.full.arms
    aged = [late.reported(plain(known_rewards)(arms, slot), slot) for slot in range(len(arm_set.names))]
    pulls = np.array([known.number for known in aged])
    share = np.divide(pulls, sums.pulls, out=np.zeros_like(pulls), where=sums.pulls > 0.0)
    pulls = np.where(sums.pulls > 0.0, pulls, 0.0)
    rewards = np.array([[known.total for known in aged], [known.squares for known in aged]])
    own = {name: values * share for name, values in sums.own.items()}
    return Sums(pulls, np.where(pulls > 0.0, rewards, 0.0), sums.costs * share[:, None], own)


def check_reports(config: Config, policy: Policy, reports: object) -> dict[str, dict[str, Any]]:
    """Reports of others by the name of their owner, each of the form that `report_of` gives; one's own is left out."""
    check_adds_up(policy)
    if not isinstance(reports, Mapping) or not all(isinstance(owner, str) and owner for owner in reports):
        raise InvalidValue(f"reports must be given by the name of their owner, got {reports!r}")
    others = {owner: report for owner, report in reports.items() if owner != config.worker}
    return {owner: check_report(config, owner, report) for owner, report in others.items()}


def check_report(config: Config, owner: str, report: Any) -> dict[str, Any]:
    """One report; what it may say of arms is checked, what else is in it is left out."""
    thing = f"report of {owner}"
    if not isinstance(report, Mapping) or not isinstance(report.get("arms"), Mapping):
        raise InvalidValue(f"{thing} must be what Bandit.report gives, got {report!r}")
    if list(report.get("resources", ())) != list(config.names):
        names = ", ".join(config.names)
        raise InvalidValue(f"{thing} must have the resources {names}, got {report.get('resources')!r}")
    arms = {name: check_arm(config, f"{thing} on {name}", arm) for name, arm in report["arms"].items()}
    return {"resources": list(config.names), "scales": report.get("scales"), "arms": arms}


def scales_of(config: Config) -> list[float]:
    """What counts as 1 to the policy: a policy's own sums mean the same where these are the same."""
    return [config.max_reward, *(resource.scale for resource in config.resources)]


def check_arm(config: Config, thing: str, arm: Any) -> dict[str, Any]:
    """What a report says of an arm: sums that outcomes can have."""
    try:
        pulls = checks.whole(f"pulls in {thing}", arm["pulls"], 0, MOST_PULLS)
        reward = pair(f"reward in {thing}", arm["reward"])
        total, squares = arm["cost"]
        costs = [
            [checks.real(f"cost in {thing}", value) for value in numbers(row, len(config.resources))]
            for row in (total, squares)
        ]
        others = {name: checks.real(f"{name} in {thing}", arm[name]) for name in arm if name not in USUAL}
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, InvalidValue):
            raise
        raise InvalidValue(
            f"{thing} must have pulls, reward and cost as Bandit.report gives them, got {arm!r}"
        ) from None
    if reward[0] < 0.0 or reward[0] > pulls * config.max_reward * (1.0 + 1e-9):
        raise InvalidValue(f"reward in {thing} must be from 0 to {pulls * config.max_reward:g}, got {reward[0]!r}")
    return {"pulls": pulls, "reward": reward, "cost": costs, **others}


USUAL = ("pulls", "reward", "cost")


def numbers(values: Iterable[Any], count: int) -> list[Any]:
    """So many values."""
    found = list(values)
    if len(found) != count:
        raise ValueError
    return found


def pair(thing: str, values: Iterable[Any]) -> list[float]:
    """A sum, and a sum of squares."""
    return [checks.real(thing, value) for value in numbers(values, 2)]


def sums_of_reports(arm_set: ArmSet, reports: Iterable[Mapping[str, Any]]) -> Sums:
    """What others have learned of the arms that are known here; what they say of others is passed over."""
    config, policy = arm_set.config, arm_set.policy
    found = no_sums(policy, len(arm_set.names), len(config.resources))
    reward, scales = config.max_reward, np.array([resource.scale for resource in config.resources])
    for report in reports:
        is_alike = report["scales"] == scales_of(config)
        for name, arm in report["arms"].items():
            slot = arm_set.slot_by_name.get(name, NULL)
            if slot < 0:
                continue
            pulls, costs = arm["pulls"], np.array(arm["cost"]) / [scales, scales**2]
            rewards = np.array(arm["reward"]) / [reward, reward**2]
            found.pulls[slot] += pulls
            found.rewards[:, slot] += rewards
            found.costs[:, slot] += costs
            for thing, values in found.own.items():
                guess = policy.without_own_sum(thing, pulls, float(rewards[0]), costs[0])
                values[slot] += arm.get(thing, guess) if is_alike else guess
    return found

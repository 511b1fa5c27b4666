"""Bandits that earlier versions saved, in formats 1 and 2, as today's file would describe them.

Sums, amounts, open pulls and settled ones are as they were. What the policy remembers besides is taken over where
today's has the same form, and else follows from the sums as well as it can (`adapt`). The parts of open pulls, which
taught nothing then, do so now.
"""

from typing import Any

import numpy as np

from paceline.kernels.state import SKIP, NoMemory
from paceline.live.arms import ArmSet
from paceline.live.config import Config, read_config
from paceline.live.decision import NULL
from paceline.live.events import NO_TIME
from paceline.live.ledger import Ledger
from paceline.live.memory import lost_from
from paceline.live.old_formats import fit, milliseconds_of, settings_of_today
from paceline.live.sums import guess_own_sums
from paceline.live.timed_income import TimedIncome
from paceline.policies import PolicyLike
from paceline.policies.policy import Policy
from paceline.policies.rules import is_ours

EARLIER = "in an earlier version"  # the reason of rounds that were not counted by reason
NOT_YET = ("since", "arm", "reason", "tag", "told")  # counts of the tally that are younger
TABLES = {"primal-dual": "in_base", "ucb-simplex": "accounts"}  # what the tables of the first edition held

Body = dict[str, Any]


def body_of_today(format: int, body: Body, policy: PolicyLike | None) -> tuple[Body, bool]:
    """What a file in an earlier format says, as `snapshot.describe_ledger` would; and whether memory was lost."""
    settings = settings_of_today(format, body["settings"])
    config = read_config(settings, policy)
    body = {**(in_second_edition(body, config) if format == 1 else body), "settings": settings}
    arms = [arm_of_today(arm, config) for arm in body["arms"]]
    nothing = [0] * len(config.resources)
    rates = [resource.currency.income_per_round(resource.budget) for resource in config.resources]
    amounts = {
        **{"rate": [whole for whole, _ in rates], "rate_part": [part for _, part in rates]},
        **dict.fromkeys(("folded", "unpaced", "lost", "peak", "depth", "pace", "pace_line"), nothing),
        **body["amounts"],
    }
    fresh = config.policy.new_memory(len(arms), len(config.resources))
    has_record, has_memory = fits_record(config.policy, body["record"]), fits(fresh, body["memory"])
    rounds = rounds_so_far(body, arms)
    today = {
        **body,
        "policy_since": 0,
        "arms": [
            {
                **arm,
                **known_of(slot, arm, body["open"], config),
                "counts": counted(rounds[slot]),
                "cancelled": 0,
                "expired": 0,
            }
            for slot, arm in enumerate(arms)
        ],
        "tally": {**dict.fromkeys(NOT_YET, 0), **body["tally"]},
        "record": body["record"] if has_record else dict.fromkeys(config.policy.record.names or (), 0),
        "memory": body["memory"] if has_memory else {name: array.tolist() for name, array in fresh._asdict().items()},
        "amounts": amounts,
        "reports": {},
        "rolled": [*nothing],
        "overrun": [*nothing],
        "timed": TimedIncome(config).to_dict(),
        "turnout": {
            "null": counted(rounds[NULL]),
            "skips": counted(rounds[SKIP]),
            "marks": [[body["rounds"], counted(rounds[NULL] + rounds[SKIP])]],
        },
        "open": [pull_of_today(pull, arms, len(config.resources)) for pull in body["open"]],
        "late": None,
        "answers": [],
    }
    return today, not (has_record and has_memory)


def in_second_edition(body: Body, config: Config) -> Body:
    """A file of the first edition, which knew one resource, as the second would have written it."""
    clock, policy = body["clock"], config.policy
    units = ("credited", "held", "reserved", "spent", "lowest", "headroom")
    fresh = policy.new_memory(len(body["arms"]), 1)
    table = TABLES.get(policy.name, "") if is_ours(policy) else ""
    memory: Body = {"nothing": []} if isinstance(fresh, NoMemory) else {}
    if table:
        memory = {table: np.reshape(body["table"], getattr(fresh, table).shape).tolist()}
    return {
        "rounds": body["rounds"],
        "arms": [
            {
                **arm,
                "status": arm["standing"],
                **{name: [arm[name]] for name in ("cost_sum", "cost_squares")},
            }
            for arm in body["arms"]
        ],
        "tally": {
            **{name: clock[name] for name in ("t", "seed", "stream", "earned", "skips", "idle")},
            **dict.fromkeys(("rounds", "fault", "faulty"), 0),
        },
        "clock": {name: clock[name] for name in ("t", "seed", "stream")},
        "record": body["memory"],
        "memory": memory,
        "session": None,
        "amounts": {**{name: [clock[f"{name}_units"]] for name in units}, "held_rounds": [clock["held_rounds"]]},
        "shown": {
            **{"rate": [clock["budget"]], "planned": [0.0]},
            **{name: [clock["headroom"]] for name in ("headroom", "outlook")},
        },
        "open": [pull_in_second_edition(pull) for pull in body["open"]],
        "expired_pulls": body["lapsed"],
        "settled": [
            [number, reward, [] if cost is None else [cost]] for number, reward, cost in body["settled"]
        ],  # without a cost: cancelled
    }


def pull_in_second_edition(pull: Body) -> Body:
    """An open pull of the first edition."""
    return {
        **{name: pull[name] for name in ("id", "slot", "reward", "deadline", "expired")},
        "reason": pull["event"],
        "tag": pull["partner"],
        "reserved": [pull["reserved"]],
        "charged": [pull["charged"]],
        "costs": [pull["cost"]],
    }


def pull_of_today(pull: Body, arms: list[Body], resources: int) -> Body:
    """An open pull of the second edition. Costs or charges that were not known yet were left out."""
    costs, charged = pull["costs"] or [None] * resources, pull["charged"] or [0] * resources
    is_touched = pull["expired"] or pull["reward"] is not None or any(cost is not None for cost in costs)
    return {
        **{name: pull[name] for name in ("id", "slot", "reason", "tag", "reserved")},
        "largest": arms[pull["slot"]]["max_cost"],
        "asked": NO_TIME,
        "deadline": milliseconds_of(pull["deadline"]),
        "told": [pull["reward"], costs, charged, pull["expired"], pull["reward"] is not None] if is_touched else None,
    }


def arm_of_today(arm: Body, config: Config) -> Body:
    """An arm of the second edition, whose largest costs were by name."""
    return {**arm, "max_cost": list(config.in_order("max_cost", arm["max_cost"]))}


def known_of(slot: int, arm: Body, pulls: list[Body], config: Config) -> Body:
    """All rewards and costs of an arm that are known: of its settled pulls, and the parts of open ones."""
    open_pulls = [pull for pull in pulls if pull["slot"] == slot]
    rewards = [pull["reward"] / config.max_reward for pull in open_pulls if pull["reward"] is not None]
    count, total, squares = arm["pulls"], arm["reward_sum"], arm["reward_squares"]
    sides = [with_more(count, total, squares, rewards)]
    for d, resource in enumerate(config.resources):
        costs = [pull["costs"][d] for pull in open_pulls if pull["costs"]]
        shares = [cost / resource.scale for cost in costs if cost is not None]
        sides.append(with_more(count, arm["cost_sum"][d], arm["cost_squares"][d], shares))
    return {"reward_known": sides[0], "cost_known": [list(row) for row in zip(*sides[1:], strict=True)]}


def with_more(count: int, total: float, squares: float, values: list[float]) -> list[float]:
    """Number, sum and sum of squares, with some more."""
    return [float(count + len(values)), total + sum(values), squares + sum(value * value for value in values)]


def rounds_so_far(body: Body, arms: list[Body]) -> dict[int, int]:
    """How many rounds went to each arm, and to none. Pulls that were cancelled or given up had left no trace."""
    counts = {slot: arm["pulls"] for slot, arm in enumerate(arms)}
    for pull in body["open"]:
        counts[pull["slot"]] += 1
    skips, idle = body["tally"]["skips"], body["tally"]["idle"]
    return counts | {SKIP: skips, NULL: idle - skips}


def counted(rounds: int) -> dict[str, int]:
    """So many rounds, by reason."""
    return {EARLIER: rounds} if rounds else {}


# What the policy remembers.


def fits(fresh: Any, saved: Body) -> bool:
    """Whether arrays have the names and shapes that the policy has today."""
    return saved.keys() == fresh._asdict().keys() and not lost_from(saved, fresh)


def fits_record(policy: Policy, saved: Body) -> bool:
    """Whether scalars have the names that the policy has today."""
    return set(saved) == set(policy.record.names or ())


def adapt(ledger: Ledger, has_forgotten: bool) -> str:
    """Let the policy of today go on from an earlier one; says what has become of its memory."""
    arm_set, pending = ledger.arm_set, ledger.pending
    for number in pending:
        pull = pending.at(number)
        reason, tag = fit(ledger, pull.slot, pull.reason, pull.tag)
        pending.put(number, pull._replace(reason=reason, tag=tag))
    policy = arm_set.policy
    if policy.adds_up:  # what it believes follows from what is known, of which there is more now
        believe_anew(arm_set, has_forgotten)
    if not has_forgotten:
        return "what its policy remembers is taken over"
    return "what its policy believes is computed anew" if policy.adds_up else "the memory of its policy begins anew"


def believe_anew(arm_set: ArmSet, has_forgotten: bool = True) -> None:
    """Let a policy whose beliefs follow from sums compute them; sums of its own may be lost."""
    arm_set.merge()
    if has_forgotten:
        guess_own_sums(arm_set.all, arm_set.policy)
    arm_set.refresh()
    arm_set.renew()

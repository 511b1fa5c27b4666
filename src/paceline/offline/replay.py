"""Run policies over logged outcomes: what they would have done, and earned at each budget rate."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from paceline import checks
from paceline.errors import InvalidValue
from paceline.game import prepare
from paceline.interrupts import interrupts_held
from paceline.machine import cores
from paceline.offline.best import Rates, allowed
from paceline.offline.data import LogLike, read_log_table
from paceline.offline.logged import Logged, if_named
from paceline.offline.logs import Columns, MaxCost, Propensity, full_log, random_log, resources_of
from paceline.offline.replays import Replay, Replayed, key_of, rounds_of
from paceline.policies import PoliciesLike, label_policies
from paceline.policies.policy import Policy, Setting
from paceline.problems.resources import by_resource
from paceline.simulation.simulate import collect
from paceline.simulation.totals import Totals, new_totals, note, stack_trials

Budget = float | Mapping[str, float]

DISTANT = 10.0  # a largest cost so many times above every cost in the log was hardly meant


def replay(
    log: LogLike,
    policy: PoliciesLike = "index",
    *,
    budget: Budget | Sequence[Budget],
    arm: str = "arm",
    reward: str = "reward",
    cost: str | Columns | None = None,
    propensity: Propensity = None,
    rewards: Columns | None = None,
    costs: Columns | Mapping[str, Columns] | None = None,
    max_cost: MaxCost | Mapping[str, MaxCost] = 1.0,
    max_reward: float = 1.0,
    repeats: int = 200,
    seed: int = 0,
) -> Replay:
    """Run policies over a table of logged outcomes: a DataFrame, a mapping of columns, or the path of a file.

    A file is CSV with a heading, packed by gzip if its name ends with .gz, or Parquet if it ends with .parquet or .pq.
    Rewards may be true or false.

    **Randomised log.** A row has the arm that was shown, its reward and its cost in the columns ``arm``, ``reward`` and
    ``cost``. Rows that lack one of them are left out, and ``left_out`` of the result counts them: the log of a live
    bandit has rounds that were sat out and outcomes that are not known yet. When the policy asks for an arm, rows are
    passed over until one shows it, and that outcome is told; a round sat out takes no row. Where arms were not equally
    likely, the column ``propensity`` has the probability with which the arm of the row was drawn, and a row of
    propensity p is kept with probability  (smallest p) / p.  A column that is called "propensity" is heeded without
    being named, unless ``propensity`` is False. Without it arms are taken to be equally likely, and a note says if
    their shares do not fit. On average one pull takes as many rows as there are arms, so the replay of N rows stands
    for the first N / K rounds with a pull, not for N; it never lasts longer than N rounds. The estimate is the mean
    over ``repeats`` random orders of the rows. (A mean over resamples would come out too high where arms are about
    equally good: in each, the policy finds the luckiest.)

    Conditions: outcomes are independent and alike in law, and the arm was drawn independently of what each arm would
    have yielded, given the propensity, which was above 0 for every arm in every row. Then the outcomes told are
    distributed as they would have been live, and the number of pulls says nothing about them (Li, Chu, Langford, Wang,
    "Unbiased offline evaluation of contextual-bandit-based news article recommendation algorithms", WSDM 2011). This
    holds, too, where the propensities followed from earlier rows, as those of a policy do: any row is kept with the
    same probability, K (smallest p), whatever came before (rejection sampling as in Mandel, Liu, Brunskill, Popovic,
    "Offline evaluation of online reinforcement learning algorithms", AAAI 2016). Only the division by a random number
    of rounds leaves a bias, of the order of 1 / rounds.

    **Full information.** ``rewards`` and ``costs`` map each arm to the columns of its reward and its cost; row t is
    round t. The estimate comes from the log in its own order and is exact for a policy that draws nothing; it assumes
    that the choice of an arm does not change what later rows hold.

    The interval holds the middle 95 % of ``repeats`` replays of rows drawn with replacement, all with decisions of
    their own; all policies and budgets share the draws (Mary, Preux, Nicol, "Improving offline evaluation of contextual
    bandit algorithms via bootstrapping techniques", ICML 2014; they draw K times as many rows to make up for those
    passed over, which would hide how little the log knows). It says where a single replay of another such log would
    end, so it is wide for the mean over many orders. It takes rows as independent: an estimate of a full log outside of
    its interval says that their order matters.

    ``budget`` is money per round in the unit of the costs, or a list of such rates. ``max_cost`` is the largest
    possible cost of a pull, or of each arm by name, and ``max_reward`` the largest reward: the guard lets an arm be
    pulled when the headroom covers its ``max_cost``. A budget above the largest ``max_cost`` never binds and is played
    as if it were just that. Policies that need a horizon are told the number of rows. A bad row is an error that gives
    its number.

    **Several resources.** ``budget`` is then a mapping by the name of the resource, or a list of such mappings, and so
    is ``max_cost``, each entry as above; one number is for all resources, and 0 says that an arm does not need one.
    ``cost`` maps each resource to its column, which is else called ``cost_`` and the name, and ``costs`` to the columns
    of the arms. The guard keeps every line. What is by resource comes back by its name, and a result is found by the
    rates in the order of the columns, or by the mapping itself.

    >>> log = {"arm": ["banner", "video"] * 500, "reward": [0, 0, 1, 1] * 250, "cost": [0.1, 0.5] * 500}
    >>> res = replay(log, ["thompson", "uniform"], budget=0.3, repeats=20)
    >>> res["thompson", 0.3].reward.value > res["uniform", 0.3].reward.value
    True
    >>> log["calls"] = [1, 0] * 500
    >>> both = {"cost": {"money": "cost", "calls": "calls"}, "budget": {"money": 0.3, "calls": 0.25}}
    >>> res = replay(log, **both, repeats=20)
    >>> list(res), list(res["index", {"money": 0.3, "calls": 0.25}].spent)
    ([('index', (0.3, 0.25))], ['money', 'calls'])
    """
    chosen = label_policies(policy)
    resources = resources_of(budget, cost, costs)
    budgets = check_budgets(budget, resources)
    repeats = checks.whole("repeats", repeats, 2)
    seed = checks.seed(seed)
    for one in chosen.values():
        one.check_resources(len(resources))
    largest: dict[str, Any] = {"max_cost": max_cost, "max_reward": max_reward}
    logged: Logged
    if rewards is None and costs is None:
        columns: dict[str, Any] = {"arm": arm, "reward": reward, "cost": cost, "propensity": propensity}
        logged = random_log(read_log_table(log), resources, **columns, **largest)
    elif propensity:
        raise InvalidValue(
            f"propensity is for logs that know one arm a row, not for rewards and costs, got {propensity!r}"
        )
    else:
        logged = full_log(read_log_table(log), resources, rewards=rewards, costs=costs, **largest)
    plays = [
        Play(label, rates, policy, settings(logged, rates)) for label, policy in chosen.items() for rates in budgets
    ]
    arms = logged.arms()
    orders = 1 if logged.ordered else repeats
    totals = play_everything(logged, plays, orders, repeats, seed)
    replays = {
        key_of(play.label, play.rates): Replayed(
            play.label,
            play.rates,
            *allowed(arms, play.rates),
            logged,
            stack_trials(found[:orders]),
            stack_trials(found[orders:]),
        )
        for play, found in zip(plays, zip(*totals, strict=True), strict=True)
    }
    notes = (*logged.notes(), *loose_budgets(logged, budgets), *distant_limits(logged))
    return Replay(logged.rounds, repeats, seed, resources, arms, notes, logged.left_out, replays)


@dataclass(frozen=True)
class Play:
    """A policy at a budget."""

    label: str
    rates: Rates  # in the units of the log
    policy: Policy
    setting: Setting

    def totals(self, rows: Logged, seed: int, stream: int) -> Totals:
        """Replay the rows as they stand, with decisions of this stream."""
        game = prepare(self.policy, rows.world(), replace(self.setting, seed=seed, stream=stream))
        game.until(rows.rounds)
        totals = new_totals(1, self.setting.arms, self.setting.resources, self.policy.record)
        note(totals, 0, game.storage)
        if not rounds_of(totals):
            raise InvalidValue(f"a log must have rows enough for a round of {self.label}, got {rows.rounds}")
        return totals


def play_everything(logged: Logged, plays: Sequence[Play], orders: int, repeats: int, seed: int) -> list[list[Totals]]:
    """The totals of each play in each replay: first so many orders of the rows, then so many resamples."""

    def one(stream: int) -> list[Totals]:
        rows = logged.resample(np.random.default_rng([seed, stream]), again=stream >= orders)
        return [play.totals(rows, seed, stream) for play in plays]

    first = one(0)  # in this thread alone: it compiles
    with interrupts_held() as inbox, ThreadPoolExecutor(max_workers=cores()) as pool:
        rest = collect({"": [pool.submit(one, stream) for stream in range(1, orders + repeats)]}, inbox)
    return [first, *rest[""]]


def settings(logged: Logged, rates: Rates) -> Setting:
    """What a policy is told before the first round."""
    scaled = tuple(min(rate / top, 1.0) for rate, top in zip(rates, logged.tops.tolist(), strict=True))
    return Setting(len(logged.names), scaled, logged.rounds, max_costs=logged.limits.tolist())


def check_budgets(budget: object, resources: tuple[str, ...]) -> list[Rates]:
    """The budgets as a list of different rates above 0."""
    given = budget if isinstance(budget, Sequence | np.ndarray) and not isinstance(budget, str) else [budget]
    budgets = [check_rates(one, resources) for one in given]
    twice = [rates for rates in budgets if budgets.count(rates) > 1]
    if twice:
        shown = if_named(dict(zip(resources, twice[0], strict=True)))
        raise InvalidValue(f"budgets must differ, got {shown} twice")
    if not budgets:
        raise InvalidValue("budget must be a number or a list of at least one, got none")
    return budgets


def check_rates(budget: object, resources: tuple[str, ...]) -> Rates:
    """One budget: a rate above 0 for each resource."""
    given = by_resource("budget", budget, resources).values()
    return tuple(checks.real(thing, rate, 0, above_low=True) for thing, rate in given)


def loose_budgets(logged: Logged, budgets: Sequence[Rates]) -> list[str]:
    """With several resources a note for each whose budget is above the largest cost: it may be in the wrong unit."""
    if len(logged.resources) == 1:
        return []
    highest = np.array(budgets).max(axis=0)
    return [
        f"budget of {name!r}, {rate:g}, is above its largest max_cost, {top:g}: it never binds"
        for name, rate, top in zip(logged.resources, highest.tolist(), logged.tops.tolist(), strict=True)
        if rate > top
    ]


def distant_limits(logged: Logged) -> list[str]:
    """A note for each resource whose largest cost is far above every cost in the log: the guard waits for it."""
    costs = [logged.arm(number)[1].reshape(-1, len(logged.resources)) for number in range(len(logged.names))]
    seen = np.vstack(costs).max(axis=0) * logged.tops
    return [
        f"no {name} in the log is above {most:g}, but max_cost is {top:g}: "
        "rounds are sat out until the headroom covers that; give the largest cost that a pull can have"
        for name, most, top in zip(logged.resources, seen.tolist(), logged.tops.tolist(), strict=True)
        if 0.0 < DISTANT * most < top
    ]
